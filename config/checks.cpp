// Rules that join several values. Each says why it is a rule.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "config/assemble.hpp"
#include "config/glob.hpp"
#include "config/overlay.hpp"
#include "config/scalar.hpp"

namespace hotlane::config {
namespace {

std::string spot(const location& at) {
    return fmt::format("{}:{}", at.file, at.line);
}

template <class Map>
std::vector<std::string> keys(const Map& map) {
    std::vector<std::string> out;
    for (const auto& [key, value] : map)
        out.push_back(key);
    return out;
}

constexpr std::size_t tools_max = 2'000;  // pairs are compared

class checker {
  public:
    checker(assembly& work, file_access* access) : work_{work}, access_{access}, m_{work.value} {
        for (const auto& p : work.problems.all()) {
            if (p.level == severity::error) read_errors_.push_back(p.path);
        }
    }

    void run() {
        // A file that is missing or half read leaves names behind that nobody defines.
        const auto whole_file = [](const std::string& path) {
            return path.empty() || path == "include" || path == "policies" || path == "postgres";
        };
        if (std::any_of(read_errors_.begin(), read_errors_.end(), whole_file)) return;
        listeners();
        limits();
        state();
        for (const auto& [name, s] : m_.policies)
            policy("policies." + name, s);
        groups();
        if (m_.tools.size() > tools_max) {
            error("tools", fmt::format("are more than {}", tools_max), "use a template");
            return;
        }
        for (std::size_t i = 0; i < m_.tools.size(); ++i)
            broken_.push_back(failed(at_tool(i)));
        for (std::size_t i = 0; i < m_.tools.size(); ++i) {
            one_tool(i);
            for (std::size_t k = 0; k < i; ++k) {
                if (!broken_[k] && !broken_[i]) two_tools(k, i);
            }
            reachable(i);
        }
        if (m_.tools.empty()) {
            warn("tools", "there are none, so every client is turned away", "add one");
        }
    }

  private:
    void error(const std::string& path, std::string message, std::string mend = {}) {
        add({origin_of(work_, path), severity::error, path, std::move(message), std::move(mend)});
    }
    void warn(const std::string& path, std::string message, std::string mend = {}) {
        add({origin_of(work_, path), severity::warning, path, std::move(message), std::move(mend)});
    }

    // A value that could not be read has its default here; complaints that rest on it would be
    // about something that nobody wrote. And an heir repeats no complaint of its ancestor.
    void add(problem p) {
        const auto section = section_of(p.path);
        for (const auto& known : read_errors_) {
            if (section_of(known) == section) return;
        }
        if (failed(p.path)) return;
        const auto same = [&](const problem& q) {
            return q.where.file == p.where.file && q.where.line == p.where.line &&
                   q.where.column == p.where.column && q.message == p.message;
        };
        const auto& all = work_.problems.all();
        if (std::none_of(all.begin(), all.end(), same)) work_.problems.add(std::move(p));
    }

    static std::string at_tool(std::size_t i) { return fmt::format("tools[{}]", i); }

    // Could something at or below `path` not be read?
    [[nodiscard]] bool failed(const std::string& path) const {
        return std::any_of(read_errors_.begin(), read_errors_.end(), [&](const auto& known) {
            return known.compare(0, path.size(), path) == 0 &&
                   (known.size() == path.size() || known[path.size()] == '.' ||
                    known[path.size()] == '[');
        });
    }

    // "policies.a.detect.x" -> "policies.*.detect": the values that a rule may join.
    static std::string section_of(const std::string& path) {
        auto section = path.substr(0, std::min(path.size(), path.rfind('.')));
        constexpr std::string_view policies = "policies.";
        if (section.compare(0, policies.size(), policies) == 0) {
            const auto name_end = section.find('.', policies.size());
            section.replace(policies.size(), name_end - policies.size(), 1, '*');
        }
        return section;
    }

    void listeners() {
        const auto name = [](const listener& l) {
            return l.unix_path.empty() ? print_endpoint(l.at) : l.unix_path;
        };
        if (failed("listen")) return;
        if (m_.listen.empty()) error("listen", "is empty, so no client could come in");
        for (std::size_t i = 0; i < m_.listen.size(); ++i) {
            const auto& l = m_.listen[i];
            if (l.unix_path.empty() && l.at.port == 0) continue;  // each gets its own
            for (std::size_t k = 0; k < i; ++k) {
                if (name(m_.listen[k]) != name(l)) continue;
                error(fmt::format("listen[{}]", i), name(l) + " is listened on twice");
            }
            if (l.unix_path == m_.admin_socket) {
                error(fmt::format("listen[{}]", i), "is the admin socket too");
            }
            if (m_.metrics_listen && name(l) == print_endpoint(*m_.metrics_listen)) {
                error("metrics.listen", "is listened on for clients too");
            }
        }
    }

    void state() {
        if (!m_.shared_state) return;
        const auto& f = *m_.shared_state;
        if (work_.origins.contains("state.file")) {
            error("state.file",
                  "stands beside state.postgres, and the state is in one place",
                  "keep postgres for a fleet, file for one hotlane");
        }
        // postgresql://user:secret@host, or password=secret
        const auto at = f.dsn.find('@');
        const auto user = f.dsn.find("://");
        const bool in_url =
            at != f.dsn.npos && user != f.dsn.npos && f.dsn.find(':', user + 3) < at;
        if (in_url || f.dsn.find("password") != f.dsn.npos) {
            error("state.postgres", "holds a password", "name it: password: {file: PATH}");
        }
        if (f.statement_timeout * 3 > f.lease) {
            error("state.statement_timeout",
                  "is more than a third of the lease; one slow reply would cost it");
        }
    }

    void limits() {
        if (m_.limit.connect_try_timeout > m_.limit.connect_timeout) {
            error("limits.connect_try_timeout",
                  "is longer than connect_timeout, which bounds all tries together");
        }
    }

    void policy(const std::string& path, const policy::settings& s) {
        const lint_notes say{[this](const std::string& at, std::string message, std::string mend) {
                                 error(at, std::move(message), std::move(mend));
                             },
                             [this](const std::string& at, std::string message, std::string mend) {
                                 warn(at, std::move(message), std::move(mend));
                             },
                             [this](const std::string& at) { return work_.origins.contains(at); }};
        lint_policy(path, s, m_, say);
    }

    void groups() {
        for (std::size_t i = 0; i < m_.groups.size(); ++i) {
            const auto& g = m_.groups[i];
            const auto path = fmt::format("groups[{}]", i);
            unknown_name(path + ".policy", "policy", g.policy, keys(m_.policies));
            for (std::size_t k = 0; k < i; ++k)
                if (m_.groups[k].name == g.name)
                    error(path + ".name",
                          fmt::format("{} is the name of the group at {} too",
                                      quoted(g.name),
                                      spot(m_.groups[k].where)));
            const bool is_used = std::any_of(m_.tools.begin(), m_.tools.end(), [&](const tool& t) {
                return t.is_template() || covers(g, t);
            });
            if (!is_used) warn(path, "covers no tool", "look at its tools and labels");
            if (!g.set && g.policy.empty()) warn(path, "changes nothing", "policy: or set:");
        }
    }

    void one_tool(std::size_t i) {
        const auto path = at_tool(i);
        const auto& t = m_.tools[i];
        placeholders(path, t);
        unknown_name(path + ".policy", "policy", t.policy, keys(m_.policies));
        if (has_overlay(m_, t) && !t.is_template()) policy(path + ".set", settings_of(m_, t));
        sources(path, t);
        types(path + ".types", t);
        if (t.postgres) {
            unknown_name(
                path + ".postgres.server", "server", t.postgres->server, keys(m_.postgres));
        }
        if (m_.policies.contains(base_policy(m_, t))) {
            const auto s = settings_of(m_, t);
            if (!t.postgres && s.act_mode == policy::mode::act && s.levers.route) {
                warn(path,
                     fmt::format("has no postgres home, so policy {} can never route it", s.name),
                     "add postgres: {server: ...}");
            }
            if (t.postgres && t.hold_max < s.rails.hold_max) {
                warn(
                    path + ".hold",
                    fmt::format("{} is below rails.hold_max {} of policy {}; the shorter one holds",
                                print_duration(t.hold_max),
                                print_duration(s.rails.hold_max),
                                s.name));
            }
        }
        if (access_ != nullptr && !t.schema_file.empty() && !t.is_template() &&
            !access_->readable(t.schema_file)) {
            error(path + ".schema", t.schema_file + " cannot be read");
        }
    }

    // What the mover can convert both ways (router/move/convert.hpp).
    void types(const std::string& path, const tool& t) {
        static const std::vector<std::string> known{
            "boolean", "smallint", "integer", "timestamp", "timestamptz", "date", "uuid", "json"};
        for (const auto& [column, type] : t.types) {
            if (std::find(known.begin(), known.end(), type) == known.end())
                error(path + "." + column,
                      fmt::format("{} is no type that can be converted both ways", type),
                      "one of: " + fmt::format("{}", fmt::join(known, ", ")));
            if (column.find('.') == std::string::npos || column.front() == '.' ||
                column.back() == '.')
                error(path, column + " names no column", "write it as table.column");
        }
    }

    void sources(const std::string& path, const tool& t) {
        const bool is_sql = t.engine.kind == engine_kind::sql;
        if (is_sql && t.engine.query.empty())
            warn(path + ".engine",
                 "has no query, so its counters are unknown and nothing is ever decided",
                 "query: SELECT tool, acquires, handoffs, wait_us FROM ...");
        if (!is_sql && !t.engine.query.empty())
            error(path + ".engine.query", "is for kind sql; twill says its counters by itself");
        if (is_sql && t.engine.metrics)
            error(path + ".engine.metrics", "is for kind twill; sql has a query");
    }

    void unknown_name(const std::string& path,
                      std::string_view what,
                      const std::string& name,
                      const std::vector<std::string>& known) {
        if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) return;
        const auto near = nearest(name, known);
        error(path,
              fmt::format("there is no {} {}", what, quoted(name)),
              near.empty() ? "" : fmt::format("did you mean {}?", near));
    }

    void placeholders(const std::string& path, const tool& t) {
        const auto holds = [](const std::string& s) { return s.find('{') != std::string::npos; };
        const auto name = path + ".name";
        if (t.is_template()) {
            if (t.engine.kind == engine_kind::twill && !holds(t.engine.at.host)) {
                warn(path + ".engine.address",
                     "is the same for every tool of the template, but one engine serves one "
                     "database",
                     "put {database} into it");
            }
            if (t.postgres && !holds(t.postgres->database) && !holds(t.postgres->schema)) {
                error(path + ".postgres.database",
                      "is the same for every tool of the template",
                      "put {database} into it");
            }
            return;
        }
        const bool stray = holds(t.engine.at.host) || holds(t.engine.user) ||
                           holds(t.engine.database) || holds(t.schema_file) ||
                           (t.postgres && (holds(t.postgres->database) ||
                                           holds(t.postgres->schema) || holds(t.postgres->role)));
        if (stray)
            error(name, "the tool uses {database} but is no template", "name: \"{database}\"");
    }

    // Cheap tests first: this runs for every pair.
    void two_tools(std::size_t k, std::size_t i) {
        const auto& first = m_.tools[k];
        const auto& t = m_.tools[i];
        const auto taken = [&] {
            return fmt::format("of tool {} at {}", first.name, spot(first.where));
        };
        if (!t.name.empty() && first.name == t.name) {
            error(at_tool(i) + ".name", quoted(t.name) + " is the name " + taken() + " too");
        }
        if (first.is_template() || t.is_template()) return;
        if (first.postgres && t.postgres && same_server(*first.postgres, *t.postgres) &&
            first.postgres->database == t.postgres->database &&
            first.postgres->schema == t.postgres->schema) {
            error(at_tool(i) + ".postgres",
                  "database and schema are those " + taken(),
                  "a move of one would take the other's tables");
        }
        if (!same(first.engine.at, t.engine.at)) return;
        const auto database = [](const tool& x) {
            return x.engine.database.empty() ? x.match.database : x.engine.database;
        };
        if (database(first) == database(t)) {
            error(at_tool(i) + ".engine",
                  "address and database are those " + taken(),
                  "a tool is what has its own database");
        } else if (t.engine.kind == engine_kind::twill) {
            warn(at_tool(i) + ".engine.address",
                 "is that " + taken() + ", but one engine serves one database",
                 "its counters and tables would be shared");
        }
    }

    static bool same(const endpoint& a, const endpoint& b) {
        return a.port == b.port && a.host == b.host;
    }

    // One server under two names is one server.
    [[nodiscard]] bool same_server(const postgres_home& a, const postgres_home& b) const {
        const auto one = m_.postgres.find(a.server);
        const auto two = m_.postgres.find(b.server);
        return one != m_.postgres.end() && two != m_.postgres.end() &&
               same(one->second.at, two->second.at);
    }

    void reachable(std::size_t i) {
        for (std::size_t k = 0; k < i; ++k) {
            if (!rule_covers(m_.tools[k].match, m_.tools[i].match)) continue;
            if (broken_[k] || m_.tools[k].name == m_.tools[i].name) continue;
            warn(fmt::format("tools[{}].match", i),
                 fmt::format("can never match: tool {} at {} comes first and takes all of it",
                             m_.tools[k].name,
                             spot(m_.tools[k].where)),
                 "put the narrower rule first");
            return;
        }
    }

    assembly& work_;
    file_access* access_;
    const model& m_;
    std::vector<std::string> read_errors_;
    std::vector<bool> broken_;  // tools that could not be read whole
};

}  // namespace

void check_model(assembly& work, file_access* access) {
    checker{work, access}.run();
}

}  // namespace hotlane::config
