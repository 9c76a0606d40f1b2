// The client's side of a connection: reading, writing, losing it.
#include "router/net/connection.hpp"

#include <utility>

#include "router/net/worker.hpp"

namespace hotlane::net {

void connection::read_client() {
    if (client_reading_ || client_eof_ || lingering_ || closed_) return;
    if (!session_.wants_client_bytes()) return;
    client_reading_ = true;
    client_.wait_read();
}

void connection::on_readable() {
    const auto self = shared_from_this();
    client_reading_ = false;
    if (closed_) return;
    if (lingering_)
        throw_away();
    else
        client_readable();
}

void connection::on_writable() {
    const auto self = shared_from_this();
    client_writing_ = false;
    if (!closed_) pump();
}

void connection::client_readable() {
    if (!session_.wants_client_bytes()) return;
    const auto buffer = worker_.buffer();
    error_code error;
    const auto count = client_.read_some(buffer, error);
    if (error == asio::error::would_block) {
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

// DDL is in the store before its client is told that it is done: killed in between, the client
// knows no more than the store does. A store that takes too long, or is away, is not waited for for
// ever; no move trusts the schema then. Only the connection that ran the DDL waits.
bool connection::waits_for_ddl() {
    constexpr milliseconds patience{2'000}, look_every{2};
    if (surroundings_.is_ddl_kept()) {
        ddl_until_.reset();
        return false;
    }
    const auto now = steady::now();
    if (!ddl_until_) ddl_until_ = now + patience;
    if (now >= *ddl_until_) {
        all_.counted.hit("ddl_store_wait");
        surroundings_.wait_no_more_for_ddl();
        ddl_until_.reset();
        return false;
    }
    if (std::exchange(ddl_looking_, true)) return true;
    if (!ddl_look_) ddl_look_.emplace(worker_.io());
    ddl_look_->expires_after(look_every);
    ddl_look_->async_wait([self = shared_from_this()](error_code error) {
        self->ddl_looking_ = false;
        if (!error && !self->closed_) self->pump();
    });
    return true;
}

void connection::write_client() {
    if (client_writing_ || waits_for_ddl()) return;
    while (!session_.to_client().empty()) {
        const auto bytes = session_.to_client();
        error_code error;
        const auto count = client_.write_some(asio::buffer(bytes.data(), bytes.size()), error);
        if (error == asio::error::would_block) {
            client_writing_ = true;
            client_.wait_write();
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
