#include <algorithm>
#include <thread>

#include "tests/devengine/session.hpp"
#include "tests/devengine/values.hpp"

namespace hotlane::devengine {

namespace {

constexpr std::uint64_t rows_per_charge = 256;

std::vector<column_info> declared_columns(sqlite3_stmt* statement) {
    std::vector<column_info> columns;
    for (int i = 0; i < sqlite3_column_count(statement); ++i)
        columns.push_back({sqlite3_column_name(statement, i),
                           type_of_declared(sqlite3_column_decltype(statement, i))});
    return columns;
}

// Columns without a declaration have the type of their first value.
void complete_types(std::vector<column_info>& columns, const row* first) {
    for (std::size_t i = 0; i < columns.size(); ++i)
        if (columns[i].type == 0)
            columns[i].type = first != nullptr ? type_of_value((*first)[i]) : oid::text;
}

row read_row(sqlite3_stmt* statement) {
    row values;
    const int count = sqlite3_column_count(statement);
    values.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
        values.push_back(column_value(statement, i));
    return values;
}

}  // namespace

result<bool> cursor::step() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    const std::string message = code == SQLITE_DONE ? "" : sqlite3_errmsg(handle_);
    statement_.reset();
    if (code == SQLITE_DONE) return false;
    return plain_error(message);
}

result<void> cursor::open(sqlite3* handle) {
    handle_ = handle;
    columns_ = declared_columns(statement_.get());
    const auto found = step();
    if (!found) return tl::unexpected(found.error());
    if (*found) rows_.push_back(read_row(statement_.get()));
    complete_types(columns_, rows_.empty() ? nullptr : &rows_.front());
    return {};
}

result<bool> cursor::next(row& out) {
    if (at_ < rows_.size()) {
        out = std::move(rows_[at_++]);
        ++count_;
        return true;
    }
    if (!statement_) return false;
    const auto found = step();
    if (!found || !*found) return found;
    out = read_row(statement_.get());
    // Charged in lumps: a sleep for each row would cost more than the row.
    if (++count_ % rows_per_charge == 0 && row_cost_.count() > 0)
        std::this_thread::sleep_for(row_cost_ * rows_per_charge);
    return true;
}

result<cursor> collect(sqlite3* handle, stmt_handle statement, const std::string& verb) {
    std::vector<row> rows;
    auto columns = declared_columns(statement.get());
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(statement.get())) == SQLITE_ROW)
        rows.push_back(read_row(statement.get()));
    if (code != SQLITE_DONE) return plain_error(sqlite3_errmsg(handle));
    complete_types(columns, rows.empty() ? nullptr : &rows.front());
    return cursor(std::move(columns), std::move(rows), verb, false);
}

}  // namespace hotlane::devengine
