// Where a tool lives now: an immutable value that the data plane reads and the control plane swaps.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "config/model.hpp"
#include "policy/types.hpp"
#include "router/placement/gate.hpp"

namespace hotlane::placement {

// A home as the data plane needs it: where to connect and as whom.
struct home {
    policy::home_kind kind{policy::home_kind::engine};
    config::endpoint at;
    std::string database;     // empty: the client's
    std::string user;         // empty: the client's
    std::string password;     // empty: none. Never logged.
    std::string search_path;  // PostgreSQL: put into the startup packet when not "public"
};

// One placement. A session compares `generation` with that of its link to know that it must switch.
struct route {
    std::uint64_t epoch{};       // grows with every change of home
    std::uint64_t generation{};  // grows with every swap, also of connection settings
    bool served{true};           // false: clients get 57P03 with `reason`
    std::string reason;
    home at;
};

// What the data plane counts for one tool. Relaxed atomics; cumulative.
struct counters {
    std::atomic<std::uint64_t> transactions{0}, write_transactions{0}, write_conflicts{0},
        errors{0}, unknown_outcomes{0}, hold_wait_us{0}, held{0}, hold_refused{0}, link_opens{0},
        link_failures{0}, bytes_in{0}, bytes_out{0}, switched{0}, pinned_ended{0};
    std::atomic<std::int64_t> sessions{0};
    std::atomic<std::int64_t> last_activity_ms{0};  // policy::time_point of the last transaction
};

// What happened that the control plane wants to know in words; a bounded queue a tool.
struct observation {
    enum class kind { ddl, conflict, write } what{};
    std::string table;  // where known
    std::string sql;    // ddl: the statement's text. conflict/write: a sample, bounded
    policy::time_point at{};
};

class observations {
  public:
    explicit observations(std::size_t max = 1'000) : max_(max) {}
    void push(observation o);         // drops samples when full, never DDL
    std::vector<observation> take();  // all so far
    [[nodiscard]] std::uint64_t dropped() const;

  private:
    std::size_t max_;
    mutable std::mutex mutex_;
    std::vector<observation> queue_;
    std::uint64_t dropped_{0};
};

// Everything about one tool that both planes share. Lives as long as the process.
struct tool_entry {
    std::string name;
    config::tool settings;
    placement::gate gate;
    counters counted;
    observations seen;

    [[nodiscard]] std::shared_ptr<const route> current() const { return route_.load(); }
    void swap(std::shared_ptr<const route> next) { route_.store(std::move(next)); }

  private:
    std::atomic<std::shared_ptr<const route>> route_;
};

// What a startup packet says about the client.
struct client_identity {
    std::string user;
    std::string database;
    std::string application_name;
};

// The tools: made from the configuration, grown by template tools. THREADS: any.
class tool_table {
  public:
    // `limit` bounds the tools that templates may make.
    explicit tool_table(const config::model& model, std::size_t template_tools_max = 2'000);

    // First matching rule wins; nullptr: no tool. A template tool is made at its first client.
    std::shared_ptr<tool_entry> resolve(const client_identity& who);
    [[nodiscard]] std::shared_ptr<tool_entry> find(const std::string& name) const;
    [[nodiscard]] std::vector<std::shared_ptr<tool_entry>> all() const;

    // Called once for each new entry before it is handed out, to place it (recovery reads the homes
    // first). Set before the first resolve().
    std::function<void(tool_entry&)> on_new;

  private:
    std::shared_ptr<tool_entry> make(const config::tool& settings);

    std::vector<config::tool> rules_;
    std::size_t template_tools_max_;
    mutable std::mutex mutex_;
    std::map<std::string, std::shared_ptr<tool_entry>> tools_;
};

// Shell-style glob with * and ?, the whole text. Linear time.
bool glob_match(std::string_view pattern, std::string_view text) noexcept;

}  // namespace hotlane::placement
