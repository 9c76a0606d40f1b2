#include "router/move/values.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace hotlane::move {
namespace {

int hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool read_blob(std::string_view wire, std::string& out) {
    if (wire.size() < 2 || wire[0] != '\\' || wire[1] != 'x' || wire.size() % 2 != 0) return false;
    out.clear();
    out.reserve(wire.size() / 2);
    for (std::size_t i = 2; i < wire.size(); i += 2) {
        const int high = hex_digit(wire[i]), low = hex_digit(wire[i + 1]);
        if (high < 0 || low < 0) return false;
        out += static_cast<char>(high * 16 + low);
    }
    return true;
}

template <typename Number>
bool read_number(std::string_view wire, Number& out) noexcept {
    if (!wire.empty() && wire[0] == '+') wire.remove_prefix(1);
    const auto read = std::from_chars(wire.data(), wire.data() + wire.size(), out);
    return read.ec == std::errc{} && read.ptr == wire.data() + wire.size();
}

void put_u64(std::string& out, std::uint64_t n) {
    for (int i = 0; i < 8; ++i)
        out += static_cast<char>((n >> (8 * i)) & 0xffU);
}

std::uint64_t get_u64(const unsigned char* at) noexcept {
    std::uint64_t n = 0;
    for (int i = 7; i >= 0; --i)
        n = (n << 8U) | at[i];
    return n;
}

void put_copy_text(std::string& out, std::string_view text) {
    for (const char c : text) {
        switch (c) {
            case '\\':
                out += "\\\\";
                break;
            case '\n':
                out += "\\n";
                break;
            case '\r':
                out += "\\r";
                break;
            case '\t':
                out += "\\t";
                break;
            default:
                out += c;  // a character, not one of our enums
        }
    }
}

void put_hex(std::string& out, std::string_view bytes) {
    static constexpr std::string_view digits = "0123456789abcdef";
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        out += digits[byte >> 4U];
        out += digits[byte & 15U];
    }
}

}  // namespace

std::string_view to_string(value_type type) noexcept {
    switch (type) {
        case value_type::integer:
            return "integer";
        case value_type::real:
            return "real";
        case value_type::text:
            return "text";
        case value_type::blob:
            return "blob";
    }
    return "?";
}

std::optional<value_type> value_type_from(std::string_view word) noexcept {
    for (const auto type :
         {value_type::integer, value_type::real, value_type::text, value_type::blob})
        if (word == to_string(type)) return type;
    return std::nullopt;
}

param_type wire_type(value_type type) noexcept {
    switch (type) {
        case value_type::integer:
            return param_type::int8;
        case value_type::real:
            return param_type::float8;
        case value_type::text:
            return param_type::text;
        case value_type::blob:
            return param_type::bytea;
    }
    return param_type::text;
}

bool is_valid_utf8(std::string_view text) noexcept {
    std::size_t i = 0;
    while (i < text.size()) {
        const auto lead = static_cast<unsigned char>(text[i]);
        std::size_t more = 0;
        std::uint32_t point = 0, least = 0;
        if (lead < 0x80) {
            ++i;
            continue;
        }
        if ((lead & 0xe0U) == 0xc0)
            more = 1, point = lead & 0x1fU, least = 0x80;
        else if ((lead & 0xf0U) == 0xe0)
            more = 2, point = lead & 0x0fU, least = 0x800;
        else if ((lead & 0xf8U) == 0xf0)
            more = 3, point = lead & 0x07U, least = 0x10000;
        else
            return false;
        if (text.size() - i <= more) return false;
        for (std::size_t k = 1; k <= more; ++k) {
            const auto next = static_cast<unsigned char>(text[i + k]);
            if ((next & 0xc0U) != 0x80) return false;
            point = (point << 6U) | (next & 0x3fU);
        }
        if (point < least || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return false;
        i += more + 1;
    }
    return true;
}

tl::expected<value, std::string> read_value(value_type type,
                                            std::optional<std::string_view> wire,
                                            std::string& scratch) {
    value out;
    if (!wire) return out;
    out.is_null = false;
    switch (type) {
        case value_type::integer:
            if (!read_number(*wire, out.integer))
                return tl::unexpected(std::string("a value that is no 64-bit integer"));
            return out;
        case value_type::real:
            if (!read_number(*wire, out.real))
                return tl::unexpected(std::string("a value that is no number"));
            if (!std::isfinite(out.real))
                return tl::unexpected(
                    std::string("NaN or an infinity, which the engine cannot hold"));
            if (out.real == 0) out.real = 0;  // -0
            return out;
        case value_type::text:
            if (wire->find('\0') != std::string_view::npos)
                return tl::unexpected(std::string("text with a NUL byte"));
            if (!is_valid_utf8(*wire))
                return tl::unexpected(std::string("text that is not valid UTF-8"));
            out.bytes = *wire;
            return out;
        case value_type::blob:
            if (!read_blob(*wire, scratch))
                return tl::unexpected(
                    std::string("bytes in a form that is not \\x and hex digits"));
            out.bytes = scratch;
            return out;
    }
    return out;
}

bool storage_class_fits(value_type type, std::string_view storage_class) noexcept {
    if (storage_class == "null" || storage_class == to_string(type)) return true;
    return type == value_type::real && storage_class == "integer";
}

std::string print_real(double real) {
    std::array<char, 64> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), real);
    return {buffer.data(), end.ptr};
}

void put_copy_value(std::string& out, value_type type, const value& v) {
    if (v.is_null) {
        out += "\\N";
        return;
    }
    switch (type) {
        case value_type::integer:
            out += std::to_string(v.integer);
            break;
        case value_type::real:
            out += print_real(v.real);
            break;
        case value_type::text:
            put_copy_text(out, v.bytes);
            break;
        case value_type::blob:
            out += "\\\\x";
            put_hex(out, v.bytes);
            break;
    }
}

param make_param(value_type type, const value& v) {
    param out{wire_type(type), std::nullopt};
    if (v.is_null) return out;
    switch (type) {
        case value_type::integer:
            out.value = std::to_string(v.integer);
            break;
        case value_type::real: {
            // "5" would be kept as an integer by an engine without strict types.
            std::string text = print_real(v.real);
            if (text.find_first_of(".e") == std::string::npos) text += ".0";
            out.value = std::move(text);
            break;
        }
        case value_type::text:
        case value_type::blob:
            out.value = std::string(v.bytes);
            break;
    }
    return out;
}

void digest::add(const digest& other) noexcept {
    low += other.low;
    high += other.high + (low < other.low ? 1U : 0U);
}

void digest::subtract(const digest& other) noexcept {
    high -= other.high + (low < other.low ? 1U : 0U);
    low -= other.low;
}

std::string digest::hex() const {
    return fmt::format("{:016x}{:016x}", high, low);
}

std::optional<digest> digest_from_hex(std::string_view hex) noexcept {
    if (hex.size() != 32) return std::nullopt;
    digest out;
    for (std::size_t i = 0; i < 32; ++i) {
        const int d = hex_digit(hex[i]);
        if (d < 0) return std::nullopt;
        std::uint64_t& half = i < 16 ? out.high : out.low;
        half = half * 16 + static_cast<std::uint64_t>(d);
    }
    return out;
}

struct table_digest::hasher {
    EVP_MD_CTX* context{EVP_MD_CTX_new()};
    ~hasher() { EVP_MD_CTX_free(context); }
};

table_digest::table_digest(std::string seed)
    : hasher_(std::make_unique<hasher>()), seed_(std::move(seed)) {}
table_digest::~table_digest() = default;
table_digest::table_digest(table_digest&&) noexcept = default;

void table_digest::add(const std::vector<value_type>& types, const std::vector<value>& values) {
    buffer_ = seed_;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const value& v = values[i];
        buffer_ += v.is_null ? 'n' : to_string(types[i])[0];
        if (v.is_null) continue;
        switch (types[i]) {
            case value_type::integer:
                put_u64(buffer_, static_cast<std::uint64_t>(v.integer));
                break;
            case value_type::real:
                put_u64(buffer_, std::bit_cast<std::uint64_t>(v.real));
                break;
            case value_type::text:
            case value_type::blob:
                put_u64(buffer_, v.bytes.size());
                buffer_ += v.bytes;
                break;
        }
    }
    std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
    unsigned size = 0;
    if (EVP_DigestInit_ex(hasher_->context, EVP_sha256(), nullptr) != 1 ||
        EVP_DigestUpdate(hasher_->context, buffer_.data(), buffer_.size()) != 1 ||
        EVP_DigestFinal_ex(hasher_->context, hash.data(), &size) != 1)
        throw std::runtime_error("SHA-256 is not available");
    sum_.add({get_u64(hash.data()), get_u64(hash.data() + 8)});
    ++rows_;
}

}  // namespace hotlane::move
