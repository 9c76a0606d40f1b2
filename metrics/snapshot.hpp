// What the exposition needs to know, as plain values. Whoever owns the state fills one at the
// moment of the scrape; counters in it are cumulative since the process started and must never
// fall.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "metrics/names.hpp"
#include "policy/types.hpp"

namespace hotlane::metrics {

// How long clients were held. Not thread-safe: owners lock or keep one for each thread and add.
struct hold_histogram {
    std::array<std::uint64_t, hold_edges.size() + 1> counts{};  // the last: above all edges
    double sum_seconds{};

    void observe(double seconds) noexcept;
    hold_histogram& operator+=(const hold_histogram& other) noexcept;
};

struct threshold_value {
    std::string signal;  // handoff_ratio, mean_wait_seconds, abort_ratio, conflict_ratio
    std::string edge;    // enter, leave
    double value{};
};

struct move_in_progress {
    policy::home_kind to{};
    std::string phase;
    policy::time_point started{};
    policy::time_point phase_started{};
};

struct tool_snapshot {
    std::string tool;
    std::string policy;
    policy::mode mode{policy::mode::observe};

    policy::stage stage{policy::stage::watching};
    policy::time_point stage_since{};
    policy::verdict verdict{policy::verdict::unknown};
    policy::diagnosis diagnosis{policy::diagnosis::none};

    // Of the last good window; nothing while unknown.
    std::optional<double> handoff_ratio;
    std::optional<double> mean_wait_seconds;
    std::optional<double> abort_ratio;
    std::optional<double> conflict_ratio;
    std::vector<threshold_value> thresholds;
    std::optional<double> predicted_handoff_ratio;
    std::optional<double> predicted_conflict_ratio;
    std::optional<double> predicted_mean_wait_seconds;
    std::optional<double> predicted_lane_use_ratio;
    std::optional<policy::lane_rates> foreseen;      // of the last return ...
    std::optional<policy::lane_rates> seen_at_home;  // ... and what came true
    std::optional<double> forecast_seconds;          // a write at PostgreSQL, before the last move
    std::optional<double> came_true_seconds;         // ... and after it
    std::optional<double> forecast_failures;         // the same, writes that fail
    std::optional<double> came_true_failures;
    std::optional<double> foresight_wait_factor;  // nothing: no return was compared yet
    bool in_incident{false};
    double hold_used_seconds{};  // by moves, in 24 h
    std::optional<double> hold_limit_seconds;
    std::optional<double> lane_seconds;    // measured: one write takes the lane so long
    std::optional<double> commit_seconds;  // measured: a commit that waits for nobody
    std::uint64_t writes_dropped{};

    std::uint64_t sessions{};
    std::uint64_t held{};
    policy::traffic traffic;
    std::uint64_t links_open{}, links_lent{}, link_waiters{}, link_waits{}, link_wait_us{};
    std::uint64_t links_made{}, link_failures{}, pinned{}, retry_tries{};
    std::map<std::string, std::uint64_t, std::less<>> links_closed, pins, retries, after_error;
    std::uint64_t after_error_blocks{};
    hold_histogram hold;

    std::map<std::pair<policy::home_kind, std::string>, std::uint64_t> moves;  // to, outcome
    std::optional<move_in_progress> move;
    bool fence_left{false};
    bool late_write{false};
    std::optional<bool> engine_up;  // nothing: not asked yet
    std::optional<bool> postgres_up;
    policy::home_kind home{policy::home_kind::engine};
    std::uint64_t epoch{};
    bool served{true};

    std::uint64_t samples{};
    std::uint64_t sample_errors{};
    std::optional<double> sample_seconds;
    std::optional<policy::time_point> sampled_at;
    std::map<policy::window_quality, std::uint64_t> windows;
};

struct process_usage {
    double cpu_seconds{};
    double resident_bytes{};
    double virtual_bytes{};
    double open_fds{};
    double max_fds{};
    double start_seconds{};
};
process_usage read_process_usage();  // from /proc; zero where it cannot be read

struct build {
    std::string version;
    std::string revision;
    std::string compiler;
};

struct fleet_snapshot {
    bool store_up{false};
    bool leads{false};
    std::uint64_t leader_number{};
    std::uint64_t held_tools{};
    std::uint64_t unconfirmed_tools{};
    std::uint64_t store_statements{};
    std::uint64_t elections{};
};

struct snapshot {
    build what;
    std::vector<tool_snapshot> tools;
    std::uint64_t client_connections{};
    std::uint64_t client_connections_total{};
    std::map<std::string, std::uint64_t, std::less<>> limit_hits;  // by limit_names
    std::uint64_t log_suppressed{};
    std::uint64_t recorded_bytes{};
    std::uint64_t recording_errors{};
    std::optional<fleet_snapshot> fleet;
    bool config_ok{true};
    policy::time_point config_at{};
    std::uint64_t config_reloads_ok{};
    std::uint64_t config_reloads_failed{};
    std::string config_hash;
    process_usage process;
};

}  // namespace hotlane::metrics
