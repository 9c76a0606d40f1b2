// A move: the job that changes a tool's home. What the control plane calls.
//
// Blocking, readable code over libpq; runs on the caller's thread. Every phase is journalled before
// it starts. Whatever happens (error, time-out, kill -9), the tool ends at exactly one home, chosen
// by the marker in its PostgreSQL database (router/move/marker.hpp).
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <tl/expected.hpp>

#include "config/model.hpp"
#include "policy/types.hpp"
#include "router/move/fleet.hpp"
#include "router/move/live.hpp"
#include "router/placement/route.hpp"
#include "router/placement/store.hpp"

namespace hotlane::move {

enum class phase {
    preflight,
    stage,
    rehearse,
    ahead,  // rows are copied while the tool works
    hold,
    fence,
    settle,  // what changed since `ahead` is brought over
    copy,    // of what was not copied ahead
    verify,
    commit,
    open,
    release,
    clean,
    done
};
std::string_view to_string(phase p) noexcept;

// The journal's outcome of a dry run that made scratch tables on the engine: they are cleaned up
// like those of an undone move if it could not do so itself.
inline constexpr std::string_view dry_run_outcome = "dry_run";

struct request {
    std::string tool;
    policy::home_kind to{};
    std::string ordered_by;
    std::string decision;  // id of the decision, empty for an operator's order
    bool execute{false};   // false: preflight only, nothing is changed (--dry-run)
    std::chrono::milliseconds hold_max{2'000};  // client-visible pause allowed
};

// One reason why a move cannot start or went back; `mend` says what to do about it.
struct refusal {
    std::string code;     // stable word: target_down, fsync_off, no_rights, bad_value, ...
    std::string message;  // names table, column, key where there are any
    std::string mend;
};

struct report {
    std::string id;
    bool moved{false};                  // the tool lives at request.to now
    std::vector<refusal> refusals;      // why not
    std::chrono::milliseconds held{0};  // client-visible pause
    nlohmann::json detail;              // tables, rows, forecast, checksums, time of each phase
    std::string reverse;                // the command that undoes it
};

// What a move needs from its surroundings.
struct surroundings {
    const config::model& model;
    placement::tool_table& tools;
    placement::store& store;
    std::function<policy::time_point()> now;
    std::function<void(const placement::move_record&)> progress;  // after each journalled step
    const std::atomic<bool>* stop{nullptr};                       // shutdown
    move::fleet* others{nullptr};                                 // the fleet; nullptr: alone
    const std::atomic<bool>* abort{nullptr};                      // an operator's order
    live_figures* live{nullptr};                                  // what is shown meanwhile
    bool doubted{false};  // see(): an answer came as from a fence, so the engine's names are read
};

// Runs one move to its end. Holds and releases the tool's gate, swaps its route. Never throws.
report run(const request& what, surroundings& around);

// Before a tool is served: finishes or undoes what an earlier process left, reads the markers at
// the homes, repairs the store, and sets the tool's route. While the homes cannot tell, the route
// is `served = false` with the reason and the caller tries again. Returns true when the route is
// set.
bool recover(placement::tool_entry& tool, surroundings& around);

// Where the homes say that the tool lives now; changes nothing, nowhere.
struct sight {
    bool known{false};
    policy::home_kind home{};
    std::uint64_t epoch{};
    bool confirmed{false};  // a marker said so
    std::string reason;     // not known: why
};
sight see(placement::tool_entry& tool, surroundings& around);

// What a look at a tool's homes found; nothing is changed anywhere. `detail` has `problems` where
// it is not good.
struct checked {
    bool good{false};
    nlohmann::json detail = nlohmann::json::object();
};
// Do the homes hold what the last move left there, and do all values read? (verify.hpp)
checked verify(placement::tool_entry& tool, surroundings& around);
// How to run the tool without hotlane. (eject.hpp)
checked eject(placement::tool_entry& tool, surroundings& around);

// An operator's word where the homes cannot tell any more: `home` holds from now on. (adopt.hpp)
struct adoption {
    std::string tool;
    policy::home_kind home{};
    std::string ordered_by;
    bool execute{false};  // false: only what is there, and what it would mean
};
struct adopted {
    bool done{false};  // the tool is served there
    std::vector<refusal> refusals;
    nlohmann::json detail = nlohmann::json::object();
};
adopted adopt(const adoption& what, surroundings& around);

// The journal's outcome of an adoption: nothing of it is ever dropped.
inline constexpr std::string_view adopted_outcome = "adopted";

// After `keep`: drops the fenced copy that a finished move left, unless the old home changed since
// (late writes: returns the alarm's text and drops nothing).
struct cleaned {
    bool dropped{false};
    std::string late_write;  // not empty: the alarm
};
cleaned clean(const placement::move_record& finished, surroundings& around);

// The fault points of tests: HOTLANE_CRASH_AT=N ends the process with SIGKILL just before the N-th
// statement that a move sends to a home or writes to its journal; N with suffix "r" sends it first
// and dies before the reply is read. Counted from 1 in each process.

}  // namespace hotlane::move
