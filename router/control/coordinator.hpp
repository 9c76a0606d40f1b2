// One sidecar's part in its fleet: renews its lease, follows the news of the store, stands for the
// lead, holds and releases for moves (its own and others'), and confirms homes by their markers
// while the store is away. The decisions are tables (placement/follower.hpp, lease.hpp,
// leadership.hpp); this carries them out.
//
// THREADS: one that talks to the store, one that counts leases, a few that look at homes, and
// whoever calls. Nothing here
// waits for a store or a home with the mutex held: the data plane takes it too.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "router/control/parts.hpp"
#include "router/placement/fleet_store.hpp"
#include "router/placement/follower.hpp"
#include "router/placement/leadership.hpp"
#include "router/placement/lease.hpp"

namespace hotlane::control {

class coordinator final : public move::fleet {
  public:
    struct settings {
        placement::sidecar_record who;
        std::chrono::milliseconds report_every{1'000};
        std::chrono::milliseconds retry_first{250};  // of a store that is away; doubles
        std::chrono::milliseconds retry_max{4'000};
        std::chrono::milliseconds drain_look{5};    // while a hold waits for open transactions
        std::chrono::milliseconds ack_look{25};     // while the leader waits for others
        std::chrono::milliseconds look_again{250};  // at a home that did not tell
        std::chrono::milliseconds watch_every{100};
        std::size_t observations_max{64};  // of one tool in one report
        std::size_t writes_max{2'000};
        int lookers{4};
    };
    // What the rest of the control plane does; set before start().
    struct hooks {
        std::function<void()> elected;                   // look at every home again
        std::function<bool()> looked;                    // and that was done
        std::function<void()> leading;                   // decides from now on
        std::function<bool(const std::string&)> moving;  // a move of this tool runs here
    };

    coordinator(context& in, placement::fleet_store& store, settings with);
    ~coordinator() override { stop(); }
    coordinator(const coordinator&) = delete;
    coordinator& operator=(const coordinator&) = delete;

    void start(hooks with);
    void stop();

    // A tool's first client came (under the table's lock, on a data plane thread).
    void meet(placement::tool_entry& entry);
    // The homes were asked: the entry's route says what came of it.
    void looked(placement::tool_entry& entry, bool known);
    // An answer came that only a fenced home gives. Data plane; does not block.
    void doubt(const std::string& tool);

    // Leads, and has seen every home: it may decide and move.
    [[nodiscard]] bool decides() const { return state_ == placement::lead_state::leading; }

    // What passed here of DDL goes into the store, where it is not there yet.
    void keep_all_ddl();

    // move::fleet
    [[nodiscard]] bool leads() const override;
    tl::expected<std::uint64_t, std::string> number_above(std::uint64_t seen) override;
    tl::expected<void, std::string> hold(const std::string& tool,
                                         const std::string& move,
                                         std::chrono::steady_clock::time_point until,
                                         const std::function<bool()>& goes_on) override;
    void release(const std::string& tool, const std::string& move) override;

    struct figures {
        placement::lead_state state{};
        std::uint64_t leader{};  // number
        std::string leader_id;
        std::string id, name;
        bool store_up{false};
        std::chrono::milliseconds store_away{0};
        std::size_t held{}, unconfirmed{};
        std::uint64_t statements{};  // to the store, by this thread
        std::uint64_t elections{};
    };
    [[nodiscard]] figures now() const;
    [[nodiscard]] nlohmann::json view();  // GET /fleet

  private:
    using steady = std::chrono::steady_clock;
    struct known {
        placement::tool_entry* entry{nullptr};  // lives as long as the process; null: not met here
        placement::follower follows;
        bool ack_due{false};
        bool look_wanted{false};
        bool being_looked_at{false};
        steady::time_point look_at{};
        steady::time_point confirmed{};  // a marker or the store said so
        std::uint64_t links_seen{0};
        std::array<std::uint64_t, 6> told{};  // counters in the last report
        placement::after_error_counts after_error_told{};
        std::deque<std::string> ddl;               // seen here, not in the store yet
        std::vector<placement::observation> seen;  // for the next report
        policy::time_point statements_told{};
        std::uint64_t writes_dropped{0};
    };

    void work(const std::stop_token& stop);
    void turn(bool announced);
    [[nodiscard]] std::chrono::milliseconds until_next() const;
    void reach();
    void beat();
    void follow_news();
    void apply(const placement::news& what);
    void change(placement::lead_event what);
    void look_for_drained();
    void send_acks();
    void lead_on();  // the leader's turn: reports, leases, holds left behind
    void finish_holds();
    void merge_reports();
    [[nodiscard]] std::string policy_now();
    [[nodiscard]] nlohmann::json report();
    void take(known& tool);
    bool keep_ddl(const std::string& tool);
    void confirm_one(known& tool, bool told, steady::time_point now);
    void confirm();
    void watch(const std::stop_token& stop);
    void look(const std::stop_token& stop);
    void look_at(const std::string& tool);

    // With mutex_ held.
    known& at(const std::string& tool);
    void step(known& tool, const placement::follow_input& in, const std::string& why = {});
    void set_route(known& tool);
    void poke_later(const known& tool);
    void renew(steady::time_point sent);
    void poke();  // without it

    context& in_;
    placement::fleet_store& store_;
    settings with_;
    hooks hooks_;
    std::atomic<placement::lead_state> state_{placement::lead_state::away};
    std::atomic<std::uint64_t> statements_{0}, elections_{0};
    std::atomic<bool> stopping_{false};

    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    std::map<std::string, known> tools_;
    std::mutex keeping_ddl_;  // one at a time, in the order in which it passed; before mutex_
    std::set<std::string> to_poke_;
    placement::own_lease lease_;
    placement::lease_watch others_;
    std::vector<placement::sidecar_record> sidecars_;  // as the leader saw them last
    std::string away_reason_{"not connected yet"};
    steady::time_point away_since_;
    std::uint64_t leader_{0};
    std::string leader_id_;
    std::shared_ptr<const config::model> hashed_;  // the model that policy_hash_ is of
    std::string policy_hash_;

    // The store's thread only.
    std::uint64_t version_{0};
    bool news_due_{true};
    int tries_{0};
    steady::time_point reach_at_, beat_at_, report_at_, lead_at_;
    steady::time_point decides_from_;  // a lease after this one took the lead

    std::vector<std::jthread> threads_;
};

}  // namespace hotlane::control
