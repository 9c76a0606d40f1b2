// Preflight of the way out: may this tool's tables live on PostgreSQL?
#include <fmt/format.h>
#include <cmath>
#include <set>

#include "router/move/copy.hpp"
#include "router/move/engine_home.hpp"
#include "router/move/first_sight.hpp"
#include "router/move/names.hpp"
#include "router/move/postgres_home.hpp"
#include "router/move/preflight.hpp"
#include "router/move/trial.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;
using std::chrono::milliseconds;

// Forecast: a scan of the engine with its COPY, and reading the copy back, are at most three scans;
// each table costs two renames and a few statements.
constexpr int scans_under_hold = 3;
constexpr milliseconds hold_per_table{40}, hold_at_least{50};

bool check_place(preflight& f) {
    auto mark = read_marker(*f.found.postgres, f.with.tool.name, false);
    if (!mark) {
        f.found.refusals.push_back(
            home_failed(home_kind::postgres, "reading the marker", mark.error()));
        return false;
    }
    f.found.at_start = *mark;
    auto stored = f.with.around.store.placement(f.with.tool.name);
    f.found.made.epoch = stored && *stored ? (*stored)->epoch : 1;
    if (!*mark) return true;
    // A marker that lags would lead to an epoch that was used before.
    if (f.found.made.epoch > (*mark)->epoch) {
        f.refuse("restored",
                 fmt::format("the marker has epoch {} and the store {}: PostgreSQL was restored",
                             (*mark)->epoch,
                             f.found.made.epoch),
                 "`hotlane adopt` with `--home engine` gives it a new one");
        return false;
    }
    f.found.made.epoch = (*mark)->epoch;
    if ((*mark)->state == marker_state::serving)
        f.refuse("already_there", "the tool lives on PostgreSQL", "");
    else if ((*mark)->state != marker_state::away)
        f.refuse(
            "another_move",
            fmt::format("the marker says {} (move {})", to_string((*mark)->state), (*mark)->move),
            "see `hotlane moves`; `hotlane run` tidies it at start");
    return f.good();
}

bool read_tables(preflight& f) {
    const auto failed = [&](const link_error& e) {
        f.found.refusals.push_back(home_failed(home_kind::engine, "reading the catalog", e));
        return false;
    };
    auto catalog = read_engine_catalog(*f.found.engine);
    if (!catalog) return failed(catalog.error());
    auto relationships = read_relationships(*f.found.engine);
    if (!relationships) return failed(relationships.error());
    auto lsn = read_lsn(*f.found.engine);
    if (!lsn) return failed(lsn.error());
    if (lsn->empty())
        f.refuse("no_lsn",
                 "the engine does not tell twill_committed_lsn: writes after the fence "
                 "could not be detected",
                 "keep this tool on the engine");
    if (f.with.tool.keep_seen) f.with.tool.keep_seen();
    if (f.with.tool.seen.ddl_unkept() > 0 && !f.with.tool.settings.no_hidden_constraints)
        f.refuse("ddl_not_stored",
                 "DDL of the tool passed and is not in the state file: what the engine's catalog "
                 "hides is not known",
                 "mend the state file or its disk; if it stays, restart and give the DDL as "
                 "`schema:`");
    auto view = read_engine_schema(*catalog,
                                   *relationships,
                                   known_ddl(f),
                                   f.with.tool.settings.no_hidden_constraints,
                                   read_first_sight(f.with.around.store, f.with.tool.name));
    for (auto& r : view.refusals)
        f.found.refusals.push_back(std::move(r));
    plan& p = f.found.made;
    p.tables = std::move(view.tables);
    p.notes.insert(p.notes.end(), view.notes.begin(), view.notes.end());
    p.strays.assign(p.tables.size(), 0);
    for (auto& r : take_overrides(p.tables, f.with.tool.settings.types))
        f.found.refusals.push_back(std::move(r));
    for (const auto& t : p.tables) {
        if (t.identity() && t.identity()->autoincrement)
            p.notes.push_back(
                fmt::format("table \"{}\": numbers go on from the highest row; the engine may "
                            "remember a higher "
                            "one that was deleted",
                            t.name));
    }
    return f.good();
}

void check_names_taken(preflight& f) {
    auto reply = f.found.postgres->exec(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE "
        "n.nspname = $1 AND coalesce(obj_description(c.oid, 'pg_class'), '') NOT LIKE 'hotlane "
        "fence %'",
        {{param_type::text, f.home.schema}});
    if (!reply) {
        f.found.refusals.push_back(home_failed(home_kind::postgres, "preflight", reply.error()));
        return;
    }
    std::set<std::string> taken;
    for (const auto& r : reply->data)
        taken.insert(r.at(0).value_or(""));
    for (const auto& t : f.found.made.tables)
        if (taken.contains(t.name))
            f.refuse("name_taken",
                     fmt::format("schema \"{}\" on PostgreSQL has a relation \"{}\" already",
                                 f.home.schema,
                                 t.name),
                     "rename or drop it there, or give the tool another schema");
}

void check_definitions(preflight& f) {
    auto error = try_tables({*f.found.postgres, f.with.limit.lock}, f.found.made);
    if (!error) return;
    if (error->table.empty()) {
        f.refuse("no_rights",
                 "PostgreSQL refuses a staging schema: " + error->error.message,
                 "give the admin user the rights that the documentation lists");
        return;
    }
    f.refuse("definition_refused",
             fmt::format("table \"{}\": PostgreSQL refuses its definition: {}",
                         error->table,
                         error->error.message),
             "give the table's DDL in words that both homes understand as `schema:`");
}

// A number that the engine prints with fewer digits than it keeps would be changed by the copy.
void check_real_digits(preflight& f) {
    bool any = false;
    for (const auto& t : f.found.made.tables)
        for (const auto& c : t.columns)
            any = any || c.type == value_type::real;
    if (!any) return;
    auto reply = f.found.engine->exec("SELECT CAST(0.1 AS REAL) + CAST(0.2 AS REAL)");
    if (!reply || reply->data.empty() || !reply->data[0].at(0)) {
        f.found.made.notes.push_back(
            "the engine does not show how many digits of a real it prints");
        return;
    }
    std::string scratch;
    const auto read = read_value(value_type::real, *reply->data[0][0], scratch);
    const double exact = 0.1 + 0.2;
    if (!read || read->real < exact || read->real > exact)
        f.refuse("inexact_reals",
                 fmt::format("the engine prints 0.1 + 0.2 as {}: reals would lose digits",
                             *reply->data[0][0]),
                 "keep this tool on the engine");
}

// What the rows of one table did on the staged definitions.
void take_trial(preflight& f, const table& t, const row_trial& tried) {
    f.found.refusals.insert(
        f.found.refusals.end(), tried.refusals().begin(), tried.refusals().end());
    if (tried.left_some())
        f.found.made.notes.push_back(
            fmt::format("table \"{}\": its CHECK may raise, and not all of its rows were tried on "
                        "PostgreSQL",
                        t.name));
}

void scan_values(preflight& f, bool definitions_are_good) {
    const auto start = steady::now();
    f.found.engine->set_deadline(f.with.limit.scan);
    // Rows are tried there while they are read here.
    const bool trying =
        definitions_are_good &&
        begin_trial({*f.found.postgres, f.with.limit.lock}, f.found.made).has_value();
    steady::duration tried_for{};
    for (auto& t : f.found.made.tables) {
        row_trial tried(*f.found.postgres, t, staging_schema(f.found.made.move));
        const auto try_on = [&](const std::vector<value>* values) {
            if (!trying) return;
            const auto before = steady::now();
            values ? tried.add(*values) : tried.finish();
            tried_for += steady::now() - before;
        };
        shown_pass shown(f.with.around.live, "looking at the values of " + t.name, 0);
        auto read = read_engine_rows(
            *f.found.engine,
            t,
            t.name,
            [&](const std::vector<value>& values) {
                shown.count();
                for (const auto& v : values)
                    f.bytes += v.bytes.size() + sizeof(std::int64_t);
                try_on(&values);
                return true;
            },
            [&](refusal bad) { return note_bad_value(f, std::move(bad)); });
        if (!read) {
            f.found.refusals.push_back(
                home_failed(home_kind::engine, "reading " + t.name, read.error()));
            return;
        }
        t.rows = *read;
        f.rows += *read;
        if (!f.found.engine->alive()) return;  // enough bad values were found
        try_on(nullptr);
        take_trial(f, t, tried);
    }
    if (trying && f.found.postgres->alive()) rollback(*f.found.postgres);
    f.found.engine->set_deadline(f.with.limit.statement);
    f.scanned = std::chrono::duration_cast<milliseconds>(steady::now() - start - tried_for);
}

// What stands against a copy ahead.
std::optional<refusal> not_ahead(preflight& f) {
    if (f.with.around.others)
        return refusal{"not_ahead",
                       "in a fleet the commits of the other sidecars are not counted",
                       "leave `copy` of the tool at auto or held"};
    if (!f.found.engine->alive()) return std::nullopt;  // refused for other reasons
    const auto count = read_count(*f.found.engine);
    if (count && *count) return std::nullopt;
    return refusal{"not_ahead",
                   "the engine does not tell twill_commit_total and twill_committed_lsn, so that "
                   "nobody could say which tables changed meanwhile",
                   "leave `copy` of the tool at auto or held"};
}

}  // namespace

findings look_out(context& with, const request& what, const std::string& id) {
    preflight f{with, what, {}, {}, {}, {}, 0, 0, {}};
    if (!prepare(f, id)) return std::move(f.found);
    if (!check_place(f)) return std::move(f.found);
    check_postgres(f);
    const bool readable = read_tables(f);
    if (readable) {
        check_names_taken(f);
        if (f.good()) check_definitions(f);
        check_real_digits(f);
    }
    if (!f.found.made.tables.empty()) scan_values(f, readable && f.good());
    check_space(f);
    choose_copy(f,
                f.scanned * scans_under_hold + hold_at_least +
                    hold_per_table * static_cast<int>(f.found.made.tables.size()),
                not_ahead(f));
    return std::move(f.found);
}

}  // namespace hotlane::move
