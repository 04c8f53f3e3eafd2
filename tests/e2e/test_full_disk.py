"""A full disk (G20), on a real one of a few MiB: new work is refused, the rest is kept, and it goes on by itself. Needs mounts of
its own: root, or a kernel that gives users namespaces; otherwise SKIPPED."""
import base64
import ctypes
import hashlib
import os
import threading
import uuid

import harness
from probe import Probe, card, step, wait_up

MIB = 1024 * 1024
SMALL = 26  # MiB: the log has 16 of them
NEWNS, NEWUSER, REC_PRIVATE = 0x20000, 0x10000000, 0x4000 | 0x40000
LIBC = ctypes.CDLL(None, use_errno=True)


def own_mounts():
    """A mount namespace for this process and what it starts."""
    uid, gid = os.geteuid(), os.getegid()
    if LIBC.unshare(NEWNS) != 0:
        if LIBC.unshare(NEWUSER | NEWNS) != 0:
            return False
        for name, text in (("uid_map", "0 %d 1" % uid), ("setgroups", "deny"), ("gid_map", "0 %d 1" % gid)):
            with open("/proc/self/" + name, "w") as f:
                f.write(text)
    return LIBC.mount(b"none", b"/", None, REC_PRIVATE, None) == 0


class FullDisk(harness.BatonTest):
    def setUp(self):
        self.d = harness.Daemon(self, config="agents: []\n")
        self.addCleanup(self.d.clean)
        self.addCleanup(self.d.check_event_order)
        self.disk(self.d.state, SMALL)

    def disk(self, path, mib):
        path.mkdir(mode=0o700, exist_ok=True)
        if LIBC.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, b"size=%dm,mode=0700" % mib) != 0:
            self.skipTest("no mounts: " + os.strerror(ctypes.get_errno()))
        self.addCleanup(LIBC.umount2, os.fsencode(path), 2)

    def fill(self, path=None):
        """What others write: all that is free."""
        with open((path or self.d.state) / "of_others", "ab", buffering=0) as f:
            try:
                while f.write(b"x" * 4096) == 4096:
                    pass
            except OSError:
                pass

    def free(self, path=None):
        ((path or self.d.state) / "of_others").unlink(missing_ok=True)

    def refused(self, answer, *words):
        self.assertFalse(answer["ok"], answer)
        self.assertEqual(answer["error"]["code"], "UNAVAILABLE")
        self.assertGreaterEqual(answer["error"]["retryAfterMs"], 1000)
        for word in ("storage_unavailable", str(self.d.state), "Free some room", *words):
            self.assertIn(word, answer["error"]["message"])

    def submit_raw(self, *steps):
        return self.d.ask_raw("plan.submit", plan={"steps": list(steps or (step(),))})

    def types(self):
        return [e["type"] for e in self.d.events()]

    def probe(self, **more):
        p = Probe(self.d, **more)
        self.addCleanup(p.close)
        wait_up(self.d, more.get("agent_id", "probe"))
        return p

    def test_new_work_is_refused_and_the_rest_goes_on(self):
        self.d.start(agents=False)
        let_go = threading.Event()
        self.addCleanup(let_go.set)

        def work(r):
            let_go.wait(60)
            return {"outcome": "completed", "result": {"text": "done " + r["stepId"]}}

        self.probe(work=work)
        plan = self.d.submit({"steps": [step("a"), step("b")]})
        self.fill()
        let_go.set()
        view = self.d.wait_plan(plan)
        self.assertEqual([s["status"] for s in view["steps"]], ["completed", "completed"])
        self.refused(self.submit_raw(), "running plans go on")
        self.refused(self.d.ask_raw("plan.retry", planId=plan))
        before = self.types()
        for i in range(30):  # one was the end of the daemon
            self.d.ask("agent.register", card=card("late%d" % i), capacity=1, sessionKey="k" * 32,
                       instanceId=str(uuid.uuid4()), endpoint="tcp://127.0.0.1:9", protocol=[1])
        self.assertEqual(self.types(), before, "registrations write nothing on a full disk")
        self.assertEqual(self.d.ask("supervisor.info")["storage"], "low")
        self.assertRegex(self.d.cli_any("info").stdout, r"(?m)^storage +low$")
        told = self.d.cli_any("doctor")
        self.assertEqual(told.returncode, 1, told.stdout)
        self.assertRegex(told.stdout, r"(?m)^✗ storage +the disk of \S+ is nearly full: no new work is taken")
        self.free()
        self.comes_back()
        self.assertRegex(self.d.cli_any("doctor").stdout, r"(?m)^✓ storage +room for new work$")
        self.assertTrue(self.submit_raw()["ok"])

    def wait_stalled(self):
        """Full, and nothing moves any more."""
        seen = []

        def still():
            info = self.d.ask("supervisor.info")
            seen.append((info.get("storage"), info["lastSeq"]))
            return len(seen) > 20 and set(seen[-20:]) == {("full", info["lastSeq"])}

        harness.until(still, 60, "no room is left\n" + self.d.log())

    def comes_back(self):
        harness.until(lambda: "storage" not in self.d.ask("supervisor.info"), 15, "there is room again\n" + self.d.log())

    def eat_all_room(self, wide=60):
        """A plan whose results are more than the room. Its id."""
        self.big = self.probe(capacity=4, work=lambda r: {"outcome": "completed", "result": {"text": r["stepId"] * 500_000}})
        plan = self.d.submit({"steps": [step("s%d" % (i % 10) if i < 10 else "t%d" % i, dependsOn=[]) for i in range(wide)],
                              "policy": {"maxConcurrency": 4}})
        self.fill()
        self.wait_stalled()
        return plan

    def test_results_wait_and_are_taken_when_there_is_room(self):
        self.d.start(agents=False)
        plan = self.eat_all_room()
        self.refused(self.submit_raw(), "everything waits")
        self.refused(self.d.ask_raw("plan.cancel", planId=plan))
        self.refused(self.d.ask_raw("agent.register", **self.big.registration))
        view = self.d.ask("plan.get", planId=plan)
        self.assertEqual(view["status"], "running")
        done = [s["stepId"] for s in view["steps"] if s["status"] == "completed"]
        self.assertTrue(0 < len(done) < 60, done)
        seqs = [e["seq"] for e in self.d.events()]
        self.assertEqual(seqs, list(range(1, len(seqs) + 1)))
        self.free()
        LIBC.mount(b"tmpfs", os.fsencode(self.d.state), b"tmpfs", 0x20, b"size=200m")
        view = self.d.wait_plan(plan, 90)
        self.assertEqual({s["status"] for s in view["steps"]}, {"completed"})
        self.assertEqual({s["attempts"] for s in view["steps"]}, {1}, "no result was lost")
        self.assertEqual(len(self.big.of("step.execute")), 60)
        self.assertNotIn("agent_down", self.types())
        self.assertEqual(self.d.process.poll(), None)

    def test_kill_9_on_a_full_disk_and_a_start_without_room(self):
        self.d.start(agents=False)
        plan = self.eat_all_room()
        seq = self.d.ask("supervisor.info")["lastSeq"]
        for _ in range(4):
            self.d.kill9()
            self.fill()
            self.d.start(agents=False)
            info = self.d.ask("supervisor.info")
            self.assertEqual((info["storage"], info["lastSeq"]), ("full", seq))
            self.assertEqual(self.d.ask("plan.get", planId=plan)["planId"], plan)
            self.refused(self.submit_raw())
        LIBC.mount(b"tmpfs", os.fsencode(self.d.state), b"tmpfs", 0x20, b"size=200m")
        self.comes_back()
        self.big.epoch = self.big.register()["epoch"]
        view = self.d.wait_plan(plan, 90)
        self.assertEqual({s["status"] for s in view["steps"]}, {"completed"})

    def test_it_stops_and_starts_as_often_as_you_like(self):
        self.d.start(agents=False)
        self.probe()
        plan = self.d.submit({"steps": [step()]})
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        for _ in range(6):
            self.fill()
            self.assertEqual(self.d.stop(), 0, self.d.log())
            self.fill()
            self.d.start(agents=False)
            self.fill()
            self.assertEqual(self.d.ask("plan.get", planId=plan)["status"], "completed")
            self.refused(self.submit_raw())
        self.free()
        self.comes_back()

    def punch(self):
        """The log is no reserve any more, as on file systems that allocate anew at each write."""
        LIBC.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
        with open(self.d.state / "journal.db-wal", "r+b") as f:
            self.assertEqual(LIBC.fallocate(f.fileno(), 3, 4 * MIB, 12 * MIB), 0)

    def test_a_commit_that_has_no_room_all_the_same_is_made_again_by_the_same_daemon(self):
        self.d.start(agents=False)
        self.punch()
        big = self.probe(capacity=4, work=lambda r: {"outcome": "completed", "result": {"text": "x" * 500_000}},
                         query=lambda r: {"key": r["key"], "state": "unknown"})
        self.fill()
        self.free()
        plan = self.d.submit({"steps": [step("s%d" % i, dependsOn=[]) for i in range(60)], "policy": {"maxConcurrency": 4}})
        self.fill()
        pid = self.d.process.pid
        log = self.d.work / "batond.log"
        harness.until(lambda: "the daemon replaces itself" in log.read_text(), 60, "a commit has no room\n" + self.d.log())
        harness.until(self.serves, 60, "it serves again\n" + self.d.log())
        self.assertEqual((self.d.process.poll(), self.d.ask("supervisor.info")["pid"]), (None, pid))
        self.assertEqual(self.d.ask("plan.get", planId=plan)["status"], "running")
        self.refused(self.submit_raw())
        LIBC.mount(b"tmpfs", os.fsencode(self.d.state), b"tmpfs", 0x20, b"size=200m")
        self.comes_back()
        big.epoch = big.register()["epoch"]
        view = self.d.wait_plan(plan, 90)
        self.assertEqual({s["status"] for s in view["steps"]}, {"completed"})
        seqs = [e["seq"] for e in self.d.events()]
        self.assertEqual(seqs, list(range(1, len(seqs) + 1)))

    def test_a_disk_that_is_full_for_artifacts_alone_fails_the_step_with_the_reason(self):
        self.d.config.write_text(self.d.config.read_text().replace("agents: []", harness.BUNDLED % {"work": self.d.work, "here": harness.HERE}))
        artifacts = self.d.state / "artifacts"
        self.disk(artifacts, 1)
        (self.d.work / "big.txt").write_text("line of a large file\n" * 100_000)
        self.d.start()
        read = {"stepId": "a", "agentId": "files", "skill": "read", "task": "read it",
                "parameters": {"path": str(self.d.work / "big.txt"), "artifact": True}, "maxRetries": 0}
        self.fill(artifacts)
        plan = self.d.submit({"steps": [read]})
        view = self.d.wait_plan(plan)
        self.assertEqual(view["status"], "failed")
        self.assertIn("No space left on device", view["steps"][0]["error"])
        self.assertNotIn("storage", self.d.ask("supervisor.info"), "the journal has room")
        LIBC.mount(b"tmpfs", os.fsencode(artifacts), b"tmpfs", 0x20, b"size=20m")
        again = self.d.ask("plan.retry", planId=plan)["planId"]
        self.assertEqual(self.d.wait_plan(again)["status"], "completed")

    def test_a_file_over_the_wire_has_no_room(self):
        """The part that does not fit is refused, what came before is kept, and it goes on when there is room; others keep some MiB."""
        artifacts = self.d.state / "artifacts"
        self.disk(artifacts, 10)
        self.d.start(agents=False)
        part, data, said, acted = 512 * 1024, os.urandom(8 << 20), [], threading.Event()

        def store(r, **fields):
            return self.d.ask_raw("artifact.store", instanceId=probe.me["instanceId"], key=r["key"], attempt=r["attempt"], name="big", **fields)

        def work(r):
            at = 0
            while at < len(data):
                answer = store(r, offset=at, bytes=base64.b64encode(data[at:at + part]).decode())
                if answer["ok"]:
                    at = answer["offset"]
                    continue
                if said:
                    break
                said.append((at, answer["error"]))
                LIBC.mount(b"tmpfs", os.fsencode(artifacts), b"tmpfs", 0x20, b"size=30m")
            said.append(store(r, len=len(data), sha256=hashlib.sha256(data).hexdigest()))
            acted.set()
            return {"outcome": "completed", "result": {"text": "sent"}}
        probe = self.probe(work=work)
        plan = self.d.submit({"steps": [step("a")]})
        self.assertTrue(acted.wait(60), self.d.log())
        (at, error), end = said
        self.assertEqual(error["code"], "UNAVAILABLE", error)
        self.assertIn("full", error["message"])
        self.assertTrue(part <= at <= 2 << 20, at)
        self.assertIn("uri", end)
        self.d.wait_plan(plan)

    def test_agents_and_their_logs_live_on_a_full_disk(self):
        """Logs of agents lie on the same disk: what they cannot write is lost, and nothing else."""
        self.d.config.write_text(self.d.config.read_text().replace("agents: []", harness.BUNDLED % {"work": self.d.work, "here": harness.HERE}))
        self.d.start()
        plan = self.d.submit({"steps": [{"stepId": "w%d" % i, "agentId": "exec", "skill": "wait", "task": "take a while",
                                         "parameters": {"name": "w%d" % i, "seconds": "0"}} for i in range(6)]})
        self.fill()
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        pids = self.d.agent_pids()
        os.kill(pids["exec"][0], 9)  # its successor registers, and its log cannot grow
        harness.until(lambda: self.d.agent_pids()["exec"] not in ([], pids["exec"]), 20, "a new process\n" + self.d.log())
        self.assertEqual(self.d.stop(), 0)

    def command(self, *words):
        """What `baton` says beside the disk, and leaves on it."""
        done = harness.subprocess.run([harness.BIN / "baton", *map(str, words)], capture_output=True, text=True, timeout=60,
                                      cwd=self.d.work, env={**os.environ, "BATON_STATE": str(self.d.state / "new")})
        return done.returncode, done.stderr

    def test_init_on_a_full_disk_leaves_nothing(self):
        self.fill()
        code, said = self.command("init", self.d.state / "a" / "project")
        self.assertEqual(code, 1)
        self.assertRegex(said, r"project\S*: No space left on device\n(.*\n)*what was written is removed again\n")
        self.assertEqual(os.listdir(self.d.state), ["of_others"])

    def test_up_on_a_full_disk_says_that_it_is_full(self):
        self.fill()
        code, said = self.command("up")
        self.assertEqual(code, 1)
        self.assertRegex(said, r"batond\.log cannot be written: No space left on device\n$")

    def serves(self):
        """supervisor.info; None while nobody answers."""
        try:
            return self.d.ask("supervisor.info")
        except (OSError, EOFError, ValueError):
            return None


if __name__ == "__main__":
    if not own_mounts():
        print("SKIPPED: no mounts of its own here")
        raise SystemExit(0)
    harness.main()
