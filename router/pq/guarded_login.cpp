#include "router/pq/guarded_login.hpp"

#include <fcntl.h>
#include <libpq-fe.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>

namespace hotlane::pq {
namespace {

using done = tl::expected<void, open_error>;
using kind = open_error::kind;

constexpr std::size_t head_size = 5;           // tag and length
constexpr std::uint32_t message_max = 30'000;  // what libpq takes of an error; requests are short
constexpr std::size_t complaint_max = 500;     // of a server that could not even start a session
constexpr char authentication = 'R';
constexpr std::uint32_t clear_text = 3;

std::uint32_t number_at(std::string_view bytes, std::size_t at) noexcept {
    std::uint32_t out = 0;
    for (std::size_t i = at; i < at + 4; ++i)
        out = out << 8U | static_cast<unsigned char>(bytes[i]);
    return out;
}

tl::unexpected<open_error> failed(kind why, std::string what) {
    return tl::unexpected(open_error{why, std::move(what)});
}

tl::unexpected<open_error> too_late() {
    return failed(kind::timed_out, "connecting took too long");
}

bool has_bytes(int socket) noexcept {
    int waiting = 0;
    return ::ioctl(socket, FIONREAD, &waiting) == 0 && waiting > 0;
}

// The states in which a server's word can reach what libpq knows of the password.
bool is_logging_in(const pg_conn* c) noexcept {
    const auto status = PQstatus(c);
    return status == CONNECTION_SSL_STARTUP || status == CONNECTION_AWAITING_RESPONSE;
}

bool is_in(const pg_conn* c) noexcept {
    const auto status = PQstatus(c);
    return status != CONNECTION_BAD && status != CONNECTION_NEEDED &&
           status != CONNECTION_STARTED && status != CONNECTION_MADE && !is_logging_in(c);
}

// What tells one socket from another that has its number; 0: it is none.
std::uint64_t identity_of(int socket) noexcept {
    struct stat about {};
    return ::fstat(socket, &about) == 0 ? about.st_ino : 0;
}

bool is_encrypted(pg_conn* c) noexcept {
    return PQsslInUse(c) != 0;
}

}  // namespace

bool asks_for_clear_text(std::string_view message) noexcept {
    return message.size() >= head_size + 4 && message[0] == authentication &&
           number_at(message, head_size) == clear_text;
}

void guarded_login::drop() noexcept {
    if (server_ >= 0) ::close(server_);
    if (ours_ >= 0) ::close(ours_);
    server_ = ours_ = -1;
}

done guarded_login::begin() {
    std::array<int, 2> pair{-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0)
        return failed(kind::unreachable, "no sockets are left");
    server_ = ::fcntl(PQsocket(c_), F_DUPFD_CLOEXEC, 0);
    ours_ = pair[1];
    pair_ = identity_of(pair[0]);
    const bool replaced = server_ >= 0 && ::dup3(pair[0], PQsocket(c_), O_CLOEXEC) >= 0;
    ::close(pair[0]);
    if (replaced) return {};
    drop();
    return failed(kind::unreachable, "no sockets are left");
}

done guarded_login::end() {
    const bool back = ::dup3(server_, PQsocket(c_), O_CLOEXEC) >= 0;
    drop();
    if (back) return {};
    return failed(kind::unreachable, "no sockets are left");
}

done guarded_login::before_step(bool wants_to_read, clock::time_point until) {
    if (!on() && is_logging_in(c_) && !is_encrypted(c_)) {
        if (auto begun = begin(); !begun) return begun;
    }
    if (!on()) {
        if (wait_for(PQsocket(c_), wants_to_read ? POLLIN : POLLOUT, until)) return {};
        return too_late();
    }
    // What was handed on may take libpq several steps.
    if (!wants_to_read || has_bytes(PQsocket(c_))) return {};
    return hand_on_next(until);
}

done guarded_login::after_step(clock::time_point until) {
    if (!on()) return {};
    // Another address or another try: that is a connection of its own, and ours is closed.
    if (identity_of(PQsocket(c_)) != pair_) {
        drop();
        return {};
    }
    if (auto handed = hand_on_words(until); !handed) return handed;
    return is_in(c_) || is_encrypted(c_) ? end() : done{};
}

// One message; in front of a login the one byte that answers the wish for TLS.
done guarded_login::hand_on_next(clock::time_point until) {
    std::string message;
    const bool is_tls_answer = PQstatus(c_) == CONNECTION_SSL_STARTUP;
    if (auto got = read_exactly(message, is_tls_answer ? 1 : head_size, until); !got) return got;
    if (message.empty()) {
        ::shutdown(ours_, SHUT_WR);  // the server is gone, and libpq has its words for that
        return {};
    }
    if (is_tls_answer && message[0] != 'E') return give(ours_, message, until);
    const bool is_whole = message.size() == head_size;
    const std::uint32_t length = is_whole ? number_at(message, 1) : 0;
    if (length < 4 || length > message_max) {
        // Not a message of this protocol: a server that could not fork says so in plain text.
        while (message.size() < complaint_max && message.back() != '\0') {
            const auto before = message.size();
            if (auto got = read_exactly(message, before + 1, until); !got) return got;
            if (message.size() == before) break;
        }
        for (char& c : message)
            if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7E)
                c = ' ';
        return failed(kind::unreachable, "the server does not speak the protocol: " + message);
    }
    if (auto got = read_exactly(message, 1 + length, until); !got) return got;
    if (asks_for_clear_text(message))
        return failed(kind::clear_text,
                      "the server asks for the password in clear text over a connection without "
                      "TLS; use scram-sha-256 in its pg_hba.conf");
    return give(ours_, message, until);
}

done guarded_login::hand_on_words(clock::time_point until) {
    std::array<char, 4'096> buffer{};
    std::string words;
    for (;;) {
        const auto got = ::recv(ours_, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        words.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return give(server_, words, until);
}

// Up to `size` bytes in all; fewer: the server has closed the connection.
done guarded_login::read_exactly(std::string& into, std::size_t size, clock::time_point until) {
    std::array<char, 4'096> buffer{};
    while (into.size() < size) {
        const auto want = std::min(buffer.size(), size - into.size());
        const auto got = ::recv(server_, buffer.data(), want, MSG_DONTWAIT);
        if (got > 0) {
            into.append(buffer.data(), static_cast<std::size_t>(got));
        } else if (got == 0) {
            return {};
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_for(server_, POLLIN, until)) return too_late();
        } else if (errno != EINTR) {
            return {};
        }
    }
    return {};
}

done guarded_login::give(int socket, const std::string& bytes, clock::time_point until) {
    for (std::size_t at = 0; at < bytes.size();) {
        const auto sent =
            ::send(socket, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            at += static_cast<std::size_t>(sent);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_for(socket, POLLOUT, until)) return too_late();
        } else if (errno != EINTR) {
            return failed(kind::unreachable, "the server closed the connection");
        }
    }
    return {};
}

}  // namespace hotlane::pq
