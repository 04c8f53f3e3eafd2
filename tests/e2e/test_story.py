#!/usr/bin/env python3
"""Agents of http: incidents become tickets, a person approves, a service fails, the plan is made anew, a summary is written."""
import http.server
import json
import threading

from harness import BatonTest, main, until
from probe import Probe, wait_up

INCIDENTS = [{"number": "INC00%d" % n, "severity": "1", "short_description": d} for n, d in ((1, "Payments are down"), (2, "Mail is slow"), (3, "No backups"))]
SUMMARY = "3 critical incidents, 3 tickets; the people on call were told by mail, because the chat refused the message."


class Services(http.server.ThreadingHTTPServer):
    """ServiceNow in pages of two, a Jira that is down and its other region, a chat that refuses, and mail."""
    daemon_threads = True

    def __init__(self):
        self.seen, self.lock = [], threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server_address[1]
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def of(self, path):
        return [body for p, body in self.seen if p == path]


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        at = int(self.path.partition("sysparm_offset=")[2] or 0)
        self.answer(200, {"result": INCIDENTS[at:at + 2]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.seen.append((self.path, body))
            made = len(self.server.of("/eu/issue"))
        if self.path == "/us/issue":
            self.answer(503, {"message": "in maintenance"})
        elif self.path == "/chat":
            self.answer(422, {"message": "the channel is archived"})
        else:
            self.answer(201, {"key": "INFRA-%d" % (455 + made)})


CONFIG = """
agents:
  - agentId: servicenow
    command: ["${BATON_BIN}/baton-agent-http"]
    settings:
      baseUrl: %(url)s
      allowPrivate: ["127.0.0.1"]
      actions:
        - {id: incidents, description: Finds critical incidents., path: /table/incident, query: {severity: "{severity}"},
           pages: {items: /result, offset: sysparm_offset}, fields: {number: /number, text: /short_description}}
%(jiras)s
  - agentId: desk
    command: ["${BATON_BIN}/baton-agent-http"]
    settings:
      baseUrl: %(url)s
      allowPrivate: ["127.0.0.1"]
      actions:
        - {id: chat, description: Writes into a channel., method: POST, path: /chat, body: {text: "{text}"}}
        - {id: mail, description: Sends a mail., method: POST, path: /mail, body: {text: "{text}"}}
"""
JIRA = """  - agentId: jira-%s
    command: ["${BATON_BIN}/baton-agent-http"]
    settings:
      baseUrl: %s
      allowPrivate: ["127.0.0.1"]
      retries: 0
      actions:
        - {id: create, description: Creates a ticket., method: POST, path: /%s/issue, effects: idempotent, idempotencyHeader: X-Request-Id, body: {summary: "{summary}"}, result: {key: /key}}
"""


class Story(BatonTest):
    def setUp(self):
        self.services = Services()
        self.addCleanup(lambda: (self.services.shutdown(), self.services.server_close(), self.services.thread.join()))
        url = self.services.url
        self.d = self.daemon(config=CONFIG % {"url": url, "jiras": "".join(JIRA % (x, url, x) for x in ("us", "eu"))})
        self.lead = Probe(self.d, "lead", work=self.work, skills=("synthesize", "plan"))
        self.addCleanup(self.lead.close)
        wait_up(self.d, "lead")

    def work(self, r):
        if r.get("purpose") == "synthesize":
            return {"outcome": "completed", "result": {"text": SUMMARY}}
        return {"outcome": "completed", "result": {"data": {"reasoning": "the channel is archived; mail arrives", "reuse": ["find", "agree", "tickets"], "steps": [
            {"stepId": "mail", "agentId": "desk", "skill": "mail", "task": "Send the tickets by mail",
             "parameters": {"text": "Tickets: {{results.tickets}}"}, "dependsOn": ["tickets"]}]}}}

    PLAN = {
        "goal": "Handle critical incidents end-to-end",
        "policy": {"replan": {"agentId": "lead", "cooldownMs": 1}, "synthesis": "agent:lead", "backoff": {"initialMs": 1}, "maxFallbacks": 12},
        "steps": [
            {"stepId": "find", "agentId": "servicenow", "skill": "incidents", "task": "Find all critical incidents", "parameters": {"severity": "1"}},
            {"stepId": "agree", "type": "human_review", "task": "Shall these become tickets?", "dependsOn": ["find"]},
            {"stepId": "tickets", "agentId": "jira-us", "skill": "create", "task": "Create a ticket for {{incident.number}}", "dependsOn": ["agree"],
             "forEach": "{{results.find}}", "as": "incident", "parameters": {"summary": "{{incident.number}}: {{incident.text}}"},
             "fallbackAgents": ["jira-eu"], "maxRetries": 0},
            {"stepId": "tell", "agentId": "desk", "skill": "chat", "task": "Tell who is on call", "dependsOn": ["tickets"],
             "parameters": {"text": "{{results.tickets}}"}, "onFailure": "replan", "maxRetries": 0}]}

    def test_incidents_become_tickets_with_an_approval_a_fallback_a_replan_and_a_summary(self):
        plan = self.d.submit(self.PLAN)
        (review,) = until(lambda: self.d.ask("review.list").get("reviews"), 20, "a person is asked\n" + self.d.log())
        self.assertEqual((review["stepId"], self.services.seen), ("agree", []), "nothing was written before the approval")
        self.d.cli("approve", review["reviewId"])
        view = self.d.wait_plan(plan)
        self.assertEqual((view["status"], view["outcome"], view["revision"]), ("completed", "success", 2), view)
        self.assertEqual([s["stepId"] for s in view["steps"] if s["status"] == "completed"], ["find", "agree", "tickets", "mail"])
        self.assertEqual(sorted(b["summary"] for b in self.services.of("/eu/issue")), ["%s: %s" % (i["number"], i["short_description"]) for i in INCIDENTS])
        self.assertGreaterEqual(len(self.services.of("/us/issue")), 3, "the service that is down was asked for each")
        self.assertEqual(len(self.services.of("/chat")), 1)
        (mail,) = self.services.of("/mail")
        self.assertEqual([key in mail["text"] for key in ("INFRA-456", "INFRA-457", "INFRA-458")], [True] * 3)
        self.assertEqual(self.d.ask("plan.result", planId=plan)["aggregatedResult"], SUMMARY)
        kinds = [e["type"] for e in self.d.events(plan)]
        for kind in ("replan_started", "replan_finished", "plan_completed"):
            self.assertIn(kind, kinds)


if __name__ == "__main__":
    main()
