#include "config/policy_test.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "config/assemble.hpp"
#include "config/reader.hpp"

namespace hotlane::config {

namespace {

using policy::scenario;

const std::vector<std::string> happenings{"shard_done",
                                          "shard_skip",
                                          "order_postgres",
                                          "order_engine",
                                          "move_done",
                                          "move_failed",
                                          "move_refused",
                                          "restart"};
const std::vector<std::string> verdicts{"hot", "calm", "idle", "unknown"};
const std::vector<std::string> qualities{"good", "idle", "reset", "gap", "stalled", "stale"};
const std::vector<std::string> stages{"watching",
                                      "flagged",
                                      "sharding",
                                      "remeasuring",
                                      "would_move",
                                      "moving_out",
                                      "on_postgres",
                                      "would_return",
                                      "moving_back"};
const std::vector<std::string> diagnoses{"none", "hot_row", "busy_lane", "unknown"};
const std::vector<std::string> homes{"engine", "postgres"};
const std::vector<std::string> modes{"observe", "advise", "act"};

template <typename Enum>
void choice(reader& r,
            std::string_view key,
            std::optional<Enum>& into,
            const std::vector<std::string>& words) {
    if (!r.has(key)) return;
    into.emplace();
    r.choice(key, *into, words);
}

class test_reader {
  public:
    test_reader(const std::string& path, assembly& work) : path_{path}, work_{work} {}

    std::optional<policy_tests> read(const node& root) {
        reader r{root, "", work_.problems, work_.origins};
        int version = 1;
        std::string config;
        for (const char* key : {"version", "config", "tests"})
            r.required(key);
        r.integer("version", version, 1, 1);
        r.text("config", config, text_rule::near_path);
        if (!config.empty()) {
            auto loaded = load_file(config);
            if (!loaded) {
                refused_ = loaded.error();
                return std::nullopt;
            }
            out_.text = loaded->text;
            model_ = std::move(loaded->value);
        }
        r.list("tests", out_.all, [&](scenario& one) { read_one(r, one); });
        r.finish();
        return std::move(out_);
    }

    std::optional<refused> refused_;

  private:
    static std::string spot(const location& at) { return fmt::format("{}:{}", at.file, at.line); }

    void read_one(reader& r, scenario& one) {
        one.where = spot(r.here());
        r.required("name");
        r.required("series");
        r.required("expect");
        r.text("name", one.name, text_rule::any);
        read_policy(r, one);
        r.duration("interval", one.interval, {milliseconds{1}, std::chrono::hours{24}});
        if (r.has("move_takes")) {
            one.move_takes.emplace();
            r.duration("move_takes", *one.move_takes, {});
        }
        std::map<std::string, std::string> series;
        r.pairs("series", series);
        for (const auto& [name, text] : series)
            read_series(r, one, name, text);
        r.list("events", one.happenings, [&](scenario::happening& e) {
            r.required("at");
            r.required("do");
            r.duration("at", e.at, {});
            r.choice("do", e.what, happenings);
        });
        r.list("expect", one.expected, [&](scenario::expectation& e) { read_expected(r, e); });
        in_order(r, one);
    }

    void read_policy(reader& r, scenario& one) {
        std::string tool;
        std::string name = "default";
        r.text("tool", tool, text_rule::name);
        r.text("policy", name, text_rule::name);
        const auto known = std::find_if(model_.tools.begin(),
                                        model_.tools.end(),
                                        [&](const auto& t) { return t.name == tool; });
        const auto named = model_.policies.find(name);
        if (!tool.empty() && known == model_.tools.end()) {
            complain(r, "tool", "there is no tool " + quoted(tool) + " in the configuration");
        } else if (named == model_.policies.end()) {
            complain(r, "policy", "there is no policy " + quoted(name) + " in the configuration");
        } else {
            one.with = tool.empty() ? named->second : settings_of(model_, *known);
        }
        if (!tool.empty()) one.tool = tool;
        r.choice("mode", one.with.act_mode, modes);
        // A tool is alone in a test: there is nobody to have an incident with.
        one.with.rails.incident_tools = 0;
    }

    void read_series(reader& r, scenario& one, const std::string& name, const std::string& text) {
        if (!policy::is_series_name(name)) {
            complain(r, "series", quoted(name) + " is no series");
            return;
        }
        auto values = policy::parse_series(text);
        if (!values) {
            complain(r, "series", name + ": " + values.error());
            return;
        }
        one.series[name] = std::move(*values);
    }

    void read_expected(reader& r, scenario::expectation& e) {
        e.where = spot(r.here());
        r.required("at");
        r.duration("at", e.at, {});
        choice(r, "verdict", e.says, verdicts);
        choice(r, "window", e.quality, qualities);
        choice(r, "stage", e.stands, stages);
        choice(r, "diagnosis", e.found, diagnoses);
        choice(r, "home", e.lives, homes);
        if (r.has("decisions")) {
            e.decisions.emplace();
            r.texts("decisions", *e.decisions, text_rule::name);
        }
    }

    void in_order(reader& r, const scenario& one) {
        const auto by_time = [](const auto& a, const auto& b) { return a.at < b.at; };
        if (!std::is_sorted(one.expected.begin(), one.expected.end(), by_time))
            complain(r, "expect", "is not in the order of time");
        if (!std::is_sorted(one.happenings.begin(), one.happenings.end(), by_time))
            complain(r, "events", "is not in the order of time");
    }

    void complain(const reader& r, std::string_view key, std::string message) {
        const auto path = r.path_of(key);
        work_.problems.error(origin_of(work_, path), path, std::move(message));
    }

    std::string path_;
    assembly& work_;
    model model_;
    policy_tests out_;
};

refused refuse(const assembly& work) {
    refused out;
    out.problems = work.problems.all();
    for (const auto& p : out.problems)
        out.text += render(p, work.files.front().line(p.where.line));
    return out;
}

}  // namespace

tl::expected<policy_tests, refused> load_policy_tests(const std::string& path) {
    real_files files;
    assembly work;
    auto text = files.read(path);
    work.files.push_back({path, text ? std::move(*text) : std::string()});
    if (!text) {
        work.problems.error({path, 1, 1}, "", text.error());
        return tl::unexpected(refuse(work));
    }
    const auto root = parse_tree(work.files.front(), work.problems);
    if (!root || root->type != node::kind::map) {
        if (!work.problems.has_errors())
            work.problems.error({path, 1, 1}, "", "the file must be a map of keys", "version: 1");
        return tl::unexpected(refuse(work));
    }
    test_reader reading{path, work};
    auto got = reading.read(*root);
    if (reading.refused_) return tl::unexpected(*reading.refused_);
    if (!got || work.problems.has_errors()) return tl::unexpected(refuse(work));
    return std::move(*got);
}

}  // namespace hotlane::config
