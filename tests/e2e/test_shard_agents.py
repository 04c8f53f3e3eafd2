"""Agents of a fleet of several shards: one process serves all of them with one capacity, whoever asks; a node starts each once. What the
steps write on disk (work.py) says how often each ran, and how many at once."""
import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pg
from harness import BIN, ROOT, main, until
from test_fleet import LEASE
from test_shards import SHARDS, Several, shard_of_key

PLACES = 2
HERE = pathlib.Path(__file__).parent
CONFIG = """agents:
  - agentId: work
    command: ["${BATON_BIN}/baton-agent-exec"]
    capacity: %d
    settings:
      commands:
        - {id: work, argv: ["%s", "%%(here)s/work.py", "%%(work)s/steps", "{name}", "{seconds}"], description: "Takes a while.", output: text, effects: idempotent}
""" % (PLACES, sys.executable)
PYTHON = """
import pathlib, sys
sys.path[:0] = [%r, %r]
import baton, work
agent = baton.Agent("work", capacity=%d)

@agent.skill(id="work", effects="idempotent")
def work_(name: str, seconds: str) -> str:
    "Takes a while."
    work.work(agent.settings["log"], name, seconds, agent.instance_id)
    return name

agent.run()
""" % (str(ROOT / "agents" / "python"), str(HERE), PLACES)
NODE = """
import { Agent } from %r;
import { execFile } from "node:child_process";
const agent = new Agent("work", { capacity: %d });
agent.skill("work", { description: "Takes a while.", effects: "idempotent", properties: { name: { type: "string" }, seconds: { type: "string" } } },
  ({ name, seconds }) => new Promise((resolve, reject) => execFile(%r, [%r, agent.settings.log, name, seconds], { env: { ...process.env, BATON_INSTANCE_ID: agent.instanceId } },
    (e) => (e ? reject(e) : resolve(name)))));
await agent.run();
""" % (str(ROOT / "agents" / "node" / "baton.mjs"), PLACES, sys.executable, str(HERE / "work.py"))


def setUpModule():
    pg.need()


def step(name, seconds, **more):
    return {"steps": [{"id": "w", "agentId": "work", "skill": "work", "task": "Work for a while", "parameters": {"name": name, "seconds": str(seconds)}, **more}]}


def session_of(shard, n=0):
    return [k for k in ("s%d" % i for i in range(1000)) if shard_of_key(k) == shard][n]


class ShardAgents(Several):
    def steps(self, *nodes):
        """What all nodes' agents wrote: (time, what, name, where)."""
        rows = []
        for node in nodes:
            path = node.work / "steps"
            rows += [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return sorted(((int(at), what, name, where) for at, what, name, where in rows))

    def began(self, *nodes):
        return collections.Counter(name for _, what, name, _ in self.steps(*nodes) if what == "begin")

    def most_at_once(self, *nodes):
        """Of each instance."""
        now, most = collections.Counter(), collections.Counter()
        for _, what, _, where in self.steps(*nodes):
            now[where] += 1 if what == "begin" else -1
            most[where] = max(most[where], now[where])
        return most

    def submit(self, node, count, seconds, tag="n", shards=range(SHARDS), **fields):
        """`count` plans at each shard: their ids by name."""
        return {"%s%d.%d" % (tag, shard, n): node.submit(step("%s%d.%d" % (tag, shard, n), seconds), sessionId=session_of(shard, n), **fields)
                for n in range(count) for shard in shards}

    def completes(self, node, plans, attempts=1):
        for name, plan in plans.items():
            view = node.wait_plan(plan, 60)
            self.assertEqual((name, view["status"]), (name, "completed"), view)
            if attempts is not None:
                self.assertEqual((name, view["steps"][0]["attempts"]), (name, attempts), view)

    def instances(self, node):
        """{instance id: shards that have it}, of the shards that the node leads."""
        found = collections.defaultdict(set)
        for s in node.map():
            if s["here"] and s["control"]:
                try:
                    agents = node.ask_at(s["control"], "agents.list")["agents"]
                except (OSError, EOFError):
                    continue  # it has just ended, and the map does not know yet
                for agent in agents:
                    for i in agent.get("instances", []):
                        if i["health"] == "healthy" and agent["state"] == "up":
                            found[i["instanceId"]].add(s["shard"])
        return found

    def pids(self, node):
        """Processes of agents that the node started; not those that serve one shard each."""
        found = {}
        for e in os.listdir("/proc"):
            try:
                environ = pathlib.Path("/proc", e, "environ").read_bytes().split(b"\0") if e.isdigit() else []
                argv = pathlib.Path("/proc", e, "cmdline").read_bytes().split(b"\0") if environ else [b""]
                parent = int(pathlib.Path("/proc", e, "stat").read_text().rpartition(")")[2].split()[1]) if environ else 0
            except OSError:
                continue
            if b"BATON_STATE=" + os.fsencode(node.state) in environ and argv[0].endswith(b"baton-agent-exec"):
                found[int(e)] = parent
        return sorted(pid for pid, parent in found.items() if parent not in found)

    def serves_all(self, node, shards=None):
        shards = set(node.leads_shards()) if shards is None else shards
        until(lambda: [s for s in self.instances(node).values() if shards <= s], 20, "an agent serves %s\n%s" % (shards, node.log()))

    def keeper(self, node):
        """The shard that starts the agents of the node, and the pid of its process. The list of locks is not read at one moment, and an
        inode's number is that of others, too."""
        inode = os.stat(node.state / "agents.lock").st_ino

        def found():
            held = [line.split() for line in pathlib.Path("/proc/locks").read_text().splitlines()]
            pids = {int(row[4]) for row in held if row[1] == "FLOCK" and int(row[5].split(":")[2]) == inode}
            for shard in range(SHARDS):
                path = node.state / "shards" / str(shard) / "endpoints.json"
                if path.exists() and json.loads(path.read_text())["pid"] in pids:
                    return shard, json.loads(path.read_text())["pid"]
            return None
        return until(found, 20, "a shard keeps the agents")

    def test_a_node_starts_each_agent_once_and_it_serves_all_shards_with_one_capacity(self):
        server, (node,) = self.fleet(names=("one",), config=CONFIG)
        self.serves_all(node)
        self.assertEqual(len(self.pids(node)), 1, node.log())
        self.assertEqual(len(self.instances(node)), 1)
        plans = self.submit(node, 4, 1)
        self.completes(node, plans)
        self.assertEqual(set(self.began(node).values()), {1})
        self.assertEqual(list(self.most_at_once(node).values()), [PLACES])
        said = [node.ask_at(s["control"], "agents.get", agentId="work") for s in node.map()]
        self.assertEqual({a["agent"]["breaker"]["state"] if "agent" in a else a["breaker"]["state"] for a in said}, {"closed"}, said)
        pids = self.pids(node)
        self.assertEqual(node.stop(), 0)
        until(lambda: not any(pathlib.Path("/proc/%d" % p).exists() for p in pids), 5, "its agents end with it")

    def test_a_shard_moves_while_steps_run_and_no_agent_is_restarted(self):
        server, (one, two) = self.fleet(config=CONFIG)
        for node in (one, two):
            self.serves_all(node)
        before = self.pids(one), self.pids(two)
        moved, _ = self.keeper(one)  # another shard of `one` has its agents then
        plans = self.submit(one, 2, 4, shards=one.leads_shards())
        until(lambda: sum(self.began(one, two).values()) >= PLACES, 20, "steps run")
        running = [name for name in self.began(one, two)]
        self.fleet_verb("move", moved, "two")
        until(lambda: moved in two.leads_shards(), 20, "two leads it")
        self.completes(one, plans)
        self.assertEqual({n: c for n, c in self.began(one, two).items() if c != 1}, {}, running)
        self.assertLessEqual(max(self.most_at_once(one, two).values()), PLACES)
        self.assertEqual((self.pids(one), self.pids(two)), before)
        self.completes(one, self.submit(one, 1, 0.1, tag="later"))

    def test_the_shard_that_keeps_the_agents_is_killed_and_another_one_has_them(self):
        server, (node,) = self.fleet(names=("one",), config=CONFIG)
        self.serves_all(node)
        before = self.pids(node)
        shard, pid = self.keeper(node)
        plans = self.submit(node, 1, 6)
        until(lambda: len(self.began(node)) == PLACES, 20, "steps run")
        os.kill(pid, signal.SIGKILL)
        until(lambda: self.keeper(node)[0] != shard, 5, "another shard has the agents")
        self.completes(node, plans, attempts=None)
        self.assertEqual({n: c for n, c in self.began(node).items() if c != 1}, {})
        self.assertEqual(list(self.most_at_once(node).values()), [PLACES])
        self.assertEqual(self.pids(node), before)
        # it is this one's now: killed, it is started again
        os.kill(before[0], signal.SIGKILL)
        until(lambda: self.pids(node) not in ([], before), 20, "its new keeper starts it again\n" + node.log())
        self.serves_all(node)
        self.completes(node, self.submit(node, 1, 0.1, tag="later"), attempts=None)

    def test_an_agent_is_killed_while_steps_run(self):
        server, (node,) = self.fleet(names=("one",), config=CONFIG)
        self.serves_all(node)
        plans = self.submit(node, 2, 1)
        until(lambda: len(self.began(node)) == PLACES, 20, "steps run")
        cut = set(self.began(node))
        os.kill(self.pids(node)[0], signal.SIGKILL)
        self.completes(node, plans, attempts=None)
        again = {name for name, n in self.began(node).items() if n > 1}
        self.assertLessEqual(again, cut)  # only what ran then
        self.assertLessEqual(max(self.began(node).values()), 2)

    def test_a_node_is_killed_while_steps_run(self):
        server, (one, two) = self.fleet(config=CONFIG)
        for node in (one, two):
            self.serves_all(node)
        pids = self.pids(two)
        plans = self.submit(one, 2, 2)
        until(lambda: len(self.began(one, two)) >= 2 * PLACES, 20, "steps run")
        cut = set(self.began(two))
        two.kill9()
        until(lambda: not any(pathlib.Path("/proc/%d" % p).exists() for p in pids), 10, "its agents end")
        self.completes(one, plans, attempts=None)
        self.assertLessEqual({name for name, n in self.began(one, two).items() if n > 1}, cut)
        self.assertLessEqual(max(self.most_at_once(one).values()), PLACES)

    def test_an_agent_that_cannot_read_the_state_directory_serves_all_shards(self):
        """It is handed the address of each shard, which does not change with who starts it."""
        self.before = lambda node: node.config.write_text(node.config.read_text().replace("tcp://127.0.0.1:0", "tcp://127.0.0.1:auto"))
        server, (node,) = self.fleet(names=("one",), config="agents:\n  - {agentId: calc, command: ['${BATON_BIN}/baton-agent-calc'], paths: {}, network: none%s}\n"
                                     % (", user: nobody" if os.getuid() == 0 else ""))
        self.serves_all(node)
        ids = set(self.instances(node))
        self.assertEqual(len(ids), 1)
        shard, pid = self.keeper(node)
        os.kill(pid, signal.SIGKILL)
        until(lambda: self.keeper(node)[0] != shard, 5, "another shard has the agents")
        until(lambda: len(node.leads_shards()) == SHARDS, 20, "all are led")
        self.serves_all(node)
        self.assertEqual(set(self.instances(node)), ids)  # adopted, not started again
        plan = node.submit({"steps": [{"id": "a", "agentId": "calc", "skill": "evaluate", "task": "6*7", "parameters": {"expression": "6*7"}}]},
                           sessionId=session_of(shard))
        self.assertEqual(node.wait_plan(plan)["status"], "completed")

    def test_each_shard_takes_the_credential_of_a_process_where_the_token_opens_nothing(self):
        def before(node):
            node.config.write_text(node.config.read_text().replace("listen: {", "auth: required\nlisten: {"))
            node.state.mkdir(mode=0o700)
            node.cli("credential", "add", "op", "--role", "admin")
            node.credential = ("op", node.state / "credentials/op")
        self.before = before
        server, (node,) = self.fleet(names=("one",), config=CONFIG)
        self.serves_all(node)
        self.completes(node, self.submit(node, 1, 0.1))
        before, ids = self.pids(node), set(self.instances(node))
        os.kill(before[0], signal.SIGKILL)
        until(lambda: self.pids(node) not in ([], before), 20, "it is started again")
        until(lambda: not ids & set(self.instances(node)), 20, "the one that was killed is gone")
        self.serves_all(node)
        self.completes(node, self.submit(node, 1, 0.1, tag="later"))
        self.assertNotIn("UNAUTHORIZED", node.log())
        self.assertEqual(len((node.state / "agents.list").read_text().splitlines()), 1)

    def by_hand(self, node, argv, **env):
        with open(node.work / "agent.log", "ab") as log:
            agent = subprocess.Popen([*map(str, argv), "--state", str(node.state)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     env={**os.environ, "BATON_SETTINGS": json.dumps({"log": str(node.work / "steps")}), **env})
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)
        return agent

    def one_process_serves_all(self, argv, write):
        server, (one, two) = self.fleet(config="")
        write(one.work)
        agent = self.by_hand(one, [a.format(work=one.work) for a in argv], BATON_SHARDS=str(SHARDS))
        log = one.work / "agent.log"
        until(lambda: all(list(self.instances(n).values()) == [set(n.leads_shards())] for n in (one, two)), 20,
              "it is at every shard, of both nodes\n" + log.read_text())
        self.assertEqual(len({**self.instances(one), **self.instances(two)}), 1)
        plans = self.submit(one, 3, 0.3)
        self.completes(one, plans)
        self.assertEqual(set(self.began(one).values()), {1})
        # a shard moves while its step runs: its next leader gets the result
        moved = one.leads_shards()[0]
        plans = self.submit(one, 2, 4, tag="m", shards=[moved])
        until(lambda: sum(n.startswith("m") for n in self.began(one)) == PLACES, 20, "they run")
        self.fleet_verb("move", moved, "two")
        until(lambda: moved in two.leads_shards(), 20, "two leads it")
        self.completes(one, plans)
        self.assertEqual(set(self.began(one).values()), {1})
        self.completes(one, self.submit(one, 1, 0.1, tag="later"))
        agent.terminate()
        self.assertEqual(agent.wait(20), 0, log.read_text())
        self.assertEqual(list(self.most_at_once(one).values()), [PLACES])

    def test_an_agent_in_python_serves_all_shards_in_one_process(self):
        self.one_process_serves_all([sys.executable, "{work}/agent.py"], lambda at: (at / "agent.py").write_text(PYTHON))

    def test_an_agent_in_node_serves_all_shards_in_one_process(self):
        if shutil.which("node") is None:
            self.skipTest("no node")
        self.one_process_serves_all(["node", "{work}/agent.mjs"], lambda at: (at / "agent.mjs").write_text(NODE))


if __name__ == "__main__":
    main()
