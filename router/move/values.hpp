// The values that both homes can hold, their one canonical form, and the checksum over it.
//
// Canonical: null; integer (64 bit); real (the IEEE bits, with -0 as 0: both homes compare them as
// equal and not every engine keeps the sign; NaN and infinities are refused, the engine cannot hold
// them); text (its UTF-8 bytes); blob (its bytes). A row's hash covers type, length and bytes of
// each value in column order; a table's checksum is the sum of its rows' hashes modulo 2^128, so
// the order of rows does not matter and a doubled row does.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "router/move/link.hpp"

namespace hotlane::move {

enum class value_type : std::uint8_t { integer, real, text, blob };
std::string_view to_string(value_type type) noexcept;  // the engine's catalog words
std::optional<value_type> value_type_from(std::string_view engine_word) noexcept;
param_type wire_type(value_type type) noexcept;

struct value {
    bool is_null{true};
    std::int64_t integer{};
    double real{};
    std::string_view bytes;  // text and blob; points into the caller's row or `scratch`
};

// Reads one value in the wire's text form as `type`. `scratch` keeps a decoded blob alive. The
// error says what is wrong with the value, in words that fit "column c holds ...".
tl::expected<value, std::string> read_value(value_type type,
                                            std::optional<std::string_view> wire,
                                            std::string& scratch);

// The engine's typeof(x) for a column of this type: may the value go over? (An integer in a REAL
// column may, up to 2^53.)
bool storage_class_fits(value_type type, std::string_view storage_class) noexcept;

std::string print_real(double real);  // shortest text that reads back as the same number
bool is_valid_utf8(std::string_view text) noexcept;

// Appends one value in COPY's text format.
void put_copy_value(std::string& out, value_type type, const value& v);
// The same value as a bound parameter for the engine.
param make_param(value_type type, const value& v);

struct digest {
    std::uint64_t high{}, low{};
    void add(const digest& other) noexcept;
    void subtract(const digest& other) noexcept;
    bool operator==(const digest&) const = default;
    [[nodiscard]] std::string hex() const;
};
std::optional<digest> digest_from_hex(std::string_view hex) noexcept;

// Count and checksum of a table. Both sides of a move use the same seed.
class table_digest {
  public:
    explicit table_digest(std::string seed);
    ~table_digest();
    table_digest(table_digest&&) noexcept;
    void add(const std::vector<value_type>& types, const std::vector<value>& values);
    [[nodiscard]] const digest& sum() const noexcept { return sum_; }
    [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }

  private:
    struct hasher;
    std::unique_ptr<hasher> hasher_;
    std::string buffer_, seed_;
    digest sum_;
    std::uint64_t rows_{0};
};

}  // namespace hotlane::move
