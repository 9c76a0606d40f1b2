// Cancel requests: from the client that asks, over the session that is meant, to its home now.
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "router/net/address.hpp"
#include "router/net/connection.hpp"
#include "router/net/worker.hpp"
#include "router/wire/message.hpp"

namespace hotlane::net {

namespace {

// Connects, sends the request, waits until the home closes: then the signal has been sent. Bounded
// by one timer; `done` is called exactly once.
class canceller : public std::enable_shared_from_this<canceller> {
  public:
    canceller(asio::io_context& io, std::string request, std::function<void()> done)
        : socket_(io), clock_(io), request_(std::move(request)), done_(std::move(done)) {}

    void start(const peer& at, milliseconds limit) {
        clock_.expires_after(limit);
        clock_.async_wait([self = shared_from_this()](error_code error) {
            if (!error) self->finish();
        });
        socket_.async_connect(at, [self = shared_from_this()](error_code error) {
            if (error) {
                self->finish();
            } else {
                self->send();
            }
        });
    }

  private:
    void send() {
        auto sent = [self = shared_from_this()](error_code error, std::size_t) {
            if (error) {
                self->finish();
            } else {
                self->await_end();
            }
        };
        asio::async_write(socket_, asio::buffer(request_), std::move(sent));
    }
    void await_end() {
        socket_.async_read_some(asio::buffer(answer_),
                                [self = shared_from_this()](error_code error, std::size_t) {
                                    if (error) {
                                        self->finish();
                                    } else {
                                        self->await_end();
                                    }
                                });
    }
    void finish() {
        error_code ignored;
        socket_.close(ignored);
        clock_.cancel();
        if (const auto done = std::exchange(done_, {})) done();
    }

    stream socket_;
    timer clock_;
    std::string request_;
    std::array<char, 256> answer_{};
    std::function<void()> done_;
};

}  // namespace

void connection::forward_cancel(const session::forward_cancel& asked) {
    auto& counted = all_.counted;
    const auto target = all_.keys.find(asked.process_id, asked.secret);
    if (!target) {
        counted.cancels_unmatched.fetch_add(1, std::memory_order_relaxed);
        closing_ = true;
        return;
    }
    if (counted.cancels_in_flight.fetch_add(1) >= all_.limit.cancel_in_flight) {
        counted.cancels_in_flight.fetch_sub(1);
        counted.hit("cancel_in_flight");
        closing_ = true;
        return;
    }
    counted.cancels.fetch_add(1, std::memory_order_relaxed);
    // As PostgreSQL does, the asking connection is closed only when the cancel was delivered: who
    // sees the end may ask the next thing, which it must not hit.
    delivering_ = true;
    target->post_cancel([self = shared_from_this()] {
        self->all_.counted.cancels_in_flight.fetch_sub(1);
        asio::post(self->worker_.io(), [self] {
            if (self->closed_) return;
            self->delivering_ = false;
            self->closing_ = true;
            self->pump();
        });
    });
}

void connection::post_cancel(std::function<void()> done) {
    asio::post(worker_.io(), [self = shared_from_this(), done = std::move(done)]() mutable {
        self->cancel_here(std::move(done));
    });
}

void connection::cancel_here(std::function<void()> done) {
    const auto key = closed_ ? session::link_key{} : session_.cancel_target();
    if (!link_ || key.secret.empty()) {
        // Nothing runs at a home; what waits to be sent there is answered and never sent.
        if (!closed_ && session_.on_cancel_queued(steady::now())) pump();
        done();
        return;
    }
    session_.on_cancel_started();
    std::string request;
    wire::append_cancel_request(request, key.process_id, key.secret);
    auto finished = [self = shared_from_this(), done = std::move(done)] {
        if (!self->closed_) {
            self->session_.on_cancel_finished(steady::now());
            self->pump();
        }
        done();
    };
    const auto sender =
        std::make_shared<canceller>(worker_.io(), std::move(request), std::move(finished));
    sender->start(link_->at, all_.limit.connect_try_timeout);
    pump();
}

}  // namespace hotlane::net
