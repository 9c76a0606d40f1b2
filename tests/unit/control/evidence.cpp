#include "router/control/evidence.hpp"

#include <catch2/catch.hpp>

using namespace hotlane::control;
using hotlane::placement::observation;

namespace {

observation conflict(const std::string& table, const std::string& sql = "") {
    return {observation::kind::conflict, table, sql, {}};
}

}  // namespace

TEST_CASE("the hot table has more than half of the conflicts") {
    evidence e;
    CHECK_FALSE(e.hot_table().has_value());
    e.add(conflict("a"));
    CHECK(e.hot_table() == "a");
    e.add(conflict("b"));
    CHECK_FALSE(e.hot_table().has_value());
    e.add(conflict("b"));
    CHECK(e.hot_table() == "b");
    e.clear();
    CHECK_FALSE(e.hot_table().has_value());
}

TEST_CASE("writes that went well and DDL are no evidence of a conflict") {
    evidence e;
    e.add({observation::kind::write, "a", "x", {}});
    e.add({observation::kind::ddl, "a", "x", {}});
    CHECK(e.tables().empty());
    CHECK(e.samples().empty());
}

TEST_CASE("tables and samples are bounded, and the hot one stays") {
    evidence e({4, 2, 5, 100});
    for (int i = 0; i < 300; ++i) {
        e.add(conflict("hot", "statement" + std::to_string(i)));
        if (i % 3 == 0) e.add(conflict("t" + std::to_string(i)));
    }
    CHECK(e.tables().size() <= 4);
    CHECK(e.hot_table() == "hot");
    REQUIRE(e.samples().size() == 1);  // cut to 5 bytes they are all one
    CHECK(e.samples().front() == "state");
}

TEST_CASE("old heat fades") {
    evidence e({64, 8, 2048, 64});
    for (int i = 0; i < 60; ++i)
        e.add(conflict("old"));
    for (int i = 0; i < 200; ++i)
        e.add(conflict("new"));
    CHECK(e.hot_table() == "new");
}

TEST_CASE("samples of the hot table come first and once") {
    evidence e;
    e.add(conflict("a", "x"));
    e.add(conflict("b", "other"));
    e.add(conflict("a", "y"));
    e.add(conflict("a", "x"));
    CHECK(e.samples() == std::vector<std::string>{"x", "y"});
}
