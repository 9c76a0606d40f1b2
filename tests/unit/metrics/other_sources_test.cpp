// Counters by a query with a row for each tool, and from a page over HTTP.
#include <catch2/catch.hpp>
#include <memory>

#include "fake_server.hpp"
#include "metrics/source.hpp"

using namespace hotlane;
using namespace hotlane::metrics;
using namespace hotlane::test;
using std::chrono::milliseconds;

namespace {

policy::time_point clock_now() {
    return policy::time_point{milliseconds{1'234}};
}
constexpr milliseconds budget{5'000};

std::string header(const std::vector<std::string>& names) {
    std::string body{'\0', static_cast<char>(names.size())};
    for (const auto& name : names)
        body += name + std::string("\0\0\0\0\0\0\0", 7) + big_endian(25) +
                std::string("\xff\xff\xff\xff\xff\xff\0\0", 8);
    return frame('T', body);
}
std::string values(const std::vector<std::string>& row) {
    std::string body{'\0', static_cast<char>(row.size())};
    for (const auto& v : row)
        body += big_endian(static_cast<std::uint32_t>(v.size())) + v;
    return frame('D', body);
}
const std::vector<std::string> lane{"tool", "acquires", "handoffs", "wait_us"};

source_target at(const fake_server& server) {
    return {"127.0.0.1", server.port(), "hotlane", "db", ""};
}

// One connection, one answer: enough of a web server.
class page_server {
  public:
    explicit page_server(std::string answer) : answer_{std::move(answer)} {
        listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in here{};
        here.sin_family = AF_INET;
        here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof here;
        REQUIRE(bind(listener_, reinterpret_cast<sockaddr*>(&here), size) == 0);
        REQUIRE(listen(listener_, 4) == 0);
        getsockname(listener_, reinterpret_cast<sockaddr*>(&here), &size);
        port_ = ntohs(here.sin_port);
        thread_ = std::thread([this] { serve(); });
    }
    ~page_server() {
        ::shutdown(listener_, SHUT_RDWR);
        thread_.join();
        ::close(listener_);
    }
    [[nodiscard]] source_target target() const { return {"127.0.0.1", port_, "", "", ""}; }

  private:
    void serve() {
        const int fd = accept(listener_, nullptr, nullptr);
        if (fd < 0) return;
        char buffer[1024];
        (void)!recv(fd, buffer, sizeof buffer, 0);
        (void)!send(fd, answer_.data(), answer_.size(), MSG_NOSIGNAL);
        ::close(fd);
    }
    std::string answer_;
    int listener_{-1};
    std::uint16_t port_{};
    std::thread thread_;
};

}  // namespace

TEST_CASE("one query serves several tools, each with its own row") {
    int asked = 0;
    fake_server server{[&](int) {
        ++asked;
        return header({"wait_us", "tool", "handoffs", "acquires", "commits", "extra"}) +
               values({"7000", "a", "3", "10", "9", "x"}) +
               values({"0", "b", "0", "5.000", "5", "y"}) + values({"", "c", "?", "-1", "", ""}) +
               complete();
    }};
    const auto shared =
        std::make_shared<shared_query>(at(server), "SELECT ...", milliseconds{60'000});
    const auto a = make_sql_source(shared, "a")->read(clock_now, budget);
    REQUIRE(a);
    CHECK(a->acquires == 10U);
    CHECK(a->handoffs == 3U);
    CHECK(a->wait_us == 7'000U);
    CHECK(a->commits == 9U);
    CHECK(a->taken_at == clock_now());
    const auto b = make_sql_source(shared, "b")->read(clock_now, budget);
    REQUIRE(b);
    CHECK(b->acquires == 5U);
    // What cannot be read is the trouble of its tool alone, and unknown, not zero.
    const auto c = make_sql_source(shared, "c")->read(clock_now, budget);
    REQUIRE_FALSE(c);
    CHECK(c.error().what == source_error::kind::bad_reply);
    const auto d = make_sql_source(shared, "d")->read(clock_now, budget);
    REQUIRE_FALSE(d);
    CHECK(d.error().detail.find("no row") != std::string::npos);
    CHECK(asked == 1);
}

TEST_CASE("a reading that is too old is made anew, and a restart shows in the link") {
    fake_server server{[&](int n) {
        const auto row = header(lane) + values({"a", std::to_string(n), "0", "0"}) + complete();
        return n == 1 ? std::string("close") : row;
    }};
    const auto shared = std::make_shared<shared_query>(at(server), "SELECT ...", milliseconds{0});
    const auto source = make_sql_source(shared, "a");
    const auto first = source->read(clock_now, budget);
    REQUIRE(first);
    CHECK_FALSE(source->read(clock_now, budget));
    const auto third = source->read(clock_now, budget);
    REQUIRE(third);
    CHECK(third->acquires == 2U);
    CHECK(third->link_generation > first->link_generation);
    CHECK_FALSE(third->commits);
}

TEST_CASE("a query without the column tool is a bad reply, for every tool") {
    fake_server server{[](int) { return header({"name"}) + values({"a"}) + complete(); }};
    const auto shared =
        std::make_shared<shared_query>(at(server), "SELECT ...", milliseconds{60'000});
    const auto got = make_sql_source(shared, "a")->read(clock_now, budget);
    REQUIRE_FALSE(got);
    CHECK(got.error().detail.find("tool") != std::string::npos);
}

TEST_CASE("the lane is read from a page over HTTP") {
    page_server server{
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
        "# TYPE twilldb_engine_write_acquires_total counter\n"
        "twilldb_engine_write_acquires_total 1.5e3\n"
        "twilldb_engine_write_handoffs_total{db=\"a } b\"} 12 1700000000000\n"
        "twilldb_engine_write_wait_us_total 99\r\n"
        "twilldb_engine_write_wait_us_total_other 1\n"};
    const auto got = make_twill_http_source(server.target())->read(clock_now, budget);
    INFO((got ? std::string() : got.error().detail));
    REQUIRE(got);
    CHECK(got->acquires == 1'500U);
    CHECK(got->handoffs == 12U);
    CHECK(got->wait_us == 99U);
    CHECK_FALSE(got->commits);
}

TEST_CASE("a page that is none, or none of ours, is an error that says so") {
    struct row {
        std::string answer;
        source_error::kind kind;
    };
    using k = source_error::kind;
    for (const row& one : {row{"", k::bad_reply},
                           row{"hello", k::bad_reply},
                           row{"HTTP/1.1 404 Not Found\r\n\r\n", k::refused},
                           row{"HTTP/1.1 200 OK\r\n\r\nup 1\n", k::bad_reply}}) {
        page_server server{one.answer};
        const auto got = make_twill_http_source(server.target())->read(clock_now, budget);
        REQUIRE_FALSE(got);
        CHECK(to_string(got.error().what) == to_string(one.kind));
    }
    CHECK_FALSE(make_twill_http_source({"127.0.0.1", 1, "", "", ""})->read(clock_now, budget));
}
