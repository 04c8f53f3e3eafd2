"""Questions about whole plans to agents that answer what makes no sense there, cost a lot, or are not there: the plan ends all the same."""
import threading
import time

from harness import BatonTest, main, until
from probe import Probe, step, wait_up

BARE = "policy: {heartbeatMs: 300, leaseMs: 1500, maxFallbacks: 0, agentWaitMs: 8000%s}\n%s"
PLAN = {"steps": [step("a", "worker"), step("b", "worker")]}


def says(data=None, text=None, **usage):
    result = {k: v for k, v in (("data", data), ("text", text)) if v is not None}
    return {"outcome": "completed", "result": result, **({"usage": usage} if usage else {})}


class Jobs(BatonTest):
    policy = more = ""

    def setUp(self):
        self.d = self.daemon(config=BARE % (self.policy, self.more), agents=False)
        self.worker = self.probe("worker", capacity=4)

    def probe(self, agent_id, **more):
        found = Probe(self.d, agent_id, **more)
        self.addCleanup(found.close)
        wait_up(self.d, agent_id)
        return found

    def planner(self, *answers, **more):
        """The n-th answer to the n-th question, the last one to all that follow; an answer may be a function of the request."""
        return self.answers("planner", "plan", answers, more)

    def answerer(self, *answers, **more):
        return self.answers("answerer", "synthesize", answers, more)

    def answers(self, agent_id, skill, answers, more):
        asked = []

        def work(request):
            asked.append(request)
            answer = answers[min(len(asked), len(answers)) - 1]
            return answer(request) if callable(answer) else answer
        found = self.probe(agent_id, work=work, skills=(skill,), **more)
        found.asked = asked
        return found

    def submit(self, **fields):
        self.plan = self.d.ask("plan.submit", **{"goal": "save the day", "planner": "agent", **fields})["planId"]
        return self.plan

    def ended(self, seconds=15, **fields):
        return self.d.wait_plan(self.submit(**fields), seconds)

    def events(self, type_):
        return [e for e in self.d.events(self.plan) if e["type"] == type_]

    def result(self):
        return self.d.ask("plan.result", planId=self.plan)["aggregatedResult"]



def fails(message, retryable=True, **usage):
    return {"outcome": "failed", "failure": {"code": "X", "message": message, "retryable": retryable}, **({"usage": usage} if usage else {})}


NEEDS = [{"outcome": "needs_input", "need": {"kind": "input", "prompt": "which day?"}}, {"outcome": "needs_approval", "need": {"kind": "approval", "prompt": "may I?"}},
         {"outcome": "handoff", "handoff": {"toAgentId": "worker", "reason": "not mine"}}]


class OutOfPlace(Jobs):
    policy = ", plannerTimeoutMs: 20000"

    def test_nobody_waits_for_a_person_whom_no_one_asks(self):
        planner = self.planner(*NEEDS)
        for words in ("input", "approval", "handoff"):
            with self.subTest(words):
                view = self.ended(10)
                self.assertEqual(view["status"], "failed", view)
                self.assertIn(words, view["failureReason"].lower())
        self.assertEqual(len(planner.asked), 3)

    def test_an_answer_that_wants_a_person_is_put_together_instead(self):
        self.answerer(*NEEDS)
        for words in ("input", "approval", "handoff"):
            with self.subTest(words):
                view = self.ended(10, plan=PLAN, policy={"synthesis": "agent"})
                self.assertEqual((view["status"], self.events("synthesis_finished")[0]["ok"]), ("completed", False), view)
                self.assertIn(words, self.events("synthesis_finished")[0]["reason"].lower())

    def test_a_job_cannot_be_changed_like_a_plan(self):
        go = threading.Event()
        planner = self.planner(lambda r: (go.wait(10), says(PLAN))[1])
        self.addCleanup(go.set)
        self.submit()
        until(lambda: planner.asked, 10, "it is asked")
        job = planner.asked[0]["planId"]
        for type_, more in (("plan.pause", {}), ("plan.modify", {"kind": "skip_steps", "stepsToSkip": [1]}), ("plan.retry", {}), ("plan.fork", {"fromStep": "planning"})):
            with self.subTest(type_):
                answer = self.d.ask_raw(type_, planId=job, **more)
                self.assertEqual((answer["ok"], answer["error"]["code"]), (False, "INVALID"), answer)
                self.assertIn(self.plan, answer["error"]["message"])
        go.set()
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")


class StepsOnly(Jobs):
    """What a configuration sets for steps does not hold for jobs."""
    policy = ", plannerTimeoutMs: 20000, onFailure: ask, maxRetries: 0"

    def test_a_job_that_fails_asks_nobody(self):
        self.planner(fails("out of ideas", False))
        view = self.ended(10)
        self.assertEqual((view["status"], view["failureReason"]), ("failed", "out of ideas"))


class StepsTime(Jobs):
    policy = ", plannerTimeoutMs: 20000, maxRetries: 0, idleTimeoutMs: 300, stepLimitMs: 600, queueTimeoutMs: 300"

    def test_a_job_has_its_own_time(self):
        self.planner(lambda r: (time.sleep(1.5), says(PLAN))[1])
        self.assertEqual(self.ended(10)["status"], "completed")


class Room(Jobs):
    policy = ", cancelGraceMs: 60000"
    more = "limits: {maxOpenPlans: 2}\n"

    def test_questions_that_are_being_stopped_leave_room_or_say_so(self):
        go = threading.Event()
        planners = [self.planner(lambda r: (go.wait(30), says(PLAN))[1], capacity=50) for _ in range(2)]
        self.addCleanup(go.set)
        refused = None
        for n in range(80):
            answer = self.d.ask_raw("plan.submit", goal="number %d" % n, planner="agent")
            if not answer["ok"]:
                refused = answer["error"]
                break
            self.d.ask("plan.cancel", planId=answer["planId"])
        self.assertTrue(n > 60 and refused is not None and refused["code"] == "BUSY", (n, refused))
        self.assertIn("stopped", refused["message"])
        self.d.kill9()
        self.d.start(agents=False)
        go.set()
        for probe in (self.worker, *planners):
            probe.epoch = probe.register()["epoch"]
        until(lambda: self.d.ask_raw("plan.submit", goal="and now", planner="agent")["ok"], 20, "there is room again")
        self.assertEqual(self.ended(20)["status"], "completed")

    def test_both_plans_may_ask_at_once(self):
        self.planner(lambda r: (time.sleep(0.3), says(PLAN))[1], capacity=2)
        for _ in range(3):
            plans = [self.submit(), self.submit()]
            self.assertEqual(self.d.ask_raw("plan.submit", goal="a third")["error"]["code"], "BUSY")
            self.assertEqual([self.d.wait_plan(p)["status"] for p in plans], ["completed"] * 2)


class Again(Jobs):
    policy = ", maxRetries: 0"

    def test_a_plan_that_was_never_made_is_planned_again(self):
        planner = self.planner(says(text="no"), says(text="no"), says(PLAN))
        failed = self.ended(constraints=["be quick"], policy={"plannerTimeoutMs": 4000, "budget": {"tokens": 77}}, sessionId="s-1")
        self.assertEqual(failed["status"], "failed")
        answer = self.d.ask("plan.retry", planId=self.plan, clientKey="k")
        self.assertEqual((answer["parentPlanId"], answer.get("reused", 0)), (self.plan, 0))
        self.assertTrue(self.d.ask("plan.retry", planId=self.plan, clientKey="k")["existing"])
        view = self.d.wait_plan(answer["planId"])
        self.assertEqual((view["status"], view["sessionId"], view["about"]["constraints"], view["about"]["planner"], view["budget"]),
                         ("completed", "s-1", ["be quick"], "agent", {"tokens": 77}), view)
        self.assertEqual((planner.asked[2]["parameters"]["goal"], planner.asked[2]["parameters"]["constraints"]), ("save the day", ["be quick"]))
        self.assertNotIn("problems", planner.asked[2]["parameters"])

    def test_a_plan_that_an_agent_made_is_done_again_as_it_was_made(self):
        planner = self.planner(says({**PLAN, "description": "two things", "successCriteria": ["both"]}))
        self.ended(constraints=["be quick"])
        for type_ in ("plan.retry", "plan.fork"):
            view = self.d.wait_plan(self.d.ask(type_, planId=self.plan, fromStep="b")["planId"])
            self.assertEqual((view["status"], [s["stepId"] for s in view["steps"]], view["about"]["description"], view["about"]["constraints"], len(planner.asked)),
                             ("completed", ["a", "b"], "two things", ["be quick"], 1), view)

    def test_a_dry_run_is_run_after_all_as_it_was_planned(self):
        planner = self.planner(says(PLAN))
        self.assertEqual((self.ended(dryRun=True)["status"], self.worker.of("step.execute")), ("planned", []))
        view = self.d.wait_plan(self.d.ask("plan.retry", planId=self.plan)["planId"])
        self.assertEqual((view["status"], [s["status"] for s in view["steps"]], len(planner.asked), len(self.worker.of("step.execute"))),
                         ("completed", ["completed"] * 2, 1, 2))


class Answers(Jobs):
    def answered(self, answer):
        self.answerer(answer)
        return self.ended(plan=PLAN, policy={"synthesis": "agent"})

    def test_what_says_nothing_is_no_answer(self):
        nothing = (says(text=" \n"), says({}), says([]), says(""), says({"retry": []}))
        self.answerer(*nothing)
        for n in range(len(nothing)):
            with self.subTest(n):
                self.assertEqual(self.ended(plan=PLAN, policy={"synthesis": "agent"})["status"], "completed")
                self.assertEqual((self.events("synthesis_finished")[0]["ok"], self.result()), (False, "**do a**\ndone a\n\n---\n\n**do b**\ndone b"))

    def test_an_answer_beside_a_wish_for_nothing_counts(self):
        self.answered(says({"retry": []}, "All is well."))
        self.assertEqual((self.events("synthesis_finished")[0]["ok"], self.result()), (True, "All is well."))

    def test_the_whole_reason_is_told(self):
        answerer = self.answerer(says(text="It broke."))
        self.worker.work = lambda r: says(text="ok") if r["stepId"] == "a" else fails("broken " * 100, False)
        view = self.ended(plan=PLAN, policy={"synthesis": "agent"})
        self.assertGreater(len(view["failureReason"]), 700)
        self.assertEqual(answerer.asked[0]["parameters"]["failureReason"], view["failureReason"])


class Repair(Jobs):
    def test_what_was_wrong_is_told_whole_though_the_daemon_died_in_between(self):
        bad = {"steps": [step("a", "nobody " * 9)]}
        planner = self.planner(says(bad), lambda r: None, says(PLAN))
        self.submit()
        until(lambda: len(planner.asked) == 2, 10, "it is asked again")
        told = planner.asked[1]["parameters"]
        self.assertEqual(told["previous"]["data"], bad)
        self.d.kill9()
        self.d.start(agents=False)
        for probe in (self.worker, planner):
            probe.epoch = probe.register()["epoch"]
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        again = planner.asked[2]["parameters"]
        self.assertEqual((again["previous"], again["problems"]), (told["previous"], told["problems"]))


class Down(Jobs):
    policy = ", plannerTimeoutMs: 2500, backoff: {initialMs: 10, maxMs: 10}"

    def test_time_spent_down_is_not_the_planners(self):
        up = threading.Event()
        self.addCleanup(up.set)
        planner = self.planner(lambda r: says(PLAN) if up.wait(10) else None)
        self.submit()
        until(lambda: planner.asked, 10, "it is asked")
        self.d.kill9()
        time.sleep(3)  # longer than a planner may take: nothing else tells the daemon's clock
        up.set()
        self.d.start(agents=False)
        for probe in (self.worker, planner):
            probe.epoch = probe.register()["epoch"]
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")

    def test_a_planner_that_does_not_come_back_has_its_time_and_no_more(self):
        planner = self.planner(lambda r: None)
        self.submit()
        until(lambda: planner.asked, 10, "it is asked")
        self.d.kill9()
        planner.close()
        self.d.start(agents=False)
        began = time.monotonic()
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "failed")
        self.assertLess(time.monotonic() - began, 8)


class Documents(Jobs):
    def test_a_document_that_says_dry_run_is_told_that_it_runs(self):
        answer = self.d.ask("plan.submit", plan={**PLAN, "dryRun": True})
        self.assertIn(("warning", "dryRun"), [(p["severity"], p.get("field")) for p in answer["problems"]])
        self.assertEqual(self.d.wait_plan(answer["planId"])["status"], "completed")


class Money(Jobs):
    def test_sums_end_where_numbers_do(self):
        most = 2 ** 63 - 1
        self.planner(says(PLAN, inputTokens=most, outputTokens=most, costMicros=most))
        for _ in range(3):
            self.ended()
        total = self.d.ask("plan.cost")["total"]
        self.assertEqual((total["total"], total["planningTokens"]), ({"inputTokens": most, "outputTokens": most, "costMicros": most}, most))

    def test_what_a_job_used_is_told_though_nobody_waits_for_it(self):
        answers = [fails("not yet", inputTokens=1000, outputTokens=10)]
        self.planner(lambda r: answers.pop() if answers else None)
        self.submit()
        until(lambda: not answers, 10, "the planner was asked")
        until(lambda: self.cost().get("planningTokens") == 1010, 10, "an open errand is counted")
        self.d.ask("plan.cancel", planId=self.plan)
        self.d.wait_plan(self.plan)
        for _ in range(2):
            cost = self.cost()
            self.assertEqual((cost["planningTokens"], cost["total"]["inputTokens"], cost.get("executionTokens", 0)), (1010, 1000, 0), cost)
            self.assertEqual(self.d.ask("plan.cost", planId=self.plan)["total"]["planningTokens"], 1010)
            self.d.kill9()
            self.d.start(agents=False)

    def cost(self):
        return self.d.ask("plan.cost")["plans"][0]


if __name__ == "__main__":
    main()
