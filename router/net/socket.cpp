#include "router/net/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "router/net/address.hpp"

namespace hotlane::net {

void prepare_socket(stream& socket, const peer& at) {
    error_code ignored;
    socket.non_blocking(true, ignored);
    if (is_unix(at)) return;
    const auto set = [fd = socket.native_handle()](int level, int name, int value) {
        ::setsockopt(fd, level, name, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace hotlane::net
