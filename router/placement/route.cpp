#include "router/placement/route.hpp"

#include <algorithm>
#include <utility>

#include "config/load.hpp"

namespace hotlane::placement {

void hold_times::observe(std::chrono::microseconds held) noexcept {
    const double seconds = std::chrono::duration<double>(held).count();
    std::size_t at = 0;
    while (at < hold_edges.size() && seconds > hold_edges[at])
        ++at;
    counts[at].fetch_add(1, std::memory_order_relaxed);
    sum_us.fetch_add(static_cast<std::uint64_t>(held.count()), std::memory_order_relaxed);
}

std::size_t after_error_word(std::string_view tag) noexcept {
    const auto word = tag.substr(0, tag.find(' '));
    const auto same = [&](std::string_view known) {
        return known.size() == word.size() &&
               std::equal(known.begin(), known.end(), word.begin(), [](char a, char b) {
                   return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
               });
    };
    std::size_t at = 0;
    while (at + 1 < after_error_words.size() && !same(after_error_words[at]))
        ++at;
    return at;
}

after_error_counts read_after_error(const counters& counted) noexcept {
    after_error_counts out{counted.after_error_blocks.load(std::memory_order_relaxed)};
    for (std::size_t i = 0; i < counted.after_error.size(); ++i)
        out[i + 1] = counted.after_error[i].load(std::memory_order_relaxed);
    return out;
}

policy::traffic traffic_of(const counters& counted) noexcept {
    const auto read = [](const auto& value) { return value.load(std::memory_order_relaxed); };
    return {read(counted.transactions),
            read(counted.write_transactions),
            read(counted.write_conflicts),
            read(counted.errors),
            read(counted.unknown_outcomes),
            read(counted.hold_wait_us)};
}

void write_intervals::push(const policy::write_interval& one) {
    const std::lock_guard lock(mutex_);
    if (all_.size() >= max_) {
        const auto half = static_cast<std::ptrdiff_t>(all_.size() / 2);
        all_.erase(all_.begin(), all_.begin() + half);
        dropped_ += static_cast<std::uint64_t>(half);
    }
    all_.push_back(one);
}

std::vector<policy::write_interval> write_intervals::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(all_, {});
}

void write_intervals::count_dropped(std::uint64_t more) {
    const std::lock_guard lock(mutex_);
    dropped_ += more;
}

std::uint64_t write_intervals::dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_;
}

std::uint64_t observations::push(observation o) {
    const std::lock_guard lock(mutex_);
    std::uint64_t mark = 0;
    if (o.what == observation::kind::ddl) {
        ++ddl_unkept_;
        mark = ++ddl_passed_;
        if (ddl_queued_ >= ddl_max_) {
            ++ddl_lost_;
            return mark;
        }
        ++ddl_queued_;
    } else if (queue_.size() - ddl_queued_ >= max_) {
        ++dropped_;
        return mark;
    }
    queue_.push_back(std::move(o));
    return mark;
}

bool observations::is_kept(std::uint64_t mark) const {
    const std::lock_guard lock(mutex_);
    return ddl_lost_ > 0 || ddl_passed_ - ddl_unkept_ >= mark;
}

std::vector<observation> observations::take() {
    const std::lock_guard lock(mutex_);
    ddl_queued_ = 0;
    return std::exchange(queue_, {});
}

std::uint64_t observations::dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_;
}

std::uint64_t observations::ddl_lost() const {
    const std::lock_guard lock(mutex_);
    return ddl_lost_;
}

std::uint64_t observations::ddl_unkept() const {
    const std::lock_guard lock(mutex_);
    return ddl_unkept_;
}

void observations::ddl_kept() {
    const std::lock_guard lock(mutex_);
    --ddl_unkept_;
}

bool fleet_word::holds() const {
    const auto until = until_us.load(std::memory_order_acquire);
    if (until == std::numeric_limits<std::int64_t>::max()) return true;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(now).count() < until;
}

tool_entry::tool_entry() {
    route unplaced;
    unplaced.served = false;
    unplaced.reason = "its home is not known yet";
    route_ = std::make_shared<const route>(std::move(unplaced));
}

std::shared_ptr<const route> tool_entry::current() const {
    const std::lock_guard lock(mutex_);
    return route_;
}

void tool_entry::swap(std::shared_ptr<const route> next) {
    const std::lock_guard lock(mutex_);
    route_.swap(next);
    version_.fetch_add(1);
}

void tool_entry::place(home at, std::uint64_t epoch) {
    const std::lock_guard lock(mutex_);
    route next;
    next.epoch = epoch;
    next.generation = route_->generation + 1;
    next.at = std::move(at);
    route_ = std::make_shared<const route>(std::move(next));
    version_.fetch_add(1);
}

void tool_entry::renew_password(policy::home_kind at, std::string password) {
    const std::lock_guard lock(mutex_);
    if (route_->at.kind != at || route_->at.password == password) return;
    route next = *route_;
    next.at.password = std::move(password);
    route_ = std::make_shared<const route>(std::move(next));
    version_.fetch_add(1);
}

void tool_entry::close(std::string reason) {
    const std::lock_guard lock(mutex_);
    route next = *route_;
    next.served = false;
    next.reason = std::move(reason);
    ++next.generation;
    route_ = std::make_shared<const route>(std::move(next));
    version_.fetch_add(1);
}

tl::expected<home, std::string> home_of(const config::tool& settings,
                                        const config::model& model,
                                        policy::home_kind kind) {
    home at;
    at.kind = kind;
    if (kind == policy::home_kind::engine) {
        at.at = settings.engine.at;
        at.user = settings.engine.user;
        at.database = settings.engine.database;
        return at;
    }
    if (!settings.postgres) {
        return tl::unexpected("tool " + settings.name + " has no PostgreSQL home configured");
    }
    const auto& there = *settings.postgres;
    const auto server = model.postgres.find(there.server);
    if (server == model.postgres.end()) {
        return tl::unexpected("tool " + settings.name + ": no PostgreSQL server is called " +
                              there.server);
    }
    auto password = config::read_secret(there.password);
    if (!password) {
        return tl::unexpected("tool " + settings.name + ": " + std::move(password).error());
    }
    at.at = server->second.at;
    at.user = there.role;
    at.database = there.database.empty() ? settings.name : there.database;
    at.password = std::move(*password);
    at.search_path = there.schema == "public" ? std::string{} : there.schema;
    return at;
}

}  // namespace hotlane::placement
