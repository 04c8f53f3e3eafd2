#!/usr/bin/env python3
"""Incoming hooks: POST /hooks/NAME starts a recipe when its secret or signature is right, once for each key."""
import base64
import hashlib
import hmac
import json
import subprocess
import time

import gateway
from gateway import CALC, Gateway
from harness import BIN, BatonTest, main, until

SECRET, NEXT = "a-secret-of-24-characters", "another-secret-of-many-more"
WHSEC = "whsec_" + base64.b64encode(b"k" * 24).decode()
RECIPE = """
recipe: {name: evaluate}
inputs: {type: object, properties: {expression: {type: string}, times: {type: integer, default: 1}}, required: [expression]}
steps:
  - {stepId: a, agentId: calc, skill: evaluate, task: "Evaluate", parameters: {expression: "({{inputs.expression}}) * {{inputs.times}}"}}
"""
HOOKS = """
github: {plan: recipe.yaml, scheme: hmac, secretFile: %(file)s, inputs: {expression: /head/0/a~1b, times: /times}, idempotency: X-GitHub-Delivery}
gitlab: {plan: recipe.yaml, scheme: token, header: X-Gitlab-Token, secretFile: %(file)s, inputs: {expression: /e}, idempotency: /id}
bearer: {plan: recipe.yaml, scheme: token, secretEnv: BATON_TEST_HOOK, inputs: {expression: /e}}
standard: {plan: recipe.yaml, scheme: standard, secretFile: %(whsec)s, inputs: {expression: /e}, idempotency: webhook-id}
"""


def setUpModule():
    gateway.need()


class Incoming(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CALC)
        self.file, self.whsec = self.secret("one", SECRET), self.secret("two", WHSEC)
        (self.d.work / "recipe.yaml").write_text(RECIPE)
        (self.d.work / "hooks.yaml").write_text(HOOKS % {"file": self.file, "whsec": self.whsec})
        self.g = Gateway(self, self.d, "--hooks", self.d.work / "hooks.yaml")

    def secret(self, name, text):
        file = self.d.work / name
        file.write_text(text + "\n")
        file.chmod(0o600)
        return file

    def post(self, name, body, **headers):
        return self.g.ask("POST", "/hooks/" + name, body if isinstance(body, str) else json.dumps(body), Authorization=headers.pop("Authorization", None), **headers)

    def github(self, body, key="d1", secret=SECRET, prefix="sha256="):
        text = json.dumps(body)
        return self.post("github", text, X_Hub_Signature_256=prefix + hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest(), X_GitHub_Delivery=key)

    def standard(self, at=None, body='{"e": "6*7"}', id_="m1"):
        at = int(time.time()) if at is None else at
        mac = base64.b64encode(hmac.new(b"k" * 24, ("%s.%d.%s" % (id_, at, body)).encode(), hashlib.sha256).digest()).decode()
        return self.post("standard", body, webhook_id=id_, webhook_timestamp=str(at), webhook_signature="v1,AAAA v1," + mac)

    def result(self, answer):
        self.assertEqual(answer.status, 202, answer)
        plan = answer.json["planId"]
        self.d.wait_plan(plan)
        return self.d.ask("plan.result", planId=plan)["aggregatedResult"]

    def test_each_scheme_starts_the_recipe_with_inputs_of_the_body(self):
        self.assertIn("42", self.result(self.github({"head": [{"a/b": "6*7"}]})))
        self.assertIn("84", self.result(self.github({"head": [{"a/b": "6*7"}], "times": 2}, "d2", prefix="")))
        self.assertIn("5", self.result(self.post("gitlab", {"e": "2+3", "id": 7}, X_Gitlab_Token=SECRET)))
        self.assertIn("42", self.result(self.standard()))

    def test_the_same_key_is_the_same_plan(self):
        first = self.github({"head": [{"a/b": "1"}]}, "same")
        self.assertEqual(first.json, self.github({"head": [{"a/b": "1"}]}, "same").json)
        self.assertNotEqual(first.json, self.github({"head": [{"a/b": "1"}]}, "other").json)
        self.g.kill9()
        self.g.start()
        self.assertEqual(first.json, self.github({"head": [{"a/b": "1"}]}, "same").json)
        one = self.post("gitlab", {"e": "1", "id": 7}, X_Gitlab_Token=SECRET)
        self.assertEqual(one.json, self.post("gitlab", {"e": "1", "id": 7}, X_Gitlab_Token=SECRET).json)
        self.assertNotEqual(one.json, self.post("gitlab", {"e": "1", "id": "7"}, X_Gitlab_Token=SECRET).json)

    def test_what_came_of_requests_is_listed_over_http(self):
        def listed(name):
            return next(h for h in self.g.ask("GET", "/v1/hooks").json["hooks"] if h["name"] == name)
        until(lambda: self.g.ask("GET", "/v1/hooks").json["hooks"], 10, "the file")
        self.assertEqual([(h["name"], h["scheme"], h["started"], h["refused"]) for h in self.g.ask("GET", "/v1/hooks").json["hooks"]],
                         [("github", "hmac", 0, 0), ("gitlab", "token", 0, 0), ("bearer", "token", 0, 0), ("standard", "standard", 0, 0)])
        plan = self.post("gitlab", {"e": "1", "id": 7}, X_Gitlab_Token=SECRET).json["planId"]
        self.assertEqual([self.post("gitlab", {"e": "1"}, X_Gitlab_Token="wrong").status, self.post("gitlab", "{", X_Gitlab_Token=SECRET).status], [401, 400])
        until(lambda: listed("gitlab")["refused"] == 2, 10, "three requests")
        shown = listed("gitlab")
        self.assertEqual((shown["started"], shown["lastStatus"], shown["lastPlanId"], shown["lastAt"][:2]), (1, 400, plan, "20"), shown)
        self.assertNotIn("lastAt", listed("github"))
        self.assertNotIn(SECRET, self.g.ask("GET", "/v1/hooks").body.decode())
        self.g.kill9()
        self.g.args = ()
        self.g.start()
        self.assertEqual(self.g.ask("GET", "/v1/hooks").json["hooks"], [])                # this one has none

    def test_two_secrets_count_while_one_takes_the_place_of_the_other(self):
        self.file.write_text(NEXT + "\n" + SECRET + "\n")
        body = {"head": [{"a/b": "1"}]}
        self.assertEqual([self.github(body, "k%d" % i, s).status for i, s in enumerate((SECRET, NEXT))], [202, 202])
        self.file.write_text(NEXT + "\n")
        self.assertEqual([self.github(body, "k%d" % i, s).status for i, s in enumerate((SECRET, NEXT))], [401, 202])
        self.file.chmod(0o644)
        self.assertEqual(self.github(body, "k9", NEXT).status, 503)

    def test_who_proves_nothing_gets_401_then_429_and_who_has_the_secret_does_not_notice(self):
        before = len(self.d.ask("plan.list")["plans"])
        good = {"e": "1", "id": 1}
        for headers in ({}, {"X_Gitlab_Token": ""}, {"X_Gitlab_Token": SECRET[:-1]}, {"X_Gitlab_Token": SECRET + "x"}, {"X_Gitlab_Token": "Bearer " + SECRET},
                        {"Authorization": "Bearer " + self.d.token()}, {"Authorization": "Bearer " + SECRET}):
            answer = self.post("gitlab", good, **headers)
            self.assertEqual((answer.status, answer.headers["Content-Type"]), (401, "application/problem+json"), answer)
        statuses = [self.post("gitlab", good).status for _ in range(5)]
        self.assertEqual((set(statuses), statuses[-1]), ({401, 429}, 429))
        self.assertGreater(int(self.post("gitlab", good).headers["Retry-After"]), 0)
        self.assertEqual(self.github({"head": [{"a/b": "1"}]}).status, 202)
        self.assertEqual(self.post("gitlab", good, X_Gitlab_Token=SECRET).status, 202)   # nobody can lock out who has the secret
        self.assertEqual(len(self.d.ask("plan.list")["plans"]), before + 2)

    def test_old_signatures_and_changed_bodies_are_refused(self):
        now = int(time.time())
        self.assertEqual([self.standard(now - 400).status, self.standard(now + 400).status, self.standard(now - 200).status], [401, 401, 202])
        text = json.dumps({"head": [{"a/b": "1"}]})
        mac = hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).hexdigest()
        for body, signature in ((text + " ", mac), (text, mac[:-1]), (text, mac + "0"), (text, "sha1=" + mac), (text, "")):
            self.assertEqual(self.post("github", body, X_Hub_Signature_256=signature, X_GitHub_Delivery="x").status, 401, (body, signature))

    def test_what_is_wrong_is_a_problem_with_its_reason(self):
        self.assertEqual(self.post("none", {}).status, 404)
        self.assertEqual(self.g.ask("GET", "/hooks/github").status, 405)
        self.assertEqual(self.post("bearer", {"e": "1"}, Authorization="Bearer " + SECRET).status, 503)   # the gateway has no such variable
        self.assertEqual(self.post("gitlab", "{", X_Gitlab_Token=SECRET).status, 400)
        self.assertEqual(self.post("gitlab", "[1]", X_Gitlab_Token=SECRET).status, 400)
        self.assertEqual(self.post("gitlab", "[" * 100, X_Gitlab_Token=SECRET).status, 400)
        self.assertEqual(self.post("gitlab", "", X_Gitlab_Token=SECRET).status, 400)
        self.assertEqual(self.post("gitlab", '"' + "x" * (1 << 20) + '"', X_Gitlab_Token=SECRET).status, 413)
        self.assertEqual(self.post("gitlab", "e=1", X_Gitlab_Token=SECRET, Content_Type="application/x-www-form-urlencoded").status, 415)
        missing = self.post("gitlab", {"id": 1}, X_Gitlab_Token=SECRET)
        self.assertEqual(missing.status, 400)
        self.assertIn("expression", missing.json["message"] if "message" in missing.json else missing.json["detail"])
        wrong = self.post("gitlab", {"id": 1, "e": ["{{results.a}}"]}, X_Gitlab_Token=SECRET)
        self.assertEqual(wrong.status, 400, wrong)
        keyless = self.post("gitlab", {"e": "1"}, X_Gitlab_Token=SECRET)
        self.assertEqual(keyless.status, 400, keyless)
        self.d.kill9()
        self.assertEqual(self.post("gitlab", {"id": 9, "e": "1"}, X_Gitlab_Token=SECRET, timeout=60).status, 503)

    def test_a_file_of_hooks_that_is_wrong_is_named_at_the_start(self):
        fine = "plan: recipe.yaml, scheme: token, secretEnv: X"
        for text, words in (("[]", "object"), ("{", "hooks.yaml"), ("A: {%s}" % fine, "a-z"), ("a: {scheme: token, secretEnv: X}", "plan"), ("a: {plan: no.yaml, scheme: token, secretEnv: X}", "no.yaml"),
                            ("a: {plan: recipe.yaml, secretEnv: X}", "scheme"), ("a: {plan: recipe.yaml, scheme: token}", "secretFile"), ("a: {plan: recipe.yaml, scheme: token, secretFile: x}", "absolute"),
                            ("a: {%s, inputs: [x]}" % fine, "inputs"), ("a: {%s, inputs: {x: e}}" % fine, "pointer"), ("a: {%s, inputs: {x: /~2}}" % fine, "pointer"),
                            ("a: {%s, idempotency: /~}" % fine, "pointer"), ("".join("h%d: {%s}\n" % (i, fine) for i in range(65)), "at most 64")):
            (self.d.work / "hooks.yaml").write_text(text)
            done = subprocess.run([BIN / "baton-gateway", "--state", self.d.state, "--hooks", self.d.work / "hooks.yaml"], capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 1, (text, done))
            self.assertIn(words, done.stderr, text)


if __name__ == "__main__":
    main()
