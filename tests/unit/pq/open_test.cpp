#include <catch2/catch.hpp>

#include "router/pq/guarded_login.hpp"
#include "router/pq/open.hpp"
#include "tests/support/hostile_server.hpp"

using namespace hotlane;
using namespace std::chrono_literals;
using test::ask;
using test::hostile_server;

namespace {

constexpr const char* secret = "geheim-4711";

tl::expected<pq::connection, pq::open_error> log_in(const hostile_server& there,
                                                    const std::string& sslmode) {
    return pq::open({{"host", "127.0.0.1"},
                     {"port", std::to_string(there.port())},
                     {"user", "hotlane"},
                     {"dbname", "shop"},
                     {"password", secret},
                     {"sslmode", sslmode}},
                    pq::dbname::is_name,
                    pq::clock::now() + 5s);
}

}  // namespace

TEST_CASE("Whoever asks for the password in clear text gets nothing of it") {
    const auto how = GENERATE(ask::plainly,
                              ask::byte_by_byte,
                              ask::behind_scram,
                              ask::instead_of_proof,
                              ask::behind_no_tls);
    const std::string sslmode = GENERATE("prefer", "disable");
    CAPTURE(static_cast<int>(how), sslmode);
    std::string heard;
    {
        hostile_server there(how);
        const auto opened = log_in(there, sslmode);
        REQUIRE_FALSE(opened.has_value());
        CHECK(opened.error().what.find(secret) == std::string::npos);
        const bool said_scram_first = how == ask::behind_no_tls && sslmode == "disable";
        if (!said_scram_first) CHECK(opened.error().why != pq::open_error::kind::timed_out);
        if (how == ask::plainly) CHECK(opened.error().why == pq::open_error::kind::clear_text);
        heard = there.heard();
        // Who asks too early is left before it is told a name.
        if (how != ask::behind_no_tls) CHECK(there.asked() > 0);
    }
    if (how != ask::behind_no_tls) CHECK(heard.find("hotlane") != std::string::npos);
    CHECK(heard.find(secret) == std::string::npos);
}

TEST_CASE("A server that is silent costs no more than the deadline") {
    // It offers SCRAM, hears the answer, and goes on only when the client has gone.
    hostile_server there(ask::behind_no_tls);
    const auto start = pq::clock::now();
    const auto opened = pq::open({{"host", "127.0.0.1"},
                                  {"port", std::to_string(there.port())},
                                  {"user", "hotlane"},
                                  {"password", secret},
                                  {"sslmode", "disable"}},
                                 pq::dbname::is_name,
                                 start + 200ms);
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().why == pq::open_error::kind::timed_out);
    CHECK(pq::clock::now() - start < 3s);
}

TEST_CASE("Only the request for clear text is one") {
    using namespace std::string_literals;
    CHECK(pq::asks_for_clear_text("R\0\0\0\x08\0\0\0\x03"s));
    for (const auto& other : {"R\0\0\0\x08\0\0\0\0"s,
                              "R\0\0\0\x0c\0\0\0\x05salt"s,
                              "R\0\0\0\x08\0\0\x03\x03"s,
                              "E\0\0\0\x08\0\0\0\x03"s,
                              "R\0\0\0\x04"s,
                              ""s})
        CHECK_FALSE(pq::asks_for_clear_text(other));
}
