"""The events in the words of other systems: `baton events --vocabulary`, on events of real daemons, and on rare ones.

Members and order are held against vocabularies.py, which was written from the documents, not from the translator. The streams
`turns`, `dry_run` and `synthesis_given_up` are made by hand.
Making the streams of tests/unit/compat/streams again:
    BATON_BIN=build/dev/bin python3 test_vocabulary.py --record tests/unit/compat/streams
"""
import json
import pathlib
import subprocess
import sys
import unittest

import harness
import vocabularies
from acts import CONFIG, Acts, say, step
from harness import main, until
from probe import Probe, wait_up
from probe import step as probe_step
from stage import Stage

STREAMS = harness.ROOT / "tests" / "unit" / "compat" / "streams"
ALL = sorted(vocabularies.CHECKS)
BROKEN = "echo 'the disk is full' >&2; exit 1"


class Writer(Probe):
    """Makes plans and answers; an answer is told in two pieces before it is whole."""

    def register(self):
        self.registration["card"]["skills"] = [{"id": s, "description": "Does " + s + "."} for s in ("plan", "synthesize")]
        return super().register()

    def __init__(self, daemon, plans, answers):
        self.left = {"plan": list(plans), "synthesize": list(answers)}
        super().__init__(daemon, "writer", work=self.write)

    def write(self, r):
        said = self.left[r["purpose"]].pop(0)
        if isinstance(said, str) and r["purpose"] == "synthesize":
            head = {"key": r["key"], "attempt": r["attempt"], "epoch": r["epoch"], "instanceId": self.me["instanceId"]}
            self.daemon.ask("step.progress", **head, n=1, text=said[:9])
            self.daemon.ask("step.progress", **head, n=2, text=said[9:])
        return {"outcome": "completed", "result": {"text": said} if isinstance(said, str) else {"data": said}}


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

    def plan_replan_elsewhere(self):
        """The new steps are of the same agent, then of another one; the planner takes its time."""
        self.act("plan", *[""] * self.asked("plan"), "sleep 0.1; " + say({"reuse": ["a"], "steps": [step("b"), probe_step("t", "told")]}))
        self.teller("told", lambda r: {"outcome": "completed", "result": {"text": "told"}})
        self.run_plan([step("a"), step("f", maxRetries=0), probe_step("c", "told")], goal="find another way",
                      policy={"onFailure": "replan", "replan": {"agent": "planner", "cooldownMs": 100}})

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
        self.d.ask("review.decide", reviewId=self.plan + "/r1", decision="reject", comment="not today")
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

    def writer(self, plans=(), answers=()):
        w = Writer(self.d, plans, answers)
        self.addCleanup(lambda: w.rep is None or w.close())
        wait_up(self.d, "writer")
        return w

    def plan_written(self):
        """The plan by an agent, at the second attempt, and the answer by one."""
        w = self.writer([{"steps": [step("x", agentId="nobody")]}, {"steps": [step("a"), step("b")]}], ["# Plan Execution Summary\n\nBoth are done."])
        self.plan = self.d.ask("plan.submit", goal="do both", planner="agent:writer", policy={"synthesis": {"agentId": "writer"}})["planId"]
        self.d.wait_plan(self.plan)
        w.close()

    def plan_written_in_vain(self):
        w = self.writer(["I would rather not", "no"])
        self.plan = self.d.ask("plan.submit", goal="do nothing", planner="agent:writer")["planId"]
        self.d.wait_plan(self.plan)
        w.close()

    def plan_interrupted(self):
        """No plan could be made, and a person does not want another try."""
        w = self.writer(["I would rather not", "no"])
        self.plan = self.d.ask("plan.submit", goal="do nothing", planner="agent:writer", policy={"onInvalidPlan": "interrupt"})["planId"]
        until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 15, "a person is asked")
        self.d.ask("review.decide", reviewId=self.plan + "/r1", decision="reject")
        self.d.wait_plan(self.plan)
        w.close()

    def plan_written_again(self):
        """Who writes the answer wants what failed to be tried once more."""
        self.act("w", BROKEN, say("done at last"))
        w = self.writer([], [{"retry": [{"stepId": "w", "reason": "it may work now"}]}, "It worked at last."])
        self.plan = self.d.submit({"steps": [step("a"), step("w", maxRetries=0, onFailure="continue")], "goal": "be stubborn",
                                   "policy": {"synthesis": {"agentId": "writer"}}})
        self.d.wait_plan(self.plan)
        w.close()

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
        if vocabulary == "agent-turn":
            plan = e.get("turnId", e.get("planId"))
        elif vocabulary != "ai-sdk":  # a handoff does not say which; it follows the start of its step
            plan = e.get("planId", plan)
        found.setdefault(plan, []).append(e)
        if vocabulary == "ai-sdk" and e["type"] in ("complete", "error"):
            plan += 1
    return found.values()


class Live(Plans):
    def test_every_kind_of_plan_is_told_as_each_document_says(self):
        for name, plan in self.run_all():
            types = {e["type"] for e in self.d.events(plan)}
            for vocabulary in ALL if name in ("parallel", "replan", "replan_elsewhere", "review", "written") else ("agent-turn", "ptc-runner"):
                with self.subTest(name, vocabulary=vocabulary):
                    said = read(self.d.cli("events", plan, "--vocabulary", vocabulary))
                    vocabularies.check(vocabulary, said)
                    self.assertTrue(said or name == "refused")  # given, and never executed
            recorded = {e["type"] for e in read((STREAMS / (name + ".events")).read_text())}
            self.assertEqual(types, recorded, "the recorded stream of %s is what daemons say: record it again" % name)

    def test_tool_and_arguments_come_from_the_plans_document_also_those_of_a_new_revision(self):
        self.acts("a", "b", "c")
        self.act("f", BROKEN)
        self.plan_replan()
        said = read(self.d.cli("events", self.plan, "--vocabulary", "agent-turn", "--type", "tool_call"))
        self.assertEqual([e["payload"]["toolName"] for e in said], ["act"] * 3)
        self.assertEqual([e["payload"]["args"] for e in said][-1], {"name": "b"})
        created = read(self.d.cli("events", self.plan, "--vocabulary", "agent-turn", "--type", "plan_created"))[0]["payload"]
        self.assertEqual(created["stepCount"], 3)
        self.assertEqual(created["steps"][0], {"tool": "act", "args": {"name": "a"}})

    def told(self, vocabulary, *types):
        args = ("--type", ",".join(types)) if types else ()
        return read(self.d.cli("events", self.plan, "--vocabulary", vocabulary, *args))

    def between(self, first, last):
        return self.events(last)[0]["tsMs"] - self.events(first)[0]["tsMs"]

    def test_step_that_is_replanned_has_its_own_error_and_time_and_the_next_execution_begins(self):
        self.acts("a", "b")
        self.act("f", BROKEN)
        self.plan_replan_elsewhere()
        ends = {e["stepId"]: e for e in self.told("plan-executor", "plan_step_completed")}
        self.assertIn("the disk is full", ends["f"]["error"])
        self.assertEqual([(e["fromAgent"]["agentId"], e["toAgent"]["agentId"]) for e in self.told("plan-executor", "agent_handoff")],
                         [("supervisor", "worker"), ("worker", "told")])
        said = self.told("ptc-runner")
        vocabularies.check("ptc-runner", said)
        self.assertEqual([(e["type"], e["payload"].get("task_id")) for e in said[3:10]],
                         [("task_started", "f"), ("task_failed", "f"), ("replan_started", "f"), ("replan_finished", None), ("execution_started", None),
                          ("task_skipped", "a"), ("task_started", "b")])
        self.assertIn("the disk is full", said[4]["payload"]["reason"])
        said = self.told("ptc-runner-telemetry")
        vocabularies.check("ptc-runner-telemetry", said)
        began = [e for e in self.events("plan_step_started") if e["stepId"] == "f"][0]["tsMs"]
        stop = [e for e in said if e["event"][2:] == ["task", "stop"] and e["metadata"]["task_id"] == "f"]
        self.assertEqual([e["measurements"]["duration"] for e in stop], [(self.events("replan_started")[0]["tsMs"] - began) * 10 ** 6])
        starts = [e["metadata"] for e in said if e["event"][2:] == ["execution", "start"]]
        self.assertEqual([(m["attempt"], [t["id"] for t in m["plan"]["tasks"]]) for m in starts], [(1, ["a", "f", "c"]), (2, ["a", "b", "t"])])
        self.assertEqual(self.d.ask("plan.history", planId=self.plan)["executionAttempts"], 2)

    def test_what_was_completed_before_a_replan_is_told_as_done_already_and_what_it_replaces_is_not(self):
        for new, skipped, tasks in ((step("b"), ["a"], ["a", "b"]), (step("a", task="do a in another way"), [], ["a"])):
            with self.subTest(new=new["stepId"]):
                self.acts("a", "b")
                self.act("f", *[BROKEN] * 2)
                self.act("plan", *[say({"steps": [new]})] * 2)
                self.run_plan([step("a"), step("f", maxRetries=0)], policy={"onFailure": "replan", "replan": {"agent": "planner", "cooldownMs": 1}})
                self.assertEqual([e["payload"] for e in self.told("ptc-runner", "task_skipped")],
                                 [{"task_id": x, "reason": "already_completed"} for x in skipped])
                self.assertEqual([[t["id"] for t in e["metadata"]["plan"]["tasks"]] for e in self.told("ptc-runner-telemetry", "execution.start")],
                                 [["a", "f"], tasks])

    def test_only_what_somebody_planned_is_told_as_planned(self):
        self.acts("a")
        self.act("plan", say({"steps": [step("a")]}))
        self.run_plan([step("a")], goal="given")
        self.assertEqual(self.told("ptc-runner", "planning_started", "planning_finished") + self.told("ptc-runner-telemetry", "plan.generated"), [])
        self.plan = self.d.ask("plan.submit", goal="asked for", planner="agent:planner", dryRun=True)["planId"]
        self.d.wait_plan(self.plan)
        self.assertEqual([e["type"] for e in self.told("ptc-runner")], ["planning_started", "planning_finished"])
        self.assertEqual(len(self.told("ptc-runner-telemetry", "plan.generated")), 1)

    def test_planning_that_is_called_off_has_an_end(self):
        self.act("plan", "exec sleep 60")
        self.plan = self.d.ask("plan.submit", goal="asked for", planner="agent:planner")["planId"]
        self.wait_asked("plan")
        self.d.ask("plan.cancel", planId=self.plan)
        self.d.wait_plan(self.plan)
        said = self.told("ptc-runner")
        vocabularies.check("ptc-runner", said)
        self.assertEqual([e["type"] for e in said], ["planning_started", "planning_failed"])
        self.assertIn("ancelled", said[1]["payload"]["reason"])

    def test_turn_and_summary_count_the_planning(self):
        self.acts("a", "b")
        self.act("plan", "sleep 0.3; " + say({"steps": [step("a"), step("b")]}))
        asked = []
        self.teller("sum", lambda r: asked.append(r["parameters"]["durationMs"]) or {"outcome": "completed", "result": {"text": "# It is done"}})
        self.plan = self.d.ask("plan.submit", goal="do both", planner="agent:planner", policy={"synthesis": {"agentId": "sum", "skill": "do"}})["planId"]
        self.d.wait_plan(self.plan)
        end = self.told("agent-turn", "turn_end")[0]["payload"]
        self.assertEqual((end["message"], end["duration"]), ("# It is done", self.between("planning_started", "plan_completed") * 10 ** 6))
        self.assertGreaterEqual(end["duration"], 300 * 10 ** 6)
        self.assertGreaterEqual(asked[0], 300)

    def test_result_that_is_json_is_told_as_that(self):
        self.act("n", say(42))
        self.act("t", say("42 apples"))
        self.run_plan([step("n"), step("t")])
        self.assertEqual([e["payload"]["result"] for e in self.told("agent-turn", "tool_result")], [42, "42 apples"])

    def test_plan_that_nobody_could_make_says_why_to_the_person_who_decides(self):
        w = self.writer([{"steps": [step("x", agentId="nobody")]}, {"steps": [step("x", agentId="nobody")]}])
        self.plan = self.d.ask("plan.submit", goal="do both", planner="agent:writer", policy={"onInvalidPlan": "interrupt"})["planId"]
        review = until(lambda: self.d.ask("review.list", planId=self.plan)["reviews"], 15, "a person is asked")[0]
        why = self.events("plan_paused")[0]["comment"]
        self.assertIn("Unknown agent: nobody", why)
        self.assertEqual((review["kind"], review["error"]), ("planning", why))
        self.assertEqual([r["error"] for r in json.loads(self.d.cli("reviews", "--json"))], [why])
        self.assertIn("error      " + why[:40], self.d.cli("reviews"))
        self.assertEqual(self.told("orchestrator-log"), [{"type": "ERROR_RECOVERY", "context": {"error": why, "node": "planner"}, "metadata": {"recoverable": True}}])
        self.d.ask("plan.cancel", planId=self.plan)
        self.d.wait_plan(self.plan)
        w.close()

    def test_following_tells_it_while_it_happens(self):
        self.acts("a")
        self.act("hold", "until [ -e go ]; do sleep 0.02; done; " + say("held"))
        command = [harness.BIN / "baton", "events", "--follow", "--vocabulary", "ptc-runner", "--state", self.d.state, "--timeout", "20s"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
            self.addCleanup(lambda: follower.poll() is None and follower.kill())
            self.plan = self.d.submit({"steps": [step("hold"), step("a")], "goal": "live"})
            said = [json.loads(follower.stdout.readline()) for _ in range(2)]
            self.assertEqual([e["type"] for e in said], ["execution_started", "task_started"])
            (self.d.work / "go").write_text("")
            said += [json.loads(follower.stdout.readline()) for _ in range(4)]
            vocabularies.check("ptc-runner", said)
            follower.terminate()
            self.assertEqual(follower.wait(20), 130)


class Told(unittest.TestCase):
    """What a supervisor of the test says."""

    def stage(self, events, plan="P"):
        s = Stage(self, {"plan.get": {"planId": plan, "status": "completed", "lastSeq": len(events)}})
        s.events = [{k: v for k, v in e.items() if k != "seq"} for e in events]
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

    def test_who_comes_in_the_middle_hears_the_rest_in_order(self):
        for name in ("parallel", "gates", "review", "written_again"):
            events = self.recorded(name)
            s = self.stage(events)
            for vocabulary in ALL:
                for after in (1, len(events) // 2):
                    with self.subTest(name, vocabulary=vocabulary, after=after):
                        out, said = s.cli("events", "--vocabulary", vocabulary, "--after", after)
                        self.assertEqual(said, "")
                        vocabularies.check(vocabulary, read(out), whole=False)

    def test_unknown_vocabulary_is_answered_with_the_known_ones(self):
        out, said = self.stage([]).cli("events", "--vocabulary", "s005", code=2)
        self.assertEqual(out, "")
        self.assertIn("unknown vocabulary 's005'", said)
        for vocabulary in ALL:
            self.assertIn(vocabulary, said)
        self.assertNotIn("s000", said)

    def test_alias_gives_the_same_bytes_as_its_readable_name(self):
        aliases = {"s000": "ai-sdk", "s001": "plan-executor", "s002": "agent-turn", "s003": "ptc-runner", "s003-telemetry": "ptc-runner-telemetry",
                   "s004": "orchestrator-log"}
        self.assertEqual(sorted(aliases.values()), ALL)
        s = self.stage(self.recorded("chain"))
        for alias, name in aliases.items():
            with self.subTest(alias):
                by_name, _ = s.cli("events", "--vocabulary", name)
                self.assertTrue(by_name)
                self.assertEqual(s.cli("events", "--vocabulary", alias)[0], by_name)

    def test_type_and_limit_are_about_the_words_that_are_told(self):
        s = self.stage(self.recorded("chain"))
        out, _ = s.cli("events", "--vocabulary", "agent-turn", "--type", "tool_call,turn_end")
        self.assertEqual([e["type"] for e in read(out)], ["tool_call", "tool_call", "turn_end"])
        out, _ = s.cli("events", "--vocabulary", "agent-turn", "--limit", "3")
        self.assertEqual([e["type"] for e in read(out)], ["turn_start", "plan_created", "plan_step_start"])

    def test_sse_is_one_data_line_and_an_empty_one_for_each(self):
        s = self.stage(self.recorded("chain"))
        plain, _ = s.cli("events", "--vocabulary", "ai-sdk")
        out, _ = s.cli("events", "--vocabulary", "ai-sdk", "--sse")
        self.assertEqual(out, "".join("data: %s\n\n" % line for line in plain.splitlines()))
        self.assertEqual(plain.count("\n"), 3)
        out, _ = s.cli("events", "--sse", "--limit", "1")
        self.assertEqual(json.loads(out[len("data: "):])["type"], "plan_generated")
        self.assertTrue(out.startswith("data: ") and out.endswith("}\n\n"))

    def test_a_session_has_its_turns_each_once(self):
        said = read((STREAMS / "turns.agent-turn").read_text())
        for name in ("turn_start", "turn_end"):
            found = [e["turnId"] for e in said if e["type"] == name]
            self.assertEqual(len(found), 4)
            self.assertEqual(len(set(found)), 4, found)


del Acts, Plans
if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        Record.target = pathlib.Path(sys.argv[2])
        sys.exit(not unittest.TextTestRunner().run(Record()).wasSuccessful())
    del Record
    main()
