// Where a tool lives now: an immutable value that the data plane reads and the control plane swaps.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "config/model.hpp"
#include "policy/types.hpp"
#include "router/placement/change_watch.hpp"
#include "router/placement/gate.hpp"
#include "router/placement/statements.hpp"

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

// Why a pooled link was closed.
enum class link_end : std::uint8_t { idle, lifetime, route, broken, state, evicted, shutdown };
inline constexpr std::array<std::string_view, 7> link_ends{
    "idle", "lifetime", "route", "broken", "state", "evicted", "shutdown"};
// Why a session keeps its link, in the order of the session's own enumeration.
inline constexpr std::array<std::string_view, 11> pin_reasons{"none",
                                                              "listen",
                                                              "temporary_object",
                                                              "advisory_lock",
                                                              "holdable_cursor",
                                                              "sql_prepare",
                                                              "role",
                                                              "string_syntax",
                                                              "session_function",
                                                              "unreadable",
                                                              "other"};
inline constexpr std::array<std::string_view, 4> retry_outcomes{
    "recovered", "exhausted", "too_large", "given_up"};
// What goes on at the engine after an error inside a block, by the words of its replies.
inline constexpr std::array<std::string_view, 8> after_error_words{
    "select", "insert", "update", "delete", "commit", "savepoint", "release", "other"};
// The place of a reply's tag in them.
std::size_t after_error_word(std::string_view tag) noexcept;
// How long clients were held: counts by upper edge, in seconds; the last is above all edges.
inline constexpr std::array hold_edges{
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0};
struct hold_times {
    std::array<std::atomic<std::uint64_t>, hold_edges.size() + 1> counts{};
    std::atomic<std::uint64_t> sum_us{0};
    void observe(std::chrono::microseconds held) noexcept;
};

// What the data plane counts for one tool. Relaxed atomics; cumulative.
struct counters {
    std::atomic<std::uint64_t> transactions{0}, write_transactions{0}, write_conflicts{0},
        errors{0}, unknown_outcomes{0}, hold_wait_us{0}, held{0}, hold_refused{0}, link_opens{0},
        link_failures{0}, bytes_in{0}, bytes_out{0}, switched{0}, pinned_ended{0};
    std::atomic<std::int64_t> sessions{0};
    // Links that clients share.
    std::atomic<std::int64_t> links_open{0}, links_lent{0}, link_waiters{0}, pinned_now{0};
    std::atomic<std::uint64_t> link_waits{0}, link_wait_us{0};
    std::array<std::atomic<std::uint64_t>, link_ends.size()> links_closed{};
    std::array<std::atomic<std::uint64_t>, pin_reasons.size()> pins{};      // by reason
    std::array<std::atomic<std::int64_t>, pin_reasons.size()> pinned_by{};  // now, by reason
    // Blocks that went on after an error, and their statements that did.
    std::atomic<std::uint64_t> after_error_blocks{0};
    std::array<std::atomic<std::uint64_t>, after_error_words.size()> after_error{};
    // Lever 1.
    std::array<std::atomic<std::uint64_t>, retry_outcomes.size()> retries{};
    std::atomic<std::uint64_t> retry_tries{0};
    std::atomic<std::int64_t> last_activity_ms{0};  // policy::time_point of the last transaction
    hold_times held_for;
};

// First the blocks, then the statements by word.
using after_error_counts = std::array<std::uint64_t, 1 + after_error_words.size()>;
after_error_counts read_after_error(const counters& counted) noexcept;

// What a verdict needs of them.
policy::traffic traffic_of(const counters& counted) noexcept;

// Lever 1 as the control plane wants it now. Relaxed atomics; a session reads it for each
// statement.
struct retry_switch {
    std::atomic<bool> on{false};
    std::atomic<int> attempts{0};
    std::atomic<std::int64_t> time_ms{0}, pause_first_ms{0}, pause_max_ms{0};
    std::atomic<std::uint64_t> bytes_max{0};
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
    explicit observations(std::size_t max = 1'000, std::size_t ddl_max = 10'000)
        : max_(max), ddl_max_(ddl_max) {}
    // Drops samples when full; DDL has a bound of its own, and is given a mark.
    std::uint64_t push(observation o);
    std::vector<observation> take();  // all so far, in order
    [[nodiscard]] std::uint64_t dropped() const;
    // DDL was lost because nobody took it: what passed through is no longer the whole schema.
    [[nodiscard]] std::uint64_t ddl_lost() const;
    // DDL that passed and is not in the store (yet): whoever stores it says so with ddl_kept.
    [[nodiscard]] std::uint64_t ddl_unkept() const;
    void ddl_kept();
    // All DDL up to that mark is in the store, or some was lost and nobody waits for it any more.
    [[nodiscard]] bool is_kept(std::uint64_t mark) const;

  private:
    std::size_t max_;
    std::size_t ddl_max_;
    mutable std::mutex mutex_;
    std::vector<observation> queue_;
    std::size_t ddl_queued_{0};
    std::uint64_t dropped_{0};
    std::uint64_t ddl_lost_{0};
    std::uint64_t ddl_unkept_{0};
    std::uint64_t ddl_passed_{0};
};

// The write transactions that ended since somebody took them, for the prediction of the other home.
// Bounded: when nobody takes them the oldest half goes, and it is counted.
class write_intervals {
  public:
    explicit write_intervals(std::size_t max = 50'000) : max_(max) {}
    void push(const policy::write_interval& one);
    std::vector<policy::write_interval> take();
    void count_dropped(std::uint64_t more);  // elsewhere, on the way here
    [[nodiscard]] std::uint64_t dropped() const;

  private:
    std::size_t max_;
    mutable std::mutex mutex_;
    std::vector<policy::write_interval> all_;
    std::uint64_t dropped_{0};
};

// Everything about one tool that both planes share. Lives as long as the process.
//
// The route is behind a short mutex, with a version beside it: a session compares the version at
// every transaction and takes the mutex only when the route was swapped.
struct tool_entry {
    tool_entry();

    std::string name;
    config::tool settings;
    placement::gate gate;
    counters counted;
    retry_switch retry;
    counters elsewhere;  // what the other sidecars of a fleet counted, at the one that leads
    observations seen;
    std::function<void()> keep_seen;  // brings into the store what was seen so far; set before use
    statement_book statements;
    write_intervals writes;
    change_watch changes;  // while a move copies ahead

    [[nodiscard]] std::shared_ptr<const route> current() const;
    void swap(std::shared_ptr<const route> next);  // never nullptr
    [[nodiscard]] std::uint64_t version() const noexcept { return version_.load(); }

    // swap() with a route to `at`, of the next generation. Not served: `reason` says why.
    void place(home at, std::uint64_t epoch);
    // For links made from now on, if the tool still lives at a home of that kind; others stay.
    void renew_password(policy::home_kind at, std::string password);
    void close(std::string reason);  // keeps home and epoch, served = false

  private:
    mutable std::mutex mutex_;
    std::shared_ptr<const route> route_;
    std::atomic<std::uint64_t> version_{1};  // grows with every swap
};

// The home of `kind` as the tool's settings describe it, its password read now. An error names the
// tool: no PostgreSQL home is configured, or its secret cannot be read.
tl::expected<home, std::string> home_of(const config::tool& settings,
                                        const config::model& model,
                                        policy::home_kind kind);

// What a startup packet says about the client.
struct client_identity {
    std::string user;
    std::string database;
    std::string application_name;
};

// What the data plane asks of a fleet about the homes of its tools. Alone: always confirmed.
struct fleet_word {
    // Until then (steady clock, microseconds) the store vouches for every route.
    std::atomic<std::int64_t> until_us{std::numeric_limits<std::int64_t>::max()};
    // A home answered as only a fenced one does: closes the tool's gate until its homes were read,
    // and says true. Data plane threads; does not block. Set before the first client; may be empty.
    std::function<bool(tool_entry&)> left;

    [[nodiscard]] bool holds() const;
};

// The tools: made from the configuration, grown by template tools. THREADS: any.
//
// A tool of the configuration exists from construction on; a template tool is made at its first
// client. Neither is served until someone places it (tool_entry::place): the caller places those in
// all() at start, and on_new places the others or holds their gate until that is done.
class tool_table {
  public:
    // `limit` bounds the tools that templates may make.
    explicit tool_table(const config::model& model, std::size_t template_tools_max = 2'000);

    // A tool of a reloaded configuration, behind all others. nullptr: a template (its tools come
    // with their clients), or the name is taken.
    std::shared_ptr<tool_entry> add(const config::tool& settings);

    // First matching rule wins; nullptr: no tool.
    std::shared_ptr<tool_entry> resolve(const client_identity& who);
    [[nodiscard]] std::shared_ptr<tool_entry> find(const std::string& name) const;
    [[nodiscard]] std::vector<std::shared_ptr<tool_entry>> all() const;
    [[nodiscard]] std::uint64_t template_limit_hits() const noexcept { return limit_hits_.load(); }

    // Called once for each tool made by a template, before it is handed out. Set before the first
    // resolve(). Runs on a data plane thread under the table's mutex: it must neither block nor
    // call the table.
    std::function<void(tool_entry&)> on_new;
    // DDL passed, and who keeps it should do so now: its client is told only then. Set before the
    // first client; empty: nobody keeps it. Data plane threads; must not block.
    std::function<void()> on_ddl;
    fleet_word word;

  private:
    struct placed {
        std::size_t rule;  // which rule made it: no other rule may hand it out
        std::shared_ptr<tool_entry> entry;
    };
    std::shared_ptr<tool_entry> make(const config::tool& settings) const;
    std::shared_ptr<tool_entry> from_template(std::size_t rule, const client_identity& who);

    std::vector<config::tool> rules_;
    config::limits limit_;
    std::size_t template_tools_max_;
    mutable std::mutex mutex_;
    std::map<std::string, placed> tools_;
    std::size_t template_tools_{0};
    std::atomic<std::uint64_t> limit_hits_{0};
};

// May this text of a client stand in a name or an address? [A-Za-z0-9_.-], at most 63, not . or ..
bool is_plain_name(std::string_view text) noexcept;

// Puts the client's identity into the places of a template tool ({database}, {user},
// {application_name} in its name, addresses, databases, roles). nullopt: a value that is used is
// not a plain name, or a place is unknown.
std::optional<config::tool> fill_template(const config::tool& pattern, const client_identity& who);

// Shell-style glob with * and ?, the whole text. At most |pattern| times |text| steps.
bool glob_match(std::string_view pattern, std::string_view text) noexcept;

}  // namespace hotlane::placement
