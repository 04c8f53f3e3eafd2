"""Several daemons on one journal in PostgreSQL: one leads, the others wait; the leader is lost, stopped, or its server is."""
import json
import os
import random
import signal
import socket
import struct
import tempfile
import time
import unittest

import pg
import sp
from harness import BatonTest, Daemon, main, until

LEASE = 3.0
EXEC = """
agents:
  - agentId: exec
    command: ["${BATON_BIN}/baton-agent-exec"]
    capacity: 4
    settings:
      commands:
        - {id: echo, argv: ["echo", "{text}"], description: "Says a text.", output: text, effects: idempotent}
        - {id: wait, argv: ["%(here)s/slow.sh", "%(work)s/executions", "{name}", "{seconds}"], description: "Takes a while.", output: text, effects: idempotent}
"""


def setUpModule():
    pg.need()


class Node(Daemon):
    def __init__(self, test, server, name, durability="power", config=None, **kwargs):
        super().__init__(test, config=(EXEC if config is None else config) + "fleet: {node: %s, durability: %s}\n" % (name, durability),
                         durability="power", args=["--fleet", server.url], **kwargs)
        self.name = name
        test.addCleanup(self.clean)

    def wait_beside(self):
        """Starts it as a standby."""
        with open(self.work / "batond.log", "ab") as log:
            self.process = self.popen(log)
        until(lambda: "supervisor.standby" in self.log(), 10, "it waits\n" + self.log())
        return self

    def leads(self):
        return (self.state / "endpoints.json").exists() and self.endpoints()["pid"] == self.process.pid

    def wait_to_lead(self, seconds=20):
        until(self.leads, seconds, "%s leads\n%s" % (self.name, self.log()))


def echo(text):
    return {"steps": [{"id": "say", "agentId": "exec", "skill": "echo", "task": "Say the text", "parameters": {"text": text}}]}


def slow(name, seconds):
    return {"steps": [{"id": "wait", "agentId": "exec", "skill": "wait", "task": "Wait for a while",
                       "parameters": {"name": name, "seconds": str(seconds)}},
                      {"id": "say", "agentId": "exec", "skill": "echo", "task": "Say the text", "dependsOn": ["wait"],
                       "parameters": {"text": name}}]}


class Fleet(BatonTest):
    def pair(self, **kwargs):
        server = pg.Server(self)
        one, two = Node(self, server, "one", **kwargs), Node(self, server, "two", **kwargs)
        one.start()
        two.wait_beside()
        return server, one, two

    def test_one_leads_and_the_other_waits(self):
        with tempfile.TemporaryDirectory() as at, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(at + "/notify")
            manager.settimeout(10)
            server = pg.Server(self)
            one, two = Node(self, server, "one"), Node(self, server, "two")
            one.start()
            two.env["NOTIFY_SOCKET"] = at + "/notify"
            two.wait_beside()
            self.assertEqual(manager.recv(4096).decode(), 'READY=1\nSTATUS=standby: the node "one" leads')
            plan = one.submit(echo("hello"))
            self.assertEqual(one.wait_plan(plan)["status"], "completed")
            time.sleep(2 * LEASE)  # the leader has nothing to do, and stays the leader
            self.assertTrue(one.leads())
            self.assertEqual(one.process.poll(), None)
            self.assertFalse((two.state / "endpoints.json").exists())
            self.assertEqual(two.log().count("supervisor.standby"), 1, two.log())
            self.assertNotIn("agent", two.log())
            self.assertEqual(os.listdir("/proc/%d/task" % two.process.pid), [str(two.process.pid)])  # no sockets, no threads
            self.assertEqual(one.stop(), 0)
            self.assertIn("STATUS=serving", manager.recv(4096).decode())
            self.assertTrue(two.leads())
            two.wait_agents()
            self.assertEqual(two.ask("plan.get", planId=plan)["status"], "completed")
            one.wait_beside()
            self.assertIn('the node "two" leads', one.log())
            self.assertEqual(one.stop(), 0)  # a standby ends at once
            self.assertTrue(two.leads())

    def test_the_standby_takes_over_from_a_killed_leader(self):
        server, one, two = self.pair()
        done = one.submit(echo("before"), clientKey="before")
        one.wait_plan(done)
        running = one.submit(slow("a", 1), clientKey="running")
        until(one.executions, 10, "the step runs")
        accepted = [one.submit(echo("n%d" % i), clientKey="k%d" % i) for i in range(20)]
        killed = time.monotonic()
        one.kill9()
        two.wait_to_lead()
        leads = time.monotonic() - killed
        two.wait_agents()
        for plan in accepted + [running]:
            self.assertEqual(two.wait_plan(plan)["status"], "completed", plan)
        print("took over %.2f s after the kill, with a lease of %g s" % (leads, LEASE), flush=True)
        # what was accepted is there once, and the same key gives the same plan
        self.assertEqual(two.submit(echo("before"), clientKey="before"), done)
        self.assertEqual(two.submit(slow("a", 1), clientKey="running"), running)
        plans = two.ask("plan.list", limit=100)["plans"]
        self.assertEqual(sorted(p["planId"] for p in plans), sorted([done, running] + accepted))
        seqs = [e["seq"] for e in two.events()]
        self.assertEqual(seqs, list(range(1, len(seqs) + 1)))
        two.check_event_order()
        self.assertLess(leads, LEASE + 2 + 8)  # a busy machine with sanitizers

    def test_a_leader_that_was_stopped_does_nothing_and_ends(self):
        server, one, two = self.pair()
        one.wait_plan(one.submit(echo("before")))
        token, at = one.token(), one.endpoints()["control"]
        with sp.Req(at, 60) as late, sp.Req(at, 60) as reads:
            one.process.send_signal(signal.SIGSTOP)
            for request, fields in ((late, {"type": "plan.submit", "plan": echo("late")}), (reads, {"type": "plan.list"})):
                body = json.dumps({"v": 1, "id": "t", "token": token, **fields})
                request.pipe.send(struct.pack(">I", 0x80000001) + body.encode())
            two.wait_to_lead()
            two.wait_agents()
            plan = two.submit(echo("after"))
            one.process.send_signal(signal.SIGCONT)
            self.assertEqual(one.process.wait(20), 75, one.log())
            for request in (late, reads):
                with self.assertRaises((EOFError, OSError)):
                    request.pipe.recv()
        self.assertEqual(two.wait_plan(plan)["status"], "completed")
        self.assertEqual(len(two.ask("plan.list")["plans"]), 2)
        two.check_event_order()

    def test_the_server_is_killed_and_the_daemon_starts_again(self):
        server = pg.Server(self)
        one = Node(self, server, "one").start()
        plans = [one.submit(echo("n%d" % i)) for i in range(5)]
        waits = one.submit(slow("a", 2))
        until(one.executions, 10, "the step runs")
        server.kill9()
        self.assertEqual(one.process.wait(20), 75, one.log())
        one.wait_beside()
        until(lambda: "cannot connect to PostgreSQL" in one.log(), 10, "it says what it waits for\n" + one.log())
        self.assertEqual(one.process.poll(), None)
        server.start()
        one.wait_to_lead()
        one.wait_agents()
        for plan in plans + [waits]:
            self.assertEqual(one.wait_plan(plan)["status"], "completed")
        one.check_event_order()

    def test_kills_in_any_order(self):
        """BATON_KILLS rounds: a leader is killed or stopped, or the server is killed, at any moment of its work."""
        kills, seed = int(os.environ.get("BATON_KILLS", "4")), os.environ.get("BATON_SEED") or str(random.randrange(1 << 32))
        print("seed %s, %d kills" % (seed, kills), flush=True)
        rng = random.Random(seed)
        server, leader, other = self.pair()
        accepted, took = {}, []
        for n in range(kills):
            how = rng.choice(["kill", "kill", "stop", "server"])
            until_ = time.monotonic() + rng.random() * 1.5
            while time.monotonic() < until_:
                key = "%d.%d" % (n, len(accepted))
                accepted[key] = leader.submit(echo(key), clientKey=key)
            began = time.monotonic()
            if how == "server":
                server.kill9()
                server.start()
                leader.process.wait(30)
                leader.wait_beside()
                until(lambda: leader.leads() or other.leads(), 30, "one leads\n%s\n%s" % (leader.log(), other.log()))
                if other.leads():
                    leader, other = other, leader
            else:
                leader.process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGSTOP)
                other.wait_to_lead(30)
                if how == "stop":
                    leader.process.send_signal(signal.SIGCONT)
                    self.assertEqual(leader.process.wait(30), 75, leader.log())
                leader.process.wait()
                leader.wait_beside()
                leader, other = other, leader
            took.append("%s %.2f" % (how, time.monotonic() - began))
            leader.wait_agents(60)
        for key, plan in accepted.items():
            self.assertEqual(leader.wait_plan(plan, 60)["status"], "completed", key)
            self.assertEqual(leader.submit(echo(key), clientKey=key), plan)
        seqs = [e["seq"] for e in leader.events()]
        self.assertEqual(seqs, list(range(1, len(seqs) + 1)))
        leader.check_event_order()
        print("%d plans accepted; seconds until another leads: %s" % (len(accepted), ", ".join(took)), flush=True)

    def test_what_a_fleet_refuses(self):
        server = pg.Server(self)
        for args, config, why in (
                (["--fleet", "postgresql://me:secret@db/baton"], "", "leave the password out"),
                (["--fleet", "postgresql://db/baton?password=secret"], "", "leave the password out"),
                (["--fleet", "mysql://db/baton"], "", "expected postgresql://HOST/DATABASE"),
                (["--fleet", server.url, "--durability", "process"], "", "a crash of PostgreSQL would take back"),
                (["--fleet", server.url], "fleet: {durability: process}\n", "fleet.durability")):
            d = Daemon(self, config=config, durability="power", args=args)
            self.addCleanup(d.clean)
            with open(d.work / "batond.log", "ab") as log:
                self.assertEqual(d.popen(log).wait(20), 2, d.log())
            self.assertIn(why, d.log())
            self.assertNotIn("secret", d.log())
        d = Daemon(self, config="", durability="power", args=["--fleet", server.url])
        self.addCleanup(d.clean)
        with open(d.work / "batond.log", "ab") as log:
            self.assertEqual(d.popen(log).wait(20), 1)
        self.assertIn("synchronous_standby_names of this PostgreSQL is empty", d.log())

    def test_replicated_survives_the_loss_of_the_database_server(self):
        server = pg.Server(self)
        server.replicate()
        server.url = "postgresql:///postgres?host=%s,%s&port=5432,5433&user=fleet" % (server.dir, server.dir)
        one = Node(self, server, "one", durability="replicated").start()
        self.assertEqual(one.ask("supervisor.info")["durability"], "replicated")
        plans = [one.submit(echo("n%d" % i)) for i in range(10)]
        server.kill9()
        self.assertEqual(one.process.wait(30), 75, one.log())
        server.promote()
        one.config.write_text(one.config.read_text().replace("replicated", "power"))  # there is no third server
        one.start()
        for plan in plans:
            self.assertEqual(one.wait_plan(plan)["status"], "completed")
        one.check_event_order()


if __name__ == "__main__":
    main()
