"""What a subscriber may count on in each other vocabulary: members and order, written from the documents that they come from.

    check("agent-turn", said)                  # the objects of one plan or turn, in order
    check("agent-turn", said, whole=False)     # of a subscriber that began in the middle: pairs may lack their first half
"""
import re

UUID = re.compile("^[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}$")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


class Broken(AssertionError):
    pass


def need(condition, why, *what):
    if not condition:
        raise Broken("%s: %s" % (why, " ".join(map(repr, what))))


def members(said, required, optional=()):
    need(set(required) <= set(said), "members that must be there: %s" % sorted(set(required) - set(said)), said)
    need(set(said) <= set(required) | set(optional), "members that the document does not have", set(said) - set(required) - set(optional), said)


def is_count(value, least=0):
    need(isinstance(value, int) and not isinstance(value, bool) and value >= least, "a whole number", value)


# ---- ai-sdk: the stream of objects ----

def ai_sdk(said, whole):
    done = 0
    for n, e in enumerate(said):
        t = e["type"]
        if t == "progress":
            members(e, ("type",) + (("completed", "total") if whole else ()), ("completed", "total", "lastStep"))
            if whole:
                need(e["completed"] == done + 1, "progress counts one by one", e)
                need(e["completed"] <= e["total"], "no more than there are", e)
            done += 1
        elif t == "replan":
            members(e, ("type", "reason", "newSteps"))
            is_count(e["newSteps"])
        elif t == "complete":
            members(e, ("type", "results"))
            need(isinstance(e["results"], dict), "results by step", e)
        elif t == "error":
            members(e, ("type", "message"))
        else:
            raise Broken("no such type: %r" % e)
        need((t in ("complete", "error")) == (n == len(said) - 1), "complete or error is the last one", said[-2:])


# ---- plan-executor: §3.5 of its document ----

STEP = ("stepId", "stepIndex", "agentId", "agentName", "task")
BASE = ("type", "sessionId", "eventId", "timestamp")
PLAN_EXECUTOR = {
    "plan_generated": (("planId", "query", "steps", "estimatedSteps"), ()),
    "plan_step_started": (("planId",) + STEP, ()),
    "plan_step_completed": (("planId", "stepId", "stepIndex", "status"), ("result", "error")),
    "plan_completed": (("planId", "status"), ("summary", "failureReason")),
    "agent_handoff": (("handoffId", "fromAgent", "toAgent", "reason"), ("explanation",)),
}


def plan_executor(said, whole):
    whole = whole and len(said) > 1  # a plan that could not be made only ends
    started, ended = set(), set()
    for n, e in enumerate(said):
        t = e.get("type")
        need(t in PLAN_EXECUTOR, "a type of plan-executor", e)
        required, optional = PLAN_EXECUTOR[t]
        members(e, BASE + required, optional)
        need(UUID.match(e["eventId"]) and TIME.match(e["timestamp"]) and isinstance(e["sessionId"], str), "base fields", e)
        need((t == "plan_generated") == (n == 0) or not whole, "plan_generated is the first", e)
        need((t == "plan_completed") == (n == len(said) - 1), "plan_completed is the last", e)
        if t == "plan_generated":
            for i, s in enumerate(e["steps"]):
                members(s, STEP)
                need(s["stepIndex"] == i, "steps in order", s)
            need(e["estimatedSteps"] >= len(e["steps"]), "an estimate", e)
        elif t == "plan_step_started":
            need(e["stepIndex"] not in started | ended, "a step starts once", e)
            need(e["agentName"] or not e["agentId"], "a name falls back to the id", e)
            started.add(e["stepIndex"])
        elif t == "plan_step_completed":
            need(e["status"] in ("completed", "failed", "skipped"), "a status of plan-executor", e)
            need(e["stepIndex"] not in ended, "a step ends once", e)
            ended.add(e["stepIndex"])
        elif t == "plan_completed":
            need(e["status"] in ("completed", "failed", "cancelled"), "a status of plan-executor", e)
            need(started <= ended or not whole, "all that began has ended", started - ended)
        else:
            members(e["fromAgent"], ("agentId", "agentName"))
            members(e["toAgent"], ("agentId", "agentName"))
            need(e["fromAgent"]["agentId"] != e["toAgent"]["agentId"], "only when the agent changes", e)
            need(started or not whole, "a handoff is after a start", e)


# ---- agent-turn: the linear view of one turn ----

AGENT_TURN = {
    "turn_start": (("timestamp",), ()),
    "plan_created": (("stepCount", "steps"), ()),
    "plan_step_start": (("index", "stepCount", "tool", "args"), ()),
    "tool_call": (("toolCallId", "toolName", "args"), ()),
    "tool_result": (("toolCallId", "toolName"), ("result", "error")),
    "plan_step_end": (("index", "stepCount", "tool"), ("result", "error")),
    "text_delta": (("text", "index"), ()),
    "turn_end": (("message", "duration"), ()),
}


def agent_turn(said, whole):
    order = ["turn_start", "plan_created", "steps", "text_delta", "turn_end"]
    at, texts, open_steps, ids = 0, 0, {}, set()
    last = None
    for n, e in enumerate(said):
        t, p = e.get("type"), e.get("payload")
        members(e, ("type", "payload"), ("planId", "turnId"))
        need(t in AGENT_TURN, "a type of agent-turn, none of steering_mode or thinking", e)
        required, optional = AGENT_TURN[t]
        if not whole:
            required, optional = tuple(r for r in required if r != "stepCount"), optional + ("stepCount",)
        members(p, required, optional)
        place = order.index(t) if t in order else 2
        need(place >= at or (at == 3 and place == 2), "the fixed order of a turn", last, e)
        need(not whole or n > 0 or t == "turn_start", "a turn begins with turn_start", e)
        need(place != at or place in (2, 3) or n == 0 or not whole, "once in a turn", e)
        at = place
        if t == "plan_created":
            need(p["stepCount"] >= len(p["steps"]), "stepCount counts the steps", p)
            for s in p["steps"]:
                members(s, ("tool", "args"))
        elif t == "plan_step_start":
            need(p["index"] not in open_steps, "a step starts once", e)
            need("stepCount" not in p or p["index"] < p["stepCount"], "Step n of m", p)
            open_steps[p["index"]] = {"state": "start", "tool": p["tool"], "args": p["args"]}
            need(n + 1 < len(said) and said[n + 1]["type"] == "tool_call", "the call follows the start", e)
        elif t == "tool_call":
            need(last["type"] == "plan_step_start", "the call follows the start", e)
            s = open_steps[last["payload"]["index"]]
            need((p["toolName"], p["args"]) == (s["tool"], s["args"]), "the same tool", last, e)
            need(p["toolCallId"] not in ids, "a new id", e)
            ids.add(p["toolCallId"])
            s.update(state="call", id=p["toolCallId"])
        elif t == "tool_result":
            need(p["toolCallId"] in ids or not whole, "a result is of a call", e)
            need(n + 1 < len(said) and said[n + 1]["type"] == "plan_step_end", "the step ends with the result", e)
            need(not ("result" in p and "error" in p), "a result or an error", e)
        elif t == "plan_step_end":
            need(last["type"] == "tool_result", "the step ends with the result", e)
            r = last["payload"]
            need((p["tool"], p.get("result"), p.get("error")) == (r["toolName"], r.get("result"), r.get("error")), "the same result", last, e)
            s = open_steps.get(p["index"])
            need((s and s["state"] == "call" and s["id"] == r["toolCallId"]) or not whole, "the step has started", e)
            if s:
                s["state"] = "end"
        elif t == "text_delta":
            need(p["index"] == texts or not whole, "texts are counted", e)
            texts += 1
        elif t == "turn_end":
            is_count(p["duration"])
            need(n == len(said) - 1, "turn_end is the last", said[n:])
            need(all(s["state"] == "end" for s in open_steps.values()) or not whole, "all steps have ended", open_steps)
            need(texts > 0 or not p["message"], "the answer was told as text", e)
        last = e
    need(at == 4, "a turn ends", last)


# ---- ptc-runner: type event/0 ----

PTC_RUNNER = {
    "planning_started": (("mission",), ()),
    "planning_finished": (("task_count", "plan"), ()),
    "planning_failed": (("reason",), ()),
    "planning_retry": (("validation_errors",), ()),
    "execution_started": (("mission", "task_count"), ()),
    "execution_finished": (("status", "duration_ms"), ()),
    "task_started": (("task_id", "attempt"), ()),
    "task_succeeded": (("task_id", "duration_ms"), ()),
    "task_failed": (("task_id", "reason"), ()),
    "task_skipped": (("task_id", "reason"), ()),
    "verification_failed": (("task_id", "diagnosis"), ()),
    "quality_gate_started": (("task_id",), ()),
    "quality_gate_passed": (("task_id",), ()),
    "quality_gate_failed": (("task_id", "missing"), ()),
    "quality_gate_error": (("task_id", "reason"), ()),
    "replan_started": (("task_id", "diagnosis", "total_replans"), ()),
    "replan_finished": (("new_tasks",), ()),
    "task_step": (("task_id", "step"), ()),
}
COUNTS = ("task_count", "duration_ms", "attempt", "validation_errors", "total_replans", "new_tasks")


def ptc_runner(said, whole):
    planning = running = replanning = False
    executed = last = None
    tasks, gates, replans = {}, set(), 0
    for e in said:
        t, p = e.get("type"), e.get("payload")
        members(e, ("type", "payload"), ("planId",))
        need(t in PTC_RUNNER, "an event of ptc-runner", e)
        required = PTC_RUNNER[t][0]
        may_lack = () if whole else ("mission", "task_count", "duration_ms")
        members(p, [r for r in required if r not in may_lack], may_lack)
        need(set(p) <= set(required), "members of the type", e)
        for name in COUNTS:
            if name in p:
                is_count(p[name], 1 if name == "attempt" else 0)
        in_execution = not t.startswith(("planning_", "execution_"))
        need(running or not in_execution or not whole, "%s is in an execution" % t, e)
        if t == "planning_started":
            need(not planning and executed is None, "planning is before all", e)
            planning = True
        elif t.startswith("planning_"):
            need(planning or not whole, "%s is in planning" % t, e)
            planning = t == "planning_retry"
        elif t == "execution_started":
            need(not running and not planning, "one execution at a time", e)
            need(executed in (None, "waiting") or last == "replan_finished", "another one only after waiting or a replan", e)
            running = True
        elif t == "execution_finished":
            need(running or not whole, "what finishes has started", e)
            need(p["status"] in ("ok", "error", "waiting"), "a status", e)
            running, executed = False, p["status"]
        elif t == "task_started":
            need(tasks.get(p["task_id"]) != "started", "a task starts once", e)
            tasks[p["task_id"]] = "started"
        elif t in ("task_succeeded", "task_failed"):
            need(tasks.get(p["task_id"]) == "started" or not whole, "what ends has started", e)
            tasks[p["task_id"]] = t
        elif t == "task_skipped":
            need(p["reason"] == "already_completed", "the one reason", e)
            need(tasks.get(p["task_id"]) in (None, "task_succeeded", "task_skipped"), "skipped because it was done", e)
            tasks[p["task_id"]] = t
        elif t == "quality_gate_started":
            gates.add(p["task_id"])
        elif t.startswith("quality_gate_"):
            need(p["task_id"] in gates or not whole, "a verdict is of a gate", e)
            need(t != "quality_gate_failed" or isinstance(p["missing"], list), "missing is a list", e)
            gates.discard(p["task_id"])
        elif t == "replan_started":
            need(p["total_replans"] == replans + 1 or not whole, "replans are counted", e)
            need(tasks.get(p["task_id"]) == "task_failed" or not whole, "it has failed before it is replanned", e)
            replans, replanning = replans + 1, True
        elif t == "replan_finished":
            need(replanning or not whole, "what finishes has started", e)
            running = replanning = False
        need(last != "replan_finished" or t == "execution_started", "a repair plan is executed anew", e)
        last = t
    need(not running, "an execution finishes", said[-1:])


TELEMETRY = {
    ("plan", "generated"): ((), ("plan", "mission")),
    ("execution", "start"): ((), ("plan", "mission", "attempt")),
    ("execution", "stop"): (("duration",), ("status", "results")),
    ("task", "start"): ((), ("task_id", "task", "attempt")),
    ("task", "stop"): (("duration",), ("task_id", "status", "result")),
    ("replan", "start"): ((), ("task_id", "diagnosis", "attempt")),
    ("replan", "stop"): ((), ("new_task_count",)),
}


def ptc_runner_telemetry(said, whole):
    open_tasks, running, stopped, last, starts = set(), False, False, None, 0
    for e in said:
        members(e, ("event", "measurements", "metadata"), ("planId",))
        need(e["event"][:2] == ["ptc_runner", "plan_executor"], "the prefix", e)
        what = tuple(e["event"][2:])
        need(what in TELEMETRY, "one of the seven", e)
        measurements, metadata = TELEMETRY[what]
        members(e["measurements"], measurements)
        may_lack = ("result",) + (() if whole else ("plan", "mission", "attempt"))
        members(e["metadata"], [m for m in metadata if m not in may_lack], may_lack)
        m = e["metadata"]
        need(running or not whole or what in (("plan", "generated"), ("execution", "start")), "in an execution", e)
        if what == ("execution", "start"):
            need(not stopped and (not running or last == ("replan", "stop")), "another one only after a replan", e)
            running, starts = True, starts + 1
            need(m.get("attempt", starts) == starts, "attempts are counted", e)
            ids = [t["id"] for t in m["plan"]["tasks"]] if "plan" in m else []
            need(len(ids) == len(set(ids)), "a plan has each task once", e)
        elif what == ("execution", "stop"):
            need(m["status"] in ("ok", "error") and isinstance(m["results"], dict), "status and results", e)
            running, stopped = False, True
        elif what == ("task", "start"):
            need(m["task_id"] not in open_tasks, "a task starts once", e)
            open_tasks.add(m["task_id"])
        elif what == ("task", "stop"):
            need(m["task_id"] in open_tasks or not whole, "what stops has started", e)
            need(m["status"] in ("ok", "error", "skipped"), "a status", e)
            open_tasks.discard(m["task_id"])
        elif what == ("replan", "start"):
            need(m["task_id"] not in open_tasks, "it has stopped before it is replanned", e)
        need(last != ("replan", "stop") or what == ("execution", "start"), "a repair plan is executed anew", e)
        last = what
    need(not running, "an execution stops", said[-1:])


# ---- orchestrator-log: log events, and the planner's interrupt ----

def orchestrator_log(said, whole):
    begun = set()
    for e in said:
        if "event" not in e:
            if e["type"] == "APPROVAL_REQUIRED":
                members(e, ("type", "context", "metadata"))
                members(e["context"], ("node",), ("task_id", "agent", "prompt"))
                members(e["metadata"], ("kind", "review_id"))
                need(("task_id" in e["context"]) == (e["context"]["node"] == "agent"), "the task that waits", e)
                continue
            error = e.get("context", {}).get("error")
            need(e == {"type": "ERROR_RECOVERY", "context": {"error": error, "node": "planner"}, "metadata": {"recoverable": True}}, "InterruptData", e)
            need(error and isinstance(error, str), "what was wrong", e)
            continue
        need(e["event"] in ("task_started", "task_completed", "task_failed"), "one of the three", e)
        members(e, ("event", "timestamp", "planId", "task_id"), ("description", "agent", "result", "error"))
        if e["event"] == "task_started":
            begun.add(e["task_id"])
        else:
            need(e["task_id"] in begun or not whole, "what ends has started", e)
            begun.discard(e["task_id"])


CHECKS = {"ai-sdk": ai_sdk, "plan-executor": plan_executor, "agent-turn": agent_turn, "ptc-runner": ptc_runner,
          "ptc-runner-telemetry": ptc_runner_telemetry, "orchestrator-log": orchestrator_log}


def check(vocabulary, said, whole=True):
    """Raises Broken with what is wrong and where."""
    CHECKS[vocabulary](said, whole)
