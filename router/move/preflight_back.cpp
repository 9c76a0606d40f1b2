// Preflight of the way back: may this tool's tables live on the engine?
#include <fmt/format.h>

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

// The engine takes about 25,000 rows/s in INSERTs of 1,000 (engine-facts); half of it is assumed.
constexpr std::uint64_t insert_rows_per_second = 12'000;
constexpr milliseconds hold_per_table{60}, hold_at_least{60};

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
    p.notes = std::move(view->notes);
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

std::optional<refusal> not_ahead() {
    return refusal{"not_ahead",
                   "this direction is copied under the hold",
                   "leave `copy` of the tool at auto or held"};
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
                milliseconds(f.rows * 1'000 / insert_rows_per_second) + f.scanned * 2 +
                    hold_at_least + hold_per_table * static_cast<int>(f.found.made.tables.size()),
                not_ahead());
    return std::move(f.found);
}

}  // namespace hotlane::move
