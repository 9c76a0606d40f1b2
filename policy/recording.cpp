#include "policy/recording.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

namespace hotlane::policy {

namespace {

constexpr std::size_t sample_fields = 18;
constexpr std::size_t write_fields = 7;

std::string or_dash(const std::optional<std::uint64_t>& value) {
    return value ? std::to_string(*value) : "-";
}

constexpr duration step_back_max{60'000};

// A tool's name has no comma and no newline (config names), so it needs no quotes.
std::vector<std::string_view> fields_of(std::string_view line) {
    std::vector<std::string_view> out;
    while (true) {
        const auto comma = line.find(',');
        out.push_back(line.substr(0, comma));
        if (comma == line.npos) return out;
        line.remove_prefix(comma + 1);
    }
}

template <typename Number>
bool read(std::string_view from, Number& into) {
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), into);
    return error == std::errc{} && end == from.data() + from.size();
}

bool read(std::string_view from, std::optional<std::uint64_t>& into) {
    if (from == "-") return true;
    return read(from, into.emplace());
}

// Moments that a clock of hotlane's can have said: from 1970 to the year 9999.
constexpr std::int64_t last_ms = 253'402'300'799'999;
bool is_moment(std::int64_t at, std::int64_t units_per_ms) {
    return at >= 0 && at / units_per_ms <= last_ms;
}

bool read_sample(const std::vector<std::string_view>& f, replay_step& into) {
    std::int64_t at = 0;
    std::uint64_t own = 0;
    std::optional<std::uint64_t> latency;
    auto& s = into.counters;
    auto& t = into.seen;
    const bool is_read = read(f[1], at) && read(f[4], s.acquires) && read(f[5], s.handoffs) &&
                         read(f[6], s.wait_us) && read(f[7], s.commits) &&
                         read(f[8], s.committed_lsn) && read(f[9], s.link_generation) &&
                         read(f[10], own) && read(f[11], latency) && read(f[12], t.transactions) &&
                         read(f[13], t.write_transactions) && read(f[14], t.write_conflicts) &&
                         read(f[15], t.errors) && read(f[16], t.unknown_outcomes) &&
                         read(f[17], t.hold_wait_us);
    if (!is_read || !is_moment(at, 1) || (f[3] != "engine" && f[3] != "postgres")) return false;
    into.at = time_point{duration{at}};
    s.taken_at = into.at;
    s.own_work = own != 0;
    if (latency) s.commit_latency = std::chrono::microseconds{static_cast<std::int64_t>(*latency)};
    into.home = f[3] == "engine" ? home_kind::engine : home_kind::postgres;
    into.phase = f[3];
    return true;
}

bool read_write(const std::vector<std::string_view>& f, write_interval& into) {
    into.conflict = f[6].find('c') != std::string_view::npos;
    into.block = f[6].find('b') != std::string_view::npos;
    constexpr std::int64_t us_per_ms = 1'000;
    return read(f[2], into.session) && read(f[3], into.start_us) && read(f[4], into.end_us) &&
           is_moment(into.start_us, us_per_ms) && is_moment(into.end_us, us_per_ms) &&
           into.start_us <= into.end_us && read(f[5], into.key) &&
           f[6].find_first_not_of("cb-") == std::string_view::npos;
}

class parser {
  public:
    // Empty: taken; else what is wrong with the line.
    std::string take(std::string_view line) {
        if (line.empty() || line.front() == '#') return {};
        const auto f = fields_of(line);
        if (f[0] == "S" && f.size() == sample_fields) return take_sample(f);
        write_interval write;
        const bool is_write = f[0] == "W" && f.size() == write_fields && !f[1].empty();
        if (!is_write || !read_write(f, write)) return "is no sample and no write";
        writes_[std::string(f[1])].push_back(write);
        return {};
    }
    recording result() { return std::move(out_); }

  private:
    std::string take_sample(const std::vector<std::string_view>& f) {
        replay_step step;
        if (f[2].empty() || !read_sample(f, step)) return "is no sample and no write";
        step.writes = std::exchange(writes_[std::string(f[2])], {});
        auto& steps = out_[std::string(f[2])];
        if (steps.empty() || step.at > steps.back().at) {
            steps.push_back(std::move(step));
            return {};
        }
        // Times never step back inside a process; a later one may begin a little earlier.
        const auto back = steps.back().at - step.at;
        if (back <= step_back_max) return {};
        return fmt::format("time goes back by {}: replay what is before it and after it apart",
                           text_of(back));
    }

    recording out_;
    std::map<std::string, std::vector<write_interval>> writes_;
};

}  // namespace

std::string recorded_line(const std::string& tool,
                          home_kind home,
                          const sample& s,
                          const traffic& seen) {
    const auto latency = s.commit_latency ? std::to_string(s.commit_latency->count()) : "-";
    return fmt::format("S,{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                       s.taken_at.time_since_epoch().count(),
                       tool,
                       to_string(home),
                       or_dash(s.acquires),
                       or_dash(s.handoffs),
                       or_dash(s.wait_us),
                       or_dash(s.commits),
                       or_dash(s.committed_lsn),
                       s.link_generation,
                       s.own_work ? 1 : 0,
                       latency,
                       seen.transactions,
                       seen.write_transactions,
                       seen.write_conflicts,
                       seen.errors,
                       seen.unknown_outcomes,
                       seen.hold_wait_us);
}

std::string recorded_line(const std::string& tool, const write_interval& write) {
    const char* flags = write.conflict ? (write.block ? "cb" : "c") : (write.block ? "b" : "-");
    return fmt::format("W,{},{},{},{},{},{}\n",
                       tool,
                       write.session,
                       write.start_us,
                       write.end_us,
                       write.key,
                       flags);
}

tl::expected<recording, std::string> parse_recording(std::string_view text) {
    parser p;
    for (int number = 1; !text.empty(); ++number) {
        const auto end = text.find('\n');
        const auto line = text.substr(0, end);
        const bool is_cut = end == text.npos;
        text = is_cut ? std::string_view{} : text.substr(end + 1);
        if (number == 1 && line != recording_head)
            return tl::unexpected(fmt::format("line 1: it must be \"{}\"", recording_head));
        const auto wrong = p.take(line);
        if (!wrong.empty() && !is_cut)
            return tl::unexpected(fmt::format("line {}: {}", number, wrong));
    }
    auto out = p.result();
    if (out.empty()) return tl::unexpected(std::string("no samples"));
    return out;
}

}  // namespace hotlane::policy
