// The SQLSTATEs that hotlane itself sends or reads (PostgreSQL manual, appendix A).
#pragma once

#include <string_view>

namespace hotlane::wire::sqlstate {

inline constexpr std::string_view connection_exception = "08000",
                                  cannot_connect = "08001",  // the home could not be reached
    connection_failure = "08006",  // lost where nothing can have committed
    outcome_unknown = "08007",     // lost where something can have committed
    protocol_violation = "08P01", feature_not_supported = "0A000", invalid_authorization = "28000",
                                  invalid_password = "28P01", invalid_catalog_name = "3D000",
                                  active_transaction = "25001", serialization_failure = "40001",
                                  deadlock_detected = "40P01", insufficient_privilege = "42501",
                                  configuration_limit = "53400", too_many_connections = "53300",
                                  query_canceled = "57014", admin_shutdown = "57P01",
                                  cannot_connect_now = "57P03", io_error = "58030",
                                  internal_error = "XX000";

}  // namespace hotlane::wire::sqlstate
