// Finds out where each tool lives before it is served: move::recover until the homes have told.
//
// A template tool's first client waits at the tool's gate meanwhile, within the hold's bounds; when
// the homes do not answer it is turned away with the reason (57P03) and the placer goes on trying.
#pragma once

#include <condition_variable>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "router/control/parts.hpp"

namespace hotlane::control {

class placer {
  public:
    struct settings {
        int workers{4};
        std::chrono::milliseconds retry_first{250};
        std::chrono::milliseconds retry_max{10'000};  // doubles up to here
    };

    placer(context& in, settings with) : in_(in), with_(with) {}
    ~placer() { stop(); }
    placer(const placer&) = delete;
    placer& operator=(const placer&) = delete;

    // Called after a tool was placed, on a worker. Set before start().
    std::function<void(placement::tool_entry&)> on_placed;

    // Called after every try, on a worker, in the place of opening the gate: in a fleet a gate may
    // be held for another reason too. Set before start().
    std::function<void(placement::tool_entry&, bool placed)> on_tried;

    // A move of the tool runs here: it knows better where the tool lives. Set before start().
    std::function<bool(const std::string& tool)> moving;

    void start();  // queues every tool of the table
    void stop();

    // tool_table::on_new: closes the gate until the tool is placed. Does not block.
    void meet(placement::tool_entry& entry);
    // A tool of a reloaded configuration.
    void add(const std::string& tool);

    // Asks the homes of every tool again, also of those that are placed.
    void look_again();

    // False until every tool known at the start (or at look_again) was tried once.
    [[nodiscard]] bool tried_all() const;
    void wait_tried(std::chrono::milliseconds longest);
    [[nodiscard]] bool placed(const std::string& tool) const;
    [[nodiscard]] std::size_t unplaced() const;

  private:
    using steady = std::chrono::steady_clock;
    struct job {
        steady::time_point due;
        int tries{0};
        bool running{false};
    };

    void work(const std::stop_token& stop);
    bool try_one(const std::string& tool, int tries);
    [[nodiscard]] steady::duration pause_after(const std::string& tool, int tries) const;

    context& in_;
    settings with_;
    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    std::map<std::string, job> jobs_;  // of tools not placed yet
    std::set<std::string> untried_;    // of the first ones
    std::atomic<bool> stopping_{false};
    std::vector<std::jthread> threads_;
};

}  // namespace hotlane::control
