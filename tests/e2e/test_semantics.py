"""How steps run, fail and recover, over real sockets and the real journal: order, parallel work, retries, deadlines,
fallbacks, what a failure means for the plan, turns and limits; and the exact texts that people read."""
import threading
import time
import uuid

from harness import main, until
from probe import Probe, step
from test_phases import NONE, Phases, Skilled, data, failed, in_turn, text

ONCE = {"maxRetries": 0, "maxFallbacks": 0}


class Semantics(Phases):
    def ends(self):
        return {e["stepId"]: e for e in self.d.events(self.plan) if e["type"] == "plan_step_completed"}

    def submit(self, steps, **plan):
        self.plan = self.d.submit({"steps": steps, **plan})
        return self.plan

    def result(self):
        return self.d.ask("plan.result", planId=self.plan)


class Order(Semantics):
    """M116: single step, order, events at correct times, handoffs recorded, aggregation, context passed."""

    def test_a_single_step_tells_its_whole_story(self):
        self.agent("a")
        self.run_plan([step("s", "a")], goal="g", sessionId="S")
        e = [x for x in self.d.events(self.plan)]
        self.assertEqual([x["type"] for x in e], ["plan_generated", "plan_started", "plan_step_started", "agent_handoff",
                                                  "plan_step_completed", "plan_completed"])
        self.assertEqual((e[0]["query"], e[0]["estimatedSteps"], e[0]["steps"][0]["task"]), ("g", 1, "do s"))
        self.assertEqual((e[2]["stepIndex"], e[2]["agentId"], e[2]["agentName"], e[2]["task"]), (0, "a", "A", "do s"))
        self.assertEqual((e[3]["fromAgent"]["agentId"], e[3]["toAgent"]["agentId"], e[3]["reason"], e[3]["explanation"]),
                         ("supervisor", "a", "plan_step", "Executing plan step: do s"))
        self.assertEqual((e[4]["status"], e[4]["result"], e[4]["attempts"]), ("completed", "done s", 1))
        self.assertEqual((e[5]["status"], e[5]["outcome"], e[5]["summary"], e[5]["counts"]),
                         ("completed", "success", "done s", {"total": 1, "completed": 1}))
        self.assertTrue(all(x["sessionId"] == "S" and x["planId"] == self.plan for x in e))

    def test_steps_run_in_order_with_what_was_before_them_as_context_and_a_handoff_when_the_agent_changes(self):
        a, b = self.agent("a"), self.agent("b")
        self.run_plan([step("one", "a"), step("two", "a"), step("three", "b")])
        story = [(x["type"], x.get("stepId") or x.get("planStepId")) for x in self.d.events(self.plan) if x["type"] != "plan_generated"]
        self.assertEqual(story, [("plan_started", None),
                                 ("plan_step_started", "one"), ("agent_handoff", "one"), ("plan_step_completed", "one"),
                                 ("plan_step_started", "two"), ("plan_step_completed", "two"),
                                 ("plan_step_started", "three"), ("agent_handoff", "three"), ("plan_step_completed", "three"),
                                 ("plan_completed", None)])
        self.assertEqual([r["context"]["text"] for r in a.asked("execute") + b.asked("execute")],
                         ["Task: do one", "Previous step results:\n- Step 1 (a): done one\n\nCurrent task: do two",
                          "Previous step results:\n- Step 1 (a): done one\n- Step 2 (a): done two\n\nCurrent task: do three"])
        self.assertEqual(self.result()["aggregatedResult"],
                         "**do one**\ndone one\n\n---\n\n**do two**\ndone two\n\n---\n\n**do three**\ndone three")
        self.assertEqual([(h["fromAgentId"], h["toAgentId"], h["planStepId"]) for h in self.result()["handoffs"]],
                         [("supervisor", "a", "one"), ("a", "b", "three")])

    def test_parallel_steps_overlap_in_time_and_no_more_than_allowed(self):
        meet, lock, out = threading.Barrier(2), threading.Lock(), {"now": 0, "most": 0}

        def work(r):
            with lock:
                out["now"] += 1
                out["most"] = max(out["most"], out["now"])
            meet.wait(10)  # nobody gets on alone
            with lock:
                out["now"] -= 1
            return text("met")
        for _ in range(4):
            self.addCleanup(Skilled(self.d, "a", ["do"], execute=work).close)
        until(lambda: len(self.d.ask("agents.list")["agents"][0].get("instances", [])) == 4, 10, "four instances")
        view = self.run_plan([step(s, "a", dependsOn=[]) for s in "abcd"], policy={"maxConcurrency": 2, **ONCE})
        self.assertEqual((view["status"], out["most"]), ("completed", 2), view)
        started, ended = ([e["tsMs"] for e in self.d.events(self.plan) if e["type"] == t] for t in ("plan_step_started", "plan_step_completed"))
        self.assertLessEqual(started[1], ended[0])


class Retries(Semantics):
    def test_three_attempts_with_growing_waits_and_none_after_the_last(self):
        came = []

        def work(r):
            came.append(time.monotonic())
            return failed("no luck %d" % r["attempt"], retryable=True)
        a = self.agent("a", execute=work)
        view = self.run_plan([step("s", "a")])  # all defaults: M022
        gaps = [round(y - x, 1) for x, y in zip(came, came[1:])]
        self.assertEqual(len(came), 3)
        self.assertTrue(1.0 <= gaps[0] < 1.6 and 2.0 <= gaps[1] < 2.6, gaps)
        retries = [e for e in self.d.events(self.plan) if e["type"] == "plan_step_retry"]
        self.assertEqual([(e["attempt"], e["delayMs"], e["error"]) for e in retries], [(1, 1000, "no luck 1"), (2, 2000, "no luck 2")])
        self.assertEqual([r["attempt"] for r in a.asked("execute")], [1, 2, 3])
        self.assertEqual(len({r["key"] for r in a.asked("execute")}), 1, "the key is the same for every attempt")
        self.assertEqual((view["status"], view["failureReason"], view["steps"][0]["attempts"]), ("failed", "Step 1 failed: no luck 3", 3))

    def test_exponential_fixed_and_jitter(self):
        self.agent("a", execute=failed("no", retryable=True))
        for backoff, expected in (({"kind": "exponential", "initialMs": 10, "multiplier": 3, "maxMs": 50}, [10, 30, 50]),
                                  ({"kind": "fixed", "initialMs": 7}, [7, 7, 7]), ({"kind": "linear", "initialMs": 5}, [5, 10, 15])):
            self.run_plan([step("s", "a", maxRetries=3, backoff=backoff)])
            self.assertEqual([e["delayMs"] for e in self.d.events(self.plan) if e["type"] == "plan_step_retry"], expected)
        self.run_plan([step("s", "a", maxRetries=1, backoff={"kind": "fixed", "initialMs": 20, "jitter": 0.5})])
        self.assertTrue(20 <= self.event("plan_step_retry")["delayMs"] <= 30)

    def test_some_failures_are_not_tried_again(self):
        a = self.agent("a", execute=failed("no", **{"class": "RATE_LIMITED"}))
        view = self.run_plan([step("s", "a", noRetry=["RATE_LIMITED"])], policy={"maxFallbacks": 0})
        self.assertEqual((view["status"], len(a.asked("execute"))), ("failed", 1))

    def test_a_failure_without_a_word_says_so(self):
        self.agent("a", execute=failed(""))
        view = self.run_plan([step("s", "a")], policy=ONCE)
        self.assertEqual(view["failureReason"], "Step 1 failed: Unknown error after retries")


class Deadlines(Semantics):
    """Whoever is late here answers when `late` is set, or when the test ends."""

    def setUp(self):
        super().setUp()
        self.late = threading.Event()

    def slow(self, agent_id, times=1, capacity=1):
        """Does not answer the first attempts before `late`."""
        def work(r):
            if r["attempt"] <= times:
                self.late.wait(20)
                return text("late")
            return text("in time")
        p = self.agent(agent_id, execute=work)
        self.addCleanup(self.late.set)
        return p

    def of_class(self, step_id):
        e = self.ends()[step_id]
        return e["status"], e["errorClass"], e["error"]

    def test_attempt_that_takes_too_long(self):
        a = self.slow("a")
        self.submit([step("s", "a", timeoutMs=200, backoff={"initialMs": 1}), step("t", "a", timeoutMs=0)])
        until(lambda: a.asked("execute"), 10, "the slow one is asked")
        self.assertLessEqual(a.asked("execute")[0]["deadlineMs"], 200, "the agent knows how much time it has")
        self.addCleanup(Skilled(self.d, "a", ["do"], execute=text("in time")).close)
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], view["steps"][0]["result"], view["steps"][0]["attempts"]), ("completed", "in time", 2), view)
        retry = self.event("plan_step_retry")
        self.assertEqual((retry["attempt"], retry["error"], retry["errorClass"]), (1, "Step execution timeout", "TIMEOUT"))

    def test_last_attempt_that_takes_too_long_fails_the_step(self):
        self.slow("a")
        view = self.run_plan([step("s", "a", timeoutMs=150)], policy=ONCE)
        self.assertEqual((view["failureReason"], self.of_class("s")), ("Step 1 failed: Step execution timeout",
                                                                      ("failed", "TIMEOUT", "Step execution timeout")))
        self.assertEqual(self.ends()["s"]["stop"], "fenced")

    def test_late_result_counts_when_nothing_newer_has_finished(self):
        a = self.slow("a")
        self.submit([step("s", "a", timeoutMs=150, backoff={"initialMs": 15000})])
        until(lambda: "plan_step_retry" in self.types(), 10, "it is given up")
        self.late.set()
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], view["steps"][0]["result"], len(a.asked("execute"))), ("completed", "late", 1), view)

    def test_silence_ends_an_attempt_and_progress_keeps_it(self):
        a = self.slow("a")
        self.submit([step("s", "a", idleTimeoutMs=400)], policy=ONCE)
        until(lambda: a.asked("execute"), 10, "it was asked")
        r, began = a.asked("execute")[0], time.monotonic()
        for n in range(4):
            self.d.ask("step.progress", key=r["key"], attempt=1, instanceId=a.me["instanceId"], epoch=a.epoch, text="at %d" % n)
            threading.Event().wait(0.2)
        self.assertEqual(self.d.ask("plan.get", planId=self.plan)["status"], "running")
        self.d.wait_plan(self.plan)
        self.assertGreater(time.monotonic() - began, 0.95)
        self.assertEqual(self.of_class("s"), ("failed", "TIMEOUT", "No progress for 400ms"))
        self.assertEqual([e["text"] for e in self.d.events(self.plan) if e["type"] == "plan_step_progress"], ["at %d" % n for n in range(4)])

    def test_limit_of_a_step_is_over_all_its_attempts(self):
        self.agent("a", execute=failed("no", retryable=True))
        self.run_plan([step("s", "a", stepLimitMs=1000, maxRetries=50, backoff={"kind": "fixed", "initialMs": 400})])
        # it ends in a pause: a failure that comes at the limit or later would end it with its own error
        self.assertEqual(self.of_class("s"), ("failed", "TIMEOUT", "Step limit of 1000ms reached"))
        self.assertGreater(self.ends()["s"]["attempts"], 2)

    def test_wait_for_a_busy_agent_has_an_end(self):
        self.slow("a")
        self.submit([step("s", "a", dependsOn=[]), step("t", "a", dependsOn=[], queueTimeoutMs=200, onFailure="continue")])
        until(lambda: "t" in self.ends(), 10, "t is given up")
        self.assertEqual(self.of_class("t")[2], "Queue timeout after 200ms")
        self.late.set()
        self.assertEqual(self.d.wait_plan(self.plan)["outcome"], "partial")

    def test_plan_has_its_own_deadline(self):
        self.slow("a")
        view = self.run_plan([step("s", "a"), step("t", "a")], policy={"planTimeoutMs": 250})
        self.assertEqual((view["status"], view["failureReason"]), ("failed", "Execution timeout after 250ms"))
        self.assertEqual(self.event("plan_completed")["failureKind"], "timeout")
        self.assertEqual(self.of_step(view, "s")["status"], "cancelled")

    def test_agent_that_never_comes(self):
        d = self.daemon(config="policy: {agentWaitMs: 200}\n", agents=False)
        d.ask("agent.register", card={"agentId": "away", "skills": [{"id": "do"}]}, capacity=1, sessionKey="k" * 32,
              instanceId=str(uuid.uuid4()), endpoint="tcp://127.0.0.1:9")
        alternative = Skilled(d, "b", ["do"])
        self.addCleanup(alternative.close)
        other = d.submit({"steps": [step("s", "away", fallbackAgents=["b"])]})
        plan = d.submit({"steps": [step("s", "away")], "policy": {"maxFallbacks": 0}})
        view = d.wait_plan(plan)
        self.assertEqual((view["status"], view["steps"][0]["errorClass"]), ("failed", "AGENT_UNAVAILABLE"))
        plan = other
        self.assertEqual(d.wait_plan(plan)["status"], "completed")
        used = [e for e in d.events(plan) if e["type"] == "fallback_used"]
        self.assertEqual([(e["action"], e["class"], e["agentId"]) for e in used], [("alternative_agent", "AGENT_UNAVAILABLE", "b")])
        self.assertEqual(len(alternative.asked("execute")), 1)


class Fallbacks(Semantics):
    def used(self):
        return [(e["class"], e["action"], e["agentId"], e.get("delayMs", 0), e["fallbacksUsed"]) for e in self.d.events(self.plan)
                if e["type"] == "fallback_used"]

    def test_rate_limit_is_waited_for_longer_each_time_and_once_per_step(self):
        limited = failed("slow down", **{"class": "RATE_LIMITED"})
        self.agent("a", execute=in_turn(limited, text("ok"), limited, limited))
        began = time.monotonic()
        view = self.run_plan([step("s", "a"), step("t", "a")], policy={"maxRetries": 0})
        self.assertGreater(time.monotonic() - began, 6)
        self.assertEqual(self.used(), [("RATE_LIMITED", "wait_and_retry", "a", 2000, 1), ("RATE_LIMITED", "wait_and_retry", "a", 4000, 2)])
        self.assertEqual((view["status"], view["failureReason"]), ("failed", "Step 2 failed: slow down"))

    def test_service_that_is_down_is_waited_for_then_another_agent_does_it(self):
        a = self.agent("a", execute=failed("down", **{"class": "SERVICE_UNAVAILABLE"}))
        b = self.agent("b")
        view = self.run_plan([step("s", "a", fallbackAgents=["b"])], policy={"maxRetries": 0})
        self.assertEqual(self.used(), [("SERVICE_UNAVAILABLE", "wait_and_retry", "a", 2000, 1), ("SERVICE_UNAVAILABLE", "alternative_agent", "b", 0, 2)])
        self.assertEqual((view["status"], len(a.asked("execute")), b.asked("execute")[0]["attempt"]), ("completed", 2, 3))

    def test_whoever_stepped_in_hands_over_to_the_next_step(self):
        self.agent("a", execute=lambda r: failed("no", **{"class": "TOOL_NOT_FOUND"}) if r["stepId"] == "s" else text("ok"))
        self.agent("b")
        self.run_plan([step("s", "a", fallbackAgents=["b"]), step("t", "a")])
        told = [(e["fromAgent"]["agentId"], e["toAgent"]["agentId"], e["reason"]) for e in self.d.events(self.plan) if e["type"] == "agent_handoff"]
        self.assertEqual(told, [("supervisor", "a", "plan_step"), ("a", "b", "fallback"), ("b", "a", "plan_step")])

    def test_other_agents_with_the_skill_take_over_and_the_budget_of_fallbacks_is_the_plans(self):
        for name in "abc":
            self.agent(name, execute=failed("no such tool", **{"class": "TOOL_NOT_FOUND"}))
        steps = [{"stepId": s, "skill": "do", "task": "do it", "dependsOn": []} for s in "st"]
        self.run_plan(steps, policy={"maxFallbacks": 3, "onFailure": "continue", "maxConcurrency": 1})
        self.assertEqual([(a, n) for _, _, a, _, n in self.used()], [("b", 1), ("c", 2), ("b", 3)])
        self.assertEqual({s: e["attempts"] for s, e in self.ends().items()}, {"s": 3, "t": 2})


class Failures(Semantics):
    """What a failed step means for its plan (M024, M025, M028, M029), and what its answer is (M080)."""

    def setUp(self):
        super().setUp()
        self.agent("a", execute=lambda r: failed("broken", retryable=False) if r["task"].startswith("fail") else text("done " + r["stepId"]))

    def bad(self, name, **more):
        return {**step(name, "a", **more), "task": "fail " + name}

    def statuses(self, view):
        return [(s["status"], s.get("reason")) for s in view["steps"]]

    def test_abort_names_the_step_counting_from_1(self):
        view = self.run_plan([step("a", "a"), self.bad("b"), step("c", "a")])
        self.assertEqual((view["status"], view["outcome"], view["failureReason"]), ("failed", "failed", "Step 2 failed: broken"))
        self.assertEqual([s["status"] for s in view["steps"]], ["completed", "failed", "cancelled"])
        self.assertEqual((self.result()["success"], self.result()["aggregatedResult"]), (False, "done a"))

    def test_skip_satisfies_and_is_told_as_skipped(self):
        view = self.run_plan([step("a", "a"), self.bad("b", onFailure="skip"), step("c", "a")])
        self.assertEqual([s["status"] for s in view["steps"]], ["completed", "skipped", "completed"])
        self.assertEqual((view["status"], view["outcome"], self.ends()["b"]["error"]), ("completed", "partial", "broken"))
        self.assertEqual(self.result()["aggregatedResult"], "**do a**\ndone a\n\n---\n\n**fail b**\n_Skipped_\n\n---\n\n**do c**\ndone c"
                         "\n\n---\n\n**Not done**\n- Step 2 \"fail b\" was skipped: broken")

    def test_continue_skips_only_what_depends_on_it(self):
        view = self.run_plan([self.bad("a", dependsOn=[]), step("b", "a", dependsOn=["a"]), step("c", "a", dependsOn=["b"]),
                              step("d", "a", dependsOn=[]), step("e", "a", dependsOn=["a"], runIf="always")], policy={"continueOnFailure": True})
        self.assertEqual(self.statuses(view), [("failed", None), ("skipped", "dependency_failed"), ("skipped", "dependency_failed"),
                                               ("completed", None), ("completed", None)])
        self.assertEqual((view["status"], view["outcome"]), ("completed", "partial"))

    def test_nothing_completed_is_a_failed_plan_with_an_answer(self):
        view = self.run_plan([self.bad("a")], policy={"continueOnFailure": True})
        self.assertEqual((view["status"], self.result()["aggregatedResult"]), ("failed", "I wasn't able to complete the plan due to errors."))
        self.assertEqual(self.event("plan_completed")["summary"], "I wasn't able to complete the plan due to errors.")

    def test_critical_decides_when_nothing_else_does(self):
        for critical, on, expected in ((True, "continue", "failed"), (False, "abort", "completed")):
            view = self.run_plan([self.bad("a", critical=critical, dependsOn=[]), step("b", "a", dependsOn=[])],
                                 policy={"onFailure": on, "maxConcurrency": 1})
            self.assertEqual(view["status"], expected)

    def test_a_person_is_asked(self):
        for decision, expected in (("approve", "failed"), ("skip", "completed"), ("reject", "failed")):
            self.submit([self.bad("a", onFailure="ask"), step("b", "a")])
            review = until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 10, "a review")[0]
            self.assertEqual((review["kind"], review["errorClass"] if "errorClass" in review else "UNKNOWN"), ("failure", "UNKNOWN"))
            self.d.ask("review.decide", reviewId=review["reviewId"], decision=decision)
            if decision == "approve":  # once more, and it fails once more: asked again
                again = until(lambda: [r for r in self.d.ask("review.list", planId=self.plan)["reviews"] if r["reviewId"] != review["reviewId"]],
                              10, "it is asked again")[0]
                self.d.ask("review.decide", reviewId=again["reviewId"], decision="reject")
            self.assertEqual(self.d.wait_plan(self.plan)["status"], expected, decision)

    def test_plans_that_cannot_be_begin_with_the_known_words(self):
        for body, message in (({}, "No plan to execute"), ({"plan": {"steps": [step("s", "nobody")]}}, "Unknown agent: nobody")):
            error = self.d.ask_raw("plan.submit", **body)["error"]
            self.assertEqual(error["code"], "INVALID")
            self.assertTrue(message in error["message"] and (body or error["message"].startswith(message)), error)


class Checks(Semantics):
    """Gates and verifiers that cannot answer, and the step type that always has one foot in the other branches."""

    def test_a_gate_or_verifier_that_fails_is_open_or_closed_as_the_plan_says(self):
        self.agent("a")
        self.agent("judge", ["gate", "verify"], gate=failed("no idea", retryable=False), verify=failed("no idea", retryable=False))
        for more, status, error in (({"gate": {"agentId": "judge"}}, "completed", None),
                                    ({"gate": {"agentId": "judge", "failClosed": True}}, "failed", "Quality gate error: no idea"),
                                    ({"verifyWith": {"agentId": "judge", "failOpen": True}}, "completed", None),
                                    ({"verifyWith": {"agentId": "judge"}}, "failed", "Verifier error: no idea")):
            view = self.run_plan([step("s", "a", dependsOn=[]), step("t", "a", dependsOn=["s"], maxRetries=0, **more)])
            self.assertEqual((view["status"], self.of_step(view, "t").get("error")), (status, error), more)
            if "gate" in more:
                self.assertEqual(self.event("quality_gate_error").get("failClosed", False), status == "failed")

    def test_a_gate_that_says_no_lets_the_step_do_what_its_policy_says(self):
        a = self.agent("a")
        self.agent("judge", ["gate"], gate=data({"passed": False, "missing": ["a source"], "reason": "no source"}))
        view = self.run_plan([step("s", "a", dependsOn=[]), step("t", "a", dependsOn=["s"], gate="judge", onFailure="skip"),
                              step("u", "a", dependsOn=["t"])])
        self.assertEqual([(x["status"], x.get("reason")) for x in view["steps"]], [("completed", None), ("skipped", "quality_gate_failed"), ("completed", None)])
        self.assertEqual([r["stepId"] for r in a.asked("execute")], ["s", "u"])

    def test_a_synthesis_is_critical_and_gets_what_it_depends_on(self):
        a = self.agent("a", execute=lambda r: failed("cannot", retryable=False) if r["stepId"] == "syn" else text("done " + r["stepId"]))
        view = self.run_plan([step("x", "a", dependsOn=[]), step("y", "a", dependsOn=[]), step("syn", "a", type="synthesis_gate", dependsOn=["y"]),
                              step("z", "a", dependsOn=["syn"])], policy={"onFailure": "continue", "maxConcurrency": 1})
        self.assertEqual((view["status"], view["failureReason"]), ("failed", "Step 3 failed: cannot"), "whatever the plan's policy says")
        self.assertEqual(a.asked("execute")[2]["context"]["text"], "Previous step results:\n- Step 2 (a): done y\n\nCurrent task: do syn")


class Handoffs(Semantics):
    def to(self, agent, reason="yours"):
        return {"outcome": "handoff", "handoff": {"toAgentId": agent, "reason": reason}}

    def test_it_goes_on_until_the_depth_is_reached(self):
        self.agent("a", execute=self.to("b"))
        self.agent("b", execute=self.to("c"))
        self.agent("c", execute=text("mine"))
        view = self.run_plan([step("s", "a")], policy={"handoffTo": "*"})
        self.assertEqual((view["status"], view["steps"][0]["agentId"], view["steps"][0]["handoffs"]), ("completed", "c", 2), view)
        view = self.run_plan([step("s", "a")], policy={"handoffTo": "*", "maxHandoffs": 1, **ONCE})
        self.assertEqual((view["status"], view["steps"][0]["errorClass"]), ("failed", "VALIDATION_ERROR"), view)

    def test_handback_is_told_and_the_next_step_comes_from_the_planned_agent(self):
        self.agent("a", execute=lambda r: self.to("b") if r["stepId"] == "s" else text("mine"))
        self.agent("b", execute=text("done"))
        self.run_plan([step("s", "a"), step("t", "a")], policy={"handoffTo": ["b"], "handback": True})
        told = [(e["fromAgent"]["agentId"], e["toAgent"]["agentId"], e["reason"]) for e in self.d.events(self.plan) if e["type"] == "agent_handoff"]
        self.assertEqual(told, [("supervisor", "a", "plan_step"), ("a", "b", "agent_request"), ("b", "a", "handback")])


class Turns(Semantics):
    def test_no_plan_starves_another(self):
        order, gate = [], threading.Event()

        def work(r):
            gate.wait(10)
            order.append(r["planId"])
            return text("done")
        self.agent("a", execute=work)
        self.addCleanup(gate.set)
        big = self.d.submit({"steps": [step("s%d" % i, "a", dependsOn=[]) for i in range(40)], "policy": {"maxConcurrency": 40}})
        small = self.d.submit({"steps": [step("s%d" % i, "a", dependsOn=[]) for i in range(3)]})
        gate.set()
        for plan in (big, small):
            self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertEqual([i for i, p in enumerate(order) if p == small], [2, 4, 6], "turn and turn about")

    def in_flight(self, limits, agents):
        """The most that was out at the same time, of all and of each agent."""
        d = self.daemon(config="limits: {%s}\n" % limits, agents=False)
        lock, now, most = threading.Lock(), {}, {}

        def work(r):
            name = r["task"]
            with lock:
                for k in ("all", name):
                    now[k] = now.get(k, 0) + 1
                    most[k] = max(most.get(k, 0), now[k])
            threading.Event().wait(0.05)
            with lock:
                for k in ("all", name):
                    now[k] -= 1
            return text("done")
        for name in agents:
            for _ in range(3):
                self.addCleanup(Skilled(d, name, ["do"], execute=work).close)
        until(lambda: all(len(a.get("instances", [])) == 3 for a in d.ask("agents.list")["agents"]), 10, "three instances each")
        plans = [d.submit({"steps": [{**step("s%d" % i, a, dependsOn=[]), "task": a} for i in range(3)]}) for a in agents for _ in range(2)]
        for plan in plans:
            self.assertEqual(d.wait_plan(plan)["status"], "completed")
        return most

    def test_limits_of_what_is_out_at_the_same_time(self):
        self.assertEqual(self.in_flight("inFlight: 2", "ab")["all"], 2)
        most = self.in_flight("inFlightPerAgent: 1", "ab")
        self.assertEqual((most["a"], most["b"]), (1, 1))

    def test_who_comes_to_a_full_house_is_told_when_to_come_again(self):
        d = self.daemon(config="limits: {maxOpenPlans: 1}\n", agents=False)
        gate = threading.Event()
        self.addCleanup(gate.set)
        p = Skilled(d, "a", ["do"], execute=lambda r: (gate.wait(10), text("done"))[1])
        self.addCleanup(p.close)
        first = d.submit({"steps": [step("s", "a")]})
        error = d.ask_raw("plan.submit", plan={"steps": [step("s", "a")]})["error"]
        self.assertEqual((error["code"], error["retryable"]), ("BUSY", True))
        self.assertGreater(error["retryAfterMs"], 0)
        gate.set()
        d.wait_plan(first)
        self.assertEqual(d.wait_plan(d.submit({"steps": [step("s", "a")]}))["status"], "completed", "it was only for a while")


del Phases
if __name__ == "__main__":
    main()
