// Reads the homes, decides (decide.hpp), and does what was decided. Used after a move that failed,
// at start, and whenever the caller tries again: every step can be repeated.
#include <algorithm>

#include <fmt/format.h>

#include "router/move/decide.hpp"
#include "router/move/engine_names.hpp"
#include "router/move/followed_tables.hpp"
#include "router/move/job.hpp"
#include "router/move/names.hpp"
#include "router/move/phase.hpp"
#include "router/move/postgres_home.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;

constexpr int readings_max = 4;              // a marker that changes under our hands is read again
constexpr std::uint32_t strays_assumed = 3;  // sealed where no journal tells how many there were

struct scene {
    context& with;
    placement::move_record* record{nullptr};
    journal_of written_by{journal_of::another};
    bool only_reads{false};
    std::optional<placement::placement_record> stored{};
    std::unique_ptr<home_link> postgres{}, engine{};
    std::optional<marker> mark{};
    home_facts facts{};
    std::uint64_t leader{0};  // what the marker was claimed with
    std::string trouble{};    // why a home did not answer
    settled out{};
};

home_link* engine_of(scene& s) {
    if (s.engine && s.engine->alive()) return s.engine.get();
    auto opened = s.with.homes.open(home_kind::engine, s.with.limit.connect);
    if (!opened) {
        s.trouble = "engine: " + opened.error().message;
        return nullptr;
    }
    s.engine = std::move(*opened);
    s.engine->set_deadline(s.with.limit.statement);
    return s.engine.get();
}

store_point point_of_store(const std::optional<placement::placement_record>& stored,
                           const std::optional<marker>& mark) {
    if (!stored) return store_point::none;
    const bool engine = stored->home == home_kind::engine;
    if (mark && stored->epoch < mark->epoch)
        return engine ? store_point::engine_behind : store_point::postgres_behind;
    if (mark && stored->epoch > mark->epoch)
        return engine ? store_point::engine_ahead : store_point::postgres_ahead;
    return engine ? store_point::engine : store_point::postgres;
}

marker_point point_in_move(const placement::move_record& r, const marker& mark) {
    const bool out = r.to == home_kind::postgres;
    const auto before = out ? marker_state::away : marker_state::serving;
    const auto middle = out ? marker_state::staging : marker_state::fenced;
    const auto after = out ? marker_state::serving : marker_state::away;
    if (mark.state == middle && mark.move == r.id) return marker_point::midway;
    if (mark.state == after && mark.epoch == r.epoch + 1 && mark.move == r.id)
        return marker_point::flipped;
    if (mark.state == before && mark.epoch == r.epoch) return marker_point::at_start;
    return marker_point::elsewhere;
}

marker_point point_at_rest(const marker& mark) {
    switch (mark.state) {
        case marker_state::away:
            return marker_point::away;
        case marker_state::staging:
            return marker_point::staging;
        case marker_state::serving:
            return marker_point::serving;
        case marker_state::fenced:
            return marker_point::fenced;
    }
    return marker_point::elsewhere;
}

bool may_work(const context& with) {
    return !with.around.others || with.around.others->leads();
}

marker_point read_marker_point(scene& s) {
    s.mark.reset();
    if (!s.postgres || !s.postgres->alive()) {
        auto opened = s.with.homes.open(home_kind::postgres, s.with.limit.connect);
        if (!opened) {
            s.trouble = "PostgreSQL: " + opened.error().message;
            return marker_point::unreachable;
        }
        s.postgres = std::move(*opened);
        s.postgres->set_deadline(s.with.limit.statement);
    }
    if (s.leader == 0 && !s.only_reads && may_work(s.with)) {
        if (auto mine = claim(s.with, *s.postgres, s.leader); !mine) {
            s.trouble = "PostgreSQL: " + mine.error().message;
            return marker_point::unreachable;
        }
    }
    auto mark = read_marker(*s.postgres, s.with.tool.name, s.record != nullptr);
    if (!mark) {
        s.trouble = "PostgreSQL: " + mark.error().message;
        return marker_point::unreachable;
    }
    s.mark = *mark;
    if (!s.mark) return marker_point::absent;
    s.mark->leader = s.leader;
    return s.record ? point_in_move(*s.record, *s.mark) : point_at_rest(*s.mark);
}

engine_point read_engine_point(scene& s) {
    home_link* engine = engine_of(s);
    if (!engine) return engine_point::unreachable;
    auto catalog = read_engine_catalog(*engine);
    if (!catalog) return engine_point::unreachable;
    for (const auto& [name, columns] : *catalog)
        if (is_own_name(name)) return engine_point::traces;
    return engine_point::untouched;
}

// True: done, or of no consequence.
enum class worked { yes, again, no };

worked do_marker_work(scene& s, marker_work work) {
    if (work == marker_work::none) return worked::yes;
    const pg_job job{*s.postgres, s.with.limit.lock};
    auto changed = work == marker_work::undo_stage ? undo_stage(job, s.with.tool.name, *s.mark)
                                                   : unfence_tables(job, s.with.tool.name, *s.mark);
    if (changed) return *changed ? worked::yes : worked::again;
    s.trouble = "PostgreSQL: " + changed.error().message;
    s.postgres.reset();  // its transaction ends with it
    // The flip of a move out that never reached `commit` was never sent: the engine may serve
    // whatever the marker says, and the staging is tidied before the next move.
    const bool flip_impossible = s.record && s.facts.to == home_kind::postgres &&
                                 (s.facts.journal == journal_point::before_fence ||
                                  s.facts.journal == journal_point::fenced);
    return flip_impossible ? worked::yes : worked::no;
}

names_job names_of(scene& s) {
    names_job job;
    if (s.record) {
        const plan p = plan_from_json(s.record->plan);
        job = {s.record->id, p.names(), p.strays, {}, {}};
        job.before_stray = [&s](const names_job& now) {
            s.record->plan["strays"] = now.strays;
            return write_journal(s.with, *s.record);
        };
        return job;
    }
    job.move = s.mark ? s.mark->move : std::string();
    if (s.mark) job.tables = s.mark->tables;
    job.strays.assign(job.tables.size(), strays_assumed);
    return job;
}

// Without a journal: the names on the engine tell which move they are of, and its direction.
answer<void> repair(home_link& engine, names_job& job) {
    if (!is_move_id(job.move)) return {};
    auto catalog = read_engine_catalog(engine);
    if (!catalog) return tl::unexpected(catalog.error());
    bool out = false, back = false;
    for (std::size_t i = 0; i < job.tables.size(); ++i) {
        out = out ||
              what_stands(*catalog, engine_name(job.move, part::fenced, i)) != stands::nothing ||
              what_stands(*catalog, engine_name(job.move, part::spare, i)) != stands::nothing;
        back =
            back || what_stands(*catalog, engine_name(job.move, part::staged, i)) == stands::data;
    }
    if (out) return undo_fence(engine, job);
    if (back) return open_staged(engine, job);
    return {};
}

bool do_engine_work(scene& s, engine_work work) {
    if (work == engine_work::none) return true;
    names_job job = names_of(s);
    if (work == engine_work::repair && !is_move_id(job.move)) return true;
    home_link* engine = engine_of(s);
    if (!engine) return false;
    answer<void> done;
    switch (work) {
        case engine_work::undo_fence:
            done = undo_fence(*engine, job);
            break;
        case engine_work::open_staged:
            done = open_staged(*engine, job);
            break;
        case engine_work::repair:
            done = repair(*engine, job);
            break;
        case engine_work::none:
            break;
    }
    s.out.alarms.insert(s.out.alarms.end(), job.alarms.begin(), job.alarms.end());
    if (!done) {
        s.trouble = "engine: " + done.error().message;
        return false;
    }
    const std::uint64_t epoch = s.record ? s.record->epoch : s.mark ? s.mark->epoch : 0;
    const bool flipped = work == engine_work::open_staged && s.record;
    // A hint only: nothing depends on it.
    static_cast<void>(write_hint(
        *engine, s.with.tool.name, {job.move, "serving", epoch + (flipped ? 1U : 0U)}, "postgres"));
    return true;
}

void close_record(scene& s, const verdict& v) {
    if (!s.record || v.ends == move_end::none) return;
    s.record->outcome = v.ends == move_end::done ? "done" : "undone";
    if (v.ends == move_end::done) {
        s.record->phase = std::string(to_string(phase::done));
        s.record->reason.clear();
    }
    if (v.ends != move_end::done && s.record->reason.empty())
        s.record->reason =
            v.ends == move_end::forget ? std::string(v.reason) : "hotlane ended while the move ran";
    for (const auto& alarm : s.out.alarms)
        s.record->reason += (s.record->reason.empty() ? "" : "; ") + alarm;
    s.record->ended = s.with.around.now();
}

// A copy that ran ahead leaves a publication; its slot goes with its session, unless that hangs
// somewhere. Neither is needed again: no move of this tool is under way here. What cannot be
// dropped is told, and tried again when what the move left is cleaned.
void drop_followers(scene& s) {
    if (!s.postgres || !s.postgres->alive() || !s.mark) return;
    const auto left = drop_decoding(*s.postgres);
    const auto what = left ? *left : "slots are unknown: " + left.error().message;
    if (!what.empty()) s.out.alarms.push_back(what);
}

void set_place(scene& s, const verdict& v) {
    s.out.known = true;
    s.out.where = v.where == serve_at::engine ? home_kind::engine : home_kind::postgres;
    if (s.record) {
        const bool moved = v.ends == move_end::done;
        s.out.epoch = s.record->epoch + (moved ? 1U : 0U);
        s.out.move = moved ? s.record->id : std::string();
    } else if (s.mark) {
        s.out.epoch = s.mark->epoch;
        s.out.move = s.mark->move;
    } else {
        s.out.epoch = s.stored ? s.stored->epoch : 1;
        s.out.move = s.stored ? s.stored->move : std::string();
    }
}

// The store learns it; the homes know it already, so a store that refuses stops nothing.
void tell_store(scene& s) {
    if (s.stored && s.stored->epoch >= s.out.epoch) return;
    s.with.steps.before("journal placement");
    static_cast<void>(s.with.around.store.put_placement(
        {s.with.tool.name, s.out.where, s.out.epoch, s.with.around.now(), s.out.move}));
    s.with.steps.sent("journal placement");
}

settled not_yet(scene& s, std::string_view reason) {
    s.out.known = false;
    s.out.reason = std::string(reason);
    if (!s.trouble.empty()) s.out.reason += (reason.empty() ? "" : "; ") + s.trouble;
    return s.out;
}

void gather(scene& s) {
    s.facts = {};
    s.facts.marker = read_marker_point(s);
    if (s.record) {
        const auto p = phase_from(s.record->phase);
        s.facts.journal = p ? point_of(*p) : journal_point::committing;
        s.facts.to = s.record->to;
    }
    s.facts.stored = point_of_store(s.stored, s.mark);
}

verdict decide_here(const scene& s) {
    if (s.only_reads) return decide_to_follow(s.facts);
    const bool is_whole = s.record && s.written_by == journal_of::this_process;
    return s.with.around.others && !is_whole ? decide_in_fleet(s.facts) : decide(s.facts);
}

// The marker turns before the engine's names do (and, on the way out, after them): for that moment
// tombstones stand at an engine that the marker names.
bool engine_is_open(scene& s) {
    home_link* engine = engine_of(s);
    if (!engine) return false;
    const auto catalog = read_engine_catalog(*engine);
    if (!catalog) {
        s.trouble = "engine: " + catalog.error().message;
        return false;
    }
    return std::none_of(catalog->begin(), catalog->end(), [&](const auto& table) {
        return !is_own_name(table.first) && what_stands(*catalog, table.first) == stands::ours;
    });
}

// Where the homes say that the tool lives, for a sidecar that changes nothing there. It can do
// without the store: the homes decide anyway.
settled follow(scene& s) {
    s.record = nullptr;
    s.only_reads = true;
    // A store that is away may swallow the question for seconds.
    if (s.with.around.tools.word.holds())
        if (auto stored = s.with.around.store.placement(s.with.tool.name)) s.stored = *stored;
    gather(s);
    verdict v = decide_here(s);
    if (v.ask_engine) {
        s.facts.engine = read_engine_point(s);
        v = decide_here(s);
    }
    if (v.where == serve_at::nobody) return not_yet(s, v.reason);
    if (s.with.around.doubted && v.where == serve_at::engine && !engine_is_open(s))
        return not_yet(s, "a move is under way");
    set_place(s, v);
    s.out.confirmed = s.mark.has_value();
    return s.out;
}

}  // namespace

settled look(context& with) {
    scene s{with};
    return follow(s);
}

settled resolve(context& with, placement::move_record* unfinished, journal_of written_by) {
    scene s{with, unfinished, written_by};
    if (!may_work(with)) return follow(s);
    auto stored = with.around.store.placement(with.tool.name);
    if (!stored) return not_yet(s, "the state store does not answer: " + stored.error().what);
    s.stored = *stored;
    for (int reading = 0; reading < readings_max; ++reading) {
        s.trouble.clear();
        gather(s);
        verdict v = decide_here(s);
        if (v.ask_engine) {
            s.facts.engine = read_engine_point(s);
            v = decide_here(s);
        }
        if (v.ends == move_end::forget) {
            close_record(s, v);
            if (!write_journal(with, *s.record)) return not_yet(s, "the journal cannot be written");
            s.record = nullptr;
            continue;
        }
        if (v.where == serve_at::nobody) return not_yet(s, v.reason);
        const auto marked = do_marker_work(s, v.on_marker);
        if (marked == worked::again) continue;
        if (marked == worked::no) return not_yet(s, "");
        if (!do_engine_work(s, v.on_engine)) return not_yet(s, "");
        drop_followers(s);
        set_place(s, v);
        tell_store(s);
        close_record(s, v);
        if (s.record) static_cast<void>(write_journal(with, *s.record));
        return s.out;
    }
    return not_yet(s, "the marker at the PostgreSQL home does not come to rest");
}

}  // namespace hotlane::move
