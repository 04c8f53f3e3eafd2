"""Agents that do not come any more: what is told of them costs no other answer, and what they wrote is kept nowhere."""
import json
import os
import pathlib
import subprocess

from harness import BIN, BatonTest, Daemon, main, until

START = "policy: {heartbeatMs: 300, restart: {intensity: 2, backoffMinMs: 10, backoffMaxMs: 20}}\n"
SECRET = "sk-live-0123456789abcdefghij"


class GivenUp(BatonTest):
    def up(self, config, state=None):
        self.d = Daemon(self, config=START + config)
        self.d.state = state(self.d) if state else self.d.state
        self.addCleanup(self.d.clean)
        return self.d.start(agents=False)

    def agent(self, agent_id):
        return next(a for a in self.d.ask("agents.list")["agents"] if a["card"]["agentId"] == agent_id)

    def given_up(self, agent_id):
        return until(lambda: self.agent(agent_id).get("gaveUp") and self.agent(agent_id), 20, agent_id + " gave up")

    def test_a_long_reason_in_any_script_costs_no_answer(self):
        for shift in ("", "x"):
            d = self.up('llm:\n  providers:\n    - {api: openai, baseUrl: "http://127.0.0.1:9/v1", model: m, keyFile: "/%s%s"}\n'
                        'agents:\n  - {agentId: calc, command: ["${BATON_BIN}/baton-agent-calc"]}\n' % (shift, "ö" * 400))
            agent = self.agent("orchestrator")
            self.assertTrue(agent["gaveUp"])
            self.assertRegex(agent["reason"], r"^not started: llm\.providers\.0\.keyFile: .*ö{100}")
            view = d.wait_plan(d.ask("plan.submit", goal="x", planner="llm")["planId"], 10)
            self.assertRegex(view["failureReason"], r"it was not started: .*ö; correct it, then start the daemon again \(see also: baton doctor\)")
            self.assertEqual(d.stop(), 0)

    def test_a_state_directory_that_is_no_utf8_costs_no_answer(self):
        d = self.up('agents:\n  - {agentId: bad, command: ["/bin/false"]}\n',
                    lambda d: pathlib.Path(os.fsdecode(os.fsencode(d.work) + b"/st\xff")))
        agent = self.given_up("bad")
        self.assertEqual((agent["reason"], agent["log"]), ("exit code 1", "%s/st\ufffd/log/bad#1.log" % d.work))
        self.assertEqual(d.ask("supervisor.info")["stateDir"], "%s/st\ufffd" % d.work)
        plan = {"steps": [{"stepId": "a", "agentId": "bad", "task": "say"}]}
        (step,) = d.ask("plan.get", planId=d.submit(plan))["steps"]
        self.assertIn("; see baton agents bad", step["waiting"]["text"])

    def test_what_an_agent_wrote_is_kept_nowhere_and_shown_without_secrets(self):
        d = self.up('agents:\n  - {agentId: bad, command: ["/bin/sh", "-c", "echo the OPENAI_API_KEY=%s is wrong; exit 3"]}\n' % SECRET)
        self.assertEqual(self.given_up("bad")["reason"], "exit code 3: the OPENAI_API_KEY=[redacted] is wrong")
        view = d.wait_plan(d.ask("plan.submit", goal="x", planner="agent:bad")["planId"], 10)
        self.assertIn("exit code 3; see %s/log/bad#1.log; or: baton agents bad" % d.state, view["failureReason"])
        told = [d.ask("agents.list"), view, d.events(), d.log()]
        told += [d.cli_any(*verb).stdout for verb in (["agents"], ["agents", "bad"], ["up"], ["doctor", "--config", d.config])]
        self.assertNotIn(SECRET, json.dumps(told))
        self.assertNotIn("is wrong", json.dumps([view, d.events()]))
        self.assertEqual(d.stop(), 0)
        kept = {p.name: p.read_bytes() for p in d.state.rglob("*") if p.is_file() and p.parent.name != "log"}
        self.assertIn("journal.db", " ".join(kept))
        self.assertEqual([name for name, text in kept.items() if SECRET.encode() in text], [])

    def test_the_last_one_that_ends_in_peace_leaves_no_hope_when_the_others_gave_up(self):
        d = self.up('agents:\n  - {agentId: pair, instances: 2, restart: transient, command: ["/bin/sh", "%(work)s/pair.sh"]}\n'
                    .replace("%(work)s/pair.sh", "%(here)s/pair.sh"))
        until(lambda: "event=gave up name=pair#1" in d.log(), 20, "the first of them gave up")
        self.assertFalse(self.agent("pair").get("gaveUp"), "the second one may come yet")
        (d.state / "go").touch()
        self.given_up("pair")
        view = d.wait_plan(d.ask("plan.submit", goal="x", planner="agent:pair")["planId"], 10)
        self.assertIn("it gave up after crashes of pair#1; the last: exit code 3; see ", view["failureReason"])

    def test_a_guest_in_its_name_that_left_again_is_no_hope(self):
        d = self.up('agents:\n  - {agentId: calc, command: ["/bin/false"]}\n')
        self.given_up("calc")
        guest = subprocess.Popen([BIN / "baton-agent-calc", "--state", d.state], env={**os.environ, "BATON_STATE": str(d.state)},
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (guest.kill(), guest.wait()))
        until(lambda: self.agent("calc")["state"] == "up", 20, "the guest is up")
        self.assertNotIn("gaveUp", {k for k, v in self.agent("calc").items() if v})
        guest.terminate()
        guest.wait(20)
        until(lambda: self.agent("calc")["state"] == "down", 20, "the guest has left")
        self.assertTrue(self.agent("calc").get("gaveUp"))
        plan = {"steps": [{"stepId": "a", "agentId": "calc", "task": "say"}]}
        (step,) = d.ask("plan.get", planId=d.submit(plan))["steps"]
        self.assertIn("waiting for agent calc: 0 instances; it gave up after 2 crashes", step["waiting"]["text"])


main()
