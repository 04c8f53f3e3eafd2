"""Schedules: plans that begin by the clock, on real daemons."""
import datetime
import json
import os
import random
import time
import unittest

from harness import BatonTest, main, until
from probe import Probe, step, wait_up

UTC = datetime.timezone.utc


def stamp(seconds):
    return datetime.datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Schedules(BatonTest):
    def setUp(self):
        super().setUp()
        self.d = self.daemon(config="", agents=False)
        self.result = {"outcome": "completed", "result": {"text": "done"}}
        self.probe = self.agent()

    def agent(self):
        p = Probe(self.d, "probe", work=lambda r: self.result, capacity=8)
        self.addCleanup(p.close)
        wait_up(self.d, "probe")
        return p

    def put(self, name="s", plan=None, **fields):
        if not {"cron", "everyMs", "at"} & set(fields):
            fields["everyMs"] = 1000
        return self.d.ask("schedule.put", name=name, plan=plan or {"goal": "tick", "steps": [step("a")]}, **fields)

    def get(self, name="s", **fields):
        return self.d.ask("schedule.get", name=name, **fields)["schedule"]

    def refused(self, kind, **fields):
        answer = self.d.ask_raw(kind, **fields)
        self.assertFalse(answer["ok"], answer)
        return answer["error"]["code"], answer["error"]["message"]

    def fired(self, name="s"):
        return [e for e in self.d.events() if e["type"] == "schedule_fired" and e["name"] == name]

    def skipped(self, name="s"):
        return [e for e in self.d.events() if e["type"] == "schedule_skipped" and e["name"] == name]


class Fires(Schedules):
    def test_each_time_is_one_plan_that_says_where_it_comes_from(self):
        put = self.put(overlap="allow")
        self.assertEqual((put["status"], len(put["next"]), put["tz"]), ("active", 5, "UTC"))
        until(lambda: len(self.fired()) >= 3, 15, "three fires")
        self.d.ask("schedule.pause", name="s", reason="enough")
        fired = self.fired()
        times = [e["scheduledFor"] for e in fired]
        self.assertEqual(len(set(times)), len(times))
        for e in fired:
            view = self.d.wait_plan(e["firedPlanId"])
            self.assertEqual((view["status"], view["schedule"], view["scheduledFor"]), ("completed", "s", e["scheduledFor"]))
            self.assertLess(e["seq"] - [x for x in self.d.events(e["firedPlanId"])][0]["seq"], 10)
        view = self.get()
        self.assertEqual((view["status"], view["reason"], view["fired"], view["lastPlanId"], view["openPlans"] if "openPlans" in view else 0),
                         ("paused", "enough", len(fired), fired[-1]["firedPlanId"], 0))
        (paused,) = [e for e in self.d.events() if e["type"] == "schedule_paused"]
        self.assertEqual((paused["name"], paused["kind"], paused["reason"]), ("s", "person", "enough"))
        resumed = self.d.ask("schedule.resume", name="s")
        self.assertEqual(resumed["status"], "active")
        until(lambda: len(self.fired()) > len(fired), 15, "it goes on")
        self.assertGreater(self.fired()[len(fired)]["scheduledFor"], paused["timestamp"][:19])

    def test_at_fires_once_and_has_ended(self):
        at = stamp(int(time.time()) + 2)
        put = self.put(at=at)
        self.assertEqual(put["next"], [at])
        until(lambda: self.get()["status"] == "ended", 15, "its end")
        (fired,) = self.fired()
        self.assertEqual(fired["scheduledFor"], at)
        self.assertNotIn("next", self.get())

    def test_a_recipe_gets_its_inputs_and_the_time_that_it_is_for(self):
        recipe = {"recipe": {"name": "r"}, "inputs": {"type": "object", "properties": {"time": {"type": "string"}, "who": {"type": "string"}},
                                                      "required": ["time", "who"]},
                  "steps": [{**step("a"), "task": "report for {{inputs.time}} to {{inputs.who}}"}]}
        code, text = self.refused("schedule.put", name="s", plan=recipe, cron="@daily", inputs={"time": "{{schedule.time}}"})
        self.assertEqual(code, "INVALID")
        self.assertIn("who", text)
        given = {"who": "ann of {{schedule.date}}", "time": "{{schedule.time}}"}
        self.put(plan=recipe, inputs=given, tz="Asia/Kathmandu", overlap="allow")
        until(lambda: self.fired(), 15, "a fire")
        self.d.ask("schedule.pause", name="s")
        at = self.fired()[0]["scheduledFor"]
        local = datetime.datetime.fromisoformat(at.replace("Z", "+00:00")).astimezone(datetime.timezone(datetime.timedelta(hours=5, minutes=45)))
        until(lambda: self.probe.of("step.execute"), 15, "a step")
        self.assertEqual(self.probe.of("step.execute")[0]["task"], "report for %s to ann of %s" % (local.isoformat(), local.date()))
        kept = self.get(document=True)
        self.assertEqual((kept["plan"], kept["inputs"]), (recipe, given))

    def test_trigger_makes_a_plan_now_once_for_each_key(self):
        self.put(cron="0 0 1 1 *")
        first = self.d.ask("schedule.trigger", name="s", clientKey="k")
        again = self.d.ask("schedule.trigger", name="s", clientKey="k")
        self.assertEqual((again["planId"], again["existing"]), (first["planId"], True))
        self.d.wait_plan(first["planId"])
        other = self.d.ask("schedule.trigger", name="s")
        self.assertNotEqual(other["planId"], first["planId"])
        view = self.d.wait_plan(other["planId"])
        self.assertEqual((view["schedule"], "scheduledFor" in view), ("s", False))
        self.assertEqual([e["kind"] for e in self.fired()], ["trigger", "trigger"])

    def test_backfill_makes_the_plans_of_times_that_have_passed_once(self):
        self.put(cron="0 * * * *", overlap="queue")
        got = self.d.ask("schedule.backfill", name="s", **{"from": "2026-03-01T00:00", "to": "2026-03-01T05:00"})
        self.assertEqual((got["times"], got["first"], got["last"]), (6, "2026-03-01T00:00:00Z", "2026-03-01T05:00:00Z"))
        until(lambda: len(self.fired()) == 6, 20, "six plans")
        self.assertEqual([e["scheduledFor"] for e in self.fired()], ["2026-03-01T0%d:00:00Z" % h for h in range(6)])
        until(lambda: "backfillTo" not in self.get(), 10, "the end of it")
        self.d.ask("schedule.backfill", name="s", **{"from": "2026-03-01T04:00", "to": "2026-03-01T06:00"})
        until(lambda: len(self.fired()) == 7, 20, "one more")
        until(lambda: "backfillTo" not in self.get(), 10, "the end of it")
        self.assertEqual(self.fired()[-1]["scheduledFor"], "2026-03-01T06:00:00Z")
        self.assertEqual({e["kind"] for e in self.fired()}, {"backfill"})
        code, text = self.refused("schedule.backfill", name="s", **{"from": "2020-01-01", "to": "2020-02-12"})
        self.assertEqual(code, "LIMIT")
        self.assertIn("1000", text)
        got = self.d.ask("schedule.backfill", name="s", **{"from": "2020-01-01", "to": "2020-02-11T15:00"})  # 41 * 24 + 16
        self.assertEqual(got["times"], 1000)
        self.d.ask("schedule.delete", name="s")


class Overlap(Schedules):
    def setUp(self):
        super().setUp()
        self.result = None  # the plan stays open

    def test_skip_lets_times_pass_while_a_plan_is_open(self):
        self.put(overlap="skip")
        until(lambda: self.skipped(), 15, "a skipped time")
        (fired,) = self.fired()
        self.assertEqual(self.skipped()[0]["kind"], "overlap")
        self.assertEqual(self.refused("schedule.trigger", name="s")[0], "CONFLICT")
        self.d.ask("plan.cancel", planId=fired["firedPlanId"])
        until(lambda: len(self.fired()) == 2, 15, "the next plan")

    def test_queue_runs_every_time_after_the_other(self):
        self.put(overlap="queue")
        until(lambda: self.fired(), 15, "a fire")
        time_of = [self.fired()[0]["scheduledFor"]]
        until(lambda: time.time() > datetime.datetime.fromisoformat(time_of[0].replace("Z", "+00:00")).timestamp() + 4, 15, "times to pass")
        self.assertEqual(len(self.fired()), 1)
        self.d.ask("plan.cancel", planId=self.fired()[0]["firedPlanId"])
        until(lambda: len(self.fired()) == 2, 15, "the next of the queue")
        first, second = (datetime.datetime.fromisoformat(e["scheduledFor"].replace("Z", "+00:00")) for e in self.fired())
        self.assertEqual((second - first).total_seconds(), 1)
        self.assertEqual(self.skipped(), [])

    def test_cancel_ends_the_open_plan_before_the_next_begins(self):
        self.put(overlap="cancel")
        until(lambda: len(self.fired()) >= 3, 20, "three plans")
        for e in self.fired()[:2]:
            self.assertEqual(self.d.wait_plan(e["firedPlanId"])["status"], "cancelled")

    def test_allow_runs_them_beside_each_other(self):
        self.put(overlap="allow")
        until(lambda: self.get().get("openPlans", 0) >= 3, 15, "three open plans")
        self.d.kill9()
        self.d.start(agents=False)
        self.assertGreaterEqual(self.get()["openPlans"], 3)


class Failures(Schedules):
    def test_too_many_failures_in_a_row_pause_it_with_the_reason(self):
        self.result = {"outcome": "failed", "failure": {"code": "INVALID", "class": "VALIDATION_ERROR", "message": "no"}}
        self.put(plan={"steps": [step("a", maxRetries=0)]}, maxFailures=2)
        view = until(lambda: (lambda v: v if v["status"] == "paused" else None)(self.get()), 20, "a pause")
        self.assertEqual((view["failures"], view["fired"]), (2, 2))
        self.assertIn("2 plans failed in a row", view["reason"])
        self.d.kill9()
        self.d.start(agents=False)
        self.assertEqual((self.get()["status"], self.get()["reason"]), ("paused", view["reason"]))

    def test_bad_puts_name_the_place_and_what_would_be_right(self):
        plan = {"steps": [step("a")]}
        for fields, words in [
                ({"cron": "0 3 * *"}, ["4 fields", "expected five"]),
                ({"cron": "0 25 * * *"}, ["field 2 (hour)", "character 3", "'25'", "0 to 23"]),
                ({"cron": "0 3 * foo *"}, ["field 4 (month)", "jan to dec"]),
                ({"cron": "5/15 * * * *"}, ["no range", "5-59/15" if False else "FIRST-59/N"]),
                ({"cron": "0 0 30 2 *"}, ["no year has"]),
                ({"cron": "@reboot"}, ["@reboot is no time"]),
                ({"cron": "@daily", "tz": "Europe/Belin"}, ["tz:", "did you mean Europe/Berlin?"]),
                ({"cron": "@daily", "tz": "berlin"}, ["Europe/Berlin"]),
                ({"cron": "@daily", "tz": "../etc/passwd"}, ["no time zone"]),
                ({"cron": "@daily", "everyMs": 5000}, ["one of cron, everyMs and at"]),
                ({}, ["got none"]),
                ({"everyMs": 999}, ["999", "1000"]),
                ({"at": "2020-01-01T00:00"}, ["has passed"]),
                ({"at": "tomorrow"}, ["at: ", "2026-11-30T03:00"]),
                ({"cron": "@daily", "overlap": "no"}, ["skip, queue, cancel or allow"]),
                ({"cron": "@daily", "catchUpMs": 9999}, ["9999", "10000"]),
                ({"cron": "* * * * *", "jitterMs": 60000}, ["jitterMs", "less than 60000"]),
                ({"cron": "@daily", "endAt": "2020-01-01"}, ["endAt"]),
                ({"cron": "@daily", "inputs": {"x": 1}}, ["inputs"]),
                ({"cron": "@daily", "goal": "also"}, ["both"])]:
            with self.subTest(fields):
                code, text = self.refused("schedule.put", name="s", plan=plan, **fields)
                self.assertEqual(code, "INVALID", text)
                for w in words:
                    self.assertIn(w, text)
        self.put(cron="* * * * *", jitterMs=59999)  # one less than the time between two
        self.put(everyMs=1000, catchUpMs=10000)
        for name in ("", "-x", "a b", "x" * 65):
            self.assertIn(self.refused("schedule.put", name=name, plan=plan, cron="@daily")[0], ("INVALID", "LIMIT"))
        code, text = self.refused("schedule.put", name="t", plan={"steps": [step("a", "nobody")]}, cron="@daily")
        self.assertEqual(code, "INVALID")
        self.assertIn("nobody", text)
        self.assertEqual(self.refused("plan.submit", plan=plan, clientKey="schedule/s/x")[0], "INVALID")
        self.assertEqual(self.refused("schedule.get", name="nix")[0], "NOT_FOUND")

    def test_the_same_put_changes_nothing(self):
        self.assertNotIn("existing", self.put(cron="@daily", clientKey="k1"))
        self.assertTrue(self.put(cron="@daily", clientKey="k1")["existing"])
        self.assertTrue(self.put(cron="@daily")["existing"])
        self.assertTrue(self.put(cron="@hourly", clientKey="k2")["replaced"])
        self.assertTrue(self.put(cron="@daily", clientKey="k1")["existing"])  # an answer was lost, and the request comes late
        self.assertEqual(self.get()["cron"], "@hourly")
        code, _ = self.refused("schedule.put", name="s", cron="@weekly", plan={"steps": [step("a")]}, clientKey="k1")
        self.assertEqual(code, "CONFLICT")
        self.d.kill9()
        self.d.start(agents=False)
        self.assertTrue(self.put(cron="@daily", clientKey="k1")["existing"])
        self.assertEqual([s["name"] for s in self.d.ask("schedule.list")["schedules"]], ["s"])
        self.d.ask("schedule.delete", name="s")
        self.assertEqual(self.d.ask("schedule.list")["schedules"], [])


class Kills(Schedules):
    def test_every_second_fires_once_over_kills_of_the_daemon(self):
        seed = int(os.environ.get("BATON_SEED", random.randrange(1 << 32)))
        rng = random.Random(seed)
        self.put(overlap="allow")
        until(lambda: self.fired(), 15, "a fire")
        for _ in range(int(os.environ.get("BATON_KILLS", "20"))):
            # around the second, at which plans are made
            at = int(time.time()) + 1 + rng.uniform(-0.02, 0.12)
            until(lambda: time.time() >= at, 5, "the moment")
            self.d.kill9()
            self.probe.close()  # its threads would go on and register, too
            self.d.start(agents=False)
            self.probe = self.agent()
        n = len(self.fired())
        until(lambda: len(self.fired()) > n + 1, 20, "it goes on")
        self.d.ask("schedule.pause", name="s")
        fired = self.fired()
        seconds = [int(datetime.datetime.fromisoformat(e["scheduledFor"].replace("Z", "+00:00")).timestamp()) for e in fired]
        self.assertEqual(seconds, list(range(seconds[0], seconds[-1] + 1)), "seed %d" % seed)
        self.assertEqual(len({e["firedPlanId"] for e in fired}), len(fired))
        self.assertEqual(self.skipped(), [])
        started = [e["planId"] for e in self.d.events() if e["type"] == "plan_started"]
        self.assertEqual(sorted(started), sorted(e["firedPlanId"] for e in fired), "seed %d" % seed)


class Kept(Schedules):
    def test_an_export_brings_schedules_to_another_daemon_paused(self):
        big = {"goal": "x" * 2000, "steps": [{**step("s%d" % i), "task": "t" * 1500} for i in range(150)]}  # several lines
        self.put("big", plan=big, cron="0 3 * * *", tz="Europe/Berlin", jitterMs=60000, overlap="queue")
        self.put("small", cron="@hourly")
        file = self.d.state.parent / "all.jsonl"
        file.write_text(self.d.cli("export", "--all"))
        other = self.daemon(config="", agents=False)
        said = other.cli("import", str(file))
        self.assertIn("2 schedules imported, paused", said)
        mine, theirs = self.get("big", document=True), other.ask("schedule.get", name="big", document=True)["schedule"]
        self.assertEqual((theirs["status"], theirs["reason"]), ("paused", "it was imported: resume it here when it rests where it came from"))
        for field in ("cron", "tz", "jitterMs", "overlap", "catchUpMs", "owner", "createdAt", "plan", "next"):
            self.assertEqual(theirs[field], mine[field], field)
        self.assertIn("is here already: it stays as it is", other.cli_any("import", str(file)).stderr)
        other.kill9()
        other.start(agents=False)
        self.assertEqual([s["status"] for s in other.ask("schedule.list")["schedules"]], ["paused", "paused"])
        self.assertEqual(other.ask("schedule.resume", name="small")["status"], "active")

    def test_a_copy_has_them_and_a_plan_that_was_deleted_is_not_made_again(self):
        self.put(cron="0 * * * *")
        copy = self.d.state.parent / "copy.db"
        self.d.cli("backup", str(copy))
        self.assertIn("root ", self.d.cli("verify", str(copy)))
        span = {"from": "2026-03-01T00:00", "to": "2026-03-01T00:30"}
        self.d.ask("schedule.backfill", name="s", **span)
        (fired,) = until(self.fired, 15, "the plan")
        self.d.wait_plan(fired["firedPlanId"])
        self.d.ask("plan.delete", planId=fired["firedPlanId"])
        self.d.ask("schedule.backfill", name="s", **span)
        until(lambda: "backfillTo" not in self.get(), 15, "its end")
        self.assertEqual(len(self.fired()), 1)
        self.d.stop()
        self.d.cli("restore", str(copy), "--force")
        self.d.start(agents=False)
        self.assertEqual(self.get()["status"], "active")


class Owners(BatonTest):
    def test_a_submitter_has_its_own_schedules_and_nobody_elses(self):
        d = self.daemon(config="", agents=False)
        p = Probe(d, "probe", work=lambda r: {"outcome": "completed", "result": {"text": "done"}}, capacity=8)
        self.addCleanup(p.close)
        wait_up(d, "probe")
        files = {}
        for name, role in (("ann", "submitter"), ("bob", "submitter"), ("eve", "observer")):
            files[name] = str(d.state.parent / (name + ".json"))
            d.cli("credential", "add", name, "--role", role, "--file", files[name])
        plan = d.state.parent / "p.json"
        plan.write_text('{"steps": [{"stepId": "a", "agentId": "probe", "skill": "do", "task": "t"}]}')

        def as_(name, *args, code=0):
            done = d.cli_any("schedule", *args, "--credential", files[name])
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            return done.stdout + done.stderr

        as_("ann", "put", "hers", "--every", "1s", "--overlap", "allow", "--plan", str(plan))
        for order in ("get", "pause", "trigger", "delete"):
            self.assertIn("no schedule 'hers'", as_("bob", order, "hers", code=7))
        self.assertIn("no schedules yet", as_("bob", "list"))
        self.assertIn("schedule bob:hers is made", as_("bob", "put", "hers", "--cron", "@daily", "--plan", str(plan)))
        as_("bob", "delete", "hers")
        self.assertIn("ann:hers", as_("eve", "list"))
        as_("eve", "pause", "ann:hers", code=6)
        events = until(lambda: [e for e in d.events() if e["type"] == "schedule_fired"], 15, "a fire")
        view = d.wait_plan(events[0]["firedPlanId"])
        self.assertEqual((view["owner"], view["schedule"]), ("ann", "ann:hers"))
        seen = [d.cli_any("events", "--type", "schedule_fired", "--credential", files[n]).stdout for n in ("ann", "bob")]
        self.assertIn("hers", seen[0])
        self.assertNotIn("hers", seen[1])
        d.cli("credential", "revoke", "ann")
        view = until(lambda: (lambda v: v if v["status"] == "paused" else None)(d.ask("schedule.get", name="ann:hers")["schedule"]), 15, "a pause")
        self.assertIn("revoked", view["reason"])
        d.cli("schedule", "delete", "ann:hers")


class CommandLine(Schedules):
    def file(self, text):
        path = self.d.state.parent / "plan.yaml"
        path.write_text(text)
        return str(path)

    def test_a_person_makes_looks_at_and_orders_schedules(self):
        recipe = self.file("recipe: {name: rep}\ninputs: {type: object, properties: {n: {type: integer}}, required: [n]}\n"
                           "steps: [{stepId: a, agentId: probe, skill: do, task: 'n is {{inputs.n}}'}]\n")
        out = self.d.cli("schedule", "put", "nightly", "--cron", "0 3 * * *", "--tz", "Europe/Berlin", "--plan", recipe, "--input", "n=7",
                         "--overlap", "queue", "--catch-up", "6h", "--jitter", "5m", "--max-failures", "3")
        self.assertRegex(out, r"schedule nightly is made, active: next 20\d\d-\d\d-\d\dT03:00:00\+0[12]:00")
        self.assertIn("is as it was", self.d.cli("schedule", "put", "nightly", "--cron", "0 3 * * *", "--tz", "Europe/Berlin", "--plan", recipe,
                                                 "--input", "n=7", "--overlap", "queue", "--catch-up", "6h", "--jitter", "5m", "--max-failures", "3"))
        shown = self.d.cli("schedule", "get", "nightly")
        for words in ("nightly  active", "0 3 * * *", "Europe/Berlin", "queue", "21600 s", "300 s", "0 of at most 3", "0 fired"):
            self.assertIn(words, shown)
        self.assertEqual(len(self.d.cli("schedule", "next", "nightly", "12").split()), 12)
        self.assertIn("Europe/Berlin", self.d.cli("schedule", "list"))
        plan = self.d.cli("schedule", "trigger", "nightly", "--key", "once").strip()
        self.assertEqual(self.d.wait_plan(plan)["steps"][0]["task"], "n is 7")
        self.assertIn("schedule nightly, triggered", self.d.cli("status", plan))
        other = self.d.submit({"steps": [step("b")]})
        self.d.wait_plan(other)
        self.assertEqual([p["planId"] for p in json.loads(self.d.cli("status", "--schedule", "nightly", "--json"))], [plan])
        self.assertIn(other, self.d.cli("status"))
        self.assertNotIn(other, self.d.cli("status", "--schedule", "nightly"))
        self.assertIn("2 times, 2026-03-01T03:00:00+01:00 to 2026-03-02T03:00:00+01:00",
                      self.d.cli("schedule", "backfill", "nightly", "2026-03-01", "2026-03-03"))
        until(lambda: len(self.fired("nightly")) == 3, 20, "the backfill")
        last = self.fired("nightly")[-1]["firedPlanId"]
        self.assertIn("schedule nightly, for 2026-03-02T02:00:00Z", self.d.cli("status", last))
        self.assertIn("is paused", self.d.cli("schedule", "pause", "nightly", "--reason", "holidays"))
        self.assertIn("holidays", self.d.cli("schedule", "list"))
        self.assertIn("is active: next", self.d.cli("schedule", "resume", "nightly"))
        self.assertIn("is deleted", self.d.cli("schedule", "delete", "nightly"))
        self.assertIn("no schedules yet", self.d.cli_any("schedule", "list").stderr)
        self.assertIn("field 2 (hour)", self.d.cli_any("schedule", "put", "x", "--cron", "0 24 * * *", "--goal", "g").stderr)
        self.assertIn("expected one of --plan", self.d.cli_any("schedule", "put", "x", "--cron", "@daily").stderr)
        self.assertEqual(self.d.cli_any("schedule", "get", "nightly").returncode, 7)


if __name__ == "__main__":
    main()
