// What a session says when it must speak for itself. Every failure that a client can see is worded
// here: SQLSTATE, message, hint.
#pragma once

#include <string>
#include <string_view>

#include "router/session/environment.hpp"

namespace hotlane::session::texts {

enum class severity { error, fatal };

void append(std::string& out, severity how, const refusal& what);

refusal not_local();
refusal missing_user();
refusal replication();
refusal unsupported_protocol();
refusal bad_startup();
refusal bad_client_message(std::string_view why);
refusal not_served(std::string_view tool, std::string_view reason);
refusal held_too_long(std::string_view tool, std::string_view reason);
refusal queue_full(std::string_view tool);
refusal cannot_connect(std::string_view tool, std::string_view why);
refusal refused_authentication(std::string_view tool, std::string_view why);
refusal pinned(std::string_view tool, std::string_view reason);
refusal pinned_link_lost(std::string_view tool, std::string_view reason);
refusal cancelled();
refusal no_link(std::string_view tool, std::string_view why);
refusal duplicate_statement(std::string_view name);
refusal no_such_statement(std::string_view name);
refusal sequence_elsewhere();
refusal too_many_statements();
refusal shutdown();
refusal lost_nothing_committed();
refusal lost_outcome_unknown();
refusal broken_home(std::string_view why);
refusal broken_home_unknown(std::string_view why);
refusal result_type_changed();
refusal left_home(std::string_view tool, std::string_view words);
refusal unconfirmed(std::string_view tool);
inline constexpr std::string_view unknown_outcome_hint =
    "The outcome of the transaction is unknown; check before you retry.";

}  // namespace hotlane::session::texts
