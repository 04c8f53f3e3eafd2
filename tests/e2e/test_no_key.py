"""Models that cannot be asked because of the configuration: said where it is read, and by all that needs them, at once."""
import json
import os
import socket
import subprocess
import time
from unittest import mock

from harness import BIN, BatonTest, Daemon, main, until

LLM = """
policy: {heartbeatMs: 300}
llm:
  providers:
    - {api: openai, baseUrl: "http://127.0.0.1:9/v1", model: m, KEY}
agents:
  - {agentId: calc, command: ["${BATON_BIN}/baton-agent-calc"]}
"""
SUM = {"agentId": "calc", "skill": "evaluate", "task": "add", "parameters": {"expression": "1+1"}, "dependsOn": []}
SUMS = {"steps": [{"stepId": "one", **SUM}, {"stepId": "two", **SUM}]}


class NoKey(BatonTest):
    def make(self, key, api="openai"):
        self.d = Daemon(self, config=LLM.replace("KEY", key).replace("openai", api))
        self.addCleanup(self.d.clean)
        self.addCleanup(self.d.check_event_order)
        return self.d

    def up(self, key, written=None):
        d = self.make(key)
        if written is not None:
            (d.work / "key").write_text(written)
            (d.work / "key").chmod(0o600)
        d.start(agents=False)
        until(lambda: self.agent("calc")["state"] == "up", 20, "calc is up")
        return d

    def agent(self, agent_id):
        return next(a for a in self.d.ask("agents.list")["agents"] if a["card"]["agentId"] == agent_id)

    def says_soon(self, *args, code):
        """What a command says that ends within three seconds."""
        begun = time.monotonic()
        done = self.d.cli_any(*args)
        self.assertLess(time.monotonic() - begun, 3, done)
        self.assertEqual(done.returncode, code, done)
        return done.stdout + done.stderr

    def test_without_its_key_the_agent_is_held_back_and_the_rest_runs(self):
        d = self.up("keyEnv: NO_SUCH_KEY")
        why = "llm.providers.0.keyEnv: the environment variable NO_SUCH_KEY is not set"
        self.assertRegex(d.log(), r'baton\.yaml:7:\d+: warning: %s; the agent "orchestrator" is not started without it' % why)
        self.assertIn(why, self.says_soon("run", "x", "--planner", "llm", code=3))
        said = self.says_soon("run", "--plan", self.write_plan(d, "sums.json", SUMS), "--synthesis", "llm", code=0)
        self.assertIn(why, said, "the answer is put together out of the results, and it is said why")
        self.assertIn(why, self.says_soon("agents", code=0))
        self.assertIn(why, self.says_soon("doctor", "--config", d.config, code=1))
        self.assertIn(why, self.says_soon("up", code=1))
        self.assertFalse((d.state / "log" / "orchestrator#1.log").exists(), "no process was started")
        d.stop()
        self.assertIn("orchestrator would not be started: " + why, self.says_soon("doctor", "--config", d.config, code=1))

    def test_doctor_without_the_key_finds_no_fault_with_a_daemon_that_has_it(self):
        d = self.make("keyEnv: BATON_TEST_KEY")
        server = socket.create_server(("127.0.0.1", 0))  # somebody is where the model would be
        self.addCleanup(server.close)
        d.config.write_text(d.config.read_text().replace(":9/", ":%d/" % server.getsockname()[1]))
        with mock.patch.dict(os.environ, BATON_TEST_KEY="k" * 20):
            d.start()
        said = self.says_soon("doctor", "--config", d.config, code=0)
        self.assertIn("all is well", said)
        self.assertIn("orchestrator is up", said)
        self.assertIn('the agent "orchestrator" would not be started from this environment', said)
        self.assertNotIn("is not started", said)

    def test_of_an_agent_that_gave_up_plans_tell_the_log_and_agents_its_last_words(self):
        d = self.up('keyFile: "%(work)s/key"', written="a b")
        begun = time.monotonic()
        view = d.wait_plan(d.ask("plan.submit", goal="x", planner="llm")["planId"], 25)
        self.assertLess(time.monotonic() - begun, 20, "it waits no longer than there is hope")
        log = str(d.state / "log" / "orchestrator#1.log")
        words = "keyFile: %s: expected a key of 1 to 4096" % (d.work / "key")
        ending = "exit code 2; see %s; or: baton agents orchestrator" % log
        for part in ("Agent 'orchestrator' is not running: it gave up after 5 crashes", ending):
            self.assertIn(part, view["failureReason"])
        self.assertIn(ending, self.says_soon("run", "x", "--planner", "llm", code=3))
        self.assertNotIn(words, json.dumps([view, d.events()]), "what a process wrote is kept nowhere")
        agent = self.agent("orchestrator")
        self.assertEqual((agent["state"], agent["gaveUp"], agent["log"]), ("down", True, log))
        for verb, code in ((["up"], 1), (["agents"], 0), (["agents", "orchestrator"], 0), (["doctor", "--config", d.config], 1)):
            said = self.says_soon(*verb, code=code)
            for part in ("exit code 2", words, log):
                self.assertIn(part, said)
        plan_id = d.ask("plan.submit", plan={"steps": [{"stepId": "a", "agentId": "orchestrator", "task": "say"}]})["planId"]
        (step,) = d.ask("plan.get", planId=plan_id)["steps"]
        self.assertIn("waiting for agent orchestrator: 0 instances; it gave up after 5 crashes", step["waiting"]["text"])
        d.ask("plan.cancel", planId=plan_id)

    def test_a_mistake_in_the_models_stops_the_daemon_with_its_line(self):
        d = self.make("attempts: 0", api="opnai")
        done = subprocess.run([BIN / "batond", "--state", d.state, "--config", d.config], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
        self.assertEqual(done.returncode, 2, done)
        self.assertRegex(done.stderr, r'baton\.yaml:7:\d+: llm.providers.0.api: expected one of "openai", "anthropic", "ollama", got "opnai"; did you mean "openai"\?')
        self.assertRegex(done.stderr, r"baton\.yaml:7:\d+: llm.providers.0.attempts: must be at least 1")


main()
