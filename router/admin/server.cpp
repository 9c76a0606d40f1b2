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
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include "router/admin/connection.hpp"

namespace hotlane::admin {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using local = asio::local::stream_protocol;

// Where connections of one kind come in.
template <typename Protocol>
struct entrance {
    explicit entrance(asio::io_context& io) : acceptor(io), pause(io) {}
    asio::basic_socket_acceptor<Protocol, asio::io_context::executor_type> acceptor;
    asio::basic_waitable_timer<std::chrono::steady_clock,
                               asio::wait_traits<std::chrono::steady_clock>,
                               asio::io_context::executor_type>
        pause;
};

// Everything that the threads share. Connections hold `shared_state` alive until they are gone.
struct server::inside {
    inside(const server_options& wanted, service& served)
        : options(wanted),
          at_unix(served, options.limit, options.limit.workers),
          at_tcp(served, options.limit, options.limit.probe_workers) {}

    server_options options;
    asio::io_context io{1};
    connection_context at_unix;
    connection_context at_tcp;
    entrance<local> unix_entrance{io};
    entrance<tcp> tcp_entrance{io};
    std::uint16_t port{0};
    std::thread thread;
    std::once_flag stopped;
};

namespace {

using failure = tl::unexpected<bind_error>;

// After an accept error (no file descriptors left, mostly) another try at once would fail at once.
constexpr std::chrono::milliseconds accept_pause{100};

template <typename Protocol>
void accept_next(entrance<Protocol>& at, connection_context& shared, door by) {
    at.acceptor.async_accept([&at, &shared, by](boost::system::error_code ec, auto socket) {
        if (ec == asio::error::operation_aborted || !at.acceptor.is_open()) return;
        if (!ec) {
            begin_connection(std::move(socket), shared, by);
            return accept_next(at, shared, by);
        }
        at.pause.expires_after(accept_pause);
        at.pause.async_wait([&at, &shared, by](boost::system::error_code stopped) {
            if (!stopped) accept_next(at, shared, by);
        });
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
    in.unix_entrance.acceptor.open(local(), ec);
    if (!ec) in.unix_entrance.acceptor.bind(local::endpoint(path), ec);
    if (ec) return failure({fmt::format("{}: {}", path, ec.message())});
    // Between bind and listen nobody can connect: no moment with wider rights.
    if (::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0)
        return failure({fmt::format("{}: {}", path, std::strerror(errno))});
    in.unix_entrance.acceptor.listen(asio::socket_base::max_listen_connections, ec);
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
    in.tcp_entrance.acceptor.open(at.protocol(), ec);
    if (!ec) in.tcp_entrance.acceptor.set_option(asio::socket_base::reuse_address(true), ec);
    if (!ec) in.tcp_entrance.acceptor.bind(at, ec);
    if (!ec) in.tcp_entrance.acceptor.listen(asio::socket_base::max_listen_connections, ec);
    if (ec) return failure({fmt::format("{}: {}", where, ec.message())});
    in.port = in.tcp_entrance.acceptor.local_endpoint().port();
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
        accept_next(state->unix_entrance, state->at_unix, door::unix_socket);
    }
    if (options.metrics_tcp) {
        if (auto bound = bind_tcp(*state); !bound) {
            if (!options.unix_path.empty()) ::unlink(options.unix_path.c_str());
            return failure(bound.error());
        }
        accept_next(state->tcp_entrance, state->at_tcp, door::tcp);
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
        for (auto* at : {&inside_->at_unix, &inside_->at_tcp}) {
            at->workers.stop();
            at->workers.join();
        }
        if (inside_->unix_entrance.acceptor.is_open()) ::unlink(inside_->options.unix_path.c_str());
    });
}

std::uint16_t server::metrics_port() const noexcept {
    return inside_->port;
}

std::uint64_t server::connections_refused() const noexcept {
    return inside_->at_unix.refused.load() + inside_->at_tcp.refused.load();
}

}  // namespace hotlane::admin
