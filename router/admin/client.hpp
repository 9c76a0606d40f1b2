// The command line's way to a running hotlane: one blocking request over the admin unix socket.
#pragma once

#include <chrono>
#include <string>

#include <nlohmann/json.hpp>
#include <tl/expected.hpp>

namespace hotlane::admin {

struct client_answer {
    int status{};
    nlohmann::json body;
};

// Why there was no answer: hotlane does not run, or it does not answer in time.
struct unreachable {
    std::string what;
};

tl::expected<client_answer, unreachable> call(const std::string& socket_path,
                                              const std::string& method,
                                              const std::string& target,
                                              const nlohmann::json& body,
                                              std::chrono::milliseconds timeout);

}  // namespace hotlane::admin
