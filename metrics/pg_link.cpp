#include "metrics/pg_link.hpp"

#include <libpq-fe.h>
#include <poll.h>
#include <string_view>

#include "metrics/resolve.hpp"
#include "router/pq/open.hpp"

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
    return pq::said(conn_.get());
}

// Whatever failed, the connection may be in the middle of something: it is given up.
tl::unexpected<source_error> pg_link::fail(source_error::kind k, const std::string& detail) {
    conn_.reset();
    return tl::unexpected<source_error>{source_error{k, detail}};
}

sourced<void> pg_link::wait(short events, deadline until, const char* doing) {
    if (pq::wait_for(PQsocket(conn_.get()), events, until)) return {};
    return fail(kind::timed_out, std::string{doing} + " took too long");
}

namespace {

kind why(pq::open_error::kind of) noexcept {
    switch (of) {
        case pq::open_error::kind::unreachable:
            return kind::unreachable;
        case pq::open_error::kind::timed_out:
            return kind::timed_out;
        case pq::open_error::kind::clear_text:
            return kind::refused;
    }
    return kind::unreachable;
}

}  // namespace

sourced<void> pg_link::connect(deadline until) {
    if (conn_) return {};
    const auto address = resolve(target_.host, until);
    if (!address) return tl::unexpected<source_error>{address.error()};
    const bool is_folder = !address->empty() && (*address)[0] == '/';
    pq::settings with{{"host", target_.host},
                      {"port", std::to_string(target_.port)},
                      {"user", target_.user},
                      {"dbname", target_.database},
                      {"sslmode", tls_ == encryption::never ? "disable" : "prefer"},
                      {"application_name", "hotlane"}};
    if (!is_folder) with.emplace_back("hostaddr", *address);
    if (!target_.password.empty()) with.emplace_back("password", target_.password);
    auto opened = pq::open(with, pq::dbname::is_name, until);
    if (!opened) return fail(why(opened.error().why), opened.error().what);
    conn_.reset(opened->release());
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
