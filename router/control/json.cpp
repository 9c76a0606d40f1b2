#include "router/control/json.hpp"

namespace hotlane::control {

using nlohmann::json;

namespace {

constexpr int state_version = 1;

template <typename Value>
json or_null(const std::optional<Value>& value) {
    return value ? json(*value) : json(nullptr);
}

json scaled(const std::optional<double>& value, double by) {
    return value ? json(*value * by) : json(nullptr);
}

json to_json(const policy::measure& m) {
    return {{"name", m.name},
            {"unit", m.unit},
            {"value", m.value},
            {"threshold", m.threshold},
            {"passed", m.passed},
            {"margin", m.margin()}};
}

json to_json(const policy::finding& found) {
    return {{"diagnosis", policy::to_string(found.what)},
            {"conflict_rate", or_null(found.conflict_rate)},
            {"seen_share", or_null(found.seen_share)},
            {"abort_rate", or_null(found.abort_rate)},
            {"table", found.table.empty() ? json(nullptr) : json(found.table)},
            {"note", found.note}};
}

json to_json(const policy::home_figures& f) {
    return {{"latency_ms", f.latency_us * 1e-3},
            {"p95_ms", f.p95_us * 1e-3},
            {"writes_per_s", f.writes_per_s},
            {"failure_rate", f.failure_rate}};
}

json to_json(const policy::lane_rates& r) {
    return {{"handoff_rate", r.handoff_rate},
            {"mean_wait_ms", r.mean_wait_us * 1e-3},
            {"conflict_rate", r.conflict_rate}};
}

json to_json(const policy::neighbour_view& n) {
    return {{"tools", n.tools},
            {"acquires_per_s", n.acquires_per_s},
            {"handoff_rate", n.handoff_rate},
            {"mean_wait_ms", n.mean_wait_us * 1e-3}};
}

json to_json(const policy::lane_figures& f) {
    return {{"acquires", f.acquires},
            {"handoff_rate", or_null(f.handoff_rate())},
            {"mean_wait_ms", scaled(f.mean_wait_us(), 1e-3)},
            {"conflict_rate", or_null(f.conflict_rate())}};
}

template <typename Value>
json shown(const std::optional<Value>& value) {
    return value ? to_json(*value) : json(nullptr);
}

// What was expected of a move and what came true, and how the other tools fared.
json expectations(const policy::decision& made) {
    return {{"forecast", shown(made.forecast)},
            {"came_true", shown(made.came_true)},
            {"foreseen", shown(made.foreseen)},
            {"seen_at_home", shown(made.seen_at_home)},
            {"neighbours_before", shown(made.neighbours_before)},
            {"neighbours_after", shown(made.neighbours_after)}};
}

}  // namespace

json to_json(policy::time_point at) {
    return static_cast<double>(at.time_since_epoch().count()) / 1000.0;
}

json to_json(const std::optional<policy::time_point>& at) {
    return at ? to_json(*at) : json(nullptr);
}

json to_json(const policy::window& w) {
    return {{"from", to_json(w.from)},
            {"to", to_json(w.to)},
            {"quality", policy::to_string(w.quality)},
            {"acquires", w.acquires},
            {"handoffs", w.handoffs},
            {"wait_us", w.wait_us},
            {"commits", or_null(w.commits)},
            {"seen_writes", w.seen_writes},
            {"seen_conflicts", w.seen_conflicts},
            {"handoff_rate", or_null(w.handoff_rate())},
            {"mean_wait_ms", scaled(w.mean_wait_us(), 1e-3)},
            {"abort_rate", or_null(w.abort_rate())},
            {"conflict_rate", or_null(w.conflict_rate())},
            {"seen_share", or_null(w.seen_share())},
            {"predicted", shown(w.predicted)},
            {"note", w.note}};
}

json to_json(const policy::decision& made) {
    json windows = json::array();
    for (const auto& w : made.windows)
        windows.push_back(to_json(w));
    json measures = json::array();
    for (const auto& m : made.measures)
        measures.push_back(to_json(m));
    return {{"tool", made.tool},
            {"at", to_json(made.at)},
            {"from", policy::to_string(made.from)},
            {"to", policy::to_string(made.to)},
            {"mode", policy::to_string(made.act_mode)},
            {"event", made.event},
            {"rule", made.rule},
            {"policy", made.policy},
            {"where", made.where},
            {"windows", std::move(windows)},
            {"measures", std::move(measures)},
            {"finding", to_json(made.found)},
            {"expected", expectations(made)},
            {"reason", made.reason},
            {"would_change", made.would_change},
            {"done", made.done},
            {"advice", made.advice},
            {"alert", made.alert},
            {"alert_key", made.alert_key},
            {"text", policy::explain(made)}};
}

json to_json(const policy::pin& pinned) {
    return {{"home", policy::to_string(pinned.home)},
            {"until", to_json(pinned.until)},
            {"by", pinned.by},
            {"reason", pinned.reason}};
}

json to_json(const move::report& ended) {
    json refusals = json::array();
    for (const auto& r : ended.refusals)
        refusals.push_back({{"code", r.code}, {"message", r.message}, {"mend", r.mend}});
    return {{"id", ended.id},
            {"moved", ended.moved},
            {"refusals", std::move(refusals)},
            {"held_ms", ended.held.count()},
            {"detail", ended.detail},
            {"reverse", ended.reverse}};
}

json to_json(const placement::move_record& record) {
    const bool has_ended = record.ended != policy::time_point{};
    json held = nullptr;
    if (record.plan.is_object()) held = record.plan.value("held_ms", json(nullptr));
    return {{"id", record.id},
            {"tool", record.tool},
            {"from", policy::to_string(record.from)},
            {"to", policy::to_string(record.to)},
            {"epoch", record.epoch},
            {"phase", record.phase},
            {"outcome", record.outcome.empty() ? json("running") : json(record.outcome)},
            {"reason", record.reason},
            {"ordered_by", record.ordered_by},
            {"started_at", to_json(record.started)},
            {"ended_at", has_ended ? to_json(record.ended) : json(nullptr)},
            {"held_ms", std::move(held)}};
}

json to_json(const order& given) {
    const auto live = given.live->now();
    const bool queued = given.at == order::state::queued;
    const auto waits = queued                   ? std::string("its turn: other moves are under way")
                       : live.waits_for.empty() ? given.waits_for
                                                : live.waits_for;
    return {{"order", given.number},
            {"tool", given.what.tool},
            {"to", policy::to_string(given.what.to)},
            {"ordered_by", given.what.ordered_by},
            {"state", to_string(given.at)},
            {"move", given.move_id},
            {"phase", given.phase},
            {"phase_since", to_json(given.phase_since)},
            {"waits_for", waits},
            {"decision", given.what.decision},
            {"doing", live.doing},
            {"rows", live.doing.empty() ? json(nullptr) : json(live.rows)},
            {"of_rows", live.of == 0 ? json(nullptr) : json(live.of)},
            {"rows_per_s", or_null(live.rows_per_second())},
            {"rest_s", or_null(live.rest_seconds())},
            {"given_at", to_json(given.given)},
            {"report", given.report ? to_json(*given.report) : json(nullptr)}};
}

json to_json(const policy::runbook_state& state) {
    json pairs = json::array();
    for (const auto& [key, value] : policy::to_pairs(state))
        pairs.push_back(json::array({key, value}));
    return {{"version", state_version}, {"state", std::move(pairs)}};
}

tl::expected<policy::runbook_state, std::string> state_from_json(const json& body) {
    if (!body.is_object() || !body.contains("state") || !body.at("state").is_array())
        return tl::unexpected(std::string("the stored runbook is not one"));
    policy::flat_state pairs;
    for (const auto& pair : body.at("state")) {
        if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
            return tl::unexpected(std::string("the stored runbook is not one"));
        pairs.emplace_back(pair[0].get<std::string>(), pair[1].get<std::string>());
    }
    return policy::from_pairs(pairs);
}

}  // namespace hotlane::control
