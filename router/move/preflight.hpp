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
    std::chrono::milliseconds budget{};    // of the hold
    std::uint64_t rows{0}, bytes{0};       // of all values, as text
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
// How many more connections the tool's role can have in its database.
struct connection_room {
    long long server{};                     // max_connections, less those reserved and those in use
    long long database{-1}, in_database{};  // CONNECTION LIMIT (-1: none) and what is in use
    long long role{-1}, of_role{};
    [[nodiscard]] long long free() const noexcept;
    [[nodiscard]] std::string why() const;  // the tightest of them
};

// Sessions that cannot follow, or that the other home will not let do what they do.
void note_sessions(preflight& f);

// PostgreSQL does not tell how much room its disk has: the forecast of the copy is held against
// what the operator allows (`space` of the server).
void check_space(preflight& f);

// Counts a bad value; false once there are enough to show.
bool note_bad_value(preflight& f, refusal bad);
// Above it `copy: auto` copies ahead.
constexpr std::chrono::milliseconds held_copy_short{200};
enum class copy_form : std::uint8_t {
    held,
    ahead,
    held_for_lack,  // ahead would be better, and cannot be
    refused         // neither
};
copy_form copy_form_of(config::copy_rule asked,
                       std::chrono::milliseconds held,
                       std::chrono::milliseconds budget,
                       bool may_ahead) noexcept;
// Decides when the rows go over, by the tool's `copy`: `held` is the forecast of the pause of a
// copy under the hold, `not_ahead` what stands against copying before it. Refuses where neither can
// be.
void choose_copy(preflight& f,
                 std::chrono::milliseconds held,
                 const std::optional<refusal>& not_ahead);

}  // namespace hotlane::move
