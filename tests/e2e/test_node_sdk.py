#!/usr/bin/env python3
"""baton.mjs: node_sdk.mjs against a real daemon, and the rules of the wire protocol."""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import BIN, HERE, ROOT, main

SLOW = "0.8"


@unittest.skipUnless(shutil.which("node"), "SKIPPED: node is not installed")
class Node(unittest.TestCase):
    def run_it(self, *command, **kwargs):
        return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=400, **kwargs)

    def test_agent_and_client_against_a_daemon(self):
        done = self.run_it("node", HERE / "node_sdk.mjs", env={**os.environ, "BATON_BIN": str(BIN)})
        self.assertEqual((done.returncode, done.stdout), (0, "all is well\n"), done.stderr)

    def test_every_rule_of_the_protocol(self):
        def check(*more):
            return self.run_it(sys.executable, "-B", ROOT / "agents/python/baton-agent-check", "--json", "--timeout", "30", "--skill", "greet",
                               "--slow-skill", "wait", "--slow-param", "seconds=" + SLOW, "--slow-seconds", SLOW, "node", HERE / "node_sdk.mjs", "serve", *more)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for done, skipped in ((pool.submit(check), 4), (pool.submit(check, "--dial-in"), 8)):
                rules = json.loads(done.result().stdout)["rules"]
                self.assertEqual([r for r in rules if r["result"] == "fail"], [])
                self.assertEqual(len([r for r in rules if r["result"] == "skip"]), skipped)
                self.assertGreater(len(rules), 30)

    def test_mistakes_of_the_command_line_are_sentences(self):
        skill = "agent.skill('greet', { description: 'Greets.' }, () => 'x');\n"
        for skills, args, stdin, said in (("", ["--card"], "", "the agent has no skill; add one with agent.skill(id, about, handler)"),
                                          (skill, ["--crad"], "", "options: there is no option --crad; see --help"),
                                          (skill, ["--once"], "", "options: --once needs a value; see --help"),
                                          (skill, ["--once", "greet"], "hello", "--once reads a step from stdin, such as {\"parameters\": {}}: "),
                                          (skill, ["--once", "greet"], "[]", "expected a JSON object"),
                                          (skill, ["--once", "bow"], "{}", "--once: there is no skill 'bow'; it has greet")):
            with tempfile.TemporaryDirectory() as where:
                path = os.path.join(where, "agent.mjs")
                with open(path, "w") as f:
                    f.write("import { Agent } from '%s';\nconst agent = new Agent('greeter');\n%sawait agent.run();\n" % (ROOT / "agents/node/baton.mjs", skills))
                done = self.run_it("node", path, *args, input=stdin)
                self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n"), said in done.stderr), (2, "", 1, True), done.stderr)

    def test_the_page_and_the_types_have_what_the_module_has(self):
        page = (ROOT / "agents/node/README.md").read_text()
        program = "\n".join(line[4:] for line in re.search(r"(?m)(^ {4}.*\n|^\n(?= {4}))+", page).group(0).splitlines())
        with tempfile.TemporaryDirectory(prefix="baton-e2e-") as folder:
            shutil.copy(ROOT / "agents/node/baton.mjs", folder)
            path = os.path.join(folder, "greeter.mjs")
            with open(path, "w") as f:
                f.write(program)
            done = self.run_it("node", path, "--once", "greet", input='{"parameters": {"name": "Ada"}}')
            self.assertEqual(json.loads(done.stdout)["result"]["text"], "Hello, Ada!", done.stderr)
        names = self.run_it("node", "--input-type=module", "-e", "console.log(Object.keys(await import(process.argv[1])).join(' '))",
                            ROOT / "agents/node/baton.mjs").stdout.split()
        declared = re.findall(r"export (?:const|class|function) (\w+)", (ROOT / "agents/node/baton.d.mts").read_text())
        self.assertEqual(sorted(names), sorted(declared))

    def test_what_npm_packs_is_installed_and_imported_by_its_name(self):
        with tempfile.TemporaryDirectory(prefix="baton-e2e-") as folder:
            offline = {**os.environ, "HOME": folder, "npm_config_offline": "true", "npm_config_update_notifier": "false"}
            self.assertEqual(self.run_it("npm", "pack", ROOT / "agents/node", cwd=folder, env=offline).returncode, 0)
            [packed] = [n for n in os.listdir(folder) if n.endswith(".tgz")]
            with open(os.path.join(folder, "package.json"), "w") as f:
                f.write('{"name": "user", "version": "1.0.0"}')
            done = self.run_it("npm", "install", "--ignore-scripts", "./" + packed, cwd=folder, env=offline)
            self.assertEqual(done.returncode, 0, done.stderr)
            done = self.run_it("node", "--input-type=module", "-e", "import { Agent } from 'baton-agent'; console.log(typeof Agent)", cwd=folder)
            self.assertEqual(done.stdout, "function\n", done.stderr)


if __name__ == "__main__":
    main()
