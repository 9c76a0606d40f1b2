// What a client has made of its session by SQL: parameters to be set again on a new link, pins that
// forbid a new link, DDL to be reported. All of it is transactional, as at the home: it takes
// effect with the commit and is undone by a rollback or a ROLLBACK TO.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "router/session/link_memory.hpp"
#include "router/session/pin.hpp"

namespace hotlane::session {

// One change that is not yet committed.
struct pending_change {
    enum class kind : std::uint8_t {
        set,    // name, sql
        reset,  // name
        reset_all,
        add_pin,     // reason
        clear_pins,  // DISCARD ALL
        drop_pin,    // reason
        ddl,         // sql
        savepoint,   // name
    } what{};
    std::string name;
    std::string sql;
    pin reason{pin::none};
};

class tracked_state {
  public:
    explicit tracked_state(std::size_t parameters_max) : parameters_max_(parameters_max) {}

    // Of a statement that succeeded, inside the open transaction.
    void note(pending_change change);
    void release(std::string_view savepoint);
    void rollback_to(std::string_view savepoint);
    // The end of the transaction. `ddl` receives the DDL that is now in force.
    void commit(std::vector<std::string>& ddl);
    void rollback() noexcept {
        pending_.clear();
        pending_bytes_ = 0;
    }
    [[nodiscard]] bool has_pending() const noexcept { return !pending_.empty(); }

    // What no rollback undoes.
    void pin_now(pin reason) noexcept { pins_ |= bit(reason); }

    // The first reason, those of open transactions included; none: the session may move.
    [[nodiscard]] pin pinned() const noexcept;
    [[nodiscard]] bool hit_limit() const noexcept { return hit_limit_; }
    // name and SQL text, in the order in which they were first set
    [[nodiscard]] const pairs& parameters() const noexcept {
        static const pairs none;
        return parameters_ ? *parameters_ : none;
    }
    [[nodiscard]] pairs_ptr shared_parameters() const noexcept { return parameters_; }

  private:
    static std::uint32_t bit(pin reason) noexcept {
        return reason == pin::none ? 0U : 1U << static_cast<unsigned>(reason);
    }
    void apply(pending_change& change, std::vector<std::string>& ddl);
    void set(std::string name, std::string sql);
    pairs& writable();
    std::size_t find_savepoint(std::string_view name) const noexcept;

    static constexpr std::size_t pending_max = 10'000;
    static constexpr std::size_t pending_bytes_max = 4 * 1024 * 1024;
    static constexpr std::size_t parameter_bytes_max = 16 * 1024;
    static constexpr std::size_t none_found = static_cast<std::size_t>(-1);

    std::size_t parameters_max_;
    std::shared_ptr<pairs> parameters_;  // null: none
    std::vector<pending_change> pending_;
    std::size_t pending_bytes_{0};  // of their texts, since the transaction began
    std::uint32_t pins_{0};
    bool hit_limit_{false};
};

}  // namespace hotlane::session
