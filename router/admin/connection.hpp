// One HTTP connection of the admin server: read, hand to a worker, write, again.
#pragma once

#include <algorithm>
#include <atomic>
#include <list>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/thread_pool.hpp>

#include "router/admin/dispatch.hpp"
#include "router/admin/server.hpp"

namespace hotlane::admin {

// A connection that waits for its client: the one that gives way when a door is full.
class waiting {
  public:
    virtual void cut() = 0;

  protected:
    ~waiting() = default;
};

// What all connections of one door share; outlives them. Each door has its own, so that nobody at
// the TCP door can keep an operator or a probe waiting at the other one.
struct connection_context {
    connection_context(service& served, const server_limits& bounds, int workers_wanted)
        : what(served),
          limit(bounds),
          workers(static_cast<std::size_t>(std::max(1, workers_wanted))) {}

    service& what;
    const server_limits& limit;
    boost::asio::thread_pool workers;
    std::atomic<int> open{0};
    std::atomic<std::uint64_t> refused{0};
    std::list<waiting*> idle;  // longest first; touched by the thread that moves bytes only
};

template <typename Protocol>
using plain_socket =
    boost::asio::basic_stream_socket<Protocol, boost::asio::io_context::executor_type>;

// Takes the socket. At the limit of connections the one that has waited longest for its client is
// closed for it; where all of them are being answered, the new one is.
void begin_connection(plain_socket<boost::asio::ip::tcp> socket,
                      connection_context& shared,
                      door by);
void begin_connection(plain_socket<boost::asio::local::stream_protocol> socket,
                      connection_context& shared,
                      door by);

}  // namespace hotlane::admin
