#!/usr/bin/env python3
"""Requests that cannot be read, or whose end is not clear: each answer has what would be right, in the form of all others."""
import json
import re
import socket
import ssl
import subprocess

import gateway
from gateway import CALC, Gateway
from harness import BatonTest, main

POST, GET = "POST /v1/plans HTTP/1.1", "GET /v1/info HTTP/1.1"
TYPE = "Content-Type: application/json"
LENGTH, CHUNKED = "Content-Length: %s", "Transfer-Encoding: chunked"
HEAD_BYTES = 24 * 1024


def setUpModule():
    gateway.need()


def answers_of(got):
    """[(status, headers, body)] of bytes, each with its Content-Length."""
    answers = []
    while got:
        head, _, rest = got.partition(b"\r\n\r\n")
        line, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in (x.split(": ", 1) for x in lines)}
        n = int(headers.get("content-length", 0))
        answers.append((int(re.fullmatch(r"HTTP/1\.[01] (\d{3}) .+", line).group(1)), headers, rest[:n]))
        got = rest[n:]
    return answers


class Framing(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CALC)
        self.g = Gateway(self, self.d)

    def unreadable(self):
        """(name, bytes, status, what the detail says)"""
        g = self.g
        chunks = g.head(POST, TYPE, CHUNKED)
        for name, length, status in (("negative", "-1", 400), ("a word", "two", 400), ("empty", "", 400), ("hexadecimal", "0x2", 400), ("a sum", "1+1", 400),
                                     ("a list", "2, 2", 400), ("a fraction", "2.0", 400), ("over 64 bits", "9" * 20, 413), ("far over 64 bits", "9" * 200, 413)):
            yield "length: " + name, g.head(POST, TYPE, LENGTH % length), status, "at most 1048576" if status == 413 else "Content-Length"
        for name, lines in (("two", ("2", "4")), ("two equal ones", ("2", "2")), ("two that are zero", ("0", "0")), ("a good and a bad one", ("2", "x")), ("a bad and a good one", ("x", "2"))):
            yield "lengths: " + name, g.head(POST, TYPE, *[LENGTH % x for x in lines]) + b"{}", 400, "one Content-Length"
        yield "a length and chunks", g.head(POST, TYPE, LENGTH % 2, CHUNKED) + b"2\r\n{}\r\n0\r\n\r\n", 400, "one Content-Length"
        yield "chunks and a length", g.head(POST, TYPE, CHUNKED, LENGTH % 2) + b"2\r\n{}\r\n0\r\n\r\n", 400, "one Content-Length"
        yield "a bad length and chunks", g.head(POST, TYPE, LENGTH % "x", CHUNKED) + b"0\r\n\r\n", 400, "one Content-Length"
        yield "two codings", g.head(POST, TYPE, CHUNKED, "Transfer-Encoding: gzip") + b"0\r\n\r\n", 400, "chunked"
        yield "a list of codings", g.head(POST, TYPE, "Transfer-Encoding: gzip, chunked") + b"0\r\n\r\n", 400, "chunked"
        yield "another coding", g.head(POST, TYPE, "Transfer-Encoding: gzip") + b"{}", 400, "chunked"
        for name, body, status in (("no digit", b"zz\r\n{}\r\n0\r\n\r\n", 400), ("no size", b"\r\n{}\r\n0\r\n\r\n", 400), ("a sign", b"-2\r\n{}\r\n0\r\n\r\n", 400),
                                   ("0x", b"0x2\r\n{}\r\n0\r\n\r\n", 400), ("a space before", b" 2\r\n{}\r\n0\r\n\r\n", 400), ("shorter than its bytes", b"1\r\n{}\r\n0\r\n\r\n", 400),
                                   ("a bad second one", b"2\r\n{}\r\nqq\r\n\r\n", 400), ("a bad trailer", b"2\r\n{}\r\n0\r\nno colon\r\n\r\n", 400),
                                   ("over 64 bits", b"F" * 17 + b"\r\n{}", 413)):
            yield "chunk: " + name, chunks + body, status, "at most 1048576" if status == 413 else "chunk"
        yield "a chunk of a request that is refused already", g.head("POST /v1/nothing HTTP/1.1", TYPE, CHUNKED) + b"zz\r\n", 400, "chunk"
        yield "a header without a colon", g.head(GET, "no colon"), 400, "NAME: VALUE"
        yield "no Host", b"GET /v1/info HTTP/1.1\r\n\r\n", 400, "one header Host"
        yield "no version", b"GET /v1/info\r\nHost: x\r\n\r\n", 400, "first line"
        yield "a version of nothing", b"GET /v1/info HTTX/1.1\r\nHost: x\r\n\r\n", 400, "first line"
        for version in ("0.9", "2.0", "3.0", "9.9"):
            yield "version " + version, g.head("GET /v1/info HTTP/" + version), 505, "HTTP/1.1"
        yield "an address over our cap", g.head("GET /%s HTTP/1.1" % ("a" * 8192)), 414, "8192"
        yield "an address without an end", b"GET /" + b"a" * 100000, 414, "8192"
        yield "a header over the cap", g.head(GET, "X: " + "a" * 102400), 431, str(HEAD_BYTES)
        yield "many headers", g.head(GET, *["X-%d: a" % i for i in range(1000)]), 431, str(HEAD_BYTES)
        yield "a header without an end", g.head(GET)[:-2] + b"X: " + b"a" * 100000, 431, str(HEAD_BYTES)
        yield "two Hosts", g.head(GET, "Host: 127.0.0.1:%d" % g.port), 400, "one header Host"

    def check(self, answer, status, says):
        got, headers, body = answer
        self.assertEqual((got, headers.get("content-type")), (status, "application/problem+json"), body[:200])
        self.assertEqual(headers["connection"].lower(), "close")
        self.assertEqual(int(headers["content-length"]), len(body))
        problem = json.loads(body)
        self.assertEqual(problem["status"], status)
        self.assertIn(says, problem["detail"])
        self.assertNotEqual(problem["title"], "Error")
        self.assertRegex(problem["type"], "^urn:baton:error:(INVALID|LIMIT)$")
        for name in ("cache-control", "x-content-type-options", "content-security-policy"):
            self.assertIn(name, headers)

    def test_each_framing_error_is_answered_with_what_would_be_right(self):
        for name, data, status, says in self.unreadable():
            with self.subTest(name):
                answers = answers_of(self.g.raw(data))
                self.assertEqual(len(answers), 1, answers)
                self.check(answers[0], status, says)
        self.assertEqual(self.g.ask("GET", "/v1/info").status, 200)
        self.assertEqual(self.d.ask("plan.list")["plans"], [])

    def test_the_second_request_of_a_connection_is_answered_so_too(self):
        first = self.g.head(GET)
        for name, data, status, says in self.unreadable():
            for kind in ("in one go", "after the answer"):
                with self.subTest(name, kind=kind), socket.create_connection(("127.0.0.1", self.g.port), 10) as s:
                    got = b""
                    s.sendall(first + data if kind == "in one go" else first)
                    while kind != "in one go" and b"\r\n\r\n" not in got:
                        got += s.recv(65536)
                    if kind != "in one go":
                        s.sendall(data)
                    try:
                        while part := s.recv(65536):
                            got += part
                    except ConnectionResetError:
                        pass
                    answers = answers_of(got)
                    self.assertEqual([a[0] for a in answers], [200, status])
                    self.check(answers[1], status, says)

    def test_over_tls_they_are_answered_so_too(self):
        pem = self.d.work / "tls.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-keyout", pem, "-out", self.d.work / "c.pem"], check=True, capture_output=True)
        pem.write_bytes(pem.read_bytes() + (self.d.work / "c.pem").read_bytes())
        self.g.clean()
        self.g = Gateway(self, self.d, "--tls", pem)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        for name, data, status, says in self.unreadable():
            with self.subTest(name), socket.create_connection(("127.0.0.1", self.g.port), 10) as plain, context.wrap_socket(plain) as s:
                s.sendall(data)
                got = b""
                try:
                    while part := s.recv(65536):
                        got += part
                except (ConnectionResetError, ssl.SSLError):
                    pass
                answers = answers_of(got)
                self.assertEqual(len(answers), 1, answers)
                self.check(answers[0], status, says)

    def test_a_head_request_that_cannot_be_read_has_no_body(self):
        got = self.g.raw(self.g.head("HEAD /v1/info HTTP/1.1", "X: " + "a" * 102400))
        self.assertRegex(got, rb"^HTTP/1\.1 431 ")
        self.assertIn(b"application/problem+json", got)
        self.assertTrue(got.endswith(b"\r\n\r\n"), got[-200:])

    def test_a_head_up_to_the_cap_is_read_also_with_the_cookies_of_others(self):
        for more in ("X: " + "a" * 20000, "Cookie: " + "a=b; " * 4000):
            self.assertRegex(self.g.raw(self.g.head(GET, more)), rb"^HTTP/1\.1 200 ")

    def test_they_are_counted_as_answers(self):
        def refused():
            return int(re.search(r'baton_gateway_requests_total\{code="4xx"\} (\d+)', self.g.ask("GET", "/metrics").body.decode()).group(1))
        before = refused()
        for _ in range(20):
            self.g.raw(b"GET /v1/info HTTX/1.1\r\n\r\n")
        self.assertEqual(refused() - before, 20)

    def test_what_is_no_http_at_all_ends_its_connection(self):
        for data in (bytes(range(256)) * 8, bytes.fromhex("1603010200010001fc0303") + b"\0" * 500, b"hello\r\n\r\n"):
            got = self.g.raw(data)
            self.assertTrue(got == b"" or got.startswith(b"HTTP/1.1 4"), got[:100])
        self.assertEqual(self.g.ask("GET", "/v1/info").status, 200)


if __name__ == "__main__":
    main()
