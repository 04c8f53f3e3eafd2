"""A damaged row of an ended plan (G22): it costs its own event, is named where somebody looks, and stops nobody."""
import json
import sqlite3

import harness
from probe import Probe, step, wait_up


class Damage(harness.BatonTest):
    def setUp(self):
        self.d = harness.Daemon(self, config="agents: []\n")  # the order of its events is not what it was
        self.addCleanup(self.d.clean)
        self.d.start(agents=False)
        probe = Probe(self.d)
        self.addCleanup(probe.close)
        wait_up(self.d)
        self.plans = [self.d.submit({"goal": "g%d" % i, "steps": [step("a"), step("b")]}) for i in range(3)]
        for plan in self.plans:
            self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.before = self.d.events()
        self.hit = next(e for e in self.before if e.get("planId") == self.plans[1] and e["type"] == "plan_step_completed")
        self.assertEqual(self.d.stop(), 0)
        probe.close()

    def flip(self, sql, *args):
        with sqlite3.connect(self.d.state / "journal.db") as db:
            db.execute(sql, args)
        db.close()

    def flip_row(self, seq):
        with sqlite3.connect(self.d.state / "journal.db") as db:
            body = bytearray(db.execute("SELECT body FROM rows WHERE pos = ?", (seq << 20,)).fetchone()[0])
        db.close()
        body[len(body) // 2] ^= 1
        self.flip("UPDATE rows SET body = ? WHERE pos = ?", bytes(body), seq << 20)

    def test_one_flipped_bit_ends_nobodys_reading(self):
        self.flip_row(self.hit["seq"])
        self.d.start(agents=False)
        now = self.d.events()
        self.assertEqual([e["seq"] for e in now], list(range(1, len(now) + 1)))
        for old, new in zip(self.before, now):
            if old["seq"] == self.hit["seq"]:
                self.assertEqual((new["type"], new["seq"]), ("event_damaged", old["seq"]))
                self.assertIn("baton doctor", new["reason"])
                self.assertEqual((new["lastSeq"], "version" in new, "plansRecovered" in new), (old["seq"], False, False))
                again = self.d.ask("events.read", fromSeq=old["seq"], limit=1)["events"][0]
                self.assertEqual((again["type"], again["eventId"]), (new["type"], new["eventId"]), "the same each time")
            else:
                self.assertEqual(new, old)
        of_plan = self.d.events(self.plans[1])
        self.assertEqual([e["seq"] for e in of_plan], [e["seq"] for e in self.before if e.get("planId") == self.plans[1]])
        self.assertEqual([e["type"] for e in of_plan].count("event_damaged"), 1)
        self.assertEqual(self.d.ask("events.read", fromSeq=1, limit=1000, types=["agent_up"])["events"][-1]["type"], "event_damaged",
                         "also for those who read one type: it may have been of that")
        lines = self.d.cli("events", "--json")
        self.assertEqual(len(lines.splitlines()), len(now))

    def test_the_damaged_plan_says_so_and_the_others_do_not(self):
        self.flip_row(self.hit["seq"])
        self.d.start(agents=False)
        for verb in ("plan.get", "plan.history"):
            for plan in self.plans:
                view = self.d.ask(verb, planId=plan)
                self.assertEqual("damaged" in view, plan == self.plans[1], view)
            view = self.d.ask(verb, planId=self.plans[1])
            self.assertIn("seq %d" % self.hit["seq"], view["damaged"])
            self.assertEqual(view["status"], "completed", "its end is stored elsewhere")

    def doctor(self, ok):
        done = self.d.cli_any("doctor", "--config", self.d.config, "--json")
        (journal,) = [f for f in json.loads(done.stdout) if f["check"] == "journal"]
        self.assertEqual(journal["ok"], ok, journal)
        if not ok:
            self.assertNotEqual(done.returncode, 0)
        return journal["detail"]

    def test_the_doctor_finds_it_while_the_daemon_runs_and_when_it_does_not(self):
        self.assertIn("sound", self.doctor(True))
        self.flip_row(self.hit["seq"])
        for _ in range(2):
            detail = self.doctor(False)
            self.assertIn(self.plans[1], detail)
            self.assertIn("seq %d " % self.hit["seq"], detail)
            if self.d.process.poll() is not None:
                self.d.start(agents=False)
        self.assertEqual(self.d.stop(), 0)

    def test_the_doctor_checks_every_table(self):
        self.d.start(agents=False)
        self.assertIn("sound", self.doctor(True))
        self.assertEqual(self.d.stop(), 0)
        for sql, word in (("UPDATE blobs SET bytes = x'00' WHERE id = 1", "blob 1"),
                          ("UPDATE plans SET goal = 'h' WHERE ix = 2", self.plans[1]),
                          ("UPDATE plan_state SET status = 'failed' WHERE ix = 3", self.plans[2])):
            self.flip(sql)
            done = self.d.cli_any("doctor", "--config", self.d.config)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(word, done.stderr)
            if "plan_state" in sql:
                break  # the next start puts the plan aside, which writes its state anew
            self.d.start(agents=False)
            done = self.d.cli_any("doctor", "--config", self.d.config)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(word, done.stderr)
            self.assertEqual(self.d.stop(), 0)

    def test_a_wrong_cursor_is_refused(self):
        self.d.start(agents=False)
        for cursor in ("x", "1", "-.-", "1.x"):
            answer = self.d.ask_raw("supervisor.scrub", cursor=cursor)
            self.assertEqual(answer["error"]["code"], "INVALID", answer)
        self.assertTrue(self.d.ask_raw("supervisor.scrub", cursor="99.0")["ok"])
        self.assertTrue(self.d.ask_raw("supervisor.scrub", cursor="4.18446744073709551615")["ok"])


if __name__ == "__main__":
    harness.main()
