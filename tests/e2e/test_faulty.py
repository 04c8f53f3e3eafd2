#!/usr/bin/env python3
"""baton-agent-faulty: a plan survives each of its faults, and the daemon stays whole."""
import sys

from harness import ROOT, BatonTest, main

AGENT = ROOT / "agents" / "python" / "baton-agent-faulty"
CONFIG = """
agents:
  - agentId: faulty
    command: ["%s", "-B", "%s"]
    capacity: 16
  - agentId: crashing
    command: ["%s", "-B", "%s"]
""" % (sys.executable, AGENT, sys.executable, AGENT)
# What the supervisor makes of the first attempt, where it is the same each time.
CLASSES = {"hang": "TIMEOUT", "late": "TIMEOUT", "garble": "PROTOCOL_ERROR", "lie-key": "PROTOCOL_ERROR", "lie-attempt": "PROTOCOL_ERROR",
           "fail": "SERVICE_UNAVAILABLE", "crash": "AGENT_CRASHED"}
# These cost no attempt: what is delivered twice counts once, and what a broken connection took along is asked for (step.query).
QUIET = ["none", "delay", "duplicate", "drip", "flood", "oversize", "lie-epoch", "lie-id", "hang-up", "half"]


class Faults(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CONFIG)

    def step(self, fault, agent="faulty", **more):
        return {"stepId": fault, "agentId": agent, "skill": "work", "task": "Do it in spite of a fault", "dependsOn": [],
                "parameters": {"faults": [fault], "ms": 300, "count": 60}, "timeoutMs": 2500 if fault in ("hang", "late") else 60000, **more}

    def test_a_plan_survives_each_fault(self):
        steps = [self.step(f) for f in [*QUIET, *CLASSES] if f != "crash"] + [self.step("crash", agent="crashing")]
        steps.append({"stepId": "last", "agentId": "faulty", "skill": "work", "task": "Do it once more. faults: hang-up, garble",
                      "dependsOn": [s["stepId"] for s in steps]})
        plan = self.d.submit({"steps": steps, "policy": {
            "maxRetries": 6, "retryOn": ["PROTOCOL_ERROR", "TIMEOUT", "AGENT_CRASHED", "REPLY_LOST", "SERVICE_UNAVAILABLE", "AGENT_UNAVAILABLE"],
            "backoff": {"initialMs": 50}}})
        view = self.d.wait_plan(plan, 90)
        self.assertEqual((view["status"], view.get("outcome")), ("completed", "success"), self.d.log())
        events = self.d.events(plan)
        first = {e["stepId"]: e["errorClass"] for e in events if e["type"] == "plan_step_retry" and e["attempt"] == 1}
        self.assertEqual({f: c for f, c in first.items() if f in CLASSES}, CLASSES)
        results = {s["stepId"]: s["result"]["text"] for s in self.d.ask("plan.result", planId=plan)["steps"]}
        self.assertEqual(set(results.values()), {"done"})
        self.assertEqual(len(results), len(steps), "a result each, and each once")
        self.assertEqual(self.d.process.poll(), None)

    def test_a_fault_that_may_not_be_repeated_fails_its_step(self):
        plan = self.d.submit({"steps": [self.step("stop")], "policy": {"onFailure": "stop"}})
        self.assertEqual(self.d.wait_plan(plan)["status"], "failed")
        plan = self.d.submit({"steps": [self.step("none", parameters={"faults": ["juggle"]})]})
        self.assertIn("fault 'juggle': expected one of none, crash", str(self.d.wait_plan(plan)))


if __name__ == "__main__":
    main()
