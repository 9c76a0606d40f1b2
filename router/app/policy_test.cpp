// `hotlane test`: unit tests of policies.
#include <fmt/format.h>

#include "config/policy_test.hpp"
#include "router/app/ask.hpp"
#include "router/app/offline.hpp"

namespace hotlane::app {

using nlohmann::json;

int test_policies(const std::vector<std::string>& files, format as) {
    json report = json::array();
    int differing = 0;
    int all = 0;
    for (const auto& file : files) {
        const auto tests = config::load_policy_tests(file);
        if (!tests) {
            talk(tests.error().text);
            return invalid_config;
        }
        if (!tests->text.empty()) talk(tests->text);
        for (const auto& one : tests->all) {
            const auto differences = policy::run(one);
            ++all;
            differing += differences.empty() ? 0 : 1;
            report.push_back({{"file", file}, {"name", one.name}, {"differences", differences}});
            if (as == format::json) continue;
            print(
                fmt::format("{} {}: {}\n", differences.empty() ? "ok  " : "FAIL", file, one.name));
            for (const auto& line : differences)
                print(fmt::format("     {}\n", line));
        }
    }
    if (as == format::json)
        print_json({{"schema", "hotlane/v1"}, {"ok", differing == 0}, {"tests", report}});
    else
        print(fmt::format("{} tests, {} failed\n", all, differing));
    return differing == 0 ? ok : failed;
}

}  // namespace hotlane::app
