// Query strings of several statements, byte ranges, fingerprints, the cache.
#include <catch2/catch.hpp>

#include "router/sql/facts.hpp"

namespace sql = hotlane::sql;
using sql::kind;

namespace {

std::vector<std::string> pieces(const std::string& text) {
    std::vector<std::string> out;
    for (const sql::statement& s : sql::analyze(text).statements)
        out.push_back(text.substr(s.begin, s.end - s.begin));
    return out;
}
using list = std::vector<std::string>;

}  // namespace

TEST_CASE("statements of a string are found with their ranges") {
    CHECK(pieces("").empty());
    CHECK(pieces("  -- nothing\n /* here */ ; ;").empty());
    CHECK(pieces("SELECT 1") == list{"SELECT 1"});
    CHECK(pieces(" SELECT 1 ; ") == list{"SELECT 1"});
    CHECK(pieces(";;SELECT 1;;SELECT 2;;") == list{"SELECT 1", "SELECT 2"});
    CHECK(pieces("BEGIN; UPDATE t SET a=1 WHERE b=2 /* x */; COMMIT -- y") ==
          list{"BEGIN", "UPDATE t SET a=1 WHERE b=2", "COMMIT"});
    CHECK(pieces("SELECT ';' ; SELECT $$;$$; SELECT $a$ ; $$ $a$; SELECT E'\\';'") ==
          list{"SELECT ';'", "SELECT $$;$$", "SELECT $a$ ; $$ $a$", "SELECT E'\\';'"});
    CHECK(pieces("SELECT \"a;b\"; SELECT 2") == list{"SELECT \"a;b\"", "SELECT 2"});
    CHECK(pieces("/* a /* ; */ ; */ SELECT 1") == list{"SELECT 1"});
    // Refused as a whole: each piece is read by itself.
    CHECK(pieces("SELECT 1; PRAGMA x; SELECT `a;b`; SELECT 2") ==
          list{"SELECT 1", "PRAGMA x", "SELECT `a;b`", "SELECT 2"});
}

TEST_CASE("a refused statement does not hide the others") {
    const auto facts = sql::analyze("BEGIN; CREATE TABLE t (id INTEGER AUTOINCREMENT); COMMIT");
    REQUIRE(facts.statements.size() == 3);
    CHECK_FALSE(facts.parsed);
    CHECK(facts.statements[0].what == kind::begin);
    CHECK(facts.statements[1].what == kind::ddl);
    CHECK(facts.statements[1].table == "t");
    CHECK(facts.statements[2].what == kind::commit);
}

TEST_CASE("parameters of a string keep their own text") {
    const auto facts = sql::analyze("SET a = 1; PRAGMA x; SET b = 2");
    REQUIRE(facts.statements.size() == 3);
    CHECK(facts.statements[0].parameter->sql == "SET a = 1");
    CHECK(facts.statements[2].parameter->sql == "SET b = 2");
}

TEST_CASE("texts beyond the parser's bounds are read by their words") {
    const std::string deep = "SELECT 1" + [] {
        std::string s;
        for (int i = 0; i < 5'000; ++i)
            s += " + 1";
        return s;
    }();
    auto facts = sql::analyze(deep);
    CHECK_FALSE(facts.parsed);
    REQUIRE(facts.statements.size() == 1);
    CHECK(facts.statements[0].what == kind::select);
    CHECK_FALSE(facts.statements[0].may_write);

    std::string wide = "INSERT INTO t VALUES (1, 'x')";
    for (int i = 0; i < 20'000; ++i)
        wide += ", (1, 'x')";
    facts = sql::analyze(wide);
    CHECK(facts.parsed);
    CHECK(facts.statements[0].single_row_write);

    const std::string with_nul("SELECT 1\0DROP TABLE t", 21);
    facts = sql::analyze(with_nul);
    CHECK_FALSE(facts.parsed);
    CHECK(facts.statements.at(0).may_write);
}

TEST_CASE("fingerprints ignore literals, not structure") {
    const auto of = [](const char* text) { return sql::analyze(text).fingerprint; };
    CHECK(of("") == 0);
    CHECK(of("SELECT 1") == of("select  'x' -- y"));
    CHECK(of("SELECT * FROM t WHERE id = $1") == of("SELECT * FROM T WHERE id = 5;"));
    CHECK(of("SELECT * FROM t WHERE id IN (1, 2, 3)") == of("SELECT * FROM t WHERE id IN ($1)"));
    CHECK(of("INSERT INTO t VALUES (1, 'a'), (2, 'b')") == of("INSERT INTO t VALUES ($1, $2)"));
    CHECK(of("SELECT a FROM t") != of("SELECT b FROM t"));
    CHECK(of("SELECT a FROM t") != of("SELECT \"A\" FROM t"));
    CHECK(of("SELECT a - 1") != of("SELECT a + 1"));
    CHECK(of("PRAGMA x") != 0);
}

TEST_CASE("the cache answers what analyze answers") {
    sql::facts_cache cache;
    const auto same = [&](const std::string& text) {
        CAPTURE(text);
        const sql::facts fresh = sql::analyze(text);
        const auto known = cache.get(text);
        REQUIRE(known->statements.size() == fresh.statements.size());
        CHECK(known->fingerprint == fresh.fingerprint);
        CHECK(known->parsed == fresh.parsed);
        for (std::size_t i = 0; i < fresh.statements.size(); ++i) {
            const sql::statement& a = fresh.statements[i];
            const sql::statement& b = known->statements[i];
            CHECK(a.what == b.what);
            CHECK(a.begin == b.begin);
            CHECK(a.end == b.end);
            CHECK(a.table == b.table);
            CHECK(a.parameter.has_value() == b.parameter.has_value());
            if (a.parameter) CHECK(a.parameter->value == b.parameter->value);
        }
    };
    same("UPDATE t SET n = 1 WHERE id = 1");
    same("UPDATE t SET n = 22 WHERE id = 333");
    same(" ; /* c */ UPDATE t SET n = 22 WHERE id = 4 ;;");
    CHECK(cache.counters().misses == 1);
    CHECK(cache.counters().shape_hits == 2);
    same("UPDATE t SET n = 1 WHERE id = 1");
    CHECK(cache.counters().hits == 1);
    // What depends on a literal is not shared between texts of one shape.
    same("SET a = 'x'");
    same("SET a = 'y'");
    same("SELECT set_config('a', 'x', false)");
    same("SELECT set_config('a', 'y', true)");
    same("SELECT 1; SELECT 2");
    same("SELECT 1;    SELECT 2");
    CHECK(cache.counters().misses == 7);
}

TEST_CASE("the cache is bounded by entries, by text and in total") {
    sql::facts_cache cache(sql::cache_limits{8, 100, 300});
    for (int i = 0; i < 100; ++i)
        cache.get("SELECT a" + std::to_string(i) + " FROM t" + std::string(40, ' '));
    CHECK(cache.counters().entries <= 16);
    CHECK(cache.counters().bytes <= 600);
    const auto before = cache.counters();
    cache.get("SELECT " + std::string(200, ' ') + "1");
    CHECK(cache.counters().too_long == 1);
    CHECK(cache.counters().entries <= before.entries + 1);  // its shape is short

    sql::facts_cache recent(sql::cache_limits{2, 100, 1'000});
    recent.get("SELECT a");
    recent.get("SELECT b");
    recent.get("SELECT a");
    recent.get("SELECT c");  // b goes, a stays
    CHECK(recent.counters().hits == 1);
    recent.get("SELECT a");
    CHECK(recent.counters().hits == 2);
}
