// Counters of engines that answer a query of the configuration, and the speed of a PostgreSQL.
#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>

#include "metrics/pg_link.hpp"

namespace hotlane::metrics {

namespace {

using kind = source_error::kind;
using steady = std::chrono::steady_clock;

struct column {
    std::string_view name;
    std::optional<std::uint64_t> policy::sample::*member;
};
constexpr column columns[] = {
    {"acquires", &policy::sample::acquires},
    {"handoffs", &policy::sample::handoffs},
    {"wait_us", &policy::sample::wait_us},
    {"commits", &policy::sample::commits},
};

// Whole numbers; a query may give them as numeric ("12.000"): what is behind the point is dropped.
std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value{};
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = end == text.data() + text.size() || *end == '.';
    if (ec != std::errc{} || !is_whole) return {};
    return value;
}

tl::unexpected<source_error> bad(std::string detail) {
    return tl::unexpected<source_error>{source_error{kind::bad_reply, std::move(detail)}};
}

}  // namespace

struct shared_query::state {
    state(source_target target, std::string text, policy::duration keep)
        : link{std::move(target), pg_link::encryption::prefer},
          sql{std::move(text)},
          shared_for{keep} {}

    void refresh(const clock_function& now, policy::duration budget) {
        const auto start = steady::now();
        if (read_at && start - *read_at < shared_for) return;
        rows.clear();
        trouble.reset();
        std::vector<std::string> names;
        const auto got = link.query(sql.c_str(), start + budget, &names);
        taken_at = now();
        cost = std::chrono::duration_cast<std::chrono::microseconds>(steady::now() - start);
        read_at = steady::now();
        if (!got) {
            trouble = got.error();
            return;
        }
        take(*got, names);
    }

    void take(const std::vector<pg_row>& got, const std::vector<std::string>& names) {
        const auto at = [&](std::string_view name) {
            const auto found = std::find(names.begin(), names.end(), name);
            return static_cast<std::size_t>(found - names.begin());
        };
        const auto tool = at("tool");
        if (tool == names.size()) {
            trouble = source_error{kind::bad_reply, "the query has no column tool"};
            return;
        }
        for (const auto& row : got) {
            if (!row[tool]) continue;
            policy::sample one;
            for (const auto& c : columns) {
                const auto index = at(c.name);
                if (index < row.size() && row[index]) one.*c.member = number(*row[index]);
            }
            rows.emplace(*row[tool], one);
        }
    }

    std::mutex mutex;
    pg_link link;
    std::string sql;
    std::chrono::milliseconds shared_for;
    std::optional<steady::time_point> read_at;
    policy::time_point taken_at{};
    std::chrono::microseconds cost{};
    std::map<std::string, policy::sample> rows;
    std::optional<source_error> trouble;
};

shared_query::shared_query(source_target target, std::string sql, policy::duration shared_for)
    : state_{std::make_unique<state>(std::move(target), std::move(sql), shared_for)} {}
shared_query::~shared_query() = default;

tl::expected<policy::sample, source_error> shared_query::read(const std::string& tool,
                                                              const clock_function& now,
                                                              policy::duration budget) {
    // One asks, the others wait for its answer, no longer than its budget.
    const std::lock_guard lock(state_->mutex);
    state_->refresh(now, budget);
    if (state_->trouble) return tl::unexpected<source_error>{*state_->trouble};
    const auto found = state_->rows.find(tool);
    if (found == state_->rows.end()) return bad("the query has no row for this tool");
    policy::sample out = found->second;
    if (!out.acquires && !out.handoffs && !out.wait_us)
        return bad("the row of this tool has no lane counter");
    out.taken_at = state_->taken_at;
    out.cost = state_->cost;
    out.link_generation = state_->link.generation();
    return out;
}

namespace {

class sql_source : public source {
  public:
    sql_source(std::shared_ptr<shared_query> from, std::string tool)
        : from_{std::move(from)}, tool_{std::move(tool)} {}

    tl::expected<policy::sample, source_error> read(const clock_function& now,
                                                    policy::duration budget) override {
        return from_->read(tool_, now, budget);
    }

  private:
    std::shared_ptr<shared_query> from_;
    std::string tool_;
};

double us_since(steady::time_point start) {
    return std::chrono::duration<double, std::micro>(steady::now() - start).count();
}

// The middle of three: one slow answer is not the server's speed.
double middle(double a, double b, double c) {
    return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

}  // namespace

std::unique_ptr<source> make_sql_source(std::shared_ptr<shared_query> from, std::string tool) {
    return std::make_unique<sql_source>(std::move(from), std::move(tool));
}

tl::expected<policy::postgres_model, source_error> measure_postgres(const source_target& target,
                                                                    policy::duration budget) {
    pg_link link{target, pg_link::encryption::prefer};
    const auto until = steady::now() + budget;
    constexpr auto nothing = "SELECT 1";
    // Transactional, so its commit waits for the disk as that of a write does.
    constexpr auto commit = "SELECT pg_logical_emit_message(true, 'hotlane', '')";
    if (const auto first = link.query(nothing, until); !first)
        return tl::unexpected<source_error>{first.error()};
    double trips[3] = {};
    double commits[3] = {};
    for (int i = 0; i < 3; ++i) {
        auto start = steady::now();
        if (const auto got = link.query(nothing, until); !got)
            return tl::unexpected<source_error>{got.error()};
        trips[i] = us_since(start);
        start = steady::now();
        if (const auto got = link.query(commit, until); !got)
            return tl::unexpected<source_error>{got.error()};
        commits[i] = us_since(start);
    }
    policy::postgres_model out;
    out.round_trip_us = middle(trips[0], trips[1], trips[2]);
    out.commit_us = std::max(0.0, middle(commits[0], commits[1], commits[2]) - out.round_trip_us);
    return out;
}

}  // namespace hotlane::metrics
