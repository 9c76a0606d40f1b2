#include "router/sql/settings.hpp"

#include "router/sql/functions.hpp"
#include "router/sql/lexer.hpp"

namespace hotlane::sql {
namespace {

bool is_isolation(std::string_view lower_name) {
    return lower_name == "transaction_isolation" || lower_name == "default_transaction_isolation";
}
bool is_role(std::string_view lower_name) {
    return lower_name == "role" || lower_name == "session_authorization";
}

// What the change of a parameter is, beyond a change of a parameter.
void classify_change(const parameter_change& change, kind plain, statement& out) {
    out.what = plain;
    out.names_isolation = is_isolation(change.name);
    if (is_role(change.name)) out.what = kind::set_role;
    if (change.name == "transaction_isolation") out.what = kind::set_transaction;
}

std::optional<std::string> joined_values(const PgQuery__VariableSetStmt& source) {
    std::string all;
    for (std::size_t i = 0; i < source.n_args; ++i) {
        std::string one;
        if (!literal_of(source.args[i], one)) return std::nullopt;
        all += (i == 0 ? "" : ", ") + one;
    }
    return all;
}

void read_set_multi(const PgQuery__VariableSetStmt& source, statement& out) {
    const std::string_view name = source.name;
    out.names_isolation = names_isolation_level(source.args, source.n_args);
    out.what = name == "SESSION CHARACTERISTICS" ? kind::set_session_characteristics
                                                 : kind::set_transaction;
}

}  // namespace

bool names_isolation_level(PgQuery__Node* const* options, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        if (options[i]->node_case == PG_QUERY__NODE__NODE_DEF_ELEM &&
            std::string_view(options[i]->def_elem->defname) == "transaction_isolation")
            return true;
    }
    return false;
}

void read_set(const PgQuery__VariableSetStmt& source, statement& out) {
    out.may_write = false;
    if (source.kind == PG_QUERY__VARIABLE_SET_KIND__VAR_SET_MULTI) {
        read_set_multi(source, out);
        return;
    }
    parameter_change change;
    change.name = lower_case(source.name);
    change.local = source.is_local != 0;
    kind plain = change.local ? kind::set_local : kind::set;
    if (source.kind == PG_QUERY__VARIABLE_SET_KIND__VAR_SET_VALUE) {
        change.value = joined_values(source);
        out.changes_session = !change.value;
    } else if (source.kind == PG_QUERY__VARIABLE_SET_KIND__VAR_SET_CURRENT) {
        out.changes_session = true;
    } else if (source.kind == PG_QUERY__VARIABLE_SET_KIND__VAR_RESET) {
        plain = kind::reset;
    } else if (source.kind == PG_QUERY__VARIABLE_SET_KIND__VAR_RESET_ALL) {
        plain = kind::reset;
        change.name = "all";
    }
    classify_change(change, plain, out);
    out.parameter = std::move(change);  // its text is filled in with the byte range
}

void read_set_config(const PgQuery__SelectStmt& source, const effects& all, statement& out) {
    if (!all.sets_config) return;
    const bool bare = source.n_target_list == 1 && source.n_from_clause == 0 &&
                      source.where_clause == nullptr && source.with_clause == nullptr &&
                      source.limit_count == nullptr && source.limit_offset == nullptr &&
                      source.having_clause == nullptr && source.n_group_clause == 0;
    if (!bare || source.target_list[0]->node_case != PG_QUERY__NODE__NODE_RES_TARGET) return;
    const PgQuery__Node* value = source.target_list[0]->res_target->val;
    if (value == nullptr || value->node_case != PG_QUERY__NODE__NODE_FUNC_CALL) return;
    const PgQuery__FuncCall& call = *value->func_call;
    if (last_name(call.funcname, call.n_funcname) != "set_config" || call.n_args != 3) return;
    std::string name;
    std::string setting;
    std::string local;
    if (!literal_of(call.args[0], name) || !literal_of(call.args[2], local)) return;
    const bool to_default = is_null_literal(call.args[1]);
    if (!to_default && !literal_of(call.args[1], setting)) return;
    if (local != "true" && local != "false") return;

    parameter_change change;
    change.name = lower_case(name);
    if (!to_default) change.value = setting;
    change.local = local == "true";
    change.sql = "SELECT set_config(" + quote_literal(name) + ", " +
                 (to_default ? "NULL" : quote_literal(setting)) + ", " + local + ")";
    out.names_isolation = is_isolation(change.name);
    if (is_role(change.name)) out.what = kind::set_role;
    out.changes_session = false;
    out.parameter = std::move(change);
}

}  // namespace hotlane::sql
