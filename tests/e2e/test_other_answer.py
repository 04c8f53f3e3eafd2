#!/usr/bin/env python3
"""A supervisor answers a request of before: clients and agents take it for no answer, and use another connection."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from harness import BIN, ROOT, main

SDK = ROOT / "agents" / "python"
sys.path.insert(0, str(SDK))
sys.dont_write_bytecode = True
import baton  # noqa: E402  (the path is set just above)

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


if __name__ == "__main__":
    main()
