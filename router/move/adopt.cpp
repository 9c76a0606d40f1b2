#include "router/move/adopt.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "router/move/names.hpp"
#include "router/move/postgres_home.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;

bool has(const std::vector<counted_table>& tables, const std::string& name) {
    return std::any_of(
        tables.begin(), tables.end(), [&](const counted_table& t) { return t.name == name; });
}

std::string listed(const std::vector<std::string>& names) {
    std::string out;
    for (const auto& n : names)
        out += (out.empty() ? "" : ", ") + n;
    return out;
}

// Which of the tables that the tool should have stand nowhere in these.
std::vector<std::string> missing(const adopt_view& seen,
                                 const std::vector<counted_table>& a,
                                 const std::vector<counted_table>& b) {
    std::vector<std::string> out;
    for (const auto& name : seen.known)
        if (!has(a, name) && !has(b, name)) out.push_back(name);
    return out;
}

refusal incomplete(home_kind home, const std::string& what) {
    return {"no_complete_tables",
            fmt::format("{} has no complete tables of the tool: {}", policy::to_string(home), what),
            "adopt the other home; or, where the tool itself dropped a table, make an empty one "
            "under its name first"};
}

void refuse_engine(const adopt_view& v, std::vector<refusal>& out) {
    if (v.mark && v.mark->state == marker_state::serving && v.mark->epoch >= v.highest)
        out.push_back({"higher_epoch",
                       fmt::format("PostgreSQL serves epoch {}, and nobody knows a higher one",
                                   v.mark->epoch),
                       "it needs no adopting; `hotlane route` moves the tool"});
    const auto lost = missing(v, v.at_engine, v.copies);
    if (!lost.empty()) out.push_back(incomplete(home_kind::engine, listed(lost)));
    // A tombstone that no copy belongs to: what stood there is gone, or nobody knows which it is.
    std::vector<std::string> bare;
    for (const auto& name : v.tombstones)
        if (!has(v.copies, name)) bare.push_back(name);
    if (!v.copy_of.empty() && v.copies.empty())
        out.push_back(incomplete(home_kind::engine,
                                 fmt::format("nobody knows which table is which of the copies that "
                                             "move {} kept",
                                             v.copy_of)));
    else if (!bare.empty())
        out.push_back(incomplete(home_kind::engine, "no copy is left of " + listed(bare)));
    else if (v.at_engine.empty() && v.copies.empty())
        out.push_back(incomplete(home_kind::engine, "it has none"));
    // The copies of an earlier move are older than what the tool left last.
    if (v.stored && v.stored->home == home_kind::postgres && is_move_id(v.stored->move) &&
        !v.copies.empty() && v.copy_of < v.stored->move)
        out.push_back(incomplete(
            home_kind::engine,
            fmt::format("the copy that move {} kept is gone; there is one of move {}, long before",
                        v.stored->move,
                        v.copy_of)));
}

void refuse_postgres(const adopt_view& v, std::vector<refusal>& out) {
    if (!v.at_engine.empty()) {
        const auto epoch =
            std::max(v.hinted ? v.hinted->epoch : 0,
                     v.stored && v.stored->home == home_kind::engine ? v.stored->epoch : 0);
        out.push_back({"higher_epoch",
                       fmt::format("the engine answers with tables of the tool, open for writes, "
                                   "and epoch {}; PostgreSQL's marker has {}",
                                   epoch,
                                   v.mark ? std::to_string(v.mark->epoch) : "none"),
                       "adopt the engine, and route the tool from there; or rename those tables "
                       "on the engine if nobody wants them"});
    }
    const auto lost = missing(v, v.at_postgres, v.fenced);
    if (!lost.empty()) out.push_back(incomplete(home_kind::postgres, listed(lost)));
    if (v.at_postgres.empty() && v.fenced.empty())
        out.push_back(incomplete(home_kind::postgres, "it has none"));
}

std::vector<std::string> steps_of(const adopt_view& v, home_kind home) {
    std::vector<std::string> out;
    const bool engine = home == home_kind::engine;
    if (engine && !v.at_postgres.empty())
        out.push_back("PostgreSQL: its tables are fenced and kept in a schema of their own");
    if (!engine && !v.fenced.empty()) out.push_back("PostgreSQL: the fence is taken away");
    out.push_back(fmt::format(
        "PostgreSQL: the marker says {} at epoch {}", engine ? "away" : "serving", v.highest + 1));
    if (engine && !v.copies.empty())
        out.push_back(fmt::format("engine: the copies of move {} get their names back", v.copy_of));
    return out;
}

std::vector<std::string> names_of(const std::vector<counted_table>& tables) {
    std::vector<std::string> out;
    for (const auto& t : tables)
        out.push_back(t.name);
    return out;
}

marker next_marker(const adopt_view& v, home_kind home, const std::string& id) {
    marker next;
    next.epoch = v.highest + 1;
    if (home == home_kind::postgres) {
        next.state = marker_state::serving;
        next.move = v.stored ? v.stored->move : id;
        next.tables = names_of(v.fenced.empty() ? v.at_postgres : v.fenced);
    } else {
        next.state = marker_state::away;
        // What recovery opens at the engine, if we do not come to it.
        next.move = v.copies.empty() ? id : v.copy_of;
        next.tables = names_of(v.copies.empty() ? v.at_engine : v.copies);
    }
    return next;
}

// Stays "adopting" only where this process ends in between; recovery writes how it ended.
placement::move_record record_of(const adopt_view& v, const adoption& what, const std::string& id) {
    placement::move_record out;
    out.id = id;
    out.tool = what.tool;
    out.to = what.home;
    out.from = what.home == home_kind::engine ? home_kind::postgres : home_kind::engine;
    out.epoch = v.highest;
    out.phase = std::string(to_string(phase::commit));
    out.outcome = adopting_outcome;
    out.ordered_by = what.ordered_by;
    out.reason = fmt::format("{} is adopted", policy::to_string(what.home));
    return out;
}

// What earlier moves left is settled by the new epoch: their journals end here.
void close_earlier(context& with, const adopt_view& v, home_kind home) {
    auto open = v.open;
    if (home == home_kind::engine && !v.copies.empty())
        if (auto kept = with.around.store.move(v.copy_of);
            kept && *kept && (*kept)->outcome == "done")
            open.push_back(**kept);
    for (auto& r : open) {
        r.outcome = "undone";
        r.reason += (r.reason.empty() ? "" : "; ") +
                    fmt::format("an operator adopted {}", policy::to_string(home));
        if (r.ended == policy::time_point{}) r.ended = with.around.now();
        static_cast<void>(write_journal(with, r));
    }
}

// The one statement that decides is the COMMIT in here. true: it happened.
answer<bool> flip(context& with, adopt_view& v, const adoption& what, const std::string& id) {
    v.postgres->set_deadline(with.limit.statement);
    auto expected = v.mark;
    marker next = next_marker(v, what.home, id);
    next.schema = schema_of(with.tool.settings);
    // In a fleet: whoever led before can change nothing here from now on.
    if (expected) {
        if (auto mine = claim(with, *v.postgres, expected->leader); !mine)
            return tl::unexpected(mine.error());
        next.leader = expected->leader;
    } else if (auto* const others = with.around.others) {
        const auto mine = others->number_above(0);
        if (!mine) return tl::unexpected(link_error{"", mine.error(), fate::refused});
        next.leader = *mine;
    }
    const pg_job job{*v.postgres, with.limit.lock};
    if (what.home == home_kind::postgres)
        return adopt_postgres(job, with.tool.name, expected, next);
    return adopt_engine(job, with.tool.name, expected, next, id, names_of(v.at_postgres));
}

}  // namespace

std::vector<refusal> why_not_adopt(const adopt_view& v,
                                   home_kind home,
                                   const placement::route& now) {
    std::vector<refusal> out;
    // Served, but the marker would lead the next move astray: adopting the engine raises it.
    const bool lags = home == home_kind::engine && now.at.kind == home_kind::engine && v.mark &&
                      v.stored && v.mark->epoch < v.stored->epoch;
    if (now.served && !lags)
        out.push_back(
            {"served",
             fmt::format(
                 "the tool is served at {}, epoch {}", policy::to_string(now.at.kind), now.epoch),
             "`hotlane route` moves it"});
    home == home_kind::engine ? refuse_engine(v, out) : refuse_postgres(v, out);
    return out;
}

std::vector<std::string> what_may_be_missing(const adopt_view& v, home_kind home) {
    const auto seen_at = [&](home_kind at) {
        return v.stored && v.stored->home == at
                   ? fmt::format(" (the store knows epoch {} there)", v.stored->epoch)
                   : std::string();
    };
    if (home == home_kind::postgres)
        return {
            fmt::format("every write that was acknowledged after PostgreSQL's data was as it is "
                        "now: its marker has epoch {}, and {} is the highest that is known{}",
                        v.mark ? std::to_string(v.mark->epoch) : "none",
                        v.highest,
                        seen_at(home_kind::postgres))};
    if (!v.copies.empty())
        return {
            fmt::format("every write that PostgreSQL acknowledged since move {} fenced the "
                        "engine{}",
                        v.copy_of,
                        seen_at(home_kind::postgres))};
    if (v.stored && v.stored->home == home_kind::engine)
        return {"nothing that is known of: the engine served last"};
    return {fmt::format("every write that PostgreSQL acknowledged since the tool left the engine{}",
                        seen_at(home_kind::postgres))};
}

void end_adoptions(context& with, std::uint64_t epoch) {
    constexpr std::size_t moves_looked_at = 50;
    const auto recent = with.around.store.recent_moves(moves_looked_at);
    if (!recent) return;
    for (auto r : *recent) {
        if (r.tool != with.tool.name || r.outcome != adopting_outcome) continue;
        r.outcome = epoch > r.epoch ? std::string(adopted_outcome) : "undone";
        r.ended = with.around.now();
        static_cast<void>(write_journal(with, r));
    }
}

// Where the process can end, and what is known then:
//   before the journal is written    nothing was changed
//   before the COMMIT of flip()      nothing was changed at a home: nobody serves, as before
//   its reply lost                   the marker says what happened; recovery reads it
//   behind it                        the marker has the highest epoch there is, and names the
//   copies
//                                    that the engine is to open: recovery opens them, tells the
//                                    store, and sets the route
// PostgreSQL accepts nothing from the COMMIT on (or, adopted, from then on), and the engine takes
// writes only where its tables stand under their names, which only its adoption brings about.
adopted adopt_with(context& with, const adoption& what, const std::string& id) {
    adopted out;
    auto seen = look_to_adopt(with);
    if (!seen) {
        out.refusals.push_back(seen.error());
        return out;
    }
    out.detail = to_json(*seen);
    out.detail["new_epoch"] = seen->highest + 1;
    out.detail["steps"] = steps_of(*seen, what.home);
    out.detail["may_be_missing"] = what_may_be_missing(*seen, what.home);
    out.refusals = why_not_adopt(*seen, what.home, *with.tool.current());
    if (!out.refusals.empty() || !what.execute) return out;
    auto record = record_of(*seen, what, id);
    record.started = with.around.now();
    record.plan = {{"detail", out.detail}};
    if (!write_journal(with, record)) {
        out.refusals.push_back({"journal_failed",
                                "the journal cannot be written",
                                "make room for the state file, or mend its disk"});
        return out;
    }
    const auto flipped = flip(with, *seen, what, id);
    const auto last = seen->highest + 1;
    if (!flipped)
        out.refusals.push_back(home_failed(home_kind::postgres, "adopting", flipped.error()));
    else if (!*flipped)
        out.refusals.push_back({"another_move",
                                "the marker at the PostgreSQL home changed meanwhile",
                                "look again; another hotlane may be at work"});
    else
        close_earlier(with, *seen, what.home);
    seen->postgres.reset();  // a transaction that is left open ends with it
    out.done = recover_tool(with) && with.tool.current()->epoch >= last;
    if (out.done) out.refusals.clear();
    if (!with.tool.current()->served) out.detail["waits_for"] = with.tool.current()->reason;
    return out;
}

}  // namespace hotlane::move
