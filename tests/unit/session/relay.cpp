// Relaying: replies match requests, one ReadyForQuery for each Query and Sync, the gate is entered
// and left once for each transaction.
#include <catch2/catch.hpp>

#include "tests/unit/session/script.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

TEST_CASE("a simple query goes to the home and its answer comes back byte for byte") {
    script s(home_kind::engine);
    s.client(f::startup());
    REQUIRE(s.opened == std::vector<std::uint64_t>{1});
    s.link_open();
    REQUIRE(s.to_link() == f::startup());
    s.greet();
    REQUIRE(s.to_client() ==
            b::auth(0) + b::status("server_version", "15.0") + b::key(77, "ours") + b::ready());
    s.client(f::query("SELECT 1"));
    REQUIRE(s.to_link() == f::query("SELECT 1"));
    REQUIRE(s.machine->in_transaction());
    const auto answer =
        b::row_description({23}) + b::row("1") + b::complete("SELECT 1") + b::ready();
    s.home(answer);
    REQUIRE(s.to_client() == answer);
    REQUIRE_FALSE(s.machine->in_transaction());
    REQUIRE(s.env().entered == 1);
    REQUIRE(s.env().left == 1);
    s.client(f::bytes('X'));
    REQUIRE(s.farewell == f::bytes('X'));
    REQUIRE(s.client_closed);
}

TEST_CASE("the gate is left only when every reply has come and the status is idle") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(f::query("BEGIN") + f::query("INSERT INTO t VALUES (1)"));
    s.home(b::complete("BEGIN") + b::ready('T'));
    REQUIRE(s.env().left == 0);
    s.home(b::complete("INSERT 0 1") + b::ready('T'));
    REQUIRE(s.env().left == 0);
    s.client(f::query("COMMIT"));
    s.home(b::complete("COMMIT"));
    REQUIRE(s.env().left == 0);
    s.home(b::ready());
    REQUIRE(s.env().left == 1);
    REQUIRE(s.env().ended[0].wrote);
    REQUIRE(s.env().ended_table[0] == "t");
    REQUIRE(s.env().ended_sql[0] == "INSERT INTO t VALUES (1)");
}
