#include "policy/verdict.hpp"

#include "build.hpp"
#include "policy/diagnosis.hpp"

using namespace hotlane::policy;
using namespace hotlane::policy::testing;

namespace {

constexpr std::chrono::microseconds latency{5'000};

window good(double handoff_rate, double wait_us, double abort_rate, int index = 0) {
    window w;
    w.from = t0 + duration{2'000} * index;
    w.to = w.from + duration{2'000};
    w.quality = window_quality::good;
    w.acquires = 1'000;
    w.handoffs = static_cast<std::uint64_t>(1'000 * handoff_rate);
    w.wait_us = static_cast<std::uint64_t>(static_cast<double>(w.handoffs) * wait_us);
    w.commits = static_cast<std::uint64_t>(1'000 * (1 - abort_rate));
    w.seen_writes = 1'000;
    w.seen_conflicts = 1'000 - *w.commits;
    return w;
}

// h: hot, c: calm, b: busy lane, everything else a window that does not count
std::vector<window> series(const std::string& shape) {
    std::vector<window> all;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const int at = static_cast<int>(i);
        window w = good(0.05, 100, 0, at);
        if (shape[i] == 'h') w = good(0.7, 16'000, 0.8, at);
        if (shape[i] == 'b') w = good(0.7, 16'000, 0.0, at);
        if (shape[i] == 'i') w.quality = window_quality::idle;
        if (shape[i] == 'g') w.quality = window_quality::gap;
        if (shape[i] == 'r') w.quality = window_quality::reset;
        if (shape[i] == 's') w.quality = window_quality::stalled;
        all.push_back(w);
    }
    return all;
}

proof prove_series(const std::string& shape, const settings& with, level at = level::enter) {
    const auto all = series(shape);
    return prove(all, with, at, latency, time_point{}, all.back().to);
}

}  // namespace

TEST_CASE("one window is judged by two ways in, with hysteresis") {
    const settings with;
    struct row {
        double handoff, wait_us, abort;
        verdict enter, leave;
    };
    const std::vector<row> rows{
        {0.67, 16'000, 0.82, verdict::hot, verdict::hot},
        {0.61, 19'000, 0.00, verdict::hot, verdict::hot},    // by the lane alone
        {0.04, 500, 0.53, verdict::hot, verdict::hot},       // by aborts alone
        {0.67, 4'000, 0.00, verdict::calm, verdict::hot},    // short waits: no harm
        {0.40, 16'000, 0.00, verdict::calm, verdict::hot},   // between the thresholds
        {0.25, 16'000, 0.00, verdict::calm, verdict::calm},  // few wait
        {0.67, 2'000, 0.00, verdict::calm, verdict::calm},
        {0.05, 100, 0.20, verdict::calm, verdict::hot},
        {0.05, 100, 0.12, verdict::calm, verdict::hot},  // conflicts are still above 0.1
        {0.05, 100, 0.05, verdict::calm, verdict::calm},
    };
    for (const row& one : rows) {
        INFO(one.handoff << " " << one.wait_us << " " << one.abort);
        const window w = good(one.handoff, one.wait_us, one.abort);
        CHECK(judge(w, thresholds_of(with, level::enter, latency)) == one.enter);
        CHECK(judge(w, thresholds_of(with, level::leave, latency)) == one.leave);
    }
}

TEST_CASE("mean wait is measured against an uncontended commit unless it is fixed") {
    settings with;
    const window w = good(0.6, 16'000, 0.0);
    const auto at = [&](int ms) {
        return judge(w, thresholds_of(with, level::enter, std::chrono::milliseconds(ms)));
    };
    CHECK(at(5) == verdict::hot);
    CHECK(at(30) == verdict::calm);  // a slow storage day is not contention
    with.detect.mean_wait_enter = duration{10};
    CHECK(at(30) == verdict::hot);
}

TEST_CASE("an engine that does not count commits is judged by its lane") {
    const settings with;
    window w = good(0.6, 16'000, 0.0);
    w.commits.reset();
    CHECK(judge(w, thresholds_of(with, level::enter, latency)) == verdict::hot);
}

TEST_CASE("proof needs k of n, the pooled rates, and ten seconds of agreeing windows") {
    const settings with = short_settings();  // windows of 2 s: k grows to 5, n to 8
    CHECK(size_of_proof(with).needed == 5);
    CHECK(size_of_proof(with).wanted == 8);
    struct row {
        std::string shape;
        verdict standing;
    };
    const std::vector<row> rows{
        {"hhhh", verdict::unknown},  // 8 s
        {"hhhhh", verdict::hot},
        {"cchhhhh", verdict::hot},
        {"hhchhch", verdict::hot},
        {"hhchchc", verdict::unknown},
        {"hhigrshhh", verdict::hot},  // what does not count is not there
        {"ccccc", verdict::calm},
        {"iiiiiiii", verdict::unknown},
        {"hhhhhcccccc", verdict::calm},
    };
    for (const row& one : rows) {
        INFO(one.shape);
        CHECK(to_string(prove_series(one.shape, with).standing) == to_string(one.standing));
    }
    // Two of eight windows full of conflicts keep the pool from being calm.
    CHECK(prove_series("hhccccc", with, level::leave).standing == verdict::unknown);
}

TEST_CASE("enough hot windows are no proof while all of them together are calm") {
    const settings with = short_settings();
    auto all = series("hhchhch");
    REQUIRE(prove(all, with, level::enter, latency, time_point{}, all.back().to).standing ==
            verdict::hot);
    for (window& w : all) {
        if (judge(w, thresholds_of(with, level::enter, latency)) != verdict::calm) continue;
        w.acquires *= 100;  // nearly all of the load ran in the two calm windows
        *w.commits *= 100;
        w.seen_writes *= 100;
    }
    const proof made = prove(all, with, level::enter, latency, time_point{}, all.back().to);
    CHECK(made.hot == 5);
    CHECK(made.standing == verdict::unknown);
}

TEST_CASE("proof is never shorter than ten seconds, whatever the file says") {
    settings with = short_settings();
    with.window.hot_of = 1;
    with.window.out_of = 1;
    with.window.proof_min = duration{0};
    CHECK(prove_series("hhhh", with).standing == verdict::unknown);
    CHECK(prove_series("hhhhh", with).standing == verdict::hot);
}

TEST_CASE("windows that are too old, or from before a lever, do not count") {
    const settings with = short_settings();
    const auto all = series("hhhhh");
    const auto at = [&](time_point not_before, time_point now) {
        return prove(all, with, level::enter, latency, not_before, now).standing;
    };
    CHECK(at(time_point{}, all.back().to) == verdict::hot);
    CHECK(at(all[1].from, all.back().to) == verdict::unknown);
    CHECK(at(time_point{}, all.back().to + window_age_max(with)) == verdict::unknown);
}

TEST_CASE("the diagnosis comes from the conflicts that were seen") {
    const settings with = short_settings();
    struct row {
        std::string shape;
        double seen_share, conflicts;
        diagnosis expected;
    };
    const std::vector<row> rows{
        {"hhhhh", 1.0, 0.8, diagnosis::hot_row},
        {"hhhhh", 0.8, 0.1, diagnosis::hot_row},
        {"hhhhh", 0.79, 0.8, diagnosis::unknown},
        {"hhhhh", 0.0, 0.0, diagnosis::unknown},
        {"bbbbb", 1.0, 0.0, diagnosis::busy_lane},
        {"bbbbb", 1.0, 0.09, diagnosis::busy_lane},
        {"ccccc", 1.0, 0.8, diagnosis::hot_row},  // hot by its conflicts alone
        {"ccccc", 1.0, 0.2, diagnosis::none},     // not hot: nothing to diagnose
    };
    for (const row& one : rows) {
        auto all = series(one.shape);
        for (window& w : all) {
            w.seen_writes = static_cast<std::uint64_t>(1'000 * one.seen_share);
            w.seen_conflicts =
                static_cast<std::uint64_t>(static_cast<double>(w.seen_writes) * one.conflicts);
        }
        const proof hot = prove(all, with, level::enter, latency, time_point{}, all.back().to);
        INFO(one.shape << " " << one.seen_share << " " << one.conflicts);
        const finding found = diagnose(hot, with, "counters");
        CHECK(to_string(found.what) == to_string(one.expected));
        CHECK_FALSE(found.note.empty());
    }
}

TEST_CASE("aborts without conflicts are neither a hot row nor a busy lane") {
    const settings with = short_settings();
    std::vector<window> all;
    for (int i = 0; i < 5; ++i) {
        all.push_back(good(0.05, 100, 0.6, i));
        all.back().seen_conflicts = 0;
    }
    const proof hot = prove(all, with, level::enter, latency, time_point{}, all.back().to);
    CHECK(hot.standing == verdict::hot);
    CHECK(diagnose(hot, with, "").what == diagnosis::none);
}
