#include "router/net/worker.hpp"

#include <openssl/rand.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "router/net/connection.hpp"
#include "router/net/pool.hpp"

namespace hotlane::net {

worker::worker(shared& all, int index, int threads)
    : all_(all),
      guard_(io_.get_executor()),
      pulse_(io_),
      buffer_(read_bytes),
      index_(index),
      threads_(threads),
      pools_(std::make_unique<link_pools>(*this)) {
    // Jitter only; a seed of the CSPRNG keeps the processes of a fleet apart.
    std::uint32_t seed = std::mt19937::default_seed;
    RAND_bytes(reinterpret_cast<unsigned char*>(&seed), sizeof seed);
    dice_.seed(seed);
    last_tick_.store(steady::now().time_since_epoch().count());
}

worker::~worker() {
    if (thread_.joinable()) {
        finish();
        join();
    }
}

void worker::start() {
    tick();
    poller_.start();
    thread_ = std::thread([this] { io_.run(); });
}

void worker::join() {
    if (thread_.joinable()) thread_.join();
}

void worker::adopt(stream client, const peer& from) {
    load_.fetch_add(1, std::memory_order_relaxed);
    asio::post(
        io_, [this, client = std::move(client), from]() mutable { take(std::move(client), from); });
}

void worker::take(stream client, const peer& from) {
    const auto made = std::make_shared<connection>(*this, std::move(client), from);
    connections_.insert(made);
    made->start();
    if (finishing_) {
        made->close();
    } else if (shutting_down_) {
        made->shut_down();
    }
}

void worker::forget(const std::shared_ptr<connection>& gone) {
    if (connections_.erase(gone) == 0) return;
    load_.fetch_sub(1, std::memory_order_relaxed);
    all_.counted.connections.fetch_sub(1);
}

std::vector<std::shared_ptr<connection>> worker::everyone() const {
    return {connections_.begin(), connections_.end()};
}

void worker::poke(const std::string& tool) {
    asio::post(io_, [this, tool] {
        for (const auto& each : everyone())
            each->poke(tool);
        pools_->route_changed(tool);
    });
}

void worker::shut_down() {
    asio::post(io_, [this] {
        shutting_down_ = true;
        for (const auto& each : everyone())
            each->shut_down();
    });
}

// Structured end: everything is closed, the pulse and the guard go, and run() returns when the last
// completion has been delivered. Nothing is thrown away in mid-flight.
void worker::finish() {
    asio::post(io_, [this] {
        finishing_ = true;
        pulse_.cancel();
        for (const auto& each : everyone())
            each->close();
        pools_->finish();
        poller_.stop();
        guard_.reset();
    });
}

void worker::tick() {
    last_tick_.store(steady::now().time_since_epoch().count());
    if (finishing_) return;
    for (const auto& each : everyone())
        each->check_client_gone();
    pools_->tick();
    pulse_.expires_after(tick_length);
    pulse_.async_wait([this](error_code error) {
        if (!error) tick();
    });
}

milliseconds worker::since_tick() const {
    const steady::time_point last{steady::duration{last_tick_.load()}};
    return std::chrono::duration_cast<milliseconds>(steady::now() - last);
}

}  // namespace hotlane::net
