#include "metrics/pg_link.hpp"

#include <libpq-fe.h>
#include <poll.h>
#include <array>
#include <cerrno>
#include <string_view>

#include "metrics/resolve.hpp"

namespace hotlane::metrics {

using kind = source_error::kind;

std::string_view to_string(source_error::kind k) noexcept {
    switch (k) {
        case kind::unreachable:
            return "unreachable";
        case kind::timed_out:
            return "timed_out";
        case kind::refused:
            return "refused";
        case kind::bad_reply:
            return "bad_reply";
    }
    return "?";
}

void pg_link::closer::operator()(pg_conn* c) const noexcept {
    PQfinish(c);
}

pg_link::pg_link(source_target target, encryption tls) : target_{std::move(target)}, tls_{tls} {}
pg_link::~pg_link() = default;

std::string pg_link::said() const {
    std::string text = conn_ ? PQerrorMessage(conn_.get()) : "no memory";
    constexpr std::size_t text_max = 500;
    if (text.size() > text_max) text.resize(text_max);
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    for (auto& c : text)
        c = c == '\n' ? ' ' : c;
    return text;
}

// Whatever failed, the connection may be in the middle of something: it is given up.
tl::unexpected<source_error> pg_link::fail(source_error::kind k, const std::string& detail) {
    conn_.reset();
    return tl::unexpected<source_error>{source_error{k, detail}};
}

sourced<void> pg_link::wait(short events, deadline until, const char* doing) {
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            until - std::chrono::steady_clock::now());
        if (left.count() <= 0) return fail(kind::timed_out, std::string{doing} + " took too long");
        pollfd p{PQsocket(conn_.get()), events, 0};
        constexpr int slice = 60'000;  // poll counts in int
        const int ms = static_cast<int>(std::min<std::int64_t>(left.count() + 1, slice));
        const int n = poll(&p, 1, ms);
        if (n > 0) return {};
        if (n < 0 && errno != EINTR) return fail(kind::unreachable, "poll failed");
    }
}

sourced<void> pg_link::connect(deadline until) {
    if (conn_) return {};
    const auto address = resolve(target_.host, until);
    if (!address) return tl::unexpected<source_error>{address.error()};
    const bool is_folder = !address->empty() && (*address)[0] == '/';
    const auto port = std::to_string(target_.port);
    const std::array keys{"host",
                          "hostaddr",
                          "port",
                          "user",
                          "dbname",
                          "password",
                          "sslmode",
                          "gssencmode",
                          "application_name",
                          static_cast<const char*>(nullptr)};
    const std::array values{target_.host.c_str(),
                            is_folder ? nullptr : address->c_str(),
                            port.c_str(),
                            target_.user.c_str(),
                            target_.database.c_str(),
                            target_.password.empty() ? nullptr : target_.password.c_str(),
                            tls_ == encryption::never ? "disable" : "prefer",
                            "disable",
                            "hotlane",
                            static_cast<const char*>(nullptr)};
    conn_.reset(PQconnectStartParams(keys.data(), values.data(), 0));
    if (!conn_ || PQstatus(conn_.get()) == CONNECTION_BAD) return fail(kind::unreachable, said());
    // The documented loop: wait as if it had just asked to write, then do what it asks.
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    while (state != PGRES_POLLING_OK) {
        if (state == PGRES_POLLING_FAILED) return fail(kind::unreachable, said());
        const short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        if (auto ok = wait(events, until, "connecting"); !ok) return ok;
        state = PQconnectPoll(conn_.get());
    }
    if (PQsetnonblocking(conn_.get(), 1) != 0) return fail(kind::unreachable, said());
    // Notices are the server's small talk; libpq would print them to our standard error.
    PQsetNoticeProcessor(
        conn_.get(), [](void*, const char*) {}, nullptr);
    ++generation_;
    return {};
}

sourced<void> pg_link::flush(deadline until) {
    for (;;) {
        const int left = PQflush(conn_.get());
        if (left == 0) return {};
        if (left < 0) return fail(kind::unreachable, said());
        if (auto ok = wait(POLLIN | POLLOUT, until, "asking"); !ok) return ok;
        if (PQconsumeInput(conn_.get()) == 0) return fail(kind::unreachable, said());
    }
}

namespace {

struct cleaner {
    void operator()(PGresult* r) const noexcept { PQclear(r); }
};

void append_rows(const PGresult& result, std::vector<pg_row>& out) {
    const int columns = PQnfields(&result);
    for (int r = 0; r < PQntuples(&result) && out.size() <= reply_rows_max; ++r) {
        pg_row row;
        for (int c = 0; c < columns; ++c) {
            if (PQgetisnull(&result, r, c) != 0) {
                row.emplace_back();
            } else {
                row.emplace_back(std::string{PQgetvalue(&result, r, c),
                                             static_cast<std::size_t>(PQgetlength(&result, r, c))});
            }
        }
        out.push_back(std::move(row));
    }
}

std::vector<std::string> names_of(const PGresult& result) {
    std::vector<std::string> out;
    for (int c = 0; c < PQnfields(&result); ++c)
        out.emplace_back(PQfname(&result, c));
    return out;
}

}  // namespace

sourced<std::vector<pg_row>> pg_link::collect(deadline until, std::vector<std::string>* names) {
    std::vector<pg_row> rows;
    std::optional<source_error> trouble;
    for (;;) {
        while (PQisBusy(conn_.get()) != 0) {
            if (auto ok = wait(POLLIN, until, "the answer"); !ok) {
                return tl::unexpected<source_error>{ok.error()};
            }
            if (PQconsumeInput(conn_.get()) == 0) return fail(kind::unreachable, said());
        }
        const std::unique_ptr<PGresult, cleaner> result{PQgetResult(conn_.get())};
        if (!result) break;
        switch (PQresultStatus(result.get())) {
            case PGRES_TUPLES_OK:
            case PGRES_SINGLE_TUPLE:
                if (names != nullptr) *names = names_of(*result);
                append_rows(*result, rows);
                break;
            case PGRES_FATAL_ERROR:
                trouble = source_error{kind::refused, said()};
                break;
            case PGRES_EMPTY_QUERY:
            case PGRES_COMMAND_OK:
            case PGRES_COPY_OUT:
            case PGRES_COPY_IN:
            case PGRES_COPY_BOTH:
            case PGRES_BAD_RESPONSE:
            case PGRES_NONFATAL_ERROR:
            case PGRES_PIPELINE_SYNC:
            case PGRES_PIPELINE_ABORTED:
                return fail(kind::bad_reply, "no rows were answered");
        }
        if (rows.size() > reply_rows_max) return fail(kind::bad_reply, "too many rows");
    }
    if (PQstatus(conn_.get()) != CONNECTION_OK) return fail(kind::unreachable, said());
    if (trouble) return fail(trouble->what, trouble->detail);
    return rows;
}

sourced<std::vector<pg_row>> pg_link::query(const char* sql,
                                            deadline until,
                                            std::vector<std::string>* names) {
    // An idle link that the server closed looks alive until it is used; find out before asking, so
    // that a restart costs no reading.
    if (conn_ && (PQconsumeInput(conn_.get()) == 0 || PQstatus(conn_.get()) != CONNECTION_OK)) {
        conn_.reset();
    }
    if (auto ok = connect(until); !ok) return tl::unexpected<source_error>{ok.error()};
    if (PQsendQuery(conn_.get(), sql) == 0) return fail(kind::unreachable, said());
    // Row by row, so that a reply without end is noticed at reply_rows_max.
    PQsetSingleRowMode(conn_.get());
    if (auto ok = flush(until); !ok) return tl::unexpected<source_error>{ok.error()};
    return collect(until, names);
}

}  // namespace hotlane::metrics
