"""Child plans: forEach over a list, repeat until a condition holds, a plan inside a plan; over crashes, too."""
import json
import threading

from harness import main, until
from probe import step
from test_flow import Flow
from test_phases import data, failed, text


def inside(name, agent="a", **more):
    """A step of a group: one after the other without dependsOn."""
    return {"stepId": name, "agentId": agent, "skill": "do", "task": "do " + name, **more}


class Children(Flow):
    def child_of(self, step_id):
        """The planId of the child that does a step, from the step's progress."""
        news = [e for e in self.d.events(self.plan) if e["type"] == "plan_step_progress" and e["stepId"] == step_id]
        return news[-1]["data"]["planId"] if news else None

    def asked(self):
        return [r["stepId"] for r in self.a.asked("execute")]


class ForEach(Children):
    values = {"list": {"files": [{"name": "a"}, {"name": "b"}, {"name": "c"}], "count": 3, "none": []}}

    def work(self, r):
        if r["stepId"].startswith("list"):
            return data(self.values["list"])
        return failed("broken", retryable=False) if "fail b" in r["task"] else text(r["task"])

    def each(self, **more):
        return {**inside("each", task="look at {{index}} {{file.name}} of {{results.list.count}}"), "forEach": "{{results.list.files}}", "as": "file", **more}

    def test_one_skill_for_each_item_and_a_list_of_results_in_order(self):
        view = self.run_plan([step("list", "a"), self.each(), {**inside("end"), "task": "told {{results.each.data.2.text}}"}])
        self.assertEqual((view["status"], view["outcome"]), ("completed", "success"), view)
        self.assertEqual(sorted(self.asked()), ["each[0]", "each[1]", "each[2]", "end", "list"])
        result = self.d.ask("plan.result", planId=self.plan, stepId="each")["result"]
        self.assertEqual([(x["status"], x["text"]) for x in result["data"]], [("completed", f"look at {i} {n} of 3") for i, n in enumerate("abc")])
        self.assertIn("told look at 2 c of 3", self.result()["aggregatedResult"])
        child = self.d.ask("plan.get", planId=self.child_of("each"))
        self.assertEqual((child["parentPlanId"], self.statuses(child)), (self.plan, {f"each[{i}]": "completed" for i in range(3)}))
        self.assertNotIn(child["planId"], [p["planId"] for p in self.d.ask("plan.list")["plans"]])
        news = [e["data"] for e in self.d.events(self.plan) if e["type"] == "plan_step_progress"]
        self.assertEqual((news[0]["completed"], news[-1]["completed"], news[-1]["steps"]), (0, 3, 3))

    def children(self, step_id="each"):
        return {s["stepId"]: s for s in self.d.ask("plan.get", planId=self.plan)["steps"]}[step_id]["children"]

    def test_the_step_says_how_many_items_have_ended(self):
        view = self.run_plan([step("list", "a"), self.each(task="fail {{file.name}}", onItemFailure="continue")])
        self.assertEqual(view["status"], "completed")
        self.assertEqual(self.children(), {"kind": "forEach", "planId": self.child_of("each"), "items": 3, "steps": 3, "over": 3, "completed": 2,
                                           "failed": 1})
        shown = self.d.cli("status", self.plan)
        self.assertRegex(shown, r"✓ each +forEach +fail <file.name>  — 3 of 3, 1 failed, ")
        self.assertNotIn("{{", shown)
        self.assertIn("steps of each: baton status %s/each" % self.plan, shown)
        self.assertRegex(self.d.cli("status", "last/each"), r"✗ each\[1\] +a +fail b")
        self.assertIn("each[1]", self.d.cli("graph", self.plan.lower()[:30] + "/each"))
        self.assertIn("each[2]", self.d.cli("timeline", "last/each"))
        self.assertIn("plan_completed", self.d.cli("events", "last/each"))
        for name, why in (("last/list", "is no plan of its own"), ("last/nothing", "has no step 'nothing'"), ("last/each/each[0]", "is no plan of its own")):
            done = self.d.cli_any("status", name)
            self.assertEqual(done.returncode, 7)
            self.assertIn(why, done.stderr)
        self.assertIn("forEach: 3 of 3, 1 failed, ", self.d.cli("graph", self.plan))
        self.assertIn(" 3 of 3, 1 failed, ", self.d.cli("timeline", self.plan))
        self.assertIn("forEach#58; 3 of 3#44; 1 failed#44; ", self.d.cli("graph", self.plan, "-o", "mermaid"))
        group = [inside("read"), inside("say")]
        self.run_plan([step("list", "a"), {"stepId": "each", "forEach": "{{results.list.files}}", "as": "file", "steps": group}])
        self.assertRegex(self.d.cli("status", self.plan), "✓ each +forEach .* 3 items, 6 of 6 steps, ")

    def test_an_item_that_ends_the_step_early_is_counted(self):
        many = {"list": {"files": [{"name": n} for n in ["b"] + ["a"] * 299]}}
        self.values = many
        view = self.run_plan([step("list", "a"), self.each(forEach="{{results.list.files}}", task="fail {{file.name}}", maxConcurrency=1)])
        self.assertEqual(self.statuses(view)["each"], "failed")
        self.assertEqual((self.children()["failed"], self.children()["steps"]), (1, 300))

    def test_an_item_that_fails_is_marked_or_ends_the_step(self):
        work = "fail {{file.name}}"
        view = self.run_plan([step("list", "a"), self.each(task=work, onItemFailure="continue")])
        self.assertEqual((view["status"], self.statuses(view)["each"]), ("completed", "completed"))
        result = self.d.ask("plan.result", planId=self.plan, stepId="each")["result"]
        self.assertEqual([x["status"] for x in result["data"]], ["completed", "failed", "completed"])
        self.assertEqual((result["data"][1]["error"], result["data"][1]["errorClass"]), ("broken", "UNKNOWN"))
        self.assertIn("2 of 3 items completed", result["text"])
        view = self.run_plan([step("list", "a"), self.each(task=work)])
        self.assertEqual((view["status"], self.statuses(view)["each"]), ("failed", "failed"))
        self.assertIn("step each[1]: ", self.ends()["each"]["error"])

    def test_a_group_with_conditions_order_and_results_outside(self):
        group = [inside("read"), inside("sum", when={"index": {"gt": 0}}), inside("say", task="{{file.name}} {{results.read}} {{results.list.count}}", dependsOn=["read"])]
        view = self.run_plan([step("list", "a"), {"stepId": "each", "forEach": "{{results.list.files}}", "as": "file", "steps": group}])
        self.assertEqual(view["status"], "completed", self.ends())
        result = self.d.ask("plan.result", planId=self.plan, stepId="each")["result"]
        self.assertEqual([x["text"] for x in result["data"]], ["a do read 3", "b do read 3", "c do read 3"])

    def test_lists_that_are_none_too_long_or_empty(self):
        for more, why in (({"forEach": "{{results.list}}"}, "forEach: expected a list, got a map; name the list in it"),
                          ({"forEach": "{{results.list.count}}"}, "forEach: expected a list, got a number"),
                          ({"forEach": "{{results.list.gone}}"}, 'forEach: {{results.list.gone}}: the result of step "list" has no member "gone"'),
                          ({"maxItems": 2}, "forEach: 3 items are more than the 2 of maxItems")):
            view = self.run_plan([step("list", "a"), self.each(**more)])
            self.assertEqual((self.statuses(view)["each"], self.ends()["each"]["errorClass"]), ("failed", "VALIDATION_ERROR"))
            self.assertIn(why, self.ends()["each"]["error"])
        view = self.run_plan([step("list", "a"), self.each(maxItems=3)])
        self.assertEqual(view["status"], "completed")
        view = self.run_plan([step("list", "a"), self.each(forEach="{{results.list.none}}")])
        self.assertEqual((view["status"], self.d.ask("plan.result", planId=self.plan, stepId="each")["result"]["data"]), ("completed", []))

    def test_what_the_check_refuses(self):
        for more, why in (({"forEach": 7}, "expected a list, or one template"), ({"forEach": "all of {{results.list}}"}, "expected a list, or one template"),
                          ({"maxItems": 10001}, "10000"), ({"as": "results"}, "has a meaning of its own"), ({"onItemFailure": "stop"}, "continue"),
                          ({"repeat": {"until": {"iteration": 3}, "max": 3}}, "do not go together"), ({"agentId": "nobody"}, "nobody"),
                          ({"task": "say {{results.gone}}"}, "names no step of this plan")):
            self.assertTrue(any(why in m for m in self.refused(step("list", "a"), self.each(**more))), (more, self.refused(step("list", "a"), self.each(**more))))
        self.assertTrue(any("inside forEach" in m for m in self.refused(inside("x", when={"item.a": 1}))))
        self.assertTrue(any("belongs to a step with forEach" in m for m in self.refused(inside("x", maxItems=3))))

    def test_a_template_in_an_item_is_data(self):
        self.values = {"list": {"files": [{"name": "{{results.list.count}} {{index}}"}], "count": 3}}
        view = self.run_plan([step("list", "a"), self.each()])
        self.assertEqual(view["status"], "completed")
        result = self.d.ask("plan.result", planId=self.plan, stepId="each")["result"]
        self.assertEqual(result["data"][0]["text"], "look at 0 {{results.list.count}} {{index}} of 3")

    def test_a_map_in_a_map_in_a_loop(self):
        inner = {"stepId": "cell", "forEach": "{{results.list.files}}", "as": "col", "steps": [inside("put", task="{{iteration}} {{row.name}} {{col.name}}")]}
        rows = {"stepId": "rows", "forEach": "{{results.list.files}}", "as": "row", "maxConcurrency": 2, "steps": [inner]}
        view = self.run_plan([step("list", "a"), {"stepId": "loop", "repeat": {"until": {"iteration": 1}, "max": 3}, "steps": [rows]}])
        self.assertEqual(view["status"], "completed", self.ends())
        self.assertEqual(sorted(r["task"] for r in self.a.asked("execute") if r["stepId"].startswith("put")),
                         sorted(f"{i} {r} {c}" for i in (0, 1) for r in "abc" for c in "abc"))

    def test_cancel_pause_and_resume_reach_the_items(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        began = threading.Event()

        def work(r):
            if r["stepId"].startswith("list"):
                return data(self.values["list"])
            began.set()
            gate.wait(20)
            return text("done")
        self.work = work
        self.a.close()
        self.a = self.agent("b", execute=work)
        self.submit([step("list", "b"), self.each(agentId="b")])
        self.assertTrue(began.wait(20))
        child = until(lambda: self.child_of("each"), 10, "its child")
        self.d.ask("plan.pause", planId=self.plan)
        self.assertEqual(self.d.ask("plan.get", planId=child)["status"], "waiting")
        self.d.ask("plan.resume", planId=self.plan)
        self.assertEqual(self.d.ask("plan.get", planId=child)["status"], "running")
        self.d.ask("plan.cancel", planId=self.plan)
        gate.set()
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], self.d.wait_plan(child)["status"]), ("cancelled", "cancelled"))

    def test_kill_9_between_the_items_repeats_none_that_completed(self):
        done = []

        def work(r):
            if r["stepId"].startswith("list"):
                return data({"files": [{"name": str(i)} for i in range(6)], "count": 6})
            done.append(r["stepId"])
            return text(r["task"])
        self.work = work
        self.a.close()
        self.a = self.agent("b", execute=work)
        group = [inside("do", "b"), {"stepId": "look", "type": "human_review", "task": "May the item {{index}} go on?", "dependsOn": ["do"]}]
        self.submit([step("list", "b"), {"stepId": "each", "forEach": "{{results.list.files}}", "maxConcurrency": 6, "steps": group}])
        until(lambda: len(done) == 6, 30, "all items")
        child = self.child_of("each")
        reviews = until(lambda: len(r := self.d.ask("review.list")["reviews"]) == 6 and r, 30, "six reviews")
        self.d.kill9()
        self.d.start()
        self.agent("b", execute=work)
        for r in reviews:
            self.d.ask("review.decide", reviewId=r["reviewId"], decision="approve")
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], sorted(done)), ("completed", [f"do[{i}]" for i in range(6)]))
        self.assertEqual(self.child_of("each"), child)


class Repeat(Children):
    n = 0

    def work(self, r):
        self.n += 1
        return data({"n": self.n, "task": r["task"]})

    def poll(self, repeat, **more):
        return {**inside("poll", task="round {{iteration}} after {{previous.n}}"), "repeat": repeat, **more}

    def test_rounds_until_the_condition_holds_each_with_the_one_before(self):
        view = self.run_plan([self.poll({"until": {"results.poll.n": {"gte": 3}}, "max": 5}), {**inside("end"), "task": "told {{results.poll.n}}"}])
        self.assertEqual(view["status"], "completed", self.ends())
        self.assertEqual([r["task"] for r in self.a.asked("execute")], ["round 0 after null", "round 1 after 1", "round 2 after 2", "told 3"])
        rounds = [(e["rounds"], e["condition"]) for e in self.d.events(self.plan) if e["type"] == "plan_step_round"]
        self.assertEqual(rounds, [(1, "results.poll.n is 1"), (2, "results.poll.n is 2")])
        said = {s["stepId"]: s for s in self.d.ask("plan.get", planId=self.plan)["steps"]}["poll"]["children"]
        self.assertEqual(said, {"kind": "repeat", "planId": self.child_of("poll"), "rounds": 3, "steps": 1, "over": 1, "completed": 1})
        self.assertRegex(self.d.cli("status", self.plan), r"✓ poll +repeat .* — 3 rounds, ")
        self.assertIn("repeat: 3 rounds, ", self.d.cli("graph", self.plan))

    def test_while_and_the_last_round(self):
        view = self.run_plan([self.poll({"while": {"results.poll.n": {"lt": 2}}, "max": 5})])
        self.assertEqual((view["status"], self.n), ("completed", 2))
        view = self.run_plan([self.poll({"until": {"iteration": 9}, "max": 2})])
        end = self.ends()["poll"]
        self.assertEqual((end["status"], end["errorClass"]), ("failed", "LOOP_LIMIT"))
        self.assertIn("Not done after 2 rounds: iteration is 1", end["error"])
        view = self.run_plan([self.poll({"until": {"iteration": 9}, "max": 2, "onMax": "accept"})])
        self.assertEqual(view["status"], "completed")

    def test_what_cannot_be_tested_fails_the_step(self):
        self.run_plan([self.poll({"until": {"results.poll.gone": {"gt": 1}}, "max": 5})])
        self.assertEqual(self.ends()["poll"]["errorClass"], "VALIDATION_ERROR")
        for repeat, why in (({"until": {"iteration": 1}}, "needs the most rounds"), ({"max": 3}, "give until or while"), ({"until": {"iteration": 1}, "max": 0}, "1"),
                            ({"until": {"a b": 1}, "max": 3}, "is no reference"), ({"until": {"iteration": 1}, "while": {"iteration": 1}, "max": 3}, "give one of them")):
            self.assertTrue(any(why in m for m in self.refused(self.poll(repeat))), (repeat, self.refused(self.poll(repeat))))

    def test_a_loop_goes_on_with_its_round_after_kill_9(self):
        self.submit([self.poll({"until": {"results.poll.n": {"gte": 3}}, "max": 5, "delayMs": 1500})])
        until(lambda: [e for e in self.d.events(self.plan) if e["type"] == "plan_step_round"], 20, "a round")
        self.d.kill9()
        self.d.start()
        self.a = self.agent("a", execute=self.work)
        view = self.d.wait_plan(self.plan)
        self.assertEqual((view["status"], self.n), ("completed", 3))
        self.assertEqual([e["rounds"] for e in self.d.events(self.plan) if e["type"] == "plan_step_round"], [1, 2])


class SubPlan(Children):
    recipe = {"inputs": {"type": "object", "properties": {"who": {"type": "string", "maxLength": 20}}, "required": ["who"]},
              "steps": [inside("hello", task="greet {{inputs.who}}"), inside("bye", task="leave {{results.hello}}")]}

    def sub(self, **more):
        return {"stepId": "sub", "plan": {"document": self.recipe, "inputs": {"who": "{{results.check.name}}"}, **more}}

    def work(self, r):
        return super().work(r) if r["stepId"] == "check" else text(r["task"])

    def test_its_answer_is_the_result_and_each_of_its_steps_is_in_the_data(self):
        view = self.run_plan([step("check", "a"), self.sub(), {**inside("end"), "task": "told {{results.sub.bye}}"}])
        self.assertEqual(view["status"], "completed", self.ends())
        result = self.d.ask("plan.result", planId=self.plan, stepId="sub")["result"]
        self.assertEqual(result["data"], {"hello": "greet Ada", "bye": "leave greet Ada"})
        self.assertRegex(self.d.cli("status", self.plan), r"✓ sub +plan .* — 2 of 2 steps, ")
        self.assertEqual(self.a.asked("execute")[-1]["task"], "told leave greet Ada")

    def test_a_retry_keeps_what_a_plan_inside_had_done_before_it_failed(self):
        self.broken = True
        self.a.close()
        self.a = self.agent("a", execute=lambda r: failed("broken", retryable=False) if r["stepId"] == "bye" and self.broken else self.work(r))
        recipe = {**self.recipe, "steps": [{**inside("hello", task="greet {{inputs.who}}"), "effects": "unsafe"}, self.recipe["steps"][1]]}
        view = self.run_plan([step("check", "a"), self.sub(document=recipe)])
        self.assertEqual(view["status"], "failed")
        self.broken = False
        self.plan = self.d.ask("plan.retry", planId=self.plan)["planId"]
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed", self.ends())
        self.assertEqual(self.asked(), ["check", "hello", "bye", "bye"], "an unsafe step that completed is not done again")
        result = self.d.ask("plan.result", planId=self.plan, stepId="sub")["result"]
        self.assertEqual(result["data"], {"hello": "greet Ada", "bye": "leave greet Ada"})

    def test_another_attempt_of_a_plan_inside_keeps_what_had_been_done(self):
        self.a.close()
        self.a = self.agent("a", execute=lambda r: failed("broken") if r["stepId"] == "bye" and self.asked().count("bye") < 2 else self.work(r))
        recipe = {**self.recipe, "steps": [{**inside("hello", task="greet {{inputs.who}}"), "effects": "unsafe"}, {**self.recipe["steps"][1], "maxRetries": 0}]}
        view = self.run_plan([step("check", "a"), {**self.sub(document=recipe), "maxRetries": 1}])
        self.assertEqual((view["status"], self.asked()), ("completed", ["check", "hello", "bye", "bye"]), self.ends())

    def test_a_retry_asks_about_a_step_of_a_plan_inside_that_may_have_been_done(self):
        self.a.close()
        self.a = self.agent("a", execute=lambda r: None if r["stepId"] == "hello" else self.work(r))
        recipe = {**self.recipe, "steps": [{**inside("hello", task="greet {{inputs.who}}"), "effects": "unsafe"}, self.recipe["steps"][1]]}
        self.plan = self.d.submit({"steps": [step("check", "a"), self.sub(document=recipe)]})
        until(lambda: "hello" in self.asked(), 10, "it is at work")
        self.d.ask("plan.cancel", planId=self.plan)
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "cancelled")
        self.a.close()
        self.a = self.agent("a", execute=self.work)
        self.plan = self.d.ask("plan.retry", planId=self.plan)["planId"]
        review = until(lambda: self.d.ask("review.list")["reviews"], 10, "a person is asked")[0]
        self.assertEqual((review["kind"], review["stepId"], self.asked()), ("unknown_outcome", "hello", []))
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve")
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed", self.ends())
        self.assertEqual(self.asked(), ["hello", "bye"])

    def test_what_a_step_with_a_plan_would_not_do_is_refused(self):
        for field, value, why in (("verify", {"required": ["x"]}, "is not for a step with a plan of its own"),
                                  ("signature", "{x :int}", "is not for a step with a plan of its own"),
                                  ("parameters", {"who": "Ada"}, "are not for a step with a plan of its own; its values are plan.inputs")):
            found = self.refused(step("check", "a"), {**self.sub(), field: value})
            self.assertTrue(any(why in m for m in found), (field, found))

    def test_inputs_that_do_not_fit_and_plans_that_are_none(self):
        view = self.run_plan([step("check", "a"), self.sub(inputs={"who": "{{results.check.tags}}"})])
        self.assertEqual((view["status"], self.ends()["sub"]["errorClass"]), ("failed", "VALIDATION_ERROR"))
        self.assertIn("who", self.ends()["sub"]["error"])
        for plan, why in (({"recipe": "x"}, "the supervisor has no recipes"), ({}, "is missing"), ({"document": {"steps": [inside("x", "nobody")]}}, "nobody"),
                          ({"document": {"steps": [inside("x", task="see {{results.check}}")]}}, "names no step"), ({"document": {"steps": []}}, "no steps")):
            got = self.refused(step("check", "a"), {"stepId": "sub", "plan": plan})
            self.assertTrue(any(why in m for m in got), (plan, got))

    def test_a_recipe_by_name_or_file_is_put_in_by_the_command_line(self):
        recipes = self.d.work / "config" / "baton" / "recipes"
        recipes.mkdir(parents=True)
        env = {"XDG_CONFIG_HOME": str(self.d.work / "config")}
        (recipes / "welcome.yaml").write_text(json.dumps(self.recipe))
        for recipe in ("welcome", str(recipes / "welcome.yaml")):
            plan = self.write_plan(self.d, "outer.json", {"steps": [step("check", "a"), {"stepId": "sub", "plan": {"recipe": recipe, "inputs": {"who": "{{results.check.name}}"}}}]})
            self.assertIn("leave greet Ada", self.d.cli("run", "--plan", plan, env=env))
        for name, inner in (("mirror", "mirror"), ("left", "right"), ("right", "left")):
            (recipes / (name + ".yaml")).write_text(json.dumps({"steps": [{"stepId": "s", "plan": {"recipe": inner}}]}))
        for name, said in (("mirror", "runs itself"), ("left", "runs itself"), ("nobody", "nobody")):
            plan = self.write_plan(self.d, "bad.json", {"steps": [{"stepId": "s", "plan": {"recipe": name}}]})
            done = self.d.cli_any("plan", "check", plan, env=env)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)

    def test_a_review_inside_is_listed_and_decided(self):
        plan = {"steps": [{"stepId": "ask", "type": "human_review", "task": "May it go on?"}, inside("go")]}
        self.submit([{"stepId": "sub", "plan": {"document": plan}}])
        review = until(lambda: self.d.ask("review.list")["reviews"], 20, "its review")[0]
        self.assertEqual(review["planId"], self.child_of("sub"))
        self.d.ask("review.decide", reviewId=review["reviewId"], decision="approve")
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")

    def test_a_review_of_a_plan_inside_is_decided_by_the_plan_around_it(self):
        plan = {"steps": [{"stepId": "ask", "type": "human_review", "task": "May it go on?"}, inside("go")]}
        other = self.d.submit({"steps": [{"stepId": "ask", "type": "human_review", "task": "Is this another one?"}]})
        self.submit([{"stepId": "outer", "plan": {"document": {"steps": [{"stepId": "sub", "plan": {"document": plan}}]}}}])
        until(lambda: len(self.d.ask("review.list")["reviews"]) == 2, 20, "both reviews")
        self.assertEqual([r["prompt"] for r in self.d.ask("review.list", planId=self.plan)["reviews"]], ["May it go on?"])
        self.assertEqual([r["prompt"] for r in self.d.ask("review.list", planId=other)["reviews"]], ["Is this another one?"])
        self.d.cli("approve", self.plan)
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")
        self.d.ask("plan.cancel", planId=other)

    def test_the_parent_says_what_the_plans_inside_it_wait_for(self):
        ask = {"stepId": "ask", "type": "human_review", "task": "May item {{index}} go on?"}
        each = {"stepId": "each", "forEach": [1, 2], "steps": [ask]}
        self.submit([{"stepId": "outer", "plan": {"document": {"steps": [each]}}}, inside("end")])
        reviews = until(lambda: len(r := self.d.ask("review.list")["reviews"]) == 2 and r, 20, "both reviews")
        ids = [r["reviewId"] for r in reviews]

        def wait_of(plan, step):
            return {s["stepId"]: s for s in self.d.ask("plan.get", planId=plan)["steps"]}[step].get("waiting", {})
        for plan, name in ((self.plan, "outer"), (self.child_of("outer"), "each")):
            waits = wait_of(plan, name)
            self.assertEqual((waits["kind"], waits["reviewId"] in ids), ("person", True))
            self.assertEqual(waits["text"], "waiting for a person's review (review %s, and 1 more)" % waits["reviewId"])
        (row,) = self.d.ask("plan.list")["plans"]
        self.assertEqual((row["counts"].get("running", 0), row["counts"]["waiting"]), (0, 1))
        shown = self.d.cli("status", self.plan)
        self.assertIn("waiting for a person's review", shown)
        self.assertIn("baton review show %s" % wait_of(self.plan, "outer")["reviewId"], shown)
        self.assertIn("waiting for a person's review", self.d.cli("status"))
        self.d.ask("review.decide", reviewId=wait_of(self.plan, "outer")["reviewId"], decision="approve")
        self.assertNotIn("more", wait_of(self.plan, "outer")["text"])
        self.d.kill9()
        self.d.start(agents=False)
        last = until(lambda: wait_of(self.plan, "outer").get("reviewId"), 20, "the other review")
        self.d.ask("review.decide", reviewId=last, decision="approve")
        until(lambda: wait_of(self.plan, "outer").get("kind") != "person", 20, "nothing waits")

    def test_plans_side_by_side_do_not_spend_the_same_money_twice(self):
        self.work = lambda r: {**text("done"), "usage": {"inputTokens": 10, "outputTokens": 0, "costMicros": 0}}
        self.a.close()
        self.a = self.agent("c", execute=self.work)
        plan = {"steps": [inside("s%d" % i, "c", estimate={"tokens": 10}, onFailure="continue") for i in range(8)]}
        view = self.run_plan([{"stepId": n, "plan": {"document": plan}, "dependsOn": [], "onFailure": "continue"} for n in ("x", "y")],
                             policy={"budget": {"tokens": 100}})
        self.assertEqual((view["usage"]["inputTokens"], len(self.a.asked("execute"))), (100, 10), view)

    def test_plans_inside_each_other(self):
        def nest(n):
            return [inside("x")] if n == 0 else [{"stepId": f"s{n}", "plan": {"document": {"steps": nest(n - 1)}}}]
        view = self.run_plan(nest(3))
        self.assertEqual((view["status"], self.asked()), ("completed", ["x"]))
        self.assertIn("nested deeper", self.d.ask_raw("plan.lint", plan={"steps": nest(9)})["error"]["message"])

    def test_its_failure_is_the_steps_and_its_time_and_budget_end_with_the_plans(self):
        plan = {"steps": [inside("bad")]}
        self.work = lambda r: failed("broken", retryable=False)
        self.a.close()
        self.a = self.agent("c", execute=self.work)
        plan["steps"][0]["agentId"] = "c"
        view = self.run_plan([{"stepId": "sub", "plan": {"document": plan}}])
        self.assertEqual((view["status"], self.statuses(view)["sub"]), ("failed", "failed"))
        self.assertIn("broken", self.ends()["sub"]["error"])


if __name__ == "__main__":
    main()
