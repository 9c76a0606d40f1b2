#include "router/session/tally.hpp"

#include <algorithm>

namespace hotlane::session {
namespace {

constexpr std::size_t tables_max = 64;  // more of one pass count as all

// The rows that an INSERT, UPDATE, DELETE or MERGE says it changed; -1: another tag.
long long rows_of(std::string_view tag) {
    static constexpr std::string_view writes[] = {"INSERT ", "UPDATE ", "DELETE ", "MERGE "};
    if (std::none_of(std::begin(writes), std::end(writes), [&](std::string_view word) {
            return tag.starts_with(word);
        }))
        return -1;
    long long rows = 0;
    for (const char c : tag.substr(tag.rfind(' ') + 1)) {
        if (c < '0' || c > '9') return -1;
        if (rows < 1'000'000'000) rows = rows * 10 + (c - '0');
    }
    return rows;
}

bool is_ddl(std::string_view tag) {
    static constexpr std::string_view words[] = {"CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME"};
    return std::any_of(std::begin(words), std::end(words), [&](std::string_view word) {
        return tag.starts_with(word);
    });
}

// No table's rows are changed by these, whatever they answer.
bool changes_no_row(const sql::statement& what) {
    using sql::kind;
    static constexpr kind harmless[] = {kind::empty,
                                        kind::set,
                                        kind::set_local,
                                        kind::reset,
                                        kind::show,
                                        kind::listen,
                                        kind::unlisten,
                                        kind::notify,
                                        kind::set_role,
                                        kind::set_transaction,
                                        kind::set_session_characteristics,
                                        kind::prepare,
                                        kind::deallocate,
                                        kind::deallocate_all,
                                        kind::discard_all,
                                        kind::close_cursor,
                                        kind::lock};
    if (std::find(std::begin(harmless), std::end(harmless), what.what) != std::end(harmless))
        return true;
    // A function that wrote (the engine has none) would show as a commit of nobody.
    const bool reads = what.what == kind::select || what.what == kind::explain ||
                       what.what == kind::copy_out || what.what == kind::declare_cursor ||
                       what.what == kind::declare_cursor_hold || what.what == kind::fetch;
    return reads && !what.modifies;
}

}  // namespace

void write_tally::begin(std::uint64_t watch) {
    if (watch_ == 0 && watch == 0) return;
    tables_.clear();
    watch_ = watch;
    commits_ = 0;
    doubt_ = everything_ = ddl_ = false;
    block_ = changed_ = base_ = savepoint_ = alone_ = failed_ = false;
}

void write_tally::completed(const sql::statement* what, std::string_view tag) {
    if (!on()) return;
    if (tag == "BEGIN" || tag.starts_with("START")) {
        // A home may take what came before it in the same message into the block.
        block_ = true;
        changed_ = base_ = savepoint_ = alone_ = false;
    } else if (tag == "COMMIT") {
        if (block_ && changed_) ++commits_;
        block_ = what != nullptr && what->chain;
        changed_ = base_ = savepoint_ = false;
    } else if (tag == "ROLLBACK") {
        const bool in_part = what != nullptr && what->what == sql::kind::rollback_to;
        changed_ = in_part && base_;
        block_ = block_ && (in_part || (what != nullptr && what->chain));
        if (!in_part) base_ = savepoint_ = false;
    } else if (tag == "SAVEPOINT") {
        if (!savepoint_) base_ = changed_;
        savepoint_ = true;
    } else if (tag == "RELEASE") {
        // What it held counts with the block.
    } else if (const auto rows = rows_of(tag); rows >= 0) {
        if (rows > 0) changed_rows(what);
    } else if (is_ddl(tag)) {
        ddl_ = ddl_ || what == nullptr || !what->temporary;
    } else if (what == nullptr || !changes_no_row(*what)) {
        everything_ = true;
    }
}

void write_tally::changed_rows(const sql::statement* what) {
    (block_ ? changed_ : alone_) = true;
    if (what != nullptr && what->only_table)
        note_table(what->table);
    else
        everything_ = true;
}

void write_tally::note_table(const std::string& name) {
    if (everything_ || std::find(tables_.begin(), tables_.end(), name) != tables_.end()) return;
    if (tables_.size() >= tables_max)
        everything_ = true;
    else
        tables_.push_back(name);
}

// The engine goes on after an error in a block, and its COMMIT commits what succeeded; another home
// would not.
void write_tally::failed() {
    if (!on()) return;
    failed_ = true;
    changed_ = false;
}

void write_tally::ready(wire::transaction_status status) {
    if (!on()) return;
    const bool idle = status == wire::transaction_status::idle;
    if (idle && alone_ && !failed_) ++commits_;
    if (idle) changed_ = base_ = savepoint_ = false;
    block_ = !idle;
    alone_ = failed_ = false;
}

watched_writes write_tally::so_far() const noexcept {
    return {.watch = watch_,
            .commits = commits_,
            .doubt = doubt_,
            .everything = everything_,
            .ddl = ddl_,
            .tables = tables_};
}

}  // namespace hotlane::session
