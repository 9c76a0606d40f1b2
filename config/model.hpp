// The typed configuration of one hotlane process. Plain values with their defaults; the loader
// (config/load.hpp) fills them from YAML and no one else writes them. Units are in types or names.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/settings.hpp"

namespace hotlane::config {

using std::chrono::milliseconds;

// Where something was written, for errors and decisions. line and column start at 1.
struct location {
    std::string file;
    int line{};
    int column{};
};

// A secret is named, never written: {file: PATH} or {env: NAME}. Empty: none.
struct secret_ref {
    enum class kind { none, file, env } source{kind::none};
    std::string name;
};

// TCP host:port, or a unix socket directory (host begins with '/', libpq's convention).
struct endpoint {
    std::string host{"127.0.0.1"};
    std::uint16_t port{5432};
    [[nodiscard]] bool is_unix() const noexcept { return !host.empty() && host[0] == '/'; }
};

struct listener {
    endpoint at;            // port 0: any free one (printed at start)
    std::string unix_path;  // set: a unix socket at exactly this path instead of TCP
};

enum class engine_kind { twill, sql };

// A tool's home on the engine. Empty user/database: the client's own.
struct engine_home {
    engine_kind kind{engine_kind::twill};
    endpoint at;
    std::string user;
    std::string database;
};

// A PostgreSQL server that can be a home. `admin_*` is what the control plane uses to move and
// watch.
struct postgres_server {
    std::string name;
    endpoint at;
    std::string admin_user{"postgres"};
    secret_ref admin_password;
    bool require_durable{true};  // refuse a move to a server with fsync etc. off
};

// A tool's home on PostgreSQL.
struct postgres_home {
    std::string server;    // name of a postgres_server
    std::string database;  // default: the tool's name
    std::string schema{"public"};
    std::string role;     // owns the tables; default: the user that clients connect as
    secret_ref password;  // of `role`, used towards the home when it asks
};

// Which startup packets belong to a tool. Globs (* and ?); empty matches anything.
struct match_rule {
    std::string database;
    std::string user;
    std::string application_name;
};

struct isolation_override {
    enum class level {
        read_committed,
        repeatable_read,
        serializable
    } value{level::repeatable_read};
    std::string reason;
};

struct tool {
    std::string name;  // may be "{database}": a template, one tool per database name
    location where;
    match_rule match;
    engine_home engine;
    std::optional<postgres_home> postgres;  // absent: cannot be moved
    std::string policy{"default"};
    std::string schema_file;            // DDL of the tool, where it did not pass through hotlane
    bool no_hidden_constraints{false};  // operator declares: the catalog shows everything
    std::optional<isolation_override> isolation;
    milliseconds hold_max{5'000};       // no client of this tool is ever held longer
    milliseconds keep{24 * 3'600'000};  // how long the fenced copy is kept after a move
    [[nodiscard]] bool is_template() const { return name.find('{') != std::string::npos; }
};

// Every bound has a name and a default here, and a counter in metrics (hotlane_limit_hits_total).
struct limits {
    int client_connections{1'000};
    int clients_before_login{256};
    milliseconds login_timeout{30'000};
    milliseconds connect_timeout{5'000};  // to a home, all tries together
    milliseconds connect_try_timeout{2'000};
    std::uint32_t buffer_bytes{256 * 1024};  // high-water mark of one direction of one session
    std::uint32_t parsed_message_bytes{1024 * 1024};  // a longer Query/Parse is relayed unread
    int held_clients{1'000};                          // of one tool
    std::uint64_t held_bytes{64 * 1024 * 1024};
    int statements_per_client{1'000};  // remembered named statements
    int parameters_per_client{200};    // remembered SETs
    int cancel_in_flight{64};
};

// The state store of a fleet, in PostgreSQL: who has it shares homes, moves and the lead with all
// others that have the same.
struct fleet {
    std::string dsn;  // libpq's, without a password; may name several hosts
    secret_ref password;
    std::string name;                     // of this sidecar, for people; empty: the host's
    milliseconds connect_timeout{2'000};  // a host
    milliseconds statement_timeout{2'000};
    // A sidecar that was not heard of for so long is left to the fence; one that knows of nothing
    // for so long serves no longer.
    milliseconds lease{9'000};
};

struct logging {
    std::string level{"info"};
    std::string format{"auto"};  // auto | text | json
};

struct model {
    std::vector<listener> listen;
    std::string admin_socket{"/run/hotlane/admin.sock"};
    std::optional<endpoint> metrics_listen;
    std::string state_file{"/var/lib/hotlane/state.db"};
    std::optional<fleet> shared_state;  // instead of the file
    int threads{1};
    logging log;
    limits limit;
    std::map<std::string, postgres_server> postgres;
    std::vector<tool> tools;  // first match wins
    std::map<std::string, policy::settings> policies;
    milliseconds sample_timeout{2'000};
    std::string hash;  // SHA-256 of the file's bytes, hex
};

}  // namespace hotlane::config
