#!/usr/bin/env python3
"""baton.py against a real daemon: outcomes, values, artifacts, restarts, events, and what a newcomer types."""
import asyncio
import dataclasses
import datetime
import doctest
import enum
import json
import os
import pathlib
import py_compile
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import typing
import unittest

from harness import BIN, HERE, ROOT, main, until

SDK = ROOT / "agents" / "python"
sys.path.insert(0, str(SDK))
os.environ["BATON_BIN"] = str(BIN)
import baton  # noqa: E402  (the path is set just above)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


def make_agent():
    agent = baton.Agent("py", capacity=4)
    agent.runs = []

    @agent.skill
    def greet(name: str = "world") -> str:
        """Greets somebody by name.

        Args:
            name: whom to greet
        """
        return "Hello, %s!" % name

    @agent.skill
    def typed(point: Point, color: Color = Color.RED, days: typing.Optional[typing.List[datetime.date]] = None):
        return {"sum": point.x + point.y, "color": color, "next": [d + datetime.timedelta(days=1) for d in days or []]}

    @agent.skill(effects="unsafe")
    def wait(step: baton.Step, seconds: float, mark: str = ""):
        agent.runs.append(mark)
        step.progress(25, "began")
        if step.wait(seconds):
            step.check()
        return "waited " + mark

    @agent.skill
    async def sleep(seconds: float):
        try:
            agent.runs.append("asleep")
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            agent.runs.append("cancelled")
            raise
        return "slept"

    @agent.skill
    def synthesize(step: baton.Step):
        step.usage(input_tokens=7)
        yield from ("one ", "two ", "thrée")

    @agent.skill
    def ask_year(year: typing.Optional[int] = None):
        if year is None:
            raise baton.NeedsInput("Which year?", {"type": "object", "properties": {"year": {"type": "integer"}}})
        return year

    @agent.skill
    def sign(step: baton.Step):
        return "signed: %s" % step.feedback if step.attempt > 1 else baton.NeedsApproval("May I?")

    @agent.skill
    def write(step: baton.Step):
        with step.artifact("big.txt", "text/plain") as f:
            f.write("x" * 100000)
        return baton.Result(text="in a file", state={"written": True})

    @agent.skill
    def read(file: str, step: baton.Step):
        with step.open(file) as f:
            return {"bytes": len(f.read()), "state": dict(step.state), "before": [d["stepId"] for d in step.dependencies]}

    @agent.skill
    def trouble(kind: str):
        if kind == "nan":
            return {"rows": [1, float("nan")]}
        if kind == "huge":
            return "x" * (4 << 20)
        if kind == "escapes":
            return "\1" * (1 << 20)
        if kind == "file":
            open("/nonexistent")
        if kind == "class":
            raise baton.Fail("no such table", "RESOURCE_NOT_FOUND", retryable=False, details={"table": "t"})
        raise RuntimeError("a mistake")

    @agent.skill(calls=True, tags=["research"])
    def research(step: baton.Step, n: int):
        agent.runs.append("turn %d" % len(step.turns))
        twice = step.call("other", "double", n=n)["double"]
        good, bad = step.call_all(("other", "double", {"n": twice}), ("other", "double", {"n": -1}))
        try:
            step.call("other", "double", n=-2)
        except baton.CallFailed as e:
            return {"found": good["data"], "bad": bad["error"], "caught": e.result["errorClass"], "left": step.turns_left,
                    "tools": [t["skill"] for t in step.tools]}

    @agent.skill(calls=True)
    def fickle(step: baton.Step):
        return step.call("other", "double", n=1) if not step.turns else step.call("other", "pass-on")

    @agent.skill
    def pass_on(step: baton.Step):
        raise baton.Handoff("other", "not mine")

    return agent


def plan_of(*skills, **policy):
    steps = [{"stepId": "s%d" % i, "agentId": "py", "skill": s, "task": "do the step %d" % i, "parameters": p} for i, (s, p) in enumerate(skills, 1)]
    return {"steps": steps, "policy": {"maxRetries": 0, **policy}}


class Sdk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.agent = make_agent()
        cls.other = baton.Agent("other")

        @cls.other.skill(id="pass-on")
        def take(step: baton.Step):
            return "taken, for: %s" % step.feedback

        @cls.other.skill
        def double(n: int):
            if n < 0:
                raise baton.Fail("only from 0 on", "VALIDATION_ERROR", False)
            return {"double": 2 * n}

        cls.context = baton.daemon(agents=[cls.agent, cls.other])
        cls.d = cls.context.__enter__()
        cls.addClassCleanup(cls.context.__exit__, None, None, None)

    def test_values_and_types(self):
        self.assertEqual(self.d.ask("py", "greet", name="Ada"), "Hello, Ada!")
        self.assertEqual(self.d.ask("py", "typed", point={"x": 1, "y": 2}, color="blue", days=["2026-11-30"]),
                         {"sum": 3, "color": "blue", "next": ["2026-12-01"]})
        self.assertEqual(self.d.ask("py", "sleep", seconds=0.001), "slept")
        greet = next(s for a in self.d.agents() if a["card"]["agentId"] == "py" for s in a["card"]["skills"] if s["id"] == "greet")
        self.assertEqual(greet["description"], "Greets somebody by name.")
        self.assertEqual(greet["inputSchema"]["properties"]["name"], {"type": "string", "description": "whom to greet", "default": "world"})

    def failure(self, skill, **parameters):
        plan = self.d.submit(plan_of((skill, parameters)))
        self.assertEqual(self.d.wait(plan, 30)["status"], "failed")
        event = [e for e in self.d.events(plan=plan, types=["plan_step_completed"])][-1]
        return event["errorClass"], event["error"]

    def test_failures_have_class_and_place(self):
        for kind, cls, words in (("nan", "VALIDATION_ERROR", r"data\.rows\[1\]: nan"), ("huge", "VALIDATION_ERROR", "result_too_large: 4194304 bytes"),
                                 ("file", "RESOURCE_NOT_FOUND", "FileNotFoundError"), ("class", "RESOURCE_NOT_FOUND", "no such table"),
                                 ("bug", "UNKNOWN", "RuntimeError: a mistake")):
            found, message = self.failure("trouble", kind=kind)
            self.assertEqual(found, cls, kind)
            self.assertRegex(message, words)

    def test_handlers_without_a_supervisor(self):
        call = self.agent.call
        self.assertEqual(call("greet", {"name": "Ada"}), {"outcome": "completed", "result": {"text": "Hello, Ada!"}})
        for parameters, words in (({"nme": "x"}, r"parameters\.nme: there is no such parameter; there are name"),
                                  ({"name": 7}, r"parameters\.name: expected string, got 7")):
            self.assertRegex(call("greet", parameters)["failure"]["message"], words)
        self.assertEqual(call("sleep", {"seconds": 60}, deadlineMs=20)["failure"]["class"], "TIMEOUT")
        self.assertEqual(call("wait", {"seconds": 60}, deadlineMs=20)["failure"]["class"], "TIMEOUT")
        self.assertEqual(call("synthesize"), {"outcome": "completed", "result": {"text": "one two thrée"}, "usage": {"inputTokens": 7}})
        self.assertEqual(call("no-such")["failure"]["class"], "TOOL_NOT_FOUND")
        self.assertIn("result_too_large", str(call("trouble", {"kind": "escapes"})), "in JSON it is six times as long")
        with self.assertRaisesRegex(ValueError, "there twice"):
            self.agent.skill(lambda: 0, id="greet")
        with self.assertRaisesRegex(TypeError, r"@agent\.skill\(id='greet'\)"):
            self.agent.skill("greet")

    def review(self, plan):
        return until(lambda: self.d.reviews(plan), 20, "a review")[0]["reviewId"]

    def test_input_approval_and_handoff(self):
        asks, signs = (self.d.submit(plan_of((skill, {}))) for skill in ("ask-year", "sign"))
        self.d.decide(self.review(asks), "approve", edit={"year": 1999})
        self.d.decide(self.review(signs), "approve", comment="but only once")
        self.assertEqual(self.d.result(asks, timeout=30)["aggregatedResult"], "1999")
        self.assertIn("but only once", self.d.result(signs, timeout=30)["aggregatedResult"])
        plan = self.d.submit(plan_of(("pass-on", {}), handoffTo=["other"]))
        found = self.d.result(plan, timeout=30)
        self.assertIn("not mine", found.get("aggregatedResult", ""), found)

    def test_a_handler_calls_skills_of_others_and_runs_again_with_the_results(self):
        plan = plan_of(("research", {"n": 3}))
        plan["steps"][0]["tools"] = ["other/double"]
        del self.agent.runs[:]
        found = self.d.result(self.d.submit(plan), timeout=30)
        self.assertEqual(json.loads(found["aggregatedResult"]), {"found": {"double": 12}, "bad": "only from 0 on", "caught": "VALIDATION_ERROR",
                                                                 "left": 27, "tools": ["double"]})
        self.assertEqual(self.agent.runs, ["turn %d" % n for n in range(4)])
        self.assertEqual(self.failure("fickle")[0], "VALIDATION_ERROR", "no grant: py has no right to call other")
        plan = {**plan_of(("fickle", {})), "grants": ["other"]}
        plan = self.d.submit(plan)
        self.assertEqual(self.d.wait(plan, 30)["status"], "failed")
        error = [e for e in self.d.events(plan=plan, types=["plan_step_completed"])][-1]["error"]
        self.assertIn("turn 1 called other/double, and now the handler calls other/pass-on there", error)
        # Without a supervisor: what it calls, and with a turn that is done.
        first = self.agent.call("research", {"n": 3})
        self.assertEqual(first, {"outcome": "calls", "calls": [{"id": "t1-1", "agentId": "other", "skill": "double", "parameters": {"n": 3}}]})
        turns = [{"calls": first["calls"], "results": [{"id": "t1-1", "status": "completed", "data": {"double": 6}}]}, {"calls": first["calls"]}]
        self.assertEqual([c["parameters"]["n"] for c in self.agent.call("research", {"n": 3}, turns=turns)["calls"]], [6, -1])
        with self.assertRaisesRegex(ValueError, "17 calls in one turn, expected 1 to 16"):
            baton.Calls([{"id": "c%d" % i, "agentId": "other", "skill": "double"} for i in range(17)])

    def test_a_handler_that_would_end_its_thread_fails_its_step(self):
        leaver = baton.Agent("leaver")

        @leaver.skill
        def leave(how: str):
            raise {"exit": SystemExit(5), "ctrl-c": KeyboardInterrupt(), "cancel": asyncio.CancelledError()}[how]

        @leaver.skill
        async def leave_loop(how: str):
            await asyncio.sleep(0)
            leave(how)

        @leaver.skill
        async def leave_stream(how: str):
            yield "so far"
            leave(how)

        @leaver.skill
        async def stay():
            await asyncio.sleep(0)
            return "here"

        self.d.serve(leaver)
        names = {"exit": ("UNKNOWN", "SystemExit: 5"), "ctrl-c": ("UNKNOWN", "KeyboardInterrupt"), "cancel": ("UNKNOWN|CANCELLED", "ancelled")}
        for skill in ("leave", "leave-loop", "leave-stream"):
            for how, (cls, words) in names.items():
                step = {"agentId": "leaver", "skill": skill, "task": "leave the process", "parameters": {"how": how}, "timeoutMs": 15000}
                plan = self.d.submit({"steps": [step], "policy": {"maxRetries": 0}})
                self.assertEqual(self.d.wait(plan, 30)["status"], "failed")
                event = [e for e in self.d.events(plan=plan, types=["plan_step_completed"])][-1]
                self.assertRegex(event["errorClass"], cls, (skill, how))
                self.assertIn(words, event["error"], (skill, how))
        self.assertEqual(self.d.ask("leaver", "stay"), "here", "the loop of the coroutines goes on")
        with self.assertRaises(KeyboardInterrupt):
            leaver.call("leave", {"how": "ctrl-c"})  # of the person at the keyboard

    def test_what_no_supervisor_would_take_is_refused_where_it_is_written(self):
        for wrong, words in ((lambda: baton.Agent("pr\u00fcf"), r"agentId 'pr\u00fcf': expected 1 to 64 of A-Z a-z 0-9 _ \. -"),
                             (lambda: baton.Agent(""), "agentId ''"), (lambda: baton.Agent("x" * 65), "agentId"),
                             (lambda: baton.Agent("x", capacity=0), "capacity: expected 1 to 64, got 0"),
                             (lambda: baton.Agent("x", capacity=65), "capacity: expected 1 to 64, got 65"),
                             (lambda: baton.Agent("x").skill(lambda: 0, id="gr\u00f6\u00dfe"), "skill 'gr\u00f6\u00dfe': expected 1 to 64"),
                             (lambda: baton.Agent("x").skill(lambda: 0, id="s" * 65), "skill 's+': expected 1 to 64")):
            with self.assertRaisesRegex(ValueError, words):
                wrong()
        baton.Agent("x" * 64, capacity=64).skill(lambda: 0, id="s" * 64)

    def test_a_refused_registration_says_why_at_once(self):
        late = baton.Agent("late", version=7)
        late.skill(lambda: 0, id="one")
        began = time.monotonic()
        with self.assertRaisesRegex(baton.Error, "agent late: .*version"):
            self.d.serve(late)
        self.assertLess(time.monotonic() - began, 15)

    def test_artifacts_state_and_usage(self):
        plan = self.d.submit(plan_of(("write", {}), ("read", {"file": "{{results.s1.artifact}}"})))
        self.assertTrue(self.d.result(plan, timeout=30)["success"], self.d.log())
        self.assertEqual(self.d.result(plan, "s2")["data"], {"bytes": 100000, "state": {"written": True}, "before": ["s1"]})

    def test_a_streamed_answer_arrives_in_pieces(self):
        plan = self.d.submit({**plan_of(("greet", {})), "policy": {"synthesis": "agent:py"}})
        text = "".join(e["text"] for e in self.d.watch(plan, timeout=30) if e["type"] == "text_delta")
        found = self.d.result(plan)
        self.assertEqual((found["aggregatedResult"], found["success"]), ("one two thrée", True))
        self.assertEqual(text, "one two thrée")

    def test_cancel_reaches_threads_and_coroutines(self):
        del self.agent.runs[:]
        plan = self.d.submit({"steps": [{"stepId": s, "agentId": "py", "skill": s, "task": "take very long now", "dependsOn": [],
                                         "parameters": {"seconds": 600}} for s in ("wait", "sleep")]})
        until(lambda: len(self.agent.runs) == 2, 20, "both run")
        self.d.cancel(plan, "no need")
        self.assertEqual(self.d.wait(plan, 30)["status"], "cancelled")
        until(lambda: self.agent.runs[-1] == "cancelled" and self.agent._running == 0, 20, "both have stopped")

    def test_a_refusal_is_an_error_with_a_code(self):
        for code, call in (("NOT_FOUND", lambda: self.d.get("01A20A4C-62AF-7049-8B0F-C6EA08165C6B")),
                           ("INVALID", lambda: self.d.submit({"steps": [{"agentId": "py", "skil": "x"}]})),
                           ("TIMEOUT", lambda: next(self.d.watch(types=["agent_down"], timeout=0.2)))):
            with self.assertRaises(baton.Error) as e:
                call()
            self.assertEqual(e.exception.code, code, e.exception)
        with tempfile.TemporaryDirectory() as empty, self.assertRaisesRegex(baton.Error, "UNAVAILABLE: no supervisor runs in .*`baton up`"):
            baton.Client(empty, patience=0).agents()

    def test_the_same_key_is_the_same_plan(self):
        plan = plan_of(("greet", {}))
        self.assertEqual(self.d.submit(plan, key="k1"), self.d.submit(plan, key="k1"))


class Pair(baton.Agent):
    """One of two instances: it counts what it refuses."""
    refused = 0

    def __init__(self):
        super().__init__("pair", capacity=2)
        self.release, self.ran = threading.Event(), []
        self.skill(self.hold)
        self.skill(effects="unsafe")(self.work)

    def hold(self) -> str:
        self.release.wait(60)
        return "held"

    def work(self) -> str:
        self.ran.append(time.monotonic())
        return "done"

    def _execute(self, *args):
        try:
            return super()._execute(*args)
        except baton.Error:
            self.refused += 1
            raise


class Leaving(unittest.TestCase):
    def test_a_step_that_comes_to_an_agent_that_drains_costs_no_attempt(self):
        old, new = Pair(), Pair()
        with baton.daemon(agents=[old]) as d:
            self.addCleanup(old.release.set)
            held = d.submit({"steps": [{"agentId": "pair", "skill": "hold", "task": "Hold"}]})
            until(lambda: old._running == 1, 20, "the first step runs")
            old._drain_sent = old._draining = True  # and its supervisor does not know yet
            plan = d.submit({"steps": [{"agentId": "pair", "skill": "work", "task": "Work", "maxRetries": 0}]})
            until(lambda: old.refused > 1, 20, "it refuses, and is asked again")
            self.assertEqual(d.get(plan)["steps"][0]["attempts"], 1)
            d.serve(new)
            result = d.result(plan, timeout=30)
            self.assertTrue(result["success"], d.log())
            self.assertEqual((d.get(plan)["steps"][0]["attempts"], old.ran, len(new.ran)), (1, [], 1))
            old.release.set()
            self.assertTrue(d.result(held, timeout=30)["success"])


class Restart(unittest.TestCase):
    def test_a_step_and_a_watcher_go_on_over_kill_9_of_the_daemon(self):
        agent = make_agent()
        with baton.daemon(agents=[agent]) as d:
            plan = d.submit(plan_of(("wait", {"seconds": 1.5, "mark": "once"}), ("greet", {})))
            found, seen = [], threading.Event()

            def watch():
                for event in d2.watch(plan, timeout=60):
                    found.append(event)
                    seen.set()

            d2 = baton.Client(d.state, patience=60)
            watcher = threading.Thread(target=watch, daemon=True)
            watcher.start()
            until(lambda: agent.runs == ["once"] and seen.is_set(), 20, "the step runs")
            d.kill()
            d.start()
            watcher.join(60)
            self.assertTrue(d.result(plan, timeout=60)["success"], d.log())
            self.assertEqual(agent.runs, ["once"], "the work was not done again")
            self.assertEqual([e["planSeq"] for e in found], list(range(1, len(found) + 1)), "no gap, nothing twice")
            self.assertEqual(found[-1]["type"], "plan_completed")
            self.assertEqual(list(d2.watch(plan, from_seq=found[-1]["seq"] + 1, timeout=60)), [], "it is over")
            d2.close()
        with baton.daemon(agents=[agent]) as d:  # the same agent, another daemon
            self.assertEqual(d.ask("py", "greet"), "Hello, world!")


class Fleet(unittest.TestCase):
    def test_the_number_of_shards_waits_for_a_node_whose_process_has_ended(self):
        with baton.daemon() as d, tempfile.TemporaryDirectory() as near:
            for name in ("token", "endpoints.json"):
                shutil.copy(pathlib.Path(d.state) / name, near)
            now = pathlib.Path(near, "endpoints.json")
            there = now.read_text()
            with socket.create_server(("127.0.0.1", 0)) as gone:  # nobody listens at its port any more
                port = gone.getsockname()[1]
            now.write_text(json.dumps({**json.loads(there), "control": "tcp://127.0.0.1:%d" % port}))
            pathlib.Path(near, "fleet.json").write_text("{}")
            client = baton.Client(near)
            asked = []
            look = client.control.endpoints
            client.control.endpoints = lambda: (asked.append(1), len(asked) == 2 and now.write_text(there), look())[-1]
            self.assertEqual(client.shards(), 1)
            self.assertEqual(len(asked), 2, "the first one was refused")
            client.close()


class Sealed(unittest.TestCase):
    def test_agent_and_client_with_credentials_where_the_token_opens_nothing(self):
        agent = make_agent()
        with baton.daemon({"auth": "required"}) as d:
            files = {}
            for role in ("agent", "admin"):
                files[role] = d.folder / (role + ".json")
                subprocess.run([BIN / "baton", "credential", "add", role, "--role", role, "--file", files[role], "--state", d.state,
                                *(["--agents", "py"] if role == "agent" else [])],
                               check=True, capture_output=True, timeout=60)
            with self.assertRaises(baton.Error) as e:
                d.agents()
            self.assertEqual(e.exception.code, "UNAUTHORIZED", "the token opens nothing")
            served = threading.Thread(target=agent.serve, kwargs={"state": d.state, "credential": baton.KeyFile(files["agent"])})
            served.start()
            try:
                with baton.Client(d.state, credential=baton.KeyFile(files["admin"]), patience=60) as c:
                    until(lambda: [a for a in c.agents() if a["state"] == "up"], 20, "the agent is up")
                    self.assertEqual(c.ask("py", "greet", name="Ada"), "Hello, Ada!")
                    d.kill()
                    d.start()  # the sessions are gone; both begin again
                    until(lambda: [a for a in c.agents() if a["state"] == "up"], 20, "the agent is back")
                    self.assertEqual(c.ask("py", "greet"), "Hello, world!")
                    key = files["admin"].read_text()
                    files["admin"].write_text(key.replace(c.control.credential.key.hex(), "ab" * 32))
                    with self.assertRaisesRegex(baton.Error, "UNAUTHORIZED"):
                        baton.Client(d.state, credential=baton.KeyFile(files["admin"])).agents()
                    files["admin"].chmod(0o644)
                    with self.assertRaisesRegex(baton.Error, "others may read it"):
                        baton.KeyFile(files["admin"])
            finally:
                agent.stop()
                agent.stop()
                served.join(30)


class Texts(unittest.TestCase):
    def test_doctests_and_old_syntax(self):
        found = doctest.testmod(baton)
        self.assertEqual(found.failed, 0)
        self.assertGreaterEqual(found.attempted, 8)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("baton.py", "baton-agent-check", "baton-agent-faulty"):
                py_compile.compile(str(SDK / name), cfile=os.path.join(folder, name), doraise=True)
                compile(SDK.joinpath(name).read_text(), name, "exec")

    def test_msgpack_survives_damage(self):
        whole = baton._pack({"a": [1, -5, 1 << 40, 2.5, None, True, "é" * 40], "b": {"c": b"raw"}})
        for end in range(len(whole)):
            with self.assertRaises(ValueError):
                baton._unpack(whole[:end])
        with self.assertRaises(ValueError):
            baton._unpack(b"\x91" * 100000)
        with self.assertRaises(ValueError):
            baton._unpack(whole + b"\0")

    def test_mistakes_of_the_command_line_are_sentences(self):
        skill = "@agent.skill\ndef greet(name: str):\n    'Greets.'\n    return name\n"
        for skills, stdin, said in (("", "{}", "the agent has no skill; put @agent.skill above a function"),
                                    (skill, "hello", "--once reads a step from stdin, such as {\"parameters\": {}}: Expecting value"),
                                    (skill, "[]", "expected a JSON object, got []"),
                                    (skill.replace("greet", "bow"), "{}", "--once: there is no skill 'greet'; it has bow")):
            with tempfile.TemporaryDirectory() as where:
                program = pathlib.Path(where, "agent.py")
                program.write_text("import baton\nagent = baton.Agent('greeter')\n%sagent.run()\n" % skills)
                done = subprocess.run([sys.executable, "-B", str(program), "--once", "greet"], input=stdin, capture_output=True, text=True, timeout=60,
                                      env={**os.environ, "PYTHONPATH": str(ROOT / "agents" / "python")})
                self.assertEqual((done.returncode, done.stderr.count("\n"), said in done.stderr), (2, 1, True), done.stderr)

    def test_newcomers_clock(self):
        """The first page, and the one of baton.py: at most 3 commands and 12 lines of Python; they work."""
        for page in (ROOT / "README.md", SDK / "README.md"):
            with self.subTest(page):
                self.run_clock(page.read_text())

    def run_clock(self, page):
        blocks = re.findall(r"(?m)(?:^ {4}.*\n|^\n(?= {4}))+", page)
        code = next(b for b in blocks if "import baton" in b)
        commands = [c.strip() for c in next(b for b in blocks if "apt-get install" in b).strip().splitlines()]
        lines = "\n".join(line[4:] for line in code.splitlines()).strip("\n").splitlines()
        self.assertLessEqual(len(lines), 12)
        self.assertLessEqual(len(commands), 3)
        with tempfile.TemporaryDirectory(prefix="baton-e2e-") as home:
            with open(os.path.join(home, "greeter.py"), "w") as f:
                f.write("\n".join(lines) + "\n")
            env = {**os.environ, "HOME": home, "PATH": "%s:%s" % (BIN, os.environ["PATH"]), "PYTHONPATH": str(SDK), "PYTHONDONTWRITEBYTECODE": "1"}
            for name in ("BATON_STATE", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "BATON_BIN"):
                env.pop(name, None)
            self.assertTrue(commands[0].startswith("sudo apt-get install "))  # tests/package does this one
            agent = subprocess.Popen([sys.executable, *shlex.split(commands[1].rstrip("&"))[1:]], cwd=home, env=env, stderr=subprocess.PIPE, text=True)
            try:
                for line in agent.stderr:
                    if "is registered" in line:
                        break
                done = subprocess.run(shlex.split(commands[2]), cwd=home, env=env, capture_output=True, text=True, timeout=120)
                self.assertIn("Hello, world!", done.stdout, done.stderr)
                agent.send_signal(signal.SIGTERM)
                agent.stderr.read()
                self.assertEqual(agent.wait(30), 0)
            finally:
                if agent.poll() is None:
                    agent.kill()
                    agent.wait()
                agent.stderr.close()
                subprocess.run([BIN / "baton", "down"], cwd=home, env=env, capture_output=True, timeout=60)


if __name__ == "__main__":
    assert HERE
    main()
