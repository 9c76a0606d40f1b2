// Between the runbook and its record: called by runbook.cpp only.
#pragma once

#include "policy/runbook.hpp"

namespace hotlane::policy {

// The decision that taking this row is; `by`: the rail that blocks it.
decision make_decision(const row& taken,
                       const context& at,
                       const std::string& tool,
                       const block& by);

// The rail that a blocked row names; empty for every other row.
block block_of(const row& taken, const context& at);

}  // namespace hotlane::policy
