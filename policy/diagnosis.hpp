// What a hot tool suffers from. The engine's counters tell that it is hot, never why: a hot row and
// a busy lane can show the very same numbers. The difference is whether writes depend on each
// other, and that shows in the conflicts that the data plane saw.
//
//   seen share below seen_share_min      -> unknown    (too much goes round hotlane)
//   conflict rate at conflict_rate_hot   -> hot_row
//   lane hot, few conflicts              -> busy_lane
//   aborts without conflicts, lane calm  -> none       (rollbacks, errors, writes of no row)
#pragma once

#include <string>

#include "policy/verdict.hpp"

namespace hotlane::policy {

struct finding {
    diagnosis what{diagnosis::none};
    std::optional<double> conflict_rate;
    std::optional<double> seen_share;
    std::optional<double> abort_rate;
    std::string table;  // the hot table, where it is known
    std::string note;   // one sentence with the reason
};

// Meant for a proof that stands at hot; of any other the finding is `none`.
finding diagnose(const proof& hot, const settings& with, const std::string& table);

}  // namespace hotlane::policy
