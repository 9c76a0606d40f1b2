// The tool's tables as PostgreSQL has them, and what of them the engine could not hold.
#pragma once

#include <map>
#include <string>

#include "router/move/link.hpp"
#include "router/move/schema.hpp"

namespace hotlane::move {

// `types`: columns that may have another type there ("table.column" and its word).
using type_overrides = std::map<std::string, std::string>;
answer<schema_view> read_postgres_schema(home_link& postgres,
                                         const std::string& schema,
                                         const std::string& role,
                                         const type_overrides& types);

// PostgreSQL's type as the engine would hold it; nullopt: it cannot. `length`: of varchar(n).
struct engine_type {
    value_type type{value_type::text};
    std::optional<int> length;
};
std::optional<engine_type> engine_type_of(const std::string& postgres_type);
// A default of PostgreSQL in the engine's words.
std::string engine_default(const std::string& expression);

}  // namespace hotlane::move
