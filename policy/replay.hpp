// Recorded counters through the very same code: what would this policy have done?
//
// A trace is CSV with a header and the columns t_ms, acquire_total, handoff_total, wait_us_total,
// commit_total, phase. What the data plane would have seen is not in it and is made up from
// `reports`: a share of the acquisitions seen, and a share of those that conflicted.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "policy/engine.hpp"

namespace hotlane::policy {

struct trace_row {
    duration at{};
    std::uint64_t acquires{};
    std::uint64_t handoffs{};
    std::uint64_t wait_us{};
    std::uint64_t commits{};
    std::string phase;
};

// The error names the line and what is wrong with it.
tl::expected<std::vector<trace_row>, std::string> parse_trace(std::string_view csv);

enum class conflict_source : std::uint8_t {
    aborts,  // as many conflicts as acquisitions that came to nothing
    none,    // the data plane saw no conflict
};

struct seen_report {
    double seen_share{1.0};
    conflict_source conflicts{conflict_source::aborts};
};

// One moment of what is replayed. `home`: where the tool lived when it was recorded.
struct replay_step {
    time_point at{};
    sample counters;
    traffic seen;
    std::vector<write_interval> writes;  // that ended since the step before
    home_kind home{home_kind::engine};
    std::string phase;
};

struct replay_options {
    settings with;
    std::string tool{"trace"};
    std::map<std::string, seen_report> reports;  // by phase; others: everything seen, aborts
    fleet_view fleet;
    // Moves that the policy starts end well after so long; unset: they never end.
    std::optional<duration> move_takes;
    duration move_holds{};  // what each costs the clients
};

struct replay_entry {
    time_point at{};
    std::string phase;  // of the row that closed the window
    window measured;
    verdict says{verdict::unknown};
    stage stands{stage::watching};
    std::vector<decision> decisions;
    std::vector<command> commands;
};

struct replay_move {
    time_point started{};
    std::optional<time_point> ended;
    home_kind to{home_kind::postgres};
};

struct replay_result {
    time_point began{};
    std::vector<replay_entry> timeline;
    std::vector<replay_move> moves;
    int flaps{0};     // moves out soon after a return
    duration held{};  // by all moves together
    runbook_state last;
    [[nodiscard]] std::vector<decision> decisions() const;
    [[nodiscard]] int entries_into(stage s) const;  // how often a decision led there
};

std::vector<replay_step> steps_of(const std::vector<trace_row>& rows,
                                  const replay_options& options);

// Steps closer together than window.length are skipped, so a 0.5 s trace serves 5 s windows. Where
// the policy has the tool on the engine while it was recorded on PostgreSQL, the shadow lane makes
// the counters from the recorded writes; the other way round only the writes are looked at.
replay_result replay(const std::vector<replay_step>& steps, const replay_options& options);
replay_result replay(const std::vector<trace_row>& rows, const replay_options& options);

std::string to_text(const replay_result& result);     // the whole timeline
std::string summary_of(const replay_result& result);  // moves, flaps, holds, where it ends

// Decisions, moves and costs that differ between two policies over the same steps; empty: none do.
std::string compare(const replay_result& before, const replay_result& after);

}  // namespace hotlane::policy
