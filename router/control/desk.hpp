// One tool's place in the control plane: its policy, its evidence, what the sampler knows, behind
// one lock. It carries out what the policy says: stores its state and decisions, orders moves.
//
// Lock order: desk, then fleet or mover; neither of them calls back with its lock held.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "policy/engine.hpp"
#include "router/control/evidence.hpp"
#include "router/control/fleet.hpp"
#include "router/control/mover.hpp"
#include "router/control/parts.hpp"

namespace hotlane::control {

// How the reading of this tool's counters goes.
struct sampling_figures {
    std::uint64_t samples{};
    std::uint64_t failures{};
    std::uint64_t skipped_idle{};  // no traffic: an engine that sleeps is not woken
    std::optional<policy::time_point> last_at;
    std::chrono::microseconds last_cost{};
    std::string last_error;  // empty: the last one went well
};

// A consistent copy for the API and the metrics.
struct tool_view {
    std::shared_ptr<placement::tool_entry> entry;
    std::shared_ptr<const placement::route> route;
    policy::settings settings;
    policy::runbook_state state;
    std::optional<policy::window> window;
    policy::verdict verdict{policy::verdict::unknown};
    sampling_figures sampling;
    std::vector<evidence::table_count> hot_tables;
    std::vector<std::string> samples;  // statements that ran into conflicts
    std::string explain;               // how it stands, in words
    policy::evidence evidence_now;
    policy::lane_model engine;
    std::map<std::pair<policy::home_kind, std::string>, std::uint64_t> moves_ended;
    std::map<policy::window_quality, std::uint64_t> windows_by_quality;
    std::optional<bool> engine_up;  // nothing: not asked yet
    std::optional<bool> postgres_up;
};

class desk {
  public:
    desk(context& in,
         fleet& all,
         mover& moves,
         std::shared_ptr<placement::tool_entry> entry,
         policy::settings with);

    [[nodiscard]] const std::string& name() const noexcept { return entry_->name; }
    [[nodiscard]] const placement::tool_entry& entry() const noexcept { return *entry_; }

    // Sampler.
    void feed(policy::sample counters);
    void sample_failed(const std::string& why);
    void sample_skipped();
    [[nodiscard]] policy::traffic traffic() const;

    // The PostgreSQL home's speed, for forecasts; nothing: it could not be measured.
    void set_target(std::optional<policy::postgres_model> measured);
    [[nodiscard]] bool is_hot() const;
    // Of the last good window on the engine; nothing: none, or the tool is away.
    [[nodiscard]] std::optional<policy::neighbour_view> engine_share() const;

    // About once a second: deadlines, evidence, DDL, now and then the windows into the store.
    void tick();
    // Into the store and the evidence; DDL that the store refuses is tried again the next time.
    void take_observations();
    // Why what was last decided or ordered would be forgotten at a restart; empty: it would not.
    [[nodiscard]] std::string not_stored() const;

    // Operators: the refusal, or the number of the order that was given.
    tl::expected<std::uint64_t, std::string> order(policy::home_kind to, const std::string& who);
    // Which rail would refuse such an order now; empty: none.
    [[nodiscard]] std::string why_not(policy::home_kind to) const;
    tl::expected<void, std::string> shard_done(const std::string& who);
    tl::expected<void, std::string> shard_skip(const std::string& who);
    tl::expected<void, std::string> set_pin(policy::pin wanted);
    tl::expected<void, std::string> clear_pin(const std::string& who);

    // What became of the world.
    void home_found(policy::home_kind home);
    // This sidecar leads from now on: what the last leader knew is read from the store.
    void take_over();
    void work_begins() {
        own_work_ = true;
    }  // a copy, rename or probe: counters are not the tool's
    void move_finished(const control::order& ended);

    void set_settings(policy::settings with);
    [[nodiscard]] policy::settings settings() const;
    void save();
    [[nodiscard]] tool_view view() const;

  private:
    void keep_ddl();  // holds taking_
    using outcome = policy::outcome;
    void restore();
    void carry_out(outcome out);  // under mutex_
    void record(policy::decision made);
    void note_pause(const move::report& ended);
    void begin_move(const policy::command& what, outcome& more);
    void save_state();
    void set_retry();
    void tell_fleet();
    void record_sample(policy::home_kind home,
                       const policy::sample& counters,
                       const policy::traffic& seen,
                       const std::vector<policy::write_interval>& writes) const;
    [[nodiscard]] policy::fleet_view others() const;
    [[nodiscard]] policy::move_end how_it_ended(const control::order& ended) const;
    tl::expected<void, std::string> answer(outcome out);

    context& in_;
    fleet& all_;
    mover& moves_;
    std::shared_ptr<placement::tool_entry> entry_;
    mutable std::mutex mutex_;
    policy::tool_policy policy_;
    evidence evidence_;
    std::mutex taking_;               // what was seen is stored in the order in which it passed
    std::deque<std::string> unkept_;  // DDL that the store did not take yet
    std::optional<std::vector<std::string>> kept_;  // DDL in the store; nullopt: not read yet
    sampling_figures sampling_;
    std::string last_decision_;  // id, for the move that it orders
    std::optional<std::uint64_t> last_order_;
    std::optional<policy::time_point> saved_at_;
    std::string not_stored_;
    std::map<std::pair<policy::home_kind, std::string>, std::uint64_t> moves_ended_;
    std::map<policy::window_quality, std::uint64_t> windows_;
    std::optional<bool> engine_up_;
    std::optional<bool> postgres_up_;
    std::optional<policy::postgres_model> target_;
    std::uint64_t writes_dropped_{0};
    std::atomic<bool> own_work_{false};
};

}  // namespace hotlane::control
