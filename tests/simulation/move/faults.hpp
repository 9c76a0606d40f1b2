// What can go wrong with one statement, and the clock of statements that both simulated homes
// share.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "router/move/step.hpp"

namespace sim {

enum class fault {
    none,
    kill_before,  // the mover dies, nothing was sent
    kill_done,    // sent and done, the mover dies before the reply
    kill_late,    // sent; the mover dies; done later
    lost_done,    // done, the reply is lost
    lost_never,   // the statement is lost
    lost_late     // the reply is lost; done later
};
inline constexpr fault faults[] = {fault::kill_before,
                                   fault::kill_done,
                                   fault::kill_late,
                                   fault::lost_done,
                                   fault::lost_never,
                                   fault::lost_late};
inline bool kills(fault f) {
    return f == fault::kill_before || f == fault::kill_done || f == fault::kill_late;
}

struct killed {};  // thrown through the mover; no std::exception, so that nobody catches it

// Counts the mover's steps; at step `at` the fault happens. Between steps the bystanders act.
class script final : public hotlane::move::stepper {
  public:
    std::uint64_t at{0};
    fault what{fault::none};
    std::uint64_t count{0};
    bool happened{false};
    std::function<void()> bystanders;

    void before(std::string_view) override {
        if (bystanders) bystanders();
        ++count;
        if (count == at && what == fault::kill_before) {
            happened = true;
            throw killed{};
        }
    }
    // Journal writes are done when they return: a lost reply means nothing there.
    void sent(std::string_view what_step) override {
        if (count == at && kills(what) && what_step.substr(0, 7) == "journal") {
            happened = true;
            throw killed{};
        }
    }
    // For a statement to a home: the fault that it meets.
    fault meets() {
        if (count != at || what == fault::none) return fault::none;
        happened = true;
        return what;
    }
};

}  // namespace sim
