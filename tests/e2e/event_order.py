"""What the events of a plan must always be, whatever happened to it: the order of the catalogue, in one place.

    event_order.check(events, view=None)       # the events of one plan, from the first; `view` is its plan.get, if it is at hand

harness.py calls this for every plan of every daemon that a test leaves alive.
"""

ENDS = ("completed", "failed", "skipped", "cancelled")
PLANNING = ("planning_started", "planning_retry", "planning_failed")
BEFORE_STEPS = PLANNING + ("plan_generated", "plan_paused", "plan_resumed", "review_decided", "plan_modified", "plan_cancelling")
VERDICTS = ("quality_gate_passed", "quality_gate_failed", "quality_gate_error")
AFTER_THE_END = ("agent_handoff", "replan_finished", "plan_modified")  # handed back; what the step was about


class Broken(AssertionError):
    pass


class Step:
    def __init__(self):
        self.started = self.end = None
        self.attempt = 0   # the newest that was told
        self.gate = False  # is asked
        self.review = None
        self.turns, self.calls = 0, False


class Story:
    def __init__(self, events):
        self.events = events
        self.steps = {}
        self.reviews = set()
        self.paused = []
        self.agents = {"supervisor"}  # that have had something
        self.replanning = None
        self.revision = 1
        self.cancelling = self.started = False
        self.planning = self.failed_planning = self.generated = False
        self.synthesis = False  # an answer is being written
        self.undo = None  # what it did: running, or how that ended
        self.voided = False  # a sign-off, by the change that comes
        self.texts = 0
        self.at = None

    def fail(self, why):
        lines = ["%s%d %s %s" % ("> " if e is self.at else "  ", e["seq"], e["type"], {k: v for k, v in e.items() if k in (
            "stepId", "stepIndex", "status", "reason", "attempt", "kind", "decision", "revision", "error")}) for e in self.events]
        raise Broken("%s\n%s" % (why, "\n".join(lines)))

    def need(self, condition, why):
        if not condition:
            self.fail(why)

    def run(self):
        e = self.events
        self.need(e and e[0]["type"] in ("plan_generated", "planning_started"), "plan_generated or planning_started is the first event")
        self.need(len({x["eventId"] for x in e}) == len(e), "event ids are unique")
        for before, now in zip(e, e[1:]):
            self.at = now
            self.need(now["seq"] > before["seq"], "seq grows")
            self.need(now["planSeq"] == before["planSeq"] + 1, "planSeq has no gap")
            self.need(before["type"] != "plan_completed", "nothing comes after plan_completed")
        for self.at in e:
            self.one(self.at)
        self.at = None
        return self

    def one(self, e):
        t = e["type"]
        self.need(self.started or t in BEFORE_STEPS + ("plan_started", "plan_completed", "plan_step_completed"),
                  "plan_started comes before anything about steps")
        self.need(not self.synthesis or "stepIndex" not in e, "nothing happens to steps while the answer is written")
        getattr(self, t, lambda _: None)(e)
        if t == "agent_handoff":
            self.handoff(e)
        elif t in VERDICTS:
            self.need(self.open(e).gate, "a verdict answers a question")
            self.open(e).gate = False
        elif "stepIndex" in e and t != "review_decided":
            self.of_step(e, t)

    def step(self, e):
        return self.steps.setdefault(e["stepIndex"], Step())

    def open(self, e):
        s = self.step(e)
        self.need(s.started, "the step has started")
        self.need(not s.end, "the step is not over")
        return s

    def of_step(self, e, t):
        if t in ("plan_step_started", "plan_step_completed") or t in AFTER_THE_END:
            return
        s = self.open(e)
        if "attempt" in e and t in ("plan_step_retry", "plan_step_progress", "plan_step_round", "calls_started", "calls_finished", "plan_step_verification_failed", "fallback_used"):
            none_yet = e["attempt"] == 0 and s.attempt == 1  # nobody came for the first one
            self.need(e["attempt"] >= s.attempt or none_yet, "attempts only grow")
            s.attempt = max(s.attempt, e["attempt"])
        self.need(t not in ("plan_step_retry", "plan_step_round", "plan_step_waiting", "calls_started", "calls_finished") or not self.cancelling, "nothing begins in a plan that is called off")
        self.need(s.review is None or t not in ("plan_step_retry", "fallback_used", "quality_gate_started", "replan_started"),
                  "a step that waits for a person does nothing else")

    def calls_started(self, e):
        s = self.open(e)
        self.need(not s.calls and e["turn"] == s.turns + 1 and e["calls"] > 0, "one turn after the other")
        s.turns, s.calls = e["turn"], True

    def calls_finished(self, e):
        s = self.open(e)
        self.need(s.calls and e["turn"] == s.turns, "the turn that began is over")
        s.calls = False

    def planning_started(self, e):
        self.need(not self.planning and not self.generated and not self.started, "planning begins before there is a plan")
        self.need(e["attempt"] == 1, "it begins with attempt 1")
        self.planning = 1

    def planning_retry(self, e):
        self.need(self.planning and e["attempt"] == self.planning, "the attempt that came to nothing")
        self.planning += 1
        self.need(self.planning == 2, "one repair")

    def planning_failed(self, e):
        self.need(self.planning and e["attempt"] == self.planning and e.get("reason"), "what fails was begun, and says why")
        self.planning, self.failed_planning = False, True

    def plan_generated(self, e):
        self.need(not self.generated, "plan_generated comes once")
        self.need(self.planning or e is self.events[0] or self.failed_planning, "a plan that was asked for, or given")
        self.planning, self.generated = False, True

    def synthesis_started(self, e):
        self.need(self.started and not self.synthesis and not self.cancelling, "an answer out of a plan that has run")
        for index, s in self.steps.items():
            self.need(s.end, "step %d has ended when the answer is written" % index)
        self.synthesis, self.texts = True, 0

    def compensation_started(self, e):
        self.need(self.started and not self.synthesis and not self.undo, "a plan is undone once, when it has run")
        for index, s in self.steps.items():
            self.need(s.end, "step %d has ended before it is undone" % index)
        self.undo = "running"

    def compensation_finished(self, e):
        self.need(self.undo == "running", "what is undone was begun")
        self.undo = e["status"]

    def text_delta(self, e):
        # 0 again: what came before is void, the answer begins anew.
        self.need(self.synthesis and e["index"] in (self.texts, 0), "pieces of the answer come in order")
        self.texts = e["index"] + 1

    def synthesis_retry(self, e):
        self.need(self.synthesis and e["revision"] == self.revision + 1, "it follows a question, and is a revision")
        self.synthesis, self.revision = False, e["revision"]

    def synthesis_finished(self, e):
        self.need(self.synthesis or not e["ok"], "an answer was asked for")
        self.need(e["ok"] or e.get("reason"), "without an answer it says why")
        self.synthesis = False

    def plan_started(self, e):
        self.need(not self.started, "plan_started comes once")
        self.need(self.generated or self.failed_planning, "there is a plan, or there will be an answer alone")
        self.started = True

    def plan_step_started(self, e):
        s = self.step(e)
        self.need(not s.started, "a step starts once: another attempt is a retry")
        self.need(not s.end, "a step that is over does not start")
        self.need(not self.cancelling, "nothing begins in a plan that is called off")
        self.need(e["attempt"] == 1, "it starts with attempt 1")
        s.started, s.attempt = e, 1
        self.agents.add(e["agentId"])

    def handoff(self, e):
        s = self.step(e)
        self.need(s.started, "a handoff comes after the start of its step")
        self.need(not s.end or e["reason"] == "handback", "after the end only the way back")
        self.need(e["fromAgent"]["agentId"] != e["toAgent"]["agentId"], "from one agent to another")
        self.need(e["fromAgent"]["agentId"] in self.agents, "from an agent that had something to hand over")
        self.agents.add(e["toAgent"]["agentId"])

    def quality_gate_started(self, e):
        s = self.open(e)
        self.need(not s.gate, "one question at a time")
        s.gate = True

    def plan_step_waiting(self, e):
        s = self.open(e)
        self.need(s.review is None, "one review at a time")
        self.need(e["reviewId"] not in self.reviews, "review ids are new each time")
        self.reviews.add(e["reviewId"])
        s.review = e["reviewId"]

    def review_decided(self, e):
        older = "stepIndex" in e and "/r" not in (self.step(e).review or "/r")  # opened before ids had serials
        self.need(e["reviewId"] in self.reviews or older, "what is decided was asked")
        if "stepIndex" not in e:
            self.paused = [reason for reason in self.paused if reason not in ("planning", "signoff")]
        if "stepIndex" in e:
            self.open(e).review = None

    def plan_paused(self, e):
        self.need(e["reason"] not in self.paused, "it is not paused yet for that reason")
        if "reviewId" in e:
            self.need(e["reviewId"] not in self.reviews, "review ids are new each time")
            self.reviews.add(e["reviewId"])
        self.paused.append(e["reason"])

    def plan_resumed(self, e):
        self.need(e["reason"] in self.paused, "it was paused for that reason")
        self.paused.remove(e["reason"])

    def plan_modified(self, e):
        self.need(e["revision"] == self.revision + 1, "each modification is one revision")
        self.revision = e["revision"]
        self.change(e["kind"] != "conversation_only")

    def review_voided(self, e):
        self.need("signoff" in self.paused and e["reviewId"] in self.reviews, "the sign-off is open")
        self.need(e["revision"] == self.revision, "it is about the revision before the change")
        self.paused.remove("signoff")
        self.voided = True

    def change(self, changed):
        self.need(changed or not self.voided, "only a change makes a sign-off void")
        self.need(not changed or "signoff" not in self.paused, "a change makes an open sign-off void")
        self.voided = False

    def replan_started(self, e):
        self.need(self.replanning is None, "one replan at a time")
        self.replanning = e["stepIndex"]

    def replan_finished(self, e):
        self.need(self.replanning == e["stepIndex"], "what finishes has started")
        self.replanning = None
        self.need(e["revision"] == self.revision + (1 if e["ok"] else 0), "a new plan is one revision")
        self.revision = e["revision"]
        self.change(e["ok"])

    def plan_cancelling(self, e):
        self.need(not self.cancelling, "it is called off once")
        self.cancelling = True

    def plan_step_completed(self, e):
        s = self.step(e)
        self.need(not s.end, "a step ends once")
        self.need(e["status"] in ENDS, "it ends in one of " + str(ENDS))
        self.need(s.started or e["status"] != "completed" or e.get("reason") == "already_completed", "what was never begun is not completed")
        self.need(e["status"] != "failed" or e.get("error"), "a failure says why")
        self.need(e.get("attempts", 0) >= s.attempt or e["status"] != "completed" or s.started.get("instanceId") is None,
                  "attempts are all that were told")
        s.end = e
        self.agents.add(e.get("agentId"))

    def plan_completed(self, e):
        self.need(self.undo != "running", "a plan ends after it is undone")
        self.need(e["status"] in ("completed", "failed", "cancelled"), "the end of a plan")
        if e.get("failureKind") == "quarantined":  # put aside at a start, wherever it was
            self.need(e["status"] == "failed" and e["outcome"] == "failed" and e.get("failureReason"), "a quarantine is a failure, and says why")
            return
        self.need(not self.synthesis or self.cancelling, "the answer is there, or there will be none")
        self.need(not self.planning or self.cancelling, "planning has ended")
        for index, s in self.steps.items():
            self.need(s.end, "step %d has ended when the plan ends" % index)
        self.need(e["status"] != "cancelled" or self.cancelling or "signoff" in self.paused or self.reviews or not self.started,
                  "a plan is cancelled by somebody")
        self.need(e["status"] != "failed" or e.get("failureReason"), "a failure says why")
        self.need(e["outcome"] in ("success", "partial", "failed"), "an outcome")
        self.counted(e.get("counts", {}))

    def counted(self, counts):
        """Steps that had not begun when their plan ended have no end of their own: plan_completed counts them as cancelled."""
        told = {status: sum(1 for s in self.steps.values() if s.end["status"] == status) for status in ENDS}
        had = {status: counts.get(status, 0) for status in ENDS}
        self.need(sum(had.values()) == counts.get("total", 0), "the counts are all steps")
        for status in ("completed", "failed", "skipped"):
            self.need(had[status] == told[status] or (had[status] < told[status] and self.revision > 1),
                      "%d %s are counted, %d were told" % (had[status], status, told[status]))
        self.need(had["cancelled"] >= told["cancelled"] or self.revision > 1, "all that were told to be cancelled are counted")


def check(events, view=None):
    """Raises Broken with all events when a rule does not hold."""
    if not events:
        return None
    story = Story(events).run()
    if view is not None and not view.get("stepsTruncated"):
        agrees(story, view)
    return story


def agrees(story, view):
    """The answer to plan.get agrees with the events."""
    ended = story.events[-1]["type"] == "plan_completed"
    story.need(ended == (view["status"] in ("completed", "planned", "failed", "cancelled", "quarantined")), "plan.get and the events agree on the end")
    story.need(view.get("revision", 1) == story.revision, "plan.get says the newest revision: %d" % view.get("revision", 1))
    by_id = {}
    for s in view.get("steps", []):
        by_id.setdefault(s["stepId"], []).append(s)
        told = story.steps.get(s["stepIndex"])
        over = told is not None and told.end is not None
        put_aside = view["status"] == "quarantined" and s["status"] == "cancelled"
        unborn = ended and s["status"] == "cancelled" and (told is None or not told.started or put_aside)
        story.need(over == (s["status"] in ENDS) or unborn, "plan.get says %s about step %d" % (s["status"], s["stepIndex"]))
        if over:
            story.need(s["status"] == told.end["status"] and s.get("reason") == told.end.get("reason"),
                       "plan.get says %s %s about step %d" % (s["status"], s.get("reason"), s["stepIndex"]))
            story.need(s.get("error") == told.end.get("error") or told.end.get("reason") == "superseded", "plan.get says %r about step %d" % (s.get("error"), s["stepIndex"]))
    for s in view.get("steps", []):
        after(story, s, by_id)


def after(story, s, by_id):
    """A step starts when its dependencies are over (those of the newest revision, when it was not begun before it)."""
    mine = story.steps.get(s["stepIndex"])
    if mine is None or mine.started is None or s.get("superseded"):
        return
    for name in s.get("dependsOn", []):
        found = [d for d in by_id.get(name, []) if not d.get("superseded")]
        if len(found) == 1:
            end = story.steps[found[0]["stepIndex"]].end
            story.need(end and end["seq"] < mine.started["seq"], "step %s starts when %s is over" % (s["stepId"], name))
