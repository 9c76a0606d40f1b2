// The next bytes of a socket. wait() tells once when there are some, take() gives them.
//
// Not "wait until readable, then read": such a wait costs a call of epoll_ctl each time, because a
// reactor cannot know that nobody has read yet. A read into a few bytes of the inlet's own costs
// none; most messages fit, and what does not is read from the socket by take(), behind them. What
// has been read and not been taken yet stays here, so back-pressure is kept: no further byte is
// read until then.
//
// THREADS: one. LIFETIME: the handler holds whatever the inlet is a part of.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include <boost/asio/post.hpp>

#include "router/net/types.hpp"

namespace hotlane::net {

class inlet {
  public:
    // One message of a usual size; an idle client costs this much memory for each of its sockets.
    static constexpr std::size_t own_bytes = 256;

    [[nodiscard]] bool has_news() const noexcept { return have_ > 0 || error_; }

    // `handler(error_code)`: once, from the loop. One wait at a time.
    template <class Handler>
    void wait(stream& from, Handler handler) {
        if (has_news()) {
            asio::post(from.get_executor(),
                       [this, handler = std::move(handler)]() mutable { handler(told()); });
            return;
        }
        from.async_read_some(asio::buffer(own_),
                             [this, handler = std::move(handler)](error_code error,
                                                                  std::size_t count) mutable {
                                 have_ = static_cast<std::uint16_t>(count);
                                 handler(error);
                             });
    }

    // As read_some() of a socket that does not block. `into` has room for own_bytes and more.
    std::size_t take(stream& from, asio::mutable_buffer into, error_code& error) {
        const std::size_t early = std::exchange(have_, std::uint16_t{0});
        if (early == 0) return error_ ? (error = told(), 0) : from.read_some(into, error);
        std::memcpy(into.data(), own_.data(), early);
        error = {};
        if (early < own_bytes) return early;
        error_code later;
        const auto more = from.read_some(into + early, later);
        if (later != asio::error::would_block && later != asio::error::interrupted) error_ = later;
        return early + more;
    }

  private:
    // Bytes first; what ended the stream behind them is told after them.
    error_code told() { return have_ > 0 ? error_code{} : std::exchange(error_, error_code{}); }

    std::uint16_t have_{0};
    error_code error_;  // of the socket, seen while bytes before it were still to be told of
    std::array<char, own_bytes> own_;
};

}  // namespace hotlane::net
