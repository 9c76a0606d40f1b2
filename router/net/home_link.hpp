// One connection to a home. It is its client's for life, or it belongs to a pool and serves one
// client connection after the other; then its memory says what the home's session holds.
#pragma once

#include <memory>

#include "router/net/inlet.hpp"
#include "router/net/types.hpp"
#include "router/session/link_memory.hpp"

namespace hotlane::net {

class home_link;
struct link_pool;
using link_ptr = std::shared_ptr<home_link>;

// Whoever has the link at the moment: a connection, an opener, the pool.
class link_user {
  public:
    // It is readable, or it is broken.
    virtual void link_event(const link_ptr& link, error_code error) = 0;

  protected:
    ~link_user() = default;
};

class home_link : public std::enable_shared_from_this<home_link> {
  public:
    home_link(stream s, const peer& to) : socket(std::move(s)), at(to) {}

    stream socket;
    inlet in;  // what it has said
    peer at;
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
        in.wait(socket, [self = shared_from_this()](error_code error) {
            self->watching_ = false;
            if (self->user) self->user->link_event(self, error);
        });
    }
    void close() {
        eof = true;
        user = nullptr;
        error_code ignored;
        socket.close(ignored);
    }

  private:
    bool watching_{false};
};

}  // namespace hotlane::net
