#!/usr/bin/env python3
"""deploy/HTTP.md: its commands run as they stand there, and its table has every request."""
import json
import re
import shutil
import subprocess
import unittest

import gateway
from gateway import CALC, Gateway
from harness import BIN, ROOT, BatonTest, main

PAGE = (ROOT / "deploy" / "HTTP.md").read_text()


def setUpModule():
    gateway.need()


class Page(BatonTest):
    @unittest.skipUnless(shutil.which("curl"), "SKIPPED: there is no curl; install the package curl")
    def test_each_command_of_the_page_does_what_it_says(self):
        d = self.daemon(config=CALC)
        Gateway(self, d)
        start = re.search(r"(?m)^ {4}STATE=.*\n(?: {4}.*\n)+", PAGE).group(0)
        outputs = self.run_blocks(d, start, re.findall(r"(?ms)^```sh\n(.*?)^```\n", PAGE))
        self.assertEqual(len(outputs), 8)
        info, made, _, events, task, views, reviews, last = outputs
        self.assertIn("version", json.loads(info))
        plan = json.loads(made)["planId"]
        self.assertTrue(events.startswith("retry: 1000\n\nid: ") and "event: plan_completed\n" in events, events)
        said = [json.loads(line[6:]) for line in task.splitlines() if line.startswith("data: ")]
        self.assertEqual([(o["type"], o.get("results", {}).get("sum")) for o in said], [("progress", None), ("complete", 5)], task)
        self.assertIn('"planId":"%s","status":"completed"' % plan, views)
        self.assertIn('"aggregatedResult":"3"', views)
        self.assertTrue(reviews.startswith('{"reviews":[]}{"type":"urn:baton:error:'), reviews)
        self.assertTrue(last.startswith('{"events":[{"seq":3,') and '"name":"nightly","status":"active"' in last and last.endswith('{"name":"nightly"}'), last)

    def run_blocks(self, d, start, blocks):
        """All in one shell; what each printed."""
        script = "set -eu\n" + start + "".join("%s\nprintf '\\001'\n" % b for b in blocks)
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=120,
                              env={"BATON_STATE": str(d.state), "PATH": "/usr/bin:/bin", "HOME": str(d.work)})
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout.split("\x01")[:-1]

    def test_the_table_has_every_request(self):
        document = json.loads(subprocess.run([BIN / "baton-gateway", "--openapi"], capture_output=True, check=True, timeout=20).stdout)
        there = [(m.upper(), p, o["x-baton-request"]) for p, ms in document["paths"].items() for m, o in ms.items() if "x-baton-request" in o]
        self.assertEqual(re.findall(r"(?m)^\| (GET|POST|PUT|DELETE) \| `([^`]+)` \| ([a-z.]+) \|$", PAGE), there)


if __name__ == "__main__":
    main()
