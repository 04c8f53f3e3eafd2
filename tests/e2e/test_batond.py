"""A daemon's beginning and end: what it writes down, what it says to the service manager, what signals do, its exit codes."""
import json
import os
import signal
import socket
import subprocess
import time

import pg
from harness import BIN, EXEC, BatonTest, Daemon, main, sealed, until
from test_faults import wait_step
from test_fleet import Node

CRASHES = "policy: {restart: {intensity: 1}}\ngroups: [{name: g, intensity: 1, escalate: daemon}]\nagents:\n  - {agentId: x, command: [/bin/false], group: g}\n"


class Start(BatonTest):
    def manager(self, d):
        path = str(d.work / "notify")
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        s.bind(path)
        s.settimeout(10)
        self.addCleanup(s.close)
        d.env["NOTIFY_SOCKET"] = path
        return s

    def test_it_says_that_it_serves_where_it_listens_and_that_it_ends(self):
        d = self.daemon(config="", start=False)
        manager = self.manager(d)
        d.start(agents=False)
        self.assertEqual(manager.recv(500), b"READY=1\nSTATUS=serving")
        e = d.endpoints()
        self.assertEqual(e["pid"], d.process.pid)
        self.assertTrue(e["control"].startswith("tcp://127.0.0.1:"))
        self.assertTrue(e["events"].startswith("tcp://127.0.0.1:"))
        info = d.ask("supervisor.info")
        self.assertEqual(subprocess.run([BIN / "batond", "--version"], capture_output=True, text=True, check=True).stdout.split()[1], e["version"])
        self.assertEqual([x["type"] for x in d.events()], ["supervisor_started"])
        self.assertTrue(info["ok"])
        self.assertEqual(d.stop(), 0)
        self.assertEqual(manager.recv(500), b"STOPPING=1\nSTATUS=draining")
        self.assertFalse((d.state / "endpoints.json").exists())
        self.assertIn("supervisor.stopping reason=\"SIGTERM\" grace_ms=5000", d.log())
        self.assertIn("supervisor.stopped plans_open=0", d.log())
        d.start(agents=False)
        self.assertEqual([x["type"] for x in d.events()], ["supervisor_started", "supervisor_stopping", "supervisor_started"])
        self.assertEqual([x["reason"] for x in d.events() if x["type"] == "supervisor_stopping"], ["SIGTERM"])
        d.process.send_signal(signal.SIGINT)
        self.assertEqual(d.process.wait(10), 0)
        self.assertIn("supervisor.stopping reason=\"SIGINT\"", d.log())

    def test_a_stop_waits_for_work_and_a_second_signal_does_not(self):
        d = self.daemon(config="policy: {shutdownGraceMs: 60000}\nagents:\n" + EXEC)
        d.submit({"steps": [wait_step("x", "30")]})
        until(lambda: d.executions() == ["x"], 10, "the step runs")
        d.process.terminate()
        until(lambda: "supervisor.stopping" in d.log(), 10, "it stops")
        with self.assertRaises(subprocess.TimeoutExpired):
            d.process.wait(0.7)
        answer = d.ask_raw("plan.submit", plan={"steps": [wait_step("y", "0")]})
        self.assertEqual(answer["error"]["code"], "UNAVAILABLE", answer)
        d.process.send_signal(signal.SIGINT)
        self.assertEqual(d.process.wait(10), 0)

    def test_a_drain_that_is_asked_for_is_one_stop(self):
        d = self.daemon(config="policy: {shutdownGraceMs: 60000}\nagents:\n" + EXEC)
        d.submit({"steps": [wait_step("x", "2")]})
        until(lambda: d.executions() == ["x"], 10, "the step runs")
        d.ask("supervisor.drain", graceMs=30000)
        d.ask("supervisor.drain", graceMs=30000)
        d.process.send_signal(signal.SIGHUP)  # it is no second signal
        self.assertEqual(d.process.wait(20), 0)
        self.assertEqual(d.log().count("supervisor.stopping reason=\"supervisor.drain\" grace_ms=30000"), 1, d.log())
        d.start(agents=False)
        self.assertEqual([e["reason"] for e in d.events() if e["type"] == "supervisor_stopping"], ["supervisor.drain"])

    def test_hup_reads_the_configuration_again(self):
        d = self.daemon(config="policy: {maxRetries: 2}\n", agents=False)
        d.config.write_text(d.config.read_text().replace("maxRetries: 2", "maxRetries: 3") + "limits: {maxOpenPlans: 7}\n")
        d.process.send_signal(signal.SIGHUP)
        until(lambda: "setting=policy.maxRetries applied" in d.log(), 10, "it is applied")
        self.assertIn("setting=limits.maxOpenPlans needs a restart", d.log())
        d.config.write_text("policy: 7\n")
        d.process.send_signal(signal.SIGHUP)
        until(lambda: "nothing was changed" in d.log(), 10, "it is refused")
        self.assertEqual(d.stop(), 0)

    def test_what_was_open_goes_on_and_is_counted(self):
        d = self.daemon(config="agents:\n" + EXEC)
        plan = d.submit({"steps": [wait_step("x", "3")]})
        until(lambda: d.executions() == ["x"], 10, "the step runs")
        d.kill9()
        d.start()
        e = d.endpoints()
        self.assertIn("supervisor.recovered plans=1\n", d.log())
        self.assertIn("supervisor.started state=%s control=%s events=%s remote=none plans=1 durability=process\n" % (d.state, e["control"], e["events"]),
                      d.log())
        self.assertEqual([x.get("plansRecovered") for x in d.events() if x["type"] == "supervisor_started"], [None, 1])
        # It is up once its agent has registered, also the one that was adopted.
        until(lambda: d.log().count("event=up name=exec#1") == 2, 10, "it is up")
        self.assertEqual(d.wait_plan(plan)["status"], "completed")
        self.assertEqual(d.executions(), ["x"])
        stats = d.ask("supervisor.stats")
        self.assertGreater(stats["longestCycleUs"], 0)
        self.assertEqual(d.stop(), 0)
        self.assertEqual([x for x in d.log().splitlines() if "supervisor.stopp" in x][-1].split(" ", 2)[2], "supervisor.stopped plans_open=0")

    def test_a_pause_of_the_daemon_is_nobodys_silence(self):
        d = self.daemon(config="policy: {leaseMs: 1500, heartbeatMs: 500}\nagents:\n" + EXEC)
        d.submit({"steps": [wait_step("x", "30")]})
        until(lambda: d.executions() == ["x"], 10, "the step runs")
        for _ in range(2):
            d.process.send_signal(signal.SIGSTOP)
            time.sleep(2.5)
            d.process.send_signal(signal.SIGCONT)
            time.sleep(0.7)
        types = [x["type"] for x in d.events()]
        self.assertNotIn("agent_down", types)
        self.assertNotIn("plan_step_retry", types)
        self.assertEqual(d.executions(), ["x"])

    def test_a_recovery_without_room_waits_and_the_rest_is_answered(self):
        d = self.daemon(config="agents:\n" + EXEC)
        plan = d.submit({"steps": [wait_step("x", "1"), wait_step("y", "0")]})
        until(lambda: d.executions() == ["x"], 10, "the step runs")
        d.kill9()
        d.env["BATON_REPLACED"] = "full"  # as it replaces itself when a commit had no room
        began = time.monotonic()
        with open(d.work / "batond.log", "ab") as log:
            d.process = d.popen(log)
        until(lambda: "the disk is full: what was open waits until there is room" in d.log(), 10, "it says so")
        until(lambda: (d.state / "endpoints.json").exists() and d.endpoints()["pid"] == d.process.pid, 10, "it listens")
        self.assertTrue(d.ask("supervisor.info")["ok"])
        self.assertNotIn("supervisor.recovered", d.log().split("the disk is full")[1])
        until(lambda: "supervisor.recovered plans=1" in d.log().split("the disk is full")[1], 20, "it recovers")
        self.assertGreater(time.monotonic() - began, 4)
        self.assertEqual(d.wait_plan(plan)["status"], "completed")
        self.assertEqual(d.executions(), ["x", "y"])
        d.env.clear()
        self.assertEqual(d.stop(), 0)

    def test_what_is_due_is_done_while_nobody_asks(self):
        plan = {"steps": [{"stepId": "a", "agentId": "exec", "skill": "echo", "task": "say what the time is", "parameters": {"text": "now"}}]}
        d = self.daemon(config="retention: {completedMs: 1000}\nschedules: %s\nagents:\n" %
                        json.dumps([{"name": "often", "everyMs": 1500, "plan": plan}]) + EXEC)
        turns = d.ask("supervisor.stats")["turns"]
        time.sleep(6)  # nobody asks
        self.assertLess(d.ask("supervisor.stats")["turns"] - turns, 300, "it sleeps until something is due")
        until(lambda: d.log().count("schedule.fired schedule=often kind=time") >= 3 and d.log().count("plan.deleted") >= 2, 10, d.log)

    def test_it_does_as_it_is_set(self):
        d = self.daemon(config="log: {level: warn}\n", start=False, prefix=["sh", "-c", "ulimit -Sn 1024; exec \"$0\" \"$@\""])
        d.start(agents=False)
        self.assertNotIn(" info ", d.log(), "neither of the daemon nor of its spawner")
        with open("/proc/%d/limits" % d.process.pid, encoding="ascii") as f:
            soft, hard = [x for x in f if x.startswith("Max open files")][0].split()[3:5]
        self.assertEqual(soft, hard)
        self.assertGreater(int(hard), 1024)
        self.assertEqual(d.stop(), 0)
        d.config.write_text(d.config.read_text().replace("{level: warn}", "{format: journal}"))
        d.start(agents=False)
        self.assertIn("\n<6>spawner.start ", d.log())
        self.assertNotIn(" info ", d.log())
        # A credential counts as soon as its file is there, and no longer than that.
        d.cli("credential", "add", "op", "--role", "admin")
        d.credential = ("op", d.state / "credentials/op")
        self.assertTrue(d.ask("supervisor.info")["ok"])
        key = (d.state / "credentials/op").read_bytes()
        d.cli("credential", "revoke", "op")
        (d.work / "op").write_bytes(key)
        d.credential = ("op", d.work / "op")
        with self.assertRaises(sealed.Refused):
            d.ask("supervisor.info")
        d.credential = None

    def test_a_process_that_crashed_comes_again_after_its_pause(self):
        d = self.daemon(config="policy: {restart: {backoffMinMs: 100, backoffMaxMs: 100, intensity: 20}}\nagents:\n" + EXEC)
        took = []
        for i in range(1, 5):
            (pid,) = d.agent_pids()["exec"]
            os.kill(pid, signal.SIGKILL)
            began = time.monotonic()
            until(lambda: d.log().count("event=restarted name=exec#1") == i, 10, "it is restarted\n" + d.log())
            took.append(time.monotonic() - began)
            d.wait_agents()
        self.assertLess(min(took), 0.5, took)
        self.assertGreater(min(took), 0.08, took)

    def test_a_daemon_that_replaced_itself_tells_nobody_that_it_is_ready(self):
        d = self.daemon(config="", start=False)
        d.env["BATON_REPLACED"] = "1"
        ready, says = os.pipe()
        self.addCleanup(os.close, ready)
        with open(d.work / "batond.log", "ab") as log:
            d.process = d.popen(log, "--ready-fd", str(says), pass_fds=(says,))
        os.close(says)
        until(lambda: (d.state / "endpoints.json").exists(), 10, "it listens")
        self.assertTrue(d.ask("supervisor.info")["ok"])
        os.set_blocking(ready, False)
        with self.assertRaises(BlockingIOError):
            os.read(ready, 6)
        self.assertEqual(d.stop(), 0)


class Shared(BatonTest):
    """A journal on PostgreSQL."""
    def node(self, server, name):
        return Node(self, server, name, config="agents:\n" + EXEC + "policy: {maxRetries: 2}\n")

    def test_one_leads_and_one_waits_and_both_do_as_they_are_told_while_the_server_is_away(self):
        if pg.why_not():
            self.skipTest(pg.why_not())
        server = pg.Server(self)
        one, two = self.node(server, "one"), self.node(server, "two")
        one.start()
        self.assertEqual(one.endpoints()["pid"], one.process.pid)  # of one shard no node is between
        self.assertIn(" durability=power\n", one.log())
        with open(two.work / "batond.log", "ab") as log:
            two.process = two.popen(log)
        until(lambda: "supervisor.standby" in two.log(), 10, "it waits")
        two.process.terminate()
        self.assertEqual(two.process.wait(10), 0, two.log())
        self.assertIn('supervisor.stopped it was a standby', two.log())
        self.assertFalse((two.state / "endpoints.json").exists())
        server.kill9()
        until(one.is_away, 10, "it has seen it")
        one.config.write_text(one.config.read_text().replace("maxRetries: 2", "maxRetries: 3"))
        one.process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        server.start()
        until(lambda: "setting=policy.maxRetries applied" in one.log(), 20, "what it was told meanwhile is done\n" + one.log())
        plan = until(lambda: one.ask_raw("plan.submit", plan={"steps": [wait_step("x", "0")]}).get("planId"), 20, "it is accepted")
        self.assertEqual(one.wait_plan(plan)["status"], "completed")
        server.kill9()
        until(one.is_away, 10, "it has seen it")
        one.process.terminate()
        self.assertEqual(one.process.wait(10), 75)


class Codes(BatonTest):
    def ended(self, d, *args):
        done = subprocess.run([BIN / "batond", "--state", d.state, "--config", d.config, *args], capture_output=True, text=True, timeout=30)
        return done.returncode, done.stderr

    def test_what_could_not_start_exits_with_1_2_or_3_and_says_why(self):
        d = self.daemon(config="", agents=False)
        code, said = self.ended(d)
        self.assertEqual(code, 3, said)
        self.assertIn(str(d.process.pid), said)
        other = self.daemon(config="", start=False)
        port = d.endpoints()["control"].rsplit(":", 1)[1]
        code, said = self.ended(other, "--listen-control", "tcp://127.0.0.1:" + port)
        self.assertEqual(code, 1, said)
        self.assertIn("listen.control", said)
        code, said = self.ended(other, "--shard", "0/2")
        self.assertEqual((code, said), (2, "batond: --shard: there is no fleet: give --fleet URL\n"))
        code, said = self.ended(other, "--fleet", "mysql://db/baton")
        self.assertEqual(code, 2, said)
        (other.state / "journal.db").write_bytes(b"no journal, and not empty")
        code, said = self.ended(other)
        self.assertEqual(code, 1, said)
        self.assertIn("supervisor.start", said)
        other.config.write_text("listen: 7\n")
        code, said = self.ended(other)
        self.assertEqual(code, 2, said)
        self.assertIn("not started: the configuration is refused", said)

    def test_one_that_waits_for_the_server_of_its_fleet_ends_when_it_is_told(self):
        d = self.daemon(config="", start=False, durability="power", args=["--fleet", "postgresql://127.0.0.1:1/baton"])
        with open(d.work / "batond.log", "ab") as log:
            d.process = d.popen(log)
        with self.assertRaises(subprocess.TimeoutExpired):
            d.process.wait(3)
        d.process.terminate()
        self.assertEqual(d.process.wait(10), 0, d.log())
        self.assertFalse((d.state / "endpoints.json").exists())

    def test_a_group_that_may_not_give_up_ends_it_with_70(self):
        d = self.daemon(config=CRASHES, start=False)
        log = open(d.work / "batond.log", "ab")
        self.addCleanup(log.close)
        d.process = d.popen(log)
        self.assertEqual(d.process.wait(20), 70, d.log())
        self.assertIn("supervisor.stopping", d.log())


if __name__ == "__main__":
    main()
