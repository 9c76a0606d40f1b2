// The guards of the runbook's rows, by the names that the table uses.
#pragma once

#include "policy/runbook.hpp"

namespace hotlane::policy {

bool is_hot(const context& c);
bool is_calm(const context& c);
bool is_drawn_in(const context& c);
bool is_sitting_out(const context& c);
bool is_incident_over(const context& c);
bool wants_retry(const context& c);
bool wants_shard(const context& c);
bool wants_route(const context& c);
bool is_route_blocked(const context& c);
bool does_route(const context& c);
bool is_measured_hot(const context& c);
bool is_measured_calm(const context& c);
bool is_measured_long(const context& c);
bool is_hot_otherwise(const context& c);
bool is_busy_lane(const context& c);
bool is_only_aborts(const context& c);
bool is_routing_off(const context& c);
bool is_undiagnosed(const context& c);
bool is_return_ready(const context& c);
bool is_arrival_known(const context& c);
bool is_foresight_known(const context& c);
bool is_return_unready(const context& c);
bool is_return_blocked(const context& c);
bool does_return(const context& c);
bool is_pin_over(const context& c);
bool is_shard_late(const context& c);
bool is_forgiven(const context& c);
bool is_known_hot(const context& c);
bool is_order_out(const context& c);
bool is_order_back(const context& c);
bool is_order_out_blocked(const context& c);
bool is_order_back_blocked(const context& c);
bool is_bad_pin(const context& c);
bool has_no_pin(const context& c);

}  // namespace hotlane::policy
