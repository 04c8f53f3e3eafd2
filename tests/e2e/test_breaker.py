"""Circuit breakers: an agent that fails again and again gets no work, is asked by ping, tries one step, and is back."""
import os
import signal
import threading

import harness
from harness import BatonTest, alive, children_of, until
from probe import Probe, step, wait_up

CONFIG = """
policy:
  maxRetries: 0
  heartbeatMs: 300
  leaseMs: 2000
  breaker: {failures: 2, cooldownMs: 400, cooldownMaxMs: 800}
  restart: {intensity: 30, periodMs: 30000, backoffMinMs: 10, backoffMaxMs: 50}
"""
NO_FALLBACKS = {"maxFallbacks": 0}  # or a failed service is waited for and tried once more
FAILED = {"outcome": "failed", "failure": {"class": "SERVICE_UNAVAILABLE", "code": "UNAVAILABLE", "message": "no backend"}}
CLOSED = {"state": "closed"}
DONE = {"outcome": "completed", "result": {"text": "done"}}


class Breaker(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CONFIG + "agents: []\n")

    def probe(self, agent_id="probe", **more):
        probe = Probe(self.d, agent_id, **more)
        self.addCleanup(probe.close)
        return probe

    def agent(self, agent_id="probe"):
        return self.d.ask("agents.get", agentId=agent_id)

    def breaker_of(self, probe):
        return [i["breaker"] for i in self.agent(probe.registration["card"]["agentId"])["instances"]
                if i["instanceId"].upper() == probe.me["instanceId"].upper()][0]

    def run_steps(self, n, **more):
        """One plan per step, one after the other; their ends."""
        return [self.d.wait_plan(self.d.submit({"policy": NO_FALLBACKS, "steps": [step("s", **more)]}))["status"] for _ in range(n)]

    def assert_tried_only_after_a_ping(self, probe, free):
        """After the first `free` attempts, each one was preceded by a ping of its own."""
        asked = [r["type"] for r in list(probe.requests) if r["type"] in ("agent.ping", "step.execute")]
        attempts = 0
        for before, now in zip([""] + asked, asked):
            attempts += now == "step.execute"
            if now == "step.execute" and attempts > free:
                self.assertEqual(before, "agent.ping", asked)

    def test_an_instance_that_fails_in_a_row_opens_and_closes_after_a_ping_and_one_good_step(self):
        sick = threading.Event()
        sick.set()
        probe = self.probe(work=lambda r: FAILED if sick.is_set() else DONE, capacity=4)
        wait_up(self.d)
        self.assertEqual(self.breaker_of(probe), CLOSED)
        self.assertEqual(self.run_steps(2), ["failed", "failed"])
        broken = self.breaker_of(probe)
        self.assertIn(broken["state"], ("open", "half_open"))
        self.assertEqual(broken["failures"], 2)
        self.assertLessEqual(broken.get("retryInMs", 0), 400)
        self.assertGreaterEqual(self.d.ask("supervisor.stats")["breakersOpened"], 1)
        before = len(probe.of("step.execute"))
        sick.clear()
        plan = self.d.submit({"steps": [step("s%d" % i, dependsOn=[]) for i in range(4)]})
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed", self.d.log())
        self.assertTrue(probe.of("agent.ping"), "it was asked by ping before it got work again")
        self.assertEqual(len(probe.of("step.execute")), before + 4)
        self.assertEqual(self.breaker_of(probe), CLOSED)

    def test_steps_wait_while_it_is_open_and_a_failed_trial_opens_it_again(self):
        probe = self.probe(work=lambda r: FAILED)
        wait_up(self.d)
        self.run_steps(2)
        self.assertEqual(self.run_steps(1), ["failed"])
        self.assert_tried_only_after_a_ping(probe, 2)
        self.assertEqual(len(probe.of("step.execute")), 3)
        view = self.breaker_of(probe)
        self.assertEqual(view["failures"], 3)
        self.assertIn(view["state"], ("open", "half_open"))

    def test_one_that_does_not_answer_the_ping_gets_no_work_until_it_does(self):
        deaf = threading.Event()
        deaf.set()
        sick = threading.Event()
        sick.set()
        probe = self.probe(work=lambda r: FAILED if sick.is_set() else DONE, ping=lambda r: not deaf.is_set())
        wait_up(self.d)
        self.run_steps(2)
        sick.clear()
        plan = self.d.submit({"steps": [step("s")]})
        until(lambda: probe.of("agent.ping"), 10, "it is asked by ping")
        waiting = self.d.ask("plan.get", planId=plan)["steps"][0]["waiting"]
        self.assertEqual((waiting["kind"], waiting["agentId"]), ("breaker", "probe"))
        self.assertEqual(len(probe.of("step.execute")), 2)
        probe.close()  # it never answers: only another process can
        deaf.clear()
        self.probe(work=lambda r: DONE)
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed", self.d.log())

    def test_work_goes_to_the_other_instance(self):
        bad = self.probe(work=lambda r: FAILED, capacity=8)
        wait_up(self.d)
        self.run_steps(2)
        good = self.probe(work=lambda r: DONE, capacity=1)
        until(lambda: len(self.agent()["instances"]) == 2 and all(i["health"] == "healthy" for i in self.agent()["instances"]),
              10, "both are there")
        until(lambda: good.of("lane.hello"), 10, "it was greeted")
        ends = self.run_steps(6)
        self.assertEqual(ends.count("completed"), len(good.of("step.execute")))
        self.assertIn("completed", ends)
        self.assert_tried_only_after_a_ping(bad, 2)
        self.assertEqual(self.agent()["breaker"]["state"], "closed", "one that works is enough")

    def test_timeouts_open_it_too(self):
        probe = self.probe(work=lambda r: None, capacity=4)
        wait_up(self.d)
        self.run_steps(2, timeoutMs=100)
        self.assertIn(self.breaker_of(probe)["state"], ("open", "half_open"))

    def test_a_failure_of_the_work_itself_does_not_count(self):
        wrong = {"outcome": "failed", "failure": {"class": "VALIDATION_ERROR", "code": "INVALID", "message": "no such file"}}
        probe = self.probe(work=lambda r: wrong)
        wait_up(self.d)
        self.assertEqual(self.run_steps(5), ["failed"] * 5)
        self.assertEqual(self.breaker_of(probe), CLOSED)

    def test_enabling_the_agent_closes_it_at_once(self):
        sick = threading.Event()
        sick.set()
        probe = self.probe(work=lambda r: FAILED if sick.is_set() else DONE)
        wait_up(self.d)
        self.run_steps(2)
        self.d.ask("agents.enable", agentId="probe")
        self.assertEqual(self.breaker_of(probe), CLOSED)
        sick.clear()
        self.assertEqual(self.run_steps(1), ["completed"])
        self.assertFalse(probe.of("agent.ping"))


class Processes(BatonTest):
    def test_an_agent_whose_processes_crash_in_a_row_opens(self):
        config = CONFIG + """
agents:
  - agentId: exec
    command: ["${BATON_BIN}/baton-agent-exec"]
    settings:
      commands:
        - {id: fall, argv: ["sh", "-c", "kill -9 $PPID"], description: "Ends the agent.", output: text, effects: idempotent}
        - {id: say, argv: ["echo", "here"], description: "Says a word.", output: text, effects: idempotent}
"""
        d = self.daemon(config=config)
        fall = {"stepId": "a", "agentId": "exec", "skill": "fall", "task": "fall"}
        seen = 0
        for _ in range(4):
            plan = d.submit({"policy": NO_FALLBACKS, "steps": [fall]})
            self.assertEqual(d.wait_plan(plan)["status"], "failed")
            seen += 1
        view = d.ask("agents.get", agentId="exec")
        self.assertEqual(view["breaker"]["failures"], seen, "each process was another instance; the agent counts them all")
        self.assertIn(view["breaker"]["state"], ("open", "half_open"))
        plan = d.submit({"steps": [{"stepId": "b", "agentId": "exec", "skill": "say", "task": "say"}]})
        self.assertEqual(d.wait_plan(plan)["status"], "completed", d.log())
        until(lambda: d.ask("agents.get", agentId="exec")["breaker"]["state"] == "closed", 10, "closed again")

    def test_a_process_of_ours_that_does_not_stop_its_work_is_ended_with_all_it_started(self):
        config = """
policy: {heartbeatMs: 300, leaseMs: 60000}
agents:
  - agentId: exec
    command: ["sh", "-c", "${BATON_BIN}/baton-agent-exec; exit $?"]
    settings:
      commands:
        - {id: wait, argv: ["sleep", "100"], description: "Waits.", output: text, effects: idempotent}
"""
        d = self.daemon(config=config)
        pid = d.agent_pids()["exec"][0]
        plan = d.submit({"steps": [{"stepId": "a", "agentId": "exec", "skill": "wait", "task": "wait"}]})
        until(lambda: children_of(pid), 10, "the command runs")
        tree = [pid, *children_of(pid)]
        os.kill(pid, signal.SIGSTOP)  # behind a wrapper: the process that was started is its parent
        d.ask("plan.cancel", planId=plan)
        self.assertEqual(d.wait_plan(plan)["status"], "cancelled", d.log())
        ends = [e for e in d.events(plan) if e["type"] == "plan_step_completed"]
        self.assertEqual([e.get("stop") for e in ends], ["killed"])
        until(lambda: not any(alive(p) for p in tree), 10, "the whole tree is gone")
        until(lambda: d.agent_pids()["exec"] not in ([], [pid]), 10, "another process took its place")


if __name__ == "__main__":
    harness.main()
