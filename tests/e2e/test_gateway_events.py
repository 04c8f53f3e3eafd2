#!/usr/bin/env python3
"""Events over HTTP: streams that follow, filter and end; what they owe over kill -9 of both sides.

BATON_CUTS: how often a stream is cut at random (50); BATON_SEED: the order of the cuts."""
import json
import os
import random
import re
import socket
import threading
import time

import gateway
from gateway import CALC, PLAN, Events, Gateway
from harness import BatonTest, main, until
from test_gateway import key_of


def setUpModule():
    gateway.need()


class Streams(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CALC)
        self.g = Gateway(self, self.d)

    def test_a_stream_of_a_plan_has_all_its_events_and_ends_with_it(self):
        plan = self.d.submit(PLAN)
        found = list(Events(self.g, "/v1/plans/%s/events" % plan))
        self.assertEqual([e[2] for e in found], self.d.events(plan))
        self.assertEqual([(i, t) for i, t, _ in found], [(e["seq"], e["type"]) for e in self.d.events(plan)])
        rest = list(Events(self.g, "/v1/plans/%s/events?after=0" % plan, Last_Event_ID=str(found[2][0])))
        self.assertEqual(rest, found[3:])
        over = self.g.ask("GET", "/v1/plans/%s/events" % plan, Last_Event_ID=str(found[-1][0]))
        self.assertEqual((over.status, over.body), (204, b""))
        lines = self.g.ask("GET", "/v1/plans/%s/events" % plan, Accept="application/x-ndjson")
        self.assertEqual((lines.headers["Content-Type"], [json.loads(x) for x in lines.body.splitlines()]), ("application/x-ndjson", [e[2] for e in found]))
        page = self.g.ask("GET", "/v1/plans/%s/events?limit=2&after=%d" % (plan, found[0][0]), Accept="application/json").json
        self.assertEqual(page["events"], [e[2] for e in found[1:3]])

    def test_a_stream_of_all_begins_now_or_after_a_number_and_filters(self):
        self.d.wait_plan(self.d.submit(PLAN))
        live = Events(self.g, "/v1/events")
        chosen = Events(self.g, "/v1/events?type=plan_started&type=plan_completed")
        again = Events(self.g, "/v1/events?after=0")
        self.assertEqual((live.answer.status, live.answer.headers["Content-Type"]), (200, "text/event-stream"))
        before = self.d.ask("supervisor.info")["lastSeq"]
        plan = self.d.submit(PLAN)
        self.d.wait_plan(plan)
        wanted = self.d.events(plan)
        for stream, expected in ((live, [e["seq"] for e in wanted]), (again, [e["seq"] for e in self.d.events()]),
                                 (chosen, [e["seq"] for e in wanted if e["type"] in ("plan_started", "plan_completed")])):
            got = []
            for id_, type_, data in stream:
                got.append(id_)
                self.assertEqual((data["seq"], data["type"]), (id_, type_))
                if len(got) == len(expected):
                    break
            self.assertEqual(got, expected)
            stream.close()
        self.assertGreater(wanted[0]["seq"], before)

    def test_a_stream_is_woken_once_for_the_events_of_a_pause_and_not_for_each(self):
        def wakes():
            return int(re.search(r"^baton_gateway_stream_wakes_total (\d+)", self.g.ask("GET", "/metrics").body.decode(), re.M).group(1))
        self.d.wait_plan(self.d.submit(PLAN))
        readers = [Events(self.g, "/v1/events", timeout=60) for _ in range(20)]
        before, first, began = wakes(), self.d.ask("supervisor.info")["lastSeq"], time.monotonic()
        plans = [self.d.submit(PLAN) for _ in range(60)]
        for plan in plans:
            self.d.wait_plan(plan)
        last = self.d.ask("supervisor.info")["lastSeq"]
        for r in readers:
            got = []
            for id_, _, _ in r:
                got.append(id_)
                if id_ == last:
                    break
            self.assertEqual(got, list(range(first + 1, last + 1)))
            r.close()
        pauses = (time.monotonic() - began) * 1000 / 20 + 2
        self.assertLessEqual(wakes() - before, len(readers) * min(pauses, last - first))    # 20 ms at least between two reads for all of them

    def test_what_cannot_be_streamed_is_refused_before_it_begins(self):
        last = self.d.ask("supervisor.info")["lastSeq"]
        for path, headers, status, field in (("/v1/events?type=plan_complete", {}, 400, None), ("/v1/events?after=x", {}, 400, "after"),
                                             ("/v1/events?limit=3", {}, 400, "limit"), ("/v1/events?afer=3", {}, 400, "afer"),
                                             ("/v1/events", {"Last_Event_ID": str(last + 2)}, 400, "Last-Event-ID"),
                                             ("/v1/events", {"Last_Event_ID": "x"}, 400, "Last-Event-ID"),
                                             ("/v1/plans/01A20FC9-DD1B-70C5-9698-077211201167/events", {}, 404, None)):
            answer = self.g.ask("GET", path, Accept="text/event-stream", **headers)
            self.assertEqual((answer.status, answer.json.get("field")), (status, field), (path, answer))

    def test_each_sender_sees_its_own_events(self):
        ann, bob = key_of(self.d, "ann", "submitter"), key_of(self.d, "bob", "submitter")
        streams = {who: Events(self.g, "/v1/events", bearer=who) for who in (ann, bob)}
        plans = {who: self.g.ask("POST", "/v1/plans", {"plan": PLAN}, bearer=who).json["planId"] for who in (ann, bob)}
        for who, stream in streams.items():
            seen = set()
            for _, type_, data in stream:
                seen.add(data.get("planId"))
                if type_ == "plan_completed":
                    break
            self.assertEqual(seen - {None}, {plans[who]})
        self.assertEqual(self.g.ask("GET", "/v1/plans/%s/events" % plans[ann], bearer=bob).status, 404)
        self.d.cli("credential", "revoke", "bob")
        ended = threading.Thread(target=lambda: list(streams[bob]))
        ended.start()
        ended.join(40)
        self.assertFalse(ended.is_alive(), "the stream of a revoked credential ends")

    def test_silence_has_heartbeats(self):
        stream = Events(self.g, "/v1/events", timeout=40)
        line = next(x for x in stream.answer if x.startswith(b":"))
        self.assertEqual(line, b": heartbeat\n")

    def test_a_reader_that_takes_nothing_is_dropped_and_misses_nothing(self):
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", self.g.port))
        slow.sendall(self.g.head("GET /v1/events?after=0 HTTP/1.1", "Accept: application/x-ndjson"))
        steps = [{**PLAN["steps"][0], "stepId": "s%d" % i, "task": "Add one and two, and say it in so many words " + "x" * 1000} for i in range(900)]
        for _ in range(5):  # more than the ring and what the kernel keeps
            self.d.wait_plan(self.d.submit({"steps": steps}), 120)
        slow.settimeout(60)
        got, deadline = b"", time.monotonic() + 120
        while True:
            part = slow.recv(1 << 20)
            self.assertLess(time.monotonic(), deadline, "the stream ends")
            if not part or b"\r\n0\r\n" in got[-64:] + part:
                got += part
                break
            got += part
        last = max(json.loads(line)["seq"] for line in got.split(b"\n") if line.startswith(b'{"seq"') and line.endswith(b"}"))
        everything = [e["seq"] for e in self.d.events()]
        self.assertLess(last, everything[-1])
        rest = []
        for id_, _, _ in Events(self.g, "/v1/events", Last_Event_ID=str(last)):
            rest.append(id_)
            if id_ == everything[-1]:
                break
        self.assertEqual(rest, [s for s in everything if s > last])


class Cuts(BatonTest):
    def test_a_stream_that_is_cut_at_random_has_no_gap_and_no_double(self):
        cuts = int(os.environ.get("BATON_CUTS", "50"))
        seed = int(os.environ.get("BATON_SEED", time.time_ns() % 1000000))
        rng = random.Random(seed)
        d = self.daemon(config=CALC)
        g = Gateway(self, d)
        stop, lock = threading.Event(), threading.Lock()

        def feed():
            while not stop.wait(0.05):
                with lock:
                    try:
                        d.submit(PLAN)
                    except (OSError, EOFError, AssertionError, ValueError):
                        pass
        feeder = threading.Thread(target=feed)
        feeder.start()
        self.addCleanup(feeder.join)
        self.addCleanup(stop.set)
        got, done = [], {"client": 0, "gateway": 0, "daemon": 0, "both": 0}
        try:
            for _ in range(cuts):
                try:
                    stream = Events(g, "/v1/events?after=0", timeout=60, **({"Last_Event_ID": str(got[-1])} if got else {}))
                except OSError:
                    continue
                self.assertIn(stream.answer.status, (200, 503), stream.answer)
                for id_, _, data in stream:
                    self.assertEqual(id_, data["seq"])
                    got.append(id_)
                    if rng.random() < 0.15:
                        break
                how = rng.choice(["client"] * 4 + ["gateway"] * 3 + ["daemon", "daemon", "both"])
                done[how] += 1
                with lock:
                    if how in ("gateway", "both"):
                        g.kill9()
                    if how in ("daemon", "both"):
                        d.kill9()
                        d.start(agents=False)
                    if how in ("gateway", "both"):
                        g.start()
                if how == "daemon":  # the same stream goes on over the daemon's death
                    for id_, _, data in stream:
                        got.append(id_)
                        if rng.random() < 0.15:
                            break
                stream.close()
            stop.set()
            feeder.join()
            last = d.ask("supervisor.info")["lastSeq"]
            while got[-1] < last:
                for id_, _, _ in Events(g, "/v1/events", Last_Event_ID=str(got[-1])):
                    got.append(id_)
                    if id_ >= last:
                        break
            wanted = [e["seq"] for e in d.events() if e["seq"] <= got[-1]]
            self.assertEqual(got, wanted, "seed %d" % seed)
            self.assertEqual(wanted, list(range(1, len(wanted) + 1)))
        except Exception:
            print("seed", seed, done, len(got), g.log())
            raise
        print("cuts", done, "events", len(got), "seed", seed)


if __name__ == "__main__":
    main()
