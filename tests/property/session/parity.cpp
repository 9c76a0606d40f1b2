// Parity: whatever a client sends, in whatever pieces, it is answered through a session exactly as
// by the home itself, byte for byte, also when the tool changes its home between transactions.
#include <catch2/catch.hpp>

#include <functional>

#include "tests/property/session/dice.hpp"
#include "tests/unit/session/model_home.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

namespace {

std::string some_sql(dice& random, int number) {
    const auto n = std::to_string(number);
    switch (roll(random, 12)) {
        case 0:
            return "BEGIN";
        case 1:
            return "COMMIT";
        case 2:
            return "ROLLBACK";
        case 3:
        case 4:
            return "INSERT INTO t VALUES (" + n + ")";
        case 5:
            return "bad " + n;
        case 6:
            return "SET a.x = " + n;
        case 7:
        case 8:
            return "SHOW a.x";
        case 9:
            return "";
        default:
            return "SELECT 'k" + n + "'";
    }
}

// One message, or a few that belong together.
std::string some_messages(dice& random, int number, bool function_calls) {
    const auto n = std::to_string(number);
    const std::string name = "s" + std::to_string(roll(random, 3));
    const std::string portal = roll(random, 4) == 0 ? "p" : "";
    switch (roll(random, 20)) {
        case 0:
        case 1:
        case 2:
            return f::query(some_sql(random, number));
        case 3:
            return f::query(some_sql(random, number) + "; " + some_sql(random, number + 1));
        case 4:
            return f::parse(name, some_sql(random, number));
        case 5:
            return f::parse("", some_sql(random, number)) + f::bind(portal, "");
        case 6:
            return f::bind(portal, roll(random, 3) == 0 ? "" : name);
        case 7:
            return f::describe(name);
        case 8:
            return f::describe_portal(portal);
        case 9:
        case 10:
            return f::execute(portal, roll(random, 4) == 0 ? 1 : 0);
        case 11:
            return f::close(name);
        case 12:
            return f::flush();
        case 13:
        case 14:
        case 15:
            return f::sync();
        case 16:
            return f::query("COPY t FROM STDIN") + f::bytes('d', n) + f::bytes('c');
        case 17:
            return f::parse("", "COPY t FROM STDIN") + f::bind("", "") + f::execute() + f::sync() +
                   f::bytes('d', roll(random, 3) == 0 ? "bad" : n) + f::bytes('c') + f::sync();
        case 18:
            return roll(random, 2) == 0 ? f::bytes('d', n) : f::bytes('c');
        default:
            return function_calls ? f::bytes('F', "x") : f::query("SELECT 'f" + n + "'");
    }
}

struct run {
    explicit run(std::uint64_t seed) : random(seed) {
        kind = roll(random, 2) == 0 ? home_kind::engine : home_kind::postgres;
    }

    // Moves some bytes of the session's output to the home and of the home's to the session.
    void exchange(script& s) {
        const auto sent = s.to_link();
        if (!homes.empty() && !sent.empty()) homes.back().feed(sent);
        open_if_asked(s);
        if (homes.empty()) return;
        auto& out = homes.back().out;
        const auto size = std::min<std::size_t>(out.size(), 1 + roll(random, 40));
        const auto part = out.substr(0, size);
        out.erase(0, size);
        if (!part.empty()) s.home(part);
        open_if_asked(s);
    }
    void open_if_asked(script& s) {
        if (opened == s.opened.size()) return;
        opened = s.opened.size();
        homes.emplace_back(store);
        s.link_open();
    }
    void settle(script& s) {
        for (int i = 0; i < 100'000; ++i) {
            exchange(s);
            const auto more = s.to_link();
            if (!more.empty()) homes.back().feed(more);
            if (homes.back().out.empty() && more.empty() && opened == s.opened.size()) return;
        }
        FAIL("does not settle");
    }

    dice random;
    home_kind kind{};
    model_store store;
    std::vector<model_home> homes;
    std::size_t opened{0};
};

void check(std::uint64_t seed, bool switching) {
    INFO("seed " << seed << (switching ? " switching" : ""));
    run r(seed);
    script s(r.kind);
    s.client(f::startup());
    r.open_if_asked(s);
    r.settle(s);
    s.to_client();

    model_store direct_store;
    model_home direct(direct_store);
    direct.feed(f::startup());
    direct.out.clear();

    std::string sent_all;
    const auto count = 5 + roll(r.random, 40);
    for (std::size_t i = 0; i <= count; ++i) {
        auto bytes =
            i == count
                ? f::bytes('c') + f::sync() + f::query("ROLLBACK")
                : some_messages(r.random, static_cast<int>(i) * 2, r.kind == home_kind::postgres);
        direct.feed(bytes);
        sent_all += bytes;
        s.piece = roll(r.random, 3) == 0 ? 1 + roll(r.random, 9) : 0;
        s.client(bytes);
        s.piece = 0;
        for (auto n = roll(r.random, 4); n > 0; --n)
            r.exchange(s);
        if (switching && roll(r.random, 4) == 0) {
            r.settle(s);
            if (!s.machine->in_transaction()) {
                ++s.env().home.generation;
                s.machine->on_route_changed(s.now);
                s.act();
            }
        }
    }
    r.settle(s);
    const auto seen = s.to_client();
    const auto last = seen.rfind("Mthe home");
    const std::string why = last == std::string::npos ? "" : seen.substr(last, 60);
    CAPTURE(sent_tags(sent_all), tags(seen), tags(direct.out), why);
    REQUIRE_FALSE(s.client_closed);
    REQUIRE(seen == direct.out);
    REQUIRE(r.store.rows == direct_store.rows);
    REQUIRE(s.env().inside == 0);
    REQUIRE(s.env().entered == s.env().left);
}

}  // namespace

TEST_CASE("a session is not to be told from its home") {
    for (std::uint64_t seed = 1; seed <= 5'000; ++seed)
        check(seed, false);
}

TEST_CASE("nor when the home changes between transactions") {
    for (std::uint64_t seed = 1; seed <= 5'000; ++seed)
        check(seed, true);
}
