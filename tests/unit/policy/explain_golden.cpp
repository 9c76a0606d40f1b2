// `explain` as an operator reads it: each story with all its decisions and how the tool stands in
// the end. HOTLANE_UPDATE_GOLDEN=1 writes the texts instead; read the difference before you commit.
#include <cstdlib>
#include <filesystem>

#include "build.hpp"

using namespace hotlane::policy;
using namespace hotlane::policy::testing;

namespace {

const std::filesystem::path folder{"golden/policy/explain"};

void compare(const std::string& story, const driver& d) {
    std::string text;
    for (const decision& one : d.decisions)
        text += explain(one) + "\n\n";
    text += "---\n" + d.policy.explain_now(d.now()) + "\n";
    const auto expected = folder / (story + ".txt");
    if (std::getenv("HOTLANE_UPDATE_GOLDEN") != nullptr) std::ofstream{expected} << text;
    std::ifstream file{expected};
    std::stringstream known;
    known << file.rdbuf();
    INFO(story);
    CHECK(text == known.str());
}

// Writes of four sessions to one row, in the window that comes.
std::vector<write_interval> one_row(time_point from,
                                    duration length,
                                    std::int64_t takes_us,
                                    std::int64_t pause_us) {
    std::vector<write_interval> out;
    const auto begin =
        std::chrono::duration_cast<std::chrono::microseconds>(from.time_since_epoch()).count();
    for (std::uint64_t session = 1; session <= 4; ++session)
        for (std::int64_t at = 0; at + takes_us < length.count() * 1'000; at += takes_us + pause_us)
            out.push_back({session, begin + at, begin + at + takes_us, 7, false, false});
    for (auto& one : out) {  // one after the other where there is room
        one.start_us += static_cast<std::int64_t>(one.session) * pause_us / 5;
        one.end_us += static_cast<std::int64_t>(one.session) * pause_us / 5;
    }
    std::erase_if(out,
                  [&](const auto& one) { return one.end_us > begin + length.count() * 1'000; });
    return out;
}

void run_with_writes(
    driver& d, const load& by, int windows, std::int64_t takes_us, std::int64_t pause_us) {
    const duration length = d.policy.current_settings().window.length;
    for (int i = 0; i < windows; ++i) {
        d.policy.add_writes(one_row(d.now(), length, takes_us, pause_us));
        d.run(by, 1);
    }
}

}  // namespace

TEST_CASE("explain: a calm tool") {
    driver d{short_settings()};
    d.run(calm, 6);
    compare("calm", d);
}

TEST_CASE("explain: a hot row in mode advise waits for its operator") {
    driver d{short_settings(mode::advise)};
    d.policy.set_table("counters");
    d.run(calm, 6);
    d.run(hot_row, 8);
    compare("hot_row", d);
}

TEST_CASE("explain: a busy lane is not moved") {
    driver d{short_settings()};
    d.run(busy, 8);
    compare("busy_lane", d);
}

TEST_CASE("explain: a pin holds back what should move") {
    settings with = short_settings();
    with.levers.shard = false;
    driver d{with};
    d.take(d.policy.set_pin(
        {home_kind::engine, d.now() + duration{7'200'000}, "ann", "audit until noon"},
        d.fleet,
        d.now()));
    d.run(hot_row, 6);
    compare("pinned", d);
}

TEST_CASE("explain: an incident of the storage") {
    settings with = short_settings(mode::advise);
    with.rails.incident_tools = 3;
    driver d{with};
    d.run(calm, 4);
    d.fleet.tools_hot_together = 17;
    d.run(hot_row, 8);
    compare("incident", d);
}

TEST_CASE("explain: there and back, with what was expected and what came true") {
    settings with = short_settings();
    with.levers.shard = false;
    driver d{with};
    d.fleet.target = postgres_model{400, 600};
    d.fleet.neighbours = neighbour_view{6, 1'200, 0.31, 4'200};
    run_with_writes(d, hot_row, 6, 9'000, 1'000);
    d.take(d.policy.move_finished(move_end::ok, "", d.fleet, d.now(), duration{420}));
    d.fleet.neighbours = neighbour_view{6, 1'300, 0.12, 900};
    run_with_writes(d, {200, 0, 0, 0}, 8, 1'300, 10'000);
    compare("moved_out", d);
    d.decisions.clear();
    run_with_writes(d, {10, 0, 0, 0}, 60, 1'300, 400'000);
    REQUIRE(d.at() == stage::moving_back);
    d.take(d.policy.move_finished(move_end::ok, "", d.fleet, d.now(), duration{310}));
    d.run({60, 0.1, 900, 0.05}, 10);
    compare("returned", d);
}
