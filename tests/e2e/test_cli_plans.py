"""The command line about plans that run: what people decide and change, what is shown of it, and what it costs.

Stage: a supervisor that answers what a test says; it shows what is asked and how answers look. Real: a real daemon.
"""
import json
import os
import pty
import select
import signal
import subprocess
import time
import unittest

from harness import BIN, BatonTest, main, until
from probe import Probe, step, wait_up
from stage import Refusal, Stage

PLAN = "00000000-0000-7000-8000-0000000000AA"
OTHER = "00000000-0000-7000-8000-0000000000BB"
NONE = ""


def review(step_id, **more):
    return {"reviewId": "%s/%s/r1" % (PLAN, step_id), "planId": PLAN, "stepId": step_id, "kind": "before_step", "prompt": "Go?", **more}


def view(*steps, **more):
    return {"planId": PLAN, "status": "running", "revision": 1, "lastSeq": 0,
            "steps": [{"stepIndex": i, "status": "pending", "agentId": "calc", "task": "do " + s["stepId"], **s}
                      for i, s in enumerate(steps)], **more}


class OnStage(unittest.TestCase):
    def stage(self, answers=None, **more):
        return Stage(self, {**(answers or {}), **more})


class Decisions(OnStage):
    def reviews(self, *reviews):
        return self.stage({"plan.get": view(), "review.list": {"reviews": list(reviews)}, "review.decide": {}})

    def test_plan_id_stands_for_its_only_review(self):
        s = self.reviews(review("deploy"))
        said = s.cli("approve", PLAN, "--comment", "fine")[1]
        self.assertIn("approved %s/deploy/r1" % PLAN, said)
        self.assertEqual(s.of("review.list"), [{"planId": PLAN}])
        self.assertEqual(s.of("review.decide"), [{"reviewId": PLAN + "/deploy/r1", "decision": "approve", "comment": "fine"}])

    def test_review_id_is_decided_without_a_look(self):
        s = self.reviews()
        s.cli("reject", PLAN + "/deploy/r1")
        self.assertEqual(s.of("review.decide"), [{"reviewId": PLAN + "/deploy/r1", "decision": "reject"}])
        self.assertEqual(s.of("review.list"), [])

    def test_several_reviews_are_listed_and_none_is_decided(self):
        s = self.reviews(review("deploy"), review("mail", prompt="Send\n\x1b[2Jit?"))
        said = s.cli("approve", PLAN, code=2)[1]
        for word in ("2 decisions", PLAN + "/deploy/r1", PLAN + "/mail/r1", "Send ?[2Jit?"):
            self.assertIn(word, said)
        self.assertEqual(s.of("review.decide"), [])
        s.cli("approve", PLAN, "mail")
        self.assertEqual(s.of("review.decide")[0]["reviewId"], PLAN + "/mail/r1")

    def test_plan_that_waits_for_nobody_is_told_so(self):
        self.assertIn("waits for no decision", self.reviews().cli("approve", PLAN, code=7)[1])
        self.assertIn("step b of plan", self.reviews(review("a")).cli("approve", PLAN, "b", code=7)[1])

    def test_signoff_is_decided_by_the_plans_id(self):
        s = self.reviews({"reviewId": PLAN + "/r1", "planId": PLAN, "kind": "plan", "prompt": "Start?"})
        s.cli("approve", PLAN)
        self.assertEqual(s.of("review.decide"), [{"reviewId": PLAN + "/r1", "decision": "approve"}])
        self.assertIn("the whole plan", s.cli("reviews", PLAN)[0])

    def test_edit_is_a_file_or_json(self):
        s = self.reviews(review("deploy"))
        s.cli("approve", PLAN, "--edit", '{"to": "staging"}')
        s.cli("approve", PLAN, "--edit", s.file("edit.yaml", "to: prod\nn: 2\n"))
        s.cli("approve", PLAN, "--edit", "-", stdin="[1, 2]")
        self.assertEqual([r["edit"] for r in s.of("review.decide")], [{"to": "staging"}, {"to": "prod", "n": 2}, [1, 2]])
        self.assertIn("neither a file nor JSON", s.cli("approve", PLAN, "--edit", "{oops", code=2)[1])
        self.assertIn("bad option '--edit'", s.cli("reject", PLAN, "--edit", "{}", code=2)[1])

    def test_what_must_be_seen_to_decide_is_shown(self):
        s = self.reviews(review("deploy", task="Deploy it", agentId="exec", parameters={"to": "prod"}, until="2026-11-21T08:00:00.000Z",
                                upstreamResults=[{"stepId": "build", "result": "ok\nall green"}]))
        out = s.cli("reviews")[0]
        for word in ("step deploy", "Go?", "Deploy it", "exec", '{"to":"prod"}', "from build: ok\\nall green", "08:00:00"):
            self.assertIn(word, out)


class Changes(OnStage):
    def plan(self, **more):
        return self.stage({"plan.get": view({"stepId": "a"}, {"stepId": "b"}, {"stepId": "7"}),
                           "plan.modify": {"planId": PLAN, "revision": 2, "changed": 1}, **more})

    def test_pause_and_resume(self):
        s = self.plan(**{"plan.pause": {"planId": PLAN, "status": "running"}, "plan.resume": {"planId": PLAN, "status": "running"}})
        self.assertIn("paused", s.cli("pause", PLAN, "--reason", "lunch")[0])
        s.cli("resume", PLAN)
        self.assertEqual((s.of("plan.pause"), s.of("plan.resume")), ([{"planId": PLAN, "reason": "lunch"}], [{"planId": PLAN}]))
        s.answers["plan.pause"] = Refusal("CONFLICT", "the plan is paused already")
        self.assertIn("paused already", s.cli("pause", PLAN, code=2)[1])

    def test_steps_are_skipped_by_id_or_number(self):
        s = self.plan()
        self.assertIn("revision 2, 1 step changed", s.cli("skip", PLAN, "b", "1", "7", "--reason", "known")[0])
        s.cli("skip", PLAN, "--to", "b", "--expect-revision", "1")
        self.assertEqual(s.of("plan.modify"), [
            {"planId": PLAN, "kind": "skip_steps", "stepsToSkip": [2, 1, 3], "reasoning": "known"},
            {"planId": PLAN, "kind": "skip_to_step", "targetStepNumber": 2, "expectRevision": 1}])

    def test_skip_of_what_is_not_there_asks_for_nothing(self):
        s = self.plan()
        self.assertIn("no step 'bb'", s.cli("skip", PLAN, "a", "bb", code=7)[1])
        self.assertIn("no step '9'", s.cli("skip", PLAN, "--to", "9", code=7)[1])
        s.cli("skip", PLAN, code=2)
        s.cli("skip", PLAN, "a", "--to", "b", code=2)
        s.cli("skip", PLAN, "a", "--expect-revision", "x", code=2)
        self.assertEqual(s.of("plan.modify"), [])

    def test_every_kind_of_modification(self):
        s = self.plan()
        new = {"stepId": "n", "agentId": "calc", "task": "count"}
        one = s.file("one.json", new)
        many = s.file("many.yaml", "- {stepId: n, agentId: calc, task: count}\n")
        plan = s.file("plan.json", {"steps": [new]})
        why = ("--reasoning", "better")
        s.cli("modify", PLAN, "--insert", one, "--after", "a", *why)
        s.cli("modify", PLAN, "--insert", many, "--before", "b", *why, "--expect-revision", "3")
        s.cli("modify", PLAN, "--replace", "b", plan, *why)
        s.cli("modify", PLAN, "--cancel-step", "b", *why)
        s.cli("modify", PLAN, "--note", "we talked")
        head = {"planId": PLAN, "reasoning": "better"}
        self.assertEqual(s.of("plan.modify"), [
            {**head, "kind": "insert", "afterStepId": "a", "steps": [new]},
            {**head, "kind": "insert", "beforeStepId": "b", "steps": [new], "expectRevision": 3},
            {**head, "kind": "replace", "stepId": "b", "steps": [new]},
            {**head, "kind": "cancel_step", "stepId": "b"},
            {"planId": PLAN, "kind": "conversation_only", "reasoning": "we talked"}])

    def test_modification_that_says_too_little_or_too_much_is_refused_here(self):
        s = self.plan()
        f = s.file("one.json", {"stepId": "n"})
        why = ("--reasoning", "x")
        for args, hint in (((), "one of --insert"), (("--note", "x", "--cancel-step", "a"), "one of --insert"),
                           (("--insert", f, *why), "--after STEP or --before"), (("--insert", f, "--after", "a", "--before", "b", *why), "either"),
                           (("--replace", "a", *why), "needs the FILE"), (("--cancel-step", "a", f, *why), "goes with --replace"),
                           (("--cancel-step", "a"), "--reasoning"), (("--note", "x", *why), "give one of them"),
                           (("--cancel-step", "a", "--after", "b", *why), "go with --insert"),
                           (("--replace", "a", s.file("n.json", "7"), *why), "expected a step")):
            self.assertIn(hint, s.cli("modify", PLAN, *args, code=2)[1], args)
        self.assertEqual(s.of("plan.modify"), [])

    def test_refused_modification_lists_every_problem(self):
        refusal = Refusal("INVALID", "the plan is not valid", details={"problems": [
            {"severity": "error", "category": "agent", "stepId": "n", "field": "agentId", "message": "no agent \x1b[1mx"}]})
        s = self.plan(**{"plan.modify": refusal})
        said = s.cli("modify", PLAN, "--cancel-step", "b", "--reasoning", "x", code=2)[1]
        self.assertIn("step n: agentId: no agent ?[1mx", said)


class Again(OnStage):
    def test_retry_and_fork_print_the_new_plan(self):
        answer = {"planId": OTHER, "parentPlanId": PLAN, "reused": 3}
        s = self.stage({"plan.retry": answer, "plan.fork": answer})
        out, said = s.cli("retry", PLAN)
        self.assertEqual(out, OTHER + "\n")
        self.assertIn("3 results taken over", said)
        s.cli("retry", PLAN, "--from", "b", "--key", "k", "--session", "s")
        s.cli("fork", PLAN, "--from", "b", "--policy", '{"maxRetries": 0}', "--key", "k")
        self.assertEqual(json.loads(s.cli("fork", PLAN, "--from", "b", "--json")[0])["planId"], OTHER)
        self.assertEqual(s.of("plan.retry")[1], {"planId": PLAN, "fromStep": "b", "clientKey": "k", "sessionId": "s"})
        self.assertEqual(s.of("plan.fork")[0], {"planId": PLAN, "fromStep": "b", "policy": {"maxRetries": 0}, "clientKey": "k"})
        self.assertNotEqual(s.of("plan.retry")[0]["clientKey"], s.of("plan.fork")[1]["clientKey"])
        self.assertIn("--from STEP", s.cli("fork", PLAN, code=2)[1])

    def test_waiting_for_the_new_plan_ends_with_its_code(self):
        s = self.stage({"plan.retry": {"planId": OTHER, "parentPlanId": PLAN}, "plan.get": view({"stepId": "a"}, planId=OTHER),
                        "plan.result": {"planId": OTHER, "status": "failed", "failureReason": "Step 1 failed: no", "aggregatedResult": "half"}})
        s.events = [{"type": "plan_started", "stepCount": 1}, {"type": "plan_completed", "status": "failed", "outcome": "partial"}]
        out, said = s.cli("retry", PLAN, "--wait", code=3)
        self.assertEqual(out, "half\n")
        self.assertIn("Step 1 failed: no", said)


class Shown(OnStage):
    def test_status_says_where_a_plan_stands_and_what_it_waits_for(self):
        s = self.stage({"plan.get": view(
            {"stepId": "a", "status": "completed", "durationMs": 1500},
            {"stepId": "b", "waiting": {"kind": "agent", "text": "waiting for agent calc: 0 instances"}},
            {"stepId": "c", "status": "waiting", "waiting": {"kind": "person", "text": "waiting for approval", "reviewId": PLAN + "/c/r1"}},
            {"stepId": "d", "status": "skipped", "superseded": True},
            {"stepId": "e", "status": "cancelled", "stop": "fenced", "reason": "cancelled"},
            position="Step 2 of 5", revision=3, paused=["requested"], criticalPath=["a", "b"], parentPlanId=OTHER,
            usage={"inputTokens": 100, "outputTokens": 20, "costMicros": 1500}, budget={"tokens": 1000})})
        out = s.cli("status", PLAN)[0]
        for word in ("running, Step 2 of 5, revision 3, paused (requested)", "waiting for agent calc: 0 instances", "a → b",
                     "baton approve %s/c/r1" % PLAN, "baton resume " + PLAN, "spent: 120 of 1000 tokens, cost 0.0015", "from plan " + OTHER,
                     "a later revision does without it", "may still run", "1.5 s"):
            self.assertIn(word, out)

    def test_status_of_a_long_plan_reads_all_its_pages(self):
        def page(request):
            at = request.get("fromStep", 0)
            steps = [{"stepId": "s%d" % i, "stepIndex": i, "status": "pending"} for i in range(at, min(at + 2, 5))]
            return {"planId": PLAN, "status": "running", "steps": steps, "stepsTruncated": at + 2 < 5}
        s = self.stage({"plan.get": page})
        self.assertEqual([v["stepId"] for v in json.loads(s.cli("status", PLAN, "--json")[0])["steps"]], ["s%d" % i for i in range(5)])

    def test_lint_is_a_table_and_errors_are_exit_2(self):
        answer = {"valid": True, "worstCaseMs": 366000, "worstCaseTokens": 9000, "worstCaseCostMicros": 12, "criticalPath": ["a", "b"],
                  "levels": [{"steps": ["a", "c"]}, {"steps": ["b"]}],
                  "plan": {"policy": {"maxRetries": 2, "stepTimeoutMs": 60000},
                           "steps": [{"stepId": "a", "agentId": "calc", "task": "add\x1b[2J"}, {"stepId": "c", "agentId": "files", "maxRetries": 0},
                                     {"stepId": "b", "agentId": "calc", "dependsOn": ["a"], "requiresApproval": True, "timeoutMs": 500}]},
                  "problems": [{"severity": "warning", "category": "gate", "stepId": "b", "message": "no gate"}]}
        s = self.stage({"plan.lint": answer})
        out, said = s.cli("lint", "add two numbers")
        for pattern in (r"1 +a +\* +calc +3 +60.0 s +add\?\[2J\n", r"1 +c +files +1 +60.0 s\n", r"2 +b +\* +calc +3 +500 ms +approval +a\n",
                        r"levels +2\n", r"worst case +6 min, 9000 tokens, cost 0.000012\n", r"critical +a → b\n", r"0 errors, 1 warning\n"):
            self.assertRegex(out, pattern)
        self.assertIn("no gate", said)
        self.assertEqual(s.of("plan.lint"), [{"goal": "add two numbers"}])
        s.cli("lint", s.file("p.json", {"steps": [{"stepId": "a"}]}))
        self.assertEqual(s.of("plan.lint")[1], {"plan": {"steps": [{"stepId": "a"}]}})
        s.answers["plan.lint"] = {"valid": False, "problems": [{"severity": "error", "category": "cycle", "message": "a cycle"}]}
        out, said = s.cli("lint", "x", code=2)
        self.assertIn("1 error, 0 warnings", out)
        self.assertIn("a cycle", said)
        self.assertFalse(json.loads(s.cli("lint", "x", "--json", code=2)[0])["valid"])
        s.cli("lint", "missing.yaml", code=2)

    def test_history_is_one_story_in_the_order_of_time(self):
        at = "2026-11-21T07:00:0%d.000Z"
        s = self.stage({"plan.history": {
            "planId": PLAN, "status": "completed", "outcome": "success", "task": "Ship\nit", "totalDurationMs": 9000, "totalTokens": 7,
            "executionAttempts": 4, "parentPlanId": OTHER, "traceId": "T",
            "revisions": [{"revision": 1, "kind": "submitted", "timestamp": at % 0, "steps": 2},
                          {"revision": 2, "kind": "replan", "timestamp": at % 5, "steps": 3}],
            "handoffs": [{"handoffId": "h", "fromAgentId": "supervisor", "toAgentId": "calc", "reason": "plan_step", "explanation": "go",
                          "planStepId": "a", "timestamp": at % 2}],
            "replans": [{"attempt": 1, "stepId": "a", "timestamp": at % 4, "ok": True, "diagnosis": "too\x1bhard"}],
            "phases": [{"phase": "execution", "startTime": at % 1, "endTime": at % 9, "durationMs": 8000, "tokens": 7, "success": True}],
            "reviews": [{"reviewId": "r", "stepId": "a", "kind": "approval", "prompt": "Sure?", "askedAt": at % 3, "decidedAt": at % 6,
                         "decision": "approve", "comment": "yes"}]}})
        out = s.cli("history", PLAN)[0]
        words = ["Ship it", "from plan " + OTHER, "1 by submitted", "execution: 8.0 s, succeeded, 7 tokens", "supervisor → calc for a",
                 "asked: Sure?", "1 of step a, a new plan: too?hard", "2 by replan, 3 steps", "a: approve: yes"]
        places = [out.find(w) for w in words]
        self.assertNotIn(-1, places, list(zip(words, places)))
        self.assertEqual(places, sorted(places))
        self.assertEqual(json.loads(s.cli("history", PLAN, "--json")[0])["totalTokens"], 7)

    def test_stats_compare_what_was_spent_with_what_was_estimated(self):
        s = self.stage({"plan.stats": {
            "planId": PLAN, "status": "completed", "durationMs": 2000, "dependencies": 1, "depth": 2, "bottleneckStepId": "b",
            "parallelism": 1.25, "estimatedTokens": 50, "usage": {"inputTokens": 30, "outputTokens": 12, "costMicros": 1000000},
            "steps": [{"stepId": "a", "stepIndex": 0, "agentId": "calc", "status": "completed", "attempts": 2, "queueMs": 5, "runMs": 1200,
                       "tokens": 42, "estimatedTokens": 50}, {"stepId": "b", "stepIndex": 1, "status": "failed", "errorClass": "TIMEOUT"}],
            "agents": [{"agentId": "calc", "steps": 2, "errors": 1, "errorRate": 0.5, "averageMs": 600, "maxMs": 1200, "tokens": 42}]}})
        out = s.cli("stats", PLAN)[0]
        for pattern in (r"depth 2, parallelism 1.25, bottleneck b\n", r"42 tokens \(50 estimated\), cost 1.00\n",
                        r"a +completed +calc +2 +5 ms +1.2 s +42 of 50\n", r"b +failed +0 +TIMEOUT\n", r"calc +2 +1 +50 % +600 ms +1.2 s +42\n"):
            self.assertRegex(out, pattern)

    def test_every_new_verb_gives_the_raw_answer_as_json(self):
        raw = {"planId": PLAN, "status": "completed", "odd": "\x1b", "revision": 1}
        s = self.stage({t: raw for t in ("plan.pause", "plan.resume", "plan.modify", "plan.history", "plan.stats", "plan.retry",
                                         "plan.fork", "plan.lint", "supervisor.stats")}, **{"plan.get": view({"stepId": "a"})})
        s.answers["plan.lint"] = {**raw, "valid": True}
        for args in (("pause", PLAN), ("resume", PLAN), ("skip", PLAN, "a"), ("modify", PLAN, "--note", "x"), ("history", PLAN),
                     ("stats", PLAN), ("retry", PLAN), ("fork", PLAN, "--from", "a"), ("lint", "x")):
            self.assertEqual(json.loads(s.cli(*args, "--json")[0])["odd"], "\x1b", args)


class Followed(OnStage):
    """`run` when the first answer holds all events of the plan."""

    def run_story(self, *events, steps=({"stepId": "a"}, {"stepId": "b"}), args=(), code=0, **answers):
        s = self.stage({"plan.submit": {"planId": PLAN}, "plan.get": view(*steps),
                        "plan.result": lambda r: {"planId": PLAN, "status": "completed", **(
                            {"result": {"text": "only " + r["stepId"]}} if "stepId" in r else {"aggregatedResult": "all"})}, **answers})
        s.events = list(events)
        return (*s.cli("run", "a goal", *args, code=code), s)

    END = {"type": "plan_completed", "status": "completed", "outcome": "success"}

    def about(self, type_, index=0, **more):
        return {"type": type_, "stepId": "ab"[index], "stepIndex": index, **more}

    def test_what_happens_to_a_plan_is_said(self):
        out, said, _ = self.run_story(
            {"type": "plan_paused", "reason": "requested", "comment": "lunch"}, {"type": "plan_resumed", "reason": "requested"},
            self.about("plan_step_started", agentId="calc", attempt=1),
            self.about("fallback_used", attempt=1, action="alternative_agent", agentId="maths", **{"class": "AGENT_CRASHED"}),
            {"type": "agent_handoff", "stepIndex": 0, "planStepId": "a", "reason": "agent_request", "fromAgent": {"agentId": "maths"},
             "toAgent": {"agentId": "logic"}, "explanation": "not\x1b[2J mine"},
            self.about("plan_step_completed", status="completed"), self.END)
        for word in ("paused: requested: lunch; go on with: baton resume " + PLAN, "resumed: requested", "fallback: a alternative_agent → maths",
                     "handoff: maths → logic for a (agent_request): not?[2J mine"):
            self.assertIn(word, said)
        self.assertRegex(said, r"▸ a +logic")
        self.assertEqual(out, "all\n")

    def test_new_steps_of_a_revision_are_shown(self):
        views = [view({"stepId": "a"}), view({"stepId": "a"}, {"stepId": "n"})]
        out, said, s = self.run_story(
            self.about("replan_started", attempt=1, diagnosis="no way"),
            self.about("replan_finished", ok=True, newSteps=1, revision=2, steps=[{"stepId": "n", "stepIndex": 1}]),
            {"type": "plan_step_started", "stepId": "n", "stepIndex": 1, "attempt": 1, "agentId": "calc"},
            {"type": "plan_step_completed", "stepId": "n", "stepIndex": 1, "status": "completed", "durationMs": 5}, self.END,
            **{"plan.get": lambda r: views.pop(0) if len(views) > 1 else views[0]})
        self.assertIn("replanning: a: no way", said)
        self.assertIn("replanned: a, revision 2, new: n", said)
        self.assertRegex(said, r"✓ n +calc")

    def test_plan_that_needs_a_person_ends_with_4_and_says_how_to_go_on(self):
        _, said, _ = self.run_story(self.about("plan_step_started", attempt=1),
                                    self.about("plan_step_waiting", attempt=1, reviewId=PLAN + "/a/r1", kind="approval"), code=4)
        self.assertIn("needs your approval: baton approve %s/a/r1" % PLAN, said)
        _, said, _ = self.run_story(self.about("plan_step_started", attempt=1),
                                    self.about("plan_step_waiting", attempt=1, reviewId=PLAN + "/a/r1", kind="unknown_outcome"), code=4)
        self.assertIn("needs your decision: baton review show %s/a/r1" % PLAN, said)
        _, said, _ = self.run_story({"type": "plan_paused", "reason": "signoff", "reviewId": PLAN + "/r1"}, code=4)
        self.assertIn("baton approve " + PLAN, said)

    def test_decision_of_the_past_does_not_stop_it(self):
        past = view({"stepId": "a", "status": "completed"}, {"stepId": "b"}, lastSeq=3)
        out, _, _ = self.run_story(self.about("plan_step_waiting", attempt=1, reviewId=PLAN + "/a/r1", kind="approval"),
                                   self.about("review_decided", reviewId=PLAN + "/a/r1", decision="approve"),
                                   self.about("plan_step_completed", status="completed"), self.END, **{"plan.get": past})
        self.assertEqual(out, "all\n")

    def test_result_of_one_step_instead_of_the_plans(self):
        out, _, _ = self.run_story(self.END, args=("--result", "b"))
        self.assertEqual(out, "only b\n")
        self.assertIn("exclude", self.run_story(self.END, args=("--result", "b", "--detach"), code=2)[1])

    def test_events_are_one_readable_line_each(self):
        s = self.stage({"plan.get": view(lastSeq=3)})
        s.events = [{"type": "quality_gate_failed", "stepId": "a", "stepIndex": 0, "missing": ["x\ny"], "reason": "not\u202e enough"},
                    {"type": "plan_modified", "kind": "insert", "revision": 2, "steps": [{"stepId": "n", "stepIndex": 2}]},
                    {"type": "of_the_future", "colour": "red\x1b"}]
        lines = s.cli("events", PLAN)[0].splitlines()
        self.assertEqual([line.split(None, 2)[2] for line in lines], [
            "quality_gate_failed  a: not??? enough; missing: x y", "plan_modified        insert, revision 2, new: n",
            "of_the_future        colour=red?"])


class Top(OnStage):
    STATS = {"plansOpen": 2, "plansWaiting": 1, "plansDone": 9, "inFlight": 3, "inFlightMax": 64, "queued": 4, "reviewsOpen": 1,
             "rssBytes": 5 << 20, "agents": [{"agentId": "calc\x1b", "state": "up", "breaker": "open", "instances": 1, "capacity": 4, "inFlight": 3,
                                              "queued": 4, "steps": 20, "errors": 2, "averageMs": 1200, "maxMs": 3000}]}

    def top(self):
        plans = {"running": [{"planId": PLAN, "status": "running", "query": "ship\nit", "position": "Step 1 of 2",
                              "counts": {"total": 2, "completed": 1}}], "waiting": []}
        return self.stage({"supervisor.stats": self.STATS, "plan.list": lambda r: {"plans": plans[r["status"]]}})

    def test_once_is_for_scripts(self):
        s = self.top()
        out = s.cli("top", "--once")[0]
        self.assertNotIn("\x1b", out)
        for pattern in ("plans 2 open, 1 waiting, 9 done", "steps 3 of 64 in flight, 4 queued", "reviews 1",
                        r"calc\? +✓ up +open +1 +3/4 +4 +20 +2 +1.2 s +3.0 s", PLAN + r" +▸ running +1/2 +Step 1 of 2 +ship it"):
            self.assertRegex(out, pattern)
        frame = json.loads(s.cli("top", "--once", "--json")[0])
        self.assertEqual((frame["stats"]["queued"], frame["plans"][0]["planId"]), (4, PLAN))

    def test_schedules_and_what_a_plan_at_rest_waits_for_are_shown(self):
        plans = [{"planId": PLAN, "status": "running", "query": "ship it", "schedule": "nightly", "counts": {"total": 3, "completed": 1, "sleeping": 2}},
                 {"planId": OTHER, "status": "running", "query": "work", "counts": {"total": 3, "running": 1}}]
        schedules = [{"name": "later", "status": "active", "next": ["2027-01-01T00:00:00Z"]}, {"name": "off", "status": "paused", "next": []},
                     {"name": "nightly", "status": "active", "next": ["2026-12-01T03:00:00Z"]}]
        s = self.stage({"supervisor.stats": self.STATS, "plan.list": lambda r: {"plans": plans if r["status"] == "running" else []},
                        "schedule.list": lambda r: {"schedules": schedules}, "plan.get": lambda r: {"planId": r["planId"], "status": "running", "steps": [
                            {"stepId": "a", "stepIndex": 0, "status": "pending", "waiting": {"kind": "dependency", "text": "waiting for step b"}},
                            {"stepId": "b", "stepIndex": 1, "status": "in_progress", "waiting": {"kind": "signal", "text": "waiting for the signal paid"}}]}})
        out = s.cli("top", "--once")[0]
        self.assertRegex(out, "schedules 3, next nightly at 2026-12-01T03:00:00Z")
        self.assertIn("4 queued, 2 asleep", out)
        self.assertRegex(out, PLAN + r" +▸ running +1/3 +nightly +ship it +the signal paid\n")
        self.assertRegex(out, OTHER + r" +▸ running +0/3 +work\n")
        self.assertEqual([r["planId"] for r in s.asked if r["type"] == "plan.get"], [PLAN], "of a plan that works nobody asks why")
        schedules[:] = [schedules[1]]
        self.assertIn("schedules 1, none active", s.cli("top", "--once")[0])

    def test_pipe_gets_plain_tables_until_it_is_interrupted(self):
        s = self.top()
        p = subprocess.Popen([BIN / "baton", "top", "--interval", "50ms", "--json", "--state", s.state], stdout=subprocess.PIPE, text=True)
        self.assertEqual([json.loads(p.stdout.readline())["stats"]["plansOpen"] for _ in range(3)], [2, 2, 2])
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(10), 130)
        p.stdout.close()
        p = subprocess.Popen([BIN / "baton", "top", "--interval", "50ms", "--state", s.state], stdout=subprocess.PIPE, text=True)
        self.assertIn("plans 2 open", p.stdout.readline())
        p.stdout.close()
        self.assertEqual(p.wait(10), 0, "a reader that has had enough ends it")

    def test_terminal_gets_a_screen_that_q_ends_and_is_left_as_it_was(self):
        s = self.top()
        master, slave = pty.openpty()
        before = subprocess.run(["stty", "-g"], stdin=slave, capture_output=True).stdout
        p = subprocess.Popen([BIN / "baton", "top", "--state", s.state], stdin=slave, stdout=slave, stderr=slave,
                             env={**os.environ, "TERM": "xterm"})
        out = b""
        deadline = time.monotonic() + 10
        while b"q ends" not in out and time.monotonic() < deadline:
            if select.select([master], [], [], 0.1)[0]:
                out += os.read(master, 65536)
        self.assertIn(b"\x1b[?1049h", out)
        self.assertIn(b"plans 2 open", out)
        self.assertNotIn(b"calc\x1b", out)
        os.write(master, b"q")
        self.assertEqual(p.wait(10), 0)
        while select.select([master], [], [], 0.1)[0]:
            out += os.read(master, 65536)
        self.assertIn(b"\x1b[?1049l", out)
        self.assertEqual(subprocess.run(["stty", "-g"], stdin=slave, capture_output=True).stdout, before)
        os.close(master)
        os.close(slave)

    def test_without_a_daemon_it_says_so(self):
        s = self.top()
        os.unlink(os.path.join(s.state, "endpoints.json"))
        self.assertIn("baton up", s.cli("top", "--once", code=6)[1])


class Real(BatonTest):
    """The same verbs against a real daemon: one way through each."""

    def setUp(self):
        self.d = self.daemon(config=NONE, agents=False)
        self.gates = {}  # step ids that wait until their place here is set

    def probe(self, agent_id="probe", **more):
        def work(r):
            if r["stepId"] in self.gates:
                until(lambda: self.gates[r["stepId"]], 30, "the gate of " + r["stepId"])
            return {"outcome": "completed", "result": {"text": "done " + r["stepId"], "data": r.get("parameters")}}
        p = Probe(self.d, agent_id, **{"work": work, **more})
        self.addCleanup(p.close)
        self.addCleanup(lambda: self.gates.update({k: True for k in self.gates}))
        wait_up(self.d, agent_id)
        return p

    def plan_file(self, *steps, **more):
        return self.write_plan(self.d, "plan.json", {"steps": list(steps), **more})

    def run_plan(self, *steps, args=(), code=0, **more):
        """-> (stdout, stderr, plan id)"""
        done = self.d.cli_any("run", "--plan", self.plan_file(*steps, **more), *args)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr, done.stderr.split()[1]

    def detach(self, *steps, **more):
        return self.d.cli("run", "--plan", self.plan_file(*steps, **more), "--detach").strip()

    def said(self, *args, code=0):
        done = self.d.cli_any(*args)
        self.assertEqual(done.returncode, code, (args, done.stdout, done.stderr))
        return done.stderr

    def started(self, p, step_id):
        until(lambda: [r for r in p.of("step.execute") if r["stepId"] == step_id], 10, step_id + " runs")

    def test_approval_before_a_step_with_other_parameters(self):
        p = self.probe()
        _, said, plan = self.run_plan(step(requiresApproval=True, parameters={"to": "prod"}), code=4)
        self.assertRegex(said, r"\? a .*needs your approval: baton approve " + plan)
        shown = self.d.cli("reviews", plan)
        for word in ("step a", '{"to":"prod"}', "do a"):
            self.assertIn(word, shown)
        self.assertIn("baton approve " + plan, self.d.cli("status", plan))
        self.said("approve", plan, "--edit", '{"to": "staging"}', "--comment", "not prod")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertEqual(p.of("step.execute")[0]["parameters"], {"to": "staging"})
        self.assertIn("waits for no decision", self.said("approve", plan, code=7))
        self.assertRegex(self.d.cli("events", plan), r"approve a \(before_step\), with an edit by .+@.+ via baton approve: not prod")

    def test_signoff_and_its_refusal(self):
        self.probe()
        _, said, plan = self.run_plan(step(), policy={"signoff": True}, code=4)
        self.assertIn("baton approve " + plan, said)
        self.assertIn("paused (signoff)", self.d.cli("status", plan))
        self.said("approve", plan)
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        _, _, plan = self.run_plan(step(), policy={"signoff": True}, code=4)
        self.said("reject", plan, "--comment", "never")
        self.assertEqual(self.d.wait_plan(plan)["status"], "cancelled")
        self.assertIn("never", self.d.cli("history", plan))

    def test_paused_plan_begins_nothing_and_resumes(self):
        self.gates["a"] = False
        p = self.probe()
        plan = self.detach(step("a"), step("b", dependsOn=["a"]))
        self.started(p, "a")
        self.assertIn("paused", self.d.cli("pause", plan, "--reason", "lunch"))
        self.said("pause", plan, code=2)
        self.gates["a"] = True
        until(lambda: self.d.ask("plan.get", planId=plan)["steps"][0]["status"] == "completed", 10, "a ends")
        shown = self.d.cli("status", plan)
        for word in ("paused (requested)", "the plan is paused", "baton resume " + plan):
            self.assertIn(word, shown)
        self.assertEqual(len(p.of("step.execute")), 1)
        self.d.cli("resume", plan)
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.said("resume", plan, code=2)
        self.assertIn("requested: lunch", self.d.cli("events", plan))

    def test_plan_is_changed_while_it_runs(self):
        self.gates["a"] = False
        p = self.probe()
        plan = self.detach(step("a"), step("b", dependsOn=["a"]), step("c", dependsOn=["b"]), step("d", dependsOn=["c"]))
        self.started(p, "a")
        new = self.write_plan(self.d, "new.json", step("n"))
        why = ("--reasoning", "asked for")
        self.assertIn("revision 2", self.d.cli("modify", plan, "--insert", new, "--after", "a", *why))
        self.assertIn("revision 3", self.d.cli("skip", plan, "b", "--reason", "known"))
        two = self.write_plan(self.d, "two.yaml", "[{stepId: x, agentId: probe, skill: do, task: do x}]")
        self.said("modify", plan, "--replace", "c", two, "--expect-revision", "2", *why, code=2)
        self.d.cli("modify", plan, "--replace", "c", two, "--expect-revision", "3", *why)
        self.d.cli("modify", plan, "--note", "we talked about it")
        self.gates["a"] = True
        view = self.d.wait_plan(plan)
        self.assertEqual(view["status"], "completed", view)
        self.assertCountEqual([r["stepId"] for r in p.of("step.execute")], ["a", "n", "x", "d"])
        story = self.d.cli("history", plan)
        for word in ("1 by submitted", "2 by insert", "3 by skip_steps", "4 by replace", "5 by conversation_only", "known",
                     "we talked about it", "asked for"):
            self.assertIn(word, story)
        self.assertIn("revision 5", self.d.cli("status", plan))

    def test_failed_plan_is_retried_and_an_ended_one_forked(self):
        broken = [True]

        def work(r):
            if r["stepId"] == "b" and broken:
                return {"outcome": "failed", "failure": {"code": "INVALID", "class": "VALIDATION_ERROR", "message": "no", "retryable": False}}
            return {"outcome": "completed", "result": {"text": "done " + r["stepId"]}}
        p = self.probe(work=work)
        _, _, plan = self.run_plan(step("a"), step("b", dependsOn=["a"]), code=3)
        broken.clear()
        done = self.d.cli_any("retry", plan, "--wait")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 result taken over", done.stderr)
        self.assertIn("done b", done.stdout)
        self.assertEqual([r["stepId"] for r in p.of("step.execute")], ["a", "b", "b"])
        again = self.d.cli("fork", plan, "--from", "a").strip()
        self.assertEqual(self.d.wait_plan(again)["status"], "completed")
        self.assertEqual(len(p.of("step.execute")), 5)
        self.assertIn("from plan " + plan, self.d.cli("status", again))
        self.assertEqual(self.d.ask("plan.get", planId=plan)["status"], "failed", "the old plan stays as it is")
        self.said("fork", plan, "--from", "zz", code=7)

    def test_lint_tells_the_worst_case_of_a_file_and_runs_nothing(self):
        p = self.probe()
        plan = self.plan_file(step("a", timeoutMs=10000), step("b", dependsOn=["a"], timeoutMs=5000), policy={"maxRetries": 0})
        out = self.d.cli("lint", plan)
        for pattern in (r"1 +a +\* +probe +do +1 +10.0 s", r"2 +b +\* +probe +do +1 +5.0 s +a", r"levels +2", r"worst case +[0-9.]+ s, tokens and cost not estimated\n",
                        r"a → b",
                        "0 errors"):
            self.assertRegex(out, pattern)
        self.assertIn("nobody", self.said("lint", self.plan_file(step(agent="nobody")), code=2))
        self.assertEqual((p.of("step.execute"), self.d.ask("plan.list")["plans"]), ([], []))

    def test_stats_top_and_waits(self):
        self.gates["a"] = False
        p = self.probe()
        plan = self.detach(step("a"), step("b", dependsOn=["a"]))
        self.started(p, "a")
        shown = self.d.cli("status", plan)
        self.assertIn("waiting for step a", shown)
        self.assertIn("Step ", shown)
        out = self.d.cli("top", "--once")
        for pattern in (r"plans 1 open", r"steps 1( of \d+)? in flight", r"probe +✓ up .*1/1", plan):
            self.assertRegex(out, pattern)
        self.gates["a"] = True
        self.d.wait_plan(plan)
        out = self.d.cli("stats", plan)
        for pattern in (r"depth 2", r"a +completed +probe +1 ", r"probe +2 +0 +0 %"):
            self.assertRegex(out, pattern)
        frame = json.loads(self.d.cli("top", "--once", "--json"))
        self.assertEqual(frame["plans"], [])

    def test_result_of_one_step(self):
        self.probe()
        self.assertEqual(self.run_plan(step("a"), step("b"), args=("--result", "a"))[0], "done a\n")
        self.run_plan(step("a"), args=("--result", "zz"), code=7)


if __name__ == "__main__":
    main()
