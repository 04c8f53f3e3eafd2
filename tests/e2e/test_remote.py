"""A daemon, and on another host agents, clients and followers: TLS with certificates of both sides, lanes that agents dial,
and what a line between hosts does: loss, resets, silence."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

import hosts
from harness import BIN, BatonTest, HERE as E2E, Daemon, main, until
import sealed
import test_page_commands

WHY_NOT = hosts.move()
EXEC = {"commands": [{"id": "wait", "argv": [str(E2E / "slow.sh"), "%(work)s/executions", "{name}", "{seconds}"],
                      "description": "Takes a while.", "output": "text", "effects": "unsafe"}]}


class TlsReq:
    """REQ of SP over a TLS connection that has greeted."""

    def __init__(self, sock):
        self.sock, self.id = sock, 0

    def _read(self, n):
        data = b""
        while len(data) < n:
            part = self.sock.recv(n - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def ask(self, body):
        self.id += 1
        message = struct.pack(">I", 0x80000000 | self.id) + body
        self.sock.sendall(struct.pack(">Q", len(message)) + message)
        return self._read(struct.unpack(">Q", self._read(8))[0])[4:]

    def close(self):
        self.sock.close()


def step(ident, agent, skill, task, deps=(), **params):
    return {"id": ident, "agentId": agent, "skill": skill, "task": task, "dependsOn": list(deps), "parameters": params}


@unittest.skipIf(WHY_NOT, "SKIP: %s" % WHY_NOT)
class Remote(BatonTest):
    @classmethod
    def setUpClass(cls):
        cls.keys = pathlib.Path(tempfile.mkdtemp(prefix="baton-keys-"))
        cls.addClassCleanup(shutil.rmtree, cls.keys, ignore_errors=True)
        cls.other = hosts.Other()
        cls.addClassCleanup(cls.other.end)
        cls.certs("init")
        cls.certs("issue", "hub", "--server", "--host", hosts.HERE)
        cls.certs("issue", "elsewhere", "--client")

    @classmethod
    def certs(cls, *args, dir="ca", to="."):
        done = subprocess.run([BIN / "baton", "certs", *args, "--dir", cls.keys / dir,
                               *(["--to", cls.keys / to] if args[0] != "init" else [])], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def setUp(self):
        self.other.line("up")
        self.other.line("loss", 0)
        self.other.line("delay", 0)

    def hub(self, lanes="", config=""):
        text = ("listen: {control: 'tcp://127.0.0.1:0', events: 'tcp://127.0.0.1:0', remote: 'tls+tcp://%s:0',"
                " cert: '%s/hub.pem', ca: '%s/ca.pem'%s}\nauth: required\ndurability: process\n%s")
        d = Daemon(self, config="")
        d.config.write_text(text % (hosts.HERE, self.keys, self.keys, ", lanes: %s" % lanes if lanes else "",
                                    config % {"work": d.work, "here": E2E}))
        self.addCleanup(d.clean)
        self.addCleanup(d.check_event_order)
        for ident, role in (("op", "admin"), ("ann", "admin"), ("fleet", "agent")):
            d.cli("credential", "add", ident, "--role", role, *(["--agents", "*"] if role == "agent" else []))
        d.credential = ("op", d.state / "credentials/op")
        d.start(agents=False)
        d.remote = d.ask("supervisor.info")["remote"]
        return d

    def way(self, d, cert="elsewhere.pem", ca="ca.pem", url=None, credential=None):
        return ["--connect", url or d.remote, "--credential", d.state / "credentials" / (credential or "ann"),
                "--ca", self.keys / ca, "--cert", self.keys / cert]

    def cli(self, d, *args, code=0, env=None, **way):
        """`baton` on the other host."""
        home = {**os.environ, "HOME": str(d.work), **(env or {})}
        done = self.other.run(BIN / "baton", *args, *(self.way(d, **way) if env is None else []), env=home)
        self.assertEqual(done.returncode, code, "%s\n%s\n%s" % (done.stdout, done.stderr, d.log()))
        return done

    def agent(self, d, program, *args, settings=None, **way):
        """An agent program on the other host."""
        log = open(d.work / ("%s.log" % program), "ab")
        env = {**os.environ, "HOME": "/nowhere", "BATON_SETTINGS": json.dumps(settings) % {"work": d.work} if settings else "{}"}
        env.pop("BATON_STATE", None)
        process = self.other.start(BIN / ("baton-agent-" + program), *map(str, self.way(d, credential="fleet", **way)), *args, stderr=log,
                                   env=env)
        log.close()

        def end():
            process.kill()
            process.wait()
        self.addCleanup(end)
        return process

    def up(self, d, agent, n=1):
        def is_up():
            a = [x for x in d.ask("agents.list")["agents"] if x["card"]["agentId"] == agent]
            return a and sum(i["health"] == "healthy" for i in a[0].get("instances", [])) == n
        until(is_up, 30, "%s is up\n%s" % (agent, d.log()))

    def test_a_plan_with_agent_client_and_follower_elsewhere(self):
        d = self.hub(lanes="7450-7460")
        self.agent(d, "calc", "--capacity", "3")
        self.up(d, "calc")
        lines = []
        follower = self.other.start(BIN / "baton", "events", "--follow", "--json", *map(str, self.way(d)),
                                    stdout=subprocess.PIPE, text=True)

        def read():
            for line in follower.stdout:
                lines.append(json.loads(line))
        reader = threading.Thread(target=read)
        reader.start()
        try:
            context = {"XDG_CONFIG_HOME": str(d.work / "config")}
            (d.work / "config").mkdir()
            self.cli(d, "context", "add", "hub", *map(str, self.way(d)), env=context)
            self.cli(d, "context", "use", "hub", env=context)
            mode = (d.work / "config/baton/contexts").stat().st_mode & 0o777
            self.assertEqual(mode, 0o600)
            plan = self.write_plan(d, "plan.json", {"steps": [
                step("a", "calc", "evaluate", "Multiply six by seven for the sum.", expression="6*7"),
                step("b", "calc", "evaluate", "Double the product of the step before.", ["a"], expression="42*2")]})
            done = self.cli(d, "run", "--plan", plan, env=context)
            self.assertIn("84", done.stdout)
            until(lambda: any(e["type"] == "plan_completed" for e in lines), 20, "the follower sees the end")
            seqs = [e["seq"] for e in lines]
            self.assertEqual(seqs, sorted(set(seqs)))
            # what needs the daemon's own host says so, and stays a sentence
            for verb in (["up"], ["doctor"], ["logs"], ["backup", "x.db"]):
                refused = self.cli(d, *verb, code=2, env=context)
                self.assertIn("only on the daemon's own host", refused.stderr)
            self.assertIn("calc", self.cli(d, "agents", env=context).stdout)
            self.assertIn(d.remote, self.cli(d, "context", "list", env=context).stdout)
            self.cli(d, "context", "remove", "hub", env=context)
            self.cli(d, "--context", "hub", "status", code=6, env=context)
        finally:
            follower.terminate()
            reader.join(20)
            follower.wait(20)
            follower.stdout.close()
        # lanes are in the range, and nobody waits two hours for a host that has gone
        found = subprocess.run(["ss", "-tnoH", "state", "established", "src", hosts.HERE], capture_output=True, text=True).stdout
        ports = {int(line.split()[2].rsplit(":", 1)[1]) for line in found.splitlines()}
        self.assertLessEqual(ports - {int(d.remote.rsplit(":", 1)[1])}, set(range(7450, 7461)))
        self.assertEqual(len(ports), 5, found)

        def timers():
            out = subprocess.run(["ss", "-tnoH", "state", "established", "src", hosts.HERE], capture_output=True, text=True).stdout
            return out and "min" not in out
        until(timers, 20, "keepalive in seconds")

    def test_loss_and_delay(self):
        d = self.hub()
        self.agent(d, "calc", "--capacity", "2")
        self.up(d, "calc")
        self.other.line("loss", 10)
        self.other.line("delay", 20)
        plan = self.write_plan(d, "plan.json", {"steps": [
            step("s%d" % i, "calc", "evaluate", "Multiply a number by seven, for the list.", expression="%d*7" % i)
            for i in range(6)]})
        done = self.cli(d, "run", "--plan", plan, "--json")
        results = [s.get("result") for s in json.loads(done.stdout)["steps"]]
        self.assertEqual(len(results), 6)
        view = d.ask("plan.list")["plans"][0]
        self.assertEqual(view["status"], "completed")

    def test_reset_connections_cost_no_second_execution(self):
        d = self.hub()
        self.agent(d, "exec", "--capacity", "1", settings=EXEC)
        self.up(d, "exec")
        plan = d.submit({"steps": [step("one", "exec", "wait", "Wait a while, and only once, on the other host.",
                                        name="one", seconds="3")]})
        until(lambda: d.executions(), 20, "the step runs")
        self.other.line("reset")
        until(lambda: not subprocess.run(["ss", "-tnH", "state", "established", "src", hosts.HERE], capture_output=True,
                                         text=True).stdout, 20, "every connection was reset")
        self.other.line("up")
        view = d.wait_plan(plan, 60)
        self.assertEqual((view["status"], d.executions()), ("completed", ["one"]))

    def test_silent_line_ends_the_lease_and_nothing_runs_twice(self):
        d = self.hub()
        here = [BIN / "baton-agent-exec", "--state", d.state, "--credential", d.state / "credentials/fleet", "--capacity", "1"]
        self.agent(d, "exec", "--capacity", "1", settings=EXEC)
        self.up(d, "exec")
        first = d.submit({"steps": [step("far", "exec", "wait", "Wait a while, and only once, on the other host.",
                                         name="far", seconds="1")]})
        until(lambda: d.executions(), 20, "the step runs")
        self.other.line("down")
        local = subprocess.Popen(here, stderr=subprocess.DEVNULL,
                                 env={**os.environ, "BATON_SETTINGS": json.dumps(EXEC) % {"work": d.work}})
        self.addCleanup(local.wait)
        self.addCleanup(local.kill)

        until(lambda: any(e["type"] == "agent_down" for e in d.events()), 30, "the lease ends\n" + d.log())
        second = d.submit({"steps": [step("near", "exec", "wait", "Wait a while, and only once, on this host.",
                                          name="near", seconds="0")]})
        self.assertEqual(d.wait_plan(second, 30)["status"], "completed")
        self.other.line("up")
        self.up(d, "exec", 2)
        until(lambda: d.ask("plan.get", planId=first)["status"] == "completed", 30,
              "the result of before comes home\n" + d.log())
        self.assertEqual(sorted(d.executions()), ["far", "near"])

    def test_result_that_comes_home_answers_the_question_what_became_of_it(self):
        d = self.hub()
        self.agent(d, "exec", "--capacity", "1", settings=EXEC)
        self.up(d, "exec")
        plan = d.submit({"steps": [step("one", "exec", "wait", "Wait a while, and only once, on the other host.",
                                        name="one", seconds="1")]})
        until(lambda: d.executions(), 20, "the step runs")
        self.other.line("down")
        until(lambda: d.ask("review.list")["reviews"], 40, "a person is asked\n" + d.log())
        self.other.line("up")
        self.assertEqual(d.wait_plan(plan, 60)["status"], "completed")
        self.assertEqual((d.executions(), d.ask("review.list")["reviews"]), (["one"], []))

    def test_a_result_after_a_new_registration_is_no_answer_to_another_step(self):
        """A step of lanes that are gone ends while another one of the new lanes is under way."""
        d = self.hub(lanes="7530-7539")
        gate = {"commands": [{"id": "gate", "argv": ["sh", "-c", "until [ -e %(work)s/$0 ]; do sleep 0.05; done; echo $0", "{name}"],
                              "description": "Waits for a file.", "output": "text", "effects": "unsafe"}]}
        self.agent(d, "exec", "--capacity", "2", settings=gate)
        self.up(d, "exec")

        def running(plan):
            until(lambda: d.ask("plan.get", planId=plan)["steps"][0]["status"] == "in_progress", 20, "it runs")
        first = d.submit({"steps": [step("first", "exec", "gate", "Wait for the file of this name.", name="first")]})
        running(first)
        d.kill9()
        d.config.write_text(d.config.read_text().replace("%s:0" % hosts.HERE, d.remote[len("tls+tcp://"):]))
        d.start(agents=False)
        self.up(d, "exec")
        second = d.submit({"steps": [step("second", "exec", "gate", "Wait for the file of this name.", name="second")]})
        running(second)
        (d.work / "first").touch()
        self.assertEqual(d.wait_plan(first, 30)["status"], "completed", d.log())
        (d.work / "second").touch()
        view = d.wait_plan(second, 30)
        self.assertEqual(view["status"], "completed", view)
        self.assertEqual(d.ask("plan.result", planId=second, stepId="second")["result"]["text"].strip(), "second")

    def rows(self, d, name, n):
        with open(d.work / name, "w") as f:
            f.write("id,note\n" + "".join("%d,%s\n" % (i, "x" * 80) for i in range(n)))
        return (d.work / name).stat().st_size

    def here(self, d, program, settings, *args):
        """An agent beside the daemon."""
        log = open(d.work / ("%s-here.log" % program), "ab")
        p = subprocess.Popen([BIN / ("baton-agent-" + program), "--state", d.state, "--credential", d.state / "credentials/fleet", *args],
                             stderr=log, env={**os.environ, "BATON_SETTINGS": json.dumps(settings)})
        log.close()
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)

    def part_sizes(self, d, sizes, ended):
        """Watches the file that arrives at the daemon."""
        while not ended.wait(0.01):
            for at in (d.state / "artifacts").glob("*/.part-*"):
                with contextlib.suppress(OSError):
                    sizes.append(at.stat().st_size)

    def test_files_go_to_the_other_host_and_come_from_it_and_a_torn_transfer_goes_on(self):
        d = self.hub(lanes="7500-7520")
        bytes_ = self.rows(d, "rows.csv", 150000)
        self.assertGreater(bytes_, 12 << 20)
        exec_ = {"commands": [{"id": "print", "argv": ["cat", str(d.work / "rows.csv")], "description": "Prints the rows.", "output": "text",
                               "effects": "unsafe"}]}
        self.agent(d, "exec", "--agent-id", "exec-there", settings=exec_)
        self.agent(d, "sql", "--agent-id", "sql-there", settings={"databaseDir": str(d.work / "there"), "readOnly": False})
        self.here(d, "exec", exec_, "--agent-id", "exec-here")
        self.here(d, "sql", {"databaseDir": str(d.work / "here"), "readOnly": False}, "--agent-id", "sql-here")
        for agent in ("exec-there", "sql-there", "exec-here", "sql-here"):
            self.up(d, agent)

        def way(of, to):
            return [step("print", "exec-" + of, "print", "Print all the rows, as an artifact.", artifact=True),
                    step("load", "sql-" + to, "load", "Load the rows into a table.", ["print"], table="rows",
                         artifact="{{results.print.artifact}}"),
                    step("count", "sql-" + to, "query", "Count the rows of the table.", ["load"], sql="SELECT count(*) FROM rows")]

        def check(plan):
            view = d.wait_plan(plan, 60)
            self.assertEqual(view["status"], "completed", "%s\n%s" % (view, d.log()))
            self.assertEqual(view["steps"][0]["attempts"], 1)
            self.assertEqual(d.ask("plan.result", planId=plan, stepId="count")["result"]["data"]["rows"], [[150000]])
        sizes, ended = [], threading.Event()
        watcher = threading.Thread(target=self.part_sizes, args=(d, sizes, ended))
        watcher.start()
        try:
            plan = d.submit({"steps": way("there", "here")})
            until(lambda: any(2 << 20 < n for n in sizes), 60, "some MiB have come\n" + d.log())
            self.other.line("reset")
            until(lambda: not subprocess.run(["ss", "-tnH", "state", "established", "src", hosts.HERE], capture_output=True,
                                             text=True).stdout, 20, "every connection was reset")
            self.other.line("up")
            check(plan)
        finally:
            ended.set()
            watcher.join()
        self.assertEqual(sizes, sorted(sizes), "it goes on, and does not begin again")
        self.assertLess(max(n for n in sizes if n < bytes_), bytes_)
        copy = d.work / "copy"
        with open(copy, "wb") as out:
            got = subprocess.run(self.other.inside(BIN / "baton", "result", plan, "print", "--artifact", "stdout.txt", *self.way(d)),
                                 stdout=out, stderr=subprocess.PIPE, text=True, timeout=120, env={**os.environ, "HOME": "/nowhere"})
        self.assertEqual((got.returncode, got.stderr), (0, ""))
        self.assertEqual(copy.read_bytes(), (d.work / "rows.csv").read_bytes())
        check(d.submit({"steps": way("here", "there")}))

    def test_a_python_agent_there_reads_and_writes_files_of_the_daemon(self):
        d = self.hub(lanes="7540-7549")
        self.rows(d, "rows.csv", 40000)
        there = d.work / "copier.py"
        there.write_text("""import baton
agent = baton.Agent("copier")


@agent.skill
def copy(uri: str, step: baton.Step) -> str:
    \"\"\"Copies a file.\"\"\"
    with step.open(uri) as f, step.artifact("copy.csv", "text/csv") as out:
        for block in iter(lambda: f.read(100000), b""):
            out.write(block)
    return "copied"


agent.run()
""")
        python = E2E.parent.parent / "agents/python"
        log = open(d.work / "copier.log", "ab")
        p = self.other.start(sys.executable, there, *map(str, self.way(d, credential="fleet")), stderr=log,
                             env={**os.environ, "PYTHONPATH": str(python), "HOME": "/nowhere"})
        log.close()
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.here(d, "files", {"roots": [str(d.work)]}, "--agent-id", "files-here")
        for agent in ("copier", "files-here"):
            self.up(d, agent)
        plan = d.submit({"steps": [step("read", "files-here", "read", "Read the whole file.", path=str(d.work / "rows.csv"), artifact=True),
                                   step("copy", "copier", "copy", "Copy the file.", ["read"], uri="{{results.read.artifact}}")]})
        view = d.wait_plan(plan)
        self.assertEqual(view["status"], "completed", "%s\n%s" % (view, (d.work / "copier.log").read_text()))
        got = self.other.run(sys.executable, "-c", """import sys, baton
url, credential, ca, cert, plan, to = sys.argv[1:]
with baton.Client(remote=baton.Remote(url, ca=ca, cert=cert, credential=credential)) as c, open(to, "wb") as f:
    c.artifact(c.result(plan, "copy")["artifacts"][0], f)
""", d.remote, d.state / "credentials/ann", self.keys / "ca.pem", self.keys / "elsewhere.pem", plan, d.work / "copy",
                             env={**os.environ, "PYTHONPATH": str(python)})
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertEqual((d.work / "copy").read_bytes(), (d.work / "rows.csv").read_bytes())

    def test_who_has_a_certificate_and_no_key_does_not_hold_the_place_of_an_agent(self):
        """Strangers with a certificate are on each port for lanes before the agent is, and come back at once."""
        d = self.hub(lanes="7480-7482")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(self.keys / "ca.pem")
        context.load_cert_chain(self.keys / "elsewhere.pem")
        ended, held, at = threading.Event(), [], {}
        said = (None, b"\xc1 garbage", json.dumps({"v": 1, "type": "ok", "id": "hello", "ok": True}).encode(), json.dumps(
            {"v": 1, "type": "lane.hello.ok", "id": "hello", "ok": True, "nonceA": "0" * 64, "proof": "0" * 64}).encode())

        def hold(port):
            n = port - 7481
            while not ended.is_set():
                try:
                    with context.wrap_socket(socket.create_connection((hosts.HERE, port), 5)) as tls:
                        at[port] = tls
                        tls.sendall(b"\0SP\0\x00\x31\0\0")
                        peer = TlsReq(tls)
                        peer._read(8)
                        held.append(port)
                        request = peer._read(struct.unpack(">Q", peer._read(8))[0])
                        n += 1
                        if said[n % 4] is not None:
                            answer = request[:4] + said[n % 4]
                            tls.sendall(struct.pack(">Q", len(answer)) + answer)
                        tls.settimeout(None)
                        tls.recv(1)  # until the other side hangs up
                except (OSError, EOFError):
                    pass
        strangers = [threading.Thread(target=hold, args=(p,)) for p in range(7480, 7483)]
        for t in strangers:
            t.start()
        try:
            self.other.line("delay", 100)  # the agent is far away
            self.agent(d, "calc", "--capacity", "2")
            self.up(d, "calc")
            done = d.wait_plan(d.submit({"steps": [step("a", "calc", "evaluate", "Multiply six by seven for the sum.", expression="6*7")]}))
            self.assertEqual(done["status"], "completed")
        finally:
            ended.set()
            for tls in list(at.values()):
                with contextlib.suppress(OSError):
                    tls.shutdown(socket.SHUT_RDWR)
            for t in strangers:
                t.join(10)
        self.assertTrue(held)
        self.assertIn("lane.refused", d.log())
        self.assertEqual([e for e in d.events() if e["type"] == "agent_down"], [])

    def test_ports_for_lanes_run_out_in_words(self):
        d = self.hub(lanes="7470-7471")
        self.agent(d, "calc", "--capacity", "4")
        until(lambda: "each port of listen.lanes (7470-7471) is taken" in d.log(), 20, "the agent is refused\n" + d.log())
        self.assertEqual(d.ask("supervisor.info").get("plansOpen", 0), 0)

    def handshake(self, d, cert=None, ca="ca.pem", port=None, role=0x30):
        """One SP connection over TLS to the remote listener: the socket, or why not."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(self.keys / ca)
        if cert:
            context.load_cert_chain(self.keys / cert)
        host, control = d.remote[len("tls+tcp://"):].rsplit(":", 1)
        port = port or control
        raw = socket.create_connection((host, int(port)), 20)
        try:
            tls = context.wrap_socket(raw)
            tls.sendall(b"\0SP\0\x00" + bytes([role]) + b"\0\0")
            hello = tls.recv(8)
            return tls if hello == b"\0SP\0\x00" + bytes([role ^ 1]) + b"\0\0" else "closed"
        except (ssl.SSLError, OSError) as why:
            raw.close()
            return str(why)

    def session(self, d, ident="ann", cert="elsewhere.pem"):
        """A session of a credential over TLS; its requests are kept as they were sent."""
        tls = self.handshake(d, cert)
        self.assertNotIsInstance(tls, str)

        class Recorded(sealed.Session):
            def __init__(self, key):
                self.req, self.n, self.sent = TlsReq(tls), 0, []
                self._begin(ident, key)

            def send(self, bytes_):
                self.sent.append(bytes_)
                return super().send(bytes_)
        return Recorded(sealed.key_of(d.state / "credentials" / ident))

    def test_replayed_and_revoked(self):
        d = self.hub()
        self.agent(d, "calc")
        self.up(d, "calc")
        with self.session(d) as first:
            self.assertTrue(first.proved)
            self.assertTrue(first.ask("plan.list")["ok"])
            answer = first.ask("plan.submit", plan={"steps": [
                step("a", "calc", "evaluate", "Multiply six by seven for the sum.", expression="6*7")]})
            self.assertTrue(answer["ok"])
            stolen = first.sent[-1]
            # in the same TLS session, and in one of its own while the first is open
            with self.assertRaises(sealed.Refused):
                first.send(stolen)
            with self.session(d) as second, self.assertRaises(sealed.Refused):
                second.send(stolen)
        with self.session(d) as third, self.assertRaises(sealed.Refused):
            third.send(stolen)  # when the first is closed
        self.assertEqual(len(d.ask("plan.list")["plans"]), 1)
        # a token is none over TLS, and a revoked credential ends what is open
        with self.session(d, "ann") as open_one:
            self.assertTrue(open_one.ask("plan.list")["ok"])
            raw = open_one.req.ask(json.dumps({"v": 1, "type": "plan.list", "id": "t", "token": d.token()}).encode())
            self.assertIn(b"UNAUTHORIZED", raw)
            d.cli("credential", "revoke", "ann")

            def refused():
                try:
                    open_one.ask("plan.list")
                except (sealed.Refused, EOFError, OSError):
                    return True
                return False
            until(refused, 20, "the open session ends")
        self.assertIn("revoked", self.cli(d, "status", code=6).stderr)

    def test_the_page_for_operators(self):
        """Every command of deploy/REMOTE.md, each on the host under whose heading it stands."""
        text = (E2E.parent.parent / "deploy/REMOTE.md").read_text()
        home = pathlib.Path(tempfile.mkdtemp(prefix="baton-page-"))
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("BATON_", "XDG_"))}
        path = "%s:%s" % (BIN, os.environ["PATH"])
        env = {name: {**keep, "HOME": str(home / name), "PATH": path} for name in ("hub", "worker", "client")}
        for name in env:
            (home / name).mkdir()
        config = home / "hub/.config/baton"
        config.mkdir(parents=True)
        (config / "baton.yaml").write_text(re.search(r"(?ms)^```yaml\n(.*?)^```", text).group(1))
        (home / "client/plan.yaml").write_text("steps:\n  - {id: a, agentId: calc, skill: evaluate, task: Multiply six by seven "
                                               "for the sum., parameters: {expression: 6*7}}\n")

        def run(name, command):
            there = [] if name == "hub" else ["nsenter", "-t", str(self.other.init.pid), "-n"]
            if command.endswith("&"):
                agent = subprocess.Popen([*there, *command[:-1].split()], cwd=home / name, env=env[name], stderr=subprocess.DEVNULL)
                self.addCleanup(agent.wait)
                self.addCleanup(agent.kill)
                return ""
            done = subprocess.run([*there, "sh", "-c", command], cwd=home / name, env=env[name], capture_output=True, text=True,
                                  timeout=120)
            self.assertEqual(done.returncode, 0, "%s\n%s%s" % (command, done.stdout, done.stderr))
            return done.stdout
        self.addCleanup(lambda: subprocess.run([BIN / "baton", "--credential", "ann/ann.key", "down"], cwd=home / "hub",
                                               env=env["hub"], capture_output=True))
        printed = ""
        for name, heading in (("hub", "## The hub"), ("worker", "## The worker"), ("client", "## The client")):
            section = text.split(heading)[1].split("\n## ")[0]
            for command in test_page_commands.commands_of_page(re.sub(r"(?ms)^```yaml.*?^```", "", section)):
                printed += run(name, command)
            if name == "hub":
                shutil.copytree(home / "hub/worker", home / "worker/worker")
                shutil.copytree(home / "hub/ann", home / "client/ann")
        self.assertIn("42", printed)
        self.assertIn("calc", printed)
        self.assertRegex(printed, "(?s)42.*plan_completed", printed[-2000:])

    def test_only_certificates_of_the_authority_get_in(self):
        d = self.hub()
        fine = self.handshake(d, "elsewhere.pem")
        self.assertNotIsInstance(fine, str)
        fine.close()
        self.certs("init", dir="foreign")
        self.certs("issue", "stranger", "--client", dir="foreign", to="foreign-out")
        self.certs("issue", "server", "--server", "--host", hosts.HERE)
        self.expired("late")
        for cert in (None, "foreign-out/stranger.pem", "server.pem", "late.pem"):
            self.assertIsInstance(self.handshake(d, cert), str, cert)
        # the command line says what can be the reason
        for way in ({"cert": "foreign-out/stranger.pem"}, {"ca": "foreign-out/ca.pem"},
                    {"url": d.remote.replace(hosts.HERE, "localhost")}):
            refused = self.cli(d, "status", "--timeout", "2s", code=124, **way)
            self.assertIn("refuses the other's certificate", refused.stderr)
        self.assertIn("late.pem: the certificate expired at 2020-01-02", self.cli(d, "status", code=6, cert="late.pem").stderr)
        os.chmod(self.keys / "elsewhere.pem", 0o644)
        self.assertIn("others may read or write the key", self.cli(d, "status", code=6).stderr)
        os.chmod(self.keys / "elsewhere.pem", 0o600)
        self.cli(d, "status")

    def test_a_revoked_certificate_opens_no_port_for_agents_and_nothing_after_a_restart(self):
        (self.keys / "hub2").mkdir()
        for name in ("hub.pem", "ca.pem"):
            shutil.copy(self.keys / name, self.keys / "hub2" / name)
        self.certs("issue", "gone", "--client")
        d = self.hub(lanes="7490-7491")
        d.config.write_text(d.config.read_text().replace("%s/ca.pem" % self.keys, "%s/hub2/ca.pem" % self.keys))
        d.stop()
        d.start(agents=False)
        d.remote = d.ask("supervisor.info")["remote"]
        self.assertNotIsInstance(self.handshake(d, "gone.pem"), str)
        self.certs("revoke", "gone", to="hub2")
        self.agent(d, "calc", "--capacity", "1")
        self.up(d, "calc")
        for lane in (7490, 7491):
            refused = self.handshake(d, "gone.pem", port=lane, role=0x31)
            self.assertIsInstance(refused, str, "a port that was opened after the revocation")
            self.assertIn("alert", refused)  # of TLS: the place is not just taken
        d.stop()
        d.start(agents=False)
        d.remote = d.ask("supervisor.info")["remote"]
        self.assertIsInstance(self.handshake(d, "gone.pem"), str)
        kept = self.handshake(d, "elsewhere.pem")
        self.assertNotIsInstance(kept, str)
        kept.close()

    def expired(self, name):
        """A certificate of the authority whose time is over: the product issues none."""
        work = self.keys / "openssl"
        work.mkdir()
        (work / "index").write_text("")
        (work / "cnf").write_text("[ca]\ndefault_ca=d\n[d]\ndatabase=%s/index\nnew_certs_dir=%s\nrand_serial=yes\ndefault_md=sha256\n"
                                  "policy=p\n[p]\ncommonName=supplied\n[e]\nextendedKeyUsage=clientAuth\n" % (work, work))
        run = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name,
               "-keyout", work / "key", "-out", work / "csr"]
        subprocess.run(run, check=True, capture_output=True)
        run = ["openssl", "ca", "-batch", "-config", work / "cnf", "-in", work / "csr", "-out", work / "crt", "-cert",
               self.keys / "ca/ca.pem", "-keyfile", self.keys / "ca/ca.key", "-startdate", "20200101000000Z", "-enddate",
               "20200102000000Z", "-extensions", "e", "-notext"]
        subprocess.run(run, check=True, capture_output=True)
        with open(os.open(self.keys / (name + ".pem"), os.O_CREAT | os.O_WRONLY, 0o600), "w") as out:
            out.write((work / "crt").read_text() + (work / "key").read_text())


if __name__ == "__main__":
    main()
