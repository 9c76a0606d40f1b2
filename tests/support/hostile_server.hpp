// A server that wants the client's password in clear text, without TLS, and keeps all that it is
// sent. One connection at a time, on a thread of its own; stops when the object goes.
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace hotlane::test {

enum class ask {
    plainly,           // one message
    byte_by_byte,      // the same, each byte in a packet of its own
    behind_scram,      // in one packet with the offer of SCRAM
    instead_of_proof,  // where SCRAM should go on
    behind_no_tls      // in one packet with the answer that there is no TLS
};

class hostile_server {
  public:
    explicit hostile_server(ask how) : how_(how) {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        auto* raw = reinterpret_cast<sockaddr*>(&at);
        if (::bind(listener_, raw, size) != 0 || ::listen(listener_, 16) != 0 ||
            ::getsockname(listener_, raw, &size) != 0)
            throw std::runtime_error("no listener");
        port_ = ntohs(at.sin_port);
        thread_ = std::thread([this] { run(); });
    }
    ~hostile_server() {
        stop_ = true;
        thread_.join();
        ::close(listener_);
    }
    hostile_server(const hostile_server&) = delete;
    hostile_server& operator=(const hostile_server&) = delete;

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] int asked() const { return asked_; }  // how often
    // All bytes of all clients that have gone.
    [[nodiscard]] std::string heard() const {
        const std::lock_guard lock(mutex_);
        return heard_;
    }

  private:
    static std::string message(std::uint32_t kind, const std::string& rest = {}) {
        const auto number = [](std::uint32_t n) {
            return std::string{static_cast<char>(n >> 24U),
                               static_cast<char>(n >> 16U),
                               static_cast<char>(n >> 8U),
                               static_cast<char>(n)};
        };
        return "R" + number(static_cast<std::uint32_t>(8 + rest.size())) + number(kind) + rest;
    }

    // What came next; empty: the client has gone.
    std::string listen_to(int fd) {
        std::array<char, 4'096> buffer{};
        while (!stop_) {
            pollfd p{fd, POLLIN, 0};
            if (::poll(&p, 1, 10) <= 0) continue;
            const auto got = ::recv(fd, buffer.data(), buffer.size(), 0);
            if (got <= 0) return {};
            const std::string bytes(buffer.data(), static_cast<std::size_t>(got));
            const std::lock_guard lock(mutex_);
            heard_ += bytes;
            return bytes;
        }
        return {};
    }

    static void give(int fd, const std::string& bytes) {
        ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }

    void serve(int fd) {
        using namespace std::string_literals;
        const auto clear_text = message(3), scram = message(10, "SCRAM-SHA-256\0\0"s);
        const auto first = listen_to(fd);
        const bool wants_tls = first.size() == 8 && first.substr(4) == "\x04\xd2\x16\x2f";
        if (wants_tls) {
            give(fd, how_ == ask::behind_no_tls ? "N" + clear_text : "N");
            if (listen_to(fd).empty()) return;
        }
        ++asked_;
        switch (how_) {
            case ask::plainly:
                give(fd, clear_text);
                break;
            case ask::byte_by_byte:
                for (const char byte : clear_text) {
                    give(fd, std::string(1, byte));
                    ::poll(nullptr, 0, 3);  // the drip itself, not a wait for something
                }
                break;
            case ask::behind_scram:
                give(fd, scram + clear_text);
                break;
            case ask::instead_of_proof:
                give(fd, scram);
                if (!listen_to(fd).empty()) give(fd, clear_text);
                break;
            case ask::behind_no_tls:
                give(fd, scram);  // whatever it takes for an answer comes now
                break;
        }
        while (!listen_to(fd).empty()) {
        }
    }

    void run() {
        while (!stop_) {
            pollfd p{listener_, POLLIN, 0};
            if (::poll(&p, 1, 10) <= 0) continue;
            const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (fd < 0) continue;
            const int at_once = 1;
            ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
            serve(fd);
            ::close(fd);
        }
    }

    ask how_;
    int listener_{-1};
    std::uint16_t port_{};
    std::atomic<bool> stop_{false};
    std::atomic<int> asked_{0};
    mutable std::mutex mutex_;
    std::string heard_;
    std::thread thread_;
};

}  // namespace hotlane::test
