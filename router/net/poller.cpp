#include "router/net/poller.hpp"

#include <sys/epoll.h>

#include <boost/asio/post.hpp>

#include <cerrno>
#include <system_error>
#include <utility>

#include "router/net/channel.hpp"

namespace hotlane::net {

namespace {

constexpr std::uint32_t reading = EPOLLIN | EPOLLRDHUP | EPOLLET;

int new_epoll() {
    const int made = ::epoll_create1(EPOLL_CLOEXEC);
    if (made < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
    return made;
}

}  // namespace

poller::poller(asio::io_context& io) : io_(io), epoll_(io, new_epoll()) {}

void poller::start() {
    arm();
}

void poller::stop() {
    stopped_ = true;
    error_code ignored;
    epoll_.cancel(ignored);
}

void poller::arm() {
    epoll_.async_wait(asio::posix::descriptor_base::wait_read, [this](error_code error) {
        if (error || stopped_) return;
        run();
        if (!stopped_) arm();
    });
}

// Something is to be done though no socket is ready.
void poller::wake() {
    if (running_ || std::exchange(woken_, true)) return;
    asio::post(io_, [this] {
        woken_ = false;
        run();
    });
}

void poller::defer(std::function<void()> what) {
    deferred_.push_back(std::move(what));
    wake();
}

void poller::soon(std::uint64_t ticket) {
    soon_.push_back(ticket);
    wake();
}

// Under load there is something new after each look; one socket alone is worth no second look.
void poller::run() {
    running_ = true;
    for (int round = 0; round < rounds_max; ++round) {
        const int found = look();
        run_deferred();
        if (found <= 1 && soon_.empty() && deferred_.empty()) break;
    }
    running_ = false;
    if (!soon_.empty() || !deferred_.empty()) wake();
}

int poller::look() {
    std::array<epoll_event, events_max> events;
    const int found = ::epoll_wait(epoll_.native_handle(), events.data(), events_max, 0);
    for (int i = 0; i < found; ++i) {
        const auto& one = events[static_cast<std::size_t>(i)];
        tell(one.data.u64, one.events);
    }
    return found;
}

void poller::run_deferred() {
    soon_now_.swap(soon_);
    for (const auto ticket : soon_now_) {
        if (auto* const who = find(ticket)) who->queued_ = false;
        tell(ticket, 0);
    }
    soon_now_.clear();
    deferred_now_.swap(deferred_);
    for (const auto& what : deferred_now_)
        what();
    deferred_now_.clear();
}

// Whoever is told may close channels, its own too.
void poller::tell(std::uint64_t ticket, std::uint32_t events) {
    if (auto* const who = find(ticket)) who->note(events);
    if (auto* const who = find(ticket)) who->tell_readable();
    if (auto* const who = find(ticket)) who->tell_writable();
}

channel* poller::find(std::uint64_t ticket) const {
    const auto& at = seats_[static_cast<std::uint32_t>(ticket)];
    return at.turn == ticket >> 32U ? at.who : nullptr;
}

bool poller::enter(int fd, channel& who, std::uint64_t& ticket) {
    if (free_.empty()) {
        free_.push_back(static_cast<std::uint32_t>(seats_.size()));
        seats_.emplace_back();
    }
    const auto index = free_.back();
    free_.pop_back();
    auto& at = seats_[index];
    at.who = &who;
    ticket = std::uint64_t{++at.turn} << 32U | index;
    epoll_event event{};
    event.events = reading;
    event.data.u64 = ticket;
    return ::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_ADD, fd, &event) == 0;
}

// From now on for good: a TCP socket is only told of where somebody has waited.
void poller::watch_writing(int fd, std::uint64_t ticket) {
    epoll_event event{};
    event.events = reading | EPOLLOUT;
    event.data.u64 = ticket;
    ::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_MOD, fd, &event);
}

void poller::leave(std::uint64_t ticket) {
    if (!find(ticket)) return;
    const auto index = static_cast<std::uint32_t>(ticket);
    seats_[index].who = nullptr;
    ++seats_[index].turn;
    free_.push_back(index);
}

}  // namespace hotlane::net
