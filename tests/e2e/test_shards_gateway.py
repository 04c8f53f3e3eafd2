#!/usr/bin/env python3
"""HTTP over a fleet of several shards: requests go where their plan is, lists are of all shards, streams go on when a node is lost."""
import threading

import gateway
import pg
from gateway import Events, Gateway
from harness import main, until
from test_fleet import echo, slow
from test_shards import SHARDS, Fleets, shard_of, shard_of_key


def setUpModule():
    pg.need()
    gateway.need()


def key_of_shard(shard):
    return next("k%d" % i for i in range(1000) if shard_of_key("k%d" % i) == shard)


class Http(Fleets):
    def setUp(self):
        _, (self.one, self.two) = self.fleet()
        self.g = Gateway(self, self.one)

    def submit(self, plan, **fields):
        answer = self.g.ask("POST", "/v1/plans", {"plan": plan, **fields})
        self.assertEqual(answer.status, 201 if answer.status == 201 else 200, answer)
        return answer.json["planId"]

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
        found, missing = self.listed("/v1/plans?limit=1", "plans")
        self.assertEqual((sorted(p["planId"] for p in found), missing), (sorted(plans), []))
        same = [self.g.ask("POST", "/v1/plans", {"plan": echo("once")}, Idempotency_Key="once").json["planId"] for _ in range(3)]
        self.assertEqual((len(set(same)), shard_of(same[0])), (1, shard_of_key("once")))
        self.assertEqual(self.g.ask("GET", "/v1/plans/%s" % "0" * 36).status, 404)
        self.assertEqual(self.g.ask("GET", "/v1/events", Accept="text/event-stream").status, 501)

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


if __name__ == "__main__":
    main()
