#include "router/app/process.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace hotlane::app {

namespace {

sigset_t handled_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGTERM, SIGINT, SIGHUP})
        sigaddset(&set, number);
    return set;
}

}  // namespace

void forbid_core_dumps() {
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
}

std::uint64_t raise_open_files() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
    const rlimit raised{files.rlim_max, files.rlim_max};
    return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : files.rlim_cur;
}

void block_signals() {
    const auto set = handled_signals();
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

int wait_for_signal() {
    const auto set = handled_signals();
    int number = 0;
    while (::sigwait(&set, &number) != 0) {
    }
    return number;
}

void end_at_next_signal() {
    std::thread([] {
        int number = SIGHUP;
        while (number == SIGHUP)
            number = wait_for_signal();
        ::_exit(128 + number);
    }).detach();
}

void notify_service_manager(std::string_view state) {
    const char* path = std::getenv("NOTIFY_SOCKET");
    sockaddr_un to{};
    if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
    const auto length = std::strlen(path);
    if (length >= sizeof(to.sun_path)) return;
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, path, length);
    if (path[0] == '@') to.sun_path[0] = '\0';  // an abstract name
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    const auto* plain = static_cast<const sockaddr*>(static_cast<const void*>(&to));
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
    ::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, plain, size);
    ::close(fd);
}

}  // namespace hotlane::app
