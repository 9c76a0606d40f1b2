// What a session asks of its surroundings, synchronously. Implemented by router/net over
// placement's tables, and by scripts in tests. No call may block or re-enter the session.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "policy/types.hpp"
#include "router/session/link_memory.hpp"
#include "router/session/pin.hpp"

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

// Whose a link is: its client's for life, or of one transaction after the other.
enum class pooling : std::uint8_t { session, transaction };

struct tool_facts {
    std::string name;
    isolation_rule isolation{isolation_rule::by_statement};
    pooling pool{pooling::session};
    std::size_t statements_per_link{500};  // of a borrowed one; the oldest goes
};

// What becomes of a borrowed link that is given back.
enum class link_fate : std::uint8_t {
    keep,      // nothing is owed on it and nothing of its user is left but what its memory says
    farewell,  // to be closed after a Terminate
    close,     // to be closed now: the home rolls back what is open
};

// Lever 1: how a statement that ended in a write conflict is sent again.
struct retry_rule {
    bool on{false};
    int attempts{0};                           // after the first
    std::chrono::milliseconds time{0};         // from the first try to the last
    std::chrono::milliseconds pause_first{0};  // upper edge of the first pause; doubles
    std::chrono::milliseconds pause_max{0};
    std::size_t bytes_max{0};  // of a request, and of the replies kept back
};
enum class retry_outcome : std::uint8_t {
    recovered,  // a later try succeeded
    exhausted,  // attempts or time ran out; the client was told of the last conflict
    too_large,  // the request or its reply was longer than is kept
    given_up,   // the client left, cancelled, or the link broke, during a pause
};

struct refusal {
    std::string sqlstate;
    std::string message;
    std::string hint;
    // Said in PostgreSQL's place: its file, line and routine, as version 15 gives them.
    struct place {
        std::string_view file, line, routine;
    } origin{};
};

enum class admission { inside, held, refused };

// What a pass through the gate changed on the engine, for a move that copies the tool's tables
// meanwhile (tally.hpp).
struct watched_writes {
    std::uint64_t watch{0};               // environment::write_watch() at its beginning
    std::uint32_t commits{0};             // at least; those whose tables are known
    bool doubt{false};                    // more may have been committed: a reply was lost
    bool everything{false};               // any table may have been changed
    bool ddl{false};                      // a table was made, altered or dropped
    std::span<const std::string> tables;  // otherwise these
};

struct ended_transaction {
    bool wrote{false};     // contained a statement that may write
    bool conflict{false};  // ended in a write conflict (PostgreSQL: 40001, 40P01)
    bool unknown{false};   // answered 08007
    int errors{0};
    int conflicts_retried{0};  // tries that ended in a conflict and that the client does not see
    bool block{false};         // BEGIN .. COMMIT, or several writes
    std::uint64_t key{0};      // of the row that it wrote, hashed; 0: not known, or several
    std::string_view table;    // of the last write statement, where known
    std::string_view sql;      // a sample of it, bounded
    watched_writes writes;
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
    // Not 0: a move wants to know what is written from here on; named in ended_transaction. Called
    // inside the gate, for each transaction: cheap.
    virtual std::uint64_t write_watch() { return 0; }
    virtual void cancel_wait() = 0;  // the client of a held session is gone

    // A cancel key for this session: the process number of its first link and a secret of ours.
    virtual std::string issue_secret(std::uint32_t process_id) = 0;

    virtual void ddl_seen(std::string_view sql) = 0;  // a DDL statement that succeeded
    // At the engine a statement did something inside a block in which another had failed;
    // PostgreSQL would have refused it. `tag`: of its CommandComplete. `first`: of its block.
    virtual void went_on_after_error(std::string_view /*tag*/, bool /*first*/) {}
    // A text that succeeded, for the rehearsal of a move. Only offered while it is wanted: cheap.
    virtual bool wants_statement(std::uint64_t /*fingerprint*/) { return false; }
    virtual void statement_seen(std::uint64_t /*fingerprint*/,
                                std::string_view /*sql*/,
                                std::span<const std::uint32_t> /*types*/) {}
    virtual void count_limit_hit(std::string_view limit) = 0;  // name of a limit of config
    virtual void pinned(pin reason) = 0;  // the session keeps its link from now on; none: no more

    // ---- transaction pooling ----
    // False while a hold is on: whoever enters would wait.
    virtual bool gate_is_open() = 0;
    // A link for one transaction. Null: the session is queued; on_link_lent or on_link_refused
    // follows unless stop_waiting() is called. What it points to is the session's until give_back.
    virtual link_memory* borrow(const link_identity& who) = 0;
    virtual void give_back(link_fate fate) = 0;
    virtual void stop_waiting() = 0;
    // While it waits: a link is being opened for it, nobody has to give one back first.
    virtual bool link_is_coming() { return false; }
    // What a home told the last client of this identity at its login; null: nobody has logged in.
    virtual pairs_ptr greeting(const link_identity& who) = 0;
    // A client asked for currval or lastval behind its transaction: from now on sessions of its
    // tool that use a sequence keep their link.
    virtual void sequences_matter() {}
    virtual bool do_sequences_matter() { return false; }
    // A process number for a client that has no link of its own.
    virtual std::uint32_t process_number() = 0;

    // ---- lever 1 ----
    virtual retry_rule retry() = 0;
    virtual std::uint64_t dice() = 0;  // a random number
    virtual void retried(retry_outcome outcome, int tries) = 0;

    // ---- one of a fleet ----
    // Whether the fleet's store vouches, now, for where the tool lives. Without that a move could
    // have gone past this sidecar.
    virtual bool is_confirmed() { return true; }
    // The home answered as only a fenced one does. True: the gate is closed until the homes have
    // said where the tool lives. False: nobody can ask them.
    virtual bool left_home() { return false; }
};

}  // namespace hotlane::session
