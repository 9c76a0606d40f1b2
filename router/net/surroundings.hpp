// A session's environment over the tables of placement: one a connection, on its thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "router/net/pool.hpp"
#include "router/net/shared.hpp"
#include "router/net/types.hpp"
#include "router/session/environment.hpp"

namespace hotlane::net {

class surroundings final : public session::environment, public link_borrower {
  public:
    surroundings(worker& on, connection& here);

    // `wake` runs on the connection's thread, not inside a call: the gate let us in, or gave us up.
    using wake = std::function<void(bool inside, std::string_view why)>;
    void bind(std::weak_ptr<connection> owner, wake on_wake);
    // The connection is over: whatever is still counted or queued for it is given back.
    void end();

    bool resolve(std::string_view user,
                 std::string_view database,
                 std::string_view application_name,
                 session::tool_facts& tool,
                 session::refusal& why) override;
    const session::link_target& target() override;
    session::admission enter(std::uint64_t queued_bytes) override;
    void leave(const session::ended_transaction& ended) override;
    std::uint64_t write_watch() override { return tool_->changes.number(); }
    void cancel_wait() override;
    std::string issue_secret(std::uint32_t process_id) override;
    void ddl_seen(std::string_view sql) override;
    bool wants_statement(std::uint64_t fingerprint) override;
    void statement_seen(std::uint64_t fingerprint,
                        std::string_view sql,
                        std::span<const std::uint32_t> types) override;
    void count_limit_hit(std::string_view limit) override;
    void pinned(session::pin reason) override;

    bool gate_is_open() override { return !tool_->gate.held(); }
    session::link_memory* borrow(const session::link_identity& who) override;
    void give_back(session::link_fate fate) override;
    void stop_waiting() override;
    bool link_is_coming() override;
    session::pairs_ptr greeting(const session::link_identity& who) override;
    std::uint32_t process_number() override;
    void sequences_matter() override;
    bool do_sequences_matter() override;

    session::retry_rule retry() override;
    std::uint64_t dice() override;
    void retried(session::retry_outcome outcome, int tries) override;
    void went_on_after_error(std::string_view tag, bool first) override;

    bool is_confirmed() override;
    bool left_home() override;

    void link_offered(link_ptr link) override;
    void link_denied(const session::refusal& why, std::string words) override;
    void link_delayed(const std::string& notice) override;
    void unpinned();

    [[nodiscard]] placement::tool_entry* tool() const noexcept { return tool_.get(); }
    // The home that target() named last.
    [[nodiscard]] const placement::route* route() const noexcept { return route_.get(); }
    [[nodiscard]] bool waiting() const noexcept { return waiting_; }
    // The connection was counted as one before its login; from now on it is given back here.
    void count_accepted();

    // Nothing that its client may be told of is missing in the store.
    [[nodiscard]] bool is_ddl_kept();
    void wait_no_more_for_ddl() { ddl_mark_ = 0; }

  private:
    void woken(std::uint64_t serial, placement::wake_reason reason);
    void waited();
    void observe(placement::observation::kind what, const session::ended_transaction& ended);
    void logged_in();
    void find_pool(const session::link_identity& who);
    void leave_pool();
    [[nodiscard]] std::int64_t now_us() const;
    static std::uint64_t next_number();

    worker& worker_;
    connection& here_;
    shared& all_;
    asio::io_context& io_;
    std::weak_ptr<connection> owner_;
    wake on_wake_;
    std::shared_ptr<placement::tool_entry> tool_;
    std::shared_ptr<const placement::route> route_;
    std::uint64_t version_{0};
    session::link_target target_;
    placement::gate::ticket ticket_{};
    std::uint64_t wait_serial_{0};  // of the wait that counts; a wake of another one is late
    bool waiting_{false};
    std::shared_ptr<placement::tool_entry> abandoned_;  // a wake is due that nobody wants
    bool inside_{false};  // the gate; given back at the end whatever the session did
    bool ended_{false};
    bool before_login_{false};
    steady::time_point wait_began_;
    std::uint64_t writes_{0};
    std::uint64_t turn_{0};  // grows every few minutes: what was seen before is offered again
    std::shared_ptr<link_pool> pool_;
    bool in_queue_{false};  // for a link, at queue_place_
    link_queue::iterator queue_place_;
    std::uint64_t offer_serial_{0};  // of the link that is on its way; older ones go back
    std::uint64_t ddl_mark_{0};      // of the DDL that waits for the store
    session::pin pinned_as_{session::pin::none};
    std::int64_t began_us_{0};  // of the transaction, after any hold
    const std::uint64_t number_{next_number()};
    std::uint32_t key_process_{0};
    std::string key_secret_;
};

}  // namespace hotlane::net
