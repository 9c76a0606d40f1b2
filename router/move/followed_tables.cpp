#include "router/move/followed_tables.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <map>

#include "router/move/fence_sql.hpp"
#include "router/move/marker.hpp"
#include "router/move/names.hpp"
#include "router/sql/facts.hpp"

namespace hotlane::move {
namespace {

// Messages in the stream came with 14, lists of columns with 15.
constexpr int version_least = 140'000, version_of_columns = 150'000;
constexpr std::string_view lock_not_available = "55P03", undefined_object = "42704";
// Names of moves (names.cpp), as PostgreSQL compares them.
constexpr std::string_view own_names = "'^hotlane_[2-7a-z]{13}$'";

std::string ident(std::string_view name) {
    return sql::quote_identifier(name);
}
std::string text(const row& r, std::size_t i) {
    return i < r.size() ? r[i].value_or("") : "";
}
template <typename Number>
Number number(const std::string& digits) {
    Number out{};
    std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return out;
}

answer<int> server_version(home_link& postgres) {
    auto reply = postgres.exec("SELECT current_setting('server_version_num')");
    if (!reply) return tl::unexpected(reply.error());
    return reply->data.empty() ? 0 : number<int>(text(reply->data[0], 0));
}

// Decoding prints a key in PostgreSQL's form, and the staged row has the engine's: only where both
// are the same text is a row found by it.
bool prints_alike(const column& c) {
    switch (c.as) {
        case held_as::plain:
            return c.type != value_type::real;
        case held_as::smallint:
        case held_as::integer:
        case held_as::uuid:
            return true;
        case held_as::boolean:
        case held_as::timestamp:
        case held_as::timestamptz:
        case held_as::date:
        case held_as::json:
            return false;
    }
    return false;
}

std::string why_not_followed(const table& t, const followed_table& f) {
    if (f.oid == 0) return "is not there";
    if (t.key.empty()) return "has no primary key";
    if (f.persistence != 'p') return "is UNLOGGED";
    if (f.identity != 'd' && f.identity != 'f') return "has another REPLICA IDENTITY than its key";
    for (const auto& name : t.key) {
        const column* c = t.find(name);
        if (!c || !prints_alike(*c))
            return fmt::format("has \"{}\" in its key, whose type prints differently", name);
    }
    return {};
}

std::string publication_for(const plan& p,
                            const std::vector<followed_table>& tables,
                            bool lists_columns) {
    std::string list;
    for (std::size_t i = 0; i < p.tables.size() && i < tables.size(); ++i) {
        if (!tables[i].why_not.empty()) continue;
        list += fmt::format(
            "{}{}.{}", list.empty() ? "" : ", ", ident(p.schema), ident(p.tables[i].name));
        if (!lists_columns || tables[i].identity == 'f') continue;
        std::string columns;
        for (const auto& name : p.tables[i].key)
            columns += (columns.empty() ? "" : ", ") + ident(name);
        list += fmt::format(" ({})", columns);
    }
    return fmt::format("CREATE PUBLICATION {} FOR TABLE {}", ident(decoding_name(p.move)), list);
}

// Made and rolled back: rights are what PostgreSQL says they are.
answer<std::optional<refusal>> try_publication(home_link& postgres,
                                               const std::string& sql,
                                               std::chrono::milliseconds lock_timeout) {
    if (auto begun = begin(postgres, lock_timeout); !begun) return tl::unexpected(begun.error());
    const auto made = send(postgres, sql);
    rollback(postgres);
    if (made || made.error().sqlstate == lock_not_available) return std::optional<refusal>{};
    if (made.error().what == fate::unknown) return tl::unexpected(made.error());
    return std::optional<refusal>{
        refusal{"cannot_decode",
                "the changes of the tables cannot be followed: " + made.error().message,
                "let the admin of the server own the tables' role (GRANT role TO admin) and CREATE "
                "in the database"}};
}

}  // namespace

answer<std::vector<followed_table>> read_followed_tables(home_link& postgres,
                                                         const plan& p,
                                                         const std::string& schema) {
    auto reply = postgres.exec(
        fmt::format("SELECT c.relname, c.oid, c.relfilenode, c.relreplident, c.relpersistence FROM "
                    "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 "
                    "AND {}",
                    is_tool_table()),
        {{param_type::text, schema}});
    if (!reply) return tl::unexpected(reply.error());
    std::map<std::string, followed_table> found;
    for (const auto& r : reply->data) {
        const auto identity = text(r, 3), persistence = text(r, 4);
        found[text(r, 0)] = {number<std::uint32_t>(text(r, 1)),
                             number<std::uint64_t>(text(r, 2)),
                             identity.empty() ? ' ' : identity[0],
                             persistence.empty() ? ' ' : persistence[0],
                             {}};
    }
    std::vector<followed_table> out;
    for (const auto& t : p.tables) {
        const auto at = found.find(t.name);
        out.push_back(at == found.end() ? followed_table{} : at->second);
        out.back().why_not = why_not_followed(t, out.back());
    }
    return out;
}

answer<std::string> publication_sql(home_link& postgres,
                                    const plan& p,
                                    const std::vector<followed_table>& tables) {
    const auto version = server_version(postgres);
    if (!version) return tl::unexpected(version.error());
    return publication_for(p, tables, *version >= version_of_columns);
}

answer<std::optional<refusal>> why_no_decoding(home_link& postgres,
                                               const plan& p,
                                               const std::vector<followed_table>& tables,
                                               std::chrono::milliseconds lock_timeout) {
    const auto version = server_version(postgres);
    if (!version) return tl::unexpected(version.error());
    auto reply = postgres.exec(
        "SELECT current_setting('wal_level'), current_setting('max_replication_slots')::int - "
        "(SELECT count(*) FROM pg_replication_slots), current_setting('max_replication_slots'), "
        "rolsuper OR rolreplication, current_user FROM pg_roles WHERE rolname = current_user");
    if (!reply) return tl::unexpected(reply.error());
    const row r = reply->data.empty() ? row{} : reply->data[0];
    std::string what, mend;
    const auto lacking = [&](const std::string& message, const std::string& how) {
        what += (what.empty() ? "" : "; ") + message;
        mend += (mend.empty() ? "" : "; ") + how;
    };
    if (*version < version_least) lacking("the server is older than PostgreSQL 14", "upgrade it");
    if (text(r, 0) != "logical")
        lacking(fmt::format("wal_level is {}", text(r, 0)),
                "ALTER SYSTEM SET wal_level = logical, and restart the server");
    else if (number<int>(text(r, 1)) <= 0)
        lacking(fmt::format("all {} replication slots are in use", text(r, 2)),
                "raise max_replication_slots, or drop a slot that nobody uses");
    if (text(r, 3) != "t")
        lacking(fmt::format("\"{}\" lacks the REPLICATION attribute", text(r, 4)),
                fmt::format("ALTER ROLE {} REPLICATION", ident(text(r, 4))));
    if (std::all_of(tables.begin(), tables.end(), [](const auto& t) { return !t.why_not.empty(); }))
        lacking("no table has a key by which its changes can be followed",
                "give the big tables a primary key");
    if (!what.empty())
        return std::optional<refusal>{refusal{
            "cannot_decode", "the changes of the tables cannot be followed: " + what, mend}};
    return try_publication(
        postgres, publication_for(p, tables, *version >= version_of_columns), lock_timeout);
}

answer<std::string> drop_decoding(home_link& postgres, const std::string& move) {
    const auto which = move.empty() ? fmt::format("~ {}", own_names)
                                    : "= " + sql::quote_literal(decoding_name(move));
    auto reply = postgres.exec(
        fmt::format("SELECT 'slot', slot_name, active_pid FROM pg_replication_slots WHERE database "
                    "= current_database() AND slot_name {} UNION ALL SELECT 'publication', "
                    "pubname, NULL FROM pg_publication WHERE pubname {}",
                    which,
                    which));
    if (!reply) return tl::unexpected(reply.error());
    std::string left;
    for (const auto& r : reply->data) {
        const bool slot = text(r, 0) == "slot";
        const auto name = text(r, 1), pid = text(r, 2);
        // A temporary slot goes with its session.
        const auto gone = postgres.exec(
            !slot ? fmt::format("DROP PUBLICATION IF EXISTS {}", ident(name))
            : pid.empty()
                ? fmt::format("SELECT pg_drop_replication_slot({})", sql::quote_literal(name))
                : fmt::format("SELECT pg_terminate_backend({}, 1000)", pid));
        const bool ends = slot && !pid.empty();
        const bool stays = gone && ends && (gone->data.empty() || text(gone->data[0], 0) != "t");
        if (gone && !stays) continue;
        if (!gone && gone.error().sqlstate == undefined_object) continue;
        if (!gone && gone.error().what == fate::unknown) return tl::unexpected(gone.error());
        left += fmt::format("{}{} {} is left at PostgreSQL: {}",
                            left.empty() ? "" : "; ",
                            text(r, 0),
                            name,
                            gone ? "its session does not end" : gone.error().message);
    }
    return left;
}

}  // namespace hotlane::move
