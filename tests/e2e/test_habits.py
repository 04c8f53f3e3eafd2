"""The habits of the command line: where options stand, short options, help, what people type from other tools."""
import datetime
import json
import os
import pty
import re
import subprocess
import unittest
from pathlib import Path

from harness import BIN, BatonTest, main, until
from probe import Probe, step, wait_up

ROOT = Path(__file__).resolve().parents[2]


def baton(*args, **more):
    """Runs `baton` as it is typed: without a state directory of the test."""
    return subprocess.run([BIN / "baton", *map(str, args)], capture_output=True, text=True, timeout=30, **more)


class Help(unittest.TestCase):
    def test_help_and_version_are_found_where_people_look_for_them(self):
        text = baton("help")
        self.assertEqual((text.returncode, text.stderr), (0, ""))
        for args in (("--help",), ("-h",)):
            self.assertEqual(baton(*args).stdout, text.stdout)
        self.assertEqual((baton().stdout, baton().returncode), (text.stdout, 2))
        self.assertEqual(baton("-h", "run").stdout, baton("help", "run").stdout)
        self.assertEqual(baton("version").stdout, baton("--version").stdout)
        self.assertEqual(json.loads(baton("version", "--json").stdout)["version"], baton("version").stdout.split()[1])
        unknown = baton("help", "statsu")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("did you mean 'status'", unknown.stderr)

    def test_lines_of_help_fit_a_terminal(self):
        table = json.loads(baton("help", "--json").stdout)
        for verb in [v["name"] for g in table["groups"] for v in g["verbs"]]:
            text = baton("help", verb).stdout
            own = [e["command"] for g in table["groups"] for v in g["verbs"] for e in v["examples"]]
            for line in text.splitlines()[1:]:
                self.assertTrue(len(line) <= 80 or line.strip() in own or line.startswith("  baton "), line)

    def test_page_of_the_command_line_has_each_letter_and_exit_code(self):
        page = (ROOT / "supervisor/cli/usage/README.md").read_text()
        letters = set(re.findall(r"^\| `-(.)` \| `--([a-z-]+)` \|", page, re.M))
        table = json.loads(baton("help", "--json").stdout)
        options = table["options"] + [o for g in table["groups"] for v in g["verbs"] for o in v["options"]]
        self.assertEqual(letters, {(o["letter"], o["name"]) for o in options if "letter" in o})
        page = (ROOT / "supervisor/cli/README.md").read_text()
        self.assertEqual([int(code) for code in re.findall(r"^\| (\d+) \|", page, re.M)], [e["code"] for e in table["exits"]])


class Options(BatonTest):
    def test_global_options_stand_before_the_verb_or_after_it(self):
        d = self.daemon(config="", agents=False)
        for args in (("--state", d.state, "--json", "status"), ("--json", "status", "--state", d.state)):
            done = baton(*args)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "[]\n", ""), args)

    def test_option_at_the_wrong_place_is_named_with_the_right_one(self):
        for args, words in ((("--plan", "x", "run"), ("--plan", "comes after it")),
                            (("--stat", "x", "--jsn", "status"), ("'--jsn'", "did you mean '--json'")),
                            (("-z", "status"), ("'-z'", "see: baton --help")),
                            (("status", "-z"), ("'-z'", "see: baton status --help")),
                            (("info", "x"), ("takes no arguments", "'x'"))):
            done = baton(*args)
            self.assertEqual(done.returncode, 2, args)
            for word in words:
                self.assertIn(word, done.stderr)

    def test_output_has_four_forms_and_names_them_when_it_is_asked_for_another(self):
        d = self.daemon(config="", agents=False)
        p = Probe(d, "probe")
        self.addCleanup(p.close)
        wait_up(d, "probe")
        for _ in range(2):
            d.wait_plan(d.submit({"steps": [step()]}))
        plans = json.loads(d.cli("status", "--json"))
        self.assertEqual(len(plans), 2)
        self.assertEqual(json.loads(d.cli("status", "-o", "json")), plans)
        self.assertEqual([json.loads(line) for line in d.cli("status", "-ojsonl").splitlines()], plans)
        ages = re.compile(r"\d+ ?m?s\b")
        self.assertEqual(*(ages.sub("", d.cli("status", *form)) for form in (("-o", "table"), ())))
        text = d.cli("-o", "yaml", "status")
        self.assertEqual(text.count("- planId: "), 2)
        self.assertEqual(d.cli("--json", "status", "--output=json"), d.cli("status", "--json"))
        events = d.cli("events", "-o", "yaml")
        self.assertEqual(events.count("---\n"), len(d.cli("events", "--json").splitlines()) - 1)
        bad = d.cli_any("status", "-o", "xml")
        self.assertEqual((bad.returncode, bad.stderr), (2, "baton: --output: expected json, jsonl, table or yaml, got 'xml'\n"))
        self.assertEqual(d.cli_any("status", "--json", "-o", "yaml").returncode, 2)


class Ids(BatonTest):
    def setUp(self):
        self.d = self.daemon(config="", agents=False)
        self.p = Probe(self.d, "probe")
        self.addCleanup(self.p.close)
        wait_up(self.d, "probe")

    def plan(self, *steps, **more):
        plan = self.d.submit({"steps": list(steps or (step(),)), **more})
        self.d.wait_plan(plan)
        return plan

    def error(self, *args, code):
        done = self.d.cli_any(*args)
        self.assertEqual(done.returncode, code, (args, done.stdout, done.stderr))
        return done.stderr

    def test_last_is_the_newest_plan_wherever_a_plan_is_named(self):
        self.assertIn("there is no last plan", self.error("status", "last", code=7))
        first = self.plan()
        plan = self.plan(step("a"), step("b"))
        for args in (("status", "last"), ("history", "last"), ("events", "last"), ("cost", "last")):
            self.assertIn(plan, self.d.cli(*args, "--json"), args)
        self.assertNotIn(first, self.d.cli("events", "last", "--json"))
        self.assertEqual(self.d.cli("result", "last", "b"), "done b\n")
        self.assertEqual(self.d.cli("result", "last/b"), "done b\n")
        self.assertIn(plan, self.d.cli("stats", "last"))
        self.assertEqual(self.d.cli("plan", "diff", "last", "last"), self.d.cli("plan", "diff", plan, plan))
        self.assertEqual(json.loads(self.d.cli("retry", "last", "--json", "--from", "b"))["parentPlanId"], plan)

    def test_unique_beginning_stands_for_an_id(self):
        plan = self.plan()
        for n in (1, 8, 9, 20, 35, 36):
            for short in (plan[:n], plan[:n].lower()):
                self.assertEqual(json.loads(self.d.cli("status", short, "--json"))["planId"], plan)
        self.assertEqual(self.d.cli("result", plan[:20], "a"), "done a\n")  # `a` is a step, and could begin an id
        self.assertIn("No state found for fffff", self.error("status", "fffff", code=7))
        self.assertIn("No state found for zz", self.error("status", "zz", code=7))

    def test_beginning_of_several_lists_them_and_does_nothing(self):
        plans = [self.plan() for _ in range(12)]
        text = self.error("cancel", plans[0][:4], code=2)
        self.assertIn("several plans begin with '%s':" % plans[0][:4], text)
        self.assertEqual(len([line for line in text.splitlines() if line.startswith("  ")]), 10)
        self.assertIn(plans[-1], text)
        error = json.loads(self.d.cli("--json", "cancel", plans[0][:4], code=2))
        self.assertEqual([m["planId"] for m in error["details"]["matches"]], plans[:1:-1])

    def test_several_ids_are_answered_each_and_the_worst_code_counts(self):
        done = self.plan()
        failed = self.d.submit({"steps": [step("x", maxRetries=0)], "policy": {"maxRetries": 0}})
        self.d.wait_plan(failed)
        answers = json.loads(self.d.cli("status", done, "last", "--json"))
        self.assertEqual([a["planId"] for a in answers], [done, failed])
        self.assertEqual([json.loads(line)["planId"] for line in self.d.cli("status", done, failed, "-o", "jsonl").splitlines()], [done, failed])
        nothing = "00000000-0000-7000-8000-000000000000"
        answers = json.loads(self.d.cli("result", done, nothing, "last", "--json", code=7))
        self.assertEqual([(a["planId"], a.get("code")) for a in answers], [(done, None), (nothing, "NOT_FOUND"), (failed, None)])
        text = self.d.cli_any("result", done, nothing)
        self.assertEqual((text.returncode, text.stdout), (7, "==> %s <==\ndone a\n==> %s <==\n" % (done, nothing)))
        self.assertIn(nothing, text.stderr)
        self.assertEqual(self.d.cli("result", done + "/a", failed + "/x"), "==> %s/a <==\ndone a\n==> %s/x <==\ndone x\n" % (done, failed))

    def test_cancel_pause_and_resume_of_several(self):
        plans = [self.d.submit({"steps": [step("a", type="human_review", prompt="Is it right?")]}) for _ in range(2)]
        self.assertEqual([a["planId"] for a in json.loads(self.d.cli("pause", *plans, "--json"))], plans)
        self.assertEqual(len(self.d.cli("resume", *plans).splitlines()), 2)
        self.assertEqual(self.d.cli_any("cancel", *plans).returncode, 0)
        for plan in plans:
            self.d.wait_plan(plan)
        again = self.d.cli_any("pause", *plans)
        self.assertEqual((again.returncode, [line.split(": ")[1] for line in again.stderr.splitlines()]), (2, plans))

    def test_last_session_and_its_beginning(self):
        self.assertIn("there is no last session", self.error("sessions", "last", code=7))
        self.d.cli_any("chat", "--session", "alpha", "--new", stdin="hello\n")
        self.d.cli_any("chat", "--session", "alps", "--new", stdin="hello\n")
        self.assertEqual(json.loads(self.d.cli("sessions", "last", "--json"))["sessionId"], "alps")
        self.assertEqual(json.loads(self.d.cli("sessions", "alph", "--json"))["sessionId"], "alpha")
        self.assertIn("several sessions begin with 'al'", self.error("sessions", "al", code=2))
        self.d.cli_any("chat", "--session", "alph", "--new", stdin="hello\n")  # --new takes the name as it is
        self.assertEqual(json.loads(self.d.cli("sessions", "alph", "--json"))["sessionId"], "alph")


class Terminal(BatonTest):
    """What is for people only: a pager, and times of their own zone."""

    def screen(self, *args, **env):
        """What `baton` writes on a terminal of its own."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        done = subprocess.Popen([BIN / "baton", *args, "--state", self.d.state], stdin=slave, stdout=slave, stderr=slave,
                                env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "xterm", "BATON_PAGER": "sed s/^/PAGER:/", **env})
        os.close(slave)
        seen = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # Linux: the other end is closed
                break
            seen += part
        self.assertEqual(done.wait(20), 0, seen)
        return seen.decode()

    def setUp(self):
        self.d = self.daemon(config="", agents=False)
        p = Probe(self.d, "probe")
        self.addCleanup(p.close)
        wait_up(self.d, "probe")
        self.plan = self.d.submit({"steps": [step()]})
        self.d.wait_plan(self.plan)

    def test_terminal_gets_a_pager_unless_it_is_unwanted(self):
        for args in (("status", "last"), ("result", "last"), ("help",), ("agents",), ("events", "-h")):
            text = self.screen(*args)
            self.assertEqual([line for line in text.splitlines() if not line.startswith("PAGER:")], [], args)
        for args, env in ((("status", "--no-pager"), {}), (("status", "--json"), {}), (("status",), {"BATON_PAGER": ""}), (("status",), {"BATON_PAGER": "cat"}),
                          (("status",), {"TERM": "dumb"}), (("events", "last", "-f", "-n", "1"), {})):
            text = self.screen(*args, **env)
            self.assertIn("plan_generated" if "-f" in args else self.plan, text)
            self.assertNotIn("PAGER:", text)
        self.assertNotIn("PAGER:", self.d.cli("status", env={"BATON_PAGER": "sed s/^/PAGER:/"}))

    def test_the_nearest_setting_wins(self):
        self.assertIn("OTHER:", self.screen("status", BATON_PAGER="sed s/^/OTHER:/", PAGER="sed s/^/PAGER:/"))

    def test_pager_that_is_left_early_is_no_error(self):
        self.assertEqual(self.screen("help", BATON_PAGER="true"), "")

    def test_times_are_local_on_a_terminal_and_utc_elsewhere(self):
        began = json.loads(self.d.cli("status", "last", "--json"))["createdAt"]
        local = (datetime.datetime.fromisoformat(began.replace("Z", "+00:00")) + datetime.timedelta(hours=5, minutes=30)).strftime("%Y-%m-%d %H:%M:%S")
        self.assertIn(local, self.screen("events", "last", TZ="Asia/Kolkata"))
        self.assertIn(local, self.screen("history", "last", TZ="XST-5:30"))
        self.assertIn(began, self.d.cli("events", "last", env={"TZ": "Asia/Kolkata"}))
        self.assertIn(began, self.screen("events", "last", "--json", TZ="Asia/Kolkata"))

    def test_times_in_the_reason_of_a_wait_are_local_on_a_terminal(self):
        fails = Probe(self.d, "fails", work=lambda r: {"outcome": "failed", "error": {"code": "UNAVAILABLE", "message": "away", "retryable": True}})
        self.addCleanup(fails.close)
        wait_up(self.d, "fails")
        plan = self.d.submit({"policy": {"maxRetries": 1, "backoff": {"kind": "fixed", "initialMs": 3600000, "maxMs": 3600000}}, "steps": [step("a", "fails")]})
        until(lambda: "next attempt at" in self.d.cli("status", plan), 30, "it waits")
        elsewhere = self.d.cli("status", plan, env={"TZ": "Asia/Kolkata"})
        at = re.search(r"next attempt at (\S+T\S+Z)", elsewhere).group(1)
        local = (datetime.datetime.fromisoformat(at.replace("Z", "+00:00")) + datetime.timedelta(hours=5, minutes=30)).strftime("%Y-%m-%d %H:%M:%S")
        seen = self.screen("status", plan, TZ="Asia/Kolkata")
        self.assertIn("next attempt at " + local, seen)
        self.assertNotIn(at, seen)


class OtherTools(unittest.TestCase):
    def test_verbs_of_docker_and_kubectl_get_the_one_that_is_meant(self):
        for word, meant in (("ps", "baton status"), ("ls", "baton agents"), ("get", "baton status"), ("describe", "baton agents AGENT_ID"),
                            ("start", "baton up"), ("stop", "baton down"), ("kill", "baton cancel"), ("rm", "baton cancel"),
                            ("apply", "baton run -f FILE"), ("exec", "baton run GOAL")):
            done = baton(word, "x", "-it")
            self.assertEqual((done.returncode, done.stdout), (2, ""), word)
            self.assertIn("unknown verb '%s'; " % word, done.stderr)
            self.assertIn(meant, done.stderr)
            self.assertIn(meant, json.loads(baton("--json", word).stdout)["hint"])

    def test_run_of_a_file_names_the_option(self):
        for name in ("nowhere.yaml", "a.json", __file__):
            done = baton("run", name)
            self.assertEqual(done.returncode, 2)
            self.assertIn("baton run -f " + name, done.stderr)


class Errors(BatonTest):
    """With --json an error is one object on stdout, and nothing is on stderr."""

    def error(self, *args, code, **more):
        done = baton(*args, **more)
        self.assertEqual((done.returncode, done.stderr), (code, ""), (args, done.stdout, done.stderr))
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 1, done.stdout)
        error = json.loads(lines[0])
        self.assertTrue(error["code"] and error["message"], error)
        return error

    def test_errors_of_the_command_line(self):
        for args, code, message, hint in (
                (("--json", "statsu"), "INVALID", "unknown verb 'statsu'", "did you mean 'status'? see: baton help"),
                (("status", "--json", "--limti", "3"), "INVALID", "status: bad option '--limti'", "did you mean '--limit'? see: baton status --help"),
                (("--json", "info", "x"), "INVALID", "info takes no arguments, got 'x'", "see: baton info --help"),
                (("status", "--limit", "x", "-ojson"), "INVALID", "--limit: expected a whole number, got 'x'", None)):
            error = self.error(*args, code=2)
            self.assertEqual((error["code"], error["message"], error.get("hint")), (code, message, hint))

    def test_errors_without_a_daemon(self):
        for args in (("status",), ("events",), ("run", "a goal"), ("cancel", "x"), ("agents",), ("top", "--once"), ("cost",)):
            error = self.error("--state", "/nonexistent", "--json", *args, code=6)
            self.assertEqual(error["code"], "UNAVAILABLE", args)

    def test_errors_of_plan_files(self):
        d = self.daemon(config="", agents=False)
        bad = self.write_plan(d, "bad.yaml", "steps:\n  - {stepId: a\n")
        error = self.error("--json", "run", "-f", bad, "--state", d.state, code=2)
        self.assertIn("bad.yaml:", error["message"])
        wrong = self.write_plan(d, "wrong.yaml", "steps:\n- {stepId: a, agentId: calc, dependsOn: [zz]}\n- {stepId: a, agentId: calc}\n")
        error = self.error("run", "-f", wrong, "--state", d.state, "--json", code=2)
        self.assertEqual(error["code"], "INVALID")
        self.assertTrue({"stepId", "message", "category"} <= set(error["details"]["problems"][0]), error)

    def test_errors_of_the_daemon_are_those_of_the_wire(self):
        d = self.daemon(config="", agents=False)
        error = self.error("--json", "result", "00000000-0000-7000-8000-000000000000", "--state", d.state, code=7)
        self.assertEqual(error["code"], "NOT_FOUND")
        self.assertIs(error["retryable"], False)

    def test_form_of_an_error_is_that_of_the_data(self):
        done = baton("-o", "yaml", "statsu")
        self.assertEqual((done.returncode, done.stdout.splitlines()[0], done.stderr), (2, "code: INVALID", ""))
        for form in ("table", "xml"):
            done = baton("-o", form, "statsu")
            self.assertEqual((done.returncode, done.stdout), (2, ""), form)


if __name__ == "__main__":
    main()
