// The conformance suite over a real PostgreSQL, and what only a store with several users can show.
// Needs HOTLANE_STORE_DSN (an empty database of its own): tests/integration/test_fleet_store.py.
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "router/placement/pg_session.hpp"
#include "store_conformance.hpp"

using namespace hotlane;
using namespace hotlane::placement;
using namespace std::chrono_literals;

namespace {

postgres_target target() {
    const char* const dsn = std::getenv("HOTLANE_STORE_DSN");
    REQUIRE(dsn != nullptr);
    postgres_target at;
    at.dsn = dsn;
    at.name = "hotlane test";
    at.statement_timeout = 20s;
    at.idle_timeout = 60s;
    return at;
}

void empty_database() {
    auto session = pg_session::connect(target());
    REQUIRE(session.has_value());
    REQUIRE((*session)->exec("DROP SCHEMA IF EXISTS hotlane_state CASCADE").has_value());
}

std::unique_ptr<fleet_store> open_store() {
    auto made = open_postgres_store(target());
    REQUIRE(made.has_value());
    const auto reached = (*made)->reach();
    if (!reached) FAIL(reached.error().what);
    return std::move(*made);
}

// Until the lock of a user that has just gone is free.
void lead_soon(fleet_store& there, const std::string& sidecar) {
    for (int i = 0; i < 2'000; ++i) {
        const auto got = there.beat({.id = sidecar, .name = sidecar}, nullptr, true);
        REQUIRE(got.has_value());
        if (got->may_lead) {
            REQUIRE(there.take_lead(sidecar).has_value());
            return;
        }
        there.wait(10ms);
    }
    FAIL("nobody may lead");
}

}  // namespace

TEST_CASE("PostgreSQL keeps what every store keeps", "[.postgres]") {
    empty_database();
    store_back_end back_end{[] {
        auto made = open_store();
        lead_soon(*made, "test");
        return made;
    }};
    check_all(back_end);
}

TEST_CASE("many set the tables up at once and one leads", "[.postgres]") {
    empty_database();
    std::vector<std::unique_ptr<fleet_store>> all(8);
    std::atomic<int> leaders{0};
    std::atomic<int> failures{0};
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = std::move(*open_postgres_store(target()));
        threads.emplace_back([&, i] {
            const std::string id = fmt::format("s{}", i);
            if (!all[i]->reach() || !all[i]->join({.id = id, .name = id})) ++failures;
            const auto got = all[i]->beat({.id = id, .name = id}, nullptr, true);
            if (!got) ++failures;
            if (got && got->may_lead) ++leaders;
        });
    }
    threads.clear();
    CHECK(failures == 0);
    CHECK(leaders == 1);
    CHECK(all[0]->sidecars()->size() == all.size());
}

TEST_CASE("the writes of a leader that was replaced are refused, and change nothing",
          "[.postgres]") {
    empty_database();
    auto old_one = open_store();
    auto new_one = open_store();
    lead_soon(*old_one, "old");
    REQUIRE(old_one->put_placement({"a", policy::home_kind::engine, 1, at_ms(1), ""}).value());
    // As if the server had taken the old one's lock (its session was silent) without it noticing.
    REQUIRE(new_one->take_lead("new").value() > old_one->leads_as());
    const auto refused = [](const auto& answer) {
        return !answer && answer.error().why == store_error::kind::not_leader;
    };
    SECTION("placement") {
        CHECK(
            refused(old_one->put_placement({"a", policy::home_kind::postgres, 9, at_ms(1), "m"})));
        CHECK(new_one->placement("a").value()->epoch == 1);
    }
    SECTION("journal") {
        CHECK(refused(old_one->put_move({.id = "m1", .tool = "a"})));
        CHECK_FALSE(new_one->move("m1")->has_value());
    }
    SECTION("document") {
        CHECK(refused(old_one->put_document("pin", "a", {{"x", 1}})));
        CHECK_FALSE(new_one->document("pin", "a")->has_value());
    }
    SECTION("decision") {
        CHECK(refused(old_one->add_decision({.tool = "a"})));
        CHECK(new_one->decisions("a", 5)->empty());
    }
    SECTION("hold") {
        CHECK(refused(old_one->put_hold({"a", "m1", true})));
        CHECK(new_one->changes(0)->holds.empty());
    }
    SECTION("its number") {
        CHECK(refused(old_one->raise(1)));
    }
    CHECK(old_one->leads_as() == 0);
}

TEST_CASE("a session that is cut is away at once, comes back, and is told everything",
          "[.postgres]") {
    empty_database();
    auto there = open_store();
    auto other = open_store();
    lead_soon(*there, "first");
    REQUIRE(there->put_placement({"a", policy::home_kind::engine, 1, at_ms(1), ""}).value());
    const auto version = there->changes(0)->version;
    auto session = pg_session::connect(target());
    REQUIRE(session.has_value());
    REQUIRE((*session)
                ->exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> "
                       "pg_backend_pid() AND application_name = 'hotlane test' AND query "
                       "LIKE '%UNION%'")
                .has_value());
    for (int i = 0; i < 2'000 && there->reachable(); ++i)
        there->wait(10ms);
    CHECK_FALSE(there->reachable());
    CHECK(there->leads_as() == 0);
    CHECK(there->placement("a").error().why == store_error::kind::away);
    lead_soon(*other, "second");  // the lock went with the session
    REQUIRE(there->reach());
    const auto again = there->changes(version).value();
    CHECK(again.whole);
    CHECK(again.placements.size() == 1);
}

TEST_CASE("a silent leader loses its lock to the server's clock", "[.postgres]") {
    empty_database();
    auto at = target();
    at.idle_timeout = 300ms;
    auto silent = std::move(*open_postgres_store(at));
    REQUIRE(silent->reach());
    lead_soon(*silent, "silent");
    auto other = open_store();
    lead_soon(*other, "other");
    CHECK(silent->put_hold({"a", "m1", true}).has_value() == false);
    CHECK(silent->leads_as() == 0);
}

TEST_CASE("a store of a newer format is refused; one that is compatible is not", "[.postgres]") {
    empty_database();
    static_cast<void>(open_store());
    auto session = pg_session::connect(target());
    REQUIRE(session.has_value());
    REQUIRE((*session)->exec("UPDATE hotlane_state.format SET version = 99").has_value());
    CHECK(std::move(*open_postgres_store(target()))->reach().has_value());
    REQUIRE((*session)->exec("UPDATE hotlane_state.format SET readable_from = 99").has_value());
    const auto refused = std::move(*open_postgres_store(target()))->reach();
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().what.find("newer hotlane") != std::string::npos);
}

TEST_CASE("an address where nobody listens is away, and its password is not told", "[.postgres]") {
    auto at = target();
    at.dsn = "host=127.0.0.1,127.0.0.1 port=1,2 dbname=x user=y";
    at.password = "very secret";
    auto there = std::move(*open_postgres_store(at));
    const auto reached = there->reach();
    REQUIRE_FALSE(reached.has_value());
    CHECK(reached.error().why == store_error::kind::away);
    CHECK(reached.error().what.find("very secret") == std::string::npos);
}

TEST_CASE("what is no connection string is said so at the start") {
    const auto made = open_postgres_store({.dsn = "host=a nonsense"});
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().what.find("state.postgres") == 0);
}
