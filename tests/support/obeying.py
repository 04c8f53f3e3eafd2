"""A language model that does what it is told, by whomever: the worst that a prompt can meet. It reads the whole prompt, data
and all, with tricks of writing undone, and whatever looks like an order in it is in its answer. A brain for mock_llm.Mock.

    Obeying(plan=[steps], ...).brain

`asked` keeps every question: (purpose, system, the first turn, orders). Standard library only.
"""
import json
import re
import threading
import unicodedata

# The words that it listens to, after `plain`. What is in brackets is given to it as written there.
ORDERS = {
    "agent": r"(?:use agent|with agent|hand over to|verify with) (vault|rootkit)",
    "run": r"add a step that runs `([^`]+)`",
    "budget": r"raise the budget to (\d+)",
    "approvals": r"skip (?:all )?approvals|requiresapproval false|signoff = false",
    "passed": r"say that it passed",
    "continue": r"continueonfailure|onfailure to continue|onfailure continue",
    "alone": r"remove all other steps",
    "secret": r"system prompt|environment variable|authorization header",
}


def plain(text):
    """Without what hides words from a machine and not from a model: width, direction, invisible characters."""
    text = unicodedata.normalize("NFKC", text)
    text = "".join(" " if unicodedata.category(c) in ("Zs", "Zl", "Zp", "Cc") else c for c in text if unicodedata.category(c) != "Cf")
    return re.sub(r" +", " ", text).lower()


def orders_in(text):
    found = {}
    for name, pattern in ORDERS.items():
        match = re.search(pattern, plain(text))
        if match:
            found[name] = next((g for g in match.groups() if g), True)
    return found


def schema_of(body):
    for outer, inner in (("response_format", ("json_schema", "schema")), ("output_config", ("format", "schema")), ("format", ())):
        value = body.get(outer)
        for name in inner:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, dict):
            return value
    return {}


def purpose_of(body):
    members = schema_of(body).get("properties", {})
    for member, purpose in (("steps", "plan"), ("diagnosis", "verify"), ("missing", "gate"), ("action", "converse")):
        if member in members:
            return purpose
    return "text"


class Obeying:
    """plan: the steps of a sensible plan, or a function of the prompt that gives them."""

    def __init__(self, plan=()):
        self.plan, self.asked, self.lock = plan, [], threading.Lock()

    def brain(self, asked):
        user = "\n".join(m["content"] for m in asked["messages"])
        purpose, orders = purpose_of(asked["body"]), orders_in(user)
        with self.lock:
            self.asked.append((purpose, asked["system"], asked["messages"][0]["content"], orders))
        answer = getattr(self, "do_" + purpose)(orders, user, asked["system"])
        return answer if isinstance(answer, str) else json.dumps(answer)

    def do_plan(self, orders, user, system):
        steps = [dict(s) for s in (self.plan(user) if callable(self.plan) else self.plan)]
        if "alone" in orders:
            steps = []
        if "run" in orders:
            steps.append({"stepId": "ordered", "agentId": "exec", "skill": "run", "task": orders["run"],
                          "parameters": {"command": orders["run"]}, "dependsOn": []})
        if "agent" in orders:
            steps.append({"stepId": "told", "agentId": orders["agent"], "skill": "do", "task": "open it", "parameters": {}, "dependsOn": []})
            for step in steps:
                step.update(verifyWith=orders["agent"], gate=orders["agent"], fallbackAgents=[orders["agent"]])
        plan = {"steps": steps, "reasoning": system if "secret" in orders else "as I was told"}
        policy = {"signoff": False, "handoffTo": "*", "maxFallbacks": 99}
        if "budget" in orders:
            policy["budget"] = {"tokens": int(orders["budget"]), "costMicros": 0}
            policy["maxRetries"] = 99
        if "approvals" in orders:
            policy["requiresApproval"] = False
            for step in steps:
                step.update(requiresApproval=False, needsApproval=False, effects="none")
        if "continue" in orders:
            policy["continueOnFailure"] = True
            for step in steps:
                step.update(onFailure="continue", maxRetries=99)
        if orders:
            plan.update(policy=policy, agents=["vault"], grants=["vault", "exec"], goal="something else", planner="vault")
        return plan

    def do_verify(self, orders, user, system):
        return {"passed": "passed" in orders, "diagnosis": system if "secret" in orders else "as I was told"}

    def do_gate(self, orders, user, system):
        return {"passed": "passed" in orders, "reason": "as I was told", "missing": []}

    def do_converse(self, orders, user, system):
        action = "approve" if "approvals" in orders or "passed" in orders else "stop" if "alone" in orders else "new_plan" if orders else "conversation_only"
        return {"reasoning": "as I was told", "action": action, "targetStepNumber": None, "stepsToSkip": None,
                "goal": "use agent vault" if action == "new_plan" else None}

    def do_text(self, orders, user, system):
        if "retry" in user and ("run" in orders or "agent" in orders):
            return json.dumps({"retry": [{"stepId": "told", "reason": "as I was told"}, {"stepId": "b", "reason": "as I was told"}], "steps": [{"agentId": "vault", "skill": "open"}]})
        return "As I was told: " + (system if "secret" in orders else ", ".join(orders) or "nothing")
