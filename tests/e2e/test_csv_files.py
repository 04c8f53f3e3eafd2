"""CSV files as people have them: exports with semicolons, Latin-1, headings that are missing or equal. What is not read as it is meant
is an error that names the place and what would be right, the same in files and sql."""
import csv
import io
import json
import os
import random
import sqlite3
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ["BATON_BIN"])
SEED = int(os.environ.get("BATON_TEST_SEED", "8817"))


class Files(unittest.TestCase):
    def setUp(self):
        where = tempfile.TemporaryDirectory(prefix="baton-csv-")
        self.addCleanup(where.cleanup)
        self.dir = Path(where.name)
        self.settings = {"files": {"roots": [where.name]}, "sql": {"databaseDir": where.name + "/db", "roots": [where.name]}}

    def run_step(self, agent, skill, **parameters):
        done = subprocess.run([BIN / ("baton-agent-" + agent), "--once", skill], input=json.dumps({"parameters": parameters}),
                              capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, BATON_SETTINGS=json.dumps(self.settings[agent])))
        return json.loads(done.stdout)

    def read(self, data, **parameters):
        """The answers of files.csv and of sql.load for a file."""
        path = self.dir / "x.csv"
        path.write_bytes(data)
        return (self.run_step("files", "csv", path=str(path), **parameters),
                self.run_step("sql", "load", file=str(path), table="t", replace=True, **parameters))

    def both_fail(self, data, why, **parameters):
        for answer in self.read(data, **parameters):
            self.assertEqual(answer["outcome"], "failed", answer)
            self.assertIn(why, answer["failure"]["message"])

    def both_read(self, data, **parameters):
        answers = self.read(data, **parameters)
        for answer in answers:
            self.assertEqual(answer["outcome"], "completed", answer)
        return [answer["result"] for answer in answers]

    def test_semicolons_without_a_delimiter_are_not_one_column(self):
        for c, name in ((b";", ";"), (b"\t", "tab"), (b"|", "|")):
            with self.subTest(name=name):
                data = b"id" + c + b"price\n1" + c + b"2\n"
                self.both_fail(data, "set delimiter to \"%s\"" % name)
                self.assertEqual(self.both_read(data, delimiter=name)[0]["data"]["rows"], [[1, 2]])
                self.assertEqual(len(self.both_read(data, delimiter=",")[0]["data"]["columns"]), 1)
        path = self.dir / "x.csv"
        answer = self.run_step("sql", "load", csv="id;price\n1;2\n", table="u")
        self.assertIn("set delimiter to \";\"", answer["failure"]["message"], path)

    def test_headings_that_are_missing_or_equal_are_named(self):
        self.both_fail(b"a,,c\n1,2,3\n", "column 2 has no name")
        self.both_fail(b"a,b,a\n1,2,3\n", "the column 'a' is there twice")

    def test_names_that_differ_in_case_only_are_two_columns_but_not_in_sql(self):
        read, load = self.read(b"Name,name\n1,2\n")
        self.assertEqual(read["result"]["data"]["columns"], ["Name", "name"])
        self.assertIn("'Name' and 'name' are one name in SQL", load["failure"]["message"])
        self.assertIn("`columns`", load["failure"]["message"])
        self.both_read(b"Name,other\n1,2\n")
        renamed = self.run_step("sql", "load", file=str(self.dir / "x.csv"), table="t", replace=True, columns=["a", "b"])
        self.assertEqual(renamed["outcome"], "completed")

    def test_bytes_that_are_not_utf_8_are_counted_by_both(self):
        read, load = self.both_read("name,n\nMüller,1\nGarçon,2\n".encode("latin-1"))
        self.assertEqual((read["data"]["replaced"], load["data"]["replacedBytes"]), (2, 2))
        self.assertIn("2 bytes were not UTF-8", load["text"])
        read, load = self.both_read("name,n\nMüller,1\n".encode())
        self.assertEqual((read["data"]["replaced"], load["data"]["replacedBytes"]), (0, 0))

    def test_utf_16_is_named(self):
        self.both_fail("a,b\n1,2\n".encode("utf-16"), "UTF-16")

    def test_a_thousand_columns_are_refused(self):
        wide = ",".join("c%d" % i for i in range(1000))
        self.both_fail((wide + "\n" + wide + "\n").encode(), "more than 256 fields")

    def test_texts_are_those_of_python(self):
        rng = random.Random(SEED)
        pieces = ["a", "x y", ",", ";", '"', '""', "\n", "\r\n", "ü", "€", "𝄞", "'", "\t", "-0", "007", "1e400", "NULL", " 1", "é" * 50]
        for _ in range(40):
            names = ["c%d" % i for i in range(rng.randint(1, 6))]
            rows = [["t" + "".join(rng.choice(pieces) for _ in range(rng.randint(0, 6))) for _ in names] for _ in range(rng.randint(1, 30))]
            out = io.StringIO(newline="")
            csv.writer(out, lineterminator=rng.choice(["\n", "\r\n"])).writerows([names] + rows)
            data = (b"\xef\xbb\xbf" if rng.random() < 0.3 else b"") + out.getvalue().encode()
            with self.subTest(seed=SEED, data=data):
                read, _ = self.both_read(data, delimiter=",")
                self.assertEqual(read["data"]["rows"], rows)
                db = sqlite3.connect(self.dir / "db" / "main.db")
                self.assertEqual([list(row) for row in db.execute("SELECT * FROM t")], rows)
                db.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
