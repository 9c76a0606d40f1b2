// Two copies of a table, row by row, in memory that does not grow with them: rows fall into chunks
// by their key, each side sums its chunks in one pass, and only the rows of chunks that differ are
// read again and held side by side.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "router/move/copy.hpp"

namespace hotlane::move {

// Reads every row of one copy.
using row_source = std::function<answer<std::uint64_t>(const on_values&, const on_bad_value&)>;

struct compare_limits {
    std::size_t chunks{4'096};
    std::uint64_t rows_compared{20'000};              // of both sides together
    std::uint64_t bytes_compared{64U * 1024 * 1024};  // of their values
    std::size_t rows_shown{20};
    std::size_t bad_shown{10};
};

struct row_difference {
    enum class kind : std::uint8_t { first_only, second_only, changed };
    kind what{kind::changed};
    std::string row;                   // its key, as in other messages
    std::vector<std::string> columns;  // changed: which
};

struct table_comparison {
    bool complete{false};  // not ended early: all that differs was counted, within the limits
    std::uint64_t first_rows{0}, second_rows{0};
    digest first_sum, second_sum;
    std::size_t chunks_differ{0}, chunks_read{0};
    // Of the chunks that were read again; there may be more where not all were.
    std::uint64_t first_only{0}, second_only{0}, changed{0};
    std::vector<row_difference> shown;
    std::vector<std::string> bad;  // values that cannot be read as the plan says

    [[nodiscard]] bool equal() const;
};
enum class side : std::uint8_t { first, second };
struct compare_error {
    side which{};
    link_error error;
};
// `go_on` is asked now and then; false ends it with what is known.
tl::expected<table_comparison, compare_error> compare_tables(const table& t,
                                                             const std::string& seed,
                                                             const row_source& first,
                                                             const row_source& second,
                                                             const compare_limits& limits,
                                                             const std::function<bool()>& go_on);

nlohmann::json to_json(const table_comparison& c,
                       std::string_view first_name,
                       std::string_view second_name);
// One sentence: how many differ and which.
std::string describe(const table_comparison& c,
                     std::string_view first_name,
                     std::string_view second_name);

}  // namespace hotlane::move
