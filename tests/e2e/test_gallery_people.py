"""The examples of deploy/examples in which somebody decides, something is killed, or time passes: made by `baton init`, decided
by `baton approve` and `baton reject`, killed by SIGKILL."""
import json
import os
import re
import shutil
import signal
import subprocess
import unittest

from harness import until
from project import Gallery, table
import mock_llm


class Decided(Gallery):
    def passed(self, p, version):
        """How many of tests.txt the version passes, by a slug of our own."""
        slug = {"current": lambda t: re.sub(r"[^a-z0-9]", "-", t.lower()),
                "proposed": lambda t: re.sub(r"[^a-z0-9]+", "-", t.lower()).strip("-")}[version]
        return sum(slug(title) == want for want, title in (line.split("|", 1) for line in (p.dir / "tests.txt").read_text().splitlines()))

    def test_code_is_merged_when_the_gate_and_a_person_agree(self):
        p = self.project("code-review")
        before, after = self.passed(p, "current"), self.passed(p, "proposed")
        proposed = (p.dir / "proposed" / "slug.sh").read_text()
        plan, _ = p.run(code=4)
        self.assertNotEqual((p.dir / "current" / "slug.sh").read_text(), proposed, "not before it was approved")
        self.assertEqual(p.review(plan, "before_step")["task"], "Merge the proposal: %d tests passed before, %d would now" % (before, after))
        p.baton("approve", plan, "--comment", "good")
        p.wait(plan)
        self.assertEqual((p.dir / "current" / "slug.sh").read_text(), proposed)
        self.assertEqual(json.loads(p.result(plan, "check")), {"version": "current", "passed": 4, "failed": 0})

    def test_code_that_a_person_rejects_is_not_merged(self):
        p = self.project("code-review")
        current = (p.dir / "current" / "slug.sh").read_text()
        plan, _ = p.run(code=4)
        p.baton("reject", plan, "--comment", "not today")
        p.wait(plan, "failed")
        self.assertEqual((p.dir / "current" / "slug.sh").read_text(), current)

    def test_gate_refuses_what_fails_its_tests_before_anybody_is_asked(self):
        p = self.project("code-review")
        (p.dir / "proposed" / "slug.sh").write_text("#!/bin/sh\necho slug\n")
        plan, _ = p.run(code=3)
        self.assertEqual(p.reviews(plan), [])
        self.assertIn("the proposed version fails tests", p.view(plan)["failureReason"])

    def test_triage_takes_the_way_that_the_number_of_errors_asks_for(self):
        p = self.project("triage")
        errors = (p.dir / "app.log").read_text().count(" ERROR ")
        ways = {"ticket": "--input many=%d" % errors, "list": "--input many=%d" % (errors + 1), "quiet": "--input log=ok.log"}
        (p.dir / "ok.log").write_text("".join(line for line in (p.dir / "app.log").read_text().splitlines(True) if " ERROR " not in line))
        for way, given in ways.items():
            plan, _ = p.run(*given.split(), code=4 if way == "ticket" else 0)
            if way == "ticket":
                self.assertEqual(p.review(plan, "human_review")["task"], "%d errors in app.log: open a ticket?" % errors)
                self.assertFalse((p.dir / "tickets.csv").exists())
                p.baton("approve", plan)
                p.wait(plan)
            ends = {s["stepId"]: s["status"] for s in p.view(plan)["steps"]}
            self.assertEqual({name for name in ways if ends[name] == "completed"}, {way})
            self.assertEqual({ends[name] for name in ways if name != way}, {"skipped"})
            self.assertEqual(p.result(plan, "summary").strip(), "ok.log: 0 errors." if way == "quiet" else "app.log: %d errors." % errors)
        self.assertEqual([(row["ticket"], row["errors"]) for row in p.rows("tickets.csv")], [("T-001", str(errors))])

    def test_an_agent_orders_what_is_short_and_a_person_approves_each_order(self):
        p = self.project("restock")
        rows = p.rows("stock.csv")
        short = {r["item"]: int(r["minimum"]) - int(r["count"]) for r in rows if int(r["count"]) < int(r["minimum"])}
        self.assertEqual(set(short), {"bolts", "nuts"})
        plan = p.baton("run", "-f", "plan.yaml", "--detach").split()[-1]
        asked = until(lambda: (lambda r: r if len(r) == 2 else None)(json.loads(p.baton("reviews", "--json"))), 30, "two orders wait")
        self.assertFalse((p.dir / "orders.csv").exists())
        for review in asked:
            p.baton("approve" if review["parameters"]["item"] == "bolts" else "reject", review["reviewId"])
        p.wait(plan)
        self.assertEqual([line.split(",")[1:] for line in (p.dir / "orders.csv").read_text().splitlines()], [["bolts", str(short["bolts"]), str(7 * short["bolts"])]])
        self.assertRegex(p.result(plan), r"bolts: ordered 80 bolts for 560 cents\nnuts: not ordered, \w+")
        plan = p.baton("run", "-f", "plan.yaml", "--detach", "--input", "limit=3").split()[-1]
        p.wait(plan)
        self.assertEqual(p.result(plan).strip(), "nothing to order")

    @unittest.skipUnless(shutil.which("node"), "SKIPPED: node is not installed")
    def test_an_agent_in_javascript_writes_prices_as_each_country_does(self):
        p = self.project("price-list")
        cents = [(r["item"], int(r["cents"])) for r in p.rows("goods.csv")]
        german = ", ".join("%s %s €" % (item, "{:,.2f}".format(c / 100).translate(str.maketrans(",.", ".,"))) for item, c in cents)
        american = ", ".join("%s $%s" % (item, "{:,.2f}".format(c * 1.25 / 100 + 1e-9)) for item, c in cents)
        plan, _ = p.run()
        self.assertEqual(p.result(plan, "page").splitlines()[:2], ["de: " + german, "us: " + american])
        plan, _ = p.run("--input", 'countries=["xx", "de"]')
        self.assertEqual(p.result(plan, "page").splitlines(), ["xx: no list, as country 'xx': expected one of de, us, gb", "de: " + german])

    def test_order_is_shipped_when_it_is_paid_and_given_back_when_it_is_not(self):
        p = self.project("order")
        plan = p.baton("run", "-f", "plan.yaml", "--detach").split()[-1]
        done = p.any("signal", plan, "paid", "--data", '{"amount": 5}')
        self.assertEqual((done.returncode, "does not fit wait.schema" in done.stderr), (2, True), done)
        for _ in range(2):
            p.baton("signal", plan, "paid", "--data", '{"amount": 80}', "--key", "invoice-7")
        p.wait(plan)
        self.assertEqual({s["stepId"]: s["status"] for s in p.view(plan)["steps"]},
                         {"reserve": "completed", "paid": "completed", "pack": "completed", "ship": "completed", "give-back": "skipped"})
        self.assertEqual(p.result(plan, "ship").strip(), "order 7: shipped, paid with 80")
        text = (p.dir / "plan.yaml").read_text()
        (p.dir / "plan.yaml").write_text(text.replace("timeoutMs: 1209600000", "timeoutMs: 200"))
        plan, _ = p.run("--input", "order=8", code=8)
        self.assertEqual(p.view(plan)["steps"][1]["errorClass"], "TIMEOUT")
        self.assertEqual([line.split(",", 1) for line in (p.dir / "orders.csv").read_text().splitlines()[1:]],
                         [["7", "reserved"], ["7", "shipped, paid with 80"], ["8", "reserved"], ["8", "cancelled"]])

    def test_form_takes_only_values_that_fit(self):
        p = self.project("expense-form")
        plan, _ = p.run("--input", "to=Oslo", code=4)
        review = p.review(plan, "input")
        self.assertEqual(review["schema"]["required"], ["kilometres", "nights", "meals"])
        self.assertRegex(p.baton("reviews", plan), "approve +with --edit JSON that fits")
        for values, wrong in (({"kilometres": "far", "nights": 2, "meals": 87.5}, "kilometres"), ({"kilometres": 640, "nights": 2}, "meals"),
                              ({"kilometres": 640, "nights": 2, "meals": 1, "tip": 3}, "tip")):
            done = p.any("approve", plan, "--edit", json.dumps(values))
            self.assertEqual((done.returncode, wrong in done.stderr), (2, True), done)
        done = p.any("approve", plan)
        self.assertEqual((done.returncode, "kilometres" in done.stderr), (2, True), "values are asked for, not a yes")
        p.baton("approve", plan, "--edit", '{"kilometres": 640, "nights": 2, "meals": 87.5}')
        p.wait(plan)
        report = p.result(plan, "report")
        self.assertIn("To pay: %g" % round(640 * 0.30 + 2 * 28 + 87.5, 2), report)
        self.assertEqual(table(report), [("kilometres", "640"), ("nights", "2"), ("meals", "87.5")])


class Paid(Gallery):
    def invoice(self, p, number):
        return next(row for row in p.rows("invoices.csv") if row["invoice"] == number)

    def test_payment_is_made_once_after_a_person_saw_it(self):
        p = self.project("payment")
        plan, _ = p.run("--input", "invoice=2026-114", code=4)
        self.assertFalse((p.dir / "ledger.csv").exists())
        review, invoice = p.review(plan, "before_step"), self.invoice(p, "2026-114")
        self.assertEqual((review["effects"], review["parameters"]["amount"], review["parameters"]["iban"]), ("unsafe", invoice["amount"], invoice["iban"]))
        p.baton("approve", plan)
        p.wait(plan)
        self.assertEqual([(row["invoice"], row["amount"]) for row in p.rows("ledger.csv")], [("2026-114", invoice["amount"])])

    def test_invoice_that_is_unknown_is_not_paid(self):
        p = self.project("payment")
        p.run("--input", "invoice=2026-999", code=3)
        self.assertFalse((p.dir / "ledger.csv").exists())

    def paying(self, p):
        """(planId, the bank agent's process id) of a payment that is booked, and not confirmed."""
        plan = p.start("--input", "invoice=2026-121", "--input", "seconds=60")
        p.review(plan, "before_step")
        p.baton("approve", plan)
        until(lambda: (p.dir / "ledger.csv").exists() and len(p.rows("ledger.csv")) == 1, 30, "the bank books\n" + p.log())
        return plan, json.loads(p.baton("agents", "bank", "--json"))["instances"][0]["pid"]

    def test_payment_whose_answer_is_lost_is_asked_about_and_not_repeated(self):
        p = self.project("payment")
        plan, bank = self.paying(p)
        os.kill(bank, signal.SIGKILL)
        p.review(plan, "unknown_outcome")
        self.assertEqual(len(p.rows("ledger.csv")), 1)
        self.assertRegex(p.baton("reviews", plan), "approve +does it AGAIN; skip: it was done")
        self.assertIn("pay needs your decision: baton review show ", p.baton("status", plan))
        p.baton("decide", p.review(plan, "unknown_outcome")["reviewId"], "skip", "--comment", "it is in the ledger")
        p.wait(plan)
        self.assertEqual(len(p.rows("ledger.csv")), 1, "paid once")
        self.assertIn("1 rows", p.result(plan, "receipt"))


class Long(Gallery):
    def test_job_reports_progress_and_its_answer_is_right(self):
        p = self.project("long-job")
        plan, share = p.run("--input", "upTo=20000", "--result", "share")
        sieve = bytearray([1]) * 20000
        sieve[0:2] = b"\0\0"
        for n in range(2, 142):
            if sieve[n]:
                sieve[n * n::n] = bytes(len(sieve[n * n::n]))
        self.assertEqual(json.loads(p.result(plan, "count")), {"upTo": 20000, "primes": sum(sieve)})
        self.assertEqual(float(share), round(100 * sum(sieve) / 20000, 4))
        percents = [e["percent"] for e in p.events(plan, "plan_step_progress")]
        self.assertTrue(percents and percents == sorted(percents), percents)

    def working(self, p):
        plan = p.start("--input", "upTo=30000000")
        until(lambda: (p.dir / "work").is_dir() and list((p.dir / "work").iterdir()), 30, "it works\n" + p.log())
        return plan

    def test_job_that_is_cancelled_tidies_up(self):
        p = self.project("long-job")
        plan = self.working(p)
        p.baton("cancel", plan)
        p.wait(plan, "cancelled")
        until(lambda: not list((p.dir / "work").iterdir()), 20, "the program has removed its notes")

    def test_job_survives_a_kill_of_the_daemon_and_runs_once(self):
        p = self.project("long-job")
        plan = p.start("--input", "upTo=400000")
        until(lambda: (p.dir / "log.txt").exists(), 30, "it has begun")
        p.kill9()
        p.baton("up")
        p.wait(plan)
        self.assertEqual(json.loads(p.result(plan, "count"))["primes"], 33860)
        self.assertEqual(len((p.dir / "log.txt").read_text().splitlines()), 1, "the same program, begun once")


class Remembered(Gallery):
    def test_nightly_report_is_made_once(self):
        p = self.project("nightly")
        put = lambda: subprocess.run(["./nightly.sh"], cwd=p.dir, env={**p.env, "TZ": "Europe/Berlin"}, capture_output=True, text=True, timeout=60)
        first, second = put(), put()
        self.assertEqual((first.returncode, second.returncode), (0, 0), first.stderr + second.stderr)
        self.assertIn("T23:55:00+0", first.stdout)
        self.assertIn("is as it was", second.stdout)
        shutil.copy(p.dir / "sales" / "2026-11-20.csv", p.dir / "sales" / "2021-11-20.csv")  # a day that has passed on any clock
        schedule = lambda: json.loads(p.baton("schedule", "get", "nightly", "--json"))
        for _ in range(2):
            self.assertIn("2021-11-20T23:55:00+01:00", p.baton("schedule", "backfill", "nightly", "2021-11-20", "2021-11-21"))
            until(lambda: "backfillTo" not in schedule() and schedule().get("openPlans", 0) == 0, 30, "the report")
        report = p.baton("result", schedule()["lastPlanId"], "report")
        sales = p.rows("sales/2021-11-20.csv")
        total = sum(int(s["pieces"]) * round(100 * float(s["price"])) for s in sales) / 100
        self.assertIn("%d sales, %.2f in all." % (len(sales), total), report)
        self.assertEqual([(row["day"], row["total"]) for row in p.rows("book.csv")], [("2021-11-20", "%.2f" % total)])
        self.assertEqual(len(json.loads(p.baton("status", "--json"))), 1, "one plan")
        items = {}
        for s in sales:
            items[s["item"]] = items.get(s["item"], 0) + int(s["pieces"]) * round(100 * float(s["price"]))
        self.assertEqual([(row[0], row[2]) for row in table(report, "Items")],
                         [(i, "%.2f" % (n / 100)) for i, n in sorted(items.items(), key=lambda i: -i[1])])

    def test_session_remembers_over_a_restart(self):
        p = self.project("session")
        spent = re.findall(r"spent ([0-9.]+) on (\w+)", (p.dir / "talk.txt").read_text())
        amounts = [float(n) for n, _ in spent]
        answers = p.baton("chat", "--session", "holiday", "--new", stdin=(p.dir / "talk.txt").read_text()).split()
        self.assertEqual([float(a) for a in answers], [sum(amounts[:n + 1]) for n in range(len(amounts))] + [sum(float(n) for n, what in spent if what == "books")])
        p.baton("down")
        p.baton("up")
        self.assertEqual(float(p.baton("chat", "--session", "holiday", stdin="how much in all?\n")), sum(amounts))
        self.assertEqual(float(p.baton("chat", "--session", "other", "--new", stdin="how much in all?\n")), 0, "another session knows nothing")


class Asked(Gallery):
    def test_without_a_model_it_says_what_to_configure(self):
        p = self.project("research", up=False)
        for said in (p.any("up").stderr, p.any("run", "--plan", "plan.yaml").stderr, p.any("doctor").stdout):
            self.assertIn("BATON_MODEL_KEY is not set", said)

    def test_model_answers_with_its_sources(self):
        def brain(asked):
            text = asked["messages"][0]["content"]
            if "Summarise the data" in text:
                return "noted: " + re.search(r"\d[\d,.]*", text.split("Summarise", 1)[1]).group()
            return json.dumps({"answer": "Yes: 16,987 against 20,020 in a winter.", "sources": ["meter", "engineer", "prices"]})
        mock = mock_llm.Mock(brain)
        self.addCleanup(mock.close)
        p = self.project("research", up=False)
        config = p.dir / "baton.yaml"
        config.write_text(config.read_text().replace("https://llm.example.com/v1", mock.url("ok", "/v1")))
        p.env["BATON_MODEL_KEY"] = "k" * 20
        p.baton("up")
        done = p.any("plan", "check", "plan.yaml")
        self.assertEqual((done.returncode, done.stderr), (0, "valid\n"))
        plan, report = p.run("--result", "report")
        self.assertIn("Yes: 16,987 against 20,020 in a winter.", report)
        self.assertEqual(re.findall(r"^- (\w+)$", report, re.M), ["meter", "engineer", "prices"])
        self.assertEqual(len(mock.journal), 4, "three sources and one answer")
        self.assertGreater(p.view(plan)["usage"]["inputTokens"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
