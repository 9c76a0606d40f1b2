// What a move says to the engine and reads from it. Every function sends one statement or a few,
// each checked; DDL with an unknown fate is the caller's (engine_names.hpp) to make decidable.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "router/move/link.hpp"
#include "router/move/plan.hpp"

namespace hotlane::move {

struct catalog_column {
    std::string name, type;
    bool not_null{false}, key{false}, unique{false};
    std::optional<std::string> default_expression;
};
// Table name -> its columns in order.
using engine_catalog = std::map<std::string, std::vector<catalog_column>>;
answer<engine_catalog> read_engine_catalog(home_link& engine);

// What stands under a name on the engine.
enum class stands : std::uint8_t {
    nothing,
    ours,  // a tombstone or a placeholder: nothing of the tool
    data
};
stands what_stands(const engine_catalog& catalog, const std::string& name);

// twill_committed_lsn; empty: the engine did not tell (unknown is a difference).
answer<std::string> read_lsn(home_link& engine);
// twill_commit_total; nullopt: the engine did not tell.
answer<std::optional<std::uint64_t>> read_commits(home_link& engine);

// Its count of commits and its LSN at one moment; nullopt: it does not tell one of them.
struct engine_count {
    std::uint64_t commits{}, lsn{};
};
answer<std::optional<engine_count>> read_count(home_link& engine);

struct relationship {
    std::string table, columns, foreign_table;
};
answer<std::vector<relationship>> read_relationships(home_link& engine);

// DDL. Names come unquoted.
answer<void> rename_table(home_link& engine, const std::string& from, const std::string& to);
answer<void> drop_table(home_link& engine, const std::string& name);
// One foreign column, checked, and one row: nearly every statement of the tool ends in an error.
answer<void> create_tombstone(home_link& engine, const std::string& name, std::uint64_t epoch);
// Takes a name so that a late rename to it must fail.
answer<void> create_placeholder(home_link& engine, const std::string& name);

struct hint {
    std::string move, state;
    std::uint64_t epoch{};
};
answer<void> write_hint(home_link& engine,
                        const std::string& tool,
                        const hint& what,
                        const std::string& peer);
// nullopt: no hint table or no row.
answer<std::optional<hint>> read_hint(home_link& engine,
                                      const engine_catalog& catalog,
                                      const std::string& tool);

// CREATE TABLE under `name` with everything that `t` says.
std::string engine_create_table(const table& t, const std::string& name);
// c, typeof(c), ...
std::string engine_columns(const table& t);
// SELECT c, typeof(c), ... FROM name
std::string engine_select(const table& t, const std::string& name);

}  // namespace hotlane::move
