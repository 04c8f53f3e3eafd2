"""Programs as agents: exit codes that retry, facts about the run, progress lines, timeouts that name their setting."""
import json

from harness import BatonTest, main, until

CONFIG = """
agents:
  - agentId: exec
    command: ["${BATON_BIN}/baton-agent-exec"]
    capacity: 4
    settings:
      commands:
        - {id: flaky, argv: ["/bin/sh", "-c", "echo try >> %(work)s/tries; test $(wc -l < %(work)s/tries) -ge 3 || (echo not yet >&2; exit 1) || exit 1; echo well"],
           description: "Succeeds at the third try.", output: text, retryOn: [1], stdin: none}
        - {id: broken, argv: ["/bin/sh", "-c", "echo try >> %(work)s/tries; exit 1"], description: "Fails.", stdin: none}
        - {id: worker, argv: ["/bin/sh", "-c", "echo '::progress 40 half way' >&2; echo a note >&2; sleep 0.3; echo done"],
           description: "Reports.", output: text, stdin: none}
        - {id: talker, argv: ["/bin/sh", "-c", "i=0; while test $i -lt 300; do i=$((i+1)); echo line $i of what went wrong >&2; done; printf 'red \\\\033[31mend\\n' >&2; exit 3"],
           description: "Fails with many words.", stdin: none, retryOn: [3]}
        - {id: mended, argv: ["/bin/sh", "-c", "test -e %(work)s/tries && echo well || (echo x > %(work)s/tries; echo first try >&2; exit 1)"],
           description: "Succeeds at the second try.", output: text, retryOn: [1], stdin: none}
        - {id: numbers, argv: ["/bin/sh", "-c", "echo n,sq; seq 1 {n} | sed 's/.*/&,&/'"], description: "Prints a table.", stdin: none, output: text}
        - {id: halfway, argv: ["/bin/sh", "-c", "seq 1 100000; exit 2"], description: "Fails late.", stdin: none, output: text}
        - {id: endless, argv: [yes], description: "Prints for ever.", stdin: none, output: text}
        - {id: remember, argv: ["/bin/sh", "-c", "echo '{{\\"counted\\": 42}' > $BATON_STATE_PATCH; echo ok"], description: "Remembers.", stdin: none}
        - {id: recall, argv: [cat], description: "Shows its request.", output: json}
        - {id: slow, argv: ["/bin/sh", "-c", "sleep 30 & sleep 30"], description: "Takes long.", stdin: none, timeoutMs: 300}
        - {id: patient, argv: ["/bin/sh", "-c", "sleep 30"], description: "Takes long.", stdin: none, timeoutMs: 120000}
"""


def step(skill, **more):
    return {"stepId": "s", "agentId": "exec", "skill": skill, "task": "run the program", **more}


class Programs(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CONFIG)

    def run_step(self, skill, **more):
        plan = self.d.submit({"steps": [step(skill, **more)], "policy": {"backoff": {"initialMs": 10}, "maxFallbacks": 0}})
        view = self.d.wait_plan(plan)
        return view, view["steps"][0], self.d.events(plan)

    def tries(self):
        return len((self.d.work / "tries").read_text().split())

    def test_exit_codes_of_the_settings_retry(self):
        view, s, _ = self.run_step("flaky", maxRetries=3)
        self.assertEqual((view["status"], s["attempts"], s["result"], self.tries()), ("completed", 3, "well", 3))

    def test_other_exit_codes_do_not(self):
        view, s, _ = self.run_step("broken", maxRetries=3)
        self.assertEqual((view["status"], s["error"], self.tries()), ("failed", "broken: exit code 1", 1))

    def test_progress_lines_are_events_and_details_stand_beside_the_result(self):
        view, s, events = self.run_step("worker")
        self.assertEqual((view["status"], s["result"]), ("completed", "done"))
        (news,) = [e for e in events if e["type"] == "plan_step_progress"]
        self.assertEqual((news["percent"], news["text"]), (40, "half way"))
        result = self.d.ask("plan.result", planId=view["planId"], stepId="s")
        details = result["result"]["details"]
        self.assertEqual((details["exitCode"], details["stderr"]), (0, "a note\n"))
        self.assertGreaterEqual(details["durationMs"], 300)

    def test_details_of_a_failed_step_are_kept_and_seen_everywhere(self):
        view, s, events = self.run_step("talker", maxRetries=1)
        details = s["details"]
        self.assertEqual((details["exitCode"], details["stderrTruncated"]), (3, True))
        self.assertIn("durationMs", details)
        self.assertTrue(details["stderr"].endswith("line 300 of what went wrong\nred \x1b[31mend\n"), details["stderr"][-60:])
        self.assertLessEqual(len(details["stderr"]), 4096)
        plan = view["planId"]
        self.assertEqual(self.d.ask("plan.result", planId=plan, stepId="s")["details"], details)
        (outcome,) = self.d.ask("plan.result", planId=plan)["steps"]
        self.assertEqual(outcome["details"], details)
        refs = [e["detailsRef"] for e in events if e["type"] in ("plan_step_retry", "plan_step_completed")]
        self.assertEqual(len(set(refs)), 2)  # one for each failed attempt
        shown = self.d.cli_any("result", plan, "s")
        self.assertIn("exitCode: 3", shown.stderr)
        self.assertIn("    line 300 of what went wrong\n    red ?[31mend\n", shown.stderr)
        self.assertNotIn("\x1b", shown.stderr)
        self.assertEqual(json.loads(self.d.cli_any("result", plan, "s", "--json").stdout)["details"], details)

    def test_details_outlive_a_restart_of_the_daemon(self):
        view, s, _ = self.run_step("talker", maxRetries=0)
        self.d.kill9()
        self.d.start()
        self.assertEqual(self.d.ask("plan.result", planId=view["planId"], stepId="s")["details"], s["details"])

    def test_a_step_that_succeeds_in_the_end_has_no_details_of_its_failed_attempt(self):
        view, s, events = self.run_step("mended", maxRetries=1)
        self.assertEqual((view["status"], s["attempts"], s.get("details")), ("completed", 2, None))
        self.assertIn("detailsRef", [e for e in events if e["type"] == "plan_step_retry"][0])

    def test_output_of_any_size_becomes_an_artifact_with_artifact_true(self):
        view, s, _ = self.run_step("numbers", parameters={"n": 1000000, "artifact": True})
        self.assertEqual(view["status"], "completed")
        (a,) = self.d.ask("plan.result", planId=view["planId"], stepId="s")["artifacts"]
        expected = b"n,sq\n" + b"".join(b"%d,%d\n" % (i, i) for i in range(1, 1000001))
        self.assertEqual((a["name"], a["mediaType"], a["bytes"]), ("stdout.txt", "text/plain", len(expected)))
        self.assertEqual(self.d.cli("result", view["planId"], "s", "--artifact", "stdout.txt").encode(), expected)
        _, s, _ = self.run_step("numbers", parameters={"n": 1000000})
        self.assertIn("use artifact: true", s["error"])

    def test_an_artifact_of_a_program_that_fails_is_dropped(self):
        view, s, _ = self.run_step("halfway", parameters={"artifact": True})
        self.assertEqual((s["status"], s["error"]), ("failed", "halfway: exit code 2"))
        self.assertNotIn("artifacts", self.d.ask("plan.result", planId=view["planId"]))
        self.assertEqual([p for p in (self.d.state / "artifacts").rglob("*") if p.is_file()], [])

    def test_a_cancel_ends_a_program_that_prints_into_an_artifact_for_ever(self):
        plan = self.d.submit({"steps": [step("endless", parameters={"artifact": True})]})
        until(lambda: self.d.ask("plan.get", planId=plan)["steps"][0]["status"] == "in_progress", 10, "it runs")
        self.d.ask("plan.cancel", planId=plan)
        self.assertEqual(self.d.wait_plan(plan)["status"], "cancelled")
        until(lambda: not [p for p in (self.d.state / "artifacts").rglob("*") if p.is_file()], 10, "its file is gone")

    def test_a_program_changes_the_state_that_later_steps_read(self):
        plan = self.d.submit({"steps": [step("remember"), {**step("recall"), "stepId": "t", "dependsOn": ["s"]}]})
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        request = self.d.ask("plan.result", planId=plan, stepId="t")["result"]["data"]
        self.assertEqual(request["context"]["state"], {"counted": 42})

    def test_a_commands_own_timeout_names_seconds_and_setting(self):
        _, s, _ = self.run_step("slow", maxRetries=0)
        self.assertEqual(s["errorClass"], "TIMEOUT")
        self.assertIn("no result after 0.3 s (timeoutMs: 300); set timeoutMs of the command", s["error"])

    def test_a_steps_timeout_names_seconds_and_setting_beside_the_error(self):
        view, s, events = self.run_step("patient", maxRetries=0, timeoutMs=300)
        self.assertEqual(s["errorClass"], "TIMEOUT")
        hint = "no result after 0.300 s (timeoutMs: 300); set timeoutMs of the step, or stepTimeoutMs of the policy"
        if s["error"] == "Step execution timeout":  # else the agent was first, and its error names the setting
            self.assertEqual(s["hint"], hint)
            self.assertEqual([e["hint"] for e in events if e["type"] == "plan_step_completed"], [hint])
        else:
            self.assertIn("the step's deadline; set timeoutMs of the step, or stepTimeoutMs of the policy", s["error"])

    def test_lint_warns_of_a_timeout_that_is_shorter_than_the_card_allows(self):
        said = json.dumps(self.d.ask_raw("plan.lint", plan={"steps": [step("patient")]}))
        self.assertIn("an attempt ends after 60000 ms, but skill", said)
        said = json.dumps(self.d.ask_raw("plan.lint", plan={"steps": [step("patient", timeoutMs=120000)]}))
        self.assertNotIn("an attempt ends after", said)


if __name__ == "__main__":
    main()
