#include "engine.hpp"

#include <cstdlib>
#include <stdexcept>

namespace sim {
namespace {

using namespace hotlane::move;

link_error refused(std::string text) {
    return {"42601", std::move(text), fate::refused};
}
link_error gone() {
    return {"", "the connection broke", fate::unknown};
}

void bind(sqlite3_stmt* s, int at, const param& p) {
    if (!p.value) {
        sqlite3_bind_null(s, at);
        return;
    }
    const auto size = static_cast<int>(p.value->size());
    switch (p.type) {
        case param_type::int8:
            sqlite3_bind_int64(s, at, std::strtoll(p.value->c_str(), nullptr, 10));
            break;
        case param_type::float8:
            sqlite3_bind_double(s, at, std::strtod(p.value->c_str(), nullptr));
            break;
        case param_type::text:
            sqlite3_bind_text(s, at, p.value->data(), size, SQLITE_TRANSIENT);
            break;
        case param_type::bytea:
            sqlite3_bind_blob(s, at, p.value->data(), size, SQLITE_TRANSIENT);
            break;
    }
}

class engine_link final : public home_link {
  public:
    engine_link(engine& home, script& steps) : home_(home), steps_(steps) {}

    answer<rows> exec(const std::string& sql, const std::vector<param>& params) override {
        if (dead_) return tl::unexpected(gone());
        steps_.before(sql);
        const fault f = steps_.meets();
        if (home_.down || f == fault::lost_never) return die();
        home_.pass_time();
        if (f == fault::kill_late || f == fault::lost_late) {
            home_.put_late(sql, params);
            if (f == fault::kill_late) throw killed{};
            return die();
        }
        auto reply = home_.exec(sql, params);
        if (f == fault::kill_done) throw killed{};
        if (f == fault::lost_done) return die();
        return reply;
    }

    answer<description> describe(const std::string& sql,
                                 const std::vector<std::uint32_t>&) override {
        auto reply = exec("EXPLAIN " + sql, {});
        if (!reply) return tl::unexpected(reply.error());
        return description{{}, {{"id", 25}}};
    }

    answer<std::uint64_t> read(const std::string& sql,
                               const std::function<bool(const row_view&)>& on_row) override {
        auto reply = exec(sql, {});
        if (!reply) return tl::unexpected(reply.error());
        std::uint64_t count = 0;
        for (const auto& r : reply->data) {
            row_view view;
            for (const auto& c : r)
                view.push_back(c ? std::optional<std::string_view>(*c) : std::nullopt);
            ++count;
            if (!on_row(view)) {
                dead_ = true;
                break;
            }
        }
        return count;
    }

    answer<void> copy_begin(const std::string&) override {
        return tl::unexpected(refused("no COPY"));
    }
    answer<void> copy_put(std::string_view) override { return tl::unexpected(refused("no COPY")); }
    answer<std::uint64_t> copy_end() override { return tl::unexpected(refused("no COPY")); }
    void set_deadline(std::chrono::milliseconds) override {}
    [[nodiscard]] bool alive() const override { return !dead_; }

  private:
    answer<rows> die() {
        dead_ = true;
        return tl::unexpected(gone());
    }
    engine& home_;
    script& steps_;
    bool dead_{false};
};

}  // namespace

engine::engine() {
    if (sqlite3_open(":memory:", &db_) != SQLITE_OK) throw std::runtime_error("sqlite");
    sqlite3_db_config(db_, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
}
engine::~engine() {
    sqlite3_close(db_);
}

engine::answer engine::exec(const std::string& sql, const std::vector<param>& params) {
    if (sql == "SHOW twill.stats")
        return rows{{{cell("twill_commit_total"), cell(std::to_string(commits_))},
                     {cell("twill_committed_lsn"), cell(std::to_string(lsn_))}},
                    0};
    if (sql == "SHOW twill.catalog") return catalog();
    const int changes = sqlite3_total_changes(db_);
    sqlite3_stmt* s = nullptr;
    if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &s, nullptr) != SQLITE_OK)
        return tl::unexpected(refused(sqlite3_errmsg(db_)));
    for (std::size_t i = 0; i < params.size(); ++i)
        bind(s, static_cast<int>(i) + 1, params[i]);
    rows out;
    int code = 0;
    while ((code = sqlite3_step(s)) == SQLITE_ROW) {
        row r;
        for (int c = 0; c < sqlite3_column_count(s); ++c) {
            const auto* text = sqlite3_column_text(s, c);
            r.push_back(text ? cell(reinterpret_cast<const char*>(text)) : cell());
        }
        out.data.push_back(std::move(r));
    }
    const bool ddl = sqlite3_stmt_readonly(s) == 0 && sqlite3_total_changes(db_) == changes &&
                     sql.substr(0, 6) != "DELETE" && sql.substr(0, 6) != "UPDATE";
    sqlite3_finalize(s);
    if (code != SQLITE_DONE) return tl::unexpected(refused(sqlite3_errmsg(db_)));
    out.affected = static_cast<std::uint64_t>(sqlite3_total_changes(db_) - changes);
    if (ddl || out.affected > 0) ++lsn_;
    if (out.affected > 0) ++commits_;
    return out;
}

engine::answer engine::catalog() {
    rows out;
    for (const auto& name :
         column("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT "
                "LIKE 'sqlite_%' ORDER BY name")) {
        auto info = exec("SELECT name, lower(type), \"notnull\", pk > 0 FROM pragma_table_info('" +
                             name + "') ORDER BY cid",
                         {});
        for (const auto& r : info->data)
            out.data.push_back({name, r[0], r[1], r[2], r[3], cell("0"), cell()});
    }
    return out;
}

bool engine::accepts(const std::string& sql) {
    return !down && exec(sql, {}).has_value();
}

std::vector<std::string> engine::column(const std::string& sql) {
    std::vector<std::string> out;
    auto reply = exec(sql, {});
    if (reply)
        for (const auto& r : reply->data)
            out.push_back(r[0].value_or("NULL"));
    return out;
}

void engine::put_late(std::string sql, std::vector<param> params) {
    late_.push_back({std::move(sql), std::move(params), late_after});
}

void engine::pass_time() {
    for (std::size_t i = 0; i < late_.size();) {
        if (late_[i].wait > 0 && --late_[i].wait == 0) {
            const late due = late_[i];
            late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(i));
            static_cast<void>(exec(due.sql, due.params));
        } else {
            ++i;
        }
    }
}

void engine::flush_late() {
    while (!late_.empty()) {
        const late due = late_.front();
        late_.pop_front();
        static_cast<void>(exec(due.sql, due.params));
    }
}

std::unique_ptr<home_link> engine::connect(script& steps) {
    return std::make_unique<engine_link>(*this, steps);
}

}  // namespace sim
