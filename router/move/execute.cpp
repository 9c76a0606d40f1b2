// One move from a good preflight to its end, and the route that the data plane sees.
#include <thread>

#include <fmt/format.h>

#include "router/move/decoding.hpp"
#include "router/move/first_sight.hpp"
#include "router/move/job.hpp"
#include "router/move/names.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;
using std::chrono::milliseconds;

constexpr milliseconds settle_least{1'000};

milliseconds since(steady::time_point start) {
    return std::chrono::duration_cast<milliseconds>(steady::now() - start);
}

// The route only changes when it says something else: a new generation makes every session switch.
void set_route(context& with, const settled& s) {
    const auto old = with.tool.current();
    // In a fleet a home that is behind what this sidecar knows was restored: it is not believed.
    if (with.around.others && s.known && old && old->epoch > s.epoch) {
        settled behind;
        behind.reason =
            fmt::format("the homes say epoch {}, and epoch {} was seen here", s.epoch, old->epoch);
        return set_route(with, behind);
    }
    auto next = std::make_shared<placement::route>();
    next->generation = old ? old->generation + 1 : 1;
    next->served = s.known;
    if (s.known) {
        next->epoch = s.epoch;
        next->at = client_home(with.around.model, with.tool.settings, s.where);
        if (old && old->served && old->epoch == s.epoch && old->at.kind == s.where) return;
    } else {
        next->reason = s.reason;
        if (old) next->epoch = old->epoch, next->at = old->at;
        if (old && !old->served && old->reason == s.reason) return;
    }
    with.tool.swap(std::move(next));
}

// After a failed move: asks until the homes tell, then lets go; recover() goes on from there.
settled settle_down(active_move& m) {
    m.changes.reset();
    // Whatever our links hold (locks, a transaction, a COPY) ends with them.
    m.found.engine.reset();
    m.found.postgres.reset();
    const auto start = steady::now();
    // Clients are held: what is left of their patience, and a moment to undo in. Then they are
    // told, and recovery goes on without them.
    const auto longest = m.holding ? std::min(m.with.limit.settle,
                                              std::max(m.hold_max - since(m.held_at), settle_least))
                                   : m.with.limit.settle;
    for (;;) {
        settled s = resolve(m.with, &m.record, journal_of::this_process);
        m.alarms.insert(m.alarms.end(), s.alarms.begin(), s.alarms.end());
        const bool stopped = m.with.around.stop && m.with.around.stop->load();
        if (s.known || stopped || since(start) > longest) return s;
        const shown_wait shown(m.with.around.live, s.reason);
        std::this_thread::sleep_for(m.with.limit.settle_pause);
    }
}

void release(active_move& m, const settled& s) {
    set_route(m.with, s);
    if (!m.holding) return;
    if (auto* const others = m.with.around.others) {
        others->release(m.record.tool, m.record.id);
    } else {
        m.with.tool.gate.release();
    }
    m.found.detail["held_ms"] = since(m.held_at).count();
    m.holding = false;
}

settled finish(active_move& m) {
    settled s;
    s.known = true;
    s.where = m.record.to;
    s.epoch = m.record.epoch + 1;
    s.move = m.record.id;
    m.with.steps.before("journal placement");
    static_cast<void>(m.with.around.store.put_placement(
        {m.record.tool, s.where, s.epoch, m.with.around.now(), s.move}));
    m.with.steps.sent("journal placement");
    release(m, s);
    m.changes.reset();
    m.record.outcome = "done";
    m.record.ended = m.with.around.now();
    for (const auto& alarm : m.alarms)
        m.record.reason += (m.record.reason.empty() ? "" : "; ") + alarm;
    static_cast<void>(enter(m, phase::done));
    return s;
}

void describe_tables(active_move& m, report& out) {
    auto tables = nlohmann::json::array();
    std::uint64_t rows = 0;
    for (const auto& t : m.made().tables) {
        tables.push_back({{"name", t.name}, {"rows", t.rows}, {"checksum", t.sum.hex()}});
        rows += t.rows;
    }
    out.detail["tables"] = std::move(tables);
    out.detail["rows"] = rows;
    if (!m.alarms.empty()) out.detail["alarms"] = m.alarms;
}

// However the move ends, nobody watches what is written any more.
class watch_end {
  public:
    explicit watch_end(placement::change_watch& watch) : watch_(watch) {}
    ~watch_end() {
        if (watch_.number() != 0) watch_.end();
    }
    watch_end(const watch_end&) = delete;
    watch_end& operator=(const watch_end&) = delete;

  private:
    placement::change_watch& watch_;
};

}  // namespace

report execute(context& with, const request& what, findings found, policy::time_point now) {
    active_move m{with, {}, std::move(found), steady::now(), {}, {}, false, {}, {}};
    const plan& p = m.made();
    m.hold_max = std::min(what.hold_max, with.tool.settings.hold_max);
    m.record.id = p.move;
    m.record.tool = p.tool;
    m.record.from = p.from;
    m.record.to = p.to;
    m.record.epoch = p.epoch;
    m.record.ordered_by = what.ordered_by;
    m.record.started = now;
    if (!what.decision.empty()) m.found.detail["decision"] = what.decision;

    const watch_end ends(with.tool.changes);
    report out;
    out.id = p.move;
    out.reverse = fmt::format("hotlane move reverse {}", p.move);
    const auto went = p.to == home_kind::postgres ? move_out(m) : move_back(m);
    const auto held_at = m.held_at;
    const bool was_held = m.holding;
    settled s;
    if (went) {
        s = finish(m);
    } else {
        out.refusals.push_back(went.error());
        // What else the rehearsal found.
        out.refusals.insert(out.refusals.end(), m.found.refusals.begin(), m.found.refusals.end());
        m.record.plan["detail"] = m.found.detail;
        m.record.reason = went.error().code + ": " + went.error().message;
        s = settle_down(m);
        release(m, s);
    }
    if (was_held) out.held = milliseconds(m.found.detail.value("held_ms", since(held_at).count()));
    out.moved = s.known && s.where == what.to;
    if (out.moved) out.refusals.clear();
    out.detail = m.found.detail;
    if (!s.known) out.detail["waits_for"] = s.reason;
    describe_tables(m, out);
    return out;
}

bool recover_tool(context& with) {
    settled s;
    if (!with.tool.settings.postgres) {
        // Such a tool never moved, unless its settings lost their PostgreSQL home.
        auto stored = with.around.store.placement(with.tool.name);
        s.known = stored && (!*stored || (*stored)->home == home_kind::engine);
        s.epoch = stored && *stored ? (*stored)->epoch : 1;
        s.reason = !stored ? "the state store does not answer: " + stored.error().what
                           : "the tool lives on PostgreSQL and its settings name no such home";
        set_route(with, s);
        return s.known;
    }
    auto unfinished = with.around.store.unfinished_moves();
    if (!unfinished) {
        s.reason = "the state store does not answer: " + unfinished.error().what;
    } else {
        placement::move_record* latest = nullptr;
        for (auto& r : *unfinished)
            if (r.tool == with.tool.name && (!latest || latest->id < r.id)) latest = &r;
        s = resolve(with, latest, journal_of::another);
    }
    if (s.known && s.where == policy::home_kind::engine) note_first_sight(with);
    if (s.known) end_adoptions(with, s.epoch);
    set_route(with, s);
    if (s.known && !with.around.others && with.tool.gate.held()) with.tool.gate.release();
    return s.known;
}

}  // namespace hotlane::move
