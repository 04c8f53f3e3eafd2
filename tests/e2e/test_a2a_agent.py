#!/usr/bin/env python3
"""baton-agent-a2a: agents made with @a2a-js/sdk in both versions, streaming and not, and one that misbehaves."""
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request

from harness import BIN, ROOT, BatonTest, main, until

sys.path.insert(0, str(ROOT / "tests" / "peers"))
import peers  # noqa: E402

KEY = "bearer-of-the-test-0123456789"


class A2a(BatonTest):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="baton-a2a-"))
        self.addCleanup(shutil.rmtree, self.dir)

    def run_agent(self, settings, *args, stdin="{}", env=None):
        return subprocess.run([BIN / "baton-agent-a2a", *args], input=stdin, capture_output=True, text=True, timeout=60,
                              env={**os.environ, "BATON_SETTINGS": json.dumps(settings), **(env or {})})

    def once(self, settings, message, skill="do_it", env=None, **parameters):
        done = self.run_agent(settings, "--once", skill, stdin=json.dumps({"task": "t", "parameters": {"message": message, **parameters}}), env=env)
        self.assertTrue(done.stdout.strip(), done.stderr)
        return json.loads(done.stdout)

    def here(self, port, **more):
        return {"url": "http://127.0.0.1:%d" % port, "allowPrivate": ["127.0.0.1"], **more}


class Peers(A2a):
    def serve(self, version, how):
        peers.need("@a2a-js/sdk")
        if int(subprocess.run(["node", "-p", "process.versions.node.split('.')[0]"], capture_output=True, text=True).stdout) < 20:
            self.skipTest("SKIPPED: @a2a-js/sdk needs node 20")
        process = subprocess.Popen(["node", ROOT / "tests/peers/a2a.mjs", str(peers.DIR), version, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdin.close(), process.stdout.close()))
        line = process.stdout.readline().strip()
        self.assertTrue(line.isdigit(), line + process.stdout.read() if not line.isdigit() else "")
        return int(line)

    def seen(self, port):
        with urllib.request.urlopen("http://127.0.0.1:%d/seen" % port, timeout=30) as answer:
            return json.load(answer)

    def each(self):
        for version in ("1.0", "0.3"):
            for how in ("streaming", "blocking"):
                with self.subTest(version=version, how=how):
                    yield self.serve(version, how)

    def test_both_versions_with_a_stream_and_without(self):
        for port in self.each():
            settings = self.here(port)
            card = json.loads(self.run_agent(settings, "--card").stdout)
            self.assertEqual([(s["id"], s["name"], s["effects"], s["tags"]) for s in card["skills"]], [("do_it", "Do it", "unsafe", ["test"])])
            answer = self.once(settings, "echo hello", data={"n": [1]})
            self.assertEqual((answer["outcome"], answer["result"]["text"], answer["result"]["data"]), ("completed", "hello, again", {"got": {"n": [1]}}))
            self.assertEqual(self.once(settings, "message")["result"]["text"], "a plain answer")
            for word, kind, words in (("fail because", "UNKNOWN", "failed: because"), ("reject no", "VALIDATION_ERROR", "rejected the task: no"),
                                      ("auth key", "PERMISSION_DENIED", "credential of its own: key")):
                failure = self.once(settings, word)["failure"]
                self.assertEqual((failure["class"], failure["retryable"]), (kind, False))
                self.assertIn(words, failure["message"])
            asked = self.once(settings, "ask")
            self.assertEqual((asked["outcome"], asked["need"]["prompt"], asked["need"]["schema"]["required"]),
                             ("needs_input", "Which colour?", ["a2a_answer"]))
            self.assertEqual({m["skill"] for m in self.seen(port)["messages"]}, {"do it"})

    def test_a_question_goes_to_a_person_and_the_answer_to_the_same_task(self):
        for port in self.each():
            d = self.up(self.here(port))
            plan = d.submit({"steps": [{"stepId": "s", "agentId": "peer", "skill": "do_it", "task": "Ask for a colour", "parameters": {"message": "ask"},
                                        "dependsOn": []}]})
            review = until(lambda: next(iter(d.ask("review.list", planId=plan)["reviews"]), None), 30, "a review")
            self.assertEqual(review["prompt"], "Which colour?")
            d.cli("approve", review["reviewId"], "--edit", json.dumps({"a2a_answer": "red"}))
            d.wait_plan(plan)
            self.assertEqual(d.cli("result", plan, "s").strip(), "You chose red")
            first, second = self.seen(port)["messages"]
            self.assertEqual((first["taskId"], first["contextId"]), (second["taskId"], second["contextId"]))
            self.assertNotEqual(first["id"], second["id"])
            d.stop()

    def up(self, settings):
        path = self.dir / "settings.json"
        path.write_text(json.dumps({**settings, "agentId": "peer"}))
        return self.daemon(config="agents:\n  - agentId: peer\n    command: [%s/baton-agent-a2a, --settings, %s]\n" % (BIN, path))

    def test_a_cancel_reaches_the_agent_and_files_become_artifacts(self):
        for port in self.each():
            d = self.up(self.here(port))
            step = {"stepId": "s", "agentId": "peer", "skill": "do_it", "task": "Work slowly", "parameters": {"message": "slow"}, "dependsOn": []}
            if self.streams(port):
                plan = d.submit({"steps": [step]})
                until(lambda: self.seen(port)["messages"], 30, "the agent has it")
                d.ask("plan.cancel", planId=plan)
                task = self.seen(port)["messages"][0]["taskId"]
                until(lambda: self.seen(port)["cancelled"] == [task], 30, "the agent was told")
            plan = d.submit({"steps": [{**step, "parameters": {"message": "file"}}]})
            d.wait_plan(plan)
            self.assertEqual(d.cli("result", plan, "s", "--artifact", "table_one.csv"), "a,b\n1,2\n")
            shown = json.loads(d.cli("result", plan, "s", "--json"))["result"]
            self.assertEqual([(a["name"], a.get("mediaType")) for a in shown["artifacts"]], [("table_one.csv", "text/csv"), ("x.pdf", "application/pdf")])
            self.assertEqual(shown["artifacts"][1]["uri"], "https://example.com/x.pdf")
            d.stop()

    def streams(self, port):
        with urllib.request.urlopen("http://127.0.0.1:%d/.well-known/agent-card.json" % port, timeout=30) as answer:
            return json.load(answer)["capabilities"]["streaming"]


class Odd(http.server.BaseHTTPRequestHandler):
    """An agent of 1.0 whose behaviour is the class's."""
    card, calls, mode = {}, [], ""

    def log_message(self, *args):
        pass

    def answer(self, status, body, kind="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        type(self).calls.append((self.path, self.headers.get("Authorization"), None))
        if self.path == "/.well-known/agent-card.json" and self.card is not None:
            return self.answer(200, self.card)
        self.answer(404, {})

    def task(self, state, **more):
        return {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_" + state}, **more}

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).calls.append((self.path, self.headers.get("Authorization"), body))

        def result(r):
            return {"jsonrpc": "2.0", "id": 1, "result": r}

        def event(r):
            return b"data: " + json.dumps(result(r)).encode() + b"\r\n\r\n"

        done = self.task("COMPLETED", artifacts=[{"artifactId": "a", "parts": [{"text": "fin\u00e9"}]}])
        if body["method"] == "GetTask":
            polls = sum(c[2] is not None and c[2]["method"] == "GetTask" for c in self.calls)
            return self.answer(200, result(done if polls >= 2 else self.task("WORKING")))
        if body["method"] == "CancelTask":
            return self.answer(200, result(self.task("CANCELED")))
        if self.mode == "cut":  # the stream breaks in the middle of an event
            return self.answer(200, b": hello\r\n\r\n" + event({"task": self.task("WORKING")}) + event({"task": done})[:40], "text/event-stream")
        if self.mode == "late":  # an agent that answers before the end although it was not asked to
            return self.answer(200, result({"task": self.task("WORKING")}))
        if self.mode == "hangs":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(event({"task": self.task("WORKING")}))
            self.wfile.flush()
            self.server.release.wait(60)
            return None
        answers = {"error": {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no message " + KEY}},
                   "method": {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "unknown"}}, "nothing": {}, "list": [],
                   "state": result({"task": self.task("DREAMING")}), "part": result({"task": self.task("COMPLETED", artifacts=[
                       {"artifactId": "a", "parts": [{"weight": 3}]}])}), "raw": result({"task": self.task("COMPLETED", artifacts=[
                           {"artifactId": "a", "parts": [{"raw": "no base64!", "filename": "x"}]}])}),
                   "many": result({"task": self.task("COMPLETED", artifacts=[{"artifactId": str(i), "parts": [{"text": "x"}]} for i in range(65)])}),
                   "edge": result({"task": self.task("COMPLETED", artifacts=[{"artifactId": str(i), "parts": [{"text": "x"}]} for i in range(64)])})}
        if self.mode == "html":
            return self.answer(200, b"<html>no</html>", "text/html")
        if self.mode.isdigit():
            return self.answer(int(self.mode), {"reason": KEY + " is why"})
        return self.answer(200, answers[self.mode])


class Misbehaving(A2a):
    def setUp(self):
        super().setUp()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd)
        self.server.release = threading.Event()
        self.server.daemon_threads = True
        thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(lambda: (self.server.release.set(), self.server.shutdown(), self.server.server_close(), thread.join()))
        port = self.server.server_port
        Odd.calls, Odd.mode = [], "edge"
        Odd.card = {"name": "odd", "description": "d", "version": "1", "capabilities": {"streaming": True}, "skills": [{"id": "do_it", "name": "x", "description": "x"}],
                    "supportedInterfaces": [{"url": "http://127.0.0.1:%d/rpc" % port, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}
        self.settings = self.here(port, bearer={"env": "A2A_TEST_KEY"})
        self.env = {"A2A_TEST_KEY": KEY}

    def ask(self, mode, **more):
        Odd.mode, Odd.calls = mode, []
        return self.once({**self.settings, **more}, "x", env=self.env)

    def test_what_an_agent_may_send_is_checked(self):
        for mode, kind, words in (("error", "VALIDATION_ERROR", "error -32602: no message"), ("method", "PROTOCOL_ERROR", "error -32601"),
                                  ("nothing", "PROTOCOL_ERROR", "no JSON-RPC"), ("list", "PROTOCOL_ERROR", "no JSON-RPC"), ("html", "PROTOCOL_ERROR", ""),
                                  ("state", "PROTOCOL_ERROR", "a state that A2A has not: 'TASK_STATE_DREAMING'"), ("part", "PROTOCOL_ERROR", "a part without text"),
                                  ("raw", "VALIDATION_ERROR", "not base64"), ("many", "VALIDATION_ERROR", "more than 64 artifacts"),
                                  ("401", "PERMISSION_DENIED", "status 401"), ("404", "PROTOCOL_ERROR", "status 404"), ("500", "SERVICE_UNAVAILABLE", "status 500"),
                                  ("429", "SERVICE_UNAVAILABLE", "status 429")):
            with self.subTest(mode):
                failure = self.ask(mode)["failure"]
                self.assertEqual(failure["class"], kind, failure)
                self.assertIn(words, failure["message"])
                self.assertNotIn(KEY, json.dumps(failure))
                self.assertFalse(failure["retryable"], "an unsafe skill may have had its effects")
        self.assertEqual(self.ask("edge")["result"]["text"].count("x"), 64)
        cards = [json.loads(self.run_agent({**self.settings, **more}, "--card", env=self.env).stdout) for more in ({}, {"agentId": "peer"})]
        self.assertEqual([c["agentId"] for c in cards], ["a2a", "peer"])
        self.assertEqual({c[1] for c in Odd.calls}, {"Bearer " + KEY})
        self.assertTrue(self.ask("500", effects={"do*": "idempotent"})["failure"]["retryable"])

    def test_a_broken_stream_is_made_up_for_by_asking(self):
        for mode in ("cut", "late"):
            self.assertEqual(self.ask(mode)["result"]["text"], "fin\u00e9", mode)
            methods = [c[2]["method"] for c in Odd.calls if c[2]]
            self.assertEqual(methods, ["SendStreamingMessage", "GetTask", "GetTask"], "the message was sent once")

    def test_a_task_that_hangs_is_cancelled_at_its_time(self):
        failure = self.ask("hangs", timeoutMs=700)["failure"]
        self.assertEqual((failure["class"], failure["retryable"]), ("TIMEOUT", False))
        self.assertIn("whether it took effect is not known", failure["message"])
        self.assertEqual([c[2]["params"] for c in Odd.calls if c[2] and c[2]["method"] == "CancelTask"], [{"id": "t1"}])

    def test_cards_and_settings_that_are_wrong_are_named(self):
        good = Odd.card
        for card, words in (({**good, "skills": []}, "no skill"), ({**good, "supportedInterfaces": []}, "no interface of JSON-RPC"),
                            ({**good, "supportedInterfaces": [{"url": "x", "protocolBinding": "GRPC", "protocolVersion": "1.0"}]}, "no interface of JSON-RPC"),
                            ({**good, "supportedInterfaces": [{**good["supportedInterfaces"][0], "url": "http://10.0.0.1/x"}]}, "10.0.0.1"),
                            ({**good, "skills": [{"name": "x"}]}, "no id"), (None, "has no card"), ([], "no interface")):
            Odd.card = card
            done = self.run_agent(self.settings, "--card", env=self.env)
            self.assertNotEqual(done.returncode, 0, card)
            self.assertIn(words, done.stderr)
        Odd.card = good
        for change, words in (({"url": None}, "url"), ({"url": "ftp://x"}, "url"), ({"skills": ["other"]}, "no skill that fits skills"),
                              ({"effects": {"x": "maybe"}}, "effects.x"), ({"timeoutMs": 0}, "timeoutMs"), ({"uri": "x"}, "did you mean 'url'?"),
                              ({"allowPrivate": None}, "list it in allowPrivate"), ({"bearer": "literal"}, "bearer")):
            settings = {k: v for k, v in {**self.settings, **change}.items() if v is not None}
            done = self.run_agent(settings, "--card", env=self.env)
            self.assertNotEqual(done.returncode, 0, change)
            self.assertIn(words, done.stderr, change)


if __name__ == "__main__":
    main()
