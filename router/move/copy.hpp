// Rows from one home to the other, read once, streaming; every value checked on its way.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "router/move/job.hpp"
#include "router/move/link.hpp"
#include "router/move/plan.hpp"
#include "router/move/values.hpp"

namespace hotlane::move {

// Rows are handed on as values; false from `on_row` ends the reading.
using on_values = std::function<bool(const std::vector<value>&)>;
// A value that cannot go over; false ends the reading.
using on_bad_value = std::function<bool(refusal)>;

answer<std::uint64_t> read_engine_rows(home_link& engine,
                                       const table& t,
                                       const std::string& name,
                                       const on_values& on_row,
                                       const on_bad_value& on_bad);
answer<std::uint64_t> read_postgres_rows(home_link& postgres,
                                         const table& t,
                                         const std::string& schema,
                                         const on_values& on_row,
                                         const on_bad_value& on_bad);

// The copies. Set the table's rows and sum to what was read.
outcome copy_table_out(active_move& m,
                       table& t,
                       const std::string& from,
                       const std::string& schema);
outcome copy_table_back(active_move& m, table& t, const std::string& schema, const std::string& to);

// Reads a copy back and compares it with what was copied.
outcome verify_table(active_move& m,
                     const table& t,
                     policy::home_kind at,
                     const std::string& where);

}  // namespace hotlane::move
