// One HTTP connection of the admin server: read, hand to a worker, write, again.
#pragma once

#include <atomic>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/thread_pool.hpp>

#include "router/admin/dispatch.hpp"
#include "router/admin/server.hpp"

namespace hotlane::admin {

// What all connections of one server share; outlives them.
struct connection_context {
    service& what;
    const server_limits& limit;
    boost::asio::thread_pool& workers;
    std::atomic<int>& open;
    std::atomic<std::uint64_t>& refused;
};

template <typename Protocol>
using plain_socket =
    boost::asio::basic_stream_socket<Protocol, boost::asio::io_context::executor_type>;

// Takes the socket; closes it at once when the limit of connections is reached.
void begin_connection(plain_socket<boost::asio::ip::tcp> socket,
                      connection_context& shared,
                      door by);
void begin_connection(plain_socket<boost::asio::local::stream_protocol> socket,
                      connection_context& shared,
                      door by);

}  // namespace hotlane::admin
