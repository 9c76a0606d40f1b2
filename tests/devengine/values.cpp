#include "tests/devengine/values.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "router/wire/bytes.hpp"
#include "tests/devengine/dialect.hpp"

namespace hotlane::devengine {

namespace {

std::string hex(std::string_view bytes) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text = "\\x";
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        text.push_back(digits[byte >> 4]);
        text.push_back(digits[byte & 15]);
    }
    return text;
}

std::string unhex(std::string_view text) {
    if (!text.starts_with("\\x")) return std::string(text);
    std::string bytes;
    for (std::size_t i = 2; i + 1 < text.size(); i += 2) {
        unsigned int byte = 0;
        std::from_chars(text.data() + i, text.data() + i + 2, byte, 16);
        bytes.push_back(static_cast<char>(byte));
    }
    return bytes;
}

std::string real_text(double number) {
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
    std::array<char, 40> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
    return {text.data(), end};
}

std::string big_endian(std::uint64_t bits) {
    std::string bytes(8, '\0');
    wire::store_u32(bytes.data(), static_cast<std::uint32_t>(bits >> 32));
    wire::store_u32(bytes.data() + 4, static_cast<std::uint32_t>(bits));
    return bytes;
}

std::uint64_t load_u64(const char* at) {
    return std::uint64_t{wire::load_u32(at)} << 32 | wire::load_u32(at + 4);
}

std::string text_form(const value& v) {
    if (const auto* number = std::get_if<std::int64_t>(&v)) return std::to_string(*number);
    if (const auto* real = std::get_if<double>(&v)) return real_text(*real);
    if (const auto* bytes = std::get_if<blob>(&v)) return hex(bytes->bytes);
    return std::get<std::string>(v);
}

// What has no binary form of its described type goes out in the bytes it has.
std::string binary_form(const value& v, std::uint32_t type) {
    const auto* number = std::get_if<std::int64_t>(&v);
    const auto* real = std::get_if<double>(&v);
    if (type == oid::int8 && number != nullptr)
        return big_endian(static_cast<std::uint64_t>(*number));
    if (type == oid::float8 && (number != nullptr || real != nullptr))
        return big_endian(
            std::bit_cast<std::uint64_t>(real != nullptr ? *real : static_cast<double>(*number)));
    if (const auto* bytes = std::get_if<blob>(&v)) return bytes->bytes;
    return text_form(v);
}

bool is_integer(std::uint32_t type) {
    return type == oid::int8 || type == oid::int4 || type == oid::int2;
}
bool is_real(std::uint32_t type) {
    return type == oid::float8 || type == oid::float4 || type == oid::numeric;
}

result<value> from_binary(std::string_view bytes, std::uint32_t type) {
    if (type == oid::boolean && bytes.size() == 1) return std::int64_t{bytes[0] != 0};
    if (is_integer(type)) {
        if (bytes.size() == 8) return static_cast<std::int64_t>(load_u64(bytes.data()));
        if (bytes.size() == 4)
            return std::int64_t{static_cast<std::int32_t>(wire::load_u32(bytes.data()))};
        if (bytes.size() == 2)
            return std::int64_t{static_cast<std::int16_t>(wire::load_u16(bytes.data()))};
        return plain_error("incorrect binary data format");
    }
    if (type == oid::float8 && bytes.size() == 8)
        return std::bit_cast<double>(load_u64(bytes.data()));
    if (type == oid::float4 && bytes.size() == 4)
        return static_cast<double>(std::bit_cast<float>(wire::load_u32(bytes.data())));
    if (type == oid::bytea) return blob{std::string(bytes)};
    return std::string(bytes);
}

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

}  // namespace

std::uint32_t type_of_declared(const char* declared) {
    if (declared == nullptr) return 0;
    const auto type = storage_type(declared);
    if (type == "integer") return oid::int8;
    if (type == "real") return oid::float8;
    if (type == "blob") return oid::bytea;
    return oid::text;
}

std::uint32_t type_of_value(const value& v) {
    if (std::holds_alternative<std::int64_t>(v)) return oid::int8;
    if (std::holds_alternative<double>(v)) return oid::float8;
    if (std::holds_alternative<blob>(v)) return oid::bytea;
    return oid::text;
}

value column_value(sqlite3_stmt* statement, int column) {
    const auto bytes = [&](const void* data) {
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
        return size == 0 ? std::string() : std::string(static_cast<const char*>(data), size);
    };
    switch (sqlite3_column_type(statement, column)) {
        case SQLITE_INTEGER:
            return std::int64_t{sqlite3_column_int64(statement, column)};
        case SQLITE_FLOAT:
            return sqlite3_column_double(statement, column);
        case SQLITE_TEXT:
            return bytes(sqlite3_column_text(statement, column));
        case SQLITE_BLOB:
            return blob{bytes(sqlite3_column_blob(statement, column))};
        default:
            return std::monostate{};
    }
}

std::optional<std::string> encode(const value& v, std::uint32_t type, std::int16_t format) {
    if (std::holds_alternative<std::monostate>(v)) return std::nullopt;
    return format == 1 ? binary_form(v, type) : text_form(v);
}

result<value> decode_parameter(std::optional<std::string_view> bytes,
                               std::uint32_t type,
                               std::int16_t format) {
    if (!bytes) return value{std::monostate{}};
    if (format == 1) return from_binary(*bytes, type);
    if (type == oid::bytea) return value{blob{unhex(*bytes)}};
    if (type == oid::boolean) {
        const bool yes = *bytes == "t" || *bytes == "true" || *bytes == "1" || *bytes == "on";
        return value{std::int64_t{yes}};
    }
    if (is_integer(type))
        if (const auto number = parse_number<std::int64_t>(*bytes)) return value{*number};
    if (is_real(type))
        if (const auto number = parse_number<double>(*bytes)) return value{*number};
    return value{std::string(*bytes)};
}

void bind(sqlite3_stmt* statement, int number, const value& v) {
    const auto size = [](const std::string& text) { return static_cast<int>(text.size()); };
    if (const auto* integer = std::get_if<std::int64_t>(&v))
        sqlite3_bind_int64(statement, number, *integer);
    else if (const auto* real = std::get_if<double>(&v))
        sqlite3_bind_double(statement, number, *real);
    else if (const auto* text = std::get_if<std::string>(&v))
        sqlite3_bind_text(statement, number, text->data(), size(*text), SQLITE_TRANSIENT);
    else if (const auto* bytes = std::get_if<blob>(&v))
        sqlite3_bind_blob(
            statement, number, bytes->bytes.data(), size(bytes->bytes), SQLITE_TRANSIENT);
    else
        sqlite3_bind_null(statement, number);
}

}  // namespace hotlane::devengine
