"""`schedules:` of the configuration: put at the start and at a reload, replaced, deleted; those of clients are left alone."""
import json

from harness import BatonTest, main, until

CONFIG = """
agents:
  - agentId: calc
    command: ["${BATON_BIN}/baton-agent-calc"]
schedules: %s
"""
STEPS = {"steps": [{"stepId": "a", "agentId": "calc", "skill": "evaluate", "task": "Calculate the answer of the day", "parameters": {"expression": "6*7"}}]}
RECIPE = """
inputs: {type: object, properties: {n: {type: integer}}, required: [n]}
steps:
  - {stepId: a, agentId: calc, skill: evaluate, task: Calculate the answer of the day, parameters: {expression: "{{inputs.n}}+1"}}
"""


def one(name="nightly", **more):
    return {"name": name, "plan": STEPS, **({"cron": "0 3 * * *", "tz": "Europe/Berlin"} if not {"everyMs", "at"} & set(more) else {}), **more}


class Declared(BatonTest):
    def start(self, *schedules):
        self.d = self.daemon(config=CONFIG % json.dumps(list(schedules)).replace("%", "%%"))
        return self.d

    def write(self, *schedules):
        text = self.d.config.read_text()
        self.d.config.write_text(text[:text.index("schedules:")] + "schedules: %s\n" % json.dumps(list(schedules)))

    def reload(self, *schedules):
        self.write(*schedules)
        return {c["key"]: (c["file"], c.get("live")) for c in self.d.ask("supervisor.reload").get("changes", [])}

    def names(self):
        return sorted(s["name"] for s in self.d.ask("schedule.list")["schedules"])

    def wait_names(self, *names):
        until(lambda: self.names() == sorted(names), 20, "schedules %s" % (names,))

    def get(self, name="nightly"):
        return self.d.ask("schedule.get", name=name)["schedule"]

    def test_put_at_the_start_and_fired_as_the_operators_plans(self):
        self.start(one(), one("often", everyMs=1000, overlap="allow"))
        self.wait_names("nightly", "often")
        view = self.get()
        self.assertEqual((view["status"], view["cron"], view["tz"], view["owner"]), ("active", "0 3 * * *", "Europe/Berlin", "(configuration)"))
        fired = until(lambda: [e for e in self.d.events() if e["type"] == "schedule_fired"], 20, "a fire")
        plan = self.d.wait_plan(fired[0]["firedPlanId"])
        self.assertEqual((plan["status"], plan["schedule"], plan.get("owner", "")), ("completed", "often", self.d.wait_plan(self.d.submit(STEPS)).get("owner", "")))
        created = self.get()["createdAt"]
        self.d.kill9()
        self.d.start()
        until(lambda: len([e for e in self.d.events() if e["type"] == "schedule_fired"]) > len(fired), 20, "it goes on after a crash")
        self.assertEqual((self.get()["createdAt"], self.names()), (created, ["nightly", "often"]), "what is as it was is not put again")
        times = [e["scheduledFor"] for e in self.d.events() if e["type"] == "schedule_fired"]
        self.assertEqual(len(times), len(set(times)), "each time once")

    def test_a_reload_replaces_adds_and_deletes(self):
        self.start(one(), one("gone", everyMs=1000, overlap="allow"))
        self.wait_names("nightly", "gone")
        self.d.ask("schedule.pause", name="nightly", reason="not now")
        until(lambda: self.get("gone").get("fired", 0) > 0, 20, "a fire")
        changes = self.reload(one(cron="0 4 * * *"), one("new"))
        self.assertEqual(changes, {"schedules.nightly": ("changed", True), "schedules.new": ("added", True), "schedules.gone": ("removed", True)})
        self.wait_names("nightly", "new")
        view = until(lambda: (lambda v: v if v["cron"] == "0 4 * * *" else None)(self.get()), 20, "the new rule")
        self.assertEqual((view["status"], view["reason"]), ("paused", "not now"), "who paused it has not resumed it")
        self.assertEqual(self.reload(one(cron="0 4 * * *"), one("new")), {}, "nothing has changed")
        self.write(one("new"))
        self.d.stop()
        self.d.start()
        self.wait_names("new")

    def test_who_reloads_sees_what_is_refused(self):
        self.start(one())
        self.wait_names("nightly")
        self.write(one(), one("lost", plan={"steps": [{"stepId": "a", "agentId": "nobody", "skill": "x", "task": "do it"}]}))
        done = self.d.cli_any("reload")
        self.assertEqual((done.returncode, done.stdout.splitlines()[0]), (1, "applied  schedules.lost: added"))
        self.assertRegex(done.stdout.splitlines()[-1], r"^refused  schedules\.lost: .*nobody")
        refused = self.d.ask("schedule.list")["refused"]
        self.assertEqual([r["name"] for r in refused], ["lost"])
        self.assertEqual(refused[0]["error"].count("nobody"), 1, "the mistake is said once")
        answer = self.d.cli_any("reload", "--json")
        told = json.loads(answer.stdout)
        self.assertEqual((answer.returncode, answer.stderr, told["ok"], told["refused"]), (1, "", False, refused))
        said = self.d.cli_any("schedule", "list")
        self.assertEqual(said.returncode, 0)
        self.assertIn("refused: schedule lost of the configuration: ", said.stderr)
        self.write(one())
        done = self.d.cli_any("reload")
        self.assertEqual((done.returncode, done.stdout), (0, "applied  schedules.lost: removed\n"))
        self.assertNotIn("refused", self.d.ask("schedule.list"))

    def test_schedules_of_clients_stay_and_clients_do_not_change_what_is_declared(self):
        self.start()
        for name in ("hers", "nightly"):
            self.d.ask("schedule.put", name=name, everyMs=3600000, plan=STEPS)
        self.reload(one(), one("mine"))
        self.wait_names("hers", "nightly", "mine")
        until(lambda: "schedule=nightly" in self.d.log(), 20, "it says why")
        self.assertIn("a client has put a schedule 'nightly'", self.d.log())
        self.assertEqual((self.get()["everyMs"], self.get()["owner"] != "(configuration)"), (3600000, True))
        for kind, more in (("schedule.put", {"everyMs": 1000, "plan": STEPS}), ("schedule.delete", {})):
            answer = self.d.ask_raw(kind, name="mine", **more)
            self.assertEqual((answer["ok"], answer["error"]["code"]), (False, "CONFLICT"), answer)
            self.assertIn("the configuration declares", answer["error"]["message"])
        self.assertEqual(self.d.ask("schedule.pause", name="mine")["status"], "paused")
        self.assertEqual(self.d.wait_plan(self.d.ask("schedule.trigger", name="mine")["planId"])["status"], "completed")
        self.reload()
        self.wait_names("hers", "nightly")
        self.d.ask("schedule.delete", name="nightly")
        self.reload(one())
        self.wait_names("hers", "nightly")
        self.assertEqual(self.get()["owner"], "(configuration)")

    def test_what_is_wrong_names_its_place_and_the_others_are_put(self):
        self.start()
        wrong = [one("b", tz="Europe/Atlantis"), one("c", plan={"steps": [{"stepId": "x", "agentId": "nobody", "task": "nothing at all to do"}]}),
                 {"name": "d", "cron": "@daily"}, one("e", inputs={"n": 1})]
        self.reload(*wrong, one("fine"))
        self.wait_names("fine")
        for name, words in (("b", "Atlantis"), ("c", "nobody"), ("d", "expected a plan (or a recipe), or a goal"), ("e", "they are for a recipe")):
            line = until(lambda name=name: [x for x in self.d.log().splitlines() if "schedule.refused" in x and "schedule=%s " % name in x], 90, "why %s is not put" % name)[0]
            self.assertIn(words, line)
        self.assertEqual(self.names(), ["fine"])
        for schedule, words in ((one("a", cron="61 * * * *"), "schedules.0.cron: field 1 (minute), at character 1: '61' does not fit: expected 0 to 59"),
                                ({"name": "a", "crom": "@daily"}, "did you mean \"cron\""), (one("a", recipe="/nowhere.yaml"), "expected either"),
                                ({"name": "a", "cron": "@daily", "recipe": "/nowhere.yaml"}, "there is no such file"),
                                ({"name": "a", "cron": "@daily", "recipe": "x.yaml"}, "absolute")):
            self.write(schedule)
            answer = self.d.ask_raw("supervisor.reload")
            self.assertIn(words, answer["error"]["message"], answer)
        self.write(one("a"), one("a"))
        self.assertIn("schedules.1.name: stands here twice", self.d.ask_raw("supervisor.reload")["error"]["message"])
        self.assertEqual(self.names(), ["fine"], "a file that is refused changes nothing")

    def test_a_recipe_of_a_file_and_its_inputs(self):
        self.start()
        (self.d.config.parent / "r.yaml").write_text(RECIPE)
        self.reload({"name": "r", "cron": "@daily", "recipe": "${CONFIG_DIR}/r.yaml", "inputs": {"n": 41}})
        self.wait_names("r")
        self.assertEqual(self.d.wait_plan(self.d.ask("schedule.trigger", name="r")["planId"])["steps"][0]["result"], "42")
        (self.d.config.parent / "r.yaml").write_text(RECIPE.replace("+1", "+2"))
        self.assertEqual(list(self.d.ask("supervisor.reload")["changes"][0].values())[0], "schedules.r")
        until(lambda: self.d.wait_plan(self.d.ask("schedule.trigger", name="r")["planId"])["steps"][0]["result"] == "43", 20, "the new file counts")


if __name__ == "__main__":
    main()
