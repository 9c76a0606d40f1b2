// Looking at homes: on doubt, and while the store is away; and what this sidecar saw, for the
// leader.
#include <utility>

#include <fmt/format.h>

#include "router/control/coordinator.hpp"
#include "router/control/repeats.hpp"
#include "router/control/reports.hpp"

namespace hotlane::control {

using placement::follow_event;
using placement::follow_state;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t ddl_waiting_max = 10'000;  // of one tool, while the store is away

}  // namespace

void coordinator::doubt(const std::string& tool) {
    const std::lock_guard lock(mutex_);
    step(at(tool), {follow_event::doubt, {}, 0, {}});
}

// While the lease holds, the store's word is good. Without it a home's own marker must say, every
// third of a lease and when a link was opened, that the tool still lives there; a lease without
// either ends the service.
void coordinator::confirm() {
    const auto now = steady::now();
    const std::lock_guard lock(mutex_);
    const bool told = lease_.holds(now);
    for (auto& [name, tool] : tools_) {
        if (!tool.entry || tool.follows.held()) continue;
        if (tool.follows.state() != follow_state::unplaced) confirm_one(tool, told, now);
    }
}

// A tool that nobody uses costs its home nothing: its gate is closed, and its next client waits
// until the marker was read.
void coordinator::confirm_one(known& tool, bool told, steady::time_point now) {
    const auto state = tool.follows.state();
    const bool serves = state == follow_state::serving;
    if (told && serves) {
        tool.confirmed = now;
        return;
    }
    const bool is_used = tool.entry->counted.sessions.load(std::memory_order_relaxed) > 0 ||
                         tool.entry->gate.waiting() > 0;
    if (!is_used) {
        tool.confirmed = now;
        if (serves) step(tool, {follow_event::doubt, {}, 0, {}});
        tool.look_wanted = false;
        return;
    }
    const auto links = tool.entry->counted.link_opens.load(std::memory_order_relaxed);
    const bool new_link = links != std::exchange(tool.links_seen, links);
    if ((new_link || now >= tool.look_at) && !tool.being_looked_at) {
        tool.look_wanted = true;
        tool.look_at = now + (serves ? with_.who.lease / 3 : with_.look_again);
        changed_.notify_all();
    }
    if (state != follow_state::refused && now - tool.confirmed > with_.who.lease)
        step(tool,
             {follow_event::unconfirmed, {}, 0, {}},
             "neither the fleet's store nor the home's marker confirms where it lives");
}

// On a thread of its own: a store that swallows what it is sent keeps the other for seconds, and
// just then the homes must be looked at in time.
void coordinator::watch(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        confirm();
        poke();
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, stop, with_.watch_every, [&] { return stop.stop_requested(); });
    }
}

void coordinator::look(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        std::string next;
        for (auto& [name, tool] : tools_) {
            if (!tool.look_wanted || tool.being_looked_at || !tool.entry) continue;
            tool.look_wanted = false;
            tool.being_looked_at = true;
            next = name;
            break;
        }
        if (next.empty()) {
            changed_.wait(lock);
            continue;
        }
        lock.unlock();
        look_at(next);
        lock.lock();
        tools_[next].being_looked_at = false;
    }
}

void coordinator::look_at(const std::string& tool) {
    const auto entry = in_.tools.find(tool);
    if (!entry || !in_.act.see) return;
    const auto model = in_.model.get();
    move::surroundings around{*model, in_.tools, in_.store, in_.now, {}, &stopping_, this};
    {
        const std::lock_guard lock(mutex_);
        around.doubted = at(tool).follows.state() == follow_state::doubting;
    }
    const auto seen = in_.act.see(*entry, around);
    {
        const std::lock_guard lock(mutex_);
        auto& mine = at(tool);
        if (!around.doubted && mine.follows.state() == follow_state::doubting) {
            mine.look_wanted = true;  // what was seen is older than the doubt
            return;
        }
        const auto& place = mine.follows.place();
        // Only a marker confirms; the store's memory is what is in question.
        const bool counts = seen.known && seen.confirmed;
        if (counts && (!place || seen.epoch >= place->epoch)) {
            mine.confirmed = steady::now();
            step(mine, {follow_event::placed, seen.home, seen.epoch, {}});
        }
    }
    poke();
}

// ---- reports

// What was seen since the last time. DDL is the tool's schema and goes a way of its own.
void coordinator::take(known& tool) {
    for (auto& one : tool.entry->seen.take()) {
        if (one.what == placement::observation::kind::ddl) {
            if (tool.ddl.size() < ddl_waiting_max) tool.ddl.push_back(std::move(one.sql));
        } else if (tool.seen.size() < with_.observations_max) {
            tool.seen.push_back(std::move(one));
        }
    }
}

// False: the store did not take it; it waits here, and the schema counts as not known whole.
bool coordinator::keep_ddl(const std::string& tool) {
    const std::lock_guard one_at_a_time(keeping_ddl_);
    std::deque<std::string> waiting;
    placement::tool_entry* entry = nullptr;
    {
        const std::lock_guard lock(mutex_);
        auto& mine = at(tool);
        entry = mine.entry;
        if (entry != nullptr) take(mine);
        waiting.swap(mine.ddl);
    }
    if (waiting.empty()) return true;
    ++statements_;
    auto kept = store_.ddl(tool);  // every pod makes the same tables when it starts
    while (kept && !waiting.empty()) {
        if (!repeats(*kept, waiting.front())) {
            ++statements_;
            if (!store_.add_ddl(tool, waiting.front())) break;
            kept->push_back(waiting.front());
        }
        waiting.pop_front();
        entry->seen.ddl_kept();
    }
    if (waiting.empty()) return true;
    const std::lock_guard lock(mutex_);
    auto& mine = at(tool);
    mine.ddl.insert(mine.ddl.begin(), waiting.begin(), waiting.end());
    return false;
}

void coordinator::keep_all_ddl() {
    std::vector<std::string> names;
    {
        const std::lock_guard lock(mutex_);
        for (auto& [name, tool] : tools_) {
            if (tool.entry) take(tool);
            if (!tool.ddl.empty()) names.push_back(name);
        }
    }
    for (const auto& name : names)
        static_cast<void>(keep_ddl(name));
}

nlohmann::json coordinator::report() {
    keep_all_ddl();
    nlohmann::json out = nlohmann::json::object();
    const std::lock_guard lock(mutex_);
    for (auto& [name, tool] : tools_) {
        if (!tool.entry) continue;
        const auto now = read_counters(tool.entry->counted);
        auto said =
            make_report(tool.told, now, std::exchange(tool.seen, {}), with_.observations_max);
        if (!said.is_null()) {
            const auto until = in_.now();
            add_statements(said,
                           tool.entry->statements.lately(until),
                           std::exchange(tool.statements_told, until),
                           with_.observations_max);
            const auto went_on = placement::read_after_error(tool.entry->counted);
            add_after_error(said, std::exchange(tool.after_error_told, went_on), went_on);
            const auto dropped = tool.entry->writes.dropped();
            add_writes(said,
                       tool.entry->writes.take(),
                       dropped - std::exchange(tool.writes_dropped, dropped),
                       until,
                       with_.writes_max);
        }
        tool.told = now;
        if (tool.follows.held()) said["held"] = tool.follows.move();
        if (!said.is_null()) out[name] = std::move(said);
    }
    return out.empty() ? nlohmann::json() : out;
}

// ---- views

coordinator::figures coordinator::now() const {
    figures out;
    out.state = state_;
    out.store_up = store_.reachable();
    out.id = with_.who.id;
    out.name = with_.who.name;
    out.statements = statements_;
    out.elections = elections_;
    const std::lock_guard lock(mutex_);
    out.leader = leader_;
    out.leader_id = leader_id_;
    if (state_ == placement::lead_state::away)
        out.store_away = std::chrono::duration_cast<milliseconds>(steady::now() - away_since_);
    for (const auto& [name, tool] : tools_) {
        out.held += tool.follows.held() ? 1U : 0U;
        out.unconfirmed += tool.follows.state() == follow_state::refused ? 1U : 0U;
    }
    return out;
}

nlohmann::json coordinator::view() {
    const auto mine = now();
    nlohmann::json list = nlohmann::json::array();
    const auto seen = store_.sidecars();
    const auto hash = policy_now();
    const std::lock_guard lock(mutex_);
    const auto& all = seen ? *seen : sidecars_;
    for (const auto& s : all) {
        const auto silent = others_.silent_for(s.id, steady::now());
        const bool is_watched = leads() && silent && s.id != with_.who.id;
        list.push_back(
            {{"id", s.id},
             {"name", s.name},
             {"version", s.version},
             {"policy_hash", s.policy_hash},
             {"same_policy", s.policy_hash == hash},
             {"admin", s.admin},
             {"lease_ms", s.lease.count()},
             {"silent_ms", is_watched ? nlohmann::json(silent->count()) : nlohmann::json()},
             {"lapsed", is_watched && others_.lapsed(s.id, steady::now())},
             {"clock_ahead_ms", s.clock_ahead.count()},
             {"leads", s.id == mine.leader_id},
             {"this", s.id == with_.who.id}});
    }
    return {{"sidecars", std::move(list)},
            {"leader", {{"number", mine.leader}, {"id", mine.leader_id}}},
            {"this",
             {{"id", mine.id}, {"name", mine.name}, {"state", placement::to_string(mine.state)}}},
            {"store",
             {{"reachable", mine.store_up},
              {"away_ms", mine.store_away.count()},
              {"reason", mine.store_up ? nlohmann::json() : nlohmann::json(away_reason_)}}},
            {"tools", {{"held", mine.held}, {"unconfirmed", mine.unconfirmed}}},
            {"statements", mine.statements}};
}

}  // namespace hotlane::control
