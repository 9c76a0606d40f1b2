// The way back: from PostgreSQL to the engine, up to the opening there.
#include <fmt/format.h>
#include <algorithm>

#include "router/move/ahead_back.hpp"
#include "router/move/copy.hpp"
#include "router/move/engine_home.hpp"
#include "router/move/engine_names.hpp"
#include "router/move/job.hpp"
#include "router/move/names.hpp"
#include "router/move/postgres_home.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;
using nlohmann::literals::operator""_json_pointer;

constexpr std::string_view lock_not_available = "55P03", deadlock = "40P01";

refusal marker_changed() {
    return {"another_move",
            "the marker at the PostgreSQL home changed meanwhile",
            "see `hotlane moves`; another hotlane may be at work"};
}

// The engine took the definition: does it mean what the plan means?
outcome check_staged(active_move& m) {
    const plan& p = m.made();
    auto catalog = read_engine_catalog(m.engine());
    if (!catalog)
        return tl::unexpected(
            home_failed(home_kind::engine, "reading the catalog", catalog.error()));
    for (std::size_t i = 0; i < p.tables.size(); ++i) {
        const table& t = p.tables[i];
        const auto at = catalog->find(engine_name(p.move, part::staged, i));
        bool same = at != catalog->end() && at->second.size() == t.columns.size();
        for (std::size_t c = 0; same && c < t.columns.size(); ++c)
            same = at->second[c].name == t.columns[c].name &&
                   at->second[c].type == to_string(t.columns[c].type);
        if (!same)
            return tl::unexpected(refusal{
                "unsupported_type",
                fmt::format("table \"{}\": the engine makes other columns of its DDL", t.name),
                "give the tool's present DDL as `schema:`"});
    }
    return {};
}

// Tombstones of tables that were dropped while the tool lived on PostgreSQL: their names are free
// again, and CREATE TABLE IF NOT EXISTS must not find one.
outcome drop_old_tombstones(active_move& m) {
    const plan& p = m.made();
    auto catalog = read_engine_catalog(m.engine());
    if (!catalog)
        return tl::unexpected(
            home_failed(home_kind::engine, "reading the catalog", catalog.error()));
    std::size_t number = p.tables.size();
    for (const auto& [name, columns] : *catalog) {
        if (is_own_name(name) || what_stands(*catalog, name) != stands::ours) continue;
        if (std::any_of(p.tables.begin(), p.tables.end(), [&table_name = name](const table& t) {
                return t.name == table_name;
            }))
            continue;
        const auto away = engine_name(p.move, part::discarded, number++);
        if (auto moved = rename_table(m.engine(), name, away); !moved)
            return tl::unexpected(
                home_failed(home_kind::engine, "clearing an old tombstone", moved.error()));
    }
    return {};
}

outcome stage(active_move& m) {
    if (auto entered = enter(m, phase::stage); !entered) return entered;
    if (auto mine = claim(m.with, m.postgres(), m.made().leader); !mine)
        return tl::unexpected(
            home_failed(home_kind::postgres, "claiming the marker", mine.error()));
    m.found.at_start->leader = m.made().leader;
    if (auto good = try_levers(m); !good) return good;
    const plan& p = m.made();
    for (std::size_t i = 0; i < p.tables.size(); ++i) {
        const auto& t = p.tables[i];
        auto made = send(m.engine(), engine_create_table(t, engine_name(p.move, part::staged, i)));
        if (!made)
            return tl::unexpected(home_failed(home_kind::engine, "making " + t.name, made.error()));
    }
    if (auto same = check_staged(m); !same) return same;
    if (auto cleared = drop_old_tombstones(m); !cleared) return cleared;
    return may_go_on(m);
}

outcome fence(active_move& m) {
    if (auto entered = enter(m, phase::fence); !entered) return entered;
    const plan& p = m.made();
    const marker serving = *m.found.at_start;
    for (;;) {
        auto fenced = fence_tables({m.postgres(), m.with.limit.lock}, p, serving, m.found.shape);
        if (m.with.around.live) m.with.around.live->wait_for({});
        if (fenced && *fenced) return may_go_on(m);
        if (fenced) return tl::unexpected(marker_changed());
        const auto& error = fenced.error();
        if (error.what == fate::unknown ||
            (error.sqlstate != lock_not_available && error.sqlstate != deadlock))
            return tl::unexpected(home_failed(home_kind::postgres, "fencing", error));
        const auto who = name_blockers(m.postgres(), p.schema);
        if (m.with.around.live) m.with.around.live->wait_for("locks that are held by " + who);
        if (steady::now() - m.held_at > m.hold_max / 2) {
            return tl::unexpected(
                refusal{"lock_timeout",
                        fmt::format("the tables could not be locked; held by {}",
                                    who.empty() ? "sessions that are gone now" : who),
                        "end those transactions, or move when they are done"});
        }
    }
}

outcome copy(active_move& m) {
    if (auto entered = enter(m, phase::copy); !entered) return entered;
    plan& p = m.made();
    for (std::size_t i = 0; i < p.tables.size(); ++i) {
        auto copied = copy_table_back(
            m, p.tables[i], fenced_schema(p.move), engine_name(p.move, part::staged, i));
        if (!copied) return copied;
    }
    return may_go_on(m);
}

outcome verify(active_move& m) {
    if (auto entered = enter(m, phase::verify); !entered) return entered;
    const plan& p = m.made();
    for (std::size_t i = 0; i < p.tables.size(); ++i) {
        auto same =
            verify_table(m, p.tables[i], home_kind::engine, engine_name(p.move, part::staged, i));
        if (!same) return same;
        if (auto late = may_go_on(m); !late) return late;
    }
    return {};
}

outcome open(active_move& m) {
    const plan& p = m.made();
    static_cast<void>(enter(m, phase::open));  // the marker has it already
    names_job names{p.move, p.names(), p.strays, {}, {}};
    names.before_stray = [&](const names_job& job) {
        m.made().strays = job.strays;
        m.record.plan = to_json(m.made());
        return write_journal(m.with, m.record);
    };
    auto opened = open_staged(m.engine(), names);
    m.alarms.insert(m.alarms.end(), names.alarms.begin(), names.alarms.end());
    if (!opened) return tl::unexpected(home_failed(home_kind::engine, "opening", opened.error()));
    // A hint only: nothing depends on it.
    static_cast<void>(write_hint(m.engine(), p.tool, {p.move, "serving", p.epoch + 1}, "postgres"));
    static_cast<void>(enter(m, phase::release));
    return {};
}

}  // namespace

static outcome bring_rows_held(active_move& m) {
    for (const auto step : {&hold_tool, &fence, &copy, &verify})
        if (auto went = step(m); !went) return went;
    return {};
}

// Decoding may find at its beginning that it cannot be: some other database's transaction stays
// open, the last slot was taken. With `copy: auto` the rows then go over under the hold, where that
// fits: nothing was copied yet.
static outcome follow_changes(active_move& m) {
    if (auto entered = enter(m, phase::ahead); !entered) return entered;
    m.changes = std::make_shared<decoding>(m);
    const auto begun = m.changes->begin();
    if (begun) return {};
    const auto held = m.found.detail.value("/forecast/hold_ms"_json_pointer, m.hold_max.count());
    const bool may_be_held = m.with.tool.settings.copy == config::copy_rule::automatic &&
                             held < m.hold_max.count() && m.postgres().alive();
    if (!may_be_held || !may_go_on(m)) return begun;
    m.changes.reset();
    m.made().ahead = false;
    m.found.detail["copy"] = "held";
    m.made().notes.push_back("the rows are copied under the hold: " + begun.error().message);
    m.found.detail["notes"] = m.made().notes;
    return {};
}

static outcome bring_rows_ahead(active_move& m) {
    ahead_back ahead(m);
    if (auto went = ahead.run(); !went) return went;
    for (const auto step : {&hold_tool, &fence})
        if (auto went = step(m); !went) return went;
    for (const auto step : {&ahead_back::settle_held, &ahead_back::copy_rest, &ahead_back::verify})
        if (auto went = (ahead.*step)(); !went) return went;
    return {};
}

outcome move_back(active_move& m) {
    for (const auto step : {&stage, &rehearse_statements})
        if (auto went = step(m); !went) return went;
    if (m.made().ahead)
        if (auto followed = follow_changes(m); !followed) return followed;
    if (auto brought = m.made().ahead ? bring_rows_ahead(m) : bring_rows_held(m); !brought)
        return brought;
    if (auto entered = enter(m, phase::commit); !entered) return entered;
    auto flipped = flip_back({m.postgres(), m.with.limit.lock}, m.made());
    if (!flipped)
        return tl::unexpected(home_failed(home_kind::postgres, "the flip", flipped.error()));
    if (!*flipped) return tl::unexpected(marker_changed());
    return open(m);
}

}  // namespace hotlane::move
