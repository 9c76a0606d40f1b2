// The typed configuration of one hotlane process. Plain values with their defaults; the loader
// (config/load.hpp) fills them from YAML and no one else writes them. Units are in types or names.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
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
    // kind sql: rows of tool, acquires, handoffs, wait_us and, where known, commits (cumulative).
    // One reading serves all tools of the same address and query.
    std::string query;
    std::string query_user;  // default: user
    secret_ref query_password;
    std::optional<endpoint> metrics;  // kind twill: read the lane's counters over HTTP instead
    // What it shares with other engines: an incident of the storage is counted among these only.
    std::string storage{"shared"};
};

// A PostgreSQL server that can be a home. `admin_*` is what the control plane uses to move and
// watch.
struct postgres_server {
    std::string name;
    endpoint at;
    std::string admin_user{"postgres"};
    secret_ref admin_password;
    std::uint64_t space_bytes{0};  // a copy that is forecast to need more is refused; 0: not asked
    bool require_durable{true};    // refuse a move to a server with fsync etc. off
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

// What a statement that the new home refuses in the rehearsal of a move does to the move.
enum class rehearse_rule { refuse, report };

// When the rows of a move go over. `ahead` copies while the tool works and brings over under the
// hold what changed since; `held` copies under the hold; `automatic` chooses by the forecast of the
// pause.
enum class copy_rule { automatic, ahead, held };

// How clients of a tool share links to its home.
struct pool_settings {
    enum class mode { session, transaction } share{mode::transaction};
    int max{20};  // links of a tool, all threads together
    int min{0};   // of one user, database and startup settings, kept open while clients are there
    milliseconds idle{600'000};
    milliseconds lifetime{3'600'000};
    milliseconds wait{10'000};   // for a link; then 57P03
    milliseconds notice{5'000};  // after so long a waiting client is told
    int statements{500};         // prepared on one link
};

// Keys of a policy that a group or a tool sets on top (config/overlay.hpp).
struct overlay;
using overlay_ptr = std::shared_ptr<const overlay>;
using labels = std::map<std::string, std::string>;

// Tools that share policy keys: by name (any of the globs) and by label (all of them).
struct group {
    std::string name;
    location where;
    std::vector<std::string> tools;  // empty: any name
    labels label;
    std::string policy;  // the named policy that its tools start from; empty: not said
    overlay_ptr set;
};

struct tool {
    std::string name;  // may be "{database}": a template, one tool per database name
    location where;
    match_rule match;
    engine_home engine;
    std::optional<postgres_home> postgres;  // absent: cannot be moved
    std::string policy;  // empty: the first group's that says one, else `default`
    labels label;
    overlay_ptr set;                    // keys on top of the policy and of the groups
    std::optional<policy::pin> pinned;  // by the operator who wrote the file; it ends
    labels types;                       // "table.column" -> type that PostgreSQL gives it
    std::string schema_file;            // DDL of the tool, where it did not pass through hotlane
    bool no_hidden_constraints{false};  // operator declares: the catalog shows everything
    std::optional<isolation_override> isolation;
    rehearse_rule rehearse{rehearse_rule::refuse};
    copy_rule copy{copy_rule::automatic};
    pool_settings pool;
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
    int statements_per_tool{500};  // texts kept for the rehearsal of a move
    std::uint32_t statement_sample_bytes{4 * 1024};
    milliseconds statements_kept{24 * 3'600'000};  // not seen for longer: not rehearsed
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

// What was sampled, kept for `hotlane replay`. Empty file: nothing is recorded.
struct recording {
    std::string file;
    std::uint64_t bytes{64 * 1024 * 1024};  // of all its pieces together
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
    pool_settings pool;                    // of tools that say nothing else
    copy_rule copy{copy_rule::automatic};  // likewise
    std::vector<group> groups;             // in the order in which they apply
    std::vector<tool> tools;               // first match wins
    recording record;
    std::map<std::string, policy::settings> policies;
    milliseconds sample_timeout{2'000};
    std::string hash;  // SHA-256 of the file's bytes, hex
};

}  // namespace hotlane::config
