"""The mover alone on real homes: one tool database made anew for each case, and the harness that moves it."""
import json
import os
import subprocess

import psycopg

from .process import as_unprivileged, program


def accepts(run, sql):
    """Whether `run` executes it without an error."""
    try:
        run(sql)
        return True
    except psycopg.Error:
        return False


class Mover:
    """A fresh tool database at both homes, and the harness that moves it."""

    def __init__(self, bench, ddl, config=None):
        bench.number += 1
        self.bench = bench
        self.config = config or bench.hotlane.config_path
        self.state = bench.folder / f"state{bench.number}.db"
        self.ddl_file = bench.folder / f"ddl{bench.number}.sql"
        self.ddl_file.write_text(";\n".join(ddl))
        self.ddl_file.chmod(0o644)
        self.reset()
        for sql in ddl:
            self.engine(sql)
        self.first = True

    def reset(self):
        for name in {r[0] for r in self.engine("SHOW twill.catalog")}:
            quoted = name.replace('"', '""')
            self.engine(f'DROP TABLE "{quoted}"')
        self.bench.pg.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'shop'")
        self.bench.pg.execute("DROP DATABASE shop WITH (FORCE)")
        self.bench.pg.execute("CREATE DATABASE shop OWNER app")

    def engine(self, sql, params=None):
        with self.bench.engine.connect("shop") as c:
            cursor = c.execute(sql, params)
            return cursor.fetchall() if cursor.description else None

    def postgres(self, sql, params=None, user="app"):
        with psycopg.connect(self.bench.pg.dsn("shop", user), autocommit=True) as c:
            cursor = c.execute(sql, params)
            return cursor.fetchall() if cursor.description else None

    def call(self, *words, env=None, may_die=False):
        command = [program("move-harness"), "--config", str(self.config), "--state",
                   str(self.state), "--tool", "shop", *words]
        if self.first:
            command += ["--ddl", str(self.ddl_file)]
            self.first = False
        done = subprocess.run(as_unprivileged(command), capture_output=True, text=True, timeout=120,
                              env=dict(os.environ, **(env or {})))
        if may_die and done.returncode == -9:
            return None
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def move(self, home, *words, **more):
        return self.call("--to", home, *words, **more)

    def moved(self, home):
        done = self.move(home)
        assert done["moved"], json.dumps(done, indent=1)
        assert done["route"]["home"] == home and done["route"]["served"]
        return done
