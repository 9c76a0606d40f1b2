// The prepared statements of one client, as the client believes them to be: what must be prepared
// again on a new link, and what the client was told about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "router/sql/facts.hpp"

namespace hotlane::session {

using types = std::vector<std::uint32_t>;
using types_ptr = std::shared_ptr<const types>;

// What a Parse says apart from the name: shared by all clients and links of a thread that have it.
struct statement_text {
    std::uint64_t id{};  // of its text and types, never used twice on a thread
    std::string sql;
    types parameters;  // as in the client's Parse
};
// The one record of this text with these types on this thread.
std::shared_ptr<const statement_text> intern(std::string_view sql,
                                             std::span<const std::uint32_t> parameters);
std::size_t interned_count() noexcept;

struct prepared {
    std::string name;  // empty: the unnamed one
    std::shared_ptr<const statement_text> text;
    types_ptr told_parameters;                // by ParameterDescription; null: not told
    types_ptr told_columns;                   // by RowDescription; empty: NoData
    std::shared_ptr<const sql::facts> facts;  // null: the text was not read
    // An EXECUTE that was given the link's name of what it executes (prepared.cpp): as it was.
    std::shared_ptr<const std::string> original;
    bool drops{false};           // a DEALLOCATE that was given another name to drop (prepared.cpp)
    bool result_changed{false};  // this home describes another result than the client was told
    std::shared_ptr<const std::string> refused;  // ErrorResponse with which this home refused it

    // With which it is prepared again: those the client was told of, if it was.
    [[nodiscard]] const types& parameters() const noexcept {
        return told_parameters ? *told_parameters : text->parameters;
    }
    [[nodiscard]] std::size_t bytes() const noexcept {
        const auto told = (told_parameters ? told_parameters->size() : 0) +
                          (told_columns ? told_columns->size() : 0);
        return sizeof(prepared) + name.size() + text->sql.size() +
               (text->parameters.size() + told) * 4;
    }
};

// Two views: what the home has, changed by its replies only, and what it will have once it has done
// all that was sent, which a Bind in the same write already needs.
class statement_memory {
  public:
    using pointer = std::shared_ptr<prepared>;

    // ---- as sent ----
    [[nodiscard]] pointer expect(std::string_view name) const;
    // What expect() says of this name hangs on a reply to an earlier batch. (In one batch a home
    // that skips one message skips what follows, too.)
    [[nodiscard]] bool is_unsure(std::string_view name) const;
    void sent(const pointer& statement);      // a Parse
    void closing(std::string_view name);      // a Close; for the unnamed one also a Query
    void next_batch() noexcept { ++batch_; }  // a Sync or a Query
    // What is expected is of who knows which batch.
    void doubt_sent();
    void forget_sent();  // all is answered, or the home skips what was sent

    // ---- at the home ----
    void put(pointer statement);
    void erase(std::string_view name);
    void clear();
    [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
    [[nodiscard]] std::size_t size() const noexcept { return named_.size(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    // One that is kept has grown by what the client was told of it.
    void grew(const prepared& statement, std::size_t bytes_before);
    [[nodiscard]] std::vector<pointer> all() const;  // the unnamed one last

    // A record to fill for a Parse of the unnamed statement, of the memory of an earlier one where
    // nobody holds that any more: a client that prepares for every query allocates nothing.
    [[nodiscard]] pointer spare();

  private:
    struct hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept {
            return std::hash<std::string_view>{}(text);
        }
    };

    using map = std::unordered_map<std::string, pointer, hash, std::equal_to<>>;
    [[nodiscard]] pointer find(std::string_view name) const;

    pointer unnamed_;
    pointer spare_;
    struct change {
        pointer statement;  // null: closed
        std::uint32_t batch{};
    };
    std::optional<change> sent_unnamed_;
    map named_;
    std::unordered_map<std::string, change, hash, std::equal_to<>> sent_;
    std::uint32_t batch_{0};
    std::size_t bytes_{0};
};

}  // namespace hotlane::session
