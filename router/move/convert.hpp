// Columns that PostgreSQL holds in another type than the engine's own four, because the operator
// says so (`types:` of the tool). A value goes over only if its form at the engine is the one that
// comes back: whatever was there before the move is there again after the way back, byte for byte.
// PURE.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "router/move/values.hpp"

namespace hotlane::move {

enum class held_as : std::uint8_t {
    plain,  // as the engine's type says
    boolean,
    smallint,
    integer,
    timestamp,
    timestamptz,  // the engine's text is UTC
    date,
    uuid,
    json
};
std::string_view to_string(held_as as) noexcept;  // the word in the configuration
std::optional<held_as> held_as_from(std::string_view word) noexcept;
// What PostgreSQL's catalog says of such a column; nullopt: of no such type.
std::optional<held_as> held_as_of(std::string_view postgres_type) noexcept;
value_type engine_side(held_as as) noexcept;

// Empty: the value has this form. Else what it is, in words that fit "column c holds ...".
std::string why_not(held_as as, const value& v);
// One value in COPY's text format.
void put_copy_value(std::string& out, value_type type, held_as as, const value& v);
// What to select so that the engine's form is read. `column` is quoted.
std::string select_of(held_as as, const std::string& column);
// A default of the engine, for a column that is held so; and back.
std::string default_there(held_as as, const std::string& expression);
std::optional<std::string> default_here(held_as as, const std::string& expression);

}  // namespace hotlane::move
