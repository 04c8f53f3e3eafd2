"""The llm agent against a server of language models that we did not write (@copilotkit/aimock, from npm), in its three forms.

What it answers is aimock's; what its journal shows is what we asked. Where a fault is not among those that it can do, a line
of ours stands between (support/bad_wire.py), which also shows the bodies as they were sent: aimock's journal has them in
OpenAI's form, whatever they were.
"""
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

from harness import BIN, ROOT, main

sys.path.insert(0, str(ROOT / "tests" / "peers"))
import bad_wire  # noqa: E402
import peers  # noqa: E402

KEY = "sk-canary-51ca/93f0a17e66"
FORMS = {"openai": ("/v1", "/v1/chat/completions", "authorization"),
         "anthropic": ("/v1", "/v1/messages", "x-api-key"),
         "ollama": ("", "/api/chat", "authorization")}
CITY = {"type": "object", "required": ["city"], "additionalProperties": False,
        "properties": {"city": {"type": "string"}, "inhabitants": {"type": "integer", "minimum": 0}}}
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
        self.assertEqual((failure["class"], failure["retryable"]), ("VALIDATION_ERROR", True), failure)
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


if __name__ == "__main__":
    main()
