"""deploy/TOUR.md from "Every feature" on, and the top README: each command is run as it stands there, in order, and the README's print what it shows;
and the two examples that need the agents of tour.yaml, by an independent count."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from harness import BIN, ROOT, BatonTest

EXAMPLES = ROOT / "deploy" / "examples"
LOG = "/var/log/dpkg.log"
ELSEWHERE = ("cmake", "ninja", "export", "nngcat", "cc", "/tmp/greeter", "kill", "cmake --install")  # test_install, test_bus and the quickstart have these
INSTALLS = [line.split()[0] for line in (EXAMPLES / "dpkg.log").read_text().splitlines() if line.split()[2] == "install"]


def installs():
    return len(INSTALLS)


class Tour(BatonTest):
    """A copy of the tree's examples whose log is the small one: not every machine has a log of its own."""

    def setUp(self):
        self.d = self.daemon(config="agents: []\n", agents=False)
        self.assertEqual(self.d.stop(), 0)  # only its directories are wanted: `baton up` starts the one of the tour
        self.root = self.d.work / "tree"
        shutil.copytree(ROOT / "deploy", self.root / "deploy")
        log, out = self.d.work / "dpkg.log", self.d.work / "baton-report.md"
        shutil.copy(EXAMPLES / "dpkg.log", log)
        for path in (self.root / "deploy").rglob("*"):
            if path.suffix in (".yaml", ".sh", ".json"):
                text = path.read_text().replace(LOG, str(log)).replace("[/var/log]", "[%s]" % self.d.work)
                path.write_text(text.replace("/tmp/baton-report.md", str(out)).replace("[/tmp]", "[%s]" % self.d.work))
        self.log, self.out = log, out
        self.addCleanup(self.end)
        self.agents = []

    def end(self):
        for agent in self.agents:
            agent.terminate()
            agent.wait(20)
        self.sh("baton down")

    def sh(self, command, code=0):
        env = {**os.environ, "PATH": "%s:%s" % (BIN, os.environ["PATH"]), "BATON_STATE": str(self.d.work / "tour")}
        done = subprocess.run(["sh", "-c", command], cwd=self.root, env=env, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, "%s\n%s%s" % (command, done.stdout, done.stderr))
        return done

    def background(self, command):
        env = {**os.environ, "PATH": "%s:%s" % (BIN, os.environ["PATH"]), "BATON_STATE": str(self.d.work / "tour")}
        log = open(self.d.work / "agent.log", "ab")
        self.agents.append(subprocess.Popen(command.split(), cwd=self.root, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        log.close()
        name = json.loads((self.root / command.split()[2]).read_text())["agentId"]
        for _ in range(500):
            if '"agentId":"%s"' % name in self.sh("baton agents --json").stdout:
                return
        self.fail(name + " did not register")

    def up(self):
        self.sh("baton up --config deploy/examples/tour.yaml")

    def plan_of(self, said):
        return re.search(r"plan ([0-9A-F-]{36})", said).group(1)

    def commands_of_readme(self):
        """[(command, lines that it prints)] of the section with the prompts."""
        text = (ROOT / "README.md").read_text()
        text = text[text.index("## Six commands"):text.index("## Write an agent")]
        found = []
        for line in re.findall(r"^    (.*)$", text, re.M):
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
        return found

    def test_commands_of_the_readme_print_what_it_shows(self):
        def shape(lines):
            """Ids, times and the place of the state differ; steps that run at once end in any order."""
            text = "\n".join(lines)
            for what, name in ((r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}", "ID"), (r"\S+T[0-9:.]+Z", "TIME"), (r"\d+ ms", "MS"),
                               (r"(?<=state in )\S+", "STATE"), (r"(?m)^ +\d+ ", "SEQ ")):
                text = re.sub(what, name, text)
            return sorted(text.split("\n"))

        shown = self.commands_of_readme()
        self.assertEqual(len(shown), 6)
        for command, lines in shown:
            done = self.sh(command)
            self.assertEqual(shape((done.stderr + done.stdout).rstrip("\n").split("\n")), shape(lines), command)

    def test_agent_of_the_readme_that_runs_a_program(self):
        text = (ROOT / "README.md").read_text()
        blocks = ["\n".join(re.findall(r"^    (.*)$", b, re.M)) for b in re.split(r"\n\n(?=\S)", text[text.index("## Write an agent"):])]
        settings = json.loads(next(b for b in blocks if "agentId" in b))
        self.up()
        path = self.root / "shout.json"
        path.write_text(json.dumps(settings))
        self.background("baton-agent-exec --settings shout.json")
        plan = {"steps": [{"stepId": "a", "agentId": "shouter", "skill": "shout", "task": "Say it in capitals", "parameters": {"input": "hello"}}]}
        (self.root / "loud.json").write_text(json.dumps(plan))
        self.assertEqual(self.sh("baton run --plan loud.json").stdout.strip(), "HELLO")

    def test_every_command_of_the_tour_does_what_it_says(self):
        text = (ROOT / "deploy" / "TOUR.md").read_text()
        text = text[text.index("## Every feature"):]  # the first hour before it: tests/package/test_first_hour.py
        commands = [c.strip() for c in re.sub(r"\\\n +", "", "\n".join(re.findall(r"^    (.*)$", text, re.M))).split("\n")]
        told, ran = "", []
        for command in commands:
            line, _, remark = command.partition("  #")
            line = line.strip().replace(LOG, str(self.log)).replace("dir=/var/log", "dir=%s" % self.d.work)
            if not line or line.startswith(("#", "events=")) or line.split()[0] in ELSEWHERE or line == "baton down" or "greet" in line or "shout" in line:
                continue
            if line.endswith("&"):
                self.background(line[:-1])
                continue
            wanted = re.search(r"exit code (\d+)", remark)
            done = self.sh((told + "\n" + line).strip(), int(wanted.group(1)) if wanted else 0)
            if re.match(r"\w+=", line):  # a variable of the shell, for the lines behind it
                value = self.sh(line + "; printf %s \"$plan\"").stdout
                told = "plan=" + value
            ran.append(re.search(r"\bbaton (\w+)", line).group(1) if "baton " in line else line.split()[1])
            self.assertNotIn("error", done.stderr.lower(), line)
        for verb in ("up", "plan", "run", "status", "events", "agents", "doctor", "lint", "reviews", "pause", "resume", "skip", "modify", "approve", "retry",
                     "fork", "history", "stats", "top", "chat", "cost", "recipes", "sessions"):
            self.assertTrue(verb in ran or any(verb in c for c in commands), verb + " is on the tour")

    def test_report_waits_for_approval_and_an_agent_steps_in_for_the_one_without_its_program(self):
        self.up()
        self.assertIn("problems    0 errors, 0 warnings", self.sh("baton lint deploy/examples/publish.yaml").stdout)
        plan = self.plan_of(self.sh("baton run --plan deploy/examples/publish.yaml", 4).stderr)
        self.assertFalse(self.out.exists(), "not without an approval")
        story = self.sh("baton events %s" % plan).stdout
        self.assertIn("quality_gate_passed", story)
        self.assertEqual("fallback_used" in story, shutil.which("b3sum") is None)
        self.sh("baton approve %s --comment fine" % plan)
        self.sh("until baton result %s >/dev/null 2>&1; do :; done" % plan)
        report = self.out.read_text()
        days = dict(re.findall(r"^\| (\d{4}-\d\d-\d\d) \| (\d+) \|", report, re.M))
        self.assertEqual({day: int(n) for day, n in days.items()}, {day: INSTALLS.count(day) for day in set(INSTALLS)})
        self.assertRegex(report, r"(?m)^[0-9a-f]{64}  -$")

    def test_log_without_installs_is_no_reason_for_a_report(self):
        self.up()
        empty = self.d.work / "empty.log"
        empty.write_text("2026-01-01 10:00:00 startup archives unpack\n")
        done = self.sh("baton run --plan deploy/examples/publish.yaml --inputs '%s'" % json.dumps({"log": str(empty)}), 3)
        self.assertIn("verify", done.stderr)
        self.assertFalse(self.out.exists())

    def test_lost_log_is_found_by_a_new_plan(self):
        self.up()
        self.background("baton-agent-exec --settings deploy/examples/agents/detour.json")
        self.assertIn("problems    0 errors, 0 warnings", self.sh("baton lint deploy/examples/detour.yaml").stdout)
        done = self.sh("baton run --plan deploy/examples/detour.yaml --result sum")
        self.assertEqual(int(done.stdout), installs())
        self.assertIn("replanned: read, revision 2", done.stderr)
        plan = self.plan_of(done.stderr)
        story = self.sh("baton history %s" % plan).stdout
        self.assertIn("the log was rotated away", story)
        # The planner names what it knows, and no more.
        done = self.sh("baton run --plan deploy/examples/detour.yaml --inputs '{\"log\": \"/nowhere/else.log\"}'", 3)
        self.assertIn("only the lost log has another way", done.stderr)


class Shell(unittest.TestCase):
    def test_scripts_of_the_examples_can_be_read_by_sh(self):
        for path in EXAMPLES.rglob("*.sh"):
            subprocess.run(["sh", "-n", path], check=True)
        self.assertTrue(pathlib.Path(EXAMPLES / "agents" / "detour.json").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
