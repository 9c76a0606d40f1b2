// What the tool's sessions do that a move must tell of beforehand.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "router/placement/route.hpp"

namespace hotlane::move {

// Blocks that went on after an error at the engine since this hotlane (and the others of its fleet)
// started.
struct after_error_seen {
    std::uint64_t blocks{0};
    std::map<std::string, std::uint64_t> statements;  // by word; none is 0
    [[nodiscard]] std::string in_words() const;       // "3 insert, 1 commit"
};
after_error_seen after_error_of(const placement::tool_entry& tool);

}  // namespace hotlane::move
