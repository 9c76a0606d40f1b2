#include "tests/devengine/server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "tests/devengine/connection.hpp"

namespace hotlane::devengine {

namespace {

constexpr int backlog = 512;

int listen_on(const std::string& host, std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    const bool parsed = ::inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1;
    if (!parsed || ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(fd, backlog) != 0) {
        const std::string reason = parsed ? std::strerror(errno) : "not an IPv4 address";
        ::close(fd);
        throw std::runtime_error("cannot listen on " + host + ":" + std::to_string(port) + ": " +
                                 reason);
    }
    return fd;
}

std::uint16_t port_of(int fd) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
}

}  // namespace

server::server(const std::string& host, database_options where, costs cost) {
    const auto port = where.port;
    home_ = std::make_unique<database>(std::move(where), cost);
    listener_ = listen_on(host, port);
    port_ = port_of(listener_);
}

void server::start() {
    acceptor_ = std::thread([this] { accept_loop(); });
}

server::~server() {
    home_->close();
    ::shutdown(listener_, SHUT_RDWR);
    if (acceptor_.joinable()) acceptor_.join();
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        for (auto& c : clients_)
            if (!c.done) ::shutdown(c.fd, SHUT_RDWR);
    }
    for (auto& c : clients_)
        c.thread.join();
    ::close(listener_);
}

void server::accept_loop() {
    for (;;) {
        const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (fd < 0) return;
        const int on = 1;
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        reap();
        const std::lock_guard lock(mutex_);
        auto& c = clients_.emplace_back();
        c.fd = fd;
        c.thread = std::thread([this, &c] { serve(c); });
    }
}

void server::serve(client& c) {
    ::prctl(PR_SET_TIMERSLACK, 1'000UL);  // the costs are tens of microseconds
    connection(c.fd, *home_).run();
    const std::lock_guard lock(mutex_);
    ::close(c.fd);
    c.done = true;
}

void server::reap() {
    const std::lock_guard lock(mutex_);
    clients_.remove_if([](client& c) {
        if (!c.done) return false;
        c.thread.join();
        return true;
    });
}

}  // namespace hotlane::devengine
