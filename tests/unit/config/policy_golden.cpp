// Policies as an operator meets them: wrong ones with the exact text that they get, what is in
// force for a tool, tests of a policy, and what a policy says of recorded traces.
// HOTLANE_UPDATE_GOLDEN=1 writes the texts instead; read the difference before you commit it.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "config/live.hpp"
#include "config/policy_test.hpp"
#include "config/print.hpp"
#include "policy/replay.hpp"

using namespace hotlane;
using namespace hotlane::config;
namespace fs = std::filesystem;

namespace {

const std::string wrong_ones = "golden/policy/wrong";
const std::string run_with = "golden/policy/run/";

std::string slurp(const fs::path& path) {
    std::ifstream in{path, std::ios::binary};
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

void compare(const fs::path& expected, const std::string& text) {
    if (std::getenv("HOTLANE_UPDATE_GOLDEN") != nullptr)
        std::ofstream{expected, std::ios::binary} << text;
    INFO(expected);
    CHECK(text == slurp(expected));
}

std::set<fs::path> files_of(const std::string& folder, const std::string& extension) {
    std::set<fs::path> out;
    for (const auto& e : fs::directory_iterator{folder})
        if (e.path().extension() == extension) out.insert(e.path());
    return out;
}

loaded must_load(const std::string& path) {
    auto got = load_file(path);
    if (!got) FAIL(got.error().text);
    return std::move(*got);
}

}  // namespace

TEST_CASE("each wrong policy gets its exact message") {
    const auto files = files_of(wrong_ones, ".yaml");
    REQUIRE(files.size() >= 25);
    for (auto path : files) {
        INFO(path);
        const auto got = load_file(path.string());
        const auto text = got ? got->text : got.error().text;
        CHECK_FALSE(text.empty());
        compare(path.replace_extension(".txt"), text);
    }
}

TEST_CASE("what is in force for a tool is shown with its origin") {
    const auto got = must_load(run_with + "hotlane.yaml");
    compare(run_with + "effective.txt", print_effective(got));
    const auto& tools = got.value.tools;
    const auto counter = settings_of(got.value, tools[0]);
    CHECK(counter.name == "quick");
    CHECK(counter.rails.moves_per_hour == 8);
    const auto pay = settings_of(got.value, tools[1]);
    CHECK(pay.name == "quick+gold+payments+pay-in");
    CHECK(pay.rails.moves_per_hour == 2);
    CHECK(pay.diagnose.busy_lane == policy::busy_handling::ignore);
    CHECK(pay.come_back.margin == 0.4);
    CHECK(pay.rails.min_stay == std::chrono::seconds{30});
    REQUIRE(pay.pinned);
    CHECK(pay.pinned->reason == "audit");
}

TEST_CASE("a template's tools find their groups when they are known") {
    const auto got = load_text(
        "version: 1\n"
        "groups:\n  - {name: pay, tools: [\"pay-*\"], set: {mode: act}}\n"
        "tools:\n  - {name: \"{database}\", engine: {address: \"{database}.engine:7000\"}}\n",
        "t.yaml");
    REQUIRE(got);
    auto tool = got->value.tools.front();
    tool.name = "pay-in";
    CHECK(settings_of(got->value, tool).act_mode == policy::mode::act);
    tool.name = "shop";
    CHECK(settings_of(got->value, tool).act_mode == policy::mode::observe);
}

TEST_CASE("tests of a policy pass, and say what differs where they do not") {
    for (const char* name : {"good", "failing"}) {
        const auto tests = load_policy_tests(run_with + name + ".test.yaml");
        if (!tests) FAIL(tests.error().text);
        std::string text;
        for (const auto& one : tests->all) {
            const auto differences = policy::run(one);
            text += fmt::format("{}: {}\n", differences.empty() ? "ok" : "FAIL", one.name);
            for (const auto& line : differences)
                text += "  " + line + "\n";
        }
        compare(run_with + name + ".test.txt", text);
        CHECK((text.find("FAIL") != std::string::npos) == (std::string_view(name) == "failing"));
    }
    const auto wrong = load_policy_tests(run_with + "wrong.test.yaml");
    REQUIRE_FALSE(wrong);
    compare(run_with + "wrong.test.txt", wrong.error().text);
    CHECK_FALSE(load_policy_tests(run_with + "nowhere.test.yaml"));
}

TEST_CASE("recorded traces are replayed to the same timeline") {
    const auto fresh = must_load(run_with + "hotlane.yaml").value;
    const auto older = must_load(run_with + "older.yaml").value;
    const auto traces = files_of("traces", ".csv");
    REQUIRE(traces.size() >= 11);
    std::string sums;
    for (const auto& path : traces) {
        INFO(path);
        const auto rows = policy::parse_trace(slurp(path));
        if (!rows) FAIL(rows.error());
        policy::replay_options options;
        options.move_takes = std::chrono::seconds{5};
        options.move_holds = std::chrono::milliseconds{500};
        options.with = older.policies.at("quick");
        options.with.rails.incident_tools = 0;
        const auto before = policy::replay(*rows, options);
        options.with = fresh.policies.at("quick");
        options.with.rails.incident_tools = 0;
        const auto after = policy::replay(*rows, options);
        sums += path.stem().string() + "\n" + policy::summary_of(after) +
                policy::compare(before, after) + "\n";
        if (path.stem() == "twill_hot_row")
            compare(run_with + "twill_hot_row.replay.txt", policy::to_text(after));
        CHECK(policy::compare(after, after).empty());
    }
    compare(run_with + "traces.replay.txt", sums);
}

TEST_CASE("a configuration is held against what was measured") {
    const auto got = must_load(run_with + "hotlane.yaml");
    std::vector<observed_tool> now(2);
    now[0].name = "counter";
    now[0].handoff_rate = 0.7;
    now[0].mean_wait_us = 16'000;
    now[0].abort_rate = 0.8;
    now[1].name = "pay-in";
    now[1].conflict_rate = 0.05;
    now[1].longest_move = std::chrono::minutes{6};
    std::string text;
    for (const auto& p : lint_live(got, now))
        text += render(p, "");
    compare(run_with + "live.txt", text);
    CHECK(lint_live(got, {}).empty());
}
