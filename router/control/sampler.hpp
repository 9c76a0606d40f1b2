// Reads each tool's counters on a schedule of its own and feeds the desk.
//
// A few workers share all tools. A reading blocks at most as long as the source's own time-out; a
// tool whose source is slow or fails is only served by half of the workers, so that it delays
// nobody else, and backs off. A tool without traffic since its last reading is not read: an engine
// may sleep, and reading would wake it.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <tl/expected.hpp>

#include "router/control/desk.hpp"

namespace hotlane::control {

// One reading; blocks no longer than the source's time-out. Keeps its connection between calls.
using read_counters = std::function<tl::expected<policy::sample, std::string>()>;
// The source for a tool at a home; must not block.
using open_counters =
    std::function<read_counters(const config::tool&, const config::model&, policy::home_kind)>;

class sampler {
  public:
    struct settings {
        int workers{4};
        std::chrono::milliseconds slow{250};  // a reading that takes longer is slow
        std::chrono::milliseconds backoff_max{60'000};
        int jitter_permille{20};  // of the window's length
    };

    sampler(context& in, open_counters open, settings with)
        : in_(in), open_(std::move(open)), with_(with) {}
    ~sampler() { stop(); }
    sampler(const sampler&) = delete;
    sampler& operator=(const sampler&) = delete;

    void start();
    void stop();
    void add(std::shared_ptr<desk> tool);  // again: nothing

  private:
    using steady = std::chrono::steady_clock;
    struct item {
        std::shared_ptr<desk> tool;
        steady::time_point due;
        bool running{false};
        bool slow{false};
        int failures{0};
        std::uint64_t turn{0};
        read_counters read;
        policy::home_kind home{policy::home_kind::engine};
        std::uint64_t transactions{0};                  // seen at the last reading
        std::optional<steady::time_point> measured_at;  // its PostgreSQL home
    };

    void work(const std::stop_token& stop, bool takes_slow);
    [[nodiscard]] item* next(bool takes_slow);
    void sample(item& mine);
    void read_one(item& mine);
    void measure(item& mine) const;
    [[nodiscard]] steady::duration pause(const item& mine) const;

    context& in_;
    open_counters open_;
    settings with_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::map<std::string, item> items_;  // nodes stay where they are
    std::vector<std::jthread> threads_;
};

}  // namespace hotlane::control
