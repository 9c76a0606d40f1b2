#include "policy/diagnosis.hpp"

#include <fmt/format.h>

namespace hotlane::policy {

finding diagnose(const proof& hot, const settings& with, const std::string& table) {
    finding found;
    if (hot.standing != verdict::hot) {
        found.note = "not proven hot";
        return found;
    }
    found.table = table;
    found.conflict_rate = hot.pooled.conflict_rate();
    found.seen_share = hot.pooled.seen_share();
    found.abort_rate = hot.pooled.abort_rate();
    const double seen = found.seen_share.value_or(0.0);
    const double conflicts = found.conflict_rate.value_or(0.0);
    if (seen < with.diagnose.seen_share_min) {
        found.what = diagnosis::unknown;
        found.note = fmt::format(
            "hotlane saw {:.0f} % of the lane's acquisitions, {:.0f} % are needed to tell a hot "
            "row from a busy lane: other clients go round it",
            seen * 100,
            with.diagnose.seen_share_min * 100);
    } else if (conflicts >= with.diagnose.conflict_rate_hot) {
        found.what = diagnosis::hot_row;
        found.note = fmt::format(
            "{:.0f} % of its write transactions ended in a write conflict: "
            "they depend on each other",
            conflicts * 100);
    } else if (hot.by_lane) {
        found.what = diagnosis::busy_lane;
        found.note = fmt::format(
            "writers queue, and only {:.1f} % of them conflict: the lane is "
            "busy, no row is hot",
            conflicts * 100);
    } else {
        found.note = fmt::format(
            "{:.0f} % of the acquisitions came to nothing, but only {:.1f} % "
            "of the writes conflict: rollbacks, errors or writes of no row",
            found.abort_rate.value_or(0.0) * 100,
            conflicts * 100);
    }
    return found;
}

}  // namespace hotlane::policy
