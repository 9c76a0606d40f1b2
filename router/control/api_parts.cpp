#include "router/control/api_parts.hpp"

#include <charconv>

#include <fmt/format.h>

#include "router/control/json.hpp"
#include "router/control/views.hpp"

namespace hotlane::control {

using admin::api_answer;
using admin::api_request;
using nlohmann::json;

namespace {

constexpr std::uint64_t listed_default = 50;
constexpr std::size_t who_max = 64;

}  // namespace

api_answer fail(int status, std::string error, std::string hint) {
    return {status, {{"error", std::move(error)}, {"hint", std::move(hint)}}};
}

api_answer good(json body, int status) {
    body["schema"] = schema;
    return {status, std::move(body)};
}

std::optional<std::uint64_t> whole_number(const std::string& text) {
    std::uint64_t out{};
    const auto* end = text.data() + text.size();
    const auto [at, ec] = std::from_chars(text.data(), end, out);
    if (ec != std::errc{} || at != end) return std::nullopt;
    return out;
}

std::uint64_t limit_of(const api_request& request) {
    const auto found = request.query.find("limit");
    if (found == request.query.end()) return listed_default;
    return std::min(whole_number(found->second).value_or(listed_default), listed_max);
}

std::string text_of(const json& body, const char* key) {
    const auto found = body.find(key);
    return found != body.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::string who(const json& body) {
    const auto by = text_of(body, "by");
    return by.empty() ? "operator" : by.substr(0, who_max);
}

std::optional<policy::home_kind> home_of(const json& body, const char* key) {
    const auto text = text_of(body, key);
    if (text == "engine") return policy::home_kind::engine;
    if (text == "postgres") return policy::home_kind::postgres;
    return std::nullopt;
}

api_answer unknown_tool(controller& at, const std::string& name) {
    std::string known;
    int shown = 0;
    for (const auto& each : at.desks()) {
        if (++shown > 10) break;
        known += (known.empty() ? "" : ", ") + each->name();
    }
    return fail(404,
                fmt::format("no tool is called {}", name),
                known.empty() ? "no tool is known yet" : "known: " + known);
}

}  // namespace hotlane::control
