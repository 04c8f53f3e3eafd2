"""Several plans in one request (plans.submit), as libbaton sends them: each is accepted or refused by itself, and after a kill -9 each is
there once."""
import json
import random
import subprocess
import threading
import unittest

from harness import BIN, BatonTest, main
from stage import Refusal, Stage

PLAN = {"goal": "g", "steps": [{"stepId": "h", "type": "human_review", "task": "Is it right?"}]}
ID = "0193F3C2-7A1B-7C3D-9E4F-00000000000%d"


def lines(*plans):
    return "".join(json.dumps(p) + "\n" for p in plans)


def everything(d):
    found, cursor = [], {}
    while True:
        page = d.ask("plan.list", limit=100, **cursor)
        found += page["plans"]
        if not page.get("cursor"):
            return found
        cursor = {"cursor": page["cursor"]}


class Lines(BatonTest):
    def setUp(self):
        self.d = self.daemon(config="agents: []\n", agents=False)

    def plans(self):
        return everything(self.d)

    def run_lines(self, text, *args, code=0):
        done = self.d.cli_any("run", "--plans", "-", *args, stdin=text)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout.split(), done.stderr

    def test_each_line_is_a_plan_and_a_second_run_makes_none_twice(self):
        text = lines(*[dict(PLAN, goal="g%d" % i) for i in range(130)])
        first, _ = self.run_lines(text, "--key", "nightly")
        again, _ = self.run_lines(text, "--key", "nightly")
        self.assertEqual((len(set(first)), again, len(self.plans())), (130, first, 130))

    def test_a_bad_line_is_named_and_the_others_run(self):
        text = lines(PLAN) + "\n{not json\n" + lines({"steps": []}, PLAN) + "7\n"
        ids, said = self.run_lines(text, code=2)
        self.assertEqual((len(ids), len(self.plans())), (2, 2))
        for n, words in ((3, "plan: "), (4, "steps"), (6, "")):
            self.assertIn("line %d: %s" % (n, words), said)
        found = json.loads(self.d.cli_any("run", "--plans", "-", "--json", stdin=text).stdout)
        self.assertEqual([(x["line"], "planId" in x, "error" in x) for x in found],
                         [(1, True, False), (3, False, True), (4, False, True), (5, True, False), (6, False, True)])

    def test_what_is_remarked_about_a_line_is_said_with_its_number(self):
        plan = {"goal": "g", "steps": [{"stepId": "h", "type": "human_review", "task": "Is this report right as it is?"}]}
        text = lines(plan, dict(plan, colour="blue"))
        ids, said = self.run_lines(text, "--lenient")
        self.assertEqual(len(ids), 2)
        self.assertRegex(said, r"(?s)line 2: .*warning: .*colour")
        self.assertNotIn("line 1:", said)
        found = json.loads(self.d.cli("run", "--plans", "-", "--lenient", "--json", stdin=text))
        self.assertEqual(["problems" in x for x in found], [False, True])

    def test_a_line_does_not_wait_for_the_next_one(self):
        with subprocess.Popen([BIN / "baton", "run", "--plans", "-", "--state", self.d.state], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as p:
            for n in 1, 2:
                p.stdin.write(lines(PLAN).encode())
                p.stdin.flush()
                self.assertIn(p.stdout.readline().decode().strip(), {x["planId"] for x in self.plans()})
                self.assertEqual(len(self.plans()), n)
            p.stdin.close()
            self.assertEqual(p.wait(30), 0)

    def test_what_cannot_be_read_is_said(self):
        done = self.d.cli_any("run", "--plans", self.d.work)
        self.assertEqual((done.returncode, self.plans()), (1, []))
        self.assertIn("it cannot be read to its end: Is a directory", done.stderr)

    def test_nothing_is_nothing(self):
        self.assertEqual(self.run_lines("")[0], [])
        self.assertEqual(self.run_lines("\n \n")[0], [])
        self.assertEqual(json.loads(self.d.cli("run", "--plans", "-", "--json", stdin="\n")), [])

    def test_sizes_that_do_not_fit_into_one_request(self):
        def wide(n):
            return {"steps": [dict(PLAN["steps"][0], stepId="s%d" % i, task="x" * 8000) for i in range(n)]}
        text = lines(wide(1), wide(100), wide(60), PLAN, wide(140), wide(1), wide(2))
        ids, said = self.run_lines(text, code=2)
        self.assertEqual(len(ids), 6)
        self.assertIn("line 5: a request is at most 1048576 bytes", said)

    def test_what_does_not_go_with_it_is_refused(self):
        for args in (["a goal"], ["--session", "s"], ["--dry-run"], ["-f", "x.yaml"], ["--result", "a"]):
            done = self.d.cli_any("run", "--plans", "-", *args, stdin=lines(PLAN))
            self.assertEqual(done.returncode, 2, args)
            self.assertIn("--plans excludes", done.stderr)
        self.assertEqual(self.plans(), [])

    def test_with_a_credential(self):
        done = self.d.cli_any("credential", "add", "ann", "--role", "submitter")
        self.assertEqual(done.returncode, 0, done.stderr)
        file = self.d.state / "credentials" / "ann"
        done = self.d.cli_any("run", "--plans", "-", stdin=lines(PLAN, {"steps": []}, PLAN), env={"BATON_CREDENTIAL": str(file)})
        self.assertEqual((done.returncode, len(done.stdout.split())), (2, 2), done.stderr)
        self.assertEqual({p.get("owner") for p in self.plans()}, {"ann"})


class Kills(BatonTest):
    """G214"""

    def test_after_a_kill_each_plan_of_a_request_is_there_once(self):
        d = self.daemon(config="agents: []\nlimits: {maxOpenPlans: 200000}\n", agents=False)  # a release build takes 20,000 of them
        dice, acknowledged, stop = random.Random(214), {}, threading.Event()
        sent = []

        def client(of):
            n = 0
            while not stop.is_set():
                keys = ["%d-%d-%d" % (of, n, i) for i in range(dice.choice((1, 2, 9, 64)))]
                sent.extend(keys)
                while True:
                    try:
                        answer = d.ask_raw("plans.submit", timeout=3, plans=[dict(clientKey=k, plan=PLAN) for k in keys])
                    except (OSError, EOFError, ValueError, FileNotFoundError):
                        stop.wait(0.02)
                        continue
                    if answer["ok"]:
                        break
                for key, one in zip(keys, answer["answers"]):
                    assert one["ok"], one
                    acknowledged[key] = one["planId"]
                n += 1
        threads = [threading.Thread(target=client, args=(i,)) for i in range(3)]
        for t in threads:
            t.start()
        try:
            for _ in range(12):
                stop.wait(dice.uniform(0.05, 0.4))
                d.kill9()
                d.start(agents=False)
        finally:
            stop.set()
        for t in threads:
            t.join(60)
        self.assertEqual(sorted(acknowledged), sorted(sent))
        self.assertEqual(len(set(acknowledged.values())), len(sent))
        self.assertEqual(sorted(p["planId"] for p in everything(d)), sorted(acknowledged.values()))


class Old(unittest.TestCase):
    def test_a_daemon_that_knows_no_such_request_gets_them_one_by_one(self):
        ids = iter([ID % i for i in range(9)])
        s = Stage(self, {"plan.submit": lambda _: {"planId": next(ids)},
                         "plans.submit": Refusal("INVALID", "unknown request type 'plans.submit'")})
        out, _ = s.cli("run", "--plans", "-", "--key", "k", stdin=lines(PLAN, PLAN, PLAN))
        self.assertEqual(out.split(), [ID % 0, ID % 1, ID % 2])
        self.assertEqual([x["clientKey"] for x in s.of("plan.submit")], ["k-1", "k-2", "k-3"])
        self.assertEqual(len(s.of("plans.submit")), 1)

    def test_what_an_answer_leaves_open_is_submitted_by_itself(self):
        error = {"code": "UNAVAILABLE", "message": "later", "retryable": True}
        s = Stage(self, {"plan.submit": {"planId": ID % 1},
                         "plans.submit": {"answers": [{"v": 1, "type": "error", "ok": False, "error": error},
                                                      {"v": 1, "type": "plan.submit.ok", "ok": True, "planId": ID % 2}]}})
        out, _ = s.cli("run", "--plans", "-", "--key", "k", stdin=lines(PLAN, PLAN))
        self.assertEqual(out.split(), [ID % 1, ID % 2])
        self.assertEqual([x["clientKey"] for x in s.of("plan.submit")], ["k-1"])

    def test_where_nobody_answers_nobody_is_asked_for_each_plan(self):
        s = Stage(self, {"plans.submit": Refusal("UNAVAILABLE", "not now"), "plan.submit": Refusal("UNAVAILABLE", "not now")})
        _, said = s.cli("run", "--plans", "-", code=6, stdin=lines(*[PLAN] * 200))
        self.assertEqual((len(s.of("plans.submit")), len(s.of("plan.submit"))), (3, 0))
        self.assertIn("line 64: it may have been taken: not now", said)
        self.assertIn("and after: not sent: nobody answers", said)
        s.answers["plans.submit"] = lambda r: {"answers": [{"v": 1, "type": "error", "ok": False, "error": {
            "code": "UNAVAILABLE", "message": "stopping", "retryable": True}}] * len(r["plans"])}
        s.cli("run", "--plans", "-", code=6, stdin=lines(*[PLAN] * 200))
        self.assertEqual((len(s.of("plans.submit")), len(s.of("plan.submit"))), (4, 3))

    def test_an_answer_with_too_few_is_no_answer(self):
        s = Stage(self, {"plans.submit": {"answers": []}})
        _, said = s.cli("run", "--plans", "-", code=1, stdin=lines(PLAN, PLAN))
        self.assertIn("line 2: the answer to plans.submit is not one for each plan", said)


if __name__ == "__main__":
    main()
