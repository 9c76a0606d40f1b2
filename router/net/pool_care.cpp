// What a pool does by itself: opening links, looking after those who wait and those that are idle.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "router/net/pool.hpp"
#include "router/net/worker.hpp"
#include "router/session/texts.hpp"

namespace hotlane::net {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
// After so long its own waiters go before those of an identity that keeps all links busy.
constexpr milliseconds starving_after{500};

}  // namespace

void link_pools::open(const std::shared_ptr<link_pool>& pool) {
    if (finishing_) return;
    if (pool->failures > 0 && !pool->opening.empty())
        return;  // one at a time finds out whether the home is back
    auto& tool = *pool->tool;
    link_opener::order what{tool.tool, pool->route, pool->target, pool->who, {}};
    if (pool->failures > 0) {
        const auto pause = dialer::pause_min * (1 << std::min(pool->failures, 4));
        what.first_pause = std::min(pause, dialer::pause_max);
    }
    const auto which = std::make_shared<std::weak_ptr<link_opener>>();
    const auto opener = std::make_shared<link_opener>(
        worker_,
        std::move(what),
        [this, pool, which](link_ptr link) {
            forget_opener(*pool, which->lock().get());
            opened(pool, std::move(link));
        },
        [this, pool, which](const session::refusal& why, std::string_view words) {
            forget_opener(*pool, which->lock().get());
            failed(pool, why, words);
        });
    *which = opener;
    pool->opening.push_back(opener);
    tool.open += 1;
    tool.tool->counted.links_open.fetch_add(1, relaxed);
    opener->start();
}

void link_pools::forget_opener(link_pool& pool, const link_opener* which) {
    std::erase_if(pool.opening, [&](const auto& one) { return one.get() == which; });
}

void link_pools::opened(const std::shared_ptr<link_pool>& pool, link_ptr link) {
    auto& tool = *pool->tool;
    const auto& settings = tool.tool->settings.pool;
    pool->failures = 0;
    pool->last_failure.clear();
    pool->greeting = link->memory.status;
    tool.tool->counted.link_opens.fetch_add(1, relaxed);
    link->pool = pool;
    // A tenth of jitter, so that links opened together do not end together.
    const auto percent = std::uniform_int_distribution<int>(90, 100)(worker_.dice());
    link->expires = steady::now() + settings.lifetime * percent / 100;
    if (tool.starving == pool) tool.starving.reset();
    keep(link);
}

void link_pools::failed(const std::shared_ptr<link_pool>& pool,
                        const session::refusal& why,
                        std::string_view words) {
    auto& tool = *pool->tool;
    tool.open -= 1;
    tool.tool->counted.links_open.fetch_sub(1, relaxed);
    tool.tool->counted.link_failures.fetch_add(1, relaxed);
    ++pool->failures;
    pool->last_failure = why.message;
    if (tool.starving == pool) tool.starving.reset();
    // Where other links of the pool are at work, one of them may come free in time.
    if (pool->lent == 0 && pool->opening.empty()) {
        for (auto at = tool.waiters.begin(); at != tool.waiters.end();) {
            const auto now = at++;
            if (now->pool == pool) deny(now, why, words);
        }
    }
    arrange(tool);
}

void link_pools::tick() {
    const auto now = steady::now();
    for (const auto& [entry, tool] : tools_) {
        look_at_waiters(*tool, now);
        look_at_links(*tool, now);
        std::erase_if(tool->pools, [](const auto& one) {
            const auto& pool = *one.second;
            return pool.users == 0 && pool.waiting == 0 && pool.links() == 0;
        });
    }
}

void link_pools::look_at_waiters(tool_links& tool, steady::time_point now) {
    const auto& settings = tool.tool->settings.pool;
    for (auto at = tool.waiters.begin(); at != tool.waiters.end();) {
        const auto one = at++;
        if (now - one->since >= settings.wait) {
            worker_.all().counted.hit("pool_wait");
            deny(one, waited_too_long(tool, *one->pool), {});
        } else if (!one->told && now - one->since >= settings.notice) {
            one->told = true;
            one->who->link_delayed(fmt::format("waiting for one of the {} links of tool {}",
                                               tool.tool->settings.pool.max,
                                               tool.tool->name));
        }
    }
    if (tool.waiters.empty()) {
        tool.starving.reset();
        return;
    }
    const auto& first = tool.waiters.front();
    const bool starves = now - first.since >= starving_after && first.pool->opening.empty() &&
                         first.pool->links() == 0;
    if (starves) tool.starving = first.pool;
    arrange(tool);
}

session::refusal link_pools::waited_too_long(const tool_links& tool, const link_pool& pool) const {
    const auto pinned = tool.tool->counted.pinned_now.load(relaxed);
    auto why = fmt::format("all {} links are in use", tool.tool->settings.pool.max);
    if (pinned > 0)
        why += fmt::format(", {} of them by sessions that cannot give theirs back", pinned);
    if (!pool.last_failure.empty()) why = pool.last_failure;
    return session::texts::no_link(tool.tool->name, why);
}

void link_pools::look_at_links(tool_links& tool, steady::time_point now) {
    const auto& settings = tool.tool->settings.pool;
    const auto current = tool.tool->current();
    for (const auto& [key, pool] : tool.pools) {
        const bool is_current = pool->route->generation == current->generation;
        const auto least = is_current && pool->users > 0 ? settings.min : 0;
        auto left = pool->links();
        std::vector<link_ptr> going;
        for (const auto& link : pool->idle) {
            const bool unused = now - link->idle_since >= settings.idle && left > least;
            if (is_current && !unused && now < link->expires) continue;
            going.push_back(link);
            --left;
        }
        for (const auto& link : going) {
            std::erase(pool->idle, link);
            close(link,
                  !is_current            ? reason::route
                  : now >= link->expires ? reason::lifetime
                                         : reason::idle,
                  true);
        }
        // Links that are kept ready are opened one a tick, behind those that somebody waits for.
        const bool may = tool.waiters.empty() && current->served && tool.open < tool.permits;
        if (may && pool->links() < least) open(pool);
    }
}

void link_pools::route_changed(const std::string& name) {
    const auto now = steady::now();
    for (const auto& [entry, tool] : tools_)
        if (tool->tool->name == name) look_at_links(*tool, now);
}

}  // namespace hotlane::net
