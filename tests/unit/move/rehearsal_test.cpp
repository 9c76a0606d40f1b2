// What a rehearsal means: pieces, judgements, differences, words without values.
#include "router/move/rehearsal.hpp"

#include <catch2/catch.hpp>

using namespace hotlane;
using namespace hotlane::move;

namespace {

plan shop() {
    plan p;
    p.schema = "app";
    p.tables.resize(1);
    p.tables[0].name = "t";
    return p;
}
pieces of(const std::string& sql) {
    return take_apart({{1, sql, {}, {}}}, shop());
}

}  // namespace

TEST_CASE("texts are taken apart; control and DDL are counted, not rehearsed") {
    const auto found = of("BEGIN; UPDATE t SET n = 1 WHERE id = 'x'; SET a = 1; COMMIT");
    REQUIRE(found.all.size() == 1);
    CHECK(found.all[0].sql == "UPDATE t SET n = 1 WHERE id = 'x'");
    CHECK(found.all[0].shown == "update t set n = ? where id = ?");
    CHECK(found.control == 3);
    const auto ddl =
        of("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT DEFAULT 'x')");
    CHECK(ddl.all.empty());
    CHECK(ddl.definitions == 1);
    REQUIRE(ddl.unreadable_definitions.size() == 1);
    CHECK(ddl.unreadable_definitions[0].find("'x'") == std::string::npos);
    CHECK(of("CREATE TABLE t (id integer)").unreadable_definitions.empty());
}

TEST_CASE("whom a statement concerns") {
    CHECK(of("SELECT * FROM t").all[0].concerns);
    CHECK(of("SELECT * FROM app.t").all[0].concerns);
    CHECK_FALSE(of("SELECT now()").all[0].concerns);  // of the home, not of the tool
    CHECK(of("REPLACE INTO t VALUES (1)").all[0].concerns);
    CHECK_FALSE(of("SELECT * FROM pg_catalog.pg_class").all[0].concerns);
    CHECK_FALSE(of("SELECT * FROM twill_stats").all[0].concerns);
}

TEST_CASE("the judgement, row by row") {
    struct row {
        bool concerns, old_takes, new_takes;
        heard want;
    };
    for (const auto& r : {row{true, true, true, heard::taken},
                          row{true, false, true, heard::taken},
                          row{false, true, true, heard::taken},
                          row{true, true, false, heard::refused},
                          row{true, false, false, heard::both},
                          row{false, true, false, heard::elsewhere},
                          row{false, false, false, heard::both}}) {
        piece one;
        one.concerns = r.concerns;
        CHECK(judge(one, r.old_takes, r.new_takes) == r.want);
    }
}

TEST_CASE("type differences are named") {
    piece one;
    one.shown = "select sum ( n ) from t where id = ?";
    const description was{{20}, {{"sum", 20}, {"same", 25}}};
    const description will_be{{23}, {{"sum", 1700}, {"same", 25}}};
    const auto found = compare(one, was, will_be);
    REQUIRE(found.size() == 2);
    CHECK(found[0].what == "parameter $1");
    CHECK(found[0].was == "bigint");
    CHECK(found[0].will_be == "integer");
    CHECK(found[1].what == "column sum");
    CHECK(found[1].will_be == "numeric");
    CHECK(compare(one, was, was).empty());
    CHECK(compare(one, was, {{20}, {}})[0].what == "columns");
    CHECK(type_name(99'999) == "type 99999");
}

TEST_CASE("a refusal names statement, SQLSTATE and mend, and no value") {
    piece one;
    one.sql = "SELECT 'geheim'::integer FROM t";
    one.shown = "select ? :: integer from t";
    const auto r =
        refusal_of(one,
                   policy::home_kind::postgres,
                   {"22P02", "invalid input syntax for type integer: \"geheim\"", fate::refused});
    CHECK(r.code == "statement_refused");
    CHECK(r.message.find("22P02") != std::string::npos);
    CHECK(r.message.find(one.shown) != std::string::npos);
    CHECK(r.message.find("geheim") == std::string::npos);
    CHECK(r.mend.find("rehearse: report") != std::string::npos);
}

TEST_CASE("lists are bounded and what is beyond is counted") {
    rehearsal r;
    piece one;
    for (int i = 0; i < 70; ++i) {
        note(r, one, heard::both);
        note(r, {type_difference{"s", "w", "a", "b"}});
    }
    CHECK(r.refused_by_both.size() == 50);
    CHECK(r.differences.size() == 50);
    CHECK(r.more == 40);
    const auto j = to_json(r, {});
    CHECK(j["more"] == 40);
    CHECK_FALSE(j.contains("elsewhere"));
}
