#include "router/app/ask.hpp"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

#include "router/admin/client.hpp"
#include "router/admin/target.hpp"

namespace hotlane::app {

using nlohmann::json;

namespace {

// A dry run may copy schemas and try levers; everything else answers in milliseconds.
constexpr std::chrono::minutes answer_timeout{10};

int exit_of(int status) {
    if (status < 400) return ok;
    if (status == 409) return refused;
    if (status == 400) return usage;
    return failed;
}

}  // namespace

answer ask(const client_options& with,
           const std::string& method,
           const std::string& target,
           const json& body) {
    const auto got = admin::call(with.socket, method, "/api/v1/" + target, body, answer_timeout);
    if (!got) {
        talk("hotlane: " + got.error().what);
        if (with.as == format::json) print_json({{"error", got.error().what}, {"hint", ""}});
        return {unreachable, 0, {}};
    }
    answer out{exit_of(got->status), got->status, got->body};
    if (!out.body.is_object()) {
        out.body = {{"error", fmt::format("hotlane answered {}", got->status)}, {"hint", ""}};
        out.exit = failed;
    }
    if (out.exit != ok) {
        talk("hotlane: " + cell(at(out.body, "error")));
        const auto hint = cell(at(out.body, "hint"));
        if (hint != "-") talk("hint: " + hint);
        if (with.as == format::json) print_json(out.body);
    }
    return out;
}

std::string tool_path(const std::string& tool, const std::string& rest) {
    return "tools/" + admin::encode_segment(tool) + (rest.empty() ? "" : "/" + rest);
}

std::string operator_name() {
    if (const char* sudo = std::getenv("SUDO_USER"); sudo != nullptr && *sudo != '\0') return sudo;
    if (const passwd* user = ::getpwuid(::getuid()); user != nullptr) return user->pw_name;
    return fmt::format("uid {}", ::getuid());
}

void print_json(const json& body) {
    print(body.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

void print_next_steps(const json& body) {
    const auto steps = at(body, "next_steps");
    if (!steps.is_array() || steps.empty()) return;
    talk("next:");
    for (const auto& step : steps)
        talk("  " + cell(step));
}

}  // namespace hotlane::app
