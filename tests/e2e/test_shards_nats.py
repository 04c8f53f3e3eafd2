#!/usr/bin/env python3
"""baton-bridge-nats with a fleet of several shards: a stream for each, with each event once and in order, whoever is killed."""
import json
import os
import random
import signal
import threading

import nats
import pg
from harness import main, until
from nats import Bridge, Server
from test_fleet import echo
from test_shards import SHARDS, Several, shard_of


def setUpModule():
    pg.need()
    nats.need()


class Streams(Several):
    def pair(self, *args, **kwargs):
        _, nodes = self.fleet()
        server = Server(self, nodes[0].work)
        return nodes, server, Bridge(self, nodes[0], server, *args, **kwargs)

    def events_of(self, node, shard):
        control = next(s["control"] for s in node.map() if s["shard"] == shard)
        found, seq = [], 1
        while True:
            page = node.ask_at(control, "events.read", fromSeq=seq, limit=1000)
            found += page["events"]
            if page["nextSeq"] > page["lastSeq"]:
                return found
            seq = page["nextSeq"]

    def messages(self, server, shard):
        with server.client() as c:
            return c.messages("BATON_main_%d" % shard)

    def check(self, node, server, log=lambda: ""):
        for shard in range(SHARDS):
            until(lambda shard=shard: len(self.messages(server, shard)) >= len(self.events_of(node, shard)), 60, "all of shard %d\n%s" % (shard, log()))
            found = self.messages(server, shard)
            events = self.events_of(node, shard)[:len(found)]
            self.assertGreater(len(found), 3)
            self.assertEqual([json.loads(body) for _, _, body in found], events)
            self.assertEqual([h["Nats-Msg-Id"] for _, h, _ in found], ["main/%d/%d" % (shard, n) for n in range(1, len(found) + 1)])
            self.assertEqual({shard_of(e["planId"]) for e in events if e.get("planId")} - {shard}, set())

    def test_each_shard_has_a_stream_and_a_killed_node_and_bridge_leave_no_gap_and_no_double(self):
        (one, two), server, b = self.pair()
        spare = Bridge(self, one, server)  # bridges cannot mix
        Bridge(self, two, server)  # is lost with its host
        plans, stop = [], threading.Event()

        def submit():
            while not stop.is_set():
                try:
                    plans.append(one.submit(echo("x"), clientKey="k%d" % len(plans)))
                except (AssertionError, OSError):
                    pass
        work = threading.Thread(target=submit)
        work.start()
        try:
            until(lambda: len(plans) > 20, 30, "plans run")
            two.kill9()
            before = len(plans)
            b.kill9()
            b.start()
            until(lambda: all(s["here"] and s["control"] for s in one.map()), 30, "one leads all\n" + one.log())
            until(lambda: len(plans) > before + 20, 60, "plans run on")
        finally:
            stop.set()
            work.join()
        for plan in plans:
            one.wait_plan(plan, 60)
        self.check(one, server, b.log)
        self.assertEqual(spare.process.poll(), None, spare.log())
        self.assertEqual(b.stop(), 0)

    def test_one_shard_alone_once_and_the_status_of_all(self):
        (one, _), server, b = self.pair(start=False)
        for i in range(12):
            one.wait_plan(one.submit(echo("n%d" % i), sessionId="s%d" % i))
        code, said, _ = b.run("--shard", "1/%d" % SHARDS, "--once")
        self.assertEqual(code, 0, said)
        with server.client() as c:
            self.assertEqual(c.api("STREAM.NAMES")["streams"], ["BATON_main_1"])
        self.assertEqual(b.run("--once")[0], 0)
        self.check(one, server)
        code, lines, _ = b.run("--status")
        self.assertEqual((code, [line.split(":")[0] for line in lines.splitlines()]), (0, ["BATON_main_%d" % n for n in range(SHARDS)]))
        for args, expected, says in ((("--shard", "4/4"), 2, "0/4 to 3/4"), (("--shard", "x"), 2, "N/SHARDS"), (("--shard", "0/2"), 1, "4 shards, not 2"),
                                     (("--after", "7"), 1, "--shard N/4")):
            code, _, said = b.run(*args)
            self.assertEqual((code, says in said), (expected, True), said)

    def test_they_end_together(self):
        (one, _), server, b = self.pair()
        children = lambda: open("/proc/%d/task/%d/children" % (b.process.pid, b.process.pid)).read().split()  # noqa: E731
        until(lambda: len(children()) == SHARDS, 30, "a process for each shard")
        pids = list(map(int, children()))
        victim = random.choice(pids)
        os.kill(victim, signal.SIGKILL)
        self.assertNotEqual(b.process.wait(20), 0)
        alive = lambda pid: os.path.exists("/proc/%d" % pid)  # noqa: E731
        until(lambda: not any(map(alive, pids)), 20, "the others end, too")
        b.start()
        until(lambda: len(children()) == SHARDS, 30, "a process for each shard")
        pids = list(map(int, children()))
        b.kill9()
        until(lambda: not any(map(alive, pids)), 20, "they end with it")


if __name__ == "__main__":
    main()
