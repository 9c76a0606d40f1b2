// Is what the homes hold what a move left there? At any time, without holding anybody.
#pragma once

#include <string>

#include "router/move/job.hpp"

namespace hotlane::move {

// Reads the live home, and the kept copy of the last move where there is one: does the copy still
// hold what was read from it, do all values read, and which rows has the tool changed since?
checked verify_with(context& with);

// Of a move whose verification failed: which rows of `t` differ between its two copies. Empty:
// there was no time to find out.
std::string name_differences(active_move& m, const table& t);

}  // namespace hotlane::move
