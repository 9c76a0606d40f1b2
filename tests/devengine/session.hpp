// What one client's statements do: its transaction, its snapshot, its way through the lane.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "router/wire/message.hpp"
#include "tests/devengine/database.hpp"
#include "tests/devengine/dialect.hpp"

namespace hotlane::devengine {

// A statement's answer: columns, rows one at a time, and the command tag once they are through.
class cursor {
  public:
    cursor() = default;
    explicit cursor(std::string tag) : tag_(std::move(tag)), counts_(false) {}
    cursor(std::vector<column_info> columns, std::vector<row> rows, std::string tag, bool counts)
        : columns_(std::move(columns)),
          rows_(std::move(rows)),
          tag_(std::move(tag)),
          counts_(counts) {}
    cursor(stmt_handle statement, std::string tag)
        : statement_(std::move(statement)), tag_(std::move(tag)) {}

    [[nodiscard]] const std::vector<column_info>& columns() const noexcept { return columns_; }
    // Reads ahead one row, so that the types of expressions are known.
    result<void> open(sqlite3* handle);
    // False at the end.
    result<bool> next(row& out);
    void charge(nanoseconds row_cost) noexcept { row_cost_ = row_cost; }
    void set_tag(std::string tag) { tag_ = std::move(tag); }
    [[nodiscard]] std::string tag() const {
        return counts_ ? tag_ + " " + std::to_string(count_) : tag_;
    }

  private:
    result<bool> step();

    stmt_handle statement_;
    sqlite3* handle_{nullptr};
    std::vector<column_info> columns_;
    std::vector<row> rows_;  // what was read ahead, or all of it
    std::size_t at_{0};
    std::string tag_;
    bool counts_{true};
    std::uint64_t count_{0};
    nanoseconds row_cost_{0};
};

// Runs a statement to its end and keeps its rows.
result<cursor> collect(sqlite3* handle, stmt_handle statement, const std::string& verb);

class session {
  public:
    explicit session(database& home);
    ~session();
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    // The columns a statement would answer with; checks it on the way.
    result<std::vector<column_info>> describe(const statement& s);
    result<void> check(const statement& s);  // what Parse finds out
    // The type of each parameter as far as the statement tells, 0 where it does not.
    std::vector<std::uint32_t> parameter_types(const statement& s);
    result<cursor> execute(const statement& s, const std::vector<value>& parameters);

    [[nodiscard]] wire::transaction_status status() const noexcept;
    void note_failure() noexcept;  // an error inside a transaction

  private:
    struct savepoint {
        std::string name;
        std::size_t changes;
    };

    result<cursor> execute_inner(const statement& s, const std::vector<value>& parameters);
    result<cursor> read(const statement& s, const std::vector<value>& parameters);
    result<cursor> write(const statement& s, const std::vector<value>& parameters);
    result<cursor> write_alone(const statement& s, const std::vector<value>& parameters);
    result<cursor> write_in_block(const statement& s, const std::vector<value>& parameters);
    result<cursor> run_in_lane(const statement& s, const std::vector<value>& parameters);
    result<cursor> ddl(const statement& s);
    result<cursor> show(const statement& s);
    result<cursor> begin(const statement& s);
    result<cursor> commit();
    result<cursor> rollback();
    result<cursor> change_savepoint(const statement& s);
    result<stmt_handle> prepare(sqlite3* handle, access_list& access, const std::string& sql);
    std::optional<cursor> answer_of_empty_table(const statement& s, const sql_error& error);
    bool enter_block();  // the first write of a transaction takes the lane
    void begin_snapshot();
    void end_block();
    nanoseconds scan_cost(const statement& s, const access_list& access) const;
    void spend_before_lane(const statement& s);
    void spend_in_lane(const statement& s) const;
    void fill_stats();

    database& home_;
    access_list access_;
    db_handle reader_;
    bool in_block_{false};
    bool failed_{false};
    bool has_snapshot_{false};
    bool writing_{false};  // this session is in the lane
    std::uint64_t snapshot_{0};
    std::uint64_t ddl_epoch_{0};
    std::vector<savepoint> savepoints_;
};

}  // namespace hotlane::devengine
