// SET, RESET and set_config, read from the tree. Private to router/sql.
#pragma once

#include "router/sql/effects.hpp"
#include "router/sql/facts.hpp"
#include "router/sql/tree.hpp"

namespace hotlane::sql {

bool names_isolation_level(PgQuery__Node* const* options, std::size_t count);
void read_set(const PgQuery__VariableSetStmt& source, statement& out);
// A SELECT of one set_config with literal arguments and nothing else becomes a parameter change;
// any other use of set_config leaves `changes_session` set.
void read_set_config(const PgQuery__SelectStmt& source, const effects& all, statement& out);

}  // namespace hotlane::sql
