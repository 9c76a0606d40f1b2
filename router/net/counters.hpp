// What the data plane counts of itself. Relaxed atomics; cumulative but for the gauges.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace hotlane::net {

// Limits by the name that config/model.hpp gives them; `other` takes a name nobody listed.
inline constexpr auto limit_names = std::to_array<std::string_view>({"client_connections",
                                                                     "clients_before_login",
                                                                     "login_timeout",
                                                                     "connect_timeout",
                                                                     "connect_try_timeout",
                                                                     "buffer_bytes",
                                                                     "parsed_message_bytes",
                                                                     "held_clients",
                                                                     "hold_max",
                                                                     "statements_per_client",
                                                                     "parameters_per_client",
                                                                     "cancel_in_flight",
                                                                     "statements_per_tool",
                                                                     "statement_sample",
                                                                     "open_files",
                                                                     "pool_wait",
                                                                     "statements_per_link",
                                                                     "ddl_store_wait",
                                                                     "other"});

struct net_counters {
    std::atomic<std::uint64_t> accepted{0}, refused{0}, accept_errors{0};
    std::atomic<std::uint64_t> cancels{0}, cancels_unmatched{0};
    std::atomic<std::int64_t> connections{0};   // gauge: sockets of clients
    std::atomic<std::int64_t> before_login{0};  // gauge: of those, not logged in yet
    std::atomic<std::int64_t> sessions{0};      // gauge: of those, that belong to a tool
    std::atomic<std::int64_t> cancels_in_flight{0};
    std::array<std::atomic<std::uint64_t>, limit_names.size()> limit_hits{};

    void hit(std::string_view limit) noexcept {
        std::size_t at = 0;
        while (at + 1 < limit_names.size() && limit_names[at] != limit)
            ++at;
        limit_hits[at].fetch_add(1, std::memory_order_relaxed);
    }
};

}  // namespace hotlane::net
