// What several sidecars of one fleet share besides the records of store.hpp: who there is, who
// leads, what is held, what was seen. SQLite has it for a fleet of one; PostgreSQL for many.
//
// The leader's writes (placements, moves, decisions, documents, holds) carry its number: the store
// refuses them (store_error::kind::not_leader) once somebody else has a higher one. Leases are
// counted by those who watch beats grow, each by its own monotonic clock; no wall clock is
// compared.
#pragma once

#include <chrono>

#include "config/model.hpp"
#include "router/placement/store.hpp"

namespace hotlane::placement {

struct sidecar_record {
    std::string id;    // made at its start, never used twice
    std::string name;  // for people: its host
    std::string version;
    std::string policy_hash;
    std::string admin;  // where its command line is
    std::chrono::milliseconds lease{};
    std::uint64_t beat{};                     // grows with every renewal
    policy::time_point clock{};               // its wall clock at the renewal
    std::chrono::milliseconds clock_ahead{};  // of the store's; shown, never used
};

struct hold_record {
    std::string tool;
    std::string move;
    bool held{true};  // false: released, or the move was aborted
};

// What changed since a version. `whole`: everything there is (the link to the store is new).
struct news {
    std::uint64_t version{};
    bool whole{false};
    std::vector<placement_record> placements;
    std::vector<hold_record> holds;
};

struct beat_answer {
    bool known{false};     // false: the store does not know this sidecar; join again
    bool may_lead{false};  // the lock of the leader is ours now; take_lead() must follow
    std::uint64_t version{};
    std::uint64_t leader{};
    std::string leader_id;
};

struct report_record {
    std::string sidecar;
    nlohmann::json body;
};

class fleet_store : public store {
  public:
    static constexpr std::size_t reports_max = 30;  // of one sidecar, not taken yet

    // Connects when it must; blocks, within the time-outs. Only the thread that waits calls it.
    virtual stored<void> reach() = 0;
    [[nodiscard]] virtual bool reachable() const = 0;
    // Until something was announced (true), or wake() was called, or `longest` has passed.
    virtual bool wait(std::chrono::milliseconds longest) = 0;
    virtual void wake() = 0;

    virtual stored<void> join(const sidecar_record& who) = 0;
    // Renews the lease, hands over a report (null: none) and asks for the news' version.
    virtual stored<beat_answer> beat(const sidecar_record& who,
                                     const nlohmann::json& report,
                                     bool wants_to_lead) = 0;
    virtual stored<void> leave(const std::string& sidecar) = 0;  // also: forget one that is gone
    virtual stored<std::vector<sidecar_record>> sidecars() = 0;

    // Once beat() said may_lead: the next number, which no other leader of this store ever had.
    virtual stored<std::uint64_t> take_lead(const std::string& sidecar) = 0;
    virtual void resign() = 0;
    // The number that the leader's writes carry; 0: this process does not lead.
    [[nodiscard]] virtual std::uint64_t leads_as() const = 0;
    // Another number, above `seen`: a home has met a leader whose number this store lost.
    virtual stored<std::uint64_t> raise(std::uint64_t seen) = 0;

    virtual stored<news> changes(std::uint64_t since) = 0;
    virtual stored<void> put_hold(const hold_record& hold) = 0;  // the leader's
    virtual stored<void> ack(const hold_record& hold, const std::string& sidecar) = 0;
    virtual stored<std::vector<std::string>> acks(const hold_record& hold) = 0;
    virtual stored<std::vector<report_record>> take_reports(std::size_t limit) = 0;
};

// Opens or makes the file (parent folder must exist). Errors: locked by another process, not a
// hotlane store, newer version, disk.
stored<std::unique_ptr<fleet_store>> open_sqlite_store(const std::string& path);

// How to reach a store in PostgreSQL. The link is a session (advisory lock, LISTEN): nothing that
// pools transactions may stand between.
struct postgres_target {
    std::string dsn;  // libpq's; several hosts are tried in turn
    std::string password;
    std::chrono::milliseconds connect_timeout{2'000};  // a host
    std::chrono::milliseconds statement_timeout{2'000};
    std::chrono::milliseconds idle_timeout{9'000};  // the server ends a session that is silent
    std::string name;                               // application_name
};
// Does not connect. An error: the DSN cannot be read.
stored<std::unique_ptr<fleet_store>> open_postgres_store(const postgres_target& at);

}  // namespace hotlane::placement
