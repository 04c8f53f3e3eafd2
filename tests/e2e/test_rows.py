"""calc's sort, group and percentiles on random rows, against Python's sorted, statistics, datetime and whole numbers of any size.
BATON_TEST_SEED repeats a run."""
import datetime
import json
import math
import os
import random
import statistics
import subprocess
import sys
import unittest
from pathlib import Path

BIN = Path(os.environ["BATON_BIN"])
SEED = int(os.environ.get("BATON_TEST_SEED", "4103"))
SAFE = 2 ** 53


def wire(v):
    return str(v) if type(v) is int and abs(v) > SAFE else v


def run(skill, **parameters):
    done = subprocess.run([BIN / "baton-agent-calc", "--once", skill], input=json.dumps({"parameters": parameters}),
                          capture_output=True, text=True, encoding="utf-8", timeout=60)
    answer = json.loads(done.stdout)
    return answer.get("failure", answer.get("result"))


def label(text, per):
    day = datetime.date.fromisoformat(text[:10])
    week = day.isocalendar()
    return {"day": text[:10], "week": "%04d-W%02d" % (week[0], week[1]), "month": text[:7],
            "quarter": "%s-Q%d" % (text[:4], (day.month + 2) // 3), "year": text[:4]}[per]


def moment(text):
    when = datetime.datetime.fromisoformat(text)
    return when if when.tzinfo else when.replace(tzinfo=datetime.timezone.utc)


class Rows(unittest.TestCase):
    def setUp(self):
        self.r = random.Random(SEED)

    def rows(self, n):
        r = self.r
        offsets = ["", "", "+02:00", "-05:00"]
        days = [datetime.date(2020, 12, 20) + datetime.timedelta(days=r.randrange(0, 800)) for _ in range(n)]
        return [{"id": i,
                 "region": r.choice(["north", "south", "ost", "ä", None]),
                 "amount": r.choice([None, r.randrange(-50, 50), r.randrange(-10 ** 6, 10 ** 6)]),
                 "price": r.choice([None, round(r.uniform(-100, 100), 2), r.uniform(-1e6, 1e6)]),
                 "big": r.choice([2 ** 53 + r.randrange(1, 99), -2 ** 54 + r.randrange(99), r.randrange(9)]),
                 "day": days[i].isoformat() + r.choice(["", "T%02d:30:00" % r.randrange(24) + r.choice(offsets)])}
                for i in range(n)]

    def on_the_wire(self, rows):
        return [{k: wire(v) for k, v in row.items()} for row in rows]

    def test_rows_are_sorted_as_python_sorts_them(self):
        print("test_rows: BATON_TEST_SEED=%d" % SEED, file=sys.stderr)
        for n in (0, 1, 2, 60, 200):
            rows = self.rows(n)
            for keys in (["region"], [{"field": "amount", "order": "desc"}], ["region", {"field": "price", "order": "desc"}, "big"],
                         [{"field": "day"}], ["day", {"field": "big", "order": "desc"}]):
                if n == 0:
                    continue
                want = list(rows)
                for key in reversed(keys):
                    field, down = (key, False) if isinstance(key, str) else (key["field"], key.get("order") == "desc")
                    of = (lambda v: moment(v)) if field == "day" else (lambda v: v.encode()) if field == "region" else (lambda v: v)
                    full = sorted((x for x in want if x[field] is not None), key=lambda x: of(x[field]), reverse=False)
                    if down:  # stable: equal rows keep their order
                        full = sorted((x for x in want if x[field] is not None), key=lambda x: of(x[field]), reverse=True)
                    want = full + [x for x in want if x[field] is None]
                got = run("sort", values=self.on_the_wire(rows), by=keys)
                self.assertIn("data", got, got)
                self.assertEqual([row[0] for row in got["data"]["rows"]], [x["id"] for x in want], (n, keys))

    def close(self, got, want, about):
        if type(want) is float and got is not None:
            self.assertTrue(math.isclose(float(got), want, rel_tol=1e-12, abs_tol=1e-9), (got, want, about))
        else:
            self.assertEqual(got, wire(want), about)

    def test_groups_have_the_figures_of_python(self):
        rows = self.rows(150)
        calculate = ["count"] + [{"function": f, "field": c} for c in ("amount", "price", "big") for f in ("count", "min", "max", "mean", "median")]
        calculate += [{"function": "sum", "field": c} for c in ("amount", "price", "big")]
        calculate += [{"function": "percentile", "field": "amount", "percent": 90, "as": "p90"},
                      {"function": "percentile", "field": "price", "percent": 10, "method": "nearest", "as": "n10"}]
        for by in (["region"], [{"field": "day", "per": "quarter"}], ["region", {"field": "day", "per": "week"}], []):
            groups = {}
            for row in rows:
                key = tuple((label(row["day"], k["per"]) if isinstance(k, dict) else row[k]) for k in by)
                groups.setdefault(key, []).append(row)
            got = run("group", values=self.on_the_wire(rows), by=by, calculate=calculate)
            self.assertIn("data", got, got)
            data = got["data"]
            order = sorted(groups, key=lambda key: [(k is None, (k or "").encode()) for k in key])
            self.assertEqual([tuple(row[:len(by)]) for row in data["rows"]], order)
            for key, row in zip(order, data["rows"]):
                cells = dict(zip(data["columns"], row))
                self.check(groups[key], cells, key)

    def check(self, rows, cells, key):
        self.assertEqual(cells["count"], len(rows))
        for c in ("amount", "price", "big"):
            values = [row[c] for row in rows if row[c] is not None]
            self.assertEqual(cells["count_" + c], len(values))
            if not values:
                self.assertEqual([cells[f + "_" + c] for f in ("sum", "min", "max", "mean", "median")], [None] * 5)
                continue
            exact = sum(values) if all(type(v) is int for v in values) else math.fsum(values)
            self.close(cells["sum_" + c], exact, key)
            self.close(cells["min_" + c], min(values), key)
            self.close(cells["max_" + c], max(values), key)
            self.close(cells["mean_" + c], float(statistics.mean(values)), key)
            middle = statistics.median(values)
            self.close(cells["median_" + c], float(middle) if c != "big" or len(values) % 2 == 0 else middle, (key, c))
        amounts = [row["amount"] for row in rows if row["amount"] is not None]
        if len(amounts) > 1:
            self.close(cells["p90"], float(statistics.quantiles(amounts, n=10, method="inclusive")[8]), key)
        prices = sorted(row["price"] for row in rows if row["price"] is not None)
        if prices:
            self.close(cells["n10"], prices[max(math.ceil(len(prices) / 10), 1) - 1], key)

    def test_every_day_has_the_buckets_of_python(self):
        days = [(datetime.date(1999, 12, 20) + datetime.timedelta(days=i)).isoformat() for i in range(1500)]
        days += ["0001-01-01", "9999-12-31", "2021-01-03T23:30:00-05:00", "2020-12-31T23:59:59.999Z"]
        for per in ("day", "week", "month", "quarter", "year"):
            got = run("group", values=[{"d": d} for d in days], by={"field": "d", "per": per})["data"]
            want = {}
            for d in days:
                want[label(d, per)] = want.get(label(d, per), 0) + 1
            self.assertEqual(got["rows"], [[k, want[k]] for k in sorted(want)], per)

    def test_percentiles_are_those_of_python(self):
        for n in (2, 3, 10, 101):
            values = [self.r.choice([self.r.randrange(100), self.r.uniform(-1e3, 1e3)]) for _ in range(n)]
            got = run("percentiles", values=values, percents=list(range(1, 100)))["data"]
            want = statistics.quantiles(values, n=100, method="inclusive")
            for (percent, value), w in zip(got["rows"], want):
                self.close(value, float(w), percent)
            nearest = run("percentiles", values=values, percents=[0, 1, 50, 100], method="nearest")["data"]
            self.assertEqual([v for _, v in nearest["rows"]],
                             [sorted(values)[max(math.ceil(p * n / 100), 1) - 1] for p in (0, 1, 50, 100)])
        self.assertEqual(run("percentiles", values=[7])["data"]["rows"][0], [25, 7])

    def test_integers_are_exact_or_an_error(self):
        top = 2 ** 63 - 1
        sums = run("group", values=[{"n": str(top)}, {"n": "1"}, {"n": "-1"}], calculate=[{"function": "sum", "field": "n"}])
        self.assertEqual(sums["data"]["rows"], [[str(top)]])
        over = run("group", values=[{"n": str(top)}, {"n": "1"}], calculate=[{"function": "sum", "field": "n"}])
        self.assertIn("over 64 bits", over["message"])
        under = run("group", values=[{"n": str(-top - 1)}, {"n": "-1"}], calculate=[{"function": "sum", "field": "n"}])
        self.assertIn("over 64 bits", under["message"])
        halves = run("group", values=[{"n": str(top)}, {"n": str(top - 2)}], calculate=[{"function": "median", "field": "n"}])
        self.assertEqual(halves["data"]["rows"], [[str(top - 1)]])

    def test_a_limit_marks_and_a_wrong_wish_is_named(self):
        rows = [{"n": i} for i in range(5)]
        got = run("sort", values=rows, by={"field": "n", "order": "desc"}, limit=2)
        self.assertEqual((got["truncated"], got["data"]["truncated"], got["data"]["rows"]), (True, True, [[4], [3]]))
        self.assertIn("[not whole: the first 2 of 5 rows", got["text"])
        self.assertNotIn("truncated", run("sort", values=rows, by="n", limit=5))
        for skill, wish, words in (("sort", {"by": "x"}, "no column 'x'"), ("sort", {"by": []}, "at least one column"),
                                   ("sort", {"by": {"field": "n", "order": "up"}}, "asc or desc"),
                                   ("group", {"by": {"field": "n", "per": "day"}}, "per needs dates"),
                                   ("group", {"by": "n", "calculate": [{"function": "sum"}]}, 'by "field"'),
                                   ("group", {"calculate": [{"function": "mode", "field": "n"}]}, 'expected one of "count"'),
                                   ("group", {"calculate": [{"function": "percentile", "field": "n"}]}, "percent from 0 to 100"),
                                   ("group", {"calculate": ["count", "count"]}, "two columns of the result"),
                                   ("percentiles", {"percents": [101]}, "must be at most 100"), ("percentiles", {"method": "best"}, "nearest")):
            self.assertIn(words, run(skill, values=rows, **wish).get("message", ""), (skill, wish))
        self.assertIn("needs numbers", run("group", values=[{"t": "a"}], calculate=[{"function": "sum", "field": "t"}])["message"])


if __name__ == "__main__":
    unittest.main()
