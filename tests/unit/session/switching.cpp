// Hold, refusal, relink and replay: what happens between transactions and what the client sees.
#include <catch2/catch.hpp>

#include "tests/unit/session/script.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

namespace {

const std::string query = f::query("SELECT 1");
const std::string answer =
    b::row_description({23}) + b::row("1") + b::complete("SELECT 1") + b::ready();

// The engine's statement a is prepared, described as one int8, and used.
void prepare(script& s) {
    s.client(f::parse("a", "SELECT sum(n) FROM t WHERE k = $1") + f::describe("a") + f::sync());
    s.home(b::parsed() + b::parameters({20}) + b::row_description({20}) + b::ready());
    s.to_client();
    s.to_link();
}

void switch_home(script& s, home_kind to = home_kind::postgres) {
    s.env().home.kind = to;
    ++s.env().home.generation;
}

}  // namespace

TEST_CASE("a held transaction waits unread and goes on when released") {
    script s(home_kind::engine);
    s.logged_in();
    s.env().next = admission::held;
    s.client(query);
    REQUIRE(s.to_link().empty());
    REQUIRE(s.timers.back() == std::pair{timer::hold, milliseconds(5'000)});
    REQUIRE(s.machine->wants_client_bytes());
    s.client(query);
    s.released();
    REQUIRE(s.to_link() == query + query);
    s.home(answer + answer);
    REQUIRE(tags(s.to_client()) == "TDCZITDCZI");
    REQUIRE(s.env().inside == 0);
}

TEST_CASE("a held session whose link went meanwhile opens another when released") {
    const bool switched = GENERATE(true, false);
    script s(home_kind::engine);
    s.logged_in();
    s.env().next = admission::held;
    s.client(query);
    if (switched) {
        switch_home(s);
        s.machine->on_route_changed(s.now);
        s.act();
        REQUIRE(s.links_closed == 1);
    } else {
        s.link_lost();
    }
    s.released();
    REQUIRE(s.opened.size() == 2);
    s.link_open();
    s.to_link();
    s.greet();
    REQUIRE(s.to_link() == query);
}

TEST_CASE("a held client is read up to the bound only") {
    bounds limits;
    limits.buffer_bytes = 1'000;
    script s(home_kind::engine, limits);
    s.logged_in();
    s.env().next = admission::held;
    s.client(query);
    s.client(std::string(2'000, 'Q'));
    REQUIRE_FALSE(s.machine->wants_client_bytes());
}

TEST_CASE("a hold that lasts too long is 57P03 and the session goes on") {
    const bool by_timer = GENERATE(true, false);
    script s(home_kind::engine);
    s.logged_in();
    s.env().next = admission::held;
    s.client(query);
    if (by_timer)
        s.timer_fires(timer::hold);
    else
        s.machine->on_hold_failed("the move failed", s.now);
    s.act();
    REQUIRE(s.env().waits_cancelled == (by_timer ? 1 : 0));
    const auto told = s.to_client();
    REQUIRE(tags(told) == "E(57P03)ZI");
    REQUIRE_FALSE(first_error(told).hint.empty());
    s.env().next = admission::inside;
    s.client(query);
    s.home(answer);
    REQUIRE(tags(s.to_client()) == "TDCZI");
}

TEST_CASE("a refused batch is answered once and discarded up to its Sync") {
    for (const std::size_t piece : {0U, 1U}) {
        script s(home_kind::engine);
        s.logged_in();
        s.piece = piece;
        s.env().next = admission::refused;
        s.client(f::parse("", "SELECT 1") + f::bind("", "") + f::execute());
        REQUIRE(tags(s.to_client()) == "E(57P03)");
        s.client(query + f::flush() + f::sync());
        REQUIRE(tags(s.to_client()) == "ZI");
        s.env().next = admission::inside;
        s.client(query);
        s.home(answer);
        REQUIRE(tags(s.to_client()) == "TDCZI");
        REQUIRE(s.env().left == 1);
    }
}

TEST_CASE("a route that is not served refuses with its reason and leaves the gate") {
    script s(home_kind::engine);
    s.logged_in();
    s.env().home.served = false;
    s.env().home.reason = "unconfirmed";
    s.client(query);
    REQUIRE(tags(s.to_client()) == "E(57P03)ZI");
    REQUIRE(s.env().inside == 0);
    REQUIRE(s.env().left == 1);
}

TEST_CASE("a client that vanishes while held is forgotten and its message never sent") {
    script s(home_kind::engine);
    s.logged_in();
    s.env().next = admission::held;
    s.client(f::query("INSERT INTO t VALUES (1)"));
    s.client_eof();
    REQUIRE(s.env().waits_cancelled == 1);
    REQUIRE(s.client_closed);
    REQUIRE(s.to_link().find("INSERT") == std::string::npos);
}

TEST_CASE("a client that half-closes still gets every answer") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(query + query);
    s.client_eof();
    REQUIRE_FALSE(s.client_closed);
    s.home(answer);
    REQUIRE_FALSE(s.client_closed);
    s.home(answer);
    REQUIRE(tags(s.to_client()) == "TDCZITDCZI");
    REQUIRE(s.client_closed);
    REQUIRE(s.env().left == 1);
}

TEST_CASE("Terminate behind a query waits for its answer") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(f::query("INSERT INTO t VALUES (1)") + f::bytes('X'));
    REQUIRE_FALSE(s.client_closed);
    s.home(b::complete("INSERT 0 1") + b::ready());
    REQUIRE(s.client_closed);
    REQUIRE(tags(s.to_client()) == "CZI");
}

TEST_CASE("the next transaction follows the route, its state replayed and hidden") {
    script s(home_kind::engine);
    s.logged_in();
    prepare(s);
    s.client(f::query("SET TimeZone = 'UTC'"));
    s.home(b::complete("SET") + b::ready());
    s.client(f::query("SET LOCAL statement_timeout = 1"));
    s.home(b::complete("SET") + b::ready());
    s.to_client();
    s.to_link();
    switch_home(s);
    s.client(f::bind("", "a") + f::execute() + f::sync());
    REQUIRE(s.opened == std::vector<std::uint64_t>{1, 2});
    REQUIRE(s.machine->in_transaction());
    s.link_open();
    REQUIRE(s.to_link() == f::startup());
    s.home(b::auth(0) + b::status("server_version", "16.1") + b::key(99, "other") + b::ready());
    REQUIRE(s.to_link() == f::query("SET TimeZone = 'UTC'") +
                               f::parse("a", "SELECT sum(n) FROM t WHERE k = $1", {20}) +
                               f::describe("a") + f::sync());
    REQUIRE(s.to_client().empty());
    s.home(b::complete("SET") + b::ready() + b::parsed() + b::parameters({20}) +
           b::row_description({20}) + b::ready());
    REQUIRE(s.to_client() == b::status("server_version", "16.1"));
    REQUIRE(s.to_link() == f::bind("", "a") + f::execute() + f::sync());
    s.home(b::bound() + b::row("5") + b::complete("SELECT 1") + b::ready());
    REQUIRE(tags(s.to_client()) == "2DCZI");
    REQUIRE(s.env().inside == 0);
    REQUIRE(s.env().left == 4);
}

TEST_CASE("another result type is refused at each Bind until the client prepares again") {
    script s(home_kind::engine);
    s.logged_in();
    prepare(s);
    switch_home(s);
    s.client(f::bind("", "a") + f::execute() + f::sync());
    s.link_open();
    s.to_link();
    s.greet();
    s.to_link();
    s.home(b::parsed() + b::parameters({20}) + b::row_description({1700}) + b::ready());
    for (int i = 0; i < 2; ++i) {
        if (i == 1) s.client(f::bind("", "a") + f::execute() + f::sync());
        REQUIRE(sent_tags(s.to_link()) == "BES");
        s.home(b::error("26000", "prepared statement does not exist") + b::ready());
        const auto told = s.to_client();
        REQUIRE(tags(told) == "E(0A000)ZI");
        REQUIRE(first_error(told).message == "cached plan must not change result type");
    }
    s.client(f::describe("a") + f::sync());
    s.home(b::error("26000", "prepared statement does not exist") + b::ready());
    REQUIRE(tags(s.to_client()) == "E(0A000)ZI");
    s.client(f::close("a") + f::parse("a", "SELECT sum(n) FROM t WHERE k = $1") + f::bind("", "a") +
             f::execute() + f::sync());
    s.to_link();
    s.home(b::closed() + b::parsed() + b::bound() + b::row("5") + b::complete("SELECT 1") +
           b::ready());
    REQUIRE(tags(s.to_client()) == "312DCZI");
}

TEST_CASE("a statement that the new home refuses gives the home's error at Bind") {
    script s(home_kind::engine);
    s.logged_in();
    prepare(s);
    switch_home(s);
    s.client(f::bind("", "a") + f::execute() + f::sync());
    s.link_open();
    s.greet();
    s.home(b::error("42883", "no such function") + b::ready());
    s.to_link();
    s.home(b::error("26000", "does not exist") + b::ready());
    const auto told = s.to_client();
    REQUIRE(tags(told) == "E(42883)ZI");
    REQUIRE(s.env().inside == 0);
}

TEST_CASE("a new home that cannot be reached refuses the transaction, not the session") {
    script s(home_kind::engine);
    s.logged_in();
    switch_home(s, home_kind::engine);
    s.client(query);
    s.link_failed();
    REQUIRE(tags(s.to_client()) == "E(08001)ZI");
    REQUIRE(s.env().inside == 0);
    REQUIRE_FALSE(s.client_closed);
    s.client(query);
    s.link_open();
    s.greet();
    s.to_link();
    s.home(answer);
    REQUIRE(tags(s.to_client()) == "TDCZI");
}

TEST_CASE("a client that vanishes while its new link is opened is not served there") {
    script s(home_kind::engine);
    s.logged_in();
    switch_home(s, home_kind::engine);
    s.client(f::query("INSERT INTO t VALUES (1)"));
    s.client_eof();
    REQUIRE(s.client_closed);
    REQUIRE(s.env().inside == 0);
    s.link_open();
    REQUIRE(s.to_link().empty());
}

TEST_CASE("a cancel in flight keeps the next transaction from beginning") {
    script s(home_kind::engine);
    s.logged_in();
    REQUIRE(s.machine->cancel_target().secret.empty());
    s.client(query);
    REQUIRE(s.machine->cancel_target().process_id == 77);
    REQUIRE(s.machine->cancel_target().secret == "true");
    s.machine->on_cancel_started();
    s.home(answer);
    s.to_link();
    s.client(query);
    REQUIRE(s.to_link().empty());
    s.machine->on_cancel_finished(s.now);
    s.act();
    REQUIRE(s.to_link() == query);
}

TEST_CASE("pins: who cannot follow is told why, at once when idle") {
    struct row {
        std::string sql, tag;
        pin reason;
    };
    const auto one =
        GENERATE(row{"LISTEN c", "LISTEN", pin::listen},
                 row{"CREATE TEMP TABLE x (n int)", "CREATE TABLE", pin::temporary_object},
                 row{"SELECT pg_advisory_lock(1)", "SELECT 1", pin::advisory_lock},
                 row{"PREPARE p AS SELECT 1", "PREPARE", pin::sql_prepare},
                 row{"SET ROLE joe", "SET", pin::role});
    script s;
    s.logged_in();
    s.client(f::query(one.sql));
    const auto sent = sent_tags(s.to_link());
    if (sent == "QQ") s.home(b::complete("SET") + b::ready());
    REQUIRE(s.machine->pinned() == pin::none);
    s.home(b::complete(one.tag) + b::ready());
    REQUIRE(s.machine->pinned() == one.reason);
    s.to_client();
    ++s.env().home.generation;
    s.machine->on_route_changed(s.now);
    s.act();
    const auto told = s.to_client();
    REQUIRE(tags(told) == "E(57P01)");
    REQUIRE(first_error(told).severity == "FATAL");
    REQUIRE(first_error(told).message.find(std::string(to_string(one.reason))) !=
            std::string::npos);
    REQUIRE(s.client_closed);
}

TEST_CASE("what is rolled back pins nobody, DISCARD ALL unpins, the engine's no-ops never do") {
    script s;
    s.logged_in();
    s.client(f::query("BEGIN"));
    s.home(b::complete("SET") + b::ready() + b::complete("BEGIN") + b::ready('T'));
    s.client(f::query("LISTEN c"));
    s.home(b::complete("LISTEN") + b::ready('T'));
    REQUIRE(s.machine->pinned() == pin::listen);
    s.client(f::query("ROLLBACK"));
    s.home(b::complete("ROLLBACK") + b::ready());
    REQUIRE(s.machine->pinned() == pin::none);
    s.client(f::query("LISTEN c"));
    s.home(b::complete("LISTEN") + b::ready());
    REQUIRE(s.machine->pinned() == pin::listen);
    s.client(f::query("DISCARD ALL"));
    s.home(b::complete("DISCARD ALL") + b::ready());
    REQUIRE(s.machine->pinned() == pin::none);
    script e(home_kind::engine);
    e.logged_in();
    e.client(f::query("LISTEN c"));
    e.home(b::complete("LISTEN") + b::ready());
    REQUIRE(e.machine->pinned() == pin::none);
}

TEST_CASE("shutdown waits for the transaction") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(query);
    s.machine->on_shutdown(s.now);
    s.act();
    REQUIRE_FALSE(s.client_closed);
    s.home(answer);
    REQUIRE(tags(s.to_client()) == "TDCZIE(57P01)");
    REQUIRE(s.client_closed);
}
