#!/usr/bin/env python3
"""mutate.py calls a mutant by its right name: one that a test notices, one that changes nothing, one that is no C.
Each source has a room, and each room's tests are there.

usage: check_tool.py BUILD; 77 = skipped, no namespaces here
"""
import re
import subprocess
import sys

import mutate
import together

TESTS = r"unit\.test_registry_card$"
CHANGES = [
    ("killed", "registry/card.c", "id.len == 0", "id.len != 0"),
    ("same code", "registry/card.c", "id.len == 0", "(0 == id.len)"),
    ("does not build", "registry/card.c", "id.len == 0", "id.len = = 0"),
]


def rooms_are_whole(build):
    """The number of sources without a room, and of names of tests that no test has."""
    bad = 0
    placed = {f for patterns, _ in mutate.ROOMS.values() for f in mutate.sources(patterns)}
    for source in sorted(set(build.compile) - placed):
        if re.match(r"(protocol|registry|supervisor|agents)/", source) and not source.startswith("agents/node/"):
            print(f"{source} has no room in mutate.py: no mutant of it is ever drawn")
            bad += 1
    names = " ".join(build.tests)
    for room, (_, own) in mutate.ROOMS.items():
        for group, words in re.findall(r"(e2e|unit)\\\.(?:test_)?\(([\w|]+)\)", " ".join(own)):
            for word in words.split("|"):
                if not re.search(rf"\b{group}\.(test_)?\w*{word}", names):
                    print(f"{room}: no test is called {group}.{word}")
                    bad += 1
        if not build.chosen(own) and room != "postgres":
            print(f"{room}: it has no tests of its own")
            bad += 1
    return bad


def merges():
    """The number of what is wrong with several changes of one file: each is made at its place, and one that touches another is not."""
    first = mutate.change("registry/card.c", "id.len == 0", "id.len != 0")
    inside = mutate.change("registry/card.c", "== 0", "== 1")
    inside.update(start=first["start"] + 7, end=first["end"])
    last = mutate.change("registry/card.c", "return true;", "return false;")
    taken, left = together.apart([last, inside, first])
    with open(f"{mutate.ROOT}/registry/card.c", encoding="utf-8") as f:
        text = f.read()
    want = text.replace("id.len == 0", "id.len != 0", 1).replace("return true;", "return false;", 1)
    return (taken != sorted([first, last], key=lambda m: m["start"])) + (left != [inside]) + (together.merged(text, taken) != want)


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
    bad = rooms_are_whole(build) + merges()
    for want, *what in CHANGES:
        m = judge.judge(mutate.change(*what))
        print(f"{m['what']}: {m['verdict']}")
        bad += m["verdict"] != want
    places = mutate.draw(mutate.ROOT, ["registry/card.c"], 1000, 1)[0]
    print(f"{len(places)} places in registry/card.c")
    return 1 if bad or len(places) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
