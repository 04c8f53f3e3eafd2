"""S10: results by reference. A large CSV file is joined with a small one and grouped, by the bundled agents alone.

    usage: sh tests/bench/run.sh S10 [--rows N] [--others N] [--mib N] [--keep]

`files.csv artifact: true` of both files, `sql.load` of both artifacts, one `sql.query`. With --mib the large file is that
big and the rows follow. Seconds are from plan.submit to the plan's end; memory is the peak of each process (VmHWM of
/proc) and its processor time, the daemon's included. The answer is compared with Python's own. One line of JSON.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "support")]
import harness  # noqa: E402

CONFIG = """
artifacts: {maxBytes: 0}
agents:
  - agentId: files
    command: ["${BATON_BIN}/baton-agent-files"]
    capacity: 2
    settings: {roots: ["%(work)s"]}
  - agentId: sql
    command: ["${BATON_BIN}/baton-agent-sql"]
    settings: {databaseDir: "%(work)s/db", readOnly: false, maxDatabaseBytes: 17179869184}
"""
QUERY = """SELECT c.region, count(*) AS n, sum(o.amount) AS amount, min(o.day) AS first
FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.region ORDER BY c.region"""


class NoTest:
    def addCleanup(self, *_):
        pass


def write_files(work, rows, others, mib):
    """The two files, and the answer."""
    dice = random.Random(7)
    regions = {i: "region %02d" % dice.randrange(40) for i in range(1, others + 1)}
    with open(work / "customers.csv", "w") as f:
        f.write("id,name,region\n")
        for i, region in regions.items():
            f.write('%d,"Customer %d, Ltd.",%s\n' % (i, i, region))
    found = collections.defaultdict(lambda: [0, 0, "9"])
    n = size = 0
    with open(work / "orders.csv", "w", buffering=1 << 20) as f:
        f.write("id,customer,day,amount,note\n")
        while n < rows or size < mib << 20:
            n += 1
            customer, amount = dice.randint(1, others), dice.randint(1, 100000)
            day = "2026-%02d-%02d" % (dice.randint(1, 12), dice.randint(1, 28))
            size += f.write("%d,%d,%s,%d,paid by transfer %d\n" % (n, customer, day, amount, n % 1000))
            group = found[regions[customer]]
            group[0] += 1
            group[1] += amount
            group[2] = min(group[2], day)
    return n, [[region, *found[region]] for region in sorted(found)]


def plan():
    steps = []
    for name in ("orders", "customers"):
        steps.append({"stepId": "read-" + name, "agentId": "files", "skill": "csv", "task": "Read the file of " + name,
                      "dependsOn": [], "parameters": {"path": name + ".csv", "artifact": True}})
        steps.append({"stepId": "load-" + name, "agentId": "sql", "skill": "load", "task": "Load the table of " + name,
                      "dependsOn": ["read-" + name],
                      "parameters": {"table": name, "artifact": "{{results.read-%s.artifact}}" % name}})
    steps.append({"stepId": "join", "agentId": "sql", "skill": "query", "task": "Join both and sum up by region",
                  "dependsOn": ["load-orders", "load-customers"], "parameters": {"sql": QUERY}})
    return {"steps": steps, "policy": {"stepTimeoutMs": 0}}


def peak_mib(pid):
    for line in pathlib.Path("/proc/%d/status" % pid).read_text().splitlines():
        if line.startswith("VmHWM"):
            return round(int(line.split()[1]) / 1024, 1)
    return None


def cpu_s(pid):
    fields = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario")
    parser.add_argument("--rows", type=int, default=100000)
    parser.add_argument("--others", type=int, default=2000)
    parser.add_argument("--mib", type=int, default=0)
    parser.add_argument("--keep", action="store_true")
    args, _ = parser.parse_known_args()
    harness.tempfile.tempdir = os.environ.get("BATON_BENCH_DIR", "/var/tmp")
    d = harness.Daemon(NoTest(), config=CONFIG)
    try:
        rows, expected = write_files(d.work, args.rows, args.others, args.mib)
        d.start()
        began = time.monotonic()
        plan_id = d.submit(plan())
        view = d.wait_plan(plan_id, 3600)
        seconds = time.monotonic() - began
        if view["status"] != "completed":
            raise SystemExit(json.dumps(view, indent=1))
        data = d.ask("plan.result", planId=plan_id, stepId="join")["result"]["data"]
        if data["rows"] != expected:
            raise SystemExit("wrong answer: %s\nexpected: %s" % (data["rows"][:3], expected[:3]))
        pids = d.agent_pids()
        memory = {"batond": peak_mib(d.process.pid), **{a: max(peak_mib(p) for p in ps) for a, ps in pids.items()}}
        cpu = {"batond": cpu_s(d.process.pid), **{a: sum(map(cpu_s, ps)) for a, ps in pids.items()}}
        print(json.dumps({"scenario": "S10", "rows": rows, "bytes": (d.work / "orders.csv").stat().st_size,
                          "seconds": round(seconds, 3), "peak_mib": memory, "sum_mib": round(sum(memory.values()), 1), "cpu_s": cpu,
                          "steps_ms": {s["stepId"]: s["durationMs"] for s in view["steps"]}}))
    finally:
        if d.process is not None:
            d.stop()
        if args.keep:
            print(d.work, file=sys.stderr)
        else:
            harness.shutil.rmtree(d.work, ignore_errors=True)


if __name__ == "__main__":
    main()
