// A simulated engine: tables in an SQLite database in memory, the catalog's and the counters' SHOW,
// and statements that are done late.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <sqlite3.h>

#include "faults.hpp"
#include "router/move/link.hpp"

namespace sim {

class engine {
  public:
    engine();
    ~engine();
    engine(const engine&) = delete;

    bool down{false};
    // Late statements are done after this many further ones (0: only by flush_late).
    int late_after{1};

    using answer = hotlane::move::answer<hotlane::move::rows>;
    answer exec(const std::string& sql, const std::vector<hotlane::move::param>& params);
    // A statement from somebody who goes round hotlane. True: accepted.
    bool accepts(const std::string& sql);
    std::vector<std::string> column(const std::string& sql);  // first column of each row
    void put_late(std::string sql, std::vector<hotlane::move::param> params);
    void pass_time();  // one statement went by
    void flush_late();

    std::unique_ptr<hotlane::move::home_link> connect(script& steps);

  private:
    struct late {
        std::string sql;
        std::vector<hotlane::move::param> params;
        int wait;
    };
    answer catalog();
    sqlite3* db_{};
    std::uint64_t lsn_{100}, commits_{7};
    std::deque<late> late_;
};

}  // namespace sim
