"""Credentials from outside, with nothing but the standard library: files in the state directory, the handshake, sealed requests.

    make(daemon, "ann", "submitter")                  # STATE/credentials/ann
    ann = Sender(daemon, "ann")                       # begins a session; checks the daemon's proof
    ann.ask("plan.submit", plan=...)                  # the answer; AssertionError on a refusal
    ann.ask_raw("plan.get", planId=...)               # the answer, whatever it is
"""
import hashlib
import hmac
import json
import os
import struct
import time

from harness import sp

MAGIC = b"\xc1BT\x01"


def make(daemon, ident, role, **more):
    folder = daemon.state / "credentials"
    folder.mkdir(mode=0o700, exist_ok=True)
    said = {"id": ident, "role": role, "key": os.urandom(32).hex(), "createdMs": int(time.time() * 1000), **more}
    made = folder / (".%s.new" % ident)
    made.touch(0o600)
    made.write_text(json.dumps(said))
    made.rename(folder / ident)
    return bytes.fromhex(said["key"])


def mac(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def hkdf(salt, key, info):
    return mac(mac(salt, key), info, b"\1")


class Sender:
    """Asks as Daemon does, but as the credential: each request on a connection of its own, in one session."""

    def __init__(self, daemon, ident, key=None):
        self.daemon, self.ident, self.n = daemon, ident, 0
        key = key or bytes.fromhex(json.loads((daemon.state / "credentials" / ident).read_text())["key"])
        nonce_c = os.urandom(32)
        with sp.Req(daemon.endpoints()["control"]) as req:
            body = {"v": 1, "type": "auth.begin", "id": "h", "credential": ident, "nonceC": nonce_c.hex()}
            begun = json.loads(req.ask(json.dumps(body).encode()))
        self.sid, nonce_s = bytes.fromhex(begun["sid"]), bytes.fromhex(begun["nonceS"])
        if bytes.fromhex(begun["proof"]) != mac(key, b"S", nonce_c, nonce_s, self.sid):
            raise AssertionError("the daemon does not have the key of %s" % ident)
        self.key = hkdf(nonce_c + nonce_s, key, b"baton session 1" + self.sid)

    def sealed(self, direction, n, body):
        head = self.sid + struct.pack(">Q", n)
        return MAGIC + head + mac(self.key, direction, head, body) + body

    def ask_raw(self, type_, timeout=15.0, **fields):
        self.n += 1
        body = json.dumps({"v": 1, "type": type_, "id": "t", **fields}).encode()
        with sp.Req(self.daemon.endpoints()["control"], timeout) as req:
            answer = req.ask(self.sealed(b"Q", self.n, body))
        said = answer[60:] if answer[:1] == MAGIC[:1] else answer
        if answer[:1] == MAGIC[:1] and answer != self.sealed(b"A", self.n, said):
            raise AssertionError("the answer to %s is not sealed right" % type_)
        return json.loads(said)

    def ask(self, type_, timeout=15.0, **fields):
        answer = self.ask_raw(type_, timeout, **fields)
        if not answer["ok"]:
            raise AssertionError("%s of %s refused: %s" % (type_, self.ident, answer["error"]))
        return answer
