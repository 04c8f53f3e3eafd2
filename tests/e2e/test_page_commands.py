"""No page shows a command that nobody tries: each command line in a block of a page, and in the head of an example, is run by the
test that this table names, or has its reason here why no test can."""
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("baton", "batond", "baton-agent-[a-z]+", "sh", "cmake", "ninja", "cpack", "ctest", "cc", "sudo", "apt-get", "kill", "export", "until",
            "echo", "sudoedit", "cd", "cat", "podman", "python3", "git", "nngcat", "touch", "ls", "systemctl", "journalctl", r"\./\S+", r"/tmp/\S+", r"[a-z]+=\$\(\S+")
COMMAND = re.compile(r"(?:[$#] )?((?:%s)(?: .*)?)$" % "|".join(PROGRAMS))

# A page whose commands a test reads from it and runs, all of them.
WHOLE = {
    "deploy/TOUR.md": ("tests/package/test_first_hour.py", "tests/package/test_first_minute.py"),
    "deploy/REMOTE.md": ("tests/e2e/test_remote.py",),
    "deploy/examples/README.md": ("tests/e2e/test_gallery.py",),
    "protocol/PLANS.md": ("tests/e2e/test_plans_doc.py",),
}
HEADS = "tests/e2e/test_gallery.py"  # of deploy/examples/*/plan.yaml
BUILT = "tests/package/built.py"
FIRST = "tests/package/test_first_minute.py"
PACKAGES = "tests/package/test_packages.py"
PYTHON = "tests/e2e/test_python_sdk.py"
CONFORMANCE = "tests/e2e/test_conformance.py"
OF_DEVELOPERS = "not run: it is what runs the tests, or measures, and CI runs it"
TOUR = "deploy/TOUR.md"  # it stands there, too, perhaps with more options
SERVICE = "not run: needs an editor on a terminal"

# The others, line by line: the test that runs it, or the reason.
EACH = {
    "deploy/UI.md": {"baton ui": "tests/e2e/test_dashboard.py"},
    "deploy/NATS.md": {"baton up": TOUR},
    "deploy/FLEET.md": {"sh deploy/fleet/try.sh": "tests/e2e/test_fleet.py",
                        "baton fleet init postgresql://db1,db2/baton --shards 4": "tests/e2e/test_shards.py",
                        "baton fleet grow --shards 8": "tests/e2e/test_fleet_grows.py"},
    "deploy/POLLING.md": {"baton credential add worker --role agent --agent 'polling*'": "tests/e2e/test_gateway_agents.py"},
    "deploy/WEBHOOKS.md": dict.fromkeys(("baton webhook put ops --url https://ops.example.com/baton --topic 'plan_*'", "baton webhook test ops",
                                         "baton webhook list"), "tests/e2e/test_webhooks.py"),
    "README.md": {
        "sh deploy/quickstart.sh": FIRST,
        "sh tests/run.sh": OF_DEVELOPERS,
        "baton up --config deploy/examples/tour.yaml": FIRST,
        "baton plan check deploy/examples/publish.yaml": FIRST,
        "baton lint deploy/examples/parallel.yaml | tail -4": FIRST,
        "baton run --plan deploy/examples/parallel.yaml --result quotient": FIRST,
        "baton events --type plan_step_completed": FIRST,
        "baton down": FIRST,
        "sudo apt-get install ./baton_*.deb ./python3-baton_*.deb": PACKAGES,
        "python3 greeter.py --up &": PYTHON,
        "baton run \"Greet somebody by name\"": PYTHON,
    },
    "CONTRIBUTING.md": {
        "sh tests/run.sh": OF_DEVELOPERS,
        "sh tests/run.sh --fast": OF_DEVELOPERS,
        "sh tests/run.sh -R registry": OF_DEVELOPERS,
        "cmake --preset dev && ninja -C build/dev && ctest --preset dev -L unit": OF_DEVELOPERS,
    },
    "deploy/README.md": {
        "sh deploy/install.sh package": BUILT,
        "cmake --preset package && ninja -C build/package && cpack --preset package": BUILT,
        "sudo apt-get install ./build/package/packages/baton_*.deb": PACKAGES,
        "cmake --preset release && ninja -C build/release && sudo cmake --install build/release": FIRST,
        "sudoedit /etc/baton/baton.yaml": SERVICE,
        "sudo systemctl enable --now baton": PACKAGES,
        "sudo -u baton baton --state /var/lib/baton status": PACKAGES,
    },
    "deploy/man/batond.md": {
        "sudo systemctl enable --now baton": PACKAGES,
        "sudo -u baton baton --state /var/lib/baton doctor": PACKAGES,
        "sudo -u baton baton --state /var/lib/baton status": PACKAGES,
        "sudo install -d -o baton -m 700 /var/backups/baton": PACKAGES,
        "sudo -u baton baton --state /var/lib/baton backup /var/backups/baton/monday.db": PACKAGES,
        "sudo -u baton baton verify /var/backups/baton/monday.db": PACKAGES,
    },
    "agents/README.md": {
        "echo '{\"parameters\": {\"name\": \"Ada\"}}' | ./greeter --once greet": "tests/e2e/test_install.py",
        "./greeter --card": "tests/e2e/test_install.py",
        "./greeter --state DIR": "tests/e2e/test_install.py",
        "baton agents try greeter --param name=Ada": "tests/e2e/test_install.py",
    },
    "agents/python/README.md": {
        "sudo apt-get install ./baton_*.deb ./python3-baton_*.deb": PACKAGES,
        "python3 greeter.py --up &": PYTHON,
        "baton run \"Greet somebody by name\"": PYTHON,
        "baton-agent-check --skill greet --param name=Ada python3 greeter.py": PACKAGES,
        "baton-agent-check --slow-skill wait --slow-param seconds=1 --slow-seconds 1 ./my-agent": "not run: the agent is the reader's; test_conformance.py runs the same options",
        "baton-agent-check --list": "not run: in this form; test_conformance.py runs it from the tree",
    },
    "deploy/examples/agents/shout.sh": {
        "baton-agent-exec --settings deploy/examples/agents/shout.json": TOUR,
    },
    "deploy/examples/detour.yaml": {
        "baton-agent-exec --settings deploy/examples/agents/detour.json &": TOUR,
        "baton run --plan deploy/examples/detour.yaml": TOUR,
    },
    "deploy/examples/retry.yaml": {
        "baton run --plan deploy/examples/retry.yaml --inputs '{\"file\": \"/tmp/attempts\"}'": "tests/e2e/test_quickstart.py",
    },
    "deploy/examples/publish.yaml": {
        "baton run --plan deploy/examples/publish.yaml": TOUR,
    },
    "deploy/examples/dpkg-report.yaml": {
        "baton run --plan deploy/examples/dpkg-report.yaml --inputs '{\"log\": \"/var/log/dpkg.log\"}'": TOUR,
    },
    "tests/bench/README.md": OF_DEVELOPERS,
    "tests/mutants/README.md": OF_DEVELOPERS,
    "supervisor/spawn/README.md": "not run: a picture that begins with the name of a program",
}


def bare(line):
    """The command without the remark behind it."""
    return re.split(r"\s+# ", line)[0].strip()


def commands_of_page(text):
    """The command lines of the indented and the fenced blocks of a page. In a block with prompts, the lines behind them."""
    text = re.sub(r"(?ms)^```[a-z]*\n(.*?)^```$", lambda m: re.sub(r"(?m)^", "    ", m.group(1)), text)
    found = []
    for block in re.findall(r"(?m)(?:^ {4}.*\n)+", text + "\n"):
        lines = re.sub(r"\\\n *", "", block).splitlines()
        prompts = [line[4:] for line in lines if line[4:6] in ("$ ", "# ") and COMMAND.match(line[4:])]
        for line in prompts or [line[4:] for line in lines]:
            match = COMMAND.match(line)
            found += [bare(match.group(1))] if match else []
    return found


def commands_of_head(text):
    """Those in the comments of an example: "#   baton run ..."."""
    return [bare(m.group(1)) for m in (COMMAND.match(line[4:]) for line in text.splitlines() if line.startswith("#   ")) if m]


def files():
    for where, directories, names in os.walk(ROOT):
        directories[:] = [d for d in directories if d not in ("build", ".git", "node_modules", "__pycache__")]
        for name in sorted(names):
            yield pathlib.Path(where, name)


def pages():
    """{page: its commands}, of all that have some."""
    found = {}
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".md":
            commands = commands_of_page(path.read_text())
        elif name.startswith("deploy/") and path.suffix in (".yaml", ".sh") and not name.startswith("deploy/packages"):
            commands = commands_of_head(path.read_text())
        else:
            continue
        if commands:
            found[name] = commands
    return found


class Commands(unittest.TestCase):
    def test_each_command_of_a_page_is_run_or_has_its_reason(self):
        for page, commands in pages().items():
            table = EACH.get(page)
            if page in WHOLE or re.fullmatch(r"deploy/examples/[a-z-]+/plan\.yaml", page) or isinstance(table, str):
                continue
            self.assertIsNotNone(table, "%s: no test runs its commands: %s" % (page, commands))
            for command in commands:
                self.assertIn(command, table, "%s: a command that no test runs" % page)

    def test_the_table_names_nothing_that_is_gone(self):
        found = pages()
        for page, table in EACH.items():
            self.assertIn(page, found)
            for command in table if isinstance(table, dict) else ():
                self.assertIn(command, found[page], page)
        for page, tests in WHOLE.items():
            self.assertIn(page, found)
            for test in tests:
                self.assertIn(pathlib.Path(page).name, (ROOT / test).read_text(), "%s does not read %s" % (test, page))

    def test_the_tests_of_the_table_are_there_and_name_what_they_run(self):
        for page, table in EACH.items():
            for command, by in (table.items() if isinstance(table, dict) else ()):
                if by.startswith("not run: "):
                    continue
                if by == TOUR:
                    self.assertTrue(any(c.startswith(command) for c in commands_of_page((ROOT / TOUR).read_text())), command)
                    continue
                text = (ROOT / by).read_text()
                names = (page, pathlib.Path(page).name, command, "`%s`" % pathlib.Path(page).stem, '"%s"' % pathlib.Path(page).stem)
                self.assertTrue(any(name in text for name in names), "%s: %s does not run %s" % (page, by, command))

    def test_a_new_block_is_noticed(self):
        self.assertEqual(commands_of_page("text\n\n    $ baton up\n    baton is up\n    > baton x\n\n```sh\nbaton run x  # why\n```\n"),
                         ["baton up", "baton run x"])
        self.assertEqual(commands_of_page("    cc a.c \\\n        baton\n    static int x;\n    PATH x\n"), ["cc a.c baton"])
        self.assertEqual(commands_of_page("    baton up\n    baton down\n"), ["baton up", "baton down"])
        self.assertEqual(commands_of_head("# see:\n#   baton run -f x.yaml     # exit code 4\n"), ["baton run -f x.yaml"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
