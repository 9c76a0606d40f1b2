// The file of `hotlane test`: YAML to scenarios, with the same strictness as the configuration.
//
//   version: 1
//   config: hotlane.yaml            # whose policies are tested, relative to this file
//   tests:
//     - name: a spike is no flag
//       tool: counter               # the policy of this tool; or `policy: NAME`
//       mode: act                   # default: the policy's own
//       interval: 2s500ms           # default: the policy's window
//       move_takes: 10s             # default: a move ends when an event says so
//       series: {acquires: "0+2500x8", handoffs: "0+1700x8", ...}
//       events: [{at: 40s, do: shard_done}]
//       expect:
//         - {at: 20s, verdict: hot, stage: sharding, decisions: [flag, advise_shard]}
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "config/load.hpp"
#include "policy/scenario.hpp"

namespace hotlane::config {

struct policy_tests {
    std::vector<policy::scenario> all;
    std::string text;  // warnings of the configuration, ready to print
};

// refused: the test file or the configuration that it names.
tl::expected<policy_tests, refused> load_policy_tests(const std::string& path);

}  // namespace hotlane::config
