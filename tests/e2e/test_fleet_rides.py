"""The server of a fleet's journal is lost for a moment, or fails over: the daemon goes on without a restart."""
import os
import random
import signal
import subprocess
import threading
import time
import unittest

import pg
from harness import BatonTest, main, until
from test_fleet import LEASE, Node, echo, setUpModule, slow  # noqa: F401

PATIENCE = 0.1  # of a question about health, times four on a busy machine with sanitizers


class Load(threading.Thread):
    """Plans one after the other, each until it is accepted; what was accepted."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node, self.accepted, self.refused, self.ends, self.wrong = node, {}, 0, threading.Event(), []
        self.start()

    def run(self):
        n = 0
        while not self.ends.is_set():
            key = "load%d" % n
            try:
                answer = self.node.ask_raw("plan.submit", 60, plan=echo(key), clientKey=key)
            except (OSError, EOFError) as e:
                self.wrong.append(repr(e))
                return
            if answer["ok"]:
                self.accepted[key] = answer["planId"]
                n += 1
            elif answer["error"]["code"] == "UNAVAILABLE":
                self.refused += 1
                time.sleep(0.02)
            else:
                self.wrong.append(answer)
                return

    def end(self):
        self.ends.set()
        self.join(70)


class Rides(BatonTest):
    def one(self, server, **kwargs):
        node = Node(self, server, "one", **kwargs).start()
        node.pid = node.process.pid
        return node

    def check(self, node, load=None, plans=()):
        """The same process; all that was accepted is there and completed, once."""
        self.assertEqual((node.process.poll(), node.endpoints()["pid"]), (None, node.pid), node.log())
        accepted = dict(load.accepted) if load else {}
        for key, plan in accepted.items():
            self.assertEqual(node.submit(echo(key), clientKey=key), plan)
        for plan in [*accepted.values(), *plans]:
            self.assertEqual(node.wait_plan(plan, 60)["status"], "completed", plan)
        seqs = [e["seq"] for e in node.events()]
        self.assertEqual(seqs, list(range(1, len(seqs) + 1)))
        if load:
            self.assertEqual(load.wrong, [])
        node.check_event_order()

    def away(self, seconds):
        server = pg.Server(self)
        node = self.one(server)
        runs = node.submit(slow("a", seconds + 1))
        until(node.executions, 10, "the step runs")
        load = Load(node)
        until(lambda: len(load.accepted) > 5, 20, "plans are accepted")
        server.kill9()
        until(node.is_away, 10, "it has seen it")
        lost, before, longest, refused = time.monotonic(), None, 0, 0
        while time.monotonic() - lost < seconds:
            began = time.monotonic()
            info = node.ask("supervisor.info")
            longest = max(longest, time.monotonic() - began)
            if info.get("storage") == "away":
                before = info["lastSeq"] if before is None else before
                self.assertEqual(info["lastSeq"], before)  # nothing is done
            began = time.monotonic()
            answer = node.ask_raw("plan.list")
            refused += not answer["ok"]
            longest = max(longest, time.monotonic() - began)
            time.sleep(0.05)
        self.assertGreater(refused, seconds * 2)
        self.assertLess(longest, 4 * PATIENCE)
        had, takes = len(load.accepted), None
        server.start()
        back = time.monotonic()
        until(lambda: len(load.accepted) > had, 20, "plans are accepted again\n" + node.log())
        print("away %g s: answers within %.0f ms, %d refused, accepts %.2f s after the server is back" % (
            seconds, longest * 1000, refused + load.refused, time.monotonic() - back), flush=True)
        time.sleep(1)
        load.end()
        takes = int(server.sql("SELECT epoch FROM baton.shards"))
        self.assertEqual(takes, 2, "one next epoch, no storm")
        self.check(node, load, [runs])
        self.assertEqual(len(node.executions()), 1)  # its agent lived

    def test_the_server_is_away_for_a_second(self):
        self.away(1)

    def test_the_server_is_away_for_ten_seconds(self):
        self.away(10)

    def test_who_waits_beside_lets_the_owner_go_on_when_the_server_is_back(self):
        server = pg.Server(self)
        one = self.one(server)
        two = Node(self, server, "two").wait_beside()
        server.kill9()
        until(lambda: "cannot" in two.log(), 20, "it has seen it")
        time.sleep(LEASE + 0.5)  # every lease is over
        server.start()
        plan = one.submit_soon(echo("x"))
        time.sleep(LEASE)
        self.assertFalse(two.leads())
        self.check(one, plans=[plan])
        one.kill9()
        two.wait_to_lead()

    def test_any_end_of_backend_and_server_at_any_moment(self):
        """BATON_KILLS rounds."""
        rounds, seed = int(os.environ.get("BATON_KILLS", "10")), os.environ.get("BATON_SEED") or str(random.randrange(1 << 32))
        print("seed %s, %d rounds" % (seed, rounds), flush=True)
        rng = random.Random(seed)
        server = pg.Server(self)
        node = self.one(server)
        runs = node.submit(slow("a", 5))
        until(node.executions, 10, "the step runs")
        load = Load(node)
        for n in range(rounds):
            had, how = len(load.accepted), rng.choice(["terminate", "backend", "kill", "immediate"])
            until(lambda: len(load.accepted) > had + rng.randrange(20) or load.wrong, 60, "it goes on\n" + node.log())
            time.sleep(rng.random() * 0.05)
            if how == "terminate":
                server.sql("SELECT pg_terminate_backend(backend) FROM baton.shards")
            elif how == "backend":
                os.kill(int(server.sql("SELECT backend FROM baton.shards")), signal.SIGKILL)
            elif how == "kill":
                server.kill9()
                server.start()
            else:
                server.processes["data"].send_signal(signal.SIGQUIT)
                server.processes["data"].wait()
                server.start()
        had = len(load.accepted)
        until(lambda: len(load.accepted) > had or load.wrong, 60, "it goes on\n" + node.log())
        load.end()
        print("%d plans accepted, %d times refused" % (len(load.accepted), load.refused), flush=True)
        self.check(node, load, [runs])
        self.assertEqual(len(node.executions()), 1)

    def test_the_synchronous_standby_takes_over_under_load(self):
        server = pg.Server(self)
        server.replicate()
        server.url = "postgresql:///postgres?host=%s,%s&port=5432,5433&user=fleet" % (server.dir, server.dir)
        node = self.one(server, durability="replicated")
        self.assertEqual(node.ask("supervisor.info")["durability"], "replicated")
        runs = node.submit(slow("a", 4))
        until(node.executions, 10, "the step runs")
        load = Load(node)
        until(lambda: len(load.accepted) > 10, 20, "plans are accepted")
        server.kill9()
        server.promote()
        had = len(load.accepted)
        until(lambda: len(load.accepted) > had + 10, 30, "it goes on at the other server\n" + node.log())
        load.end()
        self.check(node, load, [runs])
        self.assertEqual(len(node.executions()), 1)

    def test_without_the_synchronous_standby_nothing_is_acknowledged(self):
        server = pg.Server(self)
        server.replicate()
        one = self.one(server, durability="replicated")
        before = one.submit(echo("before"), clientKey="before")
        one.wait_plan(before)
        server.kill9("second")
        answers = []
        asks = threading.Thread(target=lambda: answers.append(one.ask_raw("plan.submit", 120, plan=echo("not known"), clientKey="x")), daemon=True)
        asks.start()
        until(lambda: "no answer within half a lease" in one.log(), 30, "it tries, and waits\n" + one.log())
        self.assertEqual(one.ask("supervisor.info")["storage"], "away")
        self.assertIn("the journal's server does not answer", one.cli_any("doctor").stdout)
        self.assertEqual(answers, [])
        server.start("second", 5433)
        asks.join(60)
        self.assertTrue(answers and answers[0]["ok"], answers)
        self.check(one, plans=[before, answers[0]["planId"]])

    def test_a_stop_does_not_wait_for_the_server(self):
        server = pg.Server(self)
        one = self.one(server)
        plan = one.submit(slow("a", 1))
        until(one.executions, 10, "the step runs")
        server.kill9()
        until(one.is_away, 10, "it has seen it")
        one.process.send_signal(signal.SIGTERM)
        self.assertEqual(one.process.wait(10), 75)
        self.assertIn("asked to stop while PostgreSQL was away", one.log())
        server.start()
        one.start()
        self.assertEqual(one.wait_plan(plan)["status"], "completed")


if __name__ == "__main__":
    main()
