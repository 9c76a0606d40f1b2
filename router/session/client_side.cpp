// Messages of the client, frame by frame: what needs no look passes in runs, what is answered is
// entered into the queue of owed replies, and the first of a transaction has to pass boundary.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "router/session/implementation.hpp"
#include "router/sql/row_key.hpp"
#include "router/wire/bytes.hpp"

namespace hotlane::session {
namespace {

bool is_extended(char tag) {
    using namespace wire::tag_f;
    return tag == parse || tag == bind || tag == describe || tag == close || tag == execute ||
           tag == sync || tag == flush;
}

bool is_copy(char tag) {
    using namespace wire::tag_f;
    return tag == copy_data || tag == copy_done || tag == copy_fail;
}

bool is_long(char tag) {
    using namespace wire::tag_f;
    return tag == query || tag == parse || tag == bind || tag == copy_data ||
           tag == function_call || tag == copy_fail;
}

bool is_known(char tag) {
    using namespace wire::tag_f;
    return is_extended(tag) || is_copy(tag) || tag == query || tag == function_call ||
           tag == terminate;
}

// One cache a thread: its sessions share what they have parsed.
sql::facts_cache& cache() {
    thread_local sql::facts_cache one;
    return one;
}

}  // namespace

std::shared_ptr<const sql::facts> session::implementation::facts_of(std::string_view sql) {
    if (reads_wrong_) return nullptr;
    if (memo_.facts && memo_.at == sql.data() && memo_.size == sql.size()) return memo_.facts;
    memo_ = {sql.data(), sql.size(), cache().get(sql)};
    return memo_.facts;
}

std::size_t session::implementation::take_client(std::string_view bytes) {
    std::size_t at = 0;
    memo_ = {};  // the buffer is another one
    frame_incomplete_ = false;
    while (phase_ == phase::relaying && !terminated_ && !parting_ && at < bytes.size()) {
        auto rest = bytes.substr(at);
        if (client_rest_ > 0) {
            const auto part = rest.substr(0, client_rest_);
            if (!client_discards_) to_link_.pass(part);
            client_rest_ -= part.size();
            at += part.size();
            continue;
        }
        const auto scanned = wire::scan_frame(rest);
        if (scanned.status == wire::scan_status::invalid) {
            broken_client(wire::to_string(scanned.error));
            break;
        }
        if (!scanned.has_header) {
            frame_incomplete_ = true;
            break;
        }
        client_frame frame{.tag = scanned.header.tag, .rest = rest};
        frame.total = scanned.header.total_size();
        frame.at_hand = rest.substr(0, frame.total);
        frame.complete = scanned.status == wire::scan_status::complete;
        if (!check_frame(frame)) break;
        if (!frame.complete && needs_all(frame)) {
            frame_incomplete_ = true;
            break;
        }
        client_discards_ = false;
        if (take_frame(frame) == verdict::wait) break;
        client_rest_ = frame.total - frame.at_hand.size();
        at += frame.at_hand.size();
    }
    memo_ = {};
    return phase_ == phase::ended || terminated_ || parting_ ? bytes.size() : at;
}

// What it asked before is still answered, as the home would have; nothing behind it is read.
void session::implementation::broken_client(std::string_view why) {
    if (!begun_ || owed_.empty() || copy_in_) {
        fatal(texts::bad_client_message(why));
        return;
    }
    parting_ = texts::bad_client_message(why);
    client_discards_ = true;
    waits_for_answers();
}

bool session::implementation::check_frame(const client_frame& frame) {
    if (!is_known(frame.tag)) {
        broken_client(
            fmt::format("invalid frontend message type {}", static_cast<unsigned char>(frame.tag)));
        return false;
    }
    if (!is_long(frame.tag) && frame.total > small_message_max + wire::header_size) {
        broken_client("invalid message length");
        return false;
    }
    return true;
}

// Whether a message that has only come in part must be waited for.
bool session::implementation::needs_all(const client_frame& frame) const {
    if (frame.tag == wire::tag_f::copy_data || frame.tag == wire::tag_f::copy_fail ||
        frame.tag == wire::tag_f::function_call)
        return false;
    if (!is_long(frame.tag) || frame.total <= limits_.parsed_message_bytes) {
        // A Bind's values are of no interest, only the two names before them.
        const bool named = frame.tag == wire::tag_f::bind && frame.total > small_message_max &&
                           wire::decode_bind_head(frame.body()).has_value();
        return !named;
    }
    return frame.tag == wire::tag_f::bind && !wire::decode_bind_head(frame.body()) &&
           frame.at_hand.size() <= small_message_max;
}

verdict session::implementation::take_frame(const client_frame& frame) {
    if (frame.tag == wire::tag_f::terminate) {
        terminate();
        return verdict::taken;
    }
    if (refusing_) {
        client_discards_ = true;
        if (frame.tag == wire::tag_f::sync) {
            refusing_ = false;
            wire::append_ready(to_client_.out(), wire::transaction_status::idle);
        }
        return verdict::taken;
    }
    // Between transactions these ask for nothing: a home would discard them.
    if (!begun_ && (is_copy(frame.tag) || frame.tag == wire::tag_f::flush)) {
        client_discards_ = true;
        return verdict::taken;
    }
    // What comes behind a statement that may be sent again waits for its end.
    if (again_ && again_->active && again_->complete) return verdict::wait;
    const auto may = begun_ ? next_in_pipeline(frame) : begin(frame);
    if (may == passage::wait) return verdict::wait;
    if (may == passage::refused) {
        client_discards_ = true;
        return verdict::taken;
    }
    return take_message(frame);
}

verdict session::implementation::take_message(const client_frame& frame) {
    if (is_copy(frame.tag)) {
        take_copy(frame);
    } else if (skipping_ && frame.tag != wire::tag_f::sync) {
        pass(frame);  // the home discards it
    } else if (copy_in_ && (frame.tag == wire::tag_f::sync || frame.tag == wire::tag_f::flush)) {
        pass(frame);  // and these, while it waits for CopyData
    } else if (copy_in_) {
        copy_in_ = false;  // anything else makes the COPY fail and is not answered itself
        pass(frame);
    } else if (lent_ && waits_for_statement(frame)) {
        return verdict::wait;
    } else if (frame.tag == wire::tag_f::query) {
        take_query(frame);
    } else if (frame.tag == wire::tag_f::function_call) {
        take_function_call(frame);
    } else if (!take_extended(frame)) {
        return verdict::taken;
    }
    flushed_ = false;
    // Nobody may be left waiting for replies that the home keeps in its buffer.
    if (unsynced_ && owed_.size() == owed_max)
        wire::append_empty(to_link_.out(), wire::tag_f::flush);
    return verdict::taken;
}

void session::implementation::pass(const client_frame& frame) {
    to_link_.pass(frame.at_hand);
}

void session::implementation::take_query(const client_frame& frame) {
    owed entry;
    entry.what = owes::query;
    std::string renamed;
    if (frame.complete && frame.total <= limits_.parsed_message_bytes) {
        const auto sql = wire::decode_query(frame.body());
        if (!sql) {
            broken_client(wire::to_string(sql.error()));
            return;
        }
        entry.facts = facts_of(*sql);
        if (withholds(entry.facts.get())) return withhold_query(frame);
        static const std::vector<sql::statement> unknown;
        for (const auto& statement : entry.facts ? entry.facts->statements : unknown)
            if (!entry.text && (statement.what == sql::kind::ddl || statement.parameter ||
                                statement.what == sql::kind::set_session_characteristics))
                entry.text = std::make_shared<const std::string>(*sql);
        if (entry.facts && !entry.text && env_.wants_statement(entry.facts->fingerprint))
            entry.text = std::make_shared<const std::string>(*sql);
        note_sent(entry.facts.get(),
                  *sql,
                  entry.facts && entry.facts->statements.size() == 1 && !unsynced_);
        if (lent_ && entry.facts) renamed = renamed_query(*entry.facts, *sql);
        if (!unsynced_) consider_retry(frame, entry.facts.get());
    } else {
        env_.count_limit_hit("parsed_message_bytes");
        if (withholds(nullptr)) return withhold_query(frame);
        note_sent(nullptr, {}, false);
    }
    statements_.closing("");  // PostgreSQL drops it at every simple query
    if (lent_) lent_->statements.drop_unnamed();
    unsynced_ = ran_ = false;
    statements_.next_batch();
    entry.again = again_ && again_->active && !again_->complete;
    if (entry.again) {
        keep_for_retry(entry, frame.at_hand, frame);
        again_->complete = true;
    }
    owed_.push(std::move(entry));
    if (renamed.empty())
        pass(frame);
    else
        wire::append_query(to_link_.out(), renamed);
}

void session::implementation::take_function_call(const client_frame& frame) {
    owed entry;
    entry.what = owes::function_call;
    suspect(nullptr);
    wrote_ = true;
    unsynced_ = false;
    owed_.push(std::move(entry));
    pass(frame);
}

// The client says good-bye. What it asked before is still done and answered.
void session::implementation::terminate() {
    if (pauses()) {  // the failed try has left nothing, and nobody waits for the next
        end();
        return;
    }
    client_eof_ = terminated_ = true;
    // A home that waits for CopyData answers nothing more: closing the link is what undoes it.
    if (owed_.empty() || unsynced_ || copy_in_) end(!in_block_ && !unsynced_ && !copy_in_);
}

// What the transaction state will be once the home has done this. Only a query of one statement is
// certain to be done: an error before it in the same text or batch makes the home skip it.
void session::implementation::note_sent(const sql::facts* facts, std::string_view sql, bool alone) {
    suspect(facts);
    if (!facts) {
        forecast_ = forecast::unsure;
        link_level_ = level::unknown;
        wrote_ = true;
        return;
    }
    for (const auto& statement : facts->statements) {
        const auto what = statement.what;
        block_ = block_ || what == sql::kind::begin;
        if (what == sql::kind::begin)
            forecast_ = alone ? forecast::in_block : forecast::unsure;
        else if (ends_block(what) && !statement.chain)
            forecast_ = alone ? forecast::idle : forecast::unsure;
        else if (what == sql::kind::prepare_transaction)
            forecast_ = forecast::unsure;
        else if (what == sql::kind::other && !facts->parsed)
            forecast_ = forecast::unsure;
        if (what == sql::kind::deallocate || what == sql::kind::deallocate_all ||
            what == sql::kind::discard_all)
            statements_go_ = true;
        note_isolation(statement);
        note_write(statement, sql);
    }
}

std::uint64_t session::implementation::row_key_of(const sql::statement& statement) {
    using keyed = sql::statement::keyed;
    switch (statement.key_from) {
        case keyed::unknown:
            return 0;
        case keyed::literals:
            return statement.key;
        case keyed::parameters:
            return bound_key_;
        case keyed::new_row: {
            const auto mine = reinterpret_cast<std::uintptr_t>(this);
            return sql::row_hash(sql::row_hash_begin ^ mine, std::to_string(++new_rows_));
        }
    }
    return 0;
}

// Only for the unnamed portal: a named one may be executed much later, and then the row is unknown.
void session::implementation::note_bound_key(const prepared* statement, std::string_view rest) {
    bound_key_ = 0;
    if (statement == nullptr || !statement->facts || statement->facts->statements.size() != 1)
        return;
    const auto& one = statement->facts->statements.front();
    if (one.key_from != sql::statement::keyed::parameters) return;
    std::uint64_t hash = one.key;
    for (const auto number : one.key_parameters) {
        const auto value = wire::bind_value(rest, number);
        if (!value) return;
        hash = sql::row_hash(hash, *value);
    }
    bound_key_ = hash;
}

void session::implementation::note_write(const sql::statement& statement, std::string_view sql) {
    if (!writes_data(statement)) return;
    wrote_ = true;
    row_key_ = row_key_of(statement);
    if (++writes_ > 1) {
        block_ = true;
        row_key_ = 0;
    }
    table_.assign(statement.table);
    const auto end = std::min<std::size_t>(statement.end, sql.size());
    const auto begin = std::min<std::size_t>(statement.begin, end);
    sample_.assign(sql.substr(begin, std::min(end - begin, sample_bytes_max)));
}

}  // namespace hotlane::session
