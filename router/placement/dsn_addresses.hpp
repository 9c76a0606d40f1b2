// Where the hosts of a connection string are: one entry for each address, so that each has a
// time-out of its own.
#pragma once

#include <chrono>
#include <optional>

#include "router/placement/dsn_hosts.hpp"

namespace hotlane::placement {

inline constexpr std::size_t dsn_addresses_max = 32;  // of all hosts together

// hosts_of(), but a name that has several addresses comes once for each. What nobody can look up
// stays a name. Never empty. Blocks while names are looked up.
std::vector<dsn_host> addresses_of(const std::string& dsn);

// connect_timeout of the string. Absent: it does not say, or says for ever.
std::optional<std::chrono::milliseconds> connect_timeout_of(const std::string& dsn);

}  // namespace hotlane::placement
