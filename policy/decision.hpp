// A decision as a record: what was chosen, on what grounds, by how much, and what would change it.
// The same record feeds the log, the journal, the API, the page and `hotlane explain`.
#pragma once

#include <string>
#include <vector>

#include "policy/diagnosis.hpp"
#include "policy/state.hpp"

namespace hotlane::policy {

// One figure against its threshold. `passed`: it speaks for what was decided.
struct measure {
    std::string name;  // "handoff rate"
    std::string unit;  // "", "us", "windows", "s"
    double value{};
    double threshold{};
    bool passed{false};
    [[nodiscard]] double margin() const noexcept { return value - threshold; }
};

struct decision {
    std::uint64_t id{};  // given by the store
    std::string tool;
    time_point at{};
    stage from{stage::watching};
    stage to{stage::watching};  // same as `from`: something is reported, nothing changed
    mode act_mode{mode::observe};
    std::string event;   // what the runbook was told: "window", "shard_done", ...
    std::string rule;    // name of the runbook's row
    std::string where;   // file:line of the policy
    std::string policy;  // its name

    std::vector<window> windows;  // the ones it stands on
    std::vector<measure> measures;
    finding found;

    // Beside the move: the other tools on the engine before and after, and what was expected of the
    // tool itself against what came true.
    std::optional<neighbour_view> neighbours_before;
    std::optional<neighbour_view> neighbours_after;
    std::optional<home_figures> forecast;  // at PostgreSQL
    std::optional<home_figures> came_true;
    std::optional<lane_rates> foreseen;  // on the engine
    std::optional<lane_rates> seen_at_home;

    std::string reason;        // one sentence: why
    std::string would_change;  // one sentence: what would have led elsewhere
    std::string done;          // what was done, or would be in mode act
    bool advice{false};        // lever 2 is asked for
    bool alert{false};         // a person is asked
    std::string alert_key;     // alerts of the same key are one ("incident" spans all tools)
};

// Several lines of plain text, newest facts first, no trailing newline.
std::string explain(const decision& made);

// How the tool stands now: what, why, since when, what next, what would change it.
std::string explain(const std::string& tool,
                    const runbook_state& state,
                    const settings& with,
                    time_point now);

// Text of a moment and of a length, used by both: "2026-07-03 14:05:09Z", "2 min 5 s".
std::string text_of(time_point at);
std::string text_of(duration length);

}  // namespace hotlane::policy
