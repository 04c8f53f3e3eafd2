"""A project as a user has one: made by `baton init`, with its own daemon, every command run in its directory.

    class T(Gallery):
        def test_x(self):
            p = self.project("etl-join")          # baton init --example etl-join; baton up
            p.run("--plan", "plan.yaml")
"""
import csv
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import BIN, ROOT, until

EXAMPLES = ROOT / "deploy" / "examples"
PLAN_ID = r"[0-9A-F]{8}(?:-[0-9A-F]{4}){3}-[0-9A-F]{12}"
NAMES = sorted(p.parent.name for p in EXAMPLES.glob("*/baton.yaml"))


class Project:
    def __init__(self, test, example, up=True):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="baton-gallery-"))
        test.addCleanup(shutil.rmtree, self.work, True)
        self.dir = self.work / example
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("BATON_")}
        self.env.update(PATH="%s:%s" % (BIN, os.environ["PATH"]), HOME=str(self.work), XDG_CONFIG_HOME=str(self.work))
        made = subprocess.run([BIN / "baton", "init", "--example", example, self.dir], capture_output=True, text=True, env=self.env, timeout=30)
        test.assertEqual(made.returncode, 0, made.stderr)
        self.made = made
        test.addCleanup(self.end)
        if up:
            self.baton("up")

    def any(self, *args, stdin=None, timeout=120, **env):
        return subprocess.run([BIN / "baton", *map(str, args)], cwd=self.dir, env={**self.env, **env}, capture_output=True, text=True,
                              timeout=timeout, input=stdin if stdin is not None else "")

    def baton(self, *args, code=0, **more):
        """Its stdout; fails when the exit code is another one."""
        done = self.any(*args, **more)
        if done.returncode != code:
            raise AssertionError("baton %s: exit %d, expected %d\n%s\n%s\n%s" % (" ".join(map(str, args)), done.returncode, code, done.stdout, done.stderr, self.log()))
        return done.stdout

    def sh(self, command, cwd=None):
        return subprocess.run(["sh", "-c", command], cwd=cwd or self.dir, env=self.env, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)

    def run(self, *args, code=0, **more):
        """Runs the plan of the example: (planId, what it prints)."""
        done = self.any("run", "--plan", "plan.yaml", *args, **more)
        if done.returncode != code:
            raise AssertionError("run %s: exit %d, expected %d\n%s\n%s\n%s" % (args, done.returncode, code, done.stdout, done.stderr, self.log()))
        return re.search("plan (%s)" % PLAN_ID, done.stderr).group(1), done.stdout

    def start(self, *args):
        return self.baton("run", "--plan", "plan.yaml", "--detach", *args).split()[-1]

    def result(self, plan, step=None):
        return self.baton("result", plan, *([step] if step else []))

    def view(self, plan):
        return json.loads(self.baton("status", plan, "--json"))

    def wait(self, plan, status="completed", seconds=60):
        return until(lambda: (lambda v: v if v["status"] == status else None)(self.view(plan)), seconds, "%s is %s\n%s" % (plan, status, self.log()))

    def reviews(self, plan):
        return [r for r in json.loads(self.baton("reviews", plan, "--json"))]

    def review(self, plan, kind):
        return until(lambda: next((r for r in self.reviews(plan) if r["kind"] == kind), None), 30, "a review %s of %s\n%s" % (kind, plan, self.log()))

    def events(self, plan, type_):
        lines = self.baton("events", plan, "--type", type_, "--json").splitlines()
        return [json.loads(line) for line in lines]

    def rows(self, name):
        with open(self.dir / name, newline="") as f:
            return list(csv.DictReader(f))

    def pid(self):
        return json.loads((self.dir / ".baton" / "endpoints.json").read_text())["pid"]

    def is_unlocked(self):
        """Whether no daemon holds the state; a killed one does until its last thread is gone."""
        with open(self.dir / ".baton" / "lock", "rb") as f:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def kill9(self):
        os.kill(self.pid(), signal.SIGKILL)
        until(self.is_unlocked, 10, "the daemon is gone")

    def log(self):
        path = self.dir / ".baton" / "batond.log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    def end(self):
        if self.dir.is_dir():
            self.any("down")
        state = self.dir / ".baton"
        at = state.stat() if state.exists() else None
        mine = [b"BATON_STATE=%s\0" % os.fsencode(state)] + ([b"BATON_SPAWNED=%x.%x\0" % (at.st_dev, at.st_ino)] if at else [])
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                told = (entry / "environ").read_bytes() + b"\0"
                if any(m in told for m in mine):
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                pass  # gone, or not ours to look into


class Gallery(unittest.TestCase):
    def project(self, example, up=True):
        return Project(self, example, up)


def table(text, heading=None):
    """The rows of a Markdown table, without its head; of the section with that heading."""
    if heading is not None:
        text = re.search(r"^## %s\n(.*?)(?=^## |\Z)" % re.escape(heading), text, re.M | re.S).group(1)
    return [tuple(c.strip() for c in line.strip("|").split("|")) for line in text.splitlines() if line.startswith("|")][2:]
