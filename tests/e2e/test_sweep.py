"""The daemon dies at points of failure in the middle of a reference workload, and everything still ends right.

CI takes some of the points, by a seed that is printed (BATON_SEED takes its place); all of them, and more pairs:
`python3 tests/chaos/sweep.py`. Failures that are no deaths are here, too: a commit that fails, or is done and reported as failed.
"""
import os
import random
import sys
import unittest

import harness

sys.path.insert(0, str(harness.ROOT / "tests" / "chaos"))

import sweep  # noqa: E402  (the path is set just above)


class Points(unittest.TestCase):
    def dies(self, points, bundle=0):
        seed = int(os.environ.get("BATON_SEED", random.randrange(1 << 31)))
        self.assertEqual(sweep.sweep(int(os.environ.get("BATON_POINTS", points)), 3, seed, bundle), [], "seed %d" % seed)

    def test_everything_ends_right_wherever_the_daemon_dies(self):
        self.dies(10)

    def test_and_so_it_does_with_an_agent_that_takes_bundles(self):
        self.dies(6, bundle=16)

    def right(self, point, ends):
        ran = sweep.once(point)
        self.assertEqual(ran.findings, [], point)
        self.assertEqual(ran.ends, ends, point)
        for rule in point.split(","):  # or nothing was tested
            name, n = rule.split(":")[0].split("@")
            self.assertGreaterEqual(ran.seen[0].count(name), int(n), point)

    def test_commit_that_fails_ends_the_daemon_and_nothing_is_lost(self):
        self.right("commit@9:error", 1)

    def test_commit_that_was_done_and_failed_ends_the_daemon_and_nothing_is_doubled(self):
        self.right("commit@9:after", 1)

    def test_client_that_lost_the_answer_repeats_its_request_and_gets_the_same_plan(self):
        self.right("reply@12:drop,reply@13:drop,reply@14:drop,reply@15:drop,reply@16:drop", 0)

    def test_steps_that_could_not_be_sent_are_sent_again(self):
        self.right("send@3:error,send@5:error,send@7:error,send@8:error", 0)

    def test_lost_publications_change_nothing(self):
        self.right("publish@5:drop,publish@6:drop,publish@20:drop", 0)

    def test_agent_that_could_not_be_started_is_started_again(self):
        self.right("spawn@1:error", 0)

    def test_slow_disk_timers_and_answers_change_nothing(self):
        self.right("commit@5:delay,reply@9:delay,timer@1:delay,send@4:delay,arrive@30:delay", 0)


if __name__ == "__main__":
    harness.main()
