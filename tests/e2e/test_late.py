"""Agents that a plan names before they come: those that nobody knows, and those that came before a restart."""
import json
import time
import uuid

from harness import BatonTest, main, until
from probe import Probe, step
from test_phases import text
from test_semantics import Semantics

LATE = {"waitForAgents": True}


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
        self.d.start(agents=False)
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
        with self.assertRaisesRegex(Exception, "Unknown agent: no such id!"):
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

    def test_what_one_plan_waits_for_another_does_not_know(self):
        self.submit([step("s", "later")], policy=LATE)
        with self.assertRaisesRegex(Exception, "Unknown agent: later"):
            self.d.submit({"steps": [step("s", "later")]})

    def test_a_plan_and_a_step_have_waits_of_their_own(self):
        begun = time.monotonic()
        self.submit([step("a", "later", onFailure="continue"), step("b", "later", agentWaitMs=1, onFailure="continue"),
                     step("c", "later", dependsOn=["b"], runIf="always", agentWaitMs=60000)], policy={**LATE, "agentWaitMs": 300})
        until(lambda: [s["status"] for s in self.d.ask("plan.get", planId=self.plan)["steps"]] == ["failed", "failed", "pending"], 20, "two fail")
        self.assertLess(time.monotonic() - begun, 15)
        self.assertEqual([s.get("error") for s in self.d.ask("plan.get", planId=self.plan)["steps"]],
                         ["No instance of agent 'later' came within %d ms" % n for n in (300, 1)] + [None])
        self.agent("later", execute=lambda r: text("here now"))
        self.d.wait_plan(self.plan)
        self.assertEqual(self.ends()["c"]["result"], "here now")

    def test_wrong_values_are_refused_with_their_place(self):
        for policy, said in (({"waitForAgents": "yes"}, "policy.waitForAgents"), ({"agentWaitMs": -1}, "agentWaitMs"),
                             ({"agentWaitMs": 2147483648}, "agentWaitMs"), ({"agentWaitMs": "1h"}, "agentWaitMs")):
            with self.assertRaisesRegex(Exception, said):
                self.submit([step("s", "later")], policy=policy)
        self.submit([step("s", "later")], policy={**LATE, "agentWaitMs": 2147483647})


CARD = {"agentId": "rare", "version": "3", "skills": [{"id": "etch", "description": "Etches glass.", "effects": "none", "inputSchema": {
    "type": "object", "required": ["depth"], "additionalProperties": False, "properties": {"depth": {"type": "integer"}}}}]}


class Remembered(BatonTest):
    def comes(self, leaves=True, card=CARD):
        ident = str(uuid.uuid4())
        epoch = self.d.ask("agent.register", card=card, capacity=1, sessionKey="k" * 32, instanceId=ident, endpoint="tcp://127.0.0.1:9")["epoch"]
        if leaves:
            self.d.ask("agent.deregister", instanceId=ident, epoch=epoch)

    def remembered(self):
        return [a["card"]["agentId"] for a in self.d.ask("agents.list", remembered=True)["agents"]]

    def etch(self, policy=LATE, **more):
        return {"steps": [{"stepId": "s", "task": "etch the glass of the door", **more}], "policy": policy}

    def test_plans_are_made_for_agents_that_came_before_a_restart(self):
        self.d = self.daemon(config="policy: {agentWaitMs: 300}\n", agents=False)
        self.assertEqual(self.remembered(), [])
        self.comes(leaves=False)
        self.assertEqual(self.remembered(), [], "who is there is in the list of those")
        self.d.kill9()
        self.d.start(agents=False)
        self.assertEqual(self.remembered(), ["rare"])
        seen = self.d.ask("agents.list", remembered=True)["agents"][0]
        self.assertEqual((seen["state"], seen["card"]["version"], seen["card"]["skills"][0]["id"]), ("remembered", "3", "etch"))
        self.assertLess(abs(time.time() * 1000 - seen["seenAt"]), 60000)
        self.assertEqual(self.d.ask("agents.list")["agents"], [])
        good = {"skill": "etch", "parameters": {"depth": 3}}
        self.assertIn("no registered agent has the skill", json.dumps(self.d.ask_raw("plan.submit", plan=self.etch({}, **good))))
        for bad, said in (({"skill": "etch", "parameters": {"depth": "3"}}, "parameters.depth"), ({"skill": "etch"}, "depth"),
                          ({"agentId": "rare", "skill": "blow"}, "has no skill"), ({"skill": "nobody-has-it"}, "nobody-has-it")):
            self.assertIn(said, json.dumps(self.d.ask_raw("plan.submit", plan=self.etch(**bad))["error"]))
        plan = self.d.submit(self.etch({**LATE, "agentWaitMs": 60000}, **good))
        view = self.d.ask("plan.get", planId=plan, document=True)
        self.assertEqual((view["steps"][0]["agentId"], view["document"]["steps"][0].get("effects")), ("rare", "none"))
        with self.assertRaisesRegex(Exception, "Unknown agent: rare|no registered agent"):
            self.d.submit(self.etch({}, agentId="rare", **good))
        probe = Probe(self.d, "rare", work=lambda r: {"outcome": "completed", "result": {"text": "etched"}}, skills=["etch"])
        self.addCleanup(probe.close)
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")

    def test_goals_and_changes_use_those_that_are_remembered(self):
        self.d = self.daemon(config="policy: {agentWaitMs: 300}\n", agents=False)
        card = {**CARD, "skills": [{"id": "etch", "description": "Etches glass.", "effects": "none"}]}
        self.comes(card=card, leaves=False)
        self.d.kill9()
        self.d.start(agents=False)
        self.assertIn("error", self.d.ask_raw("plan.submit", goal="Etch the glass"), "nobody is there")
        late = {**LATE, "agentWaitMs": 60000}
        plan = self.d.ask("plan.submit", goal="Etch the glass", policy=late)["planId"]
        self.assertEqual([(s["agentId"], s["skill"]) for s in self.d.ask("plan.get", planId=plan)["steps"]], [("rare", "etch")])
        self.d.kill9()
        self.d.start(agents=False)
        other = self.d.submit({"steps": [{"stepId": "w", "wait": {"signal": "go"}}], "policy": late})
        self.d.kill9()
        self.d.start(agents=False)
        self.d.ask("plan.modify", planId=other, kind="insert", afterStepId="w", steps=[{"stepId": "s", "skill": "etch", "task": "etch the glass"}])
        self.assertEqual([s.get("agentId", "") for s in self.d.ask("plan.get", planId=other)["steps"]][-1], "rare")

    def test_it_is_forgotten_by_a_person(self):
        self.d = self.daemon(config="policy: {agentWaitMs: 300}\n", agents=False)
        self.comes()
        self.comes(card={**CARD, "agentId": "rare.ü".replace("ü", "u")}, leaves=False)
        self.assertEqual(self.remembered(), ["rare"])
        self.assertIn("rare", self.d.cli("agents", "--remembered"))
        self.assertIn("is there", self.d.cli_any("agents", "forget", "rare.u").stderr)
        self.assertIn("no agent 'other' is remembered", self.d.cli_any("agents", "forget", "other").stderr)
        self.d.cli("agents", "forget", "rare")
        self.assertEqual(self.remembered(), [])
        self.assertIn("missing_skill", json.dumps(self.d.ask_raw("plan.submit", plan=self.etch(skill="blow"))))
        self.d.kill9()
        self.d.start(agents=False)
        self.assertEqual(self.remembered(), ["rare.u"])

    def test_the_configuration_says_for_how_long(self):
        self.d = self.daemon(config="retention: {eventsMs: 1}\n", agents=False)
        self.comes()
        self.d.kill9()
        self.d.start(agents=False)
        until(lambda: self.remembered() == [], 20, "its time is over")


if __name__ == "__main__":
    main()
