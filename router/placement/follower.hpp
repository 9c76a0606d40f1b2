// One tool as one sidecar of a fleet knows it: serve, hold, refuse. PURE: a table (follower.cpp);
// what it says is carried out by router/control and, in virtual time, by tests/simulation/fleet.
//
//   unplaced   nothing is known yet; the gate is closed for who comes
//   serving    the gate is open, the route names a home
//   doubting   a home gave an answer that only a fenced one gives; closed until the homes were read
//   holding    a move holds the tool; transactions inside go on to their end
//   drained    and nothing is inside any more, and nothing starts before release or abort
//   refused    nobody confirms where the tool lives: 57P03
//
// Epochs only grow: an older placement, whoever sends it, changes nothing. A held tool stays held
// until it is told, whatever becomes of the store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policy/types.hpp"

namespace hotlane::placement {

enum class follow_state : std::uint8_t { unplaced, serving, doubting, holding, drained, refused };
enum class follow_event : std::uint8_t {
    placed,      // the store or a home says where the tool lives
    hold,        // the leader's
    empty,       // nothing of the tool is inside its gate
    release,     // the move is over: done or aborted
    doubt,       // an answer that only a fenced home gives
    unconfirmed  // neither store nor home told anything for too long
};
std::string_view to_string(follow_state state) noexcept;

struct follow_input {
    follow_event what{};
    policy::home_kind home{};  // placed
    std::uint64_t epoch{};     // placed
    std::string move;          // hold, release
};

// What the driver does, in this order.
struct follow_actions {
    bool close_gate{false};
    bool set_route{false};  // to place()
    bool refuse{false};     // the route serves no longer; the driver knows the reason
    bool open_gate{false};
    bool ack{false};        // `drained`, for move()
    bool ask_homes{false};  // read the markers, then say placed or unconfirmed
};

class follower {
  public:
    struct place_at {
        policy::home_kind home{};
        std::uint64_t epoch{};
    };

    follow_actions step(const follow_input& in);
    [[nodiscard]] follow_state state() const noexcept { return state_; }
    [[nodiscard]] const std::optional<place_at>& place() const noexcept { return place_; }
    [[nodiscard]] const std::string& move() const noexcept { return move_; }
    [[nodiscard]] bool held() const noexcept {
        return state_ == follow_state::holding || state_ == follow_state::drained;
    }

  private:
    bool learn(const follow_input& in);

    follow_state state_{follow_state::unplaced};
    std::optional<place_at> place_;
    std::string move_;
};

}  // namespace hotlane::placement
