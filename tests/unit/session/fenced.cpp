// Answers that only a home gives that the tool has left: who sees them, and what is said again.
#include <catch2/catch.hpp>

#include "tests/unit/session/script.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

namespace {

const std::string fenced = b::error("55000", "tool shop has left this server (move m1)");
const std::string gone = b::error("42703", "no such column: n");
const std::string lookup = f::query("SELECT n FROM t WHERE id = 1");
const std::string update = f::query("UPDATE t SET n = n + 1 WHERE id = 1");
const std::string batch = f::bind("", "a") + f::execute() + f::sync();
const std::string updated = b::complete("UPDATE 1") + b::ready();

// A sidecar whose store is away: when a home answers like a fenced one, the gate is closed.
struct alone : script {
    explicit alone(home_kind kind = home_kind::engine) : script(kind) {
        env().confirmed = false;
        env().on_left = [this] {
            env().next = admission::held;
            return true;
        };
        logged_in();
    }
    // What goes before a transaction at PostgreSQL, answered.
    void level() {
        if (to_link().find("isolation") != std::string::npos) home(b::complete("SET") + b::ready());
    }
    // The homes said: it lives elsewhere (or, with the same generation, that nothing moved).
    void lives_at(home_kind kind, std::uint64_t generation = 2) {
        env().home.kind = kind;
        env().home.generation = generation;
        env().next = admission::inside;
        released();
        if (generation == 1) return;
        link_open();
        to_link();
        greet();
    }
};

}  // namespace

TEST_CASE("a write refused by a fence is said again at the new home, unseen by its client") {
    alone s(home_kind::postgres);
    s.client(update);
    s.level();
    s.home(fenced);
    REQUIRE(s.env().asked_homes == 1);
    s.home(b::ready());
    REQUIRE(s.to_client().empty());
    REQUIRE(s.env().left == 1);  // no hold waits for it
    s.lives_at(home_kind::engine);
    REQUIRE(s.to_link() == update);
    s.home(updated);
    REQUIRE(s.to_client() == updated);
}

TEST_CASE("a read that had its row description from a fenced view is said again whole") {
    alone s(home_kind::postgres);
    s.client(lookup);
    s.level();
    s.home(b::row_description({20}) + fenced + b::ready());
    REQUIRE(s.to_client().empty());
    s.lives_at(home_kind::engine);
    REQUIRE(s.to_link() == lookup);
    const auto answer = b::row_description({20}) + b::complete("SELECT 0") + b::ready();
    s.home(answer);
    REQUIRE(s.to_client() == answer);
}

TEST_CASE("a batch is said again from its Bind, on a link that has the statement") {
    alone s(home_kind::postgres);
    s.client(f::parse("a", "UPDATE t SET n = n + 1 WHERE id = $1") + f::sync());
    s.level();
    s.home(b::parsed() + b::ready());
    s.to_client();
    s.to_link();
    s.client(batch);
    s.level();
    s.home(b::bound() + fenced + b::ready());
    REQUIRE(s.to_client().empty());
    s.lives_at(home_kind::engine);
    REQUIRE(sent_tags(s.to_link()).substr(0, 1) == "P");
    s.home(b::parsed() + b::ready());
    REQUIRE(s.to_link() == batch);
    s.home(b::bound() + updated);
    REQUIRE(tags(s.to_client()) == "2CZI");
}

TEST_CASE("what came behind it keeps its place") {
    alone s(home_kind::postgres);
    s.client(update + lookup);
    s.level();
    s.home(fenced + b::ready());
    s.lives_at(home_kind::engine);
    REQUIRE(s.to_link() == update);
    s.home(updated);
    REQUIRE(s.to_link() == lookup);
}

TEST_CASE("a transaction that met the fence after its beginning ends with 40001") {
    alone s(home_kind::postgres);
    s.client(f::query("BEGIN"));
    s.level();
    s.home(b::complete("BEGIN") + b::ready('T'));
    s.client(update);
    s.level();
    s.home(fenced + b::ready('E'));
    REQUIRE(tags(s.to_client()) == "CZTE(40001)ZE");
    REQUIRE(s.env().asked_homes == 1);
    s.client(f::query("ROLLBACK"));
    s.home(b::complete("ROLLBACK") + b::ready());
    s.to_client();
    s.client(update);  // the next waits for the homes
    s.lives_at(home_kind::engine);
    REQUIRE(s.to_link() == update);
}

TEST_CASE("a confirmed home's fence is asked about too, but nothing was kept to be said again") {
    alone s(home_kind::postgres);
    s.env().confirmed = true;
    s.client(update);
    s.level();
    s.home(fenced + b::ready());
    REQUIRE(tags(s.to_client()) == "E(40001)ZI");
    REQUIRE(s.env().asked_homes == 1);
}

TEST_CASE("nobody can ask the homes: the words of the home are the client's") {
    alone s(home_kind::postgres);
    s.env().on_left = nullptr;
    s.client(update);
    s.level();
    s.home(fenced + b::ready());
    REQUIRE(tags(s.to_client()) == "E(55000)ZI");
}

TEST_CASE("the engine's words for a foreign column are asked about while nothing confirms it") {
    const auto words = GENERATE(values<std::string>({"no such column: n",
                                                     "no such table: t",
                                                     "table t has no column named n",
                                                     "CHECK constraint failed: hotlane_moved = 7",
                                                     "table t has 1 columns but 2 values were "
                                                     "supplied"}));
    alone s;
    s.client(update);
    s.home(b::error("42703", words) + b::ready());
    REQUIRE(s.to_client().empty());
    s.lives_at(home_kind::postgres);
    const auto sent = s.to_link();
    REQUIRE(sent.substr(sent.size() - update.size()) == update);
}

TEST_CASE("a client's own mistake is told to it once the homes were asked") {
    alone s;
    s.client(update);
    s.home(gone + b::ready());
    REQUIRE(s.to_client().empty());
    s.to_link();
    s.lives_at(home_kind::engine, 1);
    REQUIRE(s.to_link() == update);
    s.home(gone + b::ready());
    REQUIRE(tags(s.to_client()) == "E(42703)ZI");
    REQUIRE(s.env().asked_homes == 1);
}

TEST_CASE("a confirmed engine's words for a mistake are passed at once") {
    alone s;
    s.env().confirmed = true;
    s.client(update);
    s.home(gone + b::ready());
    REQUIRE(tags(s.to_client()) == "E(42703)ZI");
    REQUIRE(s.env().asked_homes == 0);
}

TEST_CASE("what an engine's tombstone might not refuse is not sent to an unconfirmed one") {
    const auto sql = GENERATE(values<std::string>({"DELETE FROM t",
                                                   "SELECT count(*) FROM t",
                                                   "SELECT * FROM t",
                                                   "DROP TABLE t",
                                                   "CREATE TABLE IF NOT EXISTS x (a INTEGER)",
                                                   "CREATE TABLE x (a INTEGER PRIMARY KEY "
                                                   "AUTOINCREMENT)",
                                                   "INSERT INTO t VALUES (7) ON CONFLICT DO "
                                                   "NOTHING"}));
    SECTION("as a query") {
        alone s;
        s.client(f::query(sql));
        REQUIRE(s.to_link().find(sql) == std::string::npos);
        s.home(gone + b::ready());
        REQUIRE(tags(s.to_client()) == "E(57P03)ZI");
        REQUIRE(s.env().asked_homes == 0);
        s.env().confirmed = true;
        s.client(f::query(sql));
        REQUIRE(s.to_link() == f::query(sql));
    }
    SECTION("prepared") {
        alone s;
        s.client(f::parse("", sql) + f::bind("", "") + f::execute() + f::sync());
        REQUIRE(sent_tags(s.to_link()) == "PBDS");
        s.home(b::parsed() + b::bound() + b::error("26000", "no such statement") + b::ready());
        REQUIRE(tags(s.to_client()) == "12E(57P03)ZI");
    }
    SECTION("at a PostgreSQL home a fence refuses everything") {
        alone s(home_kind::postgres);
        s.client(f::query(sql));
        REQUIRE(s.to_link().find(sql) != std::string::npos);
    }
}

TEST_CASE("what names a column is sent, whoever confirms") {
    const auto sql = GENERATE(values<std::string>({"SELECT n FROM t",
                                                   "SELECT 1",
                                                   "UPDATE t SET n = 1",
                                                   "INSERT INTO t (a) VALUES (1)",
                                                   "INSERT INTO t VALUES (1, 2)",
                                                   "DELETE FROM t WHERE id = 1",
                                                   "SHOW twill.stats",
                                                   "BEGIN"}));
    alone s;
    s.client(f::query(sql));
    REQUIRE(s.to_link() == f::query(sql));
}
