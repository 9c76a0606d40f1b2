#include "postgres.hpp"

#include <algorithm>

namespace sim {
namespace {

using namespace hotlane::move;

link_error refused(std::string state, std::string text) {
    return {std::move(state), std::move(text), fate::refused};
}
link_error gone() {
    return {"", "the connection broke", fate::unknown};
}

bool begins(const std::string& text, std::string_view with) {
    return text.compare(0, with.size(), with) == 0;
}
bool holds(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

// The texts between `quote`s, in order (the tests use no quotes inside names).
std::vector<std::string> quoted(const std::string& sql, char quote) {
    std::vector<std::string> out;
    for (std::size_t at = sql.find(quote); at != std::string::npos; at = sql.find(quote, at)) {
        const auto end = sql.find(quote, at + 1);
        out.push_back(sql.substr(at + 1, end - at - 1));
        at = end + 1;
    }
    return out;
}

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> out{""};
    for (const char c : text) {
        if (c == at)
            out.emplace_back();
        else
            out.back() += c;
    }
    return out;
}

class pg_link final : public home_link {
  public:
    pg_link(postgres& home, script& steps) : home_(home), steps_(steps) {}
    ~pg_link() override { home_.drop_lock(this); }

    answer<rows> exec(const std::string& sql, const std::vector<param>& params) override {
        if (dead_) return tl::unexpected(gone());
        steps_.before(sql);
        const fault f = steps_.meets();
        if (home_.down || f == fault::lost_never) return die();
        if ((f == fault::kill_late || f == fault::lost_late)) {
            // Only a COMMIT does anything once the connection has gone.
            if (sql == "COMMIT" && txn_)
                home_.late_commit_ = txn_->state;
            else
                home_.drop_lock(this);
            if (f == fault::kill_late) throw killed{};
            return die();
        }
        auto reply = obey(sql, params);
        if (f == fault::kill_done) throw killed{};
        if (f == fault::lost_done) return die();
        if (!reply && txn_) failed_ = true;
        return reply;
    }

    // A statement that says so is one that PostgreSQL does not understand.
    answer<description> describe(const std::string& sql,
                                 const std::vector<std::uint32_t>&) override {
        auto reply = exec("describe " + sql, {});
        if (!reply) return tl::unexpected(reply.error());
        return description{{}, {{"id", 20}}};
    }

    answer<std::uint64_t> read(const std::string& sql,
                               const std::function<bool(const row_view&)>& on_row) override {
        auto reply = exec(sql, {});
        if (!reply) return tl::unexpected(reply.error());
        for (const auto& r : reply->data) {
            row_view view;
            for (const auto& c : r)
                view.push_back(c ? std::optional<std::string_view>(*c) : std::nullopt);
            if (!on_row(view)) {
                static_cast<void>(die());
                break;
            }
        }
        return reply->data.size();
    }

    answer<void> copy_begin(const std::string& sql) override {
        auto reply = exec(sql, {});
        if (!reply) return tl::unexpected(reply.error());
        const auto names = quoted(sql, '"');
        copy_schema_ = names[0];
        copy_table_ = names[1];
        copied_.clear();
        return {};
    }
    answer<void> copy_put(std::string_view chunk) override {
        auto reply = exec("copy data", {});
        if (!reply) return tl::unexpected(reply.error());
        copied_ += chunk;
        return {};
    }
    answer<std::uint64_t> copy_end() override {
        auto reply = exec("copy end", {});
        if (!reply) return tl::unexpected(reply.error());
        auto& t = state().schemas[copy_schema_][copy_table_];
        for (const auto& line : split(copied_, '\n')) {
            if (line.empty()) continue;
            row r;
            for (const auto& v : split(line, '\t'))
                r.push_back(v == "\\N" ? cell() : cell(v));
            t.rows.push_back(std::move(r));
        }
        return t.rows.size();
    }
    void set_deadline(std::chrono::milliseconds) override {}
    [[nodiscard]] bool alive() const override { return !dead_; }

  private:
    pg_state& state() { return txn_ ? txn_->state : home_.state_; }

    answer<rows> die() {
        dead_ = true;
        home_.drop_lock(this);
        return tl::unexpected(gone());
    }

    // The row lock: a live holder makes the caller time out.
    bool lock() {
        if (txn_ && txn_->locked) return true;
        if (!home_.take_lock(this)) return false;
        if (txn_) {
            txn_->state = home_.state_;
            txn_->locked = true;
        }
        return true;
    }

    answer<rows> obey(const std::string& sql, const std::vector<param>& params) {
        if (begins(sql, "BEGIN")) {
            txn_ = postgres::transaction{home_.state_, false};
            failed_ = false;
            return rows{};
        }
        if (sql == "ROLLBACK" || sql == "COMMIT") {
            if (sql == "COMMIT" && txn_ && !failed_) home_.state_ = txn_->state;
            txn_.reset();
            home_.drop_lock(this);
            return rows{};
        }
        if (begins(sql, "ROLLBACK TO")) {
            failed_ = false;
            return rows{};
        }
        if (failed_ && txn_) return tl::unexpected(refused("25P02", "transaction is aborted"));
        if (holds(sql, "hotlane.hotlane_home")) return marker(sql, params);
        if (begins(sql, "describe") && holds(sql, "engine_only"))
            return tl::unexpected(refused("42883", "function engine_only() does not exist"));
        return define(sql);
    }

    answer<rows> marker(const std::string& sql, const std::vector<param>& params) {
        // A transaction that makes the marker has its row from then on.
        if (txn_ && (begins(sql, "CREATE SCHEMA") || begins(sql, "INSERT")) && !lock())
            return tl::unexpected(refused("55P03", "lock timeout"));
        if (begins(sql, "CREATE SCHEMA")) {
            state().has_marker = true;
            return rows{};
        }
        if (begins(sql, "SELECT")) {
            if (!state().has_marker) return tl::unexpected(refused("42P01", "no marker"));
            if (holds(sql, "FOR UPDATE")) {
                if (!lock()) return tl::unexpected(refused("55P03", "lock timeout"));
                if (!txn_) home_.drop_lock(this);
            }
            rows out;
            const auto& m = state().marker;
            if (m) out.data.push_back({(*m)[0], (*m)[1], (*m)[2], (*m)[3]});
            return out;
        }
        if (begins(sql, "INSERT")) {
            if (!state().marker) state().marker = {"", *params[1].value, "away", "{}"};
            return rows{};
        }
        if (!lock()) return tl::unexpected(refused("55P03", "lock timeout"));
        auto& m = state().marker;
        rows out;
        if (m && (*m)[2] == *params[6].value && (*m)[0] == *params[7].value &&
            (*m)[1] == *params[8].value) {
            m = {*params[1].value, *params[2].value, *params[0].value, *params[4].value};
            out.affected = 1;
        }
        return out;
    }

    answer<rows> define(const std::string& sql) {
        const auto names = quoted(sql, '"');
        auto& schemas = state().schemas;
        if (begins(sql, "CREATE SCHEMA")) {
            if (!schemas.try_emplace(names[0]).second)
                return tl::unexpected(refused("42P06", "schema exists"));
        } else if (begins(sql, "CREATE TABLE")) {
            auto& t = schemas.at(names[0])[names[1]];
            for (const char* c : {"id", "v"})
                if (holds(sql, std::string("\"") + c + "\" ")) t.columns.emplace_back(c);
        } else if (begins(sql, "ALTER TABLE") && holds(sql, " SET SCHEMA ")) {
            return set_schema(names);
        } else if (begins(sql, "TRUNCATE")) {
            schemas.at(names[0]).at(names[1]).rows.clear();
        } else if (begins(sql, "DROP SCHEMA")) {
            schemas.erase(names[0]);
        } else if (begins(sql, "/* hotlane: drop fence views */")) {
            auto& in = schemas[quoted(sql, '\'')[0]];
            std::erase_if(in, [](const auto& t) { return t.second.raises; });
        } else if (begins(sql, "/* hotlane: fence */")) {
            fence(quoted(sql, '\''));
        } else if (begins(sql, "/* hotlane: unfence */")) {
            unfence(quoted(sql, '\''));
        } else if (begins(sql, "/* hotlane: tables */")) {
            rows out;
            for (const auto& [name, t] : schemas[quoted(sql, '\'')[0]])
                if (!t.raises) out.data.push_back({cell(name)});
            return out;
        } else if (begins(sql, "/* hotlane: shape */")) {
            return rows{{{cell("shape")}}, 0};
        } else if (begins(sql, "SELECT \"")) {
            const auto n = names.size();
            rows out;
            out.data = schemas.at(names[n - 2]).at(names[n - 1]).rows;
            return out;
        }
        return rows{};  // GRANT, LOCK, setval, fence functions, COPY: nothing to simulate
    }

    answer<rows> set_schema(const std::vector<std::string>& names) {
        auto& schemas = state().schemas;
        auto node = schemas.at(names[0]).extract(names[1]);
        if (schemas[names[2]].contains(names[1]))
            return tl::unexpected(refused("42P07", "relation exists"));
        schemas[names[2]].insert(std::move(node));
        return rows{};
    }

    void fence(const std::vector<std::string>& texts) {
        auto& from = state().schemas[texts[0]];
        auto& to = state().schemas[texts[1]];
        for (auto& [name, t] : from) {
            if (t.raises) continue;
            pg_table moved = t;
            moved.fenced = true;
            to[name] = std::move(moved);
            t = pg_table{};
            t.raises = true;
        }
    }

    void unfence(const std::vector<std::string>& texts) {
        auto& to = state().schemas[texts[0]];
        for (auto& [name, t] : state().schemas[texts[1]]) {
            pg_table back = t;
            back.fenced = false;
            to[name] = std::move(back);
        }
        state().schemas.erase(texts[1]);
    }

    postgres& home_;
    script& steps_;
    std::optional<postgres::transaction> txn_;
    bool failed_{false}, dead_{false};
    std::string copy_schema_, copy_table_, copied_;
};

}  // namespace

bool postgres::take_lock(const void* link) {
    flush_late();  // whoever waits for the row sees what the late COMMIT did
    if (holder_ && holder_ != link) return false;
    holder_ = link;
    return true;
}

void postgres::drop_lock(const void* link) {
    if (holder_ == link) holder_ = nullptr;
}

void postgres::flush_late() {
    if (!late_commit_) return;
    state_ = *late_commit_;
    late_commit_.reset();
}

bool postgres::accepts_insert(const std::string& table, const std::string& key) {
    if (down || holder_ || late_commit_) return false;
    const auto at = state_.schemas["public"].find(table);
    if (at == state_.schemas["public"].end() || at->second.raises || at->second.fenced)
        return false;
    at->second.rows.push_back({cell(key), cell("x")});
    return true;
}

std::vector<std::string> postgres::keys(const std::string& table) const {
    std::vector<std::string> out;
    const auto schema = state_.schemas.find("public");
    const auto at = schema->second.find(table);
    if (at != schema->second.end())
        for (const auto& r : at->second.rows)
            out.push_back(r[0].value_or("NULL"));
    return out;
}

std::unique_ptr<home_link> postgres::connect(script& steps) {
    return std::make_unique<pg_link>(*this, steps);
}

}  // namespace sim
