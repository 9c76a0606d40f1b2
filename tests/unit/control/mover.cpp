#include "router/control/mover.hpp"

#include "tests/unit/control/support.hpp"

using namespace hotlane;
using namespace hotlane::control;
using namespace hotlane::control::test;

namespace {

move::request to_postgres(const std::string& tool) {
    move::request r;
    r.tool = tool;
    r.to = policy::home_kind::postgres;
    r.execute = true;
    return r;
}

}  // namespace

TEST_CASE("moves run one at a time, in the order of their orders") {
    bench b(make_model({"a", "b", "c"}));
    b.place_all();
    b.block = true;
    mover m(b.in, {});
    std::atomic<int> ended{0};
    m.start({}, [&](const order&) { ++ended; });
    for (const char* tool : {"a", "b", "c"})
        REQUIRE(m.submit(to_postgres(tool)).has_value());
    REQUIRE(eventually([&] { return b.running == 1; }));
    CHECK(m.all_active().size() == 3);
    CHECK(b.request_count() == 1);
    b.block = false;
    REQUIRE(eventually([&] { return ended == 3; }));
    REQUIRE(eventually([&] { return m.all_active().empty(); }));
    CHECK(b.requests[0].tool == "a");
    CHECK(b.requests[1].tool == "b");
    CHECK(b.requests[2].tool == "c");
}

TEST_CASE("a tool that is on its way gets no second order") {
    bench b(make_model({"a"}));
    b.place_all();
    b.block = true;
    mover m(b.in, {});
    m.start({}, {});
    REQUIRE(m.submit(to_postgres("a")).has_value());
    const auto second = m.submit(to_postgres("a"));
    REQUIRE_FALSE(second.has_value());
    CHECK(second.error().find("already") != std::string::npos);
    b.block = false;
    REQUIRE(eventually([&] { return !m.busy("a"); }));
    CHECK(m.submit(to_postgres("a")).has_value());
}

TEST_CASE("the queue and the memory of orders are bounded") {
    bench b(make_model({"a", "b", "c", "d"}));
    b.place_all();
    b.block = true;
    mover m(b.in, {1, 2, 3});
    m.start({}, {});
    REQUIRE(m.submit(to_postgres("a")).has_value());
    REQUIRE(eventually([&] { return b.running == 1; }));
    REQUIRE(m.submit(to_postgres("b")).has_value());
    REQUIRE(m.submit(to_postgres("c")).has_value());
    const auto full = m.submit(to_postgres("d"));
    REQUIRE_FALSE(full.has_value());
    CHECK(full.error() == "2 moves wait already");
    b.block = false;
    REQUIRE(eventually([&] { return m.all_active().empty(); }));
    const auto fourth = m.submit(to_postgres("d"));
    REQUIRE(fourth.has_value());
    CHECK_FALSE(m.find(1).has_value());  // the oldest made room
    CHECK(m.find(*fourth).has_value());
}

TEST_CASE("an ended order keeps its report, with the journal's id and phase") {
    bench b(make_model({"a"}));
    b.place_all();
    mover m(b.in, {});
    m.start({}, {});
    const auto number = m.submit(to_postgres("a"));
    REQUIRE(number.has_value());
    REQUIRE(eventually([&] { return m.find(*number)->at == order::state::ended; }));
    const auto ended = *m.find(*number);
    REQUIRE(ended.report.has_value());
    CHECK(ended.report->moved);
    CHECK(ended.move_id == "m1");
    CHECK(b.logs_of("move_phase") == 1);
}

TEST_CASE("who waits for an order is told when its phase changes, and does not wait for ever") {
    bench b(make_model({"a"}));
    b.place_all();
    b.block = true;
    mover m(b.in, {});
    m.start({}, {});
    const auto number = m.submit(to_postgres("a"));
    REQUIRE(number.has_value());
    CHECK(m.await(*number, "", 1ms)->at != order::state::ended);
    CHECK_FALSE(m.await(999, "", 20s).has_value());
    b.block = false;
    std::string seen;
    while (m.await(*number, seen, 20s)->at != order::state::ended)
        seen = m.find(*number)->phase;
    CHECK(m.find(*number)->report->moved);
}

TEST_CASE("stopping asks the running move to stop, and refuses new ones") {
    bench b(make_model({"a", "b"}));
    b.place_all();
    b.block = true;  // until `stop` is seen
    mover m(b.in, {});
    m.start({}, {});
    REQUIRE(m.submit(to_postgres("a")).has_value());
    REQUIRE(eventually([&] { return b.running == 1; }));
    CHECK(m.stop(20s));
    CHECK_FALSE(m.submit(to_postgres("b")).has_value());
}

TEST_CASE("a move that does not stop in time is reported as left") {
    bench b(make_model({"a"}));
    b.place_all();
    std::atomic<bool> let_go{false};
    std::atomic<bool> inside{false};
    b.in.act.run = [&](const move::request&, move::surroundings&) {
        inside = true;
        while (!let_go)
            std::this_thread::yield();
        return move::report{};
    };
    mover m(b.in, {});
    m.start({}, {});
    REQUIRE(m.submit(to_postgres("a")).has_value());
    REQUIRE(eventually([&] { return inside.load(); }));
    CHECK_FALSE(m.stop(10ms));
    let_go = true;
}
