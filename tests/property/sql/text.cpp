// Any bytes and any soup of tokens: no crash, ranges in order, quotes that come back.
#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>

#include "router/sql/facts.hpp"
#include "router/sql/lexer.hpp"
#include "router/sql/shape.hpp"

namespace sql = hotlane::sql;

namespace {

const std::vector<std::string> words = {
    "SELECT",    "insert",     "INTO",       "UPDATE",     "SET",      "DELETE",  "FROM", "WHERE",
    "VALUES",    "BEGIN",      "COMMIT",     "ROLLBACK",   "TO",       "WITH",    "AS",   "CREATE",
    "TABLE",     "TEMP",       "IF",         "NOT",        "EXISTS",   "PRIMARY", "KEY",  "UNIQUE",
    "DEFAULT",   "CHECK",      "REFERENCES", "CONSTRAINT", "FOREIGN",  "ALTER",   "ADD",  "DROP",
    "COLUMN",    "RENAME",     "INDEX",      "ON",         "CONFLICT", "DO",      "NULL", "COLLATE",
    "GENERATED", "ALWAYS",     "IDENTITY",   "CASE",       "WHEN",     "END",     "JOIN", "UNION",
    "AND",       "set_config", "int",        "text",       "a",        "b",       "t",    "\"A b\"",
    "`q`",       "[w]",        "'x'",        "E'\\''",     "$1",       "$$;$$",   "1",    "2.5",
    "(",         ")",          "(",          ")",          ",",        ";",       ";",    ".",
    "=",         "+",          "-",          "*",          "::",       "--",      "/*",   "*/",
    "\n",        "'",          "\"",         "$x$",        "\xc3\xa9", "\xff"};

rc::Gen<std::string> soup() {
    return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(words)),
                        [](const std::vector<std::string>& chosen) {
                            std::string out;
                            for (const std::string& word : chosen)
                                out += word + " ";
                            return out;
                        });
}
rc::Gen<std::string> bytes() {
    return rc::gen::container<std::string>(rc::gen::arbitrary<char>());
}
rc::Gen<std::string> no_nul() {
    return rc::gen::container<std::string>(rc::gen::distinctFrom('\0'));
}

void check_ranges(const std::string& text) {
    const sql::facts facts = sql::analyze(text);
    std::uint32_t at = 0;
    for (const sql::statement& s : facts.statements) {
        RC_ASSERT(s.begin >= at);
        RC_ASSERT(s.end > s.begin);
        RC_ASSERT(s.end <= text.size());
        at = s.end;
    }
    const auto tokens = sql::tokenize(text);
    RC_ASSERT((facts.fingerprint == 0) == tokens.empty());
}

void check_tokens(const std::string& text) {
    for (const sql::dialect d :
         {sql::dialect::postgres, sql::dialect::engine, sql::dialect::backtick}) {
        std::uint32_t at = 0;
        for (const sql::token& t : sql::tokenize(text, d)) {
            RC_ASSERT(t.begin >= at);
            RC_ASSERT(t.end > t.begin);
            RC_ASSERT(t.end <= text.size());
            at = t.end;
        }
    }
}

// Of a text and another, often the same but for some literals: whoever is said to differ in these
// only has the tokens that were given, and the same shape.
void check_alike(const std::string& known, const std::string& other) {
    std::vector<sql::token> given;
    const auto tokens = sql::tokenize(known);
    if (!sql::differs_in_literals_only(known, tokens, other, given)) return;
    const auto right = sql::tokenize(other);
    RC_ASSERT(given.size() == right.size());
    for (std::size_t i = 0; i < right.size(); ++i) {
        RC_ASSERT(given[i].what == right[i].what);
        RC_ASSERT(given[i].begin == right[i].begin);
        RC_ASSERT(given[i].end == right[i].end);
    }
    RC_ASSERT(sql::shape_of(known, tokens) == sql::shape_of(other, right));
}

}  // namespace

TEST_CASE("random texts never crash and have ordered, disjoint ranges") {
    rc::prop("bytes", [] {
        const auto text = *bytes();
        check_ranges(text);
        check_tokens(text);
    });
    rc::prop("token soup", [] {
        const auto text = *soup();
        check_ranges(text);
        check_tokens(text);
    });
    rc::prop("soup that begins like a statement", [] {
        const auto text = *rc::gen::elementOf(words) + " " + *soup();
        check_ranges(text);
    });
}

TEST_CASE("reading random DDL never crashes, and nothing vanishes") {
    rc::prop("statement soup", [] {
        const auto tail = *soup();
        const auto head =
            *rc::gen::elementOf(std::vector<std::string>{"CREATE TABLE t (",
                                                         "ALTER TABLE t ",
                                                         "CREATE UNIQUE INDEX i ON t ",
                                                         "DROP TABLE ",
                                                         "CREATE TABLE IF NOT EXISTS u (a int, ",
                                                         ""});
        const auto schema = sql::read_ddl({"CREATE TABLE t (a int, b text)", head + tail});
        for (const auto& table : schema.tables)
            RC_ASSERT(!table.name.empty());
    });
    rc::prop("bytes", [] { sql::read_ddl({*bytes(), *bytes()}); });
}

TEST_CASE("quotes come back") {
    rc::prop("identifiers", [] {
        const auto name = *no_nul();
        RC_PRE(!name.empty());
        const std::string quoted = sql::quote_identifier(name);
        const auto tokens = sql::tokenize(quoted);
        RC_ASSERT(tokens.size() == 1U);
        RC_ASSERT(tokens[0].what == sql::lexeme::quoted);
        RC_ASSERT(tokens[0].end == quoted.size());
        RC_ASSERT(sql::identifier(quoted, tokens[0]) == name);
    });
    rc::prop("literals stay inside their quotes", [] {
        const auto value = *no_nul();
        const std::string text = "SELECT " + sql::quote_literal(value) + ", 1; SELECT 2";
        const auto tokens = sql::tokenize(text);
        RC_ASSERT(tokens.size() == 7U);
        RC_ASSERT(tokens[1].what == sql::lexeme::string);
        const std::string inner(sql::text_of(text, tokens[1]));
        std::string back;
        for (std::size_t i = 1; i + 1 < inner.size(); ++i) {
            back += inner[i];
            if (inner[i] == '\'') ++i;
        }
        RC_ASSERT(back == value);
    });
    rc::prop("PostgreSQL's parser reads the literal as it was", [] {
        const auto value =
            *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab'\\\"$; -/*\n")));
        const auto facts = sql::analyze("SET x.y = " + sql::quote_literal(value));
        RC_ASSERT(facts.parsed);
        RC_ASSERT(facts.statements.size() == 1U);
        RC_ASSERT(facts.statements[0].parameter->value == value);
    });
}

TEST_CASE("a known shape gives the facts of a fresh analysis") {
    rc::prop("literals do not matter", [] {
        sql::facts_cache cache;
        const std::string head =
            *rc::gen::elementOf(std::vector<std::string>{"UPDATE t SET n = n + ",
                                                         "INSERT INTO t VALUES (1, ",
                                                         "SELECT a FROM t WHERE b = ",
                                                         "DELETE FROM t WHERE a = ",
                                                         "SELECT f(1) + "});
        const std::string tail = head.find('(') == 12 + 9 ? ")" : "";
        for (int i = 0; i < 3; ++i) {
            const std::string text = *rc::gen::elementOf(std::vector<std::string>{"", " ", ";"}) +
                                     head + sql::quote_literal(*no_nul()) + tail;
            const auto fresh = sql::analyze(text);
            const auto known = cache.get(text);
            RC_ASSERT(known->parsed == fresh.parsed);
            RC_ASSERT(known->fingerprint == fresh.fingerprint);
            RC_ASSERT(known->statements.size() == fresh.statements.size());
            for (std::size_t k = 0; k < fresh.statements.size(); ++k) {
                const auto& a = fresh.statements[k];
                const auto& b = known->statements[k];
                RC_ASSERT(a.what == b.what);
                RC_ASSERT(a.begin == b.begin);
                RC_ASSERT(a.end == b.end);
                RC_ASSERT(a.may_write == b.may_write);
                RC_ASSERT(a.single_row_write == b.single_row_write);
                RC_ASSERT(a.table == b.table);
            }
        }
    });
}

TEST_CASE("a text that differs in literals only has the tokens that it is said to have") {
    const std::vector<std::string> pieces = {
        "a", "e", "x",  "E", "1",   "23", "4.5", "6.", ".7", "8e9", "'q'", "'it''s'",
        "'", "-", "--", ".", "..",  "$1", "$",   "?",  " ",  ";",   "U&",  "\"w\"",
        "(", ")", ",",  "+", "0x1", "*",  "/*",  "*/", "\n", "_",   "N",   "::"};
    rc::prop("of any two texts", [&] {
        const auto first =
            *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces));
        std::string known, other;
        for (const auto& piece : first) {
            known += piece;
            const bool is_value = piece.find_first_of("0123456789'") != std::string::npos;
            other += is_value && *rc::gen::arbitrary<bool>() ? *rc::gen::elementOf(pieces) : piece;
        }
        check_alike(known, other);
        check_alike(other, known);
        check_alike(known, known);
    });
    std::vector<sql::token> tokens;
    const std::string known = "UPDATE t SET n = n + 1 WHERE id = 12 AND s = 'a'";
    const auto alike = [&](const char* other) {
        return sql::differs_in_literals_only(known, sql::tokenize(known), other, tokens);
    };
    CHECK(alike("UPDATE t SET n = n + 5 WHERE id = 4711 AND s = 'b''c'"));
    CHECK(tokens.size() == sql::tokenize(known).size());
    CHECK_FALSE(alike("UPDATE t SET n = n + 5 WHERE id = 4711 AND z = 'b'"));
    CHECK_FALSE(alike("UPDATE t SET n = n + 5 WHERE id = 'x' AND s = 'b'"));
    CHECK_FALSE(alike("UPDATE t SET n = n + 5 WHERE id = 4711 AND s = 'b' OR true"));
    CHECK_FALSE(alike("UPDATE t SET n = n + 5 WHERE id = 4711 AND s = 'b"));
    CHECK_FALSE(alike("UPDATE t SET n = n + 5"));
}
