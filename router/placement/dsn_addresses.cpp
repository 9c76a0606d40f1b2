#include "router/placement/dsn_addresses.hpp"

#include <libpq-fe.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <string_view>

namespace hotlane::placement {

namespace {

struct options_free {
    void operator()(PQconninfoOption* o) const noexcept { PQconninfoFree(o); }
};
struct addresses_free {
    void operator()(addrinfo* a) const noexcept { ::freeaddrinfo(a); }
};

// Empty: the string does not have it.
std::string value_of(const std::string& dsn, std::string_view keyword) {
    const std::unique_ptr<PQconninfoOption, options_free> read(
        PQconninfoParse(dsn.c_str(), nullptr));
    for (const auto* o = read.get(); o != nullptr && o->keyword != nullptr; ++o)
        if (o->keyword == keyword && o->val != nullptr) return o->val;
    return {};
}

bool is_socket(const std::string& host) {
    return host[0] == '/' || host[0] == '@';
}

std::vector<std::string> look_up(const std::string& name) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0) return {};
    const std::unique_ptr<addrinfo, addresses_free> owner(found);
    std::vector<std::string> out;
    for (const auto* a = found; a != nullptr; a = a->ai_next) {
        std::array<char, NI_MAXHOST> text{};
        if (::getnameinfo(
                a->ai_addr, a->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) ==
            0)
            out.emplace_back(text.data());
    }
    return out;
}

}  // namespace

std::vector<dsn_host> addresses_of(const std::string& dsn) {
    auto hosts = hosts_of(dsn);
    // A single host is left in the string; its addresses are tried one by one all the same.
    if (hosts.size() == 1 && hosts[0].host.empty() && value_of(dsn, "hostaddr").empty()) {
        const auto only = value_of(dsn, "host");
        if (only.find(',') == std::string::npos) hosts[0].host = only;
    }
    std::vector<dsn_host> out;
    for (const auto& one : hosts) {
        const bool is_name = !one.host.empty() && one.hostaddr.empty() && !is_socket(one.host);
        const auto all = is_name ? look_up(one.host) : std::vector<std::string>{};
        if (all.empty() && out.size() < dsn_addresses_max) out.push_back(one);
        for (const auto& address : all)
            if (out.size() < dsn_addresses_max) out.push_back({one.host, address, one.port});
    }
    return out;
}

std::optional<std::chrono::milliseconds> connect_timeout_of(const std::string& dsn) {
    constexpr long least = 2, most = 3'600;
    const auto text = value_of(dsn, "connect_timeout");
    long seconds = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (read.ec != std::errc{} || seconds <= 0) return std::nullopt;
    return std::chrono::seconds(std::clamp(seconds, least, most));
}

}  // namespace hotlane::placement
