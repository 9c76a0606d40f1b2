// Messages of the home. Each must answer the front of the owed queue, or be one of the three that
// may come at any time; anything else means that the two sides no longer agree, and ends the
// session before a reply reaches the wrong request.
#include <algorithm>

#include "router/session/implementation.hpp"
#include "router/wire/sqlstate.hpp"

namespace hotlane::session {
namespace {

using namespace wire::tag_b;

// Frames up to this size are handed on whole, so that a link that breaks leaves the client at a
// message boundary, where it can still be told why. Longer ones stream.
constexpr std::size_t whole_max = 16 * 1024;

bool is_asynchronous(char tag) {
    return tag == notice || tag == notification || tag == wire::tag_b::parameter_status;
}

bool is_any_of(char tag, std::string_view tags) {
    return tags.find(tag) != std::string_view::npos;
}

// The tags that may answer each kind of message.
std::string_view answers_to(owes what) {
    switch (what) {
        case owes::query:
            return "TDCIGHdcEZ";
        case owes::parse:
            return "1E";
        case owes::bind:
            return "2E";
        case owes::close:
            return "3E";
        case owes::describe_statement:
            return "tTnE";
        case owes::describe_portal:
            return "TnE";
        case owes::execute:
            return "TDCsIGHdcE";
        case owes::sync:
            return "ZE";
        case owes::function_call:
            return "VEZ";
        case owes::copy_end:
            return "";
    }
    return "";
}

// Of an error too long to be kept, the fields that have come whole: the severity and the SQLSTATE
// are the first. The rest streams behind them.
std::string_view first_fields(std::string_view at_hand) {
    const auto fields = at_hand.substr(wire::header_size);
    return fields.substr(0, fields.rfind('\0') + 1);
}

}  // namespace

bool session::implementation::streams(char tag) const noexcept {
    if (is_any_of(tag, "DdNAV")) return true;
    return tag == row_description && !owed_.empty() && !owed_.at(0).statement;
}

void session::implementation::pop_copy_ends() {
    while (!owed_.empty() && owed_.front().what == owes::copy_end)
        owed_.pop();
}

std::size_t session::implementation::take_home(std::string_view bytes) {
    std::size_t at = 0;
    while (link_ == link_phase::ready || link_ == link_phase::replaying) {
        const auto rest = bytes.substr(at);
        if (rest.empty()) break;
        if (link_rest_ > 0) {
            const auto part = rest.substr(0, link_rest_);
            if (!link_swallows_) to_client_.pass(part);
            link_rest_ -= part.size();
            at += part.size();
            continue;
        }
        const auto frame = wire::scan_frame(rest);
        if (frame.status == wire::scan_status::invalid) {
            broken_home(wire::to_string(frame.error));
            break;
        }
        if (!frame.has_header) break;
        const auto total = frame.header.total_size();
        const bool whole = frame.status == wire::scan_status::complete;
        const bool long_error = !whole && frame.header.tag == wire::tag_b::error &&
                                frame.header.body_size > limits_.parsed_message_bytes;
        if (long_error && rest.size() < whole_max) break;
        if (!whole && !long_error && !streams(frame.header.tag)) {
            if (frame.header.body_size > limits_.parsed_message_bytes) {
                broken_home("message too long");
                break;
            }
            break;
        }
        if (!whole && total <= whole_max) break;
        const auto at_hand = rest.substr(0, total);
        if (!whole && !owed_.empty() && keeps_back(owed_.front())) drop_retry(true);
        if (!take_home_message(frame, at_hand)) break;
        link_rest_ = total - at_hand.size();
        at += at_hand.size();
    }
    return link_ == link_phase::ready || link_ == link_phase::replaying ? at : bytes.size();
}

// False: the link is gone.
bool session::implementation::take_home_message(const wire::scanned& frame,
                                                std::string_view whole) {
    const char tag = frame.header.tag;
    const bool in_part = frame.status != wire::scan_status::complete;
    const auto body = in_part && tag == error ? first_fields(whole) : frame.body;
    pop_copy_ends();
    link_swallows_ = false;
    if (is_asynchronous(tag)) {
        const bool hidden = !owed_.empty() && owed_.front().hidden();
        if (tag == wire::tag_b::parameter_status) {
            const auto status = wire::decode_parameter_status(frame.body);
            if (!status) {
                broken_home("malformed ParameterStatus");
                return false;
            }
            if (link_ == link_phase::replaying) {
                // Between two states of the link; the client is told of the last (settle_status).
                link_status_ = with_status(link_status_, status->name, status->value);
                link_swallows_ = true;
            } else {
                note_status(status->name, status->value);
                to_client_.pass(whole);
            }
        } else if (tag == notice && !owed_.empty() && keeps_back(owed_.front())) {
            keep_back(whole);
        } else if (hidden && tag == notice) {
            link_swallows_ = true;
        } else {
            to_client_.pass(whole);
        }
        return true;
    }
    if (tag == error && owed_.empty()) {
        take_idle_error(body, whole);
        return link_ != link_phase::none;
    }
    if (owed_.empty() || !is_any_of(tag, answers_to(owed_.front().what))) {
        broken_home("a reply that answers nothing");
        return false;
    }
    link_swallows_ = owed_.front().hidden();
    take_reply(tag, body, whole);
    return link_ != link_phase::none;
}

void session::implementation::take_reply(char tag, std::string_view body, std::string_view whole) {
    auto& front = owed_.front();
    const bool hidden = front.hidden();
    if (tag == ready) return take_ready(body, whole);
    if (tag == error) return take_error(body, whole);
    if (front.from == sender::ensure)
        ensured_reply(tag, body);
    else if (front.from == sender::aftermath)
        aftermath_reply(tag, body);
    else if (hidden)
        replay_reply(tag, body);
    if (!hidden) give(front, whole);
    switch (tag) {
        case parse_complete:
            if (front.statement && !hidden) keep_statement(front.statement);
            owed_.pop();
            break;
        case close_complete:
            if (front.statement && !hidden) statements_.erase(front.statement->name);
            owed_.pop();
            break;
        case bind_complete:
        case portal_suspended:
            owed_.pop();
            break;
        case parameter_description:
        case row_description:
        case no_data:
            if (!hidden) note_description(tag, body);
            if (tag != parameter_description &&
                (front.what == owes::describe_statement || front.what == owes::describe_portal))
                owed_.pop();
            break;
        case wire::tag_b::command_complete: {
            const auto words = wire::decode_command_complete(body);
            if (!words) return broken_home("malformed CommandComplete");
            if (!hidden) command_complete(*words);
            if (front.what == owes::execute) owed_.pop();
            break;
        }
        case empty_query:
            if (front.what == owes::execute) owed_.pop();
            break;
        case copy_in:
            copy_in_opened();
            break;
        default:  // rows, copied data, function results: only passing
            break;
    }
}

// What the client is told of a statement is what it will expect at any later home.
void session::implementation::note_description(char tag, std::string_view body) {
    auto& front = owed_.front();
    const bool describes =
        front.what == owes::describe_statement || front.what == owes::describe_portal;
    if (!describes || !front.statement) return;
    auto& statement = *front.statement;
    const auto before = statement.bytes();
    if (tag == parameter_description) {
        if (auto told = wire::decode_parameter_description(body))
            statement.told_parameters = std::make_shared<const types>(std::move(*told));
    } else {
        statement.told_columns = columns_of(tag, body, statement.told_columns);
    }
    statements_.grew(statement, before);
    if (lent_) {
        if (auto* const slot =
                tag == parameter_description ? nullptr : lent_->statements.find(statement))
            slot->columns = statement.told_columns;
    } else if (statements_.bytes() > statement_bytes_max) {
        env_.count_limit_hit("statements_per_client");
        state_.pin_now(pin::other);
        statements_.erase(statement.name);
    }
}

void session::implementation::take_ready(std::string_view body, std::string_view whole) {
    const auto status = wire::decode_ready(body);
    if (!status) return broken_home("malformed ReadyForQuery");
    auto& front = owed_.front();
    tally_.ready(*status);
    const bool kept = keeps_back(front) && again_->complete;
    const bool unheard = kept && retry_ready();
    if (!front.hidden() && !unheard) {
        to_client_.pass(whole);
        begun_anew_ = 0;
    }
    if (!front.hidden() && front.what == owes::query) statements_.erase("");
    status_ = *status;
    in_block_ = status_ != wire::transaction_status::idle;
    implicit_wrote_ = committed_unready_ = false;
    copy_in_ = false;
    owed_.pop();
    if (!in_block_ && state_.has_pending()) commit_state();
    pop_copy_ends();
    if (owed_.empty()) {
        forecast_ = in_block_ ? forecast::in_block : forecast::idle;
        statements_.forget_sent();
    }
    if (link_ == link_phase::replaying && owed_.empty()) {
        link_is_ready();
        settle_status();
    }
}

// COPY FROM STDIN has begun. Messages that the client sent behind it are read by the home as part
// of the COPY: Sync and Flush are ignored, CopyDone and CopyFail end it, anything else is consumed
// and makes it fail.
void session::implementation::copy_in_opened() {
    std::size_t next = 1;
    while (next < owed_.size()) {
        const auto what = owed_.at(next).what;
        owed_.erase(next);
        if (what != owes::sync)
            return expect_again();  // the end of the COPY stands there, in one way or another
    }
    copy_in_ = true;
}

void session::implementation::take_error(std::string_view body, std::string_view whole) {
    auto fields = wire::decode_error(body);
    if (!fields) return broken_home("malformed ErrorResponse");
    auto& front = owed_.front();
    tally_.failed();
    const bool fatal_error = fields->severity == "FATAL" || fields->severity == "PANIC" ||
                             fields->severity_raw == "FATAL" || fields->severity_raw == "PANIC";
    if (front.hidden() && !fatal_error) {
        if (front.from == sender::isolation)
            return broken_home("it refuses to set the isolation level");
        if (front.from == sender::ensure)
            give_error(*fields, whole);  // in place of the answer to what needed the statement
        else if (front.from == sender::aftermath)
            aftermath_reply(error, body);
        else
            replay_reply(error, body);
    } else if (!front.hidden() && front.instead) {
        to_client_.out().append(*front.instead);
        link_swallows_ = true;
        ++errors_;
    } else if (front.hidden()) {
        link_lost(fields->message);
        return;
    } else if (!fatal_error && keeps_back(front) && try_again(*fields, whole)) {
        // The client does not hear of it.
    } else {
        give_error(*fields, whole);
    }
    if (fatal_error) return end();
    failed_once_ = failed_once_ || in_block_;
    copy_in_ = false;
    switch (front.what) {
        case owes::query:
            front.failed = true;
            if (!in_block_) state_.rollback();
            break;
        case owes::function_call:
            if (link_kind_ == policy::home_kind::engine) {
                // The engine forgets the ReadyForQuery here, and a client would wait for ever.
                if (status_ == wire::transaction_status::in_block)
                    status_ = wire::transaction_status::failed;
                wire::append_ready(to_client_.out(), status_);
                owed_.pop();
            }
            break;
        case owes::sync:  // the commit failed; ReadyForQuery follows
            if (!in_block_) state_.rollback();
            break;
        case owes::parse:
        case owes::bind:
        case owes::close:
        case owes::describe_statement:
        case owes::describe_portal:
        case owes::execute:
        case owes::copy_end:
            skip_to_sync();
            break;
    }
}

void session::implementation::give(const owed& entry, std::string_view whole) {
    if (keeps_back(entry))
        keep_back(whole);
    else
        to_client_.pass(whole);
}

}  // namespace hotlane::session
