#include "router/control/views.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "router/control/explain.hpp"
#include "router/control/json.hpp"

namespace hotlane::control {

using nlohmann::json;

namespace {

json text_or_null(std::string_view text) {
    return text.empty() ? json(nullptr) : json(text);
}

template <typename Number>
Number read(const std::atomic<Number>& value) {
    return value.load(std::memory_order_relaxed);
}

// What is not 0, by its label.
template <typename Labels, typename Counts>
json counts_json(const Labels& labels, const Counts& counts) {
    json out = json::object();
    for (std::size_t i = 0; i < labels.size(); ++i)
        if (const auto n = read(counts[i]); n > 0) out[std::string(labels[i])] = n;
    return out;
}

json links_json(const placement::counters& c) {
    return {{"open", read(c.links_open)},
            {"lent", read(c.links_lent)},
            {"idle", read(c.links_open) - read(c.links_lent)},
            {"waiting", read(c.link_waiters)},
            {"waits", read(c.link_waits)},
            {"pinned", read(c.pinned_now)},
            {"closed", counts_json(placement::link_ends, c.links_closed)}};
}

json retries_json(const placement::tool_entry& entry) {
    auto out = counts_json(placement::retry_outcomes, entry.counted.retries);
    out["on"] = read(entry.retry.on);
    out["tries"] = read(entry.counted.retry_tries);
    return out;
}

json traffic_json(const placement::tool_entry& entry) {
    const auto& c = entry.counted;
    return {{"sessions", read(c.sessions)},
            {"transactions", read(c.transactions)},
            {"write_transactions", read(c.write_transactions)},
            {"write_conflicts", read(c.write_conflicts)},
            {"errors", read(c.errors)},
            {"unknown_outcomes", read(c.unknown_outcomes)},
            {"held", read(c.held)},
            {"hold_refused", read(c.hold_refused)},
            {"link_opens", read(c.link_opens)},
            {"link_failures", read(c.link_failures)},
            {"switched", read(c.switched)},
            {"pinned_ended", read(c.pinned_ended)},
            {"links", links_json(c)},
            {"pins", counts_json(placement::pin_reasons, c.pins)},
            {"after_error",
             {{"blocks", read(c.after_error_blocks)},
              {"statements", counts_json(placement::after_error_words, c.after_error)}}},
            {"retries", retries_json(entry)},
            {"waiting", entry.gate.waiting()}};
}

json sampling_json(const sampling_figures& s) {
    return {{"samples", s.samples},
            {"failures", s.failures},
            {"skipped_idle", s.skipped_idle},
            {"last_at", to_json(s.last_at)},
            {"last_cost_ms", static_cast<double>(s.last_cost.count()) / 1000.0},
            {"last_error", text_or_null(s.last_error)}};
}

json evidence_json(const tool_view& tool) {
    json tables = json::array();
    for (const auto& t : tool.hot_tables)
        tables.push_back({{"table", t.table}, {"conflicts", t.conflicts}, {"share", t.share}});
    return {{"conflict_tables", std::move(tables)}, {"conflict_samples", tool.samples}};
}

// Where the tool's home is, without a user or a secret.
std::string address_of(const placement::home& at) {
    if (at.at.is_unix()) return fmt::format("{} (port {})", at.at.host, at.at.port);
    return fmt::format("{}:{}", at.at.host, at.at.port);
}

}  // namespace

std::vector<std::string> next_steps(const tool_view& tool) {
    const auto& name = tool.entry->name;
    using policy::stage;
    switch (tool.state.at) {
        case stage::watching:
            return {};
        case stage::flagged:
            return {"hotlane explain " + name};
        case stage::sharding:
            return {"hotlane explain " + name,
                    "hotlane shard done " + name,
                    "hotlane shard skip " + name};
        case stage::remeasuring:
            return {"hotlane explain " + name};
        case stage::would_move:
            return {fmt::format("hotlane route {} --to postgres", name)};
        case stage::moving_out:
        case stage::moving_back:
            return {"hotlane moves"};
        case stage::on_postgres:
            return {};
        case stage::would_return:
            return {fmt::format("hotlane route {} --to engine", name)};
    }
    return {};
}

json tool_json(controller& at, const tool_view& tool) {
    const auto& route = *tool.route;
    const auto& state = tool.state;
    const auto active = at.moves().active(tool.entry->name);
    const bool is_diagnosed = state.why != policy::diagnosis::none;
    return {{"name", tool.entry->name},
            {"home", policy::to_string(route.at.kind)},
            {"epoch", route.epoch},
            {"served", route.served},
            {"reason", text_or_null(route.served ? "" : route.reason)},
            {"stage", policy::to_string(state.at)},
            {"since", to_json(state.since)},
            {"mode", policy::to_string(tool.settings.act_mode)},
            {"policy", tool.settings.name},
            {"diagnosis", is_diagnosed ? json(policy::to_string(state.why)) : json(nullptr)},
            {"table", text_or_null(state.table)},
            {"verdict", policy::to_string(tool.verdict)},
            {"window", tool.window ? to_json(*tool.window) : json(nullptr)},
            {"advice", state.advice},
            {"alert", state.alert},
            {"pin", state.pinned ? to_json(*state.pinned) : json(nullptr)},
            {"move", active ? to_json(*active) : json(nullptr)},
            {"held", tool.entry->gate.held()},
            {"can_move", tool.entry->settings.postgres.has_value()},
            {"next_steps", next_steps(tool)}};
}

json tool_detail_json(controller& at, const tool_view& tool) {
    auto out = tool_json(at, tool);
    out["tool"] = tool.entry->name;
    out["address"] = address_of(tool.route->at);
    out["database"] = text_or_null(tool.route->at.database);
    out["home_since"] = to_json(tool.state.home_since);
    out["traffic"] = traffic_json(*tool.entry);
    out["sampling"] = sampling_json(tool.sampling);
    out["evidence"] = evidence_json(tool);
    json windows = json::array();
    const bool is_away = tool.route->at.kind == policy::home_kind::postgres;
    for (const auto& w : is_away ? tool.state.away_windows : tool.state.windows)
        windows.push_back(to_json(w));
    out["windows"] = std::move(windows);
    return out;
}

json explain_json(controller& at, const tool_view& tool) {
    auto out = tool_json(at, tool);
    out["tool"] = tool.entry->name;
    out["evidence"] = evidence_json(tool);
    json decisions = json::array();
    if (const auto kept = at.shared().store.decisions(tool.entry->name, explained_decisions)) {
        for (const auto& record : *kept)
            decisions.push_back(record.body);
    }
    out["recipes"] = recipes_json(tool);
    out["text"] = explain_text(tool, decisions);
    out["decisions"] = std::move(decisions);
    return out;
}

json moves_json(controller& at, const std::vector<placement::move_record>& records) {
    const auto alarms = at.late_writes();
    json moves = json::array();
    for (const auto& record : records) {
        auto one = to_json(record);
        const auto alarm = alarms.find(record.id);
        one["late_write"] = alarm == alarms.end() ? json(nullptr) : json(alarm->second);
        moves.push_back(std::move(one));
    }
    json orders = json::array();
    for (const auto& each : at.moves().all_active())
        orders.push_back(to_json(each));
    return {{"moves", std::move(moves)}, {"orders", std::move(orders)}};
}

json status_json(controller& at) {
    int on_engine = 0;
    int on_postgres = 0;
    int not_served = 0;
    int advised = 0;
    std::map<std::string, int> stages;
    std::vector<std::string> steps;
    for (const auto& each : at.desks()) {
        const auto tool = each->view();
        ++(tool.route->at.kind == policy::home_kind::engine ? on_engine : on_postgres);
        if (!tool.route->served) ++not_served;
        if (tool.state.advice) ++advised;
        ++stages[std::string(policy::to_string(tool.state.at))];
        for (auto& step : next_steps(tool)) {
            if (steps.size() < 10) steps.push_back(std::move(step));
        }
    }
    std::vector<std::string> failed;
    const bool is_ready = at.ready(failed);
    const auto model = at.model();
    const auto reloads = at.reloads();
    const auto& hooks = at.hooks();
    return {{"version", hooks.version},
            {"state", at.draining() ? "draining" : (is_ready ? "ready" : "starting")},
            {"failed_checks", failed},
            {"started_at", to_json(at.started())},
            {"config",
             {{"path", hooks.config_path},
              {"hash", model->hash},
              {"last_reload_ok", reloads.ok},
              {"loaded_at", to_json(reloads.succeeded_at)}}},
            {"addresses", hooks.addresses ? hooks.addresses() : json::object()},
            {"tools",
             {{"engine", on_engine},
              {"postgres", on_postgres},
              {"not_served", not_served},
              {"advised", advised},
              {"stages", stages}}},
            {"moves_running", at.together().moves_running()},
            {"next_steps", steps}};
}

}  // namespace hotlane::control
