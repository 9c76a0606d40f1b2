#include "router/sql/columns.hpp"

#include <algorithm>
#include <vector>

namespace hotlane::sql {
namespace {

struct names {
    bool tables{false};
    bool assigned{false};  // UPDATE, or the column list of an INSERT: always columns of a table
    bool ignores{false};   // ON CONFLICT
    std::vector<std::string_view> read;
    std::vector<std::string_view> made;  // AS, column aliases
};

void note_alias(const PgQuery__Alias* alias, names& out) {
    if (alias == nullptr) return;
    for (std::size_t i = 0; i < alias->n_colnames; ++i)
        out.made.push_back(string_of(alias->colnames[i]));
}

void note(const ProtobufCMessage* m, names& out) {
    if (m->descriptor == &pg_query__range_var__descriptor) {
        out.tables = true;
    } else if (const auto* column = as<PgQuery__ColumnRef>(m, pg_query__column_ref__descriptor)) {
        const auto* last = column->n_fields > 0 ? column->fields[column->n_fields - 1] : nullptr;
        if (last != nullptr && !string_of(last).empty()) out.read.push_back(string_of(last));
    } else if (const auto* target = as<PgQuery__ResTarget>(m, pg_query__res_target__descriptor)) {
        if (target->name != nullptr && *target->name != '\0') out.made.emplace_back(target->name);
    } else if (const auto* insert = as<PgQuery__InsertStmt>(m, pg_query__insert_stmt__descriptor)) {
        out.assigned = out.assigned || insert->n_cols > 0;
        out.ignores = out.ignores || insert->on_conflict_clause != nullptr;
    } else if (m->descriptor == &pg_query__update_stmt__descriptor) {
        out.assigned = true;
    } else if (const auto* alias = as<PgQuery__Alias>(m, pg_query__alias__descriptor)) {
        note_alias(alias, out);
    } else if (const auto* cte =
                   as<PgQuery__CommonTableExpr>(m, pg_query__common_table_expr__descriptor)) {
        for (std::size_t i = 0; i < cte->n_aliascolnames; ++i)
            out.made.push_back(string_of(cte->aliascolnames[i]));
    }
}

}  // namespace

bool names_no_column(const ProtobufCMessage* root, kind what) {
    // SQL-level EXECUTE runs a text that is not here; what DDL and the unknown do, they do by name.
    if (what == kind::ddl || what == kind::other || what == kind::execute || what == kind::call)
        return true;
    names found;
    walk(root, [&](const ProtobufCMessage* m) {
        note(m, found);
        return true;
    });
    if (!found.tables || found.assigned) return false;
    // Values without a column list never fit one foreign column, unless what does not fit is let
    // go.
    if (what == kind::insert && !found.ignores) return false;
    return std::all_of(found.read.begin(), found.read.end(), [&](std::string_view name) {
        return std::find(found.made.begin(), found.made.end(), name) != found.made.end();
    });
}

}  // namespace hotlane::sql
