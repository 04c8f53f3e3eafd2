"""A result that is not whole fails the step, or is marked: in the step's result, its event and its view, over a restart."""
import json

from harness import BatonTest, main
from test_quickstart import EXAMPLES, quickstart_config

LOG = EXAMPLES / "dpkg.log"


class Whole(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=quickstart_config())
        self.lines = len(LOG.read_text().splitlines())

    def run_steps(self, *steps):
        plan = {"goal": "read the log", "steps": list(steps)}
        path = self.d.work / "plan.json"
        path.write_text(json.dumps(plan))
        answer = json.loads(self.d.cli_any("run", "--json", "--plan", path).stdout)
        self.assertEqual(answer["status"], "completed", answer)
        return answer["planId"]

    @staticmethod
    def grep(step, **more):
        return {"stepId": step, "agentId": "files", "skill": "grep", "task": "find lines", "dependsOn": [],
                "parameters": {"path": str(LOG), "pattern": ".", **more}}

    def completed(self, plan):
        events = [e for e in self.d.events(plan) if e["type"] == "plan_step_completed"]
        return {e["stepId"]: e.get("truncated", False) for e in events}

    def views(self, plan):
        return {s["stepId"]: s.get("truncated", False) for s in self.d.ask("plan.get", planId=plan)["steps"]}

    def test_a_step_with_a_limit_is_marked_where_it_ends(self):
        plan = self.run_steps(self.grep("part", limit=self.lines - 1), self.grep("whole", limit=self.lines))
        self.assertEqual(self.completed(plan), {"part": True, "whole": False})
        self.assertEqual(self.views(plan), {"part": True, "whole": False})
        self.assertIn("[not whole: the first %d of %d lines that match" % (self.lines - 1, self.lines),
                      self.d.cli("result", plan, "part"))
        self.assertTrue(self.d.ask("plan.result", planId=plan, stepId="part")["result"]["truncated"])
        self.d.kill9()
        self.d.start()
        self.assertEqual(self.views(plan), {"part": True, "whole": False})


if __name__ == "__main__":
    main()
