#!/usr/bin/env python3
"""protocol/PLANS.md against the plan reader: its fields, names, ranges, defaults, choices and examples.

`baton plan check` reads offline, plan_sieve prints the canonical document of a plan; only the page's commands need a daemon.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import BIN, ROOT, BatonTest

AGENTS = """
agents:
  - {agentId: files, command: ["${BATON_BIN}/baton-agent-files"], settings: {roots: ["%(work)s"]}}
  - {agentId: calc, command: ["${BATON_BIN}/baton-agent-calc"]}
"""
PAGE = (ROOT / "protocol/PLANS.md").read_text(encoding="utf-8")
PLAN = ROOT / "supervisor/plan"

# The maps of supervisor/plan/fields.def, which the reader and the schema are made of -> the section of the page.
DEF = (PLAN / "fields.def").read_text(encoding="utf-8")
MAPS = {"DOCUMENT": "document", "PHASE": "phase", "BRANCH": "branch", "STEP": "step", "COMMON": "common", "POLICY": "policy", "WAIT": "wait", "AMOUNTS": "amounts",
        "BACKOFF": "backoff", "AGENT": "agent", "REPLAN": "replan", "SYNTHESIS": "synthesis", "RECIPE": "recipe", "REPEAT": "repeat",
        "SUBPLAN": "subplan"}
CARD = {"agentId": "calc", "name": "Calculator", "version": "1", "skills": [
    {"id": "add", "name": "Add", "description": "adds"}, {"id": "plan", "name": "Plan", "description": "plans"}]}


def cells(line):
    return [c.strip() for c in line.strip().strip("|").split("|")]


def table_after(marker, text=PAGE):
    """The rows of the table that follows the marker, as lists of cells."""
    lines = text[text.index(f"<!-- {marker} -->"):].splitlines()[3:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append(cells(line))
    return rows


def documented(section):
    return {row[0].strip("`"): dict(zip(("type", "range", "default", "meaning"), row[1:])) for row in table_after(f"fields: {section}")}


SECTIONS = re.findall(r"<!-- fields: (\w+) -->", PAGE)
FIELDS = {section: documented(section) for section in SECTIONS}


def maps():
    """{map: [(FIELD | SEED | ALIAS | IGNORED, field, name)]}"""
    found = {}
    for name, body in re.findall(r"#ifdef FIELDS_(\w+)\n(.*?)#endif", DEF, re.S):
        rows = re.findall(r'^(FIELD|SEED|ALIAS|IGNORED)\((?:(\w+), )?"([$\w]+)"', body, re.M)
        assert len(rows) == len([line for line in body.splitlines() if "(" in line and line[0].isupper()]), name
        found[name] = rows
    return found


def names_of(rows):
    """(proper names, {proper: other names as the page has them}, ignored names)"""
    proper, others, ignored = {}, {}, set()
    for how, field, name in rows:
        if how == "IGNORED":
            ignored.add(name)
        elif how == "FIELD":
            proper[field] = name
        else:
            others.setdefault(proper[field], []).append("**`%s`**" % name if how == "SEED" else "`%s`" % name)
    return set(proper.values()), others, ignored


def sieve(plans):
    """Each plan through the reader: {"ok", "plan" | "problems"}."""
    with tempfile.NamedTemporaryFile("w", suffix=".ndjson") as cards:
        cards.write(json.dumps(CARD) + "\n")
        cards.flush()
        done = subprocess.run([BIN / "plan_sieve", cards.name], input="".join(json.dumps(p) + "\n" for p in plans), text=True,
                              capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(plans)
    return answers


def plan_with(section, field, value):
    """A small plan that is right but for this field; None where the field cannot stand in a plan that is submitted."""
    step = {"stepId": "a", "agentId": "calc", "skill": "add", "task": "Add two and three", "dependsOn": []}
    policy, plan = {}, {"policy": {}, "steps": [step]}
    if section == "document":
        plan[field] = value
    elif section == "step" and field in ("as", "maxItems", "onItemFailure", "maxConcurrency"):
        step.update({"forEach": [1], field: value})
    elif section == "step":
        step[field] = value
    elif section == "repeat":
        step["repeat"] = {"until": {"iteration": 1}, "max": 3, field: value}
    elif section == "common":
        step[field] = value
    elif section == "branch" and field != "steps":
        plan["steps"] = [step, {"switch": [{field: value, "steps": [{**step, "stepId": "b"}]}]}]
    elif section == "policy":
        policy[field] = value
    elif section == "wait":
        signal = {"signal": "paid"} if field in ("schema", "timeoutMs") else {}
        plan["steps"] = [step, {"stepId": "w", "dependsOn": [], "wait": {**signal, field: value}}]
    elif section == "amounts":
        policy["budget"] = {field: value}
    elif section == "agent":
        policy["gate"] = {"skill": "plan", field: value}
    elif section in ("backoff", "replan", "synthesis"):
        policy[section] = {field: value}
    else:
        return None
    plan["policy"] = policy
    return plan


def examples():
    """(kind, text, line) of every fenced block."""
    blocks = []
    for match in re.finditer(r"^```([^\n]*)\n(.*?)^```$", PAGE, re.S | re.M):
        blocks.append((match.group(1).strip(), match.group(2), PAGE[:match.start()].count("\n") + 1))
    return blocks


def check(verb, text):
    """(exit code, problems) of `baton plan check` or `baton recipes check`, without a daemon."""
    with tempfile.TemporaryDirectory() as state:
        path = pathlib.Path(state) / "example.yaml"
        path.write_text(text, encoding="utf-8")
        done = subprocess.run([BIN / "baton", *verb, path, "--json", "--state", pathlib.Path(state) / "none"], text=True, capture_output=True,
                              timeout=60)
    answer = json.loads(done.stdout) if done.stdout else {"problems": [done.stderr]}
    return done.returncode, answer["problems"]


class Fields(unittest.TestCase):
    def test_every_field_that_the_reader_knows_is_documented_and_no_other(self):
        self.assertEqual(set(maps()), set(MAPS))
        for name, rows in maps().items():
            self.assertEqual(set(FIELDS[MAPS[name]]), names_of(rows)[0], name)
        self.assertEqual(set(SECTIONS), set(MAPS.values()))

    def test_every_other_name_is_documented_in_the_order_in_which_it_wins(self):
        given = {}
        for section, field, others in table_after("aliases"):
            given.setdefault(section, {})[field] = others.split(" ")
        for name, rows in maps().items():
            self.assertEqual(given.get(MAPS[name], {}), names_of(rows)[1], name)

    def test_every_ignored_name_is_documented(self):
        places = {"DOCUMENT": "The members", "STEP": "of a step are ignored", "PHASE": "of a phase are ignored"}
        for table, rows in maps().items():
            for name in names_of(rows)[2]:
                self.assertIn(table, places)
                lines = [p for p in PAGE.split("\n\n") if "are ignored without a warning" in p.replace("\n", " ") and places[table] in p.replace("\n", " ")]
                self.assertTrue(any(f"`{name}`" in p for p in lines), f"{table}: {name}")


class Values(unittest.TestCase):
    """What the columns type, range and default say is what the reader does."""

    def rows(self, *types):
        for section, fields in FIELDS.items():
            for name, row in fields.items():
                stored = "stored document" in row["meaning"] and name != "dryRun"
                if row["type"] in types and not stored:
                    yield section, name, row

    def expect(self, cases):
        answers = sieve([plan for _, plan, _ in cases])
        for (what, plan, ok), answer in zip(cases, answers):
            self.assertEqual(answer["ok"], ok, f"{what}: {json.dumps(plan)} gave {answer.get('problems', '')}")

    def test_numbers_have_the_documented_range(self):
        cases = []
        for section, name, row in self.rows("integer", "ms", "number"):
            least, most = re.fullmatch(r"(\d+) to (\d+)", row["range"]).groups()
            whole = row["type"] != "number"
            soft = section == "document"  # wrong estimates are left out with a warning
            cases += [(f"{section}.{name} = least", plan_with(section, name, int(least)), True),
                      (f"{section}.{name} = most", plan_with(section, name, int(most)), True),
                      (f"{section}.{name} > most", plan_with(section, name, int(most) + (1 if whole else 0.5)), soft),
                      (f"{section}.{name} < least", plan_with(section, name, int(least) - 1), soft)]
        self.assertGreater(len(cases), 100)
        self.expect(cases)

    def test_choices_are_those_that_are_documented(self):
        policies = [re.match(r"\w+", row[0]).group(0) for row in table_after("choices: onFailure")]
        cases = []
        for section, name, row in self.rows("choice"):
            words = policies if "[onFailure]" in row["range"] else re.findall(r"`(\w+)`", row["range"])
            self.assertGreater(len(words), 1 if name != "status" else 0, name)
            for word in words:
                plan = plan_with(section, name, word)
                plan["policy"].setdefault("replan", {"agentId": "calc"})
                if word == "human_review":
                    del plan["steps"][0]["agentId"], plan["steps"][0]["skill"]
                cases.append((f"{section}.{name} = {word}", plan, True))
            cases.append((f"{section}.{name}", plan_with(section, name, "no-such-word"), False))
        self.assertGreater(len(cases), 20)
        self.expect(cases)

    def test_booleans_and_texts_take_nothing_else(self):
        cases = []
        for section, name, row in self.rows("boolean"):
            soft = section == "document"
            cases += [(f"{section}.{name}", plan_with(section, name, "yes"), soft), (f"{section}.{name}", plan_with(section, name, True), True)]
        for section, name, row in self.rows("text"):
            plan = plan_with(section, name, {"no": "text"})
            soft = name in ("description", "reasoning", "estimatedTotalTime")
            if plan is not None:
                cases.append((f"{section}.{name}", plan, soft))
        self.assertGreater(len(cases), 20)
        self.expect(cases)

    def test_defaults_are_those_of_the_canonical_document(self):
        step = {"stepId": "a", "agentId": "calc", "skill": "add", "task": "Add two and three", "dependsOn": []}
        policy = sieve([{"steps": [step], "policy": {"synthesis": {"agentId": "calc", "skill": "plan"}}}])[0]["plan"]["policy"]
        # What the policy holds under another name, or only where it was asked for.
        elsewhere = {"common": {"critical", "retryOn", "gate", "verifyWith", "fallbackAgents", "contextScope"},
                     "policy": {"continueOnFailure", "compensate", "agents", "handoffTo", "maxReplans", "maxReplansPerStep", "replanCooldownMs", "searchAgent", "synthesis", "budget", "replan",
                                "priority", "overlap", "waitForAgents"}}
        seen = 0
        for section, at in (("common", policy), ("policy", policy), ("backoff", policy["backoff"]), ("replan", policy["replan"]),
                            ("amounts", policy["budget"]), ("synthesis", policy["synthesis"])):
            for name, row in FIELDS[section].items():
                if name in elsewhere.get(section, set()) or row["type"] in ("map", "text"):
                    continue
                default = {"none": [], "false": False, "true": True}.get(row["default"], row["default"])
                value = at[name]
                self.assertEqual(value, type(value)(default), f"{section}.{name}")
                seen += 1
        self.assertGreater(seen, 30)
        self.assertEqual(policy["backoff"]["kind"], FIELDS["common"]["backoff"]["default"])
        self.assertEqual(policy["contextScope"], "deps")


class Lists(unittest.TestCase):
    def test_error_classes_and_whether_they_are_retried(self):
        text = (ROOT / "protocol/errors.def").read_text(encoding="utf-8")
        known = {name: again == "true" for name, again in re.findall(r"^CLASS\((\w+), (true|false)\b", text, re.M) if name != "NONE"}
        given = {}
        for retried, other in table_after("classes"):
            given |= {name: flag for name, flag in ((retried, True), (other, False)) if name}
        self.assertEqual(given, known)

    def test_problem_categories(self):
        text = (ROOT / "supervisor/core/plan/problem.c").read_text(encoding="utf-8")
        known = set(re.findall(r'\[PROBLEM_\w+\] = "(\w+)"', text)) | {"unroutable"}
        self.assertEqual({row[0] for row in table_after("categories")}, known)

    def test_limits(self):
        text = (ROOT / "protocol/limits.h").read_text(encoding="utf-8")
        enum = {name: eval(value, {"__builtins__": {}}) for name, value in re.findall(r"(LIMIT_\w+)\s*=\s*([\d *]+)", text)}
        names = {"steps of a plan": "LIMIT_STEPS", "dependencies of a plan": "LIMIT_EDGES", "agents of a plan": "LIMIT_PLAN_AGENTS",
                 "concurrency keys of a plan": "LIMIT_PLAN_KEYS",
                 "revisions of a plan": "LIMIT_REVISIONS", "attempts of a step": "LIMIT_ATTEMPTS", "bytes of a goal or a task": "LIMIT_TASK_BYTES",
                 "bytes of an id": "LIMIT_ID_BYTES", "bytes of a document": "LIMIT_CONTROL_BYTES"}
        rows = dict(table_after("limits"))
        self.assertEqual(set(rows), set(names))
        for what, value in rows.items():
            self.assertEqual(int(value), enum[names[what]], what)

    def test_links_inside_the_page_lead_somewhere(self):
        heads = {re.sub(r"[^a-z0-9 -]", "", h.lower()).strip().replace(" ", "-") for h in re.findall(r"^#+ (.*)$", PAGE, re.M)}
        for link in re.findall(r"\]\(#([\w-]+)\)", PAGE):
            self.assertIn(link, heads)

    def test_lines_fit(self):
        self.assertEqual([line for line in PAGE.splitlines() if len(line) > 100], [])


class Examples(unittest.TestCase):
    def test_every_example_is_read_without_a_problem(self):
        count = {}
        for kind, text, line in examples():
            count[kind] = count.get(kind, 0) + 1
            with self.subTest(kind=kind, line=line):
                if kind == "yaml plan":
                    self.assertEqual(check(("plan", "check"), text), (0, []))
                elif kind == "yaml recipe":
                    self.assertEqual(check(("recipes", "check"), text), (0, []))
                elif kind == "yaml steps":
                    self.assertEqual(check(("plan", "check"), "steps:\n" + text), (0, []))
                elif kind == "yaml policy":
                    inner = "".join("  " + part for part in text.splitlines(True))
                    plan = "policy:\n" + inner + "steps:\n- {agentId: calc, task: Add two and three, dependsOn: []}\n"
                    self.assertEqual(check(("plan", "check"), plan), (0, []))
                elif kind == "json change":
                    change = json.loads(text)
                    known = json.dumps({"steps": [{"stepId": s, "agentId": "a", "task": "What was completed"} for s in change["reuse"]] + change["steps"]})
                    self.assertEqual(check(("plan", "check"), known), (0, []))
                else:
                    self.assertEqual(kind, "sh", f"line {line}: what is a block of this kind?")
        self.assertGreaterEqual(count["yaml plan"], 4)
        self.assertGreaterEqual(count["yaml steps"], 3)
        for kind in ("yaml recipe", "yaml policy", "json change"):
            self.assertGreaterEqual(count[kind], 1)


class Commands(BatonTest):
    def test_commands_of_the_page_run_on_its_examples(self):
        """In a directory with the page's first plan and its recipe; the log is the small one: not every machine has its own."""
        d = self.daemon(config=AGENTS)
        shutil.copy(ROOT / "deploy/examples/dpkg.log", d.work / "dpkg.log")
        blocks = examples()
        recipes = d.work / "baton" / "recipes"
        recipes.mkdir(parents=True)
        first = next(text for kind, text, _ in blocks if kind == "yaml plan").replace("/var/log/dpkg.log", str(d.work / "dpkg.log"))
        recipe = next(text for kind, text, _ in blocks if kind == "yaml recipe")
        for path, text in ((d.work / "plan.yaml", first), (d.work / "line-count.yaml", recipe), (recipes / "line-count.yaml", recipe)):
            path.write_text(text)
        ran = 0
        for line in "".join(text for kind, text, _ in blocks if kind == "sh").splitlines():
            line = line.replace("/var/log/dpkg.log", str(d.work / "dpkg.log"))
            done = subprocess.run(["sh", "-c", line], cwd=d.work, text=True, capture_output=True, timeout=120, stdin=subprocess.DEVNULL,
                                  env={**os.environ, "PATH": "%s:%s" % (BIN, os.environ["PATH"]), "BATON_STATE": str(d.state), "XDG_CONFIG_HOME": str(d.work)})
            self.assertEqual(done.returncode, 0, line + "\n" + done.stdout + done.stderr)
            if " recipes " in line + " " and "check" not in line:
                self.assertIn("line-count", done.stdout)
            ran += 1
        self.assertGreaterEqual(ran, 6)


if __name__ == "__main__":
    unittest.main()
