#include "router/move/decide.hpp"

#include <array>
#include <optional>

namespace hotlane::move {
namespace {

using J = journal_point;
using M = marker_point;
using S = store_point;
using E = engine_point;
using W = serve_at;
using N = engine_work;
using P = marker_work;
using X = move_end;

struct move_row {
    J journal;
    M marker;
    verdict then;
};

constexpr std::string_view unreachable_reason =
    "the PostgreSQL home does not answer; its marker decides where the tool lives";
constexpr std::string_view lost_marker_reason =
    "the marker is missing at the PostgreSQL home (restored, or another server?); `hotlane adopt` "
    "shows what each home has";
constexpr std::string_view wrong_marker_reason =
    "the marker at the PostgreSQL home contradicts the journal of a committed move";
constexpr std::string_view forget_reason = "the homes know a later move than the journal";

// Out: the engine serves until the flip. Undo needs the marker only once the flip may be sent.
constexpr std::array<move_row, 21> out_rows{{
    {J::before_fence, M::unreachable, {W::engine, N::none, P::none, X::undone}},
    {J::before_fence, M::absent, {W::engine, N::none, P::none, X::undone}},
    {J::before_fence, M::at_start, {W::engine, N::none, P::none, X::undone}},
    {J::before_fence, M::midway, {W::engine, N::none, P::undo_stage, X::undone}},
    {J::before_fence, M::flipped, {W::nobody, N::none, P::none, X::forget, false, forget_reason}},
    {J::before_fence, M::elsewhere, {W::nobody, N::none, P::none, X::forget, false, forget_reason}},
    {J::fenced, M::unreachable, {W::engine, N::undo_fence, P::none, X::undone}},
    {J::fenced, M::absent, {W::engine, N::undo_fence, P::none, X::undone}},
    {J::fenced, M::at_start, {W::engine, N::undo_fence, P::none, X::undone}},
    {J::fenced, M::midway, {W::engine, N::undo_fence, P::undo_stage, X::undone}},
    {J::fenced, M::flipped, {W::nobody, N::none, P::none, X::none, false, wrong_marker_reason}},
    {J::fenced, M::elsewhere, {W::nobody, N::none, P::none, X::none, false, wrong_marker_reason}},
    {J::committing,
     M::unreachable,
     {W::nobody, N::none, P::none, X::none, false, unreachable_reason}},
    {J::committing, M::absent, {W::nobody, N::none, P::none, X::none, false, lost_marker_reason}},
    // An earlier recovery won the row; the flip can only fail now.
    {J::committing, M::at_start, {W::engine, N::undo_fence, P::none, X::undone}},
    {J::committing, M::midway, {W::engine, N::undo_fence, P::undo_stage, X::undone}},
    {J::committing, M::flipped, {W::postgres, N::none, P::none, X::done}},
    {J::committing,
     M::elsewhere,
     {W::nobody, N::none, P::none, X::none, false, wrong_marker_reason}},
    {J::committed, M::flipped, {W::postgres, N::none, P::none, X::done}},
    {J::committed,
     M::unreachable,
     {W::nobody, N::none, P::none, X::none, false, unreachable_reason}},
    {J::committed, M::absent, {W::nobody, N::none, P::none, X::none, false, lost_marker_reason}},
}};

// Back: PostgreSQL serves until the fence, the engine after the flip and once it is open.
constexpr std::array<move_row, 21> back_rows{{
    {J::before_fence,
     M::unreachable,
     {W::nobody, N::none, P::none, X::none, false, unreachable_reason}},
    {J::before_fence, M::absent, {W::nobody, N::none, P::none, X::none, false, lost_marker_reason}},
    {J::before_fence, M::at_start, {W::postgres, N::none, P::none, X::undone}},
    {J::before_fence, M::midway, {W::postgres, N::none, P::unfence, X::undone}},
    {J::before_fence, M::flipped, {W::nobody, N::none, P::none, X::forget, false, forget_reason}},
    {J::before_fence, M::elsewhere, {W::nobody, N::none, P::none, X::forget, false, forget_reason}},
    {J::fenced, M::unreachable, {W::nobody, N::none, P::none, X::none, false, unreachable_reason}},
    {J::fenced, M::absent, {W::nobody, N::none, P::none, X::none, false, lost_marker_reason}},
    {J::fenced, M::at_start, {W::postgres, N::none, P::none, X::undone}},
    {J::fenced, M::midway, {W::postgres, N::none, P::unfence, X::undone}},
    {J::fenced, M::flipped, {W::nobody, N::none, P::none, X::none, false, wrong_marker_reason}},
    {J::fenced, M::elsewhere, {W::nobody, N::none, P::none, X::none, false, wrong_marker_reason}},
    {J::committing,
     M::unreachable,
     {W::nobody, N::none, P::none, X::none, false, unreachable_reason}},
    {J::committing, M::absent, {W::nobody, N::none, P::none, X::none, false, lost_marker_reason}},
    {J::committing, M::at_start, {W::postgres, N::none, P::none, X::undone}},
    {J::committing, M::midway, {W::postgres, N::none, P::unfence, X::undone}},
    {J::committing, M::flipped, {W::engine, N::open_staged, P::none, X::done}},
    {J::committing,
     M::elsewhere,
     {W::nobody, N::none, P::none, X::none, false, wrong_marker_reason}},
    {J::committed, M::unreachable, {W::engine, N::open_staged, P::none, X::done}},
    {J::committed, M::flipped, {W::engine, N::open_staged, P::none, X::done}},
    {J::committed, M::absent, {W::engine, N::open_staged, P::none, X::done}},
}};

// No unfinished move. An absent `stored` or `engine` fits anything.
struct rest_row {
    M marker;
    std::optional<S> stored;
    std::optional<E> engine;
    verdict then;
};

constexpr std::string_view never_reached_reason =
    "neither home can tell where the tool lives: no record, and PostgreSQL does not answer";
constexpr std::string_view traces_reason =
    "the engine bears traces of a move and no marker is known; PostgreSQL must tell";
constexpr std::string_view restored_reason =
    "the marker has a lower epoch than the store: the PostgreSQL home was restored; `hotlane "
    "adopt` shows what each home has, and ends it";

constexpr std::string_view under_way_reason =
    "the tool is on its way to the engine; the leader of the fleet says when it is there";

constexpr verdict wait(std::string_view reason) {
    return {W::nobody, N::none, P::none, X::none, false, reason};
}
constexpr verdict ask() {
    return {W::nobody, N::none, P::none, X::none, true, {}};
}

constexpr std::array<rest_row, 24> rest_rows{{
    {M::unreachable, S::engine, {}, {W::engine}},
    {M::unreachable, S::postgres, {}, wait(unreachable_reason)},
    {M::unreachable, S::none, E::unasked, ask()},
    {M::unreachable, S::none, E::untouched, {W::engine}},
    {M::unreachable, S::none, E::traces, wait(traces_reason)},
    {M::unreachable, S::none, {}, wait(never_reached_reason)},
    {M::absent, S::postgres, {}, wait(lost_marker_reason)},
    {M::absent, S::engine, {}, {W::engine}},
    {M::absent, S::none, E::unasked, ask()},
    {M::absent, S::none, E::traces, wait(lost_marker_reason)},
    {M::absent, S::none, {}, {W::engine}},
    {M::away, S::engine, {}, {W::engine}},
    {M::away, S::engine_ahead, {}, {W::engine}},
    {M::away, S::postgres_ahead, {}, wait(restored_reason)},
    {M::away, {}, {}, {W::engine, N::repair}},
    {M::staging, S::engine_ahead, {}, wait(restored_reason)},
    {M::staging, S::postgres_ahead, {}, wait(restored_reason)},
    {M::staging, {}, {}, {W::engine, N::repair, P::undo_stage}},
    {M::serving, S::engine_ahead, {}, wait(restored_reason)},
    {M::serving, S::postgres_ahead, {}, wait(restored_reason)},
    {M::serving, {}, {}, {W::postgres}},
    {M::fenced, S::engine_ahead, {}, wait(restored_reason)},
    {M::fenced, S::postgres_ahead, {}, wait(restored_reason)},
    {M::fenced, {}, {}, {W::postgres, N::none, P::unfence}},
}};

}  // namespace

verdict decide(const home_facts& facts) noexcept {
    if (facts.journal != journal_point::none) {
        const auto& rows = facts.to == policy::home_kind::postgres ? out_rows : back_rows;
        for (const auto& r : rows)
            if (r.journal == facts.journal && r.marker == facts.marker) return r.then;
        return wait(wrong_marker_reason);
    }
    for (const auto& r : rest_rows)
        if (r.marker == facts.marker && (!r.stored || *r.stored == facts.stored) &&
            (!r.engine || *r.engine == facts.engine))
            return r.then;
    return wait(wrong_marker_reason);
}

verdict decide_in_fleet(const home_facts& facts) noexcept {
    verdict v = decide(facts);
    const bool later_move =
        facts.marker == marker_point::elsewhere ||
        (facts.journal == journal_point::fenced && facts.marker == marker_point::flipped);
    if (facts.journal != journal_point::none && later_move)
        return {W::nobody, N::none, P::none, X::forget, false, forget_reason};
    // Without a marker nothing says that the flip was not sent after the last entry kept.
    const bool blind =
        facts.marker == marker_point::unreachable || facts.marker == marker_point::absent;
    if (facts.journal != journal_point::none && blind && v.ends == move_end::undone)
        return wait(unreachable_reason);
    const bool undoes_out = v.ends == move_end::undone && facts.to == policy::home_kind::postgres;
    const bool undoes_stage =
        facts.journal == journal_point::none && v.on_marker == marker_work::undo_stage;
    if (undoes_out || undoes_stage) v.on_engine = engine_work::undo_fence;
    return v;
}

verdict decide_to_follow(const home_facts& facts) noexcept {
    home_facts seen = facts;
    seen.journal = journal_point::none;
    if (seen.marker == marker_point::fenced) return wait(under_way_reason);
    verdict v = decide(seen);
    v.on_engine = engine_work::none;
    v.on_marker = marker_work::none;
    return v;
}

}  // namespace hotlane::move
