// What a seed decides in the properties of sessions.
#pragma once

#include <cstddef>
#include <random>

namespace hotlane::session::testing {

using dice = std::mt19937_64;

// 0 .. below - 1
inline std::size_t roll(dice& random, std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(random);
}

}  // namespace hotlane::session::testing
