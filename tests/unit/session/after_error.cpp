// What goes on at the engine after an error inside a block, and what PostgreSQL would do the same.
#include <catch2/catch.hpp>

#include "tests/unit/session/script.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

namespace {

using list = std::vector<std::string>;

// One reply of the home: ready, inside the block or after it.
std::string done(std::string_view tag, char status = 'T') {
    return b::complete(tag) + b::ready(status);
}
std::string failed() {
    return b::error("42601", "UNIQUE constraint failed: t.id") + b::ready('E');
}

struct block {
    explicit block(home_kind kind = home_kind::engine) : s(kind) {
        s.logged_in();
        s.client(f::query("BEGIN")).home(done("BEGIN"));
    }
    block& say(std::string_view sql, const std::string& reply) {
        s.client(f::query(sql)).home(reply);
        return *this;
    }
    [[nodiscard]] const list& went_on() { return s.env().went_on; }
    script s;
};

}  // namespace

TEST_CASE("statements that run after an error in their block are counted, the block once") {
    block one;
    one.say("INSERT INTO t VALUES (1)", done("INSERT 0 1"))
        .say("INSERT INTO t VALUES (1)", failed())
        .say("UPDATE t SET n = 1", done("UPDATE 1", 'E'))
        .say("SELECT n FROM t", done("SELECT 1", 'E'))
        .say("COMMIT", done("COMMIT", 'I'));
    CHECK(one.went_on() == list{"first UPDATE 1", "SELECT 1", "COMMIT"});
}

TEST_CASE("a COMMIT alone after an error counts where it commits something") {
    block something, nothing;
    something.say("INSERT INTO t VALUES (1)", done("INSERT 0 1"))
        .say("INSERT INTO t VALUES (1)", failed())
        .say("COMMIT", done("COMMIT", 'I'));
    CHECK(something.went_on() == list{"first COMMIT"});
    nothing.say("INSERT INTO t VALUES (1)", failed()).say("COMMIT", done("COMMIT", 'I'));
    CHECK(nothing.went_on().empty());
}

TEST_CASE("what both homes do after an error is not counted") {
    SECTION("ROLLBACK") {
        block one;
        one.say("INSERT INTO t VALUES (1)", failed()).say("ROLLBACK", done("ROLLBACK", 'I'));
        CHECK(one.went_on().empty());
        one.say("BEGIN", done("BEGIN")).say("INSERT INTO t VALUES (2)", done("INSERT 0 1"));
        CHECK(one.went_on().empty());
    }
    SECTION("ROLLBACK TO a savepoint") {
        block one;
        one.say("SAVEPOINT a", done("SAVEPOINT"))
            .say("INSERT INTO t VALUES (1)", failed())
            .say("ROLLBACK TO a", done("ROLLBACK"))
            .say("INSERT INTO t VALUES (2)", done("INSERT 0 1"))
            .say("COMMIT", done("COMMIT", 'I'));
        CHECK(one.went_on().empty());
    }
    SECTION("an error outside a block") {
        script s(home_kind::engine);
        s.logged_in();
        s.client(f::query("INSERT INTO t VALUES (1)"))
            .home(b::error("42601", "no such table: t") + b::ready());
        s.client(f::query("SELECT 1")).home(done("SELECT 1", 'I'));
        CHECK(s.env().went_on.empty());
    }
    SECTION("on PostgreSQL") {
        script s(home_kind::postgres);
        s.logged_in();
        s.client(f::query("BEGIN ISOLATION LEVEL READ COMMITTED")).home(done("BEGIN"));
        s.client(f::query("SELECT 1/0"))
            .home(b::error("22012", "division by zero") + b::ready('E'));
        s.client(f::query("COMMIT")).home(done("ROLLBACK", 'I'));
        CHECK(s.env().went_on.empty());
    }
}

TEST_CASE("it is seen in extended batches, and in any cut of the bytes") {
    const auto piece = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{7});
    block one;
    one.s.piece = piece;
    const auto batch = [](std::string_view sql) {
        return f::parse("", sql) + f::bind("", "") + f::execute() + f::sync();
    };
    one.s.client(batch("INSERT INTO t VALUES (1)")).home(b::parsed() + b::bound() + failed());
    one.s.client(batch("DELETE FROM t")).home(b::parsed() + b::bound() + done("DELETE 3", 'E'));
    CHECK(one.went_on() == list{"first DELETE 3"});
    // The next block begins with nothing of this one.
    one.say("COMMIT", done("COMMIT", 'I')).say("BEGIN", done("BEGIN"));
    one.say("SELECT 1", done("SELECT 1"));
    CHECK(one.went_on() == list{"first DELETE 3", "COMMIT"});
}
