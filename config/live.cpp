#include "config/live.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "config/overlay.hpp"
#include "config/scalar.hpp"
#include "policy/verdict.hpp"

namespace hotlane::config {

namespace {

class observer {
  public:
    explicit observer(const loaded& with) : with_{with} {}

    void look(const observed_tool& now) {
        const auto& m = with_.value;
        for (std::size_t i = 0; i < m.tools.size(); ++i) {
            if (m.tools[i].name != now.name) continue;
            const bool is_own = m.tools[i].set != nullptr || has_group(m.tools[i]);
            prefix_ =
                is_own ? fmt::format("tools[{}].set", i) : "policies." + base_policy(m, m.tools[i]);
            tool_ = fmt::format("tools[{}]", i);
            compare(settings_of(m, m.tools[i]), now);
            return;
        }
    }

    std::vector<problem> take() { return std::move(found_); }

  private:
    [[nodiscard]] bool has_group(const tool& t) const {
        const auto& all = with_.value.groups;
        return std::any_of(
            all.begin(), all.end(), [&](const auto& g) { return g.set && covers(g, t); });
    }

    void compare(const policy::settings& s, const observed_tool& now) {
        const auto latency = now.commit_latency.value_or(s.detect.commit_latency);
        const auto over = policy::thresholds_of(s, policy::level::enter, latency);
        const bool is_lane = now.handoff_rate && now.mean_wait_us &&
                             *now.handoff_rate > over.handoff_rate &&
                             *now.mean_wait_us > over.mean_wait_us;
        if (is_lane)
            warn(
                "detect.handoff_rate_enter",
                fmt::format("is passed already: {} shows a handoff rate of {:.2f} and waits {:.1f} "
                            "ms, so it would be flagged within {}",
                            now.name,
                            *now.handoff_rate,
                            *now.mean_wait_us / 1'000,
                            print_duration(policy::proof_time(s))));
        const auto rate = [&](const char* key, const char* what, auto seen, double limit) {
            if (!seen || *seen <= limit) return;
            warn(key,
                 fmt::format("is passed already: {} shows {} of {:.2f}", now.name, what, *seen));
        };
        rate("detect.abort_rate_enter", "an abort rate", now.abort_rate, over.abort_rate);
        rate(
            "detect.conflict_rate_enter", "a conflict rate", now.conflict_rate, over.conflict_rate);
        if (now.longest_move && s.rails.cooldown < *now.longest_move)
            warn("rails.cooldown",
                 fmt::format("is shorter than a move of {} took ({})",
                             now.name,
                             print_duration(*now.longest_move)),
                 "a move that failed would be tried again before it could have ended");
    }

    void warn(const std::string& key, std::string message, std::string mend = {}) {
        const auto path = prefix_ + "." + key;
        auto at = with_.origins.find(path);
        if (at == with_.origins.end()) at = with_.origins.find(tool_);
        const auto where = at == with_.origins.end() ? location{} : at->second;
        found_.push_back({where, severity::warning, path, std::move(message), std::move(mend)});
    }

    const loaded& with_;
    std::string prefix_;
    std::string tool_;
    std::vector<problem> found_;
};

}  // namespace

std::vector<problem> lint_live(const loaded& with, const std::vector<observed_tool>& now) {
    observer all{with};
    for (const auto& one : now)
        all.look(one);
    return all.take();
}

}  // namespace hotlane::config
