// Reads columns, constraints and whole CREATE TABLE statements. Private to router/sql.
#pragma once

#include <optional>

#include "router/sql/cursor.hpp"
#include "router/sql/facts.hpp"

namespace hotlane::sql {

// From behind CREATE; nothing if it is not a CREATE TABLE with a list of columns.
std::optional<table_definition> read_create_table(cursor& at);
// One element of the list, or what stands behind ALTER TABLE .. ADD. What is not understood goes to
// the table's list.
void read_column(cursor& at, table_definition& table);
bool starts_table_constraint(const cursor& at);
void read_table_constraint(cursor& at, table_definition& table);
// A type as written, up to the first word that begins a constraint.
std::string read_type(cursor& at);
// An expression up to the first word that begins a constraint.
std::string read_expression(cursor& at);
// "(a, b)": plain column names; false, with the cursor behind the list, if it is more than that.
bool read_column_list(cursor& at, std::vector<std::string>& columns);

}  // namespace hotlane::sql
