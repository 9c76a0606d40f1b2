// Runs moves, ordered by the policy or by an operator, on threads of its own.
//
// An order is queued, runs, and ends with a report that stays readable for a while (bounded), so
// that a command line can wait for it. One order a tool at a time; `moves_at_once` over all tools.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <tl/expected.hpp>

#include "router/control/parts.hpp"

namespace hotlane::control {

struct order {
    enum class state { queued, running, ended };
    std::uint64_t number{};
    state at{state::queued};
    move::request what;
    std::string move_id;  // once the journal knows it
    std::string phase;
    policy::time_point phase_since{};
    std::string waits_for;  // why it waits, from the journal
    std::shared_ptr<std::atomic<bool>> abort{std::make_shared<std::atomic<bool>>(false)};
    std::shared_ptr<move::live_figures> live{std::make_shared<move::live_figures>()};
    policy::time_point given{};
    policy::time_point ended{};
    std::optional<move::report> report;
};
std::string_view to_string(order::state s) noexcept;

class mover {
  public:
    struct settings {
        int moves_at_once{1};
        std::size_t queue_max{64};
        std::size_t remembered_max{200};
    };
    using finished = std::function<void(const order&)>;

    mover(context& in, settings with) : in_(in), with_(with) {}
    ~mover() { stop(std::chrono::milliseconds{0}); }
    mover(const mover&) = delete;
    mover& operator=(const mover&) = delete;

    // `begun` runs on the mover's thread just before the move, `on_end` after it.
    void start(finished begun, finished on_end);
    // Asks running moves to stop at the next safe point. False: one still runs after `grace`; the
    // journal makes that safe, and the caller must end the process without joining.
    bool stop(std::chrono::milliseconds grace);

    // The order's number; an error says why not (busy with this tool, queue full, shutting down).
    tl::expected<std::uint64_t, std::string> submit(const move::request& what);
    [[nodiscard]] std::optional<order> find(std::uint64_t number) const;
    // The same, once it is in another phase than `seen`, or has ended, or after `patience`.
    [[nodiscard]] std::optional<order> await(std::uint64_t number,
                                             const std::string& seen,
                                             std::chrono::milliseconds patience) const;
    // The running order with this move ends at its next safe point; after the flip it goes on to
    // its end. False: no such move runs.
    bool abort(const std::string& move);
    // Until some order is in another phase, or for `patience`.
    void await_change(std::chrono::milliseconds patience) const;
    // The order of this tool that is queued or runs.
    [[nodiscard]] std::optional<order> active(const std::string& tool) const;
    [[nodiscard]] std::vector<order> all_active() const;
    [[nodiscard]] bool busy(const std::string& tool) const { return active(tool).has_value(); }

  private:
    void work(const std::stop_token& stop);
    void run(order& mine);
    void note(std::uint64_t number, const placement::move_record& record);

    context& in_;
    settings with_;
    finished begun_;
    finished on_end_;
    mutable std::mutex mutex_;
    mutable std::condition_variable_any changed_;
    std::map<std::uint64_t, order> orders_;
    std::deque<std::uint64_t> queue_;
    std::uint64_t next_{1};
    std::uint64_t changes_{0};
    int running_{0};
    std::atomic<bool> stopping_{false};
    std::vector<std::jthread> threads_;
};

}  // namespace hotlane::control
