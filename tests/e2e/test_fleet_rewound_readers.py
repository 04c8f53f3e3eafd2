#!/usr/bin/env python3
"""A failover that lost acknowledged events, for those who read over HTTP, by webhooks and in NATS: none of them gets two histories mixed."""
import json
import re
import threading

import gateway
import nats
import pg
from gateway import Gateway
from harness import main, until
from nats import Bridge
from test_fleet import echo
from test_fleet_rewound import Lagging
from test_shards import SHARDS, Several, shard_of_key
from test_webhooks import NEAR, Receiver


def setUpModule():
    pg.need()
    gateway.need()


class Reader(threading.Thread):
    """Of a stream: `found` are (id, type, data) until it ends."""

    def __init__(self, g, path, accept="text/event-stream", timeout=60, **headers):
        super().__init__(daemon=True)
        self.connection = g.connection(timeout)
        self.connection.request("GET", path, None, {**g.headers(), "Accept": accept, **{k.replace("_", "-"): v for k, v in headers.items()}})
        self.answer = self.connection.getresponse()
        self.status, self.found, self.id, self.ended = self.answer.status, [], None, False
        self.lines = accept != "text/event-stream"
        self.start()

    def run(self):
        type_ = None
        try:
            for line in self.answer:
                line = line.decode().rstrip("\n")
                if self.lines and line:
                    data = json.loads(line)
                    self.found.append((None, data["type"], data))
                elif line.startswith("id: "):
                    self.id = line[4:]
                elif line.startswith("event: "):
                    type_ = line[7:]
                elif line.startswith("data: "):
                    self.found.append((self.id, type_, json.loads(line[6:])))
            self.ended = True
        except OSError:
            pass


class Http(Lagging):
    def refused(self, answer, kept):
        self.assertEqual((answer.status, answer.json["code"], answer.json["details"]["fromSeq"]), (409, "HISTORY_CHANGED", kept + 1), answer)

    def test_a_reader_over_http_is_told_and_gets_one_history(self):
        server, (one,) = self.lagging()
        g = Gateway(self, one)
        early = Reader(g, "/v1/events")
        until(lambda: early.id, 10, "where it begins, before the first event")
        self.assertRegex(early.id, r"^\d+:[0-9A-F-]{36}$")
        kept, lost = self.lose(server, one)
        old = one.events()
        cursor = {n: "%d:%s" % (n, old[n - 1]["eventId"]) for n in (kept, lost)}
        plan = next(e["planId"] for e in old if "planId" in e)
        streams = [early, Reader(g, "/v1/events?after=0"), Reader(g, "/v1/events", "application/x-ndjson")]
        lost = self.work(one, ["lost more"])
        old = one.events()
        for s in streams:
            until(lambda s=s: s.found and s.found[-1][2]["seq"] == lost, 20, "it follows")
        self.assertEqual(early.id, "%d:%s" % (lost, old[lost - 1]["eventId"]))
        self.fail_over(server)
        self.assertEqual(one.process.wait(30), 75, one.log())
        one.start()
        self.check_told(one, kept, lost)
        self.work(one, ["after%d" % i for i in range(4)])
        new = one.events()
        self.assertGreater(len(new), lost)
        # streams that were open
        for s in streams:
            s.join(60)
            self.assertTrue(s.ended)
            *events, (id_, type_, said) = s.found
            self.assertEqual((id_, type_, said), (s.id, "history_changed", {"type": "history_changed", "fromSeq": kept + 1}))
            self.assertEqual([e for _, _, e in events], old[events[0][2]["seq"] - 1:], "one history, and all of it")
        # those who come back, with the id of their last event
        for path, accept in (("/v1/events", "text/event-stream"), ("/v1/events", "application/json"), ("/v1/plans/%s/events" % plan, "text/event-stream"),
                             ("/v1/plans/%s/events" % plan, "application/json"), ("/v1/plans/%s/events?vocabulary=ai-sdk" % plan, "text/event-stream"),
                             ("/v1/events?vocabulary=ai-sdk", "text/event-stream"), ("/v1/events", "application/x-ndjson")):
            self.refused(g.ask("GET", path, Accept=accept, Last_Event_ID=cursor[max(cursor)]), kept)
            with_after = path + ("&" if "?" in path else "?") + "after=" + cursor[max(cursor)]
            self.refused(g.ask("GET", with_after, Accept=accept), kept)
        self.refused(g.ask("POST", "/v1/tasks", {"plan": echo("kept0")}, Accept="text/event-stream", Idempotency_Key="kept0", Last_Event_ID=cursor[max(cursor)]), kept)
        # and with that of an event that was kept
        for accept in ("text/event-stream", "application/x-ndjson"):
            good = Reader(g, "/v1/events?after=" + cursor[kept], accept)
            until(lambda good=good: len(good.found) >= len(new) - kept, 20, "the new history")
            self.assertEqual([e for _, _, e in good.found][:len(new) - kept], new[kept:])
        page = g.ask("GET", "/v1/events?limit=3&after=" + cursor[kept], Accept="application/json").json
        self.assertEqual((page["events"], page["lastEventId"]), (new[kept:kept + 3], new[kept + 2]["eventId"]))
        self.assertEqual(g.ask("GET", "/v1/plans/%s/events" % plan, Last_Event_ID=cursor[kept]).status, 204, "a plan that is over")
        words = Reader(g, "/v1/plans/%s/events?vocabulary=ai-sdk" % plan)
        words.join(20)
        self.assertRegex(words.id, r"^\d+(:[0-9A-F-]{36})?$")
        for wrong in ("7:x", "7:", ":" + old[0]["eventId"], "x:" + old[0]["eventId"]):
            self.assertEqual(g.ask("GET", "/v1/events", Accept="text/event-stream", Last_Event_ID=wrong).status, 400, wrong)

    def test_a_reader_that_begins_in_the_middle_gets_no_event_of_the_lost_history(self):
        """Others of the same sender follow already: what they have in hand is of before."""
        server, (one,) = self.lagging()
        g = Gateway(self, one)
        follower = Reader(g, "/v1/events?after=0")
        kept, lost = self.lose(server, one)
        until(lambda: follower.found and follower.found[-1][2]["seq"] == lost, 20, "it follows")
        self.fail_over(server)
        self.assertEqual(one.process.wait(30), 75, one.log())
        one.start()
        late = [Reader(g, "/v1/events?after=0") for _ in range(3)]
        self.check_told(one, kept, lost)
        self.work(one, ["after%d" % i for i in range(4)])
        late.append(Reader(g, "/v1/events?after=0"))
        new = one.events()
        for s in late:
            self.assertEqual(s.status, 200)
            until(lambda s=s: len(s.found) >= len(new), 20, lambda s=s: "all of the new history, after %s" % s.found[-1:])
            self.assertEqual([e for _, _, e in s.found][:len(new)], new)

    def test_a_webhook_goes_back_to_where_the_histories_part(self):
        server, (one,) = self.lagging()
        g = Gateway(self, one, *NEAR)
        receiver = Receiver(self, one.work)
        one.cli("webhook", "put", "ops", "--url", receiver.url, "--from", "1")
        kept, lost = self.lose(server, one)
        old = [e["eventId"] for e in one.events()]
        until(lambda: [x["id"] for x in receiver.got()] == old, 20, "all events")
        self.fail_over(server)
        self.assertEqual(one.process.wait(30), 75, one.log())
        g.kill9()  # where it is is in its file
        one.start()
        self.work(one, ["after%d" % i for i in range(4)])
        g.start()
        self.check_told(one, kept, lost)
        new = [e["eventId"] for e in one.events()]
        self.assertGreater(len(new), lost)
        until(lambda: receiver.got()[-1]["id"] == new[-1], 30, lambda: "the new history\n" + g.log())
        got = [x["id"] for x in receiver.got()]
        self.assertEqual(got[lost:], new[kept:], "what was read again, once")
        self.assertIn("journal_rewound", [x["body"]["type"].split(".")[-1] for x in receiver.got()])
        self.assertIn("goes on with event %d" % (kept + 1), g.log())
        text = g.ask("GET", "/metrics").body.decode()
        self.assertIn('baton_webhook_lag_events{webhook="ops"} 0', text)

    def test_a_webhook_that_works_goes_back_as_well(self):
        server, (one,) = self.lagging()
        Gateway(self, one, *NEAR)
        receiver = Receiver(self, one.work)
        one.cli("webhook", "put", "ops", "--url", receiver.url, "--from", "1")
        kept, lost = self.lose(server, one)
        until(lambda: len(receiver.got()) == lost, 20, "all events")
        self.fail_over(server)
        self.assertEqual(one.process.wait(30), 75, one.log())
        one.start()
        self.check_told(one, kept, lost)
        self.work(one, ["after%d" % i for i in range(4)])
        new = [e["eventId"] for e in one.events()]
        until(lambda: receiver.got()[-1]["id"] == new[-1], 30, "the new history")
        self.assertEqual([x["id"] for x in receiver.got()][lost:], new[kept:])

    def test_a_bridge_ends_rather_than_mix_two_histories_in_a_stream(self):
        nats.need()
        server, (one,) = self.lagging()
        stream = nats.Server(self, one.work)
        bridge = Bridge(self, one, stream)
        kept, lost = self.lose(server, one)
        old = one.events()
        nats.wait_for(stream, one)
        self.fail_over(server)
        self.assertEqual(one.process.wait(30), 75, one.log())
        one.start()
        self.assertEqual(bridge.process.wait(60), 3, bridge.log())
        self.assertIn("from event %d on" % (kept + 1), bridge.log())
        self.check_told(one, kept, lost)
        self.work(one, ["after%d" % i for i in range(4)])  # beyond the end of the stream
        for args in (("--once",), ("--status",)):
            code, _, said = bridge.run(*args)
            self.assertEqual((code, "from event %d on" % (kept + 1) in said), (3, True), said)
        with stream.client() as c:
            self.assertEqual([json.loads(body) for _, _, body in c.messages("BATON_main")], old)
        code, _, said = bridge.run("--name", "again", "--once")
        self.assertEqual(code, 0, said)
        with stream.client() as c:
            self.assertEqual([json.loads(body) for _, _, body in c.messages("BATON_again")], one.events())


class Vectors(Several):
    def test_a_reader_of_all_shards_is_told_of_which_shard(self):
        server = pg.Server(self)
        server.copy()
        server.url = "postgresql:///postgres?host=%s,%s&port=5432,5433&user=fleet" % (server.dir, server.dir)
        _, (one,) = self.fleet(names=("one",), server=server)
        g = Gateway(self, one)
        keys = {s: next("k%d" % i for i in range(1000) if shard_of_key("k%d" % i) == s) for s in range(SHARDS)}

        def work(name, shards):
            for s in shards:
                plan = until(lambda s=s: g.ask("POST", "/v1/plans", {"plan": echo(name), "sessionId": keys[s]}, Idempotency_Key="%s.%d" % (name, s)).json.get("planId"), 40,
                             "a plan")
                until(lambda plan=plan: g.ask("GET", "/v1/plans/" + plan).json.get("status") == "completed", 40, "it ends")
        work("kept", range(SHARDS))
        until(lambda: server.sql("SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()") == "1", 20, "it has all")
        kept = Reader(g, "/v1/events?after=0")
        until(lambda: sum(d.get("type") == "plan_completed" for _, _, d in kept.found) == SHARDS, 20, "it has all plans")
        server.kill9("second")
        before = kept.id
        reader = Reader(g, "/v1/events", Last_Event_ID=before)
        work("lost", [2])
        until(lambda: any(d.get("type") == "plan_completed" for _, _, d in reader.found), 20, "it follows")
        until(lambda: re.match(r"^(S\d=\d+(:[0-9A-F-]{36})?;?){%d}$" % SHARDS, reader.id or ""), 20, lambda: "a vector of all shards, not %s" % reader.id)
        vector = reader.id
        server.kill9()
        server.start("second", 5433)
        server.promote()
        reader.join(90)
        self.assertTrue(reader.ended, reader.found[-1])
        type_, said = reader.found[-1][1:]
        self.assertEqual((type_, said["shard"]), ("history_changed", 2))
        self.assertNotIn(said["fromSeq"], (0, None))
        until(lambda: all(s["here"] and s["control"] for s in one.map()), 40, "all are led")
        work("after", [2])
        again = g.ask("GET", "/v1/events", Accept="text/event-stream", Last_Event_ID=vector)
        self.assertEqual((again.status, again.json["code"], again.json["details"]["shard"], again.json["details"]["fromSeq"]),
                         (409, "HISTORY_CHANGED", 2, said["fromSeq"]), again)
        good = Reader(g, "/v1/events", Last_Event_ID=before)
        self.assertEqual(good.status, 200)
        until(lambda: any(d["shard"] == 2 and d["type"] == "plan_completed" for _, _, d in good.found), 20, "the new history")


if __name__ == "__main__":
    main()
