#include "config/load.hpp"

#include <rapidcheck/catch.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "config/print.hpp"
#include "config/tree.hpp"

using namespace hotlane::config;
namespace policy = hotlane::policy;

namespace {

loaded must(const std::string& text) {
    auto got = load_text(text, "x.yaml");
    INFO((got ? std::string{} : got.error().text));
    REQUIRE(got);
    return std::move(*got);
}

struct temp_file {
    std::string path;
    explicit temp_file(const std::string& text) {
        char name[] = "/tmp/hotlane-secret-XXXXXX";
        const int fd = mkstemp(name);
        REQUIRE(fd >= 0);
        close(fd);
        path = name;
        std::ofstream{path, std::ios::binary} << text;
    }
    ~temp_file() { unlink(path.c_str()); }
    temp_file(const temp_file&) = delete;
    temp_file& operator=(const temp_file&) = delete;
};

constexpr auto tools = "tools:\n  - name: a\n    engine: {address: \"h:7001\"}\n";

}  // namespace

TEST_CASE("the shipped example loads without a warning") {
    const auto got = load_file("../deploy/examples/hotlane.yaml");
    INFO((got ? std::string{} : got.error().text));
    REQUIRE(got);
    CHECK(got->text.empty());
}

TEST_CASE("the shipped example writes every key, with its default") {
    // A key that print_effective calls a default is missing in the example.
    const auto got = load_file("../deploy/examples/hotlane.yaml");
    REQUIRE(got);
    const auto text = print_effective(*got);
    const auto tools_at = text.find("\ntools:");
    CHECK(text.substr(0, tools_at).find("# default") == std::string::npos);
    const auto& shown = got->value.policies.at("default");
    const policy::settings built_in;
    CHECK(shown.act_mode == built_in.act_mode);
    CHECK(shown.window.length == built_in.window.length);
    CHECK(shown.detect.abort_rate_leave == built_in.detect.abort_rate_leave);
    CHECK(shown.rails.forgive_after == built_in.rails.forgive_after);
    CHECK(shown.come_back.lane_use_max == built_in.come_back.lane_use_max);
    CHECK(got->value.limit.held_bytes == limits{}.held_bytes);
    CHECK(got->value.limit.parsed_message_bytes == limits{}.parsed_message_bytes);
}

TEST_CASE("every setting of a policy has a key") {
    // Members are declared as `type name{default};` in sections that end with `} name;`.
    const auto got = load_file("../deploy/examples/hotlane.yaml");
    REQUIRE(got);
    const auto text = print_effective(*got);
    std::ifstream header{"../policy/settings.hpp"};
    REQUIRE(header);
    int found = 0;
    for (std::string line; std::getline(header, line) && line != "struct settings {";) {
    }
    for (std::string line; std::getline(header, line) && line != "};";) {
        const auto value = line.find('{');
        const auto end = line.find("};", value);
        if (value == std::string::npos || end == std::string::npos) continue;
        const auto space = line.rfind(' ', value);
        auto name = line.substr(space + 1, value - space - 1);
        if (name == "name" || name == "where") continue;  // not written by operators
        if (name == "act_mode") name = "mode";
        INFO(line);
        CHECK(text.find(" " + name + ": ") != std::string::npos);
        ++found;
    }
    CHECK(found > 30);
}

TEST_CASE("defaults fill what is not written") {
    const auto got = must(std::string{"version: 1\n"} + tools).value;
    REQUIRE(got.listen.size() == 1);
    CHECK(got.listen[0].at.port == 6432);
    CHECK_FALSE(got.metrics_listen);
    CHECK(got.tools[0].match.database == "a");
    CHECK(got.tools[0].policy == "default");
    CHECK(got.tools[0].where.line == 3);
    CHECK(got.policies.at("default").where == "built-in");
    CHECK(got.hash.size() == 64);
}

TEST_CASE("a policy starts from the one that it extends") {
    const auto got = must(
        "version: 1\n"
        "policies:\n"
        "  b: {extends: a, window: {hot_of: 4}}\n"
        "  a: {mode: act, window: {length: 7s}}\n"
        "  default: {window: {min_acquires: 9}}\n" +
        std::string{tools});
    const auto& b = got.value.policies.at("b");
    CHECK(b.act_mode == policy::mode::act);
    CHECK(b.window.length.count() == 7'000);
    CHECK(b.window.hot_of == 4);
    CHECK(b.window.min_acquires == 9);
    CHECK(b.name == "b");
    CHECK(b.where == "x.yaml:3");
    CHECK(got.origins.at("policies.b.window.length").line == 4);
}

TEST_CASE("the hash follows the bytes") {
    const auto one = must(std::string{"version: 1\n"} + tools);
    const auto two = must(std::string{"version: 1\n# a comment\n"} + tools);
    CHECK(one.value.hash != two.value.hash);
    CHECK(one.value.hash == must(std::string{"version: 1\n"} + tools).value.hash);
}

TEST_CASE("a file that is too large is refused unread") {
    const auto got = load_text(std::string(file_bytes_max + 1, '#'), "x.yaml");
    REQUIRE_FALSE(got);
    CHECK(got.error().text == "x.yaml:1:1: error: is larger than 1MiB\n");
    const temp_file file{std::string(file_bytes_max + 1, '#')};
    CHECK_FALSE(load_file(file.path));
    CHECK_FALSE(load_file("/nowhere/at/all.yaml"));
    CHECK_FALSE(load_file("/tmp"));
}

TEST_CASE("many tools are checked quickly, too many are refused") {
    std::string text = "version: 1\ntools:\n";
    const auto add = [&](int i) {
        text += "  - {name: t" + std::to_string(i) +
                ", engine: {address: \"h:" + std::to_string(i + 1) + "\"}}\n";
    };
    for (int i = 0; i < 2'000; ++i)
        add(i);
    CHECK(load_text(text, "x.yaml"));
    add(2'000);
    CHECK_FALSE(load_text(text, "x.yaml"));
}

TEST_CASE("one server under two names is one server") {
    const auto got = load_text(
        "version: 1\n"
        "postgres: {a: {address: \"h:1\"}, b: {address: \"h:1\"}}\n"
        "tools:\n"
        "  - {name: x, engine: {address: \"e:1\"}, postgres: {server: a, database: d}}\n"
        "  - {name: y, engine: {address: \"e:2\"}, postgres: {server: b, database: d}}\n",
        "x.yaml");
    REQUIRE_FALSE(got);
    CHECK(got.error().text.find("tools[1].postgres: database and schema") != std::string::npos);
}

TEST_CASE("include is for files only") {
    CHECK_FALSE(load_text("version: 1\ninclude: [a.yaml]\n", "x.yaml"));
}

TEST_CASE("a secret is read when it is asked for, without its newline") {
    CHECK(read_secret({})->empty());
    const temp_file file{"hunter2\n"};
    CHECK(*read_secret({secret_ref::kind::file, file.path}) == "hunter2");
    const temp_file blank{"\n"};
    CHECK_FALSE(read_secret({secret_ref::kind::file, blank.path}));
    const temp_file spaces{" two \n\n"};
    CHECK(*read_secret({secret_ref::kind::file, spaces.path}) == " two \n");
    const temp_file large{std::string(5'000, 'x')};
    const auto refused = read_secret({secret_ref::kind::file, large.path});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().find("xxx") == std::string::npos);
    const temp_file zero{std::string("a\0b", 3)};
    CHECK_FALSE(read_secret({secret_ref::kind::file, zero.path}));
    setenv("HOTLANE_TEST_SECRET", "hunter3", 1);
    CHECK(*read_secret({secret_ref::kind::env, "HOTLANE_TEST_SECRET"}) == "hunter3");
    unsetenv("HOTLANE_TEST_SECRET");
    CHECK(read_secret({secret_ref::kind::env, "HOTLANE_TEST_SECRET"}).error() ==
          "environment variable HOTLANE_TEST_SECRET is not set");
}

TEST_CASE("no text makes the loader misbehave") {
    const auto pieces = rc::gen::element<std::string>("version: 1\n",
                                                      "tools:\n",
                                                      "  - name: a\n",
                                                      "    engine: {address: \"h:1\"}\n",
                                                      "policies: {a: {extends: a}}\n",
                                                      "limits: {buffer: 1}\n",
                                                      "listen: [{tcp: \"h:1\"}]\n",
                                                      "? ",
                                                      "- ",
                                                      "[",
                                                      "}",
                                                      "&a ",
                                                      "*a ",
                                                      "\xC3\xA4",
                                                      "\xFF",
                                                      "|\n  x\n",
                                                      ": ");
    rc::prop("a refusal has an error and a text, a success loads again", [&] {
        const auto parts = *rc::gen::container<std::vector<std::string>>(pieces);
        std::string text;
        for (const auto& p : parts)
            text += p;
        const auto got = load_text(text, "x.yaml");
        if (got) {
            RC_ASSERT(load_text(print_effective(*got), "y.yaml").has_value());
        } else {
            RC_ASSERT(!got.error().problems.empty());
            RC_ASSERT(!got.error().text.empty());
        }
    });
}

TEST_CASE("the state of a fleet is one DSN without a secret, and in one place") {
    const auto with = [](const std::string& state) {
        return load_text("version: 1\nstate: {" + state + "}\ntools: []\n", "t.yaml");
    };
    const auto good = with("postgres: \"host=a,b dbname=hotlane\", password: {env: X}, lease: 6s");
    REQUIRE(good);
    REQUIRE(good->value.shared_state);
    CHECK(good->value.shared_state->dsn == "host=a,b dbname=hotlane");
    CHECK(good->value.shared_state->lease == std::chrono::seconds{6});
    CHECK(good->value.shared_state->password.name == "X");
    CHECK_FALSE(load_text("version: 1\ntools: []\n", "t.yaml")->value.shared_state);

    const auto refused = [&](const std::string& state, const std::string& why) {
        const auto got = with(state);
        REQUIRE_FALSE(got);
        CHECK(got.error().text.find(why) != std::string::npos);
        CHECK(got.error().text.find("hunter2") == std::string::npos);
    };
    refused("postgres: \"host=a password=hunter2\"", "holds a password");
    refused("postgres: \"postgresql://me:hunter2@a/x\"", "holds a password");
    refused("postgres: \"host=a\", file: /x/state.db", "in one place");
    refused("postgres: \"host=a\", lease: 3s, statement_timeout: 2s", "a third of the lease");
    refused("lease: 6s", "unknown key");
}
