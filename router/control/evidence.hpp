// What the data plane saw of one tool, as evidence for a diagnosis: which table's writes conflict,
// with a few samples of the statements. Bounded; older counts fade. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "router/placement/route.hpp"

namespace hotlane::control {

class evidence {
  public:
    struct bounds {
        std::size_t tables{64};
        std::size_t samples{8};          // statements kept
        std::size_t sample_bytes{2048};  // of one of them
        std::uint64_t fade_at{4096};     // counts are halved when the top one reaches this
    };
    struct table_count {
        std::string table;
        std::uint64_t conflicts{};
        double share{};  // of all conflicts whose table is known
    };

    evidence() = default;
    explicit evidence(bounds with) : with_(with) {}

    void add(const placement::observation& seen);
    void clear();

    // The table with more than half of the conflicts whose table is known.
    [[nodiscard]] std::optional<std::string> hot_table() const;
    [[nodiscard]] std::vector<table_count> tables() const;  // most conflicts first
    // Statements that ran into conflicts, newest first; of the hot table where one is known.
    [[nodiscard]] std::vector<std::string> samples() const;

  private:
    struct sample {
        std::string table;
        std::string sql;
    };
    void count(const std::string& table);

    bounds with_;
    std::map<std::string, std::uint64_t> conflicts_;
    std::deque<sample> samples_;
};

}  // namespace hotlane::control
