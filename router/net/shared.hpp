// What all threads of the data plane share. Outlives them. THREADS: each part is safe by itself.
#pragma once

#include <atomic>
#include <functional>

#include "config/model.hpp"
#include "router/net/counters.hpp"
#include "router/net/registry.hpp"
#include "router/placement/route.hpp"
#include "router/session/session.hpp"

namespace hotlane::net {

struct shared {
    const config::limits limit;
    const session::bounds bounds;
    placement::tool_table& tools;
    const std::function<policy::time_point()> now;
    net_counters counted;
    // The next process number for a client without a link of its own.
    std::atomic<std::uint32_t> next_process{1};
    cancel_registry keys;
};

}  // namespace hotlane::net
