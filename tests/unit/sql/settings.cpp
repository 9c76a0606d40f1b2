// SET, RESET, set_config: what is changed, to what, and the text that does it again.
#include <catch2/catch.hpp>

#include "router/sql/facts.hpp"

namespace sql = hotlane::sql;
using sql::kind;

namespace {

constexpr const char* reset_to_default = "\x01";

struct row {
    const char* text;
    kind what;
    const char* name;
    const char* value;
    bool local = false;
    const char* replay = nullptr;  // null: the text itself
};

}  // namespace

TEST_CASE("parameters that can be replayed") {
    const row rows[] = {
        {"SET a.b = 'x y'", kind::set, "a.b", "x y"},
        {"SET search_path TO a, \"B\", public", kind::set, "search_path", "a, B, public"},
        {"set SESSION DateStyle = ISO", kind::set, "datestyle", "iso"},
        {"SET LOCAL statement_timeout = 100", kind::set_local, "statement_timeout", "100", true},
        {"SET statement_timeout = -1", kind::set, "statement_timeout", "-1"},
        {"SET x TO DEFAULT", kind::set, "x", reset_to_default},
        {"SET enable_seqscan = off", kind::set, "enable_seqscan", "off"},
        {"SET geqo_seed = 0.5", kind::set, "geqo_seed", "0.5"},
        {"SET TIME ZONE 'UTC'", kind::set, "timezone", "UTC"},
        {"SET TIME ZONE LOCAL", kind::set, "timezone", reset_to_default},
        {"SET NAMES 'latin1'", kind::set, "client_encoding", "latin1"},
        {"SET SCHEMA 'x'", kind::set, "search_path", "x"},
        {"RESET x", kind::reset, "x", reset_to_default},
        {"RESET TIME ZONE", kind::reset, "timezone", reset_to_default},
        {"RESET ALL", kind::reset, "all", reset_to_default},
        {"SET ROLE bob", kind::set_role, "role", "bob"},
        {"SET LOCAL ROLE bob", kind::set_role, "role", "bob", true},
        {"SET ROLE NONE", kind::set_role, "role", "none"},
        {"SET SESSION AUTHORIZATION bob", kind::set_role, "session_authorization", "bob"},
        {"RESET ROLE", kind::set_role, "role", reset_to_default},
        {"RESET SESSION AUTHORIZATION", kind::set_role, "session_authorization", reset_to_default},
        {"SELECT set_config('A.b', 'it''s', false)",
         kind::select,
         "a.b",
         "it's",
         false,
         "SELECT set_config('A.b', 'it''s', false)"},
        {"select pg_catalog.set_config('search_path', '', true) as x",
         kind::select,
         "search_path",
         "",
         true,
         "SELECT set_config('search_path', '', true)"},
        {"SELECT set_config('a', NULL, 'f'::bool)",
         kind::select,
         "a",
         reset_to_default,
         false,
         "SELECT set_config('a', NULL, false)"},
        {"SELECT set_config('role', 'bob', false)",
         kind::set_role,
         "role",
         "bob",
         false,
         "SELECT set_config('role', 'bob', false)"},
    };
    for (const row& r : rows) {
        CAPTURE(r.text);
        const sql::facts facts = sql::analyze(std::string("/**/ ") + r.text + " ;");
        REQUIRE(facts.statements.size() == 1);
        const sql::statement& s = facts.statements.front();
        CHECK(static_cast<int>(s.what) == static_cast<int>(r.what));
        CHECK_FALSE(s.may_write);
        CHECK_FALSE(s.changes_session);
        REQUIRE(s.parameter);
        CHECK(s.parameter->name == r.name);
        CHECK(s.parameter->value.value_or(reset_to_default) == r.value);
        CHECK(s.parameter->local == r.local);
        CHECK(s.parameter->sql == (r.replay != nullptr ? r.replay : r.text));
    }
}

TEST_CASE("changes that cannot be replayed pin the session") {
    for (const char* text : {
             "SELECT set_config($1, $2, false)",
             "SELECT set_config('a', x, false) FROM t",
             "SELECT set_config('a', 'b', false) FROM t",
             "SELECT set_config('a', 'b', false) WHERE random() > 0.5",
             "SELECT set_config('a', 'b', false), set_config('c', 'd', false)",
             "SELECT length(set_config('a', 'b', false))",
             "SELECT set_config('a', current_setting('b'), false)",
             "INSERT INTO t VALUES (set_config('a', 'b', false))",
             "SET x FROM CURRENT",
             "LOAD 'auto_explain'",
         }) {
        CAPTURE(text);
        const sql::facts facts = sql::analyze(text);
        REQUIRE(facts.statements.size() == 1);
        CHECK(facts.statements.front().changes_session);
    }
}

TEST_CASE("set_config of an isolation level names one") {
    const auto facts =
        sql::analyze("SELECT set_config('default_transaction_isolation', 'serializable', false)");
    CHECK(facts.statements.at(0).names_isolation);
}
