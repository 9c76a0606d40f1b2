// Enumerations of the session and of the placement, which know nothing of each other, agree.
#include <catch2/catch.hpp>

#include "router/placement/route.hpp"
#include "router/session/environment.hpp"
#include "router/session/pin.hpp"

using namespace hotlane;

TEST_CASE("a pin is counted under the reason that the session gives") {
    REQUIRE(placement::pin_reasons.size() == session::all_pins.size() + 1);
    for (const auto reason : session::all_pins) {
        const auto at = static_cast<std::size_t>(reason);
        REQUIRE(at < placement::pin_reasons.size());
        CHECK(placement::pin_reasons[at] == session::label_of(reason));
    }
}

TEST_CASE("a retry is counted under its outcome") {
    using outcome = session::retry_outcome;
    const auto name = [](outcome of) {
        return placement::retry_outcomes.at(static_cast<std::size_t>(of));
    };
    CHECK(name(outcome::recovered) == "recovered");
    CHECK(name(outcome::exhausted) == "exhausted");
    CHECK(name(outcome::too_large) == "too_large");
    CHECK(name(outcome::given_up) == "given_up");
}
