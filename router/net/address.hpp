// Addresses: configuration to socket endpoints and back to words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "config/model.hpp"
#include "router/net/types.hpp"

namespace hotlane::net {

// libpq's convention: the socket of a server is DIR/.s.PGSQL.PORT.
std::string unix_socket_path(const config::endpoint& at);
tl::expected<peer, std::string> unix_peer(const std::string& path);

// An address that needs no resolver: unix directory or literal IP. nullopt: a name.
std::optional<tl::expected<peer, std::string>> literal_peer(const config::endpoint& at);

peer to_peer(const asio::ip::tcp::endpoint& at);
bool is_unix(const peer& at) noexcept;
bool is_local(const peer& at) noexcept;  // unix, or a loopback address
std::uint16_t port_of(const peer& at) noexcept;

std::string describe(const config::endpoint& at);  // host:port, [v6]:port, or the socket's path

}  // namespace hotlane::net
