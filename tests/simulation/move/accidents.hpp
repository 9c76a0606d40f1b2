// What the tests of accidents share: a world, a move that meets one, and what must hold afterwards.
#pragma once

#include <memory>

#include "world.hpp"

namespace sim {

struct setting {
    hotlane::policy::home_kind from{};
    int late_after{1};
    std::uint32_t make_tables{0};
    bool ahead{false}, by_hotlane{false};
};

hotlane::policy::home_kind other(hotlane::policy::home_kind h);
// The tool is where one home says; the ledger is exact there.
void check_world(world& w, hotlane::policy::home_kind where);
// A world whose tool lives at `from`, undisturbed so far.
std::unique_ptr<world> make_world(const setting& s);
// Recovers until it is done (every accident is bounded) and gives the tool's home.
hotlane::policy::home_kind recover_for_good(world& w);
// After any accident: the place is stable, late statements do nothing, and the tool can move.
void check_life_goes_on(world& w);
std::uint64_t count_steps(const setting& with);
// One move from `from` with an accident at its n-th step.
void disturbed_move(world& w, hotlane::policy::home_kind from, std::uint64_t n, fault f);
// Each kind at each statement of a move.
void every_accident(const setting& with);

}  // namespace sim
