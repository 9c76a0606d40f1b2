// The sockets of the engine: one listener and one accepting thread for each database, one thread
// for each connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tests/devengine/database.hpp"

namespace hotlane::devengine {

class server {
  public:
    // Listens at once; throws when it cannot.
    server(const std::string& host, database_options where, costs cost);
    ~server();
    server(const server&) = delete;
    server& operator=(const server&) = delete;

    void start();
    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  private:
    struct client {
        int fd{-1};
        std::atomic<bool> done{false};
        std::thread thread;
    };

    void accept_loop();
    void serve(client& c);
    void reap();

    std::unique_ptr<database> home_;
    int listener_{-1};
    std::uint16_t port_{0};
    std::mutex mutex_;
    std::list<client> clients_;
    bool stopping_{false};
    std::thread acceptor_;
};

}  // namespace hotlane::devengine
