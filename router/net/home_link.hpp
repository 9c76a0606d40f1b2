// One connection to a home. It is its client's for life, or it belongs to a pool and serves one
// client connection after the other; then its memory says what the home's session holds.
#pragma once

#include <memory>

#include "router/net/channel.hpp"
#include "router/net/types.hpp"
#include "router/session/link_memory.hpp"

namespace hotlane::net {

class home_link;
struct link_pool;
using link_ptr = std::shared_ptr<home_link>;

// Whoever has the link at the moment: a connection, an opener, the pool.
class link_user {
  public:
    // It is readable, or it is broken: reading will tell.
    virtual void link_event(const link_ptr& link) = 0;
    // It takes bytes again.
    virtual void link_writable(const link_ptr& link) { static_cast<void>(link); }

  protected:
    ~link_user() = default;
};

class home_link final : public channel_user, public std::enable_shared_from_this<home_link> {
  public:
    home_link(poller& on, stream s, const peer& to) : at(to), socket(on, std::move(s), *this) {}

    peer at;
    channel socket;
    link_user* user{nullptr};  // it resets this before it goes
    bool writing{false};
    bool eof{false};

    // ---- of a pooled one ----
    session::link_memory memory;
    std::shared_ptr<link_pool> pool;
    steady::time_point expires;  // not lent again after this
    steady::time_point idle_since;

    // Waits once until it is readable and tells the user of that moment. One wait at a time; it
    // outlives a change of users.
    void watch() {
        if (watching_ || eof) return;
        watching_ = true;
        socket.wait_read();
    }
    void watch_writing() {
        writing = true;
        socket.wait_write();
    }
    void close() {
        eof = true;
        user = nullptr;
        socket.close();
    }

    void on_readable() override {
        watching_ = false;
        const auto self = shared_from_this();
        if (user) user->link_event(self);
    }
    void on_writable() override {
        writing = false;
        const auto self = shared_from_this();
        if (user) user->link_writable(self);
    }

  private:
    bool watching_{false};
};

}  // namespace hotlane::net
