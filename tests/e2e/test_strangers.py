"""Other users of the machine: they read nothing, are not answered, hold nothing, and are told no secret while the daemon is away."""
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
import uuid

import gateway
import probe
from harness import BIN, ROOT, BatonTest, alive, main, sp, until

NOBODY = 65534
CALC = """
agents:
  - {agentId: calc, command: ["${BATON_BIN}/baton-agent-calc"]}
"""
NONE = "agents: []\n"
DEADLINE = 20


def registration(agent_id, **more):
    return {"instanceId": str(uuid.uuid4()), "sessionKey": uuid.uuid4().hex, "protocol": [1], "capacity": 1, "card": probe.card(agent_id), **more}


class Stranger:
    """A process of another user that runs `work(report)`; what that reports, as JSON, line by line."""

    def __init__(self, test, work):
        self.at, says = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.at)
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
                work(lambda value: os.write(says, json.dumps(value).encode() + b"\n"))
            finally:
                os._exit(0)
        os.close(says)
        self.read = os.fdopen(self.at)
        self.ended = False
        test.addCleanup(self.end)

    def next(self):
        line = self.read.readline()
        if not line:
            raise AssertionError("the other user's process ended without a word")
        return json.loads(line)

    def end(self):
        if not self.ended:
            self.ended = True
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.read.close()


def outcome(use):
    """What a peer got: "" = the other side hung up before it had said anything."""
    try:
        return use().decode(errors="replace")
    except (EOFError, ConnectionError):
        return ""


def shake(url, protocol):
    s = socket.create_connection(("127.0.0.1", port_of(url)), DEADLINE)
    s.sendall(b"\0SP\0" + struct.pack(">HH", protocol, 0))
    return s


def port_of(url):
    return int(url.rsplit(":", 1)[1])


def is_open(s):
    """Whether the other side has not hung up."""
    s.setblocking(False)
    try:
        while s.recv(64):
            pass
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def squat(port, protocol):
    """Listens where the daemon was, and reports what each connection brings, in hexadecimal digits."""
    def work(report):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        until(lambda: not listener.bind(("127.0.0.1", port)), DEADLINE, "the port")
        listener.listen(64)
        report("listening")
        while True:
            c, _ = listener.accept()
            c.settimeout(1)
            got = b""
            try:
                c.sendall(b"\0SP\0" + struct.pack(">HH", protocol, 0))
                while True:
                    more = c.recv(65536)
                    if not more:
                        break
                    got += more
            except OSError:
                pass
            c.close()
            report(got.hex())
    return work


def more_than_a_handshake(seen):
    return [h for h in seen if len(h) > 16]


@unittest.skipUnless(os.geteuid() == 0, "SKIP: only root can make processes of another user")
class Strangers(BatonTest):
    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.d.process.pid))

    def ask_bytes(self):
        return json.dumps({"v": 1, "type": "supervisor.info", "id": "1", "token": self.d.token()}).encode()

    def test_bus_requests_and_lanes_are_for_our_user_alone(self):
        self.d = self.daemon(config=CALC)
        at, ask = self.d.endpoints(), self.ask_bytes()
        lanes = self.d.ask("agent.register", **registration("far", dialIn=True))["lanes"]

        def work(report):
            report(outcome(lambda: sp.Sub(at["events"], timeout=DEADLINE).next()[1]))
            report(outcome(lambda: sp.Req(at["control"], DEADLINE).ask(ask)))
            for lane in lanes:
                report(outcome(lambda lane=lane: sp.RepDialer(lane, DEADLINE).next()[0]))
        other = Stranger(self, work)
        self.assertEqual(other.next(), "", "the bus")  # a heartbeat goes out every second
        self.assertEqual(other.next(), "", "a request with the token")
        for _ in lanes:
            self.assertEqual(other.next(), "", "a lane that a dial-in agent is to dial")
        with sp.RepDialer(lanes[0], DEADLINE) as ours:
            self.assertEqual(json.loads(ours.next()[0])["type"], "lane.hello")
        with sp.Sub(at["events"], timeout=DEADLINE) as ours:
            self.assertTrue(ours.next())
        until(lambda: "uid=65534" in self.d.log(), DEADLINE, "a line in the log")
        self.assertEqual(self.d.log().count("uid=65534"), 1, "once a minute")

    def test_connections_of_another_user_are_ended_whatever_they_say(self):
        self.d = self.daemon(config=CALC)
        at, before = self.d.endpoints(), self.descriptors()

        def work(report):
            resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
            held = [shake(at["control"], sp.REQ) for _ in range(1000)]
            until(lambda: not any(map(is_open, held)), DEADLINE, "the end of all that shook hands")
            report("hello")
            mute = [socket.create_connection(("127.0.0.1", port_of(u))) for u in [at["control"], at["events"]] * 100]
            until(lambda: not any(map(is_open, mute)), 9, "the end of all that are mute")  # nng waits for 10 s
            report("mute")
        other = Stranger(self, work)
        while not os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            self.d.ask("supervisor.info", timeout=5)
        self.assertEqual([other.next(), other.next()], ["hello", "mute"])
        until(lambda: self.descriptors() <= before + 8, DEADLINE, "the descriptors of the daemon")

    def test_a_configuration_that_nobody_named_and_another_user_owns_is_not_taken(self):
        """A project in a directory where others may make files: what they put there would choose programs of ours."""
        place = pathlib.Path(tempfile.mkdtemp(prefix="baton-place-"))
        self.addCleanup(shutil.rmtree, place, ignore_errors=True)
        (place / ".baton").mkdir(mode=0o700)
        config = place / "baton.yaml"
        config.write_text("agents:\n  - {agentId: x, command: [touch, '%s']}\n" % (place / "owned"))
        os.chown(config, NOBODY, NOBODY)

        def start(*more):
            return subprocess.run([BIN / "batond", "--state", place / ".baton", "--listen-control", "tcp://127.0.0.1:1", *more],
                                  capture_output=True, text=True, timeout=30)
        refused = start()
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("belongs to user %d, and it names programs to run" % NOBODY, refused.stderr)
        self.assertNotIn("belongs to user", start("--config", config, "--durability", "wrong").stderr)
        os.chown(config, os.getuid(), os.getgid())
        self.assertNotIn("belongs to user", start("--durability", "wrong").stderr)

    def test_users_of_allow_uids_are_served(self):
        self.d = self.daemon(config="allowUids: [4242, %d]\n" % NOBODY + CALC)
        at, ask = self.d.endpoints(), self.ask_bytes()
        other = Stranger(self, lambda report: report(outcome(lambda: sp.Req(at["control"], DEADLINE).ask(ask))))
        self.assertTrue(json.loads(other.next())["ok"])

    def test_the_user_that_an_agent_runs_as_asks_and_reads_no_bus(self):
        self.d = self.daemon(config=CALC.replace("]}", "], user: nobody}"))
        at, ask = self.d.endpoints(), self.ask_bytes()

        def work(report):
            report(outcome(lambda: sp.Sub(at["events"], timeout=5).next()[1]))
            report(outcome(lambda: sp.Req(at["control"], DEADLINE).ask(ask)))
            mute = socket.create_connection(("127.0.0.1", port_of(at["events"])))
            until(lambda: not is_open(mute), 9, "the end of one that is mute")
            report("ended")
        other = Stranger(self, work)
        self.assertEqual(other.next(), "", "the bus: it has the events of all plans")
        self.assertIn('"ok":true', other.next())
        self.assertEqual(other.next(), "ended")
        self.assertEqual(self.d.wait_plan(self.d.submit({"steps": [{"stepId": "a", "agentId": "calc", "skill": "evaluate", "task": "t",
                                                                 "parameters": {"expression": "6*7"}}]}))["status"], "completed")

    def test_who_has_the_port_of_a_dead_daemon_is_told_nothing(self):
        self.d = self.daemon(config=NONE, agents=False)
        at, state = self.d.endpoints(), self.d.state
        agent = subprocess.Popen([BIN / "baton-agent-calc", "--state", state, "--agent-id", "byhand"], stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (agent.kill(), agent.wait()))
        probe.wait_up(self.d, "byhand")
        self.d.kill9()
        other = Stranger(self, squat(port_of(at["control"]), sp.REP))
        self.assertEqual(other.next(), "listening")

        # endpoints.json names a process that is dead: nothing is dialed.
        done = self.d.cli_any("status")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has ended; start it again with: baton up", done.stderr)

        # Its number is another process's now: the user of the listener counts.
        (state / "endpoints.json").write_text(json.dumps({**at, "pid": os.getpid(), "pidNamespace": 0, "instance": str(uuid.uuid4())}))
        seen = [other.next() for _ in range(2)]  # the agent dials again and again
        done = self.d.cli_any("status")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is of user 65534, not of the daemon's: nothing was sent to it", done.stderr)
        seen += [other.next() for _ in range(2)]
        self.assertEqual(more_than_a_handshake(seen), [])
        self.assertEqual(set(h[:8] for h in seen if h), {b"\0SP\0".hex()}, "somebody dialed")
        other.end()
        self.d.start(agents=False)
        probe.wait_up(self.d, "byhand")

    def test_python_tells_nothing_to_who_has_the_port_of_a_dead_daemon(self):
        self.tells_nothing([sys.executable, "-c", "import sys, baton\nprint(baton.Client(sys.argv[1], patience=0).request('plan.list')['ok'])"], "True\n")

    @unittest.skipUnless(shutil.which("node"), "SKIPPED: node is not installed")
    def test_node_tells_nothing_to_who_has_the_port_of_a_dead_daemon(self):
        code = ("const { Client } = await import(process.argv[1]); const c = new Client({ state: process.argv[2], patienceMs: 0, timeoutMs: 3000 });"
                "console.log((await c.request('plan.list')).ok); await c.close()")
        self.tells_nothing(["node", "--input-type=module", "-e", code, ROOT / "agents/node/baton.mjs"], "true\n")

    def test_who_has_the_port_of_a_dead_gateway_is_told_nothing(self):
        if not (BIN / "baton-gateway").exists():
            self.skipTest("SKIPPED: there is no baton-gateway")
        self.d = d = self.daemon(config=NONE, agents=False)
        file = d.state / "gateway.json"
        hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}) + "\n"
        g = gateway.Gateway(self, d)
        ours = g.url
        mcp = subprocess.Popen([BIN / "baton", "mcp", "--state", d.state], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (mcp.kill(), mcp.wait(), mcp.stdin.close(), mcp.stdout.close()))
        mcp.stdin.write(hello)
        mcp.stdin.flush()
        self.assertIn("serverInfo", mcp.stdout.readline())
        g.kill9()
        other = Stranger(self, squat(g.port, sp.REP))
        self.assertEqual(other.next(), "listening")
        mcp.stdin.write(hello)
        mcp.stdin.flush()
        self.assertIn("is of another user: nothing was sent to it", mcp.stdout.readline())
        self.assertEqual(other.next(), "")
        # The number of the process is another one's now: the user of the listener counts.
        file.write_text(json.dumps({"url": ours, "port": g.port, "pid": os.getpid(), "version": "0"}))
        self.assertNotIn(ours, d.cli("info"))
        self.assertEqual(other.next(), "")
        done = subprocess.run([BIN / "baton", "mcp", "--state", d.state], input=hello, capture_output=True, text=True, timeout=60)
        self.assertIn("serverInfo", done.stdout, "one of its own")
        self.assertEqual(other.next(), "")

    def tells_nothing(self, command, right):
        self.d = self.daemon(config=NONE, agents=False)
        at, state = self.d.endpoints(), self.d.state
        env = {**os.environ, "PYTHONPATH": str(ROOT / "agents/python")}

        def ask(**more):
            return subprocess.run([*command, state], env={**env, **more}, capture_output=True, text=True, timeout=60)
        done = ask()
        self.assertEqual(done.stdout, right, done.stderr)
        self.d.kill9()
        other = Stranger(self, squat(port_of(at["control"]), sp.REP))
        self.assertEqual(other.next(), "listening")
        (state / "endpoints.json").write_text(json.dumps({**at, "pid": os.getpid(), "pidNamespace": 0, "instance": str(uuid.uuid4())}))
        self.assertIn("is of user 65534, not of the supervisor's: nothing was sent to it", ask().stderr)
        self.assertEqual(more_than_a_handshake([other.next()]), [])
        ask(BATON_ALLOW_UIDS="1, 65534")
        self.assertNotEqual(more_than_a_handshake([other.next()]), [], "who is listed gets the token")
        other.end()

    def test_lane_goes_to_no_other_user_who_has_the_agents_port(self):
        self.d = self.daemon(config=NONE, agents=False)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        other = Stranger(self, squat(port, sp.REP))
        self.assertEqual(other.next(), "listening")
        self.d.ask("agent.register", **registration("gone", endpoint="tcp://127.0.0.1:%d" % port))
        seen = [other.next() for _ in range(2)]
        self.assertEqual(more_than_a_handshake(seen), [])

    def test_agent_serves_nobody_but_its_supervisor(self):
        self.d = self.daemon(config=CALC)
        pid = self.d.agent_pids()["calc"][0]
        fields = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
        listening = {"socket:[%s]" % f[9]: int(f[1].split(":")[1], 16) for f in fields if f[3] == "0A"}
        found = []
        for fd in os.listdir("/proc/%d/fd" % pid):
            try:
                found.append(listening.get(os.readlink("/proc/%d/fd/%s" % (pid, fd))))
            except FileNotFoundError:
                pass  # closed meanwhile
        port = next(p for p in found if p)
        url = "tcp://127.0.0.1:%d" % port
        ask = json.dumps({"v": 1, "type": "agent.ping", "id": "1", "sessionKey": "x" * 32}).encode()

        def work(report):
            report(outcome(lambda: sp.Req(url, DEADLINE).ask(ask)))
            mute = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
            until(lambda: not any(map(is_open, mute)), 9, "the end of all that are mute")
            report("mute")
        other = Stranger(self, work)
        self.assertEqual([other.next(), other.next()], ["", "mute"])
        with sp.Req(url, DEADLINE) as ours:
            self.assertIn("error", ours.ask(ask).decode())


class Endpoints(BatonTest):
    """Where an agent may say that it listens."""

    def test_endpoint_is_a_number_on_this_machine_unless_the_configuration_allows_it(self):
        d = self.daemon(config="agents: []\nallowEndpoints: ['ipc:///run/here/*', 'tcp://localhost:4711', 'tcp://10.0.0.7:1']\n", agents=False)
        control, events = (port_of(d.endpoints()[which]) for which in ("control", "events"))
        for url in ("ipc:///tmp/x", "ipc:///run/here", "ipc:///run/her", "tcp://localhost:4712", "tcp://localhost:471", "tcp://10.0.0.7:1",
                    "tcp://10.0.0.8:1", "tls+tcp://127.0.0.1:4713", "tcp://localhost.:4711", "tcp://2130706433:80", "tcp://127.1:80",
                    "tcp://127.0.0.1:0", "tcp://0.0.0.0:1", "tcp://[::]:1", "tcp://127.0.0.1:%d" % control, "tcp://127.0.0.2:%d" % events,
                    "tcp://[::ffff:127.0.0.1]:%d" % control, ""):
            answer = d.ask_raw("agent.register", **registration("near", endpoint=url))
            self.assertFalse(answer["ok"], url)
            self.assertIn("endpoint", answer["error"]["message"], url)
        for url in ("tcp://127.0.0.1:4711", "tcp://127.3.2.1:4711", "tcp://[::1]:4711", "ipc:///run/here/x", "tcp://localhost:4711"):
            answer = d.ask_raw("agent.register", **registration("near", endpoint=url))
            self.assertTrue(answer["ok"], (url, answer))


class Up(BatonTest):
    def up(self, d):
        return subprocess.Popen([BIN / "baton", "up", "--state", d.state, "--config", d.config],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, d):
        pid = d.endpoints()["pid"]
        d.cli_any("down")
        until(lambda: not alive(pid), DEADLINE, "its end")

    def is_asked(self, port):
        rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return any(f[2].endswith(":%04X" % port) and f[3] == "01" for f in rows)

    def test_up_starts_a_daemon_when_the_one_before_is_killed_while_it_is_asked(self):
        d = self.daemon(config=NONE, agents=False)
        self.addCleanup(self.end, d)
        first = d.endpoints()
        d.process.send_signal(signal.SIGSTOP)
        up = self.up(d)
        until(lambda: self.is_asked(port_of(first["control"])), DEADLINE, "it asks")
        d.kill9()
        says = up.communicate(timeout=60)
        self.assertEqual(up.returncode, 0, says)
        self.assertNotIn("start it again", says[1])
        self.assertNotEqual(d.endpoints()["instance"], first["instance"])


if __name__ == "__main__":
    main()
