// The follower's table row by row, and what must hold after any events in any order.
#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>

#include "router/placement/follower.hpp"
#include "router/placement/leadership.hpp"
#include "router/placement/lease.hpp"

using namespace hotlane::placement;
using hotlane::policy::home_kind;
using namespace std::chrono_literals;

namespace {

using S = follow_state;
using E = follow_event;

follow_input placed(std::uint64_t epoch) {
    return {E::placed, epoch % 2 == 1 ? home_kind::engine : home_kind::postgres, epoch, ""};
}
follow_input hold(const std::string& move) {
    return {E::hold, {}, 0, move};
}
follow_input release(const std::string& move) {
    return {E::release, {}, 0, move};
}

}  // namespace

TEST_CASE("a sidecar follows a move from hold to release") {
    follower f;
    auto did = f.step(placed(1));
    CHECK((did.set_route && did.open_gate));
    did = f.step(hold("m1"));
    CHECK(did.close_gate);
    CHECK(f.state() == S::holding);
    CHECK_FALSE(f.step(hold("m1")).ack);
    CHECK(f.step({E::empty}).ack);
    CHECK(f.state() == S::drained);
    // What is told while it is held waits for the release.
    CHECK_FALSE(f.step(placed(2)).set_route);
    CHECK_FALSE(f.step({E::unconfirmed}).refuse);
    CHECK_FALSE(f.step(release("m0")).open_gate);
    did = f.step(release("m1"));
    CHECK((did.set_route && did.open_gate));
    CHECK(f.place()->epoch == 2);
    CHECK(f.place()->home == home_kind::postgres);
}

TEST_CASE("a sidecar that starts in the middle of a hold joins it") {
    follower f;
    CHECK(f.step(hold("m1")).close_gate);
    CHECK(f.step({E::empty}).ack);
    SECTION("and is told both") {
        f.step(placed(2));
        CHECK(f.step(release("m1")).open_gate);
        CHECK(f.state() == S::serving);
    }
    SECTION("and asks the homes where it was told nothing") {
        const auto did = f.step(release("m1"));
        CHECK(did.ask_homes);
        CHECK_FALSE(did.open_gate);
        CHECK(f.state() == S::unplaced);
    }
}

TEST_CASE("another move's hold asks for an acknowledgement of its own") {
    follower f;
    f.step(placed(1));
    f.step(hold("m1"));
    f.step({E::empty});
    f.step(hold("m2"));
    CHECK(f.state() == S::holding);
    CHECK(f.step({E::empty}).ack);
    CHECK(f.move() == "m2");
}

TEST_CASE("doubt closes the gate until the homes were read, with either result") {
    follower f;
    f.step(placed(1));
    const auto did = f.step({E::doubt});
    CHECK((did.close_gate && did.ask_homes));
    SECTION("the same home again") {
        CHECK(f.step(placed(1)).open_gate);
        CHECK(f.state() == S::serving);
    }
    SECTION("another home") {
        const auto then = f.step(placed(2));
        CHECK((then.set_route && then.open_gate));
    }
    SECTION("nobody tells") {
        const auto then = f.step({E::unconfirmed});
        CHECK((then.refuse && then.open_gate));
        CHECK(f.step(placed(1)).set_route);
    }
}

TEST_CASE("after any events the gate is what the state says and epochs only grew") {
    rc::check([] {
        follower f;
        bool closed = true;
        std::uint64_t routed = 0;
        const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 100));
        for (const int n : steps) {
            follow_input in;
            in.what = static_cast<E>(n % 6);
            in.epoch = static_cast<std::uint64_t>(n / 6 % 5 + 1);
            in.home = in.epoch % 2 == 1 ? home_kind::engine : home_kind::postgres;
            in.move = n % 2 == 0 ? "m1" : "m2";
            const auto before = f.state();
            const auto did = f.step(in);
            if (did.close_gate) closed = true;
            if (did.set_route) {
                RC_ASSERT(f.place()->epoch >= routed);
                routed = f.place()->epoch;
            }
            if (did.open_gate) closed = false;
            const bool must_be_closed = f.held() || f.state() == S::doubting;
            if (must_be_closed) RC_ASSERT(closed);
            if (f.state() == S::serving) RC_ASSERT(!closed && routed > 0);
            if (did.ack) RC_ASSERT(closed && f.state() == S::drained);
            // Only the release of its own move ends a hold.
            const bool was_held = before == S::holding || before == S::drained;
            if (was_held && !f.held()) RC_ASSERT(in.what == E::release && in.move == f.move());
        }
    });
}

TEST_CASE("who watches a lease never ends it before its owner") {
    rc::check([] {
        const auto length = span_ms(*rc::gen::inRange(10, 1'000));
        const moment start{};
        own_lease mine(length);
        lease_watch watch(length);
        auto now = start;
        std::uint64_t beat = 1;
        const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 300));
        for (const int n : steps) {
            const auto sent = now;
            now += span_ms(n);  // the way to the store, and to the watcher
            if (n % 7 != 0) {
                ++beat;
                mine.renewed(sent);
            }
            watch.saw("s", beat, now);
            now += span_ms(n / 2);
            if (mine.holds(now)) RC_ASSERT(!watch.lapsed("s", now));
        }
    });
}

TEST_CASE("a sidecar that goes by a longer lease is waited for as long as that") {
    const moment start{};
    lease_watch leases(9s);
    leases.saw("longer", 1, start, 20s);
    leases.saw("shorter", 1, start, 3s);
    CHECK_FALSE(leases.lapsed("longer", start + 21s));
    CHECK(leases.lapsed("longer", start + 23s));
    CHECK_FALSE(
        leases.lapsed("shorter", start + 9s));  // nobody is given up sooner than by one's own
    CHECK(leases.lapsed("shorter", start + 10s));
}

TEST_CASE("a hold waits for everyone, and for who is gone only as long as a lease") {
    const moment start{};
    lease_watch leases(9s);
    for (const char* id : {"a", "b", "c"})
        leases.saw(id, 1, start);
    hold_round round({"a", "b", "c"});
    round.acked("a");
    round.acked("nobody");
    CHECK(round.missing(leases, start) == std::vector<std::string>{"b", "c"});
    leases.saw("c", 2, start + 5s);
    CHECK(round.missing(leases, start + 10s) == std::vector<std::string>{"c"});
    CHECK_FALSE(round.drained(leases, start + 14s));
    CHECK(round.drained(leases, start + 15s));
    round.left("c");
    CHECK(round.drained(leases, start + 10s));
}

TEST_CASE("a leader looks at all homes before it decides, and stops at once") {
    using L = lead_state;
    using W = lead_event;
    auto now = L::away;
    CHECK(next(now, W::elected) == L::away);
    now = next(now, W::store_back);
    CHECK(now == L::following);
    CHECK(next(now, W::settled) == L::following);
    now = next(now, W::elected);
    CHECK(now == L::settling);
    CHECK(next(next(now, W::settled), W::settled) == L::leading);
    CHECK(next(next(now, W::settled), W::deposed) == L::following);
    CHECK(next(next(now, W::settled), W::store_lost) == L::away);
}
