#include <catch2/catch.hpp>

#include "fake_server.hpp"
#include "metrics/source.hpp"
#include "tests/support/hostile_server.hpp"

using namespace hotlane;
using namespace hotlane::metrics;
using namespace hotlane::test;
using std::chrono::milliseconds;

namespace {

constexpr policy::time_point now{milliseconds{42}};
policy::time_point clock_now() {
    return now;
}

source_target target(std::uint16_t port) {
    return {"127.0.0.1", port, "hotlane", "db", ""};
}

std::string stats() {
    return two_columns() + row("twill_write_lane_acquire_total", "10") +
           row("twill_something_new", "not a number") + row("twill_write_handoff_total", "7") +
           row("twill_write_wait_us_total", "18446744073709551615") +
           row("twill_commit_total", "9") + row("twill_committed_lsn", "123") + complete();
}

// A port that nobody listens on and that no other process can take meanwhile.
class bound_port {
  public:
    bound_port() : fd_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        auto* raw = reinterpret_cast<sockaddr*>(&at);
        REQUIRE(bind(fd_, raw, size) == 0);
        REQUIRE(getsockname(fd_, raw, &size) == 0);
        number_ = ntohs(at.sin_port);
    }
    ~bound_port() { close(fd_); }
    bound_port(const bound_port&) = delete;
    bound_port& operator=(const bound_port&) = delete;
    [[nodiscard]] std::uint16_t number() const { return number_; }

  private:
    int fd_;
    std::uint16_t number_{};
};

// What a reading must never exceed by much, however the other side behaves.
template <class F>
auto within(milliseconds most, F read) {
    const auto start = std::chrono::steady_clock::now();
    auto result = read();
    CHECK(std::chrono::steady_clock::now() - start < most);
    return result;
}

}  // namespace

TEST_CASE("twill counters are read by name, unknown names ignored") {
    fake_server server{[](int) { return stats(); }};
    auto s = make_twill_source(target(server.port()));
    const auto got = s->read(clock_now, milliseconds{5'000});
    INFO((got ? std::string{} : got.error().detail));
    REQUIRE(got);
    CHECK(server.asked() == "SHOW twill.stats");
    CHECK(got->acquires == 10U);
    CHECK(got->handoffs == 7U);
    CHECK(got->wait_us == 18446744073709551615U);
    CHECK(got->commits == 9U);
    CHECK(got->committed_lsn == 123U);
    CHECK(got->taken_at == now);
    CHECK(got->cost.count() > 0);
    CHECK(got->link_generation == 1);
    const auto again = s->read(clock_now, milliseconds{5'000});
    REQUIRE(again);
    CHECK(again->link_generation == 1);
}

TEST_CASE("a missing or unreadable counter is unknown, never zero") {
    fake_server server{[](int) {
        return two_columns() + row("twill_write_lane_acquire_total", "10") +
               row("twill_write_handoff_total", "") + row("twill_commit_total", "-1") + complete();
    }};
    auto s = make_twill_source(target(server.port()));
    const auto got = s->read(clock_now, milliseconds{5'000});
    REQUIRE(got);
    CHECK(got->acquires == 10U);
    CHECK_FALSE(got->handoffs);
    CHECK_FALSE(got->wait_us);
    CHECK_FALSE(got->commits);
}

TEST_CASE("a reply without any lane counter is no reading") {
    fake_server server{[](int) { return two_columns() + row("x", "1") + complete(); }};
    auto s = make_twill_source(target(server.port()));
    const auto got = s->read(clock_now, milliseconds{5'000});
    REQUIRE_FALSE(got);
    CHECK(got.error().what == source_error::kind::bad_reply);
}

TEST_CASE("a server that accepts and is silent costs one budget") {
    fake_server server{[](int) { return stats(); }};
    server.set_welcome(false);
    auto s = make_twill_source(target(server.port()));
    const auto got =
        within(milliseconds{3'000}, [&] { return s->read(clock_now, milliseconds{150}); });
    REQUIRE_FALSE(got);
    CHECK(got.error().what == source_error::kind::timed_out);
}

TEST_CASE("a query that is never answered costs one budget, and the next reading recovers") {
    fake_server server{[](int n) { return n == 0 ? std::string{} : stats(); }};
    auto s = make_twill_source(target(server.port()));
    const auto got =
        within(milliseconds{3'000}, [&] { return s->read(clock_now, milliseconds{300}); });
    REQUIRE_FALSE(got);
    CHECK(got.error().what == source_error::kind::timed_out);
    const auto again = s->read(clock_now, milliseconds{5'000});
    REQUIRE(again);
    CHECK(again->link_generation == 2);
}

TEST_CASE("a slow drip does not stretch the budget") {
    fake_server server{[](int) { return stats(); }};
    server.set_drip(true);
    auto s = make_twill_source(target(server.port()));
    const auto got =
        within(milliseconds{3'000}, [&] { return s->read(clock_now, milliseconds{250}); });
    REQUIRE_FALSE(got);
    CHECK(got.error().what == source_error::kind::timed_out);
}

TEST_CASE("a lost link is noticed and made again with a new generation") {
    fake_server server{[](int n) { return n == 1 ? std::string{"close"} : stats(); }};
    auto s = make_twill_source(target(server.port()));
    REQUIRE(s->read(clock_now, milliseconds{5'000}));
    CHECK_FALSE(s->read(clock_now, milliseconds{5'000}));
    const auto again = s->read(clock_now, milliseconds{5'000});
    REQUIRE(again);
    CHECK(again->link_generation == 2);
}

TEST_CASE("an error reply is refused, a nonsense reply is an error, rows without end are cut") {
    using namespace std::string_literals;
    const auto error = frame('E', "SERROR\0C42601\0Mno such thing\0\0"s) + ready();
    std::string endless = two_columns();
    for (int i = 0; i < 6'000; ++i)
        endless += row("twill_commit_total", "1");
    fake_server server{[&](int n) {
        return n == 0   ? error
               : n == 1 ? "\x01\x02\x03 nonsense"s + std::string(100, '\0')
                        : endless;
    }};
    auto s = make_twill_source(target(server.port()));
    const auto refused = s->read(clock_now, milliseconds{5'000});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what == source_error::kind::refused);
    CHECK(refused.error().detail.find("no such thing") != std::string::npos);
    CHECK(refused.error().detail.find('\n') == std::string::npos);
    CHECK_FALSE(
        within(milliseconds{4'000}, [&] { return s->read(clock_now, milliseconds{1'000}); }));
    const auto cut = s->read(clock_now, milliseconds{5'000});
    REQUIRE_FALSE(cut);
    CHECK(cut.error().what == source_error::kind::bad_reply);
}

TEST_CASE("nobody listens, no such name") {
    const bound_port held;
    const auto port = held.number();
    auto s = make_twill_source(target(port));
    const auto got = s->read(clock_now, milliseconds{5'000});
    REQUIRE_FALSE(got);
    CHECK(got.error().what == source_error::kind::unreachable);
    auto nowhere = make_twill_source({"nowhere.invalid", 1, "u", "d", "hunter2"});
    const auto lost =
        within(milliseconds{4'000}, [&] { return nowhere->read(clock_now, milliseconds{1'000}); });
    REQUIRE_FALSE(lost);
    CHECK(lost.error().detail.find("hunter2") == std::string::npos);
    auto local = make_twill_source({"localhost", port, "u", "d", ""});
    CHECK(local->read(clock_now, milliseconds{5'000}).error().what ==
          source_error::kind::unreachable);
}

TEST_CASE("no budget is no reading") {
    fake_server server{[](int) { return stats(); }};
    auto s = make_twill_source(target(server.port()));
    const auto got = s->read(clock_now, milliseconds{0});
    REQUIRE_FALSE(got);
    CHECK(got.error().what == source_error::kind::timed_out);
}

TEST_CASE("A server that asks for the password of the counters in clear text gets nothing of it") {
    const auto how = GENERATE(ask::plainly, ask::byte_by_byte, ask::behind_scram);
    hostile_server there{how};
    auto at = target(there.port());
    at.password = "geheim-4711";
    const auto model = measure_postgres(at, milliseconds{3'000});
    REQUIRE_FALSE(model.has_value());
    CHECK(model.error().detail.find("clear text") != std::string::npos);
    const auto sample = make_postgres_lock_source(at)->read(clock_now, milliseconds{3'000});
    REQUIRE_FALSE(sample.has_value());
    CHECK(sample.error().what == source_error::kind::refused);
    CHECK(there.asked() >= 2);
    CHECK(there.heard().find("geheim") == std::string::npos);
}
