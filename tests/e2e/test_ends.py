"""How every verb ends: output that cannot be written, and --timeout. Each verb of `baton help --json` has its line here."""
import json
import os
import re
import signal
import subprocess
import time
import unittest

import pg
from harness import BIN, BatonTest, main, until
from probe import Probe, step, wait_up



def verbs():
    table = json.loads(subprocess.run([BIN / "baton", "help", "--json"], capture_output=True, timeout=20).stdout)
    return {v["name"] for g in table["groups"] for v in g["verbs"]}


class Ends(BatonTest):
    def setUp(self):
        self.d = self.daemon(config="gateway: {}\n", agents=False)
        self.p = Probe(self.d, "probe", work=self.work)
        self.addCleanup(self.p.close)
        wait_up(self.d, "probe")
        self.file = self.write_plan(self.d, "plan.json", {"steps": [step()]})

    def work(self, request):
        if "fail" in request["task"]:
            return {"outcome": "failed", "error": {"code": "INVALID", "message": "no"}}
        return {"outcome": "completed", "result": {"text": "done"}}

    def done(self, **more):
        plan = self.d.submit({"steps": [{**step(), **more}]})
        self.d.wait_plan(plan)
        return plan

    def waiting(self):
        """A plan whose first step waits for a person."""
        plan = self.d.submit({"steps": [step(requiresApproval=True), step("b", dependsOn=["a"])]})
        until(lambda: self.d.ask("review.list", planId=plan).get("reviews"), 10, "a review")
        return plan

    def review(self):
        return self.d.ask("review.list", planId=self.waiting())["reviews"][0]["reviewId"]

    def paused(self):
        plan = self.waiting()
        self.d.ask("plan.pause", planId=plan)
        return plan

    copies = 0

    def lines(self):
        """Of each verb what makes a command line that prints on stdout and succeeds; called anew for each use."""
        return {
            "up": lambda: ("--json",), "reload": lambda: (), "run": lambda: ("--plan", self.file), "plan": lambda: ("diff", self.file, self.other()),
            "lint": lambda: (self.file,), "recipes": lambda: ("--json",), "chat": lambda: (), "mcp": self.served, "sessions": lambda: ("--json",),
            "status": lambda: (self.done(),), "result": lambda: (self.done(),), "events": lambda: (self.done(),),
            "logs": lambda: (self.logged(),), "history": lambda: (self.done(),), "stats": lambda: (self.done(),), "cost": lambda: ("--json",), "top": lambda: ("--once",), "ui": self.served,
            "reviews": lambda: ("--json",), "review": lambda: ("show", self.review()), "approve": lambda: (self.review(), "--json"),
            "reject": lambda: (self.review(), "--json"), "decide": lambda: (self.review(), "approve", "--json"),
            "cancel": lambda: (self.waiting(),), "pause": lambda: (self.waiting(), "--json"), "resume": lambda: (self.paused(), "--json"),
            "skip": lambda: (self.waiting(), "b", "--json"), "modify": lambda: (self.waiting(), "--note", "n", "--json"),
            "retry": lambda: (self.done(task="fail", maxRetries=0),), "fork": lambda: (self.done(), "--from", "a"),
            "schedule": lambda: ("list", "--json"),
            "signal": lambda: (self.d.submit({"steps": [{"stepId": "w", "type": "wait", "wait": {"signal": "go"}}]}), "go", "--json"),
            "agents": lambda: (), "agent": lambda: ("serve", "--skill", "x", "--dry-run", "--", "true"), "info": lambda: (), "config": lambda: ("show",), "doctor": lambda: (), "help": lambda: (),
            "init": lambda: ("--list",), "graph": lambda: (self.done(),), "timeline": lambda: (self.done(),), "version": lambda: (), "completion": lambda: ("bash",), "down": lambda: ("--json",),
            "delete": lambda: (self.done(), "--json"), "prune": lambda: ("--dry-run", "--older-than", "30d", "--json"), "backup": lambda: (self.copy(), "--json"),
            "export": lambda: (self.done(),), "import": lambda: (self.exported(), "--json"),
            "verify": lambda: ("--json",), "credential": lambda: ("list", "--json"), "audit": lambda: ("--json",),"context": lambda: ("list", "--json"), "fleet": self.fleet, "webhook": lambda: ("list", "--json"),
            "certs": lambda: ("show", "--dir", self.authority(), "--json"), "restore": lambda: (self.d.work / "copy1.db", "--force", "--json"),
        }

    def fleet(self):
        """Without PostgreSQL it is left out of what is tested."""
        if not hasattr(self, "server"):
            self.server = pg.Server(self)
            (self.d.work / "fleet.yaml").write_text("fleet: {durability: power}\n")
            subprocess.run([BIN / "baton", "fleet", "init", self.server.url], capture_output=True)
        return "status", self.server.url, "--config", self.d.work / "fleet.yaml"

    def served(self):
        file = self.d.state / "gateway.json"
        until(lambda: file.exists() and '"url"' in file.read_text(), 20, "the gateway")
        return ()

    def copy(self):
        """A new name of a file for a copy of the journal; the first is copy1.db."""
        self.copies += 1
        return self.d.work / ("copy%d.db" % self.copies)

    def authority(self):
        made = self.d.work / "certs"
        subprocess.run([BIN / "baton", "certs", "init", "--dir", made], capture_output=True, check=not made.exists(), timeout=30)
        return made

    def exported(self):
        """The export of a plan that is there."""
        file = self.d.work / "plan.ndjson"
        file.write_text(self.d.cli("export", self.done()))
        return file

    def logged(self):
        """A plan that a log file names."""
        plan = self.done()
        (self.d.state / "log").mkdir(exist_ok=True)
        with open(self.d.state / "log" / "probe#1.log", "a") as log:
            log.write("2026-01-01T00:00:00.000Z info x plan=%s\n" % plan)
        return plan

    def other(self):
        return self.write_plan(self.d, "other.json", {"steps": [step(), step("b")]})

    def baton(self, verb, *args, **more):
        return subprocess.run([BIN / "baton", verb, *map(str, args), "--state", self.d.state], input=b"do a thing with probe\n", timeout=30, **more)


class Output(Ends):
    def test_output_that_cannot_be_written_is_an_error_of_every_verb(self):
        lines = self.lines()
        self.assertEqual(set(lines), verbs())
        down, restore = lines.pop("down"), lines.pop("restore")
        if pg.why_not():
            lines.pop("fleet")
        for verb, line in lines.items():
            with self.subTest(verb=verb):
                fine = self.baton(verb, *line(), capture_output=True)
                self.assertEqual((fine.returncode, fine.stdout != b""), (0, True), fine)
                self.loses(verb, line)
        self.loses("down", down, kinds=("full",))  # the daemon ends
        self.loses("restore", restore)

    def loses(self, verb, line, kinds=("full", "closed")):
        for kind in kinds:
            with open("/dev/full", "wb") as full:
                lost = self.baton(verb, *line(), stderr=subprocess.PIPE, **(
                    {"stdout": full} if kind == "full" else {"preexec_fn": lambda: os.close(1)}))
            self.assertEqual(lost.returncode, 1, (verb, kind, lost.stderr))
            self.assertIn(b"the output could not be written", lost.stderr)

    def test_reader_that_has_enough_is_no_error(self):
        plan = self.done()
        for verb, args in (("events", (plan,)), ("status", (plan,)), ("help", ())):
            reads, writes = os.pipe()
            os.close(reads)
            ended = self.baton(verb, *args, stdout=writes, stderr=subprocess.PIPE)
            os.close(writes)
            self.assertEqual((ended.returncode, ended.stderr), (0, b""), verb)


class Timeout(Ends):
    # Verbs that ask no daemon wait for nothing.
    ALONE = {"init", "recipes", "config", "help", "version", "completion", "restore", "credential", "certs", "context", "fleet", "webhook", "audit", "agent", "mcp"}

    def test_timeout_holds_for_every_verb_when_the_daemon_hangs(self):
        lines = {verb: line() for verb, line in self.lines().items() if verb not in self.ALONE}
        lines["plan"] = ("a goal",)
        lines["lint"] = ("a goal",)
        self.d.process.send_signal(signal.SIGSTOP)
        try:
            for verb, line in lines.items():
                with self.subTest(verb=verb):
                    began = time.monotonic()
                    late = self.baton(verb, *line, "--timeout", "300ms", capture_output=True)
                    self.assertEqual(late.returncode, 124, late)
                    self.assertLess(time.monotonic() - began, 5)
                    if "--json" in line:
                        self.assertEqual(json.loads(late.stdout)["code"], "TIMEOUT", late)
                    else:
                        self.assertIn(b"baton: ", late.stderr)
        finally:
            self.d.process.send_signal(signal.SIGCONT)

    def test_watching_ends_at_the_timeout(self):
        for line in (("events", "--follow"), ("top", "--interval", "20ms"), ("top", "--interval", "1h")):
            late = self.baton(*line, "--timeout", "300ms", capture_output=True)
            self.assertEqual(late.returncode, 124, late)
            self.assertTrue(late.stdout)

    def test_time_that_is_none_is_named(self):
        self.assertIn(b"--timeout: expected a time", self.baton("info", "--timeout", "soon", stderr=subprocess.PIPE).stderr)

    def catches(self, pid, number):
        with open("/proc/%d/status" % pid) as f:
            return int(re.search(r"SigCgt:\s*(\w+)", f.read())[1], 16) >> (number - 1) & 1

    def test_top_that_is_interrupted_while_the_daemon_is_silent_is_interrupted(self):
        self.d.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.d.process.send_signal, signal.SIGCONT)
        p = subprocess.Popen([BIN / "baton", "top", "--state", self.d.state], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.kill)
        until(lambda: self.catches(p.pid, signal.SIGINT), 10, "it catches the signal")
        p.send_signal(signal.SIGINT)
        self.assertEqual((p.wait(20), p.stderr.read()), (130, b""))


if __name__ == "__main__":
    main()
