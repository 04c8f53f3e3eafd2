#!/usr/bin/env python3
"""HTTP from somebody who means harm, or is broken: typed answers, bounded time and memory, and others are served."""
import json
import os
import re
import resource
import select
import socket
import subprocess
import time

import gateway
from gateway import CALC, Gateway
from harness import BIN, BatonTest, main, sanitized, until


def setUpModule():
    gateway.need()


def status_of(answer):
    found = re.match(rb"HTTP/1\.1 (\d+) ", answer)
    return int(found.group(1)) if found else None


class Hostile(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CALC)
        self.g = Gateway(self, self.d)

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.g.process.pid))

    def served(self):
        start = time.monotonic()
        self.assertEqual(self.g.ask("GET", "/v1/info").status, 200)
        return time.monotonic() - start

    def test_requests_that_could_be_read_in_two_ways_are_refused(self):
        g, json_ = self.g, "Content-Type: application/json"
        post = "POST /v1/plans HTTP/1.1"
        for name, data, expected in (
                ("two lengths", g.head(post, json_, "Content-Length: 2", "Content-Length: 4") + b"{}{}", {400}),
                ("two equal lengths", g.head(post, json_, "Content-Length: 2", "Content-Length: 2") + b"{}", {400}),
                ("a list of lengths", g.head(post, json_, "Content-Length: 2, 2") + b"{}", {400}),
                ("a length and chunks", g.head(post, json_, "Content-Length: 2", "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n", {400}),
                ("two codings", g.head(post, json_, "Transfer-Encoding: chunked", "Transfer-Encoding: gzip") + b"0\r\n\r\n", {400}),
                ("another coding", g.head(post, json_, "Transfer-Encoding: gzip") + b"{}", {400}),
                ("a negative length", g.head(post, json_, "Content-Length: -1"), {400}),
                ("no number", g.head(post, json_, "Content-Length: two"), {400}),
                ("a huge length", g.head(post, json_, "Content-Length: 99999999999999999999"), {413}),
                ("a bad chunk", g.head(post, json_, "Transfer-Encoding: chunked") + b"zz\r\n{}\r\n0\r\n\r\n", {400}),
                ("a huge chunk", g.head(post, json_, "Transfer-Encoding: chunked") + b"FFFFFFFFFFFFFFFFFF\r\n{}", {413}),
                ("a body of GET", g.head("GET /v1/info HTTP/1.1", json_, "Content-Length: 2") + b"{}", {400}),
                ("empty parts", g.head("GET //v1/info HTTP/1.1"), {400}),
                ("dots", g.head("GET /v1/../v1/info HTTP/1.1"), {400}),
                ("encoded dots", g.head("GET /v1/%2e%2e/info HTTP/1.1"), {400}),
                ("an encoded way up", g.head("GET /v1/plans/..%2finfo HTTP/1.1"), {400, 404}),
                ("a zero byte", g.head("GET /v1/plans/%00 HTTP/1.1"), {400}),
                ("no UTF-8", g.head("GET /v1/plans/%ff HTTP/1.1"), {400}),
                ("another server", g.head("GET http://evil.test/v1/info HTTP/1.1"), {421}),
                ("this server in full", g.head("GET http://127.0.0.1:%d/v1/info HTTP/1.1" % g.port), {200}),
                ("a tunnel", g.head("CONNECT evil.test:443 HTTP/1.1"), {400, 404, 405}),
                ("a long address", g.head("GET /v1/plans/%s HTTP/1.1" % ("a" * 9000)), {414}),
                ("a long header", g.head("GET /v1/info HTTP/1.1", "X: " + "a" * 102400), {431}),
                ("many headers", g.head("GET /v1/info HTTP/1.1", *["X-%d: a" % i for i in range(1000)]), {431}),
                ("no Host", b"GET /v1/info HTTP/1.1\r\n\r\n", {400}),
                ("two Hosts", g.head("GET /v1/info HTTP/1.1", "Host: 127.0.0.1:%d" % g.port), {400}),
                ("two senders", g.head("GET /v1/info HTTP/1.1", "Authorization: Bearer x"), {401}),
                ("no version", b"GET /v1/info\r\n\r\n", {400}),
                ("noise", bytes(range(256)) * 8, {400, 505, None}),
                ("TLS", bytes.fromhex("1603010200010001fc0303") + b"\0" * 500, {400, None})):
            with self.subTest(name):
                got = g.raw(data)
                self.assertIn(status_of(got), expected, got[:300])
                if status_of(got) in (400, 413) and b"problem+json" in got:
                    self.assertEqual(json.loads(got[got.index(b"\r\n\r\n") + 4:])["status"], status_of(got))
                if name.startswith(("two lengths", "a length and chunks")):
                    self.assertIn(b"\r\nConnection: close\r\n", got)
                    self.assertEqual(got.count(b"HTTP/1.1 "), 1)
        self.served()
        self.assertEqual(self.d.ask("plan.list")["plans"], [])

    def test_requests_in_one_go_are_answered_in_their_order(self):
        got = self.g.raw(b"".join(self.g.head("GET %s HTTP/1.1" % p) for p in ("/v1/info", "/v1/nothing", "/v1/agents")))
        self.assertEqual(re.findall(rb"HTTP/1\.1 (\d+)", got), [b"200", b"404", b"200"])
        self.assertLess(got.index(b'"version"'), got.index(b"urn:baton"))

    def test_clients_that_go_away_early_leave_nothing(self):
        fds = self.descriptors()
        for i in range(60):
            with socket.create_connection(("127.0.0.1", self.g.port), 10) as s:
                s.sendall((self.g.head("GET /v1/events HTTP/1.1") if i % 3 == 0 else self.g.head("POST /v1/plans HTTP/1.1", "Content-Type: application/json", "Content-Length: 100")
                           if i % 3 == 1 else self.g.head("GET /v1/journal/export HTTP/1.1"))[:None if i % 2 else -3])
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.served()
        until(lambda: self.descriptors() <= fds + 8, 40, "the connections are closed")

    def test_who_drips_or_does_not_read_is_ended_and_others_are_served(self):
        before = self.descriptors()
        mute = []
        for _ in range(8):  # these never read: 40 answers of 200 KB do not fit into what the kernel keeps
            s = socket.create_connection(("127.0.0.1", self.g.port), 10)
            s.sendall(self.g.head("GET /v1/openapi.json HTTP/1.1") * 40)
            mute.append(s)
        kinds = {"head": b"GET /v1/info HTTP/1.1\r\nX: ", "body": self.g.head("POST /v1/plans HTTP/1.1", "Content-Type: application/json", "Content-Length: 1000")}
        open_ = {}
        for kind, first in kinds.items():
            for _ in range(8):
                s = socket.create_connection(("127.0.0.1", self.g.port), 10)
                s.sendall(first)
                s.setblocking(False)
                open_[s] = kind
        start, slowest, ended = time.monotonic(), 0, {}
        while open_ and time.monotonic() - start < 240:
            slowest = max(slowest, self.served())
            for s, kind in list(open_.items()):
                try:
                    s.send(b" ")
                    over = select.select([s], [], [], 0)[0] and s.recv(1) == b""
                except BlockingIOError:
                    over = False
                except OSError:
                    over = True
                if over:
                    ended.setdefault(kind, []).append(time.monotonic() - start)
                    s.close()
                    del open_[s]
            select.select([], [], [], 0.5)
        self.assertEqual({k: len(v) for k, v in ended.items()}, {"head": 8, "body": 8}, ended)
        self.assertGreater(min(ended["body"]), 20)
        self.assertLess(slowest, 10)
        until(lambda: self.descriptors() <= before + 4, 40, "who does not read is ended, too")
        for s in mute:
            s.close()

    def test_five_hundred_idle_connections_cost_nobody_anything(self):
        idle = []
        for _ in range(500):
            s = socket.create_connection(("127.0.0.1", self.g.port), 10)
            s.sendall(self.g.head("GET /v1/openapi.json HTTP/1.1", "X: y") if len(idle) % 50 == 0 else b"GET")
            idle.append(s)
        self.served()
        if not sanitized():
            with open("/proc/%d/status" % self.g.process.pid) as f:
                self.assertLess(int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)), 64 * 1024)
        for s in idle:
            s.close()

    def test_more_connections_than_there_may_be_end_the_idlest(self):
        self.g.process.terminate()
        self.g.process.wait(10)
        limit = 600
        file = self.d.state / "gateway.json"
        process = subprocess.Popen([BIN / "baton-gateway", "--state", self.d.state], stdin=subprocess.DEVNULL,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        until(lambda: json.loads(file.read_text()).get("pid") == process.pid, 20, "gateway.json")
        idle = []
        for _ in range(limit):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(("127.0.0.1", self.g.port))
            idle.append(s)
        for _ in range(5):
            self.served()
        for s in idle:
            s.close()


if __name__ == "__main__":
    main()
