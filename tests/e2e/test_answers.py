"""What a person reads of a plan's end: its values with every digit, no line too many."""
import json

from harness import BatonTest, main, until
from probe import Probe, step, wait_up

NUMBERS = {"safe": 9007199254740991, "negative": -9007199254740991, "round": 10 ** 15 + 1, "part": 0.1, "small": 1}


class Answers(BatonTest):
    def setUp(self):
        self.d = self.daemon(config="", agents=False)

    def probe(self, work=None, agent_id="probe", **more):
        def echo(r):
            return {"outcome": "completed", "result": {"data": r["parameters"]}}
        p = Probe(self.d, agent_id, work=work or echo, **more)
        self.addCleanup(p.close)
        wait_up(self.d, agent_id)
        return p

    def run_plan(self, *steps, args=(), code=0, **more):
        """-> stdout, stderr, plan id"""
        path = self.write_plan(self.d, "plan.json", {"goal": "what was asked", "steps": list(steps), **more})
        done = self.d.cli_any("run", "--all", "--plan", path, *args)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr, self.d.ask("plan.list", limit=1)["plans"][0]["planId"]


class Numbers(Answers):
    """cJSON's printer rounds to 15 digits: 2^53 - 1 was 9.00719925474099e+15."""

    def shown(self, plan):
        self.assertEqual(json.loads(self.d.cli("result", plan, "a", "--json"))["result"]["data"], json.loads(self.d.cli("result", plan, "a")))
        return json.loads(self.d.cli("result", plan, "a"))

    def test_of_a_plan_file_keep_every_digit(self):
        p = self.probe()
        _, _, plan = self.run_plan(step("a", parameters=NUMBERS))
        self.assertEqual(p.of("step.execute")[0]["parameters"], NUMBERS)
        self.assertEqual(self.shown(plan), NUMBERS)
        self.assertIn("1000000000000001", self.d.cli("result", plan, "a"))

    def test_of_a_recipes_inputs_keep_every_digit(self):
        self.probe()
        inputs = {"type": "object", "properties": {"n": {"type": "integer"}, "m": {"type": "integer", "default": 10 ** 15 + 1}}, "required": ["n"]}
        _, _, plan = self.run_plan(step("a", parameters={"n": "{{inputs.n}}", "m": "{{inputs.m}}"}), inputs=inputs,
                                   args=["--input", "n=9007199254740991"])
        self.assertEqual(self.shown(plan), {"n": 9007199254740991, "m": 10 ** 15 + 1})

    def test_of_a_modification_keep_every_digit(self):
        p = self.probe()
        _, _, plan = self.run_plan(step("a", parameters=NUMBERS, requiresApproval=True), args=["--detach"])
        self.d.cli("approve", plan, "--edit", json.dumps(NUMBERS))
        self.d.wait_plan(plan)
        self.assertEqual(p.of("step.execute")[0]["parameters"], NUMBERS)


    def test_over_2_to_53_that_a_person_gives_are_not_rounded(self):
        p = self.probe()
        over = {"n": 2 ** 53 + 1}
        _, _, plan = self.run_plan(step("a", parameters={"n": 1}, requiresApproval=True), args=["--detach"])
        self.d.cli("approve", plan, "--edit", json.dumps(over))
        self.d.wait_plan(plan)
        self.assertEqual(p.of("step.execute")[0]["parameters"], over)
        inputs = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        path = self.write_plan(self.d, "recipe.json", {"inputs": inputs, "steps": [step("a", parameters={"n": "{{inputs.n}}"})]})
        for args in (["--input", "n=9007199254740993"], ["--inputs", json.dumps(over)]):
            done = self.d.cli_any("run", "--plan", path, *args)
            self.assertEqual((done.returncode, "an integer over 2^53 cannot be held exactly here" in done.stderr), (2, True), done)

    def test_of_an_agent_keep_every_digit_in_each_form(self):
        over = {"over": 2 ** 53 + 1, "below": -2 ** 53 - 1, "most": 2 ** 64 - 1, "least": -2 ** 63, "edge": 2 ** 53}
        self.probe(lambda r: {"outcome": "completed", "result": {"data": over}})
        out, _, plan = self.run_plan(step("a"), args=["--json"])
        self.assertEqual(json.loads(out)["steps"][0]["result"]["data"], over)
        self.assertEqual(self.shown(plan), over)
        whole = json.loads(self.d.cli("result", plan, "--json"))
        self.assertEqual(whole["steps"][0]["result"]["data"], over)
        self.assertEqual(json.loads(whole["aggregatedResult"]), over)
        for form in ("yaml", "jsonl"):
            said = self.d.cli("result", plan, "-o", form)
            for n in over.values():
                self.assertRegex(said, r"(?m)\b%s\b" % str(n).lstrip("-"), form)


class Lines(Answers):
    def test_a_text_that_ends_with_a_line_is_followed_by_none(self):
        for text, shown in (("one\n[not whole: 1 of 2]\n", "one\n[not whole: 1 of 2]\n"), ("one", "one\n"), ("a\n\nb\n\n", "a\n\nb\n\n")):
            with self.subTest(text):
                p = self.probe(lambda r, text=text: {"outcome": "completed", "result": {"text": text}}, "lines-%d" % len(text))
                out, _, plan = self.run_plan(step("a", agent=p.registration["card"]["agentId"]))
                self.assertEqual(out, shown)
                self.assertEqual(self.d.cli("result", plan), shown)
                self.assertEqual(self.d.cli("result", plan, "a"), shown)


class Timeouts(Answers):
    HINT = "no result after 0.300 s (timeoutMs: 300); set timeoutMs of the step, or stepTimeoutMs of the policy"

    def late(self):
        return self.probe(lambda r: None)  # it never answers

    def test_the_hint_names_the_fields_by_the_names_that_they_are_read_by(self):
        self.late()
        _, told, plan = self.run_plan(step("a", timeoutMs=300), policy={"maxRetries": 0, "stepTimeoutMs": 70000}, code=3)
        self.assertNotIn("is read as", told)
        self.assertEqual(self.d.ask("plan.get", planId=plan)["steps"][0]["hint"], self.HINT)


    def test_every_place_that_tells_the_failure_names_seconds_and_setting(self):
        self.late()
        last = "Step 1 failed: Step execution timeout; " + self.HINT
        out, told, plan = self.run_plan(step("a", timeoutMs=300), policy={"maxRetries": 0}, args=["--quiet"], code=3)
        self.assertEqual((out, told.splitlines()[-1]), ("I wasn't able to complete the plan due to errors.\n", "baton: " + last))
        self.assertEqual(self.d.cli_any("result", plan).stderr, "baton: %s\n" % last)
        self.assertIn("Step execution timeout; " + self.HINT, self.d.cli_any("result", plan, "a").stderr)
        self.assertIn("Step execution timeout; " + self.HINT, self.d.cli("status", plan))
        self.assertEqual(self.d.ask("plan.get", planId=plan)["failureReason"], "Step 1 failed: Step execution timeout")
        answer = self.d.ask("plan.result", planId=plan)
        self.assertEqual((answer["failureReason"], answer["steps"][0]["hint"]), (last, self.HINT))
        (end,) = [e for e in self.d.events(plan) if e["type"] == "plan_completed"]
        self.assertEqual((end["failureReason"], end["hint"]), ("Step 1 failed: Step execution timeout", self.HINT))
        self.assertIn(last, self.d.cli("events", plan))
        self.d.kill9()
        self.d.start(agents=False)
        self.assertEqual(self.d.cli_any("result", plan).stderr, "baton: %s\n" % last)

    def test_not_done_names_seconds_and_setting(self):
        self.late()
        self.probe(agent_id="quick")
        out, _, _ = self.run_plan(step("a", timeoutMs=300), step("b", agent="quick", parameters={"n": 1}, dependsOn=[]),
                                  policy={"maxRetries": 0, "continueOnFailure": True}, code=8)
        self.assertIn('- Step 1 "do a" failed: Step execution timeout; %s\n' % self.HINT, out)


class Failures(Answers):
    def fail(self, r):
        return {"outcome": "failed", "failure": {"code": "INVALID", "class": "VALIDATION_ERROR", "message": "no " + r["stepId"], "retryable": False}}

    def test_run_and_result_name_each_failed_step_with_its_reason(self):
        self.probe(self.fail, capacity=3)
        steps = [step(s, dependsOn=[]) for s in ("a", "b", "c")]
        out, told, plan = self.run_plan(*steps, policy={"maxRetries": 0, "continueOnFailure": True}, args=["--quiet"], code=3)
        self.assertEqual(out, "I wasn't able to complete the plan due to errors.\n")
        lines = ["baton: No step completed", "  step 1 (a) failed: no a", "  step 2 (b) failed: no b", "  step 3 (c) failed: no c"]
        self.assertEqual([line for line in told.splitlines() if "[style]" not in line], lines)
        self.assertEqual(self.d.cli_any("result", plan).stderr.splitlines(), lines)

    def test_the_step_that_the_reason_names_is_not_named_twice(self):
        self.probe(self.fail)
        _, told, _ = self.run_plan(step("a"), policy={"maxRetries": 0}, args=["--quiet"], code=3)
        self.assertEqual([line for line in told.splitlines() if "[style]" not in line], ["baton: Step 1 failed: no a"])


class SamePlan(Answers):
    def setUp(self):
        super().setUp()
        self.go = False

        def work(r):
            until(lambda: self.go, 30, "the gate opens")
            return {"outcome": "completed", "result": {"text": "done"}}
        self.addCleanup(lambda: setattr(self, "go", True))
        self.probe(work)

    def file(self, name, **more):
        return self.write_plan(self.d, name, {"goal": "what was asked", "steps": [step("a")], **more})

    def begin(self, *args):
        return self.d.cli("run", "--detach", "--plan", *args).strip()

    def test_the_session_may_be_named_in_the_plan_or_beside_it(self):
        named, unnamed = self.file("named.json", sessionId="S"), self.file("unnamed.json")
        first = self.begin(named)
        for args in ((named,), (named, "--session", "S"), (unnamed, "--session", "S"), (self.file("alias.json", session_id="S"),)):
            self.assertEqual(self.begin(*args), first, args)
        self.assertNotEqual(self.begin(named, "--session", "T"), first)

    def submit(self, key, **more):
        return self.d.ask_raw("plan.submit", plan={"goal": "g", "steps": [step("a")]}, clientKey=key, **{"sessionId": "S", **more})

    def test_a_continued_requests_key_gives_its_plan_after_the_end_and_a_restart(self):
        first = self.submit("one")["planId"]
        second = self.submit("two")
        self.assertEqual((second["planId"], second["continued"]), (first, True))
        self.assertEqual(self.submit("two")["planId"], first)
        self.go = True
        self.d.wait_plan(first)
        self.assertNotEqual(self.submit("three")["planId"], first)
        for _ in range(2):
            again = self.submit("two")
            self.assertEqual((again["planId"], again["existing"], again.get("continued", False)), (first, True, False))
            self.assertEqual(self.submit("two", lenient=True)["error"]["code"], "CONFLICT")
            self.d.kill9()
            self.d.start(agents=False)

    def test_another_plan_is_refused_with_the_open_ones_id(self):
        first = self.begin(self.file("named.json", sessionId="S"))
        for other in (self.file("other.json", sessionId="S", goal="something else"), self.file("policy.json", sessionId="S", policy={"maxRetries": 0})):
            done = self.d.cli_any("run", "--detach", "--plan", other, "--session", "S")
            self.assertIn(first, done.stderr)
            self.assertNotEqual(done.returncode, 0)


class SentTasks(Answers):
    """A template stands for a value only before the step runs."""

    def work(self, r):
        if r["stepId"] == "bad":
            return {"outcome": "failed", "failure": {"code": "INVALID", "class": "VALIDATION_ERROR", "message": "no", "retryable": False}}
        return {"outcome": "completed", "result": {"text": "five" if r["stepId"] == "s1" else "x" * 3000 if r["stepId"] == "long" else "done"}}

    def test_show_the_value_that_was_sent(self):
        p = self.probe(self.work)
        out, told, plan = self.run_plan(step("s1"), step("s2", task="pay {{results.s1}} twice", dependsOn=["s1"]))
        self.assertEqual(p.of("step.execute")[1]["task"], "pay five twice")
        self.assertIn("**pay five twice**\ndone", out)
        self.assertIn("pay five twice", told)
        self.assertEqual(self.d.ask("plan.get", planId=plan)["steps"][1]["task"], "pay five twice")
        for shown in (out, told, self.d.cli("status", plan), self.d.cli("result", plan), self.d.cli("history", plan)):
            self.assertNotIn("{{", shown)
        self.d.kill9()
        self.d.start(agents=False)
        self.assertNotIn("{{", self.d.cli("status", plan))

    def test_that_were_not_sent_keep_the_template(self):
        self.probe(self.work)
        out, _, plan = self.run_plan(step("s1"), step("bad", task="pay {{results.s1}} once", dependsOn=["s1"]),
                                     step("c", task="repay {{results.bad}}", dependsOn=["bad"]), policy={"maxRetries": 0, "onFailure": "continue"}, code=8)
        self.assertIn('- Step 2 "pay five once" failed: no', out)
        self.assertIn("repay {{results.bad}}", self.d.cli("status", plan) + out)

    def test_that_are_long_are_cut_with_a_mark(self):
        self.probe(self.work)
        out, _, plan = self.run_plan(step("long"), step("s2", task="use {{results.long}}", dependsOn=["long"]))
        self.assertIn("**use " + "x" * 1020 + "…**", out)
        self.assertEqual(self.d.ask("plan.get", planId=plan)["steps"][1]["task"], "use " + "x" * 1020 + "…")


if __name__ == "__main__":
    main()
