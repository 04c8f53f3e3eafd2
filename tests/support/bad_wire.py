"""A bad line between a client and a server of language models that someone else wrote. Standard library only.

It hands on every request as it is and remembers it (the server's own journal may show it rewritten), and does to the answers
what `faults` says, one for each request, the last one for good:

    pass            as it came
    cut:N           N bytes of the body, and the connection is closed in the middle of a chunk
    reset:N         N bytes, and the connection is reset
    ends:N          N bytes, and the body ends in good order
    stall:N         N bytes, and then nothing more
    drip:MS         a byte every MS milliseconds
    garble:N        from byte N on the highest bit of every byte is turned: no UTF-8, no JSON
    endless:N       N bytes, and then the piece of the body that ended there, again and again
    nousage         without the members that tell tokens
"""
import http.client
import http.server
import json
import re
import socket
import struct
import threading

HOP = ("connection", "transfer-encoding", "content-length", "keep-alive")
USAGE = re.compile(rb',?"(usage|prompt_eval_count|eval_count)":(\{[^{}]*\}|\d+)')


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        line = self.server.line
        with line.lock:
            fault = line.faults.pop(0) if len(line.faults) > 1 else line.faults[0]
            line.requests.append({"path": self.path, "headers": dict(self.headers), "body": json.loads(raw)})
        name, _, value = fault.partition(":")
        upstream = http.client.HTTPConnection("127.0.0.1", line.upstream, timeout=30)
        try:
            upstream.request("POST", self.path, raw, {k: v for k, v in self.headers.items() if k.lower() not in HOP})
            answer = upstream.getresponse()
            body = answer.read()
            self.close_connection = True
            self.begin(answer)
            getattr(self, "do_" + name)(body, int(value or 0))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            upstream.close()

    def begin(self, answer):
        self.send_response(answer.status)
        for k, v in answer.getheaders():
            if k.lower() not in HOP + ("date", "server"):
                self.send_header(k, v)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()

    def piece(self, data):
        if data:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

    def whole(self, data):
        self.piece(data)
        self.wfile.write(b"0\r\n\r\n")

    def do_pass(self, body, _):
        self.whole(body)

    def do_cut(self, body, n):
        self.wfile.write(b"%x\r\n%s" % (len(body), body[:n]))

    def do_reset(self, body, n):
        self.piece(body[:n])
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.wfile = open("/dev/null", "wb")

    def do_ends(self, body, n):
        self.whole(body[:n])

    def do_stall(self, body, n):
        self.piece(body[:n])
        self.server.line.closing.wait(60)

    def do_drip(self, body, ms):
        for byte in body:
            self.piece(bytes([byte]))
            if self.server.line.closing.wait(ms / 1000):
                return
        self.whole(b"")

    def do_garble(self, body, n):
        self.whole(body[:n] + bytes(b ^ 0x80 for b in body[n:]))

    def do_endless(self, body, n):
        again = body[body.rfind(b"\n", 0, n - 1) + 1:n] or body[:n]
        self.piece(body[:n])
        while not self.server.line.closing.is_set():
            self.piece(again * 100)

    def do_nousage(self, body, _):
        self.whole(USAGE.sub(b"", body))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that hangs up is what the tests are about."""


class Line:
    def __init__(self, upstream, *faults):
        """upstream: a port of 127.0.0.1."""
        self.upstream, self.faults, self.requests = upstream, list(faults) or ["pass"], []
        self.lock, self.closing = threading.Lock(), threading.Event()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.line = self
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def close(self):
        self.closing.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
