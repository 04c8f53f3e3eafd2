"""Scalability Protocols (SP) over tcp and ipc with nothing but the standard library.

For tests: an independent peer of Baton's sockets, and proof that an agent, a client or a subscriber needs no library.

    from sp import Req, RepListener, RepDialer, Sub

    with Req("tcp://127.0.0.1:7117") as r:
        answer = r.ask(b"...")                       # one request at a time, raises EOFError when the peer hangs up

    with RepListener() as rep:                       # an agent that listens; rep.url is what it registers
        body, reply = rep.next()
        reply(b"...")

    with RepDialer(lane_url) as rep: ...             # an agent that dials (dialIn); same next()

    with Sub("tcp://127.0.0.1:7118", [b"plan/"]) as s:
        topic, body = s.next()

Wire (https://nanomsg.org/rfcs/sp-tcp-v1.html): both sides send 00 'S' 'P' 00 <u16 protocol> 00 00; then every message
is a u64 length and the bytes; over ipc a byte 01 comes before the length. All numbers are big-endian. A REQ message
begins with a u32 id whose top bit is set; hops before it have the top bit clear. The REP sends that header back.
"""
import os
import selectors
import socket
import struct

REQ, REP, PUB, SUB = 0x30, 0x31, 0x20, 0x21
MAX_BODY = 16 * 1024 * 1024


class Pipe:
    """One connection after the handshake."""

    def __init__(self, sock, protocol, peer, timeout=10.0):
        self.sock = sock
        self.ipc = sock.family == socket.AF_UNIX
        sock.settimeout(timeout)
        sock.sendall(b"\0SP\0" + struct.pack(">HH", protocol, 0))
        hello = self._read(8)
        if hello[:4] != b"\0SP\0" or struct.unpack(">H", hello[4:6])[0] != peer:
            raise ConnectionError("not an SP peer of protocol 0x%02x: %r" % (peer, hello))

    def _read(self, n):
        parts = bytearray()
        while len(parts) < n:
            chunk = self.sock.recv(n - len(parts))
            if not chunk:
                raise EOFError("the peer hung up")
            parts += chunk
        return bytes(parts)

    def send(self, message):
        self.sock.sendall((b"\1" if self.ipc else b"") + struct.pack(">Q", len(message)) + message)

    def recv(self):
        if self.ipc and self._read(1) != b"\1":
            raise ConnectionError("bad ipc frame")
        (length,) = struct.unpack(">Q", self._read(8))
        if length > MAX_BODY:
            raise ConnectionError("frame of %d bytes" % length)
        return self._read(length)

    def close(self):
        self.sock.close()


def connect(url, protocol, peer, timeout=10.0):
    """Dials tcp://HOST:PORT or ipc:///PATH."""
    if url.startswith("ipc://"):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(timeout)
        sock.connect(url[len("ipc://"):])
    else:
        host, port = url[len("tcp://"):].rsplit(":", 1)
        sock = socket.create_connection((host.strip("[]"), int(port)), timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        return Pipe(sock, protocol, peer, timeout)
    except (OSError, EOFError):
        sock.close()
        raise


def split_request(message):
    """-> (header to send back, body). The header ends with the first word whose top bit is set."""
    end = 4
    while len(message) >= end and not message[end - 4] & 0x80:
        end += 4
    if len(message) < end:
        raise ConnectionError("a request without an id")
    return message[:end], message[end:]


class _Closing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Req(_Closing):
    def __init__(self, url, timeout=10.0):
        self.pipe = connect(url, REQ, REP, timeout)

    def ask(self, body):
        ident = struct.pack(">I", 0x80000000 | int.from_bytes(os.urandom(4), "big") >> 1)
        self.pipe.send(ident + body)
        while True:
            message = self.pipe.recv()
            if message[:4] == ident:  # answers to older requests are dropped
                return message[4:]

    def close(self):
        self.pipe.close()


class RepDialer(_Closing):
    """Dials a listening lane and serves it."""

    def __init__(self, url, timeout=10.0):
        self.pipe = connect(url, REP, REQ, timeout)

    def next(self):
        header, body = split_request(self.pipe.recv())
        return body, lambda answer: self.pipe.send(header + answer)

    def close(self):
        self.pipe.close()


class RepListener(_Closing):
    """Listens on a loopback port and serves any number of lanes, one request after the other."""

    def __init__(self, host="127.0.0.1", port=0, timeout=10.0):
        self.timeout = timeout
        self.selector = selectors.DefaultSelector()
        self.server = socket.create_server((host, port))
        self.url = "tcp://%s:%d" % (host, self.server.getsockname()[1])
        self.selector.register(self.server, selectors.EVENT_READ, None)

    def next(self):
        """-> (body, reply). Pipes that break are dropped; TimeoutError when nothing comes."""
        while True:
            ready = self.selector.select(self.timeout)
            if not ready:
                raise TimeoutError("no request within %g s" % self.timeout)
            pipe = ready[0][0].data
            try:
                if pipe is None:
                    pipe = Pipe(self.server.accept()[0], REP, REQ, self.timeout)
                    self.selector.register(pipe.sock, selectors.EVENT_READ, pipe)
                    continue
                header, body = split_request(pipe.recv())
            except (OSError, EOFError):
                if pipe is not None:
                    self.selector.unregister(pipe.sock)
                    pipe.close()
                continue
            return body, lambda answer, p=pipe, h=header: p.send(h + answer)

    def close(self):
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()


class Sub(_Closing):
    def __init__(self, url, prefixes=(b"",), timeout=10.0):
        self.prefixes = tuple(prefixes)
        self.pipe = connect(url, SUB, PUB, timeout)

    def next(self):
        """-> (topic, body). The filter is here: a publisher sends everything to everybody."""
        while True:
            frame = self.pipe.recv()
            if frame.startswith(self.prefixes):
                topic, _, body = frame.partition(b"\0")
                return topic, body

    def close(self):
        self.pipe.close()
