#include <rapidcheck.h>
#include <algorithm>

#include <catch2/catch.hpp>

#include "router/placement/route.hpp"

using namespace hotlane::placement;

namespace {

// The definition, exponential and obviously right.
bool model_match(std::string_view pattern, std::string_view text) {
    if (pattern.empty()) return text.empty();
    if (pattern[0] == '*') {
        return model_match(pattern.substr(1), text) ||
               (!text.empty() && model_match(pattern, text.substr(1)));
    }
    return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
           model_match(pattern.substr(1), text.substr(1));
}

}  // namespace

TEST_CASE("glob_match agrees with its definition") {
    REQUIRE(rc::check("glob", [] {
        auto pattern = *rc::gen::container<std::string>(rc::gen::element('a', 'b', '*', '?'));
        auto text = *rc::gen::container<std::string>(rc::gen::element('a', 'b'));
        // The model takes exponential time.
        pattern.resize(std::min<std::size_t>(pattern.size(), 12));
        text.resize(std::min<std::size_t>(text.size(), 14));
        RC_ASSERT(glob_match(pattern, text) == model_match(pattern, text));
    }));
}
