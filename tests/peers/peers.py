"""Servers of language models that we did not write, for tests. They come from npm, into a build directory (install.sh);
where they are not, the tests that want one skip and say so. Standard library only.
"""
import http.client
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
DIR = pathlib.Path(os.environ.get("BATON_PEERS", HERE.parent.parent / "build" / "peers")).resolve()


def need(package):
    """Skips the test (or, in setUpModule, all of them) when the package is not there."""
    if shutil.which("node") is None or not (DIR / "node_modules" / package).is_dir():
        raise unittest.SkipTest("SKIPPED: %s is not in %s; sh tests/peers/install.sh %s" % (package, DIR, DIR))


def run(script, *args, timeout=120):
    """A script of this directory to its end; what it printed."""
    done = subprocess.run(["node", HERE / script, *map(str, args)], capture_output=True, text=True, timeout=timeout, env={**os.environ, "BATON_PEERS": str(DIR)})
    if done.returncode != 0:
        raise AssertionError("%s: exit %d\n%s%s" % (script, done.returncode, done.stdout[-1000:], done.stderr[-3000:]))
    return done.stdout


class Node:
    """A script that tells its port when it can be asked, and ends with its standard input."""

    key = None

    def __init__(self, script, *args):
        ready, says = os.pipe()
        self.said = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            ["node", HERE / script, *map(str, args)], stdin=subprocess.PIPE, stdout=self.said, stderr=self.said, pass_fds=(says,),
            env={**os.environ, "BATON_PEERS": str(DIR), "BATON_READY_FD": str(says)})
        os.close(says)
        with os.fdopen(ready) as f:
            line = f.readline().strip()
        if not line:
            raise AssertionError("%s did not start: %s" % (script, self.close()))
        self.port = int(line)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Content-Type": "application/json", **({"Authorization": "Bearer " + self.key} if self.key else {})}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise AssertionError("%s %s: %d %s" % (method, path, answer.status, data[:500]))
        return json.loads(data)

    def close(self):
        """Ends it; the end of what it said."""
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.said.seek(0)
        with self.said:
            return self.said.read().decode(errors="replace")[-2000:]


class Aimock(Node):
    """@copilotkit/aimock. answers(): what it says, in order, the last one for good; or by `match`, see its documentation."""

    def __init__(self, **options):
        need("@copilotkit/aimock")
        self.key = (options.get("apiKeys") or [None])[0]
        super().__init__("aimock.cjs", json.dumps(options))

    def answers(self, *responses, to=None, **more):
        """What it says from now on, in order, the last one for good. Each is a text, a JSON value, or {"response": ...,
        "chunkSize": ..., "chaos": ..., ...} of its fixtures. to: {text: [responses]} answers by what the question has in it.
        """
        fixtures = []
        for text, group in [*(to or {}).items(), *([(None, responses)] if responses else [])]:
            for i, r in enumerate(group):
                fixture = dict(r) if isinstance(r, dict) and "response" in r else {"response": {"content": r}}
                # First match wins: each of the earlier ones matches once, in its turn.
                fixture["match"] = {**fixture.get("match", {}), **({"userMessage": text} if text else {}),
                                    **({"sequenceIndex": i} if i < len(group) - 1 else {})}
                fixtures.append({**more, **fixture})
        self.ask("POST", "/__aimock/reset", {})
        self.ask("POST", "/__aimock/fixtures", {"fixtures": fixtures})

    def journal(self):
        return self.ask("GET", "/__aimock/journal")


class Llama(Node):
    """A real llama.cpp with a model file, see llmserve.cjs."""

    def __init__(self, model, **options):
        need("@fugood/llama.node")
        need("@fugood/node-llama-linux-x64")
        super().__init__("llmserve.cjs", model, json.dumps(options))

    def chat(self, prompt, **more):
        return self.ask("POST", "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": prompt}], **more})
