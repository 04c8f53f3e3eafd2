"""What became of an attempt whose answer was lost: who may say so, when the supervisor asks, and how long it waits."""
import json
import signal
import socket
import time
import uuid

from harness import BatonTest, main, until
from probe import Probe, step, wait_up

CONFIG = "policy: {heartbeatMs: 300, leaseMs: 1500, agentWaitMs: 4000, cancelGraceMs: 20000}\nagents: []\n"


def unsafe(**policy):
    return {"steps": [step("a", effects="unsafe")], "policy": {"maxRetries": 3, "backoff": {"initialMs": 10}, **policy}}


def name():
    return str(uuid.uuid4()).upper()


class Case(BatonTest):
    CONFIG = CONFIG

    def setUp(self):
        self.d = self.daemon(config=self.CONFIG, agents=False)

    def probe(self, **more):
        p = Probe(self.d, **more)
        self.addCleanup(p.close)
        return p

    def again(self, probe):
        """As an agent does whose heartbeat is refused: it registers again."""
        probe.epoch = probe.register()["epoch"]

    def restart(self, probe):
        self.d.kill9()
        self.d.start(agents=False)
        self.again(probe)

    def review_of(self, plan):
        until(lambda: self.d.ask("plan.get", planId=plan)["status"] == "waiting", 20, "a person is asked\n" + self.d.log())
        return self.d.ask("review.list")["reviews"][0]


def port_of(probe):
    return int(probe.rep.url.rsplit(":", 1)[1])


class WhoMaySayThatItNeverRan(Case):
    def lose(self, probe, plan):
        until(lambda: len(probe.of("step.execute")) == 1, 10, "the step is at work")
        probe.close()

    def test_a_new_process_under_the_same_names_is_refused_and_then_cannot_say_that_an_unsafe_step_never_ran(self):
        first = self.probe(process=name(), work=lambda r: None)
        plan = self.d.submit(unsafe())
        self.lose(first, plan)
        second = self.probe(process=name(), names=first.me, beat=False, register=False)
        refused = self.d.ask_raw("agent.register", **second.registration)
        self.assertEqual(refused["error"]["code"], "CONFLICT", refused)
        self.assertIn("a new process makes up a new instanceId and a new sessionKey", refused["error"]["message"])
        until(lambda: self.d.ask_raw("agent.register", **second.registration)["ok"], 10, "the first one has gone")
        until(lambda: second.of("step.query"), 10, "it is asked")
        self.assertEqual(self.review_of(plan)["kind"], "unknown_outcome")
        self.assertEqual(second.of("step.execute"), [])

    def test_a_new_process_on_the_same_port_with_the_same_session_key_is_not_greeted(self):
        first = self.probe(process=name(), work=lambda r: None)
        port = port_of(first)
        plan = self.d.submit(unsafe())
        self.lose(first, plan)
        second = self.probe(process=name(), names=first.me, port=port, beat=False, register=False)
        self.assertEqual(self.review_of(plan)["kind"], "unknown_outcome")
        self.assertTrue(second.of("lane.hello"))
        self.assertEqual(second.of("step.query") + second.of("step.execute"), [])

    def test_an_agent_that_names_no_process_works_but_cannot_say_that_an_unsafe_step_never_ran(self):
        first = self.probe(work=lambda r: None)
        port = port_of(first)
        plan = self.d.submit(unsafe())
        self.lose(first, plan)
        second = self.probe(names=first.me, port=port)
        self.assertEqual(self.review_of(plan)["kind"], "unknown_outcome")
        self.assertEqual(second.of("step.execute"), [])
        done = self.d.submit({"steps": [step("b")]})
        self.assertEqual(self.d.wait_plan(done)["status"], "completed")

    def test_the_process_that_was_asked_can_say_so_and_the_step_runs_again_by_itself(self):
        probe = self.probe(process=name(), capacity=1)
        probe.work = lambda r: self.hang_up(probe) if r["attempt"] == 1 else {"outcome": "completed", "result": {"text": "2"}}
        plan = self.d.submit(unsafe())
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed", self.d.log())
        self.assertEqual([r["attempt"] for r in probe.of("step.execute")], [1, 2])

    @staticmethod
    def hang_up(probe):
        """The request is thrown away with its connection, as if it had never come."""
        for key in list(probe.rep.selector.get_map().values()):
            if key.data is not None:
                probe.rep.selector.unregister(key.fileobj)
                key.data.close()

    def test_what_the_agent_has_forgotten_is_not_what_never_ran(self):
        probe = self.probe(process=name(), query=lambda r: {"key": r["key"], "state": "forgotten"})
        probe.work = lambda r: self.hang_up(probe)
        plan = self.d.submit(unsafe())
        self.assertEqual(self.review_of(plan)["kind"], "unknown_outcome")
        self.assertEqual(len(probe.of("step.execute")), 1)

    def test_a_session_key_belongs_to_one_process(self):
        first = self.probe(process=name())
        other = {**first.registration, "instanceId": name(), "processId": name()}
        refused = self.d.ask_raw("agent.register", **other)
        self.assertEqual(refused["error"]["code"], "CONFLICT", refused)
        self.assertIn("sessionKey: another instance has it", refused["error"]["message"])

    def test_a_process_is_named_by_a_uuid(self):
        first = self.probe()
        refused = self.d.ask_raw("agent.register", **{**first.registration, "processId": "4711"})
        self.assertIn("processId: expected a UUID", refused["error"]["message"])


class AfterTheEnd(Case):
    """What nobody knows about an unsafe step is still not known when its plan has ended."""
    CONFIG = CONFIG.replace("20000", "500")
    NO = {"outcome": "failed", "failure": {"code": "INTERNAL", "message": "no", "retryable": False}}

    def lost(self, plan):
        """Its process ends while it pays."""
        self.first = self.probe(process=name(), work=lambda r: None if r["stepId"] == "a" else self.other(r))
        plan = self.d.submit(plan)
        until(lambda: self.first.of("step.execute"), 10, "the step is at work")
        self.first.close()
        self.assertEqual(self.review_of(plan)["kind"], "unknown_outcome")
        return plan

    def about_a(self, plan):
        return [r for r in self.d.ask("review.list", planId=plan)["reviews"] if r["stepId"] == "a"]

    def retried(self, plan):
        """Asked about, and not done again."""
        view = self.d.ask("plan.get", planId=plan)
        self.assertTrue({s["stepId"]: s for s in view["steps"]}["a"]["outcomeUnknown"], view)
        shown = self.d.cli("status", plan)
        self.assertRegex(shown, r"a .*\(may have been done\)")
        self.second = self.probe(process=name())
        wait_up(self.d)
        new = self.d.ask("plan.retry", planId=plan)["planId"]
        review = until(lambda: self.about_a(new), 10, "a person is asked")[0]
        self.assertEqual(review["kind"], "unknown_outcome")
        self.d.kill9()
        self.d.start(agents=False)
        self.again(self.second)
        wait_up(self.d)
        self.assertEqual([r["reviewId"] for r in self.about_a(new)], [review["reviewId"]])
        self.assertEqual([r for r in self.second.of("step.execute") if r["stepId"] == "a"], [])
        return new, review["reviewId"]

    def test_a_retry_of_a_cancelled_plan_asks_and_an_approval_does_it_again(self):
        plan = self.lost(unsafe())
        self.d.cli("cancel", plan)
        self.assertEqual(self.d.wait_plan(plan)["status"], "cancelled")
        new, review = self.retried(plan)
        self.d.cli("approve", review)
        self.assertEqual(self.d.wait_plan(new)["status"], "completed", self.d.log())
        self.assertEqual(len(self.second.of("step.execute")), 1)

    def test_a_retry_after_another_step_failed_asks_and_a_skip_leaves_it_as_it_is(self):
        self.other = lambda r: self.NO
        plan = self.lost({"steps": [step("a", effects="unsafe"), step("b", dependsOn=[], requiresApproval=True)], "policy": {"agentWaitMs": 60000}})
        probe = self.probe(process=name(), work=self.other)
        wait_up(self.d)
        self.d.cli("approve", plan + "/b")
        self.assertEqual(self.d.wait_plan(plan)["status"], "failed")
        probe.close()
        until(lambda: not [a for a in self.d.ask("agents.list")["agents"] if a["state"] == "up"], 20, "it has gone")
        new, review = self.retried(plan)
        self.d.ask("review.decide", reviewId=review, decision="skip")
        self.d.cli("approve", new + "/b")
        self.assertEqual(self.d.wait_plan(new)["status"], "completed", self.d.log())
        self.assertEqual([r["stepId"] for r in self.second.of("step.execute")], ["b"])

    def test_the_word_of_the_agent_that_it_failed_is_an_answer(self):
        said = [self.NO]
        probe = self.probe(process=name(), work=lambda r: said.pop() if said else {"outcome": "completed", "result": {"text": "2"}})
        plan = self.d.submit(unsafe())
        self.assertEqual(self.d.wait_plan(plan)["status"], "failed")
        self.assertNotIn("may have been done", self.d.cli("status", plan))
        new = self.d.ask("plan.retry", planId=plan)["planId"]
        self.assertEqual(self.d.wait_plan(new)["status"], "completed")
        self.assertEqual(len(probe.of("step.execute")), 2)


class Asking(Case):
    """An agent that works on while the daemon is away, and whose answer the daemon never gets."""

    def start(self, **more):
        self.done = False
        self.said = {"outcome": "completed", "result": {"text": "late"}}
        self.out = []

        def work(r):
            self.out.append(r)

        def state(r):
            if not self.done:
                return {"key": r["key"], "state": "running"}
            return {"key": r["key"], "state": "done", "result": {
                "key": r["key"], "attempt": r["attempt"], "epoch": self.out[-1]["epoch"], **self.said}}

        def inflight():
            return [{"key": r["key"]} for r in self.out if not self.done]

        probe = self.probe(process=name(), work=work, query=state, cancel=state, inflight=inflight, **more)
        return probe

    def adopted(self, probe, plan):
        until(lambda: self.out, 10, "the step is at work")
        self.restart(probe)
        until(lambda: probe.of("step.query"), 10, "it is asked about")

    def test_a_result_that_no_heartbeat_lists_any_more_is_asked_for(self):
        probe = self.start()
        plan = self.d.submit({"steps": [step("a")], "policy": {"stepTimeoutMs": 0}})
        self.adopted(probe, plan)
        self.done = True
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed", self.d.log())
        self.assertIn("late", json.dumps(self.d.ask("plan.result", planId=plan)))
        self.assertEqual(len(probe.of("step.execute")), 1)

    def test_a_result_is_asked_for_before_a_timeout_is_declared(self):
        probe = self.start()
        plan = self.d.submit({"steps": [step("a")], "policy": {"stepTimeoutMs": 8000, "maxRetries": 0}})
        self.adopted(probe, plan)
        probe.inflight = lambda: [{"key": self.out[0]["key"]}]  # no heartbeat says that it has ended
        self.done = True
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed", self.d.log())

    def test_a_result_in_the_answer_to_a_cancel_is_taken(self):
        probe = self.start()
        plan = self.d.submit({"steps": [step("a")], "policy": {"stepTimeoutMs": 0}})
        self.adopted(probe, plan)
        probe.inflight = lambda: [{"key": self.out[0]["key"]}]  # it is not asked for
        self.done = True
        self.d.ask("plan.cancel", planId=plan)
        view = self.d.wait_plan(plan, 20)
        self.assertEqual(view["status"], "cancelled")
        self.assertEqual(self.d.ask("plan.get", planId=plan)["steps"][0]["status"], "completed", self.d.log())
        self.assertEqual(probe.of("step.cancel")[0]["attempt"], 1)

    def test_usage_that_comes_only_in_the_answer_to_a_cancel_counts_once(self):
        for outcome in ({"outcome": "completed", "result": {"text": "late"}}, {"outcome": "cancelled"},
                        {"outcome": "failed", "failure": {"code": "INTERNAL", "class": "UNKNOWN", "message": "called off"}}):
            with self.subTest(outcome=outcome["outcome"]):
                probe = self.start()
                self.said = {**outcome, "usage": {"inputTokens": 7, "costMicros": 11}}
                plan = self.d.submit({"steps": [step("a")], "policy": {"stepTimeoutMs": 0, "maxRetries": 0}})
                self.adopted(probe, plan)
                probe.inflight = lambda: [{"key": self.out[0]["key"]}]  # it is not asked for
                self.done = True
                self.d.ask("plan.cancel", planId=plan)
                self.assertEqual(self.d.wait_plan(plan, 20)["status"], "cancelled")
                used = lambda: self.d.ask("plan.cost", planId=plan)["plans"][0]["execution"]
                self.assertEqual(used(), {"inputTokens": 7, "costMicros": 11}, self.d.log())
                self.again(probe)  # an answer once more changes nothing
                self.d.ask_raw("step.result", instanceId=probe.me["instanceId"], key=self.out[0]["key"], attempt=1, epoch=probe.epoch,
                               **self.said)
                self.assertEqual(used(), {"inputTokens": 7, "costMicros": 11})
                probe.close()
                until(lambda: not [a for a in self.d.ask("agents.list")["agents"] if a["state"] == "up"], 20, "it has gone")

    def test_the_same_process_delivers_under_its_new_epoch_what_it_was_asked_under_the_old_one(self):
        probe = self.start()
        plan = self.d.submit({"steps": [step("a")], "policy": {"stepTimeoutMs": 0}})
        self.adopted(probe, plan)
        asked = self.out[0]
        self.assertLess(asked["epoch"], probe.epoch)
        body = {"key": asked["key"], "attempt": 1, "epoch": asked["epoch"], "outcome": "completed", "result": {"text": "5"}}
        stranger = self.d.ask_raw("step.result", instanceId=name(), **body)
        self.assertEqual(stranger["error"]["code"], "NOT_FOUND")
        answer = self.d.ask("step.result", instanceId=probe.me["instanceId"], **body)
        self.assertTrue(answer["accepted"], answer)
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")

    def test_a_result_under_an_old_epoch_of_an_agent_that_names_no_process_is_refused_with_the_reason(self):
        probe = self.probe(work=lambda r: None, query=lambda r: {"key": r["key"], "state": "running"})
        plan = self.d.submit({"steps": [step("a")], "policy": {"stepTimeoutMs": 0}})
        until(lambda: probe.of("step.execute"), 10, "the step is at work")
        asked = probe.of("step.execute")[0]
        self.restart(probe)
        answer = self.d.ask_raw("step.result", instanceId=probe.me["instanceId"], key=asked["key"], attempt=1, epoch=asked["epoch"],
                                outcome="completed", result={"text": "5"})
        self.assertEqual(answer["error"]["code"], "CONFLICT")
        self.d.ask("plan.cancel", planId=plan)


class Clock(Case):
    def test_the_time_of_an_attempt_goes_on_over_restarts_of_the_daemon(self):
        probe = self.probe(process=name(), work=lambda r: None, query=lambda r: {"key": r["key"], "state": "running"})
        plan = self.d.submit({"steps": [step("a")], "policy": {"stepTimeoutMs": 6000, "maxRetries": 0}})
        until(lambda: probe.of("step.execute"), 10, "the step is at work")
        began = self.d.events(plan, types=["plan_step_started"])[0]["tsMs"]
        for after in (2000, 4000):
            until(lambda: time.time() * 1000 >= began + after, 10, "time passes")
            self.restart(probe)
            until(lambda: self.state(plan) == "in_progress", 10, "it goes on")
        self.assertEqual(self.d.wait_plan(plan)["status"], "failed")
        end = [e for e in self.d.events(plan) if e["type"] == "plan_step_completed"][0]
        self.assertEqual(end["errorClass"], "TIMEOUT", end)
        self.assertGreaterEqual(end["tsMs"] - began, 5900)
        self.assertLess(end["tsMs"] - began, 9500, "it began again after a restart")

    def state(self, plan):
        return self.d.ask("plan.get", planId=plan)["steps"][0]["status"]


class Unreadable(Case):
    BAD = [b'{"v":1,"type":"step.result","ok":true,"x":NaN}', b'{"v":1,"type":"step.result","ok":true,"x":"\xe4"}']

    def test_an_answer_that_cannot_be_read_costs_its_attempt_and_its_pipe_and_not_the_lane(self):
        said = list(self.BAD)
        probe = self.probe(process=name(), work=lambda r: said.pop() if said else {"outcome": "completed", "result": {"text": "ok"}})
        for _ in range(2):
            plan = self.d.submit({"steps": [step("a")]})
            view = self.d.wait_plan(plan)
            self.assertEqual(view["status"], "failed")
            self.assertIn("the agent's answer cannot be read", view["steps"][0]["error"])
        self.assertEqual(self.d.wait_plan(self.d.submit({"steps": [step("a")]}))["status"], "completed", self.d.log())
        self.assertEqual([e for e in self.d.events() if e["type"] == "agent_down"], [])

    def test_several_in_a_row_end_the_instance_with_the_reason_and_agent_wait_ms_applies(self):
        probe = self.probe(process=name(), hello=b"\xff\xff", beat=False)
        plan = self.d.submit({"steps": [step("a")]})
        down = until(lambda: [e for e in self.d.events() if e["type"] == "agent_down"], 20, "the instance is down")
        self.assertIn("its answers cannot be read", down[0]["reason"])
        self.assertEqual(len(probe.of("lane.hello")) >= 3, True)
        self.assertEqual(self.d.wait_plan(plan, 30)["status"], "failed")


class Leases(Case):
    CONFIG = "policy: {heartbeatMs: 5000, leaseMs: 30000}\nagents: []\n"

    def downs(self):
        return [e["reason"] for e in self.d.events() if e["type"] == "agent_down"]

    def test_an_agent_whose_connections_have_all_ended_is_down_long_before_its_lease_is_over(self):
        """Within a second, where nothing else runs."""
        probe = self.probe(process=name(), beat=False)
        wait_up(self.d)
        probe.close()
        ended = time.time() * 1000
        until(self.downs, 10, "it is down\n" + self.d.log())
        self.assertEqual(self.downs(), ["all its connections have ended"])
        down = [e for e in self.d.events() if e["type"] == "agent_down"][0]
        self.assertLess(down["tsMs"] - ended, 5000)


class Stopped(Case):
    def wait_up(self):
        try:
            wait_up(self.d)
        except AssertionError as e:
            raise AssertionError("%s\n%s" % (e, [(e["type"], e.get("reason"), e["timestamp"]) for e in self.d.events()])) from None

    def test_an_agent_is_not_silent_while_the_daemon_is_stopped(self):
        probe = self.probe(process=name())
        wait_up(self.d)
        for _ in range(3):
            self.d.process.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            until(lambda: time.monotonic() - began > 2.5, 10, "longer than the lease")
            self.d.process.send_signal(signal.SIGCONT)
            self.wait_up()
        self.assertEqual([e["reason"] for e in self.d.events() if e["type"] == "agent_down"], [])
        self.assertEqual(probe.epoch, self.d.ask("agents.get", agentId="probe")["instances"][0]["epoch"])

    def test_the_time_to_open_a_lane_does_not_pass_while_the_daemon_is_stopped(self):
        """An agent that just registered: nothing answers at its endpoint before two leases, 3 s, are over."""
        with socket.create_server(("127.0.0.1", 0)) as mute:
            probe = self.probe(process=name(), beat=False, register=False)
            probe.registration["endpoint"] = "tcp://127.0.0.1:%d" % mute.getsockname()[1]
            probe.epoch = probe.register()["epoch"]
            self.d.process.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            until(lambda: time.monotonic() - began > 3.5, 10, "longer than two leases")
            self.d.process.send_signal(signal.SIGCONT)
            beat = {"instanceId": probe.me["instanceId"], "epoch": probe.epoch}
            self.assertTrue(self.d.ask_raw("agent.heartbeat", **beat)["ok"], self.d.log())
            refused = until(lambda: next((a for a in [self.d.ask_raw("agent.heartbeat", **beat)] if not a["ok"]), None), 10, "it is given up")
            self.assertIn("no lane could be opened", refused["error"]["message"])
            self.assertGreater(time.monotonic() - began, 6, "3.5 s of stop and 3 s of its own")

    def test_what_is_left_of_a_lease_before_a_stop_is_left_after_it(self):
        """The daemon may have begun to wait, a second long, just before it is stopped: that second has not passed."""
        probe = self.probe(process=name(), beat=False)
        wait_up(self.d)
        for _ in range(5):
            self.d.ask("agent.heartbeat", instanceId=probe.me["instanceId"], epoch=probe.epoch)
            self.d.process.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            until(lambda: time.monotonic() - began > 2.2, 10, "longer than the lease")
            self.d.process.send_signal(signal.SIGCONT)
            began = time.monotonic()
            until(lambda: time.monotonic() - began > 0.8, 10, "about half of the lease")
        self.assertEqual([e["reason"] for e in self.d.events() if e["type"] == "agent_down"], [])


if __name__ == "__main__":
    main()
