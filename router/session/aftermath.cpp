// What a transaction left in the session of a shared link though no text says so: a function, a
// procedure or a trigger that sets, locks, listens, makes a temporary table. Before such a link is
// lent to another client the home is asked. What is found pins the session, and whoever runs the
// same statement later is pinned at once; a statement that is always clean is asked about ever more
// rarely.
#include <algorithm>
#include <unordered_map>

#include "router/session/implementation.hpp"

namespace hotlane::session {
namespace {

// A setting of one's own is in no catalog: its name is looked for in the code that may set it.
constexpr std::string_view question =
    "SELECT pg_catalog.lower(name) FROM pg_catalog.pg_settings WHERE source = 'session' "
    "UNION ALL SELECT own FROM (SELECT DISTINCT pg_catalog.lower(m[1]) AS own "
    "FROM pg_catalog.pg_proc p, pg_catalog.regexp_matches(p.prosrc, "
    "$re$(?:set_config\\s*\\(\\s*'|\\mset\\s+(?:session\\s+)?)"
    "([a-z_][a-z0-9_$]*\\.[a-z0-9_$.]+)$re$, 'gi') m WHERE p.pronamespace <> 11) s "
    "WHERE pg_catalog.current_setting(own, true) <> '' "
    "UNION ALL SELECT '-temporary' WHERE pg_catalog.pg_my_temp_schema() <> 0 AND EXISTS "
    "(SELECT FROM pg_catalog.pg_class WHERE relnamespace = pg_catalog.pg_my_temp_schema()) "
    "UNION ALL SELECT '-lock' FROM pg_catalog.pg_locks "
    "WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid() "
    "UNION ALL SELECT '-listen' FROM pg_catalog.pg_listening_channels() "
    "UNION ALL SELECT '-cursor' FROM pg_catalog.pg_cursors WHERE is_holdable "
    "UNION ALL SELECT '-prepared' FROM pg_catalog.pg_prepared_statements WHERE from_sql";

// By tool and kind of statement, one table a thread: how often it ran, or that it leaves something.
using trust_table = std::unordered_map<std::uint64_t, std::uint32_t>;
constexpr std::size_t trust_max = 8'192;
constexpr std::uint32_t leaves_something = ~0U;
constexpr std::uint32_t always_asked = 4;  // times; then every
constexpr std::uint32_t asked_every = 256;

trust_table& trust() {
    thread_local trust_table all;
    return all;
}

bool is_known(const pairs& set_by_client, std::string_view name) {
    // Ours (isolation.cpp), or of a SET SESSION CHARACTERISTICS.
    if (name == "default_transaction_isolation") return true;
    return std::any_of(set_by_client.begin(), set_by_client.end(), [&](const auto& one) {
        return one.first == name ||
               (one.first == characteristics_key && name.starts_with("default_transaction_"));
    });
}

}  // namespace

// A statement is sent on a borrowed link. Plain reads do nothing that is not in their text.
void session::implementation::suspect(const sql::facts* facts) {
    if (!lent_ || link_kind_ != policy::home_kind::postgres) return;
    if (!facts) {
        asks_aftermath_ = true;
        return;
    }
    const auto acts = [](const sql::statement& one) {
        return one.calls_unknown || (writes_data(one) && one.what != sql::kind::ddl);
    };
    if (facts->parsed && std::none_of(facts->statements.begin(), facts->statements.end(), acts))
        return;
    auto& all = trust();
    if (all.size() >= trust_max) all.clear();
    const auto key = facts->fingerprint ^ std::hash<std::string>{}(tool_.name);
    auto& runs = all[key];
    if (runs == leaves_something) {
        state_.pin_now(pin::session_function);
        return;
    }
    ++runs;
    if (runs > always_asked && runs % asked_every != 0) return;
    asks_aftermath_ = true;
    if (suspects_.size() < suspects_max) suspects_.push_back(key);
}

// The transaction is over. True: the link stays until the home has answered.
bool session::implementation::ask_aftermath() {
    if (!std::exchange(asks_aftermath_, false)) return false;
    const bool current = lent_->generation == env_.target().generation;
    if (!current || lent_->spoiled || to_link_.size() > 0) {
        suspects_.clear();
        return false;
    }
    link_ = link_phase::replaying;
    lent_->statements.drop_unnamed();
    wire::append_query(to_link_.out(), question);
    owed entry;
    entry.what = owes::query;
    entry.from = sender::aftermath;
    owed_.push(std::move(entry));
    return true;
}

void session::implementation::aftermath_reply(char tag, std::string_view body) {
    bool left = tag == wire::tag_b::error;
    if (tag == wire::tag_b::data_row) {
        const auto row = wire::decode_data_row(body);
        left = !row || row->size() != 1 || !row->front() ||
               !is_known(state_.parameters(), *row->front());
    }
    if (left) {
        state_.pin_now(pin::session_function);
        for (const auto key : suspects_)
            if (tag != wire::tag_b::error) trust()[key] = leaves_something;
    }
    if (left || tag == wire::tag_b::command_complete) suspects_.clear();
}

}  // namespace hotlane::session
