// The commands that read.
#include <fmt/format.h>

#include "router/app/ask.hpp"

namespace hotlane::app {

using nlohmann::json;

namespace {

// Asks and prints JSON where that is wanted; a table is the caller's business.
std::optional<json> read(const client_options& with, const std::string& target, int& exit) {
    auto got = ask(with, "GET", target);
    exit = got.exit;
    if (got.exit != ok) return std::nullopt;
    if (with.as == format::json) {
        print_json(got.body);
        return std::nullopt;
    }
    return std::move(got.body);
}

std::vector<std::string> tool_row(const json& tool) {
    const auto window = at(tool, "window");
    const bool is_served = at(tool, "served") == true;
    return {cell(at(tool, "name")),
            cell(at(tool, "home")) + (is_served ? "" : " (not served)"),
            cell(at(tool, "stage")),
            cell(at(tool, "diagnosis")),
            cell(at(window, "handoff_rate")),
            cell(at(window, "mean_wait_ms"), 1),
            cell(at(window, "abort_rate")),
            cell(at(window, "quality")),
            cell(at(tool, "mode"))};
}

std::string line(const char* name, const std::string& value) {
    return fmt::format("{:<12}{}\n", name, value);
}

}  // namespace

int show_status(const client_options& with) {
    int exit = ok;
    const auto got = read(with, "status", exit);
    if (!got) return exit;
    const auto tools = at(*got, "tools");
    const auto config = at(*got, "config");
    std::string out = line("version", cell(at(*got, "version")));
    out += line("state", cell(at(*got, "state")));
    for (const auto& check : at(*got, "failed_checks"))
        out += line("", cell(check));
    out += line("started", moment(at(*got, "started_at")));
    out += line("config", cell(at(config, "path")));
    out += line("loaded",
                moment(at(config, "loaded_at")) +
                    (at(config, "last_reload_ok") == false ? " (last reload failed)" : ""));
    const auto addresses = at(*got, "addresses");
    for (const auto& [name, address] : addresses.items())
        out += line(name.c_str(), address.is_string() ? cell(address) : address.dump());
    out += line("tools",
                fmt::format("{} on the engine, {} on PostgreSQL, {} not served",
                            cell(at(tools, "engine")),
                            cell(at(tools, "postgres")),
                            cell(at(tools, "not_served"))));
    const auto stages = at(tools, "stages");
    for (const auto& [stage, count] : stages.items())
        out += line("", fmt::format("{} {}", cell(count), stage));
    out += line("moves", cell(at(*got, "moves_running")) + " running");
    print(out);
    print_next_steps(*got);
    return ok;
}

int show_fleet(const client_options& with) {
    int exit = ok;
    const auto got = read(with, "fleet", exit);
    if (!got) return exit;
    std::vector<std::vector<std::string>> rows;
    for (const auto& s : at(*got, "sidecars")) {
        const bool lapsed = at(s, "lapsed") == true;
        rows.push_back({cell(at(s, "name")) + (at(s, "this") == true ? " (this)" : ""),
                        at(s, "leads") == true ? "leads" : (lapsed ? "lapsed" : "follows"),
                        cell(at(s, "version")),
                        cell(at(s, "policy_hash")).substr(0, 12) +
                            (at(s, "same_policy") == true ? "" : " (differs)"),
                        cell(at(s, "lease_ms"), 0),
                        cell(at(s, "silent_ms"), 0),
                        cell(at(s, "clock_ahead_ms"), 0)});
    }
    std::string out = table(
        {"SIDECAR", "ROLE", "VERSION", "POLICY", "LEASE_MS", "SILENT_MS", "CLOCK_AHEAD_MS"}, rows);
    const auto store = at(*got, "store");
    const auto tools = at(*got, "tools");
    out += line("leader", "number " + cell(at(at(*got, "leader"), "number")));
    out += line("this", cell(at(at(*got, "this"), "state")));
    out += line("store",
                at(store, "reachable") == true ? "reachable"
                                               : fmt::format("away for {} ms: {}",
                                                             cell(at(store, "away_ms"), 0),
                                                             cell(at(store, "reason"))));
    out += line(
        "tools",
        fmt::format(
            "{} held, {} not confirmed", cell(at(tools, "held")), cell(at(tools, "unconfirmed"))));
    print(out);
    return ok;
}

int show_tools(const client_options& with) {
    int exit = ok;
    const auto got = read(with, "tools", exit);
    if (!got) return exit;
    std::vector<std::vector<std::string>> rows;
    for (const auto& tool : at(*got, "tools"))
        rows.push_back(tool_row(tool));
    print(table(
        {"TOOL", "HOME", "STAGE", "DIAGNOSIS", "HANDOFF", "WAIT_MS", "ABORT", "WINDOW", "MODE"},
        rows));
    if (rows.empty()) talk("no tool yet: a template's tools appear with their first client");
    return ok;
}

int show_where(const client_options& with, const std::string& tool) {
    int exit = ok;
    const auto got = read(with, tool_path(tool), exit);
    if (!got) return exit;
    std::string out = line("tool", cell(at(*got, "name")));
    out += line("home", cell(at(*got, "home")));
    out += line("address", cell(at(*got, "address")));
    out += line("epoch", cell(at(*got, "epoch")));
    out += line("served", cell(at(*got, "served")));
    if (!at(*got, "reason").is_null()) out += line("reason", cell(at(*got, "reason")));
    out += line("stage", cell(at(*got, "stage")));
    out += line("since", moment(at(*got, "home_since")));
    const auto pin = at(*got, "pin");
    if (!pin.is_null())
        out += line("pinned",
                    fmt::format("to {} until {} by {}",
                                cell(at(pin, "home")),
                                moment(at(pin, "until")),
                                cell(at(pin, "by"))));
    print(out);
    print_next_steps(*got);
    return ok;
}

int show_explain(const client_options& with, const std::string& tool) {
    int exit = ok;
    const auto got = read(with, tool_path(tool, "explain"), exit);
    if (!got) return exit;
    const auto text = at(*got, "text");
    print(text.is_string() ? printable(text.get<std::string>()) : "");
    print_next_steps(*got);
    return ok;
}

int show_moves(const client_options& with, int limit) {
    int exit = ok;
    const auto got = read(with, fmt::format("moves?limit={}", limit), exit);
    if (!got) return exit;
    std::vector<std::vector<std::string>> rows;
    for (const auto& move : at(*got, "moves")) {
        rows.push_back({cell(at(move, "id")),
                        cell(at(move, "tool")),
                        fmt::format("{} -> {}", cell(at(move, "from")), cell(at(move, "to"))),
                        cell(at(move, "phase")),
                        cell(at(move, "outcome")),
                        cell(at(move, "held_ms"), 0),
                        moment(at(move, "started_at")),
                        cell(at(move, "ordered_by")),
                        cell(at(move, "reason"))});
    }
    print(table(
        {"MOVE", "TOOL", "FROM -> TO", "PHASE", "OUTCOME", "HELD_MS", "STARTED", "BY", "REASON"},
        rows));
    for (const auto& move : at(*got, "moves")) {
        if (!at(move, "late_write").is_null())
            talk(fmt::format("ALARM {}: {}", cell(at(move, "id")), cell(at(move, "late_write"))));
    }
    for (const auto& order : at(*got, "orders")) {
        if (at(order, "state") == "queued")
            talk(fmt::format("order {}: {} to {} waits for its turn",
                             cell(at(order, "order")),
                             cell(at(order, "tool")),
                             cell(at(order, "to"))));
    }
    return ok;
}

}  // namespace hotlane::app
