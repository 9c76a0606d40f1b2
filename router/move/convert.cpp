#include "router/move/convert.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "router/move/words.hpp"

namespace hotlane::move {
namespace {

struct word_row {
    held_as as;
    std::string_view word, catalog;
};
constexpr std::array<word_row, 8> words{{
    {held_as::boolean, "boolean", "boolean"},
    {held_as::smallint, "smallint", "smallint"},
    {held_as::integer, "integer", "integer"},
    {held_as::timestamp, "timestamp", "timestamp without time zone"},
    {held_as::timestamptz, "timestamptz", "timestamp with time zone"},
    {held_as::date, "date", "date"},
    {held_as::uuid, "uuid", "uuid"},
    {held_as::json, "json", "json"},
}};

bool digits(std::string_view text, std::size_t from, std::size_t count, int& out) {
    out = 0;
    if (text.size() < from + count) return false;
    for (std::size_t i = from; i < from + count; ++i) {
        if (text[i] < '0' || text[i] > '9') return false;
        out = out * 10 + (text[i] - '0');
    }
    return true;
}

bool is_date(std::string_view t) {
    int year = 0, month = 0, day = 0;
    if (t.size() != 10 || !digits(t, 0, 4, year) || t[4] != '-' || !digits(t, 5, 2, month) ||
        t[7] != '-' || !digits(t, 8, 2, day))
        return false;
    constexpr std::array<int, 12> length{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < 1 || month < 1 || month > 12 || day < 1) return false;
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return day <= length[static_cast<std::size_t>(month - 1)] + (leap && month == 2 ? 1 : 0);
}

// "2024-02-29 12:00:00", with a fraction only where it is not 0 and without trailing zeros.
bool is_timestamp(std::string_view t) {
    int hour = 0, minute = 0, second = 0;
    if (t.size() < 19 || !is_date(t.substr(0, 10)) || t[10] != ' ' || !digits(t, 11, 2, hour) ||
        t[13] != ':' || !digits(t, 14, 2, minute) || t[16] != ':' || !digits(t, 17, 2, second))
        return false;
    if (hour > 23 || minute > 59 || second > 59) return false;
    if (t.size() == 19) return true;
    int fraction = 0;
    return t[19] == '.' && t.size() > 20 && t.size() <= 26 && t.back() != '0' &&
           digits(t, 20, t.size() - 20, fraction);
}

bool is_uuid(std::string_view t) {
    if (t.size() != 36) return false;
    for (std::size_t i = 0; i < t.size(); ++i) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        const bool hex = (t[i] >= '0' && t[i] <= '9') || (t[i] >= 'a' && t[i] <= 'f');
        if (dash ? t[i] != '-' : !hex) return false;
    }
    return true;
}

bool within(std::int64_t n, std::int64_t least, std::int64_t most) {
    return n >= least && n <= most;
}

}  // namespace

std::string_view to_string(held_as as) noexcept {
    for (const auto& w : words)
        if (w.as == as) return w.word;
    return "";
}

std::optional<held_as> held_as_from(std::string_view word) noexcept {
    for (const auto& w : words)
        if (w.word == word) return w.as;
    return std::nullopt;
}

std::optional<held_as> held_as_of(std::string_view postgres_type) noexcept {
    for (const auto& w : words)
        if (w.catalog == postgres_type) return w.as;
    return std::nullopt;
}

value_type engine_side(held_as as) noexcept {
    switch (as) {
        case held_as::boolean:
        case held_as::smallint:
        case held_as::integer:
            return value_type::integer;
        case held_as::plain:
        case held_as::timestamp:
        case held_as::timestamptz:
        case held_as::date:
        case held_as::uuid:
        case held_as::json:
            return value_type::text;
    }
    return value_type::text;
}

std::string why_not(held_as as, const value& v) {
    if (v.is_null) return {};
    bool fits = true;
    switch (as) {
        case held_as::plain:
            break;
        case held_as::boolean:
            fits = within(v.integer, 0, 1);
            break;
        case held_as::smallint:
            fits = within(v.integer, INT16_MIN, INT16_MAX);
            break;
        case held_as::integer:
            fits = within(v.integer, INT32_MIN, INT32_MAX);
            break;
        case held_as::timestamp:
        case held_as::timestamptz:
            fits = is_timestamp(v.bytes);
            break;
        case held_as::date:
            fits = is_date(v.bytes);
            break;
        case held_as::uuid:
            fits = is_uuid(v.bytes);
            break;
        case held_as::json:
            fits = nlohmann::json::accept(v.bytes);
            break;
    }
    if (fits) return {};
    static constexpr std::string_view forms[] = {
        "",
        "0 or 1",
        "-32768 to 32767",
        "-2147483648 to 2147483647",
        "YYYY-MM-DD HH:MM:SS, with a fraction only where it is not 0",
        "the same, in UTC",
        "YYYY-MM-DD",
        "lower case, with dashes",
        "one JSON text"};
    return fmt::format("a value that does not convert to {} and back unchanged ({})",
                       to_string(as),
                       forms[static_cast<std::size_t>(as)]);
}

void put_copy_value(std::string& out, value_type type, held_as as, const value& v) {
    if (!v.is_null && as == held_as::boolean) {
        out += v.integer != 0 ? 't' : 'f';
        return;
    }
    put_copy_value(out, type, v);
    if (!v.is_null && as == held_as::timestamptz) out += "+00";
}

std::string select_of(held_as as, const std::string& column) {
    const auto point = [&](const std::string& at) {
        return fmt::format(
            "CASE WHEN {0} >= '0001-01-01' AND {0} < '10000-01-01' THEN rtrim(rtrim(to_char({1}, "
            "'YYYY-MM-DD HH24:MI:SS.US'), '0'), '.') ELSE {0}::text END",
            column,
            at);
    };
    switch (as) {
        case held_as::plain:
            return column;
        case held_as::boolean:
            return column + "::int";
        case held_as::smallint:
        case held_as::integer:
            return column;
        case held_as::timestamp:
            return point(column);
        case held_as::timestamptz:
            return point(fmt::format("timezone('UTC', {})", column));
        case held_as::date:
            return fmt::format(
                "CASE WHEN {0} >= '0001-01-01' AND {0} < '10000-01-01' THEN to_char({0}, "
                "'YYYY-MM-DD') ELSE {0}::text END",
                column);
        case held_as::uuid:
        case held_as::json:
            return column + "::text";
    }
    return column;
}

std::string default_there(held_as as, const std::string& expression) {
    const std::string word = bare(expression);
    switch (as) {
        case held_as::boolean:
            if (word == "1" || same_word(word, "TRUE")) return "true";
            if (word == "0" || same_word(word, "FALSE")) return "false";
            return expression;
        case held_as::timestamp:
            return same_word(word, "CURRENT_TIMESTAMP")
                       ? "date_trunc('second', timezone('UTC', now()))"
                       : expression;
        case held_as::timestamptz:
            if (same_word(word, "CURRENT_TIMESTAMP")) return "date_trunc('second', now())";
            return same_word(word, "NULL")
                       ? expression
                       : fmt::format("timezone('UTC', ({})::timestamp)", expression);
        case held_as::date:
            return same_word(word, "CURRENT_DATE") ? "timezone('UTC', now())::date" : expression;
        case held_as::plain:
        case held_as::smallint:
        case held_as::integer:
        case held_as::uuid:
        case held_as::json:
            return expression;
    }
    return expression;
}

std::optional<std::string> default_here(held_as as, const std::string& expression) {
    if (as == held_as::boolean) {
        if (expression == "true") return "1";
        if (expression == "false") return "0";
    }
    const bool now = expression.find("now()") != std::string::npos;
    if (now && (as == held_as::timestamp || as == held_as::timestamptz)) return "CURRENT_TIMESTAMP";
    if (now && as == held_as::date) return "CURRENT_DATE";
    return std::nullopt;
}

}  // namespace hotlane::move
