"""A daemon's beginning and end: what it writes down, what it says to the service manager, what signals do, its exit codes."""
import signal
import socket
import subprocess

from harness import BIN, EXEC, BatonTest, main, until
from test_faults import wait_step

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
        self.assertEqual(self.ended(other, "--shard", "0/2")[0], 2)
        (other.state / "journal.db").write_bytes(b"no journal, and not empty")
        code, said = self.ended(other)
        self.assertEqual(code, 1, said)
        self.assertIn("supervisor.start", said)
        other.config.write_text("listen: 7\n")
        code, said = self.ended(other)
        self.assertEqual(code, 2, said)
        self.assertIn("not started: the configuration is refused", said)

    def test_a_group_that_may_not_give_up_ends_it_with_70(self):
        d = self.daemon(config=CRASHES, start=False)
        log = open(d.work / "batond.log", "ab")
        self.addCleanup(log.close)
        d.process = d.popen(log)
        self.assertEqual(d.process.wait(20), 70, d.log())
        self.assertIn("supervisor.stopping", d.log())


if __name__ == "__main__":
    main()
