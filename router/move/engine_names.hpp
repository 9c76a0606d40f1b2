// Puts the engine's names right after anything: a lost reply, a rename that comes late, kill -9.
//
// A rename a -> b whose reply was lost may still happen at any time, once. It cannot do harm when a
// is absent or b is taken. So before the tool's data gets its real name back, every name that a
// late rename of this move could lead to is taken (by what belongs there, or by a placeholder):
//
//   undo of a move out    late: t->f, x->t, t->x, f->t, t->s   end: t data; f, x, s taken
//   open after a return   late: t->d, n->t, t->s               end: t data; d, s taken
//
// Both are loops of: read the catalog, take the one next step, whose own failure is no matter (the
// next reading tells). Each late rename can cross a loop once, so the loops end.
// kill -9 anywhere: run again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "router/move/engine_home.hpp"
#include "router/move/plan.hpp"

namespace hotlane::move {

struct names_job {
    std::string move;
    std::vector<std::string> tables;
    // For each table: numbers of stray names in use. Raised, and told to `before_stray` (which must
    // make it durable) before a stray is renamed; false stops the loop.
    std::vector<std::uint32_t> strays;
    std::function<bool(const names_job&)> before_stray;
    std::vector<std::string> alarms;  // strays, in words
};

// fate::unknown in the error: run again over a new link. fate::refused: a person is needed.
answer<void> undo_fence(home_link& engine, names_job& job);
answer<void> open_staged(home_link& engine, names_job& job);

// The next step for one table, from what stands where. PURE; the loops above and the tests use it.
enum class name_step : std::uint8_t {
    done,
    seal_away,    // take the name f (undo) or d (open)
    seal_spare,   // take the name x
    seal_stray,   // take the stray names in use
    clear_ours,   // t -> x (undo) or t -> d (open), and at once bring_data
    clear_stray,  // t -> the next stray name, and at once bring_data
    bring_data,   // f -> t (undo) or staged -> t (open)
    lost          // the data is nowhere
};
struct name_view {
    stands real{};        // t
    stands kept{};        // f (undo), staged (open)
    stands spare{};       // x (undo), d (open)
    bool strays_taken{};  // all stray names in use are taken
};
name_step next_undo_step(const name_view& v) noexcept;
name_step next_open_step(const name_view& v) noexcept;

}  // namespace hotlane::move
