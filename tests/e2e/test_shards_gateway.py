#!/usr/bin/env python3
"""HTTP over a fleet of several shards: requests go where their plan is, lists are of all shards, streams go on when a node is lost."""
import json
import os
import random
import signal
import threading
import time
import urllib.request

import gateway
import pg
from gateway import Events, Gateway
from harness import EXEC, main, until
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
        for path, more in (("/v1/events", {"Accept": "application/json"}), ("/v1/events?vocabulary=ai-sdk", {"Accept": "text/event-stream"})):
            self.assertEqual(self.g.ask("GET", path, **more).status, 501)
        for vector in ("7", "S9=1", "S0", "S0=x", "S1=1;;"):
            self.assertEqual(self.g.ask("GET", "/v1/events", Accept="text/event-stream", Last_Event_ID=vector).status, 400, vector)
        self.assertEqual(self.g.ask("GET", "/v1/events", Accept="text/event-stream", Last_Event_ID="S0=999999").status, 400)

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
