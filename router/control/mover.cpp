#include "router/control/mover.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hotlane::control {

std::string_view to_string(order::state s) noexcept {
    switch (s) {
        case order::state::queued:
            return "queued";
        case order::state::running:
            return "running";
        case order::state::ended:
            return "ended";
    }
    return "?";
}

void mover::start(finished begun, finished on_end) {
    begun_ = std::move(begun);
    on_end_ = std::move(on_end);
    for (int i = 0; i < std::max(1, with_.moves_at_once); ++i)
        threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

bool mover::stop(std::chrono::milliseconds grace) {
    stopping_ = true;
    for (auto& thread : threads_)
        thread.request_stop();
    changed_.notify_all();
    {
        std::unique_lock lock(mutex_);
        const auto idle = [this] { return running_ == 0; };
        if (grace.count() > 0 && !changed_.wait_for(lock, grace, idle)) return false;
    }
    threads_.clear();
    return true;
}

tl::expected<std::uint64_t, std::string> mover::submit(const move::request& what) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return tl::unexpected(std::string("hotlane is shutting down"));
    if (!in_.may_decide())
        return tl::unexpected(std::string("this sidecar does not lead its fleet"));
    for (const auto& [number, there] : orders_) {
        if (there.what.tool == what.tool && there.at != order::state::ended)
            return tl::unexpected(
                fmt::format("a move of {} is already {} (order {})",
                            what.tool,
                            there.at == order::state::queued ? "queued" : "under way",
                            number));
    }
    if (queue_.size() >= with_.queue_max)
        return tl::unexpected(fmt::format("{} moves wait already", queue_.size()));
    while (orders_.size() >= with_.remembered_max) {
        const auto oldest = std::find_if(orders_.begin(), orders_.end(), [](const auto& o) {
            return o.second.at == order::state::ended;
        });
        if (oldest == orders_.end()) break;
        orders_.erase(oldest);
    }
    order made;
    made.number = next_++;
    made.what = what;
    made.given = in_.now();
    orders_.emplace(made.number, made);
    queue_.push_back(made.number);
    ++changes_;
    changed_.notify_all();
    return made.number;
}

std::optional<order> mover::find(std::uint64_t number) const {
    const std::lock_guard lock(mutex_);
    const auto found = orders_.find(number);
    if (found == orders_.end()) return std::nullopt;
    return found->second;
}

std::optional<order> mover::await(std::uint64_t number,
                                  const std::string& seen,
                                  std::chrono::milliseconds patience) const {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] {
        const auto found = orders_.find(number);
        return found == orders_.end() || found->second.at == order::state::ended ||
               found->second.phase != seen || stopping_;
    });
    const auto found = orders_.find(number);
    if (found == orders_.end()) return std::nullopt;
    return found->second;
}

void mover::await_change(std::chrono::milliseconds patience) const {
    std::unique_lock lock(mutex_);
    changed_.wait_for(
        lock, patience, [this, seen = changes_] { return changes_ != seen || stopping_; });
}

bool mover::abort(const std::string& move) {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, there] : orders_) {
        if (there.at != order::state::running || there.move_id != move) continue;
        there.abort->store(true);
        return true;
    }
    return false;
}

std::optional<order> mover::active(const std::string& tool) const {
    for (auto& each : all_active()) {
        if (each.what.tool == tool) return each;
    }
    return std::nullopt;
}

std::vector<order> mover::all_active() const {
    const std::lock_guard lock(mutex_);
    std::vector<order> out;
    for (const auto& [number, there] : orders_) {
        if (there.at != order::state::ended) out.push_back(there);
    }
    return out;
}

void mover::work(const std::stop_token& stop) {
    while (true) {
        order mine;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, stop, [this] { return !queue_.empty(); });
            if (stop.stop_requested()) return;
            auto& first = orders_.at(queue_.front());
            queue_.pop_front();
            first.at = order::state::running;
            first.phase_since = in_.now();
            ++running_;
            mine = first;
        }
        if (begun_) begun_(mine);
        run(mine);
        if (on_end_) on_end_(mine);
        {
            const std::lock_guard lock(mutex_);
            orders_[mine.number] = mine;
            ++changes_;
            --running_;
        }
        changed_.notify_all();
    }
}

void mover::run(order& mine) {
    const auto model = in_.model.get();
    move::surroundings around{
        *model,
        in_.tools,
        in_.store,
        in_.now,
        [this, number = mine.number](const placement::move_record& r) { note(number, r); },
        &stopping_,
        in_.others,
        mine.abort.get(),
        mine.live.get()};
    mine.report = in_.act.run(mine.what, around);
    mine.at = order::state::ended;
    mine.ended = in_.now();
    mine.move_id = mine.report->id;
    mine.phase = mine.report->moved ? "done" : "ended";
    if (in_.act.poke && mine.what.execute) in_.act.poke(mine.what.tool);
}

void mover::note(std::uint64_t number, const placement::move_record& record) {
    {
        const std::lock_guard lock(mutex_);
        auto& mine = orders_.at(number);
        mine.move_id = record.id;
        if (mine.phase != record.phase) mine.phase_since = in_.now();
        mine.phase = record.phase;
        mine.waits_for = record.reason;
        ++changes_;
    }
    changed_.notify_all();
    in_.log(severity::info,
            "move_phase",
            {{"tool", record.tool}, {"move", record.id}, {"phase", record.phase}});
}

}  // namespace hotlane::control
