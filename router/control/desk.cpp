#include "router/control/desk.hpp"

#include <algorithm>
#include <utility>

#include "router/control/json.hpp"
#include "router/control/repeats.hpp"

namespace hotlane::control {

namespace {

constexpr policy::duration save_every{10'000};
constexpr const char* document_kind = "runbook";
constexpr std::size_t unkept_max = 10'000;  // DDL that waits for the store

std::string_view to_word(policy::move_end end) {
    switch (end) {
        case policy::move_end::ok:
            return "done";
        case policy::move_end::failed:
            return "undone";
        case policy::move_end::refused:
            return "refused";
    }
    return "?";
}

std::string reason_of(const move::report& ended) {
    if (ended.refusals.empty()) return ended.moved ? "moved" : "undone";
    const auto& first = ended.refusals.front();
    return first.code + ": " + first.message;
}

}  // namespace

desk::desk(context& in,
           fleet& all,
           mover& moves,
           std::shared_ptr<placement::tool_entry> entry,
           policy::settings with)
    : in_(in),
      all_(all),
      moves_(moves),
      entry_(std::move(entry)),
      policy_(entry_->name, std::move(with)) {
    if (in_.may_decide()) restore();
    entry_->keep_seen = [this] { take_observations(); };
    set_retry();
}

void desk::restore() {
    const auto found = in_.store.document(document_kind, name());
    if (!found) {
        in_.log(severity::error,
                "state_unreadable",
                {{"tool", name()}, {"reason", found.error().what}});
        return;
    }
    if (!found->has_value()) return;
    auto state = state_from_json(**found);
    if (!state) {
        in_.log(severity::error, "state_unreadable", {{"tool", name()}, {"reason", state.error()}});
        return;
    }
    policy_ = policy::tool_policy(name(), policy_.current_settings(), std::move(*state));
    tell_fleet();
}

policy::traffic desk::traffic() const {
    auto out = placement::traffic_of(entry_->counted);
    const auto others = placement::traffic_of(entry_->elsewhere);  // all zero without a fleet
    out.transactions += others.transactions;
    out.write_transactions += others.write_transactions;
    out.write_conflicts += others.write_conflicts;
    out.errors += others.errors;
    out.unknown_outcomes += others.unknown_outcomes;
    out.hold_wait_us += others.hold_wait_us;
    return out;
}

void desk::feed(policy::sample counters) {
    const auto seen = traffic();
    take_observations();
    const auto home = entry_->current()->at.kind;
    const bool busy = moves_.busy(name());
    const std::lock_guard lock(mutex_);
    counters.own_work = own_work_ || busy;
    if (!busy) own_work_ = false;
    ++sampling_.samples;
    sampling_.last_at = counters.taken_at;
    sampling_.last_cost = counters.cost;
    sampling_.last_error.clear();
    const auto writes = entry_->writes.take();
    record_sample(home, counters, seen, writes);
    // A window of which writes were lost is not predicted: half of them would look calm.
    const auto dropped = entry_->writes.dropped();
    if (std::exchange(writes_dropped_, dropped) == dropped) policy_.add_writes(writes);
    const auto before = policy_.last_window();
    carry_out(policy_.feed(counters, seen, others(), in_.now()));
    const auto after = policy_.last_window();
    if (after && (!before || after->to != before->to)) ++windows_[after->quality];
    if (home == policy::home_kind::engine) engine_up_ = true;
}

void desk::sample_failed(const std::string& why) {
    bool is_new = false;
    {
        const std::lock_guard lock(mutex_);
        ++sampling_.failures;
        is_new = sampling_.last_error != why;
        sampling_.last_error = why;
        const bool is_engine = entry_->current()->at.kind == policy::home_kind::engine;
        (is_engine ? engine_up_ : postgres_up_) = false;
    }
    if (is_new) in_.log(severity::warning, "sample_failed", {{"tool", name()}, {"reason", why}});
}

void desk::sample_skipped() {
    const std::lock_guard lock(mutex_);
    ++sampling_.skipped_idle;
}

void desk::take_observations() {
    const std::lock_guard one_at_a_time(taking_);
    for (auto& seen : entry_->seen.take()) {
        if (seen.what != placement::observation::kind::ddl) {
            const std::lock_guard lock(mutex_);
            evidence_.add(seen);
            const auto hot = evidence_.hot_table();
            if (hot && *hot != policy_.state().table) policy_.set_table(*hot);
        } else if (unkept_.size() < unkept_max) {
            unkept_.push_back(std::move(seen.sql));
        }  // else it stays uncounted as kept, and no move trusts the schema any more
    }
    keep_ddl();
}

void desk::keep_ddl() {
    const auto failed = [this](const placement::store_error& why) {
        in_.log(severity::error, "ddl_not_stored", {{"tool", name()}, {"reason", why.what}});
    };
    while (!unkept_.empty()) {
        if (!kept_) {
            auto known = in_.store.ddl(name());
            if (!known) return failed(known.error());
            kept_ = std::move(*known);
        }
        if (!repeats(*kept_, unkept_.front())) {
            const auto done = in_.store.add_ddl(name(), unkept_.front());
            if (!done) return failed(done.error());
            kept_->push_back(unkept_.front());
        }
        unkept_.pop_front();
        entry_->seen.ddl_kept();
    }
}

void desk::tick() {
    if (!in_.may_decide()) return;  // the leader decides; what was seen is on its way to it
    take_observations();
    const std::lock_guard lock(mutex_);
    const auto now = in_.now();
    carry_out(policy_.tick(others(), now));
    if (!saved_at_ || now - *saved_at_ >= save_every) save_state();
}

tl::expected<void, std::string> desk::answer(outcome out) {
    const auto refusal = out.refusal;
    carry_out(std::move(out));
    if (!refusal.empty()) return tl::unexpected(refusal);
    return {};
}

tl::expected<std::uint64_t, std::string> desk::order(policy::home_kind to, const std::string& who) {
    take_observations();
    const std::lock_guard lock(mutex_);
    last_order_.reset();
    const auto done = answer(policy_.order(to, who, others(), in_.now()));
    if (!done) return tl::unexpected(done.error());
    if (!last_order_) return tl::unexpected(std::string("the move could not be started"));
    return *last_order_;
}

tl::expected<void, std::string> desk::shard_done(const std::string& who) {
    const std::lock_guard lock(mutex_);
    auto done = answer(policy_.shard_done(who, others(), in_.now()));
    if (done) evidence_.clear();  // the tables were changed: what was hot is measured afresh
    return done;
}

tl::expected<void, std::string> desk::shard_skip(const std::string& who) {
    const std::lock_guard lock(mutex_);
    return answer(policy_.shard_skip(who, others(), in_.now()));
}

tl::expected<void, std::string> desk::set_pin(policy::pin wanted) {
    const std::lock_guard lock(mutex_);
    return answer(policy_.set_pin(std::move(wanted), others(), in_.now()));
}

tl::expected<void, std::string> desk::clear_pin(const std::string& who) {
    const std::lock_guard lock(mutex_);
    return answer(policy_.clear_pin(who, others(), in_.now()));
}

void desk::home_found(policy::home_kind home) {
    if (!in_.may_decide()) return;
    const std::lock_guard lock(mutex_);
    carry_out(policy_.home_found(home, others(), in_.now()));
    save_state();
}

policy::move_end desk::how_it_ended(const control::order& ended) const {
    if (ended.report->moved) return policy::move_end::ok;
    const auto journal = in_.store.move(ended.report->id);
    // Begun and not ended: a home does not answer, and recovery undoes it when it does.
    const bool was_begun = journal && journal->has_value() && (*journal)->outcome != "refused";
    return was_begun ? policy::move_end::failed : policy::move_end::refused;
}

void desk::move_finished(const control::order& ended) {
    all_.move_ended();
    own_work_ = true;  // the window that holds the end of it does not count either
    const auto end = how_it_ended(ended);
    const auto reason = reason_of(*ended.report);
    in_.log(ended.report->moved ? severity::info : severity::warning,
            "move_ended",
            {{"tool", name()},
             {"move", ended.report->id},
             {"to", policy::to_string(ended.what.to)},
             {"moved", ended.report->moved},
             {"held_ms", ended.report->held.count()},
             {"reason", reason}});
    note_pause(*ended.report);
    const std::lock_guard lock(mutex_);
    ++moves_ended_[{ended.what.to, std::string(to_word(end))}];
    carry_out(policy_.move_finished(end, reason, others(), in_.now(), ended.report->held));
    save_state();
}

// The journal says for how long clients were held, also after a restart.
void desk::note_pause(const move::report& ended) {
    auto journal = in_.store.move(ended.id);
    if (!journal || !journal->has_value()) return;
    auto record = **journal;
    if (!record.plan.is_object()) record.plan = nlohmann::json::object();
    record.plan["held_ms"] = ended.held.count();
    if (const auto kept = in_.store.put_move(record); !kept)
        in_.log(severity::error,
                "journal_not_stored",
                {{"tool", name()}, {"reason", kept.error().what}});
}

// Commands may lead to more events (a move that cannot be queued is refused at once), so this goes
// on until the policy has nothing more to say.
void desk::carry_out(outcome out) {
    while (out) {
        for (auto& made : out.decisions)
            record(std::move(made));
        outcome more;
        for (const auto& what : out.commands) {
            switch (what.kind) {
                case policy::command_kind::start_move:
                    begin_move(what, more);
                    break;
                case policy::command_kind::raise_advice:
                case policy::command_kind::clear_advice:
                    break;  // shown from the state
            }
        }
        save_state();
        out = std::move(more);
    }
    set_retry();
    tell_fleet();
}

void desk::begin_move(const policy::command& what, outcome& more) {
    move::request wanted;
    wanted.tool = name();
    wanted.to = what.to;
    wanted.ordered_by = what.who;
    wanted.decision = last_decision_;
    wanted.execute = true;
    wanted.hold_max =
        std::min(policy_.current_settings().rails.hold_max, entry_->settings.hold_max);
    // The state says `moving_out` in the store before anything moves: a crash in between is seen.
    save_state();
    all_.move_submitted(in_.now());
    const auto number = moves_.submit(wanted);
    if (number) {
        last_order_ = *number;
        return;
    }
    all_.move_ended();
    more = policy_.move_finished(policy::move_end::refused, number.error(), others(), in_.now());
}

void desk::record(policy::decision made) {
    placement::decision_record kept;
    kept.tool = name();
    kept.at = made.at;
    kept.body = to_json(made);
    const auto id = in_.store.add_decision(kept);
    if (!id) {
        in_.log(severity::error,
                "decision_not_stored",
                {{"tool", name()}, {"reason", id.error().what}});
    } else {
        kept.body["id"] = *id;
        last_decision_ = std::to_string(*id);
    }
    // The same record; its text is for people, and the log has names of its own for two keys.
    kept.body["trigger"] = kept.body["event"];
    for (const char* key : {"event", "at", "text"})
        kept.body.erase(key);
    in_.log(made.alert ? severity::warning : severity::info, "decision", kept.body);
}

void desk::save_state() {
    if (!in_.may_decide()) return;
    const auto kept = in_.store.put_document(document_kind, name(), to_json(policy_.state()));
    not_stored_ = kept ? std::string{} : kept.error().what;
    if (!kept)
        in_.log(severity::error, "state_not_stored", {{"tool", name()}, {"reason", not_stored_}});
    saved_at_ = in_.now();
}

}  // namespace hotlane::control
