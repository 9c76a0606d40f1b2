// What the rails need to know of all tools together: moves running and lately, and who is hot.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "policy/runbook.hpp"

namespace hotlane::control {

class fleet {
  public:
    // Moves that an earlier process started count too.
    void remember_move(policy::time_point started);
    void move_submitted(policy::time_point at);
    void move_ended();
    // Since when it is hot or about to be proven so.
    void set_hot(const std::string& tool, std::optional<policy::time_point> since);
    // Incidents and neighbours are those of one storage; a tool of which none is said has "".
    void set_storage(const std::string& tool, const std::string& storage);

    // Where a tool lives or goes, and what its last good window on the engine was.
    void set_home(const std::string& tool, policy::home_kind home);
    void set_share(const std::string& tool, std::optional<policy::neighbour_view> share);

    [[nodiscard]] policy::fleet_view view(const std::string& tool,
                                          bool has_target,
                                          const policy::settings& with,
                                          policy::time_point now) const;
    [[nodiscard]] int moves_running() const;

  private:
    static constexpr std::size_t starts_max = 10'000;

    [[nodiscard]] std::string storage_of(const std::string& tool) const;  // under mutex_

    mutable std::mutex mutex_;
    int running_{0};
    std::deque<policy::time_point> starts_;
    std::map<std::string, policy::time_point> hot_;
    std::map<std::string, policy::home_kind> homes_;
    std::map<std::string, std::string> storages_;
    std::map<std::string, policy::neighbour_view> shares_;
};

}  // namespace hotlane::control
