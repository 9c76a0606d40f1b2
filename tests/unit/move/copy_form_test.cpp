// When the rows of a move go over, for every rule and every forecast.
#include <catch2/catch.hpp>

#include "router/move/preflight.hpp"

using namespace hotlane::move;
using hotlane::config::copy_rule;
using std::chrono::milliseconds;

TEST_CASE("the form of a copy follows the rule, the forecast and what is possible") {
    struct row {
        copy_rule asked;
        int held_ms, budget_ms;
        copy_form possible, impossible;  // where a copy ahead is possible, and where it is not
    };
    constexpr auto a = copy_rule::automatic, ahead = copy_rule::ahead, held = copy_rule::held;
    const int edge = static_cast<int>(held_copy_short.count());
    const row rows[] = {
        {a, edge, 2'000, copy_form::held, copy_form::held},
        {a, edge + 1, 2'000, copy_form::ahead, copy_form::held_for_lack},
        {a, 2'000, 2'000, copy_form::ahead, copy_form::held_for_lack},
        {a, 2'001, 2'000, copy_form::ahead, copy_form::refused},
        {a, 90, 60, copy_form::ahead, copy_form::refused},
        {ahead, 1, 2'000, copy_form::ahead, copy_form::refused},
        {ahead, 2'001, 2'000, copy_form::ahead, copy_form::refused},
        {held, 1, 2'000, copy_form::held, copy_form::held},
        {held, 2'000, 2'000, copy_form::held, copy_form::held},
        {held, 2'001, 2'000, copy_form::refused, copy_form::refused},
    };
    for (const auto& r : rows) {
        INFO(static_cast<int>(r.asked) << " " << r.held_ms << " of " << r.budget_ms);
        CHECK(copy_form_of(r.asked, milliseconds(r.held_ms), milliseconds(r.budget_ms), true) ==
              r.possible);
        CHECK(copy_form_of(r.asked, milliseconds(r.held_ms), milliseconds(r.budget_ms), false) ==
              r.impossible);
    }
}
