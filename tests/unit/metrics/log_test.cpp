#include "metrics/log.hpp"

#include <rapidcheck/catch.h>
#include <spdlog/sinks/ostream_sink.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace hotlane;
using namespace hotlane::metrics;
using std::chrono::milliseconds;

namespace {

constexpr policy::time_point at{milliseconds{1'700'000'000'123}};

std::string json(log_fields fields, std::uint64_t suppressed = 0) {
    return format_event(log_format::json, at, log_level::warn, "e", fields, suppressed);
}
std::string text(log_fields fields) {
    return format_event(log_format::text, at, log_level::info, "move_started", fields);
}

struct captured {
    std::ostringstream out;
    policy::time_point now{at};
    event_log log;

    explicit captured(int burst = 20)
        : log{log_options{log_level::info,
                          log_format::text,
                          [this] { return now; },
                          std::make_shared<spdlog::sinks::ostream_sink_mt>(out),
                          burst,
                          milliseconds{10'000}}} {}
    std::size_t lines() const {
        const auto s = out.str();
        return static_cast<std::size_t>(std::count(s.begin(), s.end(), '\n'));
    }
};

}  // namespace

TEST_CASE("an event is one line with its fields in order") {
    CHECK(text({{"tool", "counter"}, {"rate", 0.5}, {"n", 3}, {"ok", true}}) ==
          "2023-11-14T22:13:20.123Z info  move_started tool=counter rate=0.5 n=3 ok=true");
    CHECK(json({{"tool", "counter"}, {"big", std::uint64_t{18446744073709551615U}}, {"low", -1}}) ==
          R"({"time":"2023-11-14T22:13:20.123Z","level":"warn","event":"e","tool":"counter",)"
          R"("big":18446744073709551615,"low":-1})");
}

TEST_CASE("what could break a line is escaped") {
    CHECK(text({{"a", "two words"}, {"b", "x=\"y\""}, {"c", ""}, {"d", "l1\nl2\x1b[31m"}}) ==
          "2023-11-14T22:13:20.123Z info  move_started a=\"two words\" b=\"x=\\\"y\\\"\" c=\"\" "
          "d=\"l1\\nl2\\u001b[31m\"");
    CHECK(json({{"a", "\xff\xc3"}}).find("\\ufffd\\ufffd") != std::string::npos);
    CHECK(json({{"a", "\xc2\x9b"}}).find("\\u009b") != std::string::npos);
    CHECK(json({{"a", "\xc3\xa4"}}).find("\xc3\xa4") != std::string::npos);
    CHECK(json({{"a", std::nan("")}}).find("\"a\":null") != std::string::npos);
    CHECK(json({{"a", std::string(100'000, 'x')}}).size() < 5'000);
}

TEST_CASE("json is json, whatever the text holds") {
    rc::prop("it parses and says the same", [](const std::string& raw) {
        const auto line = json({{"x", raw}, {"y", 1}}, 7);
        RC_ASSERT(line.find('\n') == std::string::npos);
        const auto back = nlohmann::json::parse(line);
        RC_ASSERT(back["y"] == 1);
        RC_ASSERT(back["suppressed"] == 7);
        RC_ASSERT(back["x"] == valid_utf8(raw));
    });
    rc::prop("bytes too", [] {
        std::string raw;
        for (const auto b :
             *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>())) {
            raw += static_cast<char>(b);
        }
        RC_ASSERT(nlohmann::json::parse(json({{"x", raw}}))["x"] == valid_utf8(raw));
        const auto line = text({{"x", raw}});
        RC_ASSERT(std::all_of(line.begin(), line.end(), [](char c) {
            return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
        }));
    });
}

TEST_CASE("levels filter and can change") {
    captured c;
    c.log.debug("quiet");
    CHECK(c.lines() == 0);
    c.log.set_level(log_level::debug);
    c.log.debug("loud");
    CHECK(c.lines() == 1);
    CHECK(level_from("warn") == log_level::warn);
    CHECK(level_from("nonsense") == log_level::info);
    CHECK(format_from("json") == log_format::json);
}

TEST_CASE("braces are text, not a format") {
    captured c;
    c.log.info("e", {{"x", "{}{0}%s%n"}});
    CHECK(c.out.str().find("x={}{0}%s%n\n") != std::string::npos);
}

TEST_CASE("a repeated event is counted in silence, then says so") {
    captured c{2};
    for (int i = 0; i < 5; ++i)
        c.log.info("home_down", {{"tool", "a"}});
    CHECK(c.lines() == 2);
    c.log.info("home_down", {{"tool", "b"}});  // another tool has its own budget
    CHECK(c.lines() == 3);
    CHECK(c.log.suppressed_total() == 3);
    c.now += milliseconds{10'000};
    c.log.info("home_down", {{"tool", "a"}});
    CHECK(c.lines() == 4);
    CHECK(c.out.str().find("tool=a suppressed=3\n") != std::string::npos);
    c.now -= milliseconds{60'000};  // a clock that steps back silences nobody
    c.log.info("home_down", {{"tool", "a"}});
    CHECK(c.lines() == 5);
}

TEST_CASE("many kinds of events share what memory there is") {
    captured c{1};
    for (int i = 0; i < 5'000; ++i)
        c.log.info("e", {{"tool", std::to_string(i)}});
    CHECK(c.lines() <= 1'026);
    CHECK(c.log.suppressed_total() > 3'000);
}
