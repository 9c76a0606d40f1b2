// The commands that talk to a running hotlane over its admin socket. Each returns an exit code.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "router/app/output.hpp"

namespace hotlane::app {

inline constexpr const char* admin_socket_default = "/run/hotlane/admin.sock";

struct client_options {
    std::string socket{admin_socket_default};
    format as{format::table};
};

int show_status(const client_options& with);
int show_fleet(const client_options& with);
int show_tools(const client_options& with);
int show_where(const client_options& with, const std::string& tool);
int show_explain(const client_options& with, const std::string& tool);
int show_moves(const client_options& with, int limit);
int show_move(const client_options& with, const std::string& id);
// Follows what runs until it is interrupted; with an id until that move has ended.
int watch_moves(const client_options& with, const std::string& id);

// A look at the homes of a tool. Not good: exit 1 (verify) or 6 (eject).
int verify_tool(const client_options& with, const std::string& tool);
int eject_tool(const client_options& with, const std::string& tool);

struct route_options {
    std::string tool;
    std::string to;  // engine | postgres
    bool execute{false};
    bool wait{false};
};
int order_route(const client_options& with, const route_options& what);

// Which home of a tool holds from now on, where they cannot tell. Not adopted: exit 1 or 6.
struct adopt_options {
    std::string home;  // engine | postgres
    bool execute{false};
};
int adopt_home(const client_options& with, const std::string& tool, const adopt_options& what);

// abort, reverse or complete; only a reverse can be waited for.
int act_on_move(const client_options& with,
                const std::string& id,
                const std::string& action,
                bool wait);
int end_shard(const client_options& with, const std::string& tool, const std::string& action);

struct pin_options {
    std::string tool;
    std::string home;
    std::chrono::seconds length{};
    std::string reason;
};
int set_pin(const client_options& with, const pin_options& what);
int clear_pin(const client_options& with, const std::string& tool);
int order_reload(const client_options& with);

// "90s", "30m", "2h", "1d"; nullopt: not a positive length with a unit.
std::optional<std::chrono::seconds> parse_length(std::string_view text);

}  // namespace hotlane::app
