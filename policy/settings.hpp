// What an operator may set for a tool's decisions: the typed policy, with defaults.
// config/ fills this from YAML; policy/ reads it. Every value has a unit in its type or name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/types.hpp"

namespace hotlane::policy {

// While it stands the policy moves the tool nowhere, and an operator only to `home`.
struct pin {
    home_kind home{home_kind::engine};
    time_point until{};  // no pin without an end
    std::string by;
    std::string reason;
};

// A stretch of time in which the policy moves nothing: hours of chosen weekdays, or from a moment
// to another. All in UTC; hours may go over midnight and belong to the day on which they begin.
struct freeze {
    std::uint8_t days{0x7f};           // bit 0: Monday
    duration from{};                   // of the day
    duration to{86'400'000};           // equal to or before `from`: of the next day
    std::optional<time_point> begins;  // set with `ends`: instead of days and hours
    std::optional<time_point> ends;
    std::string reason;
};

enum class lever : std::uint8_t { retry, shard, route };
inline constexpr std::size_t lever_count = 3;
std::string_view to_string(lever one) noexcept;
std::vector<lever> all_levers();  // in their usual order

// What is done about a tool whose writers only queue.
enum class busy_handling : std::uint8_t { report, route, ignore };

struct settings {
    std::string name{"default"};  // the policy's name
    std::string where;            // file:line of its definition, for decisions

    mode act_mode{mode::observe};

    struct window_settings {
        duration length{2'500};          // one window
        int hot_of{4};                   // k: windows that must be hot ...
        int out_of{6};                   // n: ... of the last n that carried load
        std::uint64_t min_acquires{50};  // fewer in a window: idle
        duration proof_min{10'000};      // proof never takes less (lower bound 10 s, enforced)
        int age_max{12};  // windows older than this many lengths prove nothing (at least 3 n)
        // The long view: besides the proof, so much heat within so long. 0: the proof is enough.
        duration long_span{0};
        duration long_hot{0};
    } window;

    struct detect_settings {
        double handoff_rate_enter{0.5};  // 0..1
        double handoff_rate_leave{0.3};  // below enter
        duration mean_wait_enter{0};     // 0: use mean_wait_enter_commits
        duration mean_wait_leave{0};
        double mean_wait_enter_commits{1.0};  // times the uncontended commit latency now
        double mean_wait_leave_commits{0.6};
        duration commit_latency{5};    // assumed until it is measured
        double abort_rate_enter{0.3};  // 0..1; the second way into flagged
        double abort_rate_leave{0.15};
        double conflict_rate_enter{0.3};  // 0..1 of the writes seen; the third way
        double conflict_rate_leave{0.1};
    } detect;

    struct diagnosis_settings {
        double conflict_rate_hot{0.1};  // 0..1 of the writes seen: at or above, a hot row
        double seen_share_min{0.8};     // below, the diagnosis is unknown
        busy_handling busy_lane{busy_handling::report};
    } diagnose;

    // Lever 1: an autocommit statement that ended in a write conflict is sent again.
    enum class retry_when : std::uint8_t {
        off,
        flagged,  // in mode act, while the runbook is at work
        always
    };
    struct retry_settings {
        retry_when when{retry_when::flagged};
        int attempts{100};        // after the first
        duration time{5'000};     // from the first try to the last
        duration pause_first{2};  // upper edge of the first pause; doubles
        duration pause_max{100};
        std::uint64_t size{64 * 1024};  // a longer request, or reply, is not kept for it
    };

    struct lever_settings {
        std::vector<lever> order{all_levers()};
        retry_settings retry;                 // lever 1
        bool retry_first{false};              // give it time before the next lever ...
        duration retry_deadline{300'000};     // ... but not longer than this
        bool shard{true};                     // lever 2
        duration shard_deadline{86'400'000};  // how long the advice waits
        duration diagnose_deadline{60'000};   // how long flagged waits for a diagnosis
        duration remeasure{30'000};           // load after lever 2 before the next step
        bool route{true};                     // lever 3
    } levers;

    struct rail_settings {
        int moves_at_once{1};          // over all tools
        int moves_per_hour{4};         // over all tools
        duration min_stay{1'800'000};  // at a home before the policy moves it again
        duration cooldown{300'000};    // after a failed or refused move; doubles
        duration cooldown_max{86'400'000};
        duration forgive_after{86'400'000};  // calm time after which the back-off is forgotten
        duration hold_max{2'000};            // client-visible pause that a move may cost
        int incident_tools{3};               // that many tools hot at once: nothing moves
        duration incident_hold{3'600'000};   // so long; then it is load, and tools move one by one
        duration pin_max{2'592'000'000};     // no pin lasts longer
        // How many tools the policy may keep away from the engine: the smaller of the two, at least
        // one, and never all of several.
        double away_share{0.5};  // of the tools known
        int away_max{1'000};
        duration hold_budget{60'000};  // pauses of one tool in 24 h, together; 0: no budget
        std::vector<freeze> freezes;
    } rails;

    struct return_settings {
        bool enabled{true};
        int calm_windows{24};           // in a row, each under real load
        std::uint64_t min_writes{10};   // a window with fewer proves nothing
        double lane_use_max{0.2};       // writes/s times durable latency, far below one
        duration lookback{86'400'000};  // the busiest window in it counts too
        // Predicted rates must stay below the thresholds for leaving by this share of them, and by
        // as much more as the last predictions of this tool were wrong.
        double margin{0.2};
    } come_back;

    std::optional<pin> pinned;  // of the configuration; it ends like any other
};

// The rails' own truth: a proof is never shorter than this, whatever the file says.
inline constexpr duration proof_floor{10'000};

}  // namespace hotlane::policy
