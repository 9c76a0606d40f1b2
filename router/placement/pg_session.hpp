// One session with the store's PostgreSQL: blocking statements, each with a deadline. A reply that
// did not come in time, or a connection that broke, ends the session: what was asked may have been
// done.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

struct pg_conn;
struct pg_result;

namespace hotlane::placement {

struct postgres_target;

struct pg_failure {
    bool lost{false};  // the session is over
    std::string sqlstate;
    std::string what;
};

using pg_cell = std::optional<std::string>;
using pg_rows = std::vector<std::vector<pg_cell>>;
template <typename Value>
using pg_answer = tl::expected<Value, pg_failure>;

struct pg_hang_up {
    void operator()(pg_conn* c) const noexcept;
};
using pg_connection = std::unique_ptr<pg_conn, pg_hang_up>;

class pg_session {
  public:
    // Blocks for the connect time-out of each host at most.
    static pg_answer<std::unique_ptr<pg_session>> connect(const postgres_target& at);

    pg_answer<pg_rows> exec(const std::string& sql, const std::vector<pg_cell>& params = {});
    [[nodiscard]] int socket() const;
    // Reads what has arrived; true: something was announced. An error: the session is over.
    pg_answer<bool> announced();
    [[nodiscard]] bool pending() const noexcept { return announced_; }  // announced() would be true

  private:
    using clock = std::chrono::steady_clock;
    pg_session(pg_connection c, std::chrono::milliseconds limit)
        : c_(std::move(c)), limit_(limit) {}

    [[nodiscard]] pg_failure broken() const;
    pg_answer<void> flush(clock::time_point deadline);
    pg_answer<pg_result*> next(clock::time_point deadline);
    bool take_notices();

    pg_connection c_;
    std::chrono::milliseconds limit_;
    bool announced_{false};
};

// Is this a connection string of libpq? Empty: yes; else what is wrong with it.
std::string check_dsn(const std::string& dsn);

}  // namespace hotlane::placement
