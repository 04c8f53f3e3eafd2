"""The Debian packages: lintian, and their life in a Debian of its own: install, run, upgrade with a plan in flight, remove, purge.

A chroot has no systemd as its first process. What the maintainer scripts ask of it is recorded by stand-ins for systemctl and
deb-systemd-invoke; batond is started, ended and started again by hand, with the signals that the unit would send.
"""
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import built
from chroot import PATH, ROOT, Chroot, base, skip_without_chroot, tool

STATE = "/var/lib/baton"
NEWER = "999-1"
# Waits for a file, so that the plan is in flight for as long as the test wants.
WAIT = '[/bin/sh, -c, "until [ -e /tmp/go ]; do sleep 0.1; done; echo done"]'
RECORD = '#!/bin/sh\necho "$(basename "$0") $*" >>/var/log/asked\n'


def debs():
    found = sorted(p for p in (built.packages() / built.TREE.lstrip("/") / "build/package/packages").glob("*.deb"))
    return {p.name.split("_")[0]: p for p in found}


def newer(deb, where):
    """The same package with a higher version."""
    now = deb.name.split("_")[1]
    tool("dpkg-deb", "--raw-extract", deb, where / "x")
    control = where / "x" / "DEBIAN" / "control"
    control.write_text(re.sub(r"(?m)^Version: .*", "Version: " + NEWER, control.read_text()).replace("(= %s)" % now, "(= %s)" % NEWER))
    out = where / deb.name.replace(now, NEWER)
    tool("dpkg-deb", "--root-owner-group", "--build", where / "x", out)
    shutil.rmtree(where / "x")
    return out


def of_page(begin):
    """The command of deploy/README.md that begins so, as root types it."""
    found = [line for line in (ROOT / "deploy/README.md").read_text().splitlines() if line.startswith("    " + begin)]
    return found[0].strip()


def of_manual():
    """The commands of batond(8), as an administrator types them."""
    return re.findall(r"(?m)^    (sudo .*)$", (ROOT / "deploy/man/batond.md").read_text())


class Lint(unittest.TestCase):
    def test_there_are_seven_packages_and_lintian_finds_nothing(self):
        self.assertEqual(sorted(debs()), ["baton", "baton-bridge-nats", "libbaton-agent0", "libbaton-dev", "libbaton0", "node-baton", "python3-baton"])
        self.assertIsNotNone(shutil.which("lintian"), "`sh deploy/install.sh full` installs lintian")
        out = tool("lintian", "--allow-root", "--fail-on", "error,warning", *debs().values())
        self.assertEqual(re.findall(r"(?m)^[EW]: .*", out), [])

    def test_the_daemon_has_the_journal_on_postgresql(self):
        self.assertRegex(tool("dpkg-deb", "--field", debs()["baton"], "Depends"), r"\blibpq5\b")


class Maintainer(unittest.TestCase):
    """Of the packages that are configured; nothing is built but the changelog."""

    def configured(self, *args):
        """-> (the directory, cmake's exit code and text)"""
        where = pathlib.Path(tempfile.mkdtemp(prefix="maintainer-"))
        self.addCleanup(shutil.rmtree, where)
        done = subprocess.run(["cmake", "--preset", "package", "-B", where, *args], cwd=ROOT, capture_output=True, text=True, timeout=300)
        return where, done

    def told(self, where):
        subprocess.run(["ninja", "-C", where, "--quiet", "package_texts"], check=True, capture_output=True, timeout=300)
        control = re.search(r'CPACK_DEBIAN_PACKAGE_MAINTAINER "(.*)"', (where / "CPackConfig.cmake").read_text()).group(1)
        text = gzip.decompress((where / "install" / "changelog.Debian.gz").read_bytes()).decode()
        return control, re.findall(r"(?m)^ -- (.*>)  ", text), text

    def test_it_stands_in_control_and_changelog_and_is_nobody_by_default(self):
        committed = (ROOT / "deploy/packages/changelog").read_text()
        where, done = self.configured()
        self.assertEqual(done.returncode, 0, done.stderr)
        control, trailers, text = self.told(where)
        self.assertEqual((control, set(trailers), text), ("Baton maintainers <maintainers@baton.invalid>", {control}, committed))
        where, done = self.configured("-DBATON_MAINTAINER=Ada Byron <ada@example.org>")
        self.assertEqual(done.returncode, 0, done.stderr)
        control, trailers, text = self.told(where)
        self.assertEqual((control, set(trailers)), ("Ada Byron <ada@example.org>", {"Ada Byron <ada@example.org>"}))
        self.assertEqual(text.replace(control, "Baton maintainers <maintainers@baton.invalid>"), committed)

    def test_what_is_no_name_with_an_address_is_refused(self):
        for wrong in ("ada@example.org", "Ada", "Ada <ada>", "Ada <a@b> <c@d>", "<ada@example.org>", ""):
            done = self.configured("-DBATON_MAINTAINER=" + wrong)[1]
            self.assertNotEqual(done.returncode, 0, wrong)
            self.assertIn("BATON_MAINTAINER: expected Name <user@host>", " ".join(done.stderr.split()))


class Life(unittest.TestCase):
    def setUp(self):
        self.c = Chroot.of(self, base())
        self.c.path("/tmp/debs").mkdir()
        for deb in debs().values():
            shutil.copy(deb, self.c.path("/tmp/debs"))

    def install(self, *names, more=""):
        self.c.sh("apt-get update -q && apt-get install -q -y --no-install-recommends %s %s" % (
            more, " ".join("/tmp/debs/%s_*.deb" % n for n in names)), network=True)

    def baton(self, command, **kwargs):
        return self.c.sh("baton %s --state %s" % (command, STATE), user="baton", env={"HOME": STATE}, **kwargs)

    def start(self):
        """As the unit does; back when it is ready."""
        self.c.sh("batond --state %s >>/tmp/batond.log 2>&1 & echo $! >/tmp/pid" % STATE, user="baton", env={"HOME": STATE})
        self.c.sh("for i in $(seq 600); do baton agents --state %s 2>/dev/null | grep -q calc && exit 0; sleep 0.1; done; cat /tmp/batond.log; exit 1" % STATE,
                  user="baton", env={"HOME": STATE})

    def end(self, signal):
        self.c.sh("kill -%s $(cat /tmp/pid); for i in $(seq 300); do kill -0 $(cat /tmp/pid) 2>/dev/null || exit 0; sleep 0.1; done; exit 1" % signal)

    def stand_ins(self):
        """A machine with systemd, as far as maintainer scripts look; what they ask of it is recorded."""
        self.c.sh("mkdir -p /run/systemd/system")
        self.c.path("/etc/apt/apt.conf.d/path").write_text('DPkg::Path "%s";\n' % PATH)  # else apt leaves /usr/local out
        for name in ("systemctl", "deb-systemd-invoke"):
            self.c.path("/usr/local/bin/" + name).write_text(RECORD)
            self.c.path("/usr/local/bin/" + name).chmod(0o755)

    def asked(self):
        log = self.c.path("/var/log/asked")
        said = log.read_text().splitlines() if log.exists() else []
        log.write_text("")
        return [line for line in said if "baton" in line or "daemon-reload" in line]

    def test_install_run_upgrade_with_a_plan_in_flight_remove_purge(self):
        c = self.c
        self.stand_ins()
        self.install("baton")
        self.assertEqual(self.asked(), ["systemctl --system daemon-reload"], "an installation starts nothing")
        self.assertIn("0.3.0", c.sh("baton --version"))
        self.assertEqual(c.sh("stat -c '%%a %%U' %s" % STATE).strip(), "700 baton")
        self.assertEqual(c.sh("stat -c '%a %U' /etc/baton/baton.yaml").strip(), "644 root")

        # The administrator's configuration: one more command of the agent exec.
        config = c.path("/etc/baton/baton.yaml")
        text = config.read_text()
        config.write_text(text.replace("        - id: uptime\n", "        - id: linger\n          argv: %s\n          effects: none\n"
                                       "          description: Waits.\n          output: text\n        - id: uptime\n" % WAIT, 1))
        self.assertNotEqual(config.read_text(), text)
        c.sh(of_page("sudo systemctl enable --now baton").replace("sudo ", ""))
        self.assertEqual(self.asked(), ["systemctl enable --now baton"])
        self.start()
        c.sh(of_page("sudo -u baton ").replace("sudo -u baton ", ""), user="baton", env={"HOME": STATE})
        for command in of_manual():
            if "systemctl" not in command:
                user = re.match(r"sudo (?:-u (\w+) )?", command)
                c.sh("for i in $(seq 100); do %s && exit 0; sleep 0.2; done; exit 1" % command[user.end():],  # doctor: once all agents are up
                     user=user.group(1), env={"HOME": STATE})
        out = self.baton("run --plan /usr/share/baton/examples/parallel.yaml --result quotient")
        self.assertRegex(out, r"(?m)^30$")

        # kill -9, then an upgrade as the scripts make it: the plan that waits in its first step ends.
        c.path("/tmp/plan.json").write_text(json.dumps({"steps": [
            {"stepId": "first", "agentId": "exec", "skill": "linger", "task": "Wait for the file /tmp/go"},
            {"stepId": "then", "agentId": "calc", "skill": "evaluate", "task": "Multiply six by seven", "dependsOn": ["first"], "parameters": {"expression": "6*7"}}]}))
        plan = re.search(r"[0-9A-F]{8}-[0-9A-F-]{27}", self.baton("run --plan /tmp/plan.json --detach")).group(0)
        self.end("KILL")
        self.start()
        with tempfile.TemporaryDirectory() as where:
            for deb in debs().values():
                shutil.copy(newer(deb, pathlib.Path(where)), c.path("/tmp/debs"))
        pid = c.path("/tmp/pid").read_text()
        c.sh("dpkg -i /tmp/debs/baton_%s_*.deb" % NEWER)
        self.assertEqual(self.asked(), ["systemctl --system daemon-reload", "deb-systemd-invoke try-restart baton.service"])
        c.sh("kill -0 %s" % pid)  # it ran through the upgrade
        self.assertIn("linger", config.read_text(), "the administrator's configuration stays")
        self.end("TERM")
        self.start()
        self.assertIn('"running"', self.baton("status %s --json" % plan))
        c.sh("touch /tmp/go")
        c.sh("for i in $(seq 600); do baton status %s --json --state %s | grep -q '\"status\":\"completed\"' && exit 0; sleep 0.1; done; exit 1"
             % (plan, STATE), user="baton", env={"HOME": STATE})
        self.assertIn("42", self.baton("result %s then" % plan))

        self.end("TERM")
        c.sh("apt-get remove -q -y baton")
        self.assertEqual(self.asked(), ["deb-systemd-invoke stop baton.service", "systemctl --system daemon-reload"])
        self.assertFalse(c.exists("/usr/bin/batond"))
        self.assertTrue(c.exists(STATE + "/token") or list(c.path(STATE).iterdir()), "the state stays")
        self.assertTrue(c.exists("/etc/baton/baton.yaml"))

        c.sh("apt-get purge -q -y baton")
        self.assertFalse(c.exists(STATE))
        self.assertFalse(c.exists("/etc/baton"))
        c.sh("getent passwd baton", code=2)

    def test_what_was_built_is_installed_by_the_command_of_the_page(self):
        self.assertIn("sh deploy/install.sh package\n    %s\n" % built.PACKAGES, (ROOT / "deploy/README.md").read_text())
        packages = built.TREE + "/build/package/packages"
        command = of_page("sudo apt-get install ./build/").replace("sudo ", "").replace("install", "install -q -y", 1)
        self.c.sh("mkdir -p %s && cp /tmp/debs/*.deb %s && apt-get update -q && cd %s && %s" % (packages, packages, built.TREE, command), network=True)
        self.assertIn("0.3.0", self.c.sh("baton version"))

    def test_agent_in_python_needs_python3_baton_alone(self):
        self.install("python3-baton")
        self.c.path("/tmp/greeter.py").write_text("import baton\nagent = baton.Agent('greeter')\n\n@agent.skill\ndef greet(name: str = 'world'):\n"
                                                  "    return 'Hello, ' + name\n\nagent.run()\n")
        out = self.c.sh("baton-agent-check --skill greet --param name=Ada python3 /tmp/greeter.py")
        self.assertIn(", 0 are broken", out)
        self.c.sh("python3 -m py_compile /usr/lib/python3/dist-packages/baton.py")

    def test_agent_in_javascript_needs_node_baton_and_nodejs(self):
        self.install("python3-baton", "node-baton")
        self.c.path("/tmp/greeter.mjs").write_text(
            "import { Agent } from '/usr/share/nodejs/baton-agent/baton.mjs';\n"
            "const agent = new Agent('greeter');\n"
            "agent.skill('greet', { properties: { name: { type: 'string' } } }, ({ name }) => `Hello, ${name}!`);\nawait agent.run();\n")
        out = self.c.sh("baton-agent-check --skill greet --param name=Ada node /tmp/greeter.mjs")
        self.assertIn(", 0 are broken", out)

    def test_agent_in_c_is_built_with_libbaton_dev(self):
        self.install("libbaton0", "libbaton-agent0", "libbaton-dev", more="gcc libc6-dev pkg-config")
        shutil.copy(ROOT / "deploy/examples/agents/greeter.c", self.c.path("/tmp"))
        self.c.sh("cc -Wall -Werror /tmp/greeter.c -o /tmp/shared $(pkg-config --cflags --libs baton-agent)")
        self.assertIn("libbaton-agent.so.0 => /", self.c.sh("ldd /tmp/shared"))
        self.c.sh("/tmp/shared --help")
        self.c.sh("cc -Wall -Werror /tmp/greeter.c -o /tmp/static "
                  "$(pkg-config --static --cflags --libs baton-agent | sed 's/-lbaton-agent/-l:libbaton-agent.a/')")
        self.assertNotIn("libbaton", self.c.sh("ldd /tmp/static"))
        self.c.sh("/tmp/static --help")


if __name__ == "__main__":
    skip_without_chroot()
    unittest.main(verbosity=2)
