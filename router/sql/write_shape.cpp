#include "router/sql/write_shape.hpp"

#include <algorithm>

#include "router/sql/effects.hpp"
#include "router/sql/lexer.hpp"
#include "router/sql/tree.hpp"

namespace hotlane::sql {
namespace {

using node = PgQuery__Node;

// n, t.n: the column's name; excluded.n is no column of the row.
std::string column_of(const node* n) {
    if (n == nullptr || n->node_case != PG_QUERY__NODE__NODE_COLUMN_REF) return {};
    const PgQuery__ColumnRef* ref = n->column_ref;
    std::string_view qualifier;
    const std::string_view name = last_name(ref->fields, ref->n_fields, &qualifier);
    return qualifier == "excluded" ? std::string() : std::string(name);
}
std::string excluded_column(const node* n) {
    if (n == nullptr || n->node_case != PG_QUERY__NODE__NODE_COLUMN_REF) return {};
    const PgQuery__ColumnRef* ref = n->column_ref;
    std::string_view qualifier;
    const std::string_view name = last_name(ref->fields, ref->n_fields, &qualifier);
    return qualifier == "excluded" ? std::string(name) : std::string();
}

std::vector<std::string> columns_in(const ProtobufCMessage* root) {
    std::vector<std::string> out;
    if (root == nullptr) return out;
    walk(root, [&](const ProtobufCMessage* m) {
        const auto* ref = as<PgQuery__ColumnRef>(m, pg_query__column_ref__descriptor);
        if (ref == nullptr) return true;
        const bool star = ref->n_fields > 0 &&
                          ref->fields[ref->n_fields - 1]->node_case == PG_QUERY__NODE__NODE_A_STAR;
        out.push_back(star ? "*" : std::string(last_name(ref->fields, ref->n_fields)));
        return true;
    });
    return out;
}

// "5", "$1", "" if it is neither a numeric literal nor a parameter.
std::string amount_of(const node* n) {
    if (n == nullptr) return {};
    if (n->node_case == PG_QUERY__NODE__NODE_TYPE_CAST) return amount_of(n->type_cast->arg);
    if (n->node_case == PG_QUERY__NODE__NODE_PARAM_REF)
        return n->param_ref->number > 0 ? "$" + std::to_string(n->param_ref->number) : "";
    if (n->node_case != PG_QUERY__NODE__NODE_A_CONST) return {};
    const PgQuery__AConst* constant = n->a_const;
    if (constant->val_case != PG_QUERY__A__CONST__VAL_IVAL &&
        constant->val_case != PG_QUERY__A__CONST__VAL_FVAL)
        return {};
    std::string text;
    return literal_of(n, text) ? text : "";
}
std::string negative(const std::string& amount) {
    return amount.front() == '-' ? amount.substr(1) : "-" + amount;
}
bool is_operator(const PgQuery__AExpr& e, std::string_view name) {
    return e.kind == PG_QUERY__A__EXPR__KIND__AEXPR_OP && e.n_name == 1 &&
           string_of(e.name[0]) == name;
}

class shaper {
  public:
    std::optional<write_shape> read(const node& statement) {
        const bool ok = statement.node_case == PG_QUERY__NODE__NODE_UPDATE_STMT
                            ? update(*statement.update_stmt)
                        : statement.node_case == PG_QUERY__NODE__NODE_INSERT_STMT
                            ? upsert(*statement.insert_stmt)
                            : false;
        if (!ok) return std::nullopt;
        return std::move(out_);
    }

  private:
    bool update(const PgQuery__UpdateStmt& s) {
        if (s.where_clause == nullptr || s.n_from_clause > 0 || s.with_clause != nullptr ||
            !reads_only_its_row(&s.base, 0))
            return false;
        out_.table = relation_name(s.relation);
        where(s.where_clause);
        return assign(s.target_list, s.n_target_list) &&
               returning(s.returning_list, s.n_returning_list);
    }

    bool upsert(const PgQuery__InsertStmt& s) {
        const PgQuery__OnConflictClause* clause = s.on_conflict_clause;
        if (clause == nullptr || clause->n_target_list == 0 || clause->infer == nullptr ||
            s.with_clause != nullptr || s.select_stmt == nullptr ||
            s.select_stmt->node_case != PG_QUERY__NODE__NODE_SELECT_STMT ||
            s.select_stmt->select_stmt->n_values_lists != 1 || !reads_only_its_row(&s.base, 1))
            return false;
        out_.table = relation_name(s.relation);
        out_.upsert = true;
        for (std::size_t i = 0; i < clause->infer->n_index_elems; ++i) {
            const node* element = clause->infer->index_elems[i];
            if (element->node_case != PG_QUERY__NODE__NODE_INDEX_ELEM) return false;
            out_.keys.emplace_back(element->index_elem->name);
        }
        insert_ = &s;
        if (clause->where_clause != nullptr) {
            out_.other_condition = true;
            out_.condition = columns_in(&clause->where_clause->base);
        }
        return assign(clause->target_list, clause->n_target_list) &&
               returning(s.returning_list, s.n_returning_list);
    }

    bool returning(PgQuery__Node* const* list, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            for (std::string& column : columns_in(&list[i]->base))
                out_.returning.push_back(std::move(column));
        return true;
    }

    // What the VALUES give for a column, where that is an amount.
    std::string inserted_amount(const std::string& column) const {
        if (insert_ == nullptr || column.empty()) return {};
        const node* row = insert_->select_stmt->select_stmt->values_lists[0];
        if (row->node_case != PG_QUERY__NODE__NODE_LIST) return {};
        for (std::size_t i = 0; i < insert_->n_cols && i < row->list->n_items; ++i) {
            const node* target = insert_->cols[i];
            if (target->node_case == PG_QUERY__NODE__NODE_RES_TARGET &&
                column == target->res_target->name)
                return amount_of(row->list->items[i]);
        }
        return {};
    }
    std::string operand(const node* n) const {
        const std::string plain = amount_of(n);
        return plain.empty() ? inserted_amount(excluded_column(n)) : plain;
    }

    assignment assigned(const std::string& column, const node* value) const {
        assignment out{column, assignment::form::computed, {}};
        if (value == nullptr) return out;
        if (columns_in(&value->base).empty()) {
            out.what = assignment::form::constant;
            return out;
        }
        if (!excluded_column(value).empty()) out.what = assignment::form::constant;
        if (value->node_case != PG_QUERY__NODE__NODE_A_EXPR) return out;
        const PgQuery__AExpr& e = *value->a_expr;
        const bool plus = is_operator(e, "+");
        if (column_of(e.lexpr) == column && (plus || is_operator(e, "-"))) {
            out.amount = operand(e.rexpr);
            if (!plus && !out.amount.empty()) out.amount = negative(out.amount);
        } else if (column_of(e.rexpr) == column && plus) {
            out.amount = operand(e.lexpr);
        }
        if (!out.amount.empty()) out.what = assignment::form::increment;
        return out;
    }

    bool assign(PgQuery__Node* const* list, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            if (list[i]->node_case != PG_QUERY__NODE__NODE_RES_TARGET) return false;
            const PgQuery__ResTarget* target = list[i]->res_target;
            assignment a = assigned(target->name, target->val);
            if (target->n_indirection > 0) a.what = assignment::form::computed;
            out_.assignments.push_back(std::move(a));
        }
        return count > 0;
    }

    bool key(const node* n) {
        if (n->node_case != PG_QUERY__NODE__NODE_A_EXPR || !is_operator(*n->a_expr, "="))
            return false;
        const node* left = n->a_expr->lexpr;
        const node* right = n->a_expr->rexpr;
        if (column_of(left).empty()) std::swap(left, right);
        const std::string column = column_of(left);
        if (column.empty() || right == nullptr || !columns_in(&right->base).empty()) return false;
        out_.keys.push_back(column);
        return true;
    }

    void where(const node* n) {
        if (n->node_case == PG_QUERY__NODE__NODE_BOOL_EXPR &&
            n->bool_expr->boolop == PG_QUERY__BOOL_EXPR_TYPE__AND_EXPR) {
            for (std::size_t i = 0; i < n->bool_expr->n_args; ++i)
                where(n->bool_expr->args[i]);
            return;
        }
        if (key(n)) return;
        out_.other_condition = true;
        for (std::string& column : columns_in(&n->base))
            out_.condition.push_back(std::move(column));
    }

    write_shape out_;
    const PgQuery__InsertStmt* insert_{nullptr};
};

}  // namespace

std::optional<write_shape> read_write_shape(std::string_view sql) {
    const parse_tree tree = parse(sql, tokenize(sql));
    if (!tree || tree->n_stmts != 1 || tree->stmts[0]->stmt == nullptr) return std::nullopt;
    return shaper().read(*tree->stmts[0]->stmt);
}

}  // namespace hotlane::sql
