// How far a journal says that a move came.
#pragma once

#include <optional>

#include "router/move/decide.hpp"
#include "router/move/move.hpp"

namespace hotlane::move {

std::optional<phase> phase_from(std::string_view word) noexcept;
journal_point point_of(phase p) noexcept;

}  // namespace hotlane::move
