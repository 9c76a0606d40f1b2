// A fleet in virtual time: sidecars on the production state machines (placement/follower.hpp,
// lease.hpp, leadership.hpp, move/decide.hpp), a store that forgets its tail when it fails over, a
// network that delays, loses and cuts one way, processes that crash and pause, and a checker.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <vector>

#include "homes.hpp"
#include "router/move/decide.hpp"
#include "router/placement/follower.hpp"
#include "router/placement/leadership.hpp"
#include "router/placement/lease.hpp"

namespace sim {

using hotlane::policy::home_kind;
namespace placement = hotlane::placement;
namespace move = hotlane::move;
using ms = std::int64_t;

enum class known_fault {
    none,
    lost_flip_is_failure,  // the flip's reply is lost: undone without asking the marker
    name_used_twice,       // every move of a tool has the same name
    fence_without_number,  // the marker does not check the leader's number
    release_before_marker  // clients go on before the flip
};

inline constexpr ms lease_ms = 3'000, reply_ms = 1'000;
enum class result { ok, refused, unknown };
using then = std::function<void(result)>;

struct record {
    std::string move;
    home_kind to{};
    std::uint64_t epoch{};
    move::journal_point point{};
};
struct place {
    home_kind home{};
    std::uint64_t epoch{};
};
struct held {
    std::string move;
    bool on{false};
};

struct store_data {
    std::uint64_t number{0}, version{0};
    std::map<int, place> placements;
    std::map<int, held> holds;
    std::map<int, record> unfinished;
    std::set<std::string> acks;  // move/sidecar
    std::map<std::string, std::uint64_t> beats;
};

struct job {
    int tool{};
    record what;
    std::uint64_t leader{0};  // the marker was claimed with it
    marker seen;
    bool own{true};  // this process wrote the journal
    rows copied;
};

struct sidecar {
    int index{};
    bool up{true};
    ms paused_until{0};
    std::uint64_t life{0};
    std::string id;
    std::uint64_t session{0};
    placement::lead_state state{placement::lead_state::away};
    std::uint64_t number{0};  // as the leader; 0: none
    std::map<int, placement::follower> tools;
    std::map<int, int> inside;
    std::map<int, ms> confirmed, looked;
    std::uint64_t version{0};
    placement::own_lease lease{std::chrono::milliseconds(lease_ms)};
    placement::lease_watch others{std::chrono::milliseconds(lease_ms)};
    std::set<int> busy;  // tools that a job works on here
    int to_settle{0};
};

class world {
  public:
    world(std::uint64_t seed, int sidecars, known_fault fault);
    // Chaos, then healing. Empty: all promises held; else the first that did not, with the time.
    std::string run(ms chaos, ms healing);
    [[nodiscard]] int moves_done() const { return moves_done_; }
    [[nodiscard]] int writes_acked() const { return static_cast<int>(acked_.size()); }
    [[nodiscard]] int elections() const { return elections_; }

  private:
    static constexpr int tools = 2;
    static constexpr int store_node = -1, homes_node = -2;

    // time, chance, network
    void at(ms when, std::function<void()> what);
    void on(sidecar& s, ms after, std::function<void()> what);
    [[nodiscard]] bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
    [[nodiscard]] ms between(ms low, ms high) {
        return low + static_cast<ms>(random_() % static_cast<std::uint64_t>(high - low + 1));
    }
    [[nodiscard]] bool cut(int from, int to) const;
    [[nodiscard]] ms delay();
    void ask(sidecar& s, int whom, std::function<bool()> work, then answer);
    void ask_store(sidecar& s, std::function<bool(store_data&)> work, then answer);
    void as_leader(sidecar& s, std::function<void(store_data&)> work, then answer);
    void fail(const std::string& what);

    // the store
    void announce();
    void end_session(std::uint64_t session);
    void fail_over();

    // a sidecar
    void start(sidecar& s);
    void beat(sidecar& s);
    void news(sidecar& s);
    void step(sidecar& s, int tool, const placement::follow_input& in);
    void drained(sidecar& s, int tool);
    void watch(sidecar& s);
    void look(sidecar& s, int tool);
    void change(sidecar& s, placement::lead_event what);
    void client(sidecar& s);

    // a leader
    void settle(sidecar& s);
    void lead_on(sidecar& s);
    void begin_move(sidecar& s, int tool);
    void journal(sidecar& s, std::shared_ptr<job> j, move::journal_point point, then next);
    void claim(sidecar& s, std::shared_ptr<job> j, std::uint64_t above, int tries, then next);
    void hold(sidecar& s, std::shared_ptr<job> j, then next);
    void wait_for_drain(sidecar& s,
                        std::shared_ptr<job> j,
                        std::shared_ptr<placement::hold_round> round,
                        ms until,
                        then next);
    void go(sidecar& s, std::shared_ptr<job> j, std::size_t phase);
    void resolve(sidecar& s, std::shared_ptr<job> j, bool has_record);
    void decide(sidecar& s, std::shared_ptr<job> j, bool has_record, bool reached);
    void work_at_homes(sidecar& s, std::shared_ptr<job> j, bool has_record, move::verdict v);
    void finish(sidecar& s, std::shared_ptr<job> j, place where, bool has_record);
    void again(sidecar& s, std::shared_ptr<job> j, bool has_record);
    void done(sidecar& s, int tool);
    [[nodiscard]] bool leads(const sidecar& s) const;

    void chaos();
    void check();
    [[nodiscard]] std::string final_check();

    std::mt19937_64 random_;
    known_fault fault_;
    ms now_{0};
    std::uint64_t serial_{0};
    struct event {
        ms when;
        std::uint64_t serial;
        std::function<void()> what;
        bool operator<(const event& o) const {
            return when != o.when ? when > o.when : serial > o.serial;
        }
    };
    std::priority_queue<event> events_;
    bool healing_{false};
    std::string broken_;

    std::vector<std::unique_ptr<sidecar>> sidecars_;
    std::set<std::pair<int, int>> cuts_;
    store_data store_;
    std::deque<std::pair<ms, store_data>> replicas_;  // what a standby has
    std::map<std::uint64_t, std::pair<int, ms>> sessions_;
    std::uint64_t lock_{0}, next_session_{1};
    engine_home engine_[tools];
    postgres_home postgres_[tools];

    std::uint64_t next_row_{1}, next_move_{1};
    std::map<int, std::set<std::uint64_t>> acked_of_;
    std::set<std::uint64_t> acked_, refused_;
    std::map<std::pair<int, int>, std::uint64_t> client_epoch_;  // sidecar, tool
    int moves_done_{0}, elections_{0};
};

}  // namespace sim
