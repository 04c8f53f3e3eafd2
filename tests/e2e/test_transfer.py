"""Export and import: ended plans and sessions as lines, into another journal and back; files that are not as they were; kill -9 in the middle."""
import hashlib
import json
import os
import pathlib
import random
import re
import subprocess

import harness
from harness import until
from probe import Probe, step, wait_up
from test_artifacts import write

CONFIG = "agents: []\n"
UNSAFE = "[\x7f-\x9f\u200b-\u200f\u2028-\u202e\U000e0000-\U000e0fff]"
SEED = int(os.environ.get("BATON_SEED", "0")) or random.SystemRandom().randrange(1 << 32)


def bodies(text):
    """The lines without number and hash."""
    return [("{" + line.split(",", 2)[2]) for line in text.split("\n")[:-1]]


def seal(lines):
    """Number and hash of each line again, by the page: what a person with a text editor cannot do by accident."""
    out, head = [], ""
    for n, line in enumerate(lines, 1):
        head = hashlib.sha256((head + line).encode()).hexdigest()
        out.append('{"n":%d,"hash":"%s",%s\n' % (n, head[:16], line[1:]))
    return "".join(out)


def edit(line, **more):
    return json.dumps({**json.loads(line), **more}, separators=(",", ":"), ensure_ascii=False)


def without_numbers(event):
    """An event but for the numbers that are the journal's own."""
    return {k: v for k, v in event.items() if k != "seq" and not k.endswith("Ref")}


class Transfer(harness.BatonTest):
    def up(self, work=None, **more):
        d = self.daemon(config=CONFIG, **more)
        probe = Probe(d, work=work, capacity=4)
        self.addCleanup(probe.close)
        wait_up(d)
        return d

    def run_plan(self, d, *steps, **fields):
        plan = d.submit({"goal": "keep it", "steps": list(steps or [step("a")])}, **fields)
        d.wait_plan(plan)
        return plan

    def export(self, d, *args):
        return d.cli("export", *(args or ("--all",)))

    def import_(self, d, text, code=0):
        done = d.cli_any("import", "-", stdin=text)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def verify(self, d):
        self.assertIn("root ", d.cli("verify"))

    def talk(self, d, session):
        d.ask("session.say", sessionId=session, text="what is the status?")
        until(lambda: len(d.ask("session.get", sessionId=session)["messages"]) >= 2, 20, "an answer")

    def random_history(self, d, rng):
        """Plans of every end; results of every size and kind; a session."""
        plans = []
        for i in range(rng.randint(3, 6)):
            steps = [step("s%d" % k, task="task ä \u2028 \" \\ %d" % k, maxRetries=rng.choice([0, 1])) for k in range(rng.randint(1, 5))]
            for k, s in enumerate(steps):
                if k and rng.random() < 0.6:
                    s["dependsOn"] = ["s%d" % rng.randrange(k)]
            plans.append(self.run_plan(d, *steps, **({"clientKey": "key-%d" % i} if rng.random() < 0.5 else {}),
                                       **({"sessionId": "talk"} if rng.random() < 0.5 else {})))
        cancelled = d.submit({"goal": "called off", "steps": [step("hang")]})
        d.ask("plan.cancel", planId=cancelled)
        d.wait_plan(cancelled)
        until(lambda: "BUSY" not in d.cli_any("export", cancelled, "--json").stdout, 20, "its last attempt is over")
        self.talk(d, "talk")
        return plans + [cancelled]

    def worker(self, rng):
        values = [1.0, 1e300, -0.5, 2 ** 63, -2 ** 62, "", "x" * 70000, "\x01\x7f\u2028\U0001F600", None, True, [], {}, {"resultRef": 7, "seq": 3}, [[["deep"]]]]

        def work(r):
            if r["stepId"] == "hang":
                return None
            if rng.random() < 0.2:
                return {"outcome": "failed", "failure": {"code": "X", "class": "UNKNOWN", "message": "no", "retryable": False}}
            return {"outcome": "completed", "result": {"text": "of " + r["stepId"], "data": {"value": rng.choice(values)}}}
        return work

    # ---- round trip ----

    def test_random_plans_come_back_byte_for_byte(self):
        print("seed", SEED)
        rng = random.Random(SEED)
        first, second = self.up(work=self.worker(rng)), self.daemon(config=CONFIG)
        plans = self.random_history(first, rng)
        text = self.export(first)
        self.assertNotRegex(text, UNSAFE)
        said = self.import_(second, text)
        self.assertIn("%d plans and 1 session imported" % sum(b.startswith('{"kind":"plan"') for b in bodies(text)), said)
        self.assertEqual(self.export(second), text)
        self.verify(second)
        for plan in plans:
            ours, theirs = first.events(plan), second.events(plan)
            self.assertEqual([without_numbers(e) for e in theirs], [without_numbers(e) for e in ours])
            for a, b in zip(ours, theirs):
                for k in [k for k in a if k.endswith("Ref")]:
                    self.assertEqual(first.ask("blob.get", blobId=a[k])["bytes"], second.ask("blob.get", blobId=b[k])["bytes"])
            for type_ in ("plan.result", "plan.history"):
                self.assertEqual(json.dumps(without_numbers(first.ask(type_, planId=plan)))[:300], json.dumps(without_numbers(second.ask(type_, planId=plan)))[:300])
            self.assertEqual(first.ask("plan.get", planId=plan)["status"], second.ask("plan.get", planId=plan)["status"])
        self.assertEqual([m["text"] for m in second.ask("session.get", sessionId="talk")["messages"]],
                         [m["text"] for m in first.ask("session.get", sessionId="talk")["messages"]])
        seqs = [e["seq"] for e in second.ask("events.read", fromSeq=1, limit=1000)["events"]]
        self.assertEqual(seqs, list(range(1, len(seqs) + 1)))
        again = self.import_(second, text)
        self.assertIn("0 plans and 0 sessions imported", again)
        self.assertIn(" plans and 1 session were here already", again)
        second.kill9()
        second.start(agents=False)
        self.assertEqual(self.export(second), text)
        self.verify(second)
        # one plan with its jobs; what ended since; a retry goes on from what was imported
        self.assertEqual(bodies(self.export(second, plans[0])), bodies(self.export(first, plans[0])))
        self.assertEqual(self.export(second, "--since", "1d"), text)
        self.assertEqual(len(self.export(second, "--since", "2199-01-01").splitlines()), 2)
        key = next((json.loads(b)["clientKey"] for b in bodies(text) if b.startswith('{"kind":"plan"') and '"clientKey"' in b), None)
        if key:
            answer = second.ask_raw("plan.submit", plan={"goal": "other", "steps": [step("a")]}, clientKey=key)
            self.assertEqual(answer["error"]["code"], "CONFLICT", answer)

    def test_characters_that_order_a_terminal_about_are_escaped_and_come_back_the_same(self):
        first, second = self.up(), self.daemon(config=CONFIG)
        task = "Turn \u202eround\u202c, hide\u200b, \x7f\x85\x9b2J, tag\U000e0041; keep \u00e4\u20ac\U0001f600 and \\u202e, \\\u202e"
        plan = self.run_plan(first, step("a", task=task), clientKey="k" + task[:20])
        text = self.export(first)
        self.assertNotRegex(text, UNSAFE)
        self.assertIn("keep \u00e4\u20ac\U0001f600", text)
        self.import_(second, text)
        self.assertEqual(second.ask("plan.get", planId=plan)["steps"][0]["task"], task)
        self.assertEqual(self.export(second), text)
        self.verify(second)
        # a file of before, with the characters as they are, is the same plan
        raw = [re.sub(r"(\\\\)|((?:\\u[0-9a-f]{4})+)", lambda m: m[1] or json.loads('"%s"' % m[2]), b) for b in bodies(text)]
        self.assertRegex("".join(raw), UNSAFE)
        self.assertIn("1 plan was here already", self.import_(second, seal(raw)))
        self.assertIn("1 plan was here already", self.import_(second, text))
        third = self.daemon(config=CONFIG)
        self.import_(third, seal(raw))
        self.assertEqual(self.export(third), text)

    def test_plans_with_items_rounds_and_undoing_come_once(self):
        def work(r):
            failed = {"outcome": "failed", "failure": {"code": "X", "class": "UNKNOWN", "message": "no", "retryable": False}}
            return failed if r["stepId"] == "last" else {"outcome": "completed", "result": {"text": "of " + r["stepId"], "data": {"list": [1, 2, 3], "ok": True}}}

        first, second = self.up(work=work), self.daemon(config=CONFIG)
        plan = self.run_plan(first, step("a", compensate={"agentId": "probe", "skill": "do", "task": "Take it back, whatever it was"}), step("each", dependsOn=["a"], forEach="{{results.a.list}}"),
                             step("poll", dependsOn=["each"], repeat={"max": 3, "until": {"results.poll.ok": True}}), step("last", dependsOn=["poll"]))
        until(lambda: "BUSY" not in first.cli_any("export", plan, "--json").stdout, 20, "its last attempt is over")
        text = self.export(first)
        kinds = [json.loads(b).get("job") for b in bodies(text) if b.startswith('{"kind":"plan"')]
        self.assertEqual(kinds.count("child"), 3, "items, a round, what undoes")
        self.import_(second, text)
        again = self.import_(second, text)
        self.assertIn("0 plans and 0 sessions imported, 4 plans were here already", again)
        self.assertNotIn("not the same", again)
        self.assertEqual(self.export(second), text)
        # one plan has all that is inside it, and takes it along
        self.assertEqual(sorted(json.loads(b).get("job", "") for b in bodies(self.export(second, plan)) if b.startswith('{"kind":"plan"')),
                         ["", "child", "child", "child"])
        self.assertEqual(second.ask("plan.delete", planId=plan)["jobs"], 3)
        self.assertNotIn('"kind":"plan"', self.export(second))
        self.verify(second)

    def test_a_plan_with_more_rounds_than_a_request_deletes_goes_by_one_command(self):
        rounds = []

        def work(_):
            rounds.append(1)
            return {"outcome": "completed", "result": {"text": "again", "data": {"n": len(rounds)}}}

        d = self.up(work=work)
        d.wait_plan(d.submit({"goal": "many", "steps": [step("poll", repeat={"max": 2000, "until": {"results.poll.n": {"gte": 1001}}})]}), seconds=100)
        plan = d.ask("plan.list")["plans"][0]["planId"]
        until(lambda: "BUSY" not in d.cli_any("export", plan, "--json").stdout, 20, "its last attempt is over")
        self.assertEqual(d.ask_raw("plan.delete", planId=plan)["error"]["details"], {"unfinished": True})
        self.assertEqual(d.ask("plan.get", planId=plan)["status"], "completed", "it goes last")
        self.assertIn("deleted", d.cli("delete", plan))
        self.assertNotIn('"kind":"plan"', self.export(d))
        self.verify(d)

    def test_what_runs_goes_on_and_open_plans_are_neither_exported_nor_imported(self):
        first, second = self.up(work=lambda r: None if r["stepId"] == "late" else {"outcome": "completed", "result": {"text": "x"}}), self.up()
        done, runs = self.run_plan(first), first.submit({"goal": "g", "steps": [step("late")]})
        self.assertIn("not ended", first.cli_any("export", runs).stderr)
        text = self.export(first)
        self.assertNotIn(runs, text)
        lines = bodies(text)
        plan = next(i for i, b in enumerate(lines) if b.startswith('{"kind":"plan"'))
        before = second.ask("events.read", fromSeq=1, limit=1000)["lastSeq"]
        for more in ({"status": "running"}, {"endedMs": 0}):
            said = self.import_(second, seal(lines[:plan] + [edit(lines[plan], **more)] + lines[plan + 1:]), code=1)
            self.assertIn("only ended plans are imported", said)
        self.assertEqual(second.ask("events.read", fromSeq=1, limit=1000)["lastSeq"], before)
        live = second.submit({"goal": "beside it", "steps": [step("a")]})
        self.import_(second, text)
        self.assertEqual(second.wait_plan(live)["status"], "completed")
        self.assertEqual(second.ask("plan.get", planId=done)["status"], "completed")
        first.ask("plan.cancel", planId=runs)

    def test_a_deleted_plan_comes_back(self):
        d = self.up()
        plan = self.run_plan(d, step("a"), step("b"), clientKey="k")
        text = self.export(d, plan)
        d.ask("plan.delete", planId=plan)
        self.import_(d, text)  # also while its rows are still being removed
        self.assertEqual(d.ask("plan.get", planId=plan)["status"], "completed")
        self.assertEqual(self.export(d, plan), text)
        self.verify(d)
        d.ask("plan.delete", planId=plan)
        self.assertEqual(d.ask_raw("plan.get", planId=plan)["error"]["code"], "GONE")

    def test_a_plan_that_is_here_and_different_stays_as_it_is(self):
        d, other = self.up(), self.daemon(config=CONFIG)
        plan, keyed = self.run_plan(d), self.run_plan(d, clientKey="mine")
        text = self.export(d, plan, keyed)
        lines = bodies(text)
        at = next(i for i, b in enumerate(lines) if '"kind":"row"' in b and "plan_step_completed" in b)
        forged = seal(lines[:at] + [lines[at].replace("done a", "lies a")] + lines[at + 1:])
        self.import_(other, forged)
        said = self.import_(other, text, code=1)
        self.assertIn("plan %s is here already, and is not the same" % plan, said)
        self.assertIn("lies a", self.export(other, plan))
        # the key of another plan
        third = self.up()
        self.run_plan(third, clientKey="mine")
        said = self.import_(third, text, code=1)
        self.assertIn('clientKey \\"mine\\" was used before' if '\\"mine' in said else 'clientKey "mine" was used before', said)
        self.assertEqual(third.ask("plan.get", planId=plan)["status"], "completed")
        self.assertEqual(third.ask_raw("plan.get", planId=keyed)["error"]["code"], "NOT_FOUND")

    # ---- files that are not as they were ----

    def test_a_file_that_is_not_as_it_was_is_refused_with_the_line_and_nothing_is_imported(self):
        rng = random.Random(SEED)
        first, second = self.up(), self.daemon(config=CONFIG)
        for _ in range(2):
            self.run_plan(first, step("a"), step("b"))
        lines = self.export(first).splitlines(keepends=True)

        def refused(text, line, reason):
            said = self.import_(second, text, code=2)
            self.assertIn("-:%d: " % line, said)
            self.assertIn(reason, said)
            self.assertIn("nothing was imported", said)
        for _ in range(12):  # any changed byte is found in its line
            n = rng.randrange(len(lines))
            k = rng.randrange(len(lines[n]) - 1)
            changed = lines[n][:k] + chr((ord(lines[n][k]) + 1) % 127 or 1) + lines[n][k + 1:]
            refused("".join(lines[:n] + [changed] + lines[n + 1:]), n + 1, "")
        n = len(lines) // 2
        refused("".join(lines[:n] + lines[n + 1:]), n + 1, "this is line %d: lines are missing or in another order" % (n + 2))
        refused("".join(lines[:n] + [lines[n + 1], lines[n]] + lines[n + 2:]), n + 1, "in another order")
        refused("".join(lines[:n] + [lines[n]] + lines[n:]), n + 2, "in another order")
        refused("".join(lines[:n]), n + 1, "its last lines are missing")
        refused("".join(lines)[:-20], len(lines), "in the middle of this line")
        refused("".join(lines + lines[-1:]), len(lines) + 1, "nothing may follow")
        refused("", 1, "missing")
        refused("{}\n", 1, "not a line of an export")
        self.assertIn("longer than any", second.cli_any("import", "/dev/zero", timeout=20).stderr)
        newer = [bodies(lines[0])[0].replace('"format":1', '"format":2')] + bodies("".join(lines))[1:]
        refused(seal(newer), 1, "format 2, written by a newer Baton; this one knows format 1")
        self.assertEqual(second.ask("plan.list")["plans"], [])
        self.assertEqual(second.cli_any("import", second.work / "none").returncode, 7)

    def test_what_the_daemon_refuses_leaves_nothing(self):
        first, second = self.up(), self.daemon(config=CONFIG)
        plan = self.run_plan(first, step("a"), step("b"))
        lines = bodies(self.export(first, plan))
        row = next(i for i, b in enumerate(lines) if "plan_step_completed" in b)
        event = json.loads(lines[row])["event"]
        ref = next(k for k in event if k.endswith("Ref"))
        forgeries = {
            "names a result that was not given": edit(lines[row], event={**event, ref: 99}),
            "is not known here; use a newer program": edit(lines[row], type="plan_sung"),
            "not one of this plan": edit(lines[row], event={**event, "planId": "018F0000-0000-7000-8000-000000000000"}),
            "planSeq: expected": edit(lines[row], planSeq=77),
            "seq is the journal's own": edit(lines[row], event={**event, "seq": 1}),
            "not base64": json.dumps({k: v for k, v in {**json.loads(lines[row]), "data": "!!!!"}.items() if k != "event"}),
        }
        for reason, line in forgeries.items():
            self.assertIn(reason, self.import_(second, seal(lines[:row] + [line] + lines[row + 1:]), code=1))
            self.assertNotEqual(second.ask_raw("plan.get", planId=plan)["ok"], True)
            self.assertEqual(second.ask("plan.list")["plans"], [])
        until(lambda: not second.ask("events.read", fromSeq=1, planId="", limit=1000)["events"] or
              all(e.get("planId") != plan for e in second.ask("events.read", fromSeq=1, limit=1000)["events"]), 20, "its rows go")
        # out of turn over the wire
        for fields in ({"lines": lines[row], "before": 5}, {"lines": lines[row]}, {"lines": "x"}, {"lines": lines[1] + "\n" + lines[1]}):
            self.assertFalse(second.ask_raw("journal.import", **fields)["ok"], fields)
        for cursor in ("x", "p.1.2.3", "p.1.2.9.0.0", "s.1.", "p.1.2.3.4.5.6", "p.9.9.0.0.0"):
            self.assertFalse(second.ask_raw("journal.export", cursor=cursor)["ok"], cursor)
        self.import_(second, seal(lines))
        self.assertEqual(bodies(self.export(second, plan)), lines)
        self.verify(second)

    # ---- files of results ----

    def writer(self, seen):
        def work(r):
            seen.append(r)
            return {"outcome": "completed", "result": {"text": "wrote", "artifacts": [write(r, b"%s's" % r["stepId"].encode() * 30000)]}}
        return work

    def files(self, d, plan, *steps):
        """The files of results, by the URIs that the daemon gives."""
        out = {}
        for s in steps:
            for a in d.ask("plan.result", planId=plan, stepId=s)["artifacts"]:
                path = pathlib.Path(a["uri"][len("file://"):])
                self.assertEqual(path.parents[2].resolve(), d.state.resolve(), a)
                self.assertEqual(hashlib.sha256(path.read_bytes()).hexdigest(), a["sha256"])
                out[s] = path.read_bytes()
        return out

    def test_files_of_results_come_along_and_later_steps_get_them(self):
        seen = []
        first, second = self.up(work=self.writer([])), self.daemon(config=CONFIG)
        plan = self.run_plan(first, step("a"), step("b", dependsOn=["a"]))
        each = self.run_plan(first, step("each", forEach=["x", "y"]), step("after", dependsOn=["each"]))
        folder, lines = first.work / "files", first.work / "all.ndjson"
        lines.write_text(first.cli("export", "--all", "--artifacts", folder))
        self.assertEqual(lines.read_text(), self.export(first))
        said = json.loads(second.cli("import", lines, "--artifacts", folder, "--json"))
        self.assertEqual((said["refused"], said["artifacts"]), (0, 5))
        self.assertEqual(self.files(second, plan, "a", "b"), self.files(first, plan, "a", "b"))
        self.assertEqual(second.cli("result", plan, "a", "--artifact", "rows.csv").encode(), b"a's" * 30000)
        self.assertEqual(self.export(second), lines.read_text())
        second.kill9()
        second.start(agents=False)  # looks at all directories of files
        probe = Probe(second, work=self.writer(seen), capacity=4)
        self.addCleanup(probe.close)
        wait_up(second)
        fork = second.ask("plan.fork", planId=plan, fromStep="b")["planId"]
        self.assertEqual(second.wait_plan(fork)["status"], "completed")
        given, = next(r for r in seen if r["stepId"] == "b")["artifacts"]
        self.assertEqual(pathlib.Path(given["uri"][len("file://"):]).read_bytes(), b"a's" * 30000)
        fork = second.ask("plan.fork", planId=each, fromStep="after")["planId"]
        self.assertEqual(second.wait_plan(fork)["status"], "completed")
        items = json.dumps(next(r for r in seen if r["stepId"] == "after")["context"])
        self.assertIn(str(second.state), items)
        self.assertNotIn(str(first.state), items)

    def test_files_that_are_not_as_their_results_say_are_refused(self):
        first, second = self.up(work=self.writer([])), self.daemon(config=CONFIG)
        plan = self.run_plan(first, step("a"), step("b"))
        folder = first.work / "files"
        text = first.cli("export", plan, "--artifacts", folder)
        one = next(p for p in folder.rglob("a@*"))
        good = one.read_bytes()
        one.write_bytes(good[:-1] + b"!")
        done = second.cli_any("import", "-", "--artifacts", folder, stdin=text)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("SHA-256", done.stderr)
        self.assertIn("1 file is not as the results say; nothing was imported", done.stderr)
        self.assertEqual(second.ask_raw("plan.get", planId=plan)["error"]["code"], "NOT_FOUND")
        one.unlink()
        done = second.cli_any("import", "-", "--artifacts", folder, stdin=text)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 file of results copied to %s/artifacts, 1 not kept" % second.state, done.stderr)
        stale, = second.ask("plan.result", planId=plan, stepId="a")["artifacts"]
        self.assertIn(str(first.state), stale["uri"])  # where it was: it is not here
        one.write_bytes(good)
        done = second.cli_any("import", "-", "--artifacts", folder, stdin=text)
        self.assertIn("1 plan was here already", done.stdout)
        self.assertEqual(self.files(second, plan, "a", "b"), self.files(first, plan, "a", "b"))

    def test_files_that_stay_behind_are_told(self):
        first, second = self.up(work=self.writer([])), self.daemon(config=CONFIG)
        plan = self.run_plan(first, step("a"), step("b"))
        text = first.cli("export", plan, "--artifacts", first.work / "files")
        self.assertEqual(second.cli_any("import", "-", "--artifacts", first.work / "none", stdin=text).returncode, 2)
        self.assertEqual(second.ask_raw("plan.get", planId=plan)["error"]["code"], "NOT_FOUND")
        done = second.cli_any("import", "-", stdin=text)
        self.assertEqual((done.returncode, done.stderr), (0, "2 files of results are not here: export and import them with --artifacts DIR\n"))
        self.assertIn("artifact rows.csv: 90000 bytes, not here; it was %s" % first.state, second.cli("result", plan, "a"))
        done = second.cli_any("result", plan, "a", "--artifact", "rows.csv")
        self.assertEqual((done.returncode, done.stdout), (7, ""))
        self.assertIn("artifact 'rows.csv' is not here", done.stderr)
        second.cli("import", "-", "--artifacts", first.work / "files", stdin=text)
        self.assertIn("artifact rows.csv: 90000 bytes, %s" % second.state, second.cli("result", plan, "a"))
        self.assertEqual(second.cli_any("import", "-", stdin=text).stderr, "")

    def test_an_export_that_is_refused_writes_no_line(self):
        d = self.up()
        plan, runs = self.run_plan(d), "018F0000-0000-7000-8000-000000000000"
        for args in ((runs,), (plan, runs), (plan, "nosuch")):
            done = d.cli_any("export", *args)
            self.assertEqual((done.returncode, done.stdout), (7, ""), args)
        d.stop()
        self.assertEqual(d.cli_any("export", "--all").stdout, "")

    def test_a_retry_without_its_origin_says_whose_files_are_missing(self):
        fails = [1]
        d = self.up(work=lambda r: {"outcome": "failed", "failure": {"code": "X", "class": "UNKNOWN", "message": "no", "retryable": False}}
                    if r["stepId"] == "b" and fails else {"outcome": "completed", "result": {"text": "x", "artifacts": [write(r)]}})
        plan = self.run_plan(d, step("a"), step("b", dependsOn=["a"]))
        fails.clear()
        again = d.ask("plan.retry", planId=plan)["planId"]
        self.assertEqual(d.wait_plan(again)["status"], "completed")
        said = d.cli_any("export", again, "--artifacts", d.work / "files").stderr
        self.assertIn("2 files of results copied", said)
        self.assertIn("some are of the plan %s, which is not here: export it, too" % plan, said)

    # ---- kill -9 ----

    def test_an_import_that_was_killed_is_repeated_without_doubles(self):
        rng = random.Random(SEED)
        first, second = self.up(), self.daemon(config=CONFIG)
        for _ in range(2):
            self.run_plan(first, *[step("s%d" % i) for i in range(150)])
        self.talk(first, "talk")
        text = self.export(first)
        lines = bodies(text)
        ids = [json.loads(b)["planId"] for b in lines if b.startswith('{"kind":"plan"')]
        file = second.work / "all.ndjson"
        file.write_text(text)
        for round_ in range(4):
            # the daemon dies with a part of the first plan, then of the second, in its journal
            start = lines.index(next(b for b in lines if ids[round_ % 2] in b and b.startswith('{"kind":"plan"')))
            end = next(i for i in range(start, len(lines)) if lines[i].startswith('{"kind":"end"'))
            cut = rng.randrange(start + 3, end)
            answer = second.ask("journal.import", lines=lines[start])
            if answer["result"] != "exists":
                until(lambda: answer["result"] == "more" or second.ask("journal.import", lines=lines[start])["result"] == "more", 20, "it is taken")
                self.assertEqual(second.ask("journal.import", lines="\n".join(lines[start + 1:cut]), before=1)["result"], "more")
                self.assertEqual(second.ask_raw("plan.get", planId=ids[round_ % 2])["error"]["code"], "BUSY")
                self.assertIn(second.ask_raw("plan.retry", planId=ids[round_ % 2])["error"]["code"], ("BUSY", "CONFLICT"))
            if round_ % 2:
                client = subprocess.Popen([harness.BIN / "baton", "import", file, "--state", second.state], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                until(lambda: second.ask("supervisor.info")["lastSeq"] > 50 * round_, 20, "it is in the middle")
                second.kill9()
                client.communicate()
            else:
                second.kill9()
            second.start(agents=False)
        self.import_(second, text)
        self.assertEqual(self.export(second), text)
        self.assertEqual(sorted(p["planId"] for p in second.ask("plan.list")["plans"]), sorted(ids))
        self.verify(second)

    def test_the_start_removes_what_an_import_has_left(self):
        first, second = self.up(), self.daemon(config=CONFIG)
        plan = self.run_plan(first, step("a"), step("b"))
        lines = bodies(self.export(first, plan))
        start = next(i for i, b in enumerate(lines) if b.startswith('{"kind":"plan"'))
        second.ask("journal.import", lines=lines[start])
        second.ask("journal.import", lines="\n".join(lines[start + 1:-3]), before=1)
        second.kill9()
        second.start(agents=False)
        until(lambda: "import" in second.ask_raw("plan.get", planId=plan)["error"]["message"] and
              second.ask_raw("plan.get", planId=plan)["error"]["code"] == "GONE", 20, "it is gone")
        until(lambda: all(e.get("planId") != plan for e in second.ask("events.read", fromSeq=1, limit=1000)["events"]), 20, "its rows are gone")
        self.import_(second, seal(lines))
        self.assertEqual(bodies(self.export(second, plan)), lines)

    def test_a_damaged_plan_is_left_out_and_the_others_are_given(self):
        import sqlite3
        first, second = self.up(), self.daemon(config=CONFIG)
        bad, good = self.run_plan(first), self.run_plan(first)
        first.stop()
        with sqlite3.connect(first.state / "journal.db") as db:
            db.execute("UPDATE rows SET body = body || x'00' WHERE plan = 1 AND type = 'plan_step_completed'")
        db.close()
        first.start(agents=False)
        done = first.cli_any("export", "--all")
        self.assertEqual(done.returncode, 1)
        self.assertIn("left out, because it is damaged", done.stderr)
        said = self.import_(second, done.stdout)
        self.assertIn("1 plan and", said)
        self.assertEqual(second.ask_raw("plan.get", planId=bad)["error"]["code"], "NOT_FOUND")
        self.assertEqual(second.ask("plan.get", planId=good)["status"], "completed")
        first.stop()  # its plans are not as they must be


if __name__ == "__main__":
    harness.main()
