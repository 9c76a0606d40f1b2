// Every name that a move makes at a home. A move's id is never used twice, so no name is: whatever
// comes late (a rename whose reply was lost) can only meet names of its own move.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "policy/types.hpp"

namespace hotlane::move {

// 13 characters of base32: 45 bits of milliseconds, 20 bits of `random`. Sorts by time.
std::string make_move_id(policy::time_point now, std::uint64_t random);
bool is_move_id(std::string_view text) noexcept;

// Tables on the engine, one a table of the tool: index counts from 0.
enum class part : char {
    fenced = 'f',     // the real table while fenced
    spare = 'x',      // its tombstone before and after it stands under the real name
    stray = 's',      // what somebody put under the real name meanwhile (with a number)
    staged = 't',     // the copy built on the way back
    discarded = 'd',  // the tombstone that stood in the way of a return
    probe = 'p'       // scratch tables on which the levers are tried
};
std::string engine_name(std::string_view move, part what, std::size_t index);
std::string stray_name(std::string_view move, std::size_t index, std::size_t number);

// Schemas on PostgreSQL.
std::string staging_schema(std::string_view move);
std::string fenced_schema(std::string_view move);
// Publication and slot of a copy that runs ahead, on the way back.
std::string decoding_name(std::string_view move);
inline constexpr std::string_view own_schema = "hotlane";

// The engine's hint for people and late sidecars.
inline constexpr std::string_view hint_table = "hotlane_home";

// The move that such a name is of; empty: it is none of that part.
std::string move_of_name(std::string_view name, part what);

// True: a name that only a move of ours makes (it is no table of the tool).
bool is_own_name(std::string_view name) noexcept;

}  // namespace hotlane::move
