// What a move is about: the tables with their columns and constraints, in one order that every name
// (router/move/names.hpp) counts in. Kept in the journal and, in short, in the marker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "router/move/convert.hpp"
#include "router/move/move.hpp"
#include "router/move/values.hpp"

namespace hotlane::move {

struct column {
    std::string name;
    value_type type{value_type::text};
    std::string declared;  // the engine's declared type; empty: derived from `type`
    bool not_null{false};
    bool unique{false};
    bool autoincrement{false};
    std::optional<std::string> default_expression;
    std::vector<std::string> checks;
    std::optional<std::string> references;  // towards the engine only: it does not enforce them
    held_as as{held_as::plain};             // on PostgreSQL, where the operator says so
};

struct table {
    std::string name;
    std::vector<column> columns;
    std::vector<std::string> key;                   // primary key, in order; may be empty
    std::vector<std::vector<std::string>> uniques;  // over one or several columns
    std::vector<std::string> checks;
    std::uint64_t rows{0};  // forecast, then what was copied
    digest sum;             // of the copied rows

    [[nodiscard]] const column* find(const std::string& column_name) const;
    // The single-column integer key that numbers itself: identity on PostgreSQL.
    [[nodiscard]] const column* identity() const;
    [[nodiscard]] std::vector<value_type> types() const;
};

struct plan {
    std::string move;
    std::string tool;
    policy::home_kind from{}, to{};
    std::uint64_t epoch{};    // before the move
    std::uint64_t leader{0};  // in a fleet: the number that the marker was claimed with
    std::string schema;       // the tool's schema on PostgreSQL
    std::string role;         // owner of the tables there
    std::vector<table> tables;
    std::vector<std::uint32_t> strays;  // for each table: how many strays were renamed aside
    std::string seed;                   // of the checksums, hex
    bool ahead{false};                  // rows go over before the hold (preflight: choose_copy)
    std::string lsn;                    // the engine's, when it was fenced; empty: not yet
    std::vector<std::string> notes;     // what a person should know

    [[nodiscard]] std::vector<std::string> names() const;
};

nlohmann::json to_json(const plan& p);
// Of a journal: names, column types, counts and sums come back; constraints do not (no undo and no
// completion needs them). Lenient: what is missing stays empty.
plan plan_from_json(const nlohmann::json& j);

}  // namespace hotlane::move
