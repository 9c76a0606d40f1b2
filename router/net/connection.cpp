#include "router/net/connection.hpp"

#include <boost/asio/post.hpp>
#include <type_traits>
#include <utility>
#include <variant>

#include "router/net/address.hpp"
#include "router/net/worker.hpp"

namespace hotlane::net {

namespace {

// How long a client may take to read its last words and to close its side.
constexpr milliseconds close_grace{5'000};
constexpr milliseconds linger_max{1'000};

}  // namespace

connection::connection(worker& on, stream client, const peer& from)
    : worker_(on),
      all_(on.all()),
      surroundings_(on, *this),
      session_(surroundings_, all_.bounds, is_local(from)),
      client_(on.poll(), std::move(client), *this),
      closer_(on.io()) {}

void connection::start() {
    const std::weak_ptr<connection> self = weak_from_this();
    surroundings_.bind(self, [self](bool inside, std::string_view why) {
        const auto here = self.lock();
        if (!here || here->closed_) return;
        if (inside) {
            here->session_.on_released(steady::now());
        } else {
            here->session_.on_hold_failed(why, steady::now());
        }
        here->pump();
    });
    surroundings_.count_accepted();
    session_.on_start(steady::now());
    pump();
}

// Actions come first, then bytes, then reads. Consuming bytes may make new room but no new action;
// performing one may (a link that cannot even be tried), so it goes round until nothing is left.
void connection::pump() {
    again_ = true;
    if (pumping_) return;
    pumping_ = true;
    const auto self = shared_from_this();
    while (again_ && !closed_) {
        again_ = false;
        for (const auto& action : session_.take_actions()) {
            if (!closed_) perform(action);
        }
        if (closed_) break;
        write_link();
        write_client();
        read_client();
        read_link();
    }
    pumping_ = false;
    if (!closed_ && !delivering_ && (closing_ || session_.ended())) ended();
}

void connection::perform(const session::action& action) {
    std::visit(
        [this](const auto& what) {
            using kind = std::decay_t<decltype(what)>;
            if constexpr (std::is_same_v<kind, session::open_link>) {
                open_link(what.generation);
            } else if constexpr (std::is_same_v<kind, session::close_link>) {
                drop_link();
            } else if constexpr (std::is_same_v<kind, session::accept_tls>) {
                // Never asked for: the session answers SSLRequest with N.
            } else if constexpr (std::is_same_v<kind, session::arm>) {
                arm(what.which, what.after);
            } else if constexpr (std::is_same_v<kind, session::disarm>) {
                const auto at = static_cast<std::size_t>(what.which);
                ++timer_serials_[at];
                if (timers_[at]) timers_[at]->cancel();
            } else if constexpr (std::is_same_v<kind, session::forward_cancel>) {
                forward_cancel(what);
            } else {
                static_assert(std::is_same_v<kind, session::close_client>);
                closing_ = true;
            }
        },
        action);
}

void connection::arm(session::timer which, milliseconds after) {
    const auto at = static_cast<std::size_t>(which);
    if (which == session::timer::hold && surroundings_.tool() != nullptr) {
        after = std::min(after, surroundings_.tool()->settings.hold_max);
    }
    if (!timers_[at]) timers_[at].emplace(worker_.io());
    timers_[at]->expires_after(after);
    timers_[at]->async_wait(
        [self = shared_from_this(), which, at, serial = ++timer_serials_[at]](error_code error) {
            if (error || self->closed_ || serial != self->timer_serials_[at]) return;
            switch (which) {
                case session::timer::login:
                    self->all_.counted.hit("login_timeout");
                    break;
                case session::timer::connect:
                    self->all_.counted.hit("connect_timeout");
                    break;
                case session::timer::hold:
                    self->all_.counted.hit("hold_max");
                    if (auto* const tool = self->surroundings_.tool()) {
                        tool->counted.hold_refused.fetch_add(1, std::memory_order_relaxed);
                    }
                    break;
                case session::timer::retry:
                    break;
                case session::timer::pinned:
                    if (auto* const tool = self->surroundings_.tool()) {
                        tool->counted.pinned_ended.fetch_add(1, std::memory_order_relaxed);
                    }
                    break;
            }
            self->session_.on_timer(which, steady::now());
            self->pump();
        });
}

// The session is over. What it still has to say is written (write_client goes on by itself), then
// our side is shut and the client's end awaited: closing with unread input would make the kernel
// throw the last message away.
void connection::ended() {
    drop_link();
    if (!closing_ && session_.to_client().empty()) {
        close();
        return;
    }
    if (lingering_) return;
    closing_ = true;
    if (session_.to_client().empty()) {
        linger();
        return;
    }
    if (std::exchange(flushing_, true)) return;
    closer_.expires_after(close_grace);
    closer_.async_wait([self = shared_from_this()](error_code error) {
        if (!error && !self->lingering_) self->close();
    });
}

void connection::linger() {
    if (lingering_) return;
    lingering_ = true;
    client_.shutdown_send();
    closer_.expires_after(linger_max);
    closer_.async_wait([self = shared_from_this()](error_code error) {
        if (!error) self->close();
    });
    if (client_eof_) {
        close();
        return;
    }
    if (!client_reading_) drain_client();
}

void connection::drain_client() {
    client_reading_ = true;
    client_.wait_read();
}

// What it still sends is thrown away, until it has seen that we have closed.
void connection::throw_away() {
    error_code error;
    client_.read_some(worker_.buffer(), error);
    if (error && error != asio::error::would_block) {
        close();
        return;
    }
    drain_client();
}

void connection::poke(const std::string& tool) {
    if (closed_ || surroundings_.tool() == nullptr || surroundings_.tool()->name != tool) return;
    session_.on_route_changed(steady::now());
    pump();
}

void connection::shut_down() {
    if (closed_) return;
    session_.on_shutdown(steady::now());
    pump();
}

// A client that waits at the gate with a full buffer is not read, so its end is not seen as EOF.
// The kernel knows: POLLRDHUP. Its queued message must not be executed.
void connection::check_client_gone() {
    if (closed_ || client_eof_ || client_reading_ || !surroundings_.waiting()) return;
    if (client_.is_left()) client_lost();
}

void connection::close() {
    if (closed_) return;
    closed_ = true;
    drop_link();
    surroundings_.stop_waiting();
    surroundings_.end();
    for (auto& each : timers_) {
        if (each) each->cancel();
    }
    if (ddl_look_) ddl_look_->cancel();
    closer_.cancel();
    client_.close();
    worker_.forget(shared_from_this());
}

}  // namespace hotlane::net
