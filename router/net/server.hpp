// The data plane: listeners, threads, sessions. What router/app makes and router/control pokes.
//
// start() binds everything or nothing. stop() stops accepting, asks every session to end when it
// is idle, waits up to `grace`, then closes what is left and joins the threads. THREADS: start()
// and stop() from one thread; the rest from any.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "config/model.hpp"
#include "policy/types.hpp"
#include "router/net/bound.hpp"
#include "router/net/counters.hpp"

namespace hotlane::placement {
class tool_table;
}

namespace hotlane::net {

struct start_error {
    std::string where;  // the listener, as the configuration names it
    std::string what;
};

class data_plane {
  public:
    using clock = std::function<policy::time_point()>;

    // `tools` outlives it. Of the model it keeps copies.
    data_plane(const config::model& model, placement::tool_table& tools, clock now);
    ~data_plane();  // stop(0)
    data_plane(const data_plane&) = delete;
    data_plane& operator=(const data_plane&) = delete;

    // The addresses listened on, ports as given by the kernel: "127.0.0.1:5432", "/run/x.sock".
    tl::expected<std::vector<bound_address>, start_error> start();
    void stop(std::chrono::milliseconds grace);

    // The tool's route changed: idle sessions look at it at their next transaction anyway; this
    // tells the pinned ones, which must leave.
    void poke_all(const std::string& tool);

    // The longest time since a thread was last seen alive (it ticks four times a second).
    [[nodiscard]] std::chrono::milliseconds stalest_tick() const;
    [[nodiscard]] const net_counters& counters() const noexcept;

  private:
    class implementation;
    std::unique_ptr<implementation> self_;
};

}  // namespace hotlane::net
