// A connected socket of the data plane, on its worker's poller.
//
// It never blocks. Whoever wants to read says so with wait_read() and is told once; then it reads,
// and says so again. An event is not lost in between: what the kernel told is remembered until a
// read has found the socket empty. THREADS: the worker's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "router/net/poller.hpp"
#include "router/net/types.hpp"

namespace hotlane::net {

// May be told from the loop only, never inside a call of theirs.
class channel_user {
  public:
    virtual void on_readable() = 0;  // bytes, the end, or an error: reading will tell
    virtual void on_writable() = 0;

  protected:
    ~channel_user() = default;
};

class channel {
  public:
    // `made` is connected; its number is taken over. `user` outlives the channel.
    channel(poller& on, stream made, channel_user& user);
    ~channel() { close(); }
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;

    void wait_read();
    void wait_write();

    // As of a socket of Asio that does not block: would_block, eof, or what the kernel says.
    std::size_t read_some(asio::mutable_buffer into, error_code& error);
    std::size_t write_some(asio::const_buffer from, error_code& error);
    // There is something to read, be it the end.
    [[nodiscard]] bool has_news() const;
    // The peer has closed its side, as far as the kernel knows.
    [[nodiscard]] bool is_left() const;
    void shutdown_send();
    void close();

  private:
    friend class poller;
    void note(std::uint32_t events);
    void tell_readable();
    void tell_writable();

    poller& on_;
    channel_user& user_;
    int fd_;
    std::uint64_t ticket_{0};
    bool readable_{false};  // perhaps
    bool ending_{false};    // no edge will tell of what is behind the bytes that are there
    bool writable_{false};
    bool waits_read_{false};
    bool waits_write_{false};
    bool watches_writing_{false};
    bool queued_{false};  // to be told though no event comes: once, however often it waits
};

}  // namespace hotlane::net
