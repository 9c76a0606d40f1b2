// Changes of a schema that is being read. Private to router/sql.
#pragma once

#include "router/sql/ddl_read.hpp"

namespace hotlane::sql {

table_definition* find_table(schema_definition& schema, std::string_view name);
// A foreign key of any table names this table.
bool is_referenced(const schema_definition& schema, std::string_view table);
// That table is gone, and the foreign keys to it: PostgreSQL dropped them, no engine enforces them.
void drop_references(schema_definition& schema, std::string_view table);
// From behind ALTER TABLE; false: not followed, and then the schema may have been changed in part.
bool alter_table(cursor& at, schema_definition& schema);

}  // namespace hotlane::sql
