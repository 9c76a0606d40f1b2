#include <algorithm>

#include <fmt/format.h>

#include "router/levers/recipes.hpp"
#include "router/sql/write_shape.hpp"

namespace hotlane::levers {
namespace {

using form = sql::assignment::form;

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// The first changed column that the list has, or "".
std::string changed_in(const sql::write_shape& shape, const std::vector<std::string>& columns) {
    for (const sql::assignment& a : shape.assignments)
        if (contains(columns, a.column)) return a.column;
    return contains(columns, "*") ? shape.assignments.front().column : "";
}

hot_write as(hot_write out, write_class what, std::string reason) {
    out.what = what;
    out.reason = std::move(reason);
    return out;
}

}  // namespace

std::string_view text_of(write_class what) {
    switch (what) {
        case write_class::commuting_counter:
            return "commuting_counter";
        case write_class::guarded:
            return "guarded";
        case write_class::overwrites:
            return "overwrites";
        case write_class::unknown:
            return "unknown";
    }
    return "unknown";
}

hot_write classify(std::string_view statement) {
    const auto shape = sql::read_write_shape(statement);
    hot_write out;
    if (!shape)
        return as(out,
                  write_class::unknown,
                  "the statement is not one write that reads no row but its own");
    out.table = shape->table;
    out.keys = shape->keys;
    out.upsert = shape->upsert;

    std::string column = changed_in(*shape, shape->condition);
    if (column.empty() && !shape->upsert) column = changed_in(*shape, shape->keys);
    if (!column.empty())
        return as(
            out,
            write_class::guarded,
            fmt::format("its WHERE reads {}, which it changes: a check needs one row", column));
    column = changed_in(*shape, shape->returning);
    if (!column.empty())
        return as(out,
                  write_class::guarded,
                  fmt::format("it returns {}, which it changes: only one row knows the new value",
                              column));
    for (const sql::assignment& a : shape->assignments)
        if (a.what == form::computed)
            return as(out,
                      write_class::unknown,
                      fmt::format("the new {} is computed in a way that is not known to commute",
                                  a.column));
    for (const sql::assignment& a : shape->assignments)
        if (a.what == form::constant)
            return as(
                out,
                write_class::overwrites,
                fmt::format("it sets {} to a value of its own: the last writer wins", a.column));
    if (shape->other_condition)
        return as(out,
                  write_class::unknown,
                  "its WHERE has a condition beside the key, which the split row could not check");
    if (shape->keys.empty())
        return as(out, write_class::unknown, "its WHERE does not name one row by its key");
    if (shape->assignments.size() > 1)
        return as(out, write_class::unknown, "it changes several counters: split them one by one");
    out.counter = shape->assignments.front().column;
    out.amount = shape->assignments.front().amount;
    return as(out,
              write_class::commuting_counter,
              fmt::format("it adds {} to {}: additions may happen in any order, on any row",
                          out.amount,
                          out.counter));
}

}  // namespace hotlane::levers
