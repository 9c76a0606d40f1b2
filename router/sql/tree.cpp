#include "router/sql/tree.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "router/sql/lexer.hpp"

namespace hotlane::sql {
namespace {

// A parenthesis can stand for a sub-select: SubLink, SelectStmt, ResTarget.
constexpr std::size_t levels_per_bracket = 4;

bool is_one_of(std::string_view sql, const token& t, std::span<const std::string_view> words) {
    return std::any_of(
        words.begin(), words.end(), [&](std::string_view word) { return is_word(sql, t, word); });
}

// AND and OR chains are flat in the tree; a clause's expression starts anew.
constexpr std::array run_ends = std::to_array<std::string_view>({"and",
                                                                 "or",
                                                                 "select",
                                                                 "from",
                                                                 "where",
                                                                 "values",
                                                                 "set",
                                                                 "join",
                                                                 "on",
                                                                 "by",
                                                                 "when",
                                                                 "then",
                                                                 "else",
                                                                 "limit"});
// What may nest beyond such a word (NOT a IS DISTINCT FROM NOT b ...) is never forgotten, and so is
// CASE: its END could be told from a label only by the grammar.
constexpr std::array nests_beyond = std::to_array<std::string_view>(
    {"join", "union", "intersect", "except", "between", "case", "distinct", "not"});
constexpr std::size_t levels_per_word = 3;

bool ends_run(std::string_view sql, const token& t) {
    if (t.what == lexeme::comma || t.what == lexeme::semicolon) return true;
    return t.what == lexeme::word && is_one_of(sql, t, run_ends);
}
bool opens(std::string_view sql, const token& t) {
    return t.what == lexeme::open || (t.what == lexeme::op && sql[t.begin] == '[');
}
bool closes(std::string_view sql, const token& t) {
    return t.what == lexeme::close || (t.what == lexeme::op && sql[t.begin] == ']');
}
}  // namespace

std::size_t depth_bound(std::string_view sql, const std::vector<token>& tokens) {
    std::vector<std::size_t> runs{0};  // tokens of the current run of each open bracket
    std::size_t open_runs = 0;         // the sum of `runs`
    std::size_t nested = 0;            // levels that no word ends
    std::size_t deepest = 0;
    for (const token& t : tokens) {
        if (t.what == lexeme::word && is_one_of(sql, t, nests_beyond)) nested += levels_per_word;
        if (opens(sql, t)) {
            runs.push_back(levels_per_bracket);
            open_runs += levels_per_bracket;
        } else if (closes(sql, t) && runs.size() > 1) {
            open_runs -= runs.back();
            runs.pop_back();
        } else if (ends_run(sql, t)) {
            open_runs -= runs.back();
            runs.back() = runs.size() > 1 ? levels_per_bracket : 0;
            open_runs += runs.back();
        } else {
            ++runs.back();
            ++open_runs;
        }
        deepest = std::max(deepest, open_runs + nested);
    }
    return deepest;
}

parse_tree parse(std::string_view sql, const std::vector<token>& tokens) {
    if (sql.size() > parse_bytes_max || sql.find('\0') != std::string_view::npos) return nullptr;
    if (depth_bound(sql, tokens) > parse_depth_max) return nullptr;
    const std::string text(sql);
    const PgQueryProtobufParseResult result = pg_query_parse_protobuf(text.c_str());
    parse_tree tree;
    if (result.error == nullptr && result.parse_tree.data != nullptr) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(result.parse_tree.data);
        tree.reset(pg_query__parse_result__unpack(nullptr, result.parse_tree.len, bytes));
    }
    pg_query_free_protobuf_parse_result(result);
    return tree;
}

namespace {

void walk_field(const ProtobufCMessage* message,
                const ProtobufCFieldDescriptor& field,
                const std::function<bool(const ProtobufCMessage*)>& visit) {
    const auto* base = reinterpret_cast<const char*>(message);
    if (field.label == PROTOBUF_C_LABEL_REPEATED) {
        const auto count = *reinterpret_cast<const std::size_t*>(base + field.quantifier_offset);
        const auto* items = *reinterpret_cast<ProtobufCMessage* const* const*>(base + field.offset);
        for (std::size_t i = 0; i < count; ++i)
            walk(items[i], visit);
        return;
    }
    if ((field.flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        const auto chosen = *reinterpret_cast<const std::uint32_t*>(base + field.quantifier_offset);
        if (chosen != field.id) return;
    }
    const auto* child = *reinterpret_cast<const ProtobufCMessage* const*>(base + field.offset);
    if (child != nullptr) walk(child, visit);
}

}  // namespace

void walk(const ProtobufCMessage* root, const std::function<bool(const ProtobufCMessage*)>& visit) {
    if (root->descriptor == &pg_query__node__descriptor) {
        // A Node has 250 alternatives: go straight to the chosen one.
        const auto* node = reinterpret_cast<const PgQuery__Node*>(root);
        if (node->node_case == PG_QUERY__NODE__NODE__NOT_SET || node->alias == nullptr) return;
        walk(&node->alias->base, visit);
        return;
    }
    if (!visit(root)) return;
    for (unsigned i = 0; i < root->descriptor->n_fields; ++i) {
        const ProtobufCFieldDescriptor& field = root->descriptor->fields[i];
        if (field.type == PROTOBUF_C_TYPE_MESSAGE) walk_field(root, field, visit);
    }
}

std::string_view string_of(const PgQuery__Node* node) {
    if (node == nullptr || node->node_case != PG_QUERY__NODE__NODE_STRING) return {};
    return node->string->sval;
}

std::string_view last_name(PgQuery__Node* const* names,
                           std::size_t count,
                           std::string_view* qualifier) {
    if (count == 0) return {};
    if (qualifier != nullptr) *qualifier = count > 1 ? string_of(names[count - 2]) : "";
    return string_of(names[count - 1]);
}

bool literal_of(const PgQuery__Node* node, std::string& out) {
    if (node == nullptr) return false;
    if (node->node_case == PG_QUERY__NODE__NODE_TYPE_CAST) {
        const PgQuery__TypeCast* cast = node->type_cast;
        const PgQuery__TypeName* type = cast->type_name;
        if (!literal_of(cast->arg, out) || type == nullptr) return false;
        if (last_name(type->names, type->n_names) == "bool")  // older grammars: true is 't'::bool
            out = out == "t" || out == "true" ? "true" : "false";
        return true;
    }
    if (node->node_case != PG_QUERY__NODE__NODE_A_CONST || node->a_const->isnull) return false;
    const PgQuery__AConst* constant = node->a_const;
    if (constant->val_case == PG_QUERY__A__CONST__VAL_SVAL) {
        out = constant->sval->sval;
    } else if (constant->val_case == PG_QUERY__A__CONST__VAL_IVAL) {
        out = std::to_string(constant->ival->ival);
    } else if (constant->val_case == PG_QUERY__A__CONST__VAL_FVAL) {
        out = constant->fval->fval;
    } else if (constant->val_case == PG_QUERY__A__CONST__VAL_BOOLVAL) {
        out = constant->boolval->boolval != 0 ? "true" : "false";
    } else {
        return false;
    }
    return true;
}

bool is_null_literal(const PgQuery__Node* node) {
    return node != nullptr && node->node_case == PG_QUERY__NODE__NODE_A_CONST &&
           node->a_const->isnull != 0;
}

std::string relation_name(const PgQuery__RangeVar* relation) {
    if (relation == nullptr) return {};
    const std::string_view schema = relation->schemaname;
    if (schema.empty() || schema == "public") return relation->relname;
    return std::string(schema) + "." + relation->relname;
}

}  // namespace hotlane::sql
