// From what a client writes to what SQLite runs: what kind of statement it is, which ones the
// engine refuses, and the few spellings that SQLite does not know.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/devengine/sqlite.hpp"
#include "tests/devengine/tokens.hpp"

namespace hotlane::devengine {

enum class statement_kind {
    empty,
    read,
    write,
    ddl,
    begin,
    commit,
    rollback,
    savepoint,
    release,
    rollback_to,
    show,
    nothing,  // SET, DISCARD, LISTEN, UNLISTEN: accepted without effect
};

struct statement {
    statement_kind kind{statement_kind::empty};
    std::string verb;                 // of the command tag: SELECT, INSERT, CREATE TABLE, ...
    std::string sql;                  // for SQLite
    std::string name;                 // of a SHOW, of a savepoint
    std::vector<std::string> tables;  // named after FROM, JOIN, INTO, UPDATE, TABLE
    std::vector<token> tokens;        // views into `source`
    std::shared_ptr<const std::string> source;
    std::string rename_to;         // ALTER TABLE tables[0] RENAME TO this
    std::string create_if_absent;  // CREATE TABLE IF NOT EXISTS this
    bool uses_stats{false};
    int parameters{0};                         // the highest $n
    std::vector<std::string> parameter_casts;  // by number: the type of `$n::type`, or empty
};

// Statements of one simple Query; a refused one is the error at its place.
std::vector<result<statement>> parse_script(std::string_view script);

// Exactly one statement (or none), as Parse carries it.
result<statement> parse_single(std::string_view sql);

// What a declared type is for SQLite's affinity: integer, real, text, blob or vector(N).
std::string storage_type(std::string_view declared);

}  // namespace hotlane::devengine
