"""A journal that an older version wrote, killed with plans open in many states: they go on under this one (G28).

The journal lies in tests/golden, with a note how it was made. Making one again, with the programs of that version:
    BATON_BIN=/path/to/old/bin python3 test_golden.py --make tests/golden/journal-NAME.db
"""
import pathlib
import shutil
import sqlite3
import sys
import unittest
import uuid

import harness
from harness import BatonTest, main, until
from probe import Probe, step, wait_up

FOLDER = harness.ROOT / "tests" / "golden"
SPACE = uuid.UUID("5F0B6D0E-6B1C-4C59-9C3A-0A4B8E3D2C10")


class Returning(Probe):
    """A probe whose instance id follows from its name: after a restart it is the same instance again."""

    def register(self):
        ident = str(uuid.uuid5(SPACE, self.registration["card"]["agentId"])).upper()
        self.me["instanceId"] = self.registration["instanceId"] = ident
        return super().register()


def old_work(r):
    said = {
        "mute": None,
        "broken": {"outcome": "failed", "failure": {"code": "UNAVAILABLE", "class": "SERVICE_UNAVAILABLE", "message": "closed today"}},
        "asks": {"outcome": "needs_input", "prompt": "which one?"},
        "dares": {"outcome": "needs_approval", "prompt": "really?"},
    }
    name = r["stepId"].split(".")[0]
    return said[name] if name in said else {"outcome": "completed", "result": {"text": "old " + r["stepId"]}}


PLANS = {
    "chain in the middle": {"steps": [step("a"), step("mute"), step("c")]},
    "graph with a failure": {"steps": [step("a"), step("broken", maxRetries=0, onFailure="continue"), step("c", dependsOn=["broken"]),
                                       step("d", dependsOn=["broken"], runIf="always"), step("mute", dependsOn=["a", "d"])]},
    "between attempts": {"steps": [step("a"), step("broken", maxRetries=3, backoff={"kind": "fixed", "initialMs": 1500})]},
    "asks for input": {"steps": [step("a"), step("asks"), step("c")]},
    "asks for approval": {"steps": [step("dares"), step("c")]},
    "unknown outcome": {"steps": [step("mute.unsafe", "fickle", effects="unsafe"), step("c")]},
    "reply lost": {"steps": [step("mute.lost", "lossy"), step("c")]},
    "nobody there": {"steps": [step("a", "late"), step("b", "late")], "policy": {"maxConcurrency": 1}},
    "has completed": {"steps": [step("a"), step("b")]},
    "has failed": {"steps": [step("a"), step("broken", maxRetries=0)]},
    "was cancelled": {"steps": [step("mute")]},
}
# What version 2 could and version 1 could not.
SINCE_2 = {
    "is paused": {"steps": [step("a"), step("late", "late")]},
    "was revised": {"steps": [step("a"), step("mute")]},
}
# What version 3 could besides: jobs, gates that an agent decides, sessions.
SINCE_3 = {
    "waits at a gate": {"steps": [step("a"), step("b", dependsOn=["a"], gate="thinker")]},
}
ASKED = {"is being planned", "belongs to a session"}  # goals whose plan an agent is to make
THINKER = ("plan", "gate")


class Make(BatonTest):
    """Not a test: writes the golden journal with the programs in BATON_BIN."""
    target = None

    def states(self, name):
        return [s["status"] for s in self.d.ask("plan.get", planId=self.plans[name])["steps"]]

    def runTest(self):
        self.d = self.daemon(config="", agents=False)
        self.plans = {}
        agents = [Returning(self.d, name, work=old_work, capacity=16) for name in ("probe", "fickle", "lossy")]
        self.d.ask("agent.register", card={"agentId": "late", "skills": [{"id": "do"}]}, capacity=1, sessionKey="k" * 32,
                   instanceId=str(uuid.uuid4()), endpoint="tcp://127.0.0.1:9")
        agents.append(Returning(self.d, "thinker", work=lambda r: None, capacity=16, skills=THINKER))
        for p in agents:
            wait_up(self.d, p.registration["card"]["agentId"])
        plans = PLANS | SINCE_2 | SINCE_3
        for name, plan in plans.items():
            if name != "between attempts":
                self.plans[name] = self.d.submit({"goal": name, **plan})
        expected = {
            "chain in the middle": ["completed", "in_progress", "pending"],
            "graph with a failure": ["completed", "failed", "skipped", "completed", "in_progress"],
            "asks for input": ["completed", "waiting", "pending"],
            "asks for approval": ["waiting", "pending"],
            "unknown outcome": ["in_progress", "pending"],
            "reply lost": ["in_progress", "pending"],
            "has completed": ["completed", "completed"],
            "has failed": ["completed", "failed"],
            "was cancelled": ["in_progress"],
            "is paused": ["completed", "pending"],
            "was revised": ["completed", "in_progress"],
        }
        for name, states in expected.items():
            until(lambda: self.states(name) == states, 15, "%s: %s" % (name, states))
        self.d.ask("plan.pause", planId=self.plans["is paused"])
        self.d.ask("plan.modify", planId=self.plans["was revised"], kind="insert", expectRevision=1, reasoning="one more",
                   steps={"afterStepId": "mute", "steps": [step("z", "late")]})
        self.plans["is being planned"] = self.d.ask("plan.submit", goal="is being planned", planner="agent")["planId"]
        self.d.ask("session.say", sessionId="talk", text="new plan: belongs to a session", planner="agent")
        until(lambda: len([r for r in agents[3].of("step.execute")]) == 3, 15, "a gate and two plannings")
        fickle, lossy = agents[1], agents[2]
        self.d.ask("agent.deregister", instanceId=fickle.me["instanceId"], epoch=fickle.epoch)
        until(lambda: self.states("unknown outcome")[0] == "waiting", 15, "a person is asked")
        lossy.close()  # its connections break: the reply is lost, the instance may come back
        self.d.ask("plan.cancel", planId=self.plans["was cancelled"])
        until(lambda: self.d.ask("plan.get", planId=self.plans["was cancelled"])["status"] == "cancelled", 15, "cancelled")
        self.plans["between attempts"] = self.d.submit({"goal": "between attempts", **plans["between attempts"]})
        until(lambda: self.d.ask("plan.get", planId=self.plans["between attempts"])["steps"][1].get("attempts", 0) >= 2, 15, "a retry")
        self.d.kill9()
        for p in agents[:2] + agents[3:]:
            p.close()
        db = sqlite3.connect(self.d.state / "journal.db")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA journal_mode=DELETE")
        db.close()
        shutil.copy(self.d.state / "journal.db", self.target)


class GoldenJournal(BatonTest):
    name, holds = "journal-c6e2f21.db", PLANS
    version = 1

    def setUp(self):
        self.d = harness.Daemon(self, config="")
        self.addCleanup(self.d.clean)
        self.addCleanup(self.d.check_event_order)
        self.d.state.mkdir(mode=0o700)
        shutil.copy(FOLDER / self.name, self.d.state / "journal.db")
        (self.d.state / "journal.db").chmod(0o600)
        self.d.start(agents=False)
        self.plans = {}
        for p in self.d.ask("plan.list", limit=100)["plans"]:
            self.plans[p["query"]] = p["planId"]

    def view(self, name):
        return self.d.ask("plan.get", planId=self.plans[name])

    def kept(self, name):
        """What of a plan that is over may not change, whoever has registered since."""
        view = self.view(name)
        for part in [view, *view["steps"]]:
            part.pop("agentName", None)
            part.pop("lastSeq", None)
        return view

    def agent(self, name, query=None, work=None, skills=()):
        p = Returning(self.d, name, capacity=16, query=query, skills=skills,
                      work=work or (lambda r: {"outcome": "completed", "result": {"text": "new " + r["stepId"]}}))
        self.addCleanup(p.close)
        wait_up(self.d, name)
        return p

    def ended(self, name):
        view = self.d.wait_plan(self.plans[name])
        return view["status"], view["outcome"], [s["status"] for s in view["steps"]]

    def test_all_that_was_open_goes_on_and_all_that_was_over_stays_as_it_was(self):
        self.assertEqual(set(self.plans), set(self.holds))
        over = {name: self.kept(name) for name in ("has completed", "has failed", "was cancelled")}
        self.assertEqual([v["status"] for v in over.values()], ["completed", "failed", "cancelled"])
        self.assertEqual(self.view("chain in the middle")["revision"], 1)
        reviews = {r["planId"]: r for r in self.d.ask("review.list")["reviews"]}
        for name in ("asks for input", "asks for approval", "unknown outcome"):  # opened before ids had serials
            plan, step_id, serial = reviews[self.plans[name]]["reviewId"].split("/")
            self.assertEqual((plan, serial, "askedAt" in reviews[self.plans[name]]), (self.plans[name], "r1", False))
            listed = self.d.ask("review.list", planId=plan)["reviews"][0]
            asked = [e for e in self.d.events(plan) if e["type"] == "plan_step_waiting"][-1]
            self.assertEqual((listed["askedAt"], listed["reviewId"]), (asked["timestamp"], reviews[plan]["reviewId"]))
            if asked["reviewId"] != reviews[plan]["reviewId"]:
                late = self.d.ask_raw("review.decide", reviewId=asked["reviewId"], decision="approve")
                self.assertIn(reviews[plan]["reviewId"], late["error"]["message"])
        kinds = {name: reviews[self.plans[name]]["kind"] for name in ("asks for input", "asks for approval", "unknown outcome")}
        self.assertEqual(kinds, {"asks for input": "input", "asks for approval": "approval", "unknown outcome": "unknown_outcome"})

        def forgot(r):
            return {"key": r["key"], "state": "unknown"}

        probe = self.agent("probe", query=forgot)
        self.agent("lossy", query=forgot)
        self.agent("fickle")
        self.agent("late")
        done = ("completed", "success")
        self.assertEqual(self.ended("chain in the middle"), (*done, ["completed"] * 3))
        self.assertEqual(self.ended("graph with a failure"),
                         ("completed", "partial", ["completed", "failed", "skipped", "completed", "completed"]))
        self.assertEqual(self.ended("between attempts"), (*done, ["completed"] * 2))
        self.assertEqual(self.ended("reply lost"), (*done, ["completed"] * 2))
        self.assertEqual(self.ended("nobody there"), (*done, ["completed"] * 2))
        for name, words in (("asks for input", "the second"), ("asks for approval", "yes"), ("unknown outcome", "again")):
            self.d.ask("review.decide", reviewId=reviews[self.plans[name]]["reviewId"], decision="approve", comment=words)
            status, outcome, steps = self.ended(name)
            self.assertEqual((status, outcome, set(steps)), (*done, {"completed"}), name)
            (told,) = self.d.ask("plan.history", planId=self.plans[name])["reviews"]
            self.assertEqual((told["decision"], told["comment"]), ("approve", words))
        told = [r for r in probe.of("step.execute") if r["stepId"] == "asks"]
        self.assertEqual(told[0]["feedback"], "the second")
        self.assertEqual([d["stepId"] for d in told[0]["context"]["dependencies"]], ["a"])
        self.assertIn("old a", told[0]["context"]["text"])
        for name, view in over.items():
            self.assertEqual(self.kept(name), view)
        seqs = [e["seq"] for e in self.d.events()]
        self.assertEqual(seqs, list(range(1, len(seqs) + 1)), "one sequence over both versions")

    def test_an_older_program_refuses_the_journal_from_then_on(self):
        """It would run plans without the gates and approvals that it does not know of."""
        self.d.stop()
        db = sqlite3.connect(self.d.state / "journal.db")
        self.addCleanup(db.close)
        self.assertGreater(db.execute("PRAGMA user_version").fetchone()[0], self.version)

    def test_old_plans_can_be_changed_repeated_and_paused_as_new_ones(self):
        plan = self.plans["nobody there"]
        self.d.ask("plan.pause", planId=plan)
        changed = self.d.ask("plan.modify", planId=plan, kind="insert", expectRevision=1, reasoning="one more",
                             steps={"afterStepId": "b", "steps": [step("z", "late")]})
        self.assertEqual(changed["revision"], 2)
        again = self.d.ask("plan.retry", planId=self.plans["has failed"])["planId"]
        self.d.kill9()
        self.d.start(agents=False)
        self.agent("probe")
        self.agent("late")
        self.d.ask("plan.resume", planId=plan)
        self.assertEqual(self.ended("nobody there"), ("completed", "success", ["completed"] * 3))
        view = self.d.wait_plan(again)
        self.assertEqual((view["status"], view["steps"][0].get("reason")), ("completed", "already_completed"))


class GoldenJournalOfVersion2(GoldenJournal):
    name, holds = "journal-5273ec8.db", PLANS | SINCE_2
    version = 2

    def test_what_was_paused_waits_and_what_was_revised_goes_on_with_its_new_step(self):
        paused, revised = self.view("is paused"), self.view("was revised")
        self.assertEqual((paused["status"], paused["steps"][0]["status"]), ("waiting", "completed"))
        self.assertEqual((revised["revision"], len(revised["steps"])), (2, 3))
        self.agent("probe", query=lambda r: {"key": r["key"], "state": "unknown"})
        self.agent("late")
        self.assertEqual(self.ended("was revised"), ("completed", "success", ["completed"] * 3))
        self.assertEqual(self.view("is paused")["status"], "waiting")
        self.d.ask("plan.resume", planId=self.plans["is paused"])
        self.assertEqual(self.ended("is paused"), ("completed", "success", ["completed"] * 2))


class GoldenJournalOfVersion3(GoldenJournalOfVersion2):
    name, holds = "journal-a750484.db", {**PLANS, **SINCE_2, **SINCE_3, **dict.fromkeys(ASKED)}
    version = 3

    def test_jobs_gates_and_turns_that_were_open_go_on(self):
        def thinks(r):
            said = {"plan": {"steps": [{"stepId": "n", "agentId": "probe", "skill": "do", "task": "do n"}]}, "gate": {"sufficient": True}}
            return {"outcome": "completed", "result": {"data": said[r["purpose"]]}}

        def forgot(r):
            return {"key": r["key"], "state": "unknown"}

        self.assertEqual([m["role"] for m in self.d.ask("session.get", sessionId="talk")["messages"]], ["user"])
        self.agent("probe", query=forgot)
        self.agent("thinker", query=forgot, work=thinks, skills=THINKER)
        for name in ("waits at a gate", *sorted(ASKED)):
            self.assertEqual(self.ended(name)[:2], ("completed", "success"), name)
        talk = until(lambda: [m for m in self.d.ask("session.get", sessionId="talk")["messages"] if m["role"] == "assistant"], 15, "an answer")
        self.assertEqual(talk[0].get("planId"), self.plans["belongs to a session"])


class GoldenJournalOfVersion4(GoldenJournalOfVersion3):
    name = "journal-9ec755f.db"
    version = 4

    def test_plans_without_owners_are_those_of_the_token(self):
        self.assertEqual({p["owner"] for p in self.d.ask("plan.list", limit=100)["plans"]}, {"local"})
        self.assertEqual(self.d.ask("session.get", sessionId="talk")["owner"], "local")


class GoldenJournalOfVersion5(GoldenJournalOfVersion4):
    name = "journal-8df3fb8.db"
    version = 5


class GoldenJournalOfVersion6(GoldenJournalOfVersion5):
    name = "journal-b80b7cf.db"
    version = 6


class GoldenJournalOfVersion7(GoldenJournalOfVersion6):
    name = "journal-59b88f1.db"
    version = 7


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--make":
        Make.target = pathlib.Path(sys.argv[2]).resolve()
        result = unittest.TextTestRunner().run(Make())
        sys.exit(0 if result.wasSuccessful() else 1)
    del Make  # the loader would run it
    main()
