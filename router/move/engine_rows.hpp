// Rows of a staged table on the engine: written in batches, taken out and read back by their keys.
// The engine has no indexes: each statement scans the table, so there are few, with many keys each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "router/move/changed_keys.hpp"
#include "router/move/link.hpp"
#include "router/move/plan.hpp"
#include "router/move/values.hpp"

namespace hotlane::move {

// Collects rows into multi-row INSERTs with bound parameters.
class engine_writer {
  public:
    engine_writer(home_link& engine, const table& t, std::string to);

    answer<void> add(const std::vector<value>& values);
    answer<void> flush();
    [[nodiscard]] std::uint64_t statements() const noexcept { return statements_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_sent_ + bytes_; }

  private:
    home_link& engine_;
    const table& t_;
    std::string to_;
    std::size_t rows_max_;
    std::string full_sql_;
    std::vector<param> params_;
    std::size_t rows_{0}, bytes_{0};
    std::uint64_t statements_{0}, bytes_sent_{0};
};

// A condition that only rows with these keys meet.
struct engine_condition {
    std::string sql;
    std::vector<param> params;
};
// `keys` from `first` up to (not with) `last`. The error: a key that the plan's types cannot read.
tl::expected<engine_condition, std::string> engine_where(const table& t,
                                                         const std::vector<key_values>& keys,
                                                         std::size_t first,
                                                         std::size_t last);
// How many keys go into one statement, if a row of the table takes `row_bytes`.
std::size_t engine_keys_max(const table& t, std::uint64_t row_bytes);

// The same for PostgreSQL, as " WHERE ...".
std::string postgres_where(const table& t,
                           const std::vector<key_values>& keys,
                           std::size_t first,
                           std::size_t last);

}  // namespace hotlane::move
