"""Clients that share links to a real PostgreSQL: nothing of one reaches another, nothing gets stuck."""
import os
import random
import threading
import time

import psycopg
import pytest
from hotlane_test.gate import Gate
from hotlane_test.harness import Harness
from hotlane_test.process import free_port, make_folder, wait_until
from hotlane_test.servers import Postgres


@pytest.fixture(scope="module")
def pg():
    server = Postgres(make_folder("pool-"), settings={"max_connections": 60}).start()
    yield server
    server.stop("immediate")


@pytest.fixture
def pool(pg):
    """Makes harnesses with a pool; every one of them must end with its counters at their start."""
    made = []

    def make(*options, port=None, threads=1):
        made.append(Harness("127.0.0.1", port or pg.port, "threads", threads, "pool", *options))
        return made[-1]
    yield make
    for one in made:
        one.close()


def backends(pg) -> int:
    return pg.execute("select count(*) from pg_stat_activity where backend_type = 'client backend' "
                      "and pid <> pg_backend_pid()")[0][0]


def test_many_clients_share_few_links(pg, pool):
    hl = pool(4, threads=2)
    clients = [hl.connect() for _ in range(100)]
    assert hl.stats()["links_open"] <= 4
    for i, c in enumerate(clients):
        assert c.execute("select %s::int", (i,)).fetchone() == (i,)
    assert hl.stats()["links_open"] <= 4 and hl.stats()["links_lent"] == 0
    assert hl.stats()["link_opens"] <= 4
    for c in clients:
        c.close()


def test_who_waits_too_long_is_told_why(pool):
    hl = pool(1, "pool_wait", 800, "pool_notice", 300)
    with hl.connect() as a, hl.connect() as b:
        notices = []
        b.add_notice_handler(lambda n: notices.append(n.message_primary))
        a.execute("begin")
        with pytest.raises(psycopg.Error) as late:
            b.execute("select 1")
        assert late.value.sqlstate == "57P03" and "links are in use" in str(late.value)
        assert notices and "waiting" in notices[0]
        a.execute("commit")
        assert b.execute("select 2").fetchone() == (2,)


def test_waiters_are_served_in_their_order(pool):
    hl = pool(1)
    with hl.connect() as first:
        first.execute("create table if not exists turns (n int, at timestamptz default clock_timestamp())")
        first.execute("truncate turns")
        first.execute("begin")
        clients = [hl.connect() for _ in range(6)]
        threads = []
        for i, c in enumerate(clients):
            threads.append(threading.Thread(target=c.execute, args=(f"insert into turns values ({i})",)))
            threads[-1].start()
            wait_until(lambda want=i + 1: hl.stats()["link_waiters"] == want, 10, "it waits")
        first.execute("commit")
        for t in threads:
            t.join(20)
        assert [r[0] for r in first.execute("select n from turns order by at").fetchall()] == list(range(6))
        for c in clients:
            c.close()


def test_a_transaction_that_a_client_left_open_is_rolled_back(pg, pool):
    hl = pool(2)
    with hl.connect() as c:
        c.execute("create table if not exists left_open (n int)")
    gone = hl.connect()
    gone.execute("begin")
    gone.execute("insert into left_open values (1)")
    gone.pgconn.finish()
    wait_until(lambda: hl.stats()["links_lent"] == 0, 10, "its link is gone")
    with hl.connect() as c:
        assert c.execute("select count(*) from left_open").fetchone() == (0,)
        assert c.execute("select txid_current_if_assigned()").fetchone() == (None,)
    assert hl.stats()["closed"]["state"] == 1


def test_settings_follow_their_client(pool):
    hl = pool(1)
    with hl.connect() as a, hl.connect() as b:
        a.execute("set timezone = 'Asia/Tokyo'")
        a.execute("set statement_timeout = '77s'")
        a.execute("select set_config('work_mem', '7MB', false)")
        assert b.execute("show timezone").fetchone() != ("Asia/Tokyo",)
        assert b.execute("show work_mem").fetchone() != ("7MB",)
        for _ in range(3):
            assert a.execute("show timezone").fetchone() == ("Asia/Tokyo",)
            assert a.execute("show statement_timeout").fetchone() == ("77s",)
            assert a.execute("show work_mem").fetchone() == ("7MB",)
            assert b.execute("show statement_timeout").fetchone() == ("0",)
        a.execute("begin; set timezone = 'UTC'; savepoint s; set work_mem = '9MB'; rollback to s; commit")
        assert a.execute("show timezone").fetchone() == ("UTC",)
        assert a.execute("show work_mem").fetchone() == ("7MB",)
        a.execute("begin; set local work_mem = '3MB'; commit")
        assert a.execute("show work_mem").fetchone() == ("7MB",)
        a.execute("reset all")
        assert a.execute("show statement_timeout").fetchone() == ("0",)
        assert a.info.parameter_status("TimeZone") == a.execute("show timezone").fetchone()[0]


def test_startup_settings_are_what_reset_returns_to(pg, pool):
    hl = pool(2)
    with psycopg.connect(hl.dsn("options='-c work_mem=11MB -cstatement_timeout=5000 --lock_timeout=3s'"),
                         autocommit=True) as c:
        for _ in range(2):
            c.execute("set work_mem = '1MB'")
            c.execute("reset work_mem")
            assert c.execute("show work_mem").fetchone() == ("11MB",)
            assert c.execute("show statement_timeout").fetchone() == ("5s",)
            assert c.execute("show lock_timeout").fetchone() == ("3s",)
        with hl.connect() as plain:
            assert plain.execute("show work_mem").fetchone() == ("4MB",)


def test_prepared_statements_of_many_clients_on_few_links(pool):
    hl = pool(2, "statements", 5)
    clients = [hl.connect(prepare_threshold=0) for _ in range(10)]
    for turn in range(5):
        for i, c in enumerate(clients):
            for k in range(4):
                # The same names in every client, for texts that differ.
                got = c.execute(f"select {i} * 100 + %s::int + {k}", (turn,)).fetchone()
                assert got == (i * 100 + turn + k,)
    for c in clients:
        c.close()


def test_a_result_that_changed_is_refused_not_misread(pool):
    hl = pool(3)
    with hl.connect(prepare_threshold=0) as a, hl.connect() as b:
        b.execute("drop table if exists changing; create table changing (n int); insert into changing values (1)")
        assert a.execute("select * from changing").fetchone() == (1,)
        b.execute("alter table changing alter n type text using 'x' || n")
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            a.execute("select * from changing")
        with hl.connect(prepare_threshold=0) as fresh:
            for _ in range(4):
                assert fresh.execute("select * from changing").fetchone() == ("x1",)


def test_a_cancel_reaches_only_its_client(pool):
    hl = pool(3, threads=2)
    stop = threading.Event()
    wrong, cancelled = [], []

    def short(tag):
        with hl.connect() as c:
            while not stop.is_set():
                try:
                    c.execute("select pg_sleep(0.002)")
                except psycopg.Error as e:
                    wrong.append((tag, e))

    def hit():
        with hl.connect() as c:
            while not stop.is_set():
                # Some hit, some come too late; none may reach who has the link next.
                timer = threading.Timer(random.random() / 10, c.cancel)
                timer.start()
                try:
                    c.execute("select pg_sleep(%s)", (random.choice([0.001, 3]),))
                except psycopg.errors.QueryCanceled:
                    cancelled.append(1)
                timer.join()

    threads = [threading.Thread(target=short, args=(i,)) for i in range(6)] + [threading.Thread(target=hit)]
    for t in threads:
        t.start()
    try:
        wait_until(lambda: len(cancelled) >= 20 or wrong, 120, "cancels have hit")
    finally:
        stop.set()
        for t in threads:
            t.join(20)
    assert not wrong, wrong[:3]


def test_a_cancel_ends_a_wait_for_a_link(pool):
    hl = pool(1)
    with hl.connect() as a, hl.connect() as b:
        a.execute("begin")
        threading.Timer(0.2, b.cancel).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            b.execute("select 1")
        a.execute("commit")
        assert b.execute("select 3").fetchone() == (3,)


def test_listen_keeps_its_link_and_gets_notifications(pool):
    hl = pool(3)
    with hl.connect() as a, hl.connect() as b:
        a.execute("listen news")
        assert hl.stats()["pinned"] == 1
        b.execute("notify news, 'hello'")
        heard = []
        a.add_notify_handler(lambda n: heard.append(n.payload))
        wait_until(lambda: a.execute("select 1") and heard == ["hello"], 10, "it hears")
        a.execute("unlisten *")
        # The home is asked for what is left behind before the link is anybody's.
        wait_until(lambda: hl.stats()["pinned"] == 0 and hl.stats()["links_lent"] == 0, 10, "it is free again")


def test_links_go_when_idle_old_or_of_an_old_route(pg, pool):
    hl = pool(3, "pool_idle", 300, "pool_min", 1)
    with hl.connect() as a, hl.connect() as b:
        a.execute("begin")
        b.execute("select 1")
        a.execute("commit")
        assert hl.stats()["links_open"] == 2
        wait_until(lambda: hl.stats()["links_open"] == 1, 10, "down to the minimum")
        assert hl.stats()["closed"]["idle"] == 1
        hl.tell(f"place 127.0.0.1 {pg.port}")
        hl.tell("poke")
        wait_until(lambda: hl.stats()["closed"]["route"] == 1, 10, "the old route's link is closed")
        assert a.execute("select 4").fetchone() == (4,)
    old = pool(2, "pool_life", 200)
    with old.connect() as c:
        c.execute("select 1")
        wait_until(lambda: old.stats()["closed"]["lifetime"] >= 1, 10, "no link lives longer")
        assert c.execute("select 5").fetchone() == (5,)


def test_identities_share_the_permits_of_a_tool(pool):
    hl = pool(2)
    names = [psycopg.connect(hl.dsn(f"application_name=app{i}"), autocommit=True) for i in range(5)]
    for _ in range(3):
        for i, c in enumerate(names):
            assert c.execute("show application_name").fetchone() == (f"app{i}",)
    assert hl.stats()["links_open"] <= 2 and hl.stats()["closed"]["evicted"] > 0
    # One keeps all links busy; another is served all the same.
    stop = threading.Event()
    busy = [psycopg.connect(hl.dsn("application_name=busy"), autocommit=True) for _ in range(4)]

    def work(c):
        while not stop.is_set():
            c.execute("select pg_sleep(0.01)")

    threads = [threading.Thread(target=work, args=(c,)) for c in busy]
    for t in threads:
        t.start()
    assert names[0].execute("select 6").fetchone() == (6,)
    stop.set()
    for t in threads:
        t.join(20)
    for c in names + busy:
        c.close()


def test_a_hold_stops_all_and_loses_none(pool):
    hl = pool(3, threads=2)
    with hl.connect() as c:
        c.execute("drop table if exists drained; create table drained (n int)")
    stop = threading.Event()
    done = [0] * 20

    def work(i):
        with hl.connect() as mine:
            while not stop.is_set():
                mine.execute("insert into drained values (%s)", (i,))
                done[i] += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(20)]
    for t in threads:
        t.start()
    wait_until(lambda: sum(done) > 100, 20, "they write")
    for _ in range(10):
        hl.tell("hold")
        assert hl.tell("drain 5000") == "drained"
        # One that was just lent may still be on its way back; nothing is sent over it.
        wait_until(lambda: hl.stats()["links_lent"] == 0, 5, "what was lent is back")
        mark = sum(done)
        hl.tell("release")
        wait_until(lambda m=mark: sum(done) > m + 40, 20, "they go on")
    stop.set()
    for t in threads:
        t.join(20)
    with hl.connect() as c:
        assert c.execute("select count(*) from drained").fetchone() == (sum(done),)


def test_a_restarted_home_gives_no_stale_link(pg, pool):
    server = Postgres(make_folder("pool-restart-")).start()
    hl = pool(4, port=server.port)
    clients = [hl.connect() for _ in range(8)]
    for c in clients:
        c.execute("select 1")
    server.stop("fast")
    server.start()
    up = time.monotonic()
    for c in clients:
        assert c.execute("select 1").fetchone() == (1,)
    assert time.monotonic() - up < 1.0
    server.stop("immediate")
    for c in clients:
        c.close()


def test_a_home_that_refuses_is_told_in_time_and_found_again(pool):
    port = free_port()
    hl = pool(2, port=port)
    start = time.monotonic()
    with pytest.raises(psycopg.OperationalError) as refused:
        hl.connect()
    assert 3 < time.monotonic() - start < 9 and "refused" in str(refused.value).lower()
    server = Postgres(make_folder("pool-late-"), port=port).start()
    with hl.connect() as c:
        assert c.execute("select 1").fetchone() == (1,)
    server.stop("immediate")


def test_two_hundred_clients_four_links_no_foreign_row(pg, pool):
    seconds = float(os.environ.get("HOTLANE_LONG_S", "12"))
    gate = Gate(pg.port)
    hl = pool(4, port=gate.port, threads=2)
    with hl.connect() as c:
        c.execute("drop table if exists mine; create table mine (who int, n int); create index on mine (who)")
    end = time.monotonic() + seconds
    foreign, replies = [], [0]

    def client(me):
        dice = random.Random(me)
        while time.monotonic() < end:
            try:
                c = hl.connect()
            except psycopg.Error:
                continue
            try:
                c.prepare_threshold = dice.choice([None, 0])
                while time.monotonic() < end:
                    what = dice.random()
                    if what < 0.02:
                        c.pgconn.send_query(b"select pg_sleep(0.05)")
                        c.pgconn.flush()
                        break     # gone in the middle
                    if what < 0.05:
                        threading.Timer(dice.random() / 100, c.cancel).start()
                    if what < 0.4:
                        c.execute("insert into mine values (%s, 1)", (me,))
                    rows = c.execute("select who, %s::int from mine where who = %s limit 5", (me, me)).fetchall()
                    replies[0] += 1
                    foreign.extend(r for r in rows if r != (me, me))
            except psycopg.Error:
                pass
            finally:
                c.close()

    threads = [threading.Thread(target=client, args=(i,)) for i in range(200)]
    for t in threads:
        t.start()
    over = threading.Event()
    while time.monotonic() < end:
        over.wait(2)
        gate.cut_all()
    for t in threads:
        t.join(60)
    assert not foreign, foreign[:5]
    assert replies[0] > 200
    wait_until(lambda: hl.stats()["links_lent"] == 0 and hl.stats()["link_waiters"] == 0, 20, "all came back")
    with hl.connect() as c:
        assert c.execute("select 1").fetchone() == (1,)
    gate.close()
