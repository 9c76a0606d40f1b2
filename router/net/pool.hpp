// Links of one thread that clients borrow for a transaction.
//
// A pool holds the links of one tool, home and identity (user, database, startup settings). All
// pools of a tool share its permits, `pool.max` divided among the threads. Who finds no free link
// waits in one queue a tool, first in, first out; a link that is given back goes to the first who
// can use it, and a tool whose permits are all used by others' idle links closes one of those.
// A link is lent only if nobody's transaction is open on it and nothing of it was left unread.
// THREADS: one, that of its worker.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "router/net/home_link.hpp"
#include "router/net/opener.hpp"
#include "router/placement/route.hpp"
#include "router/session/environment.hpp"

namespace hotlane::net {

class link_pools;
struct tool_links;

// A connection that waits for a link. Called on its thread, never inside a call of its own.
class link_borrower {
  public:
    virtual void link_offered(link_ptr link) = 0;  // accept it, or give it back
    virtual void link_denied(const session::refusal& why, std::string words) = 0;
    virtual void link_delayed(const std::string& notice) = 0;

  protected:
    ~link_borrower() = default;
};

struct link_waiter {
    link_borrower* who{};
    std::shared_ptr<link_pool> pool;
    steady::time_point since;
    bool told{false};  // of the wait
};
using link_queue = std::list<link_waiter>;

struct link_pool {
    tool_links* tool{};
    std::shared_ptr<const placement::route> route;
    session::link_target target;
    session::link_identity who;
    session::pairs_ptr greeting;  // of its first link
    std::vector<link_ptr> idle;   // the one used last is last
    std::vector<std::shared_ptr<link_opener>> opening;
    int lent{0};
    int waiting{0};
    int users{0};     // connections that know it
    int failures{0};  // since a link was opened
    std::string last_failure;
    [[nodiscard]] int links() const noexcept {
        return lent + static_cast<int>(idle.size() + opening.size());
    }
};

struct tool_links {
    std::shared_ptr<placement::tool_entry> tool;
    int permits{1};
    int open{0};  // of its permits in use: lent, idle or being opened
    link_queue waiters;
    std::unordered_map<std::string, std::shared_ptr<link_pool>> pools;
    bool sequences_matter{false};         // its clients ask for currval behind their transactions
    std::shared_ptr<link_pool> starving;  // its first waiter has waited long: the next link is its
};

class link_pools final : private link_user {
  public:
    explicit link_pools(worker& on) : worker_(on) {}

    std::shared_ptr<link_pool> find(const std::shared_ptr<placement::tool_entry>& tool,
                                    const std::shared_ptr<const placement::route>& route,
                                    const session::link_target& target,
                                    const session::link_identity& who);
    // A link at once, or null and a place in the queue.
    link_ptr borrow(const std::shared_ptr<link_pool>& from,
                    link_borrower& who,
                    link_queue::iterator& place);
    void stop_waiting(link_queue::iterator place);
    void give_back(const link_ptr& link, session::link_fate fate);
    void lost(const link_ptr& link);  // it broke while it was lent

    void tick();
    void route_changed(const std::string& tool);  // idle links of routes that are over
    void finish();                                // closes all; nothing is lent any more

  private:
    using reason = placement::link_end;

    void link_event(const link_ptr& link) override;
    link_ptr take_idle(link_pool& from);
    void keep(const link_ptr& link);
    void close(const link_ptr& link, reason why, bool polite);
    void hand(link_queue::iterator to, link_ptr link);
    void deny(link_queue::iterator whom, const session::refusal& why, std::string_view words);
    link_queue::iterator first_of(const link_pool& pool);
    bool make_room(tool_links& tool, const link_pool& except);
    void arrange(tool_links& tool);
    void open(const std::shared_ptr<link_pool>& pool);
    void opened(const std::shared_ptr<link_pool>& pool, link_ptr link);
    void failed(const std::shared_ptr<link_pool>& pool,
                const session::refusal& why,
                std::string_view words);
    void forget_opener(link_pool& pool, const link_opener* which);
    void look_at_waiters(tool_links& tool, steady::time_point now);
    void look_at_links(tool_links& tool, steady::time_point now);
    session::refusal waited_too_long(const tool_links& tool, const link_pool& pool) const;

    worker& worker_;
    std::unordered_map<const placement::tool_entry*, std::unique_ptr<tool_links>> tools_;
    bool finishing_{false};
};

}  // namespace hotlane::net
