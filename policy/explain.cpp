// Decisions and states in words: what, why, since when, what next, what would change it.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "policy/decision.hpp"
#include "policy/runbook.hpp"
#include "policy/verdict.hpp"

namespace hotlane::policy {

namespace {

// One place for all sentences about what was expected and what came true.
std::string ms(double us) {
    return fmt::format("{:.1f} ms", us / 1'000.0);
}

std::string line_of(const home_figures& f) {
    return fmt::format("{} a write (95 % within {}), {:.0f} writes/s, {:.1f} % failing",
                       ms(f.latency_us),
                       ms(f.p95_us),
                       f.writes_per_s,
                       f.failure_rate * 100);
}

std::string line_of(const lane_rates& r) {
    return fmt::format("handoff rate {:.2f}, mean wait {}, conflict rate {:.2f}",
                       r.handoff_rate,
                       ms(r.mean_wait_us),
                       r.conflict_rate);
}

std::string line_of(const neighbour_view& n) {
    return fmt::format("{:.0f} writes/s, handoff rate {:.2f}, mean wait {}",
                       n.acquires_per_s,
                       n.handoff_rate,
                       ms(n.mean_wait_us));
}

// Faster is less waiting; less than a tenth is noise.
std::string_view verdict_on(const neighbour_view& before, const neighbour_view& after) {
    const double was = before.handoff_rate * before.mean_wait_us;
    const double is = after.handoff_rate * after.mean_wait_us;
    constexpr double noise = 0.1;
    if (was <= 0.0 && is <= 0.0) return "they did not wait before and do not wait now";
    if (is < was * (1.0 - noise)) return "they got faster";
    return is > was * (1.0 + noise) ? "they did not get faster, they wait more"
                                    : "they did not get faster";
}

// Of a decision, or of a tool's state: both keep what was expected under the same names.
template <typename Kept>
std::string neighbours_of(const Kept& made) {
    if (!made.neighbours_before) return {};
    const auto& before = *made.neighbours_before;
    std::string out = fmt::format("the other {} {} on its storage: {}",
                                  before.tools,
                                  before.tools == 1 ? "tool" : "tools",
                                  line_of(before));
    if (made.neighbours_after)
        out += fmt::format(" before, {} after: {}",
                           line_of(*made.neighbours_after),
                           verdict_on(before, *made.neighbours_after));
    return out + "\n";
}

template <typename Kept>
std::string expectations_of(const Kept& made) {
    std::string out;
    if (made.forecast) out += fmt::format("forecast for PostgreSQL: {}\n", line_of(*made.forecast));
    if (made.came_true) out += fmt::format("what came true there: {}\n", line_of(*made.came_true));
    if (made.foreseen)
        out += fmt::format("predicted for the engine: {}\n", line_of(*made.foreseen));
    if (made.seen_at_home)
        out += fmt::format("what came true there: {}\n", line_of(*made.seen_at_home));
    return out + neighbours_of(made);
}

std::string figure(double value, const std::string& unit) {
    if (unit == "us") return fmt::format("{:.1f} ms", value / 1'000.0);
    if (unit == "windows") return fmt::format("{:.0f}", value);
    if (unit == "s") return fmt::format("{:.0f} s", value);
    return fmt::format("{:.2f}", value);
}

std::string line_of(const measure& m) {
    const double margin = m.margin();
    return fmt::format("  {:<17} {:>9}, threshold {:>9} ({} {}){}\n",
                       m.name,
                       figure(m.value, m.unit),
                       figure(m.threshold, m.unit),
                       margin < 0 ? "under by" : "over by",
                       figure(margin < 0 ? -margin : margin, m.unit),
                       m.passed ? "" : ", not passed");
}

std::string line_of(const window& w, time_point now) {
    std::string line = fmt::format(
        "  {} ago, {}: {} acquires", text_of(now - w.to), to_string(w.quality), w.acquires);
    if (const auto rate = w.handoff_rate()) line += fmt::format(", handoff rate {:.2f}", *rate);
    if (const auto wait = w.mean_wait_us())
        line += fmt::format(", mean wait {:.1f} ms", *wait / 1'000.0);
    if (const auto rate = w.abort_rate()) line += fmt::format(", abort rate {:.2f}", *rate);
    if (w.seen_writes > 0)
        line += fmt::format(", seen {} writes, {} conflicts", w.seen_writes, w.seen_conflicts);
    if (!w.note.empty()) line += " (" + w.note + ")";
    return line + "\n";
}

std::string lines_of(const finding& found) {
    std::string text = fmt::format("  diagnosis {}", to_string(found.what));
    if (!found.table.empty()) text += fmt::format(", table {}", found.table);
    if (found.conflict_rate) text += fmt::format(", conflict rate {:.2f}", *found.conflict_rate);
    if (found.seen_share) text += fmt::format(", hotlane saw {:.0f} %", *found.seen_share * 100);
    return text + "\n  " + found.note + "\n";
}

// What its windows say together against the thresholds that count for it now.
std::string measured_at_engine(const runbook_state& s, const settings& with, time_point now) {
    const auto at = s.hot_since ? level::leave : level::enter;
    const auto seen = prove(s.windows, with, at, commit_latency_of(s, with), s.evidence_from, now);
    if (seen.windows.empty()) return "nothing was measured under load since it was last judged\n";
    std::string out =
        fmt::format("the last {} windows under load: {} hot, {} calm ({} of {} {}); together:\n",
                    seen.windows.size(),
                    seen.hot,
                    seen.calm,
                    seen.needed,
                    seen.wanted,
                    s.hot_since ? "calm ones end it" : "hot ones flag it");
    const auto add =
        [&](const char* name, const char* unit, std::optional<double> value, double limit) {
            if (value) out += line_of(measure{name, unit, *value, limit, true});
        };
    add("handoff rate", "", seen.pooled.handoff_rate(), seen.over.handoff_rate);
    add("mean wait", "us", seen.pooled.mean_wait_us(), seen.over.mean_wait_us);
    add("abort rate", "", seen.pooled.abort_rate(), seen.over.abort_rate);
    add("conflict rate", "", seen.pooled.conflict_rate(), seen.over.conflict_rate);
    return out;
}

std::string measured_of(const runbook_state& s, const settings& with, time_point now) {
    if (s.home == home_kind::engine) return measured_at_engine(s, with, now);
    for (auto one = s.away_windows.rbegin(); one != s.away_windows.rend(); ++one)
        if (one->predicted)
            return fmt::format("at home its writes would now show: {}\n",
                               line_of(lane_rates{one->predicted->handoff_rate().value_or(0.0),
                                                  one->predicted->mean_wait_us().value_or(0.0),
                                                  one->predicted->conflict_rate().value_or(0.0)}));
    return {};
}

std::string what_of(const runbook_state& s) {
    if (s.in_incident && s.home == home_kind::engine)
        return "is hot together with others on its storage, so nothing is decided about it";
    switch (s.at) {
        case stage::watching:
            return s.sharded ? "is home on the engine and calm, its hot row is split"
                             : "is home on the engine and not hot";
        case stage::flagged:
            return fmt::format("is hot on the engine (diagnosis: {})", to_string(s.why));
        case stage::sharding:
            return "is hot; splitting its hot row was advised";
        case stage::remeasuring:
            return "is being measured again after lever 2";
        case stage::would_move:
            return "is hot and would be moved to PostgreSQL";
        case stage::moving_out:
            return "is moving to PostgreSQL";
        case stage::on_postgres:
            return "lives on PostgreSQL";
        case stage::would_return:
            return "lives on PostgreSQL and would be brought home";
        case stage::moving_back:
            return "is moving home to the engine";
    }
    return {};
}

std::string next_when_hot_row(const runbook_state& s, const settings& with, time_point now) {
    const event nothing;
    const evidence unseen;
    const fleet_view alone;
    const auto next = next_lever(context{with, s, nothing, unseen, alone, now});
    if (!next) return "nothing by itself: no lever is left, or levers.route is off";
    switch (*next) {
        case lever::retry:
            return fmt::format(
                "the retry of its conflicts; if it is still hot at {}, the next "
                "lever",
                text_of(s.hot_since.value_or(now) + with.levers.retry_deadline));
        case lever::shard:
            return "the advice to split the hot row";
        case lever::route:
            return "the move to PostgreSQL";
    }
    return {};
}

std::string next_when_flagged(const runbook_state& s, const settings& with, time_point now) {
    switch (s.why) {
        case diagnosis::busy_lane:
            return with.diagnose.busy_lane == busy_handling::route
                       ? "the move to PostgreSQL, as diagnose.busy_lane says"
                       : "nothing by itself: a busy lane wants batching, more databases or cheaper "
                         "statements";
        case diagnosis::unknown:
            return "a diagnosis, once hotlane sees enough of the tool's writes";
        case diagnosis::none:
            return "nothing by itself: its writes fail, but not by conflicts";
        case diagnosis::hot_row:
            return next_when_hot_row(s, with, now);
    }
    return {};
}

std::string next_of(const runbook_state& s, const settings& with, time_point now) {
    const proof_size size = size_of_proof(with);
    if (s.in_incident && s.home == home_kind::engine)
        return "it is measured afresh when the others are calm again, or when the heat is " +
               text_of(with.rails.incident_hold) + " old";
    switch (s.at) {
        case stage::watching:
            return fmt::format(
                "it is flagged when {} of {} windows under load are hot, all of them "
                "together too, over at least {}",
                size.needed,
                size.wanted,
                text_of(size.covered_min));
        case stage::flagged:
            return next_when_flagged(s, with, now);
        case stage::sharding:
            return fmt::format(
                "`hotlane shard done` or `hotlane shard skip`; at {} it goes on by "
                "itself",
                text_of(s.since + with.levers.shard_deadline));
        case stage::remeasuring:
            return fmt::format("{} of {} of load are measured; then calm or lever 3",
                               text_of(s.load),
                               text_of(with.levers.remeasure));
        case stage::would_move:
            return "nothing by itself: mode act or `hotlane route --to postgres --execute` moves "
                   "it";
        case stage::moving_out:
        case stage::moving_back:
            return "the move ends: done, undone or refused";
        case stage::on_postgres:
            return fmt::format(
                "it returns after {} calm windows in a row under load (now {}), the "
                "busiest of the last {} included",
                with.come_back.calm_windows,
                s.calm_at.size(),
                text_of(with.come_back.lookback));
        case stage::would_return:
            return "nothing by itself: mode act or `hotlane route --to engine --execute` moves it";
    }
    return {};
}

std::string change_of(const runbook_state& s, const settings& with) {
    switch (s.at) {
        case stage::watching:
            return "contention: writers that wait for each other, or conflicts";
        case stage::flagged:
        case stage::sharding:
        case stage::would_move:
            return "calm: handoff rate, mean wait, abort rate and conflicts below the thresholds "
                   "for leaving";
        case stage::remeasuring:
            return "what is measured now";
        case stage::moving_out:
        case stage::moving_back:
            return "the move's own checks";
        case stage::on_postgres:
        case stage::would_return:
            return fmt::format(
                "a prediction that is not calm with {:.0f} % to spare, a predicted "
                "lane use above {:.2f}, or a pin",
                with.come_back.margin * 100,
                with.come_back.lane_use_max);
    }
    return {};
}

std::string rails_of(const runbook_state& s, const settings& with, time_point now) {
    std::string lines;
    if (s.pinned && s.pinned->until > now)
        lines += fmt::format("rail: {} pinned it to {} until {}{}{}\n",
                             s.pinned->by,
                             to_string(s.pinned->home),
                             text_of(s.pinned->until),
                             s.pinned->reason.empty() ? "" : ": ",
                             s.pinned->reason);
    if (with.pinned && with.pinned->until > now)
        lines += fmt::format("rail: the configuration pins it to {} until {}: {}\n",
                             to_string(with.pinned->home),
                             text_of(with.pinned->until),
                             with.pinned->reason);
    if (const auto until = frozen_until(with.rails.freezes, now))
        lines += fmt::format("rail: the calendar freezes moves until {}\n", text_of(*until));
    if (const duration held = held_lately(s, now); held > duration{0})
        lines += fmt::format("its clients were held for {} in the last 24 h{}\n",
                             text_of(held),
                             with.rails.hold_budget > duration{0}
                                 ? ", the budget is " + text_of(with.rails.hold_budget)
                                 : "");
    if (s.quiet_until && *s.quiet_until > now)
        lines += fmt::format("rail: cooldown until {} after {} failed or refused moves\n",
                             text_of(*s.quiet_until),
                             s.failures);
    if (s.home_since && now - *s.home_since < min_stay_of(s, with))
        lines += fmt::format("rail: it stays where it is until {}{}\n",
                             text_of(*s.home_since + min_stay_of(s, with)),
                             s.flaps > 0 ? ", longer than usual because it flapped" : "");
    return lines;
}

}  // namespace

std::string text_of(time_point at) {
    return fmt::format("{:%Y-%m-%d %H:%M:%S}Z",
                       std::chrono::time_point_cast<std::chrono::seconds>(at));
}

std::string text_of(duration length) {
    const auto ms = length.count() < 0 ? 0 : length.count();
    if (ms < 1'000) return fmt::format("{} ms", ms);
    if (ms < 60'000)
        return ms % 1'000 == 0 ? fmt::format("{} s", ms / 1'000)
                               : fmt::format("{:.1f} s", static_cast<double>(ms) / 1'000.0);
    const auto seconds = ms / 1'000;
    if (seconds < 3'600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
    if (seconds < 86'400) return fmt::format("{} h {} min", seconds / 3'600, seconds % 3'600 / 60);
    return fmt::format("{} d {} h", seconds / 86'400, seconds % 86'400 / 3'600);
}

std::string explain(const decision& made) {
    std::string out = fmt::format("{} {}: ", text_of(made.at), made.tool);
    out += made.from == made.to ? fmt::format("stays {}", to_string(made.from))
                                : fmt::format("{} -> {}", to_string(made.from), to_string(made.to));
    out += fmt::format(" [{}]\n", made.rule);
    out += fmt::format("why: {}\n", made.reason);
    for (const measure& one : made.measures)
        out += line_of(one);
    if (!made.found.note.empty() && !made.measures.empty()) out += lines_of(made.found);
    if (!made.windows.empty()) {
        out += fmt::format("windows ({}):\n", made.windows.size());
        for (auto one = made.windows.rbegin(); one != made.windows.rend(); ++one)
            out += line_of(*one, made.at);
    }
    out += expectations_of(made);
    out += fmt::format("done: {}\n", made.done);
    if (!made.would_change.empty())
        out += fmt::format("what would change it: {}\n", made.would_change);
    out += fmt::format("policy: {}{}{}, mode {}",
                       made.policy,
                       made.where.empty() ? "" : " at ",
                       made.where,
                       to_string(made.act_mode));
    return out;
}

std::string explain(const std::string& tool,
                    const runbook_state& state,
                    const settings& with,
                    time_point now) {
    std::string out = fmt::format("{} {}.\n", tool, what_of(state));
    if (state.since > time_point{})
        out += fmt::format("since: {} ({} ago), stage {}\n",
                           text_of(state.since),
                           text_of(now - state.since),
                           to_string(state.at));
    if (state.hot_since)
        out += fmt::format("hot since: {} ({} ago){}{}\n",
                           text_of(*state.hot_since),
                           text_of(now - *state.hot_since),
                           state.table.empty() ? "" : ", table ",
                           state.table);
    const auto& windows = state.home == home_kind::engine ? state.windows : state.away_windows;
    if (windows.empty())
        out += "no window was measured yet\n";
    else
        out += "last window:\n" + line_of(windows.back(), now);
    out += measured_of(state, with, now) + expectations_of(state);
    out += rails_of(state, with, now);
    out += fmt::format("next: {}\n", next_of(state, with, now));
    out += fmt::format("what would change it: {}\n", change_of(state, with));
    out += fmt::format("policy: {}{}{}, mode {}",
                       with.name,
                       with.where.empty() ? "" : " at ",
                       with.where,
                       to_string(with.act_mode));
    return out;
}

}  // namespace hotlane::policy
