"""Nobody approves blind: a review shows the values that will run, all of them, and nothing that a terminal would hide."""
import json
import os
import pty
import select
import subprocess
import time

from harness import BIN, main, until
from probe import step
from test_people import Reviewing

EVIL = "\x1b[2Jrm\u202e-rf\u200b/\x9b1m"
SEEN = "<U+001B>[2Jrm<U+202E>-rf<U+200B>/<U+009B>1m"


class Values(Reviewing):
    def results_of(self, **data):
        return lambda r: {"outcome": "completed", "result": {"data": data[r["stepId"]]} if r["stepId"] in data else {"text": "done"}}

    def get(self, review):
        return self.d.ask("review.get", reviewId=review["reviewId"])["review"]

    def show(self, review, *args, code=0):
        return self.d.cli("review", "show", review["reviewId"], *args, code=code)

    def test_a_review_shows_the_values_that_are_sent_and_no_templates(self):
        p = self.probe(work=self.results_of(a={"sum": 1801, "who": ["ann", "bob"]}))
        plan = self.d.submit({"steps": [step("a"), step("b", task="pay {{results.a.sum}} to {{results.a.who}}", dependsOn=["a"], effects="unsafe",
                                                        parameters={"all": "{{results.a}}", "n": "{{results.a.sum}}", "to": "{{results.a.who.0}}!"},
                                                        requiresApproval=True)]})
        listed = self.review(plan, "before_step")
        whole = self.get(listed)
        values = {"all": {"sum": 1801, "who": ["ann", "bob"]}, "n": 1801, "to": "ann!"}
        for review in (listed, whole):
            self.assertEqual((review["task"], review["parameters"]), ('pay 1801 to ["ann","bob"]', values))
            self.assertEqual((review["prompt"], review["agentId"], review["effects"]), (review["task"], "probe", "unsafe"))
        self.assertEqual(whole["upstreamResults"][0]["data"], {"sum": 1801, "who": ["ann", "bob"]})
        for text in (self.d.cli("reviews", plan), self.show(listed)):
            self.assertNotIn("{{", text)
            for word in ("1801", "ann!", "probe", "unsafe"):
                self.assertIn(word, text)
        self.decide(listed, "approve")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        sent = p.of("step.execute")[-1]
        self.assertEqual((sent["task"], sent["parameters"]), (whole["task"], whole["parameters"]), "what was seen is what ran")

    def test_every_kind_of_review_shows_what_runs_next(self):
        def work(r):
            if r["stepId"] == "a":
                return {"outcome": "completed", "result": {"data": {"n": 7}}}
            if r["stepId"] == "asks" and r["attempt"] == 1:
                return {"outcome": "needs_input", "need": {"kind": "text", "prompt": "Which?", "schema": {"type": "string"}}}
            if r["stepId"] == "wants" and r["attempt"] == 1:
                return {"outcome": "needs_approval", "need": {"kind": "approval", "prompt": "Sure?"}}
            return {"outcome": "failed", "failure": {"code": "INVALID", "class": "PERMISSION_DENIED", "message": "no key"}}
        self.probe(work=work, capacity=4)
        more = {"dependsOn": ["a"], "task": "use {{results.a.n}}", "parameters": {"n": "{{results.a.n}}"}}
        plan = self.d.submit({"steps": [step("a"), step("asks", **more), step("wants", **more), step("fails", onFailure="ask", **more),
                                        {"stepId": "person", "type": "human_review", "task": "Is {{results.a.n}} right?", "dependsOn": ["a"]}],
                              "policy": {"maxConcurrency": 5}})
        reviews = until(lambda: (lambda r: len(r) == 4 and r)({r["stepId"]: r for r in self.d.ask("review.list", planId=plan)["reviews"]}), 15, "four wait")
        self.assertEqual({k: (r["kind"], r["prompt"], r["task"]) for k, r in reviews.items()}, {
            "asks": ("input", "Which?", "use 7"), "wants": ("approval", "Sure?", "use 7"), "fails": ("failure", "no key", "use 7"),
            "person": ("human_review", "Is 7 right?", "Is 7 right?")})
        for name in ("asks", "wants", "fails"):
            self.assertEqual(reviews[name]["parameters"], {"n": 7})
        self.d.ask("plan.cancel", planId=plan)
        self.d.wait_plan(plan)

    def test_an_unknown_outcome_shows_the_values_and_that_effects_may_happen_twice(self):
        self.probe(work=self.work)
        self.gate("pay")
        plan = self.d.submit({"steps": [step("a"), step("pay", task="pay {{results.a}}", dependsOn=["a"], effects="unsafe", parameters={"sum": 7},
                                                        stepTimeoutMs=300, fallbackAgents=[])]})
        review = self.review(plan, "unknown_outcome")
        self.assertEqual((review["task"], review["parameters"], review["effects"]), ("pay done a", {"sum": 7}, "unsafe"))
        for text in (review["prompt"], self.show(review), self.d.cli("reviews", plan)):
            self.assertIn("Approve runs it again: its effects may happen twice", text)
        self.decide(review, "approve")
        self.gates["pay"].set()
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")

    def test_a_change_of_agent_is_approved_again(self):
        """An approval names the agent."""
        self.probe(work=lambda r: {"outcome": "failed", "failure": {"code": "X", "class": "SERVICE_UNAVAILABLE", "message": "down"}})
        other = self.probe("other", work=self.work)
        plan = self.d.submit({"steps": [step("a", requiresApproval=True, fallbackAgents=["other"], maxRetries=0)], "policy": {"maxFallbacks": 4}})
        first = self.review(plan, "before_step")
        self.assertEqual(first["agentId"], "probe")
        self.decide(first, "approve")
        again = until(lambda: next((r for r in self.d.ask("review.list", planId=plan)["reviews"] if r["reviewId"] != first["reviewId"]), None), 15, "asked again")
        self.assertEqual((again["kind"], again["agentId"], other.of("step.execute")), ("before_step", "other", []))
        self.decide(again, "approve")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")

    def test_data_for_an_agent_must_fit_what_it_asks_for(self):
        def work(r):
            if r["attempt"] == 1:
                return {"outcome": "needs_input", "need": {"kind": "form", "prompt": "Which years?", "schema": {
                    "type": "object", "required": ["from"], "properties": {"from": {"type": "integer"}}, "additionalProperties": False}}}
            return {"outcome": "completed", "result": {"data": {"got": r.get("parameters", {}), "words": r.get("feedback", "")}}}
        self.probe(work=work)
        plans = [self.d.submit({"steps": [step("a")]}) for _ in range(2)]
        review = self.review(plans[0], "input")
        for edit, wrong in (({"from": "long ago"}, "/from: expected an integer"), ({}, "from"), ({"from": 1, "till": 2}, "till"), (7, "expected an object")):
            answer = self.d.ask_raw("review.decide", reviewId=review["reviewId"], decision="approve", edit=edit)
            self.assertEqual((answer["ok"], answer.get("error", {}).get("code")), (False, "INVALID"), answer)
            self.assertIn(wrong, answer["error"]["message"])
        answer = self.d.ask_raw("review.decide", reviewId=review["reviewId"], decision="approve")
        self.assertIn('"from"', answer["error"]["message"], "a yes is no year")
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve", edit={"from": 1999})
        self.assertEqual(self.d.wait_plan(plans[0])["status"], "completed")
        self.assertIn('"from":1999', self.d.cli("result", plans[0], "a"))
        self.d.ask("review.decide", reviewId=self.review(plans[1], "input")["reviewId"], decision="approve", comment="ask Ann")
        self.assertEqual(self.d.wait_plan(plans[1])["status"], "completed", "words are for the agent to understand")

    def test_values_that_cannot_be_made_are_named(self):
        self.probe(work=self.results_of(a={"sum": 1}))
        plan = self.d.submit({"steps": [step("a"), step("b", dependsOn=["a"], requiresApproval=True, parameters={"x": "{{results.a.gone}}"})]})
        review = self.review(plan, "before_step")
        self.assertIn("gone", review["error"])
        self.assertNotIn("parameters", review)
        self.assertIn("gone", self.show(review))

    def test_a_sign_off_shows_the_whole_plan(self):
        self.probe(work=self.work)
        plan = self.d.submit({"goal": "tidy", "policy": {"signoff": True, "budget": {"tokens": 500}}, "steps": [
            step("a", task="look", parameters={"deep": True}), step("b", task="remove", dependsOn=["a"], effects="unsafe", requiresApproval=True)]})
        review = self.review(plan, "plan")
        self.assertEqual((review["stepCount"], review["revision"], review["budget"]), (2, 1, {"tokens": 500}))
        whole = self.get(review)
        self.assertEqual([(s["stepId"], s["agentId"], s["task"], s.get("parameters"), s["effects"], s.get("requiresApproval", False)) for s in whole["steps"]],
                         [("a", "probe", "look", {"deep": True}, whole["steps"][0]["effects"], False), ("b", "probe", "remove", None, "unsafe", True)])
        for text in (self.d.cli("reviews", plan), self.show(review), self.d.cli_any("approve", plan).stderr):
            for word in ("look", '"deep"', "remove", "unsafe", "500 tokens", "probe"):
                self.assertIn(word, text)
        self.review(plan, "before_step")

    def test_large_values_are_cut_with_a_mark_and_shown_whole(self):
        rows = [{"id": i, "name": "n%d" % i} for i in range(6000)]
        self.probe(work=self.results_of(a=rows))
        plan = self.d.submit({"steps": [step("a"), step("b", dependsOn=["a"], parameters={"rows": "{{results.a}}"}, requiresApproval=True)]})
        review = self.review(plan, "before_step")
        self.assertFalse("parameters" in review, "the list has none of that size")
        self.assertGreater(review["parametersLen"], 65536)
        listed = self.d.cli("reviews", plan)
        self.assertRegex(listed, r"parameters {1,}.*… \d+ more")
        self.assertIn("baton review show " + review["reviewId"], listed)
        self.assertLess(len(listed), 8000)
        self.assertTrue(self.get(review)["parameters"] == {"rows": rows}, "all of it")
        self.assertTrue('"n5999"' in self.show(review), "the last one")
        self.assertEqual(json.loads(self.show(review, "--as", "json"))["parameters"]["rows"][-1], rows[-1])
        table = self.show(review, "--as", "table")
        self.assertEqual(table.splitlines()[0], "rows: 6000 rows")
        self.assertRegex(table.splitlines()[-1], r"^5999 +n5999$")
        self.show(review, "--as", "diff", code=2)
        self.show(review, "--as", "picture", code=2)

    def test_before_and_after_are_a_diff(self):
        self.probe(work=self.work)
        plan = self.d.submit({"steps": [step("a", requiresApproval=True, parameters={"before": "one\ntwo\nthree", "after": "one\n2\nthree\nfour"})]})
        diff = self.show(self.review(plan, "before_step"), "--as", "diff")
        self.assertEqual(diff.splitlines(), ["--- before (parameters)", "+++ after", "  one", "- two", "+ 2", "  three", "+ four"])

    def test_nothing_is_hidden_by_what_a_value_does_to_a_terminal(self):
        self.probe(work=self.results_of(a={"cmd": EVIL}))
        plan = self.d.submit({"steps": [step("a"), step("b", task="run {{results.a.cmd}}", dependsOn=["a"], parameters={"cmd": "{{results.a.cmd}}"},
                                                        requiresApproval=True)]})
        review = self.review(plan, "before_step")
        shown = [self.d.cli("reviews", plan), self.show(review), self.terminal("review", "show", review["reviewId"], "--no-pager")]
        done = self.d.cli_any("approve", plan, "b")
        shown.append(done.stderr)
        for text in shown:
            self.assertIn("run " + SEEN, text)
            for c in "\x1b\u202e\u200b\x9b":
                self.assertNotIn(c, text)

    def terminal(self, *args):
        """Its output on a terminal."""
        pid, fd = pty.fork()
        if pid == 0:
            os.execv(BIN / "baton", ["baton", *args, "--state", str(self.d.state)])
        out = b""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if select.select([fd], [], [], 0.2)[0]:
                try:
                    got = os.read(fd, 65536)
                except OSError:
                    break
                if not got:
                    break
                out += got
        os.close(fd)
        os.waitpid(pid, 0)
        return out.decode()

    def test_run_shows_what_it_stops_for(self):
        self.probe(work=self.results_of(a={"n": 41}))
        path = self.write_plan(self.d, "p.json", {"steps": [step("a"), step("b", task="use {{results.a.n}}", dependsOn=["a"],
                                                                            parameters={"n": "{{results.a.n}}"}, requiresApproval=True)]})
        done = self.d.cli_any("run", "--plan", path)
        self.assertEqual(done.returncode, 4, done.stderr)
        for word in ("use 41", '{"n":41}', "/b/r1  before_step", "baton approve"):
            self.assertIn(word, done.stderr)
        done = self.d.cli_any("run", "--plan", self.write_plan(self.d, "q.json", {"policy": {"signoff": True}, "steps": [step("z", task="the deed")]}))
        self.assertEqual(done.returncode, 4, done.stderr)
        for word in ("the deed", "/r1  plan", "1 step"):
            self.assertIn(word, done.stderr)

    def test_chat_shows_the_values_before_its_question(self):
        self.probe(work=self.results_of(a={"n": 41}))
        self.d.ask("plan.submit", sessionId="S", plan={"goal": "g", "steps": [
            step("a"), step("b", task="use {{results.a.n}}", dependsOn=["a"], parameters={"n": "{{results.a.n}}"}, requiresApproval=True)]})
        (plan,) = [p["planId"] for p in self.d.ask("plan.list")["plans"]]
        self.review(plan, "before_step")
        said = subprocess.run([BIN / "baton", "chat", "--session", "S", "--state", self.d.state], input="yes\n", capture_output=True, text=True, timeout=60)
        self.assertIn("use 41", said.stderr)
        self.assertIn('{"n":41}', said.stderr)
        self.assertLess(said.stderr.index("use 41"), said.stderr.index("(yes or no)"))
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")


class Who(Reviewing):
    def decided(self, plan):
        return [e for e in self.d.events(plan) if e["type"] == "review_decided"]

    def one(self, **more):
        plan = self.d.submit({"steps": [step("a", requiresApproval=True, **more)]})
        return plan, self.review(plan, "before_step")

    def test_who_decided_when_and_from_where_is_in_events_history_and_the_list(self):
        self.probe(work=self.work)
        import pwd
        import socket
        user, host = pwd.getpwuid(os.getuid()).pw_name, socket.gethostname()[:64]
        plan, review = self.one()
        self.d.cli("approve", review["reviewId"], "--comment", "fine")
        self.d.wait_plan(plan)
        (event,) = self.decided(plan)
        by = event["by"]
        self.assertEqual((by["user"], by["host"], by["via"]), (user, host, "baton approve"))
        self.assertRegex(by["address"], r"^127\.0\.0\.1:\d+$")
        (told,) = self.d.ask("plan.history", planId=plan)["reviews"]
        self.assertEqual((told["by"], told["decidedAt"]), (by, event["timestamp"]))
        for text in (self.d.cli("reviews", "--all"), self.d.cli("reviews", "--all", plan), self.d.cli("history", plan), self.d.cli("events", plan)):
            self.assertIn("%s@%s" % (user, host), text)
            self.assertIn("baton approve", text)
        late = self.refused("CONFLICT", "review.decide", reviewId=review["reviewId"], decision="reject")
        self.assertIn("%s@%s" % (user, host), late["message"])
        (one,) = [r for r in json.loads(self.d.cli("reviews", "--all", "--json")) if r["planId"] == plan]
        self.assertEqual((one["reviewId"], one["by"]), (review["reviewId"], by))

    def test_who_is_a_bounded_claim_and_the_daemon_adds_the_address(self):
        self.probe(work=self.work)
        plan, review = self.one()
        claim = {"user": "eve", "host": "h" * 64, "via": "x\x1b[2J\u202e", "address": "10.0.0.1:1"}
        self.refused("LIMIT", "review.decide", reviewId=review["reviewId"], decision="approve", by={**claim, "host": "h" * 65})
        self.decide(review, "approve", by=claim)
        self.d.wait_plan(plan)
        (event,) = self.decided(plan)
        self.assertEqual((event["by"]["user"], event["by"]["host"]), ("eve", "h" * 64))
        self.assertRegex(event["by"]["address"], r"^127\.0\.0\.1:\d+$")
        for text in (self.d.cli("reviews", "--all"), self.d.cli("history", plan), self.d.cli("events", plan)):
            self.assertNotIn("\x1b", text)
            self.assertNotIn("\u202e", text)
            self.assertIn("eve", text)

    def test_nobody_in_time_is_the_supervisor_and_a_client_may_say_nothing(self):
        self.known("probe")
        plan, _ = self.one(approvalTimeoutMs=50)
        self.d.wait_plan(plan)
        self.assertEqual(self.decided(plan)[0]["by"], {"via": "supervisor"})
        plan, review = self.one()
        self.decide(review, "reject")
        self.assertEqual(sorted(self.decided(plan)[0]["by"]), ["address", "id"])

    def test_words_in_a_chat_name_the_person_too(self):
        self.probe(work=self.work)
        self.d.ask("plan.submit", sessionId="S", plan={"goal": "g", "steps": [step("a", requiresApproval=True)]})
        (plan,) = [p["planId"] for p in self.d.ask("plan.list")["plans"]]
        self.review(plan, "before_step")
        subprocess.run([BIN / "baton", "chat", "--session", "S", "--state", self.d.state], input="yes\n", capture_output=True, text=True, timeout=60)
        self.d.wait_plan(plan)
        self.assertEqual(self.decided(plan)[0]["by"]["via"], "baton chat")


if __name__ == "__main__":
    main()
