// The first packets, and the login at the home.
#include <catch2/catch.hpp>

#include "router/session/scram.hpp"
#include "tests/unit/session/script.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

namespace {

std::string ssl_request() {
    std::string out;
    wire::append_ssl_request(out);
    return out;
}

std::string gssenc_request() {
    std::string out;
    wire::message_writer(out, 0).u32(80877104);
    return out;
}

}  // namespace

TEST_CASE(
    "SSLRequest and GSSENCRequest are answered N, and the startup packet may follow at once") {
    for (const std::size_t piece : {0U, 1U, 3U}) {
        script s;
        s.piece = piece;
        s.client(ssl_request() + gssenc_request() + f::startup());
        REQUIRE(s.to_client() == "NN");
        REQUIRE(s.opened.size() == 1);
    }
}

TEST_CASE("asking for TLS twice is no protocol") {
    script s;
    s.client(ssl_request() + ssl_request());
    REQUIRE(s.client_closed);
    REQUIRE(s.to_client() == "N");
}

TEST_CASE("junk closes the connection at once and is not answered") {
    const auto junk = GENERATE(std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
                               std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
                               std::string("\x7f\xff\xff\xff\x00\x03\x00\x00", 8),
                               std::string("\0\0\0\0", 4),
                               std::string("\0\0\0\x20\x12\x34\x56\x78", 8));
    script s;
    s.client(junk);
    REQUIRE(s.client_closed);
    REQUIRE(s.to_client().empty());
    REQUIRE(s.opened.empty());
}

TEST_CASE("a startup packet that is malformed gets one error") {
    script s;
    std::string packet;
    wire::message_writer(packet, 0).u32(3U << 16).bytes("user");
    s.client(packet);
    REQUIRE(tags(s.to_client()) == "E(08P01)");
    REQUIRE(s.client_closed);
}

TEST_CASE("protocol 2 is refused with words") {
    script s;
    std::string packet;
    wire::message_writer(packet, 0).u32(2U << 16).bytes("user");
    s.client(packet);
    REQUIRE(tags(s.to_client()) == "E(0A000)");
    REQUIRE(s.client_closed);
}

TEST_CASE("a newer minor version and unknown protocol options are negotiated down") {
    script s;
    s.client(f::startup({{"user", "ann"}, {"_pq_.wonder", "on"}}, 2));
    const auto told = s.to_client();
    std::string expected;
    const std::vector<std::string> unknown{"_pq_.wonder"};
    wire::append_negotiate(expected, 3U << 16, unknown);
    REQUIRE(told == expected);
    s.link_open();
    REQUIRE(s.to_link() == f::startup({{"user", "ann"}, {"database", "ann"}}));
}

TEST_CASE("the startup packet is judged before anything is opened") {
    struct row {
        std::vector<std::pair<std::string, std::string>> parameters;
        bool local;
        std::string sqlstate;
    };
    const auto one = GENERATE(row{{{"database", "shop"}}, true, "28000"},
                              row{{{"user", "a"}, {"replication", "true"}}, true, "0A000"},
                              row{{{"user", "a"}, {"replication", "database"}}, true, "0A000"},
                              row{{{"user", "a"}}, false, "28000"});
    script s(home_kind::postgres, {}, one.local);
    s.client(f::startup(one.parameters));
    REQUIRE(tags(s.to_client()) == "E(" + one.sqlstate + ")");
    REQUIRE(s.client_closed);
    REQUIRE(s.opened.empty());
}

TEST_CASE("replication=false is no replication") {
    script s;
    s.client(f::startup({{"user", "a"}, {"replication", "false"}}));
    s.link_open();
    REQUIRE(s.to_link() == f::startup({{"user", "a"}, {"database", "a"}}));
}

TEST_CASE("a client of no tool, and one of a tool that is not served, are told why") {
    script s;
    s.env().unresolved = refusal{"3D000", "no tool has this database", ""};
    s.client(f::startup());
    REQUIRE(tags(s.to_client()) == "E(3D000)");
    script t;
    t.env().home.served = false;
    t.env().home.reason = "its home is not confirmed";
    t.client(f::startup());
    const auto answer = t.to_client();
    REQUIRE(tags(answer) == "E(57P03)");
    REQUIRE(first_error(answer).message.find("not confirmed") != std::string::npos);
}

TEST_CASE("CancelRequest is handed on and the connection closed") {
    script s;
    std::string packet;
    wire::append_cancel_request(packet, 77, "abcd");
    s.client(ssl_request() + packet);
    REQUIRE(s.cancels.size() == 1);
    REQUIRE(s.cancels[0].process_id == 77);
    REQUIRE(s.cancels[0].secret == "abcd");
    REQUIRE(s.client_closed);
}

TEST_CASE("the link's startup packet carries the client's settings, user and database replaced") {
    script s;
    s.env().home.user = "role";
    s.env().home.database = "db";
    s.env().home.search_path = "app";
    s.client(f::startup({{"user", "ann"},
                         {"options", "-c statement_timeout=5"},
                         {"application_name", "x"},
                         {"made_up.setting", "1"}}));
    s.link_open();
    REQUIRE(s.to_link() == f::startup({{"user", "role"},
                                       {"database", "db"},
                                       {"options", "-c statement_timeout=5"},
                                       {"application_name", "x"},
                                       {"made_up.setting", "1"},
                                       {"search_path", "app"}}));
}

TEST_CASE("a login that the home refuses is passed on untouched, once") {
    script s;
    s.client(f::startup());
    s.link_open();
    const auto refusal = b::error("28P01", "password authentication failed", "FATAL");
    s.home(refusal);
    s.link_lost();
    REQUIRE(s.to_client() == refusal);
    REQUIRE(s.client_closed);
}

TEST_CASE("a home that is starting is asked again until the time is over") {
    script s;
    s.client(f::startup());
    s.link_open();
    s.home(b::error("57P03", "the database system is starting up", "FATAL"));
    s.link_lost();
    REQUIRE(s.to_client().empty());
    s.after(milliseconds(100)).timer_fires(timer::connect);
    REQUIRE(s.opened.size() == 2);
    s.link_open();
    s.greet();
    REQUIRE(tags(s.to_client()) == "RSKZI");
    REQUIRE_FALSE(s.client_closed);

    script t;
    t.client(f::startup());
    for (int i = 0; i < 200 && !t.client_closed; ++i) {
        t.link_open();
        t.home(b::error("57P03", "the database system is starting up", "FATAL"));
        if (!t.client_closed) t.after(milliseconds(100)).timer_fires(timer::connect);
    }
    REQUIRE(t.client_closed);
    REQUIRE(tags(t.to_client()) == "E(57P03)");
    REQUIRE(t.opened.size() < 60);
}

TEST_CASE("a home that cannot be reached is 08001") {
    script s;
    s.client(f::startup());
    s.link_failed();
    REQUIRE(tags(s.to_client()) == "E(08001)");
    REQUIRE(s.client_closed);
}

TEST_CASE("a password is never sent in clear or as MD5") {
    const auto kind = GENERATE(3U, 5U);
    script s;
    s.env().home.password = "secret";
    s.client(f::startup());
    s.link_open();
    s.to_link();
    s.home(b::auth(kind, kind == 5 ? "salt" : ""));
    REQUIRE(s.to_link().empty());
    REQUIRE(tags(s.to_client()) == "E(08001)");
    REQUIRE(s.client_closed);
}

// RFC 7677, section 3, with the user name that PostgreSQL ignores left out of the signed text.
TEST_CASE("SCRAM-SHA-256 follows the RFC and refuses a hostile server") {
    const std::string nonce = "rOprNGfwEbeRWgbNEkqO";
    const std::string challenge =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    scram_client client("pencil", nonce);
    REQUIRE(client.first_message() == "n,,n=,r=" + nonce);
    const auto answer = client.final_message(challenge);
    REQUIRE(answer);
    REQUIRE(answer->starts_with("c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p="));
    REQUIRE_FALSE(client.verify("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
    REQUIRE_FALSE(client.verify("e=other-error"));

    // RFC 4013: a soft hyphen is nothing, and the roman numeral nine is two letters.
    const auto proof = [&](const char* password) {
        scram_client one(password, nonce);
        return one.final_message(challenge).value();
    };
    CHECK(proof("pen\xc2\xad"
                "cil") == *answer);
    CHECK(proof("I\xc2\xadX") == proof("\xe2\x85\xa8"));
    CHECK(proof("\xff") != proof("\xfe"));  // no UTF-8: as it is
    CHECK(proof("a\x07") != proof("a"));    // prohibited: as it is

    const auto hostile = GENERATE(
        std::string("r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"),
        std::string("r=someone_else,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"),
        std::string("r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=100001"),
        std::string("r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0"),
        std::string("r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=99999999999999"),
        std::string("r=rOprNGfwEbeRWgbNEkqOx,s=,i=4096"),
        std::string("r=rOprNGfwEbeRWgbNEkqOx,s=!!!!,i=4096"),
        "r=rOprNGfwEbeRWgbNEkqO" + std::string(2'000, 'x') + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        std::string("m=ext,r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"),
        std::string(""));
    scram_client again("pencil", nonce);
    REQUIRE_FALSE(again.final_message(hostile));
}

TEST_CASE("a home that says yes without proving itself is not believed") {
    script s;
    s.env().home.password = "secret";
    s.client(f::startup());
    s.link_open();
    s.to_link();
    s.home(b::auth(10, std::string("SCRAM-SHA-256\0\0", 15)));
    REQUIRE(sent_tags(s.to_link()) == "p");
    s.home(b::auth(0));
    REQUIRE(tags(s.to_client()) == "E(08001)");
    REQUIRE(s.client_closed);
}

TEST_CASE("hostile bytes of a home during login end in one error") {
    const auto bytes = GENERATE(std::string("R\x7f\xff\xff\xff", 5),
                                std::string("Z\0\0\0\x05I", 6),
                                std::string("D\0\0\0\x04", 5),
                                std::string("R\0\0\0\x06\0\0", 7),
                                std::string("E\0\0\0\x06Sx", 7));
    script s;
    s.client(f::startup());
    s.link_open();
    s.home(bytes);
    const auto told = tags(s.to_client());
    REQUIRE((told == "E(08P01)" || told == "E(08001)"));
    REQUIRE(s.client_closed);
}

TEST_CASE("a client that vanishes while its link is opened leaves nothing behind") {
    script s;
    s.client(f::startup());
    s.client_eof();
    REQUIRE(s.client_closed);
    REQUIRE(s.links_closed == 1);
    s.link_open();
    REQUIRE(s.to_link().empty());
}

TEST_CASE("whoever says nothing is let go when the login timer is over") {
    script s;
    s.client("\0\0");
    s.timer_fires(timer::login);
    REQUIRE(s.client_closed);
    REQUIRE(s.to_client().empty());
}
