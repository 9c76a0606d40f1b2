#include "router/control/sampler.hpp"

#include "tests/unit/control/support.hpp"

using namespace hotlane;
using namespace hotlane::control;
using namespace hotlane::control::test;

namespace {

struct rig : bench {
    explicit rig(const std::vector<std::string>& names)
        : bench(short_windows(names)), moves_(in, {}) {
        place_all();
        for (const auto& entry : tools.all())
            desks[entry->name] =
                std::make_shared<desk>(in, all, moves_, entry, model.get()->policies.at("default"));
    }
    static config::model short_windows(const std::vector<std::string>& names) {
        auto m = make_model(names);
        m.policies["default"].window.length = 5ms;
        return m;
    }
    // Every tool always has new traffic, unless it is named idle.
    void busy(const std::string& tool) { ++tools.find(tool)->counted.transactions; }

    open_counters open() {
        return [this](const config::tool& tool, const config::model&, policy::home_kind) {
            return [this, name = tool.name] { return read(name); };
        };
    }
    tl::expected<policy::sample, std::string> read(const std::string& name) {
        ++reads[name];
        while (name == "hangs" && !let_go)
            std::this_thread::yield();
        busy(name);  // traffic goes on
        if (name == "fails") return tl::unexpected(std::string("refused"));
        policy::sample s;
        s.taken_at = now();
        s.acquires = 1;
        return s;
    }

    fleet all;
    mover moves_;
    std::map<std::string, std::shared_ptr<desk>> desks;
    std::map<std::string, std::atomic<int>> reads{};
    std::atomic<bool> let_go{false};
};

}  // namespace

TEST_CASE("a tool without traffic is not read: its engine may sleep") {
    rig r({"idle", "busy"});
    r.reads["idle"] = 0;
    r.reads["busy"] = 0;
    r.busy("busy");
    sampler s(r.in, r.open(), {});
    s.start();
    for (const auto& [name, at] : r.desks)
        s.add(at);
    REQUIRE(eventually([&] { return r.reads["busy"] >= 5; }));
    REQUIRE(eventually([&] { return r.desks["idle"]->view().sampling.skipped_idle >= 5; }));
    CHECK(r.reads["idle"] == 0);
    r.busy("idle");
    CHECK(eventually([&] { return r.reads["idle"] >= 1; }));
    s.stop();
}

TEST_CASE("an engine that hangs delays nobody else") {
    rig r({"a", "b", "hangs"});
    for (const char* name : {"a", "b", "hangs"}) {
        r.reads[name] = 0;
        r.busy(name);
    }
    sampler s(r.in, r.open(), {});
    s.start();
    for (const auto& [name, at] : r.desks)
        s.add(at);
    REQUIRE(eventually([&] { return r.reads["hangs"] == 1; }));
    const int before = r.reads["a"];
    CHECK(eventually([&] { return r.reads["a"] >= before + 10 && r.reads["b"] >= 10; }));
    CHECK(r.reads["hangs"] == 1);
    r.let_go = true;
    s.stop();
}

TEST_CASE("a source that fails backs off and is tried again") {
    rig r({"fails", "a"});
    r.reads["fails"] = 0;
    r.reads["a"] = 0;
    r.busy("fails");
    r.busy("a");
    sampler s(r.in, r.open(), {});
    s.start();
    for (const auto& [name, at] : r.desks)
        s.add(at);
    REQUIRE(eventually([&] { return r.desks["fails"]->view().sampling.failures >= 4; }));
    REQUIRE(eventually([&] { return r.reads["a"] >= 12; }));
    CHECK(r.reads["fails"] < r.reads["a"]);
    s.stop();
}

TEST_CASE("a tool that is not served is not read") {
    rig r({"a"});
    r.reads["a"] = 0;
    r.busy("a");
    r.tools.find("a")->close("fenced");
    sampler s(r.in, r.open(), {});
    s.start();
    s.add(r.desks["a"]);
    r.tools.find("a")->place(home_at(policy::home_kind::engine), 2);
    CHECK(eventually([&] { return r.reads["a"] >= 1; }));
    s.stop();
}
