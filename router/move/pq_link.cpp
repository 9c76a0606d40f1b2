#include "router/move/pq_link.hpp"

#include <libpq-fe.h>
#include <poll.h>
#include <cstdlib>

#include "router/pq/open.hpp"

namespace hotlane::move {
namespace {

using clock = std::chrono::steady_clock;

struct clear {
    void operator()(PGresult* r) const noexcept { PQclear(r); }
};
using pq::connection;
using result = std::unique_ptr<PGresult, clear>;

std::string trimmed(const char* text) {
    std::string out = text ? text : "";
    while (!out.empty() && (out.back() == '\n' || out.back() == ' '))
        out.pop_back();
    return out;
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
            if (!pq::wait_for(PQsocket(c_.get()), POLLIN | POLLOUT, deadline))
                return die("the home took too long");
            if (PQconsumeInput(c_.get()) == 0) return die(trimmed(PQerrorMessage(c_.get())));
        }
    }

    // nullopt: the statement is over.
    answer<std::optional<PGresult*>> next_result() {
        while (PQisBusy(c_.get()) == 1) {
            if (!pq::wait_for(PQsocket(c_.get()), POLLIN, deadline_))
                return die("no reply in time");
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

}  // namespace

answer<std::unique_ptr<home_link>> open_pq_link(const placement::home& at,
                                                std::chrono::milliseconds limit,
                                                stepper& steps) {
    const bool engine = at.kind == policy::home_kind::engine;
    pq::settings with{{"host", at.at.host},
                      {"port", std::to_string(at.at.port)},
                      {"dbname", at.database},
                      {"user", at.user},
                      {"application_name", "hotlane move"},
                      {"client_encoding", "UTF8"},
                      {"sslmode", engine ? "disable" : "prefer"},
                      {"keepalives_idle", "10"},
                      // The engine knows no options; without the word libpq would take PGOPTIONS.
                      {"options", engine ? "" : no_timeouts}};
    if (!at.password.empty()) with.emplace_back("password", at.password);
    auto opened = pq::open(with, pq::dbname::is_name, clock::now() + limit);
    if (!opened) return tl::unexpected(link_error{"", opened.error().what, fate::refused});
    return std::make_unique<pq_link>(std::move(*opened), steps);
}

}  // namespace hotlane::move
