// One place that decides what valid UTF-8 is.
#pragma once

#include <cstddef>
#include <string_view>

namespace hotlane::metrics {

// Length of the valid character at the front; 0: the first byte begins none.
std::size_t utf8_length(std::string_view text) noexcept;

}  // namespace hotlane::metrics
