// What is expected of a move, what comes true, and how that changes what is asked of the next one.
#include "build.hpp"
#include "policy/recording.hpp"

using namespace hotlane::policy;
using namespace hotlane::policy::testing;

namespace {

std::int64_t us_of(time_point at) {
    return std::chrono::duration_cast<std::chrono::microseconds>(at.time_since_epoch()).count();
}

// Writes of one window at PostgreSQL: each session writes, waits `took`, thinks `think`.
std::vector<write_interval> writes_of(
    time_point from, duration length, int sessions, std::int64_t think, std::int64_t took) {
    std::vector<write_interval> out;
    const auto end = us_of(from + length);
    for (int s = 0; s < sessions; ++s) {
        std::int64_t at = us_of(from) + s * 1'237;
        for (int n = 0; at + took < end; ++n) {
            out.push_back({static_cast<std::uint64_t>(s + 1), at, at + took, 1});
            at += took + think + (n * 131 + s * 17) % 500;
        }
    }
    return out;
}

// One window away: what the data plane counted and recorded.
void live_away(driver& d, int sessions, std::int64_t think) {
    const duration length = d.policy.current_settings().window.length;
    const auto writes = writes_of(d.now(), length, sessions, think, 500);
    d.engine.grow({writes.size() * 1'000 / static_cast<std::uint64_t>(length.count()), 0, 0, 0},
                  length);
    d.policy.add_writes(writes);
    d.feed();
}

settings returning() {
    settings with = short_settings();
    with.come_back.lane_use_max = 1.0;  // the prediction alone decides
    with.come_back.calm_windows = 6;
    with.rails.min_stay = duration{10'000};
    return with;
}

driver away_with(const settings& with) {
    driver d{with};
    d.take(d.policy.home_found(home_kind::postgres, d.fleet, d.now()));
    d.engine.grow({1, 0, 0, 0}, with.window.length);
    d.feed();
    return d;
}

}  // namespace

TEST_CASE("a tool whose writers would still queue at home stays, one whose would not returns") {
    driver busy_one = away_with(returning());
    for (int i = 0; i < 12; ++i)
        live_away(busy_one, 16, 1'000);
    CHECK(busy_one.at() == stage::on_postgres);
    REQUIRE(busy_one.policy.last_window()->predicted);
    CHECK(*busy_one.policy.last_window()->predicted->conflict_rate() > 0.5);

    driver calm_one = away_with(returning());
    for (int i = 0; i < 12 && calm_one.at() == stage::on_postgres; ++i)
        live_away(calm_one, 1, 50'000);
    CHECK(calm_one.at() == stage::moving_back);
    REQUIRE(calm_one.policy.state().foreseen);
    CHECK(calm_one.policy.state().foreseen->handoff_rate == 0.0);
    const auto& back = calm_one.decisions.back();
    CHECK(explain(back).find("predicted for the engine") != std::string::npos);
}

TEST_CASE("a window whose writes were lost is neither calm nor busy") {
    driver d = away_with(returning());
    for (int i = 0; i < 3; ++i)
        live_away(d, 1, 50'000);
    const auto calm_before = d.policy.state().calm_at.size();
    REQUIRE(calm_before > 0);
    d.run({500, 0, 0, 0}, 2);  // counted, not recorded
    CHECK(d.policy.state().calm_at.size() == calm_before);
}

TEST_CASE("after a return the prediction is held against what came true") {
    settings with = returning();
    driver d = away_with(with);
    for (int i = 0; i < 12 && d.at() == stage::on_postgres; ++i)
        live_away(d, 1, 50'000);
    REQUIRE(d.at() == stage::moving_back);
    d.take(d.policy.move_finished(move_end::ok, "", d.fleet, d.now(), duration{300}));
    d.run({300, 0.4, 2'000, 0.0}, 8);  // quite another thing than was foreseen
    CHECK(d.count("foresight_checked") == 1);
    const auto& state = d.policy.state();
    REQUIRE(state.seen_at_home);
    CHECK(state.seen_at_home->handoff_rate == Approx(0.4).margin(0.01));
    CHECK(state.foresight_error == Approx(0.2).margin(0.01));
    // The next return is asked for more: the handoff rate must be lower by the error.
    const auto text = to_pairs(state);
    const auto again = from_pairs(text);
    REQUIRE(again);
    CHECK(again->foresight_error == state.foresight_error);
    CHECK(to_pairs(*again) == text);
}

TEST_CASE("a move out has a forecast, and says later what came true and what it did for others") {
    settings with = short_settings();
    with.levers.shard = false;
    driver d{with};
    d.fleet.target = postgres_model{300, 600};
    d.fleet.neighbours = neighbour_view{3, 500, 0.6, 20'000};
    for (int i = 0; i < 12 && d.at() != stage::moving_out; ++i) {
        d.policy.add_writes(writes_of(d.now(), with.window.length, 16, 500, 20'000));
        d.run(hot_row, 1);
    }
    REQUIRE(d.at() == stage::moving_out);
    const auto& started = d.decisions.back();
    REQUIRE(started.forecast);
    CHECK(started.forecast->failure_rate == 0.0);
    CHECK(started.forecast->latency_us > 1'000);
    REQUIRE(started.neighbours_before);
    d.take(d.policy.move_finished(move_end::ok, "", d.fleet, d.now()));
    d.fleet.neighbours = neighbour_view{3, 700, 0.1, 1'000};
    for (int i = 0; i < 8 && d.count("arrival_checked") == 0; ++i)
        live_away(d, 8, 2'000);
    REQUIRE(d.count("arrival_checked") == 1);
    const auto text = explain(d.decisions.back());
    INFO(text);
    CHECK(text.find("forecast for PostgreSQL") != std::string::npos);
    CHECK(text.find("what came true there") != std::string::npos);
    CHECK(text.find("they got faster") != std::string::npos);
}

TEST_CASE("the long view asks for more heat than a proof") {
    settings with = short_settings(mode::observe);
    with.window.long_span = duration{120'000};
    with.window.long_hot = duration{60'000};
    driver d{with};
    d.run(hot_row, 20);  // 40 s
    CHECK(d.at() == stage::watching);
    d.run(calm, 8);
    d.run(hot_row, 12);
    CHECK(d.at() != stage::watching);
}

TEST_CASE("a recording leads to the same decisions") {
    const settings with = short_settings();
    driver d{with};
    std::string text = std::string(recording_head) + "\n";
    const auto record = [&] {
        text += recorded_line("counter", home_kind::engine, d.engine.counters, d.engine.seen);
    };
    record();
    for (int i = 0; i < 10; ++i) {
        const auto writes = writes_of(d.now(), with.window.length, 4, 500, 5'000);
        for (const auto& one : writes)
            text += recorded_line("counter", one);
        d.policy.add_writes(writes);
        d.run(hot_row, 1);
        record();
    }
    const auto parsed = parse_recording(text);
    REQUIRE(parsed);
    replay_options options;
    options.with = with;
    options.tool = "counter";
    const auto again = replay(parsed->at("counter"), options);
    const auto decisions = again.decisions();
    REQUIRE(decisions.size() == d.decisions.size());
    for (std::size_t i = 0; i < decisions.size(); ++i) {
        CHECK(decisions[i].rule == d.decisions[i].rule);
        CHECK(decisions[i].at == d.decisions[i].at);
    }
    CHECK(to_pairs(again.last) == to_pairs(d.policy.state()));
    // A line that was cut off at the end is left out; any other bad one is named.
    CHECK(parse_recording(text + "S,17,coun"));
    CHECK_FALSE(parse_recording(text + "S,17,counter\nW\n"));
    CHECK_FALSE(parse_recording("t_ms\n"));
}

namespace {

// A tool at home on the engine: one session, a write of 8 ms every `pause`.
void live_at_home(driver& d, std::int64_t pause) {
    const duration length = d.policy.current_settings().window.length;
    const auto writes = writes_of(d.now(), length, 1, pause, 8'000);
    const auto rate = writes.size() * 1'000 / static_cast<std::uint64_t>(length.count());
    d.engine.grow({rate, 0, 0, 0}, length);
    d.policy.add_writes(writes);
    d.feed();
}

}  // namespace

TEST_CASE("a tool that writes seldom measures the engine over several windows") {
    driver d{short_settings()};
    int windows = 0;
    for (; windows < 10 && !d.policy.state().commit_latency_us; ++windows)
        live_at_home(d, 400'000);  // four or five in each window
    REQUIRE(d.policy.state().commit_latency_us);
    CHECK(*d.policy.state().commit_latency_us == Approx(8'000).epsilon(0.05));
    CHECK(windows > 3);
}

TEST_CASE("windows are not added up across a restart of the engine or a time without samples") {
    driver d{short_settings()};
    for (int i = 0; i < 12; ++i) {
        live_at_home(d, 400'000);
        if (i % 3 == 2) d.engine.restart_engine();
    }
    CHECK_FALSE(d.policy.state().commit_latency_us);
    for (int i = 0; i < 12; ++i) {
        live_at_home(d, 400'000);
        if (i % 3 == 2) d.wait(duration{7'000});
    }
    CHECK_FALSE(d.policy.state().commit_latency_us);
    for (int i = 0; i < 12; ++i)
        live_at_home(d, 400'000);
    CHECK(d.policy.state().commit_latency_us);
}
