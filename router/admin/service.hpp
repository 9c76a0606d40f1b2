// What the admin API can ask: one function, requests and answers as plain values, so that HTTP, the
// console and the command line share it. Implemented by router/control.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace hotlane::admin {

struct api_request {
    std::string method;             // GET, POST
    std::vector<std::string> path;  // segments below /api/v1: {"tools","counter"}
    std::map<std::string, std::string> query;
    nlohmann::json body;  // POST: an object
};

struct api_answer {
    int status{200};      // HTTP status
    nlohmann::json body;  // error: {"error","hint"}
};

class service {
  public:
    virtual ~service() = default;
    virtual api_answer handle(const api_request& request) = 0;  // THREADS: any, may block
    virtual std::string metrics_text() = 0;                     // exposition format
    virtual bool live() = 0;
    virtual bool ready(std::vector<std::string>& failed_checks) = 0;
};

}  // namespace hotlane::admin
