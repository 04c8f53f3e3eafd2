"""Who has left is gone: no goal goes there, `up` does not wait for it, no list names it, its place is free."""
import json
import struct
import time
import uuid

from harness import BatonTest, main, sp, until
from probe import Probe, step, wait_up

WAIT = "policy: {agentWaitMs: 400}\n"


class Line:
    """One connection for many requests: 2,000 agents come and go."""

    def __init__(self, daemon):
        self.req = sp.Req(daemon.endpoints()["control"], 30)
        self.token = daemon.token()

    def ask(self, type_, **fields):
        answer = json.loads(self.req.ask(json.dumps({"v": 1, "type": type_, "id": "t", "token": self.token, **fields}).encode()))
        return answer if answer["ok"] else answer["error"]

    def comes(self, agent_id, skill="do"):
        self.instance = str(uuid.uuid4())
        answer = self.ask("agent.register", card={"agentId": agent_id, "skills": [{"id": skill, "description": "Does a thing."}]},
                          capacity=1, sessionKey="k" * 32, instanceId=self.instance, endpoint="tcp://127.0.0.1:9")
        self.epoch = answer.get("epoch")
        return answer

    def leaves(self):
        return self.ask("agent.deregister", instanceId=self.instance, epoch=self.epoch)


class WhoLeft(BatonTest):
    def start(self, config=""):
        self.d = self.daemon(config=config, agents=False)

    def probe(self, agent_id="probe", **more):
        p = Probe(self.d, agent_id, **more)
        self.addCleanup(p.close)
        wait_up(self.d, agent_id)
        return p

    def ids(self):
        return sorted(a["card"]["agentId"] for a in self.d.ask("agents.list")["agents"])

    def visit(self, *agent_ids, skill="do"):
        line = Line(self.d)
        for agent_id in agent_ids:
            self.assertIn("epoch", line.comes(agent_id, skill))
            line.leaves()
        line.req.close()

    def test_goals_go_to_who_is_there(self):
        self.start()
        self.visit("worker-1", skill="frobnicate")
        p = self.probe("worker-2", skills=["frobnicate"])
        self.visit("worker-3", skill="frobnicate")
        plan = self.d.ask("plan.submit", goal="frobnicate the worker", planner="keyword")["planId"]
        view = self.d.wait_plan(plan, 10)
        self.assertEqual((view["status"], view["steps"][0]["agentId"]), ("completed", "worker-2"))
        line = Line(self.d)
        line.ask("agent.deregister", instanceId=p.me["instanceId"], epoch=p.epoch)
        refused = line.ask("plan.submit", goal="frobnicate the worker", planner="keyword")
        line.req.close()
        self.assertIn("no agent with skills is registered", refused["message"])

    def test_up_and_the_lists_look_at_who_is_there(self):
        self.start()
        self.visit("gone-1", "gone-2")
        self.probe("here")
        self.assertEqual(self.ids(), ["here"])
        begun = time.monotonic()
        self.assertEqual(self.d.cli_any("up").returncode, 0)
        self.assertLess(time.monotonic() - begun, 10, "up waits for nobody that left")
        self.assertEqual(self.d.ask("supervisor.info")["agents"], 1)
        self.assertEqual([a["agentId"] for a in self.d.ask("supervisor.stats")["agents"]], ["here"])
        error = self.d.ask_raw("plan.submit", plan={"steps": [step("s", "nobody")]})["error"]
        self.assertIn("Unknown agent: nobody; known: here", json.dumps(error))
        self.assertNotIn("gone-", json.dumps(error))

    def test_an_agent_that_nobody_needs_is_forgotten_after_agent_wait_ms(self):
        self.start(WAIT)
        self.probe("here")
        self.visit("gone")
        until(lambda: self.d.ask_raw("agents.get", agentId="gone")["ok"] is False, 10, "it is forgotten")
        error = self.d.ask_raw("plan.submit", plan={"steps": [step("s", "gone")]})["error"]
        self.assertIn("Unknown agent: gone; known: here", json.dumps(error))

    def test_two_thousand_ids_come_and_go_also_over_a_restart(self):
        self.start()
        self.probe("here")
        for half in range(2):
            line = Line(self.d)
            for i in range(1000):
                answer = line.comes("visitor-%d-%d" % (half, i))
                self.assertIn("epoch", answer, "the %dth of half %d: %s" % (i, half, answer))
                line.leaves()
            line.req.close()
            self.assertEqual(self.ids(), ["here"])
            if half == 0:
                self.assertEqual(self.d.stop(), 0)
                self.d.start(agents=False)
                self.probe("here")
        self.visit(*("more-%d" % i for i in range(100)))  # 1,024 ids are known now
        plan = self.d.submit({"steps": [step("s", "here")]})
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")

    def test_a_plan_waits_for_an_agent_that_comes_back_also_over_a_restart(self):
        self.start()
        self.visit("away")
        self.probe("here")
        plan = self.d.submit({"steps": [step("s", "away")]})

        def waits():
            view = self.d.ask("plan.get", planId=plan)["steps"][0]
            return view.get("waiting", {}).get("text")
        self.assertEqual(waits(), "waiting for agent away: 0 instances; there are: here")
        self.assertEqual(self.ids(), ["away", "here"], "who is waited for is listed")
        self.d.kill9()
        self.d.start(agents=False)
        self.assertEqual(waits(), "waiting for agent away: 0 instances")
        self.assertEqual(self.d.cli_any("up").returncode, 0)
        self.probe("away")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")

    def test_after_a_restart_a_plan_for_agents_that_are_not_back_yet_is_to_be_tried_again(self):
        d = self.daemon(config="policy: {heartbeatMs: 300, leaseMs: 3000}\nagents: []\n")
        plan, bad = {"steps": [step("a", "worker")]}, {"steps": [step("a", "worker", dependsOn=["nowhere"])]}
        answer = d.ask_raw("plan.submit", plan=plan)["error"]
        self.assertEqual((answer["code"], answer["retryable"]), ("INVALID", False))  # the first daemon here waits for nobody
        probe = Probe(d, "worker", beat=False)
        d.wait_plan(d.submit(plan))
        probe.close()
        d.kill9()
        d.start(agents=False)
        answer = d.ask_raw("plan.submit", plan=plan)["error"]
        self.assertEqual((answer["code"], answer["retryable"], answer["retryAfterMs"]), ("UNAVAILABLE", True, 1000))
        self.assertIn("Unknown agent: worker", answer["message"])
        self.assertIn("may still register", answer["message"])
        answer = d.ask_raw("plan.submit", plan=bad)["error"]
        self.assertEqual((answer["code"], answer["retryable"]), ("INVALID", False))  # nobody who comes mends that
        probe = Probe(d, "worker", beat=False)
        d.wait_plan(d.submit(plan))
        probe.close()
        until(lambda: d.ask("supervisor.info")["uptimeMs"] >= 3000, 20, "the lease is over")
        answer = d.ask_raw("plan.submit", plan={"steps": [step("a", "stranger")]})["error"]
        self.assertEqual((answer["code"], answer["retryable"]), ("INVALID", False))

    def test_the_error_of_a_step_names_who_is_there(self):
        self.start(WAIT)
        self.probe("here")
        self.visit("away")
        view = self.d.wait_plan(self.d.submit({"steps": [step("s", "away")], "policy": {"maxFallbacks": 0}}))
        self.assertEqual(view["steps"][0]["error"], "No instance of agent 'away' came within 400 ms; there are: here")

    def test_an_agent_that_the_configuration_does_not_name_any_more_is_gone(self):
        two = 'agents:\n  - {agentId: calc, command: ["${BATON_BIN}/baton-agent-calc"]}\n' \
              '  - {agentId: other, command: ["${BATON_BIN}/baton-agent-calc"]}\n'
        self.start(two)
        self.d.wait_agents()
        self.assertEqual(self.ids(), ["calc", "other"])
        self.assertEqual(self.d.stop(), 0)
        text = self.d.config.read_text()
        self.d.config.write_text("\n".join(line for line in text.split("\n") if "other" not in line) + "\n")
        self.d.start()
        self.assertEqual(self.ids(), ["calc"])
        error = self.d.ask_raw("plan.submit", plan={"steps": [step("s", "other")]})["error"]
        self.assertIn("Unknown agent: other; known: calc", json.dumps(error))


class Stopping(BatonTest):
    def test_drain_obeys_its_grace(self):
        gate = []
        for grace, least, most in ((0, 0.0, 5.0), (1500, 1.2, 9.0)):
            d = self.daemon(config="", agents=False)
            p = Probe(d, work=lambda r: (until(lambda: gate, 20, "gate"), {"outcome": "completed", "result": {"text": "x"}})[1])
            self.addCleanup(p.close)
            wait_up(d)
            d.submit({"steps": [step("s")]})
            until(lambda: p.of("step.execute"), 10, "the step runs")
            begun = time.monotonic()
            d.ask("supervisor.drain", graceMs=grace)
            self.assertEqual(d.process.wait(15), 0)
            taken = time.monotonic() - begun
            self.assertTrue(least <= taken < most, "graceMs %d took %.2f s" % (grace, taken))
        gate.append(1)


if __name__ == "__main__":
    main()
