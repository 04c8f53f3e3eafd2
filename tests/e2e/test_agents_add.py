#!/usr/bin/env python3
"""baton agents add: each kind is tried, written into the configuration beside what is there, and works after a reload."""
import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading

from harness import BIN, ROOT, BatonTest, main

sys.path.insert(0, str(ROOT / "tests" / "peers"))
import test_a2a_agent  # noqa: E402

MCP = ROOT / "tests/support/mcp_server.py"
HEAD = """agents:
  # the first one stays as it is written
  - {agentId: calc, command: ["${BATON_BIN}/baton-agent-calc"]}   # in one line
"""
TAIL = """
# the planner's line
planner: keyword
"""
PETS = """openapi: 3.0.3
info: {title: Pets, version: "1"}
servers: [{url: "%s"}]
paths:
  /pets/{id}:
    get:
      operationId: getPet
      summary: Gets a pet.
      parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
      responses: {200: {description: ok, content: {application/json: {schema: {type: object}}}}}
    delete: {operationId: removePet, parameters: [{name: id, in: path, required: true}]}
"""


class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"path": self.path, "key": self.headers.get("Authorization")}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Add(BatonTest):
    def setUp(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = "http://127.0.0.1:%d" % server.server_address[1]

    def up(self, env=None):
        for name, value in (env or {}).items():
            os.environ[name] = value
            self.addCleanup(os.environ.pop, name)
        self.d = self.daemon(config=HEAD + TAIL)
        self.before = self.d.config.read_text()

    def run_add(self, *args, code=0, env=None):
        done = subprocess.run([BIN / "baton", "agents", "add", "--state", self.d.state, *map(str, args)], capture_output=True, text=True, timeout=60,
                              env={**os.environ, **(env or {})})
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def add(self, *args, code=0):
        return self.run_add("--config", self.d.config, *args, code=code)

    def data(self, agent, skill, *parameters):
        self.d.cli("reload", "--config", self.d.config)
        self.d.cli("agents", "--wait", agent)
        return json.loads(self.d.cli("agents", "try", agent, skill, *[a for p in parameters for a in ("--param", p)]))

    def test_each_kind_works_after_a_reload_and_the_rest_of_the_file_stays(self):
        self.up({"PET_KEY": "the-key-of-the-pets"})
        spec = self.d.work / "pets.yaml"
        spec.write_text(PETS % (self.url + "/v1"))
        self.assertIn("skill shout", self.add("exec", "shout", "--", "tr", "a-z", "A-Z").stdout)
        self.add("http", "find", self.url, "--request", "GET /find/{name}?q={text}", "--bearer-env", "PET_KEY")
        shown = self.add("openapi", "pets", spec, "--only", "get*").stdout
        self.assertEqual([line.split()[1] for line in shown.splitlines() if line.startswith("skill ")], ["getPet"])
        script = self.d.work / "tools.json"
        script.write_text(json.dumps({"log": str(self.d.work / "tools.log"), "tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("env", "leave")]}))
        shown = self.add("mcp", "tools", "--only", "env", "--effects", "none", "--", sys.executable, "-B", MCP, script).stdout
        self.assertEqual([line.split()[1:3] for line in shown.splitlines() if line.startswith("skill ")], [["env", "none"]])
        self.assertEqual(self.data("find", "find", "name=a b", "text=x&y"), {"path": "/find/a%20b?q=x%26y", "key": "Bearer [redacted]"})
        self.assertEqual(self.data("pets", "getPet", "id=7"), {"path": "/v1/pets/7", "key": None})
        self.assertEqual(self.d.cli("agents", "try", "shout", "--param", "input=loud").strip(), "LOUD")
        self.assertEqual(json.loads(self.d.cli("agents", "try", "tools"))["name"], "env")
        after = self.d.config.read_text()
        cut = self.before.index(TAIL)
        self.assertEqual((after[:cut], after[-len(TAIL):]), (self.before[:cut], TAIL))
        self.assertNotIn("the-key-of-the-pets", after)
        self.assertEqual([p.name for p in self.d.config.parent.iterdir() if p.name.startswith(".baton-add")], [])

    def test_an_entry_that_the_running_daemon_does_not_read_says_so(self):
        self.up()
        home = {"XDG_CONFIG_HOME": str(self.d.work / "elsewhere")}
        (self.d.work / "elsewhere" / "baton").mkdir(parents=True)
        elsewhere = self.run_add("exec", "shout", "--effects", "none", "--", "tr", "a-z", "A-Z", env=home)
        self.assertIn("added to %s/elsewhere/baton/baton.yaml" % self.d.work, elsewhere.stdout)
        self.assertRegex(elsewhere.stderr, r"the running daemon reads another file.*--config FILE")
        self.assertNotIn("baton reload ", elsewhere.stderr, "it would change nothing")
        here = self.add("exec", "shout", "--effects", "none", "--", "tr", "a-z", "A-Z")
        self.assertNotIn("another file", here.stderr)
        dry = self.run_add("exec", "whisper", "--dry-run", "--", "tr", "A-Z", "a-z", env=home)
        self.assertNotIn("another file", dry.stderr)

    def test_a_program_by_a_path_from_here_is_found_by_the_daemon_elsewhere(self):
        self.up()
        program = self.d.work / "count"
        program.write_text("#!/bin/sh\nwc -w\n")
        program.chmod(0o755)
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.d.work)
        self.add("exec", "words", "--", "./count")
        os.chdir(here)
        self.d.cli("reload", "--config", self.d.config)
        self.d.cli("agents", "--wait", "words")
        self.assertEqual(self.d.cli("agents", "try", "words", "--param", "input=one two three").strip(), "3")

    def test_an_a2a_agent_is_added_by_its_url(self):
        self.up()
        port = test_a2a_agent.Peers.serve(self, "1.0", "blocking")
        self.assertIn("skill do_it", self.add("a2a", "partner", "http://127.0.0.1:%d" % port).stdout)
        self.d.cli("reload", "--config", self.d.config)
        self.d.cli("agents", "--wait", "partner")
        self.assertEqual(self.d.cli("agents", "try", "partner", "--param", "message=message").strip(), "a plain answer")

    def test_a_dry_run_and_what_is_wrong_write_nothing(self):
        self.up()
        spec = self.d.work / "pets.yaml"
        spec.write_text(PETS % "/v1")
        there = sorted(self.d.config.parent.iterdir())
        self.assertIn("'${CONFIG_DIR}/pets.openapi.json'", self.add("openapi", "pets", spec, "--base-url", self.url, "--dry-run").stdout)
        shown = json.loads(self.add("exec", "shout", "--dry-run", "--json", "--", "tr", "a-z", "A-Z").stdout)
        self.assertEqual((shown["written"], [s["id"] for s in shown["skills"]], shown["entry"]["agentId"]), (False, ["shout"], "shout"))
        for wrong, said in ((("exec", "calc", "--", "true"), ": there is an agent calc already"),
                            (("exec", "x", "--", "no-such-program-anywhere"), "is no program"),
                            (("exec", "no id", "--", "true"), "expected 1 to 64 of"),
                            (("http", "x", self.url), "usage: baton agents add http"),
                            (("http", "x", self.url, "--request", "/a"), "expected METHOD /PATH"),
                            (("http", "x", self.url, "--request", "GET /a?b"), "expected NAME=VALUE after ?"),
                            (("http", "x", self.url, "--request", "GET /a", "--bearer-env", "NOT_SET_ANYWHERE"), "NOT_SET_ANYWHERE is not set"),
                            (("openapi", "x", spec), "give --base-url"), (("openapi", "x", "/no/such/file"), "No such file"),
                            (("mcp", "x", "--", "cat"), "did not start with these settings"),
                            (("a2a", "x", "ftp://a"), "usage: baton agents add a2a"), (("grpc", "x", "y"), "usage: baton agents add exec|http|")):
            self.assertIn(said, self.add(*wrong, code=2).stderr, wrong)
        self.assertEqual((self.d.config.read_text(), sorted(self.d.config.parent.iterdir())), (self.before, there))
        self.d.config.write_text("agents: [{agentId: a, command: [/bin/true]}]\n")
        self.assertIn("add it by hand", self.add("exec", "b", "--", "true", code=2).stderr)

    def test_a_user_without_a_file_gets_one_and_one_that_others_may_not_read_stays_so(self):
        self.up()
        home = pathlib.Path(self.d.work) / "fresh"
        home.mkdir()
        env = {**os.environ, "XDG_CONFIG_HOME": str(home)}
        self.run_add("exec", "shout", "--", "tr", "a-z", "A-Z", env=env)
        file = home / "baton" / "baton.yaml"
        self.assertEqual((file.read_text().splitlines()[:2], file.stat().st_mode & 0o777), (["agents:", "  - agentId: shout"], 0o600))
        file.chmod(0o640)
        self.run_add("exec", "count", "--", "wc", "-l", env=env)
        self.assertEqual(file.stat().st_mode & 0o777, 0o640)


if __name__ == "__main__":
    main()
