#include "policy/replay.hpp"
#include "policy/recording.hpp"

#include "build.hpp"

using namespace hotlane::policy;
using namespace hotlane::policy::testing;

namespace {

// The rows of one phase, with the row before it as its start.
std::vector<trace_row> phase_of(const std::vector<trace_row>& rows, const std::string& phase) {
    std::vector<trace_row> some;
    for (const trace_row& row : rows)
        if (row.phase == phase) some.push_back(row);
    REQUIRE(some.size() > 5);
    return some;
}

replay_options options_of(duration window) {
    replay_options options;
    options.with.act_mode = mode::act;
    options.with.window.length = window;
    options.reports["event_log"].conflicts = conflict_source::none;
    options.reports["distinct_inserts"].conflicts = conflict_source::none;
    return options;
}

const std::vector<duration> lengths{duration{2'000}, duration{2'500}, duration{3'000}};

// A restart of the engine in the middle: the counters begin again at 0.
std::vector<trace_row> restarted_at(std::vector<trace_row> rows, std::size_t at) {
    const trace_row base = rows[at];
    for (std::size_t i = at; i < rows.size(); ++i) {
        rows[i].acquires -= base.acquires;
        rows[i].handoffs -= base.handoffs;
        rows[i].wait_us -= base.wait_us;
        rows[i].commits -= base.commits;
    }
    return rows;
}

}  // namespace

TEST_CASE("recorded phases lead where they should, with the default policy") {
    CHECK(settings{}.window.length == duration{2'500});
    const auto rows = recorded_trace();
    for (const duration length : lengths) {
        const auto options = options_of(length);
        const auto of = [&](const char* phase) { return replay(phase_of(rows, phase), options); };
        INFO("windows of " << length.count() << " ms");
        for (const char* quiet : {"spike_hot", "idle", "reads", "distinct_inserts", "many_rows"}) {
            INFO(quiet);
            const auto result = of(quiet);
            CHECK(result.decisions().empty());
            CHECK(result.last.at == stage::watching);
        }
        for (const char* hot : {"hot_row_16", "hot_row_2", "hot_row_16_retry"}) {
            INFO(hot);
            const auto result = of(hot);
            CHECK(result.entries_into(stage::flagged) == 1);
            CHECK(result.last.why == diagnosis::hot_row);
            CHECK(result.last.at == stage::sharding);
        }
    }
}

TEST_CASE("hot_row_2 is flagged by its aborts while its lane looks calm") {
    const auto result =
        replay(phase_of(recorded_trace(), "hot_row_2"), options_of(duration{2'500}));
    REQUIRE(result.entries_into(stage::flagged) == 1);
    const auto decisions = result.decisions();
    for (const measure& one : decisions.front().measures) {
        INFO(one.name);
        CHECK(one.passed == (one.name == "abort rate" || one.name == "conflict rate" ||
                             one.name == "hot windows"));
    }
}

TEST_CASE("event_log is hot by its lane, and called a busy lane when nobody conflicts") {
    for (const duration length : {duration{2'000}, duration{2'500}}) {
        const auto result = replay(phase_of(recorded_trace(), "event_log"), options_of(length));
        CHECK(result.entries_into(stage::flagged) == 1);
        CHECK(result.last.at == stage::flagged);
        CHECK(result.last.why == diagnosis::busy_lane);
        for (const auto& entry : result.timeline)
            CHECK(entry.commands.empty());
    }
}

TEST_CASE("a spike between quiet phases never flags") {
    auto rows = recorded_trace();
    const auto first_hot = std::find_if(
        rows.begin(), rows.end(), [](const trace_row& row) { return row.phase == "hot_row_16"; });
    rows.erase(first_hot, rows.end());
    for (const duration length :
         {duration{500}, duration{1'000}, duration{2'500}, duration{5'000}}) {
        const auto result = replay(rows, options_of(length));
        CHECK(result.decisions().empty());
    }
}

TEST_CASE("shard16 does not flap") {
    const auto rows = phase_of(recorded_trace(), "shard16");
    for (const duration length :
         {duration{500}, duration{1'000}, duration{2'000}, duration{2'500}, duration{5'000}}) {
        INFO("windows of " << length.count() << " ms");
        auto options = options_of(length);
        // 44 % of its acquisitions come to nothing: it is hot, and stays so.
        const auto result = replay(rows, options);
        CHECK(result.entries_into(stage::flagged) == 1);
        CHECK(result.entries_into(stage::watching) == 0);
        // By its lane alone, which swings from 0.2 to 0.8, it is calm and stays so.
        options.with.detect.abort_rate_enter = 1.0;
        options.with.detect.abort_rate_leave = 1.0;
        options.with.detect.conflict_rate_enter = 1.0;
        options.with.detect.conflict_rate_leave = 1.0;
        CHECK(replay(rows, options).decisions().empty());
    }
}

TEST_CASE("a restart of the engine in the middle changes nothing") {
    const auto rows = recorded_trace();
    for (const char* phase :
         {"distinct_inserts", "spike_hot", "hot_row_16", "many_rows", "shard16"}) {
        const auto plain = phase_of(rows, phase);
        const auto options = options_of(duration{2'000});
        const auto expected = replay(plain, options);
        for (std::size_t at = 1; at + 1 < plain.size(); ++at) {
            INFO(phase << " restarted at row " << at);
            const auto result = replay(restarted_at(plain, at), options);
            CHECK(result.last.at == expected.last.at);
            CHECK(result.entries_into(stage::flagged) == expected.entries_into(stage::flagged));
        }
    }
}

TEST_CASE("the whole trace in every mode: the same decisions until the world is touched") {
    const auto rows = recorded_trace();
    auto options = options_of(duration{2'500});
    options.with.levers.shard = false;
    options.with.rails.incident_tools = 0;
    options.move_takes = duration{3'000};
    const auto act = replay(rows, options).decisions();
    options.with.act_mode = mode::observe;
    const auto observe = replay(rows, options).decisions();
    REQUIRE(act.size() >= 2);
    REQUIRE(observe.size() >= 2);
    CHECK(act[0].rule == "flag");
    CHECK(observe[0].rule == "flag");
    CHECK(act[0].at == observe[0].at);
    CHECK(act[1].rule == "route");
    CHECK(observe[1].rule == "would_route");
    CHECK(act[1].at == observe[1].at);
}

TEST_CASE("a trace that cannot be read names its line") {
    const std::string header =
        "t_ms,acquire_total,handoff_total,wait_us_total,commit_total,phase\n";
    CHECK(parse_trace(header + "0,1,2,3,4,x\r\n\n500,1,2,3,4,x\n")->size() == 2);
    struct row {
        std::string text, part;
    };
    for (const row& one : {row{"", "no rows"},
                           row{"t_ms\n", "line 1"},
                           row{header, "no rows"},
                           row{header + "0,1,2,3,x\n", "line 2"},
                           row{header + "0,1,2,-3,4,x\n", "line 2"},
                           row{header + "0,1,2,3,4,\n", "line 2"},
                           row{header + "0,1,2,3,4,x,y\n", "line 2"},
                           row{header + "5,1,2,3,4,x\n5,1,2,3,4,x\n", "line 3"},
                           row{header + "5,1,2,3,4,x\n4,1,2,3,4,x\n", "time does not go on"},
                           row{header + "9223372036854775807,1,2,3,4,x\n", "hundred years"},
                           row{header + "18446744073709551615,1,2,3,4,x\n", "hundred years"},
                           row{header + "5,99999999999999999999,2,3,4,x\n", "none negative"}}) {
        const auto rows = parse_trace(one.text);
        REQUIRE_FALSE(rows);
        CHECK(rows.error().find(one.part) != std::string::npos);
    }
    CHECK(to_text(replay(recorded_trace(), options_of(duration{2'500}))).find("hot_row_16") !=
          std::string::npos);
}

TEST_CASE("a recording that cannot be read names its line") {
    const std::string head = std::string(recording_head) + "\n";
    const auto at = [](const std::string& ms) {
        return "S," + ms + ",t,engine,1,1,1,1,1,1,0,-,1,1,0,0,0,0\n";
    };
    CHECK(parse_recording(head + at("5000") + at("4990"))->at("t").size() == 1);
    struct row {
        std::string text, part;
    };
    for (const row& one :
         {row{"", "no samples"},
          row{head, "no samples"},
          row{"# hotlane recording 2\n" + at("1"), "line 1"},
          row{head + "S,1,t\n" + at("2"), "line 2: is no sample"},
          row{head + at("-5"), "line 2: is no sample"},
          row{head + at("9223372036854775807"), "line 2: is no sample"},
          row{head + "W,t,1,20,10,0,-\n" + at("1"), "line 2: is no sample"},
          row{head + at("90000000") + at("3600000"), "line 3: time goes back by 1 d 0 h"}}) {
        INFO(one.text);
        const auto got = parse_recording(one.text);
        REQUIRE_FALSE(got);
        INFO(got.error());
        CHECK(got.error().find(one.part) != std::string::npos);
    }
}

TEST_CASE("counters at the end of their range prove nothing wrong") {
    const std::string most = "18446744073709551615";
    const auto rows = parse_trace(
        "t_ms,acquire_total,handoff_total,wait_us_total,commit_total,phase\n0,0,0,0,0,x\n2500," +
        most + "," + most + "," + most + ",0,x\n5000,0,0,0,0,x\n7500,9,9,9,9,x\n");
    REQUIRE(rows);
    CHECK(replay(*rows, options_of(duration{2'500})).last.at == stage::watching);
}
