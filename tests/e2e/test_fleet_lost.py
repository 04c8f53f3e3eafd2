"""A machine is lost under load: a node with its shards, the server of the journal, or the primary, whose standby is promoted. BATON_ROUNDS
(3; 100 by hand), BATON_KINDS (node,server,primary), BATON_SEED. It prints how long each kind took until plans of every shard went on:
of a primary after its new standby was there, which this test makes."""
import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import threading
import time

import pg
from harness import BIN, HERE, BatonTest, main, until
from test_fleet import LEASE, echo, setUpModule  # noqa: F401
from test_shards import Member, ports_in_a_row, shard_of, shard_of_key

SHARDS = 4  # of shard_of_key
KINDS = tuple((os.environ.get("BATON_KINDS") or "node,server,primary").split(","))


class Load(threading.Thread):
    """Plans of one shard, one after the other: accepted, done, and how long the longest took."""

    def __init__(self, lost, shard):
        super().__init__(daemon=True)
        self.lost, self.shard, self.plans, self.ends, self.wrong = lost, shard, {}, threading.Event(), []
        self.done_at, self.asks = [], ""
        self.start()

    def run(self):
        try:
            n = 0
            while not self.ends.is_set():
                key = next(k for k in ("%d.%d.%d" % (self.shard, n, i) for i in range(1000)) if shard_of_key(k) == self.shard)
                self.asks = "submits %s" % key
                self.plans[key] = plan = self.lost.insist("plan.submit", plan=echo(key), clientKey=key)["planId"]
                self.asks = "waits for %s" % plan
                while self.lost.insist("plan.get", planId=plan, steps=False)["status"] != "completed" and not self.ends.is_set():
                    time.sleep(0.01)
                self.done_at.append(time.monotonic())
                n += 1
                time.sleep(0.05)
        except AssertionError as e:
            self.wrong.append(e)


class Asked(Member):
    """By several threads: where a request goes belongs to its thread."""

    def __init__(self, *args, **kwargs):
        self.mine = threading.local()
        super().__init__(*args, **kwargs)

    @property
    def now(self):
        return self.mine.now

    @now.setter
    def now(self, where):
        self.mine.now = where

    @now.deleter
    def now(self):
        del self.mine.now


class Lost(BatonTest):
    def begin(self):
        """Two nodes by TLS, a server with a synchronous standby, and an agent that outlives all of them."""
        self.server = server = pg.Server(self)
        server.replicate()
        server.url = "postgresql:///postgres?host=%s,%s&port=5432,5433&user=fleet" % (server.dir, server.dir)
        self.primary = "data"
        keys = pathlib.Path(tempfile.mkdtemp(prefix="baton-keys-"))
        self.addCleanup(shutil.rmtree, keys, ignore_errors=True)
        for args in (["init"], ["issue", "hub", "--server", "--host", "127.0.0.1", "--to", keys], ["issue", "away", "--client", "--to", keys]):
            subprocess.run([BIN / "baton", "certs", *args, "--dir", keys / "ca"], check=True, capture_output=True)
        subprocess.run([BIN / "baton", "fleet", "init", server.url, "--shards", str(SHARDS)], check=True, capture_output=True)
        self.nodes = []
        for name in ("one", "two"):
            d = Asked(self, server, name, config="", durability="replicated")
            d.port = ports_in_a_row(SHARDS)
            d.config.write_text(d.config.read_text().replace(
                "listen: {", "auth: required\nlisten: {remote: 'tls+tcp://127.0.0.1:%d', cert: '%s', ca: '%s', " % (d.port, keys / "hub.pem", keys / "ca.pem")))
            self.nodes.append(d)
        one, two = self.nodes
        one.cli("credential", "add", "op", "--role", "admin")
        one.cli("credential", "add", "away", "--role", "agent", "--agents", "*")
        shutil.copytree(one.state / "credentials", two.state / "credentials")
        shutil.copy(one.state / "credentials/away", keys / "away")  # a node that is killed takes with it what names its directory
        two.state.chmod(0o700)
        self.alive = set()
        for d in self.nodes:
            d.credential = ("op", d.state / "credentials/op")
            d.start(agents=False)
            self.alive.add(d)
        self.shared_out()
        self.executions = one.work / "executions"
        commands = [{"id": "wait", "argv": [str(HERE / "slow.sh"), str(self.executions), "{name}", "{seconds}"],
                     "description": "Takes a while.", "output": "text", "effects": "unsafe"},
                    {"id": "echo", "argv": ["echo", "{text}"], "description": "Says a text.", "output": "text", "effects": "idempotent"}]
        both = ",".join("tls+tcp://127.0.0.1:%d" % d.port for d in self.nodes)
        with open(one.work / "agent.log", "ab") as log:
            agent = subprocess.Popen([*map(str, [BIN / "baton-agent-exec", "--connect", both, "--shards", SHARDS, "--capacity", 16, "--ca", keys / "ca.pem",
                                                 "--cert", keys / "away.pem", "--credential", keys / "away"])],
                                     stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, "BATON_SETTINGS": json.dumps({"commands": commands})})
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)

        def registered():
            return (one.work / "agent.log").read_text().count("agent.registered") >= SHARDS
        try:
            until(registered, 20, "it is at every shard")
        except AssertionError as e:
            raise AssertionError("%s\n%s\n%s" % (e, (one.work / "agent.log").read_text()[-3000:], "\n".join(d.log() for d in self.nodes))) from None

    def shared_out(self):
        until(lambda: all(len(n.leads_shards()) == SHARDS // 2 for n in self.nodes), 60, "each has its share\n" + "\n".join(n.log() for n in self.nodes))
        until(lambda: all(s["control"] for n in self.nodes for s in n.map()), 20, "all know all")

    def insist(self, type_, **fields):
        """Of any node that lives, until it is answered."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            for d in list(self.alive):
                try:
                    answer = d.ask_once(type_, 2, **fields)
                except (OSError, EOFError, ValueError, KeyError):
                    continue
                if answer["ok"]:
                    return answer
                code = answer["error"]["code"]
                if code not in ("UNAVAILABLE", "BUSY", "MOVED", "UNAUTHORIZED") and "Unknown agent" not in answer["error"]["message"]:
                    raise AssertionError("%s %s: %s" % (type_, fields, answer["error"]))
            time.sleep(0.02)
        raise AssertionError("%s is not answered\n%s" % (type_, "\n".join(d.log() for d in self.nodes)))

    def lose(self, kind, rng):
        """What is lost, and what brings it back after the round."""
        server = self.server
        if kind == "node":
            victim = rng.choice(self.nodes)
            self.alive.discard(victim)
            victim.kill9()

            def back():
                victim.start(agents=False)
                self.alive.add(victim)
                self.shared_out()
            return back
        other = "second" if self.primary == "data" else "data"
        ports = {"data": 5432, "second": 5433}
        gone = self.primary
        server.kill9(gone)
        if kind == "server":
            server.start(gone, ports[gone])
            return lambda: until(lambda: self.sync(ports[gone]), 60, "it is synchronous again")
        pg.run("pg_ctl", "promote", "-D", server.dir / other, "-w")
        self.primary = other
        for text in ("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"):
            pg.run("psql", "-h", server.dir, "-p", ports[other], "-U", "fleet", "-d", "postgres", "-c", text)

        def rebuild():
            shutil.rmtree(server.dir / gone)
            pg.run("pg_basebackup", "-D", server.dir / gone, "-h", server.dir, "-p", ports[other], "-U", "fleet", "-R", "-c", "fast", "--no-sync")
            server.start(gone, ports[gone])
            until(lambda: self.sync(ports[other]), 60, "the new standby is synchronous")
        # the promoted one has nobody to wait for: commits would wait until it has
        rebuild()
        return lambda: None

    def sync(self, port):
        done = subprocess.run([pg.programs() / "psql", "-h", self.server.dir, "-p", str(port), "-U", "fleet", "-d", "postgres", "-Atqc",
                               "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"], capture_output=True, text=True)
        return done.stdout.strip() == "1"

    def round(self, n, kind, rng):
        steps, expected = {}, "%s%d" % (kind, n)
        for shard in range(SHARDS):
            key = next(k for k in ("%s.%d.%d" % (expected, shard, i) for i in range(1000)) if shard_of_key(k) == shard)
            steps[key] = self.insist("plan.submit", clientKey=key, plan={"steps": [
                {"id": "once", "agentId": "exec", "skill": "wait", "task": "Wait, and only once", "parameters": {"name": key, "seconds": "3"}},
                {"id": "then", "agentId": "exec", "skill": "echo", "task": "Say it", "dependsOn": ["once"], "parameters": {"text": key}}]})["planId"]
        until(lambda: all(k in self.ran() for k in steps), 30, "the steps run")
        time.sleep(rng.random() * 0.3)
        lost = time.monotonic()
        back = self.lose(kind, rng)
        made = time.monotonic()
        since = max(lost, made if kind == "primary" else lost)  # the failover is PostgreSQL's, and its new standby this test's
        until(lambda: all(load.wrong or (load.done_at and load.done_at[-1] > since and self.began_after(load, since)) for load in self.loads), 60,
              lambda: "plans go on after the loss of a %s\n%s" % (kind, self.all_said(since)))
        for load in self.loads:
            self.assertEqual(load.wrong, [])
        took = max(next(t for t in load.done_at if t > since and self.began_after(load, since)) for load in self.loads) - since
        for key, plan in steps.items():
            view = until(lambda plan=plan: self.ended(plan), 60,
                         lambda key=key, plan=plan: "%s ends: %s\n%s" % (key, self.insist("plan.get", planId=plan), self.all_said(since)))
            self.assertEqual(view["status"], "completed", view)
            self.assertEqual(self.ran().count(key), 1, "a step whose agent lives")
        back()
        return took

    def all_said(self, since):
        said = ["shard %d: %d ended after it, %s" % (load.shard, len([t for t in load.done_at if t > since]), load.asks) for load in self.loads]
        said += ["%s leads %s\n%s" % (d.name, d.leads_shards(), d.log()) for d in self.nodes]
        return "\n".join([*said, (self.nodes[0].work / "agent.log").read_text()[-3000:]])

    @staticmethod
    def began_after(load, since):
        """One is done that was begun after it: two ends since."""
        return len([t for t in load.done_at if t > since]) >= 2

    def ran(self):
        return self.executions.read_text().split() if self.executions.exists() else []

    def ended(self, plan):
        view = self.insist("plan.get", planId=plan)
        return view if view["status"] in ("completed", "failed", "cancelled", "quarantined") else None

    def test_plans_go_on_when_a_machine_is_lost(self):
        rounds, seed = int(os.environ.get("BATON_ROUNDS", "3")), os.environ.get("BATON_SEED") or str(random.randrange(1 << 32))
        print("seed %s, %d rounds" % (seed, rounds), flush=True)
        rng = random.Random(seed)
        self.begin()
        self.loads = [Load(self, shard) for shard in range(SHARDS)]
        until(lambda: all(len(load.done_at) > 2 for load in self.loads), 30, lambda: "plans run\n" + self.all_said(0))
        took = {}
        for n in range(rounds):
            kind = KINDS[n % len(KINDS)]
            took.setdefault(kind, []).append(self.round(n, kind, rng))
            print("%d %s %.2f" % (n, kind, took[kind][-1]), flush=True)
        for load in self.loads:
            load.ends.set()
        for load in self.loads:
            load.join(130)
            self.assertEqual(load.wrong, [])
        accepted = {k: p for load in self.loads for k, p in load.plans.items()}
        for key, plan in accepted.items():  # acknowledged: stored, once, in its shard
            self.assertEqual(self.insist("plan.submit", plan=echo(key), clientKey=key)["planId"], plan)
            self.assertEqual(shard_of(plan), shard_of_key(key))
            self.assertEqual(until(lambda plan=plan: self.ended(plan), 60, key)["status"], "completed")
        for s in self.nodes[0].map():
            self.history(s)
        for kind, times in sorted(took.items()):
            times.sort()
            print("%s: %d rounds, plans of all shards went on after p50 %.2f s, p90 %.2f, most %.2f (lease %g s)" % (
                kind, len(times), times[len(times) // 2], times[len(times) * 9 // 10], times[-1], LEASE), flush=True)
            self.assertLess(times[len(times) // 2], 5 + 15, "5 s on a quiet machine")
        print("%d plans accepted, each stored once" % len(accepted), flush=True)

    def history(self, shard):
        found, seq = [], 1
        while True:
            page = self.nodes[0].ask_at(shard["control"], "events.read", fromSeq=seq, limit=1000)
            found += page["events"]
            if page["nextSeq"] > page["lastSeq"]:
                break
            seq = page["nextSeq"]
        self.assertEqual([e["seq"] for e in found], list(range(1, len(found) + 1)))
        plans = {}
        for e in found:
            if e.get("planId"):
                plans.setdefault(e["planId"], []).append(e)
        for events in plans.values():
            self.assertEqual([e["planSeq"] for e in events], list(range(events[0]["planSeq"], events[0]["planSeq"] + len(events))))


if __name__ == "__main__":
    main()
