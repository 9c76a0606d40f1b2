// Properties over arbitrary sequences of windows, restarts, operators and ends of moves.
#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>

#include "policy/engine.hpp"
#include "tests/unit/policy/build.hpp"

using namespace hotlane::policy;
using namespace hotlane::policy::testing;

namespace {

// One thing that happens in one window's time.
enum class happening : std::uint8_t { hot, busy, calm, light, idle, reset, gap, stuck, blind };

// How a history that breaks a property is shown.
std::ostream& operator<<(std::ostream& out, happening what) {
    static constexpr const char* names[] = {
        "hot", "busy", "calm", "light", "idle", "reset", "gap", "stuck", "blind"};
    return out << names[static_cast<std::size_t>(what)];
}

rc::Gen<happening> any_happening() {
    return rc::gen::map(rc::gen::inRange(0, 9), [](int i) { return static_cast<happening>(i); });
}

// Long runs of the same, so that proofs come about.
rc::Gen<std::vector<happening>> any_history() {
    const auto run = rc::gen::pair(any_happening(), rc::gen::inRange(1, 25));
    return rc::gen::map(rc::gen::container<std::vector<std::pair<happening, int>>>(run),
                        [](const std::vector<std::pair<happening, int>>& runs) {
                            std::vector<happening> all;
                            for (const auto& [what, times] : runs)
                                all.insert(all.end(), static_cast<std::size_t>(times), what);
                            return all;
                        });
}

bool counts(happening what) {
    switch (what) {
        case happening::hot:
        case happening::busy:
        case happening::calm:
        case happening::light:
            return true;
        case happening::idle:
        case happening::reset:
        case happening::gap:
        case happening::stuck:
        case happening::blind:
            return false;
    }
    return false;
}

void let_happen(driver& d, happening what) {
    const duration length = d.policy.current_settings().window.length;
    auto& counters = d.engine.counters;
    switch (what) {
        case happening::hot:
            d.engine.grow(hot_row, length);
            break;
        case happening::busy:
            d.engine.grow(busy, length);
            break;
        case happening::calm:
            d.engine.grow(calm, length);
            break;
        case happening::light:
            d.engine.grow({30, 0, 0, 0}, length);
            break;
        case happening::idle:
            d.engine.grow(sleepy, length);
            break;
        case happening::reset:
            d.engine.grow(hot_row, length);
            d.engine.restart_engine();
            break;
        case happening::gap:
            d.engine.grow(hot_row, 2 * length);
            break;
        case happening::stuck:
            *counters.acquires += 1'000;
            *counters.handoffs += 1'000;
            counters.taken_at += length;
            break;
        case happening::blind: {
            d.engine.grow(hot_row, length);
            const auto known = counters.wait_us;
            counters.wait_us.reset();
            d.feed();
            counters.wait_us = known;
            return;
        }
    }
    d.feed();
}

settings plain(mode act_mode) {
    settings with = short_settings(act_mode);
    with.levers.shard = false;
    with.rails.moves_per_hour = 1'000'000;
    with.rails.min_stay = duration{200'000};  // longer than the way back takes
    return with;
}

}  // namespace

TEST_CASE("windows that do not count never change a streak") {
    rc::prop("noise between good windows", [] {
        const auto history = *any_history();
        settings with = plain(mode::observe);
        with.window.age_max = 250;  // age is bounded, and is not what is looked at here
        driver with_noise{with};
        int noise = 0;
        for (const happening what : history) {
            if (!counts(what)) {
                if (++noise > 100) continue;
                const auto before = with_noise.policy.evidence_at(with_noise.now());
                const auto stage_before = with_noise.at();
                let_happen(with_noise, what);
                const auto after = with_noise.policy.evidence_at(with_noise.now());
                RC_ASSERT(after.enter.hot == before.enter.hot);
                RC_ASSERT(after.enter.calm == before.enter.calm);
                RC_ASSERT(after.enter.standing == before.enter.standing);
                RC_ASSERT(with_noise.at() == stage_before);
                continue;
            }
            // A reading after `blind` only begins a window: both get the same start.
            with_noise.feed();
            let_happen(with_noise, what);
        }
    });
}

TEST_CASE("the policy never moves a tool twice within a minimum stay") {
    rc::prop("any history, moves that end at once", [] {
        const auto history = *any_history();
        driver d{plain(mode::act)};
        std::optional<time_point> arrived;
        for (const happening what : history) {
            const int before = d.moves_started();
            let_happen(d, what);
            if (d.moves_started() == before) continue;
            RC_ASSERT(d.moves_started() == before + 1);
            if (arrived)
                RC_ASSERT(d.now() - *arrived >= d.policy.current_settings().rails.min_stay);
            d.take(d.policy.move_finished(move_end::ok, "", d.fleet, d.now()));
            arrived = d.now();
        }
        RC_CLASSIFY(d.moves_started() >= 1, "moved");
        RC_CLASSIFY(d.moves_started() >= 2, "moved and came back");
    });
    rc::prop("any history, moves that fail or never end", [] {
        const auto history = *any_history();
        const auto end = *rc::gen::element(move_end::failed, move_end::refused);
        driver d{plain(mode::act)};
        std::optional<time_point> failed;
        for (const happening what : history) {
            const int before = d.moves_started();
            let_happen(d, what);
            if (d.moves_started() == before) continue;
            if (failed) RC_ASSERT(d.now() - *failed >= d.policy.current_settings().rails.cooldown);
            d.take(d.policy.move_finished(end, "no", d.fleet, d.now()));
            failed = d.now();
        }
    });
}

TEST_CASE("observe and act decide identically up to the first step that touches the world") {
    rc::prop("any history", [] {
        const auto history = *any_history();
        const bool shards = *rc::gen::arbitrary<bool>();
        const bool starts_away = *rc::gen::arbitrary<bool>();
        const auto make = [&](mode m) {
            settings with = plain(m);
            with.levers.shard = shards;
            with.levers.shard_deadline = duration{20'000};
            driver d{with};
            if (starts_away) d.take(d.policy.home_found(home_kind::postgres, d.fleet, d.now()));
            return d;
        };
        driver act = make(mode::act);
        driver observe = make(mode::observe);
        for (const happening what : history) {
            const auto done = act.decisions.size();
            let_happen(act, what);
            let_happen(observe, what);
            RC_ASSERT(act.decisions.size() == observe.decisions.size());
            for (std::size_t i = done; i < act.decisions.size(); ++i) {
                const decision& a = act.decisions[i];
                const decision& o = observe.decisions[i];
                RC_ASSERT(a.at == o.at);
                RC_ASSERT(a.from == o.from);
                RC_ASSERT(a.windows.size() == o.windows.size());
                if (a.to == stage::moving_out || a.to == stage::moving_back) {
                    RC_ASSERT(o.to == (a.to == stage::moving_out ? stage::would_move
                                                                 : stage::would_return));
                    RC_ASSERT(observe.moves_started() == 0);
                    return;
                }
                RC_ASSERT(a.rule == o.rule);
                RC_ASSERT(a.to == o.to);
                RC_ASSERT(a.reason == o.reason);
            }
        }
    });
}

TEST_CASE("no rail is passed whatever happens: caps, freezes, budgets") {
    rc::prop("any history", [] {
        settings with = plain(mode::act);
        with.rails.hold_budget = duration{6'000};
        with.rails.hold_max = duration{2'000};
        with.rails.min_stay = duration{20'000};
        const auto frozen_from = *rc::gen::inRange(0, 200);
        freeze one;
        one.begins = t0 + duration{2'000} * frozen_from;
        one.ends = *one.begins + duration{120'000};
        with.rails.freezes = {one};
        driver d{with};
        d.fleet.tools = 4;
        duration held{0};
        for (const happening what : *any_history()) {
            const auto done = d.commands.size();
            let_happen(d, what);
            for (auto i = done; i < d.commands.size(); ++i) {
                if (d.commands[i].kind != command_kind::start_move) continue;
                RC_ASSERT(d.now() < *one.begins || d.now() >= *one.ends);
                RC_ASSERT(held + with.rails.hold_max <= with.rails.hold_budget);
                held += duration{2'000};
                d.take(d.policy.move_finished(
                    move_end::ok, "done", d.fleet, d.now(), duration{2'000}));
                break;
            }
        }
    });
}

TEST_CASE("the cap of tools away is never none and never all") {
    rc::prop("any share", [] {
        settings with;
        with.rails.away_share = *rc::gen::inRange(0, 101) / 100.0;
        with.rails.away_max = *rc::gen::inRange(1, 50);
        const int tools = *rc::gen::inRange(1, 300);
        const int cap = away_cap(with, tools);
        RC_ASSERT(cap >= 1);
        RC_ASSERT(tools == 1 || cap < tools);
        RC_ASSERT(cap <= with.rails.away_max);
    });
}

TEST_CASE("proof never takes less than ten seconds") {
    rc::prop("any window settings", [] {
        settings with = plain(mode::act);
        with.window.length = duration{*rc::gen::inRange(200, 20'000)};
        with.window.hot_of = *rc::gen::inRange(0, 8);
        with.window.out_of = *rc::gen::inRange(0, 8);
        with.window.proof_min = duration{*rc::gen::inRange(0, 12'000)};
        driver d{with};
        d.run(calm, *rc::gen::inRange(0, 20));
        const time_point hot_from = d.now();
        for (int i = 0; i < 200 && d.at() == stage::watching; ++i)
            d.run(hot_row, 1);
        RC_ASSERT(d.at() != stage::watching);
        RC_ASSERT(d.now() - hot_from >= std::max(with.window.proof_min, duration{10'000}));
    });
}

TEST_CASE("a restart changes a proof by at most one window") {
    rc::prop("restarted anywhere", [] {
        const auto with = plain(mode::observe);
        const int at = *rc::gen::inRange(0, 8);
        driver whole{with};
        whole.run(hot_row, at);
        const auto state = from_pairs(to_pairs(whole.policy.state()));
        RC_ASSERT(state.has_value());
        driver again{with};
        again.policy = tool_policy{"counter", with, *state};
        again.engine = whole.engine;
        again.engine.seen = {};  // hotlane's own counters begin again
        again.engine.grow(hot_row, with.window.length / 4);
        again.feed();
        const auto until_flagged = [](driver& d) {
            for (int i = 0; i < 50 && d.at() == stage::watching; ++i)
                d.run(hot_row, 1);
            return d.now();
        };
        const auto plain_at = until_flagged(whole);
        const auto again_at = until_flagged(again);
        RC_ASSERT(again_at >= plain_at);
        RC_ASSERT(again_at - plain_at <= with.window.length);
    });
    rc::prop("restarted after any history", [] {
        settings with = plain(mode::observe);
        with.window.age_max = 250;  // what grows too old while hotlane is away is another matter
        driver whole{with};
        for (const happening what : *any_history())
            let_happen(whole, what);
        RC_CLASSIFY(whole.at() == stage::watching, "not flagged yet");
        const auto state = from_pairs(to_pairs(whole.policy.state()));
        RC_ASSERT(state.has_value());
        driver again{with};
        again.policy = tool_policy{"counter", with, *state};
        again.engine = whole.engine;
        again.engine.seen = {};
        again.engine.grow(hot_row, with.window.length / 4);
        again.feed();
        const auto until_flagged = [](driver& d) {
            for (int i = 0; i < 80 && d.at() == stage::watching; ++i)
                d.run(hot_row, 1);
            return d.now();
        };
        whole.feed();  // a reading without all counters at the end is no start for a window
        const auto plain_at = until_flagged(whole);
        const auto again_at = until_flagged(again);
        RC_ASSERT(whole.at() == again.at());
        RC_LOG("flagged at " + std::to_string(plain_at.time_since_epoch().count()) +
               ", restarted at " + std::to_string(again_at.time_since_epoch().count()) + " ms");
        // Neither shortened nor lengthened by more than the window that the restart took away.
        RC_ASSERT(again_at - plain_at <= with.window.length);
        RC_ASSERT(plain_at - again_at <= with.window.length);
    });
}

TEST_CASE("state of any history survives as text") {
    rc::prop("to pairs and back", [] {
        driver d{plain(mode::act)};
        for (const happening what : *any_history())
            let_happen(d, what);
        const auto text = to_pairs(d.policy.state());
        const auto state = from_pairs(text);
        RC_ASSERT(state.has_value());
        RC_ASSERT(to_pairs(*state) == text);
        RC_ASSERT(d.policy.state().windows.size() <= windows_kept_max);
    });
}
