// What a move asks of the fleet, and what a leader does in every turn.
#include <algorithm>

#include <fmt/format.h>

#include "router/control/coordinator.hpp"
#include "router/control/reports.hpp"

namespace hotlane::control {

using placement::follow_event;
using placement::lead_state;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t reports_at_once = 1'000;
constexpr int forgotten_after_leases = 10;

}  // namespace

bool coordinator::leads() const {
    const auto state = state_.load();
    return (state == lead_state::settling || state == lead_state::leading) && store_.leads_as() > 0;
}

tl::expected<std::uint64_t, std::string> coordinator::number_above(std::uint64_t seen) {
    const auto number = store_.leads_as();
    if (number == 0) return tl::unexpected(std::string("this sidecar does not lead"));
    if (number > seen) return number;
    ++statements_;
    const auto raised = store_.raise(seen);
    if (!raised) return tl::unexpected(raised.error().what);
    return *raised;
}

tl::expected<void, std::string> coordinator::hold(const std::string& tool,
                                                  const std::string& move,
                                                  steady::time_point until,
                                                  const std::function<bool()>& goes_on) {
    if (!decides()) return tl::unexpected(std::string("this sidecar does not lead"));
    ++statements_;
    if (const auto put = store_.put_hold({tool, move, true}); !put)
        return tl::unexpected(put.error().what);
    // After the hold: who is not in this list reads the hold before it serves.
    ++statements_;
    const auto members = store_.sidecars();
    if (!members) return tl::unexpected(members.error().what);
    std::vector<std::string> ids;
    std::map<std::string, std::string> names;
    std::unique_lock lock(mutex_);
    for (const auto& s : *members) {
        if (s.id != with_.who.id) ids.push_back(s.id);
        names[s.id] = s.name;
        others_.saw(s.id, s.beat, steady::now(), s.lease);
    }
    placement::hold_round round(std::move(ids));
    step(at(tool), {follow_event::hold, {}, 0, move});
    store_.wake();
    auto watched = steady::now();
    for (;;) {
        const bool here = at(tool).follows.state() == placement::follow_state::drained;
        const auto missing = round.missing(others_, steady::now());
        if (here && missing.empty()) return {};
        if (!leads() || stopping_) return tl::unexpected(std::string("this sidecar leads no more"));
        if (steady::now() >= until || !goes_on()) {
            std::string who = here ? "" : "this sidecar";
            for (const auto& id : missing)
                who += (who.empty() ? "" : ", ") + names[id];
            return tl::unexpected(fmt::format("not drained yet: {}", who));
        }
        changed_.wait_until(lock, std::min(until, steady::now() + with_.ack_look));
        if (missing.empty()) continue;
        lock.unlock();
        ++statements_;
        const auto acked = store_.acks({tool, move, true});
        placement::stored<std::vector<placement::sidecar_record>> seen =
            std::vector<placement::sidecar_record>{};
        if (steady::now() - watched > milliseconds{250}) {
            ++statements_;
            seen = store_.sidecars();
            watched = steady::now();
        }
        lock.lock();
        if (acked)
            for (const auto& id : *acked)
                round.acked(id);
        if (seen)
            for (const auto& s : *seen)
                others_.saw(s.id, s.beat, steady::now(), s.lease);
    }
}

void coordinator::release(const std::string& tool, const std::string& move) {
    const auto entry = in_.tools.find(tool);
    const auto route = entry ? entry->current() : nullptr;
    // Nobody knows where the tool lives, or another leader says so: everyone stays held. What looks
    // at the homes next (looked(), finish_holds()) ends it.
    if (!leads() || !route || !route->served) return;
    {
        const std::lock_guard lock(mutex_);
        step(at(tool), {follow_event::placed, route->at.kind, route->epoch, {}});
    }
    ++statements_;
    if (const auto put = store_.put_hold({tool, move, false}); !put) return;  // finish_holds() will
    {
        const std::lock_guard lock(mutex_);
        step(at(tool), {follow_event::release, {}, 0, move});
    }
    poke();
}

void coordinator::looked(placement::tool_entry& entry, bool is_known) {
    const auto route = entry.current();
    {
        const std::lock_guard lock(mutex_);
        auto& tool = at(entry.name);
        tool.entry = &entry;
        if (is_known) {
            step(tool, {follow_event::placed, route->at.kind, route->epoch, {}});
        } else {
            step(tool, {follow_event::unconfirmed, {}, 0, {}}, route->reason);
        }
    }
    poke();
}

void coordinator::meet(placement::tool_entry& entry) {
    const std::lock_guard lock(mutex_);
    at(entry.name).entry = &entry;
    entry.gate.hold();
}

// A hold whose move is over here: its leader died, or the store was away when it should have been
// released. The route is known again, so everyone may go on.
void coordinator::finish_holds() {
    std::vector<std::pair<std::string, std::string>> left;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [name, tool] : tools_)
            if (tool.follows.held() && tool.entry) left.emplace_back(name, tool.follows.move());
    }
    for (const auto& [tool, move] : left) {
        const bool runs = hooks_.moving && hooks_.moving(tool);
        if (!runs && (!hooks_.looked || hooks_.looked())) release(tool, move);
    }
}

void coordinator::lead_on() {
    ++statements_;
    if (auto seen = store_.sidecars()) {
        std::vector<std::string> gone;
        {
            const std::lock_guard lock(mutex_);
            for (const auto& s : *seen) {
                others_.saw(s.id, s.beat, steady::now(), s.lease);
                const auto silent = others_.silent_for(s.id, steady::now());
                if (silent && *silent > with_.who.lease * forgotten_after_leases)
                    gone.push_back(s.id);
            }
            sidecars_ = std::move(*seen);
        }
        for (const auto& id : gone) {
            ++statements_;
            static_cast<void>(store_.leave(id));
            const std::lock_guard lock(mutex_);
            others_.forget(id);
        }
    }
    finish_holds();
    merge_reports();
}

void coordinator::merge_reports() {
    ++statements_;
    const auto taken = store_.take_reports(reports_at_once);
    if (!taken) return;
    for (const auto& one : *taken) {
        if (!one.body.is_object()) continue;
        for (const auto& [name, said] : one.body.items()) {
            auto entry = in_.tools.find(name);
            if (!entry) {
                // A template's tool whose clients are elsewhere only.
                entry = in_.tools.resolve({.user = name, .database = name, .application_name = {}});
                if (!entry || entry->name != name) continue;
            }
            merge_report(*entry, said, one.sidecar, in_.now());
            const auto held = said.find("held");
            if (held == said.end() || !held->is_string()) continue;
            const auto move = held->get<std::string>();
            // Held there for a move that this store knows nothing of (it lost its tail).
            bool known_here = false;
            {
                const std::lock_guard lock(mutex_);
                known_here = at(name).follows.held();
            }
            const bool runs = hooks_.moving && hooks_.moving(name);
            if (!known_here && !runs && decides() && entry->current()->served) {
                ++statements_;
                static_cast<void>(store_.put_hold({name, move, false}));
            }
        }
    }
}

}  // namespace hotlane::control
