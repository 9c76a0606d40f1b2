#include "router/move/copy.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <deque>

#include "router/move/engine_home.hpp"
#include "router/move/engine_rows.hpp"
#include "router/move/postgres_home.hpp"
#include "router/move/verify.hpp"
#include "router/sql/facts.hpp"

namespace hotlane::move {
namespace {

constexpr std::size_t chunk_bytes = 64 * 1024;                     // of COPY
constexpr std::int64_t exact_integer_max = std::int64_t{1} << 53;  // every one is a double
constexpr std::size_t shown_bytes_max = 40;                        // of a key in a message

// What identifies a row in a message: its key as the wire has it, else its number.
std::string describe_row(const table& t,
                         const std::vector<std::optional<std::string_view>>& wire,
                         std::uint64_t number) {
    std::string out;
    for (std::size_t i = 0; i < t.columns.size(); ++i) {
        if (std::find(t.key.begin(), t.key.end(), t.columns[i].name) == t.key.end()) continue;
        std::string shown = wire[i] ? std::string(wire[i]->substr(0, shown_bytes_max)) : "NULL";
        if (!is_valid_utf8(shown)) shown = "(bytes)";
        out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", t.columns[i].name, shown);
    }
    return out.empty() ? fmt::format("row {} of the scan", number) : out;
}

refusal bad_value(const table& t,
                  const column& c,
                  const std::string& row,
                  const std::string& what) {
    return {"bad_value",
            fmt::format("table \"{}\", column \"{}\" holds {} where {}", t.name, c.name, what, row),
            "mend or delete the row, or keep this tool where it is"};
}

// One reader for both homes: `stride` 2 has typeof(c) after each column.
struct row_reader {
    const table& t;
    std::size_t stride;
    const on_values& on_row;
    const on_bad_value& on_bad;
    std::uint64_t number{0};
    std::vector<value> values;
    std::vector<std::string> scratch;
    std::vector<std::optional<std::string_view>> wire;

    // Empty: the value is good.
    std::string take(std::size_t i, const row_view& view) {
        const column& c = t.columns[i];
        if (stride == 2) {
            const auto storage = view[i * 2 + 1].value_or("null");
            if (!storage_class_fits(c.type, storage))
                return fmt::format(
                    "a value of type {} (the column is {})", storage, to_string(c.type));
            if (c.type == value_type::real && storage == "integer" && wire[i]) {
                std::int64_t n = 0;
                std::from_chars(wire[i]->data(), wire[i]->data() + wire[i]->size(), n);
                if (n > exact_integer_max || n < -exact_integer_max)
                    return "an integer that no real number equals";
            }
        }
        auto read = read_value(c.type, wire[i], scratch[i]);
        if (!read) return read.error();
        values[i] = *read;
        if (c.as != held_as::plain)
            if (auto wrong = why_not(c.as, *read); !wrong.empty()) return wrong;
        const bool in_key = std::find(t.key.begin(), t.key.end(), c.name) != t.key.end();
        if (values[i].is_null && (in_key || c.not_null))
            return in_key ? "NULL in a key" : "NULL in a NOT NULL column";
        return {};
    }

    bool operator()(const row_view& view) {
        ++number;
        if (view.size() != t.columns.size() * stride)
            return on_bad(
                       {"source_changed",
                        fmt::format("table \"{}\" answers other columns than its catalog", t.name),
                        "try again when nobody changes the table"}),
                   false;
        for (std::size_t i = 0; i < t.columns.size(); ++i)
            wire[i] = view[i * stride];
        for (std::size_t i = 0; i < t.columns.size(); ++i) {
            const auto wrong = take(i, view);
            if (!wrong.empty() &&
                !on_bad(bad_value(t, t.columns[i], describe_row(t, wire, number), wrong)))
                return false;
        }
        return on_row(values);
    }
};

row_reader make_reader(const table& t,
                       std::size_t stride,
                       const on_values& on_row,
                       const on_bad_value& on_bad) {
    const std::size_t n = t.columns.size();
    return {t,
            stride,
            on_row,
            on_bad,
            0,
            std::vector<value>(n),
            std::vector<std::string>(n),
            std::vector<std::optional<std::string_view>>(n)};
}

}  // namespace

answer<std::uint64_t> read_engine_rows(home_link& engine,
                                       const table& t,
                                       const std::string& name,
                                       const on_values& on_row,
                                       const on_bad_value& on_bad) {
    return engine.read(engine_select(t, name), make_reader(t, 2, on_row, on_bad));
}

answer<std::uint64_t> read_postgres_rows(home_link& postgres,
                                         const table& t,
                                         const std::string& schema,
                                         const on_values& on_row,
                                         const on_bad_value& on_bad,
                                         const std::string& where) {
    return postgres.read(postgres_select(t, schema) + where, make_reader(t, 1, on_row, on_bad));
}

void take_engine_rows(const table& t,
                      const rows& from,
                      const on_values& on_row,
                      const on_bad_value& on_bad) {
    auto take = make_reader(t, 2, on_row, on_bad);
    row_view view;
    for (const auto& r : from.data) {
        view.assign(r.begin(), r.end());
        if (!take(view)) return;
    }
}

outcome copy_table_out(active_move& m,
                       table& t,
                       const std::string& from,
                       const std::string& schema) {
    const auto types = t.types();
    table_digest sum(m.made().seed);
    shown_pass shown(m.with.around.live, "copying " + t.name, t.rows);
    std::optional<refusal> failed;
    std::string chunk;
    const auto target_failed = [&](const link_error& error) {
        failed = home_failed(policy::home_kind::postgres, "COPY into " + t.name, error);
        return false;
    };
    if (auto begun = m.postgres().copy_begin(postgres_copy(t, schema)); !begun)
        return tl::unexpected(
            home_failed(policy::home_kind::postgres, "COPY into " + t.name, begun.error()));
    const auto on_row = [&](const std::vector<value>& values) {
        shown.count();
        sum.add(types, values);
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (i > 0) chunk += '\t';
            put_copy_value(chunk, types[i], t.columns[i].as, values[i]);
        }
        chunk += '\n';
        if (chunk.size() < chunk_bytes) return true;
        if (auto late = may_go_on(m); !late) {
            failed = late.error();
            return false;
        }
        if (auto put = m.postgres().copy_put(chunk); !put) return target_failed(put.error());
        chunk.clear();
        return true;
    };
    auto read = read_engine_rows(m.engine(), t, from, on_row, [&](refusal bad) {
        failed = std::move(bad);
        return false;
    });
    if (failed) return tl::unexpected(*failed);
    if (!read)
        return tl::unexpected(
            home_failed(policy::home_kind::engine, "reading " + t.name, read.error()));
    if (!chunk.empty())
        if (auto put = m.postgres().copy_put(chunk); !put) target_failed(put.error());
    if (failed) return tl::unexpected(*failed);
    if (auto ended = m.postgres().copy_end(); !ended) target_failed(ended.error());
    if (failed) return tl::unexpected(*failed);
    t.rows = sum.rows();
    t.sum = sum.sum();
    return {};
}

outcome copy_table_back(active_move& m,
                        table& t,
                        const std::string& schema,
                        const std::string& to) {
    copied_figures figures;
    return copy_rows_back(m, t, {m.postgres(), schema, [&m] { return may_go_on(m); }}, to, figures);
}

outcome copy_rows_back(
    active_move& m, table& t, const rows_from& from, const std::string& to, copied_figures& out) {
    const auto types = t.types();
    table_digest sum(m.made().seed);
    engine_writer writer(m.engine(), t, to);
    shown_pass shown(m.with.around.live, "copying " + t.name, t.rows);
    std::optional<refusal> failed;
    const auto target_failed = [&](const link_error& error) {
        failed = home_failed(policy::home_kind::engine, "INSERT into " + t.name, error);
        return false;
    };
    const auto on_row = [&](const std::vector<value>& values) {
        if (auto late = from.go_on(); !late) {
            failed = late.error();
            return false;
        }
        shown.count();
        sum.add(types, values);
        if (auto put = writer.add(values); !put) return target_failed(put.error());
        return true;
    };
    auto read = read_postgres_rows(from.link, t, from.schema, on_row, [&](refusal bad) {
        failed = std::move(bad);
        return false;
    });
    if (failed) return tl::unexpected(*failed);
    if (!read)
        return tl::unexpected(
            home_failed(policy::home_kind::postgres, "reading " + t.name, read.error()));
    if (auto put = writer.flush(); !put) target_failed(put.error());
    if (failed) return tl::unexpected(*failed);
    out.statements += writer.statements();
    out.bytes += writer.bytes();
    t.rows = sum.rows();
    t.sum = sum.sum();
    return {};
}

outcome verify_table(active_move& m,
                     const table& t,
                     policy::home_kind at,
                     const std::string& where) {
    const auto types = t.types();
    table_digest sum(m.made().seed);
    shown_pass shown(m.with.around.live, "verifying " + t.name, t.rows);
    std::optional<refusal> failed;
    const auto on_row = [&](const std::vector<value>& values) {
        shown.count();
        sum.add(types, values);
        return true;
    };
    const auto on_bad = [&](refusal bad) {
        failed = std::move(bad);
        return false;
    };
    auto read = at == policy::home_kind::engine
                    ? read_engine_rows(m.engine(), t, where, on_row, on_bad)
                    : read_postgres_rows(m.postgres(), t, where, on_row, on_bad);
    if (failed) return tl::unexpected(*failed);
    if (!read) return tl::unexpected(home_failed(at, "reading back " + t.name, read.error()));
    if (sum.rows() == t.rows && sum.sum() == t.sum) return {};
    const auto which = name_differences(m, t);
    return tl::unexpected(
        refusal{"verify_failed",
                fmt::format("table \"{}\": {} rows ({}) were read, the copy has {} rows ({}){}",
                            t.name,
                            t.rows,
                            t.sum.hex(),
                            sum.rows(),
                            sum.sum().hex(),
                            which.empty() ? "" : ": " + which),
                "the tool stays where it was; report the table's types and values"});
}

}  // namespace hotlane::move
