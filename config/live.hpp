// A configuration against what a running hotlane has measured: what would be true from the start.
#pragma once

#include <string>
#include <vector>

#include "config/load.hpp"

namespace hotlane::config {

// One tool as it is now. Nothing: not known.
struct observed_tool {
    std::string name;
    std::optional<double> handoff_rate;  // of its last good window on the engine
    std::optional<double> mean_wait_us;
    std::optional<double> abort_rate;
    std::optional<double> conflict_rate;
    std::optional<std::chrono::microseconds> commit_latency;
    std::optional<milliseconds> longest_move;  // lately, from its start to its end
};

// Warnings, each at the line that it is about.
std::vector<problem> lint_live(const loaded& with, const std::vector<observed_tool>& now);

}  // namespace hotlane::config
