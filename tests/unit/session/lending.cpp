// Pooled by transaction: when a link is borrowed, what it is brought to, when it goes back.
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

link_memory fresh(std::uint32_t pid = 77) {
    link_memory made;
    made.kind = home_kind::postgres;
    made.generation = 1;
    made.begins_at = level::read_committed;
    made.key = {pid, "true"};
    made.status =
        std::make_shared<const pairs>(pairs{{"server_version", "15.0"}, {"TimeZone", "UTC"}});
    return made;
}

struct pooled : script {
    explicit pooled(const bounds& limits = {})
        : script(home_kind::postgres, limits, true, pooling::transaction) {
        env().facts.isolation = isolation_rule::read_committed;
        env().known_greeting = fresh().status;
        client(f::startup());
        to_client();
        env().free = &link;
    }
    link_memory link = fresh();
    link_memory other = fresh(78);

    // A transaction of one statement that succeeds.
    void done(std::string_view sql, std::string_view tag) {
        client(f::query(sql));
        if (sent_tags(to_link()) == "QQ") home(b::complete("SET") + b::ready());  // the level
        home(b::complete(tag) + b::ready());
        to_client();
    }
};

}  // namespace

TEST_CASE("the first client of an identity is greeted by what a link was told") {
    script s(home_kind::postgres, {}, true, pooling::transaction);
    auto link = fresh();
    s.client(f::startup());
    REQUIRE(s.to_client().empty());
    s.lend(link);
    REQUIRE(tags(s.to_client()) == "RSSKZI");
    REQUIRE(s.env().given_back == std::vector{link_fate::keep});
    REQUIRE(s.opened.empty());
}

TEST_CASE("a startup packet that comes byte by byte is not read twice") {
    script s(home_kind::postgres, {}, true, pooling::transaction);
    auto link = fresh();
    s.env().known_greeting = link.status;
    s.env().facts.isolation = isolation_rule::read_committed;
    s.env().free = &link;
    s.piece = 1;
    s.client(f::startup() + query);
    REQUIRE(tags(s.to_client()) == "RSSKZI");
    REQUIRE(s.to_link() == query);
}

TEST_CASE("whom the home refuses at the first login reads its words, once") {
    script s(home_kind::postgres, {}, true, pooling::transaction);
    s.client(f::startup());
    const auto words = b::error("28000", "role \"ann\" does not exist", "FATAL");
    s.machine->on_link_refused({"08001", "cannot log in", ""}, words, s.now);
    s.act();
    REQUIRE(s.to_client() == words);
    REQUIRE(s.client_closed);
}

TEST_CASE("a link is borrowed for a transaction and goes back when nothing is owed") {
    pooled s;
    s.client(query);
    REQUIRE(s.to_link() == query);
    REQUIRE(s.machine->cancel_target().process_id == 77);
    s.home(answer.substr(0, answer.size() - 1));
    REQUIRE(s.env().given_back.empty());
    s.home(answer.substr(answer.size() - 1));
    REQUIRE(s.env().given_back == std::vector{link_fate::keep});
    REQUIRE(tags(s.to_client()) == "TDCZI");
    REQUIRE(s.machine->cancel_target().secret.empty());
    REQUIRE(s.env().inside == 0);
}

TEST_CASE("inside a block it stays, also after an error") {
    pooled s;
    s.client(f::query("BEGIN"));
    s.home(b::complete("BEGIN") + b::ready('T'));
    s.client(f::query("SELECT 1/0"));
    s.home(b::error("22012", "division by zero") + b::ready('E'));
    REQUIRE(s.env().given_back.empty());
    s.client(f::query("ROLLBACK"));
    s.home(b::complete("ROLLBACK") + b::ready());
    REQUIRE(s.env().given_back == std::vector{link_fate::keep});
}

TEST_CASE("who finds no link waits outside the gate, and is not sent when gone") {
    pooled s;
    s.env().free = nullptr;
    s.client(query);
    REQUIRE(s.env().entered == 0);
    SECTION("a link comes") {
        s.lend(s.link);
        REQUIRE(s.to_link() == query);
        REQUIRE(s.env().inside == 1);
    }
    SECTION("the client goes") {
        s.client_eof();
        REQUIRE(s.client_closed);
        REQUIRE(s.env().waits_stopped == 1);
    }
    SECTION("none comes in time") {
        s.machine->on_link_refused({"57P03", "no link", ""}, "", s.now);
        s.act();
        REQUIRE(tags(s.to_client()) == "E(57P03)ZI");
        s.env().free = &s.link;
        s.client(query);
        REQUIRE(s.to_link() == query);
    }
    SECTION("a cancel ends the wait") {
        REQUIRE(s.machine->on_cancel_queued(s.now));
        s.act();
        REQUIRE(tags(s.to_client()) == "E(57014)ZI");
        REQUIRE(s.env().waits_stopped == 1);
    }
    SECTION("it takes long: the client is told, and goes on waiting") {
        s.machine->on_link_wait(b::bytes('N', "x"), s.now);
        s.act();
        REQUIRE(tags(s.to_client()) == "N");
        s.lend(s.link);
        REQUIRE(s.to_link() == query);
    }
}

TEST_CASE("a hold is waited for without a link") {
    pooled s;
    s.env().gate_open = false;
    s.env().next = admission::held;
    s.client(query);
    REQUIRE(s.env().free == &s.link);
    SECTION("released") {
        s.env().gate_open = true;
        s.env().next = admission::inside;
        s.released();
        REQUIRE(s.to_link() == query);
        s.home(answer);
        REQUIRE(s.env().inside == 0);
    }
    SECTION("cancelled") {
        REQUIRE(s.machine->on_cancel_queued(s.now));
        s.act();
        REQUIRE(tags(s.to_client()) == "E(57014)ZI");
        REQUIRE(s.env().waits_cancelled == 1);
    }
}

TEST_CASE("a hold that begins while a link is waited for takes it back") {
    pooled s;
    s.env().free = nullptr;
    s.client(query);
    s.env().next = admission::held;
    s.lend(s.link);
    REQUIRE(s.env().given_back == std::vector{link_fate::keep});
    REQUIRE(s.to_link().empty());
}

TEST_CASE("a link of an old route is closed and another one is borrowed") {
    pooled s;
    ++s.env().home.generation;
    s.other.generation = 2;
    s.client(query);
    REQUIRE(s.env().given_back == std::vector{link_fate::farewell});
    s.lend(s.other);
    REQUIRE(s.to_link() == query);
    s.home(answer);
    REQUIRE(s.env().given_back.back() == link_fate::keep);
}

TEST_CASE("a client that vanishes in a transaction takes its link with it") {
    pooled s;
    s.client(f::query("BEGIN"));
    s.home(b::complete("BEGIN") + b::ready('T'));
    s.client_eof();
    REQUIRE(s.env().given_back == std::vector{link_fate::close});
}

TEST_CASE("a link stays with its user until a cancel is finished") {
    pooled s;
    s.client(query);
    s.machine->on_cancel_started();
    s.home(answer);
    REQUIRE(s.env().given_back.empty());
    s.client(query);
    s.machine->on_cancel_finished(s.now);
    s.act();
    REQUIRE(s.env().given_back == std::vector{link_fate::keep});
}

TEST_CASE("what the client has set is set on its next link, and undone for others") {
    pooled s;
    s.done("SET TimeZone = 'PST8PDT'", "SET");
    REQUIRE(s.link.parameters);
    s.env().free = &s.other;
    s.client(query);
    REQUIRE(s.to_link() == f::query("SET TimeZone = 'PST8PDT'"));
    s.home(b::status("TimeZone", "PST8PDT") + b::complete("SET") + b::ready());
    REQUIRE(s.to_link() == query);
    s.home(answer);
    // The home told of it in reply to the first SET already, had it been a real one.
    REQUIRE(tags(s.to_client()) == "STDCZI");

    pooled next;
    next.env().free = &s.other;
    next.client(query);
    REQUIRE(next.to_link() == f::query("RESET \"timezone\""));
    next.home(b::status("TimeZone", "UTC") + b::complete("RESET") + b::ready());
    REQUIRE(next.to_link() == query);
    next.home(answer);
    REQUIRE(tags(next.to_client()) == "TDCZI");
    REQUIRE_FALSE(s.other.parameters);
}

TEST_CASE("a setting that is rolled back is not carried along") {
    pooled s;
    s.client(f::query("BEGIN") + f::query("SET a.b = 1") + f::query("ROLLBACK"));
    s.home(b::complete("BEGIN") + b::ready('T') + b::complete("SET") + b::ready('T') +
           b::complete("ROLLBACK") + b::ready());
    REQUIRE_FALSE(s.link.parameters);
}

TEST_CASE("what cannot follow keeps the link, and is counted once by its reason") {
    struct row {
        std::string sql, tag;
        pin reason;
    };
    const auto one = GENERATE(values<row>({
        {"LISTEN a", "LISTEN", pin::listen},
        {"CREATE TEMP TABLE a (b int)", "CREATE TABLE", pin::temporary_object},
        {"SELECT pg_advisory_lock(1)", "SELECT 1", pin::advisory_lock},
        {"DECLARE a CURSOR WITH HOLD FOR SELECT 1", "DECLARE CURSOR", pin::holdable_cursor},
        {"PREPARE a AS SELECT 1", "PREPARE", pin::sql_prepare},
        {"SET ROLE ann", "SET", pin::role},
        {"SELECT setseed(0.5)", "SELECT 1", pin::session_function},
        {"DO $$BEGIN CREATE TEMP TABLE a (b int); END$$", "DO", pin::other},
    }));
    CAPTURE(one.sql);
    pooled s;
    s.done(one.sql, one.tag);
    REQUIRE(s.machine->pinned() == one.reason);
    REQUIRE(s.env().given_back.empty());
    s.done("SELECT 1", "SELECT 1");
    REQUIRE(s.env().pins == std::vector{one.reason});
    s.done("DISCARD ALL", "DISCARD ALL");
    REQUIRE(s.env().given_back == std::vector{link_fate::keep});
    REQUIRE(s.env().pins.back() == pin::none);
}

TEST_CASE("with standard_conforming_strings off nothing is understood, so the link is kept") {
    pooled s;
    s.client(f::query("SET standard_conforming_strings = off"));
    s.home(b::status("standard_conforming_strings", "off") + b::complete("SET") + b::ready());
    REQUIRE(s.machine->pinned() == pin::string_syntax);
    s.client(f::query("SELECT '\\'; LISTEN a; --'"));
    s.home(b::complete("SELECT 1") + b::ready());
    REQUIRE(s.env().given_back.empty());
}

TEST_CASE("a borrowed link that breaks before it is of use is replaced, a few times") {
    pooled s;
    s.done("SET a.b = 1", "SET");
    s.env().free = &s.other;
    s.client(query);
    s.env().free = &s.link;
    s.link.parameters.reset();
    s.link_lost();
    s.env().free = &s.other;
    s.other.parameters.reset();
    s.link_lost();
    REQUIRE(s.to_client().empty());
    s.link_lost();
    REQUIRE(tags(s.to_client()) == "E(08001)ZI");
    s.env().free = &s.link;
    s.link.parameters.reset();
    s.client(query);
    REQUIRE(sent_tags(s.to_link()).ends_with("Q"));
}

TEST_CASE("a borrowed link that breaks in a transaction is told as ever") {
    pooled s;
    s.client(f::query("UPDATE t SET n = 1"));
    s.link_lost();
    REQUIRE(tags(s.to_client()) == "E(08007)ZI");
    s.env().free = &s.other;
    s.client(query);
    s.home(answer);
    REQUIRE(tags(s.to_client()) == "TDCZI");
}
