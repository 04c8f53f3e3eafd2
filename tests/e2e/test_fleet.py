"""Several daemons on one journal in PostgreSQL: one leads, the others wait; the leader is lost, or stopped. What happens when the
server is lost: test_fleet_rides.py."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import nats
import pg
import sp
from harness import BIN, EXEC, HERE, ROOT, BatonTest, Daemon, main, until

LEASE = 3.0


def setUpModule():
    pg.need()


class Node(Daemon):
    def __init__(self, test, server, name, durability="power", config=None, **kwargs):
        super().__init__(test, config=("agents:\n" + EXEC if config is None else config) + "fleet: {node: %s, durability: %s}\n" % (name, durability),
                         durability="power", args=["--fleet", server.url], **kwargs)
        self.name = name
        test.addCleanup(self.clean)

    def wait_beside(self):
        """Starts it as a standby."""
        with open(self.work / "batond.log", "ab") as log:
            self.process = self.popen(log)
        until(lambda: "supervisor.standby" in self.log(), 10, "it waits\n" + self.log())
        return self

    def submit_soon(self, plan, **fields):
        """The server of the journal is just back: at first it may be refused."""
        return until(lambda: self.ask_raw("plan.submit", plan=plan, **fields).get("planId"), 10, "it is accepted")

    def is_away(self):
        """What is in hand when a leader loses its server waits for it; what is asked next is answered at once."""
        try:
            return self.ask("supervisor.info", 1.0).get("storage") == "away"
        except TimeoutError:
            return False

    def leads(self):
        return (self.state / "endpoints.json").exists() and self.endpoints()["pid"] == self.process.pid

    def wait_to_lead(self, seconds=20):
        until(self.leads, seconds, "%s leads\n%s" % (self.name, self.log()))


def echo(text):
    return {"steps": [{"id": "say", "agentId": "exec", "skill": "echo", "task": "Say the text", "parameters": {"text": text}}]}


def slow(name, seconds):
    # Without a word of the plan's the step is unsafe where the agent is not known yet, as just after a take-over.
    return {"steps": [{"id": "wait", "agentId": "exec", "skill": "wait", "task": "Wait for a while", "effects": "idempotent",
                       "parameters": {"name": name, "seconds": str(seconds)}},
                      {"id": "say", "agentId": "exec", "skill": "echo", "task": "Say the text", "dependsOn": ["wait"],
                       "parameters": {"text": name}}]}


class Elsewhere:
    def elsewhere(self, hosts=("127.0.0.1", "127.0.0.1"), prefixes=((), ()), listen=""):
        """Two nodes, and agents that know both, by TLS and credentials as from other hosts. The first one reaches the server by the
        address `listen`."""
        keys = pathlib.Path(tempfile.mkdtemp(prefix="baton-keys-"))
        self.addCleanup(shutil.rmtree, keys, ignore_errors=True)
        for args in (["init"], ["issue", "hub", "--server", "--host", hosts[0], *(["--host", hosts[1]] if hosts[1] != hosts[0] else []), "--to", keys],
                     ["issue", "away", "--client", "--to", keys]):
            subprocess.run([BIN / "baton", "certs", *args, "--dir", keys / "ca"], check=True, capture_output=True)
        server, nodes = pg.Server(self, listen), []
        near = server.url
        for name, host, prefix in zip(("one", "two"), hosts, prefixes):
            server.url = "postgresql://fleet@%s/postgres" % listen if listen and name == "one" else near
            d = Node(self, server, name, config="", prefix=prefix)
            d.port, d.host = nats.free_port(), host
            d.config.write_text(d.config.read_text().replace("listen: {", "auth: required\nlisten: {remote: 'tls+tcp://%s:%d', cert: '%s', ca: '%s', " % (
                d.host, d.port, keys / "hub.pem", keys / "ca.pem")))
            nodes.append(d)
        one, two = nodes
        one.cli("credential", "add", "op", "--role", "admin")
        one.cli("credential", "add", "away", "--role", "agent", "--agents", "*")
        shutil.copytree(one.state / "credentials", two.state / "credentials")
        two.state.chmod(0o700)
        for d in nodes:
            d.credential = ("op", d.state / "credentials/op")
        one.way = ["--connect", ",".join("tls+tcp://%s:%d" % (d.host, d.port) for d in nodes), "--ca", keys / "ca.pem", "--cert", keys / "away.pem"]
        one.start(agents=False)
        two.wait_beside()
        return server, one, two

    def agent(self, d, argv, name, settings):
        log = open(d.work / (name + ".log"), "ab")
        env = {**os.environ, "BATON_SETTINGS": json.dumps(settings)}
        env.pop("BATON_STATE", None)
        process = subprocess.Popen([*map(str, [*argv, *d.way, "--credential", d.state / "credentials/away"])], stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, env=env)
        log.close()

        def end():
            process.kill()
            process.wait()
        self.addCleanup(end)
        return process


class Fleet(Elsewhere, BatonTest):
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
            end = float(server.sql("SELECT extract(epoch FROM clock_timestamp())")) + 3 * LEASE
            until(lambda: float(server.sql("SELECT extract(epoch FROM lease_until) FROM baton.shards")) > end, 20, "the leader, which has nothing to do, renews")
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
        server, leader, other = self.pair()
        leader.wait_plan(leader.submit(echo("before")))
        for n, kinds in enumerate((["plan.list"], ["plan.submit", "plan.list"])):  # a commit would end it, too: reads alone first
            token, at = leader.token(), leader.endpoints()["control"]
            with contextlib.ExitStack() as stack:
                requests = [stack.enter_context(sp.Req(at, 60)) for _ in kinds]
                self.assertTrue(leader.leads())
                leader.process.send_signal(signal.SIGSTOP)
                for request, kind in zip(requests, kinds):
                    body = {"v": 1, "id": "t", "token": token, "type": kind, **({"plan": echo("late")} if kind == "plan.submit" else {})}
                    request.pipe.send(struct.pack(">I", 0x80000001) + json.dumps(body).encode())
                other.wait_to_lead()
                other.wait_agents()
                plan = other.submit(echo("after"))
                leader.process.send_signal(signal.SIGCONT)
                for request in requests:
                    with contextlib.suppress(EOFError, OSError):  # else it says that its server is away, until it knows that it is not
                        answer = json.loads(request.pipe.recv()[4:])
                        self.assertEqual(answer.get("error", {}).get("details"), {"storage": "away"}, answer)
                self.assertEqual(leader.process.wait(20), 75, leader.log())
            self.assertEqual(other.wait_plan(plan)["status"], "completed")
            self.assertEqual(len(other.ask("plan.list")["plans"]), n + 2)
            leader.wait_beside()
            leader, other = other, leader
        leader.check_event_order()

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
                accepted["s%d" % n] = leader.submit_soon(echo("s%d" % n), clientKey="s%d" % n)
                self.assertTrue(leader.leads() and leader.process.poll() is None, leader.log())
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

    def test_what_a_living_agent_runs_is_not_run_again_and_clients_find_the_leader(self):
        server, one, two = self.elsewhere()
        commands = [{"id": "wait", "argv": [str(HERE / "slow.sh"), str(one.work / "executions"), "{name}", "{seconds}"],
                     "description": "Takes a while.", "output": "text", "effects": "unsafe"}]
        self.agent(one, [BIN / "baton-agent-exec", "--capacity", "2"], "exec", {"commands": commands})
        self.agent(one, [sys.executable, HERE / "seeds_agent.py", one.work / "executions"], "greeter", {})
        until(lambda: len(one.ask("agents.list")["agents"]) == 2 and all(a["state"] == "up" for a in one.ask("agents.list")["agents"]), 20,
              "both are up\n" + one.log())
        steps = [{"id": "c", "agentId": "exec", "skill": "wait", "task": "Wait, and only once", "parameters": {"name": "c", "seconds": "6"}},
                 {"id": "py", "agentId": "greeter", "skill": "wait", "task": "Wait, and only once", "parameters": {"name": "py", "seconds": 6}},
                 {"id": "then", "agentId": "exec", "skill": "wait", "task": "Wait again", "dependsOn": ["c", "py"],
                  "parameters": {"name": "then", "seconds": "0"}}]
        plan = one.submit({"steps": steps}, clientKey="once")
        until(lambda: len(one.executions()) == 2, 20, "both run")
        client = subprocess.Popen([*map(str, [BIN / "baton", "status", "-w", plan, *one.way, "--credential", one.credential[1]])],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        killed = time.monotonic()
        one.kill9()
        two.wait_to_lead()
        leads = time.monotonic() - killed
        until(lambda: sum(a["state"] == "up" for a in two.ask("agents.list")["agents"]) == 2, 20, "both are back\n" + two.log())
        back = time.monotonic() - killed
        view = two.wait_plan(plan)
        self.assertEqual(view["status"], "completed")
        self.assertEqual(sorted(one.executions()), ["c", "py", "then"])  # each once
        said = client.communicate(timeout=30)[0]
        self.assertEqual(client.returncode, 0, said)
        listed = subprocess.run([*map(str, [BIN / "baton", "status", *one.way, "--credential", one.credential[1]])], capture_output=True, text=True)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn(plan[:8], listed.stdout)
        print("leads %.2f s after the kill, agents are back after %.2f s, with a lease of %g s" % (leads, back, LEASE), flush=True)
        two.check_event_order()

    def test_fleet_init_and_status_say_what_is_there_and_what_is_missing(self):
        server = pg.Server(self)

        def fleet(word, *args, env={}):
            done = subprocess.run([BIN / "baton", "fleet", word, server.url, "--json", *args], capture_output=True, text=True, env={**os.environ, **env})
            return done.returncode, json.loads(done.stdout)
        power = {"BATON_FLEET_DURABILITY": "power"}
        code, said = fleet("status", env=power)
        self.assertEqual((code, said["format"], said["missing"]), (3, 0, ["the tables: run baton fleet init"]))
        code, said = fleet("init", env=power)
        self.assertEqual((code, said["format"], said["epoch"], said["missing"]), (0, 3, 0, []))
        code, said = fleet("status")
        self.assertEqual((code, len(said["missing"])), (3, 1))
        self.assertIn("a synchronous standby of PostgreSQL", said["missing"][0])
        one = Node(self, server, "one").start()
        one.wait_plan(one.submit(echo("x")))
        code, said = fleet("status", env=power)
        self.assertEqual((code, said["leader"], said["connected"], said["epoch"]), (0, "one", True, 1))
        self.assertEqual(said["lastSeq"], one.events()[-1]["seq"])
        self.assertTrue(0 < said["leaseLeftMs"] <= LEASE * 1000, said)
        one.kill9()
        until(lambda: fleet("status", env=power)[1]["leaseLeftMs"] <= 0, 10, "the lease is over")
        self.assertFalse(fleet("status", env=power)[1]["connected"])
        server.sql("UPDATE baton.fleet SET format = 4")
        code, said = fleet("status", env=power)
        self.assertEqual((code, said["missing"]), (3, ["a newer Baton: the tables are of one"]))
        two = Node(self, server, "two")
        with open(two.work / "batond.log", "ab") as log:
            self.assertEqual(two.popen(log).wait(20), 1)
        self.assertIn("use the newer program", two.log())

    def test_the_script_that_shows_a_fleet(self):
        """The command of deploy/FLEET.md: sh deploy/fleet/try.sh"""
        done = subprocess.run(["sh", ROOT / "deploy/fleet/try.sh", BIN], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?s)the node \"one\" leads.*two leads after .*leader      two, epoch 2.*\n42\n$")

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


if __name__ == "__main__":
    main()
