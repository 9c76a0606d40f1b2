// Facts from the parse tree: which statement it is. What it may do is in effects.cpp.
#include <algorithm>
#include <array>

#include "router/sql/analysis.hpp"
#include "router/sql/columns.hpp"
#include "router/sql/effects.hpp"
#include "router/sql/settings.hpp"
#include "router/sql/tree.hpp"

namespace hotlane::sql {
namespace {

void read_transaction(const PgQuery__TransactionStmt& source, statement& out) {
    struct row {
        PgQuery__TransactionStmtKind from;
        kind to;
        bool may_write;
    };
    static constexpr std::array rows = std::to_array<row>({
        {PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_BEGIN, kind::begin, false},
        {PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_START, kind::begin, false},
        {PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_COMMIT, kind::commit, true},
        {PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_ROLLBACK, kind::rollback, false},
        {PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_SAVEPOINT, kind::savepoint, false},
        {PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_RELEASE, kind::release, false},
        {PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_ROLLBACK_TO, kind::rollback_to, false},
        {PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_PREPARE, kind::prepare_transaction, true},
    });
    const auto* found =
        std::find_if(rows.begin(), rows.end(), [&](const row& r) { return r.from == source.kind; });
    if (found == rows.end()) return;  // COMMIT PREPARED, ROLLBACK PREPARED: other
    out.what = found->to;
    out.may_write = found->may_write;
    out.chain = source.chain != 0;
    out.name = source.savepoint_name;
    out.names_isolation = names_isolation_level(source.options, source.n_options);
}

void read_insert(const PgQuery__InsertStmt& source, statement& out) {
    out.what = kind::insert;
    out.table = relation_name(source.relation);
    const PgQuery__SelectStmt* rows =
        source.select_stmt != nullptr &&
                source.select_stmt->node_case == PG_QUERY__NODE__NODE_SELECT_STMT
            ? source.select_stmt->select_stmt
            : nullptr;
    const bool plain_rows = source.select_stmt == nullptr ||
                            (rows != nullptr && rows->n_values_lists > 0 &&
                             rows->with_clause == nullptr && rows->n_locking_clause == 0);
    out.single_row_write = plain_rows && source.with_clause == nullptr &&
                           reads_only_its_row(&source.base, rows == nullptr ? 0U : 1U);
}

void read_update(const PgQuery__UpdateStmt& source, statement& out) {
    out.what = kind::update;
    out.table = relation_name(source.relation);
    out.single_row_write = source.where_clause != nullptr && source.n_from_clause == 0 &&
                           source.with_clause == nullptr && reads_only_its_row(&source.base, 0);
}

void read_delete(const PgQuery__DeleteStmt& source, statement& out) {
    out.what = kind::remove;
    out.table = relation_name(source.relation);
    out.single_row_write = source.where_clause != nullptr && source.n_using_clause == 0 &&
                           source.with_clause == nullptr && reads_only_its_row(&source.base, 0);
}

void read_copy(const PgQuery__CopyStmt& source, const effects& all, statement& out) {
    out.what = source.is_from != 0 ? kind::copy_in : kind::copy_out;
    if (source.is_from != 0) out.table = relation_name(source.relation);
    const std::string_view file = source.filename;
    if (source.is_program != 0 || !file.empty()) out.what = kind::other;  // no COPY sub-protocol
    out.may_write = out.what != kind::copy_out || all.may_write;
}

void read_explain(const PgQuery__ExplainStmt& source, const effects& all, statement& out) {
    out.what = kind::explain;
    bool analyze = false;
    for (std::size_t i = 0; i < source.n_options; ++i) {
        const PgQuery__Node* option = source.options[i];
        if (option->node_case == PG_QUERY__NODE__NODE_DEF_ELEM &&
            std::string_view(option->def_elem->defname) == "analyze")
            analyze = true;  // also for ANALYZE FALSE: on the safe side
    }
    out.may_write = analyze && all.may_write;
}

void read_cursor(const PgQuery__DeclareCursorStmt& source, const effects& all, statement& out) {
    constexpr std::int32_t with_hold = 0x0020;  // CURSOR_OPT_HOLD
    out.what = (source.options & with_hold) != 0 ? kind::declare_cursor_hold : kind::declare_cursor;
    out.name = source.portalname;
    out.may_write = all.may_write;
}

void read_discard(const PgQuery__DiscardStmt& source, statement& out) {
    if (source.target == PG_QUERY__DISCARD_MODE__DISCARD_ALL) {
        out.what = kind::discard_all;
        out.may_write = false;
    }
}

// Statements that are known by their node alone.
struct simple_row {
    PgQuery__Node__NodeCase node;
    kind what;
    bool may_write;
};
constexpr std::array simple_rows = std::to_array<simple_row>({
    {PG_QUERY__NODE__NODE_MERGE_STMT, kind::merge, true},
    {PG_QUERY__NODE__NODE_VARIABLE_SHOW_STMT, kind::show, false},
    {PG_QUERY__NODE__NODE_LOCK_STMT, kind::lock, false},
    {PG_QUERY__NODE__NODE_CALL_STMT, kind::call, true},
    {PG_QUERY__NODE__NODE_FETCH_STMT, kind::fetch, true},
    {PG_QUERY__NODE__NODE_CLOSE_PORTAL_STMT, kind::close_cursor, false},
    {PG_QUERY__NODE__NODE_PREPARE_STMT, kind::prepare, false},
    {PG_QUERY__NODE__NODE_EXECUTE_STMT, kind::execute, true},
    {PG_QUERY__NODE__NODE_DEALLOCATE_STMT, kind::deallocate, false},
    {PG_QUERY__NODE__NODE_LISTEN_STMT, kind::listen, false},
    {PG_QUERY__NODE__NODE_UNLISTEN_STMT, kind::unlisten, false},
    {PG_QUERY__NODE__NODE_NOTIFY_STMT, kind::notify, true},
});

std::string name_in(const PgQuery__Node& node) {
    if (node.node_case == PG_QUERY__NODE__NODE_FETCH_STMT) return node.fetch_stmt->portalname;
    if (node.node_case == PG_QUERY__NODE__NODE_CLOSE_PORTAL_STMT)
        return node.close_portal_stmt->portalname;
    if (node.node_case == PG_QUERY__NODE__NODE_PREPARE_STMT) return node.prepare_stmt->name;
    if (node.node_case == PG_QUERY__NODE__NODE_EXECUTE_STMT) return node.execute_stmt->name;
    if (node.node_case == PG_QUERY__NODE__NODE_DEALLOCATE_STMT) return node.deallocate_stmt->name;
    if (node.node_case == PG_QUERY__NODE__NODE_LISTEN_STMT) return node.listen_stmt->conditionname;
    if (node.node_case == PG_QUERY__NODE__NODE_UNLISTEN_STMT)
        return node.unlisten_stmt->conditionname;
    if (node.node_case == PG_QUERY__NODE__NODE_NOTIFY_STMT) return node.notify_stmt->conditionname;
    return {};
}

bool read_simple(const PgQuery__Node& node, statement& out) {
    const auto* row = std::find_if(simple_rows.begin(),
                                   simple_rows.end(),
                                   [&](const simple_row& r) { return r.node == node.node_case; });
    if (row == simple_rows.end()) return false;
    out.what = row->what;
    out.may_write = row->may_write;
    out.name = name_in(node);
    const bool all_of_them = out.what == kind::deallocate && out.name.empty();
    if (all_of_them) out.what = kind::deallocate_all;
    return true;
}

void read_select(const PgQuery__SelectStmt& source, const effects& all, statement& out) {
    out.what = all.creates_relation ? kind::ddl : kind::select;
    out.may_write = all.may_write;
    out.table = all.creates_relation ? all.created : all.only_written;
    read_set_config(source, all, out);
}

bool read_query(const PgQuery__Node& node, const effects& all, statement& out) {
    if (node.node_case == PG_QUERY__NODE__NODE_SELECT_STMT) {
        read_select(*node.select_stmt, all, out);
    } else if (node.node_case == PG_QUERY__NODE__NODE_INSERT_STMT) {
        read_insert(*node.insert_stmt, out);
    } else if (node.node_case == PG_QUERY__NODE__NODE_UPDATE_STMT) {
        read_update(*node.update_stmt, out);
    } else if (node.node_case == PG_QUERY__NODE__NODE_DELETE_STMT) {
        read_delete(*node.delete_stmt, out);
    } else if (node.node_case == PG_QUERY__NODE__NODE_COPY_STMT) {
        read_copy(*node.copy_stmt, all, out);
    } else if (node.node_case == PG_QUERY__NODE__NODE_EXPLAIN_STMT) {
        read_explain(*node.explain_stmt, all, out);
    } else if (node.node_case == PG_QUERY__NODE__NODE_DECLARE_CURSOR_STMT) {
        read_cursor(*node.declare_cursor_stmt, all, out);
    } else {
        return false;
    }
    return true;
}

// The code of a DO block is another language: by its words it may do what outlives it.
bool does_more(const PgQuery__DoStmt& source) {
    for (std::size_t i = 0; i < source.n_args; ++i) {
        const PgQuery__Node* part = source.args[i];
        if (part->node_case != PG_QUERY__NODE__NODE_DEF_ELEM || part->def_elem->arg == nullptr ||
            part->def_elem->arg->node_case != PG_QUERY__NODE__NODE_STRING)
            continue;
        const auto code = lower_case(part->def_elem->arg->string->sval);
        for (const std::string_view word :
             {"temp", "set ", "set_config", "advisory", "listen", "prepare", "load", "setseed"})
            if (code.find(word) != std::string::npos) return true;
    }
    return false;
}

statement read_statement(const PgQuery__Node& node) {
    statement out;
    if (node.node_case == PG_QUERY__NODE__NODE_TRANSACTION_STMT) {
        read_transaction(*node.transaction_stmt, out);
        return out;
    }
    if (node.node_case == PG_QUERY__NODE__NODE_VARIABLE_SET_STMT) {
        read_set(*node.variable_set_stmt, out);
        return out;
    }
    const effects all = effects_of(&node.base);
    out.takes_advisory_lock = all.session_lock;
    out.changes_session = all.sets_config || node.node_case == PG_QUERY__NODE__NODE_LOAD_STMT;
    out.temporary = all.temporary;
    out.keeps_session = all.session_state;
    out.reads_sequence = all.sequence_read;
    out.uses_sequence = all.sequence_used || node.node_case == PG_QUERY__NODE__NODE_INSERT_STMT;
    out.calls_unknown = all.unknown_call || node.node_case == PG_QUERY__NODE__NODE_CALL_STMT;
    // What a rule of this view does is set_config.
    if (all.only_written == "pg_settings" || all.only_written == "pg_catalog.pg_settings")
        out.changes_session = true;
    if (node.node_case == PG_QUERY__NODE__NODE_DO_STMT) {
        out.calls_unknown = true;
        out.changes_session = does_more(*node.do_stmt);
    }
    if (node.node_case == PG_QUERY__NODE__NODE_DISCARD_STMT) {
        read_discard(*node.discard_stmt, out);
    } else if (!read_query(node, all, out) && !read_simple(node, out)) {
        out.table = ddl_table(node);  // the kind is told by the first word
    }
    if (out.what == kind::merge) out.table = relation_name(node.merge_stmt->relation);
    out.modifies = all.written > 0;
    out.only_table = all.written == 1 && !out.table.empty() && out.table == all.only_written;
    out.names_no_column = names_no_column(&node.base, out.what);
    return out;
}

}  // namespace

std::optional<std::vector<statement>> parsed_statements(std::string_view sql,
                                                        const std::vector<token>& tokens) {
    const parse_tree tree = parse(sql, tokens);
    if (!tree) return std::nullopt;
    std::vector<statement> out;
    for (std::size_t i = 0; i < tree->n_stmts; ++i) {
        const PgQuery__RawStmt* raw = tree->stmts[i];
        if (raw->stmt == nullptr) continue;
        statement s = read_statement(*raw->stmt);
        s.begin = static_cast<std::uint32_t>(raw->stmt_location);
        s.end = raw->stmt_len == 0 ? static_cast<std::uint32_t>(sql.size())
                                   : s.begin + static_cast<std::uint32_t>(raw->stmt_len);
        out.push_back(std::move(s));
    }
    return out;
}

}  // namespace hotlane::sql
