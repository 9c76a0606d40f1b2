#include "config/assemble.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "config/overlay.hpp"
#include "config/reader.hpp"
#include "config/scalar.hpp"

namespace hotlane::config {
namespace {

constexpr std::size_t included_files_max = 256;
constexpr std::string_view default_policy = "default";

std::string spot(const location& at) {
    return fmt::format("{}:{}:{}", at.file, at.line, at.column);
}

std::string folder_of(const std::string& file) {
    const auto slash = file.rfind('/');
    return slash == std::string::npos ? "" : file.substr(0, slash + 1);
}

// Adds one key of an included file to the main tree: lists grow, maps grow, names stay unique.
void append(assembly& work, node& root, entry said) {
    auto& key = said.key;
    auto& value = said.value;
    const bool is_list = key.text == "tools" || key.text == "listen" || key.text == "groups";
    const bool is_map = key.text == "policies" || key.text == "postgres";
    if (key.text == "version") {
        if (value.text != "1") work.problems.error(value.where(), "version", "must be 1");
        return;
    }
    if (!is_list && !is_map) {
        work.problems.error(key.where(),
                            key.text,
                            "does not belong in an included file",
                            "known there: groups, listen, policies, postgres, tools");
        return;
    }
    const auto wanted = is_list ? node::kind::sequence : node::kind::map;
    const auto here = std::find_if(root.entries.begin(), root.entries.end(), [&](const auto& e) {
        return e.key.text == key.text;
    });
    if (here == root.entries.end()) {
        root.entries.push_back(std::move(said));
        return;
    }
    if (value.type != wanted || here->value.type != wanted) {
        if (value.type != wanted) here->value = std::move(value);  // the reader complains of it
        return;
    }
    for (auto& item : value.items)
        here->value.items.push_back(std::move(item));
    for (auto& named : value.entries) {
        const auto* twin = here->value.find(named.key.text);
        if (twin == nullptr) {
            here->value.entries.push_back(std::move(named));
            continue;
        }
        work.problems.error(named.key.where(),
                            fmt::format("{}.{}", key.text, named.key.text),
                            "is defined twice, first at " + spot(twin->where()),
                            "keep one of them");
    }
}

void merge_file(
    assembly& work, node& root, const std::string& path, const node& said_at, file_access& access) {
    auto text = access.read(path);
    if (!text) {
        work.problems.error(said_at.where(), "include", fmt::format("{}: {}", path, text.error()));
        return;
    }
    work.files.push_back({path, std::move(*text)});
    auto tree = parse_tree(work.files.back(), work.problems);
    if (!tree || tree->type == node::kind::null) return;  // refused already, or empty
    if (tree->type != node::kind::map) {
        work.problems.error(tree->where(), "", "the file must be a map of keys");
        return;
    }
    for (auto& said : tree->entries)
        append(work, root, std::move(said));
}

// Policies inherit, so each is read on top of its ancestor.
class policy_reader {
  public:
    policy_reader(assembly& work, const node* policies) : work_{work}, policies_{policies} {}

    void read_all() {
        read(std::string{default_policy});
        if (policies_ == nullptr) return;
        for (const auto& [name, value] : policies_->entries)
            read(name.text);
    }

  private:
    static std::string path_of(std::string_view name) { return fmt::format("policies.{}", name); }

    std::vector<std::string> names() const {
        std::vector<std::string> out;
        if (policies_ != nullptr) {
            for (const auto& [name, value] : policies_->entries)
                out.push_back(name.text);
        }
        return out;
    }

    policy::settings read(const std::string& name) {
        if (const auto done = work_.value.policies.find(name); done != work_.value.policies.end()) {
            return done->second;
        }
        const auto* body = policies_ != nullptr ? policies_->find(name) : nullptr;
        policy::settings s;
        std::string parent;
        if (body != nullptr && body->type == node::kind::map) {
            open_.insert(name);
            parent = parent_of(name, *body);
            if (!parent.empty()) s = read(parent);
            open_.erase(name);
        }
        s.name = name;
        s.where = "built-in";
        if (body != nullptr) {
            const auto at = name_place(name, *body);
            s.where = fmt::format("{}:{}", at.file, at.line);
            work_.origins[path_of(name)] = at;
            inherit(parent, name);
            fill(name, *body, s);
        }
        work_.value.policies[name] = s;
        return s;
    }

    location name_place(const std::string& name, const node& body) const {
        for (const auto& [key, value] : policies_->entries) {
            if (key.text == name) return key.where();
        }
        return body.where();
    }

    void fill(const std::string& name, const node& body, policy::settings& s) {
        if (body.type == node::kind::null) return;  // `name:` alone: all inherited
        if (body.type != node::kind::map) {
            work_.problems.error(body.where(), path_of(name), "is not a map of settings");
            return;
        }
        reader r{body, path_of(name), work_.problems, work_.origins};
        describe_policy(r, s);
        r.finish({"extends"});
    }

    // The ancestor's name; empty: the built-in defaults.
    std::string parent_of(const std::string& name, const node& body) {
        const auto* extends = body.find("extends");
        if (extends == nullptr) return name == default_policy ? "" : std::string{default_policy};
        const auto path = path_of(name) + ".extends";
        auto known = names();
        known.emplace_back(default_policy);
        if (extends->type != node::kind::scalar) {
            work_.problems.error(extends->where(), path, "is not the name of a policy");
        } else if (name == default_policy) {
            work_.problems.error(extends->where(),
                                 path,
                                 "the default policy starts from the built-in defaults",
                                 "leave extends out");
        } else if (open_.contains(extends->text)) {
            work_.problems.error(
                extends->where(), path, quoted(extends->text) + " extends this one: a circle");
        } else if (std::find(known.begin(), known.end(), extends->text) == known.end()) {
            const auto near = nearest(extends->text, known);
            work_.problems.error(extends->where(),
                                 path,
                                 "there is no policy " + quoted(extends->text),
                                 near.empty() ? "" : fmt::format("did you mean {}?", near));
        } else {
            return extends->text;
        }
        return {};
    }

    void inherit(const std::string& parent, const std::string& name) {
        if (parent.empty()) return;
        const auto from = path_of(parent) + ".";
        std::vector<std::pair<std::string, location>> copies;
        for (auto it = work_.origins.lower_bound(from);
             it != work_.origins.end() && it->first.compare(0, from.size(), from) == 0;
             ++it) {
            copies.emplace_back(path_of(name) + "." + it->first.substr(from.size()), it->second);
        }
        for (auto& [path, at] : copies)
            work_.origins[path] = std::move(at);
    }

    assembly& work_;
    const node* policies_;
    std::set<std::string> open_;
};

// What a tool's keys stand for when they are left out.
void complete(tool& t, const origin_map& origins, const std::string& path) {
    if (!origins.contains(path + ".match")) {
        t.match.database = t.is_template() ? "*" : t.name;
    }
    if (t.postgres && t.postgres->database.empty()) t.postgres->database = t.name;
}

void copy_origins(origin_map& origins, const std::string& from, const std::string& to) {
    std::vector<std::pair<std::string, location>> copies;
    for (auto it = origins.lower_bound(from + "."); it != origins.end(); ++it) {
        if (it->first.compare(0, from.size() + 1, from + ".") != 0) break;
        copies.emplace_back(to + it->first.substr(from.size()), it->second);
    }
    for (auto& [path, at] : copies)
        origins[path] = std::move(at);
}

// The overlays are read once for their problems and origins; what they come to for a tool has the
// origins of the policy, the groups and the tool, the later on top.
void read_overlays(assembly& work) {
    auto& m = work.value;
    const auto read = [&](overlay_ptr& on) {
        if (!on) return;
        on = std::make_shared<const overlay>(overlay{on->body, on->path, work.kept});
        policy::settings scratch;
        apply(*on, scratch, work.problems, work.origins);
    };
    for (auto& g : m.groups)
        read(g.set);
    for (std::size_t i = 0; i < m.tools.size(); ++i) {
        auto& t = m.tools[i];
        read(t.set);
        if (t.is_template()) continue;
        const auto path = fmt::format("tools[{}].set", i);
        const bool is_own = has_overlay(m, t);
        if (t.policy.empty())
            for (std::size_t k = m.groups.size(); k-- > 0;)
                if (!m.groups[k].policy.empty() && covers(m.groups[k], t))
                    work.origins[fmt::format("tools[{}].policy", i)] =
                        origin_of(work, fmt::format("groups[{}].policy", k));
        t.policy = base_policy(m, t);
        if (!is_own) continue;
        origin_map own;
        policy::settings scratch;
        problem_list seen;
        if (t.set) apply(*t.set, scratch, seen, own);
        copy_origins(work.origins, "policies." + t.policy, path);
        for (std::size_t k = 0; k < m.groups.size(); ++k)
            if (covers(m.groups[k], t))
                copy_origins(work.origins, fmt::format("groups[{}].set", k), path);
        for (const auto& [key, at] : own)
            work.origins[key] = at;
    }
}

}  // namespace

void merge_includes(assembly& work, node& root, file_access* access) {
    const auto* found = root.find("include");
    if (found == nullptr) return;
    const node include = *found;  // the tree grows below
    if (include.type != node::kind::sequence) {
        work.problems.error(include.where(), "include", "is not a list", "[policies/*.yaml]");
        return;
    }
    if (access == nullptr) {
        work.problems.error(include.where(), "include", "is possible in a file only");
        return;
    }
    const auto folder = folder_of(root.file->name);
    std::set<std::string> seen{root.file->name};
    for (const auto& item : include.items) {
        if (item.type != node::kind::scalar || item.text.empty()) {
            work.problems.error(item.where(), "include", "is not a path", "policies/*.yaml");
            continue;
        }
        const auto paths = access->expand(item.text[0] == '/' ? item.text : folder + item.text);
        if (paths.empty()) {
            work.problems.warn(item.where(), "include", "no file matches " + quoted(item.text));
        }
        for (const auto& path : paths) {
            if (!seen.insert(path).second) {
                work.problems.error(item.where(), "include", path + " is included already");
            } else if (work.files.size() > included_files_max) {
                work.problems.error(item.where(), "include", "too many files");
                return;
            } else {
                merge_file(work, root, path, item, *access);
            }
        }
    }
}

void read_model(assembly& work, const node& root) {
    auto& m = work.value;
    reader r{root, "", work.problems, work.origins};
    describe_process(r, m);
    if (!r.has("listen")) m.listen = {listener{{"127.0.0.1", 6432}, {}}};
    r.list("groups", m.groups, [&](group& g) { describe_group(r, g); });
    r.list("tools", m.tools, [&](tool& t) {
        t.pool = m.pool;
        t.copy = m.copy;
        describe_tool(r, t);
    });
    r.finish({"include", "policies"});
    for (std::size_t i = 0; i < m.tools.size(); ++i) {
        complete(m.tools[i], work.origins, fmt::format("tools[{}]", i));
    }
    const auto* policies = root.find("policies");
    if (policies != nullptr && policies->type != node::kind::map) {
        if (policies->type != node::kind::null) {
            work.problems.error(policies->where(), "policies", "is not a map of policies");
        }
        policies = nullptr;
    }
    policy_reader{work, policies}.read_all();
    read_overlays(work);
}

bool has_overlay(const model& m, const tool& t) {
    return t.set || std::any_of(m.groups.begin(), m.groups.end(), [&](const auto& g) {
               return g.set && covers(g, t);
           });
}

location origin_of(const assembly& work, std::string path) {
    while (!path.empty()) {
        if (const auto at = work.origins.find(path); at != work.origins.end()) return at->second;
        const auto cut = path.find_last_of(".[");
        path.resize(cut == std::string::npos ? 0 : cut);
    }
    return {work.files.front().name, 1, 1};
}

}  // namespace hotlane::config
