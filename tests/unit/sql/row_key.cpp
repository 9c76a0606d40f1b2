// Which row a one-row write changes, from its text alone.
#include "router/sql/row_key.hpp"

#include <catch2/catch.hpp>

#include "router/sql/facts.hpp"

using namespace hotlane::sql;
using keyed = statement::keyed;

namespace {

statement key_of(facts_cache& cache, std::string_view sql) {
    const auto found = cache.get(sql);
    REQUIRE(found->statements.size() == 1);
    return found->statements.front();
}

}  // namespace

TEST_CASE("one row has one key, whatever is written into it") {
    facts_cache cache;
    const auto key = [&](std::string_view sql) {
        const auto got = key_of(cache, sql);
        INFO(sql);
        CHECK(got.key_from == keyed::literals);
        CHECK(got.key != 0);
        return got.key;
    };
    const auto five = key("UPDATE t SET n = n + 1 WHERE id = 5");
    CHECK(key("UPDATE t SET n = n + 7 WHERE id = 5") == five);
    CHECK(key("UPDATE t SET n = 0 WHERE id = 5 RETURNING n") == five);
    CHECK(key("DELETE FROM t WHERE id = '5'") == five);
    CHECK(key("UPDATE t SET n = n + 1 WHERE id = 6") != five);
    CHECK(key("UPDATE u SET n = n + 1 WHERE id = 5") != five);
    // A version that is compared and set is no part of the row's name.
    CHECK(key("UPDATE t SET n = 1, version = 8 WHERE id = 5 AND version = 7") ==
          key("UPDATE t SET n = 1, version = 9 WHERE id = 5 AND version = 8"));
    // The second text of a shape is never parsed; its literals count all the same.
    CHECK(key("UPDATE t SET n = n + 1 WHERE a = 1 AND b = 2") !=
          key("UPDATE t SET n = n + 1 WHERE a = 1 AND b = 3"));
}

TEST_CASE("parameters are named, in order") {
    facts_cache cache;
    const auto got = key_of(cache, "UPDATE t SET n = $1 WHERE tenant = $3 AND id = $2");
    CHECK(got.key_from == keyed::parameters);
    CHECK(got.key_parameters == std::vector<std::uint16_t>{3, 2});
}

TEST_CASE("a new row is its own key, what is not certain is not known") {
    facts_cache cache;
    CHECK(key_of(cache, "INSERT INTO log (body) VALUES ('x')").key_from == keyed::new_row);
    for (const char* sql : {"UPDATE t SET n = n - 1 WHERE id = 5 AND n >= 1",
                            "UPDATE t SET n = n + 1 WHERE id = 5 OR id = 6",
                            "UPDATE t SET n = n + 1 WHERE id IN (5)",
                            "UPDATE t SET n = n + 1 WHERE id = 5 + 1",
                            "UPDATE t SET n = n + 1 WHERE id = (SELECT 5)",
                            "UPDATE t SET n = n + 1",
                            "UPDATE t SET id = 6 WHERE id = 5",
                            "INSERT INTO t (id, n) VALUES (1, 1) ON CONFLICT (id) DO NOTHING",
                            "INSERT INTO t SELECT * FROM u",
                            "SELECT 1 WHERE 1 = 1"}) {
        INFO(sql);
        CHECK(key_of(cache, sql).key_from == keyed::unknown);
    }
    // Several statements in one text are several rows.
    const auto both = cache.get("UPDATE t SET n = 1 WHERE id = 1; UPDATE t SET n = 1 WHERE id = 2");
    for (const auto& one : both->statements)
        CHECK(one.key_from == keyed::unknown);
}
