// What a function leaves on a shared link: the home is asked before anybody else is lent it.
#include <catch2/catch.hpp>

#include "tests/unit/session/script.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

namespace {

struct pooled : script {
    pooled() : script(home_kind::postgres, {}, true, pooling::transaction) {
        link.kind = home_kind::postgres;
        link.generation = 1;
        link.begins_at = level::read_committed;
        link.status = std::make_shared<const pairs>(pairs{{"server_version", "15.0"}});
        env().facts.isolation = isolation_rule::read_committed;
        env().known_greeting = link.status;
        client(f::startup());
        to_client();
        env().free = &link;
    }
    link_memory link;
    const std::string done = b::complete("SELECT 1") + b::ready();

    void call(std::string_view function) {
        client(f::query("SELECT " + std::string(function) + "()"));
        to_link();
        home(done);
    }
    void found(std::string_view name) {
        home(b::row_description({25}) + (name.empty() ? "" : b::row(name)) + done);
    }
};

}  // namespace

TEST_CASE("a link that nothing was left on goes on to the next") {
    pooled s;
    s.call("clean_one");
    REQUIRE(s.env().given_back.empty());
    REQUIRE(tags(s.to_client()) == "CZI");  // the client does not wait for it
    REQUIRE(s.to_link().find("pg_settings") != std::string::npos);
    REQUIRE(s.machine->cancel_target().secret.empty());
    s.found("");
    REQUIRE(s.env().given_back == std::vector{link_fate::keep});
    REQUIRE(s.to_client().empty());
    REQUIRE(s.machine->pinned() == pin::none);
}

TEST_CASE("what was left pins the session, and whoever calls that later") {
    pooled s;
    s.call("leaves_one");
    s.found("work_mem");
    REQUIRE(s.env().given_back.empty());
    REQUIRE(s.env().pins == std::vector{pin::session_function});
    pooled next;
    next.call("leaves_one");
    REQUIRE(next.to_link().empty());  // no need to ask
    REQUIRE(next.machine->pinned() == pin::session_function);
    REQUIRE(next.env().given_back.empty());
}

TEST_CASE("what the client itself has set is no news") {
    pooled s;
    s.client(f::query("SET work_mem = '1MB'"));
    s.home(b::complete("SET") + b::ready());
    s.env().free = &s.link;
    s.call("clean_two");
    s.found("work_mem");
    REQUIRE(s.machine->pinned() == pin::none);
}

TEST_CASE("a clean statement is asked about ever more rarely, a plain read never") {
    pooled s;
    int asked = 0;
    for (int i = 0; i < 300; ++i) {
        s.env().free = &s.link;
        s.call("clean_three");
        const bool asks = !s.to_link().empty();
        asked += asks ? 1 : 0;
        if (asks) s.found("");
    }
    REQUIRE(asked == 5);
    s.env().free = &s.link;
    s.client(f::query("SELECT n FROM t WHERE id = 1"));
    s.to_link();
    s.home(s.done);
    REQUIRE(s.to_link().empty());
}

TEST_CASE("the next transaction waits for the answer") {
    pooled s;
    s.call("clean_four");
    s.to_link();
    s.client(f::query("SELECT 2"));
    REQUIRE(s.to_link().empty());
    s.found("");
    REQUIRE(s.to_link() == f::query("SELECT 2"));
    s.home(s.done);
    REQUIRE(s.env().given_back == std::vector{link_fate::keep});
    REQUIRE(s.env().inside == 0);
}

TEST_CASE("a home that does not answer, refuses or goes") {
    pooled s;
    s.call("clean_five");
    SECTION("refuses: better keep the link") {
        s.home(b::error("57014", "statement timeout") + b::ready());
        REQUIRE(s.machine->pinned() == pin::session_function);
        REQUIRE(s.env().given_back.empty());
    }
    SECTION("goes: nobody need know") {
        s.to_client();
        s.link_lost();
        REQUIRE(s.to_client().empty());
        REQUIRE(s.env().given_back == std::vector{link_fate::close});
    }
    SECTION("and the client leaves meanwhile") {
        s.client(f::bytes('X'));
        s.found("");
        REQUIRE(s.client_closed);
        REQUIRE(s.env().given_back == std::vector{link_fate::keep});
    }
}

TEST_CASE("a sequence is read over the link that used it, or not at all") {
    pooled s;
    s.client(f::query("SELECT lastval()"));
    REQUIRE(tags(s.to_client()) == "E(55000)ZI");
    REQUIRE(s.to_link().empty());
    REQUIRE(s.env().sequences);
    REQUIRE(s.env().given_back == std::vector{link_fate::keep});
    // From now on whoever uses one keeps its link.
    s.env().free = &s.link;
    s.client(f::query("INSERT INTO numbered_rows DEFAULT VALUES"));
    s.home(b::complete("INSERT 0 1") + b::ready());
    REQUIRE(s.machine->pinned() == pin::session_function);
    s.to_link();
    s.client(f::query("SELECT lastval()"));
    REQUIRE(s.to_link() == f::query("SELECT lastval()"));
}

TEST_CASE("inside the transaction that used it a sequence is read without a pin") {
    pooled s;
    s.client(f::query("BEGIN"));
    s.home(b::complete("BEGIN") + b::ready('T'));
    s.client(f::query("INSERT INTO other_rows DEFAULT VALUES"));
    s.home(b::complete("INSERT 0 1") + b::ready('T'));
    s.client(f::query("SELECT currval('a')"));
    s.home(b::complete("SELECT 1") + b::ready('T'));
    s.client(f::query("COMMIT"));
    s.home(b::complete("COMMIT") + b::ready());
    REQUIRE(s.machine->pinned() == pin::none);
}

TEST_CASE("news of a setting reach the client when they come with a hidden reply") {
    script s;
    s.logged_in();
    s.client(f::query("BEGIN"));
    REQUIRE(sent_tags(s.to_link()) == "QQ");  // the isolation level first
    s.home(b::complete("SET") + b::status("IntervalStyle", "iso_8601") + b::ready());
    REQUIRE(tags(s.to_client()) == "S");
    s.home(b::complete("BEGIN") + b::ready('T'));
    REQUIRE(tags(s.to_client()) == "CZT");
}
