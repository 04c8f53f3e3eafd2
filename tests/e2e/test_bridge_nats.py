#!/usr/bin/env python3
"""baton-bridge-nats (deploy/NATS.md): the stream has each event of the daemon once, in order, whoever is killed; it goes on behind what the stream has."""
import random
import time

import nats
from harness import BatonTest, main, until
from nats import CALC, STEP, Bridge, Server

PLAN = {"steps": [dict(STEP, stepId="s%d" % i) for i in range(8)]}


def setUpModule():
    nats.need()


class Nats(BatonTest):
    def pair(self, *args, start=True, config="jetstream {}"):
        d = self.daemon(config=CALC)
        server = Server(self, d.work, config)
        return d, server, Bridge(self, d, server, *args, start=start)

    def work(self, d, n=1):
        for _ in range(n):
            d.wait_plan(d.submit(PLAN))

    def check(self, d, server, stream="BATON_main"):
        """The stream is what `baton events --json` prints; its messages."""
        with server.client() as c:
            found = c.messages(stream)
        lines = nats.lines_of(d)
        seqs = [int(h["Baton-Seq"]) for _, h, _ in found]
        self.assertEqual(len(seqs), len(set(seqs)), "an event is there twice")
        self.assertEqual(seqs, sorted(seqs), "the order")
        self.assertEqual([body.decode() for _, _, body in found], lines)
        return found

    def wait(self, d, server, b, **kwargs):
        return nats.wait_for(server, d, log=b.log, **kwargs)


class Copies(Nats):
    def test_the_stream_has_each_event_as_baton_events_prints_it(self):
        d, server, b = self.pair()
        self.work(d, 3)
        self.wait(d, server, b)
        found = self.check(d, server)
        for at, (sequence, headers, body) in enumerate(found, 1):
            self.assertEqual(sequence, at)
            self.assertEqual(headers["Nats-Msg-Id"], "main/0/%s" % headers["Baton-Seq"])
        self.assertEqual(b.stop(), 0)

    def test_another_bridge_goes_on_behind_the_last_event(self):
        d, server, b = self.pair(start=False)
        for _ in range(3):
            self.work(d)
            code, _, said = b.run("--once")
            self.assertEqual(code, 0, said)
            self.check(d, server)


class Kills(Nats):
    def test_bridge_server_and_daemon_are_killed_at_random(self):
        d, server, b = self.pair()
        seed = random.randrange(1 << 30)
        rng, killed = random.Random(seed), {"bridge": 0, "server": 0, "daemon": 0}
        for _ in range(24):
            d.submit(PLAN)
            time.sleep(rng.uniform(0, 0.3))
            who = rng.choice(("bridge", "bridge", "server", "daemon"))
            killed[who] += 1
            if who == "bridge":
                b.kill9()
                b.start()
            elif who == "server":
                server.kill9()
                server.start()
            else:
                d.kill9()
                d.start(agents=False)
        until(lambda: all(p["status"] == "completed" for p in d.ask("plan.list")["plans"]), 60, "all plans end")
        self.wait(d, server, b, seconds=60)
        found = self.check(d, server)
        print("seed %d: %s, %d events" % (seed, killed, len(found)))
        self.assertIsNone(b.process.poll(), b.log())


if __name__ == "__main__":
    main()
