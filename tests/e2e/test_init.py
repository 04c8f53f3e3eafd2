"""`baton init`: a directory that works at once, nothing overwritten, the examples of the installed tree and of the build tree; and
the project that it makes: its own state, its own configuration, found from its directory."""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile
import unittest

from harness import BIN
from project import EXAMPLES, NAMES, Gallery


class Init(Gallery):
    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="baton-init-"))
        self.addCleanup(shutil.rmtree, self.work, True)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("BATON_")}
        self.env.update(HOME=str(self.work), XDG_CONFIG_HOME=str(self.work), XDG_STATE_HOME=str(self.work / "elsewhere"))

    def init(self, *args, code=0, program=BIN / "baton", **env):
        done = subprocess.run([program, "init", *map(str, args)], cwd=self.work, env={**self.env, **env}, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def files(self, top):
        return {str(p.relative_to(top)): p.read_bytes() for p in top.rglob("*") if p.is_file() and ".baton" not in p.parts}

    def test_a_configuration_here_that_is_not_read_is_told(self):
        (self.work / "baton").mkdir()
        (self.work / "baton" / "baton.yaml").write_text("agentz: []\n")  # so that no daemon starts
        for state, told in (("elsewhere", True), (".baton", False)):
            (self.work / state).mkdir(mode=0o700)
            (self.work / "baton.yaml").write_text("agentz: []\n")
            done = subprocess.run([BIN / "baton", "up"], cwd=self.work, env=self.env, capture_output=True, text=True, timeout=30)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual("./baton.yaml is not read: --config baton.yaml reads it" in done.stderr, told, done.stderr)

    def test_nobody_else_may_write_to_what_it_makes_whatever_the_umask(self):
        before = os.umask(0)
        try:
            self.init("x")
        finally:
            os.umask(before)
        made = [self.work / "x", *(p for p in (self.work / "x").rglob("*") if ".baton" not in p.parts)]
        self.assertGreater(len(made), 2)
        self.assertEqual([p for p in made if p.stat().st_mode & 0o022], [])

    def test_what_it_prints_next_works_as_it_stands(self):
        done = self.init("x")
        commands = [line.strip() for line in done.stderr.splitlines()[1:]]
        self.assertEqual(commands[:2], ["cd x", "baton up"])
        self.addCleanup(subprocess.run, [BIN / "baton", "down", "--state", self.work / "x" / ".baton"], capture_output=True)
        ran = subprocess.run(["sh", "-ec", "\n".join(commands + ["baton run --plan plan.yaml --result louder"])], cwd=self.work,
                             env={**self.env, "PATH": "%s:%s" % (BIN, os.environ["PATH"])}, capture_output=True, text=True, timeout=60)
        self.assertEqual((ran.returncode, ran.stdout), (0, "HELLO, ADA!\nHELLO, WORLD!\n"), ran.stderr)

    def test_every_file_of_each_example_is_copied(self):
        for name in NAMES:
            self.init("--example", name, self.work / "deep" / "er" / name)
            self.assertEqual(self.files(self.work / "deep" / "er" / name), self.files(EXAMPLES / name))
        self.assertTrue(os.access(self.work / "deep" / "er" / "nightly" / "nightly.sh", os.X_OK))
        self.assertFalse(os.access(self.work / "deep" / "er" / "nightly" / "plan.yaml", os.X_OK))

    def test_the_directory_here_is_taken_without_a_name(self):
        self.init()
        self.assertEqual(self.files(self.work), self.files(EXAMPLES / "hello"))

    def test_nothing_is_overwritten_and_nothing_is_written_then(self):
        for taken in ("plan.yaml", "letters/4-school.txt"):
            top = self.work / taken.replace("/", "-")
            (top / taken).parent.mkdir(parents=True)
            (top / taken).write_text("mine")
            self.assertIn("%s/%s is there already; nothing was written" % (top, taken), self.init("--example", "budget", top, code=2).stderr)
            self.assertEqual(self.files(top), {taken: b"mine"})
            self.assertFalse((top / ".baton").exists())
        (self.work / "dangling").mkdir()
        (self.work / "dangling" / "plan.yaml").symlink_to("nowhere")
        self.init("dangling", code=2)
        (self.work / "file").write_text("mine")
        self.assertIn("file", self.init("file", code=1).stderr)
        self.init("twice")
        self.assertIn("is there already", self.init("twice", code=2).stderr)
        for name in self.files(EXAMPLES / "hello"):
            (self.work / "twice" / name).unlink()
        self.assertIn("this is a project", self.init("twice", code=2).stderr)

    def test_list_has_a_line_for_each(self):
        lines = self.init("--list").stdout.splitlines()[1:]
        self.assertEqual([line.split()[0] for line in lines], NAMES)
        self.assertTrue(all(len(line) <= 110 for line in lines), lines)
        rows = json.loads(self.init("--list", "--json").stdout)
        self.assertEqual([(r["name"], bool(r["description"])) for r in rows], [(n, True) for n in NAMES])

    def test_an_unknown_example_is_told_with_a_guess(self):
        self.assertIn("did you mean 'etl-join'? See: baton init --list", self.init("--example", "etl-joint", "x", code=7).stderr)
        for name in ("recipes", "agents", "../examples/hello", "hello/", "."):
            self.assertIn("there is no example", self.init("--example", name, "x", code=7).stderr)
        self.assertIn("--example: expected EXAMPLE", self.init("--example", "", "x", code=2).stderr)
        self.assertFalse((self.work / "x").exists())
        self.assertIn("init: expected DIR", self.init("", code=2).stderr)

    def test_installed_examples_are_those_of_the_prefix(self):
        prefix = self.work / "usr"
        (prefix / "bin").mkdir(parents=True)
        shutil.copy(BIN / "baton", prefix / "bin")
        program = prefix / "bin" / "baton"
        self.assertIn("%s/share/baton/examples" % prefix, self.init("x", program=program, code=1).stderr)
        shutil.copytree(EXAMPLES / "hello", prefix / "share" / "baton" / "examples" / "ours")
        self.assertEqual([r["name"] for r in json.loads(self.init("--list", "--json", program=program).stdout)], ["ours"])
        self.init("--example", "ours", "x", program=program)
        self.assertEqual(self.files(self.work / "x"), self.files(EXAMPLES / "hello"))

    def test_a_state_that_is_set_is_told(self):
        self.assertIn("BATON_STATE is set to /elsewhere", self.init("x", BATON_STATE="/elsewhere").stderr)


class Projects(Gallery):
    def test_state_and_configuration_are_found_from_the_directory(self):
        p = self.project("hello")
        shown = p.baton("config", "show", "--origin")
        self.assertIn(str(p.dir / "baton.yaml"), shown)
        self.assertEqual(stat.S_IMODE((p.dir / ".baton").stat().st_mode), 0o700)
        self.assertEqual((p.dir / ".baton" / ".gitignore").read_text(), "*\n")

    def test_two_projects_run_side_by_side(self):
        one, two = self.project("hello"), self.project("fan-out")
        self.assertEqual(one.run("--result", "louder")[1], "HELLO, WORLD!\n")
        self.assertIn("Warmest", two.run("--result", "report")[1])
        self.assertNotIn("hello", two.baton("agents"))

    def test_a_project_may_be_moved(self):
        p = self.project("etl-join", up=False)
        moved = p.work / 'with space, "quote" and é'
        p.dir.rename(moved)
        p.dir = moved
        p.baton("up")
        self.assertIn("# Revenue by region", p.run("--result", "report")[1])

    def test_what_a_checkout_may_bring_is_no_project(self):
        p = self.project("hello", up=False)
        (p.dir / ".baton").chmod(0o755)
        self.assertNotIn(str(p.dir / "baton.yaml"), p.baton("config", "show", "--origin"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
