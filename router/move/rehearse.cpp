// The rehearsal: every statement seen lately, prepared and described at the new home as the tool's
// role, against the staged tables under their real names. Nothing is run, nothing is held, nothing
// stays: at PostgreSQL it all happens in one transaction that is rolled back, and in it the staged
// tables already stand where the flip will put them. The engine's staged tables have names of their
// own, so there the statements are written for those.
//
// A lost reply here means a dead link and the end of the move, before anything was fenced.
#include <fmt/format.h>
#include <map>

#include "router/move/engine_home.hpp"
#include "router/move/job.hpp"
#include "router/move/names.hpp"
#include "router/move/postgres_home.hpp"
#include "router/move/rehearsal.hpp"
#include "router/sql/rehearse.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;

constexpr std::size_t refusals_shown = 10;
constexpr std::string_view back_to_start = "ROLLBACK TO SAVEPOINT hotlane_rehearsal";

// Refused: the home's own words. Any other end of a link ends the move.
using told = tl::expected<description, link_error>;

told ask_postgres(active_move& m, const piece& one) {
    auto answer = m.postgres().describe(one.sql, one.types);
    if (answer || answer.error().what == fate::unknown) return answer;
    if (auto undone = send(m.postgres(), std::string(back_to_start)); !undone)
        return tl::unexpected(link_error{"", undone.error().message, fate::unknown});
    return answer;
}

told ask_engine(active_move& m, const piece& one) {
    return m.engine().describe(one.sql, one.types);
}

// The statement as it must be written for the engine's staged tables.
std::optional<piece> for_staging(const active_move& m, const piece& one) {
    const plan& p = m.found.made;
    std::map<std::string, std::string> names;
    for (std::size_t i = 0; i < p.tables.size(); ++i)
        names.emplace(p.tables[i].name, engine_name(p.move, part::staged, i));
    auto text = sql::with_tables(one.sql, names);
    if (!text) return std::nullopt;
    piece out = one;
    out.sql = std::move(*text);
    return out;
}

// One statement at both homes. An error: a home did not answer.
outcome rehearse_one(active_move& m, const piece& one, rehearsal& r) {
    const bool out = m.made().to == home_kind::postgres;
    const auto written = out ? std::optional<piece>(one) : for_staging(m, one);
    if (!written) {
        note(r, one, heard::unwritable);
        return {};
    }
    const auto was = out ? ask_engine(m, one) : ask_postgres(m, one);
    const auto will_be = out ? ask_postgres(m, *written) : ask_engine(m, *written);
    for (const auto* answer : {&was, &will_be})
        if (!*answer && answer->error().what == fate::unknown)
            return tl::unexpected(home_failed(
                answer == &was ? m.made().from : m.made().to, "rehearsing", answer->error()));
    ++r.rehearsed;
    const auto what = judge(one, was.has_value(), will_be.has_value());
    note(r, one, what);
    if (what == heard::refused && r.refusals.size() < refusals_shown)
        r.refusals.push_back(refusal_of(one, m.made().to, will_be.error()));
    else if (what == heard::refused)
        ++r.more;
    if (was && will_be) note(r, compare(one, *was, *will_be));
    return {};
}

outcome rehearse_all(active_move& m, const pieces& from, rehearsal& r) {
    const auto start = steady::now();
    for (const auto& one : from.all) {
        if (steady::now() - start > m.with.limit.rehearse) {
            r.left = from.all.size() - r.rehearsed;
            break;
        }
        if (auto late = may_go_on(m); !late) return late;
        if (auto done = rehearse_one(m, one, r); !done) return done;
    }
    return {};
}

// The transaction at PostgreSQL in which statements find what they will find, or what they find.
outcome set_the_stage(active_move& m, answer<bool> (*begin_out)(pg_job, const plan&)) {
    const auto failed = [](const link_error& e) {
        return tl::unexpected(home_failed(home_kind::postgres, "preparing the rehearsal", e));
    };
    auto ready = m.made().to == home_kind::postgres
                     ? begin_out({m.postgres(), m.with.limit.lock}, m.made())
                     : begin_as_role({m.postgres(), m.with.limit.lock}, m.made());
    if (!ready) return failed(ready.error());
    if (!*ready)
        return tl::unexpected(refusal{"another_move",
                                      "the marker at the PostgreSQL home changed meanwhile",
                                      "see `hotlane moves`; another hotlane may be at work"});
    if (auto set = send(m.postgres(), "SAVEPOINT hotlane_rehearsal"); !set)
        return failed(set.error());
    return {};
}

outcome run_rehearsal(active_move& m,
                      const pieces& from,
                      rehearsal& r,
                      answer<bool> (*begin_out)(pg_job, const plan&)) {
    if (from.all.empty()) return {};
    auto went = set_the_stage(m, begin_out);
    if (went) went = rehearse_all(m, from, r);
    if (m.postgres().alive()) rollback(m.postgres());
    return went;
}

// What a dry run makes on the engine is journalled first, so that it is dropped later if we cannot.
outcome note_scratch(active_move& m) {
    const plan& p = m.made();
    m.record.id = p.move;
    m.record.tool = p.tool;
    m.record.from = p.from;
    m.record.to = p.to;
    m.record.epoch = p.epoch;
    m.record.phase = std::string(to_string(phase::rehearse));
    m.record.outcome = std::string(dry_run_outcome);
    m.record.reason = "scratch tables of a dry run";
    m.record.started = m.record.ended = m.with.around.now();
    m.record.plan = to_json(p);
    if (!note_own_work(m.with) || !write_journal(m.with, m.record))
        return tl::unexpected(refusal{"journal_failed",
                                      "the journal cannot be written before the rehearsal",
                                      "make room for the state file, or mend its disk"});
    return {};
}

// A dry run of a move back: tables under staging names for as long as it takes.
outcome make_scratch(active_move& m) {
    const plan& p = m.made();
    for (std::size_t i = 0; i < p.tables.size(); ++i) {
        const auto name = engine_name(p.move, part::staged, i);
        if (auto made = send(m.engine(), engine_create_table(p.tables[i], name)); !made)
            return tl::unexpected(home_failed(
                home_kind::engine, "making a scratch table of " + p.tables[i].name, made.error()));
    }
    return {};
}

void drop_scratch(active_move& m) {
    for (std::size_t i = 0; i < m.made().tables.size() && m.engine().alive(); ++i)
        static_cast<void>(drop_table(m.engine(), engine_name(m.made().move, part::staged, i)));
}

}  // namespace

void rehearse_trial(active_move& m) {
    const auto seen = m.with.tool.statements.lately(m.with.around.now());
    const auto from = take_apart(seen, m.made());
    rehearsal r;
    r.seen = seen.size();
    const bool scratch = m.made().to == home_kind::engine && !from.all.empty();
    auto went = note_scratch(m);
    if (went) went = try_levers(m);
    if (went && scratch) went = make_scratch(m);
    if (went) went = run_rehearsal(m, from, r, &begin_as_made);
    if (scratch) drop_scratch(m);
    m.found.detail["rehearsal"] = to_json(r, from);
    if (!went) m.found.refusals.push_back(went.error());
    if (m.with.tool.settings.rehearse == config::rehearse_rule::report) return;
    m.found.refusals.insert(m.found.refusals.end(), r.refusals.begin(), r.refusals.end());
}

outcome rehearse_statements(active_move& m) {
    if (auto entered = enter(m, phase::rehearse); !entered) return entered;
    const auto seen = m.with.tool.statements.lately(m.with.around.now());
    const auto from = take_apart(seen, m.made());
    rehearsal r;
    r.seen = seen.size();
    const auto went = run_rehearsal(m, from, r, &begin_as_flipped);
    m.found.detail["rehearsal"] = to_json(r, from);
    if (!went) return went;
    if (r.refusals.empty() || m.with.tool.settings.rehearse == config::rehearse_rule::report)
        return may_go_on(m);
    const refusal first = r.refusals.front();
    m.found.refusals.assign(r.refusals.begin() + 1, r.refusals.end());
    return tl::unexpected(first);
}

}  // namespace hotlane::move
