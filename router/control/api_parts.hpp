// What the files of the admin API share: answers, fields of a request, and the routes of moves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "router/control/api.hpp"
#include "router/control/controller.hpp"

namespace hotlane::control {

inline constexpr std::uint64_t listed_max = 1'000;

admin::api_answer fail(int status, std::string error, std::string hint = "");
admin::api_answer good(nlohmann::json body, int status = 200);
admin::api_answer unknown_tool(controller& at, const std::string& name);

std::uint64_t limit_of(const admin::api_request& request);
std::string text_of(const nlohmann::json& body, const char* key);
std::string who(const nlohmann::json& body);
std::optional<policy::home_kind> home_of(const nlohmann::json& body, const char* key);
std::optional<std::uint64_t> whole_number(const std::string& text);

// api_moves.cpp
admin::api_answer get_moves(controller& at, const admin::api_request& request);
admin::api_answer get_move(controller& at, const admin::api_request& request);
admin::api_answer get_order(controller& at, const admin::api_request& request);
admin::api_answer get_eject(controller& at, const admin::api_request& request);
admin::api_answer post_adopt(controller& at, const admin::api_request& request);
admin::api_answer post_verify(controller& at, const admin::api_request& request);
admin::api_answer post_route(controller& at, const admin::api_request& request);
admin::api_answer post_move(controller& at, const admin::api_request& request);

}  // namespace hotlane::control
