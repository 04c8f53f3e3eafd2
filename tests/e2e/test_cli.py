"""The command line: help, shapes of --json, exit codes, hints, wrong input, interrupts, doctor."""
import json
import os
import pty
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

from harness import BIN, BatonTest, main, until
from probe import Probe, step, wait_up

NONE = "agents: []\npolicy: {cancelGraceMs: 500, shutdownGraceMs: 1000}\n"  # nobody is waited for longer than the tests need
VERBS = ["up", "down", "reload", "run", "schedule", "plan", "chat", "sessions", "status", "events", "agents", "agent", "result", "cancel", "reviews", "review", "approve", "reject",
         "decide", "pause", "resume", "signal", "skip", "modify", "retry", "fork", "lint", "history", "logs", "graph", "timeline", "stats", "cost", "recipes", "top", "ui", "mcp", "info", "config", "doctor", "delete", "prune", "backup", "restore", "verify", "certs", "context", "fleet", "webhook",
         "help", "version", "completion"]
NO_PLAN = "00000000-0000-7000-8000-000000000000"


class Cli(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=NONE, agents=False)

    def probe(self, agent_id="probe", **more):
        p = Probe(self.d, agent_id, **more)
        self.addCleanup(p.close)
        wait_up(self.d, agent_id)
        return p

    def err(self, *args, code, **more):
        done = self.d.cli_any(*args, **more)
        self.assertEqual(done.returncode, code, (args, done.stdout, done.stderr))
        return done.stderr

    def js(self, *args, code=0):
        return json.loads(self.d.cli(*args, "--json", code=code))

    def plan_file(self, *steps, **more):
        return self.write_plan(self.d, "plan.json", {"steps": list(steps), **more})


class Contexts(Cli):
    def test_a_state_directory_that_is_given_needs_no_contexts(self):
        (self.d.work / "config" / "baton").mkdir(parents=True)
        (self.d.work / "config" / "baton" / "contexts").write_text('{"current":')

        def info(*args, **env):
            return subprocess.run([BIN / "baton", *map(str, args), "info"], capture_output=True, text=True,
                                  env={**os.environ, "XDG_CONFIG_HOME": str(self.d.work / "config"), **env})
        for done in (info("--state", self.d.state), info(BATON_STATE=str(self.d.state)), info("--context", "local", BATON_STATE=str(self.d.state))):
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("version", done.stdout)
        for done in (info("--context", "hub"), info(BATON_STATE=str(self.d.state), BATON_CONTEXT="hub")):
            self.assertEqual(done.returncode, 2)
            self.assertIn("contexts is damaged", done.stderr)


class Serve(Cli):
    """A command as an agent."""

    def test_one_line_makes_a_command_an_agent(self):
        log = self.d.work / "serve.log"
        with open(log, "w") as out:
            agent = subprocess.Popen([BIN / "baton", "--state", self.d.state, "agent", "serve", "--skill", "shout", "--effects", "none", "--",
                                      "tr", "a-z", "A-Z"], stderr=out, stdout=out)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)
        self.d.cli("agents", "--wait", "shout")
        self.assertEqual(self.d.cli("agents", "try", "shout", "--param", "input=hello -d {x}").strip(), "HELLO -D {X}")
        card = self.js("agents", "shout")["card"]
        self.assertEqual([(s["id"], s["effects"], s["description"]) for s in card["skills"]], [("shout", "none", "Runs the program tr.")])
        agent.terminate()
        self.assertEqual(agent.wait(20), 0, log.read_text())

    def test_what_it_would_be_is_shown_and_mistakes_are_named(self):
        card = json.loads(self.d.cli("agent", "serve", "--skill", "s", "--id", "other", "--dry-run", "--", "echo", "{word}"))
        self.assertEqual((card["agentId"], card["skills"][0]["effects"]), ("other", "unsafe"))
        self.assertIn("word", card["skills"][0]["inputSchema"]["required"])
        for args in (("serve",), ("serve", "--skill", "x"), ("serve", "--", "true"), ("run", "--skill", "x", "--", "true")):
            self.assertIn("usage: baton agent serve --skill NAME -- COMMAND", self.err("agent", *args, code=2))
        for program in ("/no/such/program", "no-such-program", "/tmp"):
            self.assertIn("'%s' is no program" % program, self.err("agent", "serve", "--skill", "x", "--", program, code=2))
        self.assertIn("effects", self.err("agent", "serve", "--skill", "x", "--effects", "maybe", "--dry-run", "--", "true", code=2))


class Help(Cli):
    def test_every_verb_has_help(self):
        top = self.d.cli("--help")
        for verb in VERBS:
            self.assertIn("\n  %s " % verb, top)
            text = self.d.cli(verb, "--help")
            self.assertIn("usage: baton " + verb, text)
            self.assertIn("--json", text)
            self.assertIn("Examples:\n  ", text)
            self.assertEqual((self.d.cli("help", verb), self.d.cli(verb, "-h")), (text, text))

    def test_slips_are_named_with_what_was_meant(self):
        for args, hint in ((("statsu",), "'status'"), (("run", "--detahc", "x"), "'--detach'"), (("status", "--limti", "3"), "'--limit'")):
            self.assertIn("did you mean " + hint, self.err(*args, code=2))
        self.assertNotIn("did you mean", self.err("frobnicate", code=2))
        self.assertIn("'-x'", self.err("status", "-xyz", code=2))
        self.assertIn("needs a value", subprocess.run([BIN / "baton", "run", "--timeout"], capture_output=True, text=True).stderr)
        for bad in (("status", "--limit", "x"), ("run", "g", "--timeout", "soon"), ("run",), ("run", "a", "b"), ("decide", "x"),
                    ("events", "--after", "-1"), ("plan", "check")):
            self.err(*bad, code=2)
        self.assertIn("baton agents drain|enable AGENT_ID", self.err("agents", "kick", "x", code=7))

    def test_goal_that_is_no_text_is_told_by_its_place(self):
        for verb in ("run", "plan", "lint"):
            done = subprocess.run([BIN / "baton", verb, "--state", self.d.state, b"add\xff"], capture_output=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"the goal is not UTF-8 text, from its byte 4 on", done.stderr)

    def test_ids_that_begin_with_a_dash_are_given_behind_two(self):
        for verb in ("status", "result", "cancel"):
            done = subprocess.run([BIN / "baton", verb, "--state", self.d.state, "--", "-abc"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 7, done.stderr)


class NoAgents(Cli):
    HINT = "there is no agent that could do anything"

    def test_daemon_without_agents_says_what_to_do_when_it_is_up_and_when_a_goal_comes(self):
        up = subprocess.run([BIN / "baton", "up", "--state", self.d.state], capture_output=True, text=True, timeout=60)
        self.assertIn(self.HINT, up.stderr)
        self.assertIn("tour.yaml", up.stderr)
        for args in (("run", "compute 6 * 7"), ("plan", "compute 6 * 7")):
            said = self.err(*args, code=2)
            self.assertIn(self.HINT, said)
            self.assertIn("Nearest: none", said)
        done = self.d.cli_any("chat", stdin="compute 6 * 7\ncompute 7 * 7\n")
        self.assertEqual((done.returncode, done.stderr.count(self.HINT)), (2, 1), done.stderr)
        self.probe()
        self.assertNotIn(self.HINT, self.err("run", "compute 6 * 7", code=2))


class Shapes(Cli):
    def test_lists_are_arrays_also_when_empty_and_streams_are_lines(self):
        self.assertEqual((self.js("status"), self.js("agents"), self.js("reviews")), ([], [], []))
        self.probe()
        out = self.d.cli("run", "--plan", self.plan_file(step()), "--json")
        self.assertEqual(json.loads(out)["status"], "completed")
        plan = json.loads(out)["planId"]
        self.assertEqual([v["planId"] for v in self.js("status")], [plan])
        self.assertEqual(self.js("agents")[0]["card"]["agentId"], "probe")
        self.assertEqual(self.js("agents", "probe")["state"], "up")
        self.assertEqual(self.js("status", plan)["steps"][0]["stepId"], "a")
        self.assertEqual(self.js("result", plan)["aggregatedResult"], "done a")
        self.assertEqual(self.js("result", plan, "a")["result"]["text"], "done a")
        self.assertEqual(self.js("info")["pid"], self.d.process.pid)
        events = [json.loads(line) for line in self.d.cli("events", plan, "--json").splitlines()]
        self.assertEqual([events[0]["type"], events[-1]["type"]], ["plan_generated", "plan_completed"])
        everything = [json.loads(line)["seq"] for line in self.d.cli("events", "--json").splitlines()]
        self.assertEqual(everything, list(range(1, len(everything) + 1)))
        self.assertEqual(len(self.d.cli("events", "--json", "--limit", "2").splitlines()), 2)
        only = self.d.cli("events", "--json", "--type", "plan_started,plan_completed", plan).splitlines()
        self.assertEqual([json.loads(e)["type"] for e in only], ["plan_started", "plan_completed"])
        self.assertEqual(self.d.cli("events", "--json", "--after", everything[-1]), "")
        self.assertTrue(all(set(e) == {"key", "value", "origin"} for e in self.js("config", "show")))
        bad = self.d.work / "bad.yaml"
        for verb in (("config", "show"), ("fleet", "status")):
            for text, times in (("limits: {maxOpenPlan: 3}\n", 1), ("limits: {maxOpenPlan: 3}\nfoo: 1\n", 2)):
                bad.write_text(text)
                self.assertEqual(self.d.cli_any(*verb, "--config", bad).stderr.count("is not allowed here"), times, "each problem once")
        lint = self.js("plan", "check", self.plan_file(step()))
        self.assertTrue(lint["valid"])

    def test_nothing_but_text_comes_when_no_terminal_is_there(self):
        self.probe(work=lambda r: {"outcome": "failed", "failure": {"code": "INVALID", "class": "VALIDATION_ERROR",
                                                                    "message": "no\x1b[31m\u202e!", "retryable": False}})
        done = self.d.cli_any("run", "--plan", self.plan_file(step()))
        self.assertEqual(done.returncode, 3)
        self.assertNotIn("\x1b", done.stdout + done.stderr)
        self.assertNotIn("\u202e", done.stderr)
        self.assertIn("no?[31m", done.stderr)
        for verb in ("status", "agents", "events", "info"):
            self.assertNotIn("\x1b", self.d.cli(verb))

    def on_terminal(self, *args, env=None):
        master, slave = pty.openpty()
        p = subprocess.Popen([BIN / "baton", *map(str, args), "--state", self.d.state], stdin=slave, stdout=slave, stderr=slave,
                             env={**os.environ, "TERM": "xterm", **(env or {})})
        os.close(slave)
        out = b""
        try:
            while True:
                part = os.read(master, 65536)
                if not part:
                    break
                out += part
        except OSError:
            pass
        os.close(master)
        return p.wait(20), out.decode(errors="replace")

    def test_colours_on_a_terminal_unless_they_are_unwanted_and_never_those_of_a_result(self):
        self.probe(work=lambda r: {"outcome": "completed", "result": {"text": "evil\x1b[2J\u202etext"}})
        plan = self.d.submit({"steps": [step()]})
        self.d.wait_plan(plan)
        code, out = self.on_terminal("status", plan)
        self.assertIn("\x1b[32m", out)
        for more in ({"env": {"NO_COLOR": "1"}}, {"env": {"TERM": "dumb"}}):
            self.assertNotIn("\x1b[32m", self.on_terminal("status", plan, **more)[1])
        self.assertNotIn("\x1b[32m", self.on_terminal("status", plan, "--no-color")[1])
        for args in (("result", plan), ("result", plan, "a")):
            code, out = self.on_terminal(*args)
            self.assertEqual(code, 0)
            self.assertIn("evil?[2J???text", out)
        self.assertEqual(self.d.cli("result", plan), "evil\x1b[2J\u202etext\n", "a file gets the very bytes")

    def test_reader_that_has_had_enough_ends_the_stream(self):
        p = subprocess.Popen([BIN / "baton", "events", "--follow", "--json", "--state", self.d.state], stdout=subprocess.PIPE)
        self.assertIn(b"supervisor_started", p.stdout.readline())
        p.stdout.close()
        self.probe()
        self.assertEqual(p.wait(10), 0)


class ExitCodes(Cli):
    def test_the_contract(self):
        gate = []
        fate = {"ok": {"outcome": "completed", "result": {"text": "x"}},
                "bad": {"outcome": "failed", "failure": {"code": "INVALID", "class": "VALIDATION_ERROR", "message": "no"}},
                "ask": {"outcome": "needs_input", "need": {"kind": "text", "prompt": "Which?"}},
                "slow": None}

        def work(r):
            if r["stepId"] == "slow":
                until(lambda: gate, 30, "gate")
            return fate[r["stepId"]] or fate["ok"]
        self.probe(work=work, capacity=1)
        run = ("run", "--plan")
        self.d.cli(*run, self.plan_file(step("ok")), code=0)
        self.assertIn("no", self.err(*run, self.plan_file(step("bad")), code=3))
        self.err(*run, self.plan_file(step("ask")), code=4)
        review = self.js("reviews")[0]
        self.assertEqual(review["prompt"], "Which?")
        self.err("result", review["planId"], code=4)
        self.err("decide", review["reviewId"], "perhaps", code=2)
        self.d.cli("decide", review["reviewId"], "reject", "--comment", "no")
        self.err("decide", review["reviewId"], "approve", code=2)
        self.err(*run, self.plan_file(step("slow")), "--timeout", "300ms", code=124)
        plan = self.js("status", "--status", "running")[0]["planId"]
        self.err("result", plan, code=124)
        self.assertIn("cancelling", self.d.cli("cancel", plan), "its agent has the grace to stop")
        self.d.wait_plan(plan)
        self.err("result", plan, code=5)
        gate.append(1)
        for verb in ("status", "result", "cancel", "events"):
            self.assertIn("No state found for", self.err(verb, NO_PLAN, code=7))
        self.err("agents", "nobody", code=7)
        self.d.cli("down", timeout=30)
        self.assertEqual(self.d.process.wait(10), 0)
        for args in (("status",), ("run", "x"), ("agents",), ("info",), ("events",), ("reviews",)):
            self.assertIn("baton up", self.err(*args, code=6))
        self.assertIn("no daemon runs", self.err("down", code=0))
        self.assertEqual(self.js("down")["stopped"], False)
        self.assertEqual(self.js("up", "--config", self.d.config)["ready"], True)
        self.assertEqual(self.js("down")["stopped"], True)

    def test_cancelled_plan_ends_its_run_with_5(self):
        gate = []
        self.addCleanup(gate.append, 1)
        p = Probe(self.d, work=lambda r: (until(lambda: gate, 30, "gate"), {"outcome": "completed", "result": {"text": "x"}})[1])
        self.addCleanup(p.close)
        self.addCleanup(gate.append, 1)
        wait_up(self.d)
        run = subprocess.Popen([BIN / "baton", "run", "--plan", self.plan_file(step()), "--state", self.d.state], stderr=subprocess.PIPE,
                               stdout=subprocess.PIPE)
        plan = until(lambda: self.js("status"), 10, "it runs")[0]["planId"]
        self.d.cli("cancel", plan)
        self.assertEqual(run.wait(15), 5)
        run.communicate()

    def test_run_of_a_killed_daemon_ends_with_6(self):
        gate = []
        p = Probe(self.d, work=lambda r: (until(lambda: gate, 60, "gate"), {"outcome": "completed", "result": {"text": "x"}})[1], beat=False)
        self.addCleanup(p.close)
        self.addCleanup(gate.append, 1)
        wait_up(self.d)
        run = subprocess.Popen([BIN / "baton", "run", "--plan", self.plan_file(step()), "--state", self.d.state], stderr=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
        until(lambda: p.of("step.execute"), 10, "it runs")
        while not run.stderr.readline().startswith("▸"):  # it follows the events now
            self.assertIsNone(run.poll())
        self.d.kill9()
        self.assertEqual(run.wait(45), 6)
        self.assertIn("has not been heard of", run.communicate()[1])

    def interrupted(self, times):
        gate = []
        p = Probe(self.d, work=lambda r: (until(lambda: gate, 30, "gate"), {"outcome": "completed", "result": {"text": "x"}})[1])
        self.addCleanup(p.close)
        self.addCleanup(gate.append, 1)
        wait_up(self.d)
        run = subprocess.Popen([BIN / "baton", "run", "--plan", self.plan_file(step()), "--state", self.d.state], stderr=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
        until(lambda: p.of("step.execute"), 10, "it runs")
        said = []
        reader = threading.Thread(target=lambda: said.extend(run.stderr))
        reader.start()
        for i in range(times):
            run.send_signal(signal.SIGINT)
            until(lambda: any("goes on" in line for line in said), 10, "the first Ctrl-C says so")
        self.assertEqual(run.wait(15), 130)
        reader.join(5)
        run.stdout.close()
        run.stderr.close()
        return self.js("status")[0]

    def test_ctrl_c_leaves_the_plan_running(self):
        self.assertEqual(self.interrupted(1)["status"], "running")

    def test_second_ctrl_c_cancels_it(self):
        self.assertEqual(self.d.wait_plan(self.interrupted(2)["planId"])["status"], "cancelled")


class PlanFiles(Cli):
    def test_every_problem_of_a_wrong_plan_is_listed(self):
        self.probe()
        bad = self.plan_file(step("a", dependsOn=["b"]), step("b", dependsOn=["a"]), step("c", agent="nobody"), step("c"),
                             step("d", dependsOn=["x"]))
        for args in (("plan", "check", bad), ("run", "--plan", bad)):
            said = self.err(*args, code=2)
            for word in ("cycle", "nobody", "duplicate", '"x"'):
                self.assertIn(word, said)
        self.assertEqual(self.js("status"), [])
        self.assertFalse(json.loads(self.d.cli_any("plan", "check", bad, "--json").stdout)["valid"])

    def test_bad_files_are_told_by_line_and_column(self):
        for text, where in (("steps:\n  - stepId: a\n   task: x\n", "3:"), ('{"steps": [}', "1:"), ("steps: [a, b\n", ":"),
                            ("steps: []\nsteps: []\n", "2:")):
            said = self.err("plan", "check", self.write_plan(self.d, "bad.yaml", text), code=2)
            self.assertIn("bad.yaml", said)
            self.assertRegex(said, r"bad\.yaml[: ].*\d", text)
            self.assertIn(where, said)
        for path in (self.d.work / "none.yaml", self.d.work, "/dev/null"):
            self.err("plan", "check", path, code=2)
        os.mkfifo(self.d.work / "fifo")
        self.err("plan", "check", self.d.work / "fifo", code=2)
        big = self.d.work / "big.yaml"
        big.write_text("steps: [" + " " * (2 << 20) + "]")
        self.assertIn("more than 1048576 bytes", self.err("plan", "check", big, code=2))

    def test_plan_from_standard_input_in_yaml(self):
        self.probe()
        text = "steps:\n  - {stepId: a, agentId: probe, skill: do, task: do the thing that is asked}\n"
        self.assertEqual(self.d.cli("run", "--plan", "-", stdin=text), "done a\n")
        self.err("run", "--plan", "-", stdin="", code=2)
        self.assertEqual(self.d.cli("run", "--plan", "-", "--detach", "--key", "k", stdin=text),
                         self.d.cli("run", "--plan", "-", "--detach", "--key", "k", stdin=text), "one key, one plan")

    def test_check_works_without_a_daemon(self):
        good = self.plan_file({"stepId": "a", "agentId": "x", "task": "do the thing that is asked"})
        self.d.stop()
        self.assertIn("valid", self.err("plan", "check", good, code=0))
        bad = self.plan_file(step("a", dependsOn=["a"]))
        self.assertIn("cycle", self.err("plan", "check", bad, code=2))

    def test_check_without_a_daemon_warns_of_steps_that_never_run(self):
        self.d.stop()
        first = {"stepId": "a", "agentId": "calc", "skill": "calc", "task": "count", "dependsOn": []}
        never = {**first, "stepId": "b", "dependsOn": ["a"], "when": {"results.a.data.n": {"gt": 3, "lt": 2}}}
        said = self.err("plan", "check", self.plan_file(first, never), code=0)
        self.assertIn("is never true", said)
        self.assertIn("agents were not checked", said)
        each = {"stepId": "m", "forEach": [1, 2], "steps": [{**first, "stepId": "x"}, {**never, "stepId": "y", "dependsOn": ["x"], "when": {"results.x.data.n": {"gt": 3, "lt": 2}}}]}
        said = self.err("plan", "check", self.plan_file(each), code=0)
        self.assertIn("in step \"y\"", said)


class UpAndDown(Cli):
    def test_up_starts_once_and_down_stops_it(self):
        self.d.stop()
        self.d.config.write_text("listen: {control: 'tcp://127.0.0.1:0', events: 'tcp://127.0.0.1:0'}\n")
        self.assertIn("baton is up", self.err("up", "--config", self.d.config, code=0))
        pid = self.js("info")["pid"]
        self.addCleanup(lambda: self.d.cli_any("down"))
        self.assertIn("runs already", self.err("up", "--config", self.d.config, code=0))
        self.assertEqual(self.js("info")["pid"], pid)
        self.assertIn("is down", self.err("down", code=0))
        self.assertIn("no daemon runs", self.err("down", code=0))

    def test_up_tells_why_the_daemon_did_not_start(self):
        self.d.stop()
        self.d.config.write_text("listen: {control: 'ftp://x'}\n")
        for _ in range(2):  # not what the one before wrote
            said = self.err("up", "--config", self.d.config, code=2)
            self.assertEqual(said.count("listen.control"), 1, said)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.d.config.write_text("listen: {control: 'tcp://127.0.0.1:%d'}\n" % taken.getsockname()[1])
            self.assertIn("in use", self.err("up", "--config", self.d.config, code=1).lower())
        self.d.config.write_text("")


class Doctor(Cli):
    def findings(self, *args, code=1):
        done = self.d.cli_any("doctor", "--json", "--config", self.d.config, *args)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return {f["check"]: f for f in json.loads(done.stdout)}

    def test_all_is_well(self):
        self.assertTrue(all(f["ok"] for f in self.findings(code=0).values()))
        self.assertIn("all is well", self.d.cli("doctor", "--config", self.d.config))

    def test_what_is_wrong_is_named(self):
        with self.subTest("agent binary"):
            self.d.config.write_text("agents: [{agentId: x, command: ['/no/such/program']}]\n")
            self.assertIn("/no/such/program", self.findings()["agent binary"]["detail"])
        with self.subTest("token mode"):
            os.chmod(self.d.state / "token", 0o644)
            self.assertFalse(self.findings()["token"]["ok"])
            os.chmod(self.d.state / "token", 0o600)
        with self.subTest("configuration"):
            self.d.config.write_text("listen: 7\n")
            self.assertFalse(self.findings()["configuration"]["ok"])
        self.d.stop()
        with self.subTest("port"), socket.create_server(("127.0.0.1", 0)) as taken:
            self.d.config.write_text("listen: {control: 'tcp://127.0.0.1:%d'}\n" % taken.getsockname()[1])
            self.assertIn("in use", self.findings()["control port"]["detail"])
        self.d.config.write_text("")
        with self.subTest("daemon"):
            self.assertIn("baton up", self.findings()["daemon"]["detail"])
        with self.subTest("token"):
            os.unlink(self.d.state / "token")
            self.assertFalse(self.findings()["token"]["ok"])
        with self.subTest("journal"):
            self.assertTrue(self.findings()["journal"]["ok"])
            db = self.d.state / "journal.db"
            sound = db.read_bytes()
            db.write_bytes(sound[:100] + bytes(len(sound) - 100))
            self.assertFalse(self.findings()["journal"]["ok"])
            db.write_bytes(b"not a journal at all" * 100)
            self.assertFalse(self.findings()["journal"]["ok"])
        with self.subTest("state directory"):
            os.chmod(self.d.state, 0o755)
            self.assertIn("chmod 700", self.findings()["state directory"]["detail"])


if __name__ == "__main__":
    main()
