// One connection of a move to a home, as the mover sees it: statements, streams, and for each
// failure whether the home may have done it all the same. libpq (pq_link.hpp) and a simulated home
// (tests/simulation/move) implement it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "policy/types.hpp"

namespace hotlane::move {

enum class fate {
    refused,  // the home said no: nothing was done
    unknown   // no reply: done, not done, or still to be done
};

struct link_error {
    std::string sqlstate;  // empty: not the home's own words
    std::string message;
    fate what{fate::refused};
};
template <typename Value>
using answer = tl::expected<Value, link_error>;

using cell = std::optional<std::string>;
using row = std::vector<cell>;
struct rows {
    std::vector<row> data;
    std::uint64_t affected{};
};
using row_view = std::vector<std::optional<std::string_view>>;

// The wire types that both homes share (engine-facts: int8, float8, text, bytea).
enum class param_type : std::uint32_t { bytea = 17, int8 = 20, text = 25, float8 = 701 };
struct param {
    param_type type{param_type::text};
    cell value;  // as text; bytea: the bytes themselves
};

// What a home says of a statement without running it.
struct described_column {
    std::string name;
    std::uint32_t type{};
};
struct description {
    std::vector<std::uint32_t> parameters;  // their types
    std::vector<described_column> columns;  // none: it gives no rows
};

// After fate::unknown, and after a stream that failed, the link is dead: every call fails.
class home_link {
  public:
    virtual ~home_link() = default;

    // Without parameters several statements may stand in `sql` (PostgreSQL only).
    virtual answer<rows> exec(const std::string& sql, const std::vector<param>& params = {}) = 0;
    // Prepares and describes one statement, as a client's Parse and Describe would; nothing is run.
    virtual answer<description> describe(const std::string& sql,
                                         const std::vector<std::uint32_t>& types) = 0;
    // Hands each row to `on_row` as it comes; false ends the stream and the link.
    virtual answer<std::uint64_t> read(const std::string& sql,
                                       const std::function<bool(const row_view&)>& on_row) = 0;
    // COPY ... FROM STDIN, text format. copy_end gives the number of rows.
    virtual answer<void> copy_begin(const std::string& sql) = 0;
    virtual answer<void> copy_put(std::string_view chunk) = 0;
    virtual answer<std::uint64_t> copy_end() = 0;

    virtual void set_deadline(std::chrono::milliseconds per_statement) = 0;
    [[nodiscard]] virtual bool alive() const = 0;
};

// Opens links to the homes of one tool, with the control plane's rights.
class connector {
  public:
    virtual ~connector() = default;
    virtual answer<std::unique_ptr<home_link>> open(policy::home_kind home,
                                                    std::chrono::milliseconds limit) = 0;
    // Whether PostgreSQL lets the tool's own role in, as the links of its clients will be.
    virtual answer<void> log_in(const std::string& role, std::chrono::milliseconds limit) {
        static_cast<void>(role), static_cast<void>(limit);
        return {};
    }
};

}  // namespace hotlane::move
