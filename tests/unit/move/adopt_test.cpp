// Which home may be adopted, by what was seen. (What it does: tests/simulation/move.)
#include <catch2/catch.hpp>

#include "router/move/adopt.hpp"
#include "router/move/names.hpp"

using namespace hotlane;
using namespace hotlane::move;
using policy::home_kind;

namespace {

const std::string older = make_move_id(policy::time_point{std::chrono::milliseconds{1}}, 1);
const std::string newer = make_move_id(policy::time_point{std::chrono::milliseconds{2}}, 1);

// A tool that lived at PostgreSQL, epoch 2, whose marker is gone.
adopt_view lost() {
    adopt_view v;
    v.stored = placement::placement_record{"shop", home_kind::postgres, 2, {}, newer};
    v.tombstones = {"t"};
    v.copies = {{"t", 5}};
    v.copy_of = newer;
    v.known = {"t"};
    v.highest = 2;
    return v;
}

placement::route unserved() {
    placement::route r;
    r.served = false;
    return r;
}

std::vector<std::string> codes(const adopt_view& v,
                               home_kind home,
                               const placement::route& now = unserved()) {
    std::vector<std::string> out;
    for (const auto& r : why_not_adopt(v, home, now)) {
        out.push_back(r.code);
        CHECK_FALSE(r.mend.empty());
    }
    return out;
}

using list = std::vector<std::string>;
const list incomplete{"no_complete_tables"};

}  // namespace

TEST_CASE("an engine is adopted with all tables, open or as the copy that the tool left last") {
    CHECK(codes(lost(), home_kind::engine).empty());
    auto v = lost();
    v.tombstones.clear();
    v.copies.clear();
    v.copy_of.clear();
    CHECK(codes(v, home_kind::engine).size() == 2);  // t is missing, and there is nothing at all
    v.at_engine = {{"t", 5}};
    CHECK(codes(v, home_kind::engine).empty());
    v.known = {"t", "u"};
    CHECK(codes(v, home_kind::engine) == incomplete);
}

TEST_CASE("copies that are gone, old, or that nobody can name are no tables") {
    auto v = lost();
    v.tombstones = {"t", "u"};
    CHECK(codes(v, home_kind::engine) == incomplete);
    v = lost();
    v.copy_of = older;  // the newer ones were dropped
    CHECK(codes(v, home_kind::engine) == incomplete);
    v = lost();
    v.copies.clear();
    v.known.clear();
    CHECK(codes(v, home_kind::engine) == incomplete);
}

TEST_CASE("a PostgreSQL that serves the highest epoch needs no adopting of the engine") {
    auto v = lost();
    v.mark = marker{marker_state::serving, newer, 2, {"t"}, "public"};
    CHECK(codes(v, home_kind::engine) == list{"higher_epoch"});
    v.highest = 4;
    CHECK(codes(v, home_kind::engine).empty());
}

TEST_CASE("PostgreSQL is adopted with all tables and while the engine has none open") {
    auto v = lost();
    CHECK(codes(v, home_kind::postgres).size() == 2);
    v.at_postgres = {{"t", 3}};
    CHECK(codes(v, home_kind::postgres).empty());
    v.at_postgres.clear();
    v.fenced = {{"t", 3}};
    CHECK(codes(v, home_kind::postgres).empty());
    v.at_engine = {{"t", 5}};
    CHECK(codes(v, home_kind::postgres) == list{"higher_epoch"});
}

TEST_CASE("who is served needs no adopting, unless the marker lags behind the engine's epoch") {
    auto v = lost();
    placement::route at;
    at.at.kind = home_kind::engine;
    CHECK(codes(v, home_kind::engine, at) == list{"served"});
    v.stored = placement::placement_record{"shop", home_kind::engine, 3, {}, newer};
    v.mark = marker{marker_state::away, older, 1, {"t"}, "public"};
    v.at_engine = {{"t", 5}};
    v.tombstones.clear();
    v.highest = 3;
    CHECK(codes(v, home_kind::engine, at).empty());
    v.mark->epoch = 3;
    CHECK(codes(v, home_kind::engine, at) == list{"served"});
}

TEST_CASE("what may be missing is said for each choice") {
    auto v = lost();
    CHECK(what_may_be_missing(v, home_kind::engine).at(0).find(newer) != std::string::npos);
    CHECK(what_may_be_missing(v, home_kind::postgres).at(0).find("epoch") != std::string::npos);
    v.copies.clear();
    v.stored->home = home_kind::engine;
    CHECK(what_may_be_missing(v, home_kind::engine).at(0).find("nothing") != std::string::npos);
}
