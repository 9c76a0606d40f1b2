#include "router/move/ahead.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <thread>

#include "router/move/copy.hpp"
#include "router/move/engine_home.hpp"
#include "router/move/names.hpp"
#include "router/move/postgres_home.hpp"
#include "router/move/preflight.hpp"
#include "router/move/schema.hpp"
#include "router/sql/facts.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// The hold that makes the first count exact: a client waits for at most both of these.
constexpr milliseconds point_drain{100}, point_statement{500};
constexpr int point_tries = 4;
constexpr milliseconds point_pause{200};  // between two tries
// Sums that cannot come out (a lost reply, somebody else's commit) are begun anew.
constexpr int passes_max = 2;
// Tables that were written to since they were read are read again, while that helps.
constexpr int rounds_max = 3;
// What pipelines may have committed beyond one commit a session.
constexpr std::uint64_t pipelined_slack = 32;
constexpr std::uint64_t rows_between_looks = 1'000;

microseconds since(steady::time_point start) {
    return std::chrono::duration_cast<microseconds>(steady::now() - start);
}

tl::unexpected<refusal> engine_failed(std::string_view doing, const link_error& e) {
    return tl::unexpected(home_failed(home_kind::engine, doing, e));
}
tl::unexpected<refusal> postgres_failed(std::string_view doing, const link_error& e) {
    return tl::unexpected(home_failed(home_kind::postgres, doing, e));
}
tl::unexpected<refusal> schema_changed(std::string what) {
    return tl::unexpected(
        refusal{"schema_changed", std::move(what), "try again when no migration runs"});
}

class short_hold {
  public:
    explicit short_hold(placement::gate& gate) : gate_(gate) { gate_.hold(); }
    ~short_hold() { gate_.release(); }
    short_hold(const short_hold&) = delete;
    short_hold& operator=(const short_hold&) = delete;

  private:
    placement::gate& gate_;
};

// Where nothing of the tool is under way the engine's count is where all sessions begin to count.
// True: it was such a moment. Otherwise the watch begins all the same, for the forecast.
tl::expected<bool, refusal> try_to_begin(active_move& m) {
    auto& tool = m.with.tool;
    const auto start = steady::now();
    answer<std::optional<engine_count>> count{std::nullopt};
    bool still = false;
    {
        const short_hold held(tool.gate);
        still = tool.gate.drain(start + point_drain);
        m.engine().set_deadline(point_statement);
        if (still) count = read_count(m.engine());
        tool.changes.begin(m.made().names());
    }
    m.ahead.point = std::max(m.ahead.point, since(start));
    m.engine().set_deadline(m.with.limit.scan);
    if (!count) return engine_failed("reading its counters", count.error());
    m.ahead.counted.begin = *count;
    return still;
}

outcome begin_watch(active_move& m) {
    for (int i = 0; i < point_tries; ++i) {
        if (i > 0) std::this_thread::sleep_for(point_pause);
        if (auto late = may_go_on(m); !late) return late;
        const auto begun = try_to_begin(m);
        if (!begun) return tl::unexpected(begun.error());
        if (*begun) break;
    }
    return {};
}

// Every table still has the columns of the plan, and none has come.
outcome same_tables(active_move& m) {
    if (m.with.tool.changes.now().ddl)
        return schema_changed("DDL of the tool passed while its rows were copied");
    auto catalog = read_engine_catalog(m.engine());
    if (!catalog) return engine_failed("reading the catalog", catalog.error());
    for (const auto& t : m.made().tables) {
        const auto at = catalog->find(t.name);
        bool same = at != catalog->end() && at->second.size() == t.columns.size();
        for (std::size_t c = 0; same && c < t.columns.size(); ++c)
            same = at->second[c].name == t.columns[c].name &&
                   at->second[c].type == to_string(t.columns[c].type);
        if (!same)
            return schema_changed(fmt::format("table \"{}\" was changed since preflight", t.name));
        catalog->erase(at);
    }
    for (const auto& [name, columns] : *catalog)
        if (!is_own_name(name))
            return schema_changed(fmt::format("table \"{}\" was made since preflight", name));
    return {};
}

// `lock`: the marker's row, which belongs to a step that decides. A copy ahead could hold it for
// hours, and a new leader must not wait for it: rows that come too late are in tables that nobody
// gives a name any more.
outcome begin_filling(active_move& m, bool lock) {
    if (auto begun = begin(m.postgres(), m.with.limit.lock); !begun)
        return postgres_failed("copying", begun.error());
    auto now = read_marker(m.postgres(), m.made().tool, lock);
    if (!now) return postgres_failed("reading the marker", now.error());
    if (!*now || (*now)->state != marker_state::staging || (*now)->move != m.made().move)
        return tl::unexpected(refusal{"another_move",
                                      "the marker at the PostgreSQL home changed meanwhile",
                                      "see `hotlane moves`; another hotlane may be at work"});
    return {};
}

outcome say(active_move& m, std::string_view doing, const std::string& sql) {
    if (auto sent = send(m.postgres(), sql); !sent) return postgres_failed(doing, sent.error());
    return {};
}

// Rows and numbers of one table into its staged one, in the transaction that is open.
outcome fill(active_move& m, table& t, const std::string& from, bool again) {
    const std::string schema = staging_schema(m.made().move);
    if (again)
        if (auto emptied = say(m, "emptying " + t.name, empty_staged(t, schema)); !emptied)
            return emptied;
    if (auto copied = copy_table_out(m, t, from, schema); !copied) return copied;
    const auto next = postgres_set_identity(t, schema);
    return next.empty() ? outcome{} : say(m, "numbering " + t.name, next);
}

outcome copy_one(active_move& m, std::size_t i, bool again) {
    table& t = m.made().tables[i];
    const auto start = steady::now();
    if (auto open = begin_filling(m, false); !open) return open;
    if (!again)
        if (auto calm =
                say(m, "preparing " + t.name, leave_alone(t, staging_schema(m.made().move)));
            !calm)
            return calm;
    // Before its read begins: what is told from here on may not be in it.
    m.with.tool.changes.forget(i);
    if (auto filled = fill(m, t, t.name, again); !filled) return filled;
    if (auto done = commit(m.postgres()); !done)
        return postgres_failed("committing the copy of " + t.name, done.error());
    m.ahead.times[i].copied = since(start);
    if (m.with.tool.changes.now().ddl) return same_tables(m);
    return may_go_on(m);
}

outcome verify_one(active_move& m, std::size_t i) {
    const auto start = steady::now();
    auto same =
        verify_table(m, m.made().tables[i], home_kind::postgres, staging_schema(m.made().move));
    if (!same) return same;
    m.ahead.times[i].verified = since(start);
    return may_go_on(m);
}

// Whether every commit so far was seen: exactly, in a moment when nothing of the tool is under way;
// without such a moment as far as can be told.
tl::expected<bool, refusal> is_complete(active_move& m) {
    auto& tool = m.with.tool;
    commit_sums now = m.ahead.counted;
    if (!now.begin) return false;
    const auto start = steady::now();
    answer<std::optional<engine_count>> count{std::nullopt};
    bool still = false;
    std::int64_t inside = 0;
    {
        const short_hold held(tool.gate);
        still = tool.gate.drain(start + point_drain);
        inside = std::max<std::int64_t>(0, tool.gate.inside());
        m.engine().set_deadline(point_statement);
        count = read_count(m.engine());
        now.seen = tool.changes.now().commits;
    }
    m.ahead.point = std::max(m.ahead.point, since(start));
    m.engine().set_deadline(m.with.limit.scan);
    if (!count) return engine_failed("reading its counters", count.error());
    now.fence = *count;
    if (still || !now.fence || now.fence->commits < now.begin->commits) return all_was_seen(now);
    return now.fence->commits - now.begin->commits <=
           now.seen + static_cast<std::uint64_t>(inside) + pipelined_slack;
}

milliseconds forecast_now(active_move& m, bool all_seen) {
    const auto seen = m.with.tool.changes.now();
    for (std::size_t i = 0; i < m.ahead.times.size(); ++i)
        m.ahead.times[i].changed = seen.changed[i];
    return forecast_pause(m.ahead.times, all_seen);
}

outcome one_pass(active_move& m, bool again) {
    if (auto begun = begin_watch(m); !begun) return begun;
    for (std::size_t i = 0; i < m.made().tables.size(); ++i)
        if (auto copied = copy_one(m, i, again); !copied) return copied;
    for (std::size_t i = 0; i < m.made().tables.size(); ++i)
        if (auto same = verify_one(m, i); !same) return same;
    return {};
}

// A large table that is seldom written to was perhaps written to once.
outcome catch_up(active_move& m) {
    for (int round = 0; round < rounds_max; ++round) {
        const auto before = forecast_now(m, true);
        if (before <= held_copy_short) return {};
        for (std::size_t i = 0; i < m.ahead.times.size(); ++i) {
            if (!m.ahead.times[i].changed) continue;
            if (auto copied = copy_one(m, i, true); !copied) return copied;
            if (auto same = verify_one(m, i); !same) return same;
        }
        constexpr int enough = 10;  // per cent
        if (forecast_now(m, true) * 100 > before * (100 - enough)) return {};
    }
    return {};
}

std::string changed_names(active_move& m) {
    std::string out;
    for (std::size_t i = 0; i < m.ahead.times.size(); ++i)
        if (m.ahead.times[i].changed)
            out += fmt::format("{}{} ({} rows)",
                               out.empty() ? "" : ", ",
                               m.made().tables[i].name,
                               m.made().tables[i].rows);
    return out.empty() ? "nothing" : out;
}

// Above the budget the move ends here, and its tool was never held.
outcome check_forecast(active_move& m, bool all_seen) {
    const auto pause = forecast_now(m, all_seen);
    m.found.detail["ahead"]["forecast_ms"] = pause.count();
    if (pause <= m.hold_max) return {};
    return tl::unexpected(refusal{
        "hold_forecast",
        fmt::format("bringing over what changed while the rows were copied would hold the clients "
                    "for about {} ms; the budget is {} ms; {}",
                    pause.count(),
                    m.hold_max.count(),
                    all_seen ? "written to: " + changed_names(m)
                             : "not every commit was seen passing, so that all tables must be read "
                               "again"),
        all_seen ? "raise hold_max of the tool, or move when its large tables are not written to"
                 : "raise hold_max of the tool, or find who writes round hotlane"});
}

void describe(active_move& m, bool all_seen) {
    const auto seen = m.with.tool.changes.now();
    auto changed = nlohmann::json::array();
    for (std::size_t i = 0; i < seen.changed.size(); ++i)
        if (seen.changed[i]) changed.push_back(m.made().tables[i].name);
    auto& shown = m.found.detail["ahead"];
    shown["point_ms"] = std::chrono::duration_cast<milliseconds>(m.ahead.point).count();
    shown["commits_seen"] = seen.commits;
    shown["all_seen"] = all_seen;
    shown["changed"] = std::move(changed);
}

// Behind the fence it may turn out that more must be read than was foreseen: better undone now than
// when the clients have waited for all of the budget.
outcome fits_the_rest(active_move& m, bool all_seen) {
    const auto left =
        m.hold_max - std::chrono::duration_cast<milliseconds>(steady::now() - m.held_at);
    const std::vector<table_times> nothing(m.ahead.times.size());
    const auto pause = forecast_now(m, all_seen) - forecast_pause(nothing, true);  // rows alone
    if (pause <= left) return {};
    return tl::unexpected(refusal{
        "hold_forecast",
        fmt::format("what is left would take about {} ms, and {} ms are left of the budget; {}",
                    pause.count(),
                    left.count(),
                    all_seen ? "written to: " + changed_names(m)
                             : "not every commit was seen passing, so that all tables must be read "
                               "again"),
        "raise hold_max of the tool, or find who writes round hotlane"});
}

// The same sum over as many rows: the copy is what the fenced table holds.
tl::expected<bool, refusal> equals_copy(active_move& m, const table& t, const std::string& fenced) {
    const auto types = t.types();
    table_digest sum(m.made().seed);
    shown_pass shown(m.with.around.live, "comparing " + t.name, t.rows);
    outcome still;
    const auto read = read_engine_rows(
        m.engine(),
        t,
        fenced,
        [&](const std::vector<value>& values) {
            shown.count();
            sum.add(types, values);
            if (sum.rows() % rows_between_looks == 0) still = may_go_on(m);
            return still.has_value();
        },
        [&](refusal bad) {
            still = tl::unexpected(std::move(bad));
            return false;
        });
    if (!still) return tl::unexpected(still.error());
    if (!read) return engine_failed("reading " + t.name, read.error());
    return sum.rows() == t.rows && sum.sum() == t.sum;
}

// What has become of one table under the hold. Unchanged: what was copied and verified before it
// is what the fenced table holds, by the sums or by the comparison.
outcome settle_one(active_move& m, std::size_t i, bool changed, bool all_seen) {
    table& t = m.made().tables[i];
    const auto fenced = engine_name(m.made().move, part::fenced, i);
    if (!changed) {
        if (all_seen) return {};
        const auto same = equals_copy(m, t, fenced);
        if (!same) return tl::unexpected(same.error());
        if (*same) return {};
    }
    m.ahead.settled[i] = true;
    if (auto filled = fill(m, t, fenced, true); !filled) return filled;
    return may_go_on(m);
}

}  // namespace

outcome copy_ahead(active_move& m) {
    if (auto entered = enter(m, phase::ahead); !entered) return entered;
    m.ahead.times.assign(m.made().tables.size(), {});
    m.engine().set_deadline(m.with.limit.scan);
    m.postgres().set_deadline(m.with.limit.scan);
    bool all_seen = false;
    for (int pass = 0; pass < passes_max && !all_seen; ++pass) {
        m.found.detail["ahead"]["passes"] = pass + 1;
        if (auto copied = one_pass(m, pass > 0); !copied) return copied;
        if (auto caught = catch_up(m); !caught) return caught;
        const auto complete = is_complete(m);
        if (!complete) return tl::unexpected(complete.error());
        all_seen = *complete;
    }
    if (auto same = same_tables(m); !same) return same;
    describe(m, all_seen);
    if (auto fits = check_forecast(m, all_seen); !fits) return fits;
    m.engine().set_deadline(m.with.limit.statement);
    m.postgres().set_deadline(m.with.limit.statement);
    return may_go_on(m);
}

outcome count_at_fence(active_move& m) {
    auto count = read_count(m.engine());
    if (!count) return engine_failed("reading its counters", count.error());
    m.ahead.counted.fence = *count;
    m.ahead.counted.own_ddl = 2 * m.made().tables.size();
    return {};
}

outcome settle_changes(active_move& m) {
    if (auto entered = enter(m, phase::settle); !entered) return entered;
    // The gate is drained: every session has told what it wrote.
    const auto seen = m.with.tool.changes.now();
    m.ahead.counted.seen = seen.commits;
    const bool all_seen = all_was_seen(m.ahead.counted);
    describe(m, all_seen);
    if (auto fits = fits_the_rest(m, all_seen); !fits) return fits;
    m.ahead.settled.assign(m.made().tables.size(), false);
    if (auto open = begin_filling(m, true); !open) return open;
    for (std::size_t i = 0; i < m.made().tables.size(); ++i)
        if (auto done = settle_one(m, i, seen.changed[i], all_seen); !done) return done;
    if (auto done = commit(m.postgres()); !done)
        return postgres_failed("committing what changed", done.error());
    return may_go_on(m);
}

}  // namespace hotlane::move
