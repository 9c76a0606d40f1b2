// What goes wrong with the fleet, and what must hold all the time and in the end.
#include "world.hpp"

namespace sim {

using placement::follow_state;
using placement::lead_state;

void world::chaos() {
    at(now_ + between(100, 2'500), [this] {
        if (!healing_) chaos();
    });
    auto& s = *sidecars_[random_() % sidecars_.size()];
    const auto until = [this](ms length, std::function<void()> what) {
        at(now_ + between(50, length), std::move(what));
    };
    switch (random_() % 8) {
        case 0:  // crash
            if (!s.up) break;
            s.up = false;
            end_session(chance(50) ? s.session : 0);  // else the server notices later
            until(4'000, [this, &s] { start(s); });
            break;
        case 1: {  // crash of the one that leads, when there is one
            for (auto& l : sidecars_)
                if (l->up && leads(*l)) {
                    l->up = false;
                    until(4'000, [this, one = l.get()] { start(*one); });
                    break;
                }
            break;
        }
        case 2:  // stopped, often for longer than a lease
        case 3:
            for (auto& l : sidecars_)
                if (l->up && (leads(*l) || l.get() == &s) && chance(70))
                    l->paused_until = now_ + between(100, 3 * lease_ms);
            break;
        case 4:  // cut off from store or homes, one way or both
        case 5: {
            const int whom = chance(50) ? store_node : homes_node;
            const std::pair there{s.index, whom}, back{whom, s.index};
            const int kind = static_cast<int>(random_() % 3);
            if (kind != 1) cuts_.insert(there);
            if (kind != 0) cuts_.insert(back);
            until(2 * lease_ms, [this, there, back] { cuts_.erase(there), cuts_.erase(back); });
            break;
        }
        case 6:
            if (chance(30)) fail_over();
            break;
        case 7:  // the store for everybody
            if (!chance(20)) break;
            for (auto& l : sidecars_) {
                const std::pair there{l->index, store_node};
                cuts_.insert(there);
                until(2 * lease_ms, [this, there] { cuts_.erase(there); });
            }
            break;
    }
}

void world::check() {
    for (int t = 0; t < tools; ++t)
        if (engine_[t].accepts() && postgres_[t].accepts()) fail("two homes accept");
}

std::string world::run(ms length, ms healing) {
    at(500, [this] { chaos(); });
    const std::function<void()> replicate = [this, &replicate] {
        replicas_.emplace_back(now_, store_);
        while (replicas_.size() > 8)
            replicas_.pop_front();  // it lags by up to 8 of these
        at(now_ + 150, replicate);
        for (auto it = sessions_.begin(); it != sessions_.end();) {
            const auto session = it->first;
            const bool silent = now_ - it->second.second > lease_ms;
            ++it;
            if (silent) end_session(session);
        }
    };
    at(0, replicate);
    at(length, [this] {
        healing_ = true;
        cuts_.clear();
        for (auto& s : sidecars_) {
            s->paused_until = 0;
            if (!s->up) start(*s);
        }
    });
    while (!events_.empty() && broken_.empty() && now_ <= length + healing) {
        auto next = events_.top();
        events_.pop();
        now_ = next.when;
        next.what();
        check();
    }
    return broken_.empty() ? final_check() : broken_;
}

std::string world::final_check() {
    int leading = 0;
    for (const auto& s : sidecars_)
        leading += s->state == lead_state::leading && leads(*s) ? 1 : 0;
    if (leading != 1) return std::to_string(leading) + " lead after healing";
    for (int t = 0; t < tools; ++t) {
        const auto name = "tool " + std::to_string(t) + ": ";
        const auto& mark = postgres_[t].mark;
        const bool engine = mark.state == marker_state::away;
        if (!engine && mark.state != marker_state::serving) return name + "a move never ended";
        if (store_.unfinished.count(t) > 0) return name + "the journal has an open move";
        const auto& home = engine ? engine_[t].real : postgres_[t].real;
        if (engine ? !engine_[t].accepts() : !postgres_[t].accepts())
            return name + "its home accepts nothing";
        for (const auto& s : sidecars_) {
            const auto& f = s->tools.at(t);
            if (f.state() != follow_state::serving)
                return name + s->id + " is " + std::string(to_string(f.state()));
            if (f.place()->epoch != mark.epoch) return name + s->id + " serves another epoch";
        }
        for (const auto row : acked_of_[t])
            if (home->count(row) == 0) return name + "an acknowledged write is lost";
        for (const auto row : *home)
            if (refused_.count(row) > 0) return name + "a refused write is there";
    }
    return "";
}

}  // namespace sim
