#include "policy/scenario.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hotlane::policy {

namespace {

constexpr std::array<std::string_view, 9> series_names{"acquires",
                                                       "handoffs",
                                                       "wait_us",
                                                       "commits",
                                                       "lsn",
                                                       "commit_latency_us",
                                                       "transactions",
                                                       "writes",
                                                       "conflicts"};
constexpr time_point scenario_start{duration{1'700'000'000'000}};

bool take_number(std::string_view& text, double& into) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

// "x3" at the end: how often more. Nothing: none stands there.
bool take_times(std::string_view& text, std::size_t& into) {
    if (text.empty()) return true;
    if (text.front() != 'x') return false;
    text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    const bool is_read = error == std::errc{} && end == text.data() + text.size();
    text = {};
    return is_read && into <= series_max;
}

bool add_item(std::string_view item, std::vector<series_value>& into) {
    using kind = series_value::kind;
    const auto put = [&](kind what, double first, double step, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            into.push_back({what, first + step * static_cast<double>(i)});
    };
    std::size_t times = 0;
    if (item.front() == '_' || item.starts_with("stale")) {
        const auto what = item.front() == '_' ? kind::missed : kind::stale;
        item.remove_prefix(item.front() == '_' ? 1 : 5);
        const bool is_repeated = !item.empty();
        if (!take_times(item, times)) return false;
        put(what, 0, 0, is_repeated ? times : 1);
        return true;
    }
    double first = 0;
    double step = 0;
    if (!take_number(item, first)) return false;
    if (!item.empty() && (item.front() == '+' || item.front() == '-')) {
        const double sign = item.front() == '+' ? 1.0 : -1.0;
        item.remove_prefix(1);
        if (!take_number(item, step) || item.empty()) return false;
        step *= sign;
    }
    if (!take_times(item, times)) return false;
    put(kind::value, first, step, times + 1);
    return true;
}

class runner {
  public:
    explicit runner(const scenario& s)
        : s_{s},
          policy_{s.tool, s.with},
          step_{s.interval.count() > 0 ? s.interval : s.with.window.length} {}

    std::vector<std::string> go() {
        const duration end = last_moment();
        for (duration at{0}; at <= end; at += step_) {
            expect_before(at);
            happen_until(at);
            read(at);
        }
        expect_before(end + duration{1});
        return std::move(differences_);
    }

  private:
    using happening = scenario::happening;

    [[nodiscard]] duration last_moment() const {
        std::size_t longest = 1;
        for (const auto& [name, values] : s_.series)
            longest = std::max(longest, values.size());
        auto end = step_ * static_cast<int>(longest - 1);
        if (!s_.expected.empty()) end = std::max(end, s_.expected.back().at);
        return end;
    }

    // Expectations stand behind everything of their own moment.
    void expect_before(duration at) {
        while (next_expected_ < s_.expected.size() && s_.expected[next_expected_].at < at) {
            const auto& wanted = s_.expected[next_expected_++];
            happen_until(wanted.at);
            tick(wanted.at);
            compare(wanted);
        }
    }

    void happen_until(duration at) {
        while (next_happening_ < s_.happenings.size() && s_.happenings[next_happening_].at <= at) {
            const auto& one = s_.happenings[next_happening_++];
            happen(one, scenario_start + one.at);
        }
        if (moving_since_ && s_.move_takes && at - *moving_since_ >= *s_.move_takes) {
            moving_since_.reset();
            take(policy_.move_finished(move_end::ok, "test", s_.fleet, scenario_start + at), at);
        }
    }

    void happen(const happening& one, time_point now) {
        const auto& f = s_.fleet;
        const auto ended = [&](move_end end) {
            moving_since_.reset();
            take(policy_.move_finished(end, "test", f, now), one.at);
        };
        switch (one.what) {
            case happening::kind::shard_done:
                return take(policy_.shard_done("test", f, now), one.at);
            case happening::kind::shard_skip:
                return take(policy_.shard_skip("test", f, now), one.at);
            case happening::kind::order_postgres:
                return take(policy_.order(home_kind::postgres, "test", f, now), one.at);
            case happening::kind::order_engine:
                return take(policy_.order(home_kind::engine, "test", f, now), one.at);
            case happening::kind::move_done:
                return ended(move_end::ok);
            case happening::kind::move_failed:
                return ended(move_end::failed);
            case happening::kind::move_refused:
                return ended(move_end::refused);
            case happening::kind::restart:
                policy_ = tool_policy{s_.tool, s_.with, policy_.state()};
                seen_base_ = seen_;
                return;
        }
    }

    void take(outcome&& out, duration at) {
        if (!out.refusal.empty())
            differences_.push_back(
                fmt::format("{}: at {} it was refused: {}", s_.where, text_of(at), out.refusal));
        for (auto& one : out.decisions)
            since_.push_back(std::move(one.rule));
        for (const auto& one : out.commands)
            if (one.kind == command_kind::start_move) moving_since_ = at;
    }

    void tick(duration at) { take(policy_.tick(s_.fleet, scenario_start + at), at); }

    // Nothing: the sampler missed this moment.
    std::optional<series_value> value(const char* name, std::size_t index) const {
        const auto found = s_.series.find(name);
        if (found == s_.series.end() || found->second.empty()) return std::nullopt;
        return found->second[std::min(index, found->second.size() - 1)];
    }
    static std::optional<std::uint64_t> counter(const std::optional<series_value>& v) {
        if (!v || v->what != series_value::kind::value) return std::nullopt;
        return static_cast<std::uint64_t>(std::llround(std::max(0.0, v->value)));
    }

    void read(duration at) {
        const auto index = static_cast<std::size_t>(at / step_);
        for (const auto& [name, values] : s_.series) {
            const auto v = value(name.c_str(), index);
            if (v && v->what == series_value::kind::missed) return;
        }
        const auto get = [&](const char* name) { return counter(value(name, index)); };
        sample counters;
        counters.taken_at = scenario_start + at;
        counters.acquires = get("acquires");
        counters.handoffs = get("handoffs");
        counters.wait_us = get("wait_us");
        counters.commits = get("commits");
        counters.committed_lsn = get("lsn");
        if (const auto us = get("commit_latency_us"))
            counters.commit_latency = std::chrono::microseconds{static_cast<std::int64_t>(*us)};
        note_traffic(counters, index);
        take(policy_.feed(counters, since_start(), s_.fleet, counters.taken_at), at);
    }

    void note_traffic(const sample& counters, std::size_t index) {
        const auto get = [&](const char* name) { return counter(value(name, index)); };
        const auto grown = [](std::optional<std::uint64_t> now, std::uint64_t& last) {
            if (!now) return std::uint64_t{0};
            const auto more = *now >= last ? *now - last : *now;
            last = *now;
            return more;
        };
        const auto acquired = grown(counters.acquires, last_acquires_);
        const auto committed = grown(counters.commits, last_commits_);
        const bool says_writes = s_.series.contains("writes");
        const auto writes = says_writes ? grown(get("writes"), last_writes_) : acquired;
        const auto aborted =
            counters.commits && acquired > committed ? acquired - committed : std::uint64_t{0};
        const auto conflicts = s_.series.contains("conflicts")
                                   ? grown(get("conflicts"), last_conflicts_)
                                   : std::min(aborted, writes);
        const auto transactions = s_.series.contains("transactions")
                                      ? grown(get("transactions"), last_transactions_)
                                      : writes;
        seen_.write_transactions += writes;
        seen_.write_conflicts += conflicts;
        seen_.transactions += transactions;
    }

    [[nodiscard]] traffic since_start() const {
        traffic out;
        out.transactions = seen_.transactions - seen_base_.transactions;
        out.write_transactions = seen_.write_transactions - seen_base_.write_transactions;
        out.write_conflicts = seen_.write_conflicts - seen_base_.write_conflicts;
        return out;
    }

    template <typename Word>
    void differs(const scenario::expectation& wanted,
                 const char* what,
                 const Word& expected,
                 const Word& got) {
        differences_.push_back(fmt::format("{}: at {} {} is {}, expected {}",
                                           wanted.where,
                                           text_of(wanted.at),
                                           what,
                                           got,
                                           expected));
    }

    void compare(const scenario::expectation& wanted) {
        const auto check = [&](const char* what, const auto& expected, const auto& got) {
            if (expected && *expected != got)
                differs(wanted, what, to_string(*expected), to_string(got));
        };
        const auto last = policy_.last_window();
        check("the verdict", wanted.says, policy_.last_verdict());
        check("the window", wanted.quality, last ? last->quality : window_quality::stale);
        check("the stage", wanted.stands, policy_.state().at);
        check("the diagnosis", wanted.found, policy_.state().why);
        check("the home", wanted.lives, policy_.state().home);
        if (wanted.decisions && *wanted.decisions != since_)
            differs(wanted,
                    "the list of decisions",
                    fmt::format("[{}]", fmt::join(*wanted.decisions, ", ")),
                    fmt::format("[{}]", fmt::join(since_, ", ")));
        since_.clear();
    }

    const scenario& s_;
    tool_policy policy_;
    duration step_;
    std::size_t next_expected_{0};
    std::size_t next_happening_{0};
    std::optional<duration> moving_since_;
    std::vector<std::string> since_;
    std::vector<std::string> differences_;
    traffic seen_;
    traffic seen_base_;
    std::uint64_t last_acquires_{0};
    std::uint64_t last_commits_{0};
    std::uint64_t last_writes_{0};
    std::uint64_t last_conflicts_{0};
    std::uint64_t last_transactions_{0};
};

}  // namespace

tl::expected<std::vector<series_value>, std::string> parse_series(std::string_view text) {
    std::vector<series_value> out;
    while (true) {
        const auto begin = text.find_first_not_of(" \t\n");
        if (begin == text.npos) break;
        text.remove_prefix(begin);
        const auto end = std::min(text.find_first_of(" \t\n"), text.size());
        const auto item = text.substr(0, end);
        text.remove_prefix(end);
        if (!add_item(item, out))
            return tl::unexpected(
                fmt::format("\"{}\" is no series value; for example 0+10x5, 7x3, _, stale", item));
        if (out.size() > series_max)
            return tl::unexpected(fmt::format("has more than {} values", series_max));
    }
    if (out.empty()) return tl::unexpected(std::string("is empty"));
    return out;
}

bool is_series_name(std::string_view name) noexcept {
    return std::find(series_names.begin(), series_names.end(), name) != series_names.end();
}

std::vector<std::string> run(const scenario& one) {
    return runner{one}.go();
}

}  // namespace hotlane::policy
