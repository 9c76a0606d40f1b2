// The one stream type of the data plane: TCP and unix sockets alike, with the concrete executor
// (measurably cheaper than the type-erased one).
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace hotlane::net {

namespace asio = boost::asio;
using boost::system::error_code;
using steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

using executor = asio::io_context::executor_type;
using protocol = asio::generic::stream_protocol;
using stream = asio::basic_stream_socket<protocol, executor>;
using acceptor = asio::basic_socket_acceptor<protocol, executor>;
using resolver = asio::ip::basic_resolver<asio::ip::tcp, executor>;
using timer = asio::basic_waitable_timer<steady, asio::wait_traits<steady>, executor>;
using peer = protocol::endpoint;

}  // namespace hotlane::net
