#!/usr/bin/env python3
"""Random mutation test of the C rooms: how many small wrong changes does a test notice?

usage: mutate.py (--room NAME | --file GLOB --tests REGEX) [--n 20] [--seed 1] [--out FILE] [--list]
       mutate.py --caps (--room NAME | --file GLOB)         every comparison with a cap: one less, one more
       mutate.py --change FILE OLD NEW [--tests REGEX]      a chosen change, at the first OLD; more than once
       mutate.py --again FILE [--tests REGEX]               the survivors of FILE once more
       mutate.py --report FILE...                           rates and survivors
       mutate.py --rooms                                    the names of the rooms

No source is changed: a mutant is compiled beside the build, and each test is linked with it in
front of the libraries and run, until the first is red. Standard library only. README.md has more.
"""
import argparse
import collections
import concurrent.futures
import fcntl
import glob
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from results import key_of, known_equivalent, load, report
from sites import caps, draw, line_of

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# A room: its sources (patterns), and its own tests: folders below tests/, or names of tests (a regex).
# Doors, agents and what only real processes reach have e2e tests of their own. Those of DAEMON are tested together, over
# tests/support/house.
DAEMON = ["unit/api", "unit/conversation", "unit/dispatch", "unit/engine", "unit/query", "unit/transcripts", "edge/house"]
ROOMS = {
    "core": ("supervisor/core/*/*.c", ["unit/core"]),
    # unit/journal once, not again on a server: that is another implementation of the port.
    "journal": ("supervisor/journal/*.c", [r"unit\.journal_", "unit/events", r"edge\.journal_(open|full|limits|damage)$", r"unit\.test_suspects$"]),
    "events": ("supervisor/events/*.c", ["unit/events", r"lint\.events$"]),
    "engine": ("supervisor/engine/*.c", DAEMON),
    "query": ("supervisor/query/*.c", DAEMON),
    "dispatch": ("supervisor/dispatch/*.c", DAEMON),
    "conversation": ("supervisor/conversation/*.c", DAEMON),
    "api": ("supervisor/api/**/*.c", DAEMON),
    "plan": ("supervisor/plan/**/*.c", ["unit/plan", r"lint\.plan_schema$"]),
    "keyword": ("supervisor/keyword/*.c", ["unit/keyword"]),
    "config": ("supervisor/config/*.c", ["unit/config"]),
    "retention": ("supervisor/retention/*.c", ["unit/retention"]),
    "spawn": ("supervisor/spawn/*.c", ["unit/spawn", "edge/spawn"]),
    "link": ("protocol/link/*.c", ["edge/link"]),
    "wire": ("protocol/wire/*.c", ["unit/wire"]),
    "base": ("protocol/base/*.c", ["unit/base"]),
    "auth": ("protocol/auth/*.c", ["unit/auth"]),
    "jsonschema": ("protocol/jsonschema/*.c", ["unit/jsonschema"]),
    "compat": ("protocol/compat/*.c", ["unit/compat"]),
    "registry": ("registry/*.c", ["unit/registry"]),
    "sdk": ("agents/sdk/*.c", ["unit/sdk"]),
    "cells": ("agents/cells/*.c", [r"unit\.test_(cells|csv)$"]),
    "files": ("agents/files/*.c", [r"unit\.test_files_.*"]),
    "sql": ("agents/sql/*.c", [r"unit\.test_sql_.*"]),
    "calc": ("agents/calc/*.c", [r"unit\.test_calc_.*"]),
    "exec": ("agents/exec/*.c", [r"unit\.test_exec_.*"]),
    "zone": ("protocol/zone/*.c", ["unit/zone", "unit/schedule"]),
    "artifact": ("protocol/artifact/*.c", ["unit/artifact", r"unit\.test_(sdk_artifact|api_artifacts)$"]),
    "artifacts": ("supervisor/artifacts/*.c", ["unit/artifact", r"unit\.test_api_artifacts$"]),
    "client": ("protocol/client/*.c", [r"unit\.test_(state|state_file|fleet_map|seeds|credential|exchange)$",
                                         r"edge\.test_client(_answers|_memory|_moves|_plans|_remote|_sealed|_watch)?$", r"edge\.test_listener$"]),
    "schedule": ("supervisor/schedule/**/*.c", ["unit/schedule", r"unit\.(test_api|journal)_schedules$"]),
    "transfer": ("supervisor/transfer/*.c", ["unit/transfer", r"unit\.test_api_storage$", r"e2e\.transfer$"]),
    "audit": ("supervisor/audit/*.c", ["unit/audit", r"unit\.test_api_audit$"]),
    "access": ("supervisor/auth/*.c", ["unit/auth", r"unit\.test_api_(auth|later|quotas|roles|processes)$", r"unit\.test_keeper$"]),
    "certs": ("supervisor/certs/*.c", ["unit/certs", r"e2e\.certs$"]),
    "daemon": ("supervisor/*.c", ["unit/daemon", r"e2e\.(batond|processes|who_left|late)$"]),
    "node": ("supervisor/node/*.c", [r"unit\.test_(balance|node|node_map)$", r"e2e\.(fleet|fleet_grows|shards)$"]),
    "postgres": ("supervisor/journal/postgres/*.c", ["unit/postgres", r"postgres\.", r"edge\.postgres_.*"]),
    "journal_log": ("supervisor/journal/log/*.c", ["unit/journal", "edge/journal"]),
    "bridge": ("supervisor/bridge/*.c", ["unit/bridge", r"e2e\.(bridge_nats|shards_nats)$"]),
    "gateway": ("supervisor/gateway/*.c", ["unit/gateway", r"e2e\.gateway(_(agents|events|framing|hostile|openapi|page|roles|words))?$"]),
    "gateway_a2a": ("supervisor/gateway/a2a/*.c", [r"unit\.test_gateway_(a2a|tasks)$", r"e2e\.gateway_a2a$"]),
    "gateway_mcp": ("supervisor/gateway/mcp/*.c", [r"unit\.test_gateway_(mcp|stdio)$", r"e2e\.gateway_mcp$"]),
    "gateway_incoming": ("supervisor/gateway/incoming/*.c", [r"unit\.test_gateway_(hooks|incoming)$", r"e2e\.incoming$"]),
    "gateway_polled": ("supervisor/gateway/polled/*.c", [r"unit\.test_gateway_(polled|instances)$", r"e2e\.gateway_agents$"]),
    "gateway_telemetry": ("supervisor/gateway/telemetry/*.c", [r"unit\.test_gateway_(parent|traces|spans|counts)$", r"e2e\.gateway_telemetry$"]),
    "gateway_webhook": ("supervisor/gateway/webhook/*.c", [r"unit\.test_gateway_(webhook|queues|pushes)$", r"e2e\.webhooks$"]),
    "cli": ("supervisor/cli/*.c supervisor/cli/chat/*.c supervisor/cli/verbs/**/*.c",
            ["unit/cli", r"e2e\.(auth|cli|cli_plans|cli_planning|chat|verbs|ends|completion|bad_input|mistakes|vocabulary)$"]),
    "view": ("supervisor/cli/common/*.c supervisor/cli/picture/*.c supervisor/cli/usage/*.c supervisor/cli/view/*.c",
             ["unit/cli", r"e2e\.(pictures|cli_plans|recipes|lint|state_view|story|completion|verbs)$"]),
    "llm": ("agents/llm/*.c", [r"unit\.test_llm_(asked|prompt|plan_check|plan_trim|skills)$", r"edge\.test_llm_agent$"]),
    "model": ("agents/llm/model/*.c", ["unit/model", "edge/model"]),
    "web": ("agents/web/*.c", [r"unit\.test_(web_.*|settings_oom)$", "unit/model", "edge/model", r"e2e\.http_agent$"]),
    "http": ("agents/http/*.c", [r"unit\.test_(http_.*|settings_oom)$", r"e2e\.http_agent$"]),
    "mcp": ("agents/mcp/*.c", [r"unit\.test_(mcp_.*|settings_oom)$", r"e2e\.mcp_agent$"]),
    "a2a": ("agents/a2a/*.c", [r"unit\.test_(a2a_.*|settings_oom)$", r"e2e\.a2a_agent$"]),
    "rag": ("agents/rag/*.c", [r"unit\.test_rag_.*", r"e2e\.rag$"]),
    "graph": ("agents/graph/*.c", [r"unit\.test_graph(_oom)?$"]),
    "report": ("agents/report/*.c", [r"unit\.test_(report.*|settings_oom)$", r"e2e\.report$"]),
    "sdk_parts": ("agents/sdk/*/*.c", ["unit/sdk", r"unit\.test_exec_.*"]),
}

CONFIGURE = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O0 -g0", "-DBATON_TESTS=ON",
             "-DBATON_WERROR=OFF", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
CPU_SECONDS = 20  # of one process of a test, until its usual time is known
WALL_SECONDS = 300  # of a test, until its usual time is known
TOOL_SECONDS = 600  # of a compiler or a linker: a defect can be what one never ends with
BUILD_SECONDS = 3600


def ends(command, seconds=TOOL_SECONDS, **more):
    """Whether the command ends well and in time; it and its processes are gone then."""
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         start_new_session=True, **more)
    try:
        said, _ = p.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        p.communicate()
        return False, f"not done after {seconds} s"
    return p.returncode == 0, said


class Build:
    """A build of the tree, its tests, and how its programs are linked."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.cost = {}  # test -> processor seconds
        self.took = {}  # test -> seconds, of this run or an earlier one
        self.lock = threading.Lock()
        os.makedirs(self.path, exist_ok=True)
        self.mine = open(os.path.join(self.path, "mutate.lock"), "w", encoding="utf-8")
        try:
            fcntl.flock(self.mine, fcntl.LOCK_EX | fcntl.LOCK_NB)  # another run would link what this one builds
        except BlockingIOError:
            print(f"waiting for another run in {self.path}", flush=True)
            fcntl.flock(self.mine, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(self.path, "build.ninja")):
            subprocess.run(["cmake", "-S", ROOT, "-B", self.path, *CONFIGURE], check=True, stdout=subprocess.DEVNULL)

        self.times = os.path.join(self.path, "mutate.times.json")
        if os.path.exists(self.times):
            with open(self.times, encoding="utf-8") as f:
                self.took = json.load(f)

    def learn(self, test, cpu, wall):
        """A green test took this long."""
        with self.lock:
            self.cost.setdefault(test["name"], cpu + 0.2)
            if wall < self.took.get(test["name"], 1e9):
                self.took[test["name"]] = round(wall, 2)
                with open(self.times + ".new", "w", encoding="utf-8") as f:
                    json.dump(self.took, f)
                os.replace(self.times + ".new", self.times)

    def guess(self, test):
        """The seconds that a test takes: the cheapest are asked first."""
        return self.took.get(test["name"], 1 if test["program"] else 30)

    def ninja(self, targets, jobs):
        well, said = ends(["nice", "ninja", "-C", self.path, "--quiet", f"-j{jobs}", *targets], BUILD_SECONDS)
        if not well:
            sys.exit(f"the build without a mutant fails:\n{said[-2000:]}")

    def read(self):
        """The commands of the build, and its tests."""
        self.ninja(["build.ninja"], 1)
        out = subprocess.run(["ninja", "-C", self.path, "-t", "compdb"], capture_output=True, text=True, check=True)
        self.compile, self.archive_of, self.links = collections.defaultdict(list), {}, {}
        for entry in json.loads(out.stdout):
            output, command = entry["output"], entry["command"]
            if " -c " in command and output.endswith(".o"):
                source = os.path.relpath(os.path.join(self.path, entry["file"]), ROOT)
                self.compile[source].append((output, command))
            elif output.endswith(".a"):
                for word in command.split():
                    if word.endswith(".o"):
                        self.archive_of[word] = output
            elif re.match(r"(tests|bin)/[^/]+$", output) and " -o " in command:
                self.links[output] = command
        self.tests = {}
        listed = subprocess.run(["ctest", "--show-only=json-v1"], cwd=self.path, capture_output=True, text=True, check=True)
        for t in json.loads(listed.stdout)["tests"]:
            props = {p["name"]: p["value"] for p in t["properties"]}
            program = "tests/" + t["name"].split(".", 1)[-1]
            command = t.get("command") or [os.path.join(self.path, program)]
            if re.search(r"/e2e/test_\w+\.py$", command[-1]) and not takes_arguments(command[-1]):
                command = [*command, "-f"]  # ends with its first red test
            self.tests[t["name"]] = {
                "name": t["name"], "command": command, "cwd": props.get("WORKING_DIRECTORY", self.path),
                "env": dict(e.split("=", 1) for e in props.get("ENVIRONMENT", [])), "skip": props.get("SKIP_RETURN_CODE"),
                "program": program if program in self.links and command[0].endswith(program) else None}

    def chosen(self, words):
        """The tests of folders below tests/ and of names, as regular expressions."""
        out = []
        for t in self.tests.values():
            for word in words:
                # Of its own objects: many are linked with a fixture of another folder.
                own = rf"(^|\s)tests/{word}/(\S*/)?CMakeFiles/{re.escape(os.path.basename(t['program'] or ''))}\.dir/"
                if ("/" in word and t["program"] and re.search(own, self.links[t["program"]])) or ("/" not in word and re.match(word, t["name"])):
                    out.append(t)
                    break
        return out

    def reached(self, test, objects):
        """The programs that this test runs and that have one of the objects in them."""
        out = []
        for program, link in self.links.items():
            if "bench" in program:
                continue  # of no test, and not built
            words = link.split()
            if not any(o in words or self.archive_of.get(o) in words for o in objects):
                continue
            if program == test["program"] or self.names(test, program):
                out.append(program)
        return out

    def named(self, test):
        """The programs that a script's command names."""
        return [p for p in self.links if os.path.join(self.path, p) in " ".join(test["command"])]

    def names(self, test, program):
        """Whether the test's program has the path of the other one in it; of a script, its command, or else all in bin/."""
        if test["program"] is None:
            own = self.named(test)
            return program in own if own else program.startswith("bin/")
        if "names" not in test:
            with open(os.path.join(self.path, test["program"]), "rb") as f:
                content = f.read()
            test["names"] = {p for p in self.links if re.search(re.escape(os.path.join(self.path, p).encode()) + rb"(?![\w.-])", content)}
        return program in test["names"]


def takes_arguments(script):
    """Whether a test reads its arguments itself; the others give them to unittest."""
    with open(script, encoding="utf-8") as f:
        return "sys.argv" in f.read()


def isolation():
    """A prefix that gives a command its own processes and mounts: what it leaves behind ends with it."""
    for flags in ([], ["-r"]):
        words = ["unshare", *flags, "-pfm", "--kill-child", "--mount-proc"]
        if subprocess.run([*words, "true"], capture_output=True).returncode == 0:
            return words
    sys.exit("a mutant needs processes and mounts of its own: unshare -pm does not work here (as root, or with user namespaces, it does)")


def changed(text, m):
    """The text with the change; lines keep their numbers."""
    gone = text[m["start"]:m["end"]].count("\n") - m["new"].count("\n")
    return text[:m["start"]] + m["new"] + "\n" * max(gone, 0) + text[m["end"]:]


class Mutant:
    def __init__(self, m, build, jail):
        self.m, self.build, self.jail = m, build, jail
        self.dir = tempfile.mkdtemp(prefix="mutant-")
        self.objects = {}  # object of the build -> ours
        self.linked = {}

    def done(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def text(self):
        with open(os.path.join(ROOT, self.m["file"]), encoding="utf-8") as f:
            return f.read()

    def write(self, mutated):
        """The file with or without the change, under one name."""
        m = self.m
        text = changed(self.text(), m) if mutated else self.text()
        path = os.path.join(self.dir, os.path.basename(m["file"]))
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def compiled(self, command, path, out, *extra):
        words = [w for w in shlex.split(command) if w != "ccache" and not w.endswith("/ccache")]
        clean, skip = [], False
        for w in words:
            if skip:
                skip = False
            elif w in ("-o", "-MF", "-MT", "-c"):
                skip = True
            elif w not in ("-MD", "-Werror"):
                clean.append(w)
        clean += ["-w", "-iquote", os.path.dirname(os.path.join(ROOT, self.m["file"])), *extra, "-c", path, "-o", out]
        return ends(clean, cwd=self.build.path)[0]

    def compile(self):
        path = self.write(True)
        for i, (output, command) in enumerate(self.build.compile[self.m["file"]]):
            if output not in self.build.archive_of and not any(output in link.split() for link in self.build.links.values()):
                continue  # of a check of the build
            ours = os.path.join(self.dir, f"{i}.o")
            if not self.compiled(command, path, ours):
                return False
            self.objects[output] = ours
        return bool(self.objects)

    def changes_nothing(self):
        """The optimizer makes the same code of both."""
        command = self.build.compile[self.m["file"]][0][1]
        texts = []
        for mutated in (True, False):
            out = os.path.join(self.dir, "same.o")
            if not self.compiled(command, self.write(mutated), out, "-O2", "-g0", "-fno-sanitize=all"):
                return False
            with open(out, "rb") as f:
                texts.append(f.read())
        return texts[0] == texts[1]

    def link(self, program):
        if program in self.linked:
            return self.linked[program]
        ours = os.path.join(self.dir, program.replace("/", "-"))
        words, placed, skip = [], False, False
        for w in shlex.split(self.build.links[program]):
            if w in (":", "&&"):
                continue
            if w in self.objects:
                w = self.objects[w]
            elif w.endswith(".a") and not placed:
                words += sorted({ours for o, ours in self.objects.items() if self.build.archive_of.get(o)})[:1]
                placed = True
            words.append(ours if skip else w)
            skip = w == "-o"
        well, _ = ends([*words, "-fuse-ld=gold"] if shutil.which("ld.gold") else words, cwd=self.build.path)
        self.linked[program] = ours if well else None
        return self.linked[program]

    def run(self, test, mutated=True):
        """green, red, timeout, does not link; of the test, with the mutant or without."""
        binds, command = [], test["command"]
        if mutated:
            programs = self.build.reached(test, self.objects)
            if not programs:
                return "green", ""
            for program in programs:
                ours = self.link(program)
                if ours is None:
                    return "does not link", ""
                # In the place of its original: some look for files beside themselves.
                binds.append(f"mount --bind {shlex.quote(ours)} {shlex.quote(os.path.join(self.build.path, program))}")
        usual = self.build.cost.get(test["name"])
        cpu = int(max(3, usual * 10)) if usual is not None else CPU_SECONDS
        took = self.build.took.get(test["name"])
        wall = max(60, took * 5 + 30) if took is not None else WALL_SECONDS

        def limits():
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        began = time.monotonic()
        before = os.times()
        # The shell stays the first process: it takes the ends of those whose parents have ended.
        with open(os.path.join(self.dir, "out"), "w+b") as out:
            p = subprocess.Popen([*self.jail, "nice", "sh", "-c", "\n".join(["set -e", *binds, '"$@"', "exit 0"]), "sh", *command],
                                 cwd=test["cwd"], env=dict(os.environ, **test["env"]), stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT, preexec_fn=limits, start_new_session=True)
            status = self.wait(p, began + wall)
            out.seek(0)
            text = out.read().decode("utf-8", "replace")
        if status is None:
            return "timeout", ""
        if status in (0, test["skip"]):
            if status == 0:
                self.build.learn(test, os.times().children_user - before.children_user, time.monotonic() - began)
            return "green", ""
        why = [line for line in text.splitlines() if re.search(r"FAIL|rror|ssert|roken|!=|Traceback", line)]
        return "red", "; ".join(x.strip() for x in (why or text.splitlines())[:3])[:300]

    def wait(self, p, until):
        """The exit code; None: it was ended, with all that it started."""
        try:
            return p.wait(timeout=max(until - time.monotonic(), 1))
        except subprocess.TimeoutExpired:
            p.kill()  # the head of its processes: --kill-child ends the others
            p.wait()
            return None


class Judge:
    def __init__(self, stages, jail):
        self.stages, self.jail = stages, jail  # [(label, build, tests)]
        self.kills = collections.Counter()
        self.sound = {}  # (build, test) -> green without a mutant
        self.equivalent = known_equivalent()
        self.lock = threading.Lock()

    def order(self, m, tests, build):
        def key(t):
            of_room = m.get("room", "").split("_")[0] in t["name"]
            return (-self.kills[(m["file"], t["name"])], t["program"] is None, not of_room, build.guess(t) / (1 + self.kills[t["name"]]))
        return sorted(tests, key=key)

    def is_sound(self, mutant, test):
        key = (mutant.build.path, test["name"])
        with self.lock:
            if key not in self.sound:
                self.sound[key] = mutant.run(test, mutated=False)[0] == "green"
                if not self.sound[key]:
                    print(f"red without a mutant, not counted: {test['name']}", flush=True)
            return self.sound[key]

    def judge(self, m):
        began = time.monotonic()
        m["survived"] = m.get("survived", [])
        m["verdict"] = "survived"
        same = None
        for label, build, tests in self.stages:
            if label in m["survived"] and not m.get("again"):
                continue
            mutant = Mutant(m, build, self.jail)
            try:
                if not mutant.compile():
                    m["verdict"] = "does not build"
                    break
                found = self.first_red(mutant, tests)
                if found:
                    m.update(verdict=found[1], stage=label, by=found[0], why=found[2])
                    break
                if same is None:
                    same = mutant.changes_nothing()
                if same:
                    m["verdict"] = "same code"
                    break
                if key_of(m) in self.equivalent:
                    break  # no test can notice it
            finally:
                mutant.done()
            m["survived"] = [*(x for x in m["survived"] if x != label), label]
        m["seconds"] = round(time.monotonic() - began, 1)
        m.pop("again", None)
        return m

    def first_red(self, mutant, tests):
        for t in self.order(mutant.m, tests, mutant.build):
            if self.sound.get((mutant.build.path, t["name"])) is False:
                continue  # nothing that it says counts
            result, why = mutant.run(t)
            if result == "timeout" or (result == "red" and t["program"] is None):
                result, why = mutant.run(t)  # real daemons on a busy machine: red twice is red
            if result == "does not link" or (result in ("red", "timeout") and self.is_sound(mutant, t)):
                with self.lock:
                    self.kills[(mutant.m["file"], t["name"])] += 1
                    self.kills[t["name"]] += 1
                return t["name"], "killed" if result == "red" else result, why
        return None


def change(file, old, new):
    with open(os.path.join(ROOT, file), encoding="utf-8") as f:
        text = f.read()
    at = text.find(old)
    if at < 0:
        sys.exit(f"{file} has no {old!r}")
    line = line_of(text, at)
    return {"file": file, "start": at, "end": at + len(old), "new": new, "op": "chosen", "what": f"{old} becomes {new}",
            "function": "", "line": line, "source": text.splitlines()[line - 1].strip()}


def work_of(args):
    if args.again:
        work = [m for m in load(args.again) if m["verdict"] == "survived" and args.room in (None, m["room"])]
        return [dict(m, again=True) for m in work]
    if args.change:
        work = [change(*c) for c in args.change]
    else:
        pattern = args.file or ROOMS[args.room][0]
        files = sorted(f for f in sources(pattern)
                       if not re.match(r"supervisor/core/sched/check(_queue)?\.c$", f))  # the core's own assertions
        if not files:
            sys.exit(f"no file is called {pattern}")
        work, total = draw(ROOT, files, args.n, args.seed)
        if args.caps:
            work = caps(ROOT, files)
            total = len(work)
        print(f"{len(work)} of {total} mutations in {len(files)} files", flush=True)
    for m in work:
        m["room"] = args.room or room_of(m["file"])
        m["seed"] = args.seed
    return work


def sources(patterns):
    return {os.path.relpath(f, ROOT) for p in patterns.split() for f in glob.glob(os.path.join(ROOT, p), recursive=True)}


def room_of(file):
    for room, (pattern, _) in ROOMS.items():
        if file in sources(pattern):
            return room
    return os.path.dirname(file)


def stages_of(args, room, builds):
    """(label, build, tests): the room's own, and the same with sanitizers."""
    _, own = ROOMS.get(room, ("", []))
    out = []
    for label, build in zip(("tests", "asan"), builds):
        chosen = build.chosen([args.tests] if args.tests else own)
        out.append((label, build, [t for t in chosen if t["program"] or not args.programs]))
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--room", choices=sorted(ROOMS))
    p.add_argument("--file", help="a pattern, instead of a room's")
    p.add_argument("--change", nargs=3, action="append", metavar=("FILE", "OLD", "NEW"))
    p.add_argument("--again", nargs="+")
    p.add_argument("--caps", action="store_true", help="instead of a draw, the caps: tests at N and at N + 1")
    p.add_argument("--tests", help="instead of the room's own")
    p.add_argument("--n", type=int, default=20)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--build", default=os.path.join(ROOT, "build", "random-mutants"))
    p.add_argument("--asan", help="a build with sanitizers, which is asked about survivors")
    p.add_argument("--programs", action="store_true", help="of the own tests only those that are one program: no script, no e2e")
    p.add_argument("--out", default="")
    p.add_argument("--list", action="store_true")
    p.add_argument("--rooms", action="store_true")
    p.add_argument("--report", nargs="+")
    p.add_argument("--least", type=int, default=0, help="with --report: fails when a room notices fewer percent")
    args = p.parse_args()
    if args.rooms:
        print(" ".join(ROOMS))
        return 0
    if args.report:
        return report(args.report, args.least)
    if not (args.room or args.file or args.change or args.again):
        p.error("--room, --file, --change or --again is needed")
    work = work_of(args)
    if args.list:
        for m in work:
            print(f"{m['file']}:{m['line']} {m['function']}: {m['op']}: {m['what']}  [{m['source']}]")
        return 0
    builds = [Build(b) for b in (args.build, args.asan) if b]
    for b in builds:
        b.read()
    judges = {}
    for room in {m["room"] for m in work}:
        stages = stages_of(args, room, builds)
        if not any(tests for _, _, tests in stages):
            sys.exit(f"{room} has no tests, and --tests names none")
        for _, build, tests in stages:
            programs = {t["program"] for t in tests if t["program"]}
            scripts = [t for t in tests if not t["program"]]
            programs.update(p for t in scripts for p in build.named(t))
            scripts = any(not build.named(t) for t in scripts)
            helpers = {"hide.so", *(q for q in build.links if re.search(r"(_agent|_peer)$", q))} if any("edge" in t["name"] or "sdk" in t["name"] for t in tests) else set()
            build.ninja(sorted(programs | helpers | ({q for q in build.links if q.startswith("bin/") and "bench" not in q} if scripts else set())), args.jobs)
        judges[room] = Judge(stages, isolation())
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for i, m in enumerate(pool.map(lambda m: judges[m["room"]].judge(m), work), 1):
            if args.out:
                with open(args.out, "a", encoding="utf-8") as f:
                    f.write(json.dumps(m) + "\n")
            print(f"{i}/{len(work)} {m['verdict']:9} {m['seconds']:6}s {m['file']}:{m['line']} {m['op']}: {m['what'][:110]}"
                  f"  {m.get('by', '') if m['verdict'] in ('killed', 'timeout') else ''}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
