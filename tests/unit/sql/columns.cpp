// Which statements name no column of a table that they use.
#include <catch2/catch.hpp>

#include "router/sql/facts.hpp"

using namespace hotlane::sql;

namespace {

bool names_none(const std::string& sql) {
    const auto all = analyze(sql);
    REQUIRE(all.statements.size() == 1);
    return all.statements.front().names_no_column;
}

}  // namespace

TEST_CASE("statements that a table of one foreign column might not refuse") {
    const auto sql =
        GENERATE(values<std::string>({"SELECT count(*) FROM t",
                                      "SELECT * FROM t",
                                      "SELECT t.* FROM t",
                                      "SELECT 1 FROM t",
                                      "SELECT count(*) AS n FROM t ORDER BY n",
                                      "SELECT n FROM (SELECT count(*) AS n FROM t) q",
                                      "WITH c(n) AS (SELECT count(*) FROM t) SELECT n FROM c",
                                      "SELECT EXISTS (SELECT 1 FROM t)",
                                      "DELETE FROM t",
                                      "DELETE FROM t WHERE 1 = 1",
                                      "INSERT INTO t VALUES (7) ON CONFLICT DO NOTHING",
                                      "INSERT OR IGNORE INTO t VALUES (7)",
                                      "DROP TABLE t",
                                      "ALTER TABLE t RENAME TO u",
                                      "ALTER TABLE t ADD COLUMN x INTEGER",
                                      "CREATE TABLE t (a INTEGER)",
                                      "CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT)",
                                      "TRUNCATE t",
                                      "EXECUTE something",
                                      "a text that nobody understands"}));
    CAPTURE(sql);
    REQUIRE(names_none(sql));
}

TEST_CASE("statements that it refuses, or that use no table") {
    const auto sql = GENERATE(values<std::string>({"SELECT n FROM t",
                                                   "SELECT count(n) FROM t",
                                                   "SELECT count(*) FROM t WHERE n > 1",
                                                   "SELECT 1 FROM t ORDER BY n",
                                                   "SELECT q.x, n FROM t, (SELECT 1 AS x) q",
                                                   "UPDATE t SET n = 1",
                                                   "UPDATE OR IGNORE t SET n = 1",
                                                   "DELETE FROM t WHERE n = 1",
                                                   "INSERT INTO t (n) VALUES (1)",
                                                   "INSERT INTO t (n) SELECT count(*) FROM u",
                                                   "INSERT INTO t VALUES (1)",
                                                   "INSERT INTO t DEFAULT VALUES",
                                                   "SELECT 1",
                                                   "SELECT hotlane_home_is_not_confirmed",
                                                   "SHOW twill.stats",
                                                   "BEGIN",
                                                   "COMMIT",
                                                   "SAVEPOINT a",
                                                   "SET x = 1"}));
    CAPTURE(sql);
    REQUIRE_FALSE(names_none(sql));
}
