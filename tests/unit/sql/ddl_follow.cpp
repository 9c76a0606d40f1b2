// What a list of DDL statements amounts to.
#include <catch2/catch.hpp>

#include "router/sql/facts.hpp"

namespace sql = hotlane::sql;

namespace {

std::string show(const sql::table_definition& t) {
    std::string out = t.name + "(";
    for (const sql::column_definition& c : t.columns) {
        out += (out.back() == '(' ? "" : ", ") + c.name + " " + c.type;
        if (c.not_null) out += " nn";
        if (c.default_expression) out += " =" + *c.default_expression;
        for (const std::string& check : c.checks)
            out += " {" + check + "}";
    }
    out += ")";
    if (!t.primary_key.empty()) out += " p";
    for (const std::string& c : t.primary_key)
        out += ":" + c;
    for (const auto& columns : t.uniques) {
        out += " u";
        for (const std::string& c : columns)
            out += ":" + c;
    }
    for (const std::string& check : t.checks)
        out += " {" + check + "}";
    for (const std::string& text : t.not_understood)
        out += " ?" + text;
    return out;
}
// All tables, then what was not followed.
std::string amounts_to(const std::vector<std::string>& statements) {
    const sql::schema_definition schema = sql::read_ddl(statements);
    std::string out;
    for (const sql::table_definition& t : schema.tables)
        out += show(t) + "\n";
    for (const std::string& text : schema.not_followed)
        out += "! " + text + "\n";
    return out;
}

struct row {
    std::vector<std::string> then;
    const char* expected;
};

}  // namespace

TEST_CASE("what follows a CREATE TABLE") {
    const row rows[] = {
        {{}, "t(a int, b text)\n"},
        {{"ALTER TABLE t ADD COLUMN c int NOT NULL DEFAULT 5"}, "t(a int, b text, c int nn =5)\n"},
        {{"ALTER TABLE t ADD c int CHECK (c > 0)"}, "t(a int, b text, c int {c > 0})\n"},
        {{"ALTER TABLE t ADD COLUMN IF NOT EXISTS a text, ADD COLUMN d int"},
         "t(a int, b text, d int)\n"},
        {{"ALTER TABLE t ADD CONSTRAINT x UNIQUE (a, b)"}, "t(a int, b text) u:a:b\n"},
        {{"ALTER TABLE t ADD CHECK (a > 0)"}, "t(a int, b text) {a > 0}\n"},
        {{"ALTER TABLE t ADD CONSTRAINT x CHECK (a > 0) NOT VALID"},
         "t(a int, b text) {a > 0} ?NOT VALID\n"},
        {{"ALTER TABLE t DROP COLUMN b"}, "t(a int)\n"},
        {{"ALTER TABLE ONLY public.t DROP b CASCADE"}, "t(a int)\n"},
        {{"ALTER TABLE t DROP COLUMN IF EXISTS nosuch"}, "t(a int, b text)\n"},
        {{"ALTER TABLE t DROP COLUMN nosuch"},
         "t(a int, b text)\n! ALTER TABLE t DROP COLUMN nosuch\n"},
        {{"ALTER TABLE t ADD UNIQUE (a, b)", "ALTER TABLE t DROP b"}, "t(a int)\n"},
        {{"ALTER TABLE t ADD PRIMARY KEY (a, b)"}, "t(a int, b text) p:a:b\n"},
        {{"ALTER TABLE t ADD PRIMARY KEY (a, b)", "ALTER TABLE t DROP b"}, "t(a int)\n"},
        {{"ALTER TABLE t ADD PRIMARY KEY (a)", "ALTER TABLE t RENAME a TO c"},
         "t(c int, b text) p:c\n"},
        {{"ALTER TABLE t RENAME COLUMN a TO c"}, "t(c int, b text)\n"},
        {{"ALTER TABLE t RENAME a TO \"C\""}, "t(C int, b text)\n"},
        {{"ALTER TABLE t ADD CHECK (a > 0 AND b <> 'a')", "ALTER TABLE t RENAME a TO c"},
         "t(c int, b text) {\"c\" > 0 AND b <> 'a'}\n"},
        {{"ALTER TABLE t ADD UNIQUE (a, b)", "ALTER TABLE t RENAME a TO c"},
         "t(c int, b text) u:c:b\n"},
        {{"ALTER TABLE t RENAME a TO b"}, "t(a int, b text)\n! ALTER TABLE t RENAME a TO b\n"},
        {{"ALTER TABLE t RENAME TO u", "ALTER TABLE u ADD c int"}, "u(a int, b text, c int)\n"},
        {{"ALTER TABLE t RENAME CONSTRAINT x TO y"}, "t(a int, b text)\n"},
        {{"ALTER TABLE t ALTER COLUMN a SET NOT NULL, ALTER b SET DEFAULT 'x'"},
         "t(a int nn, b text ='x')\n"},
        {{"ALTER TABLE t ALTER a SET DEFAULT 1", "ALTER TABLE t ALTER a DROP DEFAULT"},
         "t(a int, b text)\n"},
        {{"ALTER TABLE t ALTER a TYPE bigint USING a::bigint, ALTER b SET DATA TYPE varchar(5)"},
         "t(a bigint, b varchar(5))\n"},
        {{"ALTER TABLE t OWNER TO bob"}, "t(a int, b text)\n! ALTER TABLE t OWNER TO bob\n"},
        {{"ALTER TABLE t DROP CONSTRAINT x"},
         "t(a int, b text)\n! ALTER TABLE t DROP CONSTRAINT x\n"},
        {{"ALTER TABLE nosuch ADD c int"}, "t(a int, b text)\n! ALTER TABLE nosuch ADD c int\n"},
        {{"ALTER TABLE IF EXISTS nosuch ADD c int"}, "t(a int, b text)\n"},
        {{"DROP TABLE t"}, ""},
        {{"DROP TABLE IF EXISTS t, u CASCADE"}, ""},
        {{"DROP TABLE t", "CREATE TABLE t (x int)"}, "t(x int)\n"},
        {{"CREATE TABLE IF NOT EXISTS t (x int)"}, "t(a int, b text)\n"},
        {{"CREATE TABLE t (x int)"}, "t(a int, b text)\n! CREATE TABLE t (x int)\n"},
        {{"CREATE TABLE t (a int, b text)"}, "t(a int, b text)\n"},
        {{"CREATE UNIQUE INDEX i ON t (a, b)"}, "t(a int, b text) u:a:b\n"},
        {{"CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS i ON public.t USING btree (b)"},
         "t(a int, b text) u:b\n"},
        {{"CREATE UNIQUE INDEX i ON t (a)", "CREATE UNIQUE INDEX IF NOT EXISTS i ON t (b)"},
         "t(a int, b text) u:a\n"},
        {{"CREATE UNIQUE INDEX i ON t (a)", "DROP INDEX i"}, "t(a int, b text)\n"},
        {{"CREATE UNIQUE INDEX i ON t (lower(b))"},
         "t(a int, b text) ?CREATE UNIQUE INDEX i ON t (lower(b))\n"},
        {{"CREATE UNIQUE INDEX i ON t (b) WHERE a > 0", "DROP INDEX IF EXISTS i"},
         "t(a int, b text)\n"},
        {{"CREATE INDEX i ON t (a)", "DROP INDEX i"}, "t(a int, b text)\n"},
        {{"DROP INDEX nosuch"}, "t(a int, b text)\n! DROP INDEX nosuch\n"},
        {{"INSERT INTO t VALUES (1, 'x')", "PRAGMA x", "SET a = 1", "COMMENT ON TABLE t IS 'x'"},
         "t(a int, b text)\n"},
        {{"CREATE VIEW v AS SELECT 1"}, "t(a int, b text)\n! CREATE VIEW v AS SELECT 1\n"},
        {{"CREATE VIEW v AS SELECT 1", "DROP VIEW v"}, "t(a int, b text)\n"},
        {{"CREATE OR REPLACE TEMP VIEW v AS SELECT 1",
          "CREATE VIEW IF NOT EXISTS \"W\" AS SELECT 2",
          "DROP VIEW IF EXISTS v, \"W\" CASCADE"},
         "t(a int, b text)\n"},
        {{"CREATE VIEW v AS SELECT 1", "DROP VIEW w"},
         "t(a int, b text)\n! CREATE VIEW v AS SELECT 1\n"},
        {{"CREATE TABLE u AS SELECT 1", "DROP TABLE u"}, "t(a int, b text)\n"},
        {{"ALTER TABLE t DROP CONSTRAINT x", "DROP TABLE t"}, ""},
        {{"CREATE TABLE u (a int)", "ALTER TABLE t RENAME CONSTRAINT", "DROP TABLE t"},
         "u(a int)\n! ALTER TABLE t RENAME CONSTRAINT\n"},
        {{"CREATE TABLE u (a int REFERENCES t, FOREIGN KEY (a) REFERENCES t (a))",
          "CREATE TABLE n (a int)",
          "DROP TABLE t",
          "ALTER TABLE n RENAME TO t"},
         "u(a int)\nt(a int)\n"},
        {{"CREATE TABLE u AS SELECT 1"}, "t(a int, b text)\n! CREATE TABLE u AS SELECT 1\n"},
        {{"CREATE TABLE u (a, b) AS SELECT 1, 2"},
         "t(a int, b text)\n! CREATE TABLE u (a, b) AS SELECT 1, 2\n"},
        {{"CREATE TABLE u (a int", "CREATE TABLE v ('x"},
         "t(a int, b text)\n! CREATE TABLE u (a int\n! CREATE TABLE v ('x\n"},
        {{"CREATE TRIGGER x", "ROLLBACK"}, "t(a int, b text)\n! CREATE TRIGGER x\n! ROLLBACK\n"},
        {{"CREATE TABLE u (a int REFERENCES t)", "ALTER TABLE t RENAME TO v"},
         "v(a int, b text)\nu(a int)\n! ALTER TABLE t RENAME TO v\n"},
    };
    for (const row& r : rows) {
        std::vector<std::string> statements{"CREATE TABLE t (a int, b text)"};
        statements.insert(statements.end(), r.then.begin(), r.then.end());
        CAPTURE(statements.back());
        CHECK(amounts_to(statements) == r.expected);
        // One script amounts to the same as a list.
        std::string script;
        bool sound = true;
        for (const std::string& s : statements) {
            script += s + ";\n";
            sound = sound && sql::split_statements(s + ";").front() == s;
        }
        const bool closed = script.find("(a int;") == std::string::npos;
        if (sound && closed) CHECK(amounts_to({script}) == r.expected);
    }
}

TEST_CASE("scripts are split at their own semicolons") {
    using list = std::vector<std::string>;
    CHECK(sql::split_statements("").empty());
    CHECK(sql::split_statements(" ; ; -- x\n").empty());
    CHECK(sql::split_statements("a; b ;c") == list{"a", "b", "c"});
    CHECK(sql::split_statements("a ';' b; $$ ; $$; \"x;y\"; `x;y`; (a; b)") ==
          list{"a ';' b", "$$ ; $$", "\"x;y\"", "`x;y`", "(a; b)"});
    CHECK(sql::split_statements("a /* ; /* ; */ ; */ b -- ;\n c; d") ==
          list{"a /* ; /* ; */ ; */ b -- ;\n c", "d"});
    CHECK(sql::split_statements("a; 'never closed; b") == list{"a", "'never closed; b"});
}
