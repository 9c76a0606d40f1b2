// Connects to a home: tries again with a short, jittered pause until a deadline.
//
// A home that restarts is found within `pause_max` of its listening again; a refused, silent or
// unknown address costs at most one try at a time. Callbacks run on the io_context, never inside
// start(). Cancelled by cancel(): no callback follows.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "config/model.hpp"
#include "router/net/types.hpp"

namespace hotlane::net {

struct dial_plan {
    milliseconds total{5'000};  // all tries
    milliseconds one{2'000};    // one try
    milliseconds first{0};      // pause before the first try
};

class dialer : public std::enable_shared_from_this<dialer> {
  public:
    // Exactly one of the two: a connected stream with its peer, or why not.
    using connected = std::function<void(stream socket, const peer& at)>;
    using failed = std::function<void(const std::string& why)>;

    dialer(asio::io_context& io, std::mt19937& dice, config::endpoint to, dial_plan plan);
    void start(connected on_connected, failed on_failed);
    void cancel();

    static constexpr milliseconds pause_min{20};
    static constexpr milliseconds pause_max{200};

  private:
    void begin_try();
    void resolve();
    void try_next();
    void try_failed(const std::string& why);
    void pause(milliseconds length);
    void finish(const std::string& why);

    asio::io_context& io_;
    std::mt19937& dice_;
    config::endpoint to_;
    dial_plan plan_;
    stream socket_;
    resolver resolver_;
    timer clock_;  // of one try, or of a pause
    steady::time_point deadline_;
    std::vector<peer> candidates_;
    std::size_t next_{0};
    std::uint64_t serial_{0};  // of the operation awaited; older completions are ignored
    milliseconds pause_{pause_min};
    std::string why_;
    connected on_connected_;
    failed on_failed_;
};

}  // namespace hotlane::net
