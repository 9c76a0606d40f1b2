// When a copy ahead may believe that it knows every change, and how long a pause it foresees.
#include <catch2/catch.hpp>

#include "router/move/ahead_sums.hpp"

using namespace hotlane::move;
using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

commit_sums sums(engine_count begin, engine_count fence, std::uint64_t seen, std::uint64_t own) {
    return {begin, fence, seen, own};
}

}  // namespace

TEST_CASE("every commit was seen only where both counts say so") {
    CHECK(all_was_seen(sums({10, 100}, {10, 104}, 0, 4)));
    CHECK(all_was_seen(sums({10, 100}, {15, 109}, 5, 4)));
    SECTION("a commit of nobody") {
        CHECK_FALSE(all_was_seen(sums({10, 100}, {16, 110}, 5, 4)));
    }
    SECTION("a commit that the engine does not know") {
        CHECK_FALSE(all_was_seen(sums({10, 100}, {14, 108}, 5, 4)));
    }
    SECTION("DDL of nobody") {
        CHECK_FALSE(all_was_seen(sums({10, 100}, {15, 110}, 5, 4)));
    }
    SECTION("an LSN that steps otherwise") {
        CHECK_FALSE(all_was_seen(sums({10, 100}, {15, 900}, 5, 4)));
    }
    SECTION("an engine that started again") {
        CHECK_FALSE(all_was_seen(sums({10, 100}, {5, 109}, 5, 4)));
        CHECK_FALSE(all_was_seen(sums({10, 100}, {15, 9}, 5, 4)));
    }
    SECTION("a count that was not exact, or that nobody could read") {
        CHECK_FALSE(all_was_seen({std::nullopt, engine_count{0, 0}, 0, 0}));
        CHECK_FALSE(all_was_seen({engine_count{0, 0}, std::nullopt, 0, 0}));
    }
}

TEST_CASE("the pause that is foreseen is that of what changed, or of everything") {
    const std::vector<table_times> tables{{milliseconds(900), milliseconds(300), false},
                                          {milliseconds(10), milliseconds(5), true}};
    const auto nothing = forecast_pause(std::vector<table_times>(2), true);
    CHECK(nothing >= milliseconds(50));
    CHECK(forecast_pause(tables, true) == nothing + milliseconds(15));
    // What did not change by our count is read once more, and not written.
    CHECK(forecast_pause(tables, false) == nothing + milliseconds(15 + 900));
    auto hot = tables;
    hot[0].changed = true;
    CHECK(forecast_pause(hot, true) == nothing + milliseconds(15 + 1'200));
    CHECK(forecast_pause(hot, false) == nothing + milliseconds(15 + 1'200));
}
