"""The fault matrix of a fleet: disks that are full, clocks that are set, nodes that are suspended, a server that is away for long.
Leaders that are lost at failpoints: test_fleet_cells.py."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import tempfile
import time

import pg
import test_shards
from harness import BatonTest, alive, children_of, main, until
from test_fleet import LEASE, Node, echo, setUpModule, slow  # noqa: F401
from test_fleet_rides import PATIENCE, Load

HOUR, DAY = 3600, 86400
AWAY = float(os.environ.get("BATON_AWAY", "25"))  # by hand: 300
SHORT = 1.0  # a lease


class Faults(BatonTest):
    def pair(self, server, env=None, **kwargs):
        one, two = Node(self, server, "one", **kwargs), Node(self, server, "two", **kwargs)
        one.env.update(env or {})
        one.start()
        two.wait_beside()
        return one, two

    def histories(self, node):
        seqs = [e["seq"] for e in node.events()]
        self.assertEqual(seqs, list(range(1, len(seqs) + 1)))
        node.check_event_order()

    def epoch(self, server):
        return int(server.sql("SELECT epoch FROM baton.shards"))

    # ---- disks ----

    def test_the_disk_of_the_tables_is_full_and_has_room_again(self):
        """53100: nothing of the turn is stored. The log of the server is on another disk."""
        small = pathlib.Path(tempfile.mkdtemp(prefix="baton-small-"))
        self.addCleanup(shutil.rmtree, small, ignore_errors=True)
        pg.small_disk(self, small, 32)
        server = pg.Server(self)
        server.own(small)
        server.sql("CREATE TABLESPACE small LOCATION '%s'" % small)
        server.sql("ALTER ROLE fleet SET default_tablespace = 'small'")
        node = Node(self, server, "one").start()
        before = node.submit(echo("before"))
        node.wait_plan(before)
        filler = small / "filler"
        fill(filler)
        accepted, refused = self.until_refused(node)
        self.assertEqual((refused["code"], refused["retryable"]), ("UNAVAILABLE", True), refused)
        self.assertIn("53100", node.log())
        self.assertEqual(node.ask("plan.get", planId=before)["status"], "completed")  # it reads
        filler.unlink()
        self.goes_on(node, {"before": before, **accepted})

    def until_refused(self, node):
        """The first one who has no room may end: the daemon replaces itself, and what was open waits."""
        accepted, n = {}, 0
        while n < 5000:
            try:
                answer = node.ask_raw("plan.submit", 60, plan=echo("x" * 20000), clientKey="f%d" % n)
            except (EOFError, OSError, ValueError):
                time.sleep(0.1)
                continue
            if answer["ok"]:
                accepted["f%d" % n] = answer["planId"]
                n += 1
            elif answer["error"]["code"] != "UNAUTHORIZED":  # it is replaced
                return accepted, answer["error"]
        raise AssertionError("the disk is not full\n" + node.log())

    def goes_on(self, node, accepted):
        """What was acknowledged is there, once, and ends."""
        self.assertEqual(node.process.poll(), None, node.log())
        plan = node.submit_soon(echo("after"), clientKey="after")
        for key, p in [*accepted.items(), ("after", plan)]:
            self.assertEqual(node.wait_plan(p, 60)["status"], "completed", key)
            if key.startswith("f"):
                self.assertEqual(node.submit(echo("x" * 20000), clientKey=key), p)
        self.histories(node)

    def test_the_disk_of_the_server_is_full_and_it_ends(self):
        """Without room for its log PostgreSQL ends itself (PANIC): it is away until somebody makes room."""
        server = pg.Server(self, disk=160)
        node = Node(self, server, "one").start()
        runs = node.submit(slow("a", 1), clientKey="runs")
        until(node.executions, 10, "the step runs")
        filler = server.dir / "filler"
        fill(filler)
        accepted, _ = self.until_refused(node)
        for _ in range(20):
            with contextlib.suppress(AssertionError):
                server.sql("SELECT txid_current(); SELECT pg_switch_wal()")
        until(lambda: server.processes["data"].poll() is not None, 20, "the server ends for want of room")
        until(node.is_away, 20, "the daemon knows")
        filler.unlink()
        server.start()
        self.goes_on(node, {"runs": runs, **accepted})
        self.assertEqual(len(node.executions()), 1)

    # ---- clocks ----


    def somebody_leads(self, nodes):
        def one():
            led = [n for n in nodes if n.process.poll() is None and n.leads()]
            with contextlib.suppress(OSError, EOFError):
                return led[0] if len(led) == 1 and led[0].ask_raw("plan.list")["ok"] else None
        return until(one, 20, "one leads\n" + "\n".join(n.log() for n in nodes))

    def test_the_clock_of_the_server_is_set_an_hour_forward_and_back(self):
        clock = pg.Clock(self)
        server = pg.Server(self, env=clock.env)
        nodes = self.pair(server)
        accepted = {}
        for n, shift in enumerate((HOUR, 0, -HOUR, 0)):
            clock.set(wall=shift)
            self.assertLess(abs(float(server.sql("SELECT extract(epoch FROM clock_timestamp())")) - time.time() - shift), 60)
            time.sleep(LEASE + 1)
            for node in nodes:  # a needless take-over ends the one of before
                if node.process.poll() is not None:
                    self.assertEqual(node.process.returncode, 75, node.log())
                    node.wait_beside()
            leader = self.somebody_leads(nodes)
            leader.wait_agents()
            accepted["k%d" % n] = leader.submit(echo("k%d" % n), clientKey="k%d" % n)
        self.assertLessEqual(self.epoch(server), 1 + 4, "at most one needless take-over each")
        for key, plan in accepted.items():
            self.assertEqual(leader.wait_plan(plan)["status"], "completed", key)
            self.assertEqual(leader.submit(echo(key), clientKey=key), plan)
        self.histories(leader)

    def test_a_leader_that_is_lost_when_the_clock_was_put_back_is_replaced(self):
        """Its lease ends in an hour, by the clock of now: that is longer than any lease."""
        clock = pg.Clock(self)
        clock.set(wall=HOUR)
        server = pg.Server(self, env=clock.env)
        one, two = self.pair(server)
        plan = one.submit(echo("before"), clientKey="before")
        one.kill9()
        clock.set(wall=0)
        lost = time.monotonic()
        two.wait_to_lead()
        print("leads %.2f s after the loss" % (time.monotonic() - lost), flush=True)
        two.wait_agents()
        self.assertEqual(two.wait_plan(plan)["status"], "completed")
        self.histories(two)

    def test_the_clock_of_a_leader_is_set_by_a_day_and_nothing_moves(self):
        clock = pg.Clock(self)
        server = pg.Server(self)
        one, two = self.pair(server, clock.env)
        plans = []
        for n, days in enumerate((1, 0, -1, 0)):
            clock.set(wall=days * DAY)
            runs = one.submit(slow("w%d" % n, 1))
            plans.append(runs)
            until(lambda n=n: len(one.executions()) == n + 1, 20, "the step runs")
            time.sleep(LEASE / 2)
        time.sleep(LEASE)
        for plan in plans:
            self.assertEqual(one.wait_plan(plan)["status"], "completed")
        self.assertEqual((self.epoch(server), one.process.poll(), two.leads()), (1, None, False), one.log())
        self.assertEqual(len(one.executions()), len(plans))
        self.histories(one)
        days = {int(e["tsMs"] / 1000 / DAY + 0.5) for e in one.events()}
        self.assertGreaterEqual(len(days), 3, "it was another clock: %s" % days)

    # ---- a node that sleeps ----

    def sleeps(self, node, clock, seconds):
        """As a suspend of its host: everything stops, and the time since boot goes on."""
        tree = [node.process.pid, *children_of(node.process.pid)]
        for pid in tree:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        clock.set(boot=HOUR)
        for pid in tree:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def test_a_leader_that_sleeps_alone_goes_on(self):
        clock = pg.Clock(self)
        server = pg.Server(self)
        one = Node(self, server, "one")
        one.env.update(clock.env)
        one.start()
        plan = one.submit(slow("a", 1))
        until(one.executions, 10, "the step runs")
        self.sleeps(one, clock, LEASE + 1)
        self.assertEqual(one.wait_plan(one.submit_soon(echo("after")))["status"], "completed")
        self.assertEqual(one.wait_plan(plan)["status"], "completed")
        self.assertEqual((self.epoch(server), one.process.poll()), (1, None), one.log())
        self.histories(one)

    def test_a_leader_that_sleeps_beside_another_is_replaced_and_does_nothing(self):
        clock = pg.Clock(self)
        server = pg.Server(self)
        one, two = self.pair(server, clock.env)
        plan = one.submit(slow("a", 1), clientKey="a")
        until(one.executions, 10, "the step runs")
        self.sleeps(one, clock, LEASE + 2)
        two.wait_to_lead()
        self.assertEqual(one.process.wait(30), 75, one.log())
        two.wait_agents()
        self.assertEqual(two.wait_plan(plan, 60)["status"], "completed")
        self.assertEqual(self.epoch(server), 2)
        self.histories(two)

    # ---- a server that is away for long ----

    def test_the_server_is_away_for_longer_than_a_leader_waits(self):
        """20 leases: then it ends with 75. When the server is back one leads, after one take-over. BATON_AWAY seconds; 300 by hand."""
        server = pg.Server(self)
        nodes = []
        for name in ("one", "two"):
            node = Node(self, server, name)
            node.config.write_text(node.config.read_text().replace("fleet: {", "fleet: {leaseMs: %d, " % (SHORT * 1000)))
            nodes.append(node)
        one, two = nodes
        one.start()
        two.wait_beside()
        load = Load(one)
        until(lambda: len(load.accepted) > 5, 20, "plans are accepted")
        load.end()
        runs = one.submit(slow("a", 2), clientKey="runs")
        server.kill9()
        lost, ended, times = time.monotonic(), 0, []
        while time.monotonic() - lost < AWAY:
            if one.process.poll() is None:
                began = time.monotonic()
                with contextlib.suppress(OSError, EOFError):
                    one.ask("supervisor.info")
                    times.append(time.monotonic() - began)
            else:
                self.assertEqual(one.process.returncode, 75, one.log())
                ended += 1
                with open(one.work / "batond.log", "ab") as log:
                    one.process = one.popen(log)  # as its service manager does
            time.sleep(0.05)
        self.assertEqual(ended, 1, one.log())
        times.sort()
        self.assertLess(times[len(times) * 9 // 10], 4 * PATIENCE)  # nine of ten: the machine may be busy
        self.assertEqual(two.process.poll(), None, two.log())
        server.start()
        back = time.monotonic()
        leader = self.somebody_leads(nodes)
        print("away %g s: health within %.0f ms (p50), one leads %.2f s after the server is back" % (AWAY, times[len(times) // 2] * 1000, time.monotonic() - back), flush=True)
        leader.wait_agents()
        time.sleep(3 * SHORT)
        self.assertEqual(self.epoch(server), 2, "no storm of take-overs")
        for key, plan in load.accepted.items():
            self.assertEqual(leader.submit(echo(key), clientKey=key), plan)
            self.assertEqual(leader.wait_plan(plan)["status"], "completed")
        self.assertEqual(leader.wait_plan(runs)["status"], "completed")
        self.histories(leader)


class Tree(test_shards.Shards):
    """A node of several shards, with all that it started."""

    def test_a_node_that_sleeps_is_replaced_and_takes_its_share_again(self):
        server, (one, two) = self.fleet()
        plans = [one.submit(echo("n%d" % i), sessionId="s%d" % i) for i in range(12)]
        theirs = two.leads_shards()
        tree = [two.process.pid, *children_of(two.process.pid)]
        for pid in tree:
            os.kill(pid, signal.SIGSTOP)
        until(lambda: self.leaders() == ["one"] * 4, 20, "one leads all\n" + one.log())
        until(lambda: all(s["here"] and s["control"] for s in one.map()), 20, "one serves all")
        epochs = [int(x) for x in server.sql("SELECT epoch FROM baton.shards ORDER BY shard").split()]
        for pid in tree:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        for plan in plans:
            self.assertEqual(one.wait_plan(plan, 60)["status"], "completed")
        until(lambda: sorted(self.leaders()) == ["one", "one", "two", "two"], 60, "they are shared out again\n" + two.log())
        time.sleep(2 * LEASE)
        now = [int(x) for x in server.sql("SELECT epoch FROM baton.shards ORDER BY shard").split()]
        self.assertLessEqual(sum(now) - sum(epochs), 2 * len(theirs), "each goes back once: a move and a take-over")
        self.assertEqual(two.process.poll(), None)

    def test_who_is_lost_in_a_move(self):
        """The leader is stopped before it, and killed; then the node that is to have the shard is lost before it takes it."""
        server, (one, two) = self.fleet()
        plans = {}
        for fault in (signal.SIGSTOP, signal.SIGKILL):
            shard = one.leads_shards()[0]
            key = next("k%d" % i for i in range(1000) if test_shards.shard_of_key("k%d" % i) == shard and "k%d" % i not in plans)
            plans[key] = one.submit(echo(key), clientKey=key)
            pid = json.loads((one.state / "shards" / str(shard) / "endpoints.json").read_text())["pid"]
            os.kill(pid, fault)
            self.fleet_verb("move", shard, "two")
            until(lambda shard=shard: self.leaders()[shard] == "two", 20, "two leads it\n" + two.log())
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            until(lambda pid=pid: not alive(pid), 20, "who led it ends\n" + one.log())
            self.assertEqual(two.wait_plan(plans[key], 60)["status"], "completed")
            self.assertEqual(two.submit(echo(key), clientKey=key), plans[key])
            until(lambda: sorted(self.leaders()) == ["one", "one", "two", "two"], 60, "they are shared out again")
            until(lambda: len(one.leads_shards()) == 2 and all(s["control"] for n in (one, two) for s in n.map()), 20, "all know all")
        moved = one.leads_shards()[0]
        two.process.send_signal(signal.SIGSTOP)  # it counts as alive for a while
        self.fleet_verb("move", moved, "two")
        two.kill9()
        until(lambda: self.leaders() == ["one"] * 4, 20, "one leads all\n" + one.log())
        for key, plan in plans.items():
            self.assertEqual(one.submit(echo(key), clientKey=key), plan)


for name in dir(test_shards.Shards):  # those are test_shards.py's
    if name.startswith("test_"):
        setattr(Tree, name, None)


def fill(path):
    """Until there is no room."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(fd, bytes(1 << 16))
    os.close(fd)


if __name__ == "__main__":
    main()
