// The decision table, row by row, and what must hold for every combination of facts.
#include <catch2/catch.hpp>

#include "router/move/decide.hpp"

using namespace hotlane::move;
using hotlane::policy::home_kind;

namespace {

struct expectation {
    journal_point journal;
    home_kind to;
    marker_point marker;
    serve_at where;
    engine_work on_engine;
    marker_work on_marker;
    move_end ends;
};

using J = journal_point;
using M = marker_point;
using W = serve_at;
using N = engine_work;
using P = marker_work;
using X = move_end;
constexpr auto OUT = home_kind::postgres;
constexpr auto BACK = home_kind::engine;

const expectation moves[] = {
    {J::before_fence, OUT, M::unreachable, W::engine, N::none, P::none, X::undone},
    {J::before_fence, OUT, M::absent, W::engine, N::none, P::none, X::undone},
    {J::before_fence, OUT, M::at_start, W::engine, N::none, P::none, X::undone},
    {J::before_fence, OUT, M::midway, W::engine, N::none, P::undo_stage, X::undone},
    {J::before_fence, OUT, M::elsewhere, W::nobody, N::none, P::none, X::forget},
    {J::fenced, OUT, M::unreachable, W::engine, N::undo_fence, P::none, X::undone},
    {J::fenced, OUT, M::at_start, W::engine, N::undo_fence, P::none, X::undone},
    {J::fenced, OUT, M::midway, W::engine, N::undo_fence, P::undo_stage, X::undone},
    {J::fenced, OUT, M::flipped, W::nobody, N::none, P::none, X::none},
    {J::committing, OUT, M::unreachable, W::nobody, N::none, P::none, X::none},
    {J::committing, OUT, M::absent, W::nobody, N::none, P::none, X::none},
    {J::committing, OUT, M::at_start, W::engine, N::undo_fence, P::none, X::undone},
    {J::committing, OUT, M::midway, W::engine, N::undo_fence, P::undo_stage, X::undone},
    {J::committing, OUT, M::flipped, W::postgres, N::none, P::none, X::done},
    {J::committed, OUT, M::flipped, W::postgres, N::none, P::none, X::done},
    {J::committed, OUT, M::unreachable, W::nobody, N::none, P::none, X::none},
    {J::committed, OUT, M::at_start, W::nobody, N::none, P::none, X::none},
    {J::before_fence, BACK, M::unreachable, W::nobody, N::none, P::none, X::none},
    {J::before_fence, BACK, M::at_start, W::postgres, N::none, P::none, X::undone},
    {J::fenced, BACK, M::at_start, W::postgres, N::none, P::none, X::undone},
    {J::fenced, BACK, M::midway, W::postgres, N::none, P::unfence, X::undone},
    {J::fenced, BACK, M::unreachable, W::nobody, N::none, P::none, X::none},
    {J::fenced, BACK, M::flipped, W::nobody, N::none, P::none, X::none},
    {J::committing, BACK, M::unreachable, W::nobody, N::none, P::none, X::none},
    {J::committing, BACK, M::midway, W::postgres, N::none, P::unfence, X::undone},
    {J::committing, BACK, M::flipped, W::engine, N::open_staged, P::none, X::done},
    {J::committed, BACK, M::unreachable, W::engine, N::open_staged, P::none, X::done},
    {J::committed, BACK, M::flipped, W::engine, N::open_staged, P::none, X::done},
    {J::committed, BACK, M::midway, W::nobody, N::none, P::none, X::none},
};

}  // namespace

TEST_CASE("an unfinished move is finished, undone or waited for, as the table says") {
    for (const auto& e : moves) {
        CAPTURE(int(e.journal), int(e.to), int(e.marker));
        const auto v = decide({e.journal, e.to, e.marker, store_point::engine, {}});
        CHECK(v.where == e.where);
        CHECK(v.on_engine == e.on_engine);
        CHECK(v.on_marker == e.on_marker);
        CHECK(v.ends == e.ends);
    }
}

TEST_CASE("PostgreSQL serves only where the marker says so now or after our own work") {
    for (int j = 0; j <= int(J::committed); ++j)
        for (const auto to : {OUT, BACK})
            for (int m = 0; m <= int(M::fenced); ++m)
                for (int s = 0; s <= int(store_point::postgres_ahead); ++s) {
                    const home_facts f{J(j), to, M(m), store_point(s), engine_point::unreachable};
                    const auto v = decide(f);
                    CAPTURE(j, int(to), m, s);
                    if (v.where == W::postgres) {
                        CHECK(f.marker != M::unreachable);
                        CHECK(f.marker != M::absent);
                        CHECK(v.on_engine == N::none);
                    }
                    // Nobody serves without a reason that a person can read.
                    if (v.where == W::nobody && !v.ask_engine) CHECK(!v.reason.empty());
                    // A flip that may have been sent is never undone without the marker.
                    if (f.journal == J::committing && v.ends == X::undone)
                        CHECK((f.marker == M::midway || f.marker == M::at_start));
                    // A fence is never left behind where the engine is to serve.
                    if (f.journal == J::fenced && f.to == OUT && v.where == W::engine)
                        CHECK(v.on_engine == N::undo_fence);
                }
}

TEST_CASE("without a move the marker decides, and the store is only believed in its absence") {
    const auto at = [](M m, store_point s, engine_point e = engine_point::unasked) {
        return decide({J::none, OUT, m, s, e});
    };
    using S = store_point;
    using E = engine_point;
    CHECK(at(M::unreachable, S::engine).where == W::engine);
    CHECK(at(M::unreachable, S::postgres).where == W::nobody);
    CHECK(at(M::unreachable, S::none).ask_engine);
    CHECK(at(M::unreachable, S::none, E::untouched).where == W::engine);
    CHECK(at(M::unreachable, S::none, E::traces).where == W::nobody);
    CHECK(at(M::unreachable, S::none, E::unreachable).where == W::nobody);
    CHECK(at(M::absent, S::none).ask_engine);
    CHECK(at(M::absent, S::none, E::untouched).where == W::engine);
    CHECK(at(M::absent, S::none, E::traces).where == W::nobody);
    CHECK(at(M::absent, S::postgres).where == W::nobody);
    CHECK(at(M::away, S::engine).on_engine == N::none);
    CHECK(at(M::away, S::none).on_engine == N::repair);
    CHECK(at(M::away, S::postgres_behind).on_engine == N::repair);
    CHECK(at(M::away, S::postgres_ahead).where == W::nobody);
    CHECK(at(M::staging, S::engine).on_marker == P::undo_stage);
    CHECK(at(M::staging, S::none).where == W::engine);
    CHECK(at(M::serving, S::none).where == W::postgres);
    CHECK(at(M::serving, S::engine_behind).where == W::postgres);
    CHECK(at(M::serving, S::engine_ahead).where == W::nobody);
    CHECK(at(M::serving, S::postgres_ahead).where == W::nobody);
    CHECK(at(M::serving, S::postgres_behind).where == W::postgres);
    CHECK(at(M::fenced, S::postgres_ahead).where == W::nobody);
    CHECK(at(M::fenced, S::none).on_marker == P::unfence);
    CHECK(at(M::fenced, S::none).where == W::postgres);
}

TEST_CASE("the leader of a fleet believes the homes, not a journal that may lack its end") {
    const auto at = [](J journal, home_kind to, M marker) {
        home_facts facts;
        facts.journal = journal;
        facts.to = to;
        facts.marker = marker;
        return decide_in_fleet(facts);
    };
    // The flip happened and the entry of it was lost.
    for (const auto journal : {J::before_fence, J::fenced})
        CHECK(at(journal, OUT, M::flipped).ends == X::forget);
    CHECK(at(J::committing, OUT, M::flipped).where == W::postgres);
    // A later move happened and is gone from the store.
    for (const auto journal : {J::before_fence, J::fenced, J::committing, J::committed})
        for (const auto to : {OUT, BACK})
            CHECK(at(journal, to, M::elsewhere).ends == X::forget);
    // A fence may follow the last entry: what it could rename is sealed before the tool is served.
    CHECK(at(J::before_fence, OUT, M::midway).on_engine == N::undo_fence);
    CHECK(at(J::before_fence, OUT, M::at_start).on_engine == N::undo_fence);
    home_facts lost;
    lost.marker = M::staging;
    lost.stored = store_point::engine;
    CHECK(decide_in_fleet(lost).on_engine == N::undo_fence);
    CHECK(decide_in_fleet(lost).on_marker == P::undo_stage);
}

TEST_CASE("no leader undoes a move that it found while the marker cannot be read") {
    for (const auto journal : {J::before_fence, J::fenced, J::committing})
        for (const auto to : {OUT, BACK})
            for (const auto marker : {M::unreachable, M::absent}) {
                home_facts facts;
                facts.journal = journal;
                facts.to = to;
                facts.marker = marker;
                const auto v = decide_in_fleet(facts);
                CHECK(v.where == W::nobody);
                CHECK(v.on_engine == N::none);
            }
}

TEST_CASE("a sidecar that follows reads, and does nothing at any home") {
    for (int m = 0; m <= static_cast<int>(M::fenced); ++m)
        for (int s = 0; s <= static_cast<int>(store_point::postgres_ahead); ++s)
            for (int e = 0; e <= static_cast<int>(engine_point::traces); ++e) {
                const home_facts facts{J::before_fence,
                                       OUT,
                                       static_cast<M>(m),
                                       static_cast<store_point>(s),
                                       static_cast<engine_point>(e)};
                const auto v = decide_to_follow(facts);
                CHECK(v.on_engine == N::none);
                CHECK(v.on_marker == P::none);
                if (facts.marker == M::fenced) CHECK(v.where == W::nobody);
                if (facts.marker == M::serving) CHECK(v.where != W::engine);
                if (facts.marker == M::staging) CHECK(v.where != W::postgres);
            }
}
