// Thousands of short lives of fleets. HOTLANE_FLEET_RUNS=N tries more seeds, HOTLANE_FLEET_SEED=N
// one alone.
#include <cstdlib>

#include <catch2/catch.hpp>

#include "world.hpp"

using namespace sim;

namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* const said = std::getenv(name);
    return said == nullptr ? otherwise : std::strtoull(said, nullptr, 10);
}

int size_for(std::uint64_t seed) {
    if (seed % 100 == 0) return 50;
    return static_cast<int>(2 + seed % 8);
}

}  // namespace

TEST_CASE("a fleet keeps its promises whatever happens to it") {
    const auto only = from_environment("HOTLANE_FLEET_SEED", 0);
    const auto runs = from_environment("HOTLANE_FLEET_RUNS", 300);
    int moves = 0, writes = 0, elections = 0;
    for (std::uint64_t seed = only > 0 ? only : 1; seed <= (only > 0 ? only : runs); ++seed) {
        INFO("HOTLANE_FLEET_SEED=" << seed);
        world w(seed, size_for(seed), known_fault::none);
        const auto broken = w.run(60'000, 60'000);
        CHECK(broken == "");
        if (!broken.empty()) break;
        moves += w.moves_done();
        writes += w.writes_acked();
        elections += w.elections();
    }
    WARN(moves << " moves, " << elections << " elections, " << writes << " writes acknowledged");
    if (only == 0) {
        CHECK(moves > static_cast<int>(runs));
        CHECK(elections > static_cast<int>(runs));
    }
}

TEST_CASE("the checker finds every fault that is put in") {
    const auto fault = GENERATE(known_fault::lost_flip_is_failure,
                                known_fault::name_used_twice,
                                known_fault::fence_without_number,
                                known_fault::release_before_marker);
    bool found = false;
    std::uint64_t seed = 1;
    for (; seed <= 400 && !found; ++seed) {
        world w(seed, static_cast<int>(2 + seed % 5), fault);
        const auto broken = w.run(60'000, 60'000);
        if (broken.empty()) continue;
        WARN("fault " << static_cast<int>(fault) << " found with seed " << seed << ": " << broken);
        found = true;
    }
    CHECK(found);
}
