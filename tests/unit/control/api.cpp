// The control plane behind a real unix socket, with fake homes and moves.
#include "router/control/api.hpp"

#include <fstream>

#include "router/admin/client.hpp"
#include "router/admin/server.hpp"
#include "router/control/controller.hpp"
#include "router/control/reload.hpp"
#include "tests/unit/control/support.hpp"

using namespace hotlane;
using namespace hotlane::control;
using namespace hotlane::control::test;
using nlohmann::json;

namespace {

struct rig : bench {
    explicit rig(const std::vector<std::string>& names = {"shop", "other"})
        : bench(make_model(names)) {
        process_hooks hooks;
        hooks.version = "test";
        hooks.config_path = where.file("hotlane.yaml");
        controller::settings with;
        with.tick = 5ms;
        with.clean_every = 5ms;
        at = std::make_unique<controller>(
            *model.get(),
            tools,
            *store,
            in.act,
            [](const config::tool&, const config::model&, policy::home_kind) {
                return [] { return tl::expected<policy::sample, std::string>(policy::sample{}); };
            },
            in.log,
            hooks,
            [this] { return now(); },
            with);
        at->start();
        admin::server_options options;
        options.unix_path = where.file("admin.sock");
        served = std::move(*admin::server::start(options, *at));
        REQUIRE(eventually([&] {
            std::vector<std::string> failed;
            return at->ready(failed);
        }));
    }
    ~rig() {
        served.reset();
        at->stop(20s);
    }
    admin::client_answer ask(const std::string& method,
                             const std::string& path,
                             json body = json::object()) {
        auto got = admin::call(where.file("admin.sock"), method, "/api/v1/" + path, body, 20s);
        REQUIRE(got.has_value());
        return *got;
    }
    json get(const std::string& path) {
        auto got = ask("GET", path);
        REQUIRE(got.status == 200);
        CHECK(got.body["schema"] == "hotlane/v1");
        return got.body;
    }

    std::unique_ptr<controller> at;
    std::unique_ptr<admin::server> served;
};

}  // namespace

TEST_CASE("reads") {
    rig r;
    const auto status = r.get("status");
    CHECK(status["state"] == "ready");
    CHECK(status["tools"]["engine"] == 2);
    const auto tools = r.get("tools")["tools"];
    REQUIRE(tools.size() == 2);
    CHECK(tools[0]["name"] == "other");
    CHECK(tools[1]["home"] == "engine");
    CHECK(tools[1]["stage"] == "watching");
    CHECK(tools[1]["diagnosis"].is_null());
    CHECK(tools[1]["window"].is_null());
    const auto where = r.get("tools/shop");
    CHECK(where["home"] == "engine");
    CHECK(where["served"] == true);
    CHECK_FALSE(r.get("tools/shop/explain")["text"].get<std::string>().empty());
    CHECK(r.get("tools/shop/decisions")["decisions"].is_array());
    CHECK(r.get("moves")["moves"].empty());
}

TEST_CASE("wrong paths, tools, methods and bodies are told apart") {
    rig r;
    CHECK(r.ask("GET", "nothing").status == 404);
    CHECK(r.ask("GET", "tools/nobody").status == 404);
    CHECK(r.ask("POST", "tools/nobody/route", {{"to", "engine"}}).status == 404);
    CHECK(r.ask("GET", "tools/shop/route").status == 405);
    CHECK(r.ask("POST", "status").status == 405);
    CHECK(r.ask("POST", "tools/shop/route", {{"to", "mars"}}).status == 400);
    for (const json& execute : {json("yes"), json(1), json(nullptr)})
        CHECK(
            r.ask("POST", "tools/shop/route", {{"to", "postgres"}, {"execute", execute}}).status ==
            400);
    CHECK(r.ask("POST", "tools/shop/shard", {{"action", "maybe"}}).status == 400);
    CHECK(r.ask("GET", "orders/x").status == 404);
    CHECK(r.ask("GET", "moves/x").status == 404);
    CHECK(r.request_count() == 0);
}

TEST_CASE("without `execute` a route is a rehearsal") {
    rig r;
    const auto got = r.ask("POST", "tools/shop/route", {{"to", "postgres"}});
    CHECK(got.status == 200);
    CHECK(got.body["would_move"] == true);
    CHECK(got.body["next_steps"][0] == "hotlane route shop --to postgres --execute");
    REQUIRE(r.request_count() == 1);
    CHECK_FALSE(r.requests[0].execute);
    CHECK(r.get("tools/shop")["home"] == "engine");

    r.refusals = {{"fsync_off", "main does not keep its word", "turn fsync on"}};
    const auto no = r.ask("POST", "tools/shop/route", {{"to", "postgres"}});
    CHECK(no.body["would_move"] == false);
    CHECK(no.body["refusals"][0]["code"] == "fsync_off");
}

TEST_CASE("an executed route moves, and the order says how it ended") {
    rig r;
    const auto got =
        r.ask("POST", "tools/shop/route", {{"to", "postgres"}, {"execute", true}, {"by", "anna"}});
    REQUIRE(got.status == 202);
    const auto path = "orders/" + got.body["order"].dump();
    REQUIRE(eventually([&] { return r.get(path)["state"] == "ended"; }));
    const auto order = r.get(path);
    CHECK(order["report"]["moved"] == true);
    CHECK(order["outcome"] == "done");
    REQUIRE(eventually([&] { return r.get("tools/shop")["stage"] == "on_postgres"; }));
    const auto moves = r.get("moves")["moves"];
    REQUIRE(moves.size() == 1);
    CHECK(moves[0]["outcome"] == "done");
    CHECK(moves[0]["held_ms"] == 42);
    CHECK(moves[0]["ended_at"].is_number());
    CHECK(r.ask("POST", "tools/shop/route", {{"to", "postgres"}}).status == 409);
}

TEST_CASE("a refused move says so in its order") {
    rig r;
    r.refusals = {{"target_down", "main does not answer", "start it"}};
    const auto got = r.ask("POST", "tools/shop/route", {{"to", "postgres"}, {"execute", true}});
    REQUIRE(got.status == 202);
    const auto path = "orders/" + got.body["order"].dump();
    REQUIRE(eventually([&] { return r.get(path)["state"] == "ended"; }));
    CHECK(r.get(path)["outcome"] == "refused");
    CHECK(r.get(path)["report"]["refusals"][0]["code"] == "target_down");
}

TEST_CASE("a pin must end, and ends what others want meanwhile") {
    rig r;
    CHECK(r.ask("POST", "tools/shop/pin", {{"home", "engine"}}).status == 400);
    CHECK(r.ask("POST", "tools/shop/pin", {{"home", "engine"}, {"for_s", 0}}).status == 400);
    CHECK(r.ask("POST", "tools/shop/pin", {{"home", "engine"}, {"for_s", 1e12}}).status == 400);
    CHECK(r.ask("POST", "tools/shop/pin", {{"home", "engine"}, {"for_s", 3600}, {"by", "anna"}})
              .status == 200);
    CHECK(r.get("tools/shop")["pin"]["by"] == "anna");
    CHECK(r.ask("POST", "tools/shop/route", {{"to", "postgres"}, {"execute", true}}).status == 409);
    r.pass(2h);
    REQUIRE(eventually([&] { return r.get("tools/shop")["pin"].is_null(); }));
}

TEST_CASE("shard answers out of season are refused") {
    rig r;
    const auto got = r.ask("POST", "tools/shop/shard", {{"action", "skip"}});
    CHECK(got.status == 409);
    CHECK_FALSE(got.body["error"].get<std::string>().empty());
}

TEST_CASE("a late write rings, and the copy stays until it is explained") {
    rig r;
    r.cleaned = {false, "1 row was written to shop after it left"};
    const auto got = r.ask("POST", "tools/shop/route", {{"to", "postgres"}, {"execute", true}});
    REQUIRE(got.status == 202);
    REQUIRE(eventually([&] { return r.get("moves")["moves"].size() == 1; }));
    CHECK(r.logs_of("late_write") == 0);  // `keep` is not over
    r.pass(25h);
    REQUIRE(eventually([&] { return !r.get("moves")["moves"][0]["late_write"].is_null(); }));
    CHECK(r.logs_of("late_write") == 1);
}

TEST_CASE("what hundreds of moves left is tidied up, each once, whatever one of them lacks") {
    constexpr int many = 450;  // more than twice of what one look reads
    rig r({"shop"});
    const auto id = [](int i) { return "m" + std::to_string(1'000 + i); };
    r.cannot_clean = id(0);
    r.cleaned = {true, {}};
    for (int i = 0; i < many; ++i) {
        placement::move_record left;
        left.id = id(i);
        left.tool = "shop";
        left.outcome = i % 3 == 0 ? "undone" : "done";
        left.started = left.ended = r.now();
        REQUIRE(r.store->put_move(left));
    }
    const auto tidied = [&] {
        const std::lock_guard lock(r.mutex);
        return r.cleanings.size();
    };
    r.pass(25h);
    REQUIRE(eventually([&] { return tidied() == many; }));
    // The one that could not be done keeps nobody from looking at what comes later.
    placement::move_record later;
    later.id = id(many);
    later.tool = "shop";
    later.outcome = "undone";
    later.started = later.ended = r.now();
    REQUIRE(r.store->put_move(later));
    r.pass(1h);
    REQUIRE(eventually([&] { return tidied() == many + 1; }));
    r.cannot_clean.clear();
    REQUIRE(eventually([&] { return r.store->document("cleaned", id(0))->has_value(); }));
    const std::lock_guard lock(r.mutex);
    CHECK(r.cleanings[id(0)] > 1);
    for (int i = 1; i <= many; ++i) {
        CAPTURE(i);
        CHECK(r.cleanings[id(i)] == 1);
        CHECK(r.store->document("cleaned", id(i))->has_value());
    }
}

TEST_CASE("no copy is dropped while nobody knows where the tool lives") {
    rig r;
    r.cleaned = {true, {}};
    r.homes_down = true;
    r.tools.find("shop")->close("its PostgreSQL home was restored");
    for (const auto& [id, tool] : {std::pair{"m1", "shop"}, std::pair{"m2", "other"}}) {
        placement::move_record left;
        left.id = id;
        left.tool = tool;
        left.outcome = "done";
        left.started = left.ended = r.now();
        REQUIRE(r.store->put_move(left));
    }
    r.pass(25h);
    const auto is_tidy = [&](const char* id) {
        return r.store->document("cleaned", id)->has_value();
    };
    REQUIRE(eventually([&] { return is_tidy("m2"); }));  // the same look met m1
    CHECK_FALSE(is_tidy("m1"));
    r.tools.find("shop")->place(home_at(policy::home_kind::postgres), 2);
    CHECK(eventually([&] { return is_tidy("m1"); }));
}

TEST_CASE("an adoption is dry unless it is said, and is refused with a reason and a mend") {
    rig r;
    r.tools.find("shop")->close("restored");
    auto got = r.ask("POST", "tools/shop/adopt", {{"home", "engine"}});
    REQUIRE(got.status == 200);
    CHECK(got.body["would_adopt"] == true);
    CHECK(got.body["executed"] == false);
    CHECK(got.body["adopted"] == false);
    CHECK(got.body["next_steps"][0] == "hotlane adopt shop --home engine --execute");
    r.adoption_refused = "no_complete_tables";
    got = r.ask("POST", "tools/shop/adopt", {{"home", "postgres"}, {"execute", true}});
    REQUIRE(got.status == 200);
    CHECK(got.body["adopted"] == false);
    CHECK(got.body["refusals"][0]["code"] == "no_complete_tables");
    CHECK_FALSE(got.body["refusals"][0]["mend"].get<std::string>().empty());
    r.adoption_refused.clear();
    got = r.ask("POST", "tools/shop/adopt", {{"home", "engine"}, {"execute", true}});
    CHECK(got.body["adopted"] == true);
    CHECK(r.logs_of("home_adopted") == 2);
    CHECK(r.ask("POST", "tools/shop/adopt", {{"home", "moon"}}).status == 400);
    CHECK(r.ask("POST", "tools/nosuch/adopt", {{"home", "engine"}}).status == 404);
}

TEST_CASE("draining fails readiness, not liveness") {
    rig r;
    r.at->drain();
    std::vector<std::string> failed;
    CHECK_FALSE(r.at->ready(failed));
    CHECK(failed == std::vector<std::string>{"draining"});
    CHECK(r.at->live());
    CHECK(r.get("status")["state"] == "draining");
}

TEST_CASE("metrics name the tools") {
    rig r;
    const auto text = r.at->metrics_text();
    CHECK(text.find("hotlane_tools 2") != std::string::npos);
    CHECK(text.find("hotlane_route_info{tool=\"shop\",home=\"engine\"} 1") != std::string::npos);
}

TEST_CASE("a bad file changes nothing") {
    rig r;
    std::ofstream(r.where.file("hotlane.yaml")) << "version: 1\nnonsense: true\n";
    const auto got = r.ask("POST", "reload");
    CHECK(got.status == 409);
    CHECK(got.body["error"].get<std::string>().find("nonsense") != std::string::npos);
    CHECK(r.get("status")["config"]["last_reload_ok"] == false);
    CHECK(r.get("tools")["tools"].size() == 2);
}

TEST_CASE("a tool that a reload adds is placed and served") {
    rig r;
    REQUIRE(r.tools.add(make_tool("fresh")) != nullptr);
    CHECK(r.tools.add(make_tool("fresh")) == nullptr);
    CHECK(r.tools.resolve({"u", "fresh", ""})->name == "fresh");
}

TEST_CASE("a reload applies policies, and says what waits for a restart") {
    auto now = make_model({"a"});
    auto wanted = now;
    wanted.policies["default"].detect.handoff_rate_enter = 0.7;
    wanted.policies["fresh"] = {};
    wanted.threads = 4;
    wanted.limit.held_clients = 7;
    wanted.tools[0].keep = 1h;
    wanted.tools.push_back(make_tool("b"));
    const auto plan = plan_reload(now, wanted);
    CHECK(plan.policies_changed == std::vector<std::string>{"default", "fresh"});
    CHECK(plan.needs_restart == std::vector<std::string>{"tools.a", "threads", "limits"});
    REQUIRE(plan.tools_added.size() == 1);
    CHECK(plan.next.policies.at("default").detect.handoff_rate_enter == 0.7);
    CHECK(plan.next.threads == now.threads);

    // In front of others it would take their clients: not while hotlane runs.
    auto in_front = now;
    in_front.tools.insert(in_front.tools.begin(), make_tool("c"));
    CHECK(plan_reload(now, in_front).tools_added.empty());
    CHECK(plan_reload(now, in_front).needs_restart == std::vector<std::string>{"tools.c"});

    // A renamed policy is in force at once; the old name stays for what still starts from it.
    auto before = now;
    before.policies["old"].act_mode = policy::mode::act;
    before.tools[0].policy = "old";
    auto renamed = before;
    renamed.policies["new"] = renamed.policies["old"];
    renamed.policies.erase("old");
    renamed.tools[0].policy = "new";
    const auto kept = plan_reload(before, renamed);
    CHECK(kept.needs_restart.empty());
    CHECK(kept.next.tools[0].policy == "new");
    CHECK(kept.next.policies.at("new").act_mode == policy::mode::act);
    REQUIRE(kept.next.policies.count("old") == 1);

    const auto same = plan_reload(now, now);
    CHECK(same.policies_changed.empty());
    CHECK(same.needs_restart.empty());
}
