#include "policy/window.hpp"

#include <functional>

#include "build.hpp"

using namespace hotlane::policy;
using namespace hotlane::policy::testing;

namespace {

struct window_case {
    std::string name;
    std::function<void(reading& before, reading& after)> change;
    window_quality expected;
};

// Two good readings, one window apart.
std::pair<reading, reading> two_readings(const settings& with) {
    counted engine;
    engine.grow(calm, duration{1'000});
    const reading before{engine.counters, engine.seen};
    engine.grow(hot_row, with.window.length);
    return {before, {engine.counters, engine.seen}};
}

}  // namespace

TEST_CASE("a window's quality says whether it may count") {
    const settings with = short_settings();
    using q = window_quality;
    const std::vector<window_case> cases{
        {"two plain readings", [](auto&, auto&) {}, q::good},
        {"the acquire counter fell", [](auto&, auto& b) { b.counters.acquires = 1; }, q::reset},
        {"the handoff counter fell",
         [](auto& a, auto&) { a.counters.handoffs = 99'999'999; },
         q::reset},
        {"the wait counter fell",
         [](auto& a, auto&) { a.counters.wait_us = 9'999'999'999; },
         q::reset},
        {"the commit counter fell", [](auto&, auto& b) { b.counters.commits = 0; }, q::reset},
        {"the LSN fell", [](auto&, auto& b) { b.counters.committed_lsn = 0; }, q::reset},
        {"the link broke", [](auto&, auto& b) { b.counters.link_generation = 1; }, q::reset},
        {"hotlane restarted",
         [](auto& a, auto&) { a.seen.write_transactions = 9'999'999; },
         q::reset},
        {"all counters start again and are higher by now",
         [](auto& a, auto& b) { a.counters.committed_lsn = *b.counters.committed_lsn + 1; },
         q::reset},
        {"the sampler was late",
         [](auto&, auto& b) { b.counters.taken_at += duration{1'001}; },
         q::gap},
        {"late by exactly half a window",
         [](auto&, auto& b) { b.counters.taken_at += duration{1'000}; },
         q::good},
        {"own work", [](auto&, auto& b) { b.counters.own_work = true; }, q::gap},
        {"own work and a restart",
         [](auto&, auto& b) {
             b.counters.own_work = true;
             b.counters.acquires = 0;
         },
         q::reset},
        {"few writes",
         [](auto& a, auto& b) {
             b.counters.acquires = *a.counters.acquires + 49;
             b.counters.handoffs = a.counters.handoffs;
         },
         q::idle},
        {"just enough writes",
         [](auto& a, auto& b) { b.counters.acquires = *a.counters.acquires + 50; },
         q::good},
        {"nothing at all",
         [](auto& a, auto& b) {
             const auto at = b.counters.taken_at;
             b = a;
             b.counters.taken_at = at;
         },
         q::idle},
        {"acquires unknown now", [](auto&, auto& b) { b.counters.acquires.reset(); }, q::stale},
        {"waits unknown before", [](auto& a, auto&) { a.counters.wait_us.reset(); }, q::stale},
        {"handoffs unknown now", [](auto&, auto& b) { b.counters.handoffs.reset(); }, q::stale},
        {"commits unknown: the lane still tells",
         [](auto&, auto& b) { b.counters.commits.reset(); },
         q::good},
        {"the same reading again", [](auto& a, auto& b) { b = a; }, q::stale},
        {"nobody gets through",
         [](auto& a, auto& b) {
             b.counters.wait_us = a.counters.wait_us;
             b.counters.commits = a.counters.commits;
         },
         q::stalled},
        {"waits are added when the lane is got, so none yet but commits",
         [](auto& a, auto& b) { b.counters.wait_us = a.counters.wait_us; },
         q::good},
        {"stuck, and the source knows no commits",
         [](auto& a, auto& b) {
             b.counters.wait_us = a.counters.wait_us;
             b.counters.commits.reset();
         },
         q::stalled},
    };
    for (const auto& one : cases) {
        auto [before, after] = two_readings(with);
        one.change(before, after);
        INFO(one.name);
        const window made = make_window(before, after, with);
        CHECK(to_string(made.quality) == to_string(one.expected));
        CHECK(made.note.empty() == (one.expected == q::good));
    }
}

TEST_CASE("a stuck lane that is silent stays stuck until somebody gets through") {
    const settings with = short_settings();
    counted engine;
    const reading before{engine.counters, engine.seen};
    engine.counters.taken_at += with.window.length;
    const reading silent{engine.counters, engine.seen};
    CHECK(make_window(before, silent, with).quality == window_quality::idle);
    CHECK(make_window(before, silent, with, window_quality::stalled).quality ==
          window_quality::stalled);
    engine.grow(calm, duration{0});
    *engine.counters.commits += 1;
    const reading through{engine.counters, engine.seen};
    CHECK(make_window(before, through, with, window_quality::stalled).quality ==
          window_quality::idle);
}

TEST_CASE("a window's rates are deltas, and time in hotlane's queues counts as wait") {
    const settings with = short_settings();
    auto [before, after] = two_readings(with);
    const window plain = make_window(before, after, with);
    CHECK(plain.acquires == 2'000);
    CHECK(*plain.handoff_rate() == Approx(0.67));
    CHECK(*plain.mean_wait_us() == Approx(16'000));
    CHECK(*plain.abort_rate() == Approx(0.82));
    CHECK(*plain.conflict_rate() == Approx(0.82));
    CHECK(*plain.seen_share() == Approx(1.0));

    after.seen.hold_wait_us += 1'340'000;
    const window queued = make_window(before, after, with);
    CHECK(*queued.mean_wait_us() == Approx(17'000));
    CHECK(queued.hold_wait_us == 1'340'000);
}

TEST_CASE("rates that are not defined are absent, never zero") {
    const window empty;
    CHECK_FALSE(empty.handoff_rate());
    CHECK_FALSE(empty.mean_wait_us());
    CHECK_FALSE(empty.abort_rate());
    CHECK_FALSE(empty.conflict_rate());
    CHECK_FALSE(empty.seen_share());
    window early;
    early.acquires = 100;
    early.commits = 103;  // counted one window after their acquire
    CHECK(*early.abort_rate() == 0.0);
}

TEST_CASE("away windows read the data plane, not the silent engine") {
    const settings with = short_settings();
    counted engine;
    const auto reset_counters = [](sample s) {
        s.acquires.reset();
        s.handoffs.reset();
        s.wait_us.reset();
        return s;
    };
    const reading before{reset_counters(engine.counters), engine.seen};
    engine.grow(calm, with.window.length);
    const reading after{reset_counters(engine.counters), engine.seen};
    const window made = make_away_window(before, after, with);
    CHECK(made.quality == window_quality::good);
    CHECK(made.seen_writes == 6'000);
    const reading silent{reset_counters(engine.counters), before.seen};
    CHECK(make_away_window(before, silent, with).quality == window_quality::idle);
    CHECK(make_away_window(after, before, with).quality == window_quality::stale);
}

TEST_CASE("pooled windows know commits only if all of them do") {
    window one;
    one.acquires = 10;
    one.commits = 5;
    window two = one;
    CHECK(*pool({one, two}).commits == 10);
    two.commits.reset();
    CHECK_FALSE(pool({one, two}).commits);
    CHECK(pool({one, two}).acquires == 20);
}
