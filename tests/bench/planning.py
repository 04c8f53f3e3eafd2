"""S9: what planning by a model costs beside the model itself, and whether memory stays flat over a thousand plans.

    usage: sh tests/bench/run.sh S9 [--n N]        (BATON_BIN: where the programs are)

A mock of a model answers at once with the same plan; `ref_http_ms` is one request of the same size straight to it, over
one connection, in the same run. `overhead_ms` = a plan from plan.submit (dryRun: made and checked, not run) to its end in
the client's hand, without that reference. Rate: `inflight` plans at a time, the orchestrator with 8 lanes. Resident memory
of daemon and orchestrator after a fifth of the plans and at the end. One line of JSON.
"""
import argparse
import http.client
import json
import os
import pathlib
import statistics
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "support")]
import harness  # noqa: E402
from harness import sp  # noqa: E402
import mock_llm  # noqa: E402

CONFIG = """
policy: {heartbeatMs: 1000}
llm:
  providers: [{api: openai, baseUrl: "URL", model: m, stream: false, attempts: 1}]
  capacity: 8
agents:
  - agentId: calc
    command: ["${BATON_BIN}/baton-agent-calc"]
"""
PLAN = json.dumps({"description": "sums", "steps": [
    {"stepId": "s%d" % i, "agentId": "calc", "skill": "evaluate", "task": "add the numbers of step %d" % i,
     "parameters": {"expression": "%d+1" % i}, "dependsOn": ["s%d" % (i - 1)] if i else []} for i in range(5)]})


class Forgetful(list):
    """What was asked is not kept: it would be most of this program's memory."""

    def append(self, item):
        pass


class Client:
    """One connection that is kept."""

    def __init__(self, daemon):
        self.req, self.token = sp.Req(daemon.endpoints()["control"], 60), daemon.token()

    def ask(self, type_, **fields):
        answer = json.loads(self.req.ask(json.dumps({"v": 1, "type": type_, "id": "b", "token": self.token, **fields}).encode()))
        if not answer["ok"]:
            raise SystemExit("%s: %s" % (type_, answer["error"]["message"]))
        return answer


def one(client, n):
    """Seconds from submit to the plan's end."""
    began = time.monotonic()
    made = client.ask("plan.submit", goal="sums of run %d" % n, planner="llm", dryRun=True)
    seq = made["seq"]
    while True:
        page = client.ask("events.read", fromSeq=seq, planId=made["planId"], types=["plan_completed"], waitMs=20000)
        if page["events"]:
            if page["events"][0]["status"] != "completed":
                raise SystemExit("a plan failed: %s" % page["events"][0])
            return time.monotonic() - began
        seq = page["nextSeq"]


def reference(mock, body, n):
    """Milliseconds of a request of the same size straight to the mock."""
    link, times = http.client.HTTPConnection("127.0.0.1", mock.port), []
    for _ in range(n):
        began = time.monotonic()
        link.request("POST", "/ok/v1/chat/completions", body, {"Content-Type": "application/json"})
        link.getresponse().read()
        times.append((time.monotonic() - began) * 1000)
    return statistics.median(times)


def resident(pid):
    with open("/proc/%d/statm" % pid) as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def many(daemon, n, inflight, pids):
    """n plans by `inflight` clients: seconds, and the memory of the processes after a fifth of them and at the end."""
    todo, lock, done = iter(range(n)), threading.Lock(), []

    def work():
        client = Client(daemon)
        while True:
            with lock:
                k = next(todo, None)
            if k is None:
                return
            one(client, k)
            with lock:
                done.append(k)
                if len(done) == n // 5:
                    early.extend(resident(p) for p in pids)
    early = []
    began = time.monotonic()
    threads = [threading.Thread(target=work) for _ in range(inflight)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return time.monotonic() - began, early, [resident(p) for p in pids]


def main():
    args = argparse.ArgumentParser()
    args.add_argument("scenario", nargs="?")
    args.add_argument("--n", type=int, default=1000)
    args.add_argument("--inflight", type=int, default=8)
    args.add_argument("--durability", default="process")
    args = args.parse_args()
    asked = []

    def brain(question):
        asked.append(len(json.dumps(question["body"])))
        return PLAN
    mock = mock_llm.Mock(brain=brain)
    mock.journal = Forgetful()
    daemon = harness.Daemon(None, config=CONFIG.replace("URL", mock.url("ok")), durability=args.durability)
    try:
        daemon.start()
        client = Client(daemon)
        for n in range(20):
            one(client, n)
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * asked[-1]}], "response_format": {"type": "json_object"}})
        before = reference(mock, body, 100)
        times = [one(client, n) * 1000 for n in range(min(args.n, 200))]
        after = reference(mock, body, 100)
        ref = min(before, after)
        pids = [daemon.process.pid] + daemon.agent_pids()["orchestrator"]
        seconds, early, late = many(daemon, args.n, args.inflight, pids)
        total = statistics.median(times)
        print(json.dumps({
            "scenario": "S9", "n": args.n, "durability": args.durability, "plan_ms": round(total, 2), "p99_ms": round(sorted(times)[int(len(times) * 0.99) - 1], 2),
            "ref_http_ms": round(ref, 2), "overhead_ms": round(total - ref, 2), "ratio": round(total / ref, 2), "prompt_bytes": asked[-1],
            "plans_per_minute": round(args.n / seconds * 60), "inflight": args.inflight,
            "rss": {"daemon": [early[0], late[0]], "orchestrator": [early[1], late[1]]}}))
    finally:
        daemon.clean()
        mock.close()


main()
