#!/usr/bin/env python3
"""baton-agent-mcp: servers of both eras from npm over both transports, and one that misbehaves."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from harness import BIN, ROOT, BatonTest, main, until

sys.path.insert(0, str(ROOT / "tests" / "peers"))
import peers  # noqa: E402

SERVER = ROOT / "tests/support/mcp_server.py"
MODERN = ROOT / "tests/peers/mcp.mjs"


class Mcp(BatonTest):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="baton-mcp-"))
        self.addCleanup(shutil.rmtree, self.dir)

    def run_agent(self, settings, *args, stdin="{}", env=None):
        path = self.dir / "settings.json"
        path.write_text(json.dumps(settings))
        return subprocess.run([BIN / "baton-agent-mcp", "--settings", path, *args], input=stdin, capture_output=True, text=True, timeout=60, env={**os.environ, **(env or {})})

    def once(self, settings, skill, parameters=None):
        done = self.run_agent(settings, "--once", skill, stdin=json.dumps({"task": "t", "parameters": parameters or {}}))
        self.assertTrue(done.stdout.strip(), done.stderr)
        return json.loads(done.stdout)

    def result(self, *args):
        reply = self.once(*args)
        self.assertEqual(reply["outcome"], "completed", reply)
        return reply["result"]

    def failure(self, *args):
        reply = self.once(*args)
        self.assertEqual(reply["outcome"], "failed", reply)
        return reply["failure"]

    def skills(self, settings):
        done = self.run_agent(settings, "--card")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {s["id"]: s for s in json.loads(done.stdout)["skills"]}


class Peers(Mcp):
    def npm(self, package, *args):
        peers.need(package)
        return {"command": ["node", str(peers.DIR / "node_modules" / package / "dist/index.js"), *map(str, args)]}

    def modern(self, how):
        peers.need("@modelcontextprotocol/server")
        return ["node", str(MODERN), str(peers.DIR), how]

    def serve(self, command, env=None):
        """A server over HTTP until the test ends; its first line, which has its port."""
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **(env or {})})
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdin.close(), process.stdout.close()))
        return process

    def test_a_server_of_the_new_era_over_stdio_and_http(self):
        port = self.serve(self.modern("http")).stdout.readline().strip()
        for settings in ({"command": self.modern("stdio")}, {"url": "http://127.0.0.1:%s/mcp" % port, "allowPrivate": ["127.0.0.1"]}):
            skills = self.skills(settings)
            self.assertEqual((sorted(skills), skills["add"]["effects"], skills["login"]["effects"]), (["add", "login", "mcp.read", "mcp.resources"], "none", "unsafe"))
            self.assertEqual(self.result(settings, "add", {"a": 2, "b": 3}), {"text": "5", "data": {"sum": 5}})
            self.assertEqual(self.failure(settings, "add", {"a": "x", "b": 3})["class"], "VALIDATION_ERROR")
            asked = self.once(settings, "login", {"greeting": "Hello"})
            self.assertEqual((asked["outcome"], asked["need"]["prompt"]), ("needs_input", "Who are you?"))
            self.assertEqual(self.result(settings, "login", {"greeting": "Hello", "mcp_answers": {"who": {"name": "Ada"}}}), {"text": "Hello, Ada"})
            self.assertEqual(self.result(settings, "mcp.read", {"uri": "note://one"}), {"text": "the note"})
            self.assertEqual([r["uri"] for r in self.result(settings, "mcp.resources")["data"]["resources"]], ["note://one"])

    def everything(self, settings):
        skills = self.skills(settings)
        self.assertIn("get-sum", skills)
        self.assertEqual(self.result(settings, "get-sum", {"a": 2, "b": 3})["text"], "The sum of 2 and 3 is 5.")
        weather = self.result(settings, "get-structured-content", {"location": "Chicago"})
        self.assertIn("temperature", weather["data"])
        self.assertEqual(self.failure(settings, "get-sum", {"a": "x", "b": 1})["class"], "VALIDATION_ERROR")
        image = self.result(settings, "get-tiny-image")
        self.assertIn("image", [c["type"] for c in image["data"]["content"]])
        self.assertEqual(self.result(settings, "trigger-long-running-operation", {"duration": 1, "steps": 2})["text"][:14], "Long running o")

    def test_server_everything_over_stdio(self):
        self.everything(self.npm("@modelcontextprotocol/server-everything"))

    def test_server_everything_over_streamable_http(self):
        command = self.npm("@modelcontextprotocol/server-everything", "streamableHttp")["command"]
        with __import__("socket").socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        process = self.serve(command, {"PORT": str(port)})
        while "listening on port" not in process.stdout.readline():
            self.assertIsNone(process.poll())
        self.everything({"url": "http://127.0.0.1:%d/mcp" % port, "allowPrivate": ["127.0.0.1"]})

    def test_server_filesystem_reads_and_lists(self):
        (self.dir / "files").mkdir()
        (self.dir / "files/a.txt").write_text("hello")
        settings = {**self.npm("@modelcontextprotocol/server-filesystem", self.dir / "files"), "tools": ["read_text_file", "list_*"]}
        skills = self.skills(settings)
        self.assertEqual((skills["read_text_file"]["effects"], "write_file" in skills), ("none", False))
        self.assertEqual(self.result(settings, "read_text_file", {"path": str(self.dir / "files/a.txt")})["text"], "hello")
        self.assertIn("a.txt", self.result(settings, "list_directory", {"path": str(self.dir / "files")})["text"])
        self.assertIn("the tool failed", self.failure(settings, "read_text_file", {"path": "/etc/passwd"})["message"])


class Script(Mcp):
    def settings(self, *names, listed=None, **more):
        spec = self.dir / "spec.json"
        spec.write_text(json.dumps({"log": str(self.dir / "log"), "list": listed or {}, "tools": [
            {"name": n, "description": "Does %s." % n, "inputSchema": {"type": "object", "additionalProperties": False, "properties": {"x": {"type": "integer"}}}} for n in names]}))
        return {"command": [sys.executable, "-B", str(SERVER), str(spec)], "timeoutMs": 20000, **more}

    def received(self, method=None):
        lines = [json.loads(x) for x in (self.dir / "log").read_text().splitlines()]
        return [m for m in lines if method is None or m.get("method") == method]


class Scripted(Script):
    def test_tools_of_all_pages_become_skills_and_too_many_are_named(self):
        names = ["t%d" % i for i in range(62)]
        self.assertEqual(len(self.skills(self.settings(*names))), 62)
        self.assertEqual([json.loads(self.run_agent(self.settings("a", **more), "--card").stdout)["agentId"] for more in ({}, {"agentId": "tools"})], ["mcp", "tools"])
        done = self.run_agent(self.settings(*names, "t62"), "--card")
        self.assertEqual((done.returncode, "more than 62 tools; choose some" in done.stderr), (2, True), done.stderr)
        self.assertEqual(sorted(self.skills(self.settings(*names, "t62", tools=["t1*", "t6"]))), sorted(["t1", "t6", *["t1%d" % i for i in range(10)]]))
        done = self.run_agent(self.settings("a", tools=["b"]), "--card")
        self.assertIn("no tool that fits", done.stderr)

    def test_a_list_that_is_none_or_does_not_end_is_refused(self):
        for listed, said in (({"tools": {}}, "the answer has no list of tools"), ({"tools": None}, "the answer has no list of tools"),
                             ({"tools": [], "nextCursor": "7"}, "the pages do not end"), ({"tools": [], "nextCursor": "7" * 1024}, "the pages do not end"),
                             ({"tools": [{"description": "d"}]}, "a tool without a name")):
            done = self.run_agent(self.settings("a", listed=listed), "--card")
            self.assertEqual((done.returncode, said in done.stderr), (2, True), done.stderr)
        self.assertLess(len(self.received("tools/list")), 60)

    def test_arguments_and_a_small_environment_arrive(self):
        got = json.loads(self.result(self.settings("any", env={"MY": "1"}, passEnv=["HOME"]), "any", {"x": 5})["text"])
        self.assertEqual((got["arguments"], got["env"]["MY"]), ({"x": 5}, "1"))
        self.assertNotIn("BATON_STATE", got["env"])
        self.assertLess(len(got["env"]), 12)

    def test_what_a_tool_says_of_a_failure(self):
        s = self.settings("fails", "error", effects={"fa*": "none"})
        f = self.failure(s, "fails")
        self.assertEqual((f["class"], f["retryable"], f["message"]), ("UNKNOWN", True, "the tool failed: it broke"))
        f = self.failure(s, "error")
        self.assertEqual((f["class"], "wrong arguments" in f["message"]), ("VALIDATION_ERROR", True))

    def test_garbage_between_messages_is_left_out(self):
        self.assertEqual(self.result(self.settings("garbage"), "garbage")["text"], "after garbage")

    def test_a_model_is_refused_and_images_are_kept(self):
        s = self.settings("samples", "image")
        self.assertEqual(self.result(s, "samples")["text"], "the client said -32601")
        self.assertEqual(self.result(s, "image"), {"text": "look", "data": {"content": [{"type": "text", "text": "look"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]}})

    def test_a_tool_that_hangs_is_cancelled_at_its_time(self):
        f = self.failure(self.settings("hang", timeoutMs=1200), "hang")
        self.assertEqual((f["class"], f["retryable"]), ("TIMEOUT", False))
        cancelled = self.received("notifications/cancelled")
        self.assertEqual([c["params"]["requestId"] for c in cancelled], [self.received("tools/call")[0]["id"]])

    def test_settings_that_are_wrong_are_named(self):
        for settings, said in (({}, "give one of command"), ({"command": ["/no/such/program"]}, "no such program"), ({"command": ["true"], "url": "http://127.0.0.1"}, "give one of command"),
                               ({"command": ["true"], "tols": []}, "did you mean 'tools'"), ({"command": ["true"]}, "initialize"), ({"url": "http://example.org"}, "allowHttp"),
                               ({"command": ["true"], "effects": {"a": "some"}}, "effects.a: expected one of")):
            done = self.run_agent(settings, "--card")
            self.assertEqual((done.returncode, said in done.stderr), (2, True), done.stderr)


class Plans(Script):
    def start(self, *names, **more):
        s = self.settings(*names, **more)
        return self.daemon(config="agents:\n  - {agentId: tools, command: ['%s/baton-agent-mcp'], settings: %s}\npolicy: {maxRetries: 3}\n" % (BIN, json.dumps(s)))

    def step(self, skill, **more):
        return {"steps": [{"stepId": "a", "agentId": "tools", "skill": skill, "task": "Do it", **more}]}

    def test_a_question_of_the_server_goes_to_a_person(self):
        d = self.start("asks", effects={"*": "idempotent"})
        plan = d.submit(self.step("asks"))
        review = until(lambda: d.ask("review.list").get("reviews"), 20, "a review")[0]
        self.assertIn("Which year?", json.dumps(review))
        for wrong in ('{"mcp_answers": {"answer": {"year": "x"}}}', '{"mcp_answers": {}}', '{"mcp_answers": {"other": {"year": 1984}}}'):
            bad = d.cli_any("approve", review["reviewId"], "--edit", wrong)
            self.assertNotEqual(bad.returncode, 0, bad)
        d.cli("approve", review["reviewId"], "--edit", '{"mcp_answers": {"answer": {"year": 1984}}}')
        self.assertEqual(d.wait_plan(plan)["status"], "completed")
        self.assertEqual(d.cli("result", plan, "a").strip(), "the year is 1984")

    def test_progress_reaches_the_bus_and_cancel_the_server(self):
        d = self.start("progress", "hang")
        plan = d.submit(self.step("progress"))
        d.wait_plan(plan)
        texts = [e for e in d.events(plan) if e["type"] == "plan_step_progress"]
        self.assertIn("part 1", json.dumps(texts))
        plan = d.submit(self.step("hang"))
        until(lambda: [m for m in self.received("tools/call") if m["params"]["name"] == "hang"], 10, "the call")
        d.cli("cancel", plan)
        until(lambda: self.received("notifications/cancelled"), 10, "the note")
        self.assertEqual(d.wait_plan(plan)["status"], "cancelled")

    def test_a_server_that_dies_is_started_again(self):
        d = self.start("crash", "any", effects={"any": "none"})
        view = d.wait_plan(d.submit({**self.step("crash"), "policy": {"maxRetries": 0}}))
        self.assertEqual(view["status"], "failed")
        began = time.monotonic()
        self.assertEqual(d.wait_plan(d.submit(self.step("any")))["status"], "completed")
        self.assertLess(time.monotonic() - began, 20)
        self.assertEqual(len(self.received("initialize")), 2)

    def test_a_list_that_changed_is_read_again(self):
        d = self.start("changes", effects={"*": "none"})
        self.settings("changes", "new", effects={"*": "none"})
        d.wait_plan(d.submit(self.step("changes")))
        until(lambda: "new" in d.cli("agents", "tools"), 20, "the new skill")


if __name__ == "__main__":
    main()
