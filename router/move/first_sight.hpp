// Which tables stood at the engine before hotlane kept a record of the tool's DDL.
//
// CREATE TABLE IF NOT EXISTS answers the same whether it made the table or found it. For a table
// that is older than the record its text proves nothing: the table may have CHECK and UNIQUE
// constraints that the text does not name and the engine's catalog does not show. THREADS: one
// mover.
#pragma once

#include <string>

#include "router/move/job.hpp"
#include "router/move/schema.hpp"

namespace hotlane::move {

// Looks once in the life of a state file, before the tool is first served. Does nothing when DDL
// has passed already: what was made since cannot be told from what was there.
void note_first_sight(context& with);

older_tables read_first_sight(placement::store& store, const std::string& tool);

}  // namespace hotlane::move
