"""What `cmake --install` makes is enough: an agent and a client built against it alone, the unit, the completion."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import BIN, ROOT, BatonTest, until

BUILD = BIN.parent
AGENTS = ROOT / "deploy" / "examples" / "agents"
CLIENT = r"""
#include <stdio.h>
#include <baton/client.h>

int main(int argc, char **argv)
{
    struct bt_client *client = NULL;
    struct bt_submit goal = {.plan_json = argv[2]};
    char plan[BT_ID_LEN + 1];
    char *result = NULL;
    struct bt_error err;

    if (argc != 3 || bt_client_open(argv[1], &client, &err) != BT_OK ||
        bt_submit(client, &goal, plan, NULL, &err) != BT_OK || bt_wait(client, plan, 10000, &result, &err) != BT_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    puts(result);
    bt_free(result);
    bt_client_close(client);
    return 0;
}
"""


class Installed(BatonTest):
    @classmethod
    def setUpClass(cls):
        cls.prefix = pathlib.Path(tempfile.mkdtemp(prefix="baton-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.prefix)
        cls.run_tool("cmake", "--install", BUILD, "--prefix", cls.prefix)
        cls.pkgconfig = next(cls.prefix.glob("lib/**/pkgconfig"))

    @staticmethod
    def run_tool(*command, **kwargs):
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120, **kwargs)
        if done.returncode != 0:
            raise AssertionError("%s: exit %d\n%s%s" % (command, done.returncode, done.stdout, done.stderr))
        return done.stdout

    def compile(self, source, package, output, static=False):
        flags = self.run_tool("pkg-config", "--cflags", "--libs", *(["--static"] if static else []), package,
                              env={**os.environ, "PKG_CONFIG_PATH": str(self.pkgconfig)}).split()
        if static:  # both lie in one directory, and the linker would take the shared one
            flags = ["-l:lib%s.a" % package if flag == "-l" + package else flag for flag in flags]
        else:
            flags.append("-Wl,-rpath,%s" % self.pkgconfig.parent)
        cache = (BUILD / "CMakeCache.txt").read_text()
        sanitize = re.search(r"^BATON_SANITIZE:\w+=(.*)$", cache, re.M).group(1)
        compiler = re.search(r"^CMAKE_C_COMPILER:\w+=(.*)$", cache, re.M).group(1)
        self.run_tool(compiler, "-std=c17", "-Wall", "-Werror", source, "-o", output, *flags,
                      *(["-fsanitize=" + sanitize] if sanitize else []))

    def test_programs_headers_libraries_unit_and_completion_are_there(self):
        found = {str(p.relative_to(self.prefix)) for p in self.prefix.rglob("*") if p.is_file()}
        for name in ("batond", "baton", "baton-agent-exec", "baton-agent-files", "baton-agent-sql", "baton-agent-calc", "baton-agent-llm",
                     *("baton-agent-" + a for a in ("a2a", "graph", "http", "mcp", "rag", "report"))):
            self.assertIn("bin/" + name, found)
        for name in ("check", "faulty"):  # they find their module below the prefix
            self.assertIn("usage: ", self.run_tool(sys.executable, "-B", self.prefix / "bin" / ("baton-agent-" + name), "--help"))
        for name in ("client", "agent", "error"):
            self.assertIn("include/baton/%s.h" % name, found)
        self.assertIn("share/bash-completion/completions/baton", found)
        for name in ("hello", "nightly"):
            self.assertIn("share/baton/examples/%s/plan.yaml" % name, found)
        listed = self.run_tool(self.prefix / "bin" / "baton", "init", "--list", "--json")
        self.assertIn('"path":"%s/share/baton/examples/hello/plan.yaml"' % self.prefix, listed)
        self.assertTrue({"share/zsh/site-functions/_baton", "share/zsh/vendor-completions/_baton"} & set(found), found)
        self.assertIn("share/baton/node/baton.mjs", found)
        self.assertIn("share/fish/vendor_completions.d/baton.fish", found)
        self.assertIn("ExecStart=", (self.prefix / "lib/systemd/system/baton.service").read_text())
        if (BUILD / "bin" / "baton-bridge-nats").exists():
            unit = (self.prefix / "lib/systemd/system/baton-bridge-nats.service").read_text()
            self.assertIn("/bin/baton-bridge-nats --state", unit)
            self.assertIn("baton-bridge-nats 0.3.0", self.run_tool(self.prefix / "bin/baton-bridge-nats", "--version"))
        self.run_tool("bash", "-n", self.prefix / "share/bash-completion/completions/baton")
        self.assertIn("0.3.0", self.run_tool(self.prefix / "bin" / "baton", "--version"))

    def test_links_of_the_installed_pages_lead_to_installed_pages(self):
        pages = sorted((self.prefix / "share/doc").glob("*/*.md"))
        self.assertGreater(len(pages), 10)
        links = 0
        for page in pages:
            for target in re.findall(r"\]\(([^)#]+)[^)]*\)", re.sub(r"(?ms)^```.*?^```$", "", page.read_text())):
                if not target.startswith("http") and page.name != "CHANGELOG.md":
                    self.assertTrue((page.parent / target).is_file(), "%s: %s" % (page, target))
                    links += 1
        self.assertGreater(links, 10)

    def test_libraries_export_only_their_interface(self):
        for archive, prefix in (("libbaton.a", "bt_"), ("libbaton-agent.a", "bt_")):
            names = self.run_tool("nm", "-g", "--defined-only", next(self.prefix.glob("lib/**/" + archive))).split("\n")
            names = [line.split()[-1] for line in names if len(line.split()) == 3]
            self.assertGreater(len(names), 5)
            shared = next(self.prefix.glob("lib/**/" + archive.replace(".a", ".so.0")))
            exported = self.run_tool("nm", "-D", "--defined-only", shared).split("\n")
            versions = {line.split("@@")[1] for line in exported if " A " not in line and line}
            self.assertEqual(versions, {"BATON_0" if archive == "libbaton.a" else "BATON_AGENT_0"})
            self.assertEqual({line.split()[2].split("@@")[0] for line in exported if "@@" in line}, set(n for n in names if n.startswith(prefix)))
            needed = self.run_tool("nm", "-u", next(self.prefix.glob("lib/**/" + archive)))
            self.assertNotRegex(needed, r"(?m)^ *w (nng_|cJSON_|fmod)", "a library that is needed may not be left out by the linker")
            self.assertEqual([n for n in names if not n.startswith(prefix) and not n.startswith("__odr_asan")], [])

    def test_program_and_commands_of_agents_readme_work(self):
        """The page's program, built as it stands there, and its commands with the state directory of a daemon."""
        page = (ROOT / "agents" / "README.md").read_text()
        blocks = ["".join(line[4:] + "\n" for line in b.splitlines()) for b in re.findall(r"(?m)(?:^(?: {4}.*)?\n)+", page) if b.strip()]
        program = next(b for b in blocks if "#include <baton/agent.h>" in b)
        commands = next(b for b in blocks if "--once" in b).strip().splitlines()
        self.assertEqual(len(commands), 4)
        d = self.daemon(config="agents: []\n")
        (d.work / "greeter.c").write_text(program)
        self.compile(d.work / "greeter.c", "baton-agent", d.work / "greeter")
        self.assertIn("Hello, Ada!", self.run_tool("sh", "-c", commands[0], cwd=d.work))
        self.assertIn("greeter", self.run_tool("sh", "-c", commands[1], cwd=d.work))
        log = open(d.work / "agent.log", "ab")
        serve = re.sub(r"\s+# .*", "", commands[2]).replace("DIR", str(d.state)).split()
        agent = subprocess.Popen(serve, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=d.work)
        log.close()
        self.addCleanup(agent.wait, 20)
        self.addCleanup(agent.terminate)
        until(lambda: len(d.ask("agents.list")["agents"]) == 1, 20, "it registers")
        once = re.sub(r"\s+# .*", "", commands[3]).split()
        self.assertEqual(d.cli(*once[1:]), "Hello, Ada!\n")

    def test_agents_in_c_and_in_shell_and_a_client_work_against_what_is_installed(self):
        d = self.daemon(config="agents: []\n")
        greeter, linked = d.work / "greeter", d.work / "linked"
        self.compile(AGENTS / "greeter.c", "baton-agent", greeter)
        self.compile(AGENTS / "greeter.c", "baton-agent", linked, static=True)
        self.assertIn("libbaton-agent.so.0", self.run_tool("readelf", "-d", greeter))
        self.assertNotIn("libbaton", self.run_tool("readelf", "-d", linked))
        self.assertEqual(self.run_tool(linked, "--help"), self.run_tool(greeter, "--help").replace(str(greeter), str(linked)))
        for command in ([greeter], [self.prefix / "bin" / "baton-agent-exec", "--settings", AGENTS / "shout.json"]):
            log = open(d.work / "agent.log", "ab")
            agent = subprocess.Popen([*command, "--state", d.state], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT)
            log.close()
            self.addCleanup(agent.wait, 20)
            self.addCleanup(agent.terminate)
        until(lambda: len(d.ask("agents.list")["agents"]) == 2, 10, "both agents register")
        d.wait_agents()
        plan = d.cli("run", "--json", "--plan", ROOT / "deploy" / "examples" / "greet.yaml")
        plan = re.search(r'"planId":"([^"]+)"', plan).group(1)
        self.assertEqual(d.cli("result", plan, "louder").strip(), "HELLO, READER!")

        source = d.work / "client.c"
        source.write_text(CLIENT)
        for static in (False, True):
            self.compile(source, "baton", d.work / "client", static)
            out = self.run_tool(d.work / "client", d.state, '{"steps": [{"agentId": "greeter", "skill": "greet", '
                                                            '"task": "greet", "parameters": {"name": "client"}}]}')
            self.assertIn("Hello, client!", out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
