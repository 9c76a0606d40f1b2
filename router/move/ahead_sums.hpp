// What a copy that runs ahead of its hold knows of the writes that passed meanwhile, and the two
// judgements that rest on it. PURE.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "router/move/engine_home.hpp"

namespace hotlane::move {

// Between two moments the engine counts its commits, and every session of hotlane those that it saw
// the engine confirm, with their tables (router/session/tally.hpp: never one too many). At the
// first moment a short hold has let everything end that was under way; at the second the tool is
// fenced.
struct commit_sums {
    std::optional<engine_count> begin, fence;  // nullopt: not exact, or the engine does not tell
    std::uint64_t seen{0};                     // by all sessions
    std::uint64_t own_ddl{0};                  // hotlane's own, between the two
};
// True: both counts have grown by the same, and the LSN by that and hotlane's own DDL. Then nobody
// else has committed anything and no other DDL has happened: every commit is one whose tables are
// known. Whatever is not so (a writer that goes round hotlane, a lost reply that was a commit all
// the same, an engine that started again) makes them differ.
bool all_was_seen(const commit_sums& s) noexcept;

// How long the work on one table took while nothing was held, and whether it must be done again.
struct table_times {
    std::chrono::microseconds copied{0}, verified{0};
    bool changed{false};
};
// How long the tool will be held: what changed is copied and verified again; where not every commit
// was seen, every table is read once more.
std::chrono::milliseconds forecast_pause(const std::vector<table_times>& tables, bool all_seen);

// Of one move.
struct ahead_state {
    commit_sums counted;
    std::vector<table_times> times;
    std::vector<bool> settled;           // copied again under the hold
    std::chrono::microseconds point{0};  // the longest of the short holds
};

}  // namespace hotlane::move
