#include "router/app/check.hpp"

#include <fmt/format.h>

#include "config/live.hpp"
#include "config/print.hpp"
#include "router/app/ask.hpp"

namespace hotlane::app {

using nlohmann::json;

namespace {

json problems_json(const std::vector<config::problem>& problems) {
    json out = json::array();
    for (const auto& p : problems)
        out.push_back({{"file", p.where.file},
                       {"line", p.where.line},
                       {"column", p.where.column},
                       {"level", p.level == config::severity::error ? "error" : "warning"},
                       {"path", p.path},
                       {"message", p.message},
                       {"mend", p.mend}});
    return out;
}

std::optional<double> number_at(const json& object, const char* key) {
    const auto value = at(object, key);
    return value.is_number() ? std::optional{value.get<double>()} : std::nullopt;
}

// What the running hotlane knows of its tools and of the moves that ended.
std::optional<std::vector<config::observed_tool>> observe(const client_options& with) {
    const auto tools = ask(with, "GET", "tools");
    const auto moves = ask(with, "GET", "moves?limit=200");
    if (tools.exit != ok || moves.exit != ok) return std::nullopt;
    std::vector<config::observed_tool> out;
    for (const auto& t : at(tools.body, "tools")) {
        config::observed_tool one;
        one.name = t.value("name", "");
        const auto window = at(t, "window");
        if (at(t, "home") == "engine" && window.is_object() && at(window, "quality") == "good") {
            one.handoff_rate = number_at(window, "handoff_rate");
            if (const auto ms = number_at(window, "mean_wait_ms")) one.mean_wait_us = *ms * 1'000;
            one.abort_rate = number_at(window, "abort_rate");
            one.conflict_rate = number_at(window, "conflict_rate");
        }
        for (const auto& m : at(moves.body, "moves")) {
            const auto began = number_at(m, "started_at");
            const auto ended = number_at(m, "ended_at");
            if (at(m, "tool") != one.name || !began || !ended) continue;
            const auto took =
                std::chrono::milliseconds{static_cast<std::int64_t>((*ended - *began) * 1'000)};
            one.longest_move = std::max(one.longest_move.value_or(took), took);
        }
        out.push_back(std::move(one));
    }
    return out;
}

}  // namespace

int check(const std::string& path, check_options what, const client_options& with) {
    const auto as = with.as;
    const bool effective = what.effective;
    const auto read = config::load_file(path);
    if (!read) {
        talk(read.error().text);
        if (as == format::json)
            print_json({{"schema", "hotlane/v1"},
                        {"ok", false},
                        {"problems", problems_json(read.error().problems)}});
        return invalid_config;
    }
    if (!read->text.empty()) talk(read->text);
    auto warnings = read->warnings;
    if (what.live) {
        const auto now = observe(with);
        if (!now) return unreachable;
        for (auto& p : config::lint_live(*read, *now)) {
            talk(config::render(p, ""));
            warnings.push_back(std::move(p));
        }
    }
    if (as == format::json) {
        json out{{"schema", "hotlane/v1"},
                 {"ok", true},
                 {"problems", problems_json(warnings)},
                 {"hash", read->value.hash}};
        if (effective) out["effective"] = config::print_effective(*read);
        out["next_steps"] = {"hotlane run --config " + path};
        print_json(out);
    } else if (effective) {
        print(config::print_effective(*read));
    } else {
        print(fmt::format("{}: good ({} tools, {} policies)\n",
                          path,
                          read->value.tools.size(),
                          read->value.policies.size()));
    }
    return ok;
}

}  // namespace hotlane::app
