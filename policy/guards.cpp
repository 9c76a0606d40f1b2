#include "policy/guards.hpp"

#include <algorithm>

namespace hotlane::policy {

bool is_hot(const context& c) {
    return c.seen.enter.standing == verdict::hot;
}
bool is_calm(const context& c) {
    return c.seen.leave.standing == verdict::calm;
}

// The first proof of all must not flag: the others are known by then to be one window short of
// theirs. What was flagged before the incident learns nothing from it either.
static bool is_incident(const context& c) {
    const int wanted = c.with.rails.incident_tools;
    return wanted > 0 && c.fleet.tools_hot_together >= wanted;
}
bool is_drawn_in(const context& c) {
    return is_incident(c) && !c.state.in_incident && is_warm(c.seen.enter) && !is_calm(c);
}
bool is_sitting_out(const context& c) {
    return is_incident(c) && c.state.in_incident && !is_calm(c);
}
bool is_incident_over(const context& c) {
    return c.state.in_incident && !is_incident(c);
}

static bool is_lever2_over(const context& c) {
    return c.state.lever2_over || !c.with.levers.shard;
}

static bool is_hot_row(const context& c) {
    return is_hot(c) && c.seen.found.what == diagnosis::hot_row;
}
// The first diagnosis stands on the proof itself; one that replaces another has to stand as long,
// or two windows of a storage incident would make a hot row of a busy lane.
static bool is_settled_diagnosis(const context& c) {
    if (c.state.why == diagnosis::busy_lane && c.seen.found.what != diagnosis::busy_lane)
        return false;
    return !c.state.why_since || c.now - *c.state.why_since >= proof_time(c.with);
}
bool wants_retry(const context& c) {
    return is_hot_row(c) && is_settled_diagnosis(c) && next_lever(c) == lever::retry;
}
bool wants_shard(const context& c) {
    return is_hot_row(c) && is_settled_diagnosis(c) && next_lever(c) == lever::shard;
}

// Lever 2 is measured under load before the next step; everywhere else proof is enough.
static bool is_measured(const context& c) {
    return c.state.at != stage::remeasuring ||
           c.state.load >= std::max(c.with.levers.remeasure, proof_floor);
}

static bool is_routable(const context& c) {
    if (!c.with.levers.route) return false;
    switch (c.seen.found.what) {
        case diagnosis::hot_row:
            return next_lever(c) == lever::route;
        case diagnosis::busy_lane:
            return c.with.diagnose.busy_lane == busy_handling::route;
        case diagnosis::none:
        case diagnosis::unknown:
            return false;
    }
    return false;
}

bool wants_route(const context& c) {
    return is_hot(c) && is_measured(c) && is_settled_diagnosis(c) && is_routable(c);
}
bool is_route_blocked(const context& c) {
    return wants_route(c) && why_blocked(c, home_kind::postgres, mover::policy);
}
bool does_route(const context& c) {
    return wants_route(c) && c.with.act_mode == mode::act;
}

bool is_measured_hot(const context& c) {
    return is_measured(c) && is_hot(c);
}
bool is_measured_calm(const context& c) {
    return is_measured(c) && c.seen.enter.standing == verdict::calm;
}
// Neither hot nor calm for this many times the usual load: not hot enough to go on.
constexpr int remeasure_patience = 4;
bool is_measured_long(const context& c) {
    return c.state.load >= std::max(c.with.levers.remeasure, proof_floor) * remeasure_patience;
}

// A share of unseen writes that dips must not undo a diagnosis that was made.
bool is_hot_otherwise(const context& c) {
    return is_hot(c) && !is_routable(c) && c.seen.found.what != diagnosis::unknown;
}
bool is_busy_lane(const context& c) {
    return is_hot(c) && c.seen.found.what == diagnosis::busy_lane &&
           c.with.diagnose.busy_lane != busy_handling::ignore;
}
bool is_only_aborts(const context& c) {
    return is_hot(c) && c.seen.found.what == diagnosis::none;
}
bool is_routing_off(const context& c) {
    return is_hot_row(c) && !next_lever(c);
}
bool is_undiagnosed(const context& c) {
    return c.state.why == diagnosis::unknown &&
           c.now - c.state.since >= c.with.levers.diagnose_deadline;
}

bool is_return_ready(const context& c) {
    const auto& back = c.with.come_back;
    return back.enabled && c.seen.calm_windows >= std::max(back.calm_windows, 1) &&
           c.seen.lane_use_peak <= back.lane_use_max;
}

// A proof's time after a move there is something to compare it with.
static bool is_settled(const context& c) {
    return c.state.check_due && c.state.home_since &&
           c.now - *c.state.home_since >= proof_time(c.with);
}
bool is_arrival_known(const context& c) {
    return is_settled(c) && (c.seen.here || (c.state.neighbours_before && c.fleet.neighbours));
}
bool is_foresight_known(const context& c) {
    return is_settled(c) && c.state.foreseen &&
           std::ssize(c.seen.enter.windows) >= c.seen.enter.needed;
}
bool is_return_unready(const context& c) {
    return !is_return_ready(c);
}
bool is_return_blocked(const context& c) {
    return is_return_ready(c) && why_blocked(c, home_kind::engine, mover::policy);
}
bool does_return(const context& c) {
    return is_return_ready(c) && c.with.act_mode == mode::act;
}

bool is_pin_over(const context& c) {
    return c.state.pinned && c.state.pinned->until <= c.now;
}
bool is_shard_late(const context& c) {
    return c.now - c.state.since >= c.with.levers.shard_deadline;
}
bool is_forgiven(const context& c) {
    const bool is_burdened =
        c.state.failures > 0 || c.state.flaps > 0 || (c.state.lever2_over && !c.state.sharded);
    return is_burdened && c.now - c.state.trouble_at >= c.with.rails.forgive_after;
}

bool is_known_hot(const context& c) {
    return c.state.hot_since.has_value();
}
bool is_order_out(const context& c) {
    return c.what.to == home_kind::postgres;
}
bool is_order_back(const context& c) {
    return c.what.to == home_kind::engine;
}
bool is_order_out_blocked(const context& c) {
    return is_order_out(c) && why_blocked(c, home_kind::postgres, mover::operator_order);
}
bool is_order_back_blocked(const context& c) {
    return is_order_back(c) && why_blocked(c, home_kind::engine, mover::operator_order);
}
bool is_bad_pin(const context& c) {
    return c.what.wanted.until <= c.now || c.what.wanted.until - c.now > c.with.rails.pin_max;
}
bool has_no_pin(const context& c) {
    return !c.state.pinned;
}

std::optional<lever> next_lever(const context& c) {
    for (const lever one : c.with.levers.order) {
        switch (one) {
            case lever::retry: {
                const auto since = c.state.hot_since.value_or(c.now);
                if (c.with.levers.retry_first && c.now - since < c.with.levers.retry_deadline)
                    return one;
                break;
            }
            case lever::shard:
                if (!is_lever2_over(c)) return one;
                break;
            case lever::route:
                if (c.with.levers.route) return one;
                break;
        }
    }
    return std::nullopt;
}

}  // namespace hotlane::policy
