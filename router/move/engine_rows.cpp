#include "router/move/engine_rows.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "router/sql/facts.hpp"

namespace hotlane::move {
namespace {

constexpr std::size_t batch_rows_max = 500;           // of one INSERT (engine-facts: 1,000 is good)
constexpr std::size_t batch_parameters_max = 10'000;  // both homes take more
constexpr std::size_t batch_bytes_max = 4 * 1024 * 1024;
constexpr std::size_t keys_max = 5'000;                      // of a one-column key: one IN list
constexpr std::size_t composite_keys_max = 400;              // each is a term of its own
constexpr std::uint64_t rows_bytes_max = 32U * 1024 * 1024;  // of rows that are held at once
constexpr std::size_t keys_least = 10;

std::string ident(std::string_view name) {
    return sql::quote_identifier(name);
}

std::string insert_sql(const table& t, const std::string& to, std::size_t rows_in_batch) {
    std::string columns, values;
    for (const auto& c : t.columns)
        columns += (columns.empty() ? "" : ", ") + ident(c.name);
    std::size_t number = 0;
    for (std::size_t r = 0; r < rows_in_batch; ++r) {
        values += r == 0 ? "(" : ", (";
        for (std::size_t i = 0; i < t.columns.size(); ++i)
            values += fmt::format("{}${}", i == 0 ? "" : ", ", ++number);
        values += ')';
    }
    return fmt::format("INSERT INTO {} ({}) VALUES {}", ident(to), columns, values);
}

// (a = $1 AND b = $2) for each key, joined by OR in a balanced tree: parsers are deep in one
// direction only for so long.
std::string any_of_terms(const table& t, std::size_t first, std::size_t last) {
    if (last - first > 1) {
        const auto middle = first + (last - first) / 2;
        return fmt::format(
            "({} OR {})", any_of_terms(t, first, middle), any_of_terms(t, middle, last));
    }
    std::string out;
    for (std::size_t i = 0; i < t.key.size(); ++i)
        out += fmt::format("{}{} = ${}",
                           out.empty() ? "(" : " AND ",
                           ident(t.key[i]),
                           first * t.key.size() + i + 1);
    return out + ")";
}

// One element of PostgreSQL's array literal.
void put_element(std::string& out, std::string_view value) {
    out += out.empty() ? "{\"" : ",\"";
    for (const char c : value) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    out += '"';
}

std::string_view array_type(const column& c) {
    if (c.as == held_as::uuid) return "uuid[]";
    switch (c.type) {
        case value_type::integer:
            return "bigint[]";
        case value_type::real:
            return "double precision[]";
        case value_type::text:
            return "text[]";
        case value_type::blob:
            return "bytea[]";
    }
    return "text[]";
}

}  // namespace

engine_writer::engine_writer(home_link& engine, const table& t, std::string to)
    : engine_(engine),
      t_(t),
      to_(std::move(to)),
      rows_max_(
          std::clamp<std::size_t>(batch_parameters_max / t.columns.size(), 1, batch_rows_max)),
      full_sql_(insert_sql(t, to_, rows_max_)) {}

answer<void> engine_writer::add(const std::vector<value>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        bytes_ += values[i].bytes.size() + 8;
        params_.push_back(make_param(t_.columns[i].type, values[i]));
    }
    ++rows_;
    if (rows_ < rows_max_ && bytes_ < batch_bytes_max) return {};
    return flush();
}

answer<void> engine_writer::flush() {
    if (rows_ == 0) return {};
    auto sent = engine_.exec(rows_ == rows_max_ ? full_sql_ : insert_sql(t_, to_, rows_), params_);
    if (!sent) return tl::unexpected(sent.error());
    ++statements_;
    params_.clear();
    rows_ = 0;
    bytes_sent_ += bytes_;
    bytes_ = 0;
    return {};
}

tl::expected<engine_condition, std::string> engine_where(const table& t,
                                                         const std::vector<key_values>& keys,
                                                         std::size_t first,
                                                         std::size_t last) {
    engine_condition out;
    std::string scratch;
    for (std::size_t k = first; k < last; ++k)
        for (std::size_t i = 0; i < t.key.size(); ++i) {
            const column* c = t.find(t.key[i]);
            if (!c || i >= keys[k].size())
                return tl::unexpected(fmt::format("a key of {} columns", keys[k].size()));
            auto read = read_value(c->type, keys[k][i], scratch);
            if (!read) return tl::unexpected(read.error());
            out.params.push_back(make_param(c->type, *read));
        }
    if (t.key.size() > 1) {
        out.sql = any_of_terms(t, 0, last - first);
        return out;
    }
    for (std::size_t k = first; k < last; ++k)
        out.sql += fmt::format("{}${}", k == first ? "" : ", ", k - first + 1);
    out.sql = fmt::format("{} IN ({})", ident(t.key[0]), out.sql);
    return out;
}

std::size_t engine_keys_max(const table& t, std::uint64_t row_bytes) {
    const auto most = t.key.size() > 1 ? composite_keys_max : keys_max;
    return std::clamp<std::size_t>(
        rows_bytes_max / std::max<std::uint64_t>(row_bytes, 1), keys_least, most);
}

std::string postgres_where(const table& t,
                           const std::vector<key_values>& keys,
                           std::size_t first,
                           std::size_t last) {
    std::string names, arrays;
    for (std::size_t i = 0; i < t.key.size(); ++i) {
        std::string list;
        for (std::size_t k = first; k < last; ++k)
            put_element(list, keys[k][i]);
        names += (names.empty() ? "" : ", ") + ident(t.key[i]);
        arrays += fmt::format("{}{}::{}",
                              arrays.empty() ? "" : ", ",
                              sql::quote_literal(list + "}"),
                              array_type(*t.find(t.key[i])));
    }
    return t.key.size() == 1
               ? fmt::format(" WHERE {} = ANY ({})", names, arrays)
               : fmt::format(" WHERE ({}) IN (SELECT * FROM unnest({}))", names, arrays);
}

}  // namespace hotlane::move
