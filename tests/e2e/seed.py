"""What the tests of the seeds share: agents with a skill per function, and a plan's events in another vocabulary.

    class T(Seed):
        def test_x(self):
            self.agent("jira", create=lambda r: "INFRA-456")     # a text is the result; a map is the whole step.result
"""
import json

import vocabularies
from harness import BatonTest
from probe import Probe, wait_up

CONFIG = "policy: {heartbeatMs: 300}\n"


class Agent(Probe):
    def __init__(self, daemon, agent_id, skills, **card):
        self.skills = skills
        self.about = card
        super().__init__(daemon, agent_id, work=self.do)

    def register(self):
        self.registration["card"]["skills"] = [{"id": s, "description": "Does " + s + ".", "effects": "idempotent"} for s in self.skills]
        self.registration["card"].update(self.about)
        return super().register()

    def do(self, request):
        purpose = request.get("purpose", "execute")
        answer = self.skills[purpose if purpose in self.skills else request["skill"]](request)
        if answer is None or isinstance(answer, dict) and "outcome" in answer:
            return answer
        return {"outcome": "completed", "result": {"text": answer} if isinstance(answer, str) else {"data": answer}}

    def asked(self, skill):
        """The requests for this skill, in order."""
        return [r for r in self.requests if r["type"] == "step.execute" and r.get("skill") == skill]


def failure(message, class_="UNKNOWN", retryable=False):
    return {"outcome": "failed", "failure": {"code": "FAILED", "class": class_, "message": message, "retryable": retryable}}


class Seed(BatonTest):
    vocabulary = None

    def setUp(self):
        self.d = self.daemon(config=CONFIG)

    def agent(self, agent_id, card=None, **skills):
        made = Agent(self.d, agent_id, skills, **(card or {}))
        self.addCleanup(made.close)
        wait_up(self.d, agent_id)
        return made

    def told(self, *types):
        """The plan's events in the seed's vocabulary; all are held against its document."""
        said = [json.loads(line) for line in self.d.cli("events", self.plan, "--vocabulary", self.vocabulary).splitlines()]
        vocabularies.check(self.vocabulary, said)
        return [e for e in said if not types or e.get("type", e.get("event")) in types]

    def submit(self, plan, **fields):
        """Submits it as it is written; nothing in it may be worth a warning about its words."""
        answer = self.d.ask("plan.submit", plan=plan, **fields)
        words = [p for p in answer.get("problems", []) if "characters" not in p["message"]]
        self.assertEqual(words, [])
        self.plan = answer["planId"]

    def run_plan(self, plan, **fields):
        self.submit(plan, **fields)
        return self.d.wait_plan(self.plan)

    def result(self):
        return self.d.ask("plan.result", planId=self.plan)
