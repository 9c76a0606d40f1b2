// What the parts of a move share: its surroundings, its journal record, its plan, its links.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "router/move/ahead_sums.hpp"
#include "router/move/link.hpp"
#include "router/move/marker.hpp"
#include "router/move/move.hpp"
#include "router/move/plan.hpp"
#include "router/move/step.hpp"

namespace hotlane::move {

using steady = std::chrono::steady_clock;
using outcome = tl::expected<void, refusal>;

// Time limits of a move. Each statement to a home has one; none waits for ever.
struct time_limits {
    std::chrono::milliseconds connect{2'000};
    std::chrono::milliseconds statement{10'000};
    std::chrono::milliseconds scan{3'600'000};   // preflight reads every row, nothing is held
    std::chrono::milliseconds lock{500};         // one try for a lock at PostgreSQL
    std::chrono::milliseconds rehearse{30'000};  // all statements together, nothing is held
    std::chrono::milliseconds settle{10'000};    // a failed move asks this long before it lets go
    std::chrono::milliseconds settle_pause{100};
};

struct context {
    surroundings& around;
    placement::tool_entry& tool;
    connector& homes;
    stepper& steps;
    time_limits limit{};
};

// What preflight found.
struct findings {
    plan made;
    std::optional<marker> at_start;  // nullopt: first contact
    std::string shape;               // of PostgreSQL's tables, on the way back
    std::vector<refusal> refusals;
    nlohmann::json detail = nlohmann::json::object();
    std::size_t ddl_statements{};  // that were known
    std::unique_ptr<home_link> engine, postgres;
};

class decoding;

// One move under way.
struct active_move {
    context& with;
    placement::move_record record;
    findings found;
    steady::time_point started{};
    steady::time_point held_at{};
    std::chrono::milliseconds hold_max{};
    bool holding{false};
    std::vector<std::string> alarms;
    ahead_state ahead;
    // Of a copy that runs ahead, on the way back. Ended when the clients go on, not before: to drop
    // what it needs takes time.
    std::shared_ptr<decoding> changes{};

    [[nodiscard]] plan& made() { return found.made; }
    [[nodiscard]] home_link& engine() { return *found.engine; }
    [[nodiscard]] home_link& postgres() { return *found.postgres; }
};

// Makes `p` durable as the move's phase, before it starts.
outcome enter(active_move& m, phase p);
// Writes the record as it is. False: the store refused.
bool write_journal(context& with, placement::move_record& record);

// Stops the move when the operator asked, or the hold lasts too long.
outcome may_go_on(const active_move& m);

refusal home_failed(policy::home_kind home, std::string_view doing, const link_error& error);

// The two directions, up to the flip and beyond. An error means: resolve.
outcome move_out(active_move& m);
outcome move_back(active_move& m);
// Shared: the statements of lately, prepared at the new home (rehearse.cpp).
outcome rehearse_statements(active_move& m);
// The same for a dry run, on tables that are made for it; what it finds is added to m.found.
void rehearse_trial(active_move& m);
// Notes, before it begins, work of ours on the engine that belongs to no move that is remembered:
// it moves the engine's LSN, and is no late write. False: the store refused.
bool note_own_work(context& with);
// Such work was noted since then, or nobody can tell.
bool worked_since(context& with, policy::time_point start);
// Shared: hold and drain, in a fleet everywhere.
outcome hold_tool(active_move& m);
// In a fleet: takes the marker over for this leader, so that one who was replaced changes nothing
// there any more. Its number is left in `number`; alone: 0.
answer<void> claim(context& with, home_link& postgres, std::uint64_t& number);
// Shared: the levers, tried on scratch tables of the engine.
outcome try_levers(active_move& m);

// Finishes or undoes a move, or finds out where a tool without one lives (decide.hpp).
struct settled {
    bool known{false};
    policy::home_kind where{};
    std::uint64_t epoch{};
    std::string move;       // that brought the tool there
    std::string reason;     // not known: why, and what is waited for
    bool confirmed{false};  // look(): a marker said so, not only the store
    std::vector<std::string> alarms;
};
// A journal that this very process wrote has no missing end; one that a fleet's leader found may.
enum class journal_of : std::uint8_t { this_process, another };
settled resolve(context& with, placement::move_record* unfinished, journal_of written_by);
// The same without changing anything anywhere.
settled look(context& with);

// Runs what preflight allowed. The simulation enters here.
report execute(context& with, const request& what, findings found, policy::time_point now);
// The bodies of recover() and clean().
bool recover_tool(context& with);
// Adoptions that a process did not come to the end of: the tool's epoch tells what became of them.
void end_adoptions(context& with, std::uint64_t epoch);
cleaned clean_with(context& with, const placement::move_record& finished);

// The tool's schema on PostgreSQL, its default filled in.
std::string schema_of(const config::tool& t);
// Where the homes of a tool are, for the data plane (role of the tool) and for a move (admin).
placement::home client_home(const config::model& model, const config::tool& t, policy::home_kind k);
placement::home admin_home(const config::model& model, const config::tool& t, policy::home_kind k);

// Preflight of one direction; nothing is changed at any home.
findings look_out(context& with, const request& what, const std::string& id);
findings look_back(context& with, const request& what, const std::string& id);

}  // namespace hotlane::move
