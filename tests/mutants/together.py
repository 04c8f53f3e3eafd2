#!/usr/bin/env python3
"""Asks all tests about many mutants at once: what own tests left in FILE... (lines of mutate.py --out).

usage: together.py [--jobs 2] --out FILE FILE...

1. A copy of the tree gets all changes (build/together). It is built as the preset dev, and each test runs in it once: those of e2e
   when the others are through.
2. Each test that is red there is asked about each mutant alone, until one notices the mutant.
3. A mutant can hide another one: those that were noticed are taken out, and what was red runs again, until nothing is red, or
   what is red no mutant makes red alone (a busy machine, or two changes that only together do harm).
What is left is noticed by no test. So a hundred mutants cost as much as one run of all tests, and a few minutes more.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time

import mutate
from results import key_of, known_equivalent, load

WORK = os.path.join(mutate.ROOT, "build", "together")
TREE = os.path.join(WORK, "tree")
BUILD = os.path.join(TREE, "build", "dev")
FAILED = os.path.join(BUILD, "Testing", "Temporary", "LastTestsFailed.log")
# Lints judge how the text looks, packages and benchmarks build and measure: no defect of one line is theirs to notice.
NOT_ASKED = "^(lint|package|bench|chaos)$"


def apart(mutants):
    """Those whose changes do not touch each other; the others."""
    taken, left, ends = [], [], {}
    for m in sorted(mutants, key=lambda m: (m["file"], m["start"], m["end"])):
        if m["start"] >= ends.get(m["file"], 0):
            taken.append(m)
            ends[m["file"]] = m["end"] + 1
        else:
            left.append(m)
    return taken, left


def merged(text, mutants):
    """The text with the changes, each at its place in the text as it was."""
    for m in sorted(mutants, key=lambda m: -m["start"]):
        text = mutate.changed(text, m)
    return text


def copy_tree():
    """What git knows, or would add, as it is now; a build that was there stays, so that the next one is quick."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=mutate.ROOT, capture_output=True,
                           text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        source, target = os.path.join(mutate.ROOT, name), os.path.join(TREE, name)
        if os.path.lexists(source):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def place(mutants, files):
    """The files of the copy, with the changes of these mutants and no others."""
    for file in files:
        with open(os.path.join(mutate.ROOT, file), encoding="utf-8") as f:
            text = f.read()
        with open(os.path.join(TREE, file), "w", encoding="utf-8") as f:
            f.write(merged(text, [m for m in mutants if m["file"] == file]))


def build(jobs):
    subprocess.run(["cmake", "--preset", "dev", "-DBATON_WERROR=OFF"], cwd=TREE, stdout=subprocess.DEVNULL, check=True)
    well, said = mutate.ends(["ninja", "-C", BUILD, "--quiet", "-k", "0", f"-j{jobs}"], mutate.BUILD_SECONDS)
    if not well:
        sys.exit(f"the copy with all changes does not build; take out those that it names:\n{said[-3000:]}")


def red_tests(jobs, *chosen):
    """The names of what is red in the copy."""
    if os.path.exists(FAILED):
        os.remove(FAILED)
    subprocess.run([*mutate.isolation(), "nice", "ctest", "--test-dir", BUILD, "-j", str(jobs), "--timeout", "900", *chosen],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if not os.path.exists(FAILED):
        return set()
    with open(FAILED, encoding="utf-8") as f:
        return {line.split(":", 1)[1].strip() for line in f}


def ask_alone(alone, mutants, red):
    """The mutants that no test of `red` notices when each is alone; the others have their verdict."""
    tests = [t for t in alone.tests.values() if t["name"] in red]
    judge = mutate.Judge([("wide", alone, tests)], mutate.isolation())
    left = []
    for m in mutants:
        m["again"] = True
        judge.judge(m)
        print(f"  {m['verdict']:9} {m['file']}:{m['line']} {m['what']}  {m.get('by', '')}", flush=True)
        if m["verdict"] == "survived":
            left.append(m)
    return left


def ask(alone, left, files, jobs, *chosen):
    """The mutants that no test of the chosen ones notices."""
    while left:
        place(left, files)
        build(jobs)
        red = red_tests(jobs, *chosen)
        print(f"{len(left)} mutants: red: {' '.join(sorted(red)) or 'nothing'}", flush=True)
        before = len(left)
        if red:
            left = ask_alone(alone, left, red)
        if not red or len(left) == before:
            break
        jobs, chosen = 1, ("-R", f"^({'|'.join(map(re.escape, sorted(red)))})$")
    return left


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--out", required=True)
    p.add_argument("files", nargs="+")
    args = p.parse_args()
    known = known_equivalent()
    mutants = load(args.files)
    asked, overlapping = apart([m for m in mutants if m["verdict"] == "survived" and key_of(m) not in known])
    began = time.monotonic()
    print(f"{len(asked)} of {len(mutants)} mutants together; {len(overlapping)} touch another one and are not asked", flush=True)
    copy_tree()
    files = {m["file"] for m in asked}
    alone = mutate.Build(os.path.join(mutate.ROOT, "build", "dev"))
    alone.ninja([], args.jobs)
    alone.read()
    left = ask(alone, asked, files, args.jobs, "-LE", NOT_ASKED[:-2] + "|e2e)$")
    ask(alone, left, files, args.jobs * 2, "-L", "^e2e$")  # whole daemons wait more than they compute
    print(f"{time.monotonic() - began:.0f} s", flush=True)
    with open(args.out, "w", encoding="utf-8") as f:
        for m in mutants:
            f.write(json.dumps(m) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
