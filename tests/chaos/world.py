"""The system under test and what is done to it: a daemon on a small disk, agent processes, proxies, and a monkey."""
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent / "e2e")]

import harness  # noqa: E402  (the path is set just above)
import proxy  # noqa: E402

CONFIG = """
listen: {control: 'tcp://127.0.0.1:0', events: 'tcp://127.0.0.1:0'}
durability: process
policy:
  heartbeatMs: 400
  leaseMs: 2000
  agentWaitMs: 15000
  cancelGraceMs: 1000
  maxFallbacks: 0
  restart: {intensity: 32, periodMs: 1000, backoffMaxMs: 500}
  breaker: {cooldownMs: 300, cooldownMaxMs: 2000}
agents:
  - agentId: spawned
    command: [%(python)s, -B, %(worker)s, --agent, spawned, --log, %(work)s/log.spawned, --seed, '%(seed)s']
    capacity: 2
"""
# Bytes of the daemon's disk: for its files, and for what the journal grows in a second.
DISK = 192 * 1024 * 1024
GROWTH = 512 * 1024


def mount_tmpfs(path, size):
    libc = ctypes.CDLL(None, use_errno=True)
    return os.geteuid() == 0 and libc.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, b"size=%d" % size) == 0


def unmount(path):
    ctypes.CDLL(None).umount2(os.fsencode(path), 2)


class Agent:
    """A process that the test starts; `kind` says how it is reached and whether it keeps to the page."""

    def __init__(self, world, name, agent_id, kind):
        self.world, self.name, self.agent_id, self.kind = world, name, agent_id, kind
        self.log = world.work / ("log." + name)
        self.port_file = world.work / ("port." + name)
        self.lanes = proxy.Proxy(self.port, "%s-%s" % (world.seed, name)) if kind in ("lanes", "both") else None
        self.process = None
        self.stopped = False

    def port(self):
        return int(self.port_file.read_text()) if self.port_file.exists() else None

    def start(self):
        args = [sys.executable, "-B", HERE / "worker.py", "--state", self.world.state, "--agent", self.agent_id,
                "--log", self.log, "--port-file", self.port_file, "--seed", str(self.world.seed)]
        if self.lanes:
            args += ["--advertise", self.lanes.url]
        if self.kind == "both":
            args += ["--control", self.world.control.url]
        if self.agent_id == "delta":  # takes bundles
            args += ["--capacity", "8", "--bundle", "16"]
        if self.kind == "again":
            args += ["--identity", self.world.work / ("identity." + self.name)]
        with open(self.world.work / ("err." + self.name), "ab") as err:
            self.process = subprocess.Popen([str(a) for a in args], stdin=subprocess.DEVNULL, stdout=err, stderr=err)

    def ended(self):
        return self.process is None or self.process.poll() is not None

    def signal(self, number):
        if not self.ended():
            self.process.send_signal(number)


class World:
    def __init__(self, seed, seconds, out):
        self.seed = seed
        self.chance = random.Random("monkey-%d" % seed)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="baton-chaos-"))
        self.state = self.work / "state"
        self.state.mkdir(mode=0o700)
        self.small_disk = mount_tmpfs(self.state, DISK + GROWTH * int(seconds))
        os.chmod(self.state, 0o700)
        self.filler = self.state / "filler"
        self.config = self.work / "baton.yaml"
        self.config.write_text(CONFIG % {"python": sys.executable, "worker": HERE / "worker.py", "work": self.work, "seed": seed})
        self.findings = []
        self.counts = {}
        self.lock = threading.RLock()
        self.process = None
        self.spawner = None
        self.family = set()  # every process that was ever seen below the daemon
        self.wanted = False  # the daemon is to be there
        self.disk_full_at = 0.0
        self.disturbed = time.monotonic()
        self.out = out
        self.control = proxy.Proxy(self.control_port, "%d-control" % seed)
        kinds = (("a1", "alpha", "plain"), ("a2", "alpha", "lanes"), ("b1", "beta", "both"), ("c1", "gamma", "again"), ("c2", "gamma", "plain"),
                 ("d1", "delta", "plain"), ("d2", "delta", "lanes"))
        self.agents = [Agent(self, *k) for k in kinds]

    # ---- what is told ----

    def found(self, kind, text, plan=None):
        with self.lock:
            self.findings.append({"kind": kind, "text": text, "plan": plan})
        self.say("FINDING %s: %s" % (kind, text))

    def count(self, name, n=1):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + n

    def say(self, text):
        with open(self.work / "monkey.log", "a") as f:
            f.write("%.3f %s\n" % (time.time(), text))

    # ---- the daemon ----

    def endpoints(self):
        return json.loads((self.state / "endpoints.json").read_text())

    def control_port(self):
        return int(self.endpoints()["control"].rsplit(":", 1)[1])

    def touch(self):
        self.disturbed = time.monotonic()

    def start(self):
        """Starts the daemon, again and again while the disk is full."""
        for _ in range(5):
            self.touch()
            ready, says = os.pipe()
            with open(self.work / "batond.log", "ab") as log:
                self.process = subprocess.Popen(
                    [harness.BIN / "batond", "--state", self.state, "--config", self.config, "--ready-fd", str(says)],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(says,))
            os.close(says)
            said = os.read(ready, 6)
            os.close(ready)
            if said == b"ready\n":
                self.wanted = True
                self.look()
                self.touch()
                return
            code = self.process.wait()
            self.say("the daemon did not start: exit %d" % code)
            if not self.disk_was_full():
                self.found("start", "the daemon did not start: exit %d" % code)
            self.free_disk()
            time.sleep(0.2)
        raise AssertionError("the daemon does not start:\n" + self.tail())

    def tail(self):
        return (self.work / "batond.log").read_text(errors="replace")[-4000:]

    def look(self):
        """Notes the processes below the daemon."""
        if self.process is not None and self.process.poll() is None:
            found = harness.children_of(self.process.pid)
            self.family |= set(found)
            direct = [p for p in found if self._parent(p) == self.process.pid]
            self.spawner = direct[0] if direct else None

    @staticmethod
    def _parent(pid):
        try:
            with open("/proc/%d/stat" % pid) as f:
                return int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            return 0

    def watch(self):
        """Starts again what has ended; an end that nobody ordered is a finding."""
        if self.wanted and self.process.poll() is not None:
            code = self.process.returncode
            self.wanted = False
            self.touch()
            self.say("the daemon ended: %d" % code)
            if code == 75 and self.disk_was_full():
                self.count("ends on a full disk")
            else:
                self.found("end", "the daemon ended by itself: %d\n%s" % (code, self.tail()))
            self.free_disk()
            self.start()
        for a in self.agents:
            if a.ended():
                a.start()

    def disk_was_full(self):
        return time.monotonic() - self.disk_full_at < 5

    def free_disk(self):
        if self.filler.exists():
            self.filler.unlink()
            self.disk_full_at = time.monotonic()
            self.touch()

    def fill_disk(self):
        self.disk_full_at = time.monotonic() + 3600
        with open(self.filler, "wb", buffering=0) as f:  # a buffer that cannot be written would fail once more when it is closed
            try:
                while True:
                    f.write(b"x" * 65536)
            except OSError:
                pass

    # ---- the monkey ----

    def act(self):
        """One disturbance; it is over when this returns."""
        acts = [(self.kill_daemon, 4), (self.stop_daemon, 3), (self.end_daemon, 1), (self.kill_agent, 6), (self.stop_agent, 4),
                (self.kill_spawned, 3), (self.kill_spawner, 1), (self.stop_spawner, 1), (self.partition, 6)]
        if self.small_disk:
            acts.append((self.full_disk, 1))
        act = self.chance.choices([a for a, _ in acts], [w for _, w in acts])[0]
        self.count(act.__name__)
        self.say(act.__name__)
        self.look()
        act()
        self.say("over")

    def pause(self, low, high):
        """The monkey's own rhythm; what has ended meanwhile is started again."""
        end = time.monotonic() + self.chance.uniform(low, high)
        while time.monotonic() < end:
            time.sleep(0.02)
            self.watch()

    def kill_daemon(self):
        self.wanted = False
        self.touch()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        time.sleep(self.chance.choice((0, 0, 0.2, 1.5)))
        self.start()
        if self.chance.random() < 0.3:  # and once more while it recovers
            time.sleep(self.chance.uniform(0, 0.3))
            self.wanted = False
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.start()

    def end_daemon(self):
        self.wanted = False
        self.touch()
        self.process.terminate()
        try:
            code = self.process.wait(40)
            if code != 0:
                self.found("sigterm", "SIGTERM ends the daemon with %d\n%s" % (code, self.tail()))
        except subprocess.TimeoutExpired:
            self.found("sigterm", "SIGTERM does not end the daemon within 40 s")
            self.process.kill()
            self.process.wait()
        self.start()

    def _freeze(self, pid, low, high):
        try:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(self.chance.uniform(low, high))
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def stop_daemon(self):
        self.touch()
        self._freeze(self.process.pid, 0.2, 4)
        self.touch()

    def stop_spawner(self):
        if self.spawner:
            self.touch()
            self._freeze(self.spawner, 0.2, 3)
            self.touch()

    def kill_spawner(self):
        if self.spawner:
            self.touch()
            try:
                os.kill(self.spawner, signal.SIGKILL)
            except ProcessLookupError:
                pass
            deadline = time.monotonic() + 10  # without its spawner the daemon ends, or has another one
            while self.process.poll() is None and time.monotonic() < deadline:
                self.look()
                time.sleep(0.05)
            if self.process.poll() is not None:
                self.say("the daemon ended with its spawner: %d" % self.process.returncode)
                self.wanted = False
                self.start()

    def kill_agent(self):
        a = self.chance.choice(self.agents)
        a.signal(signal.SIGKILL)
        if not a.ended():
            a.process.wait()

    def stop_agent(self):
        a = self.chance.choice(self.agents)
        if not a.ended():
            self._freeze(a.process.pid, 0.2, 5)

    def kill_spawned(self):
        mine = [p for p in self.family if harness.alive(p) and p != self.spawner and self._is_worker(p)]
        if mine:
            pid = self.chance.choice(sorted(mine))
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    @staticmethod
    def _is_worker(pid):
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as f:
                return b"worker.py" in f.read()
        except OSError:
            return False

    def partition(self):
        relays = [self.control] + [a.lanes for a in self.agents if a.lanes]
        relay = self.chance.choice(relays)
        self.say("  " + relay.fault())
        time.sleep(self.chance.uniform(0.1, 3))
        relay.heal()

    def full_disk(self):
        self.fill_disk()
        time.sleep(self.chance.uniform(0.3, 2))
        self.free_disk()

    # ---- the end ----

    def heal(self):
        self.control.heal()
        for a in self.agents:
            if a.lanes:
                a.lanes.heal()
        self.free_disk()

    def stop(self):
        """A clean end. Nothing of the daemon's may be left."""
        self.look()
        self.wanted = False
        if self.process.poll() is None:
            self.process.terminate()
            try:
                code = self.process.wait(60)
                if code != 0:
                    self.found("sigterm", "SIGTERM ends the daemon with %d" % code)
            except subprocess.TimeoutExpired:
                self.found("sigterm", "SIGTERM does not end the daemon within 60 s")
        deadline = time.monotonic() + 20
        while self.orphans() and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in self.orphans():
            self.found("orphan", "process %d of the daemon is left" % pid)

    def orphans(self):
        """Processes with our state directory in their environment, except those that we started."""
        at = os.stat(self.state)
        mine = [b"BATON_STATE=%s\0" % os.fsencode(self.state), b"BATON_SPAWNED=%x.%x\0" % (at.st_dev, at.st_ino)]
        ours = {a.process.pid for a in self.agents if a.process}
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                told = (entry / "environ").read_bytes() + b"\0"
                if any(m in told for m in mine) and int(entry.name) not in ours and harness.alive(int(entry.name)):
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    def close(self, keep):
        for a in self.agents:
            if not a.ended():
                a.process.kill()
                a.process.wait()
            if a.lanes:
                a.lanes.close()
        self.control.close()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in self.orphans():
            os.kill(pid, signal.SIGKILL)
        if keep and self.small_disk:
            shutil.copytree(self.state, self.work / "state.kept", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.sock", "filler"))
        if self.small_disk:
            unmount(self.state)
        if not keep:
            shutil.rmtree(self.work, ignore_errors=True)
