"""The caps of files, calc, sql and exec at N and at N + 1: N works, one more is an error that names the cap."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ["BATON_BIN"])


class Caps(unittest.TestCase):
    def setUp(self):
        where = tempfile.TemporaryDirectory(prefix="baton-caps-")
        self.addCleanup(where.cleanup)
        self.dir = Path(where.name)
        self.settings = {"files": {"roots": [str(self.dir)]}, "calc": {}, "sql": {"databaseDir": str(self.dir / "db"), "readOnly": False}}

    def run_step(self, agent, skill, parameters):
        done = subprocess.run([BIN / ("baton-agent-" + agent), "--once", skill], input=json.dumps({"parameters": parameters}),
                              capture_output=True, text=True, timeout=120,
                              env=dict(os.environ, BATON_SETTINGS=json.dumps(self.settings[agent])))
        if not done.stdout:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)

    def works(self, agent, skill, **parameters):
        answer = self.run_step(agent, skill, parameters)
        self.assertEqual(answer["outcome"], "completed", str(answer)[:400])
        return answer["result"]

    def fails(self, why, agent, skill, **parameters):
        answer = self.run_step(agent, skill, parameters)
        self.assertEqual(answer["outcome"], "failed", str(answer)[:400])
        self.assertIn(why, answer["failure"]["message"])

    def make(self, folder, n, text=""):
        (self.dir / folder).mkdir()
        for i in range(n):
            (self.dir / folder / ("%05d" % i)).write_text(text)
        return str(self.dir / folder)

    def file(self, name, text):
        (self.dir / name).write_text(text)
        return str(self.dir / name)

    # ---- files ----

    def test_list_holds_20000_entries(self):
        folder = self.make("many", 20000)
        data = self.works("files", "list", path=folder)["data"]
        self.assertEqual((data["count"], data["truncated"]), (20000, False))
        (Path(folder) / "one-more").write_text("")
        self.fails("result_too_large", "files", "list", path=folder)
        part = self.works("files", "list", path=folder, limit=20000)
        self.assertEqual((part["data"]["count"], part["data"]["truncated"], part["truncated"]), (20000, True, True))
        self.assertIn("[not whole: 20000 names, and there are more", part["text"])
        self.assertEqual(self.works("files", "list", path=folder, limit=20000, glob="one*")["data"]["count"], 1)

    def test_list_is_whole_at_its_limit_and_marked_below(self):
        folder = self.make("few", 3)
        self.assertFalse(self.works("files", "list", path=folder, limit=3)["data"]["truncated"])
        part = self.works("files", "list", path=folder, limit=2)
        self.assertEqual((part["data"]["count"], part["truncated"]), (2, True))

    def test_list_enters_16_directories(self):
        deep = self.dir / "deep"
        path = deep.joinpath(*["d"] * 16)
        path.mkdir(parents=True)
        self.assertEqual(self.works("files", "list", path=str(deep), recursive=True)["data"]["count"], 16)
        (path / "d").mkdir()
        self.fails("is nested deeper than 16 directories", "files", "list", path=str(deep), recursive=True)

    def test_list_has_paths_of_4095_bytes(self):
        at = os.open(self.dir, os.O_RDONLY)
        for _ in range(15):  # 15 * 256 = 3840 bytes with their slashes, so a name of 255 makes 4095
            os.mkdir("n" * 255, dir_fd=at)
            at, above = os.open("n" * 255, os.O_RDONLY, dir_fd=at), at
            os.close(above)
        os.close(os.open("f" * 255, os.O_CREAT | os.O_WRONLY, dir_fd=at))
        self.assertEqual(self.works("files", "list", path=str(self.dir), recursive=True)["data"]["count"], 16)
        os.mkdir("d" * 255, dir_fd=at)
        below = os.open("d" * 255, os.O_RDONLY, dir_fd=at)
        os.close(os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=below))
        os.close(below)
        os.close(at)
        self.fails("makes a path of more than 4095 bytes", "files", "list", path=str(self.dir), recursive=True)

    def test_csv_has_256_columns_in_all_three_agents(self):
        for n, fits in ((256, True), (257, False)):
            text = ",".join("c%d" % i for i in range(n)) + "\n" + ",".join(["1"] * n) + "\n"
            path = self.file("wide.csv", text)
            for agent, skill, parameters in (("files", "csv", {"path": path}), ("calc", "sort", {"values": text, "by": "c1"}),
                                             ("sql", "load", {"csv": text, "table": "t%d" % n})):
                with self.subTest(agent=agent, n=n):
                    if fits:
                        self.works(agent, skill, **parameters)
                    else:
                        self.fails("more than 256 fields", agent, skill, **parameters)

    def test_csv_where_has_16_columns(self):
        path = self.file("a.csv", ",".join("c%d" % i for i in range(20)) + "\n" + ",".join(["1"] * 20) + "\n")
        self.works("files", "csv", path=path, where={"c%d" % i: 1 for i in range(16)})
        self.fails("at most 16 columns", "files", "csv", path=path, where={"c%d" % i: 1 for i in range(17)})

    def test_grep_has_10_lines_of_context(self):
        path = self.file("lines", "x\n" * 40)
        self.works("files", "grep", path=path, pattern="x", context=10, limit=3)
        answer = self.run_step("files", "grep", {"path": path, "pattern": "x", "context": 11, "limit": 3})
        self.assertEqual(answer["outcome"], "failed", "the schema says at most 10")

    def test_a_line_has_1_mib(self):
        path = self.file("long", "x" * 1024 * 1024 + "\n")
        self.assertEqual(self.works("files", "grep", path=path, pattern="y")["data"]["count"], 0)
        path = self.file("long", "x" * (1024 * 1024 + 1) + "\n")
        self.fails("line", "files", "grep", path=path, pattern="y")

    def test_a_pattern_has_4096_bytes(self):
        path = self.file("p", "x\n")
        self.works("files", "grep", path=path, pattern="y" * 4096)
        self.fails("at most 4096 characters", "files", "grep", path=path, pattern="y" * 4097)

    def test_render_has_200_sections(self):
        sections = [{"heading": "h%d" % i, "text": "t"} for i in range(201)]
        self.works("files", "render", title="t", sections=sections[:200])
        self.fails("200", "files", "render", title="t", sections=sections)

    # ---- calc ----

    def test_an_expression_has_4096_bytes_and_64_levels(self):
        self.works("calc", "evaluate", expression="1" + " " * 4095)
        self.fails("at most 4096 characters", "calc", "evaluate", expression="1" + " " * 4096)
        for left, right in (("(", ")"), ("1^", ""), ("abs(", ")")):
            with self.subTest(left=left):
                self.works("calc", "evaluate", expression=left * 64 + "1" + right * 64)
                self.fails("nested more than 64 levels deep", "calc", "evaluate", expression=left * 65 + "1" + right * 65)

    def test_a_list_has_100000_numbers(self):
        self.assertEqual(self.works("calc", "statistics", values=[1] * 100000)["data"]["sum"], 100000)
        self.fails("more than 100000 values", "calc", "statistics", values=[1] * 100001)

    def test_sort_has_16_columns_and_group_32_calculations(self):
        text = ",".join("c%d" % i for i in range(20)) + "\n" + ",".join(["1"] * 20) + "\n"
        self.works("calc", "sort", values=text, by=["c%d" % i for i in range(16)])
        self.fails("16", "calc", "sort", values=text, by=["c%d" % i for i in range(17)])
        sums = [{"function": "sum", "field": "c1", "as": "s%d" % i} for i in range(33)]
        self.works("calc", "group", values=text, calculate=sums[:32])
        self.fails("32", "calc", "group", values=text, calculate=sums)

    def test_percentiles_have_100_percents(self):
        self.works("calc", "percentiles", values=[1, 2], percents=[i / 2 for i in range(100)])
        self.fails("100", "calc", "percentiles", values=[1, 2], percents=[i / 2 for i in range(101)])

    # ---- sql ----

    def test_a_result_has_max_rows(self):
        self.settings["sql"]["maxRows"] = 50
        self.works("sql", "load", rows=[[i] for i in range(51)], table="t")
        self.assertEqual(self.works("sql", "query", sql="SELECT * FROM t LIMIT 50")["data"]["rowCount"], 50)
        self.fails("more than 50 rows (the setting maxRows)", "sql", "query", sql="SELECT * FROM t")

    def test_a_value_has_16_mib_and_a_database_name_64_bytes(self):
        mib16 = 16 * 1024 * 1024
        self.assertEqual(self.works("sql", "query", sql="SELECT length(zeroblob(%d))" % mib16)["data"]["rows"], [[mib16]])
        self.fails("a value has at most", "sql", "query", sql="SELECT length(zeroblob(%d))" % (mib16 + 1))
        self.works("sql", "load", rows=[[1]], database="d" * 64)
        answer = self.run_step("sql", "load", {"rows": [[1]], "database": "d" * 65})
        self.assertEqual(answer["outcome"], "failed")

    # ---- exec ----

    def command(self, **members):
        return {"commands": [{"id": "c", "description": "d", "argv": ["/bin/echo"], "stdin": "none", "output": "text", **members}]}

    def starts(self, settings):
        return subprocess.run([BIN / "baton-agent-exec", "--card"], capture_output=True, text=True,
                              env=dict(os.environ, BATON_SETTINGS=json.dumps(settings)))

    def test_settings_of_exec(self):
        for fits, over, why in (
                (self.command(argv=["x"] * 256), self.command(argv=["x"] * 257), "argv: expected a list of at most 256"),
                (self.command(env={"E%d" % i: "1" for i in range(64)}), self.command(env={"E%d" % i: "1" for i in range(65)}), "at most 64"),
                (self.command(tags=["t%d" % i for i in range(32)]), self.command(tags=["t%d" % i for i in range(33)]), "at most 32"),
                (self.command(timeoutMs=86400000), self.command(timeoutMs=86400001), "from 1 to 86400000"),
                ({"commands": [self.command(id="c%d" % i)["commands"][0] for i in range(64)]},
                 {"commands": [self.command(id="c%d" % i)["commands"][0] for i in range(65)]}, "1 to 64 commands")):
            with self.subTest(why=why):
                self.assertEqual(self.starts(fits).returncode, 0, self.starts(fits).stderr)
                refused = self.starts(over)
                self.assertEqual(refused.returncode, 2)
                self.assertIn(why, refused.stderr)

    def test_output_of_3_mib(self):
        self.settings["exec"] = self.command(argv=["/bin/sh", "-c", "head -c {n} /dev/zero | tr '\\0' x"])
        self.assertEqual(len(self.works("exec", "c", n=3 * 1024 * 1024)["text"]), 3 * 1024 * 1024)
        self.fails("result_too_large", "exec", "c", n=3 * 1024 * 1024 + 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
