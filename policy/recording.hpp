// What was sampled, as lines of text that replay reads: samples with what the data plane counted,
// and the write transactions in between. PURE: text in, text out; who keeps the file bounds it.
//
//   # hotlane recording 1
//   S,t_ms,tool,home,acquires,handoffs,wait_us,commits,lsn,link,own,commit_us,
//     transactions,writes,conflicts,errors,unknown,hold_wait_us          "-": unknown
//   W,tool,session,start_us,end_us,key,flags       flags: c conflict, b several statements, - none
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "policy/replay.hpp"

namespace hotlane::policy {

inline constexpr std::string_view recording_head = "# hotlane recording 1";

// One line with its newline.
std::string recorded_line(const std::string& tool,
                          home_kind home,
                          const sample& counters,
                          const traffic& seen);
std::string recorded_line(const std::string& tool, const write_interval& write);

// By tool. A line that is cut off at the very end is left out (the writer was stopped there); any
// other one that cannot be read is an error that names it. Of pieces of one recording give the
// oldest first.
using recording = std::map<std::string, std::vector<replay_step>>;
tl::expected<recording, std::string> parse_recording(std::string_view text);

}  // namespace hotlane::policy
