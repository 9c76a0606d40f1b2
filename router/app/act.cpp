// The commands that change something.
#include <charconv>

#include <fmt/format.h>

#include "router/app/ask.hpp"

namespace hotlane::app {

using nlohmann::json;

namespace {

void talk_refusals(const json& report) {
    for (const auto& refusal : at(report, "refusals")) {
        talk(fmt::format(
            "refused: {}: {}", cell(at(refusal, "code")), cell(at(refusal, "message"))));
        const auto mend = cell(at(refusal, "mend"));
        if (mend != "-") talk("  mend: " + mend);
    }
}

// What a report's `detail` holds is the move's business; scalars are shown as they are.
std::string plan_text(const json& detail) {
    std::string out;
    if (!detail.is_object()) return out;
    for (const auto& [name, value] : detail.items()) {
        const auto text = value.is_structured() ? value.dump() : cell(value);
        out += fmt::format("  {:<20} {}\n", name, printable(text));
    }
    return out;
}

int show_dry_run(const client_options& with, const route_options& what, const json& body) {
    const bool would_move = at(body, "would_move") == true;
    if (with.as == format::json) {
        print_json(body);
    } else {
        print(fmt::format("dry run: {} to {}; nothing was changed\n", what.tool, what.to));
        print(plan_text(at(body, "detail")));
    }
    if (!would_move) {
        talk_refusals(body);
        return refused;
    }
    if (with.as == format::table)
        print(fmt::format("it would move. To do it:\n  hotlane route {} --to {} --execute\n",
                          what.tool,
                          what.to));
    return ok;
}

int show_end(const client_options& with, const json& order) {
    const auto report = at(order, "report");
    const bool moved = at(report, "moved") == true;
    if (with.as == format::json) print_json(order);
    if (!moved) {
        talk(fmt::format(
            "hotlane: {} was not moved: {}", cell(at(order, "tool")), cell(at(order, "outcome"))));
        talk_refusals(report);
        return at(order, "outcome") == "refused" ? refused : failed;
    }
    if (with.as == format::table)
        print(fmt::format("{} lives on {} now; clients waited {} ms (move {})\n",
                          cell(at(order, "tool")),
                          cell(at(order, "to")),
                          cell(at(report, "held_ms"), 0),
                          cell(at(report, "id"))));
    const auto reverse = cell(at(report, "reverse"));
    if (reverse != "-") talk("to undo it: " + reverse);
    return ok;
}

// Follows an order to its end: each answer comes when the phase has changed, or after a moment.
int wait_for(const client_options& with, const json& order) {
    std::string seen;
    while (true) {
        const auto got = ask(with, "GET", "orders/" + order.dump() + "?phase=" + seen);
        if (got.exit != ok) return got.exit;
        if (at(got.body, "state") == "ended") return show_end(with, got.body);
        const auto phase = at(got.body, "phase").get<std::string>();
        if (phase != seen && is_terminal(2)) talk("  " + printable(phase));
        seen = phase;
    }
}

int show_done(const client_options& with, const answer& got, const std::string& text) {
    if (got.exit != ok) return got.exit;
    if (const auto warning = cell(at(got.body, "warning")); warning != "-")
        talk("warning: " + warning);
    if (with.as == format::json) {
        print_json(got.body);
    } else {
        print(text + "\n");
        print_next_steps(got.body);
    }
    return ok;
}

}  // namespace

int order_route(const client_options& with, const route_options& what) {
    const json body{{"to", what.to}, {"execute", what.execute}, {"by", operator_name()}};
    const auto got = ask(with, "POST", tool_path(what.tool, "route"), body);
    if (got.exit != ok) return got.exit;
    if (!what.execute) return show_dry_run(with, what, got.body);
    if (what.wait) return wait_for(with, at(got.body, "order"));
    return show_done(
        with,
        got,
        fmt::format(
            "{} is on its way to {} (order {})", what.tool, what.to, cell(at(got.body, "order"))));
}

int act_on_move(const client_options& with,
                const std::string& id,
                const std::string& action,
                bool wait) {
    const auto got =
        ask(with, "POST", "moves/" + id, {{"action", action}, {"by", operator_name()}});
    if (got.exit == ok && action == "reverse") {
        if (wait) return wait_for(with, at(got.body, "order"));
        return show_done(with,
                         got,
                         fmt::format("{} is on its way to {} (order {})",
                                     cell(at(got.body, "tool")),
                                     cell(at(got.body, "to")),
                                     cell(at(got.body, "order"), 0)));
    }
    return show_done(with, got, cell(at(got.body, "text")));
}

int end_shard(const client_options& with, const std::string& tool, const std::string& action) {
    const auto got =
        ask(with, "POST", tool_path(tool, "shard"), {{"action", action}, {"by", operator_name()}});
    return show_done(with,
                     got,
                     action == "done" ? fmt::format("{} is measured again", tool)
                                      : fmt::format("{} skips lever 2", tool));
}

int set_pin(const client_options& with, const pin_options& what) {
    const auto got = ask(with,
                         "POST",
                         tool_path(what.tool, "pin"),
                         {{"home", what.home},
                          {"for_s", static_cast<std::uint64_t>(what.length.count())},
                          {"reason", what.reason},
                          {"by", operator_name()}});
    return show_done(with, got, fmt::format("{} is pinned to {}", what.tool, what.home));
}

int clear_pin(const client_options& with, const std::string& tool) {
    const auto got = ask(with, "POST", tool_path(tool, "unpin"), {{"by", operator_name()}});
    return show_done(with, got, fmt::format("{} is pinned no more", tool));
}

int order_reload(const client_options& with) {
    const auto got = ask(with, "POST", "reload");
    if (got.exit != ok) return got.exit == refused ? invalid_config : got.exit;
    for (const auto& key : at(got.body, "needs_restart"))
        talk("needs a restart: " + cell(key));
    return show_done(with, got, "reloaded");
}

std::optional<std::chrono::seconds> parse_length(std::string_view text) {
    std::uint32_t number{};
    const auto* end = text.data() + text.size();
    const auto [rest, ec] = std::from_chars(text.data(), end, number);
    if (ec != std::errc{} || end - rest != 1 || number == 0) return std::nullopt;
    switch (*rest) {
        case 's':
            return std::chrono::seconds(number);
        case 'm':
            return std::chrono::minutes(number);
        case 'h':
            return std::chrono::hours(number);
        case 'd':
            return std::chrono::hours(24) * number;
        default:
            return std::nullopt;
    }
}

}  // namespace hotlane::app
