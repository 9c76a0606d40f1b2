#include "router/move/engine_home.hpp"

#include <fmt/format.h>
#include <charconv>

#include "router/move/names.hpp"
#include "router/sql/facts.hpp"

namespace hotlane::move {
namespace {

constexpr std::string_view tombstone_column = "hotlane_moved";
constexpr std::string_view placeholder_column = "hotlane_placeholder";

std::string ident(std::string_view name) {
    return sql::quote_identifier(name);
}

answer<void> done(const answer<rows>& reply) {
    if (!reply) return tl::unexpected(reply.error());
    return {};
}

std::string at(const row& r, std::size_t i) {
    return i < r.size() && r[i] ? *r[i] : std::string();
}

std::string join_quoted(const std::vector<std::string>& names) {
    std::string out;
    for (const auto& n : names)
        out += (out.empty() ? "" : ", ") + ident(n);
    return out;
}

std::string_view plain_type(value_type type) {
    switch (type) {
        case value_type::integer:
            return "INTEGER";
        case value_type::real:
            return "REAL";
        case value_type::text:
            return "TEXT";
        case value_type::blob:
            return "BLOB";
    }
    return "TEXT";
}

}  // namespace

answer<engine_catalog> read_engine_catalog(home_link& engine) {
    auto reply = engine.exec("SHOW twill.catalog");
    if (!reply) return tl::unexpected(reply.error());
    engine_catalog out;
    const auto truth = [](const std::string& t) {
        return t == "1" || t == "t" || t == "true" || t == "YES";
    };
    for (const auto& r : reply->data) {
        catalog_column c{at(r, 1), at(r, 2), truth(at(r, 3)), truth(at(r, 4)), truth(at(r, 5)), {}};
        if (r.size() > 6 && r[6] && !r[6]->empty()) c.default_expression = r[6];
        out[at(r, 0)].push_back(std::move(c));
    }
    return out;
}

stands what_stands(const engine_catalog& catalog, const std::string& name) {
    const auto found = catalog.find(name);
    if (found == catalog.end()) return stands::nothing;
    const auto& columns = found->second;
    if (columns.size() == 1 &&
        (columns[0].name == tombstone_column || columns[0].name == placeholder_column))
        return stands::ours;
    return stands::data;
}

static answer<std::string> read_counter(home_link& engine, std::string_view name) {
    auto reply = engine.exec("SHOW twill.stats");
    if (!reply) return tl::unexpected(reply.error());
    for (const auto& r : reply->data)
        if (at(r, 0) == name) return at(r, 1);
    return std::string();
}

answer<std::string> read_lsn(home_link& engine) {
    return read_counter(engine, "twill_committed_lsn");
}

answer<std::optional<engine_count>> read_count(home_link& engine) {
    auto reply = engine.exec("SHOW twill.stats");
    if (!reply) return tl::unexpected(reply.error());
    std::optional<std::uint64_t> commits, lsn;
    for (const auto& r : reply->data) {
        const bool is_commits = at(r, 0) == "twill_commit_total";
        if (!is_commits && at(r, 0) != "twill_committed_lsn") continue;
        const std::string text = at(r, 1);
        std::uint64_t number = 0;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
        if (read.ec == std::errc{} && read.ptr == text.data() + text.size() && !text.empty())
            (is_commits ? commits : lsn) = number;
    }
    if (!commits || !lsn) return std::optional<engine_count>{};
    return std::optional<engine_count>(engine_count{*commits, *lsn});
}

answer<std::optional<std::uint64_t>> read_commits(home_link& engine) {
    const auto count = read_count(engine);
    if (!count) return tl::unexpected(count.error());
    if (!*count) return std::optional<std::uint64_t>{};
    return std::optional<std::uint64_t>{(*count)->commits};
}

answer<std::vector<relationship>> read_relationships(home_link& engine) {
    auto reply = engine.exec("SHOW twill.relationships");
    if (!reply) return tl::unexpected(reply.error());
    std::vector<relationship> out;
    for (const auto& r : reply->data)
        if (r.size() >= 4) out.push_back({at(r, 0), at(r, 2), at(r, 3)});
    return out;
}

answer<void> rename_table(home_link& engine, const std::string& from, const std::string& to) {
    return done(engine.exec(fmt::format("ALTER TABLE {} RENAME TO {}", ident(from), ident(to))));
}

answer<void> drop_table(home_link& engine, const std::string& name) {
    return done(engine.exec(fmt::format("DROP TABLE {}", ident(name))));
}

answer<void> create_tombstone(home_link& engine, const std::string& name, std::uint64_t epoch) {
    auto made =
        done(engine.exec(fmt::format("CREATE TABLE {} ({} INTEGER PRIMARY KEY CHECK ({} = {}))",
                                     ident(name),
                                     tombstone_column,
                                     tombstone_column,
                                     epoch)));
    if (!made) return made;
    return done(engine.exec(fmt::format("INSERT INTO {} VALUES ({})", ident(name), epoch)));
}

answer<void> create_placeholder(home_link& engine, const std::string& name) {
    return done(engine.exec(
        fmt::format("CREATE TABLE {} ({} INTEGER PRIMARY KEY)", ident(name), placeholder_column)));
}

answer<void> write_hint(home_link& engine,
                        const std::string& tool,
                        const hint& what,
                        const std::string& peer) {
    auto made = engine.exec(fmt::format(
        "CREATE TABLE IF NOT EXISTS {} (tool TEXT PRIMARY KEY, move TEXT, epoch INTEGER, "
        "state TEXT, peer TEXT)",
        hint_table));
    if (!made) return tl::unexpected(made.error());
    return done(engine.exec(
        fmt::format("INSERT INTO {} (tool, move, epoch, state, peer) VALUES ($1, $2, $3, $4, $5) "
                    "ON CONFLICT (tool) DO UPDATE SET move = excluded.move, "
                    "epoch = excluded.epoch, state = excluded.state, peer = excluded.peer",
                    hint_table),
        {{param_type::text, tool},
         {param_type::text, what.move},
         {param_type::int8, std::to_string(what.epoch)},
         {param_type::text, what.state},
         {param_type::text, peer}}));
}

answer<std::optional<hint>> read_hint(home_link& engine,
                                      const engine_catalog& catalog,
                                      const std::string& tool) {
    if (!catalog.contains(std::string(hint_table))) return std::optional<hint>{};
    auto reply =
        engine.exec(fmt::format("SELECT move, epoch, state FROM {} WHERE tool = $1", hint_table),
                    {{param_type::text, tool}});
    if (!reply) return tl::unexpected(reply.error());
    if (reply->data.empty()) return std::optional<hint>{};
    hint out{at(reply->data[0], 0), at(reply->data[0], 2), 0};
    const std::string epoch = at(reply->data[0], 1);
    std::from_chars(epoch.data(), epoch.data() + epoch.size(), out.epoch);
    return std::optional<hint>{out};
}

std::string engine_create_table(const table& t, const std::string& name) {
    // An integer key is written at its column: only there does the engine number rows itself.
    const column* own_key = t.identity();
    std::string body;
    for (const auto& c : t.columns) {
        if (!body.empty()) body += ", ";
        body += ident(c.name) + " ";
        body += &c == own_key        ? "INTEGER PRIMARY KEY"
                : c.declared.empty() ? std::string(plain_type(c.type))
                                     : c.declared;
        if (&c == own_key && c.autoincrement) body += " AUTOINCREMENT";
        if (c.not_null && &c != own_key) body += " NOT NULL";
        if (c.unique && &c != own_key) body += " UNIQUE";
        if (c.default_expression) body += " DEFAULT " + *c.default_expression;
        for (const auto& check : c.checks)
            body += " CHECK (" + check + ")";
        if (c.references) body += " " + *c.references;
    }
    if (!own_key && !t.key.empty()) body += ", PRIMARY KEY (" + join_quoted(t.key) + ")";
    for (const auto& u : t.uniques)
        body += ", UNIQUE (" + join_quoted(u) + ")";
    for (const auto& check : t.checks)
        body += ", CHECK (" + check + ")";
    return fmt::format("CREATE TABLE {} ({})", ident(name), body);
}

std::string engine_columns(const table& t) {
    std::string list;
    for (const auto& c : t.columns) {
        if (!list.empty()) list += ", ";
        list += ident(c.name) + ", typeof(" + ident(c.name) + ")";
    }
    return list;
}

std::string engine_select(const table& t, const std::string& name) {
    return fmt::format("SELECT {} FROM {}", engine_columns(t), ident(name));
}

}  // namespace hotlane::move
