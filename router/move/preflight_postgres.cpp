// What must be true of the PostgreSQL server, in either direction.
#include <fmt/format.h>
#include <map>

#include "router/move/preflight.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;

std::string text(const row& r, std::size_t i) {
    return i < r.size() ? r[i].value_or("") : "";
}

// nullopt: the question was refused, and that was noted.
std::optional<rows> ask(preflight& f,
                        const std::string& sql,
                        const std::vector<param>& params = {}) {
    auto reply = f.found.postgres->exec(sql, params);
    if (reply) return std::move(*reply);
    f.found.refusals.push_back(home_failed(home_kind::postgres, "preflight", reply.error()));
    return std::nullopt;
}

void check_settings(preflight& f) {
    auto reply = ask(f,
                     "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', "
                     "'synchronous_commit', 'full_page_writes', 'server_encoding', "
                     "'server_version_num', 'transaction_read_only') UNION ALL SELECT "
                     "'in_recovery', pg_is_in_recovery()::text");
    if (!reply) return;
    std::map<std::string, std::string> s;
    for (const auto& r : reply->data)
        s[text(r, 0)] = text(r, 1);
    if (f.server.require_durable)
        for (const char* name : {"fsync", "synchronous_commit", "full_page_writes"})
            if (s[name] == "off")
                f.refuse(
                    std::string(name) + "_off",
                    fmt::format("PostgreSQL server {} runs with {} = off: it may lose what it "
                                "acknowledged",
                                f.server.name,
                                name),
                    fmt::format("set {} = on, or accept less with `require_durable: false`", name));
    if (s["server_encoding"] != "UTF8")
        f.refuse("encoding",
                 fmt::format("the database's encoding is {}", s["server_encoding"]),
                 "create the database with ENCODING 'UTF8'");
    if (s["in_recovery"] == "true" || s["transaction_read_only"] == "on")
        f.refuse("read_only",
                 "the PostgreSQL server is a standby or read only",
                 "point the server's address at the primary");
}

// `ALTER ROLE .. SET synchronous_commit = off` undoes what the server promises.
void check_role_settings(preflight& f) {
    if (!f.server.require_durable) return;
    auto reply =
        ask(f,
            "SELECT c FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = s.setrole "
            "LEFT JOIN pg_database d ON d.oid = s.setdatabase, unnest(s.setconfig) c WHERE "
            "(s.setrole = 0 OR r.rolname = $1) AND (s.setdatabase = 0 OR d.datname = "
            "current_database()) AND c = 'synchronous_commit=off'",
            {{param_type::text, f.home.role}});
    if (reply && !reply->data.empty())
        f.refuse("synchronous_commit_off",
                 "the tool's role or database is set to synchronous_commit = off",
                 "reset it, or accept less with `require_durable: false`");
}

void check_role(preflight& f) {
    if (f.home.role.empty()) {
        f.refuse("no_role",
                 "no role is named that owns the tables on PostgreSQL",
                 "give the tool's `postgres:` a `role:`");
        return;
    }
    auto reply =
        ask(f, "SELECT 1 FROM pg_roles WHERE rolname = $1", {{param_type::text, f.home.role}});
    if (!reply) return;
    if (reply->data.empty()) {
        f.refuse("no_role",
                 fmt::format("role \"{}\" does not exist on PostgreSQL", f.home.role),
                 fmt::format("CREATE ROLE \"{}\" LOGIN", f.home.role));
        return;
    }
    auto rights = ask(
        f,
        "SELECT r.rolsuper OR pg_has_role(current_user, $1::name, 'MEMBER'), "
        "has_database_privilege(current_database(), 'CREATE'), EXISTS (SELECT 1 FROM pg_namespace "
        "WHERE nspname = $2), coalesce((SELECT r.rolsuper OR has_schema_privilege(oid, 'CREATE') "
        "FROM pg_namespace WHERE nspname = $2), false), current_user FROM pg_roles r WHERE "
        "r.rolname = current_user",
        {{param_type::text, f.home.role}, {param_type::text, f.home.schema}});
    if (!rights || rights->data.empty()) return;
    const row& r = rights->data[0];
    if (text(r, 2) != "t") {
        f.refuse("no_schema_on_target",
                 fmt::format("schema \"{}\" does not exist", f.home.schema),
                 fmt::format("CREATE SCHEMA \"{}\"", f.home.schema));
        return;
    }
    const auto lacking = [&](const std::string& what, const std::string& mend) {
        f.refuse("no_rights", fmt::format("{} may not {}", text(r, 4), what), mend);
    };
    if (text(r, 0) != "t")
        lacking(fmt::format("give tables to role \"{}\"", f.home.role),
                fmt::format("GRANT \"{}\" TO \"{}\"", f.home.role, text(r, 4)));
    if (text(r, 1) != "t")
        lacking(
            "create schemas in the database",
            fmt::format("GRANT CREATE ON DATABASE \"{}\" TO \"{}\"", f.home.database, text(r, 4)));
    if (text(r, 3) != "t")
        lacking(fmt::format("create tables in schema \"{}\"", f.home.schema),
                fmt::format("GRANT CREATE ON SCHEMA \"{}\" TO \"{}\" WITH GRANT OPTION",
                            f.home.schema,
                            text(r, 4)));
}

// The clients' links log in as the role; that it exists does not say that it may.
void check_login(preflight& f) {
    if (f.what.to != home_kind::postgres || f.home.role.empty()) return;
    const auto in = f.with.homes.log_in(f.home.role, f.with.limit.connect);
    if (in) return;
    f.refuse("role_login",
             fmt::format("role \"{}\" cannot log in: {}", f.home.role, in.error().message),
             "correct the `password:` of the tool, or give the role LOGIN, CONNECT and room under "
             "its CONNECTION LIMIT");
}

// Room for the links of as many clients as the tool has now: each may need one at once.
void check_connections(preflight& f) {
    auto reply = ask(
        f,
        "SELECT current_setting('max_connections')::bigint - "
        "current_setting('superuser_reserved_connections')::bigint - (SELECT count(*) FROM "
        "pg_stat_activity WHERE backend_type = 'client backend'), (SELECT datconnlimit::bigint "
        "FROM "
        "pg_database WHERE datname = current_database()), (SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> "
        "pg_backend_pid()), (SELECT rolconnlimit::bigint FROM pg_roles WHERE rolname = $1), "
        "(SELECT "
        "count(*) FROM pg_stat_activity WHERE usename = $1)",
        {{param_type::text, f.home.role}});
    if (!reply || reply->data.empty()) return;
    const row& r = reply->data[0];
    const auto number = [&](std::size_t i) {
        return std::strtoll(text(r, i).c_str(), nullptr, 10);
    };
    const bool comes = f.what.to == home_kind::postgres;
    const auto wanted = std::max<long long>(1, f.with.tool.counted.sessions.load());
    const connection_room room{
        number(0), number(1), number(2), text(r, 3).empty() ? -1 : number(3), number(4)};
    f.found.detail["connections"] = {{"needed", comes ? wanted : 0}, {"free", room.free()}};
    if (!comes || room.free() >= wanted) return;
    f.refuse("connections",
             fmt::format("the tool has {} clients; PostgreSQL has room for {} more connections "
                         "({})",
                         wanted,
                         std::max(0LL, room.free()),
                         room.why()),
             "raise max_connections, the role's or the database's CONNECTION LIMIT, or end idle "
             "sessions");
}

void check_shared(preflight& f) {
    for (const auto& other : f.with.around.tools.all()) {
        if (other->name == f.with.tool.name || !other->settings.postgres) continue;
        const auto& home = *other->settings.postgres;
        const auto database = home.database.empty() ? other->name : home.database;
        if (home.server == f.home.server && database == f.home.database)
            f.refuse("shared_database",
                     fmt::format("tool \"{}\" has the same PostgreSQL database", other->name),
                     "give every tool a database of its own");
    }
    auto marked = marked_tools(*f.found.postgres);
    if (!marked) {
        f.found.refusals.push_back(home_failed(home_kind::postgres, "preflight", marked.error()));
        return;
    }
    for (const auto& name : *marked)
        if (name != f.with.tool.name)
            f.refuse("shared_database",
                     fmt::format("the database bears the marker of tool \"{}\"", name),
                     "give every tool a database of its own");
}

}  // namespace

void check_postgres(preflight& f) {
    check_settings(f);
    check_role(f);
    check_role_settings(f);
    if (f.good()) check_login(f);
    if (f.good()) check_connections(f);
    check_shared(f);
    note_sessions(f);
    auto prepared =
        ask(f, "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()");
    if (prepared && !prepared->data.empty() && text(prepared->data[0], 0) != "0")
        f.refuse("prepared_transactions",
                 fmt::format("{} prepared transactions are open in the database",
                             text(prepared->data[0], 0)),
                 "COMMIT PREPARED or ROLLBACK PREPARED them");
}

}  // namespace hotlane::move
