"""How plans end, and how that is told: what was not done stands at the end of the answer, in the exit code, in chat."""
import json

from harness import main, until
from probe import step
from test_phases import Phases, data, failed, text

PARTIAL = 8
BETWEEN = "\n\n---\n\n"


class Endings(Phases):
    def setUp(self):
        super().setUp()
        self.start()

    def start(self):
        return self.agent("a", execute=lambda r: failed("broken\nby `rm`", retryable=False) if r["task"].startswith("fail") else text("done " + r["stepId"]))

    def bad(self, name, **more):
        return {**step(name, "a", **more), "task": "fail " + name}

    def writer(self, answer):
        self.agent("w", ["synthesize"], synthesize=answer)

    def result(self, plan_id=None):
        return self.d.ask("plan.result", planId=plan_id or self.plan)

    def file(self, steps, **plan):
        return self.write_plan(self.d, "plan.json", {"steps": steps, **plan})


class NotDone(Endings):
    """M029: the answer of a partial plan ends with what was not done, and why."""

    PARTLY = "**Not done**\n- Step 2 \"fail b\" failed: broken by `rm`"

    def partly(self, **plan):
        return self.run_plan([step("a", "a"), self.bad("b", onFailure="continue")], **plan)

    def test_joined_results_end_with_it(self):
        view = self.run_plan([step("a", "a"), self.bad("b", onFailure="skip"), step("c", "a")])
        self.assertEqual((view["status"], view["outcome"]), ("completed", "partial"))
        self.assertEqual(self.result()["aggregatedResult"], BETWEEN.join([
            "**do a**\ndone a", "**fail b**\n_Skipped_", "**do c**\ndone c",
            "**Not done**\n- Step 2 \"fail b\" was skipped: broken by `rm`"]))

    def test_single_result_ends_with_it(self):
        self.partly()
        self.assertEqual(self.result()["aggregatedResult"], "done a" + BETWEEN + self.PARTLY)
        self.assertEqual(self.event("plan_completed")["summary"], "done a" + BETWEEN + self.PARTLY)

    def test_every_step_that_was_not_done_is_named_with_its_reason(self):
        self.run_plan([self.bad("a", dependsOn=[]), step("b", "a", dependsOn=["a"]), step("c", "a", dependsOn=[])],
                      policy={"continueOnFailure": True})
        self.assertTrue(self.result()["aggregatedResult"].endswith(
            BETWEEN + "**Not done**\n- Step 1 \"fail a\" failed: broken by `rm`\n"
            "- Step 2 \"do b\" was skipped: A dependency failed"), self.result())

    def test_more_than_twenty_are_counted(self):
        for n, end in ((20, "- Step 21 \"fail s20\" failed: broken by `rm`"),
                       (21, "- Step 21 \"fail s20\" failed: broken by `rm`\n- 1 more step: baton status %s"),
                       (22, "- Step 21 \"fail s20\" failed: broken by `rm`\n- 2 more steps: baton status %s")):
            self.run_plan([step("a", "a", dependsOn=[])] + [self.bad("s%d" % i, dependsOn=[]) for i in range(1, n + 1)],
                          policy={"continueOnFailure": True, "maxFallbacks": 0})
            self.assertTrue(self.result()["aggregatedResult"].endswith(end % self.plan if "%" in end else end), self.result())

    def test_answer_of_a_model_ends_with_it(self):
        self.writer(text("All is well."))
        self.partly(policy={"synthesis": {"agentId": "w"}})
        self.assertEqual(self.event("synthesis_finished")["ok"], True)
        self.assertEqual(self.result()["aggregatedResult"], "All is well." + BETWEEN + self.PARTLY)

    def test_answer_of_data_keeps_it_and_ends_with_it(self):
        self.writer({"outcome": "completed", "result": {"data": {"n": 3}}})
        self.partly(policy={"synthesis": {"agentId": "w"}})
        self.assertEqual(self.result()["aggregatedResult"], '{"n":3}' + BETWEEN + self.PARTLY)

    def test_results_that_are_joined_because_the_model_failed_end_with_it(self):
        self.writer(failed("no words", retryable=False))
        self.partly(policy={"synthesis": {"agentId": "w"}, "maxFallbacks": 0})
        self.assertEqual(self.event("synthesis_finished").get("ok", False), False)
        self.assertEqual(self.result()["aggregatedResult"], "done a" + BETWEEN + self.PARTLY)

    def test_it_is_there_after_a_long_answer_too(self):
        long = "x" * 70000
        self.writer(text(long))
        self.d.ask("session.say", sessionId="S", text="hello")
        self.partly(policy={"synthesis": {"agentId": "w"}}, sessionId="S")
        self.assertEqual(self.result()["aggregatedResult"], long + BETWEEN + self.PARTLY)
        message = self.d.ask("session.get", sessionId="S")["messages"][-1]
        self.assertTrue(message["truncated"])
        self.assertTrue(message["text"].startswith("xxxx") and message["text"].endswith(BETWEEN + self.PARTLY), message["text"][-300:])
        self.assertLessEqual(len(message["text"]), 65000)

    def test_largest_result_is_cut_for_it(self):
        largest = 3 * 1024 * 1024 - 100
        self.agent("big", execute=text("y" * largest))
        self.run_plan([step("a", "big"), self.bad("b", onFailure="continue")])
        answer = self.result()["aggregatedResult"]
        self.assertTrue(answer.startswith("yyy") and answer.endswith(
            "y\n\n[cut: the step's own result is whole]" + BETWEEN + self.PARTLY +
            "\n\n**Not whole**\n- Step 2 \"fail b\" read only a part of the results before it"), answer[-300:])
        self.assertGreater(len(answer), largest - 1000)

    def test_reasons_outlive_the_daemon(self):
        self.plan = self.d.submit({"steps": [self.bad("b", onFailure="continue", dependsOn=[]), step("a", "a", requiresApproval=True, dependsOn=[])],
                                   "policy": {"maxConcurrency": 1}})
        until(lambda: self.d.ask("review.list", planId=self.plan).get("reviews"), 20, "a review")
        self.d.kill9()
        self.d.start(agents=False)
        self.agent("a")
        self.decide("approve")
        self.assertEqual(self.result()["aggregatedResult"], "done a" + BETWEEN + "**Not done**\n- Step 1 \"fail b\" failed: broken by `rm`")

    def test_what_a_person_left_out_is_no_failure_and_is_named_when_something_else_failed(self):
        self.plan = self.d.submit({"steps": [step("a", "a"), step("b", "a", requiresApproval=True), self.bad("c", onFailure="continue")]})
        self.decide("skip")
        self.assertTrue(self.result()["aggregatedResult"].endswith(
            "**Not done**\n- Step 2 \"do b\" was skipped by a person: not today\n- Step 3 \"fail c\" failed: broken by `rm`"), self.result())
        self.plan = self.d.submit({"steps": [step("a", "a"), step("b", "a", requiresApproval=True), step("c", "a")]})
        self.assertEqual(self.decide("skip")["outcome"], "success")
        self.assertNotIn("Not done", self.result()["aggregatedResult"])

    def decide(self, decision):
        review = until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 20, "a review")[0]
        self.d.ask("review.decide", reviewId=review["reviewId"], decision=decision, comment="not today")
        return self.d.wait_plan(self.plan)

    def test_failed_plans_have_their_own_sentence(self):
        view = self.run_plan([step("a", "a"), self.bad("b"), step("c", "a")])
        self.assertEqual((view["outcome"], self.result()["aggregatedResult"]), ("failed", "done a"))


class ExitCodes(Endings):
    def plan(self):
        return self.file([step("a", "a"), self.bad("b", onFailure="continue")])

    def id_of(self, done):
        return done.stderr.split()[1]

    def test_run_exits_8_and_shows_why(self):
        done = self.d.cli_any("run", "--plan", self.plan())
        self.assertEqual((done.returncode, done.stdout), (PARTIAL, "done a" + BETWEEN + NotDone.PARTLY + "\n"), done)
        self.assertIn("partial", done.stderr)
        quiet = self.d.cli_any("run", "--plan", self.plan(), "--quiet")
        self.assertEqual((quiet.returncode, quiet.stderr.splitlines()[-1]),
                         (PARTIAL, "baton: plan %s is partial: its answer ends with what was not done" % self.d.ask("plan.list")["plans"][0]["planId"]), quiet)

    def test_allow_partial_makes_it_0(self):
        done = self.d.cli_any("run", "--plan", self.plan(), "--allow-partial")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("Not done", done.stdout)

    def test_allow_partial_hides_no_failure(self):
        self.d.cli("run", "--plan", self.file([self.bad("b")]), "--allow-partial", code=3)

    def test_result_retry_and_fork_say_it_too(self):
        plan = self.id_of(self.d.cli_any("run", "--plan", self.plan()))
        self.d.cli("result", plan, code=PARTIAL)
        self.d.cli("result", plan, "--allow-partial")
        self.d.cli("result", plan, "a")
        self.d.cli("result", plan, "b", code=3)
        self.d.cli("retry", plan, "--wait", code=PARTIAL)
        self.d.cli("retry", plan, "--wait", "--allow-partial")
        self.d.cli("fork", plan, "--from", "b", "--wait", code=PARTIAL)
        self.d.cli("fork", plan, "--from", "b", "--wait", "--allow-partial")

    def test_json_says_it(self):
        done = self.d.cli_any("run", "--plan", self.plan(), "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)["outcome"]), (PARTIAL, "partial"))

    def test_step_that_was_asked_for_does_not_hide_the_plans_end(self):
        self.d.cli("run", "--plan", self.plan(), "--result", "a", code=PARTIAL)

    def test_chat_says_it_and_exits_8(self):
        self.agent("p", ["plan"], plan=data({"steps": [step("a", "a"), self.bad("b", onFailure="continue")]}))
        done = self.d.cli_any("chat", "--planner", "agent:p", stdin="do both\n")
        self.assertEqual(done.returncode, PARTIAL, done)
        self.assertIn("- the plan is partial: not all of it was done\n", done.stderr)
        self.assertTrue(done.stdout.endswith("done a" + BETWEEN + NotDone.PARTLY + "\n"), done.stdout)
        session = self.d.ask("session.list")["sessions"][0]["sessionId"]
        messages = self.d.ask("session.get", sessionId=session)["messages"]
        self.assertEqual(messages[-1]["text"], "done a" + BETWEEN + NotDone.PARTLY)
        self.d.cli("chat", "--planner", "agent:p", "--allow-partial", stdin="do both\n")
        done = self.d.cli_any("chat", "--planner", "agent:p", "--json", stdin="do both\n")
        self.assertEqual((done.returncode, json.loads(done.stdout.splitlines()[-1])["outcome"]), (PARTIAL, "partial"), done)

    def test_answer_without_a_plan_says_why_there_is_none(self):
        self.agent("p", ["plan"], plan=failed("no idea", retryable=False))
        self.writer(text("I can only say this"))
        done = self.d.cli_any("run", "dance", "--planner", "agent:p", "--on-invalid-plan", "synthesize", "--synthesis", "agent:w")
        self.assertEqual((done.returncode, done.stdout), (
            PARTIAL, "I can only say this" + BETWEEN + "**Not done**\n- No plan was made: no idea\n"), done)



class Results(Endings):
    """M081: plan.result has the plan, the result of every step, and the handoffs."""

    def test_everything_is_in_it(self):
        self.agent("b", execute={"outcome": "completed", "result": {"data": {"n": 1}}, "usage": {"inputTokens": 3, "outputTokens": 2}})
        self.run_plan([step("a", "a"), step("b", "b"), self.bad("c", onFailure="continue")], goal="do it")
        r = self.result()
        self.assertEqual((r["status"], r["outcome"], r["success"]), ("completed", "partial", False))
        view = self.d.ask("plan.get", planId=self.plan)
        self.assertEqual({k: v for k, v in r["plan"].items()}, {k: v for k, v in view.items() if k not in ("v", "type", "id", "ok")})
        self.assertEqual([(s["stepId"], s.get("stepIndex", 0), s["status"], s.get("success", False), s.get("result")) for s in r["steps"]], [
            ("a", 0, "completed", True, {"text": "done a"}), ("b", 1, "completed", True, {"data": {"n": 1}}), ("c", 2, "failed", False, None)])
        self.assertEqual((r["steps"][1]["tokenUsage"], r["steps"][2]["error"]), ({"inputTokens": 3, "outputTokens": 2}, "broken\nby `rm`"))
        self.assertEqual([(h["fromAgentId"], h["toAgentId"]) for h in r["handoffs"]], [("supervisor", "a"), ("a", "b"), ("b", "a")])
        self.assertEqual([k for k in r if k.endswith("runcated")], [])
        shown = json.loads(self.d.cli("result", self.plan, "--json", code=PARTIAL))
        self.assertEqual((shown["plan"], shown["steps"], shown["handoffs"]), (r["plan"], r["steps"], r["handoffs"]))

    def test_plan_that_runs_has_its_results_so_far(self):
        self.plan = self.d.submit({"steps": [step("a", "a"), step("b", "a", requiresApproval=True)]})
        until(lambda: self.d.ask("review.list", planId=self.plan).get("reviews"), 20, "a review")
        r = self.result()
        self.assertEqual([(s["stepId"], s["status"], s.get("result")) for s in r["steps"]], [("a", "completed", {"text": "done a"}), ("b", "waiting", None)])
        self.assertIn("waiting", r["plan"]["steps"][1])

    def test_steps_false_leaves_them_out(self):
        self.run_plan([step("a", "a")])
        r = self.d.ask("plan.result", planId=self.plan, steps=False)
        self.assertEqual((r["aggregatedResult"], "plan" in r, "steps" in r, len(r["handoffs"])), ("done a", False, False, 1))

    def test_pages_of_a_thousand_steps(self):
        for n in (1000, 1001):
            self.run_plan([step("s%d" % i, "a", dependsOn=[]) for i in range(n)])
            r = self.result()
            self.assertEqual((len(r["steps"]), len(r["plan"]["steps"]), r.get("stepsTruncated", False), r["plan"].get("stepsTruncated", False)),
                             (1000, 1000, n > 1000, n > 1000))
        page = self.d.ask("plan.result", planId=self.plan, fromStep=1000)
        self.assertEqual(([s["stepId"] for s in page["steps"]], page["steps"][0]["stepIndex"], [s["stepId"] for s in page["plan"]["steps"]],
                          "stepsTruncated" in page, "aggregatedResult" in page, "handoffs" in page), (["s1000"], 1000, ["s1000"], False, False, False))
        self.assertNotIn("steps", self.d.ask("plan.result", planId=self.plan, fromStep=1001))
        shown = json.loads(self.d.cli("result", self.plan, "--json"))
        self.assertEqual(([s["stepId"] for s in shown["steps"]], len(shown["plan"]["steps"]), "stepsTruncated" in shown, "stepsTruncated" in shown["plan"]),
                         (["s%d" % i for i in range(1001)], 1001, False, False))

    def test_results_that_have_no_room_are_named(self):
        self.agent("big", execute=lambda r: text("y" * (300 * 1024)))
        self.run_plan([step("s%d" % i, "big", dependsOn=[]) for i in range(3)])
        r = self.result()
        self.assertEqual([(s.get("resultTruncated", False), "result" in s) for s in r["steps"]], [(False, True), (True, False), (True, False)])
        self.assertEqual(len(self.d.ask("plan.result", planId=self.plan, stepId="s2")["result"]["text"]), 300 * 1024)

    def test_largest_answer_leaves_its_steps_to_the_next_page(self):
        self.agent("big", execute=lambda r: text("\"" * (3 * 1024 * 1024 // 2 - 200)))  # twice as long in JSON
        self.run_plan([step("a", "big"), step("b", "a")])
        r = self.result()
        self.assertGreater(len(r["aggregatedResult"]), 1500000)
        shown = json.loads(self.d.cli("result", self.plan, "--json"))
        self.assertEqual(([s["stepId"] for s in shown["steps"]], "stepsTruncated" in shown), (["a", "b"], False))

    def test_handoffs_beyond_a_thousand_are_named(self):
        self.agent("b")
        for n in (1000, 1001):
            self.run_plan([step("s%d" % i, "ab"[i % 2]) for i in range(n)])
            r = self.result()
            self.assertEqual((len(r["handoffs"]), r.get("handoffsTruncated", False), r.get("truncated", False)), (1000, n > 1000, n > 1000))



class NotWhole(Endings):
    """A result that is not whole is named at the end; it does not change the exit code."""

    def test_it_is_named_in_the_answer_the_event_the_view_and_on_stderr(self):
        self.agent("p", execute={"outcome": "completed", "result": {"text": "1000 rows", "truncated": True}})
        end = "**Not whole**\n- Step 2 \"do b\" gave only a part of its result"
        done = self.d.cli_any("run", "--plan", self.file([step("a", "a"), step("b", "p")]))
        self.plan = done.stderr.split()[1]
        self.assertEqual((done.returncode, done.stdout), (0, "**do a**\ndone a" + BETWEEN + "**do b**\n1000 rows" + BETWEEN + end + "\n"), done)
        self.assertIn("baton: results are not whole: b\n", done.stderr)
        for carries in (self.event("plan_completed"), self.d.ask("plan.get", planId=self.plan), self.result()):
            self.assertEqual((carries["outcome"], carries["truncatedSteps"], "truncatedStepsTotal" in carries), ("success", ["b"], False))
        self.assertEqual(self.result()["steps"][1]["result"]["truncated"], True)
        done = self.d.cli_any("result", self.plan)
        self.assertEqual((done.returncode, done.stderr), (0, "baton: results are not whole: b\n"), done)

    def test_it_comes_after_what_was_not_done(self):
        self.agent("p", execute={"outcome": "completed", "result": {"text": "1000 rows", "truncated": True}})
        self.run_plan([step("a", "p"), self.bad("b", onFailure="continue")])
        self.assertEqual(self.result()["aggregatedResult"], "1000 rows" + BETWEEN + NotDone.PARTLY +
                         "\n\n**Not whole**\n- Step 1 \"do a\" gave only a part of its result")

    def test_an_event_names_sixteen_and_counts_all(self):
        self.agent("p", execute={"outcome": "completed", "result": {"text": "x", "truncated": True}})
        for n in (16, 17):
            self.run_plan([step("s%d" % i, "p", dependsOn=[]) for i in range(n)])
            e = self.event("plan_completed")
            self.assertEqual((e["truncatedSteps"], e.get("truncatedStepsTotal")), (["s%d" % i for i in range(16)], n if n > 16 else None))
            self.assertEqual(len(self.d.ask("plan.get", planId=self.plan)["truncatedSteps"]), n)
        said = self.d.cli_any("result", self.plan).stderr
        self.assertEqual(said, "baton: results are not whole: %s and 7 more\n" % ", ".join("s%d" % i for i in range(10)))


class ReadInPart(Endings):
    """A step that read only a part of the results before it is named at the end like one that gave only a part."""

    CUT = {"contextResultBytes": 10}
    READ = "read only a part of the results before it"

    def start(self):
        self.agents = [super().start(), self.agent("long", execute=text("x" * 11)),
                       self.agent("part", execute={"outcome": "completed", "result": {"text": "1000 rows", "truncated": True}})]

    def carriers(self):
        return self.event("plan_completed"), self.d.ask("plan.get", planId=self.plan), self.result()

    def test_it_is_named_in_the_answer_the_event_the_view_and_on_stderr(self):
        steps = [step("one", "long"), step("two", "part"), step("three", "a", contextScope="none")]
        done = self.d.cli_any("run", "--plan", self.file(steps, policy=self.CUT))
        self.plan = done.stderr.split()[1]
        self.assertEqual(done.returncode, 0, done)
        self.assertTrue(done.stdout.endswith(BETWEEN + "**Not whole**\n- Step 2 \"do two\" gave only a part of its result, and " + self.READ + "\n"), done.stdout)
        said = "baton: results are not whole: two\nbaton: steps read only a part of the results before them: two\n"
        self.assertIn(said, done.stderr)
        self.assertEqual(self.d.cli_any("result", self.plan).stderr, said)
        for carries in self.carriers():
            self.assertEqual((carries["outcome"], carries["truncatedSteps"], carries["contextTruncatedSteps"],
                              "contextTruncatedStepsTotal" in carries), ("success", ["two"], ["two"], False))
        self.assertIn("read in part by: two", self.d.cli("events", self.plan))

    def test_a_step_at_the_limit_is_not_named(self):
        self.run_plan([step("one", "long"), step("two", "a")], policy={"contextResultBytes": 11})
        for carries in self.carriers():
            self.assertNotIn("contextTruncatedSteps", carries)
        self.assertNotIn("Not whole", self.result()["aggregatedResult"])

    def review(self):
        return until(lambda: self.d.ask("review.list")["reviews"], 20, "a review is open")[0]["reviewId"]

    def restart(self):
        self.d.kill9()
        for p in self.agents:
            p.close()
        self.d.start(agents=False)
        self.start()

    def asks(self, last, **more):
        steps = [step("one", "long"), *last, step("end", "a", requiresApproval=True, **more)]
        self.plan = self.d.submit({"goal": "g", "steps": steps, "policy": self.CUT})
        return self.review()

    def test_a_step_that_failed_is_named_too(self):
        self.run_plan([step("one", "long"), self.bad("two", onFailure="continue")], policy=self.CUT)
        self.assertTrue(self.result()["aggregatedResult"].endswith("\n\n**Not whole**\n- Step 2 \"fail two\" " + self.READ))

    def test_a_step_without_an_attempt_has_read_nothing(self):
        self.d.ask("review.decide", reviewId=self.asks([]), decision="skip")
        self.d.wait_plan(self.plan)
        for carries in self.carriers():
            self.assertNotIn("contextTruncatedSteps", carries)

    def test_an_attempt_after_an_approval_and_a_restart_is_named(self):
        review = self.asks([])
        self.restart()
        self.d.ask("review.decide", reviewId=review, decision="approve")
        self.d.wait_plan(self.plan)
        for carries in self.carriers():
            self.assertEqual(carries["contextTruncatedSteps"], ["end"])

    def test_it_is_named_after_a_restart_in_the_middle(self):
        review = self.asks([step("two", "a")], contextScope="none")
        before = self.d.ask("plan.get", planId=self.plan)["contextTruncatedSteps"]
        self.restart()
        self.assertEqual(self.d.ask("plan.get", planId=self.plan)["contextTruncatedSteps"], before)
        self.d.ask("review.decide", reviewId=review, decision="skip")
        self.d.wait_plan(self.plan)
        for carries in self.carriers():
            self.assertEqual(carries["contextTruncatedSteps"], ["two"])
        self.assertIn("- Step 2 \"do two\" " + self.READ, self.result()["aggregatedResult"])

    def test_an_event_names_sixteen_and_counts_all(self):
        for n in (16, 17):
            self.run_plan([step("one", "long")] + [step("s%d" % i, "a", dependsOn=["one"], contextScope="deps") for i in range(n)], policy=self.CUT)
            e = self.event("plan_completed")
            self.assertEqual((e["contextTruncatedSteps"], e.get("contextTruncatedStepsTotal")), (["s%d" % i for i in range(16)], n if n > 16 else None))
            self.assertEqual(len(self.d.ask("plan.get", planId=self.plan)["contextTruncatedSteps"]), n)


class Sessions(Endings):
    """M009, C25: a session with an open plan goes on with it, or refuses another one with its id."""

    STEPS = [step("a", "a", requiresApproval=True)]

    def ask(self, **fields):
        return self.d.ask_raw("plan.submit", **{"sessionId": "S", "plan": {"goal": "ship it", "steps": self.STEPS}, **fields})

    def test_same_request_goes_on(self):
        first = self.ask()
        self.assertNotIn("continued", first)
        again = self.ask(clientKey="other")
        self.assertEqual((again["planId"], again["continued"], again["existing"]), (first["planId"], True, True))
        by_goal = self.d.ask("plan.submit", sessionId="S", goal="ship it", planner="")
        self.assertEqual((by_goal["planId"], by_goal["continued"]), (first["planId"], True))
        self.assertEqual(len(self.d.ask("plan.list", sessionId="S")["plans"]), 1)

    def test_another_one_is_refused_with_the_id_and_the_ways(self):
        first = self.ask()["planId"]
        for other in ({"plan": {"goal": "x", "steps": self.STEPS}}, {"policy": {"planTimeoutMs": 99999}},
                      {"plan": {"goal": "ship it", "sessionId": "S", "steps": self.STEPS, "policy": {"maxRetries": 1}}, "sessionId": ""}):
            error = self.ask(**other)["error"]
            self.assertEqual((error["code"], error["details"]), ("CONFLICT", {"planId": first}))
            self.assertEqual(error["message"], "session 'S' has the open plan %s: wait for it (baton status), cancel it (baton cancel), or use another session" % first)
        self.assertEqual(self.ask(sessionId="T")["ok"], True)
        self.assertEqual(self.ask(sessionId="", plan={"goal": "no session", "steps": self.STEPS})["ok"], True)

    def test_after_its_end_a_new_one_is_made(self):
        first = self.ask()["planId"]
        self.d.ask("plan.cancel", planId=first)
        self.d.wait_plan(first)
        again = self.ask()
        self.assertEqual((again["planId"] != first, "continued" in again), (True, False))

    def test_dry_runs_are_in_nobodys_way(self):
        first = self.ask()["planId"]
        dry = self.ask(dryRun=True)
        self.assertEqual((dry["ok"], dry["planId"] != first), (True, True))
        self.assertEqual(self.ask()["planId"], first)

    def test_it_is_so_after_a_restart(self):
        first = self.ask()["planId"]
        self.d.kill9()
        self.d.start(agents=False)
        self.agent("a")
        self.assertEqual((self.ask()["planId"], self.ask(plan={"goal": "x", "steps": self.STEPS})["error"]["code"]), (first, "CONFLICT"))

    def test_run_goes_on_and_is_refused_in_words(self):
        path = self.file(self.STEPS, goal="ship it")
        done = self.d.cli_any("run", "--plan", path, "--session", "S")
        self.assertEqual(done.returncode, 4, done)
        plan = done.stderr.split()[1]
        done = self.d.cli_any("run", "--plan", path, "--session", "S", "--detach")
        self.assertEqual((done.returncode, done.stdout, done.stderr.splitlines()[0]), (0, plan + "\n", "plan %s goes on: it is open in the session" % plan))
        done = self.d.cli_any("run", "--plan", self.file(self.STEPS, goal="another"), "--session", "S")
        self.assertEqual((done.returncode, plan in done.stderr, "use another session" in done.stderr), (2, True, True), done)


class DryRuns(Endings):
    def test_it_is_listed_as_such(self):
        done = self.d.cli_any("run", "--plan", self.file([step("a", "a")]), "--dry-run")
        self.assertEqual(done.returncode, 0, done)
        self.plan = done.stderr.split()[1]
        real = self.d.submit({"steps": [step("a", "a")]})
        self.d.wait_plan(real)
        view = self.d.ask("plan.get", planId=self.plan)
        self.assertEqual((view["status"], view["dryRun"], view["steps"][0]["status"], view["counts"]), ("planned", True, "pending", {"total": 1}))
        self.assertNotIn("dryRun", self.d.ask("plan.get", planId=real))
        listed = {p["planId"]: (p["status"], p.get("dryRun", False)) for p in self.d.ask("plan.list")["plans"]}
        self.assertEqual(listed, {self.plan: ("planned", True), real: ("completed", False)})
        for status, found in (("planned", [self.plan]), ("completed", [real])):
            self.assertEqual([p["planId"] for p in self.d.ask("plan.list", status=status)["plans"]], found)
        self.assertIn("planned", [line for line in self.d.cli("status").splitlines() if self.plan in line][0])
        self.assertIn("planned, outcome success, dry run", self.d.cli("status", self.plan))
        self.assertEqual(self.event("plan_completed")["dryRun"], True)
        r = self.result()
        self.assertEqual((r["status"], r["dryRun"], r["plan"]["status"]), ("completed", True, "planned"))
        again = self.d.wait_plan(self.d.ask("plan.retry", planId=self.plan)["planId"])
        self.assertEqual((again["status"], again["steps"][0]["status"], "dryRun" in again), ("completed", "completed", False))


class Views(Endings):
    def test_plan_has_the_time_of_its_last_change(self):
        self.plan = self.d.submit({"steps": [step("a", "a"), step("b", "a", requiresApproval=True)]})
        until(lambda: self.d.ask("review.list", planId=self.plan).get("reviews"), 20, "a review")
        waits = self.d.ask("plan.get", planId=self.plan)
        self.assertEqual(waits["updatedAt"], self.d.events(self.plan)[-1]["timestamp"])
        self.assertGreaterEqual(waits["updatedAt"], waits["createdAt"])
        self.d.ask("review.decide", reviewId=waits["steps"][1]["waiting"]["reviewId"], decision="approve")
        ended = self.d.wait_plan(self.plan)
        self.assertEqual(ended["updatedAt"], ended["completedAt"])


BREAKER = """
policy:
  maxRetries: 0
  breaker: {failures: 2, cooldownMs: 60000, cooldownMaxMs: 60000}
agents: []
"""


class Circuit(Endings):
    """An agent whose circuit is open is seen where a person looks."""

    def setUp(self):
        self.d = self.daemon(config=BREAKER, agents=False)
        self.agent("a", execute=failed("no backend", **{"class": "SERVICE_UNAVAILABLE"}))
        for _ in range(2):
            self.run_plan([step("s", "a")], policy={"maxFallbacks": 0})

    def test_it_is_seen_in_agents(self):
        self.assertRegex(self.d.cli("agents"), r"circuit open, tried again in \d+(\.\d+)? ?s")
        self.assertEqual(self.d.cli("agents", "a").count("circuit open, tried again in "), 2, "the agent and its instance")
        listed = self.d.ask("agents.list")["agents"][0]
        self.assertEqual((listed["breaker"]["state"], listed["instances"][0]["breaker"]["state"]), ("open", "open"))

    def test_it_is_seen_in_the_tree_of_the_plan_that_waits(self):
        path = self.file([step("s", "a")])
        done = self.d.cli_any("run", "--plan", path, "--timeout", "6s")
        self.assertEqual(done.returncode, 124, done)
        self.assertRegex(done.stderr, r"s +a +do s  — waiting: circuit of agent a open until 20\d\d-\S+Z\n")
        plan = done.stderr.split()[1]
        waiting = self.d.ask("plan.get", planId=plan)["steps"][0]["waiting"]
        self.assertEqual((waiting["kind"], waiting["text"]), ("breaker", "waiting: circuit of agent a open until " + waiting["until"]))
        self.assertIn(waiting["text"][:-len(".000Z")], self.d.cli("status", plan))
        self.d.ask("plan.cancel", planId=plan)
        quiet = self.d.cli_any("run", "--plan", path, "--timeout", "3s", "--quiet")
        self.assertNotIn("circuit", quiet.stderr)


if __name__ == "__main__":
    main()
