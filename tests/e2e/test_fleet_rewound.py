"""A failover to a server that lacks acknowledged events: an event reports it, and who goes on from a cursor is told."""
import json
import signal
import subprocess
import sys
import threading
import time

import pg
from harness import BIN, ROOT, BatonTest, main, until
from test_fleet import LEASE, Node, echo, setUpModule  # noqa: F401

sys.path.insert(0, str(ROOT / "agents" / "python"))
import baton  # noqa: E402  (the path is set just above)


class Lagging(BatonTest):
    def lagging(self, names=("one",)):
        """Nodes, and a second server that nobody waits for."""
        server = pg.Server(self)
        server.copy()
        server.url = "postgresql:///postgres?host=%s,%s&port=5432,5433&user=fleet" % (server.dir, server.dir)
        nodes = [Node(self, server, name) for name in names]
        nodes[0].start()
        for node in nodes[1:]:
            node.wait_beside()
        return server, nodes

    def work(self, node, names):
        for name in names:
            node.wait_plan(node.submit(echo(name), clientKey=name))
        return node.events()[-1]["seq"]

    def lose(self, server, node):
        """The second server stops to follow, and is then what is left. The numbers of the last events before and after."""
        kept = self.work(node, ["kept%d" % i for i in range(3)])
        until(lambda: server.sql("SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()") == "1", 20, "it has all")
        server.kill9("second")
        lost = self.work(node, ["lost%d" % i for i in range(3)])
        return kept, lost

    def fail_over(self, server):
        server.kill9()
        server.start("second", 5433)
        server.promote()

    def check_told(self, node, kept, lost, exact=True):
        def told():
            return [e for e in node.events() if e["type"] == "journal_rewound"]
        until(told, 30, "an event says it\n" + node.log())
        self.assertEqual([(e["keptSeq"], e["lostSeq"]) for e in told()], [(kept if exact else 0, lost)])
        self.assertIn("journal.rewound", "".join(node.log()))
        seqs = [e["seq"] for e in node.events()]
        self.assertEqual(seqs, list(range(1, len(seqs) + 1)))


class Rewound(Lagging):
    def test_a_leader_whose_events_were_lost_says_so_and_readers_are_told(self):
        server, (one,) = self.lagging()
        kept, lost = self.lose(server, one)
        before = one.events()
        cursors = {"kept": before[kept - 1], "lost": before[lost - 1]}
        client = baton.Client(one.state)
        self.addCleanup(client.close)
        watched, ends = [], []

        def watch():
            try:
                for event in client.watch(timeout=60):
                    watched.append(event)
            except baton.Error as e:
                ends.append(e)
        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        follows = subprocess.Popen([BIN / "baton", "events", "--follow", "--state", one.state], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(follows.wait)
        self.addCleanup(follows.kill)
        until(lambda: "plan_completed" in follows.stdout.readline() or None, 20, "it follows")
        lost = self.work(one, ["lost more"])
        until(lambda: watched and watched[-1]["seq"] >= lost - 1, 20, "it watches")
        self.fail_over(server)
        self.assertEqual(one.process.wait(30), 75, one.log())
        one.start()
        self.check_told(one, kept, lost)
        self.work(one, ["after%d" % i for i in range(4)])  # the numbers are used again
        self.assertGreater(one.events()[-1]["seq"], lost)
        # the request
        at = cursors["lost"]
        said = one.ask_raw("events.read", fromSeq=at["seq"] + 1, afterEventId=at["eventId"])
        self.assertEqual((said["ok"], said["error"]["code"], said["error"]["details"]["fromSeq"]), (False, "HISTORY_CHANGED", kept + 1), said)
        self.assertTrue(one.ask("events.read", fromSeq=at["seq"] + 1)["events"])  # without the id nobody knows
        at = cursors["kept"]
        page = one.ask("events.read", fromSeq=kept + 1, afterEventId=at["eventId"], limit=3)
        self.assertEqual((page["events"][0]["seq"], page["lastEventId"]), (kept + 1, page["events"][-1]["eventId"]))
        # a reader of one plan, and one of some types, are told as well
        plan = next(e["planId"] for e in before if "planId" in e)
        for more in ({"planId": plan}, {"types": ["plan_completed"]}):
            page = one.ask("events.read", fromSeq=1, limit=1000, **more)
            self.assertEqual(page["lastEventId"], one.events()[page["nextSeq"] - 2]["eventId"])
            said = one.ask_raw("events.read", fromSeq=cursors["lost"]["seq"] + 1, afterEventId=cursors["lost"]["eventId"], **more)
            self.assertEqual(said["error"]["code"], "HISTORY_CHANGED")
        # clients that went on from where they were
        thread.join(60)
        self.assertEqual([(e.code, e.details["fromSeq"]) for e in ends], [("HISTORY_CHANGED", kept + 1)])
        out, err = follows.communicate(timeout=60)
        self.assertEqual(follows.returncode, 7, err)
        self.assertIn("read again from event %d" % (kept + 1), err)
        # cursors that were kept
        old = "%d:%s" % (cursors["lost"]["seq"], cursors["lost"]["eventId"])
        for place in (old, "S0=" + old):
            said = one.cli_any("events", "--after", place)
            self.assertEqual(said.returncode, 7, said.stderr)
            self.assertIn("read again from event %d" % (kept + 1), said.stderr)
            self.assertIn("--after 'S0=%d'" % kept, said.stderr)
        good = one.cli_any("events", "--json", "--after", "%d:%s" % (kept, cursors["kept"]["eventId"]))
        self.assertEqual(json.loads(good.stdout.splitlines()[0])["seq"], kept + 1)
        self.assertRegex(good.stderr, r"--after 'S0=\d+:[0-9A-F-]{36}'")
        with self.assertRaises(baton.Error) as raised:
            list(client.events(from_seq=cursors["lost"]["seq"] + 1, after_event_id=cursors["lost"]["eventId"]))
        self.assertEqual(raised.exception.code, "HISTORY_CHANGED")
        # said once, also after another start
        one.stop()
        one.start()
        self.check_told(one, kept, lost)

    def test_a_cursor_beyond_the_end_is_told(self):
        server, (one,) = self.lagging()
        kept, lost = self.lose(server, one)
        last = one.events()[-1]
        self.fail_over(server)
        self.assertEqual(one.process.wait(30), 75, one.log())
        one.start()
        self.assertLess(one.events()[-1]["seq"], lost)
        said = one.ask_raw("events.read", fromSeq=last["seq"] + 1, afterEventId=last["eventId"], waitMs=5000)
        self.assertEqual(said["error"]["code"], "HISTORY_CHANGED")
        self.assertIn("is not there any more", said["error"]["message"])

    def test_a_standby_that_had_seen_more_says_so(self):
        server, (one, two) = self.lagging(("one", "two"))
        kept, lost = self.lose(server, one)
        time.sleep(LEASE)  # the standby looks several times
        one.kill9()
        self.fail_over(server)
        two.wait_to_lead(40)
        self.check_told(two, kept, lost)

    def test_a_leader_that_comes_back_later_says_so_to_the_next(self):
        server, (one, two) = self.lagging(("one", "two"))
        two.process.send_signal(signal.SIGSTOP)  # it has seen nothing of what is lost
        kept, lost = self.lose(server, one)
        one.process.send_signal(signal.SIGSTOP)
        self.fail_over(server)
        two.process.send_signal(signal.SIGCONT)
        two.wait_to_lead(40)
        self.assertEqual([e for e in two.events() if e["type"] == "journal_rewound"], [])
        one.process.send_signal(signal.SIGCONT)
        self.assertEqual(one.process.wait(30), 75, one.log())
        self.check_told(two, kept, lost, exact=False)


if __name__ == "__main__":
    main()
