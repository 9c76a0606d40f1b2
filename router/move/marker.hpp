// The marker: the row in the tool's PostgreSQL database that decides where the tool lives.
//
//   away(e)     the engine serves              staging(m)  the engine serves, a copy is being built
//   serving(e)  PostgreSQL serves              fenced(m)   nobody accepts writes, on the way back
//
//   away(e) -> staging(m) -> serving(e+1) -> fenced(m) -> away(e+2)     undo: one step back
//
// Each change is an UPDATE that names the state, move and epoch that it expects (compare and set),
// in the one transaction that also does what the change means.
#pragma once

#include <string>
#include <vector>

#include "router/move/link.hpp"

namespace hotlane::move {

enum class marker_state : std::uint8_t { away, staging, serving, fenced };
std::string_view to_string(marker_state state) noexcept;

struct marker {
    marker_state state{marker_state::away};
    std::string move;
    std::uint64_t epoch{};
    std::vector<std::string> tables;  // of the move, in order: recovery without a store needs them
    std::string schema;               // the tool's
    std::uint64_t leader{0};          // in a fleet: the number that the row must still have
};

// Makes schema, table and the first row (away at `epoch`) where they are missing.
answer<void> ensure_marker(home_link& postgres, const std::string& tool, std::uint64_t epoch);

// nullopt: no table or no row. `wait`: inside a transaction of its own, behind whoever changes it
// now, so that a COMMIT under way is seen.
answer<std::optional<marker>> read_marker(home_link& postgres, const std::string& tool, bool wait);
// Tools that have a row in this database.
answer<std::vector<std::string>> marked_tools(home_link& postgres);

// In a fleet: the row belongs to the leader with this number, if none as high was there before.
// False: one was, or there is no row; `seen` says how high (0: no row).
answer<bool> claim_marker(home_link& postgres,
                          const std::string& tool,
                          std::uint64_t number,
                          std::uint64_t& seen);

// Inside the caller's transaction. False: the row says something else now.
answer<bool> change_marker(home_link& postgres,
                           const std::string& tool,
                           const marker& expected,
                           const marker& next);

// BEGIN and COMMIT with lock and statement time-outs; ROLLBACK never matters.
answer<void> begin(home_link& postgres, std::chrono::milliseconds lock_timeout);
answer<void> commit(home_link& postgres);
void rollback(home_link& postgres);

// Sends one statement whose rows nobody needs.
answer<void> send(home_link& link, const std::string& sql);

}  // namespace hotlane::move
