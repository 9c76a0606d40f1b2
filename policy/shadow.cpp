#include "policy/shadow.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <queue>
#include <unordered_map>

namespace hotlane::policy {

namespace {

// As measured on the engine: so that nobody waits for ever, every fourth is the oldest.
constexpr int picks_per_oldest = 4;
// More steps than this in one simulation are cut: a model that is wrong must not take the CPU.
constexpr std::size_t steps_max = 400'000;

struct step_of_session {
    double think_us{};  // before it
    std::uint64_t key{};
    double own_us{};  // a block's own time between its first and its last statement
    bool block{false};
};

// One session's writes, which it repeats: the last think reaches to the end of the window.
struct session_plan {
    std::vector<step_of_session> steps;
    double rest_us{};  // after the last one
    std::size_t next{0};

    const step_of_session& take(double& think) {
        think = steps[next].think_us;
        if (next == 0 && is_repeated) think += rest_us;
        const auto& one = steps[next];
        next = (next + 1) % steps.size();
        if (next == 0) is_repeated = true;
        return one;
    }
    bool is_repeated{false};
};

std::vector<session_plan> plans_of(std::span<const write_interval> writes,
                                   std::int64_t from,
                                   std::int64_t to) {
    std::map<std::uint64_t, std::vector<write_interval>> by_session;
    for (const auto& one : writes)
        by_session[one.session].push_back(one);
    std::vector<session_plan> plans;
    for (auto& [session, all] : by_session) {
        std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
            return a.start_us < b.start_us;
        });
        session_plan plan;
        std::int64_t last = from;
        for (const auto& one : all) {
            const auto length =
                static_cast<double>(std::max<std::int64_t>(0, one.end_us - one.start_us));
            plan.steps.push_back(
                {static_cast<double>(std::max<std::int64_t>(0, one.start_us - last)),
                 one.key,
                 one.block ? length : 0.0,
                 one.block});
            last = one.end_us;
        }
        plan.rest_us = static_cast<double>(std::max<std::int64_t>(0, to - last));
        plans.push_back(std::move(plan));
    }
    return plans;
}

enum class what : std::uint8_t { arrives, leaves };
struct moment {
    double at{};
    what is{};
    std::size_t session{};
    std::uint64_t turn{};  // ties in order
    bool operator>(const moment& other) const noexcept {
        return at != other.at ? at > other.at : turn > other.turn;
    }
};
using agenda = std::priority_queue<moment, std::vector<moment>, std::greater<>>;

// Takes what is due, in order, until the time or the steps are over; `take` may add to the agenda.
template <typename Take>
void play(agenda& due, double length_us, Take take) {
    for (std::size_t steps = 0; !due.empty() && steps < steps_max; ++steps) {
        const auto next = due.top();
        if (next.at > length_us) break;
        due.pop();
        take(next);
    }
}

// --- the engine -------------------------------------------------------------------------------

// No two writes take the same time. Times that are all alike make a closed loop fall into step,
// where everybody waits or nobody does; as measured, the spread is about as large as the mean. The
// same input draws the same times.
class spread {
  public:
    explicit spread(std::uint64_t seed) : state_(seed) {}
    double operator()(double mean) {
        state_ += 0x9e3779b97f4a7c15ULL;  // splitmix64
        std::uint64_t z = state_;
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
        z ^= z >> 31U;
        return -std::log(static_cast<double>((z >> 11U) + 1) * 0x1p-53) * mean;
    }

  private:
    std::uint64_t state_;
};

// What leaves the lane while a group is written waits for the next one, and all writes of a group
// are answered at once: their clients come back together, which is what makes them queue. Half of
// the time until durable is a group's turn at the log, in the other half the next one has it.
class group_commit {
  public:
    explicit group_commit(double takes_us) : half_us_(takes_us / 2) {}

    double reply_of(double at) {
        if (at >= begins_) {  // else the next group still waits, and this write joins it
            begins_ = std::max(at, ends_);
            ends_ = begins_ + draw_(half_us_);
        }
        return ends_ + half_us_;
    }

  private:
    double half_us_;
    double begins_{0};
    double ends_{0};
    spread draw_{2};
};

class lane_simulation {
  public:
    lane_simulation(std::vector<session_plan> plans, const lane_model& engine)
        : plans_(std::move(plans)),
          engine_(engine),
          commits_(engine.durable_us),
          now_of_(plans_.size()) {}

    lane_figures run(double length_us) {
        for (std::size_t i = 0; i < plans_.size(); ++i)
            plan_next(i, 0.0);
        play(agenda_, length_us, [this](const moment& next) {
            next.is == what::arrives ? arrive(next.session, next.at) : leave(next.session, next.at);
        });
        return seen_;
    }

  private:
    struct current {
        step_of_session step;
        double arrived{};
        bool conflict{false};
    };

    void plan_next(std::size_t session, double at) {
        double think = 0;
        now_of_[session].step = plans_[session].take(think);
        // A client needs a moment between reply and next write, also where none was seen.
        agenda_.push({at + std::max(think, 1.0), what::arrives, session, turn_++});
    }

    void arrive(std::size_t session, double at) {
        now_of_[session].arrived = at;
        ++seen_.acquires;
        if (is_busy_) {
            ++seen_.handoffs;
            queue_.push_back(session);
            return;
        }
        is_busy_ = true;
        enter(session, at);
    }

    void enter(std::size_t session, double at) {
        auto& mine = now_of_[session];
        const auto last = durable_at_.find(mine.step.key);
        mine.conflict = last != durable_at_.end() && last->second > mine.arrived;
        const double takes = draw_(engine_.in_lane_us) + mine.step.own_us;
        agenda_.push({at + takes, what::leaves, session, turn_++});
    }

    void leave(std::size_t session, double at) {
        auto& mine = now_of_[session];
        auto& durable_at = durable_at_[mine.step.key];
        if (mine.conflict)
            ++seen_.conflicts;
        else
            durable_at = commits_.reply_of(at);
        const double replied = std::max(at, durable_at);  // a conflict too is known only then
        plan_next(session, replied);
        if (queue_.empty()) {
            is_busy_ = false;
            return;
        }
        const bool oldest = ++picks_ % picks_per_oldest == 0;
        const std::size_t chosen = oldest ? queue_.front() : queue_.back();
        oldest ? queue_.pop_front() : queue_.pop_back();
        seen_.wait_us += static_cast<std::uint64_t>(at - now_of_[chosen].arrived);
        enter(chosen, at);
    }

    std::vector<session_plan> plans_;
    lane_model engine_;
    group_commit commits_;
    spread draw_{1};
    std::vector<current> now_of_;
    agenda agenda_;
    std::deque<std::size_t> queue_;
    std::unordered_map<std::uint64_t, double> durable_at_;
    lane_figures seen_;
    bool is_busy_{false};
    int picks_{0};
    std::uint64_t turn_{0};
};

// --- PostgreSQL -------------------------------------------------------------------------------

class row_simulation {
  public:
    row_simulation(std::vector<session_plan> plans, const postgres_model& home)
        : plans_(std::move(plans)), home_(home), now_of_(plans_.size()) {}

    home_figures run(double length_us) {
        for (std::size_t i = 0; i < plans_.size(); ++i)
            plan_next(i, 0.0);
        play(agenda_, length_us, [this](const moment& next) {
            next.is == what::arrives ? arrive(next.session, next.at) : leave(next.session, next.at);
        });
        return summary(length_us);
    }

  private:
    struct current {
        step_of_session step;
        double asked{};
        bool fails{false};
    };
    struct row_lock {
        bool taken{false};
        double changed_at{-1};
        std::deque<std::size_t> queue;
    };

    void plan_next(std::size_t session, double at) {
        double think = 0;
        now_of_[session].step = plans_[session].take(think);
        now_of_[session].asked = at + std::max(think, 1.0);
        const double there = now_of_[session].asked + home_.round_trip_us / 2;
        agenda_.push({there, what::arrives, session, turn_++});
    }

    void arrive(std::size_t session, double at) {
        auto& lock = rows_[now_of_[session].step.key];
        if (lock.taken)
            lock.queue.push_back(session);
        else
            enter(session, lock, at);
    }

    void enter(std::size_t session, row_lock& lock, double at) {
        lock.taken = true;
        auto& mine = now_of_[session];
        mine.fails = mine.step.block && lock.changed_at > mine.asked;
        const double takes = mine.fails ? 0.0 : home_.commit_us + mine.step.own_us;
        agenda_.push({at + takes, what::leaves, session, turn_++});
    }

    void leave(std::size_t session, double at) {
        auto& mine = now_of_[session];
        auto& lock = rows_[mine.step.key];
        if (mine.fails)
            ++failures_;
        else
            lock.changed_at = at;
        const double replied = at + home_.round_trip_us / 2;
        latencies_.push_back(replied - mine.asked);
        lock.taken = false;
        if (!lock.queue.empty()) {
            const auto next = lock.queue.front();
            lock.queue.pop_front();
            enter(next, lock, at);
        }
        plan_next(session, replied);
    }

    home_figures summary(double length_us) {
        home_figures out;
        out.writes = latencies_.size();
        if (latencies_.empty()) return out;
        std::sort(latencies_.begin(), latencies_.end());
        double sum = 0;
        for (const double one : latencies_)
            sum += one;
        const auto n = static_cast<double>(latencies_.size());
        out.latency_us = sum / n;
        out.p95_us = latencies_[std::min(latencies_.size() - 1, latencies_.size() * 95 / 100)];
        out.writes_per_s = length_us > 0 ? n * 1e6 / length_us : 0.0;
        out.failure_rate = static_cast<double>(failures_) / n;
        return out;
    }

    std::vector<session_plan> plans_;
    postgres_model home_;
    std::vector<current> now_of_;
    agenda agenda_;
    std::unordered_map<std::uint64_t, row_lock> rows_;
    std::vector<double> latencies_;
    std::uint64_t failures_{0};
    std::uint64_t turn_{0};
};

}  // namespace

lane_figures simulate_lane(std::span<const write_interval> writes,
                           std::int64_t from_us,
                           std::int64_t to_us,
                           const lane_model& engine) {
    if (writes.empty() || to_us <= from_us) return {};
    return lane_simulation{plans_of(writes, from_us, to_us), engine}.run(
        static_cast<double>(to_us - from_us));
}

home_figures simulate_postgres(std::span<const write_interval> writes,
                               std::int64_t from_us,
                               std::int64_t to_us,
                               const postgres_model& home) {
    if (writes.empty() || to_us <= from_us) return {};
    return row_simulation{plans_of(writes, from_us, to_us), home}.run(
        static_cast<double>(to_us - from_us));
}

void write_log::add(std::span<const write_interval> more) {
    all_.insert(all_.end(), more.begin(), more.end());
    std::sort(
        all_.begin(), all_.end(), [](const auto& a, const auto& b) { return a.end_us < b.end_us; });
    if (all_.size() <= max_) return;
    const auto lost = static_cast<std::ptrdiff_t>(all_.size() - max_);
    lost_until_us_ = std::max(lost_until_us_, all_[static_cast<std::size_t>(lost) - 1].end_us);
    all_.erase(all_.begin(), all_.begin() + lost);
}

void write_log::forget_before(std::int64_t us) {
    const auto first =
        std::find_if(all_.begin(), all_.end(), [us](const auto& one) { return one.end_us > us; });
    if (first == all_.begin()) return;
    lost_until_us_ = std::max(lost_until_us_, std::prev(first)->end_us);
    all_.erase(all_.begin(), first);
}

void write_log::clear() {
    all_.clear();
    lost_until_us_ = 0;
}

std::optional<std::span<const write_interval>> write_log::between(std::int64_t from_us,
                                                                  std::int64_t to_us) const {
    if (lost_until_us_ > from_us) return std::nullopt;
    const auto after = [](std::int64_t us, const write_interval& one) { return us < one.end_us; };
    const auto first = std::upper_bound(all_.begin(), all_.end(), from_us, after);
    const auto last = std::upper_bound(first, all_.end(), to_us, after);
    if (first == last) return std::nullopt;
    return std::span<const write_interval>{first, last};
}

}  // namespace hotlane::policy
