// Where a listener listens, for those who report it. Free of Asio.
#pragma once

#include <string>

#include "config/model.hpp"

namespace hotlane::net {

struct bound_address {
    config::endpoint at;    // TCP: with the actual port
    std::string unix_path;  // set: a unix socket
    [[nodiscard]] std::string text() const;
};

}  // namespace hotlane::net
