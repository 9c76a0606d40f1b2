// The longer SQL of a move at PostgreSQL, as texts.
#pragma once

#include <string>
#include <string_view>

namespace hotlane::move {

// The functions that raise. Idempotent.
std::string fence_functions_sql();
// Moves every table and view of `schema` into `fenced`, with triggers that raise, and puts a view
// that raises under each name.
std::string fence_sql(const std::string& schema,
                      const std::string& fenced,
                      const std::string& tool,
                      const std::string& move);
std::string unfence_sql(const std::string& schema, const std::string& fenced);
// Drops the raising views of earlier moves from `schema`.
std::string drop_fence_views_sql(const std::string& schema);
// The names of the tool's tables in `schema`.
std::string tables_sql(const std::string& schema);
// One text that changes with any table, column, default or constraint of `schema`.
std::string shape_sql(const std::string& schema);
// The condition on pg_class c, pg_namespace n for a table of the tool.
std::string_view is_tool_table() noexcept;

}  // namespace hotlane::move
