"""Cells have one type in files, sql and calc. Random CSV files go from files.csv to sql.load, sql.query and calc; Python's
csv and sqlite3 and a second writing of the rule (agents/cells/README.md) say what is right. BATON_TEST_SEED repeats a run."""
import csv
import datetime
import decimal
import io
import json
import math
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ["BATON_BIN"])
SEED = int(os.environ.get("BATON_TEST_SEED", "47728"))
FILES = int(os.environ.get("BATON_TEST_FILES", "60"))
SAFE = 2 ** 53
INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
REAL = re.compile(r"-?(0|[1-9][0-9]*)?(\.[0-9]+)?([eE][+-]?[0-9]+)?")
DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})([T ]([0-9]{2}):([0-9]{2})(:([0-9]{2})(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?")


# ---- the rule again, in Python ----

def is_integer(text):
    return INTEGER.fullmatch(text) is not None and -2 ** 63 <= int(text) < 2 ** 63


def is_real(text):
    m = REAL.fullmatch(text)
    if m is None or len(text) > 64 or (m[1] is None and m[2] is None) or (m[2] is None and m[3] is None):
        return False
    if not math.isfinite(float(text)):
        return False
    exact = decimal.Decimal(text)
    digits = len(str(int("".join(map(str, exact.as_tuple().digits)))).rstrip("0")) or 1
    return exact == decimal.Decimal("%.*e" % (digits - 1, float(text)))


def is_date(text):
    m = DATE.fullmatch(text)
    if m is None:
        return False
    try:
        datetime.date(int(m[1]), int(m[2]), int(m[3]))
    except ValueError:
        return False
    offset = (m[10] or "Z").replace(":", "")
    return (int(m[5] or 0) <= 23 and int(m[6] or 0) <= 59 and int(m[8] or 0) <= 59
            and (offset == "Z" or (int(offset[1:3]) <= 14 and int(offset[3:] or 0) <= 59)))


def kind(text):
    if text == "":
        return None
    if is_integer(text):
        return "integer" if abs(int(text)) <= SAFE else "big"
    return "real" if is_real(text) else "boolean" if text in ("true", "false") else "date" if is_date(text) else "text"


def type_of(texts):
    kinds = {kind(t) for t in texts} - {None}
    if not kinds:
        return "text"
    if kinds <= {"integer", "big"}:
        return "integer"
    if kinds <= {"integer", "real"}:
        return "real"
    return kinds.pop() if len(kinds) == 1 else "text"


def value(text, column):
    if text == "":
        return None
    return {"integer": int, "real": float, "boolean": lambda t: t == "true"}.get(column, str)(text)


def on_the_wire(v):
    return str(v) if type(v) is int and abs(v) > SAFE else v


# ---- random files ----

def random_cell(r, of):
    if of == "mixed":
        of = r.choice(["int", "big", "real", "date", "bool", "word", "odd"])
    if of == "numbers":
        of = r.choice(["int", "real"])
    if of == "int":
        return str(r.choice([0, 1, -1, 500, r.randrange(-10 ** 6, 10 ** 6), SAFE, -SAFE]))
    if of == "big":
        return str(r.choice([SAFE + 1, -SAFE - 1, 2 ** 63 - 1, -2 ** 63, r.randrange(-2 ** 63, 2 ** 63)]))
    if of == "real":
        return r.choice(["99.83", "-0.0", ".5", "1e6", "-2.5E-3", "0.1", "%.2f" % r.uniform(-1e4, 1e4), repr(r.uniform(-1e9, 1e9)),
                         "%.17g" % r.random(), repr(r.uniform(0, 1) * 10.0 ** r.randrange(-300, 300))])
    if of == "date":
        return r.choice(["2026-11-21", "2024-02-29", "2026-11-21T03:53Z", "2026-11-21 03:53:59.25+02:00", "1999-12-31T23:59:59-0530",
                         str(datetime.date(1, 1, 1) + datetime.timedelta(days=r.randrange(3650000)))])
    if of == "bool":
        return r.choice(["true", "false"])
    if of == "odd":
        return r.choice(["007", "+1", "0x10", "inf", "nan", "NaN", " 5", "5 ", "1,5", "5.", "-", ".", "1e400", "-0", "--1", "TRUE", "1_000",
                         "9223372036854775808", "12345678901234567890.5", "1234567890123456.78", "2026-02-29", "2026-13-01", "20261121",
                         "2026-11-21T24:00", "\u0663", "1e-400", "00.5", "0.0e5"])
    return r.choice(["a", "ä€😀", 'say "hi"', "x,y", "two\nlines", "crlf\r\ninside", "semi;colon", "'", "tab\there", "null", "  "])


def random_csv(r):
    kinds = ["int", "big", "real", "numbers", "date", "bool", "word", "odd", "mixed"]
    columns = [r.choice(kinds) for _ in range(r.randrange(1, 7))]
    empty = r.choice([0.0, 0.0, 0.2, 1.0])
    rows = [[f"c{i}" + r.choice(["", " ü", ',"']) for i in range(len(columns))]]
    for _ in range(r.randrange(0, 40)):
        row = [("" if r.random() < empty else random_cell(r, of)) for of in columns]
        rows.append(row[:r.randrange(1, len(row) + 1)] if r.random() < 0.05 else row)
    end = r.choice(["\n", "\r\n"])
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=end, quoting=r.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    for row in rows:
        writer.writerow(row)
        if r.random() < 0.05:
            out.write(end)  # a blank line
    text = out.getvalue()
    return text[:-len(end)] if r.random() < 0.3 and not text.endswith(end * 2) else text


class Cells(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.work = Path(self.dir.name)
        self.settings = {"files": {"roots": [str(self.work)]}, "calc": {},
                         "sql": {"databaseDir": str(self.work / "db")}}

    def ask(self, agent, skill, **parameters):
        done = subprocess.run([BIN / ("baton-agent-" + agent), "--once", skill], input=json.dumps({"parameters": parameters}),
                              capture_output=True, text=True, encoding="utf-8", timeout=60,
                              env=dict(os.environ, BATON_SETTINGS=json.dumps(self.settings[agent])))
        answer = json.loads(done.stdout)
        self.assertEqual(answer["outcome"], "completed", answer.get("failure"))
        return answer["result"]["data"]

    def same(self, got, want, about):
        """Equal in value and in kind: 1, 1.0 and True differ; a real may be written as an integer."""
        def form(v):
            return (type(v) is bool, type(v) is str, v is None, v)
        self.assertEqual([[form(v) for v in row] for row in got], [[form(v) for v in row] for row in want], about)

    def check(self, text, bom):
        (self.work / "t.csv").write_bytes((b"\xef\xbb\xbf" if bom else b"") + text.encode())
        records = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
        names, records = records[0], [row + [""] * (len(records[0]) - len(row)) for row in records[1:]]
        types = {name: type_of([row[i] for row in records]) for i, name in enumerate(names)}
        typed = [[value(cell, types[name]) for name, cell in zip(names, row)] for row in records]
        want = [[on_the_wire(v) for v in row] for row in typed]

        rows = self.ask("files", "csv", path=str(self.work / "t.csv"))
        self.assertEqual((rows["columns"], rows["types"]), (names, types))
        self.same(rows["rows"], want, "files.csv")

        for source in ({"rows": rows}, {"csv": text}):
            loaded = self.ask("sql", "load", table="t", replace=True, **source)
            self.assertEqual({c["name"]: c["type"] for c in loaded["columns"]}, types)
            got = self.ask("sql", "query", sql="SELECT * FROM t ORDER BY rowid", maxRows=1000)
            self.same(got["rows"], want, "sql after " + str(list(source)))
            for name in names:  # a column of the database without values has no type to see
                if any(v is not None for v in (row[names.index(name)] for row in typed)):
                    self.assertEqual(got["types"][name], types[name])
        self.check_aggregates(names, types, typed)
        self.check_calc(rows, names, types, typed)

    def check_aggregates(self, names, types, typed):
        db = sqlite3.connect(":memory:")
        sql_type = {"integer": "INTEGER", "real": "REAL", "boolean": "INTEGER"}
        quoted = ['"%s"' % n.replace('"', '""') for n in names]
        db.execute("CREATE TABLE t (%s)" % ", ".join(q + " " + sql_type.get(types[n], "TEXT") for q, n in zip(quoted, names)))
        db.executemany("INSERT INTO t VALUES (%s)" % ",".join("?" * len(names)), typed)
        asked = ", ".join("count(%s), min(%s), max(%s)" % (q, q, q) for q in quoted)
        want = db.execute("SELECT %s FROM t" % asked).fetchall()
        got = self.ask("sql", "query", sql="SELECT %s FROM t" % asked)
        self.same(got["rows"], [[on_the_wire(v) for v in row] for row in want], "aggregates")

    def check_calc(self, rows, names, types, typed):
        for i, name in enumerate(names):
            values = [row[i] for row in typed if row[i] is not None]
            if types[name] in ("integer", "real") and values:
                got = self.ask("calc", "statistics", values=rows, field=name)
                self.assertEqual((got["count"], float(got["min"]), float(got["max"])),
                                 (len(values), float(min(values)), float(max(values))), name)

    def test_the_three_agents_and_python_agree_on_random_files(self):
        print("test_cells: BATON_TEST_SEED=%d" % SEED, file=sys.stderr)
        for i in range(FILES):
            r = random.Random(SEED * 1000 + i)
            text, bom = random_csv(r), r.random() < 0.3
            with self.subTest(seed=SEED, file=i, text=text):
                self.check(text, bom)

    def test_amounts_are_numbers_from_the_file_to_the_answer(self):
        (self.work / "t.csv").write_text("item,amount\nx,99.83\ny,500\nz,7.5\n")
        rows = self.ask("files", "csv", path=str(self.work / "t.csv"))
        self.ask("sql", "load", table="data", rows=rows)
        self.assertEqual(self.ask("sql", "query", sql="SELECT max(amount) FROM data")["rows"], [[500.0]])

    def test_texts_of_json_are_read_by_the_same_rule(self):
        cells = [{"zip": "01234", "n": "500", "x": "99.83"}, {"zip": "99999", "n": "7", "x": "3"}, {"zip": "", "n": "", "x": ""}]
        self.ask("sql", "load", table="data", rows=cells)
        got = self.ask("sql", "query", sql="SELECT max(zip), max(n), max(x), min(zip) FROM data")
        self.assertEqual(got["rows"], [["99999", 500, 99.83, ""]])
        self.assertEqual(self.ask("calc", "statistics", values=cells, field="n")["max"], 500)

    def test_a_type_that_is_set_holds_in_all_three(self):
        (self.work / "t.csv").write_text("zip,n\n12345,1\n,2\n")
        rows = self.ask("files", "csv", path=str(self.work / "t.csv"), types={"zip": "text"})
        self.assertEqual(rows["rows"], [["12345", 1], ["", 2]])
        loaded = self.ask("sql", "load", table="t", rows=rows)
        self.assertEqual(loaded["columns"][0], {"name": "zip", "type": "text"})
        got = self.ask("sql", "query", sql="SELECT zip FROM t")
        self.assertEqual((got["rows"], got["types"]), ([["12345"], [""]], {"zip": "text"}))


if __name__ == "__main__":
    unittest.main()
