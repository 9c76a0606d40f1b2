#include "router/net/address.hpp"

#include <sys/un.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <cstring>

namespace hotlane::net {

namespace {

std::optional<asio::ip::tcp::endpoint> tcp_of(const peer& at) noexcept {
    asio::ip::tcp::endpoint tcp;
    const auto family = at.protocol().family();
    if ((family != AF_INET && family != AF_INET6) || at.size() > tcp.capacity()) return {};
    std::memcpy(tcp.data(), at.data(), at.size());
    tcp.resize(at.size());
    return tcp;
}

}  // namespace

std::string unix_socket_path(const config::endpoint& at) {
    return at.host + "/.s.PGSQL." + std::to_string(at.port);
}

tl::expected<peer, std::string> unix_peer(const std::string& path) {
    if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path)) {
        return tl::unexpected(path + ": a socket's path has 1 to " +
                              std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes, not " +
                              std::to_string(path.size()));
    }
    return peer(asio::local::stream_protocol::endpoint(path));
}

std::optional<tl::expected<peer, std::string>> literal_peer(const config::endpoint& at) {
    if (at.is_unix()) return unix_peer(unix_socket_path(at));
    error_code error;
    const auto address = asio::ip::make_address(at.host, error);
    if (error) return std::nullopt;
    return to_peer({address, at.port});
}

peer to_peer(const asio::ip::tcp::endpoint& at) {
    return peer(at);
}

bool is_unix(const peer& at) noexcept {
    return at.protocol().family() == AF_UNIX;
}

bool is_local(const peer& at) noexcept {
    if (is_unix(at)) return true;
    const auto tcp = tcp_of(at);
    if (!tcp) return false;
    const auto address = tcp->address();
    if (address.is_v6() && address.to_v6().is_v4_mapped()) {
        return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
    }
    return address.is_loopback();
}

std::uint16_t port_of(const peer& at) noexcept {
    const auto tcp = tcp_of(at);
    return tcp ? tcp->port() : std::uint16_t{0};
}

std::string describe(const config::endpoint& at) {
    if (at.is_unix()) return unix_socket_path(at);
    const bool v6 = at.host.find(':') != std::string::npos;
    return (v6 ? "[" + at.host + "]" : at.host) + ":" + std::to_string(at.port);
}

}  // namespace hotlane::net
