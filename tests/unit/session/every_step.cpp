// Whole conversations, cut at every byte: split in two anywhere, the answers are the same; broken
// off anywhere, there is one clear error or none, and the gate is left as often as entered.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/session/model_home.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

namespace {

const std::string conversation = f::startup() + f::query("SELECT 'a'") + f::query("BEGIN") +
                                 f::query("INSERT INTO t VALUES (1)") + f::query("COMMIT") +
                                 f::parse("s", "SELECT 'b'") + f::describe("s") + f::bind("", "s") +
                                 f::execute() + f::sync() + f::parse("", "bad") + f::bind("", "") +
                                 f::execute() + f::sync() + f::query("COPY t FROM STDIN") +
                                 f::bytes('d', "7") + f::bytes('c') + f::query("") +
                                 f::query("SELECT 'c'; INSERT INTO t VALUES (2)") + f::bytes('X');

// Lets the session and a model home talk until nothing moves.
void talk(script& s, std::vector<model_home>& homes, model_store& store) {
    for (bool moved = true; moved;) {
        moved = false;
        if (homes.size() < s.opened.size()) {
            homes.emplace_back(store);
            s.link_open();
            moved = true;
        }
        if (homes.empty()) return;
        const auto sent = s.to_link();
        homes.back().feed(sent);
        const auto answer = std::exchange(homes.back().out, {});
        if (!answer.empty()) s.home(answer);
        moved = moved || !sent.empty() || !answer.empty();
    }
}

std::string whole_answer(home_kind kind) {
    script s(kind);
    model_store store;
    std::vector<model_home> homes;
    s.client(conversation);
    talk(s, homes, store);
    REQUIRE(s.client_closed);
    return s.to_client();
}

}  // namespace

TEST_CASE("split at every byte, the answers are the same") {
    const auto kind = GENERATE(home_kind::engine, home_kind::postgres);
    const auto expected = whole_answer(kind);
    REQUIRE(tags(expected) == "RSKZITDCZICZTCZTCZI1tT2DCZIE(42601)ZIGCZIIZITDCCZI");
    for (std::size_t cut = 1; cut < conversation.size(); ++cut) {
        INFO("cut at " << cut);
        script s(kind);
        model_store store;
        std::vector<model_home> homes;
        s.client(std::string_view(conversation).substr(0, cut));
        talk(s, homes, store);
        s.client(std::string_view(conversation).substr(cut));
        talk(s, homes, store);
        REQUIRE(s.to_client() == expected);
        REQUIRE(store.rows == std::vector<int>{1, 7, 2});
        REQUIRE(s.env().inside == 0);
    }
}

TEST_CASE("one byte at a time, in both directions, the answers are the same") {
    const auto kind = GENERATE(home_kind::engine, home_kind::postgres);
    script s(kind);
    s.piece = 1;
    model_store store;
    std::vector<model_home> homes;
    for (const char one : conversation) {
        s.client(std::string(1, one));
        talk(s, homes, store);
    }
    REQUIRE(s.to_client() == whole_answer(kind));
}

TEST_CASE("the link fails after every byte of the home's answers") {
    const auto kind = GENERATE(home_kind::engine, home_kind::postgres);
    for (std::size_t fails_at = 0;; ++fails_at) {
        INFO("fails after " << fails_at);
        script s(kind);
        model_store store;
        model_home home(store);
        s.client(conversation);
        s.link_open();
        std::size_t given = 0;
        bool failed = false;
        for (;;) {
            home.feed(s.to_link());
            if (home.out.empty()) break;
            const auto part = home.out.substr(0, fails_at - given);
            home.out.erase(0, part.size());
            given += part.size();
            s.home(part);
            if (given == fails_at && !s.client_closed) {
                s.link_lost();
                failed = true;
                break;
            }
        }
        if (!failed) break;  // past the end
        const auto told = tags(s.to_client());
        const auto errors = std::count(told.begin(), told.end(), 'E');
        REQUIRE(told.find('?') == std::string::npos);
        if (s.client_closed) {
            // The conversation has an error of its own; ours is the last word, and the only one.
            REQUIRE((told.ends_with("E(08006)") || told.ends_with("E(08007)")));
        }
        REQUIRE(errors <= 2);
        if (!s.client_closed) s.client_eof();  // the next of its messages waits for a new link
        REQUIRE(s.env().inside == 0);
        REQUIRE(s.env().entered == s.env().left);
    }
}

TEST_CASE("the client vanishes after every byte") {
    const auto kind = GENERATE(home_kind::engine, home_kind::postgres);
    for (std::size_t cut = 0; cut < conversation.size(); ++cut) {
        INFO("gone after " << cut);
        script s(kind);
        model_store store;
        std::vector<model_home> homes;
        s.client(std::string_view(conversation).substr(0, cut));
        talk(s, homes, store);
        s.client_eof();
        talk(s, homes, store);
        REQUIRE(s.client_closed);
        REQUIRE(s.env().inside == 0);
        REQUIRE(s.env().entered == s.env().left);
    }
}

TEST_CASE("a home that says anything at all brings nobody down") {
    std::uint32_t state = 12345;
    const auto next = [&] { return state = state * 1664525U + 1013904223U; };
    for (int round = 0; round < 3'000; ++round) {
        INFO("round " << round);
        script s(round % 2 == 0 ? home_kind::engine : home_kind::postgres);
        s.logged_in();
        s.client(f::query("SELECT 1") + f::parse("a", "SELECT 1") + f::describe("a") + f::sync());
        for (int i = 0; i < 8 && !s.client_closed; ++i) {
            static constexpr std::string_view some = "ZTDCEI12tnSNAGHcdVRKsv3Wx";
            std::string body(next() >> 8U & 15U, '\0');
            for (auto& one : body)
                one = static_cast<char>(next() >> 24U & 3U ? 'I' : 0);
            s.home(b::bytes(some[(next() >> 8U) % some.size()], body));
        }
        s.link_lost();
        REQUIRE(s.env().inside == (s.machine->ended() ? 0 : s.env().inside));
        REQUIRE(s.env().entered - s.env().left == s.env().inside);
    }
}
