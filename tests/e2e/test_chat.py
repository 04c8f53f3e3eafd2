"""`baton chat`: messages, plans that answer while one types, interrupts, a daemon that goes and comes back.

Piped and Typed: on a stage (stage.py), through a pipe and on a pseudo terminal. Terminal: in tmux, with a real daemon.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import termios
import unittest

from harness import BIN, BatonTest, main, until
from probe import Probe, step, wait_up
from stage import Refusal, Stage
from talk import Talk, Tmux

PLAN = "00000000-0000-7000-8000-0000000000AA"
OTHER = "00000000-0000-7000-8000-0000000000BB"


def stepped(type_, i=0, **more):
    return {"type": type_, "stepId": "ab"[i], "stepIndex": i, **more}


MADE = {"type": "plan_generated", "estimatedSteps": 2, "steps": [
    {"stepId": "a", "stepIndex": 0, "agentId": "calc", "task": "add\x1b[2J"}, {"stepId": "b", "stepIndex": 1, "agentId": "calc", "task": "say"}]}
WAITS = stepped("plan_step_waiting", 1, reviewId=PLAN + "/b/r1", kind="before_step", prompt="Say it?", attempt=1)


def end(summary="it is 42", status="completed", **more):
    return {"type": "plan_completed", "status": status, "outcome": "success", "summary": summary, **more}


class Session:
    """What the stage does with a message: `turns` maps a text to (what plans do, the fields of turn_end)."""

    def __init__(self, test, turns, **answers):
        self.turns = turns
        self.keys = {}
        self.stage = Stage(test, {"session.say": self.say, "plan.get": {"planId": PLAN, "status": "running", "lastSeq": 0, "steps": []},
                                  "session.get": lambda r: {"sessionId": r["sessionId"]},
                                  **answers}, bus=True)
        self.session = None

    def tell(self, *events, plan=PLAN):
        self.stage.events += [{"sessionId": self.session, "planId": plan, **e} for e in events]

    def say(self, r):
        self.session = r["sessionId"]
        key = r["clientKey"]
        if key in self.keys:
            return {"turnId": self.keys[key], "existing": True}
        turn = self.keys[key] = "turn-%d" % (len(self.keys) + 1)
        happens, ends = self.turns[r["text"]] if r["text"] in self.turns else ((), {"message": "heard: " + r["text"]})
        self.tell({"type": "turn_start", "turnId": turn, "message": r["text"]}, plan="")
        self.tell(*happens)
        if ends is not None:
            self.tell({"type": "turn_end", "turnId": turn, **ends}, plan="")
        return {"turnId": turn, **({"planId": PLAN} if happens else {})}

    def said(self):
        return [r["text"] for r in self.stage.of("session.say")]


DONE = stepped("plan_step_completed", status="completed", durationMs=5)
SUM = ((MADE, stepped("plan_step_started", agentId="calc", attempt=1), DONE, end()), {"message": "it is 42", "turnPlanId": PLAN})


class Piped(unittest.TestCase):
    def test_each_line_is_a_turn_and_what_is_told_twice_is_shown_once(self):
        s = Session(self, {"add": SUM})
        out, said = s.stage.cli("chat", "--session", "S", "--planner", "llm", "--policy", '{"planTimeoutMs": 9}', stdin="add\n\n  hello \n/foo\nadd")
        self.assertEqual(out, "it is 42\nheard: hello\nit is 42\n")
        self.assertEqual(s.said(), ["add", "hello", "add"])
        first = s.stage.of("session.say")[0]
        self.assertEqual({k: first[k] for k in ("sessionId", "planner", "policy")}, {"sessionId": "S", "planner": "llm", "policy": {"planTimeoutMs": 9}})
        self.assertEqual(len({r["clientKey"] for r in s.stage.of("session.say")}), 3)
        for word in ("plan %s, 2 steps" % PLAN, "1 a → calc: add?[2J", "▸ 1 a → calc", "✓ 1 a 5 ms", "no such command: /foo"):
            self.assertIn(word, said)

    def test_next_line_waits_for_the_end_of_the_turn_before(self):
        s = Session(self, {"add": ((MADE,), None)})

        def finish(r):
            self.assertEqual(s.said(), ["add"], "the second line is still to come")
            s.tell(end())
            s.tell({"type": "turn_end", "turnId": "turn-1", "message": "it is 42", "turnPlanId": PLAN}, plan="")
            return {"planId": PLAN, "status": "running", "lastSeq": 0, "steps": []}
        s.stage.answers["plan.get"] = finish
        self.assertEqual(s.stage.cli("chat", stdin="add\nhello\n")[0], "it is 42\nheard: hello\n")

    def test_exit_code_is_that_of_the_last_turns_plan(self):
        failed = ((MADE, end("", "failed", failureReason="no\x1b luck")), {"turnPlanId": PLAN, "message": "it failed"})
        s = Session(self, {"add": SUM, "fail": failed})
        self.assertIn("✗ the plan failed: no? luck", s.stage.cli("chat", stdin="add\nfail\n", code=3)[1])
        s.stage.cli("chat", stdin="fail\nadd\n")
        s.stage.cli("chat", stdin="fail\nhello\n", code=3)  # hello is about no other plan
        self.assertEqual(s.stage.cli("chat", stdin="")[0], "")

    def test_turn_of_which_no_plan_could_be_made_ends_with_2(self):
        none = {"message": "No plan could be made: nobody flies", "action": "new_plan"}
        s = Session(self, {"fly": ((), none), "add": SUM})
        self.assertEqual(s.stage.cli("chat", stdin="fly\n", code=2)[0], none["message"] + "\n")
        self.assertEqual(s.stage.cli("chat", stdin="fly\nadd\n")[0], none["message"] + "\nit is 42\n")
        s.stage.cli("chat", stdin="add\nfly\n", code=2)

    def test_what_was_refused_or_stopped_is_told_once(self):
        nothing = "I wasn't able to complete the plan due to errors."
        for done, shown in ((0, ""), (1, "42\n")):
            over = end("42" if done else nothing, "cancelled", failureReason="Cancelled: stop", counts={"completed": done, "cancelled": 1})
            s = Session(self, {"add": ((MADE,), {"message": "I begin", "turnPlanId": PLAN, "action": "x"})})

            def stop(r):
                if r["text"] != "stop":
                    return s.say(r)
                s.tell(over)
                s.tell({"type": "turn_end", "turnId": "turn-1", "turnPlanId": PLAN, "action": "new_plan",
                        "message": "Cancelled: stop" + ("\n\n42" if done else "")}, plan="")
                s.tell({"type": "turn_end", "turnId": "turn-2", "turnPlanId": PLAN, "action": "stop", "message": "The plan is stopped."}, plan="")
                return {"turnId": "turn-2", "planId": PLAN, "action": "stop", "reply": "The plan is stopped."}
            s.stage.answers["session.say"] = stop
            out, said = s.stage.cli("chat", stdin="add\nstop\n", code=5)
            self.assertEqual(out, "I begin\nThe plan is stopped.\n" + shown)
            self.assertEqual(said.count("Cancelled: stop"), 1)

    def test_plan_whose_end_comes_after_the_turns_is_waited_for(self):
        s = Session(self, {"add": ((MADE,), {"message": "I begin", "turnPlanId": PLAN})})
        p = subprocess.Popen([BIN / "baton", "chat", "--state", s.stage.state], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
        p.stdin.write("add\n")
        p.stdin.close()
        self.assertEqual(p.stdout.readline(), "I begin\n")
        s.tell(end())
        self.assertEqual((p.stdout.read(), p.wait(20)), ("it is 42\n", 0))
        p.stdout.close()

    def test_plan_that_waits_for_a_person_gets_the_next_line_and_ends_with_4_behind_the_last(self):
        waiting = {"planId": PLAN, "status": "waiting", "steps": [{"stepId": "b", "stepIndex": 1, "status": "waiting"}]}
        s = Session(self, {"add": ((MADE, WAITS), None), "yes": ((end("done"),), {"message": "done", "turnPlanId": PLAN})},
                    **{"plan.get": lambda r: {**waiting, "lastSeq": len(s.stage.events)}})
        said = s.stage.cli("chat", stdin="add\n", code=4)[1]
        self.assertIn("? 2 b: Say it? (yes or no)", said)
        self.assertIn("the plan goes on: baton status " + PLAN, said)
        self.assertEqual(s.stage.cli("chat", stdin="add\nyes\n")[0], "done\n")
        self.assertEqual([r.get("reviewId") for r in s.stage.of("session.say")[1:]], [None, PLAN + "/b/r1"], "what the yes is for")

    def test_what_was_decided_elsewhere_is_not_what_the_next_line_answers(self):
        for over in ({"type": "review_decided", "reviewId": PLAN + "/b/r1", "stepId": "b", "decision": "approve"},
                     stepped("plan_step_completed", 1, status="skipped")):
            s = Session(self, {"add": ((MADE, WAITS, over), {"message": "I begin", "turnPlanId": PLAN}), "bye": ((end(),), {"turnPlanId": PLAN})})
            s.stage.cli("chat", stdin="add\nbye\n")
            self.assertEqual([r.get("reviewId") for r in s.stage.of("session.say")], [None, None])

    def test_refusals_are_said_and_what_is_no_message_is_not_sent(self):
        s = Session(self, {}, **{"session.say": Refusal("INVALID", "text: too odd")})
        self.assertIn("too odd", s.stage.cli("chat", stdin="x\n", code=2)[1])
        s = Session(self, {})
        self.assertIn("at most 8192 bytes", s.stage.cli("chat", stdin="x" * 9000 + "\n", code=2)[1])
        s.stage.cli("chat", "--policy", "[", stdin="x\n", code=2)
        s.stage.cli("chat", "--session", "x" * 65, stdin="x\n", code=2)
        s.stage.cli("chat", "goal", stdin="x\n", code=2)
        self.assertEqual(s.said(), [])
        os.unlink(os.path.join(s.stage.state, "endpoints.json"))
        self.assertIn("baton up", s.stage.cli("chat", stdin="x\n", code=6)[1])

    def test_input_of_2_mib_is_read_as_fast_as_it_comes(self):
        s = Session(self, {})
        self.assertIn("at most 8192 bytes", s.stage.cli("chat", stdin="x" * (2 << 20) + "\n", code=2)[1])  # within its 60 s
        self.assertEqual(s.said(), [])

    def test_line_that_is_no_text_is_named_and_left_out(self):
        s = Session(self, {})
        done = subprocess.run([BIN / "baton", "chat", "--state", s.stage.state], input=b"hello\nab\xff\xfe\n", capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (2, b"heard: hello\n"), done.stderr)
        self.assertIn(b"line 2 is not UTF-8 text, from its byte 3 on", done.stderr)
        self.assertEqual(s.said(), ["hello"])

    def test_session_that_does_not_exist_is_begun_only_when_that_is_wanted(self):
        no = {"session.get": Refusal("NOT_FOUND", "no such session"), "session.list": {"sessions": [{"sessionId": "monday"}]}}
        s = Session(self, {}, **no)
        said = s.stage.cli("chat", "--session", "mondya", stdin="x\n", code=7)[1]
        self.assertIn("there is no session 'mondya'; did you mean 'monday'? baton sessions lists them; with --new it is begun", said)
        self.assertEqual(s.said(), [])
        self.assertIn("a new session: mondya", s.stage.cli("chat", "--session", "mondya", "--new", stdin="x\n")[1])
        self.assertEqual(s.session, "mondya")
        s.stage.cli("chat", "--new", stdin="x\n", code=2)

    def test_commands_are_short_for_messages(self):
        s = Session(self, {"add": SUM})
        out, said = s.stage.cli("chat", "--session", "S", stdin="/skip 2\n/stop\n/status\n/new\nhello\n/quit\nnever\n")
        self.assertEqual(s.said(), ["skip step 2", "stop", "hello"])
        self.assertEqual(s.stage.of("session.say")[1]["sessionId"], "S")
        self.assertNotEqual(s.stage.of("session.say")[2]["sessionId"], "S")
        self.assertIn("no plan yet", said)
        self.assertIn("--session " + s.session, said)

    def test_json_gives_each_turn_on_a_line(self):
        s = Session(self, {"add": SUM})
        lines = [json.loads(line) for line in s.stage.cli("chat", "--json", stdin="add\nhello\n")[0].splitlines()]
        self.assertEqual([(x["turnId"], x["message"]) for x in lines], [("turn-1", "it is 42"), ("turn-2", "heard: hello")])

    def test_answer_that_is_longer_than_its_event_is_fetched(self):
        long = "".join("%d " % i for i in range(1000))
        s = Session(self, {"add": ((MADE, end(long[:1000], summaryLen=len(long))), {"message": long[:2000], "turnPlanId": PLAN})},
                    **{"plan.result": {"planId": PLAN, "status": "completed", "aggregatedResult": long}})
        self.assertEqual(s.stage.cli("chat", stdin="add\n")[0], long + "\n")

    def test_other_sessions_are_none_of_our_business(self):
        s = Session(self, {"add": ((MADE, end("theirs", sessionId="T"), end("ours")), {"message": "ours"})})
        self.assertEqual(s.stage.cli("chat", "--session", "S", stdin="add\n")[0], "ours\n")


class Typed(unittest.TestCase):
    def talk(self, turns=None, *args, **more):
        self.s = Session(self, turns or {}, **more)
        return Talk(self, self.s.stage.state, *args)

    def test_what_is_typed_stays_below_what_comes_and_can_be_edited(self):
        t = self.talk({"add": ((MADE,), None)})
        t.until(r"to come back: baton chat --session \S+\n.*\n> $")
        t.type("add\r")
        t.until(r"2 b → calc: say\n> $")
        t.type("and thänx")
        t.until("\n> and thänx$")
        self.s.tell(DONE)
        t.until(r"✓ 1 a 5 ms\n> and thänx$")
        t.type("\x7f\x7f\x7f\x7f")
        t.until("\n> and t$")
        t.type("\x17\x1b[A\x1bOPthe \tcat\x15go on\r")
        self.assertEqual(t.until("heard: go on\n> $").count("heard"), 1)
        self.assertEqual(self.s.said(), ["add", "go on"])

    def test_long_line_shows_its_end(self):
        t = self.talk()
        t.until("> $")
        t.type("x" * 60 + "y" * 60)
        t.until(r"\n> x{37}y{60}$")
        t.type("\x15a\r")
        t.until("heard: a\n> $")

    def test_answer_is_streamed_once_and_hostile_text_is_tamed(self):
        pieces = [{"type": "text_delta", "index": i, "text": text} for i, text in enumerate(("The sum\n", "is\x1b[2J ", "42."))]
        t = self.talk({"add": ((MADE, *pieces), None)})
        t.until("> $")
        t.type("add\r")
        t.until(r"The sum\nis\?\[2J 42.$")
        self.s.tell(end("The sum\nis\x1b[2J 42."))
        self.s.tell({"type": "turn_end", "turnId": "turn-1", "message": "The sum\nis\x1b[2J 42.", "turnPlanId": PLAN}, plan="")
        screen = t.until(r"is\?\[2J 42.\n> $")
        self.assertEqual(screen.count("The sum"), 1)
        self.assertNotIn(b"\x1b[2J", t.bytes)

    def test_interrupt_once_stops_watching_and_twice_leaves_while_the_plan_goes_on(self):
        t = self.talk({"add": ((MADE,), None)})
        t.until("> $")
        t.type("add\r")
        t.until("2 b → calc")
        t.interrupt()
        t.until("the plan goes on unwatched: baton status %s; .*\n> $" % PLAN)
        self.s.tell(DONE, end())
        screen = t.until("✓ the plan completed: baton result %s\n> $" % PLAN)
        self.assertNotIn("5 ms", screen)
        self.assertNotIn("it is 42", screen)
        t.interrupt()
        self.assertEqual(t.end(), 130)
        self.assertEqual(termios.tcgetattr(t.slave), t.before)

    def test_interrupt_while_nothing_runs_asks_once_more(self):
        t = self.talk()
        t.until("> $")
        t.interrupt()
        t.until("Ctrl-C again leaves")
        t.type("hello\r")
        t.until("heard: hello\n> $")
        t.interrupt()
        t.until("(?s)Ctrl-C again leaves.*Ctrl-C again leaves")
        t.interrupt()
        self.assertEqual(t.end(), 130)

    def test_end_of_input_and_quit_leave_and_say_how_to_come_back(self):
        for keys in ("\x04", "/quit\r"):
            t = self.talk({"add": ((MADE,), None)})
            t.until("> $")
            t.type("add\r")
            t.until("2 b → calc")
            t.type(keys)
            self.assertEqual(t.end(), 0)
            screen = t.until("--session %s\n" % self.s.session)
            self.assertIn("the plan goes on: baton status " + PLAN, screen)
            self.assertEqual(termios.tcgetattr(t.slave), t.before)

    def test_whatever_ends_it_leaves_the_terminal_as_it_was(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            t = self.talk()
            t.until("> $")
            t.process.send_signal(number)
            self.assertEqual(t.end(), 130)
            self.assertEqual(termios.tcgetattr(t.slave), t.before)

    def test_who_stops_it_has_the_terminal_as_it_was_until_it_goes_on(self):
        t = self.talk()
        t.until("> $")
        t.type("hel")
        t.until("> hel$")
        for _ in range(2):
            self.assertNotEqual(termios.tcgetattr(t.slave), t.before)
            t.process.send_signal(signal.SIGTSTP)
            until(lambda: pathlib.Path("/proc/%d/stat" % t.process.pid).read_text().rsplit(")", 1)[1].split()[0] == "T", 10, "it stops")
            self.assertEqual(termios.tcgetattr(t.slave), t.before)
            drawn = len(t.bytes)
            t.process.send_signal(signal.SIGCONT)
            until(lambda: b"> hel" in t.bytes[drawn:], 10, "the line is drawn again")
        t.type("lo\r")
        t.until("heard: hello\n> $")

    def test_what_is_pasted_is_one_message_and_none_when_it_is_too_long(self):
        t = self.talk()
        t.until("> $")
        t.type("\x1b[200~1. read\r2. count\r\x1b[201~")
        t.until("> 1. read 2. count $")
        t.type("\r")
        t.until("> $")
        t.type("\x1b[200~" + "long\r" * 13000 + "\x1b[201~")
        t.type("\r")
        t.until("a message has at most 8192 bytes; this one is left out\n> $")
        t.type("go on\r")
        t.until("heard: go on\n> $")
        self.assertEqual(self.s.said(), ["1. read\n2. count", "go on"])

    def test_daemon_that_comes_back_is_told_what_was_typed_meanwhile_and_nothing_is_shown_twice(self):
        t = self.talk({"add": ((MADE,), None)})
        t.until("> $")
        t.type("add\r")
        t.until("2 b → calc")
        at = os.path.join(self.s.stage.state, "endpoints.json")
        os.rename(at, at + ".away")
        t.until("waiting for the daemon")
        t.type("hello\r")
        self.s.tell(DONE, end())
        t.type("/status\r")
        t.until("the daemon is away")
        os.rename(at + ".away", at)
        screen = t.until("(?s)the daemon is back(?=.*it is 42)(?=.*heard: hello).*\n> $")
        for word in ("heard: hello", "it is 42", "✓ 1 a", "waiting for the daemon", "2 b → calc"):
            self.assertEqual(screen.count(word), 1, word)
        self.assertEqual(self.s.said(), ["add", "hello"])

    def test_answer_that_begins_anew_behind_a_restart_is_shown_when_it_is_whole(self):
        t = self.talk({"add": ((MADE, {"type": "text_delta", "index": 0, "text": "The su"}), None)})
        t.until("> $")
        t.type("add\r")
        t.until("The su$")
        at = os.path.join(self.s.stage.state, "endpoints.json")
        os.rename(at, at + ".away")
        t.until("waiting for the daemon")
        self.s.tell(*({"type": "text_delta", "index": 1 + i, "text": text} for i, text in enumerate(("The ", "sum is 42"))))
        os.rename(at + ".away", at)
        t.until("the daemon is back")
        self.s.tell(end("The sum is 42"))
        screen = t.until("is 42\n> $")
        self.assertEqual((screen.count("The "), screen.count("is 42")), (1, 1), screen)

    def test_who_leaves_while_the_daemon_is_away_is_told_what_was_not_said(self):
        t = self.talk()
        t.until("> $")
        os.unlink(os.path.join(self.s.stage.state, "endpoints.json"))
        t.until("waiting for the daemon")
        t.type("hello\ragain\r")
        t.until("your last message still waits")
        t.type("/quit\r")
        self.assertEqual(t.end(), 0)
        t.until("the daemon has not got your last message")
        self.assertEqual(self.s.said(), [])

    def test_answer_that_was_lost_is_no_second_turn(self):
        t = self.talk()
        t.until("> $")
        answers = [Refusal("UNAVAILABLE", "not now"), Refusal("BUSY", "later", retryable=True)]
        self.s.stage.answers["session.say"] = lambda r: (_ for _ in ()).throw(answers.pop(0)) if answers else self.s.say(r)
        t.type("hello\r")
        t.until("heard: hello\n> $")
        asked = self.s.stage.of("session.say")
        self.assertEqual((len(asked), len({r["clientKey"] for r in asked})), (3, 1))

    def test_session_is_taken_up_where_it_was(self):
        view = {"planId": PLAN, "status": "waiting", "position": "Step 2 of 2", "lastSeq": 0, "steps": [
            {"stepId": "b", "stepIndex": 1, "status": "waiting", "agentId": "calc", "waiting": {"kind": "review", "text": "Say it?"}}]}
        session = {"sessionId": "S", "openPlanId": PLAN, "messages": [{"n": 1, "role": "user", "text": "add\x1b"}, {"n": 2, "role": "assistant", "text": "I do"}]}
        t = self.talk({"yes": ((end(),), {"message": "it is 42", "turnPlanId": PLAN})}, "--session", "S", **{"plan.get": view, "session.get": session})
        t.until(r"(?s)> add\?\n  I do\n\? plan .* waiting, Step 2 of 2\n.*\? 2 b: Say it\? \(yes or no\)\n.*> $")
        t.type("yes\r")
        t.until("it is 42\n> $")

    def test_what_somebody_else_says_in_the_session_is_shown(self):
        t = self.talk({}, "--session", "S")
        t.until("> $")
        self.s.session = "S"
        self.s.tell({"type": "turn_start", "turnId": "theirs", "message": "skip\nit"}, {"type": "turn_end", "turnId": "theirs", "message": "skipped"}, plan="")
        t.until("« skip it\nskipped\n> $")

    def test_without_a_terminal_to_draw_on_lines_are_read_all_the_same(self):
        self.s = Session(self, {"add": SUM})
        t = Talk(self, self.s.stage.state, env={"TERM": "dumb"})
        t.until("/help lists")
        t.type("add\n")
        t.until("it is 42")
        self.assertNotIn(b"\x1b", t.bytes)
        t.type("\x04")
        self.assertEqual(t.end(), 0)


class RealPiped(BatonTest):
    def test_what_was_said_here_is_nobody_elses_and_is_answered_once(self):
        """Events of a turn may come when the next message is out already."""
        d = self.daemon()
        lines = "compute 1 + 1, then compute 2 + 2\nmaybe\nwhere are you?\nyes\n"
        done = d.cli_any("chat", "--policy", '{"signoff": true}', stdin=lines)
        self.assertEqual(done.returncode, 0, done)
        whole = done.stdout + done.stderr
        self.assertNotIn("«", whole)
        answers = [line for line in done.stdout.splitlines() if "yes" in line]
        self.assertEqual(len(answers), len(set(answers)), whole)

    def test_a_daemon_that_is_killed_is_waited_for_and_one_with_another_journal_is_another(self):
        d = self.daemon(agents=False)
        for _ in range(20):  # more events than a new journal has soon: chat knows another one by its smaller numbers
            d.submit({"steps": [{"stepId": "ask", "type": "human_review", "task": "?"}]})
        p = subprocess.Popen([BIN / "baton", "chat", "--state", d.state], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.kill)
        said = []

        def says(words):
            for line in p.stderr:
                said.append(line)
                if words in line:
                    return
            self.fail("it ended with %s:\n%s" % (p.wait(), "".join(said)))

        says("to come back:")
        for _ in range(3):  # it ended at once when it noticed within a millisecond
            d.kill9()
            says("waiting for the daemon")
            d.start(agents=False)
            says("the daemon is back")
        d.kill9()
        says("waiting for the daemon")
        for name in os.listdir(d.state):
            if name.startswith("journal"):
                os.unlink(d.state / name)
        d.start(agents=False)
        says("its journal is another one")
        p.stdin.close()
        self.assertEqual(p.wait(20), 7)


class Real(BatonTest):
    """A real daemon; the agent probe plans, works and understands people as a test says."""

    STEPS = [step("a", task="build the thing that is shipped"), step("b", task="polish it until it shines"),
             step("c", task="ship it to the customer", requiresApproval=True), step("d", task="tell everybody about it")]

    def setUp(self):
        self.d = self.daemon(config="policy: {shutdownGraceMs: 500}\n", agents=False)
        self.gate = False
        self.replies = {}  # what people say -> data of converse
        self.p = None
        self.register()

    def register(self):
        if self.p is not None:
            self.p.close()
        self.p = Probe(self.d, work=self.work, skills=("plan", "synthesize", "converse"), capacity=4)
        self.addCleanup(self.p.close)
        self.addCleanup(setattr, self, "gate", True)
        wait_up(self.d)

    def work(self, r):
        if r["purpose"] == "plan":
            return {"outcome": "completed", "result": {"data": {"description": "Build and ship.", "steps": self.STEPS}}}
        if r["purpose"] == "synthesize":
            return {"outcome": "completed", "result": {"text": "Shipped\x1b[2J, and all were told."}}
        if r["purpose"] == "converse":
            text = json.dumps(r.get("parameters"))
            said = [w for w in self.replies if w in text]
            return {"outcome": "completed", "result": {"data": self.replies[said[0]] if said else {"action": "new_plan"}}}
        if r["stepId"] == "a":
            until(lambda: self.gate, 60, "the gate")
        return {"outcome": "completed", "result": {"text": "done " + r["stepId"]}}

    POLICY = ("--planner", "agent:probe", "--policy", '{"synthesis": {"agentId": "probe"}}')

    @unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
    def test_in_a_terminal_across_a_skip_an_approval_a_restart_and_a_question(self):
        t = Tmux(self, self.d.state, *self.POLICY)
        t.until(r"/help lists what is not a message\n>")
        t.type("ship it", "Enter")
        t.until(r"planning: probe is asked[^\n]*\n(?s:.*)plan \S+, 4 steps: Build and ship\.\n(?s:.*)  4 d → probe: tell everybody about it\n(?s:.*)▸ 1 a → probe")
        t.type("skip step 2", "Enter")
        t.until(r"- 2 b skipped")
        self.gate = True
        t.until(r"✓ 1 a (?s:.*)\? 3 c: .*\(yes or no\)\n")
        self.d.kill9()
        t.until("waiting for the daemon")
        t.type("half a w")
        self.d.start(agents=False)
        self.register()
        t.until(r"the daemon is back\n> half a w")
        t.type("", "C-u")
        t.type("yes", "Enter")
        t.until(r"✓ 3 c (?s:.*)✓ 4 d (?s:.*)Shipped\?\[2J, and all were told\.")
        self.replies["who was told"] = {"action": "conversation_only", "reply": "Everybody was told."}
        t.type("who was told?", "Enter")
        t.until(r"Everybody was told\.\n>")
        t.type("/quit", "Enter")
        screen = t.until("left with 0")
        for once in ("▸ 1 a", "✓ 1 a", "- 2 b skipped", "? 3 c", "✓ 3 c", "✓ 4 d", "Shipped?[2J", "waiting for the daemon", "Everybody was told."):
            self.assertEqual(screen.count(once), 1, "%s\n%s" % (once, screen))
        session = t.until(r"baton chat --session \S+").split("--session ")[1].split()[0]
        view = self.d.ask("session.get", sessionId=session)
        self.assertEqual([m["text"] for m in view["messages"] if m["role"] == "user"], ["ship it", "skip step 2", "yes", "who was told?"])

    def test_through_a_pipe_with_a_person_who_says_yes_in_advance(self):
        self.gate = True
        done = self.d.cli_any("chat", *self.POLICY, stdin="ship it\nyes\n")
        self.assertEqual((done.returncode, done.stdout.count("Shipped\x1b[2J, and all were told.\n")), (0, 1), done.stdout + done.stderr)
        self.assertIn("? 3 c: ", done.stderr)
        done = self.d.cli_any("chat", *self.POLICY, stdin="ship it\n")
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        session = done.stderr.split("--session ")[1].split()[0]
        done = self.d.cli_any("chat", *self.POLICY, "--session", session, stdin="no\n")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("> ship it", done.stderr)

    def test_session_whose_id_was_lost_is_found_again(self):
        self.assertEqual((self.d.cli("sessions"), self.d.cli("sessions", "--json")), ("", "[]\n"))
        self.assertIn("no sessions yet", self.d.cli_any("sessions").stderr)
        self.gate = True
        said = self.d.cli_any("chat", *self.POLICY, stdin="ship it\n").stderr
        session = said.split("--session ")[1].split()[0]
        self.assertRegex(self.d.cli("sessions"), session + r" +2\d{3}-\S+ +\d+ +\? waiting +ship it")
        found = json.loads(self.d.cli("sessions", "--json"))
        self.assertEqual([(s["sessionId"], s["lastWords"], s["lastGoal"], s["openPlanStatus"]) for s in found], [(session, "ship it", "ship it", "waiting")])
        self.d.cli_any("chat", *self.POLICY, "--session", session, stdin="no\n")
        out = self.d.cli("sessions", session)
        self.assertRegex(out, r"(?s)> ship it\n.*> no\n.*plans\n.*✗ %s failed +ship it\n" % found[0]["openPlanId"])
        self.assertEqual([m["role"] for m in json.loads(self.d.cli("sessions", session, "--json"))["messages"]][:1], ["user"])
        self.assertNotIn("openPlanStatus", json.loads(self.d.cli("sessions", "--json"))[0])
        wrong = self.d.cli_any("sessions", session[:-1] + "-")
        self.assertEqual(wrong.returncode, 7)
        self.assertIn("did you mean '%s'?" % session, wrong.stderr)

    def test_talk_goes_on_over_a_restart_while_a_step_runs(self):
        t = Talk(self, self.d.state, *self.POLICY)
        t.until("> $")
        t.type("ship it\r")
        t.until("▸ 1 a → probe")
        self.assertEqual(self.d.stop(), 0)
        t.until("waiting for the daemon")
        t.type("skip step 2\r")
        self.d.start(agents=False)
        self.register()
        t.until("(?s)the daemon is back.*- 2 b skipped")
        self.gate = True
        screen = t.until(r"\? 3 c: .*\n> $", 30)
        for once in ("▸ 1 a", "✓ 1 a", "- 2 b skipped"):
            self.assertEqual(screen.count(once), 1, once)
        t.type("/stop\r")
        t.until("the plan cancelled")


if __name__ == "__main__":
    main()
