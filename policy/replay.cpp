#include "policy/replay.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace hotlane::policy {

namespace {

constexpr std::string_view header =
    "t_ms,acquire_total,handoff_total,wait_us_total,commit_total,phase";
// Replays begin here, so that "ago" and "until" have something to stand on.
constexpr time_point replay_start{duration{1'700'000'000'000}};
constexpr duration trace_span_max{100LL * 365 * 86'400'000};

bool read(std::string_view from, std::uint64_t& into) {
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), into);
    return error == std::errc{} && end == from.data() + from.size();
}

bool read_row(std::string_view line, trace_row& into) {
    std::array<std::uint64_t, 5> numbers{};
    for (auto& number : numbers) {
        const auto comma = line.find(',');
        if (comma == std::string_view::npos || !read(line.substr(0, comma), number)) return false;
        line.remove_prefix(comma + 1);
    }
    if (line.empty() || line.find(',') != std::string_view::npos) return false;
    into = {duration{static_cast<std::int64_t>(numbers[0])},
            numbers[1],
            numbers[2],
            numbers[3],
            numbers[4],
            std::string(line)};
    return true;
}

std::uint64_t grown(std::uint64_t before, std::uint64_t after) noexcept {
    return after >= before ? after - before : after;
}

std::uint64_t share(std::uint64_t of, double part) {
    return static_cast<std::uint64_t>(std::llround(static_cast<double>(of) * part));
}

// What the data plane would have counted between two rows of the trace.
void add_traffic(traffic& seen,
                 const trace_row& before,
                 const trace_row& after,
                 const replay_options& options) {
    const auto known = options.reports.find(after.phase);
    const seen_report report = known == options.reports.end() ? seen_report{} : known->second;
    const auto acquires = grown(before.acquires, after.acquires);
    const auto commits = grown(before.commits, after.commits);
    const auto writes = share(acquires, report.seen_share);
    seen.transactions += writes;
    seen.write_transactions += writes;
    if (report.conflicts == conflict_source::aborts && acquires > commits) {
        const auto conflicts = share(acquires - commits, report.seen_share);
        seen.write_conflicts += conflicts;
        seen.errors += conflicts;
    }
}

sample sample_of(const trace_row& row) {
    sample s;
    s.taken_at = replay_start + row.at;
    s.acquires = row.acquires;
    s.handoffs = row.handoffs;
    s.wait_us = row.wait_us;
    s.commits = row.commits;
    return s;
}

}  // namespace

tl::expected<std::vector<trace_row>, std::string> parse_trace(std::string_view csv) {
    std::vector<trace_row> rows;
    for (int number = 1; !csv.empty(); ++number) {
        const auto end = csv.find('\n');
        std::string_view line = csv.substr(0, end);
        csv = end == std::string_view::npos ? std::string_view{} : csv.substr(end + 1);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        if (number == 1) {
            if (line != header)
                return tl::unexpected(fmt::format("line 1: the header must be {}", header));
            continue;
        }
        if (line.empty()) continue;
        trace_row row;
        if (!read_row(line, row))
            return tl::unexpected(
                fmt::format("line {}: five counts, none negative, and a phase are needed", number));
        if (row.at < duration{0} || row.at > trace_span_max)
            return tl::unexpected(
                fmt::format("line {}: t_ms is more than a hundred years", number));
        if (!rows.empty() && row.at <= rows.back().at)
            return tl::unexpected(fmt::format("line {}: time does not go on", number));
        rows.push_back(std::move(row));
    }
    if (rows.empty()) return tl::unexpected(std::string("no rows"));
    return rows;
}

std::vector<replay_step> steps_of(const std::vector<trace_row>& rows,
                                  const replay_options& options) {
    std::vector<replay_step> out;
    traffic seen;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i > 0) add_traffic(seen, rows[i - 1], rows[i], options);
        const time_point at = replay_start + rows[i].at;
        out.push_back({at, sample_of(rows[i]), seen, {}, home_kind::engine, rows[i].phase});
    }
    return out;
}

namespace {

// One policy over the steps, with the moves that it starts.
class player {
  public:
    explicit player(const replay_options& options)
        : options_{options}, policy_{options.tool, options.with} {}

    void play(const replay_step& step, bool is_due) {
        pending_.insert(pending_.end(), step.writes.begin(), step.writes.end());
        if (!is_due) return;
        replay_entry entry;
        entry.at = step.at;
        entry.phase = step.phase;
        end_move(entry);
        policy_.add_writes(pending_);
        const sample counters = counters_of(step);
        pending_.clear();
        take(entry, policy_.feed(counters, step.seen, options_.fleet, step.at));
        if (const auto measured = policy_.last_window(); measured && !out.timeline.empty())
            entry.measured = *measured;
        entry.says = policy_.last_verdict();
        entry.stands = policy_.state().at;
        out.timeline.push_back(std::move(entry));
    }

    replay_result finish() {
        out.last = policy_.state();
        return std::move(out);
    }

    replay_result out;

  private:
    void take(replay_entry& into, outcome&& from) {
        for (const command& one : from.commands) {
            if (one.kind != command_kind::start_move) continue;
            const int flaps = policy_.state().flaps;
            if (flaps > flaps_) ++out.flaps;
            flaps_ = flaps;
            out.moves.push_back({into.at, std::nullopt, one.to});
        }
        std::move(from.decisions.begin(), from.decisions.end(), std::back_inserter(into.decisions));
        std::move(from.commands.begin(), from.commands.end(), std::back_inserter(into.commands));
    }

    void end_move(replay_entry& entry) {
        if (out.moves.empty() || out.moves.back().ended || !options_.move_takes) return;
        auto& running = out.moves.back();
        if (entry.at - running.started < *options_.move_takes) return;
        running.ended = entry.at;
        out.held += options_.move_holds;
        take(entry,
             policy_.move_finished(
                 move_end::ok, "replayed", options_.fleet, entry.at, options_.move_holds));
    }

    // The lane's counters as the engine would have them where nobody read them.
    sample counters_of(const replay_step& step) {
        if (step.home == home_kind::engine || policy_.state().home == home_kind::postgres)
            return step.counters;
        const auto us = [](time_point at) {
            return std::chrono::duration_cast<std::chrono::microseconds>(at.time_since_epoch())
                .count();
        };
        const auto from = made_at_.value_or(step.at - options_.with.window.length);
        const auto got = simulate_lane(pending_, us(from), us(step.at), policy_.engine_model());
        made_at_ = step.at;
        made_.acquires += got.acquires;
        made_.handoffs += got.handoffs;
        made_.wait_us += got.wait_us;
        made_.conflicts += got.conflicts;
        sample out_of_shadow;
        out_of_shadow.taken_at = step.at;
        out_of_shadow.acquires = made_.acquires;
        out_of_shadow.handoffs = made_.handoffs;
        out_of_shadow.wait_us = made_.wait_us;
        out_of_shadow.commits = made_.acquires - made_.conflicts;
        out_of_shadow.link_generation = step.counters.link_generation;
        return out_of_shadow;
    }

    const replay_options& options_;
    tool_policy policy_;
    std::vector<write_interval> pending_;
    lane_figures made_;
    std::optional<time_point> made_at_;
    int flaps_{0};
};

}  // namespace

replay_result replay(const std::vector<replay_step>& steps, const replay_options& options) {
    player one{options};
    // A trace's steps are a little uneven: half a step early is on time.
    const duration slack = options.with.window.length / 20;
    std::optional<time_point> fed_at;
    if (!steps.empty()) one.out.began = steps.front().at;
    for (const auto& step : steps) {
        const bool is_due = !fed_at || step.at - *fed_at >= options.with.window.length - slack;
        one.play(step, is_due);
        if (is_due) fed_at = step.at;
    }
    return one.finish();
}

replay_result replay(const std::vector<trace_row>& rows, const replay_options& options) {
    return replay(steps_of(rows, options), options);
}

std::vector<decision> replay_result::decisions() const {
    std::vector<decision> all;
    for (const auto& entry : timeline)
        all.insert(all.end(), entry.decisions.begin(), entry.decisions.end());
    return all;
}

int replay_result::entries_into(stage s) const {
    int count = 0;
    for (const decision& one : decisions())
        count += one.to == s && one.from != s ? 1 : 0;
    return count;
}

}  // namespace hotlane::policy
