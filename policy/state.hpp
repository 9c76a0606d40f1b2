// Everything the runbook remembers of one tool: a plain value that survives restarts.
//
// What is not here (the last reading) costs one window after a restart, never more. Bounds: windows
// and peaks are rings, calm_at holds at most calm_windows entries.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "policy/settings.hpp"
#include "policy/shadow.hpp"
#include "policy/types.hpp"

namespace hotlane::policy {

// The busiest window of a stretch of time: writes/s times durable latency.
struct peak {
    time_point start{};
    double lane_use{};
};

// What a move cost the tool's clients, for the budget of a day.
struct pause {
    time_point at{};
    duration held{};
};

struct runbook_state {
    stage at{stage::watching};
    time_point since{};  // when it entered this stage
    home_kind home{home_kind::engine};
    std::optional<time_point> home_since;  // known after its first move
    std::optional<time_point> hot_since;   // proven hot, and not calm since
    std::optional<time_point> warm_since;  // one hot window short of a proof, or more
    bool in_incident{false};               // hot together with others: not its own doing
    diagnosis why{diagnosis::none};        // latest, while hot
    std::optional<time_point> why_since;   // it was another one before, in the same heat
    std::string table;                     // the hot table, where it is known

    bool sharded{false};         // an operator said `shard done`
    bool lever2_over{false};     // done, skipped or waited for: lever 3 is next
    bool moved_by_order{false};  // the running move is an operator's
    time_point evidence_from{};  // windows that began earlier do not count
    duration load{};             // covered by good windows since then

    std::optional<pin> pinned;
    std::optional<time_point> quiet_until;  // cooldown after a failed or refused move
    int failures{0};                        // in a row; the cooldown doubles with each
    int flaps{0};                           // moved out again soon after a return
    std::optional<time_point> returned_at;  // the last time that it came home
    time_point trouble_at{};                // last failure, flap or proof of heat

    std::string said;                   // what was reported in this stage already: ",key,key,"
    std::optional<time_point> said_at;  // the last time: would_ steps are said again later
    bool advice{false};                 // lever 2 is being asked for
    bool alert{false};                  // a person is being asked

    std::optional<std::int64_t> commit_latency_us;  // tracked: a commit that waits for nobody
    std::vector<window> windows;                    // at home on the engine, oldest first
    std::vector<window> away_windows;               // on PostgreSQL
    std::vector<peak> peaks;                        // of return_settings::lookback
    std::vector<time_point> calm_at;                // calm windows in a row on PostgreSQL
    std::vector<pause> pauses;                      // of the last 24 h

    // What was foreseen of a move, and what came true.
    std::optional<std::int64_t> lane_us;     // measured: how long one write takes the lane
    std::optional<home_figures> forecast;    // at PostgreSQL, when it was moved there
    std::optional<home_figures> came_true;   // measured there after the move
    std::optional<lane_rates> foreseen;      // on the engine, when it was brought home
    std::optional<lane_rates> seen_at_home;  // measured there after the return
    double foresight_error{0.0};             // of the handoff rate, tracked
    double foresight_wait_factor{1.0};       // measured / predicted mean wait, tracked, at least 1
    std::optional<neighbour_view> neighbours_before;  // of the move out
    std::optional<neighbour_view> neighbours_after;
    bool check_due{false};  // the last move is to be compared with its forecast
};

inline constexpr std::size_t windows_kept_max = 256;

// Since when a tool counts for an incident: from its first hot window on, before it is proven.
std::optional<time_point> heat_since(const runbook_state& state) noexcept;

std::chrono::microseconds commit_latency_of(const runbook_state& state, const settings& with);

// Flat text form: one pair for each scalar, one for each window, peak and calm window.
using flat_state = std::vector<std::pair<std::string, std::string>>;
flat_state to_pairs(const runbook_state& state);

// Unknown keys are ignored (a newer version wrote them); a value that cannot be read is an error
// that names its key.
tl::expected<runbook_state, std::string> from_pairs(const flat_state& pairs);

}  // namespace hotlane::policy
