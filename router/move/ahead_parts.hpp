// Small things that the parts of a copy that runs ahead share.
#pragma once

#include <string>

#include "router/move/job.hpp"

namespace hotlane::move {

inline std::chrono::milliseconds since(steady::time_point start) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(steady::now() - start);
}
inline tl::unexpected<refusal> postgres_failed(std::string_view doing, const link_error& e) {
    return tl::unexpected(home_failed(policy::home_kind::postgres, doing, e));
}
inline tl::unexpected<refusal> engine_failed(std::string_view doing, const link_error& e) {
    return tl::unexpected(home_failed(policy::home_kind::engine, doing, e));
}
inline refusal tables_changed() {
    return {
        "schema_changed", "the tables changed since preflight", "try again when no migration runs"};
}
inline constexpr std::string_view lock_not_available = "55P03";

// One row, one column; empty: there was none.
inline answer<std::string> ask_one(home_link& link, const std::string& sql) {
    auto reply = link.exec(sql);
    if (!reply) return tl::unexpected(reply.error());
    if (reply->data.empty() || reply->data[0].empty()) return std::string();
    return reply->data[0][0].value_or("");
}

}  // namespace hotlane::move
