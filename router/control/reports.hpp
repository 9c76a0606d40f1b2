// What a sidecar saw of a tool, for the leader: JSON out, JSON in. Bounded by the sender.
#pragma once

#include <array>
#include <vector>

#include <nlohmann/json.hpp>

#include "router/placement/route.hpp"

namespace hotlane::control {

using counted_now = std::array<std::uint64_t, 6>;
counted_now read_counters(const placement::counters& from);

// null: nothing happened since `before`. Statements beyond `most` are left out, and counted.
nlohmann::json make_report(const counted_now& before,
                           const counted_now& now,
                           std::vector<placement::observation> seen,
                           std::size_t most);
// The statements that were seen after `since` go with it, for rehearsals.
void add_statements(nlohmann::json& report,
                    const std::vector<placement::seen_statement>& lately,
                    policy::time_point since,
                    std::size_t most);
// What went on after an error goes with it.
void add_after_error(nlohmann::json& report,
                     const placement::after_error_counts& before,
                     const placement::after_error_counts& now);
// The write transactions go with it, as microseconds before the report: clocks of sidecars are
// never compared. Those beyond `most` are left out and counted, so that nobody predicts from a
// part.
void add_writes(nlohmann::json& report,
                const std::vector<policy::write_interval>& writes,
                std::uint64_t dropped,
                policy::time_point now,
                std::size_t most);
// Adds it to what the leader knows of the tool. Anything that is not understood is left out; times
// are the leader's own, and sessions of two sidecars stay two.
void merge_report(placement::tool_entry& into,
                  const nlohmann::json& report,
                  const std::string& sidecar,
                  policy::time_point now);

}  // namespace hotlane::control
