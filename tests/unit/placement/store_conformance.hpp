// What every back end of the state store must do. A back end's test names itself and says how a
// fresh store is opened, and how the same one is opened again.
#pragma once

#include <functional>
#include <memory>

#include <catch2/catch.hpp>

#include "router/placement/store.hpp"

namespace hotlane::placement {

struct store_back_end {
    std::function<std::unique_ptr<store>()> open;  // the same store each time
};

void check_placements(store_back_end& back_end);
void check_moves(store_back_end& back_end);
void check_decisions(store_back_end& back_end);
void check_ddl_and_documents(store_back_end& back_end);

inline policy::time_point at_ms(std::int64_t ms) {
    return policy::time_point{policy::duration{ms}};
}

}  // namespace hotlane::placement
