// Losses: 08006 only where nothing can have been committed, 08007 wherever something can, and one
// clear error in any case.
#include <catch2/catch.hpp>

#include "tests/unit/session/script.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

namespace {

std::string batch(std::string_view sql) {
    return f::parse("", sql) + f::bind("", "") + f::execute();
}

const std::string insert = "INSERT INTO t VALUES (1)";

}  // namespace

TEST_CASE("a lost link: what may have been committed decides the code") {
    struct row {
        std::string name, client, home, code;
        home_kind kind{home_kind::engine};
    };
    const auto opened = b::complete("BEGIN") + b::ready('T');
    const auto inserted = b::complete("INSERT 0 1");
    const auto one = GENERATE_COPY(
        row{"autocommit write", f::query(insert), "", "08007"},
        row{"write completed, not yet ready", f::query(insert), inserted, "08007"},
        row{"read", f::query("SELECT n FROM t"), "", "08006"},
        row{"open block", f::query("BEGIN") + f::query(insert), opened, "08006"},
        row{"block, write answered",
            f::query("BEGIN") + f::query(insert),
            opened + inserted + b::ready('T'),
            "08006"},
        row{"commit sent",
            f::query("BEGIN") + f::query(insert) + f::query("COMMIT"),
            opened + inserted + b::ready('T'),
            "08007"},
        row{"rollback sent",
            f::query("BEGIN") + f::query(insert) + f::query("ROLLBACK"),
            opened + inserted + b::ready('T'),
            "08006"},
        row{"whole block in one text", f::query("BEGIN; " + insert + "; COMMIT"), "", "08007"},
        row{"batch without sync", batch(insert) + f::flush(), "", "08006", home_kind::postgres},
        row{"batch with sync", batch(insert) + f::sync(), "", "08007", home_kind::postgres},
        row{"batch executed, sync unanswered",
            batch(insert) + f::sync(),
            b::complete("SET") + b::ready() + b::parsed() + b::bound() + inserted,
            "08007",
            home_kind::postgres},
        row{"batch on the engine, no sync", batch(insert) + f::flush(), "", "08007"},
        row{"batch that failed",
            batch(insert) + f::sync(),
            b::complete("SET") + b::ready() + b::parsed() + b::error("23505", "dup"),
            "08006",
            home_kind::postgres},
        row{"commit by batch",
            f::query("BEGIN") + f::query(insert) + batch("COMMIT"),
            opened + inserted + b::ready('T'),
            "08007"},
        row{"commit done, not yet ready",
            f::query("BEGIN") + f::query(insert) + f::query("COMMIT"),
            opened + inserted + b::ready('T') + b::complete("COMMIT"),
            "08007"},
        row{"commit by batch done, no sync",
            f::query("BEGIN") + f::query(insert) + batch("COMMIT"),
            opened + inserted + b::ready('T') + b::parsed() + b::bound() + b::complete("COMMIT"),
            "08007"},
        row{"copy",
            f::query("COPY t FROM STDIN") + f::bytes('d', "1"),
            b::bytes('G', std::string("\0\0\0", 3)),
            "08007"},
        row{"failed query", f::query(insert), b::error("23505", "dup"), "08006"},
        row{"second query of a pipeline", f::query("SELECT 1") + f::query(insert), "", "08007"},
        row{"function call", f::bytes('F', "x"), "", "08007"},
        row{"unknown text", f::query("frobnicate t"), "", "08007"});
    INFO(one.name);
    script s(one.kind);
    s.logged_in();
    s.client(one.client).home(one.home);
    s.to_client();
    s.link_lost();
    const auto told = s.to_client();
    REQUIRE(s.env().left == 1);
    REQUIRE(s.env().ended[0].unknown == (one.code == "08007"));
    if (s.client_closed) {  // several replies were owed
        REQUIRE(tags(told) == "E(" + one.code + ")");
        REQUIRE(first_error(told).severity == "FATAL");
        return;
    }
    // One reply was owed: the error stands in its place, and the session goes on.
    if (told.empty()) {
        s.client(f::query("SELECT 1"));
        REQUIRE(tags(s.to_client()) == "E(" + one.code + ")ZI");
    } else if (tags(told) == "E(" + one.code + ")") {  // a batch: the rest of it is discarded
        s.client(f::execute() + f::sync());
        REQUIRE(tags(s.to_client()) == "ZI");
    } else {
        REQUIRE(tags(told) == "E(" + one.code + ")ZI");
    }
    s.to_link();
    const auto links = s.opened.size();
    s.client(f::query("SELECT 2"));
    REQUIRE(s.opened.size() == links + 1);
    REQUIRE_FALSE(s.client_closed);
}

TEST_CASE("the sessions of a lost link that go on, and those that cannot") {
    const auto one_query = [] {
        script s(home_kind::engine);
        s.logged_in();
        s.client(f::query(insert));
        s.link_lost();
        return s.client_closed;
    };
    REQUIRE_FALSE(one_query());
    script pipeline(home_kind::engine);
    pipeline.logged_in();
    pipeline.client(f::query(insert) + f::query(insert));
    pipeline.link_lost();
    REQUIRE(pipeline.client_closed);
    script copying(home_kind::engine);
    copying.logged_in();
    copying.client(f::query("COPY t FROM STDIN"));
    copying.home(b::bytes('G', std::string("\0\0\0", 3)));
    copying.to_client();
    copying.link_lost();
    REQUIRE(tags(copying.to_client()) == "E(08007)ZI");
    copying.client(f::bytes('d', "late") + f::bytes('c', ""));
    REQUIRE(copying.to_client().empty());
    REQUIRE_FALSE(copying.client_closed);
}

TEST_CASE("a link lost while idle is no news: the next transaction opens another") {
    script s(home_kind::engine);
    s.logged_in();
    s.home(b::error("57P01", "terminating connection", "FATAL"));
    s.link_lost();
    REQUIRE(s.to_client().empty());
    s.client(f::query("SELECT 1"));
    REQUIRE(s.opened.size() == 2);
    s.link_open();
    s.to_link();
    s.greet();
    REQUIRE(s.to_link() == f::query("SELECT 1"));
}

TEST_CASE("a pinned session cannot survive its link") {
    script s;
    s.logged_in();
    s.client(f::query("LISTEN c"));
    s.home(b::complete("LISTEN") + b::ready());
    s.to_client();
    s.link_lost();
    REQUIRE(tags(s.to_client()) == "E(57P01)");
    REQUIRE(s.client_closed);
}

TEST_CASE("the home's own FATAL is passed untouched and nothing is added") {
    const auto farewell = b::error("57P01", "terminating connection", "FATAL");
    script s(home_kind::engine);
    s.logged_in();
    s.client(f::query(insert));
    s.home(farewell);
    s.link_lost();
    REQUIRE(s.to_client() == farewell);
    REQUIRE(s.client_closed);
    REQUIRE(s.env().left == 1);
}

TEST_CASE(
    "the engine's fenced and durability errors are unknown outcomes, conflicts are conflicts") {
    script s(home_kind::engine);
    s.logged_in();
    for (const std::string message : {"fenced by a newer writer", "durability unconfirmed"}) {
        s.client(f::query(insert));
        s.home(b::error("40001", message) + b::ready());
        const auto told = s.to_client();
        REQUIRE(tags(told) == "E(08007)ZI");
        REQUIRE(first_error(told).message == message);
        REQUIRE_FALSE(first_error(told).hint.empty());
        REQUIRE(s.env().ended.back().unknown);
        REQUIRE_FALSE(s.env().ended.back().conflict);
    }
    s.client(f::query(insert));
    const auto conflict = b::error("40001", "write conflict on t");
    s.home(conflict + b::ready());
    REQUIRE(s.to_client() == conflict + b::ready());
    REQUIRE(s.env().ended.back().conflict);

    script p;
    p.logged_in();
    p.client(f::query("BEGIN"));
    p.home(b::complete("SET") + b::ready() + b::complete("BEGIN") + b::ready('T'));
    p.client(f::query(insert));
    p.home(b::error("40P01", "deadlock detected") + b::ready('E'));
    p.client(f::query("ROLLBACK"));
    p.home(b::complete("ROLLBACK") + b::ready());
    REQUIRE(p.env().ended.back().conflict);
}

TEST_CASE("in the middle of a long row nothing can be said that would not be misread") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(f::query("SELECT n FROM t"));
    const auto row = b::row(std::string(100'000, 'y'));
    s.home(std::string_view(row).substr(0, 70'000));
    s.link_lost();
    REQUIRE(s.to_client() == row.substr(0, 70'000));
    REQUIRE(s.client_closed);
}

TEST_CASE("back-pressure: each side stops the other's reader, never both for ever") {
    bounds limits;
    limits.buffer_bytes = 10'000;
    script s(home_kind::engine, limits);
    s.logged_in();
    s.client(f::query("SELECT n FROM t"));
    s.machine->on_link_bytes(b::row(std::string(20'000, 'y')), s.now);
    REQUIRE_FALSE(s.machine->wants_link_bytes());
    REQUIRE(s.machine->wants_client_bytes());
    s.machine->on_client_bytes(f::query("SELECT '" + std::string(20'000, 'x') + "'"), s.now);
    REQUIRE_FALSE(s.machine->wants_client_bytes());
    s.act();
    REQUIRE(s.machine->wants_link_bytes());
    REQUIRE(s.machine->wants_client_bytes());
}

TEST_CASE("DDL is reported at commit, not when rolled back") {
    script s;
    s.logged_in();
    s.client(f::query("BEGIN"));
    s.home(b::complete("SET") + b::ready() + b::complete("BEGIN") + b::ready('T'));
    s.client(f::query("CREATE TABLE a (n int)"));
    s.home(b::complete("CREATE TABLE") + b::ready('T'));
    REQUIRE(s.env().ddl.empty());
    s.client(f::query("ROLLBACK"));
    s.home(b::complete("ROLLBACK") + b::ready());
    REQUIRE(s.env().ddl.empty());
    s.client(f::query("CREATE TABLE a (n int); CREATE TABLE b (n int)"));
    s.home(b::complete("CREATE TABLE") + b::complete("CREATE TABLE") + b::ready());
    REQUIRE(s.env().ddl ==
            std::vector<std::string>{"CREATE TABLE a (n int)", "CREATE TABLE b (n int)"});
}

TEST_CASE("parameters follow their transaction: savepoints, commit, rollback, RESET") {
    script s(home_kind::engine);
    s.logged_in();
    const auto run = [&](const std::string& sql, const std::string& tag, char status) {
        s.client(f::query(sql));
        s.home(b::complete(tag) + b::ready(status));
    };
    run("SET a.one = '1'", "SET", 'I');
    run("SET a.gone = '1'", "SET", 'I');
    run("BEGIN", "BEGIN", 'T');
    run("SET a.two = '2'", "SET", 'T');
    run("SAVEPOINT p", "SAVEPOINT", 'T');
    run("SET a.three = '3'", "SET", 'T');
    run("ROLLBACK TO p", "ROLLBACK", 'T');
    run("RESET a.gone", "RESET", 'T');
    run("COMMIT", "COMMIT", 'I');
    run("BEGIN", "BEGIN", 'T');
    run("SET a.four = '4'", "SET", 'T');
    run("ROLLBACK", "ROLLBACK", 'I');
    ++s.env().home.generation;
    s.client(f::query("SELECT 1"));
    s.link_open();
    s.to_link();
    s.greet();
    REQUIRE(s.to_link() == f::query("SET a.one = '1'") + f::query("SET a.two = '2'"));
}

TEST_CASE("statements are bounded, and DEALLOCATE forgets them") {
    bounds limits;
    limits.statements = 2;
    script s(home_kind::engine, limits);
    s.logged_in();
    for (const std::string name : {"a", "b"}) {
        s.client(f::parse(name, "SELECT 1") + f::sync());
        s.home(b::parsed() + b::ready());
    }
    s.client(f::query("DEALLOCATE a"));
    s.home(b::complete("DEALLOCATE") + b::ready());
    REQUIRE(s.machine->pinned() == pin::none);
    for (const std::string name : {"c", "d"}) {
        s.client(f::parse(name, "SELECT 1") + f::sync());
        s.home(b::parsed() + b::ready());
    }
    REQUIRE(s.machine->pinned() == pin::other);
    REQUIRE(s.env().limits == std::vector<std::string>{"statements_per_client"});
}

TEST_CASE("a Parse that failed is not remembered, a Close that was skipped is taken back") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(f::parse("a", "SELECT 1") + f::sync());
    s.home(b::parsed() + b::ready());
    s.client(f::parse("bad", "SELEC") + f::close("a") + f::sync());
    s.home(b::error("42601", "syntax") + b::ready());
    ++s.env().home.generation;
    s.client(f::bind("", "a") + f::execute() + f::sync());
    s.link_open();
    s.to_link();
    s.greet();
    REQUIRE(s.to_link() == f::parse("a", "SELECT 1") + f::sync());
}

TEST_CASE("what a home or a client makes a session remember is bounded") {
    script s(home_kind::engine);
    s.logged_in();
    // A hostile home describes every statement with very many parameters.
    for (int i = 0; i < 40 && s.machine->pinned() == pin::none; ++i) {
        const auto name = "s" + std::to_string(i);
        s.client(f::parse(name, "SELECT 1") + f::describe(name) + f::sync());
        s.home(b::parsed() + b::parameters(std::vector<std::uint32_t>(60'000, 20)) + b::no_data() +
               b::ready());
    }
    REQUIRE(s.machine->pinned() == pin::other);
    script t(home_kind::engine);
    t.logged_in();
    t.client(f::query("SET a.b = '" + std::string(100'000, 'x') + "'"));
    t.home(b::complete("SET") + b::ready());
    REQUIRE(t.machine->pinned() == pin::other);
}
