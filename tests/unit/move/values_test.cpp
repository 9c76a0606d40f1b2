// Canonical values, checksums, COPY's text, names and crash points.
#include <catch2/catch.hpp>
#include <cmath>

#include "router/move/names.hpp"
#include "router/move/step.hpp"
#include "router/move/values.hpp"

using namespace hotlane::move;

namespace {

value read(value_type type, std::string_view wire, std::string& scratch) {
    const auto v = read_value(type, wire, scratch);
    REQUIRE(v);
    return *v;
}

std::string why_not(value_type type, std::string_view wire) {
    std::string scratch;
    const auto v = read_value(type, wire, scratch);
    return v ? std::string() : v.error();
}

digest sum_of(const std::vector<std::vector<std::string>>& rows, const std::string& seed = "s") {
    table_digest d(seed);
    for (const auto& r : rows) {
        std::vector<value_type> types(r.size(), value_type::text);
        std::vector<value> values;
        for (const auto& text : r) {
            value v;
            v.is_null = text == "NULL";
            v.bytes = text;
            values.push_back(v);
        }
        d.add(types, values);
    }
    return d.sum();
}

}  // namespace

TEST_CASE("values are read strictly") {
    std::string scratch;
    CHECK(read(value_type::integer, "-9223372036854775808", scratch).integer == INT64_MIN);
    CHECK(!why_not(value_type::integer, "9223372036854775808").empty());
    CHECK(!why_not(value_type::integer, "1.5").empty());
    CHECK(!why_not(value_type::integer, "abc").empty());
    CHECK(!why_not(value_type::integer, "").empty());
    CHECK(read(value_type::real, "0.1", scratch).real == Approx(0.1));
    CHECK_FALSE(std::signbit(read(value_type::real, "-0.0", scratch).real));
    for (const char* bad : {"NaN", "Infinity", "-inf", "abc", "1e999", ""})
        CHECK(!why_not(value_type::real, bad).empty());
    CHECK(why_not(value_type::text, std::string_view("a\0b", 3)).find("NUL") != std::string::npos);
    CHECK(why_not(value_type::text, "\xc3\x28").find("UTF-8") != std::string::npos);
    CHECK(read(value_type::blob, "\\x00fF", scratch).bytes == std::string_view("\x00\xff", 2));
    CHECK(!why_not(value_type::blob, "\\x0").empty());
    CHECK(!why_not(value_type::blob, "raw").empty());
    CHECK(read_value(value_type::blob, std::nullopt, scratch)->is_null);
}

TEST_CASE("UTF-8 is checked as the standard says") {
    CHECK(is_valid_utf8("Größe \xe2\x82\xac \xf0\x9f\x98\x80"));
    CHECK_FALSE(is_valid_utf8("\xc0\x80"));          // overlong
    CHECK_FALSE(is_valid_utf8("\xed\xa0\x80"));      // a surrogate
    CHECK_FALSE(is_valid_utf8("\xf4\x90\x80\x80"));  // beyond U+10FFFF
    CHECK_FALSE(is_valid_utf8("\xe2\x82"));          // cut
}

TEST_CASE("storage classes that fit a column") {
    CHECK(storage_class_fits(value_type::real, "integer"));
    CHECK(storage_class_fits(value_type::text, "null"));
    CHECK_FALSE(storage_class_fits(value_type::real, "text"));
    CHECK_FALSE(storage_class_fits(value_type::integer, "real"));
    CHECK_FALSE(storage_class_fits(value_type::text, "blob"));
    CHECK_FALSE(storage_class_fits(value_type::blob, "text"));
}

TEST_CASE("the checksum sees what differs and not the order") {
    const auto base = sum_of({{"a", "b"}, {"c", "NULL"}});
    CHECK(base == sum_of({{"c", "NULL"}, {"a", "b"}}));
    CHECK_FALSE(base == sum_of({{"a", "b"}, {"c", ""}}));
    CHECK_FALSE(base == sum_of({{"ab", ""}, {"c", "NULL"}}));
    CHECK_FALSE(base == sum_of({{"a", "b"}, {"a", "b"}, {"c", "NULL"}}));
    CHECK_FALSE(base == sum_of({{"a", "b"}, {"c", "NULL"}}, "other seed"));
    CHECK(digest_from_hex(base.hex()) == base);
    CHECK_FALSE(digest_from_hex("12").has_value());
    digest carry{0, ~std::uint64_t{0}};
    carry.add({0, 1});
    CHECK(carry == digest{1, 0});
}

TEST_CASE("COPY text and parameters say the same value") {
    std::string out, scratch;
    put_copy_value(out, value_type::text, read(value_type::text, "a\tb\\c\nd\re", scratch));
    CHECK(out == "a\\tb\\\\c\\nd\\re");
    out.clear();
    put_copy_value(out, value_type::blob, read(value_type::blob, "\\x00ff", scratch));
    CHECK(out == "\\\\x00ff");
    out.clear();
    put_copy_value(out, value_type::text, value{});
    CHECK(out == "\\N");
    CHECK(*make_param(value_type::real, read(value_type::real, "5", scratch)).value == "5.0");
    CHECK(*make_param(value_type::real, read(value_type::real, "1e300", scratch)).value ==
          "1e+300");
    CHECK(*make_param(value_type::blob, read(value_type::blob, "\\x6100", scratch)).value ==
          std::string("a\0", 2));
    CHECK_FALSE(make_param(value_type::text, value{}).value.has_value());
}

TEST_CASE("names of a move are its own and recognised") {
    const auto id = make_move_id(
        hotlane::policy::time_point{std::chrono::milliseconds(1'764'524'000'000)}, 0x12345);
    REQUIRE(is_move_id(id));
    CHECK(id < make_move_id(
                   hotlane::policy::time_point{std::chrono::milliseconds(1'764'524'000'001)}, 0));
    CHECK(is_own_name(engine_name(id, part::fenced, 0)));
    CHECK(is_own_name(engine_name(id, part::staged, 12)));
    CHECK(is_own_name(stray_name(id, 3, 1)));
    CHECK(is_own_name("hotlane_home"));
    // A tool may name its tables as it likes: these are data.
    for (const char* name : {"hotlane_users", "hotlane_", "t", "hotlane_abc_f0", "orders"})
        CHECK_FALSE(is_own_name(name));
    CHECK_FALSE(is_own_name("hotlane_" + id));
    CHECK_FALSE(is_own_name("hotlane_" + id + "_f"));
    CHECK_FALSE(is_own_name("hotlane_" + id + "_z0"));
}

TEST_CASE("crash points are read strictly") {
    CHECK(read_crash_point("12").at == 12);
    CHECK_FALSE(read_crash_point("12").after_send);
    CHECK(read_crash_point("3r").at == 3);
    CHECK(read_crash_point("3r").after_send);
    for (const char* bad : {"", "r", "x", "1x", "-1"})
        CHECK(read_crash_point(bad).at == 0);
}
