#include "router/control/placer.hpp"

#include <algorithm>
#include <functional>

namespace hotlane::control {

void placer::start() {
    {
        // The table calls meet() with its lock held, so it is asked before ours is taken.
        const auto known = in_.tools.all();
        const std::lock_guard lock(mutex_);
        for (const auto& entry : known) {
            jobs_.try_emplace(entry->name, job{steady::now()});
            untried_.insert(entry->name);
        }
    }
    for (int i = 0; i < with_.workers; ++i)
        threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

void placer::look_again() {
    {
        const auto known = in_.tools.all();
        const std::lock_guard lock(mutex_);
        for (const auto& entry : known) {
            jobs_.try_emplace(entry->name, job{steady::now()});
            untried_.insert(entry->name);
        }
    }
    changed_.notify_all();
}

void placer::stop() {
    stopping_ = true;
    {
        // Under the lock: no worker is between its look at the token and its wait.
        const std::lock_guard lock(mutex_);
        for (auto& thread : threads_)
            thread.request_stop();
    }
    changed_.notify_all();
    threads_.clear();
}

void placer::meet(placement::tool_entry& entry) {
    entry.gate.hold();
    add(entry.name);
}

void placer::add(const std::string& tool) {
    {
        const std::lock_guard lock(mutex_);
        jobs_.try_emplace(tool, job{steady::now()});
    }
    changed_.notify_all();
}

bool placer::tried_all() const {
    const std::lock_guard lock(mutex_);
    return untried_.empty();
}

void placer::wait_tried(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, longest, [this] { return untried_.empty(); });
}

bool placer::placed(const std::string& tool) const {
    const std::lock_guard lock(mutex_);
    return jobs_.count(tool) == 0;
}

std::size_t placer::unplaced() const {
    const std::lock_guard lock(mutex_);
    return jobs_.size();
}

void placer::work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        auto next = jobs_.end();
        for (auto it = jobs_.begin(); it != jobs_.end(); ++it) {
            if (!it->second.running && (next == jobs_.end() || it->second.due < next->second.due))
                next = it;
        }
        if (next == jobs_.end()) {
            changed_.wait(lock);
            continue;
        }
        if (next->second.due > steady::now()) {
            const auto due = next->second.due;  // the wait reads it without the lock
            changed_.wait_until(lock, due);
            continue;
        }
        const std::string tool = next->first;
        next->second.running = true;
        const int tries = next->second.tries;
        lock.unlock();
        const bool done = try_one(tool, tries);
        lock.lock();
        untried_.erase(tool);
        if (done) {
            jobs_.erase(tool);
        } else {
            auto& again = jobs_[tool];
            again.running = false;
            again.tries = tries + 1;
            again.due = steady::now() + pause_after(tool, tries);
        }
        changed_.notify_all();
    }
}

// Without a clock or a random source of its own: the spread comes from the tool's name.
placer::steady::duration placer::pause_after(const std::string& tool, int tries) const {
    auto pause = with_.retry_first * (1LL << std::min(tries, 16));
    pause = std::min<std::chrono::milliseconds>(pause, with_.retry_max);
    const auto spread = static_cast<long long>(std::hash<std::string>{}(tool) % 250U);
    return pause + pause * spread / 1000;
}

bool placer::try_one(const std::string& tool, int tries) {
    const auto entry = in_.tools.find(tool);
    if (!entry) return true;
    if (moving && moving(tool)) return false;
    const auto model = in_.model.get();
    move::surroundings around{*model, in_.tools, in_.store, in_.now, {}, &stopping_, in_.others};
    const bool placed = in_.act.recover(*entry, around);
    const auto route = entry->current();
    if (placed) {
        in_.log(severity::info,
                "tool_placed",
                {{"tool", tool},
                 {"home", policy::to_string(route->at.kind)},
                 {"epoch", route->epoch},
                 {"tries", tries + 1}});
    } else if (tries == 0) {
        in_.log(severity::warning, "tool_not_placed", {{"tool", tool}, {"reason", route->reason}});
    }
    // Whoever waited at the gate goes on: to the home, or to the reason why there is none.
    if (on_tried) {
        on_tried(*entry, placed);
    } else {
        entry->gate.release();
    }
    if (placed && on_placed) on_placed(*entry);
    return placed;
}

}  // namespace hotlane::control
