// Commands that need no running hotlane: policies against recorded samples and against tests.
#pragma once

#include <string>
#include <vector>

#include "router/app/output.hpp"

namespace hotlane::app {

struct replay_command {
    std::string policy_file;   // a configuration; its policies are what is tried
    std::string use;           // which one; empty: the tool's where there is one, else `default`
    std::string compare_file;  // empty: nothing to compare with
    std::string mode;          // empty: the policy's own
    std::vector<std::string> traces;
    std::string move_takes{"10s"};
    std::string move_holds{"500ms"};
    bool only_sums{false};
};
// 0; 1: a trace cannot be read; 3: bad configuration.
int replay(const replay_command& what, format as);

// 0; 1: at least one test differs; 3: a file is bad.
int test_policies(const std::vector<std::string>& files, format as);

}  // namespace hotlane::app
