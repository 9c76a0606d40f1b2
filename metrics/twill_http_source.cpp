// The lane counters of a `twill` engine from its Prometheus page: one GET, read to its end.
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "metrics/resolve.hpp"
#include "metrics/source.hpp"

namespace hotlane::metrics {
namespace {

using kind = source_error::kind;
using steady = std::chrono::steady_clock;

constexpr std::size_t page_bytes_max = 1024 * 1024;

struct counter {
    std::string_view name;
    std::optional<std::uint64_t> policy::sample::*member;
};
constexpr counter counters[] = {
    {"twilldb_engine_write_acquires_total", &policy::sample::acquires},
    {"twilldb_engine_write_handoffs_total", &policy::sample::handoffs},
    {"twilldb_engine_write_wait_us_total", &policy::sample::wait_us},
    {"twilldb_engine_commits_total", &policy::sample::commits},
};

tl::unexpected<source_error> fail(kind what, std::string detail) {
    return tl::unexpected<source_error>{source_error{what, std::move(detail)}};
}

class socket_handle {
  public:
    explicit socket_handle(int fd) : fd_{fd} {}
    ~socket_handle() {
        if (fd_ >= 0) ::close(fd_);
    }
    socket_handle(const socket_handle&) = delete;
    socket_handle& operator=(const socket_handle&) = delete;
    [[nodiscard]] int get() const noexcept { return fd_; }

  private:
    int fd_;
};

bool wait_for(int fd, short events, steady::time_point until) {
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until - steady::now()).count();
        if (left <= 0) return false;
        pollfd one{fd, events, 0};
        const int got = ::poll(&one, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
        if (got > 0) return true;
        if (got < 0 && errno != EINTR) return false;
    }
}

tl::expected<int, source_error> connect_to(const std::string& address,
                                           std::uint16_t port,
                                           steady::time_point until) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const auto service = std::to_string(port);
    if (::getaddrinfo(address.c_str(), service.c_str(), &hints, &found) != 0)
        return fail(kind::unreachable, "no such address");
    const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int begun = fd < 0 ? -1 : ::connect(fd, found->ai_addr, found->ai_addrlen);
    const bool is_under_way = fd >= 0 && (begun == 0 || errno == EINPROGRESS);
    ::freeaddrinfo(found);
    int trouble = 0;
    socklen_t size = sizeof trouble;
    if (is_under_way && wait_for(fd, POLLOUT, until) &&
        ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &trouble, &size) == 0 && trouble == 0)
        return fd;
    if (fd >= 0) ::close(fd);
    const bool is_late = steady::now() >= until;
    return fail(is_late ? kind::timed_out : kind::unreachable, "cannot connect");
}

tl::expected<std::string, source_error> get_page(int fd,
                                                 const std::string& request,
                                                 steady::time_point until) {
    std::size_t sent = 0;
    while (sent < request.size()) {
        if (!wait_for(fd, POLLOUT, until)) return fail(kind::timed_out, "asking took too long");
        const auto n =
            ::send(fd, request.data() + sent, request.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) sent += static_cast<std::size_t>(n);
        if (n <= 0 && errno != EAGAIN && errno != EINTR)
            return fail(kind::unreachable, "the link broke");
    }
    std::string page;
    std::array<char, 16 * 1024> buffer{};
    for (;;) {
        if (!wait_for(fd, POLLIN, until)) return fail(kind::timed_out, "the page took too long");
        const auto n = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (n == 0) return page;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return fail(kind::unreachable, "the link broke");
        if (n > 0) page.append(buffer.data(), static_cast<std::size_t>(n));
        if (page.size() > page_bytes_max) return fail(kind::bad_reply, "the page is too long");
    }
}

// A value is a float in this format; counters are whole.
std::optional<std::uint64_t> number(std::string_view text) {
    const auto end_of_value = text.find_first_of(" \t\r");
    text = text.substr(0, end_of_value);
    double value = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole =
        ec == std::errc{} && end == text.data() + text.size() && value >= 0 && value < 1.8e19;
    return is_whole ? std::optional{static_cast<std::uint64_t>(value)} : std::nullopt;
}

void take_line(std::string_view line, policy::sample& into) {
    for (const auto& c : counters) {
        if (!line.starts_with(c.name)) continue;
        auto rest = line.substr(c.name.size());
        if (rest.starts_with('{')) {
            const auto close = rest.rfind('}');
            if (close == rest.npos) return;
            rest.remove_prefix(close + 1);
        }
        if (!rest.starts_with(' ')) return;
        into.*c.member = number(rest.substr(1));
    }
}

class twill_http_source : public source {
  public:
    explicit twill_http_source(source_target target) : target_{std::move(target)} {}

    tl::expected<policy::sample, source_error> read(const clock_function& now,
                                                    policy::duration budget) override {
        const auto start = steady::now();
        const auto until = start + budget;
        const auto address = resolve(target_.host, until);
        if (!address) return tl::unexpected<source_error>{address.error()};
        const auto fd = connect_to(*address, target_.port, until);
        if (!fd) return tl::unexpected<source_error>{fd.error()};
        const socket_handle link{*fd};
        const auto request =
            fmt::format("GET /metrics HTTP/1.0\r\nHost: {}:{}\r\nAccept: text/plain\r\n\r\n",
                        target_.host,
                        target_.port);
        const auto page = get_page(link.get(), request, until);
        if (!page) return tl::unexpected<source_error>{page.error()};
        policy::sample out;
        if (auto ok = parse(*page, out); !ok) return tl::unexpected<source_error>{ok.error()};
        out.taken_at = now();
        out.cost = std::chrono::duration_cast<std::chrono::microseconds>(steady::now() - start);
        return out;
    }

  private:
    static tl::expected<void, source_error> parse(std::string_view page, policy::sample& into) {
        const auto body = page.find("\r\n\r\n");
        const auto status = page.substr(0, page.find("\r\n"));
        if (body == page.npos || !status.starts_with("HTTP/1."))
            return fail(kind::bad_reply, "the answer is no HTTP");
        if (status.find(" 200") == status.npos)
            return fail(kind::refused, std::string{status.substr(0, 100)});
        page.remove_prefix(body + 4);
        while (!page.empty()) {
            const auto end = page.find('\n');
            take_line(page.substr(0, end), into);
            page = end == page.npos ? std::string_view{} : page.substr(end + 1);
        }
        if (!into.acquires && !into.handoffs && !into.wait_us)
            return fail(kind::bad_reply, "no lane counter on the page");
        return {};
    }

    source_target target_;
};

}  // namespace

std::unique_ptr<source> make_twill_http_source(source_target target) {
    return std::make_unique<twill_http_source>(std::move(target));
}

}  // namespace hotlane::metrics
