// A leader: it looks at every home, moves tools, and finishes or undoes what others left.
#include "world.hpp"

namespace sim {

using move::journal_point;
using placement::follow_event;
using placement::lead_event;
using placement::lead_state;

namespace {

placement::moment moment_of(ms t) {
    return placement::moment{} + std::chrono::milliseconds(t);
}

move::marker_point point_in_move(const record& r, const marker& mark) {
    using M = move::marker_point;
    const bool out = r.to == home_kind::postgres;
    const auto before = out ? marker_state::away : marker_state::serving;
    const auto middle = out ? marker_state::staging : marker_state::fenced;
    const auto after = out ? marker_state::serving : marker_state::away;
    if (mark.state == middle && mark.move == r.move) return M::midway;
    if (mark.state == after && mark.epoch == r.epoch + 1 && mark.move == r.move) return M::flipped;
    if (mark.state == before && mark.epoch == r.epoch) return M::at_start;
    return M::elsewhere;
}

move::marker_point point_at_rest(const marker& mark) {
    using M = move::marker_point;
    constexpr M points[] = {M::away, M::staging, M::serving, M::fenced};
    return points[static_cast<int>(mark.state)];
}

}  // namespace

bool world::leads(const sidecar& s) const {
    const bool state = s.state == lead_state::settling || s.state == lead_state::leading;
    return state && s.number > 0 && s.session > 0;
}

void world::settle(sidecar& s) {
    s.to_settle = tools;
    for (int t = 0; t < tools; ++t) {
        if (s.busy.count(t) > 0) {
            --s.to_settle;  // its own move, from an earlier time as the leader, ends by itself
            continue;
        }
        s.busy.insert(t);
        auto j = std::make_shared<job>();
        j->tool = t;
        j->own = false;
        again(s, j, false);
    }
    if (s.to_settle == 0) change(s, lead_event::settled);
}

// Reads the journal of the tool, then the homes.
void world::again(sidecar& s, std::shared_ptr<job> j, bool own_record) {
    if (!leads(s)) return done(s, j->tool);
    if (own_record) return resolve(s, j, true);
    j->own = false;
    auto found = std::make_shared<bool>(false);
    ask_store(
        s,
        [j, found](store_data& d) {
            const auto there = d.unfinished.find(j->tool);
            *found = there != d.unfinished.end();
            if (*found) j->what = there->second;
            return true;
        },
        [this, &s, j, found](result got) {
            if (got != result::ok || !leads(s)) return done(s, j->tool);
            resolve(s, j, *found);
        });
}

void world::done(sidecar& s, int tool) {
    s.busy.erase(tool);
    if (s.state == lead_state::settling && --s.to_settle <= 0) change(s, lead_event::settled);
}

void world::lead_on(sidecar& s) {
    on(s, 300, [this, &s] { lead_on(s); });
    if (!leads(s)) return;
    auto beats = std::make_shared<std::map<std::string, std::uint64_t>>();
    ask_store(
        s,
        [beats](store_data& d) { return *beats = d.beats, true; },
        [this, &s, beats](result got) {
            if (got != result::ok) return;
            for (const auto& [id, beat] : *beats)
                s.others.saw(id, beat, moment_of(now_));
        });
    for (int t = 0; t < tools; ++t) {
        if (s.busy.count(t) > 0) continue;
        // A hold that was left behind, or a record: the homes are asked again.
        auto left = std::make_shared<bool>(false);
        ask_store(
            s,
            [t, left](store_data& d) {
                const auto h = d.holds.find(t);
                *left = (h != d.holds.end() && h->second.on) || d.unfinished.count(t) > 0;
                return true;
            },
            [this, &s, t, left](result got) {
                if (got != result::ok || !*left || !leads(s) || s.busy.count(t) > 0) return;
                s.busy.insert(t);
                auto j = std::make_shared<job>();
                j->tool = t;
                j->own = false;
                again(s, j, false);
            });
        const bool quiet = s.state == lead_state::leading && s.busy.count(t) == 0;
        if (quiet && !healing_ && chance(15)) begin_move(s, t);
    }
}

void world::begin_move(sidecar& s, int tool) {
    const auto& f = s.tools[tool];
    if (f.state() != placement::follow_state::serving) return;
    s.busy.insert(tool);
    auto j = std::make_shared<job>();
    j->tool = tool;
    j->what.move =
        fault_ == known_fault::name_used_twice ? "m" : "m" + std::to_string(next_move_++);
    j->what.to = f.place()->home == home_kind::engine ? home_kind::postgres : home_kind::engine;
    j->what.epoch = f.place()->epoch;
    go(s, j, 0);
}

void world::journal(sidecar& s, std::shared_ptr<job> j, journal_point point, then next) {
    as_leader(
        s,
        [this, j, point](store_data& d) {
            auto kept = j->what;
            kept.point = point;
            d.unfinished[j->tool] = kept;
        },
        [j, point, next](result got) {
            // What was asked may be there; what this process did is what counts for itself.
            if (got == result::ok) j->what.point = point;
            next(got);
        });
}

void world::claim(sidecar& s, std::shared_ptr<job> j, std::uint64_t above, int tries, then next) {
    if (!leads(s) || tries == 0) return on(s, 1, [next] { next(result::refused); });
    const auto take = [this, &s, j, tries, next](std::uint64_t mine) {
        ask(
            s,
            homes_node,
            [this, j, mine] {
                const bool claimed = postgres_[j->tool].claim(mine);
                j->seen = postgres_[j->tool].mark;
                return claimed;
            },
            [this, &s, j, mine, tries, next](result got) {
                if (got == result::refused) return claim(s, j, j->seen.leader, tries - 1, next);
                if (got == result::ok) j->leader = mine;
                next(got);
            });
    };
    if (s.number > above) return take(s.number);
    auto raised = std::make_shared<std::uint64_t>(0);
    as_leader(
        s,
        [raised, above](store_data& d) {
            d.number = std::max(d.number, above) + 1;
            *raised = d.number;
        },
        [&s, raised, take, next](result got) {
            if (got != result::ok) return next(result::refused);
            s.number = *raised;
            take(*raised);
        });
}

void world::hold(sidecar& s, std::shared_ptr<job> j, then next) {
    as_leader(
        s,
        [this, j](store_data& d) {
            d.holds[j->tool] = {j->what.move, true};
            d.acks.clear();
            announce();
        },
        [this, &s, j, next](result got) {
            if (got != result::ok) return next(got);
            step(s, j->tool, {follow_event::hold, {}, 0, j->what.move});
            auto members = std::make_shared<std::map<std::string, std::uint64_t>>();
            ask_store(
                s,
                [members](store_data& d) { return *members = d.beats, true; },
                [this, &s, j, members, next](result listed) {
                    if (listed != result::ok) return next(listed);
                    std::vector<std::string> ids;
                    for (const auto& [id, beat] : *members) {
                        if (id != s.id) ids.push_back(id);
                        s.others.saw(id, beat, moment_of(now_));
                    }
                    auto round = std::make_shared<placement::hold_round>(std::move(ids));
                    wait_for_drain(s, j, round, now_ + 2 * lease_ms, next);
                });
        });
}

void world::wait_for_drain(sidecar& s,
                           std::shared_ptr<job> j,
                           std::shared_ptr<placement::hold_round> round,
                           ms until,
                           then next) {
    const bool here = s.tools[j->tool].state() == placement::follow_state::drained;
    if (here && round->drained(s.others, moment_of(now_))) return next(result::ok);
    if (now_ > until || !leads(s)) return next(result::refused);
    auto seen = std::make_shared<store_data>();
    on(s, 50, [this, &s, j, round, until, next, seen] {
        ask_store(
            s,
            [seen](store_data& d) { return *seen = d, true; },
            [this, &s, j, round, until, next, seen](result got) {
                if (got != result::ok) return next(result::refused);
                for (const auto& [id, beat] : seen->beats) {
                    s.others.saw(id, beat, moment_of(now_));
                    if (seen->acks.count(j->what.move + "/" + id) > 0) round->acked(id);
                }
                wait_for_drain(s, j, round, until, next);
            });
    });
}

// The phases of a move; whatever is not `ok` leads to resolve(), as in router/move.
void world::go(sidecar& s, std::shared_ptr<job> j, std::size_t phase) {
    const bool out = j->what.to == home_kind::postgres;
    auto& e = engine_[j->tool];
    auto& p = postgres_[j->tool];
    const auto on_home = [this, &s](std::function<bool()> work, then next) {
        ask(s, homes_node, std::move(work), std::move(next));
    };
    const std::vector<std::function<void(then)>> phases{
        [&, j](then n) { journal(s, j, journal_point::before_fence, n); },
        [&, j](then n) { claim(s, j, 0, 3, n); },
        [&, j, out](then n) {
            on_home(
                [&e, &p, j, out] {
                    if (j->seen.epoch != j->what.epoch) return false;
                    if (out) return p.stage(j->seen, j->what.move, j->leader);
                    e.staged[j->what.move] = {};
                    return true;
                },
                n);
        },
        [&, j](then n) { hold(s, j, n); },
        [&, j](then n) { journal(s, j, journal_point::fenced, n); },
        [&, j, out](then n) {
            on_home(
                [&e, &p, j, out] {
                    return out ? e.fence(j->what.move) : p.fence(j->seen, j->what.move, j->leader);
                },
                n);
        },
        [&, j, out](then n) {
            on_home(
                [&e, &p, j, out] {
                    const auto& from = out ? e.kept[j->what.move] : p.real;
                    if (!from) return false;
                    if (out) return p.copy(j->what.move, j->leader, *from);
                    e.staged[j->what.move] = *from;
                    return true;
                },
                n);
        },
        [&, j](then n) {
            if (fault_ == known_fault::release_before_marker)
                finish(s, j, {j->what.to, j->what.epoch + 1}, false);
            journal(s, j, journal_point::committing, n);
        },
        [&, j, out](then n) {
            on_home(
                [&p, j, out] {
                    return out ? p.flip_out(j->what.move, j->leader)
                               : p.flip_back(j->what.move, j->leader);
                },
                [this, j, n](result got) {
                    if (got == result::unknown && fault_ == known_fault::lost_flip_is_failure)
                        j->what.point = journal_point::fenced;
                    n(got);
                });
        },
        [&, j, out](then n) {
            if (out) return n(result::ok);
            on_home([&e, j] { return e.open(j->what.move); }, n);
        },
    };
    if (!leads(s)) return done(s, j->tool);
    if (phase == phases.size()) {
        ++moves_done_;
        return finish(s, j, {j->what.to, j->what.epoch + 1}, true);
    }
    phases[phase]([this, &s, j, phase](result got) {
        if (got == result::ok) return go(s, j, phase + 1);
        again(s, j, j->what.point != journal_point::none);
    });
}

void world::resolve(sidecar& s, std::shared_ptr<job> j, bool has_record) {
    const bool lies = fault_ == known_fault::lost_flip_is_failure && j->own &&
                      j->what.point == journal_point::fenced;
    if (lies) return decide(s, j, has_record, false);  // never asks the marker
    claim(s, j, 0, 3, [this, &s, j, has_record](result claimed) {
        if (claimed == result::refused) {
            on(s, 300, [this, &s, j, has_record] { again(s, j, j->own && has_record); });
            return;
        }
        decide(s, j, has_record, claimed == result::ok);
    });
}

void world::decide(sidecar& s, std::shared_ptr<job> j, bool has_record, bool reached) {
    move::home_facts facts;
    facts.to = j->what.to;
    if (has_record) facts.journal = j->what.point;
    if (reached)
        facts.marker = has_record ? point_in_move(j->what, j->seen) : point_at_rest(j->seen);
    const auto& known = s.tools[j->tool].place();
    if (known) {
        using S = move::store_point;
        const bool at_engine = known->home == home_kind::engine;
        facts.stored = at_engine ? S::engine : S::postgres;
        if (reached && known->epoch < j->seen.epoch)
            facts.stored = at_engine ? S::engine_behind : S::postgres_behind;
        if (reached && known->epoch > j->seen.epoch)
            facts.stored = at_engine ? S::engine_ahead : S::postgres_ahead;
    }
    const auto v = j->own && has_record ? move::decide(facts) : move::decide_in_fleet(facts);
    if (v.ends == move::move_end::forget) {
        as_leader(
            s,
            [j](store_data& d) { d.unfinished.erase(j->tool); },
            [this, &s, j](result) {
                j->own = false;
                again(s, j, false);
            });
        return;
    }
    if (v.where == move::serve_at::nobody) {
        on(s, 300, [this, &s, j, has_record] { again(s, j, j->own && has_record); });
        return;
    }
    work_at_homes(s, j, has_record, v);
}

void world::work_at_homes(sidecar& s, std::shared_ptr<job> j, bool has_record, move::verdict v) {
    const auto name = has_record ? j->what.move : j->seen.move;
    const auto retry = [this, &s, j, has_record] {
        on(s, 100, [this, &s, j, has_record] { again(s, j, j->own && has_record); });
    };
    const auto at_engine = [this, &s, j, has_record, v, name, retry](result got) {
        if (got != result::ok) return retry();
        ask(
            s,
            homes_node,
            [this, j, v, name] {
                auto& e = engine_[j->tool];
                switch (v.on_engine) {
                    case move::engine_work::none:
                        return true;
                    case move::engine_work::undo_fence:
                        return e.undo(name);
                    case move::engine_work::open_staged:
                        return e.open(name);
                    case move::engine_work::repair: {
                        const auto kept = e.kept.find(name);
                        if (kept != e.kept.end() && kept->second) return e.undo(name);
                        return e.staged.count(name) == 0 || e.real ? true : e.open(name);
                    }
                }
                return false;
            },
            [this, &s, j, has_record, v, retry](result worked) {
                if (worked != result::ok) return retry();
                const bool moved = v.ends == move::move_end::done;
                const bool engine = v.where == move::serve_at::engine;
                const auto epoch = has_record ? j->what.epoch + (moved ? 1U : 0U) : j->seen.epoch;
                moves_done_ += moved ? 1 : 0;
                finish(s, j, {engine ? home_kind::engine : home_kind::postgres, epoch}, true);
            });
    };
    if (v.on_marker == move::marker_work::none) return at_engine(result::ok);
    ask(
        s,
        homes_node,
        [this, j, v, name] {
            auto& p = postgres_[j->tool];
            return v.on_marker == move::marker_work::undo_stage ? p.undo_stage(name, j->leader)
                                                                : p.unfence(name, j->leader);
        },
        at_engine);
}

// Told to the store first, then released everywhere.
void world::finish(sidecar& s, std::shared_ptr<job> j, place where, bool ends) {
    as_leader(
        s,
        [this, j, where, ends](store_data& d) {
            if (fault_ != known_fault::release_before_marker &&
                where.epoch > postgres_[j->tool].mark.epoch)
                fail("the store was told of an epoch that no home has");
            auto& there = d.placements[j->tool];
            if (where.epoch > there.epoch) there = where;
            auto& h = d.holds[j->tool];
            h.on = false;
            if (ends) d.unfinished.erase(j->tool);
            announce();
        },
        [this, &s, j, where, ends](result got) {
            if (got == result::ok)
                step(s, j->tool, {follow_event::placed, where.home, where.epoch, {}});
            if (got == result::ok && s.tools[j->tool].held())
                step(s, j->tool, {follow_event::release, {}, 0, s.tools[j->tool].move()});
            if (ends) done(s, j->tool);
        });
}

}  // namespace sim
