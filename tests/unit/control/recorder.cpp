// The bounded file that replay reads, and what the tools of a fleet know of each other.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "policy/recording.hpp"
#include "router/control/fleet.hpp"
#include "tests/unit/control/support.hpp"

using namespace hotlane;
using namespace hotlane::control;
using namespace hotlane::control::test;

namespace {

std::string slurp(const std::string& path) {
    std::ifstream in{path, std::ios::binary};
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

std::string line_at(int second) {
    policy::sample s;
    s.taken_at = policy::time_point{std::chrono::seconds{second}};
    s.acquires = static_cast<std::uint64_t>(second);
    return policy::recorded_line("shop", policy::home_kind::engine, s, {});
}

}  // namespace

TEST_CASE("a recording stays within its size and is readable piece by piece") {
    const folder where;
    const auto path = where.file("record");
    config::recording wanted{path, 8'192};
    {
        const auto to = open_recorder(wanted);
        REQUIRE(to);
        for (int i = 1; i < 400; ++i)
            to->add(line_at(i));
        CHECK(to->errors() == 0);
        CHECK(to->bytes() > 8'192);
    }
    CHECK(std::filesystem::file_size(path) + std::filesystem::file_size(path + ".1") <= 8'192);
    const auto older = policy::parse_recording(slurp(path + ".1"));
    const auto newer = policy::parse_recording(slurp(path));
    REQUIRE(older);
    REQUIRE(newer);
    CHECK(newer->at("shop").back().counters.acquires == 399U);
    CHECK(*older->at("shop").back().counters.acquires + 1 ==
          *newer->at("shop").front().counters.acquires);
    // Another process goes on with the same file.
    open_recorder(wanted)->add(line_at(400));
    CHECK(policy::parse_recording(slurp(path))->at("shop").back().counters.acquires == 400U);
    CHECK_FALSE(open_recorder({}));
    const auto nowhere = open_recorder({where.file("no/such/folder"), 8'192});
    nowhere->add(line_at(1));
    CHECK(nowhere->errors() == 1);
}

TEST_CASE("a tool's neighbours are the others on the engine, and who is away is counted") {
    fleet all;
    const policy::settings with;
    const auto view = [&] { return all.view("a", true, with, {}); };
    CHECK_FALSE(view().neighbours);
    for (const char* name : {"a", "b", "c"})
        all.set_home(name, policy::home_kind::engine);
    all.set_share("a", policy::neighbour_view{1, 1'000, 0.9, 50'000});
    all.set_share("b", policy::neighbour_view{1, 300, 0.5, 2'000});
    all.set_share("c", policy::neighbour_view{1, 100, 0.1, 1'000});
    const auto seen = view();
    CHECK(seen.tools == 3);
    CHECK(seen.tools_away == 0);
    REQUIRE(seen.neighbours);
    CHECK(seen.neighbours->tools == 2);
    CHECK(seen.neighbours->acquires_per_s == 400);
    CHECK(seen.neighbours->handoff_rate == Approx(0.4));
    CHECK(seen.neighbours->mean_wait_us == Approx(1'937.5));
    all.set_home("b", policy::home_kind::postgres);
    all.set_share("b", std::nullopt);
    CHECK(view().tools_away == 1);
    CHECK(view().neighbours->tools == 1);
}

TEST_CASE("an incident and neighbours are those of one storage") {
    fleet all;
    policy::settings with;
    const policy::time_point now{std::chrono::hours{10}};
    const auto view = [&](const char* tool) { return all.view(tool, true, with, now); };
    for (const char* name : {"a", "b", "c"}) {
        all.set_storage(name, "east");
        all.set_hot(name, now);
        all.set_share(name, policy::neighbour_view{1, 100, 0.5, 1'000});
    }
    all.set_storage("d", "west");
    all.set_hot("d", now);
    CHECK(view("a").tools_hot_together == 3);
    CHECK(view("d").tools_hot_together == 1);
    REQUIRE(view("a").neighbours);
    CHECK(view("a").neighbours->tools == 2);
    CHECK_FALSE(view("d").neighbours);
    all.set_hot("c", std::nullopt);
    CHECK(view("a").tools_hot_together == 2);
}
