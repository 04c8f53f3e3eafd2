"""What must hold when everything has ended: the events, the logs of the agents and the answers are held against each other."""
import collections
import json

import event_order
import worker

ENDED = ("completed", "failed", "cancelled", "planned", "quarantined")


def read_logs(world):
    """Every line that an agent wrote before (exec) and after (done) its work."""
    lines = []
    for path in sorted(world.work.glob("log.*")):
        for line in path.read_text().splitlines():
            lines.append(json.loads(line))
    return lines


def read_events(ask):
    found, seq = [], 1
    while True:
        page = ask("events.read", fromSeq=seq, limit=1000)
        found += page["events"]
        if page["nextSeq"] > page["lastSeq"]:
            return found
        seq = page["nextSeq"]


class Check:
    def __init__(self, world, plans, ask):
        self.world, self.documents, self.ask = world, plans.documents, ask
        self.lines = read_logs(world)
        self.executions = [x for x in self.lines if x["e"] == "exec"]
        self.done = {(x["key"], x["attempt"]) for x in self.lines if x["e"] == "done" and x["outcome"] == "completed"}
        self.by_step = collections.defaultdict(list)
        for x in self.executions:
            self.by_step[(x["plan"], x["step"])].append(x)

    def run(self, seen):
        events = read_events(self.ask)
        self.numbers(events, seen)
        self.by_plan = collections.defaultdict(list)
        for e in events:
            if e.get("planId"):
                self.by_plan[e["planId"]].append(e)
        for plan, document in sorted(self.documents.items()):
            self.plan(plan, document)
        self.foreign()
        self.world.counts.update(executions=len(self.executions), events=len(events))

    def found(self, kind, text, plan=None):
        self.world.found(kind, text, plan)

    # ---- numbers ----

    def numbers(self, events, seen):
        seqs = [e["seq"] for e in events]
        if seqs != list(range(1, len(seqs) + 1)):
            gaps = [(a, b) for a, b in zip(seqs, seqs[1:]) if b != a + 1]
            self.found("gap", "seq begins with %s and jumps at %s" % (seqs[:1], gaps[:5]))
        if len({e["eventId"] for e in events}) != len(events):
            self.found("gap", "an eventId is there twice")
        stored = {e["seq"]: (e["eventId"], e["type"]) for e in events}
        for seq, mine in sorted(seen.items()):
            if stored.get(seq) != mine:
                self.found("phantom event", "published %d as %s, stored %s" % (seq, mine, stored.get(seq)))

    # ---- a plan ----

    def plan(self, plan, document):
        events = self.by_plan.get(plan, [])
        if not events:
            self.found("lost", "an acknowledged plan has no events", plan)
            return
        view = self.ask("plan.get", planId=plan)
        if view["status"] == "quarantined":
            self.found("quarantined", view.get("failureReason", ""), plan)
            return
        if view["status"] not in ENDED:
            waits = [(s["stepId"], s["status"], s.get("waiting")) for s in view["steps"] if s["status"] not in event_order.ENDS]
            self.found("no end", "%s: %s" % (view["status"], waits), plan)
            return
        try:
            event_order.check(events, view)
        except event_order.Broken as e:
            self.found("order", str(e)[:3000], plan)
        told = self.results(plan)
        for step in view["steps"]:
            self.step(plan, document, view, events, step, told.get(step["stepId"]))

    def results(self, plan):
        found, start = {}, 0
        while True:
            answer = self.ask("plan.result", planId=plan, fromStep=start)
            for s in answer.get("steps") or []:
                if s.get("resultTruncated"):
                    s["result"] = self.ask("plan.result", planId=plan, stepId=s["stepId"]).get("result")
                found[s["stepId"]] = s.get("result")
                start = s["stepIndex"] + 1
            if not answer.get("stepsTruncated") or not answer.get("steps"):
                return found

    def expected(self, document, view, step_id):
        """The value of a completed step, out of the document alone; what a retry reuses is its parent's."""
        doc = next(s for s in document["steps"] if s["stepId"] == step_id)
        if any(s["stepId"] == step_id and s.get("reason") == "already_completed" for s in view["steps"]):
            parent = self.ask("plan.get", planId=view["parentPlanId"])
            return self.expected(document, parent, step_id)
        if doc.get("type") == "human_review":
            return "human"
        return worker.value_of(doc["parameters"]["nonce"], self.deps(document, view, doc))

    def deps(self, document, view, doc):
        status = {s["stepId"]: s["status"] for s in view["steps"]}
        return {d: self.expected(document, view, d) for d in doc.get("dependsOn", []) if status[d] == "completed"}

    def step(self, plan, document, view, events, step, result):
        name = step["stepId"]
        doc = next(s for s in document["steps"] if s["stepId"] == name)
        mine = [e for e in events if e.get("stepId") == name]
        ran = self.by_step.get((plan, name), [])
        twice = [k for k, n in collections.Counter((x["key"], x["attempt"]) for x in ran).items() if n > 1]
        if twice:
            self.found("twice", "%s was begun twice: %s" % (twice[0], [(x["pid"], x["instanceId"], x["epoch"], x["t"]) for x in ran]), plan)
        if (doc.get("parameters") or {}).get("unsafe"):
            self.unsafe(plan, name, mine, ran)
        if step["status"] == "completed":
            value = ((result or {}).get("data") or {}).get("v")
            want = self.expected(document, view, name)
            if value != want:
                self.found("result", "%s says %r, right is %r" % (name, value, want), plan)
            if doc.get("type") != "human_review" and step.get("reason") != "already_completed":
                if not any((x["key"], x["attempt"]) in self.done for x in ran):
                    self.found("phantom", "%s has completed, and nobody did it: %s" % (name, ran), plan)
        for x in ran:
            if x["agent"] != doc.get("agentId"):
                self.found("agent", "%s of %s was given to %s" % (name, doc.get("agentId"), x["agent"]), plan)
            # What it was given is what its dependencies said: whole, and of no other step.
            want = {d: self.expected(document, view, d) for d in x["deps"] if d in doc.get("dependsOn", []) and self.completed(view, d)}
            if x["deps"] != want or set(want) != {d for d in doc.get("dependsOn", []) if self.completed(view, d)}:
                self.found("context", "attempt %d of %s was given %s, right is %s" % (x["attempt"], name, x["deps"], want), plan)

    @staticmethod
    def completed(view, name):
        return any(s["stepId"] == name and s["status"] == "completed" for s in view["steps"])

    def unsafe(self, plan, name, mine, ran):
        """Once, and once more for each decision of a person to do it again."""
        again = sum(1 for e in mine if e["type"] == "review_decided" and e["decision"] == "approve" and e.get("kind") != "before_step")
        if len(ran) > 1 + again:
            self.found("unsafe twice", "%s ran %d times with %d decisions: %s; %s" % (name, len(ran), again, [
                (x["attempt"], x["pid"], x["instanceId"], x["epoch"], x["act"], x["t"]) for x in ran],
                [(e["type"], e.get("attempt"), e.get("kind"), e.get("errorClass"), e.get("stop"), e["tsMs"]) for e in mine]), plan)

    def foreign(self):
        """Nothing runs that was not in an acknowledged plan, unless its acknowledgement was lost."""
        submitted = set(self.documents) | set(self.by_plan)
        for x in self.executions:
            if x["plan"] not in submitted or x["key"] != "%s/%d/%s" % (x["plan"], x["revision"], x["step"]):
                self.found("phantom", "an execution of nothing: %s" % x, x["plan"])
