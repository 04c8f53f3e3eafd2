#!/usr/bin/env python3
"""baton-gateway: each request over HTTP, who may send it, what is refused and how."""
import json
import os
import re
import resource
import signal
import subprocess
import unittest

import gateway
from gateway import CALC, PLAN, Gateway
from harness import BIN, ROOT, BatonTest, main, until


def setUpModule():
    gateway.need()


def key_of(daemon, name, role, *more):
    daemon.cli("credential", "add", name, "--role", role, *more)
    return "%s:%s" % (name, json.loads((daemon.state / "credentials" / name).read_text())["key"])


class Plans(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CALC)
        self.g = Gateway(self, self.d)

    def test_a_plan_is_submitted_watched_and_its_result_read(self):
        made = self.g.ask("POST", "/v1/plans", {"plan": PLAN}, Idempotency_Key="k")
        self.assertEqual(made.status, 201, made)
        plan = made.json["planId"]
        self.assertEqual(made.headers["Location"], "/v1/plans/" + plan)
        again = self.g.ask("POST", "/v1/plans", {"plan": PLAN, "clientKey": "k"})
        self.assertEqual((again.status, again.json["planId"], again.json["existing"]), (200, plan, True))
        self.d.wait_plan(plan)
        view = self.g.ask("GET", "/v1/plans/%s?steps=false" % plan)
        self.assertEqual((view.status, view.json["status"], view.headers["ETag"]), (200, "completed", '"1"'))
        self.assertNotIn("steps", view.json)
        result = self.g.ask("GET", "/v1/plans/%s/result?stepId=a" % plan).json
        self.assertEqual(result["result"]["text"], "3")
        for what in ("history", "stats", "result"):
            answer = self.g.ask("GET", "/v1/plans/%s/%s" % (plan, what))
            self.assertEqual((answer.status, answer.json["planId"]), (200, plan))
        for name in ("v", "type", "id", "ok"):
            self.assertNotIn(name, view.json)

    def test_characters_that_order_a_terminal_about_are_escaped_and_the_value_is_the_same(self):
        task = "Turn \u202eround\u202c, hide\u200b, \x85\x9b2J, tag\U000e0041, keep \u00e4\u20ac\U0001f600 and say x"
        plan = self.d.submit({"steps": [{"stepId": "a", "type": "human_review", "task": task}]})
        step = {"d": self.g.ask("GET", "/v1/plans/" + plan), "a": self.g.ask("GET", "/a2a/tasks/" + plan),
                "e": self.g.ask("GET", "/v1/events?after=0&limit=50", Accept="application/json"), "p": self.g.ask("GET", "/v1/plans/none%E2%80%AE")}
        for name, answer in step.items():
            text = answer.body.decode() if isinstance(answer.body, bytes) else answer.body
            self.assertNotRegex(text, "[\x7f-\x9f\u200b-\u200f\u2028-\u202e\U000e0000-\U000e0fff]", name)
        self.assertEqual(step["d"].json["steps"][0]["task"], task)
        self.assertIn("keep \u00e4\u20ac\U0001f600", step["d"].body.decode())

    def test_the_answer_is_that_of_the_wire(self):
        plan = self.d.submit(PLAN)
        self.d.wait_plan(plan)
        wire = self.d.ask("plan.get", planId=plan)
        self.assertEqual(self.g.ask("GET", "/v1/plans/" + plan).json, {k: v for k, v in wire.items() if k not in ("v", "type", "id", "ok")})

    def test_a_cursor_is_a_link_to_the_next_page(self):
        plans = {self.d.submit(PLAN) for _ in range(5)}
        found, path = [], "/v1/plans?limit=2"
        while path:
            page = self.g.ask("GET", path)
            found += [p["planId"] for p in page.json["plans"]]
            link = page.headers["Link"]
            path = link and re.fullmatch('<([^>]*)>; rel="next"', link).group(1)
        self.assertEqual((len(found), set(found)), (5, plans))

    def test_a_change_names_the_revision_that_it_is_for(self):
        plan = self.d.submit({"steps": [{"stepId": "w", "wait": {"forMs": 600000}}, {"stepId": "b", "dependsOn": ["w"], **{k: v for k, v in PLAN["steps"][0].items() if k != "stepId"}}]})
        path = "/v1/plans/%s/modify" % plan
        change = {"kind": "skip_steps", "stepsToSkip": [2]}
        etag = self.g.ask("GET", "/v1/plans/" + plan).headers["ETag"]
        stale = self.g.ask("POST", path, change, If_Match='"7"')
        self.assertEqual((stale.status, stale.json["code"]), (412, "CONFLICT"), stale)
        self.assertEqual(self.g.ask("POST", path, {**change, "expectRevision": 7}).status, 409)
        done = self.g.ask("POST", path, change, If_Match=etag)
        self.assertEqual((done.status, done.json["revision"]), (200, 2), done)
        self.assertEqual(done.headers["ETag"], '"2"')
        over = self.g.ask("POST", "/v1/plans/%s/cancel" % plan)
        self.assertEqual(over.status, 200, over)

    def test_a_review_whose_id_has_slashes_is_decided(self):
        plan = self.d.submit({"steps": [{**PLAN["steps"][0], "requiresApproval": True}]})
        [review] = until(lambda: self.g.ask("GET", "/v1/reviews?planId=" + plan).json["reviews"], 20, "a review")
        self.assertIn("/", review["reviewId"])
        path = "/v1/reviews/" + review["reviewId"].replace("/", "%2F")
        self.assertEqual(self.g.ask("GET", path).json["review"]["stepId"], "a")
        self.assertEqual(self.g.ask("POST", path + "/decide", {"decision": "approve"}).json, {})
        self.d.wait_plan(plan)
        by = self.d.ask("plan.history", planId=plan)["reviews"][0]["by"]
        self.assertEqual((by["via"], by["id"]), ("http", "local"))

    def test_reads_of_all_kinds(self):
        for path, name in (("/v1/info", "version"), ("/v1/stats", "turns"), ("/v1/agents", "agents"), ("/v1/agents/calc", "card"), ("/v1/sessions", "sessions"),
                           ("/v1/schedules", "schedules"), ("/v1/cost", "total"), ("/v1/reviews", "reviews"), ("/v1/journal/export", "lines")):
            answer = self.g.ask("GET", path)
            self.assertEqual(answer.status, 200, (path, answer))
            if path != "/v1/journal/export":
                self.assertIn(name, answer.json, path)
        put = self.g.ask("PUT", "/v1/schedules/nightly", {"cron": "0 3 * * *", "plan": PLAN})
        self.assertEqual(put.status, 201, put)
        self.assertEqual(self.g.ask("GET", "/v1/schedules/nightly?next=2").json["schedule"]["cron"], "0 3 * * *")
        self.assertEqual(self.g.ask("POST", "/v1/schedules/nightly/pause", {"reason": "r"}).json["status"], "paused")
        made = self.g.ask("POST", "/v1/schedules/nightly/trigger")
        self.assertEqual((made.status, made.headers["Location"]), (201, "/v1/plans/" + made.json["planId"]))
        self.assertEqual(self.g.ask("DELETE", "/v1/schedules/nightly").status, 200)
        said = self.g.ask("POST", "/v1/sessions/s1/say", {"text": "what is 1+2"})
        self.assertIn(said.status, (200, 201), said)
        self.assertEqual(self.g.ask("GET", "/v1/sessions/s1?limit=1").json["sessionId"], "s1")
        lint = self.g.ask("POST", "/v1/lint", {"plan": {"steps": []}})
        self.assertEqual((lint.status, lint.json["valid"]), (200, False), lint)


class Refusals(BatonTest):
    def test_each_refusal_is_a_problem_with_its_status(self):
        d = self.daemon(config=CALC)
        g = Gateway(self, d)
        gone = "01A20FC9-DD1B-70C5-9698-077211201167"
        for method, path, body, status, code, field in (
                ("GET", "/v1/plans/" + gone, None, 404, "NOT_FOUND", None),
                ("GET", "/v1/nothing", None, 404, "NOT_FOUND", None),
                ("GET", "/nothing", None, 404, "NOT_FOUND", None),
                ("GET", "/v1/plans?limt=3", None, 400, "INVALID", "limt"),
                ("GET", "/v1/plans?limit=101", None, 400, "INVALID", "limit"),
                ("POST", "/v1/plans", {}, 400, "INVALID", None),
                ("POST", "/v1/plans", {"plan": PLAN, "dryRun": "no"}, 400, "INVALID", "dryRun"),
                ("POST", "/v1/plans", {"goal": "x" * 8193}, 400, "LIMIT", "goal"),
                ("POST", "/v1/plans", "{", 400, "INVALID", None),
                ("POST", "/v1/plans/%s/cancel" % gone, {"why": "x"}, 400, "INVALID", "why"),
                ("POST", "/v1/reviews/x/decide", {"decision": "approve", "planId": "y"}, 400, "INVALID", "planId"),
                ("DELETE", "/v1/plans", None, 405, "INVALID", None),
                ("PATCH", "/v1/plans", None, 405, "INVALID", None)):
            answer = g.ask(method, path, body)
            self.assertEqual((answer.status, answer.headers["Content-Type"]), (status, "application/problem+json"), (path, answer))
            problem = answer.json
            self.assertEqual((problem["status"], problem["code"], problem.get("field")), (status, code, field), (path, problem))
            self.assertTrue(problem["detail"] and problem["title"] and problem["type"].startswith("urn:baton:"))
        self.assertEqual(g.ask("DELETE", "/v1/plans").headers["Allow"], "OPTIONS, GET, HEAD, POST")
        options = g.ask("OPTIONS", "/v1/schedules/x", Authorization=None)
        self.assertEqual((options.status, options.headers["Allow"], options.body), (204, "OPTIONS, GET, HEAD, PUT, DELETE", b""))
        head = g.ask("HEAD", "/v1/info")
        self.assertEqual((head.status, head.body), (200, b""))
        self.assertGreater(int(head.headers["Content-Length"]), 100)
        self.assertEqual(g.ask("POST", "/v1/plans", "goal=x", Content_Type="application/x-www-form-urlencoded").status, 415)
        self.assertEqual(g.ask("GET", "/v1/events", Accept="image/png").status, 406)
        largest = json.dumps({"reason": ""})
        fits = '{"reason":"' + "x" * (1048576 - len('{"reason":""}')) + '"}'
        self.assertEqual(len(largest) > 0 and g.ask("POST", "/v1/plans/%s/cancel" % gone, fits).json["field"], "reason")
        self.assertEqual(g.ask("POST", "/v1/plans/%s/cancel" % gone, fits + " ").status, 413)

    def test_without_a_daemon_requests_end_with_503_and_go_on_when_it_is_back(self):
        d = self.daemon(config=CALC)
        g = Gateway(self, d)
        self.assertEqual(g.ask("GET", "/v1/info").status, 200)
        d.kill9()
        d.start(agents=False)
        self.assertEqual(g.ask("GET", "/v1/info").status, 200)
        self.assertEqual(d.stop(), 0)
        answer = g.ask("GET", "/v1/info", timeout=60)
        self.assertEqual((answer.status, answer.json["code"]), (503, "UNAVAILABLE"), answer)
        self.assertEqual(answer.headers["Retry-After"], "1")


class Senders(BatonTest):
    def test_each_request_has_the_rights_of_its_sender(self):
        d = self.daemon(config=CALC)
        g = Gateway(self, d)
        ann, bob, eve = (key_of(d, name, role) for name, role in (("ann", "submitter"), ("bob", "submitter"), ("eve", "observer")))
        plan = g.ask("POST", "/v1/plans", {"plan": PLAN}, bearer=ann).json["planId"]
        d.wait_plan(plan)
        self.assertEqual(g.ask("GET", "/v1/plans/" + plan, bearer=ann).json["owner"], "ann")
        self.assertEqual(g.ask("GET", "/v1/plans/" + plan, bearer=bob).status, 404)
        self.assertEqual(g.ask("GET", "/v1/plans", bearer=bob).json["plans"], [])
        self.assertEqual(g.ask("GET", "/v1/plans/" + plan, bearer=eve).status, 200)
        refused = g.ask("POST", "/v1/plans", {"plan": PLAN}, bearer=eve)
        self.assertEqual((refused.status, refused.json["details"]), (403, {"role": "submitter", "has": "observer"}))
        seen = [e["planId"] for e in g.ask("GET", "/v1/events", bearer=ann, Accept="application/json").json["events"] if "planId" in e]
        self.assertEqual(set(seen), {plan})
        page = g.ask("GET", "/v1/events", bearer=bob, Accept="application/json").json
        self.assertEqual([e for e in page["events"] if "planId" in e], [])
        d.cli("credential", "revoke", "ann")
        until(lambda: g.ask("GET", "/v1/plans", bearer=ann).status == 401, 10, "the revoked credential is not taken")

    def test_who_proves_nothing_gets_401_then_429_and_others_do_not_notice(self):
        d = self.daemon(config=CALC)
        g = Gateway(self, d)
        ann, bob = key_of(d, "ann", "observer"), key_of(d, "bob", "observer")
        self.assertEqual(g.ask("GET", "/v1/info", bearer=ann).status, 200)
        for bearer in (None, "Basic eDp5"):
            answer = g.ask("GET", "/v1/info", Authorization=bearer)
            self.assertEqual((answer.status, answer.headers["WWW-Authenticate"]), (401, 'Bearer realm="baton"'))
        self.assertEqual(g.ask("GET", "/v1/info", bearer="x").status, 401)
        found = [g.ask("GET", "/v1/info", bearer="%064x" % i if i % 2 else "ann:%064x" % i).status for i in range(12)]
        self.assertEqual(found, [401] * 10 + [429] * 2)
        self.assertEqual(g.ask("GET", "/v1/info", bearer=ann).status, 200)
        self.assertIn("Retry-After", g.ask("GET", "/v1/info", bearer="f" * 64).headers)
        self.assertEqual([g.ask("GET", "/v1/info", bearer=b).status for b in (bob, None)], [200, 200])  # they come for the first time

    def test_a_wrong_key_is_in_the_audit_before_it_is_answered_and_the_right_one_is_taken(self):
        d = self.daemon(config=CALC)
        g = Gateway(self, d)
        ann = key_of(d, "ann", "observer")
        for bearer, about in (("ann:" + "0" * 64, "ann"), ("nobody:" + "1" * 64, "nobody"), ("f" * 64, None)):
            before = [e for e in map(json.loads, d.cli("audit", "--json").splitlines()) if e["kind"] == "handshake"]
            self.assertEqual(g.ask("GET", "/v1/info", bearer=bearer).status, 401)
            after = [e for e in map(json.loads, d.cli("audit", "--json").splitlines()) if e["kind"] == "handshake"]
            self.assertEqual(len(after), len(before) + 1, bearer)
            self.assertEqual(after[-1]["outcome"], "UNAUTHORIZED")
            self.assertTrue(after[-1]["peer"], after[-1])
            if about:
                self.assertIn("credential %s: " % about, after[-1]["text"])
            self.assertNotIn(bearer[-64:], json.dumps(after))
            self.assertEqual(g.ask("GET", "/v1/info", bearer=ann).status, 200)
        for n in range(40):  # more than are let in: they wait, and who has the key does not
            g.ask("GET", "/v1/info", bearer="ann:%064x" % (n + 7))
        self.assertEqual(g.ask("GET", "/v1/info", bearer=ann).status, 200)
        self.assertEqual(d.ask("supervisor.info")["pid"], d.process.pid)

    def test_a_daemon_that_wants_credentials_gets_them(self):
        d = self.daemon(config=CALC, start=False)
        d.config.write_text("auth: required\n" + d.config.read_text())
        d.start(agents=False)
        key_of(d, "root", "admin")
        d.credential = ("root", d.state / "credentials" / "root")
        g = Gateway(self, d)
        ann = key_of(d, "ann", "submitter")
        refused = g.ask("GET", "/v1/info")
        self.assertEqual((refused.status, "auth: required" in refused.json["detail"]), (401, True), refused)
        made = g.ask("POST", "/v1/plans", {"plan": PLAN}, bearer=ann)
        self.assertEqual(made.status, 201, made)
        lines = g.ask("GET", "/v1/plans/%s/events" % made.json["planId"], bearer=ann, Accept="application/x-ndjson").body.splitlines()
        self.assertEqual(json.loads(lines[-1])["type"], "plan_completed")

    def test_pages_of_other_names_and_origins_are_refused(self):
        d = self.daemon(config=CALC)
        g = Gateway(self, d, "--host", "baton.test", "--origin", "https://ops.test")
        for host, status in (("evil.test:%d" % g.port, 421), ("127.0.0.1:1", 421), ("127.0.0.1", 421), ("localhost:%d" % g.port, 200),
                             ("BATON.test:%d" % g.port, 200), ("[::1]:%d" % g.port, 200), ("", 421)):
            self.assertEqual(g.ask("GET", "/v1/info", Host=host).status, status, host)
        for origin, status in (("https://evil.test", 403), ("null", 403), ("http://127.0.0.1:%d" % g.port, 200), ("https://ops.test", 200)):
            answer = g.ask("GET", "/v1/info", Origin=origin)
            self.assertEqual(answer.status, status, origin)
            self.assertEqual(answer.headers["Access-Control-Allow-Origin"], "https://ops.test" if origin == "https://ops.test" else None)
        asked = g.ask("OPTIONS", "/v1/plans", Origin="https://ops.test", Authorization=None)
        self.assertIn("Authorization", asked.headers["Access-Control-Allow-Headers"])

    def test_other_addresses_need_tls_and_credentials(self):
        d = self.daemon(config=CALC)
        done = subprocess.run([BIN / "baton-gateway", "--state", d.state, "--listen", "0.0.0.0:0"], capture_output=True, text=True, timeout=20)
        self.assertEqual((done.returncode, "--tls" in done.stderr), (2, True))
        pem = d.work / "tls.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-keyout", d.work / "k.pem", "-out", d.work / "c.pem"], check=True, capture_output=True)
        pem.write_bytes((d.work / "c.pem").read_bytes() + (d.work / "k.pem").read_bytes())
        ann = key_of(d, "ann", "observer")
        g = Gateway(self, d, "--listen", "0.0.0.0:0", "--tls", pem, "--host", "127.0.0.1")
        self.assertTrue(g.url.startswith("https://"))
        self.assertEqual(g.ask("GET", "/v1/info", bearer=ann).status, 200)
        refused = g.ask("GET", "/v1/info")
        self.assertEqual((refused.status, "not at this address" in refused.json["detail"]), (401, True), refused)


class Process(BatonTest):
    def test_the_address_is_told_kept_and_taken_back(self):
        d = self.daemon(config=CALC)
        g = Gateway(self, d)
        file = d.state / "gateway.json"
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        port = g.port
        g.kill9()
        self.assertEqual(g.start().port, port)
        g.process.terminate()
        self.assertEqual(g.process.wait(10), 0)
        self.assertNotIn("url", json.loads(file.read_text()))
        self.assertEqual(g.start().port, port)

    def test_the_daemon_starts_it_and_starts_it_again(self):
        d = self.daemon(config=CALC + "gateway: {}\n")
        file = d.state / "gateway.json"

        def told(other=None):
            if not file.exists():
                return None
            now = json.loads(file.read_text())
            return now if "url" in now and now["pid"] != other else None
        first = until(told, 20, "the gateway is there")
        g = Gateway(self, d, start=False)
        g.url, g.port = first["url"], first["port"]
        self.assertIn("\nhttp        %s\n" % first["url"], d.cli("info"))
        self.assertEqual(d.cli("info", "--field", "http").strip(), first["url"])
        self.assertEqual(g.ask("GET", "/v1/info").json["agents"], 1)
        with open("/proc/%d/limits" % first["pid"]) as f:  # for as many connections as it takes
            files = int(next(line for line in f if line.startswith("Max open files")).split()[4])
        self.assertEqual(files, min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        self.assertEqual([a["card"]["agentId"] for a in g.ask("GET", "/v1/agents").json["agents"]], ["calc"])
        os.kill(first["pid"], signal.SIGKILL)
        second = until(lambda: told(first["pid"]), 20, "another one is there")
        self.assertEqual(second["url"], first["url"])
        d.kill9()
        d.start()
        self.assertEqual(g.ask("GET", "/v1/info").status, 200)
        self.assertEqual(told()["pid"], second["pid"])  # it was adopted
        self.assertEqual(d.stop(), 0)
        until(lambda: "url" not in json.loads(file.read_text()), 20, "it ended with the daemon")
        d.start()
        until(lambda: told(second["pid"]), 20, "it is there again")

    def test_wrong_usage_is_a_sentence_and_exit_code_2(self):
        for args in (["--listen", "here"], ["--listen"], ["--nothing"], ["--origin", "x"], ["--listen", "127.0.0.1:70000"]):
            done = subprocess.run([BIN / "baton-gateway", *args], capture_output=True, text=True, timeout=20)
            self.assertEqual((done.returncode, done.stderr.count("\n"), done.stdout), (2, 1, ""), args)

    def test_every_request_of_the_wire_is_reachable_or_said_not_to_be(self):
        text = (ROOT / "protocol" / "messages.def").read_text()
        requests = re.findall(r"^REQUEST\((\w+),", text, re.M)
        ways = re.findall(r"^HTTP(?:_NOT)?\((\w+),", text, re.M)
        self.assertEqual(sorted(requests), sorted(ways))
        document = json.loads(subprocess.run([BIN / "baton-gateway", "--openapi"], capture_output=True, check=True, timeout=20).stdout)
        routes = {(m, p) for p, ms in document["paths"].items() for m in ms} - {("post", "/v1/instances/{instanceId}/poll")}  # it is of the gateway alone
        self.assertEqual(routes, {(m.lower(), p) for m, p in re.findall(r'^HTTP(?:_ALSO)?\(\w+, (\w+), "([^"]+)"\)', text, re.M)})


if __name__ == "__main__":
    main()
