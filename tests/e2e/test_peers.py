"""Peers that are not ours: a Python agent and subscriber on bare sockets, nngcat, nanocat, Perl's NanoMsg::Raw."""
import json
import os
import shutil
import struct
import subprocess
import sys
import unittest

from harness import HERE, BatonTest, sp, until

CALC = {"agentId": "calc", "skill": "evaluate", "task": "compute a small sum", "parameters": {"expression": "1+2"}}


class PythonAgent(BatonTest):
    def serve(self, d, *args):
        agent = subprocess.Popen([sys.executable, HERE / "agent.py", d.state, *args], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(agent.wait, 10)
        self.addCleanup(agent.stdout.close)
        self.addCleanup(agent.stdin.close)
        self.assertIn("registered", agent.stdout.readline())
        until(lambda: [a for a in d.ask("agents.list")["agents"] if a["card"]["agentId"] == "shout" and a["state"] == "up"],
              5, "the agent is up")
        return agent

    def check(self, *args):
        d = self.daemon(config="agents: []\n")
        self.serve(d, *args)
        plan = d.submit({"steps": [
            {"stepId": "a", "agentId": "shout", "skill": "shout", "task": "say it loud", "parameters": {"text": "hello"}},
            {"stepId": "b", "agentId": "shout", "task": "{{results.a.length}} and more"}]})
        self.assertEqual(d.wait_plan(plan)["status"], "completed", d.log())
        self.assertEqual(d.ask("plan.result", planId=plan, stepId="a")["result"]["text"], "HELLO")
        second = d.ask("plan.result", planId=plan, stepId="b")["result"]
        self.assertEqual(second["text"], "5 AND MORE")
        self.assertEqual(second["data"]["dependencies"], ["a"], "in a chain the step before is handed on whole")
        self.assertEqual(second["data"]["context"],
                         "Previous step results:\n- Step 1 (shout): HELLO\n\nCurrent task: 5 and more")

    def test_python_agent_executes_steps_in_json(self):
        self.check()

    def test_python_agent_that_dials_in_executes_steps(self):
        self.check("--dial-in")


class Subscribers(BatonTest):
    def test_python_subscriber_fills_a_gap_by_events_read(self):
        d = self.daemon()
        with sp.Sub(d.endpoints()["events"], [b"plan/", b"handoff/", b"agent/", b"system/"]) as sub:
            until(lambda: sub.next()[0] == b"system/heartbeat", 10, "the subscription lives")
            plan = d.submit({"steps": [dict(CALC, stepId="s%d" % i) for i in range(5)]})
            d.wait_plan(plan)
            seen, types = {}, set()
            last = d.ask("supervisor.info")["lastSeq"]
            dropped = 0
            tip = 0
            while tip < last:
                topic, body = sub.next()
                if topic == b"system/heartbeat":
                    tip = lookup(body, "lastSeq")
                elif dropped < 3:  # as if the bus had dropped them
                    dropped += 1
                else:
                    seen[lookup(body, "seq")] = topic
            first = min(seen) - dropped
            missing = [n for n in range(first, last + 1) if n not in seen]
            self.assertEqual(len(missing), dropped)
            page = d.ask("events.read", fromSeq=missing[0], limit=missing[-1] - missing[0] + 1)["events"]
            self.assertTrue(set(missing) <= {e["seq"] for e in page})
            types = {e["type"] for e in d.events(plan)}
            self.assertTrue({"plan_generated", "plan_started", "agent_handoff", "plan_completed"} <= types, types)

    def listen(self, d, *command):
        peer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(peer.wait, 10)
        self.addCleanup(peer.stdout.close)
        self.addCleanup(peer.kill)
        plans = 0
        while plans < 20:  # the peer connects when it likes: say something until it has heard it
            d.wait_plan(d.submit({"steps": [CALC]}))
            plans += 1
            os.set_blocking(peer.stdout.fileno(), False)
            heard = peer.stdout.read() or b""
            if b"agent_handoff" in heard or b"handoff/" in heard:
                return heard
        self.fail("%s heard no handoff" % command[0])

    @unittest.skipUnless(shutil.which("nngcat"), "nngcat is not installed")
    def test_nngcat_sees_live_handoffs(self):
        d = self.daemon()
        heard = self.listen(d, "nngcat", "--sub0", "--dial", d.endpoints()["events"], "--subscribe", "handoff/", "--raw")
        self.assertIn(b"supervisor", heard)

    @unittest.skipUnless(shutil.which("nanocat"), "nanocat is not installed")
    def test_nanocat_sees_live_handoffs(self):
        d = self.daemon()
        self.listen(d, "nanocat", "--sub", "--connect", d.endpoints()["events"], "--subscribe", "handoff/", "--raw")

    def test_perl_client_asks_in_json(self):
        if subprocess.run(["perl", "-MNanoMsg::Raw", "-e", "1"], capture_output=True).returncode != 0:
            self.skipTest("Perl's NanoMsg::Raw is not installed")
        d = self.daemon(config="agents: []\n")
        body = json.dumps({"v": 1, "type": "supervisor.info", "id": "p", "token": d.token()})
        script = ("use NanoMsg::Raw; my $s=nn_socket(AF_SP,NN_REQ); nn_setsockopt($s,NN_SOL_SOCKET,NN_RCVTIMEO,5000);"
                  "nn_connect($s,$ARGV[0])//die; nn_send($s,$ARGV[1],0)//die; my $b; nn_recv($s,$b,65536,0)//die nn_strerror(nn_errno); print $b;")
        done = subprocess.run(["perl", "-e", script, d.endpoints()["control"], body], capture_output=True, text=True, timeout=20)
        self.assertEqual(json.loads(done.stdout)["pid"], d.process.pid, done.stderr)


def lookup(body, name):
    """The integer member of a msgpack map: enough of a reader for a subscriber."""
    at = body.index(bytes([0xA0 + len(name)]) + name.encode()) + 1 + len(name)
    head = body[at]
    sizes = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q"}
    return head if head < 0x80 else struct.unpack_from(sizes[head], body, at + 1)[0]


if __name__ == "__main__":
    unittest.main(verbosity=2)
