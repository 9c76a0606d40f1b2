// The thread that talks to the store.
#include "router/control/coordinator.hpp"

#include <algorithm>

#include "router/control/reload.hpp"
#include "router/control/reports.hpp"

namespace hotlane::control {

using placement::follow_event;
using placement::lead_event;
using placement::lead_state;
using std::chrono::milliseconds;

namespace {

// A spread without a random source: the same sidecar always has the same place.
milliseconds spread(const std::string& id, milliseconds over) {
    const auto part = std::hash<std::string>{}(id) % 1'000U;
    return over * static_cast<long long>(part) / 1'000;
}

}  // namespace

coordinator::coordinator(context& in, placement::fleet_store& store, settings with)
    : in_(in),
      store_(store),
      with_(std::move(with)),
      lease_(with_.who.lease),
      others_(with_.who.lease),
      away_since_(steady::now()) {
    in_.tools.word.until_us = 0;
    in_.tools.word.left = [this](placement::tool_entry& entry) {
        doubt(entry.name);
        return true;
    };
}

void coordinator::start(hooks with) {
    hooks_ = std::move(with);
    for (const auto& entry : in_.tools.all()) {
        const std::lock_guard lock(mutex_);
        at(entry->name).entry = entry.get();
    }
    reach_at_ = beat_at_ = report_at_ = lead_at_ = steady::now();
    turn(true);  // a hold that is on is known before the first tool is served
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    threads_.emplace_back([this](const std::stop_token& stop) { watch(stop); });
    for (int i = 0; i < with_.lookers; ++i)
        threads_.emplace_back([this](const std::stop_token& stop) { look(stop); });
}

void coordinator::stop() {
    if (stopping_.exchange(true)) return;
    {
        const std::lock_guard lock(mutex_);
        for (auto& thread : threads_)
            thread.request_stop();
    }
    changed_.notify_all();
    store_.wake();
    threads_.clear();
    // In order: nobody waits for a lease of ours, and the lead is free at once.
    store_.resign();
    if (store_.reachable()) static_cast<void>(store_.leave(with_.who.id));
}

void coordinator::work(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        const bool announced = store_.wait(until_next());
        if (!stop.stop_requested()) turn(announced);
    }
}

milliseconds coordinator::until_next() const {
    const auto now = steady::now();
    auto next = store_.reachable() ? std::min(beat_at_, report_at_) : reach_at_;
    next = std::min(next, lead_at_);
    milliseconds wait = std::clamp(
        std::chrono::ceil<milliseconds>(next - now), milliseconds{1}, milliseconds{1'000});
    const std::lock_guard lock(mutex_);
    for (const auto& [name, tool] : tools_)
        if (tool.follows.state() == placement::follow_state::holding)
            wait = std::min(wait, with_.drain_look);
    return wait;
}

void coordinator::turn(bool announced) {
    const auto now = steady::now();
    if (!store_.reachable()) {
        change(lead_event::store_lost);
        if (now >= reach_at_) reach();
    }
    if (store_.reachable()) {
        if (now >= beat_at_ || now >= report_at_) beat();
        if (announced || news_due_) follow_news();
        if (store_.reachable()) change(lead_event::store_back);
        const bool led = state_ == lead_state::settling || state_ == lead_state::leading;
        if (led && store_.leads_as() == 0) change(lead_event::deposed);
    }
    look_for_drained();
    send_acks();
    // A store that was replaced, or lost its tail, may not list a sidecar that still goes by its
    // lease from before: within one lease everyone has joined again, or serves by markers.
    if (state_ == lead_state::settling && steady::now() >= decides_from_ &&
        (!hooks_.looked || hooks_.looked()))
        change(lead_event::settled);
    if (now >= lead_at_) {
        lead_at_ = now + with_.report_every;
        if (leads()) lead_on();
    }
    poke();
}

void coordinator::reach() {
    ++statements_;
    const auto got = store_.reach();
    if (!got) {
        const auto pause =
            std::min(with_.retry_first * (1 << std::min(tries_++, 6)), with_.retry_max);
        reach_at_ = steady::now() + pause + spread(with_.who.id, pause);
        const std::lock_guard lock(mutex_);
        away_reason_ = got.error().what;
        return;
    }
    tries_ = 0;
    ++statements_;
    with_.who.policy_hash = policy_now();
    static_cast<void>(store_.join(with_.who));  // the first renewal tells whether it was done
    news_due_ = true;
    beat_at_ = {};
    change(lead_event::store_back);
}

void coordinator::beat() {
    const auto sent = steady::now();
    const bool reports = sent >= report_at_;
    report_at_ = sent + with_.report_every;
    nlohmann::json seen;
    if (reports && !leads()) seen = report();
    if (seen.is_null() && sent < beat_at_) return;
    const auto third = with_.who.lease / 3;
    beat_at_ = sent + third - third / 10 +
               spread(with_.who.id + std::to_string(statements_.load()), third / 10);
    with_.who.clock = in_.now();
    with_.who.policy_hash = policy_now();
    ++statements_;
    const bool stands = state_ == lead_state::following && !stopping_;
    const auto got = store_.beat(with_.who, seen, stands);
    if (!got) return;
    if (!got->known) {
        ++statements_;
        static_cast<void>(store_.join(with_.who));
        // Who is not in the list is not waited for: what is held is read after joining it.
        // Only the next answer counts as a renewal.
        version_ = 0;
        news_due_ = true;
        beat_at_ = {};
    }
    {
        const std::lock_guard lock(mutex_);
        if (got->known) renew(sent);
        leader_ = got->leader;
        leader_id_ = got->leader_id;
    }
    if (got->known && got->version != version_) news_due_ = true;
    if (!got->may_lead) return;
    ++statements_;
    const auto number = store_.take_lead(with_.who.id);
    if (!number) return;
    {
        const std::lock_guard lock(mutex_);
        leader_ = *number;
        leader_id_ = with_.who.id;
        others_.forget_all();  // every lease is counted anew, from what this one sees
        decides_from_ = steady::now() + with_.who.lease;
    }
    change(lead_event::elected);
}

// With mutex_ held.
void coordinator::renew(steady::time_point sent) {
    lease_.renewed(sent);
    const auto until = (sent + with_.who.lease).time_since_epoch();
    in_.tools.word.until_us.store(
        std::chrono::duration_cast<std::chrono::microseconds>(until).count(),
        std::memory_order_release);
}

std::string coordinator::policy_now() {
    const auto model = in_.model.get();
    const std::lock_guard lock(mutex_);
    if (hashed_ != model) {
        policy_hash_ = policy_hash(*model);
        hashed_ = model;
    }
    return policy_hash_;
}

void coordinator::change(lead_event what) {
    const auto before = state_.load();
    const auto after = placement::next(before, what);
    if (before == after) return;
    state_ = after;
    const bool had_store = before != lead_state::away;
    if (after == lead_state::away && had_store) {
        const std::lock_guard lock(mutex_);
        away_since_ = steady::now();
    }
    in_.log(after == lead_state::away ? severity::warning : severity::info,
            "fleet_state",
            {{"state", placement::to_string(after)}, {"was", placement::to_string(before)}});
    if (what == lead_event::elected) {
        ++elections_;
        if (hooks_.elected) hooks_.elected();
    }
    if (after == lead_state::leading && hooks_.leading) hooks_.leading();
    if (after != lead_state::following) return;
    // What was counted while this one led was its own; the next leader is told of what comes.
    const std::lock_guard lock(mutex_);
    for (auto& [name, tool] : tools_)
        if (tool.entry) {
            tool.told = read_counters(tool.entry->counted);
            tool.after_error_told = placement::read_after_error(tool.entry->counted);
        }
}

void coordinator::follow_news() {
    ++statements_;
    auto got = store_.changes(version_);
    // Behind what was known: another store, or one that lost its tail. All of it is news.
    if (got && got->version < version_) got = store_.changes(0);
    if (!got) return;
    news_due_ = false;
    version_ = got->version;
    apply(*got);
}

void coordinator::apply(const placement::news& what) {
    const std::lock_guard lock(mutex_);
    for (const auto& p : what.placements)
        step(at(p.tool), {follow_event::placed, p.home, p.epoch, {}});
    for (const auto& h : what.holds) {
        auto& tool = at(h.tool);
        step(tool, {h.held ? follow_event::hold : follow_event::release, {}, 0, h.move});
        // Told again by a new session: the acknowledgement may not have come through.
        if (what.whole && tool.follows.state() == placement::follow_state::drained)
            step(tool, {follow_event::empty, {}, 0, {}});
    }
}

void coordinator::look_for_drained() {
    const std::lock_guard lock(mutex_);
    for (auto& [name, tool] : tools_) {
        if (tool.follows.state() != placement::follow_state::holding) continue;
        // The gate is closed, so zero stays zero.
        if (!tool.entry || tool.entry->gate.inside() <= 0)
            step(tool, {follow_event::empty, {}, 0, {}});
    }
}

void coordinator::send_acks() {
    std::vector<placement::hold_record> due;
    {
        const std::lock_guard lock(mutex_);
        for (auto& [name, tool] : tools_)
            if (std::exchange(tool.ack_due, false))
                due.push_back({name, tool.follows.move(), true});
    }
    for (const auto& hold : due) {
        ++statements_;
        // What passed here belongs to the schema that is moved: the leader reads it next.
        const bool told = leads() || keep_ddl(hold.tool);
        if (told && store_.ack(hold, with_.who.id)) continue;
        const std::lock_guard lock(mutex_);
        auto& tool = at(hold.tool);
        tool.ack_due = tool.follows.held() && tool.follows.move() == hold.move;
    }
}

// ---- carrying out what the follower's table says

coordinator::known& coordinator::at(const std::string& tool) {
    return tools_[tool];
}

void coordinator::step(known& tool, const placement::follow_input& in, const std::string& why) {
    const auto did = tool.follows.step(in);
    if (did.ack) {
        tool.ack_due = true;
        changed_.notify_all();
    }
    if (did.ask_homes) {
        tool.look_wanted = true;
        tool.look_at = steady::now();
        tool.confirmed = steady::now();  // it has a lease's time to be told
        changed_.notify_all();
    }
    if (!tool.entry) return;
    if (did.close_gate) tool.entry->gate.hold();
    if (did.set_route) set_route(tool);
    if (did.refuse) {
        if (tool.entry->current()->served) tool.entry->close(why);
        poke_later(tool);
    }
    if (did.open_gate) tool.entry->gate.release();
}

void coordinator::set_route(known& tool) {
    tool.confirmed = steady::now();
    const auto& place = *tool.follows.place();
    const auto there = tool.entry->current();
    if (there->served && there->epoch == place.epoch && there->at.kind == place.home) return;
    const auto home = placement::home_of(tool.entry->settings, *in_.model.get(), place.home);
    if (home) {
        tool.entry->place(*home, place.epoch);
    } else {
        tool.entry->close(home.error());
    }
    poke_later(tool);
}

void coordinator::poke_later(const known& tool) {
    to_poke_.insert(tool.entry->name);
}

void coordinator::poke() {
    std::set<std::string> names;
    {
        const std::lock_guard lock(mutex_);
        names.swap(to_poke_);
    }
    if (!in_.act.poke) return;
    for (const auto& name : names)
        in_.act.poke(name);
}

}  // namespace hotlane::control
