#include "router/move/job.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "config/load.hpp"
#include "router/move/engine_home.hpp"
#include "router/move/names.hpp"
#include "router/move/phase.hpp"

namespace hotlane::move {

bool write_journal(context& with, placement::move_record& record) {
    const std::string what =
        fmt::format("journal {} {}", record.phase, record.outcome.empty() ? "-" : record.outcome);
    with.steps.before(what);
    const bool written = with.around.store.put_move(record).has_value();
    with.steps.sent(what);
    if (written && with.around.progress) with.around.progress(record);
    return written;
}

// Until the flip no statement may outlast the hold.
static void bound_statements(active_move& m, phase p) {
    constexpr std::chrono::milliseconds least{100};
    const auto held =
        std::chrono::duration_cast<std::chrono::milliseconds>(steady::now() - m.held_at);
    const bool flipping =
        point_of(p) == journal_point::committing || point_of(p) == journal_point::committed;
    const auto limit = flipping ? m.with.limit.statement : std::max(m.hold_max - held, least);
    if (m.found.engine) m.found.engine->set_deadline(limit);
    if (m.found.postgres) m.found.postgres->set_deadline(limit);
}

outcome enter(active_move& m, phase p) {
    const auto since =
        std::chrono::duration_cast<std::chrono::milliseconds>(steady::now() - m.started);
    m.found.detail["phases"][std::string(to_string(p))] = since.count();
    m.record.phase = std::string(to_string(p));
    if (m.holding) bound_statements(m, p);
    m.record.plan = to_json(m.made());
    m.record.plan["detail"] = m.found.detail;
    if (write_journal(m.with, m.record)) return {};
    return tl::unexpected(
        refusal{"journal_failed",
                fmt::format("the journal cannot be written before {}", m.record.phase),
                "make room for the state file, or mend its disk"});
}

outcome may_go_on(const active_move& m) {
    if (m.with.around.stop && m.with.around.stop->load())
        return tl::unexpected(refusal{"stopped", "hotlane is shutting down", "order it again"});
    if (m.with.around.abort && m.with.around.abort->load())
        return tl::unexpected(refusal{"aborted", "an operator aborted the move", "order it again"});
    if (m.holding && steady::now() - m.held_at > m.hold_max)
        return tl::unexpected(
            refusal{"hold_exceeded",
                    fmt::format("the clients were held for {} ms, the budget", m.hold_max.count()),
                    "raise hold_max, or move when the tables are smaller or the homes faster"});
    return {};
}

// What a home says may quote anything; a report is read as UTF-8.
static std::string readable(std::string text) {
    if (is_valid_utf8(text)) return text;
    for (char& c : text)
        if (static_cast<unsigned char>(c) >= 0x80) c = '?';
    return text;
}

refusal home_failed(policy::home_kind home, std::string_view doing, const link_error& error) {
    const bool engine = home == policy::home_kind::engine;
    return {engine ? "engine_failed" : "postgres_failed",
            fmt::format("{}: {}: {}{}{}",
                        engine ? "engine" : "PostgreSQL",
                        doing,
                        readable(error.message),
                        error.sqlstate.empty() ? "" : " ",
                        error.sqlstate),
            error.what == fate::unknown ? "try again when the home answers"
                                        : "mend what the home complains about"};
}

outcome hold_tool(active_move& m) {
    constexpr std::chrono::milliseconds drain_slice{50};
    if (auto entered = enter(m, phase::hold); !entered) return entered;
    m.held_at = steady::now();
    m.holding = true;
    if (auto* const others = m.with.around.others) {
        const shown_wait shown(m.with.around.live, "every sidecar to hold the tool");
        // An order to stop ends the wait, too.
        const auto held = others->hold(m.record.tool, m.record.id, m.held_at + m.hold_max / 2, [&] {
            return may_go_on(m).has_value();
        });
        if (auto late = may_go_on(m); !late) return late;
        if (held) return {};
        return tl::unexpected(refusal{"drain_timeout",
                                      held.error(),
                                      "move when no long transaction runs and all sidecars answer, "
                                      "or raise hold_max"});
    }
    m.with.tool.gate.hold();
    // In slices, so that an order to stop is heard while a long transaction is waited for.
    const auto patience = m.held_at + m.hold_max / 2;
    for (;;) {
        const shown_wait shown(
            m.with.around.live,
            fmt::format("{} open transactions to end", m.with.tool.gate.inside()));
        if (m.with.tool.gate.drain(std::min(patience, steady::now() + drain_slice)))
            return may_go_on(m);
        if (auto late = may_go_on(m); !late) return late;
        if (steady::now() >= patience) break;
    }
    return tl::unexpected(refusal{"drain_timeout",
                                  fmt::format("{} transactions were still open after {} ms",
                                              m.with.tool.gate.inside(),
                                              (m.hold_max / 2).count()),
                                  "move when no long transaction runs, or raise hold_max"});
}

answer<void> claim(context& with, home_link& postgres, std::uint64_t& number) {
    constexpr int tries_max = 3;  // another leader may claim meanwhile, and then we lead no more
    number = 0;
    auto* const others = with.around.others;
    if (!others) return {};
    std::uint64_t seen = 0;
    for (int i = 0; i < tries_max; ++i) {
        const auto mine = others->number_above(seen);
        if (!mine) return tl::unexpected(link_error{"", mine.error(), fate::refused});
        const auto claimed = claim_marker(postgres, with.tool.name, *mine, seen);
        if (!claimed) return tl::unexpected(claimed.error());
        if (*claimed) {
            number = *mine;
            return {};
        }
        if (seen == 0) return {};  // no row yet: nothing that anybody could change
    }
    return tl::unexpected(
        link_error{"", "another leader works on this tool's marker", fate::refused});
}

outcome try_levers(active_move& m) {
    const std::string a = engine_name(m.made().move, part::probe, 0);
    const std::string b = engine_name(m.made().move, part::probe, 1);
    const auto failed = [](std::string what) {
        return tl::unexpected(refusal{"levers_failed",
                                      "the engine " + std::move(what),
                                      "this engine cannot fence a table; keep the tool on it"});
    };
    home_link& engine = m.engine();
    if (auto made = create_tombstone(engine, a, m.made().epoch + 1); !made)
        return failed("makes no tombstone: " + made.error().message);
    if (auto moved = rename_table(engine, a, b); !moved)
        return failed("does not rename: " + moved.error().message);
    if (auto hit = engine.exec("INSERT INTO " + a + " VALUES (1)"))
        return failed("accepts a write under a name that was renamed away");
    else if (hit.error().what == fate::unknown)
        return failed("does not answer: " + hit.error().message);
    if (auto hit = engine.exec("INSERT INTO " + b + " DEFAULT VALUES"))
        return failed("accepts a row in a tombstone");
    else if (hit.error().what == fate::unknown)
        return failed("does not answer: " + hit.error().message);
    if (auto moved = rename_table(engine, b, a); !moved)
        return failed("does not rename back: " + moved.error().message);
    if (auto dropped = drop_table(engine, a); !dropped)
        return failed("does not drop: " + dropped.error().message);
    return {};
}

std::string schema_of(const config::tool& t) {
    return !t.postgres || t.postgres->schema.empty() ? "public" : t.postgres->schema;
}

placement::home client_home(const config::model& model,
                            const config::tool& t,
                            policy::home_kind k) {
    placement::home out;
    out.kind = k;
    if (k == policy::home_kind::engine) {
        out.at = t.engine.at;
        out.database = t.engine.database;
        out.user = t.engine.user;
        return out;
    }
    if (!t.postgres) return out;
    const auto server = model.postgres.find(t.postgres->server);
    if (server != model.postgres.end()) out.at = server->second.at;
    out.database = t.postgres->database.empty() ? t.name : t.postgres->database;
    out.user = t.postgres->role;
    out.search_path = t.postgres->schema;
    if (auto secret = config::read_secret(t.postgres->password)) out.password = *secret;
    return out;
}

placement::home admin_home(const config::model& model, const config::tool& t, policy::home_kind k) {
    placement::home out = client_home(model, t, k);
    if (k == policy::home_kind::engine) {
        // The engine checks neither; libpq wants both.
        if (out.user.empty()) out.user = "hotlane";
        if (out.database.empty()) out.database = t.name;
        return out;
    }
    if (!t.postgres) return out;
    const auto server = model.postgres.find(t.postgres->server);
    if (server == model.postgres.end()) return out;
    out.user = server->second.admin_user;
    out.password.clear();
    if (auto secret = config::read_secret(server->second.admin_password)) out.password = *secret;
    return out;
}

}  // namespace hotlane::move
