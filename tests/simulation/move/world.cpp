#include "world.hpp"

#include <algorithm>

#include "router/move/adopt.hpp"
#include "router/move/names.hpp"

namespace sim {
namespace {

using namespace hotlane;
using namespace hotlane::move;
using policy::home_kind;

class sim_connector final : public connector {
  public:
    sim_connector(world& w, script& steps) : w_(w), steps_(steps) {}
    answer<std::unique_ptr<home_link>> open(home_kind home, std::chrono::milliseconds) override {
        const bool engine = home == home_kind::engine;
        if (engine ? w_.at_engine.down : w_.at_postgres.down)
            return tl::unexpected(link_error{"", "connection refused", fate::refused});
        return engine ? w_.at_engine.connect(steps_) : w_.at_postgres.connect(steps_);
    }

  private:
    world& w_;
    script& steps_;
};

config::model make_model() {
    config::model m;
    config::postgres_server server;
    server.name = "main";
    m.postgres["main"] = server;
    config::tool t;
    t.name = "shop";
    t.postgres = config::postgres_home{"main", "shop", "public", "app", {}};
    m.tools.push_back(t);
    return m;
}

findings make_findings(world& w, const std::string& id, home_kind to, context& with) {
    findings f;
    plan& p = f.made;
    p.move = id;
    p.tool = "shop";
    p.to = to;
    p.from = to == home_kind::engine ? home_kind::postgres : home_kind::engine;
    p.schema = "public";
    p.role = "app";
    p.seed = "seed";
    for (const char* name : {"t", "u"}) {
        table t;
        t.name = name;
        t.columns = {{"id", value_type::integer, "", false, false, false, {}, {}, {}},
                     {"v", value_type::text, "", false, false, false, {}, {}, {}}};
        t.key = {"id"};
        p.tables.push_back(t);
    }
    p.strays.assign(p.tables.size(), 0);
    p.ahead = w.ahead && to == home_kind::postgres;
    f.shape = "shape";
    p.epoch = 1;
    const auto& m = w.at_postgres.now().marker;
    if (m) {
        marker mark;
        mark.move = (*m)[0];
        mark.epoch = p.epoch = std::stoull((*m)[1]);
        mark.state = (*m)[2] == "serving" ? marker_state::serving : marker_state::away;
        f.at_start = mark;
    }
    f.engine = std::move(*with.homes.open(home_kind::engine, {}));
    f.postgres = std::move(*with.homes.open(home_kind::postgres, {}));
    return f;
}

policy::time_point fixed_now() {
    return policy::time_point{std::chrono::milliseconds(1'764'524'000'000)};
}

}  // namespace

auto memory_store::placements() -> stored<std::vector<placement_record>> {
    std::vector<placement_record> out;
    for (const auto& [name, p] : placements_)
        out.push_back(p);
    return out;
}
auto memory_store::placement(const std::string& tool) -> stored<std::optional<placement_record>> {
    const auto at = placements_.find(tool);
    return at == placements_.end() ? std::optional<placement_record>{} : std::optional(at->second);
}
auto memory_store::put_placement(const placement_record& record) -> stored<bool> {
    const auto at = placements_.find(record.tool);
    if (at != placements_.end() && at->second.epoch >= record.epoch) return false;
    placements_[record.tool] = record;
    return true;
}
auto memory_store::put_move(const move_record& record) -> stored<void> {
    moves_[record.id] = record;
    return {};
}
auto memory_store::move(const std::string& id) -> stored<std::optional<move_record>> {
    const auto at = moves_.find(id);
    return at == moves_.end() ? std::optional<move_record>{} : std::optional(at->second);
}
auto memory_store::unfinished_moves() -> stored<std::vector<move_record>> {
    std::vector<move_record> out;
    for (const auto& [id, m] : moves_)
        if (m.outcome.empty()) out.push_back(m);
    return out;
}
auto memory_store::recent_moves(std::size_t) -> stored<std::vector<move_record>> {
    std::vector<move_record> out;
    for (const auto& [id, m] : moves_)
        out.push_back(m);
    return out;
}

world::world() : model(make_model()) {
    for (const char* name : {"t", "u"})
        at_engine.accepts(std::string("CREATE TABLE ") + name +
                          " (id INTEGER PRIMARY KEY, v TEXT)");
}

std::vector<home_kind> world::probe() {
    std::vector<home_kind> took;
    const std::string a = std::to_string(next_key++), b = std::to_string(next_key++);
    chance = chance * 1'664'525U + 1'013'904'223U;
    if (bystanders_make_tables > 0 && (chance >> 16U) % bystanders_make_tables == 0) {
        made_tables = true;
        at_engine.accepts("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, v TEXT)");
    }
    if (engine_accepts(a)) {
        accepted.push_back(a);
        took.push_back(home_kind::engine);
    }
    if (at_postgres.accepts_insert("t", b)) {
        accepted.push_back(b);
        took.push_back(home_kind::postgres);
    }
    both_accepted = both_accepted || took.size() == 2;
    return took;
}

// As a session of hotlane does it: through the gate, and what was written is told before leaving.
bool world::engine_accepts(const std::string& key) {
    const std::string sql = "INSERT INTO t (id, v) VALUES (" + key + ", 'x')";
    if (!through) return at_engine.accepts(sql);
    const auto route = through->current();
    if (!route->served || route->at.kind != home_kind::engine || !through->gate.try_enter())
        return false;
    const auto watch = through->changes.number();
    const bool took = at_engine.accepts(sql);
    const std::vector<std::string> tables{"T"};
    if (took) through->changes.take({.watch = watch, .commits = 1, .tables = tables});
    through->gate.leave();
    return took;
}

std::vector<std::string> world::rows_at(home_kind home) {
    return home == home_kind::engine ? at_engine.column("SELECT id FROM t") : at_postgres.keys("t");
}

std::vector<std::string> world::pairs_of_u(home_kind home) {
    if (home == home_kind::engine)
        return at_engine.column("SELECT id || ' ' || v FROM u ORDER BY id");
    std::vector<std::string> out;
    for (const auto& r : at_postgres.now().schemas.at("public").at("u").rows)
        out.push_back(r[0].value_or("NULL") + " " + r[1].value_or("NULL"));
    std::sort(out.begin(), out.end());
    return out;
}

std::vector<std::string> world::strays() {
    std::vector<std::string> out;
    for (const auto& name : at_engine.column("SELECT name FROM sqlite_schema WHERE name LIKE "
                                             "'hotlane\\_%\\_s%' ESCAPE '\\'"))
        for (const auto& id : at_engine.column("SELECT id FROM \"" + name + "\""))
            out.push_back(id);
    return out;
}

process::process(world& in)
    : w(in),
      tools(in.model),
      tool(tools.find("shop")),
      around{in.model, tools, in.store, &fixed_now, {}, nullptr},
      homes(std::make_unique<sim_connector>(in, steps)),
      with{around, *tool, *homes, steps, {}} {
    if (w.by_hotlane) w.through = tool.get();
    with.limit.settle = std::chrono::milliseconds(0);
    with.limit.settle_pause = std::chrono::milliseconds(0);
    steps.bystanders = [this] { w.probe(); };
    saw("SELECT v FROM t WHERE id = 1");
    saw("UPDATE u SET v = 'x' WHERE id = 1");
}

void process::saw(const std::string& sql) {
    tool->statements.see(std::hash<std::string>{}(sql), sql, {}, fixed_now());
}

bool process::move(home_kind to, report* out) {
    const std::string id = make_move_id(fixed_now(), w.ids++);
    request what;
    what.tool = "shop";
    what.to = to;
    what.execute = true;
    what.hold_max = std::chrono::milliseconds(5'000);
    try {
        auto done = execute(with, what, make_findings(w, id, to, with), fixed_now());
        if (out) *out = std::move(done);
        return true;
    } catch (const killed&) {
        return false;
    }
}

bool process::adopt(home_kind home, adopted* out) {
    try {
        auto done =
            adopt_with(with, {"shop", home, "tests", true}, make_move_id(fixed_now(), w.ids++));
        if (out) *out = std::move(done);
        return true;
    } catch (const killed&) {
        return false;
    }
}

bool process::recover(bool* known) {
    try {
        *known = recover_tool(with);
        return true;
    } catch (const killed&) {
        return false;
    }
}

}  // namespace sim
