// A login over a connection without TLS, of which libpq sees one message at a time.
//
// libpq 15 answers every request for a password, one in clear text too, and has no setting against
// it. To look at the socket before libpq reads it is not enough: a server may cut the request in
// two, or send it behind another message, in one packet or just after the look. So for the time of
// the login a pair of sockets stands in the place of the connection; whole messages are taken from
// the server, looked at, and handed on. A request for clear text is never handed on.
//
// Over TLS nothing is guarded: who uses TLS has allowed it.
#pragma once

#include <cstdint>
#include <string>

#include "router/pq/open.hpp"

namespace hotlane::pq {

class guarded_login {
  public:
    explicit guarded_login(pg_conn* c) : c_(c) {}
    ~guarded_login() { drop(); }
    guarded_login(const guarded_login&) = delete;
    guarded_login& operator=(const guarded_login&) = delete;

    // Called before each step of libpq's: waits for what the step needs, and lets it have that.
    tl::expected<void, open_error> before_step(bool wants_to_read, clock::time_point until);
    // Called after it: hands on what libpq said, and gives the connection back once it is in.
    tl::expected<void, open_error> after_step(clock::time_point until);

  private:
    using done = tl::expected<void, open_error>;
    [[nodiscard]] bool on() const noexcept { return server_ >= 0; }
    done begin();
    done end();
    void drop() noexcept;
    done hand_on_next(clock::time_point until);
    done hand_on_words(clock::time_point until);
    done read_exactly(std::string& into, std::size_t size, clock::time_point until);
    done give(int socket, const std::string& bytes, clock::time_point until);

    pg_conn* c_;
    int server_{-1};         // the connection itself, while libpq has one end of the pair
    int ours_{-1};           // the other end
    std::uint64_t pair_{0};  // what tells libpq's end from another socket
};

// The whole message asks for the password in clear text. PURE.
bool asks_for_clear_text(std::string_view message) noexcept;

}  // namespace hotlane::pq
