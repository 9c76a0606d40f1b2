// One libpq connection that obeys a deadline: every wait is a poll with what is left of the budget.
// libpq resolves names inside its connect call, so a name is resolved here first, with the
// deadline.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "metrics/source.hpp"

struct pg_conn;

namespace hotlane::metrics {

inline constexpr std::size_t reply_rows_max = 4'096;  // more is no reply of ours

using pg_row = std::vector<std::optional<std::string>>;
using deadline = std::chrono::steady_clock::time_point;
template <class T>
using sourced = tl::expected<T, source_error>;

class pg_link {
  public:
    enum class encryption { never, prefer };
    pg_link(source_target target, encryption tls);
    ~pg_link();
    pg_link(const pg_link&) = delete;
    pg_link& operator=(const pg_link&) = delete;

    // Connects when it must. Rows of the (last) result, as text; its column names where wanted.
    sourced<std::vector<pg_row>> query(const char* sql,
                                       deadline until,
                                       std::vector<std::string>* names = nullptr);

    // How often a connection was made; changes exactly when counters may have a new author.
    [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }

  private:
    struct closer {
        void operator()(pg_conn* c) const noexcept;
    };
    sourced<void> connect(deadline until);
    sourced<void> flush(deadline until);
    sourced<std::vector<pg_row>> collect(deadline until, std::vector<std::string>* names);
    sourced<void> wait(short events, deadline until, const char* doing);
    tl::unexpected<source_error> fail(source_error::kind kind, const std::string& detail);
    [[nodiscard]] std::string said() const;  // libpq's message, one line

    source_target target_;
    encryption tls_;
    std::unique_ptr<pg_conn, closer> conn_;
    std::uint64_t generation_{};
};

}  // namespace hotlane::metrics
