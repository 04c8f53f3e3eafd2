"""The llm agent against a server of language models that we did not write (@copilotkit/aimock, from npm), in its three forms.

What it answers is aimock's; what its journal shows is what we asked. Where a fault is not among those that it can do, a line
of ours stands between (support/bad_wire.py), which also shows the bodies as they were sent: aimock's journal has them in
OpenAI's form, whatever they were.
"""
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from harness import BIN, ROOT, BatonTest, main, until

sys.path.insert(0, str(ROOT / "tests" / "peers"))
import bad_wire  # noqa: E402
import peers  # noqa: E402

KEY = "sk-canary-51ca/93f0a17e66"
FORMS = {"openai": ("/v1", "/v1/chat/completions", "authorization"),
         "anthropic": ("/v1", "/v1/messages", "x-api-key"),
         "ollama": ("", "/api/chat", "authorization")}
CITY = {"type": "object", "required": ["city", "inhabitants"], "additionalProperties": False,
        "properties": {"city": {"type": "string"}, "inhabitants": {"type": "integer"}}}
CHAT = {"task": "name the capital of Switzerland"}
DATA = {**CHAT, "parameters": {"schema": CITY}}
BERN = {"city": "Bern", "inhabitants": 134591}


def setUpModule():
    global aimock
    aimock = peers.Aimock(apiKeys=[KEY])


def tearDownModule():
    aimock.close()


def in_each_form(test):
    @functools.wraps(test)
    def run(self):
        for api in FORMS:
            with self.subTest(api=api):
                test(self, api)
    return run


class Aimock(unittest.TestCase):
    def setUp(self):
        self.held = tempfile.TemporaryDirectory(prefix="baton-aimock-")
        self.addCleanup(self.held.cleanup)
        self.key = os.path.join(self.held.name, "key")
        with open(os.open(self.key, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(KEY + "\n")

    def provider(self, api, port=None, **more):
        return {"api": api, "baseUrl": "http://127.0.0.1:%d%s" % (port or aimock.port, FORMS[api][0]), "model": "m-1", "backoffMs": 1,
                "keyFile": self.key, **more}

    def line(self, *faults):
        self.wire = bad_wire.Line(aimock.port, *faults)
        self.addCleanup(self.wire.close)
        return self.wire.port

    def ask(self, step, *providers, skill="chat", ok=True, **settings):
        """One step of the real agent; its outcome. The key may stand in nothing that it says."""
        path = os.path.join(self.held.name, "settings.json")
        with open(path, "w") as f:
            json.dump({"providers": providers, **settings}, f)
        self.began = time.monotonic()
        done = subprocess.run([BIN / "baton-agent-llm", "--settings", path, "--once", skill], input=json.dumps(step),
                              capture_output=True, text=True, timeout=60)
        self.took = time.monotonic() - self.began
        self.assertNotIn("canary", done.stdout + done.stderr)
        self.assertEqual(done.returncode, 0 if ok else 1, done.stdout + done.stderr)
        self.log = done.stderr
        return json.loads(done.stdout)

    def failure(self, *args, **more):
        return self.ask(*args, ok=False, **more)["failure"]

    def journal(self, *statuses):
        """What aimock was asked; it must have answered with these statuses."""
        entries = aimock.journal()
        self.assertEqual([e["response"]["status"] for e in entries], list(statuses), entries)
        return entries


class Answers(Aimock):
    @in_each_form
    def test_text_whole_and_streamed(self, api):
        text = "Bern, \u00fcber der Aare, \u201esagt man\u201c." * 20
        for stream in (True, False):
            # aimock cuts by UTF-16: streamed, one half of a bear would come in one piece and one in the next.
            text += "" if stream else "\U0001f43b"
            aimock.answers({"response": {"content": text}, "chunkSize": 7})
            answer = self.ask(CHAT, self.provider(api, stream=stream))
            self.assertEqual(answer["result"]["text"], text)
            asked, = self.journal(200)
            self.assertEqual((asked["method"], asked["path"]), ("POST", FORMS[api][1]))
            self.assertEqual(asked["body"]["model"], "m-1")
            self.assertEqual(asked["body"]["stream"], stream)
            self.assertEqual([m["role"] for m in asked["body"]["messages"]], ["system", "user"])
            self.assertTrue(asked["body"]["messages"][1]["content"].startswith("name the capital"))

    @in_each_form
    def test_key_goes_into_its_header_and_nowhere_else(self, api):
        # aimock refuses who does not show it, and blacks it out where it knows it: in any other place it would be readable.
        aimock.answers("hello")
        self.ask(CHAT, self.provider(api, self.line()))
        asked, = self.journal(200)
        self.assertEqual(asked["headers"][FORMS[api][2]], "[REDACTED]")
        self.assertNotIn("canary", json.dumps(asked))
        sent, = self.wire.requests
        headers = {k.lower(): v for k, v in sent["headers"].items()}
        self.assertEqual(headers.pop(FORMS[api][2]), KEY if api == "anthropic" else "Bearer " + KEY)
        self.assertNotIn("canary", json.dumps([headers, sent["body"], sent["path"]]))
        self.assertEqual(headers["content-type"], "application/json")
        self.assertEqual("anthropic-version" in headers, api == "anthropic")

    @in_each_form
    def test_wrong_key_is_refused_and_not_asked_again(self, api):
        with open(self.key, "w") as f:
            f.write("sk-canary-of-somebody-else\n")
        aimock.answers("hello")
        failure = self.failure(CHAT, self.provider(api))
        self.assertEqual((failure["class"], failure["retryable"]), ("PERMISSION_DENIED", False), failure)

    @in_each_form
    def test_structured_output_by_schema_object_and_text(self, api):
        for rung in ("schema", "object", "text"):
            aimock.answers(BERN)
            answer = self.ask(DATA, self.provider(api, self.line(), structured=rung))
            self.assertEqual(answer["result"]["data"], BERN)
            self.journal(200)
            body = self.wire.requests[-1]["body"]
            told = {k: body[k] for k in ("response_format", "output_config", "format", "tools") if k in body}
            if rung == "schema" or (rung == "object" and api != "anthropic"):
                self.assertTrue(told, body)
            schema = json.dumps(CITY, separators=(",", ":"))
            in_words = json.dumps([body["messages"], body.get("system", "")])
            self.assertEqual(json.loads(schema) in (told.get("format"), told.get("response_format", {}).get("json_schema", {}).get("schema"),
                                                    told.get("output_config", {}).get("format", {}).get("schema")), rung == "schema", body)
            if rung != "schema":
                self.assertIn("JSON", in_words)
                self.assertIn("inhabitants", in_words)

    @in_each_form
    def test_prose_around_json(self, api):
        aimock.answers("Certainly! Here is what you asked for:\n\n```json\n%s\n```\n\nLet me know." % json.dumps(BERN, indent=2))
        self.assertEqual(self.ask(DATA, self.provider(api))["result"]["data"], BERN)

    @in_each_form
    def test_thinking_and_tool_shaped_answers(self, api):
        aimock.answers({"response": {"content": json.dumps(BERN), "reasoning": "The capital, {\"city\": \"Zug\"}? No."}})
        self.assertEqual(self.ask(DATA, self.provider(api))["result"]["data"], BERN)
        aimock.answers({"response": {"toolCalls": [{"name": "answer", "arguments": BERN}]}})
        self.assertEqual(self.ask(DATA, self.provider(api))["result"]["data"], BERN)

    @in_each_form
    def test_usage_told_or_estimated(self, api):
        told = {"prompt_tokens": 1234, "completion_tokens": 56}
        price = {"input": 3, "output": 15}
        for stream in (True, False):
            aimock.answers({"response": {"content": "Bern", "usage": told}})
            usage = self.ask(CHAT, self.provider(api, stream=stream, price=price))["usage"]
            if api != "ollama":
                self.assertEqual((usage["inputTokens"], usage["outputTokens"], usage["costMicros"]), (1234, 56, 1234 * 3 + 56 * 15))
            else:  # aimock's Ollama says that all of it was 0 tokens, which cannot be true
                self.assertIn("estimated=true", self.log)
                self.assertGreater(usage["inputTokens"], 100)
            usage = self.ask(CHAT, self.provider(api, self.line("nousage"), stream=stream, price=price))["usage"]
            self.assertIn("estimated=true", self.log)
            self.assertGreater(usage["inputTokens"], 100)
            self.assertGreaterEqual(usage["outputTokens"], 1)

    @in_each_form
    def test_wrong_shape_is_repaired_in_one_turn(self, api):
        aimock.answers({"capital": "Bern"}, BERN)
        answer = self.ask(DATA, self.provider(api))
        self.assertEqual(answer["result"]["data"], BERN)
        asked = self.journal(200, 200)[1]["body"]["messages"]
        self.assertEqual([m["role"] for m in asked[-3:]], ["user", "assistant", "user"])
        self.assertIn("capital", asked[-2]["content"])
        self.assertIn("city", asked[-1]["content"])

    @in_each_form
    def test_wrong_shape_twice_is_an_error_that_says_so(self, api):
        aimock.answers({"capital": "Bern"})
        failure = self.failure(DATA, self.provider(api))
        self.assertEqual((failure["class"], failure["retryable"]), ("VALIDATION_ERROR", False), failure)
        self.journal(200, 200)


class Faults(Aimock):
    @in_each_form
    def test_429_is_waited_for_as_long_as_the_server_says(self, api):
        aimock.answers({"response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429, "retryAfter": 1}}, "hello")
        self.assertEqual(self.ask(CHAT, self.provider(api))["result"]["text"], "hello")
        self.journal(429, 200)
        self.assertGreater(self.took, 1)

    @in_each_form
    def test_429_for_longer_than_may_be_waited_is_told(self, api):
        aimock.answers({"response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429, "retryAfter": 3600}})
        failure = self.failure(CHAT, self.provider(api))
        self.assertEqual((failure["class"], failure["retryable"], failure["retryAfterMs"]), ("RATE_LIMITED", True, 3600000), failure)
        self.assertIn("slow down", failure["message"])
        self.journal(429)

    @in_each_form
    def test_servers_errors_are_tried_again(self, api):
        aimock.answers({"response": {"error": {"message": "unwell"}, "status": 500}}, {"response": {"error": {"message": "full"}, "status": 529}}, "hello")
        self.assertEqual(self.ask(CHAT, self.provider(api))["result"]["text"], "hello")
        self.journal(500, 529, 200)
        aimock.answers({"response": {"error": {"message": "gone home"}, "status": 503}})
        failure = self.failure(CHAT, self.provider(api, attempts=2))
        self.assertEqual((failure["class"], failure["retryable"]), ("SERVICE_UNAVAILABLE", True), failure)
        self.assertIn("gone home", failure["message"])
        self.journal(503, 503)

    def test_next_provider_takes_over(self):
        for api, other in (("openai", "ollama"), ("anthropic", "openai"), ("ollama", "anthropic")):
            with self.subTest(api=api):
                aimock.answers({"response": {"error": {"message": "unwell"}, "status": 500}, "match": {"model": "m-1"}},
                               {"response": {"content": "from the second"}, "match": {"model": "m-2"}})
                answer = self.ask(CHAT, self.provider(api, attempts=1), {**self.provider(other), "model": "m-2"})
                self.assertEqual(answer["result"]["text"], "from the second")
                self.assertEqual([e["path"] for e in self.journal(500, 200)], [FORMS[api][1], FORMS[other][1]])

    @in_each_form
    def test_what_no_fixture_knows_is_no_model(self, api):
        aimock.answers({"response": {"content": "x"}, "match": {"model": "another"}})
        failure = self.failure(CHAT, self.provider(api))
        self.assertEqual((failure["class"], failure["retryable"]), ("SERVICE_UNAVAILABLE", False), failure)
        self.assertIn("No fixture matched", failure["message"])
        self.journal(404)

    @in_each_form
    def test_connection_lost_in_mid_stream(self, api):
        # By aimock itself, and by a line that is cut, reset, or ends in good order too early.
        aimock.answers({"response": {"content": "Bern is the capital" * 10}, "chunkSize": 5, "truncateAfterChunks": 4},
                       {"response": {"content": "Bern"}})
        self.assertEqual(self.ask(CHAT, self.provider(api))["result"]["text"], "Bern")
        self.assertEqual(len(aimock.journal()), 2)
        aimock.answers({"response": {"content": "Bern is the capital"}, "chunkSize": 3})
        for fault in ("cut:200", "reset:300", "ends:250", "cut:0", "ends:0"):
            answer = self.ask(CHAT, self.provider(api, self.line(fault, "pass")))
            self.assertEqual((answer["result"]["text"], len(self.wire.requests)), ("Bern is the capital", 2), fault)
        failure = self.failure(CHAT, self.provider(api, self.line("cut:200"), attempts=2))
        self.assertEqual((failure["class"], failure["retryable"]), ("SERVICE_UNAVAILABLE", True), failure)
        self.assertEqual(len(self.wire.requests), 2)

    @in_each_form
    def test_connection_lost_before_an_answer(self, api):
        aimock.answers({"response": {"content": "x"}, "chaos": {"disconnectRate": 1}}, "hello")
        self.assertEqual(self.ask(CHAT, self.provider(api))["result"]["text"], "hello")
        self.assertEqual(len(aimock.journal()), 2)

    @in_each_form
    def test_malformed_bytes(self, api):
        aimock.answers({"response": {"content": "x"}, "chaos": {"malformedRate": 1}}, "hello")
        self.assertEqual(self.ask(CHAT, self.provider(api))["result"]["text"], "hello")
        self.assertEqual(len(aimock.journal()), 2)
        for stream in (True, False):
            for fault in ("garble:0", "garble:150"):
                aimock.answers({"response": {"content": "Bern" * 30}, "chunkSize": 3})
                answer = self.ask(CHAT, self.provider(api, self.line(fault, "pass"), stream=stream))
                self.assertEqual((answer["result"]["text"], len(self.wire.requests)), ("Bern" * 30, 2), fault)

    @in_each_form
    def test_slow_drip_that_goes_on_is_an_answer(self, api):
        aimock.answers({"response": {"content": "Bern at last"}, "chunkSize": 1, "streamingProfile": {"ttft": 120, "tps": 20}})
        self.assertEqual(self.ask(CHAT, self.provider(api, idleTimeoutMs=1000))["result"]["text"], "Bern at last")
        self.assertGreater(self.took, 0.6)
        self.journal(200)

    @in_each_form
    def test_silence_ends_the_attempt_and_a_drip_the_time_of_it(self, api):
        aimock.answers({"response": {"content": "Bern" * 40}, "chunkSize": 5})
        answer = self.ask(CHAT, self.provider(api, self.line("stall:300", "pass"), idleTimeoutMs=200))
        self.assertEqual((answer["result"]["text"], len(self.wire.requests)), ("Bern" * 40, 2))
        failure = self.failure(CHAT, self.provider(api, self.line("drip:50"), idleTimeoutMs=1000, timeoutMs=400, attempts=1))
        self.assertIn(failure["class"], ("TIMEOUT", "SERVICE_UNAVAILABLE"), failure)
        self.assertLess(self.took, 5)
        aimock.answers({"response": {"content": "x"}, "chaos": {"latencyMs": 20000}})
        failure = self.failure({**CHAT, "deadlineMs": 1000}, self.provider(api, attempts=1))
        self.assertEqual((failure["class"], failure["retryable"]), ("TIMEOUT", True), failure)
        self.assertLess(self.took, 5)

    @in_each_form
    def test_endless_body_is_capped(self, api):
        aimock.answers({"response": {"content": "Bern" * 40}, "chunkSize": 50})
        failure = self.failure(CHAT, self.provider(api, self.line("endless:500"), maxBytes=262144))
        self.assertEqual((failure["class"], failure["retryable"]), ("VALIDATION_ERROR", False), failure)
        self.assertIn("262144", failure["message"])
        self.assertEqual(len(self.wire.requests), 1)


AGENTS = [{"agentId": "files", "name": "Files", "description": "Reads and writes.", "skills": [{"id": "read", "description": "Reads a file."}]},
          {"agentId": "calc", "name": "Calculator", "description": "Computes.", "skills": [{"id": "sum", "description": "Adds up."}]}]
PLAN = {"description": "reads, then adds up", "successCriteria": "a sum", "estimatedTokens": 300, "reasoning": "the file has the figures",
        "steps": [{"stepId": "a", "agentId": "files", "skill": "read", "task": "read the file", "parameters": {}, "dependsOn": []},
                  {"stepId": "b", "agentId": "calc", "skill": "sum", "task": "add up {{results.a}}", "parameters": {}, "dependsOn": ["a"]}]}


class Purposes(Aimock):
    """What the supervisor asks of a plan as a whole: to make it, to sum it up, to understand a person."""

    def plan(self, api, **more):
        parameters = {"goal": "add up the file", "constraints": ["no network"], "agents": AGENTS, "limits": {"maxSteps": 5}, **more}
        return self.ask({"task": "plan", "purpose": "plan", "parameters": parameters}, self.provider(api, self.line()), skill="plan")

    @in_each_form
    def test_plan_is_made(self, api):
        aimock.answers(PLAN)
        self.assertEqual(self.plan(api)["result"]["data"], PLAN)
        asked = self.journal(200)[0]["body"]["messages"][-1]["content"]
        for text in ("add up the file", "no network", "Reads a file.", "At most 5 steps"):
            self.assertIn(text, asked)

    @in_each_form
    def test_plan_in_prose_is_a_plan_and_its_orders_about_the_policy_are_gone(self, api):
        bold = {**PLAN, "policy": {"budget": {"tokens": 10 ** 9}}, "steps": [{**s, "requiresApproval": False, "maxRetries": 99} for s in PLAN["steps"]]}
        aimock.answers("Here is the plan:\n```json\n%s\n```\nGood luck!" % json.dumps(bold))
        self.assertEqual(self.plan(api)["result"]["data"], PLAN)

    @in_each_form
    def test_what_is_no_plan_goes_back_to_the_supervisor_as_it_is(self, api):
        # One answer, no repair turn of the agent's own: the supervisor asks again, with what its plan check says.
        aimock.answers("I would rather not.")
        self.assertIn("rather not", self.plan(api)["result"]["text"])
        self.journal(200)
        aimock.answers(PLAN)
        self.plan(api, previous="I would rather not.", problems=["not JSON"])
        asked = self.journal(200)[0]["body"]["messages"][-1]["content"]
        self.assertIn("I would rather not.", asked)
        self.assertIn("not JSON", asked)

    SUMMARY = {"goal": "add up the file", "status": "completed", "durationMs": 1500, "agents": ["Files", "Calculator"], "mayRetry": 0,
               "steps": [{"stepId": "a", "number": 1, "task": "read the file", "agentId": "files", "status": "completed", "result": "2 3"},
                         {"stepId": "b", "number": 2, "task": "add up", "agentId": "calc", "status": "failed", "error": "no network"}]}

    @in_each_form
    def test_summary_is_written_and_a_retry_is_asked_for(self, api):
        aimock.answers({"response": {"content": "# Plan Execution Summary\nThe sum is missing.\n\n## Key Accomplishments\n- the file"}, "chunkSize": 6})
        step = {"task": "sum up", "purpose": "synthesize", "parameters": self.SUMMARY}
        text = self.ask(step, self.provider(api), skill="synthesize")["result"]["text"]
        self.assertTrue(text.startswith("# Plan Execution Summary"), text)
        self.assertIn("The sum is missing.", text)
        self.assertIn("no network", self.journal(200)[0]["body"]["messages"][-1]["content"])
        aimock.answers({"retry": [{"stepId": "b", "reason": "the network may be back"}, {"stepId": "a", "reason": "why not"}]})
        step["parameters"] = {**self.SUMMARY, "mayRetry": 1}
        result = self.ask(step, self.provider(api), skill="synthesize")["result"]
        self.assertEqual(result["data"]["retry"], [{"stepId": "b", "reason": "the network may be back"}], "only what failed")

    @in_each_form
    def test_message_of_a_person_is_understood_and_checked(self, api):
        said = {"reasoning": "they said so", "action": "skip_to_step", "targetStepNumber": 2, "stepsToSkip": None, "goal": None}
        plan = {"goal": "add up the file", "status": "running", "steps": [{"number": n, "task": "t%d" % n, "status": "pending"} for n in (1, 2, 3)]}
        step = {"task": "converse", "purpose": "converse", "parameters": {"message": "go on at the second", "plan": plan}}
        aimock.answers({**said, "targetStepNumber": 7}, said)
        data = self.ask(step, self.provider(api), skill="converse")["result"]["data"]
        self.assertEqual((data["action"], data["targetStepNumber"]), ("skip_to_step", 2))
        self.assertIn("no step 7", self.journal(200, 200)[1]["body"]["messages"][-1]["content"])
        aimock.answers({**said, "action": "conversation_only", "targetStepNumber": None}, "The plan has three steps.")
        data = self.ask(step, self.provider(api), skill="converse")["result"]["data"]
        self.assertEqual((data["action"], data["reply"]), ("conversation_only", "The plan has three steps."))


CONFIG = """
agents:
  - agentId: calc
    command: ["${BATON_BIN}/baton-agent-calc"]
    capacity: 4
llm: %s
"""
MAKE, SUM_UP, TALK = "Make a plan that reaches the goal", "A workflow is over", "Decide what the newest message"
ALONE = "No plan could be made for the goal"


def calc(step_id, expression, needs=(), **more):
    return {"stepId": step_id, "agentId": "calc", "skill": "evaluate", "task": "calculate", "parameters": {"expression": expression},
            "dependsOn": list(needs), **more}


GOOD = {"description": "adds up, then doubles", "successCriteria": "a number", "estimatedTokens": 70, "reasoning": "it is arithmetic",
        "steps": [calc("a", "2+3"), calc("b", "x*2", ["a"])]}
GOOD["steps"][1]["parameters"]["variables"] = {"x": "{{results.a.value}}"}
CYCLE = {"steps": [calc("a", "2+3", ["b"]), calc("b", "1+1", ["a"])]}
UNKNOWN = {"steps": [calc("a", "2+3", agentId="oracle")]}
SUMMARY = "# Plan Execution Summary\nThe goal was reached: it is ten.\n\n## Key Accomplishments\n- both sums\n"


class Planned(Aimock, BatonTest):
    """`baton run GOAL --planner llm` through a daemon whose orchestrator asks aimock."""

    def start(self, api="openai", port=None, **settings):
        provider = self.provider(api, port, **settings.pop("provider", {}))
        config = json.dumps({"providers": [provider], **settings}).replace("%", "%%")
        self.d = self.daemon(config=CONFIG % config)
        return self.d

    def run_goal(self, *args, code=0, goal="add up and double"):
        out = self.d.cli("run", goal, "--planner", "llm", "--quiet", *args, code=code)
        self.plan = self.d.ask("plan.list", limit=1)["plans"][0]["planId"]
        return out

    def submit(self, goal="add up and double", **fields):
        self.plan = self.d.ask("plan.submit", goal=goal, planner="llm", **fields)["planId"]
        return self.plan

    def types(self):
        return [e["type"] for e in self.d.events(self.plan)]

    def event(self, type_):
        found = [e for e in self.d.events(self.plan) if e["type"] == type_]
        self.assertEqual(len(found), 1, (type_, found))
        return found[0]

    def review(self):
        return until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 20, "a review is open\n" + self.d.log())[0]

    def asked(self, n):
        """The n-th question about this plan, as aimock had it."""
        return aimock.journal()[n]["body"]["messages"][-1]["content"]


class Planning(Planned):
    @in_each_form
    def test_goal_becomes_a_plan_that_runs(self, api):
        self.start(api, provider={"price": {"input": 3, "output": 15}})
        aimock.answers({"response": {"content": json.dumps(GOOD), "usage": {"prompt_tokens": 700, "completion_tokens": 90}}})
        self.assertIn("10", self.run_goal())
        types = self.types()
        self.assertLess(types.index("planning_started"), types.index("plan_generated"))
        self.assertLess(types.index("plan_generated"), types.index("plan_started"))
        started, generated = self.event("planning_started"), self.event("plan_generated")
        self.assertEqual((started["agentId"], started["attempt"]), ("orchestrator", 1))
        self.assertEqual((generated["description"], generated["successCriteria"], generated["estimatedSteps"]), (GOOD["description"], "a number", 2))
        view = self.d.ask("plan.get", planId=self.plan, document=True)
        self.assertEqual([(s["stepId"], s["agentId"], s["status"]) for s in view["steps"]], [("a", "calc", "completed"), ("b", "calc", "completed")])
        self.assertEqual(view["document"]["steps"][1]["dependsOn"], ["a"])
        if api != "ollama":
            self.assertEqual((view["usagePlanning"]["inputTokens"], view["usagePlanning"]["outputTokens"], view["usagePlanning"]["costMicros"]),
                             (700, 90, 700 * 3 + 90 * 15))
        asked, = self.journal(200)
        self.assertEqual((asked["path"], asked["headers"][FORMS[api][2]]), (FORMS[api][1], "[REDACTED]"))
        text = asked["body"]["messages"][-1]["content"]
        for word in ("add up and double", "evaluate", "inputSchema"):
            self.assertIn(word, text)
        for skill in ("gate", "verify", "plan", "synthesize", "converse"):
            self.assertNotIn('"id":"%s"' % skill, text, "what only the supervisor asks is nothing for a plan")

    def test_constraints_and_dry_run(self):
        self.start()
        aimock.answers(GOOD)
        self.run_goal("--dry-run", "--constraint", "no division", "--json")
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "planned")
        self.assertNotIn("plan_step_started", self.types())
        self.assertIn("no division", self.asked(0))

    def refused_then_repaired(self, bad, said, *words):
        aimock.answers(bad, GOOD)
        self.assertIn("10", self.run_goal())
        retry = self.event("planning_retry")
        self.assertEqual(retry["attempt"], 1)
        self.assertIn(said, retry["text"])
        self.journal(200, 200)
        for word in words:
            self.assertIn(word, self.asked(1))
        self.assertNotIn("planning_failed", self.types())

    def test_cyclic_plan_is_repaired(self):
        self.start()
        self.refused_then_repaired(CYCLE, "a", "\"dependsOn\":[\"b\"]", "what is wrong with it")

    def test_unknown_agent_is_repaired(self):
        self.start()
        self.refused_then_repaired(UNKNOWN, "oracle", "oracle")

    def test_prose_is_repaired_and_prose_around_a_plan_needs_no_repair(self):
        self.start()
        self.refused_then_repaired("I am afraid I cannot do that.", "", "afraid")
        aimock.answers("Of course! This is it:\n\n```json\n%s\n```\n\nShall I go on?" % json.dumps(GOOD, indent=1))
        self.assertIn("10", self.run_goal())
        self.journal(200)

    def test_ten_thousand_steps_are_refused_in_words(self):
        self.start(port=self.line())  # the question is too long for aimock's journal
        aimock.answers({"response": {"content": json.dumps({"steps": [calc("s%d" % i, "1+1") for i in range(10000)]})}, "chunkSize": 65536}, GOOD)
        self.assertIn("10", self.run_goal())
        self.assertIn("at most", self.event("planning_retry")["text"])
        self.assertIn("10000 steps", self.wire.requests[1]["body"]["messages"][-1]["content"])
        self.assertEqual(len(self.d.ask("plan.get", planId=self.plan)["steps"]), 2)

    def test_invalid_twice_fails_with_what_is_wrong(self):
        self.start()
        aimock.answers(CYCLE)
        done = self.d.cli_any("run", "add up", "--planner", "llm")
        self.assertNotEqual(done.returncode, 0)
        self.plan = self.d.ask("plan.list", limit=1)["plans"][0]["planId"]
        self.journal(200, 200)
        failed = self.event("planning_failed")
        self.assertEqual((failed["attempt"], failed["failureKind"]), (2, "invalid_plan"), failed)
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], view.get("steps", [])), ("failed", []), view)
        self.assertIn("a", view["failureReason"])

    def test_invalid_twice_is_answered_in_words(self):
        self.start()
        aimock.answers(to={MAKE: [CYCLE], ALONE: ["It is ten, as far as I know."]})
        self.submit(policy={"onInvalidPlan": "synthesize", "synthesis": "llm"})
        self.d.wait_plan(self.plan)
        self.assertIn("synthesis_started", self.types())
        said = "".join(e["text"] for e in self.d.events(self.plan) if e["type"] == "text_delta")
        self.assertEqual(said, "It is ten, as far as I know.", "neither the heading nor the last line of a summary")

    def test_invalid_twice_waits_for_a_person(self):
        self.start()
        policy = {"onInvalidPlan": "interrupt"}
        aimock.answers(CYCLE, CYCLE, GOOD)
        self.submit(policy=policy)
        review = self.review()
        self.assertEqual(review["kind"], "planning", review)
        self.assertIn("a", review["prompt"])
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve")
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        self.journal(200, 200, 200)
        aimock.answers(CYCLE)
        self.submit(policy=policy)
        self.d.ask("review.decide", reviewId=self.review()["reviewId"], decision="approve", edit={"plan": {"steps": [calc("mine", "40+2")]}})
        self.assertIn("42", self.d.wait_plan(self.plan)["summary"])
        self.submit(policy=policy)
        self.d.ask("review.decide", reviewId=self.review()["reviewId"], decision="reject", comment="never mind")
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], view["outcome"], view["failureReason"]), ("cancelled", "failed", "never mind"))

    def test_server_that_is_down_fails_the_plan_and_says_so(self):
        self.start(provider={"attempts": 1, "breaker": {"failures": 0}})
        aimock.answers({"response": {"error": {"message": "gone home"}, "status": 503}})
        self.submit(policy={"maxRetries": 0, "plannerTimeoutMs": 10000})
        view = self.d.wait_plan(self.plan)
        self.assertEqual(view["status"], "failed")
        self.assertIn("gone home", view["failureReason"])
        self.assertEqual(self.event("planning_failed")["failureKind"], "planning_failed")

    def test_model_that_takes_too_long_and_one_that_is_called_off(self):
        self.start()
        aimock.answers({"response": {"content": json.dumps(GOOD)}, "chaos": {"latencyMs": 20000}})
        self.submit(policy={"plannerTimeoutMs": 500})
        self.assertEqual(self.d.wait_plan(self.plan, 15)["status"], "failed")
        self.submit()
        until(lambda: self.d.ask("agents.list"), 10, "asked")
        self.d.ask("plan.cancel", planId=self.plan)
        self.assertEqual(self.d.wait_plan(self.plan, 10)["status"], "cancelled")

    def test_planning_goes_on_when_the_daemon_comes_back(self):
        # The orchestrator is not the daemon: it waits on, and is asked once.
        self.start()
        aimock.answers({"response": {"content": json.dumps(GOOD)}, "chaos": {"latencyMs": 1500}})
        self.submit()
        until(lambda: "planning_started" in self.types(), 10, "the planner is asked")
        self.d.kill9()
        self.d.start()
        self.assertIn("10", self.d.wait_plan(self.plan, 40)["summary"])
        self.assertEqual(self.types().count("plan_generated"), 1)
        self.journal(200)

    def test_planner_that_dies_is_asked_again(self):
        self.start(port=self.line("stall:40", "pass"))
        aimock.answers(GOOD)
        self.submit()
        until(lambda: self.wire.requests, 20, "the model is asked\n" + self.d.log())
        os.kill(self.d.agent_pids()["orchestrator"][0], signal.SIGKILL)
        self.assertIn("10", self.d.wait_plan(self.plan, 40)["summary"])
        self.assertEqual(len(self.wire.requests), 2)


class Synthesis(Planned):
    def answer_of(self, **policy):
        self.plan = self.d.submit({"goal": "add up and double", "steps": GOOD["steps"]}, policy={"synthesis": {"agentId": "orchestrator"}, **policy})
        return self.d.wait_plan(self.plan)

    @in_each_form
    def test_answer_is_streamed_and_whole(self, api):
        text = SUMMARY + "Each figure was looked at. " * 40
        self.start(api)
        aimock.answers({"response": {"content": text}, "chunkSize": 9})
        view = self.answer_of()
        pieces = [e for e in self.d.events(self.plan) if e["type"] == "text_delta"]
        self.assertEqual([p["index"] for p in pieces], list(range(pieces[0]["index"], pieces[0]["index"] + len(pieces))))
        self.assertTrue("".join(p["text"] for p in pieces).startswith(text.strip()), pieces)
        self.assertTrue(view["summary"].startswith("# Plan Execution Summary"))
        self.assertEqual(self.event("synthesis_finished")["ok"], True)

    def test_model_that_cannot_answer_leaves_the_results_as_they_are(self):
        self.start(provider={"attempts": 1, "breaker": {"failures": 0}})
        aimock.answers({"response": {"error": {"message": "gone home"}, "status": 503}})
        view = self.answer_of(maxRetries=0)
        self.assertEqual(view["status"], "completed", view)
        self.assertIn("10", view["summary"])
        finished = self.event("synthesis_finished")
        self.assertEqual(finished["ok"], False)
        self.assertIn("gone home", finished["reason"])


class Talking(Planned):
    """A conversation with a model behind it: what a person's words mean for the plan, checked against that plan."""

    def say(self, text, **fields):
        """One turn, to its end; what came of it."""
        turn = self.d.ask("session.say", sessionId="s", text=text, **fields)["turnId"]

        def over():
            return [e for e in self.d.events(sessionId="s") if e["type"] == "turn_end" and e["turnId"] == turn]
        return until(over, 20, "the turn is over: %s\n%s" % (text, self.d.log()))[0]

    def understood(self, action, **more):
        return {"reasoning": "as they said", "action": action, "targetStepNumber": None, "stepsToSkip": None, "goal": None, **more}

    @in_each_form
    def test_messages_become_a_plan_changes_and_words(self, api):
        self.start(api)
        aimock.answers(to={MAKE: [GOOD], TALK: [self.understood("conversation_only"), self.understood("skip_steps", stepsToSkip=[7])],
                           "does not fit": [self.understood("skip_steps", stepsToSkip=[2])],
                           "Nothing is to be done but to answer": ["Two steps; the first is waiting for you."]})
        # The turn of a plan goes on until the plan is over.
        self.plan = self.d.ask("session.say", sessionId="s", text="add up and double", planner="llm", policy={"requiresApproval": True})["planId"]
        review = self.review()
        self.assertEqual(review["stepId"], "a")
        told = self.say("what do you think of the weather in this plan")
        self.assertEqual(told["action"], "conversation_only", told)
        self.assertIn("waiting for you", told["message"])
        self.assertEqual(self.d.ask("review.list", planId=self.plan)["reviews"], [review], "words change nothing")
        changed = self.say("I do not care for the doubling any more, leave that out please")
        self.assertEqual(changed["action"], "skip_steps", changed)
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve")
        view = self.d.wait_plan(self.plan)
        self.assertEqual([s["status"] for s in view["steps"]], ["completed", "skipped"], view)
        asked = [e["body"]["messages"][-1]["content"] for e in aimock.journal() if e["body"]["messages"]]
        self.assertTrue(any("no step 7" in a for a in asked), "the model was told that there is no such step")


if __name__ == "__main__":
    main()
