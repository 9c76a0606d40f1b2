// The state store in PostgreSQL. One session a process, shared by its control threads under one
// mutex; every write is one statement, so a broken session leaves what was there before or all of
// it.
#pragma once

#include <atomic>
#include <mutex>

#include "router/placement/fleet_store.hpp"
#include "router/placement/pg_session.hpp"

namespace hotlane::placement {

class postgres_store final : public fleet_store {
  public:
    explicit postgres_store(postgres_target at);
    ~postgres_store() override;

    stored<std::vector<placement_record>> placements() override;
    stored<std::optional<placement_record>> placement(const std::string& tool) override;
    stored<bool> put_placement(const placement_record& record) override;
    stored<void> put_move(const move_record& record) override;
    stored<std::optional<move_record>> move(const std::string& id) override;
    stored<std::vector<move_record>> unfinished_moves() override;
    stored<std::vector<move_record>> recent_moves(std::size_t limit) override;
    stored<std::uint64_t> add_decision(const decision_record& record) override;
    stored<std::vector<decision_record>> decisions(const std::string& tool,
                                                   std::size_t limit) override;
    stored<void> add_ddl(const std::string& tool, const std::string& sql) override;
    stored<std::vector<std::string>> ddl(const std::string& tool) override;
    stored<void> put_document(const std::string& kind,
                              const std::string& name,
                              const nlohmann::json& body) override;
    stored<std::optional<nlohmann::json>> document(const std::string& kind,
                                                   const std::string& name) override;

    stored<void> reach() override;
    [[nodiscard]] bool reachable() const override;
    bool wait(std::chrono::milliseconds longest) override;
    void wake() override;
    stored<void> join(const sidecar_record& who) override;
    stored<beat_answer> beat(const sidecar_record& who,
                             const nlohmann::json& report,
                             bool wants_to_lead) override;
    stored<void> leave(const std::string& sidecar) override;
    stored<std::vector<sidecar_record>> sidecars() override;
    stored<std::uint64_t> take_lead(const std::string& sidecar) override;
    void resign() override;
    [[nodiscard]] std::uint64_t leads_as() const override { return number_.load(); }
    stored<std::uint64_t> raise(std::uint64_t seen) override;
    stored<news> changes(std::uint64_t since) override;
    stored<void> put_hold(const hold_record& hold) override;
    stored<void> ack(const hold_record& hold, const std::string& sidecar) override;
    stored<std::vector<std::string>> acks(const hold_record& hold) override;
    stored<std::vector<report_record>> take_reports(std::size_t limit) override;

  private:
    stored<pg_rows> run(const std::string& sql, const std::vector<pg_cell>& params = {});
    // `sql` goes on after the common table `term`, and its first column counts the rows of that.
    // $1 is the leader's number.
    stored<pg_rows> run_as_leader(const std::string& sql, std::vector<pg_cell> params);
    stored<pg_rows> run_locked(const std::string& sql, const std::vector<pg_cell>& params);
    void drop_session();

    postgres_target at_;
    mutable std::mutex mutex_;
    std::unique_ptr<pg_session> session_;
    bool fresh_{true};  // the session was made since the last look at all news
    std::string away_reason_{"not connected yet"};
    std::atomic<std::uint64_t> number_{0};
    int wake_up_{-1};  // eventfd
};

// Tables of the version that this program knows, or an error that says why not. Several processes
// may do it at once.
pg_answer<void> prepare_postgres(pg_session& session, const postgres_target& at);

inline std::string text_of(std::uint64_t number) {
    return std::to_string(number);
}
inline std::string text_of(policy::time_point at) {
    return std::to_string(at.time_since_epoch().count());
}
inline std::string text_of(policy::home_kind kind) {
    return kind == policy::home_kind::postgres ? "1" : "0";
}
std::int64_t number_of(const pg_cell& cell);
std::string string_of(const pg_cell& cell);
placement_record placement_of(const std::vector<pg_cell>& row, std::size_t first);

}  // namespace hotlane::placement
