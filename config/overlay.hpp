// Keys of a policy on top of another one: what a group or a single tool sets. Kept as a tree, since
// a template's tools, and so their groups, are known only when their first client comes.
#pragma once

#include <deque>
#include <memory>

#include "config/load.hpp"
#include "config/tree.hpp"

namespace hotlane::config {

struct overlay {
    node body;
    std::string path;                                      // of `body`, for messages and origins
    std::shared_ptr<const std::deque<source_file>> files;  // what `body` points into
};

// Puts the written keys on top of `s`. Problems and origins go where the caller wants them.
void apply(const overlay& on, policy::settings& s, problem_list& problems, origin_map& origins);

// Does the group say something about this tool?
bool covers(const group& g, const tool& t);

// The name of the policy that the tool starts from.
std::string base_policy(const model& m, const tool& t);

}  // namespace hotlane::config
