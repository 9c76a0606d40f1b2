#include "policy/shadow.hpp"

#include "build.hpp"

using namespace hotlane::policy;
using namespace hotlane::policy::testing;

namespace {

constexpr std::int64_t second = 1'000'000;

// `sessions` clients that write at once when they are answered; each write took `took` us.
std::vector<write_interval> closed_loop(int sessions,
                                        std::int64_t think,
                                        std::int64_t took,
                                        bool one_key,
                                        std::int64_t length = second) {
    std::vector<write_interval> out;
    for (int s = 0; s < sessions; ++s) {
        std::uint64_t n = 0;
        for (std::int64_t at = 17 * s; at + think + took + 400 < length;) {
            const auto mine = static_cast<std::uint64_t>(s + 1) * 1'000'000 + ++n;
            // Nobody thinks evenly: two that march in step would meet at the lane each time.
            const auto pause = think + static_cast<std::int64_t>(n * 131 + mine / 7'919) % 400;
            out.push_back({static_cast<std::uint64_t>(s + 1),
                           at + pause,
                           at + pause + took,
                           one_key ? 1 : mine});
            at += pause + took;
        }
    }
    return out;
}

}  // namespace

TEST_CASE("one sequential client never hands off to itself and never conflicts") {
    const auto got = simulate_lane(closed_loop(1, 0, 300, true), 0, second, {300, 5'000});
    CHECK(got.acquires > 150);
    CHECK(got.acquires < 230);  // 5.3 ms each, about: the engine is slower, so it is asked less
    CHECK(got.handoffs == 0);
    CHECK(got.conflicts == 0);
}

TEST_CASE("writers of one row queue and conflict, writers of different rows hardly do either") {
    const auto hot = simulate_lane(closed_loop(16, 0, 500, true), 0, second, {800, 5'000});
    CHECK(*hot.handoff_rate() > 0.6);
    CHECK(*hot.conflict_rate() > 0.6);
    CHECK(*hot.mean_wait_us() > 5'000);
    const auto distinct = simulate_lane(closed_loop(8, 400, 500, false), 0, second, {30, 5'000});
    CHECK(distinct.conflicts == 0);
    CHECK(*distinct.handoff_rate() < 0.6);
    CHECK(*distinct.mean_wait_us() < 300);  // they come back together and are through at once
}

TEST_CASE("the lane is free while a write becomes durable") {
    // Two writers of different rows overlap in the slow part.
    const auto one = simulate_lane(closed_loop(1, 0, 500, false), 0, second, {10, 10'000});
    const auto two = simulate_lane(closed_loop(2, 0, 500, false), 0, second, {10, 10'000});
    CHECK(two.acquires > one.acquires * 3 / 2);
    CHECK(two.handoffs <= 6);
}

TEST_CASE("the writes of a group commit come back together") {
    // Far less than the lane could take, and yet they queue: they are answered in groups.
    const auto many = simulate_lane(closed_loop(16, 0, 500, false), 0, second, {200, 20'000});
    CHECK(many.conflicts == 0);
    CHECK(*many.handoff_rate() > 0.3);
    CHECK(*many.handoff_rate() < 0.95);
    CHECK(*many.mean_wait_us() < 2'000);
}

TEST_CASE("the same writes are predicted the same way") {
    const auto writes = closed_loop(8, 100, 500, true);
    const auto a = simulate_lane(writes, 0, second, {500, 5'000});
    const auto b = simulate_lane(writes, 0, second, {500, 5'000});
    CHECK(a.acquires == b.acquires);
    CHECK(a.wait_us == b.wait_us);
}

TEST_CASE("without keys all writes count as one, which errs on the safe side") {
    auto writes = closed_loop(8, 500, 500, false);
    const auto known = simulate_lane(writes, 0, second, {300, 5'000});
    for (auto& one : writes)
        one.key = 0;
    const auto unknown = simulate_lane(writes, 0, second, {300, 5'000});
    CHECK(known.conflicts == 0);
    CHECK(unknown.conflicts > unknown.acquires / 3);
}

TEST_CASE("nothing is predicted of nothing, and a model that cannot hold is cut") {
    CHECK(simulate_lane({}, 0, second, {}).acquires == 0);
    CHECK(simulate_lane(closed_loop(1, 0, 300, true), 5, 5, {}).acquires == 0);
    const auto fast = simulate_lane(closed_loop(64, 0, 900, true), 0, 3'600 * second, {0, 0});
    CHECK(fast.acquires < 1'000'000);
    CHECK(simulate_postgres({}, 0, second, {}).writes == 0);
    CHECK_FALSE(figures_of({}, 0, second));
}

TEST_CASE("writers of one row line up on PostgreSQL and none fails, unless in transactions") {
    auto writes = closed_loop(16, 0, 5'000, true);
    const postgres_model home{200, 500};
    const auto rows = simulate_postgres(writes, 0, second, home);
    CHECK(rows.failure_rate == 0.0);
    CHECK(rows.latency_us > 10 * home.commit_us);  // fifteen others are before it
    CHECK(rows.writes_per_s > 1'500);
    for (auto& one : writes)
        one.block = true;
    CHECK(simulate_postgres(writes, 0, second, home).failure_rate > 0.5);
    const auto apart = simulate_postgres(closed_loop(16, 0, 5'000, false), 0, second, home);
    CHECK(apart.latency_us < 1'000);
}

TEST_CASE("the engine's times are found again in what it did") {
    for (const double in_lane : {100.0, 400.0, 1'500.0}) {
        const lane_model truth{in_lane, 5'000};
        // What clients of such an engine see: some alone, some eight together.
        auto writes = closed_loop(8, 2'000, static_cast<std::int64_t>(in_lane) + 5'000, false);
        const auto lane = simulate_lane(writes, 0, second, truth);
        window counted;
        counted.quality = window_quality::good;
        counted.from = time_point{};
        counted.to = time_point{} + duration{1'000};
        counted.acquires = lane.acquires;
        counted.handoffs = lane.handoffs;
        counted.wait_us = lane.wait_us;
        const auto found = measure_lane(writes, counted, {});
        REQUIRE(found);
        CHECK(found->is_measured);
        CHECK(found->in_lane_us == Approx(in_lane).epsilon(0.3));
        CHECK(found->in_lane_us + found->durable_us == Approx(in_lane + 5'000).epsilon(0.1));
    }
}

TEST_CASE("the log of writes is bounded, and knows what it lost") {
    write_log log{100};
    CHECK_FALSE(log.between(0, second));
    std::vector<write_interval> writes;
    for (std::int64_t at = 0; at < 200'000; at += 1'000)
        writes.push_back({1, at, at + 1'000, 1});
    log.add(std::span{writes}.first(100));
    CHECK(log.between(0, second)->size() == 100);
    CHECK(log.between(50'000, 60'000)->size() == 10);
    CHECK_FALSE(log.between(2 * second, 3 * second));
    log.add(std::span{writes}.subspan(100, 50));
    CHECK_FALSE(log.between(0, second));
    CHECK(log.between(60'000, second)->size() > 80);
    log.forget_before(120'000);
    CHECK_FALSE(log.between(60'000, second));
    log.clear();
    CHECK_FALSE(log.between(120'000, second));
}
