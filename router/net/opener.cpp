#include "router/net/opener.hpp"

#include <algorithm>
#include <utility>

#include "router/net/socket.hpp"
#include "router/session/texts.hpp"

namespace hotlane::net {

link_opener::link_opener(worker& on, order what, opened on_opened, failed on_failed)
    : worker_(on),
      order_(std::move(what)),
      on_opened_(std::move(on_opened)),
      on_failed_(std::move(on_failed)),
      clock_(on.io()) {}

void link_opener::start() {
    deadline_ = steady::now() + worker_.all().limit.connect_timeout;
    clock_.expires_at(deadline_);
    clock_.async_wait([self = shared_from_this()](error_code error) {
        if (error || self->over_) return;
        self->worker_.all().counted.hit("connect_timeout");
        const auto why = self->why_.empty() ? "it did not answer in time" : self->why_;
        self->fail(session::texts::cannot_connect(self->order_.tool->name, why), {});
    });
    dial(order_.first_pause);
}

void link_opener::dial(milliseconds pause) {
    const auto& limit = worker_.all().limit;
    const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - steady::now());
    const dial_plan plan{
        .total = std::max(left, milliseconds{1}), .one = limit.connect_try_timeout, .first = pause};
    dialer_ = std::make_shared<dialer>(worker_.io(), worker_.dice(), order_.route->at.at, plan);
    auto on_connected = [self = shared_from_this()](stream socket, const peer& at) {
        if (!self->over_) self->connected(std::move(socket), at);
    };
    auto on_failed = [self = shared_from_this()](const std::string& why) {
        if (self->over_) return;
        self->worker_.all().counted.hit("connect_timeout");
        self->fail(session::texts::cannot_connect(self->order_.tool->name, why), {});
    };
    dialer_->start(std::move(on_connected), std::move(on_failed));
}

void link_opener::connected(stream socket, const peer& at) {
    dialer_.reset();
    prepare_socket(socket, at);
    link_ = std::make_shared<home_link>(worker_.poll(), std::move(socket), at);
    link_->user = this;
    out_.clear();
    session::link_login::append_startup(out_, order_.who, order_.target);
    login_ = std::make_unique<session::link_login>(
        order_.tool->name, order_.target.password, worker_.all().limit.buffer_bytes);
    write();
}

// A login's messages are far smaller than a socket's buffer: one that does not take them is broken.
void link_opener::write() {
    error_code error;
    const auto count =
        out_.empty() ? 0 : link_->socket.write_some(asio::buffer(out_.data(), out_.size()), error);
    if (error || count != out_.size()) {
        try_again(error ? error.message() : "it does not read");
        return;
    }
    out_.clear();
    link_->watch();
}

void link_opener::link_event(const link_ptr& link) {
    if (over_ || link != link_) return;
    const auto self = shared_from_this();
    const auto buffer = worker_.buffer();
    error_code error;
    const auto count = link->socket.read_some(buffer, error);
    if (error == asio::error::would_block) {
        link->watch();
    } else if (error) {
        try_again(error == asio::error::eof ? "the home closed the connection" : error.message());
    } else {
        take({static_cast<const char*>(buffer.data()), count});
    }
}

void link_opener::take(std::string_view bytes) {
    using state = session::link_login::state;
    switch (login_->feed(bytes, out_)) {
        case state::going:
            write();
            return;
        case state::ready: {
            auto link = std::exchange(link_, nullptr);
            link->user = nullptr;
            link->memory.kind = order_.target.kind;
            link->memory.generation = order_.target.generation;
            link->memory.key = login_->key();
            link->memory.status = session::shared_list(login_->status());
            const auto tell = std::exchange(on_opened_, {});
            finish();
            tell(std::move(link));
            return;
        }
        case state::again:
            try_again(login_->why().message);
            return;
        case state::refused:
            fail(session::refusal(login_->why()), std::string(login_->words()));
            return;
    }
}

void link_opener::try_again(std::string why) {
    why_ = std::move(why);
    if (link_) std::exchange(link_, nullptr)->close();
    login_.reset();
    if (steady::now() + retry_gap >= deadline_) {
        fail(session::texts::cannot_connect(order_.tool->name, why_), {});
        return;
    }
    dial(retry_gap);
}

void link_opener::fail(const session::refusal& why, std::string_view words) {
    const auto self = shared_from_this();
    const auto tell = std::exchange(on_failed_, {});
    finish();
    if (tell) tell(why, words);
}

void link_opener::finish() {
    over_ = true;
    clock_.cancel();
    if (dialer_) std::exchange(dialer_, nullptr)->cancel();
    if (link_) std::exchange(link_, nullptr)->close();
    login_.reset();
    on_opened_ = {};
    on_failed_ = {};
}

void link_opener::cancel() {
    const auto self = shared_from_this();
    finish();
}

}  // namespace hotlane::net
