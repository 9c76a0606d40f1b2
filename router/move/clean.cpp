// After `keep`: drops what a move left, but only what is provably nobody's any more.
#include <fmt/format.h>

#include "router/move/copy.hpp"
#include "router/move/engine_home.hpp"
#include "router/move/followed_tables.hpp"
#include "router/move/job.hpp"
#include "router/move/names.hpp"
#include "router/move/postgres_home.hpp"
#include "router/sql/facts.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;

constexpr std::size_t moves_looked_at = 200;
constexpr const char* own_work_kind = "engine_work";  // of the store's documents, by tool

struct cleaner {
    context& with;
    const placement::move_record& record;
    plan p;
    std::unique_ptr<home_link> engine, postgres;
};

bool open_both(cleaner& c) {
    for (const auto kind : {home_kind::engine, home_kind::postgres}) {
        auto opened = c.with.homes.open(kind, c.with.limit.connect);
        if (!opened) return false;
        (*opened)->set_deadline(c.with.limit.scan);
        (kind == home_kind::engine ? c.engine : c.postgres) = std::move(*opened);
    }
    return true;
}

// Did a later move of this tool work on the engine? Then the LSN tells nothing any more.
bool moved_since(cleaner& c) {
    auto recent = c.with.around.store.recent_moves(moves_looked_at);
    if (!recent) return true;
    bool reached = recent->size() < moves_looked_at;
    for (const auto& r : *recent) {
        const bool worked = r.outcome != "refused" && r.outcome != dry_run_outcome;
        if (r.tool == c.record.tool && r.id > c.record.id && worked) return true;
        reached = reached || r.id <= c.record.id;
    }
    return !reached;  // so many moves ago that nobody can tell
}

// Without the LSN: do the names still stand as the fence left them? Empty: they do.
std::string strangers(const cleaner& c, const engine_catalog& catalog) {
    for (const auto& t : c.p.tables)
        if (what_stands(catalog, t.name) != stands::ours)
            return fmt::format(
                "table \"{}\" of tool {} was made or dropped on the engine after the "
                "tool left it (move {})",
                t.name,
                c.record.tool,
                c.record.id);
    for (const auto& [name, columns] : catalog)
        if (!is_own_name(name) && what_stands(catalog, name) == stands::data)
            return fmt::format(
                "table \"{}\" was made on the engine after tool {} left it (move {})",
                name,
                c.record.tool,
                c.record.id);
    return {};
}

// Empty: the fenced table holds what was copied from it. nullopt: the home did not answer.
std::optional<std::string> compare(cleaner& c,
                                   const table& t,
                                   home_kind at,
                                   const std::string& where) {
    const auto types = t.types();
    table_digest sum(c.p.seed);
    std::string wrong;
    const auto on_row = [&](const std::vector<value>& values) {
        sum.add(types, values);
        return true;
    };
    const auto on_bad = [&](const refusal& bad) {
        wrong = bad.message;
        return false;
    };
    auto read = at == home_kind::engine ? read_engine_rows(*c.engine, t, where, on_row, on_bad)
                                        : read_postgres_rows(*c.postgres, t, where, on_row, on_bad);
    if (!read) return std::nullopt;
    if (wrong.empty() && sum.rows() == t.rows && sum.sum() == t.sum) return std::string();
    return fmt::format(
        "table \"{}\" was changed at its old home after move {} ({} rows then, {} now)",
        t.name,
        c.record.id,
        t.rows,
        sum.rows());
}

cleaned clean_engine_copy(cleaner& c) {
    cleaned out;
    auto lsn = read_lsn(*c.engine);
    auto catalog = read_engine_catalog(*c.engine);
    if (!lsn || !catalog) return out;
    const bool untouched = !lsn->empty() && *lsn == c.p.lsn;
    // A copy that is gone already was dropped by an earlier try: its DROP moved the LSN.
    bool begun = false;
    for (std::size_t i = 0; i < c.p.tables.size(); ++i)
        begun = begun ||
                what_stands(*catalog, engine_name(c.record.id, part::fenced, i)) == stands::nothing;
    const bool moved = moved_since(c);
    if (!untouched && !begun && !moved && !worked_since(c.with, c.record.started)) {
        out.late_write = fmt::format(
            "the engine was written to after tool {} left it (move {}, LSN {} then, {} now)",
            c.record.tool,
            c.record.id,
            c.p.lsn,
            *lsn);
        return out;
    }
    if (!untouched && !moved) out.late_write = strangers(c, *catalog);
    if (!out.late_write.empty()) return out;
    for (std::size_t i = 0; i < c.p.tables.size(); ++i) {
        const auto name = engine_name(c.record.id, part::fenced, i);
        if (untouched || what_stands(*catalog, name) != stands::data) continue;
        const auto wrong = compare(c, c.p.tables[i], home_kind::engine, name);
        if (!wrong) return out;
        if (!wrong->empty()) {
            out.late_write = *wrong;
            return out;
        }
    }
    if (!note_own_work(c.with)) return out;
    for (std::size_t i = 0; i < c.p.tables.size(); ++i) {
        const auto name = engine_name(c.record.id, part::fenced, i);
        if (what_stands(*catalog, name) == stands::nothing) continue;
        if (!drop_table(*c.engine, name)) return out;
    }
    out.dropped = true;
    return out;
}

// Placeholders, tombstones and staged copies of a move: nobody's data, whatever became of it.
bool drop_leftovers(cleaner& c) {
    auto catalog = read_engine_catalog(*c.engine);
    if (!catalog || !note_own_work(c.with)) return false;
    const std::string own = staging_schema(c.record.id) + "_";
    for (const auto& [name, columns] : *catalog) {
        if (!is_own_name(name) || name.rfind(own, 0) != 0) continue;
        const char kind = name[own.size()];
        const bool staged = kind == static_cast<char>(part::staged) && c.record.outcome != "done";
        if (!staged && what_stands(*catalog, name) != stands::ours) continue;
        if (!drop_table(*c.engine, name)) return false;
    }
    return true;
}

// Without CASCADE: what somebody hung on these tables from elsewhere (a reporting view) is not ours
// to drop; then PostgreSQL refuses and names it. One implicit transaction.
std::string drop_copy_sql(const plan& p, const std::string& schema) {
    const std::string in = sql::quote_identifier(schema);
    std::string tables;
    for (const auto& t : p.tables)
        tables +=
            fmt::format("{}{}.{}", tables.empty() ? "" : ", ", in, sql::quote_identifier(t.name));
    return (tables.empty() ? "" : "DROP TABLE " + tables + "; ") + "DROP SCHEMA " + in;
}

cleaned clean_postgres_copy(cleaner& c) {
    cleaned out;
    const std::string schema = fenced_schema(c.record.id);
    auto there = c.postgres->exec("SELECT 1 FROM pg_namespace WHERE nspname = $1",
                                  {{param_type::text, schema}});
    if (!there) return out;
    if (!there->data.empty()) {
        for (const auto& t : c.p.tables) {
            const auto wrong = compare(c, t, home_kind::postgres, schema);
            if (!wrong) return out;
            if (!wrong->empty()) {
                out.late_write = *wrong;
                return out;
            }
        }
        // The marker must not say that this very copy is on its way back to serving.
        auto mark = read_marker(*c.postgres, c.record.tool, false);
        if (!mark || !*mark ||
            ((*mark)->state == marker_state::fenced && (*mark)->move == c.record.id))
            return out;
        const auto gone = send(*c.postgres, drop_copy_sql(c.p, schema));
        if (!gone) {
            if (gone.error().sqlstate == "2BP01")
                out.late_write = fmt::format(
                    "the fenced copy in schema {} is kept: {}", schema, gone.error().message);
            return out;
        }
    }
    out.dropped = drop_leftovers(c);
    return out;
}

}  // namespace

bool note_own_work(context& with) {
    const auto now = with.around.now().time_since_epoch().count();
    with.steps.before("journal own work");
    const auto kept =
        with.around.store.put_document(own_work_kind, with.tool.name, {{"at_ms", now}});
    with.steps.sent("journal own work");
    return kept.has_value();
}

bool worked_since(context& with, policy::time_point start) {
    const auto noted = with.around.store.document(own_work_kind, with.tool.name);
    if (!noted) return true;
    return *noted && (*noted)->value("at_ms", std::int64_t{0}) >= start.time_since_epoch().count();
}

cleaned clean_with(context& with, const placement::move_record& finished) {
    cleaner c{with, finished, plan_from_json(finished.plan), nullptr, nullptr};
    cleaned out;
    if (finished.outcome == "refused") {
        out.dropped = true;
        return out;
    }
    if (finished.outcome.empty() || !open_both(c)) return out;
    if (finished.to == home_kind::engine) {
        const auto left = drop_decoding(*c.postgres, finished.id);
        if (!left) return out;
        out.late_write = *left;
        if (!left->empty()) return out;
    }
    if (finished.outcome == "undone" || finished.outcome == dry_run_outcome) {
        out.dropped = drop_leftovers(c);
        return out;
    }
    return finished.to == home_kind::postgres ? clean_engine_copy(c) : clean_postgres_copy(c);
}

}  // namespace hotlane::move
