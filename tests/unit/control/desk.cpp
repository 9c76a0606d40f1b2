#include "router/control/desk.hpp"

#include "tests/unit/control/support.hpp"

using namespace hotlane;
using namespace hotlane::control;
using namespace hotlane::control::test;
using policy::stage;

namespace {

// One tool with everything around it, and a hot row to feed.
struct rig : bench {
    explicit rig(policy::mode mode = policy::mode::act)
        : bench(make_model({"hot"}, mode)), moves_(in, {}) {
        place_all();
        moves_.start([](const order&) {},
                     [this](const order& ended) {
                         if (at) at->move_finished(ended);
                     });
        open();
    }
    ~rig() { moves_.stop(20s); }

    void open() {
        at = std::make_shared<desk>(
            in, all, moves_, tools.find("hot"), model.get()->policies.at("default"));
        at->home_found(tools.find("hot")->current()->at.kind);
    }

    // One window of a row that sixteen writers want: like the recorded one.
    void hot_window() {
        pass(2s);
        auto& counted = tools.find("hot")->counted;
        counted.transactions += 2'000;
        counted.write_transactions += 2'000;
        counted.write_conflicts += 1'600;
        tools.find("hot")->seen.push({placement::observation::kind::conflict,
                                      "hits",
                                      "UPDATE hits SET n = n + 1 WHERE id = 1",
                                      now()});
        total.acquires = *total.acquires + 2'000;
        total.handoffs = *total.handoffs + 1'340;
        total.wait_us = *total.wait_us + 1'340 * 16'000;
        total.commits = *total.commits + 400;
        total.taken_at = now();
        at->feed(total);
    }
    bool heat_until(stage wanted) {
        for (int i = 0; i < 40 && at->view().state.at != wanted; ++i)
            hot_window();
        return at->view().state.at == wanted;
    }
    static policy::sample zero() {
        policy::sample s;
        s.acquires = s.handoffs = s.wait_us = s.commits = s.committed_lsn = 0;
        return s;
    }

    fleet all;
    mover moves_;
    policy::sample total{zero()};
    std::shared_ptr<desk> at;
};

}  // namespace

TEST_CASE("act: a hot row is flagged, advised, and after `shard skip` moved") {
    rig r;
    REQUIRE(r.heat_until(stage::sharding));
    const auto advised = r.at->view();
    CHECK(advised.state.why == policy::diagnosis::hot_row);
    CHECK(advised.state.table == "hits");
    CHECK(advised.state.advice);
    CHECK(r.request_count() == 0);
    REQUIRE(r.at->shard_skip("anna").has_value());
    for (int i = 0; i < 40 && r.request_count() == 0; ++i)
        r.hot_window();
    REQUIRE(eventually([&] { return r.at->view().state.at == stage::on_postgres; }));
    REQUIRE(r.request_count() == 1);
    CHECK(r.requests[0].tool == "hot");
    CHECK(r.requests[0].to == policy::home_kind::postgres);
    CHECK(r.requests[0].execute);
    CHECK_FALSE(r.requests[0].decision.empty());
    CHECK(r.logs_of("decision") >= 3);
    CHECK(r.store->decisions("hot", 100)->size() >= 3);
    CHECK(r.all.moves_running() == 0);
    CHECK((*r.store->move("m1"))->plan["held_ms"] == 42);
}

TEST_CASE("observe: the same way up to the step that touches the world") {
    rig r(policy::mode::observe);
    REQUIRE(r.heat_until(stage::sharding));
    REQUIRE(r.at->shard_skip("anna").has_value());
    REQUIRE(r.heat_until(stage::would_move));
    for (int i = 0; i < 10; ++i)
        r.hot_window();
    CHECK(r.request_count() == 0);
    CHECK(r.at->view().state.at == stage::would_move);
}

TEST_CASE("the runbook survives a restart") {
    rig r;
    REQUIRE(r.heat_until(stage::sharding));
    r.at->save();
    r.open();
    const auto again = r.at->view();
    CHECK(again.state.at == stage::sharding);
    CHECK(again.state.table == "hits");
}

TEST_CASE("an operator's order moves at once, whatever the windows say") {
    rig r(policy::mode::observe);
    const auto number = r.at->order(policy::home_kind::postgres, "anna");
    REQUIRE(number.has_value());
    REQUIRE(eventually([&] { return r.at->view().state.at == stage::on_postgres; }));
    CHECK(r.requests[0].ordered_by == "anna");
    CHECK(r.moves_.find(*number).has_value());
}

TEST_CASE("a pin refuses an order to the other home, and says so") {
    rig r;
    policy::pin p;
    p.home = policy::home_kind::engine;
    p.until = r.now() + 1h;
    p.by = "anna";
    REQUIRE(r.at->set_pin(p).has_value());
    CHECK_FALSE(r.at->why_not(policy::home_kind::postgres).empty());
    const auto refused = r.at->order(policy::home_kind::postgres, "bob");
    REQUIRE_FALSE(refused.has_value());
    CHECK(r.request_count() == 0);
    REQUIRE(r.at->clear_pin("anna").has_value());
    CHECK(r.at->why_not(policy::home_kind::postgres).empty());
    CHECK(r.at->order(policy::home_kind::postgres, "bob").has_value());
}

TEST_CASE("a refused move leaves the tool where it is and cools down") {
    rig r;
    r.refusals = {{"target_down", "main does not answer", "start it"}};
    REQUIRE(r.at->order(policy::home_kind::postgres, "anna").has_value());
    REQUIRE(eventually([&] { return r.logs_of("move_ended") == 1; }));
    REQUIRE(eventually([&] { return r.at->view().moves_ended.size() == 1; }));
    const auto view = r.at->view();
    CHECK(view.state.home == policy::home_kind::engine);
    CHECK(view.moves_ended.count({policy::home_kind::postgres, "refused"}) == 1);
    CHECK(r.all.moves_running() == 0);
}

TEST_CASE("an order that cannot be queued is refused, not lost") {
    rig r;
    r.moves_.stop(20s);  // takes no more orders
    const auto refused = r.at->order(policy::home_kind::postgres, "anna");
    REQUIRE_FALSE(refused.has_value());
    CHECK(r.all.moves_running() == 0);
    CHECK(r.at->view().state.home == policy::home_kind::engine);
    CHECK(r.at->view().state.at != stage::moving_out);
}

TEST_CASE("DDL that passed is in the store, in order") {
    rig r;
    const auto entry = r.tools.find("hot");
    entry->seen.push({placement::observation::kind::ddl, "", "CREATE TABLE a (i INTEGER)", {}});
    entry->seen.push({placement::observation::kind::ddl, "", "CREATE TABLE b (i INTEGER)", {}});
    r.at->take_observations();
    CHECK(*r.store->ddl("hot") ==
          std::vector<std::string>{"CREATE TABLE a (i INTEGER)", "CREATE TABLE b (i INTEGER)"});
}

TEST_CASE("windows in which hotlane itself was at work prove nothing") {
    rig r;
    for (int i = 0; i < 12; ++i) {
        r.at->work_begins();
        r.hot_window();
    }
    CHECK(r.at->view().state.at == stage::watching);
}

TEST_CASE("a reading that fails is counted and said once") {
    rig r;
    r.at->sample_failed("timed_out");
    r.at->sample_failed("timed_out");
    CHECK(r.at->view().sampling.failures == 2);
    CHECK(r.logs_of("sample_failed") == 1);
    CHECK(r.at->view().engine_up == false);
    r.hot_window();
    CHECK(r.at->view().sampling.last_error.empty());
    CHECK(r.at->view().engine_up == true);
}
