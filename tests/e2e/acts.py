"""Agent processes whose every answer is a shell script that the test wrote: the result of a step, planner, gate or verifier.

    class T(Acts):
        def test_x(self):
            self.act("b", "echo no luck >&2; exit 1", "echo fine")     # the first call, and all from the second on
            self.act("plan", say({"steps": [...]}))                    # what the agent `planner` answers, skill plan
"""
import json
import shlex

from harness import BatonTest, until

CONFIG = """
policy: {heartbeatMs: 300, maxFallbacks: 0}
agents:
  - agentId: worker
    command: ["${BATON_BIN}/baton-agent-exec"]
    capacity: 4
    settings:
      commands:
        - {id: act, argv: ["%(here)s/act.sh", "%(work)s", "{name}"], description: "Acts.", effects: idempotent}
  - agentId: planner
    command: ["${BATON_BIN}/baton-agent-exec"]
    settings:
      commands:
        - {id: plan, argv: ["%(here)s/act.sh", "%(work)s", "plan"], description: "Plans.", effects: none, inputSchema: {type: object}}
  - agentId: judge
    command: ["${BATON_BIN}/baton-agent-exec"]
    settings:
      commands:
        - {id: gate, argv: ["%(here)s/act.sh", "%(work)s", "gate"], description: "Judges.", effects: none, inputSchema: {type: object}}
        - {id: verify, argv: ["%(here)s/act.sh", "%(work)s", "verify"], description: "Judges.", effects: none, inputSchema: {type: object}}
        - {id: search, argv: ["%(here)s/act.sh", "%(work)s", "search"], description: "Finds.", effects: none, inputSchema: {type: object}}
"""


def say(value):
    """A script that answers with that text or document."""
    return "printf %%s %s" % shlex.quote(value if isinstance(value, str) else json.dumps(value))


def step(step_id, **more):
    return {"stepId": step_id, "agentId": "worker", "skill": "act", "task": "do " + step_id, "parameters": {"name": step_id}, **more}


class Acts(BatonTest):
    config = CONFIG

    def setUp(self):
        self.d = self.daemon(config=self.config)

    def act(self, name, *scripts):
        for n, script in enumerate(scripts, 1):
            (self.d.work / ("%s.%d" % (name, n))).write_text(script + "\n")

    def acts(self, *names):
        for name in names:
            self.act(name, say("done " + name))

    def asked(self, name):
        """How often it was asked."""
        path = self.d.work / (name + ".asked")
        return len(path.read_text().split()) if path.exists() else 0

    def heard(self, name, n=1):
        return json.loads((self.d.work / ("%s.%d.in" % (name, n))).read_text())

    def wait_asked(self, name, n=1):
        until(lambda: self.asked(name) == n, 15, "%s is asked for the %d. time\n%s" % (name, n, self.d.log()))

    def run_plan(self, steps, **plan):
        self.plan = self.d.submit({"steps": steps, **plan})
        return self.d.wait_plan(self.plan)

    def events(self, type_):
        return [e for e in self.d.events(self.plan) if e["type"] == type_]

    def statuses(self, view):
        return [(s["stepId"], s["status"]) for s in view["steps"] if not s.get("superseded")]

    def restart(self, how):
        """how: kill (the agents live on and are adopted) or stop (all is ended in order)."""
        if how == "kill":
            self.d.kill9()
        else:
            self.assertEqual(self.d.stop(), 0)
        self.d.start()
