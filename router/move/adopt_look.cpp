// What both homes say of a tool that nobody serves.
#include <fmt/format.h>
#include <algorithm>
#include <set>

#include "router/move/adopt.hpp"
#include "router/move/fence_sql.hpp"
#include "router/move/names.hpp"
#include "router/sql/facts.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;

constexpr std::size_t moves_looked_at = 1'000;

template <typename Value>
using looked = tl::expected<Value, refusal>;

looked<std::unique_ptr<home_link>> open(context& with, home_kind home) {
    auto link = with.homes.open(home, with.limit.connect);
    if (!link)
        return tl::unexpected(
            refusal{"home_down",
                    fmt::format("{} does not answer: {}",
                                home == home_kind::engine ? "the engine" : "PostgreSQL",
                                link.error().message),
                    "both homes must answer: one that does not cannot be kept from accepting "
                    "writes. In the place of a PostgreSQL that is lost for good put an empty "
                    "database"});
    (*link)->set_deadline(with.limit.scan);
    return std::move(*link);
}

std::optional<std::uint64_t> count_rows(home_link& link, const std::string& table) {
    const auto reply = link.exec("SELECT count(*) FROM " + table);
    if (!reply || reply->data.empty() || !reply->data[0].at(0)) return std::nullopt;
    return std::strtoull(reply->data[0][0]->c_str(), nullptr, 10);
}

std::string ident(std::string_view name) {
    return sql::quote_identifier(name);
}

// A schema that is not there has no tables.
answer<std::vector<counted_table>> tables_of(home_link& postgres, const std::string& schema) {
    const auto reply = postgres.exec(tables_sql(schema));
    if (!reply) return tl::unexpected(reply.error());
    std::vector<counted_table> out;
    for (const auto& r : reply->data) {
        const auto name = r.at(0).value_or("");
        out.push_back({name, count_rows(postgres, ident(schema) + "." + ident(name))});
    }
    return out;
}

std::set<std::string> moves_with_copies(const engine_catalog& catalog) {
    std::set<std::string> out;
    for (const auto& [name, columns] : catalog) {
        const auto id = move_of_name(name, part::fenced);
        if (!id.empty() && what_stands(catalog, name) == stands::data) out.insert(id);
    }
    return out;
}

// The tables of a move, in the order that its names count in; empty: nobody knows.
std::vector<std::string> tables_of_move(const adopt_view& v,
                                        const std::vector<placement::move_record>& moves,
                                        const std::string& id) {
    for (const auto& r : moves)
        if (r.id == id)
            if (auto names = plan_from_json(r.plan).names(); !names.empty()) return names;
    if (v.mark && v.mark->move == id) return v.mark->tables;
    // One tombstone and one copy can only belong together.
    if (v.tombstones.size() == 1) return v.tombstones;
    return {};
}

void look_at_names(adopt_view& v,
                   const engine_catalog& catalog,
                   const std::vector<placement::move_record>& moves) {
    for (const auto& [name, columns] : catalog) {
        if (is_own_name(name)) continue;
        if (what_stands(catalog, name) == stands::ours)
            v.tombstones.push_back(name);
        else
            v.at_engine.push_back({name, count_rows(*v.engine, ident(name))});
    }
    // Where no tombstone stands the tool came home behind those copies: they are old.
    const auto kept = moves_with_copies(catalog);
    if (kept.empty() || v.tombstones.empty()) return;
    v.copy_of = *kept.rbegin();  // ids sort by time: what the tool left last
    for (const auto& r : moves)
        if (r.id == v.copy_of) v.left = r.started;
    const auto names = tables_of_move(v, moves, v.copy_of);
    for (std::size_t i = 0; i < names.size(); ++i) {
        const auto copy = engine_name(v.copy_of, part::fenced, i);
        if (what_stands(catalog, copy) == stands::data)
            v.copies.push_back({names[i], count_rows(*v.engine, ident(copy))});
    }
}

void look_at_journal(adopt_view& v,
                     const std::string& tool,
                     const std::vector<placement::move_record>& moves) {
    const auto raise = [&v](std::uint64_t epoch) { v.highest = std::max(v.highest, epoch); };
    if (v.stored) raise(v.stored->epoch);
    if (v.mark) raise(v.mark->epoch);
    if (v.hinted) raise(v.hinted->epoch);
    std::string latest;
    for (const auto& r : moves) {
        if (r.tool != tool || r.outcome == "refused" || r.outcome == dry_run_outcome) continue;
        raise(r.epoch + 1);
        if (r.outcome.empty()) v.open.push_back(r);
        if (r.outcome == "done" && r.id > latest) {
            latest = r.id;
            v.known = plan_from_json(r.plan).names();
        }
    }
    if (v.known.empty() && v.mark) v.known = v.mark->tables;
}

nlohmann::json tables_json(const std::vector<counted_table>& tables) {
    auto out = nlohmann::json::array();
    for (const auto& t : tables)
        out.push_back(
            {{"name", t.name}, {"rows", t.rows ? nlohmann::json(*t.rows) : nlohmann::json()}});
    return out;
}

}  // namespace

tl::expected<adopt_view, refusal> look_to_adopt(context& with) {
    adopt_view v;
    auto postgres = open(with, home_kind::postgres);
    if (!postgres) return tl::unexpected(postgres.error());
    auto engine = open(with, home_kind::engine);
    if (!engine) return tl::unexpected(engine.error());
    v.postgres = std::move(*postgres);
    v.engine = std::move(*engine);
    const auto& tool = with.tool.name;
    const auto stored = with.around.store.placement(tool);
    const auto moves = with.around.store.recent_moves(moves_looked_at);
    if (!stored || !moves)
        return tl::unexpected(refusal{"journal_failed",
                                      "the state store does not answer",
                                      "mend the state file or its disk"});
    v.stored = *stored;
    const auto failed = [](home_kind home, std::string_view doing, const link_error& e) {
        return tl::unexpected(home_failed(home, doing, e));
    };
    const auto mark = read_marker(*v.postgres, tool, false);
    if (!mark) return failed(home_kind::postgres, "reading the marker", mark.error());
    v.mark = *mark;
    const auto catalog = read_engine_catalog(*v.engine);
    if (!catalog) return failed(home_kind::engine, "reading the catalog", catalog.error());
    const auto hinted = read_hint(*v.engine, *catalog, tool);
    if (!hinted) return failed(home_kind::engine, "reading the hint", hinted.error());
    v.hinted = *hinted;
    const auto schema = schema_of(with.tool.settings);
    auto real = tables_of(*v.postgres, schema);
    if (!real) return failed(home_kind::postgres, "reading the tables", real.error());
    v.at_postgres = std::move(*real);
    if (v.mark && v.mark->state == marker_state::fenced) {
        auto fenced = tables_of(*v.postgres, fenced_schema(v.mark->move));
        if (!fenced) return failed(home_kind::postgres, "reading the tables", fenced.error());
        v.fenced = std::move(*fenced);
    }
    std::vector<placement::move_record> mine;
    for (const auto& r : *moves)
        if (r.tool == tool) mine.push_back(r);
    look_at_journal(v, tool, mine);
    look_at_names(v, *catalog, mine);
    return v;
}

nlohmann::json to_json(const adopt_view& v) {
    const auto word = [](const auto& text) { return std::string(text); };
    nlohmann::json mark, stored, hinted;
    if (v.mark)
        mark = {{"state", word(to_string(v.mark->state))},
                {"epoch", v.mark->epoch},
                {"move", v.mark->move}};
    if (v.stored)
        stored = {{"home", word(policy::to_string(v.stored->home))},
                  {"epoch", v.stored->epoch},
                  {"move", v.stored->move}};
    if (v.hinted)
        hinted = {{"state", v.hinted->state}, {"epoch", v.hinted->epoch}, {"move", v.hinted->move}};
    return {{"store", stored},
            {"postgres",
             {{"marker", mark},
              {"tables", tables_json(v.at_postgres)},
              {"fenced", tables_json(v.fenced)}}},
            {"engine",
             {{"hint", hinted},
              {"tables", tables_json(v.at_engine)},
              {"tombstones", v.tombstones},
              {"copies", tables_json(v.copies)},
              {"copies_of", v.copy_of}}},
            {"highest_epoch", v.highest}};
}

}  // namespace hotlane::move
