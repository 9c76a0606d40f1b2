#include "router/placement/dsn_hosts.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace hotlane::placement {

namespace {

struct options_free {
    void operator()(PQconninfoOption* o) const noexcept { PQconninfoFree(o); }
};

std::vector<std::string> split(std::string_view list) {
    std::vector<std::string> out;
    for (;;) {
        const auto end = list.find(',');
        out.emplace_back(list.substr(0, end));
        if (end == std::string_view::npos) return out;
        list.remove_prefix(end + 1);
    }
}

// An empty entry cannot be said for one host alone: the whole list of the string would stand again.
bool complete(const std::string& list, const std::vector<std::string>& entries) {
    return list.empty() || std::find(entries.begin(), entries.end(), "") == entries.end();
}

}  // namespace

std::vector<dsn_host> hosts_of(const std::string& dsn) {
    const std::vector<dsn_host> as_it_is(1);
    const std::unique_ptr<PQconninfoOption, options_free> read(
        PQconninfoParse(dsn.c_str(), nullptr));
    if (!read) return as_it_is;
    std::string host, hostaddr, port;
    for (const auto* o = read.get(); o->keyword != nullptr; ++o) {
        if (o->val == nullptr) continue;
        const std::string_view key = o->keyword;
        if (key == "host") host = o->val;
        if (key == "hostaddr") hostaddr = o->val;
        if (key == "port") port = o->val;
    }
    const auto names = split(host), addresses = split(hostaddr), ports = split(port);
    const auto count = hostaddr.empty() ? names.size() : addresses.size();
    if (count == 1 || (!hostaddr.empty() && !host.empty() && names.size() != count) ||
        (ports.size() != 1 && ports.size() != count) || !complete(host, names) ||
        !complete(hostaddr, addresses) || !complete(port, ports))
        return as_it_is;
    std::vector<dsn_host> out(count);
    for (std::size_t i = 0; i < count; ++i) {
        if (!host.empty()) out[i].host = names[i];
        if (!hostaddr.empty()) out[i].hostaddr = addresses[i];
        out[i].port = ports.size() == 1 ? ports[0] : ports[i];
    }
    return out;
}

}  // namespace hotlane::placement
