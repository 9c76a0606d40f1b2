#include "router/control/reload.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "config/load.hpp"
#include "config/print.hpp"
#include "router/control/controller.hpp"

namespace hotlane::control {

using nlohmann::json;

namespace {

// Two models are the same in what they print: every key is described once (config/describe.cpp), so
// none can be forgotten here.
std::string printed(const config::model& only) {
    config::loaded all;
    all.value = only;
    return config::print_effective(all);
}

// The text of one part of a model, everything else at its default.
template <typename Part>
std::string printed(const config::model& from, Part config::model::*part) {
    config::model only;
    only.*part = from.*part;
    return printed(only);
}

// What a reload can put in force while the tool is served.
void take_policy(config::tool& into, const config::tool& from) {
    into.policy = from.policy;
    into.label = from.label;
    into.set = from.set;
    into.pinned = from.pinned;
}

// Everything else of a tool.
std::string printed_tool(config::tool tool) {
    take_policy(tool, {});
    config::model only;
    only.tools = {std::move(tool)};
    return printed(only);
}

std::string printed_policy(const std::string& name, const policy::settings& with) {
    config::model only;
    only.policies = {{name, with}};
    return printed(only);
}

const config::tool* find(const config::model& in, const std::string& name) {
    const auto at = std::find_if(
        in.tools.begin(), in.tools.end(), [&](const auto& tool) { return tool.name == name; });
    return at == in.tools.end() ? nullptr : &*at;
}

void compare_tools(const config::model& now, const config::model& wanted, reload_plan& plan) {
    // The first rule that matches wins, so only what comes behind all others can be added live.
    const auto is_behind = [&](std::size_t index) {
        if (index < now.tools.size()) return false;
        return std::equal(now.tools.begin(),
                          now.tools.end(),
                          wanted.tools.begin(),
                          [](const auto& a, const auto& b) { return a.name == b.name; });
    };
    for (std::size_t i = 0; i < wanted.tools.size(); ++i) {
        const auto& tool = wanted.tools[i];
        const auto* before = find(now, tool.name);
        if (before == nullptr) {
            const bool has_server = !tool.postgres || now.postgres.count(tool.postgres->server) > 0;
            if (is_behind(i) && has_server) {
                plan.tools_added.push_back(tool);
            } else {
                plan.needs_restart.push_back("tools." + tool.name);
            }
        } else if (printed_tool(*before) != printed_tool(tool)) {
            plan.needs_restart.push_back("tools." + tool.name);
        }
    }
    for (const auto& tool : now.tools) {
        if (find(wanted, tool.name) == nullptr) plan.needs_restart.push_back("tools." + tool.name);
    }
}

void compare_process(const config::model& now, const config::model& wanted, reload_plan& plan) {
    const auto check = [&](const char* key, auto part) {
        if (printed(now, part) != printed(wanted, part)) plan.needs_restart.emplace_back(key);
    };
    check("listen", &config::model::listen);
    check("admin.socket", &config::model::admin_socket);
    check("metrics.listen", &config::model::metrics_listen);
    check("state.file", &config::model::state_file);
    check("state.postgres", &config::model::shared_state);
    check("threads", &config::model::threads);
    check("log", &config::model::log);
    check("limits", &config::model::limit);
    check("postgres", &config::model::postgres);
    check("record", &config::model::record);
    check("sampling.timeout", &config::model::sample_timeout);
}

// A password that was changed in its file: for links made from now on.
void renew_password(placement::tool_entry& entry, const config::model& model) {
    const auto at = entry.current()->at.kind;
    if (auto fresh = placement::home_of(entry.settings, model, at))
        entry.renew_password(at, std::move(fresh->password));
}

}  // namespace

// FNV-1a: it only has to differ when the text does.
std::string policy_hash(const config::model& of) {
    config::model only;
    only.policies = of.policies;
    only.tools = of.tools;
    only.postgres = of.postgres;
    std::uint64_t hash = 14'695'981'039'346'656'037ULL;
    for (const char c : printed(only)) {
        hash ^= static_cast<unsigned char>(c);
        hash *= 1'099'511'628'211ULL;
    }
    return fmt::format("{:016x}", hash);
}

reload_plan plan_reload(const config::model& now, const config::model& wanted) {
    reload_plan plan{now, {}, {}, {}};
    for (const auto& [name, settings] : wanted.policies) {
        const auto before = now.policies.find(name);
        if (before == now.policies.end() ||
            printed_policy(name, before->second) != printed_policy(name, settings))
            plan.policies_changed.push_back(name);
    }
    compare_tools(now, wanted, plan);
    compare_process(now, wanted, plan);
    plan.next.policies = wanted.policies;
    // A tool that waits for a restart keeps its policy until then, also one that the file dropped.
    for (const auto& tool : now.tools) {
        const auto used = now.policies.find(tool.policy);
        if (used != now.policies.end()) plan.next.policies.insert(*used);
    }
    plan.next.groups = wanted.groups;
    for (auto& tool : plan.next.tools)
        if (const auto* said = find(wanted, tool.name)) take_policy(tool, *said);
    plan.next.hash = wanted.hash;
    plan.next.tools.insert(plan.next.tools.end(), plan.tools_added.begin(), plan.tools_added.end());
    return plan;
}

json controller::reload() {
    const std::lock_guard one_at_a_time(reloading_);
    const auto read = config::load_file(hooks_.config_path);
    if (!read) {
        {
            const std::lock_guard lock(mutex_);
            reloads_.ok = false;
            ++reloads_.failures;
        }
        const json out{{"ok", false},
                       {"error", read.error().text},
                       {"hint", "nothing was changed; mend the file and reload again"}};
        in_.log(severity::error, "reload_refused", out);
        return out;
    }
    const auto plan = plan_reload(*model_.get(), read->value);
    model_.set(plan.next);
    json added = json::array();
    for (const auto& tool : plan.tools_added) {
        added.push_back(tool.name);
        if (const auto entry = in_.tools.add(tool)) {
            open_desk(entry);
            placer_.add(entry->name);
        }
    }
    for (const auto& each : desks())
        each->set_settings(policy_of(each->entry()));
    for (const auto& entry : in_.tools.all())
        renew_password(*entry, plan.next);
    {
        const std::lock_guard lock(mutex_);
        reloads_.ok = true;
        ++reloads_.successes;
        reloads_.succeeded_at = in_.now();
    }
    const json out{{"ok", true},
                   {"policies_changed", plan.policies_changed},
                   {"tools_added", std::move(added)},
                   {"needs_restart", plan.needs_restart},
                   {"hash", plan.next.hash}};
    in_.log(severity::info, "reloaded", out);
    return out;
}

}  // namespace hotlane::control
