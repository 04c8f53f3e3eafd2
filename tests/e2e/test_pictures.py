"""Pictures of plans: `baton graph`, `baton timeline`, the screen of `baton top`.

Stage: a supervisor that answers what a test says. Real: a real daemon.
"""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path

from harness import BIN, BatonTest, main, until
from stage import Stage

PLAN = "00000000-0000-7000-8000-0000000000AA"
SVG = "{http://www.w3.org/2000/svg}"
UTF8 = {"LC_ALL": "C.UTF-8", "COLUMNS": "80"}


def view(*steps, **more):
    return {"planId": PLAN, "status": "running", "query": "a goal", "revision": 1, "lastSeq": 0,
            "steps": [{"stepIndex": i, "status": "pending", "agentId": "calc", **s} for i, s in enumerate(steps)], **more}


def plan_of(*steps):
    """A plan file: each step is its id and what it depends on; without the latter they are a chain."""
    return {"goal": "a goal", "steps": [{"stepId": s[0], "agentId": "calc", "task": "do something that is long enough",
                                         **({"dependsOn": list(s[1:])} if s[1:] != (None,) else {})} for s in steps]}


class Graph(unittest.TestCase):
    def drawn(self, answer, *args, env=None):
        return Stage(self, {"plan.get": answer}).cli("graph", PLAN, *args, env={**UTF8, **(env or {})})

    def of_file(self, plan, *args, code=0, env=None, stdin=None):
        """-> (stdout, stderr) without a daemon."""
        done = subprocess.run([BIN / "baton", "graph", "-", *args, "--state", "/nonexistent"], input=json.dumps(plan), text=True,
                              capture_output=True, timeout=60, env={**os.environ, **UTF8, **(env or {})})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def test_plan_is_drawn_with_the_states_of_its_steps(self):
        out, err = self.drawn(view({"stepId": "rows", "status": "completed", "durationMs": 1200},
                                   {"stepId": "report", "status": "failed", "dependsOn": ["rows"]}))
        self.assertEqual((out, err), ("┌─────────────┐\n"
                                      "│ ✓ rows      │\n"
                                      "│ calc, 1.2 s │\n"
                                      "└──────┬──────┘\n"
                                      "       │\n"
                                      " ┌─────▼────┐\n"
                                      " │ ✗ report │\n"
                                      " │ calc     │\n"
                                      " └──────────┘\n", ""))

    def test_conditions_stand_in_the_boxes_of_plans_and_of_files_in_every_form(self):
        steps = [{"stepId": "rows", "agentId": "calc", "task": "do something that is long enough", "dependsOn": []},
                 {"switch": [{"when": {"results.rows.n": {"gte": 5}}, "steps": [
                     {"stepId": "many", "agentId": "calc", "task": "do something that is long enough"}]},
                     {"else": True, "steps": [{"stepId": "few", "agentId": "calc", "task": "do something that is long enough"}]}]}]
        stored = view({"stepId": "rows", "status": "completed"},
                      {"stepId": "many", "dependsOn": ["rows"], "status": "skipped", "when": {"results.rows.n": {"gte": 5}}},
                      {"stepId": "few", "dependsOn": ["rows"], "when": {"not": {"results.rows.n": {"gte": 5}}}},
                      {"stepId": "clean", "dependsOn": ["rows"], "runIf": "failure"})
        for out in (self.of_file({"goal": "a goal", "steps": steps})[0], self.drawn(stored)[0]):
            self.assertIn("if rows.n >= 5", out)
            self.assertIn("if rows.n < 5", out)
        self.assertIn("if a step before it", self.drawn(stored)[0])
        self.assertIn("failed", self.drawn(stored)[0])
        for form, words in (("dot", "\\nif rows.n < 5\""), ("mermaid", "<br/>if rows.n #60; 5\""), ("svg", ">if rows.n &lt; 5</text>"),
                            ("json", '"if":"rows.n < 5"')):
            self.assertIn(words, self.drawn(stored, "-o", form)[0])

    def test_file_needs_no_daemon_and_only_ascii_without_utf8(self):
        out = self.of_file(plan_of(("a",), ("b", "a")), env={"LC_ALL": "C"})[0]
        self.assertEqual(out, "+------+\n| a    |\n| calc |\n+---+--+\n    |\n+---v--+\n| b    |\n| calc |\n+------+\n")

    def test_chain_is_drawn_as_one_from_a_file_and_from_a_plan(self):
        document = {"steps": [{"stepId": "a"}, {"stepId": "b"}]}
        stored = self.drawn(lambda r: view(steps=[], document=document) if r.get("document") else view({"stepId": "a"}, {"stepId": "b"}))[0]
        self.assertEqual(stored.count("▼"), 1)
        self.assertEqual(self.of_file(plan_of(("a", None), ("b", None)))[0].count("▼"), 1)
        self.assertEqual(self.of_file(plan_of(("a",), ("b",)))[0].count("▼"), 0)

    def test_steps_that_a_later_revision_does_without_are_left_out_with_a_note(self):
        out, err = self.drawn(view({"stepId": "a", "superseded": True}, {"stepId": "b", "dependsOn": ["a"]}, {"stepId": "a"}))
        self.assertEqual((out.count("▼"), out.count("calc")), (1, 2))
        self.assertIn("not drawn: 1 step", err)

    def test_plan_that_is_too_wide_is_a_list_that_says_so(self):
        wide = plan_of(("first",), *((str(i), "first") for i in range(30)), ("last", *map(str, range(30))))
        lines = self.of_file(wide)[0].splitlines()
        self.assertIn("too wide to draw in 80 columns: it needs ", lines[0])
        self.assertEqual(len(lines), 33)
        self.assertRegex(lines[-1], r"^ +3  last +calc ← 0, 1, .* and \d+ more$")
        self.assertTrue(all(len(line) <= 80 for line in lines[1:]))
        self.assertNotIn("too wide", self.of_file(wide, env={"COLUMNS": "400"})[0])

    def test_hostile_names_stay_names(self):
        bad = "a\"];</text>\x1b[31m&"
        answer = view({"stepId": bad, "agentId": "計画"}, {"stepId": "b", "dependsOn": [bad]}, query="<script>\x07")
        self.assertIn("│ · a\"];</text>?[31m& │", self.drawn(answer)[0])
        tree = ET.fromstring(self.drawn(answer, "-o", "svg")[0])
        self.assertIn("· a\"];</text>?[31m&", [t.text for t in tree.iter(SVG + "text")])
        self.assertEqual([t.text for t in tree.findall(SVG + "title")], ["<script>?"])
        self.assertIn('[label="a\\"];</text>?[31m&amp;\\n計画"', self.drawn(answer, "-o", "dot")[0])
        self.assertIn('s1["a#34;#93;#59;#60;/text#62;#63;#91;31m#38;<br/>計画"]', self.drawn(answer, "-o", "mermaid")[0])

    @unittest.skipUnless(shutil.which("dot"), "Graphviz is missing")
    def test_graphviz_reads_the_dot_form(self):
        names = ["a\"];", "b\\N\\", "<b>", "&amp;lt;", "計画", "end"]
        answer = view(*({"stepId": n, "dependsOn": names[:i]} for i, n in enumerate(names)))
        read = subprocess.run(["dot", "-Tjson"], input=self.drawn(answer, "-o", "dot")[0], capture_output=True, text=True, timeout=60)
        self.assertEqual((read.returncode, read.stderr), (0, ""))
        labels = [o["label"].split("\\n")[0] for o in json.loads(read.stdout)["objects"]]
        self.assertEqual(labels, ["a\"];", "b\\\\N\\\\", "<b>", "&amp;amp;lt;", "計画", "end"])
        self.assertEqual(len(json.loads(read.stdout)["edges"]), 15)

    def test_json_has_steps_and_what_they_depend_on(self):
        out = self.drawn(view({"stepId": "a", "status": "completed"}, {"stepId": "b", "dependsOn": ["a"]}), "--json")[0]
        self.assertEqual(json.loads(out), {"planId": PLAN, "steps": [{"stepId": "a", "dependsOn": [], "status": "completed"},
                                                                     {"stepId": "b", "dependsOn": ["a"], "status": "pending"}]})

    def test_data_have_the_forms_of_every_verb(self):
        plan = plan_of(("a",))
        self.assertEqual(self.of_file(plan, "-o", "json")[0], self.of_file(plan, "--json")[0])
        self.assertEqual(self.of_file(plan, "-o", "yaml")[0].splitlines()[:2], ["steps:", "- stepId: a"])
        self.assertEqual(self.of_file(plan, "-o", "table")[0], self.of_file(plan)[0])
        self.assertIn("exclude each other", "".join(self.of_file(plan, "--json", "-o", "svg", code=2)))

    def test_large_plans_are_drawn_in_every_form(self):
        for n in (200, 5000):
            chain = plan_of(("s0",), *(("s%d" % i, "s%d" % (i - 1)) for i in range(1, n)))
            self.assertEqual(self.of_file(chain)[0].count("▼"), n - 1)
            ET.fromstring(self.of_file(chain, "-o", "svg")[0])
            self.assertEqual(self.of_file(chain, "-o", "dot")[0].count("->"), n - 1)

    def test_bad_input_says_what_would_be_right(self):
        self.assertIn("expected dot, svg, mermaid, json, jsonl, table or yaml, got 'pdf'", self.of_file(plan_of(("a",)), "-o", "pdf", code=2)[1])
        self.assertEqual(self.of_file(plan_of(("a", "b"), ("b", "a")), code=2)[1],
                         "  error: step 1 (a): dependsOn: the steps wait for each other: a -> b -> a [cycle_detected]\n")
        with open("/dev/full", "w") as full:
            done = subprocess.run([BIN / "baton", "graph", "-"], input=json.dumps(plan_of(("a",))), text=True, stdout=full,
                                  stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 1)


class Timeline(unittest.TestCase):
    """events: (ms, type, step or None, fields)"""
    HOUR = 3600 * 1000

    def stage(self, plan, events, starts=(), base=1000000):
        said = [{"seq": i + 1, "type": type_, "tsMs": base + ms, **({} if step is None else {"stepIndex": step}), **more}
                for i, (ms, type_, step, more) in enumerate(events)]
        restarts = [{"seq": seq + 0.5, "type": "supervisor_started", "tsMs": base + ms} for seq, ms in starts]

        def read(r):
            found = [e for e in (said if "planId" in r else restarts) if e["seq"] >= r["fromSeq"]]
            page = found[:r["limit"]]
            return {"events": page, "nextSeq": page[-1]["seq"] + 1 if page != found else len(said) + 1, "lastSeq": len(said)}
        return Stage(self, {"plan.get": {**plan, "lastSeq": len(said)}, "events.read": read})

    def rows(self, *args, **more):
        out = json.loads(self.stage(*args, **more).cli("timeline", PLAN, "--json")[0])
        return {r["name"]: [(s["kind"], s["fromMs"], s["toMs"]) for s in r["spans"]] for r in out["rows"]}

    def test_each_wait_and_each_attempt_is_a_span(self):
        plan = view({"stepId": "a", "status": "completed"}, {"stepId": "b", "dependsOn": ["a"], "status": "failed"}, status="failed")
        self.assertEqual(self.rows(plan, [
            (0, "planning_started", None, {}), (50, "plan_generated", None, {"revision": 1}), (50, "plan_started", None, {}),
            (60, "plan_step_started", 0, {"instanceId": "I"}), (100, "plan_step_completed", 0, {"instanceId": "I"}),
            (150, "quality_gate_started", 1, {}), (200, "quality_gate_passed", 1, {}), (250, "plan_step_started", 1, {}),
            (250, "plan_step_waiting", 1, {}), (300, "plan_paused", None, {"reason": "review"}), (400, "review_decided", 1, {}),
            (400, "plan_resumed", None, {"reason": "review"}), (500, "plan_step_retry", 1, {"delayMs": 100}),
            (700, "fallback_used", 1, {"action": "wait_and_retry", "delayMs": 50}), (800, "plan_step_completed", 1, {}),
            (800, "synthesis_started", None, {}), (900, "synthesis_finished", None, {}), (900, "plan_completed", None, {})]), {
                "(planning)": [("running", 0, 50)], "(paused)": [("waiting for a person", 300, 400)], "(answer)": [("running", 800, 900)],
                "a": [("queued", 50, 60), ("running", 60, 100)],
                "b": [("queued", 100, 150), ("asking an agent", 150, 200), ("queued", 200, 250),
                      ("waiting for a person", 250, 400), ("running", 400, 500), ("backoff", 500, 600), ("running", 600, 700),
                      ("backoff", 700, 750), ("running", 750, 800)]})

    def test_step_of_a_later_revision_is_queued_from_then_on(self):
        plan = view({"stepId": "a", "status": "failed", "superseded": True}, {"stepId": "b", "revision": 2, "status": "completed"})
        self.assertEqual(self.rows(plan, [
            (0, "plan_started", None, {}), (10, "plan_step_started", 0, {}), (20, "replan_started", 0, {}),
            (90, "replan_finished", 0, {"revision": 2}), (90, "plan_step_completed", 0, {}), (95, "plan_step_started", 1, {}),
            (99, "plan_step_completed", 1, {}), (100, "plan_completed", None, {})]), {
                "a": [("queued", 0, 10), ("running", 10, 20), ("asking an agent", 20, 90)], "b": [("queued", 90, 95), ("running", 95, 99)]})

    def test_attempt_that_the_same_instance_ends_after_a_restart_is_adopted(self):
        plan = view({"stepId": "a", "status": "completed"}, {"stepId": "b", "status": "completed"})
        events = [(0, "plan_started", None, {}), (0, "plan_step_started", 0, {"instanceId": "I"}), (0, "plan_step_started", 1, {"instanceId": "J"}),
                  (90, "plan_step_completed", 0, {"instanceId": "I"}), (95, "plan_step_completed", 1, {"instanceId": "K"}),
                  (100, "plan_completed", None, {})]
        rows = self.rows(plan, events, starts=[(3, 40)])
        self.assertEqual((rows["a"], rows["b"]), ([("running", 0, 40), ("adopted", 40, 90)], [("running", 0, 40), ("running", 40, 95)]))

    def test_plan_that_runs_is_drawn_until_now(self):
        plan = view({"stepId": "a", "status": "in_progress"},
                    {"stepId": "b", "status": "in_progress", "waiting": {"kind": "lane"}}, {"stepId": "c", "dependsOn": ["a"]})
        now = int(time.time() * 1000)
        rows = self.rows(plan, [(0, "plan_started", None, {}), (0, "plan_step_started", 0, {}), (0, "plan_step_started", 1, {}),
                                (10, "plan_step_retry", 1, {"delayMs": 10})], base=now - 60000)
        self.assertGreaterEqual(rows["a"][0][2], 60000)
        self.assertEqual((rows["b"][1], rows["b"][2][0], rows["c"]), (("backoff", 10, 20), "queued", []))

    def test_plans_of_3_ms_and_of_3_days_have_an_axis_that_fits(self):
        for length, tick in ((3, "1 ms"), (72 * self.HOUR, "12 h"), (0, "0")):
            out = self.stage(view({"stepId": "a", "status": "completed"}, status="completed"), [
                (0, "plan_started", None, {}), (0, "plan_step_started", 0, {}), (length, "plan_step_completed", 0, {}),
                (length, "plan_completed", None, {})]).cli("timeline", PLAN, env=UTF8)[0]
            self.assertIn("│" + tick, out)
            self.assertTrue(all(len(line) <= 80 for line in out.splitlines()), out)
            self.assertIn("█", out)

    def test_500_attempts_and_2000_steps_are_all_there(self):
        plan = view({"stepId": "a", "status": "completed", "attempts": 501}, *({"stepId": "s%d" % i, "status": "completed"} for i in range(2000)))
        events = [(0, "plan_started", None, {}), (0, "plan_step_started", 0, {})]
        events += [(100 * i, "plan_step_retry", 0, {"delayMs": 50}) for i in range(1, 501)]
        events += [(60000 + i, "plan_step_started", 1 + i, {}) for i in range(2000)] + [(70000, "plan_step_completed", 0, {})]
        events += [(80000 + i, "plan_step_completed", 1 + i, {}) for i in range(2000)] + [(90000, "plan_completed", None, {})]
        s = self.stage(plan, events)
        out = s.cli("timeline", PLAN, env=UTF8)[0]
        self.assertEqual(len(out.splitlines()), 2 + 2001 + 1)
        self.assertIn("501 attempts", out)
        tree = ET.fromstring(s.cli("timeline", PLAN, "-o", "svg")[0])
        said = [t.text for t in tree.iter(SVG + "title")]
        self.assertEqual((sum(t.startswith("backoff") for t in said), sum(t.startswith("running") for t in said)), (500, 501 + 2000))

    def test_forms_and_ids_are_checked(self):
        s = self.stage(view({"stepId": "a"}), [])
        self.assertIn("expected svg, json, jsonl, table or yaml, got 'dot'", s.cli("timeline", PLAN, "-o", "dot", code=2)[1])
        self.assertIn("PLAN", s.cli("timeline", code=2)[1])


class Top(unittest.TestCase):
    """On a terminal: its lines over the time, its size, its end. test_cli_plans.py has the tables."""

    def stats(self, n, agents=2):
        return {"plansOpen": 60, "plansWaiting": n % 3, "stepsDispatched": 10 * n, "queued": 4,
                "agents": [{"agentId": "agent%d" % i, "state": "up", "breaker": "closed", "instances": 1, "capacity": 4, "inFlight": n % 5}
                           for i in range(agents)]}

    def start(self, rows, columns, agents=2, plans=3, env=None, args=("--interval", "20ms")):
        asked = [0]

        def stats(_):
            asked[0] += 1
            return self.stats(asked[0], agents)
        s = Stage(self, {"supervisor.stats": stats, "plan.list": lambda r: {"plans": [
            {"planId": PLAN, "status": "running", "query": "計画 %d " % i + "long " * 20} for i in range(plans)] if r["status"] == "running" else []}})
        self.master, slave = pty.openpty()
        self.addCleanup(os.close, self.master)
        self.addCleanup(os.close, slave)
        self.slave = slave
        self.resize(rows, columns)
        p = subprocess.Popen([BIN / "baton", "top", *args, "--state", s.state], stdin=slave, stdout=slave, stderr=slave, process_group=0,  # of its own: an orphaned one does not stop
                             env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})})
        self.addCleanup(p.wait, 10)
        self.addCleanup(p.kill)
        return p

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def frame(self, wanted):
        """The first whole frame that has the pattern: its lines."""
        out = b""
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            if select.select([self.master], [], [], 0.1)[0]:
                out += os.read(self.master, 65536)
            for part in [f for f in out.split(b"\x1b[H")[1:] if b"q ends" in f]:
                text = part.decode(errors="replace")
                if re.search(wanted, text):
                    return [re.sub(r"\x1b\[[KJ]", "", line) for line in text.replace("\r", "").split("\n")]
        raise AssertionError("%r did not come: %r" % (wanted, out[-2000:]))

    def width(self, line):
        plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
        return sum(2 if c in "計画" else 1 for c in plain)

    def test_screen_fits_80_by_24_and_counts_what_has_no_room(self):
        p = self.start(24, 80, agents=30, plans=50)
        lines = self.frame("steps/s +[1-9][0-9.]+ .*[▂-█]")
        self.assertTrue(all(self.width(line) <= 80 for line in lines), lines)
        self.assertLessEqual(len(lines), 24)
        text = "\n".join(lines)
        shown = text.count("agent") - text.count(" agents") - 1, text.count(PLAN)
        self.assertIn("and %d more agents" % (30 - shown[0]), text)
        self.assertIn("and %d more plans" % (50 - shown[1]), text)
        self.assertGreater(min(shown), 2)
        for pattern in (r"load +\d+ % ", r"waiting +\d ", r"agent0 +✓ up +\d/4 +[▁-█]"):
            self.assertRegex(text, pattern)
        self.assertNotIn("tokens", text)
        self.assertIn("…", text)
        os.write(self.master, b"q")
        self.assertEqual(p.wait(10), 0)

    def test_wide_screen_has_every_column_and_a_small_one_still_both_tables(self):
        self.start(50, 200)
        text = "\n".join(self.frame("tokens"))
        self.assertIn("instances", text)
        self.start(12, 60)
        text = "\n".join(self.frame("q ends"))
        self.assertIn("agent0", text)
        self.assertIn(PLAN, text)
        self.assertNotIn("steps/s", text)

    def test_other_size_is_drawn_at_once(self):
        p = self.start(24, 80, args=("--interval", "1h"))
        self.frame("load")
        self.resize(50, 200)
        p.send_signal(signal.SIGWINCH)
        self.frame("tokens")
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(10), 130)

    def test_who_stops_it_has_the_terminal_as_it_was_until_it_goes_on(self):
        p = self.start(24, 80, args=("--interval", "1h"))
        self.frame("load")
        drawn = termios.tcgetattr(self.slave)
        p.send_signal(signal.SIGTSTP)
        until(lambda: Path("/proc/%d/stat" % p.pid).read_text().rsplit(")", 1)[1].split()[0] == "T", 10, "it stops")
        self.assertNotEqual(termios.tcgetattr(self.slave), drawn)
        p.send_signal(signal.SIGCONT)
        self.frame("load")
        self.assertEqual(termios.tcgetattr(self.slave), drawn)
        os.write(self.master, b"q")
        self.assertEqual(p.wait(10), 0)

    def test_colours_only_where_they_are_wanted(self):
        self.start(24, 80)
        self.assertIn("\x1b[36m", "".join(self.frame("load")))
        self.start(24, 80, env={"NO_COLOR": "1"})
        self.assertNotIn("\x1b[", "".join(self.frame("load")))
        self.start(24, 80, env={"LC_ALL": "C"})
        self.assertRegex("".join(self.frame("load")), r"steps/s +[0-9.]+ .*[_.:=+*#-]")

    def test_what_is_no_terminal_gets_one_frame(self):
        s = Stage(self, {"supervisor.stats": self.stats(1), "plan.list": {"plans": []}})
        out = s.cli("top")[0]
        self.assertEqual((out.count("plans 60 open"), out.count("steps/s")), (1, 0))
        self.assertEqual(json.loads(s.cli("top", "--json")[0])["stats"]["plansOpen"], 60)


class Real(BatonTest):
    def test_agents_that_outlive_the_daemon_are_shown_as_adopted(self):
        d = self.daemon()
        plan = d.submit({"goal": "Wait", "steps": [{"stepId": "a", "agentId": "exec", "skill": "wait", "task": "Take some seconds and say so",
                                                    "parameters": {"name": "a", "seconds": 3}}]})
        until(lambda: d.executions(), 10, "it runs")
        d.kill9()
        d.start()
        d.wait_plan(plan)
        kinds = [s["kind"] for r in json.loads(d.cli("timeline", plan, "--json"))["rows"] for s in r["spans"]]
        self.assertEqual(kinds[-2:], ["running", "adopted"])
        self.assertIn("▓", d.cli("timeline", plan, env=UTF8))
        self.assertIn("│ ✓ a ", d.cli("graph", plan, env=UTF8))


if __name__ == "__main__":
    main()
