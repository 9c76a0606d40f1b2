#include <algorithm>
#include <catch2/catch.hpp>

#include "router/move/engine_rows.hpp"

using namespace hotlane::move;

namespace {

table make_table(std::vector<column> columns, std::vector<std::string> key) {
    table t;
    t.name = "t";
    t.columns = std::move(columns);
    t.key = std::move(key);
    return t;
}

column make_column(const std::string& name, value_type type) {
    column c;
    c.name = name;
    c.type = type;
    return c;
}

}  // namespace

TEST_CASE("keys become a condition with bound values, and an array at PostgreSQL") {
    const auto t = make_table({make_column("id", value_type::integer)}, {"id"});
    const std::vector<key_values> keys{{"1"}, {"-2"}, {"3"}};
    const auto where = engine_where(t, keys, 1, 3);
    REQUIRE(where);
    CHECK(where->sql == "\"id\" IN ($1, $2)");
    REQUIRE(where->params.size() == 2);
    CHECK(where->params[0].value == "-2");
    CHECK(where->params[0].type == param_type::int8);
    CHECK(postgres_where(t, keys, 0, 2) == " WHERE \"id\" = ANY ('{\"1\",\"-2\"}'::bigint[])");
    CHECK_FALSE(engine_where(t, {{"x"}}, 0, 1));
    CHECK_FALSE(engine_where(t, {{}}, 0, 1));
}

TEST_CASE("composite keys are terms of a tree that is not deep") {
    const auto t = make_table(
        {make_column("a", value_type::integer), make_column("b", value_type::text)}, {"b", "a"});
    std::vector<key_values> keys;
    for (int i = 0; i < 400; ++i)
        keys.push_back({"k" + std::to_string(i), std::to_string(i)});
    const auto three = engine_where(t, keys, 0, 3);
    REQUIRE(three);
    CHECK(three->sql ==
          "((\"b\" = $1 AND \"a\" = $2) OR ((\"b\" = $3 AND \"a\" = $4) OR (\"b\" = $5 AND \"a\" = "
          "$6)))");
    CHECK(three->params[4].value == "k2");
    const auto all = engine_where(t, keys, 0, keys.size());
    REQUIRE(all);
    int depth = 0, deepest = 0;
    for (const char c : all->sql) {
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        deepest = std::max(deepest, depth);
    }
    CHECK(depth == 0);
    CHECK(deepest <= 11);
    CHECK(all->params.size() == 800);
    // Numbers start anew in each statement.
    CHECK(engine_where(t, keys, 398, 400)->sql ==
          "((\"b\" = $1 AND \"a\" = $2) OR (\"b\" = $3 AND \"a\" = $4))");
}

TEST_CASE("whatever stands in a key stays a value") {
    const auto t = make_table(
        {make_column("k", value_type::text), make_column("h", value_type::blob)}, {"k", "h"});
    const std::vector<key_values> keys{{"it's \"a\\b\", {}", "\\x00ff"}, {"", "\\x"}};
    CHECK(postgres_where(t, keys, 0, 2) ==
          " WHERE (\"k\", \"h\") IN (SELECT * FROM unnest('{\"it''s \\\"a\\\\b\\\", {}\",\"\"}'"
          "::text[], "
          "'{\"\\\\x00ff\",\"\\\\x\"}'::bytea[]))");
    const auto where = engine_where(t, keys, 0, 1);
    REQUIRE(where);
    CHECK(where->params[0].value == "it's \"a\\b\", {}");
    CHECK(where->params[1].value == std::string("\0\xff", 2));
    CHECK(where->params[1].type == param_type::bytea);
}

TEST_CASE("rows that are large are taken out few at a time") {
    const auto one = make_table({make_column("id", value_type::integer)}, {"id"});
    CHECK(engine_keys_max(one, 0) == 5'000);
    CHECK(engine_keys_max(one, 64) == 5'000);
    CHECK(engine_keys_max(one, 1U << 20U) == 32);
    CHECK(engine_keys_max(one, std::uint64_t{1} << 40U) == 10);
}
