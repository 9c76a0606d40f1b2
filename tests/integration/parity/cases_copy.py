"""COPY in and out, in both protocols, with failures on either side at every point."""
from hotlane_test.parity import ask, case, closed, drop, eventually, half_close, many, ready, send, until
from hotlane_test.pgwire import (bind, copy_data, copy_done, copy_fail, describe, execute, flush, message, parse, query,
                                 sync, terminate)

UNDONE = "PostgreSQL calls the end inside a COPY an error, to nobody; hotlane closes the link, which undoes it as well"
INTO, OUT = "COPY scratch FROM STDIN", "COPY (SELECT i, 'x' || i FROM generate_series(1, 9) i) TO STDOUT"
ROWS = "SELECT count(*), sum(id) FROM scratch"
EXTENDED = (parse(INTO), bind(), execute())
BAD = copy_data("not a number\tx\n")


def line(i: int) -> bytes:
    return copy_data(f"{i}\tline {i}\n")


def both(name: str, *steps, end=ready(), **more):
    """The same behind a simple query and behind an extended batch whose Sync comes after the data."""
    return [case(f"copy in, simple: {name}", send(query(INTO)), until("G"), *steps, end, ask("SELECT 1"), after=ROWS,
            **more),
            case(f"copy in, extended: {name}", send(*EXTENDED, flush()), until("G"), *steps, send(sync()), end,
                 ask("SELECT 1"), after=ROWS, **more)]


def fails_at(point: int):
    """The home refuses line `point` of six, and all the rest comes late."""
    lines = [BAD if i == point else line(i) for i in range(6)]
    return [*both(f"line {point} is bad, all in one write", send(*lines, copy_done())),
            *both(f"line {point} is bad, the error is seen before the end", send(*lines), send(copy_done())),
            *both(f"line {point} is bad, then the client gives up", send(*lines, copy_fail("no more")))]


def client_fails_at(point: int):
    return both(f"the client fails after {point} lines", send(*[line(i) for i in range(point)], copy_fail("enough")))


CASES = [
    case("copy out", ask(OUT), ask("SELECT 1")),
    case("copy out, binary", ask("COPY (SELECT 1::int, 'x'::text, NULL::int) TO STDOUT (FORMAT binary)")),
    case("copy out, csv with header", ask("COPY (SELECT 1 AS a, 'x,y' AS b) TO STDOUT (FORMAT csv, HEADER)")),
    case("copy out of nothing", ask("COPY (SELECT 1 WHERE false) TO STDOUT")),
    case("copy out, extended", send(parse(OUT), bind(), describe("P"), execute(), sync()), ready(), ask("SELECT 1")),
    case("copy out, extended, row limit is ignored", send(parse(OUT), bind(), execute(rows=2), execute(), sync()),
         ready()),
    case("copy out, flushed", send(parse(OUT), bind(), execute(), flush()), until("C"), send(sync()), ready()),
    case("copy out that fails at once", ask("COPY nowhere TO STDOUT"), ask("SELECT 1")),
    case("copy out that fails after rows", ask("COPY (SELECT 1/(50 - i) FROM generate_series(1, 90) i) TO STDOUT"),
         ask("SELECT 1")),
    case("copy out that fails, extended", send(parse("COPY (SELECT 1/(5 - i) FROM generate_series(1, 9) i) TO STDOUT"),
                                               bind(), execute(), sync()), ready(), ask("SELECT 1")),
    case("copy out of long rows", ask("COPY (SELECT repeat('x', 3 << 20) FROM generate_series(1, 3)) TO STDOUT")),
    case("copy out in a block that failed", ask("BEGIN"), ask("SELECT 1/0"), ask(OUT), ask("ROLLBACK")),
    case("copy out, twice in one message", ask(f"{OUT}; {OUT}; SELECT 1")),
    case("copy out, queries behind it in one write", send(query(OUT), query("SELECT 1"), query(OUT)), ready(3)),
    case("copy out, terminate behind it", send(query(OUT), terminate()), closed()),
    case("copy out, CopyDone behind it is nothing", send(query(OUT), copy_done(), query("SELECT 1")), ready(2)),
    *both("three lines", send(*[line(i) for i in range(3)], copy_done())),
    *both("no line", send(copy_done())),
    *both("a line in two messages", send(copy_data("1\tone")), send(copy_data(" line\n"), copy_done())),
    *both("several lines in one message", send(copy_data("1\ta\n2\tb\n3\tc\n"), copy_done())),
    *both("no line end at the end", send(copy_data("1\ta\n2\tb"), copy_done())),
    *both("the end marker", send(copy_data("1\ta\n\\.\n"), copy_done())),
    *both("empty messages", send(copy_data(""), line(1), copy_data(""), copy_done())),
    *both("thousand messages", many(1000, line), send(copy_done()), whole=True),
    *both("a message of three mebibytes", send(copy_data("1\t" + "x" * (3 << 20) + "\n"), copy_done()), whole=True),
    *both("flush and sync are ignored", send(line(1), flush(), sync(), line(2), flush(), copy_done())),
    *both("the client fails with a long reason", send(line(1), copy_fail("why " * 5000)), whole=True),
    *both("the client fails without a reason", send(line(1), copy_fail(""))),
    *[c for point in (0, 1, 5) for c in fails_at(point)],
    *[c for point in (0, 1, 5) for c in client_fails_at(point)],
    case("copy in, simple: a query breaks it", send(query(INTO)), until("G"), send(line(1), query("SELECT 'lost'")),
         ready(),
         ask("SELECT 1"), after=ROWS),
    case("copy in, simple: a parse breaks it", send(query(INTO)), until("G"), send(line(1), parse("SELECT 1")), ready(),
         ask("SELECT 1"), after=ROWS),
    case("copy in, extended: a query breaks it", send(*EXTENDED, flush()), until("G"), send(line(1),
         query("SELECT 'lost'"),
                                                                                           sync()), ready(),
                                                                                           ask("SELECT 1"), after=ROWS),
    case("copy in, extended: a parse breaks it", send(*EXTENDED, flush()), until("G"), send(line(1), parse("SELECT 1"),
                                                                                           sync()), ready(),
                                                                                           ask("SELECT 1"), after=ROWS),
    case("copy in, a message that is unknown", send(query(INTO)), until("G"), send(line(1), message(b"y", b"zz")),
         closed(),
         ends="08P01"),
    case("copy in, simple: all in one write", send(query(INTO), line(1), line(2), copy_done(), query("SELECT 1")),
         ready(2),
         after=ROWS),
    case("copy in, extended: all in one write", send(*EXTENDED, line(1), line(2), copy_done(), sync(),
         query("SELECT 1")),
         ready(2), after=ROWS),
    case("copy in, extended: sync before the data, all in one write",
         send(*EXTENDED, sync(), line(1), line(2), copy_done(), sync(), query("SELECT 1")), ready(2), after=ROWS),
    case("copy in, extended: more after it in the batch",
         send(*EXTENDED, flush()), until("G"), send(line(1), copy_done(), parse("SELECT 5"), bind(), execute(),
         sync()), ready(),
         after=ROWS),
    case("copy in, refused at once, the data comes late", send(query("COPY nowhere FROM STDIN"), line(1), line(2),
                                                               copy_done(), query("SELECT 1")), ready(2)),
    case("copy in, refused at once, the client gives up late", send(query("COPY nowhere FROM STDIN")), ready(),
         send(line(1), copy_fail("oh")), ask("SELECT 1")),
    case("copy in, extended, refused at parse, the data comes late",
         send(parse("COPY nowhere FROM STDIN"), bind(), execute(), line(1), copy_done(), sync(), query("SELECT 1")),
         ready(2)),
    case("copy in, refused inside a block", ask("BEGIN"), send(query("COPY nowhere FROM STDIN"), line(1), copy_done()),
         ready(), ask("SELECT 1"), ask("ROLLBACK")),
    case("copy in, in a block", ask("BEGIN"), send(query(INTO)), until("G"), send(line(1), copy_done()), ready(),
         ask("COMMIT"),
         after=ROWS),
    case("copy in, in a block, rolled back", ask("BEGIN"), send(query(INTO)), until("G"), send(line(1), copy_done()),
         ready(),
         ask("ROLLBACK"), after=ROWS),
    case("copy in, in a block, it fails", ask("BEGIN"), send(query(INTO)), until("G"), send(line(1), BAD, line(2),
         copy_done()),
         ready(), ask("SELECT 1"), ask("ROLLBACK"), after=ROWS),
    case("copy in, twice in one message", send(query(f"{INTO}; {INTO}; SELECT 1")), until("G"), send(line(1),
         copy_done()),
         until("G"), send(line(2), copy_done()), ready(), after=ROWS),
    case("copy in, twice in one message, the first fails", send(query(f"{INTO}; {INTO}; SELECT 1")), until("G"),
         send(BAD, copy_done()), ready(), ask("SELECT 1"), after=ROWS),
    case("copy in, twice in one message, the second is failed", send(query(f"{INTO}; {INTO}; SELECT 1")), until("G"),
         send(line(1), copy_done()), until("G"), send(line(2), copy_fail("no")), ready(), ask("SELECT 1"), after=ROWS),
    case("copy in and out in one message", send(query(f"{INTO}; {OUT}")), until("G"), send(line(1), copy_done()),
         ready(),
         after=ROWS),
    case("copy in, a constraint fails at the end", send(query("COPY kv FROM STDIN")), until("G"),
         send(copy_data("1\ttaken\n"), copy_done()), ready(), ask("SELECT 1")),
    case("copy in, a deferred constraint fails", send(query("COPY child FROM STDIN")), until("G"),
         send(copy_data("99\n"), copy_done()), ready(), ask("SELECT 1")),
    case("copy in, a trigger that speaks", send(query("COPY loud FROM STDIN")), until("G"),
         send(copy_data("1\n2\n"), copy_done()), ready()),
    case("copy in, binary", send(query("COPY scratch FROM STDIN (FORMAT binary)")), until("G"),
         send(copy_data(b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\2\0\0\0\4\0\0\0\7\0\0\0\1x" + b"\xff\xff"),
         copy_done()), ready(),
         after=ROWS),
    case("copy in, binary and broken", send(query("COPY scratch FROM STDIN (FORMAT binary)")), until("G"),
         send(copy_data(b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\2\0\0"), copy_done()), ready(), ask("SELECT 1"),
         after=ROWS),
    case("copy in, terminate in the middle", send(query(INTO)), until("G"), send(line(1), terminate()), closed(),
         after=ROWS, deaf=UNDONE),
    case("copy in, the client drops", send(query(INTO)), until("G"), send(line(1)), drop(),
         eventually("SELECT count(*) = 0 FROM pg_locks WHERE relation = 'scratch'::regclass"),
         after=ROWS),
    case("copy in, half closed in the middle", send(query(INTO)), until("G"), send(line(1)), half_close(), closed(),
         after=ROWS, deaf=UNDONE),
    case("copy in, half closed after CopyDone", send(query(INTO)), until("G"), send(line(1), copy_done()),
         half_close(), closed(),
         after=ROWS),
    case("copy in, half closed inside a message", send(query(INTO)), until("G"), send(line(1)[:6]), half_close(),
         closed(),
         after=ROWS, deaf=UNDONE),
    case("copy in, extended: half closed before sync", send(*EXTENDED, flush()), until("G"), send(line(1), copy_done()),
         half_close(), closed(), after=ROWS,
         more="the end of the COPY is told; what Sync would have committed is not"),
    case("copy data without a copy", send(line(1), copy_done(), copy_fail("x")), ask("SELECT 1")),
    case("copy data inside a batch", send(parse("SELECT 1"), line(1), copy_done(), bind(), execute(), sync()), ready()),
    case("copy data inside a block", ask("BEGIN"), send(line(1), copy_done()), ask("SELECT 1"), ask("COMMIT")),
    case("copy from a program", ask("COPY scratch FROM PROGRAM 'true'"), ask("SELECT 1")),
    case("copy in, the session is ended by the server", send(query(INTO)), until("G"), send(line(1)),
         lambda play: play.outside(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY scratch%' AND state = 'active'"),
        closed(), after=ROWS,
         own="the line that is named depends on when the signal comes"),
]
