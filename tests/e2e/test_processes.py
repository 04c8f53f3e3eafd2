"""The credential of a process that the daemon starts: what it gets, what it may, and when it ends."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

from harness import BIN, ROOT, main, until
from test_apart import NOBODY, Apart, as_nobody
import sealed

PROBE = "  - {agentId: probe, command: [/usr/bin/python3, -B, %(here)s/apart_agent.py]}\n"

PYTHON = """
import sys
sys.path.insert(0, %r)
import baton

agent = baton.Agent("%s")

@agent.skill
def tell(name: str = "world") -> str:
    \"\"\"Says what it was handed.\"\"\"
    import os
    return "%%s %%s %%s" %% (name, baton.secret("A_KEY"), "BATON_HANDOVER" in os.environ)

agent.run()
"""

NODE = """
import { Agent, secret } from "%s";
const agent = new Agent("%s");
agent.skill("tell", { description: "Says what it was handed.", properties: { name: { type: "string" } } },
  ({ name = "world" }) => `${name} ${secret("A_KEY")} ${"BATON_HANDOVER" in process.env}`);
await agent.run();
"""


class Base(Apart):
    def given(self, d):
        return self.tell(d, {"do": "handover"})

    def session(self, d, given):
        return sealed.Session(d.endpoints()["control"], given["credential"], bytes.fromhex(given["key"]))

    def code(self, call):
        try:
            answer = call()
        except sealed.Refused as e:
            return e.code
        return answer.get("error", {}).get("code", "OK")

    def required(self, agents):
        """A daemon where the token opens nothing, and the test's own credential."""
        from harness import Daemon
        d = Daemon(self, config="auth: required\nagents:\n" + agents)
        self.addCleanup(d.clean)
        subprocess.run([BIN / "baton", "credential", "add", "ci", "--role", "admin", "--file", d.work / "ci.json", "--state", d.state],
                       check=True, capture_output=True)
        d.credential = "ci", d.work / "ci.json"
        return d


class OfItsOwn(Base):
    def test_a_process_is_handed_a_credential_and_no_token(self):
        d = self.up("agents:\n" + PROBE)
        given = self.given(d)
        self.assertEqual(sorted(given), ["credential", "key"])
        [instance] = d.ask("agents.list")["agents"][0]["instances"]
        self.assertEqual(given["credential"], "process:" + instance["instanceId"])
        pid = d.agent_pids()["probe"][0]
        for file in ("environ", "cmdline"):
            self.assertNotIn(given["key"].encode(), pathlib.Path("/proc/%d/%s" % (pid, file)).read_bytes())
        self.assertNotIn(given["key"], d.log())
        self.assertEqual(os.stat(d.state / "processes.key").st_mode & 0o777, 0o600)

    def test_an_agent_without_the_state_directory_is_handed_no_token_either(self):
        kept = ["paths: {read: ['%s', '%s']}" % (ROOT / "tests", ROOT / "agents")] + (["user: nobody"] if os.getuid() == 0 else [])
        for key in kept:
            d = self.up("agents:\n" + PROBE.replace("}", ", %s}" % key))
            given = self.given(d)
            self.assertEqual(sorted(given), ["control", "credential", "key"], key)
            self.assertNotIn(d.token(), json.dumps(given))

    def test_it_may_be_its_own_agent_and_nothing_else(self):
        d = self.up("agents:\n" + PROBE + "  - {agentId: calc, command: ['${BATON_BIN}/baton-agent-calc']}\n")
        calc = [a for a in d.ask("agents.list")["agents"] if a["card"]["agentId"] == "calc"][0]["instances"][0]
        card = {"agentId": "calc", "skills": [{"id": "evaluate"}]}
        register = {"capacity": 1, "pid": 1, "protocol": [1], "endpoint": "tcp://127.0.0.1:9", "sessionKey": "k" * 32}
        plan = {"steps": [{"stepId": "a", "agent": "calc", "skill": "evaluate", "task": "6*7"}]}
        asks = [["agent.register", {"card": card, "instanceId": calc["instanceId"], **register}],
                ["agent.register", {"card": card, "instanceId": "018f3e5c-7b1a-7000-8000-0123456789ab", **register}],
                ["agent.heartbeat", {"instanceId": calc["instanceId"], "epoch": 1}],
                ["agent.drain", {"instanceId": calc["instanceId"], "epoch": 1}],
                ["plan.submit", {"plan": plan}], ["plan.list", {}], ["events.read", {}], ["agents.list", {}], ["supervisor.info", {}],
                ["supervisor.drain", {}], ["review.decide", {"reviewId": "x", "decision": "approve"}], ["blob.get", {"blob": "1"}]]
        codes = self.tell(d, {"do": "ask", "asks": asks})
        self.assertEqual(codes[:2], ["UNAUTHORIZED"] * 2)
        self.assertNotIn("OK", codes)
        self.assertEqual(set(codes[4:]), {"UNAUTHORIZED"}, codes)
        self.assertEqual(self.run_step(d, "calc", "evaluate", {"expression": "6*7"})["aggregatedResult"], "42")

    def test_what_it_was_handed_is_empty_for_its_programs_once_it_has_registered(self):
        """An agent that closes no descriptor, and whose programs inherit all of them."""
        d = self.up("agents:\n" + PROBE.replace("[/usr/bin/python3,", "[/bin/sh, -c, 'exec 7<&4; exec \"$@\"', sh, /usr/bin/python3,"))
        key = self.given(d)["key"]
        found = until(lambda: self.tell(d, {"do": "inherited"}), 10, "a program runs")
        self.assertIn("found", found)
        self.assertNotIn(key, found)
        self.assertNotIn("credential", found)
        d.kill9()  # the next daemon adopts it, and it registers again
        d.start()
        self.assertNotIn(key, self.tell(d, {"do": "inherited"}))

    def test_no_other_process_of_its_user_opens_what_it_was_handed(self):
        """At a time at which no library has hidden the process: any process of its user could do what this program does."""
        if os.getuid() != 0:
            self.skipTest("only root starts agents of other users")
        d = self.daemon(config="agents:\n  - agentId: late\n    user: nobody\n"
                        "    command: [/bin/sh, -c, 'cat /proc/$$/fd/4; echo; head -c 4000 <&4 | wc -c; exec sleep 60']\n", agents=False)
        def written():
            log = "".join(f.read_text() for f in (d.state / "log").glob("late*.log"))
            return log if log.endswith("\n") and log.split()[-1].isdigit() else None
        log = until(written, 20, "the program has looked")
        self.assertNotIn("key=", log)
        self.assertIn("Permission denied", log)
        self.assertGreater(int(log.split()[-1]), 60)  # the process itself has it

    @unittest.skipUnless(shutil.which("node"), "SKIPPED: node is not installed")
    def test_no_other_process_of_its_user_reads_an_agent_in_node(self):
        """Node cannot say that it is not dumpable; the spawner names a library that says so when it is loaded."""
        def read(pid, what):
            done = subprocess.run([*as_nobody(), "cat", "/proc/%d/%s" % (pid, what)], capture_output=True, timeout=30)
            return done.stderr if b"denied" in done.stderr else done.stdout
        folder = self.own_directory()
        folder.chmod(0o755)
        shutil.copy(ROOT / "agents/node/baton.mjs", folder)
        (folder / "probe.mjs").write_text(NODE % ("./baton.mjs", "probe"))
        for wanted in ("0", "1"):
            d = self.up("agents:\n  - {agentId: probe, command: [node, %s], env: [BATON_DUMPABLE], secrets: [A_KEY]}\n" % (folder / "probe.mjs"),
                        env={"A_KEY": "canary", "BATON_DUMPABLE": wanted}, prefix=as_nobody())
            pid = d.agent_pids()["probe"][0]
            self.assertEqual(b"BATON_AGENT_ID" in read(pid, "environ"), wanted == "1")
            self.assertEqual(b"denied" in read(pid, "maps"), wanted == "0")
            self.assertEqual(self.run_step(d, "probe", "tell")["aggregatedResult"], "world canary false")
            d.stop()

    def test_it_ends_with_its_process_and_the_next_one_has_another(self):
        d = self.up("agents:\n" + PROBE)
        first = self.given(d)
        with self.session(d, first) as s:
            self.assertTrue(s.proved)
            self.assertEqual(self.code(lambda: s.ask("agent.heartbeat", instanceId=first["credential"][8:], epoch=0)), "CONFLICT")
            os.kill(d.agent_pids()["probe"][0], 9)
            until(lambda: self.code(lambda: s.ask("agent.heartbeat", instanceId=first["credential"][8:], epoch=0)) in
                  ("UNAUTHORIZED", "BUSY"), 10, "its open session has ended")
        with self.session(d, first) as s:
            self.assertFalse(s.proved, "a stolen key is of no use when its process has ended")
        d.wait_agents()
        second = self.given(d)
        self.assertNotEqual(first["credential"], second["credential"])
        self.assertNotEqual(first["key"], second["key"])

    def test_an_adopted_process_goes_on_with_its_credential(self):
        d = self.required("  - {agentId: calc, command: ['${BATON_BIN}/baton-agent-calc']}\n").start()
        pid = d.agent_pids()["calc"][0]
        d.kill9()
        d.start()
        self.assertEqual(d.agent_pids()["calc"][0], pid)
        self.assertEqual(self.run_step(d, "calc", "evaluate", {"expression": "6*7"})["aggregatedResult"], "42")

    def test_many_processes_that_start_together_all_get_in(self):
        d = self.required("  - {agentId: calc, command: ['${BATON_BIN}/baton-agent-calc'], instances: 24}\n").start()
        until(lambda: len(d.agent_pids()["calc"]) == 24, 60, "all are up")
        self.assertNotIn("auth.refused", (d.work / "batond.log").read_text())

    def test_a_wrapper_that_starts_its_agent_once_more_hands_it_on(self):
        d = self.required("  - {agentId: calc, command: [/bin/sh, -c, '\"$1\" --card >/dev/null; exec \"$1\"', sh, '${BATON_BIN}/baton-agent-calc']}\n")
        d.start()
        self.assertEqual(self.run_step(d, "calc", "evaluate", {"expression": "6*7"})["aggregatedResult"], "42")


class Required(Base):
    """With auth: required agents need no credential in their configuration."""

    def test_every_sdk_works_by_what_it_is_handed(self):
        folder = self.own_directory()
        (folder / "key").write_text("canary\n")
        (folder / "key").chmod(0o600)
        (folder / "py.py").write_text(PYTHON % (str(ROOT / "agents/python"), "py"))
        agents = "  - {agentId: calc, command: ['${BATON_BIN}/baton-agent-calc']}\n"
        agents += "  - {agentId: dialing, command: ['${BATON_BIN}/baton-agent-calc', '--dial-in']}\n"
        agents += "  - {agentId: py, command: [/usr/bin/python3, -B, '%s/py.py'], secrets: ['A_KEY=%s/key']}\n" % (folder, folder)
        node = shutil.which("node")
        if node:
            (folder / "js.mjs").write_text(NODE % (ROOT / "agents/node/baton.mjs", "js"))
            agents += "  - {agentId: js, command: [%s, '%s/js.mjs'], secrets: ['A_KEY=%s/key']}\n" % (node, folder, folder)
        d = self.required(agents).start()
        for agent in ("calc", "dialing"):
            self.assertEqual(self.run_step(d, agent, "evaluate", {"expression": "6*7"})["aggregatedResult"], "42")
        for agent in ("py", "js") if node else ("py",):
            told = self.run_step(d, agent, "tell", {"name": "Ada"})["aggregatedResult"]
            self.assertIn(told, ("Ada canary False", "Ada canary false"))
        d.kill9()
        d.start()
        for agent in ("py", "js") if node else ("py",):
            self.run_step(d, agent, "tell")

    def test_an_sdk_without_the_state_directory_finds_the_daemon(self):
        if os.getuid() != 0:
            self.skipTest("only root starts agents of other users")
        folder = self.own_directory()
        folder.chmod(0o755)
        (folder / "py.py").write_text(PYTHON % (str(folder), "py"))
        shutil.copy(ROOT / "agents/python/baton.py", folder)
        agents = "  - {agentId: py, command: [/usr/bin/python3, -B, '%s/py.py'], user: nobody}\n" % folder
        if shutil.which("node"):
            shutil.copy(ROOT / "agents/node/baton.mjs", folder)
            (folder / "js.mjs").write_text(NODE % ("./baton.mjs", "js"))
            agents += "  - {agentId: js, command: [%s, '%s/js.mjs'], user: nobody}\n" % (shutil.which("node"), folder)
        d = self.required(agents).start()
        for agent in d.agent_pids():
            self.run_step(d, agent, "tell")
            pid = d.agent_pids()[agent][0]
            self.assertEqual(os.stat("/proc/%d" % pid).st_uid, NOBODY)
            if agent == "py":  # root's: no process of its user reads its memory; a program in Node cannot set that
                self.assertEqual(os.stat("/proc/%d/mem" % pid).st_uid, 0)


if __name__ == "__main__":
    main()
