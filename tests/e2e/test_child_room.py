"""Child plans: room for them, and what a map that runs again has done already."""
import threading

from harness import main, until
from probe import step
from test_phases import failed, text
from test_semantics import Semantics


def sub(step_id, *steps, **more):
    return {"stepId": step_id, "dependsOn": [], "plan": {"document": {"steps": list(steps)}}, "task": "run the plan inside", **more}


class Room(Semantics):
    def nest(self, depth, name="n"):
        return step("leaf" + name, "a", dependsOn=[]) if depth == 0 else sub("%s%d" % (name, depth), self.nest(depth - 1, "a"), self.nest(depth - 1, "b"))

    def test_a_child_without_room_waits_and_nests_never_wait_for_each_other(self):
        self.d = self.daemon(config="limits: {maxOpenPlans: 1}\n", agents=False)
        self.agent("a", capacity=4)
        self.submit([sub("s%d" % i, {**self.nest(1), "stepId": "x"}) for i in range(6)], policy={"maxConcurrency": 6})
        view = self.d.wait_plan(self.plan, 60)
        self.assertEqual((view["status"], {s["status"] for s in view["steps"]}), ("completed", {"completed"}), view.get("failureReason"))

    def test_who_waits_for_room_is_paused_cancelled_and_found_again_after_kill_9(self):
        self.d = self.daemon(config="limits: {maxOpenPlans: 2}\npolicy: {heartbeatMs: 200, leaseMs: 1500, agentWaitMs: 20000}\n", agents=False)
        gate = threading.Event()
        self.addCleanup(gate.set)
        asked = []

        def work(r):
            asked.append(r["stepId"])
            gate.wait(5)
            return text("done " + r["stepId"])
        self.agent("a", capacity=8, execute=work)
        self.submit([sub("s%d" % i, step("leaf%d" % i, "a")) for i in range(5)], policy={"maxConcurrency": 5})
        first = self.plan
        until(lambda: len(asked) == 2, 30, "two have room")
        self.d.kill9()
        self.d.start(agents=False)
        self.assertLessEqual({s["status"] for s in self.d.ask("plan.get", planId=first)["steps"]}, {"in_progress", "completed"})
        self.d.ask("plan.pause", planId=first)
        other = self.d.submit({"steps": [sub("late", step("other", "a"))]})
        self.d.ask("plan.cancel", planId=other)
        until(lambda: self.d.ask("plan.get", planId=other)["status"] == "cancelled", 20, "one that waits is cancelled")
        gate.set()
        self.agent("a", capacity=8, execute=work)
        self.d.ask("plan.resume", planId=first)
        self.assertEqual(self.d.wait_plan(first, 60)["status"], "completed")
        self.assertNotIn("other", asked)


class Again(Semantics):
    def work(self, r):
        self.asked.append(r["stepId"])
        return failed("broken", retryable=False) if r["stepId"] in self.bad else text("done " + r["stepId"])

    def setUp(self):
        super().setUp()
        self.asked, self.bad = [], set()
        self.agent("a", capacity=4, execute=self.work)

    def each(self, *items, **more):
        return {"stepId": "m", "forEach": list(items), "agentId": "a", "task": "do the item {{item}} well", "maxConcurrency": 1, **more}

    def again(self, **fields):
        self.asked.clear()
        self.plan = self.d.ask("plan.retry", planId=self.plan, **fields)["planId"]
        return self.d.wait_plan(self.plan)

    def test_a_retried_plan_does_only_the_items_that_are_not_done(self):
        self.bad = {"m[2]"}
        self.submit([step("first", "a"), self.each("a", "b", "c", "d")])
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "failed")
        self.assertEqual(self.asked, ["first", "m[0]", "m[1]", "m[2]"])
        self.assertEqual(self.again()["status"], "failed")
        self.assertEqual(self.asked, ["m[2]"])
        self.bad = set()
        self.assertEqual(self.again()["status"], "completed")
        self.assertEqual(self.asked, ["m[2]", "m[3]"], "over two retries")
        items = [e for e in self.d.events(self.plan) if e.get("stepId") == "m" and e["type"] == "plan_step_completed"]
        self.assertEqual(items[0]["status"], "completed")
        self.bad = {"m[0]"}
        self.assertEqual(self.again(fromStep="m")["status"], "failed")
        self.assertEqual(self.asked, ["m[0]"], "who names the step wants all of it")

    def test_what_was_undone_is_done_again(self):
        self.bad = {"m[1]"}
        self.submit([self.each("a", "b", compensate={"agentId": "a", "task": "undo the item {{item}} well"})])
        until(lambda: self.d.ask("plan.get", planId=self.plan).get("compensation", {}).get("status") == "compensated"
              or self.d.ask("plan.get", planId=self.plan)["status"] == "failed" and len(self.asked) > 2, 30, "it is undone")
        self.bad = set()
        self.assertEqual(self.again()["status"], "completed")
        self.assertEqual(self.asked, ["m[0]", "m[1]"])

    def test_items_of_a_map_that_went_on_are_undone_when_the_plan_fails(self):
        self.bad = {"m[1]", "end"}
        self.submit([self.each("a", "b", "c", onItemFailure="continue", compensate={"agentId": "a", "task": "undo the item {{item}} well"}),
                     step("end", "a", maxRetries=0)])
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], view["compensation"]["status"], view["compensation"].get("compensated")), ("failed", "compensated", 2), view["compensation"])
        self.assertEqual(self.asked[:4], ["m[0]", "m[1]", "m[2]", "end"])

    def test_an_item_that_changed_is_done_again(self):
        self.bad = {"m[2]"}
        self.submit([step("list", "a"), self.each("{{results.list}}", "b", "c")])
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "failed")
        self.bad = set()
        self.assertEqual(self.again(fromStep="list")["status"], "completed")
        self.assertEqual(self.asked, ["list", "m[0]", "m[1]", "m[2]"])


if __name__ == "__main__":
    main()
