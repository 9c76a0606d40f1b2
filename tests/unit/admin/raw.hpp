// Plain sockets for the admin tests, so that they do not trust the library under test.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

inline const sockaddr* plain(const void* address) {
    return static_cast<const sockaddr*>(address);
}

class raw_connection {
  public:
    explicit raw_connection(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
        timeval patience{5, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(port);
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(fd_, plain(&at), sizeof(at)) != 0) throw std::runtime_error("connect");
    }
    ~raw_connection() { ::close(fd_); }
    raw_connection(const raw_connection&) = delete;
    raw_connection& operator=(const raw_connection&) = delete;

    void send(const std::string& text) const {
        std::size_t done = 0;
        while (done < text.size()) {
            const auto n = ::send(fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
            if (n <= 0) return;
            done += static_cast<std::size_t>(n);
        }
    }
    [[nodiscard]] std::string read_some() const {  // empty: closed
        std::array<char, 4096> piece{};
        const auto n = ::recv(fd_, piece.data(), piece.size(), 0);
        if (n < 0 && errno == EAGAIN) throw std::runtime_error("no answer in 5 s");
        return n <= 0 ? std::string{} : std::string(piece.data(), static_cast<std::size_t>(n));
    }

  private:
    int fd_;
};

inline std::string raw_tcp(std::uint16_t port, const std::string& text) {
    const raw_connection to(port);
    to.send(text);
    std::string all;
    for (auto piece = to.read_some(); !piece.empty(); piece = to.read_some())
        all += piece;
    return all;
}

inline void leave_stale_socket(const std::string& path) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path, path.c_str(), sizeof(at.sun_path) - 1);
    if (::bind(fd, plain(&at), sizeof(at)) != 0) throw std::runtime_error("bind");
    ::close(fd);
}
