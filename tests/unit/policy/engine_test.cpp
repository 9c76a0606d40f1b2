#include "policy/engine.hpp"

#include "build.hpp"

using namespace hotlane::policy;
using namespace hotlane::policy::testing;

TEST_CASE("a hot tool is flagged, advised, measured again, moved and brought home") {
    driver d{short_settings()};
    d.policy.set_table("counters");
    d.run(hot_row, 4);
    CHECK(d.at() == stage::watching);  // 8 s are no proof
    d.run(hot_row, 1);
    CHECK(d.at() == stage::sharding);
    REQUIRE(d.decisions.size() == 2);
    CHECK(d.decisions[0].rule == "flag");
    CHECK(d.decisions[1].found.table == "counters");
    CHECK(d.commands.back().kind == command_kind::raise_advice);

    d.take(d.policy.shard_skip("ann", d.fleet, d.now()));
    CHECK(d.at() == stage::remeasuring);
    d.run(hot_row, 4);
    CHECK(d.moves_started() == 0);
    d.run(hot_row, 1);
    CHECK(d.at() == stage::moving_out);
    CHECK(d.commands.back().to == home_kind::postgres);
    CHECK(d.commands.back().who == "policy");

    d.run(hot_row, 3);
    CHECK(d.moves_started() == 1);
    d.take(d.policy.move_finished(move_end::ok, "", d.fleet, d.now()));
    CHECK(d.at() == stage::on_postgres);
    d.feed();
    const load light{20, 0, 0, 0};
    d.run(light, 29);
    CHECK(d.at() == stage::on_postgres);  // the hot hour is still within the look-back
    d.run(light, 3);
    CHECK(d.at() == stage::moving_back);
    d.take(d.policy.move_finished(move_end::ok, "", d.fleet, d.now()));
    CHECK(d.at() == stage::watching);
    CHECK(d.policy.state().home == home_kind::engine);
}

TEST_CASE("sharding that helps ends the runbook") {
    driver d{short_settings()};
    d.run(hot_row, 5);
    d.take(d.policy.shard_done("ann", d.fleet, d.now()));
    CHECK(d.commands.back().kind == command_kind::clear_advice);
    d.run(calm, 5);
    CHECK(d.at() == stage::watching);
    CHECK(d.policy.state().sharded);
    CHECK(d.count("lever2_helped") == 1);
}

TEST_CASE("an unanswered advice ends at its deadline") {
    driver d{short_settings()};
    d.run(hot_row, 5);
    d.wait(d.policy.current_settings().levers.shard_deadline);
    d.tick();
    CHECK(d.at() == stage::remeasuring);
}

TEST_CASE("observe and advise end in would_move and say so again after the cooldown") {
    for (const mode m : {mode::observe, mode::advise}) {
        settings with = short_settings(m);
        with.levers.shard = false;
        with.rails.cooldown = duration{20'000};
        driver d{with};
        d.run(hot_row, 5);
        CHECK(d.at() == stage::would_move);
        CHECK(d.count("would_route") == 1);
        CHECK(d.decisions.back().alert == (m == mode::advise));
        CHECK(d.policy.state().alert == (m == mode::advise));
        d.run(hot_row, 9);
        CHECK(d.count("would_route") == 1);
        d.run(hot_row, 1);
        CHECK(d.count("would_route") == 2);
        CHECK(d.moves_started() == 0);
        // The file is changed to act: the next window moves it.
        with.act_mode = mode::act;
        d.policy.set_settings(with);
        d.run(hot_row, 1);
        CHECK(d.at() == stage::moving_out);
    }
}

TEST_CASE("a busy lane is reported once and not moved") {
    driver d{short_settings()};
    d.run(busy, 60);
    CHECK(d.at() == stage::flagged);
    CHECK(d.policy.state().why == diagnosis::busy_lane);
    CHECK(d.count("busy_lane") == 1);
    CHECK(d.moves_started() == 0);

    settings with = short_settings();
    with.diagnose.busy_lane = busy_handling::route;
    driver routed{with};
    routed.run(busy, 5);
    CHECK(routed.at() == stage::moving_out);
}

TEST_CASE("a tool whose writes go round hotlane is not diagnosed and not moved") {
    driver d{short_settings()};
    load round = hot_row;
    round.seen_share = 0.5;
    d.run(round, 60);
    CHECK(d.at() == stage::flagged);
    CHECK(d.policy.state().why == diagnosis::unknown);
    CHECK(d.count("undiagnosed") == 1);
    d.run(hot_row, 9);  // they come through hotlane now
    CHECK(d.at() == stage::sharding);
}

TEST_CASE("failed moves wait longer each time, a success forgets them") {
    settings with = short_settings();
    with.levers.shard = false;
    with.rails.cooldown = duration{60'000};
    driver d{with};
    std::vector<duration> tries;
    for (int i = 0; i < 3; ++i) {
        const auto since = d.now();
        for (int n = 0; n < 1'000 && d.at() != stage::moving_out; ++n)
            d.run(hot_row, 1);
        tries.push_back(d.now() - since);
        d.take(d.policy.move_finished(move_end::refused, "no space", d.fleet, d.now()));
        CHECK(d.at() == stage::flagged);
        CHECK(d.decisions.back().reason.find("no space") != std::string::npos);
    }
    CHECK(tries == std::vector<duration>{duration{10'000}, duration{60'000}, duration{120'000}});
    CHECK(d.policy.state().failures == 3);
    d.take(d.policy.order(home_kind::postgres, "ann", d.fleet, d.now()));
    d.take(d.policy.move_finished(move_end::ok, "", d.fleet, d.now()));
    CHECK(d.policy.state().failures == 0);
}

TEST_CASE("operators bypass thresholds, not safety") {
    driver d{short_settings(mode::observe)};
    CHECK(d.policy.order(home_kind::engine, "ann", d.fleet, d.now()).refusal.size() > 0);
    d.fleet.moves_running = 1;
    CHECK(d.policy.order(home_kind::postgres, "ann", d.fleet, d.now()).refusal.size() > 0);
    d.fleet.moves_running = 0;
    CHECK(d.take(d.policy.order(home_kind::postgres, "ann", d.fleet, d.now())).refusal.empty());
    CHECK(d.at() == stage::moving_out);
    CHECK(d.commands.back().who == "ann");
    CHECK(d.policy.order(home_kind::engine, "ann", d.fleet, d.now()).refusal.size() > 0);
    d.take(d.policy.move_finished(move_end::ok, "", d.fleet, d.now()));
    d.take(d.policy.order(home_kind::engine, "ann", d.fleet, d.now()));  // min_stay or not
    CHECK(d.at() == stage::moving_back);
    d.take(d.policy.move_finished(move_end::failed, "engine down", d.fleet, d.now()));
    CHECK(d.at() == stage::on_postgres);
}

TEST_CASE("a pinned tool is not moved, and a pin ends with a decision") {
    settings with = short_settings();
    with.levers.shard = false;
    driver d{with};
    d.take(d.policy.set_pin(
        {home_kind::engine, d.now() + duration{60'000}, "ann", "sale"}, d.fleet, d.now()));
    d.run(hot_row, 29);
    CHECK(d.moves_started() == 0);
    CHECK(d.count("held_by_rail") == 1);
    d.run(hot_row, 2);
    CHECK(d.count("pin_expired") == 1);
    CHECK(d.moves_started() == 1);
}

TEST_CASE("an incident moves nothing and raises one alert") {
    settings with = short_settings(mode::advise);
    with.levers.shard = false;
    with.rails.incident_tools = 3;
    driver d{with};
    d.run(hot_row, 5);
    CHECK(d.at() == stage::flagged);  // it waits one proof time for company
    CHECK(d.count("held_by_rail") == 1);
    CHECK_FALSE(d.decisions.back().alert);
    d.fleet.tools_hot_together = 3;
    d.run(hot_row, 30);
    CHECK(d.at() == stage::flagged);
    CHECK(d.count("incident") == 1);
    CHECK(d.decisions.back().alert_key == "incident");
    d.fleet.tools_hot_together = 2;
    d.run(hot_row, 1);
    CHECK(d.count("incident_over") == 1);
    CHECK(d.at() == stage::flagged);  // what the incident showed does not count
    d.run(hot_row, 5);
    CHECK(d.at() == stage::would_move);
}

TEST_CASE("an incident flags nobody, also not by what is left of it in the windows") {
    settings with = short_settings(mode::act);
    with.rails.incident_tools = 3;
    driver d{with};
    d.run(calm, 6);
    d.run(hot_row, 4);
    CHECK(d.at() == stage::watching);
    CHECK(heat_since(d.policy.state()).has_value());  // others know of it before it is proven
    d.fleet.tools_hot_together = 3;
    d.run(hot_row, 10);
    CHECK(d.at() == stage::watching);
    CHECK(d.count("incident") == 1);
    d.fleet.tools_hot_together = 2;
    d.run(calm, 20);
    CHECK(d.count("flag") == 0);
    CHECK_FALSE(heat_since(d.policy.state()));
}

TEST_CASE("a busy lane is not taken for a hot row because its storage had an incident") {
    settings with = short_settings(mode::act);
    with.rails.incident_tools = 3;
    with.levers.shard_deadline = duration{4'000};
    driver d{with};
    d.run(busy, 10);
    CHECK(d.at() == stage::flagged);
    d.fleet.tools_hot_together = 3;
    d.run(hot_row, 60);
    d.fleet.tools_hot_together = 0;
    d.run(busy, 60);
    CHECK(d.at() == stage::flagged);
    CHECK(d.policy.state().why == diagnosis::busy_lane);
    CHECK(d.moves_started() == 0);
}

TEST_CASE("an idle night is no proof for the way back") {
    driver d{short_settings()};
    d.take(d.policy.order(home_kind::postgres, "ann", d.fleet, d.now()));
    d.take(d.policy.move_finished(move_end::ok, "", d.fleet, d.now()));
    d.run(sleepy, 3'000);
    CHECK(d.at() == stage::on_postgres);
    d.run({200, 0, 0, 0}, 10);  // a lane use of one
    d.run({20, 0, 0, 0}, 10);
    CHECK(d.at() == stage::on_postgres);
    d.run({20, 0, 0, 0}, 30);
    CHECK(d.at() == stage::moving_back);
}

TEST_CASE("the tracked commit latency shifts the thresholds") {
    driver d{short_settings()};
    d.engine.counters.commit_latency = std::chrono::microseconds{30'000};
    load slow = busy;
    slow.mean_wait_us = 20'000;
    d.run(slow, 20);
    CHECK(d.at() == stage::watching);
    d.engine.counters.commit_latency = std::chrono::microseconds{5'000};
    d.run(slow, 30);
    CHECK(d.at() == stage::flagged);
}

TEST_CASE("recovery decides where a tool is") {
    driver d{short_settings()};
    d.take(d.policy.order(home_kind::postgres, "ann", d.fleet, d.now()));
    tool_policy again{"counter", short_settings(), d.policy.state()};
    again.home_found(home_kind::postgres, d.fleet, d.now());
    CHECK(again.state().at == stage::on_postgres);
    tool_policy undone{"counter", short_settings(), d.policy.state()};
    undone.home_found(home_kind::engine, d.fleet, d.now());
    CHECK(undone.state().at == stage::watching);
    CHECK(undone.home_found(home_kind::engine, d.fleet, d.now()).decisions.empty());
}

TEST_CASE("state survives a restart as text, and the proof goes on") {
    driver d{short_settings()};
    d.policy.set_table("a table, with spaces");
    d.take(d.policy.set_pin(
        {home_kind::engine, d.now() + duration{90'000}, "ann", "two words"}, d.fleet, d.now()));
    d.engine.counters.commit_latency = std::chrono::microseconds{4'321};
    d.run(hot_row, 4);
    d.engine.counters.own_work = true;
    d.run(hot_row, 1);
    d.engine.counters.own_work = false;
    const auto text = to_pairs(d.policy.state());
    const auto state = from_pairs(text);
    REQUIRE(state);
    CHECK(to_pairs(*state) == text);
    CHECK(state->windows.size() == d.policy.state().windows.size());
    CHECK(state->pinned->reason == "two words");

    tool_policy again{"counter", short_settings(), *state};
    again.feed(d.engine.counters, d.engine.seen, d.fleet, d.now());
    CHECK(again.state().at == stage::watching);
    d.engine.grow(hot_row, duration{2'000});
    again.feed(d.engine.counters, d.engine.seen, d.fleet, d.now());
    CHECK(again.state().at == stage::sharding);
}

TEST_CASE("a state that cannot be read names its key") {
    CHECK(from_pairs({{"from_the_future", "x"}}));
    for (const auto& [key, value] : flat_state{{"stage", "dancing"},
                                               {"since", "soon"},
                                               {"failures", "-"},
                                               {"window", "1 2 good 3"},
                                               {"pin_until", ""},
                                               {"sharded", "yes"}}) {
        const auto state = from_pairs({{key, value}});
        REQUIRE_FALSE(state);
        CHECK(state.error().find(key) != std::string::npos);
    }
}

TEST_CASE("explain says what, why, since when, what next and what would change it") {
    driver d{short_settings(mode::advise)};
    d.policy.set_table("counters");
    d.run(hot_row, 5);
    const std::string why = explain(d.decisions.back());
    for (const char* part : {"counter: flagged -> sharding [advise_shard]",
                             "handoff rate",
                             "threshold",
                             "over by",
                             "diagnosis hot_row, table counters",
                             "hotlane.yaml:7",
                             "what would change it:",
                             "mode advise"}) {
        INFO(why << "\nlacks: " << part);
        CHECK(why.find(part) != std::string::npos);
    }
    const std::string now = d.policy.explain_now(d.now() + duration{65'000});
    for (const char* part : {"counter is hot; splitting its hot row was advised.",
                             "(1 min 5 s ago), stage sharding",
                             "table counters",
                             "next: `hotlane shard done`",
                             "what would change it: calm"}) {
        INFO(now << "\nlacks: " << part);
        CHECK(now.find(part) != std::string::npos);
    }
    CHECK(text_of(duration{90'061'000}) == "1 d 1 h");
    CHECK(text_of(t0) == "2023-11-14 22:13:20Z");
}
