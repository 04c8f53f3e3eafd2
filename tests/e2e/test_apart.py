"""Agents apart: what a program of one agent can get at that belongs to the supervisor or to another agent."""
import json
import os
import unittest

from harness import BatonTest, Daemon

NOBODY = 65534


def as_nobody():
    """The beginning of a command line of another user than root, to whom /proc is open. [] when this user is none already."""
    if os.getuid() != 0:
        return []
    return ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"]


class Apart(BatonTest):
    def up(self, agents, env=None, prefix=()):
        prefix = list(prefix)
        d = Daemon(self, config=agents, prefix=prefix)
        d.env.update(env or {})
        if prefix:
            for path in [d.work, *d.work.rglob("*")]:
                os.chown(path, NOBODY, NOBODY)
        self.addCleanup(d.clean)
        return d.start()

    def run_step(self, d, agent, skill, parameters=None, wanted="completed"):
        plan = {"steps": [{"id": "s", "agentId": agent, "skill": skill, "task": "try it", "parameters": parameters or {}}]}
        view = d.wait_plan(d.submit(plan))
        self.assertEqual(view["status"], wanted, (view, d.log()))
        return d.ask("plan.result", planId=view["planId"])


class Programs(Apart):
    def test_a_program_of_exec_reaches_no_secret_of_another_process(self):
        d = self.up("agents:\n"
                    "  - {agentId: calc, command: ['${BATON_BIN}/baton-agent-calc'], env: [OTHERS_KEY]}\n"
                    "  - agentId: exec\n"
                    "    command: ['${BATON_BIN}/baton-agent-exec']\n"
                    "    env: [OTHERS_KEY]\n"
                    "    settings: {commands: [{id: nosy, argv: [python3, %(here)s/nosy.py, canary-of-apart], description: looks about, stdin: none}]}\n",
                    env={"OTHERS_KEY": "canary-of-apart"}, prefix=as_nobody())
        told = self.run_step(d, "exec", "nosy")
        seen = json.loads(told["aggregatedResult"])
        self.assertEqual(seen["environ"], [])
        self.assertEqual(seen["mem"], [])
        self.assertEqual(seen["fds"], [0, 1, 2])
        self.assertNotIn("BATON_STATE", seen["own"])
        self.assertFalse([k for k in seen["own"] if "TOKEN" in k or "SETTINGS" in k or "HANDOVER" in k])


if __name__ == "__main__":
    unittest.main()
