"""Many plans at once: every one ends, the daemon's memory stays flat."""
import json
import os
import subprocess
import unittest

from harness import BIN, BatonTest

CONFIG = """
agents:
  - {agentId: calc, command: ["${BATON_BIN}/baton-agent-calc"], instances: 2, capacity: 8}
"""
STEP = {"agentId": "calc", "skill": "evaluate", "task": "compute a small sum", "parameters": {"expression": "1+2"}}
PLAN = {"steps": [dict(STEP, stepId="a"), dict(STEP, stepId="b", dependsOn=["a"]), dict(STEP, stepId="c", dependsOn=["a"]),
                  dict(STEP, stepId="d", dependsOn=["b", "c"])]}


class ManyPlans(BatonTest):
    def round(self, d, n):
        done = subprocess.run([BIN / "many_plans", d.state, str(n), json.dumps(PLAN)], capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr + d.log())
        self.assertEqual(json.loads(done.stdout), {"submitted": n, "completed": n})
        stats = d.ask("supervisor.stats")
        self.assertEqual(stats.get("plansOpen", 0), 0)
        return stats["rssBytes"]

    def test_500_plans_at_once_all_end_and_memory_stays_flat(self):
        d = self.daemon(config=CONFIG)
        self.round(d, 500)
        first = self.round(d, 500)  # caches are warm now
        for _ in range(2):
            last = self.round(d, 500)
        self.assertLess(last, first * 1.25, "resident memory grew from %d to %d" % (first, last))
        if os.geteuid() == 0:  # the daemon is not dumpable: only root can look
            self.assertLess(len(os.listdir("/proc/%d/fd" % d.process.pid)), 200)


if __name__ == "__main__":
    unittest.main(verbosity=2)
