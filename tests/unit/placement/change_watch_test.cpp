// What a move knows of the writes that pass while it copies ahead.
#include <catch2/catch.hpp>

#include "router/placement/change_watch.hpp"

using hotlane::placement::change_watch;

namespace {

using names = std::vector<std::string>;
using flags = std::vector<bool>;

void tell(change_watch& w, std::uint64_t watch, const names& tables, std::uint64_t commits = 1) {
    w.take({.watch = watch, .commits = commits, .tables = tables});
}

}  // namespace

TEST_CASE("a watch sums what was told of it, and knows its tables in any case") {
    change_watch w;
    CHECK(w.number() == 0);
    const auto one = w.begin({"Counter", "big", "log"});
    CHECK(w.number() == one);
    tell(w, one, {"counter"});
    tell(w, one, {"LOG", "counter"}, 2);
    CHECK(w.now().commits == 3);
    CHECK(w.now().changed == flags{true, false, true});
    CHECK_FALSE(w.now().doubt);
    w.forget(0);
    CHECK(w.now().changed == flags{false, false, true});
    CHECK(w.now().commits == 3);
}

TEST_CASE("a table that nobody knows, and everything, count as all") {
    change_watch w;
    const auto one = w.begin({"a", "b"});
    SECTION("another name") {
        tell(w, one, {"c"});
    }
    SECTION("a name with a schema") {
        tell(w, one, {"s.a"});
    }
    SECTION("everything") {
        w.take({.watch = one, .everything = true});
    }
    CHECK(w.now().changed == flags{true, true});
}

TEST_CASE("what belongs to another watch is not heard") {
    change_watch w;
    const auto one = w.begin({"a"});
    const auto two = w.begin({"a"});
    CHECK(one != two);
    tell(w, one, {"a"});
    tell(w, 0, {"a"});
    CHECK(w.now().commits == 0);
    CHECK(w.now().changed == flags{false});
    w.end();
    CHECK(w.number() == 0);
    tell(w, two, {"a"});
    CHECK(w.now().commits == 0);
    CHECK(w.now().changed.empty());
}

TEST_CASE("doubt and DDL stay") {
    change_watch w;
    const auto one = w.begin({"a"});
    w.take({.watch = one, .doubt = true});
    w.take({.watch = one, .ddl = true});
    tell(w, one, {"a"});
    CHECK(w.now().doubt);
    CHECK(w.now().ddl);
}
