#!/usr/bin/env python3
"""The dashboard of the gateway (deploy/UI.md): `baton ui`, its log-in by HTTP, and its pages in a real Chromium (Playwright from npm, Debian's browser).
BATON_DASHBOARD=all: axe looks at every page, and there are 10,000 plans. BATON_SHOTS=DIR: pictures of the pages."""
import http.client
import json
import os
import shutil
import stat
import subprocess
import sys
import unittest

import gateway
from gateway import Gateway
from harness import BIN, HERE, ROOT, BatonTest, alive, main, until

sys.path.insert(0, str(ROOT / "tests" / "peers"))
import peers  # noqa: E402  (the path is set just above)

CONFIG = """
agents:
  - agentId: calc
    command: ["${BATON_BIN}/baton-agent-calc"]
    capacity: 4
  - agentId: exec
    command: ["${BATON_BIN}/baton-agent-exec"]
    capacity: 8
    settings:
      commands:
        - {id: echo, argv: ["echo", "{text}"], description: "Says a text.", output: text, effects: idempotent}
        - {id: wait, argv: ["%(here)s/slow.sh", "%(work)s/executions", "{name}", "{seconds}"], description: "Takes a while.", output: text, effects: idempotent}
        - {id: fail, argv: ["false"], description: "Fails each time.", output: text, effects: idempotent}
"""


def setUpModule():
    gateway.need()


def credential(daemon, ident, role):
    folder = daemon.state / "credentials"
    folder.mkdir(mode=0o700, exist_ok=True)
    key = os.urandom(32).hex()
    file = folder / ident
    file.write_text(json.dumps({"id": ident, "role": role, "key": key, "createdMs": 1}))
    file.chmod(0o600)
    return "%s:%s" % (ident, key)


class Login(BatonTest):
    def log_in(self, g, bearer, origin=True, **headers):
        return g.ask("POST", "/ui/session", {"bearer": bearer}, Authorization=None, Origin=g.url if origin is True else origin, **headers)

    def test_both_halves_log_in_and_one_alone_does_not(self):
        d = self.daemon(config=CONFIG)
        g = Gateway(self, d)
        token = d.token()
        answer = self.log_in(g, token)
        self.assertEqual(answer.status, 200, answer)
        cookie = answer.headers["Set-Cookie"]
        for part in ("HttpOnly", "SameSite=Strict", "Path=/"):
            self.assertIn(part, cookie)
        self.assertNotIn(token[:16], cookie + answer.body.decode())
        self.assertEqual((answer.json["info"]["credential"], answer.json["info"]["role"]), ("local", "admin"))
        pair, page = cookie.split(";")[0], answer.json["page"]

        def info(**headers):
            return g.ask("GET", "/v1/info", Authorization=None, **headers).status
        self.assertEqual(info(Cookie=pair, X_Baton_Page=page), 200)
        self.assertEqual(info(Cookie="other=1; " + pair, X_Baton_Page=page), 200)
        self.assertEqual(info(Cookie=pair), 401)                      # any page could have the browser send it
        self.assertEqual(info(X_Baton_Page=page), 401)
        self.assertEqual(info(Cookie=pair, X_Baton_Page="0" * 32), 401)
        self.assertEqual(info(Cookie=pair, X_Baton_Page=page, Origin="http://evil.example"), 403)
        g.kill9()
        g.start()                                                     # the same port, and nobody logs in again
        self.assertEqual(info(Cookie=pair, X_Baton_Page=page), 200)
        self.assertEqual(stat.S_IMODE((d.state / "gateway.key").stat().st_mode), 0o600)
        out = g.ask("DELETE", "/ui/session", Authorization=None)
        self.assertEqual(out.status, 204)
        self.assertIn("Max-Age=0", out.headers["Set-Cookie"])

    def test_a_log_in_that_is_no_pages_or_proves_nothing_is_refused(self):
        d = self.daemon(config=CONFIG)
        g = Gateway(self, d)
        for bearer, origin, status in ((d.token(), None, 403), (d.token(), "http://evil.example", 403), ("0" * len(d.token()), True, 401), ("", True, 400),
                                       ("x" * 300, True, 400), (5, True, 400)):
            answer = self.log_in(g, bearer, origin)
            self.assertEqual(answer.status, status, (bearer, answer))
            self.assertNotIn("Set-Cookie", answer.headers)
        self.assertEqual(g.ask("GET", "/ui/session", Authorization=None).status, 405)
        self.assertEqual(g.ask("POST", "/ui/session", "bearer=x", Authorization=None, Origin=g.url, Content_Type="application/x-www-form-urlencoded").status, 415)

    def test_files_have_the_policy_and_addresses_of_their_build(self):
        d = self.daemon(config=CONFIG)
        g = Gateway(self, d)
        index = g.ask("GET", "/", Authorization=None)
        self.assertEqual((index.status, index.headers["Cache-Control"]), (200, "no-store"))
        policy = index.headers["Content-Security-Policy"]
        for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"):
            self.assertIn(part, policy)
        self.assertNotIn("unsafe", policy)
        page = index.body.decode()
        addresses = {a for a in page.split('"') if a.startswith("/ui/")}
        self.assertGreater(len(addresses), 20)
        self.assertNotRegex(page, r"<script(?![^>]* src=)|<style|\son[a-z]+=|https?://")
        for address in addresses:
            answer = g.ask("GET", address, Authorization=None)
            self.assertEqual(answer.status, 200, address)
            self.assertIn("immutable", answer.headers["Cache-Control"])
        for address in ("/ui/0000000000000000/app.js", "/ui", "/ui/", "/ui/app.js", "/index.html", "/ui/../state/token"):
            self.assertIn(g.ask("GET", address, Authorization=None).status, (400, 404), address)
        self.assertEqual(g.ask("POST", "/", {}, Authorization=None).status, 405)

    def test_baton_ui_names_the_gateway_that_runs_or_runs_one(self):
        d = self.daemon(config=CONFIG)
        p = subprocess.Popen([BIN / "baton", "--state", d.state, "ui"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: p.poll() is None and p.kill())
        url = p.stdout.readline().strip()
        c = http.client.HTTPConnection(url.split("/")[2], timeout=20)
        c.request("GET", "/")
        self.assertEqual(c.getresponse().status, 200)
        c.close()
        told = json.loads(d.cli("ui", "--json"))
        self.assertEqual((told["url"] + "/", told["token"]), (url, str(d.state / "token")))
        pid = json.loads((d.state / "gateway.json").read_text())["pid"]
        p.kill()                                                      # even then it leaves none behind
        p.wait()
        until(lambda: not alive(pid), 10, "the end of the gateway")
        p.stdout.close()
        p.stderr.close()

    def test_plans_may_be_yaml(self):
        d = self.daemon(config=CONFIG)
        g = Gateway(self, d)
        text = "plan:\n  steps:\n    - {agentId: calc, skill: evaluate, task: Add one and two, parameters: {expression: 1+2}}\n"
        made = g.ask("POST", "/v1/plans", text, Content_Type="application/yaml")
        self.assertEqual(made.status, 201, made)
        bad = g.ask("POST", "/v1/lint", "plan:\n  steps: [\n", Content_Type="application/yaml")
        self.assertEqual(bad.status, 400)
        self.assertRegex(bad.json["detail"], r"^body:\d+:\d+: ")


@unittest.skipUnless(shutil.which("chromium"), "SKIPPED: there is no browser; install the package chromium")
class Pages(BatonTest):
    @classmethod
    def setUpClass(cls):
        peers.need("playwright-core")
        peers.need("axe-core")

    def browse(self, scenario, **given):
        """Runs one scenario of dashboard.mjs; on a line {"do": NAME} it calls given[NAME] and answers what that returns."""
        calls = {k: v for k, v in given.items() if callable(v)}
        more = {k: v for k, v in given.items() if not callable(v)}
        p = subprocess.Popen(["node", HERE / "dashboard.mjs", scenario, json.dumps({**more, "modules": str(peers.DIR / "node_modules"), "shots": os.environ.get("BATON_SHOTS"), "all": os.environ.get("BATON_DASHBOARD") == "all"})],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: p.poll() is None and p.kill())
        said = []
        for line in p.stdout:
            try:
                asked = json.loads(line)
            except ValueError:
                said.append(line)
                continue
            p.stdin.write(json.dumps(calls[asked["do"]](*asked.get("with", [])) or {}) + "\n")
            p.stdin.flush()
        error = p.stderr.read()
        self.assertEqual(p.wait(60), 0, "".join(said) + error)
        p.stdin.close()
        p.stdout.close()
        p.stderr.close()
        return "".join(said)

    def world(self):
        d = self.daemon(config=CONFIG)
        g = Gateway(self, d)
        return d, g

    def test_pages_and_actions_by_mouse_and_keyboard(self):
        d, g = self.world()

        def submit(plan, **fields):
            return {"planId": d.ask("plan.submit", plan=plan, **fields)["planId"]}
        out = self.browse("tour", url=g.url, token=d.token(), observer=credential(d, "olga", "observer"), reviewer=credential(d, "rita", "reviewer"), submitter=credential(d, "sven", "submitter"), submit=submit,
                          plan=lambda plan_id: d.ask("plan.get", planId=plan_id), work=str(d.work))
        self.assertIn("all is well", out)

    def test_many_plans_and_a_plan_of_ten_thousand_steps(self):
        d, g = self.world()
        count = 10000 if os.environ.get("BATON_DASHBOARD") == "all" else 120
        step = {"agentId": "calc", "skill": "evaluate", "task": "Add one and two", "parameters": {"expression": "1+2"}}
        ids = [d.ask("plan.submit", plan={"goal": "Plan %d of many" % i, "steps": [dict(step, stepId="a")]})["planId"] for i in range(count - 1)]
        small = {"skill": "evaluate", "parameters": {"expression": "1"}}
        # One that waits, so that nothing runs until the page lets it.
        wide = d.ask("plan.submit", timeout=60, plan={"goal": "Ten thousand steps", "steps": [{"stepId": "w", "wait": {"signal": "go"}, "task": "Wait for the signal", "dependsOn": []},
                                                      *({**small, "stepId": "s%d" % i, "dependsOn": ["w"]} for i in range(1, 9999)), {**small, "stepId": "last", "dependsOn": ["s1"]}]})["planId"]
        self.assertIn("all is well", self.browse("large", url=g.url, token=d.token(), plans=count, oldest=ids[0], wide=wide))

    def test_the_gateway_goes_away_and_comes_back_and_no_event_is_lost(self):
        d, g = self.world()

        def away():
            g.kill9()

        def back():
            g.start()
        plan = {"steps": [{"stepId": "s%d" % i, "agentId": "calc", "skill": "evaluate", "task": "Add one and two", "parameters": {"expression": "1+2"}, "dependsOn": []} for i in range(30)]
                + [{"stepId": "ask", "type": "human_review", "task": "Shall it end?", "dependsOn": []}]}
        out = self.browse("away", url=g.url, token=d.token(), away=away, back=back, submit=lambda: {"planId": d.ask("plan.submit", plan=plan)["planId"]},
                          last=lambda plan_id: {"lastSeq": d.ask("plan.get", planId=plan_id)["lastSeq"]})
        self.assertIn("all is well", out)


if __name__ == "__main__":
    main()
