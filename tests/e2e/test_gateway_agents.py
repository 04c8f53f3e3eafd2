#!/usr/bin/env python3
"""Agents over HTTP: curl alone, a real process, and what is left after kill -9 of agent, gateway and daemon (deploy/POLLING.md)."""
import base64
import collections
import hashlib
import http.client
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
import unittest
import urllib.parse

import gateway
from gateway import Gateway
from harness import ROOT, BatonTest, main, until
from test_gateway import key_of

CARD = {"agentId": "polling", "name": "Polling", "version": "1", "skills": [
    {"id": "shout", "description": "Converts a text to capitals.", "effects": "idempotent"}]}
AGENT = ROOT / "deploy/examples/agents/polling.py"
# The same agent, which writes down what it does, and takes its time.
WORK = """
def did(step):
    with open(os.environ["LOG"], "a") as f:
        f.write("%s %d\\n" % (step["stepId"], step["attempt"]))
    time.sleep(0.02)
    return step["parameters"]["text"].upper()


"""


def setUpModule():
    gateway.need()


def step(step_id, **more):
    return {"stepId": step_id, "agentId": "polling", "skill": "shout", "task": "shout", "parameters": {"text": step_id}, "dependsOn": [], **more}


class House(BatonTest):
    def house(self, *args, config=None):
        self.d = self.daemon(config=config) if config else self.daemon()
        self.g = Gateway(self, self.d, *args)

    def up(self, agent="polling", n=1):
        def instances():
            return sum(len([i for i in a.get("instances", []) if i["health"] == "healthy"]) for a in self.d.ask("agents.list")["agents"] if a["card"]["agentId"] == agent)
        until(lambda: instances() == n, 20, "%d instances of %s: %s" % (n, agent, self.g.log()))

    def register(self, bearer=None, **more):
        answer = self.g.ask("POST", "/v1/instances", {"card": CARD, **more}, bearer=bearer)
        self.assertEqual(answer.status, 201, answer)
        return "/v1/instances/" + answer.json["instanceId"]

    def poll(self, at, body=None, query="waitMs=10000", **more):
        answer = self.g.ask("POST", at + "/poll?" + query, body, **more)
        self.assertEqual(answer.status, 200, answer)
        return answer.json

    def result(self, at, s, **more):
        return self.g.ask("POST", at + "/result", {"key": s["key"], "attempt": s["attempt"], "result": {"text": "done"}, **more})


class Life(House):
    def test_curl_alone_is_an_agent(self):
        if shutil.which("curl") is None:
            self.skipTest("SKIPPED: there is no curl")
        self.house()

        def curl(method, path, body=None):
            out = subprocess.run(["curl", "-s", "-X", method, self.g.url + path, "-H", "Authorization: Bearer " + self.d.token(), "-H", "Content-Type: application/json",
                                  *(["-d", json.dumps(body)] if body is not None else [])], capture_output=True, text=True, timeout=60, check=True).stdout
            return json.loads(out)
        made = curl("POST", "/v1/instances", {"card": CARD})
        at = "/v1/instances/" + made["instanceId"]
        self.assertEqual((made["leaseMs"], made["heartbeatMs"]), (30000, 10000))
        plan = self.d.submit({"steps": [step("a"), step("b", dependsOn=["a"])]})
        for name in "ab":
            [s] = curl("POST", at + "/poll?waitMs=10000")["steps"]
            self.assertEqual((s["stepId"], s["skill"], s["parameters"], s["attempt"]), (name, "shout", {"text": name}, 1))
            self.assertNotIn("sessionKey", s)
            told = curl("POST", at + "/progress", {"key": s["key"], "attempt": 1, "percent": 50, "text": "half"})
            self.assertEqual((told["cancel"], told["drain"]), ([], False))
            self.assertEqual(curl("POST", at + "/heartbeat", {"inflight": [{"key": s["key"], "attempt": 1}]})["cancel"], [])
            self.assertEqual(curl("POST", at + "/result", {"key": s["key"], "attempt": 1, "result": {"text": name.upper()}}), {"accepted": True})
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertEqual(self.d.ask("plan.result", planId=plan, stepId="b")["result"]["text"], "B")
        types = collections.Counter(e["type"] for e in self.d.events(plan))
        self.assertEqual((types["plan_step_progress"], types["plan_step_completed"], types["result_rejected"]), (2, 2, 0), types)
        self.assertEqual(curl("POST", at + "/poll?waitMs=0"), {"steps": [], "cancel": [], "drain": False})
        self.assertEqual(curl("DELETE", at), {})
        self.assertEqual(curl("POST", at + "/poll")["status"], 404)
        self.up(n=0)

    def test_each_outcome_and_what_is_wrong(self):
        self.house()
        at = self.register()
        plan = self.d.submit({"steps": [step("a", maxRetries=1)]})
        [s] = self.poll(at)["steps"]
        bad = self.result(at, s, outcome="completed", result="text alone")
        self.assertEqual((bad.status, bad.json["field"]), (400, "result"), bad)
        failed = self.result(at, s, outcome="failed", result=None, failure={"code": "IO", "class": "SERVICE_UNAVAILABLE", "message": "later"})
        self.assertEqual((failed.status, failed.json), (200, {"accepted": True}), failed)
        [s2] = self.poll(at)["steps"]
        self.assertEqual((s2["attempt"], s2["key"]), (2, s["key"]))
        self.assertEqual(self.result(at, s2).json, {"accepted": True})
        again = self.result(at, s2)
        self.assertEqual((again.status, again.json["accepted"]), (200, False), again)
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        for path, body, status, field in (("/poll?waitMs=60001", None, 400, "waitMs"), ("/poll?max=17", None, 400, "max"), ("/poll", {"inflight": 3}, 400, "inflight"),
                                          ("/result", {"key": "x"}, 400, "attempt"), ("/nothing", {}, 404, None)):
            answer = self.g.ask("POST", at + path, body)
            self.assertEqual((answer.status, answer.json.get("field")), (status, field), (path, answer))
        for body, field in (({}, "card"), ({"card": CARD, "capacity": 0}, "capacity"), ({"card": CARD, "capacity": 65}, "capacity"), ({"card": CARD, "instanceId": "x"}, "instanceId"),
                            ({"card": CARD, "endpoint": "tcp://127.0.0.1:1"}, None), ({"card": {**CARD, "skills": [{"id": "!", "description": "x"}]}}, None)):
            answer = self.g.ask("POST", "/v1/instances", body)
            self.assertEqual((answer.status, answer.json.get("field")), (400, field), (body, answer))

    def test_a_cancel_reaches_the_agent_and_the_deadline_goes_on_while_a_step_waits(self):
        self.house()
        at = self.register()
        self.up()
        plan = self.d.submit({"steps": [step("a", stepTimeoutMs=60000)]})
        until(lambda: self.d.ask("plan.get", planId=plan)["steps"][0]["status"] == "in_progress", 10, "it is out")
        out = time.monotonic()
        until(lambda: time.monotonic() - out >= 0.5, 10, "the step has waited for 500 ms")
        [s] = self.poll(at)["steps"]
        self.assertLess(s["deadlineMs"], 60000)
        self.d.ask("plan.cancel", planId=plan, reason="enough")
        order = until(lambda: self.g.ask("POST", at + "/heartbeat", {"inflight": [{"key": s["key"], "attempt": 1}]}).json["cancel"], 10, "the order")
        self.assertEqual((order[0]["key"], order[0]["attempt"]), (s["key"], 1))
        self.assertEqual(self.result(at, s, outcome="failed", result=None, failure={"code": "CANCELLED", "class": "CANCELLED", "message": "stopped"}).status, 200)
        self.assertEqual(self.d.wait_plan(plan)["status"], "cancelled")
        # one that nobody had asked for ends without the agent
        plan = self.d.submit({"steps": [step("b")]})
        until(lambda: self.d.ask("plan.get", planId=plan)["steps"][0]["status"] == "in_progress", 10, "it is out")
        self.d.ask("plan.cancel", planId=plan)
        self.assertEqual(self.d.wait_plan(plan)["status"], "cancelled")
        self.assertEqual(self.poll(at, query="waitMs=0")["steps"], [])

    def test_an_agent_that_drains_gets_no_more(self):
        self.house()
        at = self.register()
        self.assertEqual(self.g.ask("POST", at + "/drain").status, 200)
        self.assertTrue(self.poll(at)["drain"])
        self.d.ask("agents.enable", agentId="polling")


class Files(House):
    """Files of results: an agent over HTTP sends and gets them in parts, as one on another host does over the wire."""
    PART, CAP = 512 * 1024, 64 * 1024 * 1024

    def put(self, at, s, **fields):
        return self.g.ask("POST", at + "/artifacts", {"key": s["key"], "attempt": s["attempt"], "name": "rows.bin", **fields})

    def part(self, at, s, data, offset):
        return self.put(at, s, offset=offset, bytes=base64.b64encode(data).decode())

    def get(self, at, s, uri, **fields):
        return self.g.ask("GET", at + "/artifacts?" + urllib.parse.urlencode({"key": s["key"], "attempt": s["attempt"], "uri": uri, **fields}))

    def peak(self, process):
        with open("/proc/%d/status" % process.pid) as f:
            return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)) // 1024

    def test_a_file_of_64_mib_goes_there_and_back_in_bounded_memory_and_a_byte_more_is_refused(self):
        self.d = self.daemon(config="artifacts: {maxBytes: %d}\n" % self.CAP, start=False)
        self.d.env = {"ASAN_OPTIONS": "quarantine_size_mb=1:" + os.environ.get("ASAN_OPTIONS", "")}
        self.d.start()
        self.g = Gateway(self, self.d, prefix=("env", "ASAN_OPTIONS=" + self.d.env["ASAN_OPTIONS"]))
        first, second = self.register(), self.register()
        plan = self.d.submit({"steps": [step("a"), step("b", dependsOn=["a"], parameters={"text": "{{results.a.artifact}}"})],
                              "policy": {"stepTimeoutMs": 600000}})
        [s] = self.poll(first)["steps"]
        block, whole = os.urandom(self.PART), hashlib.sha256()
        self.assertEqual(self.part(first, s, block, 0).json, {"offset": self.PART})
        whole.update(block)
        more = self.part(first, s, block + b"x", self.PART)                                 # a part has at most 512 KiB
        self.assertEqual((more.status, more.json["code"]), (413, "LIMIT"), more)
        before = self.peak(self.g.process), self.peak(self.d.process)
        for at in range(self.PART, self.CAP, self.PART):
            answer = self.part(first, s, block, at)
            self.assertEqual((answer.status, answer.json.get("offset")), (200, at + self.PART), answer)
            whole.update(block)
            if at % (8 * self.PART) == 0:                                                    # it keeps its lease of 30 s
                self.assertEqual(self.poll(second, query="waitMs=0")["steps"], [])
        over = self.part(first, s, b"x", self.CAP)
        self.assertEqual((over.status, over.json["code"], "artifacts.maxBytes" in over.json["detail"]), (413, "LIMIT", True), over)
        self.assertEqual(self.put(first, s, len=self.CAP + 1, sha256=whole.hexdigest()).status, 413)
        wrong = self.put(second, s, len=self.CAP, sha256=whole.hexdigest())                  # of another instance
        self.assertIn(wrong.status, (404, 409), wrong)
        ended = self.put(first, s, len=self.CAP, sha256=whole.hexdigest())
        for _ in range(20):                                                                  # what is not hashed yet is asked for again
            if "uri" in ended.json:
                break
            ended = self.put(first, s, len=self.CAP, sha256=whole.hexdigest())
        uri = ended.json["uri"]
        file = {"name": "rows.bin", "uri": uri, "bytes": self.CAP, "sha256": whole.hexdigest()}
        self.assertEqual(self.g.ask("POST", first + "/drain").status, 200)                   # the other one gets the next step
        self.assertEqual(self.result(first, s, result={"text": "done", "artifacts": [file]}).json, {"accepted": True})
        [b] = self.poll(second)["steps"]
        self.assertEqual((b["stepId"], b["parameters"]["text"]), ("b", uri), b)
        got, n = hashlib.sha256(), 0
        while n < self.CAP:
            answer = self.get(second, b, uri, offset=n)
            self.assertEqual((answer.status, answer.json["len"]), (200, self.CAP), answer)
            data = base64.b64decode(answer.json["bytes"])
            self.assertTrue(0 < len(data) <= self.PART)
            got.update(data)
            n += len(data)
        self.assertEqual((n, got.hexdigest()), (self.CAP, whole.hexdigest()))
        self.assertEqual(self.get(first, s, uri).status in (404, 409), True)                 # its attempt is over
        self.assertEqual(self.get(second, b, "file:///etc/passwd").status, 403)
        self.assertEqual(self.result(second, b).json, {"accepted": True})
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        grown = self.peak(self.g.process) - before[0], self.peak(self.d.process) - before[1]
        self.assertTrue(grown[0] < 16 and grown[1] < 16, "gateway and daemon grew by %s MiB" % (grown,))

    def test_a_transfer_goes_on_after_kill_9_of_the_gateway_and_a_wrong_checksum_is_refused(self):
        self.house()
        at = self.register()
        plan = self.d.submit({"steps": [step("a")]})
        [s] = self.poll(at)["steps"]
        data = os.urandom(3 * self.PART)
        self.assertEqual(self.part(at, s, data[:self.PART], 0).json, {"offset": self.PART})
        self.g.kill9()
        self.g.start()
        lost = self.part(at, s, data[self.PART:2 * self.PART], self.PART)
        self.assertIn(lost.status, (200, 404), lost)
        self.register(instanceId=at.rsplit("/", 1)[1])
        self.assertEqual(self.poll(at, {"inflight": [{"key": s["key"], "attempt": 1}]}, "waitMs=0")["steps"], [])
        have = self.part(at, s, b"", 0).json["offset"]
        self.assertIn(have, (self.PART, 2 * self.PART))
        for n in range(have, len(data), self.PART):
            self.assertEqual(self.part(at, s, data[n:n + self.PART], n).json, {"offset": n + self.PART})
        sha = hashlib.sha256(data).hexdigest()
        ended = self.put(at, s, len=len(data), sha256=sha).json
        self.assertEqual(self.put(at, s, len=len(data), sha256=sha).json, ended)            # its answer was lost
        self.assertEqual(self.result(at, s, result={"text": "done", "artifacts": [{"name": "rows.bin", "uri": ended["uri"], "bytes": len(data), "sha256": sha}]}).json, {"accepted": True})
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertEqual(self.d.ask("plan.result", planId=plan)["artifacts"][0]["bytes"], len(data))
        again = self.d.submit({"steps": [step("a", maxRetries=0)]})
        [s] = self.poll(at)["steps"]
        self.assertEqual(self.part(at, s, b"a,b", 0).json, {"offset": 3})
        wrong = self.put(at, s, len=3, sha256="0" * 64)
        self.assertEqual((wrong.status, "SHA-256" in wrong.json["detail"]), (400, True), wrong)
        self.assertEqual(self.result(at, s).json, {"accepted": True})
        self.d.wait_plan(again)


class Rights(House):
    def test_an_instance_is_of_the_credential_that_registered_it(self):
        self.house()
        a, b = (key_of(self.d, name, "agent", "--agent", "polling*") for name in ("a", "b"))
        eve = key_of(self.d, "eve", "submitter")
        at = self.register(bearer=a)
        for path in ("/poll?waitMs=0", "/heartbeat", "/drain"):
            self.assertEqual(self.g.ask("POST", at + path, bearer=b).status, 404)
        taken = self.g.ask("POST", "/v1/instances", {"card": CARD, "instanceId": at.rsplit("/", 1)[1]}, bearer=b)
        self.assertEqual((taken.status, taken.json["code"]), (409, "CONFLICT"))
        other = self.g.ask("POST", "/v1/instances", {"card": {**CARD, "agentId": "calc"}}, bearer=a)
        self.assertEqual((other.status, other.json["code"]), (403, "UNAUTHORIZED"), other)
        self.assertEqual(self.g.ask("POST", "/v1/instances", {"card": CARD}, bearer=eve).status, 403)
        self.assertEqual(self.poll(at, query="waitMs=0", bearer=a)["steps"], [])

    def test_a_daemon_that_wants_credentials_has_agents_over_http(self):
        d = self.d = self.daemon(start=False)
        d.config.write_text("auth: required\n" + d.config.read_text())
        d.start(agents=False)
        self.g = Gateway(self, d)
        me, root = key_of(d, "me", "agent", "--agent", "polling"), key_of(d, "root", "admin")
        d.credential = ("root", d.state / "credentials" / "root")
        at = self.register(bearer=me)
        plan = self.g.ask("POST", "/v1/plans", {"plan": {"steps": [step("a")]}}, bearer=root).json["planId"]
        [s] = self.poll(at, bearer=me)["steps"]
        self.assertEqual(self.g.ask("POST", at + "/result", {"key": s["key"], "attempt": 1, "result": {"text": "x"}}, bearer=me).json, {"accepted": True})
        until(lambda: self.g.ask("GET", "/v1/plans/" + plan, bearer=root).json["status"] == "completed", 20, "completed")


class Losses(House):
    def test_a_silent_agent_loses_its_attempt_and_a_late_result_counts_while_nothing_newer_ended(self):
        self.house("--lease", 1)
        at = self.register()
        plan = self.d.submit({"steps": [step("a", maxRetries=3)]})
        [s] = self.poll(at)["steps"]
        self.up(n=0)
        self.assertEqual(self.g.ask("POST", at + "/heartbeat").status, 404)
        again = self.register(instanceId=at.rsplit("/", 1)[1])
        self.assertEqual(again, at)
        late = self.result(at, s)
        self.assertEqual((late.status, late.json), (200, {"accepted": True}), late)
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertEqual(self.d.ask("plan.result", planId=plan, stepId="a")["result"]["text"], "done")

    def test_a_step_whose_poll_broke_off_is_given_to_the_next_one(self):
        self.house()
        at = self.register(capacity=2)
        self.up()
        c = http.client.HTTPConnection("127.0.0.1", self.g.port, timeout=10)
        c.request("POST", at + "/poll?waitMs=60000", headers=self.g.headers())
        c.sock.close()
        c.close()
        plan = self.d.submit({"steps": [step("a"), step("b")]})
        got = []
        until(lambda: got.extend(self.poll(at, query="waitMs=1000&max=16")["steps"]) or len(got) == 2, 20, "both")
        # an agent that does not list what it was given is given it again
        self.assertEqual([s["key"] for s in self.poll(at, {"inflight": [{"key": got[0]["key"], "attempt": 1}]})["steps"]], [got[1]["key"]])
        self.assertEqual(self.poll(at, {"inflight": [{"key": s["key"], "attempt": 1} for s in got]}, "waitMs=0")["steps"], [])
        for s in got:
            self.assertEqual(self.result(at, s).json, {"accepted": True})
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")

    def test_only_so_many_instances(self):
        self.house()
        first = self.register()
        for _ in range(255):
            self.register()
        full = self.g.ask("POST", "/v1/instances", {"card": CARD})
        self.assertEqual((full.status, full.json["code"]), (503, "BUSY"), full)
        self.assertEqual(self.g.ask("DELETE", first).status, 200)
        self.register()

    def test_only_so_many_lanes(self):
        """An instance has a lane for each step of its capacity, and one more: 15 of 65 and one of 49 are 1,024."""
        self.house()
        for capacity in [64] * 15:
            self.register(capacity=capacity)
        full = self.g.ask("POST", "/v1/instances", {"card": CARD, "capacity": 49})     # the 1,025th
        self.assertEqual((full.status, full.json["code"]), (503, "BUSY"), full)
        last = self.register(capacity=48)
        full = self.g.ask("POST", "/v1/instances", {"card": CARD, "capacity": 1})
        self.assertEqual((full.status, full.json["code"]), (503, "BUSY"), full)
        self.assertEqual(self.g.ask("DELETE", last).status, 200)
        self.register(capacity=1)


class Kills(House):
    def agent(self, **env):
        code = self.d.work / "agent.py"
        text = AGENT.read_text()
        marker = "instance.update(instanceId=ask(\"POST\", \"/v1/instances\", instance)[\"instanceId\"])\nwhile"
        self.assertIn(marker, text)
        text = text.replace(marker, WORK.strip("\n") + "\n\n\n" + marker).replace('step["parameters"]["text"].upper()})', "did(step)})").replace('{"text": step["parameters"]["text"].upper()}', '{"text": did(step)}')
        text = text.replace('"effects": "none"', '"effects": "idempotent"')
        code.write_text(text)
        p = subprocess.Popen([sys.executable, code], env={**os.environ, "URL": self.g.url, "TOKEN": self.d.token(), "LOG": str(self.d.work / "did.log"), **env})
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def did(self):
        log = self.d.work / "did.log"
        return [line.split() for line in log.read_text().splitlines()] if log.exists() else []

    def plan(self, n):
        self.up()
        return self.d.submit({"steps": [step("s%d" % i, maxRetries=20) for i in range(n)]})

    def whole(self, plan, n):
        self.assertEqual(self.d.wait_plan(plan, 120)["status"], "completed", self.g.log())
        done = collections.Counter(e["stepId"] for e in self.d.events(plan) if e["type"] == "plan_step_completed")
        self.assertEqual(done, {"s%d" % i: 1 for i in range(n)})
        self.assertEqual(self.d.ask("plan.result", planId=plan, stepId="s1")["result"]["text"], "S1")

    def reached(self, n):
        until(lambda: len(self.did()) >= n, 60, "%d steps: %s" % (n, self.g.log()))

    def test_a_process_does_a_plan(self):
        self.house()
        self.agent()
        plan = self.plan(20)
        self.whole(plan, 20)
        self.assertEqual(len(self.did()), 20)

    def test_the_gateway_is_killed_and_no_step_is_lost_or_done_twice(self):
        self.house()
        self.agent()
        plan = self.plan(40)
        for at in (3, 13, 25):
            self.reached(at)
            self.g.kill9()
            self.g.start()
        self.whole(plan, 40)
        self.assertEqual(len(self.did()), 40, self.did())

    def test_the_daemon_is_killed_and_no_step_is_lost_or_done_twice(self):
        self.house()
        self.agent()
        plan = self.plan(40)
        for at in (3, 13, 25):
            self.reached(at)
            self.d.kill9()
            self.d.start(agents=False)
        self.whole(plan, 40)
        self.assertEqual(len(self.did()), 40, self.did())

    def test_the_agent_is_killed_and_another_one_goes_on(self):
        self.house("--lease", 1)
        p = self.agent()
        plan = self.plan(20)
        for at in (3, 10):
            self.reached(at)
            p.kill()
            p.wait()
            p = self.agent()
        self.whole(plan, 20)
        self.assertLessEqual(len(self.did()), 22)

    def test_all_three_are_killed_at_random(self):
        seed = int(os.environ.get("BATON_SEED", random.randrange(1 << 30)))
        chance = random.Random(seed)
        print("BATON_SEED=%d" % seed)
        self.house("--lease", 1)
        p = self.agent()
        plan = self.plan(60)
        for at in sorted(chance.sample(range(1, 58), 6)):
            self.reached(at)
            what = chance.choice("gda")
            if what == "g":
                self.g.kill9()
                self.g.start()
            elif what == "d":
                self.d.kill9()
                self.d.start(agents=False)
            else:
                p.kill()
                p.wait()
                p = self.agent()
        self.whole(plan, 60)


if __name__ == "__main__":
    main()
