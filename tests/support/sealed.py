"""Credentials at the control socket, written from protocol/WIRE.md with nothing but the standard library.

    with Session(url, "ci", key) as s:
        answer = s.ask("plan.list")       # a dict; raises Refused when the daemon cannot prove itself, or answers unsealed
"""
import hashlib
import hmac
import json
import os
import struct

import sp

MAGIC = b"\xc1BT\x01"
HEADER = 60


class Refused(Exception):
    """Not sealed: the code of the error, and the answer as it came."""

    def __init__(self, raw):
        super().__init__(raw)
        self.code = next((c for c in (b"UNAUTHORIZED", b"BUSY", b"INVALID", b"LIMIT") if c in raw), b"").decode()


def read(body):
    """JSON, or what it is: garbage is answered in msgpack."""
    return json.loads(body) if body[:1] == b"{" else body


def mac(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def hkdf(key, salt, info):
    return mac(mac(salt, key), info, b"\1")


def key_of(path):
    with open(path, encoding="utf-8") as f:
        return bytes.fromhex(json.load(f)["key"])


class Session:
    def __init__(self, url, ident, key, timeout=15.0):
        self.req = sp.Req(url, timeout)
        self.n = 0
        try:
            self._begin(ident, key)
        except BaseException:
            self.close()
            raise

    def _begin(self, ident, key):
        nonce_c = os.urandom(32)
        raw = self.req.ask(json.dumps(
            {"v": 1, "type": "auth.begin", "id": "b", "credential": ident, "nonceC": nonce_c.hex()}).encode())
        begun = json.loads(raw)
        if not begun["ok"]:
            raise Refused(raw)
        self.sid, nonce_s = bytes.fromhex(begun["sid"]), bytes.fromhex(begun["nonceS"])
        proof = mac(key, b"S", nonce_c, nonce_s, self.sid).hex()
        self.proved = proof in (begun["proof"], begun.get("previousProof"))
        self.key = hkdf(key, nonce_c + nonce_s, b"baton session 1" + self.sid)

    def seal(self, body, n=None, direction=b"Q"):
        if n is None:
            self.n += 1
            n = self.n
        head = self.sid + struct.pack(">Q", n)
        return MAGIC + head + mac(self.key, direction, head, body) + body

    def send(self, sealed):
        """The answer to bytes as they are; a refusal is not sealed."""
        raw = self.req.ask(sealed)
        if raw[:4] != MAGIC:
            raise Refused(raw)
        head = raw[4:28]
        if head != sealed[4:28] or not hmac.compare_digest(raw[28:HEADER], mac(self.key, b"A", head, raw[HEADER:])):
            raise Refused(raw)
        return read(raw[HEADER:])

    def body(self, type_, **fields):
        return json.dumps({"v": 1, "type": type_, "id": "t", **fields}).encode()

    def ask(self, type_, **fields):
        return self.send(self.seal(self.body(type_, **fields)))

    def close(self):
        self.req.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
