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
    a.integer("statements_per_tool", l.statements_per_tool, 0, many);
    a.size("statement_sample", l.statement_sample_bytes, 0, mib);
    a.duration("statements_kept", l.statements_kept);
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
    a.ratio("conflict_rate_enter", d.conflict_rate_enter);
    a.ratio("conflict_rate_leave", d.conflict_rate_leave);
}

void describe_freeze(archive& a, policy::freeze& f) {
    if (a.reading()) f = {};  // a list is the heir's own: nothing of the ancestor's items stays
    const bool is_span = a.reading() ? a.has("begins") || a.has("ends") : f.begins.has_value();
    if (is_span) {
        a.required("begins");
        a.required("ends");
        if (!f.begins) f.begins.emplace();
        if (!f.ends) f.ends.emplace();
        a.shaped("begins", *f.begins, parse_moment, print_moment);
        a.shaped("ends", *f.ends, parse_moment, print_moment);
    } else {
        a.required("from");
        a.required("to");
        a.shaped("days", f.days, parse_days, print_days);
        a.shaped("from", f.from, parse_clock, print_clock);
        a.shaped("to", f.to, parse_clock, print_clock);
    }
    a.text("reason", f.reason, text_rule::any);
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
    a.ratio("away_share", r.away_share);
    a.integer("away_max", r.away_max, 1, many);
    a.duration("hold_budget", r.hold_budget, {milliseconds{0}, hours{24}});
    a.list("freeze", r.freezes, [&](policy::freeze& f) { describe_freeze(a, f); });
}

void describe_return(archive& a, policy::settings::return_settings& r) {
    a.boolean("enabled", r.enabled);
    a.integer("calm_windows", r.calm_windows, 1, many);
    a.integer("min_writes", r.min_writes, 1, many);
    a.ratio("lane_use_max", r.lane_use_max);
    a.duration("lookback", r.lookback, {tick, hours{24 * 31}});
    a.ratio("margin", r.margin);
}

void describe_pool(archive& a, pool_settings& p) {
    a.choice("mode", p.share, {"session", "transaction"});
    a.integer("max", p.max, 1, many);
    a.integer("min", p.min, 0, many);
    a.duration("idle", p.idle, {tick, hours{24 * 31}});
    a.duration("lifetime", p.lifetime, {tick, hours{24 * 31}});
    a.duration("wait", p.wait, {tick, hours{1}});
    a.duration("notice", p.notice, {tick, hours{1}});
    a.integer("statements", p.statements, 1, many);
}

void describe_retry(archive& a, policy::settings::retry_settings& r) {
    a.choice("when", r.when, {"off", "flagged", "always"});
    a.integer("attempts", r.attempts, 1, many);
    a.duration("time", r.time, {tick, hours{1}});
    a.duration("pause_first", r.pause_first, {tick, hours{1}});
    a.duration("pause_max", r.pause_max, {tick, hours{1}});
    a.size("size", r.size, 1, 16 * mib);
}

void describe_isolation(archive& a, isolation_override& i) {
    a.required("level");
    a.required("reason");
    a.choice("level", i.value, {"read_committed", "repeatable_read", "serializable"});
    a.text("reason", i.reason, text_rule::any);
}

void describe_copy(archive& a, copy_rule& c) {
    a.choice("copy", c, {"auto", "ahead", "held"});
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
    a.section("pool", [&] { describe_pool(a, m.pool); });
    describe_copy(a, m.copy);
    a.section("record", [&] {
        a.text("file", m.record.file, text_rule::near_path);
        a.size("size", m.record.bytes, 64 * 1024, 1024 * 1024 * mib);
    });
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
    a.size("space", s.space_bytes, 0, 1024 * 1024 * 1024 * mib);
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
        a.text("query", t.engine.query, text_rule::any);
        a.text("query_user", t.engine.query_user, text_rule::any);
        a.secret("query_password", t.engine.query_password);
        if (a.reading() ? a.has("metrics") : t.engine.metrics.has_value()) {
            if (!t.engine.metrics) t.engine.metrics.emplace();
            a.address("metrics", *t.engine.metrics, false);
        }
        a.text("storage", t.engine.storage, text_rule::name);
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
    a.pairs("labels", t.label);
    a.overlaid("set", t.set);
    a.optional_section("pin", t.pinned, [&](policy::pin& p) {
        for (const char* key : {"home", "until", "reason"})
            a.required(key);
        p.by = "the configuration";
        a.choice("home", p.home, {"engine", "postgres"});
        a.shaped("until", p.until, parse_moment, print_moment);
        a.text("reason", p.reason, text_rule::any);
    });
    a.pairs("types", t.types);
    a.text("schema", t.schema_file, text_rule::near_path);
    a.boolean("no_hidden_constraints", t.no_hidden_constraints);
    a.optional_section(
        "isolation", t.isolation, [&](isolation_override& i) { describe_isolation(a, i); });
    a.choice("rehearse", t.rehearse, {"refuse", "report"});
    describe_copy(a, t.copy);
    a.section("pool", [&] { describe_pool(a, t.pool); });
    a.duration("hold", t.hold_max, {tick, hours{1}});
    a.duration("keep", t.keep);
}

void describe_group(archive& a, group& g) {
    if (a.reading()) g.where = a.here();
    a.required("name");
    a.text("name", g.name, text_rule::name);
    a.texts("tools", g.tools, text_rule::pattern);
    a.pairs("labels", g.label);
    a.text("policy", g.policy, text_rule::name);
    a.overlaid("set", g.set);
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
        a.duration("long_span", s.window.long_span, {milliseconds{0}, hours{24 * 7}});
        a.duration("long_hot", s.window.long_hot, {milliseconds{0}, hours{24 * 7}});
    });
    a.section("detect", [&] { describe_detect(a, s.detect); });
    a.section("diagnose", [&] {
        a.ratio("conflict_rate_hot", s.diagnose.conflict_rate_hot);
        a.ratio("seen_share_min", s.diagnose.seen_share_min);
        a.choice("busy_lane", s.diagnose.busy_lane, {"report", "route", "ignore"});
    });
    a.section("levers", [&] {
        a.choices("order", s.levers.order, {"retry", "shard", "route"});
        a.section("retry", [&] { describe_retry(a, s.levers.retry); });
        a.boolean("retry_first", s.levers.retry_first);
        a.duration("retry_deadline", s.levers.retry_deadline);
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
