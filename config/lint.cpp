// What no value alone shows: settings that can never act, that work against each other, or that a
// tired operator will regret. Each says why.
#include <algorithm>

#include <fmt/format.h>

#include "config/assemble.hpp"
#include "config/scalar.hpp"
#include "policy/state.hpp"
#include "policy/verdict.hpp"

namespace hotlane::config {

namespace {

class linter {
  public:
    linter(std::string path, const policy::settings& s, const model& m, const lint_notes& say)
        : path_{std::move(path)}, s_{s}, m_{m}, say_{say} {}

    void run() {
        edges();
        windows();
        long_view();
        levers();
        caps();
        waits();
        freezes();
        returns();
    }

  private:
    void error(std::string_view key, std::string message, std::string mend = {}) {
        say_.error(fmt::format("{}.{}", path_, key), std::move(message), std::move(mend));
    }
    void warn(std::string_view key, std::string message, std::string mend = {}) {
        say_.warn(fmt::format("{}.{}", path_, key), std::move(message), std::move(mend));
    }

    // A value that is left at or above the one that enters would flap.
    template <class T>
    void edge(std::string_view what, T enter, T leave) {
        if (leave < enter) return;
        error(fmt::format("detect.{}_leave", what),
              fmt::format("is not below {}_enter; the verdict would flap", what));
    }

    void edges() {
        const auto& d = s_.detect;
        edge("handoff_rate", d.handoff_rate_enter, d.handoff_rate_leave);
        edge("abort_rate", d.abort_rate_enter, d.abort_rate_leave);
        edge("conflict_rate", d.conflict_rate_enter, d.conflict_rate_leave);
        const bool absolute = d.mean_wait_enter.count() > 0;
        if (absolute && d.mean_wait_leave.count() > 0) {
            edge("mean_wait", d.mean_wait_enter, d.mean_wait_leave);
        } else if (absolute) {
            warn("detect.mean_wait_enter",
                 "is set without mean_wait_leave, which then follows the commit latency",
                 "set both");
        }
        if (!absolute) edge("mean_wait", d.mean_wait_enter_commits, d.mean_wait_leave_commits);
    }

    void windows() {
        const auto& w = s_.window;
        if (w.out_of < w.hot_of) {
            error("window.out_of",
                  fmt::format(
                      "{} is below hot_of {}, so no proof could succeed", w.out_of, w.hot_of));
        }
        const auto proven = w.length * w.hot_of;
        if (proven < policy::proof_floor) {
            warn("window.length",
                 fmt::format("{} x {} windows prove in less than 10s; proof is stretched to 10s",
                             print_duration(w.length),
                             w.hot_of),
                 "a single spike is never a flag");
        }
        if (w.proof_min < policy::proof_floor) warn("window.proof_min", "is below 10s; 10s holds");
    }

    void long_view() {
        const auto& w = s_.window;
        if (w.long_span.count() == 0) {
            if (w.long_hot.count() > 0)
                error("window.long_hot", "has no long_span to lie in", "set both");
            return;
        }
        const auto reach = w.length * static_cast<int>(policy::windows_kept_max);
        if (w.long_hot.count() == 0) {
            error("window.long_span", "asks for no heat; it would change nothing", "set long_hot");
        } else if (w.long_hot > w.long_span) {
            error("window.long_hot",
                  fmt::format("is longer than long_span {}, so nothing would ever be hot",
                              print_duration(w.long_span)));
        } else if (w.long_span > reach) {
            error("window.long_span",
                  fmt::format("is more than the {} windows that are remembered ({})",
                              policy::windows_kept_max,
                              print_duration(reach)),
                  "a longer window.length reaches further back");
        } else if (w.long_hot <= policy::proof_time(s_)) {
            warn("window.long_hot",
                 fmt::format("can never act: a proof takes {} anyway",
                             print_duration(policy::proof_time(s_))));
        }
    }

    [[nodiscard]] bool has_lever(policy::lever one) const {
        const auto& all = s_.levers.order;
        return std::find(all.begin(), all.end(), one) != all.end();
    }

    void levers() {
        const auto& l = s_.levers;
        if (l.order.empty()) {
            error(
                "levers.order", "is empty, so nothing would ever be done", "[retry, shard, route]");
            return;
        }
        const auto look = [&](policy::lever one, const char* key, bool is_on) {
            if (is_on && !has_lever(one) && is_written(key))
                error(key, "is on, but it is not in levers.order, so it can never act");
        };
        look(policy::lever::retry, "levers.retry_first", l.retry_first);
        look(policy::lever::shard, "levers.shard", l.shard);
        look(policy::lever::route, "levers.route", l.route);
        if (l.route && has_lever(policy::lever::route) && l.order.back() != policy::lever::route)
            warn("levers.order",
                 "has levers behind route; a tool that was moved has left them behind",
                 "put route last");
    }

    void caps() {
        const auto& r = s_.rails;
        if (r.moves_at_once > r.moves_per_hour)
            warn("rails.moves_at_once",
                 fmt::format("can never act: moves_per_hour is {}", r.moves_per_hour));
        if (r.hold_budget.count() > 0 && r.hold_budget < r.hold_max)
            error("rails.hold_budget",
                  fmt::format("is below hold_max {}, so nothing could ever move",
                              print_duration(r.hold_max)));
        const auto named = std::count_if(
            m_.tools.begin(), m_.tools.end(), [](const tool& t) { return !t.is_template(); });
        const bool is_whole = named == std::ssize(m_.tools) && named > 1;
        if (is_whole && is_written("rails.incident_tools") && r.incident_tools > named)
            warn("rails.incident_tools",
                 fmt::format("can never act: there are {} tools", named),
                 "fewer, or leave it out");
        if (is_whole && is_written("rails.away_max") && r.away_max >= named)
            warn("rails.away_max",
                 fmt::format("can never act: there are {} tools, and never all of them may be away",
                             named));
    }

    void waits() {
        const auto& r = s_.rails;
        if (r.cooldown_max < r.cooldown) error("rails.cooldown_max", "is below cooldown");
        if (r.cooldown < r.hold_max)
            warn("rails.cooldown",
                 fmt::format("is shorter than the pause of one move, hold_max {}",
                             print_duration(r.hold_max)),
                 "a move that failed would be tried again at once");
        if (r.forgive_after < r.min_stay)
            warn("rails.forgive_after",
                 fmt::format("is shorter than min_stay {}: every flap is forgiven before the next",
                             print_duration(r.min_stay)));
    }

    void freezes() {
        const auto& all = s_.rails.freezes;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const auto key = fmt::format("rails.freeze[{}]", i);
            if (all[i].begins && all[i].ends && *all[i].ends <= *all[i].begins)
                error(key, "ends before it begins");
            const bool is_always = !all[i].begins && all[i].days == 0x7f &&
                                   all[i].to - all[i].from == std::chrono::hours{24};
            if (is_always)
                warn(key, "never ends: nothing would ever move", "mode observe says that better");
        }
    }

    void returns() {
        const auto& b = s_.come_back;
        if (!b.enabled) return;
        const auto takes = s_.window.length * b.calm_windows;
        if (takes < policy::proof_time(s_))
            error("return.calm_windows",
                  fmt::format("prove calm in {}, quicker than heat is proven ({}); the tool would "
                              "flap",
                              print_duration(takes),
                              print_duration(policy::proof_time(s_))));
        if (b.lookback < takes)
            warn("return.lookback",
                 fmt::format("is shorter than {} calm windows ({}), so it can never act",
                             b.calm_windows,
                             print_duration(takes)));
        if (b.margin >= 1.0)
            error("return.margin", "leaves no room below the thresholds: nothing comes home");
    }

    [[nodiscard]] bool is_written(std::string_view key) const {
        return say_.written(fmt::format("{}.{}", path_, key));
    }

    std::string path_;
    const policy::settings& s_;
    const model& m_;
    const lint_notes& say_;
};

}  // namespace

void lint_policy(const std::string& path,
                 const policy::settings& s,
                 const model& m,
                 const lint_notes& say) {
    linter{path, s, m, say}.run();
}

}  // namespace hotlane::config
