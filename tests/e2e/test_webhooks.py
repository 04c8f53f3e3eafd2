#!/usr/bin/env python3
"""`baton webhook` (deploy/WEBHOOKS.md): what arrives is verified by libraries of others; nothing is lost over kill -9 of gateway, receiver and daemon."""
import json
import os
import random
import subprocess
import sys
import threading
import time

import gateway
from gateway import CALC, PLAN, Gateway
from harness import HERE, ROOT, BatonTest, main, until

sys.path.insert(0, str(ROOT / "tests" / "peers"))
import peers  # noqa: E402

NEAR = ("--private", "127.0.0.1")
APPROVAL = {"steps": [{**PLAN["steps"][0], "requiresApproval": True}]}
SECRETS = ["whsec_" + "A" * 32, "whsec_" + "B" * 32]


def setUpModule():
    gateway.need()


class Receiver:
    def __init__(self, test, work):
        self.out, self.answers, self.port, self.process = work / "received", work / "answers", 0, None
        self.say("204")
        test.addCleanup(self.kill9)
        self.start()

    def start(self):
        ready, says = os.pipe()
        self.process = subprocess.Popen([sys.executable, HERE / "hook_receiver.py", str(says), str(self.port), self.out, self.answers],
                                        stdin=subprocess.DEVNULL, pass_fds=(says,))
        os.close(says)
        with os.fdopen(ready) as f:
            self.port = int(f.readline())
        self.url = "http://127.0.0.1:%d/hook" % self.port

    def say(self, status):
        self.answers.write_text(status)

    def kill9(self):
        self.process.kill()
        self.process.wait()

    def got(self):
        """The whole lines: one that a kill has cut was not answered."""
        if not self.out.exists():
            return []
        lines = []
        for line in self.out.read_bytes().split(b"\n"):
            try:
                lines.append(json.loads(line))
            except ValueError:
                pass
        return lines

    def seqs(self):
        return [x["body"]["data"]["seq"] for x in self.got() if "seq" in x["body"]["data"]]


class Webhooks(BatonTest):
    def world(self, *args):
        d = self.daemon(config=CALC)
        return d, Gateway(self, d, *(args or NEAR)), Receiver(self, d.work)

    def status(self, d, name="ops"):
        return next(h for h in json.loads(d.cli("webhook", "list", "--json")) if h["name"] == name)

    def caught_up(self, d, r, first=1, seconds=30):
        last = d.ask("supervisor.info")["lastSeq"]
        until(lambda: set(range(first, last + 1)) <= set(r.seqs()), seconds, "events up to %d; %s" % (last, self.status(d)))
        return last

    def test_libraries_of_others_verify_and_read_what_arrives(self):
        for package in ("cloudevents", "standardwebhooks"):
            peers.need(package)
        d = self.daemon(config=CALC)
        g = Gateway(self, d, *NEAR)
        secret, out = d.work / "secret", d.work / "got"
        secret.write_text("\n".join(SECRETS))
        secret.chmod(0o600)
        node = peers.Node("webhook.mjs", peers.DIR, out, *SECRETS)   # both secrets must verify: one takes the place of the other
        self.addCleanup(node.close)
        url = "http://127.0.0.1:%d/hook" % node.port

        def lines():
            return [json.loads(x) for x in out.read_text().splitlines()] if out.exists() else []
        d.cli("webhook", "put", "ops", "--url", url, "--topic", "plan_*", "--secret-file", secret)
        self.assertIn("status 204", d.cli("webhook", "test", "ops"))
        plan = d.submit(APPROVAL)
        asked = until(lambda: [x for x in lines() if x["event"]["type"] == "baton.plan_step_waiting"], 20, "the review")[0]["event"]
        page = asked["reviewurl"].partition("/#/")[0]
        self.assertEqual(page, g.url)
        self.assertEqual(g.ask("GET", "/", Authorization=None).status, 200)           # the page comes, and shows nothing of it,
        review = "/v1/reviews/" + asked["reviewurl"].rpartition("/")[2]
        self.assertEqual(g.ask("GET", review, Authorization=None).status, 401)         # before somebody logs in
        self.assertEqual(g.ask("POST", review + "/decide", {"decision": "approve"}, Authorization=None).status, 401)
        self.assertEqual(g.ask("GET", review).status, 200)
        d.cli("approve", plan)
        d.wait_plan(plan)
        done = until(lambda: [x for x in lines() if x["event"]["type"] == "baton.plan_completed"], 20, "the end")[0]
        self.assertEqual([x["verified"] for x in lines()], [2] * len(lines()), lines())
        event = done["event"]
        self.assertEqual((event["specversion"], event["subject"], event["data"]["type"], event["id"]), ("1.0", plan, "plan_completed", event["data"]["eventId"]))
        self.assertEqual(done["headers"]["webhook-id"], event["id"])
        for x in lines()[1:]:
            self.assertTrue(x["event"]["data"]["type"].startswith("plan_"), x)
        secret.write_text(SECRETS[1])                                                  # the old one is gone: the receiver refuses
        told = d.cli_any("webhook", "test", "ops")
        self.assertEqual(told.returncode, 3, told)
        self.assertIn("status 401", told.stderr)

    def test_chat_and_mail_get_text_and_secrets_are_never_shown(self):
        d, g, r = self.world()
        d.cli("webhook", "put", "chat", "--url", r.url, "--topic", "plan_completed", "--body", "chat")
        secret = (d.state / "webhooks" / "chat.secret").read_text().strip()
        self.assertEqual((d.state / "webhooks" / "chat.secret").stat().st_mode & 0o777, 0o600)
        plan = d.submit(PLAN)
        body = until(lambda: r.got(), 20, "the text")[0]["body"]
        self.assertTrue(body["text"].startswith("plan completed\nplanId: " + plan), body)
        d.cli("webhook", "put", "chat", "--body", "mail")
        d.cli("webhook", "test", "chat")                              # the gateway has read it
        self.assertEqual(r.got()[-1]["body"], {"subject": "Baton: webhook test", "text": "webhook test"})
        d.wait_plan(d.submit(PLAN))
        until(lambda: [x for x in r.got() if x["body"].get("subject") == "Baton: plan completed"], 20, "the mail")
        shown = d.cli("webhook", "list") + d.cli("webhook", "list", "--json") + d.cli("webhook", "test", "chat") + g.log() + d.log()
        self.assertNotIn(secret, shown)
        self.assertNotIn(secret[6:], shown)

    def test_what_fails_is_tried_again_in_order_then_parked_and_sent_again(self):
        d, g, r = self.world()
        d.cli("webhook", "put", "ops", "--url", r.url, "--from", "1")
        self.caught_up(d, r)
        r.say("500")
        d.wait_plan(d.submit(PLAN))
        until(lambda: self.status(d)["status"] == "failing", 20, "a failure")
        self.assertIn("status 500", self.status(d)["reason"])
        failed = self.status(d)["seq"] + 1
        until(lambda: r.seqs().count(failed) >= 2, 20, "another try")
        self.assertNotIn(failed + 1, r.seqs())                       # nothing overtakes it
        g.kill9()
        r.say("410")                                                 # gone
        g.start()
        until(lambda: self.status(d)["status"] == "parked", 20, "the end of tries")
        tries = len(r.got())
        r.say("204")
        d.cli("webhook", "test", "ops")                              # this goes out, and the event does not
        self.assertEqual([x["body"]["type"] for x in r.got()[tries:]], ["baton.webhook_test"])
        d.cli("webhook", "resend", "ops")
        self.caught_up(d, r)
        self.assertEqual(self.status(d)["status"], "ok")
        before = len(r.got())
        d.cli("webhook", "resend", "ops", "--from", "1")
        until(lambda: 1 in r.seqs()[before - 1:], 20, "the first one again")
        d.cli("webhook", "rm", "ops")
        self.assertEqual(list((d.state / "webhooks").glob("ops.json")), [])
        self.assertEqual(d.cli_any("webhook", "resend", "ops").returncode, 7)

    def test_over_http_they_are_listed_and_sent_again_as_by_the_command(self):
        d, g, r = self.world()
        r.say("410")
        d.cli("webhook", "put", "ops", "--url", r.url, "--from", "1", "--topic", "plan_*")
        d.cli("webhook", "put", "other", "--url", "https://x.invalid/", "--secret-env", "NO_SUCH")
        (d.state / "webhooks" / "torn.json").write_text("{")
        d.wait_plan(d.submit(PLAN))

        def listed(query=""):
            answer = g.ask("GET", "/v1/webhooks" + query)
            self.assertEqual(answer.status, 200, answer)
            self.assertNotIn("secretFile", answer.body.decode())
            self.assertNotIn((d.state / "webhooks" / "ops.secret").read_text().strip()[6:], answer.body.decode())
            return answer.json
        parked = until(lambda: [h for h in listed()["webhooks"] if h["status"] == "parked"], 20, "the end of tries")[0]
        self.assertEqual({k: parked.get(k) for k in ("name", "status", "seq", "tries", "reason", "url", "body", "topics")},
                         {k: self.status(d).get(k) for k in ("name", "status", "seq", "tries", "reason", "url", "body", "topics")})
        self.assertIn("410", parked["reason"])
        self.assertEqual([(h["name"], h["status"]) for h in listed()["webhooks"]][::2], [("ops", "parked"), ("torn", "unreadable")])
        first = listed("?limit=1")
        self.assertEqual(([h["name"] for h in first["webhooks"]], [h["name"] for h in listed("?limit=2&after=" + first["after"])["webhooks"]]), (["ops"], ["other", "torn"]))
        self.assertNotIn("after", listed("?limit=2&after=ops"))
        self.assertEqual([g.ask("GET", "/v1/webhooks?limit=%d" % n).status for n in (100, 101)], [200, 400])
        r.say("204")
        tries = len(r.got())
        tested = g.ask("POST", "/v1/webhooks/ops/test")
        self.assertEqual((tested.status, tested.json["name"]), (200, "ops"), tested)
        [done] = until(lambda: [h for h in listed()["webhooks"] if h.get("tested") == tested.json["order"]], 20, "the test")
        self.assertEqual((done["testStatus"], done["status"]), (204, "parked"))
        self.assertEqual([x["body"]["type"] for x in r.got()[tries:]], ["baton.webhook_test"])
        again = g.ask("POST", "/v1/webhooks/ops/resend")
        self.assertEqual(again.status, 200, again)
        [ok] = until(lambda: [h for h in listed()["webhooks"] if h["name"] == "ops" and h["status"] == "ok" and h["seq"] > parked["seq"]], 20, "it goes on")
        self.assertEqual((ok["tries"], ok.get("reason")), (0, None), ok)
        until(lambda: parked["seq"] + 1 in r.seqs(), 20, "the event that failed")
        before = len(r.got())
        self.assertEqual(g.ask("POST", "/v1/webhooks/ops/resend", {"fromSeq": 1}).status, 200)
        until(lambda: parked["seq"] + 1 in [x["body"]["data"].get("seq") for x in r.got()[before:]], 20, "the first one again")
        for path in ("none/resend", "none/test"):
            self.assertEqual(g.ask("POST", "/v1/webhooks/" + path).status, 404, path)
        for path in ("torn/resend", "..%2fops/resend", "OPS/test"):
            self.assertIn(g.ask("POST", "/v1/webhooks/" + path).status, (400, 404), path)
        file = d.state / "webhooks" / "other.json"
        spec = file.read_text().ljust(32768)
        for text, status in ((spec + " ", 413), (spec, 200)):
            file.write_text(text)
            answer = g.ask("POST", "/v1/webhooks/other/test")
            self.assertEqual(answer.status, status, answer)
            self.assertEqual("has more than 32768 bytes" in answer.body.decode(), status != 200, answer)
        self.assertEqual((d.state / "webhooks" / "torn.json").read_text(), "{")
        self.assertEqual(json.loads((d.state / "webhooks" / "ops.json").read_text())["secretFile"], str(d.state / "webhooks" / "ops.secret"))
        self.assertEqual((d.state / "webhooks" / "ops.json").stat().st_mode & 0o777, 0o600)

    def test_private_addresses_are_reached_only_when_they_are_listed(self):
        d, _, r = self.world("--private", "10.0.0.0/8")
        for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "0x7f.1"):
            d.cli("webhook", "put", "ops", "--url", "http://%s:%d/hook" % (host, r.port), "--from", "1")
            told = d.cli_any("webhook", "test", "ops")
            self.assertEqual(told.returncode, 3, (host, told))
            self.assertIn("private", told.stderr, host)
        self.assertEqual(r.got(), [])

    def test_what_is_wrong_is_named(self):
        d = self.daemon(config="", agents=False)
        open_ = d.work / "open"
        open_.write_text(SECRETS[0])
        open_.chmod(0o644)
        url = "https://x.example"
        for args, words in (((), "webhook"), (("put", "Ops", "--url", url), "a-z"), (("put", "x" * 65, "--url", url), "1 to 64"), (("put", "ops"), "--url"),
                            (("put", "ops", "--url", "ftp://x"), "--url"), (("put", "ops", "--url", "https://ann:pw@x/"), "password"),
                            (("put", "ops", "--url", url, "--body", "xml"), "cloudevents"), (("put", "ops", "--url", url, "--secret-file", open_), "chmod 600"),
                            (("put", "ops", "--url", url, "--secret-file", open_, "--secret-env", "X"), "not both"),
                            (("put", "ops", "--url", url, *sum((["--topic", "a"] for _ in range(17)), [])), "at most 16"),
                            (("put", "../x", "--url", url), "a-z"), (("list", "x"), "usage"), (("sing", "x"), "put"), (("test",), "usage")):
            told = d.cli_any("webhook", *args)
            self.assertEqual(told.returncode, 2, (args, told))
            self.assertIn(words, told.stderr, args)
        for args in (("test", "none"), ("resend", "none"), ("rm", "none")):
            self.assertEqual(d.cli_any("webhook", *args).returncode, 7, args)
        self.assertEqual(json.loads(d.cli("webhook", "list", "--json")), [])

    def test_what_is_taken_out_while_it_sends_leaves_no_file(self):
        d, g, receiver = self.world()
        for _ in range(30):
            d.submit(PLAN)
        for n in range(6):
            before = len(receiver.got())
            d.cli("webhook", "put", "ops", "--url", receiver.url, "--from", "1")
            until(lambda before=before: len(receiver.got()) > before, 10, "it sends\n" + g.log())
            d.cli("webhook", "rm", "ops")
            time.sleep(0.8)  # a scan and a write
            self.assertEqual([p.name for p in (d.state / "webhooks").glob("ops*")], [], "time %d" % n)

    def test_files_that_are_no_webhooks_harm_nobody(self):
        d, g, r = self.world()
        folder = d.state / "webhooks"
        folder.mkdir(mode=0o700)
        for name, text in (("a", "{"), ("b", "[]"), ("c", '{"url":7}'), ("d", "\x00" * 100), ("e", "9" * 40000), ("f", "[" * 30000), ("g", '{"url":"http://x","secretEnv":"NO_SUCH_VARIABLE"}')):
            (folder / (name + ".json")).write_text(text)
        (folder / "BIG.json").write_text("{}")
        (folder / "dir.json").mkdir()
        os.mkfifo(folder / "pipe.json")
        d.cli("webhook", "put", "ops", "--url", r.url, "--from", "1")
        (folder / "ops.at").write_text('{"seq":"x","made":[]}')
        self.caught_up(d, r)
        self.assertEqual(g.ask("GET", "/v1/info").status, 200)

    def test_nothing_is_lost_and_nothing_overtakes_over_kills_at_random(self):
        kills = int(os.environ.get("BATON_KILLS", "30"))
        seed = int(os.environ.get("BATON_SEED", time.time_ns() % 1000000))
        rng = random.Random(seed)
        d, g, r = self.world()
        d.cli("webhook", "put", "ops", "--url", r.url, "--from", "1")
        stop, lock = threading.Event(), threading.Lock()

        def feed():
            while not stop.wait(0.05):
                with lock:
                    try:
                        d.submit(PLAN)
                    except (OSError, EOFError, AssertionError, ValueError):
                        pass
        feeder = threading.Thread(target=feed)
        feeder.start()
        self.addCleanup(feeder.join)
        self.addCleanup(stop.set)
        done = {"gateway": 0, "receiver": 0, "daemon": 0}
        for _ in range(kills):
            stop.wait(rng.random() * 0.6)
            how = rng.choice(["gateway", "gateway", "receiver", "receiver", "daemon"])
            done[how] += 1
            if how == "receiver":
                r.kill9()
                r.start()
            elif how == "gateway":
                g.kill9()
                g.start()
            else:
                with lock:
                    d.kill9()
                    d.start(agents=False)
        stop.set()
        feeder.join()
        d.wait_agents()
        last = self.caught_up(d, r, seconds=120)
        seqs = r.seqs()
        first_seen = list(dict.fromkeys(seqs))
        self.assertEqual(first_seen, list(range(1, len(first_seen) + 1)), "seed %d %s" % (seed, done))  # no gap, and nothing overtakes, of any plan
        self.assertGreaterEqual(len(first_seen), last)
        ids = {}
        for x in r.got():
            ids.setdefault(x["id"], set()).add(x["body"]["data"]["seq"])
        self.assertTrue(all(len(s) == 1 for s in ids.values()))       # who gets one twice knows it by its id
        print("kills", done, "events", last, "received", len(seqs), "seed", seed)


if __name__ == "__main__":
    main()
