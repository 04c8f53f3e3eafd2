"""The caps of bodies, tables and plans over the wire: N is taken, N + 1 refused in words that name the cap."""
import json
import unittest
import uuid

import harness
import probe

CONTROL, STEP, RESULT = 1 << 20, 4 << 20, 3 << 20
FEW = {"maxOpenPlans": 3, "maxAgents": 4, "maxInstances": 3}


class Bodies(harness.BatonTest):
    def setUp(self):
        self.d = self.daemon(config="policy: {heartbeatMs: 300}\nagents: []\n", agents=False)

    def probe(self, **kwargs):
        p = probe.Probe(self.d, **kwargs)
        self.addCleanup(p.close)
        probe.wait_up(self.d)
        return p

    def test_a_request_of_a_mebibyte(self):
        body = json.dumps({"v": 1, "type": "supervisor.info", "id": "1", "token": self.d.token()}).encode()
        for more, ok in ((0, True), (1, False)):
            with harness.sp.Req(self.d.endpoints()["control"], 10) as r:
                answer = json.loads(r.ask(body.ljust(CONTROL + more)))
            self.assertEqual(answer["ok"], ok, answer)
            if not ok:
                self.assertEqual(answer["error"]["code"], "LIMIT")
                self.assertIn("at most %d" % CONTROL, answer["error"]["message"])

    def test_an_answer_on_a_lane_of_four_mebibytes(self):
        def work(r):
            said = {"v": 1, "type": "step.result", "id": r["id"], "ok": True, "key": r["key"], "attempt": r["attempt"],
                    "epoch": p.epoch, "outcome": "completed", "result": {"text": "x" * (RESULT - 100)}}
            return json.dumps(said).encode().ljust(STEP + over[r["stepId"]])
        over = {"fits": 0, "large": 1}
        p = self.probe(work=work)
        for name, status in (("fits", "completed"), ("large", "failed")):
            plan = self.d.submit({"steps": [probe.step(name, maxRetries=0)], "policy": {"maxFallbacks": 0}})
            view = self.d.wait_plan(plan, 60)
            self.assertEqual(view["status"], status, view)

    def test_a_preview_of_a_kibibyte(self):
        sizes = {"whole": 1024, "cut": 1025}
        self.probe(work=lambda r: {"outcome": "completed", "result": {"text": "y" * sizes[r["stepId"]]}})
        plan = self.d.submit({"steps": [probe.step("whole"), probe.step("cut")]})
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        said = {e["stepId"]: e["result"] for e in self.d.events(plan) if e["type"] == "plan_step_completed"}
        self.assertEqual(said["whole"], "y" * 1024)
        self.assertLess(len(said["cut"].replace("…", "").rstrip(".")), 1025)
        self.assertNotEqual(said["cut"], "y" * 1025)

    def test_agents_and_attempts_of_a_plan(self):
        self.probe()
        names = ["x%02d" % i for i in range(64)]
        for name in names:
            self.d.ask("agent.register", card=probe.card(name), capacity=1, endpoint="tcp://127.0.0.1:9", protocol=[1],
                       instanceId=str(uuid.uuid4()), sessionKey=uuid.uuid4().hex)
        steps = [probe.step(n, agent=n) for n in names]
        self.assertTrue(self.d.ask_raw("plan.lint", plan={"steps": steps})["ok"])
        plan = self.d.submit({"steps": steps})
        self.d.ask("plan.cancel", planId=plan)
        said = json.dumps(self.d.ask_raw("plan.submit", plan={"steps": steps + [probe.step()]}))
        self.assertIn("more than the 64 different agents", said)
        plan = self.d.submit({"steps": [probe.step(maxRetries=99)]})
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        said = json.dumps(self.d.ask_raw("plan.submit", plan={"steps": [probe.step(maxRetries=100)]}))
        self.assertIn("0 to 99", said)


class Tables(harness.BatonTest):
    def setUp(self):
        self.d = self.daemon(config="policy: {heartbeatMs: 300, leaseMs: 60000}\nlimits: %s\nagents: []\n" % json.dumps(FEW).replace("%", "%%"),
                             agents=False)

    def register(self, agent_id):
        return self.d.ask_raw("agent.register", card=probe.card(agent_id), capacity=1, endpoint="tcp://127.0.0.1:9", protocol=[1],
                              instanceId=str(uuid.uuid4()), sessionKey=uuid.uuid4().hex)

    def test_open_plans(self):
        agent = probe.Probe(self.d)
        self.addCleanup(agent.close)
        probe.wait_up(self.d)
        held = {"steps": [{"stepId": "wait", "type": "human_review", "task": "wait"}]}
        plans = [self.d.submit(held) for _ in range(FEW["maxOpenPlans"])]
        full = self.d.ask_raw("plan.submit", plan=held)
        self.assertFalse(full["ok"])
        self.assertIn(str(FEW["maxOpenPlans"]), full["error"]["message"])
        self.d.ask("plan.cancel", planId=plans[0])
        self.assertEqual(self.d.wait_plan(plans[0])["status"], "cancelled")
        self.d.submit(held)
        self.assertFalse(self.d.ask_raw("plan.submit", plan=held)["ok"])

    def test_instances(self):
        for _ in range(FEW["maxInstances"]):
            answer = self.register("one")
            self.assertTrue(answer["ok"], answer)
        full = self.register("one")
        self.assertFalse(full["ok"])
        self.assertEqual(full["error"]["code"], "LIMIT", full)


if __name__ == "__main__":
    unittest.main(verbosity=2)
