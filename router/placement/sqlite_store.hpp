// The embedded state store over one SQLite file, for a fleet of one: whoever has the file leads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "router/placement/fleet_store.hpp"
#include "router/placement/sqlite_open.hpp"

namespace hotlane::placement {

inline std::int64_t to_number(policy::time_point at) {
    return at.time_since_epoch().count();
}
inline policy::time_point to_time(std::int64_t ms) {
    return policy::time_point{policy::duration{ms}};
}
inline std::int64_t to_number(policy::home_kind kind) {
    return kind == policy::home_kind::postgres ? 1 : 0;
}
inline policy::home_kind to_home(std::int64_t number) {
    return number == 1 ? policy::home_kind::postgres : policy::home_kind::engine;
}
inline std::int64_t to_number(std::uint64_t value) {
    return static_cast<std::int64_t>(value);
}

// Invalid UTF-8 (a statement's sample may hold any bytes) is replaced, not thrown at the caller.
inline std::string to_text(const nlohmann::json& body) {
    return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
inline nlohmann::json to_json(const std::string& text) {
    return nlohmann::json::parse(text, nullptr, false);
}

inline tl::unexpected<store_error> failed(const sqlite_query& query) {
    return tl::unexpected(store_error{"state file: " + query.error()});
}

inline placement_record read_placement(const sqlite_query& row) {
    return {.tool = row.text(0),
            .home = to_home(row.number(1)),
            .epoch = static_cast<std::uint64_t>(row.number(2)),
            .since = to_time(row.number(3)),
            .move = row.text(4)};
}

template <typename Read>
auto read_all(sqlite_query& query, Read read) -> stored<std::vector<decltype(read(query))>> {
    std::vector<decltype(read(query))> records;
    auto stepped = query.step();
    for (; stepped == sqlite_step::row; stepped = query.step())
        records.push_back(read(query));
    if (stepped == sqlite_step::failed) return failed(query);
    return records;
}

template <typename Read>
auto read_one(sqlite_query& query, Read read) -> stored<std::optional<decltype(read(query))>> {
    const auto stepped = query.step();
    if (stepped == sqlite_step::failed) return failed(query);
    if (stepped == sqlite_step::done) return std::nullopt;
    return std::optional(read(query));
}

class sqlite_store final : public fleet_store {
  public:
    explicit sqlite_store(opened_sqlite opened) : opened_(std::move(opened)) {}

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

    stored<void> reach() override { return {}; }
    [[nodiscard]] bool reachable() const override { return true; }
    bool wait(std::chrono::milliseconds longest) override;
    void wake() override;
    stored<void> join(const sidecar_record& who) override;
    stored<beat_answer> beat(const sidecar_record& who,
                             const nlohmann::json& report,
                             bool wants_to_lead) override;
    stored<void> leave(const std::string& sidecar) override;
    stored<std::vector<sidecar_record>> sidecars() override;
    stored<std::uint64_t> take_lead(const std::string& sidecar) override;
    void resign() override { number_ = 0; }
    [[nodiscard]] std::uint64_t leads_as() const override { return number_.load(); }
    stored<std::uint64_t> raise(std::uint64_t seen) override;
    stored<news> changes(std::uint64_t since) override;
    stored<void> put_hold(const hold_record& hold) override;
    stored<void> ack(const hold_record& hold, const std::string& sidecar) override;
    stored<std::vector<std::string>> acks(const hold_record& hold) override;
    stored<std::vector<report_record>> take_reports(std::size_t limit) override;

  private:
    [[nodiscard]] sqlite3* db() const noexcept { return opened_.db.get(); }
    [[nodiscard]] sqlite_query ask(std::string sql, std::string_view columns) const {
        sql.replace(sql.find("{}"), 2, columns);
        return {db(), sql};
    }
    stored<void> run(sqlite_query& query) const {
        if (!query.run()) return failed(query);
        return {};
    }
    stored<std::int64_t> number(std::string_view sql) const;
    stored<void> refuse_unless_led() const;
    stored<void> announce();  // under mutex_: the version of the news grows

    std::mutex mutex_;
    std::condition_variable changed_;
    bool announced_{false};
    std::atomic<std::uint64_t> number_{0};
    opened_sqlite opened_;
};

}  // namespace hotlane::placement
