// What every back end of the state store must do. A back end's test names itself and says how a
// fresh store is opened, and how the same one is opened again.
#pragma once

#include <functional>
#include <memory>

#include <catch2/catch.hpp>

#include "router/placement/fleet_store.hpp"

namespace hotlane::placement {

struct store_back_end {
    // The same store each time, and its user leads.
    std::function<std::unique_ptr<fleet_store>()> open;
};

// A section for each of the following.
void check_all(store_back_end& back_end);
void check_placements(store_back_end& back_end);
void check_moves(store_back_end& back_end);
void check_decisions(store_back_end& back_end);
void check_ddl_and_documents(store_back_end& back_end);
void check_awkward_texts(store_back_end& back_end);
void check_leases(store_back_end& back_end);
void check_leader(store_back_end& back_end);
void check_news(store_back_end& back_end);
void check_holds(store_back_end& back_end);
void check_reports(store_back_end& back_end);

// Leads as the holder of the leader's lock.
inline void lead(fleet_store& there, const std::string& sidecar) {
    const auto got = there.beat({.id = sidecar, .name = sidecar}, nullptr, true);
    REQUIRE(got.has_value());
    REQUIRE(got->may_lead);
    REQUIRE(there.take_lead(sidecar).has_value());
}

inline policy::time_point at_ms(std::int64_t ms) {
    return policy::time_point{policy::duration{ms}};
}

}  // namespace hotlane::placement
