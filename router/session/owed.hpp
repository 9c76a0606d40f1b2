// The replies that a session owes: one entry for each message sent to the home that is answered, in
// order. Everything that asks "may the link be held, switched or given up now?" asks this queue.
//
// An entry leaves when its last reply has come. After an error in an extended batch the entries up
// to the next Sync leave at once, because the home skips those messages (PostgreSQL manual,
// "Extended Query"). Hidden entries are messages of our own; their replies are swallowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "router/session/statements.hpp"
#include "router/sql/facts.hpp"

namespace hotlane::session {

enum class owes : std::uint8_t {
    query,
    parse,
    bind,
    close,
    describe_statement,
    describe_portal,
    execute,
    sync,
    function_call,
    copy_end,  // CopyDone or CopyFail sent before the home asked for data: no reply, only a place
};

// Who sent the message. Replies to anyone but the client are swallowed.
enum class sender : std::uint8_t { client, replay, isolation, ensure, aftermath };

struct owed {
    owes what{};
    sender from{sender::client};
    bool again{false};      // part of what may be sent again (retry.cpp)
    bool failed{false};     // query: its ErrorResponse has come, only ReadyForQuery is left
    std::uint16_t done{0};  // query: statements completed
    std::shared_ptr<const sql::facts> facts;     // query; null: the text was not read
    std::shared_ptr<prepared> statement;         // parse, bind, close, describe, execute
    std::shared_ptr<const statement_text> slot;  // parse, close of a borrowed link's: of which
    std::shared_ptr<const std::string> text;     // query: kept only where a reply needs it
    std::shared_ptr<const std::string> instead;  // ErrorResponse to give in place of the home's

    [[nodiscard]] bool hidden() const noexcept { return from != sender::client; }
};

class owed_queue {
  public:
    [[nodiscard]] bool empty() const noexcept { return head_ == entries_.size(); }
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size() - head_; }
    [[nodiscard]] owed& front() noexcept { return entries_[head_]; }
    [[nodiscard]] owed& at(std::size_t index) noexcept { return entries_[head_ + index]; }
    [[nodiscard]] const owed& at(std::size_t index) const noexcept {
        return entries_[head_ + index];
    }

    void push(owed entry);
    void pop();
    void erase(std::size_t index);
    void clear();

  private:
    std::vector<owed> entries_;
    std::size_t head_{0};
};

}  // namespace hotlane::session
