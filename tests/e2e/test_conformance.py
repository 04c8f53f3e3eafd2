#!/usr/bin/env python3
"""baton-agent-check: the agents of this tree hold every rule of the wire protocol; an agent that breaks one is found by that rule."""
import concurrent.futures
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

from harness import BIN, HERE, ROOT, main
import mock_llm

SLOW = 0.8
# What every flaw is checked with beside its own rule; BATON_CHECK_ALL=1 takes all rules.
NEIGHBOURS = ["hello", "execute", "query"]
# A flaw that is the same to two rules.
ALSO = {"lane-lost": {"restart-running"}, "bundle": {"bundle-full", "bundle-lost"}}
PYTHON = [sys.executable]
# A copy: compiled once for all of the processes, outside of the tree.
FOLDER = tempfile.TemporaryDirectory(prefix="baton-e2e-")
SDK = pathlib.Path(shutil.copytree(ROOT / "agents" / "python", os.path.join(FOLDER.name, "sdk")))
CHECK = SDK / "baton-agent-check"
os.environ["BATON_SDK"] = str(SDK)


def run(*command, options=(), env=None):
    done = subprocess.run([*PYTHON, CHECK, "--json", "--timeout", "30", "--start-timeout", "60", *options, "--", *map(str, command)],
                          capture_output=True, text=True, timeout=600, env={**os.environ, **(env or {})})
    if done.returncode not in (0, 1):
        raise AssertionError("baton-agent-check: exit %d\n%s\n%s" % (done.returncode, done.stdout, done.stderr))
    return json.loads(done.stdout), done.returncode


def of(report, result):
    return {r["rule"]: r.get("message", "") for r in report["rules"] if r["result"] == result}


def rules():
    listed = subprocess.run([*PYTHON, CHECK, "--list"], capture_output=True, text=True, timeout=60, check=True).stdout
    return [line.split()[0] for line in listed.splitlines()]


class Service(http.server.BaseHTTPRequestHandler):
    """What the agents of http and a2a stand for: an API with one item, and an agent that takes its time when it is asked slowly."""
    never = threading.Event()

    def log_message(self, *args):
        pass

    def answer(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if "slowly" in self.path:
            self.never.wait(SLOW)
        url = "http://127.0.0.1:%d/rpc" % self.server.server_port
        self.answer({"name": "partner", "description": "d", "version": "1", "capabilities": {}, "skills": [{"id": "do_it", "name": "x", "description": "x"}],
                     "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "slowly" in json.dumps(asked):
            self.never.wait(SLOW)
        task = {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [{"artifactId": "a", "parts": [{"text": "done"}]}]}
        self.answer({"jsonrpc": "2.0", "id": asked["id"], "result": task if asked["method"] != "SendMessage" else {"task": task}})


class Conformance(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="baton-e2e-")
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)

    def service(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(lambda: (server.shutdown(), server.server_close(), thread.join()))
        return server.server_port

    def settings(self, name, **settings):
        path = self.work / (name + ".json")
        path.write_text(json.dumps(settings))
        return ["--settings", path]

    def exec_settings(self):
        return self.settings("exec", agentId="exec", commands=[
            {"id": "echo", "argv": ["echo", "{text}"], "description": "Says a text.", "output": "text", "effects": "idempotent"},
            {"id": "wait", "argv": [str(HERE / "slow.sh"), str(self.work / "log"), "x", "{seconds}"], "description": "Takes a while.",
             "output": "text", "effects": "idempotent"}])

    def shipped(self):
        """name: (command, options, how many rules may be skipped)."""
        slow = ["--slow-skill", "wait", "--slow-param", "seconds=%s" % SLOW, "--slow-seconds", str(SLOW)]
        (self.work / "db").mkdir()
        (self.work / "a.txt").write_text("one\ntwo\n")
        brain = threading_brain()
        mock = mock_llm.Mock(brain)
        self.addCleanup(mock.close)
        llm = self.settings("llm", agentId="llm", providers=[{"api": "openai", "baseUrl": mock.url("ok", "/v1"), "model": "m", "backoffMs": 1}])
        chat = ["--skill", "chat", "--param", "prompt=hello", "--slow-skill", "chat", "--slow-param", "prompt=slowly", "--slow-seconds", str(SLOW)]
        port = self.service()
        local = {"allowPrivate": ["127.0.0.1"]}
        desk = self.settings("http", agentId="http", baseUrl="http://127.0.0.1:%d" % port, **local, actions=[
            {"id": "get", "description": "Gets an item.", "path": "/items/{id}"}])
        partner = self.settings("a2a", agentId="a2a", url="http://127.0.0.1:%d" % port, effects={"*": "none"}, **local)
        tools = self.work / "tools.json"
        tools.write_text(json.dumps({"log": str(self.work / "tools.log"), "tools": [{"name": "env", "inputSchema": {"type": "object"}}]}))
        mcp = self.settings("mcp", agentId="mcp", command=[sys.executable, "-B", str(ROOT / "tests/support/mcp_server.py"), str(tools)])
        echo = ["--skill", "echo", "--param", "text=hi", *slow]
        return {
            "exec": ([BIN / "baton-agent-exec", *self.exec_settings()], echo, 0),
            "exec that dials in": ([BIN / "baton-agent-exec", "--dial-in", *self.exec_settings()], echo, 5),
            "a loop of its own": (["env", "BATON_AGENT_ID=eventloop", BIN.parent / "tests/example_eventloop"],
                                  ["--skill", "greet", "--param", "name=Ada", *slow], 0),
            "quick skills": (["env", "BATON_AGENT_ID=probe", BIN.parent / "tests/probe_quick", "--capacity", "8"],
                             ["--skill", "echo", "--param", "text=hi", "--slow-skill", "work", "--slow-param", "ms=%d" % (SLOW * 1000),
                              "--slow-seconds", str(SLOW)], 0),
            "calc": (["env", "BATON_AGENT_ID=calc", BIN / "baton-agent-calc"], ["--skill", "evaluate", "--param", "expression=1+2"], 12),
            "files": (["env", "BATON_AGENT_ID=files", BIN / "baton-agent-files", *self.settings("files", roots=[str(self.work)])],
                      ["--skill", "read", "--param", "path=%s" % (self.work / "a.txt")], 12),
            "sql": (["env", "BATON_AGENT_ID=sql", BIN / "baton-agent-sql", *self.settings("sql", databaseDir=str(self.work / "db"), readOnly=False)],
                    ["--skill", "query", "--param", "sql=select 1"], 15),
            "report": (["env", "BATON_AGENT_ID=report", BIN / "baton-agent-report"], ["--skill", "chart", "--param", "kind=bar", "--param", "values=a"], 15),
            "rag": (["env", "BATON_AGENT_ID=rag", BIN / "baton-agent-rag", *self.settings("rag", folder=str(self.work), database=str(self.work / "rag.db"))],
                    ["--skill", "index"], 15),
            "graph": (["env", "BATON_AGENT_ID=graph", BIN / "baton-agent-graph", *self.settings("graph", database=str(self.work / "graph.db"))],
                      ["--skill", "find"], 12),
            "http": ([BIN / "baton-agent-http", *desk], ["--skill", "get", "--param", "id=1", "--slow-skill", "get", "--slow-param", "id=slowly",
                                                         "--slow-seconds", str(SLOW)], 0),
            "a2a": ([BIN / "baton-agent-a2a", *partner], ["--skill", "do_it", "--param", "message=now", "--slow-skill", "do_it",
                                                         "--slow-param", "message=slowly", "--slow-seconds", str(SLOW)], 0),
            "mcp": ([BIN / "baton-agent-mcp", *mcp], ["--skill", "env"], 12),
            "llm": ([BIN / "baton-agent-llm", *llm], chat, 0),
            "python": ([*PYTHON, HERE / "broken.py", "none"], ["--skill", "greet", *slow], 4),
            "python that dials in": ([*PYTHON, HERE / "broken.py", "none", "--dial-in"], ["--skill", "greet", *slow], 8),
            "faulty, asked for no fault": ([*PYTHON, SDK / "baton-agent-faulty"], ["--skill", "work", *slow], 4),
        }

    def test_agents_of_this_tree_hold_every_rule(self):
        agents = self.shipped()
        with concurrent.futures.ThreadPoolExecutor(9) as pool:
            running = {name: pool.submit(run, *command, options=options) for name, (command, options, _) in agents.items()}
        for name, future in running.items():
            with self.subTest(agent=name):
                report, code = future.result()
                self.assertEqual((of(report, "fail"), code), ({}, 0))
                self.assertEqual([r["rule"] for r in report["rules"]], rules())
                self.assertLessEqual(len(of(report, "skip")), agents[name][2], of(report, "skip"))

    def test_a_broken_agent_fails_exactly_its_rule(self):
        slow = ["--slow-skill", "wait", "--slow-param", "seconds=%s" % SLOW, "--slow-seconds", str(SLOW), "--timeout", "10"]

        def checked(flaw):
            only = [] if os.environ.get("BATON_CHECK_ALL") else [x for name in {*NEIGHBOURS, flaw} for x in ("--only", name)]
            return run(*PYTHON, HERE / "broken.py", flaw, options=[*slow, *only])

        with concurrent.futures.ThreadPoolExecutor(9) as pool:
            running = {flaw: pool.submit(checked, flaw) for flaw in rules()}
        for flaw, future in running.items():
            with self.subTest(flaw=flaw):
                report, code = future.result()
                self.assertEqual((set(of(report, "fail")) - ALSO.get(flaw, set()), code), ({flaw}, 1), of(report, "fail"))

    def test_calls_of_a_skill_that_may_call_are_an_outcome_and_their_form_is_checked(self):
        only = ["--only", "execute", "--only", "repeat-done", "--only", "query"]
        report, code = run(*PYTHON, HERE / "broken.py", "none", options=["--skill", "look", *only])
        self.assertEqual((of(report, "fail"), code), ({}, 0))
        for flaw, options, why in (("calls", ["--skill", "greet"], "calls from skill 'greet', whose card has no tag x-baton-calls"),
                                   ("none", ["--skill", "look", "--param", "ids=a b a"], "calls[0].id: another call of the turn has it"),
                                   ("none", ["--skill", "look", "--param", "ids=a/b"], "calls[0].id: expected 1 to 64 of")):
            report, code = run(*PYTHON, HERE / "broken.py", flaw, options=[*options, "--only", "execute"])
            self.assertEqual(code, 1)
            self.assertIn(why, of(report, "fail")["execute"])

    def test_tap_and_exit_codes(self):
        command = [*PYTHON, CHECK, "--only", "hello", "--only", "lane-lost", "--", *PYTHON, HERE / "broken.py"]
        done = subprocess.run([*command, "none"], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout.splitlines()[0]), (0, "TAP version 13"), done.stderr)
        self.assertRegex(done.stdout, r"(?m)^ok 1 - hello: ")
        self.assertRegex(done.stdout, r"(?m)^ok 2 - lane-lost: .* # SKIP no step that lasts is named")
        self.assertIn("\n1..2\n", done.stdout)
        done = subprocess.run([*command, "hello"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^not ok 1 - hello: .*\n# lane\.hello: processId None")
        for wrong in (["--only", "no-such-rule", "true"], [], ["no-such-program-anywhere"]):
            self.assertEqual(subprocess.run([*PYTHON, CHECK, *wrong], capture_output=True, timeout=60).returncode, 2, wrong)
        done = subprocess.run([*PYTHON, CHECK, "--start-timeout", "20", "--", "sh", "-c", "echo no luck >&2; exit 4"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 1)
        self.assertIn("its process ended with 4", done.stdout)
        self.assertIn("# no luck", done.stdout)

    def test_an_agent_that_somebody_else_starts(self):
        state = self.work / "state"
        check = subprocess.Popen([*PYTHON, CHECK, "--json", "--state", state, "--only", "hello", "--only", "sigterm", "tcp://127.0.0.1:0"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn(str(state), check.stderr.readline())
        agent = subprocess.Popen([*PYTHON, HERE / "broken.py", "none"], env={**os.environ, "BATON_STATE": str(state)}, stderr=subprocess.DEVNULL)
        out = check.communicate(timeout=120)[0]
        agent.kill()
        agent.wait()
        report = json.loads(out)
        self.assertEqual((check.returncode, report["agent"], [r["result"] for r in report["rules"]]), (0, "broken", ["ok", "skip"]))


def threading_brain():
    """A model that takes its time when it is asked slowly."""
    never = threading.Event()

    def brain(asked):
        if "slowly" in str(asked["messages"]):
            never.wait(SLOW)
        return "hello"
    return brain


if __name__ == "__main__":
    main()
