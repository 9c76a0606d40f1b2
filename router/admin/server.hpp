// The admin HTTP server: /api/v1/* on a unix socket (mode 0600: whoever may open it may steer), and
// on TCP only what a scraper or a kubelet reads: /metrics, /livez, /readyz and their aliases.
//
// One thread moves bytes; a small pool runs service::handle, which may block. Every connection,
// header, body and wait is bounded, so that a stuck or hostile client costs a constant.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <tl/expected.hpp>

#include "router/admin/service.hpp"

namespace hotlane::admin {

struct server_limits {
    int connections{64};  // at each of the two doors
    std::uint32_t header_bytes{8 * 1024};
    std::uint64_t body_bytes{64 * 1024};
    std::chrono::milliseconds idle_timeout{15'000};     // reading or writing one message
    std::chrono::milliseconds handle_timeout{600'000};  // a verb may run a preflight
    int workers{4};                                     // of the unix socket's door
    int probe_workers{2};  // of the TCP door: a probe never queues behind a verb
};

struct server_options {
    std::string unix_path;    // empty: no unix socket
    bool metrics_tcp{false};  // serve probes and metrics over TCP
    std::string metrics_host{"127.0.0.1"};
    std::uint16_t metrics_port{0};  // 0: any free one
    server_limits limit;
};

struct bind_error {
    std::string what;
};

class server {
  public:
    // Binds and begins to serve. `what` must outlive the server.
    static tl::expected<std::unique_ptr<server>, bind_error> start(const server_options& options,
                                                                   service& what);
    ~server();  // stop()
    server(const server&) = delete;
    server& operator=(const server&) = delete;

    void stop();  // idempotent; ends connections, joins threads, removes the socket file
    [[nodiscard]] std::uint16_t metrics_port() const noexcept;
    [[nodiscard]] std::uint64_t connections_refused() const noexcept;  // or cut for another one

    struct inside;

  private:
    explicit server(std::unique_ptr<inside> state);
    std::unique_ptr<inside> inside_;
};

}  // namespace hotlane::admin
