"""The extended protocol: statements, portals, batches, errors in the middle, flush without sync, limits."""
import struct

from hotlane_test.parity import ask, case, closed, half_close, int4, many, oid, ready, send, until
from hotlane_test.pgwire import (bind, close, describe, execute, flush, function_call, message, parse, query, sync,
                                 terminate)

INT4, TEXT = 23, 25
TAKEN = "hotlane knows the client's names, a link has others: it answers itself"
FLUSHED = "PostgreSQL forgets what it has not sent when the client's end comes; hotlane asks it for that first"
BATCH = (parse("SELECT $1::int + 1 AS n"), bind("41"), describe("P"), execute())


def batch_with_error(at: int):
    """Five statements, the one at `at` fails; then Sync, and a second batch behind it in the same write."""
    texts = ["SELECT 1/0" if i == at else f"INSERT INTO scratch VALUES ({i}, 'x')" for i in range(5)]
    first = [m for text in texts for m in (parse(text), bind(), execute())]
    return case(f"a batch whose statement {at} fails", send(*first, sync(), *BATCH, sync()), ready(2),
                after="SELECT count(*) FROM scratch")


def one_broken(name: str, *broken):
    """A message that fails, between good ones."""
    return case(f"a batch with {name}", send(*BATCH, *broken, *BATCH, sync()), ready(), send(*BATCH, sync()), ready())


CASES = [
    case("a batch", send(*BATCH, sync()), ready()),
    case("a batch, each message by itself", *[send(m) for m in (*BATCH, sync())], ready()),
    case("a batch, flushed after each message", *[step for m in BATCH for step in (send(m, flush()), until("12TDC"))],
         send(sync()), ready()),
    case("sync alone", send(sync()), ready()),
    case("five syncs in one write", send(*[sync()] * 5), ready(5)),
    case("flush alone", send(flush()), ask("SELECT 1")),
    case("flush, sync, flush, query", send(flush(), sync(), flush(), query("SELECT 1")), ready(2)),
    case("flush without sync, then sync", send(parse("SELECT 7"), bind(), execute(), flush()), until("C"), send(sync()),
         ready()),
    case("flush without sync, then more", send(parse("SELECT 7"), bind(), execute(), flush()), until("C"),
         send(bind(), execute(), flush()), until("C"), send(sync()), ready()),
    case("an error that is flushed without sync", send(parse("SELECT 1/0"), bind(), execute(), flush()), until("E"),
         send(sync()), ready(), ask("SELECT 1")),
    case("an error without flush or sync is told at once", send(parse("SELEKT")), until("E"), send(sync()), ready()),
    case("messages after an error are skipped to sync", send(parse("SELEKT")), until("E"),
         send(parse("SELECT 1"), bind(), execute(), flush(), query("SELECT 2")), send(sync()), ready(),
         ask("SELECT 3")),
    case("many batches in one write", many(40, lambda i: b"".join((*BATCH, sync()))), ready(40)),
    case("batches and queries in one write", many(20, lambda i: b"".join((*BATCH, sync(), query(f"SELECT {i}")))),
         ready(40)),
    case("a query inside a batch", send(*BATCH, query("SELECT 5"), *BATCH, sync()), ready(2)),
    case("a query inside a batch after an error", send(parse("SELEKT"), query("SELECT 5"), sync(), query("SELECT 6")),
         ready(2)),
    case("errors in every second batch of one write",
         many(20, lambda i: b"".join((parse(f"SELECT 1/({i} % 2)"), bind(), execute(), sync()))), ready(20)),
    *[batch_with_error(i) for i in range(5)],
    case("a batch that writes, commits at sync", send(
        parse("INSERT INTO scratch VALUES ($1, $2)"), bind("1", "a"), execute(), bind("2", "b"), execute(), sync()),
        ready(), after="SELECT * FROM scratch ORDER BY 1"),
    case("a deferred constraint fails at sync", send(parse("INSERT INTO child VALUES (99)"), bind(), execute(), sync()),
         ready(), ask("SELECT 1")),
    case("a block in batches", send(parse("BEGIN"), bind(), execute(), sync()), ready(), send(*BATCH, sync()), ready(),
         send(parse("SELECT 1/0"), bind(), execute(), sync()), ready(), send(*BATCH, sync()), ready(),
         send(parse("ROLLBACK"), bind(), execute(), sync()), ready()),
    case("begin, work and commit in one batch", send(
        *[m for text in ("BEGIN", "INSERT INTO scratch VALUES (1, 'a')", "COMMIT")
          for m in (parse(text), bind(), execute())], sync()), ready(), after="SELECT * FROM scratch"),
    case("commit in a batch, then an error", send(
        *[m for text in ("BEGIN", "INSERT INTO scratch VALUES (1, 'a')", "COMMIT", "SELECT 1/0")
          for m in (parse(text), bind(), execute())], sync()), ready(), after="SELECT * FROM scratch"),
    # the empty query, several commands
    case("an empty statement", send(parse(""), bind(), describe("P"), execute(), sync()), ready()),
    case("an empty statement described", send(parse("", "e"), describe("S", "e"), sync()), ready()),
    case("several commands in one parse", send(parse("SELECT 1; SELECT 2"), sync()), ready()),
    case("a comment in a parse", send(parse("/* x */ -- y"), bind(), execute(), sync()), ready()),
    # portals
    case("a suspended portal, in one batch", send(
        parse("SELECT generate_series(1, 10)"), bind(), execute(rows=3), execute(rows=3), execute(rows=0), sync()),
        ready()),
    case("a suspended portal, to the exact end", send(
        parse("SELECT generate_series(1, 4)"), bind(), execute(rows=2), execute(rows=2), execute(rows=2),
        execute(rows=2), sync()), ready()),
    case("a suspended portal across flushes", send(
        parse("SELECT generate_series(1, 5)"), bind(), execute(rows=2), flush()), until("s"),
        send(execute(rows=2), flush()), until("s"), send(execute(rows=2), sync()), ready()),
    case("a suspended portal is gone after sync", send(
        parse("SELECT generate_series(1, 5)"), bind(portal="p"), execute("p", 2), sync()), ready(),
        send(execute("p", 2), sync()), ready()),
    case("a suspended portal in a block, across syncs", ask("BEGIN"), send(
        parse("SELECT generate_series(1, 7)"), bind(portal="p"), describe("P", "p"), execute("p", 3), sync()), ready(),
        ask("SELECT 'between'"), send(execute("p", 3), sync()), ready(), send(execute("p", 3), sync()), ready(),
        ask("COMMIT"), send(execute("p", 3), sync()), ready()),
    case("two portals side by side", ask("BEGIN"), send(
        parse("SELECT generate_series($1::int, 100)"), bind("1", portal="p"), bind("51", portal="q"), execute("p", 2),
        execute("q", 2), execute("p", 2), execute("q", 2), close("P", "p"), execute("q", 1), execute("p", 1), sync()),
        ready(), ask("ROLLBACK")),
    case("a portal by SQL, fetched", ask("BEGIN"), send(
        parse("SELECT generate_series(1, 9)"), bind(portal="p"), execute("p", 2), sync()), ready(),
        ask("FETCH 2 FROM p"), ask("CLOSE p"), send(execute("p", 2), sync()), ready(), ask("COMMIT")),
    case("a cursor by SQL, executed as a portal", ask("BEGIN"),
         ask("DECLARE c CURSOR FOR SELECT generate_series(1, 9)"),
         send(describe("P", "c"), execute("c", 3), execute("c", 0), sync()), ready(), ask("COMMIT")),
    case("a portal of the same name", ask("BEGIN"), send(
        parse("SELECT 1"), bind(portal="p"), bind(portal="p"), sync()), ready(), ask("ROLLBACK")),
    case("a write with a row limit", send(
        parse("INSERT INTO scratch SELECT i FROM generate_series(1, 5) i RETURNING id"), bind(), execute(rows=2),
        execute(rows=2), execute(rows=2), sync()), ready(), after="SELECT count(*) FROM scratch"),
    case("executed twice", send(parse("SELECT 1"), bind(), execute(), execute(), sync()), ready()),
    case("a portal is described after it ran", send(
        parse("SELECT 1"), bind(), execute(), describe("P"), sync()), ready()),
    # named statements
    case("a named statement", send(parse("SELECT $1::text", "s"), describe("S", "s"), sync()), ready(),
         *[step for i in range(3) for step in (send(bind(str(i), name="s"), describe("P"), execute(), sync()),
         ready())]),
    case("a named statement many times in one write", send(parse("SELECT $1::int", "s"), sync()), ready(),
         many(30, lambda i: bind(str(i), name="s") + execute() + sync()), ready(30)),
    case("a named statement parsed and used in one batch", send(
        parse("SELECT $1::int", "s"), bind("1", name="s"), execute(), bind("2", name="s"), execute(), sync()), ready()),
    case("a name that is taken", send(parse("SELECT 1", "s"), sync()), ready(), send(parse("SELECT 1", "s"), sync()),
         ready(), send(parse("SELECT 2", "s"), sync()), ready(), send(bind(name="s"), execute(), sync()), ready(),
         own=TAKEN),
    case("a name that is taken, in one batch", send(parse("SELECT 1", "s"), parse("SELECT 2", "s"), sync()), ready(),
         send(bind(name="s"), execute(), sync()), ready(), own=TAKEN),
    case("close, then the name again", send(parse("SELECT 1", "s"), close("S", "s"), parse("SELECT 2", "s"), sync()),
         ready(), send(bind(name="s"), execute(), sync()), ready()),
    case("close of what is not there", send(close("S", "nothing"), close("P", "nothing"), close("S"), close("P"),
                                            sync()), ready()),
    case("a closed statement is gone", send(parse("SELECT 1", "s"), sync()), ready(), send(close("S", "s"), sync()),
         ready(), send(bind(name="s"), execute(), sync()), ready()),
    case("a failed parse leaves no name", send(parse("SELEKT", "s"), sync()), ready(),
         send(bind(name="s"), sync()), ready(), send(parse("SELECT 1", "s"), bind(name="s"), execute(), sync()),
         ready()),
    case("a parse after an error is not there", send(parse("SELEKT"), parse("SELECT 1", "s"), sync()), ready(),
         send(bind(name="s"), sync()), ready()),
    case("a parse before an error stays", send(parse("SELECT 1", "s"), parse("SELEKT"), sync()), ready(),
         send(bind(name="s"), execute(), sync()), ready()),
    case("a close after an error did not happen", send(parse("SELECT 1", "s"), sync()), ready(),
         send(parse("SELEKT"), close("S", "s"), sync()), ready(), send(bind(name="s"), execute(), sync()), ready()),
    case("a close before an error did happen", send(parse("SELECT 1", "s"), sync()), ready(),
         send(close("S", "s"), parse("SELEKT"), sync()), ready(), send(bind(name="s"), execute(), sync()), ready()),
    case("a statement survives rollback", ask("BEGIN"), send(parse("SELECT 1", "s"), sync()), ready(), ask("ROLLBACK"),
         send(bind(name="s"), execute(), sync()), ready()),
    case("a close survives rollback", send(parse("SELECT 1", "s"), sync()), ready(), ask("BEGIN"),
         send(close("S", "s"), sync()), ready(), ask("ROLLBACK"), send(bind(name="s"), execute(), sync()), ready()),
    case("types that are given", send(parse("SELECT $1, $2", "s", (INT4, TEXT)), describe("S", "s"),
                                      bind("1", "x", name="s"), describe("P"), execute(), sync()), ready()),
    case("types that are given in part", send(parse("SELECT $1, $2::text", "s", (INT4, 0)), describe("S", "s"), sync()),
         ready(), send(bind("1", "x", name="s"), execute(), sync()), ready()),
    case("types that cannot be found", send(parse("SELECT $1 IS NULL", "s"), sync()), ready(),
         send(parse("SELECT $2::int", "t"), sync()), ready()),
    case("the unnamed statement stays until replaced", send(parse("SELECT 1"), sync()), ready(),
         send(bind(), execute(), sync()), ready(), send(parse("SELECT 2"), sync()), ready(),
         send(bind(), execute(), sync()), ready(), send(close("S"), sync()), ready(), send(bind(), sync()), ready()),
    case("the unnamed statement after a failed parse", send(parse("SELECT 1"), sync()), ready(),
         send(parse("SELEKT"), sync()), ready(), send(bind(), sync()), ready()),
    case("the unnamed statement inside blocks", ask("BEGIN"), send(parse("SELECT 1"), sync()), ready(), ask("COMMIT"),
         send(bind(), sync()), ready()),
    case("deallocate", send(parse("SELECT 1", "s"), parse("SELECT 2", "t"), sync()), ready(), ask("DEALLOCATE s"),
         send(bind(name="s"), sync()), ready(), send(bind(name="t"), execute(), sync()), ready(),
         ask("DEALLOCATE nothing"), ask("DEALLOCATE PREPARE t"), send(bind(name="t"), sync()), ready()),
    case("deallocate of a quoted name", send(parse("SELECT 1", 'S "x"'), sync()), ready(), ask('DEALLOCATE "S ""x"""'),
         send(bind(name='S "x"'), sync()), ready()),
    case("deallocate all", send(parse("SELECT 1", "s"), parse("SELECT 2", "t"), sync()), ready(), ask("DEALLOCATE ALL"),
         send(bind(name="s"), sync()), ready(), send(bind(name="t"), sync()), ready()),
    case("deallocate in the extended protocol", send(parse("SELECT 1", "s"), sync()), ready(),
         send(parse("DEALLOCATE s"), bind(), execute(), sync()), ready(), send(bind(name="s"), sync()), ready()),
    case("deallocate in a block that is rolled back", send(parse("SELECT 1", "s"), sync()), ready(),
         ask("BEGIN; DEALLOCATE s; ROLLBACK"), send(bind(name="s"), sync()), ready()),
    case("discard plans keeps statements", send(parse("SELECT 1", "s"), sync()), ready(), ask("DISCARD PLANS"),
         send(bind(name="s"), execute(), sync()), ready()),
    case("discard all", send(parse("SELECT 1", "s"), sync()), ready(), ask("DISCARD ALL"),
         send(bind(name="s"), sync()), ready(), send(parse("SELECT 2", "s"), bind(name="s"), execute(), sync()),
         ready()),
    case("discard all in a block", ask("BEGIN"), ask("DISCARD ALL"), ask("ROLLBACK")),
    case("discard all in the extended protocol", send(parse("SELECT 1", "s"), sync()), ready(),
         send(parse("DISCARD ALL"), bind(), execute(), sync()), ready(), send(bind(name="s"), sync()), ready()),
    case("a statement by SQL, bound by protocol", ask("PREPARE p (int) AS SELECT $1 + 1"), ask("EXECUTE p(1)"),
         send(bind("5", name="p"), execute(), sync()), ready(), ask("DEALLOCATE p"), ask("EXECUTE p(1)")),
    case("a statement by protocol, executed by SQL", send(parse("SELECT $1::int + 1", "s"), sync()), ready(),
         ask("EXECUTE s(4)"), ask("DEALLOCATE s"), ask("EXECUTE s(4)")),
    case("pg_prepared_statements", send(parse("SELECT $1::int", "s"), parse("SELECT 2", "t"), sync()), ready(),
         ask("SELECT name, statement, parameter_types, from_sql FROM pg_prepared_statements ORDER BY 1"),
         only="session",
         why_only="a link has statements under other names and of other clients"),
    case("a plan whose result changes", ask("CREATE TEMP TABLE tt (a int)"),
         send(parse("SELECT * FROM tt", "s"), bind(name="s"), execute(), sync()), ready(),
         ask("ALTER TABLE tt ADD b text"), send(bind(name="s"), execute(), sync()), ready(), ask("SELECT 1")),
    case("forty names", many(40, lambda i: parse(f"SELECT {i}", f"n{i}") + sync()), ready(40),
         many(40, lambda i: bind(name=f"n{39 - i}") + execute() + sync()), ready(40)),
    # formats and parameters
    case("binary parameters and results", send(
        parse("SELECT $1::int, $2::text, $3::bytea, $4::float8, $5::bool", "s"),
        bind(int4(258), b"text", b"\0\1\2", struct.pack("!d", 0.5), b"\1", name="s", formats=(1,), results=(1,)),
        describe("P"), execute(), sync()), ready()),
    case("mixed formats", send(parse("SELECT $1::int, $2::int, $3::text"),
                               bind(int4(1), "2", None, formats=(1, 0, 0), results=(0, 1, 0)), describe("P"), execute(),
                               sync()), ready()),
    case("null parameters", send(parse("SELECT $1::int IS NULL, $2::text IS NULL"), bind(None, None), execute(),
         sync()),
         ready()),
    case("65,535 parameters", send(
        parse("SELECT count(*) FROM (VALUES " + ",".join(f"(${i})" for i in range(1, 65_536)) + ") v",
        types=[INT4] * 65_535),
        bind(*["7"] * 65_535), execute(), sync()), ready(), ask("SELECT 1"), whole=True),
    case("65,535 parameters of a named statement", send(
        parse("SELECT count(*) FROM (VALUES " + ",".join(f"(${i}::int)" for i in range(1, 65_536)) + ") v", "s"),
        describe("S", "s"), sync()), ready(), send(bind(*["7"] * 65_535, name="s"), execute(), sync()), ready(),
        whole=True),
    case("65,535 formats", send(
        parse("SELECT count(*) FROM (VALUES " + ",".join(f"(${i})" for i in range(1, 65_536)) + ") v",
        types=[INT4] * 65_535),
        bind(*[int4(1)] * 65_535, formats=[1] * 65_535), execute(), sync()), ready(), whole=True),
    case("too many parameters for the statement", send(parse("SELECT $1::int"), bind("1", "2"), execute(), sync()),
         ready()),
    case("a parameter of two mebibytes", send(parse("SELECT length($1::text)"), bind("x" * (2 << 20)), execute(),
         sync()),
         ready(), ask("SELECT 1"), whole=True),
    case("a parameter of forty mebibytes", send(parse("SELECT length($1::text)"), bind("x" * (40 << 20)), execute(),
         sync()),
         ready(), ask("SELECT 1"), whole=True),
    case("a parse of two mebibytes", send(parse("SELECT length('" + "x" * (2 << 20) + "')", "s"), bind(name="s"),
         execute(),
                                          sync()), ready(), send(bind(name="s"), execute(), sync()), ready(),
                                          whole=True),
    case("a name of a kibibyte", send(parse("SELECT 1", "n" * 1024), bind(name="n" * 1024, portal="p" * 1024),
                                      execute("p" * 1024), sync()), ready()),
    # one message that fails, between good ones
    one_broken("a bind of an unknown statement", bind(name="nothing")),
    one_broken("an execute of an unknown portal", execute("nothing")),
    one_broken("a describe of an unknown statement", describe("S", "nothing")),
    one_broken("a describe of an unknown portal", describe("P", "nothing")),
    one_broken("a parse that fails", parse("SELECT FROM WHERE")),
    one_broken("a bind of too few values", parse("SELECT $1::int, $2::int"), bind("1")),
    one_broken("a bind of a bad value", parse("SELECT $1::int"), bind("x")),
    one_broken("a bind of a bad binary value", parse("SELECT $1::int"), bind(b"\1\2", formats=(1,))),
    one_broken("a bind of too many formats", parse("SELECT $1::int"), bind("1", formats=(0, 0))),
    one_broken("a bind of too many result formats", parse("SELECT 1"), bind(results=(0, 0))),
    one_broken("a bind of a format that is none", parse("SELECT $1::int"), bind("1", formats=(7,))),
    one_broken("a negative row limit", parse("SELECT generate_series(1, 3)"), bind(), execute(rows=0xFFFFFFFF)),
    one_broken("a division by zero", parse("SELECT 1/0"), bind(), execute()),
    one_broken("a division by zero after rows", parse("SELECT 1/(3 - i) FROM generate_series(1, 9) i"), bind(),
    execute()),
    # FunctionCall
    case("a function call", send(function_call(oid("int4pl"), int4(40), int4(2))), ready()),
    case("a function call in text", send(function_call(oid("int4pl"), b"40", b"2", formats=(0,), result=0)), ready()),
    case("a function call with a null", send(function_call(oid("int4pl"), None, int4(1))), ready()),
    case("a function call that fails", send(function_call(oid("int4div"), int4(1), int4(0))), ready(), ask("SELECT 1")),
    case("a function call of nothing", send(function_call(1)), ready(), ask("SELECT 1")),
    case("a function call with too few values", send(function_call(oid("int4pl"), int4(1))), ready(), ask("SELECT 1")),
    case("a function call in a block", ask("BEGIN"), send(function_call(oid("int4pl"), int4(1), int4(1))), ready(),
         send(function_call(oid("int4div"), int4(1), int4(0))), ready(),
         send(function_call(oid("int4pl"), int4(1), int4(1))), ready(), ask("ROLLBACK")),
    case("function calls, queries and batches in one write", send(
        function_call(oid("int4pl"), int4(1), int4(1)), query("SELECT 1"), *BATCH, sync(),
        function_call(oid("int4div"), int4(1), int4(0)), query("SELECT 2")), ready(5)),
    case("a function call inside a batch", send(parse("SELECT 1"), function_call(oid("int4pl"), int4(1), int4(1)),
         bind(),
                                                execute(), sync()), ready(2)),
    case("a function call with a long value", send(
        function_call(oid("textcat"), b"x" * (2 << 20), b"y" * 10, formats=(0,), result=0)), ready(), ask("SELECT 1"),
        whole=True),
    case("a large object by SQL", ask("BEGIN"), ask("SELECT lo_create(4711)"), ask("SELECT lo_put(4711, 0, 'abc')"),
         ask("SELECT lo_get(4711)"), ask("SELECT lo_unlink(4711)"), ask("COMMIT")),
    # the end
    case("terminate inside a batch", send(parse("INSERT INTO scratch VALUES (1, 'a')"), bind(), execute(), terminate()),
         closed(), after="SELECT count(*) FROM scratch"),
    case("terminate after sync in one write", send(parse("INSERT INTO scratch VALUES (1, 'a')"), bind(), execute(),
         sync(),
                                                   terminate()), closed(), after="SELECT count(*) FROM scratch"),
    case("half closed after a batch", send(*BATCH, sync()), half_close(), closed()),
    case("half closed after a query", send(query("SELECT generate_series(1, 2000)")), half_close(), closed()),
    case("half closed inside a batch", send(*BATCH), half_close(), closed(), more=FLUSHED),
    case("half closed in a block", ask("BEGIN"), ask("INSERT INTO scratch VALUES (1, 'a')"), half_close(), closed(),
         after="SELECT count(*) FROM scratch"),
    case("half closed in the middle of a message", send(query("SELECT 1")[:7]), half_close(), closed()),
    case("half closed after a query and half of another", send(query("SELECT 1"), query("SELECT 2")[:7]), half_close(),
         closed()),
]
