"""Agents and clients of Baton, the multi-agent supervisor. One file, the standard library, Python 3.9 or newer.

An agent is a process with skills. A skill is a function; its schema comes from its annotations:

    import baton

    agent = baton.Agent("greeter")

    @agent.skill
    def greet(name: str = "world") -> str:
        "Greets somebody by name."
        return "Hello, %s!" % name

    if __name__ == "__main__":
        agent.run()

A client submits plans and reads what came of them:

    with baton.Client() as client:
        plan = client.submit({"steps": [{"agentId": "greeter", "skill": "greet", "task": "Greet Ada"}]})
        for event in client.watch(plan):
            print(event["type"])
        print(client.result(plan)["aggregatedResult"])

A test has a daemon of its own:

    with baton.daemon(agents=[agent]) as d:
        assert d.ask("greeter", "greet", name="Ada") == "Hello, Ada!"

The wire protocol is described in WIRE.md. Threads: an Agent and a Client may be used by several threads.
"""
from __future__ import annotations

import argparse
import asyncio
import base64
import collections
import contextlib
import copy
import ctypes
import dataclasses
import datetime
import decimal
import enum
import functools
import hashlib
import hmac
import inspect
import json
import logging
import math
import os
import pathlib
import random
import re
import secrets
import select
import shutil
import signal
import socket
import ssl
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import typing
import urllib.parse
import uuid
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

try:
    import msgpack as _msgpack  # faster; nothing else changes
except ImportError:
    _msgpack = None

__version__ = "0.3.0"
__all__ = ["Agent", "Artifact", "CallFailed", "Calls", "Cancelled", "Client", "Daemon", "Error", "Fail", "Handoff", "NeedsApproval",
           "NeedsInput", "Remote", "Result", "Step", "daemon"]

log = logging.getLogger("baton")

CONTROL_LANE = 64
CALLS_TAG = "x-baton-calls"  # of a skill that may call others
RESULT_BYTES = 3 * 1024 * 1024  # of a result: its text and data
BODY_BYTES = 4 * 1024 * 1024  # of every body on a lane
ANSWER_BYTES = 16 * 1024 * 1024
PIECE_BYTES = 1024  # of a streamed text in one step.progress
KEPT_RESULTS, KEPT_BYTES, KEPT_SECONDS = 64, 16 * 1024 * 1024, 600.0
CLASSES = {"TOOL_NOT_FOUND", "RESOURCE_NOT_FOUND", "PERMISSION_DENIED", "RATE_LIMITED", "SERVICE_UNAVAILABLE", "VALIDATION_ERROR",
           "TIMEOUT", "UNKNOWN", "CANCELLED", "BUDGET_EXCEEDED", "PROTOCOL_ERROR"}
QUESTIONS = {"gate", "verify", "replan", "plan", "synthesize", "converse"}


class Error(Exception):
    """The supervisor rejected a request, or cannot be reached (code UNAVAILABLE or TIMEOUT).

    >>> str(Error("NOT_FOUND", "there is no plan X"))
    'NOT_FOUND: there is no plan X'
    """

    def __init__(self, code: str, message: str, retryable: bool = False, retry_after: Optional[float] = None, details: Any = None):
        super().__init__("%s: %s" % (code, message))
        self.code, self.message, self.retryable, self.retry_after, self.details = code, message, retryable, retry_after, details


# ---- values and bytes ----


def plain(value: Any, where: str = "value", depth: int = 0) -> Any:
    """What a body can carry, made of ordinary Python values; ValueError names the place of what it cannot.

    >>> plain({"when": datetime.date(2026, 11, 23), "rows": ((1, 2.5),)})
    {'when': '2026-11-23', 'rows': [[1, 2.5]]}
    >>> plain({"rows": [1, float("nan")]})
    Traceback (most recent call last):
        ...
    ValueError: value.rows[1]: nan is no number that JSON has
    """
    if depth > 14:
        raise ValueError("%s: nested too deeply, at most 14 levels" % where)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        return plain(value.value, where, depth)
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("%s: a text has no zero bytes" % where)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("%s: the text is not valid Unicode" % where) from None
        return str(value)
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise ValueError("%s: the integer does not fit in 64 bits; send it as a text" % where)
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("%s: %r is no number that JSON has" % (where, value))
        return float(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, uuid.UUID, os.PathLike)):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name), "%s.%s" % (where, f.name), depth + 1) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        found: Dict[str, Any] = {}
        for key, item in value.items():
            if not isinstance(key, (str, int)) or isinstance(key, bool):
                raise ValueError("%s: a key is a text, got %r" % (where, key))
            name = plain(str(key), where + ": a key", depth)
            if name in found:
                raise ValueError("%s: the key %r is there twice" % (where, name))
            found[name] = plain(item, "%s.%s" % (where, name), depth + 1)
        return found
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)) or hasattr(value, "__next__"):
        return [plain(item, "%s[%d]" % (where, i), depth + 1) for i, item in enumerate(value)]
    raise ValueError("%s: a %s cannot be sent; return a text, a number, a list, a dict or a dataclass" % (where, type(value).__name__))


def _pack(value: Any) -> bytes:
    """msgpack of a plain value.

    >>> _unpack(_pack({"a": [1, -7, 2.5, None, True, "x" * 40], "b": b"raw"})) == {"a": [1, -7, 2.5, None, True, "x" * 40], "b": b"raw"}
    True
    """
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return (struct.pack("B", value) if 0 <= value < 128 else b"\xcf" + struct.pack(">Q", value) if value >= 0
                else b"\xd3" + struct.pack(">q", value))
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        raw = value.encode()
        return (bytes([0xA0 | len(raw)]) if len(raw) < 32 else b"\xdb" + struct.pack(">I", len(raw))) + raw
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    if isinstance(value, list):
        return (bytes([0x90 | len(value)]) if len(value) < 16 else b"\xdd" + struct.pack(">I", len(value))) + b"".join(map(_pack, value))
    head = bytes([0x80 | len(value)]) if len(value) < 16 else b"\xdf" + struct.pack(">I", len(value))
    return head + b"".join(_pack(k) + _pack(v) for k, v in value.items())


_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_SIZES = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"}


def _unpack(data: bytes) -> Any:
    """The value of msgpack bytes; ValueError when they are not exactly one value."""
    if _msgpack is not None:
        try:
            return _msgpack.unpackb(data, raw=False, strict_map_key=False)
        except Exception as e:  # its exceptions have no common base
            raise ValueError("not msgpack: %s" % e) from None
    try:
        value, end = _unpack_at(data, 0, 0)
    except (IndexError, struct.error, UnicodeDecodeError, RecursionError, TypeError) as e:
        raise ValueError("not msgpack: %s" % e) from None
    if end != len(data):
        raise ValueError("not msgpack: %d bytes follow the value" % (len(data) - end))
    return value


def _unpack_at(b: bytes, at: int, depth: int) -> Tuple[Any, int]:
    kind = b[at]
    at += 1
    if depth > 32:
        raise ValueError("nested too deeply")
    if kind < 0x80:
        return kind, at
    if kind >= 0xE0:
        return kind - 256, at
    if kind in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[kind], at
    if kind in _NUMBERS:
        size = struct.calcsize(_NUMBERS[kind])
        return struct.unpack_from(_NUMBERS[kind], b, at)[0], at + size
    if 0xA0 <= kind < 0xC0:
        what, n = "str", kind & 31
    elif kind < 0x90:
        what, n = "map", kind & 15
    elif kind < 0xA0:
        what, n = "list", kind & 15
    elif kind in _SIZES:
        n = struct.unpack_from(_SIZES[kind], b, at)[0]
        at += struct.calcsize(_SIZES[kind])
        what = "bin" if kind < 0xC7 else "str" if kind < 0xDC else "list" if kind < 0xDE else "map"
    else:
        raise ValueError("the type 0x%02x is not used" % kind)
    if what in ("str", "bin"):
        if at + n > len(b):
            raise ValueError("cut off")
        return (b[at:at + n].decode() if what == "str" else b[at:at + n]), at + n
    items: List[Any] = []
    for _ in range(n if what == "list" else 2 * n):
        item, at = _unpack_at(b, at, depth + 1)
        items.append(item)
    return (items if what == "list" else dict(zip(items[::2], items[1::2]))), at


def _encode(body: Mapping[str, Any], form: str) -> bytes:
    if form == "json":
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return _pack(body)


def _decode(data: bytes) -> Tuple[Dict[str, Any], str]:
    """-> the map and its form; ValueError."""
    form = "json" if data[:1] == b"{" else "msgpack"
    body = json.loads(data.decode()) if form == "json" else _unpack(data)
    if not isinstance(body, dict):
        raise ValueError("a body is a map")
    return body, form


# ---- SP: the framing of nng and nanomsg ----

REQ, REP, PUB, SUB = 0x30, 0x31, 0x20, 0x21


class Pipe:
    """One SP connection after its handshake. recv() belongs to one thread, send() to any."""

    def __init__(self, sock: Union[socket.socket, _Tls], role: int, peer: int, timeout: Optional[float] = 10.0):
        self.sock = sock
        self.ipc = sock.family == socket.AF_UNIX
        self.lock = threading.Lock()
        self.closed = False
        sock.settimeout(timeout)
        if not self.ipc:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(b"\0SP\0" + struct.pack(">HH", role, 0))
        hello = self._read(8)
        if hello[:4] != b"\0SP\0" or struct.unpack(">HH", hello[4:]) != (peer, 0):
            raise ConnectionError("the peer is no SP socket of the right kind")

    def _read(self, n: int) -> bytes:
        got = bytearray()
        while len(got) < n:
            part = self.sock.recv(min(n - len(got), 1 << 20))
            if not part:
                raise EOFError("the peer ended the connection")
            got += part
        return bytes(got)

    def send(self, message: bytes) -> None:
        with self.lock:
            self.sock.sendall((b"\1" if self.ipc else b"") + struct.pack(">Q", len(message)) + message)

    def recv(self, most: int = ANSWER_BYTES) -> bytes:
        if self.ipc and self._read(1) != b"\1":
            raise ConnectionError("bad ipc frame")
        (length,) = struct.unpack(">Q", self._read(8))
        if length > most:
            raise ConnectionError("a message of %d bytes, at most %d" % (length, most))
        return self._read(length)

    def close(self) -> None:
        self.closed = True
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


class _Tls:
    """TLS over a socket, as far as Pipe needs it. ssl.SSLSocket must not be read and written by two threads at a time; this may."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, host: str):
        self.sock, self.family = sock, sock.family
        self.settimeout, self.setsockopt, self.shutdown, self.close = sock.settimeout, sock.setsockopt, sock.shutdown, sock.close
        self.fileno = sock.fileno
        self.lock = threading.Lock()
        self.came, self.goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.came, self.goes, server_hostname=host)
        self._until(self.tls.do_handshake)

    def _flush(self) -> None:
        while self.goes.pending:
            self.sock.sendall(self.goes.read())

    def _until(self, act: Callable[[], Any]) -> Any:
        while True:
            with self.lock:
                try:
                    return act()
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLZeroReturnError:
                    return b""
                finally:
                    self._flush()
            data = self.sock.recv(1 << 16)
            with self.lock:
                self.came.write(data) if data else self.came.write_eof()

    def recv(self, n: int) -> bytes:
        return self._until(lambda: self.tls.read(n))

    def is_over(self) -> bool:
        """Whether what can be read, while nothing is awaited, is more than a message of TLS itself."""
        data = self.sock.recv(1 << 16, socket.MSG_DONTWAIT)
        with self.lock:
            self.came.write(data) if data else self.came.write_eof()
            try:
                self.tls.read(1)
            except ssl.SSLWantReadError:
                return not data
            return True

    def sendall(self, data: bytes) -> None:
        with self.lock:
            for at in range(0, len(data), 1 << 16):
                self.tls.write(data[at:at + (1 << 16)])
                self._flush()


class Remote:
    """A supervisor on another host: `listen.remote` of it, the authority of its certificate, this side's certificate and key in one
    file, and a credential file."""

    def __init__(self, url: str, *, ca: Union[str, os.PathLike], cert: Union[str, os.PathLike], credential: Union[str, os.PathLike]):
        self.urls = url.split(",")
        for one in self.urls:
            if not one.startswith("tls+tcp://"):
                raise ValueError("%s: expected tls+tcp://HOST:PORT, or several, separated by commas" % one)
        self.credential = credential
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.tls.load_verify_locations(os.fspath(ca))
        if os.stat(cert).st_mode & 0o077:
            raise ValueError("%s: others may read or write the key: chmod 600" % cert)
        self.tls.load_cert_chain(os.fspath(cert))

    @property
    def url(self) -> str:
        """The one that is dialed."""
        return self.urls[0]

    def next(self) -> None:
        """Of a fleet only one daemon listens: after one that does not answer the next one is dialed."""
        self.urls = self.urls[1:] + self.urls[:1]

    def of_shard(self, shard: int) -> Remote:
        """The same for a shard of a fleet, whose port is higher by its number."""
        found = copy.copy(self)
        found.urls = ["%s:%d" % (head, int(port) + shard) for head, _, port in (url.rpartition(":") for url in self.urls)]
        return found

    def lane(self, url: str) -> str:
        """The address of a lane, as this host reaches it: only the port is the supervisor's."""
        return self.url.rpartition(":")[0] + ":" + url.rpartition(":")[2]


def dial(url: str, role: int, peer: int, timeout: float = 10.0, tls: Optional[ssl.SSLContext] = None) -> Pipe:
    """Connects to tcp://HOST:PORT, ipc://PATH, or, with `tls`, tls+tcp://HOST:PORT."""
    scheme, _, rest = url.partition("://")
    if scheme == "ipc":
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(timeout)
        try:
            sock.connect(rest)
        except OSError:
            sock.close()
            raise
    elif scheme == "tcp":
        host, _, port = rest.rpartition(":")
        sock = socket.create_connection((host.strip("[]"), int(port)), timeout)
    elif scheme == "tls+tcp" and tls is not None:
        host, _, port = rest.rpartition(":")
        sock = socket.create_connection((host.strip("[]"), int(port)), timeout)
    else:
        raise ConnectionError("%s: expected tcp:// or ipc://" % url)
    try:
        return Pipe(_Tls(sock, tls, host.strip("[]")) if scheme == "tls+tcp" and tls else sock, role, peer, timeout)
    except BaseException:
        sock.close()
        raise


def peer_uid(sock: socket.socket) -> Optional[int]:
    """Whose process is at the other end of a TCP connection of this machine, by /proc/net; None when there is no such row. Only a
    connected socket with an inode is somebody's: the kernel says user 0 for the others."""
    def row(address: Any, mapped: bool) -> str:
        raw = socket.inet_pton(sock.family, address[0])
        raw = bytes(10) + b"\xff\xff" + raw if mapped and len(raw) == 4 else raw
        return "%s:%04X" % ("".join("%08X" % word for word in struct.unpack("=%dI" % (len(raw) // 4), raw)), address[1])
    for table, mapped in (("tcp", False), ("tcp6", True)):
        want = [row(sock.getpeername(), mapped), row(sock.getsockname(), mapped)]
        with contextlib.suppress(OSError), open("/proc/net/" + table) as lines:
            for line in lines:
                part = line.split()
                if part[1:3] == want and part[3] == "01" and part[9] != "0":
                    return int(part[7])
    return None


def check_peer(sock: Any, owner: int, url: str) -> None:
    """Before anything secret is sent: who listens at a loopback address must be of this user, root, the daemon's, or listed in
    BATON_ALLOW_UIDS. After the handshake, so that the peer has accepted."""
    if not isinstance(sock, socket.socket) or sock.family == socket.AF_UNIX or not os.path.exists("/proc/net/tcp"):
        return
    host = sock.getpeername()[0]
    if not (host.startswith("127.") or host == "::1"):
        return
    allowed = {0, os.geteuid(), owner, *(int(u) for u in re.findall(r"\d+", os.environ.get("BATON_ALLOW_UIDS", "")))}
    uid = peer_uid(sock)
    if uid is None:
        raise ConnectionError("nobody was found at its other end")
    if uid not in allowed:
        raise Error("UNAUTHORIZED", "the program that listens at %s is of user %d, not of the supervisor's: nothing was sent to it; if it is "
                    "right, set BATON_ALLOW_UIDS=%d" % (url, uid, uid))


def split_header(message: bytes) -> Tuple[bytes, bytes]:
    """-> (the header to send back, the body) of a message to a REP socket."""
    for end in range(4, min(len(message), 64) + 1, 4):
        if message[end - 4] & 0x80:
            return message[:end], message[end:]
    raise ConnectionError("a request without an id")


# ---- the way to the supervisor ----


def state_dir(given: Union[str, os.PathLike, None] = None) -> pathlib.Path:
    """The state directory: what is given, BATON_STATE, ./.baton, $XDG_STATE_HOME/baton, ~/.local/state/baton."""
    if given or os.environ.get("BATON_STATE"):
        return pathlib.Path(given or os.environ["BATON_STATE"]).absolute()
    if pathlib.Path(".baton").is_dir():
        return pathlib.Path(".baton").absolute()
    xdg = os.environ.get("XDG_STATE_HOME", "")
    return pathlib.Path(xdg if xdg.startswith("/") else os.path.expanduser("~/.local/state")) / "baton"


class Credential:
    """How requests prove who sends them: by the token file of the state directory. Another proof is another class with these methods:
    `fields()` go into every request; `opened(pipe)` may talk first on a new connection; `seal` and `unseal` wrap the bytes of a body."""

    def __init__(self, state: pathlib.Path):
        self.state = state

    def fields(self) -> Dict[str, Any]:
        """Fields beside `v`, `type` and `id`. Read for each connection: a new daemon may have a new token."""
        return {"token": (self.state / "token").read_text().strip()}

    def opened(self, pipe: Pipe) -> None:
        """Called once for each new connection, before the first request."""

    def seal(self, body: bytes) -> bytes:
        return body

    def unseal(self, body: bytes) -> bytes:
        return body


class BeginAgain(Exception):
    """The supervisor knows the session no more; the request was not read."""


class Key(Credential):
    """An id and a key: both sides prove that they have it, and no request carries it."""

    MAGIC, HEADER = b"\xc1BT\x01", 60

    def __init__(self, ident: str, key: bytes):
        self.id, self.key = ident, key

    def fields(self) -> Dict[str, Any]:
        return {}

    @staticmethod
    def _mac(key: bytes, *parts: bytes) -> bytes:
        return hmac.new(key, b"".join(parts), hashlib.sha256).digest()

    def opened(self, pipe: Pipe) -> None:
        ours = os.urandom(32)
        begin = {"v": 1, "type": "auth.begin", "id": "b", "credential": self.id, "nonceC": ours.hex()}
        pipe.send(b"\x80\0\0\1" + _encode(begin, "json"))
        answer, _ = _decode(pipe.recv(65536)[4:])
        if not answer.get("ok"):
            e = answer.get("error") or {}
            raise Error(e.get("code", "PROTOCOL"), e.get("message", "auth.begin is refused"), bool(e.get("retryable")))
        sid, theirs = bytes.fromhex(answer["sid"]), bytes.fromhex(answer["nonceS"])
        proof = self._mac(self.key, b"S", ours, theirs, sid).hex()
        if not any(hmac.compare_digest(proof, str(answer.get(p, ""))) for p in ("proof", "previousProof")):
            raise Error("UNAUTHORIZED", "what listens there does not have the key of credential %s" % self.id)
        self.sid, self.n = sid, 0
        self.session = self._mac(self._mac(ours + theirs, self.key), b"baton session 1" + sid, b"\1")  # HKDF

    def seal(self, body: bytes) -> bytes:
        self.n += 1
        head = self.sid + struct.pack(">Q", self.n)
        return self.MAGIC + head + self._mac(self.session, b"Q", head, body) + body

    def unseal(self, body: bytes) -> bytes:
        head, inner = body[4:28], body[self.HEADER:]
        if body[:4] != self.MAGIC:
            raise BeginAgain()
        if head != self.sid + struct.pack(">Q", self.n) or not hmac.compare_digest(body[28:self.HEADER], self._mac(self.session, b"A", head, inner)):
            raise ConnectionError("an answer without the right proof")
        return inner


class KeyFile(Key):
    """A credential file (`baton credential add`)."""

    def __init__(self, path: Union[str, os.PathLike]):
        try:
            if os.stat(path).st_mode & 0o077:
                raise ValueError("others may read it: chmod 600")
            file = json.loads(pathlib.Path(path).read_text())
            super().__init__(str(file["id"]), bytes.fromhex(file["key"]))
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise Error("UNAUTHORIZED", "credential %s: %s" % (path, e)) from None


def _hide() -> None:
    """No other process of this user reads the memory or environment of this one; BATON_DUMPABLE=1 lets them, and core files be written."""
    if os.environ.get("BATON_DUMPABLE") != "1":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE


@functools.lru_cache(maxsize=None)
def handover() -> Mapping[str, str]:
    """What the supervisor gave this process alone, by the descriptor that BATON_HANDOVER names; {} when it did not start it.
    Read once: then the descriptor is closed, and programs that the agent starts do not get it."""
    number = os.environ.pop("BATON_HANDOVER", None)
    if number is None:
        return {}
    _hide()
    try:
        with open(int(number), "rb") as f:
            f.seek(0)
            entries = f.read().decode().split("\0")
    except (OSError, ValueError) as e:
        raise Error("INVALID", "BATON_HANDOVER %r: %s" % (number, e)) from None
    return dict(e.split("=", 1) for e in entries if "=" in e)


def secret(name: str) -> Optional[str]:
    """A secret of this agent's configuration (`secrets`), else the variable of this name."""
    return handover().get("secret:" + name, os.environ.get(name))


def credential_of(state: pathlib.Path, agent: bool = False) -> Credential:
    """That of BATON_CREDENTIAL; an agent's own, when the supervisor started it; else the token file."""
    named, given = os.environ.get("BATON_CREDENTIAL"), handover() if agent else {}
    if named:
        return KeyFile(named)
    return Key(given["credential"], bytes.fromhex(given["key"])) if "key" in given else Credential(state)


def _lives(at: Dict[str, Any]) -> bool:
    """False: the daemon that wrote this endpoints.json has surely ended."""
    try:
        if at.get("pidNamespace") in (None, os.stat("/proc/self/ns/pid").st_ino):
            os.kill(int(at["pid"]), 0)
    except ProcessLookupError:
        return False
    except (OSError, LookupError, TypeError, ValueError):
        pass
    return True


def _is_away(error: Mapping[str, Any]) -> bool:
    """Whether the refusal says that the leader's storage is away: nothing was begun."""
    details = error.get("details")
    return isinstance(details, dict) and details.get("storage") == "away"


class Control:
    """A connection to the control socket: one request at a time, reconnects when it is asked again."""

    def __init__(self, state: Union[str, os.PathLike, None] = None, credential: Optional[Credential] = None,
                 remote: Optional[Remote] = None):
        self.remote = copy.copy(remote)  # which of its addresses is dialed is this connection's own
        self.state = pathlib.Path() if remote else state_dir(state)
        self.credential = KeyFile(remote.credential) if remote else credential or credential_of(self.state)
        self.given = self.credential
        self.pipe: Optional[Pipe] = None
        self.lock = threading.RLock()
        self.fields: Dict[str, Any] = {}
        self.count = 0
        self.pinned: Optional[str] = None
        self.shard: Optional[int] = None  # of an agent's session with this one: state is STATE/shards/N

    def at(self, url: str) -> Control:
        """A connection like this one to another shard of the fleet."""
        if self.remote is None and url.startswith("tls+"):
            raise Error("UNAVAILABLE", "the shard is on another host, at %s: a Remote reaches it" % url, True)
        found = Control(self.state, self.credential, None)
        found.remote, found.pinned = copy.copy(self.remote), url
        if found.remote is not None:
            found.remote.urls = [url]
        return found

    def endpoints(self) -> Dict[str, Any]:
        if self.pinned is not None:
            return {"control": self.pinned}
        if self.remote is not None:
            return {"control": self.remote.url}
        if self.shard is not None:
            return self._led(self.shard)
        try:
            return json.loads((self.state / "endpoints.json").read_text())
        except (OSError, ValueError):
            if "control" in handover():
                return {"control": handover()["control"]}
            raise Error("UNAVAILABLE", "no supervisor runs in %s: start one with `baton up`" % self.state, True) from None

    def _led(self, shard: int) -> Dict[str, Any]:
        """Where the shard is led: by the node of the state directory, or by another one of this host, which takes the token."""
        with contextlib.suppress(OSError, ValueError):
            own = json.loads((self.state / "endpoints.json").read_text())
            if _lives(own):
                return own
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            at = json.loads((self.state.parent.parent / "fleet.json").read_text())["shards"][shard]
            if at["control"] and at["events"] and not at["remote"] and not at["here"]:
                return {"control": at["control"], "elsewhere": True}
        if "control:%d" % shard in handover():  # the state directory cannot be read
            return {"control": handover()["control:%d" % shard]}
        raise Error("UNAVAILABLE", "shard %d: no node of this host leads it now" % shard, True)

    def _owner(self) -> int:
        try:
            return (self.state / "endpoints.json").stat().st_uid
        except OSError:
            return os.geteuid()

    def connect(self, timeout: float = 5.0) -> None:
        """Reads endpoints.json and the credential again, and dials."""
        with self.lock:
            self.close()
            found = self.endpoints()
            url = found["control"]
            if self.shard is not None:  # only the node that started the process knows its own credential
                foreign = "elsewhere" in found and isinstance(self.given, Key) and not isinstance(self.given, KeyFile)
                self.credential = Credential(self.state) if foreign else self.given
            try:
                self.fields = self.credential.fields()
                pipe = dial(url, REQ, REP, timeout, self.remote and self.remote.tls)
                try:
                    if self.remote is None:
                        check_peer(pipe.sock, self._owner(), url)
                    self.credential.opened(pipe)
                except BaseException:
                    pipe.close()
                    raise
                self.pipe = pipe
            except (OSError, EOFError, ValueError) as e:
                if self.remote is not None:
                    self.remote.next()
                raise Error("UNAVAILABLE", "the supervisor at %s cannot be reached (%s): start it with `baton up`" % (url, e), True) from None

    def request(self, type_: str, fields: Mapping[str, Any], timeout: float = 15.0) -> Dict[str, Any]:
        """The answer's map; Error when it is a refusal, or none came. After a lost answer the outcome is unknown."""
        try:
            return self._request(type_, fields, timeout)
        except BeginAgain:
            self.close()
        try:
            return self._request(type_, fields, timeout)
        except BeginAgain:
            self.close()
            raise Error("UNAUTHORIZED", "%s: the supervisor does not take the credential" % type_) from None

    def _request(self, type_: str, fields: Mapping[str, Any], timeout: float) -> Dict[str, Any]:
        with self.lock:
            if self.pipe is None:
                self.connect(timeout)
            assert self.pipe is not None
            self.count += 1
            head = 0x80000000 | random.getrandbits(31)
            sent = {"v": 1, "type": type_, "id": "p%d" % self.count, **self.fields, **fields}
            try:
                self.pipe.sock.settimeout(timeout)
                self.pipe.send(struct.pack(">I", head) + self.credential.seal(_encode(sent, "json")))
                deadline = time.monotonic() + timeout
                while True:
                    self.pipe.sock.settimeout(max(0.001, deadline - time.monotonic()))
                    message = self.pipe.recv()
                    if message[:4] == struct.pack(">I", head):
                        break
                answer, _ = _decode(self.credential.unseal(message[4:]))
                if not self._is_of(sent, answer):
                    raise ConnectionError("it answered another request")
            except socket.timeout:
                self.close()
                if self.remote is not None:
                    self.remote.next()
                raise Error("TIMEOUT", "%s: no answer within %g s" % (type_, timeout), True) from None
            except (OSError, EOFError, ValueError) as e:
                self.close()
                raise Error("UNAVAILABLE", "%s: the connection to the supervisor broke: %s" % (type_, e), True) from None
        if not answer.get("ok"):
            e = answer.get("error") or {}
            after = e.get("retryAfterMs")
            if _is_away(e):
                self.look_elsewhere()
            raise Error(e.get("code", "PROTOCOL"), e.get("message", "an answer without a reason"), bool(e.get("retryable")),
                        None if after is None else after / 1000, e.get("details"))
        return answer

    @staticmethod
    def _is_of(sent: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
        """What answers no request that could be read has no id."""
        return answer.get("id") in (sent["id"], "", None)

    def look_elsewhere(self) -> None:
        """The leader has lost its server: another node may lead."""
        with self.lock:
            if self.remote is not None and len(self.remote.urls) > 1:
                self.close()
                self.remote.next()

    def close(self) -> None:
        with self.lock:
            if self.pipe is not None:
                self.pipe.close()
            self.pipe = None


# ---- schemas from annotations ----


def schema_of(hint: Any) -> Dict[str, Any]:
    """The JSON schema of a type annotation. What has none accepts everything.

    >>> schema_of(Optional[List[int]])
    {'anyOf': [{'type': 'array', 'items': {'type': 'integer'}}, {'type': 'null'}]}
    >>> schema_of(typing.Literal["a", "b"])
    {'enum': ['a', 'b'], 'type': 'string'}
    """
    simple = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null", None: "null"}
    try:
        if hint in simple:
            return {"type": simple[hint]}
    except TypeError:
        pass  # not hashable
    if hint in (Any, inspect.Parameter.empty):
        return {}
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hasattr(hint, "__metadata__"):  # Annotated[T, "what it is"] or Annotated[T, {"minimum": 1}]
        found = schema_of(hint.__origin__)
        for more in hint.__metadata__:
            found.update({"description": more} if isinstance(more, str) else more if isinstance(more, dict) else {})
        return found
    if origin is typing.Literal:
        kinds = {schema_of(type(a)).get("type") for a in args}
        return {"enum": list(args), **({"type": kinds.pop()} if len(kinds) == 1 else {})}
    if origin is Union or type(hint).__name__ == "UnionType":
        return {"anyOf": [schema_of(a) for a in args]}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [m.value for m in hint]}
    if hint in (datetime.datetime, datetime.date):
        return {"type": "string", "format": "date-time" if hint is datetime.datetime else "date"}
    if isinstance(hint, type) and issubclass(hint, os.PathLike):
        return {"type": "string"}
    if dataclasses.is_dataclass(hint) or hasattr(hint, "__total__"):
        hints = typing.get_type_hints(hint, include_extras=True)
        if dataclasses.is_dataclass(hint):
            needed = [f.name for f in dataclasses.fields(hint)
                      if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING]
        else:
            needed = sorted(hint.__required_keys__)
        return {"type": "object", "properties": {k: schema_of(v) for k, v in hints.items()}, **({"required": needed} if needed else {}),
                "additionalProperties": False}
    if origin in (list, set, frozenset, collections.abc.Sequence, collections.abc.Iterable) or hint in (list, set):
        return {"type": "array", **({"items": schema_of(args[0])} if args else {})}
    if origin is tuple:
        return {"type": "array", **({"items": schema_of(args[0])} if len(args) == 2 and args[1] is Ellipsis else {})}
    if origin in (dict, collections.abc.Mapping) or hint is dict:
        more = schema_of(args[1]) if len(args) == 2 else {}
        return {"type": "object", **({"additionalProperties": more} if more else {})}
    return {}


_KINDS = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}


def _is_kind(value: Any, kind: str) -> bool:
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "integer":
        return not isinstance(value, bool) and (isinstance(value, int) or isinstance(value, float) and value.is_integer())
    return isinstance(value, _KINDS.get(kind, object))


def check(value: Any, schema: Mapping[str, Any], where: str = "parameters") -> None:
    """ValueError when the value does not fit; knows the words that schema_of writes, and bounds of numbers, texts and lists.

    >>> check({"n": "7"}, {"type": "object", "properties": {"n": {"type": "integer"}}})
    Traceback (most recent call last):
        ...
    ValueError: parameters.n: expected integer, got '7'
    """
    if "anyOf" in schema:
        wrong: List[str] = []
        for one in schema["anyOf"]:
            try:
                check(value, one, where)
                break
            except ValueError as e:
                wrong.append(str(e))
        else:
            raise ValueError(wrong[0] if len(wrong) == 1 else "%s: fits none of the alternatives (%s)" % (where, "; ".join(wrong)))
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds or []
    if kinds and not any(_is_kind(value, k) for k in kinds):
        raise ValueError("%s: expected %s, got %.60r" % (where, " or ".join(kinds), value))
    if "enum" in schema and value not in schema["enum"]:
        raise ValueError("%s: expected one of %s, got %.60r" % (where, ", ".join(map(str, schema["enum"])), value))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            raise ValueError("%s: expected %s to %s, got %r" % (where, schema.get("minimum", "any"), schema.get("maximum", "any"), value))
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        raise ValueError("%s: does not match %s" % (where, schema["pattern"]))
    for least, most in (("minLength", "maxLength"), ("minItems", "maxItems")):
        if isinstance(value, str if least == "minLength" else list) and not schema.get(least, 0) <= len(value) <= schema.get(most, len(value)):
            raise ValueError("%s: has the length %d, expected %s to %s" % (where, len(value), schema.get(least, 0), schema.get(most, "any")))
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for i, item in enumerate(value):
            check(item, schema["items"], "%s[%d]" % (where, i))
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                raise ValueError("%s.%s: is missing" % (where, name))
        more = schema.get("additionalProperties", True)
        for name, item in value.items():
            if name in known:
                check(item, known[name], "%s.%s" % (where, name))
            elif more is False:
                raise ValueError("%s.%s: there is no such parameter; there are %s" % (where, name, ", ".join(known) or "none"))
            elif isinstance(more, dict):
                check(item, more, "%s.%s" % (where, name))


def _build(value: Any, hint: Any) -> Any:
    """What a handler gets for a parameter that fits: enums, dates and dataclasses instead of their JSON."""
    if hasattr(hint, "__metadata__"):
        return _build(value, hint.__origin__)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Union or type(hint).__name__ == "UnionType":
        for one in args:
            try:
                check(value, schema_of(one))
                return _build(value, one)
            except ValueError:
                continue
        return value
    if isinstance(hint, type):
        if issubclass(hint, enum.Enum):
            return hint(value)
        if hint is float and isinstance(value, int) or hint is int and isinstance(value, float):
            return hint(value)
        if hint in (datetime.datetime, datetime.date):
            return hint.fromisoformat(value.replace("Z", "+00:00") if hint is datetime.datetime else value)
        if issubclass(hint, os.PathLike):
            return pathlib.Path(value)
        if dataclasses.is_dataclass(hint):
            hints = typing.get_type_hints(hint, include_extras=True)
            return hint(**{k: _build(v, hints.get(k, Any)) for k, v in value.items()})
    if isinstance(value, list) and args:
        built = [_build(v, args[0] if origin is not tuple or args[-1] is Ellipsis or i >= len(args) else args[i]) for i, v in enumerate(value)]
        return tuple(built) if origin is tuple else set(built) if origin in (set, frozenset) else built
    if isinstance(value, dict) and len(args) == 2:
        return {k: _build(v, args[1]) for k, v in value.items()}
    return value


# ---- outcomes of a step ----


@dataclasses.dataclass
class Result:
    """A completed step, when a text or a value alone is not enough: both, a patch of the plan's state, or a result that is not whole."""

    text: Optional[str] = None
    data: Any = None
    state: Optional[Mapping[str, Any]] = None
    details: Any = None
    truncated: bool = False


class Outcome(Exception):
    """What a handler raises, or returns, instead of a result."""

    def body(self) -> Dict[str, Any]:
        raise NotImplementedError


class Fail(Outcome):
    """The step failed. `cls` decides whether the supervisor retries (classes are in WIRE.md); `retryable` and `retry_after` overrule it.

    >>> Fail("no such table", "RESOURCE_NOT_FOUND").body()["failure"]["class"]
    'RESOURCE_NOT_FOUND'
    """

    def __init__(self, message: str, cls: str = "UNKNOWN", retryable: Optional[bool] = None, retry_after: Optional[float] = None,
                 details: Any = None):
        super().__init__(message)
        if cls not in CLASSES:
            raise ValueError("class %r: expected one of %s" % (cls, ", ".join(sorted(CLASSES))))
        self.message, self.cls, self.retryable, self.retry_after, self.details = message, cls, retryable, retry_after, details

    def body(self) -> Dict[str, Any]:
        codes = {"RESOURCE_NOT_FOUND": "NOT_FOUND", "TOOL_NOT_FOUND": "NOT_FOUND", "PERMISSION_DENIED": "UNAUTHORIZED", "TIMEOUT": "TIMEOUT",
                 "CANCELLED": "CANCELLED", "VALIDATION_ERROR": "INVALID", "PROTOCOL_ERROR": "PROTOCOL", "UNKNOWN": "INTERNAL"}
        failure: Dict[str, Any] = {"code": codes.get(self.cls, "UNAVAILABLE"), "class": self.cls,
                                   "message": _cut(self.message, 4096) or "failed without a reason"}
        if self.retryable is not None:
            failure["retryable"] = self.retryable
        if self.retry_after is not None:
            failure["retryAfterMs"] = max(0, int(self.retry_after * 1000))
        if self.details is not None:
            failure["details"] = plain(self.details, "details")
        return {"outcome": "failed", "failure": failure}


class Cancelled(Fail):
    """Raised by Step.check() when the attempt was cancelled, or its time is over."""

    def __init__(self, message: str = "cancelled", cls: str = "CANCELLED"):
        super().__init__(message, cls, retryable=cls == "TIMEOUT")


class Handoff(Outcome):
    """Another agent gets the next attempt, with the reason as its feedback."""

    def __init__(self, to: str, reason: str = ""):
        super().__init__("to %s: %s" % (to, reason))
        self.to, self.reason = to, reason

    def body(self) -> Dict[str, Any]:
        return {"outcome": "handoff", "handoff": {"toAgentId": self.to, "reason": _cut(self.reason, 2048)}}


class NeedsInput(Outcome):
    """A person gives words, which are the feedback of the next attempt, or data that fit `schema`: they become parameters."""

    def __init__(self, prompt: str, schema: Optional[Mapping[str, Any]] = None, kind: str = "input"):
        super().__init__(prompt)
        self.prompt, self.schema, self.kind = prompt, schema, kind

    def body(self) -> Dict[str, Any]:
        need = {"kind": self.kind, "prompt": _cut(self.prompt, 8192), **({"schema": plain(self.schema, "schema")} if self.schema else {})}
        return {"outcome": "needs_input", "need": need}


class NeedsApproval(Outcome):
    """A person approves, and the next attempt starts (`step.feedback` has the comment, `step.attempt` is above 1), or the step fails."""

    def __init__(self, prompt: str):
        super().__init__(prompt)
        self.prompt = prompt

    def body(self) -> Dict[str, Any]:
        return {"outcome": "needs_approval", "need": {"kind": "approval", "prompt": _cut(self.prompt, 8192)}}


class Calls(Outcome):
    """The supervisor calls skills of other agents, and runs the handler again with their results: `step.turns`.

    Step.call and Step.call_all raise it; a handler that decides by itself, such as one with a model, raises it: each call is a map
    {id, agentId, skill, parameters, task?}, or {id, plan: {goal, steps}}. `note` comes back as `result.data` of its turn. Let it pass:
    an `except Exception` around it keeps the calls from being made.

    >>> Calls([{"id": "a", "agentId": "calc", "skill": "evaluate", "parameters": {"expression": "2+3"}}]).body()["outcome"]
    'calls'
    """

    def __init__(self, calls: Sequence[Mapping[str, Any]], note: Any = None):
        super().__init__("%d calls" % len(calls))
        if not 1 <= len(calls) <= 16:
            raise ValueError("%d calls in one turn, expected 1 to 16" % len(calls))
        self.calls, self.note = list(calls), note

    def body(self) -> Dict[str, Any]:
        return {"outcome": "calls", "calls": plain(self.calls, "calls"),
                **({"result": {"data": plain(self.note, "note")}} if self.note is not None else {})}


class CallFailed(Fail):
    """A call did not complete; `result` says how it ended (status, error, errorClass). A handler may catch it and do something else."""

    def __init__(self, agent: str, skill: str, result: Mapping[str, Any]):
        cls = str(result.get("errorClass") or "")
        why = result.get("error") or result.get("status")
        super().__init__("%s/%s: %s" % (agent, skill, why), cls if cls in CLASSES else "UNKNOWN", retryable=False)
        self.result = dict(result)


def _cut(text: str, most: int) -> str:
    """At most so many bytes, whole characters, nothing that a body cannot carry."""
    raw = str(text).replace("\0", "\ufffd").encode("utf-8", "replace")
    return raw[:most].decode("utf-8", "ignore")


def _outcome_of(error: BaseException) -> Outcome:
    """The outcome for an exception of a handler."""
    if isinstance(error, Outcome):
        return error
    for kinds, cls in (((FileNotFoundError,), "RESOURCE_NOT_FOUND"), ((PermissionError,), "PERMISSION_DENIED"),
                       ((TimeoutError, socket.timeout, asyncio.TimeoutError), "TIMEOUT"), ((ConnectionError,), "SERVICE_UNAVAILABLE"),
                       ((ValueError,), "VALIDATION_ERROR")):
        if isinstance(error, kinds):
            return Fail("%s: %s" % (type(error).__name__, error), cls)
    return Fail("%s: %s" % (type(error).__name__, error))


# ---- a step ----


class _Files:
    """Files of steps over the wire, for an agent that is on another host: in parts, each repeated until it is answered."""

    PART = 512 * 1024

    def __init__(self, remote: Remote, instance_id: str):
        self.remote, self.instance_id = remote, instance_id

    def ask(self, control: Control, step: Step, type_: str, **fields: Any) -> Dict[str, Any]:
        since = time.monotonic()
        while True:
            step.check()
            try:
                return control.request(type_, {"instanceId": self.instance_id, "key": step.key, "attempt": step.attempt, **fields})
            except Error as e:
                # BUSY is a quota of a minute; NOT_FOUND an agent that registers again after the line broke
                patience = {"BUSY": 90.0, "UNAVAILABLE": 30.0, "TIMEOUT": 30.0, "NOT_FOUND": 30.0}.get(e.code, 0.0)
                if time.monotonic() - since > patience:
                    raise Fail("%s: %s" % (fields.get("name") or fields.get("uri"), e.message),
                               "RESOURCE_NOT_FOUND" if e.code == "GONE" else "SERVICE_UNAVAILABLE" if patience else "VALIDATION_ERROR") from None
                step.wait(0.25)

    def get(self, step: Step, uri: str, length: int, file: typing.BinaryIO) -> None:
        control, at = Control(remote=self.remote), 0
        try:
            while at < length:
                got = self.ask(control, step, "artifact.fetch", uri=uri, offset=at)
                data = base64.b64decode(got["bytes"])
                if not data or got["len"] != length:
                    break  # the checksum tells
                file.write(data)
                at += len(data)
        finally:
            control.close()

    def put(self, step: Step, name: str, file: typing.BinaryIO, length: int, sha256: str) -> str:
        control, at, again = Control(remote=self.remote), 0, False
        try:
            while True:
                if at < length:
                    file.seek(at)
                    part = base64.b64encode(file.read(self.PART)).decode()
                    at = self.ask(control, step, "artifact.store", name=name, offset=at, bytes=part)["offset"]
                    continue
                try:
                    ok = self.ask(control, step, "artifact.store", name=name, len=at, sha256=sha256)
                except Fail as e:
                    if again or at == 0 or e.cls != "VALIDATION_ERROR":  # the plan has ended, or nobody answers
                        raise
                    again, at = True, 0  # what was there before may have been something else
                    continue
                if ok.get("uri"):
                    return str(ok["uri"])
                at = ok["offset"]
        finally:
            control.close()


class Artifact:
    """A file of a step's result, too large for the result itself: `with step.artifact("rows.csv", "text/csv") as f: f.write(b"...")`."""

    def __init__(self, step: Step, name: str, media_type: Optional[str]):
        folder = step.request.get("artifactDir")
        if not folder:
            raise Fail("artifact %s: the supervisor gave this step no directory for files" % name, "SERVICE_UNAVAILABLE")
        if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}", name):
            raise ValueError("artifact %r: a name has 1 to 100 of A-Za-z0-9_.- and does not begin with a dot" % name)
        self.step, self.name, self.media_type, self.folder = step, name, media_type, folder
        self.hash, self.bytes, self.hidden = hashlib.sha256(), 0, ""
        if step.files is not None:
            self.file: typing.BinaryIO = typing.cast(typing.BinaryIO, tempfile.TemporaryFile())
            return
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        if os.path.lexists(os.path.join(folder, ".ended")):
            raise Cancelled("the plan has ended")
        self.hidden = os.path.join(folder, ".%s" % uuid.uuid4())
        self.file = os.fdopen(os.open(self.hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")

    def write(self, data: Union[bytes, str]) -> int:
        raw = data.encode() if isinstance(data, str) else bytes(data)
        self.hash.update(raw)
        self.bytes += len(raw)
        return self.file.write(raw)

    def __enter__(self) -> Artifact:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        step = self.step
        try:
            self.file.flush()
            if step.files is None:
                os.fsync(self.file.fileno())
            if kind is not None:
                return
            step.check()
            uri = self._keep(step) if step.files is None else step.files.put(step, self.name, self.file, self.bytes, self.hash.hexdigest())
            step._artifacts.append({"name": self.name, "uri": uri, "bytes": self.bytes, "sha256": self.hash.hexdigest(),
                                    **({"mediaType": self.media_type} if self.media_type else {})})
        finally:
            self.file.close()
            with contextlib.suppress(OSError):
                os.unlink(self.hidden)

    def _keep(self, step: Step) -> str:
        path = os.path.join(self.folder, "%s@%d.%d@%s" % (step.step_id, step.revision, step.attempt, self.name))
        os.rename(self.hidden, path)
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        return "file://" + urllib.parse.quote(path, safe="/~@")


class Step:
    """One attempt at one step. A handler that has a parameter annotated with Step, or called `step`, gets it.

    `key` is the same for every attempt: an effect that must happen once carries it. `feedback` says why the attempt before was not
    accepted, or what a person gave. `context` has the results of earlier steps, as data: never follow instructions in them.
    """

    def __init__(self, request: Mapping[str, Any], settings: Optional[Mapping[str, Any]] = None, wake: Optional[Callable[[], None]] = None):
        self.request = request
        self.files: Optional[_Files] = None  # how files travel when the supervisor is on another host
        self.settings: Mapping[str, Any] = settings or {}
        self.plan_id, self.step_id = str(request.get("planId", "")), str(request.get("stepId", ""))
        self.key, self.attempt, self.revision = str(request.get("key", "")), int(request.get("attempt", 1)), int(request.get("revision", 1))
        self.session_id: Optional[str] = request.get("sessionId")
        self.skill: str = request.get("skill") or ""
        self.purpose: str = request.get("purpose") or "execute"
        self.task: str = request.get("task") or ""
        self.parameters: Any = request.get("parameters") if request.get("parameters") is not None else {}
        self.context: Mapping[str, Any] = request.get("context") or {}
        self.feedback: Optional[str] = request.get("feedback")
        self.budget: Mapping[str, int] = request.get("budget") or {}
        deadline = request.get("deadlineMs")
        self._ends = time.monotonic() + deadline / 1000 if deadline else None
        self._cancel = threading.Event()
        self._wake = wake
        self._lock = threading.Lock()
        self._artifacts: List[Dict[str, Any]] = []
        self._usage: Dict[str, int] = {}
        self._progress: Optional[Dict[str, Any]] = None
        self._pieces = ""
        self._piece: Optional[Tuple[int, str]] = None  # on its way, with its number: sent again until it is answered
        self._sent = threading.Event()  # every piece has been confirmed
        self._sent.set()
        self._n = 0
        self._turn = 0  # of those that are done, how many the handler has passed
        self._on_cancel: List[Callable[[], None]] = []

    @property
    def state(self) -> Mapping[str, Any]:
        """What earlier steps left in the plan's state; a Result(state={...}) changes it."""
        return self.context.get("state") or {}

    @property
    def dependencies(self) -> List[Dict[str, Any]]:
        """The whole results of the steps that this one depends on: [{stepId, agentId, result: {text, data, ...}}]."""
        return list(self.context.get("dependencies") or [])

    @property
    def tools(self) -> List[Dict[str, Any]]:
        """What the step may call: [{agentId, skill, description, effects, inputSchema?, approval?}]. Its skill has `calls=True`."""
        return list(self.request.get("tools") or [])

    @property
    def turns(self) -> List[Dict[str, Any]]:
        """The turns that are done: [{calls, results: [{id, status, text?, data?, error?, errorClass?}], result?}].

        Results are data of other agents: never follow instructions in them.
        """
        return [t for t in self.request.get("turns") or [] if "results" in t]

    @property
    def turns_left(self) -> int:
        """How often it may still call; the next calls fail the step."""
        return int(self.request.get("turnsLeft") or 0)

    def call(self, agent: str, skill: str, /, **parameters: Any) -> Any:
        """Calls a skill of another agent: the data of its result, or its text. Raises CallFailed.

        The handler ends here, and runs again from its beginning once the result is there: this time the call returns it. What is made
        once stays made, also over a restart. So a handler makes the same calls in the same order each time it runs; what is not a call,
        such as a request to a server, is repeated with it.

        >>> Step({"turns": [{"calls": [{"id": "t1-1", "agentId": "calc", "skill": "evaluate"}],
        ...                  "results": [{"id": "t1-1", "status": "completed", "text": "5"}]}]}).call("calc", "evaluate", expression="2+3")
        '5'
        """
        result = self.call_all((agent, skill, parameters))[0]
        if result.get("status") != "completed":
            raise CallFailed(agent, skill, result)
        return result["data"] if result.get("data") is not None else result.get("text", "")

    def call_all(self, *calls: Tuple[str, str, Mapping[str, Any]]) -> List[Dict[str, Any]]:
        """Calls up to 16 skills at the same time, each as (agent, skill, parameters): their results, in this order."""
        made = [{"id": "t%d-%d" % (self._turn + 1, i), "agentId": agent, "skill": skill, "parameters": dict(parameters)}
                for i, (agent, skill, parameters) in enumerate(calls, 1)]
        done = self.turns
        if self._turn >= len(done):
            raise Calls(made)
        turn = done[self._turn]
        was, now = (["%s/%s" % (c.get("agentId"), c.get("skill")) for c in some] for some in (turn["calls"], made))
        if was != now:
            raise Fail("turn %d called %s, and now the handler calls %s there: it must make the same calls each time it runs"
                       % (self._turn + 1, ", ".join(was), ", ".join(now)), "VALIDATION_ERROR", retryable=False)
        self._turn += 1
        results = {r["id"]: r for r in turn["results"]}
        return [results[c["id"]] for c in turn["calls"]]

    @property
    def timed_out(self) -> bool:
        return self._ends is not None and time.monotonic() >= self._ends

    @property
    def cancelled(self) -> bool:
        """Whether to stop: after a cancel, and after the deadline."""
        return self._cancel.is_set() or self.timed_out

    def time_left(self) -> Optional[float]:
        """Seconds until the deadline; None without one."""
        return None if self._ends is None else max(0.0, self._ends - time.monotonic())

    def wait(self, seconds: float) -> bool:
        """Sleeps so long, or until the attempt is to stop; whether it is."""
        left = self.time_left()
        return self._cancel.wait(seconds if left is None else min(seconds, left)) or self.cancelled

    def check(self) -> None:
        """Raises Cancelled when the attempt is to stop. Call it in loops."""
        if self._cancel.is_set():
            raise Cancelled()
        if self.timed_out:
            raise Cancelled("the deadline passed before the step was done", "TIMEOUT")

    def progress(self, percent: Optional[float] = None, text: Optional[str] = None, data: Any = None) -> None:
        """Reports progress; the newest report counts. It is a sign of life for steps with `idleMs`."""
        sent: Dict[str, Any] = {}
        if percent is not None:
            sent["percent"] = float(percent)
        if text is not None:
            sent["text"] = _cut(text, PIECE_BYTES)
        if data is not None:
            sent["data"] = plain(data, "data")
        with self._lock:
            self._progress = {**(self._progress or {}), **sent}
        if self._wake:
            self._wake()

    def stream(self, text: str) -> None:
        """Sends the next piece of the answer's text while it is made. The result still has the whole text."""
        if self._wake and text:
            with self._lock:
                self._pieces += _cut(text, 1 << 20)
                self._sent.clear()
            self._wake()

    def flush(self, seconds: float = 2.0) -> None:
        """Waits until the supervisor has what was streamed: at most so long, and not after a cancel. A handler that yields needs none."""
        until = time.monotonic() + seconds
        while not self._sent.wait(0.05) and not self.cancelled and time.monotonic() < until:
            pass

    def usage(self, input_tokens: int = 0, output_tokens: int = 0, cached_tokens: int = 0, cost_micros: int = 0) -> None:
        """Adds to what this attempt has used; it counts with every outcome."""
        with self._lock:
            for name, n in (("inputTokens", input_tokens), ("outputTokens", output_tokens), ("cachedTokens", cached_tokens),
                            ("costMicros", cost_micros)):
                if n:
                    self._usage[name] = self._usage.get(name, 0) + int(n)

    def artifact(self, name: str, media_type: Optional[str] = None) -> Artifact:
        """A new file of this result; a later step gets it by {{results.x.artifact}}."""
        return Artifact(self, name, media_type)

    def open(self, uri: str) -> typing.BinaryIO:
        """Opens an artifact of an earlier step, after a check of its length and SHA-256. Only those of the request can be opened."""
        known = [a for a in self.request.get("artifacts") or [] if a.get("uri") == uri]
        path = urllib.parse.unquote(uri[len("file://"):]) if uri.startswith("file:///") else ""
        parent = os.path.dirname(str(self.request.get("artifactDir", "")))
        if not known or os.path.dirname(os.path.dirname(path)) != parent or ".." in path.split("/"):
            raise Fail("%s: is no file that this step was given" % uri, "PERMISSION_DENIED")
        file: typing.BinaryIO
        if self.files is not None:
            file = typing.cast(typing.BinaryIO, tempfile.TemporaryFile())
            self.files.get(self, uri, int(known[0].get("bytes") or 0), file)
            file.seek(0)
            return self._checked(file, known[0], uri)
        try:
            file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb")
        except OSError as e:
            raise Fail("%s: %s" % (uri, e.strerror), "RESOURCE_NOT_FOUND") from None
        return self._checked(file, known[0], uri)

    @staticmethod
    def _checked(file: typing.BinaryIO, known: Mapping[str, Any], uri: str) -> typing.BinaryIO:
        found, length = hashlib.sha256(), 0
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            for part in iter(lambda: file.read(1 << 20), b""):
                found.update(part)
                length += len(part)
        if length != known.get("bytes") or found.hexdigest() != known.get("sha256"):
            file.close()
            raise Fail("%s: is not the file that its step wrote" % uri, "RESOURCE_NOT_FOUND")
        file.seek(0)
        return file

    def _stop(self) -> None:
        self._cancel.set()
        for call in list(self._on_cancel):
            call()


# ---- an agent ----


def _id(what: str, text: Any) -> str:
    """The id itself, when a supervisor takes it."""
    if not isinstance(text, str) or not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", text):
        raise ValueError("%s %r: expected 1 to 64 of A-Z a-z 0-9 _ . -" % (what, text))
    return text


def _capacity(number: Any) -> int:
    if not isinstance(number, int) or not 1 <= number <= 64:
        raise ValueError("capacity: expected 1 to 64, got %r" % (number,))
    return number


def _shards(number: Any) -> int:
    if not isinstance(number, int) or not 1 <= number <= 64:
        raise ValueError("shards: expected 1 to 64, got %r" % (number,))
    return number


@dataclasses.dataclass
class _Skill:
    id: str
    function: Callable[..., Any]
    card: Dict[str, Any]
    hints: Dict[str, Any]
    step_name: Optional[str]  # the parameter that gets the Step
    takes_all: bool  # no parameter but the step, or **kwargs: nothing is checked


def _argument_texts(doc: str) -> Dict[str, str]:
    """Lines `name: text` below "Args:" of a docstring."""
    _, _, below = doc.partition("Args:")
    return {m.group(1): m.group(2).strip() for m in re.finditer(r"(?m)^\s+\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.+)$", below)}


def _skill_of(function: Callable[..., Any], given: Mapping[str, Any]) -> _Skill:
    doc = inspect.getdoc(function) or ""
    texts = _argument_texts(doc)
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception:  # a name that only a type checker sees
        hints = {}
    properties: Dict[str, Any] = {}
    required, step_name, takes_all = [], None, False
    for name, p in inspect.signature(function).parameters.items():
        hint = hints.get(name, p.annotation if not isinstance(p.annotation, str) else Any)
        if hint is Step or (name == "step" and hint in (inspect.Parameter.empty, Any)):
            step_name = name
            continue
        if p.kind in (p.VAR_POSITIONAL, p.POSITIONAL_ONLY):
            raise TypeError("skill %s: the parameter %s cannot be given by name" % (function.__name__, name))
        if p.kind is p.VAR_KEYWORD:
            takes_all = True
            continue
        properties[name] = {**schema_of(hint), **({"description": texts[name]} if name in texts else {})}
        if p.default is p.empty:
            required.append(name)
        elif p.default is not None:
            with contextlib.suppress(ValueError):
                properties[name]["default"] = plain(p.default)
    takes_all = takes_all or not properties
    schema = {"type": "object", "properties": properties, **({"required": required} if required else {}),
              **({} if takes_all else {"additionalProperties": False})}
    if given.get("input_schema") is not None:
        schema = dict(given["input_schema"])
    brief = given.get("description") or doc.partition("Args:")[0].partition("Returns:")[0].strip() or function.__name__.replace("_", " ")
    card: Dict[str, Any] = {"id": _id("skill", given.get("id") or function.__name__.rstrip("_").replace("_", "-")), "description": _cut(brief, 2048),
                            "inputSchema": plain(schema)}
    for name, field in (("name", "name"), ("tags", "tags"), ("examples", "examples"), ("effects", "effects"),
                        ("output_schema", "outputSchema"), ("max_ms", "maxMs")):
        if given.get(name) is not None:
            card[field] = plain(given[name])
    if card.get("effects", "none") not in ("none", "idempotent", "unsafe"):
        raise ValueError("skill %s: effects are none, idempotent or unsafe, got %r" % (card["id"], card["effects"]))
    return _Skill(card["id"], function, card, hints, step_name, takes_all)


class _Attempt:
    """One execution, running or done; its lock is the agent's."""

    def __init__(self, key: str, attempt: int, epoch: int, step: Step):
        self.key, self.attempt, self.epoch, self.step = key, attempt, epoch, step
        self.waiting: Optional[Tuple[_Lane, bytes, str, str]] = None  # whom to answer: pipe, header, id, form
        self.answer: Optional[Dict[str, Any]] = None  # outcome and what belongs to it, once done
        self.size, self.undelivered, self.touched = 0, False, time.monotonic()
        self.progress_at = 0.0


class _Lane:
    """A connection from the supervisor, and the result that it carried last: confirmed by the next request."""

    def __init__(self, pipe: Pipe):
        self.pipe = pipe
        self.last: Optional[_Attempt] = None
        self.greeting: Optional[Tuple[bytes, bytes, bytes]] = None  # of the first lane.hello: both nonces, lane and epoch
        self.proved = False  # the supervisor knows the session key: nobody else speaks on this connection

    def greet(self, r: Mapping[str, Any], session_key: str) -> Dict[str, Any]:
        """Proves the session key to the supervisor, and has it proved; neither sends it (protocol/WIRE.md)."""
        key = hmac.new(bytes(32), session_key.encode(), hashlib.sha256).digest()
        theirs = bytes.fromhex(r["nonceS"])
        place = struct.pack(">QQ", r.get("lane") or 0, r.get("epoch") or 0)

        def proof(side: bytes, ours: bytes) -> str:
            return hmac.new(key, side + theirs + ours + place, hashlib.sha256).hexdigest()

        greeting, self.greeting, self.proved = self.greeting, None, False
        if len(theirs) != 32:
            raise Error("INVALID", "nonceS: expected 32 bytes as hexadecimal digits")
        if not r.get("proof"):
            ours = os.urandom(32)
            self.greeting = theirs, ours, place
            return {"nonceA": ours.hex(), "proof": proof(b"A", ours)}
        if greeting is None or (theirs, place) != (greeting[0], greeting[2]) or \
                not hmac.compare_digest(proof(b"S", greeting[1]).encode(), str(r["proof"]).encode()):
            raise Error("UNAUTHORIZED", "proof: wrong, or not for this greeting", details="PERMISSION_DENIED")
        self.proved = True
        return {}


class _Places:
    """How many steps run at once in all sessions of a process: one session for each shard of a fleet."""

    def __init__(self, n: int):
        self.free, self.lock = n, threading.Lock()

    def take(self) -> bool:
        with self.lock:
            taken = self.free > 0
            self.free -= taken
            return taken

    def put(self) -> None:
        with self.lock:
            self.free += 1


class Agent:
    """An agent: its skills, and the process that serves them.

    `capacity` steps run at once, each in a thread; handlers that are coroutines share one event loop. Results are kept for ten minutes,
    so that a repeated request, or a supervisor that was restarted, gets them without the work being done twice.
    """

    def __init__(self, agent_id: str, *, name: Optional[str] = None, description: Optional[str] = None, version: str = "1.0.0",
                 capacity: int = 4, icon: Optional[str] = None, settings: Optional[Mapping[str, Any]] = None):
        self.agent_id, self.version, self.capacity = _id("agentId", agent_id), version, _capacity(capacity)
        self.name, self.description, self.icon = name, description, icon
        self.settings: Dict[str, Any] = dict(settings or {})
        self.skills: Dict[str, _Skill] = {}
        self.instance_id = str(uuid.uuid4()).upper()
        self._places: Optional[_Places] = None  # None: one session, which counts by itself
        self._shard: Optional[int] = None
        self._sessions: List[Agent] = []
        self._loop_of: Agent = self
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._begin()

    def _begin(self) -> None:
        """What a session has of its own."""
        self.process_id = str(uuid.uuid4()).upper()
        self.session_key = secrets.token_hex(32)
        self.epoch = 0
        self._registering = False
        self._remote: Optional[Remote] = None
        self._lock = threading.RLock()
        self._attempts: Dict[Tuple[str, int], _Attempt] = {}
        self._forgotten: set = set()
        self._running = 0
        self._draining = self._drain_sent = False
        self._stops = 0
        self._thread: Optional[threading.Thread] = None
        self._lanes: set = set()
        self._closed = False
        self._wake_r, self._wake_w = -1, -1
        self._wake_lock = threading.RLock()  # so that a late thread writes into no other file
        self._stats: Dict[str, Any] = {"requests": 0, "errors": 0, "error": "", "ns": 0, "started": ""}
        self._quiet_since = 0.0

    # -- skills --

    def skill(self, function: Optional[Callable[..., Any]] = None, *, id: Optional[str] = None, name: Optional[str] = None,
              description: Optional[str] = None, tags: Optional[Sequence[str]] = None, examples: Optional[Sequence[str]] = None,
              effects: Optional[str] = None, input_schema: Optional[Mapping[str, Any]] = None,
              output_schema: Optional[Mapping[str, Any]] = None, max_ms: Optional[int] = None, calls: bool = False) -> Any:
        """Makes a function a skill: `@agent.skill`, or `@agent.skill(effects="unsafe", tags=["mail"])`.

        The id is the function's name with dashes, the description its docstring; lines below "Args:" describe parameters. The planner
        chooses skills by these words. The function returns a text, a value, or a Result; it raises Fail, Handoff, NeedsInput or
        NeedsApproval. One that yields texts streams them. `effects`: `none` only reads, `idempotent` may run again, `unsafe` never runs
        again without a decision. `calls`: it may call skills of other agents (Step.call).
        """
        if isinstance(function, str):
            raise TypeError("skill(%r): the function follows the decorator, and the name is given as id: @agent.skill(id=%r)" % (function, function))
        tags = [*(tags or []), CALLS_TAG] if calls else tags
        given = {"id": id, "name": name, "description": description, "tags": tags, "examples": examples, "effects": effects,
                 "input_schema": input_schema, "output_schema": output_schema, "max_ms": max_ms}

        def add(f: Callable[..., Any]) -> Callable[..., Any]:
            made = _skill_of(f, given)
            if made.id in self.skills:
                raise ValueError("agent %s: the skill %s is there twice" % (self.agent_id, made.id))
            self.skills[made.id] = made
            return f

        return add(function) if function is not None else add

    def card(self) -> Dict[str, Any]:
        """What the agent is and can do, as the supervisor gets it."""
        card: Dict[str, Any] = {"agentId": self.agent_id, "name": self.name or self.agent_id.replace("-", " ").capitalize(),
                                "version": self.version, "skills": [s.card for s in self.skills.values()]}
        for field, value in (("description", self.description), ("icon", self.icon)):
            if value:
                card[field] = value
        return card

    # -- handlers --

    def call(self, skill: str, parameters: Any = None, **request: Any) -> Dict[str, Any]:
        """Runs a skill in this thread, without a supervisor: the fields of its step.result. For tests of handlers."""
        step = Step({"skill": skill, "parameters": parameters if parameters is not None else {}, "planId": "P", "stepId": "s1",
                     "key": "P/1/s1", **request}, self.settings)
        return self._outcome(step)

    def _outcome(self, step: Step) -> Dict[str, Any]:
        try:
            body = self._body(step, self._handle(step))
        except BaseException as e:  # sys.exit() as well: it would end this thread, and nobody would answer the step
            if isinstance(e, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                raise  # of the person at the keyboard
            if not isinstance(e, Outcome):
                log.warning("step %s: %s failed", step.key, step.skill, exc_info=e)
            try:
                body = _outcome_of(e).body()
            except Exception as wrong:  # the outcome itself holds what cannot be sent
                body = Fail("the outcome of %s cannot be sent: %s" % (step.skill, wrong), "VALIDATION_ERROR").body()
        with step._lock:
            if step._usage:
                body["usage"] = dict(step._usage)
        return body

    def _handle(self, step: Step) -> Any:
        skill = self.skills.get(step.skill)
        if skill is None and not step.skill and len(self.skills) == 1 and step.purpose not in QUESTIONS:
            skill = next(iter(self.skills.values()))
        if skill is None:
            raise Fail("skill '%s': this agent has no such skill; it has %s" % (step.skill, ", ".join(self.skills)), "TOOL_NOT_FOUND", False)
        try:
            check(step.parameters, skill.card["inputSchema"])
            if skill.takes_all and not any(p.kind is p.VAR_KEYWORD for p in inspect.signature(skill.function).parameters.values()):
                given: Dict[str, Any] = {}
            else:
                given = {k: _build(v, skill.hints.get(k, Any)) for k, v in step.parameters.items()}
        except ValueError as e:
            raise Fail(str(e), "VALIDATION_ERROR", False) from None
        if skill.step_name:
            given[skill.step_name] = step
        step.check()
        found = skill.function(**given)
        if inspect.isawaitable(found) or inspect.isasyncgen(found):
            return self._await(step, found)
        if inspect.isgenerator(found):
            return self._stream(step, found)
        return found

    @staticmethod
    def _stream(step: Step, pieces: Iterator[Any]) -> Any:
        whole: List[str] = []
        while True:
            try:
                piece = str(next(pieces))
            except StopIteration as end:
                step.flush()
                return "".join(whole) if end.value is None else end.value
            whole.append(piece)
            step.stream(piece)
            step.check()

    def _await(self, step: Step, found: Any) -> Any:
        """Runs a coroutine in the loop that all of them share; a cancel and the deadline cancel its task."""
        async def joined() -> str:
            whole = []
            async for piece in found:
                whole.append(str(piece))
                step.stream(whole[-1])
            return "".join(whole)

        async def contained() -> Any:
            try:
                return await (joined() if inspect.isasyncgen(found) else found)
            except (SystemExit, KeyboardInterrupt) as e:  # asyncio would end the loop, and with it every other coroutine
                log.warning("step %s: %s ended itself", step.key, step.skill, exc_info=e)
                raise _outcome_of(e) from None

        owner = self._loop_of
        with owner._lock:
            if owner._loop is None:
                owner._loop = asyncio.new_event_loop()
                threading.Thread(target=owner._loop.run_forever, name="baton-asyncio", daemon=True).start()
            loop = owner._loop
        future = asyncio.run_coroutine_threadsafe(contained(), loop)
        step._on_cancel.append(future.cancel)
        if step._cancel.is_set():
            future.cancel()
        try:
            value = future.result(step.time_left())
            step.flush()
            return value
        except (asyncio.CancelledError, asyncio.TimeoutError, TimeoutError) as e:
            raced = future.done() and not future.cancelled()
            future.cancel()
            if raced and not step.cancelled:
                raise  # the handler's own
            step.check()
            raise Cancelled() from e
        except Exception as e:
            if type(e).__name__ in ("CancelledError", "TimeoutError") and step.cancelled:  # those of concurrent.futures in Python 3.9
                future.cancel()
                step.check()
            raise

    def _body(self, step: Step, value: Any) -> Dict[str, Any]:
        if isinstance(value, Outcome):
            return value.body()
        if not isinstance(value, Result):
            value = Result(text=value) if isinstance(value, str) else Result(data=value)
        result: Dict[str, Any] = {}
        if value.text is not None:
            result["text"] = plain(value.text, "text")
        if value.data is not None:
            result["data"] = plain(value.data, "data")
        if not result:
            result["text"] = ""
        size = len(result.get("text", "").encode()) + (len(_encode({"": result["data"]}, "json")) if "data" in result else 0)
        if size > RESULT_BYTES or size > RESULT_BYTES // 6 and len(_encode(result, "json")) > BODY_BYTES - 65536:
            raise Fail("result_too_large: %d bytes, at most %d; write a file with step.artifact(), or return less" % (size, RESULT_BYTES),
                       "VALIDATION_ERROR", False)
        if step._artifacts:
            result["artifacts"] = list(step._artifacts)
        if value.details is not None:
            result["details"] = plain(value.details, "details")
        if value.truncated:
            result["truncated"] = True
        body = {"outcome": "completed", "result": result}
        if value.state is not None:
            body["state"] = plain(value.state, "state")
        return body

    def _work(self, attempt: _Attempt) -> None:
        began = time.monotonic_ns()
        answer = self._outcome(attempt.step)
        with self._lock:
            self._stats["ns"] += time.monotonic_ns() - began
            if answer["outcome"] == "failed":
                self._stats["errors"] += 1
                self._stats["error"] = answer["failure"]["message"][:500]
            attempt.answer, attempt.touched = answer, time.monotonic()
            attempt.size = len(_encode(answer, "json"))
            attempt.undelivered = not self._registered or attempt.epoch != self.epoch
            attempt.step.request = {}  # as large as 4 MiB
            self._running -= 1
            if self._places is not None:
                self._places.put()
            self._quiet_since = time.monotonic()
            waiting, attempt.waiting = attempt.waiting, None
        if waiting is not None:
            self._send_result(attempt, waiting)
        self._make_room()
        self._wake()

    # -- lanes --

    def _send_result(self, attempt: _Attempt, to: Tuple[_Lane, bytes, str, str]) -> None:
        lane, header, id_, form = to
        body = {"v": 1, "type": "step.result", "id": id_, "ok": True, **self._result_of(attempt, attempt.epoch)}
        lane.last = attempt
        try:
            self.deliver(lane.pipe, header, body, form)
        except OSError:
            with self._lock:
                attempt.undelivered = True
        if lane.pipe.closed:
            with self._lock:
                attempt.undelivered = True
        self._wake()

    def deliver(self, pipe: Pipe, header: bytes, body: Dict[str, Any], form: str) -> None:
        """Sends an answer on a lane. A subclass may do something else instead: tests of faults."""
        pipe.send(header + _encode(body, form))

    def _result_of(self, attempt: _Attempt, epoch: int) -> Dict[str, Any]:
        return {"instanceId": self.instance_id, "key": attempt.key, "attempt": attempt.attempt, "epoch": epoch, **(attempt.answer or {})}

    def _serve_lane(self, make: Callable[[], Pipe]) -> None:
        """One connection, from its handshake to its end."""
        lane: Optional[_Lane] = None
        try:
            lane = _Lane(make())
            lane.pipe.sock.settimeout(None)
            with self._lock:
                if self._closed or len(self._lanes) > 2 * (self.capacity + 1) + 16:
                    return
                self._lanes.add(lane)
            while not self._closed:
                header, data = split_header(lane.pipe.recv(BODY_BYTES + 1024))
                lane.last = None  # the supervisor has what this lane carried before
                self._on_request(lane, header, data)
        except (OSError, EOFError, ValueError) as e:
            log.debug("a connection ended: %s", e)
        finally:
            if lane is not None:
                lane.pipe.close()
                with self._lock:
                    self._lanes.discard(lane)
                    if lane.last is not None and not self._closed:
                        lane.last.undelivered = True  # perhaps it did not arrive
                self._wake()

    def _on_request(self, lane: _Lane, header: bytes, data: bytes) -> None:
        form, id_ = "json", ""
        try:
            try:
                request, form = _decode(data)
            except (ValueError, RecursionError) as e:
                raise Error("INVALID", "the body cannot be read: %s" % e) from None
            id_ = str(request.get("id") or "")
            try:
                answer = self._answer(lane, header, request, id_, form)
            except (TypeError, ValueError, AttributeError, KeyError) as e:
                raise Error("INVALID", "a field of %s is not as it must be: %s" % (request.get("type"), e)) from None
        except Error as e:
            answer = {"type": "error", "ok": False, "error": {"code": e.code, "message": e.message, "retryable": e.retryable,
                                                              **({"class": e.details} if e.details else {})}}
        if answer is not None:
            lane.pipe.send(header + _encode({"v": 1, "id": id_, "ok": True, **answer}, form))

    def _answer(self, lane: _Lane, header: bytes, r: Dict[str, Any], id_: str, form: str) -> Optional[Dict[str, Any]]:
        type_ = r.get("type")
        if type_ not in ("lane.hello", "step.execute", "step.cancel", "step.query", "agent.ping", "agent.stats"):
            raise Error("INVALID", "type '%.64s': an agent has no such request" % type_)
        greets = type_ == "lane.hello" and bool(r.get("nonceS"))
        if not greets and not (lane.proved and "sessionKey" not in r) and \
                not hmac.compare_digest(str(r.get("sessionKey", "")).encode(), self.session_key.encode()):
            raise Error("UNAUTHORIZED", "sessionKey: missing or wrong", details="PERMISSION_DENIED")
        if r.get("v") != 1:
            raise Error("INVALID", "v: this agent speaks version 1 only")
        if type_ == "agent.ping":
            return {"type": "ok"}
        if type_ == "agent.stats":
            s = self._stats
            return {"type": "agent.stats.ok", "num_requests": s["requests"], "num_errors": s["errors"], "last_error": s["error"],
                    "processing_time": s["ns"], "average_processing_time": s["ns"] // max(1, s["requests"]), "started": s["started"]}
        if type_ == "lane.hello":
            if r.get("processId") not in (None, "", self.process_id):
                raise Error("CONFLICT", "processId: another process was registered")
            proved = lane.greet(r, self.session_key) if greets else {}
            self._check_epoch(r.get("epoch"))
            return {"type": "ok", "processId": self.process_id, **proved}
        key, attempt = r.get("key"), r.get("attempt")
        if not isinstance(key, str) or not 0 < len(key.encode()) <= 160:
            raise Error("INVALID", "key: expected an idempotency key of at most 160 bytes")
        if type_ == "step.execute":
            if not isinstance(attempt, int) or attempt < 1:
                raise Error("INVALID", "attempt: expected a number from 1")
            return self._execute(lane, header, r, id_, form, key, attempt)
        attempt = attempt if isinstance(attempt, int) else 0
        if type_ == "step.cancel":
            self._cancel(key, attempt)
        return self._state_of(key, attempt)

    def _check_epoch(self, epoch: Any) -> None:
        with self._lock:
            if self._registering and isinstance(epoch, int) and epoch > self.epoch:
                self.epoch = epoch  # this lane is faster than the answer to agent.register
            if not epoch or epoch != self.epoch:
                raise Error("CONFLICT", "epoch: not the current one of this instance")

    def _execute(self, lane: _Lane, header: bytes, r: Dict[str, Any], id_: str, form: str, key: str, n: int) -> Optional[Dict[str, Any]]:
        purpose = r.get("purpose") or "execute"
        self._check_epoch(r.get("epoch"))
        with self._lock:
            known = self._attempts.get((key, n))
            if known is None:
                if purpose not in QUESTIONS | {"execute", "search"}:
                    raise Error("INVALID", "purpose '%.40s': this agent does not know it" % purpose, details="TOOL_NOT_FOUND")
                if purpose in QUESTIONS and not r.get("skill"):
                    raise Error("NOT_FOUND", "purpose '%s': expected the skill that answers it" % purpose, details="TOOL_NOT_FOUND")
                if r.get("skill") and r["skill"] not in self.skills:
                    raise Error("NOT_FOUND", "skill '%.64s': this agent has no such skill" % r["skill"], details="TOOL_NOT_FOUND")
                if self._draining:
                    raise Error("BUSY", "the agent is draining and takes no new steps", True, details="SERVICE_UNAVAILABLE")
                if self._running >= self.capacity or (self._places is not None and not self._places.take()):
                    raise Error("BUSY", "all places of this instance are taken", True, details="SERVICE_UNAVAILABLE")
                for old in [a for (k, _), a in self._attempts.items() if k == key and a.answer is not None]:
                    self._forget(old)  # a newer attempt: the supervisor needs this result no more
                known = _Attempt(key, n, r["epoch"], Step(r, self.settings, self._wake))
                known.step.files = _Files(self._remote, self.instance_id) if self._remote else None
                known.waiting = (lane, header, id_, form)
                self._attempts[key, n] = known
                self._running += 1
                self._stats["requests"] += 1
                threading.Thread(target=self._work, args=(known,), name="baton-step", daemon=True).start()
                return None
            known.epoch = r["epoch"]
            older, known.waiting = known.waiting, (lane, header, id_, form) if known.answer is None else None
            if known.answer is not None:
                known.undelivered, known.touched = False, time.monotonic()
        if known.answer is not None:
            self._send_result(known, (lane, header, id_, form))
        elif older is not None:
            with contextlib.suppress(OSError):
                older[0].pipe.send(older[1] + _encode({"v": 1, "type": "error", "id": older[2], "ok": False, "error": {
                    "code": "CONFLICT", "message": "a newer request of the same attempt gets the answer", "retryable": False}}, older[3]))
        return None

    def _find(self, key: str, attempt: int) -> Optional[_Attempt]:
        """attempt 0: the newest."""
        found = [a for (k, n), a in self._attempts.items() if k == key and attempt in (0, n)]
        return max(found, key=lambda a: a.attempt, default=None)

    def _cancel(self, key: str, attempt: int) -> None:
        with self._lock:
            found = [a for (k, n), a in self._attempts.items() if k == key and attempt in (0, n) and a.answer is None]
        for one in found:
            one.step._stop()

    def _state_of(self, key: str, attempt: int) -> Dict[str, Any]:
        with self._lock:
            found = self._find(key, attempt)
            if found is None:
                seen = len(self._forgotten) >= 200000 or any(hash((key, n)) in self._forgotten for n in ([attempt] if attempt else range(1, 101)))
                return {"type": "step.state", "key": key, "state": "forgotten" if seen else "unknown"}
            if found.answer is None:
                return {"type": "step.state", "key": key, "state": "running"}
            found.undelivered, found.touched = False, time.monotonic()
            return {"type": "step.state", "key": key, "state": "done", "result": self._result_of(found, found.epoch)}

    def _forget(self, attempt: _Attempt) -> None:
        self._attempts.pop((attempt.key, attempt.attempt), None)
        if len(self._forgotten) < 200000:
            self._forgotten.add(hash((attempt.key, attempt.attempt)))

    def _make_room(self) -> None:
        """Drops results that are old, or too many: first those that the supervisor has."""
        with self._lock:
            done = sorted((a for a in self._attempts.values() if a.answer is not None), key=lambda a: (a.undelivered, a.touched))
            size = sum(a.size for a in done)
            for i, one in enumerate(done):
                old = not one.undelivered and time.monotonic() - one.touched > KEPT_SECONDS
                if old or ((len(done) - i > KEPT_RESULTS or size > KEPT_BYTES) and i < len(done) - 1):
                    size -= one.size
                    self._forget(one)

    # -- the relation to the supervisor --

    _registered = False
    _refusal = ""  # why it is not registered, and will not be
    _trouble = ""  # what the last attempt met

    def _wake(self) -> None:
        with self._wake_lock:
            if self._wake_w >= 0:
                with contextlib.suppress(OSError):
                    os.write(self._wake_w, b"x")

    def stop(self, wait: bool = True) -> None:
        """Drains and leaves, as on SIGTERM: running steps finish. A second call ends at once."""
        self._stops += 1
        self._wake()
        for session in self._sessions:
            session.stop(wait=False)
        if wait and self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(30)

    def start(self, state: Union[str, os.PathLike, None] = None) -> Agent:
        """Serves in a thread of this process, until stop(). Returns when the agent is registered; an Error says why it cannot be."""
        up = threading.Event()

        def served() -> None:
            try:
                self.serve(state, _up=up)
            except Exception as e:
                self._refusal = "%s: %s" % (type(e).__name__, e)
            finally:
                up.set()

        self._refusal = ""
        self._thread = threading.Thread(target=served, name="baton-agent", daemon=True)
        self._thread.start()
        if not up.wait(30):
            self.stop()
            raise Error("TIMEOUT", "agent %s: not registered within 30 s%s" % (self.agent_id, self._trouble and ": " + self._trouble))
        if self._refusal:
            self._thread.join(30)
            raise Error("INVALID", "agent %s: %s" % (self.agent_id, self._refusal))
        return self

    def serve(self, state: Union[str, os.PathLike, None] = None, *, dial_in: bool = False, listen: str = "tcp://127.0.0.1:0",
              credential: Optional[Credential] = None, remote: Optional[Remote] = None, _up: Optional[threading.Event] = None) -> int:
        """Registers and serves until stop(), SIGTERM or an order to drain; the exit code. Reconnects for ever. A `remote` supervisor
        is dialed, its lanes too, and files of steps go over the wire."""
        _capacity(self.capacity)
        self._stops, self.epoch, self._refusal = 0, 0, ""  # it may have been served before: in another test, for example
        self._draining = self._drain_sent = self._closed = self._registered = False
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_r, False)
        os.set_blocking(self._wake_w, False)
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.stop(wait=False))
        self._stats["started"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        server: Optional[socket.socket] = None
        endpoint = ""
        self._remote = remote
        if not dial_in and remote is None:
            host, _, port = listen.partition("://")[2].rpartition(":")
            server = socket.create_server((host.strip("[]"), int(port)), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=128)
            endpoint = "tcp://%s:%d" % (host, server.getsockname()[1])
            threading.Thread(target=self._accept, args=(server,), name="baton-accept", daemon=True).start()
        control = Control(remote=remote) if remote else Control(state, credential or credential_of(state_dir(state), agent=True))
        control.shard = self._shard if remote is None else None
        try:
            self._remote = control.remote
            return _Relation(self, control, endpoint, _up).run()
        finally:
            self._closed = True
            control.close()
            if server is not None:
                with contextlib.suppress(OSError):
                    server.shutdown(socket.SHUT_RDWR)
                server.close()
            for lane in list(self._lanes):
                lane.pipe.close()
            with self._wake_lock:
                pair, self._wake_r, self._wake_w = (self._wake_r, self._wake_w), -1, -1
                for fd in pair:
                    os.close(fd)

    def serve_shards(self, shards: int, state: Union[str, os.PathLike, None] = None, *, remote: Optional[Remote] = None, **how: Any) -> int:
        """As serve(), for a fleet of so many shards: this process has a session with each of them under one instance id, and all of
        them together run at most `capacity` steps. A step that finds every place taken is answered BUSY, and its shard asks again.
        `state` is that of the node, `remote` the addresses of shard 0. When one session ends, all do."""
        _shards(shards)
        places, codes, self._stops = _Places(_capacity(self.capacity)), [], 0
        home = None if remote else state_dir(state)

        def session_of(shard: int) -> Agent:
            one = copy.copy(self)
            one._begin()
            one._places, one._shard, one._sessions, one._loop_of = places, shard, [], self
            return one

        def served(shard: int, one: Agent) -> None:
            try:
                own = {**how, "credential": copy.copy(how.get("credential"))}  # it has a state for each connection
                codes.append(one.serve(home and home / "shards" / str(shard), remote=remote and remote.of_shard(shard), **own))
            except (OSError, ValueError, Error) as e:
                log.error("shard %d: %s", shard, e)
                codes.append(2)
            for other in self._sessions:
                if other is not one and other._stops == 0:
                    other.stop(wait=False)

        self._sessions = [session_of(i) for i in range(shards)]
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.stop(wait=False))
        threads = [threading.Thread(target=served, args=(i, one), name="baton-shard-%d" % i, daemon=True) for i, one in enumerate(self._sessions)]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)  # so that a signal is handled
                for one in self._sessions if self._stops else []:
                    if one._stops == 0:  # it began after the signal
                        one.stop(wait=False)
        self._sessions = []
        return next((code for code in codes if code), 0)

    def _accept(self, server: socket.socket) -> None:
        while not self._closed:
            try:
                sock, _ = server.accept()
            except OSError:
                if self._closed:
                    return
                time.sleep(0.1)  # out of descriptors, for example
                continue
            threading.Thread(target=self._serve_lane, args=(lambda s=sock: Pipe(s, REP, REQ),), name="baton-lane", daemon=True).start()

    def _dial_lane(self, url: str, epoch: int) -> None:
        """dialIn: serves the lane at the supervisor's address while the registration lasts."""
        remote = self._remote
        while not self._closed and epoch == self.epoch:
            self._serve_lane(lambda: dial(remote.lane(url), REP, REQ, tls=remote.tls) if remote else dial(url, REP, REQ))
            time.sleep(0.2)

    # -- the command line --

    def run(self, argv: Optional[Sequence[str]] = None) -> None:
        """The command line of an agent: serves, or prints the card, or runs one step from stdin. Ends the process."""
        p = argparse.ArgumentParser(description=self.description or self.agent_id, epilog="Exit codes: 0 drained after SIGTERM; 1 a second "
                                    "SIGTERM while steps ran, or --once failed; 2 wrong arguments, settings or card.")
        p.add_argument("--state", metavar="DIR", help="the supervisor's state directory (BATON_STATE)")
        p.add_argument("--settings", metavar="FILE", help="settings as a JSON object (BATON_SETTINGS: the JSON itself)")
        p.add_argument("--agent-id", metavar="ID", default=os.environ.get("BATON_AGENT_ID"), help="register under this id (BATON_AGENT_ID)")
        p.add_argument("--instance-id", metavar="UUID", default=os.environ.get("BATON_INSTANCE_ID"), help="(BATON_INSTANCE_ID; else a new one)")
        p.add_argument("--capacity", metavar="N", default=os.environ.get("BATON_CAPACITY"), help="steps at a time, 1 to 64 (BATON_CAPACITY)")
        p.add_argument("--listen", metavar="URL", default="tcp://127.0.0.1:0", help="where the supervisor reaches the agent")
        p.add_argument("--dial-in", action="store_true", help="dial the supervisor's lanes instead of listening")
        p.add_argument("--log-level", choices=["err", "warn", "info", "debug"], default=os.environ.get("BATON_LOG_LEVEL", "info"))
        p.add_argument("--up", action="store_true", help="start the supervisor with `baton up` first, unless it runs")
        p.add_argument("--once", metavar="SKILL", help="run one step from stdin, {task, parameters, context}, and print its outcome")
        p.add_argument("--credential", metavar="FILE", help="proves who the agent is, instead of the token (BATON_CREDENTIAL)")
        p.add_argument("--connect", metavar="URL", help="tls+tcp://HOST:PORT of a supervisor on another host, of a fleet several with commas; with --credential, --ca, --cert")
        p.add_argument("--shards", metavar="N", default=os.environ.get("BATON_SHARDS") or "1",
                       help="serve a fleet of so many shards, 1 to 64 (BATON_SHARDS)")
        p.add_argument("--ca", metavar="FILE", help="the authority that signed its certificate")
        p.add_argument("--cert", metavar="FILE", help="this side's certificate and key")
        p.add_argument("--card", action="store_true", help="print the card as JSON")
        p.add_argument("--version", action="version", version=self.version)
        o = p.parse_args(argv)
        levels = {"err": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}
        logging.basicConfig(level=levels.get(o.log_level, logging.INFO), format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
        try:
            text = pathlib.Path(o.settings).read_text() if o.settings else os.environ.get("BATON_SETTINGS") or "{}"
            settings = json.loads(text)
            if not isinstance(settings, dict):
                raise ValueError("expected a JSON object")
            self.settings.update(settings)
            self.capacity = _capacity(int(o.capacity or self.capacity))
            shards = _shards(int(o.shards))
            self.agent_id = _id("agentId", o.agent_id or self.agent_id)
            self.instance_id = str(uuid.UUID(o.instance_id)).upper() if o.instance_id else self.instance_id
        except (OSError, ValueError) as e:
            p.exit(2, "%s: settings or options: %s\n" % (p.prog, e))
        if not self.skills:
            p.exit(2, "%s: the agent has no skill; put @agent.skill above a function\n" % p.prog)
        if o.card:
            print(json.dumps(self.card(), indent=2, ensure_ascii=False))
        elif o.once:
            try:
                given = json.load(sys.stdin)
                if not isinstance(given, dict):
                    raise ValueError("expected a JSON object, got %.40r" % (given,))
            except ValueError as e:
                p.exit(2, "%s: --once reads a step from stdin, such as {\"parameters\": {}}: %s\n" % (p.prog, e))
            if o.once not in self.skills:
                p.exit(2, "%s: --once: there is no skill %r; it has %s\n" % (p.prog, o.once, ", ".join(self.skills)))
            body = self.call(o.once, given.pop("parameters", None), **given)
            print(json.dumps(body, indent=2, ensure_ascii=False))
            sys.exit(0 if body["outcome"] != "failed" else 1)
        else:
            if o.up:
                state = ["--state", str(state_dir(o.state))]
                up = subprocess.run([_program("baton"), "up", *state], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                if up.returncode != 0:
                    p.exit(1, up.stdout.decode(errors="replace"))
            try:
                if o.connect and not (o.ca and o.cert and o.credential):
                    p.exit(2, "%s: --connect needs --credential, --ca and --cert\n" % p.prog)
                remote = Remote(o.connect, ca=o.ca, cert=o.cert, credential=o.credential) if o.connect else None
                credential = KeyFile(o.credential) if o.credential and remote is None else None
                how = {"dial_in": o.dial_in, "listen": o.listen, "credential": credential}
                code = self.serve_shards(shards, o.state, remote=remote, **how) if shards > 1 else self.serve(o.state, remote=remote, **how)
            except (OSError, ValueError, Error) as e:
                p.exit(2, "%s: %s\n" % (p.prog, e))
            sys.stdout.flush()
            os._exit(code)  # threads of handlers that ignore a cancel do not hold the process


class _Relation:
    """The loop of an agent's control connection: registers, beats, delivers, reports, drains. One request is outstanding at a time."""

    def __init__(self, agent: Agent, control: Control, endpoint: str, up: Optional[threading.Event]):
        self.agent, self.control, self.endpoint, self.up = agent, control, endpoint, up
        self.lease, self.every = 5.0, 1.0
        self.beat_at = self.try_at = self.contact = 0.0
        self.backoff, self.complained = 0.1, -1e9
        self.code = 0
        self.drain_since = 0.0

    def run(self) -> int:
        a = self.agent
        while True:
            now = time.monotonic()
            if a._stops > 1:
                return 1 if a._running else 0
            if a._stops and not a._draining:
                a._draining, self.drain_since = True, now
            try:
                wait = self.turn(now)
            except Error as e:
                if not self.on_error(e):
                    return self.code
                wait = 0.0
            if wait is None:
                self.control.close()
                return 0
            if wait > 0:
                self.sleep(wait)

    def sleep(self, seconds: float) -> None:
        """Until something is to do: a wake-up, the end of the connection, or the time."""
        poll = select.poll()
        poll.register(self.agent._wake_r, select.POLLIN)
        pipe = self.control.pipe
        if pipe is not None:
            poll.register(pipe.sock.fileno(), select.POLLIN)
        ready = dict(poll.poll(seconds * 1000 + 1))
        if self.agent._wake_r in ready:
            with contextlib.suppress(OSError):
                os.read(self.agent._wake_r, 65536)
        if pipe is not None and pipe.sock.fileno() in ready and self.is_over(pipe):
            self.lost()  # nothing is outstanding, so this is its end

    @staticmethod
    def is_over(pipe: Pipe) -> bool:
        try:
            return not isinstance(pipe.sock, _Tls) or pipe.sock.is_over()
        except OSError:
            return True

    def lost(self) -> None:
        a = self.agent
        self.control.close()
        with a._lock:
            if a._registered:
                for one in a._attempts.values():
                    if one.answer is not None and one.touched >= self.contact:
                        one.undelivered = True  # a second delivery is harmless
            a._registered = False
        self.wait_a_little()

    def wait_a_little(self) -> None:
        self.try_at = time.monotonic() + self.backoff * random.uniform(0.8, 1.2)
        several = self.control.shard is not None or (self.control.remote is not None and len(self.control.remote.urls) > 1)  # another one may lead
        self.backoff = min(self.backoff * 2, 0.7 if several else 5.0)

    def ask(self, type_: str, **fields: Any) -> Dict[str, Any]:
        sent = time.monotonic()
        answer = self.control.request(type_, fields, min(max(self.lease, 1.0), 30.0))
        self.contact = sent
        return answer

    def turn(self, now: float) -> Optional[float]:
        """Sends the next request, by priority; how long to wait otherwise, None when the agent has left."""
        a = self.agent
        me = {"instanceId": a.instance_id, "epoch": a.epoch}
        with a._lock:
            late = min((x for x in a._attempts.values() if x.undelivered), key=lambda x: x.touched, default=None)
            idle = a._draining and not a._running
        if not a._registered:
            if idle and (late is None or now > self.drain_since + 10):
                return None
            if now < self.try_at:
                return self.try_at - now
            self.register()
            return 0.0
        if now >= self.beat_at:
            self.beat_at = now + self.every
            self.heartbeat(me)
            return 0.0
        if a._draining and not a._drain_sent:
            a._drain_sent = True
            self.ask("agent.drain", **me)
            return 0.0
        if late is not None:
            late.undelivered = False
            self.deliver(late)
            return 0.0
        pause = self.report(now)
        if pause == 0.0:
            return 0.0
        if idle:
            if now < a._quiet_since + 0.2:  # the last answer is being read
                return a._quiet_since + 0.2 - now
            with contextlib.suppress(Error):
                self.ask("agent.deregister", **me)
            return None
        return min(self.beat_at - now, pause)

    def register(self) -> None:
        a = self.agent
        where = {"endpoint": self.endpoint} if self.endpoint else {"dialIn": True}
        try:
            if self.control.pipe is None:
                self.control.connect()
            a._registering = True
            ok = self.ask("agent.register", card=a.card(), instanceId=a.instance_id, capacity=a.capacity, pid=os.getpid(),
                          sessionKey=a.session_key, processId=a.process_id, proof=True, protocol=[1], **where)
        finally:
            a._registering = False
        with a._lock:
            a.epoch, a._registered, a._drain_sent = ok["epoch"], True, False
        self.lease, self.every = max(ok["leaseMs"], 100) / 1000, max(ok["heartbeatMs"] or 1000, 20) / 1000
        self.beat_at, self.backoff, self.complained = time.monotonic() + self.every, 0.1, -1e9
        for url in ok.get("lanes") or []:
            threading.Thread(target=a._dial_lane, args=(url, a.epoch), name="baton-lane", daemon=True).start()
        log.info("agent %s is registered, epoch %d", a.agent_id, a.epoch)
        if self.up is not None:
            self.up.set()

    def heartbeat(self, me: Dict[str, Any]) -> None:
        a = self.agent
        with a._lock:
            running = [{"key": x.key, "attempt": x.attempt} for x in a._attempts.values() if x.answer is None][:64]
        ok = self.ask("agent.heartbeat", **me, inflight=running, load=len(running) / a.capacity)
        self.lease = max(ok.get("leaseMs") or 0, 100) / 1000
        for order in ok.get("cancel") or []:
            a._cancel(order["key"], order.get("attempt") or 0)
        if ok.get("drain") and not a._draining:
            a._draining = a._drain_sent = True
            self.drain_since = a._quiet_since = time.monotonic()
        a._make_room()

    def deliver(self, late: _Attempt) -> None:
        try:
            ok = self.ask("step.result", **self.agent._result_of(late, self.agent.epoch))
            log.info("late result of %s: accepted %s %s", late.key, ok.get("accepted"), ok.get("reason", ""))
        except Error as e:
            if e.code in ("UNAVAILABLE", "TIMEOUT", "BUSY", "NOT_FOUND", "CONFLICT", "GONE"):
                late.undelivered = e.code in ("UNAVAILABLE", "TIMEOUT", "BUSY")
                raise
            log.warning("the supervisor refused the late result of %s: %s", late.key, e.message)

    def report(self, now: float) -> float:
        """Sends one progress report or piece of a stream: 0; else the seconds until one is due."""
        due = 3600.0
        with self.agent._lock:
            attempts = [x for x in self.agent._attempts.values() if x.answer is None]
        for one in attempts:
            step = one.step
            with step._lock:
                if step._piece is None and step._pieces:
                    step._n += 1
                    text = _cut(step._pieces, PIECE_BYTES)
                    step._piece, step._pieces = (step._n, text), step._pieces[len(text):]
                if step._piece is None and step._progress is None:
                    continue
                if step._piece is None and now < one.progress_at:
                    due = min(due, one.progress_at - now)
                    continue
                if step._piece is not None:
                    body: Dict[str, Any] = {"n": step._piece[0], "text": step._piece[1]}
                else:
                    step._n += 1
                    body = {**(step._progress or {}), "n": step._n}
                    step._progress = None
            one.progress_at = now + 0.125
            try:
                self.ask("step.progress", instanceId=self.agent.instance_id, epoch=self.agent.epoch, key=one.key, attempt=one.attempt, **body)
            except Error as e:
                if e.code in ("UNAVAILABLE", "TIMEOUT"):
                    raise
            with step._lock:
                step._piece = None
                if not step._pieces and step._piece is None:
                    step._sent.set()
            return 0.0
        return due

    def on_error(self, e: Error) -> bool:
        """False ends the agent."""
        a = self.agent
        a._trouble = str(e)
        if not a._registered and e.code in ("UNAUTHORIZED", "INVALID", "PROTOCOL"):
            a._refusal = "the supervisor refused the registration: " + e.message
            log.error("%s", a._refusal)
            self.code = 2
            return False
        if self.control.pipe is None:
            self.lost()
        elif e.code in ("NOT_FOUND", "CONFLICT", "GONE", "UNAUTHORIZED"):
            a._registered = False
            if e.code == "UNAUTHORIZED":
                self.control.close()  # there is another token
            self.wait_a_little()
        elif not a._registered or e.code == "BUSY":
            self.wait_a_little()
        if not a._registered and time.monotonic() > self.complained + 60:
            self.complained = time.monotonic()
            log.warning("%s; trying again", e)
        return True


# ---- a client ----

ENDED = ("completed", "failed", "cancelled", "planned", "quarantined")
_REPEATABLE = re.compile(r".*\.(get|list|map|read|result|lint|info|stats|history|cost)$|plan\.submit|review\.decide|session\.say")


class Client:
    """Submits plans and reads what came of them. Answers are the maps of the protocol (MESSAGES.md), as dicts.

    `patience` is how many seconds a request waits for a supervisor that is being restarted; requests that may not be sent twice are
    not sent again.
    """

    def __init__(self, state: Union[str, os.PathLike, None] = None, *, credential: Optional[Credential] = None, timeout: float = 15.0,
                 patience: float = 10.0, remote: Optional[Remote] = None):
        self.control = Control(state, credential, remote)
        self.state = self.control.state
        self.timeout, self.patience = timeout, patience
        self._shards: Dict[int, Control] = {}  # of a fleet, as far as they were needed
        self._shards_n = 0  # 0: not asked yet
        self._lock = threading.Lock()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connections."""
        self.control.close()
        with self._lock:
            shards, self._shards = self._shards, {}
        for one in shards.values():
            one.close()

    def shards(self) -> int:
        """How many shards the fleet has: 1 without one."""
        if self._shards_n == 0:
            one = self.control.remote is None and not (self.state / "fleet.json").exists()
            self._shards_n = 1 if one else len(self.request("fleet.map")["shards"])
        return self._shards_n

    def _shard(self, number: int, url: str) -> Control:
        with self._lock:
            found = self._shards.get(number)
            if found is None or found.pinned != url:
                found = self._shards[number] = self.control.at(url)
        return found

    def _ask(self, at: Control, type_: str, sent: Mapping[str, Any], timeout: float) -> Dict[str, Any]:
        """Follows MOVED to the shard that has it, at most 3 times."""
        for _ in range(4):
            try:
                return at.request(type_, sent, timeout)
            except Error as e:
                if e.code != "MOVED":
                    if at is not self.control and _is_away({"details": e.details}):
                        self.control.look_elsewhere()
                    raise
                moved = e.details or {}
                if not moved.get("control"):
                    raise Error("UNAVAILABLE", "nobody leads shard %s now" % moved.get("shard"), True) from None
                at = self._shard(moved["shard"], moved["control"])
        raise Error("UNAVAILABLE", "%s: it moved 3 times during one request" % type_, True)

    def request_all(self, type_: str, **fields: Any) -> List[Dict[str, Any]]:
        """A list or figures of each shard of a fleet, such as "plan.list": an answer with `shard` each; of a shard that does not answer
        only that and `missing`. Pages (`cursor`) are one shard's own."""
        if self.shards() == 1:
            return [{**self.request(type_, **fields), "shard": 0}]
        found = []
        for one in self.request("fleet.map")["shards"]:
            try:
                if not one.get("control"):
                    raise Error("UNAVAILABLE", "nobody leads it")
                sent = {k: plain(v, k) for k, v in fields.items() if v is not None}
                found.append({**self._shard(one["shard"], one["control"]).request(type_, sent, self.timeout), "shard": one["shard"]})
            except Error as e:
                if e.code not in ("UNAVAILABLE", "TIMEOUT", "BUSY"):
                    raise
                found.append({"shard": one["shard"], "missing": e.message})
        return found

    def request(self, type_: str, *, timeout: Optional[float] = None, **fields: Any) -> Dict[str, Any]:
        """Any request of the protocol: `client.request("agents.get", agentId="calc")`. None in a field means that it is missing."""
        sent = {k: plain(v, k) for k, v in fields.items() if v is not None}
        until = time.monotonic() + self.patience
        again = _REPEATABLE.fullmatch(type_) and (type_ not in ("plan.submit", "session.say") or "clientKey" in sent)
        pause = 0.05
        # of several nodes one that was cut off with the request in its hand does not answer, and another one leads by then
        several = self.control.remote is not None and len(self.control.remote.urls) > 1 and again and type_ != "events.read"
        end = time.monotonic() + (timeout or self.timeout)
        while True:
            try:
                left = max(0.1, end - time.monotonic()) if several else timeout or self.timeout
                return self._ask(self.control, type_, sent, min(left, 3.0) if several else left)
            except Error as e:
                if several and e.code == "TIMEOUT" and time.monotonic() < end:
                    continue
                unsent = "cannot be reached" in e.message or "nobody leads" in e.message or _is_away({"details": e.details})
                if not (e.code == "BUSY" or (e.code == "UNAVAILABLE" and (again or unsent))) or time.monotonic() > until:
                    raise
                time.sleep(e.retry_after or pause)
                pause = min(pause * 2, 1.0)

    # -- plans --

    def submit(self, plan: Union[str, Mapping[str, Any], None] = None, *, goal: Optional[str] = None, session: Optional[str] = None,
               key: Optional[str] = None, policy: Optional[Mapping[str, Any]] = None, planner: Optional[str] = None,
               dry_run: Optional[bool] = None) -> str:
        """The planId of a new plan: of a document (a dict), or of a goal in words (a text). The same `key` gives the same plan again."""
        if isinstance(plan, str):
            plan, goal = None, plan
        return self.request("plan.submit", plan=plan, goal=goal, sessionId=session, clientKey=key or "py-%s" % uuid.uuid4(), policy=policy,
                            planner=planner, dryRun=dry_run)["planId"]

    def get(self, plan_id: str) -> Dict[str, Any]:
        """The state of a plan and of its steps."""
        return self.request("plan.get", planId=plan_id)

    def wait(self, plan_id: str, timeout: Optional[float] = None) -> Dict[str, Any]:
        """The state of a plan once it has ended; Error TIMEOUT otherwise."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            view = self.get(plan_id)
            if view["status"] in ENDED:
                return view
            left = 30.0 if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise Error("TIMEOUT", "plan %s has not ended within %g s; it is %s" % (plan_id, timeout or 0, view["status"]), True)
            self.request("events.read", fromSeq=view.get("lastSeq", 0) + 1, planId=plan_id, types=["plan_completed"], limit=1,
                         waitMs=int(min(left, 5.0) * 1000))

    def result(self, plan_id: str, step: Optional[str] = None, *, timeout: Optional[float] = None) -> Dict[str, Any]:
        """The answer of a plan, once it has ended, with `success` and the results of its steps; with `step` the result of that step."""
        if step is not None:
            return self.request("plan.result", planId=plan_id, stepId=step).get("result") or {}
        self.wait(plan_id, timeout)
        return self.request("plan.result", planId=plan_id)

    def artifact(self, artifact: Mapping[str, Any], file: typing.BinaryIO) -> None:
        """Writes the bytes of an artifact, as `result(...)["artifacts"]` lists it, into the file, over the wire. Compares length and
        checksum at the end."""
        found, at, length = hashlib.sha256(), 0, int(artifact["bytes"])
        while at < length:
            data = base64.b64decode(self.request("artifact.read", uri=artifact["uri"], offset=at)["bytes"])
            if not data:
                break
            file.write(data)
            found.update(data)
            at += len(data)
        if at != length or found.hexdigest() != artifact["sha256"]:
            raise Error("INVALID", "artifact %s: it was changed: %d bytes, SHA-256 %s" % (artifact.get("name"), at, found.hexdigest()))

    def ask(self, agent: str, skill: str, *, task: Optional[str] = None, timeout: float = 60.0, **parameters: Any) -> Any:
        """Runs one skill as a plan of one step: its data, or its text. Error FAILED with the reason when it failed."""
        plan = self.submit({"steps": [{"stepId": "ask", "agentId": agent, "skill": skill, "task": task or "Use the skill %s" % skill,
                                       "parameters": parameters}]})
        found = self.result(plan, timeout=timeout)
        if not found.get("success"):
            raise Error("FAILED", found.get("failureReason") or "the plan ended as %s" % found["status"], details=found)
        result = self.result(plan, "ask")
        return result["data"] if result.get("data") is not None else result.get("text")

    def cancel(self, plan_id: str, reason: Optional[str] = None) -> Dict[str, Any]:
        """Cancels a plan; attempts under way get the grace time to stop."""
        return self.request("plan.cancel", planId=plan_id, reason=reason)

    # -- reviews --

    def reviews(self, plan_id: Optional[str] = None) -> List[Dict[str, Any]]:
        """What waits for the decision of a person. Of a fleet with several shards: Error UNAVAILABLE names one that does not answer."""
        if plan_id is not None:
            return self.request("review.list", planId=plan_id)["reviews"]
        found = self.request_all("review.list")
        for one in found:
            if "missing" in one:
                raise Error("UNAVAILABLE", "shard %d: %s" % (one["shard"], one["missing"]), True)
        return [review for one in found for review in one["reviews"]]

    def decide(self, review_id: str, decision: str, *, comment: Optional[str] = None, edit: Any = None) -> None:
        """`approve`, `reject` or `skip`; `edit` is what was asked for, or replaces the parameters of the step."""
        by = {"user": os.environ.get("USER") or str(os.getuid()), "host": socket.gethostname()[:64], "via": "baton.py"}
        self.request("review.decide", reviewId=review_id, decision=decision, comment=comment, edit=edit, by=by)

    # -- events --

    def events(self, *, from_seq: int = 1, plan: Optional[str] = None, types: Optional[Sequence[str]] = None,
               after_event_id: Optional[str] = None) -> Iterator[Dict[str, Any]]:
        """The events that are there, from a number on.

        `after_event_id`: the eventId of the event before `from_seq`, as you have it. Error HISTORY_CHANGED: it is another one now, because
        a failover lost events that you have read; read again from `details["fromSeq"]`.
        """
        if plan is None and self.shards() > 1:
            raise Error("INVALID", "a fleet of several shards has no one order of events: name a plan, or use `baton events`")
        for event, _, _ in self._pages(from_seq, after_event_id, plan, types):
            if event is not None:
                yield event

    def _pages(self, seq: int, last: Optional[str], plan: Optional[str],
               types: Optional[Sequence[str]]) -> Iterator[Tuple[Optional[Dict[str, Any]], int, Optional[str]]]:
        """(event or None, the number to go on from, the eventId of the event before it)."""
        while True:
            page = self.request("events.read", fromSeq=seq, limit=500, planId=plan, types=list(types) if types else None, afterEventId=last)
            for event in page["events"]:
                yield event, event["seq"] + 1, event["eventId"]
            seq, last = page["nextSeq"], page.get("lastEventId")
            yield None, seq, last
            if seq > page["lastSeq"]:
                return

    def watch(self, plan: Optional[str] = None, *, types: Optional[Sequence[str]] = None, from_seq: Optional[int] = None,
              timeout: Optional[float] = None, after_event_id: Optional[str] = None) -> Iterator[Dict[str, Any]]:
        """Events in order and without gaps: those that are there, then those that come. Of a plan: until it has ended.

        Frames of the event socket are used while their numbers follow each other; what is missing is read (events.read), also after a
        restart of the daemon. Keep `event["seq"]` and `event["eventId"]` to go on later with `from_seq` (one more) and `after_event_id`.
        Error TIMEOUT when nothing came for `timeout` seconds. Error HISTORY_CHANGED as events() has it.
        """
        if plan is None and self.shards() > 1:
            raise Error("INVALID", "a fleet of several shards has no one order of events: watch a plan, or use `baton events`")
        seq = from_seq if from_seq is not None else 1 if plan else self.request("supervisor.info").get("lastSeq", 0) + 1
        sub: Optional[Pipe] = None
        last = after_event_id
        quiet_since = time.monotonic()
        try:
            while True:
                if sub is None:
                    sub = self._subscribe()
                for event, seq, last in self._pages(seq, last, plan, None if plan else types):
                    if event is not None and (not types or event["type"] in types):
                        quiet_since = time.monotonic()
                        yield event
                    if event is not None and plan and event["type"] == "plan_completed":
                        return
                if plan and from_seq is not None and self._is_over(plan, seq):
                    return
                while True:  # live, until there is a gap
                    try:
                        event = self._frame(sub)
                    except (OSError, EOFError, ValueError, AttributeError):
                        if sub is not None:
                            sub.close()
                        else:
                            time.sleep(0.2)
                        sub = None
                        break
                    if timeout is not None and time.monotonic() - quiet_since > timeout:
                        raise Error("TIMEOUT", "no event within %g s" % timeout, True)
                    number = event.get("seq")
                    if number is None:
                        if event.get("lastSeq", 0) >= seq:
                            break  # a heartbeat: some frames were lost
                        continue
                    if number < seq:
                        continue
                    if number > seq:
                        break
                    seq, last = seq + 1, event.get("eventId")
                    if (not plan or event.get("planId") == plan) and (not types or event["type"] in types):
                        quiet_since = time.monotonic()
                        yield event
                    if plan and event.get("planId") == plan and event["type"] == "plan_completed":
                        return
                if timeout is not None and time.monotonic() - quiet_since > timeout:
                    raise Error("TIMEOUT", "no event within %g s" % timeout, True)
        finally:
            if sub is not None:
                sub.close()

    def _is_over(self, plan: str, seq: int) -> bool:
        """Whether the plan ended before that number."""
        view = self.get(plan)
        return view["status"] in ENDED and view.get("lastSeq", 0) < seq

    def _subscribe(self) -> Optional[Pipe]:
        if isinstance(self.control.credential, Key):
            return None  # the bus shows what others own, and proves nothing
        try:
            sub = dial(self.control.endpoints()["events"], SUB, PUB, self.timeout)
            sub.sock.settimeout(3.0)  # a heartbeat comes each second
            return sub
        except (OSError, EOFError, Error, ValueError):
            return None

    @staticmethod
    def _frame(sub: Optional[Pipe]) -> Dict[str, Any]:
        if sub is None:
            raise EOFError("no subscription")
        body = _unpack(sub.recv(65536).partition(b"\0")[2])
        if not isinstance(body, dict):
            raise ValueError("an event is a map")
        return body

    def agents(self) -> List[Dict[str, Any]]:
        """The agents with their cards, states and instances."""
        return self.request("agents.list")["agents"]


# ---- a daemon for tests ----


def _program(name: str) -> str:
    """A program of Baton: in BATON_BIN, on the PATH, or beside this file's tree."""
    places = [os.environ.get("BATON_BIN") or "", *os.environ.get("PATH", "").split(":")]
    found = shutil.which(name, path=":".join(p for p in places if p))
    if found is None:
        raise Error("UNAVAILABLE", "%s is not on the PATH: install the package baton, or set BATON_BIN to the directory of its programs" % name)
    return found


class Daemon(Client):
    """A client of a daemon of its own, see daemon()."""

    def __init__(self, config: Union[Mapping[str, Any], str, None], agents: Sequence[Agent], timeout: float):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="baton-py-"))
        self.process: Optional[subprocess.Popen] = None
        self._agents, self._started, self._wait = list(agents), [], timeout
        text = config if isinstance(config, str) else json.dumps({"durability": "process", "policy": {"shutdownGraceMs": 1000},
                                                                  **({"agents": []} if agents else {}), **(config or {})})
        (self.folder / "baton.yaml").write_text(text)
        super().__init__(self.folder / "state")

    def start(self) -> Daemon:
        """Starts the daemon, again after stop() or kill(), and waits until it serves."""
        ready, says = os.pipe()
        try:
            with open(self.folder / "batond.log", "ab") as out:
                self.process = subprocess.Popen(
                    [_program("batond"), "--state", str(self.state), "--config", str(self.folder / "baton.yaml"), "--listen-control",
                     "tcp://127.0.0.1:0", "--listen-events", "tcp://127.0.0.1:0", "--ready-fd", str(says)],
                    stdin=subprocess.DEVNULL, stdout=out, stderr=out, pass_fds=(says,))
            os.close(says)
            says = -1
            if not select.select([ready], [], [], self._wait)[0] or os.read(ready, 6) != b"ready\n":
                raise Error("UNAVAILABLE", "the daemon did not start:\n" + self.log())
        finally:
            os.close(ready)
            if says >= 0:
                os.close(says)
        while self._agents:
            self.serve(self._agents.pop(0))
        return self

    def serve(self, agent: Agent) -> Agent:
        """Serves an agent in a thread of this process, until the daemon is closed. Returns when it takes steps."""
        agent.start(self.state)
        self._started.append(agent)
        deadline = time.monotonic() + self._wait
        while not any(a["card"]["agentId"] == agent.agent_id and any(i.get("health") == "healthy" for i in a.get("instances", []))
                      for a in self.agents()):
            if time.monotonic() > deadline:
                raise Error("TIMEOUT", "agent %s does not come up:\n%s" % (agent.agent_id, self.log()))
            time.sleep(0.02)
        return agent

    def log(self) -> str:
        """The end of the daemon's log."""
        return (self.folder / "batond.log").read_text(errors="replace")[-4000:]

    def _end(self, number: int) -> None:
        self.control.close()
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(number)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def stop(self) -> None:
        """Ends the daemon as a service manager does; its state stays."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the daemon by kill -9; its state stays."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        for agent in self._started:
            agent._stops += 2
            agent._wake()
        for agent in self._started:
            if agent._thread is not None:
                agent._thread.join(10)
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Daemon:
        return self


@contextlib.contextmanager
def daemon(config: Union[Mapping[str, Any], str, None] = None, *, agents: Sequence[Agent] = (), timeout: float = 30.0) -> Iterator[Daemon]:
    """A private daemon in a temporary directory, for tests: `with baton.daemon(agents=[agent]) as d: d.ask("greeter", "greet")`.

    `config` is the configuration (baton.yaml) as a dict or as text; `agents` are served by threads of this process.
    """
    d = Daemon(config, agents, timeout)
    try:
        yield d.start()
    finally:
        d.close()
