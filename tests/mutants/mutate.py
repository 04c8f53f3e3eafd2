#!/usr/bin/env python3
"""Mutation testing of the product's C rooms: how many small wrong changes does a test notice?

usage: mutate.py --src CHECKOUT (--room NAME | --files GLOB... --tests REGEX [--wide REGEX])
                  [--n 40] [--seed 1] [--out FILE] [--build DIR] [--jobs 2] [--limit 60] [--list]
       mutate.py --src CHECKOUT --again FILE [--tests REGEX] ...    the survivors of FILE once more
       mutate.py --report FILE...                                   rates and survivors

The checkout is changed and restored: give it one of your own, with no changes in it.
Standard library only. random.sh makes the checkout; README.md beside this file has more.
"""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

# What the tests of a room are: its sources, its own tests, and the wider set for what they leave.
UNIT_CORE = r"unit\.test_(plan|plan_check|plan_refs|plan_size|context|template|aggregate|heap|record|run|core_.*)$"
E2E_PLANS = r"e2e\.(semantics|modify|replan|waits|cancel|budget|context|given_up|jobs|people|breaker|faults|cli_plans|reviews_ids|reviews_values)$"
E2E_CLIENTS = (r"e2e\.(bus|cli|cli_plans|rows|chat|sessions|sessions_late|orchestrator|goals|planning|cli_planning|phases|lint|recipes"
               r"|faults|bad_input|vocabulary|breaker)$")
ROOMS = {
    "core": ("supervisor/core/*/*.c", UNIT_CORE, r"unit\.test_(codec_replay|record_.*|engine_.*|plan_.*)$|sim\.|explore\.|" + E2E_PLANS),
    "journal": ("supervisor/journal/*.c", r"unit\.(journal_.*|test_record_.*|test_codec_replay)$|edge\.journal_(open|full|limits)$",
                r"edge\.journal_.*|sim\.|e2e\.(golden|cli_plans|sessions|sessions_kill|sessions_late|waits|faults|rows|people|jobs|load|given_up)$"),
    "events": ("supervisor/events/*.c", r"unit\.test_(record_.*|codec_replay|event_table)$", E2E_PLANS),
    "engine": ("supervisor/engine/*.c", r"unit\.test_(engine_.*|plan_state|ports|result_text|step_notes)$", E2E_PLANS + "|" + E2E_CLIENTS),
    "query": ("supervisor/query/*.c", r"unit\.test_(projection|waits)$", E2E_PLANS + "|" + E2E_CLIENTS),
    "dispatch": ("supervisor/dispatch/*.c", r"unit\.test_(answers|frame|engine_.*)$", E2E_PLANS + "|" + E2E_CLIENTS),
    "conversation": ("supervisor/conversation/*.c", r"unit\.test_intent_rules$", E2E_CLIENTS),
    "api": ("supervisor/api/*.c", r"unit\.test_rerun$", E2E_PLANS + "|" + E2E_CLIENTS),
    "plan": ("supervisor/plan/*.c", r"unit\.test_plan_.*", r"e2e\.(lint|planning|strict|plans_doc|recipes)$"),
    "link": ("protocol/link/*.c", r"edge\.test_link_.*", r"edge\.test_client|unit\.test_sdk_agent|e2e\.(bus|faults|no_key|peers|bad_input|load)$"),
    "wire": ("protocol/wire/*.c", r"unit\.test_(mp_validate|json|doc|msg|msg_exchange|wire_.*|doc_examples)$",
             r"unit\.test_(vocabulary.*|schema.*|config|sdk_.*|record_.*|planner_.*|files_.*|sql_.*|calc_.*)$"
             r"|edge\.test_client|e2e\.(cli|cli_plans|bus|bad_input|semantics|recipes|vocabulary)$|lint\.messages"),
    "sdk": ("agents/sdk/*.c", r"unit\.test_sdk_.*",
            r"unit\.test_(exec|files|sql|calc|llm)_.*|e2e\.(cancel|faults|semantics|peers|waits|bus|given_up|load|cli|context|people)$"),
    "registry": ("registry/*.c", r"unit\.test_registry_.*", UNIT_CORE + r"|sim\.|explore\.|e2e\.(breaker|cli|faults|bus|semantics|given_up|cancel)$"),
    "cells": ("agents/cells/*.c", r"unit\.test_(cells|csv)$", r"unit\.test_(files|sql|calc)_.*|e2e\.(cells|csv_files)$"),
    "files": ("agents/files/*.c", r"unit\.test_files_.*", r"e2e\.(quickstart|tour|recipes|goals|context|bad_input|cli_plans|install)$"),
    "sql": ("agents/sql/*.c", r"unit\.test_sql_.*", r"e2e\.(quickstart|tour|recipes|goals|context|bad_input|install)$"),
    "spawn": ("supervisor/spawn/*.c", r"unit\.test_(spawn_.*|log_tail|redact_patterns)$|edge\.test_spawn_.*",
              r"e2e\.(faults|given_up|cli|cancel|no_key|peers|load|breaker|install|tour)$"),
}

# ---- reading C ----

TOKEN = re.compile(r"""
    (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<string>(?:u8|[LuU])?"(?:\\.|[^"\\\n])*")
  | (?P<char>[LuU]?'(?:\\.|[^'\\\n])*')
  | (?P<number>(?:0[xX][0-9a-fA-F]+|\d+\.\d*(?:[eE][+-]?\d+)?|\d+)[uUlLfF]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<op>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|[-+*/%&|^~!<>=?:;,.(){}\[\]])
  | (?P<space>\s+|\\\n)
""", re.X | re.S)
Token = collections.namedtuple("Token", "kind text start end line")


def tokens(text):
    """The tokens of a C file without comments, space and preprocessor lines."""
    blank = re.sub(r"(?m)^[ \t]*#(?:[^\\\n]|\\\n|\\.)*", lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    out, at, line = [], 0, 1
    while at < len(blank):
        m = TOKEN.match(blank, at)
        if not m:
            at += 1
            continue
        if m.lastgroup not in ("comment", "space"):
            out.append(Token(m.lastgroup, m.group(), m.start(), m.end(), line))
        line += m.group().count("\n")
        at = m.end()
    return out


def closing(toks, i):
    """The index of what closes the bracket at i."""
    pair = {"(": ")", "{": "}", "[": "]"}[toks[i].text]
    depth = 0
    for j in range(i, len(toks)):
        if toks[j].text == toks[i].text:
            depth += 1
        elif toks[j].text == pair:
            depth -= 1
            if depth == 0:
                return j
    return len(toks) - 1


def bodies(toks):
    """(name, first, last): the function bodies, as indexes of their braces."""
    out, i, name = [], 0, ""
    while i < len(toks):
        if toks[i].text == "(" and i > 0 and toks[i - 1].kind == "name":
            name = toks[i - 1].text
            i = closing(toks, i) + 1
            if i < len(toks) and toks[i].text == "{":
                end = closing(toks, i)
                out.append((name, i, end))
                i = end
            continue
        if toks[i].text == "{":
            i = closing(toks, i)
        i += 1
    return out


def line_of(text, at):
    return text.count("\n", 0, at) + 1


SKIP_CALL = re.compile(r"^(log_\w+|assert\w*|ASSERT\w*|CHECK|BUG|static_assert|_Static_assert|free|va_end|va_start|sizeof|snprintf)$")
NOT_A_STATEMENT = {"return", "if", "for", "while", "do", "switch", "case", "default", "goto", "break", "continue",
                   "else", "const", "static", "struct", "enum", "union", "unsigned", "int", "char", "bool", "void",
                   "size_t", "double", "long", "short", "float", "typedef", "volatile", "extern", "register"}
FOREIGN = re.compile(r"^(SQLITE|NNG|PCRE2|O|S|F|AT|EPOLL|EFD|SOCK|AF|MSG|PR|SIG|WNO|CLOCK|LOCK|MS|PTHREAD)_")  # constants of others
REL = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}


def enums(src):
    """constant -> the constants of its enum, from every header and source of the checkout."""
    groups = {}
    for path in glob.glob(os.path.join(src, "**", "*.[ch]"), recursive=True):
        if "/build/" in path or "/tests/" in path:
            continue
        with open(path, encoding="utf-8") as f:
            toks = tokens(f.read())
        for i, t in enumerate(toks):
            if t.text != "enum":
                continue
            j = i + 1
            if j < len(toks) and toks[j].kind == "name":
                j += 1
            if j >= len(toks) or toks[j].text != "{":
                continue
            end = closing(toks, j)
            names = [toks[k].text for k in range(j + 1, end)
                     if toks[k].kind == "name" and toks[k - 1].text in "{," and toks[k + 1].text in ",}="]
            for n in names:
                groups.setdefault(n, names)
    return groups


def sites(text, groups, extra):
    """Every (op, start, end, new text, what, function, line) of one file."""
    toks = tokens(text)
    out = []
    for name, first, last in bodies(toks):
        if SKIP_CALL.match(name):
            continue
        dead = set()  # token indexes inside logs and assertions
        within, stack = {}, []  # the innermost open bracket of each token
        for i in range(first, last):
            if toks[i].kind == "name" and SKIP_CALL.match(toks[i].text) and toks[i + 1].text == "(":
                dead.update(range(i, closing(toks, i + 1) + 1))

        for i in range(first, last + 1):
            within[i] = stack[-1] if stack else ""
            if toks[i].text in "([{" and toks[i].kind == "op":
                stack.append(toks[i].text)
            elif toks[i].text in ")]}" and toks[i].kind == "op" and stack:
                stack.pop()

        def add(op, a, b, new, what):
            out.append({"op": op, "start": a, "end": b, "new": new, "what": what, "function": name,
                        "line": line_of(text, a)})

        for i in range(first + 1, last):
            t, prev, nxt = toks[i], toks[i - 1], toks[i + 1]
            if i in dead:
                continue
            if t.kind == "op" and t.text in REL:
                add("compare", t.start, t.end, REL[t.text], f"{t.text} becomes {REL[t.text]}")
            elif t.text in ("&&", "||"):
                new = "||" if t.text == "&&" else "&&"
                add("logic", t.start, t.end, new, f"{t.text} becomes {new}")
            elif t.kind == "number" and re.fullmatch(r"\d+[uUlL]*", t.text):
                if prev.text == "{" and nxt.text == "}":
                    continue  # an empty initializer
                n = int(re.match(r"\d+", t.text).group())
                for new in ([1] if n == 0 else [n + 1, n - 1]):
                    add("number", t.start, t.end, str(new), f"{t.text} becomes {new}")
            elif t.text in ("true", "false"):
                new = "false" if t.text == "true" else "true"
                add("bool", t.start, t.end, new, f"{t.text} becomes {new}")
            elif t.kind == "name" and re.fullmatch(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+", t.text) and nxt.text != "(":
                if prev.text == "case" or nxt.text == ":" or FOREIGN.match(t.text):
                    continue
                pool = groups.get(t.text) or extra.get(t.text.split("_")[0] + "_", [])
                prefix = t.text.split("_")[0] + "_"
                pool = sorted(p for p in set(pool) if p != t.text and p.startswith(prefix)
                              and not re.search(r"_(MAX|COUNT|MIN|BYTES|LEN)$", p))
                if pool and not re.search(r"_(MAX|COUNT|MIN|BYTES|LEN)$", t.text):
                    add("constant", t.start, t.end, None, pool)
            elif t.text == "if" and nxt.text == "(":
                shut = closing(toks, i + 1)
                cond = text[nxt.end:toks[shut].start]
                if any(k in dead for k in range(i + 1, shut)):
                    continue
                add("negate", nxt.end, toks[shut].start, f"!({cond})", "if (" + " ".join(cond.split()) + ") negated")
                # if (...) { return x; } without an else: the check of a value, the early return
                j = shut + 1
                if toks[j].text == "{" and toks[j + 1].text in ("return", "continue", "break", "goto"):
                    end = closing(toks, j)
                    semis = [k for k in range(j, end) if toks[k].text == ";"]
                    if len(semis) == 1 and semis[0] == end - 1 and toks[end + 1].text != "else" and prev.text != "else":
                        add("guard", t.start, toks[end].end, f"(void)({cond});" if "(" in cond else ";",
                            "dropped: " + " ".join(text[t.start:toks[end].end].split()))
            elif (prev.text in ("{", ";", "}") and within[i] == "{" and t.kind == "name"
                  and t.text not in NOT_A_STATEMENT):
                # a statement: an assignment or a call; a declaration has two names in a row
                if nxt.kind == "name" or (nxt.text == "*" and toks[i + 2].kind == "name" and toks[i + 3].text in "=;,["):
                    continue
                depth, j = 0, i
                while j < last and not (toks[j].text == ";" and depth == 0):
                    depth += toks[j].text in "([{"
                    depth -= toks[j].text in ")]}"
                    if depth < 0:
                        break
                    j += 1
                if j >= last or toks[j].text != ";" or depth != 0 or any(k in dead for k in range(i, j)):
                    continue
                if nxt.text == ":":
                    continue
                add("drop", t.start, toks[j].end, ";", "dropped: " + " ".join(text[t.start:toks[j].end].split()))
    return out


def draw(src, files, n, seed):
    """n mutations: an operator by chance, then a place of it by chance, each line at most once per operator."""
    rng = random.Random(seed)
    groups = enums(src)
    texts, places = {}, collections.defaultdict(list)
    extra = collections.defaultdict(set)
    for path in files:
        with open(os.path.join(src, path), encoding="utf-8") as f:
            texts[path] = f.read()
        for t in tokens(texts[path]):
            if t.kind == "name" and re.fullmatch(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+", t.text) and t.text not in groups:
                extra[t.text.split("_")[0] + "_"].add(t.text)
    for path in files:
        for s in sites(texts[path], groups, extra):
            s["file"] = path
            places[s["op"]].append(s)
    total = sum(map(len, places.values()))
    out, seen = [], set()
    while len(out) < n and places:
        op = rng.choice(sorted(places))
        s = places[op].pop(rng.randrange(len(places[op])))
        if not places[op]:
            del places[op]
        if (s["file"], s["line"]) in seen:
            continue
        seen.add((s["file"], s["line"]))
        if s["op"] == "constant":
            pool = s["what"]
            s["new"] = rng.choice(pool)
            s["what"] = f"{texts[s['file']][s['start']:s['end']]} becomes {s['new']}"
        s["source"] = texts[s["file"]].splitlines()[s["line"] - 1].strip()
        out.append(s)
    return out, total


# ---- building and running ----

class World:
    def __init__(self, args):
        self.args = args
        self.src = os.path.abspath(args.src)
        self.build = os.path.abspath(args.build or os.path.join(self.src, "build", "mutants"))
        self.tests = []

    def configure(self):
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            self.call(["cmake", "-S", self.src, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                       "-DCMAKE_C_FLAGS_RELEASE=-O1", "-DBATON_TESTS=ON", "-DBATON_WERROR=OFF", *self.args.cmake])
        names = subprocess.run(["ctest", "--show-only=json-v1"], cwd=self.build, capture_output=True, text=True, check=True)
        for t in json.loads(names.stdout)["tests"]:
            props = {p["name"]: p["value"] for p in t["properties"]}
            if "command" not in t:
                continue
            self.tests.append({"name": t["name"], "command": t["command"], "cwd": props.get("WORKING_DIRECTORY", self.build),
                               "env": dict(e.split("=", 1) for e in props.get("ENVIRONMENT", [])),
                               "skip": props.get("SKIP_RETURN_CODE"), "limit": float(props.get("TIMEOUT", 60))})
        listed = subprocess.run(["ninja", "-C", self.build, "-t", "targets", "all"], capture_output=True, text=True, check=True)
        self.programs = [line.split(":")[0] for line in listed.stdout.splitlines()
                         if re.match(r"(bin|tests)/[^/:]+: C_EXECUTABLE_LINKER", line)]

    def call(self, argv):
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)

    def chosen(self, regex):
        """The tests, the quick ones first (as far as a run of ctest in the build has left its times)."""
        cost = {}
        try:
            with open(os.path.join(self.build, "Testing/Temporary/CTestCostData.txt"), encoding="utf-8") as f:
                cost = {line.split()[0]: float(line.split()[2]) for line in f if len(line.split()) == 3}
        except OSError:
            pass
        return sorted((t for t in self.tests if re.match(regex, t["name"])), key=lambda t: cost.get(t["name"], 0))

    def targets(self, tests):
        out = set()
        for t in tests:
            rel = os.path.relpath(t["command"][0], self.build)
            if rel.startswith(".."):  # a script: it runs the programs
                out.update(p for p in self.programs if p.startswith("bin/") and "bench" not in p)
            else:
                out.add(rel)
                out.update(p for p in self.programs if p.startswith("tests/")
                           and re.search(r"(_agent|_peer)$", p) and t["name"].startswith(("edge", "unit.test_sdk")))
        return sorted(out)

    def make(self, tests):
        """'' or the last lines of the compiler."""
        p = subprocess.run(["nice", "ninja", "-C", self.build, f"-j{self.args.jobs}", *self.targets(tests)],
                           capture_output=True, text=True)
        return "" if p.returncode == 0 else p.stdout[-400:]

    def mine(self):
        """The processes whose program lies in the build: ours, and nobody else's."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/exe").startswith(self.build + "/"):
                    yield int(pid)
            except OSError:
                pass

    def one(self, test):
        env = dict(os.environ, **test["env"])
        limit = min(test["limit"], self.args.limit * (4 if test["name"].startswith("explore") else 1))
        p = subprocess.Popen(["nice", *test["command"]], cwd=test["cwd"], env=env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            out = p.communicate(timeout=limit)[0].decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            for sig, wait in ((signal.SIGTERM, 3), (signal.SIGKILL, 5)):
                try:
                    os.killpg(p.pid, sig)
                    p.communicate(timeout=wait)
                    break
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    continue
            return test["name"], "timeout", ""
        if p.returncode in (0, test["skip"]):
            return test["name"], "green", ""
        why = [line for line in out.splitlines() if re.search(r"FAIL|rror|ssert|roken|!=|Traceback", line)]
        return test["name"], "red", "; ".join(x.strip() for x in (why or out.splitlines())[:3])[:300]

    def surely(self, test):
        """Real daemons on a busy machine: red twice is red."""
        result = self.one(test)
        return result if result[1] == "green" else self.one(test)

    def run(self, tests):
        """The first red or timed out test, or None: programs, then scripts, then the explorer; each kind side by side."""
        programs = [t for t in tests if t["command"][0].startswith(self.build) and not t["name"].startswith("explore")]
        scripts = [t for t in tests if not t["command"][0].startswith(self.build)]
        last = [t for t in tests if t not in programs and t not in scripts]
        found = None
        for group, side in ((programs, self.args.jobs), (scripts, self.args.scripts), (last, 1)):
            with concurrent.futures.ThreadPoolExecutor(side) as pool:
                todo, running = iter(group), set()
                while True:
                    while found is None and len(running) < side:
                        t = next(todo, None)
                        if t is None:
                            break
                        running.add(pool.submit(self.surely if group is scripts else self.one, t))
                    if not running:
                        break
                    done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                    for f in done:
                        if f.result()[1] != "green":
                            found = found or f.result()
        for pid in self.mine():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        return found

    def mutate(self, m):
        path = os.path.join(self.src, m["file"])
        with open(path, encoding="utf-8") as f:
            text = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.write(text[:m["start"]] + m["new"] + text[m["end"]:])
        return path, text

    def judge(self, m, stages):
        """killed/timeout/does not build/survived, by the first stage that notices."""
        path, text = self.mutate(m)
        began = time.monotonic()
        m["survived"] = m.get("survived", [])
        try:
            for label, tests in stages:
                error = self.make(tests)
                if error:
                    m.update(verdict="does not build", why=error)
                    return
                red = self.run(tests)
                if red:
                    m.update(verdict="killed" if red[1] == "red" else "timeout", stage=label, by=red[0], why=red[2])
                    return
                m["survived"].append(label)
            m["verdict"] = "survived"
        finally:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            m["seconds"] = round(time.monotonic() - began, 1)


def known_equivalent(path):
    """(file:line, operator) -> why, of the mutants that a person found to change nothing."""
    out = {}
    try:
        with open(path, encoding="utf-8") as f:
            for line in f:
                if line.strip() and not line.startswith("#"):
                    at, op, why = line.strip().split(" ", 2)
                    out[(at, op)] = why
    except OSError:
        pass
    return out


EQUIVALENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "equivalent.txt")


def is_equivalent(m, known):
    return known.get((f"{m['file']}:{m['line']}", m["op"]))


def load(paths):
    """Every mutant once: what one stage noticed is noticed, what several did not is alive after all of them."""
    out = {}
    for p in paths:
        with open(p, encoding="utf-8") as f:
            for line in f:
                m = json.loads(line)
                key = (m["room"], m["file"], m["start"], m["new"])
                if key in out and out[key]["verdict"] != "survived":
                    continue
                if key in out:
                    m["survived"] = [*out[key]["survived"], *(x for x in m["survived"] if x not in out[key]["survived"])]
                out[key] = m
    return list(out.values())


def report(paths, known):
    rooms = collections.defaultdict(list)
    for m in load(paths):
        rooms[m["room"]].append(m)
    print("| room | drawn | built | equivalent | killed by its tests | by the wider set | alive | wider set not asked | its tests | all, at least | all, at most |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for room in [*sorted(rooms), "all"]:
        ms = rooms[room] if room != "all" else [m for r in sorted(rooms) if r != "all" for m in rooms[r]]
        built = [m for m in ms if m["verdict"] != "does not build"]
        same = [m for m in built if m["verdict"] == "survived" and is_equivalent(m, known)]
        dead = [m for m in built if m["verdict"] != "survived"]
        narrow = [m for m in dead if m["stage"] == "tests"]
        alive = [m for m in built if m["verdict"] == "survived" and m not in same]
        asked = [m for m in alive if "wide" in m["survived"]]
        n = max(len(built) - len(same), 1)
        print(f"| {room} | {len(ms)} | {len(built)} | {len(same)} | {len(narrow)} | {len(dead) - len(narrow)} |"
              f" {len(asked)} | {len(alive) - len(asked)} | {100 * len(narrow) / n:.0f}% | {100 * len(dead) / n:.0f}% |"
              f" {100 * (n - len(asked)) / n:.0f}% |")
    rooms.pop("all", None)
    print()
    for room in sorted(rooms):
        for m in rooms[room]:
            if m["verdict"] == "survived":
                why = is_equivalent(m, known)
                print(f"{room}: {m['file']}:{m['line']} {m['function']}: {m['op']}: {m['what']}  [{m['source']}]"
                      f" not noticed by {', '.join(m['survived'])}{'; equivalent: ' + why if why else ''}")
    return 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--src")
    p.add_argument("--build")
    p.add_argument("--room", choices=sorted(ROOMS))
    p.add_argument("--files", nargs="+", default=[])
    p.add_argument("--tests")
    p.add_argument("--wide")
    p.add_argument("--n", type=int, default=40)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--scripts", type=int, default=3, help="e2e tests side by side: they mostly wait")
    p.add_argument("--limit", type=float, default=60, help="seconds for one test")
    p.add_argument("--out", default="mutants.jsonl")
    p.add_argument("--again")
    p.add_argument("--label", default=None, help="the name of the stage in the results")
    p.add_argument("--cmake", nargs="*", default=[], help="for the first configuration, like -DBATON_SANITIZE=address,undefined")
    p.add_argument("--equivalent", default=EQUIVALENT, help="mutants known to change nothing")
    p.add_argument("--list", action="store_true")
    p.add_argument("--report", nargs="+")
    args = p.parse_args()
    if args.report:
        return report(args.report, known_equivalent(args.equivalent))
    if not args.src:
        p.error("--src is needed")
    if subprocess.run(["git", "-C", args.src, "status", "--porcelain", "--untracked-files=no"],
                      capture_output=True, text=True).stdout.strip():
        p.error(f"{args.src} has changes of its own")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the source is restored on the way out
    w = World(args)
    if args.again:
        known = known_equivalent(args.equivalent)
        work = [m for m in load([args.again]) if m["verdict"] == "survived" and args.room in (None, m["room"])
                and not is_equivalent(m, known)]
        if os.path.exists(args.out):  # a run that was stopped goes on
            over = {(m["file"], m["start"], m["new"]) for m in load([args.out])}
            work = [m for m in work if (m["file"], m["start"], m["new"]) not in over]
    else:
        if args.room:
            globs, tests, wide = [ROOMS[args.room][0]], ROOMS[args.room][1], ROOMS[args.room][2]
        else:
            globs, tests, wide = args.files, args.tests, args.wide
        args.tests, args.wide = args.tests or tests, args.wide
        files = sorted(os.path.relpath(f, w.src) for g in globs for f in glob.glob(os.path.join(w.src, g))
                       if not os.path.basename(f).startswith("core_check"))  # the core's own assertions
        if not files:
            p.error("no files")
        work, total = draw(w.src, files, args.n, args.seed)
        for m in work:
            m["room"] = args.room or os.path.dirname(m["file"])
        print(f"{len(work)} of {total} mutations in {len(files)} files", flush=True)
        if args.list:
            for m in work:
                print(f"{m['file']}:{m['line']} {m['function']}: {m['op']}: {m['what']}  [{m['source']}]")
            return 0
    w.configure()

    def stages(m):
        narrow = args.tests
        wide = args.wide
        if args.again and not narrow:
            narrow, label = ROOMS[m["room"]][2], args.label or "wide"
        else:
            label = args.label or "tests"
        out = [(label, w.chosen(narrow))]
        if wide:
            out.append(("wide", w.chosen(wide)))
        return [s for s in out if s[1]]

    if not args.again:  # without a mutation everything is green, or the numbers mean nothing
        for label, tests in stages(work[0]):
            error = w.make(tests)
            red = error or w.run(tests)
            if red:
                sys.exit(f"red without a mutation: {red}")
    for i, m in enumerate(work, 1):
        w.judge(m, stages(m))
        with open(args.out, "a", encoding="utf-8") as f:
            f.write(json.dumps(m) + "\n")
        print(f"{i}/{len(work)} {m['verdict']:9} {m['seconds']:6}s {m['file']}:{m['line']} {m['op']}: {m['what'][:90]}"
              f"  {m.get('by', '') if m['verdict'] in ('killed', 'timeout') else ''}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
