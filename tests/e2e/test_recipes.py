"""The recipes of deploy/examples/recipes, on the agents of deploy/quickstart.yaml: valid, and right by an independent count."""
import collections
import json
import pathlib
import tempfile

from harness import BatonTest, main
from test_quickstart import EXAMPLES, LOG, actions, quickstart_config, rows, section

RECIPES = EXAMPLES / "recipes"


class Recipes(BatonTest):
    def setUp(self):
        tables = tempfile.TemporaryDirectory()
        self.addCleanup(tables.cleanup)
        self.tables = pathlib.Path(tables.name)
        self.d = self.daemon(config=quickstart_config().replace('"%s"' % EXAMPLES, '"%s", "%s"' % (EXAMPLES, self.tables)))
        attempts = str(self.d.work / "attempts")
        self.inputs = {
            "checked-command": {"file": attempts, "failures": 1},
            "compare-files": {"first": str(LOG), "second": str(EXAMPLES / "greet.yaml"), "word": "install"},
            "csv-question": {"file": str(LOG), "question": "How long is it?", "sql": "SELECT count(*) AS n FROM data"},
            "directory-inventory": {"dir": str(EXAMPLES), "glob": "*.yaml", "top": 3},
            "errors-by-hour": {"log": str(LOG), "word": " install ", "per": "day"},
        }

    def run_recipe(self, name):
        answer = json.loads(self.d.cli("run", "--json", "--plan", RECIPES / (name + ".yaml"), "--inputs", json.dumps(self.inputs[name])))
        self.assertEqual(answer["status"], "completed", answer)
        return answer["planId"]

    def test_every_recipe_is_valid_and_known_here(self):
        self.assertEqual(sorted(p.stem for p in RECIPES.glob("*.yaml")), sorted(self.inputs))
        for name in self.inputs:
            with self.subTest(name):
                done = self.d.cli_any("plan", "check", RECIPES / (name + ".yaml"), "--inputs", json.dumps(self.inputs[name]))
                self.assertEqual((done.returncode, done.stderr), (0, "valid\n"))

    def test_the_worst_day_is_that_of_an_independent_count(self):
        plan = self.run_recipe("errors-by-hour")
        per_day = collections.Counter(day for day, _, action, _ in actions() if action == "install")
        day, n = per_day.most_common(1)[0]
        self.assertIn("The busiest day is **%s** with %d of %d" % (day, n, sum(per_day.values())), self.d.cli("result", plan, "worst"))

    def test_an_inventory_has_the_largest_files(self):
        report = self.d.cli("result", self.run_recipe("directory-inventory"), "report")
        sizes = sorted(((-p.stat().st_size, p.name) for p in EXAMPLES.glob("*.yaml")))
        self.assertEqual(rows(section(report, "Largest")), [(name, str(-size)) for size, name in sizes[:3]])
        self.assertIn("\n%d entries.\n" % len(sizes), report)

    def test_two_files_are_searched_and_added_up(self):
        report = self.d.cli("result", self.run_recipe("compare-files"), "report")
        lines = sum("install" in line for line in LOG.read_text().splitlines())
        other = sum("install" in line for line in (EXAMPLES / "greet.yaml").read_text().splitlines())
        self.assertIn("\n%d lines in all.\n" % (lines + other), report)
        self.assertEqual([int(n) for _, n in rows(section(report, "Lines"))], [lines, other])

    def test_a_question_about_rows_is_answered(self):
        report = self.d.cli("result", self.run_recipe("csv-question"), "report")
        self.assertEqual(rows(section(report, "Answer")), [(str(len(LOG.read_text().splitlines()) - 1),)])

    def test_a_question_about_amounts_compares_numbers(self):
        table = self.tables / "amounts.csv"
        table.write_text("item,amount\nx,99.83\ny,500\nz,7.5\n")
        self.inputs["csv-question"] = {"file": str(table), "question": "Largest?", "sql": "SELECT max(amount) AS most FROM data"}
        report = self.d.cli("result", self.run_recipe("csv-question"), "report")
        self.assertEqual(rows(section(report, "Answer")), [("500",)])

    def test_an_unsteady_command_is_tried_again(self):
        plan = self.run_recipe("checked-command")
        self.assertIn("# The command succeeded", self.d.cli("result", plan, "report"))
        steps = self.d.ask("plan.get", planId=plan)["steps"]
        self.assertEqual([s["attempts"] for s in steps if s["stepId"] == "run"], [2])

    def test_a_value_that_does_not_fit_is_refused_by_name(self):
        done = self.d.cli_any("run", "--plan", RECIPES / "directory-inventory.yaml", "--inputs", json.dumps({"dir": "/", "top": 0}))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("input/top", done.stderr)


if __name__ == "__main__":
    main()
