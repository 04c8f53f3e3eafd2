"""The built-in agent of a daemon with models: it plans, answers in pieces, and every token of it is counted by phase."""
import json
import os
import socket
import threading
import unittest.mock

from harness import BatonTest, main, read_yaml, until
import mock_llm

CANARY = "sk-canary-4411/aa0b"

CONFIG = """
policy: {heartbeatMs: 300}
prices: [{agentId: "*", input: 3, output: 15}]
llm:
  providers: [{api: openai, baseUrl: "%s", model: m, keyEnv: BATON_TEST_KEY, allowHttp: true, backoffMs: 20, price: {input: 3, output: 15}}]
  capacity: 2
agents:
  - agentId: calc
    command: ["${BATON_BIN}/baton-agent-calc"]
    capacity: 4
"""

TWO = {"description": "two sums", "estimatedTokens": 40, "steps": [
    {"stepId": "one", "agentId": "calc", "skill": "evaluate", "task": "add one and one", "parameters": {"expression": "1+1"}, "dependsOn": []},
    {"stepId": "two", "agentId": "calc", "skill": "evaluate", "task": "add two and two", "parameters": {"expression": "2+2"}, "dependsOn": ["one"]}]}
SUMMARY = "# Plan Execution Summary\n\n## Key Accomplishments\n- One and one are 2.\n- Two and two are 4.\n\n## Important Findings\n- None.\n\n## Recommended Next Steps\n1. None.\n"


class Orchestrator(BatonTest):
    def model(self, plans, answer=SUMMARY):
        """plans: what it says when it is asked for a plan, one after the other; the last one from then on."""
        plans, self.asked, lock = list(plans), [], threading.Lock()

        def brain(asked):
            with lock:
                self.asked.append(asked)
                if "stepId" in str(asked["body"].get("response_format", "")) or '"steps"' in asked["messages"][0]["content"][:4000]:
                    said = plans.pop(0) if len(plans) > 1 else plans[0]
                    return said if isinstance(said, str) else json.dumps(said)
                return answer
        mock = mock_llm.Mock(brain=brain)
        self.addCleanup(mock.close)
        with unittest.mock.patch.dict(os.environ, {"BATON_TEST_KEY": CANARY}):
            self.d = self.daemon(config=CONFIG.replace("%s", mock.url("ok")))

    def plan(self, **fields):
        plan_id = self.d.ask("plan.submit", goal="what are the sums?", planner="llm", **fields)["planId"]
        view = self.d.wait_plan(plan_id)
        self.assertEqual(view["status"], "completed", (view, self.d.log()))
        return plan_id, view, self.d.events(plan_id)

    def test_a_goal_is_planned_run_and_answered_by_the_model(self):
        self.model([TWO])
        plan_id, view, events = self.plan(policy={"synthesis": "llm"})
        types = [e["type"] for e in events]
        self.assertEqual(types[:3] + types[-2:], ["planning_started", "plan_generated", "plan_started", "synthesis_finished", "plan_completed"])
        self.assertEqual([s["result"] for s in view["steps"]], ["2", "4"])
        result = self.d.ask("plan.result", planId=plan_id)["aggregatedResult"]
        self.assertTrue(result.startswith("# Plan Execution Summary\n\n## Key Accomplishments\n- One and one are 2."), result)
        self.assertRegex(result, r"\*Plan completed in [0-9.]+ seconds across Calculator\.\*\n$")
        pieces = [e for e in events if e["type"] == "text_delta"]
        self.assertEqual("".join(e["text"] for e in pieces), result, "what was streamed is the whole answer")

    def test_every_token_is_counted_by_phase(self):
        self.model([TWO])
        plan_id, view, _ = self.plan(policy={"synthesis": "llm"})
        self.assertEqual([view.get("usage" + p, {}).get("inputTokens", 0) for p in ("Planning", "Execution", "Replanning", "Synthesis")], [12, 0, 0, 12])
        cost = self.d.ask("plan.cost", planId=plan_id)
        (one,) = cost["plans"]
        self.assertEqual((one["planningTokens"], one["synthesisTokens"], one["estimatedTokens"]), (17, 17, 40))
        micros = one["total"]["costMicros"]
        self.assertEqual((micros, round(one["totalCost"] * 1e6)), (view["usage"]["costMicros"], micros))
        self.assertGreater(micros, 2 * 5 * 15, "M111: what was said costs, too")
        self.assertEqual(cost["total"]["total"], one["total"])
        self.assertEqual(self.d.ask("plan.cost", sinceMs=1)["total"]["total"], one["total"], "errands are counted once, with their plan")
        self.assertEqual(self.d.ask("plan.cost", sessionId="other").get("plans", []), [])

    def test_a_budget_holds_for_planning(self):
        self.model([TWO])
        plan_id = self.d.ask("plan.submit", goal="what are the sums?", planner="llm", policy={"budget": {"tokens": 17}})["planId"]
        view = self.d.wait_plan(plan_id)
        self.assertEqual((view["status"], self.asked), ("failed", []), "no question that the budget cannot pay for")
        self.assertIn("does not pay", view["failureReason"])

    def test_a_cyclic_plan_is_sent_back_once(self):
        cyclic = {**TWO, "steps": [{**TWO["steps"][0], "dependsOn": ["two"]}, TWO["steps"][1]]}
        self.model(["Here it is:\n```json\n%s\n```\nEnjoy." % json.dumps(cyclic), TWO])
        _, _, events = self.plan()
        self.assertEqual([e["type"] for e in events][:3], ["planning_started", "planning_retry", "plan_generated"])
        self.assertIn("one -> two -> one", events[1]["text"])

    def test_the_key_is_nowhere_but_in_the_header(self):
        self.model([TWO])
        self.plan(policy={"synthesis": "llm"})
        for path in self.d.work.rglob("*"):
            if path.is_file():
                self.assertNotIn(CANARY.encode(), path.read_bytes(), path)
        for pid in [p for pids in self.d.agent_pids().values() for p in pids]:
            with open("/proc/%d/environ" % pid, "rb") as f:
                self.assertNotIn(CANARY.encode(), f.read(), "the agent wiped it, the others never had it")

    def test_the_command_line_plans_runs_and_prints_the_answer_once(self):
        self.model([TWO])
        out = self.d.cli("run", "what are the sums?", "--planner", "llm", "--synthesis", "llm")
        self.assertEqual(out.count("# Plan Execution Summary"), 1, out)
        document = read_yaml(self.d.cli("plan", "what are the sums?", "--planner", "llm"))
        self.assertEqual([s["stepId"] for s in document["steps"]], ["one", "two"])
        (self.d.work / "plan.json").write_text(json.dumps(document))
        self.assertIn("add two and two", self.d.cli("run", "--all", "--plan", self.d.work / "plan.json"))


class Failing(BatonTest):
    """A model that cannot be asked, or answers what is of no use: why is told, and it is asked no more often than helps."""

    def start(self, url, brain=None, **provider):
        self.mock = mock_llm.Mock(brain=brain)
        self.addCleanup(self.mock.close)
        base = url if "://" in url else self.mock.url(url)
        config = CONFIG.replace("heartbeatMs: 300", "heartbeatMs: 300, backoff: {initialMs: 1}").replace("%s", base)
        for name, value in provider.items():
            config = config.replace("backoffMs: 20", "backoffMs: 20, %s: %s" % (name, json.dumps(value)))
        with unittest.mock.patch.dict(os.environ, {"BATON_TEST_KEY": CANARY}):
            self.d = self.daemon(config=config.replace("backoffMs: 20", "backoffMs: 1"))

    def goal_fails(self):
        """A goal that cannot be planned: what its events and its view say, and how many requests it cost."""
        before = len(self.mock.journal)
        plan_id = self.d.ask("plan.submit", goal="what are the sums?", planner="llm")["planId"]
        view = self.d.wait_plan(plan_id)
        told = {e["type"]: e for e in self.d.events(plan_id)}
        self.assertEqual(view["status"], "failed", view)
        cause = view["failureReason"].partition(": ")[2][:100]
        self.assertIn(cause, told["planning_failed"]["reason"])
        self.assertIn(cause, str(told["plan_completed"]))
        self.assertNotIn(CANARY, str(told))
        return view["failureReason"], len(self.mock.journal) - before

    def talk(self):
        """Something that only a model can make sense of, behind a plan."""
        self.d.wait_plan(self.d.submit({"steps": [TWO["steps"][0]]}, sessionId="s"))
        self.d.ask("session.say", sessionId="s", text="and what would you make of that?")

    def dead_port(self):
        with socket.create_server(("127.0.0.1", 0)) as one:
            return one.getsockname()[1]

    def test_nobody_there_is_said_on_the_first_goal_and_when_it_is_left_alone(self):
        port = self.dead_port()
        self.start("http://127.0.0.1:%d/v1" % port)
        cause = "Failed to connect to 127.0.0.1 port %d" % port
        said, _ = self.goal_fails()
        self.assertIn("model m at 127.0.0.1:%d: %s" % (port, cause), said)
        for _ in range(2):
            said, _ = self.goal_fails()
            self.assertIn(cause, said)
        self.assertRegex(said, r"left alone for [0-9]+ s more; the last failure: " + cause)

    def test_doctor_looks_whether_somebody_is_there_and_asks_nothing(self):
        port = self.dead_port()
        for url, there, words in (("http://127.0.0.1:%d/v1" % port, False, "m at 127.0.0.1 port %d: cannot connect: Connection refused" % port),
                                  ("http://localhost:%d/v1" % port, False, "m at localhost port %d: cannot connect" % port),
                                  ("500", True, "takes connections")):
            with self.subTest(url=url):
                self.start(url)
                done = self.d.cli_any("doctor", "--json", "--config", self.d.config, env={**os.environ, "BATON_TEST_KEY": CANARY})
                (found,) = [f for f in json.loads(done.stdout) if f["check"] == "model"]
                self.assertEqual((found["ok"], done.returncode), (there, 0 if there else 1), done.stdout + done.stderr)
                self.assertIn(words, found["detail"])
                self.assertEqual(self.mock.journal, [])
                self.assertNotIn(CANARY, done.stdout + done.stderr)
                self.d.stop()

    def test_three_tries_of_a_goal_count_three_times_and_an_open_breaker_asks_nobody(self):
        self.start("500")
        self.assertEqual([self.goal_fails()[1] for _ in range(3)], [9, 6, 0], "5 questions of 3 attempts each")
        said, _ = self.goal_fails()
        self.assertRegex(said, "left alone for [0-9]+ s more; the last failure: status 500: the server is unwell")

    def test_a_server_that_wants_a_long_pause_is_not_waited_for_by_a_goal(self):
        self.start("429:120")
        for asked in (1, 0):
            said, requests = self.goal_fails()
            self.assertEqual(requests, asked)
            self.assertIn("status 429", said)

    def test_what_cannot_be_mended_by_repeating_is_asked_once(self):
        for status in (400, 401, 403, 404):
            with self.subTest(status=status):
                self.start("%d,%d,%d" % (status, status, status), structured="text")
                said, requests = self.goal_fails()
                self.assertIn("status %d" % status, said)
                self.assertEqual(requests, 1)
                self.d.stop()

    def test_a_wrong_key_behind_failures_is_said_at_once(self):
        self.start(",".join(["500"] * 9 + ["401"]))
        self.assertIn("status 500", self.goal_fails()[0])
        self.assertEqual(self.goal_fails()[1], 1)

    def test_an_answer_of_no_use_costs_two_questions(self):
        kinds = []

        def brain(asked):
            text = asked["messages"][0]["content"]
            kinds.append("converse" if "Decide what the newest message" in text else "plan" if "Make a plan" in text else "synthesis")
            return json.dumps(TWO) if kinds[-1] == "plan" else "{\"no\": \"use\"}"
        self.start("ok", brain)
        plan_id = self.d.ask("plan.submit", goal="what are the sums?", planner="llm", policy={"synthesis": "llm"})["planId"]
        self.d.wait_plan(plan_id)
        self.assertEqual([e["ok"] for e in self.d.events(plan_id) if e["type"] == "synthesis_finished"], [False])
        self.assertEqual(kinds, ["plan", "synthesis", "synthesis"])
        self.talk()
        until(lambda: "turn_end" in [e["type"] for e in self.d.events()], 20, "an answer")
        self.assertEqual(kinds.count("converse"), 2, kinds)

    def test_a_plan_of_no_use_costs_two_questions(self):
        self.start("ok", lambda asked: "I would rather not.")
        self.assertEqual(self.goal_fails()[1], 2)

    def test_an_action_may_lack_what_it_does_not_need(self):
        self.start("ok", lambda asked: "All is well." if "response_format" not in asked["body"] else
                   '{"reasoning":"r","action":"conversation_only"}')
        self.talk()
        until(lambda: "All is well." in [m.get("text") for m in self.d.ask("session.get", sessionId="s")["messages"]], 20, "the reply")
        self.assertEqual(len(self.mock.journal), 2, "one question for the action, one for the words")

    def test_an_action_may_have_members_that_nobody_asked_for(self):
        self.start("ok", lambda asked: "All is well." if "response_format" not in asked["body"] else
                   '{"reasoning":"r","confidence":0.9,"action":"conversation_only","reply":"not this","mood":{"a":[1]}}')
        self.talk()
        until(lambda: "All is well." in [m.get("text") for m in self.d.ask("session.get", sessionId="s")["messages"]], 20, "the reply")
        self.assertEqual(len(self.mock.journal), 2, "no question is asked twice")

    def test_goals_and_chat_go_to_the_model_that_is_configured(self):
        def brain(asked):
            text = asked["messages"][0]["content"]
            if "Decide what the newest message" in text:
                return '{"reasoning":"r","action":"new_plan","goal":"add up"}'
            return json.dumps(TWO)
        self.start("ok", brain)
        plan_id = self.d.ask("plan.submit", goal="what are the sums?")["planId"]
        self.assertEqual(self.d.wait_plan(plan_id)["status"], "completed")
        self.assertEqual([e["type"] for e in self.d.events(plan_id)][0], "planning_started")
        self.talk()
        until(lambda: any(e["type"] == "plan_completed" and e.get("sessionId") == "s" for e in self.d.events()), 20, "the plan of the chat")


main()
