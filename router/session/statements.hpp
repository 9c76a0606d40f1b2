// The prepared statements of one client, as the client believes them to be: what must be prepared
// again on a new link, and what the client was told about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "router/sql/facts.hpp"

namespace hotlane::session {

struct prepared {
    std::string name;  // empty: the unnamed one
    std::string sql;
    std::vector<std::uint32_t> types;                           // as in the client's Parse
    std::optional<std::vector<std::uint32_t>> told_parameters;  // by ParameterDescription
    std::optional<std::vector<std::uint32_t>> told_columns;     // by RowDescription; empty: NoData
    std::shared_ptr<const sql::facts> facts;                    // null: the text was not read
    bool confirmed{false};                                      // ParseComplete has come
    bool result_changed{false};  // this home describes another result than the client was told
    std::shared_ptr<const std::string> refused;  // ErrorResponse with which this home refused it

    [[nodiscard]] std::size_t bytes() const noexcept {
        return sizeof(prepared) + name.size() + sql.size() + types.size() * 4;
    }
};

class statement_memory {
  public:
    using pointer = std::shared_ptr<prepared>;

    [[nodiscard]] pointer find(std::string_view name) const;
    // Replaces one of the same name.
    void put(pointer statement);
    void erase(std::string_view name);
    // Only if the name still means this one: a later Parse may have taken it.
    void erase_exactly(const pointer& statement);
    void clear();
    void forget_unnamed() { unnamed_.reset(); }

    // A record to fill for a Parse of the unnamed statement: the old one's memory where nobody else
    // holds it, so that a client that prepares for every query allocates nothing.
    [[nodiscard]] pointer recycle_unnamed();

    [[nodiscard]] std::size_t size() const noexcept { return named_.size(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::vector<pointer> all() const;  // the unnamed one last

  private:
    struct hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept {
            return std::hash<std::string_view>{}(text);
        }
    };

    pointer unnamed_;
    std::unordered_map<std::string, pointer, hash, std::equal_to<>> named_;
    std::size_t bytes_{0};
};

}  // namespace hotlane::session
