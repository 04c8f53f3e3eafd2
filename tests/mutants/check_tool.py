#!/usr/bin/env python3
"""mutate.py calls a mutant by its right name: one that a test notices, one that changes nothing, one that is no C.

usage: check_tool.py BUILD; 77 = skipped, no namespaces here
"""
import subprocess
import sys

import mutate

TESTS = r"unit\.test_registry_card$"
CHANGES = [
    ("killed", "registry/card.c", "id.len == 0", "id.len != 0"),
    ("same code", "registry/card.c", "id.len == 0", "(0 == id.len)"),
    ("does not build", "registry/card.c", "id.len == 0", "id.len = = 0"),
]


def main():
    if subprocess.run(["unshare", "-pfm", "true"], capture_output=True).returncode and \
            subprocess.run(["unshare", "-rpfm", "true"], capture_output=True).returncode:
        print("SKIPPED: no namespace of processes here")
        return 77
    build = mutate.Build(sys.argv[1])
    build.read()
    tests = build.chosen([TESTS])
    assert len(tests) == 1, tests
    judge = mutate.Judge([("tests", build, tests)], mutate.isolation())
    bad = 0
    for want, *what in CHANGES:
        m = judge.judge(mutate.change(*what))
        print(f"{m['what']}: {m['verdict']}")
        bad += m["verdict"] != want
    places = mutate.draw(mutate.ROOT, ["registry/card.c"], 1000, 1)[0]
    print(f"{len(places)} places in registry/card.c")
    return 1 if bad or len(places) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
