// `hotlane replay`: recorded counters through the very same code.
#include <algorithm>

#include <fmt/format.h>

#include "config/files.hpp"
#include "config/load.hpp"
#include "config/scalar.hpp"
#include "policy/recording.hpp"
#include "router/app/ask.hpp"
#include "router/app/offline.hpp"
#include "router/control/json.hpp"

namespace hotlane::app {

using nlohmann::json;

namespace {

constexpr std::size_t file_bytes_max = 512ULL * 1024 * 1024;

struct track {
    std::string file;
    std::string tool;
    std::vector<policy::replay_step> steps;
};

// A file is a trace of one tool or a recording of several; its first line tells.
tl::expected<std::vector<track>, std::string> read_tracks(const std::string& file,
                                                          const policy::replay_options& options) {
    const auto text = config::read_whole(file, file_bytes_max);
    if (!text) return tl::unexpected(text.error());
    std::vector<track> out;
    if (text->starts_with('#')) {
        auto all = policy::parse_recording(*text);
        if (!all) return tl::unexpected(all.error());
        for (auto& [tool, steps] : *all)
            out.push_back({file, tool, std::move(steps)});
        return out;
    }
    const auto rows = policy::parse_trace(*text);
    if (!rows) return tl::unexpected(rows.error());
    out.push_back({file, "trace", policy::steps_of(*rows, options)});
    return out;
}

std::optional<policy::settings> settings_for(const config::model& model,
                                             const replay_command& what,
                                             const std::string& tool) {
    const auto known = std::find_if(
        model.tools.begin(), model.tools.end(), [&](const auto& t) { return t.name == tool; });
    policy::settings out;
    if (!what.use.empty() || known == model.tools.end()) {
        const auto found = model.policies.find(what.use.empty() ? "default" : what.use);
        if (found == model.policies.end()) return std::nullopt;
        out = found->second;
    } else {
        out = config::settings_of(model, *known);
    }
    for (const auto mode : {policy::mode::observe, policy::mode::advise, policy::mode::act})
        if (what.mode == policy::to_string(mode)) out.act_mode = mode;
    return out;
}

json summary_json(const policy::replay_result& result) {
    json moves = json::array();
    for (const auto& one : result.moves)
        moves.push_back({{"to", policy::to_string(one.to)},
                         {"started", control::to_json(one.started)},
                         {"ended", control::to_json(one.ended)}});
    return {{"moves", std::move(moves)},
            {"flaps", result.flaps},
            {"held_ms", result.held.count()},
            {"stage", policy::to_string(result.last.at)},
            {"home", policy::to_string(result.last.home)}};
}

json result_json(const policy::replay_result& result) {
    json timeline = json::array();
    for (const auto& entry : result.timeline) {
        json decisions = json::array();
        for (const auto& one : entry.decisions)
            decisions.push_back(control::to_json(one));
        timeline.push_back({{"at", control::to_json(entry.at)},
                            {"phase", entry.phase},
                            {"window", control::to_json(entry.measured)},
                            {"verdict", policy::to_string(entry.says)},
                            {"stage", policy::to_string(entry.stands)},
                            {"decisions", std::move(decisions)}});
    }
    auto out = summary_json(result);
    out["timeline"] = std::move(timeline);
    return out;
}

class replaying {
  public:
    replaying(const replay_command& what, format as) : what_{what}, as_{as} {}

    int run() {
        const auto takes = config::parse_duration(what_.move_takes);
        const auto holds = config::parse_duration(what_.move_holds);
        if (!takes || !holds) {
            talk("hotlane: " + (takes ? holds.error() : takes.error()).message);
            return usage;
        }
        options_.move_takes = *takes;
        options_.move_holds = *holds;
        const auto fresh = load(what_.policy_file);
        if (!fresh) return invalid_config;
        std::optional<config::model> old;
        if (!what_.compare_file.empty()) {
            old = load(what_.compare_file);
            if (!old) return invalid_config;
        }
        for (const auto& file : what_.traces) {
            const auto tracks = read_tracks(file, options_);
            if (!tracks) {
                talk(fmt::format("hotlane: {}: {}", file, tracks.error()));
                return failed;
            }
            for (const auto& one : *tracks)
                if (const int code = play(one, *fresh, old ? &*old : nullptr); code != ok)
                    return code;
        }
        if (as_ == format::json)
            print_json({{"schema", "hotlane/v1"}, {"replays", std::move(all_)}});
        return ok;
    }

  private:
    static std::optional<config::model> load(const std::string& path) {
        auto read = config::load_file(path);
        if (read) return std::move(read->value);
        talk(read.error().text);
        return std::nullopt;
    }

    std::optional<policy::replay_result> play_with(const config::model& model, const track& one) {
        const auto with = settings_for(model, what_, one.tool);
        if (!with) {
            talk(fmt::format("hotlane: there is no policy {}", what_.use));
            return std::nullopt;
        }
        auto options = options_;
        options.with = *with;
        options.tool = one.tool;
        // One tool at a time: nobody is there to have an incident with.
        options.with.rails.incident_tools = 0;
        return policy::replay(one.steps, options);
    }

    int play(const track& one, const config::model& fresh, const config::model* old) {
        const auto result = play_with(fresh, one);
        if (!result) return invalid_config;
        std::optional<policy::replay_result> before;
        if (old != nullptr) {
            before = play_with(*old, one);
            if (!before) return invalid_config;
        }
        const auto differences = before ? policy::compare(*before, *result) : std::string();
        if (as_ == format::json) {
            json out{{"file", one.file}, {"tool", one.tool}, {"result", result_json(*result)}};
            if (before) {
                out["compared_with"] = summary_json(*before);
                out["differences"] = differences;
            }
            all_.push_back(std::move(out));
            return ok;
        }
        print(fmt::format("{} ({}), policy {} at {}\n",
                          one.file,
                          one.tool,
                          settings_for(fresh, what_, one.tool)->name,
                          settings_for(fresh, what_, one.tool)->where));
        if (!what_.only_sums && !before) print(policy::to_text(*result));
        if (before) print(differences.empty() ? "no difference\n" : differences);
        print(policy::summary_of(*result));
        return ok;
    }

    const replay_command& what_;
    format as_;
    policy::replay_options options_;
    json all_ = json::array();
};

}  // namespace

int replay(const replay_command& what, format as) {
    return replaying{what, as}.run();
}

}  // namespace hotlane::app
