"""Deletion over the wire: plans, sessions, prune, retention; what readers see of it; kill -9 in the middle."""
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import struct
import subprocess

import harness
from harness import until
from test_artifacts import write
from probe import Probe, step, wait_up

CONFIG = "agents: []\n"


def crc32c(crc, data):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def checksum(*values):
    """As supervisor/journal has it: numbers of 8 bytes, texts and bytes after their length."""
    crc = 0
    for v in values:
        data = v.encode() if isinstance(v, str) else v
        crc = crc32c(crc, struct.pack("<Q", v) if isinstance(v, int) else struct.pack("<Q", len(data)) + data)
    return crc


def forged_row(db):
    pos, plan, plan_seq, type_, topic, wall, crc, body = db.execute("SELECT * FROM rows WHERE plan = 2 AND type = 'plan_step_completed'").fetchone()
    assert crc == checksum(pos, plan, plan_seq, wall, type_, topic, body)
    forged = body.replace(b"done a", b"lies a")
    assert forged != body
    db.execute("UPDATE rows SET body = ?, crc = ? WHERE pos = ?", (forged, checksum(pos, plan, plan_seq, wall, type_, topic, forged), pos))


def forged_result(db):
    ident, crc, value = db.execute("SELECT id, crc, bytes FROM blobs ORDER BY id").fetchone()
    assert crc == checksum(ident, value)
    db.execute("UPDATE blobs SET bytes = ?, crc = ? WHERE id = ?", (value[:-1] + b"!", checksum(ident, value[:-1] + b"!"), ident))


class Storage(harness.BatonTest):
    def up(self, config=CONFIG, work=None):
        self.d = self.daemon(config=config)
        self.probe = Probe(self.d, work=work, capacity=4)
        self.addCleanup(self.probe.close)
        wait_up(self.d)
        return self.d

    def run_plan(self, *steps, **fields):
        plan = self.d.submit({"goal": "keep it", "steps": list(steps or [step("a")])}, **fields)
        self.d.wait_plan(plan)
        return plan

    def refused(self, code, type_, **fields):
        answer = self.d.ask_raw(type_, **fields)
        self.assertFalse(answer["ok"], answer)
        self.assertEqual(answer["error"]["code"], code, answer)
        return answer["error"]["message"]

    def read(self, **fields):
        return self.d.ask("events.read", limit=1000, **fields)

    def swept(self, *plans):
        until(lambda: not any(e.get("planId") in plans for e in self.read(fromSeq=1)["events"]), 20, "the rows are gone")

    # ---- plan.delete ----

    def test_a_deleted_plan_is_gone_and_says_when_and_why(self):
        self.up()
        before, plan, after = self.run_plan(), self.run_plan(step("a"), step("b")), self.run_plan()
        ref = [e["resultRef"] for e in self.d.events(plan) if e.get("resultRef")]
        self.d.ask("plan.delete", planId=plan, reason="asked by its owner")
        for type_ in ("plan.get", "plan.result", "plan.history", "plan.retry", "plan.cancel", "plan.delete", "plan.stats"):
            text = self.refused("GONE", type_, planId=plan)
            self.assertRegex(text, r"the plan was deleted at \d{4}-.*Z \(asked by its owner\); it had ended at .*Z as completed")
        self.refused("GONE", "events.read", fromSeq=1, planId=plan)
        self.swept(plan)
        for r in ref:
            self.refused("NOT_FOUND", "blob.get", blobId=r)
        listed = [p["planId"] for p in self.d.ask("plan.list")["plans"]]
        self.assertEqual(listed, [after, before])
        self.d.stop()
        self.d.start(agents=False)
        self.refused("GONE", "plan.get", planId=plan)
        self.assertEqual(self.d.ask("plan.get", planId=before)["status"], "completed")

    def test_an_open_plan_is_not_deleted(self):
        self.up(work=lambda r: None)
        plan = self.d.submit({"goal": "g", "steps": [step("a")]})
        self.assertIn("cancel it first", self.refused("CONFLICT", "plan.delete", planId=plan))
        self.refused("NOT_FOUND", "plan.delete", planId="00000000-0000-7000-8000-000000000000")
        self.refused("NOT_FOUND", "plan.delete", planId="x")
        self.assertEqual(self.d.ask("plan.get", planId=plan)["status"], "running")

    def test_readers_are_told_what_was_deleted_and_go_on(self):
        self.up()
        plans = [self.run_plan() for _ in range(3)]
        page = self.read(fromSeq=1)
        self.assertNotIn("deleted", page)
        seqs = {p: [e["seq"] for e in page["events"] if e.get("planId") == p] for p in plans}
        self.d.ask("plan.delete", planId=plans[1])
        self.swept(plans[1])
        page = self.read(fromSeq=1)
        first, last = seqs[plans[1]][0], seqs[plans[1]][-1]
        gone = [s for r in page["deleted"] for s in range(r["fromSeq"], r["toSeq"] + 1)]
        self.assertEqual(gone, seqs[plans[1]])
        self.assertEqual(sorted([e["seq"] for e in page["events"]] + gone), list(range(1, page["nextSeq"])))
        inside = self.read(fromSeq=first + 1)
        self.assertEqual(inside["deleted"][0], {"fromSeq": first + 1, "toSeq": page["deleted"][0]["toSeq"]})
        self.assertEqual(inside["events"][0]["seq"], page["deleted"][0]["toSeq"] + 1)
        # byte for byte what was there before
        self.assertEqual([e for e in page["events"] if e.get("planId") == plans[2]],
                         [e for e in self.d.events(plans[2])])
        self.d.cli("events", "--limit", "100")
        self.assertGreater(last, first)

    def test_the_newest_events_may_be_gone_and_numbers_go_on(self):
        self.up()
        plan = self.run_plan()
        last = self.read(fromSeq=1)["lastSeq"]
        self.d.ask("plan.delete", planId=plan)
        self.swept(plan)
        self.d.kill9()
        self.d.start(agents=False)
        page = self.read(fromSeq=1)
        self.assertGreater(page["events"][-1]["seq"], last)
        self.assertTrue(page["deleted"])

    def test_a_key_of_a_deleted_plan_is_never_run_again(self):
        self.up()
        plan = {"goal": "once", "steps": [step("a")]}
        first = self.d.submit(plan, clientKey="k1")
        self.d.wait_plan(first)
        self.d.ask("plan.delete", planId=first)
        for _ in range(2):
            text = self.refused("CONFLICT", "plan.submit", plan=plan, clientKey="k1")
            self.assertIn("was deleted", text)
            self.assertIn(first, text)
            self.d.kill9()
            self.d.start(agents=False)
        self.assertEqual(len(self.probe.of("step.execute")), 1)

    def test_a_retry_keeps_the_results_that_it_took_over(self):
        fail = [True]
        self.up(work=lambda r: {"outcome": "failed", "failure": {"code": "X", "class": "UNKNOWN", "message": "no", "retryable": False}}
                if r["stepId"] == "b" and fail[0] else {"outcome": "completed", "result": {"text": "of " + r["stepId"]}})
        plan = self.d.submit({"goal": "g", "steps": [step("a"), step("b", maxRetries=0)]})
        self.d.wait_plan(plan)
        fail[0] = False
        again = self.d.ask("plan.retry", planId=plan)["planId"]
        self.d.wait_plan(again)
        self.d.ask("plan.delete", planId=plan)
        self.swept(plan)
        self.assertEqual(self.d.ask("plan.result", planId=again, stepId="a")["result"]["text"], "of a")
        self.assertEqual(self.d.ask("plan.get", planId=again)["parentPlanId"], plan)
        third = self.d.ask("plan.fork", planId=again, fromStep="b")["planId"]
        self.assertEqual(self.d.wait_plan(third)["status"], "completed")
        self.d.ask("plan.delete", planId=again)
        self.swept(again)
        self.assertEqual(self.d.ask("plan.result", planId=third, stepId="a")["result"]["text"], "of a")

    def test_a_plan_whose_files_are_read_by_a_plan_that_goes_on_stays(self):
        wait = []
        self.up(work=lambda r: None if r["stepId"] == "b" and wait else
                {"outcome": "completed", "result": {"text": "of " + r["stepId"], "artifacts": [write(r)] if r["stepId"] == "a" else []}})
        plan = self.run_plan(step("a"), step("b"))
        wait.append(1)
        fork = self.d.ask("plan.fork", planId=plan, fromStep="b")["planId"]
        self.d.kill9()
        self.d.start(agents=False)
        folder = self.d.state / "artifacts" / plan
        self.assertIn("goes on reads its files", self.refused("BUSY", "plan.delete", planId=plan))
        self.assertEqual(self.d.ask("plan.prune", olderThanMs=0)["plans"], [])
        self.assertTrue(folder.exists())
        self.d.ask("plan.cancel", planId=fork)
        until(lambda: self.d.ask_raw("plan.delete", planId=plan)["ok"], 20, "nobody reads them any more")
        until(lambda: not folder.exists(), 20, "the directory goes")

    # ---- sessions ----

    def test_a_session_goes_and_its_plans_stay(self):
        self.up()
        plan = self.run_plan(sessionId="talk")
        self.d.ask("session.say", sessionId="talk", text="what is the status?", clientKey="m1")
        until(lambda: len(self.d.ask("session.get", sessionId="talk")["messages"]) >= 2, 20, "an answer")
        self.d.ask("session.delete", sessionId="talk")
        self.assertFalse(self.d.ask("session.get", sessionId="talk").get("messages"))
        self.refused("NOT_FOUND", "session.delete", sessionId="talk")
        self.assertEqual(self.d.ask("plan.get", planId=plan)["sessionId"], "talk")
        self.d.ask("plan.delete", planId=plan)
        self.refused("NOT_FOUND", "session.get", sessionId="talk")
        self.d.ask("session.say", sessionId="talk", text="what is the status?", clientKey="m1")
        self.assertLessEqual(len(self.d.ask("session.get", sessionId="talk")["messages"]), 2)

    def test_a_session_outlives_its_deleted_plan(self):
        self.up()
        plan = self.run_plan(sessionId="talk")
        self.d.ask("session.say", sessionId="talk", text="what is the status?")
        until(lambda: len(self.d.ask("session.get", sessionId="talk")["messages"]) >= 2, 20, "an answer")
        self.d.ask("plan.delete", planId=plan)
        self.swept(plan)
        self.assertGreaterEqual(len(self.d.ask("session.get", sessionId="talk")["messages"]), 2)
        self.d.ask("session.say", sessionId="talk", text="retry the last plan")
        self.assertIn("talk", [s["sessionId"] for s in self.d.ask("session.list")["sessions"]])

    # ---- plan.prune ----

    def test_prune_takes_what_is_old_enough_page_by_page(self):
        self.up()
        plans = [self.run_plan() for _ in range(3)]
        self.assertEqual(self.d.ask("plan.prune", olderThanMs=3600000)["plans"], [])
        dry = self.d.ask("plan.prune", olderThanMs=0, dryRun=True)
        self.assertEqual([p["planId"] for p in dry["plans"]], plans)
        self.assertEqual(self.d.ask("plan.prune", olderThanMs=0, status="failed")["plans"], [])
        self.refused("INVALID", "plan.prune", olderThanMs=0, status="running")
        for cursor in ("x", "1", "1.", "1.2.3", "-1.2", "1.2 "):
            self.refused("INVALID", "plan.prune", olderThanMs=0, cursor=cursor)
        done = self.d.ask("plan.prune", olderThanMs=0)
        self.assertEqual([p["planId"] for p in done["plans"]], plans)
        for p in plans:
            self.assertIn("(pruned)", self.refused("GONE", "plan.get", planId=p))
        self.assertEqual(self.d.ask("plan.list")["plans"], [])

    # ---- retention ----

    def test_retention_deletes_what_is_over_its_age(self):
        self.up(CONFIG + "retention: {completedMs: 1500}\n",
                work=lambda r: {"outcome": "failed", "failure": {"code": "X", "class": "UNKNOWN", "message": "no", "retryable": False}}
                if r["stepId"] == "bad" else {"outcome": "completed", "result": {"text": "fine"}})
        failed = self.run_plan(step("bad", maxRetries=0))
        plan = self.run_plan()
        self.assertEqual(self.d.ask("plan.get", planId=plan)["status"], "completed")
        until(lambda: not self.d.ask_raw("plan.get", planId=plan)["ok"], 30, "the plan goes")
        self.assertIn("(retention.completedMs)", self.refused("GONE", "plan.get", planId=plan))
        self.swept(plan)
        self.assertEqual(self.d.ask("plan.get", planId=failed)["status"], "failed")

    def test_kill_9_in_the_middle_of_a_prune_leaves_whole_plans_or_none(self):
        self.up()
        keep = self.run_plan()
        plans = [self.run_plan(*[step("s%d" % i) for i in range(30)]) for _ in range(4)]
        older = self.d.ask("plan.list", limit=1)
        self.assertTrue(older)
        for plan in plans:
            self.d.ask("plan.delete", planId=plan)
            self.d.kill9()
            self.d.start(agents=False)
        self.swept(*plans)
        page = self.read(fromSeq=1)
        gone = [s for r in page["deleted"] for s in range(r["fromSeq"], r["toSeq"] + 1)]
        self.assertEqual(sorted([e["seq"] for e in page["events"]] + gone), list(range(1, page["nextSeq"])))
        self.assertEqual(self.d.ask("plan.get", planId=keep)["status"], "completed")
        for plan in plans:
            self.refused("GONE", "plan.get", planId=plan)
        self.d.stop()
        report = self.d.cli_any("doctor", "--json")
        self.assertNotIn("damaged:", report.stdout)

    def test_the_files_of_a_deleted_plan_go_too(self):
        self.up()
        plan = self.run_plan()
        folder = self.d.state / "artifacts" / plan
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a@1.1@x.csv").write_text("1")
        self.d.ask("plan.delete", planId=plan)
        until(lambda: not folder.exists(), 20, "the directory goes")

    # ---- the command line ----

    def test_delete_and_prune_on_the_command_line(self):
        self.up()
        plans = [self.run_plan() for _ in range(3)]
        self.assertEqual(self.d.cli("delete", plans[0], "--reason", "mine"), plans[0] + " deleted\n")
        self.assertIn("(mine)", self.d.cli_any("status", plans[0]).stderr)
        self.d.cli("status", plans[0], code=7)
        self.d.cli("delete", plans[0], code=7)
        self.d.cli("delete", code=2)
        self.d.cli("prune", code=2)
        self.d.cli("prune", "--older-than", "x", code=2)
        self.assertEqual(self.d.cli("prune", "--older-than", "90d"), "")
        dry = json.loads(self.d.cli("prune", "--older-than", "1ms", "--dry-run", "--json"))
        self.assertEqual([p["planId"] for p in dry], plans[1:])
        self.assertIn(plans[1], self.d.cli("prune", "--older-than", "1ms", "--status", "completed"))
        self.d.cli("status", plans[1], code=7)
        self.d.ask("session.say", sessionId="talk", text="what is the status?")
        until(lambda: len(self.d.ask("session.get", sessionId="talk")["messages"]) >= 2, 20, "an answer")
        self.assertIn("session talk deleted", self.d.cli("delete", "--session", "talk"))

    # ---- backup, restore, verify ----

    def test_a_backup_while_plans_run_is_restored_elsewhere_and_goes_on(self):
        gate = []
        self.up(work=lambda r: None if r["stepId"] == "late" and not gate else {"outcome": "completed", "result": {"text": "x" * 5000}})
        done = [self.run_plan(*[step("s%d" % i) for i in range(20)]) for _ in range(3)]
        is_open = self.d.submit({"goal": "goes on", "steps": [step("a"), step("late")]})
        until(lambda: self.d.ask("plan.get", planId=is_open)["steps"][0]["status"] == "completed", 20, "a is done")
        file = self.d.work / "copy %41?#.db"
        self.d.cli("backup", file)
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        self.assertFalse((self.d.work / (file.name + ".part")).exists())
        self.assertIn("exists", self.d.cli_any("backup", file).stderr)
        self.d.cli("verify", file)
        events = self.d.events(done[0])
        self.d.cli("restore", file, code=2)  # the daemon runs
        self.d.stop()
        self.assertIn("--force", self.d.cli_any("restore", file).stderr)
        self.d.cli("restore", file, "--force")
        self.assertTrue((self.d.state / "journal.db.old").exists())
        self.d.start(agents=False)
        self.assertEqual(self.d.events(done[0]), events)
        self.assertEqual(self.d.ask("plan.get", planId=is_open)["status"], "running")
        self.d.ask("plan.cancel", planId=is_open)

    def test_a_backup_has_the_files_of_results(self):
        self.up(work=lambda r: {"outcome": "completed", "result": {"text": "written", "artifacts": [write(r, b"x" * 300000 + r["stepId"].encode())]}})
        plan = self.run_plan(step("a"), step("b"))
        other = self.run_plan(step("c"))
        file = self.d.work / "copy.db"
        said = json.loads(self.d.cli("backup", file, "--json"))
        self.assertEqual(said["artifacts"], 3)
        files = self.d.work / "copy.db.artifacts"
        self.assertEqual(sorted(p.name for p in files.iterdir()), sorted([plan, other]))
        self.assertEqual({p.stat().st_mode & 0o777 for p in files.rglob("*") if p.is_file()}, {0o600})
        self.assertIn("files: 3 as they were written, 0 altered, 0 not kept", self.d.cli("verify", file))
        self.assertIn("files: 3 as they were written", self.d.cli("verify"))
        self.d.stop()
        shutil.rmtree(self.d.state / "artifacts")
        self.assertIn("files: 0 as they were written, 0 altered, 3 not kept", self.d.cli("verify"))
        self.d.cli("restore", file, "--force")
        self.d.start(agents=False)
        for p, s in ((plan, "a"), (plan, "b"), (other, "c")):
            artifact, = self.d.ask("plan.result", planId=p, stepId=s)["artifacts"]
            self.assertEqual(pathlib.Path(artifact["uri"][len("file://"):]).read_bytes(), b"x" * 300000 + s.encode())
        other_place = self.daemon(config=CONFIG)
        other_place.stop()
        other_place.cli("restore", file, "--force")
        other_place.start(agents=False)
        artifact, = other_place.ask("plan.result", planId=plan, stepId="b")["artifacts"]
        path = pathlib.Path(artifact["uri"][len("file://"):])
        self.assertEqual((path.parents[2].resolve(), path.read_bytes()), (other_place.state.resolve(), b"x" * 300000 + b"b"))
        other_place.stop()
        one = next(p for p in files.rglob("*") if p.is_file())
        data = bytearray(one.read_bytes())
        data[1000] ^= 1
        one.write_bytes(data)
        report = self.d.cli_any("verify", file)
        self.assertEqual(report.returncode, 1)
        self.assertIn("damaged: the file %s/%s" % (one.parent.name, one.name), report.stdout)
        self.assertIn("2 as they were written, 1 altered", report.stdout)
        self.d.stop()
        self.assertNotEqual(self.d.cli_any("restore", file, "--force").returncode, 0)
        self.assertIn("exists", self.d.cli_any("backup", self.d.work / "copy.db").stderr)

    def test_backup_and_verify_without_a_daemon(self):
        self.up()
        plan = self.run_plan()
        self.d.kill9()  # what is only in the log counts, too
        file = self.d.work / "copy.db"
        self.d.cli("backup", file)
        self.d.cli("verify", file)
        alone, copied = (json.loads(self.d.cli("verify", *a, "--json")) for a in ((), (file,)))
        self.assertEqual((alone["ok"], alone["root"]), (True, copied["root"]))
        self.assertEqual(sorted(p.name for p in self.d.state.glob("verify-*")), [])
        other = self.d.work / "other"
        subprocess.run([harness.BIN / "baton", "restore", file, "--state", other], check=True, capture_output=True)
        self.assertTrue((other / "journal.db").exists())
        self.assertTrue(plan)

    def test_copies_at_once_wait_for_each_other_with_and_without_a_daemon(self):
        self.up(work=lambda r: {"outcome": "completed", "result": {"text": "x" * 200000}})
        self.run_plan(*[step("s%d" % i) for i in range(20)])
        for folder in (self.d.work / "with", self.d.work / "without"):
            folder.mkdir()
            commands = [subprocess.Popen([harness.BIN / "baton", *args, "--state", self.d.state], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                        for args in [("backup", folder / ("%d.db" % i)) for i in range(4)] + [("verify",)] * 2]
            for command in commands:
                out, err = command.communicate(timeout=60)
                self.assertEqual((command.returncode, err), (0, ""), out)
            self.assertEqual(sorted(p.name for p in folder.iterdir()), ["%d.db" % i for i in range(4)])
            for file in folder.iterdir():
                self.d.cli("verify", file)
            self.assertEqual([p.name for p in self.d.state.glob("verify-*")], [])
            self.d.stop()
        self.assertEqual(self.d.cli_any("backup", "").stderr, "baton: backup: expected FILE, got ''; a variable without a value?\n")

    def test_a_verify_that_is_ended_leaves_no_copy(self):
        self.up(work=lambda r: {"outcome": "completed", "result": {"text": "x" * 200000}})
        self.run_plan(*[step("s%d" % i) for i in range(40)])
        self.d.stop()
        self.assertEqual(self.d.cli_any("verify", "--timeout", "1ms").returncode in (0, 124), True)
        for sig in (signal.SIGINT, signal.SIGTERM):
            command = subprocess.Popen([harness.BIN / "baton", "verify", "--state", self.d.state], stdout=subprocess.DEVNULL)
            until(lambda: command.poll() is not None or any(self.d.state.glob("verify-*")), 20, "it makes its copy")
            command.send_signal(sig)
            command.wait(20)
            self.assertEqual([p.name for p in self.d.state.glob("verify-*")], [], sig)

    def test_what_is_no_copy_is_refused_and_never_waited_for(self):
        self.up()
        self.d.stop()
        fifo = self.d.work / "fifo"
        os.mkfifo(fifo)
        for file in (fifo, self.d.work, "/dev/null"):
            for verb in ("verify", "restore"):
                self.assertEqual(self.d.cli_any(verb, file, timeout=20).returncode, 2, (verb, file))

    def test_files_that_a_restore_does_not_find_are_told(self):
        self.up(work=lambda r: {"outcome": "completed", "result": {"text": "written", "artifacts": [write(r)]}})
        self.run_plan(step("a"), step("b"))
        file = self.d.work / "copy.db"
        self.d.cli("backup", file)
        self.d.stop()
        shutil.rmtree(self.d.work / "copy.db.artifacts")
        done = self.d.cli_any("restore", file, "--force")
        self.assertEqual((done.returncode, done.stderr), (0, "%s.artifacts is not there: 2 files that results name are not restored\n" % file))

    def test_a_journal_of_a_newer_program_is_refused_in_words_and_left_as_it_is(self):
        self.up()
        plan = self.run_plan()
        self.d.stop()
        root = json.loads(self.d.cli("verify", "--json"))["root"]
        journal, copy = self.d.state / "journal.db", self.d.work / "copy.db"
        self.d.cli("backup", copy)

        def version(file, n):
            with sqlite3.connect(file) as db:
                db.execute("PRAGMA user_version = %d" % n)
            db.close()
        with sqlite3.connect(journal) as db:
            now = db.execute("PRAGMA user_version").fetchone()[0]
        db.close()
        version(journal, now + 1)
        with self.assertRaises(AssertionError) as refused:
            self.d.start(agents=False)
        self.assertIn("schema version %d, written by a newer Baton" % (now + 1), str(refused.exception))
        version(copy, now + 1)
        self.assertIn("newer Baton", self.d.cli_any("restore", copy, "--force").stderr)
        version(journal, now)
        self.assertEqual(json.loads(self.d.cli("verify", "--json"))["root"], root)
        self.d.start(agents=False)
        self.assertEqual(self.d.ask("plan.get", planId=plan)["status"], "completed")

    def test_kill_9_in_the_middle_of_a_backup_leaves_no_file_of_that_name(self):
        self.up(work=lambda r: {"outcome": "completed", "result": {"text": "x" * 200000}})
        self.run_plan(*[step("s%d" % i) for i in range(20)])
        file = self.d.work / "copy.db"
        self.assertTrue(self.d.ask("journal.backup", file=str(file))["running"])
        self.d.kill9()
        whole = file.exists()  # the machine may have been that quick
        self.d.start(agents=False)
        if whole:
            self.d.cli("verify", file)
            file.unlink()
        self.d.cli("backup", file)
        self.d.cli("verify", file)

    def test_the_daemon_refuses_names_that_it_must_not_write(self):
        self.up()
        for file in ("relative.db", "/nonexistent-folder/x.db", str(self.d.state / "journal.db"), str(self.d.state / "journal.db-wal"),
                     str(self.d.state / "token"), str(self.d.work)):
            self.assertFalse(self.d.ask_raw("journal.backup", file=file)["ok"], file)
        self.assertFalse(self.d.ask("journal.backup").get("running"))

    def test_verify_finds_what_was_altered(self):
        self.up()
        plan, other = self.run_plan(), self.run_plan()
        self.d.stop()
        clean = self.d.work / "clean.db"
        self.d.cli("backup", clean)
        root = json.loads(self.d.cli("verify", clean, "--json"))["root"]

        def altered(sql, expect):
            file = self.d.work / "altered.db"
            shutil.copy(clean, file)
            db = sqlite3.connect(file, isolation_level=None)
            db.execute("PRAGMA journal_mode = DELETE")
            db.execute(sql) if isinstance(sql, str) else sql(db)
            db.close()
            said = self.d.cli_any("verify", file)
            self.assertEqual(said.returncode, 1, sql)
            self.assertRegex(said.stdout + said.stderr, expect, sql)
            file.unlink()
        row = "(SELECT max(pos) FROM rows WHERE plan = 2)"
        # somebody who corrects the checksums, too: only the chain knows
        altered(forged_row, "its rows are not those that were written")
        altered(forged_result, "its rows are not those that were written")
        altered("UPDATE rows SET wall = wall + 1 WHERE pos = %s" % row, "is damaged")
        altered("DELETE FROM rows WHERE pos = %s" % row, "rows were written")
        altered("UPDATE chains SET head = (SELECT head FROM chains WHERE ix = 1) WHERE ix = 2", "hash is missing or damaged")
        altered("DELETE FROM chains WHERE ix = 2", "hash is missing or damaged")
        altered("DELETE FROM plans WHERE ix = 2", "no record")
        altered("DELETE FROM blobs WHERE id = 1", "blob 1 is missing")
        altered("UPDATE blobs SET bytes = x'80', crc = 0 WHERE id = 1", "checksum is wrong")
        altered("DELETE FROM rows WHERE plan = 0 AND pos = (SELECT min(pos) FROM rows WHERE plan = 0)", "missing and were not deleted")
        self.assertEqual(json.loads(self.d.cli("verify", clean, "--json"))["root"], root)
        self.d.cli("verify", self.d.config, code=2)
        self.d.cli("verify", self.d.work / "none.db", code=7)
        self.d.start(agents=False)
        self.assertTrue(plan and other)

    def test_verify_accepts_what_was_deleted_and_what_runs(self):
        self.up()
        plans = [self.run_plan() for _ in range(3)]
        self.d.ask("plan.delete", planId=plans[1])
        self.swept(plans[1])
        self.d.kill9()
        self.d.start(agents=False)
        self.assertIn("in use", self.d.cli_any("verify", self.d.state / "journal.db").stderr)
        text = self.d.cli("verify")
        self.assertRegex(text, r"2 plans, \d+ rows and 1 deleted plan verified\nroot [0-9a-f]{64}\n")


if __name__ == "__main__":
    harness.main()
