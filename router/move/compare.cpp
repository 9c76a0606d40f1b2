#include "router/move/compare.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

namespace hotlane::move {
namespace {

constexpr std::size_t key_bytes_shown = 40;

// A value as bytes that are equal exactly where the values are.
void put_exact(std::string& out, value_type type, const value& v) {
    if (v.is_null) {
        out += 'n';
        return;
    }
    switch (type) {
        case value_type::integer:
            out += fmt::format("i{};", v.integer);
            break;
        case value_type::real:
            out += 'r' + print_real(v.real) + ';';
            break;
        case value_type::text:
        case value_type::blob:
            out += fmt::format("b{}:", v.bytes.size());
            out += v.bytes;
            break;
    }
}

std::vector<std::size_t> key_columns(const table& t) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < t.columns.size(); ++i)
        if (t.key.empty() ||
            std::find(t.key.begin(), t.key.end(), t.columns[i].name) != t.key.end())
            out.push_back(i);
    return out;  // without a key the whole row is one
}

std::uint64_t hash_of(std::string_view bytes) noexcept {
    std::uint64_t h = 14'695'981'039'346'656'037U;  // FNV-1a
    for (const char c : bytes)
        h = (h ^ static_cast<unsigned char>(c)) * 1'099'511'628'211U;
    return h ^ (h >> 29U);
}

std::string show_value(value_type type, const value& v) {
    if (v.is_null) return "NULL";
    std::string out;
    switch (type) {
        case value_type::integer:
            return std::to_string(v.integer);
        case value_type::real:
            return print_real(v.real);
        case value_type::text:
            out = std::string(v.bytes.substr(0, key_bytes_shown));
            while (!is_valid_utf8(out) && !out.empty())
                out.pop_back();
            return out;
        case value_type::blob:
            return fmt::format("({} bytes)", v.bytes.size());
    }
    return out;
}

struct sums {
    std::vector<digest> sum;
    std::vector<std::uint64_t> rows;
};

struct held_row {
    std::string shown;
    std::vector<std::string> columns;
    std::uint64_t times{1};
};
using held_rows = std::map<std::string, held_row>;  // by key

struct comparer {
    const table& t;
    const std::string& seed;
    const compare_limits& limits;
    const std::function<bool()>& go_on;
    std::vector<value_type> types;
    std::vector<std::size_t> key;
    std::string buffer;
    bool stopped{false};
    table_comparison out;

    std::size_t chunk_of(const std::vector<value>& values) {
        buffer.clear();
        for (const auto i : key)
            put_exact(buffer, types[i], values[i]);
        return static_cast<std::size_t>(hash_of(buffer) % limits.chunks);
    }

    on_bad_value note_bad() {
        return [this](const refusal& bad) {
            if (out.bad.size() < limits.bad_shown) out.bad.push_back(bad.message);
            return true;
        };
    }

    answer<std::uint64_t> sum_up(const row_source& from, sums& into, digest& all) {
        into = {std::vector<digest>(limits.chunks), std::vector<std::uint64_t>(limits.chunks)};
        table_digest one(seed);
        digest before;
        auto read = from(
            [&](const std::vector<value>& values) {
                const auto chunk = chunk_of(values);
                one.add(types, values);
                // The row's own hash is what the table's sum grew by.
                digest row = one.sum();
                row.subtract(before);
                before = one.sum();
                into.sum[chunk].add(row);
                ++into.rows[chunk];
                if (one.rows() % 1'024 == 0 && !go_on()) stopped = true;
                return !stopped;
            },
            note_bad());
        all = one.sum();
        return read;
    }

    // Chunks whose rows are held side by side: as many of those that differ as there is room for.
    std::set<std::size_t> chosen(const sums& a, const sums& b) {
        std::set<std::size_t> picked;
        std::uint64_t rows = 0;
        for (std::size_t i = 0; i < limits.chunks; ++i) {
            if (a.rows[i] == b.rows[i] && a.sum[i] == b.sum[i]) continue;
            ++out.chunks_differ;
            rows += a.rows[i] + b.rows[i];
            if (picked.empty() || rows <= limits.rows_compared) picked.insert(i);
        }
        out.chunks_read = picked.size();
        return picked;
    }

    answer<std::uint64_t> hold(const row_source& from,
                               const std::set<std::size_t>& chunks,
                               held_rows& into) {
        std::uint64_t bytes = 0;
        return from(
            [&](const std::vector<value>& values) {
                if (chunks.count(chunk_of(values)) == 0) return true;
                const auto [at, is_new] = into.try_emplace(buffer);
                if (!is_new) {
                    ++at->second.times;
                    return true;
                }
                held_row& row = at->second;
                for (std::size_t i = 0; i < values.size(); ++i) {
                    row.columns.emplace_back();
                    put_exact(row.columns.back(), types[i], values[i]);
                    bytes += row.columns.back().size();
                }
                for (const auto i : key) {
                    if (row.shown.size() > 4 * key_bytes_shown) break;
                    row.shown += fmt::format("{}{} = {}",
                                             row.shown.empty() ? "" : ", ",
                                             t.columns[i].name,
                                             show_value(types[i], values[i]));
                }
                if (bytes > limits.bytes_compared || !go_on()) stopped = true;
                return !stopped;
            },
            [](const refusal&) { return true; });
    }

    void show(row_difference::kind what, const held_row& row, std::vector<std::string> columns) {
        if (out.shown.size() < limits.rows_shown)
            out.shown.push_back({what, row.shown, std::move(columns)});
    }

    void one_side(row_difference::kind what, const held_row& row, std::uint64_t times) {
        (what == row_difference::kind::first_only ? out.first_only : out.second_only) += times;
        show(what, row, {});
    }

    void put_side_by_side(const held_rows& a, const held_rows& b) {
        using kind = row_difference::kind;
        for (const auto& [name, row] : a) {
            const auto there = b.find(name);
            const auto times = there == b.end() ? 0 : there->second.times;
            if (times < row.times) one_side(kind::first_only, row, row.times - times);
            if (times == 0) continue;
            std::vector<std::string> columns;
            for (std::size_t i = 0; i < row.columns.size(); ++i)
                if (row.columns[i] != there->second.columns[i])
                    columns.push_back(t.columns[i].name);
            if (columns.empty()) continue;
            ++out.changed;
            show(kind::changed, row, std::move(columns));
        }
        for (const auto& [name, row] : b) {
            const auto there = a.find(name);
            const auto times = there == a.end() ? 0 : there->second.times;
            if (times < row.times) one_side(kind::second_only, row, row.times - times);
        }
    }
};

}  // namespace

bool table_comparison::equal() const {
    return complete && first_rows == second_rows && first_sum == second_sum && bad.empty();
}

tl::expected<table_comparison, compare_error> compare_tables(const table& t,
                                                             const std::string& seed,
                                                             const row_source& first,
                                                             const row_source& second,
                                                             const compare_limits& limits,
                                                             const std::function<bool()>& go_on) {
    comparer c{t, seed, limits, go_on, t.types(), key_columns(t), {}, false, {}};
    sums a, b;
    const auto read_a = c.sum_up(first, a, c.out.first_sum);
    if (!read_a && !c.stopped) return tl::unexpected(compare_error{side::first, read_a.error()});
    if (c.stopped) return c.out;
    const auto read_b = c.sum_up(second, b, c.out.second_sum);
    if (!read_b && !c.stopped) return tl::unexpected(compare_error{side::second, read_b.error()});
    if (c.stopped) return c.out;
    c.out.first_rows = *read_a;
    c.out.second_rows = *read_b;
    if (c.out.first_rows == c.out.second_rows && c.out.first_sum == c.out.second_sum) {
        c.out.complete = true;
        return c.out;
    }
    const auto chunks = c.chosen(a, b);
    held_rows in_a, in_b;
    const auto held_a = c.hold(first, chunks, in_a);
    if (!held_a && !c.stopped) return tl::unexpected(compare_error{side::first, held_a.error()});
    if (c.stopped) return c.out;
    const auto held_b = c.hold(second, chunks, in_b);
    if (!held_b && !c.stopped) return tl::unexpected(compare_error{side::second, held_b.error()});
    if (c.stopped) return c.out;
    c.put_side_by_side(in_a, in_b);
    c.out.complete = true;
    return c.out;
}

namespace {

std::string_view word(row_difference::kind what,
                      std::string_view first_name,
                      std::string_view second_name) {
    switch (what) {
        case row_difference::kind::first_only:
            return first_name;
        case row_difference::kind::second_only:
            return second_name;
        case row_difference::kind::changed:
            return "";
    }
    return "";
}

}  // namespace

nlohmann::json to_json(const table_comparison& c,
                       std::string_view first_name,
                       std::string_view second_name) {
    auto rows = nlohmann::json::array();
    for (const auto& d : c.shown) {
        const auto where = word(d.what, first_name, second_name);
        rows.push_back(
            {{"row", d.row},
             {"only_at", where.empty() ? nlohmann::json(nullptr) : nlohmann::json(where)},
             {"columns", d.columns}});
    }
    return {{"equal", c.equal()},
            {"complete", c.complete},
            {"rows", {{first_name, c.first_rows}, {second_name, c.second_rows}}},
            {"checksums", {{first_name, c.first_sum.hex()}, {second_name, c.second_sum.hex()}}},
            {"chunks_differ", c.chunks_differ},
            {"chunks_compared", c.chunks_read},
            {"only", {{first_name, c.first_only}, {second_name, c.second_only}}},
            {"changed", c.changed},
            {"rows_shown", std::move(rows)},
            {"bad_values", c.bad}};
}

std::string describe(const table_comparison& c,
                     std::string_view first_name,
                     std::string_view second_name) {
    if (c.equal()) return "equal";
    std::string out = fmt::format("{} rows only in {}, {} only in {}, {} changed",
                                  c.first_only,
                                  first_name,
                                  c.second_only,
                                  second_name,
                                  c.changed);
    if (!c.complete) return "not all was compared: the time or the memory for it was over";
    if (c.chunks_read < c.chunks_differ) out += " at least";
    for (const auto& d : c.shown) {
        const auto where = word(d.what, first_name, second_name);
        out += "; " + d.row;
        if (!where.empty()) out += fmt::format(" (only in {})", where);
        for (std::size_t i = 0; i < d.columns.size(); ++i)
            out += (i == 0 ? " (column " : ", ") + d.columns[i] +
                   (i + 1 == d.columns.size() ? ")" : "");
    }
    for (const auto& bad : c.bad)
        out += "; " + bad;
    return out;
}

}  // namespace hotlane::move
