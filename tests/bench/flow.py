"""What control flow costs (the figures of "Flow" in FIGURES.md); by hand.

    BATON_BIN=build/release-tests/bin python3 tests/bench/flow.py [waits=100000] [schedules=100000] [items=10000] [steps=2000]

Prints the daemon's memory per waiting step (a time, a date, a signal) and per schedule, in bytes of VmRSS over an empty
daemon; the daemon's processor time per item of a forEach of 10 and of `items`; and per step with and without a condition.
"""
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import harness  # noqa: E402
from probe import Probe, step, wait_up  # noqa: E402

asked = dict(a.split("=") for a in sys.argv[1:])
WAITS, SCHEDULES, ITEMS, STEPS = (int(asked.get(k, n)) for k, n in (("waits", 100000), ("schedules", 100000), ("items", 10000), ("steps", 2000)))
WAIT = {"time": {"forMs": 86400000}, "date": {"until": "2100-01-01T00:00:00Z"}, "signal": {"signal": "go"}}
PLAN = 10000  # steps of one plan
DOUBLED = 5   # pairs of runs; the least counts


class Bench(harness.BatonTest):
    def memory(self):
        with open("/proc/%d/status" % self.d.process.pid) as f:
            return int(next(line for line in f if line.startswith("VmRSS")).split()[1]) * 1024

    def processor(self):
        with open("/proc/%d/stat" % self.d.process.pid) as f:
            at = f.read().rsplit(")", 1)[1].split()
        return (int(at[11]) + int(at[12])) * 1000000 / os.sysconf("SC_CLK_TCK")

    def test_waiting_steps(self):
        for name, wait in WAIT.items():
            self.d = self.daemon(config="", agents=False)
            at = [self.memory()]
            for _ in range(0, WAITS, PLAN):
                self.d.submit({"steps": [{"stepId": "s%d" % i, "wait": wait, "dependsOn": []} for i in range(min(PLAN, WAITS))]})
                at.append(self.memory())
            half = len(at) // 2
            print(name, "bytes per waiting step", (at[-1] - at[0]) // WAITS, "of the second half alone",
                  (at[-1] - at[half]) // (PLAN * (len(at) - 1 - half)), flush=True)
            self.d.stop()

    def test_schedules(self):
        self.d = self.daemon(config="", agents=False)
        plan = {"steps": [{"stepId": "s", "wait": {"forMs": 1}}]}
        before = self.memory()
        for i in range(SCHEDULES):
            self.d.ask("schedule.put", name="s%d" % i, plan=plan, cron="0 3 1 1 *", tz="Europe/Berlin")
        print("schedule bytes each", (self.memory() - before) // SCHEDULES, flush=True)

    def cost(self, plan, n):
        before = self.processor()
        self.assertEqual(self.d.wait_plan(self.d.submit(plan), 300)["status"], "completed")
        return (self.processor() - before) / n

    def worker(self):
        self.d = self.daemon(config="", agents=False)
        p = Probe(self.d, "a", work=lambda r: {"outcome": "completed", "result": {"data": 1}}, capacity=64)
        self.addCleanup(p.close)
        wait_up(self.d, "a")

    def test_maps(self):
        self.worker()

        def of(n):
            return {"steps": [{**step("m", "a"), "forEach": list(range(n)), "maxItems": 10000, "maxConcurrency": 64}]}
        few = sum(self.cost(of(10), 10) for _ in range(100)) / 100
        many = min(self.cost(of(ITEMS), ITEMS) for _ in range(2))
        print("forEach us per item: 10 %.0f, %d %.0f, ratio %.2f" % (few, ITEMS, many, many / few), flush=True)

    def test_conditions(self):
        self.worker()

        def of(when):
            return {"steps": [step("s", "a", dependsOn=[])] + [step("s%d" % i, "a", dependsOn=["s"], **when) for i in range(STEPS)]}
        got = [[], []]
        for _ in range(DOUBLED):
            for n, when in enumerate(({}, {"when": {"results.s.data": {"eq": 1}}})):
                got[n].append(self.cost(of(when), STEPS))
        print("us per step: plain %.1f, with a condition %.1f" % (min(got[0]), min(got[1])), flush=True)


sys.argv[1:] = []
if __name__ == "__main__":
    harness.main()
