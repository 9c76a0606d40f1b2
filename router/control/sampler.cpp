#include "router/control/sampler.hpp"

#include <algorithm>

namespace hotlane::control {

namespace {

// A spread without a random source: the same tool always has the same place in the window.
std::uint64_t spread(const std::string& name, std::uint64_t turn) {
    return std::hash<std::string>{}(name + '#' + std::to_string(turn));
}

}  // namespace

void sampler::start() {
    for (int i = 0; i < std::max(2, with_.workers); ++i) {
        const bool takes_slow = i % 2 == 1;
        threads_.emplace_back(
            [this, takes_slow](const std::stop_token& stop) { work(stop, takes_slow); });
    }
}

void sampler::stop() {
    {
        // Under the lock: no worker is between its look at the token and its wait.
        const std::lock_guard lock(mutex_);
        for (auto& thread : threads_)
            thread.request_stop();
    }
    changed_.notify_all();
    threads_.clear();
}

void sampler::add(std::shared_ptr<desk> tool) {
    const auto length = tool->settings().window.length;
    const auto name = tool->name();
    {
        const std::lock_guard lock(mutex_);
        item made;
        made.tool = std::move(tool);
        made.due = steady::now() + length * static_cast<long long>(spread(name, 0) % 1000) / 1000;
        items_.try_emplace(name, std::move(made));
    }
    changed_.notify_all();
}

sampler::item* sampler::next(bool takes_slow) {
    item* best = nullptr;
    for (auto& [name, each] : items_) {
        if (each.running || (each.slow && !takes_slow)) continue;
        if (best == nullptr || each.due < best->due) best = &each;
    }
    return best;
}

void sampler::work(const std::stop_token& stop, bool takes_slow) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        item* mine = next(takes_slow);
        if (mine == nullptr) {
            changed_.wait(lock);
            continue;
        }
        if (mine->due > steady::now()) {
            const auto due = mine->due;  // the wait reads it without the lock
            changed_.wait_until(lock, due);
            continue;
        }
        mine->running = true;
        lock.unlock();
        sample(*mine);
        const auto wait = pause(*mine);
        lock.lock();
        mine->running = false;
        ++mine->turn;
        mine->due = std::max(mine->due + wait, steady::now());
        changed_.notify_all();
    }
}

sampler::steady::duration sampler::pause(const item& mine) const {
    const auto length = mine.tool->settings().window.length;
    auto wait = length * (1LL << std::min(mine.failures, 10));
    wait = std::max(length, std::min<policy::duration>(wait, with_.backoff_max));
    // Jitter around the length, never adding up: a window that is late counts as a gap.
    const auto part =
        static_cast<long long>(spread(mine.tool->name(), mine.turn + 1) %
                               static_cast<std::uint64_t>(2 * with_.jitter_permille + 1));
    return wait + length * (part - with_.jitter_permille) / 1000;
}

void sampler::sample(item& mine) {
    if (!in_.may_decide()) return;  // the leader asks for the whole fleet
    const auto route = mine.tool->entry().current();
    if (!route->served) return;
    const auto seen = mine.tool->traffic().transactions;
    if (seen == mine.transactions) {
        mine.tool->sample_skipped();
        return;
    }
    if (!mine.read || mine.home != route->at.kind) {
        const auto model = in_.model.get();
        mine.home = route->at.kind;
        mine.read = open_(mine.tool->entry().settings, *model, mine.home);
    }
    mine.transactions = seen;
    measure(mine);
    read_one(mine);
}

// A tool that is hot may have to move: how quick is the home that it would get? Calm tools ask
// nobody, so a PostgreSQL that nobody needs is left alone.
void sampler::measure(item& mine) const {
    constexpr std::chrono::seconds every{60};
    const auto now = steady::now();
    const bool is_due = !mine.measured_at || now - *mine.measured_at >= every;
    if (!in_.act.measure || !is_due || mine.home != policy::home_kind::engine) return;
    if (!mine.tool->entry().settings.postgres || !mine.tool->is_hot()) return;
    const auto model = in_.model.get();
    mine.measured_at = now;
    mine.tool->set_target(in_.act.measure(mine.tool->entry().settings, *model));
}

void sampler::read_one(item& mine) {
    const auto began = steady::now();
    const auto started = in_.now();
    auto got = mine.read();
    const auto took = steady::now() - began;
    mine.slow = !got || took > with_.slow;
    if (got) {
        mine.failures = 0;
        mine.tool->feed(std::move(*got));
        return;
    }
    mine.tool->sample_failed(got.error());
    if (mine.home == policy::home_kind::engine) {
        ++mine.failures;
        return;
    }
    // At a PostgreSQL home the writes that the data plane saw are the evidence; the server's lock
    // waits only stand beside it.
    policy::sample without;
    without.taken_at = started;
    mine.tool->feed(without);
}

}  // namespace hotlane::control
