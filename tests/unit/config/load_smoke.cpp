#include <catch2/catch.hpp>

#include "config/print.hpp"

using namespace hotlane::config;

TEST_CASE("the shipped example loads without a warning") {
    const auto got = load_file("../deploy/examples/hotlane.yaml");
    INFO((got ? std::string{} : got.error().text));
    REQUIRE(got);
    CHECK(got->text.empty());
    CHECK(got->value.hash.size() == 64);
}
