// One thread of the data plane: an io_context, the connections that live on it, its pulse.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>

#include "router/net/poller.hpp"
#include "router/net/shared.hpp"
#include "router/net/types.hpp"

namespace hotlane::net {

class connection;
class link_pools;

class worker {
  public:
    static constexpr milliseconds tick_length{250};
    static constexpr std::size_t read_bytes = 64 * 1024;

    worker(shared& all, int index, int threads);
    ~worker();
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;

    void start();
    // From any thread.
    void adopt(stream client, const peer& from);
    void poke(const std::string& tool);
    void shut_down();  // sessions end when they are idle
    void finish();     // closes what is left; the thread ends when all is gone
    void join();
    [[nodiscard]] milliseconds since_tick() const;
    [[nodiscard]] int load() const noexcept { return load_.load(std::memory_order_relaxed); }

    // On its own thread.
    [[nodiscard]] asio::io_context& io() noexcept { return io_; }
    [[nodiscard]] poller& poll() noexcept { return poller_; }
    [[nodiscard]] shared& all() noexcept { return all_; }
    [[nodiscard]] std::mt19937& dice() noexcept { return dice_; }
    [[nodiscard]] asio::mutable_buffer buffer() noexcept { return asio::buffer(buffer_); }
    [[nodiscard]] link_pools& pools() noexcept { return *pools_; }
    // Of a number that all threads share, at least one.
    [[nodiscard]] int share_of(int all) const noexcept {
        return std::max(1, all / threads_ + (index_ < all % threads_ ? 1 : 0));
    }
    void forget(const std::shared_ptr<connection>& gone);

  private:
    void take(stream client, const peer& from);
    void tick();
    [[nodiscard]] std::vector<std::shared_ptr<connection>> everyone() const;

    shared& all_;
    asio::io_context io_{1};
    asio::executor_work_guard<executor> guard_;
    poller poller_{io_};
    timer pulse_;
    std::mt19937 dice_;
    std::vector<char> buffer_;
    int index_;
    int threads_;
    std::unique_ptr<link_pools> pools_;
    std::unordered_set<std::shared_ptr<connection>> connections_;
    std::atomic<int> load_{0};
    std::atomic<steady::rep> last_tick_{0};
    bool shutting_down_{false};
    bool finishing_{false};
    std::thread thread_;
};

}  // namespace hotlane::net
