"""Plans of a model that means nothing by them: a real engine with random weights, held to a grammar, says all that the grammar
allows. And an opinion on plans of our own, in other words than the daemon's: what may hold of no plan that is let past.
Standard library only.
usage: hostile.py N [FIRST-SEED] >PLANS       asks the engine (tests/peers) for N plans, one per line
"""
import json
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "peers"))

CARDS = [json.loads(line) for line in (HERE / "cards.ndjson").read_text().splitlines()]
SKILLS = {c["agentId"]: {s["id"]: s for s in c["skills"]} for c in CARDS}
IDS = ["a", "b", "c", "d"]
STRANGERS = ["vault", "files ", "FILES", "", "supervisor", "*"]
TEXTS = ["do it", "read {{results.a.text}}", "{{results.b}} and {{results.zz}}", "{{results.c.rows.0.x}", "{{ results.a }}", "{{results.}}"]


def obj(required, **properties):
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


def some(items, low=0, high=4):
    return {"type": "array", "items": items, "minItems": low, "maxItems": high}


def one(*values):
    return {"enum": list(values)}


def alike(*schemas):
    return {"anyOf": list(schemas)}


WORD = {"type": "string", "maxLength": 8}
VALUE = alike(one(*TEXTS), {"type": "integer"}, {"type": "null"}, WORD, some(WORD, 0, 2))
WHO = one(*SKILLS, *STRANGERS)
PARAMETERS = alike(obj(["path"], path=one("/etc/hosts", *TEXTS)), obj(["expression"], expression=VALUE),
                   obj(["sql"], sql=VALUE, limit=VALUE), obj([]), obj(["command", "path"], command=VALUE, path=VALUE))
# What each agent takes: the right steps, but for their ids and what they depend on.
RIGHT = [("files", "read", {"path": "/etc/hosts"}), ("calc", "evaluate", {"expression": "1+1"}), ("calc", "report", {"wish": "all of it"}), ("calc", "report", {"data": "{{results.a}}"}),
         ("sql", "query", {"sql": "select 1", "limit": 5}), ("exec", "run", {"command": "uptime"})]


def right(step_id, needs):
    return alike(*[obj(["stepId", "agentId", "skill", "task", "parameters", "dependsOn"], stepId=step_id, agentId={"const": a},
                       skill={"const": s}, task=one("work on it", "go on", "do it now", "use {{results.b}}"), parameters={"const": p}, dependsOn=needs)
                   for a, s, p in RIGHT])


STEP = obj(["stepId", "agentId", "task"], stepId=one(*IDS), agentId=WHO,
           skill=one("read", "write", "evaluate", "query", "run", "sudo", ""), task=one(*TEXTS),
           parameters=PARAMETERS, dependsOn=some(one(*IDS, "nowhere", "a@1", ""), 0, 3))
POLICY = obj([], onFailure=one("abort", "replan", "never"), maxRetries={"type": "integer"}, gate=alike(WHO, {"type": "boolean"}),
             verifyWith=WHO, fallbackAgents=some(WHO, 0, 3), handoffTo=alike(one("*"), some(WHO)), replan=obj([], agentId=WHO),
             requiresApproval={"type": "boolean"}, budget=obj([], tokens={"type": "integer"}), maxConcurrency={"type": "integer"})
MAYBE_ID = alike(one(*IDS), {"type": "integer"}, {"type": "null"}, WORD)

# Each plan of the corpus is of one of these, in turn: from all wrong to nearly right.
SCHEMAS = [
    obj(["steps"], steps=some(STEP, 1, 5)),
    obj(["steps"], steps={"type": "array", "prefixItems": [right({"const": i}, some(one(*IDS[:4]), 0, 2)) for i in IDS]}),
    obj(["steps"], steps=some(right(one(*IDS), some(one(*IDS), 0, 2)), 2, 4)),
    obj(["steps"], policy=POLICY, steps={"type": "array", "prefixItems": [right({"const": i}, some(one(*IDS[:n]) if n else WORD, 0, n and 1))
                                                                          for n, i in enumerate(IDS[:3])]}),
    obj(["tasks"], tasks=some(obj(["id", "agent", "description"], id=MAYBE_ID, agent=WHO, description=one(*TEXTS), depends_on=some(MAYBE_ID, 0, 2)), 1, 4)),
    obj(["steps"], steps={"type": "array", "prefixItems": [
        obj(["stepId", "agentId", "skill", "task", "parameters"], stepId={"const": i}, agentId={"const": "files"}, skill={"const": "read"},
            task=one("read it", *TEXTS[:2]), parameters=obj(["path"], path=one("/x", "{{results.a.text}}", "{{results.b}}", "{{results.d}}")))
        for i in IDS[:3]]}),
    obj(["steps"], steps=alike(some(alike(STEP, WORD, {"type": "null"}), 0, 3), WORD, {"type": "null"}, {"type": "integer"}),
        goal=alike(WORD, {"type": "integer"}), policy=alike(POLICY, WORD)),
    obj(["steps"], steps=some(obj(["stepId", "agentId", "skill", "task", "parameters"], stepId={"type": "string", "pattern": "^[a-z]{1,2}$"},
                                  agentId={"const": "calc"}, skill={"const": "evaluate"}, task={"const": "sum"},
                                  parameters={"const": {"expression": "1+1"}}), 8, 24)),
    {"type": "object"},
]


def ask(engine, seed):
    """One plan, as the engine wrote it; the seed says which."""
    schema = SCHEMAS[seed % len(SCHEMAS)]
    answer = engine.chat("a plan", seed=seed, max_tokens=3000, response_format={"type": "json_schema", "json_schema": {"schema": schema}})
    return answer["choices"][0]["message"]["content"]


def plans(engine, n, first=1):
    """n plans, each on one line: outside of strings a line end is only a space, and in strings the grammar has none."""
    return [ask(engine, first + i).replace("\n", " ").replace("\r", " ") for i in range(n)]


# ---- the opinion ----

TEMPLATE = re.compile(r"\{\{\s*results\.([A-Za-z0-9_-]+)")


def strings(value):
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(item)


def before(steps):
    """{stepId: the ids of the steps that are over when it begins}; None when there is a circle."""
    if not any("dependsOn" in s for s in steps):
        return {s["stepId"]: {x["stepId"] for x in steps[:i]} for i, s in enumerate(steps)}
    needs = {s["stepId"]: set(s.get("dependsOn", [])) for s in steps}
    found = {}
    while len(found) < len(needs):
        ready = [i for i in needs if i not in found and needs[i] <= set(found)]
        if not ready:
            return None
        for i in ready:
            found[i] = needs[i].union(*[found[x] for x in needs[i]])
    return found


def wrong_step(step, known, ancestors):
    agent, skill = step.get("agentId"), step.get("skill", "")
    if agent not in SKILLS:
        return "agent %r" % agent
    if skill and skill not in SKILLS[agent]:
        return "skill %r of %s" % (skill, agent)
    if skill:
        given = step.get("parameters", {})
        schema = SKILLS[agent][skill]["inputSchema"]
        if [k for k in schema.get("required", []) if k not in given]:
            return "parameters are missing"
        if schema.get("additionalProperties") is False and set(given) - set(schema["properties"]):
            return "parameters that it does not have"
        for name, value in given.items():
            kind = schema["properties"].get(name, {}).get("type")
            template = isinstance(value, str) and value.startswith("{{results.")
            if not template and (kind == "string" and not isinstance(value, str) or kind == "integer" and not isinstance(value, int)):
                return "parameter %s is no %s" % (name, kind)
    for text in [step["task"], *strings(step.get("parameters", {}))]:
        for name in TEMPLATE.findall(text):
            if name not in known or name not in ancestors:
                return "a template of %r, which does not come before" % name
    return None


def wrong(plan):
    """What is wrong with a canonical plan that was let past; None when nothing is."""
    steps = plan.get("steps")
    if not isinstance(steps, list) or not 1 <= len(steps) <= 10000:
        return "steps"
    known = {s["stepId"] for s in steps}
    if len(known) != len(steps):
        return "two steps of one id"
    if not all(re.fullmatch(r"[A-Za-z0-9_.:-]{1,64}", i) for i in known):
        return "ids"
    for s in steps:
        needs = s.get("dependsOn", [])
        if set(needs) - known or s["stepId"] in needs or len(set(needs)) != len(needs):
            return "dependencies %s" % needs
    ancestors = before(steps)
    if ancestors is None:
        return "a circle"
    policy = plan.get("policy", {})
    grants = set(plan.get("grants", SKILLS))
    if grants - set(SKILLS) or not {s["agentId"] for s in steps if s.get("agentId")} <= grants:
        return "grants"
    for where in [policy, *steps]:
        for who in [where.get("gate"), where.get("verifyWith"), where.get("replan"), *(where.get("fallbackAgents") or [])]:
            who = who.get("agentId") if isinstance(who, dict) else who
            if isinstance(who, str) and who not in SKILLS:
                return "who is asked: %r" % who
    return next((w for w in (wrong_step(s, known, ancestors[s["stepId"]]) for s in steps) if w), None)


def main():
    import mkgguf
    import peers
    with tempfile.NamedTemporaryFile(suffix=".gguf") as f:
        f.write(mkgguf.noise())
        f.flush()
        engine = peers.Llama(f.name, context=8192)
        for plan in plans(engine, int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1):
            print(plan)
        engine.close()


if __name__ == "__main__":
    main()
