// Changed rows of one table on the way back: out of the staged copy, in as they are at PostgreSQL.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "router/move/changed_keys.hpp"
#include "router/move/copy.hpp"
#include "router/move/job.hpp"

namespace hotlane::move {

struct settled_rows {
    std::uint64_t went{0}, came{0};
    digest gone, put;
    std::uint64_t commits{0};  // statements that changed something at the engine
};

// All rows with these keys leave `staged`, then those that PostgreSQL has now come in: in that
// order no UNIQUE stands in the way, since both together lead from one state of the table to
// another. The sums are of what the engine says it deleted and of what was read. `row_bytes`: the
// size of a row, about, to bound what is held at once.
outcome settle_rows(active_move& m,
                    const table& t,
                    const rows_from& from,
                    const std::string& staged,
                    const std::vector<key_values>& keys,
                    std::uint64_t row_bytes,
                    settled_rows& out);

// Reads these keys back from `staged` and compares them with what was put there.
outcome check_rows(active_move& m,
                   const table& t,
                   const std::string& staged,
                   const std::vector<key_values>& keys,
                   std::uint64_t row_bytes,
                   const settled_rows& expected);

}  // namespace hotlane::move
