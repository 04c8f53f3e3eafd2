#!/usr/bin/env python3
"""MCP at /mcp and over stdio, as clients of others speak it: @modelcontextprotocol/sdk (handshake) and @modelcontextprotocol/client (2026-07-28)."""
import json
import os
import shutil
import subprocess
import sys

import gateway
from gateway import CALC, PLAN, Gateway
from harness import BIN, ROOT, BatonTest, main, until

sys.path.insert(0, str(ROOT / "tests" / "peers"))
import peers  # noqa: E402


def setUpModule():
    gateway.need()


STEP = {**PLAN["steps"][0]}
APPROVAL = {"steps": [{**STEP, "requiresApproval": True}]}
EACH = [(era, how) for era in ("legacy", "modern") for how in ("http", "stdio")]
# It waits first: the client of MCP forgets a progress that comes in one piece with the result.
RECIPE = """
recipe: {name: double, title: Double it, description: Doubles a number}
inputs: {properties: {number: {type: integer}}, required: [number]}
steps:
  - {stepId: pause, wait: {forMs: 300}}
  - {stepId: a, agentId: calc, skill: evaluate, task: Double, parameters: {expression: "{{inputs.number}}*2"}, dependsOn: [pause]}
"""
WAITS = {"steps": [{"stepId": "w", "wait": {"forMs": 600000}}]}


class Mcp(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CALC)
        self.g = Gateway(self, self.d)

    def client(self, era, how, *steps):
        peers.need("@modelcontextprotocol/" + ("client" if era == "modern" else "sdk"))
        where = ({"url": self.g.url + "/mcp", "bearer": self.d.token()} if how == "http" else
                 {"command": str(BIN / "baton"), "args": ["mcp", "--state", str(self.d.state)]})
        done = subprocess.run(["node", ROOT / "tests/peers/mcp_client.mjs", str(peers.DIR), era, json.dumps(where)], input=json.dumps(steps),
                              capture_output=True, text=True, timeout=120, env={**os.environ})
        self.assertTrue(done.stdout.strip().startswith("["), done.stdout[-3000:] + done.stderr[-3000:])
        out = json.loads(done.stdout)
        self.assertNotIn("failed", out[-1], out[-1])
        return out


    def test_tools_plans_skills_progress_questions_resources(self):
        for era, how in EACH:
            out = self.client(era, how, {"do": "tools"},
                              {"do": "call", "name": "calc__evaluate", "arguments": {"expression": "6*7"}},
                              {"do": "call", "name": "run_plan", "arguments": {"plan": PLAN}},
                              {"do": "call", "name": "calc__evaluate", "arguments": {"expression": "1/0"}},
                              {"do": "call", "name": "check_plan", "arguments": {"plan": {"steps": []}}},
                              {"do": "call", "name": "get_plan", "arguments": {"planId": "nothing"}},
                              {"do": "call", "name": "no_such", "arguments": {}},
                              {"do": "answer", "action": "accept", "content": {"decision": "approve", "comment": "go on"}},
                              {"do": "call", "name": "run_plan", "arguments": {"plan": APPROVAL}},
                              {"do": "answer", "action": "decline"},
                              {"do": "call", "name": "run_plan", "arguments": {"plan": APPROVAL}},
                              {"do": "resources"})
            hello, tools, skill, plan, failed, check, nothing, no_such, _, approved, _, rejected, resources = out
            self.assertEqual(hello["server"]["name"], "baton")
            names = {t["name"]: t for t in tools["result"]["tools"]}
            self.assertTrue({"run_plan", "get_plan", "decide_review", "calc__evaluate"} <= set(names), names.keys())
            self.assertIn("expression", names["calc__evaluate"]["inputSchema"]["properties"])
            self.assertEqual(skill["result"]["content"][0]["text"], "42", skill)
            self.assertEqual(skill["result"]["structuredContent"]["status"], "completed")
            self.assertEqual(plan["result"]["content"][0]["text"], "3", plan)
            said = [p["message"] for p in plan["progress"]]
            self.assertEqual([p["progress"] for p in plan["progress"]], list(range(1, len(said) + 1)))
            if how == "http":  # over stdio the client may take the result before what stands before it
                self.assertTrue("a: started" in said and "a: is over" in said, said)
            self.assertTrue(failed["result"]["isError"], failed)
            self.assertEqual(check["result"]["structuredContent"]["valid"], False)
            self.assertTrue(nothing["result"]["isError"] and "planId" in nothing["result"]["content"][0]["text"] or "NOT_FOUND" in str(nothing), nothing)
            self.assertIn("no such tool", no_such["error"])
            self.assertEqual(approved["result"]["content"][0]["text"], "3", approved)
            self.assertEqual(len(approved["asked"]), 1)
            self.assertEqual(approved["asked"][0]["requestedSchema"]["required"], ["decision"])
            self.assertTrue(rejected["result"]["isError"], rejected)
            listed = resources["result"]["resources"]
            plan_id = approved["result"]["structuredContent"]["planId"]
            self.assertIn("plan://" + plan_id, [r["uri"] for r in listed])
            history = self.d.ask("plan.history", planId=plan_id)
            self.assertEqual((history["reviews"][0]["comment"], history["reviews"][0]["by"]["id"]), ("go on", "local"))
            read = self.client(era, how, {"do": "read", "uri": "plan://%s/result" % plan_id}, {"do": "read", "uri": "file:///etc/passwd"})
            self.assertEqual(json.loads(read[1]["result"]["contents"][0]["text"])["aggregatedResult"], "3")
            self.assertIn("expected plan://", read[2]["error"])

    def recipes(self):
        d = self.d.work / "recipes"
        d.mkdir()
        (d / "double.yaml").write_text(RECIPE)
        (d / "broken.yaml").write_text("recipe: [")
        (d / "plain.json").write_text(json.dumps(PLAN))           # a plan, no recipe
        (d / "notes.txt").write_text("inputs: {}")
        return Gateway(self, self.d, "--recipes", d)

    def test_recipes_are_tools_with_their_inputs_and_report_progress(self):
        self.g.kill9()
        self.g = self.recipes()
        for era, how in EACH:
            _, tools, done, fails, unknown, none = self.client(
                era, how, {"do": "tools"}, {"do": "call", "name": "recipe__double", "arguments": {"number": 21}},
                {"do": "call", "name": "recipe__double", "arguments": {"number": "x"}}, {"do": "call", "name": "recipe__nothing", "arguments": {}},
                {"do": "call", "name": "recipe__double"})
            found = {t["name"]: t for t in tools["result"]["tools"] if t["name"].startswith("recipe__")}
            self.assertEqual(list(found), ["recipe__double"])
            tool = found["recipe__double"]
            self.assertEqual((tool["title"], tool["description"], tool["inputSchema"]["required"], tool["inputSchema"]["properties"]["number"]["type"]),
                             ("Double it", "Doubles a number", ["number"], "integer"))
            self.assertEqual((done["result"]["content"][0]["text"], done["result"].get("isError", False)), ("42", False), (era, how, done))
            self.assertTrue(done["progress"], (era, how))
            self.assertTrue(fails["result"]["isError"] and "number" in fails["result"]["content"][0]["text"], fails)
            self.assertTrue(none["result"]["isError"] and "number" in none["result"]["content"][0]["text"], none)
            self.assertIn("there is no such tool", unknown["error"])
        (self.d.work / "recipes" / "double.yaml").unlink()
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        self.assertNotIn("recipe__", self.g.ask("POST", "/mcp", call).body.decode())          # what is gone counts at once

    def test_the_command_line_of_the_inspector_lists_and_calls(self):
        peers.need("@modelcontextprotocol/inspector-cli")
        self.g.kill9()
        self.g = self.recipes()
        package, home = peers.DIR / "node_modules/@modelcontextprotocol/inspector-cli", self.d.work / "inspector"
        home.mkdir()
        shutil.copytree(package / "build", home / "cli/build")                 # where it looks for ../../package.json, which its package lacks
        shutil.copy(package / "package.json", home / "package.json")
        (home / "node_modules").symlink_to(peers.DIR / "node_modules")
        cli = home / "cli/build/index.js"
        for target in ([self.g.url + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + self.d.token()],
                       [BIN / "baton", "mcp", "--state", self.d.state]):
            def ask(*args):
                done = subprocess.run(["node", cli, *map(str, target), *args], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                return json.loads(done.stdout)
            names = {t["name"] for t in ask("--method", "tools/list")["tools"]}
            self.assertTrue({"run_plan", "calc__evaluate", "recipe__double"} <= names, names)
            self.assertEqual(ask("--method", "tools/call", "--tool-name", "recipe__double", "--tool-arg", "number=4")["content"][0]["text"], "8")
            self.assertEqual(ask("--method", "tools/call", "--tool-name", "calc__evaluate", "--tool-arg", "expression=6*7")["content"][0]["text"], "42")
            self.assertTrue(ask("--method", "resources/list")["resources"])

    def test_a_cancelled_call_cancels_its_plan(self):
        for era, how in (("legacy", "http"), ("modern", "stdio")):
            before = {p["planId"] for p in self.d.ask("plan.list")["plans"]}
            out = self.client(era, how, {"do": "call", "name": "run_plan", "arguments": {"plan": WAITS}, "cancelOn": "plan is made"}, {"do": "tools"})
            self.assertIn("error", out[1], (era, how, out))
            [plan] = [p["planId"] for p in self.d.ask("plan.list")["plans"] if p["planId"] not in before]
            self.assertEqual(self.d.wait_plan(plan)["status"], "cancelled")

    def post(self, body, bearer=None, **headers):
        return self.g.ask("POST", "/mcp", body, bearer=bearer, **{"Accept": "application/json, text/event-stream", **headers})

    def test_what_is_no_message_is_refused_and_harms_nobody(self):
        call = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        self.assertEqual(self.post(call).json, {"jsonrpc": "2.0", "id": 1, "result": {}})
        self.assertEqual(self.g.ask("POST", "/mcp", call, Authorization=None).status, 401)
        self.assertEqual(self.post(call, Origin="http://evil.example").status, 403)
        self.assertEqual(self.g.ask("GET", "/mcp").status, 405)
        for body, code in (("{", -32700), ("[]", -32600), ({"id": 1, "method": "ping"}, -32600), ({**call, "method": "nothing"}, -32601),
                           ({**call, "method": "tools/call"}, -32602), ({**call, "method": "resources/read", "params": {"uri": 3}}, -32602)):
            self.assertEqual(self.post(body).json["error"]["code"], code, body)
        self.assertEqual(self.post(call, MCP_Protocol_Version="1999-01-01").status, 400)
        self.assertEqual(self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status, 202)
        self.assertEqual(self.post({"jsonrpc": "2.0", "id": "a:nothing", "result": {"action": "accept", "content": {"decision": "approve"}}}).status, 202)
        # without a stream in Accept the result is one answer
        whole = self.g.ask("POST", "/mcp", {**call, "method": "tools/call", "params": {"name": "run_plan", "arguments": {"plan": PLAN}}}, Accept="application/json")
        self.assertEqual((whole.headers["Content-Type"], whole.json["result"]["content"][0]["text"]), ("application/json", "3"), whole)

    def test_the_bridge_starts_a_gateway_of_its_own_and_takes_it_with_it(self):
        self.g.kill9()
        (self.d.state / "gateway.json").unlink()
        token = {"_meta": {"progressToken": "t"}}
        lines = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
                 {"jsonrpc": "2.0", "method": "notifications/initialized"},
                 {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "calc__evaluate", "arguments": {"expression": "2+2"}, **token}}]
        done = subprocess.run([BIN / "baton-gateway", "--mcp", "--state", self.d.state], input="".join(json.dumps(x) + "\n" for x in lines),
                              capture_output=True, text=True, timeout=60)
        came = list(map(json.loads, done.stdout.splitlines()))
        answers = {a["id"]: a["result"] for a in came if "id" in a}
        said = [a["params"]["message"] for a in came if "method" in a]
        self.assertEqual((said[0], said[-1]), ("the plan is made", "call: is over"))
        self.assertEqual((done.returncode, answers[1]["protocolVersion"], answers[2]["content"][0]["text"]), (0, "2025-06-18", "4"), done)
        until(lambda: not (self.d.state / "gateway.json").exists() or not alive(json.loads((self.d.state / "gateway.json").read_text())), 20, "its end")

    def bridge(self, *lines, state=None):
        return subprocess.run([BIN / "baton-gateway", "--mcp", "--state", state or self.d.state], input="".join(lines), capture_output=True, text=True, timeout=60)

    def test_the_bridge_takes_only_an_address_that_is_one(self):
        ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        pong = {"jsonrpc": "2.0", "id": 1, "result": {}}
        self.g.kill9()
        gone, file = self.g.process.pid, self.d.state / "gateway.json"
        for text in ("{", "[]", "", json.dumps({"url": "http://127.0.0.1:1", "pid": "x"}), json.dumps({"url": "http://127.0.0.1:1", "pid": gone}), json.dumps({"pid": os.getpid()}),
                     json.dumps({"url": "http://127.0.0.1:1" + "0" * 290, "pid": os.getpid()}), json.dumps({"url": "http://127.0.0.1:1", "pid": os.getpid()})):
            file.write_text(text)
            done = self.bridge("\n\r\n", ping + "\r\n")                               # one of its own
            self.assertEqual((done.returncode, [json.loads(x) for x in done.stdout.splitlines()]), (0, [pong]), (text, done))
        none = self.bridge(ping + "\n", state=self.d.work / "none")
        self.assertEqual((none.returncode, none.stdout), (1, ""), none)
        self.assertIn("token", none.stderr)

    def test_the_bridge_answers_what_its_gateway_does_not(self):
        bridge = subprocess.Popen([BIN / "baton-gateway", "--mcp", "--state", self.d.state], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (bridge.kill(), bridge.wait(), [f.close() for f in (bridge.stdin, bridge.stdout, bridge.stderr)]))

        def ask(body):
            bridge.stdin.write((body if isinstance(body, str) else json.dumps({"jsonrpc": "2.0", **body})) + "\n")
            bridge.stdin.flush()
            return json.loads(bridge.stdout.readline())
        hello = ask({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}}})
        self.assertEqual(hello["result"]["protocolVersion"], "2025-06-18", hello)
        self.assertEqual(ask({"id": "two", "method": "ping"}), {"jsonrpc": "2.0", "id": "two", "result": {}})
        self.assertEqual(ask("{")["error"]["code"], -32700)
        self.g.kill9()
        refused = ask({"id": 3, "method": "ping"})
        self.assertEqual((refused["id"], refused["error"]["code"], bool(refused["error"]["message"])), (3, -32603, True), refused)
        bridge.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/x"}) + "\n")       # nobody waits for an answer to a note
        bridge.stdin.close()
        self.assertEqual((bridge.stdout.read(), bridge.wait(30)), ("", 0))


def alive(address):
    return "pid" in address and os.path.exists("/proc/%d" % address["pid"])


if __name__ == "__main__":
    main()
