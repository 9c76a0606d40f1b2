// The way out where the homes cannot decide any more: a PostgreSQL home that was restored from a
// backup knows less than the store does, so nobody serves. An operator says which home holds from
// now on; it gets an epoch above everything that was seen, and the other home accepts no more.
//
// Exactly one home accepts afterwards, and at no moment two: PostgreSQL's marker, its fence and its
// opening are ONE transaction, and the engine's names are opened behind it, as after any move.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "router/move/engine_home.hpp"
#include "router/move/job.hpp"

namespace hotlane::move {

struct counted_table {
    std::string name;
    std::optional<std::uint64_t> rows;  // nothing: they could not be counted
};

// What both homes and the store say. Nothing is changed.
struct adopt_view {
    std::optional<placement::placement_record> stored;
    std::optional<marker> mark;
    std::optional<hint> hinted;  // by the engine
    // PostgreSQL: tables under their real names; in the fence of the marker's move.
    std::vector<counted_table> at_postgres, fenced;
    // The engine: tables under their real names; tombstones; the newest copy that a move kept.
    std::vector<counted_table> at_engine, copies;
    std::vector<std::string> tombstones;
    std::string copy_of;                       // the move that kept the copies; empty: none
    std::optional<policy::time_point> left;    // when that move began
    std::vector<std::string> known;            // tables that the tool had when it was last moved
    std::vector<placement::move_record> open;  // moves that the journal does not know the end of
    std::uint64_t highest{0};                  // epoch that anything of this names

    std::unique_ptr<home_link> engine, postgres;
};

// An error: a home or the store did not answer.
tl::expected<adopt_view, refusal> look_to_adopt(context& with);

// Why `home` cannot be adopted; empty: it can. PURE.
std::vector<refusal> why_not_adopt(const adopt_view& seen,
                                   policy::home_kind home,
                                   const placement::route& now);
// What of what was acknowledged may be missing then, in words. PURE.
std::vector<std::string> what_may_be_missing(const adopt_view& seen, policy::home_kind home);

nlohmann::json to_json(const adopt_view& seen);

inline constexpr std::string_view adopting_outcome = "adopting";

adopted adopt_with(context& with, const adoption& what, const std::string& id);

}  // namespace hotlane::move
