"""What a flood costs the others: 32 readers of a plan of 10,000 steps, 200 connections that send garbage,
1,000 idle ones.

    nice python3 tests/bench/floods.py [readers=32] [garbage=200] [idle=1000] [steps=10000] [seconds=10]

BATON_BIN names the programs (default: build/dev/bin; figures need a release build). Prints the time of
supervisor.info, agent.heartbeat and plan.cancel in ms (median, p99, longest), the requests that failed, the most
memory of the daemon, the reads a second, the registrations that the daemon dropped, and how many of its cycles took
more than 5, 20 and 100 ms of processor time: on a busy machine these count, not the times.
"""
import json
import os
import pathlib
import resource
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import harness  # noqa: E402
import probe  # noqa: E402
from harness import sp  # noqa: E402

CONFIG = """
agents:
  - {agentId: calc, command: ["${BATON_BIN}/baton-agent-calc"], capacity: 16}
"""
GARBAGE = b"\xde\xff\xff" + b"\xa1a\xc0" * 1300000  # a map that ends too early, close to 4 MiB


def dial(url):
    host, port = url[len("tcp://"):].rsplit(":", 1)
    s = socket.create_connection((host, int(port)), 10)
    s.sendall(b"\0SP\0" + struct.pack(">HH", sp.REQ, 0))
    return s


def flood(kind, url, token, n, plan):
    """One process of the load: n threads or connections of a kind, until its standard input ends."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    done = [0]
    read = json.dumps({"v": 1, "type": "plan.get", "id": "r", "token": token, "planId": plan}).encode()

    def work():
        while True:
            try:
                with sp.Req(url, 60) as req:
                    while True:
                        req.ask(GARBAGE if kind == "garbage" else read)
                        done[0] += 1
            except (OSError, EOFError):
                time.sleep(0.05)

    held = []
    if kind == "idle":
        for _ in range(n):
            try:
                held.append(dial(url))
            except OSError:
                break
    else:
        for _ in range(n):
            threading.Thread(target=work, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    print(done[0] + len(held), flush=True)
    os._exit(0)


class Clock(threading.Thread):
    """Asks one kind of question every 20 ms until it is stopped, each over a connection that it keeps."""

    def __init__(self, ask):
        super().__init__(daemon=True)
        self.ask, self.times, self.lost, self.going = ask, [], 0, True

    def run(self):
        while self.going:
            began = time.monotonic()
            try:
                self.ask()
                self.times.append((time.monotonic() - began) * 1000)
            except (OSError, EOFError, AssertionError):
                self.lost += 1
                self.times.append((time.monotonic() - began) * 1000)
            time.sleep(0.02)

    def line(self, name):
        t = sorted(self.times) or [0]
        return "%-10s n %5d  p50 %7.1f  p99 %8.1f  max %8.1f  lost %d" % (
            name, len(t), t[len(t) // 2], t[min(len(t) - 1, int(len(t) * 0.99))], t[-1], self.lost)


class Asker:
    """A connection that is dialed again when it broke."""

    def __init__(self, d):
        self.d, self.req = d, None
        self.url, self.token = d.endpoints()["control"], d.token()

    def __call__(self, type_, **fields):
        body = json.dumps({"v": 1, "type": type_, "id": "q", "token": self.token, **fields}, separators=(",", ":")).encode()
        try:
            self.req = self.req or sp.Req(self.url, 30)
            answer = json.loads(self.req.ask(body))
        except (OSError, EOFError):
            self.req = None
            raise
        assert answer["ok"], answer
        return answer


def clocks_of(d):
    info, beat, cancel = Asker(d), Asker(d), Asker(d)
    agent = probe.Probe(d, "beater", beat=False, work=lambda r: time.sleep(3600))
    who = {"instanceId": agent.me["instanceId"], "epoch": agent.epoch}
    waits = {"steps": [{"stepId": "a", "type": "human_review", "task": "wait for a person"}]}

    def cancelled():
        cancel("plan.cancel", planId=cancelled.plan)
        cancelled.plan = cancel("plan.submit", plan=waits)["planId"]
    cancelled.plan = cancel("plan.submit", plan=waits)["planId"]
    return {"info": Clock(lambda: info("supervisor.info")),
            "heartbeat": Clock(lambda: beat("agent.heartbeat", **who)),
            "cancel": Clock(cancelled)}


def rss(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


def prepared(d, n):
    """Starts the daemon with a finished plan of n steps; its id. FLOODS_STATE: a directory that keeps it."""
    kept = pathlib.Path(os.environ.get("FLOODS_STATE", d.work / "kept"))
    if not kept.exists():
        d.start()
        steps = [{"stepId": "%d" % i, "agentId": "calc", "skill": "evaluate", "task": "add",
                  "parameters": {"expression": "%d+1" % i}} for i in range(n)]
        began = time.monotonic()
        plan = Asker(d)("plan.submit", plan={"steps": steps})["planId"]
        while d.ask("plan.list", limit=1)["plans"][0]["status"] != "completed":
            time.sleep(0.5)
        print("plan of %d steps: %.1f s" % (n, time.monotonic() - began))
        d.stop()
        kept.mkdir()
        shutil.copy(d.state / "journal.db", kept)
    d.state.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(kept / "journal.db", d.state)
    d.start()
    return d.ask("plan.list", limit=1)["plans"][0]["planId"]


def main(options):
    n = {"readers": 32, "garbage": 200, "idle": 1000, "steps": 10000, "seconds": 10}
    n.update((k, int(v)) for k, v in (o.split("=") for o in options))
    d = harness.Daemon(None, CONFIG)
    load = []
    try:
        plan = prepared(d, n["steps"])
        for kind, procs in (("idle", 1), ("garbage", 2), ("readers", 2)):
            for _ in range(procs if n[kind] else 0):
                load.append((kind, subprocess.Popen(
                    ["nice", "-n", "10", sys.executable, __file__, "--flood", kind, d.endpoints()["control"], d.token(),
                     str(n[kind] // procs), plan], stdin=subprocess.PIPE, stdout=subprocess.PIPE)))
        for _, p in load:
            p.stdout.readline()
        clocks = clocks_of(d)
        before = d.ask("supervisor.stats")
        for c in clocks.values():
            c.start()
        most, until = 0, time.monotonic() + n["seconds"]
        while time.monotonic() < until:
            most = max(most, rss(d.process.pid))
            time.sleep(0.02)
        for c in clocks.values():
            c.going = False
        counts = {}
        for kind, p in load:
            p.stdin.close()
            counts[kind] = counts.get(kind, 0) + int(p.stdout.readline() or 0)
        for c in clocks.values():
            c.join(60)
        for name, c in clocks.items():
            print(c.line(name))
        after = d.ask("supervisor.stats")
        names = ("turns", "cyclesOver5Ms", "cyclesOver20Ms", "cyclesOver100Ms")
        print("cycles     %d; of processor time over 5 ms %d, over 20 ms %d, over 100 ms %d; the longest since the start %.1f ms" % (
            *(after.get(name, 0) - before.get(name, 0) for name in names), after["longestCycleUs"] / 1000))
        log = (d.work / "batond.log").read_text(errors="replace")
        print("memory     most %.0f MiB; %s; dropped registrations %d" % (
            most, " ".join("%s %d" % kv for kv in counts.items()), log.count("agent.down")))
    finally:
        for _, p in load:
            p.kill()
        d.clean()
        if os.environ.get("FLOODS_LOG"):
            print(log[:6000])
        os._exit(0)  # threads of the probe


if __name__ == "__main__":
    if sys.argv[1:2] == ["--flood"]:
        flood(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), sys.argv[6])
    else:
        main(sys.argv[1:])
