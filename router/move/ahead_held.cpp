// The rest of a copy that ran ahead (ahead_back.hpp), under the hold, and what is read back of it.
#include <fmt/format.h>
#include <algorithm>

#include "router/move/ahead_back.hpp"
#include "router/move/ahead_parts.hpp"
#include "router/move/engine_home.hpp"
#include "router/move/names.hpp"

namespace hotlane::move {

using std::chrono::milliseconds;

// Before anything is held. The count of commits is read first: what anybody writes meanwhile, even
// behind the reading, is noticed.
outcome ahead_back::read_all_back() {
    const auto start = steady::now();
    const auto commits = read_commits(m_.engine());
    if (!commits) return engine_failed("reading its counters", commits.error());
    commits_then_ = *commits;
    commits_ = 0;
    for (std::size_t i = 0; i < tables_.size(); ++i)
        if (tables_[i].followed)
            if (auto same = read_back(i); !same) return same;
    read_back_took_ = since(start);
    return {};
}

outcome ahead_back::read_back(std::size_t i) {
    const table& t = m_.made().tables[i];
    const auto types = t.types();
    table_digest sum(m_.made().seed);
    shown_pass shown(m_.with.around.live, "verifying " + t.name, t.rows);
    std::optional<refusal> failed;
    const auto on_row = [&](const std::vector<value>& values) {
        shown.count();
        sum.add(types, values);
        if (auto late = go_on(); !late) failed = late.error();
        return !failed;
    };
    const auto on_bad = [&](refusal bad) {
        failed = std::move(bad);
        return false;
    };
    if (!m_.holding) m_.engine().set_deadline(m_.with.limit.scan);
    auto read = read_engine_rows(m_.engine(), t, tables_[i].name, on_row, on_bad);
    if (!m_.holding) m_.engine().set_deadline(limits_.engine_statement);
    if (failed) return tl::unexpected(*failed);
    if (!read) return engine_failed("reading back " + t.name, read.error());
    if (sum.rows() == t.rows && sum.sum() == t.sum) return {};
    return tl::unexpected(
        refusal{"verify_failed",
                fmt::format("table \"{}\": {} rows ({}) were read, the copy has {} rows ({})",
                            t.name,
                            t.rows,
                            t.sum.hex(),
                            sum.rows(),
                            sum.sum().hex()),
                "the tool stays where it was; report the table's types and values"});
}

tl::expected<bool, refusal> ahead_back::only_ours() {
    if (!commits_then_) return false;
    const auto now = read_commits(m_.engine());
    if (!now) return engine_failed("reading its counters", now.error());
    return *now && **now == *commits_then_ + commits_;
}

outcome ahead_back::settle_held() {
    if (auto entered = enter(m_, phase::settle); !entered) return entered;
    const plan& p = m_.made();
    const std::string fenced = fenced_schema(p.move);
    changes_.set_deadline(std::max(m_.hold_max - since(m_.held_at), milliseconds(100)));
    if (auto good = changes_.check(fenced); !good) return good;
    if (auto read = changes_.read_to_mark(); !read) return read;
    // Whoever changed these tables had their locks until every snapshot saw it: the fence waited.
    const auto text = ask_one(m_.postgres(), "SELECT pg_current_snapshot()");
    if (!text) return postgres_failed("reading a snapshot", text.error());
    const auto snapshot = snapshot_view::read(*text);
    if (!snapshot || !changes_.feed().read_at(*snapshot))
        return tl::unexpected(refusal{"decoding_failed",
                                      "a transaction that changed the fenced tables is not over",
                                      "try again"});
    auto changed = changes_.feed().take_pass();
    const rows_from from{m_.postgres(), fenced, [this] { return may_go_on(m_); }};
    for (std::size_t i = 0; i < tables_.size(); ++i) {
        tables_[i].keys.clear();
        tables_[i].settled = {};
        if (!tables_[i].followed || changed[i].whole()) {
            rest_.push_back(i);
        } else if (!changed[i].empty()) {
            if (auto went = settle(i, changed[i].keys(), from); !went) return went;
        }
    }
    return rest_fits();
}

// A table may have come to count whole since the forecast: then nobody is held to the last moment.
outcome ahead_back::rest_fits() const {
    std::uint64_t rows = 0;
    for (const auto i : rest_)
        rows += m_.made().tables[i].rows;
    const auto left = m_.hold_max - since(m_.held_at);
    if (held_copy_time(rows) <= left) return may_go_on(m_);
    return tl::unexpected(refusal{
        "hold_forecast",
        fmt::format("{} rows are left to copy, for about {} ms; {} ms are left of the budget",
                    rows,
                    held_copy_time(rows).count(),
                    left.count()),
        "try again: a table was emptied or written anew just before the hold"});
}

outcome ahead_back::copy_rest() {
    if (rest_.empty()) return {};
    if (auto entered = enter(m_, phase::copy); !entered) return entered;
    const rows_from from{
        m_.postgres(), fenced_schema(m_.made().move), [this] { return may_go_on(m_); }};
    for (const auto i : rest_)
        if (auto copied = copy_whole(i, from); !copied) return copied;
    return may_go_on(m_);
}

outcome ahead_back::verify() {
    if (auto entered = enter(m_, phase::verify); !entered) return entered;
    const plan& p = m_.made();
    for (std::size_t i = 0; i < tables_.size(); ++i) {
        const auto& s = tables_[i];
        if (std::find(rest_.begin(), rest_.end(), i) != rest_.end()) {
            if (auto same = read_back(i); !same) return same;
        } else if (!s.keys.empty()) {
            if (auto same = check_rows(m_, p.tables[i], s.name, s.keys, s.row_bytes, s.settled);
                !same)
                return same;
        }
        if (auto late = may_go_on(m_); !late) return late;
    }
    const auto counted = only_ours();
    if (!counted) return tl::unexpected(counted.error());
    m_.found.detail["ahead"]["read_again"] = !*counted;
    if (*counted) return {};
    for (std::size_t i = 0; i < tables_.size(); ++i)
        if (auto same = read_back(i); !same) return same;
    return may_go_on(m_);
}

}  // namespace hotlane::move
