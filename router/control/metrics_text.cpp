// Fills the snapshot that a scrape of /metrics is made of.
#include <algorithm>

#include "router/control/controller.hpp"

namespace hotlane::control {

namespace {

template <typename Number>
std::uint64_t read(const std::atomic<Number>& value) {
    return static_cast<std::uint64_t>(std::max<Number>(0, value.load(std::memory_order_relaxed)));
}

std::optional<double> in_seconds(const std::optional<double>& microseconds) {
    if (!microseconds) return std::nullopt;
    return *microseconds * 1e-6;
}

void add_thresholds(metrics::tool_snapshot& out, const tool_view& tool) {
    const auto latency = policy::commit_latency_of(tool.state, tool.settings);
    const auto add = [&](policy::level at, const char* edge) {
        const auto over = policy::thresholds_of(tool.settings, at, latency);
        out.thresholds.push_back({"handoff_ratio", edge, over.handoff_rate});
        out.thresholds.push_back({"mean_wait_seconds", edge, over.mean_wait_us * 1e-6});
        out.thresholds.push_back({"abort_ratio", edge, over.abort_rate});
    };
    add(policy::level::enter, "enter");
    add(policy::level::leave, "leave");
    out.thresholds.push_back({"conflict_ratio", "enter", tool.settings.diagnose.conflict_rate_hot});
}

void add_window(metrics::tool_snapshot& out, const tool_view& tool) {
    const bool is_good = tool.window && tool.window->quality == policy::window_quality::good;
    if (is_good) {
        out.handoff_ratio = tool.window->handoff_rate();
        out.mean_wait_seconds = in_seconds(tool.window->mean_wait_us());
        out.abort_ratio = tool.window->abort_rate();
        out.conflict_ratio = tool.window->conflict_rate();
    }
    const bool is_away = tool.state.home == policy::home_kind::postgres;
    if (!is_away || tool.state.away_windows.empty()) return;
    out.predicted_lane_use_ratio = tool.evidence_now.lane_use;
    if (const auto& seen = tool.state.away_windows.back().predicted) {
        out.predicted_handoff_ratio = seen->handoff_rate();
        out.predicted_conflict_ratio = seen->conflict_rate();
        out.predicted_mean_wait_seconds = in_seconds(seen->mean_wait_us());
    }
}

void add_traffic(metrics::tool_snapshot& out, const tool_view& tool) {
    const auto& c = tool.entry->counted;
    out.sessions = read(c.sessions);
    out.held = tool.entry->gate.waiting();
    out.traffic = placement::traffic_of(c);
    out.links_open = read(c.links_open);
    out.links_lent = read(c.links_lent);
    out.link_waiters = read(c.link_waiters);
    out.link_waits = read(c.link_waits);
    out.link_wait_us = read(c.link_wait_us);
    out.links_made = read(c.link_opens);
    out.link_failures = read(c.link_failures);
    out.pinned = read(c.pinned_now);
    out.retry_tries = read(c.retry_tries);
    const auto counts = [](const auto& labels, const auto& values, auto& into) {
        for (std::size_t i = 0; i < labels.size(); ++i)
            into.emplace(labels[i], read(values[i]));
    };
    counts(placement::link_ends, c.links_closed, out.links_closed);
    counts(placement::pin_reasons, c.pins, out.pins);
    out.pins.erase("none");
    counts(placement::retry_outcomes, c.retries, out.retries);
    counts(placement::after_error_words, c.after_error, out.after_error);
    out.after_error_blocks = read(c.after_error_blocks);
}

// What was expected of the last moves, what came true, and what the expectations rest on.
void add_foresight(metrics::tool_snapshot& out, const tool_view& tool) {
    if (tool.state.forecast) out.forecast_failures = tool.state.forecast->failure_rate;
    if (tool.state.came_true) out.came_true_failures = tool.state.came_true->failure_rate;
    if (tool.state.seen_at_home) out.foresight_wait_factor = tool.state.foresight_wait_factor;
    out.foreseen = tool.state.foreseen;
    out.seen_at_home = tool.state.seen_at_home;
    if (tool.state.forecast) out.forecast_seconds = tool.state.forecast->latency_us * 1e-6;
    if (tool.state.came_true) out.came_true_seconds = tool.state.came_true->latency_us * 1e-6;
    if (tool.engine.is_measured) out.lane_seconds = tool.engine.in_lane_us * 1e-6;
    if (tool.state.commit_latency_us)
        out.commit_seconds = static_cast<double>(*tool.state.commit_latency_us) * 1e-6;
    out.writes_dropped = tool.entry->writes.dropped();
}

static_assert(placement::hold_edges == metrics::hold_edges);

void add_holds(metrics::tool_snapshot& out, const tool_view& tool) {
    const auto& held = tool.entry->counted.held_for;
    for (std::size_t i = 0; i < held.counts.size(); ++i)
        out.hold.counts[i] = read(held.counts[i]);
    out.hold.sum_seconds = static_cast<double>(read(held.sum_us)) * 1e-6;
}

void add_rails(metrics::tool_snapshot& out, const tool_view& tool, policy::time_point now) {
    const auto seconds = [](policy::duration length) {
        return std::chrono::duration<double>(length).count();
    };
    out.in_incident = tool.state.in_incident;
    out.hold_used_seconds = seconds(policy::held_lately(tool.state, now));
    const auto limit = tool.settings.rails.hold_budget;
    if (limit > policy::duration{0}) out.hold_limit_seconds = seconds(limit);
}

metrics::tool_snapshot tool_figures(const tool_view& tool, policy::time_point now) {
    metrics::tool_snapshot out;
    out.tool = tool.entry->name;
    out.policy = tool.settings.name;
    out.mode = tool.settings.act_mode;
    out.stage = tool.state.at;
    out.stage_since = tool.state.since;
    out.verdict = tool.verdict;
    out.diagnosis = tool.state.why;
    add_thresholds(out, tool);
    add_window(out, tool);
    add_traffic(out, tool);
    add_holds(out, tool);
    add_foresight(out, tool);
    add_rails(out, tool, now);
    out.moves = tool.moves_ended;
    out.engine_up = tool.engine_up;
    out.postgres_up = tool.postgres_up;
    out.home = tool.route->at.kind;
    out.epoch = tool.route->epoch;
    out.served = tool.route->served;
    out.samples = tool.sampling.samples + tool.sampling.failures;
    out.sample_errors = tool.sampling.failures;
    out.sampled_at = tool.sampling.last_at;
    if (tool.sampling.last_at)
        out.sample_seconds = static_cast<double>(tool.sampling.last_cost.count()) * 1e-6;
    out.windows = tool.windows_by_quality;
    return out;
}

}  // namespace

metrics::snapshot controller::take_snapshot() {
    metrics::snapshot out;
    out.what.version = hooks_.version;
    out.what.compiler = __VERSION__;
    // In a fleet the leader reads the journal; a scrape of each sidecar would cost the store.
    placement::stored<std::vector<placement::move_record>> unfinished;
    placement::stored<std::vector<placement::move_record>> recent;
    if (in_.may_decide()) {
        unfinished = in_.store.unfinished_moves();
        recent = in_.store.recent_moves(1'000);
    }
    if (coordinator_ != nullptr) {
        const auto now = coordinator_->now();
        out.fleet = metrics::fleet_snapshot{now.store_up,
                                            coordinator_->decides(),
                                            now.leader,
                                            now.held,
                                            now.unconfirmed,
                                            now.statements,
                                            now.elections};
    }
    const auto alarms = late_writes();
    for (const auto& each : desks()) {
        auto tool = tool_figures(each->view(), in_.now());
        const auto active = mover_.active(each->name());
        if (active && active->at == order::state::running)
            tool.move = {active->what.to, active->phase, active->given, active->phase_since};
        const auto is_mine = [&](const auto& record) { return record.tool == each->name(); };
        if (unfinished)
            tool.fence_left =
                !active && std::any_of(unfinished->begin(), unfinished->end(), is_mine);
        if (recent)
            tool.late_write = std::any_of(recent->begin(), recent->end(), [&](const auto& record) {
                return is_mine(record) && alarms.count(record.id) > 0;
            });
        out.tools.push_back(std::move(tool));
    }
    const auto model = model_.get();
    const auto loads = reloads();
    out.config_ok = loads.ok;
    out.config_at = loads.succeeded_at;
    out.config_reloads_ok = loads.successes;
    out.config_reloads_failed = loads.failures;
    out.config_hash = model->hash;
    if (in_.record != nullptr) {
        out.recorded_bytes = in_.record->bytes();
        out.recording_errors = in_.record->errors();
    }
    out.process = metrics::read_process_usage();
    if (hooks_.figures) hooks_.figures(out);
    return out;
}

std::string controller::metrics_text() {
    return exposition_.text();
}

}  // namespace hotlane::control
