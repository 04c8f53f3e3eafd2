#!/usr/bin/env python3
"""/metrics as promtool and a real Prometheus read it; spans by OTLP/HTTP, decoded by a library of others."""
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse

import gateway
import test_webhooks
from gateway import CALC, PLAN, Gateway
from harness import ROOT, BatonTest, main, until
from probe import step, wait_up
from test_phases import Skilled, data, failed, in_turn, text

sys.path.insert(0, str(ROOT / "tests" / "peers"))
import peers  # noqa: E402

PROMETHEUS = peers.DIR / "prometheus/usr/bin"


def setUpModule():
    gateway.need()


def samples(text_):
    """{'name{labels}': value}"""
    return {m.group(1): float(m.group(2)) for m in re.finditer(r"(?m)^([a-z_]+(?:\{.*\})?) ([0-9.e+-]+)$", text_)}


class Metrics(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CALC)
        self.g = Gateway(self, self.d, *test_webhooks.NEAR)

    def metrics(self):
        answer = self.g.ask("GET", "/metrics")
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"), answer)
        return answer.body.decode()

    def run_some(self, n):
        for _ in range(n):
            self.d.wait_plan(self.d.submit(PLAN))
        key = 'baton_plans_total{status="completed"}'
        return until(lambda: (lambda m: m if samples(m).get(key, 0) >= n else None)(self.metrics()), 20, "the plans in the metrics")

    def test_what_ran_is_counted(self):
        self.metrics()  # events count from the first scrape on
        until(lambda: "baton_plan_duration_seconds_count" in self.metrics(), 10, "counts of events")
        # the reader of events has begun when it has seen one
        until(lambda: (self.d.wait_plan(self.d.submit(PLAN)), samples(self.metrics()).get('baton_plans_total{status="completed"}', 0))[1], 20, "a plan")
        before = samples(self.metrics())
        bad = {"steps": [{**PLAN["steps"][0], "parameters": {"expression": "1/0"}}]}
        self.d.wait_plan(self.d.submit(bad))
        self.d.wait_plan(self.d.submit(PLAN))
        after = until(lambda: (lambda m: m if m['baton_plans_total{status="failed"}'] == 1 and m['baton_plans_total{status="completed"}'] >
                               before['baton_plans_total{status="completed"}'] else None)(samples(self.metrics())), 20, "both plans")
        labels = 'agent="calc",skill="evaluate"'
        self.assertEqual(after['baton_steps_total{%s,status="failed"}' % labels], 1)
        count = after["baton_step_duration_seconds_count{%s}" % labels]
        self.assertEqual(count, after['baton_step_duration_seconds_bucket{%s,le="+Inf"}' % labels])
        self.assertEqual(count, sum(after['baton_steps_total{%s,status="%s"}' % (labels, s)] for s in ("completed", "failed")))
        self.assertEqual((after["baton_up"], after['baton_agent_instances{agent="calc"}'], after["baton_plans_open"]), (1, 1, 0))
        self.assertGreater(after["baton_journal_size_bytes"], 4096)
        self.assertGreater(after["baton_journal_commit_seconds_total"], 0)
        self.assertGreater(after['baton_events_total{type="plan_step_completed"}'], 1)

    def test_who_may_read_it_and_without_a_daemon(self):
        self.assertEqual(self.g.ask("GET", "/metrics", Authorization=None).status, 401)
        self.assertEqual(self.g.ask("GET", "/metrics", bearer="0" * 64).status, 401)
        self.assertEqual(self.g.ask("GET", "/metrics?x=1").status, 400)
        self.assertEqual(self.g.ask("POST", "/metrics", {}).status, 405)
        self.metrics()
        self.d.kill9()
        self.assertEqual(samples(self.metrics())["baton_up"], 0)

    def prometheus(self, rules=""):
        """A real one that scrapes the gateway; returns what asks it for a path."""
        work = pathlib.Path(self.d.work)
        (work / "prometheus.yml").write_text(
            "global: {scrape_interval: 250ms, evaluation_interval: 250ms}\nrule_files: [%s]\nscrape_configs:\n"
            "  - job_name: baton\n    authorization: {credentials_file: %s}\n    static_configs: [{targets: ['127.0.0.1:%d']}]\n"
            % (rules, self.d.state / "token", self.g.port))
        log = open(work / "prometheus.log", "wb")
        p = subprocess.Popen([PROMETHEUS / "prometheus", "--config.file=%s" % (work / "prometheus.yml"), "--storage.tsdb.path=%s" % (work / "tsdb"),
                              "--web.listen-address=127.0.0.1:0", "--log.level=info"], stdout=log, stderr=log)
        self.addCleanup(lambda: (p.kill(), p.wait(), log.close()))
        found = until(lambda: re.search(r"address=127\.0\.0\.1:([1-9]\d*)", (work / "prometheus.log").read_text()), 30, "prometheus")
        port = int(found.group(1))

        def query(path):
            c = __import__("http.client").client.HTTPConnection("127.0.0.1", port, timeout=10)
            try:
                c.request("GET", path)
                return json.loads(c.getresponse().read())
            except (OSError, ValueError):
                return None
            finally:
                c.close()
        return query

    @unittest.skipUnless((PROMETHEUS / "prometheus").exists(), "SKIPPED: %s has no prometheus; sh tests/peers/prometheus.sh %s" % (PROMETHEUS, peers.DIR))
    def test_a_prometheus_answers_each_expression_of_the_dashboard(self):
        page = json.loads((ROOT / "deploy" / "telemetry" / "dashboard.json").read_text())
        raw = [t["expr"] for p in page["panels"] for t in p.get("targets", [])] + [v["query"] for v in page["templating"]["list"] if v["type"] == "query"]
        self.d.cli("webhook", "put", "ops", "--url", "http://127.0.0.1:1/")
        self.metrics()
        real = self.run_some(1)
        have = {m.group(1) for m in re.finditer(r"(?m)^# TYPE (\w+) ", real)}
        have |= {m.group(1) + end for m in re.finditer(r"(?m)^# TYPE (\w+) histogram", real) for end in ("_bucket", "_count", "_sum")}
        have |= {"baton_otlp_spans_total", "baton_otlp_failures_total"}               # with an exporter
        used = {name for e in raw for name in re.findall(r"\bbaton_\w+", e)}
        self.assertEqual(used - have, set())
        self.assertEqual(page["panels"] and len({p["id"] for p in page["panels"]}), len(page["panels"]))
        plain = [e.replace("$__rate_interval", "1m").replace("$agent", ".*") for e in raw if not e.startswith("label_values(")]
        rules = pathlib.Path(self.d.work) / "dashboard.yml"
        rules.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": [{"record": "panel_%d" % i, "expr": e} for i, e in enumerate(plain)]}]}))
        checked = subprocess.run([PROMETHEUS / "promtool", "check", "rules", rules], capture_output=True, text=True, timeout=60)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        query = self.prometheus()
        until(lambda: (query("/api/v1/query?query=baton_up") or {}).get("data", {}).get("result"), 30, "a scrape")
        for e in plain:
            answer = query("/api/v1/query?query=" + urllib.parse.quote(e))
            self.assertEqual(answer["status"], "success", (e, answer))

    def test_webhooks_are_counted(self):
        r = test_webhooks.Receiver(self, self.d.work)
        r.say("503 1")
        self.d.cli("webhook", "put", "ops", "--url", r.url)
        self.d.wait_plan(self.d.submit(PLAN))

        def now(name, hook="ops"):
            return samples(self.metrics()).get('baton_webhook_%s{webhook="%s"}' % (name, hook))
        until(lambda: now("failed_total"), 20, "a failure")
        self.assertEqual((now("delivered_total"), now("parked")), (0, 0))
        self.assertGreater(now("lag_events"), 0)
        r.say("204")
        until(lambda: now("lag_events") == 0, 30, "it has caught up")
        self.assertEqual(now("delivered_total"), len(set(r.seqs())))
        r.say("410")
        self.d.submit(PLAN)
        until(lambda: now("parked") == 1, 20, "it is parked")
        self.assertEqual([now(n, "push") for n in ("delivered_total", "failed_total", "lag_events", "parked")], [0, 0, 0, 0])

    @unittest.skipUnless((PROMETHEUS / "prometheus").exists(), "SKIPPED: %s has no prometheus; sh tests/peers/prometheus.sh %s" % (PROMETHEUS, peers.DIR))
    def test_promtool_finds_nothing_and_a_prometheus_scrapes_it_and_a_rule_fires(self):
        said = subprocess.run([PROMETHEUS / "promtool", "check", "metrics"], input=self.run_some(1) if self.metrics() else "", capture_output=True, text=True, timeout=60)
        self.assertEqual((said.returncode, said.stdout + said.stderr), (0, ""))
        work = pathlib.Path(self.d.work)
        rules = ROOT / "deploy" / "telemetry" / "rules.yml"
        checked = subprocess.run([PROMETHEUS / "promtool", "check", "rules", rules], capture_output=True, text=True, timeout=60)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        quick = work / "rules.yml"
        quick.write_text(re.sub(r"for: \S+", "for: 0s", rules.read_text()))
        query = self.prometheus(quick)
        up = until(lambda: (query("/api/v1/query?query=baton_up") or {}).get("data", {}).get("result"), 30, "a scrape")
        self.assertEqual(up[0]["value"][1], "1")
        self.d.kill9()
        fired = until(lambda: [a for a in ((query("/api/v1/alerts") or {}).get("data") or {}).get("alerts", [])
                               if a["labels"]["alertname"] == "BatonDown" and a["state"] == "firing"], 30, "the alert")
        self.assertEqual(fired[0]["labels"]["job"], "baton")


class Collector:
    """Takes what OTLP sends; status: what it answers; slow: seconds before it does."""

    def __init__(self, test):
        self.bodies, self.status, self.hold = [], 200, threading.Event()
        self.hold.set()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.hold.wait(30)
                if outer.status == 200:
                    outer.bodies.append((self.path, self.headers["Content-Type"], body))
                self.send_response(outer.status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *args):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        test.addCleanup(lambda: (self.hold.set(), self.server.shutdown(), self.server.server_close()))

    def spans(self):
        return [s for _, _, b in list(self.bodies) for s in json.loads(b)["resourceSpans"][0]["scopeSpans"][0]["spans"]]


class Traces(BatonTest):
    def setUp(self):
        self.c = Collector(self)
        self.d = self.daemon(config="", agents=False)
        self.g = Gateway(self, self.d, "--otlp", self.c.url)

    def agent(self, agent_id, skills=("do",), **answers):
        p = Skilled(self.d, agent_id, skills, **answers)
        self.addCleanup(p.close)
        wait_up(self.d, agent_id)
        return p

    def begin(self):
        """The reader of events is there when a plan of its own has a root span."""
        self.agent("warm")

        def warm():
            self.d.wait_plan(self.d.submit({"steps": [step("w", "warm")]}))
            return any(s["name"] == "plan" for s in self.c.spans())
        until(warm, 30, "the first span")

    def test_the_tree_of_a_plan_with_a_retry_a_gate_and_a_handoff(self):
        peers.need("@opentelemetry/otlp-transformer")
        self.begin()
        self.agent("a", ["do"], execute=in_turn(failed("flaky", retryable=True), text("one")))
        self.agent("b")
        self.agent("g", ["gate"], gate=data({"sufficient": True, "reason": "enough"}))
        plan = self.d.submit({"steps": [step("first", "a"), step("second", "b", dependsOn=["first"], gate="g")], "policy": {"maxRetries": 2, "backoff": {"initialMs": 10}}})
        view = self.d.wait_plan(plan)
        self.assertEqual(view["status"], "completed", view)
        trace = plan.replace("-", "").lower()
        until(lambda: any(s["traceId"] == trace and s["name"] == "plan" for s in self.c.spans()), 20, "the plan's span")
        self.assertEqual({(p, t) for p, t, _ in self.c.bodies}, {("/v1/traces", "application/json")})
        decoded = subprocess.run(["node", ROOT / "tests/peers/otlp.cjs", str(peers.DIR)], input=json.dumps([json.loads(b) for _, _, b in self.c.bodies]),
                                 capture_output=True, text=True, timeout=60)
        self.assertEqual(decoded.returncode, 0, decoded.stderr)
        spans = [s for s in json.loads(decoded.stdout) if s["traceId"] == trace]
        by_id = {s["spanId"]: s for s in spans}
        self.assertEqual(len(by_id), len(spans), "span ids are unique")

        def path(s):
            return (path(by_id[s["parentSpanId"]]) if s.get("parentSpanId") else []) + [s["name"]]
        tree = sorted("/".join(path(s)) for s in spans)
        self.assertEqual(tree, ["plan", "plan/step first", "plan/step first/attempt a", "plan/step first/attempt a", "plan/step first/handoff first", "plan/step second",
                                "plan/step second/attempt b", "plan/step second/gate second", "plan/step second/handoff second"], tree)
        attempts = sorted((s for s in spans if s["name"] == "attempt a"), key=lambda s: s["attributes"]["baton.attempt"])
        self.assertEqual([(s["attributes"]["baton.attempt"], s["status"]["code"]) for s in attempts], [(1, 2), (2, 1)])
        self.assertIn("flaky", attempts[0]["status"]["message"])
        self.assertEqual(attempts[1]["links"][0]["spanId"], attempts[0]["spanId"])
        self.assertEqual(attempts[0]["attributes"]["baton.skill"], "do")
        for s in spans:
            self.assertLessEqual(int(s["startTimeUnixNano"]), int(s["endTimeUnixNano"]), s)
            if s.get("parentSpanId"):
                self.assertGreaterEqual(int(s["startTimeUnixNano"]), int(by_id[s["parentSpanId"]]["startTimeUnixNano"]), s)
                self.assertLessEqual(int(s["endTimeUnixNano"]), int(by_id[s["parentSpanId"]]["endTimeUnixNano"]), s)

    def test_a_plan_belongs_to_the_trace_of_the_request_that_made_it(self):
        peers.need("@opentelemetry/otlp-transformer")
        self.begin()
        work = {"steps": [step("s", "warm")]}
        mcp = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run_plan", "arguments": {"plan": work}}}
        a2a = {"message": {"messageId": "m", "parts": [{"data": work}]}}
        inner = "00-%032x-%016x-01"

        def traced(n, path, body, flags=1, **more):
            answer = self.g.ask("POST", path, body, traceparent="00-%032x-%016x-%02x" % (n, n, flags), **more)
            self.assertLess(answer.status, 300, answer)
            return answer
        traced(1, "/v1/plans", {"plan": work})
        traced(2, "/a2a/message:send", a2a)
        traced(3, "/mcp", mcp)
        mcp["params"]["_meta"] = {"traceparent": inner % (4, 4)}
        traced(5, "/mcp", mcp)                                                   # what is nearer counts
        own = traced(6, "/v1/plans", {"plan": work, "sessionId": "s"}, flags=0).json["planId"]   # its sender does not record it
        self.g.ask("POST", "/v1/plans/%s/cancel" % own, {}, traceparent=inner % (7, 7))          # this made no plan

        def plans():
            return {int(s["traceId"], 16): int(s.get("parentSpanId") or "0", 16) for s in self.c.spans() if s["name"] == "plan"}
        mine = int(own.replace("-", ""), 16)
        until(lambda: {1, 2, 3, 4, mine} <= set(plans()), 30, "the plans; %s" % plans())
        self.assertEqual([plans()[n] for n in (1, 2, 3, 4, mine)], [1, 2, 3, 4, 0])
        self.assertEqual({5, 6, 7} & set(plans()), set())
        decoded = subprocess.run(["node", ROOT / "tests/peers/otlp.cjs", str(peers.DIR)], input=json.dumps([json.loads(b) for _, _, b in self.c.bodies]),
                                 capture_output=True, text=True, timeout=60)
        spans = [s for s in json.loads(decoded.stdout) if s["traceId"] == "%032x" % 1]
        self.assertEqual(sorted(s["name"] for s in spans), ["attempt warm", "handoff s", "plan", "step s"], spans)
        self.assertEqual([s["parentSpanId"] for s in spans if s["name"] == "plan"], ["%016x" % 1])

    def test_a_collector_that_refuses_is_asked_again_and_one_that_hangs_is_not_waited_for(self):
        self.begin()
        self.c.status = 503
        plan = self.d.submit({"steps": [step("s", "warm")]})
        self.d.wait_plan(plan)
        failures = 'baton_otlp_failures_total'
        until(lambda: samples(self.g.ask("GET", "/metrics").body.decode())[failures] >= 1, 20, "a failure")
        self.c.status = 200
        trace = plan.replace("-", "").lower()
        until(lambda: any(s["traceId"] == trace for s in self.c.spans()), 20, "the same batch")
        self.c.hold.clear()
        for _ in range(5):
            self.d.wait_plan(self.d.submit({"steps": [step("s", "warm")]}))
        began = time.monotonic()
        self.assertEqual(self.g.ask("GET", "/v1/info").status, 200)
        self.assertLess(time.monotonic() - began, 5)


if __name__ == "__main__":
    main()
