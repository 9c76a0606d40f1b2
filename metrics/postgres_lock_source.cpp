// Lock waits of PostgreSQL, in the words of the lane. source.hpp says what the numbers are worth.
#include <charconv>
#include <map>

#include "metrics/pg_link.hpp"

namespace hotlane::metrics {
namespace {

constexpr auto totals_sql =
    "SELECT xact_commit, xact_rollback, pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),"
    " to_regclass('pg_wait_sampling_profile') IS NOT NULL,"
    " coalesce(current_setting('pg_wait_sampling.profile_period', true), '10')"
    " FROM pg_stat_database WHERE datname = current_database()";

// One row for each statement that waits for a row now. A waiter takes the tuple lock first and
// waits for the other transaction then; both belong to the same statement, hence query_start.
constexpr auto waits_sql =
    "SELECT a.pid, (extract(epoch FROM a.query_start) * 1000000)::bigint,"
    " (extract(epoch FROM l.waitstart) * 1000000)::bigint,"
    " greatest(0, extract(epoch FROM clock_timestamp() - l.waitstart) * 1000000)::bigint"
    " FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid"
    " WHERE NOT l.granted AND l.locktype IN ('transactionid', 'tuple')"
    " AND a.datname = current_database() AND l.waitstart IS NOT NULL LIMIT 1000";

// Where the extension is installed it has watched all the time: no wait is missed between two
// readings. Its samples are so many milliseconds apart; each is a waiter that was seen.
constexpr auto sampled_sql =
    "SELECT coalesce(sum(p.count), 0)::bigint FROM pg_wait_sampling_profile p"
    " WHERE p.event_type = 'Lock' AND p.event IN ('transactionid', 'tuple')"
    " AND (p.pid = 0 OR p.pid IN (SELECT pid FROM pg_stat_activity"
    " WHERE datname = current_database()))";

std::optional<std::int64_t> number(const pg_row& row, std::size_t column) {
    if (column >= row.size() || !row[column]) return {};
    const auto& text = *row[column];
    std::int64_t value{};
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (ec != std::errc{} || end != text.data() + text.size() || value < 0) return {};
    return value;
}

class postgres_lock_source : public source {
  public:
    explicit postgres_lock_source(source_target target)
        : link_{std::move(target), pg_link::encryption::prefer} {}

    tl::expected<policy::sample, source_error> read(const clock_function& now,
                                                    policy::duration budget) override {
        const auto start = std::chrono::steady_clock::now();
        const auto until = start + budget;
        const auto totals = link_.query(totals_sql, until);
        if (!totals) return tl::unexpected<source_error>{totals.error()};
        policy::sample out;
        bool may_see = false;
        std::optional<std::uint64_t> sampled_every;
        if (!totals->empty()) {
            const auto commits = number(totals->front(), 0);
            const auto rollbacks = number(totals->front(), 1);
            if (commits) out.commits = static_cast<std::uint64_t>(*commits);
            if (commits && rollbacks) {
                out.acquires = static_cast<std::uint64_t>(*commits + *rollbacks);
            }
            may_see = totals->front().size() > 2 && totals->front()[2] == "t";
            sampled_every = period_us(totals->front());
        }
        if (may_see && sampled_every) {
            const auto sampled = link_.query(sampled_sql, until);
            if (!sampled) return tl::unexpected<source_error>{sampled.error()};
            const auto count = sampled->empty() ? std::nullopt : number(sampled->front(), 0);
            // A profile that was reset, or whose backends ended, falls: the window is a reset then.
            if (count) {
                out.handoffs = static_cast<std::uint64_t>(*count);
                out.wait_us = static_cast<std::uint64_t>(*count) * *sampled_every;
            }
        } else if (may_see) {
            const auto waits = link_.query(waits_sql, until);
            if (!waits) return tl::unexpected<source_error>{waits.error()};
            add(*waits);
            out.handoffs = handoffs_;
            out.wait_us = wait_us_;
        }
        out.taken_at = now();
        out.cost = std::chrono::duration_cast<std::chrono::microseconds>(
            std::chrono::steady_clock::now() - start);
        out.link_generation = link_.generation();
        return out;
    }

  private:
    using statement = std::pair<std::int64_t, std::int64_t>;  // pid, query_start
    struct seen_wait {
        std::int64_t since{};
        std::int64_t counted_us{};
    };

    // Counts a statement once and its waiting as far as it was seen; what ended is forgotten.
    void add(const std::vector<pg_row>& rows) {
        std::map<statement, seen_wait> still;
        for (const auto& row : rows) {
            const auto pid = number(row, 0);
            const auto since = number(row, 2);
            const auto us = number(row, 3);
            if (!pid || !since || !us) continue;
            const statement key{*pid, number(row, 1).value_or(0)};
            if (still.contains(key)) continue;  // one statement waits for one thing at a time
            const auto before = waiting_.find(key);
            std::int64_t counted = 0;
            if (before == waiting_.end()) {
                ++handoffs_;
            } else if (before->second.since == *since) {
                counted = before->second.counted_us;
            }
            if (*us > counted) wait_us_ += static_cast<std::uint64_t>(*us - counted);
            still[key] = {*since, std::max(*us, counted)};
        }
        waiting_ = std::move(still);
    }

    // How far the extension's samples are apart; nothing: it is not installed.
    static std::optional<std::uint64_t> period_us(const pg_row& row) {
        if (row.size() < 5 || row[3] != "t") return std::nullopt;
        auto period = row[4].value_or("10");  // "10ms" or "10"
        period.resize(std::min(period.size(), period.find_first_not_of("0123456789")));
        const auto ms = number({period}, 0);
        return static_cast<std::uint64_t>(ms.value_or(10)) * 1'000;
    }

    pg_link link_;
    std::map<statement, seen_wait> waiting_;
    std::uint64_t handoffs_{};
    std::uint64_t wait_us_{};
};

}  // namespace

std::unique_ptr<source> make_postgres_lock_source(source_target target) {
    return std::make_unique<postgres_lock_source>(std::move(target));
}

}  // namespace hotlane::metrics
