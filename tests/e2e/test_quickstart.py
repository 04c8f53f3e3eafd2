"""The example plans of deploy/examples, on the agents of deploy/quickstart.yaml: valid, and right by an independent count."""
import collections
import json
import re
import unittest

from harness import ROOT, BatonTest

DEPLOY = ROOT / "deploy"
EXAMPLES = DEPLOY / "examples"
LOG = EXAMPLES / "dpkg.log"


def quickstart_config():
    text = (DEPLOY / "quickstart.yaml").read_text()
    text = text[text.index("\nagents:"):].replace("%", "%%")
    return text.replace("@ROOTS@", '"%s"' % EXAMPLES).replace("@EXAMPLES@", str(EXAMPLES))


def actions():
    """(day, hour, action, package) of every line of the small log that is an action."""
    for line in LOG.read_text().splitlines():
        day, time, action, *rest = line.split(" ")
        if action in ("install", "upgrade", "remove", "purge"):
            yield day, time[:2], action, rest[0].split(":")[0]


def rows(text):
    """The cells of a Markdown table, without its head."""
    return [tuple(c.strip() for c in line.strip("|").split("|")) for line in text.splitlines() if line.startswith("|")][2:]


def section(report, heading):
    return re.search(r"^## %s\n(.*?)(?=^## |\Z)" % re.escape(heading), report, re.M | re.S).group(1)


class Examples(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=quickstart_config())

    def inputs(self, name):
        return {"dpkg-report": ["--inputs", json.dumps({"log": str(LOG)})],
                "retry": ["--inputs", json.dumps({"file": str(self.d.work / "attempts")})]}.get(name, [])

    def run_plan(self, name):
        out = self.d.cli("run", "--json", "--plan", EXAMPLES / (name + ".yaml"), *self.inputs(name))
        answer = json.loads(out)
        return answer["planId"], answer

    def test_every_example_plan_is_valid_without_a_warning(self):
        elsewhere = {"greet", "publish", "detour", "tour"}  # on other agents: test_install.py, test_tour.py; tour is a configuration
        names = sorted({p.stem for p in EXAMPLES.glob("*.yaml")} - elsewhere)
        self.assertGreaterEqual(len(names), 3)
        for name in names:
            with self.subTest(name):
                done = self.d.cli_any("plan", "check", EXAMPLES / (name + ".yaml"), *self.inputs(name))
                self.assertEqual((done.returncode, done.stderr), (0, "valid\n"))

    def test_report_has_the_figures_of_an_independent_count(self):
        plan, _ = self.run_plan("dpkg-report")
        report = self.d.cli("result", plan, "report")
        found = list(actions())
        self.assertIn("\n%d installs, upgrades and removals.\n" % len(found), report)

        per_day = collections.Counter(day for day, _, action, _ in found if action == "install")
        table = rows(section(report, "Installed per day"))
        self.assertEqual([(day, int(n)) for day, n, _ in table], sorted(per_day.items()))
        for _, n, percent in table:
            self.assertAlmostEqual(float(percent), 100 * int(n) / sum(per_day.values()), delta=0.06)

        upgrades = collections.Counter(package for _, _, action, package in found if action == "upgrade")
        self.assertEqual([(package, int(n)) for package, n, _ in rows(section(report, "Upgraded most often"))],
                         sorted(upgrades.items(), key=lambda u: (-u[1], u[0]))[:5])

        hour, most = sorted(collections.Counter(hour for _, hour, _, _ in found).items(), key=lambda h: (-h[1], h[0]))[0]
        self.assertIn("The busiest hour is **%s** with %d of %d" % (hour, most, len(found)), report)

    def test_three_queries_run_at_once_and_handoffs_are_told(self):
        plan, _ = self.run_plan("dpkg-report")
        story = [(e["type"], e.get("stepId")) for e in self.d.events(plan)]
        queries = ("per-day", "upgraded", "per-hour")
        last_start = max(story.index(("plan_step_started", q)) for q in queries)
        first_end = min(story.index(("plan_step_completed", q)) for q in queries)
        self.assertLess(last_start, first_end)
        handoffs = [(e["fromAgent"]["agentId"], e["toAgent"]["agentId"]) for e in self.d.events(plan) if e["type"] == "agent_handoff"]
        self.assertEqual(handoffs[:2], [("supervisor", "files"), ("files", "sql")])
        last = [e["agentId"] for e in self.d.events(plan) if e["type"] == "plan_step_completed" and e["stepId"] in ("rows", "shares", "upgraded", "busiest")][-1]
        self.assertEqual(handoffs[-1], (last, "files"), "from whoever brought the last of what it needs")

    def test_second_report_replaces_the_first(self):
        first = self.d.cli("result", self.run_plan("dpkg-report")[0], "report")
        self.assertEqual(self.d.cli("result", self.run_plan("dpkg-report")[0], "report"), first)

    def test_parallel_example_divides_its_sums(self):
        plan, _ = self.run_plan("parallel")
        self.assertEqual(self.d.cli("result", plan, "quotient").strip(), "30")

    def test_retry_example_succeeds_at_the_third_attempt(self):
        plan, _ = self.run_plan("retry")
        self.assertEqual(self.d.cli("result", plan, "attempts").strip(), "3")
        retries = [e for e in self.d.events(plan) if e["type"] == "plan_step_retry"]
        self.assertEqual(len(retries), 2)

    def test_missing_or_wrong_inputs_are_refused_before_anything_runs(self):
        plan = EXAMPLES / "retry.yaml"
        for inputs, says in (([], "file is missing"), (["--inputs", '{"file": 3}'], "file"), (["--inputs", "{"], "--inputs"),
                             (["--inputs", '{"file": "x", "fail": 1}'], "failures")):
            done = self.d.cli_any("run", "--plan", plan, *inputs)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(says, done.stderr)
        self.assertEqual(self.d.ask("plan.list")["plans"], [])

    def test_goal_in_words_is_planned_routed_and_run(self):
        done = self.d.cli_any("run", "read %s, then count the installs per day, then report the busiest day" % LOG)
        self.assertEqual(done.returncode, 0, done.stderr)
        for route in ("files.read", "calc.count_per_day", "calc.busiest"):
            self.assertIn("→ " + route, done.stderr)
        per_day = collections.Counter(day for day, _, action, _ in actions() if action == "install")
        day, most = per_day.most_common(1)[0]
        self.assertIn("The busiest day is **%s** with %d of %d" % (day, most, sum(per_day.values())), done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
