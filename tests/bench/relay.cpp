// The floor: a TCP relay with nothing in it. One thread, one epoll, bytes from one socket to the
// other. What a proxy costs above this is what it costs for looking at the bytes.
//
//   bench-relay PORT-OF-THE-HOME      prints "listening PORT", then runs until it is ended
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>

namespace {

constexpr std::size_t piece = 64 * 1024;

struct side {
    int fd{-1};
    side* other{nullptr};
    std::string rest;  // what this side would not take yet
};

struct pair {
    side client, home;
};

sockaddr_in local(std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

int new_socket() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

void watch(int poll, side& one, int how) {
    epoll_event event{};
    // A side whose peer is full is not read; one that owes bytes waits to be writable.
    event.events = (one.other->rest.empty() ? EPOLLIN : 0U) | (one.rest.empty() ? 0U : EPOLLOUT);
    event.data.ptr = &one;
    epoll_ctl(poll, how, one.fd, &event);
}

// False: this side is gone.
bool write_to(side& to, const char* bytes, std::size_t size) {
    const auto sent = send(to.fd, bytes, size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return false;
    const auto done = sent < 0 ? 0 : static_cast<std::size_t>(sent);
    if (done < size) to.rest.append(bytes + done, size - done);
    return true;
}

bool readable(int poll, side& from) {
    static std::array<char, piece> buffer;
    const auto got = recv(from.fd, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    if (!write_to(*from.other, buffer.data(), static_cast<std::size_t>(got))) return false;
    if (!from.other->rest.empty()) {
        watch(poll, from, EPOLL_CTL_MOD);
        watch(poll, *from.other, EPOLL_CTL_MOD);
    }
    return true;
}

bool writable(int poll, side& to) {
    const std::string rest = std::move(to.rest);
    to.rest.clear();
    if (!write_to(to, rest.data(), rest.size())) return false;
    if (to.rest.empty()) {
        watch(poll, to, EPOLL_CTL_MOD);
        watch(poll, *to.other, EPOLL_CTL_MOD);
    }
    return true;
}

void accept_one(int poll,
                int listener,
                std::uint16_t home,
                std::unordered_map<side*, std::unique_ptr<pair>>& pairs) {
    const int client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) return;
    const int on = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const int link = new_socket();
    const auto at = local(home);
    if (connect(link, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
        close(client);
        close(link);
        return;
    }
    fcntl(link, F_SETFL, O_NONBLOCK);
    auto both = std::make_unique<pair>();
    both->client = {client, &both->home, {}};
    both->home = {link, &both->client, {}};
    watch(poll, both->client, EPOLL_CTL_ADD);
    watch(poll, both->home, EPOLL_CTL_ADD);
    auto* key = &both->client;
    pairs.emplace(key, std::move(both));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const auto home = static_cast<std::uint16_t>(std::atoi(argv[1]));
    const int listener = new_socket();
    auto at = local(0);
    socklen_t size = sizeof at;
    if (bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
        listen(listener, 4096) != 0)
        return 1;
    getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
    std::printf("listening %d\n", ntohs(at.sin_port));
    std::fflush(stdout);

    const int poll = epoll_create1(EPOLL_CLOEXEC);
    epoll_event first{};
    first.events = EPOLLIN;
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &first);
    std::unordered_map<side*, std::unique_ptr<pair>> pairs;
    std::array<epoll_event, 64> events{};
    for (;;) {
        const int count = epoll_wait(poll, events.data(), static_cast<int>(events.size()), -1);
        side* closed[64];
        int closings = 0;
        for (int i = 0; i < count; ++i) {
            const auto& event = events[static_cast<std::size_t>(i)];
            auto* one = static_cast<side*>(event.data.ptr);
            if (one == nullptr) {
                accept_one(poll, listener, home, pairs);
                continue;
            }
            if (one->fd < 0) continue;
            bool alive = true;
            if (event.events & EPOLLOUT) alive = writable(poll, *one);
            if (alive && (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
                alive = readable(poll, *one);
            if (alive) continue;
            close(one->fd);
            close(one->other->fd);
            one->fd = one->other->fd = -1;
            closed[closings++] = one;
        }
        // Only now: a later event of the same round may have named the other side.
        for (int i = 0; i < closings; ++i)
            if (pairs.erase(closed[i]) == 0) pairs.erase(closed[i]->other);
    }
}
