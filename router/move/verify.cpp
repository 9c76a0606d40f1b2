#include "router/move/verify.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "router/move/compare.hpp"
#include "router/move/engine_home.hpp"
#include "router/move/names.hpp"
#include "router/move/read_postgres.hpp"
#include "router/move/schema.hpp"

namespace hotlane::move {
namespace {

using nlohmann::json;
using policy::home_kind;

constexpr std::size_t moves_looked_at = 1'000;
constexpr std::string_view kept_name = "kept", live_name = "live";

struct check {
    context& with;
    std::shared_ptr<const placement::route> route;
    std::unique_ptr<home_link> engine, postgres;
    std::optional<placement::move_record> brought;  // the move that brought the tool here
    plan kept;
    std::vector<table> live;
    json problems = json::array(), notes = json::array(), tables = json::array();

    void problem(std::string text) { problems.push_back(std::move(text)); }
    void note(std::string text) { notes.push_back(std::move(text)); }
    home_link* at(home_kind kind) {
        return kind == home_kind::engine ? engine.get() : postgres.get();
    }
};

const char* word(home_kind kind) {
    return kind == home_kind::engine ? "the engine" : "PostgreSQL";
}

void open_homes(check& c) {
    for (const auto kind : {home_kind::engine, home_kind::postgres}) {
        if (kind == home_kind::postgres && !c.with.tool.settings.postgres) continue;
        auto opened = c.with.homes.open(kind, c.with.limit.connect);
        if (opened) {
            (*opened)->set_deadline(c.with.limit.scan);
            (kind == home_kind::engine ? c.engine : c.postgres) = std::move(*opened);
            continue;
        }
        const auto text = fmt::format("{} does not answer: {}", word(kind), opened.error().message);
        kind == c.route->at.kind ? c.problem(text) : c.note(text);
    }
}

// The marker in the PostgreSQL database says what this hotlane believes.
void check_marker(check& c) {
    if (!c.postgres) return;
    const auto mark = read_marker(*c.postgres, c.with.tool.name, false);
    if (!mark) return c.problem("the marker cannot be read: " + mark.error().message);
    const bool away = c.route->at.kind == home_kind::engine;
    if (!*mark) {
        if (c.route->epoch > 1) c.problem("PostgreSQL has no marker of this tool");
        return;
    }
    const auto expected = away ? marker_state::away : marker_state::serving;
    if ((*mark)->state != expected || (*mark)->epoch != c.route->epoch)
        c.problem(fmt::format("the marker says {} at epoch {}; hotlane serves epoch {} from {}",
                              to_string((*mark)->state),
                              (*mark)->epoch,
                              c.route->epoch,
                              word(c.route->at.kind)));
}

void find_move(check& c) {
    const auto recent = c.with.around.store.recent_moves(moves_looked_at);
    if (!recent) return c.note("the journal cannot be read: " + recent.error().what);
    for (const auto& r : *recent)
        if (r.tool == c.with.tool.name && r.outcome == "done" && r.epoch + 1 == c.route->epoch &&
            r.to == c.route->at.kind) {
            c.brought = r;
            c.kept = plan_from_json(r.plan);
            return;
        }
}

bool read_live_tables(check& c) {
    const auto kind = c.route->at.kind;
    if (kind == home_kind::engine) {
        auto catalog = read_engine_catalog(*c.engine);
        if (!catalog) {
            c.problem("the engine's catalog cannot be read: " + catalog.error().message);
            return false;
        }
        c.live = read_engine_schema(*catalog, {}, {}, true).tables;
        return true;
    }
    const auto& home = *c.with.tool.settings.postgres;
    auto view =
        read_postgres_schema(*c.postgres, home.schema, home.role, c.with.tool.settings.types);
    if (!view) {
        c.problem("PostgreSQL's catalog cannot be read: " + view.error().message);
        return false;
    }
    c.live = std::move(view->tables);
    return true;
}

row_source live_source(check& c, const table& t) {
    return [&c, &t](const on_values& on_row, const on_bad_value& on_bad) {
        return c.route->at.kind == home_kind::engine
                   ? read_engine_rows(*c.engine, t, t.name, on_row, on_bad)
                   : read_postgres_rows(
                         *c.postgres, t, c.with.tool.settings.postgres->schema, on_row, on_bad);
    };
}

row_source kept_source(check& c, const table& t, std::size_t index) {
    return [&c, &t, index](const on_values& on_row, const on_bad_value& on_bad) {
        const auto& id = c.brought->id;
        return c.brought->from == home_kind::engine
                   ? read_engine_rows(
                         *c.engine, t, engine_name(id, part::fenced, index), on_row, on_bad)
                   : read_postgres_rows(*c.postgres, t, fenced_schema(id), on_row, on_bad);
    };
}

// Without a copy to compare with: every value of the live table is read.
void read_through(check& c, const table& t) {
    table_digest sum("verify");
    const auto types = t.types();
    json bad = json::array();
    const auto read = live_source(c, t)(
        [&](const std::vector<value>& values) {
            sum.add(types, values);
            return true;
        },
        [&](const refusal& wrong) {
            if (bad.size() < compare_limits{}.bad_shown) bad.push_back(wrong.message);
            return true;
        });
    if (!read) return c.problem(fmt::format("table \"{}\": {}", t.name, read.error().message));
    if (!bad.empty())
        c.note(fmt::format("table \"{}\" holds values that a move would refuse", t.name));
    c.tables.push_back({{"name", t.name},
                        {"rows", {{live_name, *read}}},
                        {"compared", false},
                        {"bad_values", std::move(bad)}});
}

bool same_columns(const table& a, const table& b) {
    return std::equal(a.columns.begin(),
                      a.columns.end(),
                      b.columns.begin(),
                      b.columns.end(),
                      [](const column& x, const column& y) { return x.name == y.name; });
}

void compare_with_copy(check& c, const table& kept, std::size_t index) {
    const auto* stop = c.with.around.stop;
    const auto compared = compare_tables(
        kept, c.kept.seed, kept_source(c, kept, index), live_source(c, kept), {}, [stop] {
            return stop == nullptr || !stop->load();
        });
    if (!compared) {
        const bool live = compared.error().which == side::second;
        return c.problem(fmt::format("table \"{}\", {}: {}",
                                     kept.name,
                                     live ? "live" : "kept copy",
                                     compared.error().error.message));
    }
    auto shown = to_json(*compared, kept_name, live_name);
    shown["name"] = kept.name;
    shown["compared"] = true;
    const bool untouched = compared->first_rows == kept.rows && compared->first_sum == kept.sum;
    shown["copy_untouched"] = untouched;
    if (compared->complete && !untouched)
        c.problem(
            fmt::format("table \"{}\" was changed at its old home after move {} ({} rows then, {} "
                        "now); against the live home: {}",
                        kept.name,
                        c.brought->id,
                        kept.rows,
                        compared->first_rows,
                        describe(*compared, kept_name, live_name)));
    c.tables.push_back(std::move(shown));
}

// Does the copy still stand? (After `keep` it is dropped.)
bool copy_stands(check& c) {
    if (!c.brought || c.kept.tables.empty() || !c.at(c.brought->from)) return false;
    if (c.brought->from == home_kind::postgres) {
        const auto there = c.postgres->exec("SELECT 1 FROM pg_namespace WHERE nspname = $1",
                                            {{param_type::text, fenced_schema(c.brought->id)}});
        return there && !there->data.empty();
    }
    const auto catalog = read_engine_catalog(*c.engine);
    if (!catalog) return false;
    for (std::size_t i = 0; i < c.kept.tables.size(); ++i)
        if (what_stands(*catalog, engine_name(c.brought->id, part::fenced, i)) != stands::data)
            return false;
    return true;
}

// Nobody may have written to an engine that a tool has left.
void check_lsn(check& c) {
    if (!c.brought || c.brought->from != home_kind::engine || !c.engine) return;
    const auto lsn = read_lsn(*c.engine);
    if (lsn && *lsn != c.kept.lsn)
        c.note(
            fmt::format("the engine's LSN moved since the fence ({} then, {} now): hotlane's own "
                        "tidying does that, and so does anybody who goes round it",
                        c.kept.lsn,
                        *lsn));
}

void check_tables(check& c) {
    const bool has_copy = copy_stands(c);
    if (!c.brought)
        c.note("no move that is remembered brought the tool here: only the live home is read");
    else if (!has_copy)
        c.note(
            fmt::format("the copy that move {} kept is gone or cannot be read: only the live "
                        "home is read",
                        c.brought->id));
    for (const auto& t : c.live) {
        const auto old = std::find_if(c.kept.tables.begin(),
                                      c.kept.tables.end(),
                                      [&](const table& k) { return k.name == t.name; });
        const bool known = has_copy && old != c.kept.tables.end();
        if (known && same_columns(*old, t)) {
            compare_with_copy(c, *old, static_cast<std::size_t>(old - c.kept.tables.begin()));
            continue;
        }
        if (known) c.note(fmt::format("table \"{}\" has other columns since the move", t.name));
        read_through(c, t);
    }
}

}  // namespace

checked verify_with(context& with) {
    check c{with, with.tool.current(), nullptr, nullptr, {}, {}, {}};
    checked out;
    out.detail = {{"tool", with.tool.name},
                  {"home", policy::to_string(c.route->at.kind)},
                  {"epoch", c.route->epoch}};
    if (!c.route->served) {
        c.problem("the tool is not served: " + c.route->reason);
    } else {
        open_homes(c);
        check_marker(c);
        find_move(c);
        if (c.at(c.route->at.kind) && read_live_tables(c)) {
            check_lsn(c);
            check_tables(c);
        }
    }
    out.good = c.problems.empty();
    out.detail["move"] = c.brought ? json(c.brought->id) : json(nullptr);
    out.detail["good"] = out.good;
    out.detail["problems"] = std::move(c.problems);
    out.detail["notes"] = std::move(c.notes);
    out.detail["tables"] = std::move(c.tables);
    return out;
}

std::string name_differences(active_move& m, const table& t) {
    const plan& p = m.made();
    const auto index = static_cast<std::size_t>(
        std::find_if(p.tables.begin(), p.tables.end(), [&](const table& x) { return &x == &t; }) -
        p.tables.begin());
    const bool out = p.to == home_kind::postgres;
    const row_source engine = [&](const on_values& on_row, const on_bad_value& on_bad) {
        return read_engine_rows(m.engine(),
                                t,
                                engine_name(p.move, out ? part::fenced : part::staged, index),
                                on_row,
                                on_bad);
    };
    const row_source postgres = [&](const on_values& on_row, const on_bad_value& on_bad) {
        return read_postgres_rows(
            m.postgres(), t, out ? staging_schema(p.move) : fenced_schema(p.move), on_row, on_bad);
    };
    const auto found =
        compare_tables(t, p.seed, engine, postgres, {}, [&] { return may_go_on(m).has_value(); });
    if (!found || !found->complete) return {};
    return describe(*found, "the engine", "PostgreSQL");
}

}  // namespace hotlane::move
