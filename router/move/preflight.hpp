// What both directions of preflight share. Nothing is changed at any home.
#pragma once

#include <string>

#include "router/move/job.hpp"
#include "router/move/schema.hpp"

namespace hotlane::move {

struct preflight {
    context& with;
    const request& what;
    findings found;
    config::postgres_home home;  // the tool's, defaults filled in
    config::postgres_server server;
    std::chrono::milliseconds budget{};  // of the hold
    std::uint64_t rows{0};
    std::chrono::milliseconds scanned{0};  // how long reading them all took

    void refuse(std::string code, std::string message, std::string mend);
    [[nodiscard]] bool good() const { return found.refusals.empty(); }
};

// Settings, links to both homes, and what must hold whatever the direction. False: no use to go on.
bool prepare(preflight& f, const std::string& id);
// Server settings, role, rights, schema, prepared transactions, other tools in the database.
void check_postgres(preflight& f);
// The DDL that is known of the tool: what passed through hotlane, or the schema file.
sql::schema_definition known_ddl(preflight& f);
// Counts a bad value; false once there are enough to show.
bool note_bad_value(preflight& f, refusal bad);
// Refuses when the copy would be held longer than the budget.
void forecast(preflight& f, std::chrono::milliseconds copy_time);

}  // namespace hotlane::move
