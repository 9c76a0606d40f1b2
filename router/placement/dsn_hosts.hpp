// The hosts that a connection string of libpq names, one by one.
//
// libpq goes on to the next host only while no connection was made: a host that takes the
// connection and then closes it (a proxy or a forwarded port whose server is dead) or breaks off
// its answer ends the attempt for all of them. So each is tried with a call of its own. Source:
// PostgreSQL documentation, "Specifying Multiple Hosts".
#pragma once

#include <string>
#include <vector>

namespace hotlane::placement {

// The key words that stand for one host, in libpq's names; empty: not said for it.
struct dsn_host {
    std::string host, hostaddr, port;
};

// In the order of the string. One, all empty, where the string names no host or several whose lists
// do not fit together: libpq then takes (or refuses) the string as it is. THREADS: any.
std::vector<dsn_host> hosts_of(const std::string& dsn);

}  // namespace hotlane::placement
