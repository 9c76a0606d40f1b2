// What a rehearsal means: which statements are rehearsed, what a refusal says, which types differ.
// PURE. The texts of the application hold its values: only their shapes come out of here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "router/move/link.hpp"
#include "router/move/move.hpp"
#include "router/move/plan.hpp"
#include "router/placement/statements.hpp"

namespace hotlane::move {

// One statement of one text that was seen.
struct piece {
    std::string sql;
    std::vector<std::uint32_t> types;
    std::string shown;    // without values
    bool concerns{true};  // a table of the move, or no table at all, or none that can be told
};

enum class treated : std::uint8_t {
    rehearsed,
    control,     // transactions, SET, SHOW, LISTEN, EXPLAIN ...: the application needs no answer
    definition,  // DDL: PostgreSQL looks at it only when it runs it
};
struct pieces {
    std::vector<piece> all;
    std::uint64_t control{0};
    std::uint64_t definitions{0};
    std::vector<std::string> unreadable_definitions;  // DDL that PostgreSQL's parser refuses
};
pieces take_apart(const std::vector<placement::seen_statement>& seen, const plan& p);

struct type_difference {
    std::string statement;
    std::string what;  // "column n", "parameter $1", "columns"
    std::string was, will_be;
};
// What the client is told at the old home, against the new one.
std::vector<type_difference> compare(const piece& one,
                                     const description& was,
                                     const description& will_be);
std::string type_name(std::uint32_t type);

// What became of one statement.
enum class heard : std::uint8_t {
    taken,
    refused,    // by the new home only, and it concerns the tool's tables
    both,       // by the old home as well
    elsewhere,  // by the new home only; it names only relations that do not move
    unwritable  // it could not be written for the staged names
};
heard judge(const piece& one, bool old_takes, bool new_takes) noexcept;

struct rehearsal {
    std::vector<refusal> refusals;
    std::vector<type_difference> differences;
    std::vector<std::string> refused_by_both, elsewhere, unwritable;
    std::uint64_t seen{0}, rehearsed{0}, left{0}, more{0};  // more: beyond what is listed
};
refusal refusal_of(const piece& one, policy::home_kind at, const link_error& error);
// Bounded: what is beyond the bound is counted in `more`.
void note(rehearsal& r, const piece& one, heard what);
void note(rehearsal& r, std::vector<type_difference> found);
nlohmann::json to_json(const rehearsal& r, const pieces& from);

}  // namespace hotlane::move
