// What a statement's tree does, wherever in it it does it. Private to router/sql.
#pragma once

#include <string>

#include "router/sql/tree.hpp"

namespace hotlane::sql {

struct effects {
    bool may_write{false};  // data-modifying node, row lock, INTO, a function that is not known
    bool creates_relation{false};  // SELECT INTO
    bool temporary{false};
    bool session_lock{false};
    bool session_state{false};  // calls a function of that class
    bool sequence_read{false};  // likewise
    bool sequence_used{false};
    bool unknown_call{false};
    bool sets_config{false};   // calls set_config
    std::string created;       // by SELECT INTO
    std::string only_written;  // the one table that INSERT/UPDATE/DELETE nodes write
    std::size_t written{0};    // such nodes
};
effects effects_of(const ProtobufCMessage* root);

// No sub-select (beyond the `selects_allowed` that hold the VALUES), no cursor position, and no
// function that could read other rows.
bool reads_only_its_row(const ProtobufCMessage* root, std::size_t selects_allowed);

// The table of a DDL statement, or the object's own name; empty if several or unknown.
std::string ddl_table(const PgQuery__Node& node);

}  // namespace hotlane::sql
