#include "router/placement/pg_session.hpp"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>

#include "router/placement/dsn_addresses.hpp"
#include "router/placement/fleet_store.hpp"
#include "router/pq/open.hpp"

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

// To one address of the target. An error: libpq's text, or ours.
tl::expected<pg_connection, std::string> connect_to(const postgres_target& at,
                                                    const dsn_host& host) {
    // What stands behind the DSN overrides it.
    pq::settings with{{"dbname", at.dsn}};
    const auto set = [&](const char* key, const std::string& value) {
        if (!value.empty()) with.emplace_back(key, value);
    };
    set("host", host.host);
    set("hostaddr", host.hostaddr);
    set("port", host.port);
    set("password", at.password);
    set("application_name", at.name);
    set("target_session_attrs", "read-write");
    set("client_encoding", "UTF8");
    set("tcp_user_timeout", "5000");
    const auto patience = connect_timeout_of(at.dsn).value_or(at.connect_timeout);
    auto made = pq::open(with, pq::dbname::may_be_dsn, std::chrono::steady_clock::now() + patience);
    if (!made) return tl::unexpected(made.error().what);
    return pg_connection(made->release());
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
    for (const auto& host : addresses_of(at.dsn)) {
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
        if (!pq::wait_for(socket(), POLLIN | POLLOUT, deadline))
            return tl::unexpected(pg_failure{true, "", "no reply in time"});
        if (PQconsumeInput(c_.get()) == 0) return tl::unexpected(broken());
    }
}

pg_answer<pg_result*> pg_session::next(clock::time_point deadline) {
    while (PQisBusy(c_.get()) == 1) {
        if (!pq::wait_for(socket(), POLLIN, deadline))
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
