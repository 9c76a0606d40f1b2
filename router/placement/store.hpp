// The state store: what must survive a restart. One interface; SQLite is the embedded back end.
//
// The homes' markers are the truth about where a tool lives (design: homes describe themselves);
// the store coordinates and remembers. Every call is durable when it returns (SQLite: WAL, FULL),
// or gives an error and changed nothing. Opening takes an exclusive lock: two processes never share
// a store file. THREADS: any (one mutex).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <tl/expected.hpp>

#include "policy/types.hpp"

namespace hotlane::placement {

struct store_error {
    enum class kind {
        failed,
        away,       // the store cannot be reached: nothing was done, or nobody knows
        not_leader  // another sidecar leads: nothing was done
    };
    std::string what;
    kind why{kind::failed};
};
template <typename Value>
using stored = tl::expected<Value, store_error>;

struct placement_record {
    std::string tool;
    policy::home_kind home{policy::home_kind::engine};
    std::uint64_t epoch{};
    policy::time_point since{};
    std::string move;  // the move that brought it here; empty: its first home
};

struct move_record {
    std::string id;
    std::string tool;
    policy::home_kind from{};
    policy::home_kind to{};
    std::uint64_t epoch{};   // the tool's epoch when the move began; it ends with epoch + 1
    std::string phase;       // move/phase.hpp, to_string
    std::string outcome;     // empty while it runs: done | undone | refused
    std::string reason;      // why it ended so, or why it waits
    std::string ordered_by;  // policy | operator name
    policy::time_point started{};
    policy::time_point ended{};
    nlohmann::json plan;  // tables, names, forecasts, measurements: the move's own business
};

struct decision_record {
    std::uint64_t id{};  // given by the store
    std::string tool;
    policy::time_point at{};
    nlohmann::json body;
};

class store {
  public:
    virtual ~store() = default;

    virtual stored<std::vector<placement_record>> placements() = 0;
    virtual stored<std::optional<placement_record>> placement(const std::string& tool) = 0;
    // Writes it if the stored epoch is lower (or absent); false: a higher one is there.
    virtual stored<bool> put_placement(const placement_record& record) = 0;

    virtual stored<void> put_move(const move_record& record) = 0;  // insert or replace by id
    virtual stored<std::optional<move_record>> move(const std::string& id) = 0;
    virtual stored<std::vector<move_record>> unfinished_moves() = 0;
    virtual stored<std::vector<move_record>> recent_moves(std::size_t limit) = 0;

    virtual stored<std::uint64_t> add_decision(const decision_record& record) = 0;
    virtual stored<std::vector<decision_record>> decisions(const std::string& tool,
                                                           std::size_t limit) = 0;  // newest first

    // DDL of a tool that passed through hotlane, in order.
    virtual stored<void> add_ddl(const std::string& tool, const std::string& sql) = 0;
    virtual stored<std::vector<std::string>> ddl(const std::string& tool) = 0;

    // Small named documents: the runbook's state of a tool, pins.
    virtual stored<void> put_document(const std::string& kind,
                                      const std::string& name,
                                      const nlohmann::json& body) = 0;
    virtual stored<std::optional<nlohmann::json>> document(const std::string& kind,
                                                           const std::string& name) = 0;
};

}  // namespace hotlane::placement
