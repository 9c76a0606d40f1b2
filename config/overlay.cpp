#include "config/overlay.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "config/glob.hpp"
#include "config/reader.hpp"

namespace hotlane::config {

void apply(const overlay& on, policy::settings& s, problem_list& problems, origin_map& origins) {
    reader r{on.body, on.path, problems, origins};
    describe_policy(r, s);
    r.finish();
}

bool covers(const group& g, const tool& t) {
    const bool by_name =
        g.tools.empty() || std::any_of(g.tools.begin(), g.tools.end(), [&](const auto& glob) {
            return glob_matches(glob, t.name);
        });
    return by_name && std::all_of(g.label.begin(), g.label.end(), [&](const auto& wanted) {
               const auto found = t.label.find(wanted.first);
               return found != t.label.end() && glob_matches(wanted.second, found->second);
           });
}

std::string base_policy(const model& m, const tool& t) {
    if (!t.policy.empty()) return t.policy;
    for (const auto& g : m.groups)
        if (!g.policy.empty() && covers(g, t)) return g.policy;
    return "default";
}

policy::settings settings_of(const model& m, const tool& t) {
    const auto base = m.policies.find(base_policy(m, t));
    policy::settings s = base == m.policies.end() ? policy::settings{} : base->second;
    // Checked when they were loaded: nothing can go wrong here that was not said then.
    problem_list problems;
    origin_map origins;
    const auto put = [&](const overlay_ptr& on, const std::string& name) {
        if (!on) return;
        apply(*on, s, problems, origins);
        s.name += "+" + name;
        s.where = fmt::format("{}:{}", on->body.where().file, on->body.line);
    };
    for (const auto& g : m.groups)
        if (covers(g, t)) put(g.set, g.name);
    put(t.set, t.name);
    s.pinned = t.pinned;
    return s;
}

}  // namespace hotlane::config
