// What is known of one link to a home between two transactions: who it is there, and what its
// session holds. A pool keeps it beside the socket; the session that is lent the link reads and
// writes it. Without a pool the session's own fields say the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policy/types.hpp"
#include "router/session/statements.hpp"

namespace hotlane::session {

// Names and values, never changed once shared: equal lists are compared by their address first.
using pairs = std::vector<std::pair<std::string, std::string>>;
using pairs_ptr = std::shared_ptr<const pairs>;

// The level at which a transaction begins on the link if it names none.
enum class level : std::uint8_t { unknown, read_committed, repeatable_read, serializable };

// The key with which a cancel must be sent to the home.
struct link_key {
    std::uint32_t process_id{};
    std::string secret;
};

// Who a client is towards a home: what its links' startup packets say. Links are shared only by
// clients of one identity.
struct link_identity {
    std::string user;
    std::string database;
    pairs parameters;  // of the startup packet, in order
    [[nodiscard]] bool sets(std::string_view parameter) const;
    // Equal for equal identities, and only for them.
    [[nodiscard]] std::string key() const;
};

// Which of the interned statements the link has, by what was sent to it: the home answers in order,
// so what follows may rely on it. A failure takes back what it made untrue.
class link_statements {
  public:
    struct slot {
        std::shared_ptr<const statement_text> text;
        types_ptr columns;      // as this link describes them; null: not known
        bool asked{false};      // a description is on its way
        std::uint64_t used{0};  // the turn that used it last
        std::uint64_t made{0};  // the turn that prepared it
    };

    [[nodiscard]] slot* find(const prepared& statement);
    slot& put(const std::string& name, std::shared_ptr<const statement_text> text);
    void erase(const prepared& statement);
    void erase(std::uint64_t id) { named_.erase(id); }
    void clear();
    void drop_unnamed() { unnamed_ = {}; }
    [[nodiscard]] std::size_t size() const noexcept { return named_.size(); }
    // The one unused for longest, but none that this turn has used; null: there is none.
    [[nodiscard]] std::shared_ptr<const statement_text> oldest() const;

    std::uint64_t turn{0};  // grows with every lending

  private:
    std::unordered_map<std::uint64_t, slot> named_;
    slot unnamed_;
};

struct link_memory {
    policy::home_kind kind{policy::home_kind::engine};
    std::uint64_t generation{};
    link_key key;
    level begins_at{level::unknown};
    pairs_ptr status;      // ParameterStatus, as last reported
    pairs_ptr parameters;  // set by SQL on it and to be undone for the next; null: none
    link_statements statements;
    std::uint64_t user{0};  // the session that sent something on it last
    bool spoiled{false};    // something is left on it that cannot be undone: never lent again
};

// Lists of one content are one list, on this thread: homes report the same to all links, so that
// comparing is looking at addresses, and a thousand clients hold one list.
pairs_ptr shared_list(pairs_ptr list);

// The list with this value in it: a copy, and only if it is news.
pairs_ptr with_status(const pairs_ptr& all, std::string_view name, std::string_view value);

// What a home says on a link that nobody uses. False: more than a notice or a setting that has
// changed, so the link is of no use any more.
bool take_idle_bytes(link_memory& link, std::string_view bytes);

}  // namespace hotlane::session
