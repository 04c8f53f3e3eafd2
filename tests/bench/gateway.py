"""What the gateway costs: its memory when idle, GET /v1/plans/ID at a rate, and readers of events.

    nice python3 tests/bench/gateway.py [rate=500] [seconds=10] [readers=200]

BATON_BIN names the programs (default: build/dev/bin; figures need a release build). Prints the memory of the gateway
when idle and with the readers in KiB, and the time of the requests in ms (median, p99, longest).
"""
import http.client
import json
import pathlib
import resource
import socket
import statistics
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import harness  # noqa: E402
from gateway import CALC, PLAN  # noqa: E402

asked = dict(a.split("=") for a in sys.argv[1:])
RATE, SECONDS, READERS = int(asked.get("rate", 500)), int(asked.get("seconds", 10)), int(asked.get("readers", 200))
THREADS = 8


def memory(pid):
    with open("/proc/%d/status" % pid) as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1])


class Bench(harness.BatonTest):
    def test_it(self):
        d = self.daemon(config=CALC + "gateway: {}\n")
        file = d.state / "gateway.json"
        address = harness.until(lambda: file.exists() and json.loads(file.read_text()), 20, "the gateway")
        port, pid = int(address["url"].rsplit(":", 1)[1]), address["pid"]
        with open("/proc/%d/limits" % pid) as f:
            print("descriptors", next(line for line in f if "open files" in line).split()[3])
        headers = {"Authorization": "Bearer " + d.token()}
        plan = d.submit(PLAN)
        d.wait_plan(plan)
        print("idle KiB", memory(pid))
        times, failed = [], []

        def ask(n):
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            due = time.monotonic() + n / RATE
            until = due + SECONDS
            while due < until:
                time.sleep(max(0, due - time.monotonic()))
                began = time.monotonic()
                c.request("GET", "/v1/plans/" + plan, headers=headers)
                r = c.getresponse()
                r.read()
                times.append((time.monotonic() - began) * 1000)
                failed.extend([r.status] if r.status != 200 else [])
                due += THREADS / RATE
            c.close()
        threads = [threading.Thread(target=ask, args=(n,)) for n in range(THREADS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        times.sort()
        print("requests", len(times), "failed", len(failed), "median %.2f p99 %.2f longest %.2f" % (
            statistics.median(times), times[len(times) * 99 // 100], times[-1]))
        readers = []
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
        head = "GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: %s\r\n\r\n" % (port, headers["Authorization"])
        for _ in range(READERS):
            s = socket.create_connection(("127.0.0.1", port), 30)
            s.sendall(head.encode())
            readers.append(s)
        for s in readers:
            got = b""
            while b"retry: 1000" not in got:
                got += s.recv(4096)
        print("readers", len(readers), "KiB", memory(pid))
        last = d.submit(PLAN)
        began = time.monotonic()
        missed = 0
        for s in readers:
            got = b""
            while ('"planId":"%s"' % last).encode() not in got:
                part = s.recv(65536)
                missed += not part
                if not part:
                    break
                got += part
        for s in readers:
            s.close()
        print("all have the event after %.0f ms, missed %d" % ((time.monotonic() - began) * 1000, missed))


if __name__ == "__main__":
    sys.argv[1:] = []
    harness.main()
