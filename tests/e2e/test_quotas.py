"""What a credential may use and see: quotas, grants, the end of what was revoked, and peers that fail to prove themselves."""
import json
import os
import pathlib
import subprocess
import threading
import time

from harness import BIN, main, sp, until
from test_auth import REQUIRED, Base
import sealed

PLAN = {"steps": [{"stepId": "a", "type": "human_review", "task": "Is it right?"}]}  # is open until somebody decides


class Quotas(Base):
    def person(self, d, ident, *quotas, role="submitter"):
        self.add(d, ident, "--role", role)
        if quotas:
            d.cli("credential", "quota", ident, *quotas)
        return self.session(d, ident)

    def refusal(self, answer, code, quota, limit):
        self.assertFalse(answer["ok"], answer)
        e = answer["error"]
        self.assertEqual((e["code"], e["details"]), (code, {"quota": quota, "limit": limit}), e)
        self.assertIn(quota, e["message"])
        self.assertIn(str(limit), e["message"])
        return e

    def test_requests_of_a_minute_up_to_the_quota_and_no_more(self):
        d = self.started()
        with self.person(d, "few", "requests=5") as s, self.session(d) as other:
            for _ in range(5):
                self.assertTrue(s.ask("plan.list")["ok"])
            e = self.refusal(s.ask("plan.list"), "BUSY", "requests", 5)
            self.assertTrue(0 < e["retryAfterMs"] <= 60000, e)
            with self.session(d, "few") as second:  # of the credential, not of the connection
                self.refusal(second.ask("plan.list"), "BUSY", "requests", 5)
            self.assertTrue(other.ask("plan.list")["ok"], "others go on")
            d.cli("credential", "quota", "few", "requests=6")
            until(lambda: s.ask("plan.list")["ok"], 5, "a new number counts at once")
            self.refusal(s.ask("plan.list"), "BUSY", "requests", 6)
            d.cli("credential", "quota", "few", "requests=none")
            until(lambda: s.ask("plan.list")["ok"], 5, "none is none")

    def test_bytes_of_a_minute_up_to_the_quota_and_no_more(self):
        d = self.started()
        with self.person(d, "small", "bytes=3000") as s:
            body = s.body("plan.list")
            body += b" " * (1500 - sealed.HEADER - len(body))
            self.assertEqual(s.send(s.seal(body + b" " * 1501))["error"]["code"], "LIMIT", "alone it is more")
            self.assertTrue(s.send(s.seal(body))["ok"])
            self.assertTrue(s.send(s.seal(body))["ok"], "3000 of 3000")
            self.refusal(s.ask("plan.list"), "BUSY", "bytes", 3000)

    def test_connections_up_to_the_quota_and_one_that_ended_makes_room(self):
        d = self.started()
        with self.person(d, "two", "connections=2") as a, self.session(d, "two") as b:
            self.assertTrue(a.ask("plan.list")["ok"] and b.ask("plan.list")["ok"])
            with self.session(d, "two") as c:
                e = self.refusal(c.ask("plan.list"), "BUSY", "connections", 2)
                self.assertGreater(e["retryAfterMs"], 0)
                self.assertTrue(a.ask("plan.list")["ok"], "those that are there go on")
                b.close()
                until(lambda: c.ask("plan.list")["ok"], 5, "the one that waited has its place")
            for _ in range(5):  # programs that come and go
                until(lambda: "plans" in d.cli("info", "--credential", d.work / "two.json"), 10, "a place is free")

    def test_open_plans_up_to_the_quota_also_after_a_restart(self):
        d = self.started()
        with self.person(d, "ann", "plans=2") as ann, self.person(d, "bob") as bob:
            ids = [ann.ask("plan.submit", plan=PLAN)["planId"] for _ in range(2)]
            e = self.refusal(ann.ask("plan.submit", plan=PLAN), "BUSY", "plans", 2)
            self.assertGreater(e["retryAfterMs"], 0)
            self.refusal(ann.ask("session.say", sessionId="s1", text="Do x with slow"), "BUSY", "plans", 2)
            self.assertTrue(bob.ask("plan.submit", plan=PLAN)["ok"])
        d.kill9()
        d.start(agents=False)
        with self.session(d, "ann") as ann:
            self.refusal(ann.ask("plan.submit", plan=PLAN), "BUSY", "plans", 2)
            self.assertTrue(ann.ask("plan.cancel", planId=ids[0])["ok"])
            until(lambda: ann.ask("plan.submit", plan=PLAN)["ok"], 20, "one that ended makes room")
            self.refusal(ann.ask("plan.submit", plan=PLAN), "BUSY", "plans", 2)
            self.refusal(ann.ask("plan.retry", planId=ids[0]), "BUSY", "plans", 2)
            self.refusal(ann.ask("plan.fork", planId=ids[0], fromStep="a"), "BUSY", "plans", 2)

    def test_events_of_a_minute_hold_back_new_plans_and_no_others(self):
        d = self.started()
        with self.person(d, "loud", "events=3") as loud, self.person(d, "bob") as bob:
            self.assertRegex(d.cli("credential", "show", "loud"), r"quotas +events 3 a minute, plans: a quarter of limits.maxOpenPlans\n")
            first = loud.ask("plan.submit", plan=PLAN)["planId"]  # writes three events and more
            until(lambda: sum(e.get("planId") == first for e in loud.ask("events.read", fromSeq=1, limit=1000)["events"]) >= 3, 10, "it waits for a person")
            for _ in range(2):
                e = self.refusal(loud.ask("plan.submit", plan=PLAN), "BUSY", "events", 3)
                self.assertTrue(0 < e["retryAfterMs"] <= 60000, e)
            self.refusal(loud.ask("session.say", sessionId="s1", text="Do x with slow"), "BUSY", "events", 3)
            self.assertTrue(bob.ask("plan.submit", plan=PLAN)["ok"], "others go on")
            self.assertTrue(loud.ask("plan.cancel", planId=first)["ok"], "what runs can be ended")
            d.cli("credential", "quota", "loud", "events=1000")
            until(lambda: loud.ask("plan.submit", plan=PLAN)["ok"], 5, "a new number counts at once")

    def test_a_submitter_chats_in_its_own_session_and_hears_why_a_message_waits(self):
        d = self.started()
        with self.person(d, "ann", "events=1") as ann:
            said = ann.ask("session.say", sessionId="s1", text="Do what nobody can")
            self.assertEqual(said["sessionId"], "ann:s1", "what its events will say")
            ann_is = {"BATON_CREDENTIAL": str(d.work / "ann.json")}
            for session in ((), ("--session", "s1"), ("--session", "s2", "--new")):
                done = d.cli_any("chat", *session, stdin="Do what nobody can\n", env=ann_is, timeout=20)
                self.assertEqual((done.returncode, done.stdout.count("No plan could be made")), (2, 1), done)
            self.assertTrue(ann.ask("plan.submit", plan=PLAN)["ok"])
            done = d.cli_any("chat", "--session", "s1", "--timeout", "2s", stdin="Do what nobody can\n", env=ann_is, timeout=20)
            self.assertEqual(done.returncode, 124, done)
            self.assertRegex(done.stderr, r"the message waits: events: more than the quota of this credential, 1 a minute; try again in \d+ s\n")

    def test_by_default_one_submitter_has_a_quarter_of_the_open_plans(self):
        d = self.daemon(config="auth: required\nlimits: {maxOpenPlans: 12}\n", agents=False)
        d.credential = "ci", self.add(d, "ci")
        with self.person(d, "ann") as ann, self.person(d, "bob", role="reviewer") as bob, self.session(d) as admin:
            for s in (ann, bob):
                for _ in range(3):
                    self.assertTrue(s.ask("plan.submit", plan=PLAN)["ok"])
                self.refusal(s.ask("plan.submit", plan=PLAN), "BUSY", "plans", 3)
            for _ in range(6):
                self.assertTrue(admin.ask("plan.submit", plan=PLAN)["ok"])

    def test_quotas_are_shown_and_checked(self):
        d = self.started()
        self.add(d, "ann", "--role", "submitter")
        self.assertIn("a quarter of limits.maxOpenPlans", d.cli("credential", "show", "ann"))
        out = d.cli("credential", "quota", "ann", "plans=7", "requests=600", "connections=none")
        self.assertIn("connections none, plans 7, requests 600 a minute", out)
        self.assertIn("plans 7", d.cli("credential", "list"))
        self.assertEqual(json.loads(d.cli("credential", "show", "ann", "--json"))["quotas"], {"connections": 0, "plans": 7, "requests": 600})
        d.cli("credential", "quota", "ann", "plans=default", "connections=default")
        self.assertEqual(json.loads(d.cli("credential", "show", "ann", "--json"))["quotas"], {"requests": 600})
        for wrong in ("plans", "plans=", "plans=0", "plans=-1", "plans=x", "plans=1x", "plan=1", "=1", "plans=99999999999999999999"):
            out = d.cli_any("credential", "quota", "ann", wrong)
            self.assertEqual(out.returncode, 2, (wrong, out))
            self.assertIn("NAME=N", out.stderr)
        d.cli("credential", "rotate", "ann")
        self.assertEqual(json.loads(d.cli("credential", "show", "ann", "--json"))["quotas"], {"requests": 600}, "a rotation keeps them")


class Grants(Base):
    def test_a_grant_shows_what_is_anothers_and_its_end_hides_it_again(self):
        d = self.started()
        for ident in ("ann", "bob", "eve"):
            self.add(d, ident, "--role", "submitter")
        with self.session(d, "ann") as ann, self.session(d, "bob") as bob, self.session(d, "eve") as eve:
            plan = ann.ask("plan.submit", plan=PLAN, sessionId="anns")["planId"]

            def seen(s):
                return [s.ask("plan.get", planId=plan)["ok"], plan in [p["planId"] for p in s.ask("plan.list")["plans"]],
                        any(e.get("planId") == plan for e in s.ask("events.read", fromSeq=1, limit=1000)["events"]),
                        s.ask("session.get", sessionId="ann:anns")["ok"], s.ask("plan.history", planId=plan)["ok"]]
            self.assertEqual(seen(bob), [False] * 5)
            self.assertIn("sees              ann", d.cli("credential", "grant", "bob", "ann"))
            until(lambda: all(seen(bob)), 5, "bob sees it")
            self.assertEqual(seen(eve), [False] * 5)
            for type_, fields in (("plan.cancel", {"planId": plan}), ("plan.retry", {"planId": plan}), ("plan.delete", {"planId": plan}),
                                  ("plan.fork", {"planId": plan, "fromStep": "a"})):
                self.assertEqual(bob.ask(type_, **fields)["error"]["code"], "UNAUTHORIZED", "it sees, and changes nothing: " + type_)
            self.assertEqual(bob.ask("session.say", sessionId="ann:anns", text="more")["error"]["code"], "CONFLICT")
            self.assertEqual(ann.ask("plan.list")["plans"][0]["planId"], plan, "it is not mutual")
            d.cli("credential", "withdraw", "bob", "ann")
            until(lambda: not any(seen(bob)), 5, "it is hidden again, in the open session")
            d.cli("credential", "grant", "eve", "a*", "local")
            until(lambda: all(seen(eve)), 5, "a glob")
        self.assertIn("a* local", d.cli("credential", "list"))
        audit = d.cli("audit")
        self.assertIn("credential: bob changed: submitter sees ann", audit)
        d.cli("credential", "withdraw", "eve", "ann", code=7)
        d.cli("credential", "grant", "eve", code=2)
        d.cli("credential", "grant", "ci", "ann", code=2)

    def test_a_parked_read_ends_with_its_grant(self):
        d = self.started()
        for ident in ("ann", "bob"):
            self.add(d, ident, "--role", "submitter")
        d.cli("credential", "grant", "bob", "ann")
        with self.session(d, "bob") as bob, self.session(d, "ann") as ann:
            seq = bob.ask("events.read", fromSeq=1, limit=1000)["nextSeq"]
            got = []
            reading = threading.Thread(target=lambda: got.append(bob.ask("events.read", fromSeq=seq, waitMs=4000)))
            reading.start()
            d.cli("credential", "withdraw", "bob", "ann")
            ann.ask("plan.submit", plan=PLAN)
            reading.join(20)
            self.assertEqual([e for e in got[0]["events"] if e.get("planId")], [])


class Ends(Base):
    def test_revocation_ends_a_parked_read_and_its_connection_at_once(self):
        d = self.started()
        self.add(d, "leaver", "--role", "observer")
        with self.session(d, "leaver") as s, self.session(d) as other:
            self.assertTrue(s.ask("plan.list")["ok"] and other.ask("plan.list")["ok"])
            ended = []

            def read():
                began = time.monotonic()
                try:
                    s.ask("events.read", fromSeq=10 ** 6, waitMs=30000)
                    ended.append(("answered", time.monotonic() - began))
                except (sealed.Refused, OSError, EOFError) as e:
                    ended.append((type(e).__name__, time.monotonic() - began))
            reading = threading.Thread(target=read)
            reading.start()
            until(lambda: "known=2" in d.log(), 5, "the credential is known")
            d.cli("credential", "revoke", "leaver")
            reading.join(10)
            self.assertTrue(ended and ended[0][0] != "answered" and ended[0][1] < 10, ended)
            s.req.pipe.sock.settimeout(5)
            self.assertEqual(s.req.pipe.sock.recv(1), b"", "the connection has ended, too")
            self.assertTrue(other.ask("plan.list")["ok"])

    def test_a_follower_whose_credential_is_revoked_ends_with_the_reason(self):
        d = self.started()
        self.add(d, "leaver", "--role", "observer")
        follow = subprocess.Popen([BIN / "baton", "events", "--follow", "--json", "--state", d.state, "--credential", d.work / "leaver.json"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(follow.wait)
        self.addCleanup(follow.kill)
        self.assertIn("supervisor_started", follow.stdout.readline())
        d.cli("credential", "revoke", "leaver")
        _, errors = follow.communicate(timeout=60)
        self.assertNotEqual(follow.returncode, 0)
        self.assertIn("revoked", errors)

    def test_a_connection_that_fails_again_and_again_is_ended_and_nobody_else(self):
        d = self.started()
        with self.session(d) as good, self.session(d, "ci", bytes(32)) as liar:
            self.assertTrue(good.ask("plan.list")["ok"])
            for _ in range(10):
                self.assertIn(self.code_of(liar), ("UNAUTHORIZED", "BUSY"))
            self.assertTrue(self.ends(lambda: self.code_of(liar)), "within a second after the 11th")
            self.assertTrue(good.ask("plan.list")["ok"], "the right one is not locked out")
            with self.session(d) as again:
                self.assertTrue(again.ask("plan.list")["ok"], "nor can it not come back")
        with sp.Req(d.endpoints()["control"]) as r:
            wrong = json.dumps({"v": 1, "type": "plan.list", "token": "0" * 64}).encode()
            for _ in range(10):
                self.assertEqual(json.loads(r.ask(wrong))["error"]["code"], "UNAUTHORIZED")
            self.assertTrue(self.ends(lambda: r.ask(wrong)), "wrong tokens, too")

    def ends(self, ask):
        deadline = time.monotonic() + 10
        try:
            while time.monotonic() < deadline:
                ask()
        except (OSError, EOFError):
            return True
        return False

    def code_of(self, s):
        try:
            return s.ask("plan.list")["error"]["code"]
        except sealed.Refused as e:
            return e.code

    def test_many_clients_that_come_back_after_a_restart_are_not_taken_for_attackers(self):
        d = self.started()
        sessions = [self.session(d) for _ in range(60)]
        for s in sessions:
            self.addCleanup(s.close)
            self.assertTrue(s.ask("plan.list")["ok"])
        d.kill9()
        d.start(agents=False)
        for s in sessions * 2:  # each sends one request of the session that is gone, over a connection of its own
            with sp.Req(d.endpoints()["control"]) as r:
                s.req.close()
                s.req = r
                self.assertIn(self.code_of(s), ("UNAUTHORIZED", "BUSY"))
        with self.session(d) as s:
            self.assertTrue(s.ask("plan.list")["ok"])


class Bus(Base):
    def listening(self, d):
        """The ports on which the daemon listens."""
        inodes = {os.readlink(f) for f in pathlib.Path("/proc/%d/fd" % d.process.pid).iterdir() if os.path.islink(f)}
        rows = [line.split() for name in ("tcp", "tcp6") for line in pathlib.Path("/proc/net/" + name).read_text().splitlines()[1:]]
        return [int(r[1].rsplit(":", 1)[1], 16) for r in rows if r[3] == "0A" and "socket:[%s]" % r[9] in inodes]

    def test_where_a_credential_is_required_there_is_no_bus_and_followers_see_what_they_may(self):
        d = self.started()
        self.assertEqual(d.endpoints()["events"], "")
        self.assertEqual(self.listening(d), [int(d.endpoints()["control"].rsplit(":", 1)[1])])
        self.followers_see_what_they_may(d)

    def test_a_credential_follows_by_reading_also_where_there_is_a_bus(self):
        self.followers_see_what_they_may(self.started(config=""))

    def followers_see_what_they_may(self, d):
        for ident in ("ann", "bob"):
            self.add(d, ident, "--role", "submitter")
        follow = subprocess.Popen([BIN / "baton", "events", "--follow", "--json", "--state", d.state, "--credential", d.work / "bob.json"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(follow.wait)
        self.addCleanup(follow.kill)
        seen = []
        threading.Thread(target=self.collect, args=(follow, seen), daemon=True).start()
        with self.session(d, "ann") as ann, self.session(d, "bob") as bob:
            anns, bobs = [s.ask("plan.submit", plan=PLAN)["planId"] for s in (ann, bob)]
            self.assertTrue(bob.ask("plan.cancel", planId=bobs)["ok"])
            until(lambda: [e for e in seen if e.get("planId") == bobs and e["type"] == "plan_completed"], 20, "bob sees the end of his plan")
            self.assertNotIn(anns, [e.get("planId") for e in seen])

    def collect(self, follow, seen):
        for line in follow.stdout:
            seen.append(json.loads(line))


class Audit(Base):
    def test_who_follows_the_audit_gets_each_line_once_also_over_a_rotation(self):
        d = self.daemon(config=REQUIRED, agents=False, start=False)
        folder = d.state / "audit"
        folder.mkdir(parents=True)
        for made in (d.state, folder):
            made.chmod(0o700)
        lines = [json.dumps({"at": "2026-01-01T00:00:00.000Z", "kind": "admin", "text": "old %d %s" % (i, "x" * 1000)}) for i in range(4200)]
        (folder / "audit.jsonl").write_text("\n".join(lines) + "\n")
        (folder / "audit.jsonl").chmod(0o600)
        self.assertGreater((folder / "audit.jsonl").stat().st_size, 4 * 1024 * 1024)
        seen = []
        follow = subprocess.Popen([BIN / "baton", "audit", "--follow", "--json", "--state", d.state], stdout=subprocess.PIPE, text=True)
        self.addCleanup(follow.wait)
        self.addCleanup(follow.kill)
        threading.Thread(target=lambda: [seen.append(json.loads(line)) for line in follow.stdout], daemon=True).start()
        until(lambda: len(seen) == 4200, 20, "what was there")
        d.start(agents=False)  # its first line makes the file another one
        self.add(d, "ci")
        self.add(d, "ann", "--role", "observer")
        d.credential = "ci", d.work / "ci.json"
        until(lambda: any((line.get("about"), line.get("text")) == ("ann", "added: observer") for line in seen), 20, "what came after the rotation")
        self.assertEqual(len(list(folder.glob("audit-*.jsonl"))), 1)
        written = [line for f in sorted(folder.glob("audit*.jsonl"), key=lambda f: f.name == "audit.jsonl") for line in f.read_text().splitlines()]
        until(lambda: len(seen) >= len(written), 10, "all of it")
        self.assertEqual(seen, [json.loads(line) for line in written])
        self.assertTrue(all(line["topic"] == "system/audit" for line in seen[4200:]))
        self.assertEqual(len(d.cli("audit", "--json").splitlines()), len(written))


if __name__ == "__main__":
    main()
