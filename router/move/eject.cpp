#include "router/move/eject.hpp"

#include <fmt/format.h>

#include "router/move/engine_home.hpp"
#include "router/move/names.hpp"
#include "router/sql/facts.hpp"

namespace hotlane::move {
namespace {

using nlohmann::json;
using policy::home_kind;

struct leaving {
    context& with;
    std::shared_ptr<const placement::route> route;
    std::unique_ptr<home_link> engine, postgres;
    json problems = json::array(), switches = json::array(), drops = json::array(),
         notes = json::array();
};

std::string ident(std::string_view name) {
    return sql::quote_identifier(name);
}

std::string text(const row& r, std::size_t i) {
    return i < r.size() ? r[i].value_or("") : "";
}

std::string secret_place(const config::secret_ref& secret) {
    switch (secret.source) {
        case config::secret_ref::kind::none:
            return {};
        case config::secret_ref::kind::file:
            return "file " + secret.name;
        case config::secret_ref::kind::env:
            return "environment variable " + secret.name;
    }
    return {};
}

// A DSN without its password: where that is, is said beside it.
std::string dsn_of(const placement::home& at) {
    std::string out = fmt::format("host={} port={}", at.at.host, at.at.port);
    if (!at.database.empty()) out += " dbname=" + at.database;
    if (!at.user.empty()) out += " user=" + at.user;
    return out;
}

bool open_homes(leaving& l) {
    const auto here = l.route->at.kind;
    for (const auto kind : {home_kind::engine, home_kind::postgres}) {
        if (kind == home_kind::postgres && !l.with.tool.settings.postgres) continue;
        auto opened = l.with.homes.open(kind, l.with.limit.connect);
        if (opened) {
            (*opened)->set_deadline(l.with.limit.statement);
            (kind == home_kind::engine ? l.engine : l.postgres) = std::move(*opened);
            continue;
        }
        const auto what = fmt::format("{} does not answer: {}",
                                      kind == home_kind::engine ? "the engine" : "PostgreSQL",
                                      opened.error().message);
        if (kind == here) {
            l.problems.push_back(what);
            return false;
        }
        l.notes.push_back(what + "; what is left there is not listed");
    }
    return true;
}

// What of ours stands on the engine: tombstones under the tool's names, and names of moves.
void list_engine(leaving& l) {
    if (!l.engine) return;
    const auto catalog = read_engine_catalog(*l.engine);
    if (!catalog) {
        l.notes.push_back("the engine's catalog cannot be read: " + catalog.error().message);
        return;
    }
    for (const auto& [name, columns] : *catalog)
        if (is_own_name(name) || what_stands(*catalog, name) == stands::ours)
            l.drops.push_back({{"at", "engine"}, {"sql", "DROP TABLE " + ident(name)}});
}

void list_postgres(leaving& l) {
    if (!l.postgres) return;
    const auto schemas = l.postgres->exec(
        "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'hotlane\\_%' ORDER BY nspname");
    if (schemas)
        for (const auto& r : schemas->data)
            l.drops.push_back({{"at", "postgres"},
                               {"sql", fmt::format("DROP SCHEMA {} CASCADE", ident(text(r, 0)))}});
    l.drops.push_back(
        {{"at", "postgres"}, {"sql", fmt::format("DROP SCHEMA {} CASCADE", ident(own_schema))}});
}

// Numbers that tables give themselves, and whether they are above what is there.
json read_identities(leaving& l, const std::string& schema) {
    json out = json::array();
    const auto found = l.postgres->exec(
        "SELECT c.relname, a.attname, pg_get_serial_sequence(quote_ident(n.nspname) || '.' || "
        "quote_ident(c.relname), a.attname) FROM pg_class c JOIN pg_namespace n ON n.oid = "
        "c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid WHERE n.nspname = $1 AND "
        "c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped AND "
        "pg_get_serial_sequence(quote_ident(n.nspname) || '.' || quote_ident(c.relname), "
        "a.attname) IS NOT NULL ORDER BY c.relname",
        {{param_type::text, schema}});
    if (!found) {
        l.notes.push_back("sequences cannot be read: " + found.error().message);
        return out;
    }
    for (const auto& r : found->data) {
        const auto now = l.postgres->exec(
            fmt::format("SELECT s.last_value, s.is_called, (SELECT max({}) FROM {}.{}) FROM {} s",
                        ident(text(r, 1)),
                        ident(schema),
                        ident(text(r, 0)),
                        text(r, 2)));
        json one{{"table", text(r, 0)}, {"column", text(r, 1)}, {"sequence", text(r, 2)}};
        if (now && !now->data.empty()) {
            const auto& v = now->data[0];
            one["last_value"] = text(v, 0);
            one["is_called"] = text(v, 1) == "t";
            one["max_in_table"] = v[2] ? json(*v[2]) : json(nullptr);
        }
        out.push_back(std::move(one));
    }
    return out;
}

void leave_postgres(leaving& l, json& out) {
    const auto& home = *l.with.tool.settings.postgres;
    const auto& at = l.route->at;
    out["role"] = at.user;
    out["in_schema"] = home.schema;
    out["password"] = secret_place(home.password);
    out["identities"] = read_identities(l, home.schema);
    const auto role = ident(at.user.empty() ? "ROLE" : at.user);
    const auto database = ident(at.database);
    if (home.schema != "public") {
        out["search_path"] = ident(home.schema);
        l.switches.push_back({{"why", "hotlane gave every session the tool's search_path"},
                              {"sql",
                               fmt::format("ALTER ROLE {} IN DATABASE {} SET search_path = {}",
                                           role,
                                           database,
                                           ident(home.schema))}});
    } else {
        out["search_path"] = "the role's own";
    }
    if (!l.with.tool.settings.isolation)
        l.switches.push_back(
            {{"why",
              "hotlane began transactions that name no level as REPEATABLE READ, so that two "
              "clients that read and then write do not overwrite each other"},
             {"sql",
              fmt::format(
                  "ALTER ROLE {} IN DATABASE {} SET default_transaction_isolation = 'repeatable "
                  "read'",
                  role,
                  database)}});
    l.notes.push_back(
        "with REPEATABLE READ single writes too may end in 40001: the clients must retry, which "
        "hotlane did for them where levers.retry is on");
}

void leave_engine(leaving& l, json& out) {
    out["role"] = l.route->at.user;
    out["in_schema"] = "";
    out["search_path"] = "";
    out["password"] = "";
    out["identities"] = json::array();
    l.notes.push_back(
        "the engine's write conflicts (40001) reach the clients from now on: they must retry");
    l.notes.push_back("CREATE TABLE IF NOT EXISTS may stay: no tombstone stands under a real name");
}

void say_what_to_do(leaving& l, json& out) {
    const auto& name = l.with.tool.name;
    json steps = json::array();
    steps.push_back(fmt::format("hotlane pin {} --home {} --for 24h: nothing moves meanwhile",
                                name,
                                policy::to_string(l.route->at.kind)));
    for (const auto& s : l.switches)
        steps.push_back(s["sql"].get<std::string>());
    steps.push_back(fmt::format("point the clients at: {}", out["dsn"].get<std::string>()));
    steps.push_back(
        fmt::format("when no client is left at hotlane: take tool {} out of its configuration and "
                    "restart it",
                    name));
    steps.push_back("later, when nothing is missed: drop what is listed under `drops`");
    out["steps"] = std::move(steps);
}

}  // namespace

checked eject_with(context& with) {
    leaving l{with, with.tool.current(), nullptr, nullptr};
    checked out;
    auto& d = out.detail;
    d = {{"tool", with.tool.name},
         {"home", policy::to_string(l.route->at.kind)},
         {"epoch", l.route->epoch},
         {"dsn", dsn_of(l.route->at)}};
    const auto unfinished = with.around.store.unfinished_moves();
    if (!unfinished) l.problems.push_back("the journal cannot be read: " + unfinished.error().what);
    if (unfinished)
        for (const auto& r : *unfinished)
            if (r.tool == with.tool.name)
                l.problems.push_back(fmt::format("move {} of this tool has not ended", r.id));
    if (!l.route->served) l.problems.push_back("the tool is not served: " + l.route->reason);
    if (l.problems.empty() && open_homes(l)) {
        l.route->at.kind == home_kind::postgres ? leave_postgres(l, d) : leave_engine(l, d);
        list_engine(l);
        list_postgres(l);
        say_what_to_do(l, d);
    }
    out.good = l.problems.empty();
    d["problems"] = std::move(l.problems);
    d["set_before"] = std::move(l.switches);
    d["drops"] = std::move(l.drops);
    d["notes"] = std::move(l.notes);
    return out;
}

}  // namespace hotlane::move
