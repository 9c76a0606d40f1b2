// The runbook's table. First matching row of a (stage, event) pair wins.
#include <algorithm>
#include <array>

#include "policy/guards.hpp"

namespace hotlane::policy {

namespace {

// --- stages, for short ------------------------------------------------------------------------

constexpr auto watching = bit(stage::watching);
constexpr auto flagged = bit(stage::flagged);
constexpr auto sharding = bit(stage::sharding);
constexpr auto remeasuring = bit(stage::remeasuring);
constexpr auto would_move = bit(stage::would_move);
constexpr auto moving_out = bit(stage::moving_out);
constexpr auto on_postgres = bit(stage::on_postgres);
constexpr auto would_return = bit(stage::would_return);
constexpr auto moving_back = bit(stage::moving_back);

constexpr std::uint16_t set(std::initializer_list<std::uint16_t> bits) {
    unsigned all = 0;
    for (const auto one : bits)
        all |= one;
    return static_cast<std::uint16_t>(all);
}

constexpr auto on_engine = set({watching, flagged, sharding, remeasuring, would_move});
constexpr auto away = set({on_postgres, would_return});
constexpr auto moving = set({moving_out, moving_back});
constexpr auto any = set({on_engine, away, moving});
constexpr auto stay = std::nullopt;

using e = event_kind;
using s = stage;
using d = effect;
using r = report;

// --- the table --------------------------------------------------------------------------------

// clang-format off
constexpr auto table = std::to_array<row>({
    // a window after a move: what was expected of it against what came true
    {on_engine, e::window, is_foresight_known, stay, d::check_foresight, r::always, false, "foresight_checked",
     "it has been home for a proof's time, so the prediction can be held against it", ""},
    {on_postgres, e::window, is_arrival_known, stay, d::check_arrival, r::always, false, "arrival_checked",
     "it has lived on PostgreSQL for a proof's time, so the move can be held against its forecast", ""},

    // a window while others on its storage are hot: neither it nor they are to be judged by it
    {on_engine, e::window, is_drawn_in, stay, d::join_incident, r::always, true, "incident",
     "others on the same storage turned hot within one proof time: this looks like the storage or the engine, so nothing is flagged, advised or moved",
     "heat that outlasts the incident, or that lasts longer than incident_hold"},
    {on_engine, e::window, is_sitting_out, stay, d::none, r::silent, false, "sit_out_incident", "", ""},

    // a window, at home on the engine
    {watching, e::window, is_hot, s::flagged, d::flag, r::always, false, "flag",
     "its writers get in each other's way, in enough windows and over all of them together",
     "fewer hot windows, or pooled rates under the thresholds"},
    {watching, e::window, nullptr, stay, d::none, r::silent, false, "watch", "", ""},

    {set({flagged, sharding, would_move}), e::window, is_calm, s::watching, d::calm_down, r::always, false, "calm_again",
     "enough windows, and all of them together, are below the thresholds for leaving",
     "rates that stay above the thresholds for leaving"},
    {flagged, e::window, wants_retry, stay, d::none, r::once, true, "advise_retry",
     "its writes depend on one row; the retry of its conflicts comes before changing the row",
     "calm, or the deadline of this lever"},
    {flagged, e::window, wants_shard, s::sharding, d::advise_shard, r::always, true, "advise_shard",
     "its writes depend on one row; splitting that row comes before moving the tool",
     "`hotlane shard done` or `hotlane shard skip`, the deadline, or calm"},
    {set({flagged, remeasuring, would_move}), e::window, is_route_blocked, stay, d::none, r::once, false, "held_by_rail",
     "it should move to PostgreSQL, but a rail forbids it now",
     "the rail lets go while the tool is still hot"},
    {set({flagged, remeasuring, would_move}), e::window, does_route, s::moving_out, d::start_out, r::always, false, "route",
     "it is still hot and cannot be helped in place",
     "calm before the move, or lever 2"},
    {set({flagged, remeasuring}), e::window, wants_route, s::would_move, d::none, r::always, true, "would_route",
     "it is still hot and cannot be helped in place; this mode stops before the move",
     "mode act, `hotlane route --execute`, or calm"},
    {would_move, e::window, wants_route, stay, d::none, r::again, true, "would_route",
     "it is still hot and cannot be helped in place; this mode stops before the move",
     "mode act, `hotlane route --execute`, or calm"},
    {would_move, e::window, is_hot_otherwise, s::flagged, d::none, r::always, false, "not_routable",
     "it is hot for a reason that moving does not answer, or routing is off",
     "a diagnosis of hot_row, with routing on"},
    {would_move, e::window, nullptr, stay, d::none, r::silent, false, "wait_for_person", "", ""},

    {flagged, e::window, is_busy_lane, stay, d::none, r::once, true, "busy_lane",
     "its writers only queue: batch the writes, give each write stream a database of its own, or make the statement cheaper; moving it is not the answer",
     "conflicts between its writes, or diagnose.busy_lane: route in the policy"},
    {flagged, e::window, is_undiagnosed, stay, d::none, r::once, true, "undiagnosed",
     "hotlane sees too few of its writes to tell a hot row from a busy lane",
     "its clients going through hotlane"},
    {flagged, e::window, is_only_aborts, stay, d::none, r::once, true, "aborts_without_conflicts",
     "many of its writes come to nothing, but not by conflicts",
     "conflicts between its writes, or fewer rollbacks"},
    {flagged, e::window, is_routing_off, stay, d::none, r::once, true, "routing_off",
     "it is hot and lever 2 is over, but the policy does not route it",
     "levers.route in the policy"},
    {flagged, e::window, nullptr, stay, d::none, r::silent, false, "diagnose", "", ""},
    {sharding, e::window, nullptr, stay, d::none, r::silent, false, "wait_for_shard", "", ""},

    {remeasuring, e::window, is_measured_calm, s::watching, d::calm_down, r::always, false, "lever2_helped",
     "measured again under load, it is calm",
     "still hot after lever 2"},
    {remeasuring, e::window, is_measured_hot, s::flagged, d::none, r::always, false, "not_routable",
     "measured again it is still hot, for a reason that moving does not answer, or routing is off",
     "a diagnosis of hot_row, with routing on"},
    {remeasuring, e::window, is_measured_long, s::watching, d::calm_down, r::always, false, "no_longer_hot",
     "measured again for long, it is not proven hot any more",
     "enough hot windows"},
    {remeasuring, e::window, nullptr, stay, d::none, r::silent, false, "measure", "", ""},

    {moving, e::window, nullptr, stay, d::none, r::silent, false, "wait_for_move", "", ""},

    // a window, at home on PostgreSQL
    {away, e::window, is_return_blocked, stay, d::none, r::once, false, "held_by_rail",
     "it could go home to the engine, but a rail forbids it now",
     "the rail lets go while the prediction is calm"},
    {away, e::window, does_return, s::moving_back, d::start_back, r::always, false, "return",
     "under real load it would use the engine's lane so little that it will not queue",
     "more writes per second, or a slower durable commit on the engine"},
    {on_postgres, e::window, is_return_ready, s::would_return, d::none, r::always, true, "would_return",
     "under real load it would use the engine's lane so little that it will not queue; this mode stops before the move",
     "mode act, or `hotlane route --to engine --execute`"},
    {would_return, e::window, is_return_unready, s::on_postgres, d::none, r::always, false, "load_is_back",
     "the prediction for the engine is not calm any more",
     "calm windows under load"},
    {would_return, e::window, nullptr, stay, d::none, r::again, true, "would_return",
     "under real load it would use the engine's lane so little that it will not queue; this mode stops before the move",
     "mode act, or `hotlane route --to engine --execute`"},
    {on_postgres, e::window, nullptr, stay, d::none, r::silent, false, "live_on_postgres", "", ""},

    // time
    {any, e::tick, is_pin_over, stay, d::clear_pin, r::always, false, "pin_expired",
     "the pin has reached its end; the policy decides again", "a new pin"},
    {flagged, e::tick, is_undiagnosed, stay, d::none, r::once, true, "undiagnosed",
     "hotlane sees too few of its writes to tell a hot row from a busy lane",
     "its clients going through hotlane"},
    {sharding, e::tick, is_shard_late, s::remeasuring, d::end_lever2, r::always, false, "shard_deadline",
     "nobody answered the advice in time; it is measured again before the next step",
     "`hotlane shard done` or `hotlane shard skip` earlier"},
    {on_engine, e::tick, is_incident_over, stay, d::end_incident, r::always, false, "incident_over",
     "the incident is over, or has lasted so long that it is load; what was measured in it does not count", ""},
    {watching, e::tick, is_forgiven, stay, d::forgive, r::always, false, "forgive",
     "it was calm for long: the back-off is forgotten, and lever 2 is tried again at the next flag", "trouble in the meantime"},
    {any, e::tick, nullptr, stay, d::none, r::silent, false, "wait", "", ""},

    // an operator answers the advice
    {set({flagged, sharding, remeasuring, would_move}), e::shard_done, nullptr, s::remeasuring, d::end_lever2, r::always, false, "shard_done",
     "the hot row was split; what was measured before does not count any more",
     "still hot when measured again"},
    {any, e::shard_done, nullptr, stay, d::note_sharded, r::always, false, "shard_noted",
     "the hot row was split; the next step after a flag is the move", ""},
    {set({flagged, sharding}), e::shard_skipped, nullptr, s::remeasuring, d::end_lever2, r::always, false, "shard_skipped",
     "the row will not be split; it is measured again before the next step",
     "calm when measured again"},
    {any, e::shard_skipped, nullptr, stay, d::refuse, r::silent, false, "nothing_to_skip",
     "no advice to shard is open for this tool", ""},

    // a move ends
    {moving_out, e::move_ok, nullptr, s::on_postgres, d::arrive_out, r::always, false, "moved",
     "the move is done: it lives on PostgreSQL", ""},
    {moving_back, e::move_ok, nullptr, s::watching, d::arrive_back, r::always, false, "returned",
     "the move is done: it is home on the engine", ""},
    {any, e::move_ok, nullptr, stay, d::none, r::always, true, "unknown_move",
     "a move ended that the runbook did not start", ""},
    {moving_out, e::move_failed, is_known_hot, s::flagged, d::cool_after_fail, r::always, true, "move_failed",
     "the move was undone; it serves at the engine as before", "what the move stumbled over"},
    {moving_out, e::move_failed, nullptr, s::watching, d::cool_after_fail, r::always, true, "move_failed",
     "the move was undone; it serves at the engine as before", "what the move stumbled over"},
    {moving_back, e::move_failed, nullptr, s::on_postgres, d::cool_after_fail, r::always, true, "move_failed",
     "the move was undone; it serves at PostgreSQL as before", "what the move stumbled over"},
    {any, e::move_failed, nullptr, stay, d::none, r::always, true, "unknown_move",
     "a move ended that the runbook did not start", ""},
    {moving_out, e::move_refused, is_known_hot, s::flagged, d::cool_after_fail, r::always, true, "move_refused",
     "preflight refused the move; nothing was touched", "what preflight asks for"},
    {moving_out, e::move_refused, nullptr, s::watching, d::cool_after_fail, r::always, true, "move_refused",
     "preflight refused the move; nothing was touched", "what preflight asks for"},
    {moving_back, e::move_refused, nullptr, s::on_postgres, d::cool_after_fail, r::always, true, "move_refused",
     "preflight refused the move; nothing was touched", "what preflight asks for"},
    {any, e::move_refused, nullptr, stay, d::none, r::always, true, "unknown_move",
     "a move ended that the runbook did not start", ""},

    // an operator orders a move
    {moving, e::order, nullptr, stay, d::refuse, r::silent, false, "move_running",
     "a move of this tool is running already", ""},
    {on_engine, e::order, is_order_out_blocked, stay, d::refuse, r::silent, false, "order_unsafe",
     "the order is not safe now", ""},
    {on_engine, e::order, is_order_out, s::moving_out, d::start_out, r::always, false, "order",
     "an operator ordered it", ""},
    {on_engine, e::order, nullptr, stay, d::refuse, r::silent, false, "already_there",
     "it lives on the engine already", ""},
    {away, e::order, is_order_back_blocked, stay, d::refuse, r::silent, false, "order_unsafe",
     "the order is not safe now", ""},
    {away, e::order, is_order_back, s::moving_back, d::start_back, r::always, false, "order",
     "an operator ordered it", ""},
    {away, e::order, nullptr, stay, d::refuse, r::silent, false, "already_there",
     "it lives on PostgreSQL already", ""},

    // recovery has read the homes
    {set({moving_back, on_postgres, would_return}), e::found_engine, nullptr, s::watching, d::arrive_back, r::always, false, "found_home",
     "the homes say that it lives on the engine", ""},
    {moving_out, e::found_engine, is_known_hot, s::flagged, d::cool_after_fail, r::always, false, "found_home",
     "the homes say that it still lives on the engine: the move was undone", ""},
    {moving_out, e::found_engine, nullptr, s::watching, d::cool_after_fail, r::always, false, "found_home",
     "the homes say that it still lives on the engine: the move was undone", ""},
    {on_engine, e::found_engine, nullptr, stay, d::none, r::silent, false, "as_known", "", ""},
    {set({on_engine, moving_out}), e::found_postgres, nullptr, s::on_postgres, d::arrive_out, r::always, false, "found_home",
     "the homes say that it lives on PostgreSQL", ""},
    {moving_back, e::found_postgres, nullptr, s::on_postgres, d::cool_after_fail, r::always, false, "found_home",
     "the homes say that it still lives on PostgreSQL: the move was undone", ""},
    {away, e::found_postgres, nullptr, stay, d::none, r::silent, false, "as_known", "", ""},

    // pins
    {any, e::pin_set, is_bad_pin, stay, d::refuse, r::silent, false, "bad_pin",
     "a pin needs an end in the future, not later than pin_max allows", ""},
    {any, e::pin_set, nullptr, stay, d::set_pin, r::always, false, "pin_set",
     "an operator pinned it: the policy does not move it", "the pin's end, or `hotlane unpin`"},
    {any, e::pin_cleared, has_no_pin, stay, d::refuse, r::silent, false, "not_pinned",
     "it is not pinned", ""},
    {any, e::pin_cleared, nullptr, stay, d::clear_pin, r::always, false, "pin_cleared",
     "an operator took the pin away: the policy decides again", ""},
});
// clang-format on

constexpr bool answers(const row& one, std::size_t at, std::size_t kind) {
    return (one.from & (1U << at)) != 0 && one.on == static_cast<event_kind>(kind);
}

// Every pair ends in a row without a guard ...
constexpr bool is_total() {
    for (std::size_t at = 0; at < stages; ++at) {
        for (std::size_t kind = 0; kind < event_kinds; ++kind) {
            bool answered = false;
            for (const row& one : table)
                answered = answered || (answers(one, at, kind) && one.when == nullptr);
            if (!answered) return false;
        }
    }
    return true;
}

// ... and every row can be reached in at least one of its stages.
constexpr bool has_no_dead_row() {
    for (std::size_t i = 0; i < table.size(); ++i) {
        bool is_alive = false;
        for (std::size_t at = 0; at < stages; ++at) {
            const auto kind = static_cast<std::size_t>(table[i].on);
            bool is_shadowed = !answers(table[i], at, kind);
            for (std::size_t j = 0; j < i; ++j)
                is_shadowed =
                    is_shadowed || (answers(table[j], at, kind) && table[j].when == nullptr);
            is_alive = is_alive || !is_shadowed;
        }
        if (!is_alive) return false;
    }
    return true;
}

static_assert(is_total());
static_assert(has_no_dead_row());

}  // namespace

std::span<const row> runbook_table() noexcept {
    return table;
}

const row& row_for(const context& at) noexcept {
    const auto here = bit(at.state.at);
    const auto* found = std::find_if(table.begin(), table.end(), [&](const row& one) {
        return (one.from & here) != 0 && one.on == at.what.kind &&
               (one.when == nullptr || one.when(at));
    });
    return *found;  // the table is total
}

}  // namespace hotlane::policy
