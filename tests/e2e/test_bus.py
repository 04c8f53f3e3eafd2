"""What the bus promises to honest peers: keys, lists, events, reviews, draining, restarts, big plans."""
import json
import os
import signal
import subprocess
import threading
import time
import unittest
import uuid

import harness
from harness import BIN, BatonTest, main, sp, until
from probe import Probe, pack, step, wait_up

NONE = ""


class Bus(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=NONE, agents=False)
        for name in ("probe", "a", "nobody"):  # known by name, but not there: plans for them are accepted and wait
            self.d.ask("agent.register", card={"agentId": name, "skills": [{"id": "do"}]}, capacity=1, sessionKey="k" * 32,
                       instanceId=str(uuid.uuid4()), endpoint="tcp://127.0.0.1:9")

    def probe(self, agent_id="probe", **more):
        p = Probe(self.d, agent_id, **more)
        self.addCleanup(p.close)
        wait_up(self.d, agent_id)
        return p

    def parallel(self, n, work):
        found, threads = [None] * n, []

        def one(i):
            found[i] = work(i)
        threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        return found


class Keys(Bus):
    def test_fifty_clients_with_one_key_get_one_plan_also_after_a_restart(self):
        plan = {"steps": [step()]}
        answers = self.parallel(50, lambda _: self.d.ask("plan.submit", plan=plan, clientKey="k"))
        self.assertEqual(len({a["planId"] for a in answers}), 1)
        self.assertEqual(sum(not a.get("existing", False) for a in answers), 1, "exactly one of them made it")
        self.d.kill9()
        self.d.start(agents=False)
        again = self.d.ask("plan.submit", plan=plan, clientKey="k")
        self.assertEqual((again["planId"], again["existing"]), (answers[0]["planId"], True))
        self.assertEqual(len(self.d.ask("plan.list")["plans"]), 1)
        for other in ({"plan": {"steps": [step("b")]}}, {"plan": plan, "sessionId": "s"}, {"plan": plan, "policy": {"timeoutMs": 9}}):
            refused = self.d.ask_raw("plan.submit", clientKey="k", **other)
            self.assertEqual(refused["error"]["code"], "CONFLICT", other)

    def test_plan_ids_are_read_in_any_case(self):
        plan = self.d.submit({"steps": [step()]})
        for id_ in (plan.lower(), plan.upper()):
            self.assertEqual(self.d.ask("plan.get", planId=id_)["planId"], plan)
            self.assertEqual(self.d.ask("review.list", planId=id_)["reviews"], [])
        self.assertEqual(self.d.ask("plan.cancel", planId=plan.lower())["status"], "cancelled")

    def test_cancelling_twice_is_cancelling_once(self):
        plan = self.d.submit({"steps": [step()]})
        for _ in range(3):
            self.assertEqual(self.d.ask("plan.cancel", planId=plan)["status"], "cancelled")
        self.assertEqual([e["type"] for e in self.d.events(plan)].count("plan_completed"), 1)
        self.probe()
        done = self.d.submit({"steps": [step()]})
        self.d.wait_plan(done)
        self.assertEqual(self.d.ask_raw("plan.cancel", planId=done)["error"]["code"], "CONFLICT")


class Reading(Bus):
    def test_final_status_never_comes_before_its_result(self):
        self.probe(capacity=8)
        for _ in range(5):
            ids = self.parallel(8, lambda i: self.d.submit({"steps": [step()]}))
            for plan in ids:
                until(lambda: self.d.ask("plan.result", planId=plan)["status"] == "completed" or None, 20, "the plan ends")
            for answer in (self.d.ask("plan.result", planId=p) for p in ids):
                self.assertEqual(answer["aggregatedResult"], "done a")

    def test_result_polled_in_a_tight_loop_is_whole_when_it_is_final(self):
        self.probe(capacity=4)

        def poll(_):
            plan = self.d.submit({"steps": [step()]})
            with sp.Req(self.d.endpoints()["control"], 10) as r:
                while True:
                    body = {"v": 1, "type": "plan.result", "id": "1", "token": self.d.token(), "planId": plan}
                    answer = json.loads(r.ask(json.dumps(body).encode()))
                    if answer["status"] == "completed":
                        return answer.get("aggregatedResult")
        self.assertEqual(set(self.parallel(12, poll)), {"done a"})

    def test_plan_of_10000_steps_is_read_in_pieces_that_say_so(self):
        plan = self.d.submit({"steps": [{"stepId": "s%d" % i, "agentId": "a", "task": "t" * 20} for i in range(10000)]})
        seen, asked = [], 0
        while True:
            view = self.d.ask("plan.get", planId=plan, fromStep=len(seen))
            self.assertEqual(view["counts"]["total"], 10000)
            seen += [s["stepIndex"] for s in view["steps"]]
            asked += 1
            if not view.get("stepsTruncated"):
                break
            self.assertGreater(len(view["steps"]), 100)
        self.assertEqual(seen, list(range(10000)))
        big = self.d.submit({"steps": [{"stepId": "s%d" % i, "agentId": "a", "task": "t" * 7000} for i in range(140)]})
        self.assertEqual(len(self.d.ask("plan.get", planId=big)["steps"]), 140)
        self.d.ask("plan.cancel", planId=plan)

    def test_waiting_plans_are_found_by_their_status_and_show_the_question(self):
        p = self.probe(work=lambda r: {"outcome": "needs_input", "need": {"kind": "text", "prompt": "Which colour?"}})
        plan = self.d.submit({"steps": [step()]})
        idle = self.d.submit({"steps": [step(agent="nobody")]})
        until(lambda: self.d.ask("plan.get", planId=plan)["status"] == "waiting", 10, "it waits")

        def listed(**fields):
            return [v["planId"] for v in self.d.ask("plan.list", **fields)["plans"]]
        self.assertEqual((listed(status="waiting"), listed(status="running"), listed()), ([plan], [idle], [idle, plan]))
        self.assertEqual(listed(status="completed"), [])
        self.assertEqual([r["prompt"] for r in self.d.ask("review.list", planId=plan.lower())["reviews"]], ["Which colour?"])
        p.close()
        self._cleanups = [c for c in self._cleanups if c[0] != p.close]
        self.d.kill9()
        self.d.start(agents=False)
        self.assertEqual([r["prompt"] for r in self.d.ask("review.list")["reviews"]], ["Which colour?"], "also after a restart")

    def test_list_goes_on_behind_its_cursor(self):
        ids = [self.d.submit({"steps": [step("s%d" % i)]}) for i in range(7)]
        seen, cursor = [], {}
        while True:
            page = self.d.ask("plan.list", limit=3, **cursor)
            seen += [v["planId"] for v in page["plans"]]
            if not page.get("cursor"):
                break
            cursor = {"cursor": page["cursor"]}
        self.assertEqual(seen, ids[::-1])

    def test_reads_park_until_something_comes_and_survive_askers_that_leave(self):
        last = self.d.ask("supervisor.info")["lastSeq"]
        for _ in range(80):  # more than there are places; all of them leave at once
            req = sp.Req(self.d.endpoints()["control"], 5)
            req.pipe.send(b"\x80\0\0\1" + json.dumps({"v": 1, "type": "events.read", "token": self.d.token(),
                                                      "fromSeq": last + 1, "waitMs": 60000}).encode())
            req.close()
        began = time.monotonic()
        self.d.ask("supervisor.info")
        self.assertLess(time.monotonic() - began, 1, "others are served")
        self.d.submit({"steps": [step()]})
        got = self.d.ask("events.read", fromSeq=last + 1, waitMs=5000)
        self.assertEqual(got["events"][0]["type"], "plan_generated")

    def test_waiting_reader_gets_the_event_when_it_happens(self):
        last = self.d.ask("supervisor.info")["lastSeq"]
        found = []
        reader = threading.Thread(target=lambda: found.append(
            self.d.ask("events.read", fromSeq=last + 1, types=["plan_completed"], waitMs=20000)))
        reader.start()
        time.sleep(0.2)
        self.d.ask("plan.cancel", planId=self.d.submit({"steps": [step()]}))
        reader.join(10)
        self.assertEqual([e["type"] for e in found[0]["events"]], ["plan_completed"])


class Agents(Bus):
    def test_drained_agent_stays_out_until_it_is_enabled(self):
        p = self.probe()
        self.d.ask("agents.drain", agentId="probe")
        until(lambda: p.order.get("drain"), 10, "the heartbeat says so")
        self.assertEqual(self.d.ask("agents.get", agentId="probe")["state"], "disabled")
        p.epoch = p.register()["epoch"]  # as a process that was started again
        plan = self.d.submit({"steps": [step()]})
        time.sleep(0.5)
        self.assertEqual(p.of("step.execute"), [], "nothing goes to it")
        self.d.ask("agents.enable", agentId="probe")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed", "what had waited goes on at once")
        self.assertEqual(self.d.ask_raw("agents.drain", agentId="none")["error"]["code"], "NOT_FOUND")

    def test_cards_with_long_schemas_do_not_break_the_list(self):
        schema = {"type": "object", "description": "x" * 60000}
        for a in range(14):
            skills = [{"id": "s%d" % i, "inputSchema": schema} for i in range(8)]
            self.d.ask("agent.register", card={"agentId": "a%d" % a, "skills": skills}, capacity=1, sessionKey="k" * 32,
                       instanceId="0190F3C2-7A1B-7C3D-9E4F-0123456789%02X" % a, endpoint="tcp://127.0.0.1:9")
        listed = self.d.ask("agents.list")
        self.assertEqual((len(listed["agents"]), listed.get("skillsTruncated")), (17, True))
        self.assertEqual(len(self.d.ask("agents.get", agentId="a3")["card"]["skills"]), 8)


class Stopping(Bus):
    def test_drain_finishes_what_runs_refuses_what_is_new_and_exits_0(self):
        gate = []
        p = self.probe(work=lambda r: (until(lambda: gate, 20, "gate"), {"outcome": "completed", "result": {"text": "x"}})[1])
        plan = self.d.submit({"steps": [step("a"), step("b")]}, clientKey="k")
        until(lambda: p.of("step.execute"), 10, "the step runs")
        self.d.process.send_signal(signal.SIGTERM)
        until(lambda: self.d.ask_raw("plan.submit", plan={"steps": [step()]})["error"]["code"] == "UNAVAILABLE"
              if not self.d.ask_raw("plan.submit", plan={"steps": [step()]})["ok"] else None, 5, "new plans are refused")
        self.assertTrue(self.d.ask("plan.submit", plan={"steps": [step("a"), step("b")]}, clientKey="k")["existing"])
        gate.append(1)
        self.assertEqual(self.d.process.wait(15), 0)
        self.d.start(agents=False)
        wait_again = p.register()
        p.epoch = wait_again["epoch"]
        view = self.d.wait_plan(plan)
        self.assertEqual((view["status"], [s["attempts"] for s in view["steps"]]), ("completed", [1, 1]), "nothing was done twice")

    def test_second_signal_ends_it_now(self):
        gate = []
        p = self.probe(work=lambda r: (until(lambda: gate, 20, "gate"), {"outcome": "completed", "result": {"text": "x"}})[1])
        self.d.submit({"steps": [step()]})
        until(lambda: p.of("step.execute"), 10, "the step runs")
        self.d.process.send_signal(signal.SIGTERM)
        until(lambda: "supervisor.stopping" in self.d.log(), 10, "it drains")
        self.assertIsNone(self.d.process.poll())
        self.d.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.d.process.wait(3), 0)
        gate.append(1)

    def test_drain_request_is_answered_before_the_daemon_leaves(self):
        for _ in range(5):
            self.assertTrue(self.d.ask("supervisor.drain")["ok"])
            self.assertEqual(self.d.process.wait(10), 0)
            self.d.start(agents=False)

    def test_exit_codes_of_a_start_that_fails(self):
        def start(*args):
            return subprocess.run([BIN / "batond", *map(str, args)], capture_output=True, timeout=30, text=True)
        second = start("--state", self.d.state, "--config", self.d.config)
        self.assertEqual(second.returncode, 3, second.stderr)
        self.assertIn(str(self.d.process.pid), second.stderr)
        taken = start("--state", self.d.work / "other", "--listen-control", self.d.endpoints()["control"])
        self.assertEqual(taken.returncode, 1, "a port that is taken is not a lock that is held\n" + taken.stderr)
        for bad in (["--no-such"], ["extra"], ["--ready-fd", "x"], ["--ready-fd", "900"], ["--ready-fd", "0"],
                    ["--config", self.d.work / "none.yaml"]):
            self.assertEqual(start("--state", self.d.work / "other", *bad).returncode, 2, bad)
        self.d.ask("supervisor.info")

    def test_plans_of_a_killed_daemon_with_many_open_plans_all_end(self):
        ids = [self.d.submit({"steps": [step()]}) for _ in range(40)]
        for plan in ids[:10]:
            self.d.ask("plan.cancel", planId=plan)
        self.d.kill9()
        self.d.start(agents=False)
        self.probe(capacity=4)
        for plan in ids[10:]:
            self.assertEqual(self.d.wait_plan(plan)["status"], "completed")

    def test_ending_and_submitting_in_one_turn(self):
        self.probe(capacity=8)
        self.parallel(12, lambda i: [self.d.ask_raw("plan.cancel", planId=self.d.submit({"steps": [step()]})) if k % 2 else
                                     self.d.wait_plan(self.d.submit({"steps": [step()]})) for k in range(10)])
        self.assertEqual(self.d.ask("supervisor.info").get("plansOpen", 0), 0)


class Memory(Bus):
    def test_memory_of_ended_plans_and_gone_askers_comes_back(self):
        self.probe(capacity=8)

        def round_of(n):
            self.parallel(8, lambda _: [self.d.wait_plan(self.d.submit({"steps": [step("a"), step("b")]})) for _ in range(n)])
            return self.d.ask("supervisor.stats")["rssBytes"]
        first = round_of(15)
        # 0.7 MiB; the sanitizer keeps freed blocks for a while: some 31 MiB
        self.assertLess(round_of(15) - first, (48 if harness.sanitized() else 4) << 20)


if __name__ == "__main__":
    main()
