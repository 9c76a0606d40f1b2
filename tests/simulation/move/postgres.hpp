// A simulated PostgreSQL: the marker, schemas with tables and fences, transactions that take the
// marker's row, COMMITs that arrive late. It understands the statements that a move sends (by their
// beginning and their quoted names) and what bystanders try, nothing more.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "faults.hpp"
#include "router/move/link.hpp"

namespace sim {

struct pg_table {
    std::vector<std::string> columns;
    std::vector<hotlane::move::row> rows;
    bool fenced{false};  // triggers raise on every write
    bool raises{false};  // a view that raises
};

struct pg_state {
    bool has_marker{false};
    // move, epoch, state, detail; nullopt: no row
    std::optional<std::vector<std::string>> marker;
    std::map<std::string, std::map<std::string, pg_table>> schemas{{"public", {}}};
};

class postgres {
  public:
    bool down{false};

    // Bystanders. A table that a transaction under way has locked makes them wait: not accepted.
    bool accepts_insert(const std::string& table, const std::string& key);
    [[nodiscard]] std::vector<std::string> keys(const std::string& table) const;
    [[nodiscard]] const pg_state& now() const { return state_; }
    void flush_late();

    std::unique_ptr<hotlane::move::home_link> connect(script& steps);

    // The rest is for links.
    struct transaction {
        pg_state state;
        bool locked{false};  // has the marker's row
    };
    pg_state state_;
    const void* holder_{nullptr};          // the link whose transaction has the row
    std::optional<pg_state> late_commit_;  // of a link that is gone; it holds the row until then
    bool take_lock(const void* link);
    void drop_lock(const void* link);
};

}  // namespace sim
