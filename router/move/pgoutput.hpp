// What PostgreSQL's logical decoding sends (plugin pgoutput, protocol version 1; PostgreSQL
// documentation, "Logical Replication Message Formats"): bytes of one message to what it says.
// PURE. Any bytes may come: what does not fit the format exactly is an error, never a guess.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tl/expected.hpp>

namespace hotlane::move::pgoutput {

// PostgreSQL allows 1,600 columns and as many again that were dropped are not sent.
inline constexpr std::size_t columns_max = 1'664;

struct begin {
    std::uint64_t commit_lsn{};
    std::uint32_t xid{};
};
struct commit {
    std::uint64_t commit_lsn{}, end_lsn{};
};

struct relation_column {
    bool in_identity{false};
    std::string name;
    std::uint32_t type{};
};
// Sent before the first change of a table, and again after its definition changed.
struct relation {
    std::uint32_t oid{};
    std::string schema, name;
    char identity{};  // pg_class.relreplident
    std::vector<relation_column> columns;
};

struct field {
    enum class kind : std::uint8_t {
        null,
        unchanged,  // a TOASTed value that the UPDATE did not touch: not sent
        text,
        binary
    };
    kind what{kind::null};
    std::string_view bytes;  // into the message
};
using tuple = std::vector<field>;

// INSERT has only `after`, DELETE only `before`. An UPDATE has `before` where its identity changed
// or the whole row is the identity.
struct change {
    enum class kind : std::uint8_t { inserted, updated, deleted };
    kind what{kind::inserted};
    std::uint32_t relation{};
    std::optional<tuple> before, after;
};
struct truncate {
    std::vector<std::uint32_t> relations;
};
// pg_logical_emit_message
struct message {
    bool transactional{false};
    std::string_view prefix, content;  // into the message
};
// An origin or a type: nothing that a copy needs.
struct aside {};

using event = std::variant<begin, commit, relation, change, truncate, message, aside>;

// The error says what does not fit. `bytes` must outlive the event.
tl::expected<event, std::string> decode(std::string_view bytes);

}  // namespace hotlane::move::pgoutput
