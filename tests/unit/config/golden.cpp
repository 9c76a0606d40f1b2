// Every file under golden/config/invalid is refused with exactly the text beside it; every file
// under golden/config/valid loads, with exactly the warnings beside it. HOTLANE_UPDATE_GOLDEN=1
// writes the texts instead; read the difference before you commit it.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "config/print.hpp"

using namespace hotlane::config;
namespace fs = std::filesystem;

namespace {

std::string slurp(const fs::path& path) {
    std::ifstream in{path, std::ios::binary};
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

std::set<fs::path> files_of(const std::string& folder) {
    std::set<fs::path> out;
    for (const auto& e : fs::directory_iterator{folder}) {
        if (e.path().extension() == ".yaml") out.insert(e.path());
    }
    return out;
}

void compare(fs::path yaml, const std::string& text) {
    const auto expected = yaml.replace_extension(".txt");
    if (std::getenv("HOTLANE_UPDATE_GOLDEN") != nullptr) {
        if (text.empty()) {
            fs::remove(expected);
        } else {
            std::ofstream{expected, std::ios::binary} << text;
        }
    }
    INFO(expected);
    CHECK(text == slurp(expected));
}

}  // namespace

TEST_CASE("invalid files are refused with the text that is expected") {
    const auto files = files_of("golden/config/invalid");
    REQUIRE(files.size() >= 30);
    for (const auto& path : files) {
        INFO(path);
        const auto got = load_file(path.string());
        REQUIRE_FALSE(got);
        CHECK_FALSE(got.error().text.empty());
        CHECK(got.error().text.find("hunter2") == std::string::npos);
        compare(path, got.error().text);
    }
}

TEST_CASE("valid files load, with the warnings that are expected") {
    const auto files = files_of("golden/config/valid");
    REQUIRE(files.size() >= 5);
    for (const auto& path : files) {
        INFO(path);
        const auto got = load_file(path.string());
        INFO((got ? std::string{} : got.error().text));
        REQUIRE(got);
        compare(path, got->text);
    }
}

TEST_CASE("the effective configuration loads again and says the same") {
    auto files = files_of("golden/config/valid");
    files.insert("../deploy/examples/hotlane.yaml");
    const auto stripped = [](const std::string& text) {
        std::string out;
        std::istringstream in{text};
        for (std::string line; std::getline(in, line);)
            out += line.substr(0, line.find(" # ")) + '\n';
        return out;
    };
    for (const auto& path : files) {
        INFO(path);
        const auto first = load_file(path.string());
        REQUIRE(first);
        const auto text = print_effective(*first);
        INFO(text);
        const auto second = load_text(text, "effective.yaml");
        INFO((second ? std::string{} : second.error().text));
        REQUIRE(second);
        CHECK(stripped(print_effective(*second)) == stripped(text));
    }
}
