#include "router/net/channel.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hotlane::net {

namespace {

error_code last_error() {
    return {errno, boost::system::system_category()};
}

bool looks_at(int fd, short events) {
    pollfd look{.fd = fd, .events = events, .revents = 0};
    return ::poll(&look, 1, 0) > 0;
}

}  // namespace

channel::channel(poller& on, stream made, channel_user& user) : on_(on), user_(user), fd_(-1) {
    error_code error;
    fd_ = made.release(error);
    if (error) fd_ = -1;
    if (on_.enter(fd_, *this, ticket_)) return;
    // Nobody would tell of it: it is as good as closed, and the first look at it says so.
    ::shutdown(fd_, SHUT_RDWR);
    readable_ = ending_ = true;
}

void channel::wait_read() {
    waits_read_ = true;
    if (readable_ && !std::exchange(queued_, true)) on_.soon(ticket_);
}

void channel::wait_write() {
    waits_write_ = true;
    writable_ = false;  // the kernel has just said so
    if (!std::exchange(watches_writing_, true)) on_.watch_writing(fd_, ticket_);
}

std::size_t channel::read_some(asio::mutable_buffer into, error_code& error) {
    error = {};
    for (;;) {
        const auto count = ::recv(fd_, into.data(), into.size(), MSG_DONTWAIT);
        if (count < 0 && errno == EINTR) continue;
        // Less than there was room for: the socket is empty, and the next byte makes an edge.
        if (count <= 0 || static_cast<std::size_t>(count) < into.size()) readable_ = ending_;
        if (count > 0) return static_cast<std::size_t>(count);
        if (count == 0)
            error = asio::error::eof;
        else
            error = last_error();
        return 0;
    }
}

std::size_t channel::write_some(asio::const_buffer from, error_code& error) {
    error = {};
    for (;;) {
        const auto count = ::send(fd_, from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count >= 0) return static_cast<std::size_t>(count);
        error = last_error();
        return 0;
    }
}

bool channel::has_news() const {
    char one = 0;
    const auto count = ::recv(fd_, &one, 1, MSG_PEEK | MSG_DONTWAIT);
    return !(count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

bool channel::is_left() const {
    return looks_at(fd_, POLLRDHUP);
}

void channel::shutdown_send() {
    ::shutdown(fd_, SHUT_WR);
}

void channel::close() {
    if (ticket_ != 0) on_.leave(std::exchange(ticket_, 0));
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void channel::note(std::uint32_t events) {
    constexpr std::uint32_t ends = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
    if ((events & (EPOLLIN | EPOLLPRI | ends)) != 0) readable_ = true;
    if ((events & ends) != 0) ending_ = true;
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) writable_ = true;
}

void channel::tell_readable() {
    if (!readable_ || !std::exchange(waits_read_, false)) return;
    user_.on_readable();
}

void channel::tell_writable() {
    if (!writable_ || !waits_write_) return;
    waits_write_ = false;
    user_.on_writable();
}

}  // namespace hotlane::net
