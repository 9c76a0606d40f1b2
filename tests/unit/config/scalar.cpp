#include "config/scalar.hpp"

#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>

#include "config/glob.hpp"

using namespace hotlane::config;

TEST_CASE("durations carry units, in falling order") {
    CHECK(parse_duration("30s")->count() == 30'000);
    CHECK(parse_duration("1m30s")->count() == 90'000);
    CHECK(parse_duration("250ms")->count() == 250);
    CHECK(parse_duration("24h")->count() == 86'400'000);
    CHECK(parse_duration("7d")->count() == 604'800'000);
    CHECK(parse_duration("0")->count() == 0);
    for (const auto* bad : {"",
                            "5",
                            "s",
                            "5 s",
                            "1.5s",
                            "-5s",
                            "+5s",
                            "30s1m",
                            "1m1m",
                            "5S",
                            "5us",
                            "1h ",
                            " 1h",
                            "9223372036854775807h",
                            "99999999999999999999s",
                            "00"}) {
        INFO(bad);
        CHECK_FALSE(parse_duration(bad));
    }
}

TEST_CASE("sizes carry binary units") {
    CHECK(*parse_size("64KiB") == 65'536);
    CHECK(*parse_size("1MiB") == 1'048'576);
    CHECK(*parse_size("2GiB") == 2'147'483'648);
    CHECK(*parse_size("512B") == 512);
    CHECK(*parse_size("0") == 0);
    for (const auto* bad :
         {"", "5", "KiB", "64KB", "64kib", "1.5MiB", "-1MiB", "99999999999999GiB"}) {
        INFO(bad);
        CHECK_FALSE(parse_size(bad));
    }
}

TEST_CASE("numbers are plain decimals and never negative") {
    CHECK(*parse_integer("0") == 0);
    CHECK(*parse_integer("42") == 42);
    CHECK(*parse_ratio("1") == 1.0);
    CHECK(*parse_ratio("0.25") == 0.25);
    CHECK(*parse_number("2.5") == 2.5);
    for (const auto* bad : {"", "-1", "+1", "0x1", "01", "1_000", "1.0", "1e3"}) {
        INFO(bad);
        CHECK_FALSE(parse_integer(bad));
    }
    for (const auto* bad : {"", "1.1", "-0.1", "-0", "nan", "inf", ".nan", "50%", "1e-1", "0.5x"}) {
        INFO(bad);
        CHECK_FALSE(parse_ratio(bad));
    }
    CHECK_FALSE(parse_boolean("yes"));
    CHECK(parse_boolean("no").error().mend == "write false");
}

TEST_CASE("addresses") {
    CHECK(parse_endpoint("db.example:5432")->host == "db.example");
    CHECK(parse_endpoint("[::1]:5432")->host == "::1");
    CHECK(parse_endpoint("/run/postgresql:5433")->is_unix());
    CHECK(parse_endpoint("{database}.engine:7000")->host == "{database}.engine");
    CHECK(parse_endpoint("127.0.0.1:0")->port == 0);
    for (const auto* bad : {"",
                            "host",
                            "host:",
                            ":1",
                            "::1:5432",
                            "[::1]",
                            "[::1]x:1",
                            "h:65536",
                            "h:-1",
                            "h:1x",
                            "a b:1",
                            "postgres://u:p@h:1/d",
                            "u@h:1",
                            "[]:1"}) {
        INFO(bad);
        CHECK_FALSE(parse_endpoint(bad));
    }
    CHECK(parse_endpoint("postgres://u:hunter2@h:1/d").error().message.find("hunter2") ==
          std::string::npos);
}

TEST_CASE("what is printed parses to the same value") {
    rc::prop("durations", [] {
        const auto ms = milliseconds{*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000)};
        RC_ASSERT(*parse_duration(print_duration(ms)) == ms);
    });
    rc::prop("sizes", [] {
        const auto bytes = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 45);
        RC_ASSERT(*parse_size(print_size(bytes)) == bytes);
    });
    for (const auto* text : {"[::1]:1", "h:65535", "/run/x:5432"}) {
        CHECK(print_endpoint(*parse_endpoint(text)) == text);
    }
}

TEST_CASE("no text makes a parser misbehave") {
    rc::prop("parsers are total", [](const std::string& text) {
        (void)parse_duration(text);
        (void)parse_size(text);
        (void)parse_number(text);
        (void)parse_endpoint(text);
        RC_ASSERT(quoted(text).find('\n') == std::string::npos);
    });
}

TEST_CASE("the nearest word is within two edits, and no guess for short words") {
    CHECK(nearest("thread", {"threads", "tools"}) == "threads");
    CHECK(nearest("xyz", {"abc"}).empty());
    CHECK(nearest("a", {"b"}).empty());
    CHECK(nearest("client_connectionsxyz", {"client_connections"}).empty());
}

TEST_CASE("globs match and cover") {
    CHECK(glob_matches("app*", "app1"));
    CHECK(glob_matches("", "anything"));
    CHECK(glob_matches("a?c", "abc"));
    CHECK_FALSE(glob_matches("a?c", "ac"));
    CHECK(glob_matches("*a*b", "xxaybzb"));
    CHECK_FALSE(glob_matches("app", "app1"));
    CHECK(glob_covers("*", "app*"));
    CHECK(glob_covers("app*", "app1*"));
    CHECK(glob_covers("a?", "ab"));
    CHECK_FALSE(glob_covers("app", "app*"));
    CHECK_FALSE(glob_covers("a?", "a*"));
    CHECK_FALSE(glob_covers("app*", ""));
    rc::prop("covering is never claimed wrongly", [] {
        const auto glob = rc::gen::container<std::string>(rc::gen::element('a', 'b', '*', '?'));
        const auto text = rc::gen::container<std::string>(rc::gen::element('a', 'b'));
        const std::string wide = *glob;
        const std::string narrow = *glob;
        const std::string sample = *text;
        if (glob_covers(wide, narrow) && glob_matches(narrow, sample)) {
            RC_ASSERT(glob_matches(wide, sample));
        }
    });
}
