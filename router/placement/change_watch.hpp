// What passes through this sidecar while a move copies a tool's tables ahead of its hold: how many
// commits, and which tables they changed. THREADS: any; between two watches a report costs one
// relaxed read.
//
// A watch has a number, which a session takes when it enters the gate and names when it leaves:
// what began under another one, or none, is not in its figures. Reports come before the gate is
// left, so that whoever has drained the gate has them all.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace hotlane::placement {

class change_watch {
  public:
    struct figures {
        std::uint64_t commits{0};   // at least, and the tables of each are among `changed`
        bool doubt{false};          // the outcome of something is unknown
        bool ddl{false};            // a table was made, altered or dropped
        std::vector<bool> changed;  // by table; since the watch began, or forget()
    };
    struct report {
        std::uint64_t watch{0};
        std::uint64_t commits{0};
        bool doubt{false}, everything{false}, ddl{false};
        std::span<const std::string> tables;
    };

    // From now on who enters the gate is watched. A name that is none of `tables` counts as all of
    // them; case does not matter. Ends the watch before.
    std::uint64_t begin(const std::vector<std::string>& tables);
    void end();
    [[nodiscard]] std::uint64_t number() const noexcept {
        return number_.load(std::memory_order_relaxed);
    }
    // What was told of this table so far is in what is read of it from now on.
    void forget(std::size_t table);
    void take(const report& one);
    [[nodiscard]] figures now() const;

  private:
    mutable std::mutex mutex_;
    std::atomic<std::uint64_t> number_{0};  // 0: nobody watches
    std::uint64_t last_{0};
    std::vector<std::string> tables_;  // lower case
    figures seen_;
};

}  // namespace hotlane::placement
