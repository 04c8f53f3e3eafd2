"""The events in the words of other systems: `baton events --vocabulary`, on what real daemons said and on what they say seldom.

Members and order are held against vocabularies.py, which was written from the documents, not from the translator.
Making the streams of tests/unit/client/streams again:
    BATON_BIN=build/dev/bin python3 test_vocabulary.py --record tests/unit/client/streams
"""
import json
import pathlib
import sys
import unittest

import harness
import vocabularies
from acts import CONFIG, Acts, say, step
from harness import main, until
from probe import Probe, wait_up
from probe import step as probe_step
from stage import Stage

STREAMS = harness.ROOT / "tests" / "unit" / "client" / "streams"
ALL = sorted(vocabularies.CHECKS)
BROKEN = "echo 'the disk is full' >&2; exit 1"


class Plans(Acts):
    """Plans of every kind, run by real daemons; each gives its name and leaves its id in self.plan."""
    config = CONFIG.replace("maxFallbacks: 0", "maxFallbacks: 1")

    def reviewed(self, decision, steps):
        self.plan = self.d.submit({"steps": steps})
        review = until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 15, "a person is asked")[0]
        if decision == "cancel":
            self.d.ask("plan.cancel", planId=self.plan)
        else:
            self.d.ask("review.decide", reviewId=review["reviewId"], decision=decision)
        return self.d.wait_plan(self.plan)

    def plan_chain(self):
        plan = {"goal": "do both", "steps": [step("a"), step("b")]}
        self.plan = self.d.ask("plan.submit", plan=plan, sessionId="s-1")["planId"]
        self.d.wait_plan(self.plan)

    def teller(self, name, work):
        p = Probe(self.d, name, work=work)
        self.addCleanup(p.close)
        wait_up(self.d, name)
        return p

    def plan_retry(self):
        def work(r):
            if r["attempt"] == 1:
                return {"outcome": "failed", "failure": {"code": "INTERNAL", "message": "lost the thread", "retryable": True}}
            return {"outcome": "completed", "result": {"text": "done at last"}}
        self.teller("fickle", work)
        self.run_plan([probe_step("r", "fickle", backoff={"initialMs": 1}), step("a")], goal="try hard")

    def plan_failure(self):
        self.run_plan([step("a"), step("f", maxRetries=0), step("b")], goal="come to nothing")

    def plan_parallel(self):
        """One of three fails, one follows all the same, and one that depends on it never begins."""
        self.act("slow", "sleep 0.2; " + say("slowly"))
        self.run_plan([step("slow", dependsOn=[]), step("f", maxRetries=0, onFailure="continue", dependsOn=[]), step("a", dependsOn=[]),
                       step("b", dependsOn=["f"])], goal="all at once")

    def plan_skip(self):
        self.run_plan([step("f", maxRetries=0, onFailure="skip"), step("a")], goal="go on without")

    def plan_replan(self):
        self.act("plan", say({"reuse": ["a"], "reasoning": "write elsewhere", "steps": [step("b", dependsOn=["a"])]}))
        self.run_plan([step("a"), step("f", maxRetries=0), step("c")], goal="find a way",
                      policy={"onFailure": "replan", "replan": {"agent": "planner", "cooldownMs": 1}})

    def plan_replan_in_vain(self):
        self.act("plan", *[say("I would rather not")] * (self.asked("plan") + 1))
        self.run_plan([step("f", maxRetries=0)], policy={"onFailure": "replan", "replan": {"agent": "planner", "cooldownMs": 1}})

    def plan_gates(self):
        self.act("gate", say("yes"), BROKEN, say({"passed": False, "missing": ["the sales of May"]}))
        self.run_plan([step("a"), step("b", gate="judge"), step("c", gate="judge"), step("d", gate="judge")], goal="only with all figures")

    def plan_verification(self):
        self.act("verify", say({"passed": False, "diagnosis": "not what was asked"}), say("yes"))
        self.run_plan([step("a", verifyWith="judge", backoff={"initialMs": 1})], goal="do it right")

    def review(self):
        return {"stepId": "ask", "type": "human_review", "task": "Shall we?"}

    def plan_review(self):
        self.reviewed("approve", [step("a"), self.review(), step("b")])

    def plan_review_cancelled(self):
        self.reviewed("cancel", [step("a"), self.review(), step("b")])

    def plan_taken_over(self):
        """A retry of a plan: what was done is taken over, what waits is skipped by a person."""
        self.plan_review_cancelled()
        self.plan = self.d.ask("plan.retry", planId=self.plan)["planId"]
        until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 15, "a person is asked")
        self.d.ask("review.decide", reviewId=self.d.ask("review.list", planId=self.plan)["reviews"][0]["reviewId"], decision="skip")
        self.d.wait_plan(self.plan)

    def plan_cancelled(self):
        self.act("long", "sleep 60")
        self.plan = self.d.submit({"steps": [step("long"), step("a")], "goal": "too long"})
        self.wait_asked("long")
        self.d.ask("plan.cancel", planId=self.plan, reason="enough")
        self.d.wait_plan(self.plan)

    def plan_refused(self):
        """Never begins: a person says no to the plan."""
        self.plan = self.d.submit({"steps": [step("a")], "policy": {"signoff": True}})
        until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 15, "a person is asked")
        self.d.ask("review.decide", reviewId=self.plan, decision="reject", comment="not today")
        self.d.wait_plan(self.plan)

    def plan_changed(self):
        """A step is put in while the plan runs."""
        self.act("hold", "until [ -e go ]; do sleep 0.02; done; " + say("held"))
        self.plan = self.d.submit({"steps": [step("hold"), step("b")], "goal": "as it comes"})
        self.wait_asked("hold")
        self.d.ask("plan.modify", planId=self.plan, kind="insert", steps=[step("c")], afterStepId="hold", reasoning="one more")
        (self.d.work / "go").write_text("")
        self.d.wait_plan(self.plan)

    def plan_progress(self):
        def work(r):
            head = {"key": r["key"], "attempt": r["attempt"], "epoch": p.epoch, "instanceId": p.me["instanceId"]}
            self.d.ask("step.progress", **head, n=1, text="half of it", percent=50)
            return {"outcome": "completed", "result": {"data": {"rows": 3}}}
        p = self.teller("teller", work)
        self.run_plan([probe_step("t", "teller")], goal="tell as you go")

    def names(self):
        return [n[5:] for n in dir(self) if n.startswith("plan_")]

    def run_all(self):
        self.acts("a", "b", "c", "d")
        self.act("f", BROKEN)
        for name in self.names():
            getattr(self, "plan_" + name)()
            yield name, self.plan


class Record(Plans):
    """Not a test: writes the streams."""
    target = None

    def runTest(self):
        for name, plan in self.run_all():
            lines = [json.dumps(e, ensure_ascii=False, separators=(",", ":")) for e in self.d.events(plan)]
            (self.target / (name + ".events")).write_text("\n".join(lines) + "\n")


def read(text):
    return [json.loads(line) for line in text.splitlines()]


def turns(vocabulary, said):
    """What is told of one plan or one turn each: the checks are about one."""
    found, plan = {}, 0
    for e in said:
        if vocabulary == "s002":
            plan = e.get("turnId", e.get("planId"))
        elif vocabulary != "s000":  # a handoff does not say which; it follows the start of its step
            plan = e.get("planId", plan)
        found.setdefault(plan, []).append(e)
        if vocabulary == "s000" and e["type"] in ("complete", "error"):
            plan += 1
    return found.values()


class Live(Plans):
    def test_every_kind_of_plan_is_told_as_each_document_says(self):
        for name, plan in self.run_all():
            types = {e["type"] for e in self.d.events(plan)}
            for vocabulary in ALL:
                with self.subTest(name, vocabulary=vocabulary):
                    said = read(self.d.cli("events", plan, "--vocabulary", vocabulary))
                    vocabularies.check(vocabulary, said)
                    self.assertTrue(said or vocabulary == "s004")
            recorded = {e["type"] for e in read((STREAMS / (name + ".events")).read_text())}
            self.assertEqual(types, recorded, "the recorded stream of %s is what daemons say: record it again" % name)


class Told(unittest.TestCase):
    """What a supervisor of the test says."""

    def stage(self, events, plan="P"):
        s = Stage(self, {"plan.get": {"planId": plan, "status": "completed", "lastSeq": len(events)}})
        s.events = events
        return s

    def recorded(self, name):
        return read((STREAMS / (name + ".events")).read_text())

    def names(self):
        return sorted(p.stem for p in STREAMS.glob("*.events"))

    def test_golden_files_are_as_each_document_says(self):
        self.assertGreater(len(self.names()), 15)
        for name in self.names():
            for vocabulary in ALL:
                with self.subTest(name, vocabulary=vocabulary):
                    said = read((STREAMS / ("%s.%s" % (name, vocabulary))).read_text())
                    for plan in turns(vocabulary, said):
                        vocabularies.check(vocabulary, plan)


del Acts, Plans
if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        Record.target = pathlib.Path(sys.argv[2])
        sys.exit(not unittest.TextTestRunner().run(Record()).wasSuccessful())
    del Record
    main()
