"""Crash loops (G23): only the plan whose input was being applied when the daemon crashed is a suspect; the third fault puts it in
quarantine, which is an end for everybody who waits for it. Crashes are made by failpoints, which only the dev build has."""
import json
import os
import signal
import sqlite3
import threading
import unittest
import uuid

import harness
from harness import BatonTest, until
from probe import Probe, step, wait_up

CRASH = 5
FAULTS = 3
QUARANTINED = "the daemon crashed three times"


class SuspectTest(BatonTest):
    def setUp(self):
        self.d = self.daemon(config="agents: []\n", agents=False)
        probe = Probe(self.d, skills=("plan",))
        wait_up(self.d)
        probe.close()  # known, and not there: steps wait for it

    def submit(self, name="a", **fields):
        return self.d.submit({"steps": [step(name)]}, **fields)

    def statuses(self, plans):
        return {self.d.ask("plan.get", planId=p)["status"] for p in plans}

    def status(self, plan):
        return self.d.ask("plan.get", planId=plan)["status"]

    def restart(self, failpoint=None):
        self.d.env = {} if failpoint is None else {"BATON_FAILPOINT": failpoint}
        self.d.start(agents=False)

    def faults(self):
        return (self.d.state / "faults").read_text().split("\n")

    def faults_of(self, plan):
        return sum(line.startswith(plan) for line in self.faults())

    def crash_over(self, plan, sig=signal.SIGSEGV, place="apply"):
        """One daemon that ends when it applies the plan's next input."""
        self.restart("%s=%s:%d" % (place, plan, sig))
        try:
            self.d.ask_raw("plan.pause", planId=plan)
        except (OSError, EOFError):
            pass
        self.d.process.wait(20)

    def quarantine(self, plan):
        self.d.kill9()
        for n in range(1, FAULTS + 1):
            self.crash_over(plan)
            self.assertEqual(self.faults_of(plan), n, self.d.log())
        self.restart()
        self.assertEqual(self.status(plan), "quarantined", self.d.log())

    def work(self):
        probe = Probe(self.d, capacity=4)
        self.addCleanup(probe.close)
        wait_up(self.d)
        return probe


class NobodysFault(SuspectTest):
    def test_ten_kills_with_many_plans_open_quarantine_none_of_them(self):
        plans = [self.submit("s%d" % i) for i in range(25)]
        plans.append(self.d.submit({"steps": [{"stepId": "r", "type": "human_review", "task": "Which one?"}]}))
        for _ in range(10):
            self.d.kill9()
            self.d.start(agents=False)
        self.assertEqual(self.statuses(plans), {"running", "waiting"}, self.d.log())
        self.work()
        for plan in plans[:-1]:
            self.assertEqual(self.d.wait_plan(plan)["status"], "completed", self.d.log())

    @unittest.skipUnless(harness.sanitized(), "no failpoints in this build")
    def test_a_kill_while_the_plans_input_is_applied_is_no_fault_of_it(self):
        plan = self.submit()
        self.d.kill9()
        for _ in range(CRASH):
            self.crash_over(plan, signal.SIGKILL)
        self.restart()
        self.assertIn(self.status(plan), ("running", "waiting"), self.d.log())

    def test_a_signal_that_somebody_sends_is_no_fault_of_a_plan(self):
        plan = self.submit()
        for sig in (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
            os.kill(self.d.process.pid, sig)
            self.assertNotEqual(self.d.process.wait(20), 0)
            self.d.start(agents=False)
            self.assertEqual((self.status(plan), self.faults_of(plan)), ("running", 0), self.d.log())

    def test_a_daemon_without_a_place_for_faults_works(self):
        plan = self.submit()
        self.d.kill9()
        (self.d.state / "faults").unlink()
        (self.d.state / "faults").mkdir()
        self.d.start(agents=False)
        self.assertIn("crashes are not counted", self.d.log())
        self.work()
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")

    def test_a_plan_that_is_put_aside_for_damage_ends_too(self):
        damaged, plan = self.submit("damaged"), self.submit("plan")
        self.d.kill9()
        db = sqlite3.connect(self.d.state / "journal.db")
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("UPDATE plans SET doc = X'80' WHERE id = ?", (uuid.UUID(damaged).bytes,))
        db.commit()
        db.close()
        self.d.start(agents=False)
        end = [e for e in self.d.events() if e.get("planId") == damaged][-1]  # by its id it cannot be asked for any more
        self.assertEqual((end["type"], end.get("failureKind")), ("plan_completed", "quarantined"), self.d.log())
        self.assertIn("damaged", end["failureReason"])
        self.assertEqual(self.status(plan), "running")
        self.d.stop()

    def test_what_is_no_fault_in_the_file_is_left_out(self):
        plan = self.submit()
        self.d.kill9()
        line = lambda text: text.encode().ljust(63)[:63] + b"\n"  # noqa: E731
        (self.d.state / "faults").write_bytes(line(plan + " signal 11 at 1") + b"\0" * 500 + line("rubbish") + b"\xff" * 9000)
        self.d.start(agents=False)
        self.assertEqual((self.status(plan), [x for x in self.faults() if x.strip()]), ("running", [plan + " signal 11 at 1".ljust(27)]))
        self.assertEqual((self.d.state / "faults").stat().st_size, 4096)


@unittest.skipUnless(harness.sanitized(), "no failpoints in this build")
class Guilty(SuspectTest):
    def test_the_third_fault_quarantines_the_plan_and_bystanders_complete(self):
        guilty = self.submit("guilty")
        plans = [self.submit("s%d" % i) for i in range(20)]
        self.quarantine(guilty)
        self.assertEqual(self.statuses(plans), {"running"}, self.d.log())
        self.work()
        for plan in plans:
            self.assertEqual(self.d.wait_plan(plan)["status"], "completed", self.d.log())
        end = self.d.events(guilty)[-1]
        self.assertEqual((end["type"], end["status"], end["failureKind"]), ("plan_completed", "failed", "quarantined"))
        self.assertIn(QUARANTINED, end["failureReason"])
        view = self.d.ask("plan.get", planId=guilty)
        self.assertEqual((view["failureReason"], view["steps"][0]["status"]), (end["failureReason"], "cancelled"))
        self.assertEqual([p["planId"] for p in self.d.ask("plan.list", status="quarantined")["plans"]], [guilty])
        self.assertEqual(self.faults_of(guilty), 0, "a plan that has ended is no suspect any more")

    def test_people_see_it(self):
        guilty, waits = self.submit("guilty"), self.submit("waits")
        self.quarantine(guilty)
        done = self.d.cli_any("status")
        self.assertIn("1 plan is in quarantine", done.stderr)
        self.assertRegex(done.stdout, r"(?m)^.*%s +quarantined .*%s" % (guilty, QUARANTINED))
        self.assertNotIn(waits, self.d.cli("status", "--status", "quarantined"))
        self.assertRegex(self.d.cli("status", guilty), r"quarantined[\s\S]*%s" % QUARANTINED)
        self.d.stop()
        self.assertIn("quarantined: plan %s: %s" % (guilty, QUARANTINED), self.d.cli_any("doctor").stderr)
        self.assertNotIn("suspect", self.d.cli_any("doctor").stdout)
        self.crash_over(waits)
        self.assertIn("crashed once over plan " + waits, self.d.cli_any("doctor").stdout)

    def test_two_faults_do_not(self):
        plan = self.submit()
        self.d.kill9()
        for _ in range(FAULTS - 1):
            self.crash_over(plan, signal.SIGABRT)
        self.restart()
        self.assertIn("it is recovered last", self.d.log())
        self.d.ask_raw("plan.resume", planId=plan)
        self.work()
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed", self.d.log())
        self.d.kill9()
        self.d.start(agents=False)
        self.assertEqual(self.faults_of(plan), 0)

    def test_crashes_while_it_is_recovered_are_faults_of_it_alone(self):
        guilty = self.submit("guilty")
        others = [self.submit("x%d" % i) for i in range(3)]
        self.d.kill9()
        for n in range(1, FAULTS + 1):
            with self.assertRaises(AssertionError):
                self.restart("recover=%s:11" % guilty)
            self.assertEqual(self.faults_of(guilty), n)
        self.restart("recover=%s:11" % guilty)  # it is not even read any more
        self.assertEqual((self.status(guilty), self.statuses(others)), ("quarantined", {"running"}), self.d.log())

    def test_a_crash_over_its_effects_is_its_fault(self):
        guilty, other = self.submit("guilty"), self.submit("other")
        self.d.kill9()
        self.restart("perform=%s:8" % guilty)
        probe = Probe(self.d, capacity=4)
        self.d.process.wait(20)
        probe.close()
        self.assertEqual((self.faults_of(guilty), self.faults_of(other)), (1, 0))
        self.restart()
        self.work()
        self.assertEqual([self.d.wait_plan(p)["status"] for p in (guilty, other)], ["completed"] * 2, self.d.log())

    def test_the_planner_that_a_plan_asks_is_the_plans_fault(self):
        """A job has a new id each time: were it blamed, nobody would ever reach three."""
        plan = self.d.ask("plan.submit", goal="Do it.", planner="agent:probe")["planId"]
        self.d.kill9()
        db = sqlite3.connect("file:%s?mode=ro" % (self.d.state / "journal.db"), uri=True)
        (job,) = [str(uuid.UUID(bytes=row[0])).upper() for row in db.execute("SELECT id FROM plans JOIN errands USING (ix)")]
        db.close()
        for _ in range(FAULTS):
            with self.assertRaises(AssertionError):
                self.restart("recover=%s:11" % job)
        self.assertEqual((self.faults_of(plan), self.faults_of(job)), (FAULTS, 0), self.d.log())
        self.restart()
        self.assertEqual(self.status(plan), "quarantined", self.d.log())
        self.assertEqual(self.d.events(plan)[-1]["failureKind"], "quarantined")

    def follow(self, *args):
        """A command in a thread; what it ended with. Where the daemon goes away between two of its requests it is to be repeated."""
        def run():
            ended.append(self.d.cli_any(*args, timeout=100))
            while ended[-1].returncode == 6:
                ended.append(self.d.cli_any(*args, timeout=100))
        ended = []
        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)
        return thread, ended

    def test_whoever_waits_for_it_gets_its_end(self):
        file = self.write_plan(self.d, "plan.json", {"steps": [step("a")]})
        run = self.follow("run", "--plan", file, "--key", "k")
        plan = until(lambda: self.d.ask("plan.list").get("plans"), 20, "the plan")[0]["planId"]
        events = self.follow("events", "-f", plan, "--json")
        self.quarantine(plan)
        for thread, _ in (run, events):
            thread.join(100)
        out = run[1][-1]
        self.assertEqual((out.returncode, QUARANTINED in out.stderr), (3, True), out)
        out = events[1][-1]
        self.assertEqual((out.returncode, json.loads(out.stdout.splitlines()[-1]).get("failureKind")), (0, "quarantined"), out)
        again = self.d.cli_any("run", "--plan", file, "--key", "k")
        self.assertEqual((again.returncode, QUARANTINED in again.stderr), (3, True), again)

    def test_requests_about_it_agree(self):
        plan = self.submit()
        self.quarantine(plan)
        for type_, fields in (("plan.cancel", {}), ("plan.pause", {}), ("plan.resume", {}),
                              ("plan.modify", {"kind": "skip_step", "stepId": "a"})):
            answer = self.d.ask_raw(type_, planId=plan, **fields)
            self.assertEqual(answer["error"]["code"], "CONFLICT", (type_, answer))
            self.assertIn("is quarantined: retry it", answer["error"]["message"], type_)
        self.work()
        for type_, fields in (("plan.retry", {}), ("plan.fork", {"fromStep": "a"})):
            new = self.d.ask(type_, planId=plan, **fields)["planId"]
            self.assertEqual(self.d.wait_plan(new)["status"], "completed", self.d.log())

    def test_a_quarantine_of_an_earlier_version_gets_its_end_too(self):
        plan = self.submit()
        self.quarantine(plan)
        self.d.stop()
        db = sqlite3.connect(self.d.state / "journal.db")
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        (end,) = db.execute("SELECT pos FROM rows WHERE type = 'plan_completed'").fetchone()
        db.execute("DELETE FROM rows WHERE pos >= ?", (end,))
        db.commit()
        db.close()
        self.d.start(agents=False)
        self.assertEqual(self.d.events(plan)[-1]["failureKind"], "quarantined", self.d.log())
        self.d.stop()
        self.d.start(agents=False)
        self.assertEqual([e["type"] for e in self.d.events(plan)].count("plan_completed"), 1)


if __name__ == "__main__":
    harness.main()
