"""A fleet gets more shards while it works; programs of several versions; hosts with different configurations."""
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import uuid

import pg
import test_shards
from harness import BIN, EXEC, ROOT, main, until
from test_fleet import Node, echo, setUpModule, slow  # noqa: F401
from test_shards import Member
from test_transfer import bodies, seal

sys.path.insert(0, str(ROOT / "agents" / "python"))
import baton  # noqa: E402  (the path is set just above)

POWER = {"BATON_FLEET_DURABILITY": "power"}


def hashed(key, shards):
    h = 14695981039346656037
    for byte in key.encode():
        h = ((h ^ byte) * 1099511628211) % (1 << 64)
    return ((h >> 32) ^ (h & 0xFFFFFFFF)) % shards


class Base(test_shards.Shards):
    def status(self, url, code=0):
        done = subprocess.run([BIN / "baton", "fleet", "status", url, "--json"], capture_output=True, text=True, env={**os.environ, **POWER})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)


for name in [n for n in dir(Base) if n.startswith("test_")]:
    setattr(Base, name, None)  # those of test_shards.py run there


class Grows(Base):
    def test_a_fleet_grows_while_it_works(self):
        """The command of deploy/FLEET.md: baton fleet grow --shards 8"""
        server, (one, two) = self.fleet(shards=4)
        keys = ["k%d" % n for n in range(24)]
        plans = {k: one.submit(echo(k), clientKey=k) for k in keys}
        in_sessions = {"s%d" % n: one.submit(echo("first"), sessionId="s%d" % n) for n in range(12)}
        one.ask("schedule.put", name="nightly", cron="0 3 * * *", plan=echo("night"))
        slow_key = next("r%d" % i for i in range(1000) if hashed("r%d" % i, 4) != hashed("r%d" % i, 8))
        holder = {"steps": [{"id": "w", "agentId": "exec", "skill": "wait", "task": "Wait", "parameters": {"name": "w", "seconds": "300"}}]}
        held = one.submit(holder, policy={"concurrencyKey": slow_key})
        for plan in [*plans.values(), *in_sessions.values()]:
            self.assertEqual(one.wait_plan(plan, 60)["status"], "completed")
        accepted, stop, wrong = {}, threading.Event(), []

        def submit():
            n = 0
            while not stop.is_set():
                n += 1
                done = subprocess.run([BIN / "client_call", one.state, "plan.submit", json.dumps({"plan": echo("x"), "clientKey": "g%d" % n})],
                                      capture_output=True, text=True)
                if done.returncode == 0:
                    accepted["g%d" % n] = json.loads(done.stdout)["planId"]
                else:
                    wrong.append(done.stderr)
        thread = threading.Thread(target=submit)
        thread.start()
        until(lambda: len(accepted) > 3, 30, "plans come in")
        processes = (one.process.pid, two.process.pid)
        began = time.monotonic()
        self.fleet_verb("grow", "--shards", 8)
        until(lambda: sorted(self.leaders()) == ["one"] * 4 + ["two"] * 4, 60, "eight are led\n" + one.log())
        until(lambda: all(len(n.map()) == 8 and all(s["control"] for s in n.map()) for n in (one, two)), 30, "all know all")
        print("8 shards are led %.1f s after the command" % (time.monotonic() - began), flush=True)
        had = len(accepted)
        until(lambda: len(accepted) > had + 3, 30, "plans come in again")
        stop.set()
        thread.join()
        self.assertEqual((one.process.poll(), two.process.poll()), (None, None))
        self.assertEqual((one.process.pid, two.process.pid), processes)  # the nodes did not restart
        # what was there is there, under the same ids and keys, whoever is asked
        for key, plan in [*plans.items(), *accepted.items()]:
            for node in (one, two):
                self.assertEqual(node.submit(echo("x" if key in accepted else key), clientKey=key), plan, key)
        for plan in [*plans.values(), *accepted.values()]:
            self.assertEqual(two.wait_plan(plan, 60)["status"], "completed")
        # a session goes on where it is; its key of now may name another shard
        moved = 0
        for session, plan in in_sessions.items():
            more = two.submit(echo("more"), sessionId=session)
            self.assertEqual(test_shards.shard_of(more), test_shards.shard_of(plan), session)
            moved += hashed(session, 8) != test_shards.shard_of(plan)
        self.assertGreater(moved, 0, "no session of these has another hash now")
        # what is new goes by the new number
        fresh = {k: two.submit(echo(k), clientKey=k) for k in ["n%d" % n for n in range(24)]}
        self.assertEqual({k: test_shards.shard_of(p) for k, p in fresh.items()}, {k: hashed(k, 8) for k in fresh})
        self.assertTrue({test_shards.shard_of(p) for p in fresh.values()} - set(range(4)))
        # a concurrency key that is held is met where it is held
        self.assertEqual(test_shards.shard_of(one.submit(echo("after"), policy={"concurrencyKey": slow_key})), test_shards.shard_of(held))
        self.assertEqual([s["name"] for s in json.loads(self.call(one, "schedule.list", {}))["schedules"]], ["nightly"])
        self.assertFalse(one.ask_raw("schedule.put", name="nightly", cron="0 4 * * *", plan=echo("night")).get("created", False))
        self.assertEqual([s["name"] for s in json.loads(self.call(one, "schedule.list", {}))["schedules"]], ["nightly"])
        client = baton.Client(one.state)
        self.addCleanup(client.close)
        # lists have all
        found = [p["planId"] for page in client.request_all("plan.list", limit=100) for p in page["plans"]]
        self.assertEqual(len(found), len(set(found)))
        self.assertFalse(set([*plans.values(), *accepted.values(), *fresh.values()]) - set(found))
        # and once more, and less
        self.assertIn("never gets fewer", self.fleet_verb("grow", "--shards", 4, code=2))
        self.assertIn("never gets fewer", self.fleet_verb("grow", "--shards", 8, code=2))
        self.assertIn("from 2 to 64", self.fleet_verb("grow", "--shards", 65, code=2))
        self.assertIn("from 2 to 64", self.fleet_verb("grow", code=2))

    def with_id_of(self, lines, plan, shard):
        """An export whose plan has an id that names another shard."""
        number = bytearray.fromhex(plan.replace("-", ""))
        number[8], number[9] = number[8] & 0xC0 | shard >> 4, (shard & 15) << 4 | number[9] & 15
        new = str(uuid.UUID(bytes=bytes(number))).upper()
        return seal(bodies(lines.replace(plan, new))), new

    def imported(self, into, *shards):
        """Plans of a daemon without a fleet, whose ids name those shards."""
        alone = self.daemon(config="agents:\n" + EXEC)
        found = []
        for shard in shards:
            plan = alone.submit(echo("alone"))
            self.assertEqual(alone.wait_plan(plan, 60)["status"], "completed")
            lines, plan = self.with_id_of(alone.cli("export", plan), plan, shard)
            (alone.work / "plan.jsonl").write_text(lines)
            into.cli("import", alone.work / "plan.jsonl")
            found.append(plan)
        alone.stop()
        return found

    def test_a_fleet_of_one_shard_grows(self):
        """Its daemons end, and are nodes when their service manager starts them again. Ids that name no shard of before are shard 0's."""
        server = pg.Server(self)
        self.url = server.url
        self.fleet_verb("init")
        one, two = Member(self, server, "one"), Member(self, server, "two")
        two.state.mkdir(mode=0o700, exist_ok=True)
        one.start()
        shutil.copy(one.state / "token", two.state / "token")
        two.wait_beside()
        keys = {k: one.submit(echo(k), clientKey=k) for k in ["k%d" % n for n in range(8)]}
        sessions = {s: one.submit(echo("first"), sessionId=s) for s in ["s%d" % n for n in range(8)]}
        strays = self.imported(one, 700, 2, 0)
        one.ask("schedule.put", name="nightly", cron="0 3 * * *", plan=echo("night"))
        for plan in [*keys.values(), *sessions.values()]:
            self.assertEqual(one.wait_plan(plan, 60)["status"], "completed")
        held = one.submit(slow("held", 3), clientKey="held")
        until(lambda: one.ask("plan.get", planId=held)["steps"][0].get("status") == "in_progress", 20, "it runs")
        self.fleet_verb("grow", "--shards", 4)
        self.assertEqual((one.process.wait(30), two.process.wait(30)), (75, 75), one.log() + two.log())
        for node in (one, two):
            node.start(agents=False)
        until(lambda: [len(n.leads_shards()) for n in (one, two)] == [2, 2], 60, "each has its share\n" + one.log() + two.log())
        until(lambda: all(s["control"] for n in (one, two) for s in n.map()), 30, "all know all")
        self.assertEqual(two.wait_plan(held, 60)["status"], "completed")
        for node in (one, two):
            for key, plan in keys.items():
                self.assertEqual(node.submit(echo(key), clientKey=key), plan)
            for plan in strays:
                self.assertEqual(json.loads(self.call(node, "plan.get", {"planId": plan}))["planId"], plan)
                for shard in node.map():
                    answer = node.ask_at(shard["control"], "plan.get", planId=plan)
                    self.assertTrue(answer["ok"] if shard["shard"] == 0 else answer["error"]["details"]["shard"] == 0, answer)
            for session, plan in sessions.items():
                self.assertEqual(test_shards.shard_of(node.submit(echo("more"), sessionId=session)), 0, session)
        for unknown in (700, 2, 0):  # no such plan: each shard says so, or names the one that may have it
            _, plan = self.with_id_of("", strays[0], unknown)
            plan = plan[:-4] + "0000"
            done = subprocess.run([BIN / "client_call", one.state, "plan.get", json.dumps({"planId": plan})], capture_output=True, text=True)
            self.assertIn("NOT_FOUND", done.stderr + done.stdout)
        fresh = {k: two.submit(echo(k), clientKey=k) for k in ["n%d" % n for n in range(12)]}
        self.assertEqual({k: test_shards.shard_of(p) for k, p in fresh.items()}, {k: hashed(k, 4) for k in fresh})
        for plan in fresh.values():
            self.assertEqual(one.wait_plan(plan, 60)["status"], "completed")
        self.assertEqual([s["name"] for s in json.loads(self.call(one, "schedule.list", {}))["schedules"]], ["nightly"])
        client = baton.Client(one.state)
        self.addCleanup(client.close)
        found = [p["planId"] for page in client.request_all("plan.list", limit=100) for p in page["plans"]]
        self.assertEqual(len(found), len(set(found)))
        self.assertFalse(set([*keys.values(), *sessions.values(), *fresh.values(), *strays, held]) - set(found))

    def call(self, node, type_, fields):
        return subprocess.run([BIN / "client_call", node.state, type_, json.dumps(fields)], capture_output=True, text=True, check=True).stdout

    def test_what_does_not_grow(self):
        server = pg.Server(self)
        self.url = server.url
        self.fleet_verb("init")
        self.assertIn("baton fleet init --shards 2", self.fleet_verb("grow", "--shards", 2, code=2))
        one = Node(self, server, "one").start()
        self.assertEqual(one.wait_plan(one.submit(echo("on")))["status"], "completed")
        server.sql("UPDATE baton.fleet SET format = 2")
        self.assertIn("baton fleet finalize first", self.fleet_verb("grow", "--shards", 2, code=2))


class Versions(Base):
    def old_fleet(self, server):
        """The tables as a program of format 2 made them."""
        server.sql("""UPDATE baton.fleet SET format = 2; ALTER TABLE baton.fleet DROP tables; ALTER TABLE baton.shards DROP took, DROP took_epoch;
                      ALTER TABLE baton.nodes DROP said, DROP version, DROP knows, DROP config; DROP TABLE baton.rewinds, baton.maps""")

    def test_a_new_program_works_beside_older_ones_until_the_format_is_raised(self):
        server = pg.Server(self)
        self.url = server.url
        self.fleet_verb("init")
        self.old_fleet(server)
        said = self.status(server.url)  # it looks, and changes nothing
        self.assertEqual((said["format"], said["formatKnown"], said["nodes"]), (2, 3, []))
        self.assertEqual(server.sql("SELECT to_regclass('baton.rewinds') IS NULL"), "t")
        one = Node(self, server, "one").start()
        self.assertEqual(one.wait_plan(one.submit(echo("on")))["status"], "completed")
        said = self.status(server.url)
        self.assertEqual((said["format"], [n["node"] for n in said["nodes"]]), (2, ["one"]))
        self.assertIn("baton fleet finalize", said["warnings"][0])
        # an older program beats: only what its tables had
        server.sql("INSERT INTO baton.nodes(node, places, lease_until) VALUES('old', '', clock_timestamp() + interval '1 hour')")
        refused = self.fleet_verb("finalize", code=2)
        self.assertIn("old (an older program)", refused)
        self.assertEqual(self.status(server.url)["format"], 2)
        # a node that went back to the older program: what it said before does not count
        server.sql("DELETE FROM baton.nodes WHERE node = 'old'; UPDATE baton.nodes SET lease_until = clock_timestamp() + interval '1 hour'")
        self.assertIn("one (an older program)", self.fleet_verb("finalize", code=2))
        server.sql("UPDATE baton.nodes SET said = lease_until")
        # an older standby of a fleet of one shard is in no table
        looks = subprocess.Popen([*pg._as(), pg.programs() / "psql", "host=%s user=fleet dbname=postgres application_name=baton-look" % server.dir, "-c",
                                  "SELECT pg_sleep(60)"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
        self.addCleanup(looks.wait)
        self.addCleanup(looks.kill)
        until(lambda: server.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'baton-look'") == "1", 10, "it looks")
        self.assertIn("a standby or a command of an older program", self.fleet_verb("finalize", code=2))
        server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'baton-look'")
        self.fleet_verb("finalize")
        self.assertEqual((self.status(server.url)["format"], self.status(server.url)["warnings"]), (3, []))
        self.fleet_verb("finalize")  # again: nothing changes
        self.assertEqual(one.wait_plan(one.submit(echo("goes on")))["status"], "completed")

    def test_a_leader_ends_when_the_format_is_above_it(self):
        server = pg.Server(self)
        one = Node(self, server, "one").start()
        server.sql("UPDATE baton.fleet SET format = 4")
        self.assertEqual(one.wait_plan(one.submit(echo("on")))["status"], "completed")
        server.sql("SELECT pg_terminate_backend(backend) FROM baton.shards")
        self.assertEqual(one.process.wait(30), 75, one.log())
        self.assertIn("the journal has format 4 now", one.log())
        with open(one.work / "batond.log", "ab") as log:
            self.assertEqual(one.popen(log).wait(30), 1)
        self.assertIn("use the newer program", one.log())

    def test_another_configuration_is_a_warning_and_an_event(self):
        server = pg.Server(self)
        one, two = Node(self, server, "one"), Node(self, server, "two")
        two.config.write_text(two.config.read_text() + "policy: {maxRetries: 7}\n" if "policy:" not in two.config.read_text() else
                              two.config.read_text().replace("policy: {", "policy: {maxRetries: 7, "))
        one.start()
        two.wait_beside()
        said = until(lambda: [w for w in self.status(server.url)["warnings"] if "another configuration" in w], 10, "a warning")
        self.assertEqual(said, ["two has another configuration than one: see baton config show on both"])
        one.kill9()
        two.wait_to_lead()
        started = [e for e in two.events() if e["type"] == "supervisor_started"]
        self.assertIn("is another one than that of one", started[-1]["reason"])
        self.assertIn("supervisor.differs", two.log())
        two.stop()
        same = Node(self, server, "three")
        same.config.write_text(two.config.read_text().replace("node: two", "node: three"))
        same.start()
        self.assertNotIn("reason", [e for e in same.events() if e["type"] == "supervisor_started"][-1])


if __name__ == "__main__":
    main()
