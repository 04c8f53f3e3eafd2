"""Nothing that is said is lost, counts twice or stays without its end, whenever the daemon is killed (kill -9)."""
import collections
import os
import random
import threading

from harness import main, until
from test_sessions import Sessions as Base

ROUNDS = 8
WORDS = ["do a thing", "I wonder", "status", "stop", "new plan: do a thing", "skip step 1", "yes", "do a thing"]
WISHES = [{"action": "conversation_only", "reply": "so it is"}, {"action": "new_plan", "goal": "do a thing"},
          {"action": "skip_steps", "stepsToSkip": [1]}, {"action": "stop"}]


class Kill(Base):
    def setUp(self):
        super().setUp()
        seed = int(os.environ.get("BATON_SEED", random.randrange(1 << 30)))
        print("seed %d" % seed, flush=True)
        self.rng = random.Random(seed)
        self.lock = threading.Lock()
        self.open = {}  # clientKey -> (session, text): not known to be taken
        self.taken = {}  # clientKey -> turnId
        self.wrong = []

    def think(self, r):
        if r["skill"] == "summarize":
            return {"outcome": "completed", "result": {"text": "in short"}}
        return {"outcome": "completed", "result": {"data": self.rng.choice(WISHES)}}

    def next_message(self, session):
        with self.lock:
            if self.open and self.rng.random() < 0.3:
                key = self.rng.choice(list(self.open))
            else:
                key = "k%d" % (len(self.open) + len(self.taken))
                self.open[key] = (session, self.rng.choice(WORDS))
            return key, *self.open[key]

    def talk(self, session, enough, dead):
        while not dead.is_set():
            key, where, text = self.next_message(session)
            try:
                said = self.d.ask("session.say", timeout=5, sessionId=where, text=text, clientKey=key)
            except (OSError, EOFError, ValueError, KeyError):
                continue
            with self.lock:
                if self.taken.setdefault(key, said["turnId"]) != said["turnId"]:
                    self.wrong.append(key)
                self.open.pop(key, None)
                enough.release()

    def round(self, probes):
        enough, dead = threading.Semaphore(0), threading.Event()
        talkers = [threading.Thread(target=self.talk, args=("s%d" % (i % 2), enough, dead)) for i in range(3)]
        for t in talkers:
            t.start()
        for _ in range(self.rng.randrange(1, 60)):
            enough.acquire(timeout=15)
        self.d.kill9()
        dead.set()
        for t in talkers:
            t.join()
        self.d.start(agents=False)
        for p in probes:
            p.register()

    def messages(self, session):
        all_, before = [], {}
        while True:
            page = self.get(session, limit=1000, **before).get("messages", [])
            if not page:
                return all_
            all_ = page + all_
            before = {"before": page[0]["n"]}

    def ended(self):
        events = self.d.events()
        starts = [e["turnId"] for e in events if e["type"] == "turn_start"]
        ends = [e["turnId"] for e in events if e["type"] == "turn_end"]
        return (starts, ends, events) if set(starts) == set(ends) else None

    def test_each_message_is_one_turn_with_one_end_and_at_most_one_plan(self):
        probes = [self.probe(), self.probe("talker", work=self.think, skills=("converse", "summarize"))]
        for _ in range(ROUNDS):
            self.round(probes)
        for key, (session, text) in self.open.items():
            self.taken[key] = self.say(text, session, clientKey=key)["turnId"]
        self.assertEqual(self.wrong, [], "a key is one turn")
        starts, ends, events = until(self.ended, 60, "all turns end")
        self.assertEqual(sorted(starts), sorted(self.taken.values()))
        self.assertEqual(sorted(ends), sorted(starts))
        self.assertEqual([e for e in events if e["type"] == "turn_end" and "action" not in e], [])
        plans = [e["turnPlanId"] for e in events if e["type"] == "turn_end" and e["action"] == "new_plan" and "turnPlanId" in e]
        self.assertEqual(sorted(plans), sorted(e["planId"] for e in events if e["type"] == "plan_generated"))
        for session in ("s0", "s1"):
            said = self.messages(session)
            self.assertEqual([m["n"] for m in said], list(range(1, len(said) + 1)))
            for role in ("user", "assistant"):
                turns = collections.Counter(m["turnId"] for m in said if m["role"] == role)
                self.assertEqual(set(turns.values()), {1}, role)


if __name__ == "__main__":
    main()
