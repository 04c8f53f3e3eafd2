"""The examples of deploy/examples that work on data: each is made by `baton init`, run by its own agents, and its answer is
compared with a count of its own."""
import collections
import datetime
import json
import pathlib
import re
import shutil
import statistics
import tempfile
import unittest
import zoneinfo

from harness import until
from project import EXAMPLES, NAMES, Gallery, Project, table

NEEDS = {"nightly": ("--input", "day=2026-11-20"), "payment": ("--input", "invoice=2026-114")}
# The exit code of the command in the index, where it is not 0: a person must decide, a budget is spent, a copy is damaged, a
# model is not configured.
ENDS = {"code-review": 4, "expense-form": 4, "payment": 4, "budget": 3, "backup-check": 8, "research": 1, "triage": 4, "saga": 3}
# What is true of the example, and is its point: a budget that may not do, a model that is not there.
REMARKS = {"budget": "[limit]", "research": "[missing_agent]"}


STEP = re.compile(r"stepId: ([\w-]+)")


class EveryExample(Gallery):
    def test_there_are_fourteen_and_each_is_in_the_index(self):
        self.assertGreaterEqual(len(NAMES), 14)
        index = (EXAMPLES / "README.md").read_text()
        for name in NAMES:
            self.assertIn("baton init --example %s " % name, index)
            self.assertIn("(%s/plan.yaml)" % name, index)
        for name in re.findall(r"\(([a-z-]+)/plan\.yaml\)", index):
            self.assertIn(name, NAMES)

    def test_each_is_valid_without_a_word_too_much(self):
        for name in NAMES:
            with self.subTest(name):
                p = self.project(name, up=name != "research")
                if name == "research":
                    self.assertEqual(p.any("up").returncode, 1, "its model is not configured")
                for verb in (("plan", "check"), ("lint",)):
                    done = p.any(*verb, "plan.yaml", *NEEDS.get(name, ()))
                    said = [line for line in done.stderr.splitlines() if "warning" in line and REMARKS.get(name, "none") not in line]
                    self.assertEqual((done.returncode, said), (0, []), done.stderr)
                    if name not in REMARKS and verb[0] == "plan":
                        self.assertEqual(done.stderr, "valid\n")
                p.end()

    def test_without_a_daemon_each_is_valid_and_drawn_with_all_its_steps(self):
        for name in NAMES:
            with self.subTest(name):
                p = self.project(name, up=False)
                done = p.any("plan", "check", "plan.yaml", *NEEDS.get(name, ()))
                said = [line for line in done.stderr.splitlines() if "warning" in line and REMARKS.get(name, "none") not in line]
                self.assertEqual((done.returncode, said), (0, []), done.stderr)
                drawn = [p.any("graph", "plan.yaml", *how, *NEEDS.get(name, ())) for how in ((), ("-o", "dot"))]
                self.assertEqual([(d.returncode, d.stderr) for d in drawn], [(0, ""), (0, "")])
                for step in STEP.findall((p.dir / "plan.yaml").read_text()):
                    self.assertIn(step, drawn[1].stdout)
                p.end()

    def test_commands_of_the_index_run_as_they_stand(self):
        index = (EXAMPLES / "README.md").read_text().replace(" &&\n        ", " && ")
        commands = re.findall(r"^    (baton init --example (\S+) .*)$", index, re.M)
        self.assertEqual({name for _, name in commands[1:]}, set(NAMES))
        for command, name in commands:
            with self.subTest(command):
                work = pathlib.Path(tempfile.mkdtemp(prefix="baton-index-"))
                p = Project(self, name, up=False)
                p.dir = work / re.search(name + r" (\S+)", command).group(1)
                done = p.sh(command, cwd=work)
                self.assertEqual(done.returncode, ENDS.get(name, 0), done.stdout + done.stderr)
                p.end()
                shutil.rmtree(work)

    def test_commands_at_the_head_of_each_plan_run(self):
        for name in sorted(set(NAMES) - {"research"}):
            head = (EXAMPLES / name / "plan.yaml").read_text().split("\n#\n")[1:]
            commands = [line[4:] for part in head for line in part.splitlines() if re.match(r"#   (baton|echo|\./)", line)]
            self.assertTrue(commands, name)
            p = self.project(name)
            for command in commands:
                with self.subTest("%s: %s" % (name, command)):
                    if "PLAN_ID" in command:
                        plan = json.loads(p.baton("status", "--json"))[0]["planId"]
                        command = command.replace("PLAN_ID", plan)
                        if "cancel" not in command:
                            until(lambda: p.view(plan)["status"] not in ("pending", "running"), 60, plan + " waits or has ended")
                    done = p.sh(command)
                    self.assertIn(done.returncode, (0, 3, 4, 8), done.stdout + done.stderr)
                    self.assertNotIn("baton: unknown", done.stderr)
            p.end()

    def test_each_says_what_it_shows_in_one_line(self):
        for name in NAMES:
            text = (EXAMPLES / name / "plan.yaml").read_text()
            self.assertTrue(text.startswith("# "), name)
            described = re.search(r"^description: (.+)$", text, re.M)
            self.assertTrue(described and len(described.group(1)) <= 90, name)


class Data(Gallery):
    def test_hello_greets_by_name(self):
        p = self.project("hello")
        self.assertEqual(p.run("--input", "name=Ada", "--result", "louder")[1].strip(), "HELLO, ADA!")
        self.assertEqual(p.run("--result", "louder")[1].strip(), "HELLO, WORLD!")

    def test_a_report_over_a_directory_counts_each_file_once(self):
        p = self.project("dir-report")
        expected = sum(path.read_text().count(" ERROR ") for path in (p.dir / "logs").glob("*.log"))
        self.assertGreaterEqual(expected, 3)
        self.assertIn("%d errors in 3 logs" % expected, p.run("--result", "summary")[1])
        (p.dir / "logs" / "more.log").write_text("2026-11-20 ERROR one\n" * 7)
        done = p.any("run", "--plan", "plan.yaml")
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        p.baton("approve", "last")
        until(lambda: "T-001,logs,%d," % (expected + 7) in (p.dir / "tickets.csv").read_text() if (p.dir / "tickets.csv").exists() else False, 30, "the ticket")

    def test_a_job_is_looked_at_until_it_is_done(self):
        p = self.project("poll")
        plan, end = p.run("--result", "end")
        self.assertEqual((p.dir / "job-1").read_text().count("look"), 5, "four rounds, and the last step")
        self.assertEqual(json.loads(end)["state"], "done")

    def test_a_plan_inside_adds_up_each_shop(self):
        p = self.project("quarter")
        plan, report = p.run("--result", "report")
        expected = []
        for path in sorted((p.dir / "shops").glob("*.csv")):
            sales = [int(line.split(",")[1]) for line in path.read_text().splitlines()[1:]]
            expected.append((path.stem, str(len(sales)), str(sum(sales))))
        self.assertEqual(table(report, "Shops"), expected)
        self.assertIn("%d euros." % sum(int(row[2]) for row in expected), report)
        inside = json.loads(p.baton("status", plan + "/south", "--json"))
        self.assertEqual((inside["parentPlanId"], [s["status"] for s in inside["steps"]]), (plan, ["completed"] * 2))
        (p.dir / "shops" / "west.csv").write_text("day,euros\n")
        done = p.any("run", "--plan", "plan.yaml")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("west", done.stderr)

    def test_a_group_starts_in_order_and_its_agents_agree(self):
        p = self.project("group")
        plan, count = p.run("--result", "apples")
        self.assertEqual(count.strip(), "3")
        for kind, weight in (("apple", "360"), ("pear", "310"), ("plum", "85")):
            self.assertEqual(p.baton("result", plan, kind + "-weight").strip(), weight)

    def test_a_meeting_keeps_its_hour_in_berlin_over_a_change_of_the_clocks(self):
        p = self.project("meeting")
        self.assertEqual(json.loads(p.baton("result", p.run()[0], "between", "--json"))["result"]["text"], "6 days 23 hours", "what its head says")
        for first, head in ((datetime.datetime(2026, 3, 26, 15), ("10:00", "09:00", "6 days 23 hours")), (datetime.datetime(2026, 10, 22, 15), None)):
            plan, between = p.run("--input", "at=%s" % first.strftime("%Y-%m-%d %H:%M"), "--result", "between")
            here = first.replace(tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
            after = here + datetime.timedelta(days=7)  # of the clock on the wall
            for step, moment in (("first", here), ("next", after)):
                rows = json.loads(p.baton("result", plan, step, "--json"))["result"]["data"]["rows"]
                self.assertEqual([row[:2] for row in rows], [[row[0], moment.astimezone(zoneinfo.ZoneInfo(row[0])).isoformat()] for row in rows])
                self.assertEqual(len(rows), 4)
                if head:
                    self.assertIn("T%s:" % head[0 if step == "first" else 1], rows[1][1], "what its head says")
            hours = (after.astimezone(datetime.timezone.utc) - here.astimezone(datetime.timezone.utc)).total_seconds() / 3600
            self.assertEqual(hours, 167 if head else 169)
            self.assertIn("6 days 23 hours" if head else "7 days 1 hour", json.loads(p.baton("result", plan, "between", "--json"))["result"]["text"])

    def test_the_sales_are_drawn_as_they_are(self):
        p = self.project("sales-report")
        plan, text = p.run("--result", "page")
        self.assertIn("sales.html", text)
        page = p.baton("result", plan, "page", "--artifact", "sales.html")
        months, regions = collections.Counter(), collections.Counter()
        for row in p.rows("sales.csv"):
            months[row["date"][:7]] += round(100 * float(row["amount"]))
            regions[row["region"]] += round(100 * float(row["amount"]))
        drawn = dict(re.findall(r"<title>(2026-\d\d), amount: ([-0-9.]+)</title>", page))
        self.assertEqual({m: round(100 * float(v)) for m, v in drawn.items()}, dict(months))
        drawn = dict(re.findall(r"<title>(north|south|west), amount: ([-0-9.]+)</title>", page))
        self.assertEqual({m: round(100 * float(v)) for m, v in drawn.items()}, dict(regions))
        bins = re.findall(r"<title>\S+ to \S+: (\d+)</title>", page)
        self.assertEqual(sum(map(int, bins)), len(p.rows("sales.csv")))
        self.assertEqual(page.count("<svg "), 3)

    def test_the_handbook_answers_with_file_and_lines(self):
        p = self.project("handbook")
        plan, text = p.run("--result", "find")
        found = json.loads(p.baton("result", plan, "find", "--json"))["result"]["data"]["results"]
        self.assertEqual((found[0]["file"], found[0]["firstLine"]), ("backups.md", 1))
        lines = (p.dir / "docs" / "backups.md").read_text().splitlines()
        self.assertIn("thirty days", "\n".join(lines[found[0]["firstLine"] - 1:found[0]["lastLine"]]))
        self.assertIn("[1] backups.md:1-", text)
        (p.dir / "docs" / "zebras.md").write_text("# Zebras\n\nA zebra is fed at noon.\n")
        self.assertIn("[1] zebras.md:1-3", p.run("--result", "find", "--input", "question=when is a zebra fed?")[1])

    def test_what_depends_on_a_service_is_found(self):
        p = self.project("impact")
        for _ in range(2):  # merging again changes nothing
            plan, _ = p.run("--result", "affected")
            data = json.loads(p.baton("result", plan, "affected", "--json"))["result"]["data"]
            self.assertEqual({e["key"]: e["depth"] for e in data["entities"]}, {"stock": 1, "checkout": 2, "search": 2, "shop": 3})
            ways = json.loads(p.baton("result", plan, "way", "--json"))["result"]["data"]["paths"]
            self.assertEqual(sorted([r["from"] for r in way] for way in ways), [["shop", "checkout", "stock"], ["shop", "search", "stock"]])
        merged = json.loads(p.baton("result", plan, "merge", "--json"))["result"]["data"]
        self.assertEqual((merged["entitiesUnchanged"], merged["relationsUnchanged"]), (6, 6))
        self.assertIn("checkout -calls-> mail", p.run("--result", "affected", "--input", "service=mail")[1])

    def test_the_partner_spells_and_asks_a_person_for_the_language(self):
        p = self.project("partner")
        self.assertEqual(p.run("--result", "spell")[1].strip(), "vier zwei")
        plan = p.start("--input", "text=spell 2026")
        review = p.review(plan, "input")
        self.assertEqual(review["prompt"], "English or German?")
        p.baton("approve", review["reviewId"], "--edit", json.dumps({"a2a_answer": "english"}))
        p.wait(plan)
        self.assertEqual(p.result(plan, "spell").strip(), "two zero two six")

    def test_etl_joins_and_loses_no_row(self):
        p = self.project("etl-join")
        plan, report = p.run("--result", "report")
        customers = {c["id"]: c for c in p.rows("customers.csv")}
        revenue, count, unknown = collections.Counter(), collections.Counter(), []
        for order in p.rows("orders.csv"):
            if order["customer"] in customers:
                region = customers[order["customer"]]["region"]
                revenue[region] += round(100 * float(order["amount"]))
                count[region] += 1
            else:
                unknown.append(order["order_id"])
        self.assertEqual(table(report, "Regions"), [(r, str(count[r]), "%.2f" % (n / 100)) for r, n in revenue.most_common()])
        self.assertEqual([row[0] for row in table(report, "Orders without a customer")], unknown)
        bought = {order["customer"] for order in p.rows("orders.csv")}
        self.assertEqual(table(report, "Customers without an order"), [(c["id"], c["name"]) for c in customers.values() if c["id"] not in bought])
        self.assertEqual((p.dir / "out" / "report.md").read_text().strip(), report.strip())
        self.assertEqual(table(report, "Regions")[0], ("south", "4", "1393.00"), "what its head says")

    def test_incident_becomes_a_ticket_and_a_summary(self):
        p = self.project("incident")
        log = [re.match(r"\S+T(\d\d:\d\d):\d\dZ (\w+) +(\w+): ", line).groups() for line in (p.dir / "app.log").read_text().splitlines()]
        errors = [(minute, service) for minute, level, service in log if level == "ERROR"]
        service, most = sorted(collections.Counter(s for _, s in errors).items(), key=lambda e: (-e[1], e[0]))[0]
        _, summary = p.run("--result", "summary")
        self.assertIn("# T-001: %s has %d of %d errors" % (service, most, len(errors)), summary)
        person = next(row for row in p.rows("oncall.csv") if row["service"] == service)
        self.assertIn("On call: %(person)s, %(phone)s." % person, summary)
        self.assertIn("Severity %s." % ("high" if most >= 10 else "medium" if most >= 5 else "low"), summary)
        minutes = sorted(collections.Counter(m for m, _ in errors).items(), key=lambda e: (-e[1], e[0]))[:3]
        self.assertEqual(table(summary, "Worst minutes"), [(m, str(n)) for m, n in minutes])
        self.assertIn("# %s: %d of %d errors" % (service, most, len(errors)), (p.dir / "tickets" / "T-001.md").read_text())
        self.assertIn("# T-002: ", p.run("--result", "summary")[1])

    def test_log_without_errors_opens_no_ticket(self):
        p = self.project("incident")
        (p.dir / "quiet.log").write_text("2026-11-20T14:10:00Z INFO  web: request served\n")
        p.run("--input", "log=quiet.log", code=3)
        self.assertFalse((p.dir / "tickets").exists())

    def test_backup_is_compared_file_by_file(self):
        p = self.project("backup-check")

        def files(top):
            return {str(f.relative_to(p.dir / top)): f.read_bytes() for f in (p.dir / top).rglob("*") if f.is_file()}
        source, backup = files("source"), files("backup")
        expected = sorted([(state, name) for name in source for state in (
            ["missing"] if name not in backup else ["damaged"] if backup[name] != source[name] else [])] +
            [("only in the backup", name) for name in backup if name not in source])
        plan, report = p.run("--result", "report", code=8)
        self.assertEqual(table(report, "Differences"), [(name, state) for state, name in expected])
        self.assertIn("%d files, %d of them missing or damaged" % (len(source), sum(s != "only in the backup" for s, _ in expected)), report)
        for name, data in source.items():
            (p.dir / "backup" / name).write_bytes(data)
        self.assertIn("0 of them missing", p.run("--result", "report")[1])

    def test_stations_are_gathered_into_one_table(self):
        p = self.project("fan-out")
        plan, report = p.run("--result", "report")
        expected = []
        for path in (p.dir / "stations").glob("*.csv"):
            values = [float(line.split(",")[1]) for line in path.read_text().splitlines()[1:] if line.split(",")[1]]
            expected.append((path.stem, len(values), min(values), statistics.mean(values), max(values)))
        expected.sort(key=lambda s: -s[3])
        found = table(report, "Stations")
        self.assertEqual([row[0] for row in found], [s[0] for s in expected])
        for row, (_, n, low, mean, high) in zip(found, expected):
            self.assertEqual((int(row[1]), float(row[2]), float(row[4])), (n, low, high))
            self.assertAlmostEqual(float(row[3]), mean, delta=0.0051)
        self.assertIn("Warmest: %s. Coldest: %s." % (expected[0][0], expected[-1][0]), report)
        steps = [(e["type"], e["stepId"]) for t in ("plan_step_started", "plan_step_completed") for e in p.events(plan, t) if e["stepId"].startswith("read-")]
        self.assertEqual(len(steps), 12)

    def test_replan_finds_the_cost_at_the_other_shop(self):
        p = self.project("replan")
        price = {row["item"]: float(row["price"]) for row in p.rows("prices-nearby.csv")}
        cost = sum(float(row["amount"]) * price[row["item"]] for row in p.rows("recipe.csv"))
        plan, said = p.run("--result", "cost")
        self.assertEqual(table(said)[0][0], "%.2f" % cost)
        self.assertIn("revision 2", p.baton("history", plan))
        self.assertEqual([e["stepId"] for e in p.events(plan, "plan_step_completed")].count("recipe"), 1, "what was done is kept")

    def test_budget_ends_with_what_was_paid_for(self):
        p = self.project("budget")
        letters = sorted((p.dir / "letters").iterdir())
        cost = [400 * len(path.read_text().split()) for path in letters]
        paid, n = 0, 0
        while n < len(cost) and paid + 20000 <= 60000:
            paid += cost[n]
            n += 1
        plan, said = p.run(code=3)
        self.assertEqual([step["status"] for step in p.view(plan)["steps"]].count("completed"), n)
        self.assertEqual(p.view(plan)["usage"]["costMicros"], paid)
        self.assertIn("The lamp at the corner of Mill Road", said)
        plan, _ = p.run("--policy", '{"budget": {"costMicros": 90000}}')
        self.assertEqual(p.view(plan)["usage"]["costMicros"], sum(cost))

    def test_saga_gives_back_what_it_took_each_once_and_the_last_thing_first(self):
        p = self.project("saga")
        plan, _ = p.run(code=3)
        ledger = [(row["order"], row["what"]) for row in p.rows("ledger.csv")]
        self.assertEqual(ledger, [("7", what) for what in ("reserved", "paid 80", "refunded", "released")])
        self.assertEqual({k: p.view(plan)["compensation"][k] for k in ("status", "compensated", "failed")}, {"status": "compensated", "compensated": 2, "failed": 0})
        p.run("--input", "order=8", "--input", "kilos=30")
        self.assertEqual([row["what"] for row in p.rows("ledger.csv") if row["order"] == "8"], ["reserved", "paid 80", "shipped"])

    def test_handoffs_go_to_those_who_know(self):
        p = self.project("handoff")
        plan, answers = p.run("--result", "answers")
        self.assertRegex(answers, r"(?s)ana@example.org\n\n[^#]*billing took over: it is about an invoice.*bo@example.org\n\n[^#]*8 to 12\.\n.*"
                                  r"cy@example.org\n\n[^#]*technics took over: something in the shop is broken")
        asked = [(e["fromAgent"]["agentId"], e["toAgent"]["agentId"]) for e in p.events(plan, "agent_handoff") if e["fromAgent"]["agentId"] == "desk"]
        self.assertIn(("desk", "billing"), asked)
        self.assertIn(("desk", "technics"), asked)


if __name__ == "__main__":
    unittest.main(verbosity=2)
