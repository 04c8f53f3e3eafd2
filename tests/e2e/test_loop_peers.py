"""The tool loop (skill work of the llm agent) against models that we did not write: @copilotkit/aimock in its three forms, by lanes
and by bundles, also while everything is killed; and a real llama.cpp whose random weights say what the grammar of a turn allows."""
import json
import sys

from harness import ROOT, main
from probe import step, wait_up
from test_phases import Skilled, text
from test_work import answer, call
import test_aimock
import test_calls_kills as kills
import test_llama

sys.path.insert(0, str(ROOT / "tests" / "peers"))
import bad_wire  # noqa: E402
import peers  # noqa: E402

CONFIG = """
policy: {heartbeatMs: 300}
agents:
  - {agentId: calc, command: ["${BATON_BIN}/baton-agent-calc"], capacity: %d}
  - agentId: llm
    command: ["${BATON_BIN}/baton-agent-llm"]
    capacity: %d
    settings: %s
"""
BUNDLES, LANES = 4, 3  # the capacity from which an instance gets bundles, and one below


def setUpModule():
    test_aimock.setUpModule()


def tearDownModule():
    test_aimock.tearDownModule()


class Loop(test_aimock.Planned):
    def run_loop(self, api, capacity, *said, **more):
        test_aimock.aimock.answers(*said)
        config = CONFIG % (capacity, capacity, json.dumps({"providers": [self.provider(api)]}).replace("%", "%%"))
        self.d = self.daemon(config=config)
        self.plan = self.d.submit({"steps": [step("a", "llm", skill="work", task="find the sum of the figures", maxRetries=0, **more)], "grants": ["calc"]})
        view = self.d.wait_plan(self.plan)
        return view

    def turn(self, n):
        made = [e["planId"] for e in self.d.events() if e["type"] == "plan_started" and e["planId"] != self.plan]
        return self.d.ask("plan.get", planId=made[n])

    @test_aimock.in_each_form
    def test_calls_side_by_side_a_wrong_one_an_unknown_one_and_the_answer(self, api):
        said = [call(("calc/evaluate", {"expression": "2+3"}), ("calc/evaluate", {"expression": "10*10"}), thought="both"),
                call(("bank/pay", {"all": True}), ("calc/evaluate", {"expression": 7}), ("calc/evaluate", {"expression": "5+100"})),
                answer("It is 105.")]
        for capacity in (BUNDLES, LANES):
            view = self.run_loop(api, capacity, *said)
            self.assertEqual((view["status"], self.d.ask("plan.result", planId=self.plan)["aggregatedResult"]), ("completed", "It is 105."), view)
            self.assertEqual([sorted(s["stepId"] for s in self.turn(n)["steps"]) for n in (0, 1)], [["t1-1", "t1-2"], ["t2-3"]])
            asked = [e["body"]["messages"][-1]["content"] for e in self.journal(200, 200, 200)]
            self.assertIn('"skill":"evaluate"', asked[0])
            self.assertIn("100", asked[1])
            self.assertIn("there is no tool bank/pay here", asked[2])
            self.assertIn("parameters/expression", asked[2])

    @test_aimock.in_each_form
    def test_a_turn_that_comes_as_a_tool_call_of_the_provider(self, api):
        said = [{"response": {"toolCalls": [{"name": "turn", "arguments": call(("calc/evaluate", {"expression": "6*7"}))}]}}, answer("42")]
        view = self.run_loop(api, BUNDLES, *said)
        self.assertEqual((view["status"], self.d.ask("plan.result", planId=self.plan)["aggregatedResult"]), ("completed", "42"), view)

    def test_a_loop_without_an_end_ends(self):
        numbers = [call(("calc/evaluate", {"expression": "%d+1" % n})) for n in range(40)]
        view = self.run_loop("openai", BUNDLES, *numbers)
        end = [e for e in self.d.events(self.plan) if e["type"] == "plan_step_completed"][0]
        self.assertEqual((view["status"], end["errorClass"]), ("failed", "LOOP_LIMIT"), end)
        self.assertIn("There are no more turns: answer now", test_aimock.aimock.journal()[30]["body"]["messages"][-1]["content"])


class Killed(kills.Kills):
    """The same kills as against our own mock: aimock says the next turn by what the question has, however often it is asked."""
    capacity = BUNDLES
    test_an_unsafe_call_goes_on_over_a_kill_of_the_daemon = None
    test_an_unsafe_call_whose_agent_is_killed_asks_a_person_and_the_model_gets_the_decision = None

    def up(self, _):
        self.said = ""
        said = [call(("one/mark", {"n": "%d-one" % n, "seconds": "0.2"}), ("two/mark", {"n": "%d-two" % n, "seconds": "0.05"})) for n in range(kills.TURNS)]
        said.append(answer("all marks are there"))
        # The newest turn first: a later question has the earlier turns, too.
        test_aimock.aimock.answers(said[0], to={'"id":"t%d-1"' % n: [said[n]] for n in range(kills.TURNS, 0, -1)})
        path = self.directory() + "/key"
        with open(path, "w", opener=lambda p, flags: kills.os.open(p, flags, 0o600)) as f:
            f.write(test_aimock.KEY)
        provider = {"api": "openai", "baseUrl": "http://127.0.0.1:%d/v1" % test_aimock.aimock.port, "model": "m-1", "backoffMs": 1, "keyFile": path}
        config = kills.CONFIG.replace("capacity: 4", "capacity: %d" % self.capacity)
        self.d = self.daemon(config=config % (json.dumps({"providers": [provider]}), self.tools, self.tools))


class KilledByLanes(Killed):
    capacity = LANES


class Noise(test_llama.Engine):
    def test_whatever_a_real_engine_says_the_loop_ends_and_calls_nothing_that_is_not_granted(self):
        line = bad_wire.Line(self.engine(context=8192).port)
        self.addCleanup(line.close)
        provider = {"api": "openai", "baseUrl": "http://127.0.0.1:%d/v1" % line.port, "model": "noise", "timeoutMs": 60000, "backoffMs": 1}
        d = self.daemon(config="agents:\n  - {agentId: llm, command: ['${BATON_BIN}/baton-agent-llm'], settings: %s}\n" % json.dumps({"providers": [provider], "maxTokens": 400}))
        agents = {}
        for agent_id in ("granted", "other"):
            agents[agent_id] = Skilled(d, agent_id, [{"id": "do", "description": "Does."}], execute=lambda r: text("did"))
            self.addCleanup(agents[agent_id].close)
            wait_up(d, agent_id)
        for i in range(3):
            plan = d.submit({"steps": [step("a", "llm", skill="work", task="do it %d" % i, maxRetries=0)], "grants": ["granted"],
                             "policy": {"budget": {"tokens": 12000}}})
            view = d.wait_plan(plan, 120)
            self.assertIn(view["status"], ("completed", "failed"))
            if view["status"] == "failed":
                end = [e for e in d.events(plan) if e["type"] == "plan_step_completed"][0]
                self.assertIn(end["errorClass"], ("VALIDATION_ERROR", "LOOP_LIMIT", "BUDGET_EXCEEDED", "TIMEOUT"), end)
        self.assertTrue(line.requests, "the engine was asked")
        self.assertEqual(agents["other"].asked("execute"), [])


if __name__ == "__main__":
    main()
