"""Sums of calc compared with Python's integers and fractions on random columns. The seed is printed and can be given:
BATON_TEST_SEED=n BATON_TEST_FILES=n python3 test_calc_exact.py"""
import fractions
import json
import os
import random
import statistics
import subprocess
import sys
import unittest
from pathlib import Path

BIN = Path(os.environ["BATON_BIN"])
SEED = int(os.environ.get("BATON_TEST_SEED", "2753"))
COLUMNS = int(os.environ.get("BATON_TEST_FILES", "60"))


def calc(skill, **parameters):
    done = subprocess.run([BIN / "baton-agent-calc", "--once", skill], input=json.dumps({"parameters": parameters}),
                          capture_output=True, text=True, timeout=60)
    answer = json.loads(done.stdout)
    if answer["outcome"] != "completed":
        raise AssertionError(answer)
    return answer["result"]["data"]


def integers(rng):
    top = rng.choice([10, 10**6, 2**53, 2**53 + 8, 2**63 - 1])
    return [rng.randint(-top - (top == 2**63 - 1) if rng.random() < 0.5 else 0, top) for _ in range(rng.randint(1, 60))]


def decimals(rng):
    """Texts of at most 15 digits, with a point."""
    digits, places = rng.randint(1, 15), rng.randint(1, 6)
    return ["%.*f" % (places, rng.randint(-10**digits + 1, 10**digits - 1) / 10**places) if digits + places <= 15 else
            "%d.%s" % (rng.randint(-999, 999), rng.choice(["5", "25", "1", "01"])) for _ in range(rng.randint(1, 60))]


def csv(values, name="v"):
    return "k,%s\n" % name + "".join("r%d,%s\n" % (i, v) for i, v in enumerate(values))


class Exact(unittest.TestCase):
    def setUp(self):
        self.rng = random.Random(SEED)
        print("BATON_TEST_SEED=%d" % SEED, end=" ", file=sys.stderr)

    def test_integers_are_exact(self):
        for i in range(COLUMNS):
            values = integers(self.rng)
            with self.subTest(i=i, values=values):
                s = calc("statistics", values=csv(values), field="v")
                self.assertEqual((s["count"], int(s["sum"]), int(s["min"]), int(s["max"])),
                                 (len(values), sum(values), min(values), max(values)))
                mean = fractions.Fraction(sum(values), len(values))
                self.assertAlmostEqual(s["mean"], float(mean), delta=abs(float(mean)) * 1e-15)
                spread = statistics.stdev(values) if len(values) > 1 else 0
                self.assertAlmostEqual(s["stdev"], float(spread), delta=float(spread) * 1e-13)
                top = max(values)
                if top > 0:
                    b = calc("busiest", counts=csv(values), value="v")
                    self.assertEqual((b["label"], int(b["value"]), int(b["total"])), ("r%d" % values.index(top), top, sum(values)))
                if sum(values) > 0:
                    t = calc("shares", values=csv(values), value="v", label="k")
                    self.assertEqual([int(row[1]) for row in t["rows"]], values)
                    self.assertEqual(int(t["total"]), sum(values))

    def test_decimals_are_the_double_next_to_the_exact_sum_and_other_sums_are_marked(self):
        for i in range(COLUMNS):
            values = decimals(self.rng)
            with self.subTest(i=i, values=values):
                exact = sum(map(fractions.Fraction, values))
                s = calc("statistics", values=csv(values), field="v")
                self.assertEqual(float(s["sum"]), float(exact))
                if "approximate" not in s:
                    self.assertEqual(fractions.Fraction(repr(float(s["sum"]))), exact)
                g = calc("group", values=csv(values), calculate=[{"function": "sum", "field": "v"}])
                self.assertEqual(float(g["rows"][0][0]), float(exact))

    def test_tenths_add_up(self):
        s = calc("statistics", values=csv(["0.1"] * 10), field="v")
        self.assertEqual((s["sum"], "approximate" in s), (1, False))
        self.assertEqual(calc("statistics", values=csv(["0.1", "0.2"]), field="v")["sum"], 0.3)

    def test_a_sum_that_no_double_holds_says_so(self):
        for values in (["123456789012.5", "0.00000001"], ["1e20", "0.1"], ["1e300", "1.5"], ["9007199254740993", "1.5"]):
            with self.subTest(values=values):
                s = calc("statistics", values=csv(values), field="v")
                self.assertTrue(s["approximate"])
                self.assertEqual(float(s["sum"]), float(sum(map(fractions.Fraction, values))))

    def test_a_median_between_large_integers_is_exact_or_marked(self):
        self.assertEqual(calc("statistics", values=csv([2**53 + 1, 2**53 + 3]), field="v")["median"], str(2**53 + 2))
        self.assertTrue(calc("statistics", values=csv([2**53 + 1, 2**53 + 2]), field="v")["approximate"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
