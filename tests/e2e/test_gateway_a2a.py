#!/usr/bin/env python3
"""A2A at /a2a, as clients made with @a2a-js/sdk speak it, versions 1.0 and 0.3."""
import json
import subprocess
import sys

import gateway
from gateway import CALC, PLAN, Gateway
from harness import ROOT, BatonTest, main

sys.path.insert(0, str(ROOT / "tests" / "peers"))
import peers  # noqa: E402

APPROVAL = {"steps": [{**PLAN["steps"][0], "requiresApproval": True}]}
SLOW = {"steps": [{"stepId": "w", "wait": {"forMs": 500}}, {**PLAN["steps"][0], "dependsOn": ["w"]}]}
WAITS = {"steps": [{"stepId": "w", "wait": {"forMs": 600000}}]}


def setUpModule():
    gateway.need()


class A2a(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CALC)
        self.g = Gateway(self, self.d)

    def client(self, version, *steps):
        peers.need("@a2a-js/sdk")
        done = subprocess.run(["node", ROOT / "tests/peers/a2a_client.mjs", str(peers.DIR), version, self.g.url, self.d.token()], input=json.dumps(steps),
                              capture_output=True, text=True, timeout=120)
        self.assertTrue(done.stdout.startswith("["), done.stdout[-2000:] + done.stderr[-3000:])
        return json.loads(done.stdout)

    def test_send_stream_questions_cancel_and_following_again(self):
        for version in ("1.0", "0.3"):
            out = self.client(version, {"do": "send", "data": PLAN, "context": "talk", "id": "m-" + version},
                              {"do": "send", "data": PLAN, "context": "talk", "id": "m-" + version},
                              {"do": "send", "text": "add 20 and 22"},
                              {"do": "stream", "data": SLOW},
                              {"do": "follow", "task": "LAST"},
                              {"do": "stream", "data": APPROVAL},
                              {"do": "send", "task": "LAST", "text": "what is this?"},
                              {"do": "get", "task": "LAST"},
                              {"do": "stream", "task": "LAST", "text": "approve, go on"},
                              {"do": "send", "data": APPROVAL},
                              {"do": "send", "task": "LAST", "text": "reject"},
                              {"do": "send", "data": WAITS, "now": True},
                              {"do": "cancel", "task": "LAST"},
                              {"do": "cancel", "task": "LAST"},
                              {"do": "get", "task": "nothing"})
            (hello, sent, same, goal, stream, again, asks, unclear, still, goes_on, asks_too, rejected, now, cancelled, twice, nothing) = out
            where = (version, json.dumps(out))
            self.assertEqual(hello["card"], {"name": "Baton", "skills": ["goal", "plan"], "version": version}, where)
            [task] = sent["events"]
            self.assertEqual((task["state"], task["text"], task["context"]), ("completed", "3", "talk"), where)
            self.assertEqual(same["events"][0]["task"], task["task"], where)
            self.assertEqual((goal["events"][0]["state"], goal["events"][0]["text"]), ("completed", "42"), where)
            self.assertEqual([(e["kind"], e.get("state")) for e in stream["events"]][::len(stream["events"]) - 1], [("task", "working"), ("statusUpdate", "completed")], where)
            self.assertEqual([e["text"][-1:] for e in stream["events"] if e["kind"] == "artifactUpdate"], ["3"], where)
            self.assertTrue({"a started", "a is over"} <= {e.get("says") for e in stream["events"]}, where)
            self.assertEqual((len(again["events"]), again["events"][0]["state"], again["events"][0]["text"][-1:]), (1, "completed", "3"), where)
            self.assertEqual(asks["events"][-1]["state"], "input_required", where)
            self.assertIn("expected a text that begins with approve", unclear["error"], where)
            self.assertEqual(still["events"][0]["state"], "input_required", where)
            self.assertEqual((goes_on["events"][-1]["state"], "".join(e["text"] for e in goes_on["events"])), ("completed", "3"), where)
            by = self.d.ask("plan.history", planId=goes_on["events"][0]["task"])["reviews"][0]
            self.assertEqual((by["decision"], by["comment"], by["by"]["id"]), ("approve", "go on", "local"))
            self.assertEqual((asks_too["events"][0]["state"], rejected["events"][0]["state"]), ("input_required", "failed"), where)
            self.assertEqual((now["events"][0]["state"], cancelled["events"][0]["state"]), ("working", "canceled"), where)
            self.assertTrue(twice.get("error") or twice["events"][0]["state"] == "canceled", where)
            self.assertIn("error", nothing, where)

    def test_what_is_no_request_is_refused(self):
        call = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}
        self.assertEqual(self.g.ask("POST", "/a2a", call, Authorization=None).status, 401)
        self.assertEqual(self.g.ask("POST", "/a2a", call, bearer="0" * 64).status, 401)
        self.assertEqual(self.g.ask("GET", "/a2a").status, 405)
        for body, code in (("{", -32700), ("[]", -32600), ({**call, "id": None}, -32001), ({**call, "method": "Nothing"}, -32601), ({**call, "params": {}}, -32001),
                           ({**call, "method": "tasks/pushNotificationConfig/set"}, -32003), ({**call, "method": "SendMessage", "params": {"message": {"parts": []}}}, -32602),
                           ({**call, "method": "SendMessage", "params": 3}, -32602), ({**call, "method": "message/send", "params": {"message": {"parts": [{"text": "x" * 8193}]}}}, -32602),
                           ({**call, "method": "CancelTask", "params": {"id": "01A20FC9-DD1B-70C5-9698-077211201167"}}, -32001)):
            answer = self.g.ask("POST", "/a2a", body)
            self.assertEqual(answer.json.get("error", {}).get("code"), code, (body, answer))
        card = self.g.ask("GET", "/.well-known/agent-card.json", Authorization=None)
        self.assertEqual((card.status, card.json["url"]), (200, self.g.url + "/a2a"))


if __name__ == "__main__":
    main()
