// How to run a tool without hotlane: what to point its clients at, what the sidecar did for them
// that the home must do now, and what can be dropped later. Reads the homes; changes nothing.
#pragma once

#include "router/move/job.hpp"

namespace hotlane::move {

// `detail` has what to do as texts and as values; not good: why the tool cannot leave now.
checked eject_with(context& with);

}  // namespace hotlane::move
