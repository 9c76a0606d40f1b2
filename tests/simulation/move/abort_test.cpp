// An operator's abort at every statement of a move, both ways: before the flip it ends the move and
// the tool works at its old home; after it the move goes on to its end.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>

#include "world.hpp"

using namespace sim;
using hotlane::policy::home_kind;

namespace {

struct told {
    bool moved{false};
    std::string phase, outcome, code;
};

std::uint64_t abort_at(home_kind from, std::uint64_t n, told& out) {
    world w;
    w.at_engine.late_after = 1;
    process p(w);
    bool known = false;
    REQUIRE(p.recover(&known));
    hotlane::move::report done;
    if (from == home_kind::postgres) REQUIRE(p.move(home_kind::postgres, &done));
    const home_kind to = from == home_kind::engine ? home_kind::postgres : home_kind::engine;
    std::atomic<bool> order{false};
    p.around.abort = &order;
    const auto start = p.steps.count;
    p.steps.bystanders = [&] {
        w.probe();
        if (p.steps.count + 1 == start + n) order = true;
    };
    REQUIRE(p.move(to, &done));
    const auto record = **w.store.move(done.id);
    out = {done.moved, record.phase, record.outcome, {}};
    if (!done.refusals.empty()) out.code = done.refusals[0].code;
    // Wherever it ended: served at one home, nobody waits, nothing is lost.
    CHECK(p.tool->current()->served);
    CHECK_FALSE(p.tool->gate.held());
    CHECK(p.tool->current()->at.kind == (done.moved ? to : from));
    CHECK(w.probe() == std::vector<home_kind>{done.moved ? to : from});
    CHECK_FALSE(w.both_accepted);
    auto rows = w.rows_at(done.moved ? to : from);
    std::sort(rows.begin(), rows.end());
    std::sort(w.accepted.begin(), w.accepted.end());
    CHECK(rows == w.accepted);
    // The same tool can be moved afterwards.
    p.around.abort = nullptr;
    if (!done.moved) {
        REQUIRE(p.move(to, &done));
        CHECK(done.moved);
    }
    return p.steps.count - start;
}

}  // namespace

TEST_CASE("an abort ends a move in every phase before the flip, and none after it") {
    for (const auto from : {home_kind::engine, home_kind::postgres}) {
        std::vector<std::string> undone_in;
        bool flipped = false;
        for (std::uint64_t n = 1; n < 400; ++n) {
            CAPTURE(n, int(from));
            told end;
            abort_at(from, n, end);
            if (end.moved) {
                CHECK(end.outcome == "done");
                if (flipped) break;  // late enough
                flipped = n > 40;
                continue;
            }
            CHECK_FALSE(flipped);
            CHECK(end.outcome == "undone");
            CHECK(end.code == "aborted");
            undone_in.push_back(end.phase);
        }
        for (const char* phase : {"stage", "rehearse", "fence", "copy", "verify"}) {
            CAPTURE(phase, int(from));
            CHECK(std::count(undone_in.begin(), undone_in.end(), phase) > 0);
        }
    }
}

// The clients of a move that failed wait for no more than what is left of the pause, and a moment.
TEST_CASE("a home that is gone behind the flip holds nobody for long") {
    using namespace std::chrono_literals;
    constexpr auto pause = 200ms, moment = 1'000ms, slack = 1'500ms;
    int waited = 0;
    for (std::uint64_t n = 20; n < 400; ++n) {
        CAPTURE(n);
        world w;
        process p(w);
        bool known = false;
        REQUIRE(p.recover(&known));
        p.tool->settings.hold_max = pause;
        p.with.limit.settle = 60s;
        p.with.limit.settle_pause = 5ms;
        p.steps.at = p.steps.count + n;
        p.steps.what = fault::lost_never;
        p.steps.bystanders = [&] { w.at_postgres.down = w.at_postgres.down || p.steps.happened; };
        hotlane::move::report done;
        const auto start = std::chrono::steady_clock::now();
        REQUIRE(p.move(home_kind::postgres, &done));
        const auto took = std::chrono::steady_clock::now() - start;
        if (p.steps.count < p.steps.at) break;
        if (!p.steps.happened) continue;  // a write to the journal
        CHECK(took < pause + moment + slack);
        CHECK_FALSE(p.tool->gate.held());
        if (p.tool->current()->served) continue;
        CHECK(took > pause);  // it was asked for a while
        CHECK_FALSE(p.tool->current()->reason.empty());
        ++waited;
    }
    CHECK(waited > 0);
}
