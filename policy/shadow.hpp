// The shadow lane: what would the engine do with the writes that were recorded elsewhere? And the
// other way round: what would PostgreSQL do with the writes of a tool on the engine?
//
// PURE. Both are small event simulations of a closed loop: each session waits for its reply, thinks
// as long as it did, and writes again, so one sequential client never queues behind itself, and a
// slower home is asked less. Without a key all writes count as one, which errs on the safe side.
#pragma once

#include <span>
#include <vector>

#include "policy/types.hpp"

namespace hotlane::policy {

// The engine, as it was measured for one tool while it lived there.
struct lane_model {
    double in_lane_us{300};    // the lane is taken so long
    double durable_us{5'000};  // from handing the lane off to the reply; others write meanwhile
    bool is_measured{false};   // false: assumed
};

// PostgreSQL, as the control plane measured it.
struct postgres_model {
    double round_trip_us{};
    double commit_us{};  // a row stays locked so long; the reply comes afterwards
};

// What a tool's clients would see, or saw, at a home.
struct home_figures {
    double latency_us{};  // mean, of a write transaction
    double p95_us{};
    double writes_per_s{};
    double failure_rate{};  // 0..1 of them
    std::uint64_t writes{};
};

// A conflict is a write of a key whose last write was not durable when this one arrived. The queue
// of the lane is unfair, as measured: mostly the newest waiter gets in. Commits become durable in
// groups. Both times of the model are means; the times drawn are spread about them.
lane_figures simulate_lane(std::span<const write_interval> writes,
                           std::int64_t from_us,
                           std::int64_t to_us,
                           const lane_model& engine);

// Writers of one key line up and all succeed, except in transactions of several statements, which
// run as REPEATABLE READ and fail when the row changed under them.
home_figures simulate_postgres(std::span<const write_interval> writes,
                               std::int64_t from_us,
                               std::int64_t to_us,
                               const postgres_model& home);

// What the clients saw in that time.
std::optional<home_figures> figures_of(std::span<const write_interval> writes,
                                       std::int64_t from_us,
                                       std::int64_t to_us);

// The engine's two times, from what the clients saw and what the lane counted in the same window.
// `known` is what was believed before. Nothing: too little happened.
std::optional<lane_model> measure_lane(std::span<const write_interval> writes,
                                       const window& counted,
                                       const lane_model& known);

// Latency of a commit that waited for nobody: of the writes that overlapped with no other, else of
// the quickest. Nothing: too few succeeded.
std::optional<double> uncontended_us(std::span<const write_interval> writes);

// The writes of the last while, oldest first by their end. Bounded: the oldest go first, and a
// window of which writes were lost is not predicted.
class write_log {
  public:
    explicit write_log(std::size_t max = 50'000) : max_(max) {}
    void add(std::span<const write_interval> more);
    void forget_before(std::int64_t us);
    void clear();
    // Those that ended after `from_us` and not after `to_us`; nothing: some were lost or none known
    [[nodiscard]] std::optional<std::span<const write_interval>> between(std::int64_t from_us,
                                                                         std::int64_t to_us) const;

  private:
    std::size_t max_;
    std::int64_t lost_until_us_{0};
    std::vector<write_interval> all_;
};

}  // namespace hotlane::policy
