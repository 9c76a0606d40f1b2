#include "router/net/pool.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "router/net/worker.hpp"
#include "router/wire/message.hpp"

namespace hotlane::net {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::size_t idle_bytes_max = 4'096;  // of an idle link at one look; more comes later

void count_lent(const link_pool& pool, int change) {
    pool.tool->tool->counted.links_lent.fetch_add(change, relaxed);
}

void count_open(tool_links& tool, int change) {
    tool.open += change;
    tool.tool->counted.links_open.fetch_add(change, relaxed);
}

}  // namespace

std::shared_ptr<link_pool> link_pools::find(const std::shared_ptr<placement::tool_entry>& tool,
                                            const std::shared_ptr<const placement::route>& route,
                                            const session::link_target& target,
                                            const session::link_identity& who) {
    auto& all = tools_[tool.get()];
    if (!all) {
        all = std::make_unique<tool_links>();
        all->tool = tool;
        all->permits = worker_.share_of(tool->settings.pool.max);
    }
    auto& pool = all->pools[std::to_string(route->generation) + '\0' + who.key()];
    if (!pool) {
        pool = std::make_shared<link_pool>();
        pool->tool = all.get();
        pool->route = route;
        pool->target = target;
        pool->who = who;
    }
    return pool;
}

link_ptr link_pools::borrow(const std::shared_ptr<link_pool>& from,
                            link_borrower& who,
                            link_queue::iterator& place) {
    auto& tool = *from->tool;
    if (from->waiting == 0) {
        if (auto link = take_idle(*from)) {
            ++from->lent;
            count_lent(*from, 1);
            return link;
        }
    }
    place = tool.waiters.insert(tool.waiters.end(), {&who, from, steady::now(), false});
    ++from->waiting;
    tool.tool->counted.link_waiters.fetch_add(1, relaxed);
    tool.tool->counted.link_waits.fetch_add(1, relaxed);
    if (static_cast<int>(from->opening.size()) < from->waiting &&
        (tool.open < tool.permits || make_room(tool, *from)))
        open(from);
    return nullptr;
}

// Out of the idle ones: alive, not too old, and silent since it was used last.
link_ptr link_pools::take_idle(link_pool& from) {
    while (!from.idle.empty()) {
        auto link = std::move(from.idle.back());
        from.idle.pop_back();
        if (link->socket.has_news()) {  // said or done since it was used last
            from.idle.push_back(link);
            link_event(link);  // reads it; a link that is broken goes
            if (link->eof || link->socket.has_news()) continue;
            from.idle.pop_back();
        }
        link->user = nullptr;
        return link;
    }
    return nullptr;
}

void link_pools::stop_waiting(link_queue::iterator place) {
    auto& tool = *place->pool->tool;
    --place->pool->waiting;
    tool.tool->counted.link_waiters.fetch_sub(1, relaxed);
    const auto waited =
        std::chrono::duration_cast<std::chrono::microseconds>(steady::now() - place->since);
    tool.tool->counted.link_wait_us.fetch_add(static_cast<std::uint64_t>(waited.count()), relaxed);
    tool.waiters.erase(place);
}

link_queue::iterator link_pools::first_of(const link_pool& pool) {
    auto& all = pool.tool->waiters;
    return std::find_if(
        all.begin(), all.end(), [&](const auto& one) { return one.pool.get() == &pool; });
}

// The borrower hears of it from the loop, not from inside whoever has just given the link back.
void link_pools::hand(link_queue::iterator to, link_ptr link) {
    auto* const who = to->who;
    auto& pool = *to->pool;
    stop_waiting(to);
    ++pool.lent;
    count_lent(pool, 1);
    link->user = nullptr;
    who->link_offered(std::move(link));
}

void link_pools::deny(link_queue::iterator whom,
                      const session::refusal& why,
                      std::string_view words) {
    auto* const who = whom->who;
    stop_waiting(whom);
    who->link_denied(why, std::string(words));
}

void link_pools::give_back(const link_ptr& link, session::link_fate fate) {
    auto& pool = *link->pool;
    --pool.lent;
    count_lent(pool, -1);
    link->user = nullptr;
    const bool stale = pool.route->generation != pool.tool->tool->current()->generation;
    switch (fate) {
        case session::link_fate::close:
            close(link, reason::state, false);
            break;
        case session::link_fate::farewell:
            close(link, stale ? reason::route : reason::state, true);
            break;
        case session::link_fate::keep:
            keep(link);
            return;
    }
    arrange(*pool.tool);
}

void link_pools::keep(const link_ptr& link) {
    const auto pool = link->pool;
    auto& tool = *pool->tool;
    const auto now = steady::now();
    const bool wanted_elsewhere = tool.starving && tool.starving != pool;
    if (finishing_ || link->writing || now >= link->expires || wanted_elsewhere) {
        close(link,
              wanted_elsewhere ? reason::evicted
              : finishing_     ? reason::shutdown
                               : reason::lifetime,
              true);
        arrange(tool);
        return;
    }
    if (pool->waiting > 0) {
        hand(first_of(*pool), link);
        return;
    }
    link->idle_since = now;
    link->user = this;
    pool->idle.push_back(link);
    link->watch();
    // Another identity may wait for the permit.
    if (!tool.waiters.empty()) arrange(tool);
}

void link_pools::lost(const link_ptr& link) {
    auto& pool = *link->pool;
    --pool.lent;
    count_lent(pool, -1);
    close(link, reason::broken, false);
    arrange(*pool.tool);
}

void link_pools::close(const link_ptr& link, reason why, bool polite) {
    auto& tool = *link->pool->tool;
    if (polite && !link->writing && !link->eof) {
        std::string bye;
        wire::append_empty(bye, wire::tag_f::terminate);
        error_code ignored;
        link->socket.write_some(asio::buffer(bye), ignored);
    }
    link->close();
    count_open(tool, -1);
    tool.tool->counted.links_closed[static_cast<std::size_t>(why)].fetch_add(1, relaxed);
}

// An idle link speaks: news of a setting, a notice, its end.
void link_pools::link_event(const link_ptr& link) {
    auto& idle = link->pool->idle;
    const auto at = std::find(idle.begin(), idle.end(), link);
    if (at == idle.end()) return;
    // Not the worker's buffer: a link is looked at while a client's message, read into that one,
    // is about to be sent over it.
    std::array<char, idle_bytes_max> own;
    error_code error;
    const auto count = link->socket.read_some(asio::buffer(own), error);
    const std::string_view bytes{own.data(), count};
    if (error == asio::error::would_block ||
        (!error && session::take_idle_bytes(link->memory, bytes))) {
        link->watch();
        return;
    }
    idle.erase(at);
    auto& tool = *link->pool->tool;
    close(link, reason::broken, false);
    arrange(tool);
}

// All permits are used: an idle link of another identity gives its up, the one unused for longest.
bool link_pools::make_room(tool_links& tool, const link_pool& except) {
    link_pool* from = nullptr;
    for (const auto& [key, pool] : tool.pools) {
        if (pool.get() == &except || pool->idle.empty()) continue;
        if (!from || pool->idle.front()->idle_since < from->idle.front()->idle_since)
            from = pool.get();
    }
    if (!from) return false;
    const auto link = from->idle.front();
    from->idle.erase(from->idle.begin());
    close(link, reason::evicted, true);
    return true;
}

// Whatever can be done now for those who wait, in their order.
void link_pools::arrange(tool_links& tool) {
    if (finishing_) return;
    std::vector<std::pair<link_pool*, int>> seen;  // waiters of a pool so far
    for (auto at = tool.waiters.begin(); at != tool.waiters.end();) {
        const auto now = at++;
        const auto pool = now->pool;
        if (auto link = take_idle(*pool)) {
            hand(now, std::move(link));
            continue;
        }
        auto count = std::find_if(
            seen.begin(), seen.end(), [&](const auto& one) { return one.first == pool.get(); });
        if (count == seen.end()) count = seen.insert(seen.end(), {pool.get(), 0});
        if (++count->second <= static_cast<int>(pool->opening.size())) continue;
        if (tool.open >= tool.permits && !make_room(tool, *pool)) return;
        open(pool);
    }
}

void link_pools::finish() {
    finishing_ = true;
    for (const auto& [entry, tool] : tools_) {
        for (const auto& [key, pool] : tool->pools) {
            for (const auto& one : std::exchange(pool->opening, {})) {
                one->cancel();
                count_open(*tool, -1);
            }
            for (const auto& link : std::exchange(pool->idle, {}))
                close(link, reason::shutdown, true);
        }
    }
}

}  // namespace hotlane::net
