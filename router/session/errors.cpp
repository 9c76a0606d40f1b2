// Errors of the home: what the client is told, and what the home skips after one.
#include "router/session/implementation.hpp"
#include "router/wire/sqlstate.hpp"

namespace hotlane::session {

// Passes an error on, as it came unless it must be made honest first.
void session::implementation::give_error(wire::error_fields& fields, std::string_view whole) {
    ++errors_;
    const bool serialization = fields.sqlstate == wire::sqlstate::serialization_failure;
    const bool on_engine = link_kind_ == policy::home_kind::engine;
    const bool write_conflict = !on_engine || fields.message.starts_with("write conflict");
    if (serialization && !write_conflict) {
        // `fenced`, `durability`: stored perhaps, so never in a code that loops retry.
        unknown_ = true;
        fields.sqlstate = wire::sqlstate::outcome_unknown;
        fields.hint = texts::unknown_outcome_hint;
        wire::append_error(to_client_.out(), fields);
        link_swallows_ = true;
        return;
    }
    if (give_fence(fields)) return;
    note_stale_statement(fields);
    if (again_missed_ && is_conflict(fields)) env_.retried(retry_outcome::too_large, 0);
    again_missed_ = false;
    conflict_ = conflict_ || serialization ||
                (!on_engine && fields.sqlstate == wire::sqlstate::deadlock_detected);
    if (fields.sqlstate.empty()) {
        fields.sqlstate = wire::sqlstate::internal_error;
        wire::append_error(to_client_.out(), fields);
        link_swallows_ = true;
        return;
    }
    to_client_.pass(whole);
}

// An error in an extended batch: the home reads on to the next Sync without answering.
void session::implementation::skip_to_sync() {
    const bool engine = link_kind_ == policy::home_kind::engine;
    if (!in_block_) {
        state_.rollback();
        if (!engine) implicit_wrote_ = false;  // the engine may have committed each by itself
    }
    auto& failed = owed_.front();
    // The unnamed statement goes even when the Parse that would replace it fails.
    if (failed.what == owes::parse && failed.statement && failed.statement->name.empty())
        statements_.erase("");
    while (!owed_.empty() && owed_.front().what != owes::sync) {
        undo_skipped(owed_.front());
        owed_.pop();
    }
    skipping_ = owed_.empty();
    expect_again();
}

// The home speaks though nothing is asked. Its farewell (FATAL, then it closes) is no news to a
// session that can open another link; one that cannot, or is in a transaction, is told.
void session::implementation::take_idle_error(std::string_view body, std::string_view whole) {
    auto fields = wire::decode_error(body);
    if (!fields) return broken_home("malformed ErrorResponse");
    const bool fatal_error = fields->severity == "FATAL" || fields->severity == "PANIC" ||
                             fields->severity_raw == "FATAL" || fields->severity_raw == "PANIC";
    if (!fatal_error) {
        if (!begun_) return broken_home("an error that answers nothing");
        return give_error(*fields, whole);
    }
    if (!begun_ && state_.pinned() == pin::none) {
        drop_link(false);
        return;
    }
    give_error(*fields, whole);
    end();
}

}  // namespace hotlane::session
