// What a session keeps or waits for at most, beyond what its configuration says.
#pragma once

#include <cstddef>

namespace hotlane::session {

// Borrowed links that break one after the other before they are of use: then it is the home.
inline constexpr int link_tries_max = 3;
inline constexpr std::size_t idle_bytes_max = 256;  // of a buffer of a session that is idle
inline constexpr int begun_anew_max = 8;
inline constexpr std::size_t unconfirmed_bytes_max = 65'536;  // of a request kept for begin_anew()
inline constexpr std::size_t suspects_max = 16;  // kinds of statement of one transaction
inline constexpr int pipelined_max = 64;         // transactions in one pass through the gate
inline constexpr std::size_t owed_max = 65'536;  // replies outstanding before the client waits
inline constexpr std::size_t small_message_max = 10'000;  // PostgreSQL's PQ_SMALL_MESSAGE_LIMIT
inline constexpr std::size_t sample_bytes_max = 1'000;
inline constexpr std::size_t portals_max = 1'000;
// All statements of one client together; a count alone would not bound memory.
inline constexpr std::size_t statement_bytes_max = 4 * 1024 * 1024;

}  // namespace hotlane::session
