// What one pass through the gate has committed on the engine, for a move that copies the tool's
// tables meanwhile (router/placement/change_watch.hpp).
//
// `commits` is a lower bound, and that is what makes it a proof: a commit is only counted where the
// engine has said so and where it counts it once itself. When its own counter has grown by no more
// than what all sessions counted, every commit was seen, and the tables of each are known. What is
// not certain (several autocommit writes in one batch, a rollback to a savepoint, COMMIT after an
// error, a lost reply, text that nobody understands) is left out, and shows as a commit of nobody.
//
// Does nothing, and costs nothing, while nobody watches. SANS-IO; one session's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "router/session/environment.hpp"
#include "router/sql/facts.hpp"
#include "router/wire/message.hpp"

namespace hotlane::session {

class write_tally {
  public:
    // A pass begins between two transactions. `watch`: of environment::write_watch().
    void begin(std::uint64_t watch);
    [[nodiscard]] bool on() const noexcept { return watch_ != 0; }

    // A CommandComplete; null: nobody knows which statement it answers.
    void completed(const sql::statement* what, std::string_view tag);
    void failed();  // an ErrorResponse
    void ready(wire::transaction_status status);
    void doubt() { doubt_ = on(); }  // something may have been committed without a word

    // What is known so far; the views end with the next call.
    [[nodiscard]] watched_writes so_far() const noexcept;
    void end() { begin(0); }

  private:
    void changed_rows(const sql::statement* what);
    void note_table(const std::string& name);

    std::uint64_t watch_{0};
    std::uint32_t commits_{0};
    bool doubt_{false}, everything_{false}, ddl_{false};
    std::vector<std::string> tables_;

    bool block_{false};      // BEGIN .. COMMIT
    bool changed_{false};    // something that COMMIT will make durable
    bool base_{false};       // so before the first savepoint: no ROLLBACK TO undoes it
    bool savepoint_{false};  // there was one
    bool alone_{false};      // outside of a block, since the last ReadyForQuery
    bool failed_{false};     // likewise
};

}  // namespace hotlane::session
