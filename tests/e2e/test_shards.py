"""A fleet of several shards on PostgreSQL: nodes share them out, clients find what they ask for, and a node that is lost is replaced."""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import nats
import pg
from harness import BIN, ROOT, BatonTest, main, until
from test_fleet import LEASE, Node, echo, slow

sys.path.insert(0, str(ROOT / "agents" / "python"))
import baton  # noqa: E402  (the path is set just above)

SHARDS = 4


def setUpModule():
    pg.need()


def shard_of(plan_id):
    """The bits of the id: WIRE.md, "Shards"."""
    number = bytes.fromhex(plan_id.replace("-", ""))
    return (number[8] & 0x3F) << 4 | number[9] >> 4


def shard_of_key(key):
    h = 14695981039346656037
    for byte in key.encode():
        h = ((h ^ byte) * 1099511628211) % (1 << 64)
    return ((h >> 32) ^ (h & 0xFFFFFFFF)) % SHARDS


def ports_in_a_row(n):
    """The first of n ports that are free now."""
    while True:
        first = nats.free_port()
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError, OverflowError):
            for port in range(first, first + n):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


class Member(Node):
    """A node; its requests go over libbaton's rule: MOVED is followed."""

    def map(self):
        return json.loads((self.state / "fleet.json").read_text())["shards"]

    def leads_shards(self):
        return sorted(s["shard"] for s in self.map() if s["here"] and s["control"])

    def endpoints(self):
        return self.now if hasattr(self, "now") else super().endpoints()

    def ask_raw(self, type_, timeout=15.0, **fields):
        """Asked again when whoever is asked ends in that moment: all requests of these tests may be repeated."""
        found = []

        def answered():
            try:
                answer = self.ask_once(type_, timeout, **fields)
                if not answer["ok"] and (answer["error"]["code"] == "MOVED" or answer["error"]["message"].startswith("storage_unavailable")):
                    return False  # nobody leads it now, or the server is too busy
                found.append(answer)
            except (EOFError, OSError):
                return False
            return True
        until(answered, 10, "an answer to " + type_)
        return found[0]

    def ask_once(self, type_, timeout, **fields):
        answer = super().ask_raw(type_, timeout, **fields)
        for _ in range(3):
            if answer["ok"] or answer["error"]["code"] != "MOVED" or not answer["error"]["details"]["control"]:
                break
            self.now = {"control": answer["error"]["details"]["control"]}
            try:
                answer = super().ask_raw(type_, timeout, **fields)
            finally:
                del self.now
        return answer

    def ask_at(self, control, type_, **fields):
        self.now = {"control": control}
        try:
            return super().ask_raw(type_, **fields)
        finally:
            del self.now

    def kill9(self):
        """The node and all that it started."""
        pids = [self.process.pid] + [int(e) for e in os.listdir("/proc") if e.isdigit() and self._is_mine(int(e))]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def _is_mine(self, pid):
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as f, open("/proc/%d/environ" % pid, "rb") as e:
                return os.fsencode(self.state) in f.read() or b"BATON_STATE=" + os.fsencode(self.state) in e.read()
        except OSError:
            return False


class Several(BatonTest):
    before = staticmethod(lambda node: None)  # a node starts

    def fleet(self, names=("one", "two"), shards=SHARDS, server=None, **kwargs):
        """The command of deploy/FLEET.md, with an address of the test's own: baton fleet init postgresql://db1,db2/baton --shards 4"""
        server = server or pg.Server(self)
        self.url = server.url
        self.fleet_verb("init", "--shards", shards)
        nodes = [Member(self, server, name, **kwargs) for name in names]
        for node in nodes:
            self.before(node)
            node.state.mkdir(mode=0o700, exist_ok=True)
            if node is not nodes[0]:
                shutil.copy(nodes[0].state / "token", node.state / "token")
            node.start(agents=False)
        until(lambda: all(len(n.leads_shards()) == shards // len(nodes) for n in nodes), 40,
              "each has its share\n" + "\n".join(n.log() for n in nodes))
        until(lambda: all(s["control"] for n in nodes for s in n.map()), 10, "all know all")
        return server, nodes

    def fleet_verb(self, *args, code=0):
        done = subprocess.run([BIN / "baton", "fleet", *map(str, args), self.url], capture_output=True, text=True,
                              env={**os.environ, "BATON_FLEET_DURABILITY": "power"})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def leaders(self):
        done = subprocess.run([BIN / "baton", "fleet", "status", self.url, "--json"], capture_output=True, text=True,
                              env={**os.environ, "BATON_FLEET_DURABILITY": "power"})
        return [s["leader"] for s in json.loads(done.stdout)["shards"]]


class Shards(Several):
    def test_many_plans_at_once_go_each_to_the_shard_of_its_key(self):
        server, (one, two) = self.fleet()
        text = "".join(json.dumps(echo("x%d" % i)) + "\n" for i in range(150))
        for node in (one, two):  # a second time, at the other node: the same plans
            done = node.cli_any("run", "--plans", "-", "--key", "k", stdin=text)
            self.assertEqual(done.returncode, 0, done.stderr)
            ids = done.stdout.split()
            self.assertEqual([shard_of(i) for i in ids], [shard_of_key("k-%d" % n) for n in range(1, 151)])
            if node is one:
                first = ids
        self.assertEqual(first, ids)
        # who asks one shard for all: those of the others are MOVED, each by itself
        keys = ["m%d" % i for i in range(16)]
        for s in one.ask("fleet.map")["shards"]:
            answers = one.ask_at(s["control"], "plans.submit", plans=[{"plan": echo("y"), "clientKey": k} for k in keys])["answers"]
            for key, answer in zip(keys, answers):
                if shard_of_key(key) == s["shard"]:
                    self.assertEqual((answer["ok"], shard_of(answer["planId"])), (True, s["shard"]))
                else:
                    self.assertEqual((answer["error"]["code"], answer["error"]["details"]["shard"]), ("MOVED", shard_of_key(key)))

    def test_nodes_share_the_shards_and_each_answers_where_the_others_are(self):
        server, (one, two) = self.fleet()
        self.assertEqual(sorted(self.leaders()), ["one", "one", "two", "two"])
        answer = two.ask("fleet.map")
        self.assertEqual([s["shard"] for s in answer["shards"]], list(range(SHARDS)))
        self.assertEqual(sorted(s["node"] for s in answer["shards"]), ["one", "one", "two", "two"])
        for s in answer["shards"]:
            self.assertEqual(one.ask_at(s["control"], "fleet.map")["shard"], s["shard"])
        # a request for another shard is answered MOVED, with the address of the one that has it
        plan = one.submit(echo("x"), sessionId="s")
        self.assertEqual(shard_of(plan), shard_of_key("s"))
        for s in answer["shards"]:
            said = one.ask_at(s["control"], "plan.get", planId=plan)
            if s["shard"] == shard_of(plan):
                self.assertTrue(said["ok"], said)
            else:
                self.assertEqual(said["error"]["code"], "MOVED", said)
                self.assertEqual(said["error"]["details"]["shard"], shard_of(plan))
                self.assertEqual(said["error"]["details"]["control"], answer["shards"][shard_of(plan)]["control"])
                self.assertEqual(said["error"]["details"]["mapVersion"], answer["version"])
        # without a key it is the shard that was asked
        for s in answer["shards"]:
            self.assertEqual(shard_of(one.ask_at(s["control"], "plan.submit", plan=echo("y"))["planId"]), s["shard"])

    def test_a_repeated_key_gives_the_same_plan_wherever_it_is_sent(self):
        seed = os.environ.get("BATON_SEED") or str(random.randrange(1 << 32))
        print("seed %s" % seed, flush=True)
        rng = random.Random(seed)
        server, (one, two) = self.fleet()
        plans = {}
        for n in range(100):
            fields = {"clientKey": "k%d" % n}
            if rng.random() < 0.8:
                fields["sessionId"] = "s%x" % rng.randrange(1 << 32)
            plans[rng.choice((one, two)).submit(echo("n%d" % n), **fields)] = (fields, echo("n%d" % n))
        self.assertEqual(len(plans), 100)
        self.assertEqual({shard_of(p) for p in plans}, set(range(SHARDS)))
        for plan, (fields, body) in plans.items():
            self.assertEqual(shard_of(plan), shard_of_key(fields.get("sessionId") or fields["clientKey"]))
            self.assertEqual(one.submit(body, **fields), plan)
            self.assertEqual(two.submit(body, **fields), plan)
        for plan in plans:
            self.assertEqual(one.wait_plan(plan)["status"], "completed")
        # the client library merges the lists of all shards, newest first, page by page
        found, cursor = [], None
        while cursor != "":
            page = json.loads(self.list_plans(two, cursor))
            self.assertEqual(page["missingShards"], [])
            self.assertEqual([p["planId"] for p in page["plans"]], sorted((p["planId"] for p in page["plans"]), reverse=True))
            found += [p["planId"] for p in page["plans"]]
            cursor = page.get("cursor", "")
        self.assertEqual(sorted(found), sorted(plans))

    def list_plans(self, node, cursor):
        fields = {"limit": 10, **({"cursor": cursor} if cursor else {})}
        return subprocess.run([BIN / "client_call", node.state, "plan.list", json.dumps(fields)], capture_output=True, text=True, check=True).stdout

    def test_a_lost_node_is_replaced_and_what_was_acknowledged_is_there(self):
        server, (one, two) = self.fleet()
        accepted, stop, lost = {}, threading.Event(), []

        def submit(n):
            while not stop.is_set():
                key = "%d.%d" % (n, len(accepted))
                done = subprocess.run([BIN / "client_call", one.state, "plan.submit", json.dumps({"plan": echo(key), "clientKey": key})],
                                      capture_output=True, text=True)
                if done.returncode == 0:
                    accepted[key] = json.loads(done.stdout)["planId"]
                else:
                    lost.append(done.stderr)

        def reached():
            return {shard_of(p) for p in list(accepted.values())}
        running = {}
        for shard in range(SHARDS):
            key = next("r%d" % i for i in range(1000) if shard_of_key("r%d" % i) == shard)
            running[shard] = one.submit(slow("w%d" % shard, 2), sessionId=key)
        threads = [threading.Thread(target=submit, args=(n,)) for n in range(2)]
        for t in threads:
            t.start()
        self.addCleanup(stop.set)
        until(lambda: reached() >= set(two.leads_shards()), 20, "the node that will be lost has acknowledged some")
        theirs = two.leads_shards()
        killed = time.monotonic()
        two.kill9()
        took = {}

        def all_led():
            for shard, leader in enumerate(self.leaders()):
                if leader == "one" and shard in theirs:
                    took.setdefault(shard, time.monotonic() - killed)
            return len(took) == len(theirs)
        until(all_led, 20, "one leads all\n" + one.log())
        until(lambda: all(s["here"] and s["control"] for s in one.map()), 20, "one serves all")
        served = time.monotonic() - killed
        until(lambda: reached() == set(range(SHARDS)), 20, "each shard has acknowledged some")
        stop.set()
        for t in threads:
            t.join()
        print("%d accepted, others %s; led %s s, all served %.2f s after the kill, with a lease of %g s" % (
            len(accepted), sorted(set(lost)), {s: round(t, 2) for s, t in took.items()}, served, LEASE), flush=True)
        self.assertLess(max(took.values()), LEASE + 1 + 4)  # a busy machine with sanitizers; LEASE + 1 on a quiet one
        for key, plan in accepted.items():
            self.assertEqual(one.wait_plan(plan, 60)["status"], "completed", key)
            self.assertEqual(one.submit(echo(key), clientKey=key), plan)
        for plan in running.values():
            self.assertEqual(one.wait_plan(plan, 60)["status"], "completed")
        # each history is whole, in each shard
        for s in one.map():
            found, seq = [], 1
            while True:
                page = one.ask_at(s["control"], "events.read", fromSeq=seq, limit=1000)
                found += page["events"]
                if page["nextSeq"] > page["lastSeq"]:
                    break
                seq = page["nextSeq"]
            self.assertEqual([e["seq"] for e in found], list(range(1, len(found) + 1)))
            self.assertEqual({shard_of(e["planId"]) for e in found if e.get("planId")} - {s["shard"]}, set())

    def test_shards_stay_where_they_are_when_the_server_is_lost(self):
        server, (one, two) = self.fleet()
        before = [(s["shard"], s["node"], s["control"]) for s in one.map()]
        led = self.leaders()

        def processes():
            return [json.loads((n.state / "shards" / str(s) / "endpoints.json").read_text())["pid"] for n in (one, two) for s in n.leads_shards()]
        pids = processes()
        plans = []
        for shard in range(SHARDS):
            key = next("r%d" % i for i in range(1000) if shard_of_key("r%d" % i) == shard)
            plans.append(one.submit(slow("w%d" % shard, 2), sessionId=key))
        until(lambda: len(one.executions()) + len(two.executions()) == SHARDS, 20, "each shard has a step that runs")
        for away in (0.5, 2 * LEASE):
            server.kill9()
            time.sleep(away)
            server.start()
            for n in range(SHARDS):  # accepted by each of them, where it was
                key = next("a%g.%d" % (away, i) for i in range(1000) if shard_of_key("a%g.%d" % (away, i)) == n)

                def accepted(key=key):
                    answer = one.ask_raw("plan.submit", plan=echo(key), clientKey=key)
                    return answer["ok"] and plans.append(answer["planId"]) is None
                until(accepted, 20, "shard %d takes plans again\n%s" % (n, one.log()))
            self.assertEqual(self.leaders(), led)
        for plan in plans:
            self.assertEqual(one.wait_plan(plan, 60)["status"], "completed")
        self.assertEqual(len(one.executions()) + len(two.executions()), SHARDS, "each step ran once")
        until(lambda: [(s["shard"], s["node"], s["control"]) for s in one.map()] == before, 10, "the map is as it was: %s" % one.map())
        until(lambda: processes() == pids, 10, "each node says so, and no process is another one: %s, before %s" % (processes(), pids))

    def test_a_list_names_the_shard_that_is_missing(self):
        server, (one, two) = self.fleet()
        plans = [one.submit(echo("n%d" % i), sessionId="s%d" % i) for i in range(12)]
        for plan in plans:
            one.wait_plan(plan)
        theirs = two.leads_shards()
        two.kill9()
        page = json.loads(self.list_plans(one, None))
        self.assertEqual(page["missingShards"], theirs)
        self.assertEqual({shard_of(p["planId"]) for p in page["plans"]} & set(theirs), set())
        said = one.cli_any("status")
        # Shard after shard is taken over a lease after the kill: on a busy machine before this.
        self.assertRegex(said.stderr, "shards that do not answer: (%s)[,;]" % "|".join(map(str, theirs)))
        until(lambda: json.loads(self.list_plans(one, None))["missingShards"] == [], 30, "nothing is missing any more")
        self.assertEqual(len(json.loads(self.list_plans(one, None))["plans"]), 12)

    def test_a_client_that_knows_one_seed_reaches_all_shards(self):
        server, (one, two) = self.fleet()
        plan_file = self.write_plan(two, "p.json", echo("here"))
        made = set()
        for i in range(12):
            said = one.cli_any("run", "--plan", plan_file, "--session", "s%d" % i)
            self.assertEqual((said.returncode, said.stdout), (0, "here\n"), said.stderr)
            made.add(re.search(r"plan (\S+)", said.stderr).group(1))
        self.assertEqual({shard_of(p) for p in made}, set(range(SHARDS)))
        for plan in made:
            self.assertEqual(two.cli("result", plan).strip(), "here")
        self.assertEqual(sum(p[:36] in one.cli("status") for p in made), 12)
        # events of all shards; the vector goes on where it ended
        first = two.cli_any("events", "--json")
        seen = [json.loads(line) for line in first.stdout.splitlines()]
        self.assertEqual({e["shard"] for e in seen}, set(range(SHARDS)))
        for shard in range(SHARDS):
            seqs = [e["seq"] for e in seen if e["shard"] == shard]
            self.assertEqual(seqs, list(range(1, len(seqs) + 1)))
        vector = re.search(r"--after '(\S+)'", first.stderr).group(1)
        plan = one.submit(echo("later"), sessionId="s1")
        one.wait_plan(plan)
        more = [json.loads(line) for line in two.cli_any("events", "--json", "--after", vector).stdout.splitlines()]
        self.assertEqual({e["planId"] for e in more}, {plan})
        self.assertEqual(one.cli_any("events", "--after", "5").returncode, 2)

    def test_a_client_in_python_reaches_all_shards_from_one_seed(self):
        server, (one, two) = self.fleet()
        with baton.Client(one.state) as client:
            self.assertEqual(client.shards(), SHARDS)
            plans = [client.submit(echo("p%d" % i), session="s%d" % i, key="k%d" % i) for i in range(12)]
            self.assertEqual({shard_of(p) for p in plans}, set(range(SHARDS)))
            self.assertEqual([client.submit(echo("p%d" % i), session="s%d" % i, key="k%d" % i) for i in range(12)], plans)
            for i, plan in enumerate(plans):
                self.assertEqual(client.result(plan)["aggregatedResult"].strip(), "p%d" % i)
            self.assertEqual([e["type"] for e in client.watch(plans[5])][-1], "plan_completed")
            pages = client.request_all("plan.list", limit=100)
            self.assertEqual(sorted(p["planId"] for page in pages for p in page["plans"]), sorted(plans))
            self.assertEqual(client.reviews(), [])
            with self.assertRaisesRegex(baton.Error, "no one order of events"):
                list(client.events())
            theirs = two.leads_shards()
            two.kill9()
            self.assertEqual([page["shard"] for page in client.request_all("plan.list") if "missing" in page], theirs)
            for i, plan in enumerate(plans):  # it waits for the next leader
                self.assertEqual(client.get(plan)["status"], "completed")

    def test_a_shard_moves_and_a_node_drains(self):
        server, (one, two) = self.fleet()
        shard = one.leads_shards()[0]
        other = one.leads_shards()[1]
        plan = one.submit(echo("before"), sessionId=next("s%d" % i for i in range(1000) if shard_of_key("s%d" % i) == shard))
        one.wait_plan(plan)
        began = time.monotonic()
        self.fleet_verb("move", shard, "two")
        until(lambda: self.leaders()[shard] == "two", 10, "two leads it")
        print("moved within %.2f s" % (time.monotonic() - began), flush=True)
        until(lambda: shard in two.leads_shards() and two.map()[shard]["control"], 10, "two serves it")
        self.assertEqual(two.wait_plan(plan)["status"], "completed")
        # 3 and 1: the node with too many gives one back
        until(lambda: sorted(self.leaders()) == ["one", "one", "two", "two"], 30, "they are shared out again\n" + two.log())
        self.fleet_verb("drain", "one")
        until(lambda: self.leaders() == ["two"] * SHARDS, 60, "two has all")
        self.assertIn("one: drains, leads 0", self.fleet_verb("status"))
        self.assertEqual(two.wait_plan(plan)["status"], "completed")
        self.assertIn("no node \"three\" that lives", self.fleet_verb("move", 0, "three", code=7))
        one.stop()
        one.start(agents=False)  # a drain ends with the node
        until(lambda: sorted(self.leaders()) == ["one", "one", "two", "two"], 60, "they are shared out again")
        self.assertNotEqual(other, shard)

    def test_an_agent_serves_all_shards_with_one_capacity(self):
        server, (node,) = self.fleet(names=("one",), config="")
        commands = [{"id": "wait", "argv": [str(node.work / "wait.sh"), "{name}"], "description": "Takes a while.", "output": "text"}]
        (node.work / "wait.sh").write_text(
            "#!/bin/sh\nmkdir %s/at/$1 && ls %s/at | wc -l >>%s/most && sleep 0.5 && rmdir %s/at/$1\n" % ((node.work,) * 4))
        (node.work / "wait.sh").chmod(0o755)
        (node.work / "at").mkdir()
        with open(node.work / "agent.log", "ab") as log:
            agent = subprocess.Popen([BIN / "baton-agent-exec", "--state", node.state, "--shards", str(SHARDS), "--capacity", "2"], stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=log, env={**os.environ, "BATON_SETTINGS": json.dumps({"commands": commands})})
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)
        until(lambda: (node.work / "agent.log").read_text().count("agent.registered") == SHARDS, 20, "it is at every shard")
        ids = set()
        for s in node.map():
            agents = node.ask_at(s["control"], "agents.list")["agents"]
            self.assertEqual([a["state"] for a in agents], ["up"])
            ids |= {i["instanceId"] for i in agents[0]["instances"]}
        self.assertEqual(len(ids), 1)  # one instance, with a session at each
        plans = []
        for n in range(16):
            steps = [{"id": "w", "agentId": "exec", "skill": "wait", "task": "Wait for a moment", "parameters": {"name": "n%d" % n}}]
            plans.append(node.submit({"steps": steps}, sessionId="s%d" % n))
        self.assertEqual({shard_of(p) for p in plans}, set(range(SHARDS)))
        for plan in plans:
            view = node.wait_plan(plan, 60)
            self.assertEqual(view["status"], "completed")
            self.assertEqual(view["steps"][0]["attempts"], 1)
        self.assertEqual(max(map(int, (node.work / "most").read_text().split())), 2)  # never more than its places
        agent.terminate()
        self.assertEqual(agent.wait(20), 0)

    def test_clients_and_agents_of_other_hosts_by_tls(self):
        keys = pathlib.Path(tempfile.mkdtemp(prefix="baton-keys-"))
        self.addCleanup(shutil.rmtree, keys, ignore_errors=True)
        for args in (["init"], ["issue", "hub", "--server", "--host", "127.0.0.1", "--to", keys], ["issue", "away", "--client", "--to", keys]):
            subprocess.run([BIN / "baton", "certs", *args, "--dir", keys / "ca"], check=True, capture_output=True)
        server = pg.Server(self)
        self.url = server.url
        self.fleet_verb("init", "--shards", 2)
        nodes = []
        for name in ("one", "two"):
            d = Member(self, server, name, config="")
            d.port = ports_in_a_row(2)
            d.config.write_text(d.config.read_text().replace("listen: {", "auth: required\nlisten: {remote: 'tls+tcp://127.0.0.1:%d', cert: '%s', ca: '%s', " % (
                d.port, keys / "hub.pem", keys / "ca.pem")))
            nodes.append(d)
        one, two = nodes
        one.cli("credential", "add", "op", "--role", "admin")
        one.cli("credential", "add", "away", "--role", "agent", "--agents", "*")
        shutil.copytree(one.state / "credentials", two.state / "credentials")
        two.state.chmod(0o700)
        for d in nodes:
            d.credential = ("op", d.state / "credentials/op")
            d.start(agents=False)
        until(lambda: sorted(self.leaders()) == ["one", "two"], 40, "each has its share")
        commands = [{"id": "echo", "argv": ["echo", "{text}"], "description": "Says a text.", "output": "text"}]
        way = ["--ca", keys / "ca.pem", "--cert", keys / "away.pem"]
        both = ",".join("tls+tcp://127.0.0.1:%d" % d.port for d in nodes)  # of shard 0
        with open(one.work / "agent.log", "ab") as log:
            agent = subprocess.Popen([*map(str, [BIN / "baton-agent-exec", "--connect", both, "--shards", 2, "--credential", one.state / "credentials/away", *way])],
                                     stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, "BATON_SETTINGS": json.dumps({"commands": commands})})
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)
        until(lambda: (one.work / "agent.log").read_text().count("agent.registered") == 2, 20, "it is at both\n" + (one.work / "agent.log").read_text())
        plan_file = self.write_plan(one, "p.json", echo("here"))

        def baton(*args):
            done = subprocess.run([*map(str, [BIN / "baton", *args, "--connect", both, "--credential", one.state / "credentials/op", *way])],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done
        made = set()
        for i in range(8):
            said = baton("run", "--plan", plan_file, "--session", "s%d" % i)
            self.assertEqual(said.stdout, "here\n")
            made.add(re.search(r"plan (\S+)", said.stderr).group(1))
        self.assertEqual({shard_of(p) for p in made}, {0, 1})
        listed = baton("status").stdout
        self.assertTrue(all(p in listed for p in made), listed)
        two.kill9()
        until(lambda: self.leaders() == ["one", "one"], 20, "one leads both")
        until(lambda: (one.work / "agent.log").read_text().count("agent.registered") == 3, 30, "the agent is back\n" + (one.work / "agent.log").read_text())
        for i in range(8):
            self.assertEqual(baton("run", "--plan", plan_file, "--session", "t%d" % i).stdout, "here\n")

    def test_an_import_goes_to_the_shards_of_its_ids(self):
        server, (one, two) = self.fleet()
        plans = [one.submit(echo("p%d" % i), clientKey="k%d" % i) for i in range(8)]
        in_session = one.submit(echo("x"), sessionId="talk")
        for plan in [*plans, in_session]:
            one.wait_plan(plan)
        self.assertEqual({shard_of(p) for p in plans}, set(range(SHARDS)))
        exported = one.work / "all"
        exported.write_text(one.cli("export", *plans, in_session))
        for node in (one, two):
            node.stop()
        other, (three, four) = self.fleet(names=("three", "four"))
        said = four.cli_any("import", exported)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertIn("9 plans", said.stdout)
        for i, plan in enumerate(plans):
            self.assertEqual(three.cli("result", plan).strip(), "p%d" % i)
            self.assertEqual(four.submit(echo("p%d" % i), clientKey="k%d" % i), plan)  # its key is there, too
        again = four.cli_any("import", exported)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("0 plans", again.stdout)
        for s in three.map():
            theirs = {p["planId"] for p in three.ask_at(s["control"], "plan.list", limit=100)["plans"]}
            self.assertEqual({shard_of(p) for p in theirs} - {s["shard"]}, set())
        # an id whose shard is not there, and lines that are of another plan
        line = exported.read_text().splitlines()[1]
        odd = plans[0][:19] + "BFF" + plans[0][22:]
        self.assertGreaterEqual(shard_of(odd), SHARDS)
        refused = three.ask_raw("journal.import", planId=odd, lines=line.replace(plans[0], odd) + "\n")
        self.assertEqual(refused["error"]["code"], "INVALID")
        self.assertIn("this fleet has 4", refused["error"]["message"])
        refused = three.ask_raw("journal.import", planId=plans[1], lines=line + "\n")
        self.assertIn("the first one is not of", refused["error"]["message"])

    def test_what_several_shards_do_not_do(self):
        server, (one,) = self.fleet(names=("one",))
        self.assertIn("4 shards", self.fleet_verb("init", "--shards", "8", code=2))
        self.assertIn("expected a number from 1 to 64", self.fleet_verb("init", "--shards", "65", code=2))
        said = one.ask_raw("journal.import", lines="x")
        self.assertEqual(said["error"]["code"], "INVALID", said)
        self.assertIn("planId, sessionId or name", said["error"]["message"])
        self.assertIn("each has a directory of its own", one.cli_any("import", "x", "--artifacts", one.work / "files").stderr)
        done = subprocess.run([BIN / "batond", "--state", one.work / "none", "--shard", "1/4"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no fleet", done.stderr)


if __name__ == "__main__":
    main()
