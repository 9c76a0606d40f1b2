#include "router/net/dialer.hpp"

#include <algorithm>
#include <utility>

#include "router/net/address.hpp"

namespace hotlane::net {

dialer::dialer(asio::io_context& io, std::mt19937& dice, config::endpoint to, dial_plan plan)
    : io_(io),
      dice_(dice),
      to_(std::move(to)),
      plan_(plan),
      socket_(io),
      resolver_(io),
      clock_(io) {}

void dialer::start(connected on_connected, failed on_failed) {
    on_connected_ = std::move(on_connected);
    on_failed_ = std::move(on_failed);
    deadline_ = steady::now() + plan_.total;
    if (plan_.first > milliseconds{0}) {
        pause(plan_.first);
        return;
    }
    asio::post(io_, [self = shared_from_this(), serial = ++serial_] {
        if (serial == self->serial_) self->begin_try();
    });
}

void dialer::cancel() {
    ++serial_;
    on_connected_ = {};
    on_failed_ = {};
    error_code ignored;
    socket_.close(ignored);
    resolver_.cancel();
    clock_.cancel();
}

void dialer::begin_try() {
    next_ = 0;
    candidates_.clear();
    clock_.expires_at(std::min(deadline_, steady::now() + plan_.one));
    clock_.async_wait([self = shared_from_this(), serial = ++serial_](error_code error) {
        if (error || serial != self->serial_) return;
        self->try_failed("no answer in time");
    });
    const auto literal = literal_peer(to_);
    if (!literal) {
        resolve();
        return;
    }
    if (!*literal) {
        finish(literal->error());  // trying again cannot mend it
        return;
    }
    candidates_.push_back(**literal);
    try_next();
}

// Asio resolves on a thread of its own; the io_context is not held up.
void dialer::resolve() {
    resolver_.async_resolve(to_.host,
                            std::to_string(to_.port),
                            [self = shared_from_this(), serial = serial_](
                                error_code error, const resolver::results_type& found) {
                                if (serial != self->serial_) return;
                                if (error) {
                                    self->try_failed(error.message());
                                    return;
                                }
                                for (const auto& each : found)
                                    self->candidates_.push_back(to_peer(each.endpoint()));
                                self->try_next();
                            });
}

void dialer::try_next() {
    if (next_ >= candidates_.size()) {
        try_failed(why_.empty() ? "the name has no address" : why_);
        return;
    }
    const auto at = candidates_[next_++];
    error_code ignored;
    socket_.close(ignored);
    socket_.async_connect(at, [self = shared_from_this(), serial = serial_, at](error_code error) {
        if (serial != self->serial_) return;
        if (error) {
            self->why_ = error.message();
            self->try_next();
            return;
        }
        ++self->serial_;
        self->clock_.cancel();
        self->on_failed_ = {};
        const auto done = std::exchange(self->on_connected_, {});
        done(std::move(self->socket_), at);
    });
}

void dialer::try_failed(const std::string& why) {
    ++serial_;
    why_ = why;
    error_code ignored;
    socket_.close(ignored);
    resolver_.cancel();
    clock_.cancel();
    const auto jitter = std::uniform_int_distribution<int>(50, 100)(dice_);
    const milliseconds length = pause_ * jitter / 100;
    pause_ = std::min(pause_ * 2, pause_max);
    if (steady::now() + length >= deadline_) {
        finish(why_);
        return;
    }
    pause(length);
}

void dialer::pause(milliseconds length) {
    clock_.expires_after(length);
    clock_.async_wait([self = shared_from_this(), serial = ++serial_](error_code error) {
        if (!error && serial == self->serial_) self->begin_try();
    });
}

void dialer::finish(const std::string& why) {
    ++serial_;
    clock_.cancel();
    on_connected_ = {};
    const auto tell = std::exchange(on_failed_, {});
    if (tell) tell(describe(to_) + ": " + why);
}

}  // namespace hotlane::net
