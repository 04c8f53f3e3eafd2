"""A random black-box test over the documented wire: everything that may go wrong does, and what was promised holds.

usage: chaos.py [--seconds 60] [--seed N] [--keep]      see README.md
"""
import argparse
import json
import os
import random
import sys
import time

from world import World  # first: it sets the paths
import checks
import clients
import harness


def dismiss(crew):
    for member in crew:
        member.stopping.set()
    for member in crew:
        member.join(60)
        if member.broken:
            raise member.broken


def settle(world, plans, crew, seconds):
    """Everything is healed, nothing new comes; the plans have time to end."""
    world.heal()
    for member in crew[:-2]:
        member.stopping.set()
    while any(member.is_alive() for member in crew[:-2]):
        world.watch()
        time.sleep(0.05)
    deadline = time.monotonic() + seconds
    asker = clients.Client(world, plans, 1000)
    left = set(plans.documents)
    while left and time.monotonic() < deadline:
        world.watch()
        for plan in sorted(left):
            try:
                answer = asker.ask("plan.get", planId=plan, steps=False)
            except (OSError, EOFError, ValueError):
                world.watch()
                continue
            if answer["ok"] and answer["status"] in checks.ENDED:
                left.discard(plan)
            if answer["ok"] and "requested" in answer.get("paused", ()):  # by a client that has ended before its plan.resume
                resumed = asker.insist("plan.resume", planId=plan)
                if not resumed["ok"] and resumed["error"]["code"] != "CONFLICT":
                    world.found("resume", str(resumed["error"]), plan)
            if not answer["ok"] and not answer["error"]["retryable"]:
                left.discard(plan)  # the check names it
        time.sleep(0.2)
    if left:
        print("chaos: %d plans had not ended %g s after the last disturbance" % (len(left), seconds), file=world.out)
    dismiss(crew)
    return asker


def logs_are_clean(world):
    text = (world.work / "batond.log").read_text(errors="replace")
    for mark in ("AddressSanitizer", "LeakSanitizer", "runtime error:", "assertion", "stack-buffer"):
        if mark in text:
            at = text.index(mark)
            world.found("log", "%s:\n%s" % (mark, text[max(0, at - 300):at + 2500]))
    for path in world.work.glob("err.*"):
        if "Traceback" in path.read_text():
            world.found("test", "an agent of the test is broken: " + path.read_text()[-1500:])


def run(seconds, seed, keep=False, out=sys.stdout):
    """One run; the findings. The directory of a run with findings is kept."""
    world = World(seed, seconds, out)
    plans = clients.Plans()
    crew = []
    print("chaos: seed %d, %g s, %s%s" % (seed, seconds, world.work, "" if world.small_disk else ", no disk of its own"), file=out, flush=True)
    try:
        world.start()
        for a in world.agents:
            a.start()
        harness.until(lambda: ready(world, plans), 60, "all agents are there")
        crew = [clients.Client(world, plans, n, through_proxy=n == 2) for n in range(3)]
        crew += [clients.Reviewer(world, plans, 10), clients.Subscriber(world, plans, 11)]
        for member in crew:
            member.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            world.pause(0.3, 2.5)
            world.act()
        asker = settle(world, plans, crew, 120)
        check = checks.Check(world, plans, lambda type_, **f: must(asker, type_, f))
        check.run(crew[-1].seen)
        world.stop()
        logs_are_clean(world)
    except BaseException:
        keep = True
        print("chaos: seed %d broke off: %s" % (seed, world.work), file=out, flush=True)
        raise
    finally:
        for member in crew:
            member.stopping.set()
        world.close(keep or bool(world.findings))
    figures(world, plans, seed, out)
    return world.findings


def ready(world, plans):
    answer = clients.Client(world, plans, 1001).ask("agents.list")
    return answer["ok"] and {a["card"]["agentId"] for a in answer["agents"] if a["state"] == "up"} >= set(clients.AGENTS)


def must(asker, type_, fields):
    answer = asker.ask(type_, **fields)
    if not answer["ok"]:
        raise AssertionError("%s %s: %s" % (type_, fields, answer["error"]))
    return answer


def figures(world, plans, seed, out):
    c = world.counts
    disturbances = {k: v for k, v in sorted(c.items()) if k.split("_")[0] in ("kill", "stop", "end", "partition", "full")}
    print("chaos: seed %d: %d plans, %d executions, %d events, %d requests, %d refusals, %d decisions" % (
        seed, plans.total(), c.get("executions", 0), c.get("events", 0), c.get("requests", 0), c.get("refusals", 0), c.get("decisions", 0)), file=out)
    print("chaos: %d disturbances: %s" % (sum(disturbances.values()), ", ".join("%s %d" % kv for kv in disturbances.items())), file=out)
    shown = set()
    with open(world.work / "findings", "w") if world.findings else open(os.devnull, "w") as whole:
        for f in world.findings:
            whole.write("%s %s\n%s\n%s\n\n" % (f["kind"], f["plan"], f["text"], json.dumps(plans.documents.get(f["plan"]))))
            print("FINDING %s (seed %d, plan %s)\n  %s" % (f["kind"], seed, f["plan"], f["text"][:1200]), file=out)
            if f["plan"] in plans.documents and f["plan"] not in shown and len(shown) < 5:
                print("  " + json.dumps(plans.documents[f["plan"]]), file=out)
                shown.add(f["plan"])
    kinds = {}
    for f in world.findings:
        kinds[f["kind"]] = kinds.get(f["kind"], 0) + 1
    print("chaos: findings: %d %s%s" % (len(world.findings), kinds or "", "\nchaos: kept: %s" % world.work if world.findings else ""), file=out, flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    p.add_argument("--keep", action="store_true")
    p.add_argument("--without", default="", help="acts of agents that are left out, joined by commas")
    args = p.parse_args()
    clients.ACTS = tuple(a for a in clients.ACTS if a not in args.without.split(","))
    return 1 if run(args.seconds, args.seed, args.keep) else 0


if __name__ == "__main__":
    sys.exit(main())
