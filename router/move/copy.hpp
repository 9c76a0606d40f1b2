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
                                         const on_bad_value& on_bad,
                                         const std::string& where = {});  // " WHERE ..."
// The same for rows that a statement returned (engine_columns).
void take_engine_rows(const table& t,
                      const rows& from,
                      const on_values& on_row,
                      const on_bad_value& on_bad);

// Where rows of a move back come from. `go_on` is asked at each row; its error ends the reading.
struct rows_from {
    home_link& link;
    std::string schema;
    std::function<outcome()> go_on;
};

// The copies. Set the table's rows and sum to what was read.
outcome copy_table_out(active_move& m,
                       table& t,
                       const std::string& from,
                       const std::string& schema);
outcome copy_table_back(active_move& m, table& t, const std::string& schema, const std::string& to);
struct copied_figures {
    std::uint64_t statements{0};  // INSERTs that were sent: each is a commit of the engine
    std::uint64_t bytes{0};       // of all values, about
};
outcome copy_rows_back(
    active_move& m, table& t, const rows_from& from, const std::string& to, copied_figures& out);

// Reads a copy back and compares it with what was copied.
outcome verify_table(active_move& m,
                     const table& t,
                     policy::home_kind at,
                     const std::string& where);

}  // namespace hotlane::move
