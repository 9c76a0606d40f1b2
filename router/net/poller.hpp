// Which sockets are ready, for the data plane's own: one epoll instance a worker, waited for by the
// worker's io_context as if it were a socket.
//
// Why not the reactor of the io_context itself: it hears of a socket once for each wait and has to
// be asked again each time, at the cost of a system call and an operation for every message. Here
// a socket is registered once, edge-triggered, and a burst of all clients is taken in one look.
// Everything else (accepting, connecting, timers, names) stays with Asio.
//
// THREADS: the worker's only, but for the constructor. Events of a channel that has gone, or whose
// number has been given to another one, reach nobody: they carry a ticket that is used once.
// Source: epoll(7), "Level-triggered and edge-triggered", and the questions behind it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include "router/net/types.hpp"

struct epoll_event;

namespace hotlane::net {

class channel;

class poller {
  public:
    static constexpr int events_max = 64;  // of one look
    static constexpr int rounds_max = 8;   // looks, before the io_context has its turn

    // Throws std::system_error if the kernel gives no epoll instance.
    explicit poller(asio::io_context& io);
    void start();
    void stop();  // nothing is heard any more, and the io_context is not kept from ending

    // After the event that is being handled, before the io_context has its turn.
    void defer(std::function<void()> what);

    // ---- for channels ----
    // False: the kernel will not tell of it.
    bool enter(int fd, channel& who, std::uint64_t& ticket);
    void watch_writing(int fd, std::uint64_t ticket);
    void leave(std::uint64_t ticket);
    // It waits, and what it waits for is known to be there.
    void soon(std::uint64_t ticket);

  private:
    struct seat {
        channel* who{nullptr};
        std::uint32_t turn{0};
    };

    void arm();
    void wake();
    void run();
    int look();
    void run_deferred();
    void tell(std::uint64_t ticket, std::uint32_t events);
    [[nodiscard]] channel* find(std::uint64_t ticket) const;

    asio::io_context& io_;
    asio::posix::basic_stream_descriptor<executor> epoll_;
    std::vector<seat> seats_;
    std::vector<std::uint32_t> free_;
    std::vector<std::uint64_t> soon_, soon_now_;
    std::vector<std::function<void()>> deferred_, deferred_now_;
    bool running_{false};
    bool woken_{false};
    bool stopped_{false};
};

}  // namespace hotlane::net
