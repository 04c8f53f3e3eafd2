#!/usr/bin/env python3
"""Events over HTTP in the words of other systems: ?vocabulary= of a stream, and POST /v1/tasks.

What comes is held against `baton events --vocabulary` of the same plan. BATON_CUTS: how often a stream is cut at random (20);
BATON_SEED: where."""
import json
import os
import random
import time

import gateway
from acts import CONFIG, Acts, say, step
from gateway import CALC, PLAN, Events, Gateway
from harness import BatonTest, main, until
from test_gateway import key_of

NAMES = ["ai-sdk", "plan-executor", "agent-turn", "ptc-runner", "ptc-runner-telemetry", "orchestrator-log"]
FORMER = ["s000", "s001", "s002", "s003", "s003-telemetry", "s004"]


def setUpModule():
    gateway.need()


class Words(Events):
    """Its events are (id or None, object); `id` is the last one, which a client comes back with."""
    id = None

    def __iter__(self):
        data, id_ = None, None
        try:
            for line in self.answer:
                line = line.decode().rstrip("\n")
                if line.startswith("id: "):
                    id_ = int(line[4:])
                elif line.startswith("data: "):
                    data = json.loads(line[6:])
                elif line == "":
                    self.id = id_ if id_ is not None else self.id
                    if data is not None:
                        yield id_, data
                    data, id_ = None, None
        except (OSError, ValueError):
            return


def said(daemon, plan, name):
    """What `baton events --vocabulary` prints."""
    text = daemon.cli("events", plan, "--vocabulary", name, "--sse")
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


class Vocabularies(Acts):
    config = CONFIG.replace("maxFallbacks: 0", "maxFallbacks: 1")

    def setUp(self):
        super().setUp()
        self.g = Gateway(self, self.d)

    def replanned(self):
        """A plan that fails, is made anew, and ends well."""
        self.acts("a", "b")
        self.act("f", "exit 1")
        self.act("plan", say({"reuse": ["a"], "reasoning": "elsewhere", "steps": [step("b", dependsOn=["a"])]}))
        view = self.run_plan([step("a"), step("f", maxRetries=0), step("c")], goal="find a way",
                             policy={"onFailure": "replan", "replan": {"agent": "planner", "cooldownMs": 1}})
        self.assertEqual(view["status"], "completed", view)
        return self.plan

    def test_a_stream_in_other_words_is_what_the_command_prints(self):
        live = {n: Words(self.g, "/v1/events?vocabulary=" + n) for n in NAMES}
        plan = self.replanned()
        path = "/v1/plans/%s/events?vocabulary=" % plan
        seqs = [e["seq"] for e in self.d.events(plan)]
        for name, former in zip(NAMES, FORMER):
            with self.subTest(vocabulary=name):
                wanted = said(self.d, plan, name)
                self.assertGreater(len(wanted), 2)
                stream = Words(self.g, path + name)
                self.assertEqual((stream.answer.status, stream.answer.headers["Content-Type"]), (200, "text/event-stream"))
                found = list(stream)
                self.assertEqual([o for _, o in found], wanted)
                ids = [i for i, _ in found if i is not None]
                self.assertEqual(ids, sorted(set(ids)))
                self.assertLessEqual(set(ids), set(seqs))
                self.assertEqual(stream.id, seqs[-1])
                self.assertEqual(self.g.ask("GET", path + name, Accept="text/event-stream", Last_Event_ID=str(stream.id)).status, 204)
                self.assertEqual(list(Words(self.g, path + former)), found)
                now = []
                for one in live[name]:
                    now.append(one)
                    if len(now) == len(wanted):
                        break
                self.assertEqual(now, found)
                live[name].close()
        chosen = [o for _, o in Words(self.g, path + "ai-sdk&type=replan&type=complete")]
        self.assertEqual([o["type"] for o in chosen], ["replan", "complete"])

    def test_of_several_words_for_one_event_the_last_has_its_id(self):
        plan = self.replanned()
        found = list(Words(self.g, "/v1/plans/%s/events?vocabulary=agent-turn" % plan))
        starts = [i for i, (_, o) in enumerate(found) if o["type"] == "plan_step_start"]
        self.assertTrue(starts)
        for i in starts:
            self.assertEqual((found[i][0], found[i + 1][1]["type"]), (None, "tool_call"))
            self.assertIsNotNone(found[i + 1][0])

    def test_a_stream_goes_on_where_it_was_cut_with_what_was_learned_before(self):
        cuts, seed = int(os.environ.get("BATON_CUTS", "20")), int(os.environ.get("BATON_SEED", time.time_ns() % 1000000))
        rng = random.Random(seed)
        plan = self.replanned()
        for n in range(cuts):
            name = NAMES[n % len(NAMES)]
            path = "/v1/plans/%s/events?vocabulary=%s" % (plan, name)
            whole = list(Words(self.g, path))
            stream, got, at = Words(self.g, path), [], rng.randrange(1, len(whole))
            for one in stream:
                got.append(one)
                if len(got) == at:
                    break
            stream.close()
            if n % 4 == 0:
                self.g.kill9()
                self.g.start()
            while got and got[-1][0] is None:  # its event was not whole: all of it comes again
                got.pop()
            again = {"Last_Event_ID": str(stream.id)} if stream.id is not None else {}
            self.assertEqual(got + list(Words(self.g, path, **again)), whole, "%s, cut after %d, seed %d" % (name, at, seed))


class Middle(Acts):
    """Streams of all plans that begin, or go on, in the middle of plans."""
    config = CONFIG.replace("maxFallbacks: 0", "maxFallbacks: 1")

    def setUp(self):
        super().setUp()
        self.g = Gateway(self, self.d)
        self.acts("a", "b")
        self.act("w", "while [ ! -e %s/go ]; do sleep 0.05; done; echo w" % self.d.work)
        self.act("f", "exit 1")
        self.act("plan", say({"reuse": ["a", "w"], "reasoning": "elsewhere", "steps": [step("b", dependsOn=["w"])]}))

    def waiting(self, n):
        """n plans whose first step is done, and whose second waits for the file `go`."""
        steps = [step("a"), step("w", dependsOn=["a"]), step("f", maxRetries=0, dependsOn=["w"]), step("b", dependsOn=["f"])]
        policy = {"onFailure": "replan", "replan": {"agent": "planner", "cooldownMs": 1}}
        plans = [self.d.submit({"goal": "find a way", "policy": policy, "steps": steps}) for _ in range(n)]
        for plan in plans:
            until(lambda: any(e["type"] == "plan_step_started" and e["stepId"] == "w" for e in self.d.events(plan)), 20, "the second step runs")
        return plans

    def test_a_stream_of_all_plans_knows_those_that_began_before_it(self):
        plans = self.waiting(3)
        last = self.d.ask("events.read", fromSeq=1, limit=500)["lastSeq"]
        ways = {n: (Words(self.g, "/v1/events?vocabulary=" + n), Words(self.g, "/v1/events?vocabulary=" + n, Last_Event_ID=str(last))) for n in NAMES}
        (self.d.work / "go").write_text("")
        for plan in plans:
            self.d.wait_plan(plan)
        for name, streams in ways.items():
            wanted = {}
            for plan in plans:
                of_plan = list(Words(self.g, "/v1/plans/%s/events?vocabulary=%s" % (plan, name), Last_Event_ID=str(last)))
                wanted[plan] = [o for _, o in of_plan]
            for stream in streams:
                found = []
                for _, o in stream:
                    found.append(o)
                    if len(found) == sum(map(len, wanted.values())):
                        break
                stream.close()
                with self.subTest(vocabulary=name):
                    self.assertEqual(sorted(map(json.dumps, found)), sorted(json.dumps(o) for objects in wanted.values() for o in objects))


class Tasks(Acts):
    def setUp(self):
        super().setUp()
        self.g = Gateway(self, self.d)
        self.acts("a", "b")

    def test_a_task_streams_its_progress_and_ends_with_the_result(self):
        stream = Words(self.g, "/v1/tasks", body={"plan": {"steps": [step("a"), step("b")]}}, Idempotency_Key="k")
        self.assertEqual((stream.answer.status, stream.answer.headers["Content-Type"]), (200, "text/event-stream"))
        plan = stream.answer.headers["Location"].rsplit("/", 1)[1]
        found = list(stream)
        self.assertEqual([o["type"] for _, o in found], ["progress", "progress", "complete"])
        self.assertEqual([(o["completed"], o["total"]) for _, o in found[:2]], [(1, 2), (2, 2)])
        self.assertEqual([o for _, o in found], said(self.d, plan, "ai-sdk"))
        again = Words(self.g, "/v1/tasks?vocabulary=orchestrator-log", body={"plan": {"steps": [step("a"), step("b")]}}, Idempotency_Key="k")
        self.assertEqual(again.answer.headers["Location"], "/v1/plans/" + plan)
        self.assertEqual([o for _, o in again], said(self.d, plan, "orchestrator-log"))

    def test_characters_that_order_a_terminal_about_are_escaped_here_too(self):
        task = "Turn \u202eround and hide\u200b"
        plan = self.run_plan([step("a", task=task)])["planId"]
        body = self.g.ask("GET", "/v1/plans/%s/events?vocabulary=ai-sdk" % plan, Accept="text/event-stream").body.decode()
        self.assertNotRegex(body, "[\u200b\u202e]")
        self.assertEqual(json.loads(body.split("data: ")[1].splitlines()[0])["lastStep"], task)

    def test_a_task_that_fails_ends_with_the_error(self):
        self.act("f", "exit 1")
        found = [o for _, o in Words(self.g, "/v1/tasks", body={"plan": {"steps": [step("a"), step("f", maxRetries=0)]}})]
        self.assertEqual([o["type"] for o in found], ["progress", "error"])

    def test_a_task_goes_on_after_the_gateway_was_killed(self):
        self.act("b", "while [ ! -e %s/go ]; do sleep 0.05; done; echo b" % self.d.work)
        body = {"plan": {"steps": [step("a"), step("b")]}}
        stream = Words(self.g, "/v1/tasks", body=body, Idempotency_Key="k")
        first = next(iter(stream))
        self.assertEqual(first[1]["type"], "progress")
        self.g.kill9()
        (self.d.work / "go").write_text("")
        self.g.start()
        plan = stream.answer.headers["Location"].rsplit("/", 1)[1]
        ways = (Words(self.g, "/v1/tasks", body=body, Idempotency_Key="k", Last_Event_ID=str(first[0])),
                Words(self.g, "/v1/plans/%s/events?vocabulary=ai-sdk" % plan, Last_Event_ID=str(first[0])))
        for way in ways:
            self.assertEqual([first[1]] + [o for _, o in way], said(self.d, plan, "ai-sdk"))
        self.assertEqual(len(self.d.ask("plan.list")["plans"]), 1)


class Limits(BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CALC)
        self.g = Gateway(self, self.d)

    def test_what_cannot_be_translated_is_refused_before_it_begins(self):
        events, tasks = "/v1/events?vocabulary=", "/v1/tasks?vocabulary="
        for method, path, accept, status, field in (
                ("GET", events + "esperanto", "text/event-stream", 400, "vocabulary"), ("GET", events, "text/event-stream", 400, "vocabulary"),
                ("GET", events + "ai-sdk" + "k" * 100, "text/event-stream", 400, "vocabulary"),
                ("GET", events + "ai-sdk&vocabulary=s000", "text/event-stream", 400, "vocabulary"),
                ("GET", events + "ai-sdk", "application/x-ndjson", 400, "vocabulary"), ("GET", events + "ai-sdk", "application/json", 400, "vocabulary"),
                ("POST", tasks + "esperanto", "text/event-stream", 400, "vocabulary"), ("POST", tasks + "ai-sdk&vocabulary=s000", "*/*", 400, "vocabulary"),
                ("POST", "/v1/tasks?glue=1", "*/*", 400, "glue"), ("POST", "/v1/tasks", "application/json", 406, "Accept")):
            answer = self.g.ask(method, path, {"plan": PLAN} if method == "POST" else None, Accept=accept)
            self.assertEqual((answer.status, answer.json.get("field")), (status, field), (path, answer))
            if "esperanto" in path:
                self.assertIn(", ".join(NAMES), answer.json["detail"])
        self.assertEqual(self.g.ask("POST", "/v1/tasks", {"plan": {"steps": []}}).status, 400)
        self.assertEqual(self.d.ask("plan.list")["plans"], [])

    def test_so_many_are_translated_at_a_time_and_their_place_is_free_afterwards(self):
        path = "/v1/events?vocabulary=ai-sdk"
        keys = [key_of(self.d, name, "submitter") for name in ("ann", "bob", "eve")]
        held = []
        for bearer, share in ((None, 32), (keys[0], 16), (keys[1], 8)):  # as many as are free then
            mine = [Words(self.g, path, bearer=bearer) for _ in range(share)]
            self.assertEqual({w.answer.status for w in mine}, {200})
            for method, where in (("GET", path), ("POST", "/v1/tasks")):
                refused = self.g.ask(method, where, {"plan": PLAN} if method == "POST" else None, bearer=bearer, Accept="text/event-stream")
                self.assertEqual((refused.status, refused.json["code"]), (503, "BUSY"), refused)
            self.assertEqual(self.g.ask("GET", path + "x", bearer=bearer, Accept="text/event-stream").status, 503)
            held.append(mine)
        late = Words(self.g, path, bearer=keys[2])
        self.assertEqual(late.answer.status, 200, "others have left places")
        self.assertEqual(self.d.ask("plan.list")["plans"], [])
        for w in held.pop():
            w.close()
        self.d.submit(PLAN)  # what it writes to those who are gone tells it so
        again = []

        def all_taken():
            w = Words(self.g, path, bearer=keys[1])
            if w.answer.status == 200:
                again.append(w)
            return len(again) == 7  # of 15 that are free
        until(all_taken, 30, "their places are free again")
        mistaken = lambda: self.g.ask("POST", "/v1/tasks", {"plam": PLAN}, bearer=keys[1]).status == 400  # noqa: E731
        until(mistaken, 30, "the last of those who are gone has left, too")
        self.assertTrue(all(mistaken() for _ in range(3)), "a refusal takes no place")


if __name__ == "__main__":
    main()
