// What few servers and clients do: errors of megabytes, goodbyes in the middle of a COPY.
#include <catch2/catch.hpp>

#include "tests/unit/session/script.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

TEST_CASE("an error of megabytes streams, and the session goes on") {
    script s(home_kind::postgres);
    s.piece = GENERATE(0, 1'000, 65'536);
    s.logged_in();
    s.client(f::query("COMMIT"));
    const auto error = b::error("P0001", std::string(3'000'000, 'x'));
    s.home(error + b::ready());
    const auto told = s.to_client();
    REQUIRE(told.size() == (error + b::ready()).size());
    REQUIRE(told == error + b::ready());
    REQUIRE_FALSE(s.client_closed);
    REQUIRE(s.env().left == 1);
}

TEST_CASE("an error of megabytes that must be made honest is replaced whole") {
    script s(home_kind::engine);
    s.piece = GENERATE(0, 10'000);
    s.logged_in();
    s.client(f::query("INSERT INTO t VALUES (1)"));
    s.home(b::error("40001", "durability", "ERROR", std::string(2'000'000, 'x')) + b::ready());
    const auto told = s.to_client();
    REQUIRE(tags(told) == "E(08007)ZI");
    REQUIRE(told.size() < 1'000);
}

TEST_CASE("a client that says goodbye in the middle of a COPY leaves no link behind") {
    script s(home_kind::engine);  // no isolation level to be set first
    s.logged_in();
    s.client(f::query("COPY t FROM STDIN"));
    s.home(b::bytes('G', std::string("\0\0\0", 3)));
    s.client(f::bytes('d', "1\n"));
    const bool says_so = GENERATE(true, false);
    if (says_so)
        s.client(f::bytes('X'));
    else
        s.client_eof();
    REQUIRE(s.client_closed);
    REQUIRE(s.links_closed == 1);
    REQUIRE(s.farewell.empty());
    REQUIRE(s.env().left == 1);
}

TEST_CASE("a startup that is refused after the authentication is told both") {
    script s;
    s.client(f::startup());
    s.link_open();
    const auto answer = b::auth(0) + b::error("3D000", "there is no such database", "FATAL");
    s.home(answer);
    REQUIRE(s.to_client() == answer);
    REQUIRE(s.client_closed);
}
