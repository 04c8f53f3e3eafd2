"""plan.lint of a running daemon: the worst case before anything runs, what decides it, and what is said of the shape."""
from harness import BatonTest, main
from probe import Probe, step, wait_up


class Lint(BatonTest):
    def setUp(self):
        self.d = self.daemon(config="", agents=False)
        p = Probe(self.d, "probe")
        self.addCleanup(p.close)
        wait_up(self.d, "probe")

    def lint(self, *steps, **policy):
        return self.d.ask("plan.lint", plan={"steps": list(steps), "policy": policy})

    def test_the_worst_case_of_a_plain_step(self):
        answer = self.lint(step("a"), maxFallbacks=0)
        self.assertTrue(answer["valid"])
        self.assertEqual(answer["worstCaseMs"], 183000)
        self.assertEqual(answer["criticalPath"], ["a"])
        self.assertEqual(answer["levels"], [{"steps": ["a"]}])
        self.assertFalse("worstCaseTokens" in answer)

    def test_levels_and_the_longest_path(self):
        few = {"maxRetries": 0, "timeoutMs": 10, "estimate": {"tokens": 7}}
        answer = self.lint(step("a", dependsOn=[], **few), step("b", dependsOn=["a"], **few),
                           step("c", dependsOn=["a"], **{**few, "timeoutMs": 50}), step("d", dependsOn=["b", "c"], **few), maxFallbacks=0)
        self.assertEqual(answer["criticalPath"], ["a", "c", "d"])
        self.assertEqual(answer["levels"], [{"steps": ["a"]}, {"steps": ["b", "c"]}, {"steps": ["d"]}])
        self.assertEqual(answer["worstCaseTokens"], 28)
        self.assertEqual(answer["worstCaseMs"], 72)  # 80 of work, 70 on the path, 5 at once

    def test_time_without_a_bound_has_no_number(self):
        self.assertEqual(self.lint(step("a", timeoutMs=0)).get("worstCaseMs", 0), 0)

    def test_the_shape_is_said_by_lint_and_not_by_submit(self):
        steps = [step(s, dependsOn=[], task="do something worth doing") for s in "ab"]
        said = [(p["severity"], p["category"], p["stepId"]) for p in self.lint(*steps).get("problems", [])]
        self.assertEqual(said, [("warning", "orphan_task", "a"), ("warning", "orphan_task", "b")])
        submitted = self.d.ask("plan.submit", plan={"steps": steps})
        self.assertFalse(submitted.get("problems"))


if __name__ == "__main__":
    main()
