#include "router/net/surroundings.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <array>
#include <utility>

#include "router/net/connection.hpp"
#include "router/net/worker.hpp"
#include "router/wire/sqlstate.hpp"

namespace hotlane::net {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::size_t sample_bytes_max = 2'000;
constexpr std::uint64_t write_sample_every = 16;  // writes; conflicts are all offered
constexpr std::chrono::minutes seen_again{10};    // a known statement is told of this often
constexpr std::size_t name_bytes_max = 80;        // of a client's text in a message

session::isolation_rule isolation_of(const config::tool& settings) {
    using level = config::isolation_override::level;
    if (!settings.isolation) return session::isolation_rule::by_statement;
    switch (settings.isolation->value) {
        case level::read_committed:
            return session::isolation_rule::read_committed;
        case level::repeatable_read:
            return session::isolation_rule::repeatable_read;
        case level::serializable:
            return session::isolation_rule::serializable;
    }
    return session::isolation_rule::by_statement;
}

// Which statements the tools were told of lately, by this thread: what makes the common case of a
// statement that is known one look into a table.
std::uint64_t& told(std::uint64_t mark) {
    constexpr std::size_t places = 4'096;
    thread_local std::array<std::uint64_t, places> marks{};
    return marks[mark % places];
}

std::uint64_t mark_of(std::uint64_t fingerprint, const void* tool, std::uint64_t turn) {
    constexpr std::uint64_t odd = 0x9e37'79b9'7f4a'7c15ULL;
    std::uint64_t mark = fingerprint ^ (turn * odd);
    mark = (mark ^ (mark >> 29U)) * odd;
    mark ^= static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(tool)) * odd;
    mark ^= mark >> 32U;
    return mark == 0 ? 1 : mark;
}

std::uint64_t turn_of(policy::time_point now) {
    return static_cast<std::uint64_t>(now.time_since_epoch() / seen_again);
}

std::string quoted(std::string_view text) {
    return '"' + std::string(text.substr(0, name_bytes_max)) + '"';
}

}  // namespace

surroundings::surroundings(worker& on, connection& here)
    : worker_(on), here_(here), all_(on.all()), io_(on.io()) {}

void surroundings::bind(std::weak_ptr<connection> owner, wake on_wake) {
    owner_ = std::move(owner);
    on_wake_ = std::move(on_wake);
}

void surroundings::count_accepted() {
    before_login_ = true;
}

void surroundings::logged_in() {
    if (!before_login_) return;
    before_login_ = false;
    all_.counted.before_login.fetch_sub(1, relaxed);
}

void surroundings::end() {
    cancel_wait();
    stop_waiting();
    leave_pool();
    unpinned();
    logged_in();
    on_wake_ = {};
    if (!key_secret_.empty()) all_.keys.forget(key_process_, key_secret_);
    key_secret_.clear();
    if (!tool_ || std::exchange(ended_, true)) return;
    if (std::exchange(inside_, false)) tool_->gate.leave();
    tool_->counted.sessions.fetch_sub(1, relaxed);
    all_.counted.sessions.fetch_sub(1, relaxed);
    // The tool stays known: the session may still say, in its destructor, how its transaction
    // ended.
}

bool surroundings::resolve(std::string_view user,
                           std::string_view database,
                           std::string_view application_name,
                           session::tool_facts& tool,
                           session::refusal& why) {
    // Refused here rather than at accept: cancel requests still pass, and the client can read why.
    if (all_.counted.sessions.fetch_add(1, relaxed) >= all_.limit.client_connections) {
        all_.counted.sessions.fetch_sub(1, relaxed);
        all_.counted.refused.fetch_add(1, relaxed);
        count_limit_hit("client_connections");
        why = {std::string(wire::sqlstate::too_many_connections),
               "sorry, too many clients already",
               "hotlane's limit client_connections is " +
                   std::to_string(all_.limit.client_connections) + "."};
        return false;
    }
    auto found = all_.tools.resolve({.user = std::string(user),
                                     .database = std::string(database),
                                     .application_name = std::string(application_name)});
    if (!found) {
        all_.counted.sessions.fetch_sub(1, relaxed);
        all_.counted.refused.fetch_add(1, relaxed);
        why = {std::string(wire::sqlstate::invalid_catalog_name),
               "no tool is configured for database " + quoted(database),
               "No match rule of hotlane's configuration fits database " + quoted(database) +
                   ", user " + quoted(user) + " and application_name " + quoted(application_name) +
                   "."};
        return false;
    }
    tool_ = std::move(found);
    tool_->counted.sessions.fetch_add(1, relaxed);
    turn_ = turn_of(all_.now());
    tool.name = tool_->name;
    tool.isolation = isolation_of(tool_->settings);
    tool.pool = tool_->settings.pool.share == config::pool_settings::mode::transaction
                    ? session::pooling::transaction
                    : session::pooling::session;
    tool.statements_per_link = static_cast<std::size_t>(tool_->settings.pool.statements);
    return true;
}

const session::link_target& surroundings::target() {
    // The version is read before the route: a swap in between is seen at the next call.
    const auto version = tool_->version();
    if (version == version_) return target_;
    route_ = tool_->current();
    version_ = version;
    target_.generation = route_->generation;
    target_.kind = route_->at.kind;
    target_.served = route_->served;
    target_.reason = route_->reason;
    target_.user = route_->at.user;
    target_.database = route_->at.database;
    target_.password = route_->at.password;
    target_.search_path = route_->at.search_path;
    return target_;
}

session::admission surroundings::enter(std::uint64_t queued_bytes) {
    auto& gate = tool_->gate;
    began_us_ = now_us();
    if (gate.try_enter()) {
        inside_ = true;
        return session::admission::inside;
    }
    // The work guard keeps the io_context running until the wake, which may come on a thread that
    // is in the middle of release() while the connection ends here.
    auto on_open = [this,
                    self = owner_.lock(),
                    guard =
                        std::make_shared<asio::executor_work_guard<executor>>(io_.get_executor()),
                    serial = ++wait_serial_](placement::wake_reason reason) mutable {
        // Called once, on the thread that releases: nothing of the connection may stay behind
        // there, or its last owner would be on the wrong thread.
        auto deliver = [this, self = std::move(self), guard = std::move(guard), serial, reason] {
            woken(serial, reason);
        };
        asio::post(io_, std::move(deliver));
    };
    switch (gate.wait(queued_bytes, std::move(on_open), ticket_)) {
        case placement::entered::yes:
            inside_ = true;
            return session::admission::inside;
        case placement::entered::full:
            tool_->counted.hold_refused.fetch_add(1, relaxed);
            count_limit_hit("held_clients");
            return session::admission::refused;
        case placement::entered::held:
            break;
    }
    waiting_ = true;
    wait_began_ = steady::now();
    tool_->counted.held.fetch_add(1, relaxed);
    return session::admission::held;
}

void surroundings::woken(std::uint64_t serial, placement::wake_reason reason) {
    const bool inside = reason == placement::wake_reason::released;
    if (!waiting_ || serial != wait_serial_) {
        // The waiter gave up while the gate was opening: it is inside without wanting to be.
        if (inside && abandoned_) abandoned_->gate.leave();
        return;
    }
    waited();
    inside_ = inside;
    if (!inside) tool_->counted.hold_refused.fetch_add(1, relaxed);
    const std::string_view why = reason == placement::wake_reason::timed_out
                                     ? "the hold took too long"
                                     : "the tool is not served now";
    if (on_wake_) on_wake_(inside, why);
}

void surroundings::waited() {
    waiting_ = false;
    began_us_ = now_us();
    const auto waited =
        std::chrono::duration_cast<std::chrono::microseconds>(steady::now() - wait_began_);
    tool_->counted.hold_wait_us.fetch_add(static_cast<std::uint64_t>(waited.count()), relaxed);
    tool_->counted.held_for.observe(waited);
}

// The clock of the samples, in microseconds: what lies between two of its ticks is measured.
std::int64_t surroundings::now_us() const {
    const auto us = [](auto length) {
        return std::chrono::duration_cast<std::chrono::microseconds>(length).count();
    };
    static const std::int64_t offset =
        us(all_.now().time_since_epoch()) - us(steady::now().time_since_epoch());
    return us(steady::now().time_since_epoch()) + offset;
}

std::uint64_t surroundings::next_number() {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, relaxed) + 1;
}

void surroundings::cancel_wait() {
    if (!waiting_) return;
    waited();
    if (!tool_->gate.cancel(ticket_)) abandoned_ = tool_;
}

void surroundings::leave(const session::ended_transaction& ended) {
    auto& counted = tool_->counted;
    if (const auto& w = ended.writes; w.watch != 0)
        tool_->changes.take(
            {w.watch, w.commits, w.doubt, w.everything, w.ddl, w.tables});  // before the gate
    if (std::exchange(inside_, false)) tool_->gate.leave();
    counted.transactions.fetch_add(1, relaxed);
    const auto now = all_.now();
    counted.last_activity_ms.store(now.time_since_epoch().count(), relaxed);
    turn_ = turn_of(now);
    if (ended.errors > 0) {
        counted.errors.fetch_add(static_cast<std::uint64_t>(ended.errors), relaxed);
    }
    if (ended.unknown) counted.unknown_outcomes.fetch_add(1, relaxed);
    if (!ended.wrote) return;
    counted.write_transactions.fetch_add(1, relaxed);
    // Each try was a write transaction of its own at the home: a conflict that a retry hides from
    // the client is still one to the diagnosis.
    if (ended.conflicts_retried > 0) {
        const auto tries = static_cast<std::uint64_t>(ended.conflicts_retried);
        counted.write_transactions.fetch_add(tries, relaxed);
        counted.write_conflicts.fetch_add(tries, relaxed);
        observe(placement::observation::kind::conflict, ended);
    }
    tool_->writes.push({.session = number_,
                        .start_us = began_us_,
                        .end_us = now_us(),
                        .key = ended.key,
                        .conflict = ended.conflict,
                        .block = ended.block});
    if (ended.conflict) {
        counted.write_conflicts.fetch_add(1, relaxed);
        observe(placement::observation::kind::conflict, ended);
    } else if (writes_++ % write_sample_every == 0) {
        observe(placement::observation::kind::write, ended);
    }
}

void surroundings::observe(placement::observation::kind what,
                           const session::ended_transaction& ended) {
    tool_->seen.push({.what = what,
                      .table = std::string(ended.table),
                      .sql = std::string(ended.sql.substr(0, sample_bytes_max)),
                      .at = all_.now()});
}

std::string surroundings::issue_secret(std::uint32_t process_id) {
    logged_in();
    if (!key_secret_.empty()) all_.keys.forget(key_process_, key_secret_);
    key_process_ = process_id;
    key_secret_ = all_.keys.issue(process_id, owner_);
    // Without randomness there is no key: the client gets one that opens nothing.
    if (key_secret_.empty()) return std::string(cancel_registry::secret_bytes, '\0');
    return key_secret_;
}

void surroundings::ddl_seen(std::string_view sql) {
    const auto mark = tool_->seen.push({.what = placement::observation::kind::ddl,
                                        .table = {},
                                        .sql = std::string(sql),
                                        .at = all_.now()});
    if (!all_.tools.on_ddl) return;
    ddl_mark_ = mark;
    all_.tools.on_ddl();
}

bool surroundings::is_ddl_kept() {
    if (ddl_mark_ != 0 && tool_->seen.is_kept(ddl_mark_)) ddl_mark_ = 0;
    return ddl_mark_ == 0;
}

bool surroundings::wants_statement(std::uint64_t fingerprint) {
    const auto mark = mark_of(fingerprint, tool_.get(), turn_);
    return fingerprint != 0 && told(mark) != mark;
}

void surroundings::statement_seen(std::uint64_t fingerprint,
                                  std::string_view sql,
                                  std::span<const std::uint32_t> types) {
    const auto mark = mark_of(fingerprint, tool_.get(), turn_);
    told(mark) = mark;
    switch (tool_->statements.see(fingerprint, sql, types, all_.now())) {
        case placement::statement_book::kept::yes:
            break;
        case placement::statement_book::kept::too_long:
            count_limit_hit("statement_sample");
            break;
        case placement::statement_book::kept::another_went:
            count_limit_hit("statements_per_tool");
            break;
    }
}

bool surroundings::is_confirmed() {
    return all_.tools.word.holds();
}

bool surroundings::left_home() {
    const auto& ask = all_.tools.word.left;
    return ask && ask(*tool_);
}

void surroundings::count_limit_hit(std::string_view limit) {
    all_.counted.hit(limit);
}

}  // namespace hotlane::net
