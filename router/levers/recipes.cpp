#include "router/levers/recipes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "router/sql/facts.hpp"

namespace hotlane::levers {
namespace {

using sql::quote_identifier;

// What every statement of a recipe is made of, quoted.
struct parts {
    std::string table;
    std::string counter;
    std::vector<std::string> keys;
    std::vector<std::string> types;
    std::string side;  // the table that takes the writes
    std::string slot;  // its columns
    std::string delta;
    std::string next_parameter;  // behind the keys'
    std::string after_next;
    unsigned slots{};
};

// A name that no key column has.
std::string free_name(const hot_spot& spot, std::string name) {
    while (std::find(spot.keys.begin(), spot.keys.end(), name) != spot.keys.end())
        name += "_";
    return quote_identifier(name);
}

parts parts_of(const hot_spot& spot, std::string_view suffix) {
    parts p;
    p.table = quote_identifier(spot.table);
    p.counter = quote_identifier(spot.counter);
    for (const std::string& key : spot.keys)
        p.keys.push_back(quote_identifier(key));
    p.types = spot.key_types;
    p.types.resize(p.keys.size(), "BIGINT");
    p.side = quote_identifier(spot.table + std::string(suffix));
    p.slot = free_name(spot, "slot");
    p.delta = free_name(spot, "delta");
    p.next_parameter = fmt::format("${}", p.keys.size() + 1);
    p.after_next = fmt::format("${}", p.keys.size() + 2);
    p.slots = std::max(spot.slots, 2U);
    return p;
}

std::string joined(const std::vector<std::string>& items, std::string_view with) {
    return fmt::format("{}", fmt::join(items, with));
}
std::string key_columns(const parts& p) {
    std::string out;
    for (std::size_t i = 0; i < p.keys.size(); ++i)
        out += fmt::format("{} {} NOT NULL, ", p.keys[i], p.types[i]);
    return out;
}
std::string key_is_parameter(const parts& p) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < p.keys.size(); ++i)
        all.push_back(fmt::format("{} = ${}", p.keys[i], i + 1));
    return joined(all, " AND ");
}
std::string keys_equal(const parts& p, std::string_view left, std::string_view right) {
    std::vector<std::string> all;
    for (const std::string& key : p.keys)
        all.push_back(fmt::format("{}.{} = {}.{}", left, key, right, key));
    return joined(all, " AND ");
}

step read_step(const parts& p) {
    return {
        "Read the counter as base plus what has been added since.",
        fmt::format("SELECT {0}.{1} + COALESCE((SELECT CAST(sum(d.{2}) AS BIGINT) FROM {3} AS d "
                    "WHERE {4}), 0) AS {1} FROM {0} WHERE {5}",
                    p.table,
                    p.counter,
                    p.delta,
                    p.side,
                    keys_equal(p, "d", p.table),
                    key_is_parameter(p)),
        ""};
}

step check_step(const parts& p) {
    return {"Additions whose row is gone; there must be none.",
            fmt::format("SELECT d.{0} FROM {1} AS d LEFT JOIN {2} ON {3} WHERE {2}.{0} IS NULL",
                        p.keys.front(),
                        p.side,
                        p.table,
                        keys_equal(p, "d", p.table)),
            ""};
}

// Brings what was added into the base row. The DELETE names a column on purpose: where the table
// has moved away, a fence can refuse such a statement and not a bare DELETE.
step fold_step(const parts& p) {
    const std::string body = fmt::format(
        "UPDATE {0} SET {1} = {0}.{1} + f.total FROM (SELECT {2}, CAST(sum({3}) AS "
        "BIGINT) AS total FROM {4} GROUP BY {2}) AS f WHERE {5}; "
        "DELETE FROM {4} WHERE {3} IS NOT NULL; COMMIT",
        p.table,
        p.counter,
        joined(p.keys, ", "),
        p.delta,
        p.side,
        keys_equal(p, "f", p.table));
    return {
        "Fold, one process at a time, statement by statement: look at every reply and send "
        "ROLLBACK at the first error (the engine goes on after an error, and its COMMIT would "
        "keep half of it); begin again after a write conflict.",
        "BEGIN; " + body,
        "BEGIN ISOLATION LEVEL REPEATABLE READ; " + body};
}

std::vector<step> undo_steps(const parts& p) {
    return {{"Let the application use the old statements again, and wait until no process writes "
             "to the new table.",
             "",
             ""},
            fold_step(p),
            {"Remove the table, once it is empty.", fmt::format("DROP TABLE {}", p.side), ""}};
}

std::vector<std::string> shared_notes(const parts& p, const hot_write& write) {
    std::vector<std::string> notes{
        "A reply of INSERT 0 0 means that the row does not exist: treat it as the application "
        "treated UPDATE 0.",
        fmt::format("Whoever deletes a row of {} deletes its rows of {} in the same transaction.",
                    p.table,
                    p.side),
        "The engine does not report an overflow past 64 bits: keep totals below 9e18."};
    if (write.upsert)
        notes.emplace_back(
            "The old statement created missing rows: create the row first (INSERT "
            ".. ON CONFLICT DO NOTHING with 0) where it may be missing.");
    notes.emplace_back(
        "Any statement elsewhere that checks the counter (WHERE .. >= ..) would see "
        "the base only: if there is one, do not split, route the tool instead.");
    return notes;
}

std::string amount_hint(const hot_write& write) {
    return write.amount.empty() ? "what is added" : fmt::format("what is added ({})", write.amount);
}

recipe sharded_counter(const hot_spot& spot, const hot_write& write) {
    const parts p = parts_of(spot, "_slots");
    const std::string upsert = fmt::format(
        "INSERT INTO {0} ({1}, {2}, {3}) SELECT {1}, CAST({4} AS BIGINT), CAST({5} AS BIGINT) FROM "
        "{6} WHERE {7} ON CONFLICT ({1}, {2}) DO UPDATE SET {3} = ",
        p.side,
        joined(p.keys, ", "),
        p.slot,
        p.delta,
        p.next_parameter,
        p.after_next,
        p.table,
        key_is_parameter(p));
    recipe out;
    out.name = "sharded_counter";
    out.title = fmt::format("Split {} of {} over {} rows", p.counter, p.table, p.slots);
    out.why = fmt::format(
        "Writers of one row conflict; writers of {} rows meet each other {} times "
        "less often. Best where the counter is read often.",
        p.slots,
        p.slots);
    out.set_up = {{"Create the table of slots.",
                   fmt::format("CREATE TABLE IF NOT EXISTS {} ({}{} BIGINT NOT NULL, {} BIGINT NOT "
                               "NULL, PRIMARY KEY ({}, {}))",
                               p.side,
                               key_columns(p),
                               p.slot,
                               p.delta,
                               joined(p.keys, ", "),
                               p.slot),
                   ""}};
    out.application = {
        {fmt::format(
             "Instead of the UPDATE. {} is a slot from 0 to {}: a fixed one for each worker, "
             "or a random one; {} is {}.",
             p.next_parameter,
             p.slots - 1,
             p.after_next,
             amount_hint(write)),
         upsert + fmt::format("{0} + excluded.{0}", p.delta),
         upsert + fmt::format("{0}.{1} + excluded.{1}", p.side, p.delta)},
        read_step(p)};
    out.check = check_step(p);
    out.undo = undo_steps(p);
    out.notes = shared_notes(p, write);
    return out;
}

recipe event_log(const hot_spot& spot, const hot_write& write) {
    const parts p = parts_of(spot, "_events");
    recipe out;
    out.name = "event_log";
    out.title =
        fmt::format("Append to a log, fold it into {} of {} now and then", p.counter, p.table);
    out.why =
        "Rows that are only added never conflict. Best where writes are many and reads are "
        "few, since a read sums what has not been folded.";
    out.set_up = {
        {"Create the log. It has no key on purpose: the engine would scan for it at "
         "every insert.",
         fmt::format("CREATE TABLE IF NOT EXISTS {} ({}{} BIGINT NOT NULL)",
                     p.side,
                     key_columns(p),
                     p.delta),
         ""}};
    out.application = {
        {fmt::format("Instead of the UPDATE. {} is {}.", p.next_parameter, amount_hint(write)),
         fmt::format(
             "INSERT INTO {0} ({1}, {2}) SELECT {1}, CAST({3} AS BIGINT) FROM {4} WHERE {5}",
             p.side,
             joined(p.keys, ", "),
             p.delta,
             p.next_parameter,
             p.table,
             key_is_parameter(p)),
         ""},
        read_step(p)};
    out.regularly = {fold_step(p)};
    out.check = check_step(p);
    out.undo = undo_steps(p);
    out.notes = shared_notes(p, write);
    return out;
}

std::string next_of(write_class what) {
    switch (what) {
        case write_class::commuting_counter:
            return "split the counter with one of the recipes, then watch whether it is calm";
        case write_class::guarded:
            return "do not split it: route the tool to PostgreSQL (lever 3), which queues writers "
                   "of "
                   "one row without conflicts";
        case write_class::overwrites:
            return "splitting cannot help: retry conflicts (lever 1), write less often, or route "
                   "the "
                   "tool to PostgreSQL (lever 3)";
        case write_class::unknown:
            return "look at the statement: split it only if its writes may happen in any order, "
                   "else route the tool to PostgreSQL (lever 3)";
    }
    return {};
}

void add_steps(std::string& out, std::string_view head, const std::vector<step>& steps) {
    if (steps.empty()) return;
    out += fmt::format("-- {}\n", head);
    for (const step& s : steps) {
        out += fmt::format("-- * {}\n", s.what);
        if (!s.sql.empty()) out += s.sql + ";\n";
        if (!s.on_postgres.empty()) out += fmt::format("-- on PostgreSQL:\n{};\n", s.on_postgres);
    }
}

}  // namespace

advice advise(const hot_spot& given) {
    advice out;
    out.write = classify(given.statement);
    hot_spot spot = given;
    if (spot.table.empty()) spot.table = out.write.table;
    if (spot.keys.empty()) spot.keys = out.write.keys;
    if (spot.counter.empty()) spot.counter = out.write.counter;
    out.next = next_of(out.write.what);
    // The engine knows no schema-qualified names, so there is no recipe for a table that needs one.
    const bool same_table = spot.table == out.write.table && spot.counter == out.write.counter;
    out.can_be_sharded = out.write.what == write_class::commuting_counter && same_table &&
                         spot.table.find('.') == std::string::npos;
    if (out.can_be_sharded)
        out.recipes = {sharded_counter(spot, out.write), event_log(spot, out.write)};
    return out;
}

std::string text_of(const recipe& recipe) {
    std::string out = fmt::format("-- {}\n-- {}\n", recipe.title, recipe.why);
    add_steps(out, "Once:", recipe.set_up);
    add_steps(out, "In the application:", recipe.application);
    add_steps(out, "Regularly:", recipe.regularly);
    add_steps(out, "Check:", {recipe.check});
    add_steps(out, "To undo it:", recipe.undo);
    for (const std::string& note : recipe.notes)
        out += fmt::format("-- Note: {}\n", note);
    return out;
}

}  // namespace hotlane::levers
