// libpg_query's parse tree, owned. Private to router/sql: nobody else sees protobuf.
#pragma once

#include <pg_query.h>
#include <pg_query/pg_query.pb-c.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hotlane::sql {

struct token;

struct free_tree {
    void operator()(PgQuery__ParseResult* tree) const {
        pg_query__parse_result__free_unpacked(tree, nullptr);
    }
};
using parse_tree = std::unique_ptr<PgQuery__ParseResult, free_tree>;

// Text beyond these bounds is not given to the parser (it would cost milliseconds, or a deep tree
// would overflow the stack: its unpacking recurses, 2 to 3 KiB a level, so 2 MiB at the bound).
inline constexpr std::size_t parse_bytes_max = 1U << 20U;
inline constexpr std::size_t parse_depth_max = 600;

// Null: PostgreSQL's parser refuses the text, or it is beyond the bounds above.
parse_tree parse(std::string_view sql, const std::vector<token>& tokens);

// No tree of this text is deeper than this.
std::size_t depth_bound(std::string_view sql, const std::vector<token>& tokens);

// Calls `visit` for every message of the tree below and including `root`, parents first. `visit`
// returns false to leave out what is below.
void walk(const ProtobufCMessage* root, const std::function<bool(const ProtobufCMessage*)>& visit);

// The typed message, or null if it is another one.
template <typename Message>
const Message* as(const ProtobufCMessage* message, const ProtobufCMessageDescriptor& descriptor) {
    return message->descriptor == &descriptor ? reinterpret_cast<const Message*>(message) : nullptr;
}

// "" unless the node is a String.
std::string_view string_of(const PgQuery__Node* node);
// The last name of a possibly qualified one; the qualifier (or "") goes to `qualifier`.
std::string_view last_name(PgQuery__Node* const* names,
                           std::size_t count,
                           std::string_view* qualifier = nullptr);
// A literal as text (strings without quotes, numbers, booleans as true/false, a typed literal's
// text); false if it is none or NULL.
bool literal_of(const PgQuery__Node* node, std::string& out);
bool is_null_literal(const PgQuery__Node* node);
// "t", or "s.t" if the schema is named and not public.
std::string relation_name(const PgQuery__RangeVar* relation);

}  // namespace hotlane::sql
