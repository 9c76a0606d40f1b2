// The client's side of a connection: reading, writing, losing it.
#include "router/net/connection.hpp"
#include "router/net/worker.hpp"

namespace hotlane::net {

void connection::read_client() {
    if (client_reading_ || client_eof_ || lingering_ || closed_) return;
    if (!session_.wants_client_bytes()) return;
    client_reading_ = true;
    client_.async_wait(stream::wait_read, [self = shared_from_this()](error_code error) {
        self->client_reading_ = false;
        if (self->closed_) return;
        if (error) {
            self->client_lost();
        } else if (self->lingering_) {
            self->drain_client();
        } else {
            self->client_readable();
        }
    });
}

void connection::client_readable() {
    if (!session_.wants_client_bytes()) return;
    const auto buffer = worker_.buffer();
    error_code error;
    const auto count = client_.read_some(buffer, error);
    if (error == asio::error::would_block || error == asio::error::interrupted) {
        read_client();
        return;
    }
    if (error) {
        client_lost();
        return;
    }
    if (auto* const tool = surroundings_.tool()) {
        tool->counted.bytes_in.fetch_add(count, std::memory_order_relaxed);
    }
    session_.on_client_bytes({static_cast<const char*>(buffer.data()), count}, steady::now());
    pump();
}

void connection::write_client() {
    if (client_writing_) return;
    while (!session_.to_client().empty()) {
        const auto bytes = session_.to_client();
        error_code error;
        const auto count = client_.write_some(asio::buffer(bytes.data(), bytes.size()), error);
        if (error == asio::error::would_block) {
            client_writing_ = true;
            client_.async_wait(stream::wait_write, [self = shared_from_this()](error_code failed) {
                self->client_writing_ = false;
                if (self->closed_) return;
                if (failed) {
                    self->client_lost();
                } else {
                    self->pump();
                }
            });
            return;
        }
        if (error) {
            client_lost();
            return;
        }
        if (auto* const tool = surroundings_.tool()) {
            tool->counted.bytes_out.fetch_add(count, std::memory_order_relaxed);
        }
        session_.consume_to_client(count);
    }
}

// EOF or reset. The session decides what it means; it may still have replies for a client that has
// only shut its sending side, and a reset shows itself again at the next write.
void connection::client_lost() {
    if (client_eof_) {
        close();
        return;
    }
    client_eof_ = true;
    session_.on_client_eof(steady::now());
    pump();
}

}  // namespace hotlane::net
