// One tool, one store, one order: a move or a recovery without the data plane, for tests that try
// the mover on real homes (tests/integration/test_move_scenarios.py).
//
//   move-harness --config FILE --state FILE --tool NAME [--ddl FILE] [--saw FILE]
//                (--to engine|postgres [--dry-run] [--hold MS] | --recover | --clean ID |
//                 --adopt engine|postgres [--dry-run])
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>

#include "config/load.hpp"
#include "router/move/move.hpp"
#include "router/placement/fleet_store.hpp"
#include "router/sql/facts.hpp"

namespace {

using hotlane::policy::home_kind;
using hotlane::policy::time_point;

struct order {
    std::string config, state, tool, ddl, saw, to, clean, adopt;
    bool dry_run{false}, recover{false};
    int hold_ms{5'000};
};

time_point now() {
    return std::chrono::time_point_cast<hotlane::policy::duration>(
        std::chrono::system_clock::now());
}

// The statements of a file; none where none is named.
std::vector<std::string> statements_of(const std::string& path) {
    if (path.empty()) return {};
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    return hotlane::sql::split_statements(text);
}

nlohmann::json describe(const hotlane::placement::tool_entry& tool) {
    const auto route = tool.current();
    if (!route) return {{"served", false}};
    return {{"served", route->served},
            {"home", std::string(hotlane::policy::to_string(route->at.kind))},
            {"epoch", route->epoch},
            {"reason", route->reason}};
}

nlohmann::json describe(const hotlane::move::report& r) {
    auto refusals = nlohmann::json::array();
    for (const auto& f : r.refusals)
        refusals.push_back({{"code", f.code}, {"message", f.message}, {"mend", f.mend}});
    return {{"id", r.id},
            {"moved", r.moved},
            {"refusals", refusals},
            {"held_ms", r.held.count()},
            {"detail", r.detail}};
}

int obey(const order& o) {
    const auto loaded = hotlane::config::load_file(o.config);
    if (!loaded) {
        std::cerr << loaded.error().text;
        return 2;
    }
    auto store = hotlane::placement::open_sqlite_store(o.state);
    if (!store) {
        std::cerr << store.error().what << '\n';
        return 2;
    }
    hotlane::placement::tool_table tools(loaded->value);
    const auto tool = tools.find(o.tool);
    if (!tool) {
        std::cerr << "no such tool\n";
        return 2;
    }
    for (const auto& s : statements_of(o.ddl))
        static_cast<void>((*store)->add_ddl(o.tool, s));
    for (const auto& s : statements_of(o.saw))
        tool->statements.see(hotlane::sql::analyze(s).fingerprint, s, {}, now());
    hotlane::move::surroundings around{loaded->value, tools, **store, &now, {}, nullptr};
    nlohmann::json out;
    const bool placed = hotlane::move::recover(*tool, around);
    if (!o.to.empty()) {
        hotlane::move::request what;
        what.tool = o.tool;
        what.to = o.to == "postgres" ? home_kind::postgres : home_kind::engine;
        what.ordered_by = "harness";
        what.execute = !o.dry_run;
        what.hold_max = std::chrono::milliseconds(o.hold_ms);
        out = describe(hotlane::move::run(what, around));
    } else if (!o.adopt.empty()) {
        const auto home = o.adopt == "postgres" ? home_kind::postgres : home_kind::engine;
        const auto done = hotlane::move::adopt({o.tool, home, "harness", !o.dry_run}, around);
        auto codes = nlohmann::json::array();
        for (const auto& r : done.refusals)
            codes.push_back(r.code);
        out = {{"adopted", done.done}, {"refusals", codes}, {"detail", done.detail}};
    } else if (!o.clean.empty()) {
        const auto record = (*store)->move(o.clean);
        if (!record || !*record) return 2;
        const auto done = hotlane::move::clean(**record, around);
        out = {{"dropped", done.dropped}, {"late_write", done.late_write}};
    }
    out["placed"] = placed;
    out["route"] = describe(*tool);
    std::cout << out.dump(2) << '\n';
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    order o;
    CLI::App app{"moves one tool"};
    app.add_option("--config", o.config)->required();
    app.add_option("--state", o.state)->required();
    app.add_option("--tool", o.tool)->required();
    app.add_option("--ddl", o.ddl);
    app.add_option("--saw", o.saw);
    app.add_option("--to", o.to);
    app.add_option("--clean", o.clean);
    app.add_option("--adopt", o.adopt);
    app.add_option("--hold", o.hold_ms);
    app.add_flag("--dry-run", o.dry_run);
    app.add_flag("--recover", o.recover);
    CLI11_PARSE(app, argc, argv);
    return obey(o);
}
