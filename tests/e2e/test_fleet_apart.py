"""Two nodes of a fleet on two hosts (network namespaces), and the lines between them, their server and their agents are cut."""
import json
import subprocess
import sys
import threading
import time
import unittest

import hosts
import test_fleet
from harness import BIN, HERE, ROOT, BatonTest, main, until
from test_fleet import LEASE, echo

sys.path.insert(0, str(ROOT / "agents" / "python"))
import baton  # noqa: E402  (the path is set just above)

SERVER = "192.0.2.3"  # an address of this host that only the server has
WHY_NOT = hosts.move()


def setUpModule():
    test_fleet.setUpModule()
    if WHY_NOT:
        raise unittest.SkipTest("SKIPPED: " + WHY_NOT)


class Apart(test_fleet.Elsewhere, BatonTest):
    """The first node is on the other host; the second one, the server, the agent and this test are on this one."""

    def setUp(self):
        self.other = hosts.Other()
        self.addCleanup(self.other.end)
        self.reach(True)
        route = self.other.run("ip", "route", "add", SERVER, "via", hosts.HERE)
        self.assertEqual(route.returncode, 0, route.stderr)
        self.server, self.one, self.two = self.elsewhere((hosts.THERE, hosts.HERE), (self.other.inside(), ()), SERVER)
        commands = [{"id": "wait", "argv": [str(HERE / "slow.sh"), str(self.one.work / "executions"), "{name}", "{seconds}"],
                     "description": "Takes a while.", "output": "text", "effects": "unsafe"},
                    {"id": "echo", "argv": ["echo", "{text}"], "description": "Says a text.", "output": "text", "effects": "idempotent"}]
        self.agent(self.one, [BIN / "baton-agent-exec", "--capacity", "2"], "exec", {"commands": commands})
        until(lambda: '"up"' in self.client("agents", "--json").stdout, 20, "the agent is up\n" + self.one.log())

    def reach(self, there):
        """Whether the server has its address, which only the other host uses."""
        subprocess.run(["ip", "addr", "add" if there else "del", SERVER + "/32", "dev", "lo"], check=not there, capture_output=True)

    def client(self, *args):
        return subprocess.run([*map(str, [BIN / "baton", *args, *self.one.way, "--credential", self.one.credential[1]])], capture_output=True, text=True)

    def submit(self, plan):
        done = self.client("run", "--plan", self.write_plan(self.one, "plan", plan), "--detach")
        self.assertEqual(done.returncode, 0, done.stderr + self.one.log())
        return done.stdout.strip()

    def two_has_the_agent(self):
        answer = self.two.ask_raw("agents.list")
        return any(a["state"] == "up" for a in answer.get("agents", []))

    def begin(self):
        """A plan that is done, and one whose step runs once, however long nobody hears of it."""
        done = self.submit(echo("before"))
        until(lambda: '"completed"' in self.client("status", done, "--json").stdout, 20, "it is done")
        runs = self.submit({"steps": [
            {"id": "wait", "agentId": "exec", "skill": "wait", "task": "Wait, and only once", "parameters": {"name": "a", "seconds": "7"}},
            {"id": "then", "agentId": "exec", "skill": "wait", "task": "Wait again", "dependsOn": ["wait"], "parameters": {"name": "b", "seconds": "0"}}]})
        until(self.one.executions, 20, "the step runs")
        return done, runs

    def end(self, done, runs, epoch):
        """What the node that leads now has, and that the first one did nothing more."""
        view = self.two.wait_plan(runs, 60)
        self.assertEqual(view["status"], "completed", view)
        self.assertEqual(self.one.executions(), ["a", "b"])  # each once
        self.assertEqual(self.two.ask("plan.get", planId=done)["status"], "completed")
        seqs = [e["seq"] for e in self.two.events()]
        self.assertEqual(seqs, list(range(1, len(seqs) + 1)))
        self.assertEqual(int(self.server.sql("SELECT epoch FROM baton.shards")), epoch)
        self.two.check_event_order()

    def test_a_host_that_is_cut_off_does_nothing_more(self):
        done, runs = self.begin()
        self.other.line("down")
        cut = time.monotonic()
        self.two.wait_to_lead(LEASE + 7)
        leads = time.monotonic() - cut
        until(self.two_has_the_agent, 20, "the agent is back\n" + self.two.log())
        print("leads %.2f s after the cut, the agent is back after %.2f s, with a lease of %g s" % (leads, time.monotonic() - cut, LEASE), flush=True)
        late = self.two.submit(echo("after"))
        self.assertEqual(self.two.wait_plan(late)["status"], "completed")
        self.assertEqual(self.one.process.poll(), None)  # it waits, and does nothing
        self.other.line("up")
        self.assertEqual(self.one.process.wait(60), 75, self.one.log())
        self.assertIn("another daemon has taken this journal over", self.one.log())
        self.end(done, runs, 2)

    def test_a_node_that_is_cut_off_from_the_server_alone_sends_its_agents_away(self):
        done, runs = self.begin()
        self.reach(False)
        cut = time.monotonic()
        self.two.wait_to_lead(LEASE + 7)
        until(self.two_has_the_agent, 30, "the agent is back\n" + self.two.log())
        print("the agent has found the new leader %.2f s after the cut" % (time.monotonic() - cut), flush=True)
        late = self.two.submit(echo("after"))
        self.assertEqual(self.two.wait_plan(late)["status"], "completed")
        self.assertEqual(self.one.process.poll(), None)
        self.reach(True)
        self.assertEqual(self.one.process.wait(60), 75, self.one.log())
        self.end(done, runs, 2)

    def test_clients_of_a_leader_that_is_cut_off_from_the_server_turn_to_the_next(self):
        way = dict(zip(self.one.way[::2], map(str, self.one.way[1::2])))
        remote = baton.Remote(way["--connect"], ca=way["--ca"], cert=way["--cert"], credential=self.one.credential[1])
        python = baton.Client(remote=remote, patience=60)
        self.addCleanup(python.close)
        follows = subprocess.Popen([*map(str, [BIN / "baton", "events", "--follow", "--json", *self.one.way, "--credential", self.one.credential[1]])],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(follows.wait)
        self.addCleanup(follows.kill)
        self.submit(echo("before"))
        self.assertEqual(len(python.request("plan.list")["plans"]), 1)
        heard = []

        def listen():
            heard.extend((time.monotonic(), json.loads(line)) for line in follows.stdout)
        threading.Thread(target=listen, daemon=True).start()
        until(lambda: any(e["type"] == "plan_completed" for _, e in heard), 20, "it follows")
        self.reach(False)
        cut, took = time.monotonic(), {}

        def once(name, ask):
            while name not in took:
                if ask():
                    took[name] = time.monotonic() - cut
                time.sleep(0.1)
        threads = [threading.Thread(target=once, args=a, daemon=True) for a in (
            ("baton", lambda: self.client("status").returncode == 0), ("baton.py", lambda: python.request("plan.list")),
            ("leads", self.two.leads))]
        time.sleep(0.5)  # the leader has seen it: it answers that its storage is away
        for t in threads:
            t.start()
        for t in threads:
            t.join(40)
        plan = self.two.submit_soon(echo("after"))
        until(lambda: any(e.get("planId") == plan for _, e in heard), 20, "who follows hears of it\n" + self.two.log())
        first = next(t for t, e in heard if t > cut)
        took["events --follow"] = first - cut
        print("answers of the next leader after the cut, with a lease of %g s: %s" % (
            LEASE, ", ".join("%s %.2f s" % one for one in sorted(took.items()))), flush=True)
        self.assertEqual(self.one.process.poll(), None)  # it waits, and does nothing
        for name, seconds in took.items():
            self.assertLess(seconds, max(took["leads"], LEASE) + 2 + 4, name)  # a busy machine with sanitizers
        seqs = [e["seq"] for _, e in heard]
        self.assertEqual(seqs, list(range(1, len(seqs) + 1)))
        self.reach(True)
        self.assertEqual(self.one.process.wait(60), 75, self.one.log())

    def test_a_cut_that_is_shorter_than_the_lease_moves_nothing(self):
        done, runs = self.begin()
        self.other.line("down")
        time.sleep(1)
        self.other.line("up")
        until(lambda: self.client("status", runs, "--json").returncode == 0, 20, "it answers")
        until(lambda: '"completed"' in self.client("status", runs, "--json").stdout, 40, "it is done\n" + self.one.log())
        self.assertEqual(self.one.executions(), ["a", "b"])
        self.assertEqual((self.one.process.poll(), self.two.leads()), (None, False))

    def test_what_an_agent_sends_to_a_leader_that_is_away_for_long_is_taken_once(self):
        """It is put by after some seconds, so that the agent may look for another leader; here there is none."""
        runs = self.begin()[1]
        self.two.stop()
        self.reach(False)
        time.sleep(9)
        self.reach(True)
        until(lambda: '"completed"' in self.client("status", runs, "--json").stdout, 60, "it is done\n" + self.one.log())
        self.assertEqual(self.one.process.poll(), None)
        self.assertEqual(self.one.executions(), ["a", "b"])
        self.assertNotIn("auth.refused", self.one.log())
        self.assertNotIn("another request", (self.one.work / "exec.log").read_text())

    def test_agents_and_clients_come_over_a_line_that_is_slower_than_their_first_patience(self):
        done, runs = self.begin()
        self.other.line("delay", 150)  # 300 ms there and back; a connection by TLS takes four of them
        until(lambda: '"completed"' in self.client("status", done, "--json").stdout, 20, "a client is answered")
        commands = [{"id": "echo", "argv": ["echo", "{text}"], "description": "Says a text.", "output": "text", "effects": "idempotent"}]
        self.agent(self.one, [BIN / "baton-agent-exec", "--agent-id", "late"], "late", {"commands": commands})
        until(lambda: "agent.registered" in (self.one.work / "late.log").read_text(), 40, "it comes\n" + self.one.log())


if __name__ == "__main__":
    main()
