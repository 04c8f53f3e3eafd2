"""Every documented cap holds at its edge: N bytes go through, N + 1 are refused with an error that names both numbers."""
import json
import threading
import unittest

import harness
import probe

TASK_MAX = 8192
RESULT_MAX = 3 * 1024 * 1024
CONFIG = "policy: {heartbeatMs: 300}\nagents: []\n"


def name(n, head="a"):
    """An id of exactly n bytes."""
    return (head + "-0123456789ABCDEF" * 16)[:n]


class Agent(probe.Probe):
    """Answers everything that a supervisor may ask for, over JSON lanes. `failures`: classes of the next attempts by stepId."""

    def __init__(self, daemon, agent_id, skill, **kwargs):
        self.skill = skill
        self.failures = {}
        self.result = {"text": "done"}
        self.replan = None
        super().__init__(daemon, agent_id, work=self.works, capacity=4, skills=kwargs.pop("skills", ()), **kwargs)

    def works(self, r):
        purpose = r.get("purpose", "execute")
        if purpose in ("gate", "verify"):
            return {"outcome": "completed", "result": {"data": {"passed": True}}}
        if purpose in ("replan", "plan"):
            return {"outcome": "completed", "result": {"data": self.replan}}
        if purpose == "synthesize":
            return {"outcome": "completed", "result": {"text": "all together"}}
        left = self.failures.get(r["stepId"], [])
        if left and purpose == "execute":
            return {"outcome": "failed", "failure": {"code": "X", "class": left.pop(0), "message": "no luck", "retryable": False}}
        return {"outcome": "completed", "result": self.result}

    def asked(self, purpose):
        return [r for r in self.of("step.execute") if r.get("purpose", "execute") == purpose]


class Caps(harness.BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CONFIG, agents=False)
        self.agents = []

    def tearDown(self):
        for agent in self.agents:
            agent.close()

    def agent(self, agent_id="probe", skill="do", **kwargs):
        agent = Agent(self.d, agent_id, skill, **kwargs)
        self.agents.append(agent)
        probe.wait_up(self.d, agent_id)
        return agent

    def completes(self, plan, seconds=30, **fields):
        plan_id = self.d.submit(plan, **fields)
        view = self.d.wait_plan(plan_id, seconds)
        self.assertEqual((view["status"], view.get("outcome")), ("completed", "success"),
                         json.dumps({k: view.get(k) for k in ("failureReason", "steps")})[:2000])
        return view

    def refused(self, cap, length, plan=None, **fields):
        """The refusal names the cap and the length."""
        answer = self.d.ask_raw("plan.submit", **({"plan": plan} if plan is not None else {}), **fields)
        self.assertFalse(answer["ok"], "accepted: %d of at most %d" % (length, cap))
        said = json.dumps(answer["error"])
        self.assertIn(str(cap), said)
        self.assertIn(str(length), said)

    def test_step_ids_for_every_purpose(self):
        agent = self.agent(skills=("gate", "verify", "search", "plan", "synthesize"))
        for n in (1, 18, 19, 25, 26, 36, 63, 64):
            with self.subTest(bytes=n):
                first, second, broken, lost = (name(n, c) for c in "abcd")
                repair = name(n, "r")
                agent.requests.clear()
                agent.failures = {broken: ["UNKNOWN"], lost: ["RESOURCE_NOT_FOUND"]}
                agent.replan = {"reuse": [first, second, lost], "steps": [probe.step(repair, verifyWith="probe")]}
                view = self.completes({
                    "steps": [probe.step(first, verifyWith="probe"), probe.step(second, gate="probe", dependsOn=[first]),
                              probe.step(lost, dependsOn=[second]),
                              probe.step(broken, maxRetries=0, onFailure="replan", dependsOn=[lost])],
                    "policy": {"replan": {"agentId": "probe", "cooldownMs": 1}, "searchAgent": "probe",
                               "synthesis": "agent:probe"}})
                self.assertEqual([s["stepId"] for s in view["steps"]], [first, second, lost, broken, repair])
                for purpose in ("execute", "gate", "verify", "search", "replan", "synthesize"):
                    self.assertTrue(agent.asked(purpose), purpose)

    def test_step_id_of_a_fallback_a_review_and_a_change(self):
        """The other agent, the person and the change get the longest id too."""
        main, other = self.agent(), self.agent("other")
        step, person, more = (name(64, c) for c in "abc")
        main.failures = {step: ["AGENT_UNAVAILABLE"]}
        plan = self.d.submit({"steps": [probe.step(step, fallbackAgents=["other"], maxRetries=0),
                                        {"stepId": person, "type": "human_review", "task": "May this go on?"}]})
        (review,) = harness.until(lambda: self.d.ask("review.list").get("reviews"), 15, "a review\n" + self.d.log())
        self.assertEqual(review["stepId"], person)
        self.d.ask("plan.modify", planId=plan, kind="insert", afterStepId=person, steps=[probe.step(more)])
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve", comment="yes")
        view = self.d.wait_plan(plan)
        self.assertEqual((view["status"], [s["status"] for s in view["steps"]]), ("completed", ["completed"] * 3), view)
        self.assertEqual(len(other.asked("execute")), 1)

    def test_step_ids_over_the_cap_are_refused(self):
        self.agent()
        self.refused(64, 65, {"steps": [probe.step(name(65))]})

    def test_agent_ids_and_skill_names(self):
        agent = self.agent(name(64, "g"), skills=(name(64, "s"),))
        self.completes({"steps": [{"stepId": name(64), "agentId": name(64, "g"), "skill": name(64, "s"), "task": "do it"}]})
        self.assertEqual(agent.asked("execute")[0]["skill"], name(64, "s"))
        for card in (probe.card(name(65)), {**probe.card("x"), "skills": [{"id": name(65)}]}):
            answer = self.d.ask_raw("agent.register", card=card, capacity=1, instanceId="i", sessionKey="0123456789abcdef",
                                    endpoint="tcp://127.0.0.1:1", protocol=[1])
            self.assertFalse(answer["ok"])
            self.assertIn("64", answer["error"]["message"])
            self.assertIn("65", answer["error"]["message"])
        self.refused(64, 65, {"steps": [{**probe.step(), "agentId": name(65)}]})
        self.refused(64, 65, {"steps": [{**probe.step(), "agentId": name(64, "g"), "skill": name(65)}]})

    def test_planner_and_jobs(self):
        """Planning, synthesis and converse by an agent whose id and skills are as long as they may be."""
        agent = self.agent(name(64, "g"), skills=("plan", "synthesize"))
        agent.replan = {"steps": [{**probe.step(name(64)), "agentId": name(64, "g")}, {**probe.step("b"), "agentId": name(64, "g")}]}
        plan_id = self.d.ask("plan.submit", goal="do a thing " + "x" * (8192 - 11), planner="agent:" + name(64, "g"),
                             sessionId=name(64, "s"), clientKey=name(128, "k"),
                             policy={"synthesis": "agent:" + name(64, "g")})["planId"]
        view = self.d.wait_plan(plan_id)
        self.assertEqual((view["status"], view["sessionId"]), ("completed", name(64, "s")), view)
        self.assertEqual(self.d.ask("plan.result", planId=plan_id)["aggregatedResult"], "all together")

    def test_session_client_key_goal_and_task(self):
        agent = self.agent()
        step = probe.step()
        table = (
            ("sessionId", 64, lambda n: ({"steps": [step]}, {"sessionId": name(n, "s")})),
            ("sessionId of the document", 64, lambda n: ({"steps": [step], "sessionId": name(n, "d")}, {})),
            ("clientKey", 128, lambda n: ({"steps": [step]}, {"clientKey": name(n, "k")})),
            ("goal", 8192, lambda n: ({"steps": [step], "goal": "g" * n}, {})),
            ("task", TASK_MAX, lambda n: ({"steps": [{**step, "task": "t" * n}]}, {})),
            ("task in two-byte letters", TASK_MAX, lambda n: ({"steps": [{**step, "task": "ä" * (n // 2) + "t" * (n % 2)}]}, {})),
            ("constraint", 1024, lambda n: ({"steps": [step], "constraints": ["c" * n]}, {})),
        )
        for what, cap, make in table:
            with self.subTest(what):
                plan, fields = make(cap)
                self.completes(plan, **fields)
                plan, fields = make(cap + 1)
                self.refused(cap, cap + 1, plan, **fields)
        self.assertEqual(max(len(r["task"].encode()) for r in agent.asked("execute")), TASK_MAX)

    def test_number_of_steps_and_of_dependencies(self):
        self.agent()
        cheap = {"maxConcurrency": 1, "onFailure": "continue"}
        bare = {"agentId": "probe", "skill": "do", "task": "t"}

        def steps(n):
            return {"steps": [bare] * n, "policy": cheap}

        def edges(n):
            wide = [{**bare, "stepId": "s%d" % i, "dependsOn": []} for i in range(1001)]
            left = n
            for i in range(500, 1001):
                take = min(left, 250)
                wide[i]["dependsOn"] = ["s%d" % k for k in range(take)]
                left -= take
            assert left == 0
            return {"steps": wide}

        for cap, make in ((10000, steps), (100000, edges)):
            with self.subTest(cap):
                plan = self.d.submit(make(cap))
                self.d.ask("plan.cancel", planId=plan)
                self.d.wait_plan(plan)
                self.refused(cap, cap + 1, make(cap + 1))

    def test_step_with_a_result_of_exactly_the_cap(self):
        """It is kept, verified, given to the next step and returned whole; one byte more is a failure with both numbers."""
        agent = self.agent(skills=("verify",))
        for more in (0, 1):
            with self.subTest(more=more):
                agent.result = {"text": "x" * (RESULT_MAX + more)}
                plan = self.d.submit({"steps": [probe.step("a", maxRetries=0, verifyWith="probe", onVerificationFailure="abort")],
                                      "policy": {"maxFallbacks": 0}})
                view = self.d.wait_plan(plan)
                if more == 0:
                    self.assertEqual(view["status"], "completed", view.get("failureReason"))
                    self.assertEqual(len(agent.asked("verify")[-1]["result"]["text"]), RESULT_MAX)
                    self.assertEqual(len(self.d.ask("plan.result", planId=plan)["aggregatedResult"]), RESULT_MAX)
                    self.assertEqual(len(self.d.ask("plan.result", planId=plan, stepId="a")["result"]["text"]), RESULT_MAX)
                else:
                    self.assertEqual(view["status"], "failed")
                    self.assertIn(str(RESULT_MAX), view["failureReason"])
                    self.assertIn(str(RESULT_MAX + 1), view["failureReason"])

    def test_next_step_reads_a_result_of_exactly_the_cap(self):
        agent = self.agent()
        agent.result = {"text": "x" * RESULT_MAX}
        plan = self.d.submit({"steps": [probe.step("a"), probe.step("b")]})
        harness.until(lambda: len(agent.asked("execute")) >= 1, 20, "the first step\n" + self.d.log())
        agent.result = {"text": "done"}
        view = self.d.wait_plan(plan)
        self.assertEqual(view["status"], "completed", view.get("failureReason"))

    def test_progress_and_cancel_name_the_longest_key(self):
        """A step of 64 bytes reports progress by its key and is stopped by it."""
        started, stopped = threading.Event(), threading.Event()
        agent = self.agent()
        step = name(64)

        def work(r):
            started.set()
            stopped.wait(20)
            return {"outcome": "failed", "failure": {"code": "CANCELLED", "class": "CANCELLED", "message": "stopped"}}
        agent.work = work
        plan = self.d.submit({"steps": [probe.step(step)]})
        self.assertTrue(started.wait(20), self.d.log())
        (request,) = agent.asked("execute")
        answer = self.d.ask("step.progress", instanceId=agent.me["instanceId"], key=request["key"], attempt=1,
                            epoch=agent.epoch, n=1, text="half")
        self.assertTrue(answer["ok"])
        progress = [e for e in self.d.events(plan) if e["type"] == "plan_step_progress"]
        self.assertEqual([e["stepId"] for e in progress], [step])
        padded = request["key"].replace("/1/", "/01/", 1)
        refused = self.d.ask_raw("step.progress", instanceId=agent.me["instanceId"], key=padded, attempt=1, epoch=agent.epoch, n=2)
        self.assertFalse(refused["ok"], "a key with a leading zero is another key")
        late = self.d.ask("step.result", instanceId=agent.me["instanceId"], key=padded, attempt=1, epoch=agent.epoch,
                          outcome="completed", result={"text": "forged"})
        self.assertFalse(late["accepted"], late)
        self.d.ask("plan.cancel", planId=plan)
        stopped.set()
        self.assertEqual(self.d.wait_plan(plan)["status"], "cancelled")


if __name__ == "__main__":
    unittest.main(verbosity=2)
