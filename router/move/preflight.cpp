#include "router/move/preflight.hpp"

#include <fmt/format.h>
#include <openssl/rand.h>
#include <algorithm>
#include <fstream>
#include <iterator>

#include "router/move/names.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;

constexpr std::size_t bad_values_shown = 10;
// A row's header, its line pointer, padding and its entry in a key's index; and the values once in
// the table, once at most in indexes.
constexpr std::uint64_t row_overhead = 64, size_factor = 2;
constexpr std::string_view invalid_catalog = "3D000";

std::string random_seed() {
    std::array<unsigned char, 16> bytes{};
    // Any seed is right as long as both sides use it; this one cannot be foreseen either.
    if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) bytes.fill(7);
    std::string out;
    for (const auto b : bytes)
        out += fmt::format("{:02x}", b);
    return out;
}

bool open_home(preflight& f, home_kind kind, std::unique_ptr<home_link>& into) {
    auto opened = f.with.homes.open(kind, f.with.limit.connect);
    if (opened) {
        into = std::move(*opened);
        into->set_deadline(f.with.limit.statement);
        return true;
    }
    const bool target = kind == f.what.to;
    const std::string& text = opened.error().message;
    const std::string who = kind == home_kind::engine ? "the engine" : "PostgreSQL";
    if (opened.error().sqlstate == invalid_catalog ||
        text.find("does not exist") != std::string::npos)
        f.refuse(target ? "no_database" : "source_down",
                 fmt::format("{}: {}", who, text),
                 "create the database and the role first: hotlane makes nothing global");
    else
        f.refuse(target ? "target_down" : "source_down",
                 fmt::format("{} does not answer: {}", who, text),
                 "start it, or correct its address, user or password in the configuration");
    return false;
}

void fill_defaults(preflight& f) {
    f.home = *f.with.tool.settings.postgres;
    const auto& t = f.with.tool.settings;
    if (f.home.database.empty()) f.home.database = t.name;
    if (f.home.schema.empty()) f.home.schema = "public";
    if (f.home.role.empty() && t.match.user.find_first_of("*?") == std::string::npos)
        f.home.role = t.match.user;
}

bool check_other_moves(preflight& f) {
    auto unfinished = f.with.around.store.unfinished_moves();
    if (!unfinished) {
        f.refuse("journal_failed",
                 "the state store does not answer: " + unfinished.error().what,
                 "mend the state file or its disk");
        return false;
    }
    for (const auto& r : *unfinished)
        if (r.tool == f.with.tool.name)
            f.refuse("another_move",
                     fmt::format("move {} of this tool has not ended", r.id),
                     "see `hotlane moves`; it ends by itself when both homes answer");
    return f.good();
}

}  // namespace

void preflight::refuse(std::string code, std::string message, std::string mend) {
    found.refusals.push_back({std::move(code), std::move(message), std::move(mend)});
}

bool prepare(preflight& f, const std::string& id) {
    const auto& t = f.with.tool.settings;
    f.budget = std::min(f.what.hold_max, t.hold_max);
    plan& p = f.found.made;
    p.move = id;
    p.tool = f.with.tool.name;
    p.to = f.what.to;
    p.from = p.to == home_kind::engine ? home_kind::postgres : home_kind::engine;
    p.seed = random_seed();
    if (!t.postgres) {
        f.refuse("no_target",
                 "the tool has no PostgreSQL home in its settings",
                 "give it `postgres:` with a server");
        return false;
    }
    const auto server = f.with.around.model.postgres.find(t.postgres->server);
    if (server == f.with.around.model.postgres.end()) {
        f.refuse("no_target",
                 fmt::format("server \"{}\" is not configured", t.postgres->server),
                 "name a server under `postgres:`");
        return false;
    }
    f.server = server->second;
    fill_defaults(f);
    p.schema = f.home.schema;
    p.role = f.home.role;
    if (!check_other_moves(f)) return false;
    const bool postgres = open_home(f, home_kind::postgres, f.found.postgres);
    const bool engine = open_home(f, home_kind::engine, f.found.engine);
    return postgres && engine;
}

sql::schema_definition known_ddl(preflight& f) {
    std::vector<std::string> statements;
    const auto& file = f.with.tool.settings.schema_file;
    if (!file.empty()) {
        std::ifstream in(file);
        if (!in) {
            f.refuse("no_schema",
                     fmt::format("schema file {} cannot be read", file),
                     "correct `schema:` of the tool");
            return {};
        }
        const std::string text{std::istreambuf_iterator<char>(in), {}};
        statements = sql::split_statements(text);
    }
    auto seen = f.with.around.store.ddl(f.with.tool.name);
    if (!seen) {
        f.refuse("journal_failed",
                 "the state store does not answer: " + seen.error().what,
                 "mend the state file or its disk");
        return {};
    }
    f.found.ddl_statements = seen->size();
    const auto declared = sql::read_ddl(statements);
    statements.insert(statements.end(), seen->begin(), seen->end());
    auto all = sql::read_ddl(statements);
    for (auto& t : all.tables)  // the operator's file is no guess
        for (const auto& d : declared.tables)
            if (d.name == t.name) t.if_not_exists = false;
    return all;
}

bool note_bad_value(preflight& f, refusal bad) {
    f.found.refusals.push_back(std::move(bad));
    return f.found.refusals.size() < bad_values_shown;
}

long long connection_room::free() const noexcept {
    long long least = server;
    if (database >= 0) least = std::min(least, database - in_database);
    if (role >= 0) least = std::min(least, role - of_role);
    return least;
}

std::string connection_room::why() const {
    if (role >= 0 && role - of_role == free())
        return fmt::format("the role's CONNECTION LIMIT is {}, {} in use", role, of_role);
    if (database >= 0 && database - in_database == free())
        return fmt::format(
            "the database's CONNECTION LIMIT is {}, {} in use", database, in_database);
    return "max_connections of the server";
}

void check_space(preflight& f) {
    const std::uint64_t forecast = f.bytes * size_factor + f.rows * row_overhead;
    f.found.detail["space"] = {{"forecast_bytes", forecast}, {"limit_bytes", f.server.space_bytes}};
    if (f.server.space_bytes == 0 || forecast <= f.server.space_bytes) return;
    f.refuse(
        "space",
        fmt::format("the copy needs about {} MiB on PostgreSQL server {}; its `space` is {} MiB",
                    (forecast >> 20U) + 1,
                    f.server.name,
                    f.server.space_bytes >> 20U),
        "make room there and raise `space` of the server in the configuration");
}

copy_form copy_form_of(config::copy_rule asked,
                       std::chrono::milliseconds held,
                       std::chrono::milliseconds budget,
                       bool may_ahead) noexcept {
    using rule = config::copy_rule;
    const bool fits = held <= budget;
    const bool wants_ahead =
        asked == rule::ahead || (asked == rule::automatic && (!fits || held > held_copy_short));
    if (!wants_ahead) return fits ? copy_form::held : copy_form::refused;
    if (may_ahead) return copy_form::ahead;
    return fits && asked == rule::automatic ? copy_form::held_for_lack : copy_form::refused;
}

void choose_copy(preflight& f,
                 std::chrono::milliseconds held,
                 const std::optional<refusal>& not_ahead) {
    const auto asked = f.with.tool.settings.copy;
    const auto form = copy_form_of(asked, held, f.budget, !not_ahead);
    f.found.made.ahead = form == copy_form::ahead;
    f.found.detail["copy"] = f.found.made.ahead ? "ahead" : "held";
    f.found.detail["forecast"] = {{"rows", f.rows},
                                  {"scan_ms", f.scanned.count()},
                                  {"hold_ms", held.count()},
                                  {"budget_ms", f.budget.count()}};
    if (form == copy_form::held_for_lack)
        f.found.made.notes.push_back("the rows are copied under the hold: " + not_ahead->message);
    if (form != copy_form::refused) return;
    const bool by_rule = asked == config::copy_rule::held;
    if (asked != config::copy_rule::ahead)
        f.refuse("hold_forecast",
                 fmt::format("copying {} rows would hold the clients for about {} ms; the budget "
                             "is {} ms",
                             f.rows,
                             held.count(),
                             f.budget.count()),
                 fmt::format("raise hold_max of the tool, {}or make its tables smaller",
                             by_rule ? "let it copy ahead (`copy: auto`), " : ""));
    if (!by_rule) f.found.refusals.push_back(*not_ahead);
}

}  // namespace hotlane::move
