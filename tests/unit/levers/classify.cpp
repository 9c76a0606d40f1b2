// A counter may be sharded; a check may not.
#include <catch2/catch.hpp>

#include "router/levers/recipes.hpp"

namespace levers = hotlane::levers;
using levers::write_class;

TEST_CASE("which writes commute") {
    struct row {
        const char* text;
        write_class what;
        const char* counter = "";
        const char* amount = "";
    };
    const row rows[] = {
        {"UPDATE t SET n = n + 1 WHERE id = 1", write_class::commuting_counter, "n", "1"},
        {"UPDATE t SET n = n + $1 WHERE id = $2", write_class::commuting_counter, "n", "$1"},
        {"UPDATE t SET n = n + $1::bigint WHERE id = $2",
         write_class::commuting_counter,
         "n",
         "$1"},
        {"UPDATE t SET n = $1 + n WHERE id = $2", write_class::commuting_counter, "n", "$1"},
        {"UPDATE t SET n = n - 3 WHERE id = $2", write_class::commuting_counter, "n", "-3"},
        {"UPDATE t SET n = n - $1 WHERE id = $2", write_class::commuting_counter, "n", "-$1"},
        {"UPDATE t SET n = n + -2 WHERE id = $2", write_class::commuting_counter, "n", "-2"},
        {"UPDATE t SET n = n - -2 WHERE id = $2", write_class::commuting_counter, "n", "2"},
        {"UPDATE t AS x SET n = x.n + 1 WHERE x.id = 1", write_class::commuting_counter, "n", "1"},
        {"UPDATE t SET \"N x\" = \"N x\" + 1 WHERE a = 1 AND 2 = b",
         write_class::commuting_counter,
         "N x",
         "1"},
        {"UPDATE t SET n = n + 1 WHERE id = 1 RETURNING id",
         write_class::commuting_counter,
         "n",
         "1"},
        {"INSERT INTO t (id, n) VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET n = t.n + 1",
         write_class::commuting_counter,
         "n",
         "1"},
        {"INSERT INTO t (id, n) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET n = t.n + "
         "excluded.n",
         write_class::commuting_counter,
         "n",
         "$2"},

        {"UPDATE t SET n = n - 1 WHERE id = 1 AND n >= 1", write_class::guarded},
        {"UPDATE t SET n = n - 1 WHERE n > 0 AND id = 1", write_class::guarded},
        {"UPDATE t SET n = n + 1, v = v + 1 WHERE id = 1 AND v = $1", write_class::guarded},
        {"UPDATE t SET n = $1 WHERE id = 1 AND n = $2", write_class::guarded},
        {"UPDATE t SET n = n - 1 WHERE id = 1 AND (n > 0 OR free)", write_class::guarded},
        {"UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n", write_class::guarded},
        {"UPDATE t SET n = n + 1 WHERE id = 1 RETURNING *", write_class::guarded},
        {"UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n * 2", write_class::guarded},
        {"INSERT INTO t (id, n) VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET n = t.n + 1 WHERE "
         "t.n < 5",
         write_class::guarded},

        {"UPDATE t SET n = $1 WHERE id = 1", write_class::overwrites},
        {"UPDATE t SET n = 5 WHERE id = 1", write_class::overwrites},
        {"UPDATE t SET n = n + 1, seen = now() WHERE id = 1", write_class::overwrites},
        {"INSERT INTO t (id, n) VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET n = excluded.n",
         write_class::overwrites},

        {"UPDATE t SET n = n * 2 WHERE id = 1", write_class::unknown},
        {"UPDATE t SET n = m + 1 WHERE id = 1", write_class::unknown},
        {"UPDATE t SET n = 5 - n WHERE id = 1", write_class::unknown},
        {"UPDATE t SET n = n + m WHERE id = 1", write_class::unknown},
        {"UPDATE t SET n = n || 'x' WHERE id = 1", write_class::unknown},
        {"UPDATE t SET n = n + 'x' WHERE id = 1", write_class::unknown},
        {"UPDATE t SET n[1] = n[1] + 1 WHERE id = 1", write_class::unknown},
        {"UPDATE t SET n = n + 1, m = m + 1 WHERE id = 1", write_class::unknown},
        {"UPDATE t SET n = n + 1 WHERE id = 1 AND active", write_class::unknown},
        {"UPDATE t SET n = n + 1 WHERE id IN (1, 2)", write_class::unknown},
        {"UPDATE t SET n = n + 1 WHERE id > 1", write_class::unknown},
        {"UPDATE t SET n = n + 1 WHERE id = other", write_class::unknown},
        {"UPDATE t SET n = n + 1", write_class::unknown},
        {"UPDATE t SET n = n + (SELECT 1) WHERE id = 1", write_class::unknown},
        {"UPDATE t SET n = n + 1 FROM u WHERE t.id = 1", write_class::unknown},
        {"UPDATE t SET n = n + f() WHERE id = 1", write_class::unknown},
        {"UPDATE t SET n = n + 1 WHERE id = f(1)", write_class::unknown},
        {"UPDATE t SET (n, m) = (1, 2) WHERE id = 1", write_class::overwrites},
        {"UPDATE t SET (n, m) = (n + 1, 2) WHERE id = 1", write_class::unknown},
        {"INSERT INTO t VALUES (1)", write_class::unknown},
        {"INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", write_class::unknown},
        {"DELETE FROM t WHERE id = 1", write_class::unknown},
        {"SELECT 1", write_class::unknown},
        {"UPDATE t SET n = n + 1 WHERE id = 1; SELECT 1", write_class::unknown},
        {"not sql", write_class::unknown},
        {"", write_class::unknown},
    };
    for (const row& r : rows) {
        CAPTURE(r.text);
        const levers::hot_write found = levers::classify(r.text);
        CHECK(levers::text_of(found.what) == levers::text_of(r.what));
        CHECK(found.counter == r.counter);
        CHECK(found.amount == r.amount);
        CHECK_FALSE(found.reason.empty());
    }
}

TEST_CASE("the row that a write names") {
    const auto found = levers::classify("UPDATE t SET n = n + 1 WHERE a = $1 AND 'x' = t.b");
    CHECK(found.table == "t");
    CHECK(found.keys == std::vector<std::string>{"a", "b"});
    CHECK_FALSE(found.upsert);
    CHECK(levers::classify("INSERT INTO t (id, n) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = "
                           "t.n + 1")
              .upsert);
}
