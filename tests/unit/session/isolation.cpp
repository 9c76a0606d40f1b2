// Rule 9: at which level a transaction begins on PostgreSQL.
#include <catch2/catch.hpp>

#include "tests/unit/session/script.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

namespace {

std::string level_of(const std::string& sent) {
    const std::string key = "default_transaction_isolation = '";
    const auto at = sent.find(key);
    if (at == std::string::npos) return "";
    const auto from = at + key.size();
    return sent.substr(from, sent.find('\'', from) - from);
}

std::string batch(std::string_view sql) {
    return f::parse("", sql) + f::bind("", "") + f::execute();
}

const std::string update = "UPDATE t SET n = n + 1 WHERE id = 1";

}  // namespace

TEST_CASE("the level fits the first message of the transaction") {
    struct row {
        std::string bytes;
        std::string level;
    };
    const auto one =
        GENERATE(row{f::query("BEGIN"), "repeatable read"},
                 row{f::query("START TRANSACTION READ WRITE"), "repeatable read"},
                 row{f::query("BEGIN ISOLATION LEVEL READ COMMITTED"), ""},
                 row{f::query("SELECT n FROM t"), ""},
                 row{f::query(update), "read committed"},
                 row{f::query("INSERT INTO t VALUES (1, 2)"), "read committed"},
                 row{f::query("UPDATE t SET n = (SELECT max(n) FROM t)"), "repeatable read"},
                 row{f::query("INSERT INTO t SELECT * FROM u"), "repeatable read"},
                 row{f::query("SELECT n FROM t; UPDATE t SET n = 3"), "repeatable read"},
                 row{f::query("SET TimeZone = 'UTC'"), ""},
                 row{f::query(""), ""},
                 row{batch("SELECT n FROM t") + f::sync(), ""},
                 row{batch("SELECT n FROM t"), "repeatable read"},
                 row{batch("SELECT n FROM t") + batch(update) + f::sync(), "repeatable read"},
                 row{batch(update) + f::sync(), "read committed"},
                 row{batch(update) + batch(update) + f::sync(), "read committed"},
                 row{batch(update) + batch("SELECT n FROM t") + f::sync(), "repeatable read"},
                 row{batch("BEGIN") + f::sync(), "repeatable read"},
                 row{f::parse("a", update) + f::describe("a") + f::sync(), ""},
                 row{f::sync(), ""});
    script s;
    s.logged_in();
    s.client(one.bytes);
    const auto sent = s.to_link();
    INFO(sent_tags(one.bytes));
    REQUIRE(level_of(sent) == one.level);
    REQUIRE(sent.ends_with(one.bytes));
    script e(home_kind::engine);
    e.logged_in();
    e.client(one.bytes);
    REQUIRE(e.to_link() == one.bytes);
}

TEST_CASE("the hidden SET is sent once, in the same write, and its replies are swallowed") {
    script s;
    s.logged_in();
    s.client(f::query(update));
    REQUIRE(s.to_link() ==
            f::query("SET default_transaction_isolation = 'read committed'") + f::query(update));
    s.home(b::complete("SET") + b::ready());
    REQUIRE(s.to_client().empty());
    REQUIRE(s.machine->in_transaction());
    s.home(b::complete("UPDATE 1") + b::ready());
    REQUIRE(tags(s.to_client()) == "CZI");
    s.client(f::query(update));
    REQUIRE(s.to_link() == f::query(update));
    s.home(b::complete("UPDATE 1") + b::ready());
    s.client(f::query("BEGIN"));
    REQUIRE(level_of(s.to_link()) == "repeatable read");
}

TEST_CASE("pipelined transactions each get their level, in order") {
    script s;
    s.logged_in();
    s.client(f::query(update) + f::query("BEGIN") + f::query("SELECT 1") + f::query("COMMIT") +
             f::query(update));
    const auto sent = s.to_link();
    REQUIRE(sent_tags(sent) == "QQQQQQQQ");
    s.home(b::complete("SET") + b::ready() + b::complete("UPDATE 1") + b::ready());
    s.home(b::complete("SET") + b::ready() + b::complete("BEGIN") + b::ready('T'));
    s.home(b::complete("SELECT 1") + b::ready('T') + b::complete("COMMIT") + b::ready());
    s.home(b::complete("SET") + b::ready() + b::complete("UPDATE 1") + b::ready());
    REQUIRE(tags(s.to_client()) == "CZICZTCZTCZICZI");
    REQUIRE(s.env().left == 1);
}

TEST_CASE("a client that sets its own default is left alone until it resets it") {
    script s;
    s.logged_in();
    s.client(f::query("SET default_transaction_isolation = 'serializable'"));
    s.home(b::complete("SET") + b::ready());
    s.to_link();
    s.client(f::query("BEGIN"));
    REQUIRE(s.to_link() == f::query("BEGIN"));
    s.home(b::complete("BEGIN") + b::ready('T'));
    s.client(f::query("COMMIT"));
    s.home(b::complete("COMMIT") + b::ready());
    s.client(f::query("RESET default_transaction_isolation"));
    s.home(b::complete("RESET") + b::ready());
    s.to_link();
    s.client(f::query("BEGIN"));
    REQUIRE(level_of(s.to_link()) == "repeatable read");

    script t;
    t.logged_in(f::startup({{"user", "a"}, {"default_transaction_isolation", "serializable"}}));
    t.client(f::query("BEGIN"));
    REQUIRE(t.to_link() == f::query("BEGIN"));
}

TEST_CASE("a SET that was rolled back does not leave the link without its level") {
    script s;
    s.logged_in();
    s.client(f::query("BEGIN"));
    s.home(b::complete("SET") + b::ready() + b::complete("BEGIN") + b::ready('T'));
    s.client(f::query("SET default_transaction_isolation = 'read committed'"));
    s.home(b::complete("SET") + b::ready('T'));
    s.client(f::query("ROLLBACK"));
    s.home(b::complete("ROLLBACK") + b::ready());
    s.to_link();
    s.client(f::query("BEGIN"));
    REQUIRE(level_of(s.to_link()) == "repeatable read");
}

TEST_CASE("the other rules set their level once a link") {
    struct row {
        isolation_rule rule;
        std::string level;
    };
    const auto one = GENERATE(row{isolation_rule::read_committed, "read committed"},
                              row{isolation_rule::repeatable_read, "repeatable read"},
                              row{isolation_rule::serializable, "serializable"});
    script s;
    s.env().facts.isolation = one.rule;
    s.logged_in();
    s.client(f::query("SELECT 1"));
    REQUIRE(level_of(s.to_link()) == one.level);
    s.home(b::complete("SET") + b::ready() + b::complete("SELECT 1") + b::ready());
    s.client(f::query("BEGIN"));
    REQUIRE(s.to_link() == f::query("BEGIN"));
}

TEST_CASE("a home that refuses the level is not used at another one") {
    script s;
    s.logged_in();
    s.client(f::query("BEGIN"));
    s.home(b::error("42704", "unknown parameter") + b::ready());
    REQUIRE(tags(s.to_client()) == "E(08P01)");
    REQUIRE(s.client_closed);
}
