#include "router/move/ahead_back.hpp"

#include <fmt/format.h>

#include "router/move/ahead_parts.hpp"
#include "router/move/names.hpp"
#include "router/move/postgres_home.hpp"

namespace hotlane::move {
namespace {

using std::chrono::milliseconds;

// "could not open relation": it was dropped while the catalog was read.
constexpr std::string_view vanished_meanwhile = "XX000";
constexpr std::size_t passes_shown = 20;
// The engine takes about 25,000 rows/s in INSERTs of 1,000 (engine-facts); half of it is assumed.
constexpr std::uint64_t insert_rows_per_second = 12'000;
constexpr milliseconds hold_per_table{60}, hold_at_least{60};

}  // namespace

milliseconds held_copy_time(std::uint64_t rows) noexcept {
    return milliseconds(rows * 1'000 / insert_rows_per_second);
}

milliseconds held_move_time(std::size_t tables) noexcept {
    return hold_at_least + hold_per_table * static_cast<int>(tables);
}

ahead_back::ahead_back(active_move& m, ahead_limits limits)
    : m_(m), limits_(limits), changes_(*m.changes) {}

outcome ahead_back::run() {
    begun_ = looked_at_ = steady::now();
    const plan& p = m_.made();
    m_.postgres().set_deadline(m_.with.limit.statement);
    m_.engine().set_deadline(limits_.engine_statement);
    for (std::size_t i = 0; i < p.tables.size(); ++i) {
        staged_table t;
        t.name = engine_name(p.move, part::staged, i);
        t.followed = changes_.tables()[i].why_not.empty();
        if (t.followed) changes_.feed().count_whole(i);
        tables_.push_back(std::move(t));
    }
    for (const auto step : {&ahead_back::first_passes, &ahead_back::passes})
        if (auto went = (this->*step)(); !went) return went;
    reader_.reset();
    return may_go_on(m_);
}

outcome ahead_back::in_time() const {
    if (since(begun_) < limits_.all) return {};
    return tl::unexpected(
        refusal{"ahead_too_long",
                fmt::format("the copy ahead of the hold took {} s",
                            std::chrono::duration_cast<std::chrono::seconds>(limits_.all).count()),
                "move when less is written"});
}

// Until every table was copied as a whole once; then all is read back.
outcome ahead_back::first_passes() {
    pass_figures figures;
    do {
        figures = {};
        if (auto went = pass(figures); !went) return went;
        if (auto late = in_time(); !late) return late;
    } while (figures.yielded);
    return read_all_back();
}

outcome ahead_back::passes() {
    pass_figures last;
    auto& shown = m_.found.detail["ahead"]["passes"];
    shown = nlohmann::json::array();
    for (std::size_t n = 0; n < limits_.passes_max; ++n) {
        pass_figures now;
        if (auto went = pass(now); !went) return went;
        if (auto late = in_time(); !late) return late;
        if (shown.size() < passes_shown)
            shown.push_back(
                {{"keys", now.keys}, {"whole_tables", now.whole}, {"ms", now.took.count()}});
        const bool can_shrink =
            n == 0 || static_cast<double>(now.took.count()) <
                          static_cast<double>(last.took.count()) * limits_.shrinks;
        last = now;
        if (now.yielded || now.whole > 0) continue;
        if (now.took <= limits_.short_pass || !can_shrink) break;
    }
    return forecast(last);
}

outcome ahead_back::forecast(const pass_figures& last) {
    const plan& p = m_.made();
    std::uint64_t rows = 0;
    std::string unfollowed;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
        if (tables_[i].followed) continue;
        rows += p.tables[i].rows;
        unfollowed += fmt::format("{}\"{}\" ({})",
                                  unfollowed.empty() ? "" : ", ",
                                  p.tables[i].name,
                                  changes_.tables()[i].why_not);
    }
    auto pause = last.took + held_copy_time(rows) + held_move_time(p.tables.size());
    const auto counted = only_ours();
    if (!counted) return tl::unexpected(counted.error());
    if (!*counted) pause += read_back_took_;
    auto& detail = m_.found.detail["ahead"];
    detail["forecast_ms"] = pause.count();
    detail["copied_under_hold"] = unfollowed;
    detail["read_back_ms"] = read_back_took_.count();
    detail["commits_counted"] = *counted;
    if (pause <= m_.hold_max) return {};
    return tl::unexpected(refusal{
        "hold_forecast",
        fmt::format(
            "what changes while the rows are copied would hold the clients for about {} ms (the "
            "last pass over {} changed rows took {} ms{}); the budget is {} ms",
            pause.count(),
            last.keys,
            last.took.count(),
            unfollowed.empty() ? "" : "; under the hold: " + unfollowed,
            m_.hold_max.count()),
        "raise hold_max of the tool, move when it writes less, or give its tables keys"});
}

outcome ahead_back::go_on() {
    if (auto late = may_go_on(m_); !late) return late;
    if (m_.holding || since(looked_at_) < limits_.look_every) return {};
    return look_around();
}

outcome ahead_back::look_around() {
    if (auto late = in_time(); !late) return late;
    if (auto read = changes_.read_on(); !read) return read;
    if (reader_ && reader_->alive()) {
        const auto waits = changes_.somebody_waits_for(reader_pid_);
        if (!waits) return postgres_failed("looking at locks", waits.error());
        gives_way_ = *waits;
        if (gives_way_)
            return tl::unexpected(refusal{"schema_changed",
                                          "a statement waits for the tables that are read",
                                          "try again when no migration runs"});
    }
    if (auto good = changes_.check(m_.made().schema); !good) return good;
    if (auto same = same_shape(); !same) return same;
    looked_at_ = steady::now();
    return {};
}

// Whoever changes a definition right now holds locks that the question would wait for: the next
// look sees what came of it, and the fence looks once more.
outcome ahead_back::same_shape() {
    if (auto begun = begin(m_.postgres(), m_.with.limit.lock); !begun)
        return postgres_failed("reading the catalog", begun.error());
    const auto shape = postgres_shape(m_.postgres(), m_.made().schema);
    rollback(m_.postgres());
    if (!shape && (shape.error().sqlstate == lock_not_available ||
                   shape.error().sqlstate == vanished_meanwhile))
        return {};
    if (!shape) return postgres_failed("reading the catalog", shape.error());
    if (*shape == m_.found.shape) return {};
    return tl::unexpected(tables_changed());
}

}  // namespace hotlane::move
