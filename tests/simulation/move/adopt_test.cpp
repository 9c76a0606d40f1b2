// PostgreSQL comes back from a backup; an operator says which home holds. Every statement of that
// can be the last before each kind of accident: in the end one home accepts, the one that was
// named, with all rows that it had and all that it took since.
#include <algorithm>
#include <catch2/catch.hpp>

#include "router/move/adopt.hpp"
#include "world.hpp"

using namespace sim;
using hotlane::policy::home_kind;

namespace {

std::vector<std::string> sorted(std::vector<std::string> v) {
    std::sort(v.begin(), v.end());
    return v;
}

home_kind other(home_kind h) {
    return h == home_kind::engine ? home_kind::postgres : home_kind::engine;
}

void move_to(world& w, home_kind to) {
    process p(w);
    bool known = false;
    REQUIRE(p.recover(&known));
    REQUIRE(known);
    hotlane::move::report done;
    REQUIRE(p.move(to, &done));
    REQUIRE(done.moved);
}

// What happened before PostgreSQL was restored.
enum class past {
    never_there,  // the backup is from before the first move; the tool was at PostgreSQL
    empty_again,  // out, back, backup, out: its marker says away, at a lower epoch
    came_home,    // out, backup, back: the backup serves, and so does the engine
    left_twice    // out, backup, back, out: the backup serves what it had the first time
};
constexpr past pasts[] = {past::never_there, past::empty_again, past::came_home, past::left_twice};

std::unique_ptr<world> restored(past what) {
    auto w = std::make_unique<world>();
    process first(*w);
    bool known = false;
    REQUIRE(first.recover(&known));
    REQUIRE(known);
    auto backup = w->at_postgres.state_;
    move_to(*w, home_kind::postgres);
    if (what == past::came_home || what == past::left_twice) backup = w->at_postgres.state_;
    if (what != past::never_there) move_to(*w, home_kind::engine);
    if (what == past::empty_again) backup = w->at_postgres.state_;
    if (what == past::empty_again || what == past::left_twice) move_to(*w, home_kind::postgres);
    w->at_postgres.state_ = backup;
    w->accepted.clear();
    return w;
}

std::vector<std::string> copy_at_engine(world& w) {
    const auto names = w.at_engine.column(
        "SELECT name FROM sqlite_schema WHERE name LIKE 'hotlane%\\_f0' ESCAPE '\\' ORDER BY name");
    return names.empty() ? std::vector<std::string>{}
                         : w.at_engine.column("SELECT id FROM \"" + names.back() + "\"");
}

// What the home has that an adoption of it must keep.
std::vector<std::string> rows_to_keep(world& w, past what, home_kind home) {
    if (home == home_kind::postgres) return w.at_postgres.keys("t");
    return what == past::came_home ? w.rows_at(home_kind::engine) : copy_at_engine(w);
}

// The home alone accepts, and has these rows and those that it took since.
void check_adopted(world& w, home_kind home, const std::vector<std::string>& kept) {
    CHECK(w.probe() == std::vector<home_kind>{home});
    auto expected = kept;
    for (const auto& key : w.accepted)  // odd keys are tried at the engine
        if ((std::stoi(key) % 2 == 1) == (home == home_kind::engine)) expected.push_back(key);
    CHECK(sorted(w.rows_at(home)) == sorted(expected));
    // From here on the ledger is that home's alone.
    w.accepted = w.rows_at(home);
    w.both_accepted = false;
}

void check_life_goes_on(world& w, home_kind home) {
    w.at_engine.flush_late();
    w.at_postgres.flush_late();
    for (const auto to : {home, other(home), home}) {
        process p(w);
        bool known = false;
        REQUIRE(p.recover(&known));
        REQUIRE(known);
        if (p.tool->current()->at.kind != to) {
            hotlane::move::report done;
            REQUIRE(p.move(to, &done));
            REQUIRE(done.moved);
        }
        CHECK(w.probe() == std::vector<home_kind>{to});
        CHECK_FALSE(w.both_accepted);
        CHECK(sorted(w.rows_at(to)) == sorted(w.accepted));
    }
}

// Until it is done, as an operator would: look what became of it, and say it again.
void adopt_for_good(world& w, home_kind home) {
    for (int tries = 0; tries < 4; ++tries) {
        process p(w);
        bool known = false;
        REQUIRE(p.recover(&known));
        if (known) {
            CHECK(p.tool->current()->at.kind == home);
            return;
        }
        CHECK_FALSE(p.tool->current()->served);
        hotlane::move::adopted done;
        REQUIRE(p.adopt(home, &done));
        if (done.done) return;
    }
    FAIL("it is never done");
}

bool can_adopt(past what, home_kind home) {
    return home == home_kind::engine || what == past::left_twice;
}

std::uint64_t count_steps(past what, home_kind home) {
    auto w = restored(what);
    process p(*w);
    bool known = true;
    REQUIRE(p.recover(&known));
    REQUIRE_FALSE(known);  // nobody is served before the operator's word
    CHECK_FALSE(p.tool->current()->served);
    const auto kept = rows_to_keep(*w, what, home);
    w->accepted.clear();
    const auto before = p.steps.count;
    hotlane::move::adopted done;
    REQUIRE(p.adopt(home, &done));
    for (const auto& r : done.refusals)
        UNSCOPED_INFO(r.code << " " << r.message);
    REQUIRE(done.done);
    CHECK(done.refusals.empty());
    CHECK(p.tool->current()->epoch == done.detail["new_epoch"].get<std::uint64_t>());
    CHECK_FALSE(done.detail["may_be_missing"].empty());
    check_adopted(*w, home, kept);
    check_life_goes_on(*w, home);
    const auto journal = *w->store.recent_moves(100);
    CHECK(std::count_if(journal.begin(), journal.end(), [](const auto& r) {
              return r.outcome == "adopted";
          }) == 1);
    return p.steps.count - before;
}

}  // namespace

TEST_CASE("after a restore nobody is served until one home is adopted, and then that one is") {
    for (const auto what : pasts)
        for (const auto home : {home_kind::engine, home_kind::postgres}) {
            CAPTURE(int(what), int(home));
            if (can_adopt(what, home)) {
                CHECK(count_steps(what, home) > 5);
                continue;
            }
            auto w = restored(what);
            process p(*w);
            bool known = true;
            REQUIRE(p.recover(&known));
            const auto before = w->at_postgres.now().marker;
            hotlane::move::adopted done;
            REQUIRE(p.adopt(home, &done));
            CHECK_FALSE(done.done);
            REQUIRE_FALSE(done.refusals.empty());
            CHECK(done.refusals[0].code ==
                  (what == past::came_home ? "higher_epoch" : "no_complete_tables"));
            CHECK(w->at_postgres.now().marker == before);
            CHECK_FALSE(p.tool->current()->served);
        }
}

TEST_CASE("an adoption survives every accident at every statement") {
    for (const auto what : pasts)
        for (const auto home : {home_kind::engine, home_kind::postgres}) {
            if (!can_adopt(what, home)) continue;
            const auto steps = count_steps(what, home);
            for (std::uint64_t n = 1; n <= steps; ++n)
                for (const fault f : faults) {
                    CAPTURE(int(what), int(home), n, int(f));
                    auto w = restored(what);
                    w->at_engine.late_after = int(n % 3);
                    const auto kept = rows_to_keep(*w, what, home);
                    {
                        process p(*w);
                        bool known = true;
                        REQUIRE(p.recover(&known));
                        p.steps.at = p.steps.count + n;
                        p.steps.what = f;
                        p.adopt(home);
                    }
                    adopt_for_good(*w, home);
                    check_adopted(*w, home, kept);
                    check_life_goes_on(*w, home);
                }
        }
}

TEST_CASE("a dry run of an adoption changes nothing anywhere") {
    for (const auto what : pasts) {
        CAPTURE(int(what));
        auto w = restored(what);
        process p(*w);
        p.steps.bystanders = {};
        bool known = true;
        REQUIRE(p.recover(&known));
        const auto marker = w->at_postgres.now().marker;
        const auto names = w->at_engine.column("SELECT name FROM sqlite_schema ORDER BY name");
        const auto seen =
            hotlane::move::adopt_with(p.with, {"shop", home_kind::engine, "tests", false}, "dry");
        CHECK(seen.refusals.empty());
        CHECK_FALSE(seen.done);
        CHECK(w->at_postgres.now().marker == marker);
        CHECK(w->at_engine.column("SELECT name FROM sqlite_schema ORDER BY name") == names);
        CHECK_FALSE(p.tool->current()->served);
    }
}

TEST_CASE("a tool that is served, or whose home does not answer, is not adopted") {
    auto w = std::make_unique<world>();
    move_to(*w, home_kind::postgres);
    process p(*w);
    bool known = false;
    REQUIRE(p.recover(&known));
    for (const auto home : {home_kind::engine, home_kind::postgres}) {
        hotlane::move::adopted done;
        REQUIRE(p.adopt(home, &done));
        REQUIRE_FALSE(done.refusals.empty());
        CHECK(done.refusals[0].code == "served");
    }
    auto old = restored(past::never_there);
    for (const bool engine_down : {true, false}) {
        old->at_engine.down = engine_down;
        old->at_postgres.down = !engine_down;
        process q(*old);
        REQUIRE(q.recover(&known));
        hotlane::move::adopted done;
        REQUIRE(q.adopt(home_kind::engine, &done));
        REQUIRE(done.refusals.size() == 1);
        CHECK(done.refusals[0].code == "home_down");
    }
}
