"""A fleet beside SQLite and beside systems that others wrote, in the same run, in turns.

usage: fleet.py [--rounds N] [--scenarios S1,S2,S3] [--shards 1,2,4] [--plans N] [--dbos DIR] [--restate DIR]

Baton with SQLite (durability power), with PostgreSQL (one shard), DBOS on the same PostgreSQL, and Restate, with the shapes of
S1 to S3; then S3 at a node of 1, 2 and 4 shards, a client at each shard. DIR: where npm has installed the peer (peers/fleet.sh
does it); without one the peer is left out, and named. Every server flushes each commit. BATON_BENCH_DIR chooses the disk.
Prints tables: microseconds a step, the median of the rounds.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BIN = pathlib.Path(os.environ.setdefault("BATON_BIN", str(ROOT / "build" / "release-tests" / "bin")))
tempfile.tempdir = os.environ.get("BATON_BENCH_DIR", "/var/tmp")
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import pg  # noqa: E402  (the path is set just above)
from harness import until  # noqa: E402


class Stack(contextlib.ExitStack):
    """What pg.Server wants of a test."""

    def addCleanup(self, fn, *args, **kwargs):
        self.callback(fn, *args, **kwargs)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def output(*command, **kwargs):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=600, **kwargs)
    if done.returncode != 0:
        raise RuntimeError("%s: %s" % (command, (done.stdout + done.stderr)[-1500:]))
    return done.stdout


class Bench:
    def __init__(self, stack, args):
        self.stack, self.args, self.databases = stack, args, 0
        self.server = pg.Server(stack, fsync="on")

    def database(self):
        """A new one each time: tables that are empty."""
        self.databases += 1
        self.server.sql("CREATE DATABASE b%d" % self.databases)
        return self.server.url.replace("/postgres?", "/b%d?" % self.databases)

    def steps(self, scenario, *more):
        plans = ["--n", str(self.args.plans)] if self.args.plans and scenario == "S3" else []
        return json.loads(output(BIN / "bench_steps", scenario, "--durability", "power", "--quick", *plans, *more))["per_step_us"]

    def measure(self, name, scenario):
        if name == "Baton, SQLite":
            return self.steps(scenario)
        if name == "Baton, PostgreSQL":
            return self.steps(scenario, "--fleet", self.database())
        if name == "DBOS, PostgreSQL":
            url = "postgresql://fleet@localhost/b%d?host=%s" % (self.databases + 1, self.server.dir)
            self.database()
            return float(output("node", self.args.dbos / "dbos.mjs", url, scenario))
        return self.restate(scenario)

    def restate(self, scenario):
        work = pathlib.Path(tempfile.mkdtemp(prefix="baton-restate-"))
        ingress, admin, node = free_port(), free_port(), free_port()
        env = {**os.environ, "RESTATE_INGRESS__BIND_ADDRESS": "127.0.0.1:%d" % ingress, "RESTATE_ADMIN__BIND_ADDRESS": "127.0.0.1:%d" % admin,
               "RESTATE_BIND_ADDRESS": "127.0.0.1:%d" % node, "RESTATE_ADVERTISED_ADDRESS": "http://127.0.0.1:%d" % node, "RESTATE_BASE_DIR": str(work),
               "RESTATE_LOG_FILTER": "error", "RESTATE_DISABLE_TELEMETRY": "true"}
        with open(work / "log", "wb") as log:
            server = subprocess.Popen([self.args.restate / "node_modules/.bin/restate-server"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env,
                                      cwd=work)
        try:
            until(lambda: listens(ingress) and listens(admin), 20, "Restate listens: " + (work / "log").read_text()[-1000:])
            time.sleep(2)
            return float(output("node", self.args.restate / "restate.mjs", ingress, admin, scenario))
        finally:
            server.terminate()
            server.wait()
            shutil.rmtree(work, ignore_errors=True)

    # ---- several shards ----

    def shards(self, n):
        """Steps a second of S3 at a node of n shards: a client at each, all at once."""
        work = pathlib.Path(tempfile.mkdtemp(prefix="baton-shards-"))
        url = self.database()
        env = {**os.environ, "BATON_FLEET_DURABILITY": "power"}
        output(BIN / "baton", "fleet", "init", url, "--shards", str(n), env=env)
        config = {"listen": {"control": "tcp://127.0.0.1:0", "events": "tcp://127.0.0.1:0"}, "log": {"level": "warn"},
                  "fleet": {"url": url, "node": "bench", "durability": "power"},
                  "agents": [{"agentId": "echo", "command": ["${BATON_BIN}/bench_echo_agent"], "capacity": 64}]}
        (work / "baton.json").write_text(json.dumps(config))
        with open(work / "log", "wb") as log:
            node = subprocess.Popen([BIN / "batond", "--state", work / "state", "--config", work / "baton.json"], stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=log)
        try:
            states = [work / "state/shards" / str(i) for i in range(n)] if n > 1 else [work / "state"]
            until(lambda: all((s / "endpoints.json").exists() for s in states), 30, "all shards are led: " + (work / "log").read_text()[-2000:])
            plans = (self.args.plans or 3000) // n
            drivers = [subprocess.Popen([BIN / "bench_steps", "S3", "--durability", "power", "--quick", "--n", str(plans), "--at", s],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for s in states]
            said = [d.communicate(timeout=600) for d in drivers]
            if any(d.returncode != 0 for d in drivers):
                raise RuntimeError("S3 at %d shards: %s" % (n, [e[-500:] for _, e in said]))
            return sum(json.loads(out)["steps_per_s"] for out, _ in said)
        finally:
            node.terminate()
            node.wait()
            shutil.rmtree(work, ignore_errors=True)


def table(head, rows, figures):
    print("| us a step | " + " | ".join(head) + " |\n|---|" + "---|" * len(head))
    for row in rows:
        found = [figures.get((row, h), []) for h in head]
        print("| %s | %s |" % (row, " | ".join("%.0f" % statistics.median(f) if f else "failed" for f in found)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--scenarios", default="S1,S2,S3")
    p.add_argument("--shards", default="1,2,4")
    p.add_argument("--plans", type=int, default=0, help="of S3; 0 = its own")
    p.add_argument("--dbos", type=lambda at: pathlib.Path(at).resolve())
    p.add_argument("--restate", type=lambda at: pathlib.Path(at).resolve())
    args = p.parse_args()
    names = ["Baton, SQLite", "Baton, PostgreSQL"]
    for name, at in (("DBOS, PostgreSQL", args.dbos), ("Restate", args.restate)):
        if at:
            names.append(name)
        else:
            print("left out: " + name, file=sys.stderr)
    figures, scenarios = {}, [s for s in args.scenarios.split(",") if s]
    shards = [int(s) for s in args.shards.split(",") if s]
    with Stack() as stack:
        bench = Bench(stack, args)
        for n in range(args.rounds):
            for scenario in scenarios:
                for name in names:
                    try:
                        us = bench.measure(name, scenario)
                    except (RuntimeError, AssertionError, subprocess.TimeoutExpired) as e:
                        print("failed: %s %s: %s" % (name, scenario, e), file=sys.stderr, flush=True)
                        continue
                    figures.setdefault((name, scenario), []).append(us)
                    print("%d %s %s %.1f" % (n, name, scenario, us), file=sys.stderr, flush=True)
            for s in shards:
                try:
                    rate = bench.shards(s)
                except (RuntimeError, AssertionError) as e:
                    print("failed: %s" % e, file=sys.stderr, flush=True)
                    continue
                figures.setdefault(("shards", s), []).append(rate)
                print("%d shards %d: %.0f steps/s" % (n, s, rate), file=sys.stderr, flush=True)
    if scenarios:
        table(scenarios, names, figures)
    if shards:
        print("\n| shards at one node | " + " | ".join(map(str, shards)) + " |\n|---|" + "---|" * len(shards))
        print("| steps a second, S3 | %s |" % " | ".join("%.0f" % statistics.median(figures["shards", s]) if ("shards", s) in figures else "failed" for s in shards))


if __name__ == "__main__":
    main()
