"""Calling plans off on real processes: who listens stops, who does not is ended, unless it also works for somebody else."""
import os

from harness import HERE, BatonTest, alive, children_of, main, until

CONFIG = """
policy: {cancelGraceMs: 400, heartbeatMs: 500, leaseMs: 20000}
agents:
  - agentId: stubborn
    command: ["python3", "-B", "%%(here)s/stubborn.py"]
    capacity: %d
"""


def spin(step_id="s", **more):
    return {"stepId": step_id, "agentId": "stubborn", "skill": "spin", "task": "spin", **more}


def rest(seconds, step_id="r"):
    return {"stepId": step_id, "agentId": "stubborn", "skill": "rest", "task": "rest", "parameters": {"seconds": seconds}}


class Cancelling(BatonTest):
    def start(self, capacity):
        self.d = self.daemon(config=CONFIG % capacity)
        return self.d.agent_pids()["stubborn"][0]

    def end_of(self, plan):
        return [e for e in self.d.events(plan) if e["type"] == "plan_step_completed"][0]

    def test_busy_loop_that_ignores_everything_is_ended_with_all_it_started(self):
        pid = self.start(1)
        plan = self.d.submit({"steps": [spin(), rest(0)]})
        until(lambda: children_of(pid), 10, "it spins")
        tree = [pid, *children_of(pid)]
        self.assertEqual(self.d.ask("plan.cancel", planId=plan, reason="enough")["status"], "cancelling")
        view = self.d.wait_plan(plan)
        self.assertEqual(view["status"], "cancelled")
        end = self.end_of(plan)
        self.assertEqual((end["status"], end["stop"], end["errorClass"]), ("cancelled", "killed", "CANCELLED"))
        self.assertEqual(view["steps"][0]["stop"], "killed")
        until(lambda: not any(alive(p) for p in tree), 10, "its tree is gone")
        until(lambda: self.d.agent_pids()["stubborn"] not in ([], [pid]), 10, "another process took its place")
        self.d.wait_agents()
        self.assertEqual(self.d.wait_plan(self.d.submit({"steps": [rest(0)]}))["status"], "completed", "and works")
        events = self.d.events(plan)
        cancelling = [e for e in events if e["type"] == "plan_cancelling"][0]
        self.assertEqual((cancelling["reason"], cancelling["graceMs"]), ("enough", 400))
        self.assertGreaterEqual(events[-1]["tsMs"] - cancelling["tsMs"], 398, "it had its grace")  # two clocks, each cut to ms

    def test_one_that_works_for_another_plan_too_is_only_fenced(self):
        pid = self.start(2)
        other = self.d.submit({"steps": [rest(2)]})
        plan = self.d.submit({"steps": [spin()]})
        until(lambda: children_of(pid), 10, "it spins")
        self.d.ask("plan.cancel", planId=plan)
        self.assertEqual(self.d.wait_plan(plan)["status"], "cancelled")
        self.assertEqual(self.end_of(plan)["stop"], "fenced")
        self.assertTrue(alive(pid))
        self.assertEqual(self.d.wait_plan(other)["status"], "completed", "what it did for the other plan was not lost")
        self.assertEqual([e["attempts"] for e in self.d.events(other) if e["type"] == "plan_step_completed"], [1])

    def test_timeout_of_a_step_ends_nobody_but_the_plan_goes_on(self):
        pid = self.start(2)
        plan = self.d.submit({"steps": [spin(timeoutMs=300, maxRetries=0, onFailure="skip"), rest(0)]})
        view = self.d.wait_plan(plan)
        self.assertEqual([s["status"] for s in view["steps"]], ["skipped", "completed"], view)
        self.assertTrue(alive(pid))

    def test_cancel_is_remembered_by_a_daemon_that_is_killed_in_the_grace(self):
        self.start(1)
        plan = self.d.submit({"steps": [spin()]})
        until(lambda: children_of(self.d.agent_pids()["stubborn"][0]), 10, "it spins")
        self.d.ask("plan.cancel", planId=plan)
        self.d.kill9()
        self.d.start(agents=False)
        self.assertEqual(self.d.wait_plan(plan)["status"], "cancelled", self.d.log())
        self.assertIn(self.end_of(plan)["stop"], ("killed", "fenced", "gone"))


class Listening(BatonTest):
    def test_agent_that_listens_is_told_and_its_programs_are_gone(self):
        d = self.daemon()
        plan = d.submit({"steps": [{"stepId": "w", "agentId": "exec", "skill": "wait", "task": "wait", "parameters": {"name": "w", "seconds": "60"}}]})
        until(lambda: d.executions() == ["w"], 10, "it runs")
        pid = d.agent_pids()["exec"][0]
        programs = children_of(pid)
        d.ask("plan.cancel", planId=plan)
        self.assertEqual(d.wait_plan(plan)["status"], "cancelled")
        end = [e for e in d.events(plan) if e["type"] == "plan_step_completed"][0]
        self.assertEqual((end["status"], end["stop"]), ("cancelled", "acknowledged"))
        self.assertFalse([p for p in programs if alive(p)])
        self.assertEqual(d.agent_pids()["exec"], [pid])
        os.kill(pid, 0)


if __name__ == "__main__":
    main()
