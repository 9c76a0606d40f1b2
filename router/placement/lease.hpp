// Leases by monotonic clocks alone. A sidecar counts its own from when it SENT a renewal that was
// answered; who watches it counts from when a beat was SEEN to grow, which is later, and adds a
// tenth for clocks that run at different speeds. So the watcher's end is never before the sidecar's
// own. PURE.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hotlane::placement {

using moment = std::chrono::steady_clock::time_point;
using span_ms = std::chrono::milliseconds;

class own_lease {
  public:
    explicit own_lease(span_ms length) : length_(length) {}
    void renewed(moment sent) {
        if (!renewed_ || sent > from_) from_ = sent;
        renewed_ = true;
    }
    [[nodiscard]] bool holds(moment now) const { return renewed_ && now - from_ < length_; }

  private:
    span_ms length_;
    moment from_{};
    bool renewed_{false};
};

class lease_watch {
  public:
    explicit lease_watch(span_ms length) : length_(length) {}

    // `length`: the lease that the other goes by, if that is longer.
    void saw(const std::string& id, std::uint64_t beat, moment now, span_ms length = {}) {
        auto& one = seen_[id];
        one.length = std::max(length, length_);
        if (one.at && one.beat == beat) return;
        one.beat = beat;
        one.at = now;
    }
    void forget(const std::string& id) { seen_.erase(id); }
    void forget_all() { seen_.clear(); }
    // Never seen: not lapsed, but not there either.
    [[nodiscard]] bool lapsed(const std::string& id, moment now) const {
        const auto found = seen_.find(id);
        if (found == seen_.end()) return false;
        const auto length = found->second.length;
        return now - *found->second.at > length + length / 10;
    }
    [[nodiscard]] std::optional<span_ms> silent_for(const std::string& id, moment now) const {
        const auto found = seen_.find(id);
        if (found == seen_.end()) return std::nullopt;
        return std::chrono::duration_cast<span_ms>(now - *found->second.at);
    }

  private:
    struct seen {
        std::uint64_t beat{};
        span_ms length{};
        std::optional<moment> at;
    };
    span_ms length_;
    std::map<std::string, seen> seen_;
};

// One hold, as its leader counts it: every sidecar that was there when the hold was written has
// said `drained`, or its lease is over. Who joins later read the hold before it served. PURE.
class hold_round {
  public:
    explicit hold_round(std::vector<std::string> members) : members_(std::move(members)) {}

    void acked(const std::string& id) { std::erase(members_, id); }
    void left(const std::string& id) { std::erase(members_, id); }
    [[nodiscard]] std::vector<std::string> missing(const lease_watch& leases, moment now) const {
        std::vector<std::string> out;
        for (const auto& id : members_)
            if (!leases.lapsed(id, now)) out.push_back(id);
        return out;
    }
    [[nodiscard]] bool drained(const lease_watch& leases, moment now) const {
        return missing(leases, now).empty();
    }

  private:
    std::vector<std::string> members_;  // not heard of yet
};

}  // namespace hotlane::placement
