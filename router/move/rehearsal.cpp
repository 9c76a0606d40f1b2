#include "router/move/rehearsal.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>

#include "router/sql/facts.hpp"
#include "router/sql/rehearse.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;

constexpr std::size_t listed_max = 50;  // of each kind

treated treatment(sql::kind what) noexcept {
    using sql::kind;
    switch (what) {
        case kind::select:
        case kind::insert:
        case kind::update:
        case kind::remove:
        case kind::merge:
        case kind::copy_in:
        case kind::copy_out:
        case kind::declare_cursor:
        case kind::declare_cursor_hold:
        case kind::lock:
        case kind::call:
        case kind::other:
            return treated::rehearsed;
        case kind::ddl:
            return treated::definition;
        case kind::empty:
        case kind::explain:
        case kind::begin:
        case kind::commit:
        case kind::rollback:
        case kind::savepoint:
        case kind::release:
        case kind::rollback_to:
        case kind::prepare_transaction:
        case kind::set:
        case kind::set_local:
        case kind::reset:
        case kind::show:
        case kind::prepare:
        case kind::execute:
        case kind::deallocate:
        case kind::deallocate_all:
        case kind::discard_all:
        case kind::listen:
        case kind::unlisten:
        case kind::notify:
        case kind::fetch:
        case kind::close_cursor:
        case kind::set_role:
        case kind::set_transaction:
        case kind::set_session_characteristics:
            return treated::control;
    }
    return treated::rehearsed;
}

struct type_word {
    std::uint32_t type;
    std::string_view word;
};
constexpr std::array<type_word, 20> type_words{{
    {16, "boolean"},    {17, "bytea"},     {20, "bigint"},      {21, "smallint"},
    {23, "integer"},    {25, "text"},      {114, "json"},       {700, "real"},
    {701, "float8"},    {705, "unknown"},  {1042, "character"}, {1043, "varchar"},
    {1082, "date"},     {1083, "time"},    {1114, "timestamp"}, {1184, "timestamptz"},
    {1186, "interval"}, {1700, "numeric"}, {2950, "uuid"},      {3802, "jsonb"},
}};

struct mend_row {
    std::string_view sqlstate;
    std::string_view mend;
};
// What to do about a statement that PostgreSQL refuses, by what it says.
constexpr std::array<mend_row, 9> mends{{
    {"42601", "write it in words that both homes understand"},
    {"42883", "cast its values, or make a function of this name for the tool's role"},
    {"42804", "cast the value to the column's type; a number is no condition: write n <> 0"},
    {"42P18", "cast the parameter to the type that is meant"},
    {"22P02", "write the value in the form of the column's type"},
    {"42703",
     "name a column that the table has (double quotes are for names, single for text; a name with "
     "capitals needs double quotes)"},
    {"42P01",
     "name a table that moves along, or make it at the new home (a name with capitals needs double "
     "quotes)"},
    {"42501", "GRANT the tool's role what it needs there"},
    {"42803", "name every selected column in GROUP BY, or aggregate it"},
}};

void list(rehearsal& r, std::vector<std::string>& into, const std::string& shown) {
    if (into.size() < listed_max)
        into.push_back(shown);
    else
        ++r.more;
}

}  // namespace

pieces take_apart(const std::vector<placement::seen_statement>& seen, const plan& p) {
    pieces out;
    const auto names = p.names();
    const auto moves = [&](const std::string& relation) {
        return std::find(names.begin(), names.end(), relation) != names.end() ||
               std::any_of(names.begin(), names.end(), [&](const std::string& name) {
                   return relation == p.schema + "." + name;
               });
    };
    for (const auto& one : seen) {
        const auto facts = sql::analyze(one.sql);
        for (const auto& statement : facts.statements) {
            const auto what = treatment(statement.what);
            if (what == treated::control) {
                ++out.control;
                continue;
            }
            const auto end = std::min<std::size_t>(statement.end, one.sql.size());
            const auto begin = std::min<std::size_t>(statement.begin, end);
            piece made{one.sql.substr(begin, end - begin), one.types, {}, true};
            made.shown = sql::shown(made.sql);
            if (what == treated::definition) {
                ++out.definitions;
                if (!facts.parsed && out.unreadable_definitions.size() < listed_max)
                    out.unreadable_definitions.push_back(made.shown);
                continue;
            }
            // What names no table of the tool (a ping, a question to the server) is a matter of
            // the home, not of the move: it is listed.
            if (const auto relations = sql::relations_of(made.sql))
                made.concerns = std::any_of(relations->begin(), relations->end(), moves);
            out.all.push_back(std::move(made));
        }
    }
    return out;
}

std::string type_name(std::uint32_t type) {
    for (const auto& known : type_words)
        if (known.type == type) return std::string(known.word);
    return fmt::format("type {}", type);
}

std::vector<type_difference> compare(const piece& one,
                                     const description& was,
                                     const description& will_be) {
    std::vector<type_difference> out;
    const auto parameters = std::min(was.parameters.size(), will_be.parameters.size());
    for (std::size_t i = 0; i < parameters; ++i)
        if (was.parameters[i] != will_be.parameters[i])
            out.push_back({one.shown,
                           fmt::format("parameter ${}", i + 1),
                           type_name(was.parameters[i]),
                           type_name(will_be.parameters[i])});
    if (was.columns.size() != will_be.columns.size()) {
        out.push_back({one.shown,
                       "columns",
                       std::to_string(was.columns.size()),
                       std::to_string(will_be.columns.size())});
        return out;
    }
    for (std::size_t i = 0; i < was.columns.size(); ++i)
        if (was.columns[i].type != will_be.columns[i].type)
            out.push_back({one.shown,
                           fmt::format("column {}", will_be.columns[i].name),
                           type_name(was.columns[i].type),
                           type_name(will_be.columns[i].type)});
    return out;
}

heard judge(const piece& one, bool old_takes, bool new_takes) noexcept {
    if (new_takes) return heard::taken;
    if (!old_takes) return heard::both;
    return one.concerns ? heard::refused : heard::elsewhere;
}

refusal refusal_of(const piece& one, home_kind at, const link_error& error) {
    const auto known = std::find_if(mends.begin(), mends.end(), [&](const mend_row& r) {
        return r.sqlstate == error.sqlstate;
    });
    std::string mend(known != mends.end() && at == home_kind::postgres
                         ? known->mend
                         : "change the statement so that both homes take it");
    return {"statement_refused",
            fmt::format("{} refuses a statement of the tool: {}: {} {}",
                        at == home_kind::postgres ? "PostgreSQL" : "the engine",
                        one.shown,
                        sql::without_values(error.message, one.sql),
                        error.sqlstate),
            mend + "; or set `rehearse: report` for the tool, if it may fail there"};
}

void note(rehearsal& r, const piece& one, heard what) {
    switch (what) {
        case heard::taken:
        case heard::refused:
            break;
        case heard::both:
            list(r, r.refused_by_both, one.shown);
            break;
        case heard::elsewhere:
            list(r, r.elsewhere, one.shown);
            break;
        case heard::unwritable:
            list(r, r.unwritable, one.shown);
            break;
    }
}

void note(rehearsal& r, std::vector<type_difference> found) {
    for (auto& one : found) {
        if (r.differences.size() < listed_max)
            r.differences.push_back(std::move(one));
        else
            ++r.more;
    }
}

nlohmann::json to_json(const rehearsal& r, const pieces& from) {
    auto differences = nlohmann::json::array();
    for (const auto& d : r.differences)
        differences.push_back(
            {{"statement", d.statement}, {"what", d.what}, {"was", d.was}, {"will_be", d.will_be}});
    auto refused = nlohmann::json::array();
    for (const auto& one : r.refusals)
        refused.push_back(one.message);
    nlohmann::json out{{"seen", r.seen},
                       {"rehearsed", r.rehearsed},
                       {"control", from.control},
                       {"definitions", from.definitions},
                       {"differences", std::move(differences)}};
    const auto add = [&](const char* key, const auto& value) {
        if (!value.empty()) out[key] = value;
    };
    add("refused", refused);
    add("refused_by_both", r.refused_by_both);
    add("elsewhere", r.elsewhere);
    add("not_rehearsed", r.unwritable);
    add("definitions_refused", from.unreadable_definitions);
    if (r.left > 0) out["left_for_time"] = r.left;
    if (r.more > 0) out["more"] = r.more;
    return out;
}

}  // namespace hotlane::move
