#include "metrics/resolve.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <atomic>
#include <memory>

namespace hotlane::metrics {
namespace {

// getaddrinfo_a works on this block in a thread of the C library; a block whose look-up could not
// be cancelled in time is left to it (a resolver that hangs is rare, and the block is small). No
// more than this many are left at once: then names fail until one comes back.
constexpr int abandoned_max = 64;
std::atomic<int> abandoned{0};

struct lookup {
    std::string host;
    addrinfo hints{};
    gaicb block{};
    explicit lookup(const std::string& h) : host{h} {
        hints.ai_socktype = SOCK_STREAM;
        block.ar_name = host.c_str();
        block.ar_request = &hints;
    }
    ~lookup() {
        if (block.ar_result != nullptr) freeaddrinfo(block.ar_result);
    }
    lookup(const lookup&) = delete;
    lookup& operator=(const lookup&) = delete;
};

bool is_numeric(const std::string& host) {
    unsigned char scratch[sizeof(in6_addr)];
    return inet_pton(AF_INET, host.c_str(), scratch) == 1 ||
           inet_pton(AF_INET6, host.c_str(), scratch) == 1;
}

tl::unexpected<source_error> no(source_error::kind kind, std::string detail) {
    return tl::unexpected<source_error>{source_error{kind, std::move(detail)}};
}

sourced<std::string> first_address(const lookup& found, const std::string& host) {
    char text[NI_MAXHOST];
    const auto* at = found.block.ar_result;
    if (at == nullptr ||
        getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) !=
            0) {
        return no(source_error::kind::unreachable, host + " has no address");
    }
    return std::string{text};
}

}  // namespace

sourced<std::string> resolve(const std::string& host, deadline until) {
    if (host.empty() || host[0] == '/' || is_numeric(host)) return host;
    if (abandoned.load() >= abandoned_max) {
        return no(source_error::kind::unreachable, "too many name look-ups hang");
    }
    auto work = std::make_unique<lookup>(host);
    gaicb* list[] = {&work->block};
    if (const int rc = getaddrinfo_a(GAI_NOWAIT, list, 1, nullptr); rc != 0) {
        return no(source_error::kind::unreachable, host + ": " + gai_strerror(rc));
    }
    int state = gai_error(&work->block);
    while (state == EAI_INPROGRESS) {
        const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
            until - std::chrono::steady_clock::now());
        if (left.count() <= 0) break;
        timespec span{};
        span.tv_sec = left.count() / 1'000'000'000;
        span.tv_nsec = left.count() % 1'000'000'000;
        gai_suspend(list, 1, &span);
        state = gai_error(&work->block);
    }
    if (state == EAI_INPROGRESS) {
        if (gai_cancel(&work->block) == EAI_NOTCANCELED) {
            abandoned.fetch_add(1);
            (void)work.release();
        }
        return no(source_error::kind::timed_out, "looking up " + host + " took too long");
    }
    if (state != 0) return no(source_error::kind::unreachable, host + ": " + gai_strerror(state));
    return first_address(*work, host);
}

}  // namespace hotlane::metrics
