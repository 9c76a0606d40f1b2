// What analyze() says of single statements: one row each.
#include <catch2/catch.hpp>

#include "router/sql/facts.hpp"

namespace sql = hotlane::sql;
using sql::kind;

namespace {

struct row {
    const char* text;
    kind what;
    // w: may write, 1: single-row write, i: names isolation, t: temporary, l: session lock,
    // s: changes the session beyond replay, c: chain, u: not parsed by PostgreSQL's parser
    const char* flags;
    const char* table = "";
    const char* name = "";
};

std::string flags_of(const sql::facts& facts) {
    const sql::statement& s = facts.statements.front();
    std::string out;
    if (s.may_write) out += 'w';
    if (s.single_row_write) out += '1';
    if (s.names_isolation) out += 'i';
    if (s.temporary) out += 't';
    if (s.takes_advisory_lock) out += 'l';
    if (s.changes_session) out += 's';
    if (s.chain) out += 'c';
    if (!facts.parsed) out += 'u';
    return out;
}

void check(const row& r) {
    CAPTURE(r.text);
    const sql::facts facts = sql::analyze(r.text);
    REQUIRE(facts.statements.size() == 1);
    const sql::statement& s = facts.statements.front();
    CHECK(static_cast<int>(s.what) == static_cast<int>(r.what));
    CHECK(flags_of(facts) == r.flags);
    CHECK(s.table == r.table);
    CHECK(s.name == r.name);
    CHECK(facts.fingerprint != 0);
}

}  // namespace

TEST_CASE("transactions") {
    const row rows[] = {
        {"BEGIN", kind::begin, ""},
        {"begin;", kind::begin, ""},
        {"BEGIN WORK", kind::begin, ""},
        {"START TRANSACTION", kind::begin, ""},
        {"/* hi */ BEGIN -- there", kind::begin, ""},
        {"BEGIN ISOLATION LEVEL SERIALIZABLE", kind::begin, "i"},
        {"BEGIN READ ONLY", kind::begin, ""},
        {"BEGIN READ WRITE, ISOLATION LEVEL READ COMMITTED", kind::begin, "i"},
        {"START TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY", kind::begin, "i"},
        {"BEGIN IMMEDIATE", kind::begin, "u"},
        {"BEGIN DEFERRED TRANSACTION", kind::begin, "u"},
        {"COMMIT", kind::commit, "w"},
        {"END", kind::commit, "w"},
        {"END TRANSACTION", kind::commit, "w"},
        {"COMMIT AND CHAIN", kind::commit, "wc"},
        {"COMMIT AND NO CHAIN", kind::commit, "w"},
        {"ROLLBACK", kind::rollback, ""},
        {"ABORT", kind::rollback, ""},
        {"ROLLBACK AND CHAIN", kind::rollback, "c"},
        {"SAVEPOINT a", kind::savepoint, "", "", "a"},
        {"SAVEPOINT \"A b\"", kind::savepoint, "", "", "A b"},
        {"RELEASE a", kind::release, "", "", "a"},
        {"RELEASE SAVEPOINT a", kind::release, "", "", "a"},
        {"ROLLBACK TO a", kind::rollback_to, "", "", "a"},
        {"ROLLBACK TO SAVEPOINT a", kind::rollback_to, "", "", "a"},
        {"PREPARE TRANSACTION 'x'", kind::prepare_transaction, "w"},
        {"COMMIT PREPARED 'x'", kind::other, "w"},
        {"ROLLBACK PREPARED 'x'", kind::other, "w"},
        {"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", kind::set_transaction, "i"},
        {"SET TRANSACTION READ ONLY", kind::set_transaction, ""},
        {"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
         kind::set_session_characteristics,
         "i"},
        {"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
         kind::set_session_characteristics,
         ""},
        {"SET default_transaction_isolation TO 'serializable'", kind::set, "i"},
        {"SET LOCAL transaction_isolation = 'serializable'", kind::set_transaction, "i"},
    };
    for (const row& r : rows)
        check(r);
}

TEST_CASE("reads, and reads that write") {
    const row rows[] = {
        {"SELECT 1", kind::select, ""},
        {"select * from t where id = $1", kind::select, ""},
        {"SELECT count(*), sum(a), max(b) FROM t GROUP BY c HAVING min(d) > 1", kind::select, ""},
        {"SELECT a.x FROM a JOIN b USING (id) ORDER BY 1 LIMIT 5", kind::select, ""},
        {"SELECT now(), current_timestamp, pg_catalog.version()", kind::select, ""},
        {"SELECT lower(x) || 'a' FROM t", kind::select, ""},
        {"SELECT * FROM generate_series(1, 10)", kind::select, ""},
        {"VALUES (1), (2)", kind::select, ""},
        {"TABLE t", kind::select, ""},
        {"TABLE twill_stats", kind::select, ""},
        {"SHOW twill.stats", kind::show, ""},
        {"SHOW search_path", kind::show, ""},
        {"SELECT EXISTS (SELECT 1 FROM t)", kind::select, ""},
        {"WITH x AS (SELECT 1) SELECT * FROM x", kind::select, ""},
        {"SELECT 1 UNION ALL SELECT 2", kind::select, ""},
        {"SELECT row_number() OVER (PARTITION BY a) FROM t", kind::select, ""},
        {"SELECT pg_sleep(1)", kind::select, ""},
        {"SELECT COALESCE(a, 0), CASE WHEN b THEN 1 END, a::text FROM t", kind::select, ""},
        {"SELECT f(1)", kind::select, "w"},
        {"SELECT s.lower('x')", kind::select, "w"},
        {"SELECT nextval('s')", kind::select, "w"},
        {"SELECT \"Lower\"('x')", kind::select, "w"},
        {"SELECT * FROM t WHERE f(x)", kind::select, "w"},
        {"SELECT (SELECT f(1))", kind::select, "w"},
        {"SELECT * FROM t FOR UPDATE", kind::select, "w"},
        {"SELECT * FROM t FOR NO KEY UPDATE SKIP LOCKED", kind::select, "w"},
        {"SELECT * FROM (SELECT * FROM t FOR SHARE) x", kind::select, "w"},
        {"WITH d AS (DELETE FROM t RETURNING id) SELECT * FROM d", kind::select, "w", "t"},
        {"WITH d AS (DELETE FROM t RETURNING 1), e AS (INSERT INTO u VALUES (1)) SELECT 1",
         kind::select,
         "w",
         ""},
        {"SELECT * INTO x FROM t", kind::ddl, "w", "x"},
        {"SELECT * INTO TEMP x FROM t", kind::ddl, "wt", "x"},
        {"SELECT pg_advisory_lock(1)", kind::select, "l"},
        {"SELECT pg_try_advisory_lock(1, 2)", kind::select, "l"},
        {"SELECT pg_advisory_lock_shared(1)", kind::select, "l"},
        {"SELECT pg_try_advisory_lock_shared(1)", kind::select, "l"},
        {"SELECT pg_advisory_xact_lock(1)", kind::select, ""},
        {"SELECT pg_try_advisory_xact_lock_shared(1)", kind::select, ""},
        {"SELECT pg_advisory_unlock_all()", kind::select, ""},
        {"SELECT 1 WHERE pg_try_advisory_lock(3)", kind::select, "l"},
        {"EXPLAIN SELECT 1", kind::explain, ""},
        {"EXPLAIN UPDATE t SET a = 1", kind::explain, ""},
        {"EXPLAIN ANALYZE SELECT 1", kind::explain, ""},
        {"EXPLAIN ANALYZE UPDATE t SET a = 1", kind::explain, "w"},
        {"EXPLAIN (ANALYZE, BUFFERS) DELETE FROM t", kind::explain, "w"},
        {"COPY t TO STDOUT", kind::copy_out, ""},
        {"COPY (SELECT 1) TO STDOUT WITH (FORMAT csv)", kind::copy_out, ""},
        {"COPY (DELETE FROM t RETURNING *) TO STDOUT", kind::copy_out, "w"},
        {"COPY t (a, b) FROM STDIN", kind::copy_in, "w", "t"},
        {"COPY t FROM '/x'", kind::other, "w", "t"},
        {"COPY t TO PROGRAM 'cat'", kind::other, "w"},
    };
    for (const row& r : rows)
        check(r);
}

TEST_CASE("writes of one row, and of more") {
    const row rows[] = {
        {"UPDATE t SET n = n + 1 WHERE id = $1", kind::update, "w1", "t"},
        {"UPDATE t AS x SET n = x.n + 1 WHERE x.id = 5 RETURNING n", kind::update, "w1", "t"},
        {"UPDATE t SET n = n - 1 WHERE id = 1 AND n >= 1", kind::update, "w1", "t"},
        {"UPDATE t SET a = lower(b), c = now() WHERE id = 1", kind::update, "w1", "t"},
        {"UPDATE public.t SET n = 1 WHERE id = 1", kind::update, "w1", "t"},
        {"UPDATE s.t SET n = 1 WHERE id = 1", kind::update, "w1", "s.t"},
        {"UPDATE \"T x\" SET n = 1 WHERE id IN (1, 2)", kind::update, "w1", "T x"},
        {"UPDATE t SET n = 1", kind::update, "w", "t"},
        {"UPDATE t SET n = (SELECT 1) WHERE id = 1", kind::update, "w", "t"},
        {"UPDATE t SET n = 1 WHERE id IN (SELECT id FROM u)", kind::update, "w", "t"},
        {"UPDATE t SET n = u.n FROM u WHERE u.id = t.id", kind::update, "w", "t"},
        {"WITH x AS (SELECT 1) UPDATE t SET n = 1 WHERE id = 1", kind::update, "w", "t"},
        {"UPDATE t SET n = f(n) WHERE id = 1", kind::update, "w", "t"},
        {"UPDATE t SET n = 1 WHERE CURRENT OF c", kind::update, "w", "t"},
        {"DELETE FROM t WHERE id = 1", kind::remove, "w1", "t"},
        {"DELETE FROM t", kind::remove, "w", "t"},
        {"DELETE FROM t USING u WHERE t.id = u.id", kind::remove, "w", "t"},
        {"DELETE FROM t WHERE EXISTS (SELECT 1 FROM u)", kind::remove, "w", "t"},
        {"INSERT INTO t VALUES (1)", kind::insert, "w1", "t"},
        {"INSERT INTO t (a) VALUES (1), (2)", kind::insert, "w1", "t"},
        {"INSERT INTO t DEFAULT VALUES", kind::insert, "w1", "t"},
        {"INSERT INTO t VALUES (nextval('s'), now())", kind::insert, "w1", "t"},
        {"INSERT INTO t (id, n) VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET n = t.n + 1",
         kind::insert,
         "w1",
         "t"},
        {"INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING RETURNING id", kind::insert, "w1", "t"},
        {"INSERT INTO t VALUES ((SELECT max(id) FROM t))", kind::insert, "w", "t"},
        {"INSERT INTO t SELECT * FROM u", kind::insert, "w", "t"},
        {"INSERT INTO t SELECT 1", kind::insert, "w", "t"},
        {"INSERT INTO t TABLE u", kind::insert, "w", "t"},
        {"INSERT INTO t VALUES (f(1))", kind::insert, "w", "t"},
        {"INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET n = (SELECT 1)",
         kind::insert,
         "w",
         "t"},
        {"WITH x AS (SELECT 1) INSERT INTO t VALUES (1)", kind::insert, "w", "t"},
        {"INSERT OR REPLACE INTO t VALUES (1)", kind::insert, "wu", "t"},
        {"REPLACE INTO `t` VALUES (1)", kind::insert, "wu", "t"},
        {"MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE", kind::merge, "w", "t"},
        {"TRUNCATE t", kind::other, "w", "t"},
        {"TRUNCATE t, u", kind::other, "w"},
    };
    for (const row& r : rows)
        check(r);
}

TEST_CASE("objects, cursors and the rest") {
    const row rows[] = {
        {"CREATE TABLE t (a int)", kind::ddl, "w", "t"},
        {"CREATE TEMP TABLE t (a int)", kind::ddl, "wt", "t"},
        {"CREATE TABLE pg_temp.t (a int)", kind::ddl, "wt", "pg_temp.t"},
        {"CREATE TEMPORARY TABLE t AS SELECT 1", kind::ddl, "wt", "t"},
        {"CREATE TABLE t AS SELECT 1", kind::ddl, "w", "t"},
        {"CREATE TEMP VIEW v AS SELECT 1", kind::ddl, "wt", "v"},
        {"CREATE VIEW v AS SELECT 1", kind::ddl, "w", "v"},
        {"CREATE TEMP SEQUENCE s", kind::ddl, "wt", "s"},
        {"CREATE UNIQUE INDEX i ON t (a)", kind::ddl, "w", "t"},
        {"CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT)", kind::ddl, "wu", "t"},
        {"CREATE TEMP TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT)", kind::ddl, "wtu", "t"},
        {"ALTER TABLE t ADD COLUMN b int", kind::ddl, "w", "t"},
        {"ALTER TABLE t RENAME TO u", kind::ddl, "w", "t"},
        {"ALTER TABLE t RENAME COLUMN a TO b", kind::ddl, "w", "t"},
        {"DROP TABLE t", kind::ddl, "w", "t"},
        {"DROP TABLE IF EXISTS t, u", kind::ddl, "w"},
        {"CREATE EXTENSION x", kind::ddl, "w"},
        {"GRANT ALL ON t TO u", kind::ddl, "w"},
        {"COMMENT ON TABLE t IS 'x'", kind::ddl, "w"},
        {"VACUUM", kind::other, "w"},
        {"DO 'begin end'", kind::other, "w"},
        {"LOAD 'x'", kind::other, "ws"},
        {"PREPARE p AS SELECT 1", kind::prepare, "", "", "p"},
        {"EXECUTE p (1)", kind::execute, "w", "", "p"},
        {"DEALLOCATE p", kind::deallocate, "", "", "p"},
        {"DEALLOCATE PREPARE p", kind::deallocate, "", "", "p"},
        {"DEALLOCATE ALL", kind::deallocate_all, ""},
        {"DISCARD ALL", kind::discard_all, ""},
        {"DISCARD TEMP", kind::other, "w"},
        {"LISTEN c", kind::listen, "", "", "c"},
        {"UNLISTEN c", kind::unlisten, "", "", "c"},
        {"UNLISTEN *", kind::unlisten, ""},
        {"NOTIFY c, 'x'", kind::notify, "w", "", "c"},
        {"DECLARE c CURSOR FOR SELECT 1", kind::declare_cursor, "", "", "c"},
        {"DECLARE c CURSOR WITH HOLD FOR SELECT 1", kind::declare_cursor_hold, "", "", "c"},
        {"DECLARE c CURSOR FOR SELECT f()", kind::declare_cursor, "w", "", "c"},
        {"FETCH 5 FROM c", kind::fetch, "w", "", "c"},
        {"MOVE c", kind::fetch, "w", "", "c"},
        {"CLOSE c", kind::close_cursor, "", "", "c"},
        {"CLOSE ALL", kind::close_cursor, ""},
        {"LOCK TABLE t", kind::lock, ""},
        {"CALL p(1)", kind::call, "w"},
        {"PRAGMA foreign_keys = on", kind::other, "wu"},
        {"SELECT 'never closed", kind::other, "wu"},
        {"gibberish here", kind::other, "wu"},
        {"SELECT * FROM `t` WHERE a = 1", kind::select, "u"},
        {"SELECT * FROM t LIMIT 5, 10", kind::select, "u"},
        {"SELECT nothing_known(a) FROM t LIMIT 5, 10", kind::select, "wu"},
        {"ROLLBACK TRANSACTION TO SAVEPOINT x", kind::rollback_to, "", "", "x"},
    };
    for (const row& r : rows)
        check(r);
}
