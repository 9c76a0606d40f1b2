#include <catch2/catch.hpp>

#include "router/move/compare.hpp"

using namespace hotlane::move;

namespace {

struct one_row {
    std::int64_t id;
    std::string text;
};

table make_table(bool keyed) {
    table t;
    t.name = "t";
    t.columns = {{"id", value_type::integer, "", false, false, false, {}, {}, {}},
                 {"v", value_type::text, "", false, false, false, {}, {}, {}}};
    if (keyed) t.key = {"id"};
    return t;
}

row_source from(std::vector<one_row> rows) {
    return [rows = std::move(rows)](const on_values& on_row,
                                    const on_bad_value&) -> answer<std::uint64_t> {
        for (const auto& r : rows) {
            value id{false, r.id, 0, {}}, v{false, 0, 0, r.text};
            if (!on_row({id, v})) return tl::unexpected(link_error{"", "ended", fate::unknown});
        }
        return rows.size();
    };
}

std::vector<one_row> many(std::int64_t n) {
    std::vector<one_row> out;
    for (std::int64_t i = 0; i < n; ++i)
        out.push_back({i, "row " + std::to_string(i)});
    return out;
}

const auto always = [] { return true; };

}  // namespace

TEST_CASE("equal copies are equal in any order, and nothing is read twice") {
    auto a = many(5'000), b = a;
    std::reverse(b.begin(), b.end());
    const auto t = make_table(true);
    const auto found = compare_tables(t, "s", from(a), from(b), {}, always);
    REQUIRE(found);
    CHECK(found->equal());
    CHECK(found->chunks_differ == 0);
    CHECK(describe(*found, "a", "b") == "equal");
}

TEST_CASE("rows that differ are named by key and column") {
    auto a = many(5'000), b = a;
    b[17].text = "other";
    b.erase(b.begin() + 40);
    b.push_back({9'000, "new"});
    const auto t = make_table(true);
    const auto found = compare_tables(t, "s", from(a), from(b), {}, always);
    REQUIRE(found);
    CHECK_FALSE(found->equal());
    CHECK(found->changed == 1);
    CHECK(found->first_only == 1);
    CHECK(found->second_only == 1);
    CHECK(found->chunks_differ <= 3);
    const auto text = describe(*found, "the engine", "PostgreSQL");
    CHECK(text.find("id = 17 (column v)") != std::string::npos);
    CHECK(text.find("id = 40 (only in the engine)") != std::string::npos);
    CHECK(text.find("id = 9000 (only in PostgreSQL)") != std::string::npos);
}

TEST_CASE("without a key rows are counted as often as they stand there") {
    const std::vector<one_row> a{{1, "x"}, {1, "x"}, {2, "y"}}, b{{1, "x"}, {2, "y"}, {2, "z"}};
    const auto t = make_table(false);
    const auto found = compare_tables(t, "s", from(a), from(b), {}, always);
    REQUIRE(found);
    CHECK(found->first_only == 1);
    CHECK(found->second_only == 1);
    CHECK(found->changed == 0);
}

TEST_CASE("a comparison stays within its limits and says so") {
    auto a = many(5'000), b = a;
    for (auto& r : b)
        r.text += "!";
    const auto t = make_table(true);
    compare_limits limits;
    limits.rows_compared = 100;
    limits.rows_shown = 5;
    const auto found = compare_tables(t, "s", from(a), from(b), limits, always);
    REQUIRE(found);
    CHECK(found->chunks_read < found->chunks_differ);
    CHECK(found->shown.size() == 5);
    CHECK(describe(*found, "a", "b").find("at least") != std::string::npos);
    int asked = 0;
    const auto ended = compare_tables(t, "s", from(a), from(b), {}, [&] { return ++asked < 3; });
    REQUIRE(ended);
    CHECK_FALSE(ended->complete);
    CHECK_FALSE(ended->equal());
}
