#include <catch2/catch.hpp>

#include "router/move/convert.hpp"
#include "router/move/trial.hpp"

using namespace hotlane::move;

namespace {

value text(std::string_view bytes) {
    return {false, 0, 0, bytes};
}
value number(std::int64_t n) {
    return {false, n, 0, {}};
}

bool goes(held_as as, const value& v) {
    return why_not(as, v).empty();
}

}  // namespace

TEST_CASE("only a form that comes back unchanged is converted") {
    using h = held_as;
    for (const auto* good : {"2024-02-29 12:00:00",
                             "0001-01-01 00:00:00",
                             "9999-12-31 23:59:59.5",
                             "2024-01-01 00:00:00.000001"})
        CHECK(goes(h::timestamptz, text(good)));
    for (const auto* bad : {"2023-02-29 12:00:00",
                            "2024-01-01",
                            "2024-01-01T00:00:00",
                            "2024-01-01 00:00:00.50",
                            "2024-01-01 00:00:00.",
                            "2024-01-01 24:00:00",
                            "2024-01-01 00:00:60",
                            "infinity",
                            "",
                            "2024-01-01 00:00:00Z",
                            "0000-01-01 00:00:00",
                            "2024-01-01 00:00:00.1234567"}) {
        CAPTURE(bad);
        CHECK_FALSE(goes(h::timestamp, text(bad)));
    }
    CHECK(goes(h::date, text("2000-02-29")));
    CHECK_FALSE(goes(h::date, text("1900-02-29")));
    CHECK_FALSE(goes(h::date, text("2000-2-9")));
    CHECK(goes(h::boolean, number(0)));
    CHECK_FALSE(goes(h::boolean, number(2)));
    CHECK_FALSE(goes(h::smallint, number(40'000)));
    CHECK(goes(h::integer, number(-2'147'483'648LL)));
    CHECK(goes(h::uuid, text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")));
    CHECK_FALSE(goes(h::uuid, text("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11")));
    CHECK(goes(h::json, text("{\"a\": [1, 2.50]}")));
    CHECK_FALSE(goes(h::json, text("{broken")));
    CHECK(goes(h::date, value{}));  // NULL
    CHECK(why_not(h::boolean, number(2)).find("0 or 1") != std::string::npos);
}

TEST_CASE("values and defaults are written as PostgreSQL takes them") {
    std::string out;
    put_copy_value(out, value_type::integer, held_as::boolean, number(1));
    out += '|';
    put_copy_value(out, value_type::text, held_as::timestamptz, text("2024-01-01 00:00:00"));
    out += '|';
    put_copy_value(out, value_type::text, held_as::timestamptz, value{});
    CHECK(out == "t|2024-01-01 00:00:00+00|\\N");
    CHECK(default_there(held_as::boolean, "0") == "false");
    CHECK(default_here(held_as::boolean, "true") == "1");
    CHECK(default_there(held_as::timestamptz, "CURRENT_TIMESTAMP") ==
          "date_trunc('second', now())");
    CHECK(default_here(held_as::timestamptz, "date_trunc('second'::text, now())") ==
          "CURRENT_TIMESTAMP");
}

TEST_CASE("checks that can raise are told from those that cannot") {
    table t;
    t.checks = {"a >= 0 AND b IN ('x', 'y')", "length(s) <= 3"};
    CHECK_FALSE(may_raise(t));
    t.checks = {"a / b > 0"};
    CHECK(may_raise(t));
    t.checks = {"CAST(s AS INTEGER) > 0"};
    CHECK(may_raise(t));
}
