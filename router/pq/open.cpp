#include "router/pq/open.hpp"

#include <libpq-fe.h>
#include <poll.h>
#include <algorithm>
#include <cerrno>

#include "router/pq/guarded_login.hpp"

namespace hotlane::pq {
namespace {

constexpr std::size_t said_max = 500;

tl::unexpected<open_error> failed(const pg_conn* c) {
    return tl::unexpected(open_error{open_error::kind::unreachable, said(c)});
}

tl::expected<void, open_error> log_in(pg_conn* c, clock::time_point until) {
    guarded_login guard(c);
    // The documented loop: as if it had just asked to write.
    auto want = PGRES_POLLING_WRITING;
    while (want != PGRES_POLLING_OK) {
        if (want == PGRES_POLLING_FAILED || PQstatus(c) == CONNECTION_BAD) return failed(c);
        const bool reads = want == PGRES_POLLING_READING;
        if (auto ready = guard.before_step(reads, until); !ready) return ready;
        want = PQconnectPoll(c);
        if (auto went = guard.after_step(until); !went) {
            // Why libpq gave up says more than that the other side is gone.
            if (PQstatus(c) == CONNECTION_BAD) return failed(c);
            return went;
        }
    }
    return {};
}

}  // namespace

void finish::operator()(pg_conn* c) const noexcept {
    PQfinish(c);
}

bool wait_for(int socket, short events, clock::time_point until) {
    constexpr long slice_ms = 60'000;  // poll counts in int
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
        if (left.count() <= 0) return false;
        pollfd one{socket, events, 0};
        const int ready = ::poll(&one, 1, static_cast<int>(std::min<long>(left.count(), slice_ms)));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
}

std::string said(const pg_conn* c) {
    std::string text = c == nullptr ? "out of memory" : PQerrorMessage(c);
    if (text.size() > said_max) text.resize(said_max);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
        text.pop_back();
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

tl::expected<connection, open_error> open(const settings& with,
                                          dbname what,
                                          clock::time_point until) {
    std::vector<const char*> keys, values;
    for (const auto& [key, value] : with) {
        keys.push_back(key);
        values.push_back(value.c_str());
    }
    // A connection that Kerberos encrypts could not be guarded, and no home of ours asks for one.
    keys.push_back("gssencmode");
    values.push_back("disable");
    keys.push_back(nullptr);
    values.push_back(nullptr);
    connection c(
        PQconnectStartParams(keys.data(), values.data(), what == dbname::may_be_dsn ? 1 : 0));
    if (!c || PQstatus(c.get()) == CONNECTION_BAD) return failed(c.get());
    if (auto in = log_in(c.get(), until); !in) return tl::unexpected(std::move(in.error()));
    if (PQsetnonblocking(c.get(), 1) != 0) return failed(c.get());
    // Notices are the server's small talk; libpq would print them to our standard error.
    PQsetNoticeProcessor(
        c.get(), [](void*, const char*) {}, nullptr);
    return c;
}

}  // namespace hotlane::pq
