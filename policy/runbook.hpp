// The runbook: one table of (stage, event) rows that turns evidence into steps for one tool.
//
//     watching -> flagged -> sharding -> remeasuring -> watching (sharded)
//                    |                        |
//                    +------------------------+-> moving_out -> on_postgres -> moving_back ->
//                    watching
//                                                 (would_move)  (would_return)
//
// Rows of one pair are tried in order, the last one has no guard: the table is total (checked when
// it is compiled). In mode observe and advise a row that would touch the world is replaced by its
// would_ twin under the same guards; nothing else depends on the mode. The table: runbook_table.cpp
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policy/decision.hpp"
#include "policy/diagnosis.hpp"
#include "policy/settings.hpp"
#include "policy/state.hpp"
#include "policy/verdict.hpp"

namespace hotlane::policy {

// What the fleet looks like at this moment; the caller refreshes it after every move it starts.
struct fleet_view {
    int moves_running{0};
    int moves_last_hour{0};
    int tools_hot_together{0};  // on its storage; see incident_size
    bool has_target{true};      // the tool has a PostgreSQL home configured
    int tools{0};               // known; 0: not said, so no share can be taken of them
    int tools_away{0};          // on PostgreSQL, or on the way there
    std::optional<neighbour_view> neighbours;  // the other tools on the engine
    std::optional<postgres_model> target;      // its PostgreSQL home, measured lately
};

// How many tools the policy may keep away: at least one, never all of several.
int away_cap(const settings& with, int tools) noexcept;

// The most tools that turned hot within one proof time of each other. `hot_since`: heat_since() of
// every tool on the same storage, where it has one.
int incident_size(std::vector<time_point> hot_since, duration proof_time);
// The same, of those that turned hot within incident_hold: older heat is load, not an incident.
int incident_size(std::vector<time_point> hot_since, const settings& with, time_point now);
// Without `now` heat of any age counts.
int incident_size(std::vector<time_point> hot_since, const settings& with);

enum class event_kind : std::uint8_t {
    window,          // a window was closed and judged
    tick,            // time has passed
    shard_done,      // an operator sharded the hot row
    shard_skipped,   // or will not
    move_ok,         // the running move ended
    move_failed,     // it was undone
    move_refused,    // preflight said no; nothing was touched
    order,           // an operator orders the tool to a home
    found_engine,    // recovery read the markers: the tool lives on the engine
    found_postgres,  // on PostgreSQL
    pin_set,
    pin_cleared,
};
inline constexpr std::size_t event_kinds = 12;
inline constexpr std::size_t stages = 9;
std::string_view to_string(event_kind kind) noexcept;

struct event {
    event_kind kind{event_kind::tick};
    home_kind to{home_kind::engine};  // order
    std::string who;                  // order, pin_set, shard_*: who said so
    std::string text;                 // move_*: reason
    pin wanted;                       // pin_set
    duration held{};                  // move_*: what it cost the clients
};

// What the windows say, judged once for an event.
struct evidence {
    proof enter;  // against the thresholds for being called hot
    proof leave;  // against those for still being called hot
    finding found;
    // On PostgreSQL: predicted lane use.
    double lane_use{0.0};                 // of the last window under load
    double lane_use_peak{0.0};            // busiest within the look-back
    int calm_windows{0};                  // in a row
    std::optional<lane_rates> predicted;  // of the calm windows together
    thresholds back;                      // what the prediction must stay below to go home
    // What the clients would see on PostgreSQL, or see there now.
    std::optional<home_figures> forecast;
    std::optional<home_figures> here;
};

enum class command_kind : std::uint8_t { start_move, raise_advice, clear_advice };
struct command {
    command_kind kind{command_kind::start_move};
    home_kind to{home_kind::postgres};  // start_move
    std::string who;                    // start_move: "policy" or the operator
};

// Everything a guard may look at.
struct context {
    const settings& with;
    const runbook_state& state;
    const event& what;
    const evidence& seen;
    const fleet_view& fleet;
    time_point now{};
};

enum class effect : std::uint8_t {
    none,
    flag,             // hot from now on
    calm_down,        // no longer hot: forgets the diagnosis, clears advice and alert
    join_incident,    // hot with others: what is measured from now on is not its own doing
    end_incident,     // measured afresh
    advise_shard,     // raises the advice
    end_lever2,       // done (with shard_done), skipped or deadline: measure afresh
    note_sharded,     // remembers `shard done` and changes nothing else
    start_out,        // start_move to PostgreSQL
    start_back,       // start_move to the engine
    arrive_out,       // lives on PostgreSQL now
    arrive_back,      // lives on the engine now
    cool_after_fail,  // the cooldown doubles
    set_pin,
    clear_pin,
    forgive,          // back-off forgotten
    check_arrival,    // compares the move out with what was expected of it
    check_foresight,  // compares the return with what was predicted
    refuse,           // an operator's wish cannot be granted: says why
};

// When a row writes a decision.
enum class report : std::uint8_t {
    silent,
    always,
    once,   // once in a stage for each reason
    again,  // and again when the cooldown has passed
};

struct row {
    std::uint16_t from{};  // set of stages, bit = stage
    event_kind on{};
    bool (*when)(const context&){};  // nullptr: always
    std::optional<stage> next;       // nullopt: stay
    effect then{effect::none};
    report say{report::silent};
    bool alert{false};              // asks a person (mode advise and act)
    std::string_view name;          // the rule, in decisions
    std::string_view reason;        // why, in a sentence
    std::string_view would_change;  // what would have led elsewhere
};

constexpr std::uint16_t bit(stage s) noexcept {
    return static_cast<std::uint16_t>(1U << static_cast<unsigned>(s));
}

std::span<const row> runbook_table() noexcept;

// The row that answers; there always is one.
const row& row_for(const context& at) noexcept;

struct outcome {
    std::vector<decision> decisions;
    std::vector<command> commands;
    std::string refusal;  // an operator's order, shard or pin was refused: why
    explicit operator bool() const noexcept {
        return !decisions.empty() || !commands.empty() || !refusal.empty();
    }
};

// The lever that comes next for a hot row; nothing: none is left.
std::optional<lever> next_lever(const context& at);

// One step: finds the row, changes `state`, adds to `out`. True: the same event goes on from here.
bool step(runbook_state& state,
          const settings& with,
          const std::string& tool,
          const event& what,
          const evidence& seen,
          const fleet_view& fleet,
          time_point now,
          outcome& out);

// Which rail stops a move to `to` right now. An operator's order bypasses thresholds and waiting
// times, but not safety.
enum class mover : std::uint8_t { policy, operator_order };
struct block {
    std::string rail;  // empty: nothing stops it
    std::string text;
    explicit operator bool() const noexcept { return !rail.empty(); }
};
block why_blocked(const context& at, home_kind to, mover by);

// When the policy may move again; nothing: it is not frozen now.
std::optional<time_point> frozen_until(const std::vector<freeze>& all, time_point now) noexcept;

// Pauses of the last 24 h, together.
duration held_lately(const runbook_state& state, time_point now) noexcept;

// Waiting times with their doubling applied.
duration min_stay_of(const runbook_state& state, const settings& with) noexcept;
duration cooldown_of(const runbook_state& state, const settings& with) noexcept;

}  // namespace hotlane::policy
