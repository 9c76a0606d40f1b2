// What a session tells of its writes while a move copies ahead: never a commit too many, and every
// table of those that it counts.
#include <catch2/catch.hpp>

#include <set>

#include "tests/unit/session/script.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

namespace {

struct exchange {
    std::string client, home;
};

struct told {
    std::uint32_t commits{0};
    bool doubt{false}, everything{false}, ddl{false};
    std::set<std::string> tables;
};

told sum(const scripted_environment& env) {
    told all;
    for (std::size_t i = 0; i < env.ended.size(); ++i) {
        const auto& w = env.ended[i].writes;
        all.commits += w.commits;
        all.doubt = all.doubt || w.doubt;
        all.everything = all.everything || w.everything;
        all.ddl = all.ddl || w.ddl;
        all.tables.insert(env.ended_writes[i].begin(), env.ended_writes[i].end());
    }
    return all;
}

std::string done(std::string_view tag, char status = 'I') {
    return b::complete(tag) + b::ready(status);
}
std::string failed(char status = 'I', std::string_view state = "42601") {
    return b::error(state, "write conflict: no") + b::ready(status);
}
const std::string batch =
    f::parse("", "UPDATE t SET n = n + 1 WHERE id = $1") + f::bind("", "") + f::execute();
const std::string batch_done = b::parsed() + b::bound() + b::complete("UPDATE 1");

struct watched : script {
    explicit watched(home_kind kind = home_kind::engine) : script(kind) {
        env().watch = 9;
        logged_in();
    }
    told run(const std::vector<exchange>& all) {
        for (const auto& one : all) {
            if (!one.client.empty()) client(one.client);
            if (!one.home.empty()) home(one.home);
        }
        return sum(env());
    }
};

}  // namespace

TEST_CASE("a commit is counted where the engine says that it did something, with its tables") {
    struct row {
        const char* what;
        std::vector<exchange> said;
        std::uint32_t commits;
        std::set<std::string> tables;
        bool everything;
    };
    const auto q = [](std::string_view sql) { return f::query(sql); };
    const std::string update = "UPDATE t SET n = 1 WHERE id = 1";
    const std::vector<row> rows{
        {"autocommit", {{q(update), done("UPDATE 1")}}, 1, {"t"}, false},
        {"two of them",
         {{q(update), done("UPDATE 1")}, {q(update), done("UPDATE 3")}},
         2,
         {"t"},
         false},
        {"no row", {{q(update), done("UPDATE 0")}}, 0, {}, false},
        {"no row was inserted",
         {{q("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING"), done("INSERT 0 0")}},
         0,
         {},
         false},
        {"an insert",
         {{q("INSERT INTO \"Big\" VALUES (1)"), done("INSERT 0 1")}},
         1,
         {"Big"},
         false},
        {"a delete", {{q("DELETE FROM t WHERE id = 1"), done("DELETE 1")}}, 1, {"t"}, false},
        {"a read", {{q("SELECT strange(n) FROM t"), done("SELECT 1")}}, 0, {}, false},
        {"an error", {{q(update), failed()}}, 0, {}, false},
        {"a block",
         {{q("BEGIN"), done("BEGIN", 'T')},
          {q(update), done("UPDATE 1", 'T')},
          {q("INSERT INTO u VALUES (1)"), done("INSERT 0 1", 'T')},
          {q("COMMIT"), done("COMMIT")}},
         1,
         {"t", "u"},
         false},
        {"a block that wrote nothing",
         {{q("BEGIN"), done("BEGIN", 'T')},
          {q(update), done("UPDATE 0", 'T')},
          {q("COMMIT"), done("COMMIT")}},
         0,
         {},
         false},
        {"a block rolled back",
         {{q("BEGIN"), done("BEGIN", 'T')},
          {q(update), done("UPDATE 1", 'T')},
          {q("ROLLBACK"), done("ROLLBACK")}},
         0,
         {"t"},
         false},
        {"a COMMIT that says ROLLBACK",
         {{q("BEGIN"), done("BEGIN", 'T')},
          {q(update), done("UPDATE 1", 'T')},
          {q("SELECT x"), failed('E')},
          {q("COMMIT"), done("ROLLBACK")}},
         0,
         {"t"},
         false},
        {"a COMMIT that failed",
         {{q("BEGIN"), done("BEGIN", 'T')},
          {q(update), done("UPDATE 1", 'T')},
          {q("COMMIT"), failed('I', "40001")}},
         0,
         {"t"},
         false},
        // What the engine commits then is a commit of nobody: it is compared, and nothing is lost.
        {"COMMIT after an error: not certain",
         {{q("BEGIN"), done("BEGIN", 'T')},
          {q(update), done("UPDATE 1", 'T')},
          {q("SELECT x"), failed('E')},
          {q("COMMIT"), done("COMMIT")}},
         0,
         {"t"},
         false},
        {"a block that goes on after its error",
         {{q("BEGIN"), done("BEGIN", 'T')},
          {q("SELECT x"), failed('E')},
          {q(update), done("UPDATE 1", 'E')},
          {q("COMMIT"), done("COMMIT")}},
         1,
         {"t"},
         false},
        {"everything since the savepoint is undone",
         {{q("BEGIN"), done("BEGIN", 'T')},
          {q("SAVEPOINT a"), done("SAVEPOINT", 'T')},
          {q(update), done("UPDATE 1", 'T')},
          {q("ROLLBACK TO a"), done("ROLLBACK", 'T')},
          {q("COMMIT"), done("COMMIT")}},
         0,
         {"t"},
         false},
        {"what came before the savepoint stays",
         {{q("BEGIN"), done("BEGIN", 'T')},
          {q(update), done("UPDATE 1", 'T')},
          {q("SAVEPOINT a"), done("SAVEPOINT", 'T')},
          {q("INSERT INTO u VALUES (1)"), failed('E')},
          {q("ROLLBACK TO SAVEPOINT a"), done("ROLLBACK", 'T')},
          {q("COMMIT"), done("COMMIT")}},
         1,
         {"t"},
         false},
        {"an inner savepoint of the same name",
         {{q("BEGIN"), done("BEGIN", 'T')},
          {q("SAVEPOINT a"), done("SAVEPOINT", 'T')},
          {q(update), done("UPDATE 1", 'T')},
          {q("SAVEPOINT a"), done("SAVEPOINT", 'T')},
          {q("RELEASE a"), done("RELEASE", 'T')},
          {q("ROLLBACK TO a"), done("ROLLBACK", 'T')},
          {q("COMMIT"), done("COMMIT")}},
         0,
         {"t"},
         false},
        {"a savepoint of the block before says nothing of the next",
         {{q("BEGIN"), done("BEGIN", 'T')},
          {q(update), done("UPDATE 1", 'T')},
          {q("SAVEPOINT a"), done("SAVEPOINT", 'T')},
          {q("ROLLBACK"), done("ROLLBACK")},
          {q("BEGIN"), done("BEGIN", 'T')},
          {q("SAVEPOINT a"), done("SAVEPOINT", 'T')},
          {q(update), done("UPDATE 1", 'T')},
          {q("ROLLBACK TO a"), done("ROLLBACK", 'T')},
          {q("COMMIT"), done("COMMIT")}},
         0,
         {"t"},
         false},
        {"several statements in one message",
         {{q(update + "; DELETE FROM u WHERE id = 2"),
           b::complete("UPDATE 1") + b::complete("DELETE 1") + b::ready()}},
         1,  // one or two: the home's affair
         {"t", "u"},
         false},
        {"a message that failed in the middle",
         {{q(update + "; SELECT x"), b::complete("UPDATE 1") + failed()}},
         0,
         {"t"},
         false},
        {"a whole block in one message",
         {{q("BEGIN; " + update + "; COMMIT"),
           b::complete("BEGIN") + b::complete("UPDATE 1") + b::complete("COMMIT") + b::ready()}},
         1,
         {"t"},
         false},
        {"a write that the block behind it may take in",
         {{q(update + "; BEGIN; DELETE FROM u WHERE id = 2; COMMIT"),
           b::complete("UPDATE 1") + b::complete("BEGIN") + b::complete("DELETE 1") +
               b::complete("COMMIT") + b::ready()}},
         1,
         {"t", "u"},
         false},
        {"more answers than statements were read",
         {{q(update), b::complete("UPDATE 1") + b::complete("DELETE 4") + b::ready()}},
         1,
         {"t"},
         true},
        {"a write inside a WITH",
         {{q("WITH x AS (DELETE FROM u WHERE id = 1 RETURNING id) "
             "INSERT INTO t SELECT id FROM x"),
           done("INSERT 0 1")}},
         1,
         {},
         true},
        {"a SELECT that deletes",
         {{q("WITH x AS (DELETE FROM u WHERE id = 1 RETURNING id) SELECT id FROM x"),
           done("SELECT 1")}},
         0,
         {},
         true},
        {"a text that only the engine reads",
         {{q("REPLACE INTO t VALUES (1)"), done("INSERT 0 1")}},
         1,
         {},
         true},
        {"a batch of the extended protocol",
         {{batch + f::sync(), batch_done + b::ready()}},
         1,
         {"t"},
         false},
        {"two writes in one batch",
         {{batch + batch + f::sync(), batch_done + batch_done + b::ready()}},
         1,
         {"t"},
         false},
        {"a batch whose Sync fails",
         {{batch + f::sync(), batch_done + b::error("40001", "write conflict") + b::ready()}},
         0,
         {"t"},
         false},
        {"a pipeline of batches",
         {{batch + f::sync() + batch + f::sync(),
           batch_done + b::ready() + batch_done + b::ready()}},
         2,
         {"t"},
         false},
        {"the batch behind a failed one",
         {{batch + f::sync() + batch + f::sync(),
           b::parsed() + b::bound() + b::error("40001", "write conflict") + b::ready() +
               batch_done + b::ready()}},
         1,
         {"t"},
         false},
    };
    for (const auto& r : rows) {
        INFO(r.what);
        watched s;
        const auto got = s.run(r.said);
        CHECK(got.commits == r.commits);
        CHECK(got.tables == r.tables);
        CHECK(got.everything == r.everything);
        CHECK_FALSE(got.doubt);
        CHECK_FALSE(got.ddl);
        CHECK(s.env().inside == 0);
        for (const auto& one : s.env().ended)
            CHECK(one.writes.watch == 9);
    }
}

TEST_CASE("DDL is told, unless it is of the session alone") {
    const std::vector<std::pair<std::string, bool>> rows{
        {"CREATE TABLE x (id INTEGER)", true},
        {"ALTER TABLE x ADD COLUMN n INTEGER", true},
        {"DROP TABLE x", true},
        {"CREATE TABLE x (id INTEGER PRIMARY KEY AUTOINCREMENT)", true},
        {"CREATE TEMP TABLE x (id INTEGER)", false}};
    for (const auto& [sql, is_told] : rows) {
        INFO(sql);
        watched s;
        const auto got = s.run({{f::query(sql), done(sql.substr(0, sql.find(' ')))}});
        CHECK(got.ddl == is_told);
        CHECK(got.commits == 0);
    }
}

TEST_CASE("an outcome that nobody knows is a doubt, and no commit") {
    SECTION("the reply of an autocommit write is lost") {
        watched s;
        s.client(f::query("UPDATE t SET n = 1"));
        s.link_lost();
        CHECK(sum(s.env()).doubt);
        CHECK(sum(s.env()).commits == 0);
    }
    SECTION("the reply of COMMIT is lost") {
        watched s;
        s.run({{f::query("BEGIN"), done("BEGIN", 'T')},
               {f::query("UPDATE t SET n = 1"), done("UPDATE 1", 'T')},
               {f::query("COMMIT"), ""}});
        s.link_lost();
        CHECK(sum(s.env()).doubt);
        CHECK(sum(s.env()).commits == 0);
        CHECK(sum(s.env()).tables == std::set<std::string>{"t"});
    }
    SECTION("the engine says that it does not know") {
        watched s;
        const auto got = s.run({{f::query("UPDATE t SET n = 1"),
                                 b::error("40001", "durability: not confirmed") + b::ready()}});
        CHECK(got.doubt);
        CHECK(got.commits == 0);
    }
    SECTION("the client left before the answer") {
        watched s;
        s.client(f::query("UPDATE t SET n = 1"));
        s.client_eof();
        s.client_eof();
        CHECK(s.client_closed);
        CHECK(sum(s.env()).doubt);
    }
    SECTION("a link that is lost in a block has committed nothing") {
        watched s;
        s.run({{f::query("BEGIN"), done("BEGIN", 'T')},
               {f::query("UPDATE t SET n = 1"), done("UPDATE 1", 'T')}});
        s.link_lost();
        CHECK_FALSE(sum(s.env()).doubt);
        CHECK(sum(s.env()).commits == 0);
    }
}

TEST_CASE("a try that met a conflict is no commit, the one that succeeds is one") {
    watched s;
    s.env().rule = {.on = true,
                    .attempts = 3,
                    .time = milliseconds(1'000),
                    .pause_first = milliseconds(4),
                    .pause_max = milliseconds(10),
                    .bytes_max = 1'000};
    s.client(f::query("UPDATE t SET n = n + 1 WHERE id = 1"));
    s.home(b::error("40001", "write conflict on t") + b::ready());
    s.timer_fires(timer::retry);
    s.home(done("UPDATE 1"));
    const auto got = sum(s.env());
    CHECK(got.commits == 1);
    CHECK_FALSE(got.doubt);
    CHECK(got.tables == std::set<std::string>{"t"});
}

TEST_CASE("nobody is told where nobody watches, or the tool lives on PostgreSQL") {
    SECTION("no watch") {
        watched s;
        s.env().watch = 0;
        const auto got = s.run({{f::query("UPDATE t SET n = 1"), done("UPDATE 1")}});
        CHECK(got.commits == 0);
        CHECK(got.tables.empty());
        CHECK(s.env().ended[0].writes.watch == 0);
    }
    SECTION("PostgreSQL") {
        watched s(home_kind::postgres);
        const auto got =
            s.run({{f::query("UPDATE t SET n = 1 WHERE id = 1"), done("SET") + done("UPDATE 1")}});
        CHECK(got.commits == 0);
        REQUIRE(s.env().ended.size() == 1);
        CHECK(s.env().ended[0].writes.watch == 0);
    }
}

TEST_CASE("what began before the watch is not in it") {
    watched s;
    s.env().watch = 0;
    s.run({{f::query("BEGIN"), done("BEGIN", 'T')},
           {f::query("UPDATE t SET n = 1"), done("UPDATE 1", 'T')}});
    s.env().watch = 9;
    auto got = s.run({{f::query("COMMIT"), done("COMMIT")}});
    CHECK(got.commits == 0);
    CHECK(s.env().ended.back().writes.watch == 0);
    got = s.run({{f::query("UPDATE t SET n = 1"), done("UPDATE 1")}});
    CHECK(got.commits == 1);
    CHECK(s.env().ended.back().writes.watch == 9);
}
