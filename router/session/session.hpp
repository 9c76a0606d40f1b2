// One client connection, sans-io: bytes and events in, bytes and actions out.
//
// A driver (router/net, or a test script) owns the sockets. It feeds on_...() and then, after each
// call, (1) performs the actions in order, (2) writes out to_client() and to_link(), removing what
// it has written with consume, (3) reads from a side only while wants_...() says so. The session
// never sees a socket, a clock or a log. Time comes as an argument; timers are actions.
//
// Life: starting -> authenticating link -> relaying (idle | in transaction) -> ended.
//  - At the first message of a transaction the session enters the tool's gate (environment::enter);
//    while held, client bytes stay queued (bounded) and the client's end is still watched.
//  - Inside, it compares its link's generation with environment::target(); another one means: close
//    the link, open one to the new home, replay startup settings, SETs and prepared statements
//    (hidden from the client), then go on.
//  - Pooled by transaction it has no link of its own: it borrows one at the first message of a
//    transaction, brings it to the state that the client believes in, and gives it back when it
//    owes nothing. A pinned session keeps the one it has.
//  - It keeps a queue of the replies it owes; the transaction ends, and the gate is left, when the
//    queue is empty, the status byte is idle, nothing is unsynced and no COPY is open.
//
// THREADS: one. ERRORS: never throws; a broken client or home ends the session with one clear
// error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "router/session/environment.hpp"

namespace hotlane::session {

using time_point = std::chrono::steady_clock::time_point;
using std::chrono::milliseconds;

struct bounds {
    std::size_t buffer_bytes{256 * 1024};  // high-water mark of each output buffer
    std::size_t parsed_message_bytes{
        1024 * 1024};  // a longer Query/Parse/Bind is streamed, not understood
    std::size_t statements{1'000};
    std::size_t parameters{200};
    milliseconds login_timeout{30'000};
    milliseconds connect_timeout{5'000};  // link open until its first ReadyForQuery, all tries
    milliseconds hold_max{5'000};         // longest wait at the gate
    milliseconds pinned_patience{5'000};  // a pinned session of a moved tool gets 57P01 after it
};

enum class timer { login, connect, hold, pinned, retry };
inline constexpr std::size_t timer_kinds = 5;

// ---- actions ----
struct open_link {  // connect to the home that environment::target() names; replaces any old link
    std::uint64_t generation{};
};
struct close_link {};  // drop it now (Terminate was put into to_link() where polite)
struct accept_tls {};  // (later) start TLS on the client's side
struct arm {           // (re)arm a timer; one of each kind
    timer which{};
    milliseconds after{};
};
struct disarm {
    timer which{};
};
struct forward_cancel {  // this connection was a CancelRequest: look the key up and deliver
    std::uint32_t process_id{};
    std::string secret;
};
struct close_client {};  // after to_client() is flushed
using action =
    std::variant<open_link, close_link, accept_tls, arm, disarm, forward_cancel, close_client>;

class session {
  public:
    session(environment& env, const bounds& limits, bool client_is_local);
    ~session();
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    // ---- events ----
    void on_start(time_point now);  // once, first
    void on_client_bytes(std::string_view bytes, time_point now);
    void on_client_eof(time_point now);                         // half-closed or gone
    void on_link_open(time_point now);                          // connected, nothing sent yet
    void on_link_failed(std::string_view why, time_point now);  // could not connect, all tries
    void on_link_bytes(std::string_view bytes, time_point now);
    void on_link_lost(std::string_view why, time_point now);  // EOF or reset
    // Transaction pooling: the link that was waited for, or why there is none. `words`: the
    // home's own ErrorResponse, where it refused the login.
    void on_link_lent(link_memory& link, time_point now);
    void on_link_refused(const refusal& why, std::string_view words, time_point now);
    void on_link_wait(std::string_view notice, time_point now);  // it takes long: say so
    void on_released(time_point now);                            // the gate let us in
    void on_hold_failed(std::string_view why, time_point now);   // the gate gave us up
    void on_route_changed(time_point now);                       // poke: pinned sessions must leave
    void on_timer(timer which, time_point now);
    void on_shutdown(time_point now);  // end when idle, 57P01
    // Cancels in flight for this session: while above 0 the next transaction is not begun.
    void on_cancel_started();
    // A cancel for a session that cancel_target() says nothing of: what it queues, or will send
    // again, ends with 57014. False: there is nothing.
    bool on_cancel_queued(time_point now);
    void on_cancel_finished(time_point now);

    // ---- outputs ----
    [[nodiscard]] std::vector<action> take_actions();
    [[nodiscard]] std::string_view to_client() const noexcept;
    [[nodiscard]] std::string_view to_link() const noexcept;
    void consume_to_client(std::size_t bytes) noexcept;
    void consume_to_link(std::size_t bytes) noexcept;
    [[nodiscard]] bool wants_client_bytes()
        const noexcept;  // also true while held, up to the bound
    [[nodiscard]] bool wants_link_bytes() const noexcept;

    // ---- facts ----
    [[nodiscard]] bool ended() const noexcept;
    [[nodiscard]] bool in_transaction() const noexcept;  // inside the gate
    [[nodiscard]] pin pinned() const noexcept;
    [[nodiscard]] link_key cancel_target() const;  // empty secret: nothing to cancel now
    [[nodiscard]] std::string_view tool() const noexcept;

  private:
    class implementation;
    std::unique_ptr<implementation> self_;
};

}  // namespace hotlane::session
