// Values on the wire: types, text and binary forms, and parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tests/devengine/sqlite.hpp"

namespace hotlane::devengine {

namespace oid {
inline constexpr std::uint32_t boolean = 16, bytea = 17, int8 = 20, int2 = 21, int4 = 23, text = 25,
                               float4 = 700, float8 = 701, varchar = 1043, numeric = 1700;
}

// The wire type of a column that was declared so; 0 when nothing was declared.
std::uint32_t type_of_declared(const char* declared);
std::uint32_t type_of_value(const value& v);  // text for null

value column_value(sqlite3_stmt* statement, int column);

// The form of a value that was described as `type`; nothing for null.
std::optional<std::string> encode(const value& v, std::uint32_t type, std::int16_t format);

// A parameter as the client sent it. Type 0 or unknown: text that the column's affinity converts.
result<value> decode_parameter(std::optional<std::string_view> bytes,
                               std::uint32_t type,
                               std::int16_t format);

void bind(sqlite3_stmt* statement, int number, const value& v);

}  // namespace hotlane::devengine
