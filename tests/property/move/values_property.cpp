// Any value that may go over arrives as it was, and any difference between two tables is seen.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "catch2/catch.hpp"
#include "rapidcheck/catch.h"
#include "router/move/values.hpp"

using namespace hotlane::move;

namespace {

std::string hex(const std::string& bytes) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string out = "\\x";
    for (const char c : bytes) {
        out += digits[static_cast<unsigned char>(c) >> 4U];
        out += digits[static_cast<unsigned char>(c) & 15U];
    }
    return out;
}

// What PostgreSQL reads from a field of COPY's text format.
std::string uncopy(const std::string& field) {
    std::string out;
    for (std::size_t i = 0; i < field.size(); ++i) {
        if (field[i] != '\\') {
            out += field[i];
            continue;
        }
        const char c = field[++i];
        out += c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
    }
    return out;
}

digest sum_of(const std::vector<std::string>& texts) {
    table_digest d("seed");
    for (const auto& t : texts) {
        value v;
        v.is_null = false;
        v.bytes = t;
        d.add({value_type::text}, {v});
    }
    return d.sum();
}

}  // namespace

TEST_CASE("numbers come back bit for bit") {
    rc::prop("integers", [](std::int64_t n) {
        std::string scratch, out;
        const auto v = read_value(value_type::integer, std::to_string(n), scratch);
        RC_ASSERT(v.has_value());
        put_copy_value(out, value_type::integer, *v);
        RC_ASSERT(out == std::to_string(n));
    });
    rc::prop("reals", [](std::uint64_t bits) {
        double real = 0;
        static_assert(sizeof real == sizeof bits);
        std::memcpy(&real, &bits, sizeof real);
        RC_PRE(std::isfinite(real));
        std::string scratch;
        const auto v = read_value(value_type::real, print_real(real), scratch);
        RC_ASSERT(v.has_value());
        RC_ASSERT(!(v->real < real) && !(v->real > real));
        const auto again =
            read_value(value_type::real, *make_param(value_type::real, *v).value, scratch);
        RC_ASSERT(again.has_value());
        RC_ASSERT(!(again->real < real) && !(again->real > real));
    });
}

TEST_CASE("bytes come back whatever they are") {
    rc::prop("blobs", [](const std::string& bytes) {
        std::string scratch, out;
        const std::string wire = hex(bytes);
        const auto v = read_value(value_type::blob, wire, scratch);
        RC_ASSERT(v.has_value());
        RC_ASSERT(v->bytes == bytes);
        put_copy_value(out, value_type::blob, *v);
        RC_ASSERT(uncopy(out) == wire);
        RC_ASSERT(*make_param(value_type::blob, *v).value == bytes);
    });
    rc::prop("text", [](const std::string& bytes) {
        std::string scratch, out;
        const auto v = read_value(value_type::text, bytes, scratch);
        RC_ASSERT(v.has_value() == (is_valid_utf8(bytes) && bytes.find('\0') == std::string::npos));
        if (!v) return;
        put_copy_value(out, value_type::text, *v);
        RC_ASSERT(out.find_first_of("\t\n") == std::string::npos);
        RC_ASSERT(uncopy(out) == bytes);
    });
}

TEST_CASE("a checksum is blind to order and to nothing else") {
    rc::prop("order", [](std::vector<std::string> texts) {
        auto turned = texts;
        std::reverse(turned.begin(), turned.end());
        RC_ASSERT(sum_of(texts) == sum_of(turned));
    });
    rc::prop("difference", [](std::vector<std::string> a, std::vector<std::string> b) {
        std::sort(a.begin(), a.end());
        std::sort(b.begin(), b.end());
        RC_ASSERT((sum_of(a) == sum_of(b)) == (a == b));
    });
    rc::prop("doubled row", [](std::vector<std::string> texts, const std::string& extra) {
        texts.push_back(extra);
        const auto once = sum_of(texts);
        texts.push_back(extra);
        RC_ASSERT(!(sum_of(texts) == once));
    });
}
