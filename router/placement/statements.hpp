// The statements that a tool's clients ran lately: one bounded sample text for each fingerprint, so
// that a move can rehearse them at the other home. THREADS: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/types.hpp"

namespace hotlane::placement {

struct seen_statement {
    std::uint64_t fingerprint{};
    std::string sql;                   // as the client wrote it: never logged, never shown as it is
    std::vector<std::uint32_t> types;  // of its parameters, as in the client's Parse
    policy::time_point at{};           // when it was last seen
};

class statement_book {
  public:
    struct bounds {
        std::size_t statements{500};      // of one tool; the one not seen for longest goes
        std::size_t sample_bytes{4'096};  // a longer text is counted and not kept
        policy::duration lately{24 * 3'600'000};
    };
    enum class kept : std::uint8_t { yes, too_long, another_went };

    void set_bounds(const bounds& with);
    // Once for each statement now and then, not for each time that it runs (the caller remembers).
    kept see(std::uint64_t fingerprint,
             std::string_view sql,
             std::span<const std::uint32_t> types,
             policy::time_point now);

    // Those of lately, first seen first.
    [[nodiscard]] std::vector<seen_statement> lately(policy::time_point now) const;
    [[nodiscard]] std::uint64_t evicted() const;   // so far: another one took the place
    [[nodiscard]] std::uint64_t too_long() const;  // so far: texts beyond sample_bytes

  private:
    struct entry {
        seen_statement what;
        std::uint64_t order{};
    };
    void make_room();

    mutable std::mutex mutex_;
    bounds with_;
    std::unordered_map<std::uint64_t, entry> entries_;
    std::uint64_t next_{0}, evicted_{0}, too_long_{0};
};

}  // namespace hotlane::placement
