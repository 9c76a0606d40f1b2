#include "accidents.hpp"

#include <malloc.h>
#include <algorithm>
#include <catch2/catch.hpp>

namespace sim {

using hotlane::policy::home_kind;

namespace {

// Thousands of small worlds come and go: the heap need not go back to the system each time.
[[maybe_unused]] const int keeps_heap = mallopt(M_TRIM_THRESHOLD, 256 * 1024 * 1024);

std::vector<std::string> sorted(std::vector<std::string> v) {
    std::sort(v.begin(), v.end());
    return v;
}

}  // namespace

home_kind other(home_kind h) {
    return h == home_kind::engine ? home_kind::postgres : home_kind::engine;
}

void check_world(world& w, home_kind where) {
    const auto took = w.probe();
    CHECK(took == std::vector<home_kind>{where});
    CHECK_FALSE(w.both_accepted);
    auto found = w.rows_at(where);
    const auto aside = w.strays();
    if (!w.made_tables) CHECK(aside.empty());
    found.insert(found.end(), aside.begin(), aside.end());
    CHECK(sorted(found) == sorted(w.accepted));
}

std::unique_ptr<world> make_world(const setting& s) {
    auto w = std::make_unique<world>();
    w->at_engine.late_after = s.late_after;
    w->by_hotlane = s.by_hotlane;
    process first(*w);
    bool known = false;
    REQUIRE(first.recover(&known));
    REQUIRE(known);
    if (s.from == home_kind::postgres) {
        hotlane::move::report done;
        REQUIRE(first.move(home_kind::postgres, &done));
        REQUIRE(done.moved);
    }
    w->ahead = s.ahead;
    return w;
}

home_kind recover_for_good(world& w) {
    process p(w);
    bool known = false;
    for (int tries = 0; tries < 3 && !known; ++tries)
        REQUIRE(p.recover(&known));
    REQUIRE(known);
    REQUIRE(p.tool->current()->served);
    REQUIRE_FALSE(p.tool->gate.held());
    return p.tool->current()->at.kind;
}

void check_life_goes_on(world& w) {
    const home_kind where = recover_for_good(w);
    check_world(w, where);
    w.at_engine.flush_late();
    w.at_postgres.flush_late();
    check_world(w, where);
    CHECK(recover_for_good(w) == where);
    w.bystanders_make_tables = 0;  // a stray would rightly abort the next move
    process p(w);
    bool known = false;
    REQUIRE(p.recover(&known));
    for (const auto to : {other(where), where}) {
        hotlane::move::report done;
        REQUIRE(p.move(to, &done));
        CHECK(done.moved);
        check_world(w, to);
    }
}

std::uint64_t count_steps(const setting& with) {
    const auto from = with.from;
    auto plain = with;
    plain.late_after = 1;
    auto w = make_world(plain);
    process p(*w);
    bool known = false;
    REQUIRE(p.recover(&known));
    const auto before = p.steps.count;
    hotlane::move::report done;
    REQUIRE(p.move(other(from), &done));
    REQUIRE(done.moved);
    check_world(*w, other(from));
    return p.steps.count - before;
}

void disturbed_move(world& w, home_kind from, std::uint64_t n, fault f) {
    process p(w);
    bool known = false;
    REQUIRE(p.recover(&known));
    p.steps.at = p.steps.count + n;
    p.steps.what = f;
    hotlane::move::report done;
    const bool alive = p.move(other(from), &done);
    if (alive && kills(f) && p.steps.happened) FAIL("a killed mover went on");
    if (alive && p.tool->current()->served) {
        // Whoever is served can work at once.
        CHECK_FALSE(p.tool->gate.held());
        check_world(w, p.tool->current()->at.kind);
    }
}

void every_accident(const setting& with) {
    const auto steps = count_steps(with);
    REQUIRE(steps > 20);
    for (std::uint64_t n = 1; n <= steps; ++n)
        for (const fault f : faults) {
            CAPTURE(n, int(f), with.late_after, int(with.from), with.ahead, with.by_hotlane);
            auto w = make_world(with);
            w->bystanders_make_tables = with.make_tables;
            w->chance = static_cast<std::uint32_t>(n * 7 + std::size_t(f));
            disturbed_move(*w, with.from, n, f);
            check_life_goes_on(*w);
        }
}

}  // namespace sim
