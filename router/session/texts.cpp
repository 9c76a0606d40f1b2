#include "router/session/texts.hpp"

#include <fmt/format.h>

#include "router/wire/message.hpp"
#include "router/wire/sqlstate.hpp"

namespace hotlane::session::texts {

namespace state = wire::sqlstate;

namespace {

refusal say(std::string_view sqlstate, std::string message, std::string hint = {}) {
    return {std::string(sqlstate), std::move(message), std::move(hint)};
}

}  // namespace

void append(std::string& out, severity how, const refusal& what) {
    wire::error_fields fields;
    fields.severity = how == severity::fatal ? "FATAL" : "ERROR";
    fields.sqlstate = what.sqlstate;
    fields.message = what.message;
    fields.hint = what.hint;
    if (!what.origin.file.empty())
        fields.others = {{'F', std::string(what.origin.file)},
                         {'L', std::string(what.origin.line)},
                         {'R', std::string(what.origin.routine)}};
    wire::append_error(out, fields);
}

refusal not_local() {
    return say(state::invalid_authorization,
               "trust is for loopback and unix sockets only",
               "Connect from the same host.");
}
refusal missing_user() {
    return say(state::invalid_authorization, "no user name in the startup packet");
}
refusal replication() {
    return say(state::feature_not_supported,
               "replication connections are not relayed",
               "Connect to the home itself.");
}
refusal unsupported_protocol() {
    return say(state::feature_not_supported,
               "unsupported frontend protocol: the server supports 3.0");
}
refusal bad_startup() {
    return say(state::protocol_violation, "invalid startup packet layout");
}
refusal bad_client_message(std::string_view why) {
    return say(state::protocol_violation, fmt::format("the client broke the protocol: {}", why));
}
refusal not_served(std::string_view tool, std::string_view reason) {
    return say(state::cannot_connect_now,
               fmt::format("tool {} is not served now: {}", tool, reason),
               "Nothing was sent to a home; try again later.");
}
refusal held_too_long(std::string_view tool, std::string_view reason) {
    return say(
        state::cannot_connect_now,
        fmt::format("tool {} is on hold{}{}", tool, reason.empty() ? "" : ": ", reason),
        "The transaction waited for as long as it may and nothing was sent to a home; try again.");
}
refusal queue_full(std::string_view tool) {
    return say(state::cannot_connect_now,
               fmt::format("tool {} is on hold and its queue is full", tool),
               "Nothing was sent to a home; try again.");
}
refusal cannot_connect(std::string_view tool, std::string_view why) {
    return say(state::cannot_connect,
               fmt::format("the home of tool {} cannot be reached: {}", tool, why),
               "Nothing was sent to a home; try again.");
}
refusal refused_authentication(std::string_view tool, std::string_view why) {
    return say(state::cannot_connect,
               fmt::format("cannot log in to the home of tool {}: {}", tool, why),
               "Let the home use trust or scram-sha-256 for this role.");
}
refusal pinned(std::string_view tool, std::string_view reason) {
    return say(state::admin_shutdown,
               fmt::format("this session cannot follow tool {} to its new home: {}", tool, reason),
               "Reconnect.");
}
refusal pinned_link_lost(std::string_view tool, std::string_view reason) {
    return say(state::admin_shutdown,
               fmt::format("the home of tool {} closed the connection, and the session's state "
                           "cannot be restored: {}",
                           tool,
                           reason),
               "Reconnect.");
}
refusal no_link(std::string_view tool, std::string_view why) {
    return say(state::cannot_connect_now,
               fmt::format("no link of tool {} became free in time: {}", tool, why),
               "Nothing was sent to a home; try again, or raise pool.max.");
}
refusal cancelled() {
    return say(state::query_canceled, "canceling statement due to user request");
}
refusal duplicate_statement(std::string_view name) {
    auto what = say("42P05", fmt::format("prepared statement \"{}\" already exists", name));
    what.origin = {"prepare.c", "412", "StorePreparedStatement"};
    return what;
}
refusal no_such_statement(std::string_view name) {
    auto what = say("26000", fmt::format("prepared statement \"{}\" does not exist", name));
    what.origin = {"prepare.c", "451", "FetchPreparedStatement"};
    return what;
}
refusal sequence_elsewhere() {
    return say(
        "55000",
        "the sequence was not used in this session, or over another link",
        "Ask in the transaction that used it, or use RETURNING. From now on sessions of this "
        "tool that use a sequence keep their link, so that the next try may succeed.");
}
refusal too_many_statements() {
    return say(state::configuration_limit,
               "too many prepared statements",
               "hotlane's limit statements_per_client is reached; close some.");
}
refusal shutdown() {
    return say(state::admin_shutdown, "hotlane is shutting down", "Reconnect.");
}
refusal lost_nothing_committed() {
    return say(state::connection_failure,
               "connection to the home was lost; nothing of this transaction was committed");
}
refusal lost_outcome_unknown() {
    return say(state::outcome_unknown,
               "connection to the home was lost; the outcome of the transaction is unknown",
               "check before you retry");
}
refusal broken_home(std::string_view why) {
    return say(state::protocol_violation, fmt::format("the home broke the protocol: {}", why));
}
refusal broken_home_unknown(std::string_view why) {
    return say(
        state::outcome_unknown,
        fmt::format("the home broke the protocol: {}; the outcome of the transaction is unknown",
                    why),
        "check before you retry");
}
refusal result_type_changed() {
    return say(state::feature_not_supported, "cached plan must not change result type");
}
refusal left_home(std::string_view tool, std::string_view words) {
    return say(state::serialization_failure,
               fmt::format("tool {} left this home during the transaction: {}", tool, words),
               "Nothing of the transaction was committed; run it again, at the new home.");
}
refusal unconfirmed(std::string_view tool) {
    return say(
        state::cannot_connect_now,
        fmt::format("the fleet's store does not confirm that tool {} lives here", tool),
        "A home that the tool has left might not refuse a statement that names no column, so "
        "it was not sent; try again.");
}

}  // namespace hotlane::session::texts
