// Where does a tool live, and what has to be done before it is served? PURE: facts in, plan out,
// one table (decide.cpp) read from the top, first row that fits.
#pragma once

#include <cstdint>
#include <string_view>

#include "policy/types.hpp"

namespace hotlane::move {

// How far the journal of the unfinished move says that it came.
enum class journal_point : std::uint8_t {
    none,          // no unfinished move
    before_fence,  // nothing was fenced yet
    fenced,        // the fence may stand; the flip was provably never sent
    committing,    // the flip may have been sent
    committed      // the flip was acknowledged
};

// What the marker says, in the words of the unfinished move (OUT: away -> staging -> serving,
// BACK: serving -> fenced -> away).
enum class marker_point : std::uint8_t {
    unreachable,
    absent,     // no table or no row
    at_start,   // as before the move
    midway,     // staging(m) or fenced(m) of this move
    flipped,    // this move's flip has happened
    elsewhere,  // another move or epoch
    // without an unfinished move:
    away,
    staging,
    serving,
    fenced
};

// What the store remembers, against the marker's epoch.
enum class store_point : std::uint8_t {
    none,
    engine,         // and not behind the marker
    engine_behind,  // the marker has a higher epoch
    engine_ahead,   // the marker has a lower epoch: the PostgreSQL home was restored
    postgres,       // and not behind the marker
    postgres_behind,
    postgres_ahead
};

// What the engine shows; asked only where the table needs it.
enum class engine_point : std::uint8_t {
    unasked,
    unreachable,
    untouched,  // no name of ours: no move ever began here
    traces      // tombstones, fenced copies or a hint
};

struct home_facts {
    journal_point journal{journal_point::none};
    policy::home_kind to{policy::home_kind::postgres};  // of the unfinished move
    marker_point marker{marker_point::unreachable};
    store_point stored{store_point::none};
    engine_point engine{engine_point::unasked};
};

enum class serve_at : std::uint8_t { engine, postgres, nobody };
enum class engine_work : std::uint8_t {
    none,
    undo_fence,   // of the unfinished move
    open_staged,  // of the unfinished move
    repair        // by the marker's move, whatever it was
};
enum class marker_work : std::uint8_t { none, undo_stage, unfence };
enum class move_end : std::uint8_t {
    none,
    undone,
    done,
    forget  // the homes know better: the move is closed and the facts are read again
};

struct verdict {
    serve_at where{serve_at::nobody};
    engine_work on_engine{engine_work::none};
    marker_work on_marker{marker_work::none};
    move_end ends{move_end::none};
    bool ask_engine{false};   // decide again with `engine` filled in
    std::string_view reason;  // why nobody serves, or what was found
};

verdict decide(const home_facts& facts) noexcept;

// For the leader of a fleet, whose journal may have lost its tail (a store that failed over, or
// came from a backup) while an earlier leader went on for a moment: the homes know better, and what
// an unfinished move could still rename at the engine is sealed whatever the journal says.
verdict decide_in_fleet(const home_facts& facts) noexcept;

// For a sidecar that only reads: where to serve, with no work. A move under way is the leader's.
verdict decide_to_follow(const home_facts& facts) noexcept;

}  // namespace hotlane::move
