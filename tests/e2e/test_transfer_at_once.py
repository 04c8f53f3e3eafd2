"""Imports beside each other: two at once; files that change and time that runs out meanwhile."""
import json
import os
import pathlib
import subprocess
import uuid

import harness
from harness import until
from probe import Probe, step, wait_up
from test_transfer import CONFIG, bodies, seal

HEAD = '{"kind":"baton export","format":1}'


def file_of(lines):
    return seal([HEAD] + lines + ['{"kind":"sum","lines":%d}' % (len(lines) + 1)])


class AtOnce(harness.BatonTest):
    def setUp(self):
        super().setUp()
        first = self.daemon(config=CONFIG)
        probe = Probe(first, capacity=4)
        self.addCleanup(probe.close)
        wait_up(first)
        self.plan = first.submit({"goal": "keep it", "steps": [step("a"), step("b")]})
        first.wait_plan(self.plan)
        self.lines = bodies(first.cli("export", self.plan))[1:-1]
        self.first, self.second = first, self.daemon(config=CONFIG)

    def many(self, n):
        """The same plan under n ids."""
        out = []
        for _ in range(n):
            fresh = str(uuid.uuid4()).upper()
            out += [b.replace(self.plan, fresh) for b in self.lines]
        return out

    def file(self, name, lines):
        path = self.second.work / name
        path.write_text(file_of(lines))
        return path

    def begin_import(self, path, *args):
        return subprocess.Popen([harness.BIN / "baton", "import", path, "--state", self.second.state, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ended(self, process):
        out, err = process.communicate(timeout=90)
        return process.returncode, out, err

    def hold(self, lines, **fields):
        """Another client begins a plan, and its next lines do not come."""
        self.assertEqual(self.second.ask("journal.import", lines=lines[0], **fields)["result"], "more")

    def go_on(self, lines, **fields):
        self.assertEqual(self.second.ask("journal.import", lines="\n".join(lines[1:]), before=1, **fields)["result"], "done")

    def test_two_imports_at_once_both_take_all_of_their_plans(self):
        files = [self.file("a.ndjson", self.many(150)), self.file("b.ndjson", self.many(150))]
        for process in [self.begin_import(path) for path in files]:
            self.assertEqual(self.ended(process), (0, "150 plans and 0 sessions imported, 0 plans were here already\n", ""))
        self.assertEqual(len(self.second.cli("export", "--all").splitlines()), 2 + 300 * len(self.lines))
        self.assertIn("root ", self.second.cli("verify"))

    def test_the_same_file_twice_at_once_is_imported_once(self):
        lines = self.many(150)
        path = self.file("a.ndjson", lines)
        said = [self.ended(process) for process in [self.begin_import(path, "--json"), self.begin_import(path, "--json")]]
        self.assertEqual([(code, err) for code, _, err in said], [(0, ""), (0, "")], said)
        counts = [json.loads(out) for _, out, _ in said]
        self.assertEqual([c["plans"] + c["here"] for c in counts], [150, 150])
        self.assertEqual(sum(c["plans"] for c in counts), 150)
        self.assertEqual(sorted(bodies(self.second.cli("export", "--all"))[1:-1]), sorted(lines))

    def test_lines_of_another_plan_do_not_go_into_the_one_under_way(self):
        mine, other = self.many(1), self.many(1)
        name = json.loads(mine[0])["planId"]
        self.hold(mine, planId=name)
        self.assertEqual(self.second.ask_raw("journal.import", lines=other[1], before=1, planId=json.loads(other[0])["planId"])["error"]["code"], "CONFLICT")
        self.go_on(mine, planId=name)

    def asks(self, process):
        """Whether it is connected: it has read the whole file by then."""
        fds = pathlib.Path("/proc/%d/fd" % process.pid)
        return any(os.readlink(fd).startswith("socket:") for fd in fds.iterdir())

    def test_a_file_that_shrinks_while_it_is_imported_is_told_as_that(self):
        held = self.many(1)
        for held, lines in ((held, self.many(300)), (self.lines, self.lines)):  # the second one finds its plan here
            self.hold(held)
            path = self.file("a.ndjson", lines)
            process = self.begin_import(path)
            until(lambda: self.asks(process), 20, "it waits for the other import")
            os.truncate(path, path.stat().st_size // 3)
            self.go_on(held)
            code, out, err = self.ended(process)
            self.assertEqual(code, 1, out + err)
            self.assertIn("the file was changed while it was imported", err)
            self.assertNotIn("not the same", err)
            self.assertNotIn("nothing was imported", err)

    def test_time_that_runs_out_is_no_plan_that_differs(self):
        self.hold(self.lines)
        process = self.begin_import(self.file("a.ndjson", self.lines), "--timeout", "700ms")
        code, out, err = self.ended(process)
        self.assertEqual((code, err), (124, "baton: import has not ended within --timeout 700ms\n"), out)
        self.go_on(self.lines)
        code, out, err = self.ended(self.begin_import(self.file("b.ndjson", self.lines), "--timeout", "1ms"))
        self.assertEqual(code, 124, out + err)
        self.assertNotIn("not the same", err)
        self.assertIn("import has not ended within --timeout 1ms", err)


if __name__ == "__main__":
    harness.main()
