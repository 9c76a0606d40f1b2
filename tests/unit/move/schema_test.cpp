// Types, definitions and refusals of a schema, both ways; the next step for a name.
#include <catch2/catch.hpp>

#include "router/move/engine_names.hpp"
#include "router/move/read_postgres.hpp"
#include "router/move/schema.hpp"

using namespace hotlane;
using namespace hotlane::move;

namespace {

engine_catalog catalog_of(const std::string& name, std::vector<catalog_column> columns) {
    return {{name, std::move(columns)}};
}

bool has(const schema_view& view, const std::string& code) {
    for (const auto& r : view.refusals)
        if (r.code == code) return true;
    return false;
}

sql::table_definition definition(const std::string& name,
                                 std::vector<sql::column_definition> columns) {
    sql::table_definition out;
    out.name = name;
    out.columns = std::move(columns);
    return out;
}

}  // namespace

TEST_CASE("what the catalog hides is never assumed absent") {
    const auto catalog = catalog_of("t", {{"id", "integer", false, true, true, {}}});
    CHECK(has(read_engine_schema(catalog, {}, {}, false), "no_schema"));
    CHECK(read_engine_schema(catalog, {}, {}, true).refusals.empty());
    sql::schema_definition ddl;
    ddl.tables.push_back(definition("t", {{"id", "INTEGER"}, {"gone", "TEXT"}}));
    CHECK(has(read_engine_schema(catalog, {}, ddl, false), "schema_mismatch"));
    ddl.tables[0].columns.pop_back();
    ddl.tables[0].columns[0].autoincrement = true;
    ddl.tables[0].checks = {"id > 0"};
    const auto view = read_engine_schema(catalog, {}, ddl, false);
    REQUIRE(view.refusals.empty());
    REQUIRE(view.tables.size() == 1);
    CHECK(view.tables[0].identity() != nullptr);
    CHECK(view.tables[0].identity()->autoincrement);
    CHECK(view.tables[0].checks == std::vector<std::string>{"id > 0"});
    ddl.tables[0].not_understood = {"WITHOUT ROWID"};
    CHECK(has(read_engine_schema(catalog, {}, ddl, false), "unsupported_object"));
}

TEST_CASE("a text that may have changed nothing proves nothing about an older table") {
    const auto catalog = catalog_of("T", {{"id", "integer", false, true, true, {}}});
    const auto maybe = sql::read_ddl({"CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY)"});
    const older_tables none = std::set<std::string>{};
    const older_tables there = std::set<std::string>{"t"};
    CHECK(read_engine_schema(catalog, {}, maybe, false, none).refusals.empty());
    CHECK(has(read_engine_schema(catalog, {}, maybe, false, there), "no_schema"));
    CHECK(has(read_engine_schema(catalog, {}, maybe, false, std::nullopt), "no_schema"));
    CHECK(read_engine_schema(catalog, {}, maybe, true, there).refusals.empty());
    // It was dropped before, or made without a condition: then the text made it.
    const auto surely = sql::read_ddl(
        {"DROP TABLE IF EXISTS t", "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY)"});
    CHECK(read_engine_schema(catalog, {}, surely, false, there).refusals.empty());
    const auto made = sql::read_ddl({"CREATE TABLE t (id INTEGER PRIMARY KEY)"});
    CHECK(read_engine_schema(catalog, {}, made, false, there).refusals.empty());
}

TEST_CASE("what each home understands in its own way is refused") {
    const auto catalog = catalog_of("t", {{"n", "text", false, false, false, {}}});
    const auto refused = [&](const std::string& create) {
        return has(read_engine_schema(catalog, {}, sql::read_ddl({create}), true),
                   "unsupported_object");
    };
    CHECK(refused("CREATE TABLE t (n TEXT COLLATE NOCASE)"));
    CHECK(refused("CREATE TABLE t (n TEXT COLLATE \"rtrim\")"));
    CHECK_FALSE(refused("CREATE TABLE t (n TEXT COLLATE BINARY)"));
    CHECK(refused("CREATE TABLE t (n TEXT CHECK (n Like 'a%'))"));
    CHECK(refused("CREATE TABLE t (n TEXT, CHECK (NOT n LIKE 'a%'))"));
    CHECK_FALSE(refused("CREATE TABLE t (n TEXT CHECK (n <> 'like'))"));
}

TEST_CASE("own tables, long names and foreign types") {
    auto catalog = catalog_of("hotlane_home", {{"tool", "text", false, true, true, {}}});
    CHECK(read_engine_schema(catalog, {}, {}, true).tables.empty());
    catalog = catalog_of(std::string(64, 'x'), {{"xmin", "vector(3)", false, false, false, {}}});
    const auto view = read_engine_schema(catalog, {}, {}, true);
    CHECK(has(view, "name_too_long"));
    CHECK(has(view, "name_reserved"));
    CHECK(has(view, "unsupported_type"));
    sql::schema_definition ddl;
    ddl.not_followed = {"CREATE VIEW v AS SELECT 1"};
    CHECK(has(read_engine_schema({}, {}, ddl, false), "unsupported_object"));
    ddl.not_followed = {"CREATE INDEX i ON t (a)"};
    CHECK(read_engine_schema({}, {}, ddl, false).refusals.empty());
}

TEST_CASE("a table in both dialects") {
    table t;
    t.name = "Order \"x\"";
    t.columns = {
        {"id", value_type::integer, "", false, false, true, {}, {}, {}},
        {"v", value_type::text, "VARCHAR(9)", true, true, false, "'a'", {"length(v) > 0"}, {}},
        {"r", value_type::real, "", false, false, false, {}, {}, {}},
        {"b", value_type::blob, "", false, false, false, {}, {}, {}}};
    t.key = {"id"};
    t.uniques = {{"v", "r"}};
    t.checks = {"r < 5"};
    CHECK(
        postgres_create_table(t, "s") ==
        "CREATE TABLE \"s\".\"Order \"\"x\"\"\" (\"id\" bigint GENERATED BY DEFAULT AS IDENTITY, "
        "\"v\" text COLLATE \"C\" NOT NULL UNIQUE DEFAULT 'a' CHECK (length(v) > 0), \"r\" double "
        "precision, \"b\" bytea, PRIMARY KEY (\"id\"), UNIQUE (\"v\", \"r\"), CHECK (r < 5))");
    CHECK(
        engine_create_table(t, "n") ==
        "CREATE TABLE \"n\" (\"id\" INTEGER PRIMARY KEY AUTOINCREMENT, \"v\" VARCHAR(9) NOT NULL "
        "UNIQUE DEFAULT 'a' CHECK (length(v) > 0), \"r\" REAL, \"b\" BLOB, UNIQUE (\"v\", \"r\"), "
        "CHECK (r < 5))");
    CHECK(postgres_set_identity(t, "s").find("pg_get_serial_sequence") != std::string::npos);
    t.key = {"id", "v"};
    CHECK(t.identity() == nullptr);
    CHECK(postgres_set_identity(t, "s").empty());
    CHECK(engine_create_table(t, "n").find("PRIMARY KEY (\"id\", \"v\")") != std::string::npos);
}

TEST_CASE("types and defaults between the dialects") {
    CHECK(affinity("INTEGER") == value_type::integer);
    CHECK(affinity("BIGSERIAL") == value_type::integer);
    CHECK(affinity("TIMESTAMP") == value_type::text);
    CHECK(affinity("NUMERIC(9,2)") == value_type::real);
    CHECK_FALSE(affinity("vector(3)").has_value());
    CHECK(engine_type_of("character varying(40)")->length == 40);
    CHECK(engine_type_of("smallint")->type == value_type::integer);
    for (const char* type :
         {"uuid", "numeric(9,2)", "boolean", "timestamp with time zone", "text[]", "character(3)"})
        CHECK_FALSE(engine_type_of(type).has_value());
    CHECK(engine_default(postgres_default("CURRENT_TIMESTAMP", value_type::text)) ==
          "CURRENT_TIMESTAMP");
    CHECK(postgres_default("true", value_type::integer) == "1");
    CHECK(engine_default("'a'::text") == "'a'");
    CHECK(engine_default("-5") == "-5");
    CHECK(engine_default("(1 + 2)") == "((1 + 2))");
}

TEST_CASE("the next step for a name, row by row") {
    using S = stands;
    struct line {
        name_view v;
        name_step undo, open;
    };
    const line lines[] = {
        // t, kept, spare, strays taken
        {{S::data, S::nothing, S::nothing, true}, name_step::seal_away, name_step::done},
        {{S::data, S::ours, S::ours, true}, name_step::done, name_step::done},
        {{S::nothing, S::data, S::nothing, true}, name_step::seal_spare, name_step::seal_spare},
        {{S::nothing, S::data, S::ours, false}, name_step::seal_stray, name_step::seal_stray},
        {{S::nothing, S::data, S::ours, true}, name_step::bring_data, name_step::bring_data},
        {{S::ours, S::data, S::nothing, true}, name_step::clear_ours, name_step::clear_ours},
        {{S::ours, S::data, S::ours, true}, name_step::clear_stray, name_step::clear_stray},
        {{S::data, S::data, S::ours, true}, name_step::clear_stray, name_step::clear_stray},
        {{S::ours, S::ours, S::nothing, true}, name_step::lost, name_step::lost},
        {{S::ours, S::data, S::nothing, false}, name_step::seal_stray, name_step::seal_stray},
        {{S::data, S::data, S::nothing, true}, name_step::seal_spare, name_step::seal_spare},
        {{S::data, S::data, S::ours, false}, name_step::seal_stray, name_step::seal_stray},
        {{S::nothing, S::nothing, S::nothing, true}, name_step::seal_away, name_step::lost},
    };
    for (const auto& l : lines) {
        CAPTURE(int(l.v.real), int(l.v.kept), int(l.v.spare));
        CHECK(next_undo_step(l.v) == l.undo);
        CHECK(next_open_step(l.v) == l.open);
    }
}
