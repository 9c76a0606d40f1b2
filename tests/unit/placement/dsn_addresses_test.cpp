#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <cstdlib>

#include "router/placement/dsn_addresses.hpp"
#include "router/placement/fleet_store.hpp"
#include "router/placement/pg_session.hpp"
#include "tests/support/hostile_server.hpp"

using namespace hotlane;
using namespace hotlane::placement;
using namespace std::chrono_literals;
using test::ask;
using test::hostile_server;

namespace {

constexpr const char* secret = "geheim-4711";

std::string shown(const std::string& dsn) {
    std::string out;
    for (const auto& h : addresses_of(dsn))
        out += "[" + h.host + "|" + h.hostaddr + "|" + h.port + "]";
    return out;
}

}  // namespace

TEST_CASE("The hosts of a connection string come with their addresses") {
    CHECK(shown("dbname=state") == "[||]");
    CHECK(shown("host=/run/pg port=5433") == "[/run/pg||]");
    CHECK(shown("host=127.0.0.1 port=1") == "[127.0.0.1|127.0.0.1|]");
    CHECK(shown("host=127.0.0.1,127.0.0.2 port=1,2") ==
          "[127.0.0.1|127.0.0.1|1][127.0.0.2|127.0.0.2|2]");
    CHECK(shown("host=a,b hostaddr=127.0.0.1,127.0.0.2 port=7") ==
          "[a|127.0.0.1|7][b|127.0.0.2|7]");
    CHECK(shown("host=nowhere.invalid port=3") == "[nowhere.invalid||]");
    CHECK(shown("host=a,b,c port=1,2") == "[||]");
}

TEST_CASE("The string's own time-out holds for each host") {
    CHECK_FALSE(connect_timeout_of("host=a").has_value());
    CHECK_FALSE(connect_timeout_of("connect_timeout=0").has_value());
    CHECK_FALSE(connect_timeout_of("connect_timeout=soon").has_value());
    CHECK(connect_timeout_of("connect_timeout=7") == 7'000ms);
    CHECK(connect_timeout_of("connect_timeout=1") == 2'000ms);
}

TEST_CASE("No host of the state store gets the password in clear text") {
    const auto how = GENERATE(ask::plainly, ask::behind_scram);
    const std::string more = GENERATE("", " sslmode=disable", " sslmode=allow");
    const bool in_the_string = GENERATE(false, true);
    hostile_server first(how), second(how);
    postgres_target at;
    at.dsn = fmt::format("host=127.0.0.1,localhost port={},{} user=hotlane dbname=state{}{}",
                         first.port(),
                         second.port(),
                         more,
                         in_the_string ? std::string(" password=") + secret : "");
    if (!in_the_string) at.password = secret;
    at.connect_timeout = 5s;
    const auto session = pg_session::connect(at);
    REQUIRE_FALSE(session.has_value());
    CHECK(session.error().what.find("clear text") != std::string::npos);
    CHECK(session.error().what.find(secret) == std::string::npos);
    CHECK(first.asked() > 0);
    CHECK(second.asked() > 0);  // who asked ends one try, not the walk
    CHECK(first.heard().find(secret) == std::string::npos);
    CHECK(second.heard().find(secret) == std::string::npos);
}

// What tests/integration/test_passwords.py finds out of a real server.
TEST_CASE("The store connects, or says why not", "[.connects]") {
    postgres_target at;
    at.dsn = std::getenv("HOTLANE_STORE_DSN");
    at.connect_timeout = 5s;
    const auto session = pg_session::connect(at);
    if (!session) FAIL(session.error().what);
    CHECK((*session)->exec("SELECT 1").has_value());
}
