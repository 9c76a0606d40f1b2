// Options that every socket of the data plane has.
#pragma once

#include "router/net/types.hpp"

namespace hotlane::net {

// Non-blocking; TCP: no delay, and keepalive that finds a dead peer in about a minute.
void prepare_socket(stream& socket, const peer& at);

}  // namespace hotlane::net
