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

#include "policy/types.hpp"

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

// PostgreSQL's lock waits in the same words, as EVIDENCE beside the prediction, not as a verdict:
//   acquires  transactions ended (xact_commit + xact_rollback of the database): readers count too,
//   so
//             the handoff rate is a lower bound. Our own readings count as well, one or two each.
//   handoffs  statements that were seen to wait for a row (pg_locks, transactionid and tuple);
//             shorter waits than the time between two readings are mostly missed
//   wait_us   how long those were seen to wait
//   commits   xact_commit
// A role that may not see others' activity (pg_read_all_stats) gets unknown, not zero. PostgreSQL
// 14 or newer (pg_locks.waitstart).
std::unique_ptr<source> make_postgres_lock_source(source_target target);

}  // namespace hotlane::metrics
