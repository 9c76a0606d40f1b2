// Preflight of the way back: may this tool's tables live on the engine?
#include <fmt/format.h>

#include "router/move/ahead_back.hpp"
#include "router/move/copy.hpp"
#include "router/move/engine_home.hpp"
#include "router/move/names.hpp"
#include "router/move/postgres_home.hpp"
#include "router/move/preflight.hpp"
#include "router/move/read_postgres.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;
using std::chrono::milliseconds;

bool check_place(preflight& f) {
    auto mark = read_marker(*f.found.postgres, f.with.tool.name, false);
    if (!mark) {
        f.found.refusals.push_back(
            home_failed(home_kind::postgres, "reading the marker", mark.error()));
        return false;
    }
    f.found.at_start = *mark;
    if (!*mark || (*mark)->state == marker_state::away || (*mark)->state == marker_state::staging)
        f.refuse("already_there", "the tool lives on the engine", "");
    else if ((*mark)->state == marker_state::fenced)
        f.refuse("another_move",
                 fmt::format("the marker says fenced (move {})", (*mark)->move),
                 "see `hotlane moves`; `hotlane run` tidies it at start");
    if (!f.good()) return false;
    f.found.made.epoch = (*mark)->epoch;
    return true;
}

bool read_tables(preflight& f) {
    auto view = read_postgres_schema(
        *f.found.postgres, f.home.schema, f.home.role, f.with.tool.settings.types);
    if (!view) {
        f.found.refusals.push_back(
            home_failed(home_kind::postgres, "reading the catalog", view.error()));
        return false;
    }
    adopt_ddl(*view, known_ddl(f));
    auto shape = postgres_shape(*f.found.postgres, f.home.schema);
    if (!shape) {
        f.found.refusals.push_back(
            home_failed(home_kind::postgres, "reading the catalog", shape.error()));
        return false;
    }
    f.found.shape = *shape;
    for (auto& r : view->refusals)
        f.found.refusals.push_back(std::move(r));
    plan& p = f.found.made;
    p.tables = std::move(view->tables);
    p.notes.insert(p.notes.end(), view->notes.begin(), view->notes.end());
    p.strays.assign(p.tables.size(), 0);
    return f.good();
}

void check_names_taken(preflight& f) {
    auto catalog = read_engine_catalog(*f.found.engine);
    if (!catalog) {
        f.found.refusals.push_back(
            home_failed(home_kind::engine, "reading the catalog", catalog.error()));
        return;
    }
    for (const auto& [name, columns] : *catalog)
        if (!is_own_name(name) && what_stands(*catalog, name) == stands::data)
            f.refuse("name_taken",
                     fmt::format("the engine has a table \"{}\" that no move of hotlane put there",
                                 name),
                     "look whose it is, and rename or drop it");
}

void scan_values(preflight& f) {
    const auto start = steady::now();
    f.found.postgres->set_deadline(f.with.limit.scan);
    for (auto& t : f.found.made.tables) {
        shown_pass shown(f.with.around.live, "looking at the values of " + t.name, 0);
        auto read = read_postgres_rows(
            *f.found.postgres,
            t,
            f.home.schema,
            [&](const std::vector<value>&) {
                shown.count();
                return true;
            },
            [&](refusal bad) { return note_bad_value(f, std::move(bad)); });
        if (!read) {
            f.found.refusals.push_back(
                home_failed(home_kind::postgres, "reading " + t.name, read.error()));
            return;
        }
        t.rows = *read;
        f.rows += *read;
        if (!f.found.postgres->alive()) return;
    }
    f.found.postgres->set_deadline(f.with.limit.statement);
    f.scanned = std::chrono::duration_cast<milliseconds>(steady::now() - start);
}

// What stands against a copy that runs ahead; nullopt: nothing.
std::optional<refusal> not_ahead(preflight& f) {
    const plan& p = f.found.made;
    if (!f.good()) return std::nullopt;  // it is refused anyway
    const auto unread = [](const link_error& e) {
        return home_failed(home_kind::postgres, "looking at logical decoding", e);
    };
    auto tables = read_followed_tables(*f.found.postgres, p, p.schema);
    if (!tables) return unread(tables.error());
    auto why = why_no_decoding(*f.found.postgres, p, *tables, f.with.limit.lock);
    if (!why) return unread(why.error());
    if (*why) return *why;
    std::uint64_t rows = 0;
    std::string names;
    for (std::size_t i = 0; i < p.tables.size(); ++i) {
        if ((*tables)[i].why_not.empty()) continue;
        rows += p.tables[i].rows;
        names += fmt::format(
            "{}\"{}\" {}", names.empty() ? "" : ", ", p.tables[i].name, (*tables)[i].why_not);
    }
    if (names.empty()) return std::nullopt;
    const auto pause = held_copy_time(rows) + held_move_time(p.tables.size());
    if (pause <= f.budget) {
        f.found.made.notes.push_back(
            "changes cannot be followed in all tables, which are copied under the hold if the rest "
            "is not: " +
            names);
        return std::nullopt;
    }
    return refusal{"cannot_decode",
                   fmt::format("the changes of tables with {} rows cannot be followed ({}): they "
                               "would hold the clients for about {} ms; the budget is {} ms",
                               rows,
                               names,
                               pause.count(),
                               f.budget.count()),
                   "give these tables a primary key, or raise hold_max of the tool"};
}

}  // namespace

findings look_back(context& with, const request& what, const std::string& id) {
    preflight f{with, what, {}, {}, {}, {}, 0, 0, {}};
    if (!prepare(f, id)) return std::move(f.found);
    if (!check_place(f)) return std::move(f.found);
    check_postgres(f);
    check_names_taken(f);
    if (!read_tables(f)) return std::move(f.found);
    scan_values(f);
    choose_copy(f,
                held_copy_time(f.rows) + f.scanned * 2 + held_move_time(f.found.made.tables.size()),
                not_ahead(f));
    return std::move(f.found);
}

}  // namespace hotlane::move
