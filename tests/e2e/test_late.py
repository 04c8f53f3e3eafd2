"""Agents that a plan names before anybody knows them; what agents leave in the state of a plan, as plan.get has it."""
from harness import main, until
from probe import step
from test_phases import text
from test_semantics import Semantics

LATE = {"waitForAgents": True}


def state(patch):
    return {"outcome": "completed", "result": {"text": "done"}, "state": patch}


class Late(Semantics):
    def waiting(self, step_id="s"):
        view = self.d.ask("plan.get", planId=self.plan)
        return [s for s in view["steps"] if s["stepId"] == step_id][0].get("waiting", {}).get("text", "")

    def test_an_agent_that_nobody_knows_is_an_error_unless_the_plan_waits_for_it(self):
        with self.assertRaisesRegex(Exception, "Unknown agent: later"):
            self.submit([step("s", "later")])
        answer = self.d.ask("plan.submit", plan={"steps": [step("s", "later")], "policy": LATE})
        self.plan = answer["planId"]
        self.assertEqual([(p["severity"], p["category"]) for p in answer["problems"] if p["category"] == "missing_agent"],
                         [("warning", "missing_agent")])
        self.assertIn("the step waits until it is there", [p["message"] for p in answer["problems"] if p["category"] == "missing_agent"][0])
        until(lambda: "waiting for agent later: 0 instances" in self.waiting(), 30, "it waits for its agent")
        self.agent("later", execute=lambda r: text("here now"))
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        self.assertEqual(self.ends()["s"]["result"], "here now")

    def test_it_is_waited_for_over_kill_9(self):
        self.submit([step("s", "later")], policy=LATE)
        until(lambda: "waiting for agent later" in self.waiting(), 30, "it waits for its agent")
        self.d.kill9()
        self.d.start()
        self.agent("later", execute=lambda r: text("here now"))
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")

    def test_it_is_waited_for_as_long_as_for_one_that_is_away(self):
        self.d = self.daemon(config="policy: {agentWaitMs: 300}\n", agents=False)
        self.submit([step("s", "later")], policy=LATE)
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], view["steps"][0]["errorClass"]), ("failed", "AGENT_UNAVAILABLE"))

    def test_the_policy_still_says_who_may_be_used(self):
        with self.assertRaisesRegex(Exception, "not one of those that policy.agents permits"):
            self.submit([step("s", "later")], policy={**LATE, "agents": ["other*"]})
        with self.assertRaisesRegex(Exception, "agentId"):
            self.submit([step("s", "no such id!")], policy=LATE)

    def test_as_fallback_and_by_the_command_line(self):
        self.submit([step("s", "later", fallbackAgents=["last"])], policy={**LATE, "maxFallbacks": 1})
        self.d.ask("plan.cancel", planId=self.plan)
        path = self.d.state / "late.json" if hasattr(self.d.state, "joinpath") else self.d.state + "/late.json"
        with open(path, "w") as f:
            f.write('{"steps": [{"stepId": "s", "agentId": "later", "task": "say that you are here"}]}')
        self.assertIn("Unknown agent: later", self.d.cli_any("run", "--plan", path).stderr)
        self.plan = self.d.cli("run", "--plan", path, "--wait-for-agents", "--detach").strip().split()[-1]
        self.agent("later", execute=lambda r: text("here now"))
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")

    def test_nothing_is_known_of_its_effects(self):
        self.submit([step("s", "later"), {**step("t", "later"), "effects": "none"}], policy=LATE)
        steps = self.d.ask("plan.get", planId=self.plan, document=True)["document"]["steps"]
        self.assertEqual([s["effects"] for s in steps], ["unsafe", "none"])
        self.d.ask("plan.cancel", planId=self.plan)


class State(Semantics):
    def test_plan_get_has_what_agents_left_also_after_kill_9_and_the_end(self):
        patches = {"a1": {"n": 1, "who": {"name": "Ada", "old": True}}, "a2": {"n": 2, "who": {"old": None}}}
        work = lambda r: state(patches[r["stepId"]])  # noqa: E731
        self.agent("a", execute=work)
        self.submit([step("a1", "a"), {"stepId": "hold", "type": "human_review", "task": "look at the state"}, step("a2", "a")])
        review = until(lambda: self.d.ask("plan.get", planId=self.plan)["steps"][1].get("waiting", {}).get("reviewId"), 30, "its review")
        self.assertEqual(self.d.ask("plan.get", planId=self.plan)["state"], patches["a1"])
        self.d.kill9()
        self.d.start()
        self.assertEqual(self.d.ask("plan.get", planId=self.plan)["state"], patches["a1"])
        self.agent("a", execute=work)
        self.d.ask("review.decide", reviewId=review, decision="approve")
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], view["state"]), ("completed", {"n": 2, "who": {"name": "Ada"}}))


if __name__ == "__main__":
    main()
