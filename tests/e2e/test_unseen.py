"""Characters that order a terminal about, turn text around or cannot be seen: data that programs print have them escaped,
texts for people have a mark in their place. The value is the same for whoever reads the data."""
import json
import os
import pty
import re
import subprocess
import sys
import unicodedata

import harness
import probe

MARKS = "\x7f\x85\x9b\u00ad\u061c\u200b\u200e\u202e\u2028\u2029\u2060\u2066\ufeff\U000e0041"
SAID = "say " + "".join("%d%s" % (i, c) for i, c in enumerate(MARKS)) + " \u200d\ufe0f end"
CONFIG = "policy: {heartbeatMs: 300}\nagents: []\n"
VOCABULARIES = ("ai-sdk", "plan-executor", "agent-turn", "ptc-runner", "ptc-runner-telemetry", "orchestrator-log")


def unsafe(text):
    """By the categories of Unicode, not by the program's own list."""
    return sorted({"%04X" % ord(c) for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")})


class Unseen(harness.BatonTest):
    def setUp(self):
        self.d = self.daemon(config=CONFIG, agents=False)
        agent = probe.Probe(self.d, work=lambda r: {"outcome": "completed", "result": {"text": SAID, "data": {SAID[:40]: SAID}}})
        self.addCleanup(agent.close)
        probe.wait_up(self.d)
        self.plan = self.d.submit({"goal": SAID, "steps": [probe.step("a", task=SAID), probe.step("b", task=SAID)]},
                                  sessionId="talk")
        self.assertEqual(self.d.wait_plan(self.plan)["status"], "completed")

    def terminal(self, *args):
        """Everything that the program shows on a terminal."""
        master, slave = pty.openpty()
        p = subprocess.Popen([harness.BIN / "baton", *args, "--state", self.d.state], stdin=slave, stdout=slave, stderr=slave,
                             env={**os.environ, "TERM": "dumb", "PAGER": "cat"})
        os.close(slave)
        out = b""
        try:
            while part := os.read(master, 65536):
                out += part
        except OSError:
            pass  # it has ended
        os.close(master)
        self.assertEqual(p.wait(20), 0, out)
        return out.decode().replace("\r\n", "\n")

    def test_json_has_escapes_and_the_same_value(self):
        for args in (("events", self.plan, "--json"), ("status", self.plan, "--json"), ("result", self.plan, "--json"),
                     ("result", self.plan, "a", "--json"), ("history", self.plan, "--json"), ("status", "--json"), ("status", self.plan, "-o", "jsonl")):
            with self.subTest(args=args):
                said = self.d.cli(*args)
                self.assertEqual(unsafe(said), [])
                values = [json.loads(line) for line in said.splitlines()]
                self.assertIn(SAID[:20], json.dumps(values, ensure_ascii=False).replace("\\u007f", "\x7f"))
        (result,) = [json.loads(line) for line in self.d.cli("result", self.plan, "a", "--json").splitlines()]
        self.assertEqual(result["result"]["data"], {SAID[:40]: SAID})

    def test_streams_have_escapes(self):
        for args in ([("--sse",)] + [("--vocabulary", v) for v in VOCABULARIES] + [("--vocabulary", v, "--sse") for v in VOCABULARIES]):
            with self.subTest(args=args):
                said = self.d.cli("events", self.plan, *args)
                self.assertEqual(unsafe(said), [])
                self.assertIn("\\u202e", said)
                for line in said.splitlines():
                    if line:
                        json.loads(line[len("data: "):] if "--sse" in args else line)

    def test_yaml_has_escapes_and_the_same_value(self):
        for args in (("result", self.plan, "-o", "yaml"), ("events", self.plan, "-o", "yaml")):
            said = self.d.cli(*args)
            self.assertEqual(unsafe(said), [], args)
            self.assertIn("\\u202E", said)
        self.assertEqual(harness.read_yaml(self.d.cli("result", self.plan, "-o", "yaml")), json.loads(self.d.cli("result", self.plan, "--json")))

    def test_a_terminal_shows_marks_and_a_file_gets_the_bytes(self):
        kept = "\u200d\ufe0f"  # words and emoji need them
        for args in (("result", self.plan), ("result", self.plan, "a"), ("status", self.plan), ("events", self.plan), ("history", self.plan)):
            with self.subTest(args=args):
                shown = re.sub("[%s]" % kept, "", self.terminal(*args))
                self.assertEqual(unsafe(shown), [], shown)
        self.assertIn(kept, self.terminal("result", self.plan, "a"))
        self.assertIn(SAID, self.d.cli("result", self.plan, "a"))

    def test_the_name_of_a_configuration_file_is_scrubbed(self):
        name = self.d.work / "b\x1b[31m\u202e\x9b.yaml"
        name.write_text("nonsense: 1\n")
        for args in (["baton", "config", "show", "--config", name], ["batond", "--state", self.d.work / "s", "--config", name]):
            done = subprocess.run([harness.BIN / args[0], *args[1:]], capture_output=True, text=True, timeout=30)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("nonsense", done.stderr)
            self.assertEqual((unsafe(done.stdout), unsafe(done.stderr)), ([], []))


if __name__ == "__main__":
    sys.exit(harness.main())
