#include "router/move/pq_link.hpp"

#include <libpq-fe.h>
#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cstdlib>

namespace hotlane::move {
namespace {

using clock = std::chrono::steady_clock;

struct finish {
    void operator()(PGconn* c) const noexcept { PQfinish(c); }
};
struct clear {
    void operator()(PGresult* r) const noexcept { PQclear(r); }
};
using connection = std::unique_ptr<PGconn, finish>;
using result = std::unique_ptr<PGresult, clear>;

std::string trimmed(const char* text) {
    std::string out = text ? text : "";
    while (!out.empty() && (out.back() == '\n' || out.back() == ' '))
        out.pop_back();
    return out;
}

// Waits until the socket can do what `events` says. False: the deadline passed.
bool wait_for(PGconn* c, short events, clock::time_point deadline) {
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
        if (left.count() <= 0) return false;
        pollfd one{PQsocket(c), events, 0};
        const int ready = ::poll(&one, 1, static_cast<int>(std::min<long>(left.count(), 60'000)));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
}

link_error lost(std::string message) {
    return {"", std::move(message), fate::unknown};
}

link_error refused_by(const PGresult* r) {
    const char* state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char* text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    link_error out{
        state ? state : "", text ? text : trimmed(PQresultErrorMessage(r)), fate::refused};
    if (const char* hint = PQresultErrorField(r, PG_DIAG_MESSAGE_HINT))
        out.message += std::string(" (") + hint + ")";
    // The engine's own "may have been stored" answers, and a home that is going down.
    if (out.message.rfind("fenced", 0) == 0 || out.message.rfind("durability", 0) == 0 ||
        out.sqlstate.rfind("57P0", 0) == 0 || out.sqlstate.rfind("08", 0) == 0)
        out.what = fate::unknown;
    return out;
}

class pq_link final : public home_link {
  public:
    pq_link(connection c, stepper& steps) : c_(std::move(c)), steps_(steps) {}

    answer<rows> exec(const std::string& sql, const std::vector<param>& params) override {
        if (auto sent = send(sql, params); !sent) return tl::unexpected(sent.error());
        rows out;
        std::optional<link_error> error;
        for (;;) {
            auto next = next_result();
            if (!next) return tl::unexpected(next.error());
            if (!*next) break;
            take(**next, out, error);
            if (PQstatus(c_.get()) == CONNECTION_BAD) return die("the connection broke");
        }
        if (error) return tl::unexpected(fail(std::move(*error)));
        return out;
    }

    // The text may hold values of the application, so the steps do not name it.
    answer<description> describe(const std::string& sql,
                                 const std::vector<std::uint32_t>& types) override {
        if (!c_) return tl::unexpected(lost("the link is closed"));
        const std::vector<Oid> oids(types.begin(), types.end());
        const auto prepared = ask("prepare a statement of the tool", [&] {
            return PQsendPrepare(
                c_.get(), "", sql.c_str(), static_cast<int>(oids.size()), oids.data());
        });
        if (!prepared) return tl::unexpected(prepared.error());
        const auto told = ask("describe a statement of the tool",
                              [&] { return PQsendDescribePrepared(c_.get(), ""); });
        if (!told) return tl::unexpected(told.error());
        description out;
        const PGresult* r = told->get();
        for (int i = 0; i < PQnparams(r); ++i)
            out.parameters.push_back(PQparamtype(r, i));
        for (int i = 0; i < PQnfields(r); ++i)
            out.columns.push_back({PQfname(r, i), PQftype(r, i)});
        return out;
    }

    answer<std::uint64_t> read(const std::string& sql,
                               const std::function<bool(const row_view&)>& on_row) override {
        if (auto sent = send(sql, {}); !sent) return tl::unexpected(sent.error());
        PQsetSingleRowMode(c_.get());
        std::uint64_t count = 0;
        row_view view;
        for (;;) {
            auto next = next_result();
            if (!next) return tl::unexpected(next.error());
            if (!*next) return count;
            const PGresult* r = **next;
            const result owner(**next);
            const auto status = PQresultStatus(r);
            if (status == PGRES_FATAL_ERROR) {
                const auto error = refused_by(r);
                c_.reset();
                return tl::unexpected(error);
            }
            for (int i = 0; i < PQntuples(r); ++i) {
                fill(r, i, view);
                ++count;
                if (!on_row(view)) {
                    c_.reset();
                    return count;
                }
            }
        }
    }

    answer<void> copy_begin(const std::string& sql) override {
        if (auto sent = send(sql, {}); !sent) return sent;
        auto next = next_result();
        if (!next) return tl::unexpected(next.error());
        const result owner(*next ? **next : nullptr);
        if (PQresultStatus(owner.get()) == PGRES_COPY_IN) return {};
        const auto error = refused_by(owner.get());
        c_.reset();
        return tl::unexpected(error);
    }

    answer<void> copy_put(std::string_view chunk) override {
        if (!c_) return tl::unexpected(lost("the link is closed"));
        steps_.before("copy data");
        const auto deadline = clock::now() + limit_;
        for (;;) {
            const int put = PQputCopyData(c_.get(), chunk.data(), static_cast<int>(chunk.size()));
            if (put == 1) break;
            if (put < 0) return die(trimmed(PQerrorMessage(c_.get())));
            if (auto flushed = flush(deadline); !flushed) return flushed;
        }
        if (auto flushed = flush(deadline); !flushed) return flushed;
        steps_.sent("copy data");
        return {};
    }

    answer<std::uint64_t> copy_end() override {
        if (!c_) return tl::unexpected(lost("the link is closed"));
        steps_.before("copy end");
        const auto deadline = clock::now() + limit_;
        if (PQputCopyEnd(c_.get(), nullptr) < 0) return die(trimmed(PQerrorMessage(c_.get())));
        if (auto flushed = flush(deadline); !flushed) return tl::unexpected(flushed.error());
        steps_.sent("copy end");
        deadline_ = deadline;
        rows out;
        std::optional<link_error> error;
        for (;;) {
            auto next = next_result();
            if (!next) return tl::unexpected(next.error());
            if (!*next) break;
            take(**next, out, error);
        }
        if (error) return tl::unexpected(fail(std::move(*error)));
        return out.affected;
    }

    void set_deadline(std::chrono::milliseconds per_statement) override { limit_ = per_statement; }
    [[nodiscard]] bool alive() const override { return c_ != nullptr; }

  private:
    tl::unexpected<link_error> die(std::string message) {
        c_.reset();
        return tl::unexpected(lost(std::move(message)));
    }

    link_error fail(link_error error) {
        if (error.what == fate::unknown) c_.reset();
        return error;
    }

    answer<void> send(const std::string& sql, const std::vector<param>& params) {
        if (!c_) return tl::unexpected(lost("the link is closed"));
        steps_.before(sql);
        deadline_ = clock::now() + limit_;
        if (!send_now(sql, params)) return die(trimmed(PQerrorMessage(c_.get())));
        if (auto flushed = flush(deadline_); !flushed) return flushed;
        steps_.sent(sql);
        return {};
    }

    // One message of the extended protocol with its one result.
    template <typename Send>
    answer<result> ask(std::string_view what, Send send_it) {
        steps_.before(what);
        deadline_ = clock::now() + limit_;
        if (send_it() != 1) return die(trimmed(PQerrorMessage(c_.get())));
        if (auto flushed = flush(deadline_); !flushed) return tl::unexpected(flushed.error());
        steps_.sent(what);
        result last;
        for (;;) {
            auto next = next_result();
            if (!next) return tl::unexpected(next.error());
            if (!*next) break;
            last.reset(**next);
        }
        if (!last) return die("no reply");
        if (PQresultStatus(last.get()) == PGRES_FATAL_ERROR)
            return tl::unexpected(fail(refused_by(last.get())));
        return last;
    }

    bool send_now(const std::string& sql, const std::vector<param>& params) {
        if (params.empty()) return PQsendQuery(c_.get(), sql.c_str()) == 1;
        std::vector<Oid> types;
        std::vector<const char*> values;
        std::vector<int> lengths, formats;
        for (const auto& p : params) {
            types.push_back(static_cast<Oid>(p.type));
            values.push_back(p.value ? p.value->c_str() : nullptr);
            lengths.push_back(p.value ? static_cast<int>(p.value->size()) : 0);
            formats.push_back(p.type == param_type::bytea ? 1 : 0);
        }
        return PQsendQueryParams(c_.get(),
                                 sql.c_str(),
                                 static_cast<int>(params.size()),
                                 types.data(),
                                 values.data(),
                                 lengths.data(),
                                 formats.data(),
                                 0) == 1;
    }

    answer<void> flush(clock::time_point deadline) {
        for (;;) {
            const int left = PQflush(c_.get());
            if (left == 0) return {};
            if (left < 0) return die(trimmed(PQerrorMessage(c_.get())));
            if (!wait_for(c_.get(), POLLIN | POLLOUT, deadline))
                return die("the home took too long");
            if (PQconsumeInput(c_.get()) == 0) return die(trimmed(PQerrorMessage(c_.get())));
        }
    }

    // nullopt: the statement is over.
    answer<std::optional<PGresult*>> next_result() {
        while (PQisBusy(c_.get()) == 1) {
            if (!wait_for(c_.get(), POLLIN, deadline_)) return die("no reply in time");
            if (PQconsumeInput(c_.get()) == 0) return die(trimmed(PQerrorMessage(c_.get())));
        }
        PGresult* r = PQgetResult(c_.get());
        if (!r) return std::optional<PGresult*>{};
        if (PQresultStatus(r) == PGRES_FATAL_ERROR && PQstatus(c_.get()) == CONNECTION_BAD) {
            const result owner(r);
            return die(trimmed(PQresultErrorMessage(r)));
        }
        return std::optional<PGresult*>{r};
    }

    static void fill(const PGresult* r, int line, row_view& view) {
        view.resize(static_cast<std::size_t>(PQnfields(r)));
        for (int f = 0; f < PQnfields(r); ++f) {
            auto& into = view[static_cast<std::size_t>(f)];
            into.reset();
            if (PQgetisnull(r, line, f) == 0)
                into.emplace(PQgetvalue(r, line, f),
                             static_cast<std::size_t>(PQgetlength(r, line, f)));
        }
    }

    static void take(PGresult* r, rows& out, std::optional<link_error>& error) {
        const result owner(r);
        if (PQresultStatus(r) == PGRES_FATAL_ERROR) {
            if (!error) error = refused_by(r);
            return;
        }
        row_view view;
        for (int i = 0; i < PQntuples(r); ++i) {
            fill(r, i, view);
            row copy;
            for (const auto& v : view)
                copy.push_back(v ? cell(std::string(*v)) : cell());
            out.data.push_back(std::move(copy));
        }
        out.affected = std::strtoull(PQcmdTuples(r), nullptr, 10);
    }

    connection c_;
    stepper& steps_;
    std::chrono::milliseconds limit_{10'000};
    clock::time_point deadline_{};
};

// A move keeps time by itself: what the role, the database or the server say of long statements and
// idle sessions is meant for applications, and would break it off at a random place.
constexpr const char* no_timeouts =
    "-c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0";

// libpq 15 gives its password to whoever asks for it in clear text, so the request is looked at
// before libpq reads it. Over TLS it may go: that the configuration allows by using TLS.
bool asks_in_clear_text(PGconn* c) {
    constexpr int clear_text = 3;
    if (PQstatus(c) != CONNECTION_AWAITING_RESPONSE || PQsslInUse(c) != 0) return false;
    std::array<unsigned char, 9> head{};
    const auto got = ::recv(PQsocket(c), head.data(), head.size(), MSG_PEEK | MSG_DONTWAIT);
    return got == static_cast<ssize_t>(head.size()) && head[0] == 'R' && head[5] == 0 &&
           head[6] == 0 && head[7] == 0 && head[8] == clear_text;
}

answer<void> finish_connecting(PGconn* c, clock::time_point deadline) {
    auto want = PGRES_POLLING_WRITING;
    while (want != PGRES_POLLING_OK) {
        if (want == PGRES_POLLING_FAILED || PQstatus(c) == CONNECTION_BAD)
            return tl::unexpected(link_error{"", trimmed(PQerrorMessage(c)), fate::refused});
        if (!wait_for(c, want == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline))
            return tl::unexpected(link_error{"", "connecting took too long", fate::refused});
        if (want == PGRES_POLLING_READING && asks_in_clear_text(c))
            return tl::unexpected(
                link_error{"",
                           "the server asks for the password in clear text over a connection "
                           "without TLS; use scram-sha-256 in its pg_hba.conf",
                           fate::refused});
        want = PQconnectPoll(c);
    }
    return {};
}

}  // namespace

answer<std::unique_ptr<home_link>> open_pq_link(const placement::home& at,
                                                std::chrono::milliseconds limit,
                                                stepper& steps) {
    const std::string port = std::to_string(at.at.port);
    const bool engine = at.kind == policy::home_kind::engine;
    std::vector<const char*> keys, values;
    const auto set = [&](const char* key, const char* value) {
        keys.push_back(key);
        values.push_back(value);
    };
    set("host", at.at.host.c_str());
    set("port", port.c_str());
    set("dbname", at.database.c_str());
    set("user", at.user.c_str());
    if (!at.password.empty()) set("password", at.password.c_str());
    set("application_name", "hotlane move");
    set("client_encoding", "UTF8");
    set("gssencmode", "disable");
    set("sslmode", engine ? "disable" : "prefer");
    set("keepalives_idle", "10");
    // The engine knows no options; without the word libpq would take PGOPTIONS.
    set("options", engine ? "" : no_timeouts);
    keys.push_back(nullptr);
    values.push_back(nullptr);

    const auto deadline = clock::now() + limit;
    connection c(PQconnectStartParams(keys.data(), values.data(), 0));
    if (!c) return tl::unexpected(link_error{"", "out of memory", fate::refused});
    if (auto connected = finish_connecting(c.get(), deadline); !connected)
        return tl::unexpected(connected.error());
    PQsetnonblocking(c.get(), 1);
    PQsetNoticeProcessor(
        c.get(), [](void*, const char*) {}, nullptr);
    return std::make_unique<pq_link>(std::move(c), steps);
}

}  // namespace hotlane::move
