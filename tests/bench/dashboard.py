"""S12: the dashboard in Chromium: how soon it is painted, and how soon an event is on the screen at 1,000 events a second.

    usage: sh tests/bench/run.sh S12 [--n PLANS] [--rate EVENTS]     (needs chromium, and playwright-core: sh tests/peers/install.sh)

The daemon has `n` plans (10,000) and makes `rate` events a second: plans of one step, submitted at a steady pace. first_paint_ms:
the browser's own first contentful paint of the list, logged in, with an empty cache and with a full one; rows_ms: until rows are there.
update_ms: from the time in an event (plan_step_completed of a plan of 28 waits, whose page is open) to the frame that shows it,
by the same clock. One line of JSON.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "support"), str(HERE.parent / "peers")]
import harness  # noqa: E402
import peers  # noqa: E402

CONFIG = """
gateway: {}
agents:
  - agentId: calc
    command: ["${BATON_BIN}/baton-agent-calc"]
    capacity: 16
"""
SMALL = {"steps": [{"stepId": "a", "agentId": "calc", "skill": "evaluate", "task": "Add one and two", "parameters": {"expression": "1+2"}}]}
PROBE = {"goal": "The plan that is watched", "steps": [{"stepId": "w%d" % i, "wait": {"forMs": 300}, "task": "Wait for a moment"} for i in range(28)]}
PER_PLAN = 6  # events


def fill(daemon, n):
    """n plans, by four clients."""
    todo, lock = iter(range(n)), threading.Lock()

    def work():
        while True:
            with lock:
                if next(todo, None) is None:
                    return
            daemon.submit(SMALL)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def pace(daemon, rate, stop):
    """Submits plans so that `rate` events come in a second; how many came is measured, not assumed."""
    began, n = time.monotonic(), 0
    while not stop.is_set():
        daemon.submit(SMALL)
        n += 1
        stop.wait(max(0, began + n * PER_PLAN / rate - time.monotonic()))


def main():
    args = argparse.ArgumentParser()
    args.add_argument("scenario", nargs="?")
    args.add_argument("--n", type=int, default=10000)
    args.add_argument("--rate", type=int, default=1000)
    args = args.parse_args()
    daemon = harness.Daemon(None, config=CONFIG, durability="process")
    stop = threading.Event()
    try:
        daemon.start()
        file = daemon.state / "gateway.json"
        harness.until(lambda: file.exists() and "url" in json.loads(file.read_text()), 20, "the gateway")
        print("making %d plans" % args.n, file=sys.stderr)
        fill(daemon, args.n)
        p = subprocess.Popen(["node", HERE.parent / "e2e" / "dashboard.mjs", "speed", json.dumps({"url": json.loads(file.read_text())["url"], "token": daemon.token(), "modules": str(peers.DIR / "node_modules")})],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        feeder, probe, figures, before = None, None, None, 0
        for line in p.stdout:
            asked = json.loads(line)
            answer = {}
            if asked.get("do") == "begin":
                feeder = threading.Thread(target=pace, args=(daemon, args.rate, stop))
                feeder.start()
                time.sleep(2)
                before = (time.monotonic(), daemon.ask("supervisor.info")["lastSeq"])
                probe = daemon.submit(PROBE)
                answer = {"planId": probe}
            elif asked.get("do") == "end":
                daemon.wait_plan(probe, 60)
                after = (time.monotonic(), daemon.ask("supervisor.info")["lastSeq"])
                stop.set()
                feeder.join()
            else:
                figures = asked
                continue
            p.stdin.write(json.dumps(answer) + "\n")
            p.stdin.flush()
        if p.wait() != 0 or figures is None:
            raise SystemExit("the browser failed")
        shown = figures.pop("shown")
        late = [shown[e["stepId"]] - e["tsMs"] for e in daemon.events(probe) if e["type"] == "plan_step_completed" and e["stepId"] in shown]
        late.sort()
        print(json.dumps({"scenario": "S12", "plans": args.n, **figures, "events_per_s": round((after[1] - before[1]) / (after[0] - before[0])), "updates": len(late),
                          "update_ms_p50": statistics.median(late), "update_ms_max": late[-1]}))
    finally:
        stop.set()
        daemon.clean()


if __name__ == "__main__":
    main()
