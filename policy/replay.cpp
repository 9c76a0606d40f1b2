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

void take(replay_entry& into, outcome&& from) {
    std::move(from.decisions.begin(), from.decisions.end(), std::back_inserter(into.decisions));
    std::move(from.commands.begin(), from.commands.end(), std::back_inserter(into.commands));
}

bool starts_move(const replay_entry& entry) {
    return std::any_of(entry.commands.begin(), entry.commands.end(), [](const command& one) {
        return one.kind == command_kind::start_move;
    });
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
                fmt::format("line {}: five numbers and a phase are needed", number));
        if (!rows.empty() && row.at <= rows.back().at)
            return tl::unexpected(fmt::format("line {}: time does not go on", number));
        rows.push_back(std::move(row));
    }
    if (rows.empty()) return tl::unexpected(std::string("no rows"));
    return rows;
}

replay_result replay(const std::vector<trace_row>& rows, const replay_options& options) {
    replay_result result;
    tool_policy policy{options.tool, options.with};
    // A trace's steps are a little uneven: half a step early is on time.
    const duration slack = options.with.window.length / 20;
    traffic seen;
    std::optional<duration> fed_at;
    constexpr time_point never = time_point::max();
    time_point move_ends = never;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i > 0) add_traffic(seen, rows[i - 1], rows[i], options);
        if (fed_at && rows[i].at - *fed_at < options.with.window.length - slack) continue;
        const time_point now = replay_start + rows[i].at;
        replay_entry entry;
        entry.at = now;
        entry.phase = rows[i].phase;
        if (now >= move_ends) {
            take(entry, policy.move_finished(move_end::ok, "replayed", options.fleet, now));
            move_ends = never;
        }
        take(entry, policy.feed(sample_of(rows[i]), seen, options.fleet, now));
        if (starts_move(entry) && options.move_takes) move_ends = now + *options.move_takes;
        if (const auto measured = policy.last_window(); measured && fed_at)
            entry.measured = *measured;
        entry.says = policy.last_verdict();
        entry.stands = policy.state().at;
        fed_at = rows[i].at;
        result.timeline.push_back(std::move(entry));
    }
    result.last = policy.state();
    return result;
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

std::string to_text(const replay_result& result) {
    std::string out;
    for (const auto& entry : result.timeline) {
        const window& w = entry.measured;
        out += fmt::format(
            "{:>8.1f} s {:<18} {:<7} {:>6} acq  handoff {:.2f}  wait {:>5.1f} ms  "
            "abort {:.2f}  {:<8} {}\n",
            std::chrono::duration<double>(entry.at - replay_start).count(),
            entry.phase,
            to_string(w.quality),
            w.acquires,
            w.handoff_rate().value_or(0.0),
            w.mean_wait_us().value_or(0.0) / 1'000.0,
            w.abort_rate().value_or(0.0),
            to_string(entry.says),
            to_string(entry.stands));
        for (const decision& one : entry.decisions)
            out += fmt::format("           {} -> {} [{}] {}\n",
                               to_string(one.from),
                               to_string(one.to),
                               one.rule,
                               one.reason);
    }
    return out;
}

}  // namespace hotlane::policy
