// The words of the policy as types: samples, windows, verdicts, diagnoses, stages.
//
// PURE: no clock, file, log or random here. `now` is an argument everywhere. Times are milliseconds
// of a clock that main owns (wall time at start plus monotonic time since), so they never step back
// inside a process and are comparable across restarts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hotlane::policy {

using duration = std::chrono::milliseconds;
using time_point = std::chrono::sys_time<duration>;

enum class home_kind : std::uint8_t { engine, postgres };
std::string_view to_string(home_kind kind) noexcept;

// One reading of an engine's cumulative counters, or of PostgreSQL's lock waits mapped to the same
// words. Counters are absolute; a missing one is unknown, never zero.
struct sample {
    time_point taken_at{};
    std::chrono::microseconds cost{};  // how long the reading took
    std::optional<std::uint64_t> acquires;
    std::optional<std::uint64_t> handoffs;
    std::optional<std::uint64_t> wait_us;
    std::optional<std::uint64_t> commits;
    std::optional<std::uint64_t> committed_lsn;  // survives restarts of the engine
    std::uint64_t link_generation{};             // grows when the source had to reconnect
    bool own_work{false};                        // a copy, rename or probe of ours ran meanwhile
    // Latency of a commit that waited for nobody, where someone measured it lately.
    std::optional<std::chrono::microseconds> commit_latency;
};

// What the data plane counted for a tool since the process started (cumulative, never reset).
struct traffic {
    std::uint64_t transactions{};        // ended, of any kind
    std::uint64_t write_transactions{};  // ended, that contained a statement that may write
    std::uint64_t write_conflicts{};     // of those, ended in a write conflict
    std::uint64_t errors{};              // ErrorResponses passed to clients, conflicts included
    std::uint64_t unknown_outcomes{};    // answered 08007
    std::uint64_t hold_wait_us{};        // time that clients spent in hotlane's own queues
};

// One write transaction as the data plane saw it, whatever the home. Microseconds of one clock.
struct write_interval {
    std::uint64_t session{};
    std::int64_t start_us{};
    std::int64_t end_us{};
    std::uint64_t key{};   // hash of table and key; 0: not known
    bool conflict{false};  // ended in a write conflict
    bool block{false};     // several statements: BEGIN .. COMMIT
};

// What a lane did, or would do, in some stretch of time.
struct lane_figures {
    std::uint64_t acquires{};
    std::uint64_t handoffs{};
    std::uint64_t wait_us{};
    std::uint64_t conflicts{};

    [[nodiscard]] std::optional<double> handoff_rate() const noexcept;
    [[nodiscard]] std::optional<double> mean_wait_us() const noexcept;
    [[nodiscard]] std::optional<double> conflict_rate() const noexcept;
};

// The same as rates: what was foreseen for the engine, or what came true there.
struct lane_rates {
    double handoff_rate{};
    double mean_wait_us{};
    double conflict_rate{};
};

// The other tools on the engine, together, in their last good windows.
struct neighbour_view {
    int tools{};
    double acquires_per_s{};
    double handoff_rate{};
    double mean_wait_us{};
};

enum class window_quality : std::uint8_t { good, idle, reset, gap, stalled, stale };
std::string_view to_string(window_quality quality) noexcept;

// The difference of two samples of one tool. Rates are present only where they are defined
// (a handoff rate needs acquires > 0, a mean wait handoffs > 0).
struct window {
    time_point from{};
    time_point to{};
    window_quality quality{window_quality::stale};
    std::uint64_t acquires{};
    std::uint64_t handoffs{};
    std::uint64_t wait_us{};
    std::optional<std::uint64_t> commits;
    std::uint64_t seen_writes{};     // write transactions that the data plane saw
    std::uint64_t seen_conflicts{};  // and the conflicts among them
    std::string note;                // why the quality is what it is
    std::uint64_t hold_wait_us{};    // the part of wait_us spent in hotlane's own queues
    // While the tool lives on PostgreSQL: what the engine's lane would have done with its writes.
    std::optional<lane_figures> predicted;

    [[nodiscard]] std::optional<double> handoff_rate() const noexcept;  // 0..1
    [[nodiscard]] std::optional<double> mean_wait_us() const noexcept;
    [[nodiscard]] std::optional<double> abort_rate() const noexcept;  // 1 - commits / acquires
    [[nodiscard]] std::optional<double> conflict_rate()
        const noexcept;  // seen_conflicts / seen_writes
    [[nodiscard]] std::optional<double> seen_share() const noexcept;  // seen_writes / acquires
};

enum class verdict : std::uint8_t { hot, calm, idle, unknown };
std::string_view to_string(verdict v) noexcept;

enum class diagnosis : std::uint8_t { none, hot_row, busy_lane, unknown };
std::string_view to_string(diagnosis d) noexcept;

// Where a tool stands in the runbook (README, "The runbook").
enum class stage : std::uint8_t {
    watching,      // at home on the engine, nothing to do
    flagged,       // proven hot; being diagnosed
    sharding,      // lever 2 was advised; waits for `shard done`, `shard skip` or the deadline
    remeasuring,   // lever 2 was pulled; is it still hot?
    would_move,    // mode observe or advise: the step that `act` would take now
    moving_out,    // lever 3 under way
    on_postgres,   // lives on PostgreSQL
    would_return,  // mode observe or advise: the return that `act` would make now
    moving_back,   // on the way home
};
std::string_view to_string(stage s) noexcept;

enum class mode : std::uint8_t { observe, advise, act };
std::string_view to_string(mode m) noexcept;

}  // namespace hotlane::policy
