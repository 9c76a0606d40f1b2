#include "router/net/listener.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/v6_only.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "router/net/address.hpp"

namespace hotlane::net {

namespace {

// After an accept error (no file descriptors left, mostly): clients wait in the backlog meanwhile.
constexpr milliseconds accept_pause{100};
constexpr mode_t owner_only = 0177;  // umask: mode 0600

using listeners = std::vector<std::shared_ptr<listener>>;

// A socket file that nobody serves is what a killed process leaves behind; anything else stays.
tl::expected<void, std::string> clear_stale(const std::string& path, const peer& at) {
    struct stat facts {};
    if (::lstat(path.c_str(), &facts) != 0) return {};
    if (!S_ISSOCK(facts.st_mode)) return tl::unexpected(path + ": exists and is not a socket");
    const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0) return tl::unexpected(path + ": " + std::strerror(errno));
    const int result =
        ::connect(probe, at.data(), static_cast<socklen_t>(at.size())) == 0 ? 0 : errno;
    ::close(probe);
    if (result != ECONNREFUSED) {
        return tl::unexpected(path + ": another process listens on this socket");
    }
    if (::unlink(path.c_str()) != 0) return tl::unexpected(path + ": " + std::strerror(errno));
    return {};
}

tl::expected<acceptor, std::string> bind_to(asio::io_context& io, const peer& at) {
    acceptor made(io);
    error_code error;
    made.open(at.protocol(), error);
    if (!error && !is_unix(at)) made.set_option(acceptor::reuse_address(true), error);
    if (!error && at.protocol().family() == AF_INET6) {
        made.set_option(asio::ip::v6_only(true), error);
    }
    if (!error) made.bind(at, error);
    if (!error) made.listen(acceptor::max_listen_connections, error);
    if (error) return tl::unexpected(error.message());
    return made;
}

tl::expected<listeners, std::string> open_unix(asio::io_context& io,
                                               const std::string& path,
                                               net_counters& counted) {
    const auto at = unix_peer(path);
    if (!at) return tl::unexpected(at.error());
    if (auto clear = clear_stale(path, *at); !clear) return tl::unexpected(clear.error());
    const auto before = ::umask(owner_only);
    auto made = bind_to(io, *at);
    ::umask(before);
    if (!made) return tl::unexpected(path + ": " + made.error());
    return listeners{std::make_shared<listener>(
        std::move(*made), bound_address{.at = {}, .unix_path = path}, counted)};
}

tl::expected<std::vector<asio::ip::address>, std::string> addresses_of(asio::io_context& io,
                                                                       const std::string& host) {
    if (host == "*")
        return std::vector<asio::ip::address>{asio::ip::address_v4::any(),
                                              asio::ip::address_v6::any()};
    error_code error;
    const auto literal = asio::ip::make_address(host, error);
    if (!error) return std::vector{literal};
    resolver names(io);
    const auto found = names.resolve(host, "", error);
    if (error) return tl::unexpected(host + ": " + error.message());
    std::vector<asio::ip::address> addresses;
    for (const auto& each : found) {
        const auto address = each.endpoint().address();
        if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
            addresses.push_back(address);
        }
    }
    return addresses;
}

}  // namespace

std::string bound_address::text() const {
    return unix_path.empty() ? describe(at) : unix_path;
}

tl::expected<listeners, std::string> listener::open(asio::io_context& io,
                                                    const config::listener& what,
                                                    net_counters& counted) {
    if (!what.unix_path.empty()) return open_unix(io, what.unix_path, counted);
    if (what.at.is_unix()) return open_unix(io, unix_socket_path(what.at), counted);
    const auto addresses = addresses_of(io, what.at.host);
    if (!addresses) return tl::unexpected(addresses.error());
    listeners made;
    auto port = what.at.port;
    for (const auto& address : *addresses) {
        auto bound = bind_to(io, to_peer({address, port}));
        if (!bound) {
            // A name may have an IPv6 address on a machine without IPv6: one socket is enough.
            if (address.is_v6() && !made.empty()) continue;
            return tl::unexpected(describe({address.to_string(), port}) + ": " + bound.error());
        }
        port = port_of(bound->local_endpoint());
        made.push_back(std::make_shared<listener>(
            std::move(*bound),
            bound_address{.at = {address.to_string(), port}, .unix_path = {}},
            counted));
    }
    return made;
}

listener::listener(acceptor a, bound_address where, net_counters& counted)
    : acceptor_(std::move(a)),
      pause_(acceptor_.get_executor()),
      where_(std::move(where)),
      counted_(counted) {}

listener::~listener() {
    if (!where_.unix_path.empty()) ::unlink(where_.unix_path.c_str());
}

void listener::start(placing place, taking take) {
    place_ = std::move(place);
    take_ = std::move(take);
    accept();
}

void listener::accept() {
    auto client = std::make_shared<stream>(place_());
    auto from = std::make_shared<peer>();
    auto& socket = *client;
    auto& address = *from;
    acceptor_.async_accept(
        socket, address, [self = shared_from_this(), client, from](error_code error) {
            if (self->stopped_) return;
            if (error) {
                self->counted_.accept_errors.fetch_add(1);
                if (error == asio::error::no_descriptors) {
                    self->counted_.hit("open_files");
                }
                self->pause();
                return;
            }
            self->take_(std::move(*client), *from);
            self->accept();
        });
}

void listener::pause() {
    pause_.expires_after(accept_pause);
    pause_.async_wait([self = shared_from_this()](error_code error) {
        if (!error && !self->stopped_) self->accept();
    });
}

void listener::stop() {
    stopped_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
}

}  // namespace hotlane::net
