// A session without sockets: bytes in, bytes out, actions performed by hand. Used by the unit and
// property tests.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "router/session/session.hpp"
#include "router/wire/bytes.hpp"
#include "router/wire/message.hpp"
#include "tests/unit/session/unpooled.hpp"

namespace hotlane::session::testing {

// ---- messages as text: f for the client's, b for the home's ----
namespace f {
inline std::string startup(std::vector<std::pair<std::string, std::string>> parameters =
                               {{"user", "ann"}, {"database", "shop"}},
                           std::uint16_t minor = 0) {
    std::string out;
    wire::append_startup(out, parameters, minor);
    return out;
}
inline std::string query(std::string_view sql) {
    std::string out;
    wire::append_query(out, sql);
    return out;
}
inline std::string parse(std::string_view name,
                         std::string_view sql,
                         std::vector<std::uint32_t> types = {}) {
    std::string out;
    wire::append_parse(out, name, sql, types);
    return out;
}
inline std::string bind(std::string_view portal, std::string_view statement) {
    std::string body;
    body.append(portal).push_back('\0');
    body.append(statement).push_back('\0');
    body.append(6, '\0');
    std::string out;
    wire::append_bytes(out, 'B', body);
    return out;
}
inline std::string target(char tag, char kind, std::string_view name) {
    std::string out;
    wire::append_target(out, tag, kind, name);
    return out;
}
inline std::string describe(std::string_view name) {
    return target('D', 'S', name);
}
inline std::string describe_portal(std::string_view name = "") {
    return target('D', 'P', name);
}
inline std::string close(std::string_view name) {
    return target('C', 'S', name);
}
inline std::string execute(std::string_view portal = "", std::int32_t limit = 0) {
    std::string out;
    wire::append_execute(out, portal, limit);
    return out;
}
inline std::string bytes(char tag, std::string_view body = "") {
    std::string out;
    wire::append_bytes(out, tag, body);
    return out;
}
inline std::string sync() {
    return bytes('S');
}
inline std::string flush() {
    return bytes('H');
}
}  // namespace f

namespace b {
using f::bytes;
inline std::string ready(char status = 'I') {
    return bytes('Z', std::string(1, status));
}
inline std::string complete(std::string_view tag) {
    std::string out;
    wire::append_command_complete(out, tag);
    return out;
}
inline std::string error(std::string_view state,
                         std::string_view message,
                         std::string_view severity = "ERROR",
                         std::string_view hint = "") {
    std::string out;
    wire::error_fields fields;
    fields.severity = severity;
    fields.sqlstate = state;
    fields.message = message;
    fields.hint = hint;
    wire::append_error(out, fields);
    return out;
}
inline std::string status(std::string_view name, std::string_view value) {
    std::string out;
    wire::append_parameter_status(out, name, value);
    return out;
}
inline std::string key(std::uint32_t pid, std::string_view secret) {
    std::string out;
    wire::append_backend_key(out, pid, secret);
    return out;
}
inline std::string auth(std::uint32_t kind, std::string_view rest = "") {
    std::string out;
    wire::append_authentication(out, kind, rest);
    return out;
}
inline std::string row_description(std::vector<std::uint32_t> types) {
    std::vector<wire::column> columns;
    for (const auto type : types)
        columns.push_back({.name = "c", .type = type, .type_size = 8, .type_modifier = -1});
    std::string out;
    wire::append_row_description(out, columns);
    return out;
}
inline std::string parameters(std::vector<std::uint32_t> types) {
    std::string out;
    wire::append_parameter_description(out, types);
    return out;
}
inline std::string row(std::string_view value) {
    const std::optional<std::string_view> one = value;
    std::string out;
    wire::append_data_row(out, {&one, 1});
    return out;
}
inline std::string parsed() {
    return bytes('1');
}
inline std::string bound() {
    return bytes('2');
}
inline std::string closed() {
    return bytes('3');
}
inline std::string no_data() {
    return bytes('n');
}
}  // namespace b

class scripted_environment : public unpooled_environment {
  public:
    link_target home;
    tool_facts facts{"shop", isolation_rule::by_statement};
    std::optional<refusal> unresolved;
    admission next{admission::inside};
    int entered{0}, left{0}, waits_cancelled{0}, inside{0};
    std::vector<ended_transaction> ended;
    std::vector<std::string> ended_sql, ended_table, ddl, limits;
    std::uint64_t watch{0};
    std::vector<std::vector<std::string>> ended_writes;  // tables, of each
    std::set<std::uint64_t> wanted;  // fingerprints that were seen and are wanted no more
    std::vector<std::pair<std::string, std::vector<std::uint32_t>>> seen;

    bool resolve(std::string_view,
                 std::string_view,
                 std::string_view,
                 tool_facts& tool,
                 refusal& why) override {
        tool = facts;
        if (unresolved) why = *unresolved;
        return !unresolved;
    }
    const link_target& target() override { return home; }
    admission enter(std::uint64_t) override {
        if (next == admission::inside) admit();
        return next;
    }
    void admit() {
        ++entered;
        ++inside;
    }
    void leave(const ended_transaction& one) override {
        ++left;
        --inside;
        ended.push_back(one);
        ended_sql.emplace_back(one.sql);
        ended_table.emplace_back(one.table);
        ended_writes.emplace_back(one.writes.tables.begin(), one.writes.tables.end());
        ended.back().writes.tables = {};  // they end with this call
    }
    std::uint64_t write_watch() override { return watch; }
    void cancel_wait() override { ++waits_cancelled; }
    std::string issue_secret(std::uint32_t) override { return "ours"; }
    void ddl_seen(std::string_view sql) override { ddl.emplace_back(sql); }
    bool wants_statement(std::uint64_t fingerprint) override {
        return fingerprint != 0 && wanted.count(fingerprint) == 0;
    }
    void statement_seen(std::uint64_t fingerprint,
                        std::string_view sql,
                        std::span<const std::uint32_t> types) override {
        wanted.insert(fingerprint);
        seen.emplace_back(sql, std::vector<std::uint32_t>(types.begin(), types.end()));
    }
    std::vector<std::string> went_on;
    void went_on_after_error(std::string_view tag, bool first) override {
        went_on.push_back((first ? "first " : "") + std::string(tag));
    }
    void count_limit_hit(std::string_view limit) override { limits.emplace_back(limit); }
    void pinned(pin reason) override { pins.push_back(reason); }

    // Shared links: by hand, or by whoever sets the functions.
    std::function<link_memory*()> on_borrow;
    std::function<void(link_fate)> on_give_back;
    link_memory* free{nullptr};  // lent at the next borrow()
    bool gate_open{true};
    int waits_stopped{0};
    std::vector<pin> pins;
    std::vector<link_fate> given_back;
    pairs_ptr known_greeting;
    retry_rule rule;
    std::vector<std::pair<retry_outcome, int>> retries;

    bool sequences{false};
    void sequences_matter() override { sequences = true; }
    bool do_sequences_matter() override { return sequences; }
    bool gate_is_open() override { return gate_open; }
    link_memory* borrow(const link_identity&) override {
        return on_borrow ? on_borrow() : std::exchange(free, nullptr);
    }
    void give_back(link_fate fate) override {
        given_back.push_back(fate);
        if (on_give_back) on_give_back(fate);
    }
    void stop_waiting() override { ++waits_stopped; }
    pairs_ptr greeting(const link_identity&) override { return known_greeting; }
    retry_rule retry() override { return rule; }
    void retried(retry_outcome outcome, int tries) override {
        retries.emplace_back(outcome, tries);
    }

    // One of a fleet.
    bool confirmed{true};
    std::function<bool()> on_left;  // empty: nobody can ask the homes
    int asked_homes{0};

    bool is_confirmed() override { return confirmed; }
    bool left_home() override {
        if (!on_left) return false;
        ++asked_homes;
        return on_left();
    }
};

class script {
  public:
    explicit script(policy::home_kind kind = policy::home_kind::postgres,
                    const bounds& limits = {},
                    bool local = true,
                    pooling pool = pooling::session)
        : machine(std::make_unique<session>(environment_, limits, local)) {
        environment_.home.kind = kind;
        environment_.facts.pool = pool;
        environment_.home.generation = 1;
        machine->on_start(now);
        act();
    }

    scripted_environment& env() { return environment_; }

    // Bytes of the client or the home, perhaps in pieces of `piece` bytes.
    script& client(std::string_view bytes) { return feed(bytes, true); }
    script& home(std::string_view bytes) { return feed(bytes, false); }
    script& client_eof() {
        machine->on_client_eof(now);
        return act();
    }
    script& link_open() {
        machine->on_link_open(now);
        return act();
    }
    script& lend(link_memory& link) {
        machine->on_link_lent(link, now);
        return act();
    }
    script& link_lost() {
        machine->on_link_lost("gone", now);
        return act();
    }
    script& link_failed() {
        machine->on_link_failed("connection refused", now);
        return act();
    }
    script& after(milliseconds time) {
        now += time;
        return *this;
    }
    script& timer_fires(timer which) {
        machine->on_timer(which, now);
        return act();
    }
    script& released() {
        environment_.admit();
        machine->on_released(now);
        return act();
    }

    // Startup to the first ReadyForQuery; the greeting is taken away.
    script& logged_in(std::string_view startup = "") {
        client(startup.empty() ? std::string_view(f::startup()) : startup);
        link_open();
        to_link();
        greet();
        to_client();
        return *this;
    }
    script& greet(std::uint32_t pid = 77) {
        return home(b::auth(0) + b::status("server_version", "15.0") + b::key(pid, "true") +
                    b::ready());
    }

    std::string to_client() { return std::exchange(client_out_, {}); }
    std::string to_link() { return std::exchange(link_out_, {}); }

    script& act() {
        for (auto& one : machine->take_actions()) {
            if (const auto* open = std::get_if<open_link>(&one)) {
                opened.push_back(open->generation);
                link_out_.clear();
            } else if (std::holds_alternative<close_link>(one)) {
                // As a driver does it: what is left goes to the old link or nowhere.
                ++links_closed;
                farewell.assign(machine->to_link());
                machine->consume_to_link(farewell.size());
            } else if (const auto* armed = std::get_if<arm>(&one)) {
                timers.emplace_back(armed->which, armed->after);
            } else if (const auto* cancel = std::get_if<forward_cancel>(&one)) {
                cancels.push_back(*cancel);
            } else if (std::holds_alternative<close_client>(one)) {
                client_closed = true;
            }
        }
        client_out_.append(machine->to_client());
        machine->consume_to_client(machine->to_client().size());
        if (link_sink)
            link_sink(machine->to_link());
        else
            link_out_.append(machine->to_link());
        machine->consume_to_link(machine->to_link().size());
        return *this;
    }

  private:
    script& feed(std::string_view bytes, bool from_client) {
        const auto size = piece == 0 ? bytes.size() : piece;
        while (!bytes.empty()) {
            // A copy of exactly this size, so that a sanitizer sees views that outlive the call.
            const std::string part(bytes.substr(0, size));
            if (from_client)
                machine->on_client_bytes(part, now);
            else
                machine->on_link_bytes(part, now);
            act();
            bytes.remove_prefix(std::min(size, bytes.size()));
        }
        return *this;
    }

    scripted_environment environment_;
    std::string client_out_, link_out_;

  public:
    std::function<void(std::string_view)> link_sink;  // takes what goes to the link at once
    time_point now{std::chrono::hours(1)};
    std::size_t piece{0};
    std::unique_ptr<session> machine;
    std::vector<std::uint64_t> opened;
    std::vector<std::pair<timer, milliseconds>> timers;
    std::vector<forward_cancel> cancels;
    std::string farewell;  // last bytes to the link closed last
    int links_closed{0};
    bool client_closed{false};
};

// What a stream of messages amounts to: tags, and the SQLSTATEs of its errors.
inline std::string tags(std::string_view bytes) {
    std::string out;
    while (!bytes.empty()) {
        const auto frame = wire::scan_frame(bytes);
        if (frame.status != wire::scan_status::complete) return out + "?";
        out.push_back(frame.header.tag);
        if (frame.header.tag == 'E') {
            const auto error = wire::decode_error(frame.body);
            out += error ? "(" + error->sqlstate + ")" : "(bad)";
        }
        if (frame.header.tag == 'Z') out.push_back(frame.body[0]);
        bytes.remove_prefix(frame.header.total_size());
    }
    return out;
}

// The same for what goes to a home, where E is Execute.
inline std::string sent_tags(std::string_view bytes) {
    std::string out;
    while (!bytes.empty()) {
        const auto frame = wire::scan_frame(bytes);
        if (frame.status != wire::scan_status::complete) return out + "?";
        out.push_back(frame.header.tag);
        bytes.remove_prefix(frame.header.total_size());
    }
    return out;
}

inline wire::error_fields first_error(std::string_view bytes) {
    while (!bytes.empty()) {
        const auto frame = wire::scan_frame(bytes);
        if (frame.status != wire::scan_status::complete) return {};
        if (frame.header.tag == 'E') return wire::decode_error(frame.body).value();
        bytes.remove_prefix(frame.header.total_size());
    }
    return {};
}

}  // namespace hotlane::session::testing
