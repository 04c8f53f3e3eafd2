"""Agents that call others: a turn is an attempt, its calls are steps of a child plan, each made once, also over kills."""
import json
import subprocess
import threading

from harness import BIN, main, until
from probe import step, wait_up
from test_children import Children
from test_phases import Skilled, failed, text


def call(id_="c1", agent="t", skill="do", **more):
    return {"id": id_, "agentId": agent, "skill": skill, **more}


def calls(*made, **more):
    return {"outcome": "calls", "calls": list(made), **more}


class Caller(Skilled):
    """Its skill `do` may call others; answers in turn, by how many turns are over."""

    def __init__(self, daemon, agent_id, script):
        self.script = script
        super().__init__(daemon, agent_id, [{"id": "do", "description": "Does it with others.", "tags": ["x-baton-calls"]}], execute=self.turn)
        wait_up(daemon, agent_id)

    def turn(self, r):
        n = len(r.get("turns", []))
        said = self.script[n] if n < len(self.script) else self.script[-1]
        return said(r) if callable(said) else said


class Calls(Children):
    values = {}

    def setUp(self):
        super().setUp()
        self.t = self.agent("t", execute=self.tool)
        self.c, self.did, self.heard, self.lock = None, [], [], threading.Lock()

    def tool(self, r):
        with self.lock:
            self.did.append(r["key"])
        return failed("no such thing", retryable=False) if r.get("parameters", {}).get("fail") else text("did " + json.dumps(r.get("parameters", {}), sort_keys=True))

    def hear(self, answer):
        def said(r):
            self.heard.append(r)
            return answer(r) if callable(answer) else answer
        return said

    def caller(self, *answers):
        if self.c is not None:
            self.c.close()
        self.c = Caller(self.d, "c", [self.hear(a) for a in answers])
        self.addCleanup(self.c.close)
        return self.c

    def turns(self, n=-1):
        return self.c.asked("execute")[n]["turns"]

    def go(self, *answers, steps=None, **plan):
        self.caller(*answers)
        return self.run_plan(steps or [step("a", "c")], **{"grants": ["t"], **plan})


class Turns(Calls):
    def test_calls_are_steps_of_a_child_plan_and_their_results_come_back(self):
        view = self.go(calls(call("one", parameters={"n": 1}), call("two", parameters={"fail": True}), result={"text": "I look"}),
                       lambda r: text("said " + r["turns"][0]["results"][0]["text"]))
        self.assertEqual((view["status"], view["outcome"]), ("completed", "success"), view)
        self.assertEqual(self.result()["aggregatedResult"], 'said did {"n": 1}')
        asked = self.c.asked("execute")
        self.assertEqual([(r["attempt"], r["key"].split("/")[1:], r["turnsLeft"]) for r in asked], [(1, ["1", "a"], 30), (2, ["1", "a", "turn2"], 29)])
        self.assertNotIn("turns", asked[0])
        self.assertEqual([(t["agentId"], t["skill"]) for t in asked[0]["tools"]], [("t", "do")])
        turn = self.turns()[0]
        self.assertEqual(turn["result"], {"text": "I look"})
        self.assertEqual([(r["id"], r["status"]) for r in turn["results"]], [("one", "completed"), ("two", "failed")])
        self.assertEqual(turn["results"][1]["error"], "no such thing")
        child = self.d.ask("plan.get", planId=self.child_of("a"))
        self.assertEqual((child["parentPlanId"], sorted(s["stepId"] for s in child["steps"])), (self.plan, ["one", "two"]))
        types = [e["type"] for e in self.d.events(self.plan) if e["type"].startswith(("plan_step", "calls_"))]
        self.assertEqual([t for t in types if t != "plan_step_progress"], ["plan_step_started", "calls_started", "calls_finished", "plan_step_completed"])
        self.assertIn("a turn 1: 2 calls of c", self.d.cli("events", self.plan))
        self.assertIn("steps of a: baton status %s/a" % self.plan, self.d.cli("status", self.plan))

    def test_a_call_that_cannot_be_made_is_its_own_result(self):
        view = self.go(calls(call("a1", "nobody"), call("a2", "t", "gone"), call("a3", "c"), call("a4", parameters={"n": 4})), text("ok"),
                       steps=[step("a", "c")])
        self.assertEqual(view["outcome"], "success", view)
        results = self.turns()[0]["results"]
        self.assertEqual([r["status"] for r in results], ["failed"] * 3 + ["completed"])
        self.assertEqual(results[0]["error"], "there is no tool nobody/do here; there are: t/do")
        self.assertEqual({r["errorClass"] for r in results[:3]}, {"VALIDATION_ERROR"})
        self.assertEqual(len(self.did), 1)
        view = self.go(calls(call("a1", "nobody")), text("ok"))
        self.assertEqual((view["outcome"], len(self.did)), ("success", 1))

    def test_calls_of_a_turn_run_at_the_same_time_and_one_that_fails_fails_no_other(self):
        together = threading.Barrier(3)
        for i in range(3):
            self.agent("t%d" % i, execute=lambda r: (together.wait(20), failed("broken", retryable=False) if r["stepId"] == "c1" else text("ok"))[1])
        view = self.go(calls(*[call("c%d" % i, "t%d" % i) for i in range(3)]), text("ok"), grants=["t0", "t1", "t2"])
        self.assertEqual(view["outcome"], "success", view)
        self.assertEqual([(r["id"], r["status"]) for r in self.turns()[0]["results"]], [("c0", "completed"), ("c1", "failed"), ("c2", "completed")])
        shown = self.d.cli("timeline", self.plan)
        self.assertIn("a", shown)
        self.assertIn("turn", self.d.cli("status", self.plan))

    def test_parameters_are_the_models_and_no_templates(self):
        view = self.go(calls(call(parameters={"x": "{{results.a}} {{results.nobody.y}} {{item}}"}, task="{{results.z}}")), text("ok"))
        self.assertEqual((view["outcome"], self.turns()[0]["results"][0]["status"]), ("success", "completed"), self.turns())
        asked = self.t.asked("execute")[0]
        self.assertEqual((asked["parameters"], asked["task"]), ({"x": "{{results.a}} {{results.nobody.y}} {{item}}"}, "{{results.z}}"))

    def test_the_same_call_in_a_third_turn_is_not_made(self):
        view = self.go(*[calls(call(parameters={"n": 1}))] * 3, text("ok"))
        self.assertEqual((view["outcome"], len(self.did)), ("success", 2))
        self.assertIn("the same call was made in the two turns before", self.turns()[2]["results"][0]["error"])

    def test_after_thirty_turns_the_step_fails(self):
        n = iter(range(100))
        view = self.go(lambda r: calls(call(parameters={"n": next(n)})))
        self.assertEqual((view["status"], self.ends()["a"]["errorClass"]), ("failed", "LOOP_LIMIT"))
        self.assertEqual((len(self.did), len(self.c.asked("execute")), self.c.asked("execute")[-1]["turnsLeft"]), (30, 31, 0))
        for verb in ("status", "timeline"):
            shown = self.d.cli(verb, self.plan)
            self.assertIn("30 turns", shown)
            self.assertNotIn("attempt", shown)

    def test_answers_that_are_no_calls_fail_the_step(self):
        for said, why in ((calls(), "outcome calls without `calls`"), (calls(*[call(f"c{i}") for i in range(17)]), "17 calls in one turn, at most 16"),
                          (calls(call("x"), call("x")), "calls[1].id: another call of the turn has it"), (calls(call("a/b")), "calls[0].id: expected 1 to 64"),
                          (calls({"id": "x"}), "calls[0]: expected either agentId and skill, or plan")):
            view = self.go(said)
            self.assertEqual(view["status"], "failed")
            self.assertIn(why, self.ends()["a"]["error"])
        self.assertEqual(self.did, [])
        self.assertEqual(self.go(calls(*[call(f"c{i}") for i in range(16)]), text("ok"))["outcome"], "success")
        self.agent("e", execute=lambda r: calls(call()))
        self.run_plan([step("a", "e", maxRetries=0)], grants=["t"])
        self.assertIn("whose card has no tag x-baton-calls", self.ends()["a"]["error"])

    def test_only_the_tools_of_the_step_and_an_approval_for_each_call_that_wants_one(self):
        self.caller(calls(call("no", "a"), call("yes", parameters={"n": 1})), text("ok"))
        plan = self.d.submit({"steps": [step("a", "c", tools=[{"tool": "t/do", "approval": True}])], "grants": ["a"]})
        self.plan = plan
        wait = until(lambda: self.d.ask("review.list")["reviews"], 10, "a review")[0]
        self.assertEqual((self.did, wait["stepId"]), ([], "yes"))
        self.assertEqual(self.c.asked("execute")[0]["tools"][0]["approval"], True)
        self.d.ask("review.decide", reviewId=wait["reviewId"], decision="approve")
        view = self.d.wait_plan(plan)
        self.assertEqual((view["outcome"], len(self.did)), ("success", 1), view)
        self.assertIn("there is no tool a/do", self.turns()[0]["results"][0]["error"])
        for tools, why in (("t", "expected a list"), ([1], "expected \"agent\""), ([{"tool": "t", "aproval": True}], "expected \"agent\""),
                           (["nobody"], "nobody"), (["t/gone"], 'has no skill "gone"')):
            said = self.refused(step("a", "c", tools=tools))
            self.assertTrue(any(why in s for s in said), (tools, said))

    def test_who_waits_for_the_plan_is_told_which_call_wants_an_approval(self):
        """The step of the plan does not wait: it is under way, and the review is one of the plan inside."""
        made = self.d.work / "asks.json"
        made.write_text(json.dumps({"steps": [step("a", "c", tools=[{"tool": "t/do", "approval": True}])], "grants": ["a"]}))
        for more in ((), ("--quiet",), ("--timeout", "60s")):
            self.caller(calls(call("yes", parameters={"n": 1})), text("ok"))
            if "--timeout" in more:  # it goes on, so it says it once
                run = subprocess.Popen([BIN / "baton", "run", "--plan", made, "--state", self.d.state, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.addCleanup(run.kill)
                wait = until(lambda: self.d.ask("review.list")["reviews"], 10, "a review")[0]
                said = ""
                while "baton approve" not in said:
                    said += run.stderr.readline() or self.fail("it ended: " + said)
                self.assertIn(wait["reviewId"], said)
                self.assertIsNone(run.poll())
            else:
                done = self.d.cli_any("run", "--plan", made, *more)
                wait = self.d.ask("review.list")["reviews"][0]
                self.assertEqual(done.returncode, 4, done)
                self.assertIn("baton approve %s (or reject)" % wait["reviewId"], done.stderr)
            self.d.cli("approve", wait["reviewId"])
            self.assertEqual(self.d.wait_plan(wait["planId"].split("/")[0])["outcome"], "success")
            if "--timeout" in more:
                out, rest = run.communicate(timeout=60)
                self.assertEqual((run.returncode, out, (said + rest).count("(or reject)")), (0, "ok\n", 1), said + rest)

    def test_a_plan_is_a_call_and_the_approvals_hold_in_it(self):
        made = {"goal": "both", "steps": [{"stepId": "p", "agentId": "t", "skill": "do", "task": "first", "parameters": {"n": 1}},
                                          {"stepId": "q", "agentId": "t", "skill": "do", "task": "then", "parameters": {"was": "{{results.p}}"}, "dependsOn": ["p"]}]}
        view = self.go(calls({"id": "plan", "plan": made}, {"id": "bad", "plan": {"steps": [{**made["steps"][0], "when": {}}]}},
                             {"id": "none", "plan": {"steps": [{"stepId": "x", "agentId": "zz", "skill": "do"}]}}), text("ok"))
        self.assertEqual(view["outcome"], "success", view)
        results = {r["id"]: r for r in self.turns()[0]["results"]}
        self.assertEqual(results["plan"]["status"], "completed", results)
        self.assertIn("plan.steps[0].when: not here", results["bad"]["error"])
        self.assertIn("there is no tool zz/do", results["none"]["error"])
        self.assertEqual(self.t.asked("execute")[1]["parameters"], {"was": 'did {"n": 1}'})
        self.caller(calls({"id": "plan", "plan": made}), text("ok"))
        plan = self.d.submit({"steps": [step("a", "c", tools=[{"tool": "t", "approval": True}])]})
        for _ in range(2):
            wait = until(lambda: self.d.ask("review.list")["reviews"], 10, "a review")[0]
            self.d.ask("review.decide", reviewId=wait["reviewId"], decision="approve")
            until(lambda: wait["reviewId"] not in [w["reviewId"] for w in self.d.ask("review.list")["reviews"]], 10, "it is decided")
        self.assertEqual(self.d.wait_plan(plan)["outcome"], "success")

    def test_a_long_result_is_cut_and_marked(self):
        self.did = []
        self.t.close()
        self.t = self.agent("t", execute=lambda r: text("x" * 300000))
        view = self.go(calls(call()), text("ok"))
        got = self.turns()[0]["results"][0]
        self.assertEqual((view["outcome"], got["truncated"]), ("success", True))
        self.assertTrue(60000 < len(got["text"]) <= 65536, len(got["text"]))


class Lives(Calls):
    def test_what_has_the_step_next_gets_the_turns(self):
        self.caller(calls(call(parameters={"n": 1})), {"outcome": "handoff", "handoff": {"toAgentId": "d", "reason": "write it"}})
        other = Caller(self.d, "d", [text("no turns"), lambda r: text("wrote " + r["turns"][0]["results"][0]["text"] + " as told: " + r["feedback"])])
        self.addCleanup(other.close)
        view = self.run_plan([step("a", "c")], grants=["t", "d"])
        self.assertEqual(self.result()["aggregatedResult"], 'wrote did {"n": 1} as told: write it', view)

    def test_cancel_and_pause_reach_the_calls(self):
        gate = threading.Event()
        self.t.close()
        self.t = self.agent("t", execute=lambda r: (gate.wait(20), text("late"))[1])
        self.caller(calls(call()), text("ok"))
        plan = self.d.submit({"steps": [step("a", "c")], "grants": ["t"]})
        until(lambda: self.t.asked("execute"), 10, "the call")
        self.d.ask("plan.pause", planId=plan)
        self.d.ask("plan.resume", planId=plan)
        self.d.ask("plan.cancel", planId=plan)
        gate.set()
        self.assertEqual(self.d.wait_plan(plan)["status"], "cancelled")
        self.assertEqual(len(self.c.asked("execute")), 1)

    def test_kill_9_of_the_daemon_in_every_turn_repeats_no_call(self):
        script = [calls(call(f"c{i}", parameters={"n": i}), call(f"d{i}", parameters={"m": i})) for i in range(4)] + [text("ok")]
        self.caller(*script)
        plan = self.d.submit({"steps": [step("a", "c", maxRetries=5)], "grants": ["t"]})
        for n in (1, 4, 7):
            until(lambda: len(self.did) >= n or self.d.ask("plan.get", planId=plan)["status"] != "running", 15, "call %d" % n)
            self.d.kill9()
            self.d.start(agents=False)
            self.t.close()
            self.t = self.agent("t", execute=self.tool)
            self.caller(*script)
        view = self.d.wait_plan(plan)
        self.assertEqual(view["outcome"], "success", view)
        turns = max((r.get("turns", []) for r in self.heard), key=len)
        self.assertEqual([[r["status"] for r in t["results"]] for t in turns], [["completed"] * 2] * 4)
        # A call whose answer the daemon had is never made again; one that was out comes back with the same key.
        self.assertEqual(len(set(self.did)), 8, self.did)


if __name__ == "__main__":
    main()
