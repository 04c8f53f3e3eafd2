"""Real daemons, real agents, real sockets: what the end-to-end tests share. Standard library only.

    class T(BatonTest):
        def test_something(self):
            d = self.daemon()                 # its own state directory, free ports, the bundled agents
            out = d.cli("run", "--plan", plan_file)

Every process that a test starts is ended by its id when the test ends; every wait has a deadline and watches for what
it waits for.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
BIN = pathlib.Path(os.environ.get("BATON_BIN", ROOT / "build" / "dev" / "bin"))

import sealed  # noqa: E402  (the path is set just above)
import sp  # noqa: E402
import event_order  # noqa: E402

EXEC = """  - agentId: exec
    command: ["${BATON_BIN}/baton-agent-exec"]
    capacity: 4
    settings:
      commands:
        - {id: echo, argv: ["echo", "{text}"], description: "Says a text.", output: text, effects: idempotent}
        - {id: wait, argv: ["%(here)s/slow.sh", "%(work)s/executions", "{name}", "{seconds}"], description: "Takes a while.", output: text, effects: idempotent}
        - {id: wait-unsafe, argv: ["%(here)s/slow.sh", "%(work)s/executions", "{name}", "{seconds}"], description: "Takes a while, once.", output: text, effects: unsafe}
"""
BUNDLED = """
agents:
  - agentId: files
    command: ["${BATON_BIN}/baton-agent-files"]
    capacity: 4
    settings: {roots: ["%(work)s", "/var/log"], writeRoots: ["%(work)s"]}
  - agentId: calc
    command: ["${BATON_BIN}/baton-agent-calc"]
    capacity: 4
  - agentId: sql
    command: ["${BATON_BIN}/baton-agent-sql"]
    capacity: 3
    settings: {databaseDir: "%(work)s/db", readOnly: false}
""" + EXEC


def until(check, seconds, what):
    """Polls until check() is true; its value. Fails at the deadline with `what`, or with what that returns then. Less than 10 seconds
    is a promise that the test holds; 10 or more is patience, and a busy machine gets four times as much of it."""
    if seconds >= 10:
        seconds *= 4
    deadline = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("not within %g s: %s" % (seconds, what() if callable(what) else what))
        time.sleep(0.01)


def sanitized():
    """Whether the programs under test were built with sanitizers, which makes their size and speed another's."""
    cache = BIN.parent / "CMakeCache.txt"
    return cache.is_file() and re.search(r"^BATON_SANITIZE:\w+=\S", cache.read_text(), re.M) is not None


def of_a_verb(env):
    """The environment of one call of `baton`. Its leaks are looked for where every call runs in one process (unit.test_cli_asked):
    here there are thousands, and the check is a third of what each costs."""
    return {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", ""), **(env or {})}


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def children_of(pid):
    """Process ids of all descendants."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/%s/stat" % entry) as f:
                    parents.setdefault(int(f.read().rsplit(")", 1)[1].split()[1]), []).append(int(entry))
            except OSError:
                pass
    found, todo = [], [pid]
    while todo:
        for child in parents.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return found


class Daemon:
    def __init__(self, test, config=None, durability="process", args=(), prefix=()):
        self.test = test
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="baton-e2e-"))
        self.state = self.work / "state"
        self.config = self.work / "baton.yaml"
        text = "listen: {control: 'tcp://127.0.0.1:0', events: 'tcp://127.0.0.1:0'}\ndurability: %s\n" % durability
        text += (BUNDLED if config is None else config) % {"work": self.work, "here": HERE}
        self.config.write_text(text)
        (self.work / "db").mkdir()
        self.args = list(args)
        self.env = {}  # beside the environment of the test
        self.prefix = list(prefix)  # of the command line: a program that runs the daemon
        self.credential = None  # (id, file): what the test's own requests are sealed with, instead of the token
        self.process = None

    def start(self, agents=True):
        ready, says = os.pipe()
        log = open(self.work / "batond.log", "ab")
        self.process = self.popen(log, "--ready-fd", str(says), pass_fds=(says,))
        os.close(says)
        log.close()
        try:
            if os.read(ready, 6) != b"ready\n":
                self.process.wait()
                raise AssertionError("batond did not start:\n" + self.log())
        finally:
            os.close(ready)
        if agents:
            self.wait_agents()
        return self

    def popen(self, log, *args, **kwargs):
        return subprocess.Popen([*self.prefix, BIN / "batond", "--state", self.state, "--config", self.config, *args, *self.args],
                                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **self.env}, **kwargs)

    def log(self):
        return (self.work / "batond.log").read_text(errors="replace")[-6000:]

    def wait_agents(self, seconds=20):
        def up():
            agents = self.ask("agents.list")["agents"]
            return all(a["state"] == "up" for a in agents)
        until(up, seconds, "all agents up:\n" + self.log())

    def endpoints(self):
        return json.loads((self.state / "endpoints.json").read_text())

    def token(self):
        return (self.state / "token").read_text().strip()

    def ask(self, type_, timeout=15.0, **fields):
        """One request over raw SP in JSON; raises AssertionError on a refusal."""
        answer = self.ask_raw(type_, timeout, **fields)
        if not answer["ok"]:
            raise AssertionError("%s refused: %s" % (type_, answer["error"]))
        return answer

    def ask_raw(self, type_, timeout=15.0, **fields):
        if self.credential is not None:
            with sealed.Session(self.endpoints()["control"], self.credential[0], sealed.key_of(self.credential[1]), timeout) as s:
                return s.ask(type_, **fields)
        with sp.Req(self.endpoints()["control"], timeout) as req:
            body = {"v": 1, "type": type_, "id": "t", "token": self.token(), **fields}
            return json.loads(req.ask(json.dumps(body).encode()))

    def cli(self, *args, code=0, timeout=60, env=None, stdin=None):
        """Runs `baton`; its stdout. Fails when the exit code is another one."""
        done = self.cli_any(*args, timeout=timeout, env=env, stdin=stdin)
        if done.returncode != code:
            raise AssertionError("baton %s: exit %d, expected %d\n%s\n%s\n--- log\n%s" % (
                " ".join(map(str, args)), done.returncode, code, done.stdout, done.stderr, self.log()))
        return done.stdout

    def cli_any(self, *args, timeout=60, env=None, stdin=None):
        return subprocess.run([BIN / "baton", *map(str, args), "--state", self.state], capture_output=True, text=True,
                              timeout=timeout, env=of_a_verb(env), input=stdin)

    def submit(self, plan, **fields):
        return self.ask("plan.submit", plan=plan, **fields)["planId"]

    def wait_plan(self, plan_id, seconds=30):
        def ended():
            view = self.ask("plan.get", planId=plan_id)
            return view if view["status"] in ("completed", "planned", "failed", "cancelled", "quarantined") else None
        return until(ended, seconds, "plan %s ends\n%s" % (plan_id, self.log()))

    def events(self, plan_id=None, **fields):
        if plan_id:
            fields["planId"] = plan_id
        found, seq = [], 1
        while True:
            page = self.ask("events.read", fromSeq=seq, limit=1000, **fields)
            found += page["events"]
            if page["nextSeq"] > page["lastSeq"]:
                return found
            seq = page["nextSeq"]

    def agent_pids(self):
        return {a["card"]["agentId"]: [i["pid"] for i in a.get("instances", [])] for a in self.ask("agents.list")["agents"]}

    def executions(self):
        path = self.work / "executions"
        return path.read_text().split() if path.exists() else []

    def kill9(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=20):
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(seconds)

    def check_event_order(self):
        """The order of the events of every plan, while the daemon can still be asked. See event_order.py."""
        if self.process is None or self.process.poll() is not None:
            return
        try:
            found = self.events()
        except (OSError, EOFError, ValueError):
            return  # it is on its way out, or deaf by the test's design
        plans = {}
        for event in found:
            if event.get("planId"):
                plans.setdefault(event["planId"], []).append(event)
        for plan_id, events in plans.items():
            view = None
            if len(plans) <= 20 or events[0]["planSeq"] != 1:
                view = self.ask_raw("plan.get", planId=plan_id)
                if not view["ok"] and view["error"]["code"] == "GONE":
                    continue  # deleted: a part of its rows may be left for a moment
                if view.get("planSeq") != events[-1]["planSeq"]:
                    events = self.events(plan_id)  # it went on meanwhile
                    view = None
            event_order.check(events, view)

    def clean(self):
        spawner = [p for p in children_of(1) if self._is_ours(p)]
        if self.process is not None and self.process.poll() is None:
            spawner += children_of(self.process.pid)
            self.process.kill()
            self.process.wait()
        for pid in spawner + self._left():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.work, ignore_errors=True)

    def _left(self):
        """What our agents started: with daemon and spawner both killed nobody ends it before the next start."""
        at = self.state.stat() if self.state.exists() else None
        mine = [b"BATON_STATE=%s\0" % os.fsencode(self.state)]
        if at:
            mine.append(b"BATON_SPAWNED=%x.%x\0" % (at.st_dev, at.st_ino))
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                told = (entry / "environ").read_bytes() + b"\0"
                if any(m in told for m in mine):
                    found.append(int(entry.name))
            except OSError:
                pass  # gone, or not ours to look into
        return found

    def _is_ours(self, pid):
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as f:
                return os.fsencode(self.state) in f.read()
        except OSError:
            return False


class BatonTest(unittest.TestCase):
    def daemon(self, **kwargs):
        """start False: the test starts it."""
        d = Daemon(self, **{k: v for k, v in kwargs.items() if k not in ("agents", "start")})
        self.addCleanup(d.clean)
        self.addCleanup(d.check_event_order)
        return d.start(agents=kwargs.get("agents", True)) if kwargs.get("start", True) else d

    def write_plan(self, daemon, name, plan):
        path = daemon.work / name
        path.write_text(plan if isinstance(plan, str) else json.dumps(plan))
        return path


def read_yaml(text):
    """What the product reads in a YAML file."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        return json.loads(subprocess.run([BIN / "yaml_json", file.name], capture_output=True, text=True, timeout=30, check=True).stdout)


def main():
    unittest.main(verbosity=2)
