// From what the homes say about a tool's tables, and the DDL that was seen, to the tables of a
// plan. PURE. What the engine's catalog hides (CHECK, AUTOINCREMENT, UNIQUE over several columns)
// is never assumed absent: without DDL for a table the move is refused, unless the operator
// declared that nothing is hidden.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "router/move/engine_home.hpp"
#include "router/move/plan.hpp"
#include "router/sql/facts.hpp"

namespace hotlane::move {

struct schema_view {
    std::vector<table> tables;  // by name
    std::vector<refusal> refusals;
    std::vector<std::string> notes;
};

// Names, in lower case, of tables that are older than the DDL that was seen; nullopt: any may be.
using older_tables = std::optional<std::set<std::string>>;

// The tool's tables as the engine has them. `older`: first_sight.hpp.
schema_view read_engine_schema(const engine_catalog& catalog,
                               const std::vector<relationship>& relationships,
                               const sql::schema_definition& ddl,
                               bool no_hidden_constraints,
                               const older_tables& older = std::set<std::string>{});

// Takes what only DDL knows (declared types, AUTOINCREMENT, checks as written) into tables that
// were read from PostgreSQL's catalog, where the DDL fits.
void adopt_ddl(schema_view& view, const sql::schema_definition& ddl);

// The engine's affinity rules for a declared type, as its catalog would show them.
std::optional<value_type> affinity(std::string_view declared);

// Takes the operator's types ("table.column" and its word) into the tables; what cannot be is
// refused.
std::vector<refusal> take_overrides(std::vector<table>& tables,
                                    const std::map<std::string, std::string>& types);

// CREATE TABLE schema.name on PostgreSQL, with keys, checks, defaults and identity.
std::string postgres_create_table(const table& t, const std::string& schema);
std::string_view postgres_type(value_type type) noexcept;
// A default as the engine evaluates it, in PostgreSQL's words.
std::string postgres_default(const std::string& expression, value_type type);
// Sets the identity's next number above everything that is there; empty: no identity.
std::string postgres_set_identity(const table& t, const std::string& schema);

// Identifier and literal rules that both homes share.
std::vector<refusal> check_names(const table& t);

}  // namespace hotlane::move
