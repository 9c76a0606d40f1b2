#include <catch2/catch.hpp>

#include "router/placement/dsn_hosts.hpp"

using hotlane::placement::hosts_of;

namespace {

std::string shown(const std::string& dsn) {
    std::string out;
    for (const auto& h : hosts_of(dsn))
        out += "[" + h.host + "|" + h.hostaddr + "|" + h.port + "]";
    return out;
}

}  // namespace

TEST_CASE("the hosts of a connection string, one by one") {
    struct row {
        const char *dsn, *hosts;
    };
    const row r = GENERATE(values<row>({
        {"host=a,b port=5432 dbname=x", "[a||5432][b||5432]"},
        {"host=a,b,c port=1,2,3", "[a||1][b||2][c||3]"},
        {"host=a,b", "[a||][b||]"},
        {"host=a,/run/sockets,::1 port=1,2,3", "[a||1][/run/sockets||2][::1||3]"},
        {"hostaddr=10.0.0.1,10.0.0.2", "[|10.0.0.1|][|10.0.0.2|]"},
        {"host=a,b hostaddr=10.0.0.1,10.0.0.2 port=7", "[a|10.0.0.1|7][b|10.0.0.2|7]"},
        {"postgresql://u@h1:1,h2:2/db?connect_timeout=3", "[h1||1][h2||2]"},
        // As it is: one host, none, a service, lists that do not fit or have holes, no connection
        // string.
        {"host=a port=5432", "[||]"},
        {"dbname=x", "[||]"},
        {"service=state", "[||]"},
        {"host=a,b port=1,2,3", "[||]"},
        {"host=a,,c", "[||]"},
        {"host=a,b,c port=1,,3", "[||]"},
        {"host=a,b,c hostaddr=10.0.0.1,10.0.0.2", "[||]"},
        {"host=a hostaddr=10.0.0.1,10.0.0.2", "[||]"},
        {"host='a", "[||]"},
        {"", "[||]"},
    }));
    CAPTURE(r.dsn);
    CHECK(shown(r.dsn) == r.hosts);
}
