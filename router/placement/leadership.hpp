// Who leads, as one sidecar sees itself. PURE.
//
//   away       the store cannot be reached: no decision, no move
//   following  another sidecar leads, or nobody does
//   settling   this one leads; it reads every home before it decides anything
//   leading    it samples, decides, moves
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hotlane::placement {

enum class lead_state : std::uint8_t { away, following, settling, leading };
enum class lead_event : std::uint8_t { store_back, store_lost, elected, settled, deposed };

constexpr std::string_view to_string(lead_state s) noexcept {
    constexpr std::array<std::string_view, 4> words{"away", "following", "settling", "leading"};
    return words[static_cast<std::size_t>(s)];
}

struct lead_row {
    lead_state from;
    lead_event what;
    lead_state to;
};
// Every pair that is not here changes nothing.
inline constexpr std::array<lead_row, 8> lead_rows{{
    {lead_state::away, lead_event::store_back, lead_state::following},
    {lead_state::following, lead_event::store_lost, lead_state::away},
    {lead_state::following, lead_event::elected, lead_state::settling},
    {lead_state::settling, lead_event::settled, lead_state::leading},
    {lead_state::settling, lead_event::store_lost, lead_state::away},
    {lead_state::settling, lead_event::deposed, lead_state::following},
    {lead_state::leading, lead_event::store_lost, lead_state::away},
    {lead_state::leading, lead_event::deposed, lead_state::following},
}};

constexpr lead_state next(lead_state from, lead_event what) noexcept {
    for (const auto& r : lead_rows)
        if (r.from == from && r.what == what) return r.to;
    return from;
}

}  // namespace hotlane::placement
