"""Floods: strangers, idle connections and long reads do not keep agents and short requests from their answers."""
import json
import os
import resource
import select
import signal
import socket
import struct
import unittest

import probe
from harness import BatonTest, sp, until

HOLDS = """
agents:
  - {agentId: calc, command: ["${BATON_BIN}/baton-agent-calc"], capacity: 4}
  - {agentId: late, command: ["/bin/sleep", "1000"]}
"""


def steps(n, agent="late", skill=None):
    return [{"stepId": "%d" % i, "agentId": agent, "task": "wait", **({"skill": skill} if skill else {})} for i in range(n)]


def dial(url):
    """A connection that has shaken hands and says nothing."""
    host, port = url[len("tcp://"):].rsplit(":", 1)
    s = socket.create_connection((host, int(port)), 10)
    s.sendall(b"\0SP\0" + struct.pack(">HH", sp.REQ, 0))
    return s


def limit(name, pid):
    """Soft and hard limit of a process."""
    with open("/proc/%d/limits" % pid) as f:
        return next(line for line in f if line.startswith(name)).split()[-3:-1]


class Reads(BatonTest):
    """plan.get reads the rows once, and goes on from there."""

    def setUp(self):
        self.d = self.daemon(config=HOLDS, agents=False)

    def get(self, plan, **fields):
        return self.d.ask("plan.get", planId=plan, **fields)

    def test_an_open_plan_is_as_it_is_now_at_every_read(self):
        plan = self.d.submit({"steps": steps(3) + [{"stepId": "sum", "agentId": "calc", "skill": "evaluate", "task": "add",
                                                   "parameters": {"expression": "1+1"}, "dependsOn": []}]})
        until(lambda: self.get(plan)["steps"][3]["status"] == "completed", 20, "the sum")
        first = self.get(plan)
        self.assertEqual(first["counts"], {"total": 4, "completed": 1})
        self.assertEqual(first["steps"][3]["agentName"], self.get(plan)["steps"][3]["agentName"])
        self.assertIn("waiting", first["steps"][0])
        self.assertEqual(self.get(plan, steps=False).get("steps", []), [])
        self.assertEqual([s["stepId"] for s in self.get(plan, fromStep=2)["steps"]], ["2", "sum"])
        revision = self.d.ask("plan.modify", planId=plan, kind="skip_steps", stepsToSkip=[1], reasoning="not needed").get("revision")
        after = self.get(plan)
        self.assertEqual(after["steps"][0]["status"], "skipped", after)
        self.assertEqual(after.get("revision"), revision or after.get("revision"))
        self.d.ask("plan.cancel", planId=plan)
        until(lambda: self.get(plan)["status"] == "cancelled", 20, "the end")
        last = self.get(plan)
        self.assertEqual(last["counts"], {"total": 4, "completed": 1, "skipped": 1, "cancelled": 2})
        self.assertNotIn("waiting", last["steps"][1])
        self.assertEqual(last, self.get(plan))

    def test_what_is_kept_is_what_is_read_anew_after_a_restart(self):
        plans = [self.d.submit({"steps": steps(2 + i)}) for i in range(12)]  # more than are kept of ended ones
        for plan in plans:
            self.get(plan)
            self.d.ask("plan.cancel", planId=plan)
        for plan in plans:
            until(lambda p=plan: self.get(p)["status"] == "cancelled", 20, "the end")
        told = [(self.get(p), self.d.ask("plan.history", planId=p), self.d.ask("plan.result", planId=p)) for p in plans]
        self.assertEqual([len(t[0]["steps"]) for t in told], list(range(2, 14)))
        self.d.stop()
        self.d.start(agents=False)
        self.assertEqual(told, [(self.get(p), self.d.ask("plan.history", planId=p), self.d.ask("plan.result", planId=p)) for p in plans])

    def test_documents_of_earlier_revisions_are_found(self):
        plan = self.d.submit({"steps": steps(2)})
        self.d.ask("plan.modify", planId=plan, kind="skip_steps", stepsToSkip=[2], reasoning="not needed")
        newest = self.get(plan)["revision"]
        for revision in range(1, newest + 1):
            document = self.get(plan, steps=False, document=True, revision=revision)["document"]
            self.assertEqual(len(document["steps"]), 2, document)
        refused = self.d.ask_raw("plan.get", planId=plan, document=True, revision=newest + 1)
        self.assertEqual(refused["error"]["code"], "NOT_FOUND")


class Slices(BatonTest):
    """Reads that look at much go on over cycles, and give the same."""

    def turns(self, ask):
        before = self.d.ask("supervisor.stats")["turns"]
        answer = ask()
        return self.d.ask("supervisor.stats")["turns"] - before, answer

    def test_costs_of_large_plans_are_read_over_cycles(self):
        self.d = self.daemon(config=HOLDS, agents=False)
        estimated = [{**s, "estimate": {"tokens": 3}} for s in steps(3000)]
        plans = [self.d.submit({"steps": estimated}) for _ in range(40)]
        n, costs = self.turns(lambda: self.d.ask("plan.cost"))
        self.assertGreater(n, 3)
        self.assertEqual([p["planId"] for p in costs["plans"]], plans[::-1])
        self.assertEqual({p["estimatedTokens"] for p in costs["plans"]}, {9000})
        self.assertEqual(costs["total"]["estimatedTokens"], 40 * 9000)
        self.assertEqual([p["planId"] for p in self.d.ask("plan.cost", planId=plans[7])["plans"]], [plans[7]])

    def test_scans_of_everything_do_not_hold_up_who_reads_one_plan(self):
        self.d = self.daemon(config=HOLDS, agents=False)
        plans = [self.d.submit({"steps": steps(3000)}) for _ in range(40)]
        small = self.d.submit({"steps": steps(1)})
        url, token = self.d.endpoints()["control"], self.d.token()
        pipes = [sp.connect(url, sp.REQ, sp.REP, 120) for _ in range(21)]
        os.kill(self.d.process.pid, signal.SIGSTOP)  # so that the scans are there first
        for i, pipe in enumerate(pipes):
            body = {"type": "plan.cost"} if i < 20 else {"type": "plan.get", "planId": small}
            pipe.send(struct.pack(">I", 0x80000000 | i) + json.dumps({"v": 1, "id": "r", "token": token, **body}).encode())
        os.kill(self.d.process.pid, signal.SIGCONT)
        self.assertEqual(json.loads(pipes[20].recv()[4:])["planId"], small)
        self.assertLess(len(select.select([p.sock for p in pipes[:20]], [], [], 0)[0]), 20)
        for pipe in pipes[:20]:
            self.assertEqual(len(json.loads(pipe.recv()[4:])["plans"]), len(plans) + 1)
        for pipe in pipes:
            pipe.close()

    def test_a_search_for_a_rare_event_and_for_a_rare_status_finds_all(self):
        self.d = self.daemon(config=HOLDS, agents=False)
        first = self.d.submit({"steps": steps(1)})
        self.d.ask("plan.cancel", planId=first)
        for _ in range(1500):
            self.d.submit({"steps": steps(1)})
        page = self.d.ask("plan.list", status="waiting")
        self.assertEqual((page.get("plans", []), page.get("cursor", "")), ([], ""))
        self.assertEqual([p["planId"] for p in self.d.ask("plan.list", status="cancelled")["plans"]], [first])
        page = self.d.ask("events.read", fromSeq=1, limit=1000, types=["plan_completed"])
        self.assertEqual([e["planId"] for e in page["events"]], [first])
        self.assertEqual(page["nextSeq"], page["lastSeq"] + 1)
        # one that waits for what comes while others are read
        waiting = sp.connect(self.d.endpoints()["control"], sp.REQ, sp.REP, 30)
        self.addCleanup(waiting.close)
        waiting.send(struct.pack(">I", 0x80000001) + json.dumps({
            "v": 1, "type": "events.read", "id": "w", "token": self.d.token(), "fromSeq": page["nextSeq"] - 2000,
            "types": ["turn_start"], "waitMs": 20000}).encode())
        self.d.ask("events.read", fromSeq=1, types=["plan_completed"])
        self.d.ask("session.say", sessionId="s", text="hello")
        self.assertEqual([e["type"] for e in json.loads(waiting.recv()[4:])["events"]], ["turn_start"])


class Turns(BatonTest):
    """Who waits for whom."""

    def test_strangers_with_large_bodies_are_refused_from_their_first_bytes(self):
        d = self.daemon(config=HOLDS, agents=False)
        body = {"v": 1, "type": "plan.submit", "id": "x", "token": "wrong", "plan": {"steps": [], "goal": "a" * 100000}}
        with sp.Req(d.endpoints()["control"]) as req:
            for broken in (b"", b"}", b'"'):  # the rest is not looked at
                answer = json.loads(req.ask(json.dumps(body).encode()[:-1] + broken))
                self.assertEqual((answer["id"], answer["error"]["code"]), ("x", "UNAUTHORIZED"))
            body["token"] = d.token()
            self.assertEqual(json.loads(req.ask(json.dumps(body).encode()[:-1]))["error"]["code"], "INVALID")
            body["plan"]["goal"] = "a" * (1 << 20)
            answer = json.loads(req.ask(json.dumps(body).encode()[:-1]))  # larger than any request: not read either
            self.assertEqual((answer["id"], answer["error"]["code"]), ("x", "LIMIT"))
            short = {"v": 1, "type": "supervisor.info", "id": "y", "token": "wrong"}
            self.assertEqual(json.loads(req.ask(json.dumps(short).encode()))["error"]["code"], "UNAUTHORIZED")

    def test_a_token_behind_a_large_plan_counts(self):
        d = self.daemon(config=HOLDS, agents=False)
        plan = {"steps": steps(400)}
        body = {"id": "x", "plan": plan, "token": d.token(), "type": "plan.submit", "v": 1}  # sorted, as Go writes it
        with sp.Req(d.endpoints()["control"]) as req:
            answer = json.loads(req.ask(json.dumps(body).encode()))
        self.assertTrue(answer["ok"], answer)
        self.assertEqual(len(d.ask("plan.get", planId=answer["planId"])["steps"]), 400)

    def test_more_reads_than_may_wait_are_busy_and_short_requests_pass(self):
        d = self.daemon(config=HOLDS, agents=False)
        plan = d.submit({"steps": steps(2000)})
        url, token = d.endpoints()["control"], d.token()
        read = json.dumps({"v": 1, "type": "plan.get", "id": "r", "token": token, "planId": plan}).encode()
        short = json.dumps({"v": 1, "type": "supervisor.info", "id": "i", "token": token}).encode()
        pipes = [sp.connect(url, sp.REQ, sp.REP, 120) for _ in range(120)]
        info = sp.connect(url, sp.REQ, sp.REP, 120)
        os.kill(d.process.pid, signal.SIGSTOP)  # so that all of them are there before the first is looked at
        for i, pipe in enumerate(pipes):
            pipe.send(struct.pack(">I", 0x80000000 | i) + read)
        info.send(struct.pack(">I", 0x80000001) + short)
        os.kill(d.process.pid, signal.SIGCONT)
        self.assertTrue(json.loads(info.recv()[4:])["ok"])
        answers = [json.loads(pipe.recv()[4:]) for pipe in pipes]
        good = [a for a in answers if a["ok"]]
        self.assertGreaterEqual(len(good), 96)
        self.assertTrue(all(a["steps"][1999]["stepId"] == "1999" for a in good))
        for a in answers:
            if not a["ok"]:
                self.assertEqual((a["error"]["code"], a["error"]["retryable"]), ("BUSY", True))
        for pipe in pipes + [info]:
            pipe.close()


class Descriptors(BatonTest):
    """Connections and lanes are descriptors."""

    def test_the_soft_limit_of_open_files_is_raised_to_the_hard_one(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        few = ["/bin/sh", "-c", 'ulimit -S -n 128; exec "$@"', "sh"]
        d = self.daemon(config=HOLDS, agents=False, prefix=few)
        self.assertEqual(limit("Max open files", d.process.pid), [str(hard), str(hard)])
        held = [dial(d.endpoints()["control"]) for _ in range(200)]
        self.addCleanup(lambda: [s.close() for s in held])
        self.assertTrue(d.ask("supervisor.info")["ok"])

    def test_agents_start_under_a_low_hard_limit(self):
        drop = ["setpriv", "--bounding-set", "-sys_resource", "--inh-caps", "-sys_resource"] if os.geteuid() == 0 else []
        few = [*drop, "/bin/sh", "-c", 'ulimit -n 256; exec "$@"', "sh"]
        config = HOLDS.split("  - {agentId: late")[0]
        d = self.daemon(config=config, prefix=few)  # waits for the agent
        pid = d.agent_pids()["calc"][0]
        self.assertEqual(limit("Max open files", pid), ["256", "256"])
        self.assertIn("at most 256 files may be open", d.log())


class Lanes(BatonTest):
    def few(self, files):
        drop = ["setpriv", "--bounding-set", "-sys_resource", "--inh-caps", "-sys_resource"] if os.geteuid() == 0 else []
        return self.daemon(config="agents: []\n", prefix=[*drop, "/bin/sh", "-c", 'ulimit -n %d; exec "$@"' % files, "sh"])

    def register(self, d, n, capacity, agent="gone", port=1):
        return d.ask_raw("agent.register", card=probe.card(agent), capacity=capacity, endpoint="tcp://127.0.0.1:%d" % port, protocol=[1],
                         instanceId="0198c3a0-0000-7000-8000-%012d" % n, sessionKey="%032d" % n)

    def test_the_lanes_of_all_instances_are_bounded_by_the_files_that_may_be_open(self):
        d = self.few(400)  # 100 lanes
        self.assertTrue(self.register(d, 1, 64)["ok"])
        over = self.register(d, 2, 35)["error"]
        self.assertEqual(over["code"], "LIMIT")
        self.assertIn("at most 100 here", over["message"])
        self.assertIn("65 are taken", over["message"])
        second = self.register(d, 2, 34)
        self.assertEqual(self.register(d, 3, 1)["error"]["code"], "LIMIT")
        self.assertTrue(self.register(d, 1, 64)["ok"], "the same instance again")
        d.ask("agent.deregister", instanceId="0198c3a0-0000-7000-8000-%012d" % 2, epoch=second["epoch"])
        self.assertTrue(self.register(d, 3, 34)["ok"])

    def test_registrations_of_agents_that_are_gone_cost_a_dialer_each_and_no_answer(self):
        closed = socket.create_server(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        closed.close()
        d = self.few(8192)  # 2048 lanes: 31 instances of 65
        pid = d.process.pid
        answers = [self.register(d, n, 64, "gone%d" % n, port) for n in range(1, 201)]
        self.assertEqual([a["ok"] for a in answers], [True] * 31 + [False] * 169)
        self.assertEqual({a["error"]["code"] for a in answers[31:]}, {"LIMIT"})
        for _ in range(50):
            self.assertTrue(d.ask("supervisor.info", timeout=5)["ok"])
            self.assertLess(len(os.listdir("/proc/%d/fd" % pid)), 31 * 3 + 64)
        until(lambda: all(a["state"] != "up" for a in d.ask("agents.list")["agents"]), 60, "their leases end")
        self.assertTrue(self.register(d, 999, 64, "next", port)["ok"])
        self.assertNotIn("wedged", d.log())

    def test_a_full_table_of_agents_forgets_one_that_has_left(self):
        d = self.daemon(config="agents: []\nlimits: {maxAgents: 3}\n")
        epochs = [self.register(d, n, 1, "a%d" % n)["epoch"] for n in range(1, 4)]
        full = self.register(d, 4, 1, "a4")["error"]
        self.assertEqual((full["code"], full["message"]), ("LIMIT", "there are 3 agents already; one that leaves makes room"))
        d.ask("agent.deregister", instanceId="0198c3a0-0000-7000-8000-%012d" % 2, epoch=epochs[1])
        self.assertTrue(self.register(d, 4, 1, "a4")["ok"])
        self.assertEqual(sorted(a["card"]["agentId"] for a in d.ask("agents.list")["agents"]), ["a1", "a3", "a4"])
        self.assertEqual(self.register(d, 5, 1, "a5")["error"]["code"], "LIMIT")

    def test_work_lanes_are_dialed_once_the_control_lane_has_answered(self):
        d = self.daemon(config=HOLDS, agents=False)
        deaf = socket.create_server(("127.0.0.1", 0))  # an agent that is gone: its port accepts, nobody answers
        self.addCleanup(deaf.close)
        answering = probe.Probe(d, "answering", capacity=8)
        self.addCleanup(answering.close)
        d.ask("agent.register", card=probe.card("gone"), capacity=8, endpoint="tcp://127.0.0.1:%d" % deaf.getsockname()[1],
              protocol=[1], instanceId="0198c3a0-0000-7000-8000-000000000001", sessionKey="k" * 32)

        until(lambda: d.wait_plan(d.submit({"steps": steps(8, "answering")}))["status"] == "completed", 20, "work")
        self.assertEqual(sorted(r["lane"] for r in answering.requests if r["type"] == "lane.hello"), [*range(8), 64])
        self.assertEqual(answering.requests[0]["lane"], 64)
        deaf.settimeout(5)
        held = [deaf.accept()[0]]
        self.addCleanup(held[0].close)
        deaf.settimeout(1)
        with self.assertRaises(TimeoutError):
            held.append(deaf.accept()[0])


class Signals(BatonTest):
    def test_signals_of_no_meaning_end_nothing(self):
        d = self.daemon(config=HOLDS, agents=False)
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGIO):
            os.kill(d.process.pid, number)
            self.assertTrue(d.ask("supervisor.info")["ok"])
        self.assertEqual(d.stop(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
