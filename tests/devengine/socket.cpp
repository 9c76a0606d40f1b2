#include "tests/devengine/socket.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>

namespace hotlane::devengine {

bool client_socket::fill() {
    if (used_ > 0) {
        in_.erase(0, used_);
        used_ = 0;
    }
    std::array<char, 32 * 1024> chunk;
    for (;;) {
        const auto size = ::recv(fd_, chunk.data(), chunk.size(), 0);
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return false;
        in_.append(chunk.data(), static_cast<std::size_t>(size));
        return true;
    }
}

std::optional<wire::scanned> client_socket::scan(bool startup) {
    for (;;) {
        const auto rest = std::string_view(in_).substr(used_);
        const auto found = startup ? wire::scan_startup(rest) : wire::scan_frame(rest);
        if (found.status == wire::scan_status::invalid) return std::nullopt;
        if (found.status == wire::scan_status::complete) return found;
        // Nothing more will come until the client has what it waits for.
        if (!flush() || !fill()) return std::nullopt;
    }
}

std::optional<incoming> client_socket::read_message() {
    const auto found = scan(false);
    if (!found) return std::nullopt;
    incoming message{found->header.tag, std::string(found->body)};
    used_ += found->header.total_size();
    return message;
}

std::optional<std::string> client_socket::read_startup() {
    const auto found = scan(true);
    if (!found) return std::nullopt;
    std::string body(found->body);
    used_ += 4 + std::size_t{found->header.body_size};
    return body;
}

bool client_socket::flush() {
    std::size_t sent = 0;
    while (sent < out_.size()) {
        const auto size = ::send(fd_, out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL);
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return false;
        sent += static_cast<std::size_t>(size);
    }
    out_.clear();
    return true;
}

}  // namespace hotlane::devengine
