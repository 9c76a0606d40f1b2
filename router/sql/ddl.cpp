#include "router/sql/facts.hpp"

namespace hotlane::sql {
schema_definition read_ddl(const std::vector<std::string>& statements) {
    schema_definition out;
    out.not_followed = statements;
    return out;
}
}  // namespace hotlane::sql
