"""Characters that order a terminal about, turn text around or cannot be seen: data that programs print have them escaped,
texts for people have a mark in their place. The value is the same for whoever reads the data."""
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import unicodedata

import harness
import probe

MARKS = "\x7f\x85\x9b\u00ad\u061c\u200b\u200e\u202e\u2028\u2029\u2060\u2066\ufeff\U000e0041"
SAID = "say " + "".join("%d%s" % (i, c) for i, c in enumerate(MARKS)) + " \u200d\ufe0f end"
JOINS = "\u200d\ufe0f"  # words and emoji need them
CONFIG = "policy: {heartbeatMs: 300}\nagents: []\n"
VOCABULARIES = ("ai-sdk", "plan-executor", "agent-turn", "ptc-runner", "ptc-runner-telemetry", "orchestrator-log")


def unsafe(text):
    """By the categories of Unicode, not by the program's own list."""
    return sorted({"%04X" % ord(c) for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")})


class Unseen(harness.BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CONFIG, agents=False)
        agent = probe.Probe(self.d, work=lambda r: {"outcome": "completed", "result": {"text": SAID, "data": {SAID[:40]: SAID}}})
        self.addCleanup(agent.close)
        probe.wait_up(self.d)
        self.plan = self.d.submit({"goal": SAID, "steps": [probe.step("a", task=SAID), probe.step("b", task=SAID)]},
                                  sessionId="talk")
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")

    def terminal(self, *args, codes=(0,)):
        """Everything that the program shows on a terminal."""
        master, slave = pty.openpty()
        p = subprocess.Popen([harness.BIN / "baton", *args, "--state", self.d.state], stdin=slave, stdout=slave, stderr=slave,
                             env={**os.environ, "TERM": "dumb", "PAGER": "cat"})
        os.close(slave)
        out = b""
        try:
            while part := os.read(master, 65536):
                out += part
        except OSError:
            pass  # it has ended
        os.close(master)
        code = p.wait(60)
        self.assertIn(code, codes or (code,), out)
        return out.decode().replace("\r\n", "\n")

    def test_json_has_escapes_and_the_same_value(self):
        for args in (("events", self.plan, "--json"), ("status", self.plan, "--json"), ("result", self.plan, "--json"),
                     ("result", self.plan, "a", "--json"), ("history", self.plan, "--json"), ("status", "--json"), ("status", self.plan, "-o", "jsonl")):
            with self.subTest(args=args):
                said = self.d.cli(*args)
                self.assertEqual(unsafe(said), [])
                values = [json.loads(line) for line in said.splitlines()]
                self.assertIn(SAID[:20], json.dumps(values, ensure_ascii=False).replace("\\u007f", "\x7f"))
        (result,) = [json.loads(line) for line in self.d.cli("result", self.plan, "a", "--json").splitlines()]
        self.assertEqual(result["result"]["data"], {SAID[:40]: SAID})

    def test_streams_have_escapes(self):
        for args in ([("--sse",)] + [("--vocabulary", v) for v in VOCABULARIES] + [("--vocabulary", v, "--sse") for v in VOCABULARIES]):
            with self.subTest(args=args):
                said = self.d.cli("events", self.plan, *args)
                self.assertEqual(unsafe(said), [])
                self.assertIn("\\u202e", said)
                for line in said.splitlines():
                    if line:
                        json.loads(line[len("data: "):] if "--sse" in args else line)

    def test_yaml_has_escapes_and_the_same_value(self):
        for args in (("result", self.plan, "-o", "yaml"), ("events", self.plan, "-o", "yaml")):
            said = self.d.cli(*args)
            self.assertEqual(unsafe(said), [], args)
            self.assertIn("\\u202E", said)
        self.assertEqual(harness.read_yaml(self.d.cli("result", self.plan, "-o", "yaml")), json.loads(self.d.cli("result", self.plan, "--json")))

    def test_a_terminal_shows_marks_and_a_file_gets_the_bytes(self):
        for args in (("result", self.plan), ("result", self.plan, "a"), ("status", self.plan), ("events", self.plan), ("history", self.plan)):
            with self.subTest(args=args):
                shown = re.sub("[%s]" % JOINS, "", self.terminal(*args))
                self.assertEqual(unsafe(shown), [], shown)
        self.assertIn(JOINS, self.terminal("result", self.plan, "a"))
        self.assertIn(SAID, self.d.cli("result", self.plan, "a"))

    def test_the_name_of_a_configuration_file_is_scrubbed(self):
        name = self.d.work / "b\x1b[31m\u202e\x9b.yaml"
        name.write_text("nonsense: 1\n")
        for args in (["baton", "config", "show", "--config", name], ["batond", "--state", self.d.work / "s", "--config", name]):
            done = subprocess.run([harness.BIN / args[0], *args[1:]], capture_output=True, text=True, timeout=30)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("nonsense", done.stderr)
            self.assertEqual((unsafe(done.stdout), unsafe(done.stderr)), ([], []))


class Lines(harness.BatonTest):
    """What others wrote makes no line of its own where each line is a row."""

    def test_no_text_of_others_forges_a_row(self):
        forged = "x\nFORGED row\r\nFORGED too"
        d = self.d = self.daemon(config=CONFIG, agents=False)
        agent = probe.Probe(d, work=lambda r: {"outcome": "failed", "failure": {"code": "INTERNAL", "message": forged, "retryable": False}},
                            register=False)
        agent.registration["card"].update({"name": forged, "description": forged, "version": forged, "skills": [{"id": "do", "description": forged}]})
        agent.epoch = agent.register()["epoch"]
        self.addCleanup(agent.close)
        probe.wait_up(d)
        document = {"goal": forged, "steps": [probe.step("a", task=forged, maxRetries=0)]}
        plan = d.submit(document, sessionId="talk")
        d.wait_plan(plan)
        d.ask("schedule.put", name="n", everyMs=86400000, plan=document)
        d.ask("schedule.pause", name="n", reason=forged)
        d.ask("agents.drain", agentId="probe", reason=forged)
        d.ask_raw("session.delete", sessionId=forged)
        for verb in (("status",), ("status", plan), ("events",), ("history", plan), ("agents",), ("agents", "probe"), ("schedule", "list"),
                     ("schedule", "get", "n"), ("audit",), ("sessions",), ("stats", plan), ("top", "--once"), ("timeline", plan), ("graph", plan),
                     ("cost",), ("doctor",)):
            with self.subTest(verb=verb):
                done = d.cli_any(*verb)
                self.assertEqual([row for row in (done.stdout + done.stderr).splitlines() if row.lstrip().startswith("FORGED")], [])
        self.assertEqual([row for row in d.log().splitlines() if row.startswith("FORGED")], [])


class Everywhere(harness.BatonTest):
    """An agent whose card, errors, progress, log and questions are full of such characters, and each verb that shows some of it."""

    def setUp(self):
        order = self.work_file("order", SAID + "\x1b]0;title\x07\x1b[2J\n")
        config = "policy: {heartbeatMs: 300}\nagents:\n  - agentId: noisy\n    command: [sh, -c, 'cat %s >&2; exit 3']\n" % order
        self.d = self.daemon(config=config, agents=False)
        skill = {"id": "do", "description": SAID, "tags": [SAID[:20]]}
        self.agent = probe.Probe(self.d, work=self.work, register=False)
        self.agent.registration["card"].update({"name": SAID, "description": SAID, "version": "1" + MARKS[:3], "skills": [skill]})
        self.agent.epoch = self.agent.register()["epoch"]
        self.addCleanup(self.agent.close)
        probe.wait_up(self.d)
        self.failed = self.d.submit({"goal": SAID, "steps": [probe.step("a", task="fail " + SAID, maxRetries=0)]}, sessionId="talk")
        self.d.wait_plan(self.failed)
        self.asking = self.d.submit({"goal": SAID, "steps": [probe.step("a", task="ask " + SAID, requiresApproval=True), probe.step("b", task=SAID, dependsOn=["a"])]})
        # what came later: schedules, signals, refusals of strangers, state that agents leave
        self.d.ask("schedule.put", name="nightly", everyMs=86400000, goal=SAID + " of a schedule", planner="keyword")
        self.d.ask_raw("schedule.pause", name="nightly", reason=SAID)
        for type_, fields in (("plan.signal", {"planId": self.asking, "name": SAID[:60], "data": {SAID[:40]: SAID}}), (SAID[:60], {}),
                              ("auth.begin", {"credential": SAID[:60], "nonceC": "0" * 64}), ("session.delete", {"sessionId": SAID[:60]}),
                              ("agents.drain", {"agentId": SAID[:60]}), ("journal.backup", {"file": "/nowhere/" + SAID[:60]}),
                              ("plan.delete", {"planId": SAID[:60]}), ("session.say", {"sessionId": "talk", "text": SAID}),
                              ("review.decide", {"reviewId": SAID[:60], "decision": SAID[:20]}), ("events.read", {"types": [SAID[:40]]})):
            self.d.ask_raw(type_, **fields)
            with harness.sp.Req(self.d.endpoints()["control"], 15) as req:  # a stranger, whose refusal is noted
                req.ask(json.dumps({"v": 1, "type": type_, "id": SAID[:20], "token": SAID[:40], **fields}).encode())
        self.review = harness.until(lambda: (self.d.ask("review.list")["reviews"] or [None])[0], 30, "the review is open")["reviewId"]

    def work_file(self, name, text):
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / name
        path.write_text(text)
        return path

    def work(self, request):
        self.d.ask("step.progress", instanceId=self.agent.me["instanceId"], epoch=self.agent.epoch, n=1, percent=50, text=SAID,
                   key=request["key"], attempt=request["attempt"])
        return {"outcome": "failed", "failure": {"code": "INTERNAL", "message": SAID, "retryable": False}}

    terminal = Unseen.terminal

    def test_no_verb_passes_them_on(self):
        harness.until(lambda: "say" in self.d.cli("logs", "noisy"), 30, "the log of the agent is there")
        verbs = [("status",), ("status", self.asking), ("status", self.failed), ("result", self.failed), ("events", self.failed), ("events",),
                 ("history", self.failed), ("logs", "noisy"), ("logs", self.failed), ("graph", self.failed), ("timeline", self.failed),
                 ("stats", self.failed), ("cost",), ("top", "--once"), ("reviews",), ("review", self.review), ("sessions",),
                 ("sessions", "talk"), ("agents",), ("agents", "probe"), ("agents", "noisy"), ("agents", "probe", "do"), ("lint", self.plan_file()),
                 ("plan", "check", self.plan_file()), ("graph", self.plan_file()), ("doctor",), ("info",),
                 ("schedule", "list"), ("schedule", "get", "nightly"), ("audit",), ("credential", "list"), ("agents", "logs", "noisy"),
                 ("plan", "diff", self.plan_file(), self.plan_file()), ("config", "show"), ("recipes",)]
        for verb in verbs:
            with self.subTest(verb=verb):
                shown = self.terminal(*verb, codes=None)
                self.assertEqual(unsafe(re.sub("[%s\r]" % JOINS, "", shown)), [], shown)
        for verb in [v for v in verbs if v[0] not in ("lint", "logs", "doctor")] + [("doctor",)]:
            with self.subTest(json=verb):
                done = subprocess.run([harness.BIN / "baton", *verb, "--state", self.d.state, "--json"], capture_output=True, text=True, timeout=60)
                self.assertEqual((unsafe(done.stdout), unsafe(re.sub("[%s]" % JOINS, "", done.stderr))), ([], []))
        for form in ("svg", "dot", "mermaid"):
            with self.subTest(form=form):
                self.assertEqual(unsafe(self.d.cli("graph", self.failed, "-o", form)), [])
        self.assertEqual(unsafe(self.d.cli("timeline", self.failed, "-o", "svg")), [])
        said = re.sub("[%s]" % JOINS, "", self.d.log())
        self.assertEqual(unsafe(said), [], "the daemon's own log")

    def plan_file(self):
        return str(self.work_file("plan.json", json.dumps({"goal": SAID, "steps": [{"stepId": "a", "agentId": "probe", "skill": "do", "task": SAID}]})))


if __name__ == "__main__":
    sys.exit(harness.main())
