// Every key of the file, with its range. deploy/examples/hotlane.yaml shows them with comments.
#include "config/archive.hpp"

namespace hotlane::config {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
constexpr milliseconds tick{1};
constexpr std::int64_t mib = 1024 * 1024;
constexpr std::int64_t many = 1'000'000;

void describe_listener(archive& a, listener& l) {
    a.one_of({"tcp", "unix"});
    if (a.reading() ? a.has("unix") : !l.unix_path.empty()) {
        a.text("unix", l.unix_path, text_rule::path);
    } else {
        a.address("tcp", l.at, true);
    }
}

void describe_state(archive& a, model& m) {
    if (a.reading() || !m.shared_state) a.text("file", m.state_file, text_rule::near_path);
    if (a.reading() ? !a.has("postgres") : !m.shared_state) return;
    if (!m.shared_state) m.shared_state.emplace();
    auto& f = *m.shared_state;
    a.text("postgres", f.dsn, text_rule::any);
    a.secret("password", f.password);
    if (a.reading() || !f.name.empty()) a.text("name", f.name, text_rule::name);
    a.duration("connect_timeout", f.connect_timeout, {seconds{2}, seconds{60}});
    a.duration("statement_timeout", f.statement_timeout, {milliseconds{100}, seconds{60}});
    a.duration("lease", f.lease, {seconds{3}, hours{1}});
}

void describe_limits(archive& a, limits& l) {
    a.integer("client_connections", l.client_connections, 1, many);
    a.integer("clients_before_login", l.clients_before_login, 1, many);
    a.duration("login_timeout", l.login_timeout, {tick, hours{1}});
    a.duration("connect_timeout", l.connect_timeout, {tick, hours{1}});
    a.duration("connect_try_timeout", l.connect_try_timeout, {tick, hours{1}});
    a.size("buffer", l.buffer_bytes, 4096, 1024 * mib);
    a.size("parsed_message", l.parsed_message_bytes, 4096, 1024 * mib);
    a.integer("held_clients", l.held_clients, 0, many);
    a.size("held", l.held_bytes, 0, 1024 * 1024 * mib);
    a.integer("statements_per_client", l.statements_per_client, 1, many);
    a.integer("parameters_per_client", l.parameters_per_client, 1, many);
    a.integer("cancel_in_flight", l.cancel_in_flight, 1, many);
}

void describe_detect(archive& a, policy::settings::detect_settings& d) {
    a.ratio("handoff_rate_enter", d.handoff_rate_enter);
    a.ratio("handoff_rate_leave", d.handoff_rate_leave);
    a.duration("mean_wait_enter", d.mean_wait_enter, {milliseconds{0}, hours{1}});
    a.duration("mean_wait_leave", d.mean_wait_leave, {milliseconds{0}, hours{1}});
    a.number("mean_wait_enter_commits", d.mean_wait_enter_commits, 1'000);
    a.number("mean_wait_leave_commits", d.mean_wait_leave_commits, 1'000);
    a.duration("commit_latency", d.commit_latency, {tick, seconds{60}});
    a.ratio("abort_rate_enter", d.abort_rate_enter);
    a.ratio("abort_rate_leave", d.abort_rate_leave);
}

void describe_rails(archive& a, policy::settings::rail_settings& r) {
    a.integer("moves_at_once", r.moves_at_once, 1, 1'000);
    a.integer("moves_per_hour", r.moves_per_hour, 1, many);
    a.duration("min_stay", r.min_stay);
    a.duration("cooldown", r.cooldown);
    a.duration("cooldown_max", r.cooldown_max);
    a.duration("forgive_after", r.forgive_after);
    a.duration("hold_max", r.hold_max, {tick, hours{1}});
    a.integer("incident_tools", r.incident_tools, 2, many);
    a.duration("incident_hold", r.incident_hold);
    a.duration("pin_max", r.pin_max, {tick, hours{24 * 366}});
}

void describe_return(archive& a, policy::settings::return_settings& r) {
    a.boolean("enabled", r.enabled);
    a.integer("calm_windows", r.calm_windows, 1, many);
    a.integer("min_writes", r.min_writes, 1, many);
    a.ratio("lane_use_max", r.lane_use_max);
    a.duration("lookback", r.lookback, {tick, hours{24 * 31}});
}

void describe_isolation(archive& a, isolation_override& i) {
    a.required("level");
    a.required("reason");
    a.choice("level", i.value, {"read_committed", "repeatable_read", "serializable"});
    a.text("reason", i.reason, text_rule::any);
}

}  // namespace

void describe_process(archive& a, model& m) {
    int version = 1;
    a.required("version");
    a.integer("version", version, 1, 1);
    a.list("listen", m.listen, [&](listener& l) { describe_listener(a, l); });
    a.section("admin", [&] { a.text("socket", m.admin_socket, text_rule::path); });
    a.optional_section("metrics", m.metrics_listen, [&](endpoint& at) {
        a.required("listen");
        a.address("listen", at, true);
    });
    a.section("state", [&] { describe_state(a, m); });
    a.integer("threads", m.threads, 1, 256);
    a.section("log", [&] {
        static const std::vector<std::string> levels{"trace", "debug", "info", "warn", "error"};
        static const std::vector<std::string> formats{"auto", "text", "json"};
        const auto choose = [&](std::string_view key, std::string& value, const auto& words) {
            std::size_t i = 0;
            while (i + 1 < words.size() && words[i] != value)
                ++i;
            a.choice(key, i, words);
            value = words[i];
        };
        choose("level", m.log.level, levels);
        choose("format", m.log.format, formats);
    });
    a.section("limits", [&] { describe_limits(a, m.limit); });
    a.section("sampling", [&] { a.duration("timeout", m.sample_timeout, {tick, hours{1}}); });
    a.named("postgres", m.postgres, [&](const std::string& name, postgres_server& s) {
        s.name = name;
        describe_server(a, s);
    });
}

void describe_server(archive& a, postgres_server& s) {
    a.required("address");
    a.address("address", s.at, false);
    a.section("admin", [&] {
        a.text("user", s.admin_user, text_rule::any);
        a.secret("password", s.admin_password);
    });
    a.boolean("require_durable", s.require_durable);
}

void describe_tool(archive& a, tool& t) {
    if (a.reading()) t.where = a.here();
    a.required("name");
    a.required("engine");
    a.text("name", t.name, text_rule::name);
    a.section("match", [&] {
        a.text("database", t.match.database, text_rule::pattern);
        a.text("user", t.match.user, text_rule::pattern);
        a.text("application_name", t.match.application_name, text_rule::pattern);
    });
    a.section("engine", [&] {
        a.required("address");
        a.choice("kind", t.engine.kind, {"twill", "sql"});
        a.address("address", t.engine.at, false);
        a.text("user", t.engine.user, text_rule::any);
        a.text("database", t.engine.database, text_rule::any);
    });
    a.optional_section("postgres", t.postgres, [&](postgres_home& h) {
        a.required("server");
        a.text("server", h.server, text_rule::name);
        a.text("database", h.database, text_rule::any);
        a.text("schema", h.schema, text_rule::any);
        a.text("role", h.role, text_rule::any);
        a.secret("password", h.password);
    });
    a.text("policy", t.policy, text_rule::name);
    a.text("schema", t.schema_file, text_rule::near_path);
    a.boolean("no_hidden_constraints", t.no_hidden_constraints);
    a.optional_section(
        "isolation", t.isolation, [&](isolation_override& i) { describe_isolation(a, i); });
    a.duration("hold", t.hold_max, {tick, hours{1}});
    a.duration("keep", t.keep);
}

void describe_policy(archive& a, policy::settings& s) {
    a.choice("mode", s.act_mode, {"observe", "advise", "act"});
    a.section("window", [&] {
        a.duration("length", s.window.length, {milliseconds{100}, hours{24}});
        a.integer("hot_of", s.window.hot_of, 1, 1'000);
        a.integer("out_of", s.window.out_of, 1, 1'000);
        a.integer("min_acquires", s.window.min_acquires, 1, 1'000 * many);
        a.duration("proof_min", s.window.proof_min, {milliseconds{0}, hours{24}});
        a.integer("age_max", s.window.age_max, 1, many);
    });
    a.section("detect", [&] { describe_detect(a, s.detect); });
    a.section("diagnose", [&] {
        a.ratio("conflict_rate_hot", s.diagnose.conflict_rate_hot);
        a.ratio("seen_share_min", s.diagnose.seen_share_min);
        a.boolean("route_busy_lane", s.diagnose.route_busy_lane);
    });
    a.section("levers", [&] {
        a.boolean("shard", s.levers.shard);
        a.duration("shard_deadline", s.levers.shard_deadline);
        a.duration("diagnose_deadline", s.levers.diagnose_deadline);
        a.duration("remeasure", s.levers.remeasure);
        a.boolean("route", s.levers.route);
    });
    a.section("rails", [&] { describe_rails(a, s.rails); });
    a.section("return", [&] { describe_return(a, s.come_back); });
}

}  // namespace hotlane::config
