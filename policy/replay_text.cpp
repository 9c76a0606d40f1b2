// A replay in words: its timeline, its sums, and two of them against each other.
#include <algorithm>

#include <fmt/format.h>

#include "policy/replay.hpp"

namespace hotlane::policy {

namespace {

double seconds(duration length) {
    return std::chrono::duration<double>(length).count();
}

std::string line_of(const replay_result& result, const replay_entry& entry) {
    const window& w = entry.measured;
    std::string out = fmt::format(
        "{:>8.1f} s {:<18} {:<7} {:>6} acq  handoff {:.2f}  wait {:>5.1f} ms  abort {:.2f}  {:<8} "
        "{}",
        seconds(entry.at - result.began),
        entry.phase,
        to_string(w.quality),
        w.acquires,
        w.handoff_rate().value_or(0.0),
        w.mean_wait_us().value_or(0.0) / 1'000.0,
        w.abort_rate().value_or(0.0),
        to_string(entry.says),
        to_string(entry.stands));
    if (w.predicted)
        out += fmt::format("  predicted handoff {:.2f} wait {:.1f} ms conflict {:.2f}",
                           w.predicted->handoff_rate().value_or(0.0),
                           w.predicted->mean_wait_us().value_or(0.0) / 1'000.0,
                           w.predicted->conflict_rate().value_or(0.0));
    return out + "\n";
}

std::string line_of(const replay_result& result, const decision& one) {
    return fmt::format("{:>8.1f} s {} -> {} [{}] {}",
                       seconds(one.at - result.began),
                       to_string(one.from),
                       to_string(one.to),
                       one.rule,
                       one.reason);
}

std::string total_of(const replay_result& result) {
    return fmt::format("{} moves, {} flaps, clients held for {}; it ends in {} on {}\n",
                       result.moves.size(),
                       result.flaps,
                       text_of(result.held),
                       to_string(result.last.at),
                       to_string(result.last.home));
}

}  // namespace

std::string to_text(const replay_result& result) {
    std::string out;
    for (const auto& entry : result.timeline) {
        out += line_of(result, entry);
        for (const decision& one : entry.decisions)
            out += fmt::format("           {} -> {} [{}] {}\n",
                               to_string(one.from),
                               to_string(one.to),
                               one.rule,
                               one.reason);
    }
    return out;
}

std::string summary_of(const replay_result& result) {
    const auto span =
        result.timeline.empty() ? duration{0} : result.timeline.back().at - result.began;
    const auto counted = [&](verdict wanted) {
        return std::count_if(result.timeline.begin(),
                             result.timeline.end(),
                             [&](const auto& entry) { return entry.says == wanted; });
    };
    std::string out =
        fmt::format("{} over {} windows: {} hot, {} calm, {} idle, {} unknown; {} decisions\n",
                    text_of(span),
                    result.timeline.size(),
                    counted(verdict::hot),
                    counted(verdict::calm),
                    counted(verdict::idle),
                    counted(verdict::unknown),
                    result.decisions().size());
    for (const auto& one : result.moves)
        out += fmt::format(
            "{:>8.1f} s move to {}{}\n",
            seconds(one.started - result.began),
            to_string(one.to),
            one.ended ? fmt::format(", done at {:.1f} s", seconds(*one.ended - result.began))
                      : std::string(", not ended"));
    return out + total_of(result);
}

std::string compare(const replay_result& before, const replay_result& after) {
    const auto lines = [](const replay_result& result) {
        std::vector<std::string> out;
        for (const decision& one : result.decisions())
            out.push_back(line_of(result, one));
        return out;
    };
    const auto old_lines = lines(before);
    const auto new_lines = lines(after);
    std::string out;
    const auto add = [&](const auto& from, const auto& without, const char* sign) {
        for (const auto& line : from)
            if (std::find(without.begin(), without.end(), line) == without.end())
                out += fmt::format("{} {}\n", sign, line);
    };
    add(old_lines, new_lines, "-");
    add(new_lines, old_lines, "+");
    const bool is_same = before.moves.size() == after.moves.size() && before.flaps == after.flaps &&
                         before.held == after.held && before.last.at == after.last.at;
    if (out.empty() && is_same) return {};
    return out + "- " + total_of(before) + "+ " + total_of(after);
}

}  // namespace hotlane::policy
