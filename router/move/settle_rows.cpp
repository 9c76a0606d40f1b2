#include "router/move/settle_rows.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "router/move/engine_home.hpp"
#include "router/move/engine_rows.hpp"
#include "router/sql/facts.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;

constexpr std::size_t postgres_keys_max = 5'000;  // of one SELECT

auto key_failed(const table& t, const std::string& what) {
    return tl::unexpected(refusal{"decoding_failed",
                                  fmt::format("a key of table \"{}\" is sent as {}", t.name, what),
                                  "copy under the hold (`copy: held`)"});
}

// Hands the keys on in parts of `most`.
template <typename Part>
outcome in_parts(std::size_t keys, std::size_t most, Part part) {
    for (std::size_t first = 0; first < keys; first += most)
        if (auto went = part(first, std::min(first + most, keys)); !went) return went;
    return {};
}

// Rows that a statement of the engine gave, summed.
outcome sum_up(const table& t, const rows& reply, table_digest& sum) {
    const auto types = t.types();
    std::optional<refusal> bad;
    take_engine_rows(
        t,
        reply,
        [&](const std::vector<value>& values) {
            sum.add(types, values);
            return true;
        },
        [&](refusal wrong) {
            bad = std::move(wrong);
            return false;
        });
    if (bad) return tl::unexpected(*bad);
    return {};
}

outcome take_out(active_move& m,
                 const table& t,
                 const rows_from& from,
                 const std::string& staged,
                 const std::vector<key_values>& keys,
                 std::uint64_t row_bytes,
                 settled_rows& out) {
    table_digest sum(m.made().seed);
    auto went =
        in_parts(keys.size(), engine_keys_max(t, row_bytes), [&](auto first, auto last) -> outcome {
            const auto where = engine_where(t, keys, first, last);
            if (!where) return key_failed(t, where.error());
            auto reply = m.engine().exec(fmt::format("DELETE FROM {} WHERE {} RETURNING {}",
                                                     sql::quote_identifier(staged),
                                                     where->sql,
                                                     engine_columns(t)),
                                         where->params);
            if (!reply)
                return tl::unexpected(
                    home_failed(home_kind::engine, "DELETE from " + t.name, reply.error()));
            if (!reply->data.empty()) ++out.commits;
            if (auto summed = sum_up(t, *reply, sum); !summed) return summed;
            return from.go_on();
        });
    out.went = sum.rows();
    out.gone = sum.sum();
    return went;
}

outcome put_in(active_move& m,
               const table& t,
               const rows_from& from,
               const std::string& staged,
               const std::vector<key_values>& keys,
               settled_rows& out) {
    const auto types = t.types();
    table_digest sum(m.made().seed);
    engine_writer writer(m.engine(), t, staged);
    std::optional<refusal> failed;
    const auto target_failed = [&](const link_error& error) {
        failed = home_failed(home_kind::engine, "INSERT into " + t.name, error);
        return false;
    };
    const auto on_row = [&](const std::vector<value>& values) {
        if (auto late = from.go_on(); !late) {
            failed = late.error();
            return false;
        }
        sum.add(types, values);
        auto put = writer.add(values);
        return put ? true : target_failed(put.error());
    };
    const auto on_bad = [&](refusal bad) {
        failed = std::move(bad);
        return false;
    };
    auto went = in_parts(keys.size(), postgres_keys_max, [&](auto first, auto last) -> outcome {
        auto read = read_postgres_rows(
            from.link, t, from.schema, on_row, on_bad, postgres_where(t, keys, first, last));
        if (failed) return tl::unexpected(*failed);
        if (!read)
            return tl::unexpected(
                home_failed(home_kind::postgres, "reading " + t.name, read.error()));
        return {};
    });
    if (!went) return went;
    if (auto put = writer.flush(); !put) target_failed(put.error());
    if (failed) return tl::unexpected(*failed);
    out.commits += writer.statements();
    out.came = sum.rows();
    out.put = sum.sum();
    return {};
}

}  // namespace

outcome settle_rows(active_move& m,
                    const table& t,
                    const rows_from& from,
                    const std::string& staged,
                    const std::vector<key_values>& keys,
                    std::uint64_t row_bytes,
                    settled_rows& out) {
    out = {};
    const shown_wait shown(m.with.around.live,
                           fmt::format("{} changed rows of {}", keys.size(), t.name));
    if (auto went = take_out(m, t, from, staged, keys, row_bytes, out); !went) return went;
    return put_in(m, t, from, staged, keys, out);
}

outcome check_rows(active_move& m,
                   const table& t,
                   const std::string& staged,
                   const std::vector<key_values>& keys,
                   std::uint64_t row_bytes,
                   const settled_rows& expected) {
    table_digest sum(m.made().seed);
    auto went =
        in_parts(keys.size(), engine_keys_max(t, row_bytes), [&](auto first, auto last) -> outcome {
            const auto where = engine_where(t, keys, first, last);
            if (!where) return key_failed(t, where.error());
            auto reply =
                m.engine().exec(engine_select(t, staged) + " WHERE " + where->sql, where->params);
            if (!reply)
                return tl::unexpected(
                    home_failed(home_kind::engine, "reading back " + t.name, reply.error()));
            return sum_up(t, *reply, sum);
        });
    if (!went) return went;
    if (sum.rows() == expected.came && sum.sum() == expected.put) return {};
    return tl::unexpected(
        refusal{"verify_failed",
                fmt::format("table \"{}\": {} changed rows ({}) were read, the copy has {} ({})",
                            t.name,
                            expected.came,
                            expected.put.hex(),
                            sum.rows(),
                            sum.sum().hex()),
                "the tool stays where it was; report the table's types and values"});
}

}  // namespace hotlane::move
