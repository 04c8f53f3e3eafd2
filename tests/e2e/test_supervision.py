"""Supervision on real processes: groups, reloads, orders of operators, scaling, hung agents; and after each of them no zombie, no
orphan, as many descriptors and threads as before."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from harness import BIN, BatonTest, alive, children_of, main, sanitized, until

FAST = "policy: {heartbeatMs: 200, leaseMs: 800, shutdownGraceMs: 2000, drainMs: 10000, restart: {intensity: 4, periodMs: 60000, " \
       "backoffMinMs: 10, backoffMaxMs: 50}}\n"
CALC = '  - {agentId: %s, command: ["${BATON_BIN}/baton-agent-calc", "--agent-id", "%s"]%s}\n'
WAIT = '  - {agentId: slow, command: ["${BATON_BIN}/baton-agent-exec"], settings: {commands: [{id: wait, argv: ["%%(here)s/slow.sh", ' \
       '"%%(work)s/executions", "{name}", "{seconds}"], description: "Takes a while.", output: text, effects: idempotent}]}%s}\n'


def calcs(*ids, more=""):
    return "".join(CALC % (i, i, more) for i in ids)


def zombies(pid):
    found = []
    for child in children_of(pid):
        try:
            with open("/proc/%d/stat" % child) as f:
                found += [child] if f.read().rsplit(")", 1)[1].split()[0] == "Z" else []
        except OSError:
            pass
    return found


def counts(pid):
    return len(os.listdir("/proc/%d/fd" % pid)), len(os.listdir("/proc/%d/task" % pid))


def opened(pid):
    found = []
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            found.append(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except OSError:
            pass
    return sorted(found)


class Supervised(BatonTest):
    def up(self, config, wait=True):
        self.d = self.daemon(config=FAST + config, agents=wait)
        return self.d

    def agent(self, agent_id):
        return self.d.ask("agents.get", agentId=agent_id)

    def processes(self, *ids):
        found = {}
        for agent in self.d.ask("agents.list")["agents"]:
            if not ids or agent["card"]["agentId"] in ids:
                found.update({p["name"]: p for p in agent.get("processes", [])})
        return found

    def pids(self, *ids):
        return {name: p.get("pid", 0) for name, p in self.processes(*ids).items()}

    def all_up(self, n, *ids):
        def settled():
            found = self.processes(*ids)
            return len(found) == n and all(p["state"] == "up" and not p.get("doing") and not p.get("stale") for p in found.values())
        until(settled, 20, "%d processes up:\n%s" % (n, self.d.log()))
        return self.pids(*ids)

    def crash(self, name):
        os.kill(self.pids()[name], signal.SIGKILL)

    def rewrite(self, config):
        text = self.d.config.read_text()
        head = text[:text.index("policy:")]
        self.d.config.write_text(head + FAST + config % {"work": self.d.work, "here": pathlib.Path(__file__).resolve().parent})

    def spawner(self):
        (pid,) = [p for p in children_of(self.d.process.pid) if b"--spawner" in pathlib.Path("/proc/%d/cmdline" % p).read_bytes()]
        return pid

    def started_order(self):
        """The agents in the order in which they registered."""
        return [e["agentId"] for e in self.d.events() if e["type"] == "agent_registered"]


class Groups(Supervised):
    GROUP = "groups: [{name: g, strategy: %s, intensity: 3, periodMs: 60000}]\nagents:\n" + calcs("a", "b", "c", more=", group: g") + calcs("free")

    def test_they_start_in_order_when_the_one_before_is_ready(self):
        self.up(self.GROUP % "one_for_one")
        self.assertEqual([i for i in self.started_order() if i != "free"], ["a", "b", "c"])
        self.assertEqual(self.processes()["b#1"]["group"], "g")

    def test_one_for_one_restarts_the_one_that_crashed(self):
        self.up(self.GROUP % "one_for_one")
        before = self.all_up(4)
        self.crash("b#1")
        until(lambda: self.pids()["b#1"] not in (0, before["b#1"]), 20, "b comes again")
        after = self.all_up(4)
        self.assertEqual({n for n in after if after[n] != before[n]}, {"b#1"})

    def test_rest_for_one_takes_those_after_it(self):
        self.up(self.GROUP % "rest_for_one")
        before = self.all_up(4)
        self.crash("b#1")
        until(lambda: self.pids()["c#1"] not in (0, before["c#1"]), 20, "c comes again")
        after = self.all_up(4)
        self.assertEqual({n for n in after if after[n] != before[n]}, {"b#1", "c#1"})
        self.assertEqual([i for i in self.started_order()[4:]], ["b", "c"])

    def test_one_for_all_takes_all_of_the_group_and_nobody_else(self):
        self.up(self.GROUP % "one_for_all")
        before = self.all_up(4)
        self.crash("c#1")
        until(lambda: self.pids()["a#1"] not in (0, before["a#1"]), 20, "a comes again")
        after = self.all_up(4)
        self.assertEqual({n for n in after if after[n] != before[n]}, {"a#1", "b#1", "c#1"})
        self.assertEqual([i for i in self.started_order()[4:]], ["a", "b", "c"])

    def test_a_group_gives_up_together_and_an_operator_starts_it_again(self):
        self.up(self.GROUP % "one_for_one")
        for name in ("a#1", "b#1"):
            before = self.all_up(4)
            self.crash(name)
            until(lambda: self.pids()[name] not in (0, before[name]), 20, name + " comes again")
        self.all_up(4)
        self.crash("c#1")
        until(lambda: all(self.agent(i).get("gaveUp") for i in "abc"), 20, "the group gives up")
        self.assertIn("the group g had 3 crashes within 60000 ms; the last: c#1: killed by signal 9", self.d.log())
        self.assertEqual(self.agent("free")["state"], "up")
        self.assertIsNone(self.d.process.poll())
        until(lambda: {p["state"] for p in self.processes("a", "b", "c").values()} == {"failed"}, 20, "all of it is at rest")
        self.assertEqual(self.d.cli("agents", "start", "b").strip(), "b#1")
        self.all_up(4)
        self.assertFalse(self.agent("a").get("gaveUp"))

    def test_a_group_may_end_the_daemon_when_that_was_asked_for(self):
        self.up("groups: [{name: g, intensity: 1, escalate: daemon}]\nagents:\n" + calcs("a", "b", more=", group: g"))
        self.crash("a#1")
        self.assertEqual(self.d.process.wait(20), 70)
        self.assertIn("the group g had 1 crashes", self.d.log())
        self.assertEqual(self.d._left(), [])

    def test_what_a_configuration_may_not_say_of_groups_is_named(self):
        d = self.daemon(config="groups: [{name: g}, {name: g}]\nagents:\n" + calcs("a", more=", group: x") +
                        calcs("b", more=", group: g, instances: {min: 1, max: 2}") + calcs("c", more=", instances: {min: 3, max: 2}"), start=False)
        told = subprocess.run([BIN / "batond", "--state", d.state, "--config", d.config], capture_output=True, text=True, timeout=30).stderr
        for line in ("groups.1.name: stands here twice", "agents.0.group: there is no group of this name",
                     "agents.1.group: an agent of a group has a fixed number of instances", "agents.2.instances: max must be at least min"):
            self.assertIn(line, told)


class Reload(Supervised):
    def test_agents_are_added_changed_and_removed_and_the_others_are_not_touched(self):
        self.up("agents:\n" + calcs("stays", "changes", "goes"))
        before = self.all_up(3)
        self.rewrite("agents:\n" + calcs("stays", "comes") + calcs("changes", more=", env: [X=1]"))
        told = self.d.cli("reload", "--check")
        self.assertIn("agents.comes: added", told)
        self.assertEqual(self.pids(), before)
        told = self.d.cli("reload")
        for line in ("applied  agents.comes: added", "applied  agents.goes: removed", "applied  agents.changes.env: changed; its processes are restarted"):
            self.assertIn(line, told)
        until(lambda: set(self.pids()) == {"stays#1", "comes#1", "changes#1"}, 20, "goes is gone")
        after = self.all_up(3)
        self.assertEqual(after["stays#1"], before["stays#1"])
        self.assertNotEqual(after["changes#1"], before["changes#1"])
        self.assertFalse(alive(before["goes#1"]))
        self.assertIn(b"X=1", pathlib.Path("/proc/%d/environ" % after["changes#1"]).read_bytes().split(b"\0"))
        self.assertEqual(self.d.cli("reload").strip(), "nothing differs")
        self.assertEqual(self.pids(), after)

    def test_sighup_does_the_same(self):
        self.up("agents:\n" + calcs("a"))
        self.rewrite("agents:\n" + calcs("a", "b"))
        self.d.process.send_signal(signal.SIGHUP)
        self.all_up(2)

    def test_a_changed_agent_finishes_its_steps_first(self):
        self.up("agents:\n" + WAIT % "")
        plan = self.d.submit({"steps": [{"stepId": "s", "agentId": "slow", "skill": "wait", "task": "t", "parameters": {"name": "one", "seconds": "2"}}]})
        until(lambda: self.d.executions(), 20, "the step is at work")
        self.rewrite("agents:\n" + WAIT % ", env: [X=1]")
        self.d.cli("reload")
        until(lambda: self.processes()["slow#1"].get("doing") == "drains", 20, "it drains")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.all_up(1)
        self.assertEqual(len(self.d.executions()), 1, "the step ran once")

    def test_more_and_fewer_instances(self):
        self.up("agents:\n" + calcs("a", more=", instances: 2"))
        before = self.all_up(2)
        self.rewrite("agents:\n" + calcs("a", more=", instances: 3"))
        self.d.cli("reload")
        after = self.all_up(3)
        self.assertEqual({n: after[n] for n in before}, before)
        self.rewrite("agents:\n" + calcs("a"))
        self.d.cli("reload")
        self.assertEqual(self.all_up(1), {"a#1": before["a#1"]})

    def test_a_broken_change_halts_after_the_first_process(self):
        self.up("agents:\n" + calcs("a", more=", instances: 3"))
        before = self.all_up(3)
        self.rewrite('agents:\n  - {agentId: a, command: ["/bin/false"], instances: 3}\n')
        self.d.cli("reload")
        until(lambda: "event=halted" in self.d.log(), 30, "the restart is halted")
        after = self.pids()
        self.assertEqual(sum(1 for n in after if after[n] == before[n]), 2, "two keep the old command")
        self.rewrite("agents:\n" + calcs("a", more=", instances: 3"))
        self.d.cli("reload")
        self.all_up(3)

    def test_times_are_live_and_what_is_not_is_named(self):
        self.up("agents:\n" + calcs("a"))
        text = self.d.config.read_text()
        self.d.config.write_text(text.replace("leaseMs: 800", "leaseMs: 2500, agentWaitMs: 777, breaker: {failures: 9}"))
        told = self.d.cli("reload")
        self.assertIn("applied  policy.leaseMs: 800, in the file 2500", told)
        self.assertIn("applied  policy.agentWaitMs", told)
        self.assertIn("restart  policy.breaker.failures", told)
        self.d.cli("agents", "stop", "a")
        until(lambda: self.agent("a")["state"] == "down", 20, "a is stopped")
        plan = self.d.submit({"steps": [{"stepId": "s", "agentId": "a", "skill": "evaluate", "task": "t", "parameters": {"expression": "1"}}]})
        self.assertIn("777 ms", json.dumps(self.d.wait_plan(plan, 20)))
        self.d.cli("agents", "start", "a")
        self.all_up(1)
        os.kill(self.pids()["a#1"], signal.SIGKILL)  # its next process registers with the new lease
        self.all_up(1)
        self.d.config.write_text(text)
        self.d.cli("reload")
        until(lambda: self.d.process.poll() is None and self.agent("a")["state"] == "up", 5, "the shorter lease kills nobody")

    def test_under_load_nothing_is_lost(self):
        self.up("agents:\n" + calcs("a", more=", instances: 2, capacity: 4"))
        steps = [{"stepId": "s%d" % i, "agentId": "a", "skill": "evaluate", "task": "t", "dependsOn": [], "parameters": {"expression": "%d+1" % i}} for i in range(200)]
        plans = [self.d.ask("plan.submit", plan={"steps": steps})["planId"] for _ in range(4)]
        for turn in range(4):
            self.rewrite("agents:\n" + calcs("a", more=", instances: 2, capacity: 4, env: [TURN=%d]" % turn))
            self.d.cli("reload")
        for plan in plans:
            view = self.d.wait_plan(plan, 60)
            self.assertEqual(view["status"], "completed", view.get("failureReason"))
        self.all_up(2)


class Orders(Supervised):
    def test_stop_start_and_restart(self):
        self.up("agents:\n" + calcs("a", more=", instances: 2") + calcs("b"))
        before = self.all_up(3)
        self.assertEqual(self.d.cli("agents", "stop", "a").split(), ["a#1", "a#2"])
        until(lambda: {p["state"] for p in self.processes("a").values()} == {"stopped"}, 20, "a is stopped")
        self.assertIn("stopped by an operator", self.d.cli("agents", "a"))
        self.assertEqual(self.d.cli("agents", "start", "a", "--process", "a#2").split(), ["a#2"])
        until(lambda: self.processes()["a#2"]["state"] == "up", 20, "a#2 is up")
        self.assertEqual(self.processes()["a#1"]["state"], "stopped")
        self.d.cli("agents", "start", "a")
        again = self.all_up(3)
        self.d.cli("agents", "restart", "a")
        until(lambda: set(self.pids("a").values()).isdisjoint({again["a#1"], again["a#2"], 0}), 30, "both are restarted")
        self.assertEqual(self.all_up(3)["b#1"], before["b#1"])

    def test_with_two_one_is_up_at_any_time(self):
        self.up("agents:\n" + calcs("a", more=", instances: 2"))
        before = self.all_up(2)
        self.d.cli("agents", "restart", "a")
        seen = []

        def done():
            seen.append(sum(1 for i in self.agent("a")["instances"] if i["health"] == "healthy" and not i.get("draining")))
            return set(self.pids("a").values()).isdisjoint({*before.values(), 0}) and \
                all(p["state"] == "up" and not p.get("doing") for p in self.processes("a").values())
        until(done, 30, "both are restarted")
        self.assertGreaterEqual(min(seen), 1)

    def test_refusals_say_what_would_be_right(self):
        self.up("agents:\n" + calcs("a"))
        told = self.d.cli_any("agents", "stop", "nobody")
        self.assertEqual(told.returncode, 7)
        self.assertIn("agent 'nobody' is not in the configuration", told.stderr)
        self.assertIn("agent 'a' has no process 'a#9'", self.d.cli_any("agents", "restart", "a", "--process", "a#9").stderr)
        self.assertIn("agents.stop", json.dumps([json.loads(line) for p in (self.d.state / "audit").glob("*.jsonl") for line in p.read_text().splitlines()]))

    def test_drain_by_version(self):
        self.up("agents:\n" + calcs("a"))
        version = self.agent("a")["card"]["version"]
        self.assertIn("no instance of version", self.d.cli_any("agents", "drain", "a", "--version-of", "0.0.1").stderr)
        self.assertEqual(self.agent("a")["instances"][0]["version"], version)
        self.d.cli("agents", "drain", "a", "--version-of", version)
        until(lambda: all(i.get("draining") for i in self.agent("a").get("instances", [])), 20, "it drains")
        self.assertNotEqual(self.agent("a")["state"], "disabled")


class Scale(Supervised):
    def test_one_more_while_steps_wait_and_one_less_when_one_is_spare(self):
        self.up("agents:\n" + WAIT % ", instances: {min: 1, max: 3, queue: 1, upMs: 200, downMs: 500}")
        steps = [{"stepId": "s%d" % i, "agentId": "slow", "skill": "wait", "task": "t", "dependsOn": [], "parameters": {"name": "n%d" % i, "seconds": "2"}} for i in range(9)]
        plan = self.d.submit({"policy": {"maxConcurrency": 9}, "steps": steps})
        most = 0

        def look():
            nonlocal most
            most = max(most, len(self.processes()))
            return self.d.ask("plan.get", planId=plan)["status"] == "completed"
        until(look, 40, "the plan ends")
        self.assertEqual(most, 3, self.d.log())
        until(lambda: len(self.processes()) == 1, 20, "back to one")
        self.assertEqual(len(self.d.executions()), 9, "no step ran twice")


class Hung(Supervised):
    def test_a_stopped_process_is_killed_and_replaced(self):
        self.up("agents:\n" + calcs("a"))
        before = self.all_up(1)
        os.kill(before["a#1"], signal.SIGSTOP)
        until(lambda: self.pids()["a#1"] not in (0, before["a#1"]), 20, "it is replaced:\n" + self.d.log())
        self.assertFalse(alive(before["a#1"]))
        self.assertIn("hung: its lease is over", self.processes()["a#1"]["reason"])
        self.all_up(1)

    def test_one_that_comes_back_in_time_stays(self):
        self.up("agents:\n" + calcs("a"))
        before = self.all_up(1)
        os.kill(before["a#1"], signal.SIGSTOP)
        until(lambda: self.agent("a")["state"] == "down", 20, "its lease is over")
        os.kill(before["a#1"], signal.SIGCONT)
        until(lambda: self.agent("a")["state"] == "up", 20, "it is back")
        self.assertEqual(self.all_up(1), before)


class Misbehaved(Supervised):
    """After each: no zombie, no orphan, as many descriptors and threads in daemon and spawner as before."""
    ODD = {
        "crash loop": 'exit 3',
        "ignores TERM": 'trap "" TERM; while :; do sleep 0.2; done',
        "double fork": '(setsid sleep 1000 &) ; sleep 0.1; exit 1',
        "fills stdout": 'head -c 3000000 /dev/zero | tr "\\0" x; exit 1',
        "forks a thousand": 'i=0; while [ $i -lt 1000 ]; do sleep 1000 & i=$((i+1)); done; echo "forked $i"; exit 1',
    }

    def least(self, spawner):
        """Descriptors and threads of daemon and spawner, each the least of some: a connection of ours may still be closing."""
        seen = [(*counts(self.d.process.pid), *counts(spawner)) for _ in range(20) if self.agent("calc")]
        return tuple(map(min, zip(*seen)))

    def settle(self, check):
        spawner = self.spawner()
        self.all_up(1, "calc")
        before = self.least(spawner)
        files = opened(self.d.process.pid)
        check()
        until(lambda: not zombies(self.d.process.pid), 20, "no zombie is left")
        until(lambda: set(children_of(self.d.process.pid)) == {spawner, self.pids("calc")["calc#1"]}, 30,
              "no process is left but calc: %s" % children_of(self.d.process.pid))
        end = time.monotonic() + 30
        after = self.least(spawner)
        while any(a > b for a, b in zip(after, before)) and time.monotonic() < end:
            after = self.least(spawner)
        if any(a > b for a, b in zip(after, before)):
            self.fail("descriptors and threads of daemon and spawner: %s, were %s; the daemon's were:\n%s\nare:\n%s"
                      % (after, before, files, opened(self.d.process.pid)))

    def run_odd(self, command, odd="odd"):
        self.rewrite("log: {agentBytes: 65536, agentFiles: 2}\nagents:\n" + calcs("calc") +
                     '  - {agentId: %s, startMs: %d, graceMs: 300, command: %s}\n' % (odd, 30000 if "forked" in str(command) else 1000, json.dumps(command)))
        self.d.cli("reload")
        until(lambda: self.agent(odd).get("gaveUp") or (self.processes().get(odd + "#1") or {}).get("restarts", 0) >= 2, 60, odd + " has shown itself")
        self.rewrite("agents:\n" + calcs("calc"))
        self.d.cli("reload")
        until(lambda: set(self.pids()) == {"calc#1"}, 30, odd + " is gone")

    def test_each_of_them_leaves_nothing(self):
        self.up("agents:\n" + calcs("calc"))
        self.run_odd(["/bin/false"], "warm-up")  # what is opened once stays open
        for name, script in self.ODD.items():
            with self.subTest(name):
                self.settle(lambda: self.run_odd(["/bin/sh", "-c", script]))
                if "forked" in script:
                    self.assertIn("forked 1000", "".join(p.read_text(errors="replace") for p in (self.d.state / "log").glob("odd#1.log*")))
        with self.subTest("exec fails"):
            self.settle(lambda: self.run_odd(["/no/such/program"]))
        logs = {p.name: p.stat().st_size for p in (self.d.state / "log").glob("odd#1.log*")}
        self.assertLessEqual(len(logs), 3, logs)

    def test_an_endless_log_is_bounded_while_its_agent_runs(self):
        self.up("log: {agentBytes: 65536, agentFiles: 2}\nagents:\n" + calcs("calc") +
                '  - {agentId: loud, startMs: 600000, command: ["/bin/sh", "-c", "while :; do echo 0123456789012345678901234567890123456789; done"]}\n', wait=False)
        log = self.d.state / "log"
        until(lambda: (log / "loud#1.log.2").exists(), 60, "it was rotated twice")
        size = sum(p.stat().st_size for p in log.glob("loud#1.log*"))
        self.assertEqual(sorted(p.name for p in log.glob("loud#1.log*")), ["loud#1.log", "loud#1.log.1", "loud#1.log.2"])
        self.assertLess(size, 150_000_000)  # what a loop writes between two looks of a busy daemon, three times
        self.assertGreaterEqual((log / "loud#1.log.2").stat().st_size, 65536)
        self.all_up(1, "calc")

    def test_a_thousand_deaths_leave_memory_flat(self):
        self.d = d = self.daemon(start=False, config="policy: {restart: {intensity: 32, periodMs: 1000, backoffMinMs: 10, backoffMaxMs: 10}}\nagents:\n" +
                                 calcs("calc") + "".join('  - {agentId: brief%d, command: ["python3", "-S", "-B", "%%(here)s/brief.py"]}\n' % i for i in range(4)))
        d.env = {"ASAN_OPTIONS": "quarantine_size_mb=1:" + os.environ.get("ASAN_OPTIONS", "")}
        d.start(agents=False)

        def deaths():
            return sum(p.get("restarts", 0) for name, p in self.processes().items() if name.startswith("brief"))

        def rss():
            return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path("/proc/%d/status" % d.process.pid).read_text())[1]) // 1024
        until(lambda: deaths() >= 300, 90, "300 deaths")
        early = rss()
        until(lambda: deaths() >= 1000, 150, "1000 deaths")
        self.assertLessEqual(rss() - early, 12 if sanitized() else 3, "MiB more after 700 deaths, from %d" % early)
        self.assertFalse(any(a.get("gaveUp") for a in d.ask("agents.list")["agents"]))
        self.rewrite("agents:\n" + calcs("calc"))
        d.cli("reload")
        self.all_up(1)
        until(lambda: len(children_of(d.process.pid)) == 2, 20, "only the spawner and calc are left")

    def test_kill_9_of_the_daemon_adopts_group_and_all(self):
        self.up("groups: [{name: g, strategy: one_for_all}]\nagents:\n" + calcs("a", "b", more=", group: g"))
        before = self.all_up(2)
        self.d.kill9()
        self.d.start(agents=False)
        self.assertEqual(self.all_up(2), before)
        self.crash("a#1")
        until(lambda: self.pids()["b#1"] not in (0, before["b#1"]), 20, "the group is a group")
        self.all_up(2)
        self.d.stop()
        self.assertEqual(self.d._left(), [])

    def test_a_slow_start_is_waited_for_as_long_as_it_may_take(self):
        script = 'sleep 1.5; exec "$BATON_BIN/baton-agent-calc" --agent-id late'
        self.up('agents:\n  - {agentId: late, startMs: 30000, env: ["BATON_BIN=%s"], command: ["/bin/sh", "-c", %s]}\n' % (BIN, json.dumps(script).replace("%", "%%")))
        self.assertEqual(self.processes()["late#1"].get("restarts", 0), 0)


main()
