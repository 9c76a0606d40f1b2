// A server that plays a script of raw bytes on one thread: what an engine could do, and what it
// should not. One connection at a time; stops when the object goes.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace hotlane::test {

inline std::string big_endian(std::uint32_t n) {
    return {static_cast<char>(n >> 24),
            static_cast<char>(n >> 16 & 0xFF),
            static_cast<char>(n >> 8 & 0xFF),
            static_cast<char>(n & 0xFF)};
}
inline std::string frame(char tag, const std::string& body) {
    return tag + big_endian(static_cast<std::uint32_t>(body.size() + 4)) + body;
}
inline std::string ready() {
    return frame('Z', "I");
}
inline std::string welcome() {
    using namespace std::string_literals;
    return frame('R', "\0\0\0\0"s) + frame('S', "server_version\0"s + "15.0\0"s) +
           frame('S', "client_encoding\0UTF8\0"s) + frame('K', "\0\0\0\1\0\0\0\0"s) + ready();
}
inline std::string two_columns() {
    using namespace std::string_literals;
    const auto column = [](const std::string& name) {
        return name + "\0\0\0\0\0\0\0"s + big_endian(25) + "\xff\xff\xff\xff\xff\xff\0\0"s;
    };
    return frame('T', "\0\2"s + column("metric") + column("value"));
}
inline std::string row(const std::string& a, const std::string& b) {
    const auto size = [](const std::string& s) {
        return big_endian(static_cast<std::uint32_t>(s.size())) + s;
    };
    return frame('D', std::string{"\0\2", 2} + size(a) + size(b));
}
inline std::string complete() {
    return frame('C', std::string{"SHOW\0", 5}) + ready();
}

class fake_server {
  public:
    // `reply(n)`: what the n-th query (from 0, over all connections) is answered. Empty: silence.
    // "close": the connection is closed.
    explicit fake_server(std::function<std::string(int)> reply) : reply_{std::move(reply)} {
        listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        auto* raw = reinterpret_cast<sockaddr*>(&at);
        if (bind(listener_, raw, size) != 0 || listen(listener_, 16) != 0 ||
            getsockname(listener_, raw, &size) != 0) {
            throw std::runtime_error{"no listener"};
        }
        port_ = ntohs(at.sin_port);
        thread_ = std::thread{[this] { run(); }};
    }
    ~fake_server() {
        stop_ = true;
        thread_.join();
        close(listener_);
    }
    fake_server(const fake_server&) = delete;
    fake_server& operator=(const fake_server&) = delete;

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::string asked() const {
        const std::lock_guard lock{mutex_};
        return asked_;
    }                                             // the last query's text
    void set_drip(bool on) { drip_ = on; }        // one byte each 20 ms
    void set_welcome(bool on) { welcome_ = on; }  // false: accept and be silent

  private:
    static constexpr std::uint32_t ssl_request = 80'877'103;

    bool readable(int fd, int ms) const {
        pollfd p{fd, POLLIN, 0};
        return poll(&p, 1, ms) > 0;
    }
    bool receive(int fd, std::string& out, std::size_t n) {
        while (out.size() < n && !stop_) {
            if (!readable(fd, 10)) continue;
            char buffer[4096];
            const auto want = std::min(n - out.size(), sizeof buffer);
            const auto got = recv(fd, buffer, want, 0);
            if (got <= 0) return false;
            out.append(buffer, static_cast<std::size_t>(got));
        }
        return !stop_;
    }
    static std::uint32_t number(const std::string& s, std::size_t at) {
        std::uint32_t n = 0;
        for (std::size_t i = at; i < at + 4; ++i)
            n = n << 8 | static_cast<unsigned char>(s[i]);
        return n;
    }
    void give(int fd, const std::string& bytes) {
        for (std::size_t i = 0; i < bytes.size() && !stop_;) {
            const auto n = drip_ ? 1 : bytes.size() - i;
            const auto sent = send(fd, bytes.data() + i, n, MSG_NOSIGNAL);
            if (sent <= 0) return;
            i += static_cast<std::size_t>(sent);
            if (drip_) poll(nullptr, 0, 20);  // the drip itself, not a wait for something
        }
    }
    void serve(int fd) {
        std::string head;
        if (!receive(fd, head, 4)) return;
        if (!receive(fd, head, number(head, 0))) return;
        if (number(head, 4) == ssl_request) {
            give(fd, "N");
            head.clear();
            if (!receive(fd, head, 4) || !receive(fd, head, number(head, 0))) return;
        }
        if (!welcome_) {
            std::string rest;
            receive(fd, rest, 1 << 20);
            return;
        }
        give(fd, welcome());
        for (;;) {
            std::string message;
            if (!receive(fd, message, 5)) return;
            if (!receive(fd, message, number(message, 1) + 1)) return;
            if (message[0] == 'X') return;
            {
                const std::lock_guard lock{mutex_};
                asked_ = message.substr(5, message.size() - 6);
            }
            const auto answer = reply_(queries_++);
            if (answer == "close") return;
            give(fd, answer);
        }
    }
    void run() {
        while (!stop_) {
            if (!readable(listener_, 10)) continue;
            const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (fd < 0) continue;
            serve(fd);
            close(fd);
        }
    }

    std::function<std::string(int)> reply_;
    int listener_{-1};
    std::uint16_t port_{};
    std::atomic<bool> stop_{false};
    std::atomic<bool> drip_{false};
    std::atomic<bool> welcome_{true};
    std::atomic<int> queries_{0};
    mutable std::mutex mutex_;
    std::string asked_;
    std::thread thread_;
};

}  // namespace hotlane::test
