// Where a tool's counters come from. One interface; a reading takes at most its budget, whatever
// the other side does (accepts and is silent, drips, answers nonsense), and never throws.
//
// A source owns one connection and belongs to one thread. After any failure the connection is given
// up; the next reading makes a new one, and `link_generation` of its sample tells.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <tl/expected.hpp>

#include "policy/shadow.hpp"

namespace hotlane::metrics {

struct source_error {
    enum class kind { unreachable, timed_out, refused, bad_reply } what{kind::unreachable};
    std::string detail;  // for the log; never a secret
};
std::string_view to_string(source_error::kind kind) noexcept;

using clock_function = std::function<policy::time_point()>;

class source {
  public:
    virtual ~source() = default;
    // `now` stamps the sample; `budget` bounds connecting, asking and reading together.
    virtual tl::expected<policy::sample, source_error> read(const clock_function& now,
                                                            policy::duration budget) = 0;
};

// Whom to ask. A host that begins with '/' is a socket folder.
struct source_target {
    std::string host;
    std::uint16_t port{5432};
    std::string user;
    std::string database;
    std::string password;  // empty: none
};

// An engine of the kind `twill`: SHOW twill.stats, rows of metric and value. Unknown names are
// ignored; a missing or unreadable one is unknown. No lane counter at all is a bad reply.
std::unique_ptr<source> make_twill_source(source_target target);

// The same engine's lane over HTTP: a Prometheus page at /metrics with
// twilldb_engine_write_acquires_total, _handoffs_total and _wait_us_total. Commits are unknown
// then, unless twilldb_engine_commits_total is there too.
std::unique_ptr<source> make_twill_http_source(source_target target);

// Engines of other kinds: a query of the configuration with a row for each tool and the columns
// tool, acquires, handoffs, wait_us and, where known, commits; by name, in any order. A row that is
// missing or unreadable is the trouble of its tool alone. One reading serves all tools of the same
// server and query for `shared_for`; a failure is shared too, so that a dead server is asked once.
class shared_query {
  public:
    shared_query(source_target target, std::string sql, policy::duration shared_for);
    ~shared_query();
    tl::expected<policy::sample, source_error> read(const std::string& tool,
                                                    const clock_function& now,
                                                    policy::duration budget);

  private:
    struct state;
    std::unique_ptr<state> state_;
};
std::unique_ptr<source> make_sql_source(std::shared_ptr<shared_query> from, std::string tool);

// How quick a PostgreSQL is: a round trip, and a commit that must become durable (an empty logical
// message: no table is touched). Unknown where that is not allowed.
tl::expected<policy::postgres_model, source_error> measure_postgres(const source_target& target,
                                                                    policy::duration budget);

// PostgreSQL's lock waits in the same words, as EVIDENCE beside the prediction, not as a verdict:
//   acquires  transactions ended (xact_commit + xact_rollback of the database): readers count too,
//   so
//             the handoff rate is a lower bound. Our own readings count as well, one or two each.
//   handoffs  statements that were seen to wait for a row (pg_locks, transactionid and tuple);
//             shorter waits than the time between two readings are mostly missed
//   wait_us   how long those were seen to wait
//   commits   xact_commit
// Where the extension pg_wait_sampling is installed, its profile counts the waits instead: it looks
// every few milliseconds, so handoffs and wait_us are what its samples add up to.
// A role that may not see others' activity (pg_read_all_stats) gets unknown, not zero. PostgreSQL
// 14 or newer (pg_locks.waitstart).
std::unique_ptr<source> make_postgres_lock_source(source_target target);

}  // namespace hotlane::metrics
