"""What a model may say about the flow of its plan: conditions, lists, undoing; and what comes back when it says it wrongly."""
import json
import os

from harness import main
import mock_llm
import test_llm
from test_llm import purpose_of

CONFIG = """
agents:
  - agentId: files
    command: ["${BATON_BIN}/baton-agent-files"]
    settings: {roots: ["%s"]}
  - agentId: calc
    command: ["${BATON_BIN}/baton-agent-calc"]
    capacity: 4
llm: %s
"""


def listing(path):
    return {"stepId": "list", "agentId": "files", "skill": "list", "task": "List the files of the directory", "parameters": {"path": path}, "dependsOn": []}


def count(**more):
    return {"stepId": "count", "agentId": "files", "skill": "read", "task": "Read the file {{item.name}}", "dependsOn": ["list"], **more}


class Planned(test_llm.Llm):
    """A daemon whose planner is the llm agent; its model answers with the plans of the list, one after the other."""

    def plans(self, *plans):
        self.dir = self.directory()
        for i in range(3):
            with open(os.path.join(self.dir, "f%d.txt" % i), "w") as f:
                f.write("line\n" * (i + 1))
        answers = [json.dumps(p(self.dir) if callable(p) else p) for p in plans]
        self.asked = []

        def brain(asked):
            self.asked.append(asked["messages"][0]["content"])
            self.assertEqual(purpose_of(asked), "chat", "the question for a new plan is no replan")
            self.bodies.append(asked["body"])
            return answers[min(len(self.asked), len(answers)) - 1]

        self.bodies = []
        self.mock = mock_llm.Mock(brain)
        self.addCleanup(self.mock.close)
        settings = {"providers": [{"api": "openai", "baseUrl": self.mock.url("ok", "/v1"), "model": "m", "backoffMs": 1}]}
        self.d = self.daemon(config=CONFIG % (self.dir, json.dumps(settings)))

    def run_goal(self, **more):
        self.plan = self.d.ask("plan.submit", goal="read all files", planner="llm", **more)["planId"]
        return self.d.wait_plan(self.plan)

    def types(self):
        return [e["type"] for e in self.d.events(self.plan)]


class FlowOfModels(Planned):
    def good(self, path):
        return {"steps": [listing(path), count(forEach="{{results.list.entries}}", onItemFailure="continue", parameters={"path": path + "/{{item.name}}"}),
                          {"stepId": "many", "agentId": "calc", "skill": "evaluate", "task": "Say that there are many", "parameters": {"expression": "1+1"},
                           "dependsOn": ["list"], "when": {"results.list.count": {"gt": 100}}},
                          {"stepId": "few", "agentId": "calc", "skill": "evaluate", "task": "Say that there are few", "parameters": {"expression": "6*7"},
                           "dependsOn": ["list"], "when": {"results.list.count": {"lte": 100}}}]}

    def test_a_plan_with_forEach_and_when_runs(self):
        self.plans(self.good)
        view = self.run_goal()
        self.assertEqual(view["status"], "completed", view)
        self.assertEqual([(s["stepId"], s["status"]) for s in view["steps"]],
                         [("list", "completed"), ("count", "completed"), ("many", "skipped"), ("few", "completed")])
        self.assertEqual(view["steps"][1]["children"]["completed"], 3, view["steps"][1])
        self.assertNotIn("planning_retry", self.types())
        properties = self.bodies[0]["response_format"]["json_schema"]["schema"]["properties"]["steps"]["items"]["properties"]
        self.assertLessEqual({"when", "forEach", "onItemFailure", "compensate"}, set(properties))
        self.assertNotIn("concurrencyKey", properties, "keys are the operator's")
        for word in ("when: {", "forEach: ", "{{item.member}}", "compensate: "):
            self.assertIn(word, self.asked[0])

    def test_a_wrong_one_gets_the_words_back_and_is_repaired(self):
        wrong = (({"forEach": "{{results.nothing.entries}}"}, "nothing"), ({"forEach": "all of them"}, "forEach"), ({"when": {"results.list.count": {"over": 3}}}, "over"),
                 ({"compensate": {"agentId": "vault", "skill": "open", "task": "open the vault"}}, "vault"),
                 # Control flow by another name is refused; it was left out, and the step ran once, for nothing.
                 ({"loop": "over the files"}, "repeat"), ({"for_each": "{{results.list.entries}}"}, "forEach"), ({"unless": "x"}, "when"),
                 ({"repeat": {"until": {"results.count.bytes": {"gt": 1}}}}, "max"))
        self.plans(*[p for more, _ in wrong for p in ((lambda path, more=more: {"steps": [listing(path), count(parameters={"path": path + "/f0.txt"}, **more)]}), self.good)])
        for i, (more, word) in enumerate(wrong):
            with self.subTest(more=more):
                view = self.run_goal()
                self.assertEqual(view["status"], "completed", view)
                self.assertEqual(self.types()[:3], ["planning_started", "planning_retry", "plan_generated"], more)
                told = test_llm.split(self.asked[2 * i + 1])[1]
                self.assertIn(word, told["the plan check: what is wrong with it"])
                earlier = json.loads(told["a model: the earlier plan"])
                self.assertEqual(earlier.get("data", earlier)["steps"][1].get(list(more)[0]), more[list(more)[0]], "it came as it was")

    def test_a_group_of_a_model_sets_no_policy_and_uses_no_agent_that_the_plan_excludes(self):
        def sly(path):
            return {"steps": [listing(path), {"stepId": "each", "forEach": "{{results.list.entries}}", "dependsOn": ["list"], "steps": [
                {"stepId": "r", "agentId": "files", "skill": "read", "task": "Read the file {{item.name}}", "parameters": {"path": path + "/{{item.name}}"},
                 "maxRetries": 99, "requiresApproval": True, "effects": "none", "verifyWith": "vault", "gate": "vault"}]}]}
        self.plans(sly, lambda path: {"steps": [listing(path), count(forEach="{{results.list.entries}}", agentId="calc", skill="evaluate", parameters={"expression": "1"},
                                                                     compensate={"agentId": "files", "skill": "read", "task": "Read it again", "parameters": {"path": path}})]})
        view = self.run_goal()
        self.assertEqual(view["status"], "completed", view)
        document = json.dumps(self.d.ask("plan.get", planId=self.plan, document=True)["document"])
        for word in ('"requiresApproval": true', "vault", ": 99"):
            self.assertNotIn(word, document)
        view = self.run_goal(policy={"agents": ["calc"]})
        self.assertEqual(view["status"], "failed", view)
        self.assertIn("files", view["failureReason"])


if __name__ == "__main__":
    main()
