// A small home that answers as PostgreSQL does: transactions, the extended protocol with its
// skipping up to Sync, COPY, parameters. The same bytes always get the same answers, so that a
// client's view through a session can be compared with its view of the home itself.
#pragma once

#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/session/script.hpp"

namespace hotlane::session::testing {

// What survives connections: the rows, and whether writes are allowed here.
struct model_store {
    std::vector<int> rows;
    std::function<void(int)> on_commit;  // each row that becomes durable
};

class model_home {
  public:
    explicit model_home(model_store& store, std::uint32_t process_id = 77)
        : store_(store), process_id_(process_id) {}

    std::string out;
    bool closed{false};

    void feed(std::string_view bytes) {
        in_.append(bytes);
        std::size_t at = 0;
        while (!closed) {
            const auto rest = std::string_view(in_).substr(at);
            if (!started_) {
                const auto first = wire::scan_startup(rest);
                if (first.status != wire::scan_status::complete) break;
                started_ = true;
                at += 4 + first.body.size();
                out += b::auth(0) + b::status("server_version", "15.0") +
                       b::key(process_id_, "true") + b::ready();
                continue;
            }
            const auto frame = wire::scan_frame(rest);
            if (frame.status != wire::scan_status::complete) break;
            take(frame.header.tag, frame.body);
            at += frame.header.total_size();
        }
        in_.erase(0, at);
    }

  private:
    struct failure {
        std::string sqlstate, message;
    };
    using result = std::optional<failure>;
    struct cursor {
        std::string sql;
        int runs{0};
    };

    void take(char tag, std::string_view body) {
        if (tag == 'X') {
            closed = true;
        } else if (copying_) {
            take_copy(tag, body);
        } else if (skipping_ && tag != 'S') {
            return;
        } else if (tag == 'Q') {
            statements_.erase("");
            portals_.erase("");
            pending_.clear();
            for (auto rest = wire::decode_query(body).value(); !rest.empty();) {
                const auto end = std::min(rest.find(';'), rest.size());
                const auto one = trimmed(rest.substr(0, end));
                if (!one.empty()) pending_.emplace_back(one);
                rest.remove_prefix(std::min(end + 1, rest.size()));
            }
            if (pending_.empty()) {
                out += b::bytes('I');
                finish();
            } else {
                go_on();
            }
        } else if (tag == 'F') {
            fail({"0A000", "no functions"});
            finish();
        } else if (tag == 'S') {
            skipping_ = false;
            finish();
        } else if (tag != 'H' && tag != 'd' && tag != 'c' && tag != 'f') {
            if (const auto bad = extended(tag, body)) {
                fail(*bad);
                skipping_ = true;
            }
        }
    }

    // The statements of a simple query that are left; stops where a COPY waits for data.
    void go_on() {
        while (!pending_.empty()) {
            const auto sql = pending_.front();
            pending_.erase(pending_.begin());
            if (const auto bad = run(sql, true)) {
                fail(*bad);
                pending_.clear();
            }
            if (copying_) return;
        }
        finish();
    }

    void finish() {  // of a query or a Sync
        if (!block_) commit_work();
        if (!block_) portals_.clear();
        out += b::ready(!block_ ? 'I' : failed_ ? 'E' : 'T');
    }

    void fail(const failure& what) {
        wire::error_fields fields{.severity = "ERROR",
                                  .severity_raw = "ERROR",
                                  .sqlstate = what.sqlstate,
                                  .message = what.message,
                                  .detail = {},
                                  .hint = {},
                                  .others = {}};
        // Where PostgreSQL 15 says that it was.
        if (what.sqlstate == "42P05")
            fields.others = {{'F', "prepare.c"}, {'L', "412"}, {'R', "StorePreparedStatement"}};
        if (what.sqlstate == "26000")
            fields.others = {{'F', "prepare.c"}, {'L', "451"}, {'R', "FetchPreparedStatement"}};
        wire::append_error(out, fields);
        if (block_)
            failed_ = true;
        else
            abort_work();
    }

    void take_copy(char tag, std::string_view body) {
        if (tag == 'S' || tag == 'H') return;
        result bad;
        if (tag == 'd' && body != "bad") {
            copied_.push_back(std::atoi(std::string(body).c_str()));
            return;
        }
        copying_ = false;
        if (tag == 'c') {
            work_.insert(work_.end(), copied_.begin(), copied_.end());
            out += b::complete("COPY " + std::to_string(copied_.size()));
        } else {
            bad = failure{"57014", "COPY failed"};
        }
        if (bad) {
            fail(*bad);
            pending_.clear();
            skipping_ = extended_copy_;
        }
        if (!extended_copy_) go_on();
    }

    result extended(char tag, std::string_view body) {
        if (tag == 'P') {
            const auto message = wire::decode_parse(body).value();
            if (message.statement.empty()) statements_.erase("");
            if (message.query.starts_with("bad")) return failure{"42601", "syntax"};
            if (failed_ && !message.query.empty() && !leaves(message.query))
                return failure{"25P02", "aborted"};
            const std::string name(message.statement);
            if (statements_.contains(name))
                return failure{"42P05", "prepared statement \"" + name + "\" already exists"};
            statements_[name] = message.query;
            out += b::parsed();
        } else if (tag == 'B') {
            const auto head = wire::decode_bind_head(body).value();
            const auto found = statements_.find(std::string(head.statement));
            if (found == statements_.end()) return failure{"26000", "no statement"};
            if (failed_ && !leaves(found->second)) return failure{"25P02", "aborted"};
            portals_[std::string(head.portal)] = {found->second};
            out += b::bound();
        } else if (tag == 'D' || tag == 'C') {
            return describe_or_close(tag, wire::decode_target(body).value());
        } else if (tag == 'E') {
            const auto message = wire::decode_execute(body).value();
            const auto found = portals_.find(std::string(message.portal));
            if (found == portals_.end()) return failure{"34000", "no portal"};
            return execute(found->second, message.row_limit);
        }
        return std::nullopt;
    }

    result describe_or_close(char tag, const wire::target_message& message) {
        const std::string name(message.name);
        const bool statement = message.kind == 'S';
        if (tag == 'C') {
            statement ? statements_.erase(name) : portals_.erase(name);
            out += b::closed();
            return std::nullopt;
        }
        std::string sql;
        if (statement) {
            const auto found = statements_.find(name);
            if (found == statements_.end()) return failure{"26000", "no statement"};
            sql = found->second;
            out += b::parameters({});
        } else {
            const auto found = portals_.find(name);
            if (found == portals_.end()) return failure{"34000", "no portal"};
            sql = found->second.sql;
        }
        out += returns_rows(sql) ? b::row_description({25}) : b::no_data();
        return std::nullopt;
    }

    result execute(cursor& portal, std::int32_t limit) {
        if (portal.sql.empty()) {
            out += b::bytes('I');
            return std::nullopt;
        }
        if (portal.runs > 0) {
            if (!returns_rows(portal.sql)) return failure{"55000", "cannot run twice"};
            out += b::complete("SELECT 0");
            return std::nullopt;
        }
        const auto sql = portal.sql;  // running it may drop the portal
        ++portal.runs;
        limit_ = limit;
        return run(sql, false);
    }

    result run(const std::string& sql, bool simple) {
        if (failed_ && !leaves(sql)) return failure{"25P02", "aborted"};
        if (sql.starts_with("SELECT '") || sql.starts_with("SHOW ")) {
            if (simple) out += b::row_description({25});
            out += b::row(sql[1] == 'E' ? sql.substr(8, sql.size() - 9) : settings_[sql.substr(5)]);
            if (!simple && limit_ > 0)
                out += b::bytes('s');
            else
                out += b::complete(sql[1] == 'E' ? "SELECT 1" : "SHOW");
        } else if (sql.starts_with("SELECT pg_catalog.lower(name)")) {
            out += b::row_description({25}) + b::complete("SELECT 0");  // nothing was left behind
        } else if (sql.starts_with("INSERT INTO t VALUES (")) {
            work_.push_back(std::atoi(sql.c_str() + 22));
            out += b::complete("INSERT 0 1");
        } else if (sql.starts_with("SET ")) {
            const auto equals = sql.find(" = ");
            if (!saved_settings_) saved_settings_ = settings_;
            settings_[sql.substr(4, equals - 4)] = sql.substr(equals + 3);
            out += b::complete("SET");
        } else if (sql.starts_with("COPY ")) {
            copying_ = true;
            extended_copy_ = !simple;
            copied_.clear();
            out += b::bytes('G', std::string("\0\0\0", 3));
        } else {
            return control(sql);
        }
        return std::nullopt;
    }

    result control(const std::string& sql) {
        if (sql == "BEGIN") {
            block_ = true;
            out += b::complete("BEGIN");
        } else if (sql == "COMMIT" || sql == "ROLLBACK") {
            const bool keep = sql == "COMMIT" && !failed_;
            block_ = failed_ = false;
            keep ? commit_work() : abort_work();
            portals_.clear();
            out += b::complete(keep ? "COMMIT" : "ROLLBACK");
        } else if (sql.starts_with("RESET ")) {
            if (!saved_settings_) saved_settings_ = settings_;
            settings_.erase(unquoted(sql.substr(6)));
            out += b::complete("RESET");
        } else if (sql == "DEALLOCATE ALL" || sql == "DISCARD ALL") {
            statements_.clear();
            if (sql == "DISCARD ALL") settings_.clear();
            out += b::complete(sql);
        } else if (sql.starts_with("DEALLOCATE ")) {
            const auto name = sql.substr(11);
            if (statements_.erase(name) == 0)
                return failure{"26000", "prepared statement \"" + name + "\" does not exist"};
            out += b::complete("DEALLOCATE");
        } else {
            return failure{"42601", "syntax"};
        }
        return std::nullopt;
    }

    static std::string unquoted(std::string name) {
        std::erase(name, '"');
        return name;
    }

    void commit_work() {
        for (const int row : work_) {
            store_.rows.push_back(row);
            if (store_.on_commit) store_.on_commit(row);
        }
        work_.clear();
        saved_settings_.reset();
    }
    void abort_work() {
        work_.clear();
        if (saved_settings_) settings_ = *saved_settings_;
        saved_settings_.reset();
    }

    static bool leaves(std::string_view sql) { return sql == "COMMIT" || sql == "ROLLBACK"; }
    static bool returns_rows(std::string_view sql) {
        return sql.starts_with("SELECT") || sql.starts_with("SHOW");
    }
    static std::string_view trimmed(std::string_view text) {
        while (!text.empty() && text.front() == ' ')
            text.remove_prefix(1);
        return text;
    }

    model_store& store_;
    std::uint32_t process_id_;
    std::string in_;
    bool started_{false}, skipping_{false}, block_{false}, failed_{false};
    bool copying_{false}, extended_copy_{false};
    std::int32_t limit_{0};
    std::vector<std::string> pending_;
    std::vector<int> copied_, work_;
    std::map<std::string, std::string> statements_;
    std::map<std::string, cursor> portals_;
    std::map<std::string, std::string> settings_;
    std::optional<std::map<std::string, std::string>> saved_settings_;
};

}  // namespace hotlane::session::testing
