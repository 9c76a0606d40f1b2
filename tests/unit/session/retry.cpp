// Lever 1: what is sent again, what never is, and what the client sees of it.
#include <catch2/catch.hpp>

#include "tests/unit/session/script.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

namespace {

const std::string update = f::query("UPDATE t SET n = n + 1 WHERE id = 1");
const std::string conflict = b::error("40001", "write conflict on t");
const std::string updated = b::complete("UPDATE 1") + b::ready();
const std::string batch = f::bind("", "a") + f::execute() + f::sync();

struct retrying : script {
    explicit retrying(home_kind kind = home_kind::engine) : script(kind) {
        env().rule = {.on = true,
                      .attempts = 3,
                      .time = milliseconds(1'000),
                      .pause_first = milliseconds(4),
                      .pause_max = milliseconds(10),
                      .bytes_max = 1'000};
        logged_in();
    }
    script& again() { return timer_fires(timer::retry); }
    void prepare(std::string_view sql = "UPDATE t SET n = n + 1 WHERE id = $1") {
        client(f::parse("a", sql) + f::sync());
        home(b::parsed() + b::ready());
        to_client();
        to_link();
    }
};

}  // namespace

TEST_CASE("a simple write that met a conflict is sent again, unseen by its client") {
    retrying s;
    s.client(update);
    s.to_link();
    s.home(conflict);
    s.home(b::ready());
    REQUIRE(s.to_client().empty());
    REQUIRE(s.to_link().empty());
    REQUIRE(s.timers.back().first == timer::retry);
    REQUIRE(s.timers.back().second <= milliseconds(10));
    s.again();
    REQUIRE(s.to_link() == update);
    s.home(updated);
    REQUIRE(s.to_client() == updated);
    REQUIRE(s.env().retries == std::vector{std::pair{retry_outcome::recovered, 1}});
    REQUIRE(s.env().left == 1);
    REQUIRE(s.env().ended[0].conflicts_retried == 1);
    REQUIRE_FALSE(s.env().ended[0].conflict);
}

TEST_CASE("a batch of one Execute is sent again from its Bind") {
    retrying s;
    s.prepare();
    s.client(f::parse("b", "SELECT 1") + batch);
    s.to_link();
    s.home(b::parsed() + b::bound() + conflict + b::ready());
    REQUIRE(tags(s.to_client()) == "1");
    s.again();
    REQUIRE(s.to_link() == batch);
    s.home(b::bound() + updated);
    REQUIRE(tags(s.to_client()) == "2CZI");
}

TEST_CASE("on PostgreSQL both of its codes are retried") {
    for (const std::string code : {"40001", "40P01"}) {
        retrying s(home_kind::postgres);
        s.client(update);
        s.home(b::complete("SET") + b::ready());  // the isolation level
        s.home(b::error(code, "could not serialize access") + b::ready());
        REQUIRE(s.to_client().empty());
        s.to_link();
        s.again();
        REQUIRE(s.to_link() == update);
    }
}

TEST_CASE("what is no write conflict is never sent again") {
    const auto error =
        GENERATE(values<std::string>({b::error("40001", "fenced by another writer"),
                                      b::error("40001", "durability unconfirmed"),
                                      b::error("42601", "UNIQUE constraint failed")}));
    retrying s;
    s.client(update);
    s.home(error + b::ready());
    REQUIRE(tags(s.to_client()).find("ZI") != std::string::npos);
    REQUIRE(s.env().retries.empty());
}

TEST_CASE("nothing inside a block, of several statements, of COPY or CALL is sent again") {
    SECTION("a block") {
        retrying s;
        s.client(f::query("BEGIN"));
        s.home(b::complete("BEGIN") + b::ready('T'));
        s.client(update);
        s.home(conflict + b::ready('E'));
        REQUIRE(tags(s.to_client()) == "CZTE(40001)ZE");
    }
    SECTION("texts") {
        const auto sql = GENERATE(values<std::string>({"UPDATE t SET n = 1; UPDATE t SET n = 2",
                                                       "CALL p()",
                                                       "DO $$ $$",
                                                       "CREATE TABLE x (a int)"}));
        retrying s;
        s.client(f::query(sql));
        s.home(conflict + b::ready());
        REQUIRE(tags(s.to_client()) == "E(40001)ZI");
    }
    SECTION("two Executes in a batch") {
        retrying s;
        s.prepare();
        s.client(f::bind("", "a") + f::execute() + f::bind("", "a") + f::execute() + f::sync());
        s.home(b::bound() + b::complete("UPDATE 1") + b::bound() + conflict + b::ready());
        REQUIRE(tags(s.to_client()) == "2C2E(40001)ZI");
    }
    SECTION("a row limit") {
        retrying s;
        s.prepare("UPDATE t SET n = 1 RETURNING n");
        s.client(f::bind("", "a") + f::execute("", 1) + f::sync());
        s.home(b::bound() + conflict + b::ready());
        REQUIRE(tags(s.to_client()) == "2E(40001)ZI");
    }
}

TEST_CASE("a Flush before the end gives the client what it waits for") {
    retrying s;
    s.prepare();
    s.client(f::bind("", "a") + f::describe_portal() + f::flush());
    s.home(b::bound() + b::no_data());
    REQUIRE(tags(s.to_client()) == "2n");
}

TEST_CASE("attempts and time are bounded, and the last conflict is the client's") {
    SECTION("attempts") {
        retrying s;
        s.client(update);
        for (int i = 0; i < 3; ++i) {
            s.home(conflict + b::ready());
            REQUIRE(s.to_client().empty());
            s.again();
        }
        s.home(conflict + b::ready());
        REQUIRE(tags(s.to_client()) == "E(40001)ZI");
        REQUIRE(s.env().retries == std::vector{std::pair{retry_outcome::exhausted, 3}});
    }
    SECTION("time") {
        retrying s;
        s.client(update);
        s.after(milliseconds(2'000)).home(conflict + b::ready());
        REQUIRE(tags(s.to_client()) == "E(40001)ZI");
    }
}

TEST_CASE("what is too long is not kept") {
    SECTION("a request") {
        retrying s;
        s.client(f::query("UPDATE t SET a = '" + std::string(2'000, 'x') + "' WHERE id = 1"));
        s.home(conflict + b::ready());
        REQUIRE(tags(s.to_client()) == "E(40001)ZI");
        REQUIRE(s.env().retries == std::vector{std::pair{retry_outcome::too_large, 0}});
    }
    SECTION("a reply: rows that were passed on") {
        retrying s;
        s.client(f::query("UPDATE t SET n = 1 RETURNING n"));
        std::string rows;
        for (int i = 0; i < 100; ++i)
            rows += b::row("0123456789");
        s.home(b::row_description({25}) + rows);
        REQUIRE_FALSE(s.to_client().empty());
        s.home(conflict + b::ready());
        REQUIRE(tags(s.to_client()) == "E(40001)ZI");
    }
}

TEST_CASE("rows of a try that failed are not seen") {
    retrying s;
    s.client(f::query("UPDATE t SET n = 1 RETURNING n"));
    s.home(b::row_description({25}) + b::row("lost") + conflict + b::ready());
    s.again();
    s.home(b::row_description({25}) + b::row("kept") + updated);
    const auto seen = s.to_client();
    REQUIRE(tags(seen) == "TDCZI");
    REQUIRE(seen.find("lost") == std::string::npos);
}

TEST_CASE("what the client sends behind it waits for its end") {
    retrying s;
    s.client(update + f::query("SELECT 1"));
    REQUIRE(s.to_link() == update);
    s.home(conflict + b::ready());
    s.again();
    REQUIRE(s.to_link() == update);
    s.home(updated);
    REQUIRE(s.to_link() == f::query("SELECT 1"));
}

TEST_CASE("during a pause") {
    retrying s;
    s.client(update);
    s.home(conflict + b::ready());
    s.to_link();
    REQUIRE(s.env().inside == 1);
    SECTION("a cancel ends it") {
        REQUIRE(s.machine->on_cancel_queued(s.now));
        s.act();
        REQUIRE(tags(s.to_client()) == "E(57014)ZI");
        REQUIRE(s.env().retries[0].first == retry_outcome::given_up);
        REQUIRE(s.env().inside == 0);
    }
    SECTION("a client that leaves is not served") {
        s.client_eof();
        REQUIRE(s.client_closed);
        REQUIRE(s.env().inside == 0);
    }
    SECTION("a lost link costs the client no more than the conflict") {
        s.link_lost();
        REQUIRE(tags(s.to_client()) == "E(40001)ZI");
        REQUIRE(s.env().inside == 0);
        s.client(f::query("SELECT 1"));
        REQUIRE(s.opened.size() == 2);
    }
    s.again();  // a timer that comes late
    REQUIRE(s.to_link().find("UPDATE") == std::string::npos);
}

TEST_CASE("a link lost during a later try leaves its outcome unknown") {
    retrying s;
    s.client(update);
    s.home(conflict + b::ready());
    s.again();
    s.link_lost();
    REQUIRE(tags(s.to_client()) == "E(08007)ZI");
}

TEST_CASE("off, nothing is kept back") {
    retrying s;
    s.env().rule.on = false;
    s.client(f::query("UPDATE t SET n = 1 RETURNING n"));
    s.home(b::row_description({25}));
    REQUIRE(tags(s.to_client()) == "T");
}
