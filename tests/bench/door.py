"""What lookers cost the daemon: an exporter of traces that is there, down or slow, and readers of events over HTTP.

    nice python3 tests/bench/door.py [rounds=5] [plans=40] [readers=1000] [rate=1000] [seconds=10]

BATON_BIN names the programs (default: build/dev/bin; figures need a release build). The daemon runs S1's kind of plan, a
chain of 20 steps, one after the other. Each way of looking takes its turn between two rounds of none, and is compared with
their mean: processor time of the daemon a step, which is steady on a busy machine, and wall time, which is not. Then
`readers` clients read /v1/events while plans make about `rate` events a second: memory of the gateway, what they were
behind the event's own time, and the daemon's processor time an event beside that of the same pace without readers.
"""
import http.server
import json
import pathlib
import resource
import selectors
import socket
import statistics
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import harness  # noqa: E402
from gateway import CALC, PLAN, Gateway  # noqa: E402

asked = dict(a.split("=") for a in sys.argv[1:])
ROUNDS, PLANS, READERS = int(asked.get("rounds", 5)), int(asked.get("plans", 40)), int(asked.get("readers", 1000))
RATE, SECONDS, STEPS, PER_PLAN = int(asked.get("rate", 1000)), int(asked.get("seconds", 10)), 20, 6
CHAIN = {"steps": [{**PLAN["steps"][0], "stepId": "s%d" % i, "dependsOn": ["s%d" % (i - 1)] if i else []} for i in range(STEPS)]}


def spent(pid):
    """Nanoseconds of processor time of all its threads."""
    return sum(int(f.read_text().split()[0]) for f in pathlib.Path("/proc/%d/task" % pid).glob("*/schedstat"))


def memory(pid):
    return int(next(x for x in pathlib.Path("/proc/%d/status" % pid).read_text().splitlines() if x.startswith("VmRSS")).split()[1])


class Collector(http.server.BaseHTTPRequestHandler):
    hold = 0

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.hold)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args):
        pass


def collector(hold):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Held", (Collector,), {"hold": hold}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "http://127.0.0.1:%d" % server.server_port


class Readers:
    """Clients of /v1/events in a thread. late: of every fiftieth, how long after its time the last event of a block was read."""

    def __init__(self, g, n):
        self.late, self.bytes, self.ended, self.stop = [], 0, 0, False
        self.watch = selectors.DefaultSelector()
        head = g.head("GET /v1/events HTTP/1.1")
        for i in range(n):
            s = socket.create_connection(("127.0.0.1", g.port), 60)
            s.sendall(head)
            s.setblocking(False)
            self.watch.register(s, selectors.EVENT_READ, i)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stop:
            for key, _ in self.watch.select(0.2):
                try:
                    data = key.fileobj.recv(262144)
                except BlockingIOError:
                    continue
                self.bytes += len(data)
                if not data:
                    self.ended += 1
                    self.watch.unregister(key.fileobj)
                elif key.data % 50 == 0:
                    at = data.rfind(b'"tsMs":')
                    if 0 < at < len(data) - 21:
                        self.late.append(time.time() * 1000 - int(data[at + 7:at + 20]))

    def close(self):
        self.stop = True
        self.thread.join()
        for key in list(self.watch.get_map().values()):
            key.fileobj.close()


class Bench(harness.BatonTest):
    def chain(self, d):
        """(nanoseconds of the daemon's processor time, of wall time) a step."""
        before, began = spent(d.process.pid), time.monotonic_ns()
        for _ in range(PLANS):
            plan, ended = d.submit(CHAIN), []
            while not ended:  # one request that waits: asking again and again would be most of what is measured
                ended = d.ask("events.read", 60, fromSeq=1, planId=plan, types=["plan_completed"], waitMs=20000)["events"]
        n = PLANS * STEPS
        return (spent(d.process.pid) - before) / n, (time.monotonic_ns() - began) / n

    def looked_at(self, d, url):
        g = Gateway(self, d, *(["--otlp", url] if url else []))
        for _ in range(3):
            d.wait_plan(d.submit(PLAN))
        figures = self.chain(d)
        g.clean()
        return figures

    def test_it(self):
        d = self.daemon(config=CALC)
        self.chain(d)
        ways = {"gateway alone": None, "exporter": collector(0), "exporter slow": collector(5), "exporter down": "http://127.0.0.1:1"}
        for name, url in ways.items():
            cpu, wall = [], []
            for _ in range(ROUNDS):
                first, looked, second = self.chain(d), self.looked_at(d, url), self.chain(d)
                cpu.append(looked[0] / (first[0] + second[0]) * 2)
                wall.append(looked[1] / (first[1] + second[1]) * 2)
            print("%-14s processor time of the daemon a step %+.1f %% (%s), wall %+.1f %%" % (
                name, 100 * (statistics.median(cpu) - 1), " ".join("%+.1f" % (100 * (x - 1)) for x in sorted(cpu)), 100 * (statistics.median(wall) - 1)), flush=True)
        self.readers(d)

    def pace(self, d):
        """(events a second, the daemon's ns an event) while plans are submitted at a steady pace."""
        first, began, n = d.ask("supervisor.info")["lastSeq"], time.monotonic(), 0
        before = spent(d.process.pid)
        while time.monotonic() < began + SECONDS:
            d.submit(PLAN)
            n += 1
            time.sleep(max(0, began + n * PER_PLAN / RATE - time.monotonic()))
        events = d.ask("supervisor.info")["lastSeq"] - first
        return events / (time.monotonic() - began), (spent(d.process.pid) - before) / events

    def readers(self, d):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
        g = Gateway(self, d)
        idle = memory(g.process.pid)
        alone = self.pace(d)
        r = Readers(g, READERS)
        joined = memory(g.process.pid)
        before = spent(g.process.pid)
        busy = self.pace(d)
        own = (spent(g.process.pid) - before) / SECONDS / 1e9
        during = memory(g.process.pid)
        r.close()
        late = sorted(r.late) or [0]
        print(json.dumps({"readers": READERS, "ended": r.ended, "gateway_kib": [idle, joined, during], "gateway_cpu_share": round(own, 2), "mb_read": r.bytes // 1000000,
                          "events_per_s": [round(alone[0]), round(busy[0])], "daemon_us_per_event": [round(alone[1] / 1000, 1), round(busy[1] / 1000, 1)],
                          "late_ms_p50": round(late[len(late) // 2]), "late_ms_p99": round(late[len(late) * 99 // 100])}))


if __name__ == "__main__":
    sys.argv[1:] = []
    harness.main()
