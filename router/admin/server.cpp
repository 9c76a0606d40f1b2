#include "router/admin/server.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/thread_pool.hpp>

#include "router/admin/connection.hpp"

namespace hotlane::admin {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using local = asio::local::stream_protocol;

// Everything that the threads share. Connections hold `shared_state` alive until they are gone.
struct server::inside {
    inside(const server_options& wanted, service& served)
        : options(wanted),
          shared{served, options.limit, pool, open, refused},
          unix_acceptor(io),
          tcp_acceptor(io) {}

    server_options options;
    asio::io_context io{1};
    asio::thread_pool pool{static_cast<std::size_t>(std::max(1, options.limit.workers))};
    std::atomic<int> open{0};
    std::atomic<std::uint64_t> refused{0};
    connection_context shared;
    asio::basic_socket_acceptor<local, asio::io_context::executor_type> unix_acceptor;
    asio::basic_socket_acceptor<tcp, asio::io_context::executor_type> tcp_acceptor;
    std::uint16_t port{0};
    std::thread thread;
    std::once_flag stopped;
};

namespace {

using failure = tl::unexpected<bind_error>;

template <typename Acceptor>
void accept_next(Acceptor& acceptor, connection_context& shared, door by) {
    acceptor.async_accept([&acceptor, &shared, by](boost::system::error_code ec, auto socket) {
        if (ec == asio::error::operation_aborted || !acceptor.is_open()) return;
        if (!ec) begin_connection(std::move(socket), shared, by);
        accept_next(acceptor, shared, by);
    });
}

// A socket file that nobody answers on was left by a crash; one that answers has an owner.
bool is_answered(const std::string& path) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    const auto* plain = static_cast<const sockaddr*>(static_cast<const void*>(&address));
    const bool answered = ::connect(fd, plain, sizeof(address)) == 0;
    ::close(fd);
    return answered;
}

tl::expected<void, bind_error> clear_stale(const std::string& path) {
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) return {};
    if (!S_ISSOCK(found.st_mode))
        return failure({fmt::format("{}: exists and is not a socket", path)});
    if (is_answered(path))
        return failure({fmt::format("{}: another process serves this socket", path)});
    if (::unlink(path.c_str()) != 0)
        return failure({fmt::format("{}: {}", path, std::strerror(errno))});
    return {};
}

tl::expected<void, bind_error> bind_unix(server::inside& in) {
    const auto& path = in.options.unix_path;
    if (path.size() >= sizeof(sockaddr_un{}.sun_path))
        return failure({fmt::format("{}: longer than the {} bytes that a socket path may have",
                                    path,
                                    sizeof(sockaddr_un{}.sun_path) - 1)});
    if (auto cleared = clear_stale(path); !cleared) return cleared;
    boost::system::error_code ec;
    in.unix_acceptor.open(local(), ec);
    if (!ec) in.unix_acceptor.bind(local::endpoint(path), ec);
    if (ec) return failure({fmt::format("{}: {}", path, ec.message())});
    // Between bind and listen nobody can connect: no moment with wider rights.
    if (::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0)
        return failure({fmt::format("{}: {}", path, std::strerror(errno))});
    in.unix_acceptor.listen(asio::socket_base::max_listen_connections, ec);
    if (ec) return failure({fmt::format("{}: {}", path, ec.message())});
    return {};
}

tl::expected<void, bind_error> bind_tcp(server::inside& in) {
    const auto& host = in.options.metrics_host;
    boost::system::error_code ec;
    const auto where = fmt::format("{}:{}", host, in.options.metrics_port);
    tcp::resolver resolver(in.io);
    const auto found =
        resolver.resolve(host, std::to_string(in.options.metrics_port), tcp::resolver::passive, ec);
    if (ec || found.empty()) return failure({fmt::format("{}: {}", where, ec.message())});
    const tcp::endpoint at = found.begin()->endpoint();
    in.tcp_acceptor.open(at.protocol(), ec);
    if (!ec) in.tcp_acceptor.set_option(asio::socket_base::reuse_address(true), ec);
    if (!ec) in.tcp_acceptor.bind(at, ec);
    if (!ec) in.tcp_acceptor.listen(asio::socket_base::max_listen_connections, ec);
    if (ec) return failure({fmt::format("{}: {}", where, ec.message())});
    in.port = in.tcp_acceptor.local_endpoint().port();
    return {};
}

}  // namespace

server::server(std::unique_ptr<inside> state) : inside_(std::move(state)) {}

server::~server() {
    stop();
}

tl::expected<std::unique_ptr<server>, bind_error> server::start(const server_options& options,
                                                                service& what) {
    auto state = std::make_unique<inside>(options, what);
    if (!options.unix_path.empty()) {
        if (auto bound = bind_unix(*state); !bound) return failure(bound.error());
        accept_next(state->unix_acceptor, state->shared, door::unix_socket);
    }
    if (options.metrics_tcp) {
        if (auto bound = bind_tcp(*state); !bound) {
            if (!options.unix_path.empty()) ::unlink(options.unix_path.c_str());
            return failure(bound.error());
        }
        accept_next(state->tcp_acceptor, state->shared, door::tcp);
    }
    auto* raw = state.get();
    state->thread = std::thread([raw] {
        const auto keep = asio::make_work_guard(raw->io);
        raw->io.run();
    });
    return std::unique_ptr<server>(new server(std::move(state)));
}

void server::stop() {
    std::call_once(inside_->stopped, [this] {
        inside_->io.stop();
        if (inside_->thread.joinable()) inside_->thread.join();
        inside_->pool.stop();
        inside_->pool.join();
        if (inside_->unix_acceptor.is_open()) ::unlink(inside_->options.unix_path.c_str());
    });
}

std::uint16_t server::metrics_port() const noexcept {
    return inside_->port;
}

std::uint64_t server::connections_refused() const noexcept {
    return inside_->refused.load();
}

}  // namespace hotlane::admin
