// One connection of the simulation: a session, its link with delays and losses, its timers.
#pragma once

#include "tests/simulation/cutover/world.hpp"

namespace hotlane::cutover {

// A link: bytes under way in both directions, delivered in order, until it breaks.
struct link {
    explicit link(policy::home_kind at) : home(store), kind(at) {}
    model_store store;  // what passes here; the rows themselves are the world's
    model_home home;
    policy::home_kind kind;
    bool open{true};        // as the session sees it
    bool cut{false};        // nothing passes any more
    bool abandoned{false};  // its session closed it: what was sent may still arrive
    microseconds to_home{0}, to_session{0};  // when the last delivery is due
};

class connection : public std::enable_shared_from_this<connection> {
  public:
    connection(world& all,
               std::function<void(std::string_view)> to_client,
               std::function<void()> closed)
        : all_(all),
          to_client_(std::move(to_client)),
          closed_(std::move(closed)),
          env_(all, [this] { event([&](session::session& s) { s.on_released(all_.clock()); }); }) {}

    void start() {
        bounds limits;
        limits.hold_max = std::chrono::duration_cast<milliseconds>(all_.sky.hold_max);
        limits.connect_timeout = milliseconds(300);
        machine_ = std::make_unique<session::session>(env_, limits, true);
        event([&](session::session& s) { s.on_start(all_.clock()); });
    }
    void client(std::string_view bytes) {
        event([&](session::session& s) { s.on_client_bytes(bytes, all_.clock()); });
    }
    void vanish() {
        event([&](session::session& s) { s.on_client_eof(all_.clock()); });
        event([&](session::session& s) { s.on_client_eof(all_.clock()); });
    }
    void poke() {
        event([&](session::session& s) { s.on_route_changed(all_.clock()); });
    }
    [[nodiscard]] bool held() const { return env_.is_waiting(); }
    [[nodiscard]] bool over() const { return over_; }

  private:
    template <typename Event>
    void event(Event what) {
        if (over_) return;
        const auto self = shared_from_this();
        what(*machine_);
        for (const auto& one : machine_->take_actions()) {
            if (const auto* open = std::get_if<open_link>(&one)) {
                dial(open->generation);
            } else if (std::holds_alternative<close_link>(one)) {
                abandon();
            } else if (const auto* armed = std::get_if<arm>(&one)) {
                set_timer(*armed);
            } else if (const auto* off = std::get_if<disarm>(&one)) {
                ++timers_[off->which];
            }
        }
        send_to_home();
        const std::string answer(machine_->to_client());
        machine_->consume_to_client(answer.size());
        const bool ended = machine_->ended();
        if (!answer.empty()) to_client_(answer);
        if (ended && !over_) {
            over_ = true;
            abandon();
            closed_();
        }
    }

    void set_timer(const arm& what) {
        const auto serial = ++timers_[what.which];
        all_.at(what.after, [self = shared_from_this(), which = what.which, serial] {
            if (self->timers_[which] != serial) return;
            self->event([&](session::session& s) { s.on_timer(which, self->all_.clock()); });
        });
    }

    void dial(std::uint64_t) {
        abandon();
        const auto serial = ++dials_;
        const bool fails =
            !all_.closing_time && static_cast<int>(all_.roll(100)) < all_.sky.dial_failures;
        all_.at(all_.some_time(2'000), [self = shared_from_this(), serial, fails] {
            if (self->dials_ != serial || self->over_) return;
            if (fails) {
                self->event(
                    [&](session::session& s) { s.on_link_failed("refused", self->all_.clock()); });
                return;
            }
            auto fresh = std::make_shared<link>(self->all_.route.kind);
            self->link_ = fresh;
            fresh->store.on_commit =
                [&all = self->all_, weak = std::weak_ptr(self), raw = fresh.get()](int row) {
                    const auto owner = weak.lock();
                    committed(all, *raw, row, owner && !owner->over_);
                };
            self->event([&](session::session& s) { s.on_link_open(self->all_.clock()); });
        });
    }

    // A row becomes durable at the home of this link.
    static void committed(world& all, const link& from, int row, bool session_lives) {
        const bool old = from.kind != all.route.kind || all.fenced;
        if (old) {
            if (!from.abandoned && session_lives) ++all.violations;
            return;  // the fence refuses it
        }
        all.stores[from.kind].rows.push_back(row);
    }

    void abandon() {
        if (!link_) return;
        send_to_home();
        link_->open = false;
        link_->abandoned = true;
        link_.reset();
        ++dials_;
    }

    void send_to_home() {
        const std::string bytes(machine_->to_link());
        machine_->consume_to_link(bytes.size());
        if (!link_ || bytes.empty() || link_->cut) return;
        const auto to = link_;
        to->to_home = std::max(to->to_home, all_.now + all_.some_time(500));
        all_.at(to->to_home - all_.now,
                [self = shared_from_this(), to, bytes] { self->arrive_at_home(to, bytes); });
    }

    void arrive_at_home(const std::shared_ptr<link>& to, const std::string& bytes) {
        if (to->cut) return;
        const bool breaks = !all_.closing_time && all_.happens(all_.sky.losses);
        // It may break before the home has read the bytes, in the middle of them, or after.
        const auto read = breaks ? all_.roll(bytes.size() + 1) : bytes.size();
        to->home.feed(std::string_view(bytes).substr(0, read));
        auto answer = std::exchange(to->home.out, {});
        if (breaks) {
            answer.resize(all_.roll(answer.size() + 1));
            to->cut = true;
            ++all_.lost;
        }
        to->to_session = std::max(to->to_session, all_.now + all_.some_time(500));
        all_.at(to->to_session - all_.now, [self = shared_from_this(), to, answer, breaks] {
            if (to->open && !answer.empty())
                self->event(
                    [&](session::session& s) { s.on_link_bytes(answer, self->all_.clock()); });
            if (breaks && to->open && self->link_ == to) {
                self->event(
                    [&](session::session& s) { s.on_link_lost("reset", self->all_.clock()); });
                if (self->link_ == to) self->link_.reset();
            }
        });
    }

    world& all_;
    std::function<void(std::string_view)> to_client_;
    std::function<void()> closed_;
    gate_environment env_;
    std::unique_ptr<session::session> machine_;
    std::shared_ptr<link> link_;
    std::map<timer, int> timers_;
    int dials_{0};
    bool over_{false};
};

}  // namespace hotlane::cutover
