// One listening socket and its accept loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "config/model.hpp"
#include "router/net/bound.hpp"
#include "router/net/counters.hpp"
#include "router/net/types.hpp"

namespace hotlane::net {

class listener : public std::enable_shared_from_this<listener> {
  public:
    // Picks the io_context on which the next client lives, and takes it there.
    using placing = std::function<asio::io_context&()>;
    using taking = std::function<void(stream, const peer&)>;

    // Binds; one address of the configuration may give several sockets (a name with two addresses).
    static tl::expected<std::vector<std::shared_ptr<listener>>, std::string> open(
        asio::io_context& io, const config::listener& what, net_counters& counted);

    listener(acceptor a, bound_address where, net_counters& counted);
    ~listener();
    void start(placing place, taking take);
    void stop();  // on the io_context's thread
    [[nodiscard]] const bound_address& where() const noexcept { return where_; }

  private:
    void accept();
    void pause();

    acceptor acceptor_;
    timer pause_;
    bound_address where_;
    net_counters& counted_;
    placing place_;
    taking take_;
    bool stopped_{false};
};

}  // namespace hotlane::net
