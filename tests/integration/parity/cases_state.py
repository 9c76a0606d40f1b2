"""What a session sets: by SET, SET LOCAL, RESET, set_config and their kin, undone as PostgreSQL undoes it."""
from hotlane_test.parity import ask, case, ready, send
from hotlane_test.pgwire import bind, execute, parse, query, sync

SEEN = ("SELECT current_setting('work_mem'), current_setting('TimeZone'), current_setting('DateStyle'), "
        "current_setting('application_name'), current_setting('search_path'), "
        # A setting of one's own is empty, not null, for ever where it was once set: the link may be older than we.
        "nullif(current_setting('my.own', true), '')")


def then(name: str, *texts, startup=()):
    """After each text: what is set, asked twice, in two transactions."""
    steps = [step for text in texts for step in (ask(text), ask(SEEN))]
    return case(f"state: {name}", *steps, ask(SEEN), startup=startup)


def by_batch(name: str, *texts):
    return case(f"state, extended: {name}", *[
        step for text in texts for step in (send(parse(text), bind(), execute(), sync()), ready(), ask(SEEN))])


CASES = [
    then("set", "SET work_mem = '5MB'", "SET work_mem TO 6000", "SET SESSION work_mem = DEFAULT"),
    then("set what is reported", "SET TimeZone = 'Asia/Kathmandu'", "SET DateStyle = 'SQL, DMY'",
         "SET application_name = 'me'", "SET client_encoding = 'LATIN1'", "RESET ALL"),
    then("set time zone in its own words", "SET TIME ZONE 'Asia/Kathmandu'", "SET TIME ZONE LOCAL",
         "SET TIME ZONE INTERVAL '+02:30' HOUR TO MINUTE", "SET TIME ZONE -7", "SET TIME ZONE DEFAULT"),
    then("set names and schema", "SET NAMES 'LATIN1'", "SET SCHEMA 'other'", "SET NAMES DEFAULT", "RESET search_path"),
    then("set to several values", "SET search_path = other, public, \"$user\"", "SET search_path TO ''",
         "SET DateStyle = SQL, MDY", "RESET search_path"),
    then("set with quotes and odd letters", "SET application_name = 'it''s \"x\" ; \\ é'",
         "SET \"application_name\" TO x",
         "SET application_name = $$dollar$$", "SET application_name = E'a\\'b'"),
    then("a setting of one's own", "SET my.own = 'one'", "SET my.own TO 2", "RESET my.own", "SET \"my\".own = x"),
    then("set in capital letters and comments", "sEt /* x */ WORK_MEM -- y\n = '7MB'", "RESET work_MEM"),
    then("several in one message", "SET work_mem = '1MB'; SET application_name = 'two'; SET my.own = 'three'",
         "RESET work_mem; RESET my.own"),
    then("several in one message, the last fails", "SET work_mem = '1MB'",
         "SET work_mem = '2MB'; SET application_name = 'lost'; SELECT 1/0"),
    then("several in one message, one does not fit", "SET work_mem = '2MB'; SET work_mem = 'lots'"),
    then("a set that fails", "SET work_mem = '3MB'", "SET work_mem = 'lots'", "SET no_such_setting = 1",
         "SET shared_buffers = '1GB'", "SET log_statement = 'all'"),
    then("reset", "SET work_mem = '3MB'", "RESET work_mem", "RESET no_such_setting"),
    then("reset all", "SET work_mem = '3MB'; SET my.own = 'x'; SET TimeZone = 'UTC'", "RESET ALL"),
    then("reset goes back to the startup packet", "SET work_mem = '3MB'; SET TimeZone = 'UTC'", "RESET work_mem",
         "RESET ALL", startup=(("work_mem", "9MB"), ("TimeZone", "Asia/Kathmandu"), ("my.own", "born with it"))),
    then("discard all goes back to the startup packet", "SET work_mem = '3MB'; SET TimeZone = 'UTC'", "DISCARD ALL",
         startup=(("options", "-c work_mem=9MB -c search_path=other"), ("application_name", "born"))),
    then("discard all", "SET work_mem = '3MB'; SET application_name = 'x'; SET my.own = 'x'", "DISCARD ALL"),
    then("discard temp, sequences, plans", "SET work_mem = '3MB'", "DISCARD TEMP", "DISCARD SEQUENCES",
         "DISCARD PLANS"),
    then("set_config", "SELECT set_config('work_mem', '4MB', false)", "SELECT set_config('my.own', 'x', false)",
         "SELECT set_config('work_mem', '5MB', true)", "SELECT set_config('work_mem', NULL, false)"),
    then("set_config of computed values", "SELECT set_config('my.own', 'a' || (40 + 2), false)",
         "SELECT set_config(name, '8MB', false) FROM (VALUES ('work_mem')) v (name)",
         "SELECT pg_catalog.set_config('application_name', upper('computed'), false)"),
    then("set_config in a block", "BEGIN", "SELECT set_config('work_mem', '4MB', false)",
         "SELECT set_config('my.own', 'local', true)", "COMMIT"),
    then("set_config that is rolled back", "BEGIN", "SELECT set_config('work_mem', '4MB', false)", "ROLLBACK"),
    then("a function that sets", "SELECT setting('6MB')", "SELECT 1", "RESET work_mem"),
    then("a do block that sets", "DO $$ BEGIN SET work_mem = '7MB'; END $$", "DO $$ BEGIN RESET work_mem; END $$",
         "DO $$ BEGIN PERFORM set_config('my.own', 'done', false); END $$"),
    then("update of pg_settings", "UPDATE pg_settings SET setting = '1234' WHERE name = 'work_mem'", "RESET work_mem"),
    then("alter system and role do nothing here", "ALTER ROLE app SET work_mem = '11MB'",
         "ALTER ROLE app RESET work_mem"),
    # transactions
    then("set, committed", "BEGIN", "SET work_mem = '4MB'", "COMMIT"),
    then("set, rolled back", "SET work_mem = '3MB'", "BEGIN", "SET work_mem = '4MB'", "ROLLBACK"),
    then("set what is reported, rolled back", "BEGIN", "SET TimeZone = 'Asia/Kathmandu'", "ROLLBACK"),
    then("set, the transaction fails", "BEGIN", "SET work_mem = '4MB'", "SELECT 1/0", "COMMIT"),
    then("set local", "SET work_mem = '3MB'", "BEGIN", "SET LOCAL work_mem = '4MB'", "COMMIT"),
    then("set local, rolled back", "BEGIN", "SET LOCAL TimeZone = 'Asia/Kathmandu'", "ROLLBACK"),
    then("set local outside of a block", "SET LOCAL work_mem = '4MB'"),
    then("set local over set", "BEGIN", "SET work_mem = '4MB'", "SET LOCAL work_mem = '5MB'", "COMMIT"),
    then("set over set local", "BEGIN", "SET LOCAL work_mem = '5MB'", "SET work_mem = '4MB'", "COMMIT"),
    then("set, and chain", "BEGIN", "SET work_mem = '4MB'", "COMMIT AND CHAIN", "SET work_mem = '5MB'",
         "ROLLBACK AND CHAIN", "COMMIT"),
    then("reset in a block that is rolled back", "SET work_mem = '4MB'", "BEGIN", "RESET work_mem", "ROLLBACK"),
    then("reset all in a block that is rolled back", "SET work_mem = '4MB'; SET my.own = 'x'", "BEGIN", "RESET ALL",
         "ROLLBACK"),
    then("reset in a block that is committed", "SET work_mem = '4MB'", "BEGIN", "RESET work_mem", "COMMIT"),
    then("savepoint, rolled back to", "BEGIN", "SET work_mem = '4MB'", "SAVEPOINT s", "SET work_mem = '5MB'",
         "ROLLBACK TO s", "COMMIT"),
    then("savepoint, released", "BEGIN", "SAVEPOINT s", "SET work_mem = '5MB'", "RELEASE s", "COMMIT"),
    then("savepoint, released, rolled back", "BEGIN", "SAVEPOINT s", "SET work_mem = '5MB'", "RELEASE s", "ROLLBACK"),
    then("savepoints nested", "BEGIN", "SET my.own = '0'", "SAVEPOINT a", "SET my.own = '1'", "SAVEPOINT b",
         "SET my.own = '2'", "ROLLBACK TO b", "SET my.own = '3'", "RELEASE b", "ROLLBACK TO a", "COMMIT"),
    then("savepoints of one name", "BEGIN", "SAVEPOINT a", "SET my.own = '1'", "SAVEPOINT a", "SET my.own = '2'",
         "ROLLBACK TO a", "RELEASE a", "COMMIT"),
    then("savepoint and an error", "BEGIN", "SET my.own = '1'", "SAVEPOINT a", "SET my.own = '2'", "SELECT 1/0",
         "ROLLBACK TO SAVEPOINT a", "COMMIT"),
    then("savepoint and set local", "BEGIN", "SET LOCAL work_mem = '4MB'", "SAVEPOINT a", "SET LOCAL work_mem = '5MB'",
         "ROLLBACK TO a", "COMMIT"),
    then("set in a block, then prepare transaction", "BEGIN", "SET work_mem = '4MB'", "PREPARE TRANSACTION 'sp'",
         "ROLLBACK PREPARED 'sp'"),
    then("a block in one message", "BEGIN; SET work_mem = '4MB'; COMMIT", "BEGIN; SET work_mem = '5MB'; ROLLBACK",
         "SET work_mem = '6MB'; BEGIN; SET work_mem = '7MB'; ROLLBACK"),
    then("a commit in the middle of a message that fails", "BEGIN; SET work_mem = '4MB'; COMMIT; SET work_mem = '5MB'; "
         "SELECT 1/0"),
    # extended
    by_batch("set and reset", "SET work_mem = '5MB'", "SET TimeZone = 'UTC'", "RESET work_mem", "RESET ALL"),
    by_batch("a block", "BEGIN", "SET work_mem = '5MB'", "SAVEPOINT s", "SET work_mem = '6MB'", "ROLLBACK TO s",
    "COMMIT"),
    by_batch("a block that is rolled back", "BEGIN", "SET TimeZone = 'UTC'", "ROLLBACK"),
    case("state, extended: set_config with parameters", send(
        parse("SELECT set_config($1, $2, $3::bool)", "s"), bind("work_mem", "5MB", "false", name="s"), execute(),
        sync()),
        ready(), ask(SEEN), send(bind("my.own", "x", "false", name="s"), execute(), sync()), ready(), ask(SEEN),
        send(bind("my.own", "y", "true", name="s"), execute(), sync()), ready(), ask(SEEN)),
    case("state, extended: several in one batch", send(
        *[m for text in ("SET work_mem = '1MB'", "SET my.own = 'x'", "SET application_name = 'y'")
          for m in (parse(text), bind(), execute())], sync()), ready(), ask(SEEN)),
    case("state, extended: a batch that fails undoes it", send(
        *[m for text in ("SET work_mem = '1MB'", "SET TimeZone = 'UTC'", "SELECT 1/0")
          for m in (parse(text), bind(), execute())], sync()), ready(), ask(SEEN)),
    case("state, extended: a set is prepared and run twice", send(parse("SET work_mem = '5MB'", "s"), sync()), ready(),
         send(bind(name="s"), execute(), sync()), ready(), ask("RESET work_mem"), ask(SEEN),
         send(bind(name="s"), execute(), sync()), ready(), ask(SEEN)),
    case("state: pipelined sets and queries", send(
        query("SET work_mem = '1MB'"), query(SEEN), query("SET work_mem = '2MB'"), query(SEEN), query("RESET ALL"),
        query(SEEN)), ready(6)),
    # what it does to results
    case("state: a time zone in results", ask("SET TimeZone = 'Asia/Kathmandu'"),
         ask("SELECT '2024-01-01 00:00+00'::timestamptz"), ask("SET TimeZone = 'America/Lima'"),
         ask("SELECT '2024-01-01 00:00+00'::timestamptz")),
    case("state: a search path finds tables", ask("SET search_path = other"), ask("SELECT * FROM elsewhere"),
         ask("SELECT * FROM kv"), ask("RESET search_path"), ask("SELECT * FROM elsewhere")),
    case("state: a search path and a prepared statement", ask("SET search_path = other"),
         send(parse("SELECT * FROM elsewhere", "s"), sync()), ready(), send(bind(name="s"), execute(), sync()), ready(),
         ask("RESET search_path"), send(bind(name="s"), execute(), sync()), ready()),
    case("state: bytea, floats, intervals, xml", ask("SET bytea_output = escape; SET extra_float_digits = 0; "
                                                     "SET IntervalStyle = iso_8601"),
         ask("SELECT '\\x00ff'::bytea, 0.1::float8 + 0.2, '1 day 2 hours'::interval")),
    case("state: client encoding in results", ask("SELECT 'é'"), ask("SET client_encoding = LATIN1"),
         ask("SELECT U&'\\00e9'"),
         ask("SET client_encoding = SQL_ASCII"), ask("SELECT U&'\\00e9'"), ask("RESET client_encoding"),
         ask("SELECT 'é'")),
    case("state: an application name is seen by others", ask("SET application_name = 'seen by others'"),
         ask("SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'seen by others'")),
    case("state: currval and lastval", ask("SELECT nextval('seq') > 0"), ask("SELECT currval('seq') = lastval()"),
         ask("DISCARD SEQUENCES"), ask("SELECT lastval()")),
    case("state: set role and authorization", ask("SET ROLE other_role"), ask("SELECT current_user"),
         ask("SET ROLE NONE"),
         ask("BEGIN"), ask("SET LOCAL ROLE other_role"), ask("SELECT current_user"), ask("COMMIT"),
         ask("SELECT current_user"),
         ask("SELECT set_config('role', 'other_role', false)"), ask("SELECT current_user"), ask("DISCARD ALL"),
         ask("SELECT current_user")),
    case("state: seed of random", ask("SELECT setseed(0.5)"), ask("SELECT random() < 2"), ask("SET seed = 0.25"),
         ask("SELECT 1")),
    case("state: load and a library's setting", ask("LOAD 'plpgsql'"),
         ask("SET plpgsql.variable_conflict = 'use_column'"),
         ask("SHOW plpgsql.variable_conflict")),
    case("state: transaction_read_only", ask("SET default_transaction_read_only = on"),
         ask("INSERT INTO scratch VALUES (1)"),
         ask("BEGIN READ WRITE; INSERT INTO scratch VALUES (1, 'a'); COMMIT"),
         ask("RESET default_transaction_read_only"),
         after="SELECT count(*) FROM scratch"),
    case("state: statement_timeout per transaction", ask("BEGIN; SET LOCAL statement_timeout = 30"),
         ask("SELECT pg_sleep(20)"), ask("ROLLBACK"), ask("SHOW statement_timeout"), ask("SELECT pg_sleep(0.05)")),
]
