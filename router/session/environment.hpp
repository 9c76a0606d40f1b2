// What a session asks of its surroundings, synchronously. Implemented by router/net over
// placement's tables, and by scripts in tests. No call may block or re-enter the session.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "policy/types.hpp"

namespace hotlane::session {

// A home as a session must know it to open a link: what goes into the link's startup packet, and
// which password answers a SCRAM challenge.
struct link_target {
    std::uint64_t generation{};  // of the route; a link of another generation is stale
    policy::home_kind kind{policy::home_kind::engine};
    bool served{true};  // false: refuse with 57P03 and `reason`
    std::string reason;
    std::string user;         // empty: the client's
    std::string database;     // empty: the client's
    std::string password;     // empty: none; never logged, never sent in clear text
    std::string search_path;  // not empty: goes into the startup packet unless the client set one
};

// Rule 9 of the design: how transactions that name no isolation level begin on PostgreSQL.
enum class isolation_rule { by_statement, read_committed, repeatable_read, serializable };

struct tool_facts {
    std::string name;
    isolation_rule isolation{isolation_rule::by_statement};
};

struct refusal {
    std::string sqlstate;
    std::string message;
    std::string hint;
};

enum class admission { inside, held, refused };

struct ended_transaction {
    bool wrote{false};     // contained a statement that may write
    bool conflict{false};  // ended in a write conflict (PostgreSQL: 40001, 40P01)
    bool unknown{false};   // answered 08007
    int errors{0};
    bool block{false};       // BEGIN .. COMMIT, or several writes
    std::uint64_t key{0};    // of the row that it wrote, hashed; 0: not known, or several
    std::string_view table;  // of the last write statement, where known
    std::string_view sql;    // a sample of it, bounded
};

class environment {
  public:
    virtual ~environment() = default;

    // The client's startup packet belongs to which tool? False: `why` says what the client is told.
    virtual bool resolve(std::string_view user,
                         std::string_view database,
                         std::string_view application_name,
                         tool_facts& tool,
                         refusal& why) = 0;

    // The tool's route now. Cheap: called at every transaction.
    virtual const link_target& target() = 0;

    // Enters the gate. `held`: the driver queues the session and calls on_released or
    // on_hold_failed. `refused`: a bound is hit. After `inside`, leave() is called exactly once.
    virtual admission enter(std::uint64_t queued_bytes) = 0;
    virtual void leave(const ended_transaction& ended) = 0;
    virtual void cancel_wait() = 0;  // the client of a held session is gone

    // A cancel key for this session: the process number of its first link and a secret of ours.
    virtual std::string issue_secret(std::uint32_t process_id) = 0;

    virtual void ddl_seen(std::string_view sql) = 0;           // a DDL statement that succeeded
    virtual void count_limit_hit(std::string_view limit) = 0;  // name of a limit of config
};

}  // namespace hotlane::session
