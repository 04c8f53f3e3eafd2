"""What a newcomer does wrong, and the exact message that he gets: each row of tests/golden/mistakes/*.txt.

A row is

    ## The mistake
    % setup            what is done before, a function of this program (may be left out)
    > plan.yaml        a file with the lines below it (may be left out)
    steps: []
    $ baton plan check plan.yaml
    2                  the exit code; below it stdout and stderr

Paths, ids and ports are placeholders. After a change of messages: test_mistakes.py --write, and read the difference.
"""
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from harness import BIN, ROOT, BatonTest, children_of, of_a_verb, sp, until

GOLDEN = ROOT / "tests/golden/mistakes"
ENOUGH = 60
NOBODY = 65534
PROCESS_SECONDS = 60

COMMANDS = """
  - agentId: exec
    command: ["${BATON_BIN}/baton-agent-exec"]
    settings:
      commands:
        - {id: absent, argv: [/no/such/program], description: "Its program is not there.", effects: idempotent}
        - {id: fails, argv: [sh, -c, "echo no space left >&2; exit 3"], description: "Fails.", effects: idempotent}
        - {id: slow, argv: [sleep, "60"], description: "Takes long.", effects: idempotent, timeoutMs: 300}
"""
AGENTS = """
agents:
  - {agentId: calc, command: ["${BATON_BIN}/baton-agent-calc"]}
  - {agentId: files, command: ["${BATON_BIN}/baton-agent-files"], settings: {roots: ["%(work)s/db"]}}
  - {agentId: sql, command: ["${BATON_BIN}/baton-agent-sql"], settings: {databaseDir: "%(work)s/db", readOnly: false}}
""" + COMMANDS


def read_rows(path):
    """[{title, setup, files: {name: text}, command, expected}], in order; expected is exit code and output."""
    rows = []
    for part in re.split(r"^## ", path.read_text(), flags=re.M)[1:]:
        lines = part.split("\n")
        row = {"title": lines.pop(0), "setup": None, "files": {}}
        while not lines[0].startswith("$ "):
            line = lines.pop(0)
            if line.startswith("% "):
                row["setup"] = line[2:]
            elif line.startswith("> "):
                name = line[2:]
                row["files"][name] = ""
            else:
                row["files"][name] += line + "\n"
        row["command"] = lines.pop(0)[2:]
        row["expected"] = "\n".join(lines).rstrip("\n")
        rows.append(row)
    return rows


def write_rows(path, rows):
    text = path.read_text().split("## ", 1)[0]
    for row in rows:
        text += "## %s\n" % row["title"]
        text += "%% %s\n" % row["setup"] if row["setup"] else ""
        text += "".join("> %s\n%s" % file for file in row["files"].items())
        text += "$ %s\n%s\n\n" % (row["command"], row["expected"])
    path.write_text(text.rstrip("\n") + "\n")


def with_placeholders(text, work):
    for pattern, word in ((re.escape(str(work)), "WORK"), (re.escape(str(BIN)), "BIN"), (re.escape(str(BIN.parent)), "PREFIX"),
                          (r"\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "PLAN"),
                          (r"(?<=127\.0\.0\.1:)\d+", "PORT"), (r"\b(pid|spawner)=\d+", r"\1=PID"),
                          (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME")):
        text = re.sub(pattern, word, text)
    return "\n".join(line.rstrip() for line in text.rstrip("\n").split("\n"))


class Rows(BatonTest):
    """Runs the rows of one file, each in a directory of its own."""
    file = None

    def work(self):
        """The directory of a row: its state is in state/."""
        work = Path(tempfile.mkdtemp(prefix="baton-mistakes-"))
        self.addCleanup(subprocess.run, ["rm", "-rf", str(work)], check=False)
        return work

    def run_row(self, row, work, state, **more):
        for name, text in row["files"].items():
            (work / name).write_text(text)
        env = {k: v for k, v in of_a_verb(None).items() if not k.startswith("BATON_")}
        done = subprocess.run(["sh", "-c", row["command"]], cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=PROCESS_SECONDS, text=True, errors="replace",
                              env={**env, "PATH": "%s:%s" % (BIN, os.environ["PATH"]), "BATON_STATE": str(state), "LC_ALL": "C.UTF-8",
                                   "HOME": str(work), "NO_COLOR": "1"}, **more)
        return with_placeholders("%d\n%s" % (done.returncode, done.stdout), work)

    def each_row(self, run):
        path = GOLDEN / self.file
        rows = read_rows(path)
        for row in rows:
            with self.subTest(row["title"]):
                got = run(row)
                if WRITE:
                    row["expected"] = got
                self.assertEqual(got, row["expected"], row["command"])
        if WRITE:
            write_rows(path, rows)


class Verbs(Rows):
    file = "verbs.txt"

    def test_verbs_and_options(self):
        work = self.work()
        self.each_row(lambda row: self.run_row(row, work, work / "state"))


class Words(Rows):
    file = "words.txt"

    def test_each_verb_with_other_words(self):
        self.each_row(self.alone)

    def alone(self, row):
        work = self.work()
        return self.run_row(row, work, work / "state")


class WithAgents(Rows):
    """One daemon for all rows of a file."""

    def start(self):
        return self.daemon(config=AGENTS)

    def rows_beside(self, d):
        self.each_row(lambda row: self.run_row(row, d.work, d.state))


class Ids(WithAgents):
    file = "ids.txt"

    def test_ids(self):
        d = self.start()
        for _ in range(20):  # 20 ids: two of them begin with the same digit
            d.submit({"steps": [{"stepId": "a", "agentId": "calc", "skill": "evaluate", "parameters": {"expression": "6*7"}}]})
        self.rows_beside(d)


class Trust(WithAgents):
    """One row may need what a row before it made."""
    file = "trust.txt"

    def test_credentials_contexts_certificates_exports_and_tries(self):
        d = self.start()
        d.submit({"steps": [{"stepId": "a", "agentId": "calc", "skill": "evaluate", "parameters": {"expression": "6*7"}}]})
        until(lambda: d.ask("plan.list")["plans"][0]["status"] == "completed", 20, "the plan ends")
        self.rows_beside(d)


class Absent(WithAgents):
    file = "absent.txt"

    def test_what_is_named_and_is_not_there(self):
        self.rows_beside(self.start())


class Plans(WithAgents):
    file = "plans.txt"

    def test_plans(self):
        self.rows_beside(self.start())


class Flow(WithAgents):
    """One row may need what a row before it made."""
    file = "flow.txt"

    def test_branches_maps_loops_waits_and_schedules(self):
        d = self.start()
        d.submit({"steps": [{"stepId": "paid", "wait": {"signal": "paid", "schema": {"type": "integer"}}}]})
        until(lambda: d.ask("plan.list")["plans"][0].get("counts", {}).get("sleeping"), 20, "the plan waits")
        self.rows_beside(d)


class Running(WithAgents):
    file = "running.txt"

    def test_what_goes_wrong_in_a_run(self):
        self.rows_beside(self.start())


class Alone(Rows):
    """A state directory for each row, and a daemon if one starts there."""

    def nothing(self, work, state):
        pass

    def run_alone(self, row):
        work = self.work()
        work.chmod(0o755)
        more = getattr(self, row["setup"] or "nothing")(work, work / "state") or {}
        try:
            return self.run_row(row, work, work / "state", **more)
        finally:
            self.end(work / "state")

    def end(self, state):
        """Ends the daemon of the state directory; its agents end with it."""
        try:
            pid = json.loads((state / "endpoints.json").read_text())["pid"]
            for process in [pid] + children_of(pid):
                os.kill(process, signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            pass


class Config(Alone):
    file = "config.txt"

    def test_configurations(self):
        self.each_row(self.run_alone)


class DaemonRows(Alone):
    file = "daemon.txt"

    def test_daemon_and_state(self):
        self.each_row(self.run_alone)

    def up(self, state):
        subprocess.run([BIN / "baton", "up", "--state", state, "--listen-control", "tcp://127.0.0.1:0", "--listen-events",
                        "tcp://127.0.0.1:0"], check=True, capture_output=True, timeout=PROCESS_SECONDS)

    def running(self, work, state):
        self.up(state)

    def damaged_token(self, work, state):
        self.up(state)
        (state / "token").write_text("not a token\n")

    def other_token(self, work, state):
        self.up(state)
        (state / "token").write_text("0" * len((state / "token").read_text().strip()) + "\n")

    def another_user(self, work, state):
        if os.getuid() != 0:
            self.skipTest("needs root to become another user")
        self.up(state)
        return {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def stopped(self, work, state):
        self.up(state)
        pid = json.loads((state / "endpoints.json").read_text())["pid"]
        os.kill(pid, signal.SIGSTOP)

    def web_server(self, work, state):
        """A program that speaks HTTP listens on the port of a daemon that was killed."""
        self.up(state)
        endpoints = json.loads((state / "endpoints.json").read_text())
        server = socket.create_server(("127.0.0.1", 0))
        self.end(state)
        until(lambda: not Path("/proc/%d" % endpoints["pid"]).exists(), 10, "the daemon is gone")
        endpoints["control"] = "tcp://127.0.0.1:%d" % server.getsockname()[1]
        (state / "endpoints.json").write_text(json.dumps(endpoints))
        threading.Thread(target=self.speak_http, args=(server,), daemon=True).start()
        self.addCleanup(server.close)

    def speak_http(self, server):
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    def foreign(self, work, state):
        """A program that speaks the transport's protocol, and no more, has the port of the daemon."""
        self.up(state)
        endpoints = json.loads((state / "endpoints.json").read_text())
        rep = sp.RepListener()
        endpoints["control"] = rep.url
        (state / "endpoints.json").write_text(json.dumps(endpoints))
        threading.Thread(target=self.speak_nonsense, args=(rep,), daemon=True).start()
        self.addCleanup(rep.close)

    def speak_nonsense(self, rep):
        try:
            while True:
                rep.next()[1](b"\xc1 is how this one answers")
        except (OSError, ValueError, KeyError):
            pass  # closed

    def few_files(self, work, state):
        if os.getuid() != 0:
            self.skipTest("needs root to become another user")
        state.mkdir(mode=0o700)
        os.chown(state, NOBODY, NOBODY)
        (work / "baton.yaml").write_text("listen: {control: 'tcp://127.0.0.1:0', events: 'tcp://127.0.0.1:0'}\n"
                                         "agents: [{agentId: calc, command: ['${BATON_BIN}/baton-agent-calc']}]\n")
        return {"user": NOBODY, "group": NOBODY, "extra_groups": [],
                "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))}

    def taken_port(self, work, state):
        """The port of the configuration belongs to another program."""
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        (work / "baton.yaml").write_text("listen: {control: 'tcp://127.0.0.1:%d', events: 'tcp://127.0.0.1:0'}\n" % server.getsockname()[1])

    def old_log(self, work, state):
        state.mkdir()
        state.chmod(0o700)
        (state / "batond.log").write_text("an old line of a daemon of yesterday\n" * 3)


class Table(unittest.TestCase):
    def test_there_are_enough_rows_and_each_title_is_used_once(self):
        titles = [row["title"] for path in GOLDEN.glob("*.txt") for row in read_rows(path)]
        self.assertGreaterEqual(len(titles), ENOUGH)
        self.assertEqual(len(titles), len(set(titles)))

    def test_each_message_is_short(self):
        for path in GOLDEN.glob("*.txt"):
            for row in read_rows(path):
                for line in row["expected"].splitlines():
                    self.assertLessEqual(len(line), 400, row["title"])


WRITE = "--write" in sys.argv
if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--write"], verbosity=2)
