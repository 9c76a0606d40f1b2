// Small builders for the policy's tests: samples that grow by stated amounts, under virtual time.
#pragma once

#include <fstream>
#include <sstream>

#include <catch2/catch.hpp>

#include "policy/engine.hpp"
#include "policy/replay.hpp"

namespace hotlane::policy::testing {

inline constexpr time_point t0{duration{1'700'000'000'000}};

// What happens to a tool in one second.
struct load {
    std::uint64_t acquires{};
    double handoff_rate{};
    double mean_wait_us{};
    double abort_rate{};
    double conflict_share{1.0};  // of the aborts, as the data plane sees them
    double seen_share{1.0};
};

inline constexpr load hot_row{1'000, 0.67, 16'000, 0.82};
inline constexpr load busy{600, 0.61, 19'000, 0.0};
inline constexpr load calm{3'000, 0.06, 70, 0.0};
inline constexpr load sleepy{2, 0.0, 0.0, 0.0};

// An engine and a data plane that only count.
struct counted {
    sample counters;
    traffic seen;

    counted() {
        counters.taken_at = t0;
        counters.acquires = 0;
        counters.handoffs = 0;
        counters.wait_us = 0;
        counters.commits = 0;
        counters.committed_lsn = 1;
    }

    void grow(const load& by, duration length) {
        const double seconds = std::chrono::duration<double>(length).count();
        const auto times = [](std::uint64_t n, double x) {
            return static_cast<std::uint64_t>(static_cast<double>(n) * x + 0.5);
        };
        const auto acquires = times(by.acquires, seconds);
        const auto handoffs = times(acquires, by.handoff_rate);
        const auto aborts = times(acquires, by.abort_rate);
        *counters.acquires += acquires;
        *counters.handoffs += handoffs;
        *counters.wait_us += times(handoffs, by.mean_wait_us);
        *counters.commits += acquires - aborts;
        *counters.committed_lsn += acquires - aborts;
        const auto writes = times(acquires, by.seen_share);
        seen.transactions += writes;
        seen.write_transactions += writes;
        seen.write_conflicts += times(aborts, by.conflict_share * by.seen_share);
        counters.taken_at += length;
    }

    void restart_engine() {
        counters.acquires = 0;
        counters.handoffs = 0;
        counters.wait_us = 0;
        counters.commits = 0;
    }
};

inline settings short_settings(mode act_mode = mode::act) {
    settings with;
    with.name = "test";
    with.where = "hotlane.yaml:7";
    with.act_mode = act_mode;
    with.window.length = duration{2'000};
    with.levers.remeasure = duration{10'000};
    with.come_back.calm_windows = 3;
    with.come_back.lookback = duration{60'000};
    with.rails.min_stay = duration{30'000};
    with.rails.incident_tools = 0;  // one tool alone: nobody to wait for
    return with;
}

// Drives one tool_policy with virtual time and remembers what came out.
struct driver {
    tool_policy policy;
    counted engine;
    fleet_view fleet;
    std::vector<decision> decisions;
    std::vector<command> commands;

    explicit driver(settings with) : policy("counter", std::move(with)) { feed(); }

    [[nodiscard]] time_point now() const { return engine.counters.taken_at; }
    [[nodiscard]] stage at() const { return policy.state().at; }

    outcome take(outcome out) {
        decisions.insert(decisions.end(), out.decisions.begin(), out.decisions.end());
        commands.insert(commands.end(), out.commands.begin(), out.commands.end());
        return out;
    }
    outcome feed() { return take(policy.feed(engine.counters, engine.seen, fleet, now())); }

    // `windows` windows of this load.
    void run(const load& by, int windows) {
        for (int i = 0; i < windows; ++i) {
            engine.grow(by, policy.current_settings().window.length);
            feed();
        }
    }
    void wait(duration length) { engine.counters.taken_at += length; }
    void tick() { take(policy.tick(fleet, now())); }

    [[nodiscard]] int count(std::string_view rule) const {
        int n = 0;
        for (const decision& one : decisions)
            n += one.rule == rule ? 1 : 0;
        return n;
    }
    [[nodiscard]] int moves_started() const {
        int n = 0;
        for (const command& one : commands)
            n += one.kind == command_kind::start_move ? 1 : 0;
        return n;
    }
};

inline std::vector<trace_row> recorded_trace() {
    std::ifstream file("traces/twill_hot_row.csv");
    std::stringstream text;
    text << file.rdbuf();
    auto rows = parse_trace(text.str());
    if (!rows) FAIL(rows.error());
    return *rows;
}

}  // namespace hotlane::policy::testing
