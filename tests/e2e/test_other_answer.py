#!/usr/bin/env python3
"""A supervisor answers a request of before: clients and agents take it for no answer, and use another connection."""
import contextlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

from harness import BIN, ROOT, main, until

SDK = ROOT / "agents" / "python"
sys.path.insert(0, str(SDK))
sys.dont_write_bytecode = True
import baton  # noqa: E402  (the path is set just above)
import sealed  # noqa: E402

loader = importlib.machinery.SourceFileLoader("kit", str(SDK / "baton-agent-check"))
kit = importlib.util.module_from_spec(importlib.util.spec_from_loader("kit", loader))
loader.exec_module(kit)
PLAN = "01A20A4C-62AF-7049-8B0F-C6EA08165C6B"


class Late(kit.Supervisor):
    """Its first answer to plan.get has the id of another request."""

    def answer(self, pipe, body, form):
        if body.get("type") == "plan.get" and body.get("token") == self.token:
            self.note(body, pipe)
            other = {"id": "another"} if len(self.of("plan.get")) == 1 else {}
            return {"type": "plan.get.ok", "planId": PLAN, "goal": "wrong" if other else "right", **other}
        return super().answer(pipe, body, form)


class OtherAnswer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="baton-e2e-")
        self.addCleanup(folder.cleanup)
        self.state = pathlib.Path(folder.name)
        self.late = Late(self.state)
        self.addCleanup(self.late.close)

    def connections(self):
        return len({id(pipe) for _, pipe, body in self.late.seen if body.get("type") == "plan.get"})

    def test_libbaton_takes_no_answer_to_another_request(self):
        def call():
            return subprocess.run([BIN / "client_call", self.state, "plan.get", json.dumps({"planId": PLAN})], capture_output=True, text=True, timeout=60)
        first = call()
        self.assertEqual((first.returncode, first.stdout), (1, ""), first)
        self.assertIn("answered another request", first.stderr)
        self.assertEqual(json.loads(call().stdout), {"v": 1, "type": "plan.get.ok", "ok": True, "planId": PLAN, "goal": "right"})
        ids = [body["id"] for body in self.late.of("plan.get")]
        self.assertTrue(all(ids), ids)

    def test_python_takes_no_answer_to_another_request(self):
        client = baton.Client(self.state, patience=0)
        self.addCleanup(client.close)
        with self.assertRaisesRegex(baton.Error, "UNAVAILABLE: .*it answered another request"):
            client.request("plan.get", planId=PLAN)
        self.assertEqual(client.request("plan.get", planId=PLAN)["goal"], "right")
        self.assertEqual(self.connections(), 2)

    def test_node_takes_no_answer_to_another_request(self):
        script = ("import { Client } from '%s';\nconst client = new Client({ state: '%s', patienceMs: -1 });\n"
                  "for (let n = 0; n < 2; n++) {\n  try { console.log((await client.request('plan.get', { planId: '%s' })).goal); }\n"
                  "  catch (e) { console.log(e.code, e.message); }\n}\nclient.close();\n") % (ROOT / "agents/node/baton.mjs", self.state, PLAN)
        done = subprocess.run(["node", "--input-type=module", "-e", script], capture_output=True, text=True, timeout=60, env=os.environ)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\AUNAVAILABLE .*answered another request\nright\n\Z")
        self.assertEqual(self.connections(), 2)


class Sealed(kit.Supervisor):
    """Takes sealed requests. It ends a session once, when `ends` is set, and holds the answer to the next auth.begin until `go`."""

    def __init__(self, state, url=None):
        self.sessions, self.ends, self.began, self.go = {}, threading.Event(), threading.Event(), threading.Event()
        self.go.set()
        self.sealed = []  # types, in their order
        super().__init__(state, url)

    def begin(self, body):
        key, ours, theirs, sid = sealed.key_of(CREDENTIAL), os.urandom(32), bytes.fromhex(body["nonceC"]), os.urandom(16)
        self.sessions[sid] = sealed.hkdf(key, theirs + ours, b"baton session 1" + sid)
        self.began.set()
        self.go.wait(30)
        return {"type": "auth.begin.ok", "sid": sid.hex(), "nonceS": ours.hex(), "proof": sealed.mac(key, b"S", theirs, ours, sid).hex()}

    def serve(self, sock):
        pipe = baton.Pipe(sock, baton.REP, baton.REQ)
        sock.settimeout(None)
        with contextlib.suppress(OSError, EOFError):
            while True:
                header, data = baton.split_header(pipe.recv())
                head, body = data[4:28], data[sealed.HEADER:]
                if data[:4] != sealed.MAGIC:
                    body, form = baton._decode(data)
                    pipe.send(header + baton._encode({"v": 1, "id": body["id"], "ok": True, **self.begin(body)}, form))
                    continue
                body, form = baton._decode(body)
                self.sealed.append(body["type"])
                if self.ends.is_set() and body["type"] == "agent.heartbeat":
                    self.ends.clear()
                    self.go.clear()
                    pipe.send(header + baton._encode({"v": 1, "id": "", **self.error("UNAUTHORIZED", "the session has ended")}, form))
                    continue
                answer = baton._encode({"v": 1, "id": body["id"], "ok": True, **self.answer(pipe, {**body, "token": self.token}, form)}, form)
                pipe.send(header + sealed.MAGIC + head + sealed.mac(self.sessions[head[:16]], b"A", head, answer) + answer)


class Handshake(unittest.TestCase):
    def test_an_agent_sends_its_request_again_and_not_the_answer_to_a_step(self):
        global CREDENTIAL
        folder = pathlib.Path(tempfile.mkdtemp(prefix="baton-e2e-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        subprocess.run([BIN / "baton", "credential", "add", "away", "--role", "agent", "--agents", "*", "--state", folder], check=True, capture_output=True)
        CREDENTIAL = folder / "credentials/away"
        settings = folder / "exec.json"
        settings.write_text(json.dumps({"agentId": "exec", "commands": [{"id": "echo", "argv": ["echo", "{text}"], "description": "Says a text.",
                                                                        "output": "text", "effects": "idempotent"}]}))
        self.addCleanup(setattr, kit, "Supervisor", kit.Supervisor)
        kit.Supervisor = Sealed
        k = kit.Kit(kit.options(["--skill", "echo", "--param", "text=hi", "env", "BATON_CREDENTIAL=%s" % CREDENTIAL, str(BIN / "baton-agent-exec"),
                                 "--settings", str(settings)]))
        self.addCleanup(k.close)
        k.start()
        k.registered(0.0, 30)
        k.settle()
        k.supervisor.began.clear()
        k.supervisor.ends.set()
        self.assertTrue(k.supervisor.began.wait(20), k.log())
        had = len(k.supervisor.sealed)
        k.execute()  # while the agent waits for its new session
        k.supervisor.go.set()
        k.supervisor.wait(lambda: len(k.supervisor.sealed) > had, 20)
        until(lambda: len(k.supervisor.sealed) > had, 20, "the agent goes on\n" + k.log())
        self.assertEqual(k.supervisor.sealed[had], "agent.heartbeat")
        k.execute()
        self.assertEqual(k.supervisor.epoch, 1, "it did not register again")


if __name__ == "__main__":
    main()
