// Time, chance, network, the store, and a sidecar that follows.
#include "world.hpp"

namespace sim {

using placement::follow_event;
using placement::follow_state;
using placement::lead_event;
using placement::lead_state;

namespace {

placement::moment moment_of(ms t) {
    return placement::moment{} + std::chrono::milliseconds(t);
}

}  // namespace

world::world(std::uint64_t seed, int sidecars, known_fault fault) : random_(seed), fault_(fault) {
    for (auto& p : postgres_)
        p.checks_leader = fault != known_fault::fence_without_number;
    for (int i = 0; i < sidecars; ++i) {
        sidecars_.push_back(std::make_unique<sidecar>());
        sidecars_.back()->index = i;
    }
    for (auto& s : sidecars_)
        at(between(0, 500), [this, one = s.get()] { start(*one); });
}

void world::at(ms when, std::function<void()> what) {
    events_.push({when, serial_++, std::move(what)});
}

// On a process: not when it has died meanwhile, and late when it was stopped.
void world::on(sidecar& s, ms after, std::function<void()> what) {
    at(now_ + after, [this, &s, life = s.life, what = std::move(what)] {
        if (!s.up || s.life != life) return;
        if (now_ < s.paused_until) {
            on(s, s.paused_until - now_, what);
        } else {
            what();
        }
    });
}

bool world::cut(int from, int to) const {
    return cuts_.count({from, to}) > 0;
}

ms world::delay() {
    if (healing_) return between(1, 10);
    const bool very_late = random_() % 400 == 0;
    return very_late ? between(200, 3 * reply_ms) : between(1, 30);
}

void world::fail(const std::string& what) {
    if (broken_.empty()) broken_ = std::to_string(now_) + " ms: " + what;
}

// A request and its reply, each of which may be lost or late; after reply_ms the asker gives up.
void world::ask(sidecar& s, int whom, std::function<bool()> work, then answer) {
    auto answered = std::make_shared<bool>(false);
    const int me = s.index;
    if (!cut(me, whom))
        at(now_ + delay(), [this, &s, me, whom, work = std::move(work), answered, answer] {
            const auto got = work() ? result::ok : result::refused;
            if (cut(whom, me)) return;
            on(s, delay(), [answered, answer, got] {
                if (!std::exchange(*answered, true)) answer(got);
            });
        });
    on(s, reply_ms, [answered, answer] {
        if (!std::exchange(*answered, true)) answer(result::unknown);
    });
}

void world::ask_store(sidecar& s, std::function<bool(store_data&)> work, then answer) {
    const auto session = s.session;
    if (session == 0) {
        on(s, 1, [answer] { answer(result::refused); });
        return;
    }
    auto reached = std::make_shared<bool>(false);
    ask(
        s,
        store_node,
        [this, session, work = std::move(work), reached] {
            const auto there = sessions_.find(session);
            if (there == sessions_.end()) return false;
            there->second.second = now_;
            *reached = true;
            return work(store_);
        },
        [this, &s, session, reached, answer](result got) {
            // No reply, or a server that does not know the session: it is over for us.
            if (got == result::unknown || !*reached) {
                if (s.session == session) s.session = 0, s.number = 0;
                end_session(session);
            }
            answer(got);
        });
}

void world::as_leader(sidecar& s, std::function<void(store_data&)> work, then answer) {
    const auto number = s.number;
    auto stale = std::make_shared<bool>(false);
    ask_store(
        s,
        [number, stale, work = std::move(work)](store_data& d) {
            *stale = number == 0 || d.number != number;
            if (!*stale) work(d);
            return !*stale;
        },
        [this, &s, number, stale, answer](result got) {
            if (*stale && s.number == number) {
                end_session(s.session);
                s.session = 0, s.number = 0;
            }
            answer(got);
        });
}

void world::announce() {
    ++store_.version;
    for (const auto& [session, who] : sessions_) {
        if (chance(healing_ ? 0 : 30) || cut(store_node, who.first)) continue;
        auto& s = *sidecars_[static_cast<std::size_t>(who.first)];
        on(s, delay(), [this, &s] { news(s); });
    }
}

void world::end_session(std::uint64_t session) {
    sessions_.erase(session);
    if (lock_ == session) lock_ = 0;
}

// A standby takes over that had not received the newest transactions.
void world::fail_over() {
    if (!replicas_.empty()) store_ = replicas_.front().second;
    replicas_.clear();
    sessions_.clear();
    lock_ = 0;
}

void world::start(sidecar& s) {
    s.up = true;
    ++s.life;
    s.id = "s" + std::to_string(s.index) + "." + std::to_string(s.life);
    s.session = s.number = s.version = 0;
    s.state = lead_state::away;
    s.tools.clear(), s.inside.clear(), s.confirmed.clear(), s.looked.clear(), s.busy.clear();
    s.lease = placement::own_lease(std::chrono::milliseconds(lease_ms));
    s.others.forget_all();
    for (int t = 0; t < tools; ++t) {
        s.confirmed[t] = now_;
        s.tools[t];
    }
    beat(s);
    watch(s);
    client(s);
    lead_on(s);
}

void world::change(sidecar& s, lead_event what) {
    const auto before = s.state;
    s.state = placement::next(before, what);
    if (before == s.state) return;
    if (what == lead_event::elected) ++elections_, settle(s);
}

void world::beat(sidecar& s) {
    const ms sent = now_;
    on(s, lease_ms / 3 - between(0, 100), [this, &s] { beat(s); });
    if (s.session == 0) {
        change(s, lead_event::store_lost);
        auto made = std::make_shared<std::uint64_t>(0);
        ask(
            s,
            store_node,
            [this, &s, made] {
                *made = next_session_++;
                sessions_[*made] = {s.index, now_};
                ++store_.beats[s.id];
                return true;
            },
            [this, &s, made](result got) {
                if (got != result::ok) return;
                s.session = *made;
                s.version = 0;
                change(s, lead_event::store_back);
                news(s);
            });
        return;
    }
    const bool stands = s.state == lead_state::following;
    auto number = std::make_shared<std::uint64_t>(0);
    auto version = std::make_shared<std::uint64_t>(0);
    ask_store(
        s,
        [this, &s, session = s.session, stands, number, version](store_data& d) {
            ++d.beats[s.id];
            *version = d.version;
            if (!stands || (lock_ != 0 && lock_ != session)) return true;
            lock_ = session;
            *number = ++d.number;
            return true;
        },
        [this, &s, sent, number, version](result got) {
            if (got != result::ok) return change(s, lead_event::store_lost);
            s.lease.renewed(moment_of(sent));
            if (*version != s.version) news(s);
            if (*number == 0 || s.session == 0) return;
            s.number = *number;
            s.others.forget_all();
            change(s, lead_event::elected);
        });
}

void world::news(sidecar& s) {
    auto seen = std::make_shared<store_data>();
    ask_store(
        s,
        [seen](store_data& d) { return *seen = d, true; },
        [this, &s, seen](result got) {
            if (got != result::ok) return;
            const bool whole = s.version == 0;
            s.version = seen->version;
            for (const auto& [tool, p] : seen->placements)
                step(s, tool, {follow_event::placed, p.home, p.epoch, {}});
            for (const auto& [tool, h] : seen->holds) {
                step(s, tool, {h.on ? follow_event::hold : follow_event::release, {}, 0, h.move});
                if (whole && s.tools[tool].state() == follow_state::drained)
                    step(s, tool, {follow_event::empty, {}, 0, {}});
            }
            // What this one holds and the store lost: the leader's answer ends it.
            for (auto& [tool, f] : s.tools)
                if (f.held() && !(seen->holds[tool].on || seen->holds[tool].move == f.move()))
                    ask_store(
                        s,
                        [this, t = tool, m = f.move()](store_data& d) {
                            if (d.unfinished.count(t) == 0 && !d.holds[t].on)
                                d.holds[t] = {m, false}, announce();
                            return true;
                        },
                        [](result) {});
        });
}

void world::step(sidecar& s, int tool, const placement::follow_input& in) {
    auto& f = s.tools[tool];
    const auto did = f.step(in);
    if (did.set_route) s.confirmed[tool] = now_;
    if (did.ask_homes) s.confirmed[tool] = now_, look(s, tool);
    if (did.ack)
        ask_store(
            s,
            [m = f.move(), id = s.id](store_data& d) { return d.acks.insert(m + "/" + id), true; },
            [this, &s, tool, m = f.move()](result got) {
                if (got == result::ok) return;
                on(s, 200, [this, &s, tool, m] {
                    auto& again = s.tools[tool];
                    if (again.state() == follow_state::drained && again.move() == m)
                        step(s, tool, {follow_event::empty, {}, 0, {}});
                });
            });
    drained(s, tool);
}

void world::drained(sidecar& s, int tool) {
    if (s.tools[tool].state() != follow_state::holding || s.inside[tool] > 0) return;
    step(s, tool, {follow_event::empty, {}, 0, {}});
}

// Without the store's word the marker must confirm the home; without both the service ends.
void world::watch(sidecar& s) {
    on(s, 100, [this, &s] { watch(s); });
    if (s.state != lead_state::following && s.state != lead_state::away && s.number == 0)
        change(s, lead_event::deposed);
    const bool told = s.lease.holds(moment_of(now_));
    for (int t = 0; t < tools; ++t) {
        auto& f = s.tools[t];
        if (f.held()) continue;
        const bool serves = f.state() == follow_state::serving;
        if (told && serves) {
            s.confirmed[t] = now_;
            continue;
        }
        if (now_ - s.looked[t] > (serves ? lease_ms / 3 : 250)) look(s, t);
        if (f.state() != follow_state::refused && now_ - s.confirmed[t] > lease_ms)
            step(s, t, {follow_event::unconfirmed, {}, 0, {}});
    }
}

void world::look(sidecar& s, int tool) {
    s.looked[tool] = now_;
    auto seen = std::make_shared<marker>();
    ask(
        s,
        homes_node,
        [this, seen, tool] { return *seen = postgres_[tool].mark, true; },
        [this, &s, tool, seen](result got) {
            if (got != result::ok) return;
            constexpr move::marker_point points[] = {move::marker_point::away,
                                                     move::marker_point::staging,
                                                     move::marker_point::serving,
                                                     move::marker_point::fenced};
            move::home_facts facts;
            facts.marker = points[static_cast<int>(seen->state)];
            const auto v = move::decide_to_follow(facts);
            if (v.where == move::serve_at::nobody) return;
            const auto home =
                v.where == move::serve_at::engine ? home_kind::engine : home_kind::postgres;
            const auto& known = s.tools[tool].place();
            if (known && seen->epoch < known->epoch) return;
            s.confirmed[tool] = now_;
            step(s, tool, {follow_event::placed, home, seen->epoch, {}});
        });
}

// One client of each sidecar, writing and reading; it never has two statements under way.
void world::client(sidecar& s) {
    const auto next = [this, &s] { on(s, between(20, 200), [this, &s] { client(s); }); };
    const int tool = static_cast<int>(random_() % tools);
    auto& f = s.tools[tool];
    if (f.state() != follow_state::serving) return next();
    const auto at_home = *f.place();
    const bool writes = chance(70);
    const auto row = next_row_++;
    ++s.inside[tool];
    auto accepted = std::make_shared<bool>(false);
    ask(
        s,
        homes_node,
        [this, tool, at_home, writes, row, accepted] {
            auto* const home = at_home.home == home_kind::engine
                                   ? (engine_[tool].accepts() ? &*engine_[tool].real : nullptr)
                                   : (postgres_[tool].accepts() ? &*postgres_[tool].real : nullptr);
            if (home == nullptr) return false;
            if (writes) home->insert(row);
            return true;
        },
        [this, &s, tool, at_home, writes, row, next](result got) {
            --s.inside[tool];
            const std::pair client{s.index, tool};
            if (got == result::ok) {
                if (at_home.epoch < client_epoch_[client])
                    fail("a client read at epoch " + std::to_string(at_home.epoch) + " after " +
                         std::to_string(client_epoch_[client]));
                client_epoch_[client] = at_home.epoch;
                if (writes) acked_.insert(row), acked_of_[tool].insert(row);
            } else if (got == result::refused) {
                if (writes) refused_.insert(row);
                if (s.tools[tool].place()->epoch == at_home.epoch)
                    step(s, tool, {follow_event::doubt, {}, 0, {}});
            }
            drained(s, tool);
            next();
        });
}

}  // namespace sim
