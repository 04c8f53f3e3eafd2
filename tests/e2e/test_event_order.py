"""event_order.py itself: it accepts right events, and each wrong list breaks the rule that it should. A checker that never fails
proves nothing."""
import copy
import unittest
import uuid

import event_order

PLAN = "01A1FD3C-74BC-705A-B5E7-B94D17448D40"
A, B = {"stepId": "a", "stepIndex": 0}, {"stepId": "b", "stepIndex": 1}


def agents(a, b):
    return {"fromAgent": {"agentId": a}, "toAgent": {"agentId": b}, "reason": "plan_step"}


RIGHT = [
    ("plan_generated", {}), ("plan_started", {}),
    ("plan_step_started", {**A, "agentId": "x", "attempt": 1, "instanceId": "i"}), ("agent_handoff", {**A, **agents("supervisor", "x"), "attempt": 1}),
    ("plan_step_retry", {**A, "attempt": 1, "delayMs": 1}),
    ("plan_step_completed", {**A, "agentId": "x", "status": "completed", "attempts": 2}),
    ("plan_step_started", {**B, "agentId": "y", "attempt": 1}), ("quality_gate_started", B), ("quality_gate_passed", B),
    ("plan_step_waiting", {**B, "attempt": 0, "reviewId": "r", "kind": "before_step"}), ("plan_paused", {"reason": "review"}),
    ("review_decided", {**B, "reviewId": "r", "decision": "approve"}), ("plan_resumed", {"reason": "review"}),
    ("agent_handoff", {**B, **agents("x", "y"), "attempt": 1}),
    ("plan_step_completed", {**B, "agentId": "y", "status": "completed", "attempts": 1}),
    ("plan_completed", {"status": "completed", "outcome": "success", "counts": {"total": 2, "completed": 2}}),
]


def told(story_):
    return [{"seq": 10 + i, "planSeq": 1 + i, "eventId": str(uuid.uuid4()), "planId": PLAN, "type": t, **copy.deepcopy(fields)}
            for i, (t, fields) in enumerate(story_)]


class Stories(unittest.TestCase):
    def broken(self, why, change):
        events = list(RIGHT)
        change(events)
        with self.assertRaises(event_order.Broken) as caught:
            event_order.check(told(events))
        self.assertIn(why, str(caught.exception))

    def test_a_right_story_is_taken_whole_or_so_far(self):
        events = told(RIGHT)
        for n in range(1, len(events) + 1):
            event_order.check(events[:n])

    def test_each_rule_has_a_story_that_breaks_it(self):
        def put(at, type_, **fields):
            return lambda e: e.insert(at, (type_, fields))

        def drop(at):
            return lambda e: e.pop(at)

        def swap(i, j):
            def change(e):
                e[i], e[j] = e[j], e[i]
            return change

        def fields(at, **new):
            def change(e):
                e[at] = (e[at][0], {**e[at][1], **new})
            return change
        for why, change in (
                ("planning_started is the first", swap(0, 1)),
                ("plan_started comes before", drop(1)),
                ("a handoff comes after the start", swap(2, 3)),
                ("a step starts once", put(4, "plan_step_started", **A, agentId="x", attempt=1)),
                ("it starts with attempt 1", fields(2, attempt=2)),
                ("the step is not over", put(6, "plan_step_retry", **A, attempt=2, delayMs=1)),
                ("the step has started", put(2, "plan_step_progress", **A, attempt=1)),
                ("attempts only grow", lambda e: e.insert(4, ("plan_step_retry", {**A, "attempt": 2, "delayMs": 1}))),
                ("a step ends once", put(6, "plan_step_completed", **A, status="completed")),
                ("it ends in one of", fields(5, status="done")),
                ("attempts are all that were told", fields(5, attempts=0)),
                ("a failure says why", fields(5, status="failed")),
                ("a verdict answers a question", drop(7)),
                ("one question at a time", put(8, "quality_gate_started", **B)),
                ("review ids are new", put(12, "plan_step_waiting", **B, attempt=0, reviewId="r", kind="before_step")),
                ("what is decided was asked", drop(9)),
                ("one review at a time", put(10, "plan_step_waiting", **B, attempt=0, reviewId="s", kind="before_step")),
                ("does nothing else", put(10, "plan_step_retry", **B, attempt=1, delayMs=1)),
                ("it is not paused yet", put(11, "plan_paused", reason="review")),
                ("it was paused for that reason", drop(10)),
                ("from an agent that had something", fields(13, **agents("z", "y"))),
                ("from one agent to another", fields(13, **agents("y", "y"))),
                ("nothing begins in a plan that is called off", put(6, "plan_cancelling")),
                ("it is called off once", lambda e: e.extend([("plan_cancelling", {})] * 2) or e.pop(15)),
                ("each modification is one revision", put(6, "plan_modified", kind="conversation_only", revision=3)),
                ("what finishes has started", put(6, "replan_finished", **A, ok=True, revision=2)),
                ("has ended when the plan ends", drop(14)),
                ("the counts are all steps", fields(15, counts={"total": 3, "completed": 2})),
                ("3 completed are counted", fields(15, counts={"total": 3, "completed": 3})),
                ("a plan is cancelled by somebody", lambda e: e.__setitem__(slice(9, 14), []) or e.__setitem__(
                    -1, ("plan_completed", {"status": "cancelled", "outcome": "failed", "counts": {"total": 2, "completed": 2}}))),
                ("nothing comes after plan_completed", lambda e: e.append(("plan_resumed", {"reason": "review"})))):
            with self.subTest(why):
                self.broken(why, change)

    def test_each_rule_about_planning_and_answers_has_a_story_that_breaks_it(self):
        start = [("planning_started", {"attempt": 1}), ("planning_retry", {"attempt": 1}), ("plan_generated", {}), ("plan_started", {})]
        answer = [("synthesis_started", {}), ("text_delta", {"index": 0}), ("text_delta", {"index": 1}), ("synthesis_finished", {"ok": True})]
        right = start + RIGHT[2:-1] + answer + RIGHT[-1:]
        for n in range(1, len(right) + 1):
            event_order.check(told(right[:n]))
        at = len(right) - 5  # synthesis_started
        again = [("synthesis_retry", {"revision": 2}), ("synthesis_started", {})]
        event_order.check(told(right[:at + 3] + again + [("text_delta", {"index": 0})] + right[at + 3:]))

        def without(i):
            return right[:i] + right[i + 1:]

        def between(i, *events):
            return right[:i] + list(events) + right[i:]
        failed = ("planning_failed", {"attempt": 2, "reason": "no"})
        for why, wrong in (
                ("the attempt that came to nothing", between(1, ("planning_retry", {"attempt": 2}))),
                ("one repair", between(2, ("planning_retry", {"attempt": 2}))),
                ("planning begins before there is a plan", between(3, ("planning_started", {"attempt": 1}))),
                ("it begins with attempt 1", [("planning_started", {"attempt": 2})]),
                ("what fails was begun, and says why", right[:2] + [("planning_failed", {"attempt": 2})]),
                ("plan_generated comes once", between(3, ("plan_generated", {}))),
                ("there is a plan, or there will be an answer alone", without(2)),
                ("planning has ended", right[:2] + right[-1:]),
                ("nothing happens to steps while the answer is written", between(at + 1, ("plan_step_progress", {**B, "attempt": 1}))),
                ("has ended when the answer is written", without(at - 1)),
                ("pieces of the answer come in order", without(at + 1)),
                ("an answer out of a plan that has run", right[:at + 1] + right[at:]),
                ("it follows a question, and is a revision", between(at + 3, ("synthesis_retry", {"revision": 3}))),
                ("an answer was asked for", between(at, ("synthesis_finished", {"ok": True}))),
                ("without an answer it says why", right[:at + 3] + [("synthesis_finished", {"ok": False})]),
                ("the answer is there, or there will be none", without(at + 3))):
            with self.subTest(why), self.assertRaisesRegex(event_order.Broken, why):
                event_order.check(told(wrong))
        event_order.check(told(right[:2] + [failed, ("plan_started", {})] + answer + [
            ("plan_completed", {"status": "completed", "outcome": "partial", "counts": {"total": 0}})]))

    def test_a_change_makes_an_open_sign_off_void(self):
        note = ("plan_modified", {"kind": "conversation_only", "revision": 2})
        change = ("plan_modified", {"kind": "insert", "revision": 2})
        asked = ("plan_paused", {"reason": "signoff", "reviewId": "p", "revision": 1})
        void = ("review_voided", {"reviewId": "p", "revision": 1})

        def events(*change):
            return told(RIGHT[:6] + list(change) + RIGHT[6:])
        event_order.check(events(asked, void, change))
        event_order.check(events(asked, note))
        for why, wrong in (
                ("a change makes an open sign-off void", (asked, change)),
                ("the sign-off is open", (void, change)),
                ("the sign-off is open", (asked, ("review_voided", {"reviewId": "q", "revision": 1}), change)),
                ("the revision before the change", (asked, ("review_voided", {"reviewId": "p", "revision": 2}), change)),
                ("only a change makes a sign-off void", (asked, void, note))):
            with self.subTest(why), self.assertRaisesRegex(event_order.Broken, why):
                event_order.check(events(*wrong))

    def test_numbers_have_no_gap_and_ids_are_unique(self):
        for key, value, why in (("planSeq", 99, "planSeq has no gap"), ("seq", 1, "seq grows")):
            events = told(RIGHT)
            events[3][key] = value
            with self.assertRaisesRegex(event_order.Broken, why):
                event_order.check(events)
        events = told(RIGHT)
        events[3]["eventId"] = events[2]["eventId"]
        with self.assertRaisesRegex(event_order.Broken, "unique"):
            event_order.check(events)

    def test_what_plan_get_says_is_what_was_told(self):
        def view(**second):
            return {"status": "completed", "revision": 1, "steps": [{**A, "status": "completed"}, {**B, "status": "completed", "dependsOn": ["a"], **second}]}
        event_order.check(told(RIGHT), view())
        for second, why in (({"status": "failed"}, "plan.get says failed"), ({"reason": "superseded"}, "plan.get says completed superseded"),
                            ({"status": "in_progress"}, "plan.get says in_progress"), ({"error": "x"}, "plan.get says 'x'")):
            with self.assertRaisesRegex(event_order.Broken, why):
                event_order.check(told(RIGHT), view(**second))
        with self.assertRaisesRegex(event_order.Broken, "agree on the end"):
            event_order.check(told(RIGHT), {**view(), "status": "running"})
        backwards = view()
        backwards["steps"][0]["dependsOn"] = ["b"]
        backwards["steps"][1]["dependsOn"] = []
        with self.assertRaisesRegex(event_order.Broken, "starts when b is over"):
            event_order.check(told(RIGHT), backwards)


if __name__ == "__main__":
    unittest.main(verbosity=2)
