"""Conversations: what is said becomes a plan, a change, a decision or words; and is remembered (M009, M064, M071, M072, C25)."""
import json
import sqlite3

from harness import BatonTest, main, until
from probe import Probe, step, wait_up

CHAIN = {"goal": "three things", "steps": [step("a"), step("b"), step("c")]}


class Sessions(BatonTest):
    def setUp(self):
        self.d = self.daemon(config="", agents=False)
        self.hold = set()       # stepIds that are not answered
        self.said = {}          # stepId -> what to answer

    def probe(self, name="probe", work=None, **more):
        p = Probe(self.d, name, work=work or self.work, **{"capacity": 4, **more})
        self.addCleanup(p.close)
        wait_up(self.d, name)
        return p

    def work(self, r):
        if r["stepId"] in self.hold:
            return None
        return self.said.get(r["stepId"], {"outcome": "completed", "result": {"text": "done " + r["stepId"]}})

    def say(self, text, session="s", **more):
        return self.d.ask("session.say", sessionId=session, text=text, **more)

    def get(self, session="s", **more):
        return self.d.ask("session.get", sessionId=session, **more)

    def texts(self, session="s", **more):
        return [(m["role"], m["text"]) for m in self.get(session, **more).get("messages", [])]

    def plan(self, plan, session="s", **more):
        return self.d.submit(plan, sessionId=session, **more)

    def statuses(self, plan_id):
        return [s["status"] for s in self.d.ask("plan.get", planId=plan_id)["steps"]]

    def wait_statuses(self, plan_id, *want):
        until(lambda: self.statuses(plan_id) == list(want), 15, "%s, now %s" % (want, self.statuses(plan_id)))

    def turns(self, session="s"):
        return [e for e in self.d.events() if e["type"] in ("turn_start", "turn_end") and e.get("sessionId") == session]

    def wait_turn(self, turn_id, seconds=15):
        def ended():
            return [e for e in self.turns() if e["type"] == "turn_end" and e["turnId"] == turn_id]
        return until(ended, seconds, "turn %s ends\n%s" % (turn_id, self.d.log()))[0]

    def refused(self, code, word, **fields):
        answer = self.d.ask_raw("session.say", **fields)
        self.assertFalse(answer["ok"], answer)
        self.assertEqual(answer["error"]["code"], code, answer)
        self.assertIn(word, answer["error"]["message"])


class WithoutAModel(Sessions):
    def test_what_is_said_becomes_a_plan_and_its_answer_a_message(self):
        self.probe()
        said = self.say("do a thing")
        self.assertEqual(said["action"], "new_plan")
        end = self.wait_turn(said["turnId"])
        self.assertEqual((end["action"], end["turnPlanId"], end["message"]), ("new_plan", said["planId"], "done do-1"))
        view = self.get()
        self.assertEqual([(m["role"], m["text"]) for m in view["messages"]], [("user", "do a thing"), ("assistant", "done do-1")])
        self.assertEqual(view["messages"][1]["planId"], said["planId"])
        self.assertEqual([m["turnId"] for m in view["messages"]], [said["turnId"]] * 2)
        self.assertEqual([(p["planId"], p["status"]) for p in view["planHistory"]], [(said["planId"], "completed")])
        self.assertNotIn("openPlanId", view)
        self.assertEqual(view["messagesTotal"], 2)
        self.assertEqual(view["agentCallsSinceMemory"], 1)
        types = [e["type"] for e in self.d.events()]
        order = [types.index(t) for t in ("turn_start", "plan_generated", "plan_completed", "turn_end")]
        self.assertEqual(order, sorted(order))
        again = self.say("do a thing")  # complete -> new
        self.assertEqual(again["action"], "new_plan")
        self.assertNotEqual(again["planId"], said["planId"])
        self.wait_turn(again["turnId"])
        self.assertEqual([p["planId"] for p in self.get()["planHistory"]], [said["planId"], again["planId"]])

    def test_a_goal_that_nobody_can_do_is_answered_in_words(self):
        said = self.say("translate the bible into klingon")
        self.assertEqual(said["action"], "new_plan", "that is what was understood; without planId")
        self.assertIn("No plan could be made", said["reply"])
        self.assertEqual(said["reply"].count("no agent can do"), 1, said["reply"])
        self.assertNotIn("planId", said)
        self.assertEqual(self.texts()[1], ("assistant", said["reply"]))
        self.assertEqual([e["type"] for e in self.turns()], ["turn_start", "turn_end"])

    def test_a_plan_that_fails_or_is_stopped_says_so_in_its_message(self):
        self.probe()
        self.said["a"] = {"outcome": "failed", "failure": {"code": "X", "class": "VALIDATION_ERROR", "message": "no such file"}}
        self.say("status")  # the session begins
        failed = self.plan({"goal": "g", "steps": [step("a", maxRetries=0)]})
        self.d.wait_plan(failed)
        self.assertIn("The plan failed: Step 1 failed: no such file", self.texts()[-1][1])
        self.hold.add("b")
        stopped = self.plan({"goal": "g", "steps": [step("b")]})
        self.wait_statuses(stopped, "in_progress")
        self.assertEqual(self.say("stop")["action"], "stop")
        self.d.wait_plan(stopped)
        self.assertIn("Cancelled", self.texts()[-1][1])

    def test_steps_are_skipped_by_words(self):
        self.probe()
        self.hold.add("a")
        plan = self.plan({"goal": "g", "steps": [step(s) for s in "abcde"]})
        self.wait_statuses(plan, "in_progress", *["pending"] * 4)
        said = self.say("please skip step 2")
        self.assertEqual((said["action"], said["planId"], said["reply"]), ("skip_steps", plan, "Step 2 is skipped."))
        self.assertEqual(self.statuses(plan)[1], "skipped")
        self.assertEqual(self.say("skip steps 3 and 4")["reply"], "Steps 3 and 4 are skipped.")
        self.assertEqual(self.say("skip to step 5")["action"], "skip_to_step")
        self.assertEqual([s["status"] for s in self.d.wait_plan(plan)["steps"]], ["skipped"] * 4 + ["completed"])
        changes = [e for e in self.d.events(plan) if e["type"] == "plan_modified"]
        self.assertEqual([(e["kind"], e.get("reason", e.get("reasoning"))) for e in changes],
                         [("skip_steps", "please skip step 2"), ("skip_steps", "skip steps 3 and 4"), ("skip_to_step", "skip to step 5")])

    def test_what_does_not_fit_the_plan_is_said_and_changes_nothing(self):
        self.probe()
        self.hold.add("b")
        plan = self.plan(CHAIN)
        self.wait_statuses(plan, "completed", "in_progress", "pending")
        before = self.d.ask("plan.get", planId=plan)
        for text, word in (("skip step 9", "There is no step 9: the plan has 3"), ("skip step 1", "is over (completed)"),
                           ("skip steps 1-3", "Step 1"), ("skip to step 1", "is over"), ("yes", "Nothing waits"), ("no", "Nothing waits"),
                           ("approve step 2", "Nothing waits"), ("resume", "not paused"), ("new plan: do a thing", "say stop first"),
                           ("what is the meaning of this?", "Step 2 is under way"), ("status", "1 of 3 steps are over"),
                           ("just asking: should I stop?", "You can say"), ("step 2: the red one", "Nothing waits"),
                           ("skip step 4294967295", "You can say"), ("skip the header line and count", "You can say")):
            said = self.say(text)
            self.assertEqual(said["action"], "conversation_only", text)
            self.assertIn(word, said["reply"], text)
        after = self.d.ask("plan.get", planId=plan)
        for view in (before, after):
            view.pop("lastSeq", None)
            for s in view["steps"]:
                s.pop("elapsedMs", None)
        self.assertEqual((after["status"], after["revision"], self.statuses(plan)), (before["status"], before["revision"], ["completed", "in_progress", "pending"]))
        self.assertEqual(len(self.get()["planHistory"]), 1)

    def test_a_plan_is_paused_resumed_and_stopped_by_words(self):
        self.probe()
        self.hold.add("b")
        plan = self.plan(CHAIN)
        self.wait_statuses(plan, "completed", "in_progress", "pending")
        self.assertEqual(self.say("pause")["action"], "pause")
        self.assertIn("paused already", self.say("pause")["reply"])
        self.assertIn("is paused", self.say("where are we?")["reply"])
        self.assertEqual(self.say("continue")["action"], "resume")
        said = self.say("no, stop")
        self.assertEqual(said["action"], "stop")
        self.assertEqual(self.d.wait_plan(plan)["status"], "cancelled")
        self.assertIn("No plan is open", self.say("stop")["reply"])
        self.assertIn("is over (cancelled)", self.say("status")["reply"])

    def test_an_approval_takes_yes_and_no(self):
        self.probe()
        for word, action, end in (("yes, do it", "approve", "completed"), ("go ahead", "approve", "completed"),
                                  ("no, it is the wrong file", "reject", "failed")):
            plan = self.plan({"goal": "g", "steps": [step("a", requiresApproval=True)]})
            self.wait_statuses(plan, "waiting")
            said = self.say("what now")
            self.assertIn("waits for your approval: say yes or no", said["reply"])
            self.assertEqual(self.say(word)["action"], action)
            self.assertEqual(self.d.wait_plan(plan)["status"], end)
        self.assertIn("it is the wrong file", json.dumps(self.d.events(plan)))

    def test_a_sign_off_takes_yes_and_no(self):
        self.probe()
        for word, end, summary in (("approve", "completed", "done a"), ("reject", "cancelled", "The plan was cancelled before it had a result.")):
            plan = self.plan({"goal": "g", "steps": [step("a")]}, policy={"signoff": True})
            self.assertIn("waits for your approval", self.say("status")["reply"])
            for change in ("skip step 1", "pause"):
                said = self.say(change)
                self.assertEqual(said["action"], "conversation_only")
                self.assertIn("it waits for its sign-off. Say yes", said["reply"])
            self.say(word)
            view = self.d.wait_plan(plan)
            self.assertEqual(view["status"], end)
            self.assertIn(summary, view["summary"])

    def test_what_asks_for_input_takes_the_next_message_as_it_is(self):
        p = self.probe()
        asked = {"outcome": "needs_input", "need": {"kind": "text", "prompt": "which colour?"}}
        for words in ("the red one", "no", "answer: stop", "step 1: skip step 1"):
            self.said["a"] = asked
            plan = self.plan({"goal": "g", "steps": [step("a")]})
            self.wait_statuses(plan, "waiting")
            self.assertIn("which colour?", self.say("status")["reply"])
            del self.said["a"]
            self.assertEqual(self.say(words)["action"], "answer")
            self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
            self.assertEqual(p.of("step.execute")[-1]["feedback"], words.split(": ", 1)[-1])

    def test_a_step_for_people_is_done_with_what_they_say(self):
        self.probe()
        review = {"stepId": "r", "type": "human_review", "task": "look at it"}
        plan = self.plan({"goal": "g", "steps": [review, step("b", dependsOn=["r"])]})
        self.wait_statuses(plan, "waiting", "pending")
        self.assertEqual(self.say("it is fine, but the date is wrong")["action"], "answer")
        self.d.wait_plan(plan)
        self.assertEqual(self.d.ask("plan.result", planId=plan, stepId="r")["result"]["text"], "it is fine, but the date is wrong")
        plan = self.plan({"goal": "g", "steps": [review]})
        self.wait_statuses(plan, "waiting")
        self.assertEqual(self.say("no")["action"], "reject")
        self.assertEqual(self.d.wait_plan(plan)["status"], "failed")

    def test_when_several_steps_wait_it_must_be_said_which(self):
        self.probe()
        both = [step("a", requiresApproval=True), step("b", requiresApproval=True)]
        plan = self.plan({"goal": "g", "policy": {"maxConcurrency": 2}, "steps": both + [step("c", dependsOn=["a", "b"])]})
        self.wait_statuses(plan, "waiting", "waiting", "pending")
        self.assertIn("More than one step waits", self.say("yes")["reply"])
        self.assertEqual(self.say("approve step 2")["reply"], "Step 2 is approved.")
        self.assertEqual(self.say("yes")["reply"], "Step 1 is approved.")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")

    def test_a_client_key_makes_a_message_count_once(self):
        self.probe()
        self.hold.add("do-1")
        first = self.say("do a thing", clientKey="k1")
        again = self.say("do a thing", clientKey="k1")
        self.assertEqual((again["turnId"], again["planId"], again["existing"]), (first["turnId"], first["planId"], True))
        skip = self.say("skip step 7", clientKey="k2")
        repeated = self.say("skip step 7", clientKey="k2")
        self.assertEqual((repeated["reply"], repeated["action"], repeated["existing"]), (skip["reply"], skip["action"], True))
        self.refused("CONFLICT", "another message", sessionId="s", text="something else", clientKey="k1")
        self.assertIn("planId", self.say("do a thing", session="t", clientKey="k1"))  # a key belongs to its session
        self.assertEqual(len(self.get()["messages"]), 3)
        self.assertEqual(len([e for e in self.turns() if e["type"] == "turn_start"]), 2)

    def test_a_killed_daemon_still_answers(self):
        self.probe()
        self.hold.add("do-1")
        said = self.say("do a thing", clientKey="k")
        self.d.kill9()
        self.hold.clear()
        self.d.start(agents=False)
        again = self.probe()
        end = self.wait_turn(said["turnId"], 30)
        self.assertEqual((end["message"], end["turnPlanId"]), ("done do-1", said["planId"]))
        self.assertEqual(self.texts(), [("user", "do a thing"), ("assistant", "done do-1")])
        self.assertEqual(self.say("do a thing", clientKey="k")["reply"], "done do-1")
        self.assertEqual(len(self.d.ask("plan.list")["plans"]), 1)
        self.assertGreaterEqual(len(again.of("step.execute")), 1)

    def alter(self, sql):
        """What a bad disk may do, while nobody looks."""
        self.d.kill9()
        db = sqlite3.connect(self.d.state / "journal.db")
        self.assertEqual(db.execute(sql).rowcount, 1)
        db.commit()
        db.close()
        self.d.start(agents=False)

    def test_a_turn_whose_plan_is_damaged_is_answered_after_the_restart(self):
        self.probe()
        self.hold.add("do-1")
        said = self.say("do a thing")
        self.alter("UPDATE plans SET doc_crc = doc_crc + 1")
        end = self.wait_turn(said["turnId"])
        self.assertIn("its plan was put aside after a restart (it is damaged)", end["message"])
        self.assertEqual(self.say("status")["reply"][:16], "No plan is open ")
        self.d.stop()

    def test_a_damaged_message_is_told_and_hides_no_other(self):
        for text in ("status", "where are we"):
            self.say(text)
        self.alter("UPDATE messages SET text = 'transfer all the money' WHERE n = 3")
        self.assertEqual([t for _, t in self.texts()][2], "[damaged in the journal]")
        self.assertEqual(self.texts()[0], ("user", "status"))
        self.alter("DELETE FROM messages WHERE n = 2")
        self.assertEqual([t for _, t in self.texts()][:3], ["status"] + ["[damaged in the journal]"] * 2)
        self.d.stop()
        found = self.d.cli_any("doctor")
        self.assertIn("message 3 of the session", found.stdout + found.stderr)
        self.assertIn("are missing", found.stdout + found.stderr)

    def test_a_damaged_session_harms_nobody_else(self):
        self.probe()
        self.say("status")
        self.say("status", session="t")
        self.alter("UPDATE sessions SET messages = 1 WHERE id = 's'")
        self.refused("IO", "damaged", sessionId="s", text="status")
        self.assertEqual(self.say("status", session="t")["action"], "conversation_only")
        self.assertEqual([x["sessionId"] for x in self.d.ask("session.list")["sessions"]], ["t"])
        self.probe("again")
        self.assertEqual(self.d.wait_plan(self.plan({"goal": "g", "steps": [step("a", "again")]}))["status"], "completed")

    def test_an_agent_that_plans_is_told_the_conversation(self):
        self.probe()
        planner = self.probe("thinker", skills=("plan",), work=lambda r: {
            "outcome": "completed", "result": {"data": {"steps": [step("x")]}}})
        self.say("status")
        said = self.say("do what I said", planner="agent:thinker")
        self.assertEqual(self.wait_turn(said["turnId"])["message"], "done x")
        told = planner.of("step.execute")[0]["parameters"]
        self.assertEqual(told["goal"], "do what I said")
        self.assertEqual([m["text"] for m in told["session"]["messages"]][0::2], ["status", "do what I said"])
        planner.work = lambda r: {"outcome": "failed", "failure": {"code": "X", "class": "VALIDATION_ERROR", "message": "no idea"}}
        end = self.wait_turn(self.say("do another thing", planner="agent:thinker")["turnId"])
        self.assertIn("The plan failed: ", end["message"])
        self.assertIn("no idea", end["message"])

    def test_sessions_do_not_see_each_other(self):
        p = self.probe()
        self.hold.add("b")
        mine = self.plan(CHAIN, session="alice")
        self.wait_statuses(mine, "completed", "in_progress", "pending")
        for text in ("stop", "skip step 3", "pause", "status"):
            self.assertIn("No plan is open", self.say(text, session="bob")["reply"])
        self.say("the secret of bob is 4711", session="bob")
        self.assertEqual(self.statuses(mine), ["completed", "in_progress", "pending"])
        self.assertEqual(self.d.ask_raw("session.get", sessionId="bo")["error"]["code"], "NOT_FOUND")
        self.assertEqual(self.texts("alice"), [])
        self.assertEqual([x["planId"] for x in self.get("alice")["planHistory"]], [mine])
        self.say("status", session="alice")
        self.say("skip step 2", session="alice")
        self.d.wait_plan(mine)
        sent = json.dumps(p.of("step.execute"))
        self.assertNotIn("4711", sent)
        self.assertIn("skip step 2", sent)
        self.assertEqual({s["sessionId"] for s in self.d.ask("session.list")["sessions"]}, {"alice", "bob"})
        self.assertEqual(self.d.ask("session.list")["sessions"][0]["sessionId"], "alice")

    def test_two_sessions_are_stopped_apart(self):
        self.probe()
        self.hold.add("a")
        plans = {s: self.plan({"goal": s, "steps": [step("a")]}, session=s) for s in ("alice", "bob")}
        for p in plans.values():
            self.wait_statuses(p, "in_progress")
        self.say("stop", session="alice")
        self.assertEqual(self.d.wait_plan(plans["alice"])["status"], "cancelled")
        self.assertEqual(self.statuses(plans["bob"]), ["in_progress"])

    def test_agents_see_the_newest_messages_within_a_budget(self):
        p = self.probe()
        for i in range(15):
            self.say("skip step %d" % i)  # 30 messages
        self.say("do a thing")
        until(lambda: len(p.of("step.execute")) == 1, 15, "the step")
        context = p.of("step.execute")[0]["context"]
        self.assertEqual(len(context["messages"]), 20)
        self.assertEqual(context["messages"][-1]["text"], "do a thing")
        self.assertEqual({m["role"] for m in context["messages"]}, {"user", "assistant"})
        self.assertEqual(set(context["messages"][0]), {"role", "text", "timestamp"})
        self.assertEqual((context["summary"], context["messagesLeftOut"]), ("11 older messages are left out", 11))
        for i in range(12):
            self.say("skip step 1 %d %s" % (i, "x" * 8100), session="long")  # no rule: goals, refused
        self.say("do a thing", session="long")
        until(lambda: len(p.of("step.execute")) == 2, 15, "the step")
        messages = p.of("step.execute")[1]["context"]["messages"]
        self.assertLessEqual(sum(len(m["text"]) for m in messages), 65536)
        self.assertEqual(messages[-1]["text"], "do a thing")
        self.assertTrue(messages[0].get("truncated"))

    def test_messages_that_fit_are_not_said_to_be_left_out_and_one_too_many_is(self):
        p = self.probe()
        for n, left_out in ((9, None), (0, "1 older message is left out")):
            for i in range(n):
                self.say("skip step %d" % i)
            self.say("do a thing")
            until(lambda: p.of("step.execute"), 15, "the step")
            context = p.of("step.execute")[0]["context"]
            self.assertEqual(context.get("summary"), left_out)
            self.assertEqual(context.get("messagesLeftOut"), None if left_out is None else 1)
            until(lambda: len(self.texts()) == 20, 15, "its answer") if left_out is None else None
            p.requests.clear()

    def test_pages_of_messages(self):
        for _ in range(5):
            self.say("status")
        view = self.get(limit=3)
        self.assertEqual([m["n"] for m in view["messages"]], [8, 9, 10])
        self.assertEqual([m["n"] for m in self.get(before=8, limit=3)["messages"]], [5, 6, 7])
        self.assertEqual([m["n"] for m in self.get(before=2)["messages"]], [1])
        self.assertEqual(self.get(before=1).get("messages", []), [])

    def test_bad_input(self):
        self.refused("INVALID", "text", sessionId="s", text="")
        self.refused("INVALID", "text", sessionId="s", text=" \n\t ")
        self.refused("LIMIT", "text: 8193 bytes, at most 8192", sessionId="s", text="x" * 8193)
        self.refused("INVALID", "control", sessionId="s", text="a\x07b")
        self.refused("INVALID", "control", sessionId="s", text="a\x1b[2Jb")
        self.refused("INVALID", "sessionId", sessionId="", text="x")
        self.refused("INVALID", "sessionId", sessionId="a\nb", text="x")
        self.refused("LIMIT", "sessionId", sessionId="x" * 65, text="x")
        self.refused("INVALID", "text", sessionId="s")
        self.refused("INVALID", "sessionId", text="x")
        answer = self.d.ask_raw("session.get", sessionId="never")
        self.assertEqual(answer["error"]["code"], "NOT_FOUND")
        self.assertIn("never", answer["error"]["message"])
        self.assertEqual(self.d.ask("session.list").get("sessions", []), [])
        self.assertEqual([e["type"] for e in self.d.events()], ["supervisor_started"])
        self.probe()
        for more, word in (({"planner": "nobody"}, "nobody"), ({"policy": {"maxRetries": -1}}, "maxRetries"), ({"policy": "x"}, "policy")):
            said = self.say("do a thing", session="odd", **more)
            self.assertEqual(said["action"], "new_plan")
            self.assertIn(word, said["reply"])
        said = self.say("x" * 8192)
        self.assertEqual(said["action"], "new_plan")
        self.assertEqual(len(self.get()["messages"][0]["text"]), 8192)
        self.say("naïve Σ 漢字 🙂 \"quoted\" \\ back\nline")
        self.assertEqual(self.texts()[2][1], "naïve Σ 漢字 🙂 \"quoted\" \\ back\nline")


class WithAModel(Sessions):
    """The model is scripted: what it answers is what a model may answer, sense or nonsense."""

    def setUp(self):
        super().setUp()
        self.p = self.probe()
        self.answers = []
        self.model = self.probe("talker", work=self.think, skills=("converse", "summarize"))

    def think(self, r):
        if r["skill"] == "summarize":
            return {"outcome": "completed", "result": {"text": "in short: %d bytes" % len(r["parameters"]["text"])}}
        said = self.answers.pop(0)
        if said is None or "outcome" in said:
            return said
        return {"outcome": "completed", "result": {"data": said} if "action" in said else said}

    def asked(self):
        return [r for r in self.model.of("step.execute") if r["skill"] == "converse"]

    def meant(self, text, answer, **more):
        """What turn_end says to a text that the model answers so."""
        self.answers.append(answer)
        said = self.say(text, **more)
        self.assertNotIn("reply", said)
        return self.wait_turn(said["turnId"])

    def open(self):
        self.hold.add("b")
        plan = self.plan(CHAIN)
        self.wait_statuses(plan, "completed", "in_progress", "pending")
        return plan

    def test_the_model_is_told_the_plan_and_the_conversation(self):
        plan = self.open()
        self.say("status")
        self.meant("could we do without the last part?", {"action": "conversation_only", "reply": "We could.", "reasoning": "r"})
        asked = self.asked()[0]
        self.assertEqual((asked["purpose"], asked["sessionId"]), ("converse", "s"))
        told = asked["parameters"]
        self.assertEqual(told["text"], "could we do without the last part?")
        self.assertEqual((told["plan"]["planId"], told["plan"]["goal"], told["plan"]["status"]), (plan, "three things", "running"))
        self.assertEqual([(s["number"], s["stepId"], s["task"], s["status"]) for s in told["plan"]["steps"]],
                         [(1, "a", "do a", "completed"), (2, "b", "do b", "in_progress"), (3, "c", "do c", "pending")])
        self.assertEqual(told["lastResult"], "done a")
        self.assertEqual([(m["role"], m["text"]) for m in told["session"]["messages"]], self.texts()[:2])
        self.assertEqual(self.texts()[-1], ("assistant", "We could."))
        self.assertEqual(self.d.ask("plan.list")["plans"][0]["planId"], plan)
        self.assertEqual(len(self.d.ask("plan.list")["plans"]), 1, "errands are no plans")
        self.assertEqual([p["planId"] for p in self.get()["planHistory"]], [plan])

    def test_what_a_conversation_cost_is_told(self):
        plan = self.open()
        self.answers.append({"outcome": "completed", "result": {"data": {"action": "conversation_only", "reply": "Hm.", "reasoning": "r"}},
                             "usage": {"inputTokens": 700, "outputTokens": 30, "costMicros": 5}})
        self.wait_turn(self.say("what do you think of all this?")["turnId"])
        for fields, tokens in (({}, 730), ({"sessionId": "s"}, 730), ({"sessionId": "other"}, 0), ({"planId": plan}, 0)):
            total = self.d.ask("plan.cost", **fields)["total"]
            self.assertEqual(total.get("conversationTokens", 0), tokens, fields)
            self.assertEqual(sum(total["total"].get(k, 0) for k in ("inputTokens", "outputTokens")), tokens, fields)
        self.assertRegex(self.d.cli("cost"), r"conversation +700 +30 +730 ")

    def test_what_the_model_understood_is_done_like_what_is_typed(self):
        plan = self.open()
        end = self.meant("forget about the last bit", {"action": "skip_steps", "stepsToSkip": [3], "reasoning": "r"})
        self.assertEqual((end["action"], end["message"], end["turnPlanId"]), ("skip_steps", "Step 3 is skipped.", plan))
        (change,) = [e for e in self.d.events(plan) if e["type"] == "plan_modified"]
        self.assertEqual(change["reasoning"], "forget about the last bit (the model: r)")
        end = self.meant("take a breather", {"action": "pause"})
        self.assertEqual(end["action"], "pause")
        end = self.meant("off you go again", {"action": "resume"})
        self.assertEqual(end["action"], "resume")
        end = self.meant("I have had enough of this", {"action": "stop"})
        self.assertEqual(end["action"], "stop")
        self.assertEqual(self.d.wait_plan(plan)["status"], "cancelled")

    def test_a_wish_that_does_not_fit_becomes_words_and_changes_nothing(self):
        plan = self.open()
        for answer, word in (({"action": "skip_steps", "stepsToSkip": [9]}, "There is no step 9"),
                             ({"action": "skip_steps", "stepsToSkip": [1]}, "is over"),
                             ({"action": "skip_steps", "stepsToSkip": []}, "no steps to skip"),
                             ({"action": "skip_steps", "stepsToSkip": "all"}, "no steps to skip"),
                             ({"action": "skip_steps", "stepsToSkip": [2, {"n": 1}, -4, 1e30]}, "There is no step 0"),
                             ({"action": "skip_to_step", "targetStepNumber": None}, "There is no step 0"),
                             ({"action": "skip_to_step", "targetStepNumber": 4294967297}, "There is no step 0"),
                             ({"action": "skip_to_step"}, "There is no step 0"),
                             ({"action": "approve"}, "Nothing waits"), ({"action": "resume"}, "not paused"),
                             ({"action": "new_plan", "goal": "do a thing"}, "say stop first"),
                             ({"action": "format_disk"}, "You can say"), ({"action": ["stop"]}, "Step 2 is under way"),
                             ({"text": "just words"}, "just words"), ({"text": ""}, "Step 2 is under way"),
                             ({"outcome": "failed", "failure": {"code": "X", "class": "VALIDATION_ERROR", "message": "no idea"}}, "no idea")):
            end = self.meant("a strange wish", answer)
            self.assertEqual(end["action"], "conversation_only", answer)
            self.assertIn(word, end["message"], answer)
        self.assertEqual(self.statuses(plan), ["completed", "in_progress", "pending"])
        self.assertEqual(self.d.ask("plan.get", planId=plan)["revision"], 1)

    def test_who_only_asks_changes_nothing_whatever_the_model_wants(self):
        plan = self.open()
        end = self.meant("just asking: what if we stopped?", {"action": "stop"})
        self.assertEqual(end["action"], "conversation_only")
        self.assertIn("only asking", end["message"])
        self.assertEqual(self.statuses(plan), ["completed", "in_progress", "pending"])

    def test_rules_come_before_the_model(self):
        plan = self.open()
        self.say("skip step 3")
        self.say("status")
        self.assertEqual(self.asked(), [])
        self.assertEqual(self.statuses(plan)[2], "skipped")

    def test_after_a_plan_the_model_tells_a_question_from_a_new_goal(self):
        first = self.say("do a thing")  # no plan before: no question
        self.wait_turn(first["turnId"])
        self.assertEqual(self.asked(), [])
        end = self.meant("what did you find?", {"action": "conversation_only", "reply": "It is done."})
        self.assertEqual((end["message"], end.get("turnPlanId")), ("It is done.", None))
        self.assertIsNone(self.asked()[0]["parameters"]["plan"])
        end = self.meant("and now the other one", {"action": "new_plan", "goal": "do a thing"})
        self.assertEqual((end["action"], end["message"]), ("new_plan", "done do-1"))
        self.assertEqual([p["task"] for p in self.get()["planHistory"]], ["do a thing", "do a thing"])
        self.assertEqual(end["turnPlanId"], self.get()["planHistory"][-1]["planId"])
        end = self.meant("never mind", {"action": "stop"})
        self.assertIn("No plan is open", end["message"])

    def test_a_follow_up_keeps_the_policy_that_came_with_it(self):
        self.wait_turn(self.say("do a thing")["turnId"])
        self.answers.append({"action": "new_plan", "goal": "do a thing"})
        self.say("the other one, too", policy={"signoff": True}, planner="keyword")
        plan = until(lambda: self.get().get("openPlanId"), 15, "the new plan")
        self.assertEqual(self.d.ask("plan.get", planId=plan)["paused"], ["signoff"])
        self.assertEqual(self.say("yes")["action"], "approve")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")

    def test_a_question_to_the_model_outlives_the_daemon(self):
        plan = self.open()
        self.answers.append(None)
        said = self.say("could we do without the last part?")
        until(lambda: len(self.asked()) == 1, 15, "the model is asked")
        self.d.kill9()
        self.answers.append({"action": "skip_steps", "stepsToSkip": [3]})
        self.answers.append({"action": "skip_steps", "stepsToSkip": [3]})
        self.d.start(agents=False)
        self.model.register()
        self.p.register()
        end = self.wait_turn(said["turnId"], 60)
        self.assertEqual(end["action"], "skip_steps")
        self.assertEqual(self.statuses(plan)[2], "skipped")

    def test_a_long_conversation_is_summed_up_in_the_background(self):
        for i in range(12):
            self.say("status")  # 24 messages
        view = until(lambda: (lambda v: v if v.get("summarized", 0) > 0 else None)(self.get()), 15, "a summary")
        self.assertEqual(view["summarized"], 12)  # asked for when there were 22
        self.assertTrue(view["summary"].startswith("in short: "))
        digests = [r for r in self.model.of("step.execute") if r["skill"] == "summarize"]
        self.assertEqual(len(digests), 1, digests)
        self.assertIn("Person: status", digests[0]["parameters"]["text"])
        plan = self.plan({"goal": "g", "steps": [step("a")]})
        self.d.wait_plan(plan)
        context = self.p.of("step.execute")[-1]["context"]
        self.assertEqual(context["summary"], view["summary"])
        self.assertEqual(len(context["messages"]), 20)
        for i in range(10):
            self.say("status")
        until(lambda: self.get()["summarized"] > 12, 15, "the next summary")
        digests = [r for r in self.model.of("step.execute") if r["skill"] == "summarize"]
        self.assertIn("What was said before, in short: in short:", digests[1]["parameters"]["text"])
        self.assertEqual(self.d.ask("plan.list")["plans"][0]["planId"], plan)

    def test_a_summary_that_fails_is_tried_again_six_messages_later(self):
        good, self.fails = self.think, True

        def think(r):
            if r["skill"] == "summarize" and self.fails:
                return {"outcome": "failed", "failure": {"code": "X", "class": "VALIDATION_ERROR", "message": "no"}}
            return good(r)

        def talk(times):
            for i in range(times):
                self.say("status")  # and its answer: two messages

        def failed(n):
            until(lambda: self.d.log().count("no summary") >= n, 15, "%d failures are logged" % n)
            self.assertEqual(self.get()["summarized"], 0)

        self.model.work = think
        talk(11)
        failed(1)  # of 22 messages
        talk(1)
        self.d.kill9()
        self.d.start(agents=False)
        self.model.register()
        wait_up(self.d, "talker")
        talk(2)
        failed(2)  # of 28
        self.fails = False
        talk(3)
        until(lambda: self.get()["summarized"] == 24, 15, "the summary of 34 messages but the newest ten")
        talk(6)
        until(lambda: self.get()["summarized"] == 36, 15, "after a success it is as before: 46 messages but ten")
        asked = [r["parameters"]["text"] for r in self.model.of("step.execute") if r["skill"] == "summarize"]
        self.assertEqual([text.count("Person: status") for text in asked], [6, 9, 12, 6])


if __name__ == "__main__":
    main()
