#include "router/sql/effects.hpp"

#include "router/sql/functions.hpp"

namespace hotlane::sql {
namespace {

function_class class_of(const PgQuery__FuncCall& call) {
    std::string_view schema;
    const std::string_view name = last_name(call.funcname, call.n_funcname, &schema);
    const bool built_in = schema.empty() || schema == "pg_catalog";
    return built_in ? classify_function(name) : function_class::unknown;
}

bool is_temporary(const PgQuery__RangeVar* relation) {
    if (relation == nullptr) return false;
    const std::string_view schema = relation->schemaname;
    return std::string_view(relation->relpersistence) == "t" || schema == "pg_temp";
}

const PgQuery__RangeVar* written_by(const ProtobufCMessage* m) {
    if (const auto* s = as<PgQuery__InsertStmt>(m, pg_query__insert_stmt__descriptor))
        return s->relation;
    if (const auto* s = as<PgQuery__UpdateStmt>(m, pg_query__update_stmt__descriptor))
        return s->relation;
    if (const auto* s = as<PgQuery__DeleteStmt>(m, pg_query__delete_stmt__descriptor))
        return s->relation;
    if (const auto* s = as<PgQuery__MergeStmt>(m, pg_query__merge_stmt__descriptor))
        return s->relation;
    return nullptr;
}

void note_call(const PgQuery__FuncCall& call, effects& out) {
    switch (class_of(call)) {
        case function_class::pure:
        case function_class::transaction_lock:
            return;
        case function_class::sequence:
            out.may_write = out.sequence_used = true;
            return;
        case function_class::unknown:
            out.may_write = out.unknown_call = true;
            return;
        case function_class::sequence_read:
            out.sequence_read = true;
            return;
        case function_class::session_lock:
            out.session_lock = true;
            return;
        case function_class::set_config:
            out.sets_config = true;
            return;
        case function_class::session_state:
            out.session_state = out.may_write = true;
            return;
    }
}

}  // namespace

effects effects_of(const ProtobufCMessage* root) {
    effects out;
    walk(root, [&](const ProtobufCMessage* m) {
        if (const PgQuery__RangeVar* target = written_by(m)) {
            out.may_write = true;
            out.only_written = out.written++ == 0 ? relation_name(target) : std::string();
        } else if (m->descriptor == &pg_query__locking_clause__descriptor) {
            out.may_write = true;  // row locks are writes
        } else if (const auto* into =
                       as<PgQuery__IntoClause>(m, pg_query__into_clause__descriptor)) {
            out.may_write = true;
            out.creates_relation = true;
            out.created = relation_name(into->rel);
            out.temporary = out.temporary || is_temporary(into->rel);
        } else if (const auto* r = as<PgQuery__RangeVar>(m, pg_query__range_var__descriptor)) {
            out.temporary = out.temporary || is_temporary(r);
        } else if (const auto* call = as<PgQuery__FuncCall>(m, pg_query__func_call__descriptor)) {
            note_call(*call, out);
        }
        return true;
    });
    return out;
}

bool reads_only_its_row(const ProtobufCMessage* root, std::size_t selects_allowed) {
    bool only = true;
    std::size_t selects = 0;
    walk(root, [&](const ProtobufCMessage* m) {
        if (m->descriptor == &pg_query__select_stmt__descriptor) {
            only = only && ++selects <= selects_allowed;
        } else if (m->descriptor == &pg_query__sub_link__descriptor ||
                   m->descriptor == &pg_query__current_of_expr__descriptor) {
            only = false;
        } else if (const auto* call = as<PgQuery__FuncCall>(m, pg_query__func_call__descriptor)) {
            const function_class what = class_of(*call);
            only = only && (what == function_class::pure || what == function_class::sequence);
        }
        return only;
    });
    return only;
}

std::string ddl_table(const PgQuery__Node& node) {
    if (node.node_case == PG_QUERY__NODE__NODE_CREATE_STMT)
        return relation_name(node.create_stmt->relation);
    if (node.node_case == PG_QUERY__NODE__NODE_CREATE_TABLE_AS_STMT)
        return relation_name(node.create_table_as_stmt->into->rel);
    if (node.node_case == PG_QUERY__NODE__NODE_ALTER_TABLE_STMT)
        return relation_name(node.alter_table_stmt->relation);
    if (node.node_case == PG_QUERY__NODE__NODE_RENAME_STMT)
        return relation_name(node.rename_stmt->relation);
    if (node.node_case == PG_QUERY__NODE__NODE_INDEX_STMT)
        return relation_name(node.index_stmt->relation);
    if (node.node_case == PG_QUERY__NODE__NODE_VIEW_STMT)
        return relation_name(node.view_stmt->view);
    if (node.node_case == PG_QUERY__NODE__NODE_CREATE_SEQ_STMT)
        return relation_name(node.create_seq_stmt->sequence);
    if (node.node_case == PG_QUERY__NODE__NODE_TRUNCATE_STMT &&
        node.truncate_stmt->n_relations == 1 &&
        node.truncate_stmt->relations[0]->node_case == PG_QUERY__NODE__NODE_RANGE_VAR)
        return relation_name(node.truncate_stmt->relations[0]->range_var);
    if (node.node_case == PG_QUERY__NODE__NODE_DROP_STMT && node.drop_stmt->n_objects == 1 &&
        node.drop_stmt->objects[0]->node_case == PG_QUERY__NODE__NODE_LIST) {
        const PgQuery__List* names = node.drop_stmt->objects[0]->list;
        std::string_view schema;
        const std::string_view name = last_name(names->items, names->n_items, &schema);
        return schema.empty() || schema == "public" ? std::string(name)
                                                    : std::string(schema) + "." + std::string(name);
    }
    return {};
}

}  // namespace hotlane::sql
