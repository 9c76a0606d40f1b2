// One client connection: owns the session, its sockets and timers, and drives it.
//
// After every event pump() performs the session's actions, writes what it has to say, and reads
// from the sides it wants to hear. Reading is "wait until readable, then read into the thread's
// buffer": no buffer of its own waits with an idle connection. THREADS: one, that of its
// io_context; post_...() may be called from any. OWNERSHIP: its worker holds it until close(), and
// pending timers and dials do, which close() ends.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "router/net/dialer.hpp"
#include "router/net/home_link.hpp"
#include "router/net/shared.hpp"
#include "router/net/surroundings.hpp"
#include "router/net/types.hpp"

namespace hotlane::net {

class worker;

class connection final : public channel_user,
                         public link_user,
                         public std::enable_shared_from_this<connection> {
  public:
    connection(worker& on, stream client, const peer& from);

    void start();
    void poke(const std::string& tool);  // on_route_changed if it is this tool's
    void shut_down();
    void close();  // now, whatever is owed
    // Called every tick: a client that is not being read must still be noticed when it goes.
    void check_client_gone();

    // A cancel for the statement that runs here now. `done` is called once, on this thread, when
    // the home has taken it (or cannot).
    void post_cancel(std::function<void()> done);

    void on_readable() override;  // its client
    void on_writable() override;
    void link_event(const link_ptr& link) override;
    void link_writable(const link_ptr& link) override;

    // ---- borrowed links, from the surroundings ----
    void attach(const link_ptr& link);
    link_ptr detach();
    [[nodiscard]] bool wants_link() const noexcept { return !closed_ && !link_; }
    void lend(const link_ptr& link);
    void deny_link(const session::refusal& why, std::string_view words);
    void delay_link(const std::string& notice);

  private:
    // ---- connection.cpp ----
    void pump();
    void perform(const session::action& action);
    void arm(session::timer which, milliseconds after);
    void ended();
    void linger();
    void drain_client();
    void throw_away();

    // ---- client.cpp ----
    void read_client();
    void client_readable();
    void write_client();
    bool waits_for_ddl();
    void client_lost();

    // ---- link.cpp ----
    void open_link(std::uint64_t generation);
    void link_connected(stream socket, const peer& at);
    void drop_link();
    void read_link();
    void link_readable(const link_ptr& from);
    void write_link();
    void link_broken(const link_ptr& from, error_code error);

    // ---- cancel.cpp ----
    void forward_cancel(const session::forward_cancel& asked);
    void cancel_here(std::function<void()> done);

    worker& worker_;
    shared& all_;
    surroundings surroundings_;
    session::session session_;
    channel client_;
    bool client_reading_{false};
    bool client_writing_{false};
    bool client_eof_{false};
    bool closing_{false};     // the session said close_client: flush, linger, close
    bool flushing_{false};    // the last words are being written, against the clock
    bool lingering_{false};   // our side is shut; the client's end is awaited
    bool delivering_{false};  // a cancel that this connection asked for is on its way
    bool closed_{false};
    bool pumping_{false};
    bool again_{false};
    link_ptr link_;
    std::shared_ptr<dialer> dialer_;
    std::uint64_t link_generation_{0};
    steady::time_point last_dial_{};
    int dials_in_a_row_{0};
    std::array<std::optional<timer>, session::timer_kinds> timers_;
    std::array<std::uint64_t, session::timer_kinds> timer_serials_{};
    std::optional<timer> ddl_look_;
    std::optional<steady::time_point> ddl_until_;
    bool ddl_looking_{false};
    timer closer_;
};

}  // namespace hotlane::net
