#include "router/control/placer.hpp"

#include "tests/unit/control/support.hpp"

using namespace hotlane;
using namespace hotlane::control;
using namespace hotlane::control::test;

namespace {
placer::settings quick() {
    return {2, 1ms, 4ms};
}
}  // namespace

TEST_CASE("a tool is placed once its home answers, and not before") {
    bench b(make_model({"a"}));
    b.homes_down = true;
    std::atomic<int> told{0};
    placer p(b.in, quick());
    p.on_placed = [&](placement::tool_entry&) { ++told; };
    p.start();
    REQUIRE(eventually([&] { return b.recovers[0] >= 3; }));
    CHECK_FALSE(p.placed("a"));
    CHECK(p.tried_all());
    CHECK(told == 0);
    CHECK_FALSE(b.tools.find("a")->current()->served);
    CHECK(b.logs_of("tool_not_placed") == 1);  // not at every try
    b.homes_down = false;
    REQUIRE(eventually([&] { return p.placed("a"); }));
    CHECK(told == 1);
    CHECK(b.tools.find("a")->current()->served);
}

TEST_CASE("a template's first client waits at the gate until the tool is placed") {
    auto model = make_model({});
    auto t = make_tool("{database}");
    t.match.database = "";
    model.tools.push_back(t);
    bench b(model);
    placer p(b.in, quick());
    b.tools.on_new = [&](placement::tool_entry& entry) { p.meet(entry); };
    const auto entry = b.tools.resolve({"u", "fresh", ""});
    REQUIRE(entry);
    CHECK(entry->gate.held());
    CHECK_FALSE(entry->gate.try_enter());
    p.start();
    REQUIRE(eventually([&] { return p.placed("fresh"); }));
    CHECK_FALSE(entry->gate.held());
    CHECK(entry->current()->served);
}

TEST_CASE("a home that does not answer turns the waiting client away instead of holding it") {
    auto model = make_model({});
    auto t = make_tool("{database}");
    t.match.database = "";
    model.tools.push_back(t);
    bench b(model);
    b.homes_down = true;
    placer p(b.in, quick());
    b.tools.on_new = [&](placement::tool_entry& entry) { p.meet(entry); };
    const auto entry = b.tools.resolve({"u", "fresh", ""});
    p.start();
    REQUIRE(eventually([&] { return !entry->gate.held(); }));
    CHECK_FALSE(entry->current()->served);
    CHECK(entry->current()->reason == "no home answers");
}

TEST_CASE("a home that hangs delays nobody else") {
    bench b(make_model({"hangs", "other"}));
    std::atomic<bool> let_go{false};
    b.in.act.recover = [&](placement::tool_entry& entry, move::surroundings&) {
        while (entry.name == "hangs" && !let_go)
            std::this_thread::yield();
        entry.place(home_at(policy::home_kind::engine), 1);
        return true;
    };
    placer p(b.in, quick());
    p.start();
    CHECK(eventually([&] { return p.placed("other"); }));
    CHECK_FALSE(p.placed("hangs"));
    let_go = true;
    CHECK(eventually([&] { return p.placed("hangs"); }));
}
