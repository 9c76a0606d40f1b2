// Whether a statement names a column of a table that it uses. Private to router/sql.
#pragma once

#include "router/sql/facts.hpp"
#include "router/sql/tree.hpp"

namespace hotlane::sql {

// What `statement::names_no_column` is for a tree of this kind. On the safe side: a name that the
// statement itself makes (an alias) counts as none, whatever else it may be.
bool names_no_column(const ProtobufCMessage* root, kind what);

}  // namespace hotlane::sql
