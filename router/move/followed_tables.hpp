// Which tables logical decoding can follow, what it needs of the server, and what is left of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "router/move/link.hpp"
#include "router/move/plan.hpp"

namespace hotlane::move {

// A table of the plan as decoding can follow it.
struct followed_table {
    std::uint32_t oid{};
    std::uint64_t file{};  // another one: the rows were written anew (TRUNCATE, VACUUM FULL)
    char identity{}, persistence{};
    std::string why_not;  // not empty: it cannot, and why; its rows are copied under the hold
};
// In the plan's order. A table that is not there has oid 0. `schema`: where they are now.
answer<std::vector<followed_table>> read_followed_tables(home_link& postgres,
                                                         const plan& p,
                                                         const std::string& schema);

// Only keys are published where the server can (15 and later), and only tables that decoding can
// follow: one without a replica identity would have its UPDATEs refused.
answer<std::string> publication_sql(home_link& postgres,
                                    const plan& p,
                                    const std::vector<followed_table>& tables);

// What stands against decoding at this server, with its mend; nothing is changed there. nullopt:
// nothing.
answer<std::optional<refusal>> why_no_decoding(home_link& postgres,
                                               const plan& p,
                                               const std::vector<followed_table>& tables,
                                               std::chrono::milliseconds lock_timeout);

// Drops slot and publication of a move, and of all moves in this database where none is named
// (where no move of this tool can be under way); ends the session of a slot in use. What is left,
// in words; empty: nothing.
answer<std::string> drop_decoding(home_link& postgres, const std::string& move = {});

}  // namespace hotlane::move
