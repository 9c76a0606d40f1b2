// From one HTTP request to one answer, without sockets: which paths exist on which listener, JSON
// in and out, probes. Runs on a worker thread.
#pragma once

#include <string>
#include <string_view>

#include "router/admin/service.hpp"

namespace hotlane::admin {

enum class door { unix_socket, tcp };  // TCP never carries verbs or the API

struct http_answer {
    int status{200};
    std::string content_type{"application/json"};
    std::string body;
    std::string allow;  // 405: the methods that would do
};

http_answer dispatch(door by,
                     const std::string& method,
                     std::string_view target_text,
                     const std::string& body,
                     service& what);

}  // namespace hotlane::admin
