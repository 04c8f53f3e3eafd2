"""Who may do what: every request of the wire with every role, plans and sessions of others, agents that are only themselves."""
import json
import os
import re
import threading
import uuid

import harness
import probe
from harness import BatonTest, main, sp, until
from probe import Probe, step
import sealed

# What each role may at least; a change of protocol/messages.def is to be made here, too.
NEEDS = {
    "agent": "agent.register agent.heartbeat agent.drain agent.deregister step.progress step.result artifact.fetch artifact.store",
    "observer": "auth.begin plan.get plan.list plan.result plan.history plan.stats plan.cost session.get session.list review.list review.get"
                " events.read blob.get artifact.read agents.list agents.get supervisor.info supervisor.stats fleet.map"
                " schedule.get schedule.list",
    "submitter": "plan.submit plans.submit plan.lint plan.cancel plan.pause plan.resume plan.modify plan.retry plan.fork plan.signal session.say"
                " schedule.put schedule.pause schedule.resume schedule.trigger schedule.backfill schedule.delete",
    "reviewer": "review.decide",
    "admin": "plan.delete plan.prune session.delete journal.backup journal.export journal.import agents.drain agents.enable agents.forget"
             " agents.start agents.stop agents.restart supervisor.scrub supervisor.drain supervisor.reload"
             " webhook.list webhook.resend webhook.test hook.list",
}
HAS = {
    "observer": {"observer"},
    "submitter": {"observer", "submitter"},
    "reviewer": {"observer", "submitter", "reviewer"},
    "agent": {"agent"},
    "admin": set(NEEDS),
}
# An empty body would stop the daemon, or read a configuration.
BODIES = {"supervisor.drain": {"graceMs": "soon"}, "supervisor.reload": {"check": "yes"}}


def make(daemon, ident, role, **more):
    """A credential: a file in the state directory, as the page has it."""
    folder = daemon.state / "credentials"
    folder.mkdir(mode=0o700, exist_ok=True)
    new = daemon.work / (ident + ".new")
    new.touch(0o600)
    new.write_text(json.dumps({"id": ident, "role": role, "key": os.urandom(32).hex(), "createdMs": 1, **more}))
    new.rename(folder / ident)


class Sender:
    """Asks as Daemon does, but as the credential."""

    def __init__(self, daemon, ident):
        self.ident, self.lock = ident, threading.Lock()  # a probe has threads
        self.session = sealed.Session(daemon.endpoints()["control"], ident, sealed.key_of(daemon.state / "credentials" / ident))
        daemon.test.addCleanup(self.session.close)

    def ask_raw(self, type_, **fields):
        with self.lock:
            return self.session.ask(type_, **fields)

    def ask(self, type_, **fields):
        answer = self.ask_raw(type_, **fields)
        if not answer["ok"]:
            raise AssertionError("%s of %s refused: %s" % (type_, self.ident, answer["error"]))
        return answer


def table():
    """{wire type: role} of messages.def."""
    text = (harness.ROOT / "protocol" / "messages.def").read_text()
    wire = dict(re.findall(r'^MSG\((\w+), "([^"]*)"\)', text, re.M))
    return {wire[name]: role.lower() for name, role in re.findall(r"^REQUEST\((\w+), \w+, \w+, (\w+),", text, re.M)}


class Roles(BatonTest):
    def setUp(self):
        self.d = self.daemon(config="", agents=False)
        for role in HAS:
            make(self.d, "the-" + role, role, **({"agents": ["calc*"]} if role == "agent" else {}))

    def stranger(self, type_, **fields):
        with sp.Req(self.d.endpoints()["control"], 15) as req:
            return json.loads(req.ask(json.dumps({"v": 1, "type": type_, "id": "t", **fields}).encode()))

    def test_every_request_with_every_role_a_stranger_and_the_token(self):
        needs = {request: role for role, some in NEEDS.items() for request in some.split()}
        self.assertEqual(table(), needs)
        senders = {role: Sender(self.d, "the-" + role) for role in HAS}
        for request, needed in needs.items():
            body = BODIES.get(request, {})
            for role, sender in senders.items():
                with self.subTest(request=request, role=role):
                    answer = sender.ask_raw(request, **body)
                    error = answer.get("error", {})
                    if needed in HAS[role]:
                        self.assertNotEqual(error.get("code"), "UNAUTHORIZED", answer)
                    else:
                        self.assertEqual((error["code"], error["details"]), ("UNAUTHORIZED", {"role": needed, "has": role}))
                        self.assertIn("needs the role " + needed, error["message"])
            if request == "auth.begin":
                continue  # it is there for strangers
            self.assertNotEqual(self.d.ask_raw(request, **body).get("error", {}).get("code"), "UNAUTHORIZED", request)
            for token in ({}, {"token": "wrong"}):
                self.assertEqual(self.stranger(request, **token, **body)["error"]["code"], "UNAUTHORIZED", request)
        self.assertEqual(self.d.ask("supervisor.info")["pid"], self.d.process.pid)


class Owners(BatonTest):
    """ann and bob submit; a plan of ann waits for a person."""

    def setUp(self):
        self.d = self.daemon(config="", agents=False)
        for ident, role in (("ann", "submitter"), ("bob", "submitter"), ("eve", "observer"), ("rex", "reviewer"), ("root", "admin")):
            make(self.d, ident, role)
        self.agent = Probe(self.d, work=lambda r: {"outcome": "completed", "result": {"text": "secret of ann"}})
        self.addCleanup(self.agent.close)
        probe.wait_up(self.d, "probe")
        self.ann, self.bob, self.eve, self.rex, self.root = (Sender(self.d, i) for i in ("ann", "bob", "eve", "rex", "root"))
        self.plan = self.ann.ask("plan.submit", plan={"goal": "g", "steps": [step("a"), step("b", requiresApproval=True)]}, sessionId="talk",
                                 clientKey="k")["planId"]
        self.review = until(lambda: self.ann.ask("review.list")["reviews"], 15, "a review")[0]["reviewId"]

    def same_as_unknown(self, sender, request, plan, **fields):
        other = str(uuid.uuid4()).upper()
        got, expected = sender.ask_raw(request, planId=plan, **fields), sender.ask_raw(request, planId=other, **fields)
        self.assertEqual(json.dumps(got).replace(plan, "ID"), json.dumps(expected).replace(other, "ID"), request)
        self.assertEqual(got["error"]["code"], "NOT_FOUND", request)

    def test_plans_sessions_results_and_events_of_another_submitter_are_not_there(self):
        for request, fields in (("plan.get", {}), ("plan.result", {}), ("plan.history", {}), ("plan.stats", {}), ("plan.cost", {}),
                                ("plan.cancel", {}), ("plan.pause", {}), ("plan.resume", {}), ("plan.signal", {"name": "x"}), ("plan.retry", {}),
                                ("plan.fork", {"fromStep": "a"}), ("events.read", {"fromSeq": 1}),
                                ("plan.modify", {"kind": "skip", "steps": ["b"]})):
            self.same_as_unknown(self.bob, request, self.plan, **fields)
        self.assertEqual(self.bob.ask("plan.list")["plans"], [])
        self.assertEqual(self.bob.ask("plan.list", idPrefix=self.plan[:9])["plans"], [])
        self.assertEqual(self.bob.ask("session.list")["sessions"], [])
        self.assertEqual(self.bob.ask_raw("session.get", sessionId="talk")["error"]["code"], "NOT_FOUND")
        self.assertEqual(self.bob.ask("review.list")["reviews"], [])
        self.assertEqual(self.bob.ask("review.list", planId=self.plan)["reviews"], [])
        self.assertEqual(self.bob.ask_raw("review.get", reviewId=self.review)["error"]["code"], "NOT_FOUND")
        self.assertEqual(self.bob.ask("plan.cost").get("plans", []), [])
        events = self.ann.ask("events.read", fromSeq=1, limit=1000)
        self.assertTrue([e for e in events["events"] if e.get("planId") == self.plan])
        theirs = self.bob.ask("events.read", fromSeq=1, limit=1000)
        self.assertEqual([e for e in theirs["events"] if e.get("planId")], [])
        self.assertEqual((theirs["nextSeq"], theirs.get("deleted", [])), (theirs["lastSeq"] + 1, []))
        ref = [e for e in events["events"] if e["type"] == "plan_step_completed"][0]["resultRef"]
        self.assertIn("len", self.ann.ask("blob.get", blobId=ref))
        hidden, unknown = (self.bob.ask_raw("blob.get", blobId=n)["error"] for n in (ref, 99999999))
        self.assertEqual(json.dumps(hidden).replace(str(ref), "N"), json.dumps(unknown).replace("99999999", "N"))
        # the same key is another key
        mine = self.bob.ask("plan.submit", plan={"steps": [step("a")]}, clientKey="k")
        self.assertNotEqual((mine["planId"], mine.get("existing")), (self.plan, True))
        self.assertEqual([p["planId"] for p in self.bob.ask("plan.list")["plans"]], [mine["planId"]])

    def test_a_plan_of_another_is_not_read_for_who_may_not_see_it(self):
        """A plan of which 1,200 steps have run takes many turns of the daemon to read."""
        plan = self.ann.ask("plan.submit", plan={"goal": "g", "steps": [step("%d" % i) for i in range(1200)]})["planId"]
        until(lambda: self.root.ask("plan.list", status="completed").get("plans"), 60, "the steps have run")
        agent = make(self.d, "agent", "agent", agents=["x"]) or Sender(self.d, "agent")

        others = []

        def turns(sender):
            before = self.root.ask("supervisor.stats")["turns"]
            answer = sender.ask_raw("plan.get", planId=plan, steps=False)
            return self.root.ask("supervisor.stats")["turns"] - before, answer

        for sender in (Sender(self.d, "bob"), agent):  # a handshake waits half a minute for its proof; the steps may take longer
            n, answer = turns(sender)
            self.assertFalse(answer["ok"])
            others.append(n)
        n, answer = turns(self.ann)
        self.assertEqual(answer["counts"]["total"], 1200)
        self.assertLess(max(others), n)

    def test_names_of_sessions_and_schedules_tell_a_submitter_nothing_of_others(self):
        self.root.ask("session.say", sessionId="boss", text="hello")
        self.root.ask("schedule.put", name="nightly", everyMs=3600000, plan={"steps": [step("a")]})
        self.ann.ask("schedule.put", name="weekly", everyMs=3600000, plan={"steps": [step("a")]})
        self.assertEqual([s["name"] for s in self.root.ask("schedule.list")["schedules"]], ["nightly", "ann:weekly"])

        def told(ask, taken, free):
            got, expected = json.dumps(ask(taken)), json.dumps(ask(free))
            plain = re.compile(r'[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|\d{4}-\d\d-\d\dT[0-9:.]+Z|"(seq|turn|atMs|nextMs)": \d+')
            self.assertEqual(plain.sub("_", got.replace(taken, "NAME")), plain.sub("_", expected.replace(free, "NAME")))
            return json.loads(got)

        one = {"plan": {"steps": [step("a")]}}
        for taken, free in (("talk", "free"), ("boss", "none"), ("ann:talk", "ann:free")):
            told(lambda s: self.bob.ask_raw("session.get", sessionId=s), taken, free)
            told(lambda s: self.bob.ask_raw("plan.list", sessionId=s), taken, free)
            told(lambda s: self.bob.ask_raw("plan.cost", sessionId=s), taken, free)
            self.assertTrue(told(lambda s: self.bob.ask_raw("session.say", sessionId=s, text="hello"), taken, free)["ok"])
            self.assertTrue(told(lambda s: self.bob.ask_raw("plan.submit", sessionId=s, **one), taken, free)["ok"])
        for taken, free in (("nightly", "hourly"), ("weekly", "daily")):
            for request, fields in (("schedule.get", {}), ("schedule.pause", {}), ("schedule.delete", {}), ("schedule.trigger", {})):
                told(lambda s, r=request, f=fields: self.bob.ask_raw(r, name=s, **f), taken, free)
            self.assertTrue(told(lambda s: self.bob.ask_raw("schedule.put", name=s, at="2099-01-01T00:00:00Z", **one), taken, free)["ok"])
        self.assertEqual({s["name"] for s in self.bob.ask("schedule.list")["schedules"]}, {"bob:nightly", "bob:hourly", "bob:weekly", "bob:daily"})
        self.assertTrue(self.bob.ask("schedule.get", name="nightly")["schedule"]["name"] == "bob:nightly")
        self.bob.ask("schedule.delete", name="nightly")
        self.assertIn("nightly", [s["name"] for s in self.root.ask("schedule.list")["schedules"]])

        # each has its own of that name, and goes on with it
        self.assertEqual(self.bob.ask("session.get", sessionId="talk")["sessionId"], "bob:talk")
        self.assertEqual(self.bob.ask("session.get", sessionId="bob:talk")["sessionId"], "bob:talk")
        self.assertEqual(self.ann.ask("session.get", sessionId="talk")["sessionId"], "ann:talk")
        self.assertEqual([p["planId"] for p in self.ann.ask("plan.list", sessionId="talk")["plans"]], [self.plan])
        self.assertEqual([p["sessionId"] for p in self.ann.ask("plan.list")["plans"]], ["ann:talk"])
        self.assertEqual(self.root.ask("session.get", sessionId="boss")["owner"], "root")
        again = self.bob.ask("plan.submit", plan={"steps": [step("a")], "sessionId": "doc"})["planId"]  # named by the document
        self.d.wait_plan(again)
        self.assertEqual(self.bob.ask("plan.get", planId=again)["sessionId"], "bob:doc")
        self.assertEqual(self.bob.ask("plan.get", planId=self.bob.ask("plan.retry", planId=again, fromStep="a")["planId"])["sessionId"], "bob:doc")
        self.assertEqual(self.bob.ask("plan.get", planId=self.bob.ask("plan.fork", planId=again, fromStep="a", sessionId="other")["planId"])["sessionId"],
                         "bob:other")
        # 64 bytes with the prefix, and one more
        self.bob.ask("session.say", sessionId="s" * 60, text="hello")
        long = self.bob.ask_raw("session.say", sessionId="s" * 61, text="hello")["error"]
        self.assertEqual(long["code"], "LIMIT")
        self.assertIn("at most 60 characters", long["message"])

    def test_who_sees_all_changes_only_its_own(self):
        for sender in (self.eve, self.rex, self.root):
            self.assertEqual(sender.ask("plan.get", planId=self.plan)["owner"], "ann")
            self.assertEqual(len(sender.ask("review.list")["reviews"]), 1)
            self.assertEqual([s["owner"] for s in sender.ask("session.list")["sessions"]], [])
        refused = self.rex.ask_raw("plan.cancel", planId=self.plan)["error"]
        self.assertEqual((refused["code"], refused["details"]["role"]), ("UNAUTHORIZED", "admin"))
        self.assertIn("ann", refused["message"])
        self.assertEqual(self.rex.ask_raw("plan.retry", planId=self.plan)["error"]["code"], "UNAUTHORIZED")
        # a submitter does not approve, not in words either
        self.assertEqual(self.ann.ask_raw("review.decide", reviewId=self.review, decision="approve")["error"]["code"], "UNAUTHORIZED")
        said = self.ann.ask("session.say", sessionId="talk", text="yes")
        self.assertIn("reviewer", said["reply"])
        self.assertEqual(len(self.ann.ask("review.list")["reviews"]), 1)
        self.assertEqual(self.rex.ask("session.list")["sessions"][0]["owner"], "ann")

    def test_the_daemon_records_who_it_was_whatever_the_client_says(self):
        self.ann.ask("plan.pause", planId=self.plan)
        self.root.ask("plan.resume", planId=self.plan)
        self.rex.ask("review.decide", reviewId=self.review, decision="approve", by={"user": "the boss", "id": "root"})
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        gone = self.ann.ask("plan.submit", plan={"steps": [step("a", requiresApproval=True)]})["planId"]
        changed = self.ann.ask("plan.modify", planId=gone, kind="insert", reasoning="more",
                               steps={"afterStepId": "a", "steps": [step("z")]})
        self.assertEqual(changed["revision"], 2)
        self.d.ask("plan.cancel", planId=gone)
        self.d.kill9()
        self.d.start(agents=False)
        by = {e["type"]: e["by"] for e in self.d.events(self.plan) if "by" in e}
        self.assertEqual([by[t].get("id") for t in ("plan_generated", "plan_paused", "plan_resumed", "review_decided")],
                         ["ann", "ann", "root", "rex"])
        self.assertEqual(by["review_decided"]["user"], "the boss")
        story = self.d.ask("plan.history", planId=self.plan)
        self.assertEqual((story["owner"], story["reviews"][0]["by"]["id"]), ("ann", "rex"))
        self.assertEqual([(o["kind"], o["by"]["id"]) for o in story["orders"]], [("pause", "ann"), ("resume", "root")])
        story = self.d.ask("plan.history", planId=gone)
        self.assertEqual([r["by"]["id"] for r in story["revisions"]], ["ann", "ann"])
        self.assertEqual([(o["kind"], o["by"]["id"]) for o in story["orders"]], [("cancel", "local")])
        self.assertIn("owner ann", self.d.cli("status", self.plan))
        told = self.d.cli("history", self.plan)
        for words in ("rex", "root"):
            self.assertIn(words, told)
        self.audited()
        # still ann's after the restart
        self.assertEqual(Sender(self.d, "bob").ask("plan.list")["plans"], [])
        self.assertEqual(len(Sender(self.d, "ann").ask("plan.list")["plans"]), 2)


    def audited(self):
        """Who was refused, decided and administered; it is on the disk, and read without a daemon."""
        Sender(self.d, "eve").ask_raw("plan.cancel", planId=self.plan)
        for n in range(200):
            if n % 10 == 0:  # more than ten refusals end a connection, within a second
                req = sp.Req(self.d.endpoints()["control"], 15)
                self.addCleanup(req.close)
            req.ask(json.dumps({"v": 1, "type": "plan.list", "id": "t", "token": "wrong"}).encode())
        Sender(self.d, "root").ask_raw("agents.drain", agentId="nobody")
        until(lambda: self.d.ask("supervisor.info") and '"kind":"suppressed"' in self.d.cli("audit", "--json").replace(" ", ""), 15, "the others are counted")
        self.d.kill9()
        lines = [json.loads(line) for line in self.d.cli("audit", "--json").splitlines()]
        found = {(e["kind"], e.get("type"), e.get("by"), e.get("outcome"), e.get("about")) for e in lines}
        for row in (("decision", "review.decide", "rex", "OK", self.review), ("admin", "agents.drain", "root", "NOT_FOUND", "nobody"),
                    ("admin", "plan.resume", "root", "OK", self.plan), ("refused", "plan.cancel", "eve", "UNAUTHORIZED", "")):
            self.assertIn(row, found)
        strangers = [e for e in lines if e["kind"] == "handshake"]
        self.assertTrue(0 < len(strangers) < 100, "not 200: they must not fill the disk")
        self.assertEqual({e["topic"] for e in lines}, {"system/audit"})
        self.assertIn("rex (reviewer)", self.d.cli("audit"))
        self.d.start(agents=False)


class As:
    """The daemon as Probe asks it, but as a credential."""

    def __init__(self, daemon, sender):
        self.daemon, self.ask, self.ask_raw = daemon, sender.ask, sender.ask_raw


class Agents(BatonTest):
    def test_an_agent_is_only_what_its_globs_allow_and_acts_only_for_its_own_instances(self):
        d = self.daemon(config="", agents=False)
        make(d, "calcs", "agent", agents=["calc", "calc-*"])
        make(d, "files", "agent", agents=["files"])
        make(d, "twin", "agent", agents=["calc"])
        calcs, files, twin = (Sender(d, i) for i in ("calcs", "files", "twin"))
        calc = Probe(As(d, calcs), "calc")
        self.addCleanup(calc.close)
        probe.wait_up(d, "calc")
        registration = {**calc.registration, "instanceId": str(uuid.uuid4()), "sessionKey": "k" * 32}
        for sender, agent_id in ((files, "calc"), (calcs, "files"), (twin, "calc-2")):
            refused = sender.ask_raw("agent.register", **{**registration, "card": probe.card(agent_id)})["error"]
            self.assertEqual(refused["code"], "UNAUTHORIZED", agent_id)
            self.assertIn(agent_id, refused["message"])
        for odd in (".", "..", "-rf", "--help"):  # whatever the globs are
            make(d, "any", "agent", agents=["*"])
            self.assertEqual(Sender(d, "any").ask_raw("agent.register", **{**registration, "card": probe.card(odd)})["error"]["code"], "INVALID")
        # a twin may be calc, too; but not that calc
        stolen = twin.ask_raw("agent.register", **{**registration, "instanceId": calc.me["instanceId"]})["error"]
        self.assertEqual(stolen["code"], "CONFLICT")
        me = {"instanceId": calc.me["instanceId"], "epoch": calc.epoch}
        for request, fields in (("agent.heartbeat", {}), ("agent.drain", {}), ("agent.deregister", {}),
                                ("step.progress", {"key": "k", "attempt": 1, "n": 1}),
                                ("step.result", {"key": "k", "attempt": 1, "outcome": "completed", "result": {"text": "666"}})):
            for sender in (twin, files):
                answer = sender.ask_raw(request, **me, **fields)
                self.assertEqual(answer.get("error", {}).get("code"), "NOT_FOUND", (request, answer))
        d.ask("plan.submit", plan={"steps": [step("a", "calc")]})
        until(lambda: calc.of("step.execute"), 15, "the true calc has the work")
        self.assertEqual([a["card"]["agentId"] for a in d.ask("agents.list")["agents"]], ["calc"])


if __name__ == "__main__":
    main()
