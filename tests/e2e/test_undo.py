"""Steps with compensate: what a plan did is undone when it fails, the last thing first, each once; over crashes and child plans, too."""
import json
import os
import random

from harness import BatonTest, main, until
from probe import step
from test_children import Children, inside
from test_flow import Flow
from test_phases import data, failed, text


def undo(task, **more):
    return {"skill": "do", "task": task, **more}


def order(**more):
    """reserve and pay are done, ship fails."""
    return [step("reserve", "a", compensate=undo("release {{results.reserve.number}}")),
            step("pay", "a", compensate=undo("refund {{results.pay.amount}} of {{results.reserve.number}}"), **more),
            step("bad-ship", "a", maxRetries=0)]


class Undo(Flow):
    values = {"reserve": {"number": 7}, "pay": {"amount": 80}}

    def undone(self, plan=None):
        """The plan that undoes the plan, as it is."""
        return self.d.ask("plan.get", planId=self.d.ask("plan.get", planId=plan or self.plan)["compensation"]["planId"])

    def tasks(self, word="undo"):
        return [r["task"] for r in self.a.asked("execute") if r["stepId"].startswith(word)]


class Story(Undo):
    def test_the_last_thing_is_undone_first_and_the_plan_ends_as_it_was_to(self):
        view = self.run_plan(order())
        self.assertEqual((view["status"], view["outcome"], view["failureReason"]), ("failed", "failed", "Step 3 failed: broken"), view)
        self.assertEqual({k: view["compensation"][k] for k in ("status", "compensated", "failed")}, {"status": "compensated", "compensated": 2, "failed": 0})
        self.assertEqual(self.tasks(), ["refund 80 of 7", "release 7"])
        child = self.undone()
        self.assertEqual((child["status"], child["parentPlanId"], [s["stepId"] for s in child["steps"]]), ("completed", self.plan, ["undo-pay", "undo-reserve"]))
        self.assertNotIn(child["planId"], [p["planId"] for p in self.d.ask("plan.list")["plans"]])
        types = [e["type"] for e in self.d.events(self.plan)]
        self.assertEqual(types[-3:], ["compensation_started", "compensation_finished", "plan_completed"])
        phases = self.d.ask("plan.history", planId=self.plan)["phases"]
        self.assertEqual([(p["phase"], p["success"]) for p in phases][-2:], [("execution", False), ("compensation", True)])
        said = self.d.cli("status", self.plan)
        self.assertIn("undone by plan %s: compensated, 2 done, 0 failed" % child["planId"], said)
        self.assertIn("refund 80 of 7", said)
        self.assertIn("(undoing)", self.d.cli("timeline", self.plan))
        self.assertIn("undone by a", self.d.cli("graph", self.plan))

    def test_a_plan_that_succeeds_or_did_nothing_or_must_not_is_not_undone(self):
        for steps, policy in ((order()[:2], {}), (order()[2:], {}), (order(), {"compensate": False})):
            view = self.run_plan(steps, policy=policy)
            self.assertNotIn("compensation", view)
        self.assertEqual(self.tasks(), [])

    def test_what_results_contain_is_data_and_never_a_template(self):
        self.values = {"reserve": {"number": "{{results.pay}} {{results.nobody}} {{item}}"}, "pay": {"amount": {"all": ["{{results.reserve}}"]}}}
        steps = order()
        steps[1]["compensate"]["parameters"] = {"back": "{{results.pay.amount}}"}
        self.run_plan(steps)
        asked = [r for r in self.a.asked("execute") if r["stepId"].startswith("undo")]
        self.assertEqual(asked[0]["parameters"], {"back": {"all": ["{{results.reserve}}"]}})
        self.assertEqual(asked[1]["task"], "release {{results.pay}} {{results.nobody}} {{item}}")

    def test_each_has_its_own_retries_and_its_usage_is_the_plans(self):
        tries = []

        def work(r):
            if r["stepId"] == "undo-pay":
                tries.append(r["attempt"])
                return failed("busy", retryable=True) if len(tries) < 3 else {**text("ok"), "usage": {"inputTokens": 5}}
            return Flow.work(self, r)
        self.work = work
        self.a.close()
        self.a = self.agent("a", execute=lambda r: self.work(r))
        steps = order()
        steps[1]["compensate"].update(maxRetries=2, backoff={"kind": "fixed", "initialMs": 1})
        view = self.run_plan(steps)
        self.assertEqual((tries, view["compensation"]["status"], view["usage"]["inputTokens"]), ([1, 2, 3], "compensated", 5), view)

    def test_what_the_check_refuses_and_where(self):
        for more, why in (({"dependsOn": ["reserve"]}, "has no meaning here"), ({"forEach": [1]}, "has no meaning here"), ({"agentId": "nobody"}, "nobody"),
                          ({"onFailure": "abort"}, "expected ask (a person decides) or continue"), ({"task": "see {{results.gone}}"}, "names no step of this plan"),
                          ({"task": "see {{results.bad-ship}}"}, "does not come before"), ({"skil": "do"}, "skil"), ({"skill": "dance"}, "dance")):
            steps = order()
            steps[1]["compensate"].update(more)
            r = self.d.ask("plan.lint", plan={"steps": steps})
            self.assertTrue(any(why in p["message"] or why in p.get("field", "") for p in r["problems"]), (more, r["problems"]))
            self.assertFalse(r["valid"], more)
        r = self.d.ask("plan.lint", plan={"steps": order(), "policy": {"compensate": False}})
        self.assertTrue(r["valid"] and any("never runs" in p["message"] for p in r["problems"]), r["problems"])
        self.assertTrue(any("only waits" in m for m in self.refused({"stepId": "w", "wait": {"forMs": 1}, "compensate": undo("x")})))

    def test_lint_adds_what_undoing_may_take(self):
        steps = order()
        for s in steps[:2]:
            s["compensate"].update(timeoutMs=1000, maxRetries=1, backoff={"kind": "fixed", "initialMs": 500, "maxMs": 500})
        self.assertEqual(self.d.ask("plan.lint", plan={"steps": steps})["worstCaseUndoMs"], 5000)


class People(Undo):
    def fail_refund(self, steps=None, **plan):
        def work(r):
            return failed("the bank is closed", retryable=False) if r["stepId"] == "undo-pay" and self.closed else Flow.work(self, r)
        self.closed = True
        self.a.close()
        self.a = self.agent("a", execute=work)
        self.submit(steps or order(), **plan)
        return until(lambda: self.d.ask("review.list")["reviews"], 20, "a review")[0]

    def test_a_compensation_that_fails_asks_a_person_who_has_it_tried_again(self):
        review = self.fail_refund()
        self.assertEqual((review["planId"], review["stepId"]), (self.undone()["planId"], "undo-pay"))
        self.assertEqual(self.d.ask("plan.get", planId=self.plan)["compensation"]["reviewId"], review["reviewId"])
        self.assertIn("it needs your decision: baton review show " + review["reviewId"], self.d.cli("status", self.plan))
        view = self.d.ask("plan.get", planId=self.plan)
        self.assertEqual((view["status"], view["phase"], view["compensation"]["status"]), ("running", "compensation", "running"))
        self.closed = False
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve")
        self.assertEqual(self.d.wait_plan(self.plan)["compensation"]["status"], "compensated")
        self.assertEqual(self.tasks(), ["refund 80 of 7", "refund 80 of 7", "release 7"])

    def test_what_a_person_did_by_hand_counts_and_what_is_given_up_does_not_stop_the_others(self):
        for decision, status in (("skip", "compensated"), ("reject", "compensation_failed")):
            review = self.fail_refund()
            self.d.ask("review.decide", reviewId=review["reviewId"], decision=decision)
            view = self.d.wait_plan(self.plan)
            self.assertEqual((view["status"], view["compensation"]["status"]), ("failed", status), decision)
            self.assertEqual(self.tasks()[-1], "release 7")

    def test_with_continue_nobody_is_asked(self):
        steps = order()
        steps[1]["compensate"]["onFailure"] = "continue"
        self.closed = True
        self.a.close()
        self.a = self.agent("a", execute=lambda r: failed("closed", retryable=False) if r["stepId"] == "undo-pay" else Flow.work(self, r))
        view = self.run_plan(steps)
        self.assertEqual((view["compensation"]["status"], view["compensation"]["compensated"], view["compensation"]["failed"]), ("compensation_failed", 1, 1))

    def test_what_cannot_be_filled_in_is_for_a_person(self):
        steps = order()
        steps[1]["compensate"]["task"] = "refund {{results.pay.gone}}"
        self.submit(steps)
        review = until(lambda: self.d.ask("review.list")["reviews"], 20, "a review")[0]
        shown = self.d.ask("review.get", reviewId=review["reviewId"])
        self.assertIn("Undo step pay by hand", json.dumps(shown))
        self.assertIn("gone", json.dumps(shown))
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve")
        self.assertEqual(self.d.wait_plan(self.plan)["compensation"]["status"], "compensated")
        self.assertEqual(self.tasks(), ["release 7"])

    def test_it_cannot_be_cancelled_but_the_plan_that_undoes_it_can(self):
        review = self.fail_refund()
        for ask in ("plan.cancel", "plan.pause"):
            answer = self.d.ask_raw(ask, planId=self.plan)
            self.assertEqual(answer["error"]["code"], "CONFLICT", answer)
            self.assertIn("what it did is being undone", answer["error"]["message"])
        self.d.ask("plan.cancel", planId=review["planId"])
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], view["compensation"]["status"]), ("failed", "compensation_failed"))

    def test_a_cancelled_plan_is_undone_when_its_policy_says_so(self):
        steps = order()[:2] + [{"stepId": "look", "type": "human_review", "task": "Is it right?"}]
        for policy, expected in (({}, None), ({"compensate": True}, "compensated")):
            self.submit(steps, policy=policy)
            until(lambda: self.d.ask("plan.get", planId=self.plan)["status"] == "waiting", 20, "it waits")
            self.d.ask("plan.cancel", planId=self.plan)
            view = self.d.wait_plan(self.plan)
            self.assertEqual((view["status"], view.get("compensation", {}).get("status")), ("cancelled", expected))

    def test_a_retry_does_again_what_was_undone_and_all_after_it(self):
        steps = [step("look", "a", dependsOn=[]), *order()]
        steps[1]["dependsOn"] = ["look"]
        steps[2]["dependsOn"] = ["reserve"]
        steps[3]["dependsOn"] = ["pay"]
        self.run_plan(steps)
        again = self.d.ask("plan.retry", planId=self.plan)
        self.assertEqual(again["reused"], 1, "only look, which has nothing to undo")
        self.assertEqual(self.d.wait_plan(again["planId"])["compensation"]["compensated"], 2)
        self.run_plan(steps, policy={"compensate": False})
        self.assertEqual(self.d.ask("plan.retry", planId=self.plan)["reused"], 3)


class Inner(Undo, Children):
    values = {"list": {"files": ["a", "b", "c"]}}

    def work(self, r):
        name = r["stepId"].split("[")[0]
        return data(self.values[name]) if name in self.values else failed("broken", retryable=False) if name.startswith("bad") else text(r["task"])

    def test_items_rounds_and_plans_inside_are_undone_each(self):
        each = {**inside("book", task="book {{item}}", compensate=undo("give {{item}} back: {{results.book.text}}")), "forEach": "{{results.list.files}}", "maxConcurrency": 1}
        loop = {**inside("poll", task="round {{iteration}}", compensate=undo("forget {{iteration}}")), "repeat": {"until": {"iteration": 1}, "max": 3}}
        sub = {"stepId": "sub", "plan": {"document": {"steps": [inside("x", compensate=undo("undo x"))]}}}
        view = self.run_plan([step("list", "a"), each, loop, sub, inside("bad", maxRetries=0)])
        self.assertEqual((view["status"], view["compensation"]["status"]), ("failed", "compensated"), view)
        self.assertEqual(self.tasks(), ["undo x", "forget 1", "forget 0", "give c back: book c", "give b back: book b", "give a back: book a"])
        self.assertEqual([s["stepId"] for s in self.undone()["steps"]], ["undo-x", "undo-poll", "undo-poll.2", "undo-book-2", "undo-book-1", "undo-book-0"])

    def test_a_map_in_a_map_knows_both_items(self):
        inner = {"stepId": "cells", "forEach": "{{results.list.files}}", "as": "col", "maxConcurrency": 1,
                 "steps": [inside("put", task="{{row}}{{col}}", compensate=undo("take {{row}}{{col}}"))]}
        rows = {"stepId": "rows", "forEach": ["x", "y"], "as": "row", "maxConcurrency": 1, "steps": [inner]}
        self.run_plan([step("list", "a"), rows, inside("bad", maxRetries=0)])
        self.assertEqual(self.tasks(), ["take " + r + c for r in "yx" for c in "cba"])

    def test_a_plan_inside_that_fails_undoes_itself_once_and_its_parent_goes_on(self):
        saga = {"steps": [inside("x", compensate=undo("undo x")), inside("bad", maxRetries=0)]}
        view = self.run_plan([{"stepId": "sub", "plan": {"document": saga}, "onFailure": "continue"}, inside("end")])
        self.assertEqual((view["status"], view["outcome"]), ("completed", "partial"))
        self.assertEqual(self.tasks(), ["undo x"])
        self.run_plan([inside("first", compensate=undo("undo first")), {"stepId": "sub", "plan": {"document": saga}}])
        self.assertEqual(self.tasks(), ["undo x", "undo x", "undo first"])

    def test_what_an_item_did_before_another_failed_is_undone(self):
        each = {"stepId": "each", "forEach": ["a", "b"], "maxConcurrency": 1,
                "steps": [inside("book", task="book {{item}}", compensate=undo("give {{item}} back")), inside("bad", when={"index": 1}, maxRetries=0)]}
        view = self.run_plan([inside("first", compensate=undo("undo first")), each])
        self.assertEqual(view["status"], "failed")
        self.assertEqual(self.tasks(), ["give b back", "give a back", "undo first"])

    def test_the_step_of_a_plan_inside_may_undo_it_as_a_whole(self):
        sub = {"stepId": "sub", "plan": {"document": {"steps": [inside("x", compensate=undo("undo x"))]}}, "compensate": {**undo("undo all of {{results.sub.text}}"), "agentId": "a"}}
        self.run_plan([sub, inside("bad", maxRetries=0)])
        self.assertEqual(self.tasks(), ["undo all of do x"])

    def test_when_the_plan_fails_what_its_running_children_did_is_undone_after_their_end(self):
        sub = {"stepId": "sub", "dependsOn": [], "plan": {"document": {"steps": [inside("x", compensate=undo("undo x")), {"stepId": "w", "wait": {"forMs": 60000}}]}}}
        hold = {"stepId": "hold", "wait": {"signal": "go"}, "dependsOn": []}
        self.submit([sub, hold, inside("bad", maxRetries=0, dependsOn=["hold"])])
        until(lambda: "x" in self.asked(), 20, "x is done")
        self.d.ask("plan.signal", planId=self.plan, name="go", clientKey="1")
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], view["compensation"]["status"], self.tasks()), ("failed", "compensated", ["undo x"]), view)


BOOK = """#!/bin/sh
LEDGER=$(dirname "$0")/ledger
# Once a key: what an attempt with the same key did is not done again.
grep -qF "$BATON_KEY " "$LEDGER" 2>/dev/null || echo "$BATON_KEY $1" >>"$LEDGER"
[ "$1" != ship ] || { echo "the street is closed" >&2; exit 1; }
"""
CONFIG = """
policy: {heartbeatMs: 300, leaseMs: 2000, agentWaitMs: 20000}
agents:
  - agentId: shop
    command: ["${BATON_BIN}/baton-agent-exec"]
    settings:
      commands:
        - {id: book, argv: [sh, "%(work)s/book.sh", "{what}"], description: "Writes the ledger.", output: text, effects: idempotent}
        - {id: pay, argv: [sh, "%(work)s/book.sh", "{what}"], description: "Takes money.", output: text, effects: unsafe}
"""


def book(what, skill="book"):
    return {"agentId": "shop", "skill": skill, "task": "Write %s into the ledger" % what, "parameters": {"what": what}}


class Kills(BatonTest):
    """The saga with real processes: its daemon is killed at the points of it (BATON_POINTS=all: at every one), and started again."""

    saga = {"steps": [{"stepId": "reserve", **book("reserved"), "compensate": book("released")},
                      {"stepId": "pay", **book("paid", "pay"), "compensate": book("refunded")},
                      {"stepId": "sub", "plan": {"document": {"steps": [{"stepId": "pack", **book("packed"), "compensate": book("unpacked")}]}}},
                      {"stepId": "ship", **book("ship"), "maxRetries": 0}],
            "policy": {"backoff": {"kind": "fixed", "initialMs": 20}}}

    def start(self, d):
        for _ in range(3):
            try:
                return d.start(agents=False)
            except AssertionError:  # it was killed while it started
                d.env.pop("BATON_FAILPOINT", None)
        raise AssertionError("the daemon does not start\n" + d.log())

    def ask(self, d, type_, **fields):
        """Repeats the request over the daemon's death; what it refuses is returned."""
        def answered():
            if d.process.poll() is not None:
                d.env.pop("BATON_FAILPOINT", None)
                self.start(d)
            try:
                answer = d.ask_raw(type_, 3.0, **fields)
                return answer if answer["ok"] or not answer["error"].get("retryable") else None
            except (OSError, EOFError, ValueError):
                return None
        return until(answered, 40, type_ + "\n" + d.log())

    def run_saga(self, point):
        d = self.daemon(config=CONFIG, start=False)
        (d.work / "book.sh").write_text(BOOK)
        d.env = {"BATON_FAILPOINT_LOG": str(d.work / "hits"), **({"BATON_FAILPOINT": point} if point else {})}
        self.start(d)
        until(lambda: any(a["state"] == "up" for a in self.ask(d, "agents.list")["agents"]), 40, "the agent is up")
        plan = self.ask(d, "plan.submit", plan=self.saga, clientKey="order")["planId"]
        ledger = d.work / "ledger"

        def ended():
            for review in self.ask(d, "review.list")["reviews"]:  # of the payment: a person looks into the ledger
                paid = ledger.exists() and " paid" in ledger.read_text()
                self.ask(d, "review.decide", reviewId=review["reviewId"], decision="skip" if paid else "approve")
            view = self.ask(d, "plan.get", planId=plan)
            return view if view["status"] not in ("pending", "running", "waiting") else None
        view = until(ended, 60, "the saga ends at %s\n%s" % (point, d.log()))
        done = [line.split(" ", 1)[1] for line in ledger.read_text().splitlines()]
        undone = self.ask(d, "plan.get", planId=view["compensation"]["planId"])
        d.env.pop("BATON_FAILPOINT", None)
        if d.process.poll() is None:
            d.kill9()
        self.start(d)  # nothing is done again
        self.assertEqual(self.ask(d, "plan.get", planId=plan)["compensation"], view["compensation"])
        return d, view, undone, done

    def right(self, point):
        d, view, undone, done = self.run_saga(point)
        # A payment that a person skipped has no result to undo: then it is not in the plan that undoes it.
        skipped = [s for s in view["steps"] if s["stepId"] == "pay"][0]["status"] == "skipped"
        expected = ["reserved", "paid", "packed", "unpacked", *([] if skipped else ["refunded"]), "released"]
        # An attempt to ship that was lost before it ran is not made again.
        self.assertEqual([what for what in done if what != "ship"], expected, (point, view, undone))
        self.assertLessEqual(done.count("ship"), 1, point)
        self.assertEqual((view["status"], view["compensation"]["status"], view["compensation"]["failed"]), ("failed", "compensated", 0), point)
        names = ["undo-pack", *([] if skipped else ["undo-pay"]), "undo-reserve"]
        self.assertEqual([s["stepId"] for s in undone["steps"]], names, point)
        events = d.events(view["planId"])
        self.assertEqual([sum(e["type"] == t for e in events) for t in ("compensation_started", "compensation_finished", "plan_completed")], [1, 1, 1], point)
        d.check_event_order()
        d.stop()  # one daemon at a time, however many points
        return (d.work / "hits").read_text().split()

    def test_each_movement_once_wherever_the_daemon_dies(self):
        seed = int(os.environ.get("BATON_SEED", random.randrange(1 << 31)))
        n = len(self.right(""))
        points = list(range(1, n + 1))
        asked = os.environ.get("BATON_POINTS", "8")
        if asked != "all":
            points = sorted(random.Random(seed).sample(points, min(int(asked), n)))
        for point in points:
            with self.subTest("point %d of %d, seed %d" % (point, n, seed)):
                self.right("%d:kill" % point)


if __name__ == "__main__":
    main()
