// Texts for a rehearsal: shown without values, written for other tables.
#include "router/sql/rehearse.hpp"

#include <catch2/catch.hpp>

using namespace hotlane::sql;

TEST_CASE("what is shown of a statement holds no value") {
    CHECK(shown("SELECT a FROM T WHERE b = 'secret' AND c IN (1, 22) -- 4711") ==
          "select a from t where b = ? and c in ( ? )");
    CHECK(shown("INSERT OR REPLACE INTO t VALUES (1, 'pw')") ==
          "insert or replace into t values ( ? )");
    CHECK(shown(std::string(2'000, 'x')).size() < 320);
}

TEST_CASE("a home's words about a statement hold none of its values") {
    const std::string sql = "SELECT 'it''s secret'::int, 'ab', 4711";
    CHECK(without_values("invalid input syntax for type integer: \"it's secret\"", sql) ==
          "invalid input syntax for type integer: \"?\"");
    CHECK(without_values("near \"ab\"", sql) == "near \"?\"");
    CHECK(without_values("column \"about\" does not exist", sql) ==
          "column \"about\" does not exist");
    CHECK(without_values("out of range: 4711", sql) == "out of range: ?");
}

TEST_CASE("the relations of a statement") {
    using names = std::vector<std::string>;
    CHECK(*relations_of("SELECT * FROM t JOIN s.u ON true WHERE x IN (SELECT y FROM v)") ==
          names{"t", "s.u", "v"});
    CHECK(*relations_of("WITH t AS (SELECT * FROM a) INSERT INTO b SELECT * FROM t") ==
          names{"b", "a"});
    CHECK(relations_of("SELECT now()")->empty());
    CHECK_FALSE(relations_of("INSERT OR REPLACE INTO t VALUES (1)"));
}

TEST_CASE("a statement is written for other tables") {
    const std::map<std::string, std::string> names{{"t", "m_t0"}, {"Order Lines", "m_t1"}};
    struct row {
        const char *sql, *want;
    };
    const auto one = GENERATE(
        row{"SELECT t.a, b FROM t WHERE t.c = 't'",
            "SELECT \"m_t0\".a, b FROM \"m_t0\" WHERE \"m_t0\".c = 't'"},
        row{"SELECT x.a, t FROM t AS x", "SELECT x.a, t FROM \"m_t0\" AS x"},
        row{"SELECT t.* FROM T", "SELECT \"m_t0\".* FROM \"m_t0\""},
        row{"UPDATE t SET t = t + 1 WHERE id = $1", "UPDATE \"m_t0\" SET t = t + 1 WHERE id = $1"},
        row{"INSERT INTO t (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n",
            "INSERT INTO \"m_t0\" (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET n = \"m_t0\".n + "
            "excluded.n"},
        row{"DELETE FROM \"Order Lines\" WHERE id IN (SELECT id FROM t)",
            "DELETE FROM \"m_t1\" WHERE id IN (SELECT id FROM \"m_t0\")"},
        row{"SELECT * FROM public.t", "SELECT * FROM public.\"m_t0\""},
        row{"WITH t AS (SELECT 1) SELECT * FROM t", "WITH t AS (SELECT 1) SELECT * FROM t"},
        row{"SELECT 1", "SELECT 1"});
    CAPTURE(one.sql);
    CHECK(with_tables(one.sql, names) == std::optional<std::string>(one.want));
}
