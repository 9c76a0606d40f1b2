// One request to the running hotlane, with the errors said once, in one way.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "router/app/commands.hpp"
#include "router/app/exit_code.hpp"

namespace hotlane::app {

struct answer {
    int exit{ok};
    int status{};
    nlohmann::json body;
};

// Not ok: the reason has been said on stderr (and as JSON on stdout where that was asked for).
answer ask(const client_options& with,
           const std::string& method,
           const std::string& target,
           const nlohmann::json& body = nlohmann::json::object());

// The path of a tool, its name encoded.
std::string tool_path(const std::string& tool, const std::string& rest = "");

// Who gives an order: the login name behind this process.
std::string operator_name();

void print_json(const nlohmann::json& body);
void print_next_steps(const nlohmann::json& body);  // on stderr

}  // namespace hotlane::app
