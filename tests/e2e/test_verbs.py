"""What single verbs print and do: info --field, agents --wait, events --tail and --since."""
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time

from harness import BIN, BatonTest, main, read_yaml, until
from probe import Probe, step, wait_up


class Verbs(BatonTest):
    def setUp(self):
        self.d = self.daemon(config="", agents=False)

    def probe(self, **more):
        p = Probe(self.d, **more)
        self.addCleanup(p.close)
        wait_up(self.d)
        return p

    def done(self, **more):
        plan = self.d.submit({"steps": [{**step(), **more}]})
        self.d.wait_plan(plan)
        return plan


class Info(Verbs):
    def test_one_field_is_printed_bare(self):
        at = self.d.endpoints()
        for name, value in (("address", at["control"]), ("control", at["control"]), ("events", at["events"]), ("state", self.d.state),
                            ("stateDir", self.d.state), ("token", self.d.state / "token"), ("endpoints", self.d.state / "endpoints.json"),
                            ("log", self.d.state / "batond.log"), ("pid", self.d.process.pid), ("version", at["version"])):
            self.assertEqual(self.d.cli("info", "--field", name), "%s\n" % value)
        self.assertEqual(json.loads(self.d.cli("info", "--json"))["token"], str(self.d.state / "token"))

    def test_unknown_field_is_named_with_what_was_meant(self):
        unknown = self.d.cli_any("info", "--field", "adress")
        self.assertEqual((unknown.returncode, unknown.stdout), (2, ""))
        self.assertIn("did you mean 'address'", unknown.stderr)


class Agents(Verbs):
    def test_agent_that_comes_later_is_waited_for(self):
        waiting = subprocess.Popen([BIN / "baton", "agents", "--wait", "probe", "--timeout", "30s", "--state", self.d.state],
                                   stdout=subprocess.PIPE, text=True)
        self.assertIsNone(waiting.poll())
        self.probe()
        out, _ = waiting.communicate(timeout=30)
        self.assertEqual(waiting.returncode, 0)
        self.assertIn("probe", out)

    def test_agent_that_does_not_come_is_124(self):
        late = self.d.cli_any("agents", "--wait", "nobody", "--timeout", "200ms")
        self.assertEqual(late.returncode, 124)
        self.assertIn("agent nobody is not up", late.stderr)

    def test_a_skill_is_shown_with_what_a_step_may_give_it(self):
        p = self.probe()
        self.assertEqual(self.d.cli("agents", "probe", "do"), "do  effects idempotent\n  Does a thing.\n  its parameters are not described\n")
        self.assertEqual(json.loads(self.d.cli("agents", "probe", "do", "--json"))["id"], "do")
        p.registration["card"]["skills"] = [{"id": "weigh", "description": "Weighs.", "effects": "none", "inputSchema": {
            "type": "object", "required": ["what"], "properties": {
                "what": {"type": "string", "description": "what is\nweighed"}, "unit": {"enum": ["kg", "lb"], "default": "kg"},
                "times": {"type": ["integer", "null"]}, "rest": {}}}}]
        p.register()
        self.assertEqual(self.d.cli("agents", "probe", "weigh").splitlines(), [
            "weigh  effects none", "  Weighs.", "  what             string, required: what is weighed", '  unit             kg or lb, default "kg"',
            "  times            integer or null", "  rest             any value"])
        wrong = self.d.cli_any("agents", "probe", "wiegh")
        self.assertEqual((wrong.returncode, wrong.stderr), (7, "baton: agent probe has no skill 'wiegh'; did you mean 'weigh'?; see: baton agents AGENT_ID\n"))
        self.assertEqual(self.d.cli_any("agents", "nobody", "do").returncode, 7)

    def test_one_skill_is_tried_without_a_plan_file(self):
        p = self.probe()
        p.registration["card"]["skills"] = [{"id": "weigh", "description": "Weighs.", "effects": "none", "inputSchema": {
            "type": "object", "required": ["what"], "additionalProperties": False,
            "properties": {"what": {"type": "string"}, "times": {"type": "integer"}}}}]
        p.register()
        tried = self.d.cli("agents", "try", "probe", "weigh", "--param", "what=7", "--param", "times=3", "--task", "Weigh it thrice")
        asked = p.of("step.execute")
        self.assertEqual([(r["task"], r["parameters"]) for r in asked], [("Weigh it thrice", {"what": "7", "times": 3})])
        self.assertEqual(tried.strip(), self.d.cli("result", asked[0]["planId"], "try").strip())
        self.d.cli("agents", "try", "probe", "--param", "what=x")  # its only skill
        for wrong, code, said in ((("probe", "wiegh"), 7, "did you mean 'weigh'?"), (("prob",), 7, "did you mean 'probe'?"),
                                  (("probe", "weigh"), 2, "parameters.what"), (("probe", "weigh", "--param", "what"), 2, "expected NAME=VALUE, got 'what'"),
                                  (("probe", "weigh", "--param", "what=a", "--param", "times=b"), 2, "expected a value of type integer as JSON, got 'b'"),
                                  (("probe", "weigh", "--param", "waht=a"), 2, 'did you mean "what"?')):
            done = self.d.cli_any("agents", "try", *wrong)
            self.assertEqual((done.returncode, said in done.stderr), (code, True), done.stderr)
        self.assertEqual(len(p.of("step.execute")), 2, "what is wrong reaches no agent")

    def test_a_try_that_fails_is_made_once_and_fails(self):
        p = self.probe(work=lambda r: {"outcome": "failed", "failure": {"code": "BROKEN", "class": "TOOL_ERROR", "message": "the scales are broken", "retryable": True}})
        done = self.d.cli_any("agents", "try", "probe")
        self.assertEqual((done.returncode, len(p.of("step.execute"))), (3, 1))
        self.assertEqual(done.stderr, "baton: step try failed: the scales are broken\n")

    def test_try_needs_its_agent_and_its_options_belong_to_it(self):
        for wrong in (("probe", "--param", "a=b"), ("probe", "--task", "x"), ("x", "y", "z"), ("try", "--param", "a=b")):
            done = self.d.cli_any("agents", *wrong)
            self.assertEqual((done.returncode, "usage: baton agents try AGENT_ID" in done.stderr), (2, True), done.stderr)

    def test_wait_needs_an_agent(self):
        self.assertEqual(self.d.cli_any("agents", "--wait").returncode, 2)


class Results(Verbs):
    def test_step_is_named_by_its_id_or_its_number(self):
        self.probe()
        plan = self.d.submit({"steps": [step("load"), step("2"), step("report")]})
        self.d.wait_plan(plan)
        for name, text in (("load", "load"), ("1", "load"), ("2", "2"), ("3", "report")):
            self.assertEqual(self.d.cli("result", plan, name).strip(), "done " + text)
            self.assertEqual(self.d.cli("result", "%s/%s" % (plan, name)).strip(), "done " + text)
        for name in ("0", "4", "99999999999999999999"):
            self.assertIn("has no step '%s'; it has 3" % name, self.d.cli_any("result", plan, name).stderr)
        self.assertEqual(self.d.cli_any("result", plan, "4").returncode, 7)


class Events(Verbs):
    def seqs(self, *args):
        return [json.loads(line)["seq"] for line in self.d.cli("events", *args, "--json").splitlines()]

    def test_tail_is_the_last_of_what_is_wanted(self):
        self.probe()
        plans = [self.done() for _ in range(3)]
        everything = self.seqs()
        for n in (0, 1, 5, len(everything), len(everything) + 1):
            self.assertEqual(self.seqs("--tail", n), everything[-n:] if n else [])
        of_plan = self.seqs(plans[1])
        for n in (1, len(of_plan) - 1, len(of_plan), len(of_plan) + 1):
            self.assertEqual(self.seqs(plans[1], "--tail", n), of_plan[-n:])
        self.assertEqual(self.seqs("--type", "plan_completed", "--tail", "2"), self.seqs("--type", "plan_completed")[-2:])
        self.assertEqual(self.seqs("--after", everything[-3], "--tail", "5"), everything[-2:])
        self.assertEqual(len(self.d.cli("events", "--tail", "2").splitlines()), 2)
        self.assertEqual(self.d.cli_any("events", "--tail", "2", "--limit", "2").returncode, 2)
        self.assertEqual(self.d.cli_any("events", "--tail", "100001").returncode, 2)

    def test_tail_is_followed_by_what_comes(self):
        self.probe()
        self.done()
        last = self.seqs()[-1]
        follows = subprocess.Popen([BIN / "baton", "events", "-f", "--tail", "1", "--json", "--state", self.d.state], stdout=subprocess.PIPE, text=True)
        self.addCleanup(follows.wait)
        self.addCleanup(follows.kill)
        self.addCleanup(follows.stdout.close)
        self.assertEqual(json.loads(follows.stdout.readline())["seq"], last)
        self.done()
        self.assertEqual(json.loads(follows.stdout.readline())["seq"], last + 1)

    def test_since_is_a_time_or_how_long_ago(self):
        self.probe()
        first = self.done()
        events = self.d.events()
        at = events[-1]["tsMs"]
        until(lambda: time.time() * 1000 > at + 1100, 10, "another second")
        cut = (at + 1000) // 1000
        second = self.done()
        new = [e["seq"] for e in self.d.events() if e["tsMs"] >= cut * 1000]
        self.assertTrue(0 < len(new) < len(self.d.events()))
        self.assertEqual(self.seqs("--since", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(cut))), new)
        self.assertEqual(self.seqs("--since", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(cut))), new)
        self.assertEqual(self.seqs(first, "--since", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(cut))), [])
        self.assertEqual(self.seqs("--since", "1h"), self.seqs())
        self.assertEqual(self.seqs(second, "--since", "1h", "--tail", "1"), self.seqs(second)[-1:])
        self.assertIn("--since: expected", self.d.cli_any("events", "--since", "soon").stderr)


class Plan(BatonTest):
    GOALS = ("compute 6 * 7", "compute 6 * 7 and list the files in /var/log")

    def setUp(self):
        self.d = self.daemon()

    def plan(self, *args):
        done = self.d.cli_any("plan", *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def test_only_what_is_no_default_is_printed_and_it_is_the_same_plan(self):
        for goal in self.GOALS:
            for options in ((), ("--policy", '{"maxRetries": 7, "stepTimeoutMs": 1}')):
                out, said = self.plan(goal, *options)
                full, _ = self.plan(goal, "--full", *options)
                self.assertEqual(set(read_yaml(out)), {"goal", "steps"} | ({"policy"} if options else set()))
                self.assertIn("contextBudgetBytes", read_yaml(full)["policy"])
                self.assertNotIn("[style]", said, "the user did not write the task")
                self.assertNotIn("confidence", said)
                lint = self.d.ask("plan.lint", plan=read_yaml(out))
                self.assertTrue(lint["valid"])
                self.assertEqual({k: v for k, v in lint["plan"].items() if k not in ("planner", "dryRun")}, read_yaml(full))
        self.assertEqual(read_yaml(out)["policy"], {"maxRetries": 7, "stepTimeoutMs": 1})

    def test_what_differs_from_the_defaults_of_this_daemon_stays(self):
        self.d.stop()
        self.d.config.write_text(self.d.config.read_text() + "policy: {maxRetries: 9}\n")
        self.d.start()
        self.assertNotIn("policy", read_yaml(self.plan(self.GOALS[0])[0]))
        self.assertEqual(read_yaml(self.plan(self.GOALS[0], "--policy", '{"maxRetries": 2}')[0])["policy"], {"maxRetries": 2})

    def test_it_is_run_unchanged(self):
        for args in ((), ("--full",)):
            path = self.d.work / "plan.yaml"
            path.write_text(self.plan(self.GOALS[0], *args)[0])
            self.assertIn("42", self.d.cli("run", "--plan", path))


class Run(Verbs):
    def on_terminal(self, plan, rows=24, columns=80):
        """What `run` draws: the bytes on a terminal of this size."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        ran = subprocess.Popen([BIN / "baton", "run", "--plan", self.write_plan(self.d, "plan.json", plan), "--state", self.d.state],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=slave, env={**os.environ, "TERM": "xterm"})
        os.close(slave)
        drawn = b""
        try:
            while True:
                drawn += os.read(master, 65536)
        except OSError:
            os.close(master)  # its end
        self.assertEqual(ran.wait(30), 0)
        return drawn.decode()

    def test_tree_collapses_when_it_does_not_fit(self):
        self.probe()
        for n, collapses in ((5, False), (21, False), (22, True), (60, True)):
            drawn = self.on_terminal({"steps": [step("s%d" % i, dependsOn=["s%d" % (i - 1)] if i else []) for i in range(n)]})
            self.assertEqual("%d of %d done" % (n, n) in drawn, collapses, drawn)
            for drawing in drawn.split("\x1b[J"):
                self.assertLessEqual(drawing.count("\x1b[K\r\n"), 21)
            for line in re.sub("\x1b\\[[0-9;]*[A-Za-z]", "", drawn).splitlines():
                self.assertTrue(len(line) <= 80 or "warning: " in line, line)

    def test_results_of_leaves_are_printed_and_all_of_them_on_request(self):
        self.probe()
        chain = self.write_plan(self.d, "chain.json", {"steps": [step("a"), step("b", dependsOn=["a"]), step("c", dependsOn=["b"])]})
        self.assertEqual(self.d.cli("run", "--plan", chain), "done c\n")
        self.assertEqual(self.d.cli("run", "--plan", chain, "--all"), "**do a**\ndone a\n\n---\n\n**do b**\ndone b\n\n---\n\n**do c**\ndone c\n")
        fan = self.write_plan(self.d, "fan.json", {"steps": [step("a", dependsOn=[]), step("b", dependsOn=["a"]), step("c", dependsOn=["a"])]})
        self.assertEqual(self.d.cli("run", "--plan", fan), "**do b**\ndone b\n\n---\n\n**do c**\ndone c\n")

    def test_result_prints_what_run_printed(self):
        self.probe()
        for steps in ([step("a"), step("b", dependsOn=["a"])], [step("a", dependsOn=[]), step("b", dependsOn=["a"]), step("c", dependsOn=["a"])], [step("a")]):
            path = self.write_plan(self.d, "plan.json", {"steps": steps})
            self.assertEqual(self.d.cli("run", "--plan", path), self.d.cli("result", "last"))
            self.assertEqual(self.d.cli("result", "last", "--all"), self.d.cli("run", "--plan", path, "--all"))
        self.assertEqual(json.loads(self.d.cli("result", "last", "--json"))["aggregatedResult"], "done a")

    def test_without_depends_on_the_templates_say_which_results_were_taken_up(self):
        self.probe()
        def uses(what):
            return {"parameters": {"text": what}}
        for steps, printed in (([step("a"), step("b", **uses("{{results.a}}"))], "done b\n"),
                               ([step("a.b"), step("c", **uses("so: {{results.a.b.text}}!"))], "done c\n"),
                               ([step("a"), step("ab"), step("c", **uses("{{results.ab.text}}"))], "**do a**\ndone a\n\n---\n\n**do c**\ndone c\n"),
                               ([step("a"), step("b")], "**do a**\ndone a\n\n---\n\n**do b**\ndone b\n")):
            plan = self.write_plan(self.d, "plan.json", {"steps": steps})
            self.assertEqual(self.d.cli("run", "--plan", plan), printed)

    def test_partial_plan_names_also_with_leaves_what_was_not_done(self):
        def work(r):
            if r["stepId"] == "c":
                return {"outcome": "failed", "error": {"code": "INVALID", "message": "no"}}
            return {"outcome": "completed", "result": {"text": "done " + r["stepId"]}}
        self.probe(work=work)
        plan = self.write_plan(self.d, "partial.json", {"policy": {"onFailure": "skip", "maxRetries": 0},
                                                        "steps": [step("a"), step("b", dependsOn=["a"]), step("c", dependsOn=["a"])]})
        out = self.d.cli("run", "--plan", plan, code=8)
        self.assertTrue(out.startswith("done b\n\n---\n\n**Not done**\n"), out)
        self.assertNotIn("done a", out)


class Status(Verbs):
    def watch(self, *args, code):
        done = self.d.cli_any("status", "--watch", *args)
        self.assertEqual(done.returncode, code, done)
        return done.stdout

    def test_list_has_ages_durations_and_reasons(self):
        self.probe(work=lambda r: {"outcome": "failed", "error": {"code": "INVALID", "message": "too little"}})
        failed = self.done(maxRetries=0)
        paused = self.d.submit({"steps": [step(requiresApproval=True)]})
        until(lambda: self.d.ask("review.list").get("reviews"), 10, "a review")
        self.d.ask("plan.pause", planId=paused)
        head, first, second = self.d.cli("status").splitlines()
        self.assertEqual(head.split(), ["PLAN", "STATUS", "AGE", "TIME", "REASON"])
        self.assertRegex(first, r"%s +waiting +\d+s +\d+m?s +paused \(requested\): .*approval" % paused)
        self.assertRegex(second, r"%s +failed +\d+s +\d+m?s +Step 1 failed: " % failed)

    def test_filters_let_through_what_has_all_they_say(self):
        self.probe()
        other = Probe(self.d, "other")
        self.addCleanup(other.close)
        wait_up(self.d, "other")
        ours = [self.done() for _ in range(3)]
        theirs = self.d.submit({"steps": [step(agent="other")]}, sessionId="s")
        self.d.wait_plan(theirs)
        def ids(*args):
            return [p["planId"] for p in json.loads(self.d.cli("status", *args, "--json"))]
        self.assertEqual(ids("--agent", "probe"), ours[::-1])
        self.assertEqual(ids("--agent", "probe", "--limit", "1"), ours[-1:])
        self.assertEqual(ids("--agent", "other"), [theirs])
        self.assertEqual(ids("--agent", "other", "--session", "s", "--status", "completed"), [theirs])
        self.assertEqual(ids("--agent", "probe", "--session", "s"), [])
        self.assertEqual(self.d.cli_any("status", theirs, "--agent", "other").returncode, 2)

    def test_watch_of_a_plan_ends_with_it_and_of_the_list_at_the_timeout(self):
        self.probe()
        plan = self.done()
        self.assertEqual(self.watch(plan, code=0).count(plan), 1)
        self.assertGreaterEqual(self.watch("--timeout", "1500ms", code=124).count(plan), 2)


class Logs(BatonTest):
    CONFIG = """
agents:
  - agentId: exec
    command: ["${BATON_BIN}/baton-agent-exec"]
    capacity: 2
    settings:
      commands:
        - {id: say, argv: ["/bin/sh", "-c", "for i in 1 2 3; do echo $0 $i >&2; done; echo $0", "{text}"], description: "Says.", output: text, effects: idempotent}
"""

    def setUp(self):
        self.d = self.daemon(config=self.CONFIG)

    def plan(self):
        plan = self.d.submit({"steps": [{"stepId": s, "agentId": "exec", "skill": "say", "task": "say it", "parameters": {"text": "from-" + s}, "dependsOn": []}
                                        for s in ("a", "ab")]})
        self.d.wait_plan(plan)
        return plan

    def logs(self, *args, code=0):
        done = self.d.cli_any("logs", *args)
        self.assertEqual(done.returncode, code, done)
        return done.stdout.splitlines(), done.stderr

    def test_of_a_plan_and_of_a_step(self):
        first, second = self.plan(), self.plan()
        lines, _ = self.logs(first)
        self.assertEqual(len(lines), 6)
        self.assertTrue(all(first in line and line.startswith("exec#1 ") for line in lines), lines)
        self.assertEqual([line.split("line=")[1] for line in self.logs(second, "a")[0]], ["from-a 1", "from-a 2", "from-a 3"])
        self.assertEqual(self.logs(second, "1")[0], self.logs(second, "a")[0])
        self.assertEqual(self.logs(second, "a", "--tail", "1")[0], self.logs(second, "a")[0][-1:])
        self.assertEqual(json.loads(self.logs(second, "a", "--json")[0][0])["log"], "exec#1")
        self.assertEqual(self.logs("last", "a")[0], self.logs(second, "a")[0])
        self.logs(second, "x", code=7)
        self.logs("nobody", code=7)

    def test_of_an_agent_without_what_an_earlier_daemon_had(self):
        old = self.plan()
        self.assertIn(old, "".join(self.logs("exec")[0]))
        self.d.stop()
        self.d.start()
        new = self.plan()
        lines, said = self.logs("exec")
        self.assertIn(new, "".join(lines))
        self.assertNotIn(old, "".join(lines))
        self.assertRegex(said, r"\d+ lines of earlier daemons are left out; --all prints them")
        lines, said = self.logs("exec#1", "--all")
        self.assertIn(old, "".join(lines))
        self.assertEqual(said, "")

    def test_following_a_plan_ends_with_it(self):
        plan = self.plan()
        self.assertEqual(len(self.logs(plan, "-f")[0]), 6)
        self.logs("exec", "-f", "--timeout", "300ms", code=124)

    def test_daemon_that_writes_elsewhere_is_said(self):
        self.assertIn("batond.log: No such file", self.logs(code=7)[1])


class Reload(BatonTest):
    BASE = "policy: {maxRetries: %s, leaseMs: %d, heartbeatMs: 300}\nlog: {level: info}\n"
    AGENT = "agents: [{agentId: calc, command: ['%%s/baton-agent-calc'], env: ['SECRET=%s'], capacity: %d}]\n"

    def setUp(self):
        self.d = self.daemon(config=self.text(2, 3000, "one", 1).replace("%", "%%"))

    def text(self, retries, lease, secret, capacity):
        return self.BASE % (retries, lease) + self.AGENT % (secret, capacity) % BIN

    def write(self, retries, lease, secret, capacity, more=""):
        head = self.d.config.read_text().split("policy:")[0]
        self.d.config.write_text(head + self.text(retries, lease, secret, capacity).replace("policy: {", "policy: {" + more, 1))

    def retries(self):
        plan = {"steps": [{"stepId": "a", "agentId": "calc", "skill": "evaluate", "task": "add", "parameters": {"expression": "1"}}]}
        return self.d.ask("plan.lint", plan=plan)["plan"]["policy"]["maxRetries"]

    def test_what_needs_no_restart_is_applied_and_the_rest_is_named(self):
        self.assertEqual(self.d.cli("reload"), "nothing differs\n")
        self.write(7, 4000, "two", 3, "breaker: {failures: 7}, ")
        text = self.d.cli("reload", "--check")
        self.assertIn("differs  policy.maxRetries: 2, in the file 7\n", text)
        self.assertEqual(self.retries(), 2)
        text = self.d.cli("reload")
        self.assertIn("applied  policy.maxRetries: 2, in the file 7\n", text)
        self.assertIn("applied  policy.leaseMs: 3000, in the file 4000\n", text)
        self.assertIn("applied  agents.calc.env: changed; its processes are restarted\n", text)
        self.assertIn("applied  agents.calc.capacity: changed; its processes are restarted\n", text)
        self.assertIn("restart  policy.breaker.failures: 5, in the file 7\n", text)
        self.assertNotIn("two", text)
        self.assertEqual(self.retries(), 7)
        self.assertNotIn("maxRetries", self.d.cli("reload"))
        self.assertIn("policy.breaker.failures", self.d.cli("reload"))

    def test_invalid_configuration_changes_nothing(self):
        self.write("many", 3000, "one", 1)
        bad = self.d.cli_any("reload")
        self.assertEqual(bad.returncode, 2, bad)
        self.assertIn("policy.maxRetries", bad.stderr)
        self.assertEqual(self.retries(), 2)

    def test_hangup_reads_it_too(self):
        self.write(5, 3000, "one", 1)
        self.d.process.send_signal(signal.SIGHUP)
        until(lambda: self.retries() == 5, 10, "it is applied")

    def test_up_with_another_file_says_what_differs(self):
        other = self.d.work / "other.yaml"
        other.write_text(self.d.config.read_text().replace("maxRetries: 2", "maxRetries: 4"))
        differs = self.d.cli_any("up", "--config", other)
        self.assertEqual(differs.returncode, 1)
        self.assertIn("policy.maxRetries: 2, in the file 4", differs.stderr)
        self.assertEqual(self.retries(), 2)
        self.assertEqual(self.d.cli_any("up", "--config", self.d.config).returncode, 0)
        self.assertEqual(self.d.cli_any("up", "--config", "nowhere.yaml").returncode, 2)


if __name__ == "__main__":
    main()
