#include "router/move/ahead_sums.hpp"

namespace hotlane::move {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Besides the rows: two renames a table wait for commits, and the statements around them.
constexpr milliseconds pause_at_least{50}, pause_per_table{20};

}  // namespace

bool all_was_seen(const commit_sums& s) noexcept {
    if (!s.begin || !s.fence) return false;
    if (s.fence->commits < s.begin->commits || s.fence->lsn < s.begin->lsn) return false;
    return s.fence->commits - s.begin->commits == s.seen &&
           s.fence->lsn - s.begin->lsn == s.seen + s.own_ddl;
}

milliseconds forecast_pause(const std::vector<table_times>& tables, bool all_seen) {
    microseconds rows{0};
    for (const auto& t : tables) {
        if (t.changed)
            rows += t.copied + t.verified;
        else if (!all_seen)
            rows += t.copied;  // read and compared, at the rate of the copy
    }
    return std::chrono::ceil<milliseconds>(rows) + pause_at_least +
           pause_per_table * static_cast<int>(tables.size());
}

}  // namespace hotlane::move
