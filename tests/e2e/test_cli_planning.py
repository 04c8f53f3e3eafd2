"""The command line about plans that agents make: planning, answers that are streamed, cost, recipes.

Most of it on a stage (stage.py); Real: one way through each with a real daemon and a planner that a test scripts."""
import json
import os
import shutil
import subprocess
import unittest

from harness import BIN, ROOT, BatonTest, main, read_yaml, until
from probe import Probe, step, wait_up
from stage import Refusal, Stage

PLAN = "00000000-0000-7000-8000-0000000000AA"
END = {"type": "plan_completed", "status": "completed", "outcome": "success"}
STARTED = {"type": "planning_started", "planner": "llm", "agentId": "orchestrator", "timeoutMs": 30000, "attempt": 1, "goal": "count"}
MADE = {"type": "plan_generated", "planner": "llm", "estimatedSteps": 1, "description": "Adds.",
        "steps": [{"stepId": "a", "stepIndex": 0, "agentId": "calc", "task": "add"}]}
STEP = {"stepId": "a", "stepIndex": 0, "status": "pending", "agentId": "calc", "skill": "add", "task": "add\x1b it"}


def stepped(type_, **more):
    return {"type": type_, "stepId": "a", "stepIndex": 0, **more}


def piece(index, text):
    return {"type": "text_delta", "index": index, "text": text}


class OnStage(unittest.TestCase):
    def view(self, **more):
        """What plan.get says: no steps before the plan was made."""
        views = [{"planId": PLAN, "status": "pending", "phase": "planning", "lastSeq": 0, "steps": []}]

        def get(request):
            done = {"planId": PLAN, "status": "completed", "lastSeq": 0, "steps": [STEP], **more}
            return views.pop() if views else done
        return get

    def story(self, *events, answer="all", status="completed", **answers):
        result = {"planId": PLAN, "status": status, "aggregatedResult": answer}
        s = Stage(self, {"plan.submit": {"planId": PLAN}, "plan.get": self.view(), "plan.result": result, **answers})
        s.events = list(events)
        return s


class Run(OnStage):
    def test_what_is_asked_for_reaches_the_daemon(self):
        s = self.story(STARTED, MADE, END)
        s.cli("run", "count", "--planner", "llm", "--constraint", "be quick", "--constraint", "use \"calc\"", "--synthesis", "agent:writer",
              "--on-invalid-plan", "interrupt", "--policy", '{"planTimeoutMs": 5, "synthesis": "concat"}')
        asked = s.of("plan.submit")[0]
        self.assertTrue(asked.pop("clientKey"))
        self.assertEqual(asked, {"goal": "count", "planner": "llm", "constraints": ["be quick", 'use "calc"'],
                                 "policy": {"planTimeoutMs": 5, "synthesis": {"agentId": "writer"}, "onInvalidPlan": "interrupt"}})
        for word in ("concat", "llm", "agent", '{"agentId": "w", "timeoutMs": 5}'):
            s = self.story(END)
            s.cli("run", "count", "--synthesis", word)
            self.assertEqual(s.of("plan.submit")[0]["policy"]["synthesis"], json.loads(word) if word[0] == "{" else word)

    def test_wrong_words_are_refused_before_anything_is_asked(self):
        s = self.story()
        for args, said in ((("count", "--synthesis", "poem"), "concat, llm, agent"), (("count", "--on-invalid-plan", "weep"), "interrupt"),
                           (("count", "--policy", "[]"), "JSON object"), (("count", "--input", "a=1"), "go with --plan"),
                           (("count", "--plan", "p.yaml"), "either"), (("--plan", "p", "--recipe", "r"), "exclude"),
                           (("--plan", "p", "--constraint", "c"), "goes with a goal"), (("g", "--dry-run", "--result", "a"), "no result")):
            self.assertIn(said, s.cli("run", *args, code=2)[1], args)
        self.assertEqual(s.asked, [])

    def test_planning_is_told_step_by_step(self):
        s = self.story(STARTED, {"type": "planning_retry", "attempt": 1, "validationErrors": 2, "text": "no\x1b such agent"}, MADE,
                       {"type": "plan_started", "stepCount": 1}, stepped("plan_step_started", agentId="calc", attempt=1),
                       stepped("plan_step_completed", status="completed", durationMs=4), {**END, "usagePlanning": {"inputTokens": 5}})
        out, said = s.cli("run", "count")
        places = [said.find(w) for w in ("plan " + PLAN, "planning: orchestrator is asked", "planning again: 2 problems: no? such agent",
                                         "planned: 1 step by llm: Adds.", "▸ a ", "✓ a ")]
        self.assertNotIn(-1, places, said)
        self.assertEqual(places, sorted(places))
        self.assertRegex(said, r"✓ a +calc +add\? it")
        self.assertEqual(out, "all\n")

    def test_no_plan_ends_with_3_and_the_reason(self):
        why = "the planner's answer is no plan"
        s = self.story(STARTED, {"type": "planning_failed", "attempt": 2, "reason": why, "failureKind": "invalid_plan"},
                       {**END, "status": "failed"}, **{"plan.result": {"planId": PLAN, "status": "failed", "failureReason": why}})
        self.assertIn("no plan: invalid_plan: " + why, s.cli("run", "count", code=3)[1])

    def test_interrupted_planning_needs_a_person_and_says_what_can_be_done(self):
        s = self.story(STARTED, {"type": "planning_failed", "attempt": 2, "reason": "gibberish"},
                       {"type": "plan_paused", "reason": "planning", "reviewId": PLAN + "/r1"})
        said = s.cli("run", "count", code=4)[1]
        for word in ("there is no plan yet", "baton approve %s --plan FILE" % PLAN, "baton reject " + PLAN):
            self.assertIn(word, said)

    def test_dry_run_prints_the_document_and_nothing_ran(self):
        document = {"goal": "count", "steps": [{"stepId": "a", "agentId": "calc", "skill": "add", "task": "add it"}]}
        s = self.story(STARTED, MADE, END, **{"plan.get": self.view(document={**document, "dryRun": True, "planner": "llm"})})
        out, said = s.cli("run", "count", "--dry-run", "--planner", "llm")
        self.assertEqual(read_yaml(out), document, "who runs it gives a plan: nobody makes it, and it is meant")
        self.assertIn("a → calc.add: add? it", said)
        self.assertTrue(s.of("plan.submit")[0]["dryRun"])
        self.assertEqual(s.of("plan.result"), [])

    def test_dry_run_as_json_has_the_plan_and_its_issues(self):
        document = {"goal": "count", "steps": []}
        issue = {"kind": "style", "warning": True, "message": "is short"}
        for problems, issues in (({"problems": [issue]}, [issue]), ({}, [])):
            s = self.story(STARTED, MADE, END, **{"plan.get": self.view(document=document), "plan.submit": {"planId": PLAN, "status": "pending", **problems}})
            said = json.loads(s.cli("run", "count", "--dry-run", "--planner", "llm", "--json")[0].splitlines()[-1])
            self.assertEqual((said["valid"], said["plan"], said["issues"]), (True, document, issues))


    def test_warnings_name_the_field_and_are_said_also_when_it_is_quiet(self):
        problems = [{"severity": "warning", "category": "style", "field": "budgt", "message": "is not known"},
                    {"severity": "warning", "category": "style", "stepId": "a", "message": "is short"}]
        s = self.story(END, **{"plan.submit": {"planId": PLAN, "problems": problems}})
        for quiet in ((), ("--quiet",)):
            said = s.cli("run", "count", *quiet)[1]
            self.assertIn("  warning: budgt: is not known [style]\n  warning: step a: is short [style]\n", said)
            self.assertEqual("plan " + PLAN in said, not quiet)

    def test_long_task_is_cut_with_a_mark(self):
        s = self.story(stepped("plan_step_started"), END, **{"plan.get": {
            "planId": PLAN, "status": "running", "lastSeq": 0, "steps": [{**STEP, "task": "read all of it in /var/log/dpkg.log and then say what it is"}]}})
        self.assertRegex(s.cli("run", "count")[1], r"calc +read all of it in /var/log/dpkg\.log and then…\n")


class Streamed(OnStage):
    ANSWER = (piece(0, "The sum\n"), piece(1, "is 4"), piece(2, "2.\x1b"))

    def shown(self, *events, answer, args=(), code=0, **more):
        s = self.story(STARTED, MADE, {"type": "synthesis_started", "agentId": "orchestrator"}, *events, answer=answer, **more)
        return s.terminal("run", "count", *args, code=code)

    def test_terminal_gets_the_answer_as_it_comes_and_once(self):
        out = self.shown(*self.ANSWER, {"type": "synthesis_finished", "ok": True}, END, answer="The sum\nis 42.\x1b")
        self.assertIn("The sum\nis 42.?\n", out)
        self.assertEqual(out.count("The sum"), 1)
        self.assertEqual(out.count("is 42"), 1)
        self.assertNotIn("\x1b[2J", out)

    def test_rest_of_an_answer_is_added(self):
        out = self.shown(self.ANSWER[0], END, answer="The sum\nis 42.")
        self.assertEqual((out.count("The sum"), out.count("is 42.")), (1, 1))

    def test_answer_that_broke_off_is_followed_by_what_came_in_its_place(self):
        out = self.shown(self.ANSWER[0], self.ANSWER[1], {"type": "synthesis_finished", "ok": False, "reason": "the agent died"}, END,
                         answer="42")
        self.assertRegex(out, r"(?s)is 4\n.*the results as they are: the agent died\n42\n")

    def test_answer_begins_anew_when_steps_were_tried_again(self):
        out = self.shown(piece(0, "first"), {"type": "synthesis_retry", "newSteps": 1, "revision": 2, "steps": [{"stepId": "a"}]},
                         piece(0, "second"), END, answer="second")
        self.assertRegex(out, r"(?s)first\n.*trying again: revision 2, new: a\n.*second\n")
        self.assertEqual(out.count("second"), 1)

    def test_pipe_and_json_get_the_final_text_alone(self):
        s = self.story(STARTED, MADE, *self.ANSWER, END, answer="The sum\nis 42.\x1b")
        out, said = s.cli("run", "count")
        self.assertEqual(out, "The sum\nis 42.\x1b\n")
        self.assertNotIn("is 4", said)
        s = self.story(STARTED, MADE, *self.ANSWER, {"type": "synthesis_finished", "ok": False}, END, answer="42")
        self.assertEqual(s.cli("run", "count")[0], "42\n")
        s = self.story(STARTED, MADE, *self.ANSWER, END, answer="x")
        self.assertEqual(json.loads(s.cli("run", "count", "--json")[0])["aggregatedResult"], "x")


class Plan(OnStage):
    DOCUMENT = {"goal": "count", "steps": [{"stepId": "a", "agentId": "calc", "task": "add"}]}

    def test_keyword_plans_are_linted_and_others_followed(self):
        lint = {"valid": True, "plan": self.DOCUMENT, "routes": [{"stepId": "a", "agentId": "calc", "skill": "add", "why": "it adds"}]}
        s = self.story(STARTED, MADE, END, **{"plan.lint": lint, "plan.get": self.view(document=self.DOCUMENT)})
        out, said = s.cli("plan", "count", "--planner", "keyword")
        self.assertEqual((read_yaml(out), s.of("plan.submit")), (self.DOCUMENT, []))
        self.assertIn("a → calc.add\n", said)
        self.assertNotIn("it adds", said)
        self.assertIn("a → calc.add: it adds\n", s.cli("plan", "count", "--planner", "keyword", "-v")[1])
        out, said = s.cli("plan", "count", "--planner", "llm", "--constraint", "c")
        self.assertEqual(read_yaml(out), self.DOCUMENT)
        self.assertIn("planning: orchestrator is asked", said)
        asked = s.of("plan.submit")[0]
        self.assertEqual((asked["dryRun"], asked["planner"], asked["constraints"]), (True, "llm", ["c"]))

    def test_daemon_whose_planner_is_an_agent_is_asked_for_a_dry_run(self):
        refusal = Refusal("INVALID", "the planner is llm: submit it with dryRun")
        s = self.story(STARTED, MADE, END, **{"plan.lint": refusal, "plan.get": self.view(document=self.DOCUMENT)})
        out, said = s.cli("plan", "count")
        self.assertEqual(read_yaml(out), self.DOCUMENT)
        self.assertNotIn("submit it with", said)
        self.assertNotIn("planner", s.of("plan.submit")[0])

    def test_daemon_that_cannot_say_who_plans_is_not_taken_for_one_that_plans_itself(self):
        s = self.story(STARTED, MADE, END, **{"plan.lint": Refusal("BUSY", "too much to do")})
        out, said = s.cli("plan", "count", code=6)
        self.assertEqual((out, len(s.of("plan.lint")), s.of("plan.submit")), ("", 1, []))
        self.assertIn("too much to do", said)

    def test_json_has_the_shape_of_a_lint(self):
        s = self.story(STARTED, MADE, END, **{"plan.get": self.view(document=self.DOCUMENT, about={"planner": "llm"})})
        shape = json.loads(s.cli("plan", "count", "--planner", "agent:p", "--json")[0])
        self.assertEqual((shape["valid"], shape["plan"], shape["planId"], shape["about"]), (True, self.DOCUMENT, PLAN, {"planner": "llm"}))

    def test_what_it_prints_can_be_run(self):
        s = self.story(STARTED, MADE, END, **{"plan.get": self.view(document=self.DOCUMENT)})
        path = s.file("plan.json", s.cli("plan", "count", "--planner", "llm")[0])
        s.cli("run", "--plan", path)
        self.assertEqual(s.of("plan.submit")[1]["plan"], self.DOCUMENT)

    def test_diff_compares_files_plans_and_revisions(self):
        documents = {None: self.DOCUMENT, 1: {"goal": "count", "steps": [{"stepId": "b", "agentId": "calc", "task": "subtract"}]}}
        s = Stage(self, {"plan.get": lambda r: {"planId": PLAN, "status": "running", "document": documents[r.get("revision")]}})
        out = s.cli("plan", "diff", PLAN + "@1", PLAN)[0]
        self.assertEqual([line[:8] for line in out.splitlines()], ["- step b", "+ step a"])
        self.assertEqual(s.of("plan.get"), [{"planId": PLAN, "document": True, "steps": False, "revision": 1},
                                            {"planId": PLAN, "document": True, "steps": False}])
        a = s.file("a.yaml", "tasks: [{id: a, agent: calc, task: add the two numbers up}]")
        b = s.file("b.json", {"steps": [{"stepId": "a", "agentId": "calc", "task": "add the two\u001b numbers up"}]})
        self.assertEqual(s.cli("plan", "diff", a, a)[0], "")
        self.assertIn("~ step a: task", s.cli("plan", "diff", a, b)[0])
        self.assertEqual(json.loads(s.cli("plan", "diff", a, b, "--json")[0])[0]["change"], "changed")
        s.cli("plan", "diff", a, "missing.yaml", code=2)
        s.cli("plan", "diff", PLAN + "@x", a, code=2)
        s.cli("plan", "diff", a, code=2)


class Cost(OnStage):
    def record(self, **more):
        return {"planId": PLAN, "task": "Ship\nit", "status": "completed", "planning": {"inputTokens": 1000, "outputTokens": 200, "costMicros": 6000},
                "execution": {"inputTokens": 10, "outputTokens": 5}, "synthesis": {"inputTokens": 50, "outputTokens": 35, "costMicros": 500000},
                "total": {"inputTokens": 1060, "outputTokens": 240, "costMicros": 506000}, "estimatedTokens": 1000, "totalCost": 0.506, **more}

    def test_one_plan_by_phase_against_what_was_estimated(self):
        s = Stage(self, {"plan.cost": {"plans": [self.record()], "total": self.record()}})
        out = s.cli("cost", PLAN)[0]
        for pattern in (r"✓ %s completed  Ship it" % PLAN, r"planning +1000 +200 +1200 +0.006\n", r"execution +10 +5 +15\n",
                        r"synthesis +50 +35 +85 +0.50\n", r"total +1060 +240 +1300 +0.506\n", r"estimated tokens 1000: 130 % of that"):
            self.assertRegex(out, pattern)
        self.assertEqual(s.of("plan.cost"), [{"planId": PLAN}])

    def test_many_plans_are_a_table_and_a_sum(self):
        s = Stage(self, {"plan.cost": {"plans": [self.record(), self.record()], "total": self.record(), "truncated": True}})
        out, said = s.cli("cost", "--session", "S", "--limit", "2")
        self.assertRegex(out, PLAN + r" +✓ +1200 +15 +85 +1300 +1000 +0.506 +Ship it\n")
        self.assertIn("\n2 plans\n", out)
        self.assertIn("more plans", said)
        self.assertEqual(s.of("plan.cost"), [{"sessionId": "S", "limit": 2}])
        self.assertEqual(json.loads(s.cli("cost", "--json")[0])["total"]["estimatedTokens"], 1000)
        s.cli("cost", "--since", "2h")
        since = [r["sinceMs"] for r in s.of("plan.cost")[1:]]
        self.assertAlmostEqual(since[1] - since[0], 22 * 3600 * 1000, delta=60000)

    def test_json_has_every_figure_also_those_that_are_nothing(self):
        spent = {"inputTokens": 0, "outputTokens": 0, "cachedTokens": 0, "costMicros": 0}
        s = Stage(self, {"plan.cost": {"total": {}}})
        answer = json.loads(s.cli("cost", "--json")[0])
        self.assertEqual(answer["plans"], [])
        for phase in ("planning", "execution", "replanning", "synthesis", "conversation"):
            self.assertEqual((answer["total"][phase], answer["total"][phase + "Tokens"]), (spent, 0))
        self.assertEqual((answer["total"]["total"], answer["total"]["totalCost"]), (spent, 0))
        s = Stage(self, {"plan.cost": {"plans": [{"planId": PLAN, "planning": {"inputTokens": 5}, "planningTokens": 5}], "total": {}}})
        plan = json.loads(s.cli("cost", PLAN, "--json")[0])["plans"][0]
        self.assertEqual([plan[p + "Tokens"] for p in ("planning", "execution", "replanning", "synthesis")], [5, 0, 0, 0])
        self.assertEqual(plan["planning"], {**spent, "inputTokens": 5})
        self.assertNotIn("conversation", plan)

    def test_what_excludes_each_other_is_refused(self):
        s = Stage(self, {})
        s.cli("cost", PLAN, "--since", "1h", code=2)
        s.cli("cost", PLAN, "--session", "S", code=2)
        s.cli("cost", "--since", "yesterday", code=2)
        self.assertEqual(s.asked, [])


RECIPE = {"recipe": {"name": "word-count", "title": "Count\x1b words", "description": "Counts."}, "goal": "count", "inputs": {"type": "object", "required": ["file"], "properties": {
    "file": {"type": "string", "description": "what to read"}, "n": {"type": "integer", "default": 3}}},
    "steps": [{"stepId": "a", "agentId": "calc", "task": "read {{inputs.file}} and say it", "parameters": {"n": "{{inputs.n}}"}}]}


class Recipes(OnStage):
    def setUp(self):
        self.s = self.story(END)
        self.home = {"XDG_CONFIG_HOME": self.s.work}
        os.makedirs(os.path.join(self.s.work, "baton", "recipes"))
        self.path = self.s.file("baton/recipes/words.json", RECIPE)
        self.s.file("baton/recipes/plain.yaml", "steps: [{stepId: a, agentId: calc, task: no recipe}]")

    def listed(self):
        """The recipes of our folder; those of the installed examples come after them."""
        return [r for r in json.loads(self.s.cli("recipes", "--json", env=self.home)[0]) if r["path"].startswith(self.s.work)]

    def test_list_has_every_recipe_of_the_folders_with_its_inputs(self):
        out = self.s.cli("recipes", env=self.home)[0]
        self.assertIn("word-count: Count? words  (1 step, %s)" % self.path, out)
        self.assertRegex(out, r"file +string +required +what to read\n +n +integer +else 3\n")
        found = self.listed()
        self.assertEqual([(r["name"], [i["name"] for i in r["inputs"]]) for r in found], [("word-count", ["file", "n"])])
        self.assertEqual(json.loads(self.s.cli("recipes", self.s.work, "--json")[0]), [])
        more = self.s.cli("recipes", "--dir", os.path.join(self.s.work, "baton", "recipes"), env={"XDG_CONFIG_HOME": "/nonexistent"})[0]
        self.assertIn("word-count: ", more)
        self.assertIn("no recipe", self.s.cli("recipes", os.path.join(self.s.work, "baton", "recipes", "plain.yaml"), code=2)[1])
        self.s.cli("recipes", "/nonexistent.yaml", code=2)

    def test_recipe_that_check_refuses_is_marked_in_the_list(self):
        self.assertNotIn("broken", self.s.cli("recipes", env=self.home)[0])
        self.s.file("baton/recipes/wrong.json", {**RECIPE, "recipe": {"name": "a b", "description": "Counts."}, "goal": "{{inputs.b}}"})
        out = self.s.cli("recipes", env=self.home)[0]
        self.assertRegex(out, r"a b: .*\n    broken: .*; see: baton recipes check %s\n" % self.path.replace("words", "wrong"))
        self.assertEqual(["broken" in r for r in self.listed()], [False, True])

    def test_agents_that_a_recipe_needs_are_told_in_the_list_and_when_one_is_missing(self):
        two = {**RECIPE, "steps": [*RECIPE["steps"], {"stepId": "b", "agentId": "exec", "task": "say it"}, {"stepId": "c", "agentId": "calc", "task": "add"}]}
        path = self.s.file("two.json", two)
        self.assertIn("    needs the agents calc, exec\n", self.s.cli("recipes", path)[0])
        self.assertEqual(json.loads(self.s.cli("recipes", path, "--json")[0])[0]["agents"], ["calc", "exec"])
        problem = {"severity": "error", "category": "missing_agent", "stepId": "b", "field": "agentId", "message": "Unknown agent: exec"}
        self.s.answers["plan.submit"] = Refusal("INVALID", "b: agentId: Unknown agent: exec", details={"problems": [problem]})
        said = self.s.cli("run", "--recipe", path, "--input", "file=f", code=2)[1]
        self.assertIn("it needs the agents calc, exec; baton agents lists", said)
        self.assertEqual(said.count("Unknown agent: exec"), 1, said)

    def test_check_lists_what_is_wrong(self):
        self.assertIn("valid", self.s.cli("recipes", "check", self.path)[1])
        wrong = self.s.file("wrong.json", {**RECIPE, "goal": "{{inputs.flie}}"})
        self.assertIn("flie", self.s.cli("recipes", "check", wrong, code=2)[1])
        self.assertFalse(json.loads(self.s.cli("recipes", "check", wrong, "--json", code=2)[0])["valid"])
        self.s.cli("recipes", "check", code=2)
        self.assertIn("see: baton recipes", self.s.cli("recipes", "check", "nobody", code=2)[1])

    def submitted(self, *args):
        self.s.cli("run", *args, env=self.home)
        return self.s.of("plan.submit")[-1]["plan"]["steps"][0]

    def test_recipe_runs_by_name_and_its_inputs_have_the_types_that_it_says(self):
        step = self.submitted("--recipe", "words", "--input", "file=42", "--input", "n=7")
        self.assertEqual((step["task"], step["parameters"]), ("read 42 and say it", {"n": 7}))
        step = self.submitted("--recipe", self.path, "--inputs", '{"file": "x", "n": 1}', "--input", "file=a=b")
        self.assertEqual((step["task"], step["parameters"]), ("read a=b and say it", {"n": 1}))
        step = self.submitted("--plan", self.path, "--input", "file=f")
        self.assertEqual(step["parameters"], {"n": 3})
        self.assertEqual(self.submitted("--recipe", "word-count", "--input", "file=f"), step, "by the name that it gives itself")

    def test_text_stays_text_where_the_recipe_takes_text(self):
        self.s.file("baton/recipes/types.json", {**RECIPE, "inputs": {"type": "object", "properties": {
            "n": {"type": ["string", "null"]}, "file": {"enum": ["12", 13]}}}})
        step = self.submitted("--recipe", "types", "--input", "n=7", "--input", "file=12")
        self.assertEqual((step["task"], step["parameters"]), ("read 12 and say it", {"n": "7"}))
        step = self.submitted("--recipe", "types", "--input", "n=null", "--input", "file=13")
        self.assertEqual(step["parameters"], {"n": None})

    def test_installed_examples_are_found_beside_the_program(self):
        prefix = os.path.join(self.s.work, "usr")
        os.makedirs(os.path.join(prefix, "bin"))
        shutil.copy(BIN / "baton", os.path.join(prefix, "bin", "baton"))
        shutil.copytree(ROOT / "deploy" / "examples", os.path.join(prefix, "share", "baton", "examples"))
        done = subprocess.run([os.path.join(prefix, "bin", "baton"), "recipes", "--json"], capture_output=True, text=True,
                              env={**os.environ, "XDG_CONFIG_HOME": "/nonexistent"})
        found = {r["name"]: r["path"] for r in json.loads(done.stdout)}
        for name in ("errors-by-hour", "dpkg-report"):
            self.assertIn(name, found, done.stderr)

    def test_wrong_inputs_are_told_and_nothing_runs(self):
        for args, said in ((("--input", "n=many", "--input", "file=f"), "of type integer"), (("--input", "file"), "NAME=VALUE"),
                           (("--input", "=f"), "NAME=VALUE"), ((), "file"), (("--inputs", "[]", "--input", "file=f"), "JSON object"),
                           (("--input", "file=f", "--input", "n=1.5"), "n")):
            self.assertIn(said, self.s.cli("run", "--recipe", "words", *args, code=2, env=self.home)[1], args)
        self.assertIn("no recipe 'wrods'", self.s.cli("run", "--recipe", "wrods", code=2, env=self.home)[1])
        self.assertEqual(self.s.of("plan.submit"), [])


class Views(OnStage):
    def test_review_of_planning_can_be_decided_with_a_plan(self):
        review = {"reviewId": PLAN + "/r1", "planId": PLAN, "kind": "planning", "prompt": "no plan: gibberish"}
        s = Stage(self, {"plan.get": {"planId": PLAN, "status": "waiting"}, "review.list": {"reviews": [review]}, "review.decide": {}})
        out = s.cli("reviews", PLAN)[0]
        for word in ("planning", "the whole plan", "no plan: gibberish", "--plan FILE"):
            self.assertIn(word, out)
        s.cli("approve", PLAN)
        s.cli("approve", PLAN, "--plan", s.file("p.yaml", "steps: [{stepId: a, agentId: calc, task: add}]"))
        self.assertEqual(s.of("review.decide"), [
            {"reviewId": PLAN + "/r1", "decision": "approve"},
            {"reviewId": PLAN + "/r1", "decision": "approve", "edit": {"plan": {"steps": [{"stepId": "a", "agentId": "calc", "task": "add"}]}}}])
        s.cli("approve", PLAN, "--plan", "p.yaml", "--edit", "{}", code=2)
        s.cli("decide", PLAN, "reject", "--plan", "p.yaml", code=2)
        self.assertEqual(len(s.of("review.decide")), 2)

    def test_plan_says_what_it_is_about_and_what_each_phase_took(self):
        s = Stage(self, {"plan.get": {
            "planId": PLAN, "status": "running", "phase": "synthesis", "query": "count", "steps": [STEP],
            "usage": {"inputTokens": 100, "outputTokens": 20}, "usagePlanning": {"inputTokens": 60}, "usageExecution": {"outputTokens": 20},
            "usageSynthesis": {"inputTokens": 40}, "about": {
                "description": "Adds\x1b up.", "successCriteria": "a number", "estimatedTokens": 500, "estimatedTotalTime": "a minute",
                "constraints": ["be quick"], "planner": "llm", "reasoning": "it is short"}}})
        out = s.cli("status", PLAN)[0]
        for word in ("running, synthesis\n", "  about: Adds? up.\n", "  done when: a number\n", "  must: be quick\n", "  planner: llm\n",
                     "  because: it is short\n", "  estimated: 500 tokens, a minute\n", "  spent: 120 tokens",
                     "    of it: planning 60, execution 20, synthesis 40\n"):
            self.assertIn(word, out)

    def test_plan_that_has_no_steps_yet_is_shown_as_planning(self):
        s = Stage(self, {"plan.get": {"planId": PLAN, "status": "pending", "phase": "planning", "paused": ["planning"], "steps": []}})
        out = s.cli("status", PLAN)[0]
        self.assertIn("pending, planning, paused (planning)\n", out)
        self.assertIn("baton approve %s plans again" % PLAN, out)


class Real(BatonTest):
    """The agent probe makes plans and answers as a test says; `plans` are its answers, the last one again and again."""

    def setUp(self):
        self.d = self.daemon(config="", agents=False)
        self.plans = [{"description": "One step.", "steps": [step(task="do the thing properly"), step("b", task="do it once more, please")]}]
        self.p = Probe(self.d, work=self.work, skills=("plan", "synthesize"))
        self.addCleanup(self.p.close)
        wait_up(self.d)

    def work(self, r):
        if r["purpose"] == "plan":
            plan = self.plans.pop(0) if len(self.plans) > 1 else self.plans[0]
            return {"outcome": "completed", "result": {"data": plan}, "usage": {"inputTokens": 70, "outputTokens": 30}}
        text = "In the end: 42." if r["purpose"] == "synthesize" else "done " + r["stepId"]
        return {"outcome": "completed", "result": {"text": text}, "usage": {"inputTokens": 10}}

    def purposes(self):
        return [r["purpose"] for r in self.p.of("step.execute")]

    def test_plan_is_made_edited_and_run(self):
        done = self.d.cli_any("plan", "count it", "--planner", "agent", "--constraint", "be quick")
        plan = read_yaml(done.stdout)
        self.assertIn("a → probe.do: do the thing properly", done.stderr)
        self.assertEqual(self.purposes(), ["plan"])
        self.assertEqual(self.p.of("step.execute")[0]["parameters"]["constraints"], ["be quick"])
        del plan["steps"][1]
        self.assertEqual(self.d.cli("run", "--plan", self.write_plan(self.d, "plan.json", plan)), "done a\n")
        self.assertEqual(self.purposes(), ["plan", "execute"])

    def test_goal_is_planned_run_and_answered(self):
        done = self.d.cli_any("run", "count it", "--planner", "agent:probe", "--synthesis", "agent")
        self.assertEqual((done.returncode, done.stdout), (0, "In the end: 42.\n"), done.stderr)
        for word in ("planning: probe is asked", "planned: 2 steps by agent:probe: One step.", "✓ b", "answering: probe is asked"):
            self.assertIn(word, done.stderr)
        self.assertIn("of it: planning 100, execution 20, synthesis 10", self.d.cli("status", done.stderr.split()[1]))

    def test_revisions_of_a_plan_are_compared(self):
        for planned in (True, False):
            self.plans = [{"steps": [step("a", requiresApproval=True, task="do the thing properly"), step("b", task="do it once more, please")]}]
            args = ("count it", "--planner", "agent") if planned else ("--plan", self.write_plan(self.d, "p.json", self.plans[0]))
            plan = self.d.cli("run", *args, "--detach").strip()
            until(lambda: self.d.ask("plan.get", planId=plan)["status"] == "waiting", 10, "it waits")
            new = self.write_plan(self.d, "new.json", step("n", task="do what came to mind later"))
            self.d.cli("modify", plan, "--insert", new, "--after", "a", "--reasoning", "later")
            self.d.cli("skip", plan, "b", "--reason", "enough")
            lines = self.d.cli("plan", "diff", plan + "@1", plan).splitlines()
            self.assertIn("+ step n (probe.do): do what came to mind later", lines)
            self.assertEqual(self.d.cli("plan", "diff", plan, plan + "@1").count("- step n"), 1)
            self.assertEqual(self.d.cli("plan", "diff", plan + "@2", plan + "@3"), self.d.cli("plan", "diff", plan + "@2", plan))
            self.assertEqual(self.d.cli("plan", "diff", plan + "@1", plan + "@1"), "")
            for wrong in ("@4", "@0"):
                done = self.d.cli_any("plan", "diff", plan + wrong, plan)
                self.assertEqual(done.returncode, 7, done.stderr)
            self.assertIn("no revision 4; its newest is 3", self.d.cli_any("plan", "diff", plan + "@4", plan).stderr)
            self.d.cli("cancel", plan)

    def test_file_is_compared_as_the_daemon_runs_it(self):
        path = self.write_plan(self.d, "p.json", {"steps": [step(task="do the thing properly")]})
        plan = self.d.cli("run", "--plan", path, "--detach").strip()
        self.assertNotIn("contextBudgetBytes", self.d.cli("plan", "diff", path, plan))

    def test_cost_of_what_was_planned_and_answered(self):
        self.d.cli("run", "count it", "--planner", "agent", "--synthesis", "agent")
        answer = json.loads(self.d.cli("cost", "--json"))
        self.assertEqual([answer["total"][p + "Tokens"] for p in ("planning", "execution", "synthesis")], [100, 20, 10])
        self.assertRegex(self.d.cli("cost"), r"(?s) 100 +20 +10 +130 .*count it\n.*planning +70 +30 +100\n.*total +100 +30 +130\n")
        self.assertIn("total", self.d.cli("cost", answer["plans"][0]["planId"]))

    def test_wrong_plan_is_sent_back_once_and_then_decided_by_a_person(self):
        self.plans = [{"steps": [step(agent="nobody")]}]
        done = self.d.cli_any("run", "count it", "--planner", "agent", "--on-invalid-plan", "interrupt")
        plan = done.stderr.split()[1]
        self.assertEqual(done.returncode, 4, done.stderr)
        for word in ("planning again: 1 problems", "nobody", "there is no plan yet"):
            self.assertIn(word, done.stderr)
        self.assertIn("planning", self.d.cli("reviews", plan))
        self.d.cli("approve", plan, "--plan", self.write_plan(self.d, "mine.json", {"steps": [step(task="do what I say, and well")]}))
        self.assertEqual(self.d.wait_plan(plan)["status"], "completed")
        self.assertEqual(self.purposes(), ["plan", "plan", "execute"])
        done = self.d.cli_any("run", "count it", "--planner", "agent")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("no plan", done.stderr)


if __name__ == "__main__":
    main()
