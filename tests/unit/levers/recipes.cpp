// The recipes: only for what may be split, and in the dialect that the engine accepts.
#include <catch2/catch.hpp>

#include "router/levers/recipes.hpp"
#include "router/sql/facts.hpp"
#include "router/sql/lexer.hpp"

namespace levers = hotlane::levers;
namespace sql = hotlane::sql;

namespace {

std::vector<std::string> engine_statements(const levers::recipe& r) {
    std::vector<std::string> out;
    const auto add = [&](const std::vector<levers::step>& steps) {
        for (const levers::step& s : steps)
            for (std::string& one : sql::split_statements(s.sql))
                out.push_back(std::move(one));
    };
    add(r.set_up);
    add(r.application);
    add(r.regularly);
    add({r.check});
    add(r.undo);
    return out;
}

// engine-facts.md, "Dialect limits that matter when hotlane writes SQL".
void check_dialect(const std::string& text) {
    CAPTURE(text);
    const auto facts = sql::analyze(text);
    CHECK(facts.parsed);
    const auto tokens = sql::tokenize(text);
    CHECK(tokens.back().end == text.size());  // no trailing comment
    bool in_set = false;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const auto word = sql::text_of(text, tokens[i]);
        if (tokens[i].what == sql::lexeme::string) CHECK(word.front() == '\'');
        if (word == "SET") in_set = true;
        if (word == "WHERE" || word == "FROM") in_set = false;
        CHECK_FALSE((in_set && word == "SELECT"));
        const bool names_relation = word == "INTO" || word == "TABLE" || word == "UPDATE";
        if (names_relation && i + 2 < tokens.size())
            CHECK(tokens[i + 2].what != sql::lexeme::dot);  // no schema
    }
    // A fence cannot refuse an unqualified DELETE.
    if (facts.statements.at(0).what == sql::kind::remove)
        CHECK(text.find("WHERE") != std::string::npos);
}

levers::hot_spot spot(const char* statement) {
    levers::hot_spot out;
    out.statement = statement;
    return out;
}

}  // namespace

TEST_CASE("a counter gets two recipes in the engine's dialect") {
    for (const char* text : {"UPDATE hits SET n = n + 1 WHERE id = $1",
                             "UPDATE \"My t\" SET \"N\" = \"N\" - $3 WHERE "
                             "slot = $1 AND delta = $2"}) {
        const auto advice = levers::advise(spot(text));
        CHECK(advice.can_be_sharded);
        REQUIRE(advice.recipes.size() == 2);
        CHECK(advice.recipes[0].name == "sharded_counter");
        CHECK(advice.recipes[1].name == "event_log");
        for (const levers::recipe& r : advice.recipes) {
            const auto all = engine_statements(r);
            CHECK(all.size() >= 8);
            for (const std::string& statement : all)
                check_dialect(statement);
            CHECK_FALSE(r.why.empty());
            CHECK_FALSE(r.undo.empty());
            CHECK_FALSE(levers::text_of(r).empty());
        }
    }
}

TEST_CASE("the sharded write is an upsert that fails loudly where the row is missing") {
    const auto advice = levers::advise(spot("UPDATE hits SET n = n + 1 WHERE id = $1"));
    REQUIRE(advice.recipes.size() == 2);
    CHECK(advice.recipes[0].application.at(0).sql ==
          "INSERT INTO \"hits_slots\" (\"id\", \"slot\", \"delta\") SELECT \"id\", CAST($2 AS "
          "BIGINT), CAST($3 AS BIGINT) FROM \"hits\" WHERE \"id\" = $1 ON CONFLICT (\"id\", "
          "\"slot\") DO UPDATE SET \"delta\" = \"delta\" + excluded.\"delta\"");
    CHECK(advice.recipes[0].application.at(0).on_postgres.find(
              "\"delta\" = \"hits_slots\".\"delta\" + excluded.\"delta\"") != std::string::npos);
    CHECK(advice.recipes[1].regularly.at(0).what.find("ROLLBACK at the first error") !=
          std::string::npos);
}

TEST_CASE("names of the new columns keep clear of the keys") {
    const auto advice = levers::advise(spot("UPDATE t SET n = n + 1 WHERE slot = 1 AND delta = 2"));
    REQUIRE(advice.recipes.size() == 2);
    const std::string& made = advice.recipes[0].set_up.at(0).sql;
    CHECK(made.find("\"slot_\" BIGINT") != std::string::npos);
    CHECK(made.find("\"delta_\" BIGINT") != std::string::npos);
}

TEST_CASE("a check, an overwrite and the unknown get no recipe") {
    auto advice = levers::advise(spot("UPDATE t SET n = n - 1 WHERE id = 1 AND n >= 1"));
    CHECK_FALSE(advice.can_be_sharded);
    CHECK(advice.recipes.empty());
    CHECK(advice.next.find("lever 3") != std::string::npos);
    advice = levers::advise(spot("UPDATE t SET n = $1 WHERE id = 1"));
    CHECK(advice.recipes.empty());
    CHECK(advice.next.find("lever 1") != std::string::npos);
    CHECK(levers::advise(spot("")).recipes.empty());
    // The engine has no schemas.
    CHECK(levers::advise(spot("UPDATE s.t SET n = n + 1 WHERE id = 1")).recipes.empty());
    // The sample is of another table than the hot one.
    levers::hot_spot other = spot("UPDATE t SET n = n + 1 WHERE id = 1");
    other.table = "u";
    CHECK(levers::advise(other).recipes.empty());
}
