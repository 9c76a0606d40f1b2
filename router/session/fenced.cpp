// Answers that only a home gives that the tool has left. A sidecar can meet one when a move went
// past it: the fleet's store was away, or had forgotten it. The fence has then refused the
// statement whole, so nothing of it is in force: the homes are asked where the tool lives, and what
// was said at the beginning of a transaction, with nothing of its answer passed on, is said again
// there. Any other transaction ends with 40001.
//
// An engine cannot refuse every statement at a fenced name (design: limits of a tombstone). While
// the store does not vouch for the tool's home, such statements are not sent to one.
#include <algorithm>
#include <array>

#include "router/session/implementation.hpp"
#include "router/wire/sqlstate.hpp"

namespace hotlane::session {
namespace {

// The home must fail it, for the state of the transaction to be the one that the client sees.
constexpr std::string_view refused_query = "SELECT hotlane_home_is_not_confirmed";

}  // namespace

bool session::implementation::withholds(const sql::facts* facts) const {
    if (link_kind_ != policy::home_kind::engine || env_.is_confirmed()) return false;
    if (facts == nullptr) return true;
    return std::any_of(facts->statements.begin(), facts->statements.end(), [](const auto& one) {
        return one.names_no_column;
    });
}

void session::implementation::withhold_query(const client_frame& frame) {
    owed entry;
    entry.what = owes::query;
    entry.facts = facts_of(refused_query);
    entry.instead = said(texts::unconfirmed(tool_.name));
    unsynced_ = ran_ = false;
    statements_.closing("");
    if (lent_) lent_->statements.drop_unnamed();
    statements_.next_batch();
    owed_.push(std::move(entry));
    wire::append_query(to_link_.out(), refused_query);
    client_discards_ = !frame.complete;
}

void session::implementation::withhold_execute(owed entry) {
    entry.instead = said(texts::unconfirmed(tool_.name));
    drop_unfinished_retry();
    poison(std::move(entry), wire::tag_f::describe);
}

bool session::implementation::tells_of_fence(const wire::error_fields& fields) const {
    const std::string_view words = fields.message;
    if (link_kind_ == policy::home_kind::postgres)
        return fields.sqlstate == "55000" &&
               words.find(" has left this server (move ") != words.npos;
    // What stands in a fenced table's place has one column that nobody knows. A confirmed home has
    // none such: these are mistakes of the client, then.
    if (env_.is_confirmed()) return false;
    // Asked about the same, and the homes said that the tool is here.
    if (begun_anew_ > 0 && link_generation_ == left_generation_) return false;
    static constexpr std::array<std::string_view, 5> signs{
        "no such column", "no such table", "has no column named", "hotlane_moved", "columns but"};
    return std::any_of(signs.begin(), signs.end(), [&](std::string_view sign) {
        return words.find(sign) != words.npos;
    });
}

// In place of the home's words; false: they are the client's.
bool session::implementation::give_fence(const wire::error_fields& fields) {
    if (!tells_of_fence(fields) || !env_.left_home()) return false;
    // On an engine it may as well be the client's mistake: it reads the home's words.
    texts::append(
        to_client_.out(), texts::severity::error, texts::left_home(tool_.name, fields.message));
    link_swallows_ = true;
    return true;
}

// The transaction is over and the client knows nothing of it: its messages are taken once more,
// behind the gate.
void session::implementation::begin_anew() {
    auto& all = *again_;
    all.active = all.complete = all.failed = all.moved = false;
    all.replies.clear();
    ++begun_anew_;
    left_generation_ = link_generation_;
    errors_ = 0;
    inbox_.insert(0, all.asked);
    all.asked.clear();
}

}  // namespace hotlane::session
