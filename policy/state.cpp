#include "policy/state.hpp"

#include <array>
#include <charconv>

#include <fmt/format.h>

namespace hotlane::policy {

namespace {

using text = std::string_view;

// --- writing ----------------------------------------------------------------------------------

std::string ms_of(time_point at) {
    return std::to_string(at.time_since_epoch().count());
}

std::string write(const window& w) {
    const auto predicted = w.predicted ? fmt::format("p:{}/{}/{}/{} ",
                                                     w.predicted->acquires,
                                                     w.predicted->handoffs,
                                                     w.predicted->wait_us,
                                                     w.predicted->conflicts)
                                       : std::string();
    return fmt::format("{} {} {} {} {} {} {} {} {} {} {}{}",
                       ms_of(w.from),
                       ms_of(w.to),
                       to_string(w.quality),
                       w.acquires,
                       w.handoffs,
                       w.wait_us,
                       w.commits ? std::to_string(*w.commits) : "-",
                       w.seen_writes,
                       w.seen_conflicts,
                       w.hold_wait_us,
                       predicted,
                       w.note);
}

// --- reading ----------------------------------------------------------------------------------

template <typename Number>
bool read(text from, Number& into) {
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), into);
    return error == std::errc{} && end == from.data() + from.size();
}

bool read(text from, time_point& into) {
    std::int64_t ms = 0;
    if (!read(from, ms)) return false;
    into = time_point{duration{ms}};
    return true;
}

bool read(text from, duration& into) {
    std::int64_t ms = 0;
    if (!read(from, ms)) return false;
    into = duration{ms};
    return true;
}

bool read(text from, bool& into) {
    into = from == "1";
    return from == "0" || from == "1";
}

bool read(text from, std::string& into) {
    into = from;
    return true;
}

// An enum is read as the word that it is written as.
template <typename Enum, std::size_t N>
bool read_word(text from, const std::array<Enum, N>& all, Enum& into) {
    for (const Enum one : all) {
        if (to_string(one) == from) {
            into = one;
            return true;
        }
    }
    return false;
}

bool read(text from, stage& into) {
    using s = stage;
    return read_word(from,
                     std::array{s::watching,
                                s::flagged,
                                s::sharding,
                                s::remeasuring,
                                s::would_move,
                                s::moving_out,
                                s::on_postgres,
                                s::would_return,
                                s::moving_back},
                     into);
}

bool read(text from, home_kind& into) {
    return read_word(from, std::array{home_kind::engine, home_kind::postgres}, into);
}

bool read(text from, diagnosis& into) {
    using d = diagnosis;
    return read_word(from, std::array{d::none, d::hot_row, d::busy_lane, d::unknown}, into);
}

bool read(text from, window_quality& into) {
    using q = window_quality;
    return read_word(
        from, std::array{q::good, q::idle, q::reset, q::gap, q::stalled, q::stale}, into);
}

bool read(text from, lane_rates& into);
bool read(text from, neighbour_view& into);
bool read(text from, home_figures& into);

template <typename Value>
bool read(text from, std::optional<Value>& into) {
    Value value{};
    if (!read(from, value)) return false;
    into = value;
    return true;
}

text take_word(text& rest, char until = ' ') {
    const auto end = rest.find(until);
    const text word = rest.substr(0, end);
    rest = end == text::npos ? text{} : rest.substr(end + 1);
    return word;
}

bool read(text from, lane_figures& into) {
    return read(take_word(from, '/'), into.acquires) && read(take_word(from, '/'), into.handoffs) &&
           read(take_word(from, '/'), into.wait_us) && read(take_word(from, '/'), into.conflicts);
}

bool read(text from, window& into) {
    const bool is_read =
        read(take_word(from), into.from) && read(take_word(from), into.to) &&
        read(take_word(from), into.quality) && read(take_word(from), into.acquires) &&
        read(take_word(from), into.handoffs) && read(take_word(from), into.wait_us);
    if (!is_read) return false;
    const text commits = take_word(from);
    if (commits != "-" && !read(commits, into.commits)) return false;
    if (!read(take_word(from), into.seen_writes) || !read(take_word(from), into.seen_conflicts) ||
        !read(take_word(from), into.hold_wait_us))
        return false;
    if (from.starts_with("p:")) {
        const text predicted = take_word(from).substr(2);
        if (!read(predicted, into.predicted.emplace())) return false;
    }
    into.note = from;
    return true;
}

bool read(text from, pause& into) {
    return read(take_word(from), into.at) && read(take_word(from), into.held);
}

bool read(text from, lane_rates& into) {
    return read(take_word(from), into.handoff_rate) && read(take_word(from), into.mean_wait_us) &&
           read(take_word(from), into.conflict_rate);
}

bool read(text from, neighbour_view& into) {
    return read(take_word(from), into.tools) && read(take_word(from), into.acquires_per_s) &&
           read(take_word(from), into.handoff_rate) && read(take_word(from), into.mean_wait_us);
}

bool read(text from, home_figures& into) {
    return read(take_word(from), into.latency_us) && read(take_word(from), into.p95_us) &&
           read(take_word(from), into.writes_per_s) && read(take_word(from), into.failure_rate) &&
           read(take_word(from), into.writes);
}

bool read(text from, peak& into) {
    return read(take_word(from), into.start) && read(take_word(from), into.lane_use);
}

template <typename Value>
bool read(text from, std::vector<Value>& into) {
    Value value{};
    if (!read(from, value)) return false;
    into.push_back(std::move(value));
    return true;
}

bool read_pin(text key, text value, runbook_state& state) {
    if (!state.pinned) state.pinned.emplace();
    if (key == "pin_home") return read(value, state.pinned->home);
    if (key == "pin_until") return read(value, state.pinned->until);
    if (key == "pin_by") return read(value, state.pinned->by);
    return read(value, state.pinned->reason);
}

// Every scalar and list of the state under its key. One list for writing and reading, so that they
// cannot drift apart. `visit(key, field)` returns true to stop.
template <typename State, typename Visit>
bool each_field(State& s, Visit visit) {
    return visit("stage", s.at) || visit("since", s.since) || visit("home", s.home) ||
           visit("home_since", s.home_since) || visit("hot_since", s.hot_since) ||
           visit("warm_since", s.warm_since) || visit("in_incident", s.in_incident) ||
           visit("diagnosis", s.why) || visit("why_since", s.why_since) ||
           visit("table", s.table) || visit("sharded", s.sharded) ||
           visit("lever2_over", s.lever2_over) || visit("moved_by_order", s.moved_by_order) ||
           visit("evidence_from", s.evidence_from) || visit("load_ms", s.load) ||
           visit("quiet_until", s.quiet_until) || visit("failures", s.failures) ||
           visit("flaps", s.flaps) || visit("returned_at", s.returned_at) ||
           visit("trouble_at", s.trouble_at) || visit("said", s.said) ||
           visit("said_at", s.said_at) || visit("advice", s.advice) || visit("alert", s.alert) ||
           visit("commit_latency_us", s.commit_latency_us) || visit("window", s.windows) ||
           visit("away_window", s.away_windows) || visit("peak", s.peaks) ||
           visit("calm_at", s.calm_at) || visit("pause", s.pauses) || visit("lane_us", s.lane_us) ||
           visit("forecast", s.forecast) || visit("came_true", s.came_true) ||
           visit("foreseen", s.foreseen) || visit("seen_at_home", s.seen_at_home) ||
           visit("foresight_error", s.foresight_error) ||
           visit("foresight_wait_factor", s.foresight_wait_factor) ||
           visit("neighbours_before", s.neighbours_before) ||
           visit("neighbours_after", s.neighbours_after) || visit("check_due", s.check_due);
}

struct writer {
    flat_state& out;
    const char* key;

    void operator()(const std::string& v) const { out.emplace_back(key, v); }
    void operator()(bool v) const { out.emplace_back(key, v ? "1" : "0"); }
    void operator()(int v) const { out.emplace_back(key, std::to_string(v)); }
    void operator()(double v) const { out.emplace_back(key, fmt::format("{}", v)); }
    void operator()(std::int64_t v) const { out.emplace_back(key, std::to_string(v)); }
    void operator()(time_point v) const { out.emplace_back(key, ms_of(v)); }
    void operator()(duration v) const { out.emplace_back(key, std::to_string(v.count())); }
    void operator()(stage v) const { out.emplace_back(key, to_string(v)); }
    void operator()(home_kind v) const { out.emplace_back(key, to_string(v)); }
    void operator()(diagnosis v) const { out.emplace_back(key, to_string(v)); }
    void operator()(const window& v) const { out.emplace_back(key, write(v)); }
    void operator()(const peak& v) const {
        out.emplace_back(key, fmt::format("{} {}", ms_of(v.start), v.lane_use));
    }
    void operator()(const pause& v) const {
        out.emplace_back(key, fmt::format("{} {}", ms_of(v.at), v.held.count()));
    }
    void operator()(const lane_rates& v) const {
        out.emplace_back(key,
                         fmt::format("{} {} {}", v.handoff_rate, v.mean_wait_us, v.conflict_rate));
    }
    void operator()(const neighbour_view& v) const {
        out.emplace_back(
            key,
            fmt::format("{} {} {} {}", v.tools, v.acquires_per_s, v.handoff_rate, v.mean_wait_us));
    }
    void operator()(const home_figures& v) const {
        out.emplace_back(key,
                         fmt::format("{} {} {} {} {}",
                                     v.latency_us,
                                     v.p95_us,
                                     v.writes_per_s,
                                     v.failure_rate,
                                     v.writes));
    }
    template <typename Value>
    void operator()(const std::optional<Value>& v) const {
        if (v) (*this)(*v);
    }
    template <typename Value>
    void operator()(const std::vector<Value>& all) const {
        for (const Value& v : all)
            (*this)(v);
    }
};

}  // namespace

std::chrono::microseconds commit_latency_of(const runbook_state& state, const settings& with) {
    if (state.commit_latency_us) return std::chrono::microseconds{*state.commit_latency_us};
    return with.detect.commit_latency;
}

std::optional<time_point> heat_since(const runbook_state& state) noexcept {
    return state.warm_since ? state.warm_since : state.hot_since;
}

flat_state to_pairs(const runbook_state& state) {
    flat_state out;
    each_field(state, [&](const char* key, const auto& field) {
        writer{out, key}(field);
        return false;
    });
    if (state.pinned) {
        out.emplace_back("pin_home", to_string(state.pinned->home));
        out.emplace_back("pin_until", ms_of(state.pinned->until));
        out.emplace_back("pin_by", state.pinned->by);
        out.emplace_back("pin_reason", state.pinned->reason);
    }
    return out;
}

tl::expected<runbook_state, std::string> from_pairs(const flat_state& pairs) {
    runbook_state state;
    for (const auto& [key, value] : pairs) {
        bool is_read = true;
        if (key.starts_with("pin_")) {
            is_read = read_pin(key, value, state);
        } else {
            each_field(state, [&, &name = key, &from = value](text known, auto& field) {
                if (known != name) return false;
                is_read = read(from, field);
                return true;
            });
        }
        if (!is_read)
            return tl::unexpected(fmt::format("runbook state: {} is not readable: {}", key, value));
    }
    return state;
}

}  // namespace hotlane::policy
