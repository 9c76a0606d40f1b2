#include "metrics/exposition.hpp"

#include <algorithm>
#include <cmath>

#include <prometheus/text_serializer.h>

#include "metrics/log.hpp"

namespace hotlane::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using label_values = std::vector<std::string_view>;

double seconds(policy::time_point at) {
    return static_cast<double>(at.time_since_epoch().count()) / 1000.0;
}
template <class T>
double wide(T value) {
    return static_cast<double>(value);
}

// One family; label names come from the table, values in the same order.
class family {
  public:
    explicit family(const metric_name& what) : what_{what} {
        out_.name = std::string{what.name};
        out_.help = std::string{what.help};
        switch (what.kind) {
            case metric_kind::counter:
                out_.type = prometheus::MetricType::Counter;
                break;
            case metric_kind::gauge:
                out_.type = prometheus::MetricType::Gauge;
                break;
            case metric_kind::histogram:
                out_.type = prometheus::MetricType::Histogram;
                break;
        }
    }

    void add(const label_values& values, double value) {
        auto m = labelled(values);
        m.counter.value = value;
        m.gauge.value = value;
        out_.metric.push_back(std::move(m));
    }
    void add(const label_values& values, std::optional<double> value) {
        if (value) add(values, *value);
    }
    void add(const label_values& values, const hold_histogram& h) {
        auto m = labelled(values);
        std::uint64_t below = 0;
        for (std::size_t i = 0; i < h.counts.size(); ++i) {
            below += h.counts[i];
            const double edge =
                i < hold_edges.size() ? hold_edges[i] : std::numeric_limits<double>::infinity();
            m.histogram.bucket.push_back({below, edge});
        }
        m.histogram.sample_count = below;
        m.histogram.sample_sum = h.sum_seconds;
        out_.metric.push_back(std::move(m));
    }

    MetricFamily take() { return std::move(out_); }

  private:
    ClientMetric labelled(const label_values& values) const {
        ClientMetric m;
        auto names = what_.labels;
        for (const auto value : values) {
            const auto comma = std::min(names.find(','), names.size());
            m.label.push_back({std::string{names.substr(0, comma)}, valid_utf8(value)});
            names.remove_prefix(std::min(comma + 1, names.size()));
        }
        return m;
    }

    const metric_name& what_;
    MetricFamily out_;
};

class writer {
  public:
    explicit writer(const snapshot& all) : all_{all} {
        for (const auto& t : all.tools) {
            if (tools_.size() < tools_exported_max) tools_.push_back(&t);
        }
    }

    std::vector<MetricFamily> write() {
        process();
        runbook();
        signals();
        foresight();
        traffic();
        moves();
        homes();
        samples();
        return std::move(out_);
    }

  private:
    using one = const tool_snapshot&;

    void single(const metric_name& what, double value, const label_values& labels = {}) {
        family f{what};
        f.add(labels, value);
        out_.push_back(f.take());
    }
    // One value for each tool; `get` may say that there is none.
    template <class F>
    void by_tool(const metric_name& what, F get) {
        family f{what};
        for (const auto* t : tools_)
            f.add({t->tool}, get(*t));
        out_.push_back(f.take());
    }
    template <class F>
    void each_tool(const metric_name& what, F add) {
        family f{what};
        for (const auto* t : tools_)
            add(f, *t);
        out_.push_back(f.take());
    }
    // 1 for the value that holds, 0 for all others: absent series would hide in alerts.
    template <class E, std::size_t N, class F>
    void states(const metric_name& what, const std::array<E, N>& all, F get) {
        each_tool(what, [&](family& f, one t) {
            for (const auto value : all) {
                f.add({t.tool, policy::to_string(value)}, value == get(t) ? 1.0 : 0.0);
            }
        });
    }

    void add_fleet(const fleet_snapshot& f) {
        single(names::fleet_store_up, f.store_up ? 1 : 0);
        single(names::fleet_leads, f.leads ? 1 : 0);
        single(names::fleet_leader_number, wide(f.leader_number));
        single(names::fleet_held_tools, wide(f.held_tools));
        single(names::fleet_unconfirmed_tools, wide(f.unconfirmed_tools));
        single(names::fleet_store_statements, wide(f.store_statements));
        single(names::fleet_elections, wide(f.elections));
    }

    void process() {
        const auto& w = all_.what;
        single(names::build_info, 1, {w.version, w.revision, w.compiler});
        single(names::tools, wide(all_.tools.size()));
        single(names::tools_not_exported, wide(all_.tools.size() - tools_.size()));
        single(names::client_connections, wide(all_.client_connections));
        single(names::client_connections_total, wide(all_.client_connections_total));
        auto hits = all_.limit_hits;
        for (const auto name : limit_names)
            hits.try_emplace(std::string{name}, 0);
        family limits{names::limit_hits};
        for (const auto& [name, n] : hits)
            limits.add({name}, wide(n));
        out_.push_back(limits.take());
        single(names::log_suppressed, wide(all_.log_suppressed));
        single(names::record_bytes, wide(all_.recorded_bytes));
        single(names::record_errors, wide(all_.recording_errors));
        if (all_.fleet) add_fleet(*all_.fleet);
        single(names::config_ok, all_.config_ok ? 1 : 0);
        single(names::config_at, seconds(all_.config_at));
        family reloads{names::config_reloads};
        reloads.add({"ok"}, wide(all_.config_reloads_ok));
        reloads.add({"failed"}, wide(all_.config_reloads_failed));
        out_.push_back(reloads.take());
        single(names::config_info, 1, {all_.config_hash});
        const auto& p = all_.process;
        single(names::cpu, p.cpu_seconds);
        single(names::resident, p.resident_bytes);
        single(names::virtual_memory, p.virtual_bytes);
        single(names::open_fds, p.open_fds);
        single(names::max_fds, p.max_fds);
        single(names::start_time, p.start_seconds);
    }

    void runbook() {
        using policy::diagnosis;
        using policy::stage;
        using policy::verdict;
        constexpr std::array stages{stage::watching,
                                    stage::flagged,
                                    stage::sharding,
                                    stage::remeasuring,
                                    stage::would_move,
                                    stage::moving_out,
                                    stage::on_postgres,
                                    stage::would_return,
                                    stage::moving_back};
        constexpr std::array verdicts{verdict::hot, verdict::calm, verdict::idle, verdict::unknown};
        constexpr std::array diagnoses{
            diagnosis::none, diagnosis::hot_row, diagnosis::busy_lane, diagnosis::unknown};
        states(names::tool_stage, stages, [](one t) { return t.stage; });
        by_tool(names::tool_stage_since, [](one t) { return seconds(t.stage_since); });
        states(names::tool_verdict, verdicts, [](one t) { return t.verdict; });
        states(names::tool_diagnosis, diagnoses, [](one t) { return t.diagnosis; });
        each_tool(names::policy_info, [](family& f, one t) {
            f.add({t.tool, t.policy, policy::to_string(t.mode)}, 1.0);
        });
    }

    void signals() {
        by_tool(names::handoff_ratio, [](one t) { return t.handoff_ratio; });
        by_tool(names::mean_wait, [](one t) { return t.mean_wait_seconds; });
        by_tool(names::abort_ratio, [](one t) { return t.abort_ratio; });
        by_tool(names::conflict_ratio, [](one t) { return t.conflict_ratio; });
        each_tool(names::threshold, [](family& f, one t) {
            for (const auto& h : t.thresholds)
                f.add({t.tool, h.signal, h.edge}, h.value);
        });
        by_tool(names::predicted_handoff_ratio, [](one t) { return t.predicted_handoff_ratio; });
        by_tool(names::predicted_conflict_ratio, [](one t) { return t.predicted_conflict_ratio; });
        by_tool(names::predicted_lane_use_ratio, [](one t) { return t.predicted_lane_use_ratio; });
        by_tool(names::predicted_wait, [](one t) { return t.predicted_mean_wait_seconds; });
        by_tool(names::lane_time, [](one t) { return t.lane_seconds; });
        by_tool(names::commit_time, [](one t) { return t.commit_seconds; });
        by_tool(names::writes_dropped, [](one t) { return wide(t.writes_dropped); });
    }

    // hotlane measures its own foresight: what it said of the last move, and what came true.
    void foresight() {
        using rates = policy::lane_rates;
        const auto both = [&](const metric_name& what, double rates::*part, double unit) {
            each_tool(what, [&](family& f, one t) {
                if (t.foreseen) f.add({t.tool, "predicted"}, (*t.foreseen).*part * unit);
                if (t.seen_at_home) f.add({t.tool, "measured"}, (*t.seen_at_home).*part * unit);
                const bool is_known = t.foreseen && t.seen_at_home;
                if (is_known && &what == &names::foresight_handoff)
                    f.add({t.tool, "error"},
                          std::abs((*t.seen_at_home).*part - (*t.foreseen).*part));
            });
        };
        both(names::foresight_handoff, &rates::handoff_rate, 1.0);
        both(names::foresight_wait, &rates::mean_wait_us, 1e-6);
        both(names::foresight_conflict, &rates::conflict_rate, 1.0);
        each_tool(names::forecast_latency, [](family& f, one t) {
            if (t.forecast_seconds) f.add({t.tool, "predicted"}, *t.forecast_seconds);
            if (t.came_true_seconds) f.add({t.tool, "measured"}, *t.came_true_seconds);
        });
        each_tool(names::forecast_failure, [](family& f, one t) {
            if (t.forecast_failures) f.add({t.tool, "predicted"}, *t.forecast_failures);
            if (t.came_true_failures) f.add({t.tool, "measured"}, *t.came_true_failures);
        });
        by_tool(names::foresight_factor, [](one t) { return t.foresight_wait_factor; });
        by_tool(names::incident, [](one t) { return t.in_incident ? 1.0 : 0.0; });
        each_tool(names::hold_budget, [](family& f, one t) {
            f.add({t.tool, "used"}, t.hold_used_seconds);
            if (t.hold_limit_seconds) f.add({t.tool, "limit"}, *t.hold_limit_seconds);
        });
    }

    void traffic() {
        by_tool(names::sessions, [](one t) { return wide(t.sessions); });
        by_tool(names::held_clients, [](one t) { return wide(t.held); });
        by_tool(names::transactions, [](one t) { return wide(t.traffic.transactions); });
        by_tool(names::write_transactions,
                [](one t) { return wide(t.traffic.write_transactions); });
        by_tool(names::conflicts, [](one t) { return wide(t.traffic.write_conflicts); });
        by_tool(names::client_errors, [](one t) { return wide(t.traffic.errors); });
        by_tool(names::unknown_outcomes, [](one t) { return wide(t.traffic.unknown_outcomes); });
        by_tool(names::queue_wait, [](one t) { return wide(t.traffic.hold_wait_us) / 1e6; });
        by_tool(names::hold, [](one t) { return t.hold; });
        links();
    }

    void links() {
        by_tool(names::links_open, [](one t) { return wide(t.links_open); });
        by_tool(names::links_lent, [](one t) { return wide(t.links_lent); });
        by_tool(names::link_waiters, [](one t) { return wide(t.link_waiters); });
        by_tool(names::link_waits, [](one t) { return wide(t.link_waits); });
        by_tool(names::link_wait, [](one t) { return wide(t.link_wait_us) / 1e6; });
        by_tool(names::links_made, [](one t) { return wide(t.links_made); });
        by_tool(names::link_failures, [](one t) { return wide(t.link_failures); });
        by_tool(names::pinned, [](one t) { return wide(t.pinned); });
        by_tool(names::retry_tries, [](one t) { return wide(t.retry_tries); });
        const auto each = [&](const metric_name& what, auto tool_snapshot::*counts) {
            each_tool(what, [&](family& f, one t) {
                for (const auto& [label, n] : t.*counts)
                    f.add({t.tool, label}, wide(n));
            });
        };
        each(names::links_closed, &tool_snapshot::links_closed);
        each(names::pins, &tool_snapshot::pins);
        by_tool(names::after_error_blocks, [](one t) { return wide(t.after_error_blocks); });
        each(names::after_error, &tool_snapshot::after_error);
        each(names::retries, &tool_snapshot::retries);
    }

    void moves() {
        each_tool(names::moves, [](family& f, one t) {
            for (const auto to : {policy::home_kind::engine, policy::home_kind::postgres}) {
                for (const auto outcome : move_outcomes) {
                    const auto n = t.moves.find({to, std::string{outcome}});
                    f.add({t.tool, policy::to_string(to), outcome},
                          n == t.moves.end() ? 0.0 : wide(n->second));
                }
            }
        });
        each_tool(names::move_info, [](family& f, one t) {
            if (t.move) f.add({t.tool, policy::to_string(t.move->to), t.move->phase}, 1.0);
        });
        const auto when = [](const std::optional<move_in_progress>& m,
                             policy::time_point move_in_progress::*at) {
            return m ? std::optional<double>{seconds((*m).*at)} : std::nullopt;
        };
        by_tool(names::move_start, [&](one t) { return when(t.move, &move_in_progress::started); });
        by_tool(names::move_phase_start,
                [&](one t) { return when(t.move, &move_in_progress::phase_started); });
        by_tool(names::fence_left, [](one t) { return t.fence_left ? 1.0 : 0.0; });
        by_tool(names::late_write, [](one t) { return t.late_write ? 1.0 : 0.0; });
    }

    void homes() {
        each_tool(names::home_up, [](family& f, one t) {
            if (t.engine_up) f.add({t.tool, "engine"}, *t.engine_up ? 1.0 : 0.0);
            if (t.postgres_up) f.add({t.tool, "postgres"}, *t.postgres_up ? 1.0 : 0.0);
        });
        constexpr std::array both{policy::home_kind::engine, policy::home_kind::postgres};
        states(names::route_info, both, [](one t) { return t.home; });
        by_tool(names::route_epoch, [](one t) { return wide(t.epoch); });
        by_tool(names::route_served, [](one t) { return t.served ? 1.0 : 0.0; });
    }

    void samples() {
        using q = policy::window_quality;
        constexpr std::array qualities{q::good, q::idle, q::reset, q::gap, q::stalled, q::stale};
        by_tool(names::samples, [](one t) { return wide(t.samples); });
        by_tool(names::sample_errors, [](one t) { return wide(t.sample_errors); });
        by_tool(names::sample_duration, [](one t) { return t.sample_seconds; });
        by_tool(names::sample_at, [](one t) {
            return t.sampled_at ? std::optional<double>{seconds(*t.sampled_at)} : std::nullopt;
        });
        each_tool(names::windows, [&](family& f, one t) {
            for (const auto quality : qualities) {
                const auto n = t.windows.find(quality);
                f.add({t.tool, policy::to_string(quality)},
                      n == t.windows.end() ? 0.0 : wide(n->second));
            }
        });
    }

    const snapshot& all_;
    std::vector<const tool_snapshot*> tools_;
    std::vector<MetricFamily> out_;
};

}  // namespace

void hold_histogram::observe(double value) noexcept {
    // An edge is in its bucket (le), hence lower_bound.
    const auto at = std::lower_bound(hold_edges.begin(), hold_edges.end(), value);
    ++counts[static_cast<std::size_t>(at - hold_edges.begin())];
    sum_seconds += value;
}

hold_histogram& hold_histogram::operator+=(const hold_histogram& other) noexcept {
    for (std::size_t i = 0; i < counts.size(); ++i)
        counts[i] += other.counts[i];
    sum_seconds += other.sum_seconds;
    return *this;
}

std::vector<MetricFamily> families(const snapshot& all) {
    return writer{all}.write();
}

exposition::exposition(std::function<snapshot()> take) : take_{std::move(take)} {}

std::vector<MetricFamily> exposition::Collect() const {
    return families(take_());
}

std::string exposition::text() const {
    auto all = Collect();
    // A family without a series would be two comment lines that nobody can use.
    std::erase_if(all, [](const MetricFamily& f) { return f.metric.empty(); });
    return prometheus::TextSerializer{}.Serialize(all);
}

}  // namespace hotlane::metrics
