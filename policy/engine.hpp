// One tool's policy, tied together: readings go in, decisions and commands come out.
//
// PURE: no clock, no I/O; everything that it remembers is in state(). One object per tool, used by
// one thread at a time. The caller carries out the commands, in order, and tells how they ended:
//   start_move -> later move_finished(...)      raise_advice / clear_advice -> show it, nothing
//   more
// It refreshes `fleet` after each start_move before it asks the next tool, and stores state() when
// an outcome is not empty (and now and then, for the windows).
#pragma once

#include <span>
#include <string>

#include "policy/runbook.hpp"
#include "policy/window.hpp"

namespace hotlane::policy {

enum class move_end : std::uint8_t { ok, failed, refused };

class tool_policy {
  public:
    tool_policy(std::string tool, settings with);
    tool_policy(std::string tool, settings with, runbook_state remembered);

    // A new reading (every window.length; earlier ones are ignored until half a length is over).
    // While the tool is on PostgreSQL the counters may be absent: `seen` is what counts then.
    outcome feed(const sample& counters,
                 const traffic& seen,
                 const fleet_view& fleet,
                 time_point now);
    // Its write transactions since the last call, before the reading that they belong to. Without
    // them nothing is predicted, and lane use alone decides about a return.
    void add_writes(std::span<const write_interval> writes);
    // Deadlines, expiring pins, forgiveness. Call it about once a second; feed does it too.
    outcome tick(const fleet_view& fleet, time_point now);

    // Operators. outcome.refusal says why not.
    outcome order(home_kind to, const std::string& who, const fleet_view& fleet, time_point now);
    outcome shard_done(const std::string& who, const fleet_view& fleet, time_point now);
    outcome shard_skip(const std::string& who, const fleet_view& fleet, time_point now);
    outcome set_pin(pin wanted, const fleet_view& fleet, time_point now);
    outcome clear_pin(const std::string& who, const fleet_view& fleet, time_point now);

    // What became of the world.
    outcome move_finished(move_end end,
                          const std::string& reason,
                          const fleet_view& fleet,
                          time_point now,
                          duration held = {});
    outcome home_found(home_kind home, const fleet_view& fleet, time_point now);
    void set_table(std::string hot_table) { state_.table = std::move(hot_table); }

    // A reload: takes effect with the next event, changes nothing by itself.
    void set_settings(settings with) { with_ = std::move(with); }

    [[nodiscard]] const std::string& tool() const noexcept { return tool_; }
    [[nodiscard]] const settings& current_settings() const noexcept { return with_; }
    [[nodiscard]] const runbook_state& state() const noexcept { return state_; }
    [[nodiscard]] std::optional<window> last_window() const;
    // verdict of the last window against the enter thresholds; unknown without one
    [[nodiscard]] verdict last_verdict() const;
    [[nodiscard]] evidence evidence_at(time_point now) const;
    [[nodiscard]] evidence evidence_at(const fleet_view& fleet, time_point now) const;
    [[nodiscard]] lane_model engine_model() const;
    [[nodiscard]] std::string explain_now(time_point now) const {
        return explain(tool_, state_, with_, now);
    }

  private:
    void run(const event& what, const fleet_view& fleet, time_point now, outcome& out);
    void keep(const window& made);
    void note_heat(time_point now);
    void keep_away(const window& made, time_point now);
    void note_peak(const window& made, double writes);
    void track_commit_latency(const sample& counters);
    void predict(window& made);
    void calibrate(const window& made);
    [[nodiscard]] std::optional<lane_model> measured_lane(window counted) const;
    [[nodiscard]] bool is_calm_away(const window& made) const;
    [[nodiscard]] thresholds return_limits() const;
    void add_away_evidence(evidence& seen, time_point now) const;
    [[nodiscard]] std::optional<std::span<const write_interval>> writes_of(const window& w) const;
    [[nodiscard]] bool is_away() const noexcept { return state_.home == home_kind::postgres; }

    std::string tool_;
    settings with_;
    runbook_state state_;
    std::optional<reading> last_;  // the home that it was taken at is last_home_
    home_kind last_home_{home_kind::engine};
    write_log writes_;
    bool sees_writes_{false};
    int until_measured_{0};  // windows, before the lane is measured again
};

}  // namespace hotlane::policy
