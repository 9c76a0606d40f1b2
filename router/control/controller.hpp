// The control plane of one process: places tools, samples, decides, moves, cleans up, and answers
// the admin API. Plain threads with blocking code; it never touches a client's bytes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "metrics/exposition.hpp"
#include "router/admin/service.hpp"
#include "router/control/coordinator.hpp"
#include "router/control/desk.hpp"
#include "router/control/mover.hpp"
#include "router/control/placer.hpp"
#include "router/control/sampler.hpp"

namespace hotlane::control {

// What main knows and the control plane shows.
struct process_hooks {
    std::string version;
    std::string config_path;
    std::function<bool()> data_plane_alive;     // its loops ticked lately
    std::function<nlohmann::json()> addresses;  // where it listens
    // Fills in what the process and the data plane counted, for /metrics.
    std::function<void(metrics::snapshot&)> figures;
};

class controller final : public admin::service {
  public:
    struct settings {
        placer::settings placing;
        sampler::settings sampling;
        mover::settings moving;
        std::chrono::milliseconds tick{1'000};
        std::chrono::milliseconds clean_every{60'000};
        policy::duration clean_undone_after{60'000};
    };

    controller(config::model model,
               placement::tool_table& tools,
               placement::store& store,
               world act,
               open_counters open,
               event_log log,
               process_hooks hooks,
               std::function<policy::time_point()> now,
               settings with);
    ~controller() override { stop(std::chrono::milliseconds{0}); }
    controller(const controller&) = delete;
    controller& operator=(const controller&) = delete;

    // Before start(): one of many sidecars. The coordinator outlives the controller.
    void join_fleet(coordinator& with);
    void start();
    // Until the homes were asked once for every tool, `longest` at most.
    void wait_for_first_look(std::chrono::milliseconds longest) { placer_.wait_tried(longest); }
    // Readiness fails from now on; everything else goes on.
    void drain() { draining_ = true; }
    // False: a move still runs after `grace`; end the process, recovery finishes it.
    bool stop(std::chrono::milliseconds grace);

    // SIGHUP. A bad file changes nothing. Returns what happened, for the log and the API.
    nlohmann::json reload();

    // admin::service
    admin::api_answer handle(const admin::api_request& request) override;
    std::string metrics_text() override;
    bool live() override;
    bool ready(std::vector<std::string>& failed_checks) override;

    // For the routes (api.cpp) and the views.
    [[nodiscard]] std::shared_ptr<desk> find(const std::string& tool) const;
    [[nodiscard]] std::vector<std::shared_ptr<desk>> desks() const;
    [[nodiscard]] context& shared() noexcept { return in_; }
    [[nodiscard]] mover& moves() noexcept { return mover_; }
    [[nodiscard]] const process_hooks& hooks() const noexcept { return hooks_; }
    [[nodiscard]] policy::time_point started() const noexcept { return started_; }
    [[nodiscard]] bool draining() const noexcept { return draining_; }
    [[nodiscard]] std::size_t unplaced() const { return placer_.unplaced(); }
    [[nodiscard]] std::shared_ptr<const config::model> model() const { return model_.get(); }
    [[nodiscard]] const fleet& together() const noexcept { return fleet_; }
    [[nodiscard]] coordinator* coordinates() const noexcept { return coordinator_; }
    [[nodiscard]] std::map<std::string, std::string> late_writes() const;  // move -> alarm
    // Ends `keep` of a finished move now: its fenced copy is dropped, unless the old home changed.
    // The text says what happened; an error says why not.
    tl::expected<std::string, std::string> complete(const std::string& move);
    // What an operator asks of the homes, on the caller's thread; changes nothing there.
    move::checked look_at(
        const std::string& tool,
        const std::function<move::checked(placement::tool_entry&, move::surroundings&)>& what);
    // An operator's word on where a tool lives that the homes cannot tell of; on the caller's
    // thread. No move, clean-up or look of ours works on the tool meanwhile.
    move::adopted adopt(const move::adoption& what);
    // Preflight only, on the caller's thread.
    move::report rehearse(const move::request& what);

    struct reload_figures {
        bool ok{true};
        std::uint64_t failures{0};
        std::uint64_t successes{0};
        policy::time_point succeeded_at{};
    };
    [[nodiscard]] reload_figures reloads() const;

  private:
    std::shared_ptr<desk> open_desk(const std::shared_ptr<placement::tool_entry>& entry);
    [[nodiscard]] metrics::snapshot take_snapshot();
    void placed(placement::tool_entry& entry);
    void move_begun(const order& given);
    void move_ended(const order& ended);
    void tick_all(const std::stop_token& stop);
    void keep_ddl(const std::stop_token& stop);
    void start_fleet();
    void remember_moves();
    void clean_up();
    void clean_one(const placement::move_record& record);
    bool is_due(const placement::move_record& record);
    bool was_cleaned(const std::string& move);
    [[nodiscard]] bool works_on(const std::string& tool) const;
    [[nodiscard]] policy::settings policy_of(const placement::tool_entry& entry) const;

    live_model model_;
    std::unique_ptr<recorder> record_;
    context in_;
    process_hooks hooks_;
    settings with_;
    fleet fleet_;
    mover mover_;
    placer placer_;
    sampler sampler_;
    coordinator* coordinator_{nullptr};
    policy::time_point started_;
    std::atomic<bool> draining_{false};
    std::atomic<bool> stopped_{false};
    std::atomic<bool> stopping_{false};
    mutable std::mutex mutex_;
    std::map<std::string, std::shared_ptr<desk>> desks_;
    std::map<std::string, std::string> late_writes_;
    std::set<std::string> adopting_;  // tools
    reload_figures reloads_;
    metrics::exposition exposition_;
    std::set<std::string> cleaned_;  // moves; under cleaning_
    std::string tidy_up_to_;         // no move up to this id has anything left; of the ticker
    std::mutex cleaning_;            // one clean-up at a time
    std::mutex reloading_;           // one at a time
    std::mutex ddl_mutex_;
    std::condition_variable_any ddl_passed_;
    bool ddl_due_{false};
    std::jthread ddl_keeper_;  // into the store, while the client waits to be told
    std::jthread ticker_;
};

}  // namespace hotlane::control
