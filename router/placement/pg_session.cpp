#include "router/placement/pg_session.hpp"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "router/placement/dsn_hosts.hpp"
#include "router/placement/fleet_store.hpp"

namespace hotlane::placement {

namespace {

std::string one_line(const char* text) {
    std::string out = text == nullptr ? "" : text;
    while (!out.empty() && (out.back() == '\n' || out.back() == ' '))
        out.pop_back();
    std::replace(out.begin(), out.end(), '\n', ' ');
    return out;
}

struct options_free {
    void operator()(PQconninfoOption* o) const noexcept { PQconninfoFree(o); }
};
using options = std::unique_ptr<PQconninfoOption, options_free>;

struct clear {
    void operator()(PGresult* r) const noexcept { PQclear(r); }
};
using result = std::unique_ptr<PGresult, clear>;

// False: the deadline passed.
bool ready(int socket, short events, std::chrono::steady_clock::time_point deadline) {
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        if (left.count() <= 0) return false;
        pollfd one{socket, events, 0};
        const int got = ::poll(&one, 1, static_cast<int>(std::min<long>(left.count(), 60'000)));
        if (got > 0) return true;
        if (got < 0 && errno != EINTR) return false;
    }
}

pg_failure refused_by(const PGresult* r) {
    const char* state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char* text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    pg_failure out{false,
                   state == nullptr ? "" : state,
                   text == nullptr ? one_line(PQresultErrorMessage(r)) : text};
    // A server that goes down, or became a standby under our feet, is no store any more.
    out.lost = out.sqlstate.rfind("57P0", 0) == 0 || out.sqlstate.rfind("08", 0) == 0 ||
               out.sqlstate == "25006";
    return out;
}

pg_rows read_rows(const PGresult* r) {
    pg_rows out(static_cast<std::size_t>(PQntuples(r)));
    for (int line = 0; line < PQntuples(r); ++line) {
        auto& into = out[static_cast<std::size_t>(line)];
        for (int f = 0; f < PQnfields(r); ++f) {
            if (PQgetisnull(r, line, f) == 1) {
                into.emplace_back();
            } else {
                into.emplace_back(std::string(PQgetvalue(r, line, f),
                                              static_cast<std::size_t>(PQgetlength(r, line, f))));
            }
        }
    }
    return out;
}

// To one host of the target. An error: libpq's text.
tl::expected<pg_connection, std::string> connect_to(const postgres_target& at,
                                                    const dsn_host& host) {
    const auto seconds = std::to_string(std::max<long long>(
        2, std::chrono::ceil<std::chrono::seconds>(at.connect_timeout).count()));
    // What stands before the DSN is a default that it may override; what stands behind holds.
    std::vector<const char*> keys{"connect_timeout", "dbname"};
    std::vector<const char*> values{seconds.c_str(), at.dsn.c_str()};
    const auto set = [&](const char* key, const std::string& value) {
        if (value.empty()) return;
        keys.push_back(key);
        values.push_back(value.c_str());
    };
    set("host", host.host);
    set("hostaddr", host.hostaddr);
    set("port", host.port);
    set("password", at.password);
    set("application_name", at.name);
    const std::string read_write = "read-write", utf8 = "UTF8", patience_ms = "5000";
    set("target_session_attrs", read_write);
    set("client_encoding", utf8);
    set("tcp_user_timeout", patience_ms);
    keys.push_back(nullptr);
    values.push_back(nullptr);
    pg_connection made(PQconnectdbParams(keys.data(), values.data(), 1));
    if (!made) return tl::unexpected(std::string("out of memory"));
    if (PQstatus(made.get()) != CONNECTION_OK)
        return tl::unexpected(one_line(PQerrorMessage(made.get())));
    PQsetnonblocking(made.get(), 1);
    PQsetNoticeProcessor(
        made.get(), [](void*, const char*) {}, nullptr);
    return made;
}

}  // namespace

void pg_hang_up::operator()(pg_conn* c) const noexcept {
    PQfinish(c);
}

std::string check_dsn(const std::string& dsn) {
    char* complaint = nullptr;
    const options read(PQconninfoParse(dsn.c_str(), &complaint));
    if (read) return {};
    auto out = complaint == nullptr ? std::string("out of memory") : one_line(complaint);
    PQfreemem(complaint);
    return out;
}

pg_answer<std::unique_ptr<pg_session>> pg_session::connect(const postgres_target& at) {
    pg_failure all{true, "", ""};
    for (const auto& host : hosts_of(at.dsn)) {
        auto made = connect_to(at, host);
        if (made)
            return std::unique_ptr<pg_session>(
                new pg_session(std::move(*made), at.statement_timeout));
        all.what += (all.what.empty() ? "" : "; ") + made.error();
    }
    return tl::unexpected(std::move(all));
}

int pg_session::socket() const {
    return PQsocket(c_.get());
}

pg_failure pg_session::broken() const {
    auto what = one_line(PQerrorMessage(c_.get()));
    return {true, "", what.empty() ? "the connection broke" : std::move(what)};
}

pg_answer<void> pg_session::flush(clock::time_point deadline) {
    for (;;) {
        const int left = PQflush(c_.get());
        if (left == 0) return {};
        if (left < 0) return tl::unexpected(broken());
        if (!ready(socket(), POLLIN | POLLOUT, deadline))
            return tl::unexpected(pg_failure{true, "", "no reply in time"});
        if (PQconsumeInput(c_.get()) == 0) return tl::unexpected(broken());
    }
}

pg_answer<pg_result*> pg_session::next(clock::time_point deadline) {
    while (PQisBusy(c_.get()) == 1) {
        if (!ready(socket(), POLLIN, deadline))
            return tl::unexpected(pg_failure{true, "", "no reply in time"});
        if (PQconsumeInput(c_.get()) == 0) return tl::unexpected(broken());
    }
    return PQgetResult(c_.get());
}

pg_answer<pg_rows> pg_session::exec(const std::string& sql, const std::vector<pg_cell>& params) {
    const auto deadline = clock::now() + limit_;
    std::vector<const char*> values;
    for (const auto& p : params)
        values.push_back(p ? p->c_str() : nullptr);
    const int sent = params.empty() ? PQsendQuery(c_.get(), sql.c_str())
                                    : PQsendQueryParams(c_.get(),
                                                        sql.c_str(),
                                                        static_cast<int>(params.size()),
                                                        nullptr,
                                                        values.data(),
                                                        nullptr,
                                                        nullptr,
                                                        0);
    if (sent != 1) return tl::unexpected(broken());
    if (auto flushed = flush(deadline); !flushed) return tl::unexpected(flushed.error());
    pg_rows out;
    std::optional<pg_failure> refused;
    for (;;) {
        auto got = next(deadline);
        if (!got) return tl::unexpected(got.error());
        const result owner(*got);
        if (!owner) break;
        if (PQresultStatus(owner.get()) == PGRES_FATAL_ERROR) {
            if (!refused) refused = refused_by(owner.get());
        } else {
            out = read_rows(owner.get());
        }
        if (PQstatus(c_.get()) == CONNECTION_BAD) return tl::unexpected(broken());
    }
    announced_ = take_notices() || announced_;
    if (refused) return tl::unexpected(std::move(*refused));
    return out;
}

bool pg_session::take_notices() {
    bool any = false;
    while (auto* const one = PQnotifies(c_.get())) {
        PQfreemem(one);
        any = true;
    }
    return any;
}

pg_answer<bool> pg_session::announced() {
    if (PQconsumeInput(c_.get()) == 0) return tl::unexpected(broken());
    const bool any = take_notices() || announced_;
    announced_ = false;
    return any;
}

}  // namespace hotlane::placement
