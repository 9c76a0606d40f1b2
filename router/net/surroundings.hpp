// A session's environment over the tables of placement: one a connection, on its thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "router/net/shared.hpp"
#include "router/net/types.hpp"
#include "router/session/environment.hpp"

namespace hotlane::net {

class surroundings final : public session::environment {
  public:
    surroundings(shared& all, asio::io_context& io) : all_(all), io_(io) {}

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
    void cancel_wait() override;
    std::string issue_secret(std::uint32_t process_id) override;
    void ddl_seen(std::string_view sql) override;
    void count_limit_hit(std::string_view limit) override;

    [[nodiscard]] placement::tool_entry* tool() const noexcept { return tool_.get(); }
    // The home that target() named last.
    [[nodiscard]] const placement::route* route() const noexcept { return route_.get(); }
    [[nodiscard]] bool waiting() const noexcept { return waiting_; }
    // The connection was counted as one before its login; from now on it is given back here.
    void count_accepted();

  private:
    void woken(std::uint64_t serial, placement::wake_reason reason);
    void waited();
    void observe(placement::observation::kind what, const session::ended_transaction& ended);
    void logged_in();
    [[nodiscard]] std::int64_t now_us() const;
    static std::uint64_t next_number();

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
    std::int64_t began_us_{0};  // of the transaction, after any hold
    const std::uint64_t number_{next_number()};
    std::uint32_t key_process_{0};
    std::string key_secret_;
};

}  // namespace hotlane::net
