// What one window says, and what several say together.
//
// The unit of proof: k of the last n good windows AND the rates pooled over the n. The windows that
// agree must themselves cover at least proof_min (never under 10 s, whatever the settings): where k
// windows are shorter than that, k grows until they cover it and n with it, in proportion. Windows
// that are not good are not there: they change no count, but time passes and what is too old falls
// out.
#pragma once

#include <vector>

#include "policy/settings.hpp"
#include "policy/types.hpp"

namespace hotlane::policy {

// Which thresholds a window is measured against: to be called hot, or to be still called hot.
enum class level : std::uint8_t { enter, leave };

struct thresholds {
    double handoff_rate{};
    double mean_wait_us{};
    double abort_rate{};
    double conflict_rate{};  // of the writes that the data plane saw
};

// `commit_latency`: what a commit that waits for nobody costs now.
thresholds thresholds_of(const settings& with,
                         level at,
                         std::chrono::microseconds commit_latency) noexcept;

// The three ways into `flagged`.
bool is_lane_hot(const window& w, const thresholds& over) noexcept;
bool is_abort_hot(const window& w, const thresholds& over) noexcept;
bool is_conflict_hot(const window& w, const thresholds& over) noexcept;

// hot or calm for a good window; idle for an idle one; unknown for all others.
verdict judge(const window& w, const thresholds& over) noexcept;

struct proof {
    verdict standing{verdict::unknown};  // hot or calm when proven, else unknown
    bool by_lane{false};                 // pooled handoff rate and mean wait are over
    bool by_aborts{false};               // pooled abort rate is over
    bool by_conflicts{false};            // pooled conflict rate is over
    int hot{};                           // of the windows looked at
    int calm{};
    int needed{};         // k
    int wanted{};         // n
    duration hot_for{};   // load that the hot ones cover
    duration calm_for{};  // and the calm ones
    duration long_hot{};  // load of hot windows within the long view
    thresholds over;
    window pooled;
    std::vector<window> windows;  // good ones, oldest first
};

// At most one hot window short of a proof.
bool is_warm(const proof& made) noexcept;

// How many good windows a proof looks at (n) and how many of them must agree (k).
struct proof_size {
    int wanted{};
    int needed{};
    duration covered_min{};
};
proof_size size_of_proof(const settings& with) noexcept;

// The shortest time that a proof takes under steady load.
duration proof_time(const settings& with) noexcept;

// The longest that a window may lie back and still count.
duration window_age_max(const settings& with) noexcept;

// The number of windows that a proof or the long view may look at.
std::size_t windows_kept(const settings& with) noexcept;

// `not_before`: windows that began earlier do not count (a lever was pulled in between).
proof prove(const std::vector<window>& windows,
            const settings& with,
            level at,
            std::chrono::microseconds commit_latency,
            time_point not_before,
            time_point now);

}  // namespace hotlane::policy
