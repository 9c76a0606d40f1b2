#include "router/placement/follower.hpp"

#include <array>

namespace hotlane::placement {

namespace {

using S = follow_state;
using E = follow_event;

enum action : unsigned {
    nothing = 0,
    close = 1,
    route = 2,
    refuse = 4,
    open = 8,
    ack = 16,
    ask = 32
};

struct row {
    S from;
    E what;
    S to;
    unsigned actions;
};

// Every pair that is not here changes nothing. `placed` comes only when it says something new.
constexpr std::array<row, 20> rows{{
    {S::unplaced, E::placed, S::serving, route | open},
    {S::unplaced, E::hold, S::holding, close},
    {S::unplaced, E::doubt, S::unplaced, ask},
    {S::unplaced, E::unconfirmed, S::refused, refuse | open},
    {S::serving, E::placed, S::serving, route},
    {S::serving, E::hold, S::holding, close},
    {S::serving, E::doubt, S::doubting, close | ask},
    {S::serving, E::unconfirmed, S::refused, refuse},
    {S::doubting, E::placed, S::serving, route | open},
    {S::doubting, E::hold, S::holding, nothing},
    {S::doubting, E::unconfirmed, S::refused, refuse | open},
    {S::holding, E::hold, S::holding, nothing},
    {S::holding, E::empty, S::drained, ack},
    {S::holding, E::release, S::serving, route | open},
    {S::drained, E::hold, S::holding, nothing},
    {S::drained, E::release, S::serving, route | open},
    {S::refused, E::placed, S::serving, route},
    {S::refused, E::hold, S::holding, close},
    {S::refused, E::doubt, S::refused, ask},
    {S::drained, E::empty, S::drained, ack},  // the acknowledgement was lost: said again
}};

}  // namespace

std::string_view to_string(follow_state state) noexcept {
    switch (state) {
        case S::unplaced:
            return "unplaced";
        case S::serving:
            return "serving";
        case S::doubting:
            return "doubting";
        case S::holding:
            return "holding";
        case S::drained:
            return "drained";
        case S::refused:
            return "refused";
    }
    return "?";
}

// False: nothing new. The same epoch is news for who did not dare to believe it.
bool follower::learn(const follow_input& in) {
    if (place_ && in.epoch < place_->epoch) return false;
    const bool is_known = place_ && in.epoch == place_->epoch;
    if (!is_known) place_ = place_at{in.home, in.epoch};
    const bool waits = state_ == S::unplaced || state_ == S::doubting || state_ == S::refused;
    return !is_known || waits;
}

follow_actions follower::step(const follow_input& in) {
    if (in.what == E::placed && !learn(in)) return {};
    // A late release of another move opens nothing.
    if (in.what == E::release && in.move != move_) return {};
    // Held for this move already: a repeated order, whose acknowledgement may have been lost.
    if (in.what == E::hold && held() && in.move == move_) return {};
    for (const auto& r : rows) {
        if (r.from != state_ || r.what != in.what) continue;
        state_ = r.to;
        if (in.what == E::hold) move_ = in.move;
        follow_actions out;
        out.close_gate = (r.actions & close) != 0;
        out.set_route = (r.actions & route) != 0;
        out.refuse = (r.actions & refuse) != 0;
        out.open_gate = (r.actions & open) != 0;
        out.ack = (r.actions & ack) != 0;
        out.ask_homes = (r.actions & ask) != 0;
        // Released before it was ever told where the tool lives: the homes know.
        if (in.what == E::release && !place_) {
            state_ = S::unplaced;
            out = {};
            out.ask_homes = true;
        }
        return out;
    }
    return {};
}

}  // namespace hotlane::placement
