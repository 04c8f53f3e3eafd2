"""Results by reference: files that agents write and open by protocol/WIRE.md alone, and what becomes of them."""
import base64
import contextlib
import hashlib
import os
import pathlib
import re
import threading
import unittest
import uuid

import harness
from probe import Probe, step, wait_up

CONFIG = "agents: []\nartifacts: {keepMs: %d, maxBytes: %d}\n"
WEEK = 7 * 24 * 3600 * 1000


def file_name(r, name="rows.csv"):
    return "%s@%d.%d@%s" % (r["stepId"], r["revision"], r["attempt"], name)


def write(r, data=b"a,b\n1,2\n", name="rows.csv", **more):
    """What WIRE.md tells an agent to do: a hidden file, fsync, rename. The artifact of the result."""
    os.makedirs(r["artifactDir"], mode=0o700, exist_ok=True)
    hidden = os.path.join(r["artifactDir"], ".%s" % uuid.uuid4())
    with open(hidden, "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    path = os.path.join(r["artifactDir"], file_name(r, name))
    os.rename(hidden, path)
    return {"name": name, "mediaType": "text/csv", "uri": "file://" + path, "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(), **more}


def done(*artifacts, text="written"):
    return {"outcome": "completed", "result": {"text": text, "artifacts": list(artifacts)}}


class Base(harness.BatonTest):
    def up(self, work, keep_ms=WEEK, max_bytes=0):
        self.d = self.daemon(config=CONFIG % (keep_ms, max_bytes))
        self.probe = self.agent(work)

    def agent(self, work):
        p = Probe(self.d, work=work)
        self.addCleanup(p.close)
        wait_up(self.d)
        return p

    def run_plan(self, *steps, **more):
        plan = self.d.submit({"steps": list(steps), **more})
        return plan, self.d.wait_plan(plan)

    def dir(self, plan):
        return self.d.state / "artifacts" / plan

    def files(self, plan):
        at = self.dir(plan)
        return sorted(os.listdir(at)) if at.exists() else []

    def executed(self, step_id):
        return [r for r in self.probe.of("step.execute") if r["stepId"] == step_id]


class Artifacts(Base):
    # ---- handing on ----

    def test_a_file_reaches_the_step_whose_template_names_it(self):
        data = b"a,b\n" + b"1,2\n" * 100000
        self.up(lambda r: done(write(r, data)) if r["stepId"] == "a" else done())
        plan, view = self.run_plan(
            step("a", dependsOn=[]),
            step("b", dependsOn=["a"], parameters={"uri": "{{results.a.artifact}}", "path": "{{results.a.artifact.path}}",
                                                   "name": "{{results.a.artifact.name}}", "same": "{{results.a.artifacts.0.uri}}"}))
        self.assertEqual(view["status"], "completed", view)
        r = self.executed("b")[0]
        given = r["artifacts"]
        self.assertEqual(len(given), 1)
        self.assertEqual(given[0]["uri"], r["parameters"]["uri"])
        self.assertEqual(given[0]["uri"], r["parameters"]["same"])
        self.assertEqual("file://" + r["parameters"]["path"], given[0]["uri"])
        self.assertEqual(r["parameters"]["name"], "rows.csv")
        self.assertEqual(given[0]["bytes"], len(data))
        self.assertEqual(hashlib.sha256(pathlib.Path(r["parameters"]["path"]).read_bytes()).hexdigest(), given[0]["sha256"])
        self.assertIn("written\n  [artifact rows.csv: %d bytes, text/csv]" % len(data), r["context"]["text"])
        self.assertNotIn("1,2", r["context"]["text"])
        self.assertEqual(oct(os.stat(self.dir(plan)).st_mode & 0o777), "0o700")

    def test_a_step_is_given_only_the_files_of_its_dependencies_and_templates(self):
        self.up(lambda r: done(write(r)) if r["stepId"] in "ab" else done())
        _, view = self.run_plan(step("a", dependsOn=[]), step("b", dependsOn=[]),
                                step("c", dependsOn=["b"]), step("d", dependsOn=[]))
        self.assertEqual(view["status"], "completed", view)
        self.assertEqual([a["uri"].rsplit("/", 1)[1] for a in self.executed("c")[0]["artifacts"]], ["b@1.1@rows.csv"])
        self.assertNotIn("artifacts", self.executed("d")[0])

    def test_a_template_without_an_artifact_names_what_is_missing(self):
        self.up(lambda r: done())
        _, view = self.run_plan(step("a"), step("b", parameters={"uri": "{{results.a.artifact}}"}))
        self.assertIn('the result of step "a" has no artifact; set artifact: true', view["steps"][1]["error"])

    def test_a_retried_plan_reads_the_files_of_the_plan_before(self):
        self.up(lambda r: done(write(r)) if r["stepId"] == "a" else {
            "outcome": "failed", "failure": {"code": "INVALID", "class": "VALIDATION_ERROR", "message": "no", "retryable": False}})
        plan, view = self.run_plan(step("a"), step("b", parameters={"uri": "{{results.a.artifact}}"}))
        self.assertEqual(view["status"], "failed", view)
        again = self.d.ask("plan.retry", planId=plan)["planId"]
        self.d.wait_plan(again)
        self.assertEqual(self.executed("b")[-1]["planId"], again)
        self.assertIn("/%s/a@1.1@rows.csv" % plan, self.executed("b")[-1]["artifacts"][0]["uri"])

    def test_a_terminal_gets_marks_for_what_would_order_it_about(self):
        text = ("\u4f60\u597d \x1b[31m\u202e\x9b\x00 end\n" * 40000).encode()  # characters lie across the blocks that are read
        self.up(lambda r: done(write(r, text, "b.txt")))
        plan, view = self.run_plan(step("a"))
        self.assertEqual(view["status"], "completed", view)
        master, slave = os.openpty()
        p = harness.subprocess.Popen([harness.BIN / "baton", "result", plan, "--artifact", "b.txt", "--state", self.d.state], stdin=slave, stdout=slave,
                                     stderr=slave, env={**os.environ, "TERM": "dumb", "PAGER": "cat"})
        os.close(slave)
        out = b""
        with contextlib.suppress(OSError):  # it has ended
            while part := os.read(master, 65536):
                out += part
        os.close(master)
        self.assertEqual(p.wait(60), 0)
        lines = out.decode().split("\r\n")
        self.assertEqual((len(lines), len(set(lines))), (40001, 2), "each line is as the first, also where a block ends")
        self.assertRegex(lines[0], r"^\u4f60\u597d \?\[31m\?+ end$")

    def test_result_lists_the_files_and_prints_the_bytes_of_one(self):
        data = bytes(range(256)) * 1000
        self.up(lambda r: done(write(r, data, "b.bin")) if r["stepId"] == "a" else done(write(r), text="two"))
        plan, view = self.run_plan(step("a"), step("b"))
        self.assertEqual(view["status"], "completed", view)
        shown = self.d.cli("result", plan)
        self.assertIn("artifact b.bin: 256000 bytes, %s/a@1.1@b.bin" % self.dir(plan), shown)
        self.assertIn("artifact rows.csv: 8 bytes, ", shown)
        one = self.d.cli("result", plan, "b")
        self.assertIn("rows.csv", one)
        self.assertNotIn("b.bin", one)
        copy = self.d.work / "copy"
        with open(copy, "wb") as f:
            ended = harness.subprocess.run([harness.BIN / "baton", "result", plan, "--artifact", "b.bin", "--state", self.d.state],
                                           stdout=f, timeout=30)
        self.assertEqual(ended.returncode, 0)
        self.assertEqual(copy.read_bytes(), data)
        self.assertIn("no artifact 'x'", self.d.cli_any("result", plan, "--artifact", "x").stderr)
        (self.dir(plan) / "a@1.1@b.bin").write_bytes(bytes(256000))
        changed = self.d.cli_any("result", plan, "--artifact", "b.bin")
        self.assertNotEqual(changed.returncode, 0)
        self.assertEqual(changed.stdout, "")
        self.assertIn("it was changed", changed.stderr)

    # ---- what is refused ----

    def refused(self, make, says):
        self.up(lambda r: done(make(r)))
        _, view = self.run_plan(step("a"))
        self.assertEqual(view["steps"][0]["status"], "failed", view)
        self.assertRegex(view["steps"][0]["error"], says)

    def test_a_result_whose_file_is_missing_fails_the_step(self):
        self.refused(lambda r: {**write(r), "uri": "file://%s/%s" % (r["artifactDir"], file_name(r, "other"))},
                     "artifacts.0. 'rows.csv': the file is missing")

    def test_a_result_with_the_wrong_length_fails_the_step(self):
        self.refused(lambda r: {**write(r), "bytes": 7}, "has 8 bytes, the result says 7")

    def test_a_file_needs_length_and_checksum(self):
        self.refused(lambda r: {k: v for k, v in write(r).items() if k != "sha256"}, "needs `bytes` and `sha256`")

    def test_the_file_of_another_plan_is_refused(self):
        other = str(uuid.uuid4()).upper()

        def make(r):
            real = write({**r, "artifactDir": os.path.join(os.path.dirname(r["artifactDir"]), other)})
            return real
        self.refused(make, "is a file of another plan")

    def test_a_path_that_leaves_the_directory_is_refused(self):
        self.refused(lambda r: {**write(r), "uri": "file://%s/../../token" % r["artifactDir"]}, "is no artifact of a plan")

    def test_a_link_is_refused(self):
        def make(r):
            made = write(r)
            path = made["uri"][len("file://"):]
            os.unlink(path)
            os.symlink("/etc/hostname", path)
            return made
        self.refused(make, "is no file")

    def test_a_file_elsewhere_is_words_only(self):
        secret = pathlib.Path("/etc/passwd").read_bytes()
        self.up(lambda r: done({"name": "p", "uri": "file:///etc/passwd", "bytes": len(secret),
                                "sha256": hashlib.sha256(secret).hexdigest()}))
        plan, view = self.run_plan(step("a"), step("b", parameters={"uri": "{{results.a.artifact}}"}))
        self.assertEqual(view["status"], "completed", view)
        self.assertNotIn("artifacts", self.executed("b")[0])
        out = self.d.cli_any("result", plan, "a", "--artifact", "p")
        self.assertNotEqual(out.returncode, 0)
        self.assertEqual(out.stdout, "")
        self.assertIn("is no artifact of a plan", out.stderr)

    # ---- what becomes of the files ----

    def test_files_of_attempts_that_were_not_taken_go_with_the_end_of_the_plan(self):
        def work(r):
            made = write(r)
            if r["attempt"] == 1:
                return {"outcome": "failed", "failure": {"code": "INTERNAL", "class": "UNKNOWN", "message": "later", "retryable": True}}
            return done(made)
        self.up(work)
        plan, view = self.run_plan(step("a", backoff={"kind": "fixed", "initialMs": 1}))
        self.assertEqual(view["status"], "completed", view)
        harness.until(lambda: self.files(plan) == [".ended", "a@1.2@rows.csv"], 10, "the file of attempt 1 is removed")

    def test_a_plan_whose_files_nobody_took_leaves_no_directory(self):
        self.up(lambda r: (write(r), {"outcome": "failed", "failure": {"code": "INVALID", "class": "VALIDATION_ERROR", "message": "no"}})[1])
        plan, _ = self.run_plan(step("a"))
        harness.until(lambda: not self.dir(plan).exists(), 10, "the directory is removed")

    def test_kill_9_of_the_daemon_loses_no_file_that_was_taken(self):
        self.up(lambda r: done(write(r)) if r["stepId"] == "a" else done())
        plan = self.d.submit({"steps": [step("a"), step("b", requiresApproval=True,
                                                        parameters={"uri": "{{results.a.artifact}}"})]})
        harness.until(lambda: self.d.ask("review.list")["reviews"], 10, "b waits for a person")
        self.probe.close()
        self.d.kill9()
        (self.dir(plan) / ".killed.tmp").write_bytes(b"half")  # of an agent that died with it
        self.d.start(agents=False)
        self.probe = self.agent(lambda r: done())
        self.assertEqual(self.files(plan), [".killed.tmp", "a@1.1@rows.csv"], "the files of an open plan stay")
        review = self.d.ask("review.list")["reviews"][0]["reviewId"]
        self.d.ask("review.decide", reviewId=review, decision="approve")
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertEqual(self.executed("b")[0]["artifacts"][0]["bytes"], 8)
        harness.until(lambda: self.files(plan) == [".ended", "a@1.1@rows.csv"], 10, "the half file is removed")

    def test_an_end_that_the_daemon_did_not_live_to_see_through_is_made_up_for(self):
        self.up(lambda r: done(write(r)))
        plan, _ = self.run_plan(step("a"))
        harness.until(lambda: ".ended" in self.files(plan), 10, "the end")
        self.d.kill9()
        os.chmod(self.dir(plan) / ".ended", 0o600)
        (self.dir(plan) / "a@1.9@late.csv").write_bytes(b"late")
        self.d.start(agents=False)
        harness.until(lambda: self.files(plan) == [".ended", "a@1.1@rows.csv"], 10, "the late file is removed")

    def test_directories_of_plans_that_the_journal_does_not_know_are_removed_at_the_start(self):
        self.up(lambda r: done(write(r)))
        plan, _ = self.run_plan(step("a"))
        self.d.stop()
        unknown = [self.dir(str(uuid.uuid4()).upper()) for _ in range(50)]
        for at in unknown:
            at.mkdir(mode=0o700)
            (at / "a@1.1@x").write_bytes(b"x")
        mine = self.dir("not-a-plan")
        mine.mkdir()
        self.d.start(agents=False)
        harness.until(lambda: not any(at.exists() for at in unknown), 20, "they are removed")
        self.assertTrue(mine.exists())
        self.assertIn("a@1.1@rows.csv", self.files(plan))

    def test_files_of_an_ended_plan_go_after_their_time_and_a_read_says_so(self):
        self.up(lambda r: done(write(r)), keep_ms=1)
        plan, view = self.run_plan(step("a"))
        self.assertEqual(view["status"], "completed")
        harness.until(lambda: not self.dir(plan).exists(), 20, "they are removed")
        said = self.d.cli_any("result", plan, "a", "--artifact", "rows.csv")
        self.assertNotEqual(said.returncode, 0)
        self.assertIn("is not there any more", said.stderr)
        self.assertIn("artifacts.keepMs", said.stderr)

    def test_the_plans_that_ended_first_make_room(self):
        self.up(lambda r: done(write(r, bytes(100000))), max_bytes=250000)
        plans = [self.run_plan(step("a"))[0] for _ in range(3)]
        self.probe.close()
        harness.until(lambda: all(".ended" in self.files(p) for p in plans), 10, "the ends")
        self.d.stop()
        self.d.start(agents=False)
        harness.until(lambda: not self.dir(plans[0]).exists(), 20, "the oldest is removed")
        self.assertIn("reason=maxBytes", self.d.log())
        self.assertTrue(self.dir(plans[1]).exists() and self.dir(plans[2]).exists())


class Wire(Base):
    """Files over the wire, as agents on other hosts send and get them: in parts, by the attempt that may."""

    PART = 512 * 1024

    def inside(self, act, config=None, ends=True):
        """Runs a plan whose step "a" does act(request) while it is under way, and raises what that raised."""
        raised, acted = [], threading.Event()

        def work(r):
            if r["stepId"] != "a":
                return done()
            try:
                return act(r) or done()
            except BaseException as e:  # noqa: B902: it goes to the test
                raised.append(e)
                return done()
            finally:
                acted.set()
        if not hasattr(self, "d"):
            self.d = self.daemon(config=config or CONFIG % (WEEK, 0))
        self.probe = self.agent(work)
        plan = self.d.submit({"steps": [step("a")]})
        acted.wait(60)
        view = self.d.wait_plan(plan) if ends and not raised else None
        self.probe.close()
        if raised:
            raise raised[0]
        return plan, view

    def ask(self, type_, r, **fields):
        return self.d.ask_raw(type_, instanceId=self.probe.me["instanceId"], key=r["key"], attempt=r["attempt"], **fields)

    def part(self, r, data, offset, name="rows.csv"):
        return self.ask("artifact.store", r, name=name, offset=offset, bytes=base64.b64encode(data).decode())

    def end(self, r, data, name="rows.csv", sha256=None):
        return self.ask("artifact.store", r, name=name, len=len(data), sha256=sha256 or hashlib.sha256(data).hexdigest())

    def send(self, r, data, name="rows.csv"):
        for at in range(0, len(data), self.PART):
            answer = self.part(r, data[at:at + self.PART], at, name)
            self.assertEqual(answer.get("offset"), min(at + self.PART, len(data)), answer)
        return self.end(r, data, name)

    def entry(self, answer, data):
        return {"name": "rows.csv", "uri": answer["uri"], "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    def fetch(self, r, uri, n):
        data = b""
        while len(data) < n:
            answer = self.ask("artifact.fetch", r, uri=uri, offset=len(data))
            self.assertTrue(answer["ok"], answer)
            self.assertEqual(answer["len"], n)
            data += base64.b64decode(answer["bytes"])
        return data

    def test_a_file_is_sent_in_parts_and_another_step_and_a_client_get_it(self):
        data, got = os.urandom(self.PART * 3 + 17), []
        self.d = self.daemon(config=CONFIG % (WEEK, 0))

        def work(r):
            if r["stepId"] == "a":
                return done(self.entry(self.send(r, data), data))
            if r["stepId"] == "c":
                return done()
            got.append(self.fetch(r, r["parameters"]["uri"], len(data)))
            other = self.ask("artifact.fetch", {**r, "key": r["key"].replace("/b", "/c")}, uri=r["parameters"]["uri"])
            got.append(other["error"]["code"])
            return done()
        self.probe = self.agent(work)
        plan, view = self.run_plan(step("a"), step("b", parameters={"uri": "{{results.a.artifact}}"}), step("c", dependsOn=["b"]))
        self.assertEqual(view["status"], "completed", view)
        self.assertEqual(got, [data, "CONFLICT"])
        harness.until(lambda: self.files(plan) == [".ended", "a@1.1@rows.csv"], 10, "the end")
        uri = self.d.ask("plan.result", planId=plan)["artifacts"][0]["uri"]
        tail = self.d.ask("artifact.read", uri=uri, offset=len(data) - 5, limit=100)
        self.assertEqual((tail["len"], base64.b64decode(tail["bytes"])), (len(data), data[-5:]))
        self.assertEqual(base64.b64decode(self.d.ask("artifact.read", uri=uri, offset=len(data))["bytes"]), b"")
        self.assertEqual(self.d.ask_raw("artifact.read", uri=uri.replace(plan, str(uuid.uuid4()).upper()))["error"]["code"], "NOT_FOUND")
        for bad in ("file:///etc/passwd", uri.replace("/a@", "/../token"), uri.replace("a@1.1@rows.csv", ".ended")):
            self.assertEqual(self.d.ask_raw("artifact.read", uri=bad)["error"]["code"], "UNAUTHORIZED", bad)
        with open(self.dir(plan) / "a@1.1@rows.csv", "rb") as f:
            self.assertEqual(f.read(), data)
        self.probe.close()

    def test_a_torn_transfer_goes_on_where_it_ended_also_after_kill_9_of_the_daemon(self):
        data = os.urandom(self.PART * 20)  # more than one call hashes
        half = self.PART * 18

        def act(r):
            for at in range(0, half, self.PART):
                self.part(r, data[at:at + self.PART], at)
            self.assertEqual(self.part(r, data[:self.PART], 0)["offset"], half)  # again: nothing is doubled
            self.assertEqual(self.part(r, data[-self.PART:], half + self.PART)["offset"], half)  # a gap: nothing is taken
            short = self.end(r, data)
            self.assertEqual((short["offset"], "uri" in short), (half, False))
            self.d.kill9()
            self.d.start(agents=False)
            harness.until(lambda: self.register_again(), 20, "the agent is back")
            self.assertEqual(self.part(r, b"", 0)["offset"], half)
            for at in range(half, len(data), self.PART):
                self.assertEqual(self.part(r, data[at:at + self.PART], at)["offset"], at + self.PART)
            calls = []
            while not calls or "uri" not in calls[-1]:
                calls.append(self.end(r, data))
                self.assertTrue(calls[-1]["ok"], calls)
            self.assertEqual(len(calls), 2, "8 MiB of what was there before are hashed by one request")
            self.assertEqual(self.end(r, data)["uri"], calls[-1]["uri"])  # its answer was lost
        plan, _ = self.inside(act, ends=False)
        with open(self.dir(plan) / "a@1.1@rows.csv", "rb") as f:
            self.assertEqual(f.read(), data)

    def register_again(self):
        try:
            return self.probe.register()
        except (AssertionError, KeyError, OSError):
            return False

    def test_the_wrong_checksum_is_refused_and_nothing_is_left(self):
        def act(r):
            self.part(r, b"a,b\n", 0)
            refused = self.end(r, b"a,b\n", sha256="0" * 64)["error"]
            self.assertEqual(refused["code"], "INVALID")
            self.assertIn("SHA-256", refused["message"])
            self.assertEqual(self.files(r["planId"]), [])
            for text in ("0" * 63, "x" * 64):
                self.part(r, b"a,b\n", 0)
                self.assertEqual(self.end(r, b"a,b\n", sha256=text)["error"]["code"], "INVALID")
            return done(self.entry(self.send(r, b""), b""))  # an empty file is one
        _, view = self.inside(act)
        self.assertEqual(view["status"], "completed", view)

    def test_only_the_attempt_in_hand_may_write_and_read_and_only_its_own(self):
        kept = []

        def act(r):
            kept.append(r)
            me = {"instanceId": self.probe.me["instanceId"], "key": r["key"], "attempt": 1}
            bad = [({"attempt": 2}, "CONFLICT"), ({"attempt": 0}, "CONFLICT"), ({"key": r["key"] + "x"}, "NOT_FOUND"),
                   ({"instanceId": str(uuid.uuid4())}, "NOT_FOUND"), ({"instanceId": "me"}, "NOT_FOUND"),
                   ({"key": r["key"] + "/gate"}, "CONFLICT")]
            for fields, code in bad:
                for type_, more in (("artifact.store", {"name": "x", "bytes": "YQ=="}), ("artifact.fetch", {"uri": "file:///etc/passwd"})):
                    self.assertEqual(self.d.ask_raw(type_, **{**me, **fields, **more})["error"]["code"], code, (type_, fields))
            for name in ("", ".hidden", "a/b", "..", "a\nb"):
                self.assertEqual(self.ask("artifact.store", r, name=name, bytes="YQ==")["error"]["code"], "INVALID", name)
            self.assertEqual(self.ask("artifact.store", r, name="x" * 101, bytes="YQ==")["error"]["code"], "LIMIT")
            self.assertTrue(self.ask("artifact.store", r, name="x" * 100, bytes="YQ==")["ok"])
            for uri, code in (("file:///etc/passwd", "UNAUTHORIZED"), ("file://%s/a@1.1@x" % r["artifactDir"], "UNAUTHORIZED"),
                              ("file://%s/../../token" % r["artifactDir"], "UNAUTHORIZED")):
                self.assertEqual(self.ask("artifact.fetch", r, uri=uri)["error"]["code"], code, uri)
        self.inside(act)
        self.probe = self.agent(lambda r: done())
        self.assertEqual(self.part(kept[0], b"late", 0)["error"]["code"], "NOT_FOUND")
        self.probe.close()

    def test_a_part_and_a_file_have_caps(self):
        def act(r):
            self.assertEqual(self.part(r, b"x" * self.PART, 0)["offset"], self.PART)
            self.assertEqual(self.part(r, b"x" * (self.PART + 1), self.PART)["error"]["code"], "LIMIT")
            self.assertEqual(self.ask("artifact.store", r, name="y", bytes="%%")["error"]["code"], "INVALID")
            self.assertEqual(self.ask("artifact.store", r, name="y", bytes=7)["error"]["code"], "INVALID")
            self.assertEqual(self.ask("artifact.store", r, name="y")["error"]["code"], "INVALID")
            self.assertEqual(self.part(r, b"x" * (1000000 - self.PART), self.PART)["offset"], 1000000)
            over = self.part(r, b"x", 1000000)["error"]
            self.assertEqual(over["code"], "LIMIT")
            self.assertIn("artifacts.maxBytes", over["message"])
            self.assertIn("uri", self.end(r, b"x" * 1000000))
            self.assertEqual(self.end(r, b"x" * 1000001)["error"]["code"], "LIMIT")
        self.inside(act, config=CONFIG % (WEEK, 1000000))


class Bundled(harness.BatonTest):
    """files and sql: from a file of any size to an answer, in bounded memory."""

    def setUp(self):
        self.d = self.daemon()

    def orders(self, rows):
        groups = {}
        with open(self.d.work / "orders.csv", "w") as f:
            f.write("id,customer,day,amount,note\n")
            for i in range(rows):
                groups.setdefault(i % 2000 % 7, [0, 0])
                groups[i % 2000 % 7][0] += 1
                groups[i % 2000 % 7][1] += i % 977
                f.write('%d,%d,2026-01-%02d,%d,"no ""%d"", paid"\n' % (i, i % 2000, i % 28 + 1, i % 977, i % 10))
        with open(self.d.work / "customers.csv", "w") as f:
            f.write("id,region\n" + "".join("%d,%d\n" % (i, i % 7) for i in range(2000)))
        return [[k, *groups[k]] for k in sorted(groups)]

    def plan(self, **query):
        def file(name):
            return [{"stepId": "read-" + name, "agentId": "files", "skill": "csv", "task": "read the rows of the file", "dependsOn": [],
                     "parameters": {"path": str(self.d.work / (name + ".csv")), "artifact": True}},
                    {"stepId": "load-" + name, "agentId": "sql", "skill": "load", "task": "load them into a table",
                     "dependsOn": ["read-" + name],
                     "parameters": {"table": name, "artifact": "{{results.read-%s.artifact}}" % name, "replace": True}}]
        sql = ("SELECT c.region, count(*), sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer "
               "GROUP BY 1 ORDER BY 1")
        return {"steps": file("orders") + file("customers") + [
            {"stepId": "join", "agentId": "sql", "skill": "query", "task": "join and sum up by region",
             "dependsOn": ["load-orders", "load-customers"], "parameters": {"sql": sql, **query}}],
            "policy": {"maxRetries": 5, "backoff": {"kind": "fixed", "initialMs": 10}}}

    def data(self, plan, step_id):
        return self.d.ask("plan.result", planId=plan, stepId=step_id)["result"]["data"]

    def run_steps(self, *steps):
        plan = self.d.submit({"steps": list(steps)})
        return plan, self.d.wait_plan(plan, 60)

    def sql(self, step_id, skill, **parameters):
        return {"stepId": step_id, "agentId": "sql", "skill": skill, "task": "do it in the database", "parameters": parameters}

    def test_100_000_rows_are_joined_and_grouped_in_bounded_memory(self):
        expected = self.orders(100000)
        plan = self.d.submit(self.plan())
        view = self.d.wait_plan(plan, 120)
        self.assertEqual(view["status"], "completed", view)
        self.assertEqual(self.data(plan, "join")["rows"], expected)
        self.assertEqual(self.data(plan, "load-orders")["columns"],
                         [{"name": n, "type": t} for n, t in (("id", "integer"), ("customer", "integer"), ("day", "date"),
                                                              ("amount", "integer"), ("note", "text"))])
        self.check_memory()

    def check_memory(self):
        """The peak of each process, in a build without sanitizers: theirs keep freed memory. tests/run.sh runs this on release."""
        if harness.sanitized():
            return
        for agent, pids in {**self.d.agent_pids(), "batond": [self.d.process.pid]}.items():
            for pid in pids:
                peak = int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/%d/status" % pid).read_text())[1])
                self.assertLess(peak, 100 * 1024, agent)

    def test_sorting_a_large_table_stays_in_bounded_memory(self):
        rows = 60000 if harness.sanitized() else 600000  # 180 MB; of a build with sanitizers only the answer is looked at
        sql = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) SELECT count(*), max(t) FROM "
               "(SELECT printf('%%0300d', (x * 7919) %% %d) AS t FROM c ORDER BY t LIMIT %d)" % (rows, rows, rows - 1))
        plan, view = self.run_steps(self.sql("a", "query", sql=sql))
        self.assertEqual(view["status"], "completed", view)
        self.assertEqual(self.data(plan, "a")["rows"][0][0], rows - 1)
        self.check_memory()

    def test_kill_9_of_the_agents_in_the_middle_loses_and_doubles_no_row(self):
        expected = self.orders(300000)
        plan = self.d.submit(self.plan())
        at = self.d.state / "artifacts" / plan
        for agent, step_id in (("files", "read-orders"), ("sql", "load-orders")):
            def running():
                if agent == "files" and not any(f.endswith(".tmp") for f in (os.listdir(at) if at.exists() else [])):
                    return False
                return any(s["stepId"] == step_id and s["status"] == "in_progress" for s in self.d.ask("plan.get", planId=plan)["steps"])
            harness.until(running, 30, "%s runs" % step_id)
            os.kill(self.d.agent_pids()[agent][0], harness.signal.SIGKILL)
        view = self.d.wait_plan(plan, 120)
        self.assertEqual(view["status"], "completed", view)
        self.assertEqual(self.data(plan, "join")["rows"], expected)
        harness.until(lambda: ".ended" in os.listdir(at), 10, "the end")
        self.assertFalse([f for f in os.listdir(at) if f.endswith(".tmp")], "no half file is left")

    def test_types_survive_from_a_query_to_a_table(self):
        rows = [["007", "5", 9007199254740993, 1.0, True, "2026-02-03", None, 'a "b", c\nd'],
                ["1", "6", -1, 2.5, False, "2026-02-04", "", "x"]]
        columns = list("abcdefgh")
        types = dict(zip(columns, ("text", "text", "integer", "real", "boolean", "date", "text", "text")))
        plan, view = self.run_steps(
            self.sql("one", "load", table="one", rows={"columns": columns, "rows": [[str(c) if isinstance(c, int) and c > 2**53 else c for c in r] for r in rows]}, types=types),
            self.sql("out", "query", sql="SELECT * FROM one", artifact=True),
            self.sql("two", "load", table="two", artifact="{{results.out.artifact}}"),
            self.sql("same", "query", sql="SELECT count(*) FROM (SELECT * FROM one EXCEPT SELECT * FROM two)"),
            self.sql("kinds", "query", sql="SELECT typeof(a), typeof(b), typeof(c), typeof(d), typeof(e), typeof(f), typeof(g), c FROM two LIMIT 1", limit=1))
        self.assertEqual(view["status"], "completed", view)
        self.assertEqual(self.data(plan, "same")["rows"], [[0]])
        self.assertEqual(self.data(plan, "two")["columns"], self.data(plan, "one")["columns"])
        self.assertEqual(self.data(plan, "kinds")["rows"], [["text", "text", "integer", "real", "integer", "text", "null", "9007199254740993"]])
        out = self.data(plan, "out")
        self.assertNotIn("rows", out)
        self.assertEqual((out["rowCount"], out["types"]), (2, types))
        lines = self.d.cli("result", plan, "out", "--artifact", "rows.ndjson").splitlines()
        self.assertEqual(harness.json.loads(lines[0]), {"columns": columns})
        self.assertEqual(harness.json.loads(lines[-1]), {"types": types, "rowCount": 2})

    def test_a_query_writes_csv_for_people(self):
        plan, view = self.run_steps(
            self.sql("out", "query", sql="SELECT 1 AS a, 'x, \"y\"' AS b, NULL AS c UNION ALL SELECT 2, '', 1.5", artifact="csv"))
        self.assertEqual(view["status"], "completed", view)
        self.assertEqual(self.d.cli("result", plan, "out", "--artifact", "rows.csv"), 'a,b,c\n1,"x, ""y""",\n2,,1.5\n')

    def test_lines_that_match_and_whole_files_go_by_reference(self):
        log = self.d.work / "big.log"
        log.write_text("".join("line %d\n" % i for i in range(400000)))
        plan, view = self.run_steps(
            {"stepId": "a", "agentId": "files", "skill": "grep", "task": "find the lines", "parameters": {"path": str(log), "pattern": "7$", "artifact": True}},
            {"stepId": "b", "agentId": "files", "skill": "read", "task": "read the whole file", "parameters": {"path": str(log), "artifact": True}})
        self.assertEqual(view["status"], "completed", view)
        self.assertEqual(self.data(plan, "a")["count"], 40000)
        self.assertEqual(len(self.d.cli("result", plan, "a", "--artifact", "lines.txt").splitlines()), 40000)
        self.assertEqual(self.d.cli("result", plan, "b", "--artifact", "big.log"), log.read_text())

    def test_a_file_that_was_changed_between_two_steps_is_not_loaded(self):
        self.orders(1000)
        doc = self.plan()
        doc["steps"][1]["requiresApproval"] = True
        plan = self.d.submit(doc)
        review = harness.until(lambda: self.d.ask("review.list")["reviews"], 30, "the load waits")[0]["reviewId"]
        path = self.d.state / "artifacts" / plan / "read-orders@1.1@rows.csv"
        content = path.read_bytes()
        path.write_bytes(content.replace(b"paid", b"owed"))
        self.d.ask("review.decide", reviewId=review, decision="approve")
        view = self.d.wait_plan(plan, 60)
        self.assertEqual(view["status"], "failed")
        self.assertIn("SHA-256 is not that of its result", next(s["error"] for s in view["steps"] if s["stepId"] == "load-orders"))

    def test_an_error_at_a_cap_names_the_way(self):
        self.orders(100000)
        _, view = self.run_steps({"stepId": "a", "agentId": "files", "skill": "csv", "task": "read all the rows",
                                  "parameters": {"path": str(self.d.work / "orders.csv")}})
        self.assertIn("use artifact: true", view["steps"][0]["error"])

    def test_load_reads_a_file_only_below_its_roots(self):
        self.orders(10)
        _, view = self.run_steps(self.sql("a", "load", table="t", file=str(self.d.work / "orders.csv")))
        self.assertIn("(roots)", view["steps"][0]["error"])
        config = self.d.config.read_text()
        self.d.stop()
        self.d.config.write_text(config.replace('/db", readOnly: false', '/db", readOnly: false, roots: ["%s"]' % self.d.work))
        self.d.start()
        plan, view = self.run_steps(self.sql("a", "load", table="t", file="orders.csv"))
        self.assertEqual(view["status"], "completed", view)
        self.assertEqual(self.data(plan, "a")["rows"], 10)
        for path in ("/etc/passwd", "../../etc/passwd"):
            _, view = self.run_steps(self.sql("a", "load", table="u", file=path))
            self.assertEqual(view["steps"][0]["errorClass"], "PERMISSION_DENIED", view["steps"][0])


if __name__ == "__main__":
    unittest.main()
