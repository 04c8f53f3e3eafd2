"""Credentials: both sides prove that they have a key that is never sent. The peer here is written from WIRE.md; the
command line and libbaton are the other one."""
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile
import threading
import uuid

from harness import BIN, BatonTest, main, sp, until
from probe import Probe, step, wait_up
import sealed

REQUIRED = "auth: required\n"


class Base(BatonTest):
    def started(self, config=REQUIRED):
        d = self.daemon(config=config, agents=False)
        d.credential = "ci", self.add(d, "ci")
        return d

    def add(self, d, ident, *more):
        path = d.work / (ident + ".json")
        d.cli("credential", "add", ident, "--file", path, *(more or ("--role", "admin")))
        return path

    def session(self, d, ident="ci", key=None):
        return sealed.Session(d.endpoints()["control"], ident, key or sealed.key_of(d.work / (ident + ".json")))

    def refused(self, call, code="UNAUTHORIZED"):
        with self.assertRaises(sealed.Refused) as caught:
            call()
        self.assertEqual(caught.exception.code, code, caught.exception)
        return str(caught.exception)


class OneDaemon(Base):
    """What strangers and changed bytes get. One daemon for all of it."""

    def test_only_proved_requests_are_served(self):
        d = self.started()
        for check in (self.a_request_of_both_sides_is_served, self.the_token_opens_nothing_when_a_credential_is_required,
                      self.each_changed_byte_of_the_header_is_refused, self.replayed_and_reordered_requests_are_refused,
                      self.a_reflected_answer_is_no_request, self.truncated_requests_are_refused,
                      self.a_stranger_learns_nothing, self.a_sealed_garbage_is_refused_in_a_sealed_answer,
                      self.a_damaged_or_readable_file_is_no_credential, self.revocation_ends_open_sessions,
                      self.rotation_keeps_the_old_key_for_a_while, self.an_expired_credential_is_refused,
                      self.the_command_line_says_what_is_wrong):
            with self.subTest(check.__name__):
                check(d)
        self.assertIsNone(d.process.poll(), d.log())

    def a_request_of_both_sides_is_served(self, d):
        with self.session(d) as s:
            self.assertTrue(s.proved, "the daemon has the key")
            self.assertTrue(s.ask("supervisor.info")["ok"])
            self.assertEqual(s.ask("plan.get", planId="x")["error"]["code"], "NOT_FOUND", "refusals are sealed, too")
            # a large one waits for its turn, a long read for its cycle, a parked one for its time
            self.assertEqual(s.ask("plan.submit", plan={"steps": [{"stepId": "a", "task": "x" * 9000}]})["error"]["code"], "INVALID")
            self.assertTrue(s.ask("plan.list")["ok"])
            self.assertTrue(s.ask("events.read", fromSeq=1000, waitMs=50)["ok"])
        self.assertIn("plans open", d.cli("info", "--credential", d.work / "ci.json"))
        self.assertIn("plans open", d.cli("info", env={"BATON_CREDENTIAL": str(d.work / "ci.json")}))
        events = d.cli("events", "--credential", d.work / "ci.json", "--json")
        self.assertIn("supervisor_started", events)

    def the_token_opens_nothing_when_a_credential_is_required(self, d):
        with sp.Req(d.endpoints()["control"]) as r:
            def ask(type_, **fields):
                return json.loads(r.ask(json.dumps({"v": 1, "type": type_, "token": d.token(), **fields}).encode()))
            answer = ask("plan.list")
            self.assertEqual(answer["error"]["code"], "UNAUTHORIZED", answer)
            self.assertIn("wants a credential", answer["error"]["message"])
            answer = ask("plan.submit", plan={"steps": [{"stepId": "a", "task": "x" * 9000}]})
        self.assertEqual(answer["error"]["code"], "UNAUTHORIZED", "a long one is refused before it is read")

    def each_changed_byte_of_the_header_is_refused(self, d):
        with self.session(d) as s:
            body = s.body("plan.list")
            for i in range(1, sealed.HEADER):  # byte 0 says that there is a header at all
                good = bytearray(s.seal(body))
                good[i] ^= 1
                with self.assertRaises(sealed.Refused):
                    s.send(bytes(good))
                if i % 8 == 0:  # a connection that fails more often is ended
                    s.req.close()
                    s.req = sp.Req(d.endpoints()["control"])
            self.assertTrue(s.send(s.seal(body))["ok"], "the session of its owner goes on")

    def replayed_and_reordered_requests_are_refused(self, d):
        with self.session(d) as s:
            first, second = s.seal(s.body("plan.list")), s.seal(s.body("plan.list"))
            self.assertTrue(s.send(second)["ok"])
            self.assertIn("n: expected more than 2", self.refused(lambda: s.send(second)))
            self.refused(lambda: s.send(first))
            with self.session(d) as other:  # the same bytes in another session
                moved = first[:4] + other.sid + first[20:]
                self.assertIn(self.refused_code(lambda: other.send(moved)), ("UNAUTHORIZED", "BUSY"))
            self.assertTrue(s.ask("plan.list")["ok"])

    def refused_code(self, call):
        try:
            call()
        except sealed.Refused as e:
            return e.code
        return "OK"

    def a_reflected_answer_is_no_request(self, d):
        with self.session(d) as s:
            answer = s.seal(s.body("plan.list"), n=s.n + 5, direction=b"A")
            self.assertIn(self.refused_code(lambda: s.send(answer)), ("UNAUTHORIZED", "BUSY"))

    def truncated_requests_are_refused(self, d):
        with self.session(d) as s:
            good = s.seal(s.body("plan.list"))
            for n in (1, 4, 20, 28, 59, 60, len(good) - 1):
                self.assertIn(self.refused_code(lambda n=n: s.send(good[:n])), ("UNAUTHORIZED", "BUSY"), n)
            self.assertTrue(s.send(good)["ok"])

    def a_stranger_learns_nothing(self, d):
        liar, nobody = (self.session(d, ident, bytes(32)) for ident in ("ci", "nobody"))
        with liar, nobody:
            self.assertFalse(liar.proved or nobody.proved)
            ends = [self.refused_code(lambda s=s: s.ask("plan.list")) for s in (liar, nobody)]
            self.assertTrue(set(ends) <= {"UNAUTHORIZED", "BUSY"}, ends)
        for wrong in ("", "00", "zz" * 32, "AA" * 32):
            with sp.Req(d.endpoints()["control"]) as r:
                answer = json.loads(r.ask(json.dumps({"v": 1, "type": "auth.begin", "credential": "ci", "nonceC": wrong}).encode()))
            self.assertEqual(answer["error"]["code"], "INVALID", answer)

    def a_sealed_garbage_is_refused_in_a_sealed_answer(self, d):
        with self.session(d) as s:
            for garbage in (b"{", b"{\"v\":1}", b"[]", b"{\"v\":2,\"type\":\"plan.list\"}"):
                answer = s.send(s.seal(garbage))
                self.assertTrue(b"error" in answer if isinstance(answer, bytes) else not answer["ok"], answer)

    def a_damaged_or_readable_file_is_no_credential(self, d):
        folder = d.state / "credentials"
        self.assertEqual(stat.S_IMODE(folder.stat().st_mode), 0o700)
        (folder / "torn").write_text("{")
        os.chmod(folder / "torn", 0o600)
        self.add(d, "open")
        os.chmod(folder / "open", 0o640)
        listed = {row["id"]: row for row in json.loads(d.cli("credential", "list", "--json"))}
        self.assertEqual(listed["torn"]["status"], "refused")
        self.assertIn("chmod 600", listed["open"]["reason"])
        self.assertEqual(listed["ci"]["status"], "valid")
        self.assertNotIn("key", json.dumps(listed["ci"]).replace("previousKey", ""))
        until(lambda: not self.proves(d, "open"), 10, "the readable credential is refused")
        until(lambda: "credential torn is refused" in d.log(), 10, "the damaged file is named in the log")

    def proves(self, d, ident):
        with self.session(d, ident) as s:
            return s.proved

    def revocation_ends_open_sessions(self, d):
        self.add(d, "leaver")
        with self.session(d, "leaver") as s, self.session(d) as other:
            self.assertTrue(s.ask("plan.list")["ok"])
            self.assertTrue(other.ask("plan.list")["ok"])
            d.cli("credential", "revoke", "leaver")

            def ended():
                try:
                    return self.refused_code(lambda: s.ask("plan.list")) != "OK"
                except EOFError:  # its connection was ended, too
                    return True
            until(ended, 5, "its open session has ended")
            self.assertTrue(other.ask("plan.list")["ok"], "others go on")
        self.assertFalse(self.proves(d, "leaver"))
        d.cli("credential", "add", "leaver", "--role", "admin", code=2)

    def rotation_keeps_the_old_key_for_a_while(self, d):
        old = self.add(d, "turning")
        key = sealed.key_of(old)
        d.cli("credential", "rotate", "turning", "--grace", "1h", "--file", d.work / "new.json")
        with self.session(d, "turning", key) as was, self.session(d, "turning", sealed.key_of(d.work / "new.json")) as new:
            self.assertTrue(was.proved and new.proved)
            self.assertTrue(was.ask("plan.list")["ok"] and new.ask("plan.list")["ok"])
        d.cli("credential", "rotate", "turning", "--grace", "250ms")  # of the key that is new now
        with self.session(d, "turning", key) as was:
            self.assertFalse(was.proved, "two rotations end the first key at once")

    def an_expired_credential_is_refused(self, d):
        self.add(d, "brief", "--role", "observer", "--expires", "250ms")
        until(lambda: not self.proves(d, "brief"), 10, "it has expired")
        out = d.cli_any("info", "--credential", d.work / "brief.json")
        self.assertIn("has expired", out.stderr)

    def the_command_line_says_what_is_wrong(self, d):
        out = d.cli_any("info")
        self.assertIn("--credential FILE", out.stderr)
        out = d.cli_any("info", "--credential", d.work / "none.json")
        self.assertIn("none.json", out.stderr)
        out = d.cli_any("info", "--credential", d.work / "leaver.json")
        self.assertIn("revoked", out.stderr)
        d.cli("credential", "add", "../x", "--role", "admin", code=2)
        d.cli("credential", "add", "x", "--role", "root", code=2)
        d.cli("credential", "add", "x", "--role", "agent", code=2)
        d.cli("credential", "add", "x", "--role", "admin", "--agents", "*", code=2)
        d.cli("credential", "show", "nobody", code=7)
        self.assertEqual(json.loads(d.cli("credential", "show", "ci", "--json"))["role"], "admin")


class Restart(Base):
    def test_a_client_begins_again_after_a_restart_without_a_word(self):
        d = self.started()
        follow = subprocess.Popen([BIN / "baton", "events", "--follow", "--json", "--state", d.state, "--credential",
                                   d.work / "ci.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(follow.stderr.close)
        self.addCleanup(follow.stdout.close)
        self.addCleanup(follow.wait)
        self.addCleanup(follow.kill)
        os.set_blocking(follow.stdout.fileno(), False)
        seen = bytearray()

        def starts():
            seen.extend(follow.stdout.read() or b"")
            return seen.count(b"supervisor_started")

        until(lambda: starts() == 1, 20, "the first start is seen")
        d.process.kill()
        d.process.wait()
        d.start(agents=False)
        until(lambda: starts() == 2, 30, "the second start is read in a new session")
        self.assertIsNone(follow.poll())

    def test_a_program_that_takes_the_port_gets_neither_key_nor_trust(self):
        d = self.started()
        got = []
        with sp.RepListener() as liar:
            def serve():
                while True:
                    try:
                        body, reply = liar.next()
                    except (TimeoutError, OSError, ValueError):
                        return
                    got.append(body)
                    reply(json.dumps({"v": 1, "type": "auth.begin.ok", "ok": True, "sid": "00" * 16, "nonceS": "00" * 32,
                                      "proof": "00" * 32}).encode())
            threading.Thread(target=serve, daemon=True).start()
            at = d.endpoints()
            at["control"] = liar.url
            (d.state / "endpoints.json").write_text(json.dumps(at))
            out = d.cli_any("status", "--credential", d.work / "ci.json")
            self.assertEqual(out.returncode, 6, out)
            self.assertIn("does not have the key", out.stderr)
            key = sealed.key_of(d.work / "ci.json").hex().encode()
            self.assertTrue(got)
            for body in got:
                self.assertNotIn(key, body)
                self.assertNotIn(d.token().encode(), body)


class Agents(Base):
    """Agents with a credential, where the token opens nothing."""

    AGENTS = """auth: required
agents:
  - agentId: calc
    command: ["${BATON_BIN}/baton-agent-calc"]
    env: ["BATON_CREDENTIAL=%(work)s/calc.json"]
  - agentId: calc-2
    command: ["${BATON_BIN}/baton-agent-calc", "--dial-in", "--credential", "%(work)s/calc.json"]
  - agentId: calc-3
    command: ["${BATON_BIN}/baton-agent-calc"]
"""

    def test_agents_register_work_and_come_back_with_a_credential(self):
        d = self.daemon(config=self.AGENTS, agents=False, start=False)
        subprocess.run([BIN / "baton", "credential", "add", "calc", "--role", "agent", "--agents", "calc*", "--file",
                        d.work / "calc.json", "--state", d.state], check=True, capture_output=True)
        subprocess.run([BIN / "baton", "credential", "add", "ci", "--role", "admin", "--file", d.work / "ci.json",
                        "--state", d.state], check=True, capture_output=True)
        d.credential = "ci", d.work / "ci.json"
        d.start(agents=False)

        def up():
            return sorted(a["card"]["agentId"] for a in d.ask("agents.list")["agents"] if a["state"] == "up")
        until(lambda: up() == ["calc", "calc-2", "calc-3"], 20, "all register, the last one by what the daemon hands its process")
        plan = {"steps": [{"stepId": "a", "agent": a, "skill": "evaluate", "task": "6*7"} for a in ("calc",)]
                + [{"stepId": "b", "agent": "calc-2", "skill": "evaluate", "task": "6*7", "dependsOn": ["a"]}]}
        self.assertEqual(d.wait_plan(d.submit(plan))["outcome"], "success")
        d.cli("credential", "rotate", "calc", "--grace", "1h", "--file", d.work / "calc.json")
        d.process.kill()
        d.process.wait()
        d.start(agents=False)
        until(lambda: up() == ["calc", "calc-2", "calc-3"], 30, "they come back to the next daemon, with the key of the rotated file")
        self.assertEqual(d.wait_plan(d.submit(plan))["outcome"], "success")


class Proving(Probe):
    """An agent that wants proofs on its lanes, and makes its own with `key`."""

    def __init__(self, daemon, key=None, **more):
        self.key, self.greeted, self.wrong = key, {}, []
        super().__init__(daemon, register=False, **more)
        self.registration["proof"] = True
        self.epoch = self.register()["epoch"]

    def answer(self, r):
        if "sessionKey" in r:
            self.wrong.append(r)
        if r["type"] != "lane.hello":
            return super().answer(r)
        head = {"v": 1, "id": r["id"], "ok": True, "type": "ok"}
        key = self.key or self.me["sessionKey"]
        if "proof" not in r:
            self.greeted[r["lane"]] = r, os.urandom(32)
            hello, nonce_a = self.greeted[r["lane"]]
            return {**head, "nonceA": nonce_a.hex(), "proof": sealed.lane_proof(key, b"A", hello, nonce_a)}
        hello, nonce_a = self.greeted[r["lane"]]
        if r["proof"] != sealed.lane_proof(key, b"S", hello, nonce_a):
            self.wrong.append(r)
        return head


class Lanes(Base):
    def test_the_key_of_a_lane_is_proved_by_both_and_never_sent(self):
        d = self.daemon(config="policy: {agentWaitMs: 1500}\n", agents=False)
        honest, liar = Proving(d, agent_id="honest"), Proving(d, key="x" * 32, agent_id="liar")
        self.addCleanup(honest.close)
        self.addCleanup(liar.close)
        wait_up(d, "honest")
        plan = d.submit({"steps": [step("a", "honest"), step("b", "liar")], "policy": {"maxRetries": 0, "onFailure": "continue"}})
        done = d.wait_plan(plan)
        self.assertEqual([s["status"] for s in done["steps"]], ["completed", "failed"], done)
        self.assertEqual(len(honest.of("step.execute")), 1)
        self.assertEqual(honest.wrong + liar.wrong, [], "no request has the key, and the supervisor's proof is right")
        self.assertEqual({r["type"] for r in liar.requests}, {"lane.hello"}, "who does not know the key gets nothing else")

    def test_an_agent_serves_nobody_who_does_not_prove_the_key(self):
        with sp.RepListener() as supervisor:
            state = pathlib.Path(tempfile.mkdtemp(prefix="baton-e2e-"))
            self.addCleanup(shutil.rmtree, state)
            os.chmod(state, 0o700)
            (state / "token").write_text("0" * 64 + "\n")
            os.chmod(state / "token", 0o600)
            (state / "endpoints.json").write_text(json.dumps({"control": supervisor.url, "events": supervisor.url, "version": "1",
                                                              "instance": str(uuid.uuid4()), "pid": os.getpid()}))
            agent = subprocess.Popen([BIN / "baton-agent-calc", "--state", state], stderr=subprocess.DEVNULL)
            self.addCleanup(agent.wait)
            self.addCleanup(agent.kill)
            body, reply = supervisor.next()
            self.assertIn(b"agent.register", body)
            url = re.search(rb"tcp://127.0.0.1:[0-9]+", body).group().decode()
            key = re.search(rb"sessionKey.{1,2}([0-9a-f]{64})", body, re.S).group(1).decode()
            reply(json.dumps({"v": 1, "type": "agent.register.ok", "id": "c1", "ok": True, "epoch": 1, "leaseMs": 600000,
                              "heartbeatMs": 50}).encode())
            supervisor.next()  # a heartbeat: it has the answer
            with sp.Req(url) as lane, sp.Req(url) as other:
                def ask(to, type_, **fields):
                    return json.loads(to.ask(json.dumps({"v": 1, "type": type_, "id": "1", **fields}).encode()))

                def refused(answer):
                    self.assertEqual(answer["error"]["code"], "UNAUTHORIZED", answer)
                hello = {"lane": 0, "epoch": 1, "nonceS": "11" * 32}
                refused(ask(lane, "agent.ping"))
                refused(ask(lane, "lane.hello", lane=0, epoch=1))
                refused(ask(lane, "lane.hello", **hello, proof="22" * 32))
                first = ask(lane, "lane.hello", **hello)
                nonce_a = bytes.fromhex(first["nonceA"])
                self.assertEqual(first["proof"], sealed.lane_proof(key, b"A", hello, nonce_a))
                right = sealed.lane_proof(key, b"S", hello, nonce_a)
                refused(ask(lane, "agent.ping"))
                refused(ask(lane, "lane.hello", **hello, proof=first["proof"]))  # reflected
                refused(ask(other, "lane.hello", **hello, proof=right))  # on another connection
                refused(ask(lane, "lane.hello", **{**hello, "lane": 1}, proof=right))
                answer = ask(lane, "lane.hello", **hello, proof=right)
                self.assertTrue(answer["ok"], answer)
                self.assertTrue(ask(lane, "agent.ping")["ok"])
                refused(ask(other, "agent.ping"))
                refused(ask(lane, "lane.hello", **hello, proof=right))  # once more
                ask(lane, "lane.hello", **hello)
                refused(ask(lane, "agent.ping"))  # a new greeting needs a new proof
                self.assertTrue(ask(other, "agent.ping", sessionKey=key)["ok"], "a supervisor of before sends the key")


class Audit(Base):
    def test_each_change_of_a_credential_is_in_the_audit_once(self):
        d = self.daemon(agents=False, config="")

        def lines():
            return [(e["about"], e["text"]) for e in map(json.loads, d.cli("audit", "--json").splitlines()) if e["kind"] == "credential"]

        expected = [("", "")]  # at the start there are none
        for command, line in ((("add", "ann", "--role", "submitter"), ("ann", "added: submitter")),
                              (("add", "ci", "--role", "observer"), ("ci", "added: observer")),
                              (("grant", "ann", "ci"), ("ann", "changed: submitter sees ci")),
                              (("rotate", "ci"), ("ci", "changed, another key: observer")),
                              (("revoke", "ci"), ("ci", "changed: observer (revoked)"))):
            d.cli("credential", *command)
            expected.append(line)
            until(lambda: len(lines()) >= len(expected), 10, "%s is in the audit" % (command,))
            self.assertEqual(lines(), expected)
        (d.state / "credentials" / "ci").unlink()
        until(lambda: len(lines()) > len(expected), 10, "a file that is gone")
        self.assertEqual(lines(), [*expected, ("ci", "removed, or no longer to be read")])
        d.kill9()
        d.start(agents=False)
        self.assertEqual(lines()[-1], ("", "ann submitter sees ci"), "who is known at the start")
        shown = d.cli("audit")
        for words in ("credential: the daemon has read them\n", "credential: ann changed: submitter sees ci\n", "credential: ann submitter sees ci\n"):
            self.assertIn(words, shown)


class TokenMode(Base):
    def test_without_the_setting_token_and_credential_are_both_served(self):
        d = self.started(config="")
        self.assertTrue(d.ask("plan.list")["ok"])
        with self.session(d) as s:
            self.assertTrue(s.ask("plan.list")["ok"])


if __name__ == "__main__":
    main()
