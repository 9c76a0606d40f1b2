// What is told of a client's statements: each kind once, when it has succeeded, with the types that
// its Parse named.
#include <catch2/catch.hpp>

#include "tests/unit/session/script.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;
using types = std::vector<std::uint32_t>;

TEST_CASE("a query is told once it is done, another of its kind is not") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(f::query("UPDATE t SET n = 1 WHERE id = 7"));
    CHECK(s.env().seen.empty());
    s.home(b::complete("UPDATE 1") + b::ready());
    REQUIRE(s.env().seen.size() == 1);
    CHECK(s.env().seen[0].first == "UPDATE t SET n = 1 WHERE id = 7");
    s.client(f::query("UPDATE t SET n = 5 WHERE id = 9"));
    s.home(b::complete("UPDATE 1") + b::ready());
    CHECK(s.env().seen.size() == 1);
}

TEST_CASE("what failed is not told") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(f::query("SELECT nosuch FROM t"));
    s.home(b::error("42601", "no such column") + b::ready());
    s.client(f::query("SELECT 1; SELECT nosuch FROM t"));
    s.home(b::complete("SELECT 1") + b::error("42601", "no such column") + b::ready());
    CHECK(s.env().seen.empty());
}

TEST_CASE("a prepared statement is told with its types when it is executed") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(f::parse("p", "SELECT n FROM t WHERE id = $1", {20}) + f::sync());
    s.home(b::parsed() + b::ready());
    CHECK(s.env().seen.empty());
    s.client(f::bind("", "p") + f::execute() + f::sync());
    s.home(b::bound() + b::complete("SELECT 1") + b::ready());
    REQUIRE(s.env().seen.size() == 1);
    CHECK(s.env().seen[0].second == types{20});
}
