// A tool, its two homes, its gate and its clients in virtual time. Production code under test: the
// sessions and the gate. Everything else is scripted, and every random choice comes from the seed.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "router/placement/gate.hpp"
#include "tests/unit/session/model_home.hpp"

namespace hotlane::cutover {

using namespace session;
using namespace session::testing;
using std::chrono::microseconds;

// What the dice may do, drawn once for each run.
struct weather {
    int losses{0};         // per thousand link deliveries: the link breaks
    int vanishing{0};      // per thousand requests: the client goes away
    int dial_failures{0};  // per hundred
    int moves{0};
    microseconds hold_max{50'000};
};

// What became of every row that a client tried to write.
struct ledger {
    std::set<int> acknowledged, unknown, refused;
};

class world {
  public:
    explicit world(std::uint64_t seed) : random(seed) {}

    void at(microseconds delay, std::function<void()> what) {
        queue_.push({now + delay, next_++, std::move(what)});
    }
    void run(microseconds until) {
        while (!queue_.empty() && queue_.top().when <= until) {
            auto what = std::move(const_cast<event&>(queue_.top()).what);
            now = queue_.top().when;
            queue_.pop();
            what();
        }
    }
    std::size_t roll(std::size_t below) {
        return std::uniform_int_distribution<std::size_t>(0, below - 1)(random);
    }
    bool happens(int per_thousand) { return static_cast<int>(roll(1'000)) < per_thousand; }
    microseconds some_time(std::size_t most) { return microseconds(1 + roll(most)); }
    [[nodiscard]] time_point clock() const { return time_point{} + std::chrono::hours(1) + now; }

    std::mt19937_64 random;
    microseconds now{0};
    weather sky;
    ledger book;
    placement::gate gate;
    link_target route;
    std::map<policy::home_kind, model_store> stores;
    bool fenced{false};  // between drain and release nothing may be written at the old home
    int violations{0};   // writes of a living session behind the fence
    int wrong_replies{0};
    int switched{0}, held{0}, lost{0}, ended_moves{0};
    bool closing_time{false};  // no more faults and requests: let everything come to rest

  private:
    struct event {
        microseconds when;
        std::uint64_t order;
        std::function<void()> what;
        bool operator<(const event& other) const {
            return std::tie(other.when, other.order) < std::tie(when, order);
        }
    };
    std::priority_queue<event> queue_;
    std::uint64_t next_{0};
};

// What the production driver does, over the gate itself.
class gate_environment : public testing::unpooled_environment {
  public:
    gate_environment(world& all, std::function<void()> on_released)
        : all_(all), on_released_(std::move(on_released)), alive_(std::make_shared<bool>(true)) {}
    ~gate_environment() override { *alive_ = false; }

    bool resolve(
        std::string_view, std::string_view, std::string_view, tool_facts& tool, refusal&) override {
        tool = {"shop", isolation_rule::by_statement};
        return true;
    }
    const link_target& target() override { return all_.route; }
    admission enter(std::uint64_t bytes) override {
        if (all_.gate.try_enter()) return entered();
        const auto serial = ++serial_;
        auto wake = [this, serial, alive = alive_, &all = all_](placement::wake_reason) {
            all.at(microseconds(1), [this, serial, alive, &all] {
                if (*alive && waiting_ == serial) {
                    waiting_ = 0;
                    inside = true;
                    on_released_();
                } else {
                    all.gate.leave();  // it gave up while the gate opened
                }
            });
        };
        switch (all_.gate.wait(bytes, std::move(wake), ticket_)) {
            case placement::entered::yes:
                return entered();
            case placement::entered::full:
                return admission::refused;
            case placement::entered::held:
                break;
        }
        waiting_ = serial;
        ++all_.held;
        return admission::held;
    }
    void leave(const ended_transaction&) override {
        if (!inside) ++all_.violations;
        inside = false;
        all_.gate.leave();
    }
    void cancel_wait() override {
        waiting_ = 0;
        static_cast<void>(all_.gate.cancel(ticket_));
    }
    std::string issue_secret(std::uint32_t) override { return "ours"; }
    void ddl_seen(std::string_view) override {}
    void count_limit_hit(std::string_view) override {}
    [[nodiscard]] bool is_waiting() const { return waiting_ != 0; }

    bool inside{false};

  private:
    admission entered() {
        inside = true;
        return admission::inside;
    }
    world& all_;
    std::function<void()> on_released_;
    std::shared_ptr<bool> alive_;
    placement::gate::ticket ticket_{};
    std::uint64_t serial_{0}, waiting_{0};
};

}  // namespace hotlane::cutover
