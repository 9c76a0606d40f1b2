// What a move asks of the other sidecars of its fleet. Implemented by router/control; without a
// fleet there is none (surroundings::fleet is nullptr) and nothing here costs anything.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <tl/expected.hpp>

namespace hotlane::move {

class fleet {
  public:
    virtual ~fleet() = default;

    // This sidecar leads: it may change homes. Others only read them.
    [[nodiscard]] virtual bool leads() const = 0;
    // The leader's number, made higher than `seen` where it is not. A marker takes a higher one
    // only, so who was replaced can change nothing there. An error: another one leads.
    virtual tl::expected<std::uint64_t, std::string> number_above(std::uint64_t seen) = 0;
    // Every sidecar holds the tool and nothing of it is open anywhere; who is not heard of until
    // its lease is over is left to the fence. An error: who is waited for. `goes_on` is asked again
    // and again meanwhile (100 ms at most lie between, if the store answers); false ends it.
    virtual tl::expected<void, std::string> hold(const std::string& tool,
                                                 const std::string& move,
                                                 std::chrono::steady_clock::time_point until,
                                                 const std::function<bool()>& goes_on) = 0;
    // The route says where the tool lives, or that nobody knows: held clients go on everywhere. Not
    // leading any more: they stay held until the leader says so.
    virtual void release(const std::string& tool, const std::string& move) = 0;
};

}  // namespace hotlane::move
