#!/usr/bin/env python3
"""HTTP over a fleet of several shards: requests go where their plan is, lists are of all shards, streams go on when a node is lost."""
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
import unittest
import urllib.request

import gateway
import pg
from gateway import Events, Gateway
from harness import EXEC, HERE, ROOT, main, until
from test_fleet import echo, slow
from test_shards import SHARDS, Several, shard_of, shard_of_key
from test_webhooks import NEAR, Receiver


def setUpModule():
    pg.need()
    gateway.need()


def key_of_shard(shard):
    return next("k%d" % i for i in range(1000) if shard_of_key("k%d" % i) == shard)


class Vectors(Events):
    """Its events are (id, object): the id is a vector."""

    def __iter__(self):
        id_ = None
        try:
            for line in self.answer:
                line = line.decode().rstrip("\n")
                if line.startswith("id: "):
                    id_ = line[4:]
                elif line.startswith("data: "):
                    yield id_, json.loads(line[6:])
        except (OSError, ValueError):
            return


class Words(Events):
    """In another vocabulary: its events are (id or None, object)."""

    def __iter__(self):
        data, id_ = None, None
        try:
            for line in self.answer:
                line = line.decode().rstrip("\n")
                if line.startswith("id: "):
                    id_ = line[4:]
                elif line.startswith("data: "):
                    data = json.loads(line[6:])
                elif line == "":
                    if data is not None:
                        yield id_, data
                    data, id_ = None, None
        except (OSError, ValueError):
            return


class Http(Several):
    def setUp(self):
        _, (self.one, self.two) = self.fleet()
        self.g = Gateway(self, self.one)

    def submit(self, plan, **fields):
        answer = self.g.ask("POST", "/v1/plans", {"plan": plan, **fields})
        self.assertIn(answer.status, (200, 201), answer)
        return answer.json["planId"]

    def submit_to(self, shard, plan):
        """By its key."""
        self.keys = getattr(self, "keys", 0) + 1
        key = next("%d.%d" % (self.keys, i) for i in range(10000) if shard_of_key("%d.%d" % (self.keys, i)) == shard)
        return self.submit(plan, clientKey=key)

    def ended(self, plan):
        def view():
            v = self.g.ask("GET", "/v1/plans/" + plan)
            return v.json if v.status == 200 and v.json["status"] in ("completed", "failed", "cancelled") else None
        return until(view, 60, "%s ends" % plan)

    def listed(self, path, name):
        found, cursor, missing = [], "", []
        while True:
            page = self.g.ask("GET", path + ("&cursor=" + cursor.replace("=", "%3D").replace(";", "%3B") if cursor else "")).json
            found += page[name]
            missing += page["missingShards"]
            cursor = page.get("cursor", "")
            if not cursor:
                return found, missing

    def test_a_request_goes_where_its_plan_is_and_a_list_is_of_all(self):
        plans = [self.submit(echo("n%d" % i)) for i in range(2 * SHARDS)]
        self.assertEqual({shard_of(p) for p in plans}, set(range(SHARDS)), "new plans without a key go round")
        for shard in range(SHARDS):
            plans.append(self.submit(echo("s"), sessionId=key_of_shard(shard)))
            self.assertEqual(shard_of(plans[-1]), shard)
        for plan in plans:
            self.assertEqual(self.ended(plan)["status"], "completed")
            self.assertEqual(self.g.ask("GET", "/v1/plans/%s/result" % plan).status, 200)
        lists = []
        until(lambda: lists.append(self.listed("/v1/plans?limit=1", "plans")) or not lists[-1][1], 30, "none is missing, also on a busy machine")
        self.assertEqual(sorted(p["planId"] for p in lists[-1][0]), sorted(plans))
        same = [self.g.ask("POST", "/v1/plans", {"plan": echo("once")}, Idempotency_Key="once").json["planId"] for _ in range(3)]
        self.assertEqual((len(set(same)), shard_of(same[0])), (1, shard_of_key("once")))
        self.assertEqual(self.g.ask("GET", "/v1/plans/" + "0" * 36).status, 404)
        for plan in plans[:SHARDS]:
            task = self.g.ask("POST", "/a2a", {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": plan}}).json
            self.assertEqual(task["result"]["status"]["state"], "TASK_STATE_COMPLETED", task)
        for vector in ("7", "S9=1", "S0", "S0=x", "S1=1;;"):
            for accept in ("text/event-stream", "application/json"):
                self.assertEqual(self.g.ask("GET", "/v1/events", Accept=accept, Last_Event_ID=vector).status, 400, vector)
        self.assertEqual(self.g.ask("GET", "/v1/events", Accept="text/event-stream", Last_Event_ID="S0=999999").status, 400)

    def page(self, path, timeout=30):
        answer = self.g.ask("GET", path, Accept="application/json", timeout=timeout)
        self.assertEqual(answer.status, 200, answer)
        return answer.json

    def test_pages_have_each_event_of_all_shards_once_and_name_who_is_missing(self):
        plans = [self.submit_to(i % SHARDS, echo("n%d" % i)) for i in range(8)]
        for plan in plans:
            self.ended(plan)
        cursor, got, sizes = "0", [], []

        def read(limit, more=""):
            nonlocal cursor
            page = self.page("/v1/events?limit=%d&after=%s%s" % (limit, cursor.replace("=", "%3D").replace(";", "%3B"), more))
            got.extend((e["shard"], e["seq"], e["eventId"]) for e in page["events"])
            sizes.append(len(page["events"]))
            cursor = page["cursor"]
            return page
        while read(7)["events"]:
            pass
        self.assertEqual((max(sizes), min(sizes[:-2])), (7, 7), "pages are full until the end")
        everything = sorted((s, e["seq"], e["eventId"]) for s in range(SHARDS) for e in self.events_of(s))
        self.assertEqual(sorted(got), everything)
        whole = self.page("/v1/events?limit=1000")
        self.assertEqual(sorted((e["shard"], e["seq"], e["eventId"]) for e in whole["events"]), everything)
        self.assertEqual(whole["missingShards"], [])
        self.assertEqual(len(self.page("/v1/events?limit=1")["events"]), 1)
        ends = self.page("/v1/events?type=plan_completed&limit=1000")
        self.assertEqual(sorted(e["planId"] for e in ends["events"]), sorted(plans))
        # it waits for the first event, and no longer than it was told
        begun = time.monotonic()
        self.assertEqual(read(10, "&waitMs=1000")["events"], [])
        self.assertGreaterEqual(time.monotonic() - begun, 1)
        later = threading.Timer(0.5, lambda: self.submit_to(3, echo("later")))
        later.start()
        self.assertEqual({e["shard"] for e in read(10, "&waitMs=20000")["events"]}, {3})
        later.join()
        # of a node that is lost: named, and nothing of it is left out
        lost = self.two.leads_shards()
        self.two.kill9()
        page = read(1000)
        self.assertLessEqual(set(page["missingShards"]), set(lost))
        until(lambda: all(s["here"] and s["control"] for s in self.one.map()), 30, "one serves all")
        until(lambda: read(1000)["events"] == [] and read(1000)["missingShards"] == [], 30, "all that there is")
        self.assertEqual(sorted(got), sorted((s, e["seq"], e["eventId"]) for s in range(SHARDS) for e in self.events_of(s)))

    def test_a_page_names_the_shards_that_do_not_answer(self):
        shards = self.two.leads_shards()
        plans = {s: self.submit_to(s, echo("n%d" % s)) for s in range(SHARDS)}
        for plan in plans.values():
            self.ended(plan)
        pids = [self.two.process.pid] + [int(e) for e in os.listdir("/proc") if e.isdigit() and self.two._is_mine(int(e))]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            page = self.page("/v1/events?limit=1000")
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        self.assertEqual((sorted(page["missingShards"]), {e["shard"] for e in page["events"]}), (sorted(shards), set(range(SHARDS)) - set(shards)))
        for s in shards:
            self.assertIn("S%d=0" % s, page["cursor"])

    def test_a_stream_in_other_words_has_what_the_streams_of_all_plans_have(self):
        streams = {n: Words(self.g, "/v1/events?vocabulary=" + n, timeout=30) for n in ("ai-sdk", "plan-executor", "orchestrator-log")}
        plans = [self.submit_to(i % SHARDS, echo("n%d" % i)) for i in range(8)]
        for plan in plans:
            self.ended(plan)
        for name, stream in streams.items():
            wanted = sorted(json.dumps(o) for plan in plans for _, o in Words(self.g, "/v1/plans/%s/events?vocabulary=%s" % (plan, name)))
            found, vector = [], None
            for cut in [3, 1, 2, 7, 1000]:  # cut off, it goes on from its last id
                for n, (id_, o) in enumerate(stream):
                    found.append(json.dumps(o))
                    if id_ is not None:
                        vector = id_
                    if len(found) == len(wanted) or (n >= cut and id_ is not None):
                        break
                stream.close()
                if len(found) == len(wanted):
                    break
                self.assertRegex(vector, r"^S0=\d+")
                stream = Words(self.g, "/v1/events?vocabulary=" + name, timeout=30, Last_Event_ID=vector)
            with self.subTest(vocabulary=name):
                self.assertEqual(sorted(found), wanted)

    def test_a_stream_of_a_plan_has_all_its_events_over_a_lost_node(self):
        shards = self.two.leads_shards()
        plans = {s: self.submit(slow("w%d" % s, 3), sessionId=key_of_shard(s)) for s in range(SHARDS)}
        found = {}

        def follow(shard):
            last, events = None, []
            for _ in range(60):
                try:
                    more = {"Last_Event_ID": str(last)} if last is not None else {}
                    stream = Events(self.g, "/v1/plans/%s/events" % plans[shard], **more)
                    if stream.answer.status != 200:
                        continue
                    for id_, type_, data in stream:
                        last = id_
                        events.append(data)
                        if type_ == "plan_completed":
                            found[shard] = events
                            return
                except OSError:
                    pass
        threads = [threading.Thread(target=follow, args=(s,)) for s in plans]
        for t in threads:
            t.start()
        until(lambda: len(self.one.executions()) + len(self.two.executions()) >= SHARDS, 30, "each runs")
        self.two.kill9()
        page = self.g.ask("GET", "/v1/plans")
        self.assertEqual(page.status, 200, page)
        self.assertEqual(set(page.json["missingShards"]) | set(shards), set(shards))
        for t in threads:
            t.join(100)
        for shard, plan in plans.items():
            self.ended(plan)
            events = self.g.ask("GET", "/v1/plans/%s/events" % plan, Accept="application/json").json["events"]
            upto = next(i for i, e in enumerate(events) if e["type"] == "plan_completed") + 1
            self.assertEqual([e["seq"] for e in found[shard]], [e["seq"] for e in events[:upto]], "shard %d" % shard)
        until(lambda: self.g.ask("GET", "/v1/plans").json["missingShards"] == [], 30, "nothing is missing any more")
        self.assertEqual(len(self.listed("/v1/plans?limit=2", "plans")[0]), SHARDS)

    def events_of(self, shard):
        control = next(s["control"] for s in self.one.map() if s["shard"] == shard)
        found, seq = [], 1
        while True:
            page = self.one.ask_at(control, "events.read", fromSeq=seq, limit=1000)
            found += page["events"]
            if page["nextSeq"] > page["lastSeq"]:
                return found
            seq = page["nextSeq"]

    def test_all_events_have_no_gap_and_no_double_over_cuts_and_a_lost_node(self):
        rng = random.Random(os.environ.get("BATON_SEED"))
        stop, got, cuts = threading.Event(), [], [0]

        def follow():
            vector = "0"
            while not stop.is_set():
                try:
                    stream = Vectors(self.g, "/v1/events", timeout=20, Last_Event_ID=vector)
                    if stream.answer.status != 200:
                        time.sleep(0.2)
                        continue
                    cut = rng.randrange(5, 60)
                    for n, (id_, data) in enumerate(stream):
                        got.append((data["shard"], data["seq"], data["eventId"]))
                        vector = id_
                        if n == cut or stop.is_set():
                            break
                    stream.close()
                    cuts[0] += 1
                except OSError:
                    pass
        reader = threading.Thread(target=follow)
        reader.start()
        plans = [self.submit(echo("n%d" % i)) for i in range(12)]
        until(lambda: len(got) > 50, 30, "events come")
        self.two.kill9()
        self.g.kill9()
        self.g.start()
        for i in range(12):
            until(lambda i=i: self.g.ask("POST", "/v1/plans", {"plan": echo("m%d" % i)}, Idempotency_Key="m%d" % i, timeout=60).status in (200, 201), 60, "a plan")
        for plan in plans:
            self.ended(plan)
        last = self.submit(echo("last"))
        self.ended(last)
        until(lambda: all(s["here"] and s["control"] for s in self.one.map()), 30, "one serves all")
        wanted = {(s, e["seq"], e["eventId"]) for s in range(SHARDS) for e in self.events_of(s)}
        until(lambda: wanted <= set(got), 60, lambda: "all events: %s" % sorted(wanted - set(got)))
        stop.set()
        self.submit(echo("wakes the reader"))
        reader.join(30)
        self.assertEqual(len(got), len(set(got)), "none comes twice")
        for shard in range(SHARDS):
            seqs = [seq for s, seq, _ in got if s == shard]
            self.assertEqual(seqs, list(range(1, len(seqs) + 1)), "shard %d" % shard)
        self.assertGreater(cuts[0], 3)

    def test_a_webhook_gets_each_event_of_all_shards_in_order_over_a_lost_node(self):
        self.g.process.terminate()
        self.g.process.wait(10)
        self.g.args = NEAR
        self.g.start()
        receiver = Receiver(self, self.one.work)
        self.one.cli("webhook", "put", "ops", "--url", receiver.url, "--from", "1")
        plans = [self.submit_to(i % SHARDS, echo("n%d" % i)) for i in range(8)]
        until(lambda: len(receiver.got()) > 20, 30, "events come")
        self.two.kill9()
        self.g.kill9()
        receiver.kill9()
        self.g.start()
        receiver.start()
        for i in range(8):
            until(lambda i=i: self.g.ask("POST", "/v1/plans", {"plan": echo("m%d" % i)}, Idempotency_Key="m%d" % i, timeout=60).status in (200, 201), 60, "a plan")
        for plan in plans:
            self.ended(plan)
        until(lambda: all(s["here"] and s["control"] for s in self.one.map()), 30, "one serves all")
        wanted = {e["eventId"] for s in range(SHARDS) for e in self.events_of(s)}
        until(lambda: wanted <= {x["id"] for x in receiver.got()}, 90, "each event")
        first = list(dict.fromkeys((shard_of(x["body"]["data"]["planId"]), x["body"]["data"]["seq"]) for x in receiver.got() if x["body"]["data"].get("planId")))
        for shard in range(SHARDS):
            seqs = [seq for s, seq in first if s == shard]
            self.assertEqual(seqs, sorted(seqs), "shard %d: an event was overtaken" % shard)
        text = self.g.ask("GET", "/metrics").body.decode()
        self.assertEqual(len([line for line in text.splitlines() if line.startswith("baton_webhook_delivered_total{")]), 2, "ops and push, of all shards")
        self.one.cli("webhook", "rm", "ops")
        until(lambda: not any(n.name.startswith("ops") for n in (self.one.state / "webhooks").iterdir()), 10, lambda: "its files are gone: %s\n%s" % (sorted(n.name for n in (self.one.state / "webhooks").iterdir()), self.g.log()))

    @unittest.skipUnless(shutil.which("node"), "SKIPPED: node is not installed")
    def test_the_dashboard_shows_events_of_all_shards_and_goes_on_after_a_cut(self):
        folder = self.one.work / "ui"
        folder.mkdir()
        shutil.copy(ROOT / "supervisor" / "gateway" / "ui" / "events.js", folder)
        out = folder / "out"
        with open(out, "wb") as f:
            page = subprocess.Popen(["node", HERE / "ui_events.mjs", folder, self.g.url, self.one.token(), "5"], stdin=subprocess.DEVNULL, stdout=f)
        self.addCleanup(page.wait)
        self.addCleanup(page.kill)

        def lines():
            return [json.loads(x) for x in out.read_text().splitlines()]
        until(lambda: lines() == ["again"], 20, "it has no vector yet: all is read again, and it follows")
        plans = [self.submit_to(i, echo("n%d" % i)) for i in range(SHARDS)]

        def all_told(which):
            return until(lambda: {e["planId"] for e in lines() if e != "again" and e["type"] == "plan_completed"} >= set(which), 30, lambda: lines()[-3:])
        all_told(plans)
        self.g.args = ("--listen", "127.0.0.1:%d" % self.g.port)
        self.g.kill9()
        plans += [self.one.submit(echo("m%d" % i), clientKey=key_of_shard(i)) for i in range(SHARDS)]
        for plan in plans:
            self.one.wait_plan(plan)
        self.g.start()
        all_told(plans)
        told = [(e["shard"], e["seq"]) for e in lines() if e != "again"]
        self.assertEqual((len(told), lines().count("again")), (len(set(told)), 1), "it goes on where it was")

    def test_a_webhook_begins_now_in_each_shard(self):
        self.g.process.terminate()
        self.g.process.wait(10)
        self.g.args = NEAR
        self.g.start()
        for i in range(SHARDS):
            self.ended(self.submit_to(i, echo("before")))
        receiver = Receiver(self, self.one.work)
        self.one.cli("webhook", "put", "ops", "--url", receiver.url, "--topic", "plan_completed")
        until(lambda: len(list((self.one.state / "webhooks").glob("ops*.at"))) == SHARDS, 20, "it knows where each shard is")
        after = [self.submit_to(i, echo("after")) for i in range(SHARDS)]
        until(lambda: len(receiver.got()) >= SHARDS, 30, "they come\n" + self.g.log())
        self.assertEqual(sorted(x["body"]["data"]["planId"] for x in receiver.got()), sorted(after))

        def row():
            return next(h for h in json.loads(self.one.cli("webhook", "list", "--json")) if h["name"] == "ops")
        wanted = [(s, self.events_of(s)[-1]["seq"]) for s in range(SHARDS)]
        until(lambda: [(p["shard"], p["seq"]) for p in row()["shards"]] == wanted, 20, lambda: "the place in each shard: %s" % row())
        self.assertEqual((row()["missingShards"], row()["status"]), ([], "ok"))
        self.assertIn(";".join("S%d=%d" % p for p in wanted), self.one.cli("webhook", "list"))
        receiver.say("500")
        self.ended(self.submit_to(2, echo("refused")))
        until(lambda: [p["status"] for p in row()["shards"]] == ["ok", "ok", "failing", "ok"] and row()["status"] == "failing", 20, lambda: row())
        (self.one.state / "webhooks" / "ops.S3.at").unlink()
        self.assertEqual(row()["missingShards"], [3])


class Nodes(Several):
    def test_a_node_starts_one_gateway_for_all_shards_and_again_when_it_was_killed(self):
        _, (one,) = self.fleet(names=("one",), config="agents:\n" + EXEC + "gateway: {}\n")
        file = one.state / "gateway.json"

        def pid():
            return json.loads(file.read_text()).get("pid") if file.exists() else None
        until(pid, 40, "the gateway runs\n" + one.log())
        first = pid()
        self.assertEqual([p for p in one.state.glob("shards/*/gateway.json")], [])
        os.kill(first, signal.SIGKILL)
        until(lambda: pid() not in (None, first), 30, "it runs again")
        with urllib.request.urlopen(urllib.request.Request(json.loads(file.read_text())["url"] + "/v1/plans", headers={"Authorization": "Bearer " + one.token()})) as r:
            self.assertEqual(json.loads(r.read())["missingShards"], [])
        last = pid()
        one.stop()
        until(lambda: not os.path.exists("/proc/%d" % last), 20, "it ends with its node")


if __name__ == "__main__":
    main()
