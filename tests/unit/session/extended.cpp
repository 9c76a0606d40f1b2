// The extended protocol, COPY, pipelines: the owed queue under everything that drivers do.
#include <catch2/catch.hpp>

#include "tests/unit/session/script.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

namespace {

const std::string batch =
    f::parse("", "SELECT 1") + f::bind("", "") + f::describe_portal() + f::execute() + f::sync();
const std::string batch_answer = b::parsed() + b::bound() + b::row_description({23}) + b::row("1") +
                                 b::complete("SELECT 1") + b::ready();

}  // namespace

TEST_CASE("a batch passes whole and is answered whole") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(batch);
    REQUIRE(s.to_link() == batch);
    s.home(batch_answer);
    REQUIRE(s.to_client() == batch_answer);
    REQUIRE(s.env().left == 1);
}

TEST_CASE("several Syncs and Queries in one write each get their ReadyForQuery") {
    script s(home_kind::engine);
    s.logged_in();
    const auto bytes = batch + f::query("SELECT 2") + f::sync() + batch;
    s.client(bytes);
    REQUIRE(s.to_link() == bytes);
    s.home(batch_answer);
    REQUIRE(s.machine->in_transaction());
    s.home(b::row_description({23}) + b::row("2") + b::complete("SELECT 1") + b::ready());
    s.home(b::ready());
    REQUIRE(s.machine->in_transaction());
    s.home(batch_answer);
    REQUIRE_FALSE(s.machine->in_transaction());
    REQUIRE(s.env().left == 1);
    REQUIRE(tags(s.to_client()) == "12TDCZITDCZIZI12TDCZI");
}

TEST_CASE("an error in a batch drops what is owed up to the Sync") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(batch + batch);
    s.home(b::error("42601", "no"));
    REQUIRE(tags(s.to_client()) == "E(42601)");
    s.home(b::ready() + batch_answer);
    REQUIRE(tags(s.to_client()) == "ZI12TDCZI");
    REQUIRE_FALSE(s.machine->in_transaction());
    REQUIRE(s.env().ended[0].errors == 1);
}

TEST_CASE("an error without a Sync is given at once, and the rest is skipped until it comes") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(f::parse("", "SELEC") + f::flush());
    s.home(b::error("42601", "no"));
    REQUIRE(tags(s.to_client()) == "E(42601)");
    s.client(f::bind("", "") + f::execute() + f::query("SELECT 1"));
    REQUIRE(s.machine->in_transaction());
    s.client(f::sync());
    s.home(b::ready());
    REQUIRE(tags(s.to_client()) == "ZI");
    REQUIRE_FALSE(s.machine->in_transaction());
}

TEST_CASE("flush without sync keeps the transaction open") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(f::parse("a", "SELECT 1") + f::describe("a") + f::flush());
    s.home(b::parsed() + b::parameters({}) + b::row_description({23}));
    REQUIRE(tags(s.to_client()) == "1tT");
    REQUIRE(s.machine->in_transaction());
    s.client(f::bind("", "a") + f::execute("", 1) + f::flush());
    s.home(b::bound() + b::row("1") + b::bytes('s'));
    REQUIRE(s.machine->in_transaction());
    s.client(f::execute() + f::sync());
    s.home(b::complete("SELECT 0") + b::ready());
    REQUIRE_FALSE(s.machine->in_transaction());
}

TEST_CASE("asynchronous messages may come at any time and answer nothing") {
    script s(home_kind::engine);
    s.logged_in();
    const auto notice = b::bytes('N', std::string("SNOTICE\0C00000\0Mhm\0\0", 20));
    const auto notification = b::bytes('A', std::string("\0\0\0\1ch\0x\0", 9));
    s.home(notice + notification + b::status("TimeZone", "UTC"));
    REQUIRE(tags(s.to_client()) == "NAS");
    s.client(batch);
    s.home(b::parsed() + notice + b::bound() + notification + b::row_description({23}));
    s.home(b::row("1") + b::complete("SELECT 1") + b::status("a", "b") + b::ready());
    REQUIRE(tags(s.to_client()) == "1N2ATDCSZI");
    REQUIRE(s.env().left == 1);
}

TEST_CASE("COPY FROM STDIN, simple and extended") {
    script e(home_kind::engine);
    e.logged_in();
    e.client(f::query("COPY t FROM STDIN"));
    e.home(b::bytes('G', std::string("\0\0\0", 3)));
    e.client(f::bytes('d', "1\n") + f::sync() + f::flush() + f::bytes('c'));
    e.home(b::complete("COPY 1") + b::ready());
    REQUIRE(tags(e.to_client()) == "GCZI");
    REQUIRE(e.env().left == 1);
    // libpq's way: the first Sync is read by the COPY and not answered.
    e.client(f::parse("", "COPY t FROM STDIN") + f::bind("", "") + f::describe_portal() +
             f::execute() + f::sync());
    e.home(b::parsed() + b::bound() + b::no_data() + b::bytes('G', std::string("\0\0\0", 3)));
    e.client(f::bytes('d', "1\n") + f::bytes('c') + f::sync());
    e.home(b::complete("COPY 1") + b::ready());
    REQUIRE(tags(e.to_client()) == "12nGCZI");
    REQUIRE(e.env().left == 2);
}

TEST_CASE("late bytes of a failed COPY are swallowed by the home and answered by nobody") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(f::query("COPY t FROM STDIN") + f::bytes('d', "x\n") + f::bytes('c') +
             f::query("SELECT 1"));
    s.home(b::error("42P01", "no table") + b::ready());
    s.home(b::row_description({23}) + b::row("1") + b::complete("SELECT 1") + b::ready());
    REQUIRE(tags(s.to_client()) == "E(42P01)ZITDCZI");
    REQUIRE(s.env().left == 1);
    s.client(f::bytes('d', "late") + f::bytes('c'));
    REQUIRE(s.env().entered == 1);
    // Extended: after the error everything up to Sync is skipped, copy data too.
    s.client(f::parse("", "COPY t FROM STDIN") + f::bind("", "") + f::execute() + f::sync());
    s.home(b::parsed() + b::bound() + b::bytes('G', std::string("\0\0\0", 3)));
    s.client(f::bytes('d', "bad"));
    s.home(b::error("22P02", "bad"));
    s.client(f::bytes('d', "more") + f::bytes('c') + f::sync());
    s.home(b::ready());
    REQUIRE(tags(s.to_client()) == "12GE(22P02)ZI");
    REQUIRE_FALSE(s.machine->in_transaction());
}

TEST_CASE("a statement sent while a COPY waits for data makes it fail and is not answered") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(f::query("COPY t FROM STDIN") + f::query("SELECT 1") + f::query("SELECT 2"));
    s.home(b::bytes('G', std::string("\0\0\0", 3)) + b::error("08P01", "unexpected") + b::ready());
    s.home(b::row_description({23}) + b::row("2") + b::complete("SELECT 1") + b::ready());
    REQUIRE(tags(s.to_client()) == "GE(08P01)ZITDCZI");
    REQUIRE_FALSE(s.machine->in_transaction());
}

TEST_CASE("FunctionCall: the engine's missing ReadyForQuery is made up for") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(f::bytes('F', std::string(10, '\0')));
    s.home(b::error("0A000", "no function calls"));
    REQUIRE(tags(s.to_client()) == "E(0A000)ZI");
    REQUIRE(s.env().left == 1);
    script p;
    p.logged_in();
    p.client(f::bytes('F', std::string(10, '\0')));
    p.home(b::complete("SET") + b::ready());  // hidden
    p.home(b::error("42883", "no function"));
    REQUIRE(p.machine->in_transaction());
    p.home(b::ready());
    REQUIRE(tags(p.to_client()) == "E(42883)ZI");
}

TEST_CASE("the empty query, and an unknown tag") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(f::query(""));
    s.home(b::bytes('I') + b::ready());
    REQUIRE(tags(s.to_client()) == "IZI");
    REQUIRE(s.env().left == 1);
    s.client(f::bytes('y', "?"));
    REQUIRE(tags(s.to_client()) == "E(08P01)");
    REQUIRE(s.client_closed);
    script t(home_kind::engine);
    t.logged_in();
    t.client(std::string("S\x7f\xff\xff\xff", 5));
    REQUIRE(tags(t.to_client()) == "E(08P01)");
    script u(home_kind::engine);
    u.logged_in();
    u.client(std::string("Q\0\0\0\x03", 5));
    REQUIRE(tags(u.to_client()) == "E(08P01)");
}

TEST_CASE("long messages stream in both directions and are never collected") {
    bounds limits;
    limits.parsed_message_bytes = 20'000;
    script s(home_kind::engine, limits);
    s.logged_in();
    const auto big = f::query("INSERT INTO t VALUES ('" + std::string(50'000, 'x') + "')");
    s.client(std::string_view(big).substr(0, 100));
    REQUIRE(s.to_link().size() == 100);
    s.client(std::string_view(big).substr(100));
    REQUIRE(s.to_link().size() == big.size() - 100);
    const auto row = b::row(std::string(100'000, 'y'));
    s.home(std::string_view(row).substr(0, 50));
    REQUIRE(s.to_client().size() == 50);
    s.home(std::string_view(row).substr(50));
    REQUIRE(s.to_client().size() == row.size() - 50);
    s.home(b::complete("INSERT 0 1") + b::ready());
    REQUIRE(s.env().left == 1);
    REQUIRE(s.env().ended[0].wrote);
    REQUIRE(s.env().limits == std::vector<std::string>{"parsed_message_bytes"});
    s.client(f::parse("big", "SELECT '" + std::string(50'000, 'x') + "'"));
    REQUIRE(s.machine->pinned() == pin::unreadable);
}

TEST_CASE("a reply that answers nothing ends the session before it reaches anybody") {
    const auto reply = GENERATE(b::parsed(), b::ready(), b::row("1"), b::bytes('W'), b::auth(0));
    script s(home_kind::engine);
    s.logged_in();
    s.home(reply);
    REQUIRE(tags(s.to_client()) == "E(08P01)");
    REQUIRE(s.client_closed);
    script t(home_kind::engine);
    t.logged_in();
    t.client(f::bind("", "a") + f::flush());
    t.home(b::complete("SELECT 1"));
    REQUIRE(tags(t.to_client()) == "E(08P01)");
    REQUIRE(t.env().left == 1);
}

TEST_CASE("an error without SQLSTATE gets XX000") {
    script s(home_kind::engine);
    s.logged_in();
    s.client(f::query("SELECT 1"));
    s.home(b::bytes('E', std::string("SERROR\0Moops\0\0", 14)) + b::ready());
    REQUIRE(tags(s.to_client()) == "E(XX000)ZI");
}
