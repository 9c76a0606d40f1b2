// The way out: from the engine to PostgreSQL, up to the flip.
#include <fmt/format.h>

#include "router/move/ahead.hpp"
#include "router/move/copy.hpp"
#include "router/move/engine_home.hpp"
#include "router/move/job.hpp"
#include "router/move/names.hpp"
#include "router/move/postgres_home.hpp"
#include "router/move/schema.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;

refusal marker_changed() {
    return {"another_move",
            "the marker at the PostgreSQL home changed meanwhile",
            "see `hotlane moves`; another hotlane may be at work"};
}

outcome stage(active_move& m) {
    if (auto entered = enter(m, phase::stage); !entered) return entered;
    const plan& p = m.made();
    if (auto ready = ensure_marker(m.postgres(), p.tool, p.epoch); !ready)
        return tl::unexpected(home_failed(home_kind::postgres, "making the marker", ready.error()));
    if (auto mine = claim(m.with, m.postgres(), m.made().leader); !mine)
        return tl::unexpected(
            home_failed(home_kind::postgres, "claiming the marker", mine.error()));
    auto now = read_marker(m.postgres(), p.tool, true);
    if (!now)
        return tl::unexpected(home_failed(home_kind::postgres, "reading the marker", now.error()));
    if (!*now || (*now)->state != marker_state::away || (*now)->epoch != p.epoch)
        return tl::unexpected(marker_changed());
    (*now)->leader = p.leader;
    auto staged = stage_tables({m.postgres(), m.with.limit.lock}, p, **now);
    if (!staged) return tl::unexpected(home_failed(home_kind::postgres, "staging", staged.error()));
    if (!*staged) return tl::unexpected(marker_changed());
    if (auto good = try_levers(m); !good) return good;
    for (std::size_t i = 0; i < p.tables.size(); ++i) {
        auto made = create_tombstone(m.engine(), engine_name(p.move, part::spare, i), p.epoch + 1);
        if (!made)
            return tl::unexpected(
                home_failed(home_kind::engine, "making a tombstone", made.error()));
    }
    return may_go_on(m);
}

// What the catalog hides (a unique index, a table made anew) shows in the DDL alone. Clients are
// held, so that nothing more comes.
outcome check_ddl(active_move& m) {
    const auto& tool = m.with.tool;
    if (tool.settings.no_hidden_constraints) return {};
    if (tool.keep_seen) tool.keep_seen();
    const auto kept = m.with.around.store.ddl(tool.name);
    if (kept && kept->size() == m.found.ddl_statements && tool.seen.ddl_unkept() == 0) return {};
    return tl::unexpected(refusal{"schema_changed",
                                  "DDL of the tool passed since preflight",
                                  "try again when no migration runs"});
}

// After the renames: every fenced table has the columns of the plan, every name has its tombstone,
// and nothing else has appeared.
outcome check_fence(active_move& m) {
    const plan& p = m.made();
    auto catalog = read_engine_catalog(m.engine());
    if (!catalog)
        return tl::unexpected(
            home_failed(home_kind::engine, "reading the catalog", catalog.error()));
    const auto changed = [](const std::string& name) {
        return tl::unexpected(
            refusal{"schema_changed",
                    fmt::format("table \"{}\" was made or changed since preflight", name),
                    "try again when no migration runs"});
    };
    for (std::size_t i = 0; i < p.tables.size(); ++i) {
        const table& t = p.tables[i];
        const auto at = catalog->find(engine_name(p.move, part::fenced, i));
        if (at == catalog->end() || what_stands(*catalog, t.name) != stands::ours)
            return changed(t.name);
        bool same = at->second.size() == t.columns.size();
        for (std::size_t c = 0; same && c < t.columns.size(); ++c)
            same = at->second[c].name == t.columns[c].name &&
                   at->second[c].type == to_string(t.columns[c].type);
        if (!same) return changed(t.name);
        catalog->erase(t.name);
    }
    for (const auto& [name, columns] : *catalog)
        if (!is_own_name(name)) return changed(name);
    return check_ddl(m);
}

outcome fence(active_move& m) {
    if (auto entered = enter(m, phase::fence); !entered) return entered;
    plan& p = m.made();
    for (std::size_t i = 0; i < p.tables.size(); ++i) {
        const std::string& name = p.tables[i].name;
        const shown_wait shown(m.with.around.live, "the engine's writers to let go of " + name);
        if (auto away = rename_table(m.engine(), name, engine_name(p.move, part::fenced, i)); !away)
            return tl::unexpected(home_failed(home_kind::engine, "fencing " + name, away.error()));
        if (auto in = rename_table(m.engine(), engine_name(p.move, part::spare, i), name); !in)
            return tl::unexpected(
                home_failed(home_kind::engine, "setting the tombstone of " + name, in.error()));
        if (auto late = may_go_on(m); !late) return late;
    }
    if (auto same = check_fence(m); !same) return same;
    if (p.ahead)
        if (auto counted = count_at_fence(m); !counted) return counted;
    if (auto told = write_hint(m.engine(), p.tool, {p.move, "fenced", p.epoch + 1}, "postgres");
        !told)
        return tl::unexpected(home_failed(home_kind::engine, "writing the hint", told.error()));
    auto lsn = read_lsn(m.engine());
    if (!lsn) return tl::unexpected(home_failed(home_kind::engine, "reading the LSN", lsn.error()));
    p.lsn = *lsn;
    return may_go_on(m);
}

outcome copy(active_move& m) {
    if (auto entered = enter(m, phase::copy); !entered) return entered;
    plan& p = m.made();
    const std::string schema = staging_schema(p.move);
    const auto failed = [&](std::string_view doing, const link_error& e) {
        return tl::unexpected(home_failed(home_kind::postgres, doing, e));
    };
    if (auto begun = begin(m.postgres(), m.with.limit.lock); !begun)
        return failed("copying", begun.error());
    auto now = read_marker(m.postgres(), p.tool, true);
    if (!now) return failed("reading the marker", now.error());
    if (!*now || (*now)->state != marker_state::staging || (*now)->move != p.move)
        return tl::unexpected(marker_changed());
    for (std::size_t i = 0; i < p.tables.size(); ++i) {
        table& t = p.tables[i];
        if (auto copied = copy_table_out(m, t, engine_name(p.move, part::fenced, i), schema);
            !copied)
            return copied;
        if (const auto next = postgres_set_identity(t, schema); !next.empty())
            if (auto set = send(m.postgres(), next); !set)
                return failed("numbering " + t.name, set.error());
    }
    if (auto done = commit(m.postgres()); !done) return failed("committing the copy", done.error());
    return may_go_on(m);
}

outcome verify(active_move& m) {
    if (auto entered = enter(m, phase::verify); !entered) return entered;
    const plan& p = m.made();
    for (std::size_t i = 0; i < p.tables.size(); ++i) {
        // The others were verified before the hold, and nothing was written to either side since.
        if (p.ahead && !m.ahead.settled[i]) continue;
        if (auto same = verify_table(m, p.tables[i], home_kind::postgres, staging_schema(p.move));
            !same)
            return same;
        if (auto late = may_go_on(m); !late) return late;
    }
    // No one wrote anything since the fence: what was read is all there is.
    auto lsn = read_lsn(m.engine());
    if (!lsn) return tl::unexpected(home_failed(home_kind::engine, "reading the LSN", lsn.error()));
    if (lsn->empty() || *lsn != p.lsn)
        return tl::unexpected(
            refusal{"late_write",
                    fmt::format("the engine was written to after the fence (LSN {} then, {} now)",
                                p.lsn.empty() ? "unknown" : p.lsn,
                                lsn->empty() ? "unknown" : *lsn),
                    "find who writes round hotlane"});
    return may_go_on(m);
}

}  // namespace

outcome move_out(active_move& m) {
    const bool is_ahead = m.made().ahead;
    for (const auto step : {&stage, &rehearse_statements})
        if (auto went = step(m); !went) return went;
    if (is_ahead)
        if (auto went = copy_ahead(m); !went) return went;
    for (const auto step : {&hold_tool, &fence, is_ahead ? &settle_changes : &copy, &verify})
        if (auto went = step(m); !went) return went;
    if (auto entered = enter(m, phase::commit); !entered) return entered;
    auto flipped = flip_out({m.postgres(), m.with.limit.lock}, m.made());
    if (!flipped)
        return tl::unexpected(home_failed(home_kind::postgres, "the flip", flipped.error()));
    if (!*flipped) return tl::unexpected(marker_changed());
    static_cast<void>(enter(m, phase::release));  // the marker has it already
    return {};
}

}  // namespace hotlane::move
