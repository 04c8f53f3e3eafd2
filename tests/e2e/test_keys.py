"""Who goes first, and who may run at the same time: priorities, concurrency keys of plans and steps, rates of agents and keys,
with real processes, also over kill -9."""
import random
import time

from acts import CONFIG, Acts, say, step
from harness import main, until

# A script that holds a lock while it works: who finds it taken says so.
ALONE = "mkdir lock 2>/dev/null || echo %(name)s >>overlaps; sleep %(for)s; rmdir lock 2>/dev/null; echo %(name)s >>ended; echo done"
GO = "while [ ! -e go ]; do sleep 0.02; done; echo %s >>order; echo done"


class Keys(Acts):
    config = CONFIG + """
keys: [{key: pair, max: 2}, {key: slow, max: 0, rate: {n: 2, perMs: 3000}}]
"""

    def alone(self, name, seconds="0.1"):
        self.act(name, ALONE % {"name": name, "for": seconds})

    def overlaps(self):
        path = self.d.work / "overlaps"
        return path.read_text().split() if path.exists() else []

    def waiting(self, plan, at=0):
        return self.d.ask("plan.get", planId=plan)["steps"][at].get("waiting", {})

    def completed(self, plan, seconds=60):
        view = self.d.wait_plan(plan, seconds)
        self.assertEqual(view["status"], "completed", "%s\n%s" % (view, self.d.log()))
        return view

    def keyed(self, name, key="deploy", **policy):
        return self.d.submit({"steps": [step(name)]}, policy={"concurrencyKey": key, **policy})


class Plans(Keys):
    def test_two_plans_with_a_key_never_overlap_and_say_what_they_wait_for(self):
        self.act("first", GO % "first")
        self.acts("second")
        first = self.keyed("first")
        self.wait_asked("first")
        second = self.keyed("second")
        view = self.d.ask("plan.get", planId=second)
        self.assertEqual((view["status"], view["paused"]), ("pending", ["concurrency"]))
        self.assertEqual((view["steps"][0]["waiting"]["kind"], view["steps"][0]["waiting"]["key"]), ("key", "deploy"))
        self.assertEqual(view["steps"][0]["waiting"]["text"], "waiting for the concurrencyKey deploy: plan %s has it" % first)
        self.assertIn("concurrencyKey deploy", self.d.cli("status", second))
        self.assertIn("concurrency: deploy", self.d.cli("events", second))
        (self.d.work / "go").touch()
        self.completed(first)
        self.completed(second)
        types = [e["type"] for e in self.d.events(second)]
        self.assertEqual(types[:4], ["plan_generated", "plan_paused", "plan_resumed", "plan_started"])

    def test_they_never_overlap_over_kill_9(self):
        names = ["p%d" % i for i in range(8)]
        chance = random.Random(8)
        for name in names:
            self.alone(name)
        plans = [self.keyed(name) for name in names]
        for _ in range(6):
            ended = self.d.work / "ended"
            before = len(ended.read_text().split()) if ended.exists() else 0
            until(lambda: ended.exists() and len(ended.read_text().split()) > before or before == len(names), 30, "one more ends")
            time.sleep(chance.random() * 0.1)  # a random moment is the point
            self.restart("kill")
        for plan in plans:
            self.completed(plan)
        self.assertEqual(self.overlaps(), [])
        self.assertEqual([self.asked(n) for n in names], [1] * len(names))

    def test_as_many_as_the_configuration_says_and_not_one_more(self):
        for name in ("a", "b", "c"):
            self.act(name, GO % name)
        plans = [self.keyed(n, "pair") for n in ("a", "b", "c")]
        self.wait_asked("a")
        self.wait_asked("b")
        self.assertEqual(self.waiting(plans[2])["text"], "waiting for the concurrencyKey pair: its 2 places are taken")
        self.assertEqual(self.asked("c"), 0)
        (self.d.work / "go").touch()
        for plan in plans:
            self.completed(plan)

    def test_skip_and_cancel(self):
        self.act("first", GO % "first")
        self.acts("third")
        first = self.keyed("first")
        self.wait_asked("first")
        skipped = self.d.wait_plan(self.keyed("never", overlap="skip"))
        self.assertEqual(skipped["status"], "cancelled")
        self.assertIn("no place is free of the concurrencyKey deploy", str(skipped))
        self.assertEqual(self.asked("never"), 0)
        waits = self.keyed("never")
        third = self.keyed("third", overlap="cancel")
        self.completed(third)
        for old in (first, waits):
            view = self.d.wait_plan(old)
            self.assertEqual(view["status"], "cancelled")
            why = [e["reason"] for e in self.d.events(old) if e["type"] == "plan_cancelling"]
            self.assertEqual(why, ["A newer plan has the concurrencyKey deploy"])

    def test_cancel_pause_and_resume_while_it_waits(self):
        self.act("first", GO % "first")
        self.acts("b", "c")
        first = self.keyed("first")
        self.wait_asked("first")
        gone, held, last = self.keyed("never"), self.keyed("b"), self.keyed("c")
        self.d.ask("plan.cancel", planId=gone)
        self.assertEqual(self.d.wait_plan(gone)["status"], "cancelled")
        self.d.ask("plan.pause", planId=held)
        self.restart("kill")
        (self.d.work / "go").touch()
        self.completed(first)
        self.completed(last)
        self.assertEqual(self.asked("b"), 0)
        self.d.ask("plan.resume", planId=held)
        self.completed(held)

    def test_a_retry_and_a_fork_wait_for_the_key_too(self):
        self.act("bad", "exit 2", "echo done")
        self.act("first", GO % "first")
        bad = self.d.submit({"steps": [step("bad", maxRetries=0)]}, policy={"concurrencyKey": "deploy", "maxFallbacks": 0})
        self.assertEqual(self.d.wait_plan(bad)["status"], "failed")
        first = self.keyed("first")
        self.wait_asked("first")
        again = self.d.ask("plan.retry", planId=bad)["planId"]
        self.assertEqual(self.waiting(again)["kind"], "key")
        (self.d.work / "go").touch()
        self.completed(first)
        self.completed(again)

    def test_a_fork_of_a_plan_with_a_key_waits_for_it(self):
        self.acts("fine", "last")
        plan = self.d.submit({"steps": [step("fine"), step("last")]}, policy={"concurrencyKey": "deploy"})
        self.completed(plan)
        self.act("first", GO % "first")
        first = self.keyed("first")
        self.wait_asked("first")
        fork = self.d.ask("plan.fork", planId=plan, fromStep="last")["planId"]
        view = self.d.ask("plan.get", planId=fork)
        self.assertEqual((view["status"], view["paused"]), ("pending", ["concurrency"]))
        self.assertEqual(self.waiting(fork, 1)["key"], "deploy")
        (self.d.work / "go").touch()
        self.completed(first)
        self.completed(fork)
        self.assertEqual((self.asked("fine"), self.asked("last")), (1, 2))

    def test_what_has_the_key_keeps_it_until_it_is_undone(self):
        self.act("pay", say("paid"))
        self.act("back", GO % "back")
        self.act("bad", "exit 2")
        self.acts("next")
        pay = step("pay", compensate={"skill": "act", "task": "give the money back", "parameters": {"name": "back"}})
        bad = self.d.submit({"steps": [pay, step("bad", maxRetries=0)]}, policy={"concurrencyKey": "deploy", "maxFallbacks": 0})
        self.wait_asked("back")
        after = self.keyed("next")
        self.assertEqual(self.waiting(after)["text"], "waiting for the concurrencyKey deploy: plan %s has it" % bad)
        self.restart("kill")
        self.assertEqual(self.waiting(after)["kind"], "key")
        self.assertEqual(self.asked("next"), 0)
        (self.d.work / "go").touch()
        view = self.d.wait_plan(bad)
        self.assertEqual((view["status"], view["compensation"]["status"]), ("failed", "compensated"))
        self.completed(after)
        self.assertEqual((self.asked("back"), self.asked("next")), (1, 1))

    def test_a_plan_inside_does_not_wait_for_the_plan_around_it(self):
        self.acts("inner")
        inner = {"policy": {"concurrencyKey": "deploy"}, "steps": [step("inner")]}
        plan = self.d.submit({"steps": [{"stepId": "sub", "plan": {"document": inner}}]}, policy={"concurrencyKey": "deploy"})
        self.completed(plan)


class Steps(Keys):
    def test_steps_of_all_plans_with_a_key_never_overlap_over_kill_9(self):
        names = ["s%d" % i for i in range(6)]
        for name in names:
            self.alone(name)
        plans = [self.d.submit({"steps": [step(n, dependsOn=[], concurrencyKey="db") for n in names[i:i + 3]]}) for i in (0, 3)]
        for n in (1, 3):
            until(lambda: (self.d.work / "ended").exists() and len((self.d.work / "ended").read_text().split()) >= n, 30, "%d ended" % n)
            self.restart("kill")
        for plan in plans:
            self.completed(plan)
        self.assertEqual(self.overlaps(), [])
        self.assertEqual([self.asked(n) for n in names], [1] * 6)

    def test_a_step_of_each_item_has_the_key(self):
        self.alone("item")
        each = {"stepId": "each", "agentId": "worker", "skill": "act", "task": "do {{item}}", "parameters": {"name": "item"}}
        plan = self.d.submit({"steps": [{**each, "forEach": [1, 2, 3], "concurrencyKey": "db"}]})
        self.completed(plan)
        self.assertEqual((self.overlaps(), self.asked("item")), ([], 3))


class Order(Keys):
    def test_a_full_agent_takes_the_highest_priority_first(self):
        names = ["held%d" % i for i in range(4)] + ["low", "normal", "high"]
        for name in names:
            self.act(name, GO % name if name.startswith("held") else "mkdir lock; rmdir lock; echo %s >>order; echo done" % name)
        plans = [self.d.submit({"steps": [step(n)]}) for n in names[:4]]
        for name in names[:4]:
            self.wait_asked(name)
        one = {"concurrencyKey": "one"}  # the steps begin one after the other
        for name, policy in (("low", {"priority": 1}), ("normal", {}), ("high", {"priority": 9})):
            plans.append(self.d.submit({"steps": [step(name, **one)]}, policy=policy))
        (self.d.work / "go").touch()
        for plan in plans:
            self.completed(plan)
        order = [n for n in (self.d.work / "order").read_text().split() if not n.startswith("held")]
        self.assertEqual(order, ["high", "normal", "low"])


class Rates(Keys):
    config = Keys.config + "rates: [{agentId: worker, n: 3, perMs: 4000}]\n"

    def starts(self, name):
        return [float(x) for x in (self.d.work / name).read_text().split()]

    def stamp(self, name, file):
        self.act(name, "date +%%s.%%N >>%s; echo done" % file)

    def test_an_agent_gets_n_in_its_window_and_no_more_over_a_restart(self):
        names = ["r%d" % i for i in range(5)]
        for name in names:
            self.stamp(name, "starts")
        plan = self.d.submit({"steps": [step(n, dependsOn=[]) for n in names]})
        until(lambda: (self.d.work / "starts").exists() and len(self.starts("starts")) == 3, 20, "three start at once")
        wait = until(lambda: [s["waiting"] for s in self.d.ask("plan.get", planId=plan)["steps"] if s.get("waiting", {}).get("kind") == "rate"],
                     10, "the others wait for the rate")[0]
        self.assertIn("the rate of agent worker is used up, 3 in 4000 ms", wait["text"])
        self.restart("kill")
        self.completed(plan)
        at = self.starts("starts")
        self.assertEqual(len(at), 5)
        self.assertLess(at[2] - at[0], 3.5)
        self.assertGreater(at[3] - at[0], 3.9)  # the stamp is taken by the process, a little after its start
        self.assertGreater(at[4] - at[1], 3.9)

    def test_a_key_with_a_rate(self):
        names = ["k%d" % i for i in range(3)]
        for name in names:
            self.stamp(name, "starts")
        plan = self.d.submit({"steps": [step(n, dependsOn=[], concurrencyKey="slow") for n in names]})
        self.completed(plan)
        at = self.starts("starts")
        self.assertLess(at[1] - at[0], 2.5)
        self.assertGreater(at[2] - at[0], 2.9)

    def test_a_reload_changes_keys_and_rates(self):
        text = self.d.config.read_text()
        self.d.config.write_text(text.replace("n: 3, perMs: 4000", "n: 100, perMs: 1000").replace("max: 2}", "max: 3}"))
        changed = {c["key"] for c in self.d.ask("supervisor.reload")["changes"]}
        self.assertEqual(changed & {"keys", "rates"}, {"keys", "rates"})
        names = ["r%d" % i for i in range(5)]
        self.acts(*names)
        begin = time.monotonic()
        self.completed(self.d.submit({"steps": [step(n, dependsOn=[]) for n in names]}))
        self.assertLess(time.monotonic() - begin, 4)


class Mistakes(Keys):
    def refused(self, steps=None, **policy):
        with self.assertRaises(Exception) as caught:
            self.d.submit({"steps": steps or [step("a")]}, policy=policy)
        return str(caught.exception)

    def test_bad_values_are_refused_with_their_place_and_what_would_be_right(self):
        self.assertIn("policy.priority", self.refused(priority=10))
        self.assertIn("0 to 9", self.refused(priority=10))
        problems = self.d.ask("plan.lint", plan={"steps": [step("a")]}, policy={"overlap": "skip"})["problems"]
        self.assertIn(("warning", "policy.overlap"), [(p["severity"], p["field"]) for p in problems])
        self.assertIn("queue", self.refused(overlap="wait", concurrencyKey="k"))
        self.assertIn("has 65 bytes; give a name of 1 to 64", self.refused(concurrencyKey="k" * 65))
        self.assertIn("has 0 bytes", self.refused([step("a", concurrencyKey="")]))
        self.assertIn("takes no template", self.refused([step("a", concurrencyKey="{{results.b}}")]))
        self.assertIn("is not for a step with a plan of its own",
                      self.refused([{"stepId": "s", "plan": {"document": {"steps": [step("a")]}}, "concurrencyKey": "k"}]))
        self.assertIn("no agent does this step", self.refused([{"stepId": "s", "wait": {"forMs": 1}, "concurrencyKey": "k"}]))
        self.assertIn("64", self.refused([step("s%d" % i, concurrencyKey="k%d" % i) for i in range(65)]))


class Caps(Keys):
    def test_1024_keys_are_in_use_and_the_next_one_is_refused(self):
        def steps(first, n):
            return [{"stepId": "go", "wait": {"signal": "go"}, "dependsOn": []}] + [
                step("s%d" % i, dependsOn=["go"], concurrencyKey="k%d" % i) for i in range(first, first + n)]
        plans = [self.d.submit({"steps": steps(first, 64)}) for first in range(0, 1024, 64)]
        answer = self.d.ask_raw("plan.submit", plan={"steps": steps(1024, 1)})
        self.assertEqual((answer["ok"], answer["error"]["code"]), (False, "BUSY"), answer)
        self.assertIn("1024 concurrencyKeys are in use, as many as may be; try again when some plans have ended", answer["error"]["message"])
        shared = self.d.submit({"steps": steps(1023, 1)})  # a key that is in use needs no more room
        self.d.ask("plan.cancel", planId=plans[0])
        self.d.wait_plan(plans[0])
        last = self.d.submit({"steps": steps(1024, 1)})
        self.restart("kill")
        for plan in (shared, last):
            self.assertEqual(self.waiting(plan)["kind"], "signal")
        self.assertFalse(self.d.ask_raw("plan.submit", plan={"steps": steps(2000, 64)})["ok"])


if __name__ == "__main__":
    main()
