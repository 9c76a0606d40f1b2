// A unit test of a policy: series of counters in, expected verdicts and decisions at given times.
// PURE. The YAML around it is read by config/policy_test.hpp.
//
// Series notation, as in `promtool test rules`: values separated by spaces, one an interval.
//   5          the value 5              0+10x3   0 10 20 30 (the first and three more)
//   5x3        5 5 5 5                  100-10x2 100 90 80
//   _          the sampler missed it    _x3      three times
//   stale      the reading had no such counter (unknown, never zero)
// A series that ends early stands still. A counter that falls is a restart of the engine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "policy/engine.hpp"

namespace hotlane::policy {

struct series_value {
    enum class kind : std::uint8_t { value, missed, stale } what{kind::value};
    double value{};
};
inline constexpr std::size_t series_max = 100'000;  // values of one series
tl::expected<std::vector<series_value>, std::string> parse_series(std::string_view text);

// Names of series: acquires, handoffs, wait_us, commits, lsn, commit_latency_us of the engine;
// transactions, writes, conflicts of the data plane. Without `writes` all acquisitions were seen,
// without `conflicts` every acquisition without a commit was one.
bool is_series_name(std::string_view name) noexcept;

struct scenario {
    // What an operator or the world does; applied before the reading of that moment.
    struct happening {
        enum class kind : std::uint8_t {
            shard_done,
            shard_skip,
            order_postgres,
            order_engine,
            move_done,
            move_failed,
            move_refused,
            restart  // of hotlane: what it remembers survives, its own counters do not
        } what{};
        duration at{};
    };
    struct expectation {
        duration at{};
        std::string where;  // file:line, for the difference
        std::optional<verdict> says;
        std::optional<window_quality> quality;
        std::optional<stage> stands;
        std::optional<diagnosis> found;
        std::optional<home_kind> lives;
        // Rules of the decisions since the expectation before, in order.
        std::optional<std::vector<std::string>> decisions;
    };
    std::string name;
    std::string where;
    std::string tool{"tool"};
    settings with;
    duration interval{};  // 0: the policy's window
    std::map<std::string, std::vector<series_value>> series;
    std::vector<happening> happenings;   // by time
    std::vector<expectation> expected;   // by time
    std::optional<duration> move_takes;  // unset: a move ends when a happening says so
    fleet_view fleet;
};

// What differs from what was expected, a line each; empty: nothing.
std::vector<std::string> run(const scenario& one);

}  // namespace hotlane::policy
