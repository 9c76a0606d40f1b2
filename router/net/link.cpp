// The home's side of a connection: opening, reading, writing, losing a link.
#include <algorithm>
#include <utility>

#include "router/net/address.hpp"
#include "router/net/connection.hpp"
#include "router/net/pool.hpp"
#include "router/net/socket.hpp"
#include "router/net/worker.hpp"
#include "router/wire/message.hpp"

namespace hotlane::net {

namespace {
constexpr auto relaxed = std::memory_order_relaxed;
// Links opened one after the other (a home that accepts and then refuses, as PostgreSQL does while
// it starts) are paced like tries; this much quiet forgets them.
constexpr milliseconds quiet{1'000};
}  // namespace

void connection::open_link(std::uint64_t generation) {
    drop_link();
    const auto* const route = surroundings_.route();
    if (route == nullptr) return;
    const auto now = steady::now();
    dials_in_a_row_ = now - last_dial_ < quiet ? std::min(dials_in_a_row_ + 1, 8) : 0;
    last_dial_ = now;
    dial_plan plan{.total = all_.limit.connect_timeout, .one = all_.limit.connect_try_timeout};
    // The first reopening is at once: a home that was just switched or restarted is likely there.
    if (dials_in_a_row_ > 1) {
        const auto pause = dialer::pause_min * (1 << (dials_in_a_row_ - 2));
        const auto jitter = std::uniform_int_distribution<int>(50, 100)(worker_.dice());
        plan.first = std::min(pause, dialer::pause_max / 2) * jitter / 100;
    }
    if (link_generation_ != 0 && link_generation_ != generation) {
        surroundings_.tool()->counted.switched.fetch_add(1, relaxed);
    }
    link_generation_ = generation;
    dialer_ = std::make_shared<dialer>(worker_.io(), worker_.dice(), route->at.at, plan);
    const std::weak_ptr<connection> weak = weak_from_this();
    auto connected = [weak](stream socket, const peer& at) {
        if (const auto self = weak.lock()) self->link_connected(std::move(socket), at);
    };
    auto failed = [weak](const std::string& why) {
        const auto self = weak.lock();
        if (!self || self->closed_) return;
        self->dialer_.reset();
        self->surroundings_.tool()->counted.link_failures.fetch_add(1, relaxed);
        self->all_.counted.hit("connect_timeout");
        self->session_.on_link_failed(why, steady::now());
        self->pump();
    };
    dialer_->start(std::move(connected), std::move(failed));
}

void connection::link_connected(stream socket, const peer& at) {
    if (closed_) return;
    dialer_.reset();
    prepare_socket(socket, at);
    link_ = std::make_shared<home_link>(worker_.poll(), std::move(socket), at);
    link_->user = this;
    surroundings_.tool()->counted.link_opens.fetch_add(1, relaxed);
    session_.on_link_open(steady::now());
    pump();
}

// What is left for this link (a Terminate) is sent if the kernel takes it now, else dropped: it
// must never reach the next one.
void connection::drop_link() {
    if (dialer_) {
        dialer_->cancel();
        dialer_.reset();
    }
    if (!link_) return;
    if (link_->pool) {
        surroundings_.give_back(session::link_fate::close);
        return;
    }
    const auto old = std::exchange(link_, nullptr);
    const auto bytes = session_.to_link();
    error_code ignored;
    if (!bytes.empty()) {
        old->socket.write_some(asio::buffer(bytes.data(), bytes.size()), ignored);
        session_.consume_to_link(bytes.size());
    }
    old->close();
}

void connection::attach(const link_ptr& link) {
    link_ = link;
    link_->user = this;
    link_generation_ = link->memory.generation;
}

link_ptr connection::detach() {
    if (link_) link_->user = nullptr;
    return std::exchange(link_, nullptr);
}

void connection::lend(const link_ptr& link) {
    attach(link);
    session_.on_link_lent(link->memory, steady::now());
    pump();
}

void connection::deny_link(const session::refusal& why, std::string_view words) {
    if (closed_) return;
    session_.on_link_refused(why, words, steady::now());
    pump();
}

void connection::delay_link(const std::string& text) {
    if (closed_) return;
    std::string notice;
    wire::append_error(notice,
                       {.severity = "NOTICE",
                        .severity_raw = "NOTICE",
                        .sqlstate = "00000",
                        .message = text,
                        .detail = {},
                        .hint = {},
                        .others = {}},
                       wire::tag_b::notice);
    session_.on_link_wait(notice, steady::now());
    pump();
}

void connection::read_link() {
    if (!link_ || closed_ || !session_.wants_link_bytes()) return;
    link_->watch();
}

void connection::link_event(const link_ptr& from) {
    if (closed_ || link_ != from) return;
    const auto self = shared_from_this();
    link_readable(from);
}

void connection::link_writable(const link_ptr& to) {
    if (closed_ || link_ != to) return;
    const auto self = shared_from_this();
    pump();
}

void connection::link_readable(const link_ptr& from) {
    if (!session_.wants_link_bytes()) return;
    const auto buffer = worker_.buffer();
    error_code error;
    const auto count = from->socket.read_some(buffer, error);
    if (error == asio::error::would_block) {
        read_link();
        return;
    }
    if (error) {
        link_broken(from, error);
        return;
    }
    session_.on_link_bytes({static_cast<const char*>(buffer.data()), count}, steady::now());
    pump();
}

void connection::write_link() {
    if (!link_ || link_->writing) return;
    const auto to = link_;
    while (!session_.to_link().empty()) {
        const auto bytes = session_.to_link();
        error_code error;
        const auto count = to->socket.write_some(asio::buffer(bytes.data(), bytes.size()), error);
        if (error == asio::error::would_block) {
            to->watch_writing();
            return;
        }
        if (error) {
            // What the home said before it went (a FATAL) is still to be read; the read ends it.
            session_.consume_to_link(bytes.size());
            if (!session_.wants_link_bytes()) link_broken(to, error);
            return;
        }
        session_.consume_to_link(count);
    }
}

void connection::link_broken(const link_ptr& from, error_code error) {
    if (link_ != from || from->eof) return;
    session_.consume_to_link(session_.to_link().size());
    const std::string why =
        error == asio::error::eof ? "the home closed the connection" : error.message();
    link_.reset();
    if (from->pool)
        worker_.pools().lost(from);
    else
        from->close();
    session_.on_link_lost(why, steady::now());
    pump();
}

}  // namespace hotlane::net
