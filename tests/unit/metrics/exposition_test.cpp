#include "metrics/exposition.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

using namespace hotlane;
using namespace hotlane::metrics;

namespace {

tool_snapshot full_tool(const std::string& name) {
    tool_snapshot t;
    t.tool = name;
    t.policy = "default";
    t.stage = policy::stage::moving_out;
    t.verdict = policy::verdict::hot;
    t.handoff_ratio = 0.67;
    t.mean_wait_seconds = 0.016;
    t.abort_ratio = 0.81;
    t.conflict_ratio = 0.8;
    t.predicted_handoff_ratio = 0.1;
    t.predicted_conflict_ratio = 0.1;
    t.predicted_lane_use_ratio = 0.1;
    t.predicted_mean_wait_seconds = 0.002;
    t.foreseen = policy::lane_rates{};
    t.seen_at_home = policy::lane_rates{};
    t.forecast_seconds = 0.001;
    t.came_true_seconds = 0.002;
    t.forecast_failures = 0.0;
    t.came_true_failures = 0.01;
    t.foresight_wait_factor = 1.5;
    t.hold_used_seconds = 3;
    t.hold_limit_seconds = 60;
    t.lane_seconds = 0.0001;
    t.commit_seconds = 0.005;
    t.thresholds = {{"handoff_ratio", "enter", 0.5}, {"handoff_ratio", "leave", 0.3}};
    t.traffic.write_conflicts = 12'345'678;
    t.traffic.hold_wait_us = 1'500'000;
    t.hold.observe(0.02);
    t.links_closed = {{"idle", 1}};
    t.pins = {{"listen", 2}};
    t.retries = {{"recovered", 3}};
    t.after_error = {{"insert", 4}};
    t.moves[{policy::home_kind::postgres, "done"}] = 2;
    t.move = move_in_progress{policy::home_kind::postgres, "copy", {}, {}};
    t.engine_up = true;
    t.postgres_up = false;
    t.sample_seconds = 0.001;
    t.sampled_at = policy::time_point{std::chrono::milliseconds{1'700'000'000'123}};
    return t;
}

snapshot full() {
    snapshot s;
    s.what = {"0.1.0", "abc", "gcc"};
    s.config_hash = "00";
    s.tools = {full_tool("counter")};
    s.fleet = fleet_snapshot{true, true, 7, 1, 0, 99, 2};
    s.process = read_process_usage();
    return s;
}

std::string text_of(const snapshot& s) {
    return exposition{[&] { return s; }}.text();
}

bool has(const std::string& text, const std::string& line) {
    return text.find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("every name of the table is exported, and no other") {
    std::set<std::string> table;
    for (const auto& m : names::all)
        table.emplace(m.name);
    CHECK(table.size() == names::all.size());
    std::set<std::string> exported;
    for (const auto& f : families(full())) {
        exported.insert(f.name);
        CHECK_FALSE(f.metric.empty());
    }
    CHECK(exported == table);
}

TEST_CASE("labels are those of the table") {
    for (const auto& f : families(full())) {
        for (const auto& m : names::all) {
            if (m.name != f.name) continue;
            std::string labels;
            for (const auto& l : f.metric.front().label) {
                labels += (labels.empty() ? "" : ",") + l.name;
            }
            INFO(f.name);
            CHECK(labels == m.labels);
        }
    }
}

TEST_CASE("values arrive unharmed") {
    const auto text = text_of(full());
    CHECK(has(text, "hotlane_handoff_ratio{tool=\"counter\"} 0.67"));
    CHECK(has(text, "hotlane_conflicts_total{tool=\"counter\"} 12345678"));
    CHECK(has(text, "hotlane_queue_wait_seconds_total{tool=\"counter\"} 1.5"));
    CHECK(has(text, "hotlane_tool_verdict{tool=\"counter\",verdict=\"hot\"} 1"));
    CHECK(has(text, "hotlane_tool_verdict{tool=\"counter\",verdict=\"calm\"} 0"));
    CHECK(has(text, "hotlane_home_up{tool=\"counter\",home=\"postgres\"} 0"));
    CHECK(has(text, "hotlane_route_info{tool=\"counter\",home=\"engine\"} 1"));
    CHECK(has(text, "hotlane_moves_total{tool=\"counter\",to=\"postgres\",outcome=\"done\"} 2"));
    CHECK(has(text, "hotlane_hold_seconds_bucket{tool=\"counter\",le=\"0.025\"} 1"));
    CHECK(has(text, "hotlane_hold_seconds_bucket{tool=\"counter\",le=\"0.01\"} 0"));
    CHECK(has(text, "hotlane_hold_seconds_bucket{tool=\"counter\",le=\"+Inf\"} 1"));
    CHECK(text.find("hotlane_sample_timestamp_seconds{tool=\"counter\"} 1700000000.12") !=
          std::string::npos);
}

TEST_CASE("known series start at zero, unknown values are absent") {
    snapshot s;
    tool_snapshot t;
    t.tool = "new";
    s.tools = {t};
    s.limit_hits["a_new_bound"] = 3;
    const auto text = text_of(s);
    CHECK(has(text, "hotlane_limit_hits_total{limit=\"a_new_bound\"} 3"));
    CHECK(has(text, "hotlane_moves_total{tool=\"new\",to=\"engine\",outcome=\"undone\"} 0"));
    CHECK(has(text, "hotlane_limit_hits_total{limit=\"held_clients\"} 0"));
    CHECK(has(text, "hotlane_fence_left{tool=\"new\"} 0"));
    CHECK(has(text, "hotlane_windows_total{tool=\"new\",quality=\"good\"} 0"));
    CHECK(text.find("hotlane_handoff_ratio{") == std::string::npos);
    CHECK(text.find("hotlane_home_up{") == std::string::npos);
    CHECK(text.find("hotlane_move_info") == std::string::npos);
}

TEST_CASE("labels cannot break the format") {
    snapshot s;
    s.tools = {full_tool("a\"b\\c\nd\xff")};
    const auto text = text_of(s);
    CHECK(has(text, "hotlane_sessions{tool=\"a\\\"b\\\\c\\nd\xEF\xBF\xBD\"} 0"));
}

TEST_CASE("tools beyond the label budget are counted, not exported") {
    snapshot s;
    for (std::size_t i = 0; i < tools_exported_max + 3; ++i) {
        s.tools.push_back(full_tool("t" + std::to_string(i)));
    }
    const auto text = text_of(s);
    CHECK(has(text, "hotlane_tools " + std::to_string(tools_exported_max + 3)));
    CHECK(has(text, "hotlane_tools_not_exported 3"));
    CHECK(text.find("\"t" + std::to_string(tools_exported_max) + "\"") == std::string::npos);
}

TEST_CASE("a hold on an edge belongs to its bucket") {
    hold_histogram h;
    h.observe(2.0);
    h.observe(100.0);
    CHECK(h.counts[8] == 1);
    CHECK(h.counts.back() == 1);
    hold_histogram twice = h;
    twice += h;
    CHECK(twice.counts[8] == 2);
    CHECK(twice.sum_seconds == 204.0);
}

TEST_CASE("the process knows what it uses") {
    const auto p = read_process_usage();
    CHECK(p.resident_bytes > 100'000);
    CHECK(p.open_fds >= 3);
    CHECK(p.max_fds >= p.open_fds);
    CHECK(p.start_seconds > 1'600'000'000);
}

TEST_CASE("promtool has nothing to say") {
    if (std::system("command -v promtool >/dev/null 2>&1") != 0) {
        WARN("promtool is not installed");
        return;
    }
    char name[] = "/tmp/hotlane-promtool-XXXXXX";
    const int fd = mkstemp(name);
    REQUIRE(fd >= 0);
    close(fd);
    const std::string path{name};
    const auto command = "promtool check metrics >" + path + " 2>&1";
    auto* pipe = popen(command.c_str(), "w");
    REQUIRE(pipe != nullptr);
    const auto text = text_of(full());
    std::fwrite(text.data(), 1, text.size(), pipe);
    const int status = pclose(pipe);
    std::string said;
    if (auto* in = std::fopen(name, "r"); in != nullptr) {
        char buffer[4096];
        said.assign(buffer, std::fread(buffer, 1, sizeof buffer, in));
        std::fclose(in);
    }
    unlink(name);
    INFO(said);
    CHECK(said.empty());
    CHECK(WEXITSTATUS(status) == 0);
}
