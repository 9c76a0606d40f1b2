"""Schemas and value sets for the moves in both directions (test_corpus.py).

OUT begins at the engine: `ddl`, then `rows` (SQL, or SQL with parameters). BACK begins at PostgreSQL: the tool
is moved there with `ddl` and `rows`, then `postgres` is run as its role. `refused` names the code of the refusal
and words of its message; without it the values must be equal at the other home, and again after the way back.
"""
import random
import string

I64 = 9223372036854775807
WIDE = 200
RANDOM_TEXT = "".join(random.Random(7).choices(string.ascii_letters, k=9_000))    # nothing to compress


def case(name, ddl, rows=(), refused=None, **more):
    return dict(name=name, ddl=[ddl] if isinstance(ddl, str) else list(ddl), rows=list(rows), refused=refused, **more)


def typed(name, column, *values, refused=None):
    """One table, one column of a type, one row a value; a NULL besides."""
    rows = [(f"INSERT INTO t (id, v) VALUES ({i}, %s)", (v,)) for i, v in enumerate(values)]
    return case(name, f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {column})",
                rows + ["INSERT INTO t (id, v) VALUES (100, NULL)"], refused)


def literal(name, column, *values, refused=None):
    rows = [f"INSERT INTO t (id, v) VALUES ({i}, {v})" for i, v in enumerate(values)]
    return case(name, f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {column})", rows, refused)


OUT = [
    # Numbers
    literal("integer extremes", "INTEGER", I64, f"-{I64} - 1", 0, -1, 2**31, -2**31 - 1, 2**53, 2**53 + 1),
    literal("integer types", "BIGINT", 1, I64),
    literal("small integer types", "SMALLINT", 1, 40000, I64),
    case("integer keys at both ends", "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)",
         [f"INSERT INTO t (id, v) VALUES ({I64}, 'last'), (-5, 'minus'), (0, 'zero')"]),
    literal("plain reals", "REAL", 0.1, 1.5, -2.25, "1e10", "3.141592653589793", "0.30000000000000004"),
    literal("extreme reals", "REAL", "1.7976931348623157e308", "-1.7976931348623157e308", "2.2250738585072014e-308"),
    literal("subnormal reals", "REAL", "5e-324", "-5e-324", "2.225073858507201e-308"),
    literal("minus zero", "REAL", "-0.0", "0.0"),
    literal("infinity", "REAL", "9e999", refused=("bad_value", "t", "v")),
    literal("minus infinity", "REAL", "-9e999", refused=("bad_value", "t", "v")),
    literal("integers in a real column", "REAL", 5, -7, 2**53),
    literal("numeric", "NUMERIC", 1, 1.5, "0.1"),
    literal("numeric with places", "NUMERIC(10,2)", "10.25", "0.1"),
    literal("large integers in a real column", "DOUBLE PRECISION", 9007199254740992, 123456789012),
    literal("boolean as integer", "BOOLEAN", 1, 0),
    literal("numbers without fraction", "DOUBLE PRECISION", "1e300", "100000.0", "-3.0"),
    # Text
    typed("empty text", "TEXT", "", " ", "  x  "),
    typed("text with controls", "TEXT", "a\tb", "a\nb", "a\r\nb", "a\x08\x0b\x0c", "\x01", "\x1f", "\x7f"),
    typed("backslashes", "TEXT", "\\", "\\\\", "\\N", "\\.", "\\x41", "C:\\new\\table", "\\t"),
    typed("quotes", "TEXT", "'", "''", '"', "it's", "$$", "$1", "; DROP TABLE t; --", "/* x */"),
    typed("words that look like NULL", "TEXT", "NULL", "null", "\\N", "nil"),
    typed("four byte characters", "TEXT", "😀", "𝔘𝔫𝔦", "\U0010ffff"),
    typed("combining characters", "TEXT", "e\u0301", "\u00e9", "Å", "A\u030a", "\u200d\u200e", "\ufeffbom"),
    typed("scripts", "TEXT", "日本語", "العربية", "हिन्दी", "ελληνικά", "Straße"),
    typed("long text", "TEXT", "x" * 100_000, "ü" * 50_000),
    typed("numbers as text", "TEXT", "007", "1e3", "0x10", "  1 ", "+5", "1.0", str(I64) + "0"),
    typed("dates as text", "TIMESTAMP", "2024-02-29 12:00:00", "0000-00-00", "infinity", "yesterday"),
    typed("json as text", "JSON", '{"a": [1, 2.50], "b": "\\u00e9"}', "{broken", "[]"),
    typed("varchar is text", "VARCHAR(3)", "abc", "longer than three"),
    typed("uuid as text", "UUID", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99", ""),
    case("NUL in text", "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)",
         [("INSERT INTO t (id, v) VALUES (1, CAST(%b AS TEXT))", (b"a\0b",))], ("bad_value", "t", "v", "1")),
    case("bad UTF-8", "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)",
         [("INSERT INTO t (id, v) VALUES (7, CAST(%b AS TEXT))", (b"a\xff\xfeb",))], ("bad_value", "UTF-8", "7")),
    case("a surrogate in text", "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)",
         [("INSERT INTO t (id, v) VALUES (7, CAST(%b AS TEXT))", (b"\xed\xa0\x80",))], ("bad_value", "UTF-8", "7")),
    # Bytes
    case("blobs", "CREATE TABLE t (id INTEGER PRIMARY KEY, v BLOB)",
         [("INSERT INTO t (id, v) VALUES (1, %b)", (bytes(range(256)),)),
          ("INSERT INTO t (id, v) VALUES (2, %b)", (b"",)), ("INSERT INTO t (id, v) VALUES (3, %b)", (b"\0" * 9,)),
          ("INSERT INTO t (id, v) VALUES (4, %b)", (b"\\x41\\N\n",)), "INSERT INTO t (id) VALUES (5)"]),
    case("a blob of ten MiB", "CREATE TABLE t (id INTEGER PRIMARY KEY, v BLOB)",
         [("INSERT INTO t (id, v) VALUES (1, %b)", (bytes(i * 7 % 251 for i in range(1024)) * 10_240,))]),
    case("bytea", "CREATE TABLE t (id INTEGER PRIMARY KEY, v BYTEA)",
         [("INSERT INTO t (id, v) VALUES (1, %b)", (b"\xff\x00",))]),
    # Mixed types
    literal("text in an integer column", "INTEGER", "'abc'", refused=("bad_value", "t", "v", "text")),
    literal("text in a real column", "REAL", "'abc'", refused=("bad_value", "t", "v", "text")),
    case("a blob in a text column", "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)",
         [("INSERT INTO t (id, v) VALUES (3, %b)", (b"x",))], ("bad_value", "blob", "3")),
    literal("a fraction in an integer column", "INTEGER", "1.5", refused=("bad_value", "real")),
    literal("whole reals in an integer column", "INTEGER", "2.0", 3),
    literal("a number in a blob column", "BLOB", 5, refused=("bad_value", "integer")),
    # Keys
    case("composite key", "CREATE TABLE t (a INTEGER, b TEXT, v REAL, PRIMARY KEY (a, b))",
         ["INSERT INTO t VALUES (1, 'x', 1.5), (1, 'y', 2.5), (2, 'x', NULL)"]),
    case("text key", "CREATE TABLE t (k TEXT PRIMARY KEY, v INTEGER)",
         ["INSERT INTO t VALUES ('', 1), ('A', 2), ('a', 3), ('ä', 4), ('a ', 5)"]),
    case("NULL in a text key", "CREATE TABLE t (k TEXT PRIMARY KEY, v INTEGER)",
         ["INSERT INTO t VALUES (NULL, 1)"], ("bad_value", "NULL in a key")),
    case("NULL in a composite key", "CREATE TABLE t (a INTEGER, b INTEGER, PRIMARY KEY (a, b))",
         ["INSERT INTO t VALUES (1, NULL)"], ("bad_value", "NULL in a key")),
    case("blob key", "CREATE TABLE t (k BLOB PRIMARY KEY, v INTEGER)",
         [("INSERT INTO t VALUES (%b, 1)", (b"\0\xff",))]),
    case("real key", "CREATE TABLE t (k REAL PRIMARY KEY, v INTEGER)", ["INSERT INTO t VALUES (0.5, 1), (1e300, 2)"]),
    case("no key", "CREATE TABLE t (a INTEGER, b TEXT)", ["INSERT INTO t VALUES (1, 'x'), (1, 'x'), (NULL, NULL)"]),
    case("one column, no key", "CREATE TABLE t (a TEXT)", ["INSERT INTO t VALUES ('x'), ('x'), (NULL)"]),
    case("autoincrement with gaps", "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT)",
         ["INSERT INTO t (v) VALUES ('a'), ('b'), ('c')", "DELETE FROM t WHERE id = 2",
         "INSERT INTO t (v) VALUES ('d')"],
         next_id=5),
    case("autoincrement, last ones deleted", "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT)",
         ["INSERT INTO t (v) VALUES ('a'), ('b')", "DELETE FROM t WHERE id = 2"]),
    case("serial", "CREATE TABLE t (id SERIAL PRIMARY KEY, v TEXT)", ["INSERT INTO t (v) VALUES ('a'), ('b')"],
         next_id=3),
    case("negative keys", "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)", ["INSERT INTO t VALUES (-10, 'x')"]),
    # Constraints
    case("check", "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER CHECK (n >= 0 AND n < 10))",
         ["INSERT INTO t VALUES (1, 5), (2, NULL)"], breaks="INSERT INTO t VALUES (9, 10)"),
    case("check over columns", "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, CHECK (a < b))",
         ["INSERT INTO t VALUES (1, 1, 2)"], breaks="INSERT INTO t VALUES (9, 2, 1)"),
    case("check in a list", "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT CHECK (s IN ('new', 'old')))",
         ["INSERT INTO t VALUES (1, 'new')"], breaks="INSERT INTO t VALUES (9, 'x')"),
    case("check with length", "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT CHECK (length(s) <= 3))",
         ["INSERT INTO t VALUES (1, 'äöü')"], breaks="INSERT INTO t VALUES (9, 'abcd')"),
    case("check with like", "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT CHECK (s LIKE 'a%'))",
         ["INSERT INTO t VALUES (1, 'abc')"], ("unsupported_object", "LIKE")),
    case("check that divides", "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, CHECK (a / b >= 0))",
         ["INSERT INTO t VALUES (1, 4, 2), (2, 1, 0)"], ("row_refused", "division by zero", "id = 2")),
    case("check that divides and is good", "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER CHECK (100 / a > 3))",
         ["INSERT INTO t VALUES (1, 4)"]),
    case("check with an engine function", "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT CHECK (instr(a, 'x') = 0))",
         ["INSERT INTO t VALUES (1, 'abc')"], ("definition_refused", "t")),
    case("not null", "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)", ["INSERT INTO t VALUES (1, 0)"],
         breaks="INSERT INTO t VALUES (9, NULL)"),
    case("unique with NULLs", "CREATE TABLE t (id INTEGER PRIMARY KEY, u INTEGER UNIQUE)",
         ["INSERT INTO t VALUES (1, 5), (2, NULL), (3, NULL)"], breaks="INSERT INTO t VALUES (9, 5)"),
    case("unique over columns", "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT, UNIQUE (a, b))",
         ["INSERT INTO t VALUES (1, 1, 'x'), (2, 1, 'y'), (3, 1, NULL), (4, 1, NULL)"],
         breaks="INSERT INTO t VALUES (9, 1, 'x')"),
    case("unique text, in two cases", "CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT UNIQUE)",
         ["INSERT INTO t VALUES (1, 'a'), (2, 'A'), (3, 'e\u0301'), (4, '\u00e9')"],
         breaks="INSERT INTO t VALUES (9, 'a')"),
    case("unique text that is too long for an index", "CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT UNIQUE)",
         [("INSERT INTO t VALUES (4, %s)", (RANDOM_TEXT,))],
         ("key_too_long", "u", "id = 4")),
    case("key text that is too long for an index", "CREATE TABLE t (u TEXT PRIMARY KEY)",
         [("INSERT INTO t VALUES (%s)", (RANDOM_TEXT,))],
         ("key_too_long", "u")),
    case("unique text just short enough", "CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT UNIQUE)",
         [("INSERT INTO t VALUES (4, %s)", ("x" * 2600,))]),
    case("collation nocase", "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT COLLATE NOCASE)",
         ["INSERT INTO t VALUES (1, 'a')"], ("unsupported_object", "collation")),
    case("collation binary", "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT COLLATE BINARY)",
         ["INSERT INTO t VALUES (1, 'a')"]),
    case("generated column",
         "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER GENERATED ALWAYS AS (a * 2) STORED)",
         ["INSERT INTO t (id, a) VALUES (1, 4)"], ("unsupported_object",)),
    case("foreign key", ["CREATE TABLE p (id INTEGER PRIMARY KEY)",
                         "CREATE TABLE t (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p (id))"],
         ["INSERT INTO t VALUES (1, 77)"]),
    # Defaults
    case("defaults",
         "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER DEFAULT 5, b TEXT DEFAULT 'it''s', c REAL DEFAULT -0.5, "
         "d TEXT DEFAULT NULL, e TEXT DEFAULT '')", ["INSERT INTO t (id) VALUES (1)"],
         default_row="INSERT INTO t (id) VALUES (2)"),
    case("default now",
         "CREATE TABLE t (id INTEGER PRIMARY KEY, at TEXT DEFAULT CURRENT_TIMESTAMP, d TEXT DEFAULT CURRENT_DATE)",
         ["INSERT INTO t (id) VALUES (1)"]),
    case("default true", "CREATE TABLE t (id INTEGER PRIMARY KEY, b INTEGER DEFAULT TRUE)",
         ["INSERT INTO t (id) VALUES (1)"],
         default_row="INSERT INTO t (id) VALUES (2)"),
    # Names
    case("reserved words",
         'CREATE TABLE "order" ("select" INTEGER PRIMARY KEY, "from" TEXT, "user" TEXT, "table" TEXT)',
         ["INSERT INTO \"order\" VALUES (1, 'a', 'b', 'c')"]),
    case("quotes in names", 'CREATE TABLE "a""b" ("c""d" INTEGER PRIMARY KEY, "e f" TEXT, "g.h" TEXT)',
         ["INSERT INTO \"a\"\"b\" VALUES (1, 'x', 'y')"]),
    case("names with capitals", 'CREATE TABLE "Shop" ("Id" INTEGER PRIMARY KEY, "nAme" TEXT)',
         ["INSERT INTO \"Shop\" VALUES (1, 'x')"]),
    case("names in other scripts", 'CREATE TABLE "größe" ("длина" INTEGER PRIMARY KEY, "高さ" TEXT)',
         ["INSERT INTO \"größe\" VALUES (1, 'x')"]),
    case("a name of 63 bytes", f'CREATE TABLE "{"n" * 63}" ("{"c" * 63}" INTEGER PRIMARY KEY)',
         [f'INSERT INTO "{"n" * 63}" VALUES (1)']),
    case("a table name of 64 bytes", f'CREATE TABLE "{"n" * 64}" (id INTEGER PRIMARY KEY)', [], ("name_too_long",
         "64")),
    case("a column name of 64 bytes", f'CREATE TABLE t (id INTEGER PRIMARY KEY, "{"ö" * 32}" TEXT)', [],
         ("name_too_long", "64")),
    case("a system column", "CREATE TABLE t (id INTEGER PRIMARY KEY, ctid TEXT)", [], ("name_reserved", "ctid")),
    # Shapes
    case("wide", f"CREATE TABLE t (id INTEGER PRIMARY KEY, {', '.join(f'c{i} TEXT' for i in range(WIDE))})",
         [f"INSERT INTO t (id, c0, c{WIDE - 1}) VALUES (1, 'first', 'last')"]),
    case("empty", "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)"),
    case("many tables", [f"CREATE TABLE t{i} (id INTEGER PRIMARY KEY, v TEXT)" for i in range(12)],
         [f"INSERT INTO t{i} VALUES ({i}, 'x')" for i in range(12)]),
    case("vector", "CREATE TABLE t (id INTEGER PRIMARY KEY, v VECTOR(3))", [], ("unsupported_type", "vector")),
    case("a column added later", ["CREATE TABLE t (id INTEGER PRIMARY KEY)",
         "ALTER TABLE t ADD COLUMN v TEXT DEFAULT 'new'"],
         ["INSERT INTO t (id) VALUES (1)"]),
]

BASE = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, r REAL)"


def back(name, *postgres, refused=None, ddl=BASE, rows=("INSERT INTO t (id, v) VALUES (1, 'x')",)):
    return case(name, ddl, rows, refused, postgres=list(postgres))


BACK = [
    back("rows written there", "INSERT INTO t (id, v, r) VALUES (2, E'a\\tb\\\\', 0.1), (3, '😀', -0.5)"),
    back("NaN", "INSERT INTO t (id, r) VALUES (2, 'NaN')", refused=("bad_value", "NaN", "id = 2")),
    back("infinity there", "INSERT INTO t (id, r) VALUES (2, '-Infinity')", refused=("bad_value", "id = 2")),
    back("subnormal there", "INSERT INTO t (id, r) VALUES (2, 5e-324), (3, 1.7976931348623157e308)"),
    back("numbered rows", "INSERT INTO t (id, v) SELECT i, 'row ' || i FROM generate_series(2, 1500) i"),
    back("a table made there", "CREATE TABLE u (id bigint PRIMARY KEY, n integer NOT NULL DEFAULT 3, s varchar(5))",
         "INSERT INTO u VALUES (1, 2, 'abcde')"),
    back("smaller numbers", "CREATE TABLE u (id bigint PRIMARY KEY, a smallint, b integer, c real)",
         "INSERT INTO u VALUES (1, -32768, 2147483647, 0.5)"),
    back("a column added there", "ALTER TABLE t ADD COLUMN n bigint DEFAULT 7"),
    back("a column dropped there", "ALTER TABLE t DROP COLUMN r"),
    back("a table dropped there", "CREATE TABLE keep (id bigint PRIMARY KEY)", "DROP TABLE t"),
    back("serial there", "CREATE TABLE u (id bigserial PRIMARY KEY, v text)", "INSERT INTO u (v) VALUES ('a'), ('b')"),
    back("unique there", "CREATE TABLE u (id bigint PRIMARY KEY, a text, b text, UNIQUE (a, b))",
         "INSERT INTO u VALUES (1, 'x', NULL), (2, 'x', NULL)"),
    back("a unique index there", "CREATE UNIQUE INDEX ON t (v)"),
    back("a plain index there", "CREATE INDEX ON t (v)"),
    back("a check there", "ALTER TABLE t ADD CHECK (r IS NULL OR r > 0)"),
    back("bytea there", "CREATE TABLE u (id bigint PRIMARY KEY, b bytea)",
         "INSERT INTO u VALUES (1, '\\x00ff'), (2, '')"),
    back("no key there", "CREATE TABLE u (a text, b bigint)", "INSERT INTO u VALUES ('x', 1), ('x', 1), (NULL, NULL)"),
    back("numeric there", "ALTER TABLE t ADD COLUMN n numeric(10,2)", refused=("unsupported_type", "numeric")),
    back("timestamp there", "ALTER TABLE t ADD COLUMN n timestamptz", refused=("unsupported_type", "timestamp")),
    back("array there", "ALTER TABLE t ADD COLUMN n text[]", refused=("unsupported_type", "text[]")),
    back("jsonb there", "ALTER TABLE t ADD COLUMN n jsonb", refused=("unsupported_type", "jsonb")),
    back("an enum there", "CREATE TYPE mood AS ENUM ('a')", "ALTER TABLE t ADD COLUMN n mood",
         refused=("unsupported_type",)),
    back("a foreign key there", "CREATE TABLE u (id bigint PRIMARY KEY REFERENCES t (id))",
         refused=("unsupported_object", "foreign key")),
    back("a view there", "CREATE VIEW w AS SELECT * FROM t", refused=("unsupported_object", "view")),
    back("a sequence there", "CREATE SEQUENCE s", refused=("unsupported_object", "sequence")),
    back("a trigger there", "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
         "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()", refused=("unsupported_object",
         "trigger")),
    back("a generated column there", "ALTER TABLE t ADD COLUMN n text GENERATED ALWAYS AS (upper(v)) STORED",
         refused=("unsupported_object", "generated")),
    back("a partial unique index there", "CREATE UNIQUE INDEX ON t (v) WHERE r > 0", refused=("unsupported_object",
         "unique")),
    back("a deferrable constraint there", "ALTER TABLE t ADD UNIQUE (v) DEFERRABLE", refused=("unsupported_object",
         "deferrable")),
    back("row security there", "ALTER TABLE t ENABLE ROW LEVEL SECURITY", refused=("unsupported_object",
         "row security")),
    back("a partitioned table there", "CREATE TABLE u (id bigint) PARTITION BY RANGE (id)",
         refused=("unsupported_object", "partitioned")),
    back("inheritance there", "CREATE TABLE u (x bigint) INHERITS (t)", refused=("unsupported_object", "inheritance")),
]
